//! Writes a guide file from programmes in any order.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::guide::programme::ProgrammeId;
use domain::ids::{GuideChannelId, GuideSourceId};

use super::cell::CellBuilder;
use super::file::GuideFile;
use super::index_thread::IndexThread;
use super::output::{Output, check_room};
use super::runs::{Runs, SortKey};
use super::tables::{CellEntry, ChannelEntry, Footer, GuideTables, MAGIC, PROGRAMMES_MAX, TIMES_PER_BLOCK};
use super::{seconds_of, unix_of};
use crate::error::{Error, Result};

/// Maximum size of the inside of a programme, in bytes.
pub const PROGRAMME_BYTES_MAX: usize = 512 * 1024;
/// A programme without an end ends with the start of the next one, if that is not later than this. In seconds.
const GAP_MAX: u32 = 6 * 60 * 60;
/// Otherwise it has this duration, in seconds.
const DURATION: u32 = 60 * 60;

/// Receives the programmes of a source and writes its next file. Uses at most about 80 MiB of memory, however many
/// programmes there are. All methods block. Dropping it leaves no trace.
pub struct GuideWriter {
    folder: PathBuf,
    source: GuideSourceId,
    generation: u64,
    runs: Runs,
    /// The first start of each guide channel, in seconds since 2000.
    begins: HashMap<GuideChannelId, u32>,
    n_added: u64,
    n_history: u64,
    n_refused: u64,
}

impl GuideWriter {
    /// Begins a file. `expected_bytes` is an estimate of its size, by which the room on the disk is checked.
    pub(super) fn begin(
        folder: &Path,
        source: GuideSourceId,
        generation: u64,
        expected_bytes: u64,
    ) -> Result<Self> {
        // The sorted parts are not compressed, and are on the disk until the file is complete.
        check_room(folder, expected_bytes.saturating_mul(4))?;
        Ok(Self {
            folder: folder.to_owned(),
            source,
            generation,
            runs: Runs::default(),
            begins: HashMap::new(),
            n_added: 0,
            n_history: 0,
            n_refused: 0,
        })
    }

    /// Adds a programme, with its times in Unix seconds and the inside of its XMLTV element. Programmes may come in any
    /// order. Of those with the same guide channel and start, the last one counts.
    ///
    /// A programme ends at the latest when the next one of its guide channel begins. One with a `stop` that is not after
    /// its `start` ends then, or after an hour if there is none within six hours.
    ///
    /// A programme that cannot have a [`ProgrammeId`], or is larger than [`PROGRAMME_BYTES_MAX`], is left out and counted.
    ///
    /// # Errors
    /// If there are more than [`PROGRAMMES_MAX`], or the disk is full or fails.
    pub fn add(&mut self, channel: GuideChannelId, start: i64, stop: i64, inner_xml: &str) -> Result<()> {
        if let Some(start) = self.push(channel, start, stop, inner_xml)? {
            let begin = self.begins.entry(channel).or_insert(start);
            *begin = start.min(*begin);
            self.n_added += 1;
        }
        Ok(())
    }

    /// Returns the start in seconds since 2000, unless the programme was left out.
    fn push(
        &mut self,
        channel: GuideChannelId,
        start: i64,
        stop: i64,
        inner_xml: &str,
    ) -> Result<Option<u32>> {
        let n_programmes = self.n_added + self.n_history;
        if n_programmes >= u64::from(PROGRAMMES_MAX) {
            let max = PROGRAMMES_MAX as usize;
            return Err(Error::TooLarge { what: "guide", size: max + 1, max });
        }
        let id = ProgrammeId::new(channel, start).filter(|_| inner_xml.len() <= PROGRAMME_BYTES_MAX);
        let (Some(id), Some(start)) = (id, seconds_of(start)) else {
            self.n_refused += 1;
            return Ok(None);
        };
        // An end before the start, or at it, is none.
        let stop = seconds_of(stop).unwrap_or(if stop > 0 { u32::MAX } else { 0 });
        self.runs.push(&self.folder, id.0, stop, inner_xml.as_bytes())?;
        Ok(Some(start))
    }

    /// Adds the programmes of the previous file that ended before the first programme of their guide channel in this one,
    /// and after `since`, in Unix seconds. Of guide channels that this one does not have, those that ended before its
    /// first programme of all. Call it once, after all programmes were added.
    ///
    /// A damaged part of the previous file is left out.
    ///
    /// # Errors
    /// As for [`GuideWriter::add`].
    pub fn keep_history(&mut self, previous: &GuideFile, since: i64) -> Result<()> {
        let Some(first) = self.begins.values().min().copied() else { return Ok(()) };
        for channel in previous.channels() {
            let begin = unix_of(self.begins.get(&channel).copied().unwrap_or(first));
            for cell in previous.cells(channel, since, begin) {
                let cell = match cell {
                    Err(Error::DamagedGuide { .. }) => continue,
                    cell => cell?,
                };
                for it in cell.iter().filter(|it| it.stop <= begin && it.start < begin) {
                    self.push(channel, it.start, it.stop, it.inner)?;
                    self.n_history += 1;
                }
            }
        }
        Ok(())
    }

    /// Returns the number of programmes that were added, duplicates included, without history.
    pub fn n_added(&self) -> u64 {
        self.n_added
    }

    /// Returns the number of programmes that were left out.
    pub fn n_refused(&self) -> u64 {
        self.n_refused
    }

    /// Sorts the programmes, builds the search index, and writes the file. It is on the disk when this returns, and is used
    /// once [`GuideFiles::install`](super::GuideFiles::install) got it.
    ///
    /// # Errors
    /// If the disk is full or fails. Nothing of the file is left then.
    pub fn finish(self) -> Result<FinishedGuide> {
        let name = file_name(self.source, self.generation);
        let mut out = Output::create(&self.folder, name.clone())?;
        out.write(&MAGIC)?;
        let mut merge = self.runs.merge(&self.folder)?;
        let mut body = Body::new(IndexThread::start(&self.folder)?);
        // A programme is written when the next one is known, because it ends with it.
        let mut held: Option<(SortKey, u32)> = None;
        let mut held_text = Vec::new();
        while let Some((key, stop, text)) = merge.next()? {
            if let Some((held_key, held_stop)) = held.replace((key, stop)) {
                body.add(&mut out, held_key, held_stop, Some(key), &held_text)?;
            }
            held_text.clear();
            held_text.extend_from_slice(text);
        }
        // The sorted parts are no longer needed, so their room is free for the index.
        drop(merge);
        if let Some((key, stop)) = held {
            body.add(&mut out, key, stop, None, &held_text)?;
        }
        let (tables, n_programmes) = body.finish(&mut out)?;
        let bytes = tables.encode();
        let footer = Footer {
            source: self.source.0,
            n_programmes,
            generation: self.generation,
            tables_bytes: bytes.len() as u64,
            tables_offset: out.block(&bytes)?,
        };
        out.write(&footer.encode())?;
        out.finish()?;
        let path = self.folder.join(name);
        match GuideFile::open(&path, self.source, self.generation) {
            Ok(file) => Ok(FinishedGuide {
                file: Arc::new(file),
                path: Some(path),
                n_history: self.n_history,
                n_refused: self.n_refused,
            }),
            Err(error) => {
                // Nobody knows of it; the first error is the one to report.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }
}

/// The part of a guide file before its tables, while it is written.
struct Body {
    tables: GuideTables,
    cell: CellBuilder,
    /// The guide channel of the cell.
    channel: u32,
    /// A block of times.
    times: Vec<u8>,
    index: IndexThread,
    n_programmes: u32,
    /// The stored form of a cell, reused.
    stored: Vec<u8>,
}

impl Body {
    fn new(index: IndexThread) -> Self {
        Self {
            tables: GuideTables::default(),
            cell: CellBuilder::default(),
            channel: 0,
            times: Vec::new(),
            index,
            n_programmes: 0,
            stored: Vec::new(),
        }
    }

    /// Adds a programme; `next` is the key of the one after it.
    fn add(
        &mut self,
        out: &mut Output<'_>,
        key: SortKey,
        stop: u32,
        next: Option<SortKey>,
        text: &[u8],
    ) -> Result<()> {
        let (channel, start) = ((key >> 32) as u32, key as u32);
        let next_start = next.filter(|it| (it >> 32) as u32 == channel).map(|it| it as u32);
        let stop = match next_start {
            _ if stop > start => stop,
            Some(next) if next - start <= GAP_MAX => next,
            _ => start.saturating_add(DURATION),
        };
        let stop = next_start.map_or(stop, |it| stop.min(it));
        if self.channel != channel || self.cell.is_full() {
            self.end_cell(out)?;
        }
        if self.tables.channels.last().is_none_or(|it| it.id != channel) {
            self.tables.channels.push(ChannelEntry { id: channel, cell: self.tables.cells.len() as u32 });
            self.channel = channel;
        }
        self.cell.push(start, stop, text);
        self.times.extend_from_slice(&start.to_le_bytes());
        self.times.extend_from_slice(&stop.to_le_bytes());
        // It was a text when it was added.
        let inner = str::from_utf8(text).unwrap_or_default();
        self.index.add(self.n_programmes, inner);
        self.n_programmes += 1;
        match self.n_programmes.is_multiple_of(TIMES_PER_BLOCK) {
            true => self.end_times(out),
            false => Ok(()),
        }
    }

    fn end_cell(&mut self, out: &mut Output<'_>) -> Result<()> {
        let CellBuilder { n, start, stop, .. } = self.cell;
        if n == 0 {
            return Ok(());
        }
        self.cell.finish(&mut self.stored);
        let offset = out.block(&self.stored)?;
        let (n_bytes, first) = (self.stored.len() as u32, self.n_programmes - n);
        self.tables.cells.push(CellEntry { offset, n_bytes, first, start, stop });
        Ok(())
    }

    fn end_times(&mut self, out: &mut Output<'_>) -> Result<()> {
        if !self.times.is_empty() {
            self.tables.times.push(out.block(&self.times)?);
            self.times.clear();
        }
        Ok(())
    }

    /// Writes what is left, and the search index. Returns the tables and the number of programmes.
    fn finish(mut self, out: &mut Output<'_>) -> Result<(GuideTables, u32)> {
        self.end_cell(out)?;
        self.end_times(out)?;
        self.tables.words = self.index.finish(out)?;
        Ok((self.tables, self.n_programmes))
    }
}

/// A file that is on the disk and not in use yet. Dropping it removes the file.
#[derive(Debug)]
pub struct FinishedGuide {
    file: Arc<GuideFile>,
    /// `None` once it is in use.
    path: Option<PathBuf>,
    n_history: u64,
    n_refused: u64,
}

impl FinishedGuide {
    pub fn source(&self) -> GuideSourceId {
        self.file.source()
    }

    /// Returns the number that the state of the source has to name.
    pub fn generation(&self) -> u64 {
        self.file.generation()
    }

    /// Returns the number of programmes in the file, with those of [`GuideWriter::keep_history`].
    pub fn n_programmes(&self) -> u64 {
        self.file.n_programmes()
    }

    /// Returns the number of programmes that [`GuideWriter::keep_history`] added.
    pub fn n_history(&self) -> u64 {
        self.n_history
    }

    /// Returns the number of programmes that were left out.
    pub fn n_refused(&self) -> u64 {
        self.n_refused
    }

    /// Returns the first start and the last end of all programmes, in Unix seconds.
    pub fn span(&self) -> Option<(i64, i64)> {
        let cells = &self.file.tables.cells;
        let (start, stop) = (cells.iter().map(|it| it.start).min()?, cells.iter().map(|it| it.stop).max()?);
        Some((unix_of(start), unix_of(stop)))
    }

    /// Returns the file, to read it before it is in use.
    pub fn file(&self) -> &Arc<GuideFile> {
        &self.file
    }

    /// Keeps the file on the disk.
    pub(super) fn into_file(mut self) -> Arc<GuideFile> {
        self.path = None;
        Arc::clone(&self.file)
    }
}

impl Drop for FinishedGuide {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // One that stays is removed at the next start.
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns the name of a guide file.
pub(super) fn file_name(source: GuideSourceId, generation: u64) -> String {
    format!("{source}-{generation}.guide")
}

/// Returns source and generation of the name of a guide file.
pub fn parse_file_name(name: &str) -> Option<(GuideSourceId, u64)> {
    let (source, generation) = name.strip_suffix(".guide")?.split_once('-')?;
    let parsed = (GuideSourceId(source.parse().ok()?), generation.parse().ok()?);
    (file_name(parsed.0, parsed.1) == name).then_some(parsed)
}
