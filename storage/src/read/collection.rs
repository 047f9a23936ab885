//! Typed reads of one collection.
//!
//! A read of one record takes some microseconds, or as long as the slice that is being written. Reads of more than a few
//! records belong on a thread that may block.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use crate::engine::shared::Shared;
use crate::engine::state::pair_of;
use crate::engine::value::Location;
use crate::error::Result;
use crate::record::{CollectionKind, Key, Keys, Record, decode, fingerprint, has_key};

/// The committed records of one type.
pub struct Collection<'a, T> {
    shared: &'a Shared,
    type_number: usize,
    record: PhantomData<fn() -> T>,
}

impl<'a, T: Record> Collection<'a, T> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self { shared, type_number: shared.schema.number::<T>(), record: PhantomData }
    }

    /// Returns the number of records. Cheap.
    pub fn len(&self) -> usize {
        self.shared.state.read().directories[self.type_number].len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, id: u32) -> Result<Option<T>> {
        match T::KIND {
            CollectionKind::Single => {
                // The lock is held during the read, so that no commit changes the value in between.
                let state = self.shared.state.read();
                let Some(at) = state.directories[self.type_number].singles.get(&id).copied() else {
                    return Ok(None);
                };
                let bytes = self.shared.single(self.type_number, id, at.version)?;
                drop(state);
                decode(&bytes).map(Some)
            }
            CollectionKind::Paged => {
                let state = self.shared.state.read();
                let directory = &state.directories[self.type_number];
                let Some((owner, number)) = directory.locate(id) else { return Ok(None) };
                let at = directory.partitions[&owner].blocks[&number];
                let block = self.shared.block(self.type_number, owner, number, at)?;
                drop(state);
                let missing = || self.shared.missing(self.type_number, id);
                let block = block.ok_or_else(missing)?;
                decode(block.get(id).ok_or_else(missing)?).map(Some)
            }
        }
    }

    /// Returns a number that changes whenever the record may have changed: the commit that last wrote the record or its
    /// block. Returns `None` if the record does not exist. Does not read the disk. Survives reopening.
    pub fn stamp(&self, id: u32) -> Option<u64> {
        let state = self.shared.state.read();
        let directory = &state.directories[self.type_number];
        match T::KIND {
            CollectionKind::Single => directory.singles.get(&id).map(|it| it.commit),
            CollectionKind::Paged => {
                let (owner, number) = directory.locate(id)?;
                directory.partitions.get(&owner)?.blocks.get(&number).map(|it| it.commit)
            }
        }
    }

    /// Returns a number that changes whenever any record of this owner may have changed. Does not read the disk, and
    /// takes some tens of microseconds for an owner with half a million records. Survives reopening, and is the same for
    /// all owners without records. Paged collections only.
    pub fn fingerprint_of(&self, owner: u64) -> u64 {
        const { assert!(matches!(T::KIND, CollectionKind::Paged), "fingerprints are for paged collections") };
        let state = self.shared.state.read();
        let partition = state.directories[self.type_number].partitions.get(&owner);
        let blocks = partition.into_iter().flat_map(|it| &it.blocks).map(|(number, at)| (*number, at.commit));
        fingerprint(blocks)
    }

    /// Lists all records with this value of an index, by id.
    pub fn by(&self, index: &'static str, value: impl AsRef<[u8]>) -> Result<Vec<T>> {
        let key = Key { index, is_unique: false, value: value.as_ref().to_vec() };
        let half = pair_of(&key);
        let mut ids: Vec<u32> = {
            let state = self.shared.state.read();
            let directory = &state.directories[self.type_number];
            let paged = directory.partitions.values().flat_map(|it| it.index.with(half));
            directory.index.with(half).chain(paged).collect()
        };
        ids.sort_unstable();
        let mut found = Vec::new();
        for id in ids {
            // The record may have been removed since, or another value may have the same hash.
            if let Some(record) = self.get(id)?
                && has_key(&Keys::of(&record), &key)
            {
                found.push(record);
            }
        }
        Ok(found)
    }

    /// Returns the record with this value of a unique index.
    pub fn one_by(&self, index: &'static str, value: impl AsRef<[u8]>) -> Result<Option<T>> {
        Ok(self.by(index, value)?.into_iter().next())
    }

    /// Lists all ids in order.
    pub fn ids(&self) -> Vec<u32> {
        let state = self.shared.state.read();
        let directory = &state.directories[self.type_number];
        let mut ids: Vec<u32> = directory.singles.keys().copied().collect();
        ids.extend(directory.partitions.values().flat_map(|it| it.ids.iter().map(|it| it.0)));
        ids.sort_unstable();
        ids
    }

    /// Returns whether damaged blocks of this owner were set aside, and nothing has replaced them yet.
    pub fn is_incomplete(&self, owner: u64) -> bool {
        self.shared.state.read().misses(T::COLLECTION, |it| it == owner)
    }

    /// Returns whether damaged blocks of any owner were set aside, and nothing has replaced them yet.
    pub(crate) fn is_any_incomplete(&self) -> bool {
        self.shared.state.read().misses(T::COLLECTION, |_| true)
    }

    /// Returns whether a record of a paged collection has an id in this range. Does not read the disk.
    pub(crate) fn has_id_in(&self, ids: RangeInclusive<u32>) -> bool {
        let state = self.shared.state.read();
        let mut partitions = state.directories[self.type_number].partitions.values();
        partitions.any(|it| it.ids.has_in(&ids))
    }

    /// Returns the owner of a record of a paged collection, if the record exists. Does not read the disk.
    pub fn owner_of(&self, id: u32) -> Option<u64> {
        self.shared.state.read().directories[self.type_number].locate(id).map(|it| it.0)
    }

    /// Lists the owners of a paged collection that have records.
    pub fn owners(&self) -> Vec<u64> {
        self.shared.state.read().directories[self.type_number].partitions.keys().copied().collect()
    }

    /// Returns the number of records of an owner. Cheap.
    pub fn len_of(&self, owner: u64) -> usize {
        self.shared.state.read().directories[self.type_number]
            .partitions
            .get(&owner)
            .map_or(0, |it| it.ids.len())
    }

    /// Lists all records; single ones by id, paged ones by owner and block.
    pub fn all(&self) -> Result<Vec<T>> {
        let mut found = Vec::with_capacity(self.len());
        self.for_each(|record| found.push(record))?;
        Ok(found)
    }

    /// Visits all records without holding them all in memory: single ones by id, paged ones by owner and block. Each
    /// commit that happens meanwhile may be visible or not.
    pub fn for_each(&self, mut visit: impl FnMut(T)) -> Result<()> {
        match T::KIND {
            CollectionKind::Single => {
                for id in self.ids() {
                    if let Some(record) = self.get(id)? {
                        visit(record);
                    }
                }
                Ok(())
            }
            CollectionKind::Paged => {
                for owner in self.owners() {
                    self.for_each_of(owner, &mut visit)?;
                }
                Ok(())
            }
        }
    }

    /// Visits the records of one owner, in the order of blocks. Records that are replaced meanwhile are visited in their
    /// old state.
    pub fn for_each_of(&self, owner: u64, mut visit: impl FnMut(T)) -> Result<()> {
        self.while_of(owner, |record| {
            visit(record);
            true
        })
    }

    /// Does the same as [`Collection::for_each_of`], until `visit` returns false.
    pub fn while_of(&self, owner: u64, visit: impl FnMut(T) -> bool) -> Result<()> {
        let _scan = self.shared.begin_scan();
        let blocks = {
            let state = self.shared.state.read();
            let partition = state.directories[self.type_number].partitions.get(&owner);
            partition.map(|it| it.blocks.clone()).unwrap_or_default()
        };
        self.while_in(owner, blocks, |_| true, visit)
    }

    /// Does the same for the records with some ids. Blocks without any of them are not read. For owners with some thousand
    /// records.
    pub(crate) fn while_of_ids(
        &self,
        owner: u64,
        is_wanted: impl Fn(u32) -> bool,
        visit: impl FnMut(T) -> bool,
    ) -> Result<()> {
        let _scan = self.shared.begin_scan();
        let mut blocks = BTreeMap::new();
        if let Some(partition) = self.shared.state.read().directories[self.type_number].partitions.get(&owner)
        {
            let wanted = partition.ids.iter().filter(|(id, _)| is_wanted(*id));
            blocks.extend(wanted.filter_map(|(_, block)| Some((block, *partition.blocks.get(&block)?))));
        }
        self.while_in(owner, blocks, is_wanted, visit)
    }

    fn while_in(
        &self,
        owner: u64,
        blocks: BTreeMap<u32, Location>,
        is_wanted: impl Fn(u32) -> bool,
        mut visit: impl FnMut(T) -> bool,
    ) -> Result<()> {
        for (number, at) in blocks {
            // A missing block was emptied and removed.
            if let Some(block) = self.shared.block_uncached(self.type_number, owner, number, at)? {
                for (_, bytes) in block.records.iter().filter(|it| is_wanted(it.0)) {
                    if !visit(decode(bytes)?) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}
