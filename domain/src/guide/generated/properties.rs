//! The properties of a generated guide, as the interface writes them (`custom_properties` of a guide source).

use jiff::tz::TimeZone;
use regex::Regex;
use serde_json::{Map, Value};

use super::template::Template;
use super::{GeneratedGuide, NameSource, Texts, when};
use crate::pattern::{self, PATTERN_BYTES_MAX, PatternError};

/// Maximum length of a template, in bytes.
const TEMPLATE_BYTES_MAX: usize = 1_024;
/// Shortest programme, in minutes.
const DURATION_MINUTES_MIN: u32 = 5;
/// Longest programme, in minutes.
const DURATION_MINUTES_MAX: u32 = 24 * 60;
/// Length of a programme by default, in minutes.
const DURATION_MINUTES_DEFAULT: u32 = 180;
/// Highest position of a stream whose name is used.
pub const STREAM_INDEX_MAX: u32 = 1_000;
/// Maximum number of categories, and length of each in characters.
const CATEGORIES_MAX: usize = 20;
const CATEGORY_CHARS_MAX: usize = 100;

/// A property that is not valid. It repeats no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct GuidePropertyError {
    /// Name of the property.
    pub field: &'static str,
    /// The reason, as a sentence for people.
    pub message: String,
}

impl GeneratedGuide {
    /// Checks the properties of a generated guide. Unknown properties are data of clients; `null` and empty texts count as
    /// absent.
    ///
    /// # Errors
    /// Every property that is not valid.
    pub fn from_properties(properties: &Map<String, Value>) -> Result<Self, Vec<GuidePropertyError>> {
        let mut fields = Fields { properties, errors: Vec::new() };
        let zone = fields.zone("timezone");
        let guide = Self {
            title_pattern: fields.pattern("title_pattern"),
            time_pattern: fields.pattern("time_pattern"),
            date_pattern: fields.pattern("date_pattern"),
            event: fields.texts("title_template", "description_template"),
            upcoming: fields.texts("upcoming_title_template", "upcoming_description_template"),
            ended: fields.texts("ended_title_template", "ended_description_template"),
            fallback: fields.texts("fallback_title_template", "fallback_description_template"),
            duration: fields.duration("program_duration"),
            output_zone: fields.zone("output_timezone").or(zone.clone()).unwrap_or(TimeZone::UTC),
            zone: zone.unwrap_or(TimeZone::UTC),
            categories: fields.categories("categories"),
            include_date: fields.flag("include_date"),
            include_live: fields.flag("include_live"),
            include_new: fields.flag("include_new"),
            logo: fields.address("channel_logo_url"),
            poster: fields.address("program_poster_url"),
            name_source: fields.name_source("name_source", "stream_index"),
        };
        if fields.errors.is_empty() { Ok(guide) } else { Err(fields.errors) }
    }
}

/// Reads properties by name and collects their errors.
struct Fields<'a> {
    properties: &'a Map<String, Value>,
    errors: Vec<GuidePropertyError>,
}

impl<'a> Fields<'a> {
    fn refuse(&mut self, field: &'static str, message: impl Into<String>) {
        self.errors.push(GuidePropertyError { field, message: message.into() });
    }

    fn text(&mut self, field: &'static str, bytes_max: usize) -> Option<&'a str> {
        match self.properties.get(field) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text.trim().is_empty() => None,
            Some(Value::String(text)) if text.len() <= bytes_max => Some(text),
            Some(Value::String(_)) => {
                self.refuse(field, format!("Ensure this field has no more than {bytes_max} bytes."));
                None
            }
            Some(_) => {
                self.refuse(field, "Expected a text.");
                None
            }
        }
    }

    fn pattern(&mut self, field: &'static str) -> Option<Regex> {
        let compiled = pattern::compile(self.text(field, PATTERN_BYTES_MAX)?, false);
        compiled.map_err(|error| self.refuse(field, message(&error))).ok()
    }

    fn template(&mut self, field: &'static str) -> Option<Template> {
        self.text(field, TEMPLATE_BYTES_MAX).map(Template::new)
    }

    fn texts(&mut self, title: &'static str, description: &'static str) -> Texts {
        Texts { title: self.template(title), description: self.template(description) }
    }

    fn address(&mut self, field: &'static str) -> Option<Template> {
        let text = self.text(field, TEMPLATE_BYTES_MAX)?.trim();
        if ["http://", "https://"].iter().any(|it| text.starts_with(it)) {
            return Some(Template::new(text));
        }
        self.refuse(field, "Enter an address that begins with http:// or https://.");
        None
    }

    fn zone(&mut self, field: &'static str) -> Option<TimeZone> {
        let found = when::zone(self.text(field, TEMPLATE_BYTES_MAX)?.trim());
        if found.is_none() {
            self.refuse(field, "Unknown time zone. Use a name such as Europe/Berlin.");
        }
        found
    }

    fn flag(&mut self, field: &'static str) -> bool {
        match self.properties.get(field) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.refuse(field, "Expected true or false.");
                false
            }
        }
    }

    /// Returns a whole number, which forms may send as text.
    fn number(&mut self, field: &'static str, least: u32, most: u32) -> Option<u32> {
        let number = match self.properties.get(field)? {
            Value::Null => return None,
            Value::String(text) if text.trim().is_empty() => return None,
            Value::String(text) => text.trim().parse().ok(),
            Value::Number(number) => number.as_u64(),
            _ => None,
        };
        let number = number.and_then(|it| u32::try_from(it).ok()).filter(|it| (least..=most).contains(it));
        if number.is_none() {
            self.refuse(field, format!("Enter a whole number from {least} to {most}."));
        }
        number
    }

    /// Returns the length of a programme in seconds.
    fn duration(&mut self, field: &'static str) -> i64 {
        let minutes = self.number(field, DURATION_MINUTES_MIN, DURATION_MINUTES_MAX);
        i64::from(minutes.unwrap_or(DURATION_MINUTES_DEFAULT)) * 60
    }

    /// Returns categories, which are a text with commas or a list of texts.
    fn categories(&mut self, field: &'static str) -> Vec<String> {
        let texts: Option<Vec<&str>> = match self.properties.get(field) {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::String(text)) => Some(text.split(',').collect()),
            Some(Value::Array(items)) => items.iter().map(Value::as_str).collect(),
            Some(_) => None,
        };
        let Some(texts) = texts else {
            self.refuse(field, "Enter categories with commas between them.");
            return Vec::new();
        };
        let texts: Vec<_> = texts.into_iter().map(str::trim).filter(|it| !it.is_empty()).collect();
        if texts.len() > CATEGORIES_MAX || texts.iter().any(|it| it.chars().count() > CATEGORY_CHARS_MAX) {
            let limits = format!("{CATEGORIES_MAX} categories of {CATEGORY_CHARS_MAX} characters");
            self.refuse(field, format!("Enter at most {limits}."));
            return Vec::new();
        }
        texts.into_iter().map(str::to_owned).collect()
    }

    fn name_source(&mut self, field: &'static str, index: &'static str) -> NameSource {
        let index = self.number(index, 1, STREAM_INDEX_MAX).unwrap_or(1) as usize;
        match self.text(field, TEMPLATE_BYTES_MAX) {
            None | Some("channel") => NameSource::Channel,
            Some("stream") => NameSource::Stream { index },
            Some(_) => {
                self.refuse(field, "Must be channel or stream.");
                NameSource::Channel
            }
        }
    }
}

/// Returns the reason why a pattern is not valid as a sentence, with advice for patterns of other programs.
fn message(error: &PatternError) -> String {
    if *error == PatternError::LookAround {
        return "Look-ahead and look-behind are not supported, because they could take unbounded time. Match the \
                surrounding text itself, and name the wanted part with (?<name>…)."
            .to_owned();
    }
    let text = error.to_string();
    let mut chars = text.chars();
    let first = chars.next().map(char::to_uppercase).into_iter().flatten();
    first.chain(chars).chain(['.']).collect()
}
