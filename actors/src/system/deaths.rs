//! Failures of actors at critical moments, with paused time.

use std::time::Duration;

use domain::event::EventBody;
use domain::settings::Settings;
use media::testing::{Behaviour, Play, TsSource};
use tokio::time::{Instant, sleep, timeout};

use super::root::{IMMEDIATE_RESTARTS_MAX, STABLE_AFTER};
use super::*;
use crate::channel::WatchReply;
use crate::plans::Target;
use crate::testing::{Scenario, channel, limited, settings, stream};
use crate::timeline::RunEntryKind;

const SECOND: Duration = Duration::from_secs(1);

/// Runs everything that needs no time.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

/// Waits for the successor of `before`.
async fn successor(system: &System, who: SystemActor, before: u64) -> u64 {
    loop {
        match system.life(who) {
            Some(now) if now != before => return now,
            _ => tokio::task::yield_now().await,
        }
    }
}

/// Possible defect: an actor that fails because of the data it reads at its start is restarted immediately, forever.
#[tokio::test(start_paused = true)]
async fn an_actor_that_fails_at_every_start_is_restarted_once_a_second() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let mut life = scenario.system.life(SystemActor::Events).unwrap();
    let began = Instant::now();
    for _ in 0..IMMEDIATE_RESTARTS_MAX {
        scenario.system.kill(SystemActor::Events);
        life = successor(&scenario.system, SystemActor::Events, life).await;
    }
    assert!(began.elapsed() < SECOND / 10, "the first are followed at once");
    for _ in 0..5 {
        let before = Instant::now();
        scenario.system.kill(SystemActor::Events);
        settle().await;
        assert_eq!(scenario.system.life(SystemActor::Events), None);
        sleep(tasks::RESPAWN_DELAY).await;
        life = successor(&scenario.system, SystemActor::Events, life).await;
        assert!(before.elapsed() >= tasks::RESPAWN_DELAY);
    }
    sleep(2 * STABLE_AFTER).await;
    let before = Instant::now();
    scenario.system.kill(SystemActor::Events);
    successor(&scenario.system, SystemActor::Events, life).await;
    assert!(before.elapsed() < SECOND / 10, "it had lived");
}

#[tokio::test(start_paused = true)]
async fn a_restarted_bandwidth_actor_continues_to_measure() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a"), stream(2, "b")], &[stream(3, "c")]]).await;
    scenario.provider.set("/a", Behaviour::Play(Play { speed: 0.7, ..Play::new(TsSource::new("a")) }));
    let mut viewer = scenario.watch(channel(1)).await;
    let (_watch, connection) = scenario.ask_as(channel(2), None, "phone").await;
    connection.meter.blocked(Instant::now());
    scenario.system.kill(SystemActor::Bandwidth);
    timeout(120 * SECOND, viewer.sees("b")).await.expect("the slow source is left");
    timeout(60 * SECOND, connection.cancel.cancelled()).await.expect("the client that stands still is ended");
}

/// Observed defect: a new switchboard did not know of channels whose sockets were closing, and the provider saw a
/// second socket for the same channel.
#[tokio::test(start_paused = true)]
async fn an_ending_channel_never_has_two_sockets_when_the_switchboard_dies() {
    let now = Settings { channel_shutdown_delay: Duration::ZERO, ..settings() };
    for pause_ms in [0, 1, 2, 5, 20, 100, 400] {
        let scenario = Scenario::new(now.clone(), [&[stream(1, "a")]]).await;
        scenario.provider.set_stubborn(true);
        let mut viewer = scenario.watch(channel(1)).await;
        viewer.sees("a").await;
        drop(viewer);
        sleep(Duration::from_millis(pause_ms)).await;
        scenario.system.kill(SystemActor::Switchboard);
        settle().await;
        // A channel that is ending may refuse; the next request succeeds.
        let mut viewer = loop {
            match scenario.ask(channel(1)).await {
                WatchReply::Tail { tail, .. } => break crate::testing::TestViewer { tail },
                WatchReply::Refused(_) => sleep(SECOND / 10).await,
                other => panic!("{other:?}"),
            }
        };
        viewer.sees("a").await;
        assert_eq!(scenario.provider.peak(), 1, "killed after {pause_ms} ms");
        drop(viewer);
        scenario.is_quiet().await;
    }
}

/// Possible defect: a channel ended between the last message to the old switchboard and the first to the new one, or
/// was started under a parent that had just died, and could never be watched again.
#[tokio::test(start_paused = true)]
async fn no_channel_is_lost_when_actors_die_together() {
    let pairs = [
        [SystemActor::Switchboard, SystemActor::Channels],
        [SystemActor::Channels, SystemActor::Switchboard],
        [SystemActor::Slots, SystemActor::Switchboard],
        [SystemActor::Channels, SystemActor::Slots],
    ];
    for pair in pairs {
        for n_yields in 0..12 {
            let scenario =
                Scenario::new(settings(), [&[limited(1, "a", 1, 1)], &[limited(2, "b", 1, 2)]]).await;
            let mut viewer = scenario.watch(channel(1)).await;
            viewer.sees("a").await;
            scenario.system.kill(pair[0]);
            for _ in 0..n_yields {
                tokio::task::yield_now().await;
            }
            scenario.system.kill_channel(channel(1));
            scenario.system.kill(pair[1]);
            // Requests both during and after the failure.
            let early = timeout(60 * SECOND, scenario.ask(channel(2))).await.expect("an answer");
            drop((early, viewer));
            scenario.is_quiet().await;
            for (number, name) in [(1, "a"), (2, "b")] {
                let watching = async { scenario.watch(channel(number)).await.sees(name).await };
                let watched = timeout(60 * SECOND, watching).await;
                assert!(watched.is_ok(), "{pair:?} after {n_yields}: {name} is lost");
            }
            assert!(scenario.provider.peak() <= 2);
        }
    }
}

/// Observed defect: the events of a started channel or a connected client had no matching end events.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_dead_channel_and_its_clients_is_reported() {
    for pump in [true, false] {
        let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
        let (mut viewer, second) = (scenario.watch(channel(1)).await, scenario.watch(channel(1)).await);
        viewer.sees("a").await;
        match pump {
            true => scenario.system.kill_pump(channel(1)),
            false => scenario.system.kill_channel(channel(1)),
        }
        viewer.ends().await;
        drop((viewer, second));
        scenario.is_quiet().await;
        settle().await;
        let names = scenario.event_names();
        let n = |name: &str| names.iter().filter(|it| **it == name).count();
        assert_eq!((n("client_connect"), n("client_disconnect")), (2, 2), "{names:?}");
        assert_eq!((n("channel_start"), n("channel_stop")), (1, 1), "{names:?}");
        let reason = scenario.system.events().recent().iter().find_map(|it| match &it.body {
            EventBody::ChannelStop { reason, .. } => Some(reason.clone()),
            _ => None,
        });
        assert_eq!(reason.as_deref(), Some("the channel failed"));
        let Target::Channel(uuid) = channel(1) else { unreachable!() };
        let runs = scenario.system.switchboard().timeline(uuid);
        assert!(runs[0].ended_at.is_some());
        let last = runs[0].entries.last().map(|it| (it.kind, it.cause));
        assert_eq!(last, Some((RunEntryKind::Ended, Some("failed"))));
    }
}

/// Possible defect: the message to end everything was lost, and viewers were cut off after a wait of five seconds.
#[tokio::test(start_paused = true)]
async fn a_system_stops_cleanly_while_its_switchboard_is_dead() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    while scenario.system.life(SystemActor::Switchboard).is_some() {
        scenario.system.kill(SystemActor::Switchboard);
        settle().await;
    }
    let farewell = async {
        assert_eq!(viewer.ends().await, EndReason::Stopped);
        drop(viewer);
    };
    let (is_clean, ()) = tokio::join!(scenario.system.stop(), farewell);
    assert!(is_clean);
}
