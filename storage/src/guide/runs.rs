//! Sorts programmes that do not fit in memory: parts of them are sorted and written to a scratch file, then all parts are
//! read side by side.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::output::{Part, PartReader, Scratch};
use crate::error::{Error, Result};

/// Memory of the programmes that are sorted at once, in bytes. Tests sort few at once.
const MEMORY_BYTES: usize = if cfg!(test) { 2_000 } else { 24 * 1024 * 1024 };

/// Guide channel and start of a programme: the order of guide files.
pub(super) type SortKey = u64;

/// A programme in memory.
struct Entry {
    key: SortKey,
    /// Begin of its text.
    at: u32,
    n_bytes: u32,
    stop: u32,
}

/// Collects programmes in any order.
#[derive(Default)]
pub(super) struct Runs {
    text: Vec<u8>,
    entries: Vec<Entry>,
    scratch: Option<Scratch>,
    parts: Vec<Part>,
}

impl Runs {
    pub(super) fn push(&mut self, folder: &Path, key: SortKey, stop: u32, text: &[u8]) -> Result<()> {
        // The memory is far below 4 GiB, so positions fit.
        self.entries.push(Entry { key, at: self.text.len() as u32, n_bytes: text.len() as u32, stop });
        self.text.extend_from_slice(text);
        match self.text.len() + self.entries.len() * size_of::<Entry>() >= MEMORY_BYTES {
            true => self.spill(folder),
            false => Ok(()),
        }
    }

    /// Sorts the programmes in memory and writes them to the scratch file.
    fn spill(&mut self, folder: &Path) -> Result<()> {
        // The sort is stable: the last one added of a key is the last one.
        self.entries.sort_by_key(|it| it.key);
        let scratch = match &mut self.scratch {
            Some(scratch) => scratch,
            empty => empty.insert(Scratch::create(folder)?),
        };
        let n_bytes_max = self.text.len() + self.entries.len() * Merge::HEAD_BYTES;
        let (entries, text) = (&self.entries, &self.text);
        let part = scratch.append(folder, n_bytes_max as u64, |write| {
            for (at, it) in entries.iter().enumerate() {
                let is_replaced = entries.get(at + 1).is_some_and(|next| next.key == it.key);
                if is_replaced {
                    continue;
                }
                let mut head = [0; Merge::HEAD_BYTES];
                head[..8].copy_from_slice(&it.key.to_le_bytes());
                head[8..12].copy_from_slice(&it.stop.to_le_bytes());
                head[12..].copy_from_slice(&it.n_bytes.to_le_bytes());
                write(&head)?;
                write(&text[it.at as usize..][..it.n_bytes as usize])?;
            }
            Ok(())
        })?;
        self.parts.push(part);
        self.entries.clear();
        self.text.clear();
        Ok(())
    }

    /// Frees the memory and returns all programmes in order.
    pub(super) fn merge(mut self, folder: &Path) -> Result<Merge> {
        if !self.entries.is_empty() {
            self.spill(folder)?;
        }
        let Some(scratch) = self.scratch else { return Ok(Merge::default()) };
        Merge::new(self.parts.iter().map(|it| scratch.read(*it)))
    }
}

/// All programmes in order, each key once: the one that was added last.
#[derive(Default)]
pub(super) struct Merge {
    parts: Vec<PartCursor>,
    /// The next key of each part that is not at its end.
    heap: BinaryHeap<Reverse<(SortKey, usize)>>,
    /// The part whose programme was returned last.
    present: Option<usize>,
}

/// A part and its present programme.
struct PartCursor {
    input: BufReader<PartReader>,
    stop: u32,
    text: Vec<u8>,
}

impl Merge {
    const HEAD_BYTES: usize = 16;

    fn new(inputs: impl Iterator<Item = BufReader<PartReader>>) -> Result<Self> {
        let mut merge = Self::default();
        for (at, input) in inputs.enumerate() {
            merge.parts.push(PartCursor { input, stop: 0, text: Vec::new() });
            merge.advance(at)?;
        }
        Ok(merge)
    }

    /// Reads the next programme of a part.
    fn advance(&mut self, at: usize) -> Result<()> {
        if let Some(key) =
            self.parts[at].read().map_err(|error| Error::disk("read the sorted guide", error))?
        {
            self.heap.push(Reverse((key, at)));
        }
        Ok(())
    }

    /// Returns the next programme: its key, its stop and its text.
    pub(super) fn next(&mut self) -> Result<Option<(SortKey, u32, &[u8])>> {
        if let Some(at) = self.present.take() {
            self.advance(at)?;
        }
        while let Some(Reverse((key, at))) = self.heap.pop() {
            // Of one key, the parts come in the order in which they were written.
            let is_replaced = self.heap.peek().is_some_and(|next| next.0.0 == key);
            if !is_replaced {
                self.present = Some(at);
                let part = &self.parts[at];
                return Ok(Some((key, part.stop, &part.text)));
            }
            self.advance(at)?;
        }
        Ok(None)
    }
}

impl PartCursor {
    /// Reads a programme and returns its key, or `None` at the end.
    fn read(&mut self) -> std::io::Result<Option<SortKey>> {
        if self.input.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let mut number = [0; 8];
        self.input.read_exact(&mut number)?;
        let key = u64::from_le_bytes(number);
        self.input.read_exact(&mut number)?;
        let both = u64::from_le_bytes(number);
        self.stop = both as u32;
        self.text.resize((both >> 32) as usize, 0);
        self.input.read_exact(&mut self.text)?;
        Ok(Some(key))
    }
}
