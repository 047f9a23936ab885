//! A generated transport stream that contains its own name.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;

use crate::ts::clock::{PCR_MODULUS, STAMP_MODULUS};
use crate::ts::packet::{NULL_PID, PACKET, PacketBytes, SYNC, set_cc, set_pcr, set_pid};
use crate::ts::tables::{ElementaryStream, Pat, Pmt};

/// The bytes before a label, and the byte after it.
const LABEL_BEGIN: &[u8] = b"test-label:";
const LABEL_END: u8 = b';';
/// Maximum length of a label, which has to fit into the first packet of a picture.
const LABEL_BYTES_MAX: usize = 48;
/// A picture is presented this much after its clock reference: 0.2 s, in ticks of 90 kHz.
const DECODE_DELAY: u64 = 18_000;

/// The properties of a generated stream. It has video (with marked key frames and valid headers), audio,
/// tables, a clock, and its name inside the payload, where [`labels_in`] finds it.
#[derive(Debug, Clone, PartialEq)]
pub struct TsSource {
    /// The name; at most 48 bytes are kept.
    pub label: String,
    /// Programme number.
    pub program: u16,
    /// PID of the PMT.
    pub pmt_pid: u16,
    /// PID and stream type of the video (0x1B H.264, 0x24 H.265); `None` for radio.
    pub video: Option<(u16, u8)>,
    /// PID and stream type of the audio; `None` without audio.
    pub audio: Option<(u16, u8)>,
    /// Time stamp at the start of the programme, in ticks of 90 kHz.
    pub start: u64,
    /// Approximate bit rate per second.
    pub bitrate: u64,
    /// Pictures per second …
    pub frame_rate: u32,
    /// … or per this many seconds, for a stream with a very low rate.
    pub frame_seconds: u32,
    /// Pictures from one key frame to the next.
    pub gop: u64,
    /// Whether key frames have the random access indicator.
    pub is_marked: bool,
    /// Error of its clock in parts per million; negative if it is slow.
    pub clock_error_ppm: i32,
    /// Tables are sent only after this much of the stream.
    pub tables_after: Duration,
    /// Whether every table has a wrong checksum.
    pub has_wrong_checksums: bool,
    /// The part of the programme from this position on has no picture.
    pub picture_until: Option<Duration>,
    /// The clock ends together with the picture.
    pub clock_ends_with_picture: bool,
    /// The part of the programme from this position on has no sound.
    pub sound_until: Option<Duration>,
    /// All pictures of this part of the programme are the same.
    pub still: Range<Duration>,
}

impl TsSource {
    /// Creates a stream with 2 Mbit/s, 25 pictures and one key frame per second.
    pub fn new(label: &str) -> Self {
        Self {
            label: label.chars().take(LABEL_BYTES_MAX / 4).collect(),
            program: 1,
            pmt_pid: 0x1000,
            video: Some((0x100, 0x1B)),
            audio: Some((0x101, 0x0F)),
            start: 90_000,
            bitrate: 2_000_000,
            frame_rate: 25,
            frame_seconds: 1,
            gop: 25,
            is_marked: true,
            clock_error_ppm: 0,
            tables_after: Duration::ZERO,
            has_wrong_checksums: false,
            picture_until: None,
            clock_ends_with_picture: false,
            sound_until: None,
            still: Duration::ZERO..Duration::ZERO,
        }
    }

    /// Returns the clock of a picture since the start of the programme.
    fn ticks(&self, frame: u64) -> u64 {
        let ticks = frame * 90_000 * u64::from(self.frame_seconds) / u64::from(self.frame_rate);
        // A programme of a year has 2^42 ticks.
        ticks.saturating_add_signed(ticks as i64 * i64::from(self.clock_error_ppm) / 1_000_000)
    }

    /// Returns the stream from this position of the programme on.
    pub fn stream(&self, from: Duration) -> TsStream {
        let frame =
            from.as_micros() * u128::from(self.frame_rate) / (1_000_000 * u128::from(self.frame_seconds));
        TsStream { source: self.clone(), first: frame as u64, frame: frame as u64, counters: [0; 4] }
    }

    /// Returns the bytes of a part of the programme.
    pub fn bytes(&self, from: Duration, length: Duration) -> Bytes {
        let mut stream = self.stream(from);
        let mut out = Vec::new();
        while stream.at() < from + length {
            out.extend_from_slice(&stream.frame());
        }
        out.into()
    }
}

/// A [`TsSource`] that is read picture by picture, without an end.
#[derive(Debug, Clone)]
pub struct TsStream {
    source: TsSource,
    /// Numbers of the first picture, and of the next one.
    first: u64,
    frame: u64,
    /// Continuity counters of PAT, PMT, video and audio.
    counters: [u8; 4],
}

impl TsStream {
    /// Returns the position of the next picture in the programme.
    pub fn at(&self) -> Duration {
        self.at_frame(self.frame)
    }

    /// Skips a picture.
    pub fn skip(&mut self) {
        self.frame += 1;
    }

    fn at_frame(&self, frame: u64) -> Duration {
        let source = &self.source;
        let micros = frame * 1_000_000 * u64::from(source.frame_seconds) / u64::from(source.frame_rate);
        Duration::from_micros(micros)
    }

    /// Returns the packets of the next picture and of its audio, with tables before key frames.
    pub fn frame(&mut self) -> Bytes {
        let (frame, source) = (self.frame, self.source.clone());
        let at = self.at();
        let goes_on = |until: Option<Duration>| until.is_none_or(|it| at < it);
        self.frame += 1;
        let is_key = frame.is_multiple_of(source.gop);
        let ticks = source.ticks(frame) + source.start;
        let stamp = (ticks + DECODE_DELAY) % STAMP_MODULUS;
        let pcr = Some(ticks * 300 % PCR_MODULUS);
        let bytes_a_second = source.bitrate / 8 * u64::from(source.frame_seconds);
        let frame_bytes = (bytes_a_second / u64::from(source.frame_rate)) as usize;
        let mut out = Vec::with_capacity(frame_bytes + 4 * PACKET);
        let has_tables = self.at_frame(frame - self.first) >= source.tables_after;
        if has_tables && (is_key || frame.is_multiple_of(5)) {
            self.tables(&mut out);
        }
        if let Some((pid, _)) = source.video.filter(|_| !goes_on(source.picture_until)) {
            if !source.clock_ends_with_picture {
                out.extend_from_slice(&clock_packet(pid, self.counters[2], ticks * 300));
            }
        } else if let Some((pid, kind)) = source.video {
            let content = if source.still.contains(&at) { 0 } else { frame };
            let picture = picture(kind, is_key, &source.label, content, frame_bytes.saturating_sub(300));
            let pes = pes(0xE0, stamp, &picture);
            packets(&mut out, pid, &mut self.counters[2], &pes, pcr, is_key && source.is_marked);
        }
        if let Some((pid, _)) = source.audio.filter(|_| goes_on(source.sound_until)) {
            let sound = if source.video.is_some() { 120 } else { frame_bytes.saturating_sub(60).max(120) };
            let pes = pes(0xC0, stamp, &sound_frame(&source.label, sound));
            let pcr = pcr.filter(|_| source.video.is_none());
            packets(&mut out, pid, &mut self.counters[3], &pes, pcr, false);
        }
        out.into()
    }

    fn tables(&mut self, out: &mut Vec<u8>) {
        let source = &self.source;
        let streams = source.video.into_iter().chain(source.audio);
        let pat = Pat { stream_id: 1, version: 0, programs: vec![(source.program, source.pmt_pid)] };
        let pmt = Pmt {
            program: source.program,
            version: 0,
            pcr_pid: source.video.or(source.audio).map_or(NULL_PID, |(pid, _)| pid),
            program_info: Vec::new(),
            streams: streams
                .map(|(pid, stream_type)| ElementaryStream { stream_type, pid, descriptors: Vec::new() })
                .collect(),
        };
        let n_bytes = [pat.section().len(), pmt.section().len()];
        let mut pat = pat.packets(self.counters[0]);
        self.counters[0] = (self.counters[0] + pat.len() as u8) & 0x0F;
        let mut pmt = pmt.packets(source.pmt_pid, self.counters[1]);
        self.counters[1] = (self.counters[1] + pmt.len() as u8) & 0x0F;
        if source.has_wrong_checksums {
            // The last byte of each section, after the header of the packet and the pointer.
            pat[0][4 + n_bytes[0]] ^= 0x55;
            pmt[0][4 + n_bytes[1]] ^= 0x55;
        }
        for packet in pat.iter().chain(&pmt) {
            out.extend_from_slice(packet);
        }
    }
}

/// Returns the labels in these bytes in order, without consecutive repetitions.
pub fn labels_in(bytes: &[u8]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for at in memchr::memmem::find_iter(bytes, LABEL_BEGIN) {
        let rest = &bytes[at + LABEL_BEGIN.len()..];
        let Some(end) = rest.iter().take(LABEL_BYTES_MAX + 1).position(|it| *it == LABEL_END) else {
            continue;
        };
        let label = String::from_utf8_lossy(&rest[..end]).into_owned();
        if labels.last() != Some(&label) {
            labels.push(label);
        }
    }
    labels
}

fn labelled(label: &str) -> Vec<u8> {
    [LABEL_BEGIN, label.as_bytes(), &[LABEL_END]].concat()
}

/// Creates a picture: the units that a decoder looks for, the label as user data, and stuffing.
fn picture(kind: u8, is_key: bool, label: &str, frame: u64, n_bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(n_bytes);
    let mut unit = |bytes: &[&[u8]]| {
        out.extend_from_slice(&[0, 0, 0, 1]);
        bytes.iter().for_each(|it| out.extend_from_slice(it));
    };
    let label = labelled(label);
    let user_data = [&[5, 16 + label.len() as u8][..], &[0xA5; 16], &label, &[0x80]].concat();
    match kind {
        0x24 => {
            unit(&[&[0x46, 1, 0x50]]);
            if is_key {
                unit(&[&[0x40, 1, 0x0C, 1, 0xFF, 0xFF, 0x80]]);
                unit(&[&[0x42, 1, 1, 1, 0x60, 0x80]]);
                unit(&[&[0x44, 1, 0xC1, 0x80]]);
            }
            unit(&[&[0x4E, 1], &user_data]);
            unit(&[if is_key { &[0x26, 1] } else { &[0x02, 1] }]);
        }
        _ => {
            unit(&[&[0x09, 0xF0]]);
            if is_key {
                unit(&[&[0x67, 0x42, 0xC0, 0x1E, 0xD9, 0x02, 0x80, 0xF6, 0x40]]);
                unit(&[&[0x68, 0xCB, 0x83, 0xCB, 0x20]]);
            }
            unit(&[&[0x06], &user_data]);
            unit(&[if is_key { &[0x65] } else { &[0x41] }]);
        }
    }
    // Never two zero bytes in a row: they could start another unit.
    let stuffing = (frame % 250 + 1) as u8;
    out.resize(n_bytes.max(out.len() + 1), stuffing);
    out
}

/// Creates an AAC frame (ADTS) with the label inside.
fn sound_frame(label: &str, n_bytes: usize) -> Vec<u8> {
    let mut data = labelled(label);
    data.resize(data.len().max(n_bytes).min(8000), 0x21);
    let length = data.len() + 7;
    let mut out = vec![0xFF, 0xF1, 0x4C, 0x80 | (length >> 11) as u8, (length >> 3) as u8];
    out.extend([(length << 5) as u8 | 0x1F, 0xFC]);
    out.extend(data);
    out
}

fn pes(stream_id: u8, stamp: u64, data: &[u8]) -> Vec<u8> {
    // Pictures may exceed the length field; zero means "until the next PES packet".
    let length = if stream_id == 0xE0 { 0 } else { (data.len() + 8) as u16 };
    let mut out = vec![0, 0, 1, stream_id];
    out.extend(length.to_be_bytes());
    out.extend([0x80, 0x80, 5]);
    out.extend([
        0x21 | (stamp >> 29) as u8 & 0x0E,
        (stamp >> 22) as u8,
        0x01 | (stamp >> 14) as u8 & 0xFE,
        (stamp >> 7) as u8,
        0x01 | (stamp << 1) as u8,
    ]);
    out.extend(data);
    out
}

/// Creates a packet with a clock reference and without payload.
fn clock_packet(pid: u16, next_cc: u8, pcr: u64) -> PacketBytes {
    let mut packet = [0xFF; PACKET];
    packet[..6].copy_from_slice(&[SYNC, 0, 0, 0x20, (PACKET - 5) as u8, 0x10]);
    set_pid(&mut packet, pid);
    set_cc(&mut packet, next_cc.wrapping_sub(1) & 0x0F);
    set_pcr(&mut packet, pcr % PCR_MODULUS);
    packet
}

/// Splits a payload into packets.
fn packets(
    out: &mut Vec<u8>,
    pid: u16,
    cc: &mut u8,
    payload: &[u8],
    pcr: Option<u64>,
    is_random_access: bool,
) {
    let mut rest = payload;
    let mut is_first = true;
    while !rest.is_empty() {
        let mut adaptation = Vec::new();
        if is_first && (pcr.is_some() || is_random_access) {
            adaptation.push(if pcr.is_some() { 0x10 } else { 0 } | if is_random_access { 0x40 } else { 0 });
            adaptation.resize(if pcr.is_some() { 7 } else { 1 }, 0);
        }
        let mut has_adaptation = !adaptation.is_empty();
        let room = PACKET - 4 - if has_adaptation { 1 + adaptation.len() } else { 0 };
        let n = rest.len().min(room);
        let missing = room - n;
        if missing > 0 && !has_adaptation {
            has_adaptation = true;
            // The length byte alone fills one byte; a longer field needs its flags.
            if missing > 1 {
                adaptation.push(0);
                adaptation.resize(missing - 1, 0xFF);
            }
        } else if missing > 0 {
            adaptation.resize(adaptation.len() + missing, 0xFF);
        }
        let mut packet = [0; PACKET];
        packet[0] = SYNC;
        packet[1] = if is_first { 0x40 } else { 0 };
        packet[3] = 0x10 | if has_adaptation { 0x20 } else { 0 };
        set_pid(&mut packet, pid);
        set_cc(&mut packet, *cc);
        if has_adaptation {
            packet[4] = adaptation.len() as u8;
            packet[5..5 + adaptation.len()].copy_from_slice(&adaptation);
        }
        packet[PACKET - n..].copy_from_slice(&rest[..n]);
        if is_first && let Some(pcr) = pcr {
            set_pcr(&mut packet, pcr);
        }
        out.extend_from_slice(&packet);
        *cc = (*cc + 1) & 0x0F;
        rest = &rest[n..];
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::packet::{self, Packet};
    use crate::ts::table_reader::TableReader;

    #[test]
    fn a_generated_stream_has_tables_a_clock_key_frames_whole_packets_and_its_name() {
        let source = TsSource::new("one");
        let bytes = source.bytes(Duration::from_secs(3), Duration::from_secs(2));
        assert!(bytes.len().is_multiple_of(PACKET));
        let rate = bytes.len() as f64 * 8.0 / 2.0;
        assert!((1_800_000.0..2_400_000.0).contains(&rate), "{rate}");
        let mut tables = TableReader::new();
        let (mut n_key, mut last_pcr, mut counters) = (0, None, [None; 0x2000]);
        for bytes in packet::packets(&bytes) {
            tables.packet(Packet::new(bytes));
            let packet = Packet::new(bytes);
            assert!(packet.is_valid());
            n_key += usize::from(packet.random_access());
            if let Some(pcr) = packet.pcr() {
                let last = last_pcr.replace(pcr);
                assert!(last.is_none_or(|it| pcr - it == 27_000_000 / 25));
            }
            if let Some(before) = counters[usize::from(packet.pid())].replace(packet.cc()) {
                assert_eq!((before + 1) & 0x0F, packet.cc());
            }
        }
        assert_eq!(n_key, 2);
        assert_eq!(tables.tables().unwrap().pids().collect::<Vec<_>>(), [0x100, 0x101]);
        assert_eq!(labels_in(&bytes), ["one"]);
    }
}
