//! The search for commercials in a recording by comskip.
//!
//! Comskip gets a folder with a link to the recording, because it copies long paths into buffers of a fixed size. Its exit
//! code is 0 if it found commercials, and 1 if there are none.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::comskip::{
    CONFIG_BYTES_MAX, Commercial, ComskipConfig, commercials_of_edl, edl_of, length_of_report,
};
use domain::event::{Event, EventBody};
use domain::ids::RecordingId;
use domain::recording::{AfterStep, ComskipWork, Recording, WorkState};
use media::source::FileJob;
use rustix::fs::{Mode, OFlags};
use tracing::{info, warn};

use super::settings::AfterSettings;
use super::step::{StepFault, blocking, extension, run, stem};
use crate::clock::now_ms;
use crate::recorder::state::RecorderState;
use crate::recording_files::RecordingsFolder;

/// Time for a search, besides a multiple of the length of the recording.
const TIME_MIN: Duration = Duration::from_secs(10 * 60);
const LENGTHS: u32 = 3;
/// Maximum size of a file that comskip writes, and of what is read of it, in bytes.
const OUTPUT_BYTES_MAX: u64 = 4 << 20;
/// Name of the link to the recording, without its extension. Comskip names its output after it.
const LINK: &str = "recording";

/// Searches for commercials and notes the result.
///
/// # Errors
/// The search has to wait.
pub(super) async fn find_commercials(
    shared: &Arc<RecorderState>,
    settings: &AfterSettings,
    id: RecordingId,
) -> Result<(), String> {
    let Some((recording, may)) = shared.begin(id, AfterStep::Comskip).await? else { return Ok(()) };
    if may {
        emit(shared, &recording, "started", String::new());
    }
    let fault = match shared.attempt(id, may, search(shared, settings, &recording)).await {
        Ok(commercials) => return note(shared, &recording, commercials).await,
        Err(fault) => fault,
    };
    if let Some((recording, reason)) = shared.note_fault(id, AfterStep::Comskip, fault).await? {
        warn!(recording.id = %id, "failed to search for commercials: {reason}");
        emit(shared, &recording, "error", reason);
    }
    Ok(())
}

fn with_work(recording: &mut Recording, change: impl FnOnce(&mut ComskipWork)) {
    if let Some(work) = recording.after.comskip.as_mut() {
        change(work);
    }
}

/// Writes the list beside the recording, and the commercials to its record.
async fn note(
    shared: &Arc<RecorderState>,
    recording: &Recording,
    commercials: Vec<Commercial>,
) -> Result<(), String> {
    let (Some(parts), Some(file)) = (shared.parts.get(), &recording.file) else { return Ok(()) };
    let before = recording.after.comskip.as_ref().and_then(|it| it.edl.clone());
    let (folder, path, text) = (parts.folder.clone(), file.path.clone(), edl_of(&commercials));
    let written = blocking(move || {
        if let Some(before) = before {
            folder.remove(&before)?;
        }
        match text.is_empty() {
            true => Ok(None),
            false => folder.write_new(stem(&path), "edl", text.as_bytes()).map(Some),
        }
    });
    // Without the list, the commercials are still in the record.
    let (edl, reason) = match written.await {
        Ok(edl) => (edl, None),
        Err(StepFault::Failed(reason) | StepFault::Later(reason)) => {
            (None, Some(format!("the list of commercials cannot be written: {reason}")))
        }
        Err(StepFault::Stopping | StepFault::Gone) => (None, None),
    };
    let (n, noted) = (commercials.len(), edl.clone());
    let (dvr, _) = shared.settings();
    let changed = shared.change_record(recording.id, move |it| {
        with_work(it, |work| {
            (work.state, work.reason, work.edl) = (WorkState::Completed, reason, noted);
            work.commercials = commercials;
        });
        it.after.queue_cut(&dvr, now_ms());
    });
    match changed.await? {
        Some((recording, ())) => {
            info!(recording.id = %recording.id, "found {n} commercials");
            match n {
                0 => emit(shared, &recording, "skipped", "no commercials".to_owned()),
                n => emit(shared, &recording, "completed", format!("{n} commercials")),
            }
        }
        None => {
            if let Some(edl) = edl {
                shared.remove_beside(recording.id, edl).await;
            }
        }
    }
    Ok(())
}

fn emit(shared: &RecorderState, recording: &Recording, status: &'static str, detail: String) {
    let body = EventBody::ComskipStatus {
        channel: shared.channel_ref(recording),
        recording: shared.recording_ref(recording),
        status,
        detail,
    };
    shared.env.events.emit(Event { at: now_ms(), body });
}

/// The files of a search.
struct Prepared {
    /// Holds the link and the configuration.
    input: PathBuf,
    /// Comskip writes here.
    output: PathBuf,
    link: PathBuf,
    config: PathBuf,
    /// The recording itself.
    file: PathBuf,
}

/// Runs comskip. Returns what it found.
async fn search(
    shared: &Arc<RecorderState>,
    settings: &AfterSettings,
    recording: &Recording,
) -> Result<Vec<Commercial>, StepFault> {
    let (Some(parts), Some(file)) = (shared.parts.get(), &recording.file) else {
        return Err(StepFault::Gone);
    };
    let (folder, path, of) = (parts.folder.clone(), file.path.clone(), settings.clone());
    let prepared = blocking(move || prepare(&folder, &path, &of)).await?;
    let length_ms = file.ended_at.unwrap_or(file.started_at).saturating_sub(file.started_at);
    let length = Duration::from_millis(u64::try_from(length_ms).unwrap_or(0));
    let job = FileJob {
        command: vec![
            settings.comskip.clone(),
            format!("--ini={}", prepared.config.display()),
            format!("--output={}", prepared.output.display()),
            "--quiet".to_owned(),
            prepared.link.display().to_string(),
        ],
        hidden: Vec::new(),
        readable: vec![prepared.input.clone(), prepared.file.clone()],
        writable: vec![prepared.output.clone()],
        file_bytes_max: OUTPUT_BYTES_MAX,
        time_max: TIME_MIN + length * LENGTHS,
    };
    let end = run(shared, job).await?;
    let output = prepared.output;
    match end.code {
        Some(0) => blocking(move || found(&output, length)).await,
        Some(1) => Ok(Vec::new()),
        _ => Err(StepFault::Failed(format!("comskip: {}", end.message))),
    }
}

fn prepare(folder: &RecordingsFolder, path: &str, settings: &AfterSettings) -> Result<Prepared, StepFault> {
    let real =
        folder.real_path(path)?.ok_or_else(|| StepFault::Failed("the file does not exist".to_owned()))?;
    // The name of a link must not begin a relative path.
    let scratch = std::path::absolute(settings.scratch.join("comskip"))?;
    match fs::remove_dir_all(&scratch) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let (input, output) = (scratch.join("in"), scratch.join("out"));
    for folder in [&input, &output] {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let link = input.join(format!("{LINK}.{}", extension(path)));
    symlink(&real, &link)?;
    let text = match File::open(&settings.comskip_config) {
        Ok(file) => read_text(file, CONFIG_BYTES_MAX as u64)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    let checked = ComskipConfig::parse(&text)
        .map_err(|error| StepFault::Failed(format!("the configuration of comskip is not valid: {error}")))?;
    let config = input.join("comskip.ini");
    fs::write(&config, checked.for_program())?;
    Ok(Prepared { input, output, link, config, file: real })
}

/// Reads what comskip has written.
fn found(output: &Path, length: Duration) -> Result<Vec<Commercial>, StepFault> {
    let read = |extension: &str| {
        // Whatever a damaged recording makes of comskip: no link is followed.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(output.join(format!("{LINK}.{extension}")), flags, Mode::empty());
        let file = File::from(opened.map_err(io::Error::from)?);
        match file.metadata()?.is_file() {
            true => read_text(file, OUTPUT_BYTES_MAX),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    };
    let edl = read("edl").map_err(|error| StepFault::Failed(format!("comskip wrote no list: {error}")))?;
    // The length by the clock of the wall is the next best.
    let measured = read("txt").ok().and_then(|it| length_of_report(&it));
    let length = measured.unwrap_or_else(|| u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
    Ok(commercials_of_edl(&edl, length))
}

fn read_text(file: File, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
