//! Small streams for the tests of this crate.

use super::packet::{PACKET, PacketBytes, SYNC, set_cc, set_pid};
use super::section::{packets_of, with_crc};
use super::tables::{ElementaryStream, Pat, Pmt};

pub(crate) const PMT_PID: u16 = 0x100;
pub(crate) const VIDEO_PID: u16 = 0x101;
pub(crate) const AUDIO_PID: u16 = 0x102;

pub(crate) fn pat() -> Pat {
    Pat { stream_id: 1, version: 0, programs: vec![(1, PMT_PID)] }
}

pub(crate) fn pmt(streams: &[(u8, u16)]) -> Pmt {
    let stream =
        |&(stream_type, pid): &(u8, u16)| ElementaryStream { stream_type, pid, descriptors: Vec::new() };
    Pmt {
        program: 1,
        version: 0,
        pcr_pid: streams[0].1,
        program_info: Vec::new(),
        streams: streams.iter().map(stream).collect(),
    }
}

/// Creates a cue message: a time signal with this time and adjustment, and so many bytes of descriptors.
pub(crate) fn time_signal(time: u64, adjustment: u64, n_descriptor_bytes: u16) -> Vec<u8> {
    let stamp = |stamp: u64, reserved: u8| {
        let [_, _, _, high, low @ ..] = stamp.to_be_bytes();
        let [a, b, c, d] = low;
        [reserved | high & 1, a, b, c, d]
    };
    let mut section = vec![0xFC, 0x30, 0, 0];
    section.extend(stamp(adjustment, 0));
    section.extend([0, 0xFF, 0xF0, 5, 6]);
    section.extend(stamp(time, 0xFE));
    section.extend(n_descriptor_bytes.to_be_bytes());
    section.resize(section.len() + usize::from(n_descriptor_bytes), 0x55);
    section[2] = (section.len() + 4 - 3) as u8;
    with_crc(section)
}

/// Creates the packet of a short cue message.
pub(crate) fn time_signal_packet(pid: u16, cc: u8, time: u64) -> PacketBytes {
    packets_of(pid, &time_signal(time, 0, 0), cc)[0]
}

/// Creates packets with consecutive counters.
pub(crate) struct Builder {
    counters: [u8; 8192],
    pub(crate) pat: Pat,
    pub(crate) pmt: Pmt,
    /// Written into each payload, so that packets differ.
    number: u32,
}

impl Builder {
    /// H.264 and AAC.
    pub(crate) fn video() -> Self {
        Self::new(&[(0x1B, VIDEO_PID), (0x0F, AUDIO_PID)])
    }

    /// AAC alone.
    pub(crate) fn radio() -> Self {
        Self::new(&[(0x0F, AUDIO_PID)])
    }

    pub(crate) fn new(streams: &[(u8, u16)]) -> Self {
        Self { counters: [0x0F; 8192], pat: pat(), pmt: pmt(streams), number: 0 }
    }

    fn next_cc(&mut self, pid: u16) -> u8 {
        let counter = &mut self.counters[usize::from(pid)];
        *counter = (*counter + 1) & 0x0F;
        *counter
    }

    pub(crate) fn tables(&mut self) -> Vec<PacketBytes> {
        let n_pmt = self.pmt.packets(PMT_PID, 0).len();
        let mut all = self.pat.packets(0);
        all.extend(self.pmt.packets(PMT_PID, 0));
        assert_eq!(all.len(), 1 + n_pmt);
        for packet in &mut all {
            let cc = self.next_cc(super::packet::Packet::new(packet).pid());
            set_cc(packet, cc);
        }
        all
    }

    /// Creates a packet from the middle of a PES packet.
    pub(crate) fn data(&mut self, pid: u16) -> PacketBytes {
        self.number += 1;
        let mut packet = [0xAA; PACKET];
        packet[..4].copy_from_slice(&[SYNC, 0, 0, 0x10]);
        packet[4..8].copy_from_slice(&self.number.to_be_bytes());
        set_pid(&mut packet, pid);
        set_cc(&mut packet, self.next_cc(pid));
        packet
    }

    /// Creates a packet with the start of a PES packet without time stamps.
    pub(crate) fn pes(&mut self, pid: u16, data: &[u8]) -> PacketBytes {
        let mut packet = self.data(pid);
        packet[1] |= 0x40;
        let stream_id = if pid == VIDEO_PID { 0xE0 } else { 0xC0 };
        packet[4..13].copy_from_slice(&[0, 0, 1, stream_id, 0, 0, 0x80, 0, 0]);
        packet[13..13 + data.len()].copy_from_slice(data);
        packet
    }

    /// Creates a packet with the start of a key frame, marked by the random access indicator, and a PCR.
    pub(crate) fn key(&mut self, pcr: u64) -> PacketBytes {
        let mut packet = self.pes(VIDEO_PID, &[]);
        packet.copy_within(4..PACKET - 8, 12);
        packet[3] |= 0x20;
        packet[4..12].copy_from_slice(&[7, 0x50, 0, 0, 0, 0, 0, 0]);
        assert!(super::packet::set_pcr(&mut packet, pcr));
        packet
    }
}
