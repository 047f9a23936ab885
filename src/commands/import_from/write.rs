//! Writes the records of an import.
//!
//! A small import is one commit. A large one is several, in an order in which every state between two of them is
//! consistent: groups and stream profiles, then each account with all its streams, then channels, lineups, users and
//! settings.
//! An import that was interrupted is completed by running it again, because it finds what is there by names,
//! addresses and uuids.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use domain::account::Account;
use domain::account_group::AccountGroup;
use domain::channel::Channel;
use domain::group::Group;
use domain::guide::channel::GuideChannel;
use domain::guide::source::GuideSource;
use domain::ids::AccountId;
use domain::lineup::Lineup;
use domain::logo::Logo;
use domain::server_group::ServerGroup;
use domain::setting::CoreSetting;
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;
use domain::user::User;
use domain::user_agent::UserAgent;
use import_from::{Dependents, Foundation};
use storage::{Record, Store, Write};

use super::resolve::ResolvedStreams;
use super::spool::SpooledStreams;

/// Maximum number of streams in an import that is one commit.
const ONE_COMMIT_STREAMS_MAX: usize = 20_000;
/// Maximum number of other records in an import that is one commit.
const ONE_COMMIT_RECORDS_MAX: usize = 5_000;
/// Number of records in one of several commits.
const RECORDS_AT_ONCE: usize = 1_000;

/// The records of an import except streams.
pub(super) struct NewRecords {
    pub(super) foundation: Foundation,
    pub(super) dependents: Dependents,
    pub(super) users: Vec<User>,
}

impl NewRecords {
    fn len(&self) -> usize {
        let foundation = &self.foundation;
        let n_foundation = foundation.groups.len()
            + foundation.user_agents.len()
            + foundation.stream_profiles.len()
            + foundation.accounts.len()
            + foundation.logos.len()
            + foundation.guide_sources.len()
            + foundation.guide_channels.len();
        let dependents = &self.dependents;
        let n_dependents = dependents.channels.len()
            + dependents.lineups.len()
            + dependents.account_groups.len()
            + dependents.settings.len();
        n_foundation + n_dependents + self.users.len()
    }

    fn put_foundation(&self, write: &mut Write<'_>) -> storage::Result<()> {
        put(write, &self.foundation.groups)?;
        put(write, &self.foundation.user_agents)?;
        put(write, &self.foundation.stream_profiles)?;
        put::<ServerGroup>(write, &self.foundation.server_groups)?;
        put::<Logo>(write, &self.foundation.logos)?;
        put::<GuideSource>(write, &self.foundation.guide_sources)?;
        put::<GuideChannel>(write, &self.foundation.guide_channels)
    }

    fn put_dependents(&self, write: &mut Write<'_>) -> storage::Result<()> {
        put::<Channel>(write, &self.dependents.channels)?;
        put::<Lineup>(write, &self.dependents.lineups)?;
        put(write, &self.users)?;
        put::<CoreSetting>(write, &self.dependents.settings)
    }
}

/// Writes everything. Blocks.
pub(super) fn write(
    store: &Store,
    records: NewRecords,
    streams: &mut SpooledStreams,
    resolved: &ResolvedStreams,
) -> anyhow::Result<()> {
    if resolved.n_new() <= ONE_COMMIT_STREAMS_MAX && records.len() <= ONE_COMMIT_RECORDS_MAX {
        let mut new_streams = Vec::with_capacity(resolved.n_new());
        for account in resolved.new.keys() {
            each_new(store, &records.foundation, *account, streams, resolved, |stream| {
                new_streams.push(stream);
                Ok(())
            })?;
        }
        store.write_blocking(move |write| {
            records.put_foundation(write)?;
            for planned in records.foundation.accounts.values().filter(|it| it.is_new) {
                write.put(&planned.account)?;
            }
            put::<AccountGroup>(write, &records.dependents.account_groups)?;
            put(write, &new_streams)?;
            records.put_dependents(write)
        })?;
        return Ok(());
    }
    write_in_chunks::<Group>(store, &records.foundation.groups)?;
    write_in_chunks::<UserAgent>(store, &records.foundation.user_agents)?;
    write_in_chunks::<StreamProfile>(store, &records.foundation.stream_profiles)?;
    write_in_chunks::<ServerGroup>(store, &records.foundation.server_groups)?;
    write_in_chunks::<Logo>(store, &records.foundation.logos)?;
    write_in_chunks::<GuideSource>(store, &records.foundation.guide_sources)?;
    write_in_chunks::<GuideChannel>(store, &records.foundation.guide_channels)?;
    // By id, so that an import that was interrupted can keep the ids of the rest.
    let mut accounts: Vec<_> = records.foundation.accounts.values().collect();
    accounts.sort_by_key(|it| it.account.id);
    for planned in accounts {
        let of_account = |it: &&AccountGroup| it.account == planned.account.id;
        let groups = records.dependents.account_groups.iter().filter(of_account).cloned().collect();
        let account = planned.is_new.then(|| (planned.account.clone(), groups));
        write_account(store, &records.foundation, planned.account.id, account, streams, resolved)?;
    }
    let is_written = |id: &AccountId| records.foundation.accounts.values().any(|it| it.account.id == *id);
    for account in resolved.new.keys().filter(|it| !is_written(it)) {
        write_account(store, &records.foundation, *account, None, streams, resolved)?;
    }
    write_in_chunks::<Channel>(store, &records.dependents.channels)?;
    write_in_chunks::<Lineup>(store, &records.dependents.lineups)?;
    write_in_chunks::<User>(store, &records.users)?;
    write_in_chunks::<CoreSetting>(store, &records.dependents.settings)
}

/// Writes an account, if it is new, with its groups and all its streams, in one commit.
fn write_account(
    store: &Store,
    foundation: &Foundation,
    id: AccountId,
    account: Option<(Account, Vec<AccountGroup>)>,
    streams: &mut SpooledStreams,
    resolved: &ResolvedStreams,
) -> anyhow::Result<()> {
    let owner = u64::from(id.0);
    let put_account = move |write: &mut Write<'_>| match &account {
        Some((account, groups)) => write.put(account).and_then(|()| put(write, groups)),
        None => Ok(()),
    };
    if !resolved.new.contains_key(&id) {
        store.write_blocking(put_account)?;
        return Ok(());
    }
    let mut bulk = store.bulk_write::<Stream>(owner)?;
    let mut kept = Ok(());
    store.collection::<Stream>().for_each_of(owner, |stream| {
        if kept.is_ok() {
            kept = bulk.put(&stream);
        }
    })?;
    kept?;
    // A bulk write does not advance the counter of ids; a single put of the largest does.
    let mut last: Option<Stream> = None;
    each_new(store, foundation, id, streams, resolved, |stream| {
        bulk.put(&stream)?;
        if last.as_ref().is_none_or(|it| it.id < stream.id) {
            last = Some(stream);
        }
        Ok(())
    })?;
    bulk.commit(move |write, _| {
        put_account(write)?;
        last.iter().try_for_each(|it| write.put(it))
    })?;
    Ok(())
}

/// Calls a function with each new stream of an account.
fn each_new(
    store: &Store,
    foundation: &Foundation,
    account: AccountId,
    streams: &mut SpooledStreams,
    resolved: &ResolvedStreams,
    mut visit: impl FnMut(Stream) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let Some(sources) = resolved.new.get(&account) else { return Ok(()) };
    // How many streams of the account have an address, by the hash of the address: a million addresses are large.
    let hasher = RandomState::new();
    let mut seen: HashMap<u64, u32> = HashMap::new();
    store.collection::<Stream>().for_each_of(u64::from(account.0), |stream| {
        *seen.entry(hasher.hash_one(&stream.provider.url)).or_default() += 1;
    })?;
    for (source, _) in sources {
        streams.for_each(*source, |stream| {
            let Some(id) = resolved.ids.get(&stream.id).filter(|it| !resolved.known.contains(it)) else {
                return Ok(());
            };
            let n_seen = seen.entry(hasher.hash_one(&stream.url)).or_default();
            let nth = *n_seen;
            *n_seen += 1;
            visit(stream.into_stream(*id, account, nth, foundation))
        })?;
    }
    Ok(())
}

fn put<T: Record>(write: &mut Write<'_>, records: &[T]) -> storage::Result<()> {
    records.iter().try_for_each(|it| write.put(it))
}

fn write_in_chunks<T: Record + Clone>(store: &Store, records: &[T]) -> anyhow::Result<()> {
    for chunk in records.chunks(RECORDS_AT_ONCE) {
        let chunk = chunk.to_vec();
        store.write_blocking(move |write| put(write, &chunk))?;
    }
    Ok(())
}
