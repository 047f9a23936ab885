//! The rules for a user who reaches the limit of streams, from the core settings.

use serde_json::{Map, Value, json};

/// The members of the setting, under the names that clients of similar services know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserLimits {
    /// Whether other sessions of the user end for a new one. Otherwise the new one is refused, unless the same device
    /// gives up a session of its own.
    pub terminate_on_limit_exceeded: bool,
    /// Whether the oldest session ends, and not the newest one.
    pub terminate_oldest: bool,
    /// Whether sessions whose channel nobody else watches end first, because that frees a connection to the provider.
    pub prioritize_single_client_channels: bool,
    /// Whether all sessions of a user on one channel count as one.
    pub ignore_same_channel_connections: bool,
}

impl Default for UserLimits {
    fn default() -> Self {
        Self {
            terminate_on_limit_exceeded: false,
            terminate_oldest: true,
            prioritize_single_client_channels: true,
            ignore_same_channel_connections: false,
        }
    }
}

impl UserLimits {
    /// Reads the value of the setting. Missing and invalid members have their defaults.
    pub fn from_setting(value: Option<&Value>) -> Self {
        let mut limits = Self::default();
        for (name, value) in value.and_then(Value::as_object).into_iter().flatten() {
            // A member that was valid once may be invalid in this version.
            let _ = limits.set(name, value);
        }
        limits
    }

    /// Changes one member of the setting.
    ///
    /// # Errors
    /// The reason why the member is invalid, worded to follow its name.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), &'static str> {
        let member = match name {
            "terminate_on_limit_exceeded" => &mut self.terminate_on_limit_exceeded,
            "terminate_oldest" => &mut self.terminate_oldest,
            "prioritize_single_client_channels" => &mut self.prioritize_single_client_channels,
            "ignore_same_channel_connections" => &mut self.ignore_same_channel_connections,
            _ => return Err("is not a setting"),
        };
        *member = value.as_bool().ok_or("must be true or false")?;
        Ok(())
    }

    /// Returns the value of the setting.
    pub fn to_setting(self) -> Map<String, Value> {
        let value = json!({
            "terminate_on_limit_exceeded": self.terminate_on_limit_exceeded,
            "terminate_oldest": self.terminate_oldest,
            "prioritize_single_client_channels": self.prioritize_single_client_channels,
            "ignore_same_channel_connections": self.ignore_same_channel_connections,
        });
        value.as_object().cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_limits_are_read_from_their_setting_and_an_invalid_member_has_its_default() {
        let value = json!({ "terminate_on_limit_exceeded": true, "terminate_oldest": "no", "other": 1 });
        let limits = UserLimits::from_setting(Some(&value));
        assert_eq!(limits, UserLimits { terminate_on_limit_exceeded: true, ..UserLimits::default() });
        assert_eq!(UserLimits::from_setting(Some(&Value::from(limits.to_setting()))), limits);
        assert_eq!(UserLimits::from_setting(None), UserLimits::default());
        for (name, value) in [("terminate_oldest", json!(1)), ("other", json!(true))] {
            assert!(UserLimits::default().set(name, &value).is_err(), "{name} {value}");
        }
    }
}
