//! The items of a playlist, and the limits of the parser.

use std::fmt;

use crate::channel::ChannelNumber;
use crate::entry_details::PlayerOption;
use crate::source_url::SourceUrl;
use crate::stream::RequestHeaders;

/// Limits of the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaylistLimits {
    /// Longer lines are dropped. Also limits the parser's memory.
    pub line_bytes_max: usize,
    /// Longer names and groups are truncated; a longer id is dropped.
    pub name_chars_max: usize,
    /// An entry with a longer address is dropped, and so is a longer value of any other attribute.
    pub url_bytes_max: usize,
    /// Number of attributes per entry that have no field of their own.
    pub attributes_max: usize,
    pub entries_max: u64,
}

impl Default for PlaylistLimits {
    fn default() -> Self {
        Self {
            line_bytes_max: 64 * 1024,
            name_chars_max: 512,
            url_bytes_max: 4096,
            attributes_max: 64,
            entries_max: 2_000_000,
        }
    }
}

/// An item of a playlist, in the order found.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all items are entries, and a box for each would cost more"
)]
pub enum PlaylistItem {
    Header(PlaylistHeader),
    Entry(PlaylistEntry),
    Problem(PlaylistProblem),
}

/// The attributes of `#EXTM3U`. A playlist may have none, or several after concatenation.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct PlaylistHeader {
    /// Addresses of the programme guides.
    pub guide_urls: Vec<SourceUrl>,
    /// Other attributes, keys in lower case.
    pub attributes: Vec<(String, String)>,
}

/// An address with its description.
#[derive(Clone, PartialEq)]
pub struct PlaylistEntry {
    /// Line of its `#EXTINF`, or of its address without one; from 1.
    pub line: u64,
    /// The text after the attributes, else `tvg-name`, else the end of the address. Never empty.
    pub name: String,
    pub url: SourceUrl,
    /// In seconds; most playlists write -1 for live streams.
    pub duration: Option<f64>,
    pub tvg_id: Option<String>,
    pub tvg_name: Option<String>,
    pub tvg_logo: Option<String>,
    pub tvg_chno: Option<ChannelNumber>,
    /// `group-title`, else the last `#EXTGRP` before it.
    pub group: Option<String>,
    /// Headers that players send with the request.
    pub headers: RequestHeaders,
    /// Options that only a player can use.
    pub options: Vec<PlayerOption>,
    /// Other attributes in the order found, keys in lower case.
    pub attributes: Vec<(String, String)>,
}

/// Prints only the keys of the attributes, because a value may be an address with credentials.
impl fmt::Debug for PlaylistHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlaylistHeader")
            .field("guide_urls", &self.guide_urls)
            .field("attributes", &keys(&self.attributes))
            .finish()
    }
}

/// Prints only the keys of the other attributes, for the same reason.
impl fmt::Debug for PlaylistEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlaylistEntry")
            .field("line", &self.line)
            .field("name", &self.name)
            .field("url", &self.url)
            .field("tvg_id", &self.tvg_id)
            .field("tvg_chno", &self.tvg_chno)
            .field("group", &self.group)
            .field("headers", &self.headers)
            .field("options", &self.options)
            .field("attributes", &keys(&self.attributes))
            .finish_non_exhaustive()
    }
}

fn keys(attributes: &[(String, String)]) -> Vec<&str> {
    attributes.iter().map(|it| it.0.as_str()).collect()
}

/// Data that was dropped or guessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaylistProblem {
    /// From 1.
    pub line: u64,
    pub kind: PlaylistProblemKind,
    /// A message without the line's content, which may contain credentials.
    pub text: String,
}

/// The dropped data, or the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlaylistProblemKind {
    /// The line, and the entry that it belongs to.
    LineTooLong,
    /// The entry: another one, or the end, follows before its address.
    NoAddress,
    /// The line, and the entry that it belongs to: it is not an address.
    NotAnAddress,
    /// The entry: it refers to a local file, but the playlist came from another machine. Reported by the importer.
    LocalFile,
    /// The entry.
    AddressTooLong,
    /// The end of a name or group.
    NameTooLong,
    /// One value.
    ValueTooLong,
    /// The channel number.
    BadNumber,
    /// A request header.
    BadHeader,
    /// An option for players.
    BadOption,
    /// Possibly a part of a value or of the name: the end of the value was guessed.
    UnterminatedQuote,
    /// The attributes above the limit.
    TooManyAttributes,
    /// All entries from here on.
    TooManyEntries,
    /// Everything: this is a web page or an answer of a panel.
    NotAPlaylist,
    /// An element of a list of a panel. Its line is its position.
    PanelElement,
    /// All entries from here on: this is the playlist of one HLS stream, and its entries are segments.
    MediaPlaylist,
}

/// Totals of a playlist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlaylistSummary {
    pub lines: u64,
    pub entries: u64,
    pub problems: u64,
    /// The playlist contains `#EXTM3U`.
    pub has_header: bool,
}
