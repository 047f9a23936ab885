//! The records that a new store starts with.

use domain::account::Account;
use domain::playlist::catalogue::Catalogue;
use domain::secret::ServerKeys;
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;

use crate::engine::vault::random;
use crate::error::Result;
use crate::record::Record;
use crate::store::Store;
use crate::write::Write;

/// Records per write; a catalogue may have more than one write can hold.
const RECORDS_AT_ONCE: usize = 1_000;

/// Adds the records that every store needs: the account of manually created streams, the built-in stream profiles, and
/// the keys of this installation. Does not change existing records, except for built-in stream profiles of an earlier
/// version. One commit; blocks.
pub fn seed(store: &Store) -> Result<()> {
    let keys = ServerKeys { tokens: random()?, lookup: random()? };
    store.write_blocking(move |write| {
        put_missing(write, &Account::custom())?;
        let known: Vec<StreamProfile> = write.all()?;
        for mut profile in StreamProfile::built_in() {
            // In an older store, a profile of the user may have the name of a later built-in one; it stays.
            let of_name = known.iter().find(|it| it.name == profile.name);
            if let Some(old) = of_name.filter(|it| it.id == profile.id && it.locked) {
                // The one setting that admins can change.
                profile.redirect_without_login = old.redirect_without_login;
            }
            match of_name {
                None => put_missing(write, &profile)?,
                // Nobody else can change a locked profile, so this one is of an earlier version.
                Some(old) if old.id == profile.id && old.locked && *old != profile => write.put(&profile)?,
                Some(_) => {}
            }
        }
        put_missing(write, &keys)
    })
}

fn put_missing<T: Record>(write: &mut Write<'_>, record: &T) -> Result<()> {
    if write.get::<T>(record.id())?.is_none() { write.put(record) } else { Ok(()) }
}

/// Writes a whole catalogue under its own ids, replacing existing records; fills temporary stores. The streams of each
/// account replace its previous streams. Several commits; blocks.
pub fn store_catalogue(store: &Store, catalogue: Catalogue) -> Result<()> {
    let Catalogue { accounts, groups, mut streams, channels, left_out: _ } = catalogue;
    put_all(store, accounts)?;
    put_all(store, groups)?;
    // A stable sort keeps the order of the streams of an account.
    streams.sort_by_key(|it| it.account);
    for of_account in streams.chunk_by(|a, b| a.account == b.account) {
        let mut bulk = store.bulk_write::<Stream>(u64::from(of_account[0].account.0))?;
        of_account.iter().try_for_each(|it| bulk.put(it))?;
        // A bulk write does not advance the id counter for ids that it did not reserve; a single put does.
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
