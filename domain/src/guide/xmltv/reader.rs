//! Reads guides.

use std::io::{self, BufRead};

use jiff::tz::TimeZone;
use roxmltree::Node;

use super::document::{Document, FoundElement};
use super::limits::{XmltvLimits, XmltvPlace, XmltvSkip, XmltvSummary};
use super::repair::repaired;
use super::schema::{self, ElementKind};
use super::time::parse_time_in;
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
        /// Its stop is its start if the guide does not say when it ends: the next one of its channel ends it.
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
    /// Nothing of the guide can be read.
    #[error("all {n} elements of the guide are damaged; the first one is at {place}: {reason}")]
    Damaged { n: u64, place: XmltvPlace, reason: XmltvSkip },
}

/// Longer programmes are cut. Some guides fill a channel without data with one programme of a month.
const DURATION_SECONDS_MAX: i64 = 7 * 86_400;

/// Reads a guide, one element at a time: an iterator of [`Item`]s, which ends after the first error.
///
/// It repairs what is damaged, or skips it if its channel or start is lost, and counts that in
/// [`summary`](Self::summary). Memory is bounded by [`XmltvLimits`]. Entities that a document type declares are never
/// expanded, and nothing outside is ever loaded.
pub struct XmltvReader<R> {
    limits: XmltvLimits,
    state: State<R>,
    summary: XmltvSummary,
    /// Channels that were skipped.
    n_channels_skipped: u64,
    /// The zone of times that state none; UTC without one.
    zone: Option<TimeZone>,
}

/// How far the reader is.
enum State<R> {
    /// Nothing was read yet.
    New(R),
    Open(Document<R>),
    /// The end, and the error that is still to be returned.
    Over(Option<XmltvError>),
}

impl<R: BufRead> XmltvReader<R> {
    /// Reads a guide from unpacked bytes.
    pub fn new(input: R, limits: XmltvLimits) -> Self {
        Self {
            limits,
            state: State::New(input),
            summary: XmltvSummary::default(),
            n_channels_skipped: 0,
            zone: None,
        }
    }

    /// Reads times that state no zone in this one.
    #[must_use]
    pub fn in_zone(self, zone: Option<TimeZone>) -> Self {
        Self { zone, ..self }
    }

    /// Returns the counts so far.
    pub fn summary(&self) -> &XmltvSummary {
        &self.summary
    }

    /// Returns the size of the buffer for unread bytes.
    #[cfg(test)]
    pub(super) fn n_bytes_kept(&self) -> usize {
        match &self.state {
            State::Open(document) => document.capacity(),
            State::New(_) | State::Over(_) => 0,
        }
    }

    /// Reads until an item is ready, or the guide is over.
    fn advance(&mut self) -> Option<Item> {
        let (state, item) = match std::mem::replace(&mut self.state, State::Over(None)) {
            State::New(input) => match Document::new(input) {
                Ok(document) => (State::Open(document), None),
                Err(error) => (State::Over(Some(error.into())), None),
            },
            State::Open(mut document) => match self.read(&mut document) {
                Ok(Some(item)) => (State::Open(document), Some(item)),
                Ok(None) => (State::Over(document.fault().or_else(|| self.damage())), None),
                Err(error) => (State::Over(Some(error)), None),
            },
            over @ State::Over(_) => (over, None),
        };
        self.state = state;
        item
    }

    /// Returns the error of a guide in which everything is damaged.
    fn damage(&self) -> Option<XmltvError> {
        let (place, reason) = self.summary.first_skip.filter(|_| self.summary.programmes == 0)?;
        let n = self.summary.n_skipped();
        // Channels without programmes are a guide, but not if its programmes were lost.
        let is_lost = n > self.n_channels_skipped || self.summary.channels == 0;
        is_lost.then_some(XmltvError::Damaged { n, place, reason })
    }

    /// Reads elements until an item is ready. Returns `None` at the end of the guide.
    fn read(&mut self, document: &mut Document<R>) -> Result<Option<Item>, XmltvError> {
        while let Some(found) = document.next_element(&self.limits)? {
            let read = {
                let (bytes, encoding) = document.unread();
                let element = encoding.decode(&bytes[..found.length]);
                self.element(&element, found)
            };
            if let Err(reason) = read {
                self.summary.skip(reason, document.place());
                self.n_channels_skipped += u64::from(found.kind == ElementKind::Channel);
            }
            document.advance(found.length);
            if let Ok(item) = read {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// Reads a whole element.
    fn element(&mut self, element: &str, found: FoundElement) -> Result<Item, XmltvSkip> {
        if found.is_plain
            && let Ok(document) = parse_element(element)
            && !is_unusual(document.root_element(), found.kind)
        {
            match self.node(document.root_element(), found.kind) {
                // The names of the attributes can be damaged.
                Err(XmltvSkip::NoChannel | XmltvSkip::NoStart) => {}
                read => return read,
            }
        }
        let repaired = repaired(element, found.kind);
        let document = parse_element(&repaired).map_err(|_| XmltvSkip::Malformed)?;
        let item = self.node(document.root_element(), found.kind)?;
        self.summary.repaired += 1;
        Ok(item)
    }

    fn node(&mut self, it: Node<'_, '_>, kind: ElementKind) -> Result<Item, XmltvSkip> {
        match kind {
            ElementKind::Channel => self.channel(it),
            ElementKind::Programme => self.programme(it),
        }
    }

    fn channel(&mut self, it: Node<'_, '_>) -> Result<Item, XmltvSkip> {
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
        Ok(Item::Channel { key, names, icon })
    }

    fn programme(&mut self, it: Node<'_, '_>) -> Result<Item, XmltvSkip> {
        let channel = self.key(it.attribute("channel"))?;
        // Panels add the same times as seconds since 1970-01-01.
        let time = |names: [&str; 2]| {
            names.into_iter().find_map(|name| parse_time_in(it.attribute(name)?, self.zone.as_ref()))
        };
        let start = time(["start", "start_timestamp"]).ok_or(XmltvSkip::NoStart)?;
        if !(ProgrammeId::START_MIN..=ProgrammeId::START_MAX).contains(&start) {
            return Err(XmltvSkip::OutOfRange);
        }
        if self.summary.programmes >= self.limits.programmes_max {
            return Err(XmltvSkip::TooMany);
        }
        let stop = time(["stop", "stop_timestamp"]).filter(|stop| *stop > start);
        let mut programme = programme_from_element(it, start, start);
        self.summary.programmes += 1;
        if stop.is_none() {
            let is_wrong = it.attribute("stop").is_some_and(|it| !it.trim().is_empty());
            self.summary.stops_added += 1;
            self.summary.stops_wrong += u64::from(is_wrong);
        }
        let of_length = || programme.length.map(|it| start.saturating_add_unsigned(it.seconds()));
        if let Some(stop) = stop.or_else(of_length) {
            programme.stop = stop.clamp(start, start + DURATION_SECONDS_MAX);
        }
        Ok(Item::Programme { channel, programme })
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
            if let Some(item) = self.advance() {
                return Some(Ok(item));
            }
            if let State::Over(error) = &mut self.state {
                return error.take().map(Err);
            }
        }
    }
}

/// Returns whether an element that is well-formed has children where they do not belong, or names in capital letters.
fn is_unusual(element: Node<'_, '_>, kind: ElementKind) -> bool {
    element.children().filter(Node::is_element).any(|child| {
        let name = child.tag_name().name();
        name.starts_with(|it: char| it.is_ascii_uppercase())
            || child.first_element_child().is_some_and(|it| {
                let part = it.tag_name().name();
                let is_text = kind.has_child(name) || schema::is_inline(name);
                is_text && kind.has_child(part) && !schema::has_part(name, part)
            })
    })
}

/// Returns the text of an element, with the parts that comments separate.
fn text_of(it: Node<'_, '_>) -> String {
    it.descendants().filter(Node::is_text).filter_map(|it| it.text()).collect()
}
