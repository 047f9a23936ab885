//! Error messages about the fields of a request.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Error messages by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldErrors(BTreeMap<String, Vec<String>>);

/// The key of errors that belong to no single field.
pub const NO_FIELD: &str = "non_field_errors";

/// The message for a missing field.
pub const REQUIRED: &str = "This field is required.";

impl FieldErrors {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        let mut errors = Self::default();
        errors.add(field, message);
        errors
    }

    /// Returns the error for a missing field.
    pub fn required(field: &str) -> Self {
        Self::new(field, REQUIRED)
    }

    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.entry(field.into()).or_default().push(message.into());
    }

    pub fn append(&mut self, other: Self) {
        for (field, messages) in other.0 {
            self.0.entry(field).or_default().extend(messages);
        }
    }

    /// Rewrites every message.
    pub fn map(self, message: impl Fn(&str) -> String) -> Self {
        let of_field = |(field, messages): (String, Vec<String>)| {
            (field, messages.iter().map(|it| message(it)).collect())
        };
        FieldErrors(self.0.into_iter().map(of_field).collect())
    }

    /// Returns the errors of an object as those of the field that contains it.
    pub fn inside(self, field: &str) -> Self {
        let messages = self.0.into_iter();
        let messages = messages.flat_map(|(name, messages)| {
            messages.into_iter().map(move |it| if name == NO_FIELD { it } else { format!("{name}: {it}") })
        });
        FieldErrors(BTreeMap::from([(field.to_owned(), messages.collect())]))
    }

    /// Returns the value if there are no errors.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }

    /// Returns the first message with its field, for an object inside of a field, where only one message fits.
    pub fn first_message(self) -> String {
        let first =
            self.0.into_iter().find_map(|(field, messages)| Some((field, messages.into_iter().next()?)));
        match first {
            Some((field, message)) if field == NO_FIELD => message,
            Some((field, message)) => format!("{field}: {message}"),
            None => "This is not valid.".to_owned(),
        }
    }

    pub fn into_json(self) -> Value {
        self.0
            .into_iter()
            .map(|(field, messages)| (field, Value::from(messages)))
            .collect::<Map<_, _>>()
            .into()
    }
}
