//! Reads the past of a channel, across its files, and into the one that is written.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use media::spawn_blocking;
use tokio::time::{Instant, timeout};

use super::ring::{Follower, KeptFile, Ring, whole};
use crate::clock::now_ms;
use crate::recording_files::AccessPoint;

/// Bytes that are read at a time.
const BLOCK_BYTES: u64 = 128 * 1024;
/// A time is covered if packets follow within this time, in milliseconds: programmes begin at a minute.
const HOLE_MS: i64 = 60_000;
/// The end of a ring that is written is as late as this, in milliseconds.
const LAG_MS: i64 = 5_000;
/// A part that is followed ends where more than this is missing, in milliseconds.
const GAP_MS_MAX: i64 = 5 * 60_000;
/// Longest wait for more packets at the end of a ring: its channel may start again.
const SILENCE: Duration = Duration::from_secs(10);

/// A part of the past of a channel.
pub struct PastPart {
    ring: Arc<Ring>,
    start: Place,
    length: Option<u64>,
    is_whole: bool,
    follower: Option<Follower>,
}

/// A place where playing can begin.
struct Place {
    /// Start of the file.
    file: i64,
    offset: u64,
    /// Its time, in milliseconds since 1970.
    at: i64,
    /// The tables of the programme, if they do not follow there.
    tables: Bytes,
}

/// Finds the part from one time to another, in milliseconds since 1970; `None` if its start is not covered. Blocks.
pub(super) fn find(ring: Arc<Ring>, start: i64, end: i64) -> io::Result<Option<PastPart>> {
    let (files, is_written, now) = (ring.files(), ring.is_written(), now_ms());
    let Some(start) = begin(&ring, &files, is_written, start)? else { return Ok(None) };
    let rest: Vec<KeptFile> = files.into_iter().filter(|it| it.started_at >= start.file).collect();
    let is_whole = is_whole(&rest, end.min(now));
    let (mut length, mut follower) = (None, None);
    match end < now {
        true => length = Some(distance(&ring, &rest, &start, end)? + start.tables.len() as u64),
        false => follower = Some(Follower::new(Arc::clone(&ring))),
    }
    Ok(Some(PastPart { ring, start, length, is_whole, follower }))
}

/// Finds the last place before a time.
fn begin(ring: &Ring, files: &[KeptFile], is_written: bool, at: i64) -> io::Result<Option<Place>> {
    let n = files.partition_point(|it| it.started_at <= at);
    let next = files.get(n);
    if let Some((file, before)) = files[..n].split_last() {
        let is_last = next.is_none();
        let end = match next {
            Some(next) if file.continues_in(next) => next.started_at,
            _ if is_last && is_written => file.ended_at.saturating_add(HOLE_MS),
            _ => file.ended_at,
        };
        if at <= end {
            let found = place(ring, file, at)?;
            let before = before.last().filter(|it| it.continues_in(file));
            // A file that continues another one begins with the rest of a group of pictures.
            return match (found, before) {
                (Some(found), _) => Ok(Some(found)),
                (None, Some(before)) => match place(ring, before, at)? {
                    Some(found) => Ok(Some(found)),
                    None => first(ring, file),
                },
                (None, None) => first(ring, file),
            };
        }
    }
    match next.filter(|it| it.started_at.saturating_sub(at) <= HOLE_MS) {
        Some(next) => first(ring, next),
        None => Ok(None),
    }
}

/// Returns the last place of a file that is not after a time.
fn place(ring: &Ring, file: &KeptFile, at: i64) -> io::Result<Option<Place>> {
    let index = ring.index(file.started_at)?;
    let time = u64::try_from(at.saturating_sub(file.started_at)).unwrap_or(0);
    let n = index.points.partition_point(|it| it.time <= time);
    let point = n.checked_sub(1).and_then(|n| index.points.get(n));
    Ok(point.map(|it| Place::new(file, it, &index.tables)))
}

/// Returns the first place of a file.
fn first(ring: &Ring, file: &KeptFile) -> io::Result<Option<Place>> {
    let index = ring.index(file.started_at)?;
    Ok(index.points.first().map(|it| Place::new(file, it, &index.tables)))
}

impl Place {
    fn new(file: &KeptFile, point: &AccessPoint, tables: &Bytes) -> Self {
        let at = file.started_at.saturating_add_unsigned(point.time);
        let tables = if point.has_tables { Bytes::new() } else { tables.clone() };
        Self { file: file.started_at, offset: point.offset, at, tables }
    }
}

/// Returns whether files have everything up to a time.
fn is_whole(files: &[KeptFile], end: i64) -> bool {
    let n_whole = files.windows(2).take_while(|it| it[0].continues_in(&it[1])).count();
    files.get(n_whole).is_some_and(|it| end.saturating_sub(it.ended_at) <= LAG_MS)
}

/// Returns the number of bytes from a place to a time.
fn distance(ring: &Ring, files: &[KeptFile], start: &Place, end: i64) -> io::Result<u64> {
    let mut sum = 0;
    for (n, file) in files.iter().enumerate().take_while(|(n, it)| *n == 0 || it.started_at < end) {
        let mut bytes = file.bytes;
        if file.ended_at > end && files.get(n + 1).is_none_or(|it| it.started_at >= end) {
            let index = ring.index(file.started_at)?;
            let time = u64::try_from(end.saturating_sub(file.started_at)).unwrap_or(0);
            bytes = index.points.iter().find(|it| it.time >= time).map_or(bytes, |it| it.offset);
        }
        let from = if file.started_at == start.file { start.offset } else { 0 };
        sum += bytes.saturating_sub(from);
    }
    Ok(sum)
}

impl PastPart {
    /// Returns the length in bytes; `None` of a part that is followed into the present.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Returns whether the ring has everything up to the end of the part, or up to the present.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns when it begins, in milliseconds since 1970.
    pub fn begins_at(&self) -> i64 {
        self.start.at
    }

    /// Reads the part from its start, or a range of it if it has a length.
    pub fn read(self, range: Option<Range<u64>>) -> PastReader {
        let Self { ring, start, length, follower, .. } = self;
        let range = range.unwrap_or(0..length.unwrap_or(u64::MAX));
        let left = length.map(|_| range.end.saturating_sub(range.start));
        let skip = if length.is_some() { range.start } else { 0 };
        let n_tables = usize::try_from(skip).unwrap_or(usize::MAX).min(start.tables.len());
        PastReader {
            ring,
            tables: start.tables.slice(n_tables..),
            current: start.file,
            next: None,
            file: None,
            at: start.offset,
            skip: skip - n_tables as u64,
            left,
            _follower: follower,
        }
    }
}

/// Reads a part of the past.
pub struct PastReader {
    ring: Arc<Ring>,
    /// Sent first.
    tables: Bytes,
    /// Start of the current file.
    current: i64,
    /// The file after the current one, once it is known.
    next: Option<i64>,
    file: Option<Arc<File>>,
    /// Position in the current file.
    at: u64,
    /// Bytes that are still to be left out.
    skip: u64,
    /// Bytes that are still to be read, if the part has a length.
    left: Option<u64>,
    _follower: Option<Follower>,
}

impl PastReader {
    /// Returns the next block; `None` at the end of the part. Waits for packets of a part that is followed. A reader that is
    /// slower than the ring continues with the oldest file that is left.
    ///
    /// # Errors
    /// A file cannot be read, or a part with a length was removed meanwhile.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let mut silent_since = Instant::now();
        loop {
            if self.left == Some(0) {
                return Ok(None);
            }
            let mut growth = self.ring.growth();
            let block = match self.tables.is_empty() {
                true => self.read_block().await?,
                false => self.take_tables(),
            };
            if !block.is_empty() {
                self.left = self.left.map(|it| it - block.len() as u64);
                return Ok(Some(block));
            }
            // A file does not grow any more once the next one is known.
            if let Some(next) = self.next.take() {
                (self.current, self.file, self.at) = (next, None, 0);
                silent_since = Instant::now();
                continue;
            }
            if let Some((next, missing)) = self.ring.next_file(self.current) {
                if self.left.is_none() && missing > GAP_MS_MAX {
                    return Ok(None);
                }
                self.next = Some(next);
                continue;
            }
            if self.left.is_some() {
                return Err(io::Error::other("the part ends early"));
            }
            if self.ring.is_closed() || silent_since.elapsed() > SILENCE && !self.ring.is_written() {
                return Ok(None);
            }
            // Also looks whether the ring is still written.
            let _ = timeout(Duration::from_secs(1), growth.changed()).await;
        }
    }

    fn take_tables(&mut self) -> Bytes {
        let n = self.left.map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX));
        self.tables.split_to(n.min(self.tables.len()))
    }

    /// Reads whole packets of the current file. Empty at its present end.
    async fn read_block(&mut self) -> io::Result<Bytes> {
        let wanted = self.left.unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES);
        let (ring, file, current) = (Arc::clone(&self.ring), self.file.clone(), self.current);
        let (at, skip, has_length) = (self.at, self.skip, self.left.is_some());
        let read = spawn_blocking(move || {
            let file = match file {
                Some(file) => file,
                None => match ring.open(current)? {
                    Some(file) => Arc::new(file),
                    None if has_length => return Err(io::ErrorKind::NotFound.into()),
                    None => return Ok((None, 0, Bytes::new())),
                },
            };
            let length = whole(file.metadata()?.len());
            let skipped = skip.min(length.saturating_sub(at));
            let n = wanted.min(length.saturating_sub(at + skipped));
            let mut block = vec![0; usize::try_from(n).unwrap_or(0)];
            file.read_exact_at(&mut block, at + skipped)?;
            Ok::<_, io::Error>((Some(file), skipped, Bytes::from(block)))
        });
        let (file, skipped, block) = read.await.map_err(io::Error::other)??;
        (self.file, self.skip) = (file, self.skip - skipped);
        self.at += skipped + block.len() as u64;
        Ok(block)
    }
}
