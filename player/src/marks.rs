//! The marks of channels that are written to playlists and panels: those of the providers of their streams, such as that of
//! a radio station.
//!
//! They are made again after the channels or the streams changed.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use domain::channel::Channel;
use domain::entry_details::ChannelMarks;
use domain::ids::{ChannelId, StreamId};
use domain::streams::StreamSnapshot;
use parking_lot::Mutex;
use storage::{Models, Table};

/// The marks of each channel that has some.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct MarkedChannels {
    marks: HashMap<ChannelId, Arc<ChannelMarks>>,
    /// Changes with the marks, for entity tags.
    version: u64,
}

impl MarkedChannels {
    /// Returns the marks of a channel.
    pub(super) fn get(&self, channel: ChannelId) -> Option<&ChannelMarks> {
        self.marks.get(&channel).map(|it| &**it)
    }

    /// Returns whether a channel is a radio station.
    pub(super) fn is_radio(&self, channel: ChannelId) -> bool {
        self.get(channel).is_some_and(|it| it.is_radio)
    }

    /// Returns a number that changes with the marks.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// A channel has the marks of its first stream that has some.
    fn new(channels: &Table<Channel>, streams: &StreamSnapshot) -> Self {
        let of_streams: HashMap<StreamId, &Arc<ChannelMarks>> = streams.marks().collect();
        if of_streams.is_empty() {
            return Self::default();
        }
        let marks_of =
            |it: &Channel| it.streams.iter().find_map(|id| of_streams.get(id)).map(|it| Arc::clone(it));
        let marks = channels.iter().filter_map(|it| Some((it.id, marks_of(it)?)));
        let marks: HashMap<_, _> = marks.collect();
        let mut sorted: Vec<_> = marks.iter().collect();
        sorted.sort_unstable();
        let mut hasher = DefaultHasher::new();
        sorted.hash(&mut hasher);
        Self { version: hasher.finish(), marks }
    }
}

/// The marks of the present channels.
#[derive(Default)]
pub(crate) struct MarkCache(Mutex<Option<KeptMarks>>);

struct KeptMarks {
    channels: Arc<Table<Channel>>,
    streams: Arc<StreamSnapshot>,
    marked: Arc<MarkedChannels>,
}

impl MarkCache {
    /// Returns the marks. As long as none changes it is the same value, so that answers made from it can be kept.
    pub(super) fn load(&self, models: &Models) -> Arc<MarkedChannels> {
        let (channels, streams) = (models.channels.load(), models.streams.load());
        // Held while they are made: others who need them would only make them as well.
        let mut kept = self.0.lock();
        if let Some(kept) = &*kept
            && Arc::ptr_eq(&kept.channels, &channels)
            && Arc::ptr_eq(&kept.streams, &streams)
        {
            return Arc::clone(&kept.marked);
        }
        let marked = MarkedChannels::new(&channels, &streams);
        let before = kept.as_ref().map(|it| &it.marked).filter(|it| ***it == marked);
        let marked = before.map_or_else(|| Arc::new(marked), Arc::clone);
        *kept = Some(KeptMarks { channels, streams, marked: Arc::clone(&marked) });
        marked
    }
}
