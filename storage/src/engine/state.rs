//! The directory in memory: the location and the index keys of each record.
//!
//! Built from all records when the store opens, and changed by the writer at the moment a commit becomes current. An
//! index therefore never disagrees with its records, and takes no disk space.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;

use crate::engine::value::{DiskKey, Location};
use crate::record::{CollectionKind, Key, Schema, fingerprint, hash};

/// A sorted set of pairs of numbers, eight bytes each: half of a key's hash and an id, or an id and a block.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pairs {
    sorted: Vec<(u32, u32)>,
}

impl Pairs {
    pub(crate) fn new(mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        pairs.shrink_to_fit();
        Self { sorted: pairs }
    }

    /// Lists the second numbers of all pairs with this first number.
    pub(crate) fn with(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let start = self.sorted.partition_point(|it| it.0 < first);
        self.sorted[start..].iter().take_while(move |it| it.0 == first).map(|it| it.1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.sorted.iter().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Returns whether a pair has a first number in this range.
    pub(crate) fn has_in(&self, firsts: &RangeInclusive<u32>) -> bool {
        let start = self.sorted.partition_point(|it| it.0 < *firsts.start());
        self.sorted.get(start).is_some_and(|it| firsts.contains(&it.0))
    }

    /// Returns the smallest and the largest first number.
    pub(crate) fn bounds(&self) -> Option<(u32, u32)> {
        Some((self.sorted.first()?.0, self.sorted.last()?.0))
    }

    /// Adds (`true`) and removes (`false`) pairs. A few changes shift the tail of the vector; many are merged in one
    /// pass.
    pub(crate) fn change(&mut self, changes: &[((u32, u32), bool)]) {
        if changes.len() <= 32 {
            for (pair, is_there) in changes {
                match (self.sorted.binary_search(pair), is_there) {
                    (Ok(at), false) => drop(self.sorted.remove(at)),
                    (Err(at), true) => self.sorted.insert(at, *pair),
                    _ => {}
                }
            }
            return;
        }
        let gone: HashSet<_> = changes.iter().filter(|it| !it.1).map(|it| it.0).collect();
        self.sorted.retain(|it| !gone.contains(it));
        self.sorted.extend(changes.iter().filter(|it| it.1).map(|it| it.0));
        self.sorted.sort();
        self.sorted.dedup();
    }
}

/// The records of one owner in a paged collection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Partition {
    pub(crate) blocks: BTreeMap<u32, Location>,
    /// Pairs of id and block.
    pub(crate) ids: Pairs,
    /// Pairs of half a key's hash and id.
    pub(crate) index: Pairs,
}

impl Partition {
    pub(crate) fn block_of(&self, id: u32) -> Option<u32> {
        let (least, most) = self.ids.bounds()?;
        if id < least || id > most { None } else { self.ids.with(id).next() }
    }

    /// Size on the disk, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.values().map(|it| u64::from(it.bytes)).sum()
    }

    /// Sum over all blocks; see [`value_hash`].
    pub(crate) fn sum(&self, owner: u64) -> u64 {
        let hashes = self.blocks.iter().map(|(number, at)| value_hash(owner, *number, at.version, at.commit));
        hashes.fold(0, u64::wrapping_add)
    }

    /// Returns an id that both partitions have.
    pub(crate) fn common_id(&self, other: &Self) -> Option<u32> {
        let (least, most) = other.ids.bounds()?;
        self.ids
            .iter()
            .map(|it| it.0)
            .filter(|id| (least..=most).contains(id))
            .find(|id| other.block_of(*id).is_some())
    }
}

/// The directory of one collection.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) kind: CollectionKind,
    /// Locations by id.
    pub(crate) singles: BTreeMap<u32, Location>,
    /// Index of the single records: pairs of half a key's hash and id.
    pub(crate) index: Pairs,
    pub(crate) partitions: BTreeMap<u64, Partition>,
    pub(crate) next_id: u32,
    /// The commit that wrote the next id to the disk.
    pub(crate) counter_commit: Option<u64>,
    /// Sum over all current records or blocks; see [`value_hash`].
    pub(crate) sum: u64,
    /// Size of its records on the disk, in bytes.
    pub(crate) live_bytes: u64,
}

impl Directory {
    pub(crate) fn new(kind: CollectionKind) -> Self {
        Self {
            kind,
            singles: BTreeMap::new(),
            index: Pairs::default(),
            partitions: BTreeMap::new(),
            next_id: 1,
            counter_commit: None,
            sum: 0,
            live_bytes: 0,
        }
    }

    /// Updates size and sum after one record or block was added, replaced or removed. Single records have the owner 0.
    pub(crate) fn count(
        &mut self,
        owner: u64,
        number: u32,
        before: Option<Location>,
        after: Option<Location>,
    ) {
        let bytes = |at: Option<Location>| at.map_or(0, |it| u64::from(it.bytes));
        self.live_bytes = self.live_bytes + bytes(after) - bytes(before);
        let hash = |at: Option<Location>| at.map_or(0, |it| value_hash(owner, number, it.version, it.commit));
        self.sum = self.sum.wrapping_add(hash(after)).wrapping_sub(hash(before));
    }

    pub(crate) fn len(&self) -> usize {
        match self.kind {
            CollectionKind::Single => self.singles.len(),
            CollectionKind::Paged => self.partitions.values().map(|it| it.ids.len()).sum(),
        }
    }

    /// Returns owner and block of a record of a paged collection.
    pub(crate) fn locate(&self, id: u32) -> Option<(u64, u32)> {
        self.partitions.iter().find_map(|(owner, partition)| Some((*owner, partition.block_of(id)?)))
    }
}

/// The directories of all collections, in the order of the schema.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) directories: Vec<Directory>,
    /// The last commit.
    pub(crate) commit: u64,
    /// Original keys of the damaged records that were set aside.
    pub(crate) set_aside: Vec<DiskKey>,
}

impl State {
    /// Returns whether a damaged block of a collection was set aside, of an owner for which this returns true.
    pub(crate) fn misses(&self, name: &str, is_owner: impl Fn(u64) -> bool) -> bool {
        self.set_aside.iter().any(|it| {
            matches!(it, DiskKey::Block { collection, owner, .. } if collection == name && is_owner(*owner))
        })
    }

    /// Size of all records on the disk, in bytes.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.directories.iter().map(|it| it.live_bytes).sum()
    }
}

/// Returns what a current value adds to the sum of its collection: a hash of its key and of the commit that wrote it.
pub(crate) fn value_hash(owner: u64, number: u32, version: u64, commit: u64) -> u64 {
    fingerprint([(number, owner), (0, version), (1, commit)].into_iter())
}

/// Returns what the id counter of a collection adds to its sum.
pub(crate) fn counter_hash(commit: Option<u64>) -> u64 {
    commit.map_or(0, |commit| value_hash(u64::MAX, u32::MAX, 0, commit))
}

/// Sums the current values and the id counter per collection.
pub(crate) fn value_sums(schema: &Schema, directories: &[Directory]) -> BTreeMap<String, u64> {
    let names = schema.record_types.iter().map(|it| it.name.to_owned());
    names.zip(directories.iter().map(|it| it.sum.wrapping_add(counter_hash(it.counter_commit)))).collect()
}

/// Counts the records per collection.
pub(crate) fn record_counts(schema: &Schema, directories: &[Directory]) -> BTreeMap<String, u64> {
    let names = schema.record_types.iter().map(|it| it.name.to_owned());
    names.zip(directories.iter().map(|it| it.len() as u64)).collect()
}

/// Returns the half of a key's hash that the indexes store.
pub(crate) fn half_hash(index: &str, value: &[u8]) -> u32 {
    (hash(index, value) >> 32) as u32
}

pub(crate) fn pair_of(key: &Key) -> u32 {
    half_hash(key.index, &key.value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pairs_behave_like_a_set(rounds in prop::collection::vec(prop::collection::btree_map((0u32..20, 0u32..20), any::<bool>(), 0..80), 1..6)) {
            let (mut pairs, mut model) = (Pairs::default(), BTreeSet::new());
            for round in rounds {
                for (pair, is_there) in &round {
                    if *is_there { model.insert(*pair); } else { model.remove(pair); }
                }
                pairs.change(&round.into_iter().collect::<Vec<_>>());
                prop_assert!(pairs.iter().eq(model.iter().copied()));
            }
        }
    }
}
