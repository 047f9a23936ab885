//! Limits of the reader, and its counts.

use std::fmt;

/// Limits of the reader. What is beyond them is cut or skipped, and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XmltvLimits {
    /// Larger elements are cut here, and keep the children before. Also limits the reader's memory. The largest ones that
    /// guides have, with some hundred credits, have less than a hundredth of the default.
    pub element_bytes_max: usize,
    /// Elements within elements below a programme or channel. The DTD has three levels. More need a repair.
    pub depth_max: usize,
    /// Attributes of one tag. The DTD has at most eight. More need a repair.
    pub attributes_max: usize,
    /// Bytes before the first element of a guide.
    pub junk_bytes_max: u64,
    /// A longer document type is read as if it were text.
    pub doctype_bytes_max: usize,
    pub channels_max: u64,
    pub programmes_max: u64,
    /// Programmes with a longer id of their channel are skipped, because a truncated one would be another one.
    pub key_bytes_max: usize,
    /// Names of one channel; more are ignored.
    pub names_max: usize,
}

impl Default for XmltvLimits {
    fn default() -> Self {
        Self {
            element_bytes_max: 4 * 1024 * 1024,
            depth_max: 16,
            attributes_max: 32,
            junk_bytes_max: 1024 * 1024,
            doctype_bytes_max: 64 * 1024,
            channels_max: 200_000,
            programmes_max: 20_000_000,
            key_bytes_max: 512,
            names_max: 50,
        }
    }
}

/// Why an element was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XmltvSkip {
    /// Not well-formed, and not in a way that can be repaired.
    Malformed,
    /// No id of the channel, or one that is too long.
    NoChannel,
    /// The start is missing or not a time.
    NoStart,
    /// A start before the year 2000 or after 2136.
    OutOfRange,
    /// More channels or programmes than allowed.
    TooMany,
}

impl XmltvSkip {
    pub const ALL: [Self; 5] =
        [Self::Malformed, Self::NoChannel, Self::NoStart, Self::OutOfRange, Self::TooMany];
}

impl fmt::Display for XmltvSkip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "not well-formed",
            Self::NoChannel => "no channel id, or one that is too long",
            Self::NoStart => "no valid start time",
            Self::OutOfRange => "a start before 2000 or after 2136",
            Self::TooMany => "more than allowed",
        })
    }
}

/// A place in a guide, for people. Both numbers are from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XmltvPlace {
    pub line: u64,
    /// In characters; in bytes if the guide declares an encoding other than UTF-8.
    pub column: u64,
}

impl fmt::Display for XmltvPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Counts of a guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct XmltvSummary {
    pub channels: u64,
    pub programmes: u64,
    /// Elements that were damaged, and stay without the damaged part.
    pub repaired: u64,
    /// Programmes without a valid stop. `length` or the next programme of their channel ends them.
    pub stops_added: u64,
    /// Those of them that have a stop, which is not a time or not after the start.
    pub stops_wrong: u64,
    /// The first element that was skipped, and why.
    pub first_skip: Option<(XmltvPlace, XmltvSkip)>,
    skipped: [u64; XmltvSkip::ALL.len()],
}

impl XmltvSummary {
    /// Returns the number of elements that were skipped for a reason.
    pub fn skipped(&self, reason: XmltvSkip) -> u64 {
        self.skipped[reason as usize]
    }

    /// Returns the number of elements that were skipped.
    pub fn n_skipped(&self) -> u64 {
        self.skipped.iter().sum()
    }

    pub(super) fn skip(&mut self, reason: XmltvSkip, place: XmltvPlace) {
        self.skipped[reason as usize] += 1;
        self.first_skip.get_or_insert((place, reason));
    }
}
