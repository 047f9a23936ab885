//! Live channels whose origin is lost or leaves while their account is full: the viewers of the other nodes wait.

use std::time::Duration;

use bytes::BytesMut;
use media::ring::EndReason;
use media::testing::{Behaviour, TsReader, labels_in};
use tokio::time::{Instant, sleep, timeout};

use super::channel_tests::{Node, SECOND, nodes, nodes_of, part, reads};
use crate::channel::WatchReply;
use crate::testing::{Stream, TestViewer, channel, limited, settings};

/// A node that was lost counts for 20 s, and its connections for 30 s after that.
const SLOT_IS_FREE: Duration = Duration::from_secs(50);
/// Longest time from a free slot to a picture: the pause between two requests, and the start of a source.
const START: Duration = Duration::from_secs(4);

/// Reads until the picture contains this label. Returns how long that took.
async fn until(label: &str, viewer: &mut TestViewer, into: &mut BytesMut) -> Duration {
    let began = Instant::now();
    loop {
        let chunk =
            viewer.tail.chunk().await.unwrap_or_else(|end| panic!("no {label} before the end: {end}"));
        into.extend_from_slice(&chunk);
        if labels_in(&chunk).iter().any(|it| it == label) {
            return began.elapsed();
        }
    }
}

async fn refusal_of(node: &Node, number: u32) -> String {
    match node.scenario.ask(channel(number)).await {
        WatchReply::Refused(refusal) => refusal.to_string(),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn viewers_of_other_nodes_wait_for_the_slot_of_a_killed_origin_and_play_on() {
    let (nodes, [attic, cellar, shed]) = nodes(["attic", "cellar", "shed"], &[limited(1, "a", 1, 1)]).await;
    let provider = attic.scenario.provider.clone();
    let _here = attic.watch().await;
    let (mut one, mut two) = (cellar.watch().await, shed.watch().await);
    let (mut of_one, mut of_two) = (BytesMut::new(), BytesMut::new());
    tokio::join!(reads(&mut one, 3 * SECOND, &mut of_one), reads(&mut two, 3 * SECOND, &mut of_two));
    attic.kill(&nodes);
    provider.set("/a", Behaviour::play("b"));
    let killed = Instant::now();

    // Later viewers of both nodes join the channel that waits.
    tokio::join!(reads(&mut one, 20 * SECOND, &mut of_one), reads(&mut two, 20 * SECOND, &mut of_two));
    let mut later = Vec::new();
    for node in [&cellar, &shed] {
        let WatchReply::Tail { tail, .. } = node.scenario.ask(channel(1)).await else {
            panic!("a viewer of a channel that waits is refused");
        };
        let status = node.scenario.status(channel(1)).await.unwrap();
        assert_eq!(status.clients.len(), 2, "{status:?}");
        later.push(TestViewer { tail });
    }
    let before = (of_one.len(), of_two.len());
    tokio::join!(reads(&mut one, 20 * SECOND, &mut of_one), reads(&mut two, 20 * SECOND, &mut of_two));
    assert!(of_one.len() > before.0 && of_two.len() > before.1, "no filler");
    assert_eq!(provider.n_accepted(), 1, "the slot of the lost node counts");

    tokio::join!(until("b", &mut one, &mut of_one), until("b", &mut two, &mut of_two));
    let took = killed.elapsed();
    assert!((SLOT_IS_FREE - 4 * SECOND..SLOT_IS_FREE + START).contains(&took), "{took:?}");
    let [third, fourth] = &mut later[..] else { unreachable!("one for each node") };
    tokio::join!(third.sees("b"), fourth.sees("b"));
    tokio::join!(reads(&mut one, 3 * SECOND, &mut of_one), reads(&mut two, 3 * SECOND, &mut of_two));
    for bytes in [&of_one, &of_two] {
        assert_eq!(labels_in(bytes), ["a", "b"]);
        TsReader::default().read(bytes, Duration::ZERO).unwrap();
    }
    let parts = [cellar.origin().await.unwrap(), shed.origin().await.unwrap()];
    assert!(parts[0] == parts[1] && ["cellar", "shed"].contains(&&*parts[0]), "{parts:?}");
    assert_eq!((provider.n_accepted(), provider.n_open(), provider.peak()), (2, 1, 1));
}

/// A node that is cut off keeps its connection until its deadline.
#[tokio::test(start_paused = true)]
async fn two_channels_of_a_node_that_is_cut_off_wait_and_the_limit_holds() {
    let streams = [[limited(1, "a", 1, 2)], [limited(2, "b", 1, 2)]];
    let (nodes, [attic, cellar]) = nodes_of(["attic", "cellar"], [&streams[0], &streams[1]]).await;
    let provider = attic.scenario.provider.clone();
    let of_attic = (attic.watch().await, attic.scenario.watch(channel(2)).await);
    let (mut one, mut two) = (cellar.watch().await, cellar.scenario.watch(channel(2)).await);
    let mut bytes = BytesMut::new();
    reads(&mut one, SECOND, &mut bytes).await;
    nodes.network.cut("attic");
    attic.engine.disconnect();
    for (path, label) in [("/a", "c"), ("/b", "d")] {
        provider.set(path, Behaviour::play(label));
    }
    let mut of_two = BytesMut::new();
    let (one_after, two_after) =
        tokio::join!(until("c", &mut one, &mut bytes), until("d", &mut two, &mut of_two));
    assert!(one_after.max(two_after) < SLOT_IS_FREE + START, "{one_after:?} {two_after:?}");
    assert_eq!((provider.n_accepted(), provider.peak()), (4, 2));
    assert_eq!(cellar.part().await.map(|it| it.is_origin), Some(true));
    drop(of_attic);
}

#[tokio::test(start_paused = true)]
async fn viewers_who_wait_in_vain_end_after_the_time_for_gaps_on_all_nodes() {
    // The provider counts a closed connection for longer than viewers wait.
    let release_delay = 120 * SECOND;
    let streams = [Stream { release_delay, ..limited(1, "a", 1, 1) }];
    let (nodes, [attic, cellar, shed]) = nodes(["attic", "cellar", "shed"], &streams).await;
    // Connections from before the start of the cluster may count for this long.
    sleep(release_delay).await;
    let _here = attic.watch().await;
    let (mut one, mut two) = (cellar.watch().await, shed.watch().await);
    let mut bytes = BytesMut::new();
    tokio::join!(reads(&mut one, SECOND, &mut bytes), two.sees("a"));
    attic.kill(&nodes);
    let began = Instant::now();
    let ends = async |viewer: &mut TestViewer| (viewer.ends().await, began.elapsed());
    let ended = tokio::join!(ends(&mut one), ends(&mut two));
    let longest = settings().give_up_after;
    for (reason, elapsed) in [ended.0, ended.1] {
        assert_eq!(reason, EndReason::Silent);
        assert!((longest - SECOND..longest + 4 * SECOND).contains(&elapsed), "{elapsed:?}");
    }
    // A channel that nobody watches is refused at once, as on one node.
    let began = Instant::now();
    let refusal = refusal_of(&cellar, 1).await;
    assert!(refusal.contains("account 1") && began.elapsed() < 6 * SECOND, "{refusal} {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_start_is_refused_quickly_while_viewers_of_another_node_use_the_account() {
    let streams = [[limited(1, "a", 1, 1)], [limited(2, "b", 1, 1)]];
    let (_nodes, [attic, cellar]) = nodes_of(["attic", "cellar"], [&streams[0], &streams[1]]).await;
    let (mut here, mut there) = (attic.watch().await, cellar.watch().await);
    let began = Instant::now();
    let refusal = refusal_of(&cellar, 2).await;
    assert!(began.elapsed() < 4 * SECOND, "{:?}", began.elapsed());
    assert!(refusal.contains("account 1"), "{refusal}");
    let mut bytes = BytesMut::new();
    tokio::join!(reads(&mut here, SECOND, &mut bytes), there.sees("a"));
}

#[tokio::test(start_paused = true)]
async fn viewers_of_an_edge_node_wait_until_another_full_node_gets_the_slot() {
    let (nodes, [attic, cellar, edge]) = nodes(["attic", "cellar", "edge"], &[limited(1, "a", 1, 1)]).await;
    let provider = attic.scenario.provider.clone();
    let mut there = edge.watch().await;
    there.sees("a").await;
    assert_eq!(edge.part().await, Some(part("attic", false, 1)));
    attic.kill(&nodes);
    provider.set("/a", Behaviour::play("b"));
    let mut bytes = BytesMut::new();
    let took = until("b", &mut there, &mut bytes).await;
    assert!(took < SLOT_IS_FREE + START, "{took:?}");
    TsReader::default().read(&bytes, Duration::ZERO).unwrap();
    assert_eq!(cellar.origin().await.as_deref(), Some("cellar"));
    assert_eq!((provider.n_accepted(), provider.peak()), (2, 1));
}

/// Longest time without a picture at the other nodes when the origin hands its only slot over: the hand-over, and the start
/// of a source.
const HAND_OVER: Duration = Duration::from_millis(1_500 + 1_100);

/// Returns how long no picture of the first label comes before one of the second.
async fn gap([before, after]: [&str; 2], viewer: &mut TestViewer) -> Duration {
    let mut last = Instant::now();
    loop {
        let chunk =
            viewer.tail.chunk().await.unwrap_or_else(|end| panic!("no {after} before the end: {end}"));
        let labels = labels_in(&chunk);
        if labels.iter().any(|it| it == after) {
            return last.elapsed();
        }
        if labels.iter().any(|it| it == before) {
            last = Instant::now();
        }
    }
}

// Holds T-clu.2.
#[tokio::test(start_paused = true)]
async fn a_drain_of_a_node_with_the_only_slot_costs_the_viewers_of_other_nodes_at_most_1_5_s() {
    let (_nodes, [attic, cellar]) = nodes(["attic", "cellar"], &[limited(1, "a", 1, 1)]).await;
    let provider = attic.scenario.provider.clone();
    let _here = attic.watch().await;
    let mut there = cellar.watch().await;
    there.sees("a").await;
    provider.set("/a", Behaviour::play("b"));
    attic.drain.set(true);
    let took = gap(["a", "b"], &mut there).await;
    assert!(took <= HAND_OVER, "{took:?}");
    assert_eq!((provider.n_accepted(), provider.peak()), (2, 1));
}

// Holds T-clu.2.
#[tokio::test(start_paused = true)]
async fn a_stop_of_a_node_with_the_only_slot_costs_the_viewers_of_other_nodes_at_most_1_5_s() {
    let (_nodes, [attic, cellar]) = nodes(["attic", "cellar"], &[limited(1, "a", 1, 1)]).await;
    let provider = attic.scenario.provider.clone();
    let _here = attic.watch().await;
    let mut there = cellar.watch().await;
    there.sees("a").await;
    provider.set("/a", Behaviour::play("b"));
    let stopping = async {
        attic.drain.stop();
        attic.scenario.system.shared_channels().unwrap().moved(4 * SECOND).await;
        attic.scenario.system.stop().await;
    };
    let ((), took) = tokio::join!(stopping, gap(["a", "b"], &mut there));
    assert!(took <= HAND_OVER, "{took:?}");
    assert_eq!((provider.n_accepted(), provider.peak()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_drained_node_passes_the_only_slot_of_an_account_on_and_all_viewers_stay() {
    let (_nodes, [attic, cellar]) = nodes(["attic", "cellar"], &[limited(1, "a", 1, 1)]).await;
    let provider = attic.scenario.provider.clone();
    let (mut here, mut there) = (attic.watch().await, cellar.watch().await);
    let (mut of_here, mut of_there) = (BytesMut::new(), BytesMut::new());
    tokio::join!(reads(&mut here, SECOND, &mut of_here), reads(&mut there, SECOND, &mut of_there));
    provider.set("/a", Behaviour::play("b"));
    attic.drain.set(true);
    let (here_after, there_after) =
        tokio::join!(until("b", &mut here, &mut of_here), until("b", &mut there, &mut of_there));
    assert!(here_after.max(there_after) < 8 * SECOND, "{here_after:?} {there_after:?}");
    tokio::join!(reads(&mut here, SECOND, &mut of_here), reads(&mut there, SECOND, &mut of_there));
    for bytes in [&of_here, &of_there] {
        TsReader::default().read(bytes, Duration::ZERO).unwrap();
    }
    assert_eq!(attic.part().await, Some(part("cellar", false, 2)));
    assert_eq!((provider.n_accepted(), provider.peak()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn the_viewers_of_other_nodes_stay_when_a_node_with_the_only_slot_stops() {
    let streams = [Stream { release_delay: 2 * SECOND, ..limited(1, "a", 1, 1) }];
    let (_nodes, [attic, cellar]) = nodes(["attic", "cellar"], &streams).await;
    let provider = attic.scenario.provider.clone();
    let _here = attic.watch().await;
    let mut there = cellar.watch().await;
    let mut bytes = BytesMut::new();
    reads(&mut there, SECOND, &mut bytes).await;
    provider.set("/a", Behaviour::play("b"));
    let stopping = async {
        attic.drain.stop();
        attic.scenario.system.shared_channels().unwrap().moved(4 * SECOND).await;
        attic.scenario.system.stop().await;
    };
    let shown = timeout(12 * SECOND, until("b", &mut there, &mut bytes));
    let (_, shown) = tokio::join!(stopping, shown);
    shown.expect("it plays on");
    TsReader::default().read(&bytes, Duration::ZERO).unwrap();
    assert_eq!((provider.n_accepted(), provider.peak()), (2, 1));
}
