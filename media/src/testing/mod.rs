//! Test doubles for providers and viewers, for tests with simulated time.
//!
//! - [`MemoryDial`] connects to registered in-memory providers.
//! - [`MemoryProvider`] counts the sockets that it sees and behaves as configured.
//! - [`TestFile`] is a file that such a provider sends, and [`TestPage`] a short response over a connection for several.
//! - [`TsSource`] generates a transport stream that contains its own name.
//! - [`HlsChecker`] checks playlists and segments against the standards.
//! - [`TsReader`] checks the stream of a viewer against the standard and the clock.
//! - [`TestStation`] is a radio station that such a provider has.
//! - [`TestPermit`] reports when it is returned.
//!
//! Paused time does not work with real sockets, so all connections are in-memory pairs.

mod file;
mod hls_check;
mod page;
mod permit;
#[cfg(test)]
mod processes;
mod provider;
mod reader;
mod socket;
mod station;
mod ts;

pub use self::file::TestFile;
pub use self::hls_check::{HlsChecker, ListedPart, ListedSegment, boxes};
pub use self::page::TestPage;
pub use self::permit::{PermitCount, TestPermit};
#[cfg(test)]
pub(crate) use self::processes::{group, until};
pub use self::provider::{
    Behaviour, Break, MemoryDial, MemoryProvider, Play, Reachability, ResponseHead, SeenRequest,
};
pub use self::reader::TsReader;
pub use self::station::{AnswerToTitles, StationSound, TestStation};
pub use self::ts::{TsSource, TsStream, labels_in};
