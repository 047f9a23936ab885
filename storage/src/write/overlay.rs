//! The uncommitted changes of a write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::block::Block;
use crate::engine::disk::BLOCK_WEIGHT;
use crate::engine::state::Partition;
use crate::engine::value::DiskKey;
use crate::log::Applied;
use crate::record::Schema;

/// Records of paged collections that were put or removed, by type number and id, with their current owner and block.
pub(crate) type Places = BTreeMap<(usize, u32), Option<(u64, u32)>>;
/// Index pairs that are added (`true`) or removed, by type number and owner; the owner is 0 for single records.
pub(crate) type PairChanges = BTreeMap<(usize, u64), BTreeMap<(u32, u32), bool>>;

/// Changes to several collections that are committed together, on top of the committed state.
#[derive(Clone, Default)]
pub(crate) struct Overlay {
    /// By type number and id; `None` for removed records.
    pub(crate) singles: BTreeMap<(usize, u32), Option<Arc<[u8]>>>,
    /// Replaced partitions, by type number and owner. The blocks and pairs below are changes to these.
    pub(crate) partitions: BTreeMap<(usize, u64), Arc<Partition>>,
    /// By type number, owner and block; an empty block is removed.
    pub(crate) blocks: BTreeMap<(usize, u64, u32), Arc<Block>>,
    pub(crate) places: Places,
    pub(crate) pairs: PairChanges,
    /// Next ids, by type number.
    pub(crate) counters: BTreeMap<usize, u32>,
    /// Paged records that are complete again, by type number and owner.
    pub(crate) healed: BTreeSet<(usize, u64)>,
    /// The commit of the log that this is.
    pub(crate) applied: Option<Applied>,
}

impl Overlay {
    pub(crate) fn is_empty(&self) -> bool {
        self.singles.is_empty()
            && self.partitions.is_empty()
            && self.blocks.is_empty()
            && self.counters.is_empty()
            && self.healed.is_empty()
            && self.applied.is_none()
    }

    /// Returns whether the record or block that was set aside under this key is no longer missed.
    pub(crate) fn heals(&self, schema: &Schema, disk_key: &DiskKey) -> bool {
        let (DiskKey::Single { collection, .. } | DiskKey::Block { collection, .. }) = disk_key else {
            return false;
        };
        let Some(type_number) = schema.position(collection) else { return false };
        match disk_key {
            DiskKey::Single { id, .. } => self.singles.contains_key(&(type_number, *id)),
            DiskKey::Block { owner, .. } => {
                let of_owner = (type_number, *owner);
                self.healed.contains(&of_owner) || self.partitions.contains_key(&of_owner)
            }
            _ => false,
        }
    }

    /// Returns the weight of the changes, in the unit of slices.
    pub(crate) fn weight(&self) -> usize {
        self.singles.len() + self.blocks.len() * BLOCK_WEIGHT
    }
}
