//! Templates: the texts that integrations send, with values of an event.
//!
//! ```text
//! {"text": "{{ channel_name|upper }}{% if reason %}: {{ reason|truncate:80 }}{% endif %}"}
//! ```
//!
//! The language has values with filters, conditions and comments (`{# … #}`), and nothing that repeats, stores or calls.
//! So the work and the output of a template are bounded by its own length and that of the values. In a JSON text a value
//! is written for its place: inside a string without quotes and with escapes, elsewhere as a JSON value.
//!
//! ```text
//! source ─► lexer ─► parser ─► Template ─► render ─► text
//! ```

mod branches;
mod error;
mod filter;
mod lexer;
mod node;
mod parser;
mod render;
#[cfg(test)]
mod tests;
mod value;

use serde_json::{Map, Value};

use self::node::Node;

pub use self::error::TemplateError;
pub use self::filter::Filter;
pub use self::value::RENDERED_BYTES_MAX;

/// Maximum size of a template in bytes.
pub const TEMPLATE_BYTES_MAX: usize = 64 * 1024;

/// A template that was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    source: String,
    nodes: Vec<Node>,
}

/// The text that a template makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    /// Whether the text is JSON.
    pub is_json: bool,
}

impl Rendered {
    /// Returns whether there is nothing to send.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

impl Template {
    /// Reads a template that may use the values with these names, or any values without a list.
    ///
    /// # Errors
    /// It is too long, its syntax is wrong, or it uses a value or a filter that does not exist.
    pub fn parse(source: &str, names: Option<&[&str]>) -> Result<Self, TemplateError> {
        if source.len() > TEMPLATE_BYTES_MAX {
            let reason = format!("the template has more than {TEMPLATE_BYTES_MAX} bytes");
            return Err(TemplateError::at(source, 0, reason));
        }
        let nodes = parser::parse(source, names)?;
        Ok(Self { source: source.to_owned(), nodes })
    }

    /// Renders the template. Names without a value are empty.
    ///
    /// # Errors
    /// The text is longer than [`RENDERED_BYTES_MAX`].
    pub fn render(&self, values: &Map<String, Value>) -> Result<Rendered, TemplateError> {
        let rendered = render::render(&self.nodes, values).map_err(|at| self.too_long(at))?;
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&rendered.text).is_ok();
        Ok(Rendered { text: rendered.text, is_json })
    }

    /// Renders the template with values that could break it, for an author: quotes, line breaks, markup, long texts and none.
    /// A text that begins as JSON has to be JSON with all of them, also in the branches that the sample does not reach.
    ///
    /// # Errors
    /// It is not, or too long.
    pub fn check(&self, sample: &Map<String, Value>) -> Result<(), TemplateError> {
        for hostile in HOSTILE_TEXTS {
            let values = sample.iter().map(|(name, value)| {
                let value = match value {
                    Value::String(_) => Value::String(hostile.to_owned()),
                    other => other.clone(),
                };
                (name.clone(), value)
            });
            self.check_with(&values.collect())?;
        }
        for values in branches::samples(&self.nodes, sample) {
            self.check_with(&values)?;
        }
        self.check_with(sample)
    }

    fn check_with(&self, values: &Map<String, Value>) -> Result<(), TemplateError> {
        let rendered = render::render(&self.nodes, values).map_err(|at| self.too_long(at))?;
        if !rendered.begins_as_json {
            return Ok(());
        }
        let Err(fault) = serde_json::from_str::<serde::de::IgnoredAny>(&rendered.text) else { return Ok(()) };
        let offset = rendered.source_of(offset_of(&rendered.text, fault.line(), fault.column()));
        let cause = fault.to_string();
        let cause = cause.split(" at line ").next().unwrap_or_default();
        let reason = format!("with some values the text is not valid JSON: {cause}");
        Err(TemplateError::at(&self.source, offset, reason))
    }

    fn too_long(&self, offset: usize) -> TemplateError {
        let reason = format!("the text becomes longer than {RENDERED_BYTES_MAX} bytes");
        TemplateError::at(&self.source, offset, reason)
    }
}

/// Texts that break templates which do not expect them.
const HOSTILE_TEXTS: [&str; 5] = [
    "",
    "\"quoted\" \\ back\\\\slash\\",
    "two\nlines\r\n\tand \u{0} \u{1b}[0m \u{2028}",
    "</script>&amp;<b>'{{ x }}{% if %}%41$1${a}",
    "ünïcödé 🎬 \u{202e}abc",
];

/// Returns the offset of a position that serde_json names.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let line_start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (line_start + column.saturating_sub(1)).min(text.len())
}
