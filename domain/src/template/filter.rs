//! The filters of values.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::value::{RENDERED_BYTES_MAX, Rendering, is_true, text_of};

/// The characters that `urlencode` changes.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A filter: `{{ name|filter }}`, with arguments as `filter("x")` or `filter:"x"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Every occurrence of the first argument becomes the second one, or nothing without it.
    Replace,
    /// Each word begins with a capital letter, and continues with small ones.
    Title,
    /// The argument takes the place of a value that is empty, 0, false or null.
    Default,
    Upper,
    Lower,
    /// At most this many characters; the last one is an ellipsis if something was cut off.
    Truncate,
    /// For a part of an address.
    UrlEncode,
    /// The JSON of the value.
    ToJson,
}

impl Filter {
    /// The names of all filters.
    pub const ALL: [(&'static str, Self); 8] = [
        ("replace", Self::Replace),
        ("title", Self::Title),
        ("default", Self::Default),
        ("upper", Self::Upper),
        ("lower", Self::Lower),
        ("truncate", Self::Truncate),
        ("urlencode", Self::UrlEncode),
        ("tojson", Self::ToJson),
    ];

    /// Returns the least and the greatest number of arguments.
    pub(super) fn arguments(self) -> (usize, usize) {
        match self {
            Self::Replace => (1, 2),
            Self::Default | Self::Truncate => (1, 1),
            Self::Title | Self::Upper | Self::Lower | Self::UrlEncode | Self::ToJson => (0, 0),
        }
    }

    /// Applies the filter. Texts are no longer than [`RENDERED_BYTES_MAX`].
    pub(super) fn apply(self, value: Rendering, arguments: &[Value]) -> Rendering {
        let argument = |n: usize| arguments.get(n).map(text_of).unwrap_or_default();
        let text = || text_of(&value.value).into_owned();
        let filtered = match self {
            Self::Default if is_true(&value.value) => return value,
            Self::Default => arguments.first().cloned().unwrap_or_default(),
            Self::ToJson => {
                return Rendering { value: Value::String(value.value.to_string()), is_json: true };
            }
            Self::Replace => Value::String(replaced(&text(), &argument(0), &argument(1))),
            Self::Title => Value::String(title(&text())),
            Self::Upper => Value::String(bounded(text().to_uppercase())),
            Self::Lower => Value::String(bounded(text().to_lowercase())),
            Self::Truncate => Value::String(truncated(text(), argument(0).parse().unwrap_or(0))),
            Self::UrlEncode => Value::String(bounded(utf8_percent_encode(&text(), ENCODED).to_string())),
        };
        Rendering { value: filtered, is_json: false }
    }
}

/// Cuts a text that is longer than any output.
fn bounded(mut text: String) -> String {
    if text.len() > RENDERED_BYTES_MAX {
        text.truncate(text.floor_char_boundary(RENDERED_BYTES_MAX));
    }
    text
}

fn replaced(text: &str, old: &str, new: &str) -> String {
    if old.is_empty() {
        return text.to_owned();
    }
    let mut replaced = String::new();
    for (n, part) in text.split(old).enumerate() {
        if n > 0 {
            replaced.push_str(new);
        }
        replaced.push_str(part);
        // A chain of filters would multiply the length each time.
        if replaced.len() > RENDERED_BYTES_MAX {
            return bounded(replaced);
        }
    }
    replaced
}

fn title(text: &str) -> String {
    let (mut title, mut is_inside) = (String::with_capacity(text.len()), false);
    for char in text.chars() {
        match is_inside {
            true => title.extend(char.to_lowercase()),
            false => title.extend(char.to_uppercase()),
        }
        is_inside = char.is_alphanumeric() || (is_inside && char == '\'');
    }
    bounded(title)
}

fn truncated(text: String, n_chars: usize) -> String {
    match n_chars {
        0 => String::new(),
        _ if text.chars().nth(n_chars).is_none() => text,
        _ => text.chars().take(n_chars - 1).chain(['…']).collect(),
    }
}
