//! One guide file, opened for reading.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::guide::programme::ProgrammeId;
use domain::ids::{GuideChannelId, GuideSourceId};

use super::cell::{self, GuideCell};
use super::tables::{CellEntry, Footer, GuideTables, MAGIC};
use super::{StoredProgramme, nearest_seconds, unix_of};
use crate::error::{Error, Result};

/// The programmes of a source after one refresh. Never changes. Reads block, and return what the file has as long as a
/// reader holds it, also after it was replaced or removed.
///
/// Methods that read return [`Error::DamagedGuide`] if the file is damaged, from then on [`GuideFile::is_damaged`]
/// returns true.
#[derive(Debug)]
pub struct GuideFile {
    source: GuideSourceId,
    generation: u64,
    file: File,
    n_bytes: u64,
    pub(super) tables: GuideTables,
    pub(super) n_programmes: u32,
    is_damaged: AtomicBool,
}

impl GuideFile {
    /// Opens a file and reads its tables. Programmes and words are checked when they are read.
    ///
    /// # Errors
    /// [`Error::DamagedGuide`], also for the file of another source or generation.
    pub(super) fn open(path: &Path, source: GuideSourceId, generation: u64) -> Result<Self> {
        let failed = |error| Error::disk("open the guide file", error);
        let file = File::open(path).map_err(failed)?;
        let n_bytes = file.metadata().map_err(failed)?.len();
        let mut opened = Self {
            source,
            generation,
            file,
            n_bytes,
            tables: GuideTables::default(),
            n_programmes: 0,
            is_damaged: AtomicBool::new(false),
        };
        opened.read_tables()?;
        Ok(opened)
    }

    fn read_tables(&mut self) -> Result<()> {
        let magic = self.bytes(0, MAGIC.len())?;
        self.valid((magic == MAGIC).then_some(()), "it does not begin like a guide file")?;
        let footer_offset = self.n_bytes.checked_sub(Footer::BYTES as u64);
        let footer_offset = self.valid(footer_offset, "it is too short")?;
        let footer = Footer::decode(&self.bytes(footer_offset, Footer::BYTES)?, self.n_bytes);
        let footer = self.valid(footer, "its end is invalid")?;
        let is_expected = (footer.source, footer.generation) == (self.source.0, self.generation);
        self.valid(is_expected.then_some(()), "it is another file")?;
        // Checked by the footer: far below 4 GiB.
        let tables = self.block(footer.tables_offset, footer.tables_bytes as u32)?;
        let tables = GuideTables::decode(&tables, footer.n_programmes, footer.tables_offset);
        self.tables = self.valid(tables, "its tables are invalid")?;
        self.n_programmes = footer.n_programmes;
        Ok(())
    }

    pub fn source(&self) -> GuideSourceId {
        self.source
    }

    /// Returns the number of this file among those of its source. A later file has a larger one.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn n_programmes(&self) -> u64 {
        self.n_programmes.into()
    }

    /// Returns the size of the file.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Returns whether a read found damage.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Iterates over the guide channels with programmes, by id.
    pub fn channels(&self) -> impl Iterator<Item = GuideChannelId> {
        self.tables.channels.iter().map(|it| GuideChannelId(it.id))
    }

    /// Returns the start of the first programme of a guide channel and the end of the last one, in Unix seconds.
    pub fn span(&self, channel: GuideChannelId) -> Option<(i64, i64)> {
        let cells = self.cells_of(channel);
        let stop = cells.iter().map(|it| it.stop).max()?;
        Some((unix_of(cells.first()?.start), unix_of(stop)))
    }

    /// Returns the programmes of a guide channel that overlap a window, by start: those that end after `from` and start
    /// before `until`, in Unix seconds.
    pub fn programmes(&self, channel: GuideChannelId, from: i64, until: i64) -> Result<Vec<StoredProgramme>> {
        let mut found = Vec::new();
        for cell in self.cells(channel, from, until) {
            let cell = cell?;
            let programmes = cell.iter();
            found.extend(programmes.map(|it| StoredProgramme {
                start: it.start,
                stop: it.stop,
                inner: it.inner.into(),
            }));
        }
        Ok(found)
    }

    /// Returns the same programmes as [`GuideFile::programmes`], in cells, whose insides are not copied. Has one cell in
    /// memory at a time, which is some kilobytes, or one programme of the maximum size.
    pub fn cells(&self, channel: GuideChannelId, from: i64, until: i64) -> GuideCells<&Self> {
        GuideCells { file: self, channel, next: 0, from, until }
    }

    /// Returns the same cells as [`GuideFile::cells`], and holds the file.
    pub fn into_cells(
        self: Arc<Self>,
        channel: GuideChannelId,
        from: i64,
        until: i64,
    ) -> GuideCells<Arc<Self>> {
        GuideCells { file: self, channel, next: 0, from, until }
    }

    /// Returns a number that follows from the programmes of a guide channel: two files with the same number of a channel have
    /// the same programmes of it. Reads only the checksums of its cells.
    pub fn content(&self, channel: GuideChannelId) -> Result<u64> {
        let mut hasher = DefaultHasher::new();
        for cell in self.cells_of(channel) {
            let checksum = self.bytes(cell.offset + u64::from(cell.n_bytes), 4)?;
            (cell.n_bytes, cell.start, cell.stop, checksum).hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    pub fn programme(&self, id: ProgrammeId) -> Result<Option<StoredProgramme>> {
        let Some(channel) = id.channel() else { return Ok(None) };
        let start = id.start();
        let found = self.programmes(channel, start, start.saturating_add(1))?;
        Ok(found.into_iter().find(|it| it.start == start))
    }

    /// Returns the cells of a guide channel.
    pub(super) fn cells_of(&self, channel: GuideChannelId) -> &[CellEntry] {
        let Ok(at) = self.tables.channels.binary_search_by_key(&channel.0, |it| it.id) else { return &[] };
        let begin = self.tables.channels[at].cell as usize;
        let end = self.tables.channels.get(at + 1).map_or(self.tables.cells.len(), |it| it.cell as usize);
        &self.tables.cells[begin..end]
    }

    /// Returns the numbers of the programmes of a guide channel: the first one, and the one after the last.
    pub(super) fn numbers_of(&self, channel: GuideChannelId) -> (u32, u32) {
        let Ok(at) = self.tables.channels.binary_search_by_key(&channel.0, |it| it.id) else { return (0, 0) };
        let first = |at: usize| {
            let channel = self.tables.channels.get(at);
            channel.map_or(self.n_programmes, |it| self.tables.cells[it.cell as usize].first)
        };
        (first(at), first(at + 1))
    }

    /// Reads and decodes a cell.
    pub(super) fn cell(&self, entry: &CellEntry) -> Result<GuideCell> {
        let stored = self.block(entry.offset, entry.n_bytes)?;
        cell::decode(&stored).map_err(|what| self.damaged(what))
    }

    /// Reads a block and compares its checksum.
    pub(super) fn block(&self, offset: u64, n_bytes: u32) -> Result<Vec<u8>> {
        let mut bytes = self.bytes(offset, n_bytes as usize + 4)?;
        let (content, checksum) = bytes.split_at(n_bytes as usize);
        let is_valid = crc32fast::hash(content).to_le_bytes() == *checksum;
        bytes.truncate(n_bytes as usize);
        self.valid(is_valid.then_some(bytes), "a checksum is wrong")
    }

    fn bytes(&self, offset: u64, n: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; n];
        match self.file.read_exact_at(&mut bytes, offset) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(self.damaged("it is too short")),
            Err(error) => Err(Error::disk("read the guide file", error)),
            Ok(()) => Ok(bytes),
        }
    }

    /// Returns a decoded value, or the error for one that is invalid.
    pub(super) fn valid<T>(&self, value: Option<T>, what: &'static str) -> Result<T> {
        value.ok_or_else(|| self.damaged(what))
    }

    pub(super) fn damaged(&self, what: &'static str) -> Error {
        if !self.is_damaged.swap(true, Ordering::Relaxed) {
            let (source, generation) = (self.source, self.generation);
            tracing::error!(%source, generation, "a guide file is damaged: {what}");
        }
        Error::DamagedGuide { source_id: self.source.0, what }
    }
}

/// The programmes of a guide channel in a window, cell by cell.
#[derive(Debug)]
pub struct GuideCells<F> {
    file: F,
    channel: GuideChannelId,
    /// Position of the next cell among those of the channel.
    next: usize,
    from: i64,
    until: i64,
}

impl<F: Deref<Target = GuideFile>> Iterator for GuideCells<F> {
    type Item = Result<GuideCell>;

    fn next(&mut self) -> Option<Self::Item> {
        let (from, until) = (nearest_seconds(self.from), nearest_seconds(self.until));
        let mut cells = self.file.cells_of(self.channel).iter().enumerate().skip(self.next);
        let (at, entry) = cells.find(|(_, it)| it.start < until && it.stop > from)?;
        let cell = self.file.cell(entry).map(|it| it.within(self.from, self.until));
        self.next = at + 1;
        Some(cell)
    }
}
