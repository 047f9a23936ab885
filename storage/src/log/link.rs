//! The log of a store, as the writer holds it.

use std::sync::Arc;

use super::keys::LogKeys;
use super::position::LogPosition;
use super::{CommitLog, LogRole};

/// The log of a store, and what the store does with it. Exists while the store has a position in a log.
pub(crate) struct LogWriter {
    /// `None` until the log is attached.
    pub(crate) link: Option<LogLink>,
    pub(crate) role: LogRole,
    /// The last entry, if this node writes: the last commit, or slices of one that failed.
    pub(crate) tail: LogPosition,
}

/// A log, and the keys of its entries.
#[derive(Clone)]
pub(crate) struct LogLink {
    pub(crate) log: Arc<dyn CommitLog>,
    pub(crate) keys: LogKeys,
}
