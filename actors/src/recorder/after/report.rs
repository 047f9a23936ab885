//! The report that all work on the file of a recording is done.

use std::sync::Arc;

use domain::event::{Event, EventBody};
use domain::ids::RecordingId;

use crate::clock::now_ms;
use crate::recorder::state::RecorderState;

/// Reports the file as it stays.
///
/// # Errors
/// The work has to wait.
pub(super) async fn ready(shared: &Arc<RecorderState>, id: RecordingId) -> Result<(), String> {
    let Some((recording, Some(_))) = shared.change_record(id, |it| it.after.unreported.take()).await? else {
        return Ok(());
    };
    let Some(file) = &recording.file else { return Ok(()) };
    let length_ms = file.ended_at.unwrap_or(file.started_at).saturating_sub(file.started_at);
    let body = EventBody::RecordingReady {
        channel: shared.channel_ref(&recording),
        recording: shared.recording_ref(&recording),
        duration_seconds: u64::try_from(length_ms / 1000).unwrap_or(0),
        file_size_bytes: file.bytes,
        failed_work: recording.after.failed_work().join(","),
    };
    shared.env.events.emit(Event { at: now_ms(), body });
    Ok(())
}
