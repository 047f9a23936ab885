//! The conversion of a recording to another container by ffmpeg.
//!
//! The transport stream stays until the result has the same streams and the same length. The result gets its name before
//! ffmpeg starts, and ffmpeg can write only to this file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::ids::RecordingId;
use domain::recording::{AfterStep, FILE_EXTENSION, Recording, RemuxFormat, WorkState, ffmetadata};
use media::source::FileJob;
use tracing::{info, warn};

use super::ffmpeg::{PROBE, bytes_max, ffmpeg, file_address, probe, real_file, run_ffmpeg, synced_length};
use super::settings::AfterSettings;
use super::step::{StepFault, blocking, extension, stem};
use crate::recorder::state::{RecorderParts, RecorderState};

/// Time for a conversion, besides the length of the recording.
const TIME_MIN: Duration = Duration::from_secs(10 * 60);

/// Converts a recording and notes the result.
///
/// # Errors
/// The conversion has to wait.
pub(super) async fn convert(
    shared: &Arc<RecorderState>,
    settings: &AfterSettings,
    id: RecordingId,
) -> Result<(), String> {
    let Some(parts) = shared.parts.get() else { return Ok(()) };
    let Some((recording, may)) = shared.begin(id, AfterStep::Remux).await? else { return Ok(()) };
    let fault = match shared.attempt(id, may, make(shared, parts, settings, &recording)).await {
        Ok((path, bytes)) => return replace(shared, &recording, path, bytes).await,
        Err(fault) => fault,
    };
    if let Some((_, reason)) = shared.note_fault(id, AfterStep::Remux, fault).await? {
        warn!(recording.id = %id, "failed to convert a recording, which stays as it is: {reason}");
    }
    Ok(())
}

/// Makes the converted file. Returns its path and size.
async fn make(
    shared: &Arc<RecorderState>,
    parts: &RecorderParts,
    settings: &AfterSettings,
    recording: &Recording,
) -> Result<(String, u64), StepFault> {
    let (Some(file), Some(work)) = (&recording.file, &recording.after.remux) else {
        return Err(StepFault::Gone);
    };
    if extension(&file.path) != FILE_EXTENSION {
        return Err(StepFault::Failed("the file is not a transport stream".to_owned()));
    }
    let (source, bytes) = real_file(&parts.folder, &file.path).await?;
    let before = probe(shared, source.clone()).await?;
    if let Some(earlier) = work.target.clone() {
        let folder = parts.folder.clone();
        blocking(move || folder.remove(&earlier)).await?;
    }
    let (stem, extension) = (stem(&file.path).to_owned(), work.format.name().to_owned());
    let target = shared.reserve(recording.id, AfterStep::Remux, stem, extension).await?;
    let (output, _) = real_file(&parts.folder, &target).await?;
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
        file_bytes_max: bytes_max(bytes),
        time_max: TIME_MIN + Duration::from_millis(u64::try_from(length_ms).unwrap_or(0)),
    };
    run_ffmpeg(shared, job).await?;
    let after = probe(shared, output).await?;
    before.check_conversion(&after).map_err(StepFault::Failed)?;
    let bytes = synced_length(&parts.folder, &target).await?;
    Ok((target, bytes))
}

/// Returns the command that copies all streams.
fn command(source: &Path, metadata: &Path, output: &Path, format: RemuxFormat) -> Vec<String> {
    let mut command = ffmpeg();
    command.extend(PROBE.map(str::to_owned));
    command.extend(["-i".to_owned(), file_address(source)]);
    command.extend(["-f", "ffmetadata", "-i"].map(str::to_owned));
    command.push(file_address(metadata));
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
    command.extend(["-f".to_owned(), format.muxer().to_owned(), file_address(output)]);
    command
}

/// Lets the record name the converted file, and removes the transport stream.
async fn replace(
    shared: &Arc<RecorderState>,
    recording: &Recording,
    path: String,
    bytes: u64,
) -> Result<(), String> {
    let (id, target) = (recording.id, path.clone());
    let source = recording.file.as_ref().map(|it| it.path.clone());
    let changed = shared.change_record(id, move |it| {
        // Not again, if it was done and the answer of another node was lost.
        let Some(file) = it.file.as_mut().filter(|it| Some(&it.path) == source.as_ref()) else { return };
        let before = std::mem::replace(&mut file.path, path);
        file.bytes = bytes;
        it.after.obsolete = Some(before);
        it.after.end(AfterStep::Remux, WorkState::Completed, None);
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
pub(super) async fn remove_obsolete(shared: &Arc<RecorderState>, id: RecordingId) -> Result<(), String> {
    let obsolete = shared.recording(id).and_then(|it| it.after.obsolete.clone());
    let (Some(parts), Some(obsolete)) = (shared.parts.get(), obsolete) else { return Ok(()) };
    let folder = parts.folder.clone();
    match blocking(move || folder.remove(&obsolete)).await {
        Ok(_) => {}
        Err(StepFault::Later(reason)) => return Err(reason),
        Err(cause) => warn!(recording.id = %id, "failed to remove the original of a recording: {cause:?}"),
    }
    shared.change_record(id, |it| it.after.obsolete = None).await.map(|_| ())
}
