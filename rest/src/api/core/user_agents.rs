//! `/api/core/useragents/`: user agents for requests to providers.

use actors::now_ms;
use domain::core_settings::{STREAM_SETTINGS, default_user_agent};
use domain::setting::CoreSetting;
use domain::user_agent::UserAgent;
use http::{HeaderValue, StatusCode};
use resource_derive::View;
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use route_frame::value::Time;
use serde::Serialize;
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};
use crate::record::{IsAdmin, RecordCall, Render, refuse_if, set_fields, view_from};

/// A user agent: the name of a program under which the gateway requests streams.
#[derive(Clone, Debug, Serialize, View)]
#[resource(new = NewUserAgent, edit = UserAgentEdit)]
pub(crate) struct UserAgentView {
    /// Assigned by the gateway and never reused.
    #[field(example = "1")]
    id: u32,
    /// Unique name.
    #[field(required, chars_max = 512, example = "VLC")]
    name: String,
    /// Value of the header `User-Agent`, unique among all user agents. Empty for users who are not admins.
    #[field(required, chars_max = 512, example = "VLC/3.0.21 LibVLC/3.0.21")]
    user_agent: String,
    /// A note for admins; empty for other users.
    #[field(edit, blank, chars_max = 255)]
    description: String,
    /// An inactive user agent is not used, also where a setting refers to it.
    #[field(edit)]
    is_active: bool,
    /// Time of creation.
    created_at: Time,
    /// Time of the last change.
    updated_at: Time,
}

const LIST: &str = "/api/core/useragents/";
const ONE: &str = "/api/core/useragents/{id}/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, STANDARD, "Lists user agents.", list),
        Route::post(LIST, ADMIN, "Creates a user agent.", create),
        Route::get(ONE, STANDARD, "Returns a user agent.", retrieve),
        Route::put(ONE, ADMIN, "Updates a user agent.", update),
        Route::patch(ONE, ADMIN, "Partially updates a user agent.", update),
        Route::delete(ONE, ADMIN, "Deletes a user agent that is not the default.", delete)
            .refuses(StatusCode::BAD_REQUEST, "The user agent is the default."),
    ]
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<UserAgentView>, Refusal> {
    let agents = call.rest().models.user_agents.load();
    paging.render(&call, &agents.iter().collect::<Vec<_>>())
}

async fn retrieve(call: Call) -> Result<UserAgentView, Refusal> {
    call.retrieve(&call.rest().models.user_agents.load())
}

async fn create(call: Call, new: NewUserAgent) -> Result<Created<UserAgentView>, Refusal> {
    call.create(|_, id| {
        let now = now_ms();
        let mut agent = UserAgent {
            id,
            name: String::new(),
            user_agent: String::new(),
            description: String::new(),
            is_active: true,
            created_at: now,
            updated_at: now,
        };
        UserAgentEdit::from(new).apply(&mut agent)?;
        Ok(agent)
    })
    .await
}

async fn update(call: Call, edit: UserAgentEdit) -> Result<UserAgentView, Refusal> {
    call.update(|_, agent: &mut UserAgent| {
        agent.updated_at = now_ms();
        Ok(edit.apply(agent)?)
    })
    .await
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    const IS_DEFAULT: &str = "The default user agent cannot be deleted; choose another default first.";
    call.delete(|write, agent: &UserAgent| {
        let settings = write.by::<CoreSetting>("key", STREAM_SETTINGS)?;
        let is_default = settings.iter().any(|it| default_user_agent(Some(&it.value)) == Some(agent.id));
        refuse_if(is_default, IS_DEFAULT)
    })
    .await
}

impl UserAgentEdit {
    /// Applies the edit and checks the result.
    fn apply(self, agent: &mut UserAgent) -> Result<(), FieldErrors> {
        set_fields!(agent from self: name, user_agent, description, is_active);
        match HeaderValue::from_str(&agent.user_agent) {
            Ok(_) => Ok(()),
            Err(_) => Err(FieldErrors::new("user_agent", "This is not a valid header value.")),
        }
    }
}

impl Render for UserAgent {
    type View = UserAgentView;
    type Lookup = IsAdmin;

    fn view(&self, is_admin: &IsAdmin) -> UserAgentView {
        let for_admins = |text: &String| if is_admin.0 { text.clone() } else { String::new() };
        view_from!(UserAgentView from self {
            id, name, is_active, created_at, updated_at;
            user_agent: for_admins(&self.user_agent),
            description: for_admins(&self.description),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::Rest;

    #[tokio::test]
    async fn a_user_agent_is_created_changed_and_deleted_unless_it_is_the_default() {
        let rest = Rest::start().await;
        let new = json!({ "name": "Test UA", "user_agent": "TestUA/1.0" });
        let made = rest.admin("POST", LIST, new.clone()).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let id = made.body["id"].as_u64().unwrap();
        let one = format!("{LIST}{id}/");
        assert_eq!((&made.body["description"], &made.body["is_active"]), (&json!(""), &json!(true)));
        assert_eq!(rest.admin("GET", LIST, Value::Null).await.body["results"], json!([made.body]));
        // Some providers recognise their customers by the user agent.
        for path in [LIST, one.as_str()] {
            let seen = rest.standard("GET", path, Value::Null).await;
            assert!(seen.status == 200 && seen.text.contains("Test UA"), "{}", seen.text);
            assert!(!seen.text.contains("TestUA/1.0"), "{}", seen.text);
        }
        assert_eq!(rest.standard("POST", LIST, new.clone()).await.status, 403);

        let twice = rest.admin("POST", LIST, new).await;
        assert_eq!(twice.status, 400, "{}", twice.text);
        let invalid = rest.admin("PATCH", &one, json!({ "user_agent": "a\nb" })).await;
        assert_eq!(invalid.body, json!({ "user_agent": ["This is not a valid header value."] }));
        let changed = rest.admin("PATCH", &one, json!({ "description": "for one provider" })).await;
        assert_eq!((changed.status, &changed.body["user_agent"]), (200, &json!("TestUA/1.0")));

        let settings = "/api/core/settings/2/";
        let default = json!({ "value": { "default_user_agent": id } });
        assert_eq!(rest.admin("PATCH", settings, default).await.status, 200);
        assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 400);
        let none = json!({ "value": { "default_user_agent": null } });
        assert_eq!(rest.admin("PATCH", settings, none).await.status, 200);
        assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 204);
        assert_eq!(rest.standard("GET", &one, Value::Null).await.status, 404);
    }
}
