//! What a catalogue of films and series states about a title, kept apart from what accounts state.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::title::TitleFacts;

/// The last answer of a catalogue about a title.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Completion {
    /// When the catalogue answered, in milliseconds since 1970.
    pub asked_at: i64,
    /// The [`key`](super::CompletionQuestion::key) of the question. With another one, the answer is outdated.
    pub question: String,
    pub outcome: CompletionOutcome,
    /// Absent unless the title was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<TitleFacts>,
    /// Other values under the names that panels use.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub properties: Map<String, Value>,
}

/// Whether a catalogue knows a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletionOutcome {
    Found,
    /// Several titles fit, so none is taken.
    Ambiguous,
    #[default]
    Unknown,
}
