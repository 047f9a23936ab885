//! The work on the files of recordings after their end, one recording at a time.
//!
//! What is to be done is in the records, so that a restart neither forgets nor repeats it. Programs that read a file run
//! confined: they can read this file only, and write to a folder of their own. In a cluster, each node does the work on its
//! files.

mod artwork;
mod comskip;
mod cut;
mod ffmpeg;
mod nfo;
mod passing;
mod remux;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::event::RecordingRef;
use domain::ids::RecordingId;
use domain::recording::{AfterStep, RecordedFile, Recording, WorkState};
use media::source::{FileJob, FileJobEnd, run_job};
use storage::Record;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

pub use self::artwork::{Artwork, FindArtwork};
use super::folder::FolderError;
use super::run::recording_ref;
use super::{Shared, any_changed};
use crate::writer::role_changed;

/// Pause after work that has to wait, such as for a disk that is not mounted.
const PAUSE: Duration = Duration::from_secs(30);
/// How often the work looks whether its recording was deleted.
const LOOK_PERIOD: Duration = Duration::from_secs(2);
/// Reason of work that was begun too often.
const TOO_OFTEN: &str = "the gateway ended several times while it ran";

/// The settings of the work after recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfterSettings {
    /// The program comskip: a name to find in `PATH`, or an absolute path.
    pub comskip: String,
    /// The file with its configuration, which need not exist.
    pub comskip_config: PathBuf,
    /// A folder for temporary files, which is created when it is needed. Files in it are removed.
    pub scratch: PathBuf,
}

/// Why work ended without a result.
#[derive(Debug)]
enum Fault {
    /// It failed for good.
    Failed(String),
    /// It has to wait, because the folder of recordings cannot be used now.
    Later(String),
    /// The gateway stops.
    Stopping,
    /// The recording was deleted.
    Gone,
}

impl From<FolderError> for Fault {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::NotMarked => Self::Later(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Shared {
    /// Does the work of all recordings. Returns when the gateway stops.
    pub(super) async fn follow_work(self: Arc<Self>) {
        let (Some(parts), Some(settings)) = (self.parts.get(), self.after.get()) else { return };
        let (mut changes, mut role) = (parts.models.store.changes(), parts.models.store.log_status());
        let folder = parts.folder.clone();
        // Parts of copies that a process left behind that was killed. Without the folder, they go with the next copy.
        let _ = blocking(move || folder.remove_parts()).await;
        while !self.stop.is_cancelled() {
            let writes = parts.models.store.writes_shared();
            let done = match self.next_work(writes) {
                Some((AfterStep::RemoveObsolete, id)) => remux::remove_obsolete(&self, id).await,
                Some((AfterStep::Comskip, id)) => comskip::find_commercials(&self, settings, id).await,
                Some((AfterStep::Remux, id)) => remux::convert(&self, settings, id).await,
                Some((AfterStep::Cut, id)) => cut::copy(&self, id).await,
                Some((AfterStep::Nfo, id)) => nfo::describe(&self, id).await,
                Some((AfterStep::Artwork, id)) => artwork::illustrate(&self, id).await,
                None => {
                    tokio::select! {
                        () = any_changed(&mut changes, &[Recording::COLLECTION]) => {}
                        () = role_changed(&mut role, writes) => {}
                        () = self.stop.cancelled() => return,
                    }
                    continue;
                }
            };
            if let Err(reason) = done {
                warn!("the work after recordings waits: {reason}");
                tokio::select! {
                    () = sleep(PAUSE) => {}
                    () = self.stop.cancelled() => return,
                }
            }
        }
    }

    /// Returns the recording whose work was requested first, of those with a file on this node.
    fn next_work(&self, writes: bool) -> Option<(AfterStep, RecordingId)> {
        let parts = self.parts.get()?;
        let recordings = parts.models.recordings.load();
        // A file without a node is from before the cluster, and that of the node that writes.
        let has = |it: &RecordedFile| parts.folder.has(it) && (writes || it.node.is_some());
        let is_here = |it: &&Arc<Recording>| it.file.as_ref().map_or(writes, has);
        let open = recordings.iter().filter(is_here).filter_map(|it| Some((it.next_step()?, it.id)));
        open.min().map(|((_, step), id)| (step, id))
    }

    fn recording(&self, id: RecordingId) -> Option<Arc<Recording>> {
        self.parts.get()?.models.recordings.load().get(id.0).cloned()
    }

    /// Notes that a program begins this work. `None` if nobody wants it any more; otherwise the record, and whether the work
    /// may be done.
    async fn begin(&self, id: RecordingId, step: AfterStep) -> Result<Option<(Recording, bool)>, String> {
        let begun = self.change_record(id, move |it| it.after.begin(step)).await?;
        Ok(begun.and_then(|(recording, may)| Some((recording, may?))))
    }

    /// Does work that was begun, until the recording is deleted or the gateway stops.
    async fn attempt<R>(
        &self,
        id: RecordingId,
        may: bool,
        work: impl Future<Output = Result<R, Fault>>,
    ) -> Result<R, Fault> {
        if !may {
            return Err(Fault::Failed(TOO_OFTEN.to_owned()));
        }
        tokio::select! {
            done = work => done,
            () = self.deleted(id) => Err(Fault::Gone),
            () = self.stop.cancelled() => Err(Fault::Stopping),
        }
    }

    /// Notes why work ended without a result, and removes what there is of one. Returns the record and the reason if the work
    /// has failed for good.
    ///
    /// # Errors
    /// The work has to wait.
    async fn note_fault(
        &self,
        id: RecordingId,
        step: AfterStep,
        fault: Fault,
    ) -> Result<Option<(Recording, String)>, String> {
        let target = self.recording(id).and_then(|it| it.after.clone().target(step));
        if let Some(target) = target {
            self.remove_beside(id, target).await;
        }
        let (reason, waits) = match fault {
            Fault::Gone => return Ok(None),
            Fault::Stopping => (None, Ok(None)),
            Fault::Later(reason) => (None, Err(reason)),
            Fault::Failed(reason) => (Some(reason), Ok(None)),
        };
        let Some(reason) = reason else {
            self.change_record(id, move |it| it.after.requeue(step)).await?;
            return waits;
        };
        let noted = reason.clone();
        let failed =
            self.change_record(id, move |it| it.after.end(step, WorkState::Failed, Some(noted))).await?;
        Ok(failed.map(|(recording, ())| (recording, reason)))
    }

    /// Creates the file for the result of work, and notes its path before anything is in it.
    async fn reserve(
        &self,
        id: RecordingId,
        step: AfterStep,
        stem: String,
        extension: String,
    ) -> Result<String, Fault> {
        let Some(parts) = self.parts.get() else { return Err(Fault::Gone) };
        let folder = parts.folder.clone();
        let target = blocking(move || folder.create(&stem, &extension).map(|it| it.1)).await?;
        let noted = target.clone();
        match self.change_record(id, move |it| it.after.set_target(step, noted)).await {
            Ok(Some(_)) => Ok(target),
            changed => {
                self.remove_beside(id, target).await;
                Err(changed.map_or_else(Fault::Later, |_| Fault::Gone))
            }
        }
    }

    /// Waits until a recording is deleted.
    async fn deleted(&self, id: RecordingId) {
        while self.recording(id).is_some() {
            sleep(LOOK_PERIOD).await;
        }
    }

    /// Removes a file of a recording. One that cannot be removed is logged.
    async fn remove_beside(&self, id: RecordingId, path: String) {
        let Some(parts) = self.parts.get() else { return };
        let folder = parts.folder.clone();
        if let Err(cause) = blocking(move || folder.remove(&path)).await {
            warn!(recording.id = %id, "failed to remove a file beside a recording: {cause:?}");
        }
    }

    fn recording_ref(&self, recording: &Recording) -> RecordingRef {
        recording_ref(recording, self.parts.get().map(|it| &it.folder))
    }
}

/// Returns the path of a file without its extension.
fn stem(path: &str) -> &str {
    let name_at = path.rfind('/').map_or(0, |it| it + 1);
    path[name_at..].rfind('.').map_or(path, |it| &path[..name_at + it])
}

/// Returns the extension of a path; empty if it has none.
fn extension(path: &str) -> &str {
    path[stem(path).len()..].trim_start_matches('.')
}

/// Runs a program, which cannot read other recordings. Dropping the future ends it.
async fn run(shared: &Shared, job: FileJob) -> Result<FileJobEnd, Fault> {
    let folder = shared.parts.get().and_then(|it| std::path::absolute(it.folder.root()).ok());
    let job = FileJob { hidden: folder.into_iter().collect(), ..job };
    let upstream = shared.env.upstream();
    let (launcher, closer) = (upstream.launcher, upstream.closer);
    // Processes are started on the runtime of packets, which handles their signals.
    let running = shared.env.packets.spawn(async move { run_job(job, &launcher, closer).await });
    let ended = AbortOnDropHandle::new(running).await;
    ended
        .map_err(|_| Fault::Failed("a bug: the run of a program panicked".to_owned()))?
        .map_err(Fault::Failed)
}

/// Runs a function on a thread that may block.
async fn blocking<R: Send + 'static, E: Into<Fault> + Send + 'static>(
    work: impl FnOnce() -> Result<R, E> + Send + 'static,
) -> Result<R, Fault> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Fault::Failed("a thread for files failed".to_owned()))?.map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_a_file_has_an_extension() {
        for (path, expected) in [
            ("a.b/c.ts", ("a.b/c", "ts")),
            ("a.b/c", ("a.b/c", "")),
            ("Show 1.5 (2).mkv", ("Show 1.5 (2)", "mkv")),
            ("", ("", "")),
        ] {
            assert_eq!((stem(path), extension(path)), expected, "{path}");
        }
    }
}
