//! Tags in guides: where they end, and their attributes, also of tags that are damaged.

use memchr::{memchr, memchr2, memchr3};

use super::schema;

/// A start tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) length: usize,
    /// It ends with `/>`.
    pub(super) is_empty: bool,
    /// It is not damaged, as far as its end depends on it, and has no more attributes than allowed.
    pub(super) is_plain: bool,
}

/// Where the value of an attribute ends.
enum ValueEnd {
    /// At this quote. The value contains no `<` if `is_plain`.
    Quote { at: usize, is_plain: bool },
    /// Nowhere: other markup begins here.
    Markup(usize),
}

/// Returns the length of the name that begins here.
pub(super) fn name_length(bytes: &[u8]) -> usize {
    let is_end = |it: &u8| it.is_ascii_whitespace() || matches!(it, b'/' | b'>' | b'<' | b'"' | b'\'' | b'=');
    bytes.iter().position(is_end).unwrap_or(bytes.len())
}

/// Finds the end of the start tag that begins here; `None` if it needs more bytes.
///
/// A quote opens a value only after `=`. Values can contain `>`. A tag whose quote is never closed ends at its first `>`, and
/// one without any `>` where other markup begins.
pub(super) fn tag(bytes: &[u8], attributes_max: usize) -> Option<Tag> {
    let mut at = 1;
    let mut n_attributes = 0;
    let mut is_plain = true;
    loop {
        let rest = bytes.get(at..)?;
        let found = memchr3(b'>', b'"', b'\'', rest);
        if let Some(markup) = memchr(b'<', &rest[..found.unwrap_or(rest.len())]) {
            return Some(cut_tag(bytes, at + markup));
        }
        let found = at + found?;
        at = found + 1;
        if bytes[found] == b'>' {
            return Some(Tag { length: at, is_empty: bytes[found - 1] == b'/', is_plain });
        }
        if bytes[..found].trim_ascii_end().last() != Some(&b'=') {
            is_plain = false;
            continue;
        }
        match value_end(bytes, at, bytes[found])? {
            ValueEnd::Quote { at: end, is_plain: is_plain_value } => {
                at = end + 1;
                n_attributes += 1;
                is_plain &= is_plain_value && n_attributes <= attributes_max;
            }
            ValueEnd::Markup(markup) => return Some(cut_tag(bytes, markup)),
        }
    }
}

/// Returns the tag that ends before other markup at this position.
fn cut_tag(bytes: &[u8], markup: usize) -> Tag {
    let length = memchr(b'>', &bytes[..markup]).map_or(markup, |end| end + 1);
    let is_empty = bytes[..length].ends_with(b"/>");
    Tag { length, is_empty, is_plain: false }
}

/// Finds the end of a value whose quote was opened before `from`.
fn value_end(bytes: &[u8], from: usize, quote: u8) -> Option<ValueEnd> {
    let mut at = from;
    loop {
        let found = at + memchr2(quote, b'<', &bytes[at..])?;
        if bytes[found] == quote {
            return Some(ValueEnd::Quote { at: found, is_plain: at == from });
        }
        // A `<` in a value is a mistake, but a value with other markup has lost its end.
        if memchr(b'>', &bytes[at..found]).is_some() || is_markup(&bytes[found..])? {
            return Some(ValueEnd::Markup(found));
        }
        at = found + 1;
    }
}

/// Returns whether a tag that guides have begins at this `<`; `None` if that needs more bytes.
fn is_markup(bytes: &[u8]) -> Option<bool> {
    let first = bytes.get(1)?;
    if !first.is_ascii_alphabetic() {
        return Some(matches!(first, b'/' | b'!' | b'?'));
    }
    let name = &bytes[1..];
    let length = name_length(name);
    let is_whole = length < name.len();
    let is_known = || str::from_utf8(&name[..length]).is_ok_and(schema::is_known);
    if is_whole { Some(is_known()) } else { None }
}

/// Calls `visit` with name and value of each attribute of a tag, which comes without its delimiters and its name.
///
/// Also read: values without quotes, with quotes in them, without one of their two quotes, and without a space after them.
/// Attributes without a value are left out.
/// At most `n_max` are read.
pub(super) fn each_attribute<'a>(mut rest: &'a str, n_max: usize, mut visit: impl FnMut(&'a str, &'a str)) {
    let is_name_start = |it: char| it.is_ascii_alphabetic() || it == '_';
    let mut n_read = 0;
    while let Some(start) = rest.find(is_name_start).filter(|_| n_read < n_max) {
        rest = &rest[start..];
        let length = name_length(rest.as_bytes());
        let name = &rest[..length];
        rest = rest[length..].trim_ascii_start();
        let Some(value) = rest.strip_prefix('=') else { continue };
        let value = value.trim_ascii_start();
        let quote = value.chars().next().filter(|it| matches!(it, '"' | '\''));
        let (value, after) = match quote {
            Some(quote) => quoted_value(&value[1..], quote),
            None => {
                let (value, after) = value.split_at(next_attribute(value).unwrap_or(value.len()));
                (value.trim_ascii().trim_matches(['"', '\'']), after)
            }
        };
        visit(name, value.trim_ascii());
        rest = after;
        n_read += 1;
    }
}

/// Splits a value whose quote was opened from what follows.
fn quoted_value(text: &str, quote: char) -> (&str, &str) {
    // The next attribute begins within the value if the quote was never closed.
    let lost_end = next_attribute(text).unwrap_or(text.len());
    let mut at = 0;
    while let Some(found) = text[at..].find(quote) {
        let end = at + found;
        let after = &text[end + 1..];
        if end > lost_end && text[..end].trim_ascii_end().ends_with('=') {
            break;
        }
        if ends_value(after) {
            return (text[..end].trim_end_matches(quote), after);
        }
        at = end + 1;
    }
    let (value, after) = text.split_at(lost_end);
    (value.trim_ascii_end().trim_end_matches(['"', '\'']), after)
}

/// Returns whether a value can end before this text: at the end of the tag, a space, or another attribute.
fn ends_value(text: &str) -> bool {
    let name = name_length(text.as_bytes());
    text.starts_with(|it: char| it.is_ascii_whitespace() || it == '/')
        || text.is_empty()
        || (name > 0 && text[name..].trim_ascii_start().starts_with("=\""))
        || (name > 0 && text[name..].trim_ascii_start().starts_with("='"))
}

/// Returns where the next attribute begins: a space, a name and `=`.
fn next_attribute(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'=', bytes).find_map(|equals| {
        let before = bytes[..equals].trim_ascii_end();
        let is_name = |it: &u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b':');
        let name = before.iter().rev().take_while(|it| is_name(it)).count();
        let start = before.len() - name;
        let is_attribute = name > 0 && before[start].is_ascii_alphabetic();
        let after_space = bytes[..start].last().is_some_and(u8::is_ascii_whitespace);
        (is_attribute && after_space).then_some(start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(text: &str) -> Vec<(&str, &str)> {
        let mut found = Vec::new();
        each_attribute(text, 9, |name, value| found.push((name, value)));
        found
    }

    #[test]
    fn attributes_are_read_whatever_happened_to_their_quotes() {
        let expected = [("start", "2024 +0200"), ("channel", "a.1")];
        for text in [
            "start=\"2024 +0200\" channel='a.1'",
            "start='2024 +0200'channel='a.1'",
            "start = \"2024 +0200\"   channel=\"a.1\" ",
            "start=2024 +0200 channel=a.1",
            "start=\"2024 +0200 channel=\"a.1\"",
            "start=\"2024 +0200 channel='a.1'",
            "start=2024 +0200\" channel=\"a.1\"",
            "start=\"2024 +0200' channel=\"a.1'",
            "start=\"2024 +0200\"\" channel=\"a.1\"\"",
            "\"start=\"2024 +0200\" , channel=\"a.1\" clumpidx",
        ] {
            assert_eq!(attributes(text), expected, "{text}");
        }
        for (text, expected) in [
            ("src=\"http://h/a\"b.jpg\"", vec![("src", "http://h/a\"b.jpg")]),
            ("src=http://h/?a=1&b=2 width=3", vec![("src", "http://h/?a=1&b=2"), ("width", "3")]),
            ("src width='3'", vec![("width", "3")]),
            ("src='' src='x'", vec![("src", ""), ("src", "x")]),
            ("=\"x\" a=\"ä\" ü='1'", vec![("a", "ä")]),
            ("a=", vec![("a", "")]),
            ("", vec![]),
            (
                "a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8 i=9 j=0",
                "abcdefghi"
                    .split("")
                    .filter(|it| !it.is_empty())
                    .zip("123456789".split("").filter(|it| !it.is_empty()))
                    .collect(),
            ),
        ] {
            assert_eq!(attributes(text), expected, "{text}");
        }
    }

    #[test]
    fn a_tag_ends_where_it_ends_for_people() {
        for (tag_text, after) in [
            ("<a>", "b"),
            ("<a b='>'>", "c"),
            ("<icon src=\"http://x/a\"b.jpg\"/>", "</programme>"),
            ("<title lang=\"en>", "K</title>"),
            ("<title lang=\"en>", "It's \"K\"</title>"),
            ("<title lang=\"en\"", "<desc>"),
            ("<programme start=\"2024 channel='a'>", "<title>"),
            ("<icon src='a<b.jpg'/>", "</programme>"),
            ("<icon src='a <3 b.jpg'/>", "</programme>"),
            ("<channel id=\"", "<programme start='1'>"),
        ] {
            let text = format!("{tag_text}{after}");
            assert_eq!(tag(text.as_bytes(), 9).map(|it| it.length), Some(tag_text.len()), "{text}");
        }
        assert_eq!(tag(b"<a b='", 9), None);
        assert_eq!(tag(b"<a", 9), None);
    }
}
