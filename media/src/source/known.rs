//! What openings of an address have shown.

use super::request::PlaylistFormat;
use crate::ts::table_reader::TableHints;

/// The findings of earlier openings of an address. They make the next one quicker and are never needed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownSource {
    /// The format of the playlist of segments that the address led to, and that a program reads.
    pub playlist: Option<PlaylistFormat>,
    /// Whether titles were sent when they were asked for; `None` if they were not asked for.
    pub sends_titles: Option<bool>,
    /// The position of the variant that the program plays, if the address leads to a list of variants.
    pub variant: Option<u32>,
    /// PIDs whose tables had a wrong checksum each time.
    pub wrong_checksums: Vec<u16>,
}

impl KnownSource {
    /// Returns what the tables have shown.
    pub(super) fn from_hints(hints: &TableHints) -> Self {
        Self { wrong_checksums: hints.wrong_checksums.clone(), ..Self::default() }
    }
}
