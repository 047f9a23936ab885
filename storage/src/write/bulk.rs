//! Bulk writes: replace all records of one owner, hundreds of thousands at a time, while other reads and writes continue.
//!
//! Full blocks are written to the disk under a version that nobody reads; one small commit at the end makes them
//! current. A bulk write that is never committed leaves no trace.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::engine::block::Block;
use crate::engine::shared::Shared;
use crate::engine::state::{Pairs, Partition, pair_of};
use crate::error::{Error, Result};
use crate::record::{CollectionKind, EncodedRecord, Key, Record};
use crate::write::Write;
use crate::write::handle::WriterHandle;
use crate::write::reply::Returned;
use crate::write::staged_blocks::{Stage, StagedBlocks};
use crate::write::writer::{Job, StageFill};

/// Number of ids reserved at a time.
const RESERVED_IDS: u32 = 1000;

/// New records of one owner that are not committed yet. Every call may block for as long as a slice takes.
pub struct BulkWrite<T: Record> {
    records: EncodedBulk,
    reserved: std::ops::Range<u32>,
    record: PhantomData<fn() -> T>,
}

impl<T: Record> BulkWrite<T> {
    pub(crate) fn begin(writer: WriterHandle, shared: Arc<Shared>, owner: u64, n_bytes: u64) -> Result<Self> {
        assert_eq!(T::KIND, CollectionKind::Paged, "bulk writes are for paged collections");
        let type_number = shared.schema.number(T::COLLECTION);
        let records = EncodedBulk::begin(writer, shared, type_number, owner, n_bytes, false)?;
        Ok(Self { records, reserved: 0..0, record: PhantomData })
    }

    /// Returns an id that no record of the collection ever had.
    pub fn next_id(&mut self) -> Result<u32> {
        if self.reserved.is_empty() {
            let type_number = self.records.type_number;
            let reserve = |reply| Job::ReserveIds { type_number, n: RESERVED_IDS, reply };
            let first = self.records.writer.request(reserve)?;
            self.reserved = first..first + RESERVED_IDS;
        }
        Ok(self.reserved.next().expect("ids were reserved above"))
    }

    /// Adds a record of this owner. Each id is allowed once.
    pub fn put(&mut self, record: &T) -> Result<()> {
        assert_eq!(record.owner(), self.records.owner, "a bulk write has one owner");
        let EncodedRecord { id, bytes, keys, .. } = EncodedRecord::new(record)?;
        self.records.put(id, bytes, &keys)
    }

    /// Returns the number of records put so far.
    pub fn len(&self) -> usize {
        self.records.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.ids.is_empty()
    }

    /// Replaces all records of the owner by those that were put, atomically together with the changes of `fill`.
    ///
    /// `fill` runs like the function of a [`Store::write`](crate::Store::write) and sees the new records. It gets the
    /// ids of this owner's records that other writes changed since the bulk write began, so that it can apply those
    /// changes again.
    pub fn commit<R, E, F>(self, fill: F) -> Result<R, E>
    where
        F: FnOnce(&mut Write<'_>, &[u32]) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.records.commit(fill)
    }
}

/// A bulk write of encoded records.
pub(crate) struct EncodedBulk {
    writer: WriterHandle,
    shared: Arc<Shared>,
    type_number: usize,
    owner: u64,
    block: Block,
    /// Number of blocks before this one.
    n_blocks: u32,
    blocks: StagedBlocks,
    ids: Vec<(u32, u32)>,
    index: Vec<(u32, u32)>,
}

impl EncodedBulk {
    /// `is_applied` if it applies a commit of the log.
    pub(crate) fn begin(
        writer: WriterHandle,
        shared: Arc<Shared>,
        type_number: usize,
        owner: u64,
        n_bytes: u64,
        is_applied: bool,
    ) -> Result<Self> {
        let number =
            writer.request(|reply| Job::BeginStage { type_number, owner, n_bytes, is_applied, reply })?;
        let stage = Stage {
            writer: writer.clone(),
            shared: Arc::clone(&shared),
            type_number,
            owner,
            number,
            blocks: BTreeMap::new(),
            is_committed: false,
        };
        Ok(Self {
            writer,
            shared,
            type_number,
            owner,
            block: Block::default(),
            n_blocks: 0,
            blocks: StagedBlocks::Idle(stage),
            ids: Vec::new(),
            index: Vec::new(),
        })
    }

    pub(crate) fn owner(&self) -> u64 {
        self.owner
    }

    pub(crate) fn put(&mut self, id: u32, bytes: Vec<u8>, keys: &[Key]) -> Result<()> {
        if !self.block.has_room_for(bytes.len()) {
            self.blocks.add(std::mem::take(&mut self.block))?;
            self.n_blocks += 1;
        }
        self.ids.push((id, self.n_blocks));
        self.index.extend(keys.iter().map(|key| (pair_of(key), id)));
        self.block.records.push((id, bytes));
        Ok(())
    }

    /// Does the same as [`BulkWrite::commit`].
    pub(crate) fn commit<R, E, F>(self, fill: F) -> Result<R, E>
    where
        F: FnOnce(&mut Write<'_>, &[u32]) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (returned, for_caller) = Returned::new();
        self.commit_with(Box::new(move |write, changed| returned.set(fill(write, changed))))?;
        for_caller.take()
    }

    fn commit_with(mut self, fill: StageFill) -> Result<()> {
        let mut stage = self.blocks.finish(self.block)?;
        self.ids.sort_unstable();
        if let Some(twice) = self.ids.windows(2).find(|it| it[0].0 == it[1].0) {
            let collection = self.shared.record_type(self.type_number).name;
            return Err(Error::Taken { collection, index: "id", by: twice[0].0 });
        }
        let (ids, index) = (Pairs::new(self.ids), Pairs::new(self.index));
        let partition = Box::new(Partition { blocks: stage.blocks.clone(), ids, index });
        stage.is_committed = self.writer.commit_stage(stage.number, partition, fill)?;
        Ok(())
    }
}
