//! Recognises a picture that stands still by the bytes of its access units, without a decoder. Pure.
//!
//! A provider that has no programme sends the same unit again and again, or the same group of them. An encoder whose input
//! is frozen sends a key frame per group and tiny pictures between, which say that nothing has changed; numbers in their
//! headers go on. So a unit is *repeated* if its length and its content behind [`HEAD`] are those of one of the two units
//! before it, or of one in its group or in the two groups before: encoders mark key frames in turn (`idr_pic_id`), which can
//! change the length of a header.

use crate::ts::clock::STAMP_HZ;
use crate::ts::packet::Packet;
use crate::ts::pes::{is_pes_start, pes_header};

/// Ticks of 90 kHz.
type Ticks = u64;

/// A picture stands still when nothing but repeated units have come for this long, and at least as many as that.
const STILL_AFTER: Ticks = 10 * STAMP_HZ;
const STILL_UNITS: u32 = 10;
/// Bytes at the start of a unit that are not compared: headers and parameter sets, with numbers and time codes that go on.
const HEAD: usize = 64;
/// The bytes up to this position are all compared.
const DENSE: usize = 192;
/// After that, every so many bytes one is compared. The codes of a picture have no fixed length, so that a difference
/// changes all that follows in its slice: samples show it as well as all bytes, and the first bytes alone would miss it
/// below a black bar.
const SAMPLED: usize = 64;
/// Number of units that are kept of a group.
const GROUP_UNITS_MAX: usize = 512;
/// Period over which it is measured whether pictures differ.
const MOTION_PERIOD: Ticks = 3 * STAMP_HZ;
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The access units of a picture.
#[derive(Debug, Default)]
pub(super) struct StillPicture {
    /// The unit that is read, once one has begun.
    unit: Option<Unit>,
    /// The two units before it.
    last: [u32; 2],
    /// Whether a key frame has come. Until then units have no group.
    has_groups: bool,
    /// The units of its group.
    group: Vec<u32>,
    /// Those of the two groups before.
    groups_before: [Vec<u32>; 2],
    /// When the last unit that is not repeated began.
    new_at: Ticks,
    /// When the last unit began that has ended, and the number of repeated ones up to it.
    last_at: Ticks,
    n_repeated: u32,
    motion: Motion,
}

/// An access unit, as far as it was read.
#[derive(Debug)]
struct Unit {
    began: Ticks,
    is_key: bool,
    n_bytes: usize,
    sum: u64,
}

/// The share of units that are not repeated.
#[derive(Debug, Default)]
struct Motion {
    began: Option<Ticks>,
    n_units: u32,
    n_new: u32,
    moves: bool,
}

impl StillPicture {
    /// A unit begins, which ends the one before it.
    pub(super) fn begin_unit(&mut self, now: Ticks, is_key: bool) {
        let next = Unit { began: now, is_key, n_bytes: 0, sum: 0 };
        let Some(unit) = self.unit.replace(next) else { return };
        if unit.is_key {
            let [last, oldest] = &mut self.groups_before;
            std::mem::swap(last, oldest);
            std::mem::swap(last, &mut self.group);
            self.group.clear();
            self.has_groups = true;
        }
        let fingerprint = unit.fingerprint();
        let is_repeated = self.last.contains(&fingerprint)
            || self.group.contains(&fingerprint)
            || self.groups_before.iter().any(|it| it.contains(&fingerprint));
        self.last = [fingerprint, self.last[0]];
        if self.has_groups && self.group.len() < GROUP_UNITS_MAX {
            self.group.push(fingerprint);
        }
        self.last_at = unit.began;
        if is_repeated {
            self.n_repeated = self.n_repeated.saturating_add(1);
        } else {
            (self.new_at, self.n_repeated) = (unit.began, 0);
        }
        self.motion.unit(unit.began, !is_repeated);
    }

    /// Reads a packet of the picture.
    pub(super) fn packet(&mut self, packet: Packet<'_>) {
        let Some(unit) = &mut self.unit else { return };
        let payload = packet.payload();
        // The PES header has the times.
        let from = match is_pes_start(packet) {
            true => pes_header(payload).map_or(payload.len(), |(_, data)| data),
            false => 0,
        };
        unit.push(payload.get(from..).unwrap_or_default());
    }

    /// Returns whether the picture stands still.
    pub(super) fn is_still(&self) -> bool {
        self.n_repeated >= STILL_UNITS && self.last_at.saturating_sub(self.new_at) >= STILL_AFTER
    }

    /// Returns whether the pictures of some seconds differed, the last time that this was measured, and it does not stand
    /// still since. The first pictures of a still one differ, too, while the encoder refines them.
    pub(super) fn moves(&self) -> bool {
        self.motion.moves && !self.is_still()
    }
}

impl Unit {
    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let head = HEAD.saturating_sub(self.n_bytes);
        let dense = DENSE.saturating_sub(self.n_bytes).min(bytes.len());
        for byte in bytes.get(head..dense).unwrap_or_default() {
            self.add(*byte);
        }
        let sampled = dense.max(self.n_bytes.next_multiple_of(SAMPLED) - self.n_bytes);
        for byte in bytes.get(sampled..).unwrap_or_default().iter().step_by(SAMPLED) {
            self.add(*byte);
        }
        self.n_bytes += bytes.len();
    }

    #[inline]
    fn add(&mut self, byte: u8) {
        self.sum = (self.sum ^ u64::from(byte)).wrapping_mul(MULTIPLIER).rotate_left(23);
    }

    /// Returns a sum of its length and content.
    fn fingerprint(&self) -> u32 {
        let mixed = (self.sum ^ self.n_bytes as u64).wrapping_mul(MULTIPLIER);
        (mixed >> 32) as u32
    }
}

impl Motion {
    /// A unit that began at this time has ended.
    fn unit(&mut self, at: Ticks, is_new: bool) {
        let began = *self.began.get_or_insert(at);
        self.n_units += 1;
        self.n_new += u32::from(is_new);
        if at.saturating_sub(began) >= MOTION_PERIOD {
            let moves = self.n_new * 4 >= self.n_units * 3;
            *self = Self { began: Some(at), moves, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::build::VIDEO_PID;
    use crate::ts::packet::PACKET;

    const GROUP: u64 = 50;
    const FRAME: Ticks = STAMP_HZ / 25;

    /// Returns a unit: a head that counts up, and content that `seed` determines.
    fn unit(count: u64, seed: u64, n_bytes: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = count.to_be_bytes().repeat(HEAD / 8);
        let mut state = seed;
        while bytes.len() < n_bytes {
            state = (state + 1).wrapping_mul(MULTIPLIER);
            bytes.push((state >> 56) as u8);
        }
        bytes.truncate(n_bytes);
        bytes
    }

    /// Returns the packets of a unit. `pcr`: the packet with this number has a clock reference.
    fn packets(unit: &[u8], stamp: u64, pcr: usize) -> Vec<[u8; PACKET]> {
        let mut pes = vec![0, 0, 1, 0xE0, 0, 0, 0x80, 0x80, 5, 0x21, 0, (stamp >> 7) as u8 | 1, 0, 1];
        pes.extend_from_slice(unit);
        let mut rest = pes.as_slice();
        let mut out = Vec::new();
        while !rest.is_empty() {
            let mut packet = [0xFF; PACKET];
            let [high, low] = VIDEO_PID.to_be_bytes();
            packet[..4].copy_from_slice(&[0x47, high | if out.is_empty() { 0x40 } else { 0 }, low, 0x10]);
            let with_pcr = if out.len() == pcr { 8 } else { 0 };
            let n_bytes = rest.len().min(PACKET - 4 - with_pcr);
            let adaptation = PACKET - 4 - n_bytes;
            if adaptation > 0 {
                packet[3] = 0x30;
                packet[4] = (adaptation - 1) as u8;
                if adaptation > 1 {
                    packet[5] = if with_pcr > 0 { 0x10 } else { 0 };
                }
            }
            packet[4 + adaptation..].copy_from_slice(&rest[..n_bytes]);
            rest = &rest[n_bytes..];
            out.push(packet);
        }
        out
    }

    /// Plays 25 units a second for this long: `unit_at` returns whether a unit is a key frame, and its bytes. Returns the
    /// second at which the picture stands still for the first time, and the one at which it moves for the first time.
    fn play(seconds: u64, unit_at: impl Fn(u64) -> (bool, Vec<u8>)) -> (Option<u64>, Option<u64>) {
        let mut still = StillPicture::default();
        let (mut stands_at, mut moves_at) = (None, None);
        for number in 0..seconds * 25 {
            let (is_key, bytes) = unit_at(number);
            still.begin_unit(number * FRAME, is_key);
            for packet in packets(&bytes, number, number as usize % 5) {
                still.packet(Packet::new(&packet));
            }
            if still.is_still() {
                stands_at.get_or_insert(number / 25);
            }
            if still.moves() {
                moves_at.get_or_insert(number / 25);
            }
        }
        (stands_at, moves_at)
    }

    /// Bytes of the unit with this number in its group: a key frame, or a tiny picture between.
    fn group_bytes(number: u64) -> usize {
        if number.is_multiple_of(GROUP) { 9_000 } else { 30 + number as usize % 3 }
    }

    #[test]
    fn units_and_groups_that_repeat_stand_still_after_ten_seconds() {
        let is_key = |number: u64| number.is_multiple_of(GROUP);
        // Every unit is the same, and no key frame.
        assert_eq!(play(30, |_| (false, unit(0, 1, 3_000))), (Some(10), None));
        // Every unit is the same key frame.
        assert_eq!(play(30, |_| (true, unit(0, 1, 3_000))), (Some(10), None));
        // Two key frames in turn, of which one has a longer header.
        assert_eq!(play(30, |n| (true, unit(n, 1, 3_000 + n as usize % 2))), (Some(10), None));
        // Groups of a key frame and tiny pictures, with numbers that go on in their headers.
        assert_eq!(play(30, |n| (is_key(n), unit(n, 1, group_bytes(n)))), (Some(10), None));
        // The same with two kinds of key frames in turn.
        let in_turn = |n| (is_key(n), unit(n, 1, group_bytes(n) + (n / GROUP) as usize % 2));
        assert_eq!(play(30, in_turn), (Some(12), None));
        // All pictures of a group are large, and the next group is the same.
        let large = |n: u64| (is_key(n), unit(n, n % GROUP, 4_000));
        assert_eq!(play(30, large), (Some(12), None));
    }

    #[test]
    fn pictures_that_move_do_not_stand_still() {
        let is_key = |number: u64| number.is_multiple_of(GROUP);
        assert_eq!(play(60, |n| (is_key(n), unit(n, n, 3_000))), (None, Some(3)));
        assert_eq!(play(60, |n| (false, unit(n, n, 3_000))), (None, Some(3)));
        // The head and a black bar are the same.
        let bar = |n: u64| (is_key(n), [unit(0, 0, 400), unit(n, n, 600)].concat());
        assert_eq!(play(60, bar), (None, Some(3)));
        // One other picture every nine seconds: the picture does not stand still, and does not move either.
        let clock = |n: u64| (is_key(n), unit(n, if n % 225 == 9 { n } else { 1 }, 3_000));
        assert_eq!(play(60, clock), (None, None));
        // A loop of ten seconds that has five groups.
        assert_eq!(play(60, |n| (is_key(n), unit(n, n % 250, 3_000))), (None, Some(3)));
    }

    #[test]
    fn counters_behind_the_head_need_a_decoder() {
        let counted = |n: u64| (n.is_multiple_of(GROUP), [unit(n, 1, 100), unit(n, 1, 3_000)].concat());
        assert_eq!(play(30, counted).0, None);
    }

    #[test]
    fn a_still_picture_ends_with_the_first_other_unit() {
        let is_still = |n_others: u64| {
            let mut still = StillPicture::default();
            for number in 0..300 + n_others {
                still.begin_unit(number * FRAME, number.is_multiple_of(GROUP));
                let seed = if number < 299 { 1 } else { number };
                for packet in packets(&unit(number, seed, 3_000), number, 0) {
                    still.packet(Packet::new(&packet));
                }
            }
            still.is_still()
        };
        assert_eq!([0, 1, 50].map(is_still), [true, false, false]);
    }
}
