//! Servers, sessions and events.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use cluster::nats::NatsEngine;
use cluster::testing::NatsServers;
use cluster::{Engine, EngineState, Key, LogEvent, Revision, Session, SwapOutcome, WatchEvent};
use tokio::sync::mpsc::Receiver;
use tokio::time::{sleep, timeout};

/// Longest time for anything. A test that waits so long fails.
const WAIT_MAX: Duration = Duration::from_secs(90);

/// Returns the program that `just tools` installed.
pub(super) fn program() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/bin/nats-server");
    assert!(path.exists(), "this test needs {}: just tools", path.display());
    path
}

pub(super) fn servers(n: usize) -> NatsServers {
    NatsServers::start(&program(), n)
}

pub(super) fn key(text: &str) -> Key {
    Key::new(text).expect("a key")
}

pub(super) fn bytes(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

/// Waits for a session later than this one.
pub(super) async fn session_after(engine: &dyn Engine, last: u64) -> Session {
    let mut state = engine.state();
    let found = timeout(WAIT_MAX, state.wait_for(|it| it.session().is_some_and(|it| it.number > last))).await;
    let state =
        found.unwrap_or_else(|_| panic!("no session: {:?}", engine.state().borrow())).expect("it runs");
    state.session().expect("waited for")
}

pub(super) async fn started(servers: &NatsServers) -> (NatsEngine, Session) {
    let engine = NatsEngine::start(servers.options());
    let session = session_after(&engine, 0).await;
    (engine, session)
}

/// Waits for the reason why there is no session.
pub(super) async fn reason(engine: &dyn Engine, part: &str) -> String {
    let has = |it: &EngineState| matches!(it, EngineState::Disconnected { reason } if reason.contains(part));
    let mut state = engine.state();
    let found = timeout(WAIT_MAX, state.wait_for(has)).await;
    match &*found.unwrap_or_else(|_| panic!("{:?}", engine.state().borrow())).expect("it runs") {
        EngineState::Disconnected { reason } => reason.clone(),
        EngineState::Connected(_) => unreachable!("waited for"),
    }
}

pub(super) async fn next<T>(events: &mut Receiver<T>) -> T {
    timeout(WAIT_MAX, events.recv()).await.expect("an event in time").expect("the engine runs")
}

/// Returns the records of a session: each key, revision and value. A node may find another server meanwhile, and begins again.
pub(super) async fn records(
    events: &mut Receiver<WatchEvent>,
) -> (Session, Vec<(String, u64, Option<Bytes>)>) {
    let WatchEvent::Session(mut session) = next(events).await else { panic!("a session comes first") };
    let mut records = Vec::new();
    loop {
        match next(events).await {
            WatchEvent::Record(it) => records.push((it.key.as_str().to_owned(), it.revision.0, it.value)),
            WatchEvent::Complete => return (session, records),
            WatchEvent::Session(it) => {
                session = it;
                records.clear();
            }
        }
    }
}

/// Returns the sequences and payloads of a session, in the same way.
pub(super) async fn entries(events: &mut Receiver<LogEvent>) -> Vec<(u64, Bytes)> {
    assert!(matches!(next(events).await, LogEvent::Session { .. }));
    let mut entries = Vec::new();
    loop {
        match next(events).await {
            LogEvent::Entry(it) => entries.push((it.sequence, it.payload)),
            LogEvent::Complete => return entries,
            LogEvent::Session { .. } => entries.clear(),
        }
    }
}

/// Writes a record, in whatever session, until it has this value. Returns its revision.
pub(super) async fn write_surely(engine: &dyn Engine, key: &Key, value: &'static str) -> Revision {
    let written = async {
        loop {
            let session = session_after(engine, 0).await.number;
            if let Ok(record) = engine.read(session, key).await {
                if record.value == bytes(value) {
                    return record.revision;
                }
                if let SwapOutcome::Applied(it) =
                    engine.swap(session, key, record.revision, bytes(value)).await
                {
                    return it;
                }
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(WAIT_MAX, written).await.unwrap_or_else(|_| panic!("not written: {:?}", engine.state().borrow()))
}
