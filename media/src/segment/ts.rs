//! Makes segments in transport streams.
//!
//! The packets of the programme stay as they are, as references to the chunks of the ring. Null packets, tables of other
//! services and the tables in the stream are left out; each segment begins with a PAT and a PMT instead. A PES packet that
//! began before the first packet of the next segment is completed in its own segment.
//!
//! Where the picture is missing and the other streams go on, their packets wait for the next picture: they belong to the
//! segment if the hole does, and otherwise to none.

use std::mem::take;
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::body::BodyBuilder;
use super::codec;
use super::codec::audio::AudioFormat;
use super::cut::{Cutter, Decision, PictureTimes};
use super::description::SegmentTrack;
use super::window::{Completed, SegmentWindow, StreamFacts};
use crate::ts::clock::{STAMP_HZ, STAMP_MODULUS, Unwrap, distance};
use crate::ts::packet::{PACKET, Packet, packets};
use crate::ts::pes::{pes_length, stamps};
use crate::ts::picture::PictureReader;
use crate::ts::random_access::RandomAccess;
use crate::ts::table_reader::TableReader;
use crate::ts::tables::{StreamKind, Tables};

/// A segment whose last PES packets are not complete after this many packets of the next one ends without them.
const CLOSING_PACKETS_MAX: usize = 4096;
/// Decoding times that are further before their presentation times are wrong.
const REORDER_MAX: u64 = 30 * STAMP_HZ;
/// Maximum number of bytes of a picture that are searched for a parameter set.
const HEAD_BYTES_MAX: usize = 2 << 10;
/// Maximum number of streams whose PES packets are followed.
const STREAMS_MAX: usize = 64;

/// Makes segments from packets.
#[derive(Debug)]
pub(super) struct TsSegmenter {
    window: Arc<SegmentWindow>,
    reader: TableReader,
    access: Option<RandomAccess>,
    cutter: Cutter,
    clock: Unwrap,
    /// The first arrival, for a stream without time stamps.
    first_arrival: Option<Instant>,
    /// The newest presentation time of a picture, as the stream has it.
    newest_picture: Option<u64>,
    has_stamps: bool,
    /// The streams of the segment that is being made.
    streams: Vec<OpenStream>,
    /// The streams of the tables in force, as far as a change of them is a discontinuity.
    signature: Signature,
    /// The signature of the segment that is being made.
    segment_signature: Signature,
    /// The start of a picture whose first packet contains no whole parameter set; empty when none is searched.
    head: Vec<u8>,
    /// A parameter set that was not in the first packet of its picture. It names the codec, and changes no signature.
    late_set: Vec<u8>,
    open: Option<BodyBuilder>,
    /// Packets that wait for a picture, because it is missing.
    late: Late,
    closing: Option<Closing>,
    /// Continuity counters of PAT and PMT.
    counters: [u8; 2],
    picture: Option<PictureReader>,
    target_bytes: usize,
}

/// Audio and video of a programme: stream type, codec and PID, and the parameter set of the video. One stream type has
/// several codecs, which descriptors tell apart.
type Signature = (Vec<(u8, &'static str, u16)>, Vec<u8>);

#[derive(Debug)]
struct OpenStream {
    pid: u16,
    /// The format of audio, until the name of its codec is known.
    audio: Option<AudioFormat>,
    codec: Option<String>,
    /// Bytes that are missing of the current PES packet.
    n_missing: usize,
    /// Whether the current PES packet waits for a picture.
    is_late: bool,
    /// Whether the start of the current PES packet was dropped.
    is_skipped: bool,
}

/// A segment that waits for the ends of its last PES packets.
#[derive(Debug)]
struct Closing {
    body: BodyBuilder,
    pids: Vec<u16>,
    n_packets: usize,
    completed: Completed,
    /// How the segment after it starts, which the window learns when this one is complete.
    next: NextStart,
}

#[derive(Debug)]
struct NextStart {
    arrived: Instant,
    is_independent: bool,
    is_break: bool,
    facts: StreamFacts,
}

/// Packets after the time at which a picture was due.
#[derive(Debug, Default)]
struct Late {
    is_active: bool,
    runs: Vec<Bytes>,
    n_bytes: usize,
}

/// Where a packet belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Open,
    Late,
    Closing,
}

impl TsSegmenter {
    /// Creates a segmenter that has seen no packet.
    pub(super) fn new(window: Arc<SegmentWindow>) -> Self {
        let cutter = Cutter::new(window.settings());
        let target_bytes = window.settings().bytes / 4;
        Self {
            window,
            reader: TableReader::new(),
            access: None,
            cutter,
            clock: Unwrap::stamps(),
            first_arrival: None,
            newest_picture: None,
            has_stamps: false,
            streams: Vec::new(),
            signature: Signature::default(),
            segment_signature: Signature::default(),
            head: Vec::new(),
            late_set: Vec::new(),
            open: None,
            late: Late::default(),
            closing: None,
            counters: [0; 2],
            picture: None,
            target_bytes,
        }
    }

    /// Takes the next whole packets.
    pub(super) fn push(&mut self, bytes: &Bytes, arrived: Instant) {
        let mut run = (0, Place::Nowhere);
        for (index, packet) in packets(bytes).enumerate() {
            let packet = Packet::new(packet);
            let at = index * PACKET;
            if self.is_boundary(packet) {
                self.end_run(bytes, run, at);
                run = (at, Place::Nowhere);
                self.boundary(packet, arrived);
            }
            let place = self.place(packet);
            if place != run.1 {
                self.end_run(bytes, run, at);
                run = (at, place);
            }
            if place == Place::Closing {
                // Its last packet may complete the segment.
                self.end_run(bytes, run, at + PACKET);
                run = (at + PACKET, Place::Nowhere);
            }
            self.close_if_complete();
        }
        self.end_run(bytes, run, bytes.len() / PACKET * PACKET);
    }

    /// Completes the newest segment.
    pub(super) fn finish(&mut self) {
        if let Some(closing) = &mut self.closing {
            closing.pids.clear();
        }
        self.close_if_complete();
        let (Some(body), Some(length)) = (self.open.take(), self.cutter.finish()) else { return };
        let facts = self.facts();
        let completed = self.completed(length, Instant::now(), facts);
        self.window.complete(Completed { body: Some(body.build()), ..completed });
    }

    /// Reads tables, and returns whether a picture begins here, or an audio frame without video.
    fn is_boundary(&mut self, packet: Packet<'_>) -> bool {
        if !packet.is_valid() {
            return false;
        }
        if self.reader.packet(packet) {
            self.adopt_tables();
        }
        let is_start = packet.pusi() && packet.has_payload();
        is_start && self.access.is_some_and(|it| it.pid() == packet.pid())
    }

    fn adopt_tables(&mut self) {
        let Some(tables) = self.reader.tables() else { return };
        self.access = RandomAccess::new(tables);
        self.picture = PictureReader::new(tables);
        let is_played = |kind: StreamKind| kind != StreamKind::Other;
        let streams = tables.pmt.streams.iter().filter(|it| is_played(tables.pmt.kind(it)));
        let streams: Vec<_> =
            streams.map(|it| (it.stream_type, it.codec(), it.pid)).take(STREAMS_MAX).collect();
        if streams != self.signature.0 {
            self.signature.0 = streams;
            self.late_set.clear();
            self.streams.iter_mut().for_each(|it| it.codec = None);
        }
    }

    /// Handles the first packet of a picture.
    fn boundary(&mut self, packet: Packet<'_>, arrived: Instant) {
        let Some(access) = self.access else { return };
        let is_point = access.is_start(packet);
        self.read_parameter_set(packet, access, is_point);
        // A picture without a time, as a second field can be, belongs to the one before.
        let Some(times) = self.times(packet, arrived) else { return };
        let is_change = self.open.is_some() && self.signature != self.segment_signature;
        let is_full = self.open.as_ref().is_some_and(|it| it.n_bytes() >= self.target_bytes);
        let decision = self.cutter.picture(times, is_point, is_change, is_full);
        let is_hole_kept = !matches!(decision, Decision::Cut { is_break: true, .. });
        let late = take(&mut self.late);
        if let Some(body) = self.open.as_mut().filter(|_| is_hole_kept) {
            late.runs.into_iter().for_each(|it| body.push(it));
        }
        for stream in &mut self.streams {
            stream.is_skipped = take(&mut stream.is_late) && !is_hole_kept;
        }
        let (length, is_break) = match decision {
            Decision::Continue => return,
            Decision::Start => (None, false),
            Decision::Cut { length, is_break } => (Some(length), is_break),
        };
        // The one before must be complete: it has waited a whole segment.
        if let Some(closing) = &mut self.closing {
            closing.pids.clear();
        }
        self.close_if_complete();
        let facts = self.facts();
        let next = NextStart { arrived, is_independent: is_point, is_break, facts };
        let pids: Vec<u16> = self.streams.iter().filter(|it| it.n_missing > 0).map(|it| it.pid).collect();
        let pids = pids.into_iter().filter(|it| *it != access.pid()).collect();
        match (self.open.take(), length) {
            (Some(body), Some(length)) => {
                // A master playlist can be written as soon as the first segment is complete.
                let completed = self.completed(length, arrived, next.facts.clone());
                self.closing = Some(Closing { body, pids, n_packets: 0, completed, next });
                self.close_if_complete();
            }
            _ => self.start_next(next),
        }
        self.segment_signature = self.signature.clone();
        self.start_body();
    }

    /// Reads the parameter set in the first packet of a picture, or begins to search the next ones for it.
    fn read_parameter_set(&mut self, packet: Packet<'_>, access: RandomAccess, is_point: bool) {
        self.head.clear();
        let payload = if packet.is_scrambled() { return } else { packet.payload() };
        if is_point && let Some(set) = codec::parameter_set(payload, access) {
            self.signature.1 = set;
        } else if self.signature.1.is_empty() && self.late_set.is_empty() && codec::is_named_by_set(access) {
            self.head.extend_from_slice(payload);
        }
    }

    /// Searches a later packet of a picture for the parameter set.
    fn search_parameter_set(&mut self, packet: Packet<'_>) {
        let Some(access) = self.access.filter(|it| it.pid() == packet.pid()) else { return };
        self.head.extend_from_slice(packet.payload());
        self.late_set = codec::parameter_set(&self.head, access).unwrap_or_default();
        if !self.late_set.is_empty() || self.head.len() >= HEAD_BYTES_MAX {
            self.head.clear();
        }
    }

    /// Returns the times of a picture, unwrapped; those of its arrival in a stream without time stamps.
    fn times(&mut self, packet: Packet<'_>, arrived: Instant) -> Option<PictureTimes> {
        let stamps = stamps(packet);
        if let Some(stamp) = stamps.pts {
            self.has_stamps = true;
            self.newest_picture = Some(stamp);
            let shown = self.clock.unwrap(stamp);
            let reorder = stamps.dts.and_then(|it| u64::try_from(distance(it, stamp, STAMP_MODULUS)).ok());
            let reorder = reorder.filter(|it| *it <= REORDER_MAX).unwrap_or(0);
            return Some(PictureTimes { shown, decoded: shown.saturating_sub(reorder) });
        }
        let first = *self.first_arrival.get_or_insert(arrived);
        let millis = arrived.saturating_duration_since(first).as_millis() as u64;
        let time = millis * (STAMP_HZ / 1000);
        (!self.has_stamps).then_some(PictureTimes { shown: time, decoded: time })
    }

    fn completed(&mut self, length: u64, arrived: Instant, facts: StreamFacts) -> Completed {
        Completed {
            length,
            body: None,
            arrived,
            target_duration: self.cutter.target_duration().unwrap_or(1),
            part_target: self.window.settings().part_target,
            frame_rate: self.cutter.take_rate().filter(|_| self.picture.is_some()),
            facts: Some(facts),
        }
    }

    /// Begins the bytes of a segment with its tables.
    fn start_body(&mut self) {
        let mut body = BodyBuilder::default();
        if let Some(tables) = self.reader.tables() {
            let pat = tables.pat.packets(self.counters[0]);
            let pmt = tables.pmt.packets(tables.pmt_pid, self.counters[1]);
            self.counters[0] = self.counters[0].wrapping_add(pat.len() as u8) & 0x0F;
            self.counters[1] = self.counters[1].wrapping_add(pmt.len() as u8) & 0x0F;
            pat.iter().chain(&pmt).for_each(|it| body.push(Bytes::copy_from_slice(it)));
            let known = take(&mut self.streams);
            let n_missing = |pid: u16| known.iter().find(|it| it.pid == pid).map_or(0, |it| it.n_missing);
            let audio = |pid: u16| {
                let stream = tables.pmt.streams.iter().find(|it| it.pid == pid);
                stream
                    .filter(|it| tables.pmt.kind(it) == StreamKind::Audio)
                    .and_then(AudioFormat::from_stream)
            };
            // The codec stays known, if no frame begins a PES packet in this segment.
            let name = |pid: u16| known.iter().find(|it| it.pid == pid).and_then(|it| it.codec.clone());
            let is_skipped = |pid: u16| known.iter().any(|it| it.pid == pid && it.is_skipped);
            let open = |pid: u16| OpenStream {
                pid,
                audio: audio(pid),
                codec: name(pid),
                n_missing: n_missing(pid),
                is_late: false,
                is_skipped: is_skipped(pid),
            };
            self.streams = tables.pids().take(STREAMS_MAX).map(open).collect();
        }
        self.open = Some(body);
    }

    /// Returns where a packet belongs, and counts it.
    fn place(&mut self, packet: Packet<'_>) -> Place {
        let pid = packet.pid();
        if let Some(picture) = &mut self.picture {
            picture.packet(packet);
        }
        if !self.head.is_empty() && !packet.pusi() {
            self.search_parameter_set(packet);
        }
        let Some(stream) = self.streams.iter_mut().find(|it| it.pid == pid) else { return Place::Nowhere };
        if !packet.is_valid() {
            return Place::Nowhere;
        }
        let was_open = stream.n_missing > 0;
        if packet.pusi() {
            // The cutter says what a hole is: slides can be seconds apart.
            if let Some(newest) =
                self.newest_picture.filter(|_| self.picture.is_some() && !self.late.is_active)
                && let Some(stamp) = stamps(packet).pts
                && let Ok(ahead) = u64::try_from(distance(newest, stamp, STAMP_MODULUS))
            {
                self.late.is_active = self.cutter.is_hole(ahead);
            }
            let is_picture = self.access.is_some_and(|it| it.pid() == pid);
            (stream.is_late, stream.is_skipped) = (self.late.is_active && !is_picture, false);
            if let Some(format) = stream.audio
                && let Some(codec) = codec::audio_name(packet, format)
            {
                (stream.audio, stream.codec) = (None, Some(codec));
            }
            let length = if packet.is_scrambled() { None } else { pes_length(packet.payload()) };
            stream.n_missing = length.unwrap_or(0).saturating_sub(packet.payload().len());
        } else {
            stream.n_missing = stream.n_missing.saturating_sub(packet.payload().len());
        }
        let is_done = stream.n_missing == 0;
        let (is_late, is_skipped) = (stream.is_late, stream.is_skipped);
        if let Some(closing) = &mut self.closing {
            closing.n_packets += 1;
            if let Some(index) = closing.pids.iter().position(|it| *it == pid) {
                if packet.pusi() || !was_open || is_done {
                    closing.pids.swap_remove(index);
                }
                if !packet.pusi() && was_open {
                    return Place::Closing;
                }
            }
        }
        match self.open {
            Some(_) if is_late => Place::Late,
            Some(_) if !is_skipped => Place::Open,
            _ => Place::Nowhere,
        }
    }

    fn end_run(&mut self, bytes: &Bytes, (from, place): (usize, Place), to: usize) {
        if from >= to {
            return;
        }
        let body = match place {
            Place::Late => {
                self.late.n_bytes += to - from;
                if self.late.n_bytes <= self.target_bytes {
                    self.late.runs.push(bytes.slice(from..to));
                }
                None
            }
            Place::Nowhere => None,
            Place::Open => self.open.as_mut(),
            Place::Closing => self.closing.as_mut().map(|it| &mut it.body),
        };
        if let Some(body) = body {
            body.push(bytes.slice(from..to));
        }
    }

    fn close_if_complete(&mut self) {
        let is_complete = |it: &mut Closing| it.pids.is_empty() || it.n_packets > CLOSING_PACKETS_MAX;
        let Some(Closing { body, completed, next, .. }) = self.closing.take_if(is_complete) else { return };
        self.window.complete(Completed { body: Some(body.build()), ..completed });
        self.start_next(next);
    }

    fn start_next(&mut self, next: NextStart) {
        self.window.start(next.arrived, next.is_independent, next.is_break, &next.facts);
    }

    fn facts(&mut self) -> StreamFacts {
        let Some(tables) = self.reader.tables() else { return StreamFacts::default() };
        let set = if self.signature.1.is_empty() { &self.late_set } else { &self.signature.1 };
        let tracks = tracks(tables, set, &self.streams);
        StreamFacts {
            tracks,
            left_out: Vec::new(),
            picture: self.picture.as_mut().and_then(PictureReader::size),
        }
    }
}

/// Describes audio and video.
fn tracks(tables: &Tables, parameter_set: &[u8], known: &[OpenStream]) -> Vec<SegmentTrack> {
    let streams = tables.pmt.streams.iter().filter_map(|stream| {
        let kind = tables.pmt.kind(stream);
        let is_video = kind == StreamKind::Video;
        let known = known.iter().find(|it| it.pid == stream.pid).and_then(|it| it.codec.clone());
        let codec = known.or_else(|| codec::codec_name(stream, if is_video { parameter_set } else { &[] }));
        (kind != StreamKind::Other).then(|| SegmentTrack {
            pid: stream.pid,
            name: stream.codec(),
            codec,
            is_video,
        })
    });
    streams.take(STREAMS_MAX).collect()
}
