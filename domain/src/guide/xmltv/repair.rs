//! Repairs elements that are not well-formed.

use memchr::memmem;

use crate::xml::push_escaped;

/// Longer names are ordinary text.
const ENTITY_BYTES_MAX: usize = 32;

/// Makes an element well-formed, as far as the mistakes are those that guides have: entities of HTML, `&` and `<` in texts,
/// control characters, `]]>` in texts, names with a prefix that is declared elsewhere, `<br>`, and comments that contain
/// `--`.
pub(super) fn repaired(element: &str) -> String {
    let mut out = String::with_capacity(element.len() + element.len() / 8);
    let mut rest = element;
    while !rest.is_empty() {
        let length = match rest.as_bytes()[0] {
            b'<' => markup(rest, &mut out),
            _ => {
                let length = rest.find('<').unwrap_or(rest.len());
                content(&rest[..length], &mut out);
                length
            }
        };
        rest = &rest[length..];
    }
    out
}

/// Copies what begins with a `<`. Returns its length.
fn markup(rest: &str, out: &mut String) -> usize {
    let until = |end: &str| memmem::find(rest.as_bytes(), end.as_bytes()).map(|it| it + end.len());
    if rest.starts_with("<!--") {
        // Comments are dropped.
        return until("-->").unwrap_or(rest.len());
    }
    if rest.starts_with("<![CDATA[")
        && let Some(length) = until("]]>")
    {
        rest[..length].chars().for_each(|it| out.push(allowed(it)));
        return length;
    }
    let is_tag = rest[1..].trim_start_matches('/').starts_with(|it: char| it.is_alphabetic() || it == '_');
    if !is_tag {
        out.push_str("&lt;");
        return 1;
    }
    let mut quote = None;
    for (at, it) in rest.char_indices() {
        match (it, quote) {
            ('>', None) => {
                tag(&rest[..at], out);
                return at + 1;
            }
            ('"' | '\'', None) => quote = Some(it),
            (it, Some(open)) if it == open => quote = None,
            _ => {}
        }
    }
    tag(rest, out);
    rest.len()
}

/// Copies a tag, which comes without its `>`.
fn tag(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\'']) {
        names(&rest[..at], out);
        let quote = &rest[at..=at];
        let value = &rest[at + 1..];
        let end = value.find(quote).unwrap_or(value.len());
        out.push_str(quote);
        content(&value[..end], out);
        out.push_str(quote);
        rest = value.get(end + 1..).unwrap_or_default();
    }
    names(rest, out);
    let is_break = text.eq_ignore_ascii_case("<br");
    out.push_str(if is_break { "/>" } else { ">" });
}

/// Copies names in a tag. A prefix becomes a part of the name.
fn names(text: &str, out: &mut String) {
    for (at, it) in text.char_indices() {
        let is_prefix = it == ':' && !text[..at].ends_with("xml");
        out.push(if is_prefix { '_' } else { allowed(it) });
    }
}

/// Copies a text between tags, or the value of an attribute.
fn content(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '>']) {
        rest[..at].chars().for_each(|it| out.push(allowed(it)));
        rest = &rest[at..];
        if rest.starts_with('>') {
            out.push_str("&gt;");
            rest = &rest[1..];
        } else {
            rest = &rest[reference(rest, out)..];
        }
    }
    rest.chars().for_each(|it| out.push(allowed(it)));
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
fn allowed(it: char) -> char {
    match it {
        '\t' | '\n' | '\r' => it,
        '\0'..' ' | '\u{FFFE}' | '\u{FFFF}' => ' ',
        it => it,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mistakes_of_guides_are_repaired() {
        for (element, expected) in [
            ("<a>R&eacute;gion &nbsp;1</a>", "<a>Région \u{A0}1</a>"),
            ("<a>A & B &unknown; &amp; &lt; &; &", "<a>A &amp; B &amp;unknown; &amp; &lt; &amp;; &amp;"),
            ("<a b='x & y &auml; >'>", "<a b='x &amp; y ä &gt;'>"),
            ("<a>1 < 2 <3 <</a>", "<a>1 &lt; 2 &lt;3 &lt;</a>"),
            ("<a>\u{0}\u{1F}\u{FFFF}&#0;&#x1;&#65;</a>", "<a>     A</a>"),
            ("<a>]]></a>", "<a>]]&gt;</a>"),
            ("<a><![CDATA[ & < \u{1}]]></a>", "<a><![CDATA[ & <  ]]></a>"),
            ("<a><!-- a -- b --></a>", "<a></a>"),
            ("<dc:a x:y='1' xml:lang='de'/>", "<dc_a x_y='1' xml:lang='de'/>"),
            ("<a>x<br>y<BR></a>", "<a>x<br/>y<BR/></a>"),
            ("<a>&quot;&NewLine;&lbrace;&fjlig;</a>", "<a>&quot;\n{fj</a>"),
        ] {
            assert_eq!(repaired(element), expected, "{element}");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_made_part_of_an_element(text in "\\PC{0,40}|[\\x00-\\x7F]{0,40}") {
            // Without tags, which can be wrong in ways that have no repair.
            let text = text.replace(['<', '>'], "&");
            let element = repaired(&format!("<a b=\"{}\">{text}</a>", text.replace('"', "")));
            prop_assert!(roxmltree::Document::parse(&element).is_ok(), "{}", element);
        }

        #[test]
        fn no_element_makes_a_panic(text in "\\PC{0,40}|[<>&;/!?'\"a:\\[\\]CDAT=#-]{0,40}") {
            let _ = repaired(&text);
        }
    }
}
