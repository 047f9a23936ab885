//! When the packets of a channel are sent as datagrams.
//!
//! A channel delivers packets in runs of some hundredths of a second. Set-top boxes have small buffers, so each datagram is
//! sent at the time that the programme clock gives it: the packets between two clock references are spread evenly between
//! the times of these. Packets without a clock are sent as they arrive.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use crate::ts::clock::{PCR_HZ, pcr_step};
use crate::ts::packet::{PACKET, Packet, packets};

/// Number of packets in a datagram: what fits into one Ethernet frame.
pub const PACKETS_PER_DATAGRAM: usize = 7;
/// Maximum number of bytes that wait for their time. Beyond it they are sent early.
pub const SCHEDULE_BYTES_MAX: usize = 8 << 20;
/// Time between the arrival of a clock reference and its sending. It evens out the runs in which packets arrive.
const DELAY: Duration = Duration::from_millis(150);
/// A programme clock that is further ahead than this is a jump, or faster than the wall clock.
const LEAD_MAX: Duration = Duration::from_secs(3);
/// Longest time for which packets wait for the next clock reference.
const REFERENCE_WAIT: Duration = Duration::from_millis(200);

/// The datagrams of a channel, each with the time at which it is due.
#[derive(Debug, Default)]
pub struct DatagramSchedule {
    /// The packets since the last clock reference.
    open: BytesMut,
    /// The arrival of the first of them.
    open_since: Option<Instant>,
    /// The PID with the clock, the last reference, and the time at which it is due.
    clock: Option<Reference>,
    /// Packets with a time, which do not fill a datagram yet.
    partial: BytesMut,
    partial_due: Option<Instant>,
    due: VecDeque<(Instant, Bytes)>,
    n_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Reference {
    pid: u16,
    pcr: u64,
    due: Instant,
}

impl DatagramSchedule {
    /// Takes a run of whole packets that has just arrived.
    pub fn push(&mut self, run: &Bytes, now: Instant) {
        for bytes in packets(run) {
            let packet = Packet::new(bytes);
            if let Some(pcr) = packet.pcr() {
                self.reference(packet.pid(), pcr, packet.discontinuity(), now);
            }
            self.open_since.get_or_insert(now);
            self.open.extend_from_slice(bytes);
        }
        self.expire(now);
        if self.n_bytes + self.open.len() > SCHEDULE_BYTES_MAX {
            self.hasten(now);
        }
    }

    /// Returns the next datagram that is due.
    pub fn pop(&mut self, now: Instant) -> Option<(Instant, Bytes)> {
        self.expire(now);
        let (due, _) = self.due.front()?;
        if *due > now {
            return None;
        }
        let next = self.due.pop_front()?;
        self.n_bytes -= next.1.len();
        Some(next)
    }

    /// Returns the time of the next datagram.
    pub fn next_at(&self) -> Option<Instant> {
        let first = self.due.front().map(|it| it.0);
        let waiting = self.open_since.map(|it| it + REFERENCE_WAIT);
        let partial = self.partial_due.map(|it| it + REFERENCE_WAIT);
        [first, waiting, partial].into_iter().flatten().min()
    }

    /// Takes a clock reference: the packets before it get their times.
    fn reference(&mut self, pid: u16, pcr: u64, is_break: bool, now: Instant) {
        // A change of the PID comes with new tables; the old clock does not come back then.
        if self.clock.is_some_and(|it| it.pid != pid && it.due + LEAD_MAX > now) {
            return;
        }
        let at_once = now + DELAY;
        let last = self.clock.filter(|it| it.pid == pid);
        let step = last.and_then(|it| pcr_step(it.pcr, pcr, is_break));
        let step = step.map(|it| Duration::from_micros(it * 1_000_000 / PCR_HZ));
        // A packet that arrives late moves the clock; one that is far ahead does too.
        let due = match last.zip(step) {
            Some((last, step)) if last.due + step >= now && last.due + step <= now + LEAD_MAX => {
                last.due + step
            }
            _ => at_once,
        };
        let from = last.map_or(now, |it| it.due).min(due);
        self.spread(from, due);
        self.clock = Some(Reference { pid, pcr, due });
    }

    /// Spreads the packets since the last reference evenly over this time.
    fn spread(&mut self, from: Instant, until: Instant) {
        let open = self.open.split();
        self.open_since = None;
        let n_packets = (open.len() / PACKET) as u32;
        let span = until.saturating_duration_since(from);
        for (n, packet) in packets(&open).enumerate() {
            self.partial_due.get_or_insert(from + span * n as u32 / n_packets.max(1));
            self.partial.extend_from_slice(packet);
            if self.partial.len() >= PACKETS_PER_DATAGRAM * PACKET {
                self.close_partial();
            }
        }
    }

    fn close_partial(&mut self) {
        let Some(due) = self.partial_due.take() else { return };
        let datagram = self.partial.split().freeze();
        // In order, also when the clock steps back.
        let due = self.due.back().map_or(due, |it| it.0.max(due));
        self.n_bytes += datagram.len();
        self.due.push_back((due, datagram));
    }

    /// Sends what has waited too long: the clock is slow, or the stream has none.
    fn expire(&mut self, now: Instant) {
        if self.open_since.is_some_and(|it| it + REFERENCE_WAIT <= now) {
            self.spread(now, now);
        }
        if self.open.is_empty() && self.partial_due.is_some_and(|it| it + REFERENCE_WAIT <= now) {
            self.close_partial();
        }
    }

    /// Makes everything due now, because too much waits.
    fn hasten(&mut self, now: Instant) {
        self.spread(now, now);
        self.clock = None;
        self.due.iter_mut().for_each(|it| it.0 = it.0.min(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a packet of PID 256, with a clock reference in milliseconds if there is one.
    fn packet(pcr_ms: Option<u64>) -> Vec<u8> {
        let mut packet = vec![0xff; PACKET];
        packet[..4].copy_from_slice(&[0x47, 0x01, 0x00, 0x10]);
        if let Some(ms) = pcr_ms {
            let base = ms * 90;
            let bytes = [(base >> 25) as u8, (base >> 17) as u8, (base >> 9) as u8, (base >> 1) as u8];
            packet[3] = 0x30;
            packet[4..6].copy_from_slice(&[7, 0x10]);
            packet[6..10].copy_from_slice(&bytes);
            packet[10..12].copy_from_slice(&[((base & 1) as u8) << 7 | 0x7e, 0]);
        }
        packet
    }

    /// Returns a run with a reference, and packets after it.
    fn run(pcr_ms: u64, n_packets: usize) -> Bytes {
        let mut run = packet(Some(pcr_ms));
        (1..n_packets).for_each(|_| run.extend(packet(None)));
        run.into()
    }

    /// Returns the times of all datagrams in milliseconds after the start, each with its number of packets.
    fn all(schedule: &mut DatagramSchedule, start: Instant) -> Vec<(u128, usize)> {
        let late = start + Duration::from_secs(60);
        let mut found = Vec::new();
        while let Some((due, bytes)) = schedule.pop(late) {
            found.push((due.saturating_duration_since(start).as_millis(), bytes.len() / PACKET));
        }
        found
    }

    #[test]
    fn packets_are_spread_evenly_between_the_times_of_clock_references() {
        let (mut schedule, start) = (DatagramSchedule::default(), Instant::now());
        for n in 0..4 {
            // All of 40 ms arrive at once.
            schedule.push(&run(1_000 + 40 * n, 28), start + Duration::from_millis(40 * n));
        }
        let sent = all(&mut schedule, start);
        let expected: Vec<_> = (0..12).map(|n| (150 + 10 * n, 7)).collect();
        assert_eq!(sent[..12], expected, "four datagrams per reference");
        assert_eq!(sent.iter().map(|it| it.1).sum::<usize>(), 4 * 28, "nothing is left");
    }

    #[test]
    fn packets_without_a_clock_are_sent_as_they_arrive() {
        let (mut schedule, start) = (DatagramSchedule::default(), Instant::now());
        let plain: Bytes = (0..10).flat_map(|_| packet(None)).collect::<Vec<_>>().into();
        schedule.push(&plain, start);
        assert_eq!(schedule.pop(start), None);
        assert_eq!(schedule.next_at(), Some(start + REFERENCE_WAIT));
        let at = start + REFERENCE_WAIT;
        assert_eq!(schedule.pop(at).map(|it| it.1.len()), Some(7 * PACKET));
        assert_eq!(schedule.pop(at), None);
        assert_eq!(schedule.pop(at + REFERENCE_WAIT).map(|it| it.1.len()), Some(3 * PACKET), "a short one");
        assert_eq!(schedule.next_at(), None);
    }

    #[test]
    fn a_jump_of_the_clock_continues_at_once() {
        for jump in [0, 3_600_000, 95_443_717] {
            let (mut schedule, start) = (DatagramSchedule::default(), Instant::now());
            schedule.push(&run(10_000, 7), start);
            schedule.push(&run(10_040, 7), start + Duration::from_millis(40));
            schedule.push(&run(jump, 7), start + Duration::from_millis(80));
            schedule.push(&run(jump + 40, 7), start + Duration::from_millis(120));
            let times: Vec<_> = all(&mut schedule, start).into_iter().map(|it| it.0).collect();
            assert_eq!(times[..3], [150, 190, 230], "{jump}");
        }
    }

    #[test]
    fn a_clock_that_is_too_fast_or_too_slow_delays_nothing() {
        for rate in [20, 35, 45, 80] {
            let (mut schedule, start) = (DatagramSchedule::default(), Instant::now());
            let mut now = start;
            for n in 0..500 {
                now = start + Duration::from_millis(40 * n);
                schedule.push(&run(rate * n, 7), now);
                while schedule.pop(now).is_some() {}
            }
            let waits = schedule.next_at().map(|it| it.saturating_duration_since(now));
            assert!(waits.is_some_and(|it| it <= LEAD_MAX), "{rate}: {waits:?}");
            assert!(schedule.n_bytes <= 100 * 7 * PACKET, "{rate}: {}", schedule.n_bytes);
        }
    }

    #[test]
    fn what_waits_is_bounded() {
        let (mut schedule, start) = (DatagramSchedule::default(), Instant::now());
        for n in 0..2_000 {
            schedule.push(&run(n, 700), start);
            assert!(schedule.n_bytes + schedule.open.len() <= SCHEDULE_BYTES_MAX + 700 * PACKET);
            if schedule.n_bytes > SCHEDULE_BYTES_MAX {
                while schedule.pop(start).is_some() {}
            }
        }
    }
}
