//! The work on recordings after their end, with the real programs: commercials, copies without them, conversions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::recordings::{LIST, Studio};
use crate::support::api::{ADMIN, PASSWORD};
use crate::support::client::{Request, fetch};
use crate::support::upstream::MockResponse;
use crate::support::websocket::WebSocketClient;
use crate::support::{eventually, tools, until_async};

pub(crate) const CONFIG: &str = "/api/channels/dvr/comskip-config/";
/// Finds commercials by black pictures alone, in the short clip of these tests.
pub(crate) const SHORT_BREAKS: &str = "\
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
pub(crate) async fn clip_with_commercials(path: &Path) {
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
    pub(crate) fn file(&self, name: &Value) -> PathBuf {
        self.data.path().join("recordings").join(name.as_str().expect("a name"))
    }

    /// Replaces the file of a recording by the clip with commercials, as an operator may.
    pub(crate) async fn replace_by_clip(&self, id: u64) {
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
    // After a recording it runs on its own; the exit code for "none" is a success.
    let none = studio.until_comskip(id, "none_found").await;
    let expected = json!({ "status": "none_found", "reason": null, "reason_code": null, "commercials": [], "edl_file": null });
    assert_eq!(none, expected);
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
pub(crate) fn n_processes_of(text: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let has_text = |it: &fs::DirEntry| {
        let line = fs::read(it.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).split('\0').any(|it| it == text)
    };
    processes.filter(has_text).count()
}

/// A folder with a comskip that waits, so that a recording can be replaced before the work on it begins.
pub(crate) struct Held {
    programs: tempfile::TempDir,
}

impl Held {
    pub(crate) fn new() -> Held {
        let held = Held { programs: tempfile::tempdir().unwrap() };
        held.program("comskip", &held.wait("released"));
        held
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.programs.path().join(name)
    }

    /// Writes a program that runs a script, and then the one of the system.
    pub(crate) fn program(&self, name: &str, script: &str) {
        let real = format!("PATH=${{PATH#*:}}\nexec {name} \"$@\"");
        fs::write(self.path(name), format!("#!/bin/sh\n{script}\n{real}\n")).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns the command that waits for a file of this name.
    pub(crate) fn wait(&self, name: &str) -> String {
        format!("while [ ! -e {} ]; do sleep 0.05; done", self.path(name).display())
    }

    /// Starts with these programs and a search for commercials after each recording.
    pub(crate) async fn studio(&self) -> Studio {
        let studio = Studio::start_with_programs(self.programs.path()).await;
        let set = json!({ "enabled": true, "config": SHORT_BREAKS });
        let set = studio.admin.send("PUT", CONFIG, set).await;
        assert_eq!(set.status, 200, "{set:?}");
        studio
    }

    pub(crate) fn release(&self) {
        fs::write(self.path("released"), "").unwrap();
    }

    fn hold(&self) {
        fs::remove_file(self.path("released")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_is_converted_with_chapters_and_keeps_its_stream_if_that_fails() {
    let held = Held::new();
    let studio = held.studio().await;
    studio.set(json!({ "remux": "mkv", "write_nfo": true })).await;
    let id = studio.recorded().await;
    let stream = studio.file(&studio.get(id).await["file_name"]);
    studio.replace_by_clip(id).await;
    // A file of this name is nobody's to overwrite.
    fs::write(stream.with_extension("mkv"), "mine").unwrap();
    held.release();
    let remux = studio.until_remux(id, "completed").await;
    assert_eq!(remux, json!({ "status": "completed", "format": "mkv", "reason": null, "reason_code": null }));
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
    held.hold();
    let broken = studio.recorded().await;
    let stream = studio.file(&studio.get(broken).await["file_name"]);
    fs::write(&stream, vec![0x47; 188 * 100]).unwrap();
    held.release();
    let failed = studio.until_remux(broken, "failed").await;
    assert!(failed["reason"].as_str().is_some_and(|it| !it.is_empty()), "{failed}");
    assert_eq!(studio.file(&studio.get(broken).await["file_name"]), stream);
    assert_eq!(fs::read(&stream).unwrap().len(), 188 * 100);
    let names = fs::read_dir(stream.parent().unwrap()).unwrap().map(|it| it.unwrap().file_name());
    let names: Vec<_> = names.filter(|it| it.to_string_lossy().ends_with(".mkv")).collect();
    assert_eq!(names.len(), 2, "nothing is left of the conversion that failed: {names:?}");
}

/// The findings of ffprobe about a file.
pub(crate) struct Probed {
    pub(crate) codecs: Vec<String>,
    pub(crate) seconds: f64,
}

impl Probed {
    pub(crate) async fn read(path: &Path) -> Probed {
        let entries = "stream=codec_name:format=duration";
        let path = path.display().to_string();
        let arguments = ["-v", "error", "-show_entries", entries, "-of", "json", &path];
        let report: Value = serde_json::from_str(&tools::text_of("ffprobe", &arguments).await).unwrap();
        let codecs = report["streams"].as_array().unwrap().iter();
        Probed {
            codecs: codecs.map(|it| it["codec_name"].as_str().unwrap().to_owned()).collect(),
            seconds: report["format"]["duration"].as_str().unwrap().parse().unwrap(),
        }
    }
}

/// Returns the names of the files in a folder that end like this.
fn names_with(folder: &Path, end: &str) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    names.filter(|it| it.ends_with(end)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_without_commercials_lies_beside_the_recording_which_stays() {
    let studio = Studio::start_with(&[]).await;
    let set = studio.admin.send("PUT", CONFIG, json!({ "config": SHORT_BREAKS })).await;
    assert_eq!(set.status, 200, "{set:?}");
    let id = studio.recorded().await;
    let original = studio.file(&studio.get(id).await["file_name"]);
    let recorded = fs::read(&original).unwrap();
    studio.replace_by_clip(id).await;
    let content = fs::read(&original).unwrap();
    studio.find_commercials(id).await;
    check_commercials(&studio.until_comskip(id, "completed").await);
    assert_eq!(studio.get(id).await["cut"], Value::Null, "off by default");
    let path = format!("{LIST}{id}/file/");
    assert_eq!(studio.admin.get(&format!("{path}?cut=true")).await.status, 404);

    studio.set(json!({ "comskip_mode": "cut" })).await;
    studio.find_commercials(id).await;
    let cut = studio.until_cut(id, "completed").await;
    let copy = studio.file(&cut["file_name"]);
    assert!(copy.to_string_lossy().ends_with(" - cut.ts"), "{copy:?}");
    let probed = Probed::read(&copy).await;
    assert_eq!(probed.codecs, Probed::read(&original).await.codecs);
    assert!((probed.seconds - 40.0).abs() < 3.0, "two parts of 20 s: {}", probed.seconds);
    let decoded =
        tools::run("ffmpeg", &["-v", "error", "-i", copy.to_str().unwrap(), "-f", "null", "-"]).await;
    assert!(decoded.status.success() && decoded.stderr.is_empty(), "{decoded:?}");
    let recording = studio.get(id).await;
    assert_eq!(
        (studio.file(&recording["file_name"]), fs::read(&original).unwrap()),
        (original.clone(), content)
    );
    let root = studio.data.path().join("recordings");
    assert!(!root.join(".headwater-parts").exists(), "no part is left");

    // Both are served, and both count.
    let token = studio.admin.token(ADMIN, PASSWORD).await;
    let address = format!("{path}?token={}", token.text("access"));
    let length = async |address: String| {
        let answer = fetch(studio.address, Request::head(address)).await;
        assert_eq!((answer.status(), answer.header("content-type")), (200, Some("video/mp2t")));
        answer.header("content-length").unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(length(address.clone()).await, original.metadata().unwrap().len());
    let n_bytes = copy.metadata().unwrap().len();
    assert_eq!((length(format!("{address}&cut=true")).await, &cut["file_size"]), (n_bytes, &json!(n_bytes)));
    let refused = studio.admin.get(&format!("{path}?cut=true&start=5")).await;
    assert!(refused.status == 400 && refused.body["start"].is_array(), "{refused:?}");
    let storage = studio.admin.get(&format!("{LIST}storage/")).await.body;
    let stored = recording["file_size"].as_u64().unwrap() + n_bytes;
    assert_eq!(storage["used_bytes"], stored);

    // Another search replaces it; one that finds nothing removes it.
    studio.find_commercials(id).await;
    studio.until_comskip(id, "completed").await;
    let again = studio.until_cut(id, "completed").await;
    assert_eq!(again["file_name"], cut["file_name"]);
    assert_eq!(names_with(copy.parent().unwrap(), ".ts").len(), 2);
    fs::write(&original, recorded).unwrap();
    studio.find_commercials(id).await;
    until_async("no copy", async || studio.get(id).await["cut"].is_null()).await;
    assert_eq!(studio.get(id).await["comskip"]["status"], "none_found");
    assert!(!copy.exists() && original.exists());
}

/// Holds T-dvr.2 for copies without commercials.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_was_killed_is_made_again_also_of_a_converted_recording_and_goes_with_it() {
    let held = Held::new();
    // Waits when it is to join the parts.
    let join = format!("case \"$*\" in *'-f concat'*) {};; esac", held.wait("joins"));
    held.program("ffmpeg", &join);
    let studio = held.studio().await;
    studio.set(json!({ "remux": "mkv", "comskip_mode": "cut" })).await;
    let id = studio.recorded().await;
    studio.replace_by_clip(id).await;
    held.release();
    studio.until_remux(id, "completed").await;
    let converted = studio.file(&studio.get(id).await["file_name"]);
    studio.until_cut(id, "running").await;
    let parts = studio.data.path().join("recordings/.headwater-parts");
    eventually("the list of parts", || parts.join("list.txt").exists()).await;
    let studio = studio.kill_and_start().await;
    studio.until_cut(id, "running").await;
    assert_eq!(studio.get(id).await["cut"]["file_name"], Value::Null, "not before it was checked");
    fs::write(held.path("joins"), "").unwrap();
    let cut = studio.until_cut(id, "completed").await;
    let copy = studio.file(&cut["file_name"]);
    assert!(copy.to_string_lossy().ends_with(" - cut.mkv"), "{copy:?}");
    let probed = Probed::read(&copy).await;
    assert_eq!(probed.codecs, ["mpeg2video", "mp2"]);
    assert!((probed.seconds - 40.0).abs() < 3.0, "{}", probed.seconds);
    assert_eq!(names_with(copy.parent().unwrap(), ".mkv").len(), 2, "nothing is left of the first try");
    assert!(!parts.exists());
    assert_eq!(studio.admin.delete(&format!("{LIST}{id}/")).await.status, 204);
    assert!(!copy.exists() && !converted.exists(), "the copy goes with its recording");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_is_converted_to_mp4_with_its_index_at_the_begin() {
    let held = Held::new();
    let studio = held.studio().await;
    studio.set(json!({ "remux": "mp4" })).await;
    let id = studio.recorded().await;
    studio.replace_by_clip(id).await;
    held.release();
    let remux = studio.until_remux(id, "completed").await;
    assert_eq!(remux, json!({ "status": "completed", "format": "mp4", "reason": null, "reason_code": null }));
    let converted = studio.file(&studio.get(id).await["file_name"]);
    assert_eq!(converted.extension().and_then(|it| it.to_str()), Some("mp4"));
    let probed = Probed::read(&converted).await;
    // The chapters are a track, too.
    let codecs: Vec<_> = probed.codecs.iter().filter(|it| *it != "bin_data").collect();
    assert_eq!((codecs.len(), codecs[0].as_str()), (2, "mpeg2video"), "{:?}", probed.codecs);
    assert!((probed.seconds - 60.0).abs() < 2.0, "{}", probed.seconds);
    let bytes = fs::read(&converted).unwrap();
    let place = |name: &[u8]| bytes.windows(4).position(|it| it == name).unwrap();
    assert!(place(b"moov") < place(b"mdat"), "a player need not read the end first");
    let token = studio.admin.token(ADMIN, PASSWORD).await;
    let address = format!("{LIST}{id}/file/?token={}", token.text("access"));
    let whole = fetch(studio.address, Request::head(address)).await;
    assert_eq!((whole.status(), whole.header("content-type")), (200, Some("video/mp4")));
    let address = format!("{LIST}{id}/hls/?token={}", token.text("access"));
    assert_eq!(fetch(studio.address, Request::head(address)).await.status(), 404);
    assert_eq!(names_with(converted.parent().unwrap(), ".ts"), Vec::<String>::new());
}

/// Attempts of a program that works on a recording, in the folder of recordings `$R`, the data folder `$D` and beside the
/// test `$T`. `$W` is the address of a server that answers everybody.
const FORBIDDEN: [(&str, &str); 10] = [
    ("change-recording", "echo x >>\"$F\""),
    ("connect", "python3 -c \"import socket; socket.create_connection(('127.0.0.1', $W), 20)\""),
    ("create-beside-recording", "echo x >\"$(dirname \"$F\")/new\""),
    ("create-elsewhere", "echo x >$T/new"),
    ("list-data", "ls $D"),
    ("list-recordings", "ls $R"),
    ("listen", "python3 -c \"import socket; socket.create_server(('127.0.0.1', 0))\""),
    ("read-key", "cat $D/key"),
    ("read-other-recording", "cat \"$O\""),
    ("read-store", "cat $D/store/*"),
];

/// Holds T-prog.1 for the programs that work on recordings: comskip, and ffmpeg and ffprobe of conversions and copies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_reach_only_the_recording_that_they_work_on_and_no_network() {
    let held = Held::new();
    // The programs can write nowhere, so that each reports in its log, whose last line is the reason of a failure.
    let places = held.path("places");
    let attempt =
        |(name, attempt): &(&str, &str)| format!("( {attempt} ) >/dev/null 2>&1 && did=\"$did {name}\"\n");
    let attempts: String = FORBIDDEN.iter().map(attempt).collect();
    let report = "[ -z \"$did\" ] || { echo \"did$did\" >&2; exit 9; }";
    for program in ["comskip", "ffmpeg", "ffprobe"] {
        let wait = held.wait("released");
        held.program(program, &format!("{wait}\n. {}\ndid=\n{attempts}{report}", places.display()));
    }
    let studio = held.studio().await;
    studio.set(json!({ "remux": "mkv", "comskip_mode": "cut" })).await;
    let (id, other) = (studio.recorded().await, studio.recorded().await);
    studio.replace_by_clip(id).await;
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let data = studio.data.path();
    let values = [
        ("D", data.display().to_string()),
        ("F", studio.file(&studio.get(id).await["file_name"]).display().to_string()),
        ("O", studio.file(&studio.get(other).await["file_name"]).display().to_string()),
        ("R", data.join("recordings").display().to_string()),
        ("T", held.programs.path().display().to_string()),
        ("W", server.local_addr().unwrap().port().to_string()),
    ];
    let values: String = values.iter().map(|(name, value)| format!("{name}='{value}'\n")).collect();
    fs::write(&places, values).unwrap();
    held.release();
    if !media::can_restrict_files() {
        // The same attempts succeed: this is what the warning at the start says.
        let failed = studio.until_comskip(id, "failed").await;
        assert!(failed["reason"].as_str().is_some_and(|it| it.contains("did")), "{failed}");
        return;
    }
    let state = async || {
        let it = studio.get(id).await;
        [&it["comskip"], &it["remux"], &it["cut"]].map(|it| (it["status"].clone(), it["reason"].clone()))
    };
    let is_open = |it: &Value| it.is_null() || it == "queued" || it == "running";
    until_async("the end of all work", async || {
        let state = state().await;
        state.iter().any(|it| it.0 == "failed") || state.iter().all(|it| !is_open(&it.0))
    })
    .await;
    let completed = (json!("completed"), Value::Null);
    assert_eq!(state().await, [completed.clone(), completed.clone(), completed]);
    assert!(!held.path("new").exists());
}

pub(crate) const ONE_PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0,
    0, 1, 8, 0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55,
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_picture_lies_beside_the_recording_and_goes_with_it() {
    let studio = Studio::start_with(&[]).await;
    let plain = studio.recorded().await;
    assert_eq!(studio.get(plain).await["artwork"], Value::Null, "off by default");
    studio.set(json!({ "write_artwork": true })).await;
    let without = studio.recorded().await;
    let failed = studio.until_artwork(without, "failed").await;
    assert!(failed["reason"].as_str().is_some_and(|it| it.contains("picture")), "{failed}");
    assert_eq!((&failed["url"], &failed["origin"]), (&Value::Null, &Value::Null));

    // The channel gets a logo.
    studio.provider.path("/logo.png").answers(MockResponse::text("image/png", ONE_PIXEL));
    let logo = json!({ "name": "News", "url": studio.provider.url("/logo.png") });
    let logo = studio.admin.post("/api/channels/logos/", logo).await;
    assert_eq!(logo.status, 201, "{logo:?}");
    let channel = studio.get(without).await["channel_id"].clone();
    let path = format!("/api/channels/channels/{channel}/");
    let set = studio.admin.send("PATCH", &path, json!({ "logo_id": logo.body["id"] })).await;
    assert_eq!(set.status, 200, "{set:?}");
    let refresh = format!("{LIST}{without}/refresh-artwork/");
    let queued = studio.admin.post(&refresh, json!({})).await;
    assert_eq!((queued.status, &queued.body["id"]), (200, &json!(without)), "{queued:?}");
    let artwork = studio.until_artwork(without, "completed").await;
    assert_eq!(artwork["origin"], "channel");
    let picture = studio.file(&artwork["file_name"]);
    let recording = studio.get(without).await;
    let file = studio.file(&recording["file_name"]);
    let name = file.file_stem().unwrap().to_string_lossy().into_owned();
    assert_eq!(picture, file.with_file_name(format!("{name}-thumb.png")));
    assert_eq!(fs::read(&picture).unwrap(), ONE_PIXEL);
    assert_eq!(recording["custom_properties"]["poster_url"], artwork["url"]);
    assert_eq!(recording["custom_properties"]["poster_logo_id"], logo.body["id"]);
    let token = studio.admin.token(ADMIN, PASSWORD).await;
    let address = |id: u64| format!("{LIST}{id}/artwork/?token={}", token.text("access"));
    let shown = fetch(studio.address, Request::get(address(without))).await;
    assert_eq!((shown.status(), shown.header("content-type")), (200, Some("image/png")));
    assert_eq!(fetch(studio.address, Request::get(address(plain))).await.status(), 404);
    let stranger = fetch(studio.address, Request::get(format!("{LIST}{without}/artwork/"))).await;
    assert_eq!(stranger.status(), 401);

    // A logo that is not a picture leaves the earlier one.
    studio.provider.path("/page").answers(MockResponse::html());
    let page = json!({ "name": "Page", "url": studio.provider.url("/page") });
    let page = studio.admin.post("/api/channels/logos/", page).await;
    let set = studio.admin.send("PATCH", &path, json!({ "logo_id": page.body["id"] })).await;
    assert_eq!(set.status, 200, "{set:?}");
    assert_eq!(studio.admin.post(&refresh, json!({})).await.status, 200);
    let failed = studio.until_artwork(without, "failed").await;
    assert_eq!(
        (&failed["file_name"], fs::read(&picture).unwrap()),
        (&artwork["file_name"], ONE_PIXEL.to_vec())
    );

    // One that runs has none yet, and deleting takes it away.
    let running = studio.record().await;
    studio.until_size(running, 1).await;
    let refused = studio.admin.post(&format!("{LIST}{running}/refresh-artwork/"), json!({})).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(studio.admin.delete(&format!("{LIST}{without}/")).await.status, 204);
    assert!(!picture.exists(), "the picture goes with its recording");
}

impl Studio {
    async fn until_artwork(&self, id: u64, status: &str) -> Value {
        let what = format!("the picture of recording {id} is {status}");
        until_async(&what, async || self.get(id).await["artwork"]["status"] == status).await;
        self.get(id).await["artwork"].clone()
    }

    async fn until_cut(&self, id: u64, status: &str) -> Value {
        let what = format!("the copy of recording {id} is {status}");
        until_async(&what, async || self.get(id).await["cut"]["status"] == status).await;
        self.get(id).await["cut"].clone()
    }

    pub(crate) async fn until_remux(&self, id: u64, status: &str) -> Value {
        let what = format!("the conversion of recording {id} is {status}");
        until_async(&what, async || self.get(id).await["remux"]["status"] == status).await;
        self.get(id).await["remux"].clone()
    }
}
