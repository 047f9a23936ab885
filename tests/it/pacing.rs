//! Sources that do not send evenly: in bursts, or faster than real time.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::client::{Player, Reading};
use crate::support::eventually;
use crate::support::gateway::Setup;
use crate::support::signal::{Picture, Programme};
use crate::support::upstream::{Cut, MockResponse, Provider};

const PATH: &str = "/live/anna/first.ts";
const BACKUP: &str = "/live/anna/second.ts";
const PACKET: usize = 188;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_sends_bursts_of_three_seconds_is_kept() {
    let provider = Provider::start();
    provider.path(PATH).answers(MockResponse::play(Picture::new("first")).in_bursts(Duration::from_secs(3)));
    provider.path(BACKUP).plays(Picture::new("second"));
    let list = provider.playlist(&[("news", "News", PATH), ("news", "News backup", BACKUP)]);
    let settings = |it: &mut domain::settings::Settings| {
        // Both shorter than the pause between two bursts.
        it.stall_timeout = Duration::from_millis(2_500);
        it.buffering_timeout = Duration::from_secs(2);
    };
    let gateway = Setup::new().list(&list).engine(settings).start().await;
    let player = gateway.watch("News").await;
    // Four bursts of 1 Mbit/s.
    player.until("four bursts", |r| r.n_bytes > 1_400_000 || r.ts.saw("second")).await;
    player.received(|r| {
        r.ts.assert_clean();
        assert_eq!(r.ts.labels, ["first"]);
    });
    assert_eq!(gateway.failovers(), []);
    assert_eq!(provider.accepted(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_viewer_gets_all_of_a_file_that_a_web_server_sends_as_fast_as_it_can() {
    // 8 Mbit/s, so that the kernel buffers hold only a small part of it.
    let mut file = Vec::new();
    let programme = Programme::from(Picture::new("file").bits_per_second(8_000_000));
    programme.tune_in(Duration::ZERO).take(Duration::from_secs(14), &mut file);
    let provider = Provider::start();
    provider.path(PATH).answers(MockResponse::recording(&file));
    let settings = |it: &mut domain::settings::Settings| {
        it.recording_lead_seconds = Duration::from_secs(4);
        it.ring_seconds = Duration::from_secs(2);
        it.new_client_behind_seconds = Duration::from_secs(1);
    };
    let list = provider.playlist(&[("file", "File", PATH)]);
    let gateway = Setup::new().list(&list).engine(settings).start().await;
    // Little faster than the programme, like a player without a large buffer.
    let request = gateway.get("File").receive_buffer(64 << 10).reading(Reading::BytesPerSecond(1_250_000));
    let player = Player::ask(gateway.address, request).await;
    // The first packets are replaced by a preamble.
    let rest = &file[20 * PACKET..];
    eventually("the whole file", || {
        assert!(gateway.gateway.counts().ring_bytes <= 16 << 20, "the buffer keeps its bounds");
        player.received(|r| {
            assert!(r.ended.is_none() && r.ts.complaints.is_empty(), "{:?} {:?}", r.ended, r.ts.complaints);
            r.n_bytes > file.len() as u64
        })
    })
    .await;
    let received = player.recording();
    // More than a picture, because packets within a picture are alike.
    let beginning = &rest[..500 * PACKET];
    let at =
        received.windows(beginning.len()).position(|it| it == beginning).expect("the beginning of the file");
    let packets = received[at..].chunks_exact(PACKET).filter(|it| it[1..3] != [0x1F, 0xFF]);
    assert!(packets.flatten().zip(rest).all(|(received, sent)| received == sent), "a part is missing");
    assert_eq!(gateway.gateway.counts().misses, 0);
}

/// Returns the clock references of a transport stream, in seconds.
fn clocks(ts: &[u8]) -> Vec<f64> {
    let pcr = |it: &[u8]| {
        let has_pcr = it[3] & 0x20 != 0 && it[4] > 6 && it[5] & 0x10 != 0;
        has_pcr.then(|| f64::from(u32::from_be_bytes([it[6], it[7], it[8], it[9]])) / 45_000.0)
    };
    ts.chunks_exact(PACKET).filter_map(pcr).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_at_the_rate_of_the_programme_sees_no_jump_over_reconnects_with_bursts() {
    const BURST: Duration = Duration::from_secs(6);
    // Nine seconds of programme each: six of the past, and three of the present.
    let response =
        MockResponse::play(Picture::new("first")).with_burst_at(BURST, 4.0).until(1_200_000, Cut::End);
    let provider = Provider::start();
    provider.path(PATH).answers(response);
    let list = provider.playlist(&[("news", "News", PATH)]);
    let gateway = Setup::new().list(&list).start().await;
    let began = Instant::now();
    let fast = gateway.watch("News").await;
    let request = gateway.get("News").receive_buffer(64 << 10).reading(Reading::BytesPerSecond(150_000));
    let slow = Player::ask(gateway.address, request).await;
    eventually("five responses", || provider.accepted() >= 5).await;
    for (what, player) in [("fast", &fast), ("slow", &slow)] {
        // Every picture and every sound once: the provider numbers those of all its connections alike.
        player.received(|r| r.ts.assert_clean());
        let clocks = clocks(&player.recording());
        for step in clocks.windows(2).map(|it| it[1] - it[0]) {
            assert!((0.0..=5.0).contains(&step), "a step of {step} s for the {what} viewer");
        }
        let lead = clocks.last().unwrap() - clocks[0] - began.elapsed().as_secs_f64();
        assert!(lead <= (BURST + Duration::from_secs(3)).as_secs_f64(), "{lead} s for the {what} viewer");
    }
    assert_eq!(gateway.gateway.counts().misses, 0);
}
