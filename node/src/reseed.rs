//! A new log, which begins with the store of this node. The other nodes notice it and [rejoin](super::rejoin).

use std::sync::Arc;

use domain::cluster::token::{JoinTicket, NodeRole};
use storage::log::{CommitLog, LogKeys, LogPosition};
use storage::{Error, Store};
use uuid::Uuid;

use super::file::NodeFile;
use super::join::stored_keys;
use super::{NodeError, stored_authority};

/// Attempts to begin a log while another node appends to the old one.
const TRIES: u32 = 10;

/// Why a new log is not needed, or would lose something.
#[derive(Debug, thiserror::Error)]
pub enum ReseedRefusal {
    #[error(
        "the log in NATS is complete and undamaged, and this node has all of it, so there is nothing to do; `--force` begins a \
         new log nevertheless"
    )]
    Healthy,
    #[error(
        "{0}. So this node does not have a complete configuration: start it, and it gets that of the cluster by itself. If no \
         other node and no snapshot has more, `--force` makes this one count"
    )]
    Behind(Error),
    #[error("an edge node does not have all records; run this on a full node")]
    Edge,
    #[error(transparent)]
    Store(#[from] Error),
}

/// Returns the newest data keys that this node has.
pub fn newest_keys(store: &Store, file: &NodeFile) -> Result<LogKeys, NodeError> {
    let stored = stored_keys(store, file.node, &file.sealing)?;
    let is_newer = |it: &LogKeys| it.cluster.generation() > file.data_keys.cluster.generation();
    Ok(stored.filter(is_newer).unwrap_or_else(|| file.data_keys.clone()))
}

/// Checks that the log is damaged, or that the store was restored and belongs to none. Blocks.
///
/// # Errors
/// If a new log is not needed, or if this node lacks what others have; or if the log cannot be read.
pub fn check_need(
    store: &Store,
    file: &NodeFile,
    log: Arc<dyn CommitLog>,
    keys: &LogKeys,
) -> Result<(), ReseedRefusal> {
    if file.role != NodeRole::Full {
        return Err(ReseedRefusal::Edge);
    }
    let position = store.log_status().borrow().as_ref().map(|it| it.position);
    // The store was restored, or the first entry of its log may not have arrived.
    if position.is_none_or(|it| it.is_beginning()) {
        return Ok(());
    }
    store.attach_log(log, keys.clone())?;
    match store.catch_up() {
        Ok(_) => Err(ReseedRefusal::Healthy),
        Err(Error::LogBroken(_)) => Ok(()),
        Err(error @ (Error::LogBehind(_) | Error::LogReplaced)) => Err(ReseedRefusal::Behind(error)),
        Err(error) => Err(error.into()),
    }
}

/// Begins a new log after all entries that there are: its first entry says so to the other nodes. Returns the position after
/// it. Blocks.
///
/// # Errors
/// If the store has no authority of a cluster, or if the log does not answer. The store then belongs to its old log, if it
/// did before.
pub fn begin_new_log(
    store: &Store,
    log: &Arc<dyn CommitLog>,
    keys: &LogKeys,
) -> Result<LogPosition, NodeError> {
    stored_authority(store)?;
    let before = store.log_status().borrow().as_ref().map(|it| it.position);
    let begin = || {
        let last = log.last().map_err(Error::LogUnreachable)?;
        store.begin_log(Uuid::new_v4(), last)?;
        store.attach_log(Arc::clone(log), keys.clone())?;
        store.become_writer()?;
        // Changes as little as possible: a number that no token gets.
        store.write_blocking(|write| write.next_id::<JoinTicket>())?;
        let position = store.log_status().borrow().as_ref().map(|it| it.position);
        position.ok_or(Error::NoLog)
    };
    let mut begun = begin();
    for _ in 1..TRIES {
        match begun {
            // An entry of the old log came in between.
            Err(Error::NotWriter | Error::LogReplaced) => begun = begin(),
            _ => break,
        }
    }
    let begun = begun.inspect_err(|error| {
        // Whether the entry arrived is not known: the store stays with the log that it has begun.
        if !matches!(error, Error::LogUnknown) {
            // A store that cannot be written any more reports that itself.
            let _ = match before {
                Some(position) => store.resume_log(position),
                None => store.leave_log(),
            };
        }
    })?;
    Ok(begun)
}
