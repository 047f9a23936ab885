//! The ring of a channel: files of bounded size, named by the time of their first packet, each with an index.
//!
//! A file has the packets of one reader without a pause, so that a time in it follows from the clock of the stream. The
//! clocks continue from file to file: across a pause too, which takes no time for a viewer.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::recording::FILE_EXTENSION;
use domain::timeshift::{RingFile, TimeShiftSettings};
use media::ts::packet::PACKET;
use parking_lot::Mutex;
use tokio::sync::watch;
use uuid::Uuid;

use crate::clock::now_ms;
use crate::recording_files::file::{Arrived, RecordingFile};
use crate::recording_files::index::{IndexWriter, complete, known};
use crate::recording_files::{FolderError, RecordingIndex, RecordingsFolder};

/// A file is followed by the next one after this time, in milliseconds.
const FILE_MS_MAX: i64 = 10 * 60_000;
/// The same after this time without packets.
const PAUSE_MS: i64 = 3_000;
const INDEX_EXTENSION: &str = "index";

/// A file of a ring. Times are milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptFile {
    /// When its first packet arrived; its name.
    pub(super) started_at: i64,
    /// When its last packet arrived.
    pub(super) ended_at: i64,
    pub(super) bytes: u64,
}

impl KeptFile {
    /// Returns whether no packets are missing between this file and the next one, as far as times show it.
    pub(super) fn continues_in(&self, next: &KeptFile) -> bool {
        next.started_at.saturating_sub(self.ended_at) <= PAUSE_MS
    }
}

/// The past of a channel.
pub(super) struct Ring {
    channel: Uuid,
    folder: RecordingsFolder,
    state: Mutex<RingState>,
    /// Changes with each write.
    growth: watch::Sender<()>,
    /// Readers that follow the ring into the present.
    n_followers: AtomicUsize,
}

#[derive(Default)]
struct RingState {
    /// The oldest one is first.
    files: Vec<KeptFile>,
    /// Whether packets are added to the last file.
    is_written: bool,
    /// Whether the past of the channel is not kept any more.
    is_closed: bool,
    /// Why the last try to write failed.
    failure: Option<String>,
}

impl Ring {
    pub(super) fn new(channel: Uuid, folder: RecordingsFolder) -> Self {
        let (state, growth) = (Mutex::default(), watch::Sender::new(()));
        Self { channel, folder, state, growth, n_followers: AtomicUsize::new(0) }
    }

    /// Reads the files that an earlier process left. The last one is cut to whole packets. Blocks.
    pub(super) fn load(channel: Uuid, folder: RecordingsFolder) -> Result<Self, FolderError> {
        let ring = Self::new(channel, folder);
        let names = ring.folder.list(&channel.to_string())?;
        let started_at = |name: &String| name.strip_suffix(".ts")?.parse::<i64>().ok();
        let mut times: Vec<i64> = names.iter().filter_map(started_at).collect();
        times.sort_unstable();
        let mut files = Vec::new();
        for (n, started_at) in times.iter().copied().enumerate() {
            if n + 1 == times.len()
                && let Some(file) = ring.folder.reopen(&ring.path(started_at, FILE_EXTENSION))?
            {
                RecordingFile::reopened(file)?;
            }
            let index = ring.index(started_at)?;
            let ended_at = started_at.saturating_add_unsigned(index.duration);
            match index.length {
                0 => ring.remove_files(started_at)?,
                bytes => files.push(KeptFile { started_at, ended_at, bytes }),
            }
        }
        ring.state.lock().files = files;
        Ok(ring)
    }

    fn path(&self, started_at: i64, extension: &str) -> String {
        format!("{}/{started_at}.{extension}", self.channel)
    }

    /// Returns the files, the oldest one first.
    pub(super) fn files(&self) -> Vec<KeptFile> {
        self.state.lock().files.clone()
    }

    /// Returns the start of the file after that with this start, and how many milliseconds are missing between them: none if
    /// the first one was removed.
    pub(super) fn next_file(&self, started_at: i64) -> Option<(i64, i64)> {
        let state = self.state.lock();
        let n = state.files.partition_point(|it| it.started_at <= started_at);
        let next = state.files.get(n)?.started_at;
        let before = state.files[..n].last().filter(|it| it.started_at == started_at);
        Some((next, before.map_or(0, |it| next.saturating_sub(it.ended_at))))
    }

    /// Returns the start of the first file.
    pub(super) fn since(&self) -> Option<i64> {
        self.state.lock().files.first().map(|it| it.started_at)
    }

    pub(super) fn is_written(&self) -> bool {
        self.state.lock().is_written
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Notes why nothing is written, if that is so. Returns whether the reason is another one than before.
    pub(super) fn note_failure(&self, failure: Option<&str>) -> bool {
        let mut state = self.state.lock();
        let is_other = state.failure.as_deref() != failure;
        state.failure = failure.map(str::to_owned);
        is_other
    }

    pub(super) fn growth(&self) -> watch::Receiver<()> {
        self.growth.subscribe()
    }

    pub(super) fn is_followed(&self) -> bool {
        self.n_followers.load(Ordering::Relaxed) > 0
    }

    /// Opens a file to read it. `None` if it was removed. Blocks.
    pub(super) fn open(&self, started_at: i64) -> io::Result<Option<File>> {
        self.folder.open(&self.path(started_at, FILE_EXTENSION))
    }

    /// Returns the points of a file; none of one that was removed. Blocks.
    pub(super) fn index(&self, started_at: i64) -> io::Result<RecordingIndex> {
        let Some(file) = self.open(started_at)? else { return Ok(RecordingIndex::default()) };
        let length = whole(file.metadata()?.len());
        let path = self.path(started_at, INDEX_EXTENSION);
        // An index that cannot be read is one that lacks everything.
        let points = match self.folder.open(&path) {
            Ok(Some(index)) => known(&index, &path, length)?.0,
            _ => Vec::new(),
        };
        complete(points, &file, length)
    }

    /// Returns the files for [`domain::timeshift::surplus`].
    pub(super) fn for_limits(&self) -> Vec<(i64, RingFile)> {
        let state = self.state.lock();
        let last = state.files.len().saturating_sub(1);
        let all = state.files.iter().enumerate().map(|(n, it)| {
            let (channel, is_open) = (self.channel, state.is_written && n == last);
            (it.started_at, RingFile { channel, ended_at: it.ended_at, bytes: it.bytes, is_open })
        });
        all.collect()
    }

    /// Removes a file. Those who read it keep it until they close it. Blocks.
    pub(super) fn remove(&self, started_at: i64) -> Result<(), FolderError> {
        self.state.lock().files.retain(|it| it.started_at != started_at);
        self.remove_files(started_at)
    }

    fn remove_files(&self, started_at: i64) -> Result<(), FolderError> {
        self.folder.remove(&self.path(started_at, INDEX_EXTENSION))?;
        self.folder.remove(&self.path(started_at, FILE_EXTENSION))?;
        Ok(())
    }

    /// Removes everything, because the past of the channel is not kept any more. Blocks.
    pub(super) fn close(&self) -> Result<(), FolderError> {
        let files = {
            let mut state = self.state.lock();
            state.is_closed = true;
            std::mem::take(&mut state.files)
        };
        self.growth.send_replace(());
        files.iter().try_for_each(|it| self.remove_files(it.started_at))
    }

    fn change(&self, change: impl FnOnce(&mut RingState)) {
        change(&mut self.state.lock());
        self.growth.send_replace(());
    }
}

/// Counts a reader that follows a ring.
pub(super) struct Follower(Arc<Ring>);

impl Follower {
    pub(super) fn new(ring: Arc<Ring>) -> Self {
        ring.n_followers.fetch_add(1, Ordering::Relaxed);
        Self(ring)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.n_followers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the length of whole packets.
pub(super) fn whole(length: u64) -> u64 {
    length - length % PACKET as u64
}

/// Writes the packets of one reader into a ring. All methods block.
pub(super) struct RingWriter {
    ring: Arc<Ring>,
    /// The file that is written. Before the first packet, the one that an earlier reader wrote.
    file: Option<RecordingFile>,
    /// Start of the file that is written; `None` before the first packet.
    current: Option<i64>,
    /// When the last packet arrived.
    last_at: i64,
}

impl RingWriter {
    /// Continues after what an earlier reader wrote: in a file of its own, with continuing clocks.
    pub(super) fn new(ring: Arc<Ring>) -> Result<Self, FolderError> {
        if !ring.folder.is_marked() {
            ring.folder.mark()?;
        }
        let last = ring.files().pop();
        let opened = match last {
            Some(last) => ring.folder.reopen(&ring.path(last.started_at, FILE_EXTENSION))?,
            None => None,
        };
        let mut file = opened.map(RecordingFile::reopened).transpose()?.map(|it| it.0);
        if let (Some(file), Some(last)) = (&mut file, last) {
            // The pause takes no time.
            let now = now_ms();
            file.change_reader(now, now)?;
            let bytes = file.length();
            ring.change(|it| {
                let kept = it.files.iter_mut().find(|it| it.started_at == last.started_at);
                if let Some(kept) = kept {
                    kept.bytes = bytes;
                }
            });
        }
        Ok(Self { ring, file, current: None, last_at: 0 })
    }

    /// Returns whether the times of packets matter.
    pub(super) fn needs_times(&self) -> bool {
        self.current.is_none() || self.file.as_ref().is_some_and(RecordingFile::is_joined)
    }

    /// Appends packets, to a new file if the present one is long enough or there was a pause.
    pub(super) fn append(
        &mut self,
        arrived: &[Arrived],
        settings: &TimeShiftSettings,
        n_rings: usize,
    ) -> Result<(), FolderError> {
        let now = now_ms();
        if let (Some(first), Some(last)) = (arrived.first(), arrived.last()) {
            let length = self.file.as_ref().map_or(0, RecordingFile::length);
            let is_full = self.current.is_none_or(|it| {
                first.at.saturating_sub(it) >= FILE_MS_MAX || length >= settings.file_bytes_max(n_rings)
            });
            if is_full || first.at.saturating_sub(self.last_at) > PAUSE_MS {
                self.begin_file(first.at)?;
            }
            self.last_at = last.at;
        }
        let (Some(file), Some(current)) = (&mut self.file, self.current) else { return Ok(()) };
        let appended = file.append(arrived, now);
        self.note(current);
        Ok(appended?)
    }

    /// Begins the next file.
    fn begin_file(&mut self, at: i64) -> Result<(), FolderError> {
        let ring = Arc::clone(&self.ring);
        let before = ring.files().pop().map_or(i64::MIN, |it| it.started_at);
        // The wall clock may have been set back.
        let started_at = at.max(before.saturating_add(1));
        let stem = format!("{}/{started_at}", ring.channel);
        let (file, _) = ring.folder.create(&stem, FILE_EXTENSION)?;
        let index = (|| {
            let path = ring.path(started_at, INDEX_EXTENSION);
            ring.folder.remove(&path)?;
            let (index, _) = ring.folder.create(&stem, INDEX_EXTENSION)?;
            Ok::<_, FolderError>(IndexWriter::new(index, &path)?)
        })();
        // Without an index the file is read to find a place in it.
        let index = index.ok();
        match &mut self.file {
            Some(before) => {
                before.sync()?;
                before.continue_in(file, index);
            }
            None => self.file = Some(RecordingFile::new(file).with_index(index)),
        }
        self.current = Some(started_at);
        ring.change(|it| {
            it.files.push(KeptFile { started_at, ended_at: started_at, bytes: 0 });
            it.is_written = true;
        });
        Ok(())
    }

    /// Notes the size of the file that is written.
    fn note(&self, current: i64) {
        let (bytes, last_at) = (self.file.as_ref().map_or(0, RecordingFile::length), self.last_at);
        self.ring.change(|it| {
            let kept = it.files.iter_mut().rev().find(|it| it.started_at == current);
            if let Some(kept) = kept {
                (kept.bytes, kept.ended_at) = (bytes, last_at.max(kept.started_at));
            }
        });
    }

    /// Writes what waits for the end of a frame.
    pub(super) fn finish(&mut self) -> Result<(), FolderError> {
        let (Some(file), Some(current)) = (&mut self.file, self.current) else { return Ok(()) };
        let finished = file.finish(now_ms());
        self.note(current);
        Ok(finished?)
    }
}

impl Drop for RingWriter {
    fn drop(&mut self) {
        self.ring.change(|it| it.is_written = false);
    }
}
