//! Finds elements in bytes, without reading what is in them.

use memchr::{memchr, memchr_iter, memchr2, memmem};

use super::limits::XmltvLimits;
use super::schema::ElementKind;
use super::tag::{name_length, tag};

/// The part of a guide at a `<`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Markup {
    Element(ElementKind),
    /// `<tv`.
    Root,
    /// `</tv`.
    RootEnd,
    Doctype,
    Section(Section),
    /// Any other tag, or a `<` in a text.
    Other,
}

/// A part of a guide that ends with its own delimiter, whatever is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Comment,
    Characters,
    Instruction,
}

impl Section {
    pub(super) fn open(self) -> &'static str {
        match self {
            Self::Comment => "<!--",
            Self::Characters => "<![CDATA[",
            Self::Instruction => "<?",
        }
    }

    pub(super) fn close(self) -> &'static str {
        match self {
            Self::Comment => "-->",
            Self::Characters => "]]>",
            Self::Instruction => "?>",
        }
    }
}

/// Enough bytes to decide about a `<`.
pub(super) const MARKUP_BYTES: usize = 16;

/// More white space than this separates an element from everything after it.
const GAP_BYTES_MAX: usize = 256;

/// Decides what begins with the `<` at the start of the bytes.
pub(super) fn markup(bytes: &[u8]) -> Markup {
    let is_tag = |name: &[u8]| {
        let end = bytes.get(name.len());
        bytes.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name))
            && end.is_some_and(|it| *it <= b' ' || matches!(it, b'>' | b'/'))
    };
    match bytes.get(1) {
        Some(b'p' | b'P') if is_tag(b"<programme") => Markup::Element(ElementKind::Programme),
        Some(b'c' | b'C') if is_tag(b"<channel") => Markup::Element(ElementKind::Channel),
        Some(b't' | b'T') if is_tag(b"<tv") => Markup::Root,
        Some(b'/') if is_tag(b"</tv") => Markup::RootEnd,
        Some(b'?') => Markup::Section(Section::Instruction),
        Some(b'!') if bytes.starts_with(b"<!--") => Markup::Section(Section::Comment),
        Some(b'!') if bytes.starts_with(b"<![CDATA[") => Markup::Section(Section::Characters),
        Some(b'!') if bytes.len() >= 9 && bytes[..9].eq_ignore_ascii_case(b"<!DOCTYPE") => Markup::Doctype,
        _ => Markup::Other,
    }
}

/// Where an element ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scan {
    /// After this many bytes. It needs no repair, as far as its end depends on it, if `is_plain`.
    End { length: usize, is_plain: bool },
    /// Not in these bytes.
    Incomplete,
}

/// Finds the end of the element that begins here: its own end tag, or else the beginning of the next element, or the end of
/// the guide. `is_last` says that no bytes follow.
pub(super) fn element_end(bytes: &[u8], kind: ElementKind, limits: &XmltvLimits, is_last: bool) -> Scan {
    // Names in capital letters are repaired.
    let is_plain = bytes[1..].starts_with(kind.name().as_bytes());
    let (depth, has_children, border, ends) = (0, false, None, [None; 3]);
    Scanner { bytes, kind, limits, is_last, is_plain, depth, has_children, border, ends }
        .run()
        .unwrap_or(Scan::Incomplete)
}

struct Scanner<'a> {
    bytes: &'a [u8],
    kind: ElementKind,
    limits: &'a XmltvLimits,
    is_last: bool,
    is_plain: bool,
    /// Levels below the element, as far as they are closed.
    depth: usize,
    /// A tag below the element was read.
    has_children: bool,
    /// The first border at or after a position, as far as it was looked for.
    border: Option<(usize, Option<usize>)>,
    /// The same for the delimiters of the sections.
    ends: [Option<(usize, Option<usize>)>; 3],
}

/// The result for a part of an element.
enum Step {
    /// It has this length.
    Next(usize),
    /// The element ends after this many bytes.
    End(usize),
}

impl Scanner<'_> {
    /// Returns `None` if more bytes are needed.
    fn run(mut self) -> Option<Scan> {
        let mut at = 0;
        loop {
            let length = match self.part(at)? {
                Step::End(length) => return Some(Scan::End { length, is_plain: self.is_plain }),
                Step::Next(length) => length,
            };
            let next = at + length;
            at = next + memchr(b'<', self.bytes.get(next..)?)?;
        }
    }

    /// Looks at the `<` at a position.
    fn part(&mut self, at: usize) -> Option<Step> {
        let rest = &self.bytes[at..];
        Some(match rest.get(1)? {
            b'/' => return self.end_tag(at),
            b'!' | b'?' => match markup(rest) {
                Markup::Section(section) => Step::Next(self.section(at, section)?),
                _ => Step::Next(2),
            },
            it if it.is_ascii_alphabetic() || *it == b'_' => return self.start_tag(at),
            // A `<` in a text.
            _ => Step::Next(1),
        })
    }

    fn start_tag(&mut self, at: usize) -> Option<Step> {
        let rest = &self.bytes[at..];
        let is_next = at > 0
            && match markup(rest) {
                Markup::Element(ElementKind::Programme) => true,
                // Some guides name the channel in an element of the programme.
                Markup::Element(ElementKind::Channel) => begins_element(rest)?,
                Markup::Root => !self.continues(at + tag(rest, usize::MAX)?.length)?,
                _ => false,
            };
        if is_next {
            self.is_plain = false;
            return Some(Step::End(at));
        }
        let tag = tag(rest, self.limits.attributes_max)?;
        self.is_plain &= tag.is_plain;
        if at == 0 {
            if tag.is_empty && !self.continues(tag.length)? {
                return Some(Step::End(tag.length));
            }
            self.is_plain &= !tag.is_empty;
            return Some(Step::Next(tag.length));
        }
        self.has_children = true;
        self.depth += usize::from(!tag.is_empty);
        self.is_plain &= self.depth <= self.limits.depth_max;
        Some(Step::Next(tag.length))
    }

    fn end_tag(&mut self, at: usize) -> Option<Step> {
        let (name, length) = end_tag(&self.bytes[at..])?;
        let end = at + length;
        if name.eq_ignore_ascii_case(self.kind.name().as_bytes()) {
            // An end tag before all children is an accident.
            if self.has_children || !self.continues(end)? {
                self.is_plain &= self.bytes[end - 1] == b'>';
                return Some(Step::End(end));
            }
            self.is_plain = false;
        } else if name.eq_ignore_ascii_case(b"tv") {
            self.is_plain = false;
            if !self.continues(end)? {
                return Some(Step::End(at));
            }
        }
        self.depth = self.depth.saturating_sub(1);
        Some(Step::Next(length))
    }

    /// Returns whether a child of this element follows, so that the tag before it does not end the element; `None` if more
    /// bytes are needed.
    fn continues(&self, at: usize) -> Option<bool> {
        let rest = &self.bytes[at..];
        let gap = rest.iter().take(GAP_BYTES_MAX).take_while(|it| it.is_ascii_whitespace()).count();
        let is_unknown = |is_known: bool| if is_known || self.is_last { Some(false) } else { None };
        if gap == GAP_BYTES_MAX || gap == rest.len() {
            return is_unknown(gap == GAP_BYTES_MAX);
        }
        let Some(name) = rest[gap..].strip_prefix(b"<") else { return Some(false) };
        let length = name_length(name);
        if length == name.len() {
            // Longer than any name.
            return is_unknown(length > MARKUP_BYTES);
        }
        Some(str::from_utf8(&name[..length]).is_ok_and(|it| self.kind.has_child(it)))
    }

    /// Returns the length of a section. One that is never closed, so that it would reach into other elements, has only its
    /// first delimiter.
    fn section(&mut self, at: usize, section: Section) -> Option<usize> {
        let from = at + section.open().len();
        let end = self.section_end(from, section);
        let border = self.border(from, end)?;
        let is_closed = border.is_none_or(|it| end.is_some_and(|end| it >= end));
        self.is_plain &= is_closed;
        if is_closed { end.map(|end| end + section.close().len() - at) } else { Some(from - at) }
    }

    fn section_end(&mut self, from: usize, section: Section) -> Option<usize> {
        let known = &mut self.ends[section as usize];
        let (_, found) = match known {
            Some(known) if known.0 <= from && known.1.is_none_or(|it| it >= from) => *known,
            _ => {
                let found =
                    memmem::find(&self.bytes[from.min(self.bytes.len())..], section.close().as_bytes());
                *known.insert((from, found.map(|it| from + it)))
            }
        };
        found
    }

    /// Returns where another element or the end of the guide begins, as far as it matters for a section with this end.
    fn border(&mut self, from: usize, end: Option<usize>) -> Option<Option<usize>> {
        if let Some((since, found)) = self.border
            && since <= from
            && found.is_none_or(|it| it >= from)
        {
            return Some(found);
        }
        let found = match end {
            Some(end) => self.find_border(from, end),
            None => {
                let tv = memmem::find(self.bytes.get(from..)?, b"</tv").map(|it| from + it);
                self.find_border(from, tv.unwrap_or(self.bytes.len())).or(tv)
            }
        };
        if found.is_some() || end.is_none() {
            self.border = Some((from, found));
        }
        Some(found)
    }

    /// Returns where another element begins, or the guide ends after an element.
    fn find_border(&self, from: usize, until: usize) -> Option<usize> {
        let bytes = self.bytes.get(from..until)?;
        let is_element = |it: &usize| begins_element(&self.bytes[*it..]) == Some(true);
        let next = |name: &[u8]| memmem::find_iter(bytes, name).map(|it| from + it).find(is_element);
        let end_of_last = || {
            memmem::find_iter(bytes, b"</programme>").find_map(|it| {
                let after = &bytes[it + 1..];
                let next = memchr(b'<', after)?;
                (markup(&after[next..]) == Markup::RootEnd).then_some(from + it)
            })
        };
        next(b"<programme").or_else(|| next(b"<channel")).or_else(end_of_last)
    }
}

/// Returns whether a start tag has an attribute, as those of elements have; `None` if more bytes are needed.
fn begins_element(bytes: &[u8]) -> Option<bool> {
    let name = 1 + name_length(bytes.get(1..)?);
    let rest = bytes.get(name..)?;
    let gap = rest.iter().take(GAP_BYTES_MAX).take_while(|it| it.is_ascii_whitespace()).count();
    let first = rest.get(gap)?;
    Some(gap > 0 && first.is_ascii_alphabetic())
}

/// Returns name and length of an end tag; `None` if more bytes are needed. One without `>` ends where other markup begins.
pub(super) fn end_tag(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = memchr2(b'>', b'<', bytes.get(2..)?)? + 2;
    let name = bytes[2..end].trim_ascii_start();
    let name = &name[..name_length(name)];
    Some((name, end + usize::from(bytes[end] == b'>')))
}

/// Returns whether elements of a guide begin in the bytes.
pub(super) fn has_element(bytes: &[u8]) -> bool {
    memchr_iter(b'<', bytes).any(|at| matches!(markup(&bytes[at..]), Markup::Element(_)))
}

/// Finds the end of a document type. Its entities are skipped, so none is ever expanded.
pub(super) fn doctype_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    let mut n_open = 0_usize;
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'<' if bytes[at..].starts_with(b"<!--") => {
                let length = memmem::find(&bytes[at..], b"-->")? + 3;
                if has_element(&bytes[at..at + length]) {
                    return Some(at);
                }
                length
            }
            b'<' if bytes[at..].starts_with(b"<?") => memmem::find(&bytes[at..], b"?>")? + 2,
            b'<' if at > 0 && markup(&bytes[at..]) == Markup::Doctype => return Some(at),
            // Elements begin: the document type was never closed.
            b'<' if bytes.get(at + 1)?.is_ascii_alphabetic() => return Some(at),
            // Only the values of entities can contain markup, and these are between brackets.
            b'"' | b'\'' if n_open < 2 => {
                let end = at + 1 + memchr2(*byte, b'<', &bytes[at + 1..])?;
                end + usize::from(bytes[end] != b'<') - at
            }
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
        let Markup::Element(kind) = markup(text.as_bytes()) else { panic!("{text}") };
        let scan = element_end(text.as_bytes(), kind, &limits, false);
        for cut in 12..text.len() {
            let of_part = element_end(&text.as_bytes()[..cut], kind, &limits, false);
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
            "<programme><programme-id/></programmes></programme>",
            "<programme><channel>One</channel></programme>",
        ] {
            let expected = Scan::End { length: element.len(), is_plain: true };
            assert_eq!(end(&format!("{element}<channel id='b'>")), expected, "{element}");
            assert_eq!(end(&format!("{element} text")), expected, "{element}");
        }
    }

    #[test]
    fn a_damaged_element_ends_with_its_own_end_tag_or_where_the_next_one_begins() {
        for element in [
            "<programme><a>",
            "<programme><a></a>",
            "<programme a=\"><title>A</title></programme>",
            "<programme a=''><title lang=\"de>A</title>",
            "<programme a='' b='' c=''></programme>",
            "<programme><a><a><a><a></a></a></a></a></programme>",
            "<Programme></PROGRAMME>",
            "<programme/><title>A</title></programme>",
            "<programme></programme><title>A</title></programme>",
            "<programme></tv><title>A</title></programme>",
            "<programme><![CDATA[A</title></programme>",
            "<programme><title><!-- A</title></programme>",
            "<programme><title><?p A</title></programme>",
            "<programme><title>A</title></programme",
            "<programme><title",
        ] {
            let expected = Scan::End { length: element.len(), is_plain: false };
            for next in [
                "<programme start='1' channel='a'><title><![CDATA[B]]><!-- --><?p ?></title></programme>",
                "</tv>",
            ] {
                let text = format!("{element}{next}<programme start='1'>");
                assert_eq!(end(&text), expected, "{text}");
            }
        }
        for element in ["<programme", "<programme><a", "<programme><!-- ", "<programme>text"] {
            let of_part =
                element_end(element.as_bytes(), ElementKind::Programme, &XmltvLimits::default(), false);
            assert_eq!(of_part, Scan::Incomplete, "{element}");
        }
    }

    #[test]
    fn a_document_type_ends_after_its_entities_or_where_elements_begin() {
        for doctype in [
            "<!DOCTYPE tv>",
            "<!DOCTYPE tv SYSTEM \"x>y\">",
            "<!DOCTYPE tv [<!ENTITY a '>]'><!-- ]>' --><?p ]>?>\n<!ELEMENT tv (a)>]>",
            "<!DOCTYPE tv SYSTEM \"xmltv.dtd>\n",
            "<!DOCTYPE tv ",
        ] {
            assert_eq!(doctype_end(format!("{doctype}<tv>").as_bytes()), Some(doctype.len()), "{doctype}");
        }
        assert_eq!(doctype_end(b"<!DOCTYPE tv ["), None);
    }
}
