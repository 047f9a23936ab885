//! The end of a run: the final record of the recording, and the events that report the begin and the end.

use std::sync::atomic::Ordering;

use domain::event::{ChannelRef, Event, EventBody, RecordingRef};
use domain::recording::{Recording, RecordingInput, RecordingStatus};
use tracing::{info, warn};

use super::{RETRY_MAX, Run, blocking};
use crate::clock::now_ms;
use crate::events::StoredEvent;
use crate::recorder::events::{channel_ref, recording_ref};

/// The change by the end of a run.
enum Ended {
    /// The recording has ended with this run.
    Now,
    /// It had ended before.
    Before,
    /// It has no file. Contains the path of an empty one, which is removed.
    WithoutFile(Option<String>),
}

/// The events that a change of a recording is reported with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reports {
    /// The begin or the end.
    pub(super) is_step: bool,
    /// Nothing was recorded.
    pub(super) has_failed: bool,
}

impl Run {
    /// The time of the recording is over, or somebody has ended it.
    pub(super) async fn finish(&mut self) {
        self.follow_clock().await;
        self.look_at_last().await;
        let Some(recording) = self.recording() else { return };
        match recording.status.is_final() {
            true => self.write_end(RecordingInput::Stop, None).await,
            false => {
                let ended_at = self.last_at.unwrap_or(recording.begins_at());
                let (input, reason) = recording.outcome(ended_at);
                self.write_end(input, reason).await;
            }
        }
    }

    /// Ends the recording in this way, however much of its time is left.
    pub(super) async fn end(&mut self, input: RecordingInput, reason: Option<String>) {
        self.look_at_last().await;
        self.write_end(input, reason).await;
    }

    /// Closes the file, writes the final record, and reports the end once.
    async fn write_end(&mut self, input: RecordingInput, reason: Option<String>) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        // A file whose disk is gone is as long as it was when it was closed.
        let known = Some(self.counters.bytes.load(Ordering::Relaxed)).filter(|it| *it > 0);
        let bytes = self.close_file().await.or(known);
        let (last_at, gap_reason) = (self.last_at, reason.clone());
        let (settings, folder) = (self.shared.settings().0, self.parts().folder.clone());
        let event = self.events_of(end_events);
        let changed = self.change_and_report(event, move |it| {
            let was_over = it.status.is_final();
            let reports = |it: &Recording| Reports {
                is_step: true,
                has_failed: !was_over && it.status == RecordingStatus::Failed,
            };
            if it.status == RecordingStatus::Scheduled {
                let reason = reason.clone().or_else(|| it.reason.clone());
                // A recording that has not begun accepts it.
                let _ = it.apply(RecordingInput::EndedWithoutFile, reason, now_ms());
            }
            if it.status == RecordingStatus::Failed {
                let own = it.file.take().filter(|it| folder.has(it));
                let failed = Reports { is_step: false, has_failed: !was_over };
                return (Ended::WithoutFile(own.map(|it| it.path)), failed);
            }
            // It has lost its file, and nothing came into the next one.
            let is_empty = bytes == Some(0) && it.gaps.iter().any(|it| it.is_lost);
            let empty = it.file.take_if(|file| is_empty && file.ended_at.is_none() && folder.has(file));
            if empty.is_some() {
                it.file = it.earlier_parts.pop();
            }
            let (input, reason) = match &it.file {
                None => it.outcome(it.begins_at()),
                Some(_) => (input, reason),
            };
            // The status is final already if somebody has ended it.
            let _ = it.apply(input, reason, now_ms());
            if it.file.is_none() || empty.is_some() {
                return (Ended::WithoutFile(empty.map(|it| it.path)), reports(it));
            }
            let Some(file) = it.file.as_mut().filter(|it| it.ended_at.is_none()) else {
                return (Ended::Before, Reports::default());
            };
            if !folder.has(file) {
                // Its node reports the end of the file.
                return (Ended::Now, reports(it));
            }
            file.ended_at = Some(last_at.unwrap_or(file.started_at).max(file.started_at));
            if let Some(bytes) = bytes {
                file.bytes = bytes;
            }
            it.queue_work(&settings, now_ms());
            it.after.missed = (!it.missed_parts().is_empty()).then(Default::default);
            (Ended::Now, reports(it))
        });
        let recording = match changed.await {
            Some((recording, Ended::Now)) => recording,
            Some((_, Ended::WithoutFile(Some(path)))) => return self.remove(path).await,
            Some(_) => return,
            // The schedule tries again.
            None if self.recording().is_some() => return self.until_writable(gap_reason).await,
            None => return,
        };
        info!(recording.id = %self.id, "recording of \"{}\" is {}", recording.title(), recording.status);
    }

    /// Waits until the store accepts changes, so that a recording whose end cannot be noted does not open its channel again and
    /// again. It continues then, and the time until then is a gap.
    async fn until_writable(&self, reason: Option<String>) {
        self.pause(RETRY_MAX).await;
        let mut why = self.parts().models.store.stop_reason();
        tokio::select! {
            // An error means that the store is closed.
            _ = why.wait_for(Option::is_none) => {}
            () = self.shared.stop.cancelled() => return,
        }
        if let (Some(last_at), Some(reason)) = (self.last_at, reason) {
            self.change(move |it| {
                if it.status == RecordingStatus::Recording {
                    it.open_gap(last_at, &reason);
                }
            })
            .await;
        }
    }

    /// Removes a file that no record names.
    pub(super) async fn remove(&self, path: String) {
        let (folder, id) = (self.parts().folder.clone(), self.id);
        let remove = move || folder.remove_index(id).and_then(|_| folder.remove(&path));
        if let Ok(Err(cause)) = blocking(remove).await {
            warn!(recording.id = %self.id, "failed to remove a file without a recording: {cause}");
        }
    }

    /// Changes the record, unless it was removed, and reports the events that the function asks for. They are stored for integrations with the change.
    pub(super) async fn change_and_report<R: Send + 'static>(
        &self,
        events_of: impl FnOnce(&Recording, Reports) -> Vec<Event> + Send + 'static,
        change: impl FnOnce(&mut Recording) -> (R, Reports) + Send + 'static,
    ) -> Option<(Recording, R)> {
        let events = self.shared.env.events.clone();
        let changed = self.write(move |write, recording| {
            let (done, reports) = change(recording);
            write.put(recording)?;
            let wanted =
                if reports == Reports::default() { Vec::new() } else { events_of(recording, reports) };
            let stored = |event| StoredEvent { events: events.clone(), event };
            let stored: Vec<_> = wanted.into_iter().map(stored).collect();
            stored.iter().try_for_each(|it| it.enqueue(write))?;
            Ok((done, stored))
        });
        let (recording, (done, stored)) = changed.await?;
        for StoredEvent { events, event } in stored {
            events.announce(event);
        }
        Some((recording, done))
    }

    /// Returns what makes events of a record.
    pub(super) fn events_of(
        &self,
        bodies: impl FnOnce(ChannelRef, RecordingRef, &Recording, Reports) -> Vec<EventBody> + Send + 'static,
    ) -> impl FnOnce(&Recording, Reports) -> Vec<Event> + Send + 'static {
        let (models, folder) = (self.parts().models.clone(), self.parts().folder.clone());
        move |it: &Recording, reports: Reports| {
            let recording = recording_ref(it, Some(&models), Some(&folder));
            let bodies = bodies(channel_ref(it, Some(&models)), recording, it, reports);
            bodies.into_iter().map(|body| Event { at: now_ms(), body }).collect()
        }
    }
}

/// Returns the events of the end of a recording.
fn end_events(
    channel: ChannelRef,
    recording: RecordingRef,
    record: &Recording,
    reports: Reports,
) -> Vec<EventBody> {
    let file = record.file.as_ref();
    let length_ms = file.map_or(0, |it| it.ended_at.unwrap_or(it.started_at).saturating_sub(it.started_at));
    let interrupted = matches!(record.status, RecordingStatus::Interrupted | RecordingStatus::Failed);
    let reason = record.reason.clone().unwrap_or_default();
    let failed = reports.has_failed.then(|| EventBody::RecordingFailed {
        channel: channel.clone(),
        recording: recording.clone(),
        reason: reason.clone(),
    });
    let end = reports.is_step.then(|| EventBody::RecordingEnd {
        channel,
        recording,
        duration_seconds: u64::try_from(length_ms / 1000).unwrap_or(0),
        file_size_bytes: file.map_or(0, |it| it.bytes),
        interrupted,
        reason: if interrupted { reason } else { String::new() },
    });
    end.into_iter().chain(failed).collect()
}
