//! Guide files: the programmes of a guide source, in one immutable file per refresh.
//!
//! A file begins with a magic number and ends with a [`tables::Footer`], which leads to its [`tables::GuideTables`]. Between
//! them are blocks, each followed by its CRC-32:
//!
//! - [`cell`]s: consecutive programmes of one guide channel, compressed, about 4 KiB of XML each. Sorted by guide channel
//!   and start.
//! - times: start and stop of 8,192 programmes each, for searches in time.
//! - words: entries of the search index, sorted by field and word; each has the numbers of the programmes with the word.
//!
//! Only the tables are in memory: 24 bytes per cell, and the first word of each block of words. Everything else is read
//! at its place in the file when it is needed, and checked.
//!
//! A [`GuideWriter`] receives programmes in any order. It sorts them in memory, part by part ([`runs`]), and merges the
//! parts into the file; the search index is built in the same way ([`index_builder`]). The file gets its name once it is
//! on the disk. [`GuideFiles`] has the present file of each source.

mod bitmap;
mod bytes;
mod cell;
mod file;
mod files;
mod index_builder;
mod index_thread;
mod lookup;
mod output;
mod query;
mod runs;
mod search;
mod tables;
#[cfg(test)]
mod tests;
mod texts;
mod writer;

use domain::guide::programme::ProgrammeId;

pub use self::cell::{GuideCell, ProgrammeRef};
pub use self::file::{GuideCells, GuideFile};
pub use self::files::{FOLDER as GUIDES_FOLDER, GuideFiles};
pub use self::query::{Found, GuideField, GuideQuery, QUERY_WORDS_MAX, SearchLimits, TextQuery, TextTest};
pub use self::tables::PROGRAMMES_MAX;
pub use self::writer::parse_file_name;
pub use self::writer::{FinishedGuide, GuideWriter, PROGRAMME_BYTES_MAX};

#[cfg(feature = "fuzzing")]
pub(crate) use self::{cell::decode as decode_cell, lookup::read_entries, tables::GuideTables};

/// A programme of a guide file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProgramme {
    /// Unix seconds.
    pub start: i64,
    /// Unix seconds; after the start.
    pub stop: i64,
    /// The inside of its XMLTV element.
    pub inner: Box<str>,
}

/// Returns the seconds since 2000, in which files count, or `None` if they do not fit.
fn seconds_of(unix: i64) -> Option<u32> {
    u32::try_from(unix.checked_sub(ProgrammeId::START_MIN)?).ok()
}

/// Returns the seconds since 2000 that are nearest to this moment.
fn nearest_seconds(unix: i64) -> u32 {
    unix.saturating_sub(ProgrammeId::START_MIN).clamp(0, u32::MAX.into()) as u32
}

fn unix_of(seconds: u32) -> i64 {
    ProgrammeId::START_MIN + i64::from(seconds)
}
