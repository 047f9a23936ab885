//! A cache of decompressed blocks.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::engine::block::Block;

/// Maximum memory of the cached blocks.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// Memory that a record takes in addition to its bytes: its id and its vector.
const RECORD_OVERHEAD_BYTES: usize = 24;

/// Type number, owner, block, and the commit that wrote it. A rewritten block gets a new key.
pub(crate) type CacheKey = (usize, u64, u32, u64);

/// Decompressed blocks. Evicts the oldest block first.
#[derive(Default)]
pub(crate) struct BlockCache {
    blocks: HashMap<CacheKey, Arc<Block>>,
    order: VecDeque<(CacheKey, usize)>,
    bytes: usize,
}

impl BlockCache {
    pub(crate) fn get(&self, key: &CacheKey) -> Option<Arc<Block>> {
        self.blocks.get(key).cloned()
    }

    pub(crate) fn put(&mut self, key: CacheKey, block: Arc<Block>) {
        let bytes = block.bytes() + RECORD_OVERHEAD_BYTES * block.records.len();
        if self.blocks.insert(key, block).is_none() {
            self.order.push_back((key, bytes));
            self.bytes += bytes;
        }
        while self.bytes > BYTES_MAX {
            let Some((oldest, bytes)) = self.order.pop_front() else { break };
            self.blocks.remove(&oldest);
            self.bytes -= bytes;
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
