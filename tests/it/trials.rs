//! Stream profiles are tried: an admin sees what comes out before a viewer does.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::api::{Api, Said};
use crate::support::client::{Player, Request};
use crate::support::eventually;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::{Picture, Programme};
use crate::support::upstream::{Answer, Cut, Provider};

const PASSWORD: &str = "hunter2-kept";
const NEWS: &str = "/live/anna/hunter2-kept/news.ts";
const PROXY: &str = "/api/core/streamprofiles/1/test/";

/// A provider with one stream, on an account with one connection.
struct House {
    provider: Provider,
    gateway: TestGateway,
    admin: Api,
    folder: TempDir,
}

impl House {
    async fn new() -> House {
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
        House { provider, gateway, admin, folder }
    }

    /// A profile that runs this script in the folder; `$2` is the address. The path of its test.
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

    /// Runs a test, which leaves nothing and tells no password.
    async fn tried(&self, path: &str, body: Value) -> Said {
        let said = self.admin.post(path, body).await;
        assert!(!said.answer.text().contains(PASSWORD), "{said:?}");
        self.gateway.is_quiet().await;
        said
    }

    fn url(&self) -> String {
        self.provider.url(NEWS)
    }

    fn stream(&self) -> u32 {
        self.gateway.channel("News").streams[0].0
    }
}

/// Some values of an answer, in order.
fn of(said: &Said, keys: &[&str]) -> Value {
    assert_eq!(said.status, 200, "{said:?}");
    keys.iter().map(|it| said.body[it].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_profile_is_tried_on_an_address_and_on_a_stream_and_says_what_came_out() {
    let house = House::new().await;
    for body in
        [json!({ "url": house.url(), "seconds": 2 }), json!({ "stream": house.stream(), "seconds": 2 })]
    {
        let said = house.tried(PROXY, body).await;
        let plays = json!([true, "played", "proxy", "H.264", ["AAC"], 1, null]);
        let keys =
            ["success", "outcome", "delivery", "video_codec", "audio_codecs", "programme_count", "cause"];
        assert_eq!(of(&said, &keys), plays, "{said:?}");
        let number = |key: &str| said.body[key].as_f64().unwrap_or_else(|| panic!("no {key}: {said:?}"));
        assert!(number("bytes") > 10_000.0 && number("bitrate_kbps") > 50.0, "{said:?}");
        assert!((2.0..4.0).contains(&number("seconds_read")) && number("speed") > 0.5, "{said:?}");
        assert!(number("programme_seconds") > 1.0 && number("seconds_to_first_packet") < 4.0, "{said:?}");
        assert!(house.url().contains(said.text("place")), "{said:?}");
    }
    assert_eq!((house.provider.open(), house.provider.path(NEWS).n_requests()), (0, 2));
    let said = house.tried(PROXY, json!({ "stream": house.stream(), "seconds": 1 })).await;
    assert_eq!(said.body["account_name"], "list 1");
    assert!(house.gateway.event_names().iter().all(|it| !it.starts_with("channel")), "nobody watched");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_account_is_named_and_its_viewer_watches_on() {
    let house = House::new().await;
    let player = house.gateway.watch("News").await;
    player.sees("news").await;
    let said = house.admin.post(PROXY, json!({ "stream": house.stream(), "seconds": 1 })).await;
    assert_eq!((said.status, said.answer.header("retry-after")), (503, Some("3")), "{said:?}");
    assert!(said.text("detail").contains("account \"list 1\" is at its limit of 1 streams"), "{said:?}");
    player.more_bytes(50_000).await;
    assert_eq!((house.provider.peak(), house.gateway.gateway.counts().leases), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_program_does_wrong_is_told_in_its_own_words_without_the_address() {
    let house = House::new().await;
    let check = async |script: &str, expected: Value, words: &str| {
        let path = house.script(script).await;
        let said = house.tried(&path, json!({ "url": house.url(), "seconds": 3 })).await;
        assert_eq!(
            of(&said, &["success", "outcome", "cause", "delivery", "place"]),
            expected,
            "{script}: {said:?}"
        );
        assert!(said.text("message").contains(words), "{script}: {said:?}");
        said.body["program_lines"].clone()
    };
    let failed = json!([false, "failed", "exited", "command", null]);
    let lines = check("echo one >&2; echo cannot open $2 >&2; exit 3", failed, "ended with status 3").await;
    assert_eq!(lines, json!(["one", "cannot open …"]));
    let ended = json!([false, "ended", "exited", "command", "sh"]);
    let lines = check("cat ts; echo all of $2 is read >&2", ended, "ended with status 0").await;
    assert_eq!(lines, json!(["all of … is read"]));
    // It hangs, and so does what it started.
    let hangs = json!([false, "ended", "stall", "command", "sh"]);
    check("cat ts; sleep 1000", hangs, "Picture and sound stopped coming.").await;
    let missing = json!({ "name": "missing", "command": "no-such-program", "parameters": "{streamUrl}" });
    let made = house.admin.post("/api/core/streamprofiles/", missing).await;
    let path = format!("/api/core/streamprofiles/{}/test/", made.body["id"]);
    let said = house.tried(&path, json!({ "stream": house.stream() })).await;
    assert_eq!(of(&said, &["outcome", "cause"]), json!(["failed", "program"]));
    assert!(said.text("message").contains("no-such-program is not on this machine"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_talks_without_end_is_heard_to_its_last_lines() {
    let house = House::new().await;
    let path = house.script("cat ts; while true; do echo again and again of $2 >&2; done").await;
    let said = house.tried(&path, json!({ "url": house.url(), "seconds": 1 })).await;
    assert_eq!(of(&said, &["success", "outcome"]), json!([true, "played"]), "{said:?}");
    let lines = said.body["program_lines"].as_array().unwrap();
    assert!(lines.len() <= 20 && lines.contains(&json!("again and again of …")), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tests_run_at_one_time_and_a_third_is_asked_to_come_again() {
    let house = House::new().await;
    house.provider.path("/mute.ts").answers(Answer::mute());
    let body = json!({ "url": house.provider.url("/mute.ts") });
    let third = async {
        eventually("two connections", || house.provider.open() == 2).await;
        let said = house.admin.post(PROXY, body.clone()).await;
        house.provider.path("/mute.ts").cut(Cut::End);
        said
    };
    let (one, two, third) =
        tokio::join!(house.admin.post(PROXY, body.clone()), house.admin.post(PROXY, body.clone()), third);
    assert_eq!((third.status, third.answer.header("retry-after")), (503, Some("3")), "{third:?}");
    assert_eq!(third.body, json!({ "detail": "2 tests run already" }));
    assert_eq!((of(&one, &["outcome"]), of(&two, &["outcome"])), (json!(["failed"]), json!(["failed"])));
    let after = house.tried(PROXY, json!({ "url": house.url(), "seconds": 1 })).await;
    assert_eq!(of(&after, &["success"]), json!([true]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_ends_with_whoever_had_it_tried() {
    let house = House::new().await;
    let path = house.script("trap \"\" TERM; echo $$ >pid.new && mv pid.new pid && sleep 1000").await;
    let key = house.admin.post("/api/accounts/api-keys/generate/", json!({})).await;
    let request = Request::get(path)
        .method("POST")
        .header("X-API-Key", key.text("key"))
        .body("application/json", json!({ "stream": house.stream() }).to_string());
    let player = Player::ask(house.gateway.address, request).await;
    let pid = house.folder.path().join("pid");
    eventually("the program to run", || pid.exists()).await;
    assert_eq!(house.gateway.gateway.counts().leases, 1);
    player.leave().await;
    house.gateway.is_quiet().await;
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "it runs on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_stops_ends_its_tests() {
    let House { provider, gateway, admin, folder: _folder } = House::new().await;
    let body = json!({ "url": provider.url(NEWS), "seconds": 20 });
    let stop = async {
        eventually("the test to run", || provider.open() == 1).await;
        gateway.gateway.stop().await
    };
    let (said, stopped) = tokio::join!(admin.post(PROXY, body), stop);
    assert_eq!((said.status, stopped.is_clean), (503, true), "{said:?}");
    eventually("the provider to see us go", || provider.open() == 0).await;
}

/// These need ffmpeg.
mod slow {
    use super::*;
    use crate::support::signal::Clip;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_test_goes_through_ffmpeg_where_a_channel_would_and_says_codecs_and_size() {
        let clip = Clip::plain().await;
        let house = House::new().await;
        let playlist = format!(
            "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:20\n#EXT-X-MEDIA-SEQUENCE:1\n#EXTINF:20,\n{}\n",
            house.url()
        );
        let hls = house.provider.path("/live/anna/1.m3u8");
        hls.answers(Answer::text("application/vnd.apple.mpegurl", playlist));
        house.provider.path(NEWS).answers(Answer::play(clip));
        // The profile says proxy, and the address needs a program.
        for (path, body) in [
            (PROXY, json!({ "url": house.provider.url("/live/anna/1.m3u8"), "seconds": 2 })),
            ("/api/core/streamprofiles/4/test/", json!({ "stream": house.stream(), "seconds": 2 })),
        ] {
            let said = house.tried(path, body).await;
            let keys = ["success", "delivery", "place", "video_codec", "resolution", "audio_codecs"];
            let expected = json!([true, "command", "ffmpeg", "H.264", "320x180", ["AAC"]]);
            assert_eq!(of(&said, &keys), expected, "{said:?}");
        }
        house.provider.path("/gone.ts").answers(Answer::status(404));
        let said = house
            .tried(
                "/api/core/streamprofiles/3/test/",
                json!({ "url": house.provider.url("/gone.ts?t=hunter2-kept") }),
            )
            .await;
        assert_eq!(
            of(&said, &["success", "outcome", "cause"]),
            json!([false, "failed", "exited"]),
            "{said:?}"
        );
        assert!(said.body["program_lines"].to_string().contains("404"), "{said:?}");
    }
}
