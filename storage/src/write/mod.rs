//! The one way to write: a function fills a [`Write`], the writer thread makes it current and durable.

pub(crate) mod bulk;
pub(crate) mod compact;
mod memory_update;
pub(crate) mod start;
pub(crate) mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::block::Block;
use crate::engine::disk::BLOCK_WEIGHT;
use crate::engine::shared::Shared;
use crate::engine::state::{Group, pair_of};
use crate::error::{Error, Result};
use crate::record::{CollectionKind, Key, Keys, Record, decode, encode};

/// Records of paged collections that were put or removed, by noun and id, and where they are now.
pub(crate) type Places = BTreeMap<(usize, u32), Option<(u64, u32)>>;
/// Pairs of indexes that come or go, by noun and owner; 0 for single records.
pub(crate) type Pending = BTreeMap<(usize, u64), BTreeMap<(u32, u32), bool>>;

/// Changes to several collections that land together, over the state they were made from.
#[derive(Clone, Default)]
pub(crate) struct Overlay {
    /// By noun and id; `None` is gone.
    pub(crate) singles: BTreeMap<(usize, u32), Option<Arc<[u8]>>>,
    /// Whole groups that are replaced: what the blocks and pairs below are changes to.
    pub(crate) groups: BTreeMap<(usize, u64), Arc<Group>>,
    /// By noun, owner and block; an empty one is gone.
    pub(crate) blocks: BTreeMap<(usize, u64, u32), Arc<Block>>,
    pub(crate) places: Places,
    pub(crate) pairs: Pending,
    pub(crate) counters: BTreeMap<usize, u32>,
}

impl Overlay {
    pub(crate) fn is_empty(&self) -> bool {
        self.singles.is_empty()
            && self.groups.is_empty()
            && self.blocks.is_empty()
            && self.counters.is_empty()
    }

    /// What it weighs, in the measure of slices.
    pub(crate) fn weight(&self) -> usize {
        self.singles.len() + self.blocks.len() * BLOCK_WEIGHT
    }
}

/// What one function wants written, and what it sees meanwhile: everything committed, and its own changes.
///
/// Nobody else writes at the same time, so what was read here still holds when it lands.
pub struct Write<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) overlay: Overlay,
}

impl Write<'_> {
    /// An id that no record of the collection ever had.
    pub fn next_id<T: Record>(&mut self) -> Result<u32> {
        let noun = self.shared.schema.number::<T>();
        let id = self.next(noun);
        self.overlay.counters.insert(noun, id.checked_add(1).ok_or(Error::NoIdLeft(T::COLLECTION))?);
        Ok(id)
    }

    pub fn get<T: Record>(&self, id: u32) -> Result<Option<T>> {
        self.bytes(self.shared.schema.number::<T>(), id)?.map(|bytes| decode(&bytes)).transpose()
    }

    /// Whose a record of a paged collection is, if it is there. Reads no record.
    pub fn owner_of<T: Record>(&self, id: u32) -> Option<u64> {
        self.locate(self.shared.schema.number::<T>(), id).map(|it| it.0)
    }

    /// All records with this value of an index, by id.
    pub fn by<T: Record>(&self, index: &'static str, value: impl AsRef<[u8]>) -> Result<Vec<T>> {
        let noun = self.shared.schema.number::<T>();
        let key = Key { index, is_unique: false, value: value.as_ref().to_vec() };
        let mut found = Vec::new();
        for id in self.candidates(noun, &key) {
            let record = self.get::<T>(id)?.ok_or_else(|| self.shared.missing(noun, id))?;
            if has(&Keys::of(&record), &key) {
                found.push(record);
            }
        }
        Ok(found)
    }

    /// All records, by id; of a paged collection block by block.
    pub fn all<T: Record>(&self) -> Result<Vec<T>> {
        let noun = self.shared.schema.number::<T>();
        self.ids(noun)
            .into_iter()
            .map(|id| self.get(id)?.ok_or_else(|| self.shared.missing(noun, id)))
            .collect()
    }

    /// The ids of all records, in order.
    fn ids(&self, noun: usize) -> Vec<u32> {
        let state = self.shared.state.read();
        let directory = &state.directories[noun];
        let mut ids: std::collections::BTreeSet<u32> = match directory.kind {
            CollectionKind::Single => directory.singles.keys().copied().collect(),
            CollectionKind::Paged => directory
                .groups
                .iter()
                .filter(|(owner, _)| !self.overlay.groups.contains_key(&(noun, **owner)))
                .flat_map(|(_, group)| group.ids.iter().map(|it| it.0))
                .collect(),
        };
        let replaced = self.overlay.groups.range((noun, 0)..=(noun, u64::MAX));
        ids.extend(replaced.flat_map(|(_, group)| group.ids.iter().map(|it| it.0)));
        let range = (noun, 0)..=(noun, u32::MAX);
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

    /// Adds a record, or puts it in the place of the one with its id.
    pub fn put<T: Record>(&mut self, record: &T) -> Result<()> {
        let noun = self.shared.schema.number::<T>();
        let (id, bytes, keys) = (record.id(), encode(record)?, Keys::checked(record)?);
        if id >= self.next(noun) {
            self.overlay.counters.insert(noun, id.checked_add(1).ok_or(Error::NoIdLeft(T::COLLECTION))?);
        }
        match T::KIND {
            CollectionKind::Single => self.put_single(noun, id, bytes, &keys),
            CollectionKind::Paged => self.put_paged(noun, record.owner(), id, bytes, &keys),
        }
    }

    /// Whether there was one.
    pub fn remove<T: Record>(&mut self, id: u32) -> Result<bool> {
        let noun = self.shared.schema.number::<T>();
        let Some(old) = self.bytes(noun, id)? else { return Ok(false) };
        let (_, owner, keys) = (self.shared.noun(noun).read)(&old)?;
        match T::KIND {
            CollectionKind::Single => {
                self.mark(noun, 0, id, &keys, false);
                self.overlay.singles.insert((noun, id), None);
            }
            CollectionKind::Paged => {
                self.mark(noun, owner, id, &keys, false);
                self.take_out(noun, id)?;
                self.overlay.places.insert((noun, id), None);
            }
        }
        Ok(true)
    }

    /// Removes all records of an owner of a paged collection, however many. They are told as "many".
    pub fn remove_owner<T: Record>(&mut self, owner: u64) {
        let noun = self.shared.schema.number::<T>();
        if T::KIND == CollectionKind::Paged {
            self.replace_group(noun, owner, Group::default());
        }
    }

    pub(crate) fn replace_group(&mut self, noun: usize, owner: u64, group: Group) {
        self.overlay.blocks.retain(|key, _| (key.0, key.1) != (noun, owner));
        self.overlay.pairs.remove(&(noun, owner));
        for (_, place) in self.overlay.places.range_mut((noun, 0)..=(noun, u32::MAX)) {
            // Also what came from another owner, where it is no longer.
            if place.is_some_and(|it| it.0 == owner) {
                *place = None;
            }
        }
        self.overlay.places.retain(|key, _| key.0 != noun || group.block_of(key.1).is_none());
        self.overlay.groups.insert((noun, owner), Arc::new(group));
    }

    fn next(&self, noun: usize) -> u32 {
        let stored = || self.shared.state.read().directories[noun].next_id;
        self.overlay.counters.get(&noun).copied().unwrap_or_else(stored)
    }

    /// The encoded record, as this write sees it.
    fn bytes(&self, noun: usize, id: u32) -> Result<Option<Arc<[u8]>>> {
        match self.shared.noun(noun).kind {
            CollectionKind::Single => {
                if let Some(changed) = self.overlay.singles.get(&(noun, id)) {
                    return Ok(changed.clone());
                }
                let at = self.shared.state.read().directories[noun].singles.get(&id).copied();
                at.map(|at| self.shared.single(noun, id, at.version).map(Arc::from)).transpose()
            }
            CollectionKind::Paged => {
                let Some((owner, block)) = self.locate(noun, id) else { return Ok(None) };
                let block = self.block(noun, owner, block)?;
                Ok(Some(Arc::from(block.get(id).ok_or_else(|| self.shared.missing(noun, id))?)))
            }
        }
    }

    fn locate(&self, noun: usize, id: u32) -> Option<(u64, u32)> {
        if let Some(place) = self.overlay.places.get(&(noun, id)) {
            return *place;
        }
        let mut replaced = self.overlay.groups.range((noun, 0)..=(noun, u64::MAX));
        replaced.find_map(|(key, group)| Some((key.1, group.block_of(id)?))).or_else(|| {
            let (owner, block) = self.shared.state.read().directories[noun].locate(id)?;
            (!self.overlay.groups.contains_key(&(noun, owner))).then_some((owner, block))
        })
    }

    /// Something of a group as it is before the changes to its blocks.
    fn of_group<R>(&self, noun: usize, owner: u64, ask: impl FnOnce(&Group) -> R) -> Option<R> {
        if let Some(group) = self.overlay.groups.get(&(noun, owner)) {
            return Some(ask(group));
        }
        self.shared.state.read().directories[noun].groups.get(&owner).map(ask)
    }

    fn block(&self, noun: usize, owner: u64, block: u32) -> Result<Arc<Block>> {
        if let Some(changed) = self.overlay.blocks.get(&(noun, owner, block)) {
            return Ok(Arc::clone(changed));
        }
        let at = self.of_group(noun, owner, |group| group.blocks.get(&block).copied()).flatten();
        let found = at.map(|at| self.shared.block(noun, owner, block, at)).transpose()?.flatten();
        found.ok_or_else(|| {
            Error::DamagedRecord(format!("block {block} of {} is missing", self.shared.noun(noun).name))
        })
    }

    fn put_single(&mut self, noun: usize, id: u32, bytes: Vec<u8>, keys: &[Key]) -> Result<()> {
        for key in keys.iter().filter(|it| it.is_unique) {
            self.refuse_if_taken(noun, id, key)?;
        }
        if let Some(old) = self.bytes(noun, id)? {
            let (_, _, old_keys) = (self.shared.noun(noun).read)(&old)?;
            self.mark(noun, 0, id, &old_keys, false);
        }
        self.mark(noun, 0, id, keys, true);
        self.overlay.singles.insert((noun, id), Some(bytes.into()));
        Ok(())
    }

    fn refuse_if_taken(&self, noun: usize, id: u32, key: &Key) -> Result<()> {
        for other in self.candidates(noun, key).into_iter().filter(|other| *other != id) {
            let bytes = self.bytes(noun, other)?.ok_or_else(|| self.shared.missing(noun, other))?;
            let (_, _, keys) = (self.shared.noun(noun).read)(&bytes)?;
            if has(&keys, key) {
                let collection = self.shared.noun(noun).name;
                return Err(Error::Taken { collection, index: key.index, by: other });
            }
        }
        Ok(())
    }

    /// ChangedIds that may have this key, in order.
    fn candidates(&self, noun: usize, key: &Key) -> Vec<u32> {
        let half = pair_of(key);
        let mut found = std::collections::BTreeSet::new();
        let state = self.shared.state.read();
        let directory = &state.directories[noun];
        let mut look = |owner: u64, index: &crate::engine::state::Pairs| {
            let changes = self.overlay.pairs.get(&(noun, owner));
            let is_gone = |id: u32| changes.is_some_and(|it| it.get(&(half, id)) == Some(&false));
            found.extend(index.with(half).filter(|id| !is_gone(*id)));
        };
        look(0, &directory.index);
        for (owner, group) in &directory.groups {
            if !self.overlay.groups.contains_key(&(noun, *owner)) {
                look(*owner, &group.index);
            }
        }
        for ((_, owner), group) in self.overlay.groups.range((noun, 0)..=(noun, u64::MAX)) {
            look(*owner, &group.index);
        }
        for (_, changes) in self.overlay.pairs.range((noun, 0)..=(noun, u64::MAX)) {
            found.extend(changes.range((half, 0)..=(half, u32::MAX)).filter(|it| *it.1).map(|it| it.0.1));
        }
        found.into_iter().collect()
    }

    fn put_paged(&mut self, noun: usize, owner: u64, id: u32, bytes: Vec<u8>, keys: &[Key]) -> Result<()> {
        let mut place = self.locate(noun, id);
        if let Some((old_owner, number)) = place {
            let old = self.bytes(noun, id)?.ok_or_else(|| self.shared.missing(noun, id))?;
            let (_, _, old_keys) = (self.shared.noun(noun).read)(&old)?;
            self.mark(noun, old_owner, id, &old_keys, false);
            // It stays in its block while it belongs there and the block does not grow too large.
            let block = self.block(noun, old_owner, number)?;
            let fits = block.records.len() == 1
                || block.bytes() - old.len() + bytes.len() <= crate::engine::block::BYTES_MAX;
            if old_owner != owner || !fits {
                self.take_out(noun, id)?;
                place = None;
            }
        }
        self.mark(noun, owner, id, keys, true);
        let number = match place {
            Some((_, number)) => number,
            None => self.block_with_room(noun, owner, bytes.len())?,
        };
        let is_there = self.overlay.blocks.contains_key(&(noun, owner, number))
            || self.of_group(noun, owner, |it| it.blocks.contains_key(&number)).unwrap_or(false);
        let mut block = if is_there { (*self.block(noun, owner, number)?).clone() } else { Block::default() };
        match block.records.iter_mut().find(|it| it.0 == id) {
            Some(record) => record.1 = bytes,
            None => block.records.push((id, bytes)),
        }
        self.overlay.blocks.insert((noun, owner, number), Arc::new(block));
        self.overlay.places.insert((noun, id), Some((owner, number)));
        Ok(())
    }

    /// The last block of an owner, or the one after it when it is full.
    fn block_with_room(&self, noun: usize, owner: u64, n_bytes: usize) -> Result<u32> {
        let changed = self.overlay.blocks.range((noun, owner, 0)..=(noun, owner, u32::MAX)).next_back();
        let stored = self.of_group(noun, owner, |it| it.blocks.keys().next_back().copied()).flatten();
        let Some(last) = changed.map(|it| it.0.2).max(stored) else { return Ok(0) };
        Ok(if self.block(noun, owner, last)?.takes(n_bytes) { last } else { last + 1 })
    }

    /// Takes a record out of the block it lies in.
    fn take_out(&mut self, noun: usize, id: u32) -> Result<()> {
        let Some((owner, number)) = self.locate(noun, id) else { return Ok(()) };
        let mut block = (*self.block(noun, owner, number)?).clone();
        block.records.retain(|it| it.0 != id);
        self.overlay.blocks.insert((noun, owner, number), Arc::new(block));
        Ok(())
    }

    fn mark(&mut self, noun: usize, owner: u64, id: u32, keys: &[Key], is_there: bool) {
        let pairs = self.overlay.pairs.entry((noun, owner)).or_default();
        pairs.extend(keys.iter().map(|key| ((pair_of(key), id), is_there)));
    }
}

/// Do these keys have that one?
pub(crate) fn has(keys: &[Key], wanted: &Key) -> bool {
    keys.iter().any(|it| it.index == wanted.index && it.value == wanted.value)
}
