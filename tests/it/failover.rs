//! A source fails in one of all the ways there are: the viewer keeps its connection and sees the next one.

use std::time::Duration;

use domain::settings::Settings;

use crate::support::client::{Ended, Player};
use crate::support::eventually;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{Answer, ClosedPort, Cut, Mood, Provider};

const FIRST: &str = "/live/anna/first.ts";
const SECOND: &str = "/live/anna/second.ts";

fn first() -> Picture {
    Picture::new("first")
}

/// Other PIDs, another start time: as if it came from another encoder.
fn second() -> Picture {
    Picture::new("second").pids(0x20, 0x41, 0x42).starts_at((1 << 33) - 3 * 90_000)
}

fn brisk(settings: &mut Settings) {
    settings.first_packet_timeout = Duration::from_secs(2);
    // Longer than a source may be out of step, so that the two can be told apart.
    settings.stall_timeout = Duration::from_millis(1_500);
    settings.buffering_timeout = Duration::from_secs(3);
    // However busy the machine is, these do not end the story.
    settings.start_timeout = Duration::from_secs(50);
    settings.give_up_after = Duration::from_secs(50);
}

/// One channel of two streams.
async fn house() -> (Provider, TestGateway) {
    let provider = Provider::start();
    provider.path(FIRST).plays(first());
    provider.path(SECOND).plays(second());
    let list = provider.playlist(&[("news", "News", FIRST), ("news", "News backup", SECOND)]);
    let gateway = Setup::new().list(&list).engine(brisk).start().await;
    (provider, gateway)
}

/// Plays until the second stream has been on for a while, and says what a strict reader thinks of it all.
async fn sees_the_second(player: &Player) {
    player.sees("second").await;
    player.more_bytes(50_000).await;
    player.received(|r| r.ts.assert_clean());
}

/// What can be wrong with a stream before it has played at all.
fn dead_on_arrival(provider: &Provider) -> Vec<(&'static str, Answer)> {
    let picture = first().frames_per_gop(1);
    vec![
        ("refuses with 401", Answer::status(401)),
        ("refuses with 403", Answer::status(403)),
        ("is not found", Answer::status(404)),
        ("is gone", Answer::status(410)),
        ("sees too many requests", Answer::status_with(429, "Retry-After: 60\r\n")),
        ("has a bad day", Answer::status(500)),
        ("is overloaded", Answer::status(503)),
        ("redirects to itself", Answer::redirect("/live/anna/loop.ts")),
        ("redirects for ever", Answer::redirect("/live/anna/chain-0.ts")),
        ("redirects to nowhere", Answer::redirect("http://[")),
        ("redirects to a file", Answer::redirect("file:///etc/hostname")),
        ("redirects to a closed port", Answer::redirect("http://127.0.0.1:1/x")),
        ("never answers", Answer::mute()),
        ("sends a head and nothing", Answer::silent_body()),
        ("sends a page", Answer::html()),
        ("sends an object", Answer::text("application/json", "{\"error\":\"expired\"}".repeat(500))),
        ("sends a playlist", Answer::text("video/mp2t", "#EXTM3U\n#EXT-X-VERSION:3\n".repeat(300))),
        ("sends nothing and ends", Answer::empty()),
        ("sends one packet and stalls", Answer::play(picture.clone()).until(188, Cut::Stall)),
        ("sends half a packet and ends", Answer::play(picture.clone()).until(94, Cut::End)),
        ("resets at once", Answer::play(picture).until(1, Cut::Reset)),
        ("answers after the time for it", Answer::play(first()).after(Duration::from_secs(30))),
        ("is text that goes on", Answer::text("text/plain", provider.url("/").repeat(20_000))),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_gets_the_second_stream_when_the_first_is_dead_on_arrival() {
    // Holds T-fo.2 and T-view.1 for a cold start. All at once: each kind of failure is a channel of its own.
    let provider = Provider::start();
    let closed = ClosedPort::new();
    provider.path("/live/anna/loop.ts").answers(Answer::redirect("/live/anna/loop.ts"));
    let chain: Vec<String> = (0..40).map(|hop| format!("/live/anna/chain-{hop}.ts")).collect();
    for pair in chain.windows(2) {
        provider.path(&pair[0]).answers(Answer::redirect(&pair[1]));
    }
    provider.path("/good.ts").plays(second());
    let mut list = String::from("#EXTM3U\n");
    let mut names =
        vec!["is a closed port".to_owned(), "does not speak TLS".into(), "has no such name".into()];
    let https = provider.url(FIRST).replace("http://", "https://");
    let mut addresses = vec![closed.url("/x.ts"), https, "http://no-such-host.invalid/x.ts".into()];
    for (number, (name, answer)) in dead_on_arrival(&provider).into_iter().enumerate() {
        let path = format!("/live/anna/dead-{number}.ts");
        provider.path(&path).answers(answer);
        names.push(name.to_owned());
        addresses.push(provider.url(&path));
    }
    for (mood_name, mood) in [
        ("is noise", Mood::Garbage),
        ("is null packets", Mood::OnlyNulls),
        ("is packets that nobody announced", Mood::Unannounced),
    ] {
        let path = format!("/live/anna/{mood:?}.ts");
        provider.path(&path).plays(first()).is_now(mood);
        names.push(mood_name.into());
        addresses.push(provider.url(&path));
    }
    for (name, address) in names.iter().zip(&addresses) {
        list.push_str(&format!("#EXTINF:-1 tvg-id=\"{name}\",{name}\n{address}\n"));
        list.push_str(&format!("#EXTINF:-1 tvg-id=\"{name}\",backup\n{}\n", provider.url("/good.ts")));
    }
    let gateway = Setup::new().list(&list).engine(brisk).start().await;
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
    let starts = gateway.n_events("channel_start");
    assert_eq!(starts, names.len(), "each channel has started once, whatever it took");
    assert!(gateway.gateway.counts().losses >= names.len() as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_keeps_watching_when_the_first_stream_fails_in_any_way() {
    // Holds T-fo.2 and T-view.1 in the middle of play: one connection, no error in it, one event with the cause.
    let cases: Vec<(&str, Picture, Trouble, &str)> = vec![
        ("stalls", first(), Trouble::Mood(Mood::Stalled), "stall"),
        ("stalls without closing", first(), Trouble::Cut(Cut::Stall), "stall"),
        ("is null packets", first(), Trouble::Mood(Mood::OnlyNulls), "stall"),
        ("is packets that nobody announced", first(), Trouble::Mood(Mood::Unannounced), "stall"),
        ("is noise", first(), Trouble::Mood(Mood::Garbage), "sync_lost"),
        ("trickles", first(), Trouble::Mood(Mood::Trickle(0.005)), "stall"),
        ("is too slow", first().frames_per_gop(5), Trouble::Mood(Mood::Trickle(0.2)), "clock_behind"),
        ("ends again and again", first().frames_per_gop(2), Trouble::Fate(Cut::End), "ended"),
        ("is reset again and again", first().frames_per_gop(2), Trouble::Fate(Cut::Reset), "reset"),
    ];
    let provider = Provider::start();
    let mut list = String::from("#EXTM3U\n");
    for (name, picture, trouble, _) in &cases {
        let path = format!("/live/anna/{name}.ts").replace(' ', "-");
        let backup = format!("/live/anna/{name}-backup.ts").replace(' ', "-");
        let answer = Answer::play(picture.clone());
        provider.path(&path).answers(match trouble {
            Trouble::Fate(cut) => answer.until(200_000, *cut),
            _ => answer,
        });
        provider.path(&backup).plays(second());
        list.push_str(&format!("#EXTINF:-1 tvg-id=\"{name}\",{name}\n{}\n", provider.url(&path)));
        list.push_str(&format!("#EXTINF:-1 tvg-id=\"{name}\",{name} backup\n{}\n", provider.url(&backup)));
    }
    let gateway = Setup::new().list(&list).engine(brisk).start().await;
    let mut players = Vec::new();
    for (name, ..) in &cases {
        players.push(gateway.watch(name).await);
    }
    for ((name, _, trouble, _), player) in cases.iter().zip(&players) {
        player.until("the first stream", |r| r.ts.saw("first")).await;
        let path = format!("/live/anna/{name}.ts").replace(' ', "-");
        match trouble {
            Trouble::Mood(mood) => drop(provider.path(&path).is_now(*mood)),
            Trouble::Cut(cut) => drop(provider.path(&path).answers(Answer::mute()).cut(*cut)),
            Trouble::Fate(_) => {}
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
enum Trouble {
    Mood(Mood),
    Cut(Cut),
    /// Every connection ends like this after a while.
    Fate(Cut),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_broke_off_is_opened_again_before_another_is_tried() {
    let (provider, gateway) = house().await;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    provider.path(FIRST).cut(Cut::Reset);
    eventually("a second request", || provider.path(FIRST).n_requests() == 2).await;
    eventually("the reconnect to be told", || gateway.n_events("channel_reconnect") == 1).await;
    player.more_bytes(100_000).await;
    player.received(|r| {
        r.ts.assert_clean();
        assert_eq!(r.ts.labels, ["first"]);
    });
    assert_eq!((provider.path(SECOND).n_requests(), gateway.n_events("channel_failover")), (0, 0));
    assert_eq!((provider.peak(), gateway.gateway.counts().reconnects), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_with_one_stream_waits_for_it_and_the_viewer_stays() {
    let provider = Provider::start();
    provider.path(FIRST).plays(first());
    let list = provider.playlist(&[("news", "News", FIRST)]);
    let gateway = Setup::new().list(&list).engine(brisk).start().await;
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
async fn during_a_gap_the_viewer_gets_filler_and_a_newcomer_waits_for_the_real_thing() {
    // Holds T-view.4: nothing synthetic before the first real packet, also for those who come in a gap.
    let (provider, gateway) = house().await;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    provider.path(FIRST).answers(Answer::status(404)).cut(Cut::Reset);
    provider.path(SECOND).answers(Answer::status(404));
    player.until("filler", |r| r.ts.null_packets > 0).await;
    let newcomer = gateway.watch("News").await;
    let before = player.received(|r| r.ts.null_packets);
    player.until("more filler", |r| r.ts.null_packets > before).await;
    newcomer.received(|r| assert!(r.head.is_none(), "no status before there is something to see"));
    provider.path(SECOND).plays(second());
    for viewer in [&player, &newcomer] {
        sees_the_second(viewer).await;
    }
    newcomer.received(|r| {
        assert_eq!((r.ts.null_packets, r.ts.labels.as_slice()), (0, &["second".to_owned()][..]));
        assert_eq!(r.head.as_ref().map(|head| head.status), Some(200));
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_nothing_plays_the_viewer_gets_503_and_not_a_byte_of_stream() {
    // Holds T-fo.5.
    let provider = Provider::start();
    provider.path(FIRST).answers(Answer::status(503));
    provider.path(SECOND).answers(Answer::html());
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
    gateway.is_quiet().await;
    eventually("the error to be told", || gateway.n_events("channel_error") >= 1).await;
    // Two rounds of two streams, with the retries that are allowed; a hot loop would show hundreds.
    assert!(provider.requests().len() <= 24, "{} requests in four seconds", provider.requests().len());
    assert_eq!(gateway.n_events("channel_start"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_of_a_channel_that_is_lost_for_good_is_let_go() {
    let provider = Provider::start();
    provider.path(FIRST).plays(first());
    let list = provider.playlist(&[("news", "News", FIRST)]);
    let short = |settings: &mut Settings| settings.give_up_after = Duration::from_secs(3);
    let gateway = Setup::new().list(&list).engine(short).start().await;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    provider.unplug().await;
    assert_eq!(player.ended().await, Ended::Whole, "media servers keep a silent tuner for ever");
    player.received(|r| r.ts.assert_clean());
    gateway.is_quiet().await;
    eventually("the stop to be told", || gateway.n_events("channel_stop") == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn torn_packets_never_reach_a_viewer() {
    let (provider, gateway) = house().await;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    provider.path(FIRST).is_now(Mood::Torn);
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
        provider.path(path).answers(Answer::play(picture).with_burst(Duration::from_secs(1)));
    }
    let entries: Vec<_> = paths.iter().map(|path| ("news", "News", *path)).collect();
    let gateway = Setup::new().list(&provider.playlist(&entries)).engine(brisk).start().await;
    let player = gateway.watch("News").await;
    for (path, label) in paths.iter().zip(["a", "b", "c", "d"]) {
        player.sees(label).await;
        player.more_bytes(200_000).await;
        provider.path(path).answers(Answer::status(404)).cut(Cut::End);
        if label == "d" {
            break;
        }
    }
    player.received(|r| {
        r.ts.assert_clean();
        assert_eq!(r.ts.labels, ["a", "b", "c", "d"]);
    });
    assert_eq!(gateway.failovers().len(), 3);
}
