//! Parses duration, attributes and name of an `#EXTINF` line.
//!
//! The format cannot escape a quote inside a value, but some playlists contain one. Therefore a quote ends a value only
//! if a valid continuation follows: the end, a comma, or another `key=`.

use crate::playlist::adult;

/// The remainder after the attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remainder<'a> {
    /// The text after the comma that ends the attributes; without a comma, the words that are not attributes.
    pub(crate) name: &'a str,
    /// A value has no closing quote.
    pub(crate) is_unterminated: bool,
}

/// Splits the duration off the text after `#EXTINF`.
pub(crate) fn duration(text: &str) -> (Option<f64>, &str) {
    let text = text.trim_start();
    let text = text.strip_prefix(':').unwrap_or(text).trim_start();
    let end = text.find(|it: char| !(it.is_ascii_digit() || "+-.".contains(it))).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    // `3sat` without a duration is a name; `-1tvg-id="a"` is a duration and an attribute.
    let is_apart = rest.is_empty() || rest.starts_with(|it: char| it == ',' || it.is_whitespace());
    if !is_apart && key(rest).is_none() {
        return (None, text);
    }
    (number.parse().ok(), rest)
}

/// Calls `take` with key and value of each attribute, in the order found.
///
/// Runs in linear time: no byte is read more than a few times.
pub(crate) fn attributes<'a>(text: &'a str, mut take: impl FnMut(&'a str, &'a str)) -> Remainder<'a> {
    let mut rest = text;
    let mut words = None;
    let mut is_unterminated = false;
    loop {
        rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix(',') {
            if begins_known_attribute(behind.trim_start()) {
                rest = behind;
                continue;
            }
            return Remainder { name: behind, is_unterminated };
        }
        if rest.is_empty() {
            return Remainder { name: words.unwrap_or_default(), is_unterminated };
        }
        if let Some((key, behind)) = key(rest) {
            let value = value(behind);
            take(key, value.text);
            is_unterminated |= value.is_unterminated;
            rest = value.behind;
            words = None;
        } else {
            words = words.or(Some(rest));
            rest = &rest[end_of_word(rest)..];
        }
    }
}

/// Some playlists have a comma after the duration or between the attributes. Only names that begin with a well-known
/// key, an equals sign and a quote are mistaken for an attribute.
fn begins_known_attribute(text: &str) -> bool {
    const BEGINNINGS: [&str; 9] =
        ["tvg-", "tvc-", "tv-chno", "ch-number", "group-title", "channel-", "catchup", "radio", "timeshift"];
    key(text).is_some_and(|(key, behind)| {
        let key = key.to_ascii_lowercase();
        (BEGINNINGS.iter().any(|it| key.starts_with(it)) || adult::is_mark(&key))
            && behind.trim_start().starts_with(['"', '\''])
    })
}

/// Returns a key and the text after its `=`.
fn key(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|it| !is_key_char(it)).unwrap_or(text.len());
    let behind = text[end..].trim_start().strip_prefix('=')?;
    (end > 0).then_some((&text[..end], behind))
}

fn is_key_char(it: char) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.' | ':')
}

fn end_of_word(text: &str) -> usize {
    text.find(|it: char| it == ',' || it.is_whitespace()).unwrap_or(text.len())
}

struct Value<'a> {
    text: &'a str,
    behind: &'a str,
    is_unterminated: bool,
}

/// Parses the value at the beginning of the text.
fn value(text: &str) -> Value<'_> {
    let trimmed = text.trim_start();
    for quote in ['"', '\''] {
        if let Some(inside) = trimmed.strip_prefix(quote) {
            return quoted(inside, quote);
        }
    }
    let (text, behind) = text.split_at(end_of_word(text));
    Value { text, behind, is_unterminated: false }
}

/// Parses a quoted value, starting after the opening quote.
fn quoted(text: &str, quote: char) -> Value<'_> {
    let ends_at = |at: usize| Value { text: &text[..at], behind: &text[at + 1..], is_unterminated: false };
    let mut first = None;
    for at in memchr::memchr_iter(quote as u8, text.as_bytes()) {
        if could_follow_a_value(&text[at + 1..]) {
            return ends_at(at);
        }
        // This quote opens the value of the next attribute, so this value ended before.
        if let Some(start) = start_of_next_key(&text[..at]) {
            return first.map_or_else(
                || Value { text: &text[..start], behind: &text[start..], is_unterminated: true },
                ends_at,
            );
        }
        first = first.or(Some(at));
    }
    first.map_or_else(
        || {
            // Without a closing quote, the text after a comma is more likely the name.
            let (text, behind) = text.split_at(text.find(',').unwrap_or(text.len()));
            Value { text, behind, is_unterminated: true }
        },
        ends_at,
    )
}

fn could_follow_a_value(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty() || text.starts_with(',') || key(text).is_some()
}

/// Returns the start of `key=` at the end of the text, if it is separated from the text before.
fn start_of_next_key(text: &str) -> Option<usize> {
    let text = text.trim_end().strip_suffix('=')?.trim_end();
    let before = text.trim_end_matches(is_key_char);
    let is_key = before.len() < text.len();
    (is_key && before.ends_with(|it: char| it.is_whitespace() || matches!(it, '"' | '\'' | ',')))
        .then_some(before.len())
}
