//! How much of the disk the store takes beside what lives in it.
//!
//! sled never gives anything back, so a store that is changed much grows. It is rewritten at open when it takes several
//! times what lives in it; until then the one who runs it is told.

/// A store wastes space when its database is this many times what lives in it …
pub(crate) const AMPLIFICATION_MAX: u64 = 4;
/// … and at least this large.
pub(crate) const COMPACT_BYTES_MIN: u64 = 64 * 1024 * 1024;
/// The database is looked at after this many bytes were written, and not at every commit.
const LOOK_EVERY_BYTES: u64 = COMPACT_BYTES_MIN / 4;

pub(crate) fn is_wasteful(disk_bytes: u64, live_bytes: u64) -> bool {
    disk_bytes >= COMPACT_BYTES_MIN && disk_bytes > AMPLIFICATION_MAX * live_bytes
}

/// Watches one database while it is written to.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Bytes that were written when the database was last looked at.
    looked_at: u64,
    /// How large it was when that was last told.
    warned_at: u64,
}

impl Watch {
    /// Is it time to look, now that so many bytes were written?
    pub(crate) fn is_due(&mut self, written_bytes: u64) -> bool {
        let is_due = written_bytes >= self.looked_at + LOOK_EVERY_BYTES;
        if is_due {
            self.looked_at = written_bytes;
        }
        is_due
    }

    /// Is it to be told? Once, and again each time the database has doubled.
    pub(crate) fn has_news(&mut self, disk_bytes: u64, live_bytes: u64) -> bool {
        let has_news = is_wasteful(disk_bytes, live_bytes) && disk_bytes >= 2 * self.warned_at;
        if has_news {
            self.warned_at = disk_bytes;
        }
        has_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    #[test]
    fn wasted_space_is_told_once_per_doubling() {
        // MiB of the database, MiB that live in it, whether that is told.
        let table = [
            (10, 1, false),
            (63, 1, false),
            (64, 16, false),
            (64, 15, true),
            (65, 15, false),
            (127, 15, false),
            (128, 15, true),
            // It grew because more lives in it.
            (256, 100, false),
            (500, 100, true),
            (900, 100, false),
            (1_000, 100, true),
        ];
        let mut watch = Watch::default();
        for (at, (disk, live, is_told)) in table.into_iter().enumerate() {
            assert_eq!(watch.has_news(disk * MIB, live * MIB), is_told, "line {at}");
        }
    }

    #[test]
    fn the_database_is_looked_at_after_every_sixteen_mebibytes_written() {
        let mut watch = Watch::default();
        let looks: Vec<u64> = (0..40).filter(|mib| watch.is_due(mib * MIB)).collect();
        assert_eq!(looks, [16, 32]);
    }
}
