//! Tests of a live channel, over an in-memory provider with paused time.

mod zaps;

use std::time::Duration;

use domain::event::EventBody;
use domain::ids::StreamId;
use domain::settings::Settings;
use domain::stream_profile::Delivery;
use media::ring::EndReason;
use media::testing::{Behaviour, Break, Play, Reachability, TsSource};
use ractor::ActorStatus;
use tokio::time::{Instant, sleep};

use super::*;
use crate::plans::Target;
use crate::slots::LeaseTable;
use crate::slots::revocable::RevocableTable;
use crate::switchboard::StopOutcome;
use crate::testing::{Scenario, Stream, TestViewer, channel, limited, settings, stream};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_viewer_keeps_watching_when_the_first_stream_stops() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a"), stream(2, "b")]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    scenario.provider.set("/a", Behaviour::Status(404));
    scenario.provider.break_now("/a", Break::Reset);
    viewer.sees("b").await;
    let status = scenario.status(channel(1)).await.unwrap();
    assert_eq!((status.state, status.playing, status.n_failovers), ("playing", Some(StreamId(2)), 1));
    assert_eq!(scenario.event_names(), ["client_connect", "channel_start", "channel_failover"]);
    let failover = scenario.system.events().recent().pop().unwrap();
    let EventBody::ChannelFailover { from, to, .. } = &failover.body else { panic!("{failover:?}") };
    assert_eq!((from.name.as_str(), to.name.as_str()), ("a", "b"));
}

/// Holds T-fo.3: without a free slot, the gap of a silent source is the stall time plus the start of the next source,
/// nothing more.
#[tokio::test(start_paused = true)]
async fn without_a_free_slot_a_silent_source_is_left_after_the_stall_time() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1), limited(2, "b", 1, 1)]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    scenario.provider.break_now("/a", Break::Silence);
    let silent_at = Instant::now();
    viewer.sees("b").await;
    let gap = silent_at.elapsed();
    let stall = settings().stall_timeout;
    assert!(gap >= stall && gap < stall + 2 * SECOND, "{gap:?}");
    let counts = scenario.system.counts();
    assert_eq!((counts.speculative_openings, counts.losses()), (0, 1));
}

/// Holds T-fo.3 where a slot is free.
#[tokio::test(start_paused = true)]
async fn a_silent_source_costs_at_most_two_and_a_half_seconds_where_a_slot_is_free() {
    use crate::timeline::RunEntryKind::*;
    // On one account, and on two without a limit.
    for streams in [[limited(1, "a", 1, 2), limited(2, "b", 1, 2)], [stream(1, "a"), stream(2, "b")]] {
        let scenario = Scenario::new(settings(), [&streams]).await;
        let mut viewer = scenario.watch(channel(1)).await;
        viewer.sees("a").await;
        scenario.provider.break_now("/a", Break::Silence);
        let silent_at = Instant::now();
        viewer.sees("b").await;
        let gap = silent_at.elapsed();
        assert!(gap <= Duration::from_millis(2_600), "{gap:?}");
        sleep(SECOND).await;
        assert_eq!(scenario.provider.n_open(), 1, "the silent one is closed");
        let counts = scenario.system.counts();
        assert_eq!((counts.speculative_openings, counts.losses(), counts.failovers), (1, 1, 1));
        let failover = scenario.system.events().recent().pop().unwrap();
        let EventBody::ChannelFailover { cause, gap_ms, .. } = &failover.body else { panic!("{failover:?}") };
        assert_eq!(cause, "stall");
        assert!((1_500..=2_500).contains(gap_ms), "the gap begins with the silence: {gap_ms} ms");
        let runs = scenario.system.switchboard().timeline(channel(1).uuid());
        let kinds = runs[0].entries.iter().map(|it| (it.kind, it.cause));
        // Depending on the moment, its picture follows its sound.
        let (pictures, kinds): (Vec<_>, Vec<_>) =
            kinds.partition(|it| matches!(it.0, PictureAwaited | PictureBegan));
        assert!(pictures.is_empty() || pictures == [(PictureAwaited, None), (PictureBegan, None)]);
        let expected = [
            (Silent, None),
            (SlotRequested, Some("silence")),
            (Opening, None),
            (Lost, Some("stall")),
            (FailedOver, Some("stall")),
        ];
        assert_eq!(kinds[kinds.len() - 5..], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_only_stream_of_a_channel_is_reopened_beside_itself_where_a_slot_is_free() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 2)]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    scenario.provider.break_now("/a", Break::Silence);
    sleep(3 * SECOND).await;
    let counts = scenario.system.counts();
    assert_eq!((counts.speculative_openings, counts.reconnects, counts.failovers), (1, 1, 0));
    assert_eq!(scenario.provider.n_open(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_source_that_sends_again_keeps_playing_and_the_other_one_is_closed() {
    let now = Settings { silence_suspected_after: Duration::from_millis(500), ..settings() };
    let scenario = Scenario::new(now, [&[limited(1, "a", 1, 2), limited(2, "b", 1, 2)]]).await;
    // One picture per second.
    let slow = TsSource { bitrate: 20_000, frame_rate: 1, gop: 1, ..TsSource::new("a") };
    scenario.provider.set("/a", Behaviour::Play(Play::new(slow)));
    scenario.provider.set("/b", Behaviour::NoAnswer);
    let mut viewer = scenario.watch(channel(1)).await;
    let until = Instant::now() + 30 * SECOND;
    while Instant::now() < until {
        viewer.tail.chunk().await.unwrap();
    }
    let counts = scenario.system.counts();
    assert_eq!((counts.speculative_openings, counts.losses(), counts.leases), (1, 0, 1));
    assert_eq!(scenario.provider.n_open(), 1);
    let status = scenario.status(channel(1)).await.unwrap();
    assert_eq!((status.state, status.playing), ("playing", Some(StreamId(1))));
}

/// The position in the programme at which the sources of the provider begin.
const BEGINNING: Duration = Duration::from_secs(60);

/// Makes a stream play without its picture from this much of its play on.
fn picture_ends(scenario: &Scenario, label: &str, after: Duration) {
    let ts = TsSource { picture_until: Some(BEGINNING + after), ..TsSource::new(label) };
    scenario.provider.set(&format!("/{label}"), Behaviour::Play(Play::new(ts)));
}

async fn watches_for(viewer: &mut TestViewer, time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        viewer.tail.chunk().await.unwrap();
    }
}

/// Holds T-fo.9, with a slot for a second connection and without one.
#[tokio::test(start_paused = true)]
async fn a_source_whose_picture_ends_is_left_and_the_cause_is_named_everywhere() {
    use crate::timeline::RunEntryKind::*;
    for max_streams in [1, 2] {
        let streams = [limited(1, "a", 1, max_streams), limited(2, "b", 1, max_streams)];
        let scenario = Scenario::new(settings(), [&streams]).await;
        picture_ends(&scenario, "a", 8 * SECOND);
        let mut viewer = scenario.watch(channel(1)).await;
        viewer.sees("a").await;
        let began = Instant::now();
        viewer.sees("b").await;
        assert!((13 * SECOND..=18 * SECOND).contains(&began.elapsed()), "{:?}", began.elapsed());
        sleep(SECOND).await;
        assert_eq!(scenario.provider.n_open(), 1);
        let failover = scenario.system.events().recent().pop().unwrap();
        let EventBody::ChannelFailover { cause, .. } = &failover.body else { panic!("{failover:?}") };
        assert_eq!(cause, "picture_lost");
        let health = scenario.system.health().get(StreamId(1)).unwrap();
        assert_eq!((health.last_cause.as_deref(), health.losses), (Some("picture_lost"), 1));
        let runs = scenario.system.switchboard().timeline(channel(1).uuid());
        let kinds: Vec<_> = runs[0].entries.iter().map(|it| (it.kind, it.cause)).collect();
        let named = |kind| (kind, Some("picture_lost"));
        for expected in [named(Lacking), named(SlotRequested), named(Lost), named(FailedOver)] {
            assert!(kinds.contains(&expected), "{expected:?} of {kinds:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_without_another_picture_plays_on_and_the_next_start_knows_it() {
    use crate::timeline::RunEntryKind::*;
    for max_streams in [1, 2] {
        let streams = [limited(1, "a", 1, max_streams), limited(2, "b", 1, max_streams)];
        let scenario = Scenario::new(settings(), [&streams]).await;
        picture_ends(&scenario, "a", Duration::ZERO);
        picture_ends(&scenario, "b", Duration::ZERO);
        let mut viewer = scenario.watch(channel(1)).await;
        watches_for(&mut viewer, 60 * SECOND).await;
        // Without a second slot the other stream is tried once.
        let counts = scenario.system.counts();
        assert_eq!((counts.failovers, counts.leases), (u64::from(max_streams == 1), 1));
        let runs = scenario.system.switchboard().timeline(channel(1).uuid());
        let lacking =
            runs[0].entries.iter().filter(|it| (it.kind, it.cause) == (Lacking, Some("picture_lost")));
        assert_eq!(lacking.count(), if max_streams == 1 { 3 } else { 2 });
        assert_eq!(scenario.event_names().last(), Some(&"stream_lacking"));
        let now = crate::clock::now_ms();
        let health = scenario.system.health();
        let known = health.get(StreamId(1)).unwrap();
        assert!(known.lacked_lately(domain::playout::Lack::Picture, now));
        assert_eq!(known.last_cause.as_deref(), Some("picture_lost"));
    }
}

/// Without the setting a still picture is only noted; with it, a stream whose picture moves plays.
#[tokio::test(start_paused = true)]
async fn a_still_picture_is_noted_and_left_only_with_the_setting() {
    use crate::timeline::RunEntryKind::*;
    let still = |kind| (kind, Some("picture_still"));
    for leaves_still_picture in [false, true] {
        let first = Stream { leaves_still_picture, ..limited(1, "a", 1, 2) };
        let scenario = Scenario::new(settings(), [&[first, limited(2, "b", 1, 2)]]).await;
        let ts = TsSource { still: BEGINNING + 8 * SECOND..BEGINNING + 40 * SECOND, ..TsSource::new("a") };
        scenario.provider.set("/a", Behaviour::Play(Play::new(ts)));
        let kinds = || {
            let runs = scenario.system.switchboard().timeline(channel(1).uuid());
            runs[0].entries.iter().map(|it| (it.kind, it.cause)).collect::<Vec<_>>()
        };
        let health = || scenario.system.health().get(StreamId(1)).unwrap();
        let mut viewer = scenario.watch(channel(1)).await;
        viewer.sees("a").await;
        if leaves_still_picture {
            let began = Instant::now();
            viewer.sees("b").await;
            assert!((18 * SECOND..=25 * SECOND).contains(&began.elapsed()), "{:?}", began.elapsed());
            watches_for(&mut viewer, SECOND).await;
            assert_eq!((health().last_cause.as_deref(), health().losses), (Some("picture_still"), 1));
            for expected in [still(Lacking), still(SlotRequested), still(Lost), still(FailedOver)] {
                assert!(kinds().contains(&expected), "{expected:?} of {:?}", kinds());
            }
            continue;
        }
        watches_for(&mut viewer, 30 * SECOND).await;
        assert!(health().still_picture_at.is_some());
        watches_for(&mut viewer, 30 * SECOND).await;
        // It moves again.
        assert_eq!((health().still_picture_at, health().losses, health().last_cause), (None, 0, None));
        assert!(kinds().contains(&still(Lacking)) && kinds().contains(&still(Complete)), "{:?}", kinds());
        let counts = scenario.system.counts();
        assert_eq!((counts.failovers, counts.speculative_openings), (0, 0));
        assert!(!scenario.event_names().contains(&"stream_lacking"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_whose_pictures_all_stand_still_stays_with_the_first() {
    let streams = [1, 2].map(|id| {
        let label = if id == 1 { "a" } else { "b" };
        Stream { leaves_still_picture: true, ..limited(id, label, 1, 2) }
    });
    let scenario = Scenario::new(settings(), [&streams]).await;
    for label in ["a", "b"] {
        let ts = TsSource { still: Duration::ZERO..Duration::MAX, ..TsSource::new(label) };
        scenario.provider.set(&format!("/{label}"), Behaviour::Play(Play::new(ts)));
    }
    let mut viewer = scenario.watch(channel(1)).await;
    watches_for(&mut viewer, 60 * SECOND).await;
    let counts = scenario.system.counts();
    assert_eq!((counts.failovers, counts.speculative_openings, counts.leases), (0, 1, 1));
    assert_eq!(scenario.event_names().last(), Some(&"stream_lacking"));
}

/// Holds T-fo.6 for a stream that opens and never becomes playable.
#[tokio::test(start_paused = true)]
async fn a_switch_to_a_stream_that_never_becomes_playable_costs_viewers_nothing() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 2), limited(2, "b", 1, 2)]]).await;
    let ts = TsSource { gop: u64::MAX, is_marked: false, ..TsSource::new("b") };
    let broken = Play { after: Some((300, Break::Nulls)), ..Play::new(ts) };
    scenario.provider.set("/b", Behaviour::Play(broken));
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    let switchboard = scenario.system.switchboard();
    let switch = switchboard.switch(channel(1), SwitchTo::Stream(StreamId(2)));
    tokio::pin!(switch);
    let mut longest = Duration::ZERO;
    let outcome = loop {
        let before = Instant::now();
        tokio::select! {
            outcome = &mut switch => break outcome.unwrap(),
            chunk = viewer.tail.chunk() => drop(chunk.unwrap()),
        }
        longest = longest.max(before.elapsed());
    };
    let SwitchOutcome::Failed { playing, reason } = outcome else { panic!("{outcome:?}") };
    assert_eq!((playing, reason.as_str()), (Some(StreamId(1)), "video and audio stopped"));
    assert!(longest < Duration::from_millis(200), "the old stream never paused: {longest:?}");
    sleep(SECOND).await;
    assert_eq!((scenario.provider.n_open(), scenario.system.counts().leases), (1, 1));
    let status = scenario.status(channel(1)).await.unwrap();
    assert_eq!((status.state, status.playing), ("playing", Some(StreamId(1))));
}

/// Holds T-fo.2 in this crate: after every kind of source failure the next stream plays, the viewer stays, and one
/// event contains the cause.
#[tokio::test(start_paused = true)]
async fn the_second_stream_plays_after_any_failure_of_the_first() {
    let play = |after| Behaviour::Play(Play { after: Some((100, after)), ..Play::new(TsSource::new("a")) });
    let failing = [
        Behaviour::Status(401),
        Behaviour::Status(403),
        Behaviour::Status(404),
        Behaviour::Status(429),
        Behaviour::Status(503),
        Behaviour::Html,
        Behaviour::Json,
        Behaviour::Hls,
        Behaviour::Empty,
        Behaviour::NoAnswer,
        Behaviour::Redirect("http://tv:80/a".into()),
        Behaviour::Garbage,
    ];
    for behaviour in failing {
        let scenario = Scenario::new(settings(), [&[stream(1, "a"), stream(2, "b")]]).await;
        scenario.provider.set("/a", behaviour.clone());
        let mut viewer = scenario.watch(channel(1)).await;
        viewer.sees("b").await;
        assert_eq!(scenario.event_names(), ["client_connect", "channel_start"], "{behaviour:?}");
        drop(viewer);
        scenario.is_quiet().await;
    }
    for (after, cause) in [
        (Break::Reset, "reset"),
        (Break::End, "ended"),
        (Break::Silence, "stall"),
        (Break::Garbage, "sync_lost"),
        (Break::Nulls, "stall"),
        (Break::UnknownPids, "stall"),
    ] {
        let scenario = Scenario::new(settings(), [&[stream(1, "a"), stream(2, "b")]]).await;
        scenario.provider.script("/a", [play(after), Behaviour::Status(404)]);
        let mut viewer = scenario.watch(channel(1)).await;
        viewer.sees("b").await;
        let events = scenario.system.events().recent();
        let failovers: Vec<_> = events
            .iter()
            .filter_map(|it| match &it.body {
                EventBody::ChannelFailover { cause, .. } => Some(cause.clone()),
                _ => None,
            })
            .collect();
        // The cause is the loss that ended playback, not the failure of the retry.
        assert_eq!(failovers, [cause], "{after:?}");
    }
}

/// Holds T-life.5: the channel stops a full delay after the latest departure.
#[tokio::test(start_paused = true)]
async fn a_channel_lingers_from_the_latest_departure() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let delay = settings().channel_shutdown_delay;
    drop(scenario.watch(channel(1)).await);
    let left_at = Instant::now();
    sleep(delay.mul_f64(0.8)).await;
    drop(scenario.watch(channel(1)).await);
    sleep(delay.mul_f64(0.9)).await;
    assert_eq!(scenario.provider.n_open(), 1, "it stopped one delay after the first departure");
    scenario.is_quiet().await;
    let stopped = left_at.elapsed();
    assert!(stopped >= delay.mul_f64(1.8) && stopped < delay.mul_f64(1.8) + SECOND, "{stopped:?}");
    assert_eq!(scenario.provider.n_accepted(), 1);
}

/// Observed defect: a channel that had given its slot away never ended if a caller requested it and hung up at once:
/// its timer belonged to an earlier join, and no timer belonged to the last one.
#[tokio::test(start_paused = true)]
async fn a_channel_ends_even_if_its_last_caller_hung_up_early() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1)], &[limited(2, "b", 1, 1)]]).await;
    drop(scenario.watch(channel(1)).await);
    drop(scenario.watch(channel(2)).await);
    assert!(tokio::time::timeout(Duration::ZERO, scenario.ask(channel(1))).await.is_err());
    scenario.is_quiet().await;
}

async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(60 * SECOND, wait).await.expect("within a minute");
}

/// Observed defect: a viewer saw the picture and left before its channel handled the message that the source plays, so
/// the departure was reported before the start of the channel.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_start_of_a_channel_is_reported_before_the_departure_of_a_viewer_who_saw_it() {
    let now = Settings { random_access_wait: 3 * SECOND, ..settings() };
    let scenario = Scenario::new(now, [&[stream(1, "a")]]).await;
    // Without a random-access point, the output starts only after the wait for one.
    let ts = TsSource { gop: u64::MAX, is_marked: false, ..TsSource::new("a") };
    scenario.provider.set("/a", Behaviour::Play(Play::new(ts)));
    let WatchReply::Tail { mut tail, .. } = scenario.ask(channel(1)).await else { panic!("no tail") };
    until(|| scenario.system.has_tables()).await;
    let release = scenario.system.block_channel(channel(1));
    tail.ready().await.unwrap();
    let clients = scenario.system.client_actors();
    drop(tail);
    until(|| clients.iter().all(|it| it.get_status() == ActorStatus::Stopped)).await;
    drop(release);
    until(|| scenario.event_names().len() >= 3).await;
    assert_eq!(scenario.event_names()[..3], ["client_connect", "channel_start", "client_disconnect"]);
}

#[tokio::test(start_paused = true)]
async fn a_probe_followed_by_a_play_uses_one_upstream() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let mut probe = scenario.watch(channel(1)).await;
    probe.sees("a").await;
    drop(probe);
    scenario.watch(channel(1)).await.sees("a").await;
    assert_eq!(scenario.provider.n_accepted(), 1);
}

/// Holds T-life.2: the viewer gets an error within the start deadline, and nothing is left.
#[tokio::test(start_paused = true)]
async fn a_channel_that_cannot_start_reports_it_and_leaves_nothing() {
    for behaviour in [
        Behaviour::Status(404),
        Behaviour::Status(503),
        Behaviour::Html,
        Behaviour::Empty,
        Behaviour::NoAnswer,
        Behaviour::Reset,
        Behaviour::Close,
        Behaviour::Garbage,
    ] {
        let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
        scenario.provider.set("/a", behaviour.clone());
        let asked_at = Instant::now();
        match scenario.ask(channel(1)).await {
            WatchReply::Tail { mut tail, .. } => {
                let end = tokio::time::timeout(settings().start_timeout, tail.ready()).await;
                assert!(!matches!(end, Ok(Ok(()))), "{behaviour:?}");
            }
            WatchReply::Refused(WatchRefusal::NothingPlays(_)) => {}
            other => panic!("{behaviour:?}: {other:?}"),
        }
        assert!(asked_at.elapsed() <= settings().start_timeout, "{behaviour:?}");
        scenario.is_quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_whose_only_stream_is_missing_ends_at_once() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    scenario.provider.set("/a", Behaviour::Status(404));
    let asked_at = Instant::now();
    let WatchReply::Tail { mut tail, .. } = scenario.ask(channel(1)).await else { panic!("granted at once") };
    assert!(matches!(tail.ready().await, Err(EndReason::NothingPlays(_))));
    assert!(asked_at.elapsed() < SECOND);
    scenario.is_quiet().await;
}

/// Holds T-fo.5: the number of requests is bounded while all streams fail, then the viewers are disconnected.
#[tokio::test(start_paused = true)]
async fn viewers_of_a_channel_that_is_gone_are_closed_after_a_minute_of_filler() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a"), stream(2, "b")]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    for path in ["/a", "/b"] {
        scenario.provider.set(path, Behaviour::Status(503));
    }
    scenario.provider.break_now("/a", Break::Reset);
    let lost_at = Instant::now();
    assert_eq!(viewer.ends().await, EndReason::Silent);
    let took = lost_at.elapsed();
    assert!(took >= 60 * SECOND && took < 66 * SECOND, "{took:?}");
    assert!(scenario.provider.n_accepted() < 40, "{} requests in a minute", scenario.provider.n_accepted());
    assert!(scenario.event_names().contains(&"channel_error"));
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_viewer_who_joins_in_a_gap_begins_with_the_next_source() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let mut first = scenario.watch(channel(1)).await;
    first.sees("a").await;
    scenario.provider.set("/a", Behaviour::Status(503));
    scenario.provider.break_now("/a", Break::Reset);
    sleep(5 * SECOND).await;
    let WatchReply::Tail { tail, .. } = scenario.ask(channel(1)).await else {
        panic!("no refusal during a gap")
    };
    let mut second = TestViewer { tail };
    scenario.provider.set("/a", Behaviour::play("anew"));
    let bytes = second.tail.chunk().await.unwrap();
    assert_ne!(&bytes[1..3], &[0x1F, 0xFF], "filler first");
    second.sees("anew").await;
    first.sees("anew").await;
}

/// Holds T-slot.5: channel 1 and stream 1 are different targets.
#[tokio::test(start_paused = true)]
async fn a_preview_of_stream_one_and_channel_one_have_a_lease_each() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 2)]]).await;
    let on_channel = scenario.watch(channel(1)).await;
    let preview = scenario.watch(Target::Stream(StreamId(1))).await;
    let purposes: Vec<_> = scenario.system.leases().iter().map(|it| it.purpose).collect();
    assert_eq!(purposes, [crate::slots::LeasePurpose::Live, crate::slots::LeasePurpose::Preview]);
    drop(on_channel);
    sleep(10 * SECOND).await;
    assert_eq!(scenario.system.counts().leases, 1);
    drop(preview);
    scenario.is_quiet().await;
}

/// Holds T-fo.6: the reply arrives after the switch and contains its result.
#[tokio::test(start_paused = true)]
async fn a_manual_switch_is_answered_when_the_new_stream_plays() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a"), stream(2, "b")]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    let switchboard = scenario.system.switchboard();
    let outcome = switchboard.switch(channel(1), SwitchTo::Next).await.unwrap();
    assert!(matches!(outcome, SwitchOutcome::Switched { stream: StreamId(2), .. }), "{outcome:?}");
    assert_eq!(scenario.status(channel(1)).await.unwrap().playing, Some(StreamId(2)));
    viewer.sees("b").await;
    assert_eq!(scenario.event_names(), ["client_connect", "channel_start", "stream_switch"]);
    sleep(SECOND).await;
    assert_eq!(scenario.system.counts().leases, 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_another_channel_plays_with_a_slot_of_its_own_account_until_another_one_plays() {
    let scenario =
        Scenario::new(settings(), [&[limited(1, "a", 1, 1)], &[limited(2, "b", 2, 1)], &[stream(3, "c")]])
            .await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    let switchboard = scenario.system.switchboard();
    let outcome = switchboard.switch(channel(1), SwitchTo::Stream(StreamId(2))).await.unwrap();
    assert!(matches!(outcome, SwitchOutcome::Switched { stream: StreamId(2), .. }), "{outcome:?}");
    viewer.sees("b").await;
    // A commit does not end it.
    scenario.replan(1, &[limited(1, "a", 1, 1)]).await;
    assert_eq!(scenario.status(channel(1)).await.unwrap().playing, Some(StreamId(2)));
    // Its account is full for others.
    assert!(matches!(scenario.ask(channel(2)).await, WatchReply::Refused(_)));
    scenario.provider.set("/b", Behaviour::Status(404));
    scenario.provider.break_now("/b", Break::Reset);
    viewer.sees("a").await;
    sleep(SECOND).await;
    assert_eq!(scenario.system.counts().leases, 1);
    // From one such stream to another.
    let outcome = switchboard.switch(channel(1), SwitchTo::Stream(StreamId(3))).await.unwrap();
    assert!(matches!(outcome, SwitchOutcome::Switched { stream: StreamId(3), .. }), "{outcome:?}");
    viewer.sees("c").await;
    scenario.provider.set("/b", Behaviour::play("b"));
    let outcome = switchboard.switch(channel(1), SwitchTo::Stream(StreamId(2))).await.unwrap();
    assert!(matches!(outcome, SwitchOutcome::Switched { stream: StreamId(2), .. }), "{outcome:?}");
    viewer.sees("b").await;
    let outcome = switchboard.switch(channel(1), SwitchTo::Stream(StreamId(1))).await.unwrap();
    assert!(matches!(outcome, SwitchOutcome::Switched { stream: StreamId(1), .. }), "{outcome:?}");
    viewer.sees("a").await;
    // They do not belong to the channel afterwards.
    scenario.provider.set("/b", Behaviour::play("b"));
    let outcome = switchboard.switch(channel(1), SwitchTo::Next).await.unwrap();
    assert!(matches!(outcome, SwitchOutcome::Switched { stream: StreamId(1), .. }), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_full_account_is_not_played_in_another_channel() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1)], &[limited(2, "b", 2, 1)]]).await;
    let (mut viewer, mut other) = (scenario.watch(channel(1)).await, scenario.watch(channel(2)).await);
    viewer.sees("a").await;
    other.sees("b").await;
    let to = SwitchTo::Stream(StreamId(2));
    let outcome = scenario.system.switchboard().switch(channel(1), to).await.unwrap();
    assert!(matches!(outcome, SwitchOutcome::Failed { playing: Some(StreamId(1)), .. }), "{outcome:?}");
    viewer.sees("a").await;
    assert_eq!((scenario.provider.peak(), scenario.provider.n_open()), (2, 2));
}

/// Holds T-fo.6: after a failed switch the old stream plays, and the status reports it.
#[tokio::test(start_paused = true)]
async fn a_switch_to_a_stream_that_does_not_play_changes_nothing() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a"), stream(2, "b")]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    scenario.provider.set("/b", Behaviour::Status(404));
    let to = SwitchTo::Stream(StreamId(2));
    let outcome = scenario.system.switchboard().switch(channel(1), to).await.unwrap();
    assert!(matches!(outcome, SwitchOutcome::Failed { playing: Some(StreamId(1)), .. }), "{outcome:?}");
    assert_eq!(scenario.status(channel(1)).await.unwrap().playing, Some(StreamId(1)));
    viewer.sees("a").await;
    assert_eq!(scenario.provider.n_open(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_switch_on_a_full_account_closes_the_old_stream_and_returns_to_it_after_a_failure() {
    let scenario = Scenario::new(settings(), [&[limited(1, "a", 1, 1), limited(2, "b", 1, 1)]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    let switchboard = scenario.system.switchboard();
    let outcome = switchboard.switch(channel(1), SwitchTo::Next).await.unwrap();
    assert!(matches!(outcome, SwitchOutcome::Switched { stream: StreamId(2), .. }), "{outcome:?}");
    viewer.sees("b").await;
    scenario.provider.set("/a", Behaviour::Status(404));
    let outcome = switchboard.switch(channel(1), SwitchTo::Next).await.unwrap();
    assert!(matches!(outcome, SwitchOutcome::Failed { .. }), "{outcome:?}");
    viewer.sees("b").await;
    assert_eq!(scenario.provider.peak(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_switch_of_an_unwatched_channel_or_to_an_unknown_stream_is_refused() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let switchboard = scenario.system.switchboard();
    assert_eq!(switchboard.switch(channel(1), SwitchTo::Next).await.unwrap(), SwitchOutcome::NotLive);
    let _viewer = scenario.watch(channel(1)).await;
    let to = SwitchTo::Stream(StreamId(9));
    assert_eq!(switchboard.switch(channel(1), to).await.unwrap(), SwitchOutcome::NoSuchStream);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_opens_nothing_and_takes_no_lease() {
    let redirect = Stream { profile: Delivery::Redirect, ..stream(1, "a") };
    let scenario = Scenario::new(settings(), [&[redirect]]).await;
    let WatchReply::Redirect(to) = scenario.ask(channel(1)).await else { panic!("not redirected") };
    assert_eq!((to.url.expose(), to.without_login), ("http://tv:80/a", false));
    assert_eq!((scenario.system.counts().leases, scenario.provider.n_accepted()), (0, 0));
    scenario.is_quiet().await;
}

/// A live channel has its plan for a while after a change; the address of a provider must not be given away meanwhile.
#[tokio::test(start_paused = true)]
async fn a_redirect_is_not_given_any_more_once_its_profile_has_changed() {
    let redirect = |name| Stream { profile: Delivery::Redirect, ..stream(1, name) };
    let scenario = Scenario::new(settings(), [&[redirect("a")]]).await;
    let WatchReply::Redirect(to) = scenario.ask(channel(1)).await else { panic!("not redirected") };
    assert_eq!(to.url.expose(), "http://tv:80/a");
    // Another address of the provider.
    scenario.replan_silently(1, &[redirect("b")]);
    let WatchReply::Redirect(to) = scenario.ask(channel(1)).await else { panic!("not redirected") };
    assert_eq!(to.url.expose(), "http://tv:80/b");
    scenario.replan_silently(1, &[stream(1, "a")]);
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    assert_eq!(scenario.system.counts().leases, 1);
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_is_gone_redirects_nobody() {
    let redirect = Stream { profile: Delivery::Redirect, ..stream(1, "a") };
    let scenario = Scenario::new(settings(), [&[redirect]]).await;
    let WatchReply::Redirect(_) = scenario.ask(channel(1)).await else { panic!("not redirected") };
    scenario.remove_silently(1);
    let reply = scenario.ask(channel(1)).await;
    assert!(matches!(reply, WatchReply::Refused(_)), "{reply:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failover_never_turns_a_running_answer_into_a_redirect() {
    let redirect = Stream { profile: Delivery::Redirect, ..stream(2, "b") };
    let scenario = Scenario::new(settings(), [&[stream(1, "a"), redirect, stream(3, "c")]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    scenario.provider.set("/a", Behaviour::Status(404));
    scenario.provider.break_now("/a", Break::End);
    viewer.sees("c").await;
}

#[tokio::test(start_paused = true)]
async fn a_kicked_client_is_gone_and_the_others_watch_on() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let (kicked, connection) = scenario.ask_as(channel(1), None, "player").await;
    let mut other = scenario.watch(channel(1)).await;
    let WatchReply::Tail { client, .. } = &kicked else { panic!("{kicked:?}") };
    let switchboard = scenario.system.switchboard();
    assert!(switchboard.kick(channel(1), *client).await.unwrap());
    assert!(!switchboard.kick(channel(1), 4711).await.unwrap());
    sleep(SECOND).await;
    assert!(connection.cancel.is_cancelled());
    assert_eq!(scenario.status(channel(1)).await.unwrap().clients.len(), 1);
    other.sees("a").await;
}

#[tokio::test(start_paused = true)]
async fn stopping_a_channel_gives_its_clients_the_last_chunks_and_this_end() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    assert_eq!(scenario.system.switchboard().stop(channel(1)).await.unwrap(), StopOutcome::Stopping);
    assert_eq!(viewer.ends().await, EndReason::Stopped);
    drop(viewer);
    scenario.is_quiet().await;
    assert_eq!(scenario.event_names().last(), Some(&"channel_stop"));
    assert_eq!(scenario.system.switchboard().stop(channel(1)).await.unwrap(), StopOutcome::NotLive);
}

/// A client that neither reads nor closes must not keep an ending channel.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_its_last_chunks_is_closed() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let (_unread, connection) = scenario.ask_as(channel(1), None, "phone").await;
    scenario.system.switchboard().stop(channel(1)).await.unwrap();
    sleep(actor::FAREWELL_TIMEOUT + SECOND).await;
    assert!(connection.cancel.is_cancelled());
    assert_eq!(scenario.system.counts().channels, 0);
}

/// Holds the changed delay of T-life.1: a new delay applies from the next departure.
#[tokio::test(start_paused = true)]
async fn a_changed_delay_applies_from_the_next_departure() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let viewer = scenario.watch(channel(1)).await;
    scenario.system.configure(Settings { channel_shutdown_delay: 30 * SECOND, ..settings() }).unwrap();
    drop(viewer);
    sleep(29 * SECOND).await;
    assert_eq!(scenario.provider.n_open(), 1);
    scenario.system.configure(Settings { channel_shutdown_delay: Duration::ZERO, ..settings() }).unwrap();
    drop(scenario.watch(channel(1)).await);
    sleep(SECOND).await;
    assert_eq!(scenario.provider.n_open(), 0);
}

/// Holds T-life.8: nothing expires in a long session.
#[tokio::test(start_paused = true)]
async fn after_an_hour_a_session_plays_and_takes_another_viewer() {
    a_session_plays_and_takes_another_viewer_after(1).await;
}

mod night {
    #[tokio::test(start_paused = true)]
    async fn after_eight_hours_a_session_plays_and_takes_another_viewer() {
        super::a_session_plays_and_takes_another_viewer_after(8).await;
    }
}

async fn a_session_plays_and_takes_another_viewer_after(hours: u32) {
    let quiet = TsSource { bitrate: 20_000, frame_rate: 1, gop: 1, ..TsSource::new("a") };
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    scenario.provider.set("/a", Behaviour::Play(Play::new(quiet)));
    let mut viewer = scenario.watch(channel(1)).await;
    let until = Instant::now() + hours * 3600 * SECOND;
    while Instant::now() < until {
        viewer.tail.chunk().await.unwrap();
    }
    scenario.watch(channel(1)).await.sees("a").await;
    let status = scenario.status(channel(1)).await.unwrap();
    assert_eq!((status.state, status.n_losses), ("playing", 0));
    assert_eq!(scenario.provider.n_accepted(), 1);
}

/// Holds T-fo.4 in this crate: an occasional loss is a reconnect, three in a minute are a failover.
#[tokio::test(start_paused = true)]
async fn drops_far_apart_reconnect_and_drops_in_a_row_fail_over() {
    let quiet = TsSource { bitrate: 20_000, frame_rate: 1, gop: 1, ..TsSource::new("a") };
    let scenario = Scenario::new(settings(), [&[stream(1, "a"), stream(2, "b")]]).await;
    scenario.provider.set("/a", Behaviour::Play(Play::new(quiet)));
    let mut viewer = scenario.watch(channel(1)).await;
    let watch_for = async |viewer: &mut TestViewer, time: Duration| {
        let until = Instant::now() + time;
        while Instant::now() < until {
            viewer.tail.chunk().await.unwrap();
        }
    };
    for _ in 0..3 {
        watch_for(&mut viewer, 900 * SECOND).await;
        scenario.provider.break_now("/a", Break::End);
    }
    watch_for(&mut viewer, 60 * SECOND).await;
    let counts = scenario.system.counts();
    assert_eq!((counts.failovers, counts.reconnects), (0, 3));
    for _ in 0..3 {
        scenario.provider.break_now("/a", Break::End);
        watch_for(&mut viewer, 10 * SECOND).await;
    }
    assert_eq!(scenario.system.counts().failovers, 1);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_still_counts_a_closed_connection_is_tried_again() {
    let now = Settings { channel_shutdown_delay: Duration::ZERO, ..settings() };
    let scenario = Scenario::new(now, [&[limited(1, "a", 1, 1)]]).await;
    scenario.watch(channel(1)).await.sees("a").await;
    scenario.is_quiet().await;
    scenario.provider.script("/a", [Behaviour::Status(403), Behaviour::Status(403), Behaviour::play("a")]);
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    assert_eq!(scenario.system.counts().failovers, 0);
}

#[tokio::test(start_paused = true)]
async fn the_only_stream_of_a_channel_has_the_whole_start_time_to_connect() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    scenario.provider.set_reachability(Reachability::After(9 * SECOND));
    let asked_at = Instant::now();
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    assert!(asked_at.elapsed() < settings().start_timeout, "{:?}", asked_at.elapsed());
    assert_eq!(scenario.provider.n_accepted(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_first_stream_is_left_after_the_usual_time() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a"), stream(2, "b")]]).await;
    scenario.provider.set("/a", Behaviour::NoAnswer);
    let asked_at = Instant::now();
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("b").await;
    let bound = settings().first_packet_timeout + 2 * SECOND;
    assert!(asked_at.elapsed() < bound, "{:?}", asked_at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_provider_does_not_end_a_start_before_the_channel_gives_up() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    scenario.provider.set_reachability(Reachability::Silent);
    let asked_at = Instant::now();
    let WatchReply::Tail { mut tail, .. } = scenario.ask(channel(1)).await else { panic!("granted at once") };
    let end = tail.ready().await;
    let Err(EndReason::NothingPlays(why)) = &end else { panic!("{end:?}") };
    assert_eq!(&**why, "connection timed out");
    let (took, give_up_after) = (asked_at.elapsed(), settings().give_up_after);
    assert!(took >= give_up_after && took < give_up_after + SECOND, "{took:?}");
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_switch_reports_the_previous_stream_and_the_gap() {
    let scenario =
        Scenario::new(settings(), [&[limited(1, "a", 1, 1), limited(2, "b", 1, 1), stream(3, "c")]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    let switchboard = scenario.system.switchboard();
    let switch = async |to| match switchboard.switch(channel(1), SwitchTo::Stream(StreamId(to))).await {
        Ok(SwitchOutcome::Switched { stream, previous, gap_ms }) => {
            (stream.0, previous.unwrap().0, gap_ms > 0)
        }
        other => panic!("{other:?}"),
    };
    // With only one slot, the old stream ends before the new one starts.
    assert_eq!(switch(2).await, (2, 1, true));
    assert_eq!(switch(3).await, (3, 2, false));
}

#[tokio::test(start_paused = true)]
async fn a_kicked_client_is_gone_when_the_reply_arrives() {
    let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
    let viewers = [scenario.watch(channel(1)).await, scenario.watch(channel(1)).await];
    let clients = scenario.status(channel(1)).await.unwrap().clients;
    let switchboard = scenario.system.switchboard();
    assert!(switchboard.kick(channel(1), clients[0].id).await.unwrap());
    let left: Vec<_> = scenario.status(channel(1)).await.unwrap().clients.iter().map(|it| it.id).collect();
    assert_eq!(left, [clients[1].id]);
    assert!(!switchboard.kick(channel(1), clients[0].id).await.unwrap());
    drop(viewers);
}

#[tokio::test(start_paused = true)]
async fn the_timeline_contains_the_causes_of_switches_and_stops() {
    use crate::timeline::RunEntryKind::*;
    let scenario = Scenario::new(settings(), [&[stream(1, "a"), stream(2, "b")]]).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    scenario.provider.set("/a", Behaviour::Status(404));
    scenario.provider.break_now("/a", Break::Reset);
    viewer.sees("b").await;
    let switchboard = scenario.system.switchboard();
    switchboard.switch(channel(1), SwitchTo::Next).await.unwrap();
    drop(viewer);
    scenario.is_quiet().await;
    let runs = switchboard.timeline(channel(1).uuid());
    assert_eq!(runs.len(), 1);
    let lines = &runs[0].entries;
    let shown: Vec<_> =
        lines.iter().map(|it| (it.kind, it.cause, it.stream.as_ref().map(|it| it.id.0))).collect();
    assert_eq!(
        shown,
        [
            (SlotRequested, Some("start"), None),
            (Opening, None, Some(1)),
            (Started, None, Some(1)),
            (Lost, Some("reset"), Some(1)),
            (SlotRequested, Some("failover"), None),
            (Opening, None, Some(1)),
            (Lost, Some("status"), Some(1)),
            (SlotRequested, Some("failover"), None),
            (Opening, None, Some(2)),
            (FailedOver, Some("reset"), Some(2)),
            (PictureAwaited, None, Some(2)),
            (SwitchRequested, Some("manual"), None),
            (SlotRequested, Some("switch"), None),
            (Opening, None, Some(1)),
            (Lost, Some("status"), Some(1)),
            (SwitchFailed, None, Some(2)),
            (LastViewerLeft, None, None),
            (PictureBegan, None, Some(2)),
            (Ended, Some("nobody_watches"), None),
        ]
    );
    assert_eq!(
        (lines[6].upstream_status, lines[9].gap.is_some(), lines[9].state),
        (Some(404), true, "playing")
    );
    assert!(lines[3].bytes_in > 0 && lines[3].bytes_in <= lines[9].bytes_in);
    assert!(runs[0].ended_at.is_some());
    // The next live channel has a run of its own.
    let _viewer = scenario.watch(channel(1)).await;
    assert_eq!(switchboard.timeline(channel(1).uuid()).len(), 2);
}

/// A node of a cluster that loses contact with the others closes its sources before those may open them.
#[tokio::test(start_paused = true)]
async fn a_channel_whose_lease_is_revoked_closes_its_source_at_once_and_its_viewers_stay() {
    let table = RevocableTable::new();
    let leases = table.clone();
    let streams = [limited(1, "a", 1, 1)];
    let scenario = Scenario::with_table(settings(), [&streams], |_| leases).await;
    let mut viewer = scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    table.cut();
    table.all_closed().await;
    assert_eq!(scenario.provider.n_open(), 0);
    sleep(5 * SECOND).await;
    assert_eq!((scenario.provider.n_open(), table.counts().0), (0, 0), "nothing opens without a lease");
    let health = scenario.system.health().get(StreamId(1)).expect("it has played");
    assert_eq!((health.attempts, health.failures, health.losses), (1, 0, 0), "the stream did not fail");
    scenario.provider.set("/a", Behaviour::play("again"));
    table.join();
    viewer.sees("again").await;
    drop(viewer);
    scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_channel_whose_lease_is_revoked_while_it_opens_a_source_gives_that_up_at_once() {
    let table = RevocableTable::new();
    let leases = table.clone();
    let scenario = Scenario::with_table(settings(), [&[limited(1, "a", 1, 1)]], |_| leases).await;
    scenario.provider.set("/a", Behaviour::NoAnswer);
    let cut = async {
        until(|| scenario.provider.n_open() == 1).await;
        table.cut();
        table.all_closed().await;
        assert_eq!(scenario.provider.n_open(), 0);
    };
    let (answer, ()) = tokio::join!(scenario.ask(channel(1)), cut);
    drop(answer);
    scenario.is_quiet().await;
}
