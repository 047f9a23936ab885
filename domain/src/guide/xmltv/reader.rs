//! Reads guides.

use std::collections::VecDeque;
use std::io::{self, BufRead};

use memchr::{memchr, memmem};
use roxmltree::Node;

use super::encoding::ElementEncoding;
use super::limits::{XmltvLimits, XmltvSkip, XmltvSummary};
use super::repair::repaired;
use super::scan::{self, MARKUP_BYTES, Markup, Scan};
use super::stops::{DURATION_SECONDS_MAX, Waiting};
use super::time::parse_time;
use super::window::Window;
use crate::guide::programme::{
    Programme, ProgrammeId, TEXT_CHARS_MAX, address, line, parse_element, programme_from_element,
};

/// An element of a guide.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all items are programmes, and a box for each would cost more"
)]
pub enum Item {
    Channel {
        /// The `id` of the channel; never empty. Guides can repeat it.
        key: String,
        /// Its names, the preferred one first, without repetitions.
        names: Vec<String>,
        /// Address of its logo.
        icon: Option<String>,
    },
    Programme {
        /// The `id` of its channel; never empty. Guides can lack the channel.
        channel: String,
        programme: Programme,
    },
}

/// A guide that cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum XmltvError {
    /// The source of the bytes fails.
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the guide is empty")]
    Empty,
    #[error("this is a web page, not a guide in XMLTV")]
    WebPage,
    #[error("this is not a guide in XMLTV")]
    NotAGuide,
    /// The items before are complete.
    #[error("the guide is truncated: it ends without </tv>")]
    Truncated,
}

/// Reads a guide, one element at a time: an iterator of [`Item`]s, which ends after the first error.
///
/// It repairs or skips what is broken, and counts that in [`summary`](Self::summary). Memory is bounded by
/// [`XmltvLimits`]. Entities that a document type declares are never expanded, and nothing outside is ever loaded.
pub struct XmltvReader<R> {
    limits: XmltvLimits,
    state: State<R>,
    ready: VecDeque<Item>,
    waiting: Waiting,
    summary: XmltvSummary,
}

/// How far the reader is.
enum State<R> {
    /// Nothing was read yet.
    New(R),
    Open(Document<R>),
    /// The end, and the error that is still to be returned.
    Over(Option<XmltvError>),
}

/// The guide between its first and last byte.
struct Document<R> {
    window: Window<R>,
    encoding: ElementEncoding,
    /// Everything until these bytes is skipped.
    skip_until: Option<&'static [u8]>,
    /// Bytes before the first element of a guide.
    n_junk: u64,
    /// The error if no element of a guide is found.
    unlike: Unlike,
    /// An element of a guide was found.
    is_guide: bool,
    /// `<tv>` was read, but not `</tv>`.
    is_open: bool,
}

/// The kind of a document other than a guide.
#[derive(Clone, Copy)]
enum Unlike {
    Empty,
    WebPage,
    SomethingElse,
}

impl<R: BufRead> XmltvReader<R> {
    /// Reads a guide from unpacked bytes.
    pub fn new(input: R, limits: XmltvLimits) -> Self {
        Self {
            limits,
            state: State::New(input),
            ready: VecDeque::new(),
            waiting: Waiting::default(),
            summary: XmltvSummary::default(),
        }
    }

    /// Returns the counts so far.
    pub fn summary(&self) -> &XmltvSummary {
        &self.summary
    }

    /// Returns the size of the buffer for unread bytes.
    #[cfg(test)]
    pub(super) fn n_bytes_kept(&self) -> usize {
        match &self.state {
            State::Open(document) => document.window.capacity(),
            State::New(_) | State::Over(_) => 0,
        }
    }

    /// Reads until something is ready, or the guide is over.
    fn advance(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Over(None)) {
            State::New(input) => match Document::new(input) {
                Ok(document) => State::Open(document),
                Err(error) => State::Over(Some(error.into())),
            },
            State::Open(mut document) => match self.read(&mut document) {
                Ok(false) => State::Open(document),
                Ok(true) => {
                    self.waiting.release();
                    State::Over(document.fault())
                }
                Err(error) => State::Over(Some(error)),
            },
            State::Over(error) => State::Over(error),
        };
    }

    /// Reads elements until one is ready. Returns true at the end of the guide.
    fn read(&mut self, document: &mut Document<R>) -> Result<bool, XmltvError> {
        while self.ready.is_empty() && !self.waiting.has_released() {
            match document.next_element(&self.limits, &mut self.summary)? {
                Some(length) => {
                    let element = document.encoding.decode(&document.window.bytes()[..length]);
                    if let Err(reason) = self.element(&element) {
                        self.summary.skip(reason);
                    }
                    document.window.advance(length);
                }
                None => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Reads a whole element.
    fn element(&mut self, element: &str) -> Result<(), XmltvSkip> {
        if let Ok(document) = parse_element(element) {
            return self.node(document.root_element());
        }
        let repaired = repaired(element);
        let document = parse_element(&repaired).map_err(|_| XmltvSkip::Malformed)?;
        self.node(document.root_element())
    }

    fn node(&mut self, it: Node<'_, '_>) -> Result<(), XmltvSkip> {
        if it.has_tag_name("channel") { self.channel(it) } else { self.programme(it) }
    }

    fn channel(&mut self, it: Node<'_, '_>) -> Result<(), XmltvSkip> {
        let key = self.key(it.attribute("id"))?;
        if self.summary.channels >= self.limits.channels_max {
            return Err(XmltvSkip::TooMany);
        }
        let mut names: Vec<String> = Vec::new();
        let mut icon = None;
        for it in it.children() {
            match it.tag_name().name() {
                "display-name" if names.len() < self.limits.names_max => {
                    let name = line(&text_of(it), TEXT_CHARS_MAX);
                    if !name.is_empty() && !names.contains(&name) {
                        names.push(name);
                    }
                }
                "icon" if icon.is_none() => icon = it.attribute("src").and_then(address),
                _ => {}
            }
        }
        self.summary.channels += 1;
        self.ready.push_back(Item::Channel { key, names, icon });
        Ok(())
    }

    fn programme(&mut self, it: Node<'_, '_>) -> Result<(), XmltvSkip> {
        let channel = self.key(it.attribute("channel"))?;
        // Panels add the same times as seconds since 1970-01-01.
        let time = |names: [&str; 2]| names.into_iter().find_map(|name| parse_time(it.attribute(name)?));
        let start = time(["start", "start_timestamp"]).ok_or(XmltvSkip::NoStart)?;
        if !(ProgrammeId::START_MIN..=ProgrammeId::START_MAX).contains(&start) {
            return Err(XmltvSkip::OutOfRange);
        }
        if self.summary.programmes >= self.limits.programmes_max {
            return Err(XmltvSkip::TooMany);
        }
        let stop = time(["stop", "stop_timestamp"]).filter(|stop| *stop > start);
        let mut programme = programme_from_element(it, start, start);
        let of_length = || programme.length.map(|it| start.saturating_add_unsigned(it.seconds()));
        self.summary.programmes += 1;
        self.summary.stops_added += u64::from(stop.is_none());
        match stop.or_else(of_length).filter(|it| *it > start) {
            Some(stop) => {
                programme.stop = stop.min(start + DURATION_SECONDS_MAX);
                self.ready.extend(self.waiting.followed(&channel, start));
                self.ready.push_back(Item::Programme { channel, programme });
            }
            None => {
                self.ready.extend(self.waiting.add(channel, &programme));
                if self.waiting.n_bytes() > self.limits.waiting_bytes_max {
                    self.waiting.release();
                }
            }
        }
        Ok(())
    }

    /// Returns the id of a channel.
    fn key(&self, attribute: Option<&str>) -> Result<String, XmltvSkip> {
        let key = line(attribute.unwrap_or_default(), usize::MAX);
        let is_key = !key.is_empty() && key.len() <= self.limits.key_bytes_max;
        if is_key { Ok(key) } else { Err(XmltvSkip::NoChannel) }
    }
}

impl<R: BufRead> Iterator for XmltvReader<R> {
    type Item = Result<Item, XmltvError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front().or_else(|| self.waiting.pop_released()) {
                return Some(Ok(item));
            }
            if let State::Over(error) = &mut self.state {
                return error.take().map(Err);
            }
            self.advance();
        }
    }
}

impl<R: BufRead> Document<R> {
    fn new(input: R) -> Result<Self, io::Error> {
        let (window, encoding) = Window::new(input)?;
        let start = window.bytes()[..window.bytes().len().min(MARKUP_BYTES * 64)].to_ascii_lowercase();
        let unlike = if start.iter().all(u8::is_ascii_whitespace) {
            Unlike::Empty
        } else if memmem::find(&start, b"<html").is_some()
            || memmem::find(&start, b"<!doctype html").is_some()
        {
            Unlike::WebPage
        } else {
            Unlike::SomethingElse
        };
        Ok(Self { window, encoding, skip_until: None, n_junk: 0, unlike, is_guide: false, is_open: false })
    }

    /// Returns the error of a guide that was read until its end.
    fn fault(&self) -> Option<XmltvError> {
        match (self.is_guide, self.unlike) {
            (true, _) => self.is_open.then_some(XmltvError::Truncated),
            (false, Unlike::Empty) => Some(XmltvError::Empty),
            (false, Unlike::WebPage) => Some(XmltvError::WebPage),
            (false, Unlike::SomethingElse) => Some(XmltvError::NotAGuide),
        }
    }

    /// Moves the window to the next `channel` or `programme`. Returns its length, or `None` at the end.
    fn next_element(
        &mut self,
        limits: &XmltvLimits,
        summary: &mut XmltvSummary,
    ) -> Result<Option<usize>, XmltvError> {
        loop {
            if !self.skip_to_markup(limits)? {
                return Ok(None);
            }
            let bytes = self.window.bytes();
            let markup = scan::markup(bytes);
            let n_done = match markup {
                Markup::Channel | Markup::Programme => {
                    self.is_guide = true;
                    // No further, so that the size of the parts that arrive makes no difference.
                    let allowed = &bytes[..bytes.len().min(limits.element_bytes_max)];
                    match scan::element_end(allowed, limits) {
                        Scan::End(length) => return Ok(Some(length)),
                        Scan::Incomplete if bytes.len() <= limits.element_bytes_max => {
                            if self.window.is_ended() {
                                self.is_open = true;
                                return Ok(None);
                            }
                            self.window.fill()?;
                            continue;
                        }
                        Scan::Incomplete => summary.skip(XmltvSkip::TooLarge),
                        Scan::Broken(reason) => summary.skip(reason),
                    }
                    // Its children are read as unknown elements, until the next element of a guide.
                    1
                }
                Markup::Root => match scan::tag(bytes, usize::MAX) {
                    Ok(None) if bytes.len() <= limits.element_bytes_max && !self.window.is_ended() => {
                        self.window.fill()?;
                        continue;
                    }
                    tag => {
                        (self.is_guide, self.is_open) = (true, true);
                        match tag {
                            Ok(Some(tag)) => {
                                self.is_open = !tag.is_empty;
                                tag.length
                            }
                            _ => 1,
                        }
                    }
                },
                Markup::RootEnd => {
                    self.is_open = false;
                    1
                }
                Markup::Doctype => {
                    let end = scan::doctype_end(&bytes[..bytes.len().min(limits.doctype_bytes_max)]);
                    let is_cut = end.is_none() && bytes.len() < limits.doctype_bytes_max;
                    if is_cut && !self.window.is_ended() {
                        self.window.fill()?;
                        continue;
                    }
                    end.unwrap_or(1)
                }
                Markup::Until(end) => {
                    self.skip_until = Some(end);
                    2
                }
                Markup::Other => 1,
            };
            self.advance(n_done);
        }
    }

    /// Moves the window to a `<` with enough bytes to decide about it. Returns false at the end, and after
    /// too many bytes before a guide.
    fn skip_to_markup(&mut self, limits: &XmltvLimits) -> Result<bool, XmltvError> {
        loop {
            let bytes = self.window.bytes();
            match self.skip_until {
                Some(end) => match memmem::find(bytes, end) {
                    Some(at) => {
                        self.skip_until = None;
                        self.advance(at + end.len());
                        continue;
                    }
                    // The end can be cut.
                    None => self.advance(bytes.len().saturating_sub(end.len() - 1)),
                },
                None => match memchr(b'<', bytes) {
                    Some(at) => {
                        let is_enough = bytes.len() - at >= MARKUP_BYTES || self.window.is_ended();
                        self.advance(at);
                        if is_enough {
                            return Ok(self.n_junk <= limits.junk_bytes_max);
                        }
                    }
                    None => self.advance(bytes.len()),
                },
            }
            if self.window.is_ended() || self.n_junk > limits.junk_bytes_max {
                return Ok(false);
            }
            self.window.fill()?;
        }
    }

    fn advance(&mut self, n_bytes: usize) {
        self.window.advance(n_bytes);
        if !self.is_guide {
            self.n_junk += n_bytes as u64;
        }
    }
}

/// Returns the text of an element, with the parts that comments separate.
fn text_of(it: Node<'_, '_>) -> String {
    it.descendants().filter(Node::is_text).filter_map(|it| it.text()).collect()
}
