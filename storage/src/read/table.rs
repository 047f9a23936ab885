//! A whole collection in memory, for who asks on every request.
//!
//! A table never changes; each commit makes the next one. The two share everything but the shards in which something
//! changed, so a commit to one of forty thousand records copies some hundred pointers and not the records.

use std::sync::Arc;

use crate::changes::{Change, ChangedIds};
use crate::engine::state::pair_of;
use crate::error::Result;
use crate::read::collection::Collection;
use crate::record::{Key, Keys, Record};
use crate::store::Reader;
use crate::write::has;

/// Entries of a shard; one more splits it.
const SHARD_MAX: usize = 256;
/// A shard with fewer is joined with its neighbour when both fit into one.
const SHARD_MIN: usize = SHARD_MAX / 4;

/// The records of one collection of [`CollectionKind::Single`](crate::CollectionKind::Single), as one commit left them.
pub struct Table<T> {
    records: Shards<u32, Entry<T>>,
    /// Half of a key's hash, and an id.
    index: Shards<(u32, u32), ()>,
}

/// A record, and which commit wrote it.
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

    /// All records, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.records.iter().map(|(_, it)| &it.record)
    }

    pub fn len(&self) -> usize {
        self.records.len
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All records with this value of an index, by id.
    pub fn by<V: AsRef<[u8]>>(&self, index: &'static str, value: V) -> impl Iterator<Item = &Arc<T>> {
        let wanted = Key { index, is_unique: false, value: value.as_ref().to_vec() };
        let half = pair_of(&wanted);
        self.index
            .from(&(half, 0))
            .map(|(pair, ())| *pair)
            .take_while(move |pair| pair.0 == half)
            // Different values may have one hash: whether the key is really this one is seen in the record.
            .filter_map(|(_, id)| self.get(id))
            .filter(move |record| has(&Keys::of(&***record), &wanted))
    }

    /// The first record with this value, for unique indexes.
    pub fn one_by(&self, index: &'static str, value: impl AsRef<[u8]>) -> Option<&Arc<T>> {
        self.by(index, value).next()
    }

    fn empty() -> Self {
        Self { records: Shards::default(), index: Shards::default() }
    }

    fn copy(&self) -> Self {
        Self { records: self.records.clone(), index: self.index.clone() }
    }

    /// Brings one record to where the collection has it.
    fn take(&mut self, collection: &Collection<'_, T>, id: u32) -> Result<()> {
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

    /// Brings all records that differ to where the collection has them.
    fn take_all(&mut self, collection: &Collection<'_, T>) -> Result<()> {
        let ids = collection.ids();
        let has_gone = |id: &u32| ids.binary_search(id).is_err();
        let gone: Vec<u32> = self.records.iter().map(|(id, _)| *id).filter(has_gone).collect();
        ids.iter().chain(&gone).try_for_each(|id| self.take(collection, *id))
    }
}

/// The table before, and what was committed since; `None` for the first.
type Before<'a, 'b, T> = Option<(&'a Table<T>, &'b Change)>;

/// Makes the table after each commit from the one before.
pub(crate) fn following<T: Record>()
-> impl FnMut(&Reader<'_>, Before<'_, '_, T>) -> Result<Table<T>> + Send + 'static {
    // After a failure nobody knows what is missing; the next commit compares everything.
    let mut is_behind = false;
    move |reader, before| {
        let collection = reader.collection::<T>();
        let mut table = before.map_or_else(Table::empty, |(table, _)| table.copy());
        let ids = before.and_then(|(_, change)| change.of(T::COLLECTION));
        let done = match ids {
            Some(ChangedIds::Few(ids)) if !is_behind => {
                ids.iter().try_for_each(|id| table.take(&collection, *id))
            }
            _ => table.take_all(&collection),
        };
        is_behind = done.is_err();
        done.map(|()| table)
    }
}

/// A sorted map in pieces: a copy shares all of them, a change copies the one it touches.
struct Shards<K, V> {
    /// None is empty; the keys of each are above those of the one before.
    shards: Vec<Arc<Vec<(K, V)>>>,
    len: usize,
}

impl<K, V> Default for Shards<K, V> {
    fn default() -> Self {
        Self { shards: Vec::new(), len: 0 }
    }
}

impl<K, V> Clone for Shards<K, V> {
    fn clone(&self) -> Self {
        Self { shards: self.shards.clone(), len: self.len }
    }
}

impl<K: Ord + Clone, V: Clone> Shards<K, V> {
    /// The shard that has the key if there is one that could.
    fn shard_of(&self, key: &K) -> usize {
        self.shards.partition_point(|it| it.first().is_some_and(|first| first.0 <= *key)).saturating_sub(1)
    }

    fn get(&self, key: &K) -> Option<&V> {
        let shard = self.shards.get(self.shard_of(key))?;
        let at = shard.binary_search_by(|it| it.0.cmp(key)).ok()?;
        Some(&shard[at].1)
    }

    fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.shards.iter().flat_map(|it| it.iter()).map(|(key, value)| (key, value))
    }

    /// This key and those behind it.
    fn from(&self, key: &K) -> impl Iterator<Item = (&K, &V)> + use<'_, K, V> {
        let at = self.shard_of(key);
        let start = self.shards.get(at).map_or(0, |it| it.partition_point(|entry| entry.0 < *key));
        let rest = self.shards.iter().skip(at).flat_map(|it| it.iter());
        rest.skip(start).map(|(key, value)| (key, value))
    }

    fn insert(&mut self, key: K, value: V) {
        if self.shards.is_empty() {
            self.shards.push(Arc::default());
        }
        let at = self.shard_of(&key);
        let shard = Arc::make_mut(&mut self.shards[at]);
        match shard.binary_search_by(|it| it.0.cmp(&key)) {
            Ok(found) => shard[found].1 = value,
            Err(gap) => {
                shard.insert(gap, (key, value));
                self.len += 1;
            }
        }
        if shard.len() > SHARD_MAX {
            // What comes in order, as it does at open, leaves full shards behind.
            let is_last = at + 1 == self.shards.len();
            let shard = Arc::make_mut(&mut self.shards[at]);
            let upper = shard.split_off(if is_last { SHARD_MAX } else { SHARD_MAX / 2 });
            self.shards.insert(at + 1, Arc::new(upper));
        }
    }

    fn remove(&mut self, key: &K) {
        let at = self.shard_of(key);
        let Some(shard) = self.shards.get_mut(at) else { return };
        let Ok(found) = shard.binary_search_by(|it| it.0.cmp(key)) else { return };
        Arc::make_mut(shard).remove(found);
        self.len -= 1;
        if self.shards[at].is_empty() {
            self.shards.remove(at);
        } else if self.shards[at].len() < SHARD_MIN
            && let Some(next) = self.shards.get(at + 1)
            && self.shards[at].len() + next.len() <= SHARD_MAX
        {
            let next = self.shards.remove(at + 1);
            Arc::make_mut(&mut self.shards[at]).extend(next.iter().cloned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shards_are_a_sorted_map(rounds in prop::collection::vec((0u32..3_000, 0u32..900, 1u32..5, any::<bool>()), 1..40)) {
            let (mut shards, mut model) = (Shards::default(), BTreeMap::new());
            for (round, (start, n, step, is_there)) in rounds.into_iter().enumerate() {
                let before = (shards.clone(), model.clone());
                for key in (0..n).map(|at| start + at * step) {
                    match is_there {
                        true => { shards.insert(key, round); model.insert(key, round); }
                        false => { shards.remove(&key); model.remove(&key); }
                    }
                }
                prop_assert_eq!(shards.len, model.len());
                prop_assert!(shards.iter().eq(model.iter()));
                prop_assert!(shards.from(&start).eq(model.range(start..)));
                prop_assert_eq!(shards.get(&start), model.get(&start));
                prop_assert!(shards.shards.iter().all(|it| (1..=SHARD_MAX).contains(&it.len())));
                prop_assert!(before.0.iter().eq(before.1.iter()), "a copy changed");
            }
        }
    }

    #[test]
    fn a_change_copies_one_shard_and_shares_the_others() {
        let mut shards = Shards::default();
        (0..40_000u32).for_each(|key| shards.insert(key, key));
        let before = shards.clone();
        shards.insert(20_000, 0);
        let is_shared = |(one, other): &(&Arc<Vec<_>>, &Arc<Vec<_>>)| Arc::ptr_eq(one, other);
        let n_shared = before.shards.iter().zip(&shards.shards).filter(is_shared).count();
        assert_eq!((before.shards.len(), n_shared), (157, 156));
    }
}
