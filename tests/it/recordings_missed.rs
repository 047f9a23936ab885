//! Recordings that get what they lack from the archive of the provider: whole programmes of the past, the time
//! before a recording was made, and gaps.

use std::time::Duration;

use domain::time::iso_millis;
use domain::user::{CATCHUP_ENABLED, UserLevel};
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::recordings::{LIST, Studio, StudioStart};
use crate::support::api::{Api, ApiReply};
use crate::support::client::Player;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::{Picture, Programme};
use crate::support::ts_check::Checker;
use crate::support::until_async;
use crate::support::upstream::{Cut, MockResponse, Provider};
use crate::support::users::create_user;

const LIVE: &str = "/live/a/news.ts";

/// A provider that admits one connection; it has an archive of two days of the channel News, and none of Other.
struct Broadcaster {
    provider: Provider,
    gateway: TestGateway,
    admin: Api,
    folder: TempDir,
}

impl Broadcaster {
    async fn start() -> Broadcaster {
        let provider = Provider::start();
        provider.limit("a", 1, 403, Duration::ZERO);
        provider.path(LIVE).plays(Picture::new("live"));
        provider.path("/live/a/other.ts").plays(Picture::new("other"));
        let list = format!(
            "#EXTM3U\n#EXTINF:-1 catchup=\"default\" catchup-days=\"2\" catchup-source=\"{}\",News\n{}\n\
             #EXTINF:-1,Other\n{}\n",
            provider.url("/past/a/{utc}.ts"),
            provider.url(LIVE),
            provider.url("/live/a/other.ts"),
        );
        let folder = tempfile::tempdir().unwrap();
        let recordings = folder.path().join("recordings");
        let setup = Setup::new().config(|it| it.recordings_dir = Some(recordings)).limited_list(&list, 1);
        let gateway = setup.start().await;
        let admin = Api::first_admin(&gateway).await;
        Broadcaster { provider, gateway, admin, folder }
    }

    /// Lets the archive answer at each of these times.
    fn has(&self, starts: std::ops::RangeInclusive<i64>, answer: &MockResponse) {
        for start in starts {
            self.provider.path(&format!("/past/a/{start}.ts")).answers(answer.clone());
        }
    }

    /// Returns the starts that the archive was asked for.
    fn asked(&self) -> Vec<i64> {
        let start = |it: &str| it.strip_prefix("/past/a/")?.strip_suffix(".ts")?.parse().ok();
        self.provider.requests().iter().filter_map(|it| start(&it.path)).collect()
    }

    /// Creates a recording of a channel with these times in seconds.
    async fn record(&self, api: &Api, channel: &str, start: i64, end: i64) -> ApiReply {
        let body = json!({
            "channel_id": self.gateway.channel(channel).id,
            "start_time": iso_millis(start * 1000),
            "end_time": iso_millis(end * 1000),
        });
        api.post(LIST, body).await
    }

    async fn recorded(&self, start: i64, end: i64) -> u64 {
        let made = self.record(&self.admin, "News", start, end).await;
        assert_eq!((made.status, &made.body["status"]), (201, &json!("scheduled")), "{made:?}");
        made.body["id"].as_u64().unwrap()
    }

    async fn get(&self, id: u64) -> Value {
        self.admin.get(&format!("{LIST}{id}/")).await.body
    }

    async fn until_status(&self, id: u64, status: &str) -> Value {
        until_async(status, async || self.get(id).await["status"] == status).await;
        self.get(id).await
    }

    /// Waits until the file is complete.
    async fn until_ended(&self, id: u64) {
        until_async("the end of the file", async || !self.get(id).await["ended_at"].is_null()).await;
    }

    /// Checks the file of a recording that is over. Returns what it shows, and its duration in seconds.
    async fn checked(&self, id: u64) -> (Vec<String>, f64) {
        let name = self.get(id).await["file_name"].as_str().expect("a file").to_owned();
        let bytes = std::fs::read(self.folder.path().join("recordings").join(name)).unwrap();
        let checker = Checker::from_bytes(&bytes);
        checker.assert_clean();
        (checker.labels.clone(), checker.programme_seconds())
    }
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

/// Returns some seconds of a picture, as an archive sends them.
pub(crate) fn part(label: &str, seconds: u64) -> MockResponse {
    let mut bytes = Vec::new();
    let mut tuned = Programme::from(Picture::new(label)).tune_in(Duration::from_secs(100));
    tuned.take(Duration::from_secs(seconds), &mut bytes);
    MockResponse::recording(&bytes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_programme_of_the_past_is_recorded_whole_from_the_archive() {
    let tv = Broadcaster::start().await;
    let start = now() - 3_600;
    // The provider cuts what it sends, and the rest is asked for by its time.
    tv.has(start..=start, &part("one", 60));
    tv.has(start + 57..=start + 60, &part("two", 120));
    let id = tv.recorded(start, start + 100).await;
    let done = tv.until_status(id, "completed").await;
    assert_eq!((&done["gaps"], &done["reason"]), (&json!([]), &Value::Null), "{done}");
    let (labels, seconds) = tv.checked(id).await;
    assert_eq!(labels, ["one", "two"]);
    assert!((95.0..=104.0).contains(&seconds), "{seconds} s");
    let began: Timestamp = done["started_at"].as_str().unwrap().parse().unwrap();
    assert!((start..start + 3).contains(&began.as_second()), "{done}");
    tv.gateway.until_idle().await;
    let events = ["recording_start", "recording_end", "channel_start"].map(|it| tv.gateway.n_events(it));
    assert_eq!((events, tv.provider.peak()), ([1, 1, 0], 1));
    let asked = tv.asked();
    assert!(asked.len() == 2 && asked[1] >= start + 57, "{asked:?} from {start}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_archive_has_is_refused_with_the_reason() {
    let tv = Broadcaster::start().await;
    let settings = tv.admin.get("/api/core/settings/").await.body;
    let row = settings["results"].as_array().unwrap().iter().find(|it| it["key"] == "dvr_settings").unwrap();
    let set = json!({ "value": { "standard_users_record": true } });
    let path = format!("/api/core/settings/{}/", row["id"]);
    assert_eq!(tv.admin.send("PATCH", &path, set).await.status, 200);
    let bert = create_user(&tv.gateway, "bert", |it| {
        it.level = UserLevel::Standard;
        it.custom_properties.insert(CATCHUP_ENABLED.to_owned(), json!(false));
    })
    .await;
    let bert = Api::stranger(&tv.gateway).key(&bert.api_key);
    let (hour, week) = (now() - 3_600, now() - 7 * 86_400);
    for (api, channel, start, field, reason) in [
        (&tv.admin, "Other", hour, "start_time", "the channel has no archive"),
        (&tv.admin, "News", week, "start_time", "2 days only"),
        (&bert, "News", hour, "start_time", "catch-up is off"),
    ] {
        let refused = tv.record(api, channel, start, start + 60).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body[field][0].as_str().is_some_and(|it| it.contains(reason)), "{refused:?}");
    }
    let refused = tv.record(&tv.admin, "News", hour, hour - 60).await;
    assert!(refused.status == 400 && refused.body["end_time"].is_array(), "{refused:?}");
    assert_eq!(tv.admin.get(LIST).await.body["count"].as_u64().unwrap_or(0), 0);
    assert!(tv.asked().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_takes_the_connection_of_the_archive_and_the_recording_goes_on_afterwards() {
    let tv = Broadcaster::start().await;
    let start = now() - 3_600;
    // As slow as the programme itself.
    tv.provider.path(&format!("/past/a/{start}.ts")).plays(Picture::new("one"));
    tv.has(start + 1..=start + 60, &part("two", 120));
    let id = tv.recorded(start, start + 90).await;
    tv.until_status(id, "recording").await;
    until_async("some seconds", async || tv.get(id).await["file_size"].as_u64().unwrap_or(0) > 400_000).await;
    let slots = tv.admin.get("/api/m3u/slots/").await.answer.text();
    assert!(slots.contains("\"catchup\""), "{slots}");
    let player = Player::ask(tv.gateway.address, tv.gateway.get("Other")).await;
    player.sees("other").await;
    assert_eq!(tv.get(id).await["status"], "recording");
    assert!(tv.asked().iter().all(|it| *it == start), "the archive is not read beside a viewer");
    player.leave().await;
    let done = tv.until_status(id, "completed").await;
    assert_eq!(done["gaps"], json!([]), "{done}");
    let (labels, seconds) = tv.checked(id).await;
    assert_eq!(labels, ["one", "two"]);
    assert!((85.0..=94.0).contains(&seconds), "{seconds} s");
    tv.gateway.until_idle().await;
    assert_eq!((tv.provider.peak_of("a"), tv.provider.refusals()), (1, 0));
    assert_eq!(tv.gateway.n_events("recording_start"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_of_the_past_is_stopped_or_deleted_while_it_is_read() {
    let tv = Broadcaster::start().await;
    let start = now() - 3_600;
    tv.has(start..=start, &MockResponse::play(Picture::new("one")));
    let kept = tv.recorded(start, start + 600).await;
    let recording = tv.until_status(kept, "recording").await;
    let path = tv.folder.path().join("recordings").join(recording["file_name"].as_str().unwrap());
    until_async("a part of the file", async || std::fs::metadata(&path).is_ok_and(|it| it.len() > 100_000))
        .await;
    let stopped = tv.admin.post(&format!("{LIST}{kept}/stop/"), json!({})).await;
    assert_eq!((stopped.status, &stopped.body["status"]), (200, &json!("stopped")), "{stopped:?}");
    tv.until_ended(kept).await;
    assert_eq!(tv.checked(kept).await.0, ["one"]);
    tv.gateway.until_idle().await;
    let gone = tv.recorded(start, start + 600).await;
    let recording = tv.until_status(gone, "recording").await;
    let path = tv.folder.path().join("recordings").join(recording["file_name"].as_str().unwrap());
    assert!(path.exists());
    assert_eq!(tv.admin.delete(&format!("{LIST}{gone}/")).await.status, 204);
    tv.gateway.until_idle().await;
    assert!(!path.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_that_lacks_the_end_leaves_a_recording_that_says_so() {
    let tv = Broadcaster::start().await;
    let start = now() - 3_600;
    tv.has(start..=start, &part("one", 40));
    let id = tv.recorded(start, start + 100).await;
    until_async("another try for the rest", async || tv.asked().len() > 2).await;
    assert_eq!(tv.get(id).await["status"], "recording");
    let stopped = tv.admin.send("PUT", &format!("{LIST}{id}/"), json!({ "status": "completed" })).await;
    assert_eq!((stopped.status, &stopped.body["status"]), (200, &json!("completed")), "{stopped:?}");
    tv.until_ended(id).await;
    let (labels, seconds) = tv.checked(id).await;
    assert!(labels == ["one"] && seconds > 35.0, "{labels:?} {seconds} s");
    tv.gateway.until_idle().await;
}

/// Returns the length of the last gap until now, in milliseconds.
fn last_gap(recording: &Value) -> i64 {
    let gap = recording["gaps"].as_array().and_then(|it| it.last());
    let start = gap.and_then(|it| it["start"].as_str()?.parse::<Timestamp>().ok());
    start.map_or(0, |it| Timestamp::now().as_millisecond() - it.as_millisecond())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_begin_and_the_gaps_of_a_recording_come_from_the_archive_after_its_end() {
    let tv = Broadcaster::start().await;
    let start = now() - 20;
    tv.has(start..=start + 600, &part("past", 60));
    // The programme has begun, and goes on.
    let id = tv.recorded(start, start + 3_600).await;
    tv.until_status(id, "recording").await;
    until_async("some seconds", async || tv.get(id).await["file_size"].as_u64().unwrap_or(0) > 300_000).await;
    assert!(tv.asked().is_empty(), "the channel comes first");
    tv.provider.path(LIVE).answers(MockResponse::status(404)).cut(Cut::Reset);
    until_async("a gap", async || last_gap(&tv.get(id).await) > 4_000).await;
    tv.provider.path(LIVE).plays(Picture::new("later"));
    until_async("the end of the gap", async || tv.get(id).await["gaps"][0]["end"].is_string()).await;
    let size = tv.get(id).await["file_size"].as_u64().unwrap();
    until_async("more", async || tv.get(id).await["file_size"].as_u64().unwrap_or(0) > size + 300_000).await;
    let ended = tv.admin.send("PUT", &format!("{LIST}{id}/"), json!({ "status": "completed" })).await;
    assert_eq!(ended.status, 200, "{ended:?}");
    tv.until_ended(id).await;
    let began = async || tv.get(id).await["started_at"].as_str().unwrap().parse::<Timestamp>().unwrap();
    until_async("the begin", async || began().await.as_second() <= start + 2).await;
    let done = tv.get(id).await;
    assert_eq!((&done["status"], &done["gaps"]), (&json!("completed"), &json!([])), "{done}");
    let (labels, seconds) = tv.checked(id).await;
    assert_eq!(labels, ["past", "live", "past", "later"]);
    let time = |name: &str| done[name].as_str().unwrap().parse::<Timestamp>().unwrap().as_millisecond();
    assert!((time("started_at") / 1000 - start).abs() <= 2, "{done}");
    let wall = (time("ended_at") - time("started_at")) as f64 / 1000.0;
    assert!((seconds - wall).abs() < 3.0, "{seconds} s of {wall} s");
    tv.gateway.until_idle().await;
    let events = ["recording_start", "recording_end"].map(|it| tv.gateway.n_events(it));
    assert_eq!((events, tv.provider.peak_of("a")), ([1, 1], 1));
    // Nothing is left beside the file.
    let hidden = tv.folder.path().join("recordings/.headwater-indexes");
    let left =
        std::fs::read_dir(hidden).unwrap().filter(|it| it.as_ref().unwrap().path().extension().is_some());
    assert_eq!(left.count(), 0);
}

/// Holds T-dvr.2 for a recording from an archive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_of_the_past_continues_after_a_kill() {
    let provider = Provider::start();
    let source = provider.url("/past/a/{utc}.ts");
    let list = format!(
        "#EXTM3U\n#EXTINF:-1 catchup=\"default\" catchup-days=\"2\" catchup-source=\"{source}\",News\n{}\n",
        provider.url(LIVE)
    );
    let start = now() - 3_600;
    provider.path(&format!("/past/a/{start}.ts")).plays(Picture::new("one"));
    let studio = Studio::start_of(provider, list, StudioStart::default()).await;
    let channel = studio.admin.get("/api/channels/channels/").await.body["results"][0]["id"].clone();
    let (begin, end) = (iso_millis(start * 1000), iso_millis((start + 90) * 1000));
    let body = json!({ "channel_id": channel, "start_time": begin, "end_time": end });
    let made = studio.admin.post(LIST, body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.body["id"].as_u64().unwrap();
    // Made before, because the recording goes on meanwhile.
    let two = part("two", 120);
    studio.until_size(id, 800_000).await;
    // However much a busy machine has read until the kill.
    for second in start..start + 90 {
        studio.provider.path(&format!("/past/a/{second}.ts")).answers(two.clone());
    }
    let studio = studio.kill_and_start().await;
    until_async("the end", async || studio.get(id).await["status"] == "completed").await;
    let checker = Checker::from_bytes(&studio.finished(id).await);
    checker.assert_clean();
    let seconds = checker.programme_seconds();
    assert!((85.0..=94.0).contains(&seconds), "{seconds} s");
    assert_eq!(checker.labels.last().map(String::as_str), Some("two"));
    assert_eq!(studio.get(id).await["gaps"], json!([]));
    let files = std::fs::read_dir(studio.folder.join("TV_Shows/News")).unwrap().count();
    assert_eq!(files, 1);
}
