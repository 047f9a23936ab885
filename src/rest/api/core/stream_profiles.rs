//! `/api/core/streamprofiles/`: named ways to hand streams on.

use domain::channel::Channel;
use domain::core_settings::{STREAM_SETTINGS, default_stream_profile};
use domain::ids::StreamProfileId;
use domain::setting::CoreSetting;
use domain::stream::Stream;
use domain::stream_profile::{self, Delivery};
use http::{HeaderValue, StatusCode};
use storage::Write;

use crate::http::reply::Refusal;
use crate::rest::frame::call::{Call, find};
use crate::rest::frame::input::FieldErrors;
use crate::rest::frame::list::{Page, WholeOrPages};
use crate::rest::frame::record::record;
use crate::rest::frame::route::{ADMIN, Created, Done, Route, STANDARD};
use crate::rest::frame::value::{Named, choice};

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
            /// What viewers get: the stream through the gateway, the address of the provider, or what a program makes of
            /// the stream. `command` when a command is sent and this is not.
            delivery: Named<Delivery> [example("proxy")],
            /// The program that reads the stream: a name that is looked for in `PATH`, or an absolute path. Empty unless
            /// `delivery` is `command`.
            command: String [blank(), chars_max(255), example("ffmpeg")],
            /// The program's arguments, split at blanks as a shell does it, with quotes and backslashes; no shell is
            /// involved. `{streamUrl}`, `{userAgent}` and `{channelId}` stand for what they say, and stay one argument
            /// each. The program writes a transport stream to its standard output.
            parameters: String [blank(), chars_max(4096), example("-i {streamUrl} -c copy -f mpegts pipe:1")],
            /// Streams and channels that refer to an inactive one are handed on as if they referred to none.
            is_active: bool,
            /// Sent to the provider in place of what account and stream say.
            user_agent: Option<String> [blank(), chars_max(512), example("VLC/3.0.20")],
        }
    }
}

choice!(Delivery { Proxy = "proxy", Redirect = "redirect", Command = "command" });

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
    let profiles = call.app.models.stream_profiles.load();
    let profiles: Vec<_> = profiles.iter().collect();
    paging.of(&call, &profiles, |it| view(it))
}

async fn retrieve(call: Call) -> Result<StreamProfile, Refusal> {
    let profiles = call.app.models.stream_profiles.load();
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
                command: String::new(),
                parameters: String::new(),
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
    let setting = write.by::<CoreSetting>("key", STREAM_SETTINGS)?;
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
        let meant = match (&self.delivery, self.command.as_deref(), profile.delivery) {
            (Some(delivery), ..) => delivery.0,
            (None, Some(command), _) if !command.is_empty() => Delivery::Command,
            (None, Some(_), Delivery::Command) => Delivery::Proxy,
            (None, _, delivery) => delivery,
        };
        // Leaving the program behind takes its command along, where nothing else is said of it.
        if meant != Delivery::Command && profile.delivery == Delivery::Command {
            profile.command.clear();
            profile.parameters.clear();
        }
        profile.delivery = meant;
        profile.command = self.command.unwrap_or_else(|| std::mem::take(&mut profile.command));
        profile.parameters = self.parameters.unwrap_or_else(|| std::mem::take(&mut profile.parameters));
        if let Some(Err(wrong)) = profile.template() {
            errors.add(wrong.field, wrong.reason);
        }
        for (field, text) in [("command", &profile.command), ("parameters", &profile.parameters)] {
            if meant != Delivery::Command && !text.is_empty() {
                errors.add(field, "Only delivery by a command runs a program; leave this field empty.");
            }
        }
        if let Some(agent) = self.user_agent {
            profile.user_agent = agent.filter(|it| !it.is_empty());
        }
        if profile.user_agent.as_deref().is_some_and(|it| HeaderValue::from_str(it).is_err()) {
            errors.add("user_agent", "This cannot be sent in a header.");
        }
        profile.name = self.name.unwrap_or_else(|| std::mem::take(&mut profile.name));
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
        command: profile.command.clone(),
        parameters: profile.parameters.clone(),
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
    use crate::rest::frame::testing::Rest;

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
        assert_eq!(rest.standard("GET", LIST, Value::Null).await.body["count"], 6);
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
    async fn a_command_is_kept_as_it_was_written() {
        let rest = Rest::start().await;
        let parameters = "-i {streamUrl} 'a b' -f mpegts pipe:1";
        let id = make(&rest, json!({ "name": "x", "command": "ffmpeg", "parameters": parameters })).await;
        let one = format!("{LIST}{id}/");
        let of = |body: &Value| json!([body["delivery"], body["command"], body["parameters"]]);
        let shown = rest.standard("GET", &one, Value::Null).await.body;
        assert_eq!(of(&shown), json!(["command", "ffmpeg", parameters]));
        let renamed = rest.admin("PATCH", &one, json!({ "name": "y" })).await;
        assert_eq!(of(&renamed.body), of(&shown), "{}", renamed.text);
        let proxied = rest.admin("PATCH", &one, json!({ "delivery": "proxy" })).await;
        assert_eq!(of(&proxied.body), json!(["proxy", "", ""]), "{}", proxied.text);
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
