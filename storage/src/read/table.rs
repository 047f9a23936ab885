//! Tables: whole collections in memory, for code that reads on every request.
//!
//! A table is immutable; each commit creates the next one. The two share all shards without changes, so a commit to one
//! of forty thousand records copies some hundred pointers instead of the records.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::changes::{Change, ChangedIds};
use crate::engine::state::pair_of;
use crate::error::{Error, Result};
use crate::read::encoded::EncodedCollection;
use crate::read::shards::Shards;
use crate::read::view::{Built, Reader};
use crate::record::{Key, Keys, Record, decode, has_key};

/// The records of a collection of kind [`Single`](crate::CollectionKind::Single), after one commit.
pub struct Table<T> {
    records: Shards<u32, Entry<T>>,
    /// Pairs of half a key's hash and an id.
    index: Shards<(u32, u32), ()>,
    /// The commit after which the table was built.
    version: u64,
}

/// A record, and the commit that wrote it.
struct Entry<T> {
    record: Arc<T>,
    stamp: u64,
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self { record: Arc::clone(&self.record), stamp: self.stamp }
    }
}

impl<T: Record> Table<T> {
    /// Returns the number of the commit after which the table was built. While it stays the same, so do all records, also
    /// after a restart.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn get(&self, id: u32) -> Option<&Arc<T>> {
        self.records.get(&id).map(|it| &it.record)
    }

    /// Iterates over all records, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.records.iter().map(|(_, it)| &it.record)
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over all records with this value of an index, by id.
    pub fn by<V: AsRef<[u8]>>(&self, index: &'static str, value: V) -> impl Iterator<Item = &Arc<T>> {
        let wanted = Key::new(index, value.as_ref());
        let half = pair_of(&wanted);
        self.index
            .from(&(half, 0))
            .map(|(pair, ())| *pair)
            .take_while(move |pair| pair.0 == half)
            // Different values can have the same hash, so the record is compared too.
            .filter_map(|(_, id)| self.get(id))
            .filter(move |record| has_key(&Keys::from_record(&***record), &wanted))
    }

    /// Returns the record with this value of a unique index.
    pub fn one_by(&self, index: &'static str, value: impl AsRef<[u8]>) -> Option<&Arc<T>> {
        self.by(index, value).next()
    }

    fn empty() -> Self {
        Self { records: Shards::default(), index: Shards::default(), version: 0 }
    }

    fn copy(&self) -> Self {
        Self { records: self.records.clone(), index: self.index.clone(), version: self.version }
    }
}

/// The parts of a table that its update uses, without the type of its records.
trait TableRecords {
    /// Returns the commit that wrote a record.
    fn stamp(&self, id: u32) -> Option<u64>;

    fn ids(&self) -> Vec<u32>;

    /// Adds or replaces a record. After an error it stays as it was.
    fn put(&mut self, id: u32, stamp: u64, bytes: &[u8]) -> Result<()>;

    fn remove(&mut self, id: u32);
}

impl<T: Record> TableRecords for Table<T> {
    fn stamp(&self, id: u32) -> Option<u64> {
        self.records.get(&id).map(|it| it.stamp)
    }

    fn ids(&self) -> Vec<u32> {
        self.records.iter().map(|(id, _)| *id).collect()
    }

    fn put(&mut self, id: u32, stamp: u64, bytes: &[u8]) -> Result<()> {
        let record: T = decode(bytes)?;
        self.remove(id);
        for key in Keys::from_record(&record) {
            self.index.insert((pair_of(&key), id), ());
        }
        self.records.insert(id, Entry { record: Arc::new(record), stamp });
        Ok(())
    }

    fn remove(&mut self, id: u32) {
        if let Some(before) = self.records.get(&id) {
            for key in Keys::from_record(&*before.record) {
                self.index.remove(&(pair_of(&key), id));
            }
            self.records.remove(&id);
        }
    }
}

/// The previous table and the change since; `None` for the first table.
type Before<'a, 'b, T> = Option<(&'a Table<T>, &'b Change)>;

/// Builds the table after a commit from the previous one. Records that cannot be read keep their earlier content, or are
/// left out if they [grant access](Record::GRANTS_ACCESS).
///
/// # Errors
/// Returns an error if the first table cannot be read completely.
pub(crate) fn build<T: Record>(reader: &Reader<'_>, before: Before<'_, '_, T>) -> Result<Built<Table<T>>> {
    let mut table = before.map_or_else(Table::empty, |(table, _)| table.copy());
    table.version = before.map_or_else(|| reader.version(), |(_, change)| change.version);
    let records = reader.records(T::COLLECTION);
    let changed = before.map(|(_, change)| change.ids(T::COLLECTION));
    let is_behind = follow(&mut table, &records, changed, T::COLLECTION, T::GRANTS_ACCESS)?;
    Ok(Built { value: table, is_behind })
}

/// Updates a table after a commit that changed these ids, or fills the first one. Returns whether it is behind.
fn follow(
    table: &mut dyn TableRecords,
    records: &EncodedCollection<'_>,
    changed: Option<Option<&ChangedIds>>,
    collection: &'static str,
    grants_access: bool,
) -> Result<bool> {
    let ids = match changed.flatten() {
        Some(ChangedIds::Few(ids)) => ids.clone(),
        _ => all_ids(table, records),
    };
    let mut is_behind = false;
    for id in ids {
        let updated = catch_unwind(AssertUnwindSafe(|| update(table, records, id)));
        let Err(error) = updated.unwrap_or(Err(Error::Panicked)) else { continue };
        if changed.is_none() {
            return Err(error);
        }
        tracing::error!("failed to read record {id} of {collection}: {error}");
        is_behind = true;
        if grants_access {
            table.remove(id);
        }
    }
    Ok(is_behind)
}

/// Updates one record from the collection.
fn update(table: &mut dyn TableRecords, records: &EncodedCollection<'_>, id: u32) -> Result<()> {
    let stamp = records.stamp(id);
    if table.stamp(id) == stamp {
        return Ok(());
    }
    let mut exists = false;
    if let Some(stamp) = stamp {
        records.read(id, &mut |bytes| {
            exists = true;
            table.put(id, stamp, bytes)
        })?;
    }
    if !exists {
        table.remove(id);
    }
    Ok(())
}

/// Lists the ids of all records, in the table or in the collection.
fn all_ids(table: &dyn TableRecords, records: &EncodedCollection<'_>) -> Vec<u32> {
    let mut ids = records.ids();
    let gone: Vec<u32> = table.ids().into_iter().filter(|id| ids.binary_search(id).is_err()).collect();
    ids.extend(gone);
    ids
}
