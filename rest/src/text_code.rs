//! The code of a text in an answer, beside the text.

use domain::texts::TextCode;
use resource_derive::View;
use serde::Serialize;
use serde_json::{Map, Value};

/// The code of a text for people, for programs that show it in another language.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "TextCode")]
pub(crate) struct TextCodeView {
    /// Stable name of the text; `TextCodeName` lists those of this version.
    #[field(example = "account_full")]
    code: &'static str,
    /// The values in the text by name. A value that is a text with a code of its own is an object with `text`, `code` and
    /// `values`.
    values: Map<String, Value>,
}

impl TextCodeView {
    /// Returns the code of a text, if it has one.
    pub(crate) fn find(text: &str) -> Option<Self> {
        TextCode::find(text).map(|TextCode { code, values }| Self { code, values })
    }
}
