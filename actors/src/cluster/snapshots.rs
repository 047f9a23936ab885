//! Snapshots of the shared configuration in the object store of the engine, and the removal of old entries of the log.
//!
//! ```text
//!   the node that writes, each minute:
//!     is a snapshot due? ─▶ create ─▶ store ─▶ read back and verify
//!                                                    │
//!     the log keeps what follows the older of the last two ◀┘  older snapshots are removed
//! ```
//!
//! Nothing of the log is removed before this process has read a snapshot back that contains it. So a node that was replaced
//! as the writer without knowing it does no harm: what it removes is in a snapshot of the same log.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use cluster::{Engine, LogState};
use media::spawn_blocking;
use storage::backup::BackupError;
use storage::log::{LogKeys, LogPosition, create_snapshot, log_of, verify_snapshot};
use storage::{Error, Store};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};
use uuid::Uuid;

use super::configuration::ConfigurationView;
use crate::now_ms;

/// Longest time for storing or reading a snapshot.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(600);
/// Longest time for the list of the objects.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest and shortest pause between two looks at the log, also after a failure.
const PAUSE_MAX: Duration = Duration::from_secs(60);
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Size of a log, in bytes, from which on one snapshot is enough to remove what it contains, and that is reported. The
/// stream takes twice this size.
pub(super) const LOG_BYTES_LARGE: u64 = 512 << 20;
/// Size of a log, as a multiple of [`SnapshotLimits::bytes`], at which a snapshot is due in any case.
const LOG_PARTS_MAX: u64 = 3;
/// Maximum size of a snapshot that is read, in bytes: that of the object store.
const SNAPSHOT_BYTES_MAX: u64 = 4 << 30;
/// The files of a snapshot that is made, and of one that is verified. Those of an interrupted attempt are overwritten.
const MADE_FILE: &str = "log-snapshot.part";
const CHECKED_FILE: &str = "log-snapshot.check";
const PREFIX: &str = "log-snapshot";

/// When a snapshot is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotLimits {
    /// Size of the entries since the last one, in bytes. An estimate, which assumes that all entries have the same size.
    pub bytes: u64,
    /// Age of the last one, if there are entries since then.
    pub interval: Duration,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self { bytes: 64 << 20, interval: Duration::from_secs(24 * 60 * 60) }
    }
}

impl SnapshotLimits {
    /// Pause between two looks at the log.
    fn pause(&self) -> Duration {
        (self.interval / 100).clamp(PAUSE_MIN, PAUSE_MAX)
    }
}

/// Reads the present data keys of this node.
pub type ReadKeys = Arc<dyn Fn() -> LogKeys + Send + Sync>;

/// The means of making snapshots.
#[derive(Clone)]
pub struct SnapshotParts {
    /// For two files, while a snapshot is made and verified.
    pub folder: PathBuf,
    pub keys: ReadKeys,
    pub limits: SnapshotLimits,
}

/// The snapshots, as the node that writes knows them. Empty on other nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotView {
    /// Size of the log, in bytes.
    pub log_bytes: u64,
    /// The last entry that the newest snapshot contains.
    pub newest: Option<u64>,
    /// Why the last attempt failed. It is tried again.
    pub problem: Option<String>,
}

impl SnapshotView {
    /// Returns whether the log is so large that something must prevent its entries from being removed.
    pub fn is_log_large(&self) -> bool {
        self.log_bytes >= LOG_BYTES_LARGE
    }
}

/// The name of a snapshot in the object store. Ordered by the log and the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotName {
    pub log: Uuid,
    /// The last entry that it contains.
    pub sequence: u64,
    /// Milliseconds since 1970.
    pub made_at: i64,
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}.{}.{}.{}", self.log, self.sequence, self.made_at)
    }
}

impl SnapshotName {
    /// Parses the name of an object; `None` if it does not name a snapshot.
    pub fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix(PREFIX)?.strip_prefix('.')?;
        let mut parts = rest.splitn(3, '.');
        let (log, sequence, made_at) = (parts.next()?, parts.next()?, parts.next()?);
        let parsed =
            Self { log: log.parse().ok()?, sequence: sequence.parse().ok()?, made_at: made_at.parse().ok()? };
        // One name for each snapshot.
        (parsed.to_string() == name).then_some(parsed)
    }
}

/// Returns whether a snapshot is due. `kept` are those of this log in order, and `position` is what the store has of it.
pub(super) fn is_due(
    log: &LogState,
    position: u64,
    kept: &[SnapshotName],
    now: i64,
    limits: &SnapshotLimits,
) -> bool {
    // The first one is made at once: without any, a cluster that has lost its nodes has lost its configuration.
    let Some(newest) = kept.last() else { return true };
    if position <= newest.sequence {
        return false;
    }
    // A clock may have been set back.
    let age = Duration::from_millis(now.abs_diff(newest.made_at));
    let n_entries = (log.last + 1).saturating_sub(log.first).max(1);
    let n_new = log.last.saturating_sub(newest.sequence.max(log.first.saturating_sub(1)));
    let bytes_new = u128::from(log.bytes) * u128::from(n_new) / u128::from(n_entries);
    age >= limits.interval
        || bytes_new >= u128::from(limits.bytes)
        || log.bytes >= limits.bytes.saturating_mul(LOG_PARTS_MAX)
}

/// Returns the snapshot from which on the log is kept, if that removes anything: the older of the last two, or the last one
/// if the log is large. The entry at its position stays, so that a store which begins with it can compare.
pub(super) fn trim_point(log: &LogState, kept: &[SnapshotName]) -> Option<SnapshotName> {
    let newest = kept.last().filter(|_| log.bytes >= LOG_BYTES_LARGE);
    let older = kept.len().checked_sub(2).and_then(|it| kept.get(it));
    newest.or(older).copied().filter(|it| log.first < it.sequence)
}

/// Returns the snapshots that nothing needs any more: those before the last two, and those of earlier logs.
pub(super) fn obsolete(all: &[SnapshotName], log: Uuid) -> Vec<SnapshotName> {
    let (own, others): (Vec<_>, Vec<_>) = all.iter().partition(|it| it.log == log);
    let n_old = own.len().saturating_sub(2);
    let others = others.into_iter().filter(|_| !own.is_empty());
    own.iter().take(n_old).copied().chain(others).collect()
}

/// Lists the snapshots in the object store, in order.
///
/// # Errors
/// If the engine does not answer. For people.
pub(super) async fn list_snapshots(engine: &dyn Engine, session: u64) -> Result<Vec<SnapshotName>, String> {
    let objects = timeout(LIST_TIMEOUT, engine.objects(session)).await;
    let objects = objects.map_err(|_| "the list of snapshots takes too long".to_owned())?;
    let objects = objects.map_err(|it| it.to_string())?;
    let mut names: Vec<_> = objects.iter().filter_map(|it| SnapshotName::parse(&it.name)).collect();
    names.sort_unstable();
    Ok(names)
}

/// Reads a snapshot into a file, which is replaced.
///
/// # Errors
/// If it does not exist, cannot be read or is too large. For people.
async fn read_snapshot(
    engine: &dyn Engine,
    session: u64,
    name: &SnapshotName,
    path: &Path,
) -> Result<(), String> {
    let reading = async {
        let failed = |error: &dyn fmt::Display| error.to_string();
        let object = engine.object(session, &name.to_string()).await.map_err(|it| failed(&it))?;
        let object = object.ok_or("it does not exist")?;
        let mut file = tokio::fs::File::from_std(create(path).map_err(|it| failed(&it))?);
        let mut limited = tokio::io::AsyncReadExt::take(object, SNAPSHOT_BYTES_MAX);
        tokio::io::copy(&mut limited, &mut file).await.map_err(|it| failed(&it))?;
        file.flush().await.map_err(|it| failed(&it))
    };
    let read = timeout(TRANSFER_TIMEOUT, reading).await;
    read.unwrap_or_else(|_| Err("it takes too long".to_owned()))
        .map_err(|it| format!("failed to read the snapshot at entry {}: {it}", name.sequence))
}

/// Makes a snapshot of a store, puts it into the object store, and reads it back. Returns its name.
///
/// # Errors
/// If the store belongs to no log or is that of an edge node, if the disk fails, or if the engine does not answer or has
/// not stored what was sent. For people.
pub async fn store_snapshot(
    engine: &dyn Engine,
    session: u64,
    store: &Store,
    parts: &SnapshotParts,
) -> Result<SnapshotName, String> {
    let (made, checked) = (parts.folder.join(MADE_FILE), parts.folder.join(CHECKED_FILE));
    let stored = put_and_verify(engine, session, store, parts, &made, &checked).await;
    for path in [made, checked] {
        // Overwritten the next time otherwise.
        let _ = fs::remove_file(path);
    }
    stored
}

async fn put_and_verify(
    engine: &dyn Engine,
    session: u64,
    store: &Store,
    parts: &SnapshotParts,
    made: &Path,
    checked: &Path,
) -> Result<SnapshotName, String> {
    let failed = |error: &dyn fmt::Display| format!("failed to make a snapshot: {error}");
    let (of_store, keys, path, made_at) = (store.clone(), (parts.keys)(), made.to_owned(), now_ms());
    let making = spawn_blocking(move || {
        let mut file = create(&path).map_err(|source| BackupError::Io { what: "create a file", source })?;
        let position = create_snapshot(&of_store, &[], &keys, made_at, &mut file)?;
        Ok::<_, BackupError>((position, keys))
    });
    let (position, keys) = making.await.map_err(|it| failed(&it))?.map_err(|it| failed(&it))?;
    let name = SnapshotName { log: position.log, sequence: position.sequence, made_at };
    let mut file = tokio::fs::File::open(made).await.map_err(|it| failed(&it))?;
    let text = name.to_string();
    let put = timeout(TRANSFER_TIMEOUT, engine.put_object(session, &text, &mut file)).await;
    put.map_err(|_| failed(&"NATS takes too long"))?.map_err(|it| failed(&it))?;
    let verified = verify(engine, session, &name, checked, keys).await;
    if verified.is_err() {
        // Otherwise it is one of those that are removed later.
        let _ = engine.remove_object(session, &text).await;
    }
    verified.map(|()| name)
}

/// Reads a snapshot back and verifies each byte of it.
async fn verify(
    engine: &dyn Engine,
    session: u64,
    name: &SnapshotName,
    path: &Path,
    keys: LogKeys,
) -> Result<(), String> {
    read_snapshot(engine, session, name, path).await?;
    let failed =
        |error: &dyn fmt::Display| format!("the snapshot at entry {} cannot be used: {error}", name.sequence);
    let path = path.to_owned();
    let verifying = spawn_blocking(move || verify_snapshot(&path, &keys));
    let position = verifying.await.map_err(|it| failed(&it))?.map_err(|it| failed(&it))?;
    let is_it = (position.log, position.sequence) == (name.log, name.sequence);
    is_it.then_some(()).ok_or_else(|| failed(&"it stands at another entry"))
}

/// Reads the newest snapshot that the log continues into a file, which is replaced. Returns its position, which the caller
/// has to compare with that of its content.
///
/// # Errors
/// If the log has no entry, or the engine no such snapshot that can be read. For people.
pub async fn read_usable_snapshot(
    engine: &dyn Engine,
    session: u64,
    path: &Path,
    skipped: &[SnapshotName],
) -> Result<SnapshotName, String> {
    let log = engine.log_state(session).await.map_err(|it| it.to_string())?;
    let last = engine.read_log(session, log.last).await.map_err(|it| it.to_string())?;
    let identity = last.and_then(|it| log_of(&it.payload)).ok_or("the log of the cluster has no entry")?;
    let is_usable = |it: &&SnapshotName| {
        it.log == identity && (log.first..=log.last + 1).contains(&(it.sequence + 1)) && !skipped.contains(it)
    };
    let all = list_snapshots(engine, session).await?;
    let newest = all.iter().rev().find(is_usable).ok_or("NATS has no snapshot that the log continues")?;
    read_snapshot(engine, session, newest, path).await.map(|()| *newest)
}

/// Creates a file that only its owner can read, or empties it.
fn create(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Makes snapshots and trims the log while this node has the job of writing.
pub(super) struct SnapshotTask {
    store: Store,
    engine: Arc<dyn Engine>,
    parts: SnapshotParts,
    configuration: watch::Receiver<ConfigurationView>,
    /// Snapshots that this process has read back.
    verified: BTreeSet<SnapshotName>,
    view: watch::Sender<SnapshotView>,
}

impl SnapshotTask {
    pub(super) fn new(
        store: Store,
        engine: Arc<dyn Engine>,
        parts: SnapshotParts,
        configuration: watch::Receiver<ConfigurationView>,
    ) -> (Self, watch::Receiver<SnapshotView>) {
        let (view, receiver) = watch::channel(SnapshotView::default());
        (Self { store, engine, parts, configuration, verified: BTreeSet::new(), view }, receiver)
    }

    pub(super) async fn run(mut self) {
        loop {
            if !self.configuration.borrow().has_job {
                self.view.send_replace(SnapshotView::default());
            }
            if self.configuration.wait_for(|it| it.has_job).await.is_err() {
                return;
            }
            let problem = self.look().await.err();
            if let Some(problem) =
                problem.as_ref().filter(|it| self.view.borrow().problem.as_ref() != Some(it))
            {
                warn!("the log of the configuration is not shortened, trying again: {problem}");
            }
            self.view.send_modify(|it| it.problem = problem);
            let has_lost_job = self.configuration.wait_for(|it| !it.has_job);
            drop(timeout(self.parts.limits.pause(), has_lost_job).await);
        }
    }

    /// Makes a snapshot if one is due, and removes what is not needed any more.
    async fn look(&mut self) -> Result<(), String> {
        // Without a connection nothing grows; others report that.
        let session = self.engine.state().borrow().session().map(|it| it.number);
        let Some(session) = session else { return Ok(()) };
        let engine = Arc::clone(&self.engine);
        // Before the check, so that a snapshot of a log that replaces this one is not in the list.
        let mut all = list_snapshots(&*engine, session).await?;
        let Some(position) = self.checked_position().await? else { return Ok(()) };
        let state = async || engine.log_state(session).await.map_err(|it| it.to_string());
        let mut log = state().await?;
        if position.sequence + 1 < log.first {
            // This store needs a snapshot itself.
            return Ok(());
        }
        let own = |all: &[SnapshotName]| -> Vec<_> {
            all.iter().filter(|it| it.log == position.log).copied().collect()
        };
        if is_due(&log, position.sequence, &own(&all), now_ms(), &self.parts.limits) {
            let name = store_snapshot(&*engine, session, &self.store, &self.parts).await?;
            info!(sequence = name.sequence, "stored a snapshot of the configuration in NATS");
            self.verified.insert(name);
            all = list_snapshots(&*engine, session).await?;
            if self.checked_position().await?.is_none_or(|it| it.log != position.log) {
                return Ok(());
            }
            log = state().await?;
        }
        let kept = own(&all);
        if let Some(from) = trim_point(&log, &kept) {
            self.ensure_verified(session, &from).await?;
            if self.checked_position().await?.is_none_or(|it| it.log != position.log) {
                return Ok(());
            }
            engine.trim_log(session, from.sequence).await.map_err(|it| it.to_string())?;
            info!(before = from.sequence, "removed entries of the log that are in snapshots");
            log = state().await?;
        }
        for name in obsolete(&all, position.log) {
            engine.remove_object(session, &name.to_string()).await.map_err(|it| it.to_string())?;
            self.verified.remove(&name);
        }
        self.view.send_modify(|it| {
            (it.log_bytes, it.newest) = (log.bytes, kept.last().map(|it| it.sequence));
        });
        Ok(())
    }

    /// Returns the position of the store if this node has the job and the log is still the one that it writes.
    async fn checked_position(&self) -> Result<Option<LogPosition>, String> {
        if !self.configuration.borrow().has_job {
            return Ok(None);
        }
        let store = self.store.clone();
        match spawn_blocking(move || store.check_log()).await.map_err(|it| it.to_string())? {
            Ok(position) => Ok(Some(position)),
            // Reported by the configuration.
            Err(Error::LogBroken(_) | Error::LogReplaced | Error::NoLog | Error::Closed) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Reads a snapshot back, unless this process has.
    async fn ensure_verified(&mut self, session: u64, name: &SnapshotName) -> Result<(), String> {
        if self.verified.contains(name) {
            return Ok(());
        }
        let path = self.parts.folder.join(CHECKED_FILE);
        let verified = verify(&*self.engine, session, name, &path, (self.parts.keys)()).await;
        let _ = fs::remove_file(path);
        verified?;
        self.verified.insert(*name);
        Ok(())
    }
}
