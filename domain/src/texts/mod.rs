//! Stable codes of the texts that the gateway sends, such as refusals and reasons, for programs that show them in other
//! languages.
//!
//! The texts are made in many places, and some are stored or come from other nodes. Therefore the code of a text is found by
//! its template in `table.txt`. A test compares the table with the sources, so that a text and its template stay the same.

use std::sync::LazyLock;

use serde::Serialize;
use serde_json::{Map, Value, json};

/// Templates of texts by code, one on each line: `code = template`. Lines that begin with `#` are headings.
const TABLE: &str = include_str!("table.txt");
/// Longer texts have no code, so that the comparison is short.
const TEXT_BYTES_MAX: usize = 4096;
/// Maximum depth of texts in texts, such as a cause in a sentence.
const DEPTH_MAX: usize = 5;

static TEMPLATES: LazyLock<Vec<TextTemplate>> = LazyLock::new(|| rows().map(TextTemplate::new).collect());

/// The code of a text, with the values in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextCode {
    /// Stable name of the text.
    pub code: &'static str,
    /// The values of the text by name. Each is a text, or an object with `text`, `code` and `values` if it is a text that
    /// itself has a code.
    pub values: Map<String, Value>,
}

impl TextCode {
    /// Returns the code of a text, if the table contains its template. If several fit, the one counts that explains most of
    /// the text: with the longest fixed parts, including those of the texts in it.
    pub fn find(text: &str) -> Option<Self> {
        find(text, DEPTH_MAX).map(|it| it.code)
    }
}

/// Adds the code of a text as `code` and `values` to the object that contains the text in this member. An object that has a
/// code of its own stays as it is.
pub fn add_code(object: &mut Value, member: &str) {
    let Some(members) = object.as_object_mut().filter(|it| !it.contains_key("code")) else { return };
    let Some(found) = members.get(member).and_then(Value::as_str).and_then(TextCode::find) else { return };
    members.insert("code".to_owned(), found.code.into());
    members.insert("values".to_owned(), found.values.into());
}

/// Returns all codes with their templates, in the order of the table.
pub fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.lines().filter(|it| !it.starts_with('#')).filter_map(|it| it.split_once(" = "))
}

/// The code of a text, with the number of bytes of the text that templates explain.
struct Recognised {
    code: TextCode,
    n_explained: usize,
}

fn find(text: &str, depth: usize) -> Option<Recognised> {
    if depth == 0 || text.is_empty() || text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let fitting = TEMPLATES.iter().filter_map(|it| Some((it, it.read(text, depth)?)));
    fitting.max_by_key(|(template, it)| (it.n_explained, template.n_fixed)).map(|it| it.1)
}

/// The kind of a value in a template, which follows its name and a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    /// Any text.
    Any,
    /// `number`: digits, which may have a sign and decimals.
    Number,
    /// `word`: letters, digits and underscores.
    Word,
    /// `text`: a text that may have a code.
    Text,
    /// `coded`: a text that has a code.
    Coded,
}

impl ValueKind {
    /// Returns the member of the values and the explained bytes of it, if the kind allows the text.
    fn read(self, text: &str, depth: usize) -> Option<(Value, usize)> {
        let is_number = || text.trim_start_matches('-').bytes().all(|it| it.is_ascii_digit() || it == b'.');
        let is_word = || text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
        match self {
            Self::Number if text.is_empty() || !is_number() => return None,
            Self::Word if text.is_empty() || !is_word() => return None,
            Self::Any | Self::Number | Self::Word => return Some((text.into(), 0)),
            Self::Text | Self::Coded => {}
        }
        let text = text.trim_start();
        match find(text, depth - 1) {
            Some(Recognised { code: TextCode { code, values }, n_explained }) => {
                Some((json!({ "text": text, "code": code, "values": values }), n_explained))
            }
            None if self == Self::Coded => None,
            None => Some((text.into(), 0)),
        }
    }
}

/// A row of the table: fixed parts with values between them.
#[derive(Debug)]
struct TextTemplate {
    code: &'static str,
    /// The part before the first value.
    first: &'static str,
    /// The values, each with the fixed part that follows it. Only the last one may be empty.
    rest: Vec<(&'static str, ValueKind, &'static str)>,
    /// Bytes of the fixed parts.
    n_fixed: usize,
}

impl TextTemplate {
    fn new((code, template): (&'static str, &'static str)) -> Self {
        let mut parts = template.split('{');
        let first = parts.next().unwrap_or_default();
        let value = |part: &'static str| {
            let (name, fixed) = part.split_once('}').unwrap_or((part, ""));
            let (name, kind) = name.split_once(':').unwrap_or((name, ""));
            let kind = match kind {
                "number" => ValueKind::Number,
                "word" => ValueKind::Word,
                "text" => ValueKind::Text,
                "coded" => ValueKind::Coded,
                _ => ValueKind::Any,
            };
            (name, kind, fixed)
        };
        let rest: Vec<_> = parts.map(value).collect();
        let n_fixed = first.len() + rest.iter().map(|it| it.2.len()).sum::<usize>();
        Self { code, first, rest, n_fixed }
    }

    /// Returns the code with the values of a text that fits. Each value ends where the fixed part after it occurs first; the last fixed part
    /// is the end of the text.
    fn read(&self, text: &str, depth: usize) -> Option<Recognised> {
        let mut left = text.strip_prefix(self.first)?;
        let (mut values, mut n_explained) = (Map::new(), self.n_fixed);
        for (n, (name, kind, fixed)) in self.rest.iter().enumerate() {
            let (value, after) = match n + 1 == self.rest.len() {
                true => (left.strip_suffix(fixed)?, ""),
                false => left.split_once(fixed)?,
            };
            let (value, n) = kind.read(value, depth)?;
            values.insert((*name).to_owned(), value);
            n_explained += n;
            left = after;
        }
        left.is_empty().then_some(Recognised { code: TextCode { code: self.code, values }, n_explained })
    }
}

#[cfg(test)]
mod tests;
