//! The archives of channels, as lists show them: how far back the past of each channel can be watched.
//!
//! They follow from the streams of the channels, their accounts and the settings of the own time-shift, and are made again
//! after one of these changed.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use domain::account::Account;
use domain::channel::Channel;
use domain::core_settings::TIMESHIFT_SETTINGS;
use domain::ids::{AccountId, ChannelId, StreamId};
use domain::streams::StreamSnapshot;
use domain::timeshift::{TimeShiftMode, TimeShiftSettings};
use parking_lot::Mutex;
use storage::{Models, Table};

const HOURS_PER_DAY: u32 = 24;

/// How far back a channel can be watched, in hours. 0 is not at all.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Depth {
    /// In the archive of a provider.
    of_provider: u32,
    /// In what the gateway keeps itself, as the settings bound it.
    own: u32,
}

/// The depth of the archive of each channel that has one.
#[derive(Debug, Default)]
pub struct ChannelArchives {
    depths: HashMap<ChannelId, Depth>,
    /// Changes with the depths, for entity tags.
    version: u64,
}

impl ChannelArchives {
    fn depth(&self, channel: ChannelId) -> Depth {
        self.depths.get(&channel).copied().unwrap_or_default()
    }

    /// Returns how many hours of the past of a channel can be watched; 0 without an archive.
    pub fn hours(&self, channel: ChannelId) -> u32 {
        let depth = self.depth(channel);
        depth.of_provider.max(depth.own)
    }

    /// Returns how many days of the past of a channel can be watched, rounded up; 0 without an archive.
    pub fn days(&self, channel: ChannelId) -> u32 {
        self.hours(channel).div_ceil(HOURS_PER_DAY)
    }

    /// Returns how many hours of the past of a channel a provider has.
    pub fn hours_of_provider(&self, channel: ChannelId) -> u32 {
        self.depth(channel).of_provider
    }

    /// Returns whether the gateway keeps the past of a channel itself.
    pub fn is_kept(&self, channel: ChannelId) -> bool {
        self.depth(channel).own > 0
    }

    /// Returns the channels of whose past a provider has something, with its hours.
    pub fn provider_hours(&self) -> impl Iterator<Item = (ChannelId, u32)> {
        self.depths.iter().map(|it| (*it.0, it.1.of_provider)).filter(|it| it.1 > 0)
    }

    /// Returns a number that changes with the depths.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the largest depth of the archives that the streams of each channel have at active accounts, and what the
    /// gateway keeps itself. An edge node has no streams, but what full nodes have told.
    fn new(
        channels: &Table<Channel>,
        streams: &StreamSnapshot,
        accounts: &Table<Account>,
        settings: &TimeShiftSettings,
        of_full_nodes: &HashMap<ChannelId, u32>,
    ) -> Self {
        let plays = |id: AccountId| {
            accounts.get(id.0).is_some_and(|it| it.is_active && it.active_profiles().next().is_some())
        };
        let playing: Vec<AccountId> = streams.accounts().into_iter().filter(|it| plays(*it)).collect();
        let archives = streams.archives().filter(|it| playing.binary_search(&it.1).is_ok());
        let archives: HashMap<StreamId, u16> = archives.map(|it| (it.0, it.2)).collect();
        let depth = |it: &Channel| {
            let days = it.streams.iter().filter_map(|id| archives.get(id)).max().copied().unwrap_or(0);
            let is_kept = settings.mode_of(it) != TimeShiftMode::Off;
            Depth {
                of_provider: of_full_nodes.get(&it.id).copied().unwrap_or(u32::from(days) * HOURS_PER_DAY),
                own: if is_kept { settings.hours } else { 0 },
            }
        };
        let depths = channels.iter().map(|it| (it.id, depth(it)));
        let depths: HashMap<ChannelId, Depth> = depths.filter(|it| it.1 != Depth::default()).collect();
        if depths.is_empty() {
            return Self::default();
        }
        let mut sorted: Vec<_> = depths.iter().collect();
        sorted.sort_unstable();
        let mut hasher = DefaultHasher::new();
        sorted.hash(&mut hasher);
        Self { depths, version: hasher.finish() }
    }
}

/// The archives of the present channels.
#[derive(Default)]
pub struct ArchiveCache {
    kept: Mutex<Option<KeptArchives>>,
    /// On an edge node: the hours that providers have of channels, as a full node knows them.
    of_full_nodes: Mutex<Arc<HashMap<ChannelId, u32>>>,
}

struct KeptArchives {
    channels: Arc<Table<Channel>>,
    streams: Arc<StreamSnapshot>,
    accounts: Arc<Table<Account>>,
    settings: TimeShiftSettings,
    of_full_nodes: Arc<HashMap<ChannelId, u32>>,
    archives: Arc<ChannelArchives>,
}

impl ArchiveCache {
    /// Sets the hours that providers have of channels, as a full node has told this edge node.
    pub fn set_of_full_nodes(&self, hours: HashMap<ChannelId, u32>) {
        *self.of_full_nodes.lock() = Arc::new(hours);
    }

    /// Returns the archives. As long as no depth changes it is the same value, so that answers made from it can be kept. The
    /// first call after a change takes some milliseconds for ten thousands of channels.
    pub fn load(&self, models: &Models) -> Arc<ChannelArchives> {
        let (channels, streams, accounts) =
            (models.channels.load(), models.streams.load(), models.accounts.load());
        let settings = timeshift_settings(models);
        // Held while they are made: others who need them would only make them as well.
        let of_full_nodes = Arc::clone(&self.of_full_nodes.lock());
        let mut kept = self.kept.lock();
        if let Some(kept) = &*kept
            && Arc::ptr_eq(&kept.channels, &channels)
            && Arc::ptr_eq(&kept.streams, &streams)
            && Arc::ptr_eq(&kept.accounts, &accounts)
            && kept.settings == settings
            && Arc::ptr_eq(&kept.of_full_nodes, &of_full_nodes)
        {
            return Arc::clone(&kept.archives);
        }
        let archives = ChannelArchives::new(&channels, &streams, &accounts, &settings, &of_full_nodes);
        let before = kept.as_ref().map(|it| &it.archives).filter(|it| it.depths == archives.depths);
        let archives = before.map_or_else(|| Arc::new(archives), Arc::clone);
        let of_cache = Arc::clone(&archives);
        *kept =
            Some(KeptArchives { channels, streams, accounts, settings, of_full_nodes, archives: of_cache });
        archives
    }
}

/// Returns the settings of the own time-shift.
pub fn timeshift_settings(models: &Models) -> TimeShiftSettings {
    let settings = models.settings.load();
    TimeShiftSettings::from_setting(settings.one_by("key", TIMESHIFT_SETTINGS).map(|it| &it.value))
}
