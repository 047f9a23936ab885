//! A file that is deleted, moved, replaced or truncated while it is recorded.
//!
//! The record says at once what is lost. The recording continues: in a new file, or in the rest of one that was truncated.
//! Its reader stays at the channel, so that nobody takes its connection meanwhile.

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;

use domain::recording::{RecordedFile, time_at};
use tracing::warn;

use super::{Fault, Run, blocking};
use crate::clock::now_ms;
use crate::recording_files::file::RecordingFile;
use crate::recording_files::folder::FolderError;
use crate::recording_files::index::{self, Known};
use crate::recording_files::loss::FileLoss;

/// Reason of gaps of parts that were finished.
const PART_LOST: &str =
    "an earlier part was deleted or truncated before the end of the recording, and what was in it is lost";

impl Run {
    /// Looks whether the file is still there, and deals with its loss. Returns whether it was lost. With `is_thorough` its
    /// path is looked up in any case.
    pub(super) async fn look(&mut self, is_thorough: bool) -> Result<bool, Fault> {
        let Some(mut file) = self.file.take() else { return Ok(false) };
        let looked = blocking(move || {
            let loss = file.loss(is_thorough);
            (file, loss)
        });
        let (file, loss) = looked.await?;
        self.file = Some(file);
        match loss {
            Some(loss) => self.lose(loss).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Notes that the file was lost, and closes or shortens it.
    pub(super) async fn lose(&mut self, loss: FileLoss) -> Result<(), Fault> {
        let (Some(file), Some(recording)) = (self.file.take(), self.recording()) else { return Ok(()) };
        warn!(recording.id = %self.id, "a recording has lost data: {loss}");
        self.begins_anywhere = true;
        if loss == FileLoss::Truncated {
            // One from an archive is opened again, and continues where its record says that it is whole.
            let is_reopened = recording.after.fetched.is_some() && !recording.status.is_final();
            return match &recording.file {
                Some(recorded) if !is_reopened => self.continue_truncated(file, recorded.clone()).await,
                _ => Ok(()),
            };
        }
        if !self.note_lost(loss).await {
            // Until the record can be written, its file is looked at again. A new one would not be found.
            self.file = Some(file);
            return Err(Fault::Retry("the record of the recording cannot be written".to_owned()));
        }
        // If the folder lacks its marker now, it was deleted with the file. Otherwise its disk may come back.
        self.may_mark = loss == FileLoss::Deleted;
        // The system frees its blocks now.
        blocking(move || drop(file)).await
    }

    /// Notes that nothing of the file is left. Returns whether the record says so.
    pub(super) async fn note_lost(&mut self, loss: FileLoss) -> bool {
        let noted = self.change(move |it| it.lose_file(&loss.to_string(), now_ms())).await;
        if noted.is_none() && self.recording().is_some() {
            return false;
        }
        self.last_at = None;
        self.counters.bytes.store(0, Ordering::Relaxed);
        self.counters.synced.store(0, Ordering::Relaxed);
        true
    }

    /// Continues a file that somebody truncated, as after a crash.
    async fn continue_truncated(&mut self, file: RecordingFile, recorded: RecordedFile) -> Result<(), Fault> {
        let bytes = file.length();
        // Its index is written through another handle from now on.
        blocking(move || drop(file)).await?;
        let Some((mut file, _)) = self.reopened(&recorded.path).await? else {
            self.note_lost(FileLoss::Missing).await;
            return Ok(());
        };
        let written = recorded.started_at..self.last_at.unwrap_or(recorded.started_at);
        let kept_until = match self.duration(&recorded.path).await {
            Some(duration) => recorded.started_at.saturating_add(duration).min(written.end),
            None => time_at(written, bytes, file.length()),
        };
        let reason = FileLoss::Truncated.to_string();
        self.change(move |it| it.lose_from(kept_until, &reason, now_ms())).await;
        self.last_at = Some(kept_until);
        let now = now_ms();
        if file.length() > 0 {
            return self.use_file(file, move |file| file.change_reader(kept_until, now)).await;
        }
        self.counters.bytes.store(0, Ordering::Relaxed);
        file.begin_anywhere(now);
        self.file = Some(file);
        Ok(())
    }

    /// Looks at all files before the record gets its final status.
    pub(super) async fn look_at_last(&mut self) {
        if let Err(cause) = self.look(true).await {
            warn!(recording.id = %self.id, "failed to look at the file of a recording: {cause}");
        }
        self.look_at_earlier_parts().await;
    }

    /// Returns the length of the programme of a file in milliseconds; `None` if that takes long to find out.
    async fn duration(&self, path: &str) -> Option<i64> {
        let known = Known::load(self.parts().folder.clone(), self.id, path.to_owned()).await.ok()??;
        if !known.is_short() {
            return None;
        }
        i64::try_from(known.complete(false).await.ok()?.duration).ok()
    }

    /// Opens a file of this recording to continue it. Returns when it was written last, too. `None` if it does not exist.
    pub(super) async fn reopened(&self, path: &str) -> Result<Option<(RecordingFile, i64)>, Fault> {
        self.reopened_after(path, |_| Ok(())).await
    }

    /// Does the same after `prepare`, which may cut the file.
    pub(super) async fn reopened_after(
        &self,
        path: &str,
        prepare: impl FnOnce(&File) -> io::Result<()> + Send + 'static,
    ) -> Result<Option<(RecordingFile, i64)>, Fault> {
        let (folder, path, id) = (self.parts().folder.clone(), path.to_owned(), self.id);
        let opened = blocking(move || {
            let Some(file) = folder.reopen(&path)? else { return Ok(None) };
            prepare(&file)?;
            let (file, written_at) = RecordingFile::reopened(file)?;
            let index = index::reopen(&folder, id, &path);
            Ok::<_, FolderError>(Some((file.with_index(index).at_place(folder, path), written_at)))
        });
        Ok(opened.await??)
    }

    /// Notes which finished parts in this folder were deleted or truncated since.
    async fn look_at_earlier_parts(&self) {
        let Some(recording) = self.recording() else { return };
        let folder = self.parts().folder.clone();
        let is_own = |it: &&RecordedFile| it.ended_at.is_some() && it.bytes > 0 && folder.has(it);
        let own: Vec<_> = recording.earlier_parts.iter().filter(is_own).cloned().collect();
        if own.is_empty() {
            return;
        }
        let looked = blocking(move || {
            let left = |it: &RecordedFile| match folder.status(&it.path) {
                Ok(found) => found.map_or(0, |it| u64::try_from(it.st_size).unwrap_or(0)),
                // Its disk may come back.
                Err(_) => it.bytes,
            };
            own.into_iter().map(|it| (left(&it), it)).filter(|(left, it)| *left < it.bytes).collect()
        });
        let shorter: Vec<(u64, RecordedFile)> = looked.await.unwrap_or_default();
        for (left, part) in shorter {
            warn!(recording.id = %self.id, "a recording has lost data: {PART_LOST}");
            self.change(move |it| it.shorten_part(&part.path, left, PART_LOST, now_ms())).await;
        }
    }
}
