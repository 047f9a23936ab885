//! All guide channels in memory, and the rule that decides whose programmes a channel shows.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::channel::{Channel, FURTHER_GUIDES_MAX};
use crate::guide::channel::GuideChannel;
use crate::guide::source::GuideSource;
use crate::ids::{GuideChannelId, GuideSourceId};

/// All guide channels at one moment. Immutable; the next one shares the sources that did not change.
#[derive(Debug, Clone, Default)]
pub struct GuideIndex {
    sources: BTreeMap<GuideSourceId, Arc<SourceChannels>>,
}

/// The guide channels of a source.
#[derive(Debug)]
struct SourceChannels {
    /// Sorted by id.
    channels: Vec<Arc<GuideChannel>>,
    /// Positions in `channels`, by key in lower case. Of keys that differ in case only, the lowest id has the entry.
    by_key: HashMap<Box<str>, u32>,
    /// Positions of the others of such keys, by their exact key.
    by_exact_key: HashMap<Box<str>, u32>,
}

impl GuideIndex {
    /// Returns an index in which these are the channels of the source.
    pub fn with(&self, source: GuideSourceId, mut channels: Vec<Arc<GuideChannel>>) -> Self {
        channels.sort_unstable_by_key(|it| it.id);
        let (mut by_key, mut by_exact_key) = (HashMap::with_capacity(channels.len()), HashMap::new());
        for (at, channel) in (0..).zip(&channels) {
            match by_key.entry(channel.key.to_lowercase().into_boxed_str()) {
                Entry::Vacant(free) => drop(free.insert(at)),
                Entry::Occupied(_) => drop(by_exact_key.entry(channel.key.as_str().into()).or_insert(at)),
            }
        }
        let mut next = self.clone();
        next.sources.insert(source, Arc::new(SourceChannels { channels, by_key, by_exact_key }));
        next
    }

    /// Returns an index without the channels of a source.
    pub fn without(&self, source: GuideSourceId) -> Self {
        let mut next = self.clone();
        next.sources.remove(&source);
        next
    }

    pub fn get(&self, id: GuideChannelId) -> Option<&Arc<GuideChannel>> {
        self.sources.values().find_map(|it| {
            let at = it.channels.binary_search_by_key(&id, |it| it.id).ok()?;
            it.channels.get(at)
        })
    }

    /// Returns the channels of a source, by id.
    pub fn source_channels(&self, source: GuideSourceId) -> &[Arc<GuideChannel>] {
        self.sources.get(&source).map_or(&[], |it| &it.channels)
    }

    /// Returns the channel of a source with this key, or with this key in another case.
    pub fn by_key(&self, source: GuideSourceId, key: &str) -> Option<&Arc<GuideChannel>> {
        let (of_source, lower) = (self.sources.get(&source)?, key.to_lowercase());
        of_source.by_exact_key(key, &lower).or_else(|| of_source.by_lower_key(&lower))
    }

    /// Iterates over all channels, by source and id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<GuideChannel>> {
        self.sources.values().flat_map(|it| &it.channels)
    }

    /// Lists the sources that have channels.
    pub fn sources(&self) -> impl Iterator<Item = GuideSourceId> {
        self.sources.keys().copied()
    }

    pub fn len(&self) -> usize {
        self.sources.values().map(|it| it.channels.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all guide channels whose programmes a channel shows, in order: each fills what those before it lack. The first
    /// is that of [`Self::shown_channel`]; then come the further ones that an admin chose; then, without a link, those with
    /// the same key in other sources.
    pub fn shown_channels(&self, channel: &Channel, sources: &SourceOrder) -> Vec<&Arc<GuideChannel>> {
        let first = self.shown_channel(channel, sources);
        let further = channel.further_guides.iter().filter_map(|it| self.get(*it));
        let further = further.filter(|it| sources.is_active(it.source));
        let key = channel.tvg_id.as_deref().map_or("", str::trim);
        let is_linked = first.is_some_and(|it| channel.guide_channel == Some(it.id));
        // In the case of the first one: another case is another channel.
        let of_key = first.filter(|_| !is_linked).into_iter().flat_map(|first| {
            let lower = key.to_lowercase();
            let in_order = sources.0.iter().filter_map(|it| self.sources.get(it));
            let found: Vec<_> = in_order.filter_map(|it| it.by_exact_key(&first.key, &lower)).collect();
            found
        });
        let mut shown: Vec<&Arc<GuideChannel>> = Vec::new();
        for it in first.into_iter().chain(further).chain(of_key) {
            if shown.len() <= FURTHER_GUIDES_MAX && !shown.iter().any(|known| known.id == it.id) {
                shown.push(it);
            }
        }
        shown
    }

    /// Returns the guide channel whose programmes a channel shows: the linked one if its source is active, otherwise the
    /// one whose key equals the `tvg_id` of the channel in the first active source that has one. Where none has, the case of
    /// letters does not count: keys that differ in case are two channels.
    pub fn shown_channel(&self, channel: &Channel, sources: &SourceOrder) -> Option<&Arc<GuideChannel>> {
        let linked = channel.guide_channel.and_then(|it| self.get(it));
        if let Some(linked) = linked.filter(|it| sources.is_active(it.source)) {
            return Some(linked);
        }
        let key = channel.tvg_id.as_deref().map(str::trim).filter(|it| !it.is_empty())?;
        let lower = key.to_lowercase();
        let in_order = || sources.0.iter().filter_map(|it| self.sources.get(it));
        let exact = in_order().find_map(|it| it.by_exact_key(key, &lower));
        exact.or_else(|| in_order().find_map(|it| it.by_lower_key(&lower)))
    }
}

impl SourceChannels {
    /// Returns the channel with exactly this key, which is given in lower case as well.
    fn by_exact_key(&self, key: &str, lower: &str) -> Option<&Arc<GuideChannel>> {
        let other = || self.by_exact_key.get(key).and_then(|at| self.channels.get(*at as usize));
        self.by_lower_key(lower).filter(|it| it.key == key).or_else(other)
    }

    fn by_lower_key(&self, key: &str) -> Option<&Arc<GuideChannel>> {
        self.channels.get(*self.by_key.get(key)? as usize)
    }
}

/// The active guide sources in the order in which they count: the highest priority first, then the lowest id. Build it
/// once per request, not once per channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceOrder(Vec<GuideSourceId>);

impl SourceOrder {
    /// Takes the active ones of these sources.
    pub fn new<'a>(sources: impl IntoIterator<Item = &'a GuideSource>) -> Self {
        let mut active: Vec<_> = sources.into_iter().filter(|it| it.is_active).collect();
        active.sort_unstable_by_key(|it| (std::cmp::Reverse(it.priority), it.id));
        Self(active.into_iter().map(|it| it.id).collect())
    }

    pub fn is_active(&self, source: GuideSourceId) -> bool {
        self.0.contains(&source)
    }

    /// Iterates over the active sources, the first one counts most.
    pub fn iter(&self) -> impl Iterator<Item = GuideSourceId> {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::guide::source::GuideSourceKind;
    use crate::ids::ChannelId;

    fn source(id: u32, priority: i32, is_active: bool) -> GuideSource {
        let source = GuideSource::new(GuideSourceId(id), id.to_string(), GuideSourceKind::Xmltv, 0);
        GuideSource { priority, is_active, ..source }
    }

    fn guide_channel(id: u32, source: u32, key: &str) -> Arc<GuideChannel> {
        Arc::new(GuideChannel {
            id: GuideChannelId(id),
            source: GuideSourceId(source),
            key: key.to_owned(),
            names: Vec::new(),
            icon: None,
        })
    }

    fn index() -> GuideIndex {
        GuideIndex::default()
            .with(GuideSourceId(1), vec![guide_channel(11, 1, "News.ch"), guide_channel(10, 1, "sport.ch")])
            .with(GuideSourceId(2), vec![guide_channel(20, 2, "NEWS.CH"), guide_channel(21, 2, "Zürich")])
            .with(GuideSourceId(3), vec![guide_channel(30, 3, "news.ch")])
    }

    fn channel(tvg_id: Option<&str>, link: Option<u32>) -> Channel {
        let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "one", 0);
        channel.tvg_id = tvg_id.map(str::to_owned);
        channel.guide_channel = link.map(GuideChannelId);
        channel
    }

    #[test]
    fn a_channel_shows_its_linked_guide_channel_or_the_one_with_its_tvg_id() {
        let index = index();
        let order = SourceOrder::new(&[source(1, 0, true), source(2, 5, true), source(3, 9, false)]);
        let found = |tvg_id, link| index.shown_channel(&channel(tvg_id, link), &order).map(|it| it.id.0);
        // The source with the highest priority wins; an inactive one does not count.
        assert_eq!(found(Some(" news.CH "), None), Some(20));
        assert_eq!(found(Some("SPORT.ch"), None), Some(10));
        assert_eq!(found(Some("ZÜRICH"), None), Some(21));
        // A link counts more than the id, unless its source is inactive or the guide channel is gone.
        assert_eq!(found(Some("news.ch"), Some(10)), Some(10));
        assert_eq!(found(Some("news.ch"), Some(30)), Some(20));
        assert_eq!(found(Some("news.ch"), Some(99)), Some(20));
        assert_eq!(found(None, Some(30)), None);
        for tvg_id in [None, Some(""), Some(" "), Some("other")] {
            assert_eq!(found(tvg_id, None), None);
        }
    }

    #[test]
    fn keys_that_differ_in_case_are_two_channels() {
        let of_one =
            vec![guide_channel(1, 1, "rtl"), guide_channel(2, 1, "RTL"), guide_channel(3, 1, "Ärte")];
        let of_two = vec![guide_channel(4, 2, "Rtl"), guide_channel(5, 2, "ärte")];
        let index = GuideIndex::default().with(GuideSourceId(1), of_one).with(GuideSourceId(2), of_two);
        let order = SourceOrder::new(&[source(1, 5, true), source(2, 0, true)]);
        for (tvg_id, expected) in [
            ("rtl", 1),
            ("RTL", 2),
            // The case of another source is exact.
            ("Rtl", 4),
            ("ärte", 5),
            // None is exact, so the first one counts.
            ("rTL", 1),
            ("ÄRTE", 3),
        ] {
            let found = index.shown_channel(&channel(Some(tvg_id), None), &order);
            assert_eq!(found.map(|it| it.id.0), Some(expected), "{tvg_id}");
        }
        for (key, expected) in [("rtl", 1), ("RTL", 2), ("Rtl", 1)] {
            assert_eq!(index.by_key(GuideSourceId(1), key).map(|it| it.id.0), Some(expected), "{key}");
        }
    }

    #[test]
    fn further_guides_follow_the_first_one_in_order() {
        let index = index().with(GuideSourceId(4), vec![guide_channel(40, 4, "News.ch")]);
        let sources = [source(1, 0, true), source(2, 5, true), source(3, 9, false), source(4, 0, true)];
        let order = SourceOrder::new(&sources);
        let shown = |tvg_id, link, further: &[u32]| {
            let further_guides = further.iter().map(|it| GuideChannelId(*it)).collect();
            let channel = Channel { further_guides, ..channel(tvg_id, link) };
            index.shown_channels(&channel, &order).iter().map(|it| it.id.0).collect::<Vec<_>>()
        };
        assert_eq!(shown(Some("News.ch"), None, &[]), [11, 40], "in the same case only");
        assert_eq!(shown(Some("news.CH"), None, &[]), [20]);
        assert_eq!(
            shown(Some("News.ch"), None, &[21, 40, 30, 99]),
            [11, 21, 40],
            "each once, active ones only"
        );
        assert_eq!(shown(Some("News.ch"), Some(10), &[]), [10], "a link replaces the id");
        assert_eq!(shown(Some("News.ch"), Some(10), &[20, 11]), [10, 20, 11]);
        assert_eq!(shown(None, None, &[20]), [20], "without a first one");
        assert_eq!(shown(None, None, &[]), [0_u32; 0]);
    }

    #[test]
    fn sources_of_one_priority_count_by_their_ids() {
        let order = SourceOrder::new(&[source(3, 1, true), source(1, 0, true), source(2, 1, true)]);
        assert_eq!(order.iter().map(|it| it.0).collect::<Vec<_>>(), [2, 3, 1]);
        assert!(order.is_active(GuideSourceId(1)) && !order.is_active(GuideSourceId(4)));
    }

    #[test]
    fn the_index_finds_channels_by_id_source_and_key() {
        let index = index();
        assert_eq!(index.len(), 5);
        assert_eq!(index.get(GuideChannelId(21)).map(|it| &*it.key), Some("Zürich"));
        assert_eq!(index.get(GuideChannelId(12)), None);
        let ids = |it: &[Arc<GuideChannel>]| it.iter().map(|it| it.id.0).collect::<Vec<_>>();
        assert_eq!(ids(index.source_channels(GuideSourceId(1))), [10, 11]);
        assert_eq!(ids(index.source_channels(GuideSourceId(9))), [] as [u32; 0]);
        assert_eq!(index.by_key(GuideSourceId(1), "NEWS.ch").map(|it| it.id.0), Some(11));
        assert_eq!(index.by_key(GuideSourceId(1), "zürich"), None);
        let less = index.without(GuideSourceId(1));
        assert_eq!((less.len(), index.len(), less.get(GuideChannelId(10))), (3, 5, None));
        let of_two = [guide_channel(5, 4, "a"), guide_channel(4, 4, "A")];
        let twice = less.with(GuideSourceId(4), of_two.to_vec());
        assert_eq!(twice.by_key(GuideSourceId(4), "a").map(|it| it.id.0), Some(5));
        assert_eq!(twice.by_key(GuideSourceId(4), "A").map(|it| it.id.0), Some(4));
    }
}
