//! From the changes of a write to the operations and entries of a commit.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};

use super::entry::{EntryHeader, EntryKind, LogEntry, PART_BYTES_MAX, Parts};
use super::keys::LogKeys;
use super::operations::{Operation, encode};
use super::position::{EntryHash, LogPosition};
use crate::engine::shared::Shared;
use crate::engine::state::Partition;
use crate::engine::value::Location;
use crate::error::{Error, Result};
use crate::record::Sharing;
use crate::write::overlay::Overlay;

/// Changed and removed records of an imported owner that are sent one by one. If there are more, all its records are
/// sent, which other nodes write without holding them in memory.
const DELTA_MAX: usize = if cfg!(test) { 50 } else { 20_000 };
/// Maximum number of slices of a commit: 16 GiB.
pub(crate) const SLICES_MAX: u64 = 65_536;

/// Appends an encoded entry after the entry with this sequence.
pub(crate) type AppendEntry<'a> = &'a mut dyn FnMut(u64, &[u8]) -> Result<()>;

/// Divides operations into entries, and appends each as soon as it is full.
pub(crate) struct Composer<'a> {
    keys: &'a LogKeys,
    /// The last entry of the log.
    tail: LogPosition,
    /// The sequence of the first entry of this commit.
    run: u64,
    parts: Parts,
    append: AppendEntry<'a>,
}

impl<'a> Composer<'a> {
    pub(crate) fn new(keys: &'a LogKeys, tail: LogPosition, append: AppendEntry<'a>) -> Self {
        Self { keys, run: tail.sequence + 1, tail, parts: Parts::default(), append }
    }

    fn add(&mut self, sharing: Sharing, operation: &Operation<'_>) -> Result<()> {
        encode(operation, |bytes| {
            let part = match sharing {
                Sharing::Local => return Ok(()),
                Sharing::AllNodes => &self.parts.cluster,
                Sharing::FullNodes => &self.parts.provider,
            };
            if part.len() + bytes.len() > PART_BYTES_MAX {
                self.flush(EntryKind::Slice)?;
            }
            match sharing {
                Sharing::FullNodes => self.parts.provider.extend_from_slice(bytes),
                _ => self.parts.cluster.extend_from_slice(bytes),
            }
            Ok(())
        })
    }

    fn flush(&mut self, kind: EntryKind) -> Result<()> {
        let sequence = self.tail.sequence + 1;
        if sequence - self.run >= SLICES_MAX {
            let max = SLICES_MAX as usize;
            return Err(Error::TooLarge { what: "a commit of the cluster's log", size: max + 1, max });
        }
        let header =
            EntryHeader { kind, log: self.tail.log, sequence, run: self.run, previous: self.tail.hash };
        let entry = LogEntry::seal(header, &self.parts, self.keys)?.encode();
        (self.append)(self.tail.sequence, &entry)?;
        self.tail = LogPosition { sequence, hash: EntryHash::new(&entry), ..self.tail };
        self.parts = Parts::default();
        Ok(())
    }

    /// Appends the last entry, and returns its position.
    pub(crate) fn finish(mut self) -> Result<LogPosition> {
        self.flush(EntryKind::Commit)?;
        Ok(self.tail)
    }
}

/// The changes of an import to the records of an owner, without those that the same write put or removed itself.
enum OwnerChange {
    Nothing,
    /// None is left.
    Cleared,
    /// Ids that were removed, and those that were put, by block.
    Delta {
        removed: Vec<u32>,
        put: BTreeMap<u32, Vec<u32>>,
    },
    /// So many changed that all are sent.
    Replaced,
}

/// Returns whether a write changed records that other nodes have.
pub(crate) fn is_shared(shared: &Shared, overlay: &Overlay) -> bool {
    let mut types = (overlay.singles.keys().map(|it| it.0))
        .chain(overlay.partitions.keys().map(|it| it.0))
        .chain(overlay.blocks.keys().map(|it| it.0))
        .chain(overlay.counters.keys().copied());
    types.any(|it| shared.record_type(it).sharing != Sharing::Local)
}

/// Adds the operations of a write: removals, puts, and the records of a replaced owner.
pub(crate) fn compose(shared: &Shared, overlay: &Overlay, composer: &mut Composer<'_>) -> Result<()> {
    let is_shared = |type_number: usize| shared.record_type(type_number).sharing != Sharing::Local;
    let name = |type_number: usize| shared.record_type(type_number).name;
    let sharing = |type_number: usize| shared.record_type(type_number).sharing;
    let mut owners = Vec::new();
    for ((type_number, owner), partition) in &overlay.partitions {
        if is_shared(*type_number) {
            let change = owner_change(shared, overlay, *type_number, *owner, partition);
            owners.push((*type_number, *owner, partition, change));
        }
    }
    for (type_number, owner, _, change) in &owners {
        let collection = name(*type_number);
        match change {
            OwnerChange::Cleared => {
                composer.add(sharing(*type_number), &Operation::Clear { collection, owner: *owner })?;
            }
            OwnerChange::Delta { removed, .. } => {
                for id in removed {
                    composer.add(sharing(*type_number), &Operation::Remove { collection, id: *id })?;
                }
            }
            OwnerChange::Nothing | OwnerChange::Replaced => {}
        }
    }
    let singles = overlay.singles.iter().filter(|it| it.1.is_none()).map(|it| it.0);
    let paged = overlay.places.iter().filter(|it| it.1.is_none()).map(|it| it.0);
    for (type_number, id) in singles.chain(paged).filter(|it| is_shared(it.0)) {
        composer
            .add(sharing(*type_number), &Operation::Remove { collection: name(*type_number), id: *id })?;
    }
    for ((type_number, _), bytes) in overlay.singles.iter().filter(|it| is_shared(it.0.0)) {
        if let Some(record) = bytes {
            let operation = Operation::Put { collection: name(*type_number), record: record.to_vec() };
            composer.add(sharing(*type_number), &operation)?;
        }
    }
    for ((type_number, id), place) in overlay.places.iter().filter(|it| is_shared(it.0.0)) {
        if let Some((owner, number)) = place {
            let block = overlay.blocks.get(&(*type_number, *owner, *number));
            let record = block.and_then(|it| it.get(*id)).ok_or_else(|| shared.missing(*type_number, *id))?;
            let operation = Operation::Put { collection: name(*type_number), record: record.to_vec() };
            composer.add(sharing(*type_number), &operation)?;
        }
    }
    for (type_number, next) in overlay.counters.iter().filter(|it| is_shared(*it.0)) {
        let operation = Operation::NextId { collection: name(*type_number), next: *next };
        composer.add(sharing(*type_number), &operation)?;
    }
    for (type_number, owner, partition, change) in &owners {
        if let OwnerChange::Delta { put, .. } = change {
            let blocks =
                put.iter().filter_map(|(number, ids)| Some((number, partition.blocks.get(number)?, ids)));
            for (number, at, ids) in blocks {
                put_block(shared, composer, (*type_number, *owner, *number), *at, |id| ids.contains(&id))?;
            }
        }
    }
    // At most one, because only a bulk write replaces an owner by records on the disk.
    for (type_number, owner, partition, _) in owners.iter().filter(|it| matches!(it.3, OwnerChange::Replaced))
    {
        let operation = Operation::Replace { collection: name(*type_number), owner: *owner };
        composer.add(sharing(*type_number), &operation)?;
        for (number, at) in &partition.blocks {
            let is_elsewhere = |id| overlay.places.contains_key(&(*type_number, id));
            put_block(shared, composer, (*type_number, *owner, *number), *at, |id| !is_elsewhere(id))?;
        }
    }
    Ok(())
}

/// Adds some records of a block.
fn put_block(
    shared: &Shared,
    composer: &mut Composer<'_>,
    (type_number, owner, number): (usize, u64, u32),
    at: Location,
    is_wanted: impl Fn(u32) -> bool,
) -> Result<()> {
    let block = shared.block_uncached(type_number, owner, number, at)?;
    let block = block.ok_or_else(|| shared.missing_block(type_number, number))?;
    let record_type = shared.record_type(type_number);
    for (_, record) in block.records.into_iter().filter(|it| is_wanted(it.0)) {
        composer.add(record_type.sharing, &Operation::Put { collection: record_type.name, record })?;
    }
    Ok(())
}

/// Compares the records of a bulk write with the present ones. If either cannot be read, all are sent.
fn owner_change(
    shared: &Shared,
    overlay: &Overlay,
    type_number: usize,
    owner: u64,
    new: &Partition,
) -> OwnerChange {
    let old_blocks = {
        let state = shared.state.read();
        let old = state.directories[type_number].partitions.get(&owner);
        old.map(|it| it.blocks.clone()).unwrap_or_default()
    };
    if new.blocks.is_empty() {
        return if old_blocks.is_empty() { OwnerChange::Nothing } else { OwnerChange::Cleared };
    }
    // Random keys: nobody can choose a record whose hash is that of its predecessor.
    let hasher = RandomState::new();
    let is_elsewhere = |id: u32| overlay.places.contains_key(&(type_number, id));
    let records = |number: u32, at: Location| {
        let block = shared.block_uncached(type_number, owner, number, at).ok().flatten()?;
        Some(block.records.into_iter().filter(|it| !is_elsewhere(it.0)).collect::<Vec<_>>())
    };
    let mut old = HashMap::new();
    for (number, at) in old_blocks {
        let Some(records) = records(number, at) else { return OwnerChange::Replaced };
        old.extend(records.iter().map(|(id, bytes)| (*id, hasher.hash_one(bytes))));
    }
    let (mut put, mut n_put) = (BTreeMap::<u32, Vec<u32>>::new(), 0);
    for (number, at) in &new.blocks {
        let Some(records) = records(*number, *at) else { return OwnerChange::Replaced };
        for (id, bytes) in records {
            if old.remove(&id) != Some(hasher.hash_one(&bytes)) {
                put.entry(*number).or_default().push(id);
                n_put += 1;
            }
        }
        if n_put > DELTA_MAX {
            return OwnerChange::Replaced;
        }
    }
    if n_put + old.len() > DELTA_MAX {
        return OwnerChange::Replaced;
    }
    let mut removed: Vec<u32> = old.into_keys().collect();
    removed.sort_unstable();
    OwnerChange::Delta { removed, put }
}
