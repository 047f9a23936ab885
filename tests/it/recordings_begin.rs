//! The begin of a recording: its channel plays before, and its file begins with a picture that can be decoded.

use serde_json::{Value, json};

use crate::recordings::{HOUR, Studio, StudioStart, check_packets, check_with_ffprobe, millis};
use crate::recordings_in_players::begins_with_key_frame;
use crate::support::signal::{FRAME, Picture, mark_of};
use crate::support::until_async;
use crate::support::upstream::Provider;

const NEWS: &str = "/live/anna/news.ts";
/// Number of frames from one key frame to the next, and how long these are in milliseconds.
const GOP: u32 = 150;
const GOP_MS: i64 = 6_000;
/// The time from a key frame to the start of the recording, in milliseconds.
const AFTER_KEY_FRAME_MS: i64 = 2_000;

/// Returns the number of the first frame of the picture.
fn first_frame(bytes: &[u8]) -> u32 {
    let is_picture = |it: &&[u8]| it.windows(4).any(|it| it == [0, 0, 1, 0xE0]);
    let first = bytes.chunks(188).find(is_picture).expect("a picture");
    mark_of(first).expect("a numbered frame").frame
}

/// Returns the purposes of the slots that are in use.
async fn purposes(studio: &Studio) -> Vec<String> {
    let slots = studio.admin.get("/api/m3u/slots/").await.body;
    let profiles = slots["profiles"].as_array().unwrap().iter();
    let slots = profiles.flat_map(|it| it["slots"].as_array().unwrap());
    slots.map(|it| it["purpose"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_channel_plays_ten_seconds_ahead_and_the_file_begins_at_the_last_key_frame_before_the_start()
{
    assert_eq!(i64::from(GOP) * FRAME.as_millis() as i64, GOP_MS);
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news").frames_per_gop(GOP.into()));
    let list = provider.playlist(&[("news", "News", NEWS)]);
    let studio = Studio::start_of(provider, list, StudioStart::default()).await;
    // The time of the provider's frame 0.
    let began = actors::now_ms() - studio.provider.began().elapsed().as_millis() as i64;
    let key_frame = (actors::now_ms() - began + 15_000) / GOP_MS + 1;
    let start = began + key_frame * GOP_MS + AFTER_KEY_FRAME_MS;
    let id = studio.record_between(start, start + HOUR).await;
    assert_eq!((studio.provider.accepted(), purposes(&studio).await), (0, vec![]));

    until_async("the slot of the recording", async || !purposes(&studio).await.is_empty()).await;
    assert!(actors::now_ms() >= start - 10_000, "not earlier");
    let waiting = studio.get(id).await;
    assert_eq!((&waiting["status"], &waiting["file_name"]), (&json!("scheduled"), &Value::Null), "{waiting}");
    assert_eq!(purposes(&studio).await, ["recording"]);
    until_async("the connection", async || studio.provider.open() == 1).await;
    assert!(actors::now_ms() < start && studio.files().is_empty(), "nothing is recorded yet");

    studio.until_size(id, 1_500_000).await;
    let recording = studio.get(id).await;
    let late = millis(&recording["started_at"]) - start;
    assert!((0..GOP_MS - AFTER_KEY_FRAME_MS).contains(&late), "{late} ms: {recording}");
    assert_eq!((&recording["gaps"], studio.provider.accepted()), (&json!([]), 1), "{recording}");
    let bytes = studio.stopped(id).await;
    check_packets(&bytes);
    assert!(begins_with_key_frame(&bytes).await);
    assert!(check_with_ffprobe(&bytes).await > 5.0);
    assert_eq!(i64::from(first_frame(&bytes)), key_frame * i64::from(GOP));
}
