//! Versions of days of a guide source, under the id of the source.

use domain::guide::schedules_direct::GuideMarks;

use crate::record::{Record, Sharing};

impl Record for GuideMarks {
    const COLLECTION: &'static str = "guide_marks";
    const SHARING: Sharing = Sharing::FullNodes;
    /// Without them, the next refresh fetches every day.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.source.0
    }
}
