//! Sources that fail while they are recorded: one file over all of them, whose clock is that of the wall, and a list of
//! what was lost.

use std::ops::Range;
use std::time::Duration;

use domain::time::iso_millis;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::recordings::{HOUR, LIST, check_packets, millis};
use crate::support::api::Api;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::until_async;
use crate::support::upstream::{Cut, MockResponse, Provider};

/// A gateway that records the channels of a playlist from one account.
struct Recorder {
    provider: Provider,
    gateway: TestGateway,
    admin: Api,
    folder: TempDir,
}

impl Recorder {
    async fn start(provider: Provider, list: &str, max_streams: u32, give_up_after: Duration) -> Recorder {
        let folder = tempfile::tempdir().unwrap();
        let recordings = folder.path().join("recordings");
        let setup = Setup::new().config(|it| it.recordings_dir = Some(recordings)).engine(|it| {
            it.first_packet_timeout = Duration::from_secs(2);
            it.give_up_after = give_up_after;
        });
        let gateway = setup.limited_list(list, max_streams).start().await;
        let admin = Api::first_admin(&gateway).await;
        Recorder { provider, gateway, admin, folder }
    }

    /// Records a channel. The times are milliseconds since 1970.
    async fn record(&self, channel: &str, times: Range<i64>) -> u64 {
        let body = json!({
            "channel_id": self.gateway.channel(channel).id,
            "start_time": iso_millis(times.start),
            "end_time": iso_millis(times.end),
        });
        let made = self.admin.post(LIST, body).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.body["id"].as_u64().unwrap()
    }

    async fn get(&self, id: u64) -> Value {
        self.admin.get(&format!("{LIST}{id}/")).await.body
    }

    /// Waits until the file is longer than now by this many bytes.
    async fn until_longer(&self, id: u64, bytes: u64) {
        let size = async || self.get(id).await["file_size"].as_u64().unwrap_or(0);
        let wanted = size().await + bytes;
        until_async("more of the recording", async || size().await >= wanted).await;
    }

    /// Waits until something is missing, and has been for this long, in milliseconds.
    async fn until_gap(&self, id: u64, length: i64) {
        until_async("a gap", async || {
            let recording = self.get(id).await;
            let gap = &recording["gaps"][0];
            gap["end"].is_null()
                && gap["start"].is_string()
                && actors::now_ms() - millis(&gap["start"]) >= length
        })
        .await;
    }

    async fn until_gap_ends(&self, id: u64) {
        until_async("the end of the gap", async || self.get(id).await["gaps"][0]["end"].is_string()).await;
    }

    /// Waits until the file is complete. Returns the recording and the content of its only file.
    async fn ended(&self, id: u64) -> (Value, Vec<u8>) {
        until_async("the end of the file", async || !self.get(id).await["ended_at"].is_null()).await;
        let recording = self.get(id).await;
        let path = self.folder.path().join("recordings").join(recording["file_name"].as_str().unwrap());
        let files = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(files, 1, "{recording}");
        (recording, std::fs::read(path).unwrap())
    }
}

/// Returns the gaps with their lengths in seconds.
fn gaps(recording: &Value) -> Vec<(f64, String)> {
    let gaps = recording["gaps"].as_array().unwrap().iter();
    let length = |it: &Value| (millis(&it["end"]) - millis(&it["start"])) as f64 / 1000.0;
    gaps.map(|it| (length(it), it["reason"].as_str().unwrap().to_owned())).collect()
}

/// Returns the time from the first to the last packet by the wall clock, in seconds.
fn wall_seconds(recording: &Value) -> f64 {
    (millis(&recording["ended_at"]) - millis(&recording["started_at"])) as f64 / 1000.0
}

/// These need ffmpeg and tstools.
mod slow {
    use super::*;
    use crate::shapes::{checks, edit};
    use crate::support::signal::{Clip, Programme, TEST_PICTURE};
    use crate::support::tools;

    const FIRST: &str = "/live/anna/first.ts";
    const SECOND: &str = "/live/anna/second.ts";

    /// Makes a clip with these arguments of the muxer.
    async fn clip(name: &str, muxer: &[&str]) -> Programme {
        let codecs = ["-t", "20", "-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-c:a", "aac"];
        Clip::make(name, &TEST_PICTURE, &[&codecs[..], muxer].concat()).await.into()
    }

    /// Another encoder: other PIDs, and a clock that turns while it plays.
    async fn second() -> Programme {
        let pids = ["-mpegts_start_pid", "0x31", "-mpegts_pmt_start_pid", "0x40"];
        clip("recorded-second", &[&pids[..], &["-output_ts_offset", "95440"]].concat()).await
    }

    /// Records a channel of two streams whose first one fails like this. The other one is not there at once.
    async fn survives(answer: MockResponse, cut: Cut) {
        let provider = Provider::start();
        provider.limit("anna", 1, 403, Duration::ZERO);
        provider.path(FIRST).plays(clip("recorded-first", &[]).await);
        // Making it takes longer than a channel waits for a source.
        let second = second().await;
        let list = provider.playlist(&[("news", "News", FIRST), ("news", "News backup", SECOND)]);
        // Long enough for another round, if the other stream is asked for before it is there.
        let tv = Recorder::start(provider, &list, 1, Duration::from_secs(8)).await;
        let now = actors::now_ms();
        let id = tv.record("News", now..now + HOUR).await;
        tv.until_longer(id, 150_000).await;
        tv.provider.path(FIRST).answers(answer).cut(cut);
        tv.until_gap(id, 2_500).await;
        tv.provider.path(SECOND).plays(second);
        tv.until_gap_ends(id).await;
        tv.until_longer(id, 300_000).await;
        let ended = tv.admin.send("PUT", &format!("{LIST}{id}/"), json!({ "status": "completed" })).await;
        assert_eq!(ended.status, 200, "{ended:?}");
        let (recording, bytes) = tv.ended(id).await;
        assert_eq!(recording["status"], "completed", "{recording}");

        let gaps = gaps(&recording);
        assert!(gaps.len() == 1 && gaps[0].0 >= 2.0 && !gaps[0].1.is_empty(), "{recording}");
        let found = check_packets(&bytes);
        let (seconds, wall) = (found.programme_seconds(), wall_seconds(&recording));
        assert!((seconds - wall).abs() < 3.0, "{seconds} s of {wall} s: {recording}");
        // The clock stands still for nobody: the one step is what was lost.
        let lost: f64 = found.steps.iter().map(|it| it.seconds).sum();
        assert!((lost - gaps[0].0).abs() < 2.0, "{:?} {recording}", found.steps);
        let failovers = tv.gateway.failovers();
        assert!(failovers.iter().any(|it| it.1 == "News backup"), "{failovers:?}");
        assert_eq!(
            (tv.provider.peak_of("anna"), tv.provider.refusals()),
            (1, 0),
            "{:?}",
            tv.provider.overlaps("anna")
        );
        assert_eq!(["recording_start", "recording_end"].map(|it| tv.gateway.n_events(it)), [1, 1]);

        // The programs of others.
        let whole = edit::without_unfinished_units(&bytes);
        let file = checks::Recording::new(&whole);
        let mut findings = file.clock_errors_beside_gaps(gaps.len()).await;
        findings.extend(file.decoder_messages().await);
        // The stream of the source that failed ends before the file.
        findings.retain(|it| !it.contains("no PTS found at end of file"));
        assert!(findings.is_empty(), "{}", findings.join("\n"));
        let file = tools::saved(&bytes);
        let path = file.path().to_string_lossy().into_owned();
        let what = ["-show_entries", "packet=codec_type,stream_index,dts_time", "-of", "csv=p=0", &path];
        let arguments = [&["-v", "error"][..], &checks::WHOLE_FILE, &what].concat();
        let seconds =
            tools::DecodingTimes::from_packets(&tools::text_of("ffprobe", &arguments).await).seconds;
        assert!((seconds - wall).abs() < 3.0, "{seconds} s of {wall} s: {recording}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_recording_over_a_source_that_dies_is_one_clean_file_as_long_as_its_time() {
        survives(MockResponse::status(404), Cut::Reset).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_recording_over_a_source_that_goes_silent_is_one_clean_file_as_long_as_its_time() {
        survives(MockResponse::mute(), Cut::Stall).await;
    }

    /// Holds T-dvr.6: for sources that are gone for some seconds, for longer than a channel waits, and until the end.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_source_that_is_gone_leaves_one_file_with_the_gap_and_the_status_of_its_rule() {
        let provider = Provider::start();
        let names = ["Brief", "Long", "End"];
        let paths = names.map(|it| format!("/live/anna/{it}.ts"));
        let mut entries = Vec::new();
        for (name, path) in names.iter().zip(&paths) {
            provider.path(path).plays(Picture::new(name));
            entries.push((*name, *name, path.as_str()));
        }
        let list = provider.playlist(&entries);
        // Also a channel that has given up is recorded again when its source is back.
        let tv = Recorder::start(provider, &list, 3, Duration::from_secs(4)).await;
        let now = actors::now_ms();
        // The first one has begun long ago, so that little of it is missing.
        let brief = tv.record("Brief", now - HOUR..now + 25_000).await;
        let long = tv.record("Long", now..now + 30_000).await;
        let end = tv.record("End", now - HOUR..now + 45_000).await;
        for id in [brief, long, end] {
            tv.until_longer(id, 300_000).await;
        }
        for path in &paths {
            tv.provider.path(path).answers(MockResponse::status(404)).cut(Cut::Reset);
        }
        tv.until_gap(brief, 2_500).await;
        tv.provider.path(&paths[0]).plays(Picture::new("Brief"));
        tv.until_gap(long, 6_000).await;
        tv.provider.path(&paths[1]).plays(Picture::new("Long"));

        let check = async |id: u64, status: &str, reason: Option<&str>, longest: f64| {
            let (recording, bytes) = tv.ended(id).await;
            assert_eq!(recording["status"], status, "{recording}");
            let is_expected = match reason {
                None => recording["reason"].is_null(),
                Some(part) => recording["reason"].as_str().is_some_and(|it| it.contains(part)),
            };
            assert!(is_expected, "{recording}");
            let gaps = gaps(&recording);
            assert!(gaps.len() == 1 && gaps[0].0 >= longest && gaps[0].1.len() > 5, "{recording}");
            let (seconds, wall) = (check_packets(&bytes).programme_seconds(), wall_seconds(&recording));
            assert!((seconds - wall).abs() < 3.0, "{seconds} s of {wall} s: {recording}");
            recording
        };
        check(brief, "completed", None, 2.0).await;
        check(long, "interrupted", Some("s are missing"), 5.0).await;
        let done = check(end, "interrupted", Some("the end is missing"), 30.0).await;
        assert_eq!(millis(&done["gaps"][0]["end"]), millis(&done["end_time"]), "{done}");
    }
}
