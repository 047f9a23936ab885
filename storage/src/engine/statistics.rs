//! The figures of a store.

use std::time::Duration;

use crate::engine::disk::SLICE_WEIGHT_MAX;

/// Counters and sizes of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStatistics {
    /// The number of the last commit.
    pub version: u64,
    /// Number of slices written since the start.
    pub n_slices: usize,
    /// Weight of the heaviest slice; see [`StoreStatistics::SLICE_WEIGHT_MAX`].
    pub slice_weight_max: usize,
    /// Size of the records on the disk.
    pub live_bytes: u64,
    /// Size of the database on the disk. Several times `live_bytes` when the store should be compacted.
    pub disk_bytes: u64,
    /// Memory of the cached blocks.
    pub cache_bytes: usize,
    /// Number of damaged records and blocks that were set aside; see [`Store::set_aside`](crate::Store::set_aside).
    pub n_set_aside: usize,
    /// Whether the database is being copied to a new one that contains the current records only.
    pub is_compacting: bool,
    /// Number of such copies since the store was opened.
    pub n_compactions: u64,
    /// Number of records and blocks that were read since the store was opened, also from the cache.
    pub n_reads: u64,
    /// Time since the last commit became durable, or since the store was opened.
    pub last_commit_age: Duration,
    /// Time for which the present operation of the disk has taken, if it hangs; zero otherwise.
    pub hanging_for: Duration,
}

impl StoreStatistics {
    /// Maximum weight of a slice: a hundred single records, or twenty blocks. Bounds how long readers and other writes
    /// wait.
    pub const SLICE_WEIGHT_MAX: usize = SLICE_WEIGHT_MAX;
}
