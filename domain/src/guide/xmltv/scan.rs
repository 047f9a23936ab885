//! Finds elements in bytes, without reading what is in them.

use memchr::{memchr, memchr2, memchr3, memmem};

use super::limits::{XmltvLimits, XmltvSkip};

/// The part of a guide at a `<`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Markup {
    /// `<channel`, with the length of its name.
    Channel,
    Programme,
    /// `<tv`.
    Root,
    /// `</tv`.
    RootEnd,
    Doctype,
    /// Ends with these bytes, wherever they come.
    Until(&'static [u8]),
    /// Any other tag, or a `<` in a text.
    Other,
}

/// Enough bytes to decide about a `<`.
pub(super) const MARKUP_BYTES: usize = 16;

/// Decides what begins with the `<` at the start of the bytes.
pub(super) fn markup(bytes: &[u8]) -> Markup {
    let is_tag = |name: &[u8]| {
        let end = bytes.get(name.len());
        bytes.starts_with(name) && end.is_some_and(|it| it.is_ascii_whitespace() || matches!(it, b'>' | b'/'))
    };
    match bytes.get(1) {
        Some(b'p') if is_tag(b"<programme") => Markup::Programme,
        Some(b'c') if is_tag(b"<channel") => Markup::Channel,
        Some(b't') if is_tag(b"<tv") => Markup::Root,
        Some(b'/') if is_tag(b"</tv") => Markup::RootEnd,
        Some(b'?') => Markup::Until(b"?>"),
        Some(b'!') if bytes.starts_with(b"<!--") => Markup::Until(b"-->"),
        Some(b'!') if bytes.starts_with(b"<![CDATA[") => Markup::Until(b"]]>"),
        Some(b'!') if bytes.len() >= 9 && bytes[..9].eq_ignore_ascii_case(b"<!DOCTYPE") => Markup::Doctype,
        _ => Markup::Other,
    }
}

/// Where something ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scan {
    /// After this many bytes.
    End(usize),
    /// Not in these bytes.
    Incomplete,
    /// Nowhere: the next element begins before.
    Broken(XmltvSkip),
}

/// Finds the end of the `channel` or `programme` that begins here.
pub(super) fn element_end(bytes: &[u8], limits: &XmltvLimits) -> Scan {
    let name_length = bytes[1..].iter().take_while(|it| it.is_ascii_alphabetic()).count();
    let name = &bytes[1..1 + name_length];
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let end = match rest.get(1) {
            None => return Scan::Incomplete,
            Some(b'/') => {
                let Some(end) = memchr(b'>', rest) else { return Scan::Incomplete };
                let closed = rest[2..end].trim_ascii_end();
                if closed == name {
                    return Scan::End(at + end + 1);
                } else if closed == b"tv" {
                    return Scan::Broken(XmltvSkip::Malformed);
                }
                depth = depth.saturating_sub(1);
                end + 1
            }
            Some(b'!' | b'?') => match markup(rest) {
                Markup::Until(end) => match memmem::find(rest, end) {
                    Some(found) => found + end.len(),
                    None => return Scan::Incomplete,
                },
                _ => 2,
            },
            Some(it) if it.is_ascii_alphabetic() || *it == b'_' => {
                if at > 0 && matches!(markup(rest), Markup::Channel | Markup::Programme | Markup::Root) {
                    return Scan::Broken(XmltvSkip::Malformed);
                }
                let tag = match tag(rest, limits.attributes_max) {
                    Ok(Some(tag)) => tag,
                    Ok(None) => return Scan::Incomplete,
                    Err(reason) => return Scan::Broken(reason),
                };
                if tag.is_empty && at == 0 {
                    return Scan::End(tag.length);
                }
                // Guides with markup in texts do not close it.
                let is_break = rest[1..].get(..2).is_some_and(|it| it.eq_ignore_ascii_case(b"br"));
                if depth >= limits.depth_max {
                    return Scan::Broken(XmltvSkip::TooComplex);
                }
                depth += usize::from(!tag.is_empty && !is_break);
                tag.length
            }
            // A `<` in a text.
            Some(_) => 1,
        };
        match memchr(b'<', &rest[end.min(rest.len())..]) {
            Some(next) => at += end + next,
            None => return Scan::Incomplete,
        }
    }
}

/// A start tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) length: usize,
    /// It ends with `/>`.
    pub(super) is_empty: bool,
}

/// Finds the end of the start tag that begins here. Values of attributes can contain `>`, but no `<`.
pub(super) fn tag(bytes: &[u8], attributes_max: usize) -> Result<Option<Tag>, XmltvSkip> {
    let mut at = 0;
    let mut n_attributes = 0;
    while let Some(found) = memchr3(b'>', b'"', b'\'', &bytes[at..]) {
        at += found + 1;
        let quote = bytes[at - 1];
        if quote == b'>' {
            return Ok(Some(Tag { length: at, is_empty: bytes[at - 2] == b'/' }));
        }
        match memchr2(quote, b'<', &bytes[at..]) {
            Some(end) if bytes[at + end] == quote => at += end + 1,
            // The quote is never closed.
            Some(_) => return Err(XmltvSkip::Malformed),
            None => return Ok(None),
        }
        n_attributes += 1;
        if n_attributes > attributes_max {
            return Err(XmltvSkip::TooComplex);
        }
    }
    Ok(None)
}

/// Finds the end of a document type. Its entities are skipped, so none is ever expanded.
pub(super) fn doctype_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    let mut n_open = 0_usize;
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'<' if bytes[at..].starts_with(b"<!--") => memmem::find(&bytes[at..], b"-->")? + 3,
            b'<' if bytes[at..].starts_with(b"<?") => memmem::find(&bytes[at..], b"?>")? + 2,
            b'"' | b'\'' => memchr(*byte, &bytes[at + 1..])? + 2,
            b'<' | b'[' => {
                n_open += 1;
                1
            }
            b'>' | b']' => {
                n_open = n_open.saturating_sub(1);
                if n_open == 0 {
                    return Some(at + 1);
                }
                1
            }
            _ => 1,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str) -> Scan {
        let limits = XmltvLimits { depth_max: 3, attributes_max: 2, ..XmltvLimits::default() };
        let scan = element_end(text.as_bytes(), &limits);
        for cut in 12..text.len() {
            let of_part = element_end(&text.as_bytes()[..cut], &limits);
            assert!(of_part == scan || of_part == Scan::Incomplete, "{text} cut to {cut}: {of_part:?}");
        }
        scan
    }

    #[test]
    fn an_element_ends_with_its_own_end_tag_whatever_is_in_it() {
        for element in [
            "<channel id='a'/>",
            "<channel id='a>b' />",
            "<programme></programme>",
            "<programme channel=\"'>\"><a>1 > 0</a><b/></programme >",
            "<programme><!-- </programme> <programme> --><![CDATA[</programme>]]><?p </programme>?></programme>",
            "<programme><a>1 < 2 <3</a></programme>",
            "<programme><br><br><BR><br><br></programme>",
            "<programme><programme-id/></programmes></programme>",
        ] {
            assert_eq!(end(element), Scan::End(element.len()), "{element}");
            assert_eq!(end(&format!("{element}<channel>")), Scan::End(element.len()), "{element}");
        }
    }

    #[test]
    fn an_element_that_never_ends_is_broken_where_the_next_one_begins() {
        for (element, reason) in [
            ("<programme><a><programme>", XmltvSkip::Malformed),
            ("<programme><a></a><channel id=''>", XmltvSkip::Malformed),
            ("<programme><a></a></tv>", XmltvSkip::Malformed),
            ("<programme a=\"></programme><programme>", XmltvSkip::Malformed),
            ("<programme><a><a><a></programme>", XmltvSkip::TooComplex),
            ("<programme a='' b='' c=''></programme>", XmltvSkip::TooComplex),
        ] {
            assert_eq!(end(element), Scan::Broken(reason), "{element}");
        }
        for element in ["<programme", "<programme><a", "<programme><!-- ", "<programme>text"] {
            assert_eq!(end(element), Scan::Incomplete, "{element}");
        }
    }

    #[test]
    fn a_document_type_ends_after_its_entities() {
        for doctype in [
            "<!DOCTYPE tv>",
            "<!DOCTYPE tv SYSTEM \"x>y\">",
            "<!DOCTYPE tv [<!ENTITY a '>]'><!-- ]>' --><?p ]>?>\n<!ELEMENT tv (a)>]>",
        ] {
            assert_eq!(doctype_end(format!("{doctype}<tv>").as_bytes()), Some(doctype.len()), "{doctype}");
        }
        assert_eq!(doctype_end(b"<!DOCTYPE tv ["), None);
    }
}
