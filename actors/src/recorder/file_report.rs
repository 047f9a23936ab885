//! What a node of a cluster reports of its files to the node that writes the records.

use std::pin::Pin;

use domain::ids::RecordingId;
use domain::recording::{FileWork, FilledFile};
use serde::{Deserialize, Serialize};

/// A fact about files of a node, for the node that writes the records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileReport {
    /// The size in bytes and the end of a part that the node had to leave.
    Ended { node: String, recording: RecordingId, path: String, bytes: u64, ended_at: i64 },
    /// The files of a deleted recording are removed. Contains the id of [`LeftFiles`](domain::recording::LeftFiles).
    Removed { node: String, left: u32 },
    /// A step of the work on a file, on the record as the node knew it before.
    Work { node: String, recording: RecordingId, before: Box<FileWork>, now: Box<FileWork> },
    /// A file with more has taken the place of the present one, as the record says that it would.
    Filled { node: String, recording: RecordingId, filled: FilledFile },
}

/// Sends reports to the node that writes the records.
pub trait ReportFiles: Send + Sync {
    /// Returns once the report is stored.
    ///
    /// # Errors
    /// No node writes now, or it does not answer. The report is repeated later.
    fn report(&self, report: FileReport) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>>;
}
