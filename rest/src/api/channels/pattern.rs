//! Regular expressions of clients that change or select names.

use domain::pattern::{Pattern, PatternError};
use server::field_errors::FieldErrors;

/// Compiles a pattern of a client. An error belongs to the field that contains it.
pub(super) fn compile(find: &str, replace: &str, flags: &str) -> Result<Pattern, FieldErrors> {
    let mut prefix = "";
    for flag in flags.chars() {
        match flag.to_ascii_lowercase() {
            'i' => prefix = "(?i)",
            'g' | ' ' => {}
            other => {
                return Err(FieldErrors::new(
                    "flags",
                    format!("\"{other}\" is not a valid flag. Use i or g."),
                ));
            }
        }
    }
    Pattern::new(&format!("{prefix}{find}"), replace).map_err(|error| {
        let field = match error {
            PatternError::NoSuchGroup(_) | PatternError::Unclosed | PatternError::Escape(_) => "replace",
            PatternError::TooLong("replacement") => "replace",
            _ => "find",
        };
        FieldErrors::new(field, error.to_string())
    })
}
