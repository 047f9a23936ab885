//! The copy of a recording without its commercials, which ffmpeg makes of the streams as they are.
//!
//! Each part between commercials is copied to a file of its own, and these are joined: a part of its own begins with the
//! sound that belongs to its first picture. The copy is offered when it has the same streams and the length of the parts.
//! The recording is only read.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::ids::RecordingId;
use domain::recording::retention::DISK_BYTES_RESERVED;
use domain::recording::{
    AfterStep, CutFile, FILE_EXTENSION, KeptPart, ProbedFile, Recording, RemuxFormat, WorkState, kept_parts,
};
use media::source::FileJob;
use tracing::{info, warn};

use super::ffmpeg::{
    PROBE, bytes_max, ffmpeg, file_address, probe, real_file, report, run_ffmpeg, synced_length,
};
use super::step::{StepFault, blocking, extension, stem};
use crate::recorder::state::{RecorderParts, RecorderState};
use crate::recording_files::folder::PARTS;

/// Time for each run of ffmpeg, besides the length of the recording.
const TIME_MIN: Duration = Duration::from_secs(10 * 60);
/// End of the name of the copy.
const CUT: &str = " - cut";

/// Picture, sound and subtitles as they are. The chapters of the recording are not those of the copy.
const COPY: [&str; 10] =
    ["-map", "0:v?", "-map", "0:a?", "-map", "0:s?", "-map_chapters", "-1", "-c", "copy"];

/// Makes the copy and notes the result. Without commercials, removes an earlier copy.
///
/// # Errors
/// The work has to wait.
pub(super) async fn copy(shared: &Arc<RecorderState>, id: RecordingId) -> Result<(), String> {
    let Some(parts) = shared.parts.get() else { return Ok(()) };
    let Some((recording, may)) = shared.begin(id, AfterStep::Cut).await? else { return Ok(()) };
    let made = shared.attempt(id, may, make(shared, parts, &recording)).await;
    let folder = parts.folder.clone();
    if let Err(cause) = blocking(move || folder.remove_parts()).await {
        warn!(recording.id = %id, "failed to remove the parts of a copy: {cause:?}");
    }
    let copy = match made {
        Ok(copy) => copy,
        Err(fault) => {
            if let Some((_, reason)) = shared.note_fault(id, AfterStep::Cut, fault).await? {
                warn!(recording.id = %id, "failed to copy a recording without its commercials: {reason}");
            }
            return Ok(());
        }
    };
    let path = copy.as_ref().map(|it| it.path.clone());
    let changed = shared.change_record(id, move |it| {
        it.after.end(AfterStep::Cut, WorkState::Completed, None);
        match (copy, it.after.cut.as_mut()) {
            (Some(copy), Some(work)) => work.file = Some(copy),
            // Nothing is to be cut any more.
            _ => it.after.cut = None,
        }
    });
    match (changed.await?, path) {
        (Some(_), Some(_)) => info!(recording.id = %id, "a recording was copied without its commercials"),
        (None, Some(path)) => shared.remove_beside(id, path).await,
        (_, None) => {}
    }
    Ok(())
}

/// Makes the copy. `None` if there are no commercials.
async fn make(
    shared: &Arc<RecorderState>,
    parts: &RecorderParts,
    recording: &Recording,
) -> Result<Option<CutFile>, StepFault> {
    let (Some(file), Some(work)) = (&recording.file, &recording.after.cut) else {
        return Err(StepFault::Gone);
    };
    remove_earlier(
        shared,
        parts,
        recording.id,
        [work.target.clone(), work.file.as_ref().map(|it| it.path.clone())],
    )
    .await?;
    let commercials = recording.after.comskip.as_ref().map(|it| it.commercials.clone()).unwrap_or_default();
    if commercials.is_empty() {
        return Ok(None);
    }
    let (source, bytes) = real_file(&parts.folder, &file.path).await?;
    let before = probe(shared, source.clone()).await?;
    let wanted = kept_parts(&commercials, before.length);
    if wanted.is_empty() {
        return Err(StepFault::Failed("nothing is left without the commercials".to_owned()));
    }
    check_room(parts, &wanted, before.length, bytes).await?;
    let cut = Cut {
        shared,
        parts,
        source,
        bytes,
        format: Format::from_extension(extension(&file.path)),
        time_max: TIME_MIN + Duration::from_millis(before.length),
    };
    let mut kept = Vec::new();
    let mut names = Vec::new();
    for part in wanted {
        let part = cut.begin_at_key_frame(part, &before).await?;
        names.push(cut.copy_part(part, names.len()).await?);
        kept.push(part);
    }
    let (stem, extension) = (format!("{}{CUT}", stem(&file.path)), extension(&file.path).to_owned());
    let target = shared.reserve(recording.id, AfterStep::Cut, stem, extension).await?;
    let output = cut.join(&names, &target).await?;
    let after = probe(shared, output).await?;
    before.check_copy(&kept, &after).map_err(StepFault::Failed)?;
    let bytes = synced_length(&parts.folder, &target).await?;
    Ok(Some(CutFile { path: target, bytes }))
}

/// Removes earlier copies: the recording has other commercials now.
async fn remove_earlier(
    shared: &Arc<RecorderState>,
    parts: &RecorderParts,
    id: RecordingId,
    paths: [Option<String>; 2],
) -> Result<(), StepFault> {
    let folder = parts.folder.clone();
    let removed = blocking(move || {
        folder.remove_parts()?;
        for path in paths.into_iter().flatten() {
            folder.remove(&path)?;
        }
        Ok::<_, StepFault>(())
    });
    removed.await?;
    let noted = shared.change_record(id, |it| {
        if let Some(work) = it.after.cut.as_mut() {
            (work.target, work.file) = (None, None);
        }
    });
    noted.await.map(|_| ()).map_err(StepFault::Later)
}

/// Checks that the disk has room for the parts and the copy, so that no recording ends because of them.
async fn check_room(
    parts: &RecorderParts,
    wanted: &[KeptPart],
    length: u64,
    bytes: u64,
) -> Result<(), StepFault> {
    let folder = parts.folder.clone();
    let available = blocking(move || Ok::<_, StepFault>(folder.available())).await?;
    let kept: u64 = wanted.iter().map(|it| it.length()).sum();
    let of_copy = u128::from(bytes) * u128::from(kept) / u128::from(length.max(1));
    let needed = 2 * of_copy + u128::from(DISK_BYTES_RESERVED);
    match available {
        Some(available) if u128::from(available) < needed => {
            Err(StepFault::Failed("the disk has too little room for a copy".to_owned()))
        }
        _ => Ok(()),
    }
}

/// The container of the recording, which the copy has too.
#[derive(Clone, Copy)]
enum Format {
    TransportStream,
    Other(RemuxFormat),
}

impl Format {
    fn from_extension(extension: &str) -> Self {
        let other = RemuxFormat::NAMES.iter().find(|it| it.0 == extension);
        other.map_or(Self::TransportStream, |it| Self::Other(it.1))
    }

    fn muxer(self) -> &'static str {
        match self {
            Self::TransportStream => "mpegts",
            Self::Other(format) => format.muxer(),
        }
    }

    /// Returns muxer and extension of parts. The length of a part is that of its packets: MP4 could hide some.
    fn for_parts(self) -> (&'static str, &'static str) {
        match self {
            Self::TransportStream => ("mpegts", FILE_EXTENSION),
            Self::Other(_) => ("matroska", "mkv"),
        }
    }
}

/// A copy that is being made.
struct Cut<'a> {
    shared: &'a Arc<RecorderState>,
    parts: &'a RecorderParts,
    source: PathBuf,
    /// Size of the source.
    bytes: u64,
    format: Format,
    /// Maximum time of each run.
    time_max: Duration,
}

impl Cut<'_> {
    async fn begin_at_key_frame(&self, part: KeptPart, file: &ProbedFile) -> Result<KeptPart, StepFault> {
        if part.start == 0 {
            return Ok(part);
        }
        let entries = ["-show_entries", "packet=pts_time,dts_time,flags", "-of", "csv=p=0"];
        let mut options: Vec<String> = ["-select_streams", "v:0"].map(str::to_owned).to_vec();
        options.extend(["-read_intervals".to_owned(), part.key_frame_interval(file.start)]);
        options.extend(entries.map(str::to_owned));
        let report = report(self.shared, self.source.clone(), options).await?;
        let is_transport_stream = matches!(self.format, Format::TransportStream);
        Ok(part.begin_at_key_frame(&String::from_utf8_lossy(&report), file.start, is_transport_stream))
    }

    /// Copies a part to a file of its own. Returns its name.
    async fn copy_part(&self, part: KeptPart, n: usize) -> Result<String, StepFault> {
        let (muxer, extension) = self.format.for_parts();
        let folder = self.parts.folder.clone();
        let stem = format!("{PARTS}/part{n}");
        let path = blocking(move || folder.create(&stem, extension).map(|it| it.1)).await?;
        let (output, _) = real_file(&self.parts.folder, &path).await?;
        let seconds = |it: u64| format!("{}.{:03}", it / 1000, it % 1000);
        let mut command = ffmpeg();
        command.extend(PROBE.map(str::to_owned));
        if part.start > 0 {
            command.extend(["-ss".to_owned(), seconds(part.start)]);
        }
        command.extend(["-i".to_owned(), file_address(&self.source)]);
        command.extend(["-t".to_owned(), seconds(part.length())]);
        command.extend(COPY.map(str::to_owned));
        command.extend(["-f".to_owned(), muxer.to_owned(), file_address(&output)]);
        let job = self.job(command, vec![self.source.clone()], output);
        run_ffmpeg(self.shared, job).await?;
        Ok(path.rsplit('/').next().unwrap_or_default().to_owned())
    }

    /// Joins the parts to one file. Returns its absolute path.
    async fn join(&self, names: &[String], target: &str) -> Result<PathBuf, StepFault> {
        let mut list = "ffconcat version 1.0\n".to_owned();
        for name in names {
            list.push_str(&format!("file {name}\n"));
        }
        let folder = self.parts.folder.clone();
        // Names are those of the folder of the list, so that the path of the folder needs no quotes.
        let list = blocking(move || folder.write_new(&format!("{PARTS}/list"), "txt", list.as_bytes()));
        let (list, _) = real_file(&self.parts.folder, &list.await?).await?;
        let (output, _) = real_file(&self.parts.folder, target).await?;
        let mut command = ffmpeg();
        command.extend(["-f", "concat", "-i"].map(str::to_owned));
        command.push(file_address(&list));
        command.extend(COPY.map(str::to_owned));
        if matches!(self.format, Format::Other(RemuxFormat::Mp4)) {
            command.extend(["-movflags", "+faststart"].map(str::to_owned));
        }
        command.extend(["-f".to_owned(), self.format.muxer().to_owned(), file_address(&output)]);
        let folder = list.parent().map(Path::to_owned).unwrap_or_default();
        run_ffmpeg(self.shared, self.job(command, vec![folder], output.clone())).await?;
        Ok(output)
    }

    fn job(&self, command: Vec<String>, readable: Vec<PathBuf>, output: PathBuf) -> FileJob {
        FileJob {
            command,
            hidden: Vec::new(),
            readable,
            writable: vec![output],
            file_bytes_max: bytes_max(self.bytes),
            time_max: self.time_max,
        }
    }
}
