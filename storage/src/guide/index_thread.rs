//! Builds the search index of a guide file on a thread of its own, while the programmes are written.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::index_builder::IndexBuilder;
use super::output::Output;
use super::tables::WordBlock;
use crate::error::{Error, Result};

/// Programmes are handed over together when their texts have this many bytes.
const BATCH_BYTES: usize = 64 * 1024;
/// Batches that wait for the thread.
const QUEUE: usize = 4;

/// Programmes with consecutive numbers.
#[derive(Default)]
struct Batch {
    /// The number of the first one.
    first: u32,
    /// The insides of all.
    text: String,
    /// Where each inside ends.
    ends: Vec<usize>,
}

/// The thread that collects the words. It ends when this is dropped.
pub(super) struct IndexThread {
    folder: PathBuf,
    batch: Batch,
    queue: SyncSender<Batch>,
    thread: JoinHandle<Result<IndexBuilder>>,
}

impl IndexThread {
    /// Starts the thread. `folder` is that of the guide files.
    ///
    /// # Errors
    /// If the system has no thread.
    pub(super) fn start(folder: &Path) -> Result<Self> {
        let (queue, batches) = sync_channel(QUEUE);
        let of_thread = folder.to_owned();
        let thread = std::thread::Builder::new()
            .name("guide-index".to_owned())
            .spawn(move || collect(&of_thread, &batches))
            .map_err(|error| Error::disk("start the thread of a guide's index", error))?;
        Ok(Self { folder: folder.to_owned(), batch: Batch::default(), queue, thread })
    }

    /// Adds the words of the next programme. An error of the thread is reported by [`IndexThread::finish`].
    pub(super) fn add(&mut self, number: u32, inner: &str) {
        if self.batch.ends.is_empty() {
            self.batch.first = number;
        }
        self.batch.text.push_str(inner);
        self.batch.ends.push(self.batch.text.len());
        if self.batch.text.len() >= BATCH_BYTES {
            self.send();
        }
    }

    fn send(&mut self) {
        // A thread that has ended says why when it is joined.
        drop(self.queue.send(std::mem::take(&mut self.batch)));
    }

    /// Writes the blocks of words and returns their places.
    pub(super) fn finish(mut self, out: &mut Output<'_>) -> Result<Vec<WordBlock>> {
        self.send();
        drop(self.queue);
        let builder = self.thread.join().unwrap_or(Err(Error::Panicked))?;
        builder.finish(&self.folder, out)
    }
}

fn collect(folder: &Path, batches: &Receiver<Batch>) -> Result<IndexBuilder> {
    let mut builder = IndexBuilder::default();
    for batch in batches {
        let mut begin = 0;
        for (end, number) in batch.ends.into_iter().zip(batch.first..) {
            builder.add(folder, number, &batch.text[std::mem::replace(&mut begin, end)..end])?;
        }
    }
    Ok(builder)
}
