//! A strict checker of transport streams that reports what a demanding player would reject.
//!
//! It shares no code with the gateway, so that it does not repeat the gateway's mistakes.

use std::collections::{BTreeMap, BTreeSet};

use super::signal::{Mark, label_of, mark_of};

pub const PACKET: usize = 188;
const NULL_PID: u16 = 0x1FFF;
/// Period of the 33-bit 90 kHz clock.
const TURN_90K: i64 = 1 << 33;
/// Sections of SCTE 35.
const CUE_MESSAGES: u8 = 0x86;
const VIDEO_TYPES: [u8; 4] = [0x01, 0x02, 0x1B, 0x24];

/// State of one packet identifier.
#[derive(Debug, Default, Clone)]
struct Pid {
    counter: Option<u8>,
    last_packet: Vec<u8>,
    repeated: bool,
    pcr: Option<Clock>,
    decode_time: Option<Clock>,
    /// The PES packet that is being received, with its bytes so far; `None` after a declared discontinuity.
    unit: Option<(Mark, usize)>,
    /// Programme time when its last unit started, and the longest time between two of them, 90 kHz.
    last_unit: Option<i64>,
    longest_pause: i64,
}

/// A 33-bit 90 kHz time, unwrapped relative to the previous one.
#[derive(Debug, Clone, Copy)]
struct Clock {
    raw: i64,
    unwrapped: i64,
}

impl Clock {
    fn next(before: Option<Clock>, raw: i64) -> Clock {
        let Some(before) = before else { return Clock { raw, unwrapped: raw } };
        let mut step = (raw - before.raw).rem_euclid(TURN_90K);
        if step > TURN_90K / 2 {
            step -= TURN_90K;
        }
        Clock { raw, unwrapped: before.unwrapped + step }
    }
}

/// A forward jump of the programme clock that is longer than a conformant source would make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Position in the stream, in packets.
    pub at_packet: u64,
    pub seconds: f64,
    pub declared: bool,
}

/// Checks bytes as they arrive; every complaint starts with the packet number.
#[derive(Debug, Default)]
pub struct Checker {
    carry: Vec<u8>,
    pids: BTreeMap<u16, Pid>,
    pat: Section,
    pmt: Section,
    pmt_pid: Option<u16>,
    pcr_pid: Option<u16>,
    streams: BTreeMap<u16, u8>,
    video_began: bool,
    null_run: u64,
    first_pcr: Option<i64>,
    last_pcr: Option<i64>,
    /// Number of complete packets.
    pub packets: u64,
    pub null_packets: u64,
    /// Null packets that the gateway inserts to bridge a gap; the null packets of a provider look different.
    pub filler_packets: u64,
    /// Packets of elementary streams in the current PMT.
    pub payload_packets: u64,
    /// Longest run of null packets in the first mebibyte, in packets.
    pub early_null_run: u64,
    /// Violations of the standard or of a promise of the gateway.
    pub complaints: Vec<String>,
    /// Number of declared discontinuities of a continuity counter.
    pub declared_discontinuities: u64,
    /// Forward jumps of the PCR by more than half a second.
    pub steps: Vec<Step>,
    /// Labels in the order of their appearance: `["A", "B", "A"]` is a return to A.
    pub labels: Vec<String>,
    pub n_pat: u64,
    pub n_pmt: u64,
    /// Stream types of each elementary stream that was announced.
    pub announced: BTreeMap<u16, BTreeSet<u8>>,
    /// Languages of each elementary stream that was announced with one.
    pub languages: BTreeMap<u16, BTreeSet<String>>,
}

/// A table of one section, reassembled from packets.
#[derive(Debug, Default)]
struct Section {
    bytes: Vec<u8>,
    gathering: bool,
    last: Vec<u8>,
}

impl Checker {
    pub fn new() -> Checker {
        Checker::default()
    }

    /// Checks a whole recording.
    pub fn from_bytes(bytes: &[u8]) -> Checker {
        let mut checker = Checker::new();
        checker.push(bytes);
        checker.finish();
        checker
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if !self.carry.is_empty() {
            let missing = PACKET - self.carry.len();
            let taken = missing.min(rest.len());
            self.carry.extend_from_slice(&rest[..taken]);
            rest = &rest[taken..];
            if self.carry.len() < PACKET {
                return;
            }
            let packet = std::mem::take(&mut self.carry);
            self.packet(&packet);
        }
        let mut packets = rest.chunks_exact(PACKET);
        for packet in &mut packets {
            self.packet(packet);
        }
        self.carry.extend_from_slice(packets.remainder());
    }

    /// Ends the stream; an incomplete packet is a complaint.
    pub fn finish(&mut self) {
        if !self.carry.is_empty() {
            let n = self.carry.len();
            self.complain(format!("the stream ends {n} bytes into a packet"));
        }
    }

    /// Returns the time from the first to the last PCR, in seconds.
    pub fn programme_seconds(&self) -> f64 {
        match (self.first_pcr, self.last_pcr) {
            (Some(first), Some(last)) => (last - first) as f64 / 90_000.0,
            _ => 0.0,
        }
    }

    /// Returns for how long, in seconds of programme time, no unit of each announced stream started, at most, up to the
    /// newest PCR.
    pub fn longest_pauses(&self) -> BTreeMap<u16, f64> {
        let end = self.last_pcr.unwrap_or(0);
        let pause = |pid: &u16| {
            let Some(seen) = self.pids.get(pid) else { return f64::INFINITY };
            let open = seen.last_unit.map_or(i64::MAX, |at| end - at);
            seen.longest_pause.max(open) as f64 / 90_000.0
        };
        self.announced.keys().map(|pid| (*pid, pause(pid))).collect()
    }

    /// Panics with all complaints if there are any.
    #[track_caller]
    pub fn assert_clean(&self) {
        assert!(self.complaints.is_empty(), "the stream is not clean:\n  {}", self.complaints.join("\n  "));
        assert!(self.payload_packets > 0, "the stream contains no payload ({} packets)", self.packets);
    }

    pub fn saw(&self, label: &str) -> bool {
        self.labels.iter().any(|seen| seen == label)
    }

    /// Returns the label of the latest picture.
    pub fn showing(&self) -> Option<&str> {
        self.labels.last().map(String::as_str)
    }

    fn complain(&mut self, text: impl Into<String>) {
        // A broken stream fails at every packet; the first hundred complaints are enough.
        if self.complaints.len() < 100 {
            self.complaints.push(format!("packet {}: {}", self.packets, text.into()));
        }
    }

    fn packet(&mut self, packet: &[u8]) {
        self.check_packet(packet);
        self.packets += 1;
    }

    fn check_packet(&mut self, packet: &[u8]) {
        if packet[0] != 0x47 {
            return self.complain(format!("starts with {:#04x} instead of the sync byte", packet[0]));
        }
        let pid = u16::from_be_bytes([packet[1] & 0x1F, packet[2]]);
        let starts_unit = packet[1] & 0x40 != 0;
        let control = packet[3] >> 4 & 0b11;
        let counter = packet[3] & 0x0F;
        let has_payload = control & 0b01 != 0;
        if packet[1] & 0x80 != 0 {
            self.complain("carries the transport error indicator");
        }
        if control == 0 {
            return self.complain("has the reserved adaptation field control 00");
        }
        if pid == NULL_PID {
            return self.null(packet);
        }
        self.null_run = 0;
        let (flags, pcr, payload) = match adaptation(packet, control) {
            Ok(parts) => parts,
            Err(text) => return self.complain(text),
        };
        let discontinuity = flags & 0x80 != 0;
        let random_access = flags & 0x40 != 0;
        if self.n_pat == 0 && pid >= 0x20 {
            self.complain(format!("PID {pid:#x} comes before the first PAT"));
        }
        let repeated = self.count(pid, counter, has_payload, discontinuity, packet);
        if let Some(pcr) = pcr {
            self.pcr(pid, pcr, discontinuity);
        }
        if repeated || !has_payload {
            return;
        }
        if pid == 0 {
            self.table(true, starts_unit, payload);
        } else if Some(pid) == self.pmt_pid {
            self.table(false, starts_unit, payload);
        } else if let Some(&stream_type) = self.streams.get(&pid) {
            self.payload_packets += 1;
            if starts_unit {
                self.note_unit(pid);
            }
            if starts_unit && stream_type == CUE_MESSAGES {
                self.cue_message(payload);
            } else if starts_unit {
                self.unit(pid, stream_type, random_access, payload);
            }
            self.follow(pid, starts_unit, payload);
        }
    }

    fn note_unit(&mut self, pid: u16) {
        let Some(now) = self.last_pcr else { return };
        let seen = self.pids.entry(pid).or_default();
        if let Some(before) = seen.last_unit.replace(now) {
            seen.longest_pause = seen.longest_pause.max(now - before);
        }
    }

    fn null(&mut self, packet: &[u8]) {
        self.null_packets += 1;
        self.filler_packets += u64::from(packet[4..].iter().all(|byte| *byte == 0xFF));
        self.null_run += 1;
        if self.payload_packets == 0 {
            self.complain("a null packet before the first real one");
        }
        if self.packets < (1 << 20) / PACKET as u64 {
            self.early_null_run = self.early_null_run.max(self.null_run);
        }
    }

    /// Checks the continuity counter; returns true for a permitted duplicate.
    fn count(
        &mut self,
        pid: u16,
        counter: u8,
        has_payload: bool,
        discontinuity: bool,
        packet: &[u8],
    ) -> bool {
        let seen = self.pids.entry(pid).or_default();
        let before = seen.counter;
        let same = packet == seen.last_packet.as_slice();
        let mut repeated = false;
        let mut complaint = None;
        if discontinuity {
            seen.unit = None;
        }
        if let Some(before) = before {
            let next = if has_payload { (before + 1) & 0x0F } else { before };
            if discontinuity {
                if counter != next {
                    self.declared_discontinuities += 1;
                }
            } else if counter == next {
            } else if has_payload && counter == before && same && !seen.repeated {
                repeated = true;
            } else {
                complaint = Some(format!("PID {pid:#x} counts {counter} after {before}, undeclared"));
            }
        }
        seen.counter = Some(counter);
        seen.repeated = repeated;
        seen.last_packet.clear();
        seen.last_packet.extend_from_slice(packet);
        if let Some(complaint) = complaint {
            self.complain(complaint);
        }
        repeated
    }

    fn pcr(&mut self, pid: u16, pcr: i64, discontinuity: bool) {
        if self.pcr_pid != Some(pid) {
            return;
        }
        // One clock for the programme, even when its PID changes with the source.
        let before = self.pids.get(&u16::MAX).and_then(|clock| clock.pcr);
        let clock = Clock::next(before, pcr);
        self.pids.entry(u16::MAX).or_default().pcr = Some(clock);
        self.first_pcr.get_or_insert(clock.unwrapped);
        self.last_pcr = Some(clock.unwrapped);
        let Some(before) = before else { return };
        let step = (clock.unwrapped - before.unwrapped) as f64 / 90_000.0;
        if step < 0.0 {
            self.complain(format!("the PCR goes back by {:.3} s", -step));
        } else if step > 0.5 {
            self.steps.push(Step { at_packet: self.packets, seconds: step, declared: discontinuity });
        }
    }

    fn table(&mut self, is_pat: bool, starts_unit: bool, payload: &[u8]) {
        let section = if is_pat { &mut self.pat } else { &mut self.pmt };
        if starts_unit {
            let pointer = usize::from(payload[0]);
            section.bytes.clear();
            section.gathering = true;
            section.bytes.extend_from_slice(payload.get(1 + pointer..).unwrap_or_default());
        } else if section.gathering {
            section.bytes.extend_from_slice(payload);
        }
        if !section.gathering || section.bytes.len() < 3 {
            return;
        }
        let length = 3 + (usize::from(section.bytes[1] & 0x0F) << 8 | usize::from(section.bytes[2]));
        if section.bytes.len() < length {
            return;
        }
        section.gathering = false;
        let whole = section.bytes[..length].to_vec();
        let name = if is_pat { "PAT" } else { "PMT" };
        if length < 12 || crc32(&whole) != 0 {
            return self.complain(format!("the {name} has a wrong checksum"));
        }
        let before =
            std::mem::replace(if is_pat { &mut self.pat.last } else { &mut self.pmt.last }, whole.clone());
        if !before.is_empty() && before != whole && (before[5] ^ whole[5]) & 0x3E == 0 {
            self.complain(format!("the {name} changed its content and kept its version"));
        }
        if is_pat { self.read_pat(&whole) } else { self.read_pmt(&whole) }
    }

    fn read_pat(&mut self, section: &[u8]) {
        self.n_pat += 1;
        let mut programmes = section[8..section.len() - 4].chunks_exact(4);
        let first = programmes.find(|entry| entry[0] != 0 || entry[1] != 0);
        match first {
            Some(entry) => self.pmt_pid = Some(u16::from_be_bytes([entry[2] & 0x1F, entry[3]])),
            None => self.complain("the PAT names no programme"),
        }
    }

    fn read_pmt(&mut self, section: &[u8]) {
        self.n_pmt += 1;
        self.pcr_pid = Some(u16::from_be_bytes([section[8] & 0x1F, section[9]]));
        let info = usize::from(section[10] & 0x0F) << 8 | usize::from(section[11]);
        let mut rest = &section[12 + info..section.len() - 4];
        self.streams.clear();
        while rest.len() >= 5 {
            let pid = u16::from_be_bytes([rest[1] & 0x1F, rest[2]]);
            self.streams.insert(pid, rest[0]);
            self.announced.entry(pid).or_default().insert(rest[0]);
            let length = usize::from(rest[3] & 0x0F) << 8 | usize::from(rest[4]);
            if let Some(language) = rest.get(5..5 + length).and_then(language) {
                self.languages.entry(pid).or_default().insert(language);
            }
            rest = rest.get(5 + length..).unwrap_or_default();
        }
    }

    /// Checks the marks of a provider: within one connection nothing may be missing without a declared discontinuity.
    fn follow(&mut self, pid: u16, starts_unit: bool, payload: &[u8]) {
        let Some(seen) = self.pids.get_mut(&pid) else { return };
        if !starts_unit {
            if let Some((_, bytes)) = &mut seen.unit {
                *bytes += payload.len();
            }
            return;
        }
        let next = mark_of(payload);
        let lost = seen.unit.as_ref().zip(next.as_ref()).and_then(|(before, next)| missing(before, next));
        seen.unit = next.map(|mark| (mark, payload.len()));
        if let Some(lost) = lost {
            self.complain(format!("PID {pid:#x} lost something of {lost}"));
        }
    }

    /// Checks that a time signal of SCTE 35, in one packet, refers to a moment near the programme clock.
    fn cue_message(&mut self, payload: &[u8]) {
        const SECONDS_MAX: i64 = 5;
        let Some(section) = payload.get(1..) else { return };
        let length = 3 + usize::from(u16::from_be_bytes([section[1] & 0x0F, section[2]]));
        if section[0] != 0xFC || section.get(..length).is_none_or(|it| crc32(it) != 0) {
            return self.complain("carries a damaged cue message");
        }
        let time = |at: usize| {
            i64::from(section[at] & 1) << 32
                | i64::from(u32::from_be_bytes([
                    section[at + 1],
                    section[at + 2],
                    section[at + 3],
                    section[at + 4],
                ]))
        };
        // Adjustment, command, and the time of the command.
        let (adjustment, is_time_signal) = (time(4), section[13] == 6);
        let Some(clock) = self.last_pcr.filter(|_| is_time_signal) else { return };
        let ahead = (time(14) + adjustment - clock).rem_euclid(TURN_90K);
        let ahead = if ahead > TURN_90K / 2 { ahead - TURN_90K } else { ahead };
        if ahead.abs() > SECONDS_MAX * 90_000 {
            self.complain(format!("carries a cue message for {:.1} s later", ahead as f64 / 90_000.0));
        }
    }

    /// Checks the start of a PES packet.
    fn unit(&mut self, pid: u16, stream_type: u8, random_access: bool, payload: &[u8]) {
        if payload.len() < 9 || payload[..3] != [0, 0, 1] {
            return self.complain(format!("PID {pid:#x} starts a unit without a PES start code"));
        }
        if VIDEO_TYPES.contains(&stream_type) && !self.video_began {
            self.video_began = true;
            if !random_access && !is_key_frame(stream_type, payload) {
                self.complain("the first picture is not a random-access point");
            }
        }
        let (pts, dts) = times(payload);
        if let Some(raw) = dts.or(pts) {
            let before = self.pids.get(&pid).and_then(|seen| seen.decode_time);
            let clock = Clock::next(before, raw);
            if let Some(before) = before.filter(|before| clock.unwrapped < before.unwrapped) {
                let back = (before.unwrapped - clock.unwrapped) as f64 / 90_000.0;
                self.complain(format!("PID {pid:#x} goes back by {back:.3} s"));
            }
            if let Some(seen) = self.pids.get_mut(&pid) {
                seen.decode_time = Some(clock);
            }
        }
        if let Some(label) = label_of(payload)
            && self.labels.last() != Some(&label)
        {
            self.labels.push(label);
        }
    }
}

/// Describes the data missing between two consecutive PES packets, of which the first has this many bytes.
fn missing(before: &(Mark, usize), next: &Mark) -> Option<String> {
    let (mark, bytes) = before;
    // At a change of source the last PES packet of the old one may be incomplete.
    if (&mark.label, mark.serial) != (&next.label, next.serial) {
        return None;
    }
    if next.frame != mark.frame.wrapping_add(1) {
        return Some(format!(
            "{} of connection {}: frame {} follows frame {}",
            mark.label, mark.serial, next.frame, mark.frame
        ));
    }
    let of = format!("{} of connection {}, frame {}", mark.label, mark.serial, mark.frame);
    (*bytes != mark.length).then(|| format!("{of}: {bytes} bytes of {}", mark.length))
}

type Adaptation<'a> = (u8, Option<i64>, &'a [u8]);

/// Returns adaptation field flags, PCR in 90 kHz, and payload.
fn adaptation(packet: &[u8], control: u8) -> Result<Adaptation<'_>, String> {
    if control & 0b10 == 0 {
        return Ok((0, None, &packet[4..]));
    }
    let length = usize::from(packet[4]);
    let longest = if control == 0b11 { 182 } else { 183 };
    if length > longest {
        return Err(format!("has an adaptation field of {length} bytes"));
    }
    let flags = if length > 0 { packet[5] } else { 0 };
    let pcr = (flags & 0x10 != 0 && length >= 7).then(|| {
        i64::from(u32::from_be_bytes([packet[6], packet[7], packet[8], packet[9]])) << 1
            | i64::from(packet[10] >> 7)
    });
    Ok((flags, pcr, &packet[5 + length..]))
}

/// Returns the language of a stream by its descriptors, if they have one.
fn language(mut descriptors: &[u8]) -> Option<String> {
    const ISO_639_LANGUAGE: u8 = 0x0A;
    while let [tag, length, rest @ ..] = descriptors {
        let body = rest.get(..usize::from(*length))?;
        if *tag == ISO_639_LANGUAGE {
            return body.get(..3).map(|code| String::from_utf8_lossy(code).into_owned());
        }
        descriptors = &rest[body.len()..];
    }
    None
}

/// Returns PID, origin and presentation time of each PES packet of a recording that a provider has marked.
pub fn presentation_times(recording: &[u8]) -> Vec<(u16, Mark, i64)> {
    let of_packet = |packet: &[u8]| {
        let (_, _, payload) = adaptation(packet, packet[3] >> 4 & 0b11).ok()?;
        let is_start = packet[1] & 0x40 != 0 && payload.starts_with(&[0, 0, 1]) && payload.len() > 14;
        let mark = mark_of(payload).filter(|_| is_start)?;
        Some((u16::from_be_bytes([packet[1] & 0x1F, packet[2]]), mark, times(payload).0?))
    };
    recording.chunks_exact(PACKET).filter_map(of_packet).collect()
}

fn times(payload: &[u8]) -> (Option<i64>, Option<i64>) {
    let time = |at: usize| {
        payload.get(at..at + 5).map(|b| {
            i64::from(b[0] >> 1 & 0x07) << 30
                | i64::from(b[1]) << 22
                | i64::from(b[2] >> 1) << 15
                | i64::from(b[3]) << 7
                | i64::from(b[4] >> 1)
        })
    };
    match payload[7] >> 6 {
        0b10 => (time(9), None),
        0b11 => (time(9), time(14)),
        _ => (None, None),
    }
}

/// Returns true for a sequence header (MPEG-2), IDR or SPS (H.264), IRAP or VPS/SPS (H.265) in the first transport
/// packet.
fn is_key_frame(stream_type: u8, payload: &[u8]) -> bool {
    let header = 9 + usize::from(payload[8]);
    payload.get(header..).unwrap_or_default().windows(4).any(|w| {
        w[..3] == [0, 0, 1]
            && match stream_type {
                0x1B => matches!(w[3] & 0x1F, 5 | 7),
                0x24 => matches!(w[3] >> 1 & 0x3F, 16..=21 | 32 | 33),
                _ => w[3] == 0xB3,
            }
    })
}

pub fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte) << 24, |crc, _| {
            if crc & 0x8000_0000 != 0 { crc << 1 ^ 0x04C1_1DB7 } else { crc << 1 }
        })
    })
}
