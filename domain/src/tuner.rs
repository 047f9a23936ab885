//! The settings of the emulated tuner, which are stored in the core settings.

use serde_json::{Map, Value, json};

/// Maximum number of tuners of the emulated device.
pub const TUNERS_MAX: u32 = 255;
/// Maximum length of the name of the device, in characters.
pub const TUNER_NAME_CHARS_MAX: usize = 100;

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
        Self { tuner_count: 10, friendly_name: "Headwater".to_owned(), device_id: "12345678".to_owned() }
    }
}

impl TunerSettings {
    /// Reads the value of the setting. Missing and invalid members have their defaults.
    pub fn of_setting(value: Option<&Value>) -> Self {
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
                let is_plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
                let id = value.as_str().filter(|it| (1..=32).contains(&it.len()) && it.bytes().all(is_plain));
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

    /// Returns the identity of the device for a lineup of this name.
    pub fn device_id_of(&self, lineup: &str) -> String {
        format!("{}-{lineup}", self.device_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuner_is_read_from_its_setting_and_an_invalid_member_has_its_default() {
        let value = json!({ "tuner_count": 4, "friendly_name": " Living room ", "device_id": "A1-2" });
        let tuner = TunerSettings::of_setting(Some(&value));
        assert_eq!((tuner.tuner_count, &*tuner.friendly_name, &*tuner.device_id), (4, "Living room", "A1-2"));
        assert_eq!(tuner.device_id_of("Kids"), "A1-2-Kids");
        assert_eq!(TunerSettings::of_setting(Some(&Value::from(tuner.to_setting()))), tuner);
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
        assert_eq!(TunerSettings::of_setting(None), TunerSettings::default());
    }
}
