//! Builds the search index of a guide file: for each word of a field, the numbers of the programmes with the word.
//!
//! Programmes arrive by their number, so the numbers of each word ascend and are stored as differences. When the memory
//! is full, all words are written to a scratch file, sorted; at the end, these parts are read side by side.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use domain::guide::words::WordSplitter;

use super::bytes::{ByteReader, put_varint};
use super::output::{Output, Part, PartReader, Scratch};
use super::tables::WordBlock;
use super::texts::for_each_text;
use crate::error::{Error, Result};

/// Memory of the words that are collected at once, in bytes. Tests collect few at once.
const MEMORY_BYTES: usize = if cfg!(test) { 4_000 } else { 32 * 1024 * 1024 };
/// Estimated memory of a word in addition to its numbers, in bytes.
const WORD_BYTES: usize = 160;
/// A block of words ends before it has more than this many bytes. Tests have many blocks.
const BLOCK_BYTES: usize = if cfg!(test) { 300 } else { 16 * 1024 };
/// Differences in one entry of a block, in bytes. More of them are several entries of the word.
const ENTRY_BYTES: usize = if cfg!(test) { 40 } else { 64 * 1024 };

/// The programmes with a word.
#[derive(Default)]
struct Postings {
    first: u32,
    last: u32,
    /// Differences between the numbers after the first one.
    differences: Vec<u8>,
}

/// Collects the words of programmes.
#[derive(Default)]
pub(super) struct IndexBuilder {
    /// By the number of the field, followed by the word.
    words: HashMap<Box<[u8]>, Postings>,
    n_bytes: usize,
    splitter: WordSplitter,
    key: Vec<u8>,
    scratch: Option<Scratch>,
    parts: Vec<Part>,
}

impl IndexBuilder {
    /// Adds the words of a programme. Numbers of programmes ascend.
    pub(super) fn add(&mut self, folder: &Path, number: u32, inner: &str) -> Result<()> {
        for_each_text(inner, |field, text| {
            let (words, key, n_bytes) = (&mut self.words, &mut self.key, &mut self.n_bytes);
            self.splitter.split(&text, |word| {
                key.clear();
                key.push(field.number());
                key.extend_from_slice(word.as_bytes());
                let Some(postings) = words.get_mut(&**key) else {
                    let postings = Postings { first: number, last: number, differences: Vec::new() };
                    words.insert(key.as_slice().into(), postings);
                    *n_bytes += WORD_BYTES;
                    return;
                };
                if postings.last != number {
                    let before = postings.differences.capacity();
                    put_varint(&mut postings.differences, number - postings.last);
                    postings.last = number;
                    *n_bytes += postings.differences.capacity() - before;
                }
            });
        });
        match self.n_bytes >= MEMORY_BYTES {
            true => self.spill(folder),
            false => Ok(()),
        }
    }

    /// Writes the words in memory to the scratch file, sorted.
    fn spill(&mut self, folder: &Path) -> Result<()> {
        let mut words: Vec<_> = std::mem::take(&mut self.words).into_iter().collect();
        words.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let scratch = match &mut self.scratch {
            Some(scratch) => scratch,
            empty => empty.insert(Scratch::create(folder)?),
        };
        let sizes = words.iter().map(|(key, it)| key.len() + it.differences.len() + WordCursor::HEAD_BYTES);
        let n_bytes_max = sizes.sum::<usize>() as u64;
        let part = scratch.append(folder, n_bytes_max, |write| {
            for (key, it) in &words {
                let mut head = [0; WordCursor::HEAD_BYTES];
                head[0] = key.len() as u8;
                head[1..5].copy_from_slice(&it.first.to_le_bytes());
                head[5..].copy_from_slice(&(it.differences.len() as u32).to_le_bytes());
                write(&head)?;
                write(key)?;
                write(&it.differences)?;
            }
            Ok(())
        })?;
        self.parts.push(part);
        self.n_bytes = 0;
        Ok(())
    }

    /// Writes the blocks of words and returns their places.
    pub(super) fn finish(mut self, folder: &Path, out: &mut Output<'_>) -> Result<Vec<WordBlock>> {
        if !self.words.is_empty() {
            self.spill(folder)?;
        }
        let Some(scratch) = self.scratch else { return Ok(Vec::new()) };
        let mut blocks = BlockWriter { out, block: Vec::new(), first: Vec::new(), blocks: Vec::new() };
        let failed = |error| Error::disk("read the sorted words of the guide", error);
        let mut parts = Vec::new();
        let mut heap = BinaryHeap::new();
        for (at, part) in self.parts.iter().enumerate() {
            let mut cursor = WordCursor { input: scratch.read(*part), first: 0, differences: Vec::new() };
            heap.extend(cursor.read().map_err(failed)?.map(|key| Reverse((key, at))));
            parts.push(cursor);
        }
        // Entries of one word come in the order of their parts, so that the numbers ascend.
        while let Some(Reverse((key, at))) = heap.pop() {
            blocks.word(&key, parts[at].first, &parts[at].differences)?;
            heap.extend(parts[at].read().map_err(failed)?.map(|key| Reverse((key, at))));
        }
        blocks.finish()
    }
}

/// A part of the scratch file and its present word.
struct WordCursor {
    input: BufReader<PartReader>,
    first: u32,
    differences: Vec<u8>,
}

impl WordCursor {
    const HEAD_BYTES: usize = 9;

    /// Reads a word and returns it, or `None` at the end.
    fn read(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        if self.input.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let mut head = [0; Self::HEAD_BYTES];
        self.input.read_exact(&mut head)?;
        let [n_key, a, b, c, d, e, f, g, h] = head;
        self.first = u32::from_le_bytes([a, b, c, d]);
        let mut key = vec![0; n_key.into()];
        self.input.read_exact(&mut key)?;
        self.differences.resize(u32::from_le_bytes([e, f, g, h]) as usize, 0);
        self.input.read_exact(&mut self.differences)?;
        Ok(Some(key))
    }
}

/// Writes entries into blocks: the length of a word, the word, its first number, and the size and bytes of the
/// differences.
struct BlockWriter<'a, 'b> {
    out: &'a mut Output<'b>,
    block: Vec<u8>,
    /// The first word of the block.
    first: Vec<u8>,
    blocks: Vec<WordBlock>,
}

impl BlockWriter<'_, '_> {
    /// Adds a word. Many numbers are divided into several entries.
    fn word(&mut self, key: &[u8], mut first: u32, mut differences: &[u8]) -> Result<()> {
        while differences.len() > ENTRY_BYTES {
            let mut input = ByteReader(differences);
            let mut last = first;
            while differences.len() - input.0.len() < ENTRY_BYTES {
                last += input.varint().unwrap_or_default();
            }
            let (part, rest) = differences.split_at(differences.len() - input.0.len());
            self.entry(key, first, part)?;
            let mut input = ByteReader(rest);
            let Some(difference) = input.varint() else { return Ok(()) };
            (first, differences) = (last + difference, input.0);
        }
        self.entry(key, first, differences)
    }

    fn entry(&mut self, key: &[u8], first: u32, differences: &[u8]) -> Result<()> {
        // The word, three numbers at most, and the differences.
        let n_bytes_max = key.len() + 16 + differences.len();
        if !self.block.is_empty() && self.block.len() + n_bytes_max > BLOCK_BYTES {
            self.end_block()?;
        }
        if self.block.is_empty() {
            self.first = key.to_vec();
        }
        self.block.push(key.len() as u8);
        self.block.extend_from_slice(key);
        put_varint(&mut self.block, first);
        put_varint(&mut self.block, differences.len() as u32);
        self.block.extend_from_slice(differences);
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        let first = std::mem::take(&mut self.first).into_boxed_slice();
        let offset = self.out.block(&self.block)?;
        self.blocks.push(WordBlock { offset, n_bytes: self.block.len() as u32, first });
        self.block.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<WordBlock>> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        Ok(self.blocks)
    }
}
