//! Text in XML.

/// Writes a text for the content of an element or for an attribute in double quotes. Characters that XML does not allow
/// become spaces, and so do line breaks, which readers of attributes would change.
pub fn push_escaped(out: &mut String, text: &str) {
    let bytes = text.as_bytes();
    // The beginning of the part that is copied unchanged.
    let mut start = 0;
    let mut at = 0;
    while let Some(skip) = bytes[at..].iter().position(|it| MAY_NEED_ESCAPE[usize::from(*it)]) {
        at += skip;
        let (replacement, length) = match bytes[at] {
            b'&' => ("&amp;", 1),
            b'<' => ("&lt;", 1),
            b'>' => ("&gt;", 1),
            b'"' => ("&quot;", 1),
            0..b' ' | 0x7F => (" ", 1),
            // U+0080 to U+009F, control characters.
            0xC2 if bytes[at + 1] < 0xA0 => (" ", 2),
            // U+FFFE and U+FFFF.
            0xEF if bytes[at + 1] == 0xBF && bytes[at + 2] >= 0xBE => (" ", 3),
            _ => {
                at += 1;
                continue;
            }
        };
        out.push_str(&text[start..at]);
        out.push_str(replacement);
        at += length;
        start = at;
    }
    out.push_str(&text[start..]);
}

/// First bytes of the characters that [`push_escaped`] replaces.
const MAY_NEED_ESCAPE: [bool; 256] = {
    let mut table = [false; 256];
    let mut at = 0;
    while at < 0x20 {
        table[at] = true;
        at += 1;
    }
    table[b'&' as usize] = true;
    table[b'<' as usize] = true;
    table[b'>' as usize] = true;
    table[b'"' as usize] = true;
    table[0x7F] = true;
    table[0xC2] = true;
    table[0xEF] = true;
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = String::new();
        push_escaped(&mut out, text);
        out
    }

    #[test]
    fn characters_that_xml_does_not_allow_are_replaced() {
        assert_eq!(escaped("a\0b\u{1}c\u{FFFE}d\ne]]>ä😀"), "a b c d e]]&gt;ä😀");
        assert_eq!(escaped("\u{85}\u{A0}\u{FFFD}\u{FFFF}\u{7F}Â"), " \u{A0}\u{FFFD}  Â");
        assert_eq!(escaped("<a b=\"c\">&amp;"), "&lt;a b=&quot;c&quot;&gt;&amp;amp;");
    }

    proptest! {
        #[test]
        fn every_text_can_be_read_again_as_content_and_as_attribute(text in "\\PC*|[\\x00-\\x{A0}\\x{FFFD}-\\x{FFFF}]*") {
            let mut xml = "<e a=\"".to_owned();
            push_escaped(&mut xml, &text);
            xml.push_str("\">");
            push_escaped(&mut xml, &text);
            xml.push_str("</e>");
            let document = roxmltree::Document::parse(&xml).unwrap();
            let root = document.root_element();
            let expected: String = text
                .chars()
                .map(|it| if it.is_control() || matches!(it, '\u{FFFE}' | '\u{FFFF}') { ' ' } else { it })
                .collect();
            prop_assert_eq!(root.attribute("a"), Some(expected.as_str()));
            prop_assert_eq!(root.text().unwrap_or_default(), expected);
        }
    }
}
