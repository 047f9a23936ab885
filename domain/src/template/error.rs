//! Faults of templates.

use std::fmt;

/// A fault of a template, as a message for its author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// The first line is 1.
    pub line: usize,
    /// The first character of a line is 1.
    pub column: usize,
    pub reason: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.reason)
    }
}

impl std::error::Error for TemplateError {}

impl TemplateError {
    pub(super) fn at(source: &str, offset: usize, reason: impl Into<String>) -> Self {
        let before = source.get(..offset).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |it| it + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            reason: reason.into(),
        }
    }
}
