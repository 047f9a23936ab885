//! The work on recordings after their end, with the real programs: commercials.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::recordings::{LIST, Studio};
use crate::support::api::{ADMIN, PASSWORD};
use crate::support::client::{Request, fetch};
use crate::support::websocket::WebSocketClient;
use crate::support::{eventually, tools, until_async};

const CONFIG: &str = "/api/channels/dvr/comskip-config/";
/// Finds commercials by black pictures alone, in the short clip of these tests.
const SHORT_BREAKS: &str = "\
[Main Settings]
detect_method=1
validate_silence=0
validate_uniform=0
global_threshold=0.5
max_commercialbreak=40
min_commercialbreak=10
max_commercial_size=15
min_commercial_size=5
min_show_segment_length=10
output_edl=0";

/// Makes a clip of 60 seconds: a programme, two commercials from 20 to 40 seconds, and the programme again. Half a second
/// of black and silence is between them.
async fn clip_with_commercials(path: &Path) {
    let breaks = "between(t,20,20.5)+between(t,30,30.5)+between(t,40,40.5)";
    let (picture, sound) =
        (format!("drawbox=c=black:t=fill:enable='{breaks}'"), format!("volume=0:enable='{breaks}'"));
    let path = path.display().to_string();
    let source = "testsrc2=s=320x180:r=25:d=60";
    let inputs = ["-f", "lavfi", "-i", source, "-f", "lavfi", "-i", "sine=frequency=440:r=48000:d=60"];
    let codecs = ["-c:v", "mpeg2video", "-g", "12", "-b:v", "400k", "-c:a", "mp2", "-b:a", "64k"];
    let filters = ["-vf", &picture, "-af", &sound];
    let arguments =
        [&["-v", "error", "-y"][..], &inputs, &filters, &codecs, &["-f", "mpegts", &path]].concat();
    let made = tools::run("ffmpeg", &arguments).await;
    assert!(made.status.success(), "{made:?}");
}

impl Studio {
    fn file(&self, name: &Value) -> PathBuf {
        self.data.path().join("recordings").join(name.as_str().expect("a name"))
    }

    /// Replaces the file of a recording by the clip with commercials, as an operator may.
    async fn replace_by_clip(&self, id: u64) {
        clip_with_commercials(&self.file(&self.get(id).await["file_name"])).await;
    }

    async fn find_commercials(&self, id: u64) {
        let queued = self.admin.post(&format!("{LIST}{id}/comskip/"), json!({})).await;
        assert_eq!(queued.status, 200, "{queued:?}");
    }

    async fn until_comskip(&self, id: u64, status: &str) -> Value {
        let what = format!("comskip of recording {id} is {status}");
        until_async(&what, async || self.get(id).await["comskip"]["status"] == status).await;
        self.get(id).await["comskip"].clone()
    }
}

/// Checks that the one break of the clip was found.
fn check_commercials(comskip: &Value) {
    let commercials = comskip["commercials"].as_array().unwrap();
    assert_eq!(commercials.len(), 1, "{comskip}");
    let (start, end) = (commercials[0]["start"].as_f64().unwrap(), commercials[0]["end"].as_f64().unwrap());
    assert!((start - 20.0).abs() < 1.0 && (end - 40.0).abs() < 1.0, "{comskip}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commercials_are_found_and_listed_beside_the_recording() {
    let studio = Studio::start_with(&[]).await;
    let set = json!({ "enabled": true, "config": SHORT_BREAKS });
    let set = studio.admin.send("PUT", CONFIG, set).await;
    assert_eq!((set.status, &set.body["available"]), (200, &json!(true)), "{set:?}");
    let token = studio.admin.token(ADMIN, PASSWORD).await;
    let path = format!("/ws/?token={}", token.text("access"));
    let mut socket = WebSocketClient::open(studio.address, &path, &[]).await.expect("a socket");
    let id = studio.recorded().await;
    // After a recording it runs on its own; the exit code for "none" is no error.
    let none = studio.until_comskip(id, "none_found").await;
    assert_eq!(none, json!({ "status": "none_found", "reason": null, "commercials": [], "edl_file": null }));
    studio.replace_by_clip(id).await;
    studio.find_commercials(id).await;
    let found = studio.until_comskip(id, "completed").await;
    check_commercials(&found);
    let edl = studio.file(&found["edl_file"]);
    let recording = studio.get(id).await;
    assert_eq!(edl, studio.file(&recording["file_name"]).with_extension("edl"));
    let text = fs::read_to_string(&edl).unwrap();
    assert_eq!((text.lines().count(), text.trim_end().ends_with("\t3")), (1, true), "{text}");
    assert_eq!(recording["custom_properties"]["comskip"]["commercials"], 1);
    let mut seen = Vec::new();
    while seen.len() < 4 {
        let frame = socket.next().await.expect("a frame");
        if frame["data"]["type"] == "comskip_status" {
            assert_eq!(frame["data"]["recording_id"], id.to_string(), "{frame}");
            seen.push(frame["data"]["status"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(seen, ["started", "skipped", "started", "completed"]);

    // Again: the list is replaced, and a damaged file has a reason.
    studio.find_commercials(id).await;
    check_commercials(&studio.until_comskip(id, "completed").await);
    assert_eq!(fs::read_to_string(&edl).unwrap(), text);
    fs::write(studio.file(&recording["file_name"]), vec![0x47; 188]).unwrap();
    studio.find_commercials(id).await;
    let failed = studio.until_comskip(id, "failed").await;
    assert!(failed["reason"].as_str().is_some_and(|it| it.contains("comskip")), "{failed}");
    assert_eq!(studio.admin.delete(&format!("{LIST}{id}/")).await.status, 204);
    assert!(!edl.exists(), "the list goes with its recording");
}

/// Holds T-dvr.2 for comskip.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_that_was_killed_runs_again_and_the_recording_stays_whole() {
    let folder = tempfile::tempdir().unwrap();
    // Waits before it becomes comskip, so that it can be killed.
    let (program, released) = (folder.path().join("slow-comskip"), folder.path().join("released"));
    let script = format!(
        "#!/bin/sh\nwhile [ ! -e {} ]; do sleep 0.05; done\nexec comskip \"$@\"\n",
        released.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let studio = Studio::start_with(&[format!("programs.comskip={}", program.display())]).await;
    let set = studio.admin.send("PUT", CONFIG, json!({ "config": SHORT_BREAKS })).await;
    assert_eq!((set.status, &set.body["enabled"]), (200, &json!(false)), "{set:?}");
    let (first, second) = (studio.recorded().await, studio.recorded().await);
    assert_eq!(studio.get(first).await["comskip"], Value::Null, "nobody wanted it");
    for id in [first, second] {
        studio.replace_by_clip(id).await;
        studio.find_commercials(id).await;
    }
    studio.until_comskip(first, "running").await;
    assert_eq!(studio.get(second).await["comskip"]["status"], "queued", "one at a time");
    let again = studio.admin.post(&format!("{LIST}{first}/comskip/"), json!({})).await;
    assert_eq!(again.status, 409, "{again:?}");
    let name = program.display().to_string();
    eventually("the program to run", || n_processes_of(&name) > 0).await;
    let before = studio.get(first).await;
    studio.program.signal("KILL");
    eventually("the end of the program", || n_processes_of(&name) == 0).await;
    let studio = studio.kill_and_start().await;
    studio.until_comskip(first, "running").await;
    fs::write(&released, "").unwrap();
    for id in [first, second] {
        check_commercials(&studio.until_comskip(id, "completed").await);
    }
    let after = studio.get(first).await;
    assert_eq!((&after["status"], &after["file_name"]), (&before["status"], &before["file_name"]));
    let lists = fs::read_dir(studio.data.path().join("recordings/TV_Shows/News")).unwrap();
    let lists = lists.filter(|it| it.as_ref().unwrap().path().extension().is_some_and(|it| it == "edl"));
    assert_eq!(lists.count(), 2);
}

/// Returns the number of processes with this text in their command line.
fn n_processes_of(text: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let has_text = |it: &fs::DirEntry| {
        let line = fs::read(it.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).split('\0').any(|it| it == text)
    };
    processes.filter(has_text).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_is_converted_with_chapters_and_keeps_its_stream_if_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    // Waits until the recording was replaced by the clip.
    let (program, released) = (folder.path().join("slow-comskip"), folder.path().join("released"));
    let script = format!(
        "#!/bin/sh\nwhile [ ! -e {} ]; do sleep 0.05; done\nexec comskip \"$@\"\n",
        released.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let studio = Studio::start_with(&[format!("programs.comskip={}", program.display())]).await;
    let set = studio.admin.send("PUT", CONFIG, json!({ "enabled": true, "config": SHORT_BREAKS })).await;
    assert_eq!(set.status, 200, "{set:?}");
    studio.set(json!({ "remux": "mkv", "write_nfo": true })).await;
    let id = studio.recorded().await;
    let stream = studio.file(&studio.get(id).await["file_name"]);
    studio.replace_by_clip(id).await;
    // A file of this name is nobody's to overwrite.
    fs::write(stream.with_extension("mkv"), "mine").unwrap();
    fs::write(&released, "").unwrap();
    let remux = studio.until_remux(id, "completed").await;
    assert_eq!(remux, json!({ "status": "completed", "format": "mkv", "reason": null }));
    check_commercials(&studio.get(id).await["comskip"]);
    until_async("the removal of the stream", async || !stream.exists()).await;
    let recording = studio.get(id).await;
    let converted = studio.file(&recording["file_name"]);
    assert!(converted.to_string_lossy().ends_with(" (2).mkv"), "{converted:?}");
    assert_eq!(fs::read_to_string(stream.with_extension("mkv")).unwrap(), "mine");
    let entries = ["-v", "error", "-show_chapters", "-show_entries", "stream=codec_name:format=duration"];
    let path = converted.display().to_string();
    let report = tools::text_of("ffprobe", &[&entries[..], &["-of", "json", &path]].concat()).await;
    let report: Value = serde_json::from_str(&report).unwrap();
    let codecs: Vec<_> = report["streams"].as_array().unwrap().iter().map(|it| &it["codec_name"]).collect();
    assert_eq!(codecs, ["mpeg2video", "mp2"]);
    let seconds: f64 = report["format"]["duration"].as_str().unwrap().parse().unwrap();
    assert!((seconds - 60.0).abs() < 2.0, "{seconds}");
    let titles: Vec<_> =
        report["chapters"].as_array().unwrap().iter().map(|it| it["tags"]["title"].clone()).collect();
    assert_eq!(titles, ["Part 1", "Commercials", "Part 2"]);
    until_async("the description", async || !studio.get(id).await["nfo_file"].is_null()).await;
    let nfo = studio.file(&studio.get(id).await["nfo_file"]);
    assert_eq!(nfo, converted.with_extension("nfo"));
    assert!(fs::read_to_string(&nfo).unwrap().contains("<title>News</title>"));
    let update = json!({ "title": "Evening", "description": "What happened." });
    let updated = studio.admin.post(&format!("{LIST}{id}/update-metadata/"), update).await;
    assert_eq!((updated.status, &updated.body["title"]), (200, &json!("Evening")), "{updated:?}");
    let is_new = || fs::read_to_string(&nfo).is_ok_and(|it| it.contains("<plot>What happened.</plot>"));
    eventually("the new description", is_new).await;
    let token = studio.admin.token(ADMIN, PASSWORD).await;
    let address = format!("{LIST}{id}/file/?token={}", token.text("access"));
    let whole = fetch(studio.address, Request::head(address)).await;
    assert_eq!(whole.header("content-type"), Some("video/x-matroska"));
    assert_eq!(whole.header("content-length").map(str::to_owned), Some(recording["file_size"].to_string()));

    // What ffmpeg cannot read stays as it is.
    fs::remove_file(&released).unwrap();
    let broken = studio.recorded().await;
    let stream = studio.file(&studio.get(broken).await["file_name"]);
    fs::write(&stream, vec![0x47; 188 * 100]).unwrap();
    fs::write(&released, "").unwrap();
    let failed = studio.until_remux(broken, "failed").await;
    assert!(failed["reason"].as_str().is_some_and(|it| !it.is_empty()), "{failed}");
    assert_eq!(studio.file(&studio.get(broken).await["file_name"]), stream);
    assert_eq!(fs::read(&stream).unwrap().len(), 188 * 100);
    let names = fs::read_dir(stream.parent().unwrap()).unwrap().map(|it| it.unwrap().file_name());
    let names: Vec<_> = names.filter(|it| it.to_string_lossy().ends_with(".mkv")).collect();
    assert_eq!(names.len(), 2, "nothing is left of the conversion that failed: {names:?}");
}

impl Studio {
    async fn until_remux(&self, id: u64, status: &str) -> Value {
        let what = format!("the conversion of recording {id} is {status}");
        until_async(&what, async || self.get(id).await["remux"]["status"] == status).await;
        self.get(id).await["remux"].clone()
    }
}
