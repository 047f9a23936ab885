//! The configuration that the nodes share: the store of this node follows the log, and writes it while the node has the
//! job `writer`.
//!
//! ```text
//!   entries of the log ─▶ catch up           one operation of the store at a time, on a thread that may block;
//!   RunJob ─▶ catch up, write                one that failed is repeated after a pause
//!   StopJob ─▶ follow
//! ```
//!
//! The job only decides who tries. A writer that lost it without knowing it changes nothing: its appends fail.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cluster::codec::{self, StoredRecord};
use cluster::{Engine, EngineLog, LogEvent, Record, WatchEvent};
use domain::cluster::record::{ClusterRecord, Incarnation, JobName, JobRecord, NodeId, RecordKey};
use domain::cluster::{NodeEffect, NodeInput};
use media::{Blocking, spawn_blocking};
use parking_lot::Mutex;
use storage::log::{LogRole, LogStatus, log_of};
use storage::{Error, Store};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use super::link::ClusterLink;
use super::snapshots::{SnapshotParts, SnapshotTask, SnapshotView};

/// Pause after an operation that failed.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The shared configuration on this node.
pub struct Configuration {
    view: watch::Receiver<ConfigurationView>,
    snapshots: watch::Receiver<SnapshotView>,
    store: Store,
    link: ClusterLink,
    /// This node has all records.
    may_write: bool,
    tasks: Mutex<Option<[AbortOnDropHandle<()>; 2]>>,
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configuration").field("view", &*self.view.borrow()).finish_non_exhaustive()
    }
}

/// The state of the log as this node knows it, besides that of its store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigurationView {
    /// The node that has the job of writing, as the record of the job says.
    pub writer: Option<(NodeId, Incarnation)>,
    /// The sequence of the last entry of the log that this node knows; 0 before it was connected.
    pub last: u64,
    /// Why the store could not follow the last time. It is tried again.
    pub problem: Option<String>,
    /// The store lacks entries that the log does not have any more: only a snapshot helps.
    pub needs_snapshot: bool,
    /// This node has the job of writing.
    pub has_job: bool,
}

/// Completes the records of the store once this node writes, as a start does without a cluster. Blocks.
pub type CompleteStore = fn(&Store) -> Result<(), Error>;

impl Configuration {
    /// Connects a store that has a position in the log, and lets it follow. The node wants to write unless it is an edge
    /// node, which lacks some of the records; while it writes, it makes `snapshots`. `jobs` are the effects about jobs from [`link`](super::link()).
    ///
    /// # Errors
    /// If the store has no position in a log.
    pub async fn start(
        store: Store,
        snapshots: SnapshotParts,
        engine: Arc<dyn Engine>,
        link: ClusterLink,
        jobs: UnboundedReceiver<NodeEffect>,
        complete: CompleteStore,
    ) -> Result<Self, Error> {
        let position = store.log_status().borrow().as_ref().map(|it| it.position).ok_or(Error::NoLog)?;
        let log = Arc::new(EngineLog::new(engine.clone(), position.sequence));
        let keys = (snapshots.keys)();
        let may_write = keys.provider.is_some();
        let attaching = store.clone();
        spawn_blocking(move || attaching.attach_log(log, keys)).await.map_err(|_| Error::Closed)??;
        link.send(NodeInput::WantJob { job: JobName::Writer, is_wanted: may_write });
        let (view, receiver) = watch::channel(ConfigurationView::default());
        let entries = engine.follow(position.sequence + 1);
        let records = engine.watch(Some(codec::key(RecordKey::Job(JobName::Writer))));
        let (snapshot_task, of_snapshots) =
            SnapshotTask::new(store.clone(), Arc::clone(&engine), snapshots, receiver.clone());
        let task = Task {
            store: store.clone(),
            engine,
            jobs,
            entries: Some(entries),
            records,
            complete: Some(complete),
            has_job: false,
            has_session: false,
            is_doubted: false,
            caught_up: None,
            view,
        };
        let tasks = [crate::tasks::spawn(task.run()), crate::tasks::spawn(snapshot_task.run())];
        let tasks = Mutex::new(Some(tasks.map(AbortOnDropHandle::new)));
        Ok(Self { view: receiver, snapshots: of_snapshots, store, link, may_write, tasks })
    }

    /// Follows the log no more, because another process will.
    pub fn retire(&self) {
        drop(self.tasks.lock().take());
    }

    /// Returns what this node knows about the snapshots, if it makes them.
    pub fn snapshots(&self) -> SnapshotView {
        self.snapshots.borrow().clone()
    }

    /// Notes whether this node would write. If it writes and would not, another node does from then on.
    pub fn want_to_write(&self, is_wanted: bool) {
        let is_wanted = is_wanted && self.may_write;
        self.link.send(NodeInput::WantJob { job: JobName::Writer, is_wanted });
    }

    /// Returns what this node knows about the log.
    pub fn view(&self) -> ConfigurationView {
        self.view.borrow().clone()
    }

    /// Returns what this node knows about the log, and the changes.
    pub fn changes(&self) -> watch::Receiver<ConfigurationView> {
        self.view.clone()
    }

    /// Returns the state of the store; `None` if it has left the log.
    pub fn status(&self) -> Option<LogStatus> {
        self.store.log_status().borrow().clone()
    }
}

/// An operation of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    BecomeWriter,
    StopWriting,
    CatchUp,
}

/// An operation that runs, and the last entry that was known when it began.
type Running = (Operation, u64, Blocking<Result<(), Error>>);

struct Task {
    store: Store,
    engine: Arc<dyn Engine>,
    jobs: UnboundedReceiver<NodeEffect>,
    /// `None` for a moment after the log could not be continued.
    entries: Option<Receiver<LogEvent>>,
    records: Receiver<WatchEvent>,
    /// Taken when this node writes for the first time.
    complete: Option<CompleteStore>,
    has_job: bool,
    /// The state of the log was reported at least once.
    has_session: bool,
    /// The log has an entry that this node, which writes, did not write.
    is_doubted: bool,
    /// The last entry that was known when the store caught up in the present session.
    caught_up: Option<u64>,
    view: watch::Sender<ConfigurationView>,
}

impl Task {
    async fn run(mut self) {
        let mut status = self.store.log_status();
        let mut running: Option<Running> = None;
        let mut rest_until = Instant::now();
        loop {
            let is_resting = rest_until > Instant::now();
            if self.entries.is_none() && !is_resting {
                self.entries = Some(self.follow());
            }
            let role = status.borrow_and_update().as_ref().map(|it| it.role.clone());
            if running.is_none() && !is_resting {
                running = role.and_then(|role| self.next(&role)).map(|it| self.begin(it));
            }
            tokio::select! {
                Some(effect) = self.jobs.recv() => self.on_job(&effect),
                event = self.records.recv() => match event {
                    Some(WatchEvent::Record(record)) => self.on_record(&record),
                    Some(_) => {}
                    // The engine has ended, which only happens with the process.
                    None => return,
                },
                event = next_entry(&mut self.entries) => match event {
                    Some(event) => self.on_entry(&event),
                    None => {
                        // The log cannot be continued; the store finds out why.
                        (self.entries, self.caught_up) = (None, None);
                        rest_until = Instant::now() + RETRY_PAUSE;
                    }
                },
                changed = status.changed() => if changed.is_err() {
                    return;
                },
                done = ended(&mut running) => {
                    running = None;
                    if !self.on_done(done) {
                        rest_until = Instant::now() + RETRY_PAUSE;
                    }
                }
                () = sleep_until(rest_until), if is_resting => {}
            }
        }
    }

    /// Returns what the store has to do next.
    fn next(&self, role: &LogRole) -> Option<Operation> {
        match role {
            LogRole::Writer if self.has_job && !self.is_doubted => None,
            LogRole::Writer => Some(Operation::StopWriting),
            LogRole::Follower if self.has_job => Some(Operation::BecomeWriter),
            // A store that is read-only looks whether a new log has begun.
            LogRole::Follower | LogRole::ReadOnly(_) => {
                let last = self.view.borrow().last;
                (self.has_session && self.caught_up != Some(last)).then_some(Operation::CatchUp)
            }
        }
    }

    fn begin(&mut self, operation: Operation) -> Running {
        let store = self.store.clone();
        let complete = self.complete.filter(|_| operation == Operation::BecomeWriter);
        let run = move || match operation {
            Operation::BecomeWriter => {
                store.become_writer()?;
                complete.map_or(Ok(()), |complete| complete(&store))
            }
            Operation::StopWriting => store.stop_writing(),
            Operation::CatchUp => store.catch_up().map(drop),
        };
        (operation, self.view.borrow().last, spawn_blocking(run))
    }

    /// Returns whether it succeeded.
    fn on_done(&mut self, (operation, last, done): (Operation, u64, Result<(), Error>)) -> bool {
        let needs_snapshot = matches!(done, Err(Error::LogBehind(_) | Error::LogReplaced));
        // What a store that is read-only has found again was known before.
        let is_known = matches!(done, Err(Error::LogBroken(_)));
        let problem = done.err().map(|error| error.to_string());
        let is_new = |it: &&String| !is_known && self.view.borrow().problem.as_ref() != Some(it);
        if let Some(problem) = problem.as_ref().filter(is_new) {
            warn!("failed to follow the shared configuration, trying again: {problem}");
        }
        let is_done = problem.is_none();
        if is_done {
            match operation {
                Operation::CatchUp => self.caught_up = Some(last),
                Operation::BecomeWriter => self.complete = None,
                Operation::StopWriting => self.is_doubted = false,
            }
        } else if is_known {
            // Until the log changes.
            self.caught_up = Some(last);
        }
        self.change(|it| (it.problem, it.needs_snapshot) = (problem, needs_snapshot));
        is_done
    }

    fn on_job(&mut self, effect: &NodeEffect) {
        match effect {
            NodeEffect::RunJob { job: JobName::Writer, fence } => {
                info!(fence = fence.0, "this node has the job of writing the shared configuration");
                self.has_job = true;
                self.change(|it| it.has_job = true);
            }
            NodeEffect::StopJob { job: JobName::Writer } => {
                info!("this node no longer has the job of writing the shared configuration");
                (self.has_job, self.caught_up) = (false, None);
                self.change(|it| it.has_job = false);
            }
            _ => {}
        }
    }

    fn on_record(&mut self, record: &Record) {
        let key = RecordKey::Job(JobName::Writer);
        let value = record.value.as_ref().map(|it| codec::decode(&record.key, key, it)).transpose();
        match value {
            Ok(Some(StoredRecord::Other(ClusterRecord::Job(JobRecord { owner })))) => {
                self.change(|it| it.writer = owner);
            }
            Ok(_) => self.change(|it| it.writer = None),
            Err(error) => warn!("{error}"),
        }
    }

    fn on_entry(&mut self, event: &LogEvent) {
        match event {
            LogEvent::Session { log, .. } => {
                // The store compares its position with the log of each session.
                (self.caught_up, self.has_session) = (None, true);
                let last = log.last;
                self.change(|it| it.last = last);
            }
            LogEvent::Entry(entry) => {
                let sequence = entry.sequence;
                let own = self.store.log_status().borrow().as_ref().map(|it| it.position.log);
                self.is_doubted |= log_of(&entry.payload).is_some_and(|it| Some(it) != own);
                self.change(|it| it.last = it.last.max(sequence));
            }
            LogEvent::Complete => {}
        }
    }

    fn follow(&self) -> Receiver<LogEvent> {
        let position = self.store.log_status().borrow().as_ref().map_or(0, |it| it.position.sequence);
        self.engine.follow(position + 1)
    }

    fn change(&self, change: impl FnOnce(&mut ConfigurationView)) {
        self.view.send_if_modified(|view| {
            let before = view.clone();
            change(view);
            *view != before
        });
    }
}

/// Waits for the next event of the log; for ever without a reader.
async fn next_entry(entries: &mut Option<Receiver<LogEvent>>) -> Option<LogEvent> {
    match entries {
        Some(entries) => entries.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits for the operation that runs; for ever without one.
async fn ended(running: &mut Option<Running>) -> (Operation, u64, Result<(), Error>) {
    match running {
        Some((operation, last, task)) => {
            let done = task.await.unwrap_or(Err(Error::Panicked));
            (*operation, *last, done)
        }
        None => std::future::pending().await,
    }
}
