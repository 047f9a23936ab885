//! Replacing all records of one owner, a hundred thousand at a time, while everyone else goes on.
//!
//! Blocks go to the disk as they fill, under a number that nobody reads; one small commit at the end makes them
//! current. What is never landed leaves no trace.

use std::marker::PhantomData;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::engine::block::Block;
use crate::engine::disk::{BLOCK_WEIGHT, SLICE_WEIGHT_MAX, Slice};
use crate::engine::shared::Shared;
use crate::engine::state::{At, Group, Pairs, pair_of};
use crate::error::{Error, Result};
use crate::record::{CollectionKind, Keys, Record, encode};
use crate::store::{Store, settle};
use crate::write::Write;
use crate::write::writer::Job;

/// ChangedIds taken from the counter at a time.
const IDS_AT_ONCE: u32 = 1000;

/// The records of one owner in the making. Every call may block for as long as a slice takes.
pub struct BulkWrite<T: Record> {
    store: Store,
    shared: Arc<Shared>,
    noun: usize,
    owner: u64,
    stage: u64,
    block: Block,
    slice: Slice,
    group: Group,
    ids: Vec<(u32, u32)>,
    index: Vec<(u32, u32)>,
    reserved: std::ops::Range<u32>,
    has_landed: bool,
    record: PhantomData<fn() -> T>,
}

impl<T: Record> BulkWrite<T> {
    pub(crate) fn begin(store: Store, shared: Arc<Shared>, owner: u64) -> Result<Self> {
        assert_eq!(T::KIND, CollectionKind::Paged, "bulk writes are for paged collections");
        let noun = shared.schema.number::<T>();
        let stage = store.ask(|reply| Job::Stage { noun, owner, reply })?;
        Ok(Self {
            store,
            shared,
            noun,
            owner,
            stage,
            block: Block::default(),
            slice: Slice::default(),
            group: Group::default(),
            ids: Vec::new(),
            index: Vec::new(),
            reserved: 0..0,
            has_landed: false,
            record: PhantomData,
        })
    }

    /// An id that no record of the collection ever had.
    pub fn next_id(&mut self) -> Result<u32> {
        if self.reserved.is_empty() {
            let noun = self.noun;
            let first = self.store.ask(|reply| Job::Reserve { noun, n: IDS_AT_ONCE, reply })?;
            self.reserved = first..first + IDS_AT_ONCE;
        }
        Ok(self.reserved.next().expect("it was filled above"))
    }

    /// Adds a record of this owner. Each id once.
    pub fn put(&mut self, record: &T) -> Result<()> {
        assert_eq!(record.owner(), self.owner, "a bulk write has one owner");
        let (id, bytes, keys) = (record.id(), encode(record)?, Keys::checked(record)?);
        if !self.block.takes(bytes.len()) {
            self.close_block()?;
        }
        let number = self.group.blocks.len() as u32;
        self.ids.push((id, number));
        self.index.extend(keys.iter().map(|key| (pair_of(key), id)));
        self.block.records.push((id, bytes));
        Ok(())
    }

    /// How many were put.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Makes everything that was put current in place of what the owner had, together with what `fill` writes.
    ///
    /// `fill` runs as a [`Store::write`] does and sees the new records. It is given the ids of records of this owner
    /// that others put or removed since the bulk write began, so that it can bring those changes in again.
    pub fn commit<R, E, F>(mut self, fill: F) -> Result<R, E>
    where
        F: FnOnce(&mut Write<'_>, &[u32]) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        if !self.block.records.is_empty() {
            self.close_block()?;
        }
        self.send()?;
        self.ids.sort_unstable();
        if let Some(twice) = self.ids.windows(2).find(|it| it[0].0 == it[1].0) {
            return Err(Error::Taken { collection: T::COLLECTION, index: "id", by: twice[0].0 }.into());
        }
        self.group.ids = Pairs::of(std::mem::take(&mut self.ids));
        self.group.index = Pairs::of(std::mem::take(&mut self.index));
        let (reply, answer) = oneshot::channel();
        let group = Box::new(self.group.clone());
        let stage = self.stage;
        let job = Job::Land {
            stage,
            group,
            fill: Box::new(move |write| match write {
                Ok((write, touched)) => settle(fill(write, touched), reply),
                Err(error) => {
                    drop(reply.send(Err(error.into())));
                    None
                }
            }),
        };
        if !self.store.hand_in(job) {
            return Err(Error::Closed.into());
        }
        let done = answer.blocking_recv().unwrap_or_else(|_| Err(self.store.unanswered().into()));
        self.has_landed = done.is_ok();
        done
    }

    fn close_block(&mut self) -> Result<()> {
        let block = std::mem::take(&mut self.block);
        let number = self.group.blocks.len() as u32;
        let place = self.shared.block_place(self.noun, self.owner, number, self.stage);
        // The number of the stage also is the number of the write: the cache then knows it from all others.
        let value = self.shared.seal(self.noun, &place, self.stage, &block.encode())?;
        let key = place.key();
        if self.slice.weight() + Slice::weight_of(&key, value.len()).max(BLOCK_WEIGHT) > SLICE_WEIGHT_MAX {
            self.send()?;
        }
        self.group.blocks.insert(number, At::new(self.stage, self.stage, &key, value.len()));
        self.slice.put(key, value);
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        let slice = std::mem::take(&mut self.slice);
        self.store.ask(|reply| Job::Staged { slice, reply })
    }
}

impl<T: Record> Drop for BulkWrite<T> {
    fn drop(&mut self) {
        if !self.has_landed {
            let place = |(number, at): (&u32, &At)| {
                self.shared.block_place(self.noun, self.owner, *number, at.version).key()
            };
            let keys = self.group.blocks.iter().map(place).collect();
            // If it is not heard, the next start clears away what lies there.
            self.store.tell(Job::Abandon { stage: self.stage, keys });
        }
    }
}
