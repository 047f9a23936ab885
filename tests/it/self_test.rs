//! Tests of the test tools against each other.

use std::time::Duration;

use crate::support::client::{Ended, Player, Reading, Request, fetch};
use crate::support::eventually;
use crate::support::signal::{Picture, Programme};
use crate::support::ts_check::Checker;
use crate::support::upstream::{Behavior, ClosedPort, Cut, MockResponse, Provider};

const NEWS: &str = "/live/anna/news.ts";

/// Returns a minute of a picture, without a socket.
fn minute(picture: Picture) -> Vec<u8> {
    let mut bytes = Vec::new();
    Programme::from(picture).tune_in(Duration::from_secs(5)).take(Duration::from_secs(60), &mut bytes);
    bytes
}

#[test]
fn the_synthetic_programme_is_clean_over_a_clock_wrap() {
    let nearly_over = (1_u64 << 33) - 20 * 90_000;
    for picture in
        [Picture::new("a"), Picture::new("a").radio(), Picture::new("a").bits_per_second(8_000_000)]
    {
        let checked = Checker::from_bytes(&minute(picture.starts_at(nearly_over)));
        // It starts in the middle of a group of pictures, as providers do; that is the only complaint.
        let others: Vec<_> =
            checked.complaints.iter().filter(|c| !c.contains("random-access point")).collect();
        assert!(others.is_empty(), "{others:?}");
        assert_eq!(checked.labels, ["a"]);
        assert!((checked.programme_seconds() - 60.0).abs() < 0.1, "{}", checked.programme_seconds());
    }
}

#[test]
fn the_synthetic_programme_has_the_requested_bit_rate() {
    for bits in [500_000, 2_000_000, 8_000_000] {
        let sent = minute(Picture::new("a").bits_per_second(bits)).len() as u64 * 8 / 60;
        assert!(sent.abs_diff(bits) < bits / 10, "{sent} for {bits}");
    }
}

#[test]
fn the_checker_reports_every_kind_of_damage() {
    let good = minute(Picture::new("a").frames_per_gop(1));
    let complaint = |bytes: &[u8]| Checker::from_bytes(bytes).complaints.join("; ");
    let changed = |at: usize, change: &dyn Fn(&mut [u8])| {
        let mut bytes = good.clone();
        change(&mut bytes[at * 188..(at + 1) * 188]);
        complaint(&bytes)
    };
    let without = |at: usize| {
        let mut bytes = good.clone();
        bytes.drain(at * 188..(at + 1) * 188);
        complaint(&bytes)
    };
    assert_eq!(complaint(&good), "");
    assert!(without(0).contains("before the first PAT"));
    assert!(without(40).contains("undeclared"), "{}", without(40));
    assert!(complaint(&good[..good.len() - 1]).contains("187 bytes into a packet"));
    assert!(changed(9, &|packet| packet[0] = 0).contains("sync byte"));
    assert!(changed(9, &|packet| packet[3] &= 0x0F).contains("00"));
    assert!(changed(1, &|packet| packet[20] ^= 1).contains("checksum"));
    let again = [&good[..], &good[..]].concat();
    assert!(complaint(&again).contains("the PCR goes back by 60"), "{}", complaint(&again));
    assert!(complaint(&again).contains("PID 0x100 goes back by"));
    let null = [&[0x47, 0x1F, 0xFF, 0x10][..], &[0; 184]].concat();
    assert!(complaint(&[&null[..], &good[..]].concat()).contains("null packet before the first real one"));
}

#[test]
fn the_checker_reports_lost_packets_even_if_the_counters_are_continuous() {
    let numbered = |connection: u64, seconds: u64| {
        let programme = Programme::from(Picture::new("a").frames_per_gop(1).bits_per_second(4_000_000));
        let mut bytes = Vec::new();
        let tuned = programme.tune_in(Duration::from_secs(seconds));
        tuned.numbered(connection).take(Duration::from_secs(2), &mut bytes);
        bytes
    };
    let good = numbered(1, 5);
    assert_eq!(Checker::from_bytes(&good).complaints, Vec::<String>::new());
    // As many video packets as the period of the continuity counter, from the middle of a frame.
    let pid = |packet: &[u8]| u16::from_be_bytes([packet[1] & 0x1F, packet[2]]);
    let pictures = good.chunks(188).enumerate().filter(|(_, packet)| pid(packet) == 0x100);
    let lost: Vec<_> = pictures.map(|(at, _)| at).skip(200).take(16).collect();
    let kept = good.chunks(188).enumerate().filter(|(at, _)| !lost.contains(at));
    let kept: Vec<u8> = kept.flat_map(|(_, packet)| packet.to_vec()).collect();
    let complaints = Checker::from_bytes(&kept).complaints;
    assert!(
        complaints.len() == 1 && complaints[0].contains("lost something of a of connection 1"),
        "{complaints:?}"
    );
    // Another connection may start anywhere.
    let complaints = Checker::from_bytes(&[&good[..], &numbered(2, 9)[..]].concat()).complaints;
    assert!(!complaints.iter().any(|it| it.contains("lost")), "{complaints:?}");
}

#[tokio::test]
async fn a_player_gets_a_clean_programme_in_every_framing() {
    let provider = Provider::start();
    for answer in [MockResponse::play(Picture::new("news").frames_per_gop(1)), {
        MockResponse::play(Picture::new("news").frames_per_gop(1)).chunked()
    }] {
        provider.path(NEWS).answers(answer.with_burst(Duration::from_secs(2)));
        let player = Player::watch(provider.address, NEWS).await;
        player.sees("news").await;
        player.more_bytes(100_000).await;
        player.received(|r| r.ts.assert_clean());
        assert_eq!(player.status().await, 200);
        player.leave().await;
        eventually("the provider's connection to close", || provider.open() == 0).await;
    }
    assert_eq!(provider.peak_of("anna"), 1);
    let seen = provider.path(NEWS).requests();
    assert_eq!(seen.iter().map(|it| it.method.as_str()).collect::<Vec<_>>(), ["GET", "GET"]);
    assert!(provider.began() < seen[0].at && seen[0].at < seen[1].at);
}

#[tokio::test]
async fn the_provider_counts_simultaneous_connections() {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    for _ in 0..20 {
        let player = Player::watch(provider.address, NEWS).await;
        player.more_bytes(1_000).await;
        player.reset().await;
    }
    assert_eq!((provider.peak(), provider.peak_of("anna")), (1, 1));
    let first = Player::watch(provider.address, NEWS).await;
    let second = Player::watch(provider.address, NEWS).await;
    first.more_bytes(1_000).await;
    second.more_bytes(1_000).await;
    assert_eq!((provider.open(), provider.peak_of("anna"), provider.path(NEWS).open()), (2, 2, 2));
}

#[tokio::test]
async fn the_provider_enforces_its_limit_and_counts_closed_connections_for_a_while() {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    provider.limit("anna", 1, 403, Duration::from_millis(700));
    let first = Player::watch(provider.address, NEWS).await;
    first.more_bytes(1_000).await;
    assert_eq!(fetch(provider.address, Request::get(NEWS)).await.status(), 403);
    first.leave().await;
    assert_eq!(fetch(provider.address, Request::get(NEWS)).await.status(), 403);
    let deadline = tokio::time::Instant::now() + super::support::WAIT_MAX;
    while Player::watch(provider.address, NEWS).await.status().await != 200 {
        assert!(tokio::time::Instant::now() < deadline, "the slot was never released");
    }
    assert!(provider.refusals() >= 2);
}

#[tokio::test]
async fn the_provider_misbehaves_as_configured() {
    let provider = Provider::start();
    let at = provider.address;
    let path = provider.path(NEWS);
    path.answers(MockResponse::html());
    assert!(fetch(at, Request::get(NEWS)).await.text().starts_with("<!DOCTYPE html>"));
    path.answers(MockResponse::redirect("/elsewhere"));
    assert_eq!(fetch(at, Request::get(NEWS)).await.header("location"), Some("/elsewhere"));
    path.answers(MockResponse::play(Picture::new("news")).until(10_000, Cut::End));
    assert_eq!(fetch(at, Request::get(NEWS)).await.bytes.len(), 10_000);
    path.plays(Picture::new("news"));

    let player = Player::watch(at, NEWS).await;
    player.sees("news").await;
    path.behaves(Behavior::OnlyNulls);
    player.until("null packets", |r| r.ts.null_packets > 100).await;
    path.behaves(Behavior::Garbage);
    player.until("garbage", |r| r.ts.complaints.iter().any(|c| c.contains("sync byte"))).await;
    path.behaves(Behavior::Stalled);
    tokio::time::sleep(Duration::from_millis(300)).await;
    path.behaves(Behavior::Healthy);
    let before = player.received(|r| r.ts.payload_packets);
    player.until("the programme again", |r| r.ts.payload_packets > before + 10).await;
    assert!(player.received(|r| r.longest_silence_of_payload()) >= Duration::from_millis(200));
    path.behaves(Behavior::Healthy).cut(Cut::Reset);
    assert_eq!(player.ended().await, Ended::Reset);

    let player = Player::watch(at, NEWS).await;
    player.sees("news").await;
    path.cut(Cut::End);
    assert_eq!(player.ended().await, Ended::Whole);
    player.received(|r| assert_ne!(r.n_bytes % 188, 0, "a cut leaves a part of a packet"));
}

#[tokio::test]
async fn an_unplugged_provider_refuses_and_comes_back_on_the_same_port() {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    let player = Player::watch(provider.address, NEWS).await;
    player.sees("news").await;
    provider.unplug().await;
    assert_eq!(player.ended().await, Ended::Reset);
    let refused = tokio::net::TcpStream::connect(provider.address).await;
    assert_eq!(refused.expect_err("the port is closed").kind(), std::io::ErrorKind::ConnectionRefused);
    provider.plug_in();
    Player::watch(provider.address, NEWS).await.sees("news").await;
    assert!(ClosedPort::new().url("/x").starts_with("http://127.0.0.1:"));
}

#[tokio::test]
async fn a_player_that_stops_reading_blocks_the_sender_and_can_resume() {
    let provider = Provider::start();
    provider.path(NEWS).answers(MockResponse::play(Picture::new("news").bits_per_second(200_000_000)));
    let request = Request::get(NEWS).receive_buffer(8 << 10).without_recording();
    let player = Player::ask(provider.address, request).await;
    player.sees("news").await;
    player.read(Reading::Nothing);
    let before = player.received(|r| r.n_bytes);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let after = player.received(|r| r.n_bytes);
    assert!(after - before <= 64 << 10, "at most one read was in progress");
    player.read(Reading::Freely);
    player.more_bytes(10_000_000).await;
}

/// These need ffmpeg.
mod slow {
    use super::*;
    use crate::support::signal::Clip;
    use crate::support::tools;

    #[tokio::test]
    async fn a_clip_is_paced_by_its_own_clock_and_ffprobe_reads_it() {
        let clip = Clip::make(
            "self-test-mpeg2",
            &["-f", "lavfi", "-i", "testsrc=size=320x180:rate=25", "-f", "lavfi", "-i", "sine=frequency=440"],
            &["-t", "4", "-c:v", "mpeg2video", "-g", "12", "-b:v", "600k", "-c:a", "mp2"],
        )
        .await;
        assert!((3.0..4.5).contains(&clip.seconds()), "{}", clip.seconds());
        Checker::from_bytes(clip.bytes()).assert_clean();
        let provider = Provider::start();
        provider.path(NEWS).plays(clip.clone());
        let player = Player::watch(provider.address, NEWS).await;
        let answer = player.answer().await;
        assert_eq!(answer.bytes, clip.bytes());
        let file = tools::saved(&answer.bytes);
        let path = file.path().to_string_lossy().into_owned();
        let arguments = ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", &path];
        assert!(tools::text_of("ffprobe", &arguments).await.contains("mpeg2video"));
    }
}
