//! Generated sources: the packets that a provider could send, and their arrival times.
use std::time::Duration;

use crate::ts::packet::{PacketBytes, set_cc};
use crate::ts::tables::{ElementaryStream, Pat, Pmt};

pub(crate) const H264: u8 = 0x1B;
pub(crate) const MPEG2: u8 = 0x02;
pub(crate) const HEVC: u8 = 0x24;
pub(crate) const AAC: u8 = 0x0F;
pub(crate) const MP2: u8 = 0x04;
pub(crate) const AC3: u8 = 0x81;

/// The PID with the PCR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// That of the first stream.
    Stream,
    /// A separate PID.
    Separate,
    /// No PCR.
    Absent,
}

/// A source. Programme time is measured in milliseconds from its first packet.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    /// Contained in every PES packet, to identify the source in the output.
    pub(crate) id: u8,
    pub(crate) video: Option<u8>,
    pub(crate) audio: Vec<u8>,
    /// PID of the first stream; the others follow in order.
    pub(crate) first_pid: u16,
    pub(crate) pmt_pid: u16,
    pub(crate) program: u16,
    pub(crate) clock: Clock,
    /// The 33-bit clock at programme time zero.
    pub(crate) start: u64,
    /// Frames between two key frames.
    pub(crate) gop: u32,
    /// B-frames between two others.
    pub(crate) b_frames: u32,
    /// Decoding time less clock, ms.
    pub(crate) delay_ms: i64,
    /// Lead of the audio over the video in the multiplex, ms.
    pub(crate) audio_lead_ms: i64,
    /// Whether the encoder sets the random access indicator.
    pub(crate) is_flagged: bool,
    /// Initial continuity counter of every PID.
    pub(crate) counter: u8,
    /// Every n-th packet is sent twice; 0 for none.
    pub(crate) duplicate_every: usize,
    /// Whether the stream contains null packets.
    pub(crate) has_nulls: bool,
    /// The packets of a frame are sent over this time, between those of other streams; at most 20 ms.
    pub(crate) spread_ms: u64,
}

impl Default for Spec {
    fn default() -> Self {
        Spec {
            id: 0,
            video: Some(H264),
            audio: vec![AAC],
            first_pid: 0x100,
            pmt_pid: 0x1000,
            program: 1,
            clock: Clock::Stream,
            start: 900_000,
            gop: 12,
            b_frames: 0,
            delay_ms: 300,
            audio_lead_ms: 0,
            is_flagged: true,
            counter: 3,
            duplicate_every: 0,
            has_nulls: false,
            spread_ms: 0,
        }
    }
}

/// Bytes of a key frame.
pub(crate) const KEY_BYTES: usize = 1_200;
/// Bytes of any other picture.
pub(crate) const PICTURE_BYTES: usize = 400;
/// Bytes of an audio frame.
pub(crate) const AUDIO_BYTES: usize = 250;
/// Duration of a video frame in milliseconds.
const FRAME_MS: u64 = 40;
/// Duration of an audio frame in milliseconds.
const AUDIO_MS: u64 = 24;
/// Interval of the tables in milliseconds.
const TABLES_MS: u64 = 100;

impl Spec {
    pub(crate) fn pids(&self) -> Vec<(u8, u16)> {
        self.video.iter().chain(&self.audio).copied().zip(self.first_pid..).collect()
    }

    pub(crate) fn pcr_pid(&self) -> u16 {
        match self.clock {
            Clock::Stream => self.first_pid,
            Clock::Separate => self.first_pid + 40,
            Clock::Absent => 0x1FFF,
        }
    }

    pub(crate) fn tables(&self) -> (Pat, Pmt) {
        let streams = self.pids().into_iter().map(|(stream_type, pid)| ElementaryStream {
            stream_type,
            pid,
            descriptors: vec![0x52, 1, self.id],
        });
        (
            Pat {
                stream_id: 7 + u16::from(self.id),
                version: 5,
                programs: vec![(self.program, self.pmt_pid)],
            },
            Pmt {
                program: self.program,
                version: 9,
                pcr_pid: self.pcr_pid(),
                program_info: vec![],
                streams: streams.collect(),
            },
        )
    }

    /// Returns the packets from `from_ms` on for `length_ms`, each with its programme time in ms.
    pub(crate) fn packets(&self, from_ms: u64, length_ms: u64) -> Vec<(u64, PacketBytes)> {
        let mut writer = Writer { spec: self, counters: Default::default(), out: Vec::new() };
        for ms in from_ms..from_ms + length_ms {
            if (ms - from_ms).is_multiple_of(TABLES_MS) {
                writer.tables(ms);
            }
            if self.clock == Clock::Separate && ms.is_multiple_of(30) {
                writer.clock(ms);
            }
            if ms.is_multiple_of(FRAME_MS)
                && let Some(kind) = self.video
            {
                writer.picture(ms, kind);
            }
            if ms.is_multiple_of(AUDIO_MS) {
                writer.audio(ms);
            }
            if self.has_nulls && ms.is_multiple_of(10) {
                writer.out.push((ms, crate::ts::packet::null_packet()));
            }
        }
        writer.out.sort_by_key(|(ms, _)| *ms);
        writer.out
    }

    /// Returns the packets with their arrival times if the source connects at `at`, sends `burst_ms` of past
    /// data within 20 ms, and continues at programme rate until `end`.
    pub(crate) fn arrivals(
        &self,
        at: Duration,
        burst_ms: u64,
        end: Duration,
    ) -> Vec<(Duration, PacketBytes)> {
        self.arrivals_cut(at, burst_ms, end, 0)
    }

    /// Like [`Spec::arrivals`], but the next `n_more` packets arrive at `end`, so that the source ends in the middle of
    /// a frame.
    pub(crate) fn arrivals_cut(
        &self,
        at: Duration,
        burst_ms: u64,
        end: Duration,
        n_more: usize,
    ) -> Vec<(Duration, PacketBytes)> {
        let length = burst_ms + (end.saturating_sub(at)).as_millis() as u64 + 200;
        let arrival = |ms: u64| match ms.checked_sub(burst_ms) {
            Some(after) => at + Duration::from_millis(20 + after),
            None => at + Duration::from_micros(ms * 20_000 / burst_ms.max(1)),
        };
        let mut packets: Vec<_> =
            self.packets(0, length).into_iter().map(|(ms, packet)| (arrival(ms), packet)).collect();
        let n_before = packets.partition_point(|(arrival, _)| *arrival < end);
        packets.truncate(n_before + n_more);
        packets[n_before..].iter_mut().for_each(|(arrival, _)| *arrival = end);
        packets
    }
}

struct Writer<'a> {
    spec: &'a Spec,
    counters: std::collections::HashMap<u16, u8>,
    out: Vec<(u64, PacketBytes)>,
}

impl Writer<'_> {
    fn counter(&mut self, pid: u16) -> u8 {
        let counter = self.counters.entry(pid).or_insert(self.spec.counter);
        *counter = (*counter + 1) & 0x0F;
        *counter
    }

    fn tables(&mut self, ms: u64) {
        let (pat, pmt) = self.spec.tables();
        for mut packet in pat.packets(0).into_iter().chain(pmt.packets(self.spec.pmt_pid, 0)) {
            let pid = u16::from_be_bytes([packet[1] & 0x1F, packet[2]]);
            set_cc(&mut packet, self.counter(pid));
            self.out.push((ms, packet));
        }
    }

    fn stamp(&self, ms: i64) -> u64 {
        (self.spec.start as i64 + ms * 90).rem_euclid(1 << 33) as u64
    }

    fn clock(&mut self, ms: u64) {
        let pid = self.spec.pcr_pid();
        let counter = self.counters.get(&pid).copied().unwrap_or(self.spec.counter);
        let mut packet = [0xFF; 188];
        packet[..6].copy_from_slice(&[0x47, (pid >> 8) as u8, pid as u8, 0x20 | counter, 183, 0x10]);
        packet[6..12].copy_from_slice(&pcr_field(self.stamp(ms as i64)));
        self.out.push((ms, packet));
    }

    fn picture(&mut self, ms: u64, kind: u8) {
        let spec = self.spec;
        let frame = ms / FRAME_MS;
        let in_gop = frame % u64::from(spec.gop);
        let is_key = in_gop == 0;
        let decode = ms as i64 + spec.delay_ms;
        let ahead = if spec.b_frames == 0 || is_key {
            i64::from(spec.b_frames != 0)
        } else {
            let group = u64::from(spec.b_frames) + 1;
            if (in_gop - 1).is_multiple_of(group) { i64::from(spec.b_frames) + 1 } else { 0 }
        };
        let presentation = decode + ahead * FRAME_MS as i64;
        let mut body = self.marker(is_key, frame);
        let unit: &[u8] = match (kind, is_key) {
            (MPEG2, true) => &[0, 0, 1, 0xB3, 9, 9, 0, 0, 1, 0, 9],
            (MPEG2, false) => &[0, 0, 1, 0, 9],
            (HEVC, true) => &[0, 0, 1, 0x42, 1, 9, 0, 0, 1, 0x26, 1],
            (HEVC, false) => &[0, 0, 1, 2, 1],
            (_, true) => &[0, 0, 0, 1, 9, 0xF0, 0, 0, 1, 0x67, 9, 0, 0, 1, 0x65],
            (_, false) => &[0, 0, 0, 1, 9, 0xF0, 0, 0, 1, 0x41],
        };
        body.extend(unit);
        body.resize(if is_key { KEY_BYTES } else { PICTURE_BYTES }, 0xAA);
        let pes = self.pes(0xE0, presentation, Some(decode).filter(|_| presentation != decode), &body, false);
        let clock = (spec.clock == Clock::Stream).then(|| self.stamp(ms as i64));
        self.send(ms, spec.first_pid, &pes, clock, is_key && spec.is_flagged);
    }

    fn audio(&mut self, ms: u64) {
        let spec = self.spec;
        for (nth, (kind, pid)) in spec.pids().into_iter().skip(usize::from(spec.video.is_some())).enumerate()
        {
            let mut body = self.marker(true, ms / AUDIO_MS);
            body.resize(AUDIO_BYTES, 0xBB);
            let presentation = ms as i64 + spec.delay_ms + spec.audio_lead_ms;
            let pes = self.pes(if kind == AC3 { 0xBD } else { 0xC0 }, presentation, None, &body, true);
            let has_clock = spec.clock == Clock::Stream && spec.video.is_none() && nth == 0;
            self.send(ms, pid, &pes, has_clock.then(|| self.stamp(ms as i64)), false);
        }
    }

    /// Returns the source id and the frame number, without a byte below 0x80, so that it is never taken for a
    /// start code.
    fn marker(&self, is_key: bool, number: u64) -> Vec<u8> {
        let digits = (0..4).rev().map(|digit| 0x80 | (number >> (7 * digit)) as u8 & 0x7F);
        [0xB5, 0xD7, 0x80 | self.spec.id, 0x80 | u8::from(is_key)].into_iter().chain(digits).collect()
    }

    fn pes(
        &self,
        stream_id: u8,
        presentation: i64,
        decode: Option<i64>,
        body: &[u8],
        has_length: bool,
    ) -> Vec<u8> {
        let header = if decode.is_some() { 10 } else { 5 };
        let length = if has_length { body.len() + 3 + header } else { 0 } as u16;
        let mut pes = vec![0, 0, 1, stream_id];
        pes.extend(length.to_be_bytes());
        pes.extend([0x80, if decode.is_some() { 0xC0 } else { 0x80 }, header as u8]);
        pes.extend(stamp_field(if decode.is_some() { 3 } else { 2 }, self.stamp(presentation)));
        if let Some(decode) = decode {
            pes.extend(stamp_field(1, self.stamp(decode)));
        }
        pes.extend(body);
        pes
    }

    fn send(&mut self, ms: u64, pid: u16, pes: &[u8], clock: Option<u64>, is_access: bool) {
        let (begin, length) = (ms, pes.len() as u64);
        let mut rest = pes;
        let mut is_start = true;
        while !rest.is_empty() {
            let mut field = Vec::new();
            if is_start && (clock.is_some() || is_access) {
                field.push(if is_access { 0x40 } else { 0 } | if clock.is_some() { 0x10 } else { 0 });
                field.extend(clock.map(pcr_field).into_iter().flatten());
            }
            let mut room = 184 - if field.is_empty() { 0 } else { field.len() + 1 };
            if rest.len() < room {
                let stuffing = room - rest.len();
                let has_field = !field.is_empty();
                if !has_field && stuffing >= 2 {
                    field.push(0);
                }
                field.resize(field.len() + stuffing - if has_field { 0 } else { stuffing.min(2) }, 0xFF);
                room = rest.len();
            }
            let ms = begin + self.spec.spread_ms * (length - rest.len() as u64) / length;
            let has_field = room < 184;
            let counter = self.counter(pid);
            let mut packet = vec![0x47, (pid >> 8) as u8 | if is_start { 0x40 } else { 0 }, pid as u8];
            packet.push(if has_field { 0x30 } else { 0x10 } | counter);
            if has_field {
                packet.push(field.len() as u8);
                packet.extend(field);
            }
            packet.extend(&rest[..room]);
            rest = &rest[room..];
            let packet: PacketBytes = packet.try_into().unwrap();
            self.out.push((ms, packet));
            if self.spec.duplicate_every > 0 && self.out.len().is_multiple_of(self.spec.duplicate_every) {
                self.out.push((ms, packet));
            }
            is_start = false;
        }
    }
}

fn pcr_field(base: u64) -> [u8; 6] {
    let field = (base << 15 | 0x7E00 | 150).to_be_bytes();
    [field[2], field[3], field[4], field[5], field[6], field[7]]
}

fn stamp_field(prefix: u8, stamp: u64) -> [u8; 5] {
    [
        prefix << 4 | (stamp >> 29) as u8 & 0x0E | 1,
        (stamp >> 22) as u8,
        (stamp >> 14) as u8 | 1,
        (stamp >> 7) as u8,
        (stamp << 1) as u8 | 1,
    ]
}
