//! Tests of trials, and of the slots and sources they use.

use media::error::Cause;
use media::testing::{Behaviour, Break, Play, TsSource};

use super::*;
use crate::testing::{Scenario, channel, limited, settings, stream};

/// A request with a profile of this delivery, for the first stream of scenario `limited(1, "a", 1, 1)`.
fn request(delivery: Delivery) -> TrialRequest {
    let mut stream = stream_at(SourceUrl::new("http://tv:80/a"));
    (stream.id, stream.account) = (StreamId(1), AccountId(1));
    let profile = AccountProfile::default_of(ProfileId(1), "default", 1);
    let account = Account::new(AccountId(1), "account 1", PlaylistLocation::None, profile, 0);
    TrialRequest {
        profile: Arc::new(StreamProfile::from_delivery(delivery)),
        source: TrialSource::Stream {
            stream: Arc::new(stream),
            account: Arc::new(account),
            refresh: None,
            members: None,
        },
        reading: Duration::from_secs(5),
    }
}

fn request_for(path: &str) -> TrialRequest {
    let source = TrialSource::Url(SourceUrl::new(format!("http://tv:80/{path}")));
    TrialRequest { source, ..request(Delivery::Proxy) }
}

async fn one_slot() -> Scenario {
    Scenario::new(settings(), [&[limited(1, "a", 1, 1)]]).await
}

/// Waits until the provider has this number of connections.
async fn has_open(scenario: &Scenario, n: usize) {
    while scenario.provider.n_open() != n {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_trial_reports_its_result_and_leaves_nothing() {
    let scenario = one_slot().await;
    let trial = scenario.system.trials().run(request(Delivery::Proxy)).await.expect("it is tried");
    assert_eq!((trial.delivery, &trial.outcome), (Delivery::Proxy, &TrialOutcome::Played));
    assert_eq!(trial.account, Some(("account 1".to_owned(), ProfileId(1))));
    assert_eq!(trial.opened.map(|it| it.place), Some("tv:80".to_owned()));
    let sample = trial.sample;
    assert_eq!(
        (sample.video, sample.audio.as_slice(), sample.n_programmes),
        (Some("H.264"), &["AAC"][..], 1)
    );
    assert_eq!(sample.took, Duration::from_secs(5));
    let programme = sample.programme.expect("a clock").as_secs_f64();
    assert!((4.5..6.0).contains(&programme) && sample.bytes > 0, "{programme} s");
    assert!(scenario.event_names().is_empty(), "nobody watched");
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_trial_at_a_full_account_is_refused_with_its_name_and_the_viewer_watches_on() {
    let scenario = one_slot().await;
    let mut viewer = scenario.watch(channel(1)).await;
    match scenario.system.trials().run(request(Delivery::Proxy)).await {
        Err(TrialRefusal::Full(full)) => assert_eq!(full.account, "account 1"),
        other => panic!("expected a refusal, got {other:?}"),
    }
    assert_eq!(scenario.provider.peak(), 1);
    viewer.sees("a").await;
    // An address without an account needs no slot.
    let trial = scenario.system.trials().run(request_for("a")).await.expect("it is tried");
    assert_eq!((trial.outcome, trial.account), (TrialOutcome::Played, None));
    drop(viewer);
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn an_unwatched_channel_makes_room_for_a_trial() {
    let scenario = one_slot().await;
    drop(scenario.watch(channel(1)).await);
    let trial = scenario.system.trials().run(request(Delivery::Proxy)).await.expect("it is tried");
    assert_eq!((trial.outcome, scenario.provider.peak()), (TrialOutcome::Played, 1));
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_viewer_who_needs_the_slot_of_a_trial_gets_it() {
    let scenario = one_slot().await;
    let trials = scenario.system.trials();
    let trial = trials.run(request(Delivery::Proxy));
    let viewer = async {
        has_open(&scenario, 1).await;
        scenario.watch(channel(1)).await
    };
    let (trial, mut viewer) = tokio::join!(trial, viewer);
    assert_eq!(trial.expect("it is tried").outcome, TrialOutcome::Yielded);
    viewer.sees("a").await;
    assert_eq!(scenario.provider.peak(), 1);
    drop(viewer);
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn too_many_simultaneous_trials_are_refused() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let trials = scenario.system.trials();
    let third = async {
        has_open(&scenario, TRIALS_MAX).await;
        trials.run(request_for("a")).await
    };
    let (one, two, third) = tokio::join!(trials.run(request_for("a")), trials.run(request_for("a")), third);
    assert_eq!((one.map(|it| it.outcome), third), (Ok(TrialOutcome::Played), Err(TrialRefusal::Busy)));
    assert!(two.is_ok());
    assert!(trials.run(request_for("a")).await.is_ok(), "there is room again");
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_trial_ends_with_its_caller() {
    let scenario = one_slot().await;
    let trials = scenario.system.trials();
    for is_opening in [true, false] {
        scenario.provider.set("/a", if is_opening { Behaviour::NoAnswer } else { Behaviour::play("a") });
        let asker = tokio::select! {
            it = trials.run(request(Delivery::Proxy)) => Some(it),
            () = has_open(&scenario, 1) => None,
        };
        assert!(asker.is_none(), "{asker:?}");
        scenario.is_quiet().await;
    }
    assert!(trials.run(request(Delivery::Proxy)).await.is_ok(), "its place is free");
}

#[tokio::test(start_paused = true)]
async fn a_system_that_stops_ends_its_trials_and_their_sources() {
    let scenario = one_slot().await;
    let trials = scenario.system.trials();
    let stop = async {
        has_open(&scenario, 1).await;
        assert!(scenario.system.stop().await, "it ends cleanly");
        assert_eq!(scenario.provider.n_open(), 0);
    };
    let (trial, ()) = tokio::join!(trials.run(request(Delivery::Proxy)), stop);
    assert_eq!(trial, Err(TrialRefusal::Stopping));
    assert_eq!(trials.run(request_for("a")).await, Err(TrialRefusal::Stopping));
}

#[tokio::test(start_paused = true)]
async fn a_failed_source_is_reported_with_its_cause() {
    let scenario = one_slot().await;
    let check = async |behaviour, has_begun: bool, expected: Cause| {
        scenario.provider.set("/a", behaviour);
        let longer = TrialRequest { reading: Duration::from_secs(60), ..request(Delivery::Proxy) };
        let trial = scenario.system.trials().run(longer).await.expect("it is tried");
        assert_eq!(trial.outcome, TrialOutcome::Lost(expected.into()));
        assert_eq!(trial.opened.is_some(), has_begun);
        scenario.is_quiet().await;
    };
    check(Behaviour::Status(404), false, Cause::Status(404)).await;
    check(Behaviour::NoAnswer, false, Cause::FirstPacketTimeout).await;
    for (how, cause) in
        [(Break::End, Cause::Ended), (Break::Silence, Cause::Stall), (Break::Nulls, Cause::Stall)]
    {
        let play = Play { after: Some((2_000, how)), ..Play::new(TsSource::new("a")) };
        check(Behaviour::Play(play), true, cause).await;
    }
}
