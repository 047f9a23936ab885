//! Finds the guide channels of channels.

use std::sync::Arc;

use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::guide::index::{GuideIndex, SourceOrder};
use domain::ids::GuideChannelId;
use storage::Models;

/// All guide channels, and which of them counts for a channel.
pub(in crate::api::channels::channels) struct GuideLookup {
    index: Arc<GuideIndex>,
    order: SourceOrder,
}

impl GuideLookup {
    pub(in crate::api::channels::channels) fn new(models: &Models) -> Self {
        let sources = models.guide_sources.load();
        Self { index: models.guide.load(), order: SourceOrder::new(sources.iter().map(|it| &**it)) }
    }

    /// Returns the linked guide channel, if it exists.
    pub(in crate::api::channels::channels) fn linked(&self, channel: &Channel) -> Option<GuideChannelId> {
        channel.guide_channel.filter(|it| self.index.get(*it).is_some())
    }

    /// Returns the guide channel whose programmes a channel shows.
    pub(in crate::api::channels::channels) fn guide_channel(
        &self,
        channel: &Channel,
    ) -> Option<&Arc<GuideChannel>> {
        self.index.shown_channel(channel, &self.order)
    }

    /// Returns its id.
    pub(in crate::api::channels::channels) fn shown(&self, channel: &Channel) -> Option<GuideChannelId> {
        self.guide_channel(channel).map(|it| it.id)
    }

    pub(super) fn get(&self, id: GuideChannelId) -> Option<&Arc<GuideChannel>> {
        self.index.get(id)
    }
}
