//! Values that follow from records and are used by many requests: the patterns of generated guides, and the channels of
//! each guide channel.

use std::collections::HashMap;
use std::sync::Arc;

use domain::channel::Channel;
use domain::guide::generated::GeneratedGuide;
use domain::guide::index::{GuideIndex, SourceOrder};
use domain::guide::source::GuideSource;
use domain::ids::{ChannelId, GuideChannelId, GuideSourceId};
use parking_lot::Mutex;
use storage::Table;
use tracing::warn;

/// Maximum number of generated guides that are kept. With more, patterns are compiled again.
const GENERATED_MAX: usize = 64;

/// The cache, empty at the start.
#[derive(Default)]
pub(crate) struct GuideCache {
    generated: Mutex<HashMap<GuideSourceId, BuiltGuide>>,
    links: Mutex<Option<Arc<GuideLinks>>>,
}

/// A generated guide, and the time of the last change of its source. `None` if the properties are invalid.
type BuiltGuide = (i64, Option<Arc<GeneratedGuide>>);

/// The channels that show the programmes of each guide channel, for one state of channels and guides.
pub struct GuideLinks {
    channels: Arc<Table<Channel>>,
    index: Arc<GuideIndex>,
    order: SourceOrder,
    by_guide_channel: HashMap<GuideChannelId, Vec<ChannelId>>,
}

impl GuideCache {
    /// Returns the generated guide of a source. `None` if its properties are invalid.
    pub(super) fn generated(&self, source: &GuideSource) -> Option<Arc<GeneratedGuide>> {
        let mut built = self.generated.lock();
        if let Some((at, guide)) = built.get(&source.id)
            && *at == source.updated_at
        {
            return guide.clone();
        }
        let guide = GeneratedGuide::from_properties(&source.custom_properties);
        let guide = guide.inspect_err(|error| {
            warn!("the generated guide \"{}\" has no programmes: {error:?}", source.name);
        });
        let guide = guide.ok().map(Arc::new);
        if built.len() >= GENERATED_MAX {
            built.clear();
        }
        built.insert(source.id, (source.updated_at, guide.clone()));
        guide
    }

    /// Returns the channels of each guide channel in this state.
    pub(super) fn links(
        &self,
        channels: &Arc<Table<Channel>>,
        index: &Arc<GuideIndex>,
        order: &SourceOrder,
    ) -> Arc<GuideLinks> {
        let mut kept = self.links.lock();
        if let Some(links) = &*kept
            && Arc::ptr_eq(&links.channels, channels)
            && Arc::ptr_eq(&links.index, index)
            && links.order == *order
        {
            return Arc::clone(links);
        }
        let mut by_guide_channel = HashMap::<_, Vec<_>>::new();
        for channel in channels.iter() {
            if let Some(guide_channel) = index.shown_channel(channel, order) {
                by_guide_channel.entry(guide_channel.id).or_default().push(channel.id);
            }
        }
        let (channels, index, order) = (Arc::clone(channels), Arc::clone(index), order.clone());
        let links = Arc::new(GuideLinks { channels, index, order, by_guide_channel });
        *kept = Some(Arc::clone(&links));
        links
    }
}

impl GuideLinks {
    /// Returns the channels that show the programmes of a guide channel, by id.
    pub fn channels_of(&self, id: GuideChannelId) -> impl Iterator<Item = &Arc<Channel>> {
        let ids = self.by_guide_channel.get(&id).into_iter().flatten();
        ids.filter_map(|it| self.channels.get(it.0))
    }

    /// Returns the guide channels that have channels.
    pub fn guide_channels(&self) -> impl Iterator<Item = GuideChannelId> {
        self.by_guide_channel.keys().copied()
    }

    /// Returns all channels, also those without a guide.
    pub fn all_channels(&self) -> impl Iterator<Item = &Arc<Channel>> {
        self.channels.iter()
    }
}
