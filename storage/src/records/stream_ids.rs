//! The identities of streams, in pages by id.

use domain::stream_ids::StreamIdPage;

use crate::record::{Record, Sharing};

impl Record for StreamIdPage {
    const COLLECTION: &'static str = "stream_ids";
    const SHARING: Sharing = Sharing::FullNodes;
    /// The hash of an address would tell whether a guessed password is right.
    const SEALED: bool = true;
    /// Only read when streams are damaged.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.number
    }
}
