//! The file of a recording: whole packets of one transport stream, without null packets.
//!
//! The packets of the first reader of the live channel are stored as they are. A later reader may belong to another run of
//! the channel, whose clocks and counters differ; the same holds after a restart. So from the second reader on, packets pass
//! a [`Splice`] that has read the end of the file first, and continues its clocks.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use media::splice::{Splice, SpliceSettings};
use media::ts::packet::{NULL_PID, PACKET, Packet, PacketSink, discontinuity_packet, packets};
use tracing::warn;

use super::index::IndexWriter;

/// How much of the end of a file is read to continue it, in bytes: some seconds of any stream.
const SEED_BYTES_MAX: u64 = 16 << 20;
/// Bytes that are read at a time for that.
const SEED_READ_BYTES: usize = 256 * PACKET;
/// Ticks of a programme clock per microsecond.
const TICKS_PER_MICROSECOND: u64 = 27;
/// Maximum step of the programme clock that counts as time. A greater one is a jump of the clock.
const STEP_MAX: Duration = Duration::from_secs(10);

/// An open file of a recording. All methods block.
pub(super) struct RecordingFile {
    file: File,
    /// A multiple of the size of a packet.
    length: u64,
    /// How many bytes are on the disk for sure.
    synced: u64,
    /// Set from the second reader on.
    joined: Option<Joined>,
    /// Packets to write, reused for each batch.
    out: Vec<u8>,
    /// `None` if it cannot be written: a recording needs no index.
    index: Option<IndexWriter>,
}

/// The join of another reader's packets to the file.
struct Joined {
    splice: Splice,
    /// The time of the splice at the time of the wall clock in milliseconds.
    origin: (Duration, i64),
    latest: Duration,
    /// PIDs that had a packet since the change of the reader.
    begun: BTreeSet<u16>,
}

/// Packets that arrived at this time, in milliseconds since 1970.
pub(super) struct Arrived {
    pub(super) at: i64,
    pub(super) bytes: Bytes,
}

impl RecordingFile {
    pub(super) fn new(file: File) -> Self {
        Self { file, length: 0, synced: 0, joined: None, out: Vec::new(), index: None }
    }

    /// Writes an index, too.
    pub(super) fn with_index(self, index: Option<IndexWriter>) -> Self {
        Self { index, ..self }
    }

    /// Continues a file that an earlier process has written. Cuts it to whole packets, and what is none off its end: after a
    /// power cut a file can end with bytes that were never written.
    pub(super) fn reopened(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
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
        Ok(Self { length: whole, ..Self::new(file) })
    }

    /// Returns how many bytes a power cut cannot take. 0 after a file was opened.
    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// Returns whether packets of another reader follow, whose times matter.
    pub(super) fn is_joined(&self) -> bool {
        self.joined.is_some()
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns when the file was written last, in milliseconds since 1970.
    pub(super) fn written_at(&self) -> io::Result<i64> {
        let modified = self.file.metadata()?.modified()?;
        let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// Prepares for the packets of another reader. `last_at` is when the last packet of the file arrived.
    pub(super) fn change_reader(&mut self, last_at: i64, now: i64) -> io::Result<()> {
        if self.length == 0 {
            return Ok(());
        }
        let mut joined = match self.joined.take() {
            Some(joined) => joined,
            None => self.seeded(last_at)?,
        };
        let time = joined.time(now);
        self.out.clear();
        joined.splice.change(time, &mut Sink { out: &mut self.out, begun: &mut joined.begun });
        joined.begun.clear();
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
        Ok(Joined { splice, origin: (time, last_at), latest: time, begun: BTreeSet::new() })
    }

    /// Appends packets without null packets. After an error the file still ends with a whole packet.
    pub(super) fn append(&mut self, arrived: &[Arrived], now: i64) -> io::Result<()> {
        self.out.clear();
        match &mut self.joined {
            None => {
                for Arrived { bytes, .. } in arrived {
                    without_null_packets(bytes, &mut self.out);
                }
            }
            Some(joined) => {
                for Arrived { at, bytes } in arrived {
                    let time = joined.time(*at);
                    let mut sink = Sink { out: &mut self.out, begun: &mut joined.begun };
                    for packet in packets(bytes) {
                        let packet = Packet::new(packet);
                        if packet.pid() != NULL_PID {
                            joined.splice.packet(packet, time, &mut sink);
                        }
                    }
                }
                let time = joined.time(now);
                if joined.splice.deadline().is_some_and(|it| it <= time) {
                    let mut sink = Sink { out: &mut self.out, begun: &mut joined.begun };
                    joined.splice.tick(time, &mut sink);
                }
            }
        }
        self.write_out()
    }

    /// Writes what waits for the end of a frame.
    pub(super) fn finish(&mut self, now: i64) -> io::Result<()> {
        if let Some(joined) = &mut self.joined {
            self.out.clear();
            let time = joined.time(now);
            joined.splice.change(time, &mut Sink { out: &mut self.out, begun: &mut joined.begun });
            self.write_out()?;
        }
        self.sync()
    }

    /// Waits until the disk has everything.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.synced = self.length;
        Ok(())
    }

    fn write_out(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let file = &mut PositionedFile { file: &self.file, at: self.length };
        let written = file.write_all(&self.out);
        let end = file.at;
        let whole = end - end % PACKET as u64;
        let n_written = usize::try_from(whole - self.length).unwrap_or(0);
        if let Some(index) = &mut self.index
            && let Err(cause) = index.packets(&self.out[..n_written])
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

/// Writes at a position, so that a file that was reopened needs no seek.
struct PositionedFile<'a> {
    file: &'a File,
    at: u64,
}

impl Write for PositionedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write_at(bytes, self.at)?;
        self.at += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Joined {
    /// Returns the time of the splice at a time of the wall clock. Never goes back.
    fn time(&mut self, at: i64) -> Duration {
        let since = u64::try_from(at.saturating_sub(self.origin.1)).unwrap_or(0);
        self.latest = self.latest.max(self.origin.0 + Duration::from_millis(since));
        self.latest
    }
}

/// Copies all packets except null packets, in runs.
fn without_null_packets(bytes: &[u8], out: &mut Vec<u8>) {
    let mut start = 0;
    for (n, packet) in packets(bytes).enumerate() {
        if Packet::new(packet).pid() == NULL_PID {
            out.extend_from_slice(&bytes[start..n * PACKET]);
            start = (n + 1) * PACKET;
        }
    }
    let end = bytes.len() - bytes.len() % PACKET;
    out.extend_from_slice(bytes.get(start..end).unwrap_or_default());
}

/// Returns whether bytes have a packet that is stored.
pub(super) fn has_data(bytes: &[u8]) -> bool {
    packets(bytes).any(|it| Packet::new(it).pid() != NULL_PID)
}

/// Collects the packets of a splice. The first one of each PID is preceded by a packet that declares the discontinuity of
/// its counter: the end of the file may have packets that the splice had not passed on.
struct Sink<'a> {
    out: &'a mut Vec<u8>,
    begun: &'a mut BTreeSet<u16>,
}

impl PacketSink for Sink<'_> {
    fn push(&mut self, packet: Packet<'_>) {
        let pid = packet.pid();
        if pid == NULL_PID {
            return;
        }
        if self.begun.insert(pid) {
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
