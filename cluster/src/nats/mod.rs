//! The engine over NATS JetStream.
//!
//! Records are a bucket of NATS (`nats kv`), the log is a stream, and objects are an object store of NATS, all with the
//! name `HW`. So a cluster needs an account of NATS of its own.
//!
//! ```text
//!   session.rs    one connection at a time; a new one checks the identity and length of the bucket
//!      ├─▶ records.rs    compare-and-swap, reads, watches
//!      ├─▶ log.rs        appending with an expected sequence, following
//!      ├─▶ messages.rs   messages that are not stored
//!      └─▶ objects.rs    large values
//!   inspect.rs    what a server says about itself, for people
//! ```

mod inspect;
mod log;
mod messages;
mod objects;
mod options;
mod publish;
mod reader;
mod records;
mod session;
mod streams;
mod version;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use domain::cluster::SwapOutcome;
use domain::cluster::record::Revision;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, watch};

pub use self::inspect::{MonitorFacts, ServerFacts, StreamFacts, check_monitor_address, inspect, monitor};
use self::log::Follower;
pub(crate) use self::options::PlainNatsOptions;
pub use self::options::{NatsLogin, NatsOptions, check_address};
use self::records::Watcher;
use self::session::{Shared, read_in_each_session};
pub use self::streams::replicas;
pub use self::version::VERSION_MIN;
use crate::engine::{
    EVENTS_MAX, Engine, EngineError, EngineState, Key, LogEntry, LogEvent, LogState, MESSAGES_MAX, Message,
    ObjectInfo, Record, WatchEvent,
};

/// The engine over NATS JetStream. Its connection ends when it is dropped.
pub struct NatsEngine {
    shared: Arc<Shared>,
}

impl fmt::Debug for NatsEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsEngine").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Drop for NatsEngine {
    fn drop(&mut self) {
        self.shared.stopped.cancel();
    }
}

impl NatsEngine {
    /// Starts to connect, in tasks of the present runtime. Without servers, it never does.
    pub fn start(options: NatsOptions) -> Self {
        let shared = Arc::new(Shared::new(options));
        if !shared.options.servers.is_empty() {
            tokio::spawn(session::run(shared.clone()));
        }
        Self { shared }
    }

    /// Runs a task until it ends, or the engine is dropped.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stopped = self.shared.stopped.clone();
        tokio::spawn(async move { stopped.run_until_cancelled(task).await });
    }
}

impl Engine for NatsEngine {
    fn state(&self) -> watch::Receiver<EngineState> {
        self.shared.state.subscribe()
    }

    fn swap<'a>(
        &'a self,
        session: u64,
        key: &'a Key,
        expected: Revision,
        value: Option<Bytes>,
    ) -> BoxFuture<'a, SwapOutcome> {
        records::swap(&self.shared, session, key, expected, value).boxed()
    }

    fn read<'a>(&'a self, session: u64, key: &'a Key) -> BoxFuture<'a, Result<Record, EngineError>> {
        records::read(&self.shared, session, key).boxed()
    }

    fn watch(&self, prefix: Option<Key>) -> mpsc::Receiver<WatchEvent> {
        let (events, receiver) = mpsc::channel(EVENTS_MAX);
        self.spawn(read_in_each_session(Watcher(prefix), self.shared.clone(), events));
        receiver
    }

    fn append(&self, session: u64, expected_last: u64, payload: Bytes) -> BoxFuture<'_, SwapOutcome> {
        log::append(&self.shared, session, expected_last, payload).boxed()
    }

    fn read_log(&self, session: u64, sequence: u64) -> BoxFuture<'_, Result<Option<LogEntry>, EngineError>> {
        log::read(&self.shared, session, sequence).boxed()
    }

    fn log_state(&self, session: u64) -> BoxFuture<'_, Result<LogState, EngineError>> {
        async move { log::state(&*self.shared.live(session)?).await }.boxed()
    }

    fn follow(&self, from: u64) -> mpsc::Receiver<LogEvent> {
        let (events, receiver) = mpsc::channel(EVENTS_MAX);
        self.spawn(read_in_each_session(Follower::new(from), self.shared.clone(), events));
        receiver
    }

    fn trim_log(&self, session: u64, before: u64) -> BoxFuture<'_, Result<(), EngineError>> {
        log::trim(&self.shared, session, before).boxed()
    }

    fn publish<'a>(
        &'a self,
        session: u64,
        subject: &'a Key,
        payload: Bytes,
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        messages::publish(&self.shared, session, subject, payload).boxed()
    }

    fn subscribe(&self, prefix: Key) -> mpsc::Receiver<Message> {
        let (messages, receiver) = mpsc::channel(MESSAGES_MAX);
        self.spawn(messages::subscribe(self.shared.clone(), prefix, messages));
        receiver
    }

    fn put_object<'a>(
        &'a self,
        session: u64,
        name: &'a str,
        body: &'a mut (dyn AsyncRead + Send + Unpin),
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        objects::put(&self.shared, session, name, body).boxed()
    }

    fn object<'a>(
        &'a self,
        session: u64,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Box<dyn AsyncRead + Send + Unpin>>, EngineError>> {
        objects::open(&self.shared, session, name).boxed()
    }

    fn remove_object<'a>(&'a self, session: u64, name: &'a str) -> BoxFuture<'a, Result<(), EngineError>> {
        objects::remove(&self.shared, session, name).boxed()
    }

    fn objects(&self, session: u64) -> BoxFuture<'_, Result<Vec<ObjectInfo>, EngineError>> {
        objects::list(&self.shared, session).boxed()
    }

    fn unfinished_uploads(&self, session: u64) -> BoxFuture<'_, Result<Vec<String>, EngineError>> {
        objects::unfinished(&self.shared, session).boxed()
    }

    fn remove_upload<'a>(&'a self, session: u64, id: &'a str) -> BoxFuture<'a, Result<(), EngineError>> {
        objects::remove_unfinished(&self.shared, session, id).boxed()
    }
}
