//! A recording whose whole time is over, from the archive of its channel.

use std::fs::File;
use std::ops::ControlFlow;
use std::time::Duration;

use domain::recording::{FetchedFile, Recording, RecordingInput, RecordingStatus};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::{Fault, GAP_MS, NOT_RUNNING, RETRY_MAX, RETRY_MIN, Run, SYNC_PERIOD, WRITE_PERIOD};
use crate::clock::now_ms;
use crate::recorder::missed::{Fetched, MissedPart};
use crate::recorder::permission::owner_refusal;
use crate::recording_files::file::{Arrived, RecordingFile};

/// Reason of gaps in an archive.
const NOT_IN_ARCHIVE: &str = "the archive has nothing of this time";

impl Run {
    /// Stores what the archive has of the recording. Returns false if its time is not over any more.
    pub(super) async fn fetch(&mut self) -> bool {
        let Some(recording) = self.recording() else { return true };
        if self.file.is_none()
            && recording.file.is_some()
            && let Err(cause) = self.resume().await
        {
            self.note_wait(&cause.to_string()).await;
            self.pause_fetch(RETRY_MAX).await;
            return false;
        }
        if recording.status == RecordingStatus::Scheduled
            && let Some(reason) = owner_refusal(&self.parts().models, &recording)
        {
            warn!(recording.id = %self.id, "a recording is not fetched from the archive: {reason}");
            self.change(move |it| it.reason = Some(reason.to_owned())).await;
            self.finish().await;
            return true;
        }
        let begin = self.last_at.unwrap_or(recording.begins_at());
        let mut part = MissedPart::new(&self.shared, recording.channel_uuid, begin..recording.ends_at());
        let mut synced_at = Instant::now();
        let why = loop {
            let fetched = tokio::select! {
                fetched = part.next(&self.shared) => Some(fetched),
                () = self.disturbed() => None,
            };
            if let ControlFlow::Break(is_over) = self.goes_on().await {
                return is_over;
            }
            match fetched {
                None => {}
                Some(Fetched::Packets { arrived, is_first }) => {
                    match self.store_fetched(arrived, is_first).await {
                        Ok(()) => {}
                        Err(Fault::Retry(reason)) => {
                            // The part begins again where the file ends.
                            self.note_wait(&reason).await;
                            self.pause_fetch(RETRY_MAX).await;
                            return false;
                        }
                        Err(Fault::Lost(loss)) => {
                            // The archive still has what was in it.
                            if let Err(cause) = self.lose(loss).await {
                                warn!(recording.id = %self.id, "failed to begin the file of a recording again: {cause}");
                            }
                            self.pause_fetch(RETRY_MIN).await;
                            return false;
                        }
                        Err(Fault::Disk(reason)) => {
                            warn!(recording.id = %self.id, "a recording ends early: {reason}");
                            self.end(RecordingInput::EndedIncomplete, Some(reason)).await;
                            return true;
                        }
                    }
                }
                Some(Fetched::Later { pause, reason }) => {
                    self.note_wait(&reason).await;
                    self.pause_fetch(pause).await;
                }
                Some(Fetched::Whole) => break None,
                Some(Fetched::Never { reason }) => break Some(reason),
            }
            if synced_at.elapsed() >= SYNC_PERIOD {
                synced_at = Instant::now();
                self.note_fetched().await;
            }
        };
        drop(part);
        if let Ok(true) = self.look(true).await {
            return false;
        }
        if let Some(reason) = why {
            self.note_missing(reason).await;
        }
        self.finish().await;
        true
    }

    /// Returns whether the recording is still to be fetched; otherwise ends it, and returns what [`Self::fetch`] returns.
    async fn goes_on(&mut self) -> ControlFlow<bool> {
        let Some(recording) = self.recording() else { return ControlFlow::Break(true) };
        if recording.status.is_final() {
            self.end(RecordingInput::Stop, None).await;
            return ControlFlow::Break(true);
        }
        if self.shared.stop.is_cancelled() {
            self.note_fetched().await;
            self.close_file().await;
            return ControlFlow::Break(true);
        }
        if recording.ends_at() > now_ms() {
            return ControlFlow::Break(false);
        }
        ControlFlow::Continue(())
    }

    /// Waits until somebody ends, moves or removes the recording, or the gateway stops.
    async fn disturbed(&self) {
        let is_undisturbed =
            || self.recording().is_some_and(|it| !it.status.is_final() && it.ends_at() <= now_ms());
        while is_undisturbed() {
            tokio::select! {
                () = sleep(WRITE_PERIOD) => {}
                () = self.shared.stop.cancelled() => return,
            }
        }
    }

    async fn pause_fetch(&self, pause: Duration) {
        tokio::select! {
            () = sleep(pause) => {}
            () = self.disturbed() => {}
        }
    }

    /// Appends packets to the file, which is created with the first ones.
    async fn store_fetched(&mut self, arrived: Vec<Arrived>, is_first: bool) -> Result<(), Fault> {
        let (Some(first_at), Some(latest)) =
            (arrived.first().map(|it| it.at), arrived.last().map(|it| it.at))
        else {
            return Ok(());
        };
        let Some(recording) = self.recording() else { return Ok(()) };
        self.leave_lost_disk().await?;
        if self.file.is_none()
            && let Some(cause) = self.shared.room.lock().refusal(&recording)
        {
            return Err(Fault::Retry(cause.to_string()));
        }
        if let (Some(last_at), true) = (self.last_at, is_first)
            && let Some(file) = self.file.take()
        {
            self.use_file(file, move |file| file.change_reader(last_at, first_at)).await?;
        }
        let file = match self.file.take() {
            Some(file) => file,
            None => self.create(first_at).await?,
        };
        self.use_file(file, move |file| {
            file.begin_anywhere(first_at);
            file.append(&arrived, latest)
        })
        .await?;
        let before = self.last_at.replace(latest);
        if recording.status == RecordingStatus::Scheduled {
            self.change(move |it| it.after.fetched = Some(FetchedFile { reached: first_at, bytes: 0 })).await;
            self.begun(first_at).await;
        } else if let Some(before) = before.filter(|it| first_at.saturating_sub(*it) > GAP_MS) {
            self.change(move |it| {
                it.open_gap(before, NOT_IN_ARCHIVE);
                it.close_gap(first_at);
            })
            .await;
        }
        Ok(())
    }

    /// Notes how far the file is, once the disk has it.
    async fn note_fetched(&mut self) {
        let Some(reached) = self.last_at else { return };
        let Some(file) = self.file.take() else { return };
        if self.use_file(file, RecordingFile::sync).await.is_err() {
            return;
        }
        let bytes = self.file.as_ref().map_or(0, RecordingFile::synced);
        self.change(move |it| it.after.fetched = Some(FetchedFile { reached, bytes })).await;
    }

    /// Notes why nothing comes at the moment.
    async fn note_wait(&mut self, reason: &str) {
        self.note_fetched().await;
        info!(recording.id = %self.id, "a recording waits for the archive: {reason}");
        let Some(recording) = self.recording().filter(|it| it.status == RecordingStatus::Scheduled) else {
            return;
        };
        if recording.reason.as_deref() != Some(reason) {
            let reason = reason.to_owned();
            self.change(move |it| it.reason = Some(reason)).await;
        }
    }

    /// Notes why the rest does not come.
    async fn note_missing(&mut self, reason: String) {
        warn!(recording.id = %self.id, "the archive lacks a recording, or a part of it: {reason}");
        let (last_at, started_at) = (self.last_at, self.parts().started_at);
        self.change(move |it| match (it.status, last_at) {
            (RecordingStatus::Recording, Some(last_at)) => it.open_gap(last_at, &reason),
            // What kept the channel from playing in its time tells more.
            _ if it.reason.is_some() => {}
            _ if it.created_at < it.ends_at() && it.ends_at() <= started_at => {
                it.reason = Some(format!("{NOT_RUNNING}, and {reason}"));
            }
            _ => it.reason = Some(reason),
        })
        .await;
    }

    /// Opens the file of an earlier process, and cuts it to what that had noted.
    pub(super) async fn reopen_fetched(
        &mut self,
        recording: &Recording,
        fetched: FetchedFile,
    ) -> Result<(), Fault> {
        let Some(recorded) = &recording.file else { return Ok(()) };
        let cut = move |file: &File| {
            // A file that is shorter has lost something, and nobody knows what.
            let is_kept = file.metadata()?.len() >= fetched.bytes;
            file.set_len(if is_kept { fetched.bytes } else { 0 })
        };
        let opened = self.reopened_after(&recorded.path, cut).await?.map(|it| it.0);
        let reached = opened.as_ref().filter(|it| it.length() > 0).map(|_| fetched.reached);
        if reached.is_none() && !recording.gaps.is_empty() {
            // They come again with the rest.
            self.change(|it| it.gaps.clear()).await;
        }
        self.last_at = reached;
        self.file = opened;
        Ok(())
    }
}
