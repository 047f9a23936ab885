//! Guide channels, in blocks per source, because a guide names tens of thousands.

use domain::guide::channel::GuideChannel;

use crate::record::{CollectionKind, Record, Sharing};

impl Record for GuideChannel {
    const COLLECTION: &'static str = "guide_channels";
    const SHARING: Sharing = Sharing::AllNodes;
    const KIND: CollectionKind = CollectionKind::Paged;
    /// The next refresh writes them again. Links of channels to lost ones are lost.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn owner(&self) -> u64 {
        u64::from(self.source.0)
    }
}
