//! `/api/core/streamprofiles/`: named ways to hand streams on.

use domain::channel::Channel;
use domain::core_settings::{STREAM_SETTINGS, default_stream_profile};
use domain::ids::StreamProfileId;
use domain::setting::Setting;
use domain::stream::Stream;
use domain::stream_profile::{self, Delivery};
use http::{HeaderValue, StatusCode};
use storage::Write;

use crate::http::reply::Refusal;
use crate::rest::call::{Call, find};
use crate::rest::input::FieldErrors;
use crate::rest::list::{Page, WholeOrPages};
use crate::rest::record::record;
use crate::rest::route::{ADMIN, Created, Done, Route, STANDARD};
use crate::rest::value::{Named, choice};

record! {
    /// A stream profile: a named way to hand streams on, which streams and channels refer to.
    StreamProfile / StreamProfileEdit {
        read {
            /// Given by the gateway; never given again.
            id: StreamProfileId [example("1")],
            /// One that every gateway has; it can be neither changed nor deleted.
            locked: bool,
        }
        edit {
            /// Unique over all stream profiles.
            name: String [required(), chars_max(255), example("Proxy")],
            /// What viewers get: the stream through the gateway, or the address of the provider.
            delivery: Named<Delivery> [example("proxy")],
            /// Always empty: no program is run for a stream.
            command: String [blank(), chars_max(255), example("")],
            /// Always empty, as is the command.
            parameters: String [blank(), example("")],
            /// Streams and channels that refer to an inactive one are handed on as if they referred to none.
            is_active: bool,
            /// Sent to the provider in place of what account and stream say.
            user_agent: Option<String> [blank(), chars_max(512), example("VLC/3.0.20")],
        }
    }
}

choice!(Delivery { Proxy = "proxy", Redirect = "redirect" });

const LIST: &str = "/api/core/streamprofiles/";
const ONE: &str = "/api/core/streamprofiles/{id}/";

pub(super) fn routes() -> Vec<Route> {
    const LOCKED: &str = "The stream profile is one that every gateway has.";
    vec![
        Route::get(LIST, STANDARD, "Lists stream profiles.", list),
        Route::post(LIST, ADMIN, "Makes a stream profile.", create),
        Route::get(ONE, STANDARD, "Shows a stream profile.", retrieve),
        Route::put(ONE, ADMIN, "Changes a stream profile.", update).refuses(StatusCode::BAD_REQUEST, LOCKED),
        Route::patch(ONE, ADMIN, "Changes a stream profile.", update)
            .refuses(StatusCode::BAD_REQUEST, LOCKED),
        Route::delete(ONE, ADMIN, "Deletes a stream profile that nothing refers to.", remove)
            .refuses(StatusCode::BAD_REQUEST, LOCKED)
            .refuses(StatusCode::BAD_REQUEST, "A channel, a stream or a setting refers to it."),
    ]
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<StreamProfile>, Refusal> {
    let profiles = call.parts.models.stream_profiles.load();
    let profiles: Vec<_> = profiles.iter().collect();
    paging.of(&call, &profiles, |it| view(it))
}

async fn retrieve(call: Call) -> Result<StreamProfile, Refusal> {
    let profiles = call.parts.models.stream_profiles.load();
    let profile = profiles.get(call.id()?).ok_or_else(Refusal::unknown::<stream_profile::StreamProfile>)?;
    Ok(view(profile))
}

async fn create(call: Call, edit: StreamProfileEdit) -> Result<Created<StreamProfile>, Refusal> {
    let profile = call
        .write(move |write| {
            let mut profile = stream_profile::StreamProfile {
                id: StreamProfileId(write.next_id::<stream_profile::StreamProfile>()?),
                name: String::new(),
                delivery: Delivery::Proxy,
                user_agent: None,
                is_active: true,
                locked: false,
            };
            edit.apply(&mut profile)?;
            write.put(&profile)?;
            Ok(profile)
        })
        .await?;
    Ok(Created(view(&profile)))
}

async fn update(call: Call, edit: StreamProfileEdit) -> Result<StreamProfile, Refusal> {
    let id = call.id()?;
    let profile = call
        .write(move |write| {
            let mut profile = find_unlocked(write, id)?;
            edit.apply(&mut profile)?;
            write.put(&profile)?;
            Ok(profile)
        })
        .await?;
    Ok(view(&profile))
}

async fn remove(call: Call) -> Result<Done, Refusal> {
    let id = call.id()?;
    call.write(move |write| {
        let profile = find_unlocked(write, id)?;
        if let Some(user) = user_of(write, profile.id)? {
            return Err(Refusal::bad_request(format!("A stream profile that {user} cannot be deleted.")));
        }
        write.remove::<stream_profile::StreamProfile>(id)?;
        Ok(Done)
    })
    .await
}

fn find_unlocked(write: &Write<'_>, id: u32) -> Result<stream_profile::StreamProfile, Refusal> {
    let profile: stream_profile::StreamProfile = find(write, id)?;
    match profile.locked {
        true => Err(Refusal::bad_request("A built-in stream profile cannot be changed or deleted.")),
        false => Ok(profile),
    }
}

/// What refers to a stream profile, in words.
fn user_of(write: &Write<'_>, id: StreamProfileId) -> Result<Option<&'static str>, Refusal> {
    let value = id.0.to_be_bytes();
    let setting = write.by::<Setting>("key", STREAM_SETTINGS)?;
    Ok(if !write.by::<Channel>("stream_profile", value)?.is_empty() {
        Some("channels refer to")
    } else if !write.by::<Stream>("stream_profile", value)?.is_empty() {
        Some("streams refer to")
    } else if setting.iter().any(|it| default_stream_profile(Some(&it.value)) == Some(id)) {
        Some("is the default")
    } else {
        None
    })
}

impl StreamProfileEdit {
    /// What was sent goes over what is there.
    fn apply(self, profile: &mut stream_profile::StreamProfile) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        for (field, text) in [("command", self.command), ("parameters", self.parameters)] {
            if text.is_some_and(|it| !it.is_empty()) {
                errors.add(field, "No program is run for a stream; leave this field empty.");
            }
        }
        if let Some(agent) = self.user_agent {
            profile.user_agent = agent.filter(|it| !it.is_empty());
        }
        if profile.user_agent.as_deref().is_some_and(|it| HeaderValue::from_str(it).is_err()) {
            errors.add("user_agent", "This cannot be sent in a header.");
        }
        profile.name = self.name.unwrap_or_else(|| std::mem::take(&mut profile.name));
        profile.delivery = self.delivery.map_or(profile.delivery, |it| it.0);
        profile.is_active = self.is_active.unwrap_or(profile.is_active);
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

fn view(profile: &stream_profile::StreamProfile) -> StreamProfile {
    StreamProfile {
        id: profile.id,
        locked: profile.locked,
        name: profile.name.clone(),
        delivery: Named(profile.delivery),
        command: String::new(),
        parameters: String::new(),
        is_active: profile.is_active,
        user_agent: profile.user_agent.clone(),
    }
}

#[cfg(test)]
mod tests {
    use domain::ids::ChannelId;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::rest::testing::Rest;

    async fn make(rest: &Rest, body: Value) -> u32 {
        let made = rest.admin("POST", LIST, body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        u32::try_from(made.body["id"].as_u64().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_stream_profile_is_made_changed_and_deleted() {
        let rest = Rest::start().await;
        let id = make(&rest, json!({ "name": "Mine", "delivery": "redirect", "user_agent": "VLC" })).await;
        let one = format!("{LIST}{id}/");
        let changed = rest.admin("PATCH", &one, json!({ "user_agent": null, "is_active": false })).await;
        let shown = json!({
            "id": id, "locked": false, "name": "Mine", "delivery": "redirect", "command": "", "parameters": "",
            "is_active": false, "user_agent": null,
        });
        assert_eq!((changed.status, &changed.body), (200, &shown));
        assert_eq!(rest.standard("GET", &one, Value::Null).await.body, shown);
        assert_eq!(rest.standard("GET", LIST, Value::Null).await.body["count"], 3);
        assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 204);
        assert_eq!(rest.standard("GET", &one, Value::Null).await.status, 404);
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
    async fn a_command_is_refused_because_it_would_not_be_run() {
        let rest = Rest::start().await;
        let body =
            json!({ "name": "ffmpeg", "command": "ffmpeg", "parameters": "-i {url}", "user_agent": "a\nb" });
        let refused = rest.admin("POST", LIST, body).await;
        let fields: Vec<_> = refused.body.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!((refused.status, fields), (400, vec!["command", "parameters", "user_agent"]));
        make(&rest, json!({ "name": "none", "command": "", "parameters": "" })).await;
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
