//! The engine with three servers, of which one fails.

use std::time::Duration;

use cluster::testing::NatsServers;
use cluster::{Engine, Revision, SwapOutcome};
use tokio::time::sleep;

use super::support::{bytes, key, records, servers, session_after, started, write_surely};

/// Returns the leader, as a server other than it tells.
async fn leader(servers: &NatsServers) -> usize {
    loop {
        for at in 0..3 {
            if let Some(leader) = servers.leader(at).await {
                return leader;
            }
        }
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_write_is_lost_when_the_leader_is_killed() {
    let mut servers = servers(3);
    let (engine, session) = started(&servers).await;
    let (other, _) = started(&servers).await;
    let mut acknowledged = Vec::new();
    for at in 0..20 {
        let key = key(&format!("channel.{at}"));
        let SwapOutcome::Applied(revision) = engine.swap(session.number, &key, Revision(0), bytes("a")).await
        else {
            continue;
        };
        acknowledged.push((key.as_str().to_owned(), revision.0, bytes("a")));
    }
    assert!(acknowledged.len() > 10, "{acknowledged:?}");
    let killed = leader(&servers).await;
    servers.kill(killed);
    let key = key("job.writer");
    let revision = write_surely(&engine, &key, "after").await;
    for engine in [&engine, &other] {
        let session = session_after(engine, 0).await;
        assert_eq!(session.n_restarts, 0, "the engine has lost nothing");
        let existing = records(&mut engine.watch(None)).await.1;
        for it in &acknowledged {
            assert!(existing.contains(it), "{it:?} is missing in {existing:?}");
        }
        assert!(existing.contains(&(key.as_str().to_owned(), revision.0, bytes("after"))));
    }
    // The killed server returns and follows.
    servers.restart(killed);
    let (third, _) = started(&servers).await;
    write_surely(&third, &key, "again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_finds_another_server_when_its_own_is_cut_off() {
    let servers = servers(3);
    let (engine, _) = started(&servers).await;
    let key = key("member.1");
    write_surely(&engine, &key, "a").await;
    // Frozen one after the other, each until writes work again: one of them is the server of this node, one leads.
    for at in 0..3 {
        servers.freeze(at);
        write_surely(&engine, &key, if at % 2 == 0 { "b" } else { "c" }).await;
        servers.thaw(at);
    }
    assert_eq!(session_after(&engine, 0).await.n_restarts, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_nothing_is_written_and_afterwards_everything_is_there() {
    let mut servers = servers(3);
    let (engine, _) = started(&servers).await;
    let key = key("job.importer");
    let before = write_surely(&engine, &key, "a").await;
    let leader = leader(&servers).await;
    let lost = [(leader + 1) % 3, (leader + 2) % 3];
    for at in lost {
        servers.kill(at);
    }
    // Whatever the session, no swap succeeds.
    for _ in 0..3 {
        let session = engine.state().borrow().session().map_or(1, |it| it.number);
        assert_ne!(
            engine.swap(session, &key, Revision(before.0 + 1), bytes("x")).await,
            SwapOutcome::Applied(before)
        );
        assert_eq!(engine.swap(session, &key, before, bytes("b")).await, SwapOutcome::Unknown);
    }
    for at in lost {
        servers.restart(at);
    }
    let after = write_surely(&engine, &key, "c").await;
    assert!(after > before);
    assert_eq!(session_after(&engine, 0).await.n_restarts, 0);
}
