//! The engine in memory keeps the promises of the trait, so that tests with it are worth something.

use std::time::Duration;

use bytes::Bytes;
use cluster::testing::{MemoryStore, WriteFault};
use cluster::{Engine, EngineError, Key, LogEvent, Revision, SwapOutcome, WatchEvent};

fn key(text: &str) -> Key {
    Key::new(text).expect("a key")
}

fn bytes(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

#[tokio::test(start_paused = true)]
async fn writes_need_the_expected_revision_and_faults_make_outcomes_unknown() {
    let store = MemoryStore::default();
    let engine = store.connect();
    let key = key("member.1");
    let swap = async |expected, value| engine.swap(1, &key, Revision(expected), bytes(value)).await;
    assert_eq!(swap(0, "a").await, SwapOutcome::Applied(Revision(1)));
    assert_eq!(swap(0, "b").await, SwapOutcome::Conflict);
    let late = WriteFault::AppliedAfter(Duration::from_secs(5));
    engine.fail_writes([WriteFault::Lost, WriteFault::AnswerLost, late]);
    assert_eq!(swap(1, "lost").await, SwapOutcome::Unknown);
    assert_eq!(engine.read(1, &key).await.unwrap().value, bytes("a"));
    assert_eq!(swap(1, "b").await, SwapOutcome::Unknown);
    assert_eq!(engine.read(1, &key).await.unwrap().value, bytes("b"));
    assert_eq!(swap(2, "late").await, SwapOutcome::Unknown);
    assert_eq!(engine.read(1, &key).await.unwrap().value, bytes("b"));
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(engine.read(1, &key).await.unwrap().value, bytes("late"));
    engine.delay(Duration::from_secs(3));
    assert_eq!(engine.read(1, &key).await, Err(EngineError::TimedOut));
    engine.delay(Duration::ZERO);
    engine.reconnect();
    assert_eq!(engine.read(1, &key).await, Err(EngineError::SessionEnded));
    assert_eq!(engine.append(1, 0, Bytes::new()).await, SwapOutcome::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_loses_writes_is_told_before_the_records() {
    let store = MemoryStore::default();
    let (engine, other) = (store.connect(), store.connect());
    let mut events = engine.watch(Some(key("member")));
    assert!(matches!(events.recv().await, Some(WatchEvent::Session(it)) if it.n_restarts == 0));
    assert_eq!(events.recv().await, Some(WatchEvent::Complete));
    for (at, value) in (0..).zip(["a", "b"]) {
        other.swap(1, &key("member.1"), Revision(at), bytes(value)).await;
    }
    while !matches!(events.recv().await, Some(WatchEvent::Record(it)) if it.revision == Revision(2)) {}
    store.restart(1, 0);
    assert!(
        matches!(events.recv().await, Some(WatchEvent::Session(it)) if it.n_restarts == 1 && it.number == 2)
    );
    assert!(matches!(events.recv().await, Some(WatchEvent::Record(it)) if it.value == bytes("a")));
    assert_eq!(events.recv().await, Some(WatchEvent::Complete));
}

#[tokio::test(start_paused = true)]
async fn the_log_is_followed_over_sessions_and_a_lost_end_is_told() {
    let store = MemoryStore::default();
    let engine = store.connect();
    let mut log = engine.follow(1);
    assert!(
        matches!(log.recv().await, Some(LogEvent::Session { log, .. }) if (log.first, log.last) == (1, 0))
    );
    assert_eq!(log.recv().await, Some(LogEvent::Complete));
    for at in 0..3 {
        assert!(matches!(engine.append(1, at, Bytes::new()).await, SwapOutcome::Applied(_)));
        assert!(matches!(log.recv().await, Some(LogEvent::Entry(it)) if it.sequence == at + 1));
    }
    engine.reconnect();
    assert!(matches!(log.recv().await, Some(LogEvent::Session { session, .. }) if session.number == 2));
    assert_eq!(log.recv().await, Some(LogEvent::Complete));
    engine.trim_log(2, 3).await.unwrap();
    assert_eq!(engine.read_log(2, 2).await.unwrap(), None);
    assert!(engine.read_log(2, 3).await.unwrap().is_some());
    store.restart(0, 1);
    assert!(matches!(log.recv().await, Some(LogEvent::Session { log, .. }) if log.last == 2));
    assert_eq!(log.recv().await, None);
}
