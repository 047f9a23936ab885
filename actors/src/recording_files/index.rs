//! The index of a recording: the packets at which playing can begin, and their time since the start.
//!
//! It is written while the file grows, into a hidden folder of the folder of recordings. It is a help only: an index that
//! is missing, torn or old is completed by reading the file, and a recording goes on without one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use domain::ids::RecordingId;
use domain::recording::stable_hash;
use media::spawn_blocking;
pub use media::ts::access_points::AccessPoint;
use media::ts::access_points::{
    INDEX_BYTES_MAX, INDEX_ENTRY_BYTES, INDEX_HEAD_BYTES, POINTS_MAX, PointFinder, index_head, push_entry,
    read_index,
};
use media::ts::packet::{PACKET, Packet, packets};
use media::ts::table_reader::TableReader;
use tracing::warn;

use super::folder::{FolderError, RecordingsFolder};

/// Bytes that are read at a time.
const BLOCK_BYTES: usize = 1024 * PACKET;
/// The tables of a programme are within this many packets from the start of a file.
const HEAD_PACKETS_MAX: usize = 4_000;
/// Maximum part of a file that is read because its index lacks it, while others wait for nothing, in bytes.
pub(crate) const CATCH_UP_BYTES_MAX: u64 = 64 << 20;

/// The points of a file at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingIndex {
    /// In order. Empty if the file is not a transport stream, or has no point yet.
    pub points: Vec<AccessPoint>,
    /// Time of the last packet since the start, in milliseconds.
    pub duration: u64,
    /// Size of the file in bytes, in whole packets.
    pub length: u64,
    /// The packets with the tables of the programme at the start of the file.
    pub tables: Bytes,
    /// Length of the part of the file that ends with the last of them, in bytes.
    pub tables_end: u64,
}

impl RecordingIndex {
    /// Returns the last point that is not after a time in milliseconds; `None` if the file has no point.
    pub fn at(&self, time: u64) -> Option<&AccessPoint> {
        let n = self.points.partition_point(|it| it.time <= time);
        self.points.get(n.saturating_sub(1))
    }
}

/// Reads a file from the position of a finder up to another.
fn read(
    finder: &mut PointFinder,
    file: &File,
    end: u64,
    mut found: impl FnMut(AccessPoint),
) -> io::Result<()> {
    let mut block = vec![0; BLOCK_BYTES];
    while finder.offset() < end {
        let n = usize::try_from(end - finder.offset()).unwrap_or(usize::MAX).min(block.len());
        file.read_exact_at(&mut block[..n], finder.offset())?;
        for packet in packets(&block[..n]) {
            if let Some(point) = finder.packet(Packet::new(packet)) {
                found(point);
            }
        }
    }
    Ok(())
}

/// Writes the index of a file that grows. All methods block.
pub(crate) struct IndexWriter {
    file: File,
    /// Position of the next entry.
    end: u64,
    finder: PointFinder,
    entries: Vec<u8>,
}

impl IndexWriter {
    /// Starts the index of an empty file.
    pub(crate) fn new(file: File, path: &str) -> io::Result<Self> {
        file.set_len(0)?;
        file.write_all_at(&head(path), 0)?;
        let finder = PointFinder::default();
        Ok(Self { file, end: INDEX_HEAD_BYTES as u64, finder, entries: Vec::new() })
    }

    /// Continues the index of a file with this length. `None` if it lacks too much of the file.
    pub(crate) fn reopened(file: File, path: &str, of: &File, length: u64) -> io::Result<Option<Self>> {
        let points = parse(&contents(&file)?, path, length);
        let last = points.last().copied();
        if length.saturating_sub(last.map_or(0, |it| it.offset)) > CATCH_UP_BYTES_MAX {
            return Ok(None);
        }
        let end = (INDEX_HEAD_BYTES + points.len() * INDEX_ENTRY_BYTES) as u64;
        file.write_all_at(&head(path), 0)?;
        file.set_len(end)?;
        let finder = PointFinder::after(last, &start_of(of, length)?);
        let mut writer = Self { file, end, finder, entries: Vec::new() };
        let (finder, entries) = (&mut writer.finder, &mut writer.entries);
        read(finder, of, length, |it| push_entry(entries, it))?;
        writer.write_out()?;
        Ok(Some(writer))
    }

    /// Notes packets that were appended to the file.
    pub(crate) fn packets<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
        for packet in pieces.flat_map(packets) {
            if let Some(point) = self.finder.packet(Packet::new(packet)) {
                push_entry(&mut self.entries, point);
            }
        }
        self.write_out()
    }

    fn write_out(&mut self) -> io::Result<()> {
        if !self.entries.is_empty() {
            self.file.write_all_at(&self.entries, self.end)?;
            self.end += self.entries.len() as u64;
            self.entries.clear();
        }
        Ok(())
    }
}

/// Starts the index of a recording; `None` if it cannot be written.
pub(crate) fn create(folder: &RecordingsFolder, id: RecordingId, path: &str) -> Option<IndexWriter> {
    let created = folder.open_index(id, true).and_then(|file| {
        let writer = file.map(|file| IndexWriter::new(file, path)).transpose()?;
        Ok(writer)
    });
    created.unwrap_or_else(|cause| {
        warn!(recording.id = %id, "a recording has no index: {cause}");
        None
    })
}

/// Continues the index of a recording; `None` if it cannot be written, or lacks too much.
pub(crate) fn reopen(folder: &RecordingsFolder, id: RecordingId, path: &str) -> Option<IndexWriter> {
    let reopened = (|| {
        let (Some(file), Some(of)) = (folder.open_index(id, true)?, folder.reopen(path)?) else {
            return Ok(None);
        };
        let length = whole(of.metadata()?.len());
        Ok::<_, FolderError>(IndexWriter::reopened(file, path, &of, length)?)
    })();
    reopened.unwrap_or_else(|cause| {
        warn!(recording.id = %id, "a recording continues without its index: {cause}");
        None
    })
}

/// Returns the length of whole packets.
fn whole(length: u64) -> u64 {
    length - length % PACKET as u64
}

/// The points that the index of a recording has, and the file.
pub(crate) struct Known {
    folder: RecordingsFolder,
    id: RecordingId,
    path: String,
    file: File,
    length: u64,
    points: Vec<AccessPoint>,
    /// Bytes of the file that the index lacks.
    behind: u64,
}

impl Known {
    /// Opens a recording. `None` if its file does not exist.
    pub(crate) async fn load(
        folder: RecordingsFolder,
        id: RecordingId,
        path: String,
    ) -> io::Result<Option<Self>> {
        let load = move || {
            let Some(file) = folder.open(&path)? else { return Ok(None) };
            let length = whole(file.metadata()?.len());
            // An index that cannot be read is one that lacks everything.
            let index = folder.open_index(id, false).ok().flatten();
            let known = index.and_then(|it| known(&it, &path, length).ok());
            let (points, behind) = known.unwrap_or((Vec::new(), length));
            Ok(Some(Self { folder, id, path, file, length, points, behind }))
        };
        spawn_blocking(load).await.map_err(io::Error::other)?
    }

    /// Returns whether little of the file has to be read.
    pub(crate) fn is_short(&self) -> bool {
        self.behind <= CATCH_UP_BYTES_MAX
    }

    /// Reads the rest. The index of a file that is complete is kept.
    pub(crate) async fn complete(self, is_whole: bool) -> io::Result<RecordingIndex> {
        let read = move || {
            let is_short = self.is_short();
            let index = complete(self.points, &self.file, self.length)?;
            if is_whole && !is_short {
                let saved = self
                    .folder
                    .open_index(self.id, true)
                    .and_then(|file| file.map_or(Ok(()), |file| Ok(save(&file, &self.path, &index.points)?)));
                if let Err(cause) = saved {
                    warn!(recording.id = %self.id, "failed to keep the index of a recording: {cause}");
                }
            }
            Ok(index)
        };
        spawn_blocking(read).await.map_err(io::Error::other)?
    }
}

/// Returns the points that an index has of a file with this length, and how many bytes of the file it lacks.
pub(crate) fn known(file: &File, path: &str, length: u64) -> io::Result<(Vec<AccessPoint>, u64)> {
    let points = parse(&contents(file)?, path, length);
    let behind = length - points.last().map_or(0, |it| it.offset).min(length);
    Ok((points, behind))
}

/// Completes points with those of the rest of a file with this length.
pub(crate) fn complete(mut points: Vec<AccessPoint>, of: &File, length: u64) -> io::Result<RecordingIndex> {
    let start = start_of(of, length)?;
    let mut finder = PointFinder::after(points.last().copied(), &start);
    read(&mut finder, of, length, |it| {
        if points.len() < POINTS_MAX {
            points.push(it);
        }
    })?;
    let (tables, tables_end) = tables_of(&start);
    Ok(RecordingIndex { points, duration: finder.milliseconds(), length, tables, tables_end })
}

/// Writes an index whose file is complete.
pub(crate) fn save(file: &File, path: &str, points: &[AccessPoint]) -> io::Result<()> {
    let mut bytes = head(path).to_vec();
    points.iter().for_each(|it| push_entry(&mut bytes, *it));
    file.set_len(0)?;
    file.write_all_at(&bytes, 0)
}

/// Reads the index of a recording with this path.
fn parse(bytes: &[u8], path: &str, length: u64) -> Vec<AccessPoint> {
    read_index(bytes, stable_hash(path.as_bytes()), length)
}

/// Returns the head of the index of a recording with this path. An index that another recording left is none.
fn head(path: &str) -> [u8; INDEX_HEAD_BYTES] {
    index_head(stable_hash(path.as_bytes()))
}

/// Reads an index file, as far as it may be long.
fn contents(file: &File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len().min(INDEX_BYTES_MAX as u64);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Reads the start of a file, which has the tables.
fn start_of(file: &File, length: u64) -> io::Result<Vec<u8>> {
    let n = usize::try_from(length).unwrap_or(usize::MAX).min(HEAD_PACKETS_MAX * PACKET);
    let mut start = vec![0; n];
    file.read_exact_at(&mut start, 0)?;
    Ok(start)
}

/// Returns the first packets with tables, and the position after them.
fn tables_of(start: &[u8]) -> (Bytes, u64) {
    let mut reader = TableReader::new();
    let mut tables = Vec::new();
    for (n, bytes) in packets(start).enumerate() {
        let packet = Packet::new(bytes);
        reader.packet(packet);
        if reader.is_table(packet.pid()) {
            tables.extend_from_slice(bytes);
        }
        if reader.tables().is_some() {
            return (tables.into(), ((n + 1) * PACKET) as u64);
        }
    }
    (Bytes::new(), 0)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;
    use std::time::Duration;

    use media::testing::TsSource;
    use media::ts::packet::PAT_PID;
    use proptest::prelude::*;

    use super::*;

    /// Returns a file with some seconds of a programme, and its bytes.
    fn recorded(seconds: u64) -> (File, Vec<u8>) {
        let source = TsSource::new("a");
        let mut stream = source.stream(Duration::ZERO);
        let mut bytes = Vec::new();
        while stream.at() < Duration::from_secs(seconds) {
            bytes.extend_from_slice(&stream.frame());
        }
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        (file, bytes)
    }

    #[test]
    fn an_index_that_grows_has_the_points_that_a_reader_of_the_file_finds() {
        let (file, bytes) = recorded(20);
        let length = bytes.len() as u64;
        let read = complete(Vec::new(), &file, length).unwrap();
        assert!(read.points.len() >= 5, "{}", read.points.len());
        assert!(read.duration.abs_diff(20_000) < 1_500, "{}", read.duration);
        let index = tempfile::tempfile().unwrap();
        let mut writer = IndexWriter::new(index.try_clone().unwrap(), "a.ts").unwrap();
        for block in bytes.chunks(37 * PACKET) {
            writer.packets(std::iter::once(block)).unwrap();
        }
        let (points, _) = known(&index, "a.ts", length).unwrap();
        assert_eq!(points, read.points);
        assert_eq!(known(&index, "b.ts", length).unwrap(), (Vec::new(), length));
        for point in &points {
            let at = usize::try_from(point.offset).unwrap();
            let first = Packet::new(packets(&bytes[at..]).next().unwrap());
            assert_eq!(first.pid() == PAT_PID, point.has_tables);
        }
        assert_eq!(read.at(0), points.first());
        assert_eq!(read.at(u64::MAX), points.last());
        let third = points[2];
        assert_eq!((read.at(third.time), read.at(third.time - 1)), (Some(&third), Some(&points[1])));
        assert_eq!(Packet::new(packets(&read.tables).next().unwrap()).pid(), PAT_PID);
    }

    #[test]
    fn an_index_that_was_torn_anywhere_continues_with_the_same_points() {
        let (file, bytes) = recorded(12);
        let length = bytes.len() as u64;
        let all = complete(Vec::new(), &file, length).unwrap().points;
        let whole = {
            let index = tempfile::tempfile().unwrap();
            save(&index, "a.ts", &all).unwrap();
            contents(&index).unwrap()
        };
        let head = INDEX_HEAD_BYTES;
        for kept in [0, 7, head, head + 1, head + INDEX_ENTRY_BYTES * 2 + 9, whole.len()] {
            let index = tempfile::tempfile().unwrap();
            index.write_all_at(&whole[..kept], 0).unwrap();
            // The file was cut in its last packets too.
            for cut in [0, 40 * PACKET as u64] {
                let of = index.try_clone().unwrap();
                let writer = IndexWriter::reopened(of, "a.ts", &file, length - cut).unwrap();
                assert!(writer.is_some());
                let (points, _) = known(&index, "a.ts", length - cut).unwrap();
                let close = |it: &AccessPoint, other: &AccessPoint| {
                    it.offset == other.offset && it.time.abs_diff(other.time) <= 100
                };
                let expected: Vec<_> = all.iter().filter(|it| it.offset < length - cut).collect();
                assert!(points.len().abs_diff(expected.len()) <= 1, "{kept} {cut}");
                assert!(points.iter().zip(&expected).all(|(it, other)| close(it, other)), "{kept} {cut}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Whatever the bytes of an index are, the recording plays, and goes on being recorded.
        #[test]
        fn an_index_that_is_damaged_anywhere_leads_to_points_in_order(
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
            kept: prop::sample::Index,
        ) {
            static RECORDED: LazyLock<(File, u64, Vec<u8>)> = LazyLock::new(|| {
                let (file, bytes) = recorded(8);
                let length = bytes.len() as u64;
                let index = tempfile::tempfile().unwrap();
                save(&index, "a.ts", &complete(Vec::new(), &file, length).unwrap().points).unwrap();
                (file, length, contents(&index).unwrap())
            });
            let (file, length, whole) = &*RECORDED;
            let mut damaged = whole.clone();
            for (at, byte) in damage {
                // The head stays, so that the entries count.
                let at = INDEX_HEAD_BYTES + at.index(whole.len() - INDEX_HEAD_BYTES);
                damaged[at] = byte;
            }
            damaged.truncate(INDEX_HEAD_BYTES + kept.index(whole.len() - INDEX_HEAD_BYTES + 1));
            let index = tempfile::tempfile().unwrap();
            index.write_all_at(&damaged, 0).unwrap();
            let is_sound = |points: &[AccessPoint]| {
                points.is_sorted_by(|a, b| a.offset < b.offset && a.time <= b.time)
                    && points.iter().all(|it| it.offset < *length)
            };
            let (points, behind) = known(&index, "a.ts", *length).unwrap();
            prop_assert!(behind <= *length);
            let read = complete(points, file, *length).unwrap();
            prop_assert!(is_sound(&read.points) && !read.points.is_empty(), "{:?}", read.points);
            let writer = IndexWriter::reopened(index.try_clone().unwrap(), "a.ts", file, *length).unwrap();
            prop_assert!(writer.is_some());
            let (written, _) = known(&index, "a.ts", *length).unwrap();
            prop_assert_eq!(written, read.points);
        }
    }
}
