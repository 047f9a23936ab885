//! Sweeping: removes replaced values from the database, one slice at a time.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use crate::engine::disk::{BLOCK_WEIGHT, Disk, SLICE_WEIGHT_MAX, Slice};
use crate::error::Result;
use crate::write::writer::Writer;

/// Keys that are removed at a time: as many as blocks are written at a time, because sled rewrites as much for them.
const SWEPT_MAX: usize = SLICE_WEIGHT_MAX / BLOCK_WEIGHT;

impl Writer {
    /// Removes some of the leftovers. Returns false if there are none or they have to stay for now.
    pub(crate) fn sweep_one_slice(&mut self) -> bool {
        if self.leftovers.is_empty()
            || self.shared.n_scans.load(Ordering::SeqCst) > 0
            || self.ensure_not_stopped().is_err()
        {
            return false;
        }
        let done = self.shared.disk().and_then(|it| sweep(&it, &mut self.leftovers));
        self.stop_after(&done);
        done.is_ok()
    }
}

/// Removes one slice of leftovers, oldest versions first.
pub(crate) fn sweep(disk: &Disk, leftovers: &mut BTreeSet<Vec<u8>>) -> Result<()> {
    let mut slice = Slice::default();
    while slice.weight() < SWEPT_MAX
        && let Some(key) = leftovers.pop_first()
    {
        slice.remove(key);
    }
    disk.apply(slice).and_then(|()| disk.flush())
}
