//! A guide of realistic size.

use std::io::Write as _;
use std::time::Duration;

use domain::channel::Channel;
use domain::ids::ChannelId;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use uuid::Uuid;

use super::fixture::xmltv_time;
use super::sources::GuideStory;
use crate::MEMORY;
use crate::import::fixture::blocking;
use crate::support::client::connect;
use crate::support::upstream::MockResponse;

const PER_CHANNEL: u32 = 450;
/// Size in XMLTV of the programmes of one channel, at least.
const CHANNEL_BYTES: u64 = 80_000;
/// Maximum growth during a refresh: the parts that are sorted and the words that are collected before they are written to
/// the disk (about 80 MiB), and the pages that the store caches.
const REFRESH_BYTES_MAX: usize = 112 << 20;
/// Clients that hold an answer after its beginning, and the maximum growth for them: some pieces of the text each.
const CLIENTS: usize = 20;
const ANSWERS_BYTES_MAX: usize = 24 << 20;

/// Returns the guide as a gzip file, and its size without compression. It begins now and has an hour for each programme.
fn packed_guide(now: i64, n_channels: u32) -> (Vec<u8>, u64) {
    let mut programmes = String::new();
    for number in 0..PER_CHANNEL {
        let start = now + 3_600 * i64::from(number);
        let [start, stop] = [start, start + 3_600].map(xmltv_time);
        // The words of a channel differ from those of the others, so that the search index is large too.
        programmes += &format!(
            "<programme start=\"{start}\" stop=\"{stop}\" channel=\"c@\"><title>Show {number} of w@</title>\
             <desc>Guests talk about w@x{number} and about what happened before.</desc></programme>\n"
        );
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let mut n_bytes = 0;
    let mut write = |text: &str| {
        packed.write_all(text.as_bytes()).unwrap();
        n_bytes += text.len() as u64;
    };
    write("<tv>");
    for channel in 1..=n_channels {
        write(&programmes.replace('@', &channel.to_string()));
    }
    write("</tv>");
    (packed.finish().unwrap(), n_bytes)
}

/// Holds T-epg.7. `benches/guide.rs` and `benches/guide_readers.rs` measure how long the same takes.
async fn is_refreshed_and_sent_in_bounded_memory(n_channels: u32) {
    let guide_bytes = u64::from(n_channels) * CHANNEL_BYTES;
    let story = GuideStory::lasting().await;
    let now = actors::now_ms() / 1000;
    let (packed, n_bytes) = blocking(move || packed_guide(now, n_channels)).await;
    assert!(n_bytes > guide_bytes, "{n_bytes}");
    story.provider.path("/guide.xml").answers(MockResponse::text("application/gzip", packed));
    story
        .gateway
        .change(move |write| {
            (1..=n_channels).try_for_each(|id| {
                let (number, tvg_id) = (id.to_string().parse().ok(), Some(format!("c{id}")));
                let channel =
                    Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("Channel {id}"), 0);
                write.put(&Channel { number, tvg_id, ..channel })
            })
        })
        .await;

    let before = MEMORY.allocated();
    let mut peak = 0;
    let url = story.provider.url("/guide.xml");
    let source = story.create(json!({ "name": "Guide", "source_type": "xmltv", "url": url })).await;
    let seen = loop {
        peak = peak.max(MEMORY.allocated());
        let seen = story.admin.get(&source).await.body;
        if !["idle", "fetching", "parsing"].contains(&seen["status"].as_str().unwrap()) {
            break seen;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    let n_programmes = u64::from(n_channels * PER_CHANNEL);
    assert_eq!(
        (&seen["status"], &seen["program_count"]),
        (&json!("success"), &json!(n_programmes)),
        "{seen}"
    );
    let growth = peak.saturating_sub(before);
    assert!(growth < REFRESH_BYTES_MAX, "the refresh took {} KiB", growth >> 10);

    // The beginning of an answer needs neither the rest nor the memory for it: nobody reads on, and all have it.
    let before = MEMORY.allocated();
    let mut piece = vec![0; 64 << 10];
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = connect(story.gateway.address, Some(16 << 10)).await;
        client.write_all(b"GET /output/epg HTTP/1.0\r\nHost: gateway\r\n\r\n").await.unwrap();
        client.read_exact(&mut piece[..4096]).await.unwrap();
        assert!(piece.starts_with(b"HTTP/1.") && piece[..4096].windows(3).any(|it| it == b"<tv"));
        clients.push(client);
    }
    let growth = MEMORY.allocated().saturating_sub(before);
    assert!(growth < ANSWERS_BYTES_MAX, "{CLIENTS} answers take {} KiB", growth >> 10);

    // One client reads on to the end, while the others still wait.
    let (mut n_read, mut peak, mut end) = (0, 0, Vec::new());
    loop {
        let n = clients[0].read(&mut piece).await.unwrap();
        if n == 0 {
            break;
        }
        n_read += n as u64;
        peak = peak.max(MEMORY.allocated());
        end.extend_from_slice(&piece[n.saturating_sub(6)..n]);
        end.drain(..end.len().saturating_sub(6));
    }
    assert!(n_read > guide_bytes, "{n_read}");
    assert_eq!(String::from_utf8(end).unwrap(), "</tv>\n");
    let growth = peak.saturating_sub(before);
    assert!(growth < ANSWERS_BYTES_MAX, "{CLIENTS} answers took {} KiB", growth >> 10);
}

/// Sent in bounded memory: twenty times this guide is a multiple of what the answers may take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guide_of_five_megabytes_is_refreshed_and_sent_in_bounded_memory() {
    is_refreshed_and_sent_in_bounded_memory(64).await;
}

mod night {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_guide_of_any_size_is_refreshed_and_sent_in_bounded_memory() {
        super::is_refreshed_and_sent_in_bounded_memory(2_000).await;
    }
}
