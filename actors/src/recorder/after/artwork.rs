//! The picture of a recording beside its file, under the name that media servers look for.

use std::sync::Arc;

use domain::ids::RecordingId;
use domain::recording::{ArtworkOrigin, WorkState};
use tracing::warn;

use super::step::{StepFault, blocking, stem};
use crate::recorder::state::RecorderState;

/// Writes the picture, in place of an earlier one.
///
/// # Errors
/// The work has to wait.
pub(super) async fn illustrate(shared: &Arc<RecorderState>, id: RecordingId) -> Result<(), String> {
    let (Some(parts), Some(recording)) = (shared.parts.get(), shared.recording(id)) else { return Ok(()) };
    let (Some(file), Some(work)) = (&recording.file, &recording.after.artwork) else { return Ok(()) };
    let found = tokio::select! {
        found = async { shared.artwork.wait().await.find(Arc::clone(&recording)).await } => found,
        () = shared.deleted(id) => return Ok(()),
        () = shared.stop.cancelled() => return Ok(()),
    };
    let (before, had) = (work.path.clone(), work.origin);
    let (folder, stem) =
        (parts.folder.clone(), format!("{}{}", stem(&file.path), recording.artwork_suffix()));
    let written = match found {
        // The guide forgets programmes, so that only the picture of the channel is left.
        Ok(Some(it)) if before.is_some() && (had, it.origin) == KEPT => Ok(None),
        Ok(Some(it)) => {
            let written = blocking(move || {
                if let Some(before) = before {
                    folder.remove(&before)?;
                }
                folder.write_new(&stem, it.extension, &it.bytes)
            });
            written.await.map(|path| Some((path, it.origin)))
        }
        Ok(None) if before.is_some() => Ok(None),
        Ok(None) => Err(StepFault::Failed("neither the programme nor the channel has a picture".to_owned())),
        Err(reason) => Err(StepFault::Failed(format!("the picture cannot be fetched: {reason}"))),
    };
    let (written, reason) = match written {
        Ok(written) => (written, None),
        Err(StepFault::Later(reason)) => return Err(reason),
        Err(StepFault::Failed(reason)) => (None, Some(reason)),
        Err(StepFault::Stopping | StepFault::Gone) => return Ok(()),
    };
    if let Some(reason) = &reason {
        warn!(recording.id = %id, "failed to get the picture of a recording: {reason}");
    }
    let path = written.as_ref().map(|it| it.0.clone());
    let changed = shared.change_record(id, move |it| {
        let Some(work) = it.after.artwork.as_mut() else { return };
        work.state = if reason.is_some() { WorkState::Failed } else { WorkState::Completed };
        work.reason = reason;
        if let Some((path, origin)) = written {
            (work.path, work.origin) = (Some(path), origin);
        }
    });
    if let (None, Some(path)) = (changed.await?, path) {
        shared.remove_beside(id, path).await;
    }
    Ok(())
}

/// The picture that is there and the one that was found, if the former is kept.
const KEPT: (ArtworkOrigin, ArtworkOrigin) = (ArtworkOrigin::Programme, ArtworkOrigin::Channel);
