//! The files of a history: rings of blocks in the data folder.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use domain::history::block::{Block, Resolution, block_bytes};
use domain::history::{HistorySubject, SubjectKind};
use storage::create_folder;
use tracing::warn;

/// The kinds in the files of everything but users and streams.
const SHARED_KINDS: [SubjectKind; 3] = [SubjectKind::Gateway, SubjectKind::Account, SubjectKind::Channel];
/// The kinds in the files of users. The gateway tells in which time it measured.
const USER_KINDS: [SubjectKind; 2] = [SubjectKind::Gateway, SubjectKind::User];

/// The kinds in the files of streams.
const STREAM_KINDS: [SubjectKind; 2] = [SubjectKind::Gateway, SubjectKind::Stream];

/// A file with the blocks of one resolution. All methods block.
#[derive(Debug)]
pub(super) struct RingFile {
    path: PathBuf,
    pub(super) resolution: Resolution,
    block_bytes: usize,
}

impl RingFile {
    fn new(path: PathBuf, resolution: Resolution, kinds: &[SubjectKind]) -> Self {
        Self { path, resolution, block_bytes: block_bytes(kinds) }
    }

    /// Returns the size of the file in bytes. Places that were never written take no room on the disk.
    fn bytes(&self) -> u64 {
        (self.block_bytes as u64).saturating_mul(self.resolution.n_blocks as u64)
    }

    fn offset(&self, start: i64) -> u64 {
        (self.resolution.place(start) as u64).saturating_mul(self.block_bytes as u64)
    }

    /// Opens the file; `None` if there is none.
    fn open(&self) -> io::Result<Option<File>> {
        match File::open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open_to_write(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            create_folder(folder, 0o700)?;
        }
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&self.path)?;
        if file.metadata()?.len() != self.bytes() {
            file.set_len(self.bytes())?;
        }
        Ok(file)
    }

    /// Passes on the blocks of these steps that the file has, in this order. Damaged ones count as missing.
    pub(super) fn read(
        &self,
        starts: &mut dyn Iterator<Item = i64>,
        found: &mut dyn FnMut(Block),
    ) -> io::Result<()> {
        let Some(file) = self.open()? else { return Ok(()) };
        let mut bytes = vec![0; self.block_bytes];
        for start in starts {
            if let Some(block) = self.read_at(&file, start, &mut bytes)? {
                found(block);
            }
        }
        Ok(())
    }

    fn read_at(&self, file: &File, start: i64, bytes: &mut [u8]) -> io::Result<Option<Block>> {
        let n = read_up_to(file, bytes, self.offset(start))?;
        let block = bytes.get(..n).and_then(Block::decode);
        Ok(block.filter(|it| it.start == start && it.step_seconds == self.resolution.step_seconds))
    }

    /// Adds a block to the one of the same step.
    fn add(&self, block: &Block) -> io::Result<()> {
        let file = self.open_to_write()?;
        let mut bytes = vec![0; self.block_bytes];
        let mut whole = block.clone();
        if let Some(known) = self.read_at(&file, block.start, &mut bytes)? {
            whole.add_block(&known, usize::MAX);
        }
        whole.shrink();
        file.write_all_at(&whole.encode(), self.offset(block.start))
    }

    /// Removes the samples that `is_kept` refuses from all blocks, and overwrites them with zeros.
    fn retain(&self, is_kept: &dyn Fn(i64, HistorySubject) -> bool) -> io::Result<()> {
        if self.open()?.is_none() {
            return Ok(());
        }
        let file = self.open_to_write()?;
        let mut bytes = vec![0; self.block_bytes];
        for place in 0..self.resolution.n_blocks as u64 {
            let offset = place.saturating_mul(self.block_bytes as u64);
            let n = read_up_to(&file, &mut bytes, offset)?;
            let Some(mut block) = bytes.get(..n).and_then(Block::decode) else { continue };
            let start = block.start;
            if block.retain(|it| is_kept(start, it)) {
                continue;
            }
            let mut kept = block.encode();
            kept.resize(self.block_bytes, 0);
            file.write_all_at(&kept, offset)?;
        }
        Ok(())
    }

    /// Removes a file of which no block can be read, so that it is started anew.
    fn check(&self) -> io::Result<()> {
        let Some(file) = self.open()? else { return Ok(()) };
        let (mut bytes, mut has_damage) = (vec![0; self.block_bytes], false);
        for place in 0..self.resolution.n_blocks as u64 {
            let n = read_up_to(&file, &mut bytes, place.saturating_mul(self.block_bytes as u64))?;
            let block = bytes.get(..n).unwrap_or_default();
            if Block::decode(block).is_some() {
                return Ok(());
            }
            has_damage |= block.iter().any(|it| *it != 0);
        }
        if has_damage {
            warn!(path = %self.path.display(), "the file of the history is damaged and is started anew");
            fs::remove_file(&self.path)?;
        }
        Ok(())
    }

    fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes.
fn read_up_to(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut n = 0;
    while let Some(rest) = bytes.get_mut(n..).filter(|it| !it.is_empty()) {
        match file.read_at(rest, offset.saturating_add(n as u64)) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n)
}

/// The files of some kinds of subjects, in both resolutions.
#[derive(Debug)]
pub(super) struct FilePair {
    kinds: &'static [SubjectKind],
    pub(super) fine: RingFile,
    pub(super) coarse: RingFile,
}

impl FilePair {
    fn new(folder: &Path, name: &str, kinds: &'static [SubjectKind]) -> Self {
        let file = |part: &str, resolution| {
            RingFile::new(folder.join(format!("{name}-{part}.ring")), resolution, kinds)
        };
        Self { kinds, fine: file("5m", Resolution::FINE), coarse: file("1h", Resolution::COARSE) }
    }

    /// Adds a fine block, as far as it has these kinds.
    pub(super) fn add(&self, block: &Block) -> io::Result<()> {
        self.fine.add(&block.part(self.kinds))
    }

    /// Makes the coarse blocks of the hours that have ended, from the fine ones. Later calls find nothing to do.
    pub(super) fn close_hours(&self, now: i64) -> io::Result<()> {
        let hour = i64::from(Resolution::COARSE.step_seconds);
        let end = Resolution::COARSE.start(now);
        let first = end.saturating_sub(Resolution::FINE.span_seconds()).saturating_add(hour);
        let mut missing: Vec<i64> = (0..).map(|it| first + it * hour).take_while(|it| *it < end).collect();
        self.coarse.read(&mut missing.clone().into_iter(), &mut |block| {
            missing.retain(|it| *it != block.start);
        })?;
        for start in missing {
            let mut whole = Block::new(start, Resolution::COARSE);
            self.fine.read(&mut fine_starts(start), &mut |block| whole.add_block(&block, usize::MAX))?;
            if !whole.samples().is_empty() {
                self.coarse.add(&whole)?;
            }
        }
        Ok(())
    }

    /// Removes samples, as [`RingFile::retain`] does.
    pub(super) fn retain(&self, is_kept: &dyn Fn(i64, HistorySubject) -> bool) -> io::Result<()> {
        self.fine.retain(is_kept)?;
        self.coarse.retain(is_kept)
    }

    pub(super) fn check(&self) -> io::Result<()> {
        self.fine.check()?;
        self.coarse.check()
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        self.fine.remove()?;
        self.coarse.remove()
    }
}

/// Returns the starts of the fine steps of an hour.
pub(super) fn fine_starts(hour: i64) -> impl Iterator<Item = i64> {
    let step = i64::from(Resolution::FINE.step_seconds);
    let n_steps = i64::from(Resolution::COARSE.step_seconds) / step;
    (0..n_steps).map(move |it| hour + it * step)
}

/// All files of a history.
#[derive(Debug)]
pub(super) struct HistoryFiles {
    pub(super) shared: FilePair,
    pub(super) users: FilePair,
    pub(super) streams: FilePair,
}

impl HistoryFiles {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            shared: FilePair::new(folder, "gateway", &SHARED_KINDS),
            users: FilePair::new(folder, "users", &USER_KINDS),
            streams: FilePair::new(folder, "streams", &STREAM_KINDS),
        }
    }

    /// Returns the files that have the samples of a subject.
    pub(super) fn with(&self, subject: HistorySubject) -> &FilePair {
        match subject.kind() {
            SubjectKind::User => &self.users,
            SubjectKind::Stream => &self.streams,
            _ => &self.shared,
        }
    }
}
