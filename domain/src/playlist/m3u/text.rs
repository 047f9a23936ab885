//! Text in mixed encodings and with control characters.

use std::borrow::Cow;

/// Removes byte-order marks, and white space and control characters at both ends.
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    let mut bytes = bytes;
    while let Some(rest) = bytes.strip_prefix(b"\xEF\xBB\xBF") {
        bytes = rest;
    }
    let is_blank = |it: &u8| *it <= b' ';
    let start = bytes.iter().position(|it| !is_blank(it)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|it| !is_blank(it)).map_or(start, |it| it + 1);
    &bytes[start..end]
}

/// Decodes UTF-8; each invalid byte is decoded as Windows-1252, which contains Latin-1.
///
/// Byte by byte instead of line by line, so that one invalid byte does not affect its neighbours.
pub(crate) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    decode_with(bytes, |byte, text| text.push(windows_1252(byte)))
}

/// Does the same for an address. Invalid bytes must reach the provider unchanged, so they are percent-encoded; control
/// characters are meaningless there and removed.
pub(crate) fn decode_address(bytes: &[u8]) -> Cow<'_, str> {
    let text = decode_with(bytes, |byte, text| text.push_str(&format!("%{byte:02X}")));
    let may_have_control = text.bytes().any(|it| it < b' ' || it == 0x7F || it == 0xC2);
    if may_have_control && text.contains(char::is_control) {
        text.replace(char::is_control, "").into()
    } else {
        text
    }
}

fn decode_with(bytes: &[u8], mut foreign: impl FnMut(u8, &mut String)) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.into();
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| foreign(*byte, &mut text));
    }
    text.into()
}

/// Decodes a byte of Windows-1252. The five bytes without a character become control characters.
pub(crate) fn windows_1252(byte: u8) -> char {
    const FROM_80_TO_9F: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž', '\u{8F}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9F => FROM_80_TO_9F[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// Removes control characters and outer white space; a tab becomes a space.
pub(crate) fn clean(text: &str) -> String {
    let text = text.trim();
    // Checks bytes first, which is many times faster: 0xC2 begins the control characters above ASCII, among others.
    if !text.bytes().any(|it| it < b' ' || it == 0x7F || it == 0xC2) {
        return text.to_owned();
    }
    let text: String = text
        .chars()
        .filter_map(|it| match it {
            '\t' => Some(' '),
            it if it.is_control() => None,
            it => Some(it),
        })
        .collect();
    text.trim().to_owned()
}

/// Returns the addresses of a list. Behind the question mark of an address, a sign separates two of them only if the next one
/// begins there: parameters contain commas, too.
pub(crate) fn addresses(list: &str) -> impl Iterator<Item = &str> {
    let is_separator = |it: char| matches!(it, ',' | ';' | '|') || it.is_whitespace();
    let is_start = move |at: &usize| {
        let begins = ["http://", "https://"].iter().any(|it| after_prefix(&list[*at..], it).is_some());
        begins && list[..*at].ends_with(is_separator)
    };
    let starts = list.char_indices().map(|it| it.0).filter(is_start).chain([list.len()]);
    starts
        .scan(0, move |from, to| Some(&list[std::mem::replace(from, to)..to]))
        .map(|it| it.split_once(',').filter(|it| !it.0.contains('?')).map_or(it, |it| it.0))
        .map(move |it| it.trim_matches(is_separator))
        .filter(|it| !it.is_empty())
}

/// Removes one pair of quotes around the text.
pub(crate) fn unquote(text: &str) -> &str {
    let between = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    between('"').or_else(|| between('\'')).unwrap_or(text)
}

/// Returns the text after `prefix`, ignoring case. `prefix` is ASCII.
pub(crate) fn after_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    after_prefix_bytes(text.as_bytes(), prefix.as_bytes())?;
    Some(&text[prefix.len()..])
}

pub(crate) fn after_prefix_bytes<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Decodes `%41` to `A`; a `%` without two digits stays. The result is decoded as in [`decode`].
pub(crate) fn percent_decode(text: &str) -> String {
    let bytes: Cow<'_, [u8]> = percent_encoding::percent_decode_str(text).into();
    decode(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_list_are_separated_where_the_next_one_begins() {
        for (list, expected) in [
            ("", &[][..]),
            ("http://g/1", &["http://g/1"]),
            ("http://g/1,http://g/2", &["http://g/1", "http://g/2"]),
            (" http://g/1 ; HTTPS://g/2 ,", &["http://g/1", "HTTPS://g/2"]),
            ("http://g/1 http://g/2|http://g/3", &["http://g/1", "http://g/2", "http://g/3"]),
            ("http://g/1?a=1,2,http://g/2", &["http://g/1?a=1,2", "http://g/2"]),
            ("http://g/?of=http://h/1", &["http://g/?of=http://h/1"]),
            ("http://g/1,x", &["http://g/1"]),
            ("none,http://g/1", &["none", "http://g/1"]),
            ("é,http://g/1", &["é", "http://g/1"]),
        ] {
            assert_eq!(addresses(list).collect::<Vec<_>>(), expected, "{list}");
        }
    }
}
