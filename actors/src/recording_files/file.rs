//! The file of a recording: whole packets of one transport stream, without null packets.
//!
//! The packets of the first reader of the live channel are stored as they are. A later reader may belong to another run of
//! the channel, whose clocks and counters differ; the same holds after a restart. So from the second reader on, packets pass
//! a [`Splice`] that has read the end of the file first, and continues its clocks.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use media::splice::{Splice, SpliceSettings};
use media::ts::packet::{NULL_PID, PACKET, Packet, PacketSink, discontinuity_packet, packets};
use rustix::io::{Errno, pwritev};
use tokio::time::Instant;
use tracing::warn;

use super::folder::RecordingsFolder;
use super::index::IndexWriter;
use super::loss::{FileLoss, FilePlace};

/// How much of the end of a file is read to continue it, in bytes: some seconds of any stream.
const SEED_BYTES_MAX: u64 = 16 << 20;
/// Bytes that are read at a time for that.
const SEED_READ_BYTES: usize = 256 * PACKET;
/// Ticks of a programme clock per microsecond.
const TICKS_PER_MICROSECOND: u64 = 27;
/// Maximum number of pieces of one write; the limit of Linux.
const PIECES_MAX: usize = 1024;
/// Maximum step of the programme clock that counts as time. A greater one is a jump of the clock.
const STEP_MAX: Duration = Duration::from_secs(10);

/// An open file of a recording. All methods block.
pub(crate) struct RecordingFile {
    file: File,
    /// A multiple of the size of a packet.
    length: u64,
    /// How many bytes are on the disk for sure.
    synced: u64,
    /// Set from the second reader on.
    joined: Option<Joined>,
    /// Packets of a splice to write, reused for each batch.
    out: Vec<u8>,
    /// `None` if it cannot be written: a recording needs no index.
    index: Option<IndexWriter>,
    /// Set if it matters whether the file is still at its path.
    place: Option<FilePlace>,
    opened_at: Instant,
}

/// The join of another reader's packets to the file.
struct Joined {
    splice: Splice,
    /// The time of the splice at the time of the wall clock in milliseconds.
    origin: (Duration, i64),
    latest: Duration,
    /// PIDs that had a packet since the change of the reader.
    begun: BTreeSet<u16>,
    /// The file began with the splice, and its reader has not changed.
    is_start: bool,
}

/// Packets that arrived at this time, in milliseconds since 1970.
pub(crate) struct Arrived {
    pub(crate) at: i64,
    pub(crate) bytes: Bytes,
}

impl RecordingFile {
    pub(crate) fn new(file: File) -> Self {
        let opened_at = Instant::now();
        Self {
            file,
            length: 0,
            synced: 0,
            joined: None,
            out: Vec::new(),
            index: None,
            place: None,
            opened_at,
        }
    }

    /// Writes an index, too.
    pub(crate) fn with_index(self, index: Option<IndexWriter>) -> Self {
        Self { index, ..self }
    }

    /// Looks whether the file is still the one at this path.
    pub(crate) fn at_place(self, folder: RecordingsFolder, path: String) -> Self {
        Self { place: Some(FilePlace::new(folder, path)), ..self }
    }

    /// Returns how the file was lost since it was opened; `None` if it was not. See [`FilePlace::loss`].
    pub(crate) fn loss(&mut self, is_thorough: bool) -> Option<FileLoss> {
        self.place.as_mut()?.loss(&self.file, self.length, is_thorough)
    }

    /// Continues in another file, which is empty.
    pub(crate) fn continue_in(&mut self, file: File, index: Option<IndexWriter>) {
        (self.file, self.index, self.length, self.synced, self.place) = (file, index, 0, 0, None);
    }

    /// Continues a file that an earlier process has written. Cuts it to whole packets, and what is none off its end: after a
    /// power cut a file can end with bytes that were never written. Also returns when the file was written before that, in
    /// milliseconds since 1970.
    pub(crate) fn reopened(file: File) -> io::Result<(Self, i64)> {
        let metadata = file.metadata()?;
        // A cut counts as a write.
        let written_at = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let length = metadata.len();
        let mut whole = length - length % PACKET as u64;
        let mut block = vec![0; SEED_READ_BYTES];
        'blocks: while whole > length.saturating_sub(SEED_BYTES_MAX) {
            let begin = whole.saturating_sub(SEED_READ_BYTES as u64);
            let block = &mut block[..usize::try_from(whole - begin).unwrap_or(0)];
            file.read_exact_at(block, begin)?;
            for packet in block.as_chunks::<PACKET>().0.iter().rev() {
                if Packet::new(packet).has_sync() {
                    break 'blocks;
                }
                whole -= PACKET as u64;
            }
        }
        if whole != length {
            file.set_len(whole)?;
        }
        let written_at = i64::try_from(written_at.as_millis()).unwrap_or(i64::MAX);
        Ok((Self { length: whole, ..Self::new(file) }, written_at))
    }

    /// Returns when the file was opened: its disk was there then.
    pub(crate) fn opened_at(&self) -> Instant {
        self.opened_at
    }

    /// Returns how many bytes a power cut cannot take. 0 after a file was opened.
    pub(crate) fn synced(&self) -> u64 {
        self.synced
    }

    /// Returns whether packets of another reader follow, whose times matter.
    pub(crate) fn is_joined(&self) -> bool {
        self.joined.is_some()
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Prepares an empty file for packets that do not begin with the tables and a key frame, as those of a channel do. `at` is
    /// when the first one arrived.
    pub(crate) fn begin_anywhere(&mut self, at: i64) {
        if self.length == 0 && self.joined.is_none() {
            let splice = Splice::new(SpliceSettings::default());
            let (origin, latest) = ((Duration::ZERO, at), Duration::ZERO);
            self.joined = Some(Joined { splice, origin, latest, begun: BTreeSet::new(), is_start: true });
        }
    }

    /// Follows the wall clock, which was set by this many milliseconds: packets that arrive after it are no later than they
    /// would have been.
    pub(crate) fn shift_clock(&mut self, by_ms: i64) {
        if let Some(joined) = &mut self.joined {
            joined.origin.1 = joined.origin.1.saturating_add(by_ms);
        }
    }

    /// Prepares for the packets of another reader. `last_at` is when the last packet of the file arrived.
    pub(crate) fn change_reader(&mut self, last_at: i64, now: i64) -> io::Result<()> {
        if self.length == 0 {
            self.joined = None;
            return Ok(());
        }
        let mut joined = match self.joined.take() {
            Some(joined) => joined,
            None => self.seeded(last_at)?,
        };
        let time = joined.time(now);
        self.out.clear();
        joined.change(time, &mut self.out);
        joined.begun.clear();
        joined.is_start = false;
        self.joined = Some(joined);
        self.write_out()
    }

    /// Reads the end of the file as the splice would have got it.
    fn seeded(&self, last_at: i64) -> io::Result<Joined> {
        let mut splice = Splice::new(SpliceSettings::default());
        let mut clock: Option<(u16, u64)> = None;
        let mut time = Duration::ZERO;
        let mut at = self.length.saturating_sub(SEED_BYTES_MAX - SEED_BYTES_MAX % PACKET as u64);
        let mut block = vec![0; SEED_READ_BYTES];
        while at < self.length {
            let n = usize::try_from(self.length - at).unwrap_or(usize::MAX).min(block.len());
            self.file.read_exact_at(&mut block[..n], at)?;
            at += n as u64;
            for packet in packets(&block[..n]) {
                let packet = Packet::new(packet);
                if !packet.has_sync() {
                    continue;
                }
                if let Some(pcr) = packet.pcr() {
                    let pid = packet.pid();
                    let before = clock.filter(|it| it.0 == pid).map(|it| it.1);
                    let step =
                        before.map(|it| Duration::from_micros(pcr.wrapping_sub(it) / TICKS_PER_MICROSECOND));
                    time += step.filter(|it| *it <= STEP_MAX).unwrap_or_default();
                    if clock.is_none_or(|it| it.0 == pid) {
                        clock = Some((pid, pcr));
                    }
                }
                splice.packet(packet, time, &mut Discard);
            }
        }
        Ok(Joined { splice, origin: (time, last_at), latest: time, begun: BTreeSet::new(), is_start: false })
    }

    /// Appends packets without null packets. After an error the file still ends with a whole packet.
    pub(crate) fn append(&mut self, arrived: &[Arrived], now: i64) -> io::Result<()> {
        match &mut self.joined {
            None => {
                let mut pieces = Vec::with_capacity(arrived.len());
                for Arrived { bytes, .. } in arrived {
                    without_null_packets(bytes, &mut pieces);
                }
                self.write(&pieces)
            }
            Some(joined) => {
                self.out.clear();
                for Arrived { at, bytes } in arrived {
                    let time = joined.time(*at);
                    let mut sink =
                        Sink { out: &mut self.out, begun: &mut joined.begun, is_start: joined.is_start };
                    for packet in packets(bytes) {
                        let packet = Packet::new(packet);
                        if packet.pid() != NULL_PID {
                            joined.splice.packet(packet, time, &mut sink);
                        }
                    }
                }
                let time = joined.time(now);
                if joined.splice.deadline().is_some_and(|it| it <= time) {
                    let mut sink =
                        Sink { out: &mut self.out, begun: &mut joined.begun, is_start: joined.is_start };
                    joined.splice.tick(time, &mut sink);
                }
                self.write_out()
            }
        }
    }

    /// Writes what waits for the end of a frame.
    pub(crate) fn finish(&mut self, now: i64) -> io::Result<()> {
        if let Some(joined) = &mut self.joined {
            self.out.clear();
            let time = joined.time(now);
            joined.change(time, &mut self.out);
            self.write_out()?;
        }
        self.sync()
    }

    /// Waits until the disk has everything.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.synced = self.length;
        Ok(())
    }

    /// Writes the packets of the splice.
    fn write_out(&mut self) -> io::Result<()> {
        let out = std::mem::take(&mut self.out);
        let written = self.write(&[&out]);
        self.out = out;
        written
    }

    /// Appends pieces that consist of whole packets.
    fn write(&mut self, pieces: &[&[u8]]) -> io::Result<()> {
        let (end, written) = write_pieces(&self.file, pieces, self.length);
        let whole = end - end % PACKET as u64;
        let n_written = usize::try_from(whole - self.length).unwrap_or(0);
        if let Some(index) = &mut self.index
            && let Err(cause) = index.packets(first_bytes(pieces, n_written))
        {
            warn!("failed to write the index of a recording: {cause}");
            self.index = None;
        }
        self.length = whole;
        if written.is_err() && whole != end {
            self.file.set_len(whole)?;
        }
        written
    }
}

/// Writes pieces at a position, so that a file that was reopened needs no seek. Returns the position of the first byte that
/// was not written.
fn write_pieces(file: &File, pieces: &[&[u8]], at: u64) -> (u64, io::Result<()>) {
    let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|it| IoSlice::new(it)).collect();
    let (mut slices, mut end) = (&mut slices[..], at);
    // Removes empty pieces from the beginning: without bytes nothing is written.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match pwritev(file, &slices[..slices.len().min(PIECES_MAX)], end) {
            Ok(0) => return (end, Err(io::ErrorKind::WriteZero.into())),
            Ok(n) => {
                end += n as u64;
                IoSlice::advance_slices(&mut slices, n);
            }
            Err(Errno::INTR) => {}
            Err(cause) => return (end, Err(cause.into())),
        }
    }
    (end, Ok(()))
}

/// Returns this many bytes of pieces.
fn first_bytes<'a>(pieces: &[&'a [u8]], mut n: usize) -> impl Iterator<Item = &'a [u8]> {
    pieces.iter().map(move |it| {
        let first = &it[..it.len().min(n)];
        n -= first.len();
        first
    })
}

impl Joined {
    /// Passes on what is complete of the present reader.
    fn change(&mut self, time: Duration, out: &mut Vec<u8>) {
        self.splice.change(time, &mut Sink { out, begun: &mut self.begun, is_start: self.is_start });
    }

    /// Returns the time of the splice at a time of the wall clock. Never goes back.
    fn time(&mut self, at: i64) -> Duration {
        let since = u64::try_from(at.saturating_sub(self.origin.1)).unwrap_or(0);
        self.latest = self.latest.max(self.origin.0 + Duration::from_millis(since));
        self.latest
    }
}

/// Adds the runs of packets between null packets.
fn without_null_packets<'a>(bytes: &'a [u8], runs: &mut Vec<&'a [u8]>) {
    let mut add = |run: &'a [u8]| {
        if !run.is_empty() {
            runs.push(run);
        }
    };
    let mut start = 0;
    for (n, packet) in packets(bytes).enumerate() {
        if Packet::new(packet).pid() == NULL_PID {
            add(&bytes[start..n * PACKET]);
            start = (n + 1) * PACKET;
        }
    }
    let end = bytes.len() - bytes.len() % PACKET;
    add(bytes.get(start..end).unwrap_or_default());
}

/// Returns whether bytes have a packet that is stored.
pub(crate) fn has_data(bytes: &[u8]) -> bool {
    packets(bytes).any(|it| Packet::new(it).pid() != NULL_PID)
}

/// Collects the packets of a splice. The first one of each PID is preceded by a packet that declares the discontinuity of
/// its counter: the end of the file may have packets that the splice had not passed on.
struct Sink<'a> {
    out: &'a mut Vec<u8>,
    begun: &'a mut BTreeSet<u16>,
    /// Nothing precedes the packets in the file.
    is_start: bool,
}

impl PacketSink for Sink<'_> {
    fn push(&mut self, packet: Packet<'_>) {
        let pid = packet.pid();
        if pid == NULL_PID {
            return;
        }
        if self.begun.insert(pid) && !self.is_start {
            let before = if packet.has_payload() { packet.cc().wrapping_sub(1) & 0x0f } else { packet.cc() };
            self.out.extend_from_slice(&discontinuity_packet(pid, before));
        }
        self.out.extend_from_slice(packet.bytes());
    }
}

struct Discard;

impl PacketSink for Discard {
    fn push(&mut self, _packet: Packet<'_>) {}
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn many_pieces_are_written_without_null_packets() {
        let packet = |pid: u16| {
            let mut packet = [0xAA; PACKET];
            packet[..4].copy_from_slice(&[0x47, (pid >> 8) as u8, pid as u8, 0x10]);
            packet
        };
        // More pieces than one write takes, and some that are empty.
        let chunk: Bytes =
            [packet(NULL_PID), packet(256), packet(NULL_PID), packet(257), packet(256)].concat().into();
        let n_chunks = PIECES_MAX + 1;
        let arrived: Vec<_> = (0..n_chunks).map(|_| Arrived { at: 0, bytes: chunk.clone() }).collect();
        let mut written = tempfile::tempfile().unwrap();
        let mut file = RecordingFile::new(written.try_clone().unwrap());
        for arrived in [&arrived[..], &[Arrived { at: 0, bytes: packet(NULL_PID).to_vec().into() }]] {
            file.append(arrived, 0).unwrap();
        }
        let mut bytes = Vec::new();
        written.read_to_end(&mut bytes).unwrap();
        let expected = [packet(256), packet(257), packet(256)].concat().repeat(n_chunks);
        assert!(bytes == expected, "{} of {} bytes", bytes.len(), expected.len());
        assert_eq!(file.length(), expected.len() as u64);
    }

    #[test]
    fn a_clock_that_was_set_leaves_the_clock_of_the_file_alone() {
        const HOUR: i64 = 3_600_000;
        for jump in [HOUR, -HOUR] {
            let mut file = RecordingFile::new(tempfile::tempfile().unwrap());
            file.begin_anywhere(100 * HOUR);
            let time = |file: &mut RecordingFile, at: i64| file.joined.as_mut().unwrap().time(at);
            assert_eq!(time(&mut file, 100 * HOUR + 400), Duration::from_millis(400));
            file.shift_clock(jump);
            assert_eq!(time(&mut file, 100 * HOUR + jump + 800), Duration::from_millis(800));
        }
    }

    #[test]
    fn a_file_that_is_cut_was_written_when_it_was_written_last_and_not_when_it_is_cut() {
        let written_at = 1_900_000_000_000;
        let file = tempfile::tempfile().unwrap();
        let packet = [&[0x47, 1, 0, 0x10][..], &[0xAA; PACKET - 4]].concat();
        file.write_all_at(&[packet.as_slice(), &[0; 1000]].concat(), 0).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_millis(written_at)).unwrap();
        let (reopened, found) = RecordingFile::reopened(file.try_clone().unwrap()).unwrap();
        assert_eq!((reopened.length(), file.metadata().unwrap().len()), (PACKET as u64, PACKET as u64));
        assert_eq!(found, i64::try_from(written_at).unwrap());
    }
}
