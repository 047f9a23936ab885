//! The program is killed before, during and after a recording. The next one has the right status, and one good file.

use std::fs;

use serde_json::{Value, json};

use crate::recordings::{Studio, check_packets, check_with_ffprobe, millis};
use crate::recordings_after::{Held, Probed, n_processes_of};
use crate::shapes::checks;
use crate::support::{eventually, tools, until_async};

const NOT_RUNNING: &str = "the gateway was not running";

/// Returns start and end of the only gap, in milliseconds since 1970. Its reason has to be that nothing ran.
#[track_caller]
fn only_gap(recording: &Value) -> (i64, i64) {
    let gaps = recording["gaps"].as_array().unwrap();
    assert!(gaps.len() == 1 && gaps[0]["reason"] == NOT_RUNNING, "{recording}");
    (millis(&gaps[0]["start"]), millis(&gaps[0]["end"]))
}

/// Checks that a recording is one file that plays for as long as its packets arrived. Returns its content.
async fn check_file(studio: &Studio, id: u64) -> Vec<u8> {
    let bytes = studio.finished(id).await;
    let recording = studio.get(id).await;
    assert_eq!(recording["file_size"], bytes.len(), "{recording}");
    let found = check_packets(&bytes);
    let wall = (millis(&recording["ended_at"]) - millis(&recording["started_at"])) as f64 / 1000.0;
    for seconds in [found.programme_seconds(), check_with_ffprobe(&bytes).await] {
        assert!((seconds - wall).abs() < 3.0, "{seconds} s of {wall} s: {recording}");
    }
    bytes
}

/// Holds T-dvr.2 for a program that does not run at the start of a recording.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_that_was_due_while_nothing_ran_begins_late_and_says_so() {
    let studio = Studio::start().await;
    // Nobody has to care for it yet.
    let start = actors::now_ms() + 13_000;
    let id = studio.record_between(start, start + 20_000).await;
    assert_eq!(studio.provider.accepted(), 0);
    let studio = studio.kill_and_start_at(start + 4_000).await;
    until_async("the begin", async || studio.get(id).await["status"] == "recording").await;
    until_async("the end", async || studio.get(id).await["status"] != "recording").await;
    check_file(&studio, id).await;
    let recording = studio.get(id).await;
    let reason = recording["reason"].as_str().unwrap();
    assert!(recording["status"] == "interrupted" && reason.contains(NOT_RUNNING), "{recording}");
    let (from, until) = only_gap(&recording);
    assert_eq!((from, until), (start, millis(&recording["started_at"])), "{recording}");
    assert!(until >= start + 4_000);
    assert_eq!(studio.files(), [recording["file_name"].as_str().unwrap()]);
}

/// Holds T-dvr.2 for a program that does not run at the end of a recording.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recordings_that_ended_while_nothing_ran_keep_what_they_have_and_tell_what_is_missing() {
    let studio = Studio::start().await;
    let now = actors::now_ms();
    let end = now + 25_000;
    let begun = studio.record_between(now, end).await;
    let missed = studio.record_between(now + 38_000, now + 44_000).await;
    studio.until_size(begun, 700_000).await;
    let studio = studio.kill_and_start_at(now + 45_000).await;
    let bytes = check_file(&studio, begun).await;
    assert!(bytes.len() >= 600_000, "{} bytes", bytes.len());
    let recording = studio.get(begun).await;
    let reason = recording["reason"].as_str().unwrap();
    assert!(recording["status"] == "interrupted" && reason.contains(NOT_RUNNING), "{recording}");
    let (from, until) = only_gap(&recording);
    assert_eq!((from, until), (millis(&recording["ended_at"]), end), "{recording}");

    until_async("the other one", async || studio.get(missed).await["status"] == "failed").await;
    let nothing = studio.get(missed).await;
    let reason = nothing["reason"].as_str().unwrap();
    assert!(reason.starts_with(NOT_RUNNING) && nothing["file_name"].is_null(), "{nothing}");
    assert_eq!(studio.files(), [recording["file_name"].as_str().unwrap()]);
}

/// Holds T-dvr.2 for conversions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversion_that_was_killed_runs_again_and_the_stream_stays_until_it_is_verified() {
    const HALF: u64 = 50_000;
    for (format, muxer) in [("mkv", "matroska"), ("mp4", "mp4")] {
        let held = Held::new();
        // Writes a part of the result, and waits.
        let part = format!("for file; do :; done\nhead -c {HALF} /dev/zero >\"${{file#file:}}\"");
        let wait = held.wait("converts");
        held.program("ffmpeg", &format!("case \"$*\" in *'-f {muxer} '*)\n{part}\n{wait};;\nesac"));
        let studio = held.studio().await;
        studio.set(json!({ "remux": format })).await;
        let id = studio.recorded().await;
        studio.replace_by_clip(id).await;
        let stream = studio.file(&studio.get(id).await["file_name"]);
        let content = fs::read(&stream).unwrap();
        held.release();
        studio.until_remux(id, "running").await;
        let converted = stream.with_extension(format);
        eventually("a part of the result", || fs::metadata(&converted).is_ok_and(|it| it.len() == HALF))
            .await;
        studio.program.signal("KILL");
        let program = held.path("ffmpeg").display().to_string();
        eventually("the end of the program", || n_processes_of(&program) == 0).await;

        let studio = studio.kill_and_start().await;
        studio.until_remux(id, "running").await;
        eventually("the program to run again", || n_processes_of(&program) > 0).await;
        let recording = studio.get(id).await;
        assert_eq!(studio.file(&recording["file_name"]), stream, "not before it was verified");
        assert!(fs::read(&stream).unwrap() == content, "the stream has changed");
        fs::write(held.path("converts"), "").unwrap();
        let remux = studio.until_remux(id, "completed").await;
        assert_eq!(
            remux,
            json!({ "status": "completed", "format": format, "reason": null, "reason_code": null })
        );
        until_async("the removal of the stream", async || !stream.exists()).await;
        let recording = studio.get(id).await;
        assert_eq!(
            (&recording["status"], studio.file(&recording["file_name"])),
            (&json!("stopped"), converted.clone())
        );
        let seconds = Probed::read(&converted).await.seconds;
        assert!((seconds - 60.0).abs() < 2.0, "{seconds} s");
        // Beside the list of commercials, which has the name of the recording, too.
        let files: Vec<_> = studio.files().into_iter().filter(|it| !it.ends_with(".edl")).collect();
        assert_eq!(files, [recording["file_name"].as_str().unwrap()], "nothing is left of the first try");
    }
}

/// Returns the number of pictures in a file.
async fn n_pictures(bytes: &[u8]) -> usize {
    let file = tools::saved(bytes);
    let path = file.path().to_string_lossy().into_owned();
    let what = ["-select_streams", "v", "-show_entries", "packet=dts_time", "-of", "csv=p=0", &path];
    let text = tools::text_of("ffprobe", &[&["-v", "error"][..], &what].concat()).await;
    text.lines().filter(|it| !it.is_empty()).count()
}

/// These need tstools.
mod slow {
    use super::*;
    use crate::support::signal::FRAME;

    /// Holds T-dvr.2: the clock of the file goes on while nothing is recorded, and only what is listed is missing.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_recording_that_was_killed_is_as_long_as_its_time_and_lacks_what_it_lists() {
        let studio = Studio::start().await;
        let id = studio.record().await;
        studio.until_size(id, 800_000).await;
        let studio = studio.kill_and_start_at(actors::now_ms() + 5_000).await;
        let size = studio.get(id).await["file_size"].as_u64().unwrap();
        studio.until_size(id, size + 800_000).await;
        studio.stop(id).await;
        let bytes = check_file(&studio, id).await;
        let recording = studio.get(id).await;
        let (from, until) = only_gap(&recording);
        assert!(until - from >= 5_000, "{recording}");
        let wall = millis(&recording["ended_at"]) - millis(&recording["started_at"]);
        let recorded = (wall - (until - from)) as f64 / 1000.0;
        let seen = n_pictures(&bytes).await as f64 * FRAME.as_secs_f64();
        assert!((seen - recorded).abs() < 3.0, "{seen} s of pictures in {recorded} s: {recording}");
        let errors = checks::Recording::new(&bytes).clock_errors_beside_gaps(1).await;
        assert!(errors.is_empty(), "{}", errors.join("\n"));
        assert_eq!(studio.files(), [recording["file_name"].as_str().unwrap()]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_clock_of_a_plain_recording_is_without_an_error() {
        let studio = Studio::start().await;
        let id = studio.record().await;
        studio.until_size(id, 1_000_000).await;
        studio.stop(id).await;
        let bytes = check_file(&studio, id).await;
        assert_eq!(studio.get(id).await["gaps"], json!([]));
        let errors = checks::Recording::new(&bytes).clock_errors().await;
        assert!(errors.is_empty(), "{}", errors.join("\n"));
    }
}
