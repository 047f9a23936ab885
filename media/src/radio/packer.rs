//! Packs audio frames as a transport stream with one programme.

use bytes::BytesMut;

use crate::ts::audio_frame::{FrameCodec, FrameFormat, FrameHeader};
use crate::ts::clock::STAMP_HZ;
use crate::ts::packet::{PACKET, PacketBytes, SYNC, set_cc, set_pcr, set_pid};
use crate::ts::pes::write_stamp;
use crate::ts::tables::{ElementaryStream, Pat, Pmt};

const PMT_PID: u16 = 0x1000;
const SOUND_PID: u16 = 0x100;
const PROGRAM: u16 = 1;
/// Stream id of the first audio stream.
const STREAM_ID: u8 = 0xC0;
/// Bytes of a PES header with a presentation time.
const PES_HEAD_BYTES: usize = 14;
/// Bytes of a packet behind its header.
const ROOM_BYTES: usize = PACKET - 4;

/// Ticks from a clock reference to the presentation of the frame beside it: 80 ms. The buffer of a decoder has 3,584 bytes. At
/// the highest bit rate it holds 90 ms of sound.
const CLOCK_LEAD: u64 = STAMP_HZ * 80 / 1000;
/// Maximum distance of clock references.
const CLOCK_STEP: u64 = STAMP_HZ * 40 / 1000;
/// Distance of the tables.
const TABLES_STEP: u64 = STAMP_HZ / 4;
/// Presentation time of the first frame.
const START: u64 = STAMP_HZ;
/// Ticks of the clock per tick of a time stamp.
const CLOCK_TICKS: u64 = 300;

/// Packs frames, each into a PES packet of its own. Times follow from the number of samples.
#[derive(Debug)]
pub struct RadioPacker {
    format: Option<FrameFormat>,
    /// The type of the stream as the tables have it.
    stream_type: Option<u8>,
    /// Version of the PMT.
    version: u8,
    /// The time at which `n_samples` began, and the samples since then.
    base: u64,
    n_samples: u64,
    tables_due: u64,
    /// Next counters of the PAT, of the PMT and of the sound.
    counters: [u8; 3],
    pes: Vec<u8>,
}

impl Default for RadioPacker {
    fn default() -> Self {
        Self {
            format: None,
            stream_type: None,
            version: 0,
            base: START,
            n_samples: 0,
            tables_due: 0,
            counters: [0; 3],
            pes: Vec::new(),
        }
    }
}

impl RadioPacker {
    /// Appends the packets of a frame to `out`.
    pub fn frame(&mut self, header: &FrameHeader, frame: &[u8], out: &mut BytesMut) {
        self.begin_format(header.format);
        let pts = self.time();
        if self.tables_due <= pts {
            self.tables(out);
            self.tables_due = pts + TABLES_STEP;
        }
        self.begin_pes(pts, frame);
        let mut at = 0;
        while at < self.pes.len() {
            let clock = (at == 0).then(|| pts - CLOCK_LEAD);
            at += self.packet(at, clock, out);
        }
        self.n_samples += u64::from(header.n_samples);
        let length = self.time() - pts;
        let n_steps = length.div_ceil(CLOCK_STEP);
        for step in 1..n_steps {
            self.clock_packet(pts - CLOCK_LEAD + length * step / n_steps, out);
        }
    }

    /// Returns the presentation time of the next frame.
    fn time(&self) -> u64 {
        let rate = self.format.map_or(1, |it| u64::from(it.rate).max(1));
        self.base + self.n_samples * STAMP_HZ / rate
    }

    fn begin_format(&mut self, format: FrameFormat) {
        if self.format == Some(format) {
            return;
        }
        self.base = self.time();
        self.n_samples = 0;
        self.format = Some(format);
        let stream_type = Some(stream_type(format));
        if self.stream_type.is_some_and(|it| Some(it) != stream_type) {
            self.version = (self.version + 1) % 32;
            self.tables_due = 0;
        }
        self.stream_type = stream_type;
    }

    fn tables(&mut self, out: &mut BytesMut) {
        let pat = Pat { stream_id: 1, version: 0, programs: vec![(PROGRAM, PMT_PID)] };
        let stream_type = self.stream_type.unwrap_or_default();
        let sound = ElementaryStream { stream_type, pid: SOUND_PID, descriptors: Vec::new() };
        let pmt = Pmt {
            program: PROGRAM,
            version: self.version,
            pcr_pid: SOUND_PID,
            program_info: Vec::new(),
            streams: vec![sound],
        };
        let [of_pat, of_pmt, _] = &mut self.counters;
        for (counter, packets) in [(of_pat, pat.packets(0)), (of_pmt, pmt.packets(PMT_PID, 0))] {
            for mut packet in packets {
                set_cc(&mut packet, *counter);
                *counter = counter.wrapping_add(1);
                out.extend_from_slice(&packet);
            }
        }
    }

    fn begin_pes(&mut self, pts: u64, frame: &[u8]) {
        let mut head = [0, 0, 1, STREAM_ID, 0, 0, 0x84, 0x80, 5, 0x20, 0, 0, 0, 0];
        // No frame is longer than 8,191 bytes.
        let length = u16::try_from(PES_HEAD_BYTES - 6 + frame.len()).unwrap_or_default();
        head[4..6].copy_from_slice(&length.to_be_bytes());
        write_stamp(&mut head[9..], pts);
        self.pes.clear();
        self.pes.extend_from_slice(&head);
        self.pes.extend_from_slice(frame);
    }

    /// Appends a packet with the bytes of the PES packet from `at` on, and a clock reference if there is one. Returns how
    /// many bytes it carries.
    fn packet(&mut self, at: usize, clock: Option<u64>, out: &mut BytesMut) -> usize {
        let mut packet = self.sound_packet();
        if at == 0 {
            packet[1] |= 0x40;
        }
        let rest = &self.pes[at..];
        let clock_bytes = if clock.is_some() { 8 } else { 0 };
        let n = rest.len().min(ROOM_BYTES - clock_bytes);
        let adaptation = ROOM_BYTES - n;
        packet[3] |= 0x10;
        if adaptation > 0 {
            packet[3] |= 0x20;
            packet[4] = (adaptation - 1) as u8;
        }
        if adaptation > 1 {
            // Every frame can be decoded without those before it.
            packet[5] = if clock.is_some() { 0x50 } else { 0 };
        }
        if let Some(clock) = clock {
            set_pcr(&mut packet, clock * CLOCK_TICKS);
        }
        packet[4 + adaptation..].copy_from_slice(&rest[..n]);
        self.counters[2] = self.counters[2].wrapping_add(1);
        out.extend_from_slice(&packet);
        n
    }

    /// Appends a packet with a clock reference and without payload.
    fn clock_packet(&self, clock: u64, out: &mut BytesMut) {
        let mut packet = self.sound_packet();
        // Packets without payload repeat the last counter.
        set_cc(&mut packet, self.counters[2].wrapping_sub(1));
        packet[3] |= 0x20;
        packet[4] = (ROOM_BYTES - 1) as u8;
        packet[5] = 0x10;
        set_pcr(&mut packet, clock * CLOCK_TICKS);
        out.extend_from_slice(&packet);
    }

    /// Returns a packet with the header of the next one of the sound, full of stuffing.
    fn sound_packet(&self) -> PacketBytes {
        let mut packet = [0xFF; PACKET];
        packet[..4].copy_from_slice(&[SYNC, 0, 0, 0]);
        set_pid(&mut packet, SOUND_PID);
        set_cc(&mut packet, self.counters[2]);
        packet
    }
}

/// Returns the stream type that the PMT has for frames of a format.
fn stream_type(format: FrameFormat) -> u8 {
    match format.codec {
        FrameCodec::Mpeg { is_first_version: true, .. } => 0x03,
        // Rates of 24 kHz and less.
        FrameCodec::Mpeg { .. } => 0x04,
        FrameCodec::Adts { .. } => 0x0F,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StationSound;
    use crate::ts::clock::STAMP_MODULUS;
    use crate::ts::packet::{Packet, packets};
    use crate::ts::pes::stamps;

    #[test]
    fn radio_is_packed_with_exact_times_for_days() {
        let frame = StationSound::Mp3.frame();
        let header = FrameHeader::parse(&frame).unwrap();
        let mut packer = RadioPacker::default();
        // The time stamps wrap after 26.5 hours.
        for n_hours in (0..30).chain([24 * 365 * 10]) {
            let n_before: u64 = n_hours * 3_600 * 44_100 / 1_152;
            packer.n_samples = n_before * 1_152;
            for n in n_before..n_before + 100 {
                let mut out = BytesMut::new();
                packer.frame(&header, &frame, &mut out);
                let exact = (START + n * 1_152 * STAMP_HZ / 44_100) % STAMP_MODULUS;
                let sound = packets(&out).map(Packet::new).find(|it| it.pid() == SOUND_PID).unwrap();
                assert_eq!(stamps(sound).pts, Some(exact), "frame {n}");
                let clock = (exact + STAMP_MODULUS - CLOCK_LEAD) % STAMP_MODULUS * CLOCK_TICKS;
                assert_eq!(sound.pcr(), Some(clock), "frame {n}");
            }
        }
    }
}
