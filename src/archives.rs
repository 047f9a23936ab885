//! The archives of channels, as lists show them: how far back the past of each channel can be watched.
//!
//! They follow from the streams of the channels and their accounts, and are made again after one of these changed.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use domain::account::Account;
use domain::channel::Channel;
use domain::ids::{AccountId, ChannelId, StreamId};
use domain::streams::StreamSnapshot;
use parking_lot::Mutex;
use storage::{Models, Table};

/// The depth of the archive of each channel that has one.
#[derive(Debug, Default)]
pub(crate) struct ChannelArchives {
    days: HashMap<ChannelId, u32>,
    /// Changes with the depths, for entity tags.
    version: u64,
}

impl ChannelArchives {
    /// Returns how many days of the past of a channel can be watched; 0 without an archive.
    pub(crate) fn days(&self, channel: ChannelId) -> u32 {
        self.days.get(&channel).copied().unwrap_or(0)
    }

    /// Returns a number that changes with the depths.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Returns the largest depth of the archives that the streams of each channel have at active accounts.
    fn of(channels: &Table<Channel>, streams: &StreamSnapshot, accounts: &Table<Account>) -> Self {
        let plays = |id: AccountId| {
            accounts.get(id.0).is_some_and(|it| it.is_active && it.active_profiles().next().is_some())
        };
        let playing: Vec<AccountId> = streams.accounts().into_iter().filter(|it| plays(*it)).collect();
        let archives = streams.archives().filter(|it| playing.binary_search(&it.1).is_ok());
        let archives: HashMap<StreamId, u16> = archives.map(|it| (it.0, it.2)).collect();
        if archives.is_empty() {
            return Self::default();
        }
        let deepest = |it: &Channel| it.streams.iter().filter_map(|id| archives.get(id)).max().copied();
        let days = channels.iter().filter_map(|it| Some((it.id, u32::from(deepest(it)?))));
        let days: HashMap<ChannelId, u32> = days.collect();
        let mut sorted: Vec<_> = days.iter().collect();
        sorted.sort_unstable();
        let mut hasher = DefaultHasher::new();
        sorted.hash(&mut hasher);
        Self { days, version: hasher.finish() }
    }
}

/// The archives of the present channels.
#[derive(Default)]
pub(crate) struct ArchiveCache(Mutex<Option<KeptArchives>>);

struct KeptArchives {
    channels: Arc<Table<Channel>>,
    streams: Arc<StreamSnapshot>,
    accounts: Arc<Table<Account>>,
    archives: Arc<ChannelArchives>,
}

impl ArchiveCache {
    /// Returns the archives. As long as no depth changes it is the same value, so that answers made from it can be kept. The
    /// first call after a change takes some milliseconds for ten thousands of channels.
    pub(crate) fn load(&self, models: &Models) -> Arc<ChannelArchives> {
        let (channels, streams, accounts) =
            (models.channels.load(), models.streams.load(), models.accounts.load());
        // Held while they are made: others who need them would only make them as well.
        let mut kept = self.0.lock();
        if let Some(kept) = &*kept
            && Arc::ptr_eq(&kept.channels, &channels)
            && Arc::ptr_eq(&kept.streams, &streams)
            && Arc::ptr_eq(&kept.accounts, &accounts)
        {
            return Arc::clone(&kept.archives);
        }
        let archives = ChannelArchives::of(&channels, &streams, &accounts);
        let before = kept.as_ref().map(|it| &it.archives).filter(|it| it.days == archives.days);
        let archives = before.map_or_else(|| Arc::new(archives), Arc::clone);
        *kept = Some(KeptArchives { channels, streams, accounts, archives: Arc::clone(&archives) });
        archives
    }
}
