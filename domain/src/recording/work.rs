//! The work on the file of a recording by a node that does not write the records: it changes what it knows of the record, and
//! the node that writes takes each step if the record is still the same.

use serde::{Deserialize, Serialize};

use super::{AfterRecording, DvrSettings, RecordedFile, Recording};

/// The members of a record that change with the work on its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileWork {
    pub file: RecordedFile,
    pub after: AfterRecording,
}

impl Recording {
    /// Returns the state of the work on the file; `None` without a file.
    pub fn file_work(&self) -> Option<FileWork> {
        Some(FileWork { file: self.file.clone()?, after: self.after.clone() })
    }

    /// Queues the work that the settings want, when the file has ended.
    pub fn queue_work(&mut self, settings: &DvrSettings, now: i64) {
        self.after.queue(settings, now);
        if !self.earlier_parts.is_empty() {
            self.after.without_programs();
        }
    }

    /// Takes a step of the work of a node on its file. Returns false, and changes nothing, if the record is not as it was
    /// before that step, or the file is not that of the node.
    pub fn take_step(&mut self, node: &str, before: &FileWork, now: FileWork) -> bool {
        let FileWork { file, after } = now;
        let RecordedFile { path, bytes, .. } = before.file.clone();
        let is_its_file = before.file.node.as_deref() == Some(node);
        // Only a conversion gives it another path and size.
        let is_same_file = RecordedFile { path, bytes, ..file.clone() } == before.file;
        if !is_its_file || !is_same_file || self.file_work().as_ref() != Some(before) {
            return false;
        }
        (self.file, self.after) = (Some(file), after);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::with_file;
    use crate::recording::{AfterStep, RemuxFormat};

    fn attic_recording() -> Recording {
        let mut it = with_file();
        let file = it.file.as_mut().unwrap();
        (file.node, file.ended_at) = (Some("attic".to_owned()), Some(file.started_at + 1000));
        let settings = DvrSettings { remux: Some(RemuxFormat::Mkv), ..DvrSettings::default() };
        it.queue_work(&settings, 7);
        it
    }

    #[test]
    fn a_step_of_the_node_of_a_file_is_taken_once_and_only_on_the_record_that_it_knew() {
        let mut record = attic_recording();
        let before = record.file_work().unwrap();
        let mut copy = record.clone();
        assert_eq!(copy.after.begin(AfterStep::Remux), Some(true));
        let now = copy.file_work().unwrap();
        assert!(!record.clone().take_step("cellar", &before, now.clone()));
        let mut elsewhere = now.clone();
        elsewhere.file.node = Some("cellar".to_owned());
        assert!(!record.clone().take_step("attic", &before, elsewhere), "a file does not move");
        assert!(record.take_step("attic", &before, now.clone()));
        assert_eq!(record, copy);
        assert!(!record.take_step("attic", &before, now), "the record has changed since");
    }

    #[test]
    fn only_one_whole_file_is_for_programs() {
        let mut it = attic_recording();
        let part = it.file.clone().unwrap();
        it.earlier_parts.push(part);
        let settings =
            DvrSettings { remux: Some(RemuxFormat::Mkv), write_nfo: true, ..DvrSettings::default() };
        it.queue_work(&settings, 8);
        assert_eq!(it.next_step(), Some((8, AfterStep::Nfo)));
    }
}
