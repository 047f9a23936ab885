//! What is kept in memory: where each record lies, and by which keys it is found.
//!
//! Made by reading everything once at open, and changed by the writer in the moment a commit lands. So an index can
//! never disagree with its records, and costs nothing on the disk.

use std::collections::BTreeMap;

use crate::engine::value::Place;
use crate::record::{CollectionKind, Key, hash};

/// Pairs of numbers in order: half of a key's hash and an id, or an id and a block. Eight bytes each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pairs {
    sorted: Vec<(u32, u32)>,
}

impl Pairs {
    pub(crate) fn of(mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        pairs.shrink_to_fit();
        Self { sorted: pairs }
    }

    /// What is paired with `first`.
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

    /// The smallest and the largest `first`.
    pub(crate) fn bounds(&self) -> Option<(u32, u32)> {
        Some((self.sorted.first()?.0, self.sorted.last()?.0))
    }

    /// A few changes move what is behind them; many are merged in one pass.
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
        let gone: std::collections::HashSet<_> = changes.iter().filter(|it| !it.1).map(|it| it.0).collect();
        self.sorted.retain(|it| !gone.contains(it));
        self.sorted.extend(changes.iter().filter(|it| it.1).map(|it| it.0));
        self.sorted.sort();
        self.sorted.dedup();
    }
}

/// Where one record or block lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) version: u64,
    /// The commit that wrote it; what the cache and stamps go by.
    pub(crate) commit: u64,
    /// What it takes of the disk, key and value.
    pub(crate) bytes: u32,
}

impl At {
    pub(crate) fn new(version: u64, commit: u64, key: &[u8], value_bytes: usize) -> Self {
        // A value beyond this is refused long before.
        let bytes = u32::try_from(key.len() + value_bytes).unwrap_or(u32::MAX);
        Self { version, commit, bytes }
    }
}

/// The records of one owner in a paged collection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Group {
    pub(crate) blocks: BTreeMap<u32, At>,
    /// Id and block.
    pub(crate) ids: Pairs,
    /// Half hash and id.
    pub(crate) index: Pairs,
}

impl Group {
    pub(crate) fn block_of(&self, id: u32) -> Option<u32> {
        let (least, most) = self.ids.bounds()?;
        if id < least || id > most { None } else { self.ids.with(id).next() }
    }

    /// What it takes of the disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.values().map(|it| u64::from(it.bytes)).sum()
    }

    pub(crate) fn has_in_common(&self, other: &Self) -> Option<u32> {
        let (least, most) = other.ids.bounds()?;
        self.ids
            .iter()
            .map(|it| it.0)
            .filter(|id| (least..=most).contains(id))
            .find(|id| other.block_of(*id).is_some())
    }
}

/// One collection.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) kind: CollectionKind,
    /// By id.
    pub(crate) singles: BTreeMap<u32, At>,
    /// Of the single records.
    pub(crate) index: Pairs,
    pub(crate) groups: BTreeMap<u64, Group>,
    pub(crate) next_id: u32,
    /// What its records take of the disk.
    pub(crate) live_bytes: u64,
}

impl Directory {
    pub(crate) fn new(kind: CollectionKind) -> Self {
        Self {
            kind,
            singles: BTreeMap::new(),
            index: Pairs::default(),
            groups: BTreeMap::new(),
            next_id: 1,
            live_bytes: 0,
        }
    }

    /// One record or block takes the place of another, or goes, or comes.
    pub(crate) fn count_bytes(&mut self, before: Option<At>, after: Option<At>) {
        let bytes = |at: Option<At>| at.map_or(0, |it| u64::from(it.bytes));
        self.live_bytes = self.live_bytes + bytes(after) - bytes(before);
    }

    pub(crate) fn len(&self) -> usize {
        match self.kind {
            CollectionKind::Single => self.singles.len(),
            CollectionKind::Paged => self.groups.values().map(|it| it.ids.len()).sum(),
        }
    }

    /// Owner and block of a record of a paged collection.
    pub(crate) fn locate(&self, id: u32) -> Option<(u64, u32)> {
        self.groups.iter().find_map(|(owner, group)| Some((*owner, group.block_of(id)?)))
    }
}

/// All collections, in the order of the schema.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) directories: Vec<Directory>,
    /// The last commit.
    pub(crate) commit: u64,
    /// Where what was set aside belongs.
    pub(crate) aside: Vec<Place>,
}

impl State {
    /// What all records take of the disk.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.directories.iter().map(|it| it.live_bytes).sum()
    }
}

/// The half of a key's hash that is kept.
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
        fn pairs_change_as_a_set_does(rounds in prop::collection::vec(prop::collection::btree_map((0u32..20, 0u32..20), any::<bool>(), 0..80), 1..6)) {
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
