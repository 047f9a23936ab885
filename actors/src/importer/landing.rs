//! Writes the changes of a playlist: all at once, or nothing.
//!
//! Others write concurrently, and their changes to a stream are never lost: an ordinary write reads each record again,
//! and a bulk write learns which records changed since it began.

use std::sync::Arc;

use domain::account::{Account, PlaylistLocation, RefreshRecord, StreamIdentity};
use domain::channel::Channel;
use domain::egress::Distance;
use domain::ids::{AccountId, StreamId};
use domain::playlist::delta::{
    EntryChange, KnownStreams, MatchedEntry, MissingAction, MissingStream, StalePolicy,
};
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use domain::stream_ids::StreamKey;
use storage::{BulkWrite, LostStreamIds, Store, StreamIdChanges, Table, View, Write};

use super::compare::{Compared, is_used};
use super::error::ImportError;
use super::job::{ImportSummary, Job};
use super::reading::ReadList;
use super::selection::{GroupChanges, Selection};
use crate::events::StoredEvent;

/// Number of streams that are written between two progress reports.
const REPORT_PERIOD: usize = 1_000;
/// Size of the streams of a typical list in the store, in relation to that of the compressed entries in memory.
const STORED_PER_SPOOLED: u64 = 2;

/// The records that are written together with the streams.
struct AccountRecords {
    account: Arc<Account>,
    ids: LastingIds,
    groups: GroupChanges,
    imported: ImportSummary,
    is_confirmed: bool,
    origin: Option<Distance>,
    /// Addresses of guides that the playlist names.
    guide_urls: Vec<SourceUrl>,
    now: i64,
    vanishing: StalePolicy,
    event: Option<StoredEvent>,
}

/// Records which stream has which id, and gives damaged streams their ids back.
struct LastingIds {
    account: AccountId,
    identity: StreamIdentity,
    lost: LostStreamIds,
    changes: StreamIdChanges,
}

impl LastingIds {
    /// Notes all stored streams if they are not recorded under their present identity.
    fn new(job: &Job) -> Result<Self, ImportError> {
        let (store, account) = (&job.models.store, job.account.id);
        let mut ids = Self {
            account,
            identity: job.account.identity_in_force(),
            lost: LostStreamIds::read(store, account)?,
            changes: StreamIdChanges::default(),
        };
        let recorded_by = job.models.refreshes.load().get(account.0).and_then(|it| it.ids_recorded_by);
        if recorded_by != Some(ids.identity) {
            let note = |stream: Stream| ids.changes.set(stream.id, Some(ids.key(&stream.provider)));
            store.collection::<Stream>().for_each_of(u64::from(account.0), note)?;
        }
        Ok(ids)
    }

    fn key(&self, properties: &StreamProperties) -> StreamKey {
        StreamKey::new(self.account, self.identity, properties)
    }

    /// Returns the id of a stream that is not stored: the one that it had, or a new one.
    fn assign<E>(
        &mut self,
        properties: &StreamProperties,
        new_id: impl FnOnce() -> Result<u32, E>,
    ) -> Result<StreamId, E> {
        let key = self.key(properties);
        let id = self.lost.take(key).map_or_else(|| new_id().map(StreamId), Ok)?;
        self.changes.set(id, Some(key));
        Ok(id)
    }

    /// Records a known stream under its present identity, if that has changed.
    fn moved(&mut self, id: StreamId, matched: &MatchedEntry) {
        if matched.is_moved {
            self.changes.set(id, Some(self.key(&matched.properties)));
        }
    }

    fn removed(&mut self, id: StreamId) {
        self.changes.set(id, None);
    }
}

/// The outcome of a write.
pub(super) enum Landing {
    Done(Box<Selection>),
    /// Streams of this account changed between the comparison and the start of the bulk write. The comparison has to be
    /// repeated; the bulk write learns of later changes.
    Again(Box<BulkWrite<Stream>>),
}

/// Writes the differences, and an event that reports them.
pub(super) fn land(
    job: &Job,
    list: &ReadList,
    compared: Compared,
    imported: &ImportSummary,
    (begun, event): (Option<Box<BulkWrite<Stream>>>, Option<StoredEvent>),
) -> Result<Landing, ImportError> {
    job.check_stop()?;
    let is_same = compared.is_same();
    let Compared { known, mut selection, few, gone, groups, vanishing, channels, fingerprint, .. } = compared;
    let mut records = AccountRecords {
        account: job.account.clone(),
        ids: LastingIds::new(job)?,
        groups,
        imported: imported.clone(),
        is_confirmed: job.options.confirm,
        origin: list.origin,
        guide_urls: list.findings.guide_urls.clone(),
        now: vanishing.now,
        vanishing,
        event,
    };
    let store = &job.models.store;
    if is_same {
        store.write_blocking(move |write| records.put(write))?;
        return Ok(Landing::Done(Box::new(selection)));
    }
    if let Some(taken) = few {
        let channels = job.models.channels.clone();
        store.write_blocking(move |write| {
            put_few(write, &mut records.ids, taken, &gone, vanishing, &channels)?;
            records.put(write)
        })?;
        return Ok(Landing::Done(Box::new(selection)));
    }
    let owner = u64::from(job.account.id.0);
    let mut bulk = match begun {
        Some(bulk) => bulk,
        None => {
            let bulk = Box::new(store.sized_bulk_write::<Stream>(owner, expected_bytes(list))?);
            if store.collection::<Stream>().fingerprint_of(owner) != fingerprint {
                return Ok(Landing::Again(bulk));
            }
            bulk
        }
    };
    let mut known = known;
    known.rewind();
    selection.rewind();
    put_all(job, list, (&mut known, &mut selection, &mut records.ids), &gone, vanishing, &mut bulk)?;
    let removed: Vec<MissingStream> =
        gone.into_iter().filter(|it| it.action == MissingAction::Remove).collect();
    removed.iter().for_each(|it| records.ids.removed(it.id));
    let (before, view, channels_then) = (store.clone(), job.models.channels.clone(), channels);
    bulk.commit(move |write, touched| {
        merge(write, &before, &mut records.ids, touched, vanishing)?;
        let channels = view.load();
        if !Arc::ptr_eq(&channels, &channels_then) {
            keep_used(write, &before, &mut records.ids, &channels, &removed, vanishing)?;
        }
        records.put(write)
    })?;
    Ok(Landing::Done(Box::new(selection)))
}

/// Returns about how many bytes the streams of a list take in the store, so that an import without room for them does not
/// begin. Blocks of the store are smaller than those of a spool and compress less.
fn expected_bytes(list: &ReadList) -> u64 {
    STORED_PER_SPOOLED * list.entries.compressed_bytes()
}

/// Returns whether two locations are of the same list. The import itself stores the entry point of a portal that has answered.
fn is_same_list(one: &PlaylistLocation, other: &PlaylistLocation) -> bool {
    match (one.portal(), other.portal()) {
        (Some(one), Some(other)) => one.server == other.server,
        _ => one == other,
    }
}

impl AccountRecords {
    /// Writes the groups and the refresh record. Fails if the account was deleted or changed.
    fn put(self, write: &mut Write<'_>) -> Result<(), ImportError> {
        let id = self.account.id;
        let mut now =
            write.get::<Account>(id.0)?.filter(|it| it.is_active).ok_or(ImportError::AccountChanged)?;
        let is_as_read = |it: &Account| {
            is_same_list(&it.list, &self.account.list)
                && it.identity == self.account.identity
                && it.identity_keys == self.account.identity_keys
                && it.rules == self.account.rules
                && it.filters == self.account.filters
        };
        if !is_as_read(&now) {
            return Err(ImportError::AccountChanged);
        }
        self.groups.put(write, &now, self.vanishing)?;
        now.guide_urls = self.guide_urls;
        write.put(&now)?;
        write.mark_complete::<Stream>(u64::from(id.0));
        let mut refresh = write.get::<RefreshRecord>(id.0)?.unwrap_or_else(|| RefreshRecord::new(id));
        refresh.accept(self.imported.n_entries, self.is_confirmed, self.now);
        refresh.ids_recorded_by = Some(self.ids.identity);
        self.ids.changes.put(write)?;
        (refresh.message, refresh.origin) = (self.imported.sentence(), self.origin);
        write.put(&refresh)?;
        self.event.iter().try_for_each(|it| it.enqueue(write))?;
        Ok(())
    }
}

/// Writes a few changed streams, each based on its current record.
fn put_few(
    write: &mut Write<'_>,
    ids: &mut LastingIds,
    taken: Vec<MatchedEntry>,
    gone: &[MissingStream],
    vanishing: StalePolicy,
    channels: &View<Table<Channel>>,
) -> Result<(), ImportError> {
    for taken in taken {
        match taken.change {
            EntryChange::New => {
                let id = ids.assign(&taken.properties, || write.next_id::<Stream>())?;
                let new = taken.into_stream(vanishing.now, || Ok::<_, ImportError>(id), |_| Ok(None))?;
                write.put(&new)?;
            }
            EntryChange::Changed(id) | EntryChange::Unchanged(id) => {
                let stream = stream_of_account(write.get(id.0)?, ids.account);
                if stream.is_some() {
                    ids.moved(id, &taken);
                }
                // A stream that an admin deleted meanwhile is not created again by the older playlist.
                if let Some(mut stream) = stream
                    && stream.refreshed(taken.properties, taken.rule, taken.nth, vanishing.now)
                {
                    write.put(&stream)?;
                }
            }
        }
    }
    let channels = channels.load();
    for it in gone.iter().filter(|it| it.action != MissingAction::KeepStale) {
        match stream_of_account(write.get::<Stream>(it.id.0)?, ids.account) {
            None => {}
            Some(_) if it.action == MissingAction::Remove && !is_used(&channels, it.id) => {
                ids.removed(it.id);
                write.remove::<Stream>(it.id.0)?;
            }
            Some(mut stream) => {
                stream.mark_stale(vanishing);
                write.put(&stream)?;
            }
        }
    }
    Ok(())
}

fn stream_of_account(stream: Option<Stream>, account: AccountId) -> Option<Stream> {
    stream.filter(|it| it.account == account)
}

/// Writes all streams of the account in their new state.
fn put_all(
    job: &Job,
    list: &ReadList,
    (known, selection, ids): (&mut KnownStreams, &mut Selection, &mut LastingIds),
    gone: &[MissingStream],
    vanishing: StalePolicy,
    bulk: &mut BulkWrite<Stream>,
) -> Result<(), ImportError> {
    let streams = job.models.store.collection::<Stream>();
    list.entries.for_each(|facts| {
        job.check_stop()?;
        if bulk.len().is_multiple_of(REPORT_PERIOD) {
            job.reporter.update(|_| {});
        }
        let taken = known.match_properties(facts);
        if !selection.keep(&taken) {
            known.leave_out(&taken);
            return Ok(());
        }
        let id = match taken.change {
            EntryChange::New => ids.assign(&taken.properties, || bulk.next_id())?,
            EntryChange::Changed(id) | EntryChange::Unchanged(id) => {
                ids.moved(id, &taken);
                id
            }
        };
        let stream = taken.into_stream(vanishing.now, || Ok(id), |id| streams.get(id.0))?;
        bulk.put(&stream)?;
        Ok::<_, ImportError>(())
    })?;
    // In order of the ids, which is nearly the order in which they are stored.
    for it in gone.iter().filter(|it| it.action != MissingAction::Remove) {
        job.check_stop()?;
        if let Some(mut stream) = stream_of_account(streams.get(it.id.0)?, job.account.id) {
            stream.mark_stale(vanishing);
            bulk.put(&stream)?;
        }
    }
    Ok(())
}

/// Applies concurrent changes to streams of this account since the bulk write began.
fn merge(
    write: &mut Write<'_>,
    before: &Store,
    ids: &mut LastingIds,
    touched: &[u32],
    vanishing: StalePolicy,
) -> Result<(), ImportError> {
    // The bulk write is not visible yet: this reads the concurrent changes.
    let theirs = before.collection::<Stream>();
    for id in touched {
        match (stream_of_account(theirs.get(*id)?, ids.account), write.get::<Stream>(*id)?) {
            (None, Some(_)) => {
                ids.removed(StreamId(*id));
                write.remove::<Stream>(*id)?;
            }
            (Some(mut theirs), Some(ours)) => {
                match ours.last_seen {
                    None => drop(theirs.refreshed(ours.provider, ours.rule, ours.nth, vanishing.now)),
                    Some(_) => theirs.mark_stale(vanishing),
                }
                write.put(&theirs)?;
            }
            // Created meanwhile, or changed by someone who therefore still needs it.
            (Some(theirs), None) => {
                ids.changes.set(theirs.id, Some(ids.key(&theirs.provider)));
                write.put(&theirs)?;
            }
            (None, None) => {}
        }
    }
    Ok(())
}

/// Keeps streams that were added to a channel meanwhile.
fn keep_used(
    write: &mut Write<'_>,
    before: &Store,
    ids: &mut LastingIds,
    channels: &Table<Channel>,
    removed: &[MissingStream],
    vanishing: StalePolicy,
) -> Result<(), ImportError> {
    let streams = before.collection::<Stream>();
    for it in removed.iter().filter(|it| is_used(channels, it.id)) {
        if let Some(mut stream) = streams.get(it.id.0)? {
            stream.mark_stale(vanishing);
            ids.changes.set(stream.id, Some(ids.key(&stream.provider)));
            write.put(&stream)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::stream::RequestHeaders;
    use domain::stream_identity::KeyReader;

    use super::*;
    use crate::importer::reading::ListKeys;
    use crate::refresh::Spool;

    /// An estimate that is far too high would refuse imports that fit, one that is far too low would be useless.
    #[test]
    fn the_expected_size_of_an_import_is_near_the_size_that_it_has_then() {
        let properties = |id: u32| StreamProperties {
            name: format!("UK: Channel {id} HD"),
            url: SourceUrl::new(format!("http://provider.example:8080/live/user/password/{id}.ts")),
            headers: RequestHeaders::default(),
            tvg_id: Some(format!("channel{id}.uk")),
            group: Some(format!("Group {}, all", id / 250)),
            logo: Some(format!("http://logos.example/images/{id}.png")),
            number: None,
            content: Default::default(),
            archive: None,
            is_adult: false,
            guide_offset: 0,
            details: None,
        };
        for n in [1_000, 30_000] {
            let mut entries = Spool::new(u64::MAX);
            (1..=n).for_each(|id| entries.push(&properties(id)).unwrap());
            let (findings, contents) = (Default::default(), Default::default());
            let keys = ListKeys { reader: KeyReader::new(Vec::new()), entries: Vec::new() };
            let expected = expected_bytes(&ReadList { entries, keys, findings, contents, origin: None });
            let store = Store::temporary(storage::records::schema()).unwrap();
            let mut bulk = store.bulk_write::<Stream>(2).unwrap();
            for id in 1..=n {
                let id = StreamId(id);
                bulk.put(&Stream::new(id, AccountId(2), properties(id.0), 0)).unwrap();
            }
            bulk.commit(|_, _| Ok::<_, storage::Error>(())).unwrap();
            let stored = store.statistics().live_bytes;
            assert!(
                (stored / 2..=stored * 3).contains(&expected),
                "{n}: {expected} expected, {stored} stored"
            );
        }
    }
}
