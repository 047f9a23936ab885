//! The core setting by which films and series are completed.

use serde_json::{Map, Value, json};

use crate::plugin::MASK;
use crate::secret::Secret;

/// Member with the key, or with the mask for one that has a [record](crate::service_key::ServiceKey) of its own.
pub const API_KEY_MEMBER: &str = "tmdb_api_key";
/// Maximum length of the key and of the address, in bytes.
const TEXT_BYTES_MAX: usize = 1_024;
const DEFAULT_ADDRESS: &str = "https://api.themoviedb.org/3";
/// Limits of the titles of one run.
const TITLES_MIN: u32 = 1;
const TITLES_MAX: u32 = 100_000;

/// How films and series are completed; not at all by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionSettings {
    pub is_enabled: bool,
    /// The operator's own: a key of version 3, or a token of version 4. `None` without one.
    pub api_key: Option<Secret>,
    /// Such as `de-DE` or `de`.
    pub language: String,
    /// Address of the API without a slash at its end. Where the service is blocked, operators use a mirror of their own.
    pub address: String,
    /// Maximum number of titles that one run asks for.
    pub titles_per_run: u32,
}

impl Default for CompletionSettings {
    fn default() -> Self {
        Self {
            is_enabled: false,
            api_key: None,
            language: "en-US".to_owned(),
            address: DEFAULT_ADDRESS.to_owned(),
            titles_per_run: 2_000,
        }
    }
}

impl CompletionSettings {
    /// Reads the value of the setting. Missing and invalid members have their defaults.
    pub fn from_setting(value: Option<&Value>) -> Self {
        let mut settings = Self::default();
        for (name, value) in value.and_then(Value::as_object).into_iter().flatten() {
            // A member that was valid once may be invalid in this version.
            let _ = settings.set(name, value);
        }
        settings
    }

    /// Returns whether the API has another address than the service itself.
    pub fn is_mirror(&self) -> bool {
        self.address != DEFAULT_ADDRESS
    }

    /// Changes one member of the setting.
    ///
    /// # Errors
    /// The reason why the member is invalid, worded to follow its name. Contains no value.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), &'static str> {
        match name {
            "completion_enabled" => self.is_enabled = value.as_bool().ok_or("must be true or false")?,
            API_KEY_MEMBER if value.is_null() => self.api_key = None,
            API_KEY_MEMBER => {
                let key = value.as_str().map(str::trim).filter(|it| is_key(it));
                let key = key.ok_or("must be an API key or an access token of TMDB")?;
                self.api_key = Some(key).filter(|it| !it.is_empty()).map(Secret::new);
            }
            "completion_language" => {
                let language = value.as_str().filter(|it| is_language(it));
                language.ok_or("must be a language, such as de or de-DE")?.clone_into(&mut self.language);
            }
            "tmdb_address" => {
                let address = value.as_str().map(|it| it.trim().trim_end_matches('/'));
                let address = address.filter(|it| is_address(it));
                address
                    .ok_or("must be an http or https address without login, query and fragment")?
                    .clone_into(&mut self.address);
            }
            "completion_titles_per_run" => {
                let n = value.as_u64().and_then(|it| u32::try_from(it).ok());
                let n = n.filter(|it| (TITLES_MIN..=TITLES_MAX).contains(it));
                self.titles_per_run = n.ok_or("must be a number from 1 to 100000")?;
            }
            _ => return Err("is not a setting"),
        }
        Ok(())
    }

    /// Returns the value of the setting, without the key.
    pub fn to_setting(&self) -> Map<String, Value> {
        let value = json!({
            "completion_enabled": self.is_enabled,
            API_KEY_MEMBER: "",
            "completion_language": self.language,
            "tmdb_address": self.address,
            "completion_titles_per_run": self.titles_per_run,
        });
        value.as_object().cloned().unwrap_or_default()
    }
}

/// Replaces the key in a value of the setting, so that it can be shown.
pub fn masked(mut value: Map<String, Value>) -> Map<String, Value> {
    if let Some(key) = value.get_mut(API_KEY_MEMBER).filter(|it| it.as_str() != Some("") && !it.is_null()) {
        *key = MASK.into();
    }
    value
}

fn is_key(text: &str) -> bool {
    text.len() <= TEXT_BYTES_MAX && text != MASK && text.bytes().all(|it| it.is_ascii_graphic())
}

fn is_language(text: &str) -> bool {
    let is_code = |it: &str| it.len() == 2 && it.bytes().all(|it| it.is_ascii_lowercase());
    match text.split_once('-') {
        None => is_code(text),
        Some((language, country)) => {
            is_code(language) && country.len() == 2 && country.bytes().all(|it| it.is_ascii_uppercase())
        }
    }
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.and_then(|it| it.split('/').next()).unwrap_or_default();
    !host.is_empty()
        && text.len() <= TEXT_BYTES_MAX
        && text.bytes().all(|it| it.is_ascii_graphic() && !matches!(it, b'?' | b'#' | b'@' | b'\\' | b'"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_read_from_their_value_and_the_key_is_never_shown() {
        let value = json!({
            "completion_enabled": true, "tmdb_api_key": " abc.def ", "completion_language": "de-DE",
            "tmdb_address": "http://127.0.0.1:8080/3/", "completion_titles_per_run": 5, "old": 1,
        });
        let settings = CompletionSettings::from_setting(Some(&value));
        assert_eq!(settings.api_key.as_ref().map(Secret::expose), Some("abc.def"));
        assert_eq!((&*settings.language, &*settings.address), ("de-DE", "http://127.0.0.1:8080/3"));
        let shown = masked(value.as_object().unwrap().clone());
        assert_eq!(shown[API_KEY_MEMBER], MASK);
        let texts = format!("{settings:?} {:?} {shown:?}", settings.to_setting());
        assert!(!texts.contains("abc.def"), "{texts}");
        assert!(!CompletionSettings::from_setting(None).is_enabled);
        let none = json!({ "tmdb_api_key": "" });
        assert_eq!(CompletionSettings::from_setting(Some(&none)).api_key, None);
        assert_eq!(masked(none.as_object().unwrap().clone())[API_KEY_MEMBER], "");
    }

    #[test]
    fn an_invalid_member_is_refused() {
        for (name, value) in [
            ("completion_enabled", json!("yes")),
            ("tmdb_api_key", json!("a b")),
            ("tmdb_api_key", json!(MASK)),
            ("tmdb_api_key", json!(5)),
            ("tmdb_api_key", json!("x".repeat(2_000))),
            ("completion_language", json!("german")),
            ("completion_language", json!("de-de")),
            ("completion_language", json!("")),
            ("tmdb_address", json!("api.themoviedb.org/3")),
            ("tmdb_address", json!("https://u:p@example.com/3")),
            ("tmdb_address", json!("https://example.com/3?key=1")),
            ("tmdb_address", json!("https:///3")),
            ("completion_titles_per_run", json!(0)),
            ("completion_titles_per_run", json!(100_001)),
            ("completion_titles_per_run", json!("5")),
            ("other", json!(1)),
        ] {
            assert!(CompletionSettings::default().set(name, &value).is_err(), "{name} {value}");
        }
    }
}
