//! Checks a transport stream as strictly as the post-processing of a recorder would. Independent of
//! `crate::ts`.
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use crate::splice::tests::builder;

const WRAP: i64 = 1 << 33;

/// The state of one PID.
#[derive(Debug, Default)]
struct PidState {
    last: Option<Vec<u8>>,
    n_repeats: u32,
    decode: Option<i64>,
    /// Bytes of the current PES packet that are missing; negative if it is too long.
    n_missing: i64,
}

/// A received PES packet.
#[derive(Clone, Debug)]
pub(crate) struct Pes {
    pub(crate) at: Duration,
    pub(crate) pid: u16,
    pub(crate) source: u8,
    pub(crate) is_video: bool,
    pub(crate) is_key: bool,
    pub(crate) number: u32,
    /// Unwrapped, ticks of 90 kHz.
    pub(crate) presentation: i64,
    pub(crate) decode: i64,
}

#[derive(Debug, Default)]
pub(crate) struct Checker {
    pids: HashMap<u16, PidState>,
    sections: HashMap<u16, Vec<u8>>,
    pat: Option<Vec<u8>>,
    pmt: Option<Vec<u8>>,
    pmt_pid: Option<u16>,
    pcr_pid: u16,
    /// Whether the PCR is ignored, because it is unrelated to the time stamps.
    ignores_clock: bool,
    /// Stream type of each PID in the current PMT.
    pub(crate) streams: BTreeMap<u16, u8>,
    /// All stream types that each PID ever had.
    pub(crate) types: BTreeMap<u16, BTreeSet<u8>>,
    clock: Option<i64>,
    /// Arrival and unwrapped value of every PCR on the PCR PID.
    pub(crate) clocks: Vec<(Duration, i64)>,
    pub(crate) n_declared: u32,
    pub(crate) pes: Vec<Pes>,
    pub(crate) pat_versions: Vec<u8>,
    pub(crate) pmt_versions: Vec<u8>,
    pub(crate) n_packets: u64,
    pub(crate) programs: BTreeSet<(u16, u16, u16)>,
}

impl Checker {
    /// Creates a checker that ignores the PCR.
    pub(crate) fn without_clock() -> Self {
        Checker { ignores_clock: true, ..Checker::default() }
    }

    /// Reads bytes and panics on the first violation.
    pub(crate) fn read(&mut self, bytes: &[u8], at: Duration) {
        assert_eq!(bytes.len() % 188, 0, "whole packets");
        for packet in bytes.chunks_exact(188) {
            self.packet(packet, at);
            self.n_packets += 1;
        }
    }

    fn packet(&mut self, packet: &[u8], at: Duration) {
        assert_eq!(packet[0], 0x47, "sync byte of packet {}", self.n_packets);
        let pid = u16::from(packet[1] & 0x1F) << 8 | u16::from(packet[2]);
        if pid == 0x1FFF {
            return;
        }
        assert_eq!(packet[1] & 0x80, 0, "a damaged packet");
        let (has_field, has_payload) = (packet[3] & 0x20 != 0, packet[3] & 0x10 != 0);
        assert!(has_field || has_payload, "neither field nor payload");
        let is_start = packet[1] & 0x40 != 0;
        let flags = if has_field && packet[4] > 0 { packet[5] } else { 0 };
        let offset = if has_field { 5 + usize::from(packet[4]) } else { 4 };
        assert!(
            if has_payload { offset < 188 } else { offset == 188 },
            "field of {offset} bytes on {pid:#x}"
        );
        self.counter(pid, packet, has_payload, flags);
        if pid == 0 || Some(pid) == self.pmt_pid {
            self.section(pid, &packet[offset..], is_start);
            return;
        }
        assert!(self.pmt.is_some(), "PID {pid:#x} before the tables");
        if pid < 0x20 {
            return;
        }
        let is_announced = self.streams.contains_key(&pid) || pid == self.pcr_pid;
        assert!(is_announced, "PID {pid:#x} is not announced: {:x?}", self.streams);
        if pid == self.pcr_pid && flags & 0x10 != 0 && !self.ignores_clock {
            self.pcr(&packet[6..12], flags & 0x80 != 0, at);
        }
        let is_repeated = self.pids.get(&pid).is_some_and(|it| it.n_repeats > 0);
        if has_payload && !is_repeated {
            if is_start {
                self.check_complete(pid);
                self.pes_start(pid, &packet[offset..], at);
            }
            self.pids.entry(pid).or_default().n_missing -= packet[offset..].len() as i64;
        }
    }

    /// Checks that the last PES packet of a PID was complete.
    fn check_complete(&self, pid: u16) {
        let n_missing = self.pids.get(&pid).map_or(0, |it| it.n_missing);
        assert_eq!(n_missing, 0, "bytes missing in a PES packet on {pid:#x}, at packet {}", self.n_packets);
    }

    /// Checks that the output ends with complete PES packets.
    pub(crate) fn check_end(&self) {
        self.pids.keys().for_each(|pid| self.check_complete(*pid));
    }

    fn counter(&mut self, pid: u16, packet: &[u8], has_payload: bool, flags: u8) {
        let state = self.pids.entry(pid).or_default();
        let counter = packet[3] & 0x0F;
        if let Some(last) = &state.last {
            let before = last[3] & 0x0F;
            let n = self.n_packets;
            if has_payload && last[4..] == packet[4..] && counter == before {
                state.n_repeats += 1;
                assert!(state.n_repeats <= 1, "sent three times on {pid:#x}");
            } else {
                state.n_repeats = 0;
                // A declared discontinuity would allow any counter, but the splice does not need it.
                let expected = (before + u8::from(has_payload)) & 0x0F;
                assert_eq!(counter, expected, "counter on {pid:#x}, packet {n}, flags {flags:#x}");
            }
        } else if has_payload {
            assert!(packet[1] & 0x40 != 0, "PID {pid:#x} starts in the middle of a PES packet");
        }
        // A packet without payload does not change the counter and is not compared with duplicates.
        state.last = Some(packet.to_vec());
    }

    fn section(&mut self, pid: u16, payload: &[u8], is_start: bool) {
        let section = self.sections.entry(pid).or_default();
        if is_start {
            assert_eq!(payload[0], 0, "sections start at once");
            *section = payload[1..].to_vec();
        } else {
            section.extend(payload);
        }
        if section.len() < 3 {
            return;
        }
        let length = 3 + (usize::from(section[1] & 0x0F) << 8 | usize::from(section[2]));
        if section.len() < length {
            return;
        }
        let section = section[..length].to_vec();
        assert_eq!(crc(&section), 0, "checksum on {pid:#x}");
        let version = section[5] >> 1 & 0x1F;
        let content = [&section[..5], &section[6..length - 4]].concat();
        let (last, versions) = if pid == 0 {
            (&mut self.pat, &mut self.pat_versions)
        } else {
            (&mut self.pmt, &mut self.pmt_versions)
        };
        match (&last, versions.last()) {
            (Some(last), Some(before)) if **last == content => {
                assert_eq!(version, *before, "version on {pid:#x}")
            }
            (Some(_), Some(before)) => assert_eq!(version, (before + 1) & 0x1F, "version on {pid:#x}"),
            _ => {}
        }
        if last.as_ref() != Some(&content) {
            versions.push(version);
        }
        *last = Some(content);
        if pid == 0 {
            assert_eq!(length, 16, "one programme");
            let (program, map) = (u16_at(&section, 8), u16_at(&section, 10) & 0x1FFF);
            self.pmt_pid = Some(map);
            self.programs.insert((u16_at(&section, 3), program, map));
        } else {
            let number = u16_at(&section, 3);
            assert!(self.programs.iter().any(|it| it.1 == number), "a PMT of programme {number}");
            self.pcr_pid = u16_at(&section, 8) & 0x1FFF;
            self.streams.clear();
            let mut rest = &section[12 + usize::from(u16_at(&section, 10) & 0x0FFF)..length - 4];
            while rest.len() >= 5 {
                self.streams.insert(u16_at(rest, 1) & 0x1FFF, rest[0]);
                self.types.entry(u16_at(rest, 1) & 0x1FFF).or_default().insert(rest[0]);
                rest = &rest[5 + usize::from(u16_at(rest, 3) & 0x0FFF)..];
            }
        }
    }

    fn pcr(&mut self, field: &[u8], is_declared: bool, at: Duration) {
        let base = field[..4].iter().fold(0, |base, byte| base << 8 | i64::from(*byte)) << 1
            | i64::from(field[4] >> 7);
        let near = self.clock.or_else(|| self.pes.last().map(|pes| pes.decode)).unwrap_or(base);
        let clock = near + signed(base - near);
        if let Some(last) = self.clock {
            let step = clock - last;
            // A duplicate packet repeats its clock.
            assert!(step >= 0, "the clock goes back by {} ms at {at:?}", -step / 90);
            assert!(step <= 9_000 || is_declared, "an undeclared step of {} ms", step / 90);
        }
        self.n_declared += u32::from(is_declared);
        self.clock = Some(clock);
        self.clocks.push((at, clock));
    }

    fn pes_start(&mut self, pid: u16, payload: &[u8], at: Duration) {
        assert_eq!(payload[..3], [0, 0, 1], "a PES start on {pid:#x}");
        assert!(payload[7] & 0x80 != 0, "a PTS on {pid:#x}");
        let stamp = |at: usize| {
            let b = |i: usize| i64::from(payload[at + i]);
            (b(0) >> 1 & 7) << 30 | b(1) << 22 | (b(2) >> 1) << 15 | b(3) << 7 | b(4) >> 1
        };
        let body = &payload[9 + usize::from(payload[8])..];
        let presentation = stamp(9);
        let decode = if payload[7] & 0x40 != 0 { stamp(14) } else { presentation };
        let near = self.clock.or_else(|| self.pes.last().map(|pes| pes.decode)).unwrap_or(decode);
        let state = self.pids.entry(pid).or_default();
        let decode = state.decode.map_or(near + signed(decode - near), |last| last + signed(decode - last));
        let presentation = decode + signed(presentation - decode);
        assert!(presentation >= decode, "presented before it is decoded on {pid:#x}");
        if let Some(last) = state.decode {
            assert!(
                decode > last,
                "time stamps go back by {} ms on {pid:#x} at {at:?}",
                (last - decode) / 90
            );
        }
        if let Some(clock) = self.clock.filter(|_| self.pcr_pid != 0x1FFF) {
            assert!((decode - clock).abs() < 5 * 90_000, "{} ms from the clock", (decode - clock) / 90);
        }
        state.decode = Some(decode);
        let is_video = payload[3] == 0xE0;
        let body_bytes = match (is_video, body[3] & 1 == 1) {
            (true, true) => builder::KEY_BYTES,
            (true, false) => builder::PICTURE_BYTES,
            (false, _) => builder::AUDIO_BYTES,
        };
        state.n_missing = (payload.len() - body.len() + body_bytes) as i64;
        assert_eq!(body[..2], [0xB5, 0xD7], "the marker");
        let number = body[4..8].iter().fold(0, |number, digit| number << 7 | u32::from(digit & 0x7F));
        let (source, is_key) = (body[2] & 0x7F, body[3] & 1 == 1);
        self.pes.push(Pes { at, pid, source, is_video, is_key, number, presentation, decode });
    }

    /// Checks for every PID that each later source starts after everything presented before.
    pub(crate) fn check_seams(&self) {
        let mut newest: HashMap<u16, (u8, i64)> = HashMap::new();
        for pes in &self.pes {
            let entry = newest.entry(pes.pid).or_insert((pes.source, pes.presentation));
            if entry.0 != pes.source {
                let back = (entry.1 - pes.presentation) / 90;
                assert!(
                    pes.presentation > entry.1,
                    "source {} goes back by {back} ms on {:#x}",
                    pes.source,
                    pes.pid
                );
                entry.0 = pes.source;
            }
            entry.1 = entry.1.max(pes.presentation);
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn signed(difference: i64) -> i64 {
    (difference + WRAP / 2).rem_euclid(WRAP) - WRAP / 2
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte) << 24;
        for _ in 0..8 {
            crc = if crc & 0x8000_0000 != 0 { crc << 1 ^ 0x04C1_1DB7 } else { crc << 1 };
        }
    }
    crc
}
