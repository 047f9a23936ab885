//! Writing everything into a fresh database, which then takes the place of the present one in a single step.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::commit_file::CommitMark;
use crate::engine::disk::{Disk, Slice};
use crate::engine::space::Watch;
use crate::engine::vault::sync_parent;
use crate::error::{Error, Result};
use crate::write::start::{database, remove_folder};
use crate::write::writer::{Batch, Writer, counts};

impl Writer {
    /// Copies what lives into a fresh database, which takes the place of this one. When that fails on the way, the
    /// present one goes on as if nothing had been tried.
    pub(crate) fn compact(&mut self) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let old = shared.disk();
        let generation = self.generation + 1;
        // A pass that begins now goes by what is current, so only an older one can still want what was replaced.
        let is_swept = shared.n_passes.load(Ordering::SeqCst) == 0;
        let nothing = BTreeSet::new();
        let skipped = if is_swept { &self.leftovers } else { &nothing };
        let new = fresh(&database(&shared.folder, generation), |new| copy(&old, new, skipped))?;
        let (commit, counts) = {
            let state = shared.state.read();
            (state.commit, counts(&shared, &state.directories))
        };
        // This one write decides which of the two counts.
        let format = shared.format;
        let done = self.commit_file.write(&CommitMark { format, generation, commit, counts });
        self.stop_after(&done);
        done?;
        if is_swept {
            self.leftovers.clear();
        }
        self.generation = generation;
        self.watch = Watch::default();
        *shared.disk.write() = Arc::new(new);
        // Someone may be reading in it.
        old.remove_with_last_reader();
        Ok(())
    }

    /// Tells when the database has become much larger than what lives in it.
    pub(crate) fn watch_space(&mut self) {
        let disk = self.shared.disk();
        if !self.watch.is_due(disk.written_bytes()) {
            return;
        }
        let (disk_bytes, live_bytes) = (disk.bytes(), self.shared.state.read().live_bytes());
        if self.watch.has_news(disk_bytes, live_bytes) {
            tracing::warn!(
                disk_bytes,
                live_bytes,
                "the store takes several times what lives in it; it is rewritten at the next start"
            );
        }
    }
}

/// A new database in this folder, filled and durable; or no folder.
pub(crate) fn fresh(folder: &Path, fill: impl FnOnce(&Disk) -> Result<()>) -> Result<Disk> {
    remove_folder(folder)?;
    let make = || {
        let new = Disk::open(folder)?;
        fill(&new)?;
        new.sync()?;
        sync_parent(folder).map_err(|error| Error::disk("sync the folder of the store", error))?;
        Ok(new)
    };
    make().inspect_err(|_| drop(remove_folder(folder)))
}

/// Everything but some keys from one database into another, as it is.
fn copy(from: &Disk, to: &Disk, skipped: &BTreeSet<Vec<u8>>) -> Result<()> {
    let mut batch = Batch { disk: to, slice: Slice::default(), is_staged: true };
    for item in from.scan(b"") {
        let (key, value) = item?;
        if !skipped.contains(&key) {
            batch.add(key, value)?;
        }
    }
    batch.send()
}
