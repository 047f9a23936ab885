//! `/api/core/outputprofiles/`: what is changed in streams for some clients.

use domain::core_settings::{STREAM_SETTINGS, default_output_profile};
use domain::ids::{OutputProfileId, StreamProfileId};
use domain::output_profile::{Container, LEFT_OUT_PIDS_MAX, LeftOutKind, OUTPUT_PROFILES_MAX, OutputProfile};
use domain::pattern::Pattern;
use domain::setting::CoreSetting;
use domain::stream_profile::{Delivery, StreamProfile};
use http::StatusCode;
use resource_derive::View;
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use serde::Serialize;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;

use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};
use crate::record::{IsAdmin, RecordCall, Render, refuse_if, set, set_fields, view_from};

/// An output profile: what is changed in a stream for some clients. All clients of a channel with the same profile share
/// one changed stream.
#[derive(Clone, Debug, Serialize, View)]
#[resource(new = NewOutputProfile, edit = OutputProfileEdit)]
pub(crate) struct OutputProfileView {
    /// Assigned by the gateway and never reused.
    #[field(example = "1")]
    id: OutputProfileId,
    /// Always `false`: no output profile is built in.
    locked: bool,
    /// Unique name.
    #[field(required, chars_max = 255, example = "Living room")]
    name: String,
    /// Container of the stream. Only `mpegts` exists in this version.
    #[field(edit, example = "mpegts")]
    container: Named<Container>,
    /// Packet identifiers (PIDs) of elementary streams that are left out.
    #[field(edit, at_least = 16, at_most = 8190, items_max = LEFT_OUT_PIDS_MAX, example = "[4130]")]
    left_out_pids: Vec<u16>,
    /// Elementary streams of these kinds are left out. A stream of which nothing would remain is sent as it is.
    #[field(edit, items_max = 5)]
    left_out_kinds: Vec<Named<LeftOutKind>>,
    /// The stream profile whose program converts the stream; its delivery must be `command`.
    #[field(edit, example = "4")]
    stream_profile: Option<StreamProfileId>,
    /// The program that converts the stream, instead of that of a stream profile: a name to find in `PATH`, or an
    /// absolute path. It reads a transport stream from its standard input and writes one to its standard output.
    #[field(edit, blank, chars_max = 255, example = "ffmpeg")]
    command: String,
    /// Arguments of the program, as in a stream profile; `{streamUrl}` is replaced by `pipe:0`. Visible to admins only.
    #[field(edit, blank, chars_max = 4096, example = "-i pipe:0 -c:v libx264 -c:a aac -f mpegts pipe:1")]
    parameters: String,
    /// A regular expression. Clients whose user agent it matches get this profile, unless the address or the user names
    /// another one. Empty matches no client.
    #[field(edit, blank, chars_max = 255, example = "Kodi|VLC")]
    user_agent_pattern: String,
    /// The patterns of profiles are tried in this order.
    #[field(edit, example = "0")]
    position: u32,
    /// Clients get no inactive profile.
    #[field(edit)]
    is_active: bool,
}

choice!(Container { Mpegts = "mpegts" });
choice!(LeftOutKind {
    Video = "video",
    Audio = "audio",
    Subtitles = "subtitles",
    Teletext = "teletext",
    Data = "data",
});

const LIST: &str = "/api/core/outputprofiles/";
const ONE: &str = "/api/core/outputprofiles/{id}/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, STANDARD, "Lists output profiles.", list),
        Route::post(LIST, ADMIN, "Creates an output profile.", create)
            .refuses(StatusCode::BAD_REQUEST, "There are too many output profiles."),
        Route::get(ONE, STANDARD, "Returns an output profile.", retrieve),
        Route::put(ONE, ADMIN, "Updates an output profile.", update),
        Route::patch(ONE, ADMIN, "Partially updates an output profile.", update),
        Route::delete(ONE, ADMIN, "Deletes an output profile that is not the default.", delete)
            .refuses(StatusCode::BAD_REQUEST, "The output profile is the default."),
    ]
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<OutputProfileView>, Refusal> {
    let profiles = call.rest().models.output_profiles.load();
    paging.render(&call, &profiles.iter().collect::<Vec<_>>())
}

async fn retrieve(call: Call) -> Result<OutputProfileView, Refusal> {
    call.retrieve(&call.rest().models.output_profiles.load())
}

async fn create(call: Call, new: NewOutputProfile) -> Result<Created<OutputProfileView>, Refusal> {
    call.create(|write, id| {
        let is_full = write.all::<OutputProfile>()?.len() >= OUTPUT_PROFILES_MAX;
        refuse_if(is_full, "There are too many output profiles; delete some first.")?;
        let mut profile = OutputProfile::new(OutputProfileId(id), String::new());
        OutputProfileEdit::from(new).apply(write, &mut profile)?;
        Ok(profile)
    })
    .await
}

async fn update(call: Call, edit: OutputProfileEdit) -> Result<OutputProfileView, Refusal> {
    call.update(|write, profile: &mut OutputProfile| edit.apply(write, profile)).await
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    const IS_DEFAULT: &str = "The default output profile cannot be deleted; choose another default first.";
    call.delete(|write, profile: &OutputProfile| {
        let settings = write.by::<CoreSetting>("key", STREAM_SETTINGS)?;
        let is_default =
            settings.iter().any(|it| default_output_profile(Some(&it.value)) == Some(profile.id));
        refuse_if(is_default, IS_DEFAULT)
    })
    .await
}

impl OutputProfileEdit {
    /// Applies the edit and checks the result.
    fn apply(self, write: &Write<'_>, profile: &mut OutputProfile) -> Result<(), Refusal> {
        let mut errors = FieldErrors::default();
        set_fields!(profile from self: name, container, left_out_pids);
        let kinds = self.left_out_kinds.map(|it| it.into_iter().map(|it| it.0).collect());
        set(&mut profile.left_out_kinds, kinds);
        set_fields!(profile from self:
            stream_profile, command, parameters, user_agent_pattern, position, is_active
        );
        if let Some(id) = profile.stream_profile {
            match write.get::<StreamProfile>(id.0)? {
                None => return Err(Refusal::no_such("stream_profile", id)),
                Some(it) if it.delivery != Delivery::Command => {
                    errors.add("stream_profile", "The delivery of the stream profile must be command.");
                }
                Some(_) => {}
            }
            if !profile.command.is_empty() {
                errors.add("command", "Leave this field empty if the profile has a stream profile.");
            }
        }
        match profile.template() {
            Some(Err(wrong)) => errors.add(wrong.field, wrong.reason),
            None if !profile.parameters.is_empty() => errors.add("parameters", "These need a command."),
            _ => {}
        }
        let pattern = &profile.user_agent_pattern;
        if let Some(error) =
            Some(pattern).filter(|it| !it.is_empty()).and_then(|it| Pattern::new(it, "").err())
        {
            errors.add("user_agent_pattern", error.to_string());
        }
        Ok(errors.or(())?)
    }
}

impl Render for OutputProfile {
    type View = OutputProfileView;
    type Lookup = IsAdmin;

    fn view(&self, is_admin: &IsAdmin) -> OutputProfileView {
        view_from!(OutputProfileView from self {
            id, name, container, left_out_pids, left_out_kinds, stream_profile, command, user_agent_pattern,
            position, is_active;
            locked: false,
            parameters: if is_admin.0 { self.parameters.clone() } else { String::new() },
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Rest, SECRET};

    #[tokio::test]
    async fn an_output_profile_is_created_updated_and_deleted() {
        let rest = Rest::start().await;
        let new = json!({
            "name": "Kodi", "left_out_pids": [4130, 256, 256], "left_out_kinds": ["teletext", "data"],
            "stream_profile": 4, "user_agent_pattern": "Kodi", "position": 2,
        });
        let made = rest.admin("POST", LIST, new.clone()).await;
        let shown = json!({
            "id": 1, "locked": false, "name": "Kodi", "container": "mpegts", "left_out_pids": [256, 4130],
            "left_out_kinds": ["teletext", "data"], "stream_profile": 4, "command": "", "parameters": "",
            "user_agent_pattern": "Kodi", "position": 2, "is_active": true,
        });
        assert_eq!((made.status, &made.body), (201, &shown), "{}", made.text);
        assert_eq!(rest.admin("POST", LIST, new).await.status, 400, "the name is unique");
        let one = format!("{LIST}1/");
        let changed = rest.admin("PATCH", &one, json!({ "stream_profile": null, "is_active": false })).await;
        let now = (&changed.body["stream_profile"], &changed.body["is_active"], &changed.body["position"]);
        assert_eq!((changed.status, now), (200, (&json!(null), &json!(false), &json!(2))));
        assert_eq!(rest.standard("GET", LIST, Value::Null).await.body["count"], 1);
        assert_eq!(rest.streamer("GET", LIST, Value::Null).await.status, 403);
        assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 204);
        assert_eq!(rest.standard("GET", &one, Value::Null).await.status, 404);
    }

    #[tokio::test]
    async fn a_profile_with_a_command_of_its_own_shows_its_arguments_to_admins_only() {
        let rest = Rest::start().await;
        let parameters = format!("-i pipe:0 -metadata title={SECRET} -f mpegts pipe:1");
        let new = json!({ "name": "Own", "command": "ffmpeg", "parameters": parameters });
        let made = rest.admin("POST", LIST, new).await;
        assert_eq!((made.status, &made.body["parameters"]), (201, &json!(parameters)), "{}", made.text);
        let others = rest.standard("GET", &format!("{LIST}1/"), Value::Null).await;
        assert_eq!((&others.body["command"], &others.body["parameters"]), (&json!("ffmpeg"), &json!("")));
    }

    #[tokio::test]
    async fn an_invalid_output_profile_is_refused_with_its_fields() {
        let rest = Rest::start().await;
        for (body, fields) in [
            (json!({ "container": "fmp4" }), "container"),
            (json!({ "left_out_pids": [0] }), "left_out_pids"),
            (json!({ "left_out_pids": [8191] }), "left_out_pids"),
            (json!({ "left_out_kinds": ["smell"] }), "left_out_kinds"),
            (json!({ "stream_profile": 99 }), "stream_profile"),
            (json!({ "stream_profile": 1 }), "stream_profile"),
            (json!({ "stream_profile": 4, "command": "ffmpeg" }), "command"),
            (json!({ "parameters": "-i pipe:0" }), "parameters"),
            (json!({ "command": "bin/x" }), "command"),
            (
                json!({ "command": "x", "parameters": "{url}", "user_agent_pattern": "(" }),
                "parameters user_agent_pattern",
            ),
        ] {
            let mut with_name = body.clone();
            with_name["name"] = json!("x");
            let refused = rest.admin("POST", LIST, with_name).await;
            let told: Vec<_> = refused.body.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!((refused.status, told.join(" ").as_str()), (400, fields), "{body}: {}", refused.text);
        }
        let refused = rest.admin("POST", LIST, json!({ "name": "x", "container": "hls" })).await;
        assert!(refused.text.contains("mpegts"), "names what exists: {}", refused.text);
        assert!(rest.models.output_profiles.load().is_empty());
    }

    #[tokio::test]
    async fn an_output_profile_in_use_keeps_its_stream_profile_and_the_default_stays() {
        let rest = Rest::start().await;
        let program =
            json!({ "name": "Small", "command": "ffmpeg", "parameters": "-i {streamUrl} -f mpegts pipe:1" });
        let program = rest.admin("POST", "/api/core/streamprofiles/", program).await.body["id"].clone();
        let made = rest.admin("POST", LIST, json!({ "name": "Phone", "stream_profile": program })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let used = rest.admin("DELETE", &format!("/api/core/streamprofiles/{program}/"), Value::Null).await;
        assert!(used.status == 400 && used.text.contains("output profiles refer to it"), "{}", used.text);

        let default = |id: Value| json!({ "value": { "default_output_profile": id } });
        assert_eq!(rest.admin("PATCH", "/api/core/settings/2/", default(json!(1))).await.status, 200);
        assert_eq!(rest.admin("DELETE", &format!("{LIST}1/"), Value::Null).await.status, 400);
        assert_eq!(rest.admin("PATCH", "/api/core/settings/2/", default(Value::Null)).await.status, 200);
        assert_eq!(rest.admin("DELETE", &format!("{LIST}1/"), Value::Null).await.status, 204);
    }

    #[tokio::test]
    async fn the_number_of_output_profiles_is_bounded() {
        let rest = Rest::start().await;
        let n_max = u32::try_from(OUTPUT_PROFILES_MAX).unwrap();
        rest.put((1..=n_max).map(|id| OutputProfile::new(OutputProfileId(id), format!("p{id}")))).await;
        let refused = rest.admin("POST", LIST, json!({ "name": "one more" })).await;
        assert!(refused.status == 400 && refused.text.contains("too many"), "{}", refused.text);
    }
}
