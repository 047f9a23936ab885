//! The health of streams, under the id of the stream.

use domain::health::StreamHealth;

use crate::record::{Record, Sharing};

impl Record for StreamHealth {
    const COLLECTION: &'static str = "stream_health";
    const SHARING: Sharing = Sharing::Local;
    /// The next plays measure it again.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.stream.0
    }
}
