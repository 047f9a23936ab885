//! The clips of all reasons: made by ffmpeg when they are first needed, and kept in the data folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use actors::Programs;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use media::{Clip, find_program, spawn_blocking};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::picture::bitmap;
use super::reason::ScreenReason;

/// After a failure, another attempt to make a clip is made after this time.
const RETRY_AFTER: Duration = Duration::from_secs(600);
/// Maximum size of a clip in bytes.
const CLIP_BYTES_MAX: u64 = 4 << 20;

/// The encoders of picture and sound, best first: not every ffmpeg has the first one.
const ENCODERS: [&[&str]; 2] = [
    &[
        "-c:v",
        "libx264",
        "-preset",
        "veryfast",
        "-tune",
        "stillimage",
        "-bf",
        "0",
        "-c:a",
        "aac",
        "-b:a",
        "64k",
    ],
    &["-c:v", "mpeg2video", "-b:v", "1M", "-c:a", "mp2", "-b:a", "64k"],
];

/// The clips of all reasons.
pub(crate) struct Clips {
    folder: PathBuf,
    programs: Programs,
    /// Held while a clip is made, so that each is made once. At most one entry for each reason.
    made: Mutex<HashMap<&'static str, Made>>,
}

enum Made {
    Clip(Clip),
    FailedAt(Instant),
}

impl Clips {
    /// `folder` is created when it is needed.
    pub(crate) fn new(folder: PathBuf, programs: Programs) -> Self {
        Self { folder, programs, made: Mutex::default() }
    }

    /// Returns the clip of a reason. `None` if it cannot be made.
    pub(super) async fn get(&self, reason: ScreenReason) -> Option<Clip> {
        let mut made = self.made.lock().await;
        match made.get(reason.name()) {
            Some(Made::Clip(clip)) => return Some(clip.clone()),
            Some(Made::FailedAt(at)) if at.elapsed() < RETRY_AFTER => return None,
            Some(Made::FailedAt(_)) | None => {}
        }
        let clip = self.read_or_make(reason).await;
        let entry = match &clip {
            Ok(clip) => Made::Clip(clip.clone()),
            Err(error) => {
                warn!("failed to make the clip with a reason, so players get the error: {error}");
                Made::FailedAt(Instant::now())
            }
        };
        made.insert(reason.name(), entry);
        clip.ok()
    }

    async fn read_or_make(&self, reason: ScreenReason) -> Result<Clip, String> {
        let path = self.folder.join(file_name(reason));
        let kept = {
            let path = path.clone();
            spawn_blocking(move || read(&path)).await.map_err(|it| it.to_string())?
        };
        if let Ok(clip) = kept {
            return Ok(clip);
        }
        find_program("ffmpeg").ok_or("ffmpeg is not installed")?;
        let mut last_error = String::new();
        for encoders in ENCODERS {
            let made = self.programs.output_of(command(reason, encoders)).await;
            match made.and_then(|bytes| Ok((parse(bytes.clone())?, bytes))) {
                Ok((clip, bytes)) => {
                    let folder = self.folder.clone();
                    let saved = spawn_blocking(move || save(&folder, &path, &bytes)).await;
                    if let Ok(Err(error)) = saved {
                        debug!("failed to keep a clip: {error}");
                    }
                    return Ok(clip);
                }
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }
}

fn parse(bytes: Bytes) -> Result<Clip, String> {
    Clip::parse(bytes).map_err(|it| it.to_string())
}

/// Returns the command that makes a clip of four seconds. The picture is in the command itself: programs cannot read the
/// data folder.
fn command(reason: ScreenReason, encoders: &[&str]) -> Vec<String> {
    let picture = STANDARD.encode(bitmap(&reason.lines()));
    let picture = format!("data:image/x-portable-bitmap;base64,{picture}");
    let filter = "[0:v]loop=loop=-1:size=1,fps=25,scale=1280:720:flags=neighbor,format=yuv420p[v]";
    let silence = "anullsrc=channel_layout=stereo:sample_rate=48000";
    let before =
        ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "warning", "-f", "pbm_pipe", "-i", &picture];
    let input = ["-f", "lavfi", "-i", silence, "-filter_complex", filter, "-map", "[v]", "-map", "1:a"];
    let length = ["-t", "4", "-g", "25"];
    let output = ["-f", "mpegts", "pipe:1"];
    let all = before.iter().chain(&input).chain(&length).chain(encoders).chain(&output);
    all.map(|it| (*it).to_owned()).collect()
}

/// Returns the name of the file of a clip. It changes with the text and the command.
fn file_name(reason: ScreenReason) -> String {
    let mut digest = Sha256::new();
    for part in ENCODERS.iter().flat_map(|it| command(reason, it)) {
        digest.update(part);
    }
    let tag = HEXLOWER.encode(&digest.finalize()[..6]);
    format!("{}-{tag}.ts", reason.name())
}

/// Reads a clip. Blocks.
fn read(path: &Path) -> Result<Clip, String> {
    let size = fs::metadata(path).map_err(|it| it.to_string())?.len();
    if size > CLIP_BYTES_MAX {
        return Err("the file is too large".to_owned());
    }
    parse(fs::read(path).map_err(|it| it.to_string())?.into())
}

/// Writes a clip as a whole, and removes files of earlier versions. Blocks.
fn save(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let current = ScreenReason::ALL.map(file_name);
    for entry in fs::read_dir(folder)?.flatten() {
        if !current.iter().any(|it| entry.file_name() == it.as_str()) {
            fs::remove_file(entry.path())?;
        }
    }
    let unfinished = tempfile::NamedTempFile::new_in(folder)?;
    fs::write(unfinished.path(), bytes)?;
    unfinished.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::picture::LINE_CHARS_MAX;

    #[test]
    fn every_reason_has_a_file_of_its_own_and_a_text_that_fits() {
        let mut names: Vec<String> = ScreenReason::ALL.map(file_name).into();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), ScreenReason::ALL.len());
        for reason in ScreenReason::ALL {
            assert!(
                reason.lines().iter().all(|it| it.is_ascii() && it.len() <= LINE_CHARS_MAX),
                "{reason:?}"
            );
            // The kernel limits the length of one argument to 128 KiB.
            assert!(command(reason, ENCODERS[0]).iter().all(|it| it.len() < 64 << 10));
        }
    }

    #[test]
    fn a_kept_clip_replaces_files_of_earlier_versions_and_a_broken_one_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("busy-000000000000.ts");
        fs::write(&old, "old").unwrap();
        let path = folder.path().join(file_name(ScreenReason::Busy));
        save(folder.path(), &path, b"no clip").unwrap();
        assert!(!old.exists() && path.exists());
        assert!(read(&path).is_err());
        assert!(read(&old).is_err());
    }
}
