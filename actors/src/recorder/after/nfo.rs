//! The description of a recording beside its file.

use std::sync::Arc;

use domain::ids::RecordingId;
use domain::recording::WorkState;
use tracing::warn;

use super::step::{StepFault, blocking, stem};
use crate::recorder::state::RecorderState;

/// Writes the description, in place of an earlier one.
///
/// # Errors
/// The work has to wait.
pub(super) async fn describe(shared: &Arc<RecorderState>, id: RecordingId) -> Result<(), String> {
    let (Some(parts), Some(recording)) = (shared.parts.get(), shared.recording(id)) else { return Ok(()) };
    let (Some(file), Some(work)) = (&recording.file, &recording.after.nfo) else { return Ok(()) };
    let (folder, path, before) = (parts.folder.clone(), file.path.clone(), work.path.clone());
    let (text, requested_at) = (recording.nfo(), work.requested_at);
    let written = blocking(move || {
        if let Some(before) = before {
            folder.remove(&before)?;
        }
        folder.write_new(stem(&path), "nfo", text.as_bytes())
    });
    let (path, reason) = match written.await {
        Ok(path) => (Some(path), None),
        Err(StepFault::Later(reason)) => return Err(reason),
        Err(StepFault::Failed(reason)) => (None, Some(reason)),
        Err(StepFault::Stopping | StepFault::Gone) => return Ok(()),
    };
    if let Some(reason) = &reason {
        warn!(recording.id = %id, "failed to describe a recording: {reason}");
    }
    let noted = path.clone();
    let changed = shared.change_record(id, move |it| {
        let Some(work) = it.after.nfo.as_mut() else { return };
        // A change of the programme in between is described next.
        if work.requested_at == requested_at {
            work.state = if reason.is_some() { WorkState::Failed } else { WorkState::Completed };
        }
        (work.path, work.reason) = (noted, reason);
    });
    if let (None, Some(path)) = (changed.await?, path) {
        shared.remove_beside(id, path).await;
    }
    Ok(())
}
