//! The settings of the history, which are stored in the core settings.

use serde_json::{Map, Value, json};

/// Maximum number of days that a history covers.
pub const DAYS_MAX: u32 = 60;

/// The choice of what the history keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistorySettings {
    /// Whether anything is kept.
    pub is_enabled: bool,
    /// Whether the rates and viewers of each user are kept.
    pub keeps_users: bool,
    /// Days for which those of users are kept.
    pub user_days: u32,
}

impl Default for HistorySettings {
    fn default() -> Self {
        Self { is_enabled: true, keeps_users: false, user_days: 30 }
    }
}

impl HistorySettings {
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
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let flag = || value.as_bool().ok_or("must be true or false");
        match name {
            "enabled" => self.is_enabled = flag()?,
            "users" => self.keeps_users = flag()?,
            "user_days" => {
                let days = value.as_u64().and_then(|it| u32::try_from(it).ok());
                let days = days.filter(|it| (1..=DAYS_MAX).contains(it));
                self.user_days = days.ok_or(format!("must be a whole number from 1 to {DAYS_MAX}"))?;
            }
            _ => return Err("is not a setting".to_owned()),
        }
        Ok(())
    }

    /// Returns the value of the setting.
    pub fn to_setting(self) -> Map<String, Value> {
        let value = json!({
            "enabled": self.is_enabled,
            "users": self.keeps_users,
            "user_days": self.user_days,
        });
        value.as_object().cloned().unwrap_or_default()
    }

    /// Returns whether the history of users is kept.
    pub fn has_users(self) -> bool {
        self.is_enabled && self.keeps_users
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_settings_are_read_and_an_invalid_member_has_its_default() {
        let value = json!({ "users": true, "user_days": 61, "enabled": "no", "other": 1 });
        let settings = HistorySettings::from_setting(Some(&value));
        assert_eq!(settings, HistorySettings { keeps_users: true, ..HistorySettings::default() });
        assert_eq!(HistorySettings::from_setting(Some(&Value::from(settings.to_setting()))), settings);
        for (name, value) in
            [("user_days", json!(0)), ("user_days", json!("7")), ("users", json!(1)), ("other", json!(true))]
        {
            assert!(HistorySettings::default().set(name, &value).is_err(), "{name} {value}");
        }
        let off = HistorySettings { is_enabled: false, ..settings };
        assert_eq!((settings.has_users(), off.has_users()), (true, false));
    }
}
