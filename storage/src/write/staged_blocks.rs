//! The blocks of a bulk write on their way to the disk. A thread compresses, encrypts and writes them, while the caller
//! encodes the next records.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::engine::block::Block;
use crate::engine::disk::{BLOCK_WEIGHT, SLICE_WEIGHT_MAX, Slice};
use crate::engine::shared::Shared;
use crate::engine::value::Location;
use crate::error::{Error, Result};
use crate::write::handle::{PendingReply, WriterHandle};
use crate::write::writer::Job;

/// Full blocks that wait for the thread. Each has at most some hundred KiB, or one record.
const QUEUE: usize = 4;

/// A stage of the writer, and the blocks that were written to it. Dropping it abandons the stage, unless it was committed.
pub(crate) struct Stage {
    pub(crate) writer: WriterHandle,
    pub(crate) shared: Arc<Shared>,
    pub(crate) type_number: usize,
    pub(crate) owner: u64,
    pub(crate) number: u64,
    pub(crate) blocks: BTreeMap<u32, Location>,
    pub(crate) is_committed: bool,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.is_committed {
            let disk_key = |(number, at): (&u32, &Location)| {
                self.shared.block_key(self.type_number, self.owner, *number, at.version).encode()
            };
            let keys = self.blocks.iter().map(disk_key).collect();
            // If the store is closed already, the next start removes the staged values.
            self.writer.submit_without_waiting(Job::AbandonStage { stage: self.number, keys });
        }
    }
}

/// Hands the blocks of a stage to its thread.
pub(crate) enum StagedBlocks {
    /// Not a single block is full yet.
    Idle(Stage),
    Running(BlockThread),
    Over,
}

/// The thread that writes blocks. Dropping it abandons the stage, and waits until the writer knows that: the next bulk write
/// of the owner may begin at once.
pub(crate) struct BlockThread {
    /// Blocks; `None` is the end. Without an end, the stage is abandoned.
    queue: Option<SyncSender<Option<Block>>>,
    thread: Option<JoinHandle<Result<Stage>>>,
}

impl BlockThread {
    /// Returns whether the thread still takes blocks.
    fn send(&self, block: Option<Block>) -> bool {
        self.queue.as_ref().is_some_and(|it| it.send(block).is_ok())
    }

    /// Waits for the end of the thread.
    fn join(&mut self) -> Result<Stage> {
        self.queue = None;
        let thread = self.thread.take().ok_or(Error::Interrupted)?;
        thread.join().unwrap_or(Err(Error::Panicked))
    }
}

impl Drop for BlockThread {
    fn drop(&mut self) {
        drop(self.join());
    }
}

impl StagedBlocks {
    /// Adds a full block. Waits while several wait already. The error may be that of an earlier block.
    pub(crate) fn add(&mut self, block: Block) -> Result<()> {
        if matches!(self, Self::Idle(_)) {
            self.start()?;
        }
        match self {
            Self::Running(thread) if thread.send(Some(block)) => Ok(()),
            // The thread has ended, and says why.
            _ => self.finish(Block::default()).and(Err(Error::Interrupted)),
        }
    }

    /// Starts the thread.
    fn start(&mut self) -> Result<()> {
        let Self::Idle(stage) = std::mem::replace(self, Self::Over) else { return Ok(()) };
        let (queue, blocks) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("bulk-write".to_owned())
            .spawn(move || BlockWriter::new(stage).run(&blocks))
            .map_err(|error| Error::disk("start the thread of a bulk write", error))?;
        *self = Self::Running(BlockThread { queue: Some(queue), thread: Some(thread) });
        Ok(())
    }

    /// Adds the last block, which may be empty, and waits until all blocks are written.
    pub(crate) fn finish(&mut self, last: Block) -> Result<Stage> {
        match std::mem::replace(self, Self::Over) {
            Self::Idle(stage) => BlockWriter::new(stage).finish(&last),
            Self::Running(mut thread) => {
                // A thread that has ended says why when it is joined.
                let _ = thread.send(Some(last)) && thread.send(None);
                thread.join()
            }
            Self::Over => Err(Error::Interrupted),
        }
    }
}

/// Writes the blocks of a stage.
struct BlockWriter {
    stage: Stage,
    slice: Slice,
    /// The slice that the writer has not written yet.
    pending: Option<PendingReply<()>>,
}

impl BlockWriter {
    fn new(stage: Stage) -> Self {
        Self { stage, slice: Slice::default(), pending: None }
    }

    fn run(mut self, blocks: &Receiver<Option<Block>>) -> Result<Stage> {
        loop {
            match blocks.recv() {
                Ok(Some(block)) => self.add(&block)?,
                Ok(None) => return self.finish(&Block::default()),
                // The bulk write was dropped.
                Err(_) => return Err(Error::Interrupted),
            }
        }
    }

    fn finish(mut self, last: &Block) -> Result<Stage> {
        self.add(last)?;
        if !self.slice.is_empty() {
            self.send()?;
        }
        self.wait()?;
        Ok(self.stage)
    }

    fn add(&mut self, block: &Block) -> Result<()> {
        if block.records.is_empty() {
            return Ok(());
        }
        let Stage { shared, type_number, owner, number: stage, blocks, .. } = &mut self.stage;
        let number = blocks.len() as u32;
        let disk_key = shared.block_key(*type_number, *owner, number, *stage);
        // The number of the stage is also the commit number of the value, which makes its cache key unique.
        let value = shared.seal(*type_number, &disk_key, *stage, &block.encode())?;
        let key = disk_key.encode();
        blocks.insert(number, Location::new(*stage, *stage, &key, value.len()));
        if self.slice.weight() + Slice::weight_of(&key, value.len()).max(BLOCK_WEIGHT) > SLICE_WEIGHT_MAX {
            self.send()?;
        }
        self.slice.put(key, value);
        Ok(())
    }

    /// Hands the slice to the writer, once the one before is on the disk.
    fn send(&mut self) -> Result<()> {
        self.wait()?;
        let (stage, slice) = (self.stage.number, std::mem::take(&mut self.slice));
        let pending = self.stage.writer.begin_request(|reply| Job::WriteStaged { stage, slice, reply })?;
        self.pending = Some(pending);
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        self.pending.take().map_or(Ok(()), |it| self.stage.writer.wait_for(it))
    }
}
