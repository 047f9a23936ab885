//! An engine in memory, with faults.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::cluster::SwapOutcome;
use domain::cluster::record::Revision;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::engine::{
    EVENTS_MAX, Engine, EngineError, EngineState, Key, LogEntry, LogEvent, LogState, MESSAGES_MAX, Message,
    ObjectInfo, Record, Session, WatchEvent,
};

/// Time without an answer after which a request has failed, or has an unknown outcome. Of the clock of tokio, which
/// tests can pause.
const TIMEOUT: Duration = Duration::from_secs(2);

const PAYLOAD_MAX: usize = 1 << 20;

/// The data of an engine in memory. Each node connects with a [`MemoryEngine`] of its own.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    data: Arc<Mutex<Data>>,
    /// Grows with each change, so that watches look again.
    version: watch::Sender<u64>,
    engines: Arc<Mutex<Vec<Arc<Node>>>>,
    subscribers: Arc<Mutex<Vec<Subscriber>>>,
}

#[derive(Debug)]
struct Subscriber {
    prefix: Key,
    messages: mpsc::Sender<Message>,
}

#[derive(Debug, Default)]
struct Data {
    /// The newest write of each record: its revision and value.
    records: BTreeMap<Key, (u64, Option<Bytes>)>,
    /// All writes of records, so that the last ones can be lost.
    history: Vec<(Key, Option<Bytes>)>,
    /// The entries of the log from `trimmed` on.
    log: Vec<Bytes>,
    trimmed: u64,
    /// Grows when the log is replaced.
    log_identity: u64,
    objects: BTreeMap<String, Bytes>,
}

/// A fault of the next write of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFault {
    /// It is lost: its outcome is unknown, and it is never applied.
    Lost,
    /// It is applied, but its answer is lost.
    AnswerLost,
    /// Its outcome is unknown, and it is applied after this time, if its expectation still holds.
    AppliedAfter(Duration),
}

/// One node's connection to a [`MemoryStore`].
#[derive(Debug, Clone)]
pub struct MemoryEngine {
    store: MemoryStore,
    node: Arc<Node>,
}

#[derive(Debug)]
struct Node {
    state: watch::Sender<EngineState>,
    faults: Mutex<Faults>,
}

#[derive(Debug, Default)]
struct Faults {
    delay: Duration,
    /// In order; each write takes one.
    writes: Vec<WriteFault>,
    number: u64,
    n_restarts: u64,
}

impl MemoryStore {
    /// Connects a node.
    pub fn connect(&self) -> MemoryEngine {
        let reason = "not connected yet".to_owned();
        let (state, _) = watch::channel(EngineState::Disconnected { reason });
        let node = Arc::new(Node { state, faults: Mutex::default() });
        self.engines.lock().push(node.clone());
        let engine = MemoryEngine { store: self.clone(), node };
        engine.reconnect();
        engine
    }

    /// Restarts the engine without the last writes of records, and without the last entries of the log. All nodes get
    /// a new session.
    pub fn restart(&self, n_writes_lost: usize, n_entries_lost: usize) {
        let nodes = self.engines.lock().clone();
        for node in &nodes {
            node.disconnect("the engine restarts");
        }
        {
            let mut data = self.data.lock();
            let n_kept = data.history.len().saturating_sub(n_writes_lost);
            data.history.truncate(n_kept);
            let records =
                (1..).zip(&data.history).map(|(at, (key, value))| (key.clone(), (at, value.clone())));
            data.records = records.collect();
            let n_kept = data.log.len().saturating_sub(n_entries_lost);
            data.log.truncate(n_kept);
        }
        for node in &nodes {
            node.faults.lock().n_restarts += u64::from(n_writes_lost > 0);
            node.connect();
        }
        self.changed();
    }

    /// Replaces the log by an empty one.
    pub fn replace_log(&self) {
        let mut data = self.data.lock();
        data.log.clear();
        data.trimmed = 0;
        data.log_identity += 1;
        drop(data);
        self.changed();
    }

    fn changed(&self) {
        self.version.send_modify(|it| *it += 1);
    }

    fn swap(&self, key: &Key, expected: Revision, value: Option<Bytes>) -> SwapOutcome {
        let mut data = self.data.lock();
        if data.records.get(key).map_or(0, |it| it.0) != expected.0 {
            return SwapOutcome::Conflict;
        }
        data.history.push((key.clone(), value.clone()));
        let revision = data.history.len() as u64;
        data.records.insert(key.clone(), (revision, value));
        drop(data);
        self.changed();
        SwapOutcome::Applied(Revision(revision))
    }

    fn append(&self, expected_last: u64, payload: Bytes) -> SwapOutcome {
        let mut data = self.data.lock();
        if data.last() != expected_last {
            return SwapOutcome::Conflict;
        }
        data.log.push(payload);
        let last = data.last();
        drop(data);
        self.changed();
        SwapOutcome::Applied(Revision(last))
    }
}

impl Data {
    fn last(&self) -> u64 {
        self.trimmed + self.log.len() as u64
    }

    fn log_state(&self) -> LogState {
        LogState {
            identity: self.log_identity.to_string(),
            first: self.trimmed + 1,
            last: self.last(),
            bytes: self.log.iter().map(|it| it.len() as u64).sum(),
        }
    }

    fn entry(&self, sequence: u64) -> Option<LogEntry> {
        let at = sequence.checked_sub(self.trimmed + 1)?;
        let payload = self.log.get(usize::try_from(at).ok()?)?.clone();
        Some(LogEntry { sequence, payload })
    }
}

impl Node {
    fn connect(&self) {
        let mut faults = self.faults.lock();
        faults.number += 1;
        let (number, n_restarts) = (faults.number, faults.n_restarts);
        drop(faults);
        self.state.send_replace(EngineState::Connected(Session {
            number,
            n_restarts,
            payload_max: PAYLOAD_MAX,
        }));
    }

    fn disconnect(&self, reason: &str) {
        self.state.send_replace(EngineState::Disconnected { reason: reason.to_owned() });
    }

    fn is_present(&self, session: u64) -> bool {
        self.state.borrow().session().is_some_and(|it| it.number == session)
    }
}

impl MemoryEngine {
    /// Cuts this node off, until [`reconnect`](Self::reconnect).
    pub fn disconnect(&self) {
        self.node.disconnect("cut off");
    }

    /// Begins a new session.
    pub fn reconnect(&self) {
        self.node.connect();
    }

    /// Lets each request of this node take this time.
    pub fn delay(&self, delay: Duration) {
        self.node.faults.lock().delay = delay;
    }

    /// Gives the next writes of this node, of records and of the log, these faults.
    pub fn fail_writes(&self, faults: impl IntoIterator<Item = WriteFault>) {
        self.node.faults.lock().writes.extend(faults);
    }

    /// Waits for the delay of a request, and checks its session.
    async fn request(&self, session: u64) -> Result<(), EngineError> {
        let delay = self.node.faults.lock().delay;
        if !delay.is_zero() {
            sleep(delay.min(TIMEOUT)).await;
        }
        if !self.node.is_present(session) {
            Err(EngineError::SessionEnded)
        } else if delay >= TIMEOUT {
            Err(EngineError::TimedOut)
        } else {
            Ok(())
        }
    }

    async fn write(
        &self,
        session: u64,
        apply: impl FnOnce(&MemoryStore) -> SwapOutcome + Send + 'static,
    ) -> SwapOutcome {
        if self.request(session).await.is_err() {
            return SwapOutcome::Unknown;
        }
        let fault = {
            let mut faults = self.node.faults.lock();
            (!faults.writes.is_empty()).then(|| faults.writes.remove(0))
        };
        let Some(fault) = fault else { return apply(&self.store) };
        match fault {
            WriteFault::Lost => {}
            WriteFault::AnswerLost => {
                apply(&self.store);
            }
            WriteFault::AppliedAfter(delay) => {
                let store = self.store.clone();
                tokio::spawn(async move {
                    sleep(delay).await;
                    apply(&store);
                });
            }
        }
        sleep(TIMEOUT).await;
        SwapOutcome::Unknown
    }

    /// Waits for a session other than this one.
    async fn next_session(&self, last: u64) -> Session {
        let mut state = self.node.state.subscribe();
        loop {
            let session = state.borrow_and_update().session().filter(|it| it.number != last);
            if let Some(it) = session {
                return it;
            }
            // The sender is in `self`, so this waits for a change.
            let _ = state.changed().await;
        }
    }

    /// Waits until the data may have changed, or the session has ended.
    async fn changed(&self, version: &mut watch::Receiver<u64>, session: u64) {
        let mut state = self.node.state.subscribe();
        tokio::select! {
            _ = version.changed() => {}
            _ = state.wait_for(|it| it.session().is_none_or(|it| it.number != session)) => {}
        }
    }

    async fn watch_records(self, prefix: Option<Key>, events: mpsc::Sender<WatchEvent>) -> Option<()> {
        let mut version = self.store.version.subscribe();
        let mut last = 0;
        loop {
            let session = self.next_session(last).await;
            last = session.number;
            events.send(WatchEvent::Session(session)).await.ok()?;
            let (mut seen, mut is_complete) = (0, false);
            while self.node.is_present(last) {
                version.borrow_and_update();
                let mut records: Vec<_> = {
                    let data = self.store.data.lock();
                    let is_wanted = |key: &Key| prefix.as_ref().is_none_or(|it| key.starts_with(it));
                    let new = data.records.iter().filter(|(key, it)| it.0 > seen && is_wanted(key));
                    new.map(|(key, it)| Record {
                        key: key.clone(),
                        revision: Revision(it.0),
                        value: it.1.clone(),
                    })
                    .collect()
                };
                records.sort_unstable_by_key(|it| it.revision);
                for record in records {
                    seen = record.revision.0;
                    events.send(WatchEvent::Record(record)).await.ok()?;
                }
                if !is_complete {
                    is_complete = true;
                    events.send(WatchEvent::Complete).await.ok()?;
                }
                self.changed(&mut version, last).await;
            }
        }
    }

    async fn follow_log(self, from: u64, events: mpsc::Sender<LogEvent>) -> Option<()> {
        let mut version = self.store.version.subscribe();
        let (mut last, mut next, mut identity) = (0, from.max(1), None);
        loop {
            let session = self.next_session(last).await;
            last = session.number;
            let log = self.store.data.lock().log_state();
            let is_same = identity.as_ref().is_none_or(|it| *it == log.identity);
            let is_continued = is_same && log.first <= next && next <= log.last + 1;
            identity = Some(log.identity.clone());
            events.send(LogEvent::Session { session, log }).await.ok()?;
            if !is_continued {
                return None;
            }
            let mut is_complete = false;
            while self.node.is_present(last) {
                version.borrow_and_update();
                loop {
                    let Some(entry) = self.store.data.lock().entry(next) else { break };
                    next += 1;
                    events.send(LogEvent::Entry(entry)).await.ok()?;
                }
                if !is_complete {
                    is_complete = true;
                    events.send(LogEvent::Complete).await.ok()?;
                }
                self.changed(&mut version, last).await;
            }
        }
    }
}

/// Runs a task until it ends or nobody receives its events.
fn spawn<T: Send + 'static>(
    events: mpsc::Sender<T>,
    task: impl Future<Output = Option<()>> + Send + 'static,
) {
    tokio::spawn(async move {
        tokio::select! {
            _ = task => {}
            () = events.closed() => {}
        }
    });
}

impl Engine for MemoryEngine {
    fn state(&self) -> watch::Receiver<EngineState> {
        self.node.state.subscribe()
    }

    fn swap<'a>(
        &'a self,
        session: u64,
        key: &'a Key,
        expected: Revision,
        value: Option<Bytes>,
    ) -> BoxFuture<'a, SwapOutcome> {
        let key = key.clone();
        self.write(session, move |it| it.swap(&key, expected, value)).boxed()
    }

    fn read<'a>(&'a self, session: u64, key: &'a Key) -> BoxFuture<'a, Result<Record, EngineError>> {
        async move {
            self.request(session).await?;
            let data = self.store.data.lock();
            let (revision, value) = data.records.get(key).cloned().unwrap_or_default();
            Ok(Record { key: key.clone(), revision: Revision(revision), value })
        }
        .boxed()
    }

    fn watch(&self, prefix: Option<Key>) -> mpsc::Receiver<WatchEvent> {
        let (events, receiver) = mpsc::channel(EVENTS_MAX);
        spawn(events.clone(), self.clone().watch_records(prefix, events));
        receiver
    }

    fn append(&self, session: u64, expected_last: u64, payload: Bytes) -> BoxFuture<'_, SwapOutcome> {
        self.write(session, move |it| it.append(expected_last, payload)).boxed()
    }

    fn read_log(&self, session: u64, sequence: u64) -> BoxFuture<'_, Result<Option<LogEntry>, EngineError>> {
        async move {
            self.request(session).await?;
            Ok(self.store.data.lock().entry(sequence))
        }
        .boxed()
    }

    fn log_state(&self, session: u64) -> BoxFuture<'_, Result<LogState, EngineError>> {
        async move {
            self.request(session).await?;
            Ok(self.store.data.lock().log_state())
        }
        .boxed()
    }

    fn follow(&self, from: u64) -> mpsc::Receiver<LogEvent> {
        let (events, receiver) = mpsc::channel(EVENTS_MAX);
        spawn(events.clone(), self.clone().follow_log(from, events));
        receiver
    }

    fn trim_log(&self, session: u64, before: u64) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            self.request(session).await?;
            let mut data = self.store.data.lock();
            let trimmed = before.saturating_sub(1).clamp(data.trimmed, data.last());
            let n_gone = usize::try_from(trimmed - data.trimmed).unwrap_or(usize::MAX);
            data.log.drain(..n_gone);
            data.trimmed = trimmed;
            Ok(())
        }
        .boxed()
    }

    fn publish<'a>(
        &'a self,
        session: u64,
        subject: &'a Key,
        payload: Bytes,
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        async move {
            self.request(session).await?;
            let mut subscribers = self.store.subscribers.lock();
            subscribers.retain(|it| !it.messages.is_closed());
            for it in subscribers.iter().filter(|it| subject.starts_with(&it.prefix)) {
                // A full receiver loses messages.
                let _ = it.messages.try_send(Message { subject: subject.clone(), payload: payload.clone() });
            }
            Ok(())
        }
        .boxed()
    }

    fn subscribe(&self, prefix: Key) -> mpsc::Receiver<Message> {
        let (messages, receiver) = mpsc::channel(MESSAGES_MAX);
        self.store.subscribers.lock().push(Subscriber { prefix, messages });
        receiver
    }

    fn put_object<'a>(
        &'a self,
        session: u64,
        name: &'a str,
        body: &'a mut (dyn AsyncRead + Send + Unpin),
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        async move {
            self.request(session).await?;
            let mut all = Vec::new();
            let read = body.read_to_end(&mut all).await;
            read.map_err(|it| EngineError::Refused { action: "store an object", reason: it.to_string() })?;
            self.store.data.lock().objects.insert(name.to_owned(), Bytes::from(all));
            Ok(())
        }
        .boxed()
    }

    fn object<'a>(
        &'a self,
        session: u64,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Box<dyn AsyncRead + Send + Unpin>>, EngineError>> {
        async move {
            self.request(session).await?;
            let object = self.store.data.lock().objects.get(name).cloned();
            Ok(object.map(|it| Box::new(std::io::Cursor::new(it)) as Box<dyn AsyncRead + Send + Unpin>))
        }
        .boxed()
    }

    fn remove_object<'a>(&'a self, session: u64, name: &'a str) -> BoxFuture<'a, Result<(), EngineError>> {
        async move {
            self.request(session).await?;
            self.store.data.lock().objects.remove(name);
            Ok(())
        }
        .boxed()
    }

    fn objects(&self, session: u64) -> BoxFuture<'_, Result<Vec<ObjectInfo>, EngineError>> {
        async move {
            self.request(session).await?;
            let data = self.store.data.lock();
            let info =
                |(name, it): (&String, &Bytes)| ObjectInfo { name: name.clone(), bytes: it.len() as u64 };
            Ok(data.objects.iter().map(info).collect())
        }
        .boxed()
    }

    fn unfinished_uploads(&self, session: u64) -> BoxFuture<'_, Result<Vec<String>, EngineError>> {
        // An upload is complete or not there.
        async move { self.request(session).await.map(|()| Vec::new()) }.boxed()
    }

    fn remove_upload<'a>(&'a self, session: u64, _id: &'a str) -> BoxFuture<'a, Result<(), EngineError>> {
        async move { self.request(session).await }.boxed()
    }
}
