//! `/api/hdhr/devices/`: additional emulated tuners, each with its own name, identity, number of tuners and channels.
//!
//! A device is served at `/tuner/{device_id}/` and `/hdhr/{device_id}/`, unless a channel profile has that name.

use std::sync::Arc;

use domain::ids::{LineupId, TunerDeviceId};
use domain::lineup::Lineup;
use domain::tuner::{
    DEVICE_ID_CHARS_MAX, TUNER_NAME_CHARS_MAX, TUNERS_DEFAULT, TUNERS_MAX, TunerDevice, is_device_id,
};
use http::StatusCode;
use resource_derive::View;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use serde::Serialize;
use server::reply::Refusal;
use storage::Write;

use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};
use crate::record::{RecordCall, Render, refuse_if, set, set_fields, view_from};

/// An additional emulated tuner, which media servers treat as a device of its own.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "HDHRDevice", new = NewTunerDevice, edit = TunerDeviceEdit)]
pub(crate) struct TunerDeviceView {
    /// Assigned by the gateway and never reused.
    #[field(example = "1")]
    id: TunerDeviceId,
    /// Name for people; the identity by default.
    #[field(edit, chars_max = TUNER_NAME_CHARS_MAX, example = "Bedroom")]
    friendly_name: String,
    /// Unique identity, and the segment of its addresses: letters, digits and hyphens.
    #[field(required, chars_max = DEVICE_ID_CHARS_MAX, example = "bedroom")]
    device_id: String,
    /// Number of simultaneous streams that the device offers; 10 by default.
    #[field(edit, at_least = 1, at_most = TUNERS_MAX as i64, example = "2")]
    tuner_count: u32,
    /// Id of the channel profile whose channels the device has; `null` is every channel.
    #[field(edit, aliases = &["channel_profile"], example = "1")]
    channel_profile_id: Option<LineupId>,
    /// Path of the device. Media servers get the address of the gateway with this path.
    #[field(example = "/tuner/bedroom")]
    path: String,
}

/// Maximum number of additional devices. Each is announced on the network.
const DEVICES_MAX: usize = 50;

const LIST: &str = "/api/hdhr/devices/";
const ONE: &str = "/api/hdhr/devices/{id}/";

pub(super) fn routes() -> Vec<Route> {
    const WRONG: &str = "There are too many devices.";
    vec![
        Route::get(LIST, ADMIN, "Lists additional tuner devices.", list),
        Route::post(LIST, ADMIN, "Creates an additional tuner device.", create)
            .refuses(StatusCode::BAD_REQUEST, WRONG),
        Route::get(ONE, ADMIN, "Returns an additional tuner device.", retrieve),
        Route::put(ONE, ADMIN, "Updates an additional tuner device.", update),
        Route::patch(ONE, ADMIN, "Partially updates an additional tuner device.", update),
        Route::delete(ONE, ADMIN, "Deletes an additional tuner device.", delete),
    ]
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<TunerDeviceView>, Refusal> {
    let devices = call.rest().models.tuner_devices.load();
    paging.render(&call, &devices.iter().collect::<Vec<&Arc<TunerDevice>>>())
}

async fn retrieve(call: Call) -> Result<TunerDeviceView, Refusal> {
    call.retrieve(&call.rest().models.tuner_devices.load())
}

async fn create(call: Call, new: NewTunerDevice) -> Result<Created<TunerDeviceView>, Refusal> {
    call.create(|write, id| {
        let n_devices = write.all::<TunerDevice>()?.len();
        refuse_if(n_devices >= DEVICES_MAX, &format!("There are {DEVICES_MAX} devices already."))?;
        let mut device = TunerDevice {
            id: TunerDeviceId(id),
            friendly_name: new.device_id.clone(),
            device_id: String::new(),
            tuner_count: TUNERS_DEFAULT,
            lineup: None,
        };
        TunerDeviceEdit::from(new).apply(write, &mut device)?;
        Ok(device)
    })
    .await
}

async fn update(call: Call, edit: TunerDeviceEdit) -> Result<TunerDeviceView, Refusal> {
    call.update(|write, device: &mut TunerDevice| edit.apply(write, device)).await
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    call.delete(|_, _: &TunerDevice| Ok(())).await
}

impl TunerDeviceEdit {
    /// Applies the edit and checks the result.
    fn apply(self, write: &Write<'_>, device: &mut TunerDevice) -> Result<(), Refusal> {
        set_fields!(device from self: friendly_name, device_id, tuner_count);
        set(&mut device.lineup, self.channel_profile_id);
        if !is_device_id(&device.device_id) {
            return Err(Refusal::field("device_id", "Use only letters, digits and hyphens."));
        }
        match device.lineup {
            Some(id) if write.get::<Lineup>(id.0)?.is_none() => {
                Err(Refusal::no_such("channel_profile_id", id))
            }
            _ => Ok(()),
        }
    }
}

/// Removes the devices of a lineup that is deleted. Without it, they would have no channels, and media servers forget
/// all channels of such a device.
pub(in crate::api) fn remove_devices(write: &mut Write<'_>, lineup: LineupId) -> Result<(), Refusal> {
    for device in write.all::<TunerDevice>()?.into_iter().filter(|it| it.lineup == Some(lineup)) {
        write.remove::<TunerDevice>(device.id.0)?;
    }
    Ok(())
}

impl Render for TunerDevice {
    type View = TunerDeviceView;
    type Lookup = ();

    fn view(&self, (): &()) -> TunerDeviceView {
        view_from!(TunerDeviceView from self {
            id, friendly_name, device_id, tuner_count;
            channel_profile_id: self.lineup,
            path: format!("/tuner/{}", self.device_id),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::Rest;

    #[tokio::test]
    async fn admins_create_change_and_delete_devices_which_end_with_their_channel_profile() {
        let rest = Rest::start().await;
        let profile = rest.admin("POST", "/api/channels/profiles/", json!({ "name": "Kids" })).await.body;
        let made = rest.admin("POST", LIST, json!({ "device_id": "bedroom" })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let shown = json!({
            "id": 1, "friendly_name": "bedroom", "device_id": "bedroom", "tuner_count": 10,
            "channel_profile_id": null, "path": "/tuner/bedroom",
        });
        assert_eq!(made.body, shown);
        let sent = json!({ "friendly_name": "Bed", "tuner_count": 2, "channel_profile": profile["id"] });
        let one = format!("{LIST}1/");
        assert_eq!(rest.standard("PATCH", &one, sent.clone()).await.status, 403);
        let changed = rest.admin("PATCH", &one, sent).await;
        assert_eq!((changed.status, &changed.body["channel_profile_id"]), (200, &profile["id"]));
        assert_eq!(rest.admin("GET", LIST, Value::Null).await.body["results"], json!([changed.body]));

        for (sent, field) in [
            (json!({ "device_id": "bedroom" }), "device_id"),
            (json!({ "device_id": "a b" }), "device_id"),
            (json!({ "device_id": "a_b" }), "device_id"),
            (json!({}), "device_id"),
            (json!({ "device_id": "a", "tuner_count": 0 }), "tuner_count"),
            (json!({ "device_id": "a", "channel_profile_id": 99 }), "channel_profile_id"),
        ] {
            let refused = rest.admin("POST", LIST, sent.clone()).await;
            assert!(refused.status == 400 && refused.body[field].is_array(), "{sent} {}", refused.text);
        }

        let profile = format!("/api/channels/profiles/{}/", profile["id"]);
        assert_eq!(rest.admin("DELETE", &profile, Value::Null).await.status, 204);
        assert_eq!(rest.admin("GET", &one, Value::Null).await.status, 404);
        assert_eq!(rest.admin("POST", LIST, json!({ "device_id": "bedroom" })).await.status, 201);
        assert_eq!(rest.admin("DELETE", &format!("{LIST}2/"), Value::Null).await.status, 204);
    }

    #[tokio::test]
    async fn the_number_of_devices_is_limited() {
        let rest = Rest::start().await;
        for n in 0..DEVICES_MAX {
            let made = rest.admin("POST", LIST, json!({ "device_id": format!("d{n}") })).await;
            assert_eq!(made.status, 201, "{}", made.text);
        }
        assert_eq!(rest.admin("POST", LIST, json!({ "device_id": "one-more" })).await.status, 400);
    }
}
