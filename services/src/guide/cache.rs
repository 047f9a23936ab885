//! Values that follow from records and are used by many requests: the patterns of generated guides, and the channels of
//! each guide channel.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use domain::channel::Channel;
use domain::core_settings::EPG_SETTINGS;
use domain::guide::generated::GeneratedGuide;
use domain::guide::index::{GuideIndex, SourceOrder};
use domain::guide::placeholders::PlaceholderSettings;
use domain::guide::source::GuideSource;
use domain::ids::{ChannelId, GuideChannelId, GuideSourceId, StreamId};
use domain::streams::StreamSnapshot;
use parking_lot::Mutex;
use storage::{Models, Table};
use tracing::warn;

use super::entry::GuideOffset;

/// Maximum number of generated guides that are kept. With more, patterns are compiled again.
const GENERATED_MAX: usize = 64;

/// The cache, empty at the start.
#[derive(Default)]
pub(crate) struct GuideCache {
    generated: Mutex<HashMap<GuideSourceId, BuiltGuide>>,
    links: Mutex<Option<Arc<GuideLinks>>>,
    placeholders: Mutex<Option<(PlaceholderSettings, Option<Arc<GeneratedGuide>>)>>,
    /// The streams whose offsets were read last, and their version.
    offsets: Mutex<Option<(Arc<StreamSnapshot>, u64)>>,
}

/// Returns the settings of placeholders.
pub(super) fn placeholder_settings(models: &Models) -> PlaceholderSettings {
    let settings = models.settings.load();
    PlaceholderSettings::from_setting(settings.one_by("key", EPG_SETTINGS).map(|it| &it.value))
}

/// A generated guide, and the time of the last change of its source. `None` if the properties are invalid.
type BuiltGuide = (i64, Option<Arc<GeneratedGuide>>);

/// The channels that show the programmes of each guide channel, for one state of channels, their streams and guides.
pub struct GuideLinks {
    state: LinkedState,
    by_guide_channel: HashMap<GuideChannelId, Vec<GuideLink>>,
}

/// A channel that shows the programmes of a guide channel.
struct GuideLink {
    channel: ChannelId,
    minutes: i16,
    is_further: bool,
}

/// A channel that shows the programmes of a guide channel.
pub struct ShownBy<'a> {
    pub channel: &'a Arc<Channel>,
    /// The minutes by which it shows them later.
    pub minutes: i16,
    /// Whether it shows only those that its other guide channels leave room for.
    pub is_further: bool,
}

/// Everything that decides which guide channel a channel shows.
pub(super) struct LinkedState {
    pub(super) channels: Arc<Table<Channel>>,
    pub(super) streams: Arc<StreamSnapshot>,
    pub(super) index: Arc<GuideIndex>,
    pub(super) sources: Arc<Table<GuideSource>>,
    pub(super) order: SourceOrder,
}

impl LinkedState {
    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.channels, &other.channels)
            && Arc::ptr_eq(&self.streams, &other.streams)
            && Arc::ptr_eq(&self.index, &other.index)
            && Arc::ptr_eq(&self.sources, &other.sources)
    }
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

    /// Returns the guide of channels without one, if the settings want it.
    pub(super) fn placeholders(&self, models: &Models) -> Option<Arc<GeneratedGuide>> {
        let settings = placeholder_settings(models);
        let mut kept = self.placeholders.lock();
        if let Some((_, guide)) = kept.as_ref().filter(|it| it.0 == settings) {
            return guide.clone();
        }
        let guide = settings.guide().map(Arc::new);
        *kept = Some((settings, guide.clone()));
        guide
    }

    /// Returns the channels of each guide channel in this state.
    pub(super) fn links(&self, state: LinkedState) -> Arc<GuideLinks> {
        let mut kept = self.links.lock();
        if let Some(links) = kept.as_ref().filter(|it| it.state.is_same(&state)) {
            return Arc::clone(links);
        }
        let mut by_guide_channel = HashMap::<_, Vec<_>>::new();
        for channel in state.channels.iter() {
            for (at, shown) in state.index.shown_channels(channel, &state.order).into_iter().enumerate() {
                let own = || channel.offset_from(shown.id, |it| state.streams.guide_offset(it));
                let source = state.sources.get(shown.source.0);
                let minutes = source.map_or(0, |it| GuideOffset::new(it, own()).channel);
                let link = GuideLink { channel: channel.id, minutes, is_further: at > 0 };
                by_guide_channel.entry(shown.id).or_default().push(link);
            }
        }
        let links = Arc::new(GuideLinks { state, by_guide_channel });
        *kept = Some(Arc::clone(&links));
        links
    }

    /// Returns a number that changes with the offsets that playlists state.
    pub(super) fn offsets_version(&self, streams: &Arc<StreamSnapshot>) -> u64 {
        let mut kept = self.offsets.lock();
        if let Some((_, version)) = kept.as_ref().filter(|it| Arc::ptr_eq(&it.0, streams)) {
            return *version;
        }
        let hash = |it: (StreamId, i16)| {
            let mut hasher = DefaultHasher::new();
            it.hash(&mut hasher);
            hasher.finish()
        };
        // The streams come in no order.
        let version = streams.guide_offsets().map(hash).fold(0, u64::wrapping_add);
        *kept = Some((Arc::clone(streams), version));
        version
    }
}

impl GuideLinks {
    /// Returns the channels that show the programmes of a guide channel, by id.
    pub fn channels_of(&self, id: GuideChannelId) -> impl Iterator<Item = &Arc<Channel>> {
        self.shown_by(id).map(|it| it.channel)
    }

    /// Returns the same channels, and how each of them shows the programmes.
    pub fn shown_by(&self, id: GuideChannelId) -> impl Iterator<Item = ShownBy<'_>> {
        let links = self.by_guide_channel.get(&id).into_iter().flatten();
        links.filter_map(|it| {
            let channel = self.state.channels.get(it.channel.0)?;
            Some(ShownBy { channel, minutes: it.minutes, is_further: it.is_further })
        })
    }

    /// Returns the guide channels that have channels.
    pub fn guide_channels(&self) -> impl Iterator<Item = GuideChannelId> {
        self.by_guide_channel.keys().copied()
    }

    /// Returns all channels, also those without a guide.
    pub fn all_channels(&self) -> impl Iterator<Item = &Arc<Channel>> {
        self.state.channels.iter()
    }
}
