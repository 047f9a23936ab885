//! Values of a template on their way into the text.

use std::borrow::Cow;

use serde_json::Value;

/// Maximum size of a rendered text in bytes.
pub const RENDERED_BYTES_MAX: usize = 256 * 1024;

/// A value on its way into the text.
#[derive(Debug, Clone)]
pub(super) struct Rendering {
    pub(super) value: Value,
    /// Whether the value is a JSON text.
    pub(super) is_json: bool,
}

/// Returns whether a value counts as true: it is not empty, 0, false or null.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(value) => value.as_f64() != Some(0.0),
        Value::String(value) => !value.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::Object(values) => !values.is_empty(),
    }
}

/// Returns the text of a value. That of null is empty.
pub(super) fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}
