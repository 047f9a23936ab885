//! The interface between a refresh and the kinds of guide sources.
//!
//! ```text
//!   GuideInput ── guide channels, programmes ──▶ GuideSink ─▶ guide file
//!   (one kind)                                   (one refresh)
//! ```
//!
//! An input knows how to reach the guide of one kind and how to read it. The refresh knows the rest: ids, files, the
//! check of the size, history, the commit and the progress.

use std::path::PathBuf;
use std::sync::Arc;

use domain::egress::Distance;
use domain::guide::programme::Programme;
use domain::guide::source::GuideSource;
use domain::guide::state::GuideState;
use domain::guide::xmltv::XmltvSummary;
use storage::Models;
use storage::guide::{GuideFiles, StoredProgramme};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::error::GuideError;
use super::progress::GuidePhase;
use super::services::GuideServices;
use crate::fetch::Fetch;

/// The guide of one source, read once.
pub(crate) trait GuideInput: Send {
    /// Passes the whole guide to the sink, and returns how it ended. Runs on a thread of its own that may block; called
    /// once.
    ///
    /// # Errors
    /// The guide cannot be read to its end; nothing of it is used. An error of the sink has to be returned as it is.
    fn run(&mut self, sink: &mut dyn GuideSink) -> Result<GuideContent, GuideError>;

    /// Returns whether a much smaller guide than the last one is normal, so that it replaces the last one without a
    /// confirmation. For guides that are collected in parts.
    fn may_shrink(&self) -> bool {
        false
    }
}

/// Receives a guide. Every function fails once the refresh is stopped.
pub(crate) trait GuideSink {
    /// Adds a guide channel, or adds names and an icon to the one with this key. Blank names are left out.
    fn channel(&mut self, key: &str, names: &[String], icon: Option<&str>) -> Result<(), GuideError>;

    /// Adds a programme. A guide channel that was not added before gets its key as its name. A programme of the same
    /// channel with the same start replaces the earlier one. A programme that does not end after its start ends with the
    /// next one.
    fn programme(&mut self, key: &str, programme: &Programme) -> Result<(), GuideError>;

    /// Adds a programme as it is stored in a guide file.
    fn stored(&mut self, key: &str, programme: &StoredProgramme) -> Result<(), GuideError>;

    /// Counts elements that the input had to leave out.
    fn skipped(&mut self, n: u64);

    /// Counts what was damaged in a guide in XMLTV.
    fn damaged(&mut self, found: &XmltvSummary);

    /// Reports the progress: the phase, and the percentage of this phase that is done. Cheap; call it often.
    ///
    /// # Errors
    /// The refresh was stopped.
    fn progress(&mut self, phase: GuidePhase, percent: u8) -> Result<(), GuideError>;
}

/// How the reading of a guide ended.
#[derive(Debug)]
pub(crate) enum GuideContent {
    /// The sink has received the whole guide.
    Whole(ContentMark),
    /// The guide is the one that was accepted last; the sink has received nothing.
    Unchanged(ContentMark),
}

/// The facts by which the next refresh recognises the same content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContentMark {
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
    /// Hash of the content as it was received.
    pub(crate) digest: Option<[u8; 32]>,
    /// The network of the server; `None` for a file.
    pub(crate) origin: Option<Distance>,
}

/// Everything that an input may use.
#[derive(Clone)]
pub(crate) struct GuideContext {
    pub(crate) source: Arc<GuideSource>,
    /// The state before this refresh.
    pub(crate) state: GuideState,
    pub(crate) models: Models,
    pub(crate) fetch: Fetch,
    /// The runtime on which requests are sent; see [`GuideContext::wait`].
    pub(crate) runtime: Handle,
    /// Cancelled when the refresh has to end.
    pub(crate) stop: CancellationToken,
    /// The folder of uploaded guides.
    pub(crate) uploads: PathBuf,
    /// Has temporary files, on the disk of guides.
    pub(crate) files: GuideFiles,
    pub(crate) services: GuideServices,
    /// Time of the refresh, in milliseconds since 1970.
    pub(crate) now: i64,
    /// An admin wants the guide as it is now: no conditional requests, and a smaller guide is accepted.
    pub(crate) force: bool,
    /// Whether the guide that was accepted last is in use, so that an unchanged one need not be read.
    pub(crate) has_guide: bool,
    /// Maximum size of an unpacked guide, in bytes.
    pub(crate) unpacked_bytes_max: u64,
}

impl GuideContext {
    /// Waits on this thread for a future, such as a request, or until the refresh is stopped.
    ///
    /// # Errors
    /// The refresh was stopped.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, GuideError> {
        self.runtime.block_on(self.stop.run_until_cancelled(work)).ok_or(GuideError::Stopped)
    }
}
