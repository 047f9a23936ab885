//! Decides when the database is so much larger than its records that the store has to be compacted.
//!
//! sled never returns space to the file system, so a store with many changes grows. The store is compacted when it
//! opens; until then it logs a warning.

use std::path::Path;

use crate::error::{Error, Result};

/// Room that has to be left on the disk; writes are refused below. sled cannot go on after a failed write, so writes
/// stop before one fails. The crate's own tests let them fail.
const RESERVE_BYTES: u64 = if cfg!(test) { 0 } else { 16 * 1024 * 1024 };

/// Refuses work that writes this many bytes if the file system of a folder would be full afterwards. `what` completes
/// "not enough room on the disk to …".
pub(crate) fn ensure_room(folder: &Path, what: &'static str, bytes: u64) -> Result<()> {
    // A file system that does not say how much room it has is taken to have enough.
    let Ok(found) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let (needed, available) =
        (bytes.saturating_add(RESERVE_BYTES), found.f_bavail.saturating_mul(found.f_frsize));
    match available < needed {
        true => Err(Error::NoRoom { what, needed, available }),
        false => Ok(()),
    }
}

/// A store wastes space when its database is more than this many times the size of its records …
pub(crate) const AMPLIFICATION_MAX: u64 = 4;
/// … and at least this large.
pub(crate) const COMPACT_BYTES_MIN: u64 = 64 * 1024 * 1024;
/// The size is measured each time this many bytes were written, because measuring at every commit is too slow.
const MEASURE_EVERY_BYTES: u64 = COMPACT_BYTES_MIN / 4;

pub(crate) fn is_wasteful(disk_bytes: u64, live_bytes: u64) -> bool {
    disk_bytes >= COMPACT_BYTES_MIN && disk_bytes > AMPLIFICATION_MAX * live_bytes
}

/// Follows the size of one database while it grows.
#[derive(Debug, Default)]
pub(crate) struct SpaceMonitor {
    /// Bytes written up to the last measurement.
    measured_at: u64,
    /// Size of the database at the last warning, in bytes.
    warned_at: u64,
}

impl SpaceMonitor {
    /// Returns whether to measure the database again, now that this many bytes were written in total.
    pub(crate) fn is_due(&mut self, written_bytes: u64) -> bool {
        let is_due = written_bytes >= self.measured_at + MEASURE_EVERY_BYTES;
        if is_due {
            self.measured_at = written_bytes;
        }
        is_due
    }

    /// Returns true once when space is wasted, and again each time the database has doubled.
    pub(crate) fn should_warn(&mut self, disk_bytes: u64, live_bytes: u64) -> bool {
        let should_warn = is_wasteful(disk_bytes, live_bytes) && disk_bytes >= 2 * self.warned_at;
        if should_warn {
            self.warned_at = disk_bytes;
        }
        should_warn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    #[test]
    fn wasted_space_causes_one_warning_per_doubling() {
        // MiB of the database, MiB of records, whether there is a warning.
        let table = [
            (10, 1, false),
            (63, 1, false),
            (64, 16, false),
            (64, 15, true),
            (65, 15, false),
            (127, 15, false),
            (128, 15, true),
            // It grew because it has more records.
            (256, 100, false),
            (500, 100, true),
            (900, 100, false),
            (1_000, 100, true),
        ];
        let mut watch = SpaceMonitor::default();
        for (at, (disk, live, is_warning)) in table.into_iter().enumerate() {
            assert_eq!(watch.should_warn(disk * MIB, live * MIB), is_warning, "line {at}");
        }
    }

    #[test]
    fn the_database_is_measured_after_every_sixteen_mebibytes_written() {
        let mut watch = SpaceMonitor::default();
        let measured: Vec<u64> = (0..40).filter(|mib| watch.is_due(mib * MIB)).collect();
        assert_eq!(measured, [16, 32]);
    }
}
