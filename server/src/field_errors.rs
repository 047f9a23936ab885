//! Error messages about the fields of a request.

use std::collections::BTreeMap;

use domain::texts::TextCode;
use serde_json::{Map, Value, json};

/// Error messages by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldErrors(BTreeMap<String, Vec<String>>);

/// The key of errors that belong to no single field.
pub const NO_FIELD: &str = "non_field_errors";

/// The member of a body that has the codes of the messages.
pub const CODES: &str = "codes";

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

    /// Returns the body of an answer: the messages by field, and beside them `codes` with the codes of the messages, `null` for
    /// one without a code. A field of that name has no codes.
    pub fn into_body(self) -> Value {
        let codes = self.codes();
        let mut body = self.into_json();
        if let (Some(members), Some(codes)) = (body.as_object_mut(), codes) {
            members.entry(CODES).or_insert(codes);
        }
        body
    }

    /// Returns the codes of the messages by field, if any message has one.
    fn codes(&self) -> Option<Value> {
        let code = |message: &String| TextCode::find(message).map(|it| json!(it)).unwrap_or_default();
        let of_field = |messages: &Vec<String>| messages.iter().map(code).collect::<Vec<Value>>();
        let codes = self.0.iter().map(|(field, messages)| (field.clone(), of_field(messages)));
        let codes: BTreeMap<String, Vec<Value>> =
            codes.filter(|it| it.1.iter().any(|it| !it.is_null())).collect();
        (!codes.is_empty()).then(|| json!(codes))
    }

    pub fn into_json(self) -> Value {
        self.0
            .into_iter()
            .map(|(field, messages)| (field, Value::from(messages)))
            .collect::<Map<_, _>>()
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_stand_beside_the_messages_which_keep_their_shape() {
        let mut errors = FieldErrors::required("name");
        errors.add("name", "Something else.");
        errors.add("url", "Something else.");
        let body = json!({
            "name": ["This field is required.", "Something else."],
            "url": ["Something else."],
            "codes": { "name": [{ "code": "required", "values": {} }, null] },
        });
        assert_eq!(errors.into_body(), body);
        let unknown = FieldErrors::new("url", "Something else.");
        assert_eq!(unknown.clone().into_body(), unknown.into_json());
        let own = FieldErrors::required("codes").into_body();
        assert_eq!(own, json!({ "codes": ["This field is required."] }));
    }
}
