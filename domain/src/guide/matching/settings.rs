//! Settings of matching, which are stored in the core settings.

use serde_json::{Map, Value, json};

use super::countries::Country;
use super::names::NameRules;

/// Maximum number of ignored texts of each kind.
pub const IGNORED_TEXTS_MAX: usize = 100;
/// Maximum length of an ignored text, in characters.
pub const IGNORED_TEXT_CHARS_MAX: usize = 100;
/// The lowest threshold in percent. Below it, candidates whose country or time shift differs could be linked.
const THRESHOLD_MIN: u8 = 50;

/// How channels are matched with guide channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchSettings {
    /// The agreement in percent from which a candidate is linked.
    pub threshold: u8,
    /// Whether the ignored texts count. Their names in the interface are `advanced` and `default`.
    pub is_advanced: bool,
    /// Ignored texts.
    pub rules: NameRules,
    /// Whether a refresh of a guide source matches channels without a link.
    pub after_refresh: bool,
    /// The country of channels that state none.
    pub preferred_country: Option<Country>,
}

impl Default for MatchSettings {
    fn default() -> Self {
        Self {
            threshold: 85,
            is_advanced: false,
            rules: NameRules::default(),
            after_refresh: false,
            preferred_country: None,
        }
    }
}

const MODES: [&str; 2] = ["default", "advanced"];

impl MatchSettings {
    /// Reads the value of the setting. Missing and invalid members have their defaults.
    pub fn from_setting(value: Option<&Value>) -> Self {
        let mut settings = Self::default();
        for (name, value) in value.and_then(Value::as_object).into_iter().flatten() {
            // A member that was valid once may be invalid in this version.
            let _ = settings.set(name, value);
        }
        settings
    }

    /// Returns the settings with the ignored texts only if they count.
    #[must_use]
    pub fn in_force(self, preferred_region: Option<&str>) -> Self {
        let rules = if self.is_advanced { self.rules } else { NameRules::default() };
        Self { rules, preferred_country: preferred_region.and_then(Country::from_text), ..self }
    }

    /// Changes one member of the setting.
    ///
    /// # Errors
    /// The reason why the member is invalid, worded to follow its name.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), &'static str> {
        match name {
            "epg_match_mode" => {
                let mode =
                    value.as_str().filter(|it| MODES.contains(it)).ok_or("must be default or advanced")?;
                self.is_advanced = mode == MODES[1];
            }
            "epg_match_ignore_prefixes" => self.rules.prefixes = texts(value)?,
            "epg_match_ignore_suffixes" => self.rules.suffixes = texts(value)?,
            "epg_match_ignore_custom" => self.rules.parts = texts(value)?,
            "epg_match_threshold" => {
                let threshold = value.as_u64().and_then(|it| u8::try_from(it).ok());
                let threshold = threshold.filter(|it| (THRESHOLD_MIN..=100).contains(it));
                self.threshold = threshold.ok_or("must be a whole number from 50 to 100")?;
            }
            "epg_match_after_refresh" => {
                self.after_refresh = value.as_bool().ok_or("must be true or false")?;
            }
            _ => return Err("is not a setting"),
        }
        Ok(())
    }

    /// Returns the value of the setting.
    pub fn to_setting(&self) -> Map<String, Value> {
        let value = json!({
            "epg_match_mode": MODES[usize::from(self.is_advanced)],
            "epg_match_ignore_prefixes": self.rules.prefixes,
            "epg_match_ignore_suffixes": self.rules.suffixes,
            "epg_match_ignore_custom": self.rules.parts,
            "epg_match_threshold": self.threshold,
            "epg_match_after_refresh": self.after_refresh,
        });
        value.as_object().cloned().unwrap_or_default()
    }

    /// Returns the threshold in tenths of a percent.
    pub(super) fn threshold_points(&self) -> u16 {
        u16::from(self.threshold) * 10
    }
}

fn texts(value: &Value) -> Result<Vec<String>, &'static str> {
    const RULE: &str = "must be a list of up to 100 texts of up to 100 characters";
    let list = value.as_array().filter(|it| it.len() <= IGNORED_TEXTS_MAX).ok_or(RULE)?;
    let text = |it: &Value| {
        let text = it.as_str().filter(|it| it.chars().count() <= IGNORED_TEXT_CHARS_MAX);
        text.map(str::to_owned).ok_or(RULE)
    };
    list.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_survives_writing_and_reading_and_invalid_members_keep_their_default() {
        let set = json!({
            "epg_match_mode": "advanced",
            "epg_match_ignore_prefixes": ["Sling: "],
            "epg_match_threshold": 92,
            "epg_match_after_refresh": true,
        });
        let settings = MatchSettings::from_setting(Some(&set));
        assert_eq!((settings.threshold, settings.is_advanced, settings.after_refresh), (92, true, true));
        assert_eq!(MatchSettings::from_setting(Some(&settings.to_setting().into())), settings);
        let wrong =
            json!({ "epg_match_threshold": 49, "epg_match_mode": "x", "epg_match_ignore_custom": [1] });
        assert_eq!(MatchSettings::from_setting(Some(&wrong)), MatchSettings::default());
    }

    #[test]
    fn ignored_texts_count_in_the_advanced_mode_only() {
        let rules = NameRules { prefixes: vec!["x".to_owned()], ..NameRules::default() };
        let settings = MatchSettings { rules: rules.clone(), ..MatchSettings::default() };
        assert_eq!(settings.clone().in_force(Some("GB")).rules, NameRules::default());
        let advanced = MatchSettings { is_advanced: true, ..settings }.in_force(Some("GB"));
        assert_eq!((advanced.rules, advanced.preferred_country), (rules, Country::from_text("uk")));
    }
}
