//! The emulated device that a request is for.

use std::sync::Arc;

use domain::core_settings::TUNER_SETTINGS;
use domain::lineup::Lineup;
use domain::tuner::{DeviceKey, TunerDevice, TunerSettings, device_id_of, path_segment};
use route_frame::call::Call;
use server::reply::Refusal;
use storage::Models;

use crate::context::PlayerCall;
use crate::output_profile::is_output_profile;

/// One of the places at which devices are served.
#[derive(Clone, Copy, Debug)]
pub(super) struct DevicePath {
    /// First segment of the path with a leading slash, or nothing.
    pub(super) prefix: &'static str,
    /// Whether `{profile}` follows.
    pub(super) has_profile: bool,
    /// Whether `output_profile/{output_profile}` follows.
    pub(super) has_output_profile: bool,
}

/// An emulated device.
#[derive(Clone, Debug)]
pub struct Device {
    pub key: DeviceKey,
    /// Identity for media servers.
    pub id: String,
    /// Name for people.
    pub name: String,
    pub tuner_count: u32,
    /// The selection of channels; `None` is all of them.
    pub lineup: Option<Arc<Lineup>>,
    /// The output profile that the addresses of its streams ask for; 0 asks for none.
    pub output_profile: Option<u32>,
    /// Address of the device at the place where it was requested, without a trailing slash.
    pub base_url: String,
}

impl DevicePath {
    /// Returns the device that a request is for. The name of a channel profile has precedence over that of an additional
    /// device; upper and lower case differ.
    pub(super) fn device(self, call: &Call) -> Result<Device, Refusal> {
        let device = self.without_output_profile(call)?;
        if !self.has_output_profile {
            return Ok(device);
        }
        let asked: Option<u32> = call.text("output_profile")?.parse().ok();
        let asked = asked.ok_or_else(|| Refusal::not_found("The id of an output profile is a number."))?;
        let base_url = format!("{}/output_profile/{asked}", device.base_url);
        let output_profile = Some(asked).filter(|it| is_output_profile(call.player(), *it));
        Ok(Device { base_url, output_profile, ..device })
    }

    fn without_output_profile(self, call: &Call) -> Result<Device, Refusal> {
        let models = &call.player().models;
        let place = format!("{}{}", call.origin(), self.prefix);
        if !self.has_profile {
            return Ok(Device { base_url: place, ..main_device(models) });
        }
        let name = call.text("profile")?;
        let base_url = format!("{place}/{}", path_segment(name));
        let lineup = models.lineups.load().iter().find(|it| it.name == name).cloned();
        let found = match lineup {
            Some(lineup) => Some(device_of_lineup(models, lineup)),
            None => {
                models.tuner_devices.load().one_by("device_id", name).and_then(|it| additional(models, it))
            }
        };
        let device = found.ok_or_else(|| Refusal::not_found("No channel profile or tuner has this name."))?;
        Ok(Device { base_url, ..device })
    }
}

/// Returns the devices that are announced on the network, with the paths below which they are served.
pub fn announced_devices(models: &Models) -> Vec<(Device, String)> {
    let devices = models.tuner_devices.load();
    let additional = devices
        .iter()
        .filter_map(|it| Some((additional(models, it)?, format!("/tuner/{}", path_segment(&it.device_id)))));
    std::iter::once((main_device(models), String::new())).chain(additional).collect()
}

/// Returns the number of tuners of a device; `None` if it no longer exists.
pub(crate) fn tuner_count(models: &Models, key: DeviceKey) -> Option<u32> {
    match key {
        DeviceKey::Main => Some(settings(models).tuner_count),
        DeviceKey::Lineup(id) => models.lineups.load().get(id.0).map(|_| settings(models).tuner_count),
        DeviceKey::Additional(id) => models.tuner_devices.load().get(id.0).map(|it| it.tuner_count),
    }
}

fn settings(models: &Models) -> TunerSettings {
    let settings = models.settings.load();
    TunerSettings::from_setting(settings.one_by("key", TUNER_SETTINGS).map(|it| &it.value))
}

fn main_device(models: &Models) -> Device {
    let TunerSettings { tuner_count, friendly_name, device_id } = settings(models);
    Device {
        key: DeviceKey::Main,
        id: device_id,
        name: friendly_name,
        tuner_count,
        lineup: None,
        output_profile: None,
        base_url: String::new(),
    }
}

fn device_of_lineup(models: &Models, lineup: Arc<Lineup>) -> Device {
    let main = main_device(models);
    Device {
        key: DeviceKey::Lineup(lineup.id),
        id: device_id_of(&lineup.name),
        name: format!("{} - {}", main.name, lineup.name),
        lineup: Some(lineup),
        ..main
    }
}

/// Returns an additional device. `None` if its lineup is gone, so that it never has no channels.
fn additional(models: &Models, device: &TunerDevice) -> Option<Device> {
    let lineup = match device.lineup {
        None => None,
        Some(id) => Some(models.lineups.load().get(id.0).cloned()?),
    };
    Some(Device {
        key: DeviceKey::Additional(device.id),
        id: device.device_id.clone(),
        name: device.friendly_name.clone(),
        tuner_count: device.tuner_count,
        lineup,
        output_profile: None,
        base_url: String::new(),
    })
}
