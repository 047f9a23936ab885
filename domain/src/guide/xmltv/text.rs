//! Copies texts so that they are well-formed.

use crate::xml::push_escaped;

/// Longer names are ordinary text.
const ENTITY_BYTES_MAX: usize = 32;

/// Copies a text between tags: entities of HTML as the characters that they mean, everything else as text.
pub(super) fn push_content(text: &str, out: &mut String) {
    push(text, out, |_| None);
}

/// Copies the value of an attribute, for double quotes around it.
pub(super) fn push_value(text: &str, out: &mut String) {
    push(text, out, |it| (it == '"').then_some("&quot;"));
}

fn push(text: &str, out: &mut String, special: impl Fn(char) -> Option<&'static str>) {
    let mut rest = text;
    while let Some(it) = rest.chars().next() {
        let length = match it {
            '&' => reference(rest, out),
            '<' | '>' => {
                out.push_str(if it == '<' { "&lt;" } else { "&gt;" });
                1
            }
            it => {
                match special(it) {
                    Some(escaped) => out.push_str(escaped),
                    // A byte-order mark of a part that was inserted.
                    None if it == '\u{FEFF}' => {}
                    None => out.push(allowed(it)),
                }
                it.len_utf8()
            }
        };
        rest = &rest[length..];
    }
}

/// Copies what begins with an `&`: a reference as the character that it means, anything else as text. Returns its length.
fn reference(rest: &str, out: &mut String) -> usize {
    let end = rest.bytes().take(ENTITY_BYTES_MAX).position(|it| it == b';');
    let Some(end) = end.filter(|it| *it > 1) else {
        out.push_str("&amp;");
        return 1;
    };
    let entity = &rest[..=end];
    let meaning = html_escape::decode_html_entities(entity);
    if meaning != entity {
        for it in meaning.chars() {
            match it {
                '&' | '<' | '>' | '"' => push_escaped(out, it.encode_utf8(&mut [0; 4])),
                it => out.push(allowed(it)),
            }
        }
    } else if entity.starts_with("&#") && entity[2..end].bytes().all(|it| it.is_ascii_alphanumeric()) {
        // The number of a character that XML does not allow.
        out.push(' ');
    } else {
        out.push_str("&amp;");
        return 1;
    }
    entity.len()
}

/// Returns a space in place of characters that XML does not allow.
pub(super) fn allowed(it: char) -> char {
    match it {
        '\t' | '\n' | '\r' => it,
        '\0'..' ' | '\u{FFFE}' | '\u{FFFF}' => ' ',
        it => it,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_no_quotes_and_no_markup() {
        let mut out = String::new();
        push_value("x & y &auml; \"<>\" '\u{1}", &mut out);
        assert_eq!(out, "x &amp; y ä &quot;&lt;&gt;&quot; ' ");
    }
}
