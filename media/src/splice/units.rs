//! Holds packets back until the PES packet that they belong to is complete, so that a source that is lost in the middle
//! of a frame ends with whole frames.
use std::time::Duration;

use crate::ts::packet::{Packet, PacketBytes};
use crate::ts::pes::pes_length;

/// A pause of the source counts as at most this long, because during a pause nothing waits behind a unit.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// One PES packet of a stream, while it arrives.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    /// Number of its first packet, and the time of the queue at its arrival; `None` if the unit is complete or is no
    /// longer waited for.
    start: Option<(u64, Duration)>,
    /// Bytes that are missing; `None` if the PES packet has no length.
    n_missing: Option<usize>,
    /// Continuity counter of the last packet, to ignore duplicates.
    cc: Option<u8>,
    /// Whether stuffing was taken for the end of the unit.
    has_ended_by_stuffing: bool,
    /// Whether this stream contains stuffing in the middle of units.
    ignores_stuffing: bool,
}

impl Unit {
    /// Reads a packet of the stream, which is number `number` in the queue, and returns whether a unit has started or
    /// ended.
    pub(crate) fn packet(&mut self, packet: Packet<'_>, number: u64, time: Duration) -> bool {
        if packet.is_scrambled() || !packet.has_payload() {
            return false;
        }
        let cc = packet.cc();
        if self.cc.replace(cc) == Some(cc) && !packet.discontinuity() {
            return false;
        }
        let before = self.start;
        let payload = packet.payload();
        if packet.pusi() {
            // Without a start code the payload is a section.
            self.start = payload.starts_with(&[0, 0, 1]).then_some((number, time));
            self.n_missing = pes_length(payload);
            self.has_ended_by_stuffing = false;
        } else if self.start.is_none() {
            self.ignores_stuffing |= self.has_ended_by_stuffing;
            return false;
        }
        let is_complete = match &mut self.n_missing {
            Some(n_missing) => {
                *n_missing = n_missing.saturating_sub(payload.len());
                *n_missing == 0
            }
            // A multiplexer fills the last packet of a unit with stuffing.
            None => {
                self.has_ended_by_stuffing = !self.ignores_stuffing && packet.has_stuffing();
                self.has_ended_by_stuffing
            }
        };
        if is_complete {
            self.start = None;
        }
        self.start != before
    }

    /// Returns whether the packet with this number belongs to an incomplete unit.
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.start.is_some_and(|(first, _)| first <= number)
    }
}

/// All packets from the start of the oldest incomplete unit on, in the order of their arrival.
#[derive(Debug)]
pub(crate) struct UnitQueue {
    waiting: WaitingPackets,
    /// Number of the first packet in the queue; packets are numbered in the order of their arrival.
    first: u64,
    /// Number and time of the first packet of the oldest incomplete unit.
    oldest: Option<(u64, Duration)>,
    /// The time for which the source was delivering.
    time: Duration,
    last_arrival: Duration,
    wait_max: Duration,
    n_packets_max: usize,
}

/// Packets and their times of arrival. Apart from each other, so that each packet is copied only once.
#[derive(Debug, Default)]
pub(crate) struct WaitingPackets {
    packets: Vec<PacketBytes>,
    arrivals: Vec<Duration>,
}

impl WaitingPackets {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Packet<'_>, Duration)> {
        self.packets.iter().map(Packet::new).zip(self.arrivals.iter().copied())
    }
}

impl UnitQueue {
    pub(crate) fn new(wait_max: Duration, bytes_max: usize) -> Self {
        UnitQueue {
            waiting: WaitingPackets::default(),
            first: 0,
            oldest: None,
            time: Duration::ZERO,
            last_arrival: Duration::ZERO,
            wait_max,
            n_packets_max: bytes_max / (size_of::<PacketBytes>() + size_of::<Duration>()),
        }
    }

    /// Advances the time to the arrival of a packet, and returns whether the oldest unit must not be waited for any
    /// longer.
    #[inline]
    pub(crate) fn advance(&mut self, at: Duration) -> bool {
        if at != self.last_arrival {
            self.time += at.saturating_sub(self.last_arrival).min(PAUSE_MAX);
            self.last_arrival = at;
        }
        self.oldest.is_some() && self.is_overdue()
    }

    fn is_overdue(&self) -> bool {
        let is_late = |(_, since)| self.time - since > self.wait_max;
        self.waiting.packets.len() >= self.n_packets_max || self.oldest.is_some_and(is_late)
    }

    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    /// Returns the number of the next packet.
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.waiting.packets.len() as u64
    }

    /// Returns whether the next packet need not wait.
    pub(crate) fn is_idle(&self) -> bool {
        self.oldest.is_none() && self.waiting.packets.is_empty()
    }

    /// Counts a packet that did not wait.
    pub(crate) fn skip(&mut self) {
        self.first += 1;
    }

    pub(crate) fn push(&mut self, packet: Packet<'_>, at: Duration) {
        self.waiting.packets.extend_from_slice(std::slice::from_ref(packet.bytes()));
        self.waiting.arrivals.push(at);
    }

    /// Finds the oldest incomplete unit. To be called when a unit has started or ended.
    pub(crate) fn find_oldest<'a>(&mut self, units: impl Iterator<Item = &'a Unit>) {
        self.oldest = units.filter_map(|unit| unit.start).min();
    }

    /// Stops waiting for the oldest unit.
    pub(crate) fn give_up_oldest<'a>(&mut self, units: impl Iterator<Item = &'a mut Unit>) {
        for unit in units.filter(|unit| unit.start == self.oldest) {
            unit.start = None;
        }
    }

    /// Returns the number of packets that precede the oldest incomplete unit.
    pub(crate) fn n_complete(&self) -> usize {
        self.oldest.map_or(self.waiting.packets.len(), |(number, _)| (number - self.first) as usize)
    }

    /// Takes all packets; those that are not used have to be put back.
    pub(crate) fn take(&mut self) -> WaitingPackets {
        std::mem::take(&mut self.waiting)
    }

    /// Puts packets back after the first `n_used` of them were used.
    pub(crate) fn put_back(&mut self, mut waiting: WaitingPackets, n_used: usize) {
        waiting.packets.drain(..n_used);
        waiting.arrivals.drain(..n_used);
        self.waiting = waiting;
        self.first += n_used as u64;
    }

    #[cfg(test)]
    pub(crate) fn n_waiting(&self) -> usize {
        self.waiting.packets.len()
    }

    /// Returns the number of the first packet in the queue.
    pub(crate) fn first_number(&self) -> u64 {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::packet::PACKET;

    /// Creates a packet with this counter and `n_payload` bytes of payload. The first of a unit has the PES length
    /// `start`, which may be zero.
    fn packet(cc: u8, start: Option<u16>, n_payload: usize) -> PacketBytes {
        let mut packet = [0xAA; PACKET];
        packet[..4].copy_from_slice(&[0x47, if start.is_some() { 0x41 } else { 1 }, 0, 0x10 | cc & 15]);
        if n_payload < PACKET - 4 {
            packet[3] |= 0x20;
            packet[4] = (PACKET - 5 - n_payload) as u8;
            packet[5..PACKET - n_payload].fill(0xFF);
            if packet[4] > 0 {
                packet[5] = 0;
            }
        }
        if let Some([high, low]) = start.map(u16::to_be_bytes) {
            packet[PACKET - n_payload..][..9].copy_from_slice(&[0, 0, 1, 0xE0, high, low, 0x80, 0, 0]);
        }
        packet
    }

    /// Reads packets (counter, PES length at a start, payload bytes) and checks after each whether a unit is incomplete.
    #[track_caller]
    fn check(packets: &[(u8, Option<u16>, usize)], expected: &[bool]) {
        let mut unit = Unit::default();
        let found = packets.iter().zip(0..).map(|(&(cc, start, n_payload), number)| {
            unit.packet(Packet::new(&packet(cc, start, n_payload)), number, Duration::ZERO);
            unit.contains(number)
        });
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_unit_with_a_length_ends_with_its_last_byte() {
        check(&[(1, Some(300 - 6), 184), (2, None, 116)], &[true, false]);
        check(&[(1, Some(300 - 6), 100), (2, None, 100), (3, None, 100)], &[true, true, false]);
        check(&[(1, Some(94), 100), (2, Some(94), 100)], &[false, false]);
        // Packets that are sent twice.
        check(
            &[(1, Some(362), 184), (1, Some(362), 184), (2, None, 184), (2, None, 184)],
            &[true, true, false, false],
        );
        // A lost packet: the next unit ends this one.
        check(&[(1, Some(500), 184), (3, None, 184), (4, Some(94), 100)], &[true, true, false]);
    }

    #[test]
    fn a_unit_without_a_length_ends_with_stuffing_or_the_next_unit() {
        check(&[(1, Some(0), 184), (2, None, 184), (3, None, 20)], &[true, true, false]);
        check(&[(1, Some(0), 184), (2, None, 183)], &[true, false]);
        check(&[(1, Some(0), 184), (2, None, 184), (3, Some(0), 184)], &[true, true, true]);
    }

    #[test]
    fn stuffing_in_the_middle_of_a_unit_is_not_its_end() {
        let unit = [(1, Some(0), 20), (2, None, 184), (3, Some(0), 20), (4, None, 184), (5, None, 20)];
        check(&unit, &[false, false, true, true, true]);
    }

    #[test]
    fn sections_and_scrambled_packets_are_not_units() {
        let mut unit = Unit::default();
        let mut section = packet(1, Some(0), 184);
        section[4..8].copy_from_slice(&[0, 0xFC, 0x30, 1]);
        unit.packet(Packet::new(&section), 0, Duration::ZERO);
        assert!(!unit.contains(0));
        let mut scrambled = packet(2, Some(0), 184);
        scrambled[3] |= 0x80;
        unit.packet(Packet::new(&scrambled), 1, Duration::ZERO);
        assert!(!unit.contains(1));
    }

    #[test]
    fn a_pause_of_the_source_is_not_a_wait() {
        let mut queue = UnitQueue::new(Duration::from_millis(500), 1 << 20);
        let mut unit = Unit::default();
        let start = packet(1, Some(0), 184);
        queue.advance(Duration::from_secs(3));
        unit.packet(Packet::new(&start), queue.next_number(), queue.time());
        queue.find_oldest(std::iter::once(&unit));
        queue.push(Packet::new(&start), Duration::from_secs(3));
        assert!(!queue.advance(Duration::from_secs(60)));
        assert!(!queue.advance(Duration::from_millis(60_400)));
        for n in 1..15 {
            queue.advance(Duration::from_millis(60_400 + n * 40));
        }
        assert!(queue.advance(Duration::from_secs(61)));
        queue.give_up_oldest(std::iter::once(&mut unit));
        assert!(!unit.contains(0));
    }
}
