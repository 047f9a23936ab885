//! Tests of stream profiles: an admin sees their output before a viewer does.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::api::{Api, ApiReply};
use crate::support::client::{Player, Request};
use crate::support::eventually;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::{Picture, Programme};
use crate::support::upstream::{Cut, MockResponse, Provider};

const PASSWORD: &str = "hunter2-kept";
const NEWS: &str = "/live/anna/hunter2-kept/news.ts";
const PROXY: &str = "/api/core/streamprofiles/1/test/";

/// A provider with one stream, on an account with one connection.
struct TrialFixture {
    provider: Provider,
    gateway: TestGateway,
    admin: Api,
    folder: TempDir,
}

impl TrialFixture {
    async fn new() -> TrialFixture {
        let provider = Provider::start();
        provider.path(NEWS).plays(Picture::new("news"));
        let list = provider.playlist(&[("news", "News", NEWS)]);
        let gateway = Setup::new().limited_list(&list, 1).start().await;
        let admin = Api::first_admin(&gateway).await;
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = Vec::new();
        Programme::from(Picture::new("file"))
            .tune_in(Duration::ZERO)
            .take(Duration::from_secs(4), &mut bytes);
        std::fs::write(folder.path().join("ts"), bytes).unwrap();
        TrialFixture { provider, gateway, admin, folder }
    }

    /// Creates a profile that runs this script in the folder, with the URL in `$2`; returns the path of its test.
    async fn script(&self, script: &str) -> String {
        let folder = self.folder.path().display();
        let body = json!({
            "name": script.chars().take(200).collect::<String>(),
            "command": "/bin/sh",
            "parameters": format!("-c 'cd \"$1\" && {script}' sh {folder} {{streamUrl}}"),
        });
        let made = self.admin.post("/api/core/streamprofiles/", body).await;
        assert_eq!(made.status, 201, "{made:?}");
        format!("/api/core/streamprofiles/{}/test/", made.body["id"])
    }

    /// Runs a test, and checks that it leaves nothing behind and reveals no password.
    async fn tried(&self, path: &str, body: Value) -> ApiReply {
        let reply = self.admin.post(path, body).await;
        assert!(!reply.answer.text().contains(PASSWORD), "{reply:?}");
        self.gateway.until_idle().await;
        reply
    }

    fn url(&self) -> String {
        self.provider.url(NEWS)
    }

    fn stream(&self) -> u32 {
        self.gateway.channel("News").streams[0].0
    }
}

/// Returns some values of a successful response, in order.
fn values(reply: &ApiReply, keys: &[&str]) -> Value {
    assert_eq!(reply.status, 200, "{reply:?}");
    keys.iter().map(|it| reply.body[it].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_profile_test_of_a_url_or_a_stream_reports_the_output() {
    let fixture = TrialFixture::new().await;
    for body in
        [json!({ "url": fixture.url(), "seconds": 2 }), json!({ "stream": fixture.stream(), "seconds": 2 })]
    {
        let reply = fixture.tried(PROXY, body).await;
        let plays = json!([true, "played", "proxy", "H.264", ["AAC"], 1, null]);
        let keys =
            ["success", "outcome", "delivery", "video_codec", "audio_codecs", "programme_count", "cause"];
        assert_eq!(values(&reply, &keys), plays, "{reply:?}");
        let number = |key: &str| reply.body[key].as_f64().unwrap_or_else(|| panic!("no {key}: {reply:?}"));
        assert!(number("bytes") > 10_000.0 && number("bitrate_kbps") > 50.0, "{reply:?}");
        assert!((2.0..4.0).contains(&number("seconds_read")) && number("speed") > 0.5, "{reply:?}");
        assert!(number("programme_seconds") > 1.0 && number("seconds_to_first_packet") < 4.0, "{reply:?}");
        assert!(fixture.url().contains(reply.text("place")), "{reply:?}");
    }
    assert_eq!((fixture.provider.open(), fixture.provider.path(NEWS).n_requests()), (0, 2));
    let reply = fixture.tried(PROXY, json!({ "stream": fixture.stream(), "seconds": 1 })).await;
    assert_eq!(reply.body["account_name"], "list 1");
    assert!(fixture.gateway.event_names().iter().all(|it| !it.starts_with("channel")), "nobody watched");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_profile_test_on_a_full_account_names_it_and_its_viewer_keeps_watching() {
    let fixture = TrialFixture::new().await;
    let player = fixture.gateway.watch("News").await;
    player.sees("news").await;
    let reply = fixture.admin.post(PROXY, json!({ "stream": fixture.stream(), "seconds": 1 })).await;
    assert_eq!((reply.status, reply.answer.header("retry-after")), (503, Some("3")), "{reply:?}");
    assert!(reply.text("detail").contains("account \"list 1\" is at its limit of 1 stream"), "{reply:?}");
    player.more_bytes(50_000).await;
    assert_eq!((fixture.provider.peak(), fixture.gateway.gateway.counts().leases), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_program_is_reported_with_its_output_and_without_the_url() {
    let fixture = TrialFixture::new().await;
    let check = async |script: &str, expected: Value, words: &str| {
        let path = fixture.script(script).await;
        let reply = fixture.tried(&path, json!({ "url": fixture.url(), "seconds": 3 })).await;
        assert_eq!(
            values(&reply, &["success", "outcome", "cause", "delivery", "place"]),
            expected,
            "{script}: {reply:?}"
        );
        assert!(reply.text("message").contains(words), "{script}: {reply:?}");
        reply.body["program_lines"].clone()
    };
    let failed = json!([false, "failed", "exited", "command", null]);
    let lines = check("echo one >&2; echo cannot open $2 >&2; exit 3", failed, "ended with status 3").await;
    assert_eq!(lines, json!(["one", "cannot open …"]));
    let ended = json!([false, "ended", "exited", "command", "sh"]);
    let lines = check("cat ts; echo all of $2 is read >&2", ended, "ended with status 0").await;
    assert_eq!(lines, json!(["all of … is read"]));
    // The script hangs, and so does its child process.
    let hangs = json!([false, "ended", "stall", "command", "sh"]);
    check("cat ts; sleep 1000", hangs, "Video and audio stopped.").await;
    let missing = json!({ "name": "missing", "command": "no-such-program", "parameters": "{streamUrl}" });
    let made = fixture.admin.post("/api/core/streamprofiles/", missing).await;
    let path = format!("/api/core/streamprofiles/{}/test/", made.body["id"]);
    let reply = fixture.tried(&path, json!({ "stream": fixture.stream() })).await;
    assert_eq!(values(&reply, &["outcome", "cause"]), json!(["failed", "program"]));
    assert!(reply.text("message").contains("no-such-program is not installed"), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_last_lines_of_a_verbose_program_are_kept() {
    let fixture = TrialFixture::new().await;
    let path = fixture.script("cat ts; while true; do echo again and again of $2 >&2; done").await;
    let reply = fixture.tried(&path, json!({ "url": fixture.url(), "seconds": 1 })).await;
    assert_eq!(values(&reply, &["success", "outcome"]), json!([true, "played"]), "{reply:?}");
    let lines = reply.body["program_lines"].as_array().unwrap();
    assert!(lines.len() <= 20 && lines.contains(&json!("again and again of …")), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_profile_tests_run_at_one_time_and_a_third_gets_503() {
    let fixture = TrialFixture::new().await;
    fixture.provider.path("/mute.ts").answers(MockResponse::mute());
    let body = json!({ "url": fixture.provider.url("/mute.ts") });
    let third = async {
        eventually("two connections", || fixture.provider.open() == 2).await;
        let reply = fixture.admin.post(PROXY, body.clone()).await;
        fixture.provider.path("/mute.ts").cut(Cut::End);
        reply
    };
    let (one, two, third) =
        tokio::join!(fixture.admin.post(PROXY, body.clone()), fixture.admin.post(PROXY, body.clone()), third);
    assert_eq!((third.status, third.answer.header("retry-after")), (503, Some("3")), "{third:?}");
    assert_eq!(third.body["detail"], "2 tests are already running");
    assert_eq!(
        (values(&one, &["outcome"]), values(&two, &["outcome"])),
        (json!(["failed"]), json!(["failed"]))
    );
    let after = fixture.tried(PROXY, json!({ "url": fixture.url(), "seconds": 1 })).await;
    assert_eq!(values(&after, &["success"]), json!([true]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_ends_when_the_client_of_its_test_disconnects() {
    let fixture = TrialFixture::new().await;
    let path = fixture.script("trap \"\" TERM; echo $$ >pid.new && mv pid.new pid && sleep 1000").await;
    let key = fixture.admin.post("/api/accounts/api-keys/generate/", json!({})).await;
    let request = Request::get(path)
        .method("POST")
        .header("X-API-Key", key.text("key"))
        .body("application/json", json!({ "stream": fixture.stream() }).to_string());
    let player = Player::ask(fixture.gateway.address, request).await;
    let pid = fixture.folder.path().join("pid");
    eventually("the start of the program", || pid.exists()).await;
    assert_eq!(fixture.gateway.gateway.counts().leases, 1);
    player.leave().await;
    fixture.gateway.until_idle().await;
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "it still runs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_gateway_ends_its_profile_tests() {
    let TrialFixture { provider, gateway, admin, folder: _folder } = TrialFixture::new().await;
    let body = json!({ "url": provider.url(NEWS), "seconds": 20 });
    let stop = async {
        eventually("the start of the test", || provider.open() == 1).await;
        gateway.gateway.stop().await
    };
    let (reply, stopped) = tokio::join!(admin.post(PROXY, body), stop);
    assert_eq!((reply.status, stopped.is_clean), (503, true), "{reply:?}");
    eventually("the provider's connections to close", || provider.open() == 0).await;
}

/// These need ffmpeg.
mod slow {
    use super::*;
    use crate::support::signal::Clip;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_profile_test_uses_ffmpeg_where_a_channel_would_and_reports_codecs_and_size() {
        let clip = Clip::plain().await;
        let fixture = TrialFixture::new().await;
        let playlist = format!(
            "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:20\n#EXT-X-MEDIA-SEQUENCE:1\n#EXTINF:20,\n{}\n",
            fixture.url()
        );
        let hls = fixture.provider.path("/live/anna/1.m3u8");
        hls.answers(MockResponse::text("application/vnd.apple.mpegurl", playlist.clone()));
        fixture.provider.path("/live/anna/2").answers(MockResponse::text("video/mp2t", playlist));
        fixture.provider.path(NEWS).answers(MockResponse::play(clip));
        let fmp4 = "#EXTM3U\n#EXT-X-MAP:URI=\"i.mp4\"\n#EXTINF:20,\n1.m4s\n";
        fixture.provider.path("/live/anna/3").answers(MockResponse::text("video/mp2t", fmp4));
        let provider = fixture.provider.address.to_string();
        for (path, body, by) in [
            (
                PROXY,
                json!({ "url": fixture.provider.url("/live/anna/1.m3u8"), "seconds": 2 }),
                ("proxy", &*provider),
            ),
            (
                PROXY,
                json!({ "url": fixture.provider.url("/live/anna/2"), "seconds": 2 }),
                ("proxy", &*provider),
            ),
            (
                "/api/core/streamprofiles/4/test/",
                json!({ "stream": fixture.stream(), "seconds": 2 }),
                ("command", "ffmpeg"),
            ),
        ] {
            let reply = fixture.tried(path, body).await;
            let keys = ["success", "delivery", "place", "video_codec", "resolution", "audio_codecs"];
            let expected = json!([true, by.0, by.1, "H.264", "320x180", ["AAC"]]);
            assert_eq!(values(&reply, &keys), expected, "{reply:?}");
        }
        // The profile is "proxy", but fMP4 needs a program, which does not find these segments.
        let body = json!({ "url": fixture.provider.url("/live/anna/3"), "seconds": 2 });
        let reply = fixture.tried(PROXY, body).await;
        assert_eq!(values(&reply, &["success", "cause"]), json!([false, "exited"]), "{reply:?}");
        fixture.provider.path("/gone.ts").answers(MockResponse::status(404));
        let reply = fixture
            .tried(
                "/api/core/streamprofiles/3/test/",
                json!({ "url": fixture.provider.url("/gone.ts?t=hunter2-kept") }),
            )
            .await;
        assert_eq!(
            values(&reply, &["success", "outcome", "cause"]),
            json!([false, "failed", "exited"]),
            "{reply:?}"
        );
        assert!(reply.body["program_lines"].to_string().contains("404"), "{reply:?}");
    }
}
