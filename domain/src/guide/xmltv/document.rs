//! A guide as a sequence of elements, with everything between them skipped.

use std::io::{self, BufRead};

use memchr::{memchr, memchr_iter, memchr2, memmem, memrchr};

use super::encoding::{ElementEncoding, declared_encoding};
use super::limits::{XmltvLimits, XmltvPlace};
use super::reader::XmltvError;
use super::scan::{self, MARKUP_BYTES, Markup, Scan, Section};
use super::schema::ElementKind;
use super::tag::tag;
use super::window::Window;

/// Bytes at the start of a document by which those other than guides are recognised.
const BEGINNING_BYTES: usize = 1024;

/// The guide between its first and last byte.
pub(super) struct Document<R> {
    window: Window<R>,
    encoding: ElementEncoding,
    /// Bytes before the first element of a guide.
    n_junk: u64,
    /// The error if no element of a guide is found.
    unlike: Unlike,
    /// An element of a guide was found.
    is_guide: bool,
    /// `<tv>` was read, but not `</tv>`.
    is_open: bool,
    /// The place of the first unread byte.
    place: XmltvPlace,
    /// Bytes that were read.
    n_read: u64,
    /// The next end of each kind of section.
    ends: [SectionEnd; 3],
    next_element: NextElement,
}

/// The next end of a section, so that it is looked for once, however many sections begin before it. Positions are since the
/// start of the guide.
#[derive(Debug, Clone, Copy, Default)]
struct SectionEnd {
    /// Looked for since here.
    since: u64,
    /// No end begins before, unless one was found.
    until: u64,
    found: Option<u64>,
    /// Where the last section of this kind begins before the end that was found; 0 if only the first one does.
    last_open: u64,
}

/// The next element of a guide in the same way.
#[derive(Debug, Clone, Copy, Default)]
struct NextElement {
    since: u64,
    /// An element begins here if one was found, and none before.
    until: u64,
    is_found: bool,
}

/// An element, at the start of the unread bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundElement {
    pub(super) kind: ElementKind,
    pub(super) length: usize,
    /// It needs no repair, as far as its end depends on it.
    pub(super) is_plain: bool,
}

/// The kind of a document other than a guide.
#[derive(Clone, Copy)]
enum Unlike {
    Empty,
    WebPage,
    SomethingElse,
}

/// The result for what begins with a `<`.
enum Step {
    Element(FoundElement),
    /// It has this length, and is of no interest.
    Skip(usize),
    /// More bytes are needed.
    Fill,
    /// The guide ends within an element.
    Cut,
}

impl<R: BufRead> Document<R> {
    pub(super) fn new(input: R) -> Result<Self, io::Error> {
        let (window, encoding) = Window::new(input)?;
        let start = window.bytes()[..window.bytes().len().min(BEGINNING_BYTES)].to_ascii_lowercase();
        let unlike = if start.iter().all(u8::is_ascii_whitespace) {
            Unlike::Empty
        } else if memmem::find(&start, b"<html").is_some()
            || memmem::find(&start, b"<!doctype html").is_some()
        {
            Unlike::WebPage
        } else {
            Unlike::SomethingElse
        };
        Ok(Self {
            window,
            encoding,
            n_junk: 0,
            unlike,
            is_guide: false,
            is_open: false,
            place: XmltvPlace { line: 1, column: 1 },
            n_read: 0,
            ends: [SectionEnd::default(); 3],
            next_element: NextElement::default(),
        })
    }

    /// Returns the error of a guide that was read until its end.
    pub(super) fn fault(&self) -> Option<XmltvError> {
        match (self.is_guide, self.unlike) {
            (true, _) => self.is_open.then_some(XmltvError::Truncated),
            (false, Unlike::Empty) => Some(XmltvError::Empty),
            (false, Unlike::WebPage) => Some(XmltvError::WebPage),
            (false, Unlike::SomethingElse) => Some(XmltvError::NotAGuide),
        }
    }

    /// Returns the size of the buffer for unread bytes.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.window.capacity()
    }

    /// Returns the unread bytes, and their encoding.
    pub(super) fn unread(&self) -> (&[u8], ElementEncoding) {
        (self.window.bytes(), self.encoding)
    }

    /// Returns the place of the first unread byte.
    pub(super) fn place(&self) -> XmltvPlace {
        self.place
    }

    /// Moves to the next element. Returns `None` at the end.
    pub(super) fn next_element(&mut self, limits: &XmltvLimits) -> Result<Option<FoundElement>, XmltvError> {
        while self.skip_to_markup(limits)? {
            match self.step(limits) {
                Step::Element(found) => return Ok(Some(found)),
                Step::Skip(n_bytes) => self.advance(n_bytes),
                Step::Fill => self.window.fill()?,
                Step::Cut => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Looks at the `<` at the start of the unread bytes.
    fn step(&mut self, limits: &XmltvLimits) -> Step {
        // No further, so that the size of the parts that arrive makes no difference.
        let bytes = &self.window.bytes()[..self.window.bytes().len().min(limits.element_bytes_max)];
        let can_grow = bytes.len() < limits.element_bytes_max && !self.window.is_ended();
        match scan::markup(bytes) {
            Markup::Element(kind) => {
                self.is_guide = true;
                let is_last = bytes.len() == self.window.bytes().len() && self.window.is_ended();
                match scan::element_end(bytes, kind, limits, is_last) {
                    Scan::End { length, is_plain } => Step::Element(FoundElement { kind, length, is_plain }),
                    Scan::Incomplete if can_grow => Step::Fill,
                    Scan::Incomplete if is_last => {
                        self.is_open = true;
                        Step::Cut
                    }
                    Scan::Incomplete => {
                        Step::Element(FoundElement { kind, length: bytes.len(), is_plain: false })
                    }
                }
            }
            Markup::Root => {
                let tag = tag(bytes, usize::MAX);
                if tag.is_none() && can_grow {
                    return Step::Fill;
                }
                (self.is_guide, self.is_open) = (true, tag.is_none_or(|it| !it.is_empty));
                Step::Skip(tag.map_or(1, |it| it.length))
            }
            Markup::RootEnd => {
                self.is_open = false;
                Step::Skip(1)
            }
            // In a guide it is an accident.
            Markup::Doctype if self.is_open => Step::Skip(1),
            Markup::Doctype => {
                let end = scan::doctype_end(&bytes[..bytes.len().min(limits.doctype_bytes_max)]);
                let is_cut = end.is_none() && bytes.len() < limits.doctype_bytes_max;
                if is_cut && !self.window.is_ended() {
                    Step::Fill
                } else {
                    Step::Skip(end.unwrap_or(1).max(1))
                }
            }
            Markup::Section(section) => self.section(section, limits),
            Markup::Other => Step::Skip(1),
        }
    }

    /// Skips a section between elements. One that is never closed has only its first delimiter: its end is too far away, or
    /// elements begin before another one of its kind.
    fn section(&mut self, section: Section, limits: &XmltvLimits) -> Step {
        let bytes = self.window.bytes();
        let bytes = &bytes[..bytes.len().min(limits.element_bytes_max)];
        let can_grow = bytes.len() < limits.element_bytes_max && !self.window.is_ended();
        let open = section.open().as_bytes();
        if section == Section::Instruction && bytes.starts_with(b"<?xml") && !self.is_name_longer(5) {
            return self.declaration(limits);
        }
        let Some(end) = self.ends[section as usize].find(bytes, self.n_read, section) else {
            return if can_grow { Step::Fill } else { Step::Skip(open.len()) };
        };
        let last_open = self.ends[section as usize].last_open.saturating_sub(self.n_read);
        let last_open = usize::try_from(last_open).unwrap_or_default();
        let is_unclosed = last_open > 0 && self.next_element.is_before(bytes, self.n_read, last_open);
        Step::Skip(if is_unclosed { open.len() } else { end + section.close().len() })
    }

    fn is_name_longer(&self, length: usize) -> bool {
        self.window.bytes().get(length).is_some_and(|it| !it.is_ascii_whitespace())
    }

    /// Reads an XML declaration. It contains no `>`, and the question mark before it is often forgotten.
    fn declaration(&mut self, limits: &XmltvLimits) -> Step {
        let bytes = self.window.bytes();
        let bytes = &bytes[..bytes.len().min(limits.element_bytes_max).min(BEGINNING_BYTES)];
        match memchr2(b'>', b'<', &bytes[1..]).map(|it| it + 1) {
            Some(end) if bytes[end] == b'>' => {
                if self.window.is_ascii_compatible()
                    && let Some(encoding) = declared_encoding(&bytes[..=end])
                {
                    self.encoding = encoding;
                }
                Step::Skip(end + 1)
            }
            None if bytes.len() < BEGINNING_BYTES.min(limits.element_bytes_max)
                && !self.window.is_ended() =>
            {
                Step::Fill
            }
            _ => Step::Skip(Section::Instruction.open().len()),
        }
    }

    /// Moves to a `<` with enough bytes to decide about it. Returns false at the end, and after too many bytes before a
    /// guide.
    fn skip_to_markup(&mut self, limits: &XmltvLimits) -> Result<bool, XmltvError> {
        loop {
            let bytes = self.window.bytes();
            match memchr(b'<', bytes) {
                Some(at) => {
                    let is_enough = bytes.len() - at >= MARKUP_BYTES || self.window.is_ended();
                    self.advance(at);
                    if is_enough {
                        return Ok(self.n_junk <= limits.junk_bytes_max);
                    }
                }
                None => self.advance(bytes.len()),
            }
            if self.window.is_ended() || self.n_junk > limits.junk_bytes_max {
                return Ok(false);
            }
            self.window.fill()?;
        }
    }

    /// Drops bytes from the start.
    pub(super) fn advance(&mut self, n_bytes: usize) {
        let done = &self.window.bytes()[..n_bytes];
        let line = match memrchr(b'\n', done) {
            Some(at) => {
                self.place.line += memchr_iter(b'\n', &done[..=at]).count() as u64;
                self.place.column = 1;
                &done[at + 1..]
            }
            None => done,
        };
        self.place.column += self.encoding.n_chars(line) as u64;
        self.window.advance(n_bytes);
        self.n_read += n_bytes as u64;
        if !self.is_guide {
            self.n_junk += n_bytes as u64;
        }
    }
}

impl SectionEnd {
    /// Returns where the end of the section begins that begins at the start of the bytes, which are at this position of the
    /// guide.
    fn find(&mut self, bytes: &[u8], position: u64, section: Section) -> Option<usize> {
        let (inside, close) = (section.open().len(), section.close().as_bytes());
        let is_known = (self.since..=self.until).contains(&position);
        if let Some(found) = self.found.filter(|it| is_known && *it >= position + inside as u64) {
            return usize::try_from(found - position).ok();
        }
        if !is_known || self.found.is_some() {
            *self = Self { since: position, until: position, ..Self::default() };
        }
        let from = usize::try_from(self.until - position).unwrap_or_default().max(inside);
        let found = memmem::find(bytes.get(from..)?, close).map(|it| from + it);
        self.found = found.map(|it| position + it as u64);
        let last_open = found.and_then(|it| memmem::rfind(&bytes[..it], section.open().as_bytes()));
        self.last_open = last_open.map_or(0, |it| position + it as u64);
        self.until = self.found.unwrap_or(position + bytes.len().saturating_sub(close.len() - 1) as u64);
        found
    }
}

impl NextElement {
    /// Returns whether an element begins before this offset of the bytes, which are at this position of the guide.
    fn is_before(&mut self, bytes: &[u8], position: u64, offset: usize) -> bool {
        if !(self.since..=self.until).contains(&position) {
            *self = Self { since: position, until: position, is_found: false };
        }
        if !self.is_found {
            let from = usize::try_from(self.until - position).unwrap_or_default().min(offset);
            let is_element = |at: &usize| matches!(scan::markup(&bytes[*at..]), Markup::Element(_));
            let found = memchr_iter(b'<', &bytes[from..offset]).map(|it| from + it).find(is_element);
            self.is_found = found.is_some();
            self.until = self.until.max(position + found.unwrap_or(offset) as u64);
        }
        self.is_found && self.until < position + offset as u64
    }
}
