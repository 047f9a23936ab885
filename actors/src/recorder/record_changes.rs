//! Changes of records by the work on files, and by what fills them. A node that does not write the records lets the one that
//! writes make them.

use std::time::Duration;

use domain::ids::RecordingId;
use domain::recording::{FileWork, Recording};
use storage::Write;
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::file_report::FileReport;
use super::state::{RecorderParts, RecorderState, any_changed};

/// Time for a change. No node writes for about 20 s after the one that did is lost.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(120);
/// Pause between tries.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Longest wait until this node has what the one that writes has stored.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(10);

impl RecorderState {
    /// Changes a record, unless it was removed. Returns the record and what the function returns, which is called again if the
    /// record changes meanwhile.
    ///
    /// # Errors
    /// The record cannot be written now.
    pub(super) async fn change_record<R: Send + 'static>(
        &self,
        id: RecordingId,
        change: impl FnOnce(&mut Recording) -> R + Clone + Send + 'static,
    ) -> Result<Option<(Recording, R)>, String> {
        let Some(parts) = self.parts.get() else { return Ok(None) };
        if !parts.models.store.writes_shared() {
            return self.pass_change(parts, id, change).await;
        }
        let here = change.clone();
        let written = parts.models.store.write(move |write: &mut Write<'_>| {
            let Some(mut recording) = write.get::<Recording>(id.0)? else { return Ok(None) };
            let done = here(&mut recording);
            write.put(&recording)?;
            Ok::<_, storage::Error>(Some((recording, done)))
        });
        match written.await {
            Ok(changed) => Ok(changed),
            // Another node writes from now on.
            Err(storage::Error::NotWriter) => self.pass_change(parts, id, change).await,
            Err(cause) => Err(format!("failed to write the record of a recording: {cause}")),
        }
    }

    /// Lets the node that writes change a record of which this one has the file.
    async fn pass_change<R: Send>(
        &self,
        parts: &RecorderParts,
        id: RecordingId,
        change: impl FnOnce(&mut Recording) -> R + Clone + Send,
    ) -> Result<Option<(Recording, R)>, String> {
        let until = Instant::now() + CHANGE_TIMEOUT;
        loop {
            let Some(before) = self.recording(id) else { return Ok(None) };
            let mut recording = Recording::clone(&before);
            let done = change.clone()(&mut recording);
            let (Some(of), Some(now)) = (before.file_work(), recording.file_work()) else { return Ok(None) };
            if of == now || self.pass_step(parts, id, &of, &now, until).await? {
                return Ok(self.recording(id).map(|_| (recording, done)));
            }
        }
    }

    /// Passes a step on until this node has it. Returns false if the record has changed otherwise.
    async fn pass_step(
        &self,
        parts: &RecorderParts,
        id: RecordingId,
        before: &FileWork,
        now: &FileWork,
        until: Instant,
    ) -> Result<bool, String> {
        let node = parts.folder.node().ok_or("this gateway is not a node of a cluster")?.to_owned();
        let report = FileReport::Work {
            node,
            recording: id,
            before: Box::new(before.clone()),
            now: Box::new(now.clone()),
        };
        let mut changes = parts.models.store.changes();
        let state = || self.recording(id).map(|it| it.file_work());
        loop {
            let reported = self.report_file(parts, report.clone()).await;
            let arrival = async {
                while state().is_some_and(|it| it.as_ref() == Some(before)) {
                    any_changed(&mut changes, &[<Recording as storage::Record>::COLLECTION]).await;
                }
            };
            // An answer can be lost after the change.
            let wait = if reported.is_ok() { ARRIVAL_TIMEOUT } else { RETRY_PAUSE };
            let arrived = tokio::select! {
                arrived = timeout(wait, arrival) => arrived.is_ok(),
                () = self.stop.cancelled() => return Err("the gateway stops".to_owned()),
            };
            if arrived {
                return Ok(state().is_none_or(|it| it.as_ref() == Some(now)));
            }
            let reason = reported.err().unwrap_or_else(|| "the change has not arrived".to_owned());
            if Instant::now() >= until {
                return Err(reason);
            }
            debug!(recording.id = %id, "the work on a recording waits for the node that writes: {reason}");
        }
    }
}
