//! What commands print.

use std::io::Write as _;

/// Replaces control characters: names come from providers, and a terminal would interpret them.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}

/// Prints a line to standard output; a closed output is ignored.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{}", text.trim_end_matches('\n'));
}

/// Prints the reason of the exit.
pub fn say_error(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
