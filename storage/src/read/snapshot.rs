//! Snapshots: all records as they were after one commit, read while writes go on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::block::Block;
use crate::engine::kept_values::KeptValues;
use crate::engine::shared::Shared;
use crate::engine::value::{DiskKey, Location, Value};
use crate::error::{Error, Result};

/// All records as they were after one commit. Only one snapshot exists at a time, because the writer keeps in memory what
/// it overwrites meanwhile. Reads block.
pub(crate) struct Snapshot {
    shared: Arc<Shared>,
    commit: u64,
    collections: Vec<Locations>,
}

/// The records of one collection, in the order of the schema.
pub(crate) struct Locations {
    singles: BTreeMap<u32, Location>,
    /// Blocks by owner and number.
    partitions: BTreeMap<u64, BTreeMap<u32, Location>>,
    pub(crate) n_records: u64,
    pub(crate) next_id: u32,
}

impl Snapshot {
    pub(crate) fn begin(shared: &Arc<Shared>) -> Result<Self> {
        shared.n_scans.fetch_add(1, Ordering::SeqCst);
        // Commits keep and overwrite values under the exclusive lock, so all values that are kept belong to this state.
        let state = shared.state.read();
        {
            let mut kept = shared.kept.lock();
            if kept.is_some() {
                shared.n_scans.fetch_sub(1, Ordering::SeqCst);
                return Err(Error::SnapshotExists);
            }
            *kept = Some(KeptValues::default());
        }
        let collections = state.directories.iter().map(|it| Locations {
            singles: it.singles.clone(),
            partitions: it.partitions.iter().map(|(owner, it)| (*owner, it.blocks.clone())).collect(),
            n_records: it.len() as u64,
            next_id: it.next_id,
        });
        Ok(Self { shared: Arc::clone(shared), commit: state.commit, collections: collections.collect() })
    }

    pub(crate) fn commit(&self) -> u64 {
        self.commit
    }

    pub(crate) fn collections(&self) -> &[Locations] {
        &self.collections
    }

    /// Visits the encoded records of a collection: single ones by id, paged ones by owner and block. The first error of
    /// `visit` ends the visit.
    pub(crate) fn for_each<E: From<Error>>(
        &self,
        type_number: usize,
        mut visit: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let locations = &self.collections[type_number];
        for (id, at) in &locations.singles {
            let disk_key = self.shared.single_key(type_number, *id, at.version);
            visit(&self.payload(type_number, &disk_key, at)?)?;
        }
        for (owner, blocks) in &locations.partitions {
            for (number, at) in blocks {
                let disk_key = self.shared.block_key(type_number, *owner, *number, at.version);
                let block = Block::decode(&self.payload(type_number, &disk_key, at)?)?;
                for (_, record) in &block.records {
                    visit(record)?;
                }
            }
        }
        Ok(())
    }

    fn payload(&self, type_number: usize, disk_key: &DiskKey, at: &Location) -> Result<Vec<u8>> {
        let key = disk_key.encode();
        let bytes = {
            // A commit overwrites values under the exclusive lock only, after it has kept them.
            let _state = self.shared.state.read();
            let kept = {
                let kept = self.shared.kept.lock();
                let kept = kept.as_ref().filter(|it| !it.is_lost()).ok_or(Error::SnapshotLost)?;
                kept.get(&key).map(<[u8]>::to_vec)
            };
            match kept {
                Some(kept) => Some(kept),
                None => self.shared.disk()?.get(&key)?,
            }
        };
        let missing = || Error::DamagedRecord(format!("{disk_key} is missing"));
        let value = Value::decode_at(&key, &bytes.ok_or_else(missing)?)?;
        if value.commit != at.commit {
            return Err(Error::DamagedRecord(format!("{disk_key} is not of the commit that wrote it")));
        }
        self.shared.unseal(type_number, disk_key, &value)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        *self.shared.kept.lock() = None;
        self.shared.n_scans.fetch_sub(1, Ordering::SeqCst);
    }
}
