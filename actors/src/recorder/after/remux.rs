//! The conversion of a recording to another container by ffmpeg.
//!
//! The transport stream stays until the result has the same streams and the same length. The result gets its name before
//! ffmpeg starts, and ffmpeg can write only to this file.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::ids::RecordingId;
use domain::recording::{
    FILE_EXTENSION, ProbedFile, Recording, RemuxFormat, RemuxWork, WorkState, ffmetadata,
};
use media::source::FileJob;
use tracing::{info, warn};

use super::{AfterSettings, Fault, TOO_OFTEN, TRIES_MAX, blocking, extension, run, stem};
use crate::recorder::{Parts, RecordingsFolder, Shared};

/// Time for a conversion, besides the length of the recording.
const TIME_MIN: Duration = Duration::from_secs(10 * 60);
/// Time to look at a file.
const PROBE_TIME_MAX: Duration = Duration::from_secs(120);
/// How much of the beginning is read to find all streams.
const PROBE: [&str; 4] = ["-probesize", "50M", "-analyzeduration", "20M"];
/// Maximum growth of the file: a hundredth, and this many bytes.
const GROWTH_DIVISOR: u64 = 100;
const GROWTH_BYTES: u64 = 64 << 20;

/// Converts a recording and notes the result.
///
/// # Errors
/// The conversion has to wait.
pub(super) async fn convert(
    shared: &Arc<Shared>,
    settings: &AfterSettings,
    id: RecordingId,
) -> Result<(), String> {
    let Some(parts) = shared.parts.get() else { return Ok(()) };
    let begun = shared.change_record(id, |it| {
        let work = it.after.remux.as_mut().filter(|it| it.state.is_open())?;
        work.tries += 1;
        work.state = WorkState::Running;
        Some(work.clone())
    });
    let Some((recording, Some(work))) = begun.await? else { return Ok(()) };
    let converted = match work.tries > TRIES_MAX {
        true => Err(Fault::Failed(TOO_OFTEN.to_owned())),
        false => {
            tokio::select! {
                converted = make(shared, parts, settings, &recording, &work) => converted,
                () = shared.deleted(id) => Err(Fault::Gone),
                () = shared.stop.cancelled() => Err(Fault::Stopping),
            }
        }
    };
    let fault = match converted {
        Ok((path, bytes)) => return replace(shared, id, path, bytes).await,
        Err(fault) => fault,
    };
    // The next try begins with a new file.
    let target = shared.recording(id).and_then(|it| it.after.remux.as_ref()?.target.clone()).or(work.target);
    if let Some(target) = target {
        shared.remove_beside(id, target).await;
    }
    let (state, reason, waits) = match fault {
        Fault::Gone => return Ok(()),
        Fault::Stopping => (WorkState::Queued, None, None),
        Fault::Later(reason) => (WorkState::Queued, None, Some(reason)),
        Fault::Failed(reason) => (WorkState::Failed, Some(reason), None),
    };
    if let Some(reason) = &reason {
        warn!(recording.id = %id, "failed to convert a recording, which stays as it is: {reason}");
    }
    let noted = shared.change_record(id, move |it| {
        with_work(it, |work| {
            if state == WorkState::Queued {
                // It was no fault of the file.
                work.tries = work.tries.saturating_sub(1);
            }
            (work.state, work.reason, work.target) = (state, reason, None);
        });
    });
    noted.await?;
    waits.map_or(Ok(()), Err)
}

fn with_work(recording: &mut Recording, change: impl FnOnce(&mut RemuxWork)) {
    if let Some(work) = recording.after.remux.as_mut() {
        change(work);
    }
}

/// Makes the converted file. Returns its path and size.
async fn make(
    shared: &Arc<Shared>,
    parts: &Parts,
    settings: &AfterSettings,
    recording: &Recording,
    work: &RemuxWork,
) -> Result<(String, u64), Fault> {
    let Some(file) = &recording.file else { return Err(Fault::Gone) };
    if extension(&file.path) != FILE_EXTENSION {
        return Err(Fault::Failed("the file is no transport stream".to_owned()));
    }
    let (folder, path) = (parts.folder.clone(), file.path.clone());
    let source = blocking(move || {
        let missing = || Fault::Failed("the file does not exist".to_owned());
        let source = folder.real_path(&path)?.ok_or_else(missing)?;
        let bytes = source.metadata()?.len();
        Ok::<_, Fault>((source, bytes))
    });
    let (source, bytes) = source.await?;
    let before = probe(shared, source.clone()).await?;
    let target = reserve(shared, parts, recording, work).await?;
    let (folder, path) = (parts.folder.clone(), target.clone());
    let output = blocking(move || {
        let missing = || Fault::Failed("the converted file was removed".to_owned());
        folder.real_path(&path)?.ok_or_else(missing)
    });
    let output = output.await?;
    let commercials = recording.after.comskip.as_ref().map(|it| it.commercials.clone()).unwrap_or_default();
    let text = ffmetadata(recording.title(), &commercials, before.length);
    let scratch = settings.scratch.clone();
    let metadata = blocking(move || {
        let path = std::path::absolute(scratch.join("chapters.txt"))?;
        std::fs::create_dir_all(&scratch)?;
        std::fs::write(&path, text)?;
        Ok::<PathBuf, std::io::Error>(path)
    });
    let metadata = metadata.await?;
    let length_ms = file.ended_at.unwrap_or(file.started_at).saturating_sub(file.started_at);
    let job = FileJob {
        command: command(&source, &metadata, &output, work.format),
        hidden: Vec::new(),
        readable: vec![source.clone(), metadata],
        writable: vec![output.clone()],
        file_bytes_max: bytes + bytes / GROWTH_DIVISOR + GROWTH_BYTES,
        time_max: TIME_MIN + Duration::from_millis(u64::try_from(length_ms).unwrap_or(0)),
    };
    let end = run(shared, job).await?;
    if end.code != Some(0) {
        return Err(Fault::Failed(format!("ffmpeg: {}", end.message)));
    }
    let after = probe(shared, output).await?;
    before.check_conversion(&after).map_err(Fault::Failed)?;
    let (folder, path) = (parts.folder.clone(), target.clone());
    let bytes = blocking(move || synced_length(&folder, &path)).await?;
    Ok((target, bytes))
}

/// Creates the file for the result, and notes its path before anything is in it. Removes that of an earlier try.
async fn reserve(
    shared: &Arc<Shared>,
    parts: &Parts,
    recording: &Recording,
    work: &RemuxWork,
) -> Result<String, Fault> {
    let Some(file) = &recording.file else { return Err(Fault::Gone) };
    let (folder, path, earlier) = (parts.folder.clone(), file.path.clone(), work.target.clone());
    let format = work.format;
    let created = blocking(move || {
        if let Some(earlier) = earlier {
            folder.remove(&earlier)?;
        }
        folder.create(stem(&path), format.name()).map(|it| it.1)
    });
    let target = created.await?;
    let noted = target.clone();
    let changed = shared.change_record(recording.id, move |it| {
        with_work(it, |work| work.target = Some(noted));
    });
    match changed.await {
        Ok(Some(_)) => Ok(target),
        changed => {
            shared.remove_beside(recording.id, target).await;
            Err(changed.map_or_else(Fault::Later, |_| Fault::Gone))
        }
    }
}

/// Returns the command that copies all streams.
fn command(
    source: &std::path::Path,
    metadata: &std::path::Path,
    output: &std::path::Path,
    format: RemuxFormat,
) -> Vec<String> {
    // Otherwise a name could be taken for an address.
    let name = |it: &std::path::Path| format!("file:{}", it.display());
    let mut command: Vec<String> = ["ffmpeg", "-nostdin", "-v", "error", "-y"].map(str::to_owned).to_vec();
    command.extend(PROBE.map(str::to_owned));
    command.extend(["-i".to_owned(), name(source)]);
    command.extend(["-f", "ffmetadata", "-i"].map(str::to_owned));
    command.push(name(metadata));
    let copy = [
        "-map",
        "0:v?",
        "-map",
        "0:a?",
        "-map",
        "0:s?",
        "-map_metadata",
        "1",
        "-map_chapters",
        "1",
        "-c",
        "copy",
    ];
    command.extend(copy.map(str::to_owned));
    if format == RemuxFormat::Mp4 {
        command.extend(["-movflags", "+faststart"].map(str::to_owned));
    }
    command.extend(["-f".to_owned(), format.muxer().to_owned(), name(output)]);
    command
}

/// Returns what ffprobe reports about a file.
async fn probe(shared: &Arc<Shared>, path: PathBuf) -> Result<ProbedFile, Fault> {
    let mut command: Vec<String> = ["ffprobe", "-v", "error"].map(str::to_owned).to_vec();
    command.extend(PROBE.map(str::to_owned));
    let entries = ["-show_entries", "format=duration:stream=codec_type,codec_name", "-of", "json"];
    command.extend(entries.map(str::to_owned));
    command.push(format!("file:{}", path.display()));
    let job = FileJob {
        command,
        hidden: Vec::new(),
        readable: vec![path],
        writable: Vec::new(),
        file_bytes_max: 1,
        time_max: PROBE_TIME_MAX,
    };
    let end = run(shared, job).await?;
    let probed = ProbedFile::parse(&end.output).filter(|_| end.code == Some(0));
    probed.ok_or_else(|| Fault::Failed(format!("ffprobe: {}", end.message)))
}

/// Returns the size of a file when the disk has all of it.
fn synced_length(folder: &RecordingsFolder, path: &str) -> Result<u64, Fault> {
    let file =
        folder.reopen(path)?.ok_or_else(|| Fault::Failed("the converted file was removed".to_owned()))?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

/// Lets the record name the converted file, and removes the transport stream.
async fn replace(shared: &Arc<Shared>, id: RecordingId, path: String, bytes: u64) -> Result<(), String> {
    let target = path.clone();
    let changed = shared.change_record(id, move |it| {
        let Some(file) = it.file.as_mut() else { return };
        let before = std::mem::replace(&mut file.path, path);
        file.bytes = bytes;
        it.after.obsolete = Some(before);
        with_work(it, |work| (work.state, work.reason, work.target) = (WorkState::Completed, None, None));
    });
    if changed.await?.is_none() {
        shared.remove_beside(id, target).await;
        return Ok(());
    }
    info!(recording.id = %id, "a recording was converted");
    remove_obsolete(shared, id).await
}

/// Removes the file that a conversion has replaced.
///
/// # Errors
/// The folder cannot be used now.
pub(super) async fn remove_obsolete(shared: &Arc<Shared>, id: RecordingId) -> Result<(), String> {
    let obsolete = shared.recording(id).and_then(|it| it.after.obsolete.clone());
    let (Some(parts), Some(obsolete)) = (shared.parts.get(), obsolete) else { return Ok(()) };
    let folder = parts.folder.clone();
    match blocking(move || folder.remove(&obsolete)).await {
        Ok(_) => {}
        Err(Fault::Later(reason)) => return Err(reason),
        Err(cause) => warn!(recording.id = %id, "failed to remove the original of a recording: {cause:?}"),
    }
    shared.change_record(id, |it| it.after.obsolete = None).await.map(|_| ())
}
