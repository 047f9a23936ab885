//! The changes of a commit to the directory in memory: collected while it is written, applied when it becomes current.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::state::{Directory, Partition};
use crate::engine::value::Location;
use crate::record::CollectionKind;
use crate::write::overlay::{PairChanges, Places};

/// Changes to the directory in memory.
#[derive(Default)]
pub(crate) struct MemoryUpdate {
    pub(crate) singles: Vec<(usize, u32, Option<Location>)>,
    pub(crate) blocks: Vec<((usize, u64, u32), Option<Location>)>,
    /// Blocks of a replaced partition that are overwritten in place, with their version.
    pub(crate) present: Vec<((usize, u64, u32), u64)>,
    /// Keys of the values that this commit replaces.
    pub(crate) leftovers: Vec<Vec<u8>>,
}

/// Changes to the pairs of id and block, by type number and owner.
type IdChanges = BTreeMap<(usize, u64), Vec<((u32, u32), bool)>>;

impl MemoryUpdate {
    pub(crate) fn apply(
        &self,
        directories: &mut [Directory],
        replaced: Vec<((usize, u64), Partition)>,
        places: &Places,
        pairs: &PairChanges,
    ) {
        for (type_number, id, at) in &self.singles {
            let directory = &mut directories[*type_number];
            let before = match at {
                Some(at) => directory.singles.insert(*id, *at),
                None => directory.singles.remove(id),
            };
            directory.count(0, *id, before, *at);
        }
        let mut changed: BTreeSet<_> = self.blocks.iter().map(|it| (it.0.0, it.0.1)).collect();
        for ((type_number, owner), partition) in replaced {
            changed.insert((type_number, owner));
            let directory = &mut directories[type_number];
            directory.live_bytes += partition.bytes();
            directory.sum = directory.sum.wrapping_add(partition.sum(owner));
            if let Some(before) = directory.partitions.insert(owner, partition) {
                directory.live_bytes -= before.bytes();
                directory.sum = directory.sum.wrapping_sub(before.sum(owner));
            }
        }
        let mut ids = IdChanges::new();
        for ((type_number, id), place) in places {
            if let Some((owner, block)) = directories[*type_number].locate(*id) {
                ids.entry((*type_number, owner)).or_default().push(((*id, block), false));
            }
            if let Some((owner, block)) = place {
                ids.entry((*type_number, *owner)).or_default().push(((*id, *block), true));
            }
        }
        for ((type_number, owner, number), at) in &self.blocks {
            let directory = &mut directories[*type_number];
            let partition = directory.partitions.entry(*owner).or_default();
            let before = match at {
                Some(at) => partition.blocks.insert(*number, *at),
                None => partition.blocks.remove(number),
            };
            directory.count(*owner, *number, before, *at);
        }
        for ((type_number, owner), mut changes) in ids {
            // A pair that is removed and added again stays: the later change wins in the map.
            changes.sort_unstable();
            let changes: BTreeMap<_, _> = changes.into_iter().collect();
            let partition = directories[type_number].partitions.entry(owner).or_default();
            partition.ids.change(&changes.into_iter().collect::<Vec<_>>());
        }
        for ((type_number, owner), changes) in pairs {
            let changes: Vec<_> = changes.iter().map(|(pair, is_there)| (*pair, *is_there)).collect();
            let directory = &mut directories[*type_number];
            match directory.kind {
                CollectionKind::Single => directory.index.change(&changes),
                CollectionKind::Paged => {
                    changed.insert((*type_number, *owner));
                    directory.partitions.entry(*owner).or_default().index.change(&changes);
                }
            }
        }
        for (type_number, owner) in changed {
            let partitions = &mut directories[type_number].partitions;
            if partitions.get(&owner).is_some_and(|partition| partition.blocks.is_empty()) {
                partitions.remove(&owner);
            }
        }
    }
}
