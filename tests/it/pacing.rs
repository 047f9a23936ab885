//! Sources that do not send evenly: in bursts, or faster than real time.

use std::time::Duration;

use crate::support::client::{Player, Reading};
use crate::support::eventually;
use crate::support::gateway::Setup;
use crate::support::signal::{Picture, Programme};
use crate::support::upstream::{MockResponse, Provider};

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
