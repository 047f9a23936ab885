//! Files of recordings in a cluster: each node has those that it has recorded. The records are those of all nodes, and one node
//! writes them.
//!
//! ```text
//!  a record is deleted ─► LeftFiles ─► its node removes them ──────────┐
//!  another node continues a recording ─► its node cuts its part, ──────┴─► FileReport ─► the node that writes
//!  work on a file, a file is filled ─► its node does it ─┘  as after a crash
//! ```

use std::sync::Arc;

use domain::ids::RecordingId;
use domain::recording::{FilledFile, LeftFiles, RecordedFile, Recording};
use media::spawn_blocking;
use storage::Write;
use tracing::{info, warn};

use super::file_report::{FileReport, ReportFiles};
use super::state::{Recorder, RecorderParts, RecorderState};
use crate::clock::now_ms;
use crate::recording_files::file::RecordingFile;
use crate::recording_files::folder::{FolderError, RecordingsFolder};

impl Recorder {
    /// Sets what sends reports of files to the node that writes. Only the first call has an effect.
    pub fn report_files_with(&self, reporter: Arc<dyn ReportFiles>) {
        // Called once.
        let _ = self.shared.reporter.set(reporter);
    }

    /// Stores a report of another node. To be called on the node that writes.
    ///
    /// # Errors
    /// The reason why the store cannot be written.
    pub async fn accept_report(&self, report: FileReport) -> Result<(), String> {
        self.shared.accept_report(report).await
    }

    /// Notes which files of a recording other nodes have to remove. Belongs to the write that removes its record.
    ///
    /// # Errors
    /// The store cannot be used.
    pub fn leave_files(&self, write: &mut Write<'_>, recording: &Recording) -> storage::Result<()> {
        let Some(folder) = self.folder() else { return Ok(()) };
        for left in recording.left_files(|it| !folder.has(it)) {
            leave(write, left)?;
        }
        Ok(())
    }
}

/// Stores files for their node to remove.
pub(super) fn leave(write: &mut Write<'_>, left: LeftFiles) -> storage::Result<()> {
    let id = write.next_id::<LeftFiles>()?;
    write.put(&LeftFiles { id, ..left })
}

impl RecorderState {
    async fn accept_report(&self, report: FileReport) -> Result<(), String> {
        let Some(parts) = self.parts.get() else { return Err("nothing is recorded here".to_owned()) };
        let (settings, _) = self.settings();
        let stored = parts.models.store.write(move |write: &mut Write<'_>| {
            match report {
                FileReport::Ended { node, recording, path, bytes, ended_at } => {
                    if let Some(mut record) = write.get::<Recording>(recording.0)? {
                        let had_ended = record.has_ended_file();
                        if record.part_ended(&node, &path, bytes, ended_at, now_ms()) {
                            if record.has_ended_file() && !had_ended {
                                record.queue_work(&settings, now_ms());
                            }
                            write.put(&record)?;
                        }
                    }
                }
                FileReport::Work { node, recording, before, now } => {
                    if let Some(mut record) = write.get::<Recording>(recording.0)?
                        && record.file_work().as_ref() != Some(&*now)
                    {
                        if !record.take_step(&node, &before, *now) {
                            return Ok(Err("the record has changed since".to_owned()));
                        }
                        write.put(&record)?;
                    }
                }
                FileReport::Filled { node, recording, filled } => {
                    if let Some(mut record) = write.get::<Recording>(recording.0)?
                        && expects(&record, &node, &filled)
                    {
                        record.filled(filled, now_ms());
                        write.put(&record)?;
                    }
                }
                FileReport::Removed { node, left } => {
                    if write.get::<LeftFiles>(left)?.is_some_and(|it| it.node == node) {
                        write.remove::<LeftFiles>(left)?;
                    }
                }
            }
            Ok::<_, storage::Error>(Ok(()))
        });
        stored.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Notes that a file with more has taken the place of the file of a recording.
    ///
    /// # Errors
    /// The record cannot be written now.
    pub(super) async fn note_filled(&self, id: RecordingId, filled: FilledFile) -> Result<(), String> {
        let Some(parts) = self.parts.get() else { return Ok(()) };
        match parts.folder.node().map(str::to_owned) {
            Some(node) => self.report_file(parts, FileReport::Filled { node, recording: id, filled }).await,
            None => {
                let noted = self.change_record(id, move |it| it.filled(filled, now_ms()));
                noted.await.map(drop)
            }
        }
    }

    /// Reports to the node that writes, which may be this one.
    pub(super) async fn report_file(&self, parts: &RecorderParts, report: FileReport) -> Result<(), String> {
        if parts.models.store.writes_shared() {
            return self.accept_report(report).await;
        }
        match self.reporter.get() {
            Some(reporter) => reporter.report(report).await,
            None => Err("this gateway does not reach other nodes".to_owned()),
        }
    }

    /// Does what other nodes have left to this one. Returns whether everything is done.
    pub(super) async fn settle_files(&self, parts: &RecorderParts) -> bool {
        let Some(node) = parts.folder.node().map(str::to_owned) else { return true };
        let mut is_done = true;
        for (recording, part) in self.ended_parts(parts) {
            if let Err(reason) = self.settle_part(parts, &node, recording, part).await {
                info!(recording.id = %recording, "the end of a part of a recording is not noted yet: {reason}");
                is_done = false;
            }
        }
        let left = parts.models.left_files.load();
        for left in left.iter().filter(|it| it.node == node) {
            if let Err(reason) = self.remove_left(parts, left).await {
                warn!(recording.id = %left.recording, "failed to remove files of a deleted recording: {reason}");
                is_done = false;
            }
        }
        is_done
    }

    /// Lists the files of this node that no run continues, and whose end is unknown.
    fn ended_parts(&self, parts: &RecorderParts) -> Vec<(RecordingId, RecordedFile)> {
        let writes = parts.models.store.writes_shared();
        let is_open = |it: &&RecordedFile| it.node.is_some() && parts.folder.has(it) && it.ended_at.is_none();
        let recordings = parts.models.recordings.load();
        let running = self.running.lock();
        let idle = recordings.iter().filter(|it| !running.contains_key(&it.id));
        idle.flat_map(|it| {
            // On the node that writes, a run finishes the file.
            let file = it.file.iter().filter(|_| it.status.is_final() && !writes);
            it.earlier_parts.iter().chain(file).filter(is_open).map(|part| (it.id, part.clone()))
        })
        .collect()
    }

    async fn settle_part(
        &self,
        parts: &RecorderParts,
        node: &str,
        recording: RecordingId,
        part: RecordedFile,
    ) -> Result<(), String> {
        let (folder, path) = (parts.folder.clone(), part.path.clone());
        let cut = spawn_blocking(move || cut_part(&folder, &path));
        let cut = cut.await.map_err(|_| "a thread for files failed".to_owned())?;
        // A file that is gone has nothing.
        let (bytes, ended_at) = cut.map_err(|it| it.to_string())?.unwrap_or((0, part.started_at));
        let (node, path) = (node.to_owned(), part.path);
        let report = FileReport::Ended { node, recording, path, bytes, ended_at };
        self.report_file(parts, report).await?;
        info!(recording.id = %recording, bytes, "a part of a recording ends here");
        Ok(())
    }

    async fn remove_left(&self, parts: &RecorderParts, left: &LeftFiles) -> Result<(), String> {
        let (folder, id, paths) = (parts.folder.clone(), left.recording, left.paths.clone());
        let removing = spawn_blocking(move || {
            for path in &paths {
                folder.remove(path)?;
            }
            folder.remove_beside(id).and(folder.remove_index(id))
        });
        let removed = removing.await.map_err(|_| "a thread for files failed".to_owned())?;
        removed.map_err(|it| it.to_string())?;
        self.report_file(parts, FileReport::Removed { node: left.node.clone(), left: left.id }).await
    }

    /// Notes that files without a node are in the folder of this one, which has recorded them before it belonged to a cluster.
    /// To be called on the node that writes. Returns whether everything is done.
    pub(super) async fn adopt_files(&self, parts: &RecorderParts) -> bool {
        let Some(node) = parts.folder.node().map(str::to_owned) else { return true };
        let recordings = parts.models.recordings.load();
        let lacks_node = |it: &Recording| it.file.as_ref().is_some_and(|it| it.node.is_none());
        let found: Vec<_> = recordings.iter().filter(|it| lacks_node(it)).cloned().collect();
        if found.is_empty() {
            return true;
        }
        let folder = parts.folder.clone();
        let looking = spawn_blocking(move || {
            let is_here = |it: &Arc<Recording>| {
                let path = it.file.as_ref().map(|it| it.path.as_str()).unwrap_or_default();
                matches!(folder.open(path), Ok(Some(_)))
            };
            folder.is_marked().then(|| found.iter().filter(|it| is_here(it)).map(|it| it.id).collect())
        });
        let Ok(Some(found)) = looking.await else { return false };
        let found: Vec<RecordingId> = found;
        let stored = parts.models.store.write(move |write: &mut Write<'_>| {
            for id in found {
                let Some(mut recording) = write.get::<Recording>(id.0)? else { continue };
                if let Some(file) = recording.file.as_mut().filter(|it| it.node.is_none()) {
                    file.node = Some(node.clone());
                    write.put(&recording)?;
                }
            }
            Ok::<_, storage::Error>(())
        });
        stored.await.inspect_err(|error| warn!("failed to note the node of recordings: {error}")).is_ok()
    }
}

/// Returns whether a recording has its file on this node, which was about to put this file in its place.
fn expects(recording: &Recording, node: &str, filled: &FilledFile) -> bool {
    // One from before the cluster names no node.
    let is_there = recording.file.as_ref().is_some_and(|it| it.node.as_deref().is_none_or(|it| it == node));
    let expected = recording.after.missed.as_ref().and_then(|it| it.replacement.as_ref());
    is_there && expected == Some(filled)
}

/// Cuts a file to whole packets, as after a crash. Returns its size and when it was written last; `None` if it is gone.
fn cut_part(folder: &RecordingsFolder, path: &str) -> Result<Option<(u64, i64)>, FolderError> {
    let Some(file) = folder.reopen(path)? else { return Ok(None) };
    let (mut file, written_at) = RecordingFile::reopened(file)?;
    file.sync()?;
    Ok(Some((file.length(), written_at)))
}
