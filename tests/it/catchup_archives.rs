//! What providers of archives are asked: the address of each kind of archive, their own time, and never over more
//! connections than they allow.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::client::{Player, Reading, Request, fetch};
use crate::support::files::FileProvider;
use crate::support::gateway::Setup;
use crate::support::panel::{Panel, listed};
use crate::support::signal::Picture;
use crate::support::upstream::{MockResponse, Provider};
use crate::support::users::{TestUser, create_user};
use crate::support::{eventually, until_async};

/// A rate at which no part of these tests ends.
const SLOWLY: Reading = Reading::BytesPerSecond(20_000);

fn now() -> i64 {
    Timestamp::now().as_second()
}

/// Returns bytes other than a transport stream.
fn file(n_bytes: usize) -> Vec<u8> {
    (0..n_bytes as u32).map(|it| (it.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Returns the address of a part at which player apps ask for it.
fn past(user: &TestUser, channel: u64, start: i64, minutes: u32) -> String {
    format!("/timeshift{}", user.path(&format!("{minutes}/{start}/{channel}.ts")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_archive_is_asked_at_its_own_address() {
    let film = file(300_000);
    let provider = FileProvider::start(film.clone()).await;
    provider.limit(1);
    let start = now() / 60 * 60 - 2 * 86_400;
    let minute = Timestamp::from_second(start).unwrap().strftime("%Y-%m-%d:%H-%M");
    let of_provider = |path: &str| provider.url(path);
    // Attributes, live address, and what the provider is asked for. What is in braces is a number near the present.
    let cases = [
        (
            r#"catchup="append" catchup-source="?from={utc}&for={duration}""#,
            "/a/1.ts",
            format!("/a/1.ts?from={start}&for=1800"),
        ),
        (
            r#"catchup="append" catchup-source="&from=${start}&to=${end}""#,
            "/a/2.ts?t=x",
            format!("/a/2.ts?t=x&from={start}&to={}", start + 1_800),
        ),
        (r#"catchup="shift""#, "/b/1.ts", format!("/b/1.ts?utc={start}&lutc={{}}")),
        (
            r#"catchup="shift" catchup-correction="-1.5""#,
            "/b/2.ts?t=x",
            format!("/b/2.ts?t=x&utc={}&lutc={{}}", start + 5_400),
        ),
        (r#"timeshift="5""#, "/b/3.ts", format!("/b/3.ts?utc={start}&lutc={{}}")),
        (r#"catchup="fs""#, "/c/mpegts?token=t", format!("/c/timeshift_abs-{start}.ts?token=t")),
        (r#"catchup="flussonic""#, "/d/live", format!("/d/timeshift_abs-{start}.ts")),
        (r#"catchup="flussonic-ts""#, "/e/index.m3u8", format!("/e/timeshift_abs-{start}.ts")),
        (r#"catchup="xc""#, "/live/user/pass/7.ts", format!("/timeshift/user/pass/30/{minute}/7.ts")),
        (r#"catchup="xc""#, "/user/pass/8", format!("/timeshift/user/pass/30/{minute}/8.ts")),
        (
            r#"catchup="vod" catchup-source="PROVIDER/files/{Y}{m}{d}-{utc}.mp4""#,
            "/f/1.ts",
            format!("/files/{}-{start}.mp4", Timestamp::from_second(start).unwrap().strftime("%Y%m%d")),
        ),
        (
            r#"catchup="default" catchup-source="PROVIDER/all/${start}-{utcend}""#,
            "/g/1.ts",
            format!("/all/{start}-{}", start + 1_800),
        ),
    ];
    let mut list = "#EXTM3U\n".to_owned();
    for (number, (attributes, live, _)) in cases.iter().enumerate() {
        let attributes = attributes.replace("PROVIDER", &of_provider(""));
        list +=
            &format!("#EXTINF:-1 {attributes} catchup-days=\"3\",Channel {number}\n{}\n", of_provider(live));
    }
    let gateway = Setup::new().limited_list(&list, 1).start().await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    for (number, (attributes, _, expected)) in cases.iter().enumerate() {
        let id = gateway.channel(&format!("Channel {number}")).id.0;
        let before = now();
        let answer = fetch(gateway.address, Request::get(past(&anna, id.into(), start, 30))).await;
        assert_eq!(answer.status(), 200, "{attributes}: {}", answer.text());
        assert!(answer.bytes == film, "{attributes}: other bytes");
        let (asked, _) = provider.requests().last().expect("a request").clone();
        match expected.split_once("{}") {
            None => assert_eq!(&asked, expected, "{attributes}"),
            Some((begin, end)) => {
                let number = asked.strip_prefix(begin).and_then(|it| it.strip_suffix(end));
                let number: i64 = number.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("{asked}"));
                assert!((before..=now()).contains(&number), "{attributes}: {asked}");
            }
        }
    }
    gateway.until_idle().await;
    assert_eq!((provider.peak(), provider.n_refused()), (1, 0));
    assert_eq!(provider.requests().len(), cases.len(), "one request each");
}

/// The zone of a panel.
struct Zone {
    name: &'static str,
    /// The panel does not name it, so that only its clocks show it.
    by_clocks: bool,
}

/// Holds T-time.2: one moment is asked for in the local time of each panel.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panels_in_four_zones_are_asked_for_one_moment_in_their_own_time_also_when_clocks_change() {
    let zones = [
        Zone { name: "Europe/Paris", by_clocks: false },
        Zone { name: "America/New_York", by_clocks: false },
        Zone { name: "Asia/Kolkata", by_clocks: true },
        Zone { name: "Australia/Lord_Howe", by_clocks: false },
    ];
    let gateway = Setup::new().start().await;
    let admin = Api::first_admin(&gateway).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let mut panels = Vec::new();
    for (number, zone) in zones.iter().enumerate() {
        let user = format!("user{number}");
        let panel = Panel::start(&user, "pass");
        panel.offers(&[(7, "News")]);
        let mut stream = listed(7, "News");
        (stream["tv_archive"], stream["tv_archive_duration"]) = (json!(1), json!(365));
        panel.says("get_live_streams", &json!([stream]));
        let local = TimeZone::get(zone.name).unwrap();
        let clock = local.to_datetime(Timestamp::now()).strftime("%Y-%m-%d %H:%M:%S").to_string();
        let name = if zone.by_clocks { "" } else { zone.name };
        let server = json!({ "timezone": name, "time_now": clock, "timestamp_now": now() });
        panel.tells(json!({ "max_connections": "1" }), server);
        panel.provider.limit(&user, 1, 403, Duration::ZERO);
        panel.provider.computes(|it| {
            it.path
                .starts_with("/timeshift/")
                .then(|| MockResponse::text("application/octet-stream", file(50_000)))
        });
        let body = json!({
            "name": zone.name, "account_type": "XC", "server_url": panel.url(), "username": user, "password": "pass",
        });
        let made = admin.post("/api/m3u/accounts/", body).await;
        assert_eq!(made.status, 201, "{made:?}");
        let account = format!("/api/m3u/accounts/{}/", made.body["id"]);
        until_async("the import", async || admin.get(&account).await.body["status"] == "success").await;
        let streams = admin.get("/api/channels/streams/?ordering=id").await.body["results"].clone();
        let is_new = |it: &&Value| it["m3u_account"] == made.body["id"];
        let stream = streams.as_array().unwrap().iter().find(is_new).expect("a stream of the account");
        let channel = json!({ "stream_id": stream["id"], "name": zone.name });
        let channel = admin.post("/api/channels/channels/from-stream/", channel).await;
        assert_eq!(channel.status, 201, "{channel:?}");
        panels.push((panel, local, channel.body["id"].as_u64().unwrap()));
    }
    // Half an hour before and after each change of a clock of the last year, and a moment of yesterday.
    let changes: BTreeSet<i64> = panels
        .iter()
        .flat_map(|(_, local, _)| {
            local.preceding(Timestamp::now()).map(|it| it.timestamp().as_second()).take(2)
        })
        .filter(|it| (now() - 364 * 86_400..now() - 7_200).contains(it))
        .collect();
    assert!(!changes.is_empty());
    let yesterday = now() / 60 * 60 - 86_400;
    let moments = changes.iter().flat_map(|it| [it - 1_800, it + 1_800]).chain([yesterday]);
    for at in moments {
        for ((panel, local, channel), zone) in panels.iter().zip(&zones) {
            let answer = fetch(gateway.address, Request::get(past(&anna, *channel, at, 60))).await;
            assert_eq!(answer.status(), 200, "{} {at}: {}", zone.name, answer.text());
            let written = local.to_datetime(Timestamp::from_second(at).unwrap()).strftime("%Y-%m-%d:%H-%M");
            let asked = panel.provider.requests().last().unwrap().path.clone();
            assert!(
                asked.starts_with("/timeshift/user") && asked.ends_with(&format!("/pass/60/{written}/7.ts")),
                "{} {at}: {asked}",
                zone.name
            );
        }
    }
    gateway.until_idle().await;
    for (number, (panel, ..)) in panels.iter().enumerate() {
        let provider = &panel.provider;
        assert_eq!((provider.peak_of(&format!("user{number}")), provider.refusals()), (1, 0));
    }
}

/// Returns the playlist of an account of a provider: News with its archive, and another channel.
fn list_of(provider: &Provider, account: &str) -> String {
    format!(
        "#EXTM3U\n#EXTINF:-1 tvg-id=\"news\" catchup=\"default\" catchup-days=\"2\" catchup-source=\"{}\",News\n{}\n\
         #EXTINF:-1 tvg-id=\"other-{account}\",Other {account}\n{}\n",
        provider.url(&format!("/past/{account}/{{utc}}.bin")),
        provider.url(&format!("/live/{account}/news.ts")),
        provider.url(&format!("/live/{account}/other.ts")),
    )
}

/// Returns the paths of the parts that were asked for.
fn parts(provider: &Provider) -> Vec<String> {
    let paths = provider.requests().into_iter().map(|it| it.path);
    paths.filter(|it| it.starts_with("/past/")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_that_lacks_a_part_is_followed_by_the_one_of_the_next_account() {
    let provider = Provider::start();
    let film = file(200_000);
    let answer = film.clone();
    provider.computes(move |it| {
        it.path
            .starts_with("/past/b/")
            .then(|| MockResponse::text("application/octet-stream", answer.clone()))
    });
    let [first, second] = ["a", "b"].map(|it| list_of(&provider, it));
    let gateway = Setup::new().limited_list(&first, 1).limited_list(&second, 1).start().await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let start = now() - 3_600;
    let channel = gateway.channel("News").id.0;
    let answer = fetch(gateway.address, Request::get(past(&anna, channel.into(), start, 30))).await;
    assert_eq!((answer.status(), answer.bytes == film), (200, true), "{}", answer.text());
    assert_eq!(parts(&provider), [format!("/past/a/{start}.bin"), format!("/past/b/{start}.bin")]);
    gateway.until_idle().await;
    assert_eq!((provider.peak_of("a"), provider.peak_of("b")), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seeks_in_the_past_stay_with_their_account_and_its_one_connection() {
    let provider = Provider::start();
    for account in ["a", "b"] {
        provider.limit(account, 1, 403, Duration::ZERO);
        provider.path(&format!("/live/{account}/other.ts")).plays(Picture::new("other"));
    }
    let film = file(5_000_000);
    provider.computes(move |it| {
        it.path.starts_with("/past/").then(|| MockResponse::text("application/octet-stream", film.clone()))
    });
    let [first, second] = ["a", "b"].map(|it| list_of(&provider, it));
    let gateway = Setup::new().limited_list(&first, 1).limited_list(&second, 1).start().await;
    let anna = create_user(&gateway, "anna", |it| it.stream_limit = 1).await;
    // Somebody else has the first account, which is free again before the seeks.
    let viewer = gateway.watch("Other a").await;
    viewer.sees("other").await;
    let (start, channel) = (now() - 7_200, gateway.channel("News").id.0);
    let watch = async |at: i64| {
        let request = Request::get(past(&anna, channel.into(), at, 60)).reading(SLOWLY).without_recording();
        let player = Player::ask(gateway.address, request).await;
        player.more_bytes(10_000).await;
        player
    };
    let mut watching = watch(start).await;
    viewer.leave().await;
    until_async("the end of the channel", async || gateway.gateway.counts().channels == 0).await;
    for seek in 1..=6_i64 {
        let at = start + seek * 600;
        // Some players close their connection before they open the next one, and some afterwards.
        if seek % 2 == 0 {
            watching.leave().await;
            watching = watch(at).await;
        } else {
            let next = watch(at).await;
            std::mem::replace(&mut watching, next).leave().await;
        }
        let counts = || (gateway.gateway.counts().seats, gateway.gateway.counts().leases);
        eventually("one seat and one slot", || counts() == (1, 1)).await;
    }
    let expected: Vec<_> = (0..=6).map(|it| format!("/past/b/{}.bin", start + it * 600)).collect();
    assert_eq!(parts(&provider), expected);
    assert_eq!((provider.peak_of("b"), provider.refusals()), (1, 0), "{:?}", provider.overlaps("b"));
    watching.leave().await;
    gateway.until_idle().await;
}

/// These need ffmpeg.
mod slow {
    use super::*;
    use crate::support::tools;

    /// Length of the archive's segments together, in seconds.
    const SECONDS: i64 = 20;

    /// Makes segments of four seconds, at `/hls/anna/{n}.ts`. Returns their playlist.
    async fn serve_segments(provider: &Provider) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list.m3u8").display().to_string();
        let picture = format!("testsrc2=size=320x180:rate=25:duration={SECONDS}");
        let inputs = ["-f", "lavfi", "-i", &picture, "-f", "lavfi", "-i", "sine=d=20"];
        let codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-c:a", "aac"];
        let muxer = ["-f", "hls", "-hls_time", "4", "-hls_list_size", "0", &file];
        tools::text_of("ffmpeg", &[&["-v", "error"][..], &inputs, &codecs, &muxer].concat()).await;
        let mut list = std::fs::read_to_string(&file).unwrap();
        for n in 0.. {
            let name = format!("list{n}.ts");
            let Ok(segment) = std::fs::read(folder.path().join(&name)) else { break };
            provider.path(&format!("/hls/anna/{n}.ts")).answers(MockResponse::text("video/mp2t", segment));
            list = list.replace(&name, &format!("{n}.ts"));
        }
        list
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_archive_that_answers_with_a_playlist_of_segments_plays_over_one_connection() {
        let provider = Provider::start();
        provider.limit("anna", 1, 403, Duration::ZERO);
        let playlist = serve_segments(&provider).await;
        let start = now() - 7_200;
        // The archive has this time only.
        provider.computes(move |it| {
            let offset = it.path.strip_prefix("/hls/anna/timeshift_rel-")?.strip_suffix(".m3u8")?;
            let at = now() - offset.parse::<i64>().ok()?;
            let is_start = (start - 2..=start + 2).contains(&at);
            is_start.then(|| MockResponse::text("application/vnd.apple.mpegurl", playlist.clone()))
        });
        let list = format!(
            "#EXTM3U\n#EXTINF:-1 catchup=\"flussonic\" catchup-days=\"2\",News\n{}\n",
            provider.url("/hls/anna/index.m3u8")
        );
        let gateway = Setup::new().limited_list(&list, 1).start().await;
        let anna = create_user(&gateway, "anna", |it| it.stream_limit = 1).await;
        let live = anna.live(&gateway.channel("News").id.to_string());
        let path = format!("{live}?utc={start}&duration={SECONDS}");
        let answer = fetch(gateway.address, Request::get(path)).await;
        assert_eq!(
            (answer.status(), answer.header("content-type")),
            (200, Some("video/mp2t")),
            "{}",
            answer.text()
        );
        let file = tools::saved(&answer.bytes);
        let path = file.path().display().to_string();
        let what = ["-show_entries", "packet=codec_type,stream_index,dts_time", "-of", "csv=p=0", &path];
        let packets = tools::text_of("ffprobe", &[&["-v", "error"][..], &what].concat()).await;
        let times = tools::DecodingTimes::from_packets(&packets);
        assert_eq!(times.n_streams, 2);
        assert!((times.seconds - SECONDS as f64).abs() < 2.0, "{} s", times.seconds);
        gateway.until_idle().await;
        let overlaps = provider.overlaps("anna");
        assert_eq!((provider.peak_of("anna"), provider.refusals()), (1, 0), "{overlaps:?}");
        let segments = provider.requests().iter().filter(|it| it.path.ends_with(".ts")).count();
        assert_eq!(segments, SECONDS as usize / 4, "each segment once");
    }
}
