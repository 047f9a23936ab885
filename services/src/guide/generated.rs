//! The programmes of a generated guide for one channel.

use std::sync::Arc;

use domain::channel::Channel;
use domain::guide::generated::{GeneratedGuide, NameSource, programmes};
use domain::ids::{ChannelId, StreamId};
use domain::stream::Stream;
use storage::Models;

use super::DAY;
use super::entry::{EntryId, GuideEntry};

/// Days before and after now of which lists contain generated programmes. They have no end of their own, and the event
/// that a name announces is close.
const LISTED_DAYS_BEFORE: i64 = 1;
const LISTED_DAYS_AFTER: i64 = 7;

/// The programmes that follow from the name of a channel, or from that of one of its streams.
#[derive(Clone)]
pub(super) struct GeneratedProgrammes {
    guide: Arc<GeneratedGuide>,
    channel: ChannelId,
    name: String,
    /// The stream whose name counts, if it exists.
    stream: Option<StreamId>,
    models: Models,
    /// Seconds since 1970.
    now: i64,
}

impl GeneratedProgrammes {
    pub(super) fn new(guide: Arc<GeneratedGuide>, channel: &Channel, models: &Models, now: i64) -> Self {
        let stream = match guide.name_source() {
            NameSource::Channel => None,
            NameSource::Stream { index } => channel.streams.get(index.saturating_sub(1)).copied(),
        };
        let (channel, name, models) = (channel.id, channel.name.clone(), models.clone());
        Self { guide, channel, name, stream, models, now }
    }

    /// Returns the channel from whose name the programmes follow.
    pub(super) fn channel(&self) -> ChannelId {
        self.channel
    }

    /// Returns the part of a span of time for which a list contains programmes.
    pub(super) fn listed(&self, from: i64, until: i64) -> (i64, i64) {
        (from.max(self.now - LISTED_DAYS_BEFORE * DAY), until.min(self.now + LISTED_DAYS_AFTER * DAY))
    }

    /// Returns the programmes that overlap `from..until`. Reads the store, so it blocks.
    pub(super) fn programmes(&self, from: i64, until: i64) -> Vec<GuideEntry> {
        let stream = self.stream.and_then(|it| self.models.store.collection::<Stream>().get(it.0).ok()?);
        let name = stream.as_ref().map_or(self.name.as_str(), |it| it.name());
        let found = programmes(&self.guide, name, self.now, from, until);
        found.iter().map(|it| GuideEntry::written(EntryId::Generated(self.channel, it.start), it)).collect()
    }
}
