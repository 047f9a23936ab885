//! Tables: whole collections in memory, for code that reads on every request.
//!
//! A table is immutable; each commit creates the next one. The two share all shards without changes, so a commit to one
//! of forty thousand records copies some hundred pointers instead of the records.

use std::sync::Arc;

use crate::changes::{Change, ChangedIds};
use crate::engine::state::pair_of;
use crate::error::Result;
use crate::read::collection::Collection;
use crate::read::shards::Shards;
use crate::read::view::Reader;
use crate::record::{Key, Keys, Record, has_key};

/// The records of a collection of kind [`Single`](crate::CollectionKind::Single), after one commit.
pub struct Table<T> {
    records: Shards<u32, Entry<T>>,
    /// Pairs of half a key's hash and an id.
    index: Shards<(u32, u32), ()>,
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
        let wanted = Key { index, is_unique: false, value: value.as_ref().to_vec() };
        let half = pair_of(&wanted);
        self.index
            .from(&(half, 0))
            .map(|(pair, ())| *pair)
            .take_while(move |pair| pair.0 == half)
            // Different values can have the same hash, so the record is compared too.
            .filter_map(|(_, id)| self.get(id))
            .filter(move |record| has_key(&Keys::of(&***record), &wanted))
    }

    /// Returns the record with this value of a unique index.
    pub fn one_by(&self, index: &'static str, value: impl AsRef<[u8]>) -> Option<&Arc<T>> {
        self.by(index, value).next()
    }

    fn empty() -> Self {
        Self { records: Shards::default(), index: Shards::default() }
    }

    fn copy(&self) -> Self {
        Self { records: self.records.clone(), index: self.index.clone() }
    }

    /// Updates one record from the collection.
    fn update(&mut self, collection: &Collection<'_, T>, id: u32) -> Result<()> {
        let stamp = collection.stamp(id);
        let before = self.records.get(&id);
        if before.map(|it| it.stamp) == stamp {
            return Ok(());
        }
        if let Some(before) = before {
            for key in Keys::of(&*before.record) {
                self.index.remove(&(pair_of(&key), id));
            }
            self.records.remove(&id);
        }
        if let (Some(stamp), Some(record)) = (stamp, collection.get(id)?) {
            for key in Keys::of(&record) {
                self.index.insert((pair_of(&key), id), ());
            }
            self.records.insert(id, Entry { record: Arc::new(record), stamp });
        }
        Ok(())
    }

    /// Updates all records that differ from the collection.
    fn update_all(&mut self, collection: &Collection<'_, T>) -> Result<()> {
        let ids = collection.ids();
        let has_gone = |id: &u32| ids.binary_search(id).is_err();
        let gone: Vec<u32> = self.records.iter().map(|(id, _)| *id).filter(has_gone).collect();
        ids.iter().chain(&gone).try_for_each(|id| self.update(collection, *id))
    }
}

/// The previous table and the change since; `None` for the first table.
type Before<'a, 'b, T> = Option<(&'a Table<T>, &'b Change)>;

/// Returns the function that builds the table after each commit from the previous one.
pub(crate) fn follow<T: Record>()
-> impl FnMut(&Reader<'_>, Before<'_, '_, T>) -> Result<Table<T>> + Send + 'static {
    // After a failure the missing changes are unknown, so the next commit compares all records.
    let mut is_behind = false;
    move |reader, before| {
        let collection = reader.collection::<T>();
        let mut table = before.map_or_else(Table::empty, |(table, _)| table.copy());
        let ids = before.and_then(|(_, change)| change.of(T::COLLECTION));
        let done = match ids {
            Some(ChangedIds::Few(ids)) if !is_behind => {
                ids.iter().try_for_each(|id| table.update(&collection, *id))
            }
            _ => table.update_all(&collection),
        };
        is_behind = done.is_err();
        done.map(|()| table)
    }
}
