//! How far a part of the past of a channel is, by the clock of its transport stream.

use bytes::{Bytes, BytesMut};
use media::{PACKET, PCR_HZ, Packet, pcr_step};

/// A part that brings less than this is the end of the archive, in seconds.
const PROGRESS_MIN_S: i64 = 3;
/// Maximum time for which a key frame is awaited after what was sent already, in seconds.
const KEY_FRAME_WAIT_S: i64 = 10;

/// Follows the clock of a part, and leaves out what was sent before. Other streams than transport streams pass unchanged
/// and have no clock.
pub struct PartClock {
    /// Milliseconds since 1970.
    begins_at: i64,
    /// The time that the viewer had reached before the part, in milliseconds since 1970.
    before: i64,
    /// Whether packets before that time are left out.
    skips: bool,
    /// The beginning of a packet.
    rest: BytesMut,
    /// The PID of the clock, and its last value.
    last: Option<(u16, u64)>,
    /// Time since the first value, in ticks of the PCR.
    ticks: u64,
    is_transport_stream: bool,
}

impl PartClock {
    /// Starts with a part that begins at a time in seconds since 1970. The viewer had reached `before`, in milliseconds; with
    /// `skips` what the part has of the time before is left out.
    pub fn new(begins_at: i64, before: i64, skips: bool) -> Self {
        let begins_at = begins_at * 1000;
        let skips = skips && begins_at < before;
        let (rest, last) = (BytesMut::new(), None);
        Self { begins_at, before, skips, rest, last, ticks: 0, is_transport_stream: true }
    }

    /// Returns how far the part is, in milliseconds since 1970.
    pub fn reached_ms(&self) -> i64 {
        self.clock_ms().max(self.before)
    }

    /// Returns the time that the clock shows, in milliseconds since 1970.
    pub fn clock_ms(&self) -> i64 {
        self.begins_at.saturating_add(i64::try_from(self.ticks / (PCR_HZ / 1000)).unwrap_or(i64::MAX))
    }

    /// Returns whether the part is a transport stream, as far as it is known.
    pub fn is_transport_stream(&self) -> bool {
        self.is_transport_stream
    }

    /// Returns whether the part brought anything new.
    pub fn has_progressed(&self) -> bool {
        self.is_transport_stream && self.reached_ms() - self.before >= PROGRESS_MIN_S * 1000
    }

    /// Takes the next bytes, and returns those to be sent: whole packets.
    pub fn pass(&mut self, bytes: &[u8]) -> Bytes {
        self.rest.extend_from_slice(bytes);
        if !self.is_transport_stream {
            return self.rest.split().freeze();
        }
        let mut n_left_out = 0;
        let whole = self.rest.len() / PACKET * PACKET;
        let mut at = 0;
        while at < whole {
            let Some(packet) = self.rest[at..].first_chunk().map(Packet::new) else { break };
            if !packet.has_sync() {
                self.is_transport_stream = false;
                self.skips = false;
                let passed = self.rest.split_off(n_left_out);
                self.rest.clear();
                return passed.freeze();
            }
            let (pid, pcr) = (packet.pid(), packet.pcr());
            let (is_break, is_key_frame) = (packet.discontinuity(), packet.random_access());
            if let Some(pcr) = pcr {
                match self.last {
                    Some((clock, last)) if clock == pid => {
                        self.ticks += pcr_step(last, pcr, is_break).unwrap_or(0);
                        self.last = Some((pid, pcr));
                    }
                    None => self.last = Some((pid, pcr)),
                    Some(_) => {}
                }
            }
            if self.skips {
                let new = self.clock_ms() - self.before;
                self.skips = new < 0 || !is_key_frame && new < KEY_FRAME_WAIT_S * 1000;
                if self.skips {
                    n_left_out = at + PACKET;
                }
            }
            at += PACKET;
        }
        let mut passed = self.rest.split_to(whole);
        passed.split_off(n_left_out).freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: u8 = 0x47;
    const CLOCK: u16 = 256;

    /// Returns a packet with the clock at this second, or without a clock.
    fn packet(second: Option<u64>, is_key_frame: bool) -> Vec<u8> {
        let mut packet = vec![0xFF; PACKET];
        packet[..6].copy_from_slice(&[SYNC, (CLOCK >> 8) as u8, CLOCK as u8, 0x30, 7, 0]);
        packet[5] |= if is_key_frame { 0x40 } else { 0 };
        if let Some(second) = second {
            let base = second * 90_000;
            packet[5] |= 0x10;
            packet[6..10].copy_from_slice(&((base >> 1) as u32).to_be_bytes());
            packet[10..12].copy_from_slice(&[((base & 1) << 7) as u8, 0]);
        }
        packet
    }

    /// Returns one packet for each second, of which every fourth one begins with a key frame.
    fn seconds(range: std::ops::Range<u64>) -> Vec<u8> {
        range.flat_map(|it| packet(Some(it), it % 4 == 0)).collect()
    }

    #[test]
    fn the_clock_of_a_part_tells_how_far_the_viewer_is() {
        let mut clock = PartClock::new(1_000, 1_000_000, false);
        let all = [seconds(50..60), packet(None, false), seconds(2_000..2_005)].concat();
        // Pieces do not end with packets.
        let passed: Vec<u8> = all.chunks(100).flat_map(|it| clock.pass(it)).collect();
        assert!(passed == all, "every byte is passed on");
        assert_eq!(clock.reached_ms(), 1_013_000, "a jump takes no time");
        assert!(clock.has_progressed());
    }

    #[test]
    fn what_the_viewer_had_is_left_out_up_to_the_next_key_frame() {
        // The provider begins at the minute, six seconds before what the viewer had.
        let mut clock = PartClock::new(1_000, 1_006_000, true);
        let all = seconds(100..120);
        let passed: Vec<u8> = all.chunks(1_000).flat_map(|it| clock.pass(it)).collect();
        assert!(passed == all[8 * PACKET..], "{} of {} bytes", passed.len(), all.len());
        assert_eq!(clock.reached_ms(), 1_019_000);
        // Nothing new: the archive ends where the viewer is.
        let mut same = PartClock::new(1_000, 1_006_000, true);
        assert!(same.pass(&seconds(100..107)).is_empty() && !same.has_progressed());
    }

    #[test]
    fn other_streams_pass_and_tell_no_time() {
        let mut clock = PartClock::new(1_000, 1_006_000, true);
        let text = b"#EXTM3U\n".repeat(100);
        let passed: Vec<u8> = text.chunks(300).flat_map(|it| clock.pass(it)).collect();
        assert!(passed == text && !clock.has_progressed());
    }
}
