//! Adds to a clip what ffmpeg cannot generate: further streams, a clock on another PID, longer packets.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::signal::Clip;
use crate::support::ts_check::{PACKET, crc32};

type Packet = [u8; PACKET];

const TURN_90K: u64 = 1 << 33;

/// The PID that carries the clock of a clip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockPid {
    /// That of the video, or of the audio without video.
    Reference,
    /// That of the first audio stream.
    Audio,
    /// One without a stream.
    Own,
}

/// A stream to be added.
pub struct AddedStream {
    pub pid: u16,
    pub stream_type: u8,
    pub descriptors: Vec<u8>,
    /// Whether its units are sections and not PES packets.
    pub is_sections: bool,
    /// Each unit with the time since the start of the clip at which it is sent.
    pub units: Vec<(Duration, Vec<u8>)>,
}

/// A clip of one programme as packets with their times since its start.
pub struct Editor {
    packets: Vec<(Duration, Packet)>,
    pmt_pid: u16,
    pmt: Vec<u8>,
    /// The first clock of the clip, 90 kHz.
    pub start: u64,
}

impl Editor {
    pub fn new(clip: &Clip) -> Editor {
        let packets: Vec<(Duration, Packet)> = clip
            .bytes()
            .chunks_exact(PACKET)
            .enumerate()
            .map(|(index, bytes)| (clip.due(index), bytes.try_into().expect("a whole packet")))
            .collect();
        let starts = |wanted: u16| {
            packets.iter().map(|it| &it.1).find(|it| pid(&it[..]) == wanted && it[1] & 0x40 != 0)
        };
        let pat = starts(0).expect("a clip has a PAT");
        let pmt_pid = u16::from_be_bytes([pat[15] & 0x1F, pat[16]]);
        let pmt = starts(pmt_pid).expect("a clip has a PMT")[5..].to_vec();
        let length = 3 + usize::from(u16::from_be_bytes([pmt[1] & 0x0F, pmt[2]]));
        let start = packets.iter().find_map(|it| pcr(&it.1)).expect("a clip has a clock");
        Editor { pmt: pmt[..length - 4].to_vec(), packets, pmt_pid, start }
    }

    /// Returns the clock at a time since the start of the clip, 90 kHz.
    pub fn clock(&self, at: Duration) -> u64 {
        (self.start + (at.as_micros() * 9 / 100) as u64) % TURN_90K
    }

    pub fn end(&self) -> Duration {
        self.packets.last().map_or(Duration::ZERO, |it| it.0)
    }

    /// Adds descriptors of the programme.
    pub fn add_programme_info(&mut self, descriptors: &[u8]) {
        let before = usize::from(u16::from_be_bytes([self.pmt[10] & 0x0F, self.pmt[11]]));
        let length = (before + descriptors.len()) as u16 | 0xF000;
        self.pmt[10..12].copy_from_slice(&length.to_be_bytes());
        self.pmt.splice(12 + before..12 + before, descriptors.iter().copied());
    }

    pub fn add_stream(&mut self, stream: &AddedStream) {
        self.pmt.push(stream.stream_type);
        self.pmt.extend((stream.pid | 0xE000).to_be_bytes());
        self.pmt.extend((stream.descriptors.len() as u16 | 0xF000).to_be_bytes());
        self.pmt.extend(&stream.descriptors);
        let mut counter = 0;
        for (at, unit) in &stream.units {
            let mut unit = unit.clone();
            if stream.is_sections {
                unit.insert(0, 0);
                unit.resize(unit.len().next_multiple_of(PACKET - 4), 0xFF);
            }
            let index = self.packets.partition_point(|it| it.0 < *at);
            let packets = packetize(stream.pid, &unit, &mut counter);
            self.packets.splice(index..index, packets.into_iter().map(|packet| (*at, packet)));
        }
    }

    /// Spreads the packets of each PES packet over the time until the next one of its stream, as most multiplexers do;
    /// ffmpeg sends them one after the other. The stream with the clock stays as it is.
    pub fn interleave(&mut self) {
        let clock_pid = u16::from_be_bytes([self.pmt[8] & 0x1F, self.pmt[9]]);
        let mut units: BTreeMap<u16, Vec<Vec<usize>>> = BTreeMap::new();
        for (index, (_, packet)) in self.packets.iter().enumerate() {
            let units = units.entry(pid(packet)).or_default();
            if packet[1] & 0x40 != 0 {
                units.push(Vec::new());
            }
            if let Some(unit) = units.last_mut() {
                unit.push(index);
            }
        }
        for (_, units) in units.into_iter().filter(|it| it.0 != clock_pid) {
            for pair in units.windows(2) {
                let (from, to) = (self.packets[pair[0][0]].0, self.packets[pair[1][0]].0);
                for (n, index) in pair[0].iter().enumerate() {
                    self.packets[*index].0 = from + (to - from) * n as u32 / pair[0].len() as u32;
                }
            }
        }
        self.packets.sort_by_key(|it| it.0);
    }

    /// Moves the clock to packets without payload on this PID.
    pub fn move_clock(&mut self, clock_pid: u16) {
        self.pmt[8..10].copy_from_slice(&(clock_pid | 0xE000).to_be_bytes());
        let mut moved = Vec::new();
        let mut counter = 0;
        for (at, mut packet) in std::mem::take(&mut self.packets) {
            if pcr(&packet).is_some() {
                let mut clock = [0xFF; PACKET];
                clock[..6].copy_from_slice(&[
                    0x47,
                    (clock_pid >> 8) as u8,
                    clock_pid as u8,
                    0x20 | counter,
                    183,
                    0x10,
                ]);
                clock[6..12].copy_from_slice(&packet[6..12]);
                moved.push((at, clock));
                packet[5] &= !0x10;
                packet[6..12].fill(0xFF);
            }
            if pid(&packet) == clock_pid {
                counter = packet[3] & 0x0F;
            }
            moved.push((at, packet));
        }
        self.packets = moved;
    }

    /// Returns the PID of the `n`-th stream in the PMT.
    pub fn pid_of_stream(&self, n: usize) -> u16 {
        let info = usize::from(u16::from_be_bytes([self.pmt[10] & 0x0F, self.pmt[11]]));
        let mut rest = &self.pmt[12 + info..];
        for _ in 0..n {
            rest = &rest[5 + usize::from(u16::from_be_bytes([rest[3] & 0x0F, rest[4]]))..];
        }
        u16::from_be_bytes([rest[1] & 0x1F, rest[2]])
    }

    /// Returns the packets with the changed tables, without those before `from`: a viewer tunes in anywhere.
    pub fn bytes(mut self, from: Duration) -> Vec<u8> {
        let length = (self.pmt.len() + 4 - 3) as u16 | 0xB000;
        self.pmt[1..3].copy_from_slice(&length.to_be_bytes());
        let checksum = crc32(&self.pmt).to_be_bytes();
        let section = [&[0][..], &self.pmt, &checksum].concat();
        assert!(section.len() <= PACKET - 4, "the PMT fits into a packet");
        for (_, packet) in self.packets.iter_mut().filter(|it| pid(&it.1) == self.pmt_pid) {
            packet[3] = packet[3] & 0x0F | 0x10;
            packet[4..].fill(0xFF);
            packet[4..4 + section.len()].copy_from_slice(&section);
        }
        self.packets.iter().filter(|it| it.0 >= from).flat_map(|it| it.1).collect()
    }
}

/// Returns the number of packets after which a source breaks off: at or after `from`, where as many streams as possible are
/// in the middle of a PES packet.
pub fn middle_of_a_frame(clip: &Clip, from: Duration) -> usize {
    // Number of packets to look at.
    const WITHIN: usize = 400;
    let packets: Vec<&[u8]> = clip.bytes().chunks_exact(PACKET).collect();
    // For each PID the first and the last packet of each of its units.
    let mut units: BTreeMap<u16, Vec<(usize, usize)>> = BTreeMap::new();
    for (index, packet) in packets.iter().enumerate().filter(|it| it.1[3] & 0x10 != 0) {
        let units = units.entry(pid(packet)).or_default();
        match units.last_mut() {
            Some(unit) if packet[1] & 0x40 == 0 => unit.1 = index,
            _ => units.push((index, index)),
        }
    }
    let n_open = |end: usize| {
        let is_open = |units: &&Vec<(usize, usize)>| units.iter().any(|unit| unit.0 < end && end <= unit.1);
        units.values().filter(is_open).count()
    };
    let first = (0..packets.len()).find(|index| clip.due(*index) >= from).expect("the clip is long enough");
    let ends = first..(first + WITHIN).min(packets.len());
    // Of equal ones the first.
    ends.rev().max_by_key(|end| n_open(*end)).expect("there are packets")
}

/// Returns the recording without the last PES packet of each PID, which a viewer that leaves does not receive whole.
pub fn without_unfinished_units(bytes: &[u8]) -> Vec<u8> {
    let packets: Vec<&[u8]> = bytes.chunks_exact(PACKET).collect();
    let mut last_start = BTreeMap::new();
    for (index, packet) in packets.iter().enumerate() {
        let payload = payload(packet);
        if packet[1] & 0x40 != 0 && payload.starts_with(&[0, 0, 1]) {
            last_start.insert(pid(packet), index);
        }
    }
    let is_whole =
        |(index, packet): &(usize, &&[u8])| last_start.get(&pid(packet)).is_none_or(|last| index < last);
    packets.iter().enumerate().filter(is_whole).flat_map(|it| it.1.iter().copied()).collect()
}

fn pid(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[1] & 0x1F, packet[2]])
}

fn payload(packet: &[u8]) -> &[u8] {
    match packet[3] >> 4 & 0b11 {
        0b01 => &packet[4..],
        0b11 => packet.get(5 + usize::from(packet[4])..).unwrap_or_default(),
        _ => &[],
    }
}

/// Returns the clock in a packet, 90 kHz.
fn pcr(packet: &[u8]) -> Option<u64> {
    (packet[3] & 0x20 != 0 && packet[4] >= 7 && packet[5] & 0x10 != 0).then(|| {
        u64::from(u32::from_be_bytes([packet[6], packet[7], packet[8], packet[9]])) << 1
            | u64::from(packet[10] >> 7)
    })
}

/// Splits a unit into packets; the last one is filled up by an adaptation field.
fn packetize(pid: u16, unit: &[u8], counter: &mut u8) -> Vec<Packet> {
    let mut packets = Vec::new();
    for (index, part) in unit.chunks(PACKET - 4).enumerate() {
        let mut packet = [0xFF; PACKET];
        let unit_start = if index == 0 { 0x40 } else { 0 };
        let missing = PACKET - 4 - part.len();
        let control = if missing > 0 { 0x30 } else { 0x10 };
        packet[..4].copy_from_slice(&[0x47, unit_start | (pid >> 8) as u8, pid as u8, control | *counter]);
        if missing > 0 {
            packet[4] = (missing - 1) as u8;
        }
        if missing > 1 {
            packet[5] = 0;
        }
        packet[PACKET - part.len()..].copy_from_slice(part);
        *counter = (*counter + 1) & 0x0F;
        packets.push(packet);
    }
    packets
}
