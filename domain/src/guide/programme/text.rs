//! Texts as they are stored: one space between words, no control characters, a bounded length.

use crate::playlist::m3u::text::windows_1252;

/// Longer titles, names and other texts of one line are truncated.
pub const TEXT_CHARS_MAX: usize = 1_000;
/// Longer descriptions and reviews are truncated.
pub const DESCRIPTION_CHARS_MAX: usize = 16_000;
/// A longer address is dropped, because a truncated one would be another one.
pub(super) const ADDRESS_BYTES_MAX: usize = 4_096;
/// Languages, dates and other short values.
pub(super) const VALUE_CHARS_MAX: usize = 100;
/// More entries of one list are dropped.
pub const ENTRIES_MAX: usize = 250;

/// Returns a text in one line: white space and control characters between words become one space.
pub(crate) fn line(text: &str, chars_max: usize) -> String {
    let text = text.trim();
    let mut line = if has_only_single_spaces(text) {
        text.to_owned()
    } else {
        let mut line = String::with_capacity(text.len());
        push_line(&mut line, text);
        line
    };
    truncate(&mut line, chars_max);
    line
}

/// Returns a text that can have several lines and, between paragraphs, an empty one.
pub(super) fn lines(text: &str, chars_max: usize) -> String {
    if !text.contains('\n') {
        return line(text, chars_max);
    }
    let mut lines = String::with_capacity(text.len());
    let mut n_breaks = 0;
    for part in text.trim().lines().map(str::trim) {
        let start = lines.len();
        push_line(&mut lines, part);
        if lines.len() == start {
            n_breaks += 1;
            continue;
        }
        if start > 0 {
            lines.insert_str(start, if n_breaks > 0 { "\n\n" } else { "\n" });
        }
        n_breaks = 0;
    }
    truncate(&mut lines, chars_max);
    lines
}

/// Returns an address; `None` if there is none or it is too long.
pub(crate) fn address(text: &str) -> Option<String> {
    let text = text.trim();
    let is_address = !text.is_empty() && text.len() <= ADDRESS_BYTES_MAX;
    is_address.then(|| text.replace(|it: char| it.is_control() || it.is_whitespace(), ""))
}

/// A quick look at the bytes. 0xC2 begins the control characters above ASCII, among others.
fn has_only_single_spaces(text: &str) -> bool {
    let mut before = 0;
    !text.bytes().any(|it| {
        let is_double = it == b' ' && before == b' ';
        before = it;
        is_double || it < b' ' || it == 0x7F || it == 0xC2 || it == 0xEF
    })
}

fn push_line(out: &mut String, text: &str) {
    let start = out.len();
    let mut is_after_space = false;
    for it in text.chars() {
        let it = char_from_html(it);
        let is_removed = it == ' ' || it.is_control() || matches!(it, '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}');
        if is_removed || (out.len() == start && it.is_whitespace()) {
            is_after_space = true;
            continue;
        }
        if std::mem::take(&mut is_after_space) && out.len() > start {
            out.push(' ');
        }
        out.push(it);
    }
    let end = out[start..].trim_end().len();
    out.truncate(start + end);
}

/// Numbers of characters from 128 to 159 mean Windows-1252, as in HTML: guides write `&#146;` for an apostrophe.
fn char_from_html(it: char) -> char {
    match it {
        '\u{80}'..='\u{9F}' => windows_1252(it as u8),
        it => it,
    }
}

fn truncate(text: &mut String, chars_max: usize) {
    if text.len() > chars_max
        && let Some((end, _)) = text.char_indices().nth(chars_max)
    {
        text.truncate(end);
    }
    text.truncate(text.trim_end().len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_single_spaces_and_a_bounded_length() {
        for (text, expected) in [
            ("", ""),
            (" \t\n", ""),
            ("a", "a"),
            ("  a \r\n  b\u{0}\u{81}c\u{FFFE}d  ", "a b c d"),
            ("it\u{92}s", "it’s"),
            ("Ä\u{A0}ö", "Ä\u{A0}ö"),
            ("\u{FEFF}\u{2003}a", "a"),
            ("12345678901", "1234567890"),
            ("123456789 1", "123456789"),
            ("äöüäöüäöüäöü", "äöüäöüäöüä"),
        ] {
            assert_eq!(line(text, 10), expected, "{text:?}");
            assert_eq!(line(expected, 10), expected, "a clean text stays as it is");
        }
    }

    #[test]
    fn a_description_keeps_its_lines_and_paragraphs() {
        for (text, expected) in
            [("\n\t a  b\r\nc\n \n\n d\n", "a b\nc\n\nd"), ("a\nb", "a\nb"), ("a\n\u{1}\nb", "a\n\nb")]
        {
            assert_eq!(lines(text, 100), expected, "{text:?}");
            assert_eq!(lines(expected, 100), expected, "a clean text stays as it is");
        }
        assert_eq!(lines("a\nb\nc", 4), "a\nb");
    }

    #[test]
    fn an_address_is_dropped_if_it_is_too_long() {
        assert_eq!(address(" http://h/a\n b "), Some("http://h/ab".to_owned()));
        assert_eq!(address("  "), None);
        assert_eq!(address(&"a".repeat(ADDRESS_BYTES_MAX + 1)), None);
    }
}
