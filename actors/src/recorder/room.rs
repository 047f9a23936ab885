//! The room for recordings.

use domain::recording::Recording;
use domain::recording::retention::{RetentionCause, RetentionPlan};
use tokio::time::Instant;

/// The room for recordings at the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingRoom {
    /// Whether recordings have files on this node, and their folder lacks its marker.
    pub is_unmarked: bool,
    /// Room on the disk in bytes, if the folder has its marker.
    pub available: Option<u64>,
    pub(super) plan: RetentionPlan,
    /// Begin of the look.
    pub(super) looked_at: Option<Instant>,
}

impl RecordingRoom {
    /// Returns why a recording cannot begin; `None` if it can.
    pub(super) fn refusal(&self, it: &Recording) -> Option<RetentionCause> {
        self.plan.refusal(it)
    }

    /// Returns whether the folder lacks its marker after a file in it was opened at this time. Before the next look, the last
    /// one may be older than the file.
    pub(super) fn lacks_disk_since(&self, opened_at: Instant) -> bool {
        self.is_unmarked && self.looked_at.is_some_and(|it| it >= opened_at)
    }

    /// Returns whether recordings cannot begin because the disk is almost full.
    pub fn is_disk_full(&self) -> bool {
        self.plan.is_disk_full
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_look_before_a_file_was_opened_does_not_say_that_its_disk_is_lost() {
        let looked_at = Instant::now();
        let room = RecordingRoom { is_unmarked: true, looked_at: Some(looked_at), ..Default::default() };
        assert!(room.lacks_disk_since(looked_at - SECOND));
        assert!(!room.lacks_disk_since(looked_at + Duration::from_millis(1)));
        assert!(!RecordingRoom { is_unmarked: false, ..room }.lacks_disk_since(looked_at - SECOND));
    }
}
