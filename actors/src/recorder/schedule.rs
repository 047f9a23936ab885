//! The schedule: starts a run for each recording that is due.

use std::sync::Arc;
use std::time::Duration;

use domain::ids::RecordingId;
use domain::recording::{Recording, RecordingStatus};
use storage::Record;
use tokio::time::sleep;
use tracing::error;

use super::priority::LEAD_MS;
use super::run;
use super::state::{RecorderState, RunCounters, any_changed};
use crate::clock::now_ms;
use crate::recording_files::RecordingsFolder;
use crate::tasks::RESPAWN_DELAY;
use crate::writer::role_changed;

/// Longest wait of the schedule, so that a change of the wall clock is noticed, in milliseconds.
const LOOK_MS_MAX: i64 = 30_000;

impl RecorderState {
    /// Starts the runs of recordings that are due, until the gateway stops.
    pub(super) async fn follow_schedule(self: Arc<Self>) {
        let Some(parts) = self.parts.get() else { return };
        let mut changes = parts.models.store.changes();
        let mut role = parts.models.store.log_status();
        loop {
            let now = now_ms();
            let mut next = now.saturating_add(LOOK_MS_MAX);
            // In a cluster, the node that writes the configuration records. What a file lacks is added where it is.
            let is_here = parts.models.store.writes_shared();
            let names_node = |it: &Recording| it.file.as_ref().is_some_and(|it| it.node.is_some());
            let may_run = |it: &&Arc<Recording>| is_here || it.missed_are_due() && names_node(it);
            for recording in parts.models.recordings.load().iter().filter(may_run) {
                match due_at(recording, &parts.folder) {
                    Some(due) if due <= now => self.start_run(recording.id),
                    Some(due) => next = next.min(due),
                    None => {}
                }
            }
            let wait = Duration::from_millis(u64::try_from(next.saturating_sub(now)).unwrap_or(0));
            tokio::select! {
                () = sleep(wait) => {}
                () = self.ended.notified() => {}
                () = any_changed(&mut changes, &[Recording::COLLECTION]) => {}
                () = role_changed(&mut role, is_here) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    fn start_run(self: &Arc<Self>, id: RecordingId) {
        let counters = Arc::new(RunCounters::default());
        {
            let mut running = self.running.lock();
            if self.stop.is_cancelled() || running.contains_key(&id) {
                return;
            }
            running.insert(id, counters.clone());
        }
        let shared = self.clone();
        let run = async move {
            let _guard = Forget { shared: shared.clone(), id };
            let running = crate::tasks::spawn(run::run(shared, id, counters));
            if let Err(death) = running.await {
                error!(recording.id = %id, "a recording failed and is continued: {death}");
                sleep(RESPAWN_DELAY).await;
            }
        };
        self.runs.spawn_on(run, &self.env.packets);
    }
}

/// Removes a run from the table when it ends.
struct Forget {
    shared: Arc<RecorderState>,
    id: RecordingId,
}

impl Drop for Forget {
    fn drop(&mut self) {
        self.shared.running.lock().remove(&self.id);
        self.shared.ended.notify_waiters();
        // For a schedule that does not wait at this moment.
        self.shared.ended.notify_one();
    }
}

/// Returns when a recording needs a run; `None` if it needs none any more.
fn due_at(recording: &Recording, folder: &RecordingsFolder) -> Option<i64> {
    match recording.status.is_final() {
        // Its node reports the end of the file.
        true if recording.file.as_ref().is_some_and(|it| !folder.has(it)) => None,
        // Also if the clock was set back since it has begun.
        false if recording.status == RecordingStatus::Recording => Some(i64::MIN),
        false => Some(recording.begins_at().saturating_sub(LEAD_MS)),
        // It was ended, and its file is not finished.
        true if recording.file.as_ref().is_some_and(|it| it.ended_at.is_none()) => Some(i64::MIN),
        true => recording.missed_are_due().then_some(i64::MIN),
    }
}
