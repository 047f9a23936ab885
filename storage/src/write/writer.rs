//! The one thread that writes.
//!
//! It takes the waiting jobs, lets each function fill the same overlay (a function that fails leaves no trace in it),
//! and commits the overlay: as one slice if it is small, as several if it is not. Several slices are *staged* first:
//! their values get a version that nobody reads, and one last slice makes them current by replacing the mark of the
//! stage with a tombstone. The values that they replace are swept afterwards, one slice at a time, between other jobs.
//!
//! The life of a value:
//!
//! ```text
//!   Store::write(function)                          BulkWrite::put
//!            │ Job::Write                                 │ Job::WriteStaged, block by block
//!            ▼                                            │
//!   function(&mut Write)                                  │
//!            │ put                                        │
//!            ▼                                            │
//!   Overlay, in memory; waiting writes share it           │
//!            │                                            │
//!            ▼ commit: encode, encrypt, checksum          │
//!      fits one slice?                                    │
//!       yes │      │ no                                   │
//!           │      ▼                                      ▼
//!           │   stage: mark first, then slices under a version that nobody reads
//!           │      │                                      │ BulkWrite::commit
//!           ▼      ▼                                      ▼
//!   last slice: the values, or the tombstone of the stage mark;
//!   with it the id counters and the number of the commit
//!            │
//!            ▼ apply slice and MemoryUpdate, under the lock of the state
//!   CURRENT: readers see the new value and no longer the old one
//!            │
//!            ▼ Disk::sync, then CommitFile::write
//!   DURABLE: views follow, subscribers get the change, the caller gets its answer
//!            │
//!            ├── overwritten or removed by a small commit: in place, under the same key
//!            │
//!            ▼ overwritten or removed by a staged commit: the new version has another key
//!   LEFTOVER: the old key waits until no reader scans
//!            │
//!            ▼ sweep: removed, one slice at a time; after a crash, at the next start
//!   GARBAGE: removed or overwritten bytes that still take space in the files of sled
//!            │
//!            ▼ compaction: current values are copied to a new database,
//!              and one write of the commit file switches to it
//!   GONE: the old database is removed with its last reader
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::changes::Change;
use crate::engine::commit_file::CommitFile;
use crate::engine::disk::{Disk, SLICE_WEIGHT_MAX, Slice};
use crate::engine::disk_watch::WatchThread;
use crate::engine::shared::Shared;
use crate::engine::space::SpaceMonitor;
use crate::engine::state::Partition;
use crate::error::{Error, Result, StopReason};
use crate::log::LogWriter;
use crate::read::view::{Reader, RegisterView, RegisteredView};
use crate::recovery::migration::Formats;
use crate::write::Write;
use crate::write::reply::{Answer, Reply};

/// Maximum weight of one write: this many single records, or a fifth as many blocks. Larger writes use
/// [`BulkWrite`](crate::BulkWrite). The largest write of the interface creates 10,000 channels, each with a group and a
/// logo of its own, keeps what is needed to undo this, and drops what was kept before.
const WRITE_WEIGHT_MAX: usize = 31_000;

/// Pause before a view that could not follow a commit is updated again.
const FOLLOW_PAUSE: Duration = Duration::from_secs(1);

/// Replaced values that may wait to be swept. If there are more, they are swept before the next job.
const LEFTOVERS_MAX: usize = 10_000;

/// The function of a caller. Returns false if it failed, which undoes its changes.
pub(crate) type Fill = Box<dyn FnOnce(&mut Write<'_>) -> bool + Send>;
/// The function committed with a bulk write. Gets the ids that other writes changed meanwhile.
pub(crate) type StageFill = Box<dyn FnOnce(&mut Write<'_>, &[u32]) -> bool + Send>;

/// The function of a [`Job::Run`]. It replies itself.
pub(crate) type Work = Box<dyn FnOnce(&mut Writer) + Send>;

/// A request to the writer thread.
pub(crate) enum Job {
    Write(Fill, Reply),
    /// Begins a bulk write of one owner, of about this many bytes. Replies with the number of its stage.
    BeginStage {
        type_number: usize,
        owner: u64,
        n_bytes: u64,
        /// Whether it applies a commit of the log.
        is_applied: bool,
        reply: oneshot::Sender<Result<u64>>,
    },
    /// Reserves `n` ids for a bulk write. Replies with the first.
    ReserveIds {
        type_number: usize,
        n: u32,
        reply: oneshot::Sender<Result<u32>>,
    },
    /// Writes one slice of a bulk write.
    WriteStaged {
        stage: u64,
        slice: Slice,
        reply: oneshot::Sender<Result<()>>,
    },
    /// Completes a bulk write: this partition replaces the present one.
    CommitStage {
        stage: u64,
        partition: Box<Partition>,
        fill: StageFill,
        reply: Reply,
    },
    /// Cancels a bulk write.
    AbandonStage {
        stage: u64,
        keys: Vec<Vec<u8>>,
    },
    /// Creates a view that follows the commits.
    RegisterView {
        register: RegisterView,
        reply: oneshot::Sender<Result<()>>,
    },
    /// Something else that runs between other jobs.
    Run(Work),
    Compact(oneshot::Sender<Result<()>>),
    Close,
}

/// A bulk write that is not complete.
pub(crate) struct OpenStage {
    pub(crate) type_number: usize,
    pub(crate) owner: u64,
    /// Ids of the owner that other writes changed since the stage began.
    pub(crate) changed: BTreeSet<u32>,
    /// It applies a commit of the log.
    pub(crate) is_applied: bool,
    /// This node does not write shared records any more, so it gets an error.
    pub(crate) is_cancelled: bool,
}

/// A compaction in slices: the values are copied in the pauses between jobs, and what jobs change meanwhile is copied
/// again at the end.
pub(crate) struct Compaction {
    pub(crate) new: Disk,
    pub(crate) folder: PathBuf,
    /// Keys of current values that are not copied yet.
    pub(crate) keys: VecDeque<Vec<u8>>,
    pub(crate) next_at: Instant,
}

/// Whether a new database is worth the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worth {
    No,
    /// Once it is quiet.
    WhenQuiet,
    /// At once, because memory grows.
    Now,
}

/// Why the writer refuses writes, and when it tries again.
pub(crate) struct Refusing {
    /// A disk operation failed, so the database has to be read again.
    pub(crate) is_unknown: bool,
    pub(crate) try_at: Instant,
    pub(crate) pause: Duration,
}

/// The next thing to do.
pub(crate) enum Next {
    Job(Job),
    /// Time to try again what failed.
    Retry,
    /// All handles are gone.
    End,
}

/// The state of the writer thread.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) commit_file: CommitFile,
    pub(crate) generation: u64,
    pub(crate) formats: Formats,
    /// The last number given to a commit or a stage.
    pub(crate) last: u64,
    /// Keys of replaced values, in the order in which they have to be removed.
    pub(crate) leftovers: BTreeSet<Vec<u8>>,
    /// Bulk writes that are not complete, by the number of their stage.
    pub(crate) stages: BTreeMap<u64, OpenStage>,
    views: Vec<RegisteredView>,
    pub(crate) space_monitor: SpaceMonitor,
    pub(crate) worth: Worth,
    pub(crate) compaction: Option<Compaction>,
    pub(crate) last_job_at: Instant,
    /// Set while a view could not follow a commit.
    pub(crate) follow_again_at: Option<Instant>,
    /// Set while writes are refused.
    pub(crate) refusing: Option<Refusing>,
    /// Set while the store belongs to a log.
    pub(crate) log: Option<LogWriter>,
}

impl Writer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        commit_file: CommitFile,
        generation: u64,
        formats: Formats,
    ) -> Self {
        Self {
            shared,
            commit_file,
            generation,
            formats,
            last: 0,
            leftovers: BTreeSet::new(),
            stages: BTreeMap::new(),
            views: Vec::new(),
            space_monitor: SpaceMonitor::default(),
            worth: Worth::No,
            compaction: None,
            last_job_at: Instant::now(),
            follow_again_at: None,
            refusing: None,
            log: None,
        }
    }

    /// Runs until all handles are gone, or it is told to stop. `timer` is for its pauses; `_watch` watches its operations.
    pub(crate) fn run(mut self, mut jobs: mpsc::Receiver<Job>, timer: &Runtime, _watch: WatchThread) {
        let mut next = None;
        loop {
            let job = match next.take() {
                Some(job) => job,
                // Sweeps while no job is waiting.
                None => match jobs.try_recv() {
                    Ok(job) => job,
                    Err(mpsc::error::TryRecvError::Disconnected) => break,
                    Err(mpsc::error::TryRecvError::Empty) if self.sweep_one_slice() => continue,
                    Err(mpsc::error::TryRecvError::Empty) => match self.wait_for_job(timer, &mut jobs) {
                        Next::Job(job) => job,
                        Next::Retry => {
                            self.try_to_resume();
                            self.follow_again();
                            self.compact_one_slice();
                            continue;
                        }
                        Next::End => break,
                    },
                },
            };
            self.try_to_resume();
            self.follow_again();
            while self.leftovers.len() > LEFTOVERS_MAX && self.sweep_one_slice() {}
            match job {
                Job::Write(fill, reply) => next = self.write_group(fill, reply, &mut jobs),
                Job::BeginStage { type_number, owner, n_bytes, is_applied, reply } => {
                    let begun = self.begin_stage(type_number, owner, n_bytes, is_applied);
                    if let Err(Ok(stage)) = reply.send(begun) {
                        // The caller has given up.
                        self.abandon_stage(stage, Vec::new());
                    }
                }
                Job::ReserveIds { type_number, n, reply } => {
                    drop(reply.send(self.reserve_ids(type_number, n)));
                }
                Job::WriteStaged { stage, slice, reply } => {
                    drop(reply.send(self.write_staged(stage, slice)));
                }
                Job::CommitStage { stage, partition, fill, reply } => {
                    self.commit_stage(stage, *partition, fill, reply);
                }
                Job::AbandonStage { stage, keys } => self.abandon_stage(stage, keys),
                Job::RegisterView { register, reply } => {
                    let register = AssertUnwindSafe(|| register(&Reader::new(&self.shared)));
                    let (view, done) = match catch_unwind(register).unwrap_or(Err(Error::Panicked)) {
                        Ok(view) => (Some(view), Ok(())),
                        Err(error) => (None, Err(error)),
                    };
                    if reply.send(done).is_ok() {
                        self.views.extend(view);
                    }
                }
                Job::Run(work) => {
                    // After a panic the reply is dropped, which the caller sees as an error.
                    drop(catch_unwind(AssertUnwindSafe(|| work(&mut self))));
                }
                Job::Compact(reply) => {
                    drop(reply.send(self.ensure_writable().and_then(|()| self.compact())));
                }
                Job::Close => break,
            }
            self.last_job_at = Instant::now();
            self.monitor_space();
            if self.worth == Worth::Now {
                self.compact_one_slice();
            }
        }
        self.abandon_compaction();
        // All answered writes are safe already; this only saves work at the next start.
        if let Err(error) = self.close() {
            tracing::warn!("failed to close the store: {error}");
        }
    }

    /// Runs a function and the writes that wait behind it, and commits all of them together. Returns the first job
    /// that is not a write.
    fn write_group(&mut self, first: Fill, reply: Reply, jobs: &mut mpsc::Receiver<Job>) -> Option<Job> {
        let shared = Arc::clone(&self.shared);
        let mut write = Write::new(&shared);
        let mut answers = Vec::new();
        let mut one = Some((first, reply));
        let mut next = None;
        while let Some((fill, reply)) = one.take() {
            let before = write.overlay.clone();
            write.changed.clear();
            write.is_shared = false;
            let filled = catch_unwind(AssertUnwindSafe(|| reply.answer(|| fill(&mut write))));
            // After a panic the answer is dropped, which the caller sees as an error.
            let weight = write.overlay.weight();
            match filled.ok().flatten() {
                Some(answer) if weight - before.weight().min(weight) > WRITE_WEIGHT_MAX => {
                    write.overlay = before;
                    answer(Err(Error::TooLarge { what: "a write", size: weight, max: WRITE_WEIGHT_MAX }));
                }
                Some(answer) => match self.shared_refusal().filter(|_| write.is_shared) {
                    Some(refusal) => {
                        write.overlay = before;
                        answer(Err(refusal));
                    }
                    None => answers.push(answer),
                },
                None => write.overlay = before,
            }
            if write.overlay.weight() >= SLICE_WEIGHT_MAX {
                break;
            }
            match jobs.try_recv() {
                Ok(Job::Write(fill, reply)) => one = Some((fill, reply)),
                Ok(other) => next = Some(other),
                Err(_) => {}
            }
        }
        let done = self.commit(write.overlay, None);
        answer_all(answers, &done);
        next
    }

    /// Runs a function alone and commits its changes. Returns once they are durable.
    pub(crate) fn write_now(&mut self, fill: impl FnOnce(&mut Write<'_>) -> Result<()>) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let mut write = Write::new(&shared);
        fill(&mut write)?;
        self.commit(write.overlay, None)
    }

    /// Updates the views, then informs the subscribers. The caller is answered afterwards and finds its change in the
    /// views.
    pub(crate) fn notify(&mut self, change: Change) {
        let reader = Reader::new(&self.shared);
        self.views.retain_mut(|view| {
            let is_concerned = view.collections.iter().any(|it| change.ids(it).is_some());
            if !is_concerned && !view.is_behind {
                return true;
            }
            // What it misses is unknown.
            let all = view.is_behind.then(|| Change::all(change.version, view.collections.iter().copied()));
            let change = all.as_ref().unwrap_or(&change);
            let followed = catch_unwind(AssertUnwindSafe(|| (view.follow)(&reader, change)));
            match followed.unwrap_or(Err(Error::Panicked)) {
                Ok(Some(is_behind)) => view.is_behind = is_behind,
                Ok(None) => return false,
                Err(error) => {
                    tracing::error!("failed to update a view of the store: {error}");
                    view.is_behind = true;
                }
            }
            true
        });
        self.follow_again_at =
            self.views.iter().any(|it| it.is_behind).then(|| Instant::now() + FOLLOW_PAUSE);
        // An error means that there are no subscribers.
        drop(self.shared.changes.send(Arc::new(change)));
    }

    /// Updates the views that could not follow a commit, if it is time.
    pub(crate) fn follow_again(&mut self) {
        if self.follow_again_at.is_some_and(|at| at <= Instant::now()) {
            let behind = self.views.iter().filter(|it| it.is_behind).flat_map(|it| it.collections);
            let collections: BTreeSet<_> = behind.copied().collect();
            let version = self.shared.state.read().commit;
            self.notify(Change::all(version, collections.into_iter()));
        }
    }
}

pub(crate) fn answer_all(answers: Vec<Answer>, done: &Result<()>) {
    for answer in answers {
        answer(match done {
            Ok(()) => Ok(()),
            Err(Error::Stopped(why)) => Err(Error::Stopped(why.clone())),
            Err(Error::NotWriter) => Err(Error::NotWriter),
            Err(Error::LogUnknown) => Err(Error::LogUnknown),
            Err(Error::LogBroken(why)) => Err(Error::LogBroken(why.clone())),
            Err(Error::Interrupted) => Err(Error::Interrupted),
            Err(error) => Err(Error::Stopped(StopReason::new(error))),
        });
    }
}
