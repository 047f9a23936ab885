//! What a channel knows of a recording that reads it.

use std::fmt;
use std::sync::Arc;

use domain::ids::RecordingId;
use domain::recording::{RecordingClaim, RecordingRank};
use storage::Models;

use super::{LEAD_MS, dvr_settings};
use crate::clock::now_ms;

/// A recording that reads a channel. Its record may change meanwhile.
#[derive(Clone)]
pub(crate) struct ReadingRecording {
    id: RecordingId,
    models: Arc<Models>,
}

impl ReadingRecording {
    pub(super) fn new(id: RecordingId, models: Models) -> Self {
        Self { id, models: Arc::new(models) }
    }

    /// Returns its rank now; the lowest one if it was deleted.
    pub(crate) fn rank(&self) -> RecordingRank {
        let recordings = self.models.recordings.load();
        recordings.get(self.id.0).map(|it| it.rank(now_ms())).unwrap_or_default()
    }

    /// Returns what it may take from others; nothing if it was deleted. The programme counts as begun some seconds before,
    /// so that its channel plays in time.
    pub(crate) fn claim(&self) -> Option<RecordingClaim> {
        let (now, recordings) = (now_ms(), self.models.recordings.load());
        let recording = recordings.get(self.id.0)?;
        let at = if now < recording.start { now.saturating_add(LEAD_MS) } else { now };
        Some(RecordingClaim::of(recording, at, &dvr_settings(&self.models)))
    }
}

impl fmt::Debug for ReadingRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadingRecording").field("id", &self.id).finish_non_exhaustive()
    }
}
