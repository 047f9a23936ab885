//! All channels in the orders of the list, with the texts that searches compare: made once for each version of them.

use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use domain::channel::Channel;
use domain::group::Group;
use parking_lot::Mutex;
use storage::{Models, Table};

/// The rows for the present channels. Lists that are requested while nothing changes share them.
#[derive(Default)]
pub(crate) struct ChannelRowCache(Mutex<Option<Arc<ChannelRows>>>);

impl ChannelRowCache {
    /// Returns the rows of all channels. The first call after a change takes some milliseconds for ten thousands.
    pub(crate) fn load(&self, models: &Models) -> Arc<ChannelRows> {
        let (channels, groups) = (models.channels.load(), models.groups.load());
        // Held while the rows are made: others who need them would only make them as well.
        let mut cache = self.0.lock();
        let is_current =
            |it: &&Arc<ChannelRows>| Arc::ptr_eq(&it.channels, &channels) && Arc::ptr_eq(&it.groups, &groups);
        if let Some(rows) = cache.as_ref().filter(is_current) {
            return Arc::clone(rows);
        }
        let rows = Arc::new(ChannelRows::new(channels, groups));
        *cache = Some(Arc::clone(&rows));
        rows
    }
}

/// All channels by number; those without one come last.
pub(crate) struct ChannelRows {
    channels: Arc<Table<Channel>>,
    groups: Arc<Table<Group>>,
    rows: Vec<ChannelRow>,
    /// Positions of the rows by name, ascending and descending.
    by_name: [OnceLock<Box<[u32]>>; 2],
}

/// A channel, with texts in lower case.
pub(crate) struct ChannelRow {
    pub(crate) channel: Arc<Channel>,
    pub(crate) name: Box<str>,
    pub(crate) tvg_id: Box<str>,
    pub(crate) group: Box<str>,
}

impl ChannelRows {
    fn new(channels: Arc<Table<Channel>>, groups: Arc<Table<Group>>) -> Self {
        let row = |channel: &Arc<Channel>| {
            let group = channel.group.and_then(|it| groups.get(it.0));
            ChannelRow {
                channel: Arc::clone(channel),
                name: channel.name.to_lowercase().into(),
                tvg_id: channel.tvg_id.as_deref().unwrap_or_default().to_lowercase().into(),
                group: group.map(|it| it.name.to_lowercase()).unwrap_or_default().into(),
            }
        };
        let mut rows: Vec<_> = channels.iter().map(row).collect();
        rows.sort_by_key(|it| (it.channel.number.is_none(), it.channel.number));
        Self { channels, groups, rows, by_name: Default::default() }
    }

    /// Iterates over the channels by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ChannelRow> {
        self.rows.iter()
    }

    /// Iterates over the channels by name, regardless of case. Channels with equal names are by number.
    pub(crate) fn by_name(&self, is_descending: bool) -> impl Iterator<Item = &ChannelRow> {
        let positions = self.by_name[usize::from(is_descending)].get_or_init(|| {
            // There are fewer channels than ids, which have 32 bits.
            let mut positions: Vec<u32> = (0..).take(self.rows.len()).collect();
            let name = |at: &u32| &self.rows[*at as usize].name;
            match is_descending {
                true => positions.sort_by_key(|at| Reverse(name(at))),
                false => positions.sort_by_key(name),
            }
            positions.into()
        });
        positions.iter().map(|at| &self.rows[*at as usize])
    }
}
