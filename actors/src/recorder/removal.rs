//! What a write that deletes a recording stores besides.

use domain::event::{Event, EventBody, RecordingRef};
use domain::recording::rules::{RecordingRule, RuleMemory};
use domain::recording::{Recording, RecordingStatus};
use storage::Write;

use super::events::{channel_ref, recording_ref};
use super::state::Recorder;
use crate::clock::now_ms;
use crate::events::StoredEvent;

/// The report that a recording ended because it was deleted. It is stored for integrations with the removal.
#[must_use = "nobody learns of the end unless it is announced after the write"]
pub struct RemovalReport(Option<StoredEvent>);

impl RemovalReport {
    /// Reports the end to subscribers, after the removal was committed.
    pub fn announce(self) {
        if let Some(StoredEvent { events, event }) = self.0 {
            events.announce(event);
        }
    }
}

impl Recorder {
    /// Adds the end of a recording to the write that removes its record, if its start was reported and its end was not. Its
    /// run finds no record afterwards and reports nothing, so the end is reported once.
    ///
    /// # Errors
    /// The store cannot be used.
    pub fn report_removal(
        &self,
        write: &mut Write<'_>,
        recording: &Recording,
    ) -> storage::Result<RemovalReport> {
        let is_open = match &recording.file {
            Some(file) => {
                file.ended_at.is_none()
                    && !matches!(recording.status, RecordingStatus::Scheduled | RecordingStatus::Failed)
            }
            // It has lost its file.
            None => recording.status == RecordingStatus::Recording,
        };
        if !is_open {
            return Ok(RemovalReport(None));
        }
        let at = now_ms();
        let file = recording.file.as_ref();
        let bytes = self.progress(recording.id).map_or(0, |it| it.bytes);
        let length_ms = file.map_or(0, |it| at.min(recording.ends_at()).saturating_sub(it.started_at));
        let models = self.shared.parts.get().map(|it| &it.models);
        let gone = RecordingRef { path_changes: false, ..recording_ref(recording, models, self.folder()) };
        let body = EventBody::RecordingEnd {
            channel: channel_ref(recording, models),
            recording: gone,
            duration_seconds: u64::try_from(length_ms / 1000).unwrap_or(0),
            file_size_bytes: file.map_or(0, |it| bytes.max(it.bytes)),
            interrupted: matches!(
                recording.status,
                RecordingStatus::Recording | RecordingStatus::Interrupted
            ),
            reason: "the recording was deleted".to_owned(),
        };
        let stored = StoredEvent { events: self.shared.env.events.clone(), event: Event { at, body } };
        stored.enqueue(write)?;
        Ok(RemovalReport(Some(stored)))
    }
}

/// Notes that the recording of rules was deleted, so that none of them makes it again.
///
/// # Errors
/// The store cannot be used.
pub fn remember_deleted(write: &mut Write<'_>, recording: &Recording) -> storage::Result<()> {
    let Some(followed) = &recording.followed else { return Ok(()) };
    for rule in recording.rules() {
        if write.get::<RecordingRule>(rule.0)?.is_none() {
            continue;
        }
        let mut memory = write.get::<RuleMemory>(rule.0)?.unwrap_or_else(|| RuleMemory::new(rule));
        memory.add_done(followed.episode);
        write.put(&memory)?;
    }
    Ok(())
}
