//! Typed reads of one noun.
//!
//! A read of one record takes some microseconds, or as long as the slice that is being written. Whatever reads more
//! than a few belongs on a thread that may block.

use std::marker::PhantomData;

use crate::engine::shared::Shared;
use crate::engine::state::pair_of;
use crate::error::Result;
use crate::record::{CollectionKind, Key, Keys, Record, decode, fingerprint};
use crate::write::has;

/// The records of one noun, as last committed.
pub struct Collection<'a, T> {
    shared: &'a Shared,
    noun: usize,
    record: PhantomData<fn() -> T>,
}

impl<'a, T: Record> Collection<'a, T> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self { shared, noun: shared.schema.number::<T>(), record: PhantomData }
    }

    /// How many there are. Cheap.
    pub fn len(&self) -> usize {
        self.shared.state.read().directories[self.noun].len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, id: u32) -> Result<Option<T>> {
        match T::KIND {
            CollectionKind::Single => {
                // The lock is held over the read, so that no commit comes between place and value.
                let state = self.shared.state.read();
                let Some(at) = state.directories[self.noun].singles.get(&id).copied() else {
                    return Ok(None);
                };
                let bytes = self.shared.single(self.noun, id, at.version)?;
                drop(state);
                decode(&bytes).map(Some)
            }
            CollectionKind::Paged => {
                let state = self.shared.state.read();
                let directory = &state.directories[self.noun];
                let Some((owner, number)) = directory.locate(id) else { return Ok(None) };
                let at = directory.groups[&owner].blocks[&number];
                let block = self.shared.block(self.noun, owner, number, at)?;
                drop(state);
                let missing = || self.shared.missing(self.noun, id);
                let block = block.ok_or_else(missing)?;
                decode(block.get(id).ok_or_else(missing)?).map(Some)
            }
        }
    }

    /// A number that is another one whenever the record may be: the commit that last wrote the record, or the block
    /// it lies in. `None` where there is no record. Reads no disk. The same after reopening.
    pub fn stamp(&self, id: u32) -> Option<u64> {
        let state = self.shared.state.read();
        let directory = &state.directories[self.noun];
        match T::KIND {
            CollectionKind::Single => directory.singles.get(&id).map(|it| it.commit),
            CollectionKind::Paged => {
                let (owner, number) = directory.locate(id)?;
                directory.groups.get(&owner)?.blocks.get(&number).map(|it| it.commit)
            }
        }
    }

    /// A number that is another one whenever anything of this owner may be. Reads no disk, and takes some tens of
    /// microseconds for an owner with half a million records. The same after reopening, and for all owners without
    /// records. Paged collections only.
    pub fn fingerprint_of(&self, owner: u64) -> u64 {
        const { assert!(matches!(T::KIND, CollectionKind::Paged), "fingerprints are for paged collections") };
        let state = self.shared.state.read();
        let group = state.directories[self.noun].groups.get(&owner);
        let blocks = group.into_iter().flat_map(|it| &it.blocks).map(|(number, at)| (*number, at.commit));
        fingerprint(blocks)
    }

    /// All records with this value of an index, by id.
    pub fn by(&self, index: &'static str, value: impl AsRef<[u8]>) -> Result<Vec<T>> {
        let key = Key { index, is_unique: false, value: value.as_ref().to_vec() };
        let half = pair_of(&key);
        let mut ids: Vec<u32> = {
            let state = self.shared.state.read();
            let directory = &state.directories[self.noun];
            let paged = directory.groups.values().flat_map(|it| it.index.with(half));
            directory.index.with(half).chain(paged).collect()
        };
        ids.sort_unstable();
        let mut found = Vec::new();
        for id in ids {
            // A record may have gone since; whether the key is really this one is seen in the record.
            if let Some(record) = self.get(id)?
                && has(&Keys::of(&record), &key)
            {
                found.push(record);
            }
        }
        Ok(found)
    }

    /// The first record with this value, for unique indexes.
    pub fn one_by(&self, index: &'static str, value: impl AsRef<[u8]>) -> Result<Option<T>> {
        Ok(self.by(index, value)?.into_iter().next())
    }

    /// All ids in order.
    pub fn ids(&self) -> Vec<u32> {
        let state = self.shared.state.read();
        let directory = &state.directories[self.noun];
        let mut ids: Vec<u32> = directory.singles.keys().copied().collect();
        ids.extend(directory.groups.values().flat_map(|it| it.ids.iter().map(|it| it.0)));
        ids.sort_unstable();
        ids
    }

    /// The owners of a paged collection that have records.
    pub fn owners(&self) -> Vec<u64> {
        self.shared.state.read().directories[self.noun].groups.keys().copied().collect()
    }

    /// How many records an owner has. Cheap.
    pub fn len_of(&self, owner: u64) -> usize {
        self.shared.state.read().directories[self.noun].groups.get(&owner).map_or(0, |it| it.ids.len())
    }

    /// All records; single ones by id.
    pub fn all(&self) -> Result<Vec<T>> {
        let mut found = Vec::with_capacity(self.len());
        self.for_each(|record| found.push(record))?;
        Ok(found)
    }

    /// Goes through all records without having them all in memory. Single ones come by id, paged ones by owner
    /// and block. What is committed meanwhile may be seen or not, record by record.
    pub fn for_each(&self, mut see: impl FnMut(T)) -> Result<()> {
        match T::KIND {
            CollectionKind::Single => {
                for id in self.ids() {
                    if let Some(record) = self.get(id)? {
                        see(record);
                    }
                }
                Ok(())
            }
            CollectionKind::Paged => {
                for owner in self.owners() {
                    self.for_each_of(owner, &mut see)?;
                }
                Ok(())
            }
        }
    }

    /// Goes through the records of one owner, in the order of blocks. A group that is replaced meanwhile is seen
    /// as it was.
    pub fn for_each_of(&self, owner: u64, mut see: impl FnMut(T)) -> Result<()> {
        self.while_of(owner, |record| {
            see(record);
            true
        })
    }

    /// The same until `see` says false.
    pub(crate) fn while_of(&self, owner: u64, mut see: impl FnMut(T) -> bool) -> Result<()> {
        let _pass = self.shared.pass();
        let blocks = {
            let state = self.shared.state.read();
            state.directories[self.noun].groups.get(&owner).map(|it| it.blocks.clone()).unwrap_or_default()
        };
        for (number, at) in blocks {
            // A block that shrank to nothing is gone; its records are too.
            if let Some(block) = self.shared.block_uncached(self.noun, owner, number, at)? {
                for (_, bytes) in &block.records {
                    if !see(decode(bytes)?) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}
