//! From the entries of a commit to a write of this store.

use std::collections::BTreeMap;

use super::entry::LogEntry;
use super::keys::LogKeys;
use super::operations::{Operation, OperationReader};
use super::position::Applied;
use crate::engine::state::Partition;
use crate::error::{Error, Result};
use crate::record::{CollectionKind, RecordFacts, RecordType, Sharing};
use crate::store::Store;
use crate::write::Write;
use crate::write::bulk::EncodedBulk;

/// Maximum number of operations of a commit, without the records of a replaced owner. The largest write has a third.
const OPERATIONS_MAX: usize = 100_000;

/// Changed records of one owner from which on its records are written anew, block by block. Changed in place, all blocks
/// would be in memory at once: an import changes some records in each.
const REWRITE_MIN: usize = if cfg!(test) { 20 } else { 500 };

/// An operation on a collection of this store.
pub(crate) enum StoreOperation {
    Put(Vec<u8>),
    Remove(u32),
    Clear(u64),
    NextId(u32),
}

/// Collects the operations of a commit.
pub(crate) struct CommitReader<'a> {
    store: &'a Store,
    cluster: OperationReader,
    provider: OperationReader,
    operations: Vec<(usize, StoreOperation)>,
    /// The owner that is replaced, with its records so far.
    replacing: Option<(usize, EncodedBulk)>,
}

impl<'a> CommitReader<'a> {
    pub(crate) fn new(store: &'a Store) -> Self {
        Self {
            store,
            cluster: OperationReader::default(),
            provider: OperationReader::default(),
            operations: Vec::new(),
            replacing: None,
        }
    }

    /// Adds the operations of an entry.
    pub(crate) fn add(&mut self, entry: &LogEntry, keys: &LogKeys) -> Result<()> {
        let parts = entry.unseal(keys)?;
        let Self { store, cluster, provider, operations, replacing } = self;
        cluster.read(&parts.cluster, |operation| {
            take(store, operations, replacing, Sharing::AllNodes, operation)
        })?;
        provider.read(&parts.provider, |operation| {
            take(store, operations, replacing, Sharing::FullNodes, operation)
        })
    }

    /// Commits all of them. Returns once they are durable.
    pub(crate) fn commit(mut self, applied: Applied) -> Result<()> {
        self.cluster.finish()?;
        self.provider.finish()?;
        if self.replacing.is_none() {
            self.rewrite_owner()?;
        }
        let operations = self.operations;
        let fill = move |write: &mut Write<'_>| {
            write.overlay.applied = Some(applied);
            operations
                .into_iter()
                .try_for_each(|(type_number, operation)| write.apply(type_number, operation))
        };
        match self.replacing {
            Some((_, bulk)) => bulk.commit(move |write, _| fill(write)),
            None => self.store.run(move |writer| writer.write_now(fill)),
        }
    }
}

impl CommitReader<'_> {
    /// Turns the changes of the owner with the most into a replacement of its records, if there are many.
    fn rewrite_owner(&mut self) -> Result<()> {
        let shared = self.store.shared();
        let located = |type_number: usize, id: u32| {
            shared.state.read().directories[type_number].locate(id).map(|it| it.0)
        };
        // The owner of each operation, unless it has to be applied as it is: a record that comes from another owner.
        let mut owners = Vec::with_capacity(self.operations.len());
        let mut counts = BTreeMap::new();
        for (type_number, operation) in &self.operations {
            let record_type = shared.record_type(*type_number);
            let owner = match operation {
                _ if record_type.kind == CollectionKind::Single => None,
                StoreOperation::Put(record) => {
                    let (id, owner, _) = read_record(record_type, record)?;
                    located(*type_number, id).is_none_or(|it| it == owner).then_some(owner)
                }
                StoreOperation::Remove(id) => located(*type_number, *id),
                // Its records are gone before the others come.
                StoreOperation::Clear(_) => return Ok(()),
                StoreOperation::NextId(_) => None,
            };
            owners.push(owner);
            *counts.entry((*type_number, owner)).or_insert(0_usize) += 1;
        }
        let most = counts.into_iter().filter(|it| it.0.1.is_some()).max_by_key(|it| it.1);
        let Some(((type_number, Some(owner)), _)) = most.filter(|it| it.1 >= REWRITE_MIN) else {
            return Ok(());
        };
        // `None` removes.
        let mut changes = BTreeMap::new();
        let mut rest = Vec::new();
        for ((number, operation), of) in self.operations.drain(..).zip(owners) {
            match operation {
                StoreOperation::Put(record) if (number, of) == (type_number, Some(owner)) => {
                    let (id, _, _) = read_record(shared.record_type(type_number), &record)?;
                    changes.insert(id, Some(record));
                }
                StoreOperation::Remove(id) if (number, of) == (type_number, Some(owner)) => {
                    changes.insert(id, None);
                }
                other => rest.push((number, other)),
            }
        }
        self.operations = rest;
        let mut bulk = self.store.encoded_bulk(type_number, owner, true)?;
        let mut put = |id, record: Vec<u8>| {
            let (_, _, keys) = (shared.record_type(type_number).read)(&record)?;
            bulk.put(id, record, &keys)
        };
        let _scan = shared.begin_scan();
        let blocks = {
            let state = shared.state.read();
            let present = state.directories[type_number].partitions.get(&owner);
            present.map(|it| it.blocks.clone()).unwrap_or_default()
        };
        for (number, at) in blocks {
            let block = shared.block_uncached(type_number, owner, number, at)?;
            for (id, record) in block.ok_or_else(|| shared.missing_block(type_number, number))?.records {
                if let Some(record) = changes.remove(&id).unwrap_or(Some(record)) {
                    put(id, record)?;
                }
            }
        }
        for (id, record) in changes {
            record.map_or(Ok(()), |record| put(id, record))?;
        }
        self.replacing = Some((type_number, bulk));
        Ok(())
    }
}

fn take(
    store: &Store,
    operations: &mut Vec<(usize, StoreOperation)>,
    replacing: &mut Option<(usize, EncodedBulk)>,
    sharing: Sharing,
    operation: Operation<'_>,
) -> Result<()> {
    let schema = &store.shared().schema;
    let type_number = |collection: &str| {
        let found = schema
            .position(collection)
            .ok_or_else(|| Error::LogTooNew(format!("the collection {collection}")))?;
        // Neither a local collection nor one that an edge node may not write.
        let is_allowed = schema.record_types[found].sharing == sharing;
        let wrong = || Error::LogBroken(format!("it changes {collection} in the wrong part"));
        is_allowed.then_some(found).ok_or_else(wrong)
    };
    let (type_number, operation) = match operation {
        Operation::Put { collection, record } => {
            let type_number = type_number(collection)?;
            if let Some((_, bulk)) = replacing.as_mut().filter(|it| it.0 == type_number) {
                let (id, owner, keys) = read_record(&schema.record_types[type_number], &record)?;
                if owner != bulk.owner() {
                    return Err(Error::LogBroken("it replaces an owner by another".to_owned()));
                }
                return bulk.put(id, record, &keys);
            }
            (type_number, StoreOperation::Put(record))
        }
        Operation::Remove { collection, id } => (type_number(collection)?, StoreOperation::Remove(id)),
        Operation::Clear { collection, owner } => (type_number(collection)?, StoreOperation::Clear(owner)),
        Operation::NextId { collection, next } => (type_number(collection)?, StoreOperation::NextId(next)),
        Operation::Replace { collection, owner } => {
            let type_number = type_number(collection)?;
            if replacing.is_some() {
                return Err(Error::LogBroken("it replaces two owners".to_owned()));
            }
            *replacing = Some((type_number, store.encoded_bulk(type_number, owner, true)?));
            return Ok(());
        }
    };
    if operations.len() >= OPERATIONS_MAX {
        return Err(Error::LogBroken("it has too many operations".to_owned()));
    }
    operations.push((type_number, operation));
    Ok(())
}

/// Reads a record of the log.
fn read_record(record_type: &RecordType, bytes: &[u8]) -> Result<RecordFacts> {
    (record_type.read)(bytes).map_err(|error| match error {
        Error::TooNew { found, .. } => Error::LogTooNew(format!("version {found} of {}", record_type.name)),
        other => Error::LogBroken(other.to_string()),
    })
}

impl Write<'_> {
    /// Applies an operation of the log. Unique keys are not compared: the node that wrote it did, and in the middle of a
    /// commit two records may have the same.
    fn apply(&mut self, type_number: usize, operation: StoreOperation) -> Result<()> {
        match operation {
            StoreOperation::Put(bytes) => {
                let (id, owner, keys) = read_record(self.shared.record_type(type_number), &bytes)?;
                self.put_encoded(type_number, owner, id, bytes, &keys)
            }
            StoreOperation::Remove(id) => self.remove_encoded(type_number, id).map(drop),
            StoreOperation::Clear(owner) => {
                self.replace_partition(type_number, owner, Partition::default());
                Ok(())
            }
            StoreOperation::NextId(next) => {
                self.reserve_ids(type_number, next);
                Ok(())
            }
        }
    }
}
