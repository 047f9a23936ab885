//! Compaction: copies the current values to a new database, which replaces the present one in a single step.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::disk::Disk;
use crate::engine::folder::{create_database, database_folder};
use crate::engine::slice_writer::SliceWriter;
use crate::engine::space::{SpaceMonitor, ensure_room};
use crate::error::Result;
use crate::write::writer::Writer;

/// Room that the new database may take, compared with its records: sled writes some pages more than once.
const ROOM_PER_LIVE_BYTE: u64 = 2;

impl Writer {
    /// Replaces the database by a new one with the current values only. After a failure the present database stays in
    /// use.
    pub(crate) fn compact(&mut self) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let live_bytes = shared.state.read().live_bytes();
        ensure_room(&shared.folder, "compact the store", ROOM_PER_LIVE_BYTE * live_bytes)?;
        let old = shared.disk();
        let generation = self.generation + 1;
        // A scan that begins from now on reads current values, so only an older scan can still need replaced ones.
        let is_swept = shared.n_scans.load(Ordering::SeqCst) == 0;
        let nothing = BTreeSet::new();
        let skipped = if is_swept { &self.leftovers } else { &nothing };
        let folder = database_folder(&shared.folder, generation);
        let new = create_database(&folder, |new| copy(&old, new, skipped))?;
        let mark = shared.mark(generation, &shared.state.read());
        // This write switches from the old database to the new one.
        let done = self.commit_file.write(&mark);
        self.stop_after(&done);
        done?;
        if is_swept {
            self.leftovers.clear();
        }
        self.generation = generation;
        self.space_monitor = SpaceMonitor::default();
        *shared.disk.write() = Arc::new(new);
        // Readers may still use it.
        old.remove_with_last_reader();
        Ok(())
    }

    /// Logs a warning when the database has become much larger than its records.
    pub(crate) fn monitor_space(&mut self) {
        let disk = self.shared.disk();
        if !self.space_monitor.is_due(disk.written_bytes()) {
            return;
        }
        let (disk_bytes, live_bytes) = (disk.bytes(), self.shared.state.read().live_bytes());
        if self.space_monitor.should_warn(disk_bytes, live_bytes) {
            tracing::warn!(
                disk_bytes,
                live_bytes,
                "the store is several times larger than its data; the next start compacts it"
            );
        }
    }
}

/// Copies all values unchanged, except those of the skipped keys.
fn copy(from: &Disk, to: &Disk, skipped: &BTreeSet<Vec<u8>>) -> Result<()> {
    let mut writer = SliceWriter::staged(to);
    for item in from.scan(b"") {
        let (key, value) = item?;
        if !skipped.contains(&key) {
            writer.add(key, value)?;
        }
    }
    writer.send()
}
