//! Writing: a function fills a [`Write`], and the writer thread makes the changes current and durable.

pub(crate) mod bulk;
mod commit;
mod compact;
pub(crate) mod handle;
mod memory_update;
pub(crate) mod overlay;
pub(crate) mod reply;
mod stage;
mod staged_blocks;
pub(crate) mod start;
mod stop;
mod sweep;
pub(crate) mod writer;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::block::Block;
use crate::engine::shared::Shared;
use crate::engine::state::{Pairs, Partition, pair_of};
use crate::error::{Error, Result};
use crate::record::{CollectionKind, EncodedRecord, Key, Keys, Record, Sharing, decode, digest, has_key};
use crate::write::overlay::Overlay;

/// The changes of one write. Its reads see the committed records with these changes.
///
/// No other write runs at the same time, so everything read here is still true at the commit.
pub struct Write<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) overlay: Overlay,
    /// Type number and id of the records that this write changed.
    pub(crate) changed: BTreeSet<(usize, u32)>,
    /// Whether records that other nodes have were changed.
    pub(crate) is_shared: bool,
}

impl<'a> Write<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self { shared, overlay: Overlay::default(), changed: BTreeSet::new(), is_shared: false }
    }
}

impl Write<'_> {
    /// Returns an id that no record of the collection ever had.
    pub fn next_id<T: Record>(&mut self) -> Result<u32> {
        self.next_id_in(self.shared.schema.number(T::COLLECTION))
    }

    fn next_id_in(&mut self, type_number: usize) -> Result<u32> {
        let id = self.next_free_id(type_number);
        self.keep_id(type_number, id)?;
        Ok(id)
    }

    /// Makes [`Write::next_id`] return a higher id than this one.
    fn keep_id(&mut self, type_number: usize, id: u32) -> Result<()> {
        let collection = self.shared.record_type(type_number).name;
        self.set_next_id(type_number, id.checked_add(1).ok_or(Error::NoIdLeft(collection))?);
        Ok(())
    }

    /// Makes [`Write::next_id`] return no id below this one.
    pub(crate) fn reserve_ids(&mut self, type_number: usize, next_id: u32) {
        if next_id > self.next_free_id(type_number) {
            self.set_next_id(type_number, next_id);
        }
    }

    fn set_next_id(&mut self, type_number: usize, next_id: u32) {
        self.overlay.counters.insert(type_number, next_id);
        self.note_collection(type_number);
    }

    fn note_collection(&mut self, type_number: usize) {
        self.is_shared |= self.shared.record_type(type_number).sharing != Sharing::Local;
    }

    fn note_change(&mut self, type_number: usize, id: u32) {
        self.changed.insert((type_number, id));
        self.note_collection(type_number);
    }

    /// Keeps the ids that were reserved for the records of this write from being used again after a restart.
    pub(crate) fn keep_reserved_ids<T: Record>(&mut self) {
        let type_number = self.shared.schema.number(T::COLLECTION);
        let next_id = self.next_free_id(type_number);
        self.set_next_id(type_number, next_id);
    }

    /// Returns the collections and ids of the records that this write has put or removed so far, without those that
    /// were removed together with their owner and those that were put unchanged.
    pub fn changed(&self) -> impl ExactSizeIterator<Item = (&'static str, u32)> + '_ {
        self.changed.iter().map(|(type_number, id)| (self.shared.record_type(*type_number).name, *id))
    }

    pub fn get<T: Record>(&self, id: u32) -> Result<Option<T>> {
        self.bytes(self.shared.schema.number(T::COLLECTION), id)?.map(|bytes| decode(&bytes)).transpose()
    }

    /// Returns the digest of a record as this write sees it, like [`Store::digest`](crate::Store::digest).
    ///
    /// # Panics
    /// When the collection is not in the schema.
    pub fn digest(&self, collection: &str, id: u32) -> Result<Option<u64>> {
        Ok(self.bytes(self.shared.schema.number(collection), id)?.map(|it| digest(&it)))
    }

    /// Returns the owner of a record of a paged collection, if the record exists. Does not read the disk.
    pub fn owner_of<T: Record>(&self, id: u32) -> Option<u64> {
        self.locate(self.shared.schema.number(T::COLLECTION), id).map(|it| it.0)
    }

    /// Lists all records with this value of an index, by id.
    pub fn by<T: Record>(&self, index: &'static str, value: impl AsRef<[u8]>) -> Result<Vec<T>> {
        self.by_key(&Key::new(index, value.as_ref()))
    }

    fn by_key<T: Record>(&self, key: &Key) -> Result<Vec<T>> {
        let type_number = self.shared.schema.number(T::COLLECTION);
        let mut found = Vec::new();
        for id in self.candidates(type_number, key) {
            let record = self.get::<T>(id)?.ok_or_else(|| self.shared.missing(type_number, id))?;
            if has_key(&Keys::from_record(&record), key) {
                found.push(record);
            }
        }
        Ok(found)
    }

    /// Lists all records by id.
    pub fn all<T: Record>(&self) -> Result<Vec<T>> {
        self.all_from(0)
    }

    /// Lists the records from this id on, by id: such as those that a model of the store does not have yet.
    pub fn all_from<T: Record>(&self, first: u32) -> Result<Vec<T>> {
        let type_number = self.shared.schema.number(T::COLLECTION);
        self.ids(type_number)
            .into_iter()
            .filter(|id| *id >= first)
            .map(|id| self.get(id)?.ok_or_else(|| self.shared.missing(type_number, id)))
            .collect()
    }

    /// Lists the ids of all records, in order.
    fn ids(&self, type_number: usize) -> Vec<u32> {
        let state = self.shared.state.read();
        let directory = &state.directories[type_number];
        let mut ids: BTreeSet<u32> = match directory.kind {
            CollectionKind::Single => directory.singles.keys().copied().collect(),
            CollectionKind::Paged => directory
                .partitions
                .iter()
                .filter(|(owner, _)| !self.overlay.partitions.contains_key(&(type_number, **owner)))
                .flat_map(|(_, partition)| partition.ids.iter().map(|it| it.0))
                .collect(),
        };
        let replaced = self.overlay.partitions.range((type_number, 0)..=(type_number, u64::MAX));
        ids.extend(replaced.flat_map(|(_, partition)| partition.ids.iter().map(|it| it.0)));
        let range = (type_number, 0)..=(type_number, u32::MAX);
        let singles = self.overlay.singles.range(range.clone()).map(|(key, it)| (key.1, it.is_some()));
        let paged = self.overlay.places.range(range).map(|(key, it)| (key.1, it.is_some()));
        for (id, is_there) in singles.chain(paged) {
            match is_there {
                true => ids.insert(id),
                false => ids.remove(&id),
            };
        }
        ids.into_iter().collect()
    }

    /// Adds a record, or replaces the one with the same id. A record that is stored already, unchanged, is not a change: a
    /// write without any other needs no commit, and nobody is informed.
    pub fn put<T: Record>(&mut self, record: &T) -> Result<()> {
        self.put_new(self.shared.schema.number(T::COLLECTION), EncodedRecord::new(record)?)
    }

    pub(crate) fn put_new(&mut self, type_number: usize, record: EncodedRecord) -> Result<()> {
        let EncodedRecord { id, owner, bytes, keys } = record;
        if id >= self.next_free_id(type_number) {
            self.keep_id(type_number, id)?;
        }
        self.put_encoded(type_number, owner, id, bytes, &keys)
    }

    /// Puts an encoded record with these keys.
    pub(crate) fn put_encoded(
        &mut self,
        type_number: usize,
        owner: u64,
        id: u32,
        bytes: Vec<u8>,
        keys: &[Key],
    ) -> Result<()> {
        match self.shared.record_type(type_number).kind {
            CollectionKind::Single => self.put_single(type_number, id, bytes, keys),
            CollectionKind::Paged => self.put_paged(type_number, owner, id, bytes, keys),
        }
    }

    /// Removes a record. Returns whether it existed.
    pub fn remove<T: Record>(&mut self, id: u32) -> Result<bool> {
        self.remove_encoded(self.shared.schema.number(T::COLLECTION), id)
    }

    pub(crate) fn remove_encoded(&mut self, type_number: usize, id: u32) -> Result<bool> {
        let Some(old) = self.bytes(type_number, id)? else { return Ok(false) };
        let (_, owner, keys) = (self.shared.record_type(type_number).read)(&old)?;
        self.note_change(type_number, id);
        match self.shared.record_type(type_number).kind {
            CollectionKind::Single => {
                self.change_pairs(type_number, 0, id, &keys, false);
                self.overlay.singles.insert((type_number, id), None);
            }
            CollectionKind::Paged => {
                self.change_pairs(type_number, owner, id, &keys, false);
                self.remove_from_block(type_number, id)?;
                self.overlay.places.insert((type_number, id), None);
            }
        }
        Ok(true)
    }

    /// Removes all records of an owner of a paged collection, however many. Subscribers get [`ChangedIds::Many`].
    ///
    /// [`ChangedIds::Many`]: crate::ChangedIds::Many
    pub fn remove_owner<T: Record>(&mut self, owner: u64) {
        let type_number = self.shared.schema.number(T::COLLECTION);
        if T::KIND == CollectionKind::Paged {
            self.replace_partition(type_number, owner, Partition::default());
        }
    }

    /// States that all records of an owner of a paged collection were fetched again, so that a damaged block of it that was
    /// [set aside](crate::Store::set_aside) is no longer missed. Replacing all records of the owner implies this.
    pub fn mark_complete<T: Record>(&mut self, owner: u64) {
        let type_number = self.shared.schema.number(T::COLLECTION);
        if self.shared.state.read().misses(T::COLLECTION, |it| it == owner) {
            self.overlay.healed.insert((type_number, owner));
        }
    }

    pub(crate) fn replace_partition(&mut self, type_number: usize, owner: u64, partition: Partition) {
        self.overlay.blocks.retain(|key, _| (key.0, key.1) != (type_number, owner));
        self.overlay.pairs.remove(&(type_number, owner));
        for (_, place) in self.overlay.places.range_mut((type_number, 0)..=(type_number, u32::MAX)) {
            // Includes records that this write moved here from another owner.
            if place.is_some_and(|it| it.0 == owner) {
                *place = None;
            }
        }
        self.overlay.places.retain(|key, _| key.0 != type_number || partition.block_of(key.1).is_none());
        self.overlay.partitions.insert((type_number, owner), Arc::new(partition));
        self.note_collection(type_number);
    }

    fn next_free_id(&self, type_number: usize) -> u32 {
        let stored = || self.shared.state.read().directories[type_number].next_id;
        self.overlay.counters.get(&type_number).copied().unwrap_or_else(stored)
    }

    /// Returns the encoded record, as this write sees it.
    fn bytes(&self, type_number: usize, id: u32) -> Result<Option<Arc<[u8]>>> {
        match self.shared.record_type(type_number).kind {
            CollectionKind::Single => {
                if let Some(changed) = self.overlay.singles.get(&(type_number, id)) {
                    return Ok(changed.clone());
                }
                let at = self.shared.state.read().directories[type_number].singles.get(&id).copied();
                at.map(|at| self.shared.single(type_number, id, at.version).map(Arc::from)).transpose()
            }
            CollectionKind::Paged => {
                let Some((owner, block)) = self.locate(type_number, id) else { return Ok(None) };
                let block = self.block(type_number, owner, block)?;
                Ok(Some(Arc::from(block.get(id).ok_or_else(|| self.shared.missing(type_number, id))?)))
            }
        }
    }

    fn locate(&self, type_number: usize, id: u32) -> Option<(u64, u32)> {
        if let Some(place) = self.overlay.places.get(&(type_number, id)) {
            return *place;
        }
        let mut replaced = self.overlay.partitions.range((type_number, 0)..=(type_number, u64::MAX));
        replaced.find_map(|(key, partition)| Some((key.1, partition.block_of(id)?))).or_else(|| {
            let (owner, block) = self.shared.state.read().directories[type_number].locate(id)?;
            (!self.overlay.partitions.contains_key(&(type_number, owner))).then_some((owner, block))
        })
    }

    /// Calls a function with a partition as it is before the changes to its blocks.
    fn with_partition<R>(
        &self,
        type_number: usize,
        owner: u64,
        look: impl FnOnce(&Partition) -> R,
    ) -> Option<R> {
        if let Some(partition) = self.overlay.partitions.get(&(type_number, owner)) {
            return Some(look(partition));
        }
        self.shared.state.read().directories[type_number].partitions.get(&owner).map(look)
    }

    fn block(&self, type_number: usize, owner: u64, block: u32) -> Result<Arc<Block>> {
        if let Some(changed) = self.overlay.blocks.get(&(type_number, owner, block)) {
            return Ok(Arc::clone(changed));
        }
        let at = self
            .with_partition(type_number, owner, |partition| partition.blocks.get(&block).copied())
            .flatten();
        let found = at.map(|at| self.shared.block(type_number, owner, block, at)).transpose()?.flatten();
        found.ok_or_else(|| self.shared.missing_block(type_number, block))
    }

    fn put_single(&mut self, type_number: usize, id: u32, bytes: Vec<u8>, keys: &[Key]) -> Result<()> {
        let old = self.bytes(type_number, id)?;
        if old.as_deref() == Some(&bytes[..]) {
            return Ok(());
        }
        // What the log contains was compared by the node that wrote it.
        for key in keys.iter().filter(|it| it.is_unique && self.overlay.applied.is_none()) {
            self.refuse_if_taken(type_number, id, key)?;
        }
        if let Some(old) = old {
            let (_, _, old_keys) = (self.shared.record_type(type_number).read)(&old)?;
            self.change_pairs(type_number, 0, id, &old_keys, false);
        }
        self.change_pairs(type_number, 0, id, keys, true);
        self.note_change(type_number, id);
        self.overlay.singles.insert((type_number, id), Some(bytes.into()));
        Ok(())
    }

    fn refuse_if_taken(&self, type_number: usize, id: u32, key: &Key) -> Result<()> {
        for other in self.candidates(type_number, key).into_iter().filter(|other| *other != id) {
            let bytes =
                self.bytes(type_number, other)?.ok_or_else(|| self.shared.missing(type_number, other))?;
            let (_, _, keys) = (self.shared.record_type(type_number).read)(&bytes)?;
            if has_key(&keys, key) {
                let collection = self.shared.record_type(type_number).name;
                return Err(Error::Taken { collection, index: key.index, by: other });
            }
        }
        Ok(())
    }

    /// Lists the ids that may have this key, in order. The caller compares the records, because different values can have
    /// the same hash.
    fn candidates(&self, type_number: usize, key: &Key) -> Vec<u32> {
        let half = pair_of(key);
        let mut found = BTreeSet::new();
        let state = self.shared.state.read();
        let directory = &state.directories[type_number];
        let mut look = |owner: u64, index: &Pairs| {
            let changes = self.overlay.pairs.get(&(type_number, owner));
            let is_tombstone = |id: u32| changes.is_some_and(|it| it.get(&(half, id)) == Some(&false));
            found.extend(index.with(half).filter(|id| !is_tombstone(*id)));
        };
        look(0, &directory.index);
        for (owner, partition) in &directory.partitions {
            if !self.overlay.partitions.contains_key(&(type_number, *owner)) {
                look(*owner, &partition.index);
            }
        }
        for ((_, owner), partition) in
            self.overlay.partitions.range((type_number, 0)..=(type_number, u64::MAX))
        {
            look(*owner, &partition.index);
        }
        for (_, changes) in self.overlay.pairs.range((type_number, 0)..=(type_number, u64::MAX)) {
            found.extend(changes.range((half, 0)..=(half, u32::MAX)).filter(|it| *it.1).map(|it| it.0.1));
        }
        found.into_iter().collect()
    }

    fn put_paged(
        &mut self,
        type_number: usize,
        owner: u64,
        id: u32,
        bytes: Vec<u8>,
        keys: &[Key],
    ) -> Result<()> {
        let mut place = self.locate(type_number, id);
        if let Some((old_owner, number)) = place {
            let old = self.bytes(type_number, id)?.ok_or_else(|| self.shared.missing(type_number, id))?;
            if old_owner == owner && *old == bytes[..] {
                return Ok(());
            }
            let (_, _, old_keys) = (self.shared.record_type(type_number).read)(&old)?;
            self.change_pairs(type_number, old_owner, id, &old_keys, false);
            // It stays in its block if the owner is the same and the block does not become too large.
            let block = self.block(type_number, old_owner, number)?;
            let fits = block.records.len() == 1
                || block.bytes() - old.len() + bytes.len() <= crate::engine::block::BYTES_MAX;
            if old_owner != owner || !fits {
                self.remove_from_block(type_number, id)?;
                place = None;
            }
        }
        self.change_pairs(type_number, owner, id, keys, true);
        let number = match place {
            Some((_, number)) => number,
            None => self.block_with_room(type_number, owner, bytes.len())?,
        };
        let is_there = self.overlay.blocks.contains_key(&(type_number, owner, number))
            || self.with_partition(type_number, owner, |it| it.blocks.contains_key(&number)).unwrap_or(false);
        let mut block = match self.overlay.blocks.remove(&(type_number, owner, number)) {
            Some(changed) => changed,
            None if is_there => self.block(type_number, owner, number)?,
            None => Arc::default(),
        };
        // A block that this write changed before is not copied again.
        let records = &mut Arc::make_mut(&mut block).records;
        match records.iter_mut().find(|it| it.0 == id) {
            Some(record) => record.1 = bytes,
            None => records.push((id, bytes)),
        }
        self.overlay.blocks.insert((type_number, owner, number), block);
        self.overlay.places.insert((type_number, id), Some((owner, number)));
        self.note_change(type_number, id);
        Ok(())
    }

    /// Returns the number of the last block of an owner, or of the next block if the last is full.
    fn block_with_room(&self, type_number: usize, owner: u64, n_bytes: usize) -> Result<u32> {
        let changed =
            self.overlay.blocks.range((type_number, owner, 0)..=(type_number, owner, u32::MAX)).next_back();
        let stored =
            self.with_partition(type_number, owner, |it| it.blocks.keys().next_back().copied()).flatten();
        let Some(last) = changed.map(|it| it.0.2).max(stored) else { return Ok(0) };
        Ok(if self.block(type_number, owner, last)?.has_room_for(n_bytes) { last } else { last + 1 })
    }

    /// Removes a record from its block.
    fn remove_from_block(&mut self, type_number: usize, id: u32) -> Result<()> {
        let Some((owner, number)) = self.locate(type_number, id) else { return Ok(()) };
        let mut block = (*self.block(type_number, owner, number)?).clone();
        block.records.retain(|it| it.0 != id);
        self.overlay.blocks.insert((type_number, owner, number), Arc::new(block));
        Ok(())
    }

    /// Adds (`true`) or removes the index pairs of a record.
    fn change_pairs(&mut self, type_number: usize, owner: u64, id: u32, keys: &[Key], is_there: bool) {
        let pairs = self.overlay.pairs.entry((type_number, owner)).or_default();
        pairs.extend(keys.iter().map(|key| ((pair_of(key), id), is_there)));
    }
}
