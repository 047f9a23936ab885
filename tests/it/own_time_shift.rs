//! The past of a channel that the gateway keeps itself, at the addresses of archives.

use std::path::PathBuf;

use domain::user::CATCHUP_ENABLED;
use serde_json::{Value, json};

use crate::recordings::{LIST, Studio, StudioStart};
use crate::support::api::Api;
use crate::support::client::{Player, Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::small_disk::SmallDisk;
use crate::support::ts_check::{Checker, Step};
use crate::support::upstream::Provider;
use crate::support::users::{TestUser, change_user, create_user};
use crate::support::{eventually, until_async};

const LIVE: &str = "/live/a/news.ts";

/// A gateway whose only channel is News, for which the provider has no archive.
struct Home {
    provider: Provider,
    gateway: TestGateway,
    admin: Api,
    anna: TestUser,
}

impl Home {
    async fn start(mode: &str) -> Home {
        let provider = Provider::start();
        provider.path(LIVE).plays(Picture::new("news"));
        let list = format!("#EXTM3U\n#EXTINF:-1,News\n{}\n", provider.url(LIVE));
        let gateway = Setup::new().limited_list(&list, 1).start().await;
        let anna = create_user(&gateway, "anna", |it| it.stream_limit = 1).await;
        let admin = Api::first_admin(&gateway).await;
        set(&admin, json!({ "mode": mode })).await;
        Home { provider, gateway, admin, anna }
    }

    /// Returns the address of a part of the past, for a start in seconds since 1970.
    fn past(&self, start: i64, minutes: u32) -> String {
        let id = self.gateway.channel("News").id;
        format!("/timeshift{}", self.anna.path(&format!("{minutes}/{start}/{id}.ts")))
    }

    /// Waits until some seconds are kept. Returns the first whole second of them.
    async fn kept(&self, seconds: i64) -> i64 {
        let uuid = self.gateway.channel("News").uuid;
        let shift = self.gateway.gateway.system().time_shift();
        let since = || shift.since(uuid);
        eventually("the first packet", || since().is_some()).await;
        let start = since().unwrap() / 1000 + 1;
        until_async("some seconds of the past", async || {
            let part = shift.part(uuid, start * 1000, (start + seconds) * 1000).await.unwrap();
            part.is_some_and(|it| it.length().is_some_and(|it| it > 0) && it.is_whole())
        })
        .await;
        start
    }
}

fn now() -> i64 {
    actors::now_ms() / 1000
}

/// Changes members of the settings of the own time-shift.
async fn set(admin: &Api, members: Value) {
    let rows = admin.get("/api/core/settings/").await.body;
    let row =
        rows["results"].as_array().unwrap().iter().find(|it| it["key"] == "timeshift_settings").unwrap();
    let set = admin.patch(&format!("/api/core/settings/{}/", row["id"]), json!({ "value": members })).await;
    assert_eq!(set.status, 200, "{set:?}");
}

/// Checks that no packet is missing or repeated.
#[track_caller]
fn is_seamless(bytes: &[u8]) {
    let found = Checker::from_bytes(&bytes[..bytes.len() / 188 * 188]);
    assert!(
        found.complaints.is_empty() && found.steps.is_empty(),
        "{:?} {:?}",
        found.complaints,
        found.steps
    );
    assert_eq!(found.declared_discontinuities, 0);
}

fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, part)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_seeks_back_to_the_same_packets_and_start_over_goes_on_into_the_present() {
    let home = Home::start("always").await;
    let live = home.anna.live(&home.gateway.channel("News").id.to_string());
    let viewer = Player::watch(home.gateway.address, &live).await;
    viewer.sees("news").await;
    let start = home.kept(4).await;
    let seen = viewer.recording();
    viewer.leave().await;
    // Two seconds of it, as a file.
    let path = format!("{live}?utc={start}&duration=2");
    let part = fetch(home.gateway.address, Request::get(&path)).await;
    let length = part.bytes.len().to_string();
    assert_eq!((part.status(), part.header("content-length")), (200, Some(length.as_str())));
    is_seamless(&part.bytes);
    // A viewer gets fillers, too: compare what is between them.
    let middle = &part.bytes[part.bytes.len() / 2..][..188 * 3];
    assert!(position(&seen, middle).is_some(), "other bytes than the viewer saw");
    let ranged = Request::get(&path).header("Range", "bytes=376-939");
    let range = fetch(home.gateway.address, ranged).await;
    assert_eq!((range.status(), &range.bytes[..]), (206, &part.bytes[376..940]));
    let beyond = Request::get(&path).header("Range", "bytes=99999999-");
    assert_eq!(fetch(home.gateway.address, beyond).await.status(), 416);
    // Start over: everything from there on, and what is broadcast meanwhile.
    let follower = Player::watch(home.gateway.address, &home.past(start, 60)).await;
    follower.more_bytes(part.bytes.len() as u64 * 4).await;
    let bytes = follower.recording();
    assert!(bytes.starts_with(&part.bytes), "the same packets come again");
    is_seamless(&bytes);
    // Another device is over the limit: one session is one seat.
    let other = Request::get(home.past(start, 60)).header("User-Agent", "Other/1.0");
    assert_eq!(fetch(home.gateway.address, other).await.status(), 503);
    assert_eq!(home.gateway.gateway.counts().seats, 1);
    assert_eq!((home.provider.accepted(), home.provider.peak()), (1, 1), "no connection of its own");
    let stats = home.admin.get("/proxy/catchup/stats").await.body;
    let session = &stats["timeshift_sessions"][0];
    assert_eq!(
        (&session["channel_name"], &stats["total_connections"]),
        (&json!("News"), &json!(1)),
        "{stats}"
    );
    let path = format!("/api/catchup/sessions/{}/", session["session_id"].as_str().unwrap());
    assert_eq!(home.admin.delete(&path).await.status, 204);
    // Before what is kept.
    let early = fetch(home.gateway.address, Request::get(home.past(start - 3_600, 10))).await;
    assert_eq!(early.status(), 404, "{}", early.text());
    assert!(early.text().contains("begins at"), "{}", early.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_with_time_shift_is_one_with_an_archive_for_those_who_may_watch_it() {
    let home = Home::start("off").await;
    let channel = home.gateway.channel("News").id;
    let path = format!("/api/channels/channels/{channel}/");
    let refused = fetch(home.gateway.address, Request::get(home.past(now() - 60, 10))).await;
    assert_eq!((refused.status(), refused.text().contains("no archive")), (400, true), "{}", refused.text());
    let wrong = home.admin.patch(&path, json!({ "timeshift": "sometimes" })).await;
    assert_eq!((wrong.status, wrong.body["timeshift"].is_array()), (400, true), "{wrong:?}");
    let kept = home.admin.patch(&path, json!({ "timeshift": "always" })).await;
    assert_eq!((kept.status, &kept.body["timeshift"]), (200, &json!("always")), "{kept:?}");
    set(&home.admin, json!({ "hours": 30 })).await;
    let seen = home.admin.get(&path).await.body;
    assert_eq!((&seen["is_catchup"], &seen["catchup_days"]), (&json!(true), &json!(2)));
    let start = home.kept(2).await;
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let login = query.append_pair("username", &home.anna.name).append_pair("password", &home.anna.password);
    let login = login.finish();
    let marks = async || {
        let get = async |path: String| fetch(home.gateway.address, Request::get(path)).await.text();
        let streams = get(format!("/player_api.php?{login}&action=get_live_streams")).await;
        let streams: Value = serde_json::from_str(&streams).unwrap();
        let playlist = get(format!("/get.php?{login}")).await;
        let stream = &streams[0];
        (
            stream["tv_archive"].clone(),
            stream["tv_archive_duration"].clone(),
            playlist.contains("catchup-days=\"2\""),
        )
    };
    assert_eq!(marks().await, (json!(1), json!(2), true));
    let status = async |path: &str| fetch(home.gateway.address, Request::head(path)).await.status();
    assert_eq!(status(&home.past(start, 1)).await, 200);
    let api = Api::stranger(&home.gateway).key(&home.anna.api_key);
    let body = json!({ "channel_uuid": home.gateway.channel("News").uuid, "start": start.to_string() });
    let made = api.post("/api/catchup/sessions/", body.clone()).await;
    assert_eq!(made.status, 201, "{made:?}");
    let origin = format!("http://{}", home.gateway.address);
    let address = made.text("playback_url").strip_prefix(&origin).unwrap().to_owned();
    let player = Player::watch(home.gateway.address, &address).await;
    player.sees("news").await;
    player.leave().await;
    // Adult content is hidden from anna, and then catch-up is off for her.
    change_user(&home.gateway, &home.anna, |it| {
        it.hide_adult = true;
    })
    .await;
    assert_eq!(home.admin.patch(&path, json!({ "is_adult": true })).await.status, 200);
    assert_eq!(status(&home.past(start, 1)).await, 404);
    assert_eq!(home.admin.patch(&path, json!({ "is_adult": false })).await.status, 200);
    change_user(&home.gateway, &home.anna, |it| {
        it.custom_properties.insert(CATCHUP_ENABLED.to_owned(), json!(false));
    })
    .await;
    assert_eq!(status(&home.past(start, 1)).await, 403);
    assert_eq!(api.post("/api/catchup/sessions/", body).await.status, 403);
    assert_eq!(marks().await, (json!(0), json!(0), false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_past_of_a_watched_channel_is_kept_until_the_last_viewer_leaves() {
    let home = Home::start("watched").await;
    let live = home.anna.live(&home.gateway.channel("News").id.to_string());
    let viewer = Player::watch(home.gateway.address, &live).await;
    let start = home.kept(2).await;
    viewer.leave().await;
    home.gateway.until_idle().await;
    eventually("the provider's connection to close", || home.provider.open() == 0).await;
    let part = fetch(home.gateway.address, Request::get(format!("{live}?utc={start}&duration=1"))).await;
    assert_eq!((part.status(), home.provider.open()), (200, 0), "what was kept plays without the channel");
    is_seamless(&part.bytes);
}

/// Returns the time-shift files of the only channel, the oldest one first.
fn files(folder: &std::path::Path) -> Vec<PathBuf> {
    let below = |folder: &std::path::Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path()).collect()
    };
    let folders = below(folder).into_iter().filter(|it| it.is_dir());
    let mut files: Vec<_> = folders.flat_map(|it| below(&it)).collect();
    files.retain(|it| it.extension().is_some_and(|it| it == "ts"));
    files.sort();
    files
}

fn size(files: &[PathBuf]) -> u64 {
    files.iter().filter_map(|it| it.metadata().ok()).map(|it| it.len()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_past_before_a_kill_plays_after_the_restart_and_continues() {
    let studio = Studio::start().await;
    let folder = studio.data.path().join("timeshift");
    set(&studio.admin, json!({ "mode": "always" })).await;
    eventually("some seconds of the past", || size(&files(&folder)) > 800_000).await;
    let before = files(&folder);
    let first = before[0].clone();
    let started_at: i64 = first.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let studio = studio.kill_and_start().await;
    eventually("a file of the next process", || files(&folder).len() > before.len()).await;
    let kept = std::fs::read(&first).unwrap();
    assert_eq!(kept.len() % 188, 0, "whole packets");
    let uuid = studio.admin.get("/api/channels/channels/").await.body["results"][0]["uuid"].clone();
    let address = format!("/proxy/catchup/{}?start={}", uuid.as_str().unwrap(), started_at / 1000);
    let token = studio.admin.token(crate::support::api::ADMIN, crate::support::api::PASSWORD).await;
    let request = Request::get(format!("{address}&token={}", token.text("access")));
    let player = Player::ask(studio.address, request).await;
    player.sees("news").await;
    player.more_bytes(kept.len() as u64 + 400_000).await;
    let bytes = player.recording();
    let end = &kept[kept.len() - 188 * 100..];
    assert!(position(&bytes, end).is_some(), "what was written before the kill is played");
    let found = Checker::from_bytes(&bytes[..bytes.len() / 188 * 188]);
    // The killed process wrote its last packets of sound and picture at different times of the programme, which stays as a
    // declared step.
    let is_short = |step: &Step| step.declared && step.seconds < 1.0;
    assert!(
        found.complaints.is_empty() && found.steps.iter().all(is_short),
        "{:?} {:?}",
        found.complaints,
        found.steps
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_takes_the_past_of_channels_before_recordings_suffer() {
    let disk = SmallDisk::new(256);
    let folder = disk.path().join("timeshift");
    let settings = [format!("timeshift_dir={}", folder.display())];
    let studio = Studio::start_on(StudioStart {
        folder: Some(disk.path().join("recordings")),
        settings: &settings,
        ..Default::default()
    })
    .await;
    let old = studio.recorded().await;
    studio.set(json!({ "retention_free_bytes": 70 << 20 })).await;
    let running = studio.record().await;
    studio.until_size(running, 400_000).await;
    set(&studio.admin, json!({ "mode": "always" })).await;
    eventually("some of the past", || size(&files(&folder)) > 400_000).await;
    // What is left is less than the time-shift leaves, and more than recordings need.
    let other_data = disk.fill(disk.available_mib() - 74);
    eventually("the time-shift to give up its files", || files(&folder).is_empty()).await;
    let recorded = studio.get(running).await["file_size"].as_u64().unwrap();
    studio.until_size(running, recorded + 400_000).await;
    assert_eq!(studio.get(old).await["status"], "stopped", "the recording is still there");
    assert!(files(&folder).is_empty());
    let stopped = studio.admin.post(&format!("{LIST}{running}/stop/"), json!({})).await;
    assert_eq!(stopped.status, 200, "{stopped:?}");
    std::fs::remove_file(other_data).unwrap();
    eventually("the time-shift to continue", || size(&files(&folder)) > 400_000).await;
}
