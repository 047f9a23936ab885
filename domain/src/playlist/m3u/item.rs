//! What a playlist is made of, and how much of it is taken.

use std::fmt;

use crate::channel::ChannelNumber;
use crate::source_url::SourceUrl;
use crate::stream::RequestHeaders;

/// How much of a playlist is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaylistLimits {
    /// A longer line is lost. Also the bound of the parser's memory.
    pub line_bytes_max: usize,
    /// Longer names and groups are cut; a longer id is dropped.
    pub name_chars_max: usize,
    /// An entry with a longer address is lost, and so is a longer value of any other attribute.
    pub url_bytes_max: usize,
    /// Attributes of one entry that the gateway has no field for.
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

/// What a playlist is made of, in the order found.
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

/// What `#EXTM3U` says. There may be none, or several where lists were put together.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct PlaylistHeader {
    /// Where the list's guides are.
    pub guide_urls: Vec<SourceUrl>,
    /// Other attributes, keys in lower case.
    pub attributes: Vec<(String, String)>,
}

/// One address with what is said about it.
#[derive(Clone, PartialEq)]
pub struct PlaylistEntry {
    /// Line of its `#EXTINF`, or of its address if it has none; from 1.
    pub line: u64,
    /// The text behind the attributes, else `tvg-name`, else the end of the address. Never empty.
    pub name: String,
    pub url: SourceUrl,
    /// Seconds; -1 is how most write "live".
    pub duration: Option<f64>,
    pub tvg_id: Option<String>,
    pub tvg_name: Option<String>,
    pub tvg_logo: Option<String>,
    pub tvg_chno: Option<ChannelNumber>,
    /// `group-title`, else `#EXTGRP`.
    pub group: Option<String>,
    /// What a player is told to send with the request.
    pub headers: RequestHeaders,
    /// Other attributes in the order found, keys in lower case.
    pub attributes: Vec<(String, String)>,
}

/// Keys only of the attributes: a value may be an address with credentials.
impl fmt::Debug for PlaylistHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlaylistHeader")
            .field("guide_urls", &self.guide_urls)
            .field("attributes", &keys(&self.attributes))
            .finish()
    }
}

/// Keys only of the other attributes, for the same reason.
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
            .field("attributes", &keys(&self.attributes))
            .finish_non_exhaustive()
    }
}

fn keys(attributes: &[(String, String)]) -> Vec<&str> {
    attributes.iter().map(|it| it.0.as_str()).collect()
}

/// Something that was lost or had to be guessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaylistProblem {
    /// From 1.
    pub line: u64,
    pub kind: PlaylistProblemKind,
    /// A sentence without the line's content, which may hold credentials.
    pub text: String,
}

/// What kind of thing was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlaylistProblemKind {
    /// The line, and the entry that it belongs to.
    LineTooLong,
    /// The entry: another one, or the end, came before its address.
    NoAddress,
    /// The line, and the entry that it belongs to: it is no address.
    NotAnAddress,
    /// The entry: it names a file of this machine, and the list came from another. Found by whoever fetched it.
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
    /// Perhaps a piece of a value or of the name: where the value ends was guessed.
    UnterminatedQuote,
    /// The attributes above the limit.
    TooManyAttributes,
    /// All entries from here on.
    TooManyEntries,
    /// All: this is a web page or an answer of a panel.
    NotAPlaylist,
    /// All from here on: this is the playlist of one HLS stream, and its entries are pieces of it.
    MediaPlaylist,
}

/// What was read, all in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlaylistSummary {
    pub lines: u64,
    pub entries: u64,
    pub problems: u64,
    /// Did it say that it is a playlist?
    pub has_header: bool,
}
