//! The message of a guard, over the engine in memory.

use std::time::Duration;

use bytes::Bytes;
use cluster::codec::{self, StoredRecord};
use cluster::end_notice::tell_end;
use cluster::nats::{NatsLogin, NatsOptions};
use cluster::testing::{MemoryEngine, MemoryStore, WriteFault};
use cluster::{EndNotice, Engine, NodeInfo, Revision, SwapOutcome, node_id};
use domain::cluster::record::{
    BootId, ClusterRecord, CoolingReason, Incarnation, MemberRecord, MemberState, NodeId, ProcessId,
    RecordKey,
};
use tokio::time::timeout;
use uuid::Uuid;

const NODE: NodeId = NodeId(3);
const PROCESS: ProcessId = ProcessId(7);
const INCARNATION: Incarnation = Incarnation(1);

fn info() -> NodeInfo {
    NodeInfo { name: "attic".to_owned(), ..NodeInfo::default() }
}

fn renewal(process: ProcessId) -> Bytes {
    let record = MemberRecord {
        state: MemberState::Alive,
        boot: BootId(Uuid::nil()),
        process,
        write: 1,
        incarnation: Some(INCARNATION),
        over: Incarnation(0),
        closed_after: Incarnation(0),
        closed: Incarnation(0),
        highest: Revision(0),
        settled: true,
    };
    codec::encode(&ClusterRecord::Member(record), &info())
}

async fn write(engine: &MemoryEngine, expected: u64, process: ProcessId) {
    let key = codec::key(RecordKey::Member(NODE));
    let session = engine.state().borrow().session().expect("it is connected").number;
    let outcome = engine.swap(session, &key, Revision(expected), Some(renewal(process))).await;
    assert!(matches!(outcome, SwapOutcome::Applied(_)), "{outcome:?}");
}

/// Returns the revision of the record, and how the incarnation ended.
async fn present(engine: &MemoryEngine) -> (Revision, Option<CoolingReason>) {
    let at = RecordKey::Member(NODE);
    let key = codec::key(at);
    let session = engine.state().borrow().session().expect("it is connected").number;
    let read = engine.read(session, &key).await.expect("it is connected");
    let value = read.value.expect("a record");
    let Ok(StoredRecord::Member(stored)) = codec::decode(&key, at, &value) else { panic!("a member") };
    assert_eq!(stored.node, info(), "the node is described as before");
    (read.revision, stored.record.ending_of(INCARNATION))
}

#[tokio::test(start_paused = true)]
async fn a_guard_tells_the_end_of_its_process_once_although_writes_fail() {
    let store = MemoryStore::default();
    let (engine, guard) = (store.connect(), store.connect());
    write(&engine, 0, PROCESS).await;
    assert_eq!(present(&engine).await, (Revision(1), None));
    guard.fail_writes([WriteFault::Lost, WriteFault::AnswerLost]);
    tell_end(&guard, NODE, PROCESS).await;
    assert_eq!(present(&engine).await, (Revision(2), Some(CoolingReason::Closed)));
    tell_end(&guard, NODE, PROCESS).await;
    assert_eq!(present(&engine).await.0, Revision(2), "nothing is written for a message that comes again");
}

/// The first attempt of the guard is applied after the next process of the node has written the record.
#[tokio::test(start_paused = true)]
async fn a_guard_that_is_late_ends_no_later_process_of_its_node() {
    let store = MemoryStore::default();
    let (engine, guard) = (store.connect(), store.connect());
    write(&engine, 0, PROCESS).await;
    guard.fail_writes([WriteFault::AppliedAfter(Duration::from_secs(5))]);
    let telling = tokio::spawn({
        let guard = guard.clone();
        async move { tell_end(&guard, NODE, PROCESS).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    write(&engine, 1, ProcessId(8)).await;
    telling.await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(present(&engine).await, (Revision(2), None));
    for process in [PROCESS, ProcessId(9)] {
        tell_end(&guard, NODE, process).await;
        assert_eq!(present(&engine).await, (Revision(2), None), "{process:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_writes_nothing_about_a_node_that_has_no_record_and_waits_for_the_engine() {
    let store = MemoryStore::default();
    let (engine, guard) = (store.connect(), store.connect());
    tell_end(&guard, NODE, PROCESS).await;
    let key = codec::key(RecordKey::Member(NODE));
    assert_eq!(engine.read(1, &key).await.unwrap().revision, Revision(0));
    write(&engine, 0, PROCESS).await;
    guard.disconnect();
    assert!(timeout(Duration::from_secs(60), tell_end(&guard, NODE, PROCESS)).await.is_err());
    guard.reconnect();
    tell_end(&guard, NODE, PROCESS).await;
    assert_eq!(present(&engine).await, (Revision(2), Some(CoolingReason::Closed)));
}

#[test]
fn a_notice_reaches_the_guard_unchanged_and_prints_no_key() {
    let seed = nkeys::KeyPair::new_user().seed().unwrap();
    let login = NatsLogin::from_seed(&seed).unwrap();
    let options =
        NatsOptions { servers: vec!["tls://10.0.0.1:4222".into()], login, ca: None, name: "attic".into() };
    let notice = EndNotice::new(&options, node_id("attic"));
    let bytes = notice.to_bytes().unwrap();
    let printed = format!("{notice:?}");
    assert_eq!(format!("{:?}", EndNotice::from_bytes(&bytes).unwrap()), printed);
    assert!(!printed.contains(&seed), "{printed}");
    for wrong in [&bytes[1..], &bytes[..bytes.len() - 1], b"", b"{}"] {
        assert!(EndNotice::from_bytes(wrong).is_none());
    }
}
