//! The emulated tuner: its settings, which are stored in the core settings, and additional devices.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::ids::{LineupId, TunerDeviceId};

/// Maximum number of tuners of the emulated device.
pub const TUNERS_MAX: u32 = 255;
/// The number of tuners of a device for which nothing else was set.
pub const TUNERS_DEFAULT: u32 = 10;
/// Maximum length of the name of the device, in characters.
pub const TUNER_NAME_CHARS_MAX: usize = 100;
/// Maximum length of the identity of a device, in characters.
pub const DEVICE_ID_CHARS_MAX: usize = 32;

/// Model number of every emulated device.
pub const MODEL_NUMBER: &str = "HDTC-2US";
/// Name of the firmware of every emulated device.
pub const FIRMWARE_NAME: &str = "tuner3_atsc";
/// Version of the firmware of every emulated device.
pub const FIRMWARE_VERSION: &str = "20200101";
/// The kind of reception of every emulated device.
pub const SOURCE: &str = "Cable";

/// Namespace of the unique names that follow from the identities of devices.
const NAMES: Uuid = Uuid::from_u128(0x7c1d_1a52_6d2f_5b0e_9a53_3b8e_41f0_27d6);

/// The characters of a name that a path contains without an escape.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A tuner besides those of the settings and of the lineups: media servers treat it as a device of its own, with its own
/// name, number of tuners and selection of channels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunerDevice {
    pub id: TunerDeviceId,
    pub friendly_name: String,
    /// Unique. Also the segment of its addresses.
    pub device_id: String,
    /// Number of simultaneous streams that the device offers.
    pub tuner_count: u32,
    /// `None` is every channel.
    #[serde(default)]
    pub lineup: Option<LineupId>,
}

/// Identifies one of the emulated devices while the gateway runs, also when its name or identity changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceKey {
    /// The device with every channel.
    Main,
    /// The device of a lineup.
    Lineup(LineupId),
    /// A [`TunerDevice`].
    Additional(TunerDeviceId),
}

/// Returns whether a text can be the identity of a device.
pub fn is_device_id(text: &str) -> bool {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    (1..=DEVICE_ID_CHARS_MAX).contains(&text.len()) && text.bytes().all(is_plain)
}

/// Returns the identity of the device of a lineup, as clients have stored it: it does not depend on the settings.
pub fn device_id_of(lineup: &str) -> String {
    format!("service-tuner-{lineup}")
}

/// Returns the name of a lineup or a device as a segment of a path.
pub fn path_segment(name: &str) -> String {
    utf8_percent_encode(name, IN_PATH).to_string()
}

/// Returns the unique name of a device in UPnP, which follows from its identity.
pub fn device_uuid(device_id: &str) -> Uuid {
    Uuid::new_v5(&NAMES, device_id.as_bytes())
}

/// The emulated tuner, as media servers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TunerSettings {
    /// Number of simultaneous streams that the device offers.
    pub tuner_count: u32,
    pub friendly_name: String,
    /// Identifies the device: letters, digits and `-`.
    pub device_id: String,
}

impl Default for TunerSettings {
    fn default() -> Self {
        Self {
            tuner_count: TUNERS_DEFAULT,
            friendly_name: "Headwater".to_owned(),
            device_id: "12345678".to_owned(),
        }
    }
}

impl TunerSettings {
    /// Reads the value of the setting. Missing and invalid members have their defaults.
    pub fn from_setting(value: Option<&Value>) -> Self {
        let mut settings = Self::default();
        for (name, value) in value.and_then(Value::as_object).into_iter().flatten() {
            // A member that was valid once may be invalid in this version.
            let _ = settings.set(name, value);
        }
        settings
    }

    /// Changes one member of the setting.
    ///
    /// # Errors
    /// The reason why the member is invalid, worded to follow its name.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), &'static str> {
        match name {
            "tuner_count" => {
                let count = value.as_u64().and_then(|it| u32::try_from(it).ok());
                let count = count.filter(|it| (1..=TUNERS_MAX).contains(it));
                self.tuner_count = count.ok_or("must be 1 to 255")?;
            }
            "friendly_name" => {
                let name = value.as_str().map(str::trim).filter(|it| !it.is_empty());
                let name = name.filter(|it| it.chars().count() <= TUNER_NAME_CHARS_MAX);
                name.ok_or("must be a text of 1 to 100 characters")?.clone_into(&mut self.friendly_name);
            }
            "device_id" => {
                let id = value.as_str().filter(|it| is_device_id(it));
                id.ok_or("must have 1 to 32 letters, digits and hyphens")?.clone_into(&mut self.device_id);
            }
            _ => return Err("is not a setting"),
        }
        Ok(())
    }

    /// Returns the value of the setting.
    pub fn to_setting(&self) -> Map<String, Value> {
        let value = json!({
            "tuner_count": self.tuner_count,
            "friendly_name": self.friendly_name,
            "device_id": self.device_id,
        });
        value.as_object().cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuner_is_read_from_its_setting_and_an_invalid_member_has_its_default() {
        let value = json!({ "tuner_count": 4, "friendly_name": " Living room ", "device_id": "A1-2" });
        let tuner = TunerSettings::from_setting(Some(&value));
        assert_eq!((tuner.tuner_count, &*tuner.friendly_name, &*tuner.device_id), (4, "Living room", "A1-2"));
        assert_eq!(TunerSettings::from_setting(Some(&Value::from(tuner.to_setting()))), tuner);
        for (name, value) in [
            ("tuner_count", json!(0)),
            ("tuner_count", json!(256)),
            ("friendly_name", json!(" ")),
            ("device_id", json!("a b")),
            ("device_id", json!("")),
            ("other", json!(1)),
        ] {
            assert!(TunerSettings::default().set(name, &value).is_err(), "{name} {value}");
        }
        assert_eq!(TunerSettings::from_setting(None), TunerSettings::default());
    }

    #[test]
    fn the_identity_of_a_device_follows_from_its_lineup_and_its_uuid_from_its_identity() {
        assert_eq!(device_id_of("Kids"), "service-tuner-Kids");
        assert_eq!(device_uuid("12345678"), device_uuid("12345678"));
        assert_ne!(device_uuid("12345678"), device_uuid("service-tuner-Kids"));
        assert_eq!(path_segment("Kids & Co/ä-1"), "Kids%20%26%20Co%2F%C3%A4-1");
    }
}
