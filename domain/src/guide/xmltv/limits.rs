//! Limits of the reader, and its counts.

use std::fmt;

/// Limits of the reader. Elements beyond them are skipped and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XmltvLimits {
    /// Larger elements are skipped. Also limits the reader's memory. The largest ones that guides have, with some hundred
    /// credits, have less than a tenth of the default.
    pub element_bytes_max: usize,
    /// Elements within elements below a programme or channel. The DTD has three levels.
    pub depth_max: usize,
    /// Attributes of one tag. The DTD has at most eight.
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
    /// Memory for programmes whose stop is unknown until the next one of their channel is read, one per channel.
    pub waiting_bytes_max: usize,
}

impl Default for XmltvLimits {
    fn default() -> Self {
        Self {
            element_bytes_max: 256 * 1024,
            depth_max: 16,
            attributes_max: 32,
            junk_bytes_max: 1024 * 1024,
            doctype_bytes_max: 64 * 1024,
            channels_max: 200_000,
            programmes_max: 20_000_000,
            key_bytes_max: 512,
            names_max: 50,
            waiting_bytes_max: 32 * 1024 * 1024,
        }
    }
}

/// Why an element was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XmltvSkip {
    /// Not well-formed, and not in a way that can be repaired.
    Malformed,
    /// More bytes than allowed.
    TooLarge,
    /// More levels or attributes than allowed.
    TooComplex,
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
    pub const ALL: [Self; 7] = [
        Self::Malformed,
        Self::TooLarge,
        Self::TooComplex,
        Self::NoChannel,
        Self::NoStart,
        Self::OutOfRange,
        Self::TooMany,
    ];
}

impl fmt::Display for XmltvSkip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "not well-formed",
            Self::TooLarge => "too large",
            Self::TooComplex => "too many levels or attributes",
            Self::NoChannel => "no channel id, or one that is too long",
            Self::NoStart => "no valid start time",
            Self::OutOfRange => "a start before 2000 or after 2136",
            Self::TooMany => "more than allowed",
        })
    }
}

/// Counts of a guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct XmltvSummary {
    pub channels: u64,
    pub programmes: u64,
    /// Programmes without a valid stop, which got one.
    pub stops_added: u64,
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

    /// Returns a sentence about skipped elements for people; `None` if there are none.
    pub fn problems(&self) -> Option<String> {
        let reasons = XmltvSkip::ALL.into_iter().map(|it| (it, self.skipped(it))).filter(|(_, n)| *n > 0);
        let reasons: Vec<_> = reasons.map(|(reason, n)| format!("{n} × {reason}")).collect();
        (!reasons.is_empty())
            .then(|| format!("{} elements skipped: {}", self.n_skipped(), reasons.join(", ")))
    }

    pub(super) fn skip(&mut self, reason: XmltvSkip) {
        self.skipped[reason as usize] += 1;
    }
}
