//! Files of recordings as ffmpeg and ffprobe read and write them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::recording::ProbedFile;
use media::source::FileJob;

use super::step::{StepFault, blocking, run};
use crate::recorder::state::RecorderState;
use crate::recording_files::RecordingsFolder;

/// Time to look at a file.
const PROBE_TIME_MAX: Duration = Duration::from_secs(120);
/// How much of the beginning is read to find all streams.
pub(super) const PROBE: [&str; 4] = ["-probesize", "50M", "-analyzeduration", "20M"];
/// Maximum growth of a file that is copied: a hundredth, and this many bytes.
const GROWTH_DIVISOR: u64 = 100;
const GROWTH_BYTES: u64 = 64 << 20;

/// Returns the maximum size of a copy of a file with this size, in bytes.
pub(super) fn bytes_max(bytes: u64) -> u64 {
    bytes + bytes / GROWTH_DIVISOR + GROWTH_BYTES
}

/// Returns the begin of a command.
pub(super) fn ffmpeg() -> Vec<String> {
    ["ffmpeg", "-nostdin", "-v", "error", "-y"].map(str::to_owned).to_vec()
}

/// Returns a path as the programs take it. Otherwise a name could be taken for an address.
pub(super) fn file_address(path: &Path) -> String {
    format!("file:{}", path.display())
}

/// Runs ffmpeg, which has to succeed.
pub(super) async fn run_ffmpeg(shared: &RecorderState, job: FileJob) -> Result<(), StepFault> {
    let end = run(shared, job).await?;
    match end.code {
        Some(0) => Ok(()),
        _ => Err(StepFault::Failed(format!("ffmpeg: {}", end.message))),
    }
}

/// Returns what ffprobe writes about a file.
pub(super) async fn report(
    shared: &RecorderState,
    path: PathBuf,
    options: impl IntoIterator<Item = String>,
) -> Result<Vec<u8>, StepFault> {
    let mut command: Vec<String> = ["ffprobe", "-v", "error"].map(str::to_owned).to_vec();
    command.extend(PROBE.map(str::to_owned));
    command.extend(options);
    command.push(file_address(&path));
    let job = FileJob {
        command,
        hidden: Vec::new(),
        readable: vec![path],
        writable: Vec::new(),
        file_bytes_max: 1,
        time_max: PROBE_TIME_MAX,
    };
    let end = run(shared, job).await?;
    match end.code {
        Some(0) => Ok(end.output),
        _ => Err(StepFault::Failed(format!("ffprobe: {}", end.message))),
    }
}

/// Returns streams and length of a file.
pub(super) async fn probe(shared: &RecorderState, path: PathBuf) -> Result<ProbedFile, StepFault> {
    let entries = "format=duration,start_time:stream=codec_type,codec_name";
    let options = ["-show_entries", entries, "-of", "json"].map(str::to_owned);
    let report = report(shared, path, options).await?;
    ProbedFile::parse(&report).ok_or_else(|| StepFault::Failed("the file has no length".to_owned()))
}

/// Returns the absolute path of a file in the folder of recordings, and its size.
pub(super) async fn real_file(folder: &RecordingsFolder, path: &str) -> Result<(PathBuf, u64), StepFault> {
    let (folder, path) = (folder.clone(), path.to_owned());
    blocking(move || {
        let missing = || StepFault::Failed("the file does not exist".to_owned());
        let file = folder.real_path(&path)?.ok_or_else(missing)?;
        let bytes = file.metadata()?.len();
        Ok::<_, StepFault>((file, bytes))
    })
    .await
}

/// Returns the size of a file when the disk has all of it.
pub(super) async fn synced_length(folder: &RecordingsFolder, path: &str) -> Result<u64, StepFault> {
    let (folder, path) = (folder.clone(), path.to_owned());
    blocking(move || {
        let removed = || StepFault::Failed("the new file was removed".to_owned());
        let file = folder.reopen(&path)?.ok_or_else(removed)?;
        file.sync_all()?;
        Ok::<_, StepFault>(file.metadata()?.len())
    })
    .await
}
