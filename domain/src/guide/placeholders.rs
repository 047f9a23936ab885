//! Placeholders: programmes of channels without a guide, in blocks of one length, so that televisions and media servers
//! show these channels.

use serde_json::{Map, Value, json};

use super::generated::GeneratedGuide;

/// Maximum length of a template, in bytes.
const TEMPLATE_BYTES_MAX: usize = 1_024;
/// Length of a block, in minutes.
const MINUTES: std::ops::RangeInclusive<u64> = 5..=24 * 60;

/// Whether channels without a guide have placeholders, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceholderSettings {
    pub is_on: bool,
    /// Template of the title, with `{channel_name}`.
    title: String,
    /// Template of the description; empty for none.
    description: String,
    minutes: u64,
}

impl Default for PlaceholderSettings {
    fn default() -> Self {
        let (title, description) = ("{channel_name}".to_owned(), String::new());
        Self { is_on: false, title, description, minutes: 120 }
    }
}

impl PlaceholderSettings {
    /// Reads the value of the setting. Missing and invalid members have their defaults.
    pub fn from_setting(value: Option<&Value>) -> Self {
        let mut settings = Self::default();
        for (name, value) in value.and_then(Value::as_object).into_iter().flatten() {
            // A member that was valid once may be invalid in this version.
            let _ = settings.set(name, value);
        }
        settings
    }

    pub fn has_member(name: &str) -> bool {
        name.starts_with("epg_placeholder")
    }

    /// Changes one member of the setting.
    ///
    /// # Errors
    /// The reason why the member is invalid, worded to follow its name.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), &'static str> {
        let text = || {
            let text = value.as_str().filter(|it| it.len() <= TEMPLATE_BYTES_MAX);
            text.map(str::to_owned).ok_or("must be a text of up to 1024 bytes")
        };
        match name {
            "epg_placeholders" => self.is_on = value.as_bool().ok_or("must be true or false")?,
            "epg_placeholder_title" => self.title = text()?,
            "epg_placeholder_description" => self.description = text()?,
            "epg_placeholder_minutes" => {
                let minutes = value.as_u64().filter(|it| MINUTES.contains(it));
                self.minutes = minutes.ok_or("must be a whole number from 5 to 1440")?;
            }
            _ => return Err("is not a setting"),
        }
        Ok(())
    }

    /// Returns the value of the setting.
    pub fn to_setting(&self) -> Map<String, Value> {
        let value = json!({
            "epg_placeholders": self.is_on,
            "epg_placeholder_title": self.title,
            "epg_placeholder_description": self.description,
            "epg_placeholder_minutes": self.minutes,
        });
        value.as_object().cloned().unwrap_or_default()
    }

    /// Returns the guide of channels without one; `None` if they have none.
    pub fn guide(&self) -> Option<GeneratedGuide> {
        let properties = json!({
            "fallback_title_template": self.title,
            "fallback_description_template": self.description,
            "program_duration": self.minutes,
        });
        // The members were checked when they were set.
        self.is_on.then(|| GeneratedGuide::from_properties(properties.as_object()?).ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::generated::programmes;

    #[test]
    fn placeholders_follow_from_the_templates_in_blocks_of_the_length() {
        let set = json!({
            "epg_placeholders": true, "epg_placeholder_title": "Live: {channel_name}",
            "epg_placeholder_description": "No guide.", "epg_placeholder_minutes": 360, "epg_match_threshold": 90,
        });
        let settings = PlaceholderSettings::from_setting(Some(&set));
        assert_eq!(PlaceholderSettings::from_setting(Some(&settings.to_setting().into())), settings);
        let found = programmes(&settings.guide().unwrap(), "News", 0, 0, 86_400);
        let times: Vec<_> = found.iter().map(|it| (it.start, it.stop)).collect();
        assert_eq!(times, [(0, 21_600), (21_600, 43_200), (43_200, 64_800), (64_800, 86_400)]);
        assert!(found.iter().all(|it| it.title() == "Live: News" && it.description() == Some("No guide.")));
        assert_eq!(PlaceholderSettings::default().guide().map(|_| ()), None, "off by default");
    }

    #[test]
    fn an_invalid_member_is_refused_and_keeps_its_default() {
        for (name, value) in [
            ("epg_placeholders", json!(1)),
            ("epg_placeholder_title", json!(null)),
            ("epg_placeholder_description", json!("x".repeat(1_025))),
            ("epg_placeholder_minutes", json!(4)),
            ("epg_placeholder_minutes", json!(1_441)),
            ("epg_placeholder_hours", json!(1)),
        ] {
            let mut settings = PlaceholderSettings::default();
            assert!(settings.set(name, &value).is_err(), "{name}");
            assert_eq!(settings, PlaceholderSettings::default());
        }
    }
}
