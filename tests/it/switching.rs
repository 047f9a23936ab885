//! Manual switches to another stream of a live channel, and previews of single streams.

use std::sync::Arc;

use actors::{Identity, SwitchOutcome, SwitchTo, Target, Viewer, WatchReply, WatchRequest};
use domain::event::EventBody;
use domain::ids::StreamId;
use domain::output_format::StreamFormat;
use media::{Connection, ConnectionMeter, EndReason};

use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{Cut, MockResponse, Provider};
use crate::support::{WAIT_MAX, eventually};

const FIRST: &str = "/live/anna/first.ts";
const SECOND: &str = "/live/anna/second.ts";

async fn set_up(max_streams: u32) -> (Provider, TestGateway, Target) {
    let provider = Provider::start();
    provider.path(FIRST).plays(Picture::new("first"));
    provider.path(SECOND).plays(Picture::new("second").pids(0x20, 0x41, 0x42).starts_at(77));
    let list = provider.playlist(&[("news", "News", FIRST), ("news", "News backup", SECOND)]);
    let gateway = Setup::new().limited_list(&list, max_streams).start().await;
    let target = Target::Channel(gateway.catalogue.channels[0].uuid);
    (provider, gateway, target)
}

fn stream(gateway: &TestGateway, number: usize) -> StreamId {
    gateway.catalogue.streams[number].id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manual_switch_returns_after_it_happened() {
    // Holds T-fo.6 for switches that succeed; with a spare slot and without one.
    for max_streams in [0, 2, 1] {
        let (provider, gateway, target) = set_up(max_streams).await;
        let player = gateway.watch("News").await;
        player.sees("first").await;
        let switchboard = gateway.gateway.switchboard();
        for (number, label) in [(1, "second"), (0, "first"), (1, "second")] {
            let stream = stream(&gateway, number);
            let outcome = switchboard.switch(target, SwitchTo::Stream(stream)).await.unwrap();
            assert!(
                matches!(outcome, SwitchOutcome::Switched { stream: it, .. } if it == stream),
                "{outcome:?}"
            );
            let status = switchboard.status(target).await.unwrap().expect("the channel is live");
            assert_eq!(status.playing, Some(stream), "the status is up to date when the switch returns");
            player.sees(label).await;
        }
        let outcome = switchboard.switch(target, SwitchTo::Next).await.unwrap();
        let first = stream(&gateway, 0);
        assert!(matches!(outcome, SwitchOutcome::Switched { stream: it, .. } if it == first), "{outcome:?}");
        player.sees("first").await;
        player.received(|r| r.ts.assert_clean());
        eventually("the switch events", || gateway.n_events("stream_switch") == 4).await;
        assert!(max_streams == 0 || provider.peak() <= max_streams as usize, "{} sockets", provider.peak());
        assert_eq!(gateway.n_events("channel_failover"), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_switch_keeps_the_old_stream_playing_and_reports_the_failure() {
    // Holds T-fo.6 for switches that fail.
    for max_streams in [0, 1] {
        let (provider, gateway, target) = set_up(max_streams).await;
        provider.path(SECOND).answers(MockResponse::status(404));
        let player = gateway.watch("News").await;
        player.sees("first").await;
        let switchboard = gateway.gateway.switchboard();
        let (first, second) = (stream(&gateway, 0), stream(&gateway, 1));
        let outcome = switchboard.switch(target, SwitchTo::Stream(second)).await.unwrap();
        assert!(
            matches!(outcome, SwitchOutcome::Failed { playing: Some(it), .. } if it == first),
            "{outcome:?}"
        );
        let status = switchboard.status(target).await.unwrap().expect("the channel is live");
        assert_eq!(status.playing, Some(first));
        player.more_bytes(100_000).await;
        player.received(|r| {
            r.ts.assert_clean();
            assert_eq!(r.ts.labels, ["first"]);
        });
        assert!(max_streams == 0 || provider.peak() == 1, "{} sockets", provider.peak());
        let unknown = switchboard.switch(target, SwitchTo::Stream(StreamId(99))).await.unwrap();
        assert_eq!(unknown, SwitchOutcome::NoSuchStream);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switch_to_a_stream_that_opens_and_never_plays_leaves_the_old_one_without_a_gap() {
    // Holds T-fo.6 for a stream that delivers data in which a player cannot start.
    let (provider, gateway, target) = set_up(2).await;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    // It is joined in the middle of an endless group of pictures, and stalls.
    let endless = Picture::new("second").frames_per_gop(u64::MAX);
    provider.path(SECOND).answers(MockResponse::play(endless).until(50_000, Cut::Stall));
    let second = SwitchTo::Stream(stream(&gateway, 1));
    let outcome = gateway.gateway.switchboard().switch(target, second).await.unwrap();
    let SwitchOutcome::Failed { playing, reason } = outcome else { panic!("{outcome:?}") };
    assert_eq!((playing, reason.as_str()), (Some(stream(&gateway, 0)), "video and audio stopped"));
    player.more_bytes(100_000).await;
    player.received(|r| {
        r.ts.assert_clean();
        assert_eq!(r.ts.labels, ["first"]);
    });
    assert_eq!((provider.path(SECOND).n_requests(), provider.path(FIRST).n_requests()), (1, 1));
    eventually("its connection is closed", || provider.open() == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_returns_to_its_preferred_stream_without_a_gap() {
    const SPORTS: &str = "/live/anna/sports.ts";
    let provider = Provider::start();
    provider.path(FIRST).plays(Picture::new("first"));
    provider.path(SECOND).plays(Picture::new("second").pids(0x20, 0x41, 0x42).starts_at(77));
    provider.path(SPORTS).plays(Picture::new("sports"));
    let preferred = provider.playlist(&[("news", "News", FIRST), ("sports", "Sports", SPORTS)]);
    let other = provider.playlist(&[("news", "News backup", SECOND)]);
    let soon = |it: &mut domain::settings::Settings| {
        it.return_to_preferred_after = Some(std::time::Duration::from_secs(1));
    };
    let gateway = Setup::new().limited_list(&preferred, 1).limited_list(&other, 1).engine(soon).start().await;
    // The account of the preferred stream is full until this viewer leaves.
    let sports = gateway.watch("Sports").await;
    sports.sees("sports").await;
    let player = gateway.watch("News").await;
    player.sees("second").await;
    sports.leave().await;
    player.sees("first").await;
    eventually("the other stream is closed", || provider.open() == 1).await;
    eventually("its slot is released", || gateway.gateway.counts().leases == 1).await;
    assert_eq!((provider.open_on(FIRST), provider.open_on(SECOND)), (1, 0));
    player.more_bytes(200_000).await;
    player.received(|r| {
        r.ts.assert_clean();
        assert_eq!(r.ts.labels, ["second", "first"]);
        assert_eq!((r.ts.filler_packets, r.ts.declared_discontinuities), (0, 0), "nothing is missing");
        for (pid, pause) in r.ts.longest_pauses() {
            assert!(pause <= 0.1, "nothing on PID {pid:#x} for {pause:.3} s of the programme");
        }
    });
    eventually("the event", || gateway.n_events("stream_switch") == 1).await;
    let events = gateway.events();
    let switches: Vec<_> = events
        .iter()
        .filter_map(|it| match &it.body {
            EventBody::StreamSwitch { cause, gap_ms, .. } => Some((cause.as_str(), *gap_ms)),
            _ => None,
        })
        .collect();
    assert_eq!(switches, [("preferred", 0)]);
    let counts = gateway.gateway.counts();
    assert_eq!((counts.losses(), counts.switches, gateway.n_events("channel_failover")), (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switch_of_an_idle_channel_starts_nothing() {
    let (provider, gateway, target) = set_up(0).await;
    let outcome = gateway.gateway.switchboard().switch(target, SwitchTo::Next).await.unwrap();
    assert_eq!((outcome, provider.accepted()), (SwitchOutcome::NotLive, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_and_a_channel_with_the_same_number_are_two_leases() {
    // Holds T-slot.5.
    let (provider, gateway, channel) = set_up(2).await;
    let preview = Target::Stream(stream(&gateway, 0));
    let player = gateway.watch("News").await;
    player.sees("first").await;
    let switchboard = gateway.gateway.switchboard();
    let connection = Arc::new(Connection {
        id: u64::MAX,
        peer: "127.0.0.1:1".parse().unwrap(),
        cancel: tokio_util::sync::CancellationToken::new(),
        meter: ConnectionMeter::default(),
    });
    let viewer = Viewer {
        user: None,
        address: connection.peer.ip(),
        agent: "test".into(),
        identity: Identity::default(),
    };
    let watch = switchboard
        .watch(WatchRequest {
            target: preview,
            viewer,
            connection,
            seat: None,
            rendition: None,
            format: StreamFormat::Ts,
        })
        .await
        .unwrap();
    let WatchReply::Tail { mut tail, .. } = watch else { panic!("no tail: {watch:?}") };
    tokio::time::timeout(WAIT_MAX, tail.ready()).await.expect("it plays").unwrap();
    eventually("two leases", || gateway.gateway.counts().leases == 2).await;
    assert_eq!((provider.open(), provider.open_on(FIRST)), (2, 2));

    switchboard.stop(channel).await.unwrap();
    player.ended().await;
    eventually("one lease", || gateway.gateway.counts().leases == 1).await;
    assert!(tokio::time::timeout(WAIT_MAX, tail.chunk()).await.expect("it keeps playing").is_ok());
    switchboard.stop(preview).await.unwrap();
    let end = async {
        loop {
            if let Err(end) = tail.chunk().await {
                return end;
            }
        }
    };
    assert_eq!(tokio::time::timeout(WAIT_MAX, end).await.expect("it ends"), EndReason::Stopped);
    drop(tail);
    gateway.until_idle().await;
    assert_eq!(provider.open(), 0);
}

/// Tests that need ffmpeg.
mod slow {
    use std::time::Duration;

    use super::*;
    use crate::shapes::{checks, edit};
    use crate::support::signal::Clip;
    use crate::support::tools;

    /// Returns the longest time between two pictures of a recording, in seconds, as ffprobe reads it.
    async fn longest_picture_step(recording: &[u8]) -> f64 {
        let file = tools::saved(recording);
        let path = file.path().to_string_lossy().into_owned();
        let show = ["-v", "error", "-select_streams", "v", "-show_entries", "packet=pts_time"];
        let arguments = [&show[..], &["-of", "csv=p=0", &path]].concat();
        let text = tools::text_of("ffprobe", &arguments).await;
        let time = |line: &str| line.trim_end_matches(',').parse::<f64>().ok();
        let mut times: Vec<f64> = text.lines().filter_map(time).collect();
        times.sort_by(f64::total_cmp);
        assert!(times.len() > 50, "{} pictures", times.len());
        times.windows(2).map(|it| it[1] - it[0]).fold(0.0, f64::max)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_switch_with_a_second_slot_shows_no_frozen_picture() {
        let encode = ["-t", "60", "-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-c:a", "aac"];
        let size = "size=160x90:rate=25";
        let first = Clip::make(
            "switch-first",
            &["-f", "lavfi", "-i", &format!("testsrc={size}"), "-f", "lavfi", "-i", "sine"],
            &encode,
        )
        .await;
        let second = Clip::make(
            "switch-second",
            &["-f", "lavfi", "-i", &format!("testsrc2={size}"), "-f", "lavfi", "-i", "sine=frequency=880"],
            &[&encode[..], &["-output_ts_offset", "5000"]].concat(),
        )
        .await;
        let (provider, gateway, target) = set_up(2).await;
        provider.path(FIRST).plays(first);
        // It sends some of its past first, as many providers do.
        provider.path(SECOND).answers(MockResponse::play(second).with_burst(Duration::from_secs(3)));
        let player = gateway.watch("News").await;
        player.more_bytes(100_000).await;
        let switchboard = gateway.gateway.switchboard();
        for number in [1, 0] {
            let to = stream(&gateway, number);
            let outcome = switchboard.switch(target, SwitchTo::Stream(to)).await.unwrap();
            let SwitchOutcome::Switched { stream, gap_ms, .. } = outcome else { panic!("{outcome:?}") };
            assert_eq!((stream, gap_ms), (to, 0), "the old stream plays until the new one starts");
            player.more_bytes(100_000).await;
        }
        let recording = player.recording();
        let step = longest_picture_step(&recording).await;
        assert!(step <= 0.1, "{step} s between two pictures");
        let messages =
            checks::Recording::new(&edit::without_unfinished_units(&recording)).decoder_messages().await;
        assert!(messages.is_empty(), "{}", messages.join("\n"));
        assert_eq!(provider.peak(), 2);
    }
}
