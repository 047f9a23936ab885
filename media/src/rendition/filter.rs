//! Leaves elementary streams out of a transport stream.

use crate::ts::packet::{Packet, PacketBytes, PacketSink, discontinuity_packet, remove_payload, set_cc};
use crate::ts::table_reader::TableReader;
use crate::ts::tables::{ElementaryStream, Pmt, StreamKind, Tables, descriptors};

/// Number of packet identifiers.
const PIDS: usize = 1 << 13;

/// The sort of an elementary stream; finer than [`StreamKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamSort {
    /// Video.
    Video,
    /// Audio.
    Audio,
    /// DVB subtitles.
    Subtitles,
    /// Teletext, also with subtitles.
    Teletext,
    /// Everything else, such as cue messages.
    Data,
}

/// The elementary streams to leave out.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LeftOutStreams {
    /// Their packet identifiers.
    pub pids: Vec<u16>,
    /// All streams of these sorts.
    pub sorts: Vec<StreamSort>,
}

impl LeftOutStreams {
    fn contains(&self, pmt: &Pmt, stream: &ElementaryStream) -> bool {
        self.pids.contains(&stream.pid) || self.sorts.contains(&sort_of(pmt, stream))
    }
}

/// Returns the sort of a stream, by its type and its descriptors.
fn sort_of(pmt: &Pmt, stream: &ElementaryStream) -> StreamSort {
    const TELETEXT: u8 = 0x56;
    const VBI_TELETEXT: u8 = 0x46;
    const SUBTITLES: u8 = 0x59;
    match pmt.kind(stream) {
        StreamKind::Video => StreamSort::Video,
        StreamKind::Audio => StreamSort::Audio,
        StreamKind::Other => {
            let sort = |(tag, _)| match tag {
                TELETEXT | VBI_TELETEXT => Some(StreamSort::Teletext),
                SUBTITLES => Some(StreamSort::Subtitles),
                _ => None,
            };
            descriptors(&stream.descriptors).find_map(sort).unwrap_or(StreamSort::Data)
        }
    }
}

/// Leaves elementary streams out, packet by packet, and removes them from the PMT.
///
/// The PMT gets counters of its own. If a stream that is left out carries the clock of the programme, its clock remains,
/// in packets without payload. Packets before the first PMT are passed on, and a programme of which nothing would remain
/// is passed on as it is.
#[derive(Debug)]
pub struct StreamFilter {
    streams: LeftOutStreams,
    tables: TableReader,
    /// One bit per packet identifier that is left out.
    left_out: Box<[u64; PIDS / 64]>,
    /// A stream that is left out, except for its clock.
    clock_pid: Option<u16>,
    pmt_pid: Option<u16>,
    /// The packets of the PMT without the streams that are left out.
    pmt: Vec<PacketBytes>,
    /// The last counter of the PMT that was passed on.
    pmt_cc: Option<u8>,
}

impl StreamFilter {
    /// Creates a filter that has seen no packet.
    pub fn new(streams: LeftOutStreams) -> Self {
        Self {
            streams,
            tables: TableReader::new(),
            left_out: Box::new([0; PIDS / 64]),
            clock_pid: None,
            pmt_pid: None,
            pmt: Vec::new(),
            pmt_cc: None,
        }
    }

    /// Takes the next packet of the stream, and passes on what remains.
    pub fn push(&mut self, packet: Packet<'_>, sink: &mut impl PacketSink) {
        let has_changed = self.tables.packet(packet);
        if has_changed {
            self.adopt_tables();
        }
        let pid = packet.pid();
        if Some(pid) == self.pmt_pid {
            // The end of a changed PMT, or the beginning of one that is repeated.
            if has_changed || packet.pusi() {
                self.push_pmt(packet, sink);
            }
        } else if !self.is_left_out(pid) {
            sink.push(packet);
        } else if Some(pid) == self.clock_pid {
            push_clock(packet, sink);
        }
    }

    fn is_left_out(&self, pid: u16) -> bool {
        let pid = usize::from(pid);
        self.left_out[pid / 64] >> (pid % 64) & 1 == 1
    }

    fn adopt_tables(&mut self) {
        self.left_out.fill(0);
        (self.clock_pid, self.pmt) = (None, Vec::new());
        let pmt_pid = self.tables.tables().map(|it| it.pmt_pid);
        if pmt_pid != self.pmt_pid {
            (self.pmt_pid, self.pmt_cc) = (pmt_pid, None);
        }
        let Some(Tables { pmt, pmt_pid, .. }) = self.tables.tables() else { return };
        let (gone, kept): (Vec<_>, Vec<_>) =
            pmt.streams.iter().cloned().partition(|it| self.streams.contains(pmt, it));
        if kept.is_empty() {
            self.pmt = pmt.packets(*pmt_pid, 0);
            return;
        }
        // A stream may be listed twice.
        let is_kept = |pid: u16| kept.iter().any(|it| it.pid == pid);
        for pid in gone.iter().map(|it| it.pid).filter(|it| !is_kept(*it)) {
            self.left_out[usize::from(pid) / 64] |= 1 << (pid % 64);
            self.clock_pid = self.clock_pid.or((pid == pmt.pcr_pid).then_some(pid));
        }
        self.pmt = Pmt { streams: kept, ..pmt.clone() }.packets(*pmt_pid, 0);
    }

    /// Passes the PMT on. Its counters begin with that of the first packet that it replaces.
    fn push_pmt(&mut self, packet: Packet<'_>, sink: &mut impl PacketSink) {
        for bytes in &mut self.pmt {
            let cc = self.pmt_cc.map_or(packet.cc(), |it| it.wrapping_add(1)) & 0x0F;
            self.pmt_cc = Some(cc);
            set_cc(bytes, cc);
            sink.push(Packet::new(bytes));
        }
    }
}

/// Passes on the clock of a packet, and that its clock breaks, without its payload. Packets without payload do not count,
/// so their counter stands still.
fn push_clock(packet: Packet<'_>, sink: &mut impl PacketSink) {
    let bytes = if packet.pcr().is_some() {
        let mut bytes = *packet.bytes();
        remove_payload(&mut bytes);
        set_cc(&mut bytes, 0);
        bytes
    } else if packet.discontinuity() {
        discontinuity_packet(packet.pid(), 0)
    } else {
        return;
    };
    sink.push(Packet::new(&bytes));
}
