//! One step of the work on a file: its begin, its result and its failure in the record.

use std::time::Duration;

use domain::event::{ChannelRef, RecordingRef};
use domain::ids::RecordingId;
use domain::recording::{AfterStep, Recording, WorkState};
use media::source::{FileJob, FileJobEnd, run_job};
use media::spawn_blocking;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use crate::recorder::events::{channel_ref, recording_ref};
use crate::recorder::state::RecorderState;
use crate::recording_files::FolderError;

/// How often the work looks whether its recording was deleted.
const LOOK_PERIOD: Duration = Duration::from_secs(2);
/// Reason of work that was begun too often.
const TOO_OFTEN: &str = "the gateway ended several times while it ran";

/// Why work ended without a result.
#[derive(Debug)]
pub(super) enum StepFault {
    /// It failed for good.
    Failed(String),
    /// It has to wait, because the folder of recordings cannot be used now.
    Later(String),
    /// The gateway stops.
    Stopping,
    /// The recording was deleted.
    Gone,
}

impl From<FolderError> for StepFault {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::NotMarked => Self::Later(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<std::io::Error> for StepFault {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl RecorderState {
    /// Notes that a program begins this work. `None` if nobody wants it any more; otherwise the record, and whether the work
    /// may be done.
    pub(super) async fn begin(
        &self,
        id: RecordingId,
        step: AfterStep,
    ) -> Result<Option<(Recording, bool)>, String> {
        let begun = self.change_record(id, move |it| it.after.begin(step)).await?;
        Ok(begun.and_then(|(recording, may)| Some((recording, may?))))
    }

    /// Does work that was begun, until the recording is deleted or the gateway stops.
    pub(super) async fn attempt<R>(
        &self,
        id: RecordingId,
        may: bool,
        work: impl Future<Output = Result<R, StepFault>>,
    ) -> Result<R, StepFault> {
        if !may {
            return Err(StepFault::Failed(TOO_OFTEN.to_owned()));
        }
        tokio::select! {
            done = work => done,
            () = self.deleted(id) => Err(StepFault::Gone),
            () = self.stop.cancelled() => Err(StepFault::Stopping),
        }
    }

    /// Notes why work ended without a result, and removes what there is of one. Returns the record and the reason if the work
    /// has failed for good.
    ///
    /// # Errors
    /// The work has to wait.
    pub(super) async fn note_fault(
        &self,
        id: RecordingId,
        step: AfterStep,
        fault: StepFault,
    ) -> Result<Option<(Recording, String)>, String> {
        let target = self.recording(id).and_then(|it| it.after.clone().target(step));
        if let Some(target) = target {
            self.remove_beside(id, target).await;
        }
        let (reason, waits) = match fault {
            StepFault::Gone => return Ok(None),
            StepFault::Stopping => (None, Ok(None)),
            StepFault::Later(reason) => (None, Err(reason)),
            StepFault::Failed(reason) => (Some(reason), Ok(None)),
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
    pub(super) async fn reserve(
        &self,
        id: RecordingId,
        step: AfterStep,
        stem: String,
        extension: String,
    ) -> Result<String, StepFault> {
        let Some(parts) = self.parts.get() else { return Err(StepFault::Gone) };
        let folder = parts.folder.clone();
        let target = blocking(move || folder.create(&stem, &extension).map(|it| it.1)).await?;
        let noted = target.clone();
        match self.change_record(id, move |it| it.after.set_target(step, noted)).await {
            Ok(Some(_)) => Ok(target),
            changed => {
                self.remove_beside(id, target).await;
                Err(changed.map_or_else(StepFault::Later, |_| StepFault::Gone))
            }
        }
    }

    /// Waits until a recording is deleted.
    pub(super) async fn deleted(&self, id: RecordingId) {
        while self.recording(id).is_some() {
            sleep(LOOK_PERIOD).await;
        }
    }

    /// Removes a file of a recording. One that cannot be removed is logged.
    pub(super) async fn remove_beside(&self, id: RecordingId, path: String) {
        let Some(parts) = self.parts.get() else { return };
        let folder = parts.folder.clone();
        if let Err(cause) = blocking(move || folder.remove(&path)).await {
            warn!(recording.id = %id, "failed to remove a file beside a recording: {cause:?}");
        }
    }

    pub(super) fn channel_ref(&self, recording: &Recording) -> ChannelRef {
        channel_ref(recording, self.parts.get().map(|it| &it.models))
    }

    pub(super) fn recording_ref(&self, recording: &Recording) -> RecordingRef {
        let parts = self.parts.get();
        recording_ref(recording, parts.map(|it| &it.models), parts.map(|it| &it.folder))
    }
}

/// Returns the path of a file without its extension.
pub(super) fn stem(path: &str) -> &str {
    let name_at = path.rfind('/').map_or(0, |it| it + 1);
    path[name_at..].rfind('.').map_or(path, |it| &path[..name_at + it])
}

/// Returns the extension of a path; empty if it has none.
pub(super) fn extension(path: &str) -> &str {
    path[stem(path).len()..].trim_start_matches('.')
}

/// Runs a program, which cannot read other recordings. Dropping the future ends it.
pub(super) async fn run(shared: &RecorderState, job: FileJob) -> Result<FileJobEnd, StepFault> {
    let folder = shared.parts.get().and_then(|it| std::path::absolute(it.folder.root()).ok());
    let job = FileJob { hidden: folder.into_iter().collect(), ..job };
    let upstream = shared.env.upstream();
    let (launcher, closer) = (upstream.launcher, upstream.closer);
    // Processes are started on the runtime of packets, which handles their signals.
    let running = shared.env.packets.spawn(async move { run_job(job, &launcher, closer).await });
    let ended = AbortOnDropHandle::new(running).await;
    ended
        .map_err(|_| StepFault::Failed("a bug: the run of a program panicked".to_owned()))?
        .map_err(StepFault::Failed)
}

/// Runs a function on a thread that may block.
pub(super) async fn blocking<R: Send + 'static, E: Into<StepFault> + Send + 'static>(
    work: impl FnOnce() -> Result<R, E> + Send + 'static,
) -> Result<R, StepFault> {
    let done = spawn_blocking(work).await;
    done.map_err(|_| StepFault::Failed("a thread for files failed".to_owned()))?.map_err(Into::into)
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
