//! The engine with one server.

use bytes::Bytes;
use cluster::nats::{NatsEngine, NatsLogin, NatsOptions};
use cluster::testing::NatsServers;
use cluster::{Engine, EngineError, LogEvent, Message, Revision, SwapOutcome, WatchEvent};
use tokio::io::AsyncReadExt;

use super::support::{
    bytes, entries, key, next, program, records, servers, session_after, started, write_surely,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_replaced_only_if_it_has_the_expected_revision() {
    let servers = servers(1);
    let (engine, session) = started(&servers).await;
    let (session, key) = (session.number, key("pool.group-1"));
    assert_eq!(engine.read(session, &key).await.unwrap().revision, Revision(0));
    let SwapOutcome::Applied(first) = engine.swap(session, &key, Revision(0), bytes("a")).await else {
        panic!()
    };
    assert_eq!(engine.swap(session, &key, Revision(0), bytes("b")).await, SwapOutcome::Conflict);
    let SwapOutcome::Applied(second) = engine.swap(session, &key, first, bytes("c")).await else { panic!() };
    assert!(second > first);
    assert_eq!(engine.swap(session, &key, first, bytes("d")).await, SwapOutcome::Conflict);
    let record = engine.read(session, &key).await.unwrap();
    assert_eq!((record.revision, record.value), (second, bytes("c")));
    // A removed record has the revision of its removal.
    let SwapOutcome::Applied(removed) = engine.swap(session, &key, second, None).await else { panic!() };
    let record = engine.read(session, &key).await.unwrap();
    assert_eq!((record.revision, record.value), (removed, None));
    assert_eq!(engine.swap(session, &key, Revision(0), bytes("e")).await, SwapOutcome::Conflict);
    assert!(matches!(engine.swap(session, &key, removed, bytes("e")).await, SwapOutcome::Applied(_)));
    let too_long = Bytes::from(vec![0; 2 << 20]);
    assert_eq!(engine.swap(session, &key, removed, Some(too_long)).await, SwapOutcome::Unknown);
    assert_eq!(engine.state().borrow().session().map(|it| it.number), Some(session), "no new session");
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_one_of_many_concurrent_swaps_wins() {
    let servers = servers(1);
    let (engine, session) = started(&servers).await;
    let (other, other_session) = started(&servers).await;
    let key = key("job.writer");
    let mut expected = Revision(0);
    for _ in 0..20 {
        let swaps = (0..8).map(|at| {
            let (engine, session) = if at % 2 == 0 { (&engine, session) } else { (&other, other_session) };
            engine.swap(session.number, &key, expected, bytes("x"))
        });
        let outcomes = futures_util::future::join_all(swaps).await;
        let applied: Vec<_> = outcomes
            .iter()
            .filter_map(|it| if let SwapOutcome::Applied(it) = it { Some(*it) } else { None })
            .collect();
        assert_eq!(applied.len(), 1, "{outcomes:?}");
        expected = applied[0];
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_reports_what_exists_and_each_change() {
    let servers = servers(1);
    let (engine, session) = started(&servers).await;
    let session = session.number;
    let (a, b) = (key("member.1"), key("member.2"));
    let SwapOutcome::Applied(first) = engine.swap(session, &a, Revision(0), bytes("a")).await else {
        panic!()
    };
    engine.swap(session, &key("pool.group-1"), Revision(0), bytes("p")).await;
    let mut events = engine.watch(Some(key("member")));
    let (watched, existing) = records(&mut events).await;
    assert_eq!(watched.number, session);
    assert_eq!(existing, [("member.1".to_owned(), first.0, bytes("a"))]);
    engine.swap(session, &b, Revision(0), bytes("b")).await;
    engine.swap(session, &a, first, None).await;
    let WatchEvent::Record(it) = next(&mut events).await else { panic!() };
    assert_eq!((it.key, it.value), (b, bytes("b")));
    let WatchEvent::Record(it) = next(&mut events).await else { panic!() };
    assert_eq!((it.key, it.value), (a, None));
    let mut all = engine.watch(None);
    let keys: Vec<_> = records(&mut all).await.1.into_iter().map(|it| it.0).collect();
    assert_eq!(keys, ["pool.group-1", "member.2", "member.1"], "in the order of their revisions");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_is_appended_only_after_the_expected_one() {
    let servers = servers(1);
    let (engine, session) = started(&servers).await;
    let session = session.number;
    let payload = |text: &'static str| Bytes::from_static(text.as_bytes());
    assert_eq!(engine.append(session, 1, payload("x")).await, SwapOutcome::Conflict);
    assert_eq!(engine.append(session, 0, payload("a")).await, SwapOutcome::Applied(Revision(1)));
    assert_eq!(engine.append(session, 0, payload("b")).await, SwapOutcome::Conflict);
    assert_eq!(engine.append(session, 1, payload("b")).await, SwapOutcome::Applied(Revision(2)));
    let mut log = engine.follow(1);
    assert_eq!(entries(&mut log).await, [(1, payload("a")), (2, payload("b"))]);
    assert_eq!(engine.append(session, 2, payload("c")).await, SwapOutcome::Applied(Revision(3)));
    let LogEvent::Entry(it) = next(&mut log).await else { panic!() };
    assert_eq!((it.sequence, it.payload), (3, payload("c")));
    assert_eq!(engine.read_log(session, 2).await.unwrap().unwrap().payload, payload("b"));
    assert_eq!(engine.read_log(session, 4).await.unwrap(), None);

    engine.trim_log(session, 3).await.unwrap();
    let state = engine.log_state(session).await.unwrap();
    assert_eq!((state.first, state.last), (3, 3));
    assert_eq!(engine.read_log(session, 2).await.unwrap(), None);
    // From a sequence that is gone: the session tells, and nothing follows.
    let mut late = engine.follow(2);
    let LogEvent::Session { log, .. } = next(&mut late).await else { panic!() };
    assert_eq!(log.first, 3);
    assert_eq!(late.recv().await, None);
    engine.trim_log(session, 4).await.unwrap();
    let state = engine.log_state(session).await.unwrap();
    assert_eq!((state.first, state.last), (4, 3));
    assert_eq!(engine.append(session, 3, payload("d")).await, SwapOutcome::Applied(Revision(4)));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_reach_subscribers_of_their_first_parts() {
    let servers = servers(1);
    let (engine, session) = started(&servers).await;
    let (other, _) = started(&servers).await;
    let mut messages = other.subscribe(key("yield.7"));
    let (subject, payload) = (key("yield.7.now"), Bytes::from_static(b"please"));
    // A subscription begins some time after the call.
    let message = loop {
        engine.publish(session.number, &key("yield.8"), payload.clone()).await.unwrap();
        engine.publish(session.number, &subject, payload.clone()).await.unwrap();
        tokio::task::yield_now().await;
        if let Ok(it) = messages.try_recv() {
            break it;
        }
    };
    assert_eq!(message, Message { subject, payload });
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_stored_replaced_and_removed() {
    let servers = servers(1);
    let (engine, session) = started(&servers).await;
    let session = session.number;
    let read = async |name: &str| {
        let mut object = engine.object(session, name).await.unwrap()?;
        let mut all = Vec::new();
        object.read_to_end(&mut all).await.unwrap();
        Some(all)
    };
    assert_eq!(read("logo/1").await, None);
    let large: Vec<u8> = (0..3_000_000_u32).map(|it| (it % 251) as u8).collect();
    engine.put_object(session, "logo/1", &mut &large[..]).await.unwrap();
    assert!(read("logo/1").await.is_some_and(|it| it == large));
    engine.put_object(session, "logo/1", &mut &b"small"[..]).await.unwrap();
    assert_eq!(read("logo/1").await.as_deref(), Some(&b"small"[..]));
    let objects = engine.objects(session).await.unwrap();
    assert_eq!(objects.iter().map(|it| (it.name.as_str(), it.bytes)).collect::<Vec<_>>(), [("logo/1", 5)]);
    engine.remove_object(session, "logo/1").await.unwrap();
    engine.remove_object(session, "logo/1").await.unwrap();
    assert_eq!(read("logo/1").await, None);

    // An upload that is cut off leaves parts, which can be found and removed; complete objects stay.
    engine.put_object(session, "logo/2", &mut &large[..]).await.unwrap();
    let mut body = AsyncReadExt::chain(&large[..], Endless);
    let upload = engine.put_object(session, "logo/3", &mut body);
    let cut_off = async {
        loop {
            if let [_] = &engine.unfinished_uploads(session).await.unwrap()[..] {
                break;
            }
        }
    };
    tokio::select! {
        _ = upload => panic!("the body has no end"),
        () = cut_off => {}
    }
    let unfinished = engine.unfinished_uploads(session).await.unwrap();
    engine.remove_upload(session, &unfinished[0]).await.unwrap();
    assert_eq!(engine.unfinished_uploads(session).await.unwrap(), Vec::<String>::new());
    assert!(read("logo/2").await.is_some_and(|it| it == large));
    assert_eq!(read("logo/3").await, None);
}

/// A body that never goes on.
struct Endless;

impl tokio::io::AsyncRead for Endless {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
        _buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Pending
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_restarts_keeps_its_records_and_does_not_count_as_a_restart_of_the_engine() {
    let mut servers = servers(1);
    let (engine, session) = started(&servers).await;
    let key = key("member.1");
    let SwapOutcome::Applied(revision) = engine.swap(session.number, &key, Revision(0), bytes("a")).await
    else {
        panic!()
    };
    let mut events = engine.watch(None);
    records(&mut events).await;
    servers.kill(0);
    servers.restart(0);
    let (next, existing) = records(&mut events).await;
    assert!(next.number > session.number);
    assert_eq!(next.n_restarts, 0);
    assert_eq!(existing, [("member.1".to_owned(), revision.0, bytes("a"))]);
    // A request of the old session is not sent.
    assert_eq!(engine.swap(session.number, &key, revision, bytes("b")).await, SwapOutcome::Unknown);
    assert_eq!(engine.read(session.number, &key).await, Err(EngineError::SessionEnded));
    assert_eq!(engine.read(next.number, &key).await.unwrap().value, bytes("a"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_lost_its_data_is_a_restart_of_the_engine() {
    let mut servers = servers(1);
    let (engine, session) = started(&servers).await;
    engine.swap(session.number, &key("member.1"), Revision(0), bytes("a")).await;
    let mut events = engine.watch(None);
    records(&mut events).await;
    servers.kill(0);
    servers.remove_data(0);
    servers.restart(0);
    let (next, existing) = records(&mut events).await;
    assert_eq!(next.n_restarts, 1, "reported before the first record");
    assert!(existing.is_empty());
    assert_eq!(session_after(&engine, 1).await.n_restarts, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_gives_unknown_outcomes_and_the_write_may_be_applied_later() {
    let servers = servers(1);
    let (engine, session) = started(&servers).await;
    let key = key("pool.group-1");
    let SwapOutcome::Applied(first) = engine.swap(session.number, &key, Revision(0), bytes("a")).await else {
        panic!()
    };
    servers.freeze(0);
    assert_eq!(engine.swap(session.number, &key, first, bytes("late")).await, SwapOutcome::Unknown);
    servers.thaw(0);
    let session = session_after(&engine, 0).await.number;
    let mut events = engine.watch(Some(key.clone()));
    let mut seen = records(&mut events).await.1;
    while seen.last().and_then(|it| it.2.clone()) != bytes("late") {
        if let WatchEvent::Record(it) = next(&mut events).await {
            seen.push((it.key.as_str().to_owned(), it.revision.0, it.value));
        }
    }
    assert_eq!(engine.swap(session, &key, first, bytes("b")).await, SwapOutcome::Conflict);
    write_surely(&engine, &key, "b").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_logs_in_with_its_key() {
    let key = nkeys::KeyPair::new_user();
    let (seed, public) = (key.seed().unwrap(), key.public_key());
    let more = format!("authorization {{ users: [{{ nkey: {public} }}] }}");
    let servers = NatsServers::start_with(&program(), 1, &more);
    let options = NatsOptions { login: NatsLogin::from_seed(&seed).unwrap(), ..servers.options() };
    let engine = NatsEngine::start(options);
    session_after(&engine, 0).await;
}
