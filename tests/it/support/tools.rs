//! External programs that read the gateway's output: ffprobe, ffmpeg, tshark, xmllint.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::WAIT_MAX;

const INSTALL: &str = "just tools";

/// Runs a program until it exits. A missing program fails the test with the command that installs it.
pub async fn run(program: &str, arguments: &[&str]) -> Output {
    run_with_input(program, arguments, &[]).await
}

pub async fn run_with_input(program: &str, arguments: &[&str], input: &[u8]) -> Output {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            panic!("this test needs {program}: {INSTALL}")
        }
        Err(error) => panic!("failed to start {program}: {error}"),
    };
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    let feeder = tokio::spawn(async move {
        let _ = stdin.write_all(&input).await;
    });
    let output = tokio::time::timeout(WAIT_MAX * 2, child.wait_with_output()).await;
    feeder.abort();
    output.unwrap_or_else(|_| panic!("{program} did not exit")).expect("the program ran")
}

/// Returns the standard output of a program that must succeed.
pub async fn text_of(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?} failed:\n{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the path of a program or folder that `just tools` installed.
#[track_caller]
pub fn installed(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools").join(name);
    assert!(path.exists(), "this test needs {}: {INSTALL}", path.display());
    path
}

/// Returns the command that becomes a program whose time of day is moved by what a file contains, such as `+3d`. Its other
/// clocks stay as they are.
#[track_caller]
pub fn with_clock(file: &Path) -> Vec<String> {
    let folders = std::fs::read_dir("/usr/lib").expect("the system has libraries");
    let libraries = folders.flatten().map(|it| it.path().join("faketime/libfaketime.so.1"));
    let library = libraries.into_iter().find(|it| it.exists());
    let library = library.unwrap_or_else(|| panic!("this test needs libfaketime: {INSTALL}"));
    let set = |name: &str, value: String| format!("{name}={value}");
    vec![
        "env".to_owned(),
        set("LD_PRELOAD", library.display().to_string()),
        set("FAKETIME_TIMESTAMP_FILE", file.display().to_string()),
        set("FAKETIME_NO_CACHE", "1".to_owned()),
        set("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
}

/// Returns the folder below the target directory where clips are cached.
pub fn clips() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clips");
    std::fs::create_dir_all(&path).expect("the target directory can be written");
    path
}

/// Returns a temporary file with these bytes.
pub fn saved(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".ts").tempfile().expect("a temporary file");
    std::io::Write::write_all(&mut file, bytes).expect("the temporary directory can be written");
    file
}

/// The decoding times of the packets of a file.
pub struct DecodingTimes {
    pub n_streams: usize,
    /// From the first packet to the last one.
    pub seconds: f64,
}

impl DecodingTimes {
    /// Reads the lines of `ffprobe -show_entries packet=codec_type,stream_index,dts_time,… -of csv=p=0`. Fails if the times of
    /// a stream decrease.
    pub fn from_packets(text: &str) -> DecodingTimes {
        let mut last = BTreeMap::<&str, f64>::new();
        let (mut first, mut end) = (f64::MAX, 0.0_f64);
        for line in text.lines() {
            let fields: Vec<&str> = line.split(',').collect();
            // Lines about side data have fewer fields.
            let [_, stream, time, ..] = fields[..] else { continue };
            let Ok(time) = time.parse::<f64>() else { continue };
            let before = last.insert(stream, time).unwrap_or(time);
            assert!(time >= before, "stream {stream} goes back from {before} to {time}");
            (first, end) = (first.min(time), end.max(time));
        }
        DecodingTimes { n_streams: last.len(), seconds: end - first }
    }
}
