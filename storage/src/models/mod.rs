//! The gateway's own store: what every one begins with, and what is kept of it in memory.

pub(crate) mod stream_index;

use domain::account::{Account, RefreshRecord};
use domain::channel::Channel;
use domain::group::Group;
use domain::playlist::catalogue::Catalogue;
use domain::secret::ServerKeys;
use domain::setting::CoreSetting;
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;
use domain::user::User;

use crate::engine::vault::random;
use crate::error::Result;
use crate::models::stream_index::StreamIndex;
use crate::read::table::Table;
use crate::read::view::View;
use crate::record::Record;
use crate::store::Store;
use crate::write::Write;

/// Records of a write; a catalogue may have more than one write can take.
const RECORDS_AT_ONCE: usize = 1_000;

/// The store, its small collections in memory, and what lists show of its streams. Clones are the same.
#[derive(Clone)]
pub struct Models {
    pub store: Store,
    pub accounts: View<Table<Account>>,
    pub refreshes: View<Table<RefreshRecord>>,
    pub channels: View<Table<Channel>>,
    pub groups: View<Table<Group>>,
    pub settings: View<Table<CoreSetting>>,
    pub stream_profiles: View<Table<StreamProfile>>,
    pub users: View<Table<User>>,
    pub streams: StreamIndex,
}

impl Models {
    /// Reads the small collections and all streams, once; everyone clones what this returns. For a thread that may block.
    pub fn of(store: Store) -> Result<Self> {
        Ok(Self {
            accounts: store.table()?,
            refreshes: store.table()?,
            channels: store.table()?,
            groups: store.table()?,
            settings: store.table()?,
            stream_profiles: store.table()?,
            users: store.table()?,
            streams: StreamIndex::start(&store)?,
            store,
        })
    }
}

/// Puts what no store is without: the account of streams made by hand, the built-in stream profiles, and the keys of
/// this installation. What is there already stays as it is. One commit; for a thread that may block.
pub fn seed(store: &Store) -> Result<()> {
    let keys = ServerKeys { tokens: random()?, lookup: random()? };
    store.write_blocking(move |write| {
        put_missing(write, &Account::custom())?;
        let known: Vec<StreamProfile> = write.all()?;
        for profile in StreamProfile::built_in() {
            // An older store may have given its name away; what somebody made is not taken from them.
            if known.iter().all(|it| it.name != profile.name) {
                put_missing(write, &profile)?;
            }
        }
        put_missing(write, &keys)
    })
}

fn put_missing<T: Record>(write: &mut Write<'_>, record: &T) -> Result<()> {
    if write.get::<T>(record.id())?.is_none() { write.put(record) } else { Ok(()) }
}

/// Writes a whole catalogue under the ids that it has, over what is there: how a store of the moment is filled. The
/// streams of each account replace those it had. Not one commit; for a thread that may block.
pub fn store_catalogue(store: &Store, catalogue: Catalogue) -> Result<()> {
    let Catalogue { accounts, groups, mut streams, channels } = catalogue;
    put_all(store, accounts)?;
    put_all(store, groups)?;
    // Stable: the streams of an account stay in their order.
    streams.sort_by_key(|it| it.account);
    for of_account in streams.chunk_by(|a, b| a.account == b.account) {
        let mut bulk = store.bulk_write::<Stream>(u64::from(of_account[0].account.0))?;
        of_account.iter().try_for_each(|it| bulk.put(it))?;
        // ChangedIds of its own choice move no counter in bulk; put alone they do.
        let last = of_account.iter().max_by_key(|it| it.id).cloned();
        bulk.commit(move |write, _| last.iter().try_for_each(|it| write.put(it)))?;
    }
    put_all(store, channels)
}

fn put_all<T: Record>(store: &Store, records: Vec<T>) -> Result<()> {
    let mut records = records.into_iter().peekable();
    while records.peek().is_some() {
        let some: Vec<T> = records.by_ref().take(RECORDS_AT_ONCE).collect();
        store.write_blocking(move |write| some.iter().try_for_each(|it| write.put(it)))?;
    }
    Ok(())
}
