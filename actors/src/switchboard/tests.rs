//! Tests of the switchboard.

use std::time::Duration;

use domain::settings::Settings;
use media::StillError;
use media::testing::labels_in;
use tokio::time::sleep;

use super::NoStill;
use crate::channel::{WatchRefusal, WatchReply};
use crate::testing::{Scenario, TestViewer, channel, settings, stream};

const SECOND: Duration = Duration::from_secs(1);

/// Holds T-life.9.
#[tokio::test(start_paused = true)]
async fn a_thousand_first_clients_at_once_give_one_upstream() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let mut joins = Vec::new();
    for _ in 0..1000 {
        joins.push(scenario.ask(channel(1)));
    }
    let mut viewings = Vec::new();
    for watch in futures(joins).await {
        let WatchReply::Tail { tail, .. } = watch else { panic!("{watch:?}") };
        viewings.push(TestViewer { tail });
    }
    for viewing in &mut viewings {
        viewing.sees("a").await;
    }
    assert_eq!((scenario.provider.n_accepted(), scenario.system.counts().clients), (1, 1000));
    drop(viewings);
    scenario.is_quiet().await;
}

/// Holds T-life.3: a join during the end of a channel succeeds, and the provider never sees two sockets for one
/// channel.
#[tokio::test(start_paused = true)]
async fn a_join_while_a_channel_ends_gets_the_next_one() {
    let now = Settings { channel_shutdown_delay: Duration::ZERO, ..settings() };
    let scenario = Scenario::new(now, [&[stream(1, "a")]]).await;
    scenario.provider.set_stubborn(true);
    for pause_ms in (0..600).step_by(7) {
        let mut viewer = scenario.watch(channel(1)).await;
        viewer.sees("a").await;
        drop(viewer);
        sleep(Duration::from_millis(pause_ms)).await;
    }
    assert_eq!(scenario.provider.peak(), 1);
    scenario.is_quiet().await;
}

/// Holds T-life.7 in this crate.
#[tokio::test(start_paused = true)]
async fn two_hundred_channel_changes_leave_one_live_channel() {
    let now = Settings { channel_shutdown_delay: Duration::ZERO, ..settings() };
    let scenario = Scenario::new(now, [&[stream(1, "a")], &[stream(2, "b")], &[stream(3, "c")]]).await;
    let mut viewer = None;
    for hop in 0..200 {
        viewer = Some(scenario.watch(channel(1 + hop % 3)).await);
    }
    sleep(SECOND).await;
    let counts = scenario.system.counts();
    assert_eq!((counts.channels, counts.clients, counts.leases, counts.sockets_open), (1, 1, 1, 1));
    drop(viewer);
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_picture_of_a_channel_opens_nothing_and_counts_as_no_viewer() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let (switchboard, uuid) = (scenario.system.switchboard(), channel(1).uuid());
    assert_eq!(switchboard.still(uuid).await, Ok(None));
    assert_eq!(scenario.provider.n_accepted(), 0);
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    let still = loop {
        match switchboard.still(uuid).await {
            Ok(Some(still)) => break still,
            Err(NoStill::Picture(StillError::NoKeyFrame)) => viewer.sees("a").await,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(labels_in(&still.content), ["a"]);
    assert_eq!(switchboard.still(channel(2).uuid()).await, Ok(None));
    let counts = scenario.system.counts();
    assert_eq!((counts.clients, counts.leases, scenario.provider.n_accepted()), (1, 1, 1));
    drop(viewer);
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_channel_without_streams_and_an_unknown_one_are_refused() {
    let scenario = Scenario::new(settings(), [&[]]).await;
    assert!(matches!(scenario.ask(channel(1)).await, WatchReply::Refused(WatchRefusal::NoStreams)));
    assert!(matches!(scenario.ask(channel(99)).await, WatchReply::Refused(WatchRefusal::NotFound)));
    scenario.is_quiet().await;
}

/// Polls all futures together, so that they start in the same turn.
async fn futures<F: Future>(all: Vec<F>) -> Vec<F::Output> {
    let mut all: Vec<_> = all.into_iter().map(Box::pin).map(Some).collect();
    let mut done: Vec<Option<F::Output>> = all.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, done) in all.iter_mut().zip(&mut done) {
            if let Some(it) = future
                && let std::task::Poll::Ready(output) = it.as_mut().poll(cx)
            {
                *done = Some(output);
                *future = None;
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
