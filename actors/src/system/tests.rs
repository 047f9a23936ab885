//! Tests of the whole system: failures are contained or restarted, and nothing is left at the end.

use std::time::Duration;

use media::ring::EndReason;
use media::testing::{Behaviour, Break, Play, TsSource};
use proptest::prelude::*;
use tokio::time::sleep;

use super::*;
use crate::channel::{SwitchTo, WatchReply};
use crate::plans::Target;
use crate::testing::{Scenario, TestViewer, channel, limited, settings, stream};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn viewers_do_not_notice_the_failure_of_deciding_actors() {
    for who in [SystemActor::Events, SystemActor::Slots, SystemActor::Bandwidth, SystemActor::Switchboard] {
        let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1), stream(2, "b")]]).await;
        let mut viewer = scenario.watch(channel(1)).await;
        viewer.sees("a").await;
        scenario.system.kill(who);
        sleep(SECOND).await;
        viewer.sees("a").await;
        // Everything still works: a second viewer joins, the source fails over, the leases are returned.
        let mut second = scenario.watch(channel(1)).await;
        second.sees("a").await;
        assert_eq!(scenario.provider.n_accepted(), 1, "{who:?}: the second viewer opened a second upstream");
        scenario.provider.set("/a", Behaviour::Status(404));
        scenario.provider.break_now("/a", Break::Reset);
        viewer.sees("b").await;
        second.sees("b").await;
        drop((viewer, second));
        scenario.is_quiet().await;
    }
}

/// The state that must agree with reality is not in the actor: a restarted slots actor grants no lease twice.
#[tokio::test(start_paused = true)]
async fn a_restarted_slots_actor_knows_every_lease() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1)], &[limited(2, "b", 1, 1)]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    scenario.system.kill(SystemActor::Slots);
    sleep(SECOND).await;
    assert!(matches!(scenario.ask(channel(2)).await, WatchReply::Refused(_)));
    viewer.sees("a").await;
    assert_eq!(scenario.provider.peak(), 1);
    // It still knows which holder to ask to yield.
    drop(viewer);
    sleep(SECOND).await;
    scenario.watch(channel(2)).await.sees("b").await;
    assert_eq!(scenario.provider.peak(), 1);
}

/// The deadline of the holder covers a request that was lost with the slots actor.
#[tokio::test(start_paused = true)]
async fn a_slot_request_lost_with_the_slots_actor_does_not_block_a_channel() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1)], &[limited(2, "b", 1, 1)]]).await;
    let viewer = scenario.watch(channel(1)).await;
    let asked = scenario.ask(channel(2));
    let kill = async {
        sleep(SECOND).await;
        scenario.system.kill(SystemActor::Slots);
    };
    let (answer, ()) = tokio::join!(asked, kill);
    assert!(matches!(answer, WatchReply::Refused(_)), "{answer:?}");
    drop(viewer);
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_live_channel_that_dies_ends_only_what_it_owns() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1)], &[limited(2, "b", 2, 1)]]).await;
    let (watch, connection) = scenario.ask_as(channel(1), None, "player").await;
    let WatchReply::Tail { tail, .. } = watch else { panic!("{watch:?}") };
    let mut dying = TestViewer { tail };
    dying.sees("a").await;
    let mut other = scenario.watch(channel(2)).await;
    scenario.system.kill_channel(channel(1));
    assert_eq!(dying.ends().await, EndReason::Closed);
    assert!(connection.cancel.is_cancelled());
    other.sees("b").await;
    sleep(SECOND).await;
    let counts = scenario.system.counts();
    assert_eq!((counts.channels, counts.leases, counts.sockets_open), (1, 1, 1));
    // The next join starts a new channel on the only slot.
    scenario.watch(channel(1)).await.sees("a").await;
    assert_eq!(scenario.system.counts().channels, 2);
    drop((dying, other));
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_join_after_the_death_of_a_live_channel_waits_for_its_sockets() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1)]]).await;
    scenario.provider.set_stubborn(true);
    for _ in 0..10 {
        let mut viewer = scenario.watch(channel(1)).await;
        viewer.sees("a").await;
        scenario.system.kill_channel(channel(1));
    }
    assert_eq!(scenario.provider.peak(), 1);
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn live_channels_end_with_their_parent_and_new_ones_start() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    scenario.system.kill(SystemActor::Channels);
    viewer.ends().await;
    sleep(SECOND).await;
    scenario.watch(channel(1)).await.sees("a").await;
    drop(viewer);
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_stopped_system_gives_clients_their_last_chunks_and_leaves_nothing() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")], &[stream(2, "b")]]).await;
    let mut viewers = [scenario.watch(channel(1)).await, scenario.watch(channel(2)).await];
    for (viewer, name) in viewers.iter_mut().zip(["a", "b"]) {
        viewer.sees(name).await;
    }
    let farewells = async {
        for viewer in &mut viewers {
            assert_eq!(viewer.ends().await, EndReason::Stopped);
        }
        drop(viewers);
    };
    let (clean, ()) = tokio::join!(scenario.system.stop(), farewells);
    assert!(clean);
    assert_eq!(scenario.provider.n_open(), 0);
    // All events were delivered.
    let names = scenario.event_names();
    assert_eq!(names.iter().filter(|it| **it == "channel_stop").count(), 2, "{names:?}");
    assert!(matches!(scenario.ask(channel(1)).await, WatchReply::Refused(_)));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_system_ends_what_it_started() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    let Scenario { system, provider, .. } = scenario;
    drop(system);
    viewer.ends().await;
    sleep(2 * SECOND).await;
    assert_eq!(provider.n_open(), 0);
}

#[tokio::test(start_paused = true)]
async fn settings_that_contradict_each_other_change_nothing() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let before = scenario.system.settings();
    let wrong = Settings { stall_timeout: Duration::ZERO, ..settings() };
    assert!(scenario.system.configure(wrong).is_err());
    assert_eq!(scenario.system.settings(), before);
}

/// One step of a random scenario.
#[derive(Clone, Debug)]
enum Step {
    Join { channel: u32 },
    HangUp { channel: u32, after_ms: u64 },
    Leave { which: usize },
    Kick { which: usize },
    Stop { channel: u32 },
    Switch { channel: u32 },
    Break { stream: usize, how: usize },
    Refuse { stream: usize, how: usize },
    Mend { stream: usize },
    Kill { who: usize },
    KillChannel { channel: u32 },
    Delay { ms: u64 },
    Wait { ms: u64 },
}

const STREAMS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn step() -> impl Strategy<Value = Step> {
    let channel = 1u32..4;
    let stream = 0..STREAMS.len();
    prop_oneof![
        8 => channel.clone().prop_map(|channel| Step::Join { channel }),
        3 => (channel.clone(), 0u64..3).prop_map(|(channel, after_ms)| Step::HangUp { channel, after_ms }),
        6 => (0usize..8).prop_map(|which| Step::Leave { which }),
        1 => (0usize..8).prop_map(|which| Step::Kick { which }),
        1 => channel.clone().prop_map(|channel| Step::Stop { channel }),
        2 => channel.clone().prop_map(|channel| Step::Switch { channel }),
        4 => (stream.clone(), 0usize..6).prop_map(|(stream, how)| Step::Break { stream, how }),
        3 => (stream.clone(), 0usize..5).prop_map(|(stream, how)| Step::Refuse { stream, how }),
        3 => stream.prop_map(|stream| Step::Mend { stream }),
        1 => (0usize..CHILDREN.len()).prop_map(|who| Step::Kill { who }),
        1 => channel.prop_map(|channel| Step::KillChannel { channel }),
        1 => (0u64..4000).prop_map(|ms| Step::Delay { ms }),
        8 => (0u64..4000).prop_map(|ms| Step::Wait { ms }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// Holds T-slot.1 and T-life.1: joins, departures, failures, switches, kicks, stops, changed delays and failures of
    /// every actor in any order. The provider never sees more sockets than an account has slots; at the end no channel,
    /// client, lease or socket is left.
    #[test]
    fn a_random_scenario_never_exceeds_a_limit_and_leaves_nothing(steps in prop::collection::vec(step(), 5..60)) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(random_scenario(steps));
    }
}

/// Three channels over five streams of one account with two slots; all channels have stream "a".
async fn random_scenario(steps: Vec<Step>) {
    let on = |id: u32| limited(id, STREAMS[id as usize - 1], 1, 2);
    let scenario =
        Scenario::new(settings(), [&[on(1), on(2)], &[on(1), on(3), on(4)], &[on(5), on(1)]]).await;
    let small = |name: &str| {
        let ts = TsSource { bitrate: 200_000, frame_rate: 5, gop: 5, ..TsSource::new(name) };
        Behaviour::Play(Play::new(ts))
    };
    for name in STREAMS {
        scenario.provider.set(&format!("/{name}"), small(name));
    }
    let switchboard = scenario.system.switchboard();
    let mut viewers: Vec<(Target, u64, JoinHandle<()>)> = Vec::new();
    for step in steps {
        match step {
            Step::Join { channel: number } => {
                let target = channel(number);
                if let WatchReply::Tail { client, mut tail } = scenario.ask(target).await {
                    let reads = tokio::spawn(async move { while tail.chunk().await.is_ok() {} });
                    viewers.push((target, client, reads));
                }
            }
            Step::HangUp { channel: number, after_ms } => {
                // A caller that goes away before, or exactly when, the reply arrives.
                let asked = scenario.ask(channel(number));
                drop(tokio::time::timeout(Duration::from_millis(after_ms), asked).await);
            }
            Step::Leave { which } if which < viewers.len() => viewers.remove(which).2.abort(),
            Step::Kick { which } if which < viewers.len() => {
                let (target, client, reads) = viewers.remove(which);
                // The client may already be gone; the end of the connection drops the tail.
                let _ = switchboard.kick(target, client).await;
                reads.abort();
            }
            Step::Leave { .. } | Step::Kick { .. } => {}
            Step::Stop { channel: number } => drop(switchboard.stop(channel(number)).await),
            Step::Switch { channel: number } => {
                drop(switchboard.switch(channel(number), SwitchTo::Next).await)
            }
            Step::Break { stream, how } => {
                let how = [
                    Break::End,
                    Break::Reset,
                    Break::Silence,
                    Break::Garbage,
                    Break::Nulls,
                    Break::UnknownPids,
                ][how];
                scenario.provider.break_now(&format!("/{}", STREAMS[stream]), how);
            }
            Step::Refuse { stream, how } => {
                let how = [
                    Behaviour::Status(404),
                    Behaviour::Status(403),
                    Behaviour::NoAnswer,
                    Behaviour::Html,
                    Behaviour::Reset,
                ][how]
                    .clone();
                scenario.provider.set(&format!("/{}", STREAMS[stream]), how);
            }
            Step::Mend { stream } => {
                scenario.provider.set(&format!("/{}", STREAMS[stream]), small(STREAMS[stream]));
            }
            Step::Kill { who } => scenario.system.kill(CHILDREN[who]),
            Step::KillChannel { channel: number } => scenario.system.kill_channel(channel(number)),
            Step::Delay { ms } => {
                let channel_shutdown_delay = Duration::from_millis(ms);
                scenario.system.configure(Settings { channel_shutdown_delay, ..settings() }).unwrap();
            }
            Step::Wait { ms } => sleep(Duration::from_millis(ms)).await,
        }
        let counts = scenario.system.counts();
        assert!(counts.leases <= 2, "{} leases on two slots", counts.leases);
    }
    for (_, _, reads) in viewers {
        reads.abort();
    }
    scenario.is_quiet().await;
    // No channel is lost.
    for name in STREAMS {
        scenario.provider.set(&format!("/{name}"), small(name));
    }
    for number in 1..4 {
        scenario.watch(channel(number)).await;
    }
    scenario.is_quiet().await;
    assert!(
        scenario.provider.peak() <= 2,
        "the provider saw {} sockets on two slots",
        scenario.provider.peak()
    );
}

#[tokio::test(start_paused = true)]
async fn the_overview_lists_a_channel_that_does_not_reply() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")], &[stream(2, "b")]]).await;
    let viewers = [scenario.watch(channel(1)).await, scenario.watch(channel(2)).await];
    let (stuck, _unread) = crate::testing::inbox::<channel::Message>().await;
    scenario
        .system
        .state
        .channel_table
        .insert(channel(9), channels::LiveChannel { serial: 900, actor: stuck });
    // The switchboard finds it like any channel that is older than itself.
    scenario.system.kill(SystemActor::Switchboard);
    sleep(SECOND).await;
    let all = scenario.system.switchboard().overview().await.unwrap();
    let shown: Vec<_> = all.iter().map(|it| (it.target, it.status.as_ref().map(|it| it.state))).collect();
    assert_eq!(shown, [(channel(9), None), (channel(1), Some("playing")), (channel(2), Some("playing"))]);
    drop(viewers);
}
