//! What a commit changes in memory, gathered while it is written and carried out in the moment it lands.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::state::{At, Directory, Group};
use crate::record::CollectionKind;
use crate::write::{Pending, Places};

/// What has to change in memory when a commit lands.
#[derive(Default)]
pub(crate) struct MemoryUpdate {
    pub(crate) singles: Vec<(usize, u32, Option<At>)>,
    pub(crate) blocks: Vec<((usize, u64, u32), Option<At>)>,
    /// Blocks of a replaced group that are written over, and their version.
    pub(crate) present: Vec<((usize, u64, u32), u64)>,
    pub(crate) leftovers: Vec<Vec<u8>>,
}

/// Changes to pairs of one group.
type PairChanges = BTreeMap<(usize, u64), Vec<((u32, u32), bool)>>;

impl MemoryUpdate {
    pub(crate) fn apply(
        &self,
        directories: &mut [Directory],
        replaced: Vec<((usize, u64), Group)>,
        places: &Places,
        pairs: &Pending,
    ) {
        for (noun, id, at) in &self.singles {
            let directory = &mut directories[*noun];
            let before = match at {
                Some(at) => directory.singles.insert(*id, *at),
                None => directory.singles.remove(id),
            };
            directory.count_bytes(before, *at);
        }
        let mut seen: BTreeSet<_> = self.blocks.iter().map(|it| (it.0.0, it.0.1)).collect();
        for ((noun, owner), group) in replaced {
            seen.insert((noun, owner));
            let directory = &mut directories[noun];
            directory.live_bytes += group.bytes();
            let before = directory.groups.insert(owner, group);
            directory.live_bytes -= before.map_or(0, |it| it.bytes());
        }
        let mut ids = PairChanges::new();
        for ((noun, id), place) in places {
            if let Some((owner, block)) = directories[*noun].locate(*id) {
                ids.entry((*noun, owner)).or_default().push(((*id, block), false));
            }
            if let Some((owner, block)) = place {
                ids.entry((*noun, *owner)).or_default().push(((*id, *block), true));
            }
        }
        for ((noun, owner, number), at) in &self.blocks {
            let directory = &mut directories[*noun];
            let group = directory.groups.entry(*owner).or_default();
            let before = match at {
                Some(at) => group.blocks.insert(*number, *at),
                None => group.blocks.remove(number),
            };
            directory.count_bytes(before, *at);
        }
        for ((noun, owner), mut changes) in ids {
            // A pair that goes and comes again stays.
            changes.sort_unstable();
            let stays: BTreeMap<_, _> = changes.into_iter().collect();
            let group = directories[noun].groups.entry(owner).or_default();
            group.ids.change(&stays.into_iter().collect::<Vec<_>>());
        }
        for ((noun, owner), changes) in pairs {
            let changes: Vec<_> = changes.iter().map(|(pair, is_there)| (*pair, *is_there)).collect();
            let directory = &mut directories[*noun];
            match directory.kind {
                CollectionKind::Single => directory.index.change(&changes),
                CollectionKind::Paged => {
                    seen.insert((*noun, *owner));
                    directory.groups.entry(*owner).or_default().index.change(&changes);
                }
            }
        }
        for (noun, owner) in seen {
            let groups = &mut directories[noun].groups;
            if groups.get(&owner).is_some_and(|group| group.blocks.is_empty()) {
                groups.remove(&owner);
            }
        }
    }
}
