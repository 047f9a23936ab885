//! Recordings: one connection of the provider for all of a channel, whole files that programs can read, and files that
//! continue after a kill.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use domain::playlist::catalogue::CatalogueBuilder;
use domain::playlist::m3u::{PlaylistItem, PlaylistLimits, parse};
use domain::stream::RequestHeaders;
use domain::time::iso_millis;
use serde_json::{Value, json};
use storage::Store;
use storage::records::schema;
use tempfile::TempDir;

use crate::support::api::{ADMIN, Api, PASSWORD};
use crate::support::binary::Binary;
use crate::support::client::{Player, Request, fetch};
use crate::support::signal::Picture;
use crate::support::small_disk::SmallDisk;
use crate::support::ts_check::Checker;
use crate::support::upstream::Provider;
use crate::support::{eventually, tools, until_async};

const NEWS: &str = "/live/anna/news.ts";
pub(crate) const LIST: &str = "/api/channels/recordings/";
pub(crate) const HOUR: i64 = 3_600_000;

/// A provider with one channel, and the program with a data folder of its own.
pub(crate) struct Studio {
    pub(crate) provider: Provider,
    pub(crate) data: TempDir,
    /// The folder of recordings.
    pub(crate) folder: PathBuf,
    pub(crate) program: Binary,
    pub(crate) address: SocketAddr,
    pub(crate) admin: Api,
    /// Settings of the operator.
    settings: Vec<String>,
    /// A folder whose programs come before those of the system.
    programs: Option<PathBuf>,
}

/// How a studio starts; the default is that of the program.
#[derive(Default)]
pub(crate) struct StudioStart<'a> {
    /// The folder of recordings; in the data folder by default.
    pub(crate) folder: Option<PathBuf>,
    /// Settings of the operator.
    pub(crate) settings: &'a [String],
    /// A folder whose programs come before those of the system.
    pub(crate) programs: Option<&'a Path>,
}

impl Studio {
    pub(crate) async fn start() -> Studio {
        Studio::start_on(StudioStart::default()).await
    }

    /// Starts with these settings of the operator.
    pub(crate) async fn start_with(settings: &[String]) -> Studio {
        Studio::start_on(StudioStart { settings, ..Default::default() }).await
    }

    /// Starts with a folder whose programs come before those of the system.
    pub(crate) async fn start_with_programs(folder: &Path) -> Studio {
        Studio::start_on(StudioStart { programs: Some(folder), ..Default::default() }).await
    }

    pub(crate) async fn start_on(start: StudioStart<'_>) -> Studio {
        let provider = Provider::start();
        provider.path(NEWS).plays(Picture::new("news"));
        let list = provider.playlist(&[("news", "News", NEWS)]);
        Studio::start_of(provider, list, start).await
    }

    /// Starts with the playlist of a provider.
    pub(crate) async fn start_of(provider: Provider, list: String, start: StudioStart<'_>) -> Studio {
        let StudioStart { folder, settings, programs } = start;
        let filled = tokio::task::spawn_blocking(move || {
            let data = tempfile::tempdir().unwrap();
            let mut builder = CatalogueBuilder::new();
            let account = builder.account("provider", 1, RequestHeaders::default());
            for item in parse(list.as_bytes(), PlaylistLimits::default()).0 {
                if let PlaylistItem::Entry(entry) = item {
                    builder.entry(account, entry);
                }
            }
            let store = Store::open(&data.path().join("store"), &data.path().join("key"), schema()).unwrap();
            storage::seed(&store).unwrap();
            storage::store_catalogue(&store, builder.build()).unwrap();
            data
        });
        let data = filled.await.unwrap();
        let folder = folder.unwrap_or_else(|| data.path().join("recordings"));
        let (program, address) = run(data.path(), &folder, settings, programs).await;
        let admin = Api::stranger_at(address).become_first_admin().await;
        let (settings, programs) = (settings.to_vec(), programs.map(Path::to_owned));
        Studio { provider, data, folder, program, address, admin, settings, programs }
    }

    /// Kills the program, and starts it again on the same data.
    pub(crate) async fn kill_and_start(self) -> Studio {
        self.kill_and_start_at(0).await
    }

    /// Kills the program, and starts it again at this time in milliseconds since 1970, or at once if it is over.
    pub(crate) async fn kill_and_start_at(self, at: i64) -> Studio {
        self.end_and_start("KILL", at).await.0
    }

    /// Ends the program with a signal, and starts it again on the same data. Returns its exit code, too.
    async fn end_and_start(self, signal: &str, at: i64) -> (Studio, Option<i32>) {
        let Studio { provider, data, folder, mut program, settings, programs, .. } = self;
        program.signal(signal);
        let code = program.ended().await.code();
        until_async("the time of the next start", async || actors::now_ms() >= at).await;
        let (program, address) = run(data.path(), &folder, &settings, programs.as_deref()).await;
        let admin = Api::stranger_at(address).login(ADMIN, PASSWORD).await;
        (Studio { provider, data, folder, program, address, admin, settings, programs }, code)
    }

    /// Creates a recording that begins now.
    pub(crate) async fn record(&self) -> u64 {
        self.record_with(50).await
    }

    async fn record_with(&self, priority: u32) -> u64 {
        let now = actors::now_ms();
        self.schedule(now, now + HOUR, priority).await
    }

    /// Creates a recording with these times in milliseconds since 1970.
    pub(crate) async fn record_between(&self, start: i64, end: i64) -> u64 {
        self.schedule(start, end, 50).await
    }

    async fn schedule(&self, start: i64, end: i64, priority: u32) -> u64 {
        let channels = self.admin.get("/api/channels/channels/").await;
        let channel = &channels.body["results"][0]["id"];
        let body = json!({
            "channel_id": channel, "start_time": iso_millis(start), "end_time": iso_millis(end),
            "priority": priority,
        });
        let made = self.admin.post(LIST, body).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.body["id"].as_u64().unwrap()
    }

    pub(crate) async fn get(&self, id: u64) -> Value {
        self.admin.get(&format!("{LIST}{id}/")).await.body
    }

    /// Waits until the file has this many bytes.
    pub(crate) async fn until_size(&self, id: u64, bytes: u64) {
        let what = format!("{bytes} bytes of recording {id}");
        until_async(&what, async || self.get(id).await["file_size"].as_u64().unwrap_or(0) >= bytes).await;
    }

    /// Waits until the file is complete, and returns its content.
    pub(crate) async fn finished(&self, id: u64) -> Vec<u8> {
        until_async("the end of the file", async || !self.get(id).await["ended_at"].is_null()).await;
        let name = self.get(id).await["file_name"].as_str().unwrap().to_owned();
        std::fs::read(self.folder.join(name)).unwrap()
    }

    /// Records some bytes.
    pub(crate) async fn recorded(&self) -> u64 {
        let id = self.record().await;
        self.until_size(id, 200_000).await;
        self.stopped(id).await;
        id
    }

    /// Ends a recording early, and returns the content of its file.
    pub(crate) async fn stopped(&self, id: u64) -> Vec<u8> {
        self.stop(id).await;
        self.finished(id).await
    }

    /// Ends a recording early.
    pub(crate) async fn stop(&self, id: u64) {
        let stopped = self.admin.post(&format!("{LIST}{id}/stop/"), json!({})).await;
        assert_eq!(stopped.status, 200, "{stopped:?}");
    }

    /// Returns the paths of all files in the folder of recordings that are not hidden, in order.
    pub(crate) fn files(&self) -> Vec<String> {
        let (mut files, mut folders) = (Vec::new(), vec![self.folder.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with('.') {
                    continue;
                }
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false => files.push(entry.path()),
                }
            }
        }
        let below = |it: &PathBuf| it.strip_prefix(&self.folder).unwrap().to_string_lossy().into_owned();
        let mut files: Vec<_> = files.iter().map(below).collect();
        files.sort();
        files
    }

    /// Changes members of the settings of recordings.
    pub(crate) async fn set(&self, members: Value) {
        let rows = self.admin.get("/api/core/settings/").await.body;
        let row = rows["results"].as_array().unwrap().iter().find(|it| it["key"] == "dvr_settings").unwrap();
        let path = format!("/api/core/settings/{}/", row["id"]);
        let set = self.admin.send("PATCH", &path, json!({ "value": members })).await;
        assert_eq!(set.status, 200, "{set:?}");
    }

    /// Waits until the recording is gone.
    async fn until_gone(&self, id: u64) {
        let path = format!("{LIST}{id}/");
        until_async("the removal of a recording", async || self.admin.get(&path).await.status == 404).await;
    }

    /// Waits until the state of the gateway names a problem of this kind.
    pub(crate) async fn until_problem(&self, kind: &str) {
        until_async(kind, async || self.problems().await.contains(&kind.to_owned())).await;
    }

    pub(crate) async fn problems(&self) -> Vec<String> {
        let health = self.admin.get("/api/core/health/").await.body;
        let kinds =
            health["problems"].as_array().unwrap().iter().map(|it| it["kind"].as_str().unwrap().to_owned());
        kinds.collect()
    }
}

async fn run(
    data: &Path,
    folder: &Path,
    settings: &[String],
    programs: Option<&Path>,
) -> (Binary, SocketAddr) {
    let (data, recordings) = (data.display().to_string(), format!("recordings_dir={}", folder.display()));
    let mut arguments = vec!["serve", "--data-dir", &data, "--set", &recordings];
    arguments.extend(settings.iter().flat_map(|it| ["--set", it.as_str()]));
    // Programs are found in `PATH`.
    let first = programs.map(|it| format!("{}:", it.display())).unwrap_or_default();
    let path = format!("PATH={first}{}", std::env::var("PATH").unwrap_or_default());
    let program = Binary::start_with(&["/usr/bin/env", &path], &arguments);
    let address = program.address().await;
    (program, address)
}

/// Checks with ffprobe that the file has picture and sound whose decoding times never decrease. Returns its length in seconds.
pub(crate) async fn check_with_ffprobe(bytes: &[u8]) -> f64 {
    assert_eq!(bytes.len() % 188, 0);
    let is_null = |it: &[u8]| it[1] & 0x1f == 0x1f && it[2] == 0xff;
    assert!(!bytes.chunks(188).any(is_null), "null packets are not stored");
    let file = tools::saved(bytes);
    let path = file.path().to_string_lossy().into_owned();
    let entries = "packet=codec_type,stream_index,dts_time";
    let text =
        tools::text_of("ffprobe", &["-v", "error", "-show_entries", entries, "-of", "csv=p=0", &path]).await;
    let times = tools::DecodingTimes::from_packets(&text);
    assert_eq!(times.n_streams, 2, "picture and sound");
    times.seconds
}

/// Checks the packets of a recording: they begin with the tables and a key frame, counters and clocks go on wherever no
/// jump is declared, and none is a null packet.
#[track_caller]
pub(crate) fn check_packets(bytes: &[u8]) -> Checker {
    let found = Checker::from_bytes(bytes);
    found.assert_clean();
    assert_eq!(found.null_packets, 0);
    assert_eq!(u16::from_be_bytes([bytes[1] & 0x1f, bytes[2]]), 0, "the first packet has the PAT");
    assert!(found.n_pat > 1 && found.n_pmt > 1);
    found
}

/// Returns a time of a recording in milliseconds since 1970.
#[track_caller]
pub(crate) fn millis(time: &Value) -> i64 {
    let text = time.as_str().unwrap_or_else(|| panic!("no time: {time}"));
    text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// Holds T-dvr.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_recordings_and_a_viewer_share_one_socket_and_each_file_is_whole() {
    let studio = Studio::start().await;
    let first = studio.record().await;
    studio.until_size(first, 400_000).await;
    let slots = studio.admin.get("/api/m3u/slots/").await;
    assert!(slots.answer.text().contains("\"recording\""), "{}", slots.answer.text());
    let second = studio.record().await;
    studio.until_size(second, 400_000).await;
    let path = studio.program.streams().await[0].clone();
    let player = Player::watch(studio.address, &path).await;
    player.sees("news").await;
    player.leave().await;
    assert_eq!((studio.provider.accepted(), studio.provider.peak()), (1, 1));
    let stopped = studio.admin.post(&format!("{LIST}{first}/stop/"), json!({})).await;
    assert_eq!((stopped.status, &stopped.body["status"]), (200, &json!("stopped")), "{stopped:?}");
    let bytes = studio.finished(first).await;
    check_packets(&bytes);
    assert!(check_with_ffprobe(&bytes).await > 1.0);
    let more = studio.get(second).await["file_size"].as_u64().unwrap() + 400_000;
    studio.until_size(second, more).await;
    let put = json!({ "status": "completed" });
    let completed = studio.admin.send("PUT", &format!("{LIST}{second}/"), put).await;
    assert_eq!((completed.status, &completed.body["status"]), (200, &json!("completed")), "{completed:?}");
    let bytes = studio.finished(second).await;
    assert!(check_with_ffprobe(&bytes).await > 2.0);
    assert_eq!(studio.get(second).await["gaps"], json!([]));
    assert_eq!(studio.provider.accepted(), 1);
    eventually("the provider's connection to close", || studio.provider.open() == 0).await;
}

/// Holds T-dvr.2 for a recording that runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_continues_in_its_file_after_a_kill() {
    let studio = Studio::start().await;
    let id = studio.record().await;
    studio.until_size(id, 800_000).await;
    let before = studio.get(id).await;
    let studio = studio.kill_and_start().await;
    let size = before["file_size"].as_u64().unwrap();
    studio.until_size(id, size + 800_000).await;
    let after = studio.get(id).await;
    assert_eq!((&after["status"], &after["file_name"]), (&json!("recording"), &before["file_name"]));
    let stopped = studio.admin.post(&format!("{LIST}{id}/stop/"), json!({})).await;
    assert_eq!(stopped.status, 200, "{stopped:?}");
    let bytes = studio.finished(id).await;
    assert!(check_with_ffprobe(&bytes).await > 4.0);
    let gaps = studio.get(id).await["gaps"].clone();
    assert_eq!(gaps.as_array().map(Vec::len), Some(1), "{gaps}");
    assert_eq!(gaps[0]["reason"], "the gateway was not running");
    let files = std::fs::read_dir(studio.data.path().join("recordings/TV_Shows/News")).unwrap().count();
    assert_eq!(files, 1);
}

/// Holds T-bak.3 for recordings.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recordings_do_not_keep_the_program_from_ending_and_continue_afterwards() {
    let studio = Studio::start().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(studio.record().await);
    }
    for id in &ids {
        studio.until_size(*id, 300_000).await;
    }
    let (studio, code) = studio.end_and_start("TERM", 0).await;
    assert_eq!(code, Some(0));
    for id in &ids {
        until_async("the recording to continue", async || {
            let recording = studio.get(*id).await;
            recording["status"] == "recording" && recording["gaps"][0]["end"].is_string()
        })
        .await;
    }
    for id in ids {
        let size = studio.get(id).await["file_size"].as_u64().unwrap();
        studio.until_size(id, size + 300_000).await;
        let stopped = studio.admin.post(&format!("{LIST}{id}/stop/"), json!({})).await;
        assert_eq!(stopped.status, 200, "{stopped:?}");
        assert!(check_with_ffprobe(&studio.finished(id).await).await > 2.0);
        let gaps = studio.get(id).await["gaps"].clone();
        assert_eq!(
            (gaps.as_array().map(Vec::len), &gaps[0]["reason"]),
            (Some(1), &json!("the gateway was stopped"))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_read_in_parts_and_followed_while_it_grows_until_it_is_deleted() {
    let studio = Studio::start().await;
    let (kept, deleted) = (studio.record().await, studio.record().await);
    for id in [kept, deleted] {
        studio.until_size(id, 400_000).await;
    }
    let token = studio.admin.token(ADMIN, PASSWORD).await;
    let token = token.text("access").to_owned();
    let path = |id: u64| format!("{LIST}{id}/file/?token={token}");
    let refused = fetch(studio.address, Request::get(format!("{LIST}{kept}/file/"))).await;
    assert_eq!(refused.status(), 401);
    let part = fetch(studio.address, Request::get(path(kept)).header("Range", "bytes=188-375")).await;
    assert_eq!((part.status(), part.header("content-length")), (206, Some("188")));
    // As VLC and mpv ask first.
    let follower = Player::ask(studio.address, Request::get(path(kept)).header("Range", "bytes=0-")).await;
    follower.sees("news").await;
    follower.more_bytes(400_000).await;
    // The other recording goes, with its file only.
    let gone = studio.get(deleted).await["file_name"].as_str().unwrap().to_owned();
    assert_eq!(studio.admin.delete(&format!("{LIST}{deleted}/")).await.status, 204);
    assert!(!studio.data.path().join("recordings").join(gone).exists());
    assert_eq!(studio.admin.get(&format!("{LIST}{deleted}/")).await.status, 404);
    let extended = studio.admin.post(&format!("{LIST}{kept}/extend/"), json!({ "extra_minutes": 15 })).await;
    assert_eq!(extended.status, 200, "{extended:?}");
    follower.more_bytes(400_000).await;
    let stopped = studio.admin.post(&format!("{LIST}{kept}/stop/"), json!({})).await;
    assert_eq!(stopped.status, 200, "{stopped:?}");
    let bytes = studio.finished(kept).await;
    follower.ended().await;
    assert_eq!(follower.recording(), bytes, "a follower gets the whole file");
    let whole = fetch(studio.address, Request::head(path(kept))).await;
    assert_eq!(whole.header("content-length"), Some(bytes.len().to_string().as_str()));
    let beyond = format!("bytes={}-", bytes.len());
    let unsatisfied = fetch(studio.address, Request::get(path(kept)).header("Range", &beyond)).await;
    assert_eq!(unsatisfied.status(), 416);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_recordings_go_by_the_settings_and_protected_ones_stay() {
    let studio = Studio::start().await;
    let (kept, first, second) = (studio.recorded().await, studio.recorded().await, studio.recorded().await);
    let protected = studio.admin.send("PATCH", &format!("{LIST}{kept}/"), json!({ "protected": true })).await;
    assert_eq!((protected.status, &protected.body["protected"]), (200, &json!(true)), "{protected:?}");
    let file_of = async |id: u64| {
        let name = studio.get(id).await["file_name"].as_str().unwrap().to_owned();
        studio.folder.join(name)
    };
    let (file_of_kept, file_of_first) = (file_of(kept).await, file_of(first).await);
    studio.set(json!({ "retention_count": 2 })).await;
    studio.until_gone(first).await;
    eventually("the removal of the file", || !file_of_first.exists()).await;
    // Less than the protected recording alone.
    studio.set(json!({ "retention_count": 0, "quota_bytes": 1_000 })).await;
    studio.until_gone(second).await;
    assert!(studio.get(kept).await["status"] == "stopped" && file_of_kept.exists());
    let refused = studio.record().await;
    until_async("the reason", async || {
        studio.get(refused).await["reason"] == "the quota of all recordings is used up"
    })
    .await;
    studio.set(json!({ "quota_bytes": 0 })).await;
    studio.until_size(refused, 100_000).await;
}

/// Holds T-dvr.8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_ends_the_lowest_priority_first_and_what_was_recorded_plays() {
    let disk = SmallDisk::new(256);
    let studio =
        Studio::start_on(StudioStart { folder: Some(disk.path().join("recordings")), ..Default::default() })
            .await;
    let old = studio.recorded().await;
    let (low, high) = (studio.record_with(10).await, studio.record_with(90).await);
    for id in [low, high] {
        studio.until_size(id, 400_000).await;
    }
    studio.until_problem("recordings_disk_low").await;
    let other_data = disk.fill(disk.available_mib() - 48);
    for id in [low, high] {
        until_async("the end of a recording", async || studio.get(id).await["status"] == "interrupted").await;
        let bytes = studio.finished(id).await;
        assert!(check_with_ffprobe(&bytes).await > 2.0);
        assert_eq!(studio.get(id).await["reason"], "the disk of the recordings is almost full");
    }
    let (low, high) = (studio.get(low).await, studio.get(high).await);
    assert!(low["updated_at"].as_str() <= high["updated_at"].as_str(), "{low} {high}");
    assert_eq!(studio.get(old).await["status"], "stopped", "without a setting nothing goes");
    assert_eq!(fetch(studio.address, Request::get("/healthz")).await.status(), 200);
    let next = studio.record().await;
    until_async("the reason", async || {
        studio.get(next).await["reason"] == "the disk of the recordings is almost full"
    })
    .await;
    // Retention takes the oldest, which is not enough, and then there is room.
    studio.set(json!({ "retention_free_bytes": 100 << 20 })).await;
    studio.until_gone(old).await;
    std::fs::remove_file(other_data).unwrap();
    studio.until_size(next, 400_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recordings_wait_for_a_folder_that_is_not_mounted() {
    let studio = Studio::start().await;
    let old = studio.recorded().await;
    let running = studio.record().await;
    studio.until_size(running, 400_000).await;
    let (mounted, unmounted) = (studio.folder.clone(), studio.data.path().join("unmounted"));
    std::fs::rename(&mounted, &unmounted).unwrap();
    std::fs::create_dir(&mounted).unwrap();
    // A start without the disk.
    let studio = studio.kill_and_start().await;
    studio.until_problem("recordings_unmounted").await;
    studio.set(json!({ "retention_count": 1, "quota_bytes": 1 })).await;
    let late = studio.record().await;
    until_async("the reason", async || {
        studio.get(late).await["reason"].as_str().is_some_and(|it| it.contains("is its disk mounted?"))
    })
    .await;
    assert_eq!(studio.get(old).await["status"], "stopped", "nothing goes");
    assert_eq!(studio.get(running).await["status"], "recording");
    assert_eq!(std::fs::read_dir(&mounted).unwrap().count(), 0, "nothing is written");
    studio.set(json!({ "retention_count": 0, "quota_bytes": 0 })).await;
    std::fs::remove_dir(&mounted).unwrap();
    std::fs::rename(&unmounted, &mounted).unwrap();
    let size = studio.get(running).await["file_size"].as_u64().unwrap();
    studio.until_size(running, size + 800_000).await;
    studio.until_size(late, 400_000).await;
    assert!(!studio.problems().await.contains(&"recordings_unmounted".to_owned()));
    for id in [running, late] {
        let stopped = studio.admin.post(&format!("{LIST}{id}/stop/"), json!({})).await;
        assert_eq!(stopped.status, 200, "{stopped:?}");
        assert!(check_with_ffprobe(&studio.finished(id).await).await > 1.0);
    }
    assert!(!studio.get(running).await["gaps"].as_array().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_are_reserved_for_recordings_that_begin_soon() {
    let studio = Studio::start().await;
    let channels = studio.admin.get("/api/channels/channels/").await;
    let news = channels.body["results"][0].clone();
    let other = json!({ "name": "Other", "streams": news["streams"] });
    let other = studio.admin.post("/api/channels/channels/", other).await;
    assert_eq!(other.status, 201, "{other:?}");
    let accounts = studio.admin.get("/api/m3u/accounts/").await;
    let list = accounts.body.as_array().or_else(|| accounts.body["results"].as_array()).unwrap();
    let account = list.iter().find(|it| it["name"] == "provider").unwrap();
    let path = format!("/api/m3u/accounts/{}/", account["id"]);
    let limited = studio.admin.patch(&path, json!({ "max_streams": 1 })).await;
    assert_eq!(limited.status, 200, "{limited:?}");
    let begin = actors::now_ms() + 20 * 60_000;
    let body = json!({
        "channel_id": news["id"], "start_time": iso_millis(begin), "end_time": iso_millis(begin + HOUR),
    });
    assert_eq!(studio.admin.post(LIST, body).await.status, 201);
    let reserved = async || {
        let slots = studio.admin.get("/api/m3u/slots/").await.body;
        let profiles = slots["profiles"].as_array().unwrap().clone();
        profiles.iter().find(|it| it["account"] == account["id"]).unwrap()["reserved"].clone()
    };
    assert_eq!(reserved().await, 0, "nothing is reserved by default");
    studio.set(json!({ "reserve_minutes": 10 })).await;
    studio.set(json!({ "reserve_minutes": 30 })).await;
    until_async("the reservation", async || reserved().await == 1).await;
    let path_of = |channel: &Value| format!("/proxy/ts/stream/{}", channel["uuid"].as_str().unwrap());
    let refused = fetch(studio.address, Request::get(path_of(&other.body))).await;
    assert_eq!(refused.status(), 503, "{refused:?}");
    let text = refused.text();
    assert!(text.contains("at its limit of 1 stream, of which 1 is reserved for a recording"), "{text}");
    // The channel that is going to be recorded uses the slot that is reserved for it.
    let viewer = Player::watch(studio.address, &path_of(&news)).await;
    viewer.sees("news").await;
    assert_eq!(reserved().await, 0, "the slot is in use");
    viewer.leave().await;
}
