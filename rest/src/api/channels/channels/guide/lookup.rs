//! Finds the guide channels of channels.

use std::sync::Arc;

use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::guide::index::{GuideIndex, SourceOrder};
use domain::guide::source::GuideSource;
use domain::ids::GuideChannelId;
use domain::streams::StreamSnapshot;
use services::guide::GuideOffset;
use storage::{Models, Table};

/// All guide channels, and which of them counts for a channel.
pub(in crate::api::channels::channels) struct GuideLookup {
    index: Arc<GuideIndex>,
    order: SourceOrder,
    sources: Arc<Table<GuideSource>>,
    streams: Arc<StreamSnapshot>,
}

impl GuideLookup {
    pub(in crate::api::channels::channels) fn new(models: &Models) -> Self {
        let sources = models.guide_sources.load();
        let order = SourceOrder::new(sources.iter().map(|it| &**it));
        Self { index: models.guide.load(), order, sources, streams: models.streams.load() }
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

    /// Returns the minutes by which its programmes are later than the guide says; 0 without a guide, and for one without
    /// offsets.
    pub(in crate::api::channels::channels) fn offset_minutes(&self, channel: &Channel) -> i32 {
        let Some(shown) = self.guide_channel(channel) else { return 0 };
        let Some(source) = self.sources.get(shown.source.0) else { return 0 };
        let own = channel.offset_from(shown.id, |it| self.streams.guide_offset(it));
        let GuideOffset { channel, source } = GuideOffset::new(source, own);
        i32::from(channel) + i32::from(source)
    }

    pub(super) fn get(&self, id: GuideChannelId) -> Option<&Arc<GuideChannel>> {
        self.index.get(id)
    }
}
