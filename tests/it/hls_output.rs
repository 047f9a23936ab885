//! Live channels with HLS and as fragmented MP4: the same channel, the same connection to the provider, the same limits.

use std::sync::Arc;
use std::time::Duration;

use domain::event::EventBody;
use domain::user::User;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::api::Api;
use crate::support::client::{Player, Request, Response, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::{Clip, Picture, TEST_PICTURE};
use crate::support::upstream::Provider;
use crate::support::users::{TestUser, change_user, create_user};
use crate::support::web::Web;
use crate::support::{eventually, tools, until_async};

const PLAYLIST: &str = "application/vnd.apple.mpegurl";

/// The arguments of ffmpeg for pictures that every browser plays, with a key frame in each second.
pub const OUTPUT: [&str; 12] =
    ["-t", "20", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "25", "-c:a", "aac"];

/// Starts a gateway with the channels `News` and `Late`, which send real pictures and sound.
async fn set_up() -> (Provider, TestGateway) {
    let provider = Provider::start();
    let clip = Clip::make("hls", &TEST_PICTURE, &OUTPUT).await;
    provider.path("/news.ts").plays(Arc::clone(&clip));
    provider.path("/late.ts").plays(clip);
    let list = provider.playlist(&[("news", "News", "/news.ts"), ("late", "Late", "/late.ts")]);
    let gateway = Setup::new().list(&list).start().await;
    (provider, gateway)
}

/// A player of HLS that reads playlists as it is told.
pub struct Watching<'a> {
    gateway: &'a TestGateway,
    agent: String,
    /// Path of the media playlist, without its name.
    folder: String,
}

impl<'a> Watching<'a> {
    /// Requests a master playlist.
    pub async fn master(gateway: &TestGateway, path: &str, agent: &str) -> Response {
        fetch(gateway.address, Request::get(path).header("User-Agent", agent)).await
    }

    /// Begins to watch.
    pub async fn begin(gateway: &'a TestGateway, path: &str, agent: &str) -> Watching<'a> {
        let master = Self::master(gateway, path, agent).await;
        assert_eq!(master.status(), 200, "{path}: {}", master.text());
        assert_eq!(master.header("content-type"), Some(PLAYLIST));
        Self::new(gateway, &master, agent)
    }

    fn new(gateway: &'a TestGateway, master: &Response, agent: &str) -> Watching<'a> {
        let text = master.text();
        let media = text.lines().find(|it| !it.starts_with('#')).expect("an address");
        let folder = media.strip_suffix("index.m3u8").expect("a media playlist").to_owned();
        Watching { gateway, agent: agent.to_owned(), folder }
    }

    fn get(&self, name: &str) -> Request {
        Request::get(format!("{}{name}", self.folder)).header("User-Agent", &self.agent)
    }

    /// Returns the token of the session.
    fn token(&self) -> &str {
        self.folder.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }

    pub async fn fetch(&self, name: &str) -> Response {
        fetch(self.gateway.address, self.get(name)).await
    }

    pub async fn playlist(&self) -> String {
        let answer = self.fetch("index.m3u8").await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
        answer.text()
    }

    /// Returns the names of the segments in the playlist.
    async fn segments(&self) -> Vec<String> {
        let text = self.playlist().await;
        text.lines().filter(|it| !it.starts_with('#')).map(str::to_owned).collect()
    }
}

pub fn live(user: &TestUser, gateway: &TestGateway, channel: &str, extension: &str) -> String {
    user.live(&format!("{}.{extension}", gateway.channel(channel).id))
}

pub fn open(gateway: &TestGateway, channel: &str) -> String {
    format!("/proxy/hls/{}/index.m3u8", gateway.channel(channel).uuid)
}

/// Returns the clients of a channel.
pub async fn clients(api: &Api, gateway: &TestGateway, channel: &str) -> Vec<Value> {
    let status = api.get(&format!("/proxy/ts/status/{}", gateway.channel(channel).uuid)).await;
    status.body["clients"].as_array().cloned().unwrap_or_default()
}

fn reasons(gateway: &TestGateway) -> Vec<String> {
    let reason = |body: &EventBody| match body {
        EventBody::ClientDisconnect { reason, .. } => Some(reason.clone()),
        _ => None,
    };
    gateway.events().iter().filter_map(|it| reason(&it.body)).collect()
}

/// Plays an address for some seconds with ffmpeg, and returns its complaints.
async fn play(gateway: &TestGateway, path: &str, seconds: &str) -> String {
    let url = format!("http://{}{path}", gateway.address);
    let output =
        tools::run("ffmpeg", &["-v", "error", "-i", &url, "-t", seconds, "-map", "0", "-f", "null", "-"])
            .await;
    assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the codecs that ffprobe finds at an address.
async fn codecs(gateway: &TestGateway, path: &str) -> Vec<String> {
    let url = format!("http://{}{path}", gateway.address);
    let arguments = ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", &url];
    let text = tools::text_of("ffprobe", &arguments).await;
    let mut codecs: Vec<String> =
        text.lines().map(|it| it.trim_matches(',').to_owned()).filter(|it| !it.is_empty()).collect();
    codecs.sort();
    codecs.dedup();
    codecs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ffmpeg_plays_a_channel_with_both_containers_and_as_fragmented_mp4() {
    let (provider, gateway) = set_up().await;
    let anna = create_user(&gateway, "anna", |_| ()).await;
    let hls = live(&anna, &gateway, "News", "m3u8");
    for path in [
        format!("{hls}?container=ts"),
        format!("{hls}?container=fmp4"),
        format!("{hls}?ll=1"),
        live(&anna, &gateway, "News", "mp4"),
        anna.path(&format!("{}.m3u8", gateway.channel("News").id)),
    ] {
        assert_eq!(codecs(&gateway, &path).await, ["aac", "h264"], "{path}");
        assert_eq!(play(&gateway, &path, "5").await, "", "{path}");
    }
    assert_eq!(provider.peak(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewers_of_all_formats_share_one_connection_and_are_shown_with_their_format() {
    let (provider, gateway) = set_up().await;
    let api = Api::first_admin(&gateway).await;
    let ts = gateway.watch("News").await;
    let path = open(&gateway, "News");
    let hls = Watching::begin(&gateway, &format!("{path}?container=ts"), "stick").await;
    let phone = Watching::begin(&gateway, &path, "AppleCoreMedia/1.0").await;
    let quick = Watching::begin(&gateway, &format!("{path}?ll=1"), "quick").await;
    let mp4 = Player::watch(gateway.address, &format!("{}?output_format=fmp4", gateway.path("News"))).await;
    assert_eq!(mp4.head().await.header("content-type"), Some("video/mp4"));
    mp4.more_bytes(10_000).await;
    assert_eq!(&mp4.recording()[4..8], b"ftyp");
    for watching in [&hls, &phone, &quick] {
        let name = watching.segments().await.pop().unwrap();
        let segment = watching.fetch(&name).await;
        assert_eq!(segment.status(), 200);
        assert!(segment.bytes.len() > 10_000, "{name}: {}", segment.bytes.len());
    }
    assert_eq!((provider.accepted(), provider.peak()), (1, 1));
    assert_eq!(gateway.gateway.counts().clients, 5);
    let mut found: Vec<_> = clients(&api, &gateway, "News").await;
    found.sort_by_key(|it| it["output_format"].as_str().unwrap().to_owned());
    let formats: Vec<_> = found.iter().map(|it| it["output_format"].as_str().unwrap()).collect();
    assert_eq!(formats, ["fmp4", "hls-fmp4", "hls-ts", "ll-hls", "mpegts"]);
    assert!(found.iter().all(|it| it["bytes_sent"].as_u64().unwrap() > 10_000), "{found:?}");
    let status = api.get(&format!("/proxy/ts/status/{}", gateway.channel("News").uuid)).await;
    let segmenters = status.body["segmenters"].as_array().unwrap();
    assert_eq!(segmenters.len(), 2, "{segmenters:?}");
    let of = |container: &str| segmenters.iter().find(|it| it["container"] == container).unwrap();
    assert_eq!((&of("ts")["viewers"], &of("fmp4")["viewers"]), (&json!(1), &json!(3)));
    assert!(of("fmp4")["codecs"].as_str().unwrap().starts_with("avc1."), "{segmenters:?}");
    assert!(of("ts")["latency"].as_f64().unwrap() < 10.0, "{segmenters:?}");
    drop((ts, mp4));
    gateway.until_idle().await;
    assert_eq!(provider.open(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_that_asks_again_keeps_its_session_and_no_playlist_contains_credentials() {
    let (_provider, gateway) = set_up().await;
    let anna = create_user(&gateway, "anna", |it| it.stream_limit = 1).await;
    let path = live(&anna, &gateway, "News", "m3u8");
    // Several requests at once, as from a player that probes.
    let masters = [(); 4].map(|()| Watching::master(&gateway, &path, "tv"));
    let masters = futures_util::future::join_all(masters).await;
    let texts: Vec<String> = masters.iter().map(Response::text).collect();
    for text in &texts {
        assert_eq!(*text, texts[0], "one session");
        assert!(!text.contains("anna") && !text.contains("pw"), "{text}");
        assert!(text.contains("CODECS=\"avc1."), "{text}");
    }
    assert_eq!((gateway.gateway.counts().clients, gateway.gateway.counts().seats), (1, 1));
    let watching = Watching::new(&gateway, &masters[0], "tv");
    let playlist = watching.playlist().await;
    assert!(!playlist.contains("anna") && !playlist.contains("pw"), "{playlist}");
    assert_eq!(watching.token().len(), 32, "128 bits");
    // Another program of the same user is another device.
    let refused = Watching::master(&gateway, &path, "phone").await;
    assert_eq!(refused.status(), 503, "{}", refused.text());
    assert!(refused.text().contains("limit of 1 streams"), "{}", refused.text());
    // The same device may change the channel.
    let late = Watching::begin(&gateway, &live(&anna, &gateway, "Late", "m3u8"), "tv").await;
    until_async("the end of the first session", async || watching.fetch("index.m3u8").await.status() == 403)
        .await;
    let ended = watching.fetch("index.m3u8").await.text();
    assert!(ended.contains("replaced by the same device"), "{ended}");
    assert!(!late.segments().await.is_empty());
    assert_eq!(gateway.gateway.counts().seats, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_is_the_same_for_everybody_and_never_changes() {
    let (_provider, gateway) = set_up().await;
    for query in ["container=ts", "container=fmp4"] {
        let path = format!("{}?{query}", open(&gateway, "News"));
        let first = Watching::begin(&gateway, &path, "one").await;
        let second = Watching::begin(&gateway, &path, "two").await;
        assert_ne!(first.folder, second.folder);
        let name = first.segments().await.pop().unwrap();
        let (a, b) = (first.fetch(&name).await, second.fetch(&name).await);
        assert_eq!((a.status(), b.status()), (200, 200));
        assert_eq!(a.bytes, b.bytes);
        let tag = a.header("etag").unwrap();
        assert_eq!(Some(tag), b.header("etag"));
        let media_type = if query.ends_with("ts") { "video/mp2t" } else { "video/mp4" };
        assert_eq!(a.header("content-type"), Some(media_type));
        assert_eq!(a.header("content-length"), Some(&*a.bytes.len().to_string()));
        assert_eq!(a.header("accept-ranges"), Some("bytes"));
        assert_eq!(a.header("access-control-allow-origin"), Some("*"));
        let caching = a.header("cache-control").unwrap();
        assert!(caching.starts_with("public, max-age=") && caching.ends_with("immutable"), "{caching}");
        let known = fetch(gateway.address, first.get(&name).header("If-None-Match", tag)).await;
        assert_eq!((known.status(), known.bytes.len(), known.header("etag")), (304, 0, Some(tag)));
        // With many viewers, segments are sent from memory files.
        let mut others = Vec::new();
        for number in 0..8 {
            others.push(Watching::begin(&gateway, &path, &format!("other {number}")).await);
        }
        for watching in &others {
            assert!(watching.fetch(&name).await.bytes == a.bytes, "{name}");
        }
        let part = fetch(gateway.address, first.get(&name).header("Range", "bytes=10-99")).await;
        assert_eq!((part.status(), &part.bytes[..]), (206, &a.bytes[10..100]));
        assert_eq!(part.header("content-range"), Some(&*format!("bytes 10-99/{}", a.bytes.len())));
        let beyond = format!("bytes={}-", a.bytes.len());
        let none = fetch(gateway.address, first.get(&name).header("Range", &beyond)).await;
        assert_eq!(none.status(), 416);
        let zipped = fetch(gateway.address, first.get(&name).header("Accept-Encoding", "gzip")).await;
        assert_eq!((zipped.header("content-encoding"), zipped.bytes == a.bytes), (None, true));
        let head = fetch(gateway.address, Request::head(format!("{}{name}", first.folder))).await;
        assert_eq!((head.status(), head.bytes.len()), (200, 0));
        assert_eq!(
            (head.header("content-length"), head.header("etag")),
            (a.header("content-length"), Some(tag))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_opens_one_channel_and_nothing_else() {
    let (_provider, gateway) = set_up().await;
    let path = format!("{}?container=ts", open(&gateway, "News"));
    let news = Watching::begin(&gateway, &path, "one").await;
    let late = Watching::begin(
        &gateway,
        &path.replace(&*gateway.channel("News").uuid.to_string(), &gateway.channel("Late").uuid.to_string()),
        "two",
    )
    .await;
    let (of_news, of_late) = (news.segments().await, late.segments().await);
    let mixed = news.fetch(&of_late[0]).await;
    // Numbers can be equal by chance, and then the media is that of the own channel.
    if of_news.contains(&of_late[0]) {
        assert_eq!(mixed.bytes, news.fetch(&of_late[0]).await.bytes);
    } else {
        assert_eq!(mixed.status(), 404);
    }
    for name in ["index.m3u8", &*of_news[0]] {
        for token in ["0".repeat(32), "x".to_owned(), "%00".to_owned()] {
            let path = format!("/proxy/hls/session/{token}/{name}");
            let answer = fetch(gateway.address, Request::get(path)).await;
            assert_eq!(answer.status(), 404, "{}", answer.text());
            assert!(answer.text().contains("does not exist"), "{}", answer.text());
        }
    }
    for name in ["0.ts", "1.m4s", "init-1.mp4", "..", "index.m3u", "99999999999999999999.ts"] {
        assert_eq!(news.fetch(name).await.status(), 404, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_that_is_disconnected_or_loses_the_permission_gets_no_more_media() {
    let (_provider, gateway) = set_up().await;
    let api = Api::first_admin(&gateway).await;
    let anna = create_user(&gateway, "anna", |_| ()).await;
    let path = live(&anna, &gateway, "News", "m3u8");
    let kicked = Watching::begin(&gateway, &path, "tv").await;
    let id = clients(&api, &gateway, "News").await[0]["client_id"].clone();
    let stop = format!("/proxy/ts/stop_client/{}", gateway.channel("News").uuid);
    let stopped = api.post(&stop, json!({ "client_id": id })).await;
    assert_eq!(stopped.status, 200, "{:?}", stopped.body);
    until_async("the end", async || kicked.fetch("index.m3u8").await.status() == 403).await;
    let reason = kicked.fetch("index.m3u8").await.text();
    assert!(reason.contains("disconnected"), "{reason}");
    assert!(reasons(&gateway).contains(&"kicked".to_owned()), "{:?}", reasons(&gateway));

    let anna_watches = Watching::begin(&gateway, &path, "tv").await;
    assert_ne!(anna_watches.folder, kicked.folder, "a kicked player may watch again");
    let name = anna_watches.segments().await.pop().unwrap();
    change_user(&gateway, &anna, |it: &mut User| it.is_active = false).await;
    until_async("the end", async || anna_watches.fetch(&name).await.status() == 403).await;
    let reason = anna_watches.fetch("index.m3u8").await.text();
    assert!(reason.contains("may no longer watch"), "{reason}");
    assert_eq!(Watching::master(&gateway, &path, "tv").await.status(), 401);
    gateway.until_idle().await;
    assert_eq!(gateway.gateway.counts().seats, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_three_target_durations_after_its_last_request_and_frees_its_seat() {
    let (provider, gateway) = set_up().await;
    let anna = create_user(&gateway, "anna", |it| it.stream_limit = 1).await;
    let path = live(&anna, &gateway, "News", "m3u8");
    let watching = Watching::begin(&gateway, &path, "tv").await;
    let text = watching.playlist().await;
    let target = text.lines().find_map(|it| it.strip_prefix("#EXT-X-TARGETDURATION:")).unwrap();
    let lifetime = Duration::from_secs(3 * target.parse::<u64>().unwrap());
    // Requests keep it.
    sleep(lifetime / 2).await;
    watching.playlist().await;
    let last = Instant::now();
    sleep(lifetime / 2).await;
    assert_eq!((gateway.gateway.counts().clients, gateway.gateway.counts().seats), (1, 1));
    let limit = lifetime + Duration::from_secs(3);
    while gateway.gateway.counts().clients > 0 {
        assert!(last.elapsed() < limit, "{:?} after the last request", last.elapsed());
        sleep(Duration::from_millis(50)).await;
    }
    assert!(last.elapsed() >= lifetime - Duration::from_secs(1), "{:?}", last.elapsed());
    let answer = watching.fetch("index.m3u8").await;
    assert_eq!(answer.status(), 404);
    assert!(answer.text().contains("no request"), "{}", answer.text());
    gateway.until_idle().await;
    assert_eq!((gateway.gateway.counts().seats, provider.open()), (0, 0));
    assert_eq!(Watching::master(&gateway, &path, "phone").await.status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_with_low_latency_waits_for_parts_and_playlists_are_compressed() {
    let (_provider, gateway) = set_up().await;
    let path = format!("{}?ll=1", open(&gateway, "News"));
    let watching = Watching::begin(&gateway, &path, "quick").await;
    let text = watching.playlist().await;
    for expected in [
        "CAN-BLOCK-RELOAD=YES",
        "#EXT-X-PART-INF:PART-TARGET=",
        "#EXT-X-PRELOAD-HINT:TYPE=PART",
        "#EXT-X-MAP:",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let hint = text.lines().find_map(|it| it.strip_prefix("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"")).unwrap();
    let hint = hint.trim_end_matches('"').to_owned();
    let (segment, part) = hint.trim_end_matches(".m4s").split_once('.').unwrap();
    // The playlist and the part that it announces come when the part is complete.
    let reload = format!("index.m3u8?_HLS_msn={segment}&_HLS_part={part}");
    let (playlist, part) = tokio::join!(watching.fetch(&reload), watching.fetch(&hint));
    assert_eq!((playlist.status(), part.status()), (200, 200), "{} {}", playlist.text(), part.text());
    assert!(playlist.text().contains(&format!("URI=\"{hint}\"")), "{}", playlist.text());
    assert!(part.bytes.len() > 1000);
    for (query, status) in [
        ("_HLS_part=1", 400),
        ("_HLS_msn=x", 400),
        ("_HLS_msn=99999999999", 400),
        ("_HLS_msn=1", 200),
        ("_HLS_msn=-1", 400),
        ("_HLS_skip=YES", 200),
    ] {
        let answer = watching.fetch(&format!("index.m3u8?{query}")).await;
        assert_eq!(answer.status(), status, "{query}: {}", answer.text());
    }
    let zipped = fetch(gateway.address, watching.get("index.m3u8").header("Accept-Encoding", "gzip")).await;
    assert_eq!(
        (zipped.header("content-encoding"), zipped.header("vary")),
        (Some("gzip"), Some("Accept-Encoding"))
    );
    assert!(zipped.header("cache-control").is_some_and(|it| it.contains("no-cache")));
    let mut unzipped = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&zipped.bytes[..]), &mut unzipped)
        .unwrap();
    assert!(unzipped.starts_with("#EXTM3U\n"), "{unzipped}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_plays_the_formats_that_an_admin_allows_and_gets_the_first_one_by_default() {
    let (provider, gateway) = set_up().await;
    let formats = |it: &mut User, formats: Value| {
        it.custom_properties.insert("output_formats".to_owned(), formats);
    };
    let anna = create_user(&gateway, "anna", |it| formats(it, json!(["m3u8", "ts"]))).await;
    let bob = create_user(&gateway, "bob", |it| formats(it, json!(["ts"]))).await;
    let id = gateway.channel("News").id;
    let head = async |path: String| {
        let answer = fetch(gateway.address, Request::head(&path)).await;
        (answer.status(), answer.header("content-type").map(str::to_owned))
    };
    let of = |status: u16, media_type: &str| (status, Some(media_type.to_owned()));
    assert_eq!(head(anna.live(&id.to_string())).await, of(200, PLAYLIST));
    assert_eq!(head(anna.live(&format!("{id}.ts"))).await, of(200, "video/mp2t"));
    assert_eq!(head(anna.live(&format!("{id}.mp4"))).await, of(403, "application/json"));
    assert_eq!(head(bob.live(&id.to_string())).await, of(200, "video/mp2t"));
    assert_eq!(head(bob.live(&format!("{id}?output_format=fmp4"))).await, of(403, "application/json"));
    assert_eq!(head(bob.live(&format!("{id}?output=hls"))).await, of(403, "application/json"));
    assert_eq!(head(bob.live(&format!("{id}?output=rtmp"))).await, of(200, "video/mp2t"));
    assert_eq!(head(bob.live(&format!("{id}?output_format=rtmp"))).await, of(400, "application/json"));
    let past = fetch(gateway.address, Request::get(anna.live(&format!("{id}.m3u8?utc=1700000000")))).await;
    assert_eq!(past.status(), 400, "{}", past.text());
    assert!(past.text().contains(".ts"), "{}", past.text());
    let uuid = gateway.channel("News").uuid;
    let of_uuid = |user: &TestUser| format!("/proxy/hls/{uuid}/index.m3u8?token={}", user.token(&gateway));
    assert_eq!(head(of_uuid(&anna)).await, of(200, PLAYLIST));
    assert_eq!(head(of_uuid(&bob)).await, of(403, "application/json"));
    assert_eq!(head(format!("/proxy/hls/{uuid}/index.m3u8?token=x")).await, of(401, "application/json"));
    assert_eq!(provider.accepted(), 0, "nothing was opened");
    let account = fetch(gateway.address, Request::get(player_api(&anna))).await;
    let account: Value = serde_json::from_str(&account.text()).unwrap();
    assert_eq!(account["user_info"]["allowed_output_formats"], json!(["m3u8", "ts"]));
}

fn player_api(user: &TestUser) -> String {
    let login = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("username", &user.name), ("password", &user.password)])
        .finish();
    format!("/player_api.php?{login}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_without_a_stream_that_plays_refuses_players_of_hls_as_all_others() {
    let provider = Provider::start();
    let list = provider.playlist(&[("gone", "Gone", "/gone.ts")]);
    let gateway =
        Setup::new().list(&list).engine(|it| it.start_timeout = Duration::from_secs(2)).start().await;
    let path = open(&gateway, "Gone");
    let answer = Watching::master(&gateway, &path, "tv").await;
    assert_eq!(answer.status(), 503, "{}", answer.text());
    assert!(answer.header("x-hdhomerun-error").is_some_and(|it| it.starts_with("807")), "{:?}", answer.head);
    let unknown = "/proxy/hls/00000000-0000-0000-0000-000000000009/index.m3u8";
    assert_eq!(Watching::master(&gateway, unknown, "tv").await.status(), 404);
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_channel_ends_the_playlist_of_its_players() {
    let (_provider, gateway) = set_up().await;
    let api = Api::first_admin(&gateway).await;
    let watching = Watching::begin(&gateway, &format!("{}?container=ts", open(&gateway, "News")), "tv").await;
    let stop = format!("/proxy/ts/stop/{}", gateway.channel("News").uuid);
    assert_eq!(api.post(&stop, json!({})).await.status, 200);
    let has_ended = async || watching.fetch("index.m3u8").await.text().ends_with("#EXT-X-ENDLIST\n");
    until_async("the end of the playlist", has_ended).await;
    // The last segments can still be read, while the client has left.
    let name = watching.segments().await.pop().unwrap();
    gateway.until_idle().await;
    assert_eq!(watching.fetch(&name).await.status(), 200);
    // The next request of the player starts the channel again.
    let again = Watching::begin(&gateway, &format!("{}?container=ts", open(&gateway, "News")), "tv").await;
    // Another run of the channel has other addresses, whatever the numbers of its segments are.
    assert_ne!(again.folder, watching.folder);
    assert!(!again.segments().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_of_hls_keeps_its_session_through_a_failover() {
    let provider = Provider::start();
    provider.path("/one.ts").plays(Picture::new("one").frames_per_gop(10));
    provider.path("/two.ts").plays(Picture::new("two").frames_per_gop(10));
    let list = provider.playlist(&[("news", "News", "/one.ts"), ("news", "News", "/two.ts")]);
    let gateway = Setup::new().list(&list).start().await;
    let watching = Watching::begin(&gateway, &format!("{}?container=ts", open(&gateway, "News")), "tv").await;
    let before = watching.segments().await;
    provider.path("/one.ts").cut(crate::support::upstream::Cut::Reset);
    eventually("the failover", || {
        gateway.n_events("channel_failover") + gateway.n_events("channel_reconnect") > 0
    })
    .await;
    let last = before.last().unwrap().clone();
    until_async("a segment after the failover", async || {
        let now = watching.segments().await;
        now.iter().position(|it| *it == last).is_none_or(|at| at + 2 < now.len())
    })
    .await;
    assert_eq!(gateway.gateway.counts().clients, 1);
}

/// Seen: 503 after 15 s, because the segment began with the first key frame and ended ten seconds later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_with_a_key_frame_every_twelve_seconds_plays() {
    let provider = Provider::start();
    // Frames come 25 times a second, and the provider has begun just before the channel.
    provider.path("/long.ts").plays(Picture::new("long").frames_per_gop(300));
    let list = provider.playlist(&[("long", "Long", "/long.ts")]);
    let gateway = Setup::new().list(&list).start().await;
    let path = format!("{}?container=ts", open(&gateway, "Long"));
    let watching = Watching::begin(&gateway, &path, "tv").await;
    assert_eq!(watching.segments().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slides_have_their_true_lengths_in_the_playlist() {
    let arguments = "-t 24 -r 1/3 -c:v libx264 -preset ultrafast -pix_fmt yuv420p -g 1 -c:a aac";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let provider = Provider::start();
    provider.path("/slides.ts").plays(Clip::make("slides", &TEST_PICTURE, &arguments).await);
    let list = provider.playlist(&[("slides", "Slides", "/slides.ts")]);
    let gateway = Setup::new().list(&list).start().await;
    let master = format!("{}?container=fmp4", open(&gateway, "Slides"));
    let answer = Watching::master(&gateway, &master, "tv").await;
    assert!(answer.text().contains(",RESOLUTION=320x180,FRAME-RATE=0.333"), "{}", answer.text());
    let watching = Watching::begin(&gateway, &master, "tv").await;
    until_async("the third segment", async || watching.segments().await.len() > 2).await;
    let text = watching.playlist().await;
    let lengths: Vec<&str> = text.lines().filter(|it| it.starts_with("#EXTINF:")).collect();
    assert!(lengths.iter().all(|it| *it == "#EXTINF:3.00000,"), "{text}");
    assert!(!text.contains("DISCONTINUITY\n"), "{text}");
}

const HLS_JS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools/npm/node_modules/hls.js/dist/hls.min.js");
/// The state of the page of [`play_in_browser`].
pub const BROWSER_STATE: &str = "const video = document.querySelector('video');
    return { time: video.currentTime, latency: hls.latency, errors, width: video.videoWidth }";

/// Plays an address with hls.js in a page.
pub async fn play_in_browser(web: &Web, path: &str) {
    let library = std::fs::read_to_string(HLS_JS).expect("this test needs hls.js, which .ci/tools installs");
    web.opens("/").await;
    let page = format!(
        "{library};
        const video = document.createElement('video');
        video.muted = true;
        document.body.replaceChildren(video);
        window.errors = [];
        window.hls = new Hls({{ enableWorker: false, lowLatencyMode: true, maxLiveSyncPlaybackRate: 2 }});
        hls.on(Hls.Events.ERROR, (_, it) => {{ if (it.fatal) errors.push(it.details); }});
        hls.on(Hls.Events.MANIFEST_PARSED, () => video.play());
        hls.attachMedia(video);
        hls.loadSource('{path}');"
    );
    web.browser.script(&page).await;
}

/// These need a browser.
mod slow {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn hls_js_plays_a_channel_in_a_browser_and_follows_it_closely_with_low_latency() {
        let (provider, gateway) = set_up().await;
        let web = Web::at(gateway.address).await;
        for query in ["", "?container=ts", "?ll=1"] {
            play_in_browser(&web, &format!("{}{query}", open(&gateway, "News"))).await;
            let begun =
                web.browser.until("a picture", BROWSER_STATE, |it| it["width"].as_u64() > Some(0)).await;
            let time = begun["time"].as_f64().unwrap();
            // Three segments of four seconds, or three parts of half a second. On a busy machine, the browser is behind at
            // first and catches up.
            let latency_max = if query == "?ll=1" { 4.0 } else { 20.0 };
            let follows = |it: &Value| {
                it["time"].as_f64().is_some_and(|it| it > time + 6.0)
                    && it["latency"].as_f64().is_some_and(|it| it < latency_max)
            };
            let played = web.browser.until("six seconds, close to the end", BROWSER_STATE, follows).await;
            assert_eq!(played["errors"], json!([]), "{query}");
        }
        // The clip may end meanwhile.
        assert_eq!(provider.peak(), 1);
    }
}
