//! A source fails in every possible way: the viewer keeps its connection and gets the next source.

use std::time::Duration;

use domain::settings::Settings;
use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::client::{Ended, Player};
use crate::support::eventually;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::{Clip, Mark, Picture};
use crate::support::ts_check::presentation_times;
use crate::support::upstream::{Behavior, ClosedPort, Cut, MockResponse, Provider};

const FIRST: &str = "/live/anna/first.ts";
const SECOND: &str = "/live/anna/second.ts";

fn first() -> Picture {
    Picture::new("first")
}

/// Other PIDs and another start time, as from another encoder.
fn second() -> Picture {
    Picture::new("second").pids(0x20, 0x41, 0x42).starts_at((1 << 33) - 3 * 90_000)
}

fn fast_settings(settings: &mut Settings) {
    settings.first_packet_timeout = Duration::from_secs(2);
    // Longer than the resynchronisation limit, so that the two causes can be distinguished.
    settings.stall_timeout = Duration::from_millis(1_500);
    settings.buffering_timeout = Duration::from_secs(3);
    // Long timeouts, so that a busy machine does not end the test.
    settings.start_timeout = Duration::from_secs(50);
    settings.give_up_after = Duration::from_secs(50);
}

/// Starts one channel with two streams.
async fn set_up() -> (Provider, TestGateway) {
    let provider = Provider::start();
    provider.path(FIRST).plays(first());
    provider.path(SECOND).plays(second());
    let list = provider.playlist(&[("news", "News", FIRST), ("news", "News backup", SECOND)]);
    let gateway = Setup::new().list(&list).engine(fast_settings).start().await;
    (provider, gateway)
}

/// Plays until the second stream has played for a while, and checks the whole recording.
async fn check_second_stream(player: &Player) {
    player.sees("second").await;
    player.more_bytes(50_000).await;
    player.received(|r| r.ts.assert_clean());
}

/// Returns all failures of a stream before its first packet.
fn failures_before_first_packet(provider: &Provider) -> Vec<(&'static str, MockResponse)> {
    let picture = first().frames_per_gop(1);
    vec![
        ("refuses with 401", MockResponse::status(401)),
        ("refuses with 403", MockResponse::status(403)),
        ("is not found", MockResponse::status(404)),
        ("is gone", MockResponse::status(410)),
        ("sees too many requests", MockResponse::status_with(429, "Retry-After: 60\r\n")),
        ("has a bad day", MockResponse::status(500)),
        ("is overloaded", MockResponse::status(503)),
        ("redirects to itself", MockResponse::redirect("/live/anna/loop.ts")),
        ("redirects for ever", MockResponse::redirect("/live/anna/chain-0.ts")),
        ("redirects to nowhere", MockResponse::redirect("http://[")),
        ("redirects to a file", MockResponse::redirect("file:///etc/hostname")),
        ("redirects to a closed port", MockResponse::redirect("http://127.0.0.1:1/x")),
        ("never answers", MockResponse::mute()),
        ("sends a head and nothing", MockResponse::silent_body()),
        ("sends a page", MockResponse::html()),
        ("sends an object", MockResponse::text("application/json", "{\"error\":\"expired\"}".repeat(500))),
        ("sends a playlist", MockResponse::text("video/mp2t", "#EXTM3U\n#EXT-X-VERSION:3\n".repeat(300))),
        ("sends nothing and ends", MockResponse::empty()),
        ("sends one packet and stalls", MockResponse::play(picture.clone()).until(188, Cut::Stall)),
        ("sends half a packet and ends", MockResponse::play(picture.clone()).until(94, Cut::End)),
        ("resets at once", MockResponse::play(picture).until(1, Cut::Reset)),
        ("answers after the time for it", MockResponse::play(first()).after(Duration::from_secs(30))),
        ("is text that goes on", MockResponse::text("text/plain", provider.url("/").repeat(20_000))),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_gets_the_second_stream_when_the_first_does_not_start() {
    // Holds T-fo.2 and T-view.1 for a cold start. Each kind of failure has its own channel, and all run at once.
    let provider = Provider::start();
    let closed = ClosedPort::new();
    provider.path("/live/anna/loop.ts").answers(MockResponse::redirect("/live/anna/loop.ts"));
    let chain: Vec<String> = (0..40).map(|hop| format!("/live/anna/chain-{hop}.ts")).collect();
    for pair in chain.windows(2) {
        provider.path(&pair[0]).answers(MockResponse::redirect(&pair[1]));
    }
    provider.path("/good.ts").plays(second());
    let mut list = String::from("#EXTM3U\n");
    let mut names =
        vec!["is a closed port".to_owned(), "does not speak TLS".into(), "has no such name".into()];
    let https = provider.url(FIRST).replace("http://", "https://");
    let mut addresses = vec![closed.url("/x.ts"), https, "http://no-such-host.invalid/x.ts".into()];
    for (number, (name, answer)) in failures_before_first_packet(&provider).into_iter().enumerate() {
        let path = format!("/live/anna/dead-{number}.ts");
        provider.path(&path).answers(answer);
        names.push(name.to_owned());
        addresses.push(provider.url(&path));
    }
    for (mood_name, behavior) in [
        ("is noise", Behavior::Garbage),
        ("is null packets", Behavior::OnlyNulls),
        ("is packets that nobody announced", Behavior::Unannounced),
        ("is scrambled", Behavior::Scrambled),
    ] {
        let path = format!("/live/anna/{behavior:?}.ts");
        provider.path(&path).plays(first()).behaves(behavior);
        names.push(mood_name.into());
        addresses.push(provider.url(&path));
    }
    for (name, address) in names.iter().zip(&addresses) {
        list.push_str(&format!("#EXTINF:-1 tvg-id=\"{name}\",{name}\n{address}\n"));
        list.push_str(&format!("#EXTINF:-1 tvg-id=\"{name}\",backup\n{}\n", provider.url("/good.ts")));
    }
    // With a configured limit, because without one the refusals would be taken for a limit of the account.
    let gateway = Setup::new().limited_list(&list, 1_000).engine(fast_settings).start().await;
    let mut players = Vec::new();
    for name in &names {
        players.push(gateway.watch(name).await);
    }
    for (name, player) in names.iter().zip(&players) {
        assert_eq!(player.status().await, 200, "the first stream {name}");
        player.sees("second").await;
        player.received(|r| {
            assert!(r.ts.complaints.is_empty(), "the first stream {name}: {:?}", r.ts.complaints);
            assert_eq!(r.ts.labels, ["second"], "the first stream {name}");
        });
    }
    let n_starts = || gateway.n_events("channel_start");
    eventually("each channel has started once, regardless of failures", || n_starts() == names.len()).await;
    assert!(gateway.gateway.counts().losses() >= names.len() as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_keeps_watching_when_the_first_stream_fails_in_any_way() {
    // Holds T-fo.2 and T-view.1 during playback: one connection without errors, one event with the cause.
    let cases: Vec<(&str, Picture, Failure, &str)> = vec![
        ("stalls", first(), Failure::Behavior(Behavior::Stalled), "stall"),
        ("stalls without closing", first(), Failure::Cut(Cut::Stall), "stall"),
        ("is null packets", first(), Failure::Behavior(Behavior::OnlyNulls), "stall"),
        ("is packets that nobody announced", first(), Failure::Behavior(Behavior::Unannounced), "stall"),
        ("becomes scrambled", first(), Failure::Behavior(Behavior::Scrambled), "scrambled"),
        ("is noise", first(), Failure::Behavior(Behavior::Garbage), "sync_lost"),
        ("trickles", first(), Failure::Behavior(Behavior::Trickle(0.005)), "stall"),
        ("is too slow", first().frames_per_gop(5), Failure::Behavior(Behavior::Trickle(0.2)), "clock_behind"),
        ("ends again and again", first().frames_per_gop(2), Failure::EndsAfter(Cut::End), "ended"),
        ("is reset again and again", first().frames_per_gop(2), Failure::EndsAfter(Cut::Reset), "reset"),
    ];
    let provider = Provider::start();
    let mut list = String::from("#EXTM3U\n");
    for (name, picture, failure, _) in &cases {
        let path = format!("/live/anna/{name}.ts").replace(' ', "-");
        let backup = format!("/live/anna/{name}-backup.ts").replace(' ', "-");
        let answer = MockResponse::play(picture.clone());
        provider.path(&path).answers(match failure {
            Failure::EndsAfter(cut) => answer.until(200_000, *cut),
            _ => answer,
        });
        provider.path(&backup).plays(second());
        list.push_str(&format!("#EXTINF:-1 tvg-id=\"{name}\",{name}\n{}\n", provider.url(&path)));
        list.push_str(&format!("#EXTINF:-1 tvg-id=\"{name}\",{name} backup\n{}\n", provider.url(&backup)));
    }
    let gateway = Setup::new().list(&list).engine(fast_settings).start().await;
    let mut players = Vec::new();
    for (name, ..) in &cases {
        players.push(gateway.watch(name).await);
    }
    for ((name, _, failure, _), player) in cases.iter().zip(&players) {
        player.until("the first stream", |r| r.ts.saw("first")).await;
        let path = format!("/live/anna/{name}.ts").replace(' ', "-");
        match failure {
            Failure::Behavior(behavior) => drop(provider.path(&path).behaves(*behavior)),
            Failure::Cut(cut) => drop(provider.path(&path).answers(MockResponse::mute()).cut(*cut)),
            Failure::EndsAfter(_) => {}
        }
    }
    for ((name, _, _, cause), player) in cases.iter().zip(&players) {
        player.sees("second").await;
        player.more_bytes(50_000).await;
        player.received(|r| {
            assert!(r.ts.complaints.is_empty(), "the first stream {name}: {:?}", r.ts.complaints);
            assert_eq!(r.ts.labels, ["first", "second"], "the first stream {name}");
            assert!(r.ended.is_none(), "the first stream {name}");
        });
        let of_channel = || gateway.failovers().into_iter().filter(|it| it.0 == *name).collect::<Vec<_>>();
        eventually(name, || !of_channel().is_empty()).await;
        assert_eq!(of_channel(), [((*name).into(), format!("{name} backup"), (*cause).into())]);
    }
    assert_eq!(gateway.metrics().await["headwater_failovers_total"], cases.len() as f64);
}

#[derive(Debug, Clone, Copy)]
enum Failure {
    Behavior(Behavior),
    Cut(Cut),
    /// Every connection ends in this way after a while.
    EndsAfter(Cut),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_stream_is_reopened_before_another_is_tried() {
    let (provider, gateway) = set_up().await;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    provider.path(FIRST).cut(Cut::Reset);
    eventually("a second request", || provider.path(FIRST).n_requests() == 2).await;
    eventually("the reconnect event", || gateway.n_events("channel_reconnect") == 1).await;
    player.more_bytes(100_000).await;
    player.received(|r| {
        r.ts.assert_clean();
        assert_eq!(r.ts.labels, ["first"]);
    });
    assert_eq!((provider.path(SECOND).n_requests(), gateway.n_events("channel_failover")), (0, 0));
    assert_eq!((provider.peak(), gateway.gateway.counts().reconnects), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sound_stays_with_its_picture_over_jumps_of_the_clock_after_a_reconnect() {
    // Holds T-view.7 for a viewer. Encoders that start again and ad inserters let the clock jump, and each PID passes the
    // jump at a place of its own. After a reconnect each jump moved the sound by the distance of these places, for ever.
    let provider = Provider::start();
    let every = Duration::from_secs(1);
    let picture = first().bits_per_second(300_000);
    let pictures =
        [picture.clone().jumps_by(50, every), picture.starts_at(4_000_000_000).jumps_by(-50, every)];
    let paths = ["/live/anna/on.ts", "/live/anna/back.ts"];
    for (path, picture) in paths.iter().zip(&pictures) {
        provider.path(path).plays(picture.clone());
    }
    let list = provider.playlist(&[("on", "On", paths[0]), ("back", "Back", paths[1])]);
    let gateway = Setup::new().list(&list).engine(fast_settings).start().await;
    let players = [gateway.watch("On").await, gateway.watch("Back").await];
    for player in &players {
        player.sees("first").await;
    }
    for path in paths {
        provider.path(path).cut(Cut::Reset);
    }
    const VIDEO: u16 = 0x100;
    for (player, picture) in players.iter().zip(&pictures) {
        player
            .until("three jumps of the second connection", |r| {
                let times = presentation_times(&r.bytes);
                let serial = times.first().map(|it| it.1.serial);
                let jumped = |it: &&(u16, Mark, i64)| {
                    it.0 == VIDEO && Some(it.1.serial) != serial && it.1.frame.is_multiple_of(25)
                };
                times.iter().filter(jumped).count() >= 3
            })
            .await;
        let times = player.received(|r| presentation_times(&r.bytes));
        let mut n_compared = 0;
        let mut last = None;
        let mut begins_in_a_jump = false;
        for (_, mark, shown) in times.iter().filter(|it| it.0 == VIDEO) {
            // Between the jump of its sound and that of its picture, the distance of a new connection is unknown.
            begins_in_a_jump = match last.replace(mark.serial) == Some(mark.serial) {
                true => begins_in_a_jump && !mark.frame.is_multiple_of(25),
                false => picture.sound_offset(mark.frame.into()) != 0,
            };
            if begins_in_a_jump {
                continue;
            }
            let is_its_sound = |it: &&(u16, Mark, i64)| {
                it.0 != VIDEO && (it.1.serial, it.1.frame) == (mark.serial, mark.frame)
            };
            let Some((_, _, heard)) = times.iter().find(is_its_sound) else { continue };
            let offset = (heard - shown).rem_euclid(1 << 33) as u64;
            assert_eq!(offset, picture.sound_offset(mark.frame.into()), "frame {}", mark.frame);
            n_compared += 1;
        }
        assert!(n_compared > 50, "{n_compared} frames with sound");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_with_one_stream_waits_for_it_and_the_viewer_stays() {
    let provider = Provider::start();
    provider.path(FIRST).plays(first());
    let list = provider.playlist(&[("news", "News", FIRST)]);
    let gateway = Setup::new().list(&list).engine(fast_settings).start().await;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    provider.unplug().await;
    player.until("filler", |r| r.ts.null_packets > 0).await;
    provider.plug_in();
    let before = player.received(|r| r.ts.payload_packets);
    player.until("the stream again", |r| r.ts.payload_packets > before + 200).await;
    player.received(|r| r.ts.assert_clean());
    assert_eq!(gateway.gateway.counts().clients, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn during_a_gap_viewers_get_filler_and_new_clients_wait_for_real_packets() {
    // Holds T-view.4: nothing synthetic before the first real packet, also for clients that join during a gap.
    let (provider, gateway) = set_up().await;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    provider.path(FIRST).answers(MockResponse::status(404)).cut(Cut::Reset);
    provider.path(SECOND).answers(MockResponse::status(404));
    player.until("filler", |r| r.ts.null_packets > 0).await;
    let newcomer = gateway.watch("News").await;
    let before = player.received(|r| r.ts.null_packets);
    player.until("more filler", |r| r.ts.null_packets > before).await;
    newcomer.received(|r| assert!(r.head.is_none(), "no response before the first packet"));
    provider.path(SECOND).plays(second());
    for viewer in [&player, &newcomer] {
        check_second_stream(viewer).await;
    }
    newcomer.received(|r| {
        assert_eq!((r.ts.null_packets, r.ts.labels.as_slice()), (0, &["second".to_owned()][..]));
        assert_eq!(r.head.as_ref().map(|head| head.status), Some(200));
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_no_stream_plays_the_viewer_gets_503_without_stream_data() {
    // Holds T-fo.5.
    let provider = Provider::start();
    provider.path(FIRST).answers(MockResponse::status(503));
    provider.path(SECOND).answers(MockResponse::html());
    let list = provider.playlist(&[("news", "News", FIRST), ("news", "News backup", SECOND)]);
    let short = |settings: &mut Settings| {
        settings.start_timeout = Duration::from_secs(4);
        settings.give_up_after = Duration::from_secs(4);
    };
    let gateway = Setup::new().list(&list).engine(short).start().await;
    let players = [gateway.watch("News").await, gateway.watch("News").await];
    for player in &players {
        let answer = player.answer().await;
        assert_eq!(answer.status(), 503, "{}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("x-hdhomerun-error"), Some("807 No Video Data"));
        assert!(!answer.text().contains("secret") && !answer.text().contains("/live/"), "{}", answer.text());
    }
    gateway.until_idle().await;
    eventually("the error event", || gateway.n_events("channel_error") >= 1).await;
    // Two rounds of two streams, with the allowed retries; a busy loop would cause hundreds of requests.
    assert!(provider.requests().len() <= 24, "{} requests in four seconds", provider.requests().len());
    assert_eq!(gateway.n_events("channel_start"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_takes_too_long_names_the_cause_of_the_last_attempt() {
    let provider = Provider::start();
    provider.path(FIRST).answers(MockResponse::status(503));
    let list = provider.playlist(&[("news", "News", FIRST)]);
    let short = |settings: &mut Settings| settings.start_timeout = Duration::from_secs(2);
    let gateway = Setup::new().list(&list).engine(short).start().await;
    let answer = gateway.watch("News").await.answer().await;
    assert_eq!(answer.status(), 503);
    let expected = "no stream of the channel played within 2 s: the provider answered with status 503";
    assert!(answer.text().contains(expected), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_of_a_permanently_lost_channel_is_disconnected() {
    let provider = Provider::start();
    provider.path(FIRST).plays(first());
    let list = provider.playlist(&[("news", "News", FIRST)]);
    let short = |settings: &mut Settings| settings.give_up_after = Duration::from_secs(3);
    let gateway = Setup::new().list(&list).engine(short).start().await;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    provider.unplug().await;
    assert_eq!(player.ended().await, Ended::Whole, "media servers never close a silent connection");
    player.received(|r| r.ts.assert_clean());
    gateway.until_idle().await;
    eventually("the stop event", || gateway.n_events("channel_stop") == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn torn_packets_never_reach_a_viewer() {
    let (provider, gateway) = set_up().await;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    provider.path(FIRST).behaves(Behavior::Torn);
    player.more_bytes(300_000).await;
    player.received(|r| {
        let lost_step =
            r.ts.complaints.iter().filter(|it| it.contains("sync byte") || it.contains("reserved"));
        assert_eq!(lost_step.count(), 0, "{:?}", r.ts.complaints);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_failovers_in_a_row_are_one_clean_recording() {
    let provider = Provider::start();
    let pictures = [
        Picture::new("a"),
        Picture::new("b").pids(0x30, 0x31, 0x32).starts_at(5),
        Picture::new("c").starts_at((1 << 33) - 90_000).bits_per_second(3_000_000),
        Picture::new("d").pids(0x1000, 0x101, 0x100),
    ];
    let paths = ["/live/anna/a.ts", "/live/anna/b.ts", "/live/anna/c.ts", "/live/anna/d.ts"];
    for (path, picture) in paths.iter().zip(pictures) {
        provider.path(path).answers(MockResponse::play(picture).with_burst(Duration::from_secs(1)));
    }
    let entries: Vec<_> = paths.iter().map(|path| ("news", "News", *path)).collect();
    let gateway = Setup::new().list(&provider.playlist(&entries)).engine(fast_settings).start().await;
    let player = gateway.watch("News").await;
    for (path, label) in paths.iter().zip(["a", "b", "c", "d"]) {
        player.sees(label).await;
        player.more_bytes(200_000).await;
        provider.path(path).answers(MockResponse::status(404)).cut(Cut::End);
        if label == "d" {
            break;
        }
    }
    player.received(|r| {
        r.ts.assert_clean();
        assert_eq!(r.ts.labels, ["a", "b", "c", "d"]);
    });
    eventually("three failovers", || gateway.failovers().len() == 3).await;
}

/// Starts one channel with two streams of one account. A stall is found by its silence, long before its timeout.
async fn set_up_with_limit(max_streams: u32, stall_timeout: Duration) -> (Provider, TestGateway) {
    let provider = Provider::start();
    provider.path(FIRST).plays(first());
    provider.path(SECOND).plays(second());
    let list = provider.playlist(&[("news", "News", FIRST), ("news", "News backup", SECOND)]);
    let change = |settings: &mut Settings| {
        fast_settings(settings);
        settings.stall_timeout = stall_timeout;
        settings.silence_suspected_after = Duration::from_millis(500);
        settings.buffering_timeout = Duration::from_secs(50);
    };
    let gateway = Setup::new().limited_list(&list, max_streams).engine(change).start().await;
    (provider, gateway)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_stream_is_opened_beside_a_silent_one_if_a_slot_is_free() {
    // Holds T-fo.3 where a slot is free: the stall timeout never comes into play.
    let (provider, gateway) = set_up_with_limit(2, Duration::from_secs(3_000)).await;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    provider.path(FIRST).behaves(Behavior::Stalled);
    check_second_stream(&player).await;
    eventually("the silent connection is closed", || provider.open() == 1).await;
    assert_eq!((provider.peak(), provider.path(SECOND).n_requests()), (2, 1));
    eventually("the failover event", || gateway.failovers().len() == 1).await;
    assert_eq!(gateway.failovers(), [("News".into(), "News backup".into(), "stall".into())]);
    assert_eq!(gateway.metrics().await["headwater_speculative_openings_total"], 1.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_free_slot_a_silent_stream_keeps_its_connection_until_the_stall_timeout() {
    let (provider, gateway) = set_up_with_limit(1, Duration::from_secs(2)).await;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    provider.path(FIRST).behaves(Behavior::Stalled);
    check_second_stream(&player).await;
    assert_eq!((provider.peak(), provider.open()), (1, 1));
    assert_eq!(gateway.metrics().await["headwater_speculative_openings_total"], 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_stream_that_sends_again_first_plays_on_and_the_other_is_closed() {
    let (provider, gateway) = set_up_with_limit(2, Duration::from_secs(3_000)).await;
    provider.path(SECOND).answers(MockResponse::mute());
    let player = gateway.watch("News").await;
    player.sees("first").await;
    provider.path(FIRST).behaves(Behavior::Stalled);
    eventually("the second stream is requested", || provider.path(SECOND).n_requests() == 1).await;
    provider.path(FIRST).behaves(Behavior::Healthy);
    eventually("the other connection is closed", || provider.path(SECOND).open() == 0).await;
    player.more_bytes(50_000).await;
    // The provider has left out what it did not send in time.
    player.received(|r| assert_eq!(r.ts.labels, ["first"]));
    assert_eq!((provider.peak(), provider.path(FIRST).n_requests()), (2, 1));
    assert_eq!((gateway.gateway.counts().losses(), gateway.n_events("channel_failover")), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_of_a_few_seconds_play_without_growing_gaps() {
    // Holds T-fo.8, its half about responses that end.
    let provider = Provider::start();
    // At the rate of the picture each response lasts for 2.4 s.
    provider.path(FIRST).answers(MockResponse::play(first()).until(300_000, Cut::End));
    let list = provider.playlist(&[("news", "News", FIRST)]);
    let gateway = Setup::new().list(&list).engine(fast_settings).start().await;
    let player = gateway.watch("News").await;
    eventually("the ninth response", || provider.path(FIRST).n_requests() >= 9).await;
    player.more_bytes(50_000).await;
    player.received(|r| {
        let longest = r.longest_silence_of_payload();
        assert!(longest < Duration::from_millis(1_200), "a gap of {longest:?}");
        assert_eq!(r.ts.labels, ["first"]);
    });
    assert_eq!((provider.peak(), gateway.n_events("channel_failover")), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_first_packet_is_waited_for_again_after_a_drop() {
    let provider = Provider::start();
    let slow = MockResponse::play(first()).after(Duration::from_millis(2_500));
    provider.path(FIRST).answers(slow);
    let list = provider.playlist(&[("news", "News", FIRST)]);
    let impatient = |settings: &mut Settings| {
        fast_settings(settings);
        settings.first_packet_timeout = Duration::from_secs(1);
    };
    let gateway = Setup::new().list(&list).engine(impatient).start().await;
    let player = gateway.watch("News").await;
    for n_requests in [2, 3] {
        player.more_bytes(300_000).await;
        provider.path(FIRST).cut(Cut::End);
        eventually("the next request", || provider.path(FIRST).n_requests() >= n_requests).await;
        player.more_bytes(100_000).await;
        assert_eq!(provider.path(FIRST).n_requests(), n_requests, "each connection was waited for");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_in_bursts_with_a_pause_costs_few_connections() {
    // Holds T-fo.8, its half about pauses.
    let provider = Provider::start();
    provider.path(FIRST).answers(MockResponse::play(first()).in_bursts(Duration::from_secs(3)));
    let list = provider.playlist(&[("news", "News", FIRST)]);
    // Long timeouts, so that a busy machine does not end the test.
    let patient = |settings: &mut Settings| {
        settings.start_timeout = Duration::from_secs(50);
        settings.give_up_after = Duration::from_secs(50);
    };
    let gateway = Setup::new().limited_list(&list, 2).engine(patient).start().await;
    let player = gateway.watch("News").await;
    player.more_bytes(700_000).await;
    provider.path(FIRST).behaves(Behavior::Stalled);
    eventually("a second connection", || provider.path(FIRST).n_requests() >= 2).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    provider.path(FIRST).behaves(Behavior::Healthy);
    // Three bursts of the last connection, whose rhythm is that of the first.
    player.more_bytes(1_100_000).await;
    let n_requests = provider.path(FIRST).n_requests();
    assert!(n_requests <= 3, "{n_requests} connections");
    assert!(provider.peak() <= 2, "{} at once", provider.peak());
}

/// Starts one channel with two streams, of which this is the second.
async fn set_up_for_picture(backup: Picture) -> (Provider, TestGateway) {
    let provider = Provider::start();
    provider.path(FIRST).plays(first());
    provider.path(SECOND).plays(backup);
    let list = provider.playlist(&[("news", "News", FIRST), ("news", "News backup", SECOND)]);
    let gateway = Setup::new().list(&list).start().await;
    (provider, gateway)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_picture_that_ends_is_replaced_and_named() {
    // Holds T-fo.9.
    let (provider, gateway) = set_up_for_picture(second()).await;
    let player = gateway.watch("News").await;
    player.until("three seconds of the first", |r| r.ts.programme_seconds() > 3.0).await;
    provider.path(FIRST).behaves(Behavior::NoPicture);
    player.sees("second").await;
    player.more_bytes(50_000).await;
    eventually("the failover event", || gateway.failovers().len() == 1).await;
    assert_eq!(gateway.failovers(), [("News".into(), "News backup".into(), "picture_lost".into())]);
    assert_eq!(provider.path(SECOND).n_requests(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_whose_streams_all_lack_the_picture_plays_on_with_sound() {
    let (provider, gateway) = set_up_for_picture(Picture::new("second")).await;
    provider.path(FIRST).behaves(Behavior::NoPicture);
    provider.path(SECOND).behaves(Behavior::NoPicture);
    let player = gateway.watch("News").await;
    eventually("the change", || gateway.failovers().len() == 1).await;
    // The second one has 5 s to show a picture, and stays without it.
    tokio::time::sleep(Duration::from_secs(9)).await;
    player.more_bytes(50_000).await;
    assert_eq!(gateway.failovers(), [("News".into(), "News backup".into(), "picture_lost".into())]);
    assert_eq!((provider.path(FIRST).n_requests(), provider.path(SECOND).n_requests()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_encoder_is_shown_in_health_and_left_with_the_setting_of_its_stream() {
    let (provider, gateway) = set_up_for_picture(Picture::new("second")).await;
    provider.path(FIRST).plays(Clip::frozen().await);
    provider.path(SECOND).plays(Clip::plain().await);
    let admin = Api::first_admin(&gateway).await;
    let listed = admin.get("/api/channels/streams/?name=News&ordering=id").await.body;
    let stream = listed["results"].as_array().and_then(|it| it.iter().find(|it| it["name"] == "News"));
    let stream = format!("/api/channels/streams/{}/", stream.unwrap_or_else(|| panic!("{listed}"))["id"]);
    let player = gateway.watch("News").await;
    let mut health = Value::Null;
    for _ in 0..100 {
        health = admin.get(&stream).await.body["health"].clone();
        if health["still_picture_at"].is_string() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(health["still_picture_at"].is_string(), "{health}");
    assert_eq!((gateway.failovers().len(), provider.path(SECOND).n_requests()), (0, 0));
    assert_eq!(admin.patch(&stream, json!({ "leave_still_picture": true })).await.status, 200);
    eventually("the failover", || gateway.failovers().len() == 1).await;
    assert_eq!(gateway.failovers(), [("News".into(), "News backup".into(), "picture_still".into())]);
    player.more_bytes(50_000).await;
}
