//! `/api/core/streamprofiles/`: the ways to deliver streams.

use domain::account::Account;
use domain::channel::Channel;
use domain::core_settings::{STREAM_SETTINGS, default_stream_profile};
use domain::ids::StreamProfileId;
use domain::output_profile::OutputProfile;
use domain::setting::CoreSetting;
use domain::stream::Stream;
use domain::stream_profile::{Delivery, StreamProfile};
use domain::user_agent::UserAgent;
use http::{HeaderValue, StatusCode};
use resource_derive::View;
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::field::{Field, Kind};
use route_frame::route::{Created, NoContent, Route};
use route_frame::value::{Readable, Shape};
use serde::{Serialize, Serializer};
use serde_json::Value;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;

use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};
use crate::record::{IsAdmin, RecordCall, Render, refuse_if, set, set_text, view_from};

/// A stream profile: a named way to deliver streams, which streams and channels refer to.
#[derive(Clone, Debug, Serialize, View)]
#[resource(new = NewStreamProfile, edit = StreamProfileEdit)]
pub(crate) struct StreamProfileView {
    /// Assigned by the gateway and never reused.
    #[field(example = "1")]
    id: StreamProfileId,
    /// Built-in profiles cannot be changed or deleted.
    locked: bool,
    /// Unique name.
    #[field(required, chars_max = 255, example = "Proxy")]
    name: String,
    /// How viewers get the stream: through the gateway, by a redirect to the provider, or from the output of a program.
    /// Defaults to `command` if only `command` is sent.
    #[field(edit, example = "proxy")]
    delivery: Named<Delivery>,
    /// The program that reads the stream: a name to find in `PATH`, or an absolute path. Empty unless `delivery` is
    /// `command`.
    #[field(edit, blank, chars_max = 255, example = "ffmpeg")]
    command: String,
    /// Arguments of the program, split at white space like in a shell, with quotes and backslashes. No shell runs.
    /// `{streamUrl}`, `{userAgent}`, `{channelId}` and `{protocols}` are replaced, and each remains one argument. The
    /// program must write a transport stream to its standard output. Visible to admins only, because arguments may
    /// contain credentials of a provider.
    #[field(edit, blank, chars_max = 4096, example = "-i {streamUrl} -c copy -f mpegts pipe:1")]
    parameters: String,
    /// Streams and channels ignore an inactive profile.
    #[field(edit)]
    is_active: bool,
    /// User agent for the provider; overrides those of account and stream. Visible to admins only. Bodies may also have
    /// the id of a user agent, whose present text is stored.
    #[field(edit, blank, chars_max = 512, example = "VLC/3.0.20")]
    user_agent: Option<AgentText>,
    /// Whether viewers without a login are redirected as well, such as tuners on the local network; only with the delivery
    /// `redirect`, and the one setting of a built-in profile that can be changed. Attention: the address of the provider,
    /// which often contains the login of the account, becomes visible to every such viewer. Otherwise they get 401.
    #[field(edit, example = "false")]
    redirect_without_login: bool,
}

/// The text of a user agent or, in bodies, the id of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AgentText {
    Text(String),
    Id(u32),
}

impl Shape for AgentText {
    const KIND: Kind = Kind::Either(&[Kind::Text, Kind::Integer]);
}

impl Readable for AgentText {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        match value {
            Value::Number(_) => u32::read(value, field).map(Self::Id),
            _ => String::read(value, field).map(Self::Text),
        }
    }
}

impl Serialize for AgentText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Id(id) => serializer.serialize_u32(*id),
        }
    }
}

impl AgentText {
    fn resolve(self, write: &Write<'_>) -> Result<String, Refusal> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Id(id) => {
                let agent = write.get::<UserAgent>(id)?;
                agent.map(|it| it.user_agent).ok_or_else(|| Refusal::no_such("user_agent", id))
            }
        }
    }
}

choice!(Delivery { Proxy = "proxy", Redirect = "redirect", Command = "command" });

const LIST: &str = "/api/core/streamprofiles/";
const ONE: &str = "/api/core/streamprofiles/{id}/";

pub(super) fn routes() -> Vec<Route> {
    const IS_LOCKED: &str = "The stream profile is built in.";
    vec![
        Route::get(LIST, STANDARD, "Lists stream profiles.", list),
        Route::post(LIST, ADMIN, "Creates a stream profile.", create),
        Route::get(ONE, STANDARD, "Returns a stream profile.", retrieve),
        Route::put(ONE, ADMIN, "Updates a stream profile.", update)
            .refuses(StatusCode::BAD_REQUEST, IS_LOCKED),
        Route::patch(ONE, ADMIN, "Partially updates a stream profile.", update)
            .refuses(StatusCode::BAD_REQUEST, IS_LOCKED),
        Route::delete(ONE, ADMIN, "Deletes a stream profile that is not in use.", delete)
            .refuses(StatusCode::BAD_REQUEST, IS_LOCKED)
            .refuses(
                StatusCode::BAD_REQUEST,
                "A channel, a stream, an output profile or a setting refers to the stream profile.",
            ),
    ]
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<StreamProfileView>, Refusal> {
    let profiles = call.rest().models.stream_profiles.load();
    paging.render(&call, &profiles.iter().collect::<Vec<_>>())
}

async fn retrieve(call: Call) -> Result<StreamProfileView, Refusal> {
    call.retrieve(&call.rest().models.stream_profiles.load())
}

async fn create(call: Call, new: NewStreamProfile) -> Result<Created<StreamProfileView>, Refusal> {
    call.create(|write, id| {
        let mut profile = StreamProfile {
            id: StreamProfileId(id),
            name: String::new(),
            delivery: Delivery::Proxy,
            command: String::new(),
            parameters: String::new(),
            user_agent: None,
            is_active: true,
            locked: false,
            redirect_without_login: false,
        };
        StreamProfileEdit::from(new).apply(write, &mut profile)?;
        Ok(profile)
    })
    .await
}

async fn update(call: Call, edit: StreamProfileEdit) -> Result<StreamProfileView, Refusal> {
    call.update(|write, profile: &mut StreamProfile| {
        refuse_if(profile.locked && !edit.keeps_built_in(), LOCKED)?;
        edit.apply(write, profile)
    })
    .await
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    call.delete(|write, profile: &StreamProfile| {
        refuse_if(profile.locked, LOCKED)?;
        match user_of(write, profile.id)? {
            Some(user) => Err(Refusal::bad_request(format!("The stream profile is in use: {user}."))),
            None => Ok(()),
        }
    })
    .await
}

const LOCKED: &str =
    "A built-in stream profile cannot be changed or deleted, apart from its setting redirect_without_login.";

/// Returns what refers to a stream profile.
fn user_of(write: &Write<'_>, id: StreamProfileId) -> Result<Option<&'static str>, Refusal> {
    let value = id.0.to_be_bytes();
    let setting = write.by::<CoreSetting>("key", STREAM_SETTINGS)?;
    Ok(if !write.by::<Channel>("stream_profile", value)?.is_empty() {
        Some("channels refer to it")
    } else if !write.by::<Stream>("stream_profile", value)?.is_empty() {
        Some("streams refer to it")
    } else if write.all::<Account>()?.iter().any(|it| it.stream_profile == Some(id)) {
        Some("accounts refer to it")
    } else if !write.by::<OutputProfile>("stream_profile", value)?.is_empty() {
        Some("output profiles refer to it")
    } else if setting.iter().any(|it| default_stream_profile(Some(&it.value)) == Some(id)) {
        Some("it is the default")
    } else {
        None
    })
}

impl StreamProfileEdit {
    /// Returns whether the edit changes only what can be changed of a built-in profile.
    fn keeps_built_in(&self) -> bool {
        let Self {
            name: None,
            delivery: None,
            command: None,
            parameters: None,
            is_active: None,
            user_agent: None,
            redirect_without_login: Some(_),
        } = self
        else {
            return false;
        };
        true
    }

    /// Applies the edit and checks the result.
    fn apply(self, write: &Write<'_>, profile: &mut StreamProfile) -> Result<(), Refusal> {
        let user_agent = match self.user_agent {
            Some(Some(agent)) => Some(Some(agent.resolve(write)?)),
            Some(None) => Some(None),
            None => None,
        };
        let mut errors = FieldErrors::default();
        let meant = match (&self.delivery, self.command.as_deref(), profile.delivery) {
            (Some(delivery), ..) => delivery.0,
            (None, Some(command), _) if !command.is_empty() => Delivery::Command,
            (None, Some(_), Delivery::Command) => Delivery::Proxy,
            (None, _, delivery) => delivery,
        };
        // Another delivery clears the command, unless the client sent one.
        if meant != Delivery::Command && profile.delivery == Delivery::Command {
            profile.command.clear();
            profile.parameters.clear();
        }
        profile.delivery = meant;
        set(&mut profile.command, self.command);
        set(&mut profile.parameters, self.parameters);
        if let Some(Err(wrong)) = profile.template() {
            errors.add(wrong.field, wrong.reason);
        }
        for (field, text) in [("command", &profile.command), ("parameters", &profile.parameters)] {
            if meant != Delivery::Command && !text.is_empty() {
                errors.add(field, "Leave this field empty unless delivery is command.");
            }
        }
        set_text(&mut profile.user_agent, user_agent);
        if profile.user_agent.as_deref().is_some_and(|it| HeaderValue::from_str(it).is_err()) {
            errors.add("user_agent", "This is not a valid header value.");
        }
        set(&mut profile.name, self.name);
        set(&mut profile.is_active, self.is_active);
        // Another delivery clears it, unless the client sent it.
        profile.redirect_without_login &= meant == Delivery::Redirect;
        set(&mut profile.redirect_without_login, self.redirect_without_login);
        if profile.redirect_without_login && meant != Delivery::Redirect {
            errors.add(
                "redirect_without_login",
                "Only a profile with the delivery redirect can have this setting.",
            );
        }
        Ok(errors.or(())?)
    }
}

impl Render for StreamProfile {
    type View = StreamProfileView;
    type Lookup = IsAdmin;

    fn view(&self, is_admin: &IsAdmin) -> StreamProfileView {
        view_from!(StreamProfileView from self {
            id, locked, name, delivery, command, is_active, redirect_without_login;
            parameters: if is_admin.0 { self.parameters.clone() } else { String::new() },
            user_agent: self.user_agent.clone().filter(|_| is_admin.0).map(AgentText::Text),
        })
    }
}

#[cfg(test)]
mod tests {
    use domain::ids::ChannelId;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::testing::Rest;

    async fn make(rest: &Rest, body: Value) -> u32 {
        let made = rest.admin("POST", LIST, body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        u32::try_from(made.body["id"].as_u64().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_stream_profile_is_created_updated_and_deleted() {
        let rest = Rest::start().await;
        let id = make(&rest, json!({ "name": "Mine", "delivery": "redirect", "user_agent": "VLC" })).await;
        let one = format!("{LIST}{id}/");
        let changed = rest.admin("PATCH", &one, json!({ "user_agent": null, "is_active": false })).await;
        let shown = json!({
            "id": id, "locked": false, "name": "Mine", "delivery": "redirect", "command": "", "parameters": "",
            "is_active": false, "user_agent": null, "redirect_without_login": false,
        });
        assert_eq!((changed.status, &changed.body), (200, &shown));
        assert_eq!(rest.admin("GET", &one, Value::Null).await.body, shown);
        assert_eq!(rest.standard("GET", LIST, Value::Null).await.body["count"], 6);
        assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 204);
        assert_eq!(rest.standard("GET", &one, Value::Null).await.status, 404);
    }

    #[tokio::test]
    async fn a_user_agent_can_be_named_by_its_id() {
        let rest = Rest::start().await;
        let agent = json!({ "name": "TV", "user_agent": "TV/1.0" });
        let id = rest.admin("POST", "/api/core/useragents/", agent).await.body["id"].clone();
        let made = rest.admin("POST", LIST, json!({ "name": "x", "user_agent": id })).await;
        assert_eq!((made.status, &made.body["user_agent"]), (201, &json!("TV/1.0")), "{}", made.text);
        let unknown = rest.admin("POST", LIST, json!({ "name": "y", "user_agent": 99 })).await;
        assert_eq!(
            (unknown.status, unknown.body.get("user_agent").is_some()),
            (400, true),
            "{}",
            unknown.text
        );
    }

    #[tokio::test]
    async fn only_admins_see_the_arguments_and_the_user_agent() {
        let rest = Rest::start().await;
        let parameters = "-headers 'Authorization: Basic c2VjcmV0' -i {streamUrl} -f mpegts pipe:1";
        let secret = json!({ "command": "ffmpeg", "parameters": parameters, "user_agent": "panel/secret", "name": "x" });
        let id = make(&rest, secret).await;
        for path in [format!("{LIST}{id}/"), LIST.to_owned()] {
            assert!(rest.admin("GET", &path, Value::Null).await.text.contains("panel/secret"));
            let shown = rest.standard("GET", &path, Value::Null).await;
            assert_eq!(shown.status, 200);
            assert!(!shown.text.contains("secret") && !shown.text.contains("c2VjcmV0"), "{}", shown.text);
        }
    }

    #[tokio::test]
    async fn a_built_in_stream_profile_cannot_be_changed_or_deleted() {
        let rest = Rest::start().await;
        for (method, body) in [("PUT", json!({ "name": "x" })), ("PATCH", json!({})), ("DELETE", Value::Null)]
        {
            let refused = rest.admin(method, &format!("{LIST}1/"), body).await;
            assert_eq!(refused.status, 400, "{method}");
            assert!(refused.text.contains("built-in"), "{}", refused.text);
        }
    }

    #[tokio::test]
    async fn only_profiles_that_redirect_can_do_so_without_a_login() {
        let rest = Rest::start().await;
        for (method, path, body, status) in [
            ("POST", LIST, json!({ "name": "a", "redirect_without_login": true }), 400),
            (
                "POST",
                LIST,
                json!({ "name": "a", "delivery": "redirect", "redirect_without_login": true }),
                201,
            ),
            ("PATCH", "/api/core/streamprofiles/6/", json!({ "delivery": "proxy" }), 200),
            ("PATCH", "/api/core/streamprofiles/6/", json!({ "redirect_without_login": true }), 400),
            // Built-in profiles: the second one redirects.
            ("PATCH", "/api/core/streamprofiles/1/", json!({ "redirect_without_login": true }), 400),
            ("PATCH", "/api/core/streamprofiles/2/", json!({ "redirect_without_login": true }), 200),
            (
                "PATCH",
                "/api/core/streamprofiles/2/",
                json!({ "redirect_without_login": true, "name": "x" }),
                400,
            ),
            ("PATCH", "/api/core/streamprofiles/2/", json!({ "redirect_without_login": "yes" }), 400),
        ] {
            let answer = rest.admin(method, path, body.clone()).await;
            assert_eq!(answer.status, status, "{method} {path} {body}: {}", answer.text);
        }
        let flags = |id: u32| rest.models.stream_profiles.load().get(id).unwrap().redirect_without_login;
        assert_eq!([1, 2, 6].map(flags), [false, true, false]);
        let standard = json!({ "redirect_without_login": false });
        assert_eq!(rest.standard("PATCH", "/api/core/streamprofiles/2/", standard).await.status, 403);
    }

    #[tokio::test]
    async fn a_command_is_stored_unchanged() {
        let rest = Rest::start().await;
        let parameters = "-i {streamUrl} 'a b' -f mpegts pipe:1";
        let id = make(&rest, json!({ "name": "x", "command": "ffmpeg", "parameters": parameters })).await;
        let one = format!("{LIST}{id}/");
        let delivery = |body: &Value| json!([body["delivery"], body["command"], body["parameters"]]);
        let shown = rest.admin("GET", &one, Value::Null).await.body;
        assert_eq!(delivery(&shown), json!(["command", "ffmpeg", parameters]));
        let renamed = rest.admin("PATCH", &one, json!({ "name": "y" })).await;
        assert_eq!(delivery(&renamed.body), delivery(&shown), "{}", renamed.text);
        let proxied = rest.admin("PATCH", &one, json!({ "delivery": "proxy" })).await;
        assert_eq!(delivery(&proxied.body), json!(["proxy", "", ""]), "{}", proxied.text);
        make(&rest, json!({ "name": "none", "command": "", "parameters": "" })).await;
    }

    #[tokio::test]
    async fn a_command_that_cannot_be_run_is_refused_with_its_field() {
        let rest = Rest::start().await;
        for (body, fields) in [
            (
                json!({ "command": "ffmpeg", "parameters": "-i {url}", "user_agent": "a\nb" }),
                "parameters user_agent",
            ),
            (json!({ "command": "ffmpeg", "parameters": "'a" }), "parameters"),
            (json!({ "command": "bin/x" }), "command"),
            (json!({ "delivery": "command" }), "command"),
            (json!({ "delivery": "proxy", "command": "ffmpeg", "parameters": "x" }), "command parameters"),
            (json!({ "parameters": "x" }), "parameters"),
        ] {
            let mut with_name = body.clone();
            with_name["name"] = json!("x");
            let refused = rest.admin("POST", LIST, with_name).await;
            let told: Vec<_> = refused.body.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!((refused.status, told.join(" ").as_str()), (400, fields), "{body}");
        }
    }

    #[tokio::test]
    async fn a_stream_profile_in_use_is_kept() {
        let rest = Rest::start().await;
        let id = make(&rest, json!({ "name": "Mine" })).await;
        let uuid = Uuid::from_u128(1);
        let profile = Some(StreamProfileId(id));
        rest.put([Channel { stream_profile: profile, ..Channel::new(ChannelId(1), uuid, "one", 0) }]).await;
        let one = format!("{LIST}{id}/");
        let refused = rest.admin("DELETE", &one, Value::Null).await;
        assert_eq!(refused.status, 400);
        assert!(refused.text.contains("channels refer to"), "{}", refused.text);

        rest.put([Channel::new(ChannelId(1), uuid, "one", 0)]).await;
        let body = json!({ "value": { "default_stream_profile": id } });
        assert_eq!(rest.admin("PUT", "/api/core/settings/2/", body).await.status, 200);
        let refused = rest.admin("DELETE", &one, Value::Null).await;
        assert_eq!(refused.status, 400);
        assert!(refused.text.contains("is the default"), "{}", refused.text);
    }
}
