//! `/api/tuner/`: the emulated tuner, and its lineups.

use std::sync::Arc;

use domain::core_settings::TUNER_SETTINGS;
use domain::tuner::{DEVICE_ID_CHARS_MAX, TUNER_NAME_CHARS_MAX, TUNERS_MAX, TunerSettings, device_id_of};
use http::StatusCode;
use resource_derive::View;
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use serde_json::{Map, Value};
use server::reply::Refusal;

use crate::api::core::change_setting;
use crate::context::RestCall;

/// The emulated tuner, as media servers see it.
#[derive(Clone, Debug, Serialize, View)]
#[resource(edit = TunerEdit)]
pub(crate) struct TunerView {
    /// Number of simultaneous streams that the device offers.
    #[field(edit, at_least = 1, at_most = TUNERS_MAX as i64, example = "10")]
    tuner_count: u32,
    /// Name of the device.
    #[field(edit, aliases = &["name"], chars_max = TUNER_NAME_CHARS_MAX, example = "Headwater")]
    friendly_name: String,
    /// Identity of the device with all channels: letters, digits and hyphens.
    #[field(edit, chars_max = DEVICE_ID_CHARS_MAX, example = "12345678")]
    device_id: String,
    /// The lineups: one with all channels, and one for each channel profile that the caller may use.
    lineups: Vec<TunerLineupView>,
}

/// A lineup, which media servers treat as a device of its own.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct TunerLineupView {
    /// Id of the channel profile; `null` is the lineup with all channels.
    #[field(example = "2")]
    channel_profile_id: Option<u32>,
    /// Name of the channel profile.
    #[field(example = "Kids")]
    name: Option<String>,
    /// Identity of the device for this lineup.
    #[field(example = "service-tuner-Kids")]
    device_id: String,
}

const PATH: &str = "/api/tuner/";

pub(super) fn routes() -> Vec<Route> {
    const WRONG: &str = "The identity has other characters.";
    vec![
        Route::get(PATH, STANDARD, "Returns the emulated tuner.", retrieve),
        Route::put(PATH, ADMIN, "Updates the emulated tuner.", update)
            .refuses(StatusCode::BAD_REQUEST, WRONG),
        Route::patch(PATH, ADMIN, "Partially updates the emulated tuner.", update)
            .refuses(StatusCode::BAD_REQUEST, WRONG),
    ]
}

async fn retrieve(call: Call) -> Result<TunerView, Refusal> {
    let settings = call.rest().models.settings.load();
    let tuner = TunerSettings::from_setting(settings.one_by("key", TUNER_SETTINGS).map(|it| &it.value));
    let all = TunerLineupView { channel_profile_id: None, name: None, device_id: tuner.device_id.clone() };
    let user = call.identity()?;
    let profiles = call.rest().models.lineups.load();
    let is_usable = |id| call.is_admin() || user.lineups.contains(&id);
    let of_profiles = profiles.iter().filter(|it| is_usable(it.id)).map(|it| TunerLineupView {
        channel_profile_id: Some(it.id.0),
        name: Some(it.name.clone()),
        device_id: device_id_of(&it.name),
    });
    let lineups = std::iter::once(all).chain(of_profiles).collect();
    let TunerSettings { tuner_count, friendly_name, device_id } = tuner.clone();
    Ok(TunerView { tuner_count, friendly_name, device_id, lineups })
}

async fn update(call: Call, edit: TunerEdit) -> Result<TunerView, Refusal> {
    let sent = [
        ("tuner_count", edit.tuner_count.map(Value::from)),
        ("friendly_name", edit.friendly_name.map(Value::from)),
        ("device_id", edit.device_id.map(Value::from)),
    ];
    let sent: Map<_, _> =
        sent.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    let context = Arc::clone(call.rest());
    call.write(move |write| {
        change_setting(write, &context, None, TUNER_SETTINGS, |mut value| {
            value.extend(sent);
            value
        })
    })
    .await?;
    retrieve(call).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Rest;

    #[tokio::test]
    async fn the_tuner_has_its_settings_and_a_lineup_for_each_channel_profile() {
        let rest = Rest::start().await;
        let tuner = rest.standard("GET", PATH, Value::Null).await.body;
        let all = json!([{ "channel_profile_id": null, "name": null, "device_id": "12345678" }]);
        assert_eq!((&tuner["tuner_count"], &tuner["lineups"]), (&json!(10), &all));
        let made = rest.admin("POST", "/api/channels/profiles/", json!({ "name": "Kids" })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let sent = json!({ "tuner_count": 4, "name": "Living room", "device_id": "A1" });
        assert_eq!(rest.standard("PATCH", PATH, sent.clone()).await.status, 403);
        let changed = rest.admin("PATCH", PATH, sent).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        assert_eq!(
            (&changed.body["friendly_name"], &changed.body["tuner_count"]),
            (&json!("Living room"), &json!(4))
        );
        assert_eq!(changed.body["lineups"][1]["device_id"], "service-tuner-Kids");
        for (sent, field) in [
            (json!({ "tuner_count": 0 }), "tuner_count"),
            (json!({ "device_id": "a b" }), "device_id"),
            (json!({ "friendly_name": "" }), "friendly_name"),
        ] {
            let refused = rest.admin("PUT", PATH, sent).await;
            assert!(refused.status == 400 && refused.body[field].is_array(), "{}", refused.text);
        }
    }
}
