//! What refreshes found, under the id of the guide source.

use domain::guide::state::GuideState;

use crate::record::{Record, Sharing};

impl Record for GuideState {
    const COLLECTION: &'static str = "guide_states";
    const SHARING: Sharing = Sharing::AllNodes;
    /// The next refresh writes it again.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.source.0
    }
}
