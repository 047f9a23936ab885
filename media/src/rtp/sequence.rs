//! The order of received RTP packets.
//!
//! A network may deliver packets in another order, twice, or not at all. Packets that arrive too early wait for those
//! before them, for a short time and in a small number. A packet that does not come meanwhile is counted as lost.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use super::RtpHeader;

/// Maximum distance in packets over which the order is restored.
pub const REORDER_PACKETS_MAX: usize = 64;
/// Maximum number of bytes that wait for earlier packets.
pub const REORDER_BYTES_MAX: usize = 1 << 20;
/// Longest time for which a packet waits for an earlier one.
pub const REORDER_TIME_MAX: Duration = Duration::from_millis(100);
/// A second sender is followed after the first one has been silent for this long. Two that send at once would be mixed.
pub const SENDER_SILENCE: Duration = Duration::from_millis(200);
/// A step forward in the sequence that is larger than this is a new start and not a loss (RFC 3550, A.1).
const DROPOUT_MAX: u16 = 3_000;
/// A step back that is larger than this is a new start and not a late packet (RFC 3550, A.1).
const MISORDER_MAX: u16 = 100;

/// Counts of the packets of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RtpCounts {
    /// Packets that did not arrive in time.
    pub lost: u64,
    /// Packets that arrived twice, or too late.
    pub dropped: u64,
    /// Packets that arrived before an earlier one and were put into order.
    pub reordered: u64,
    /// New starts: of another sender, or of the sequence.
    pub restarts: u64,
}

/// Puts the packets of one sender into order.
#[derive(Debug, Default)]
pub struct RtpSequence {
    /// The sender that is followed; `None` before the first packet.
    sender: Option<Sender>,
    /// The packets after the next expected one, by their distance to it minus one.
    waiting: VecDeque<Option<(Instant, Bytes)>>,
    n_waiting_bytes: usize,
    counts: RtpCounts,
}

#[derive(Debug)]
struct Sender {
    id: u32,
    /// The next sequence number.
    next: u16,
    last_arrival: Instant,
    /// The sequence number after the last one that was far from the expected one. The sequence starts again when it arrives.
    far: Option<u16>,
}

impl RtpSequence {
    /// Returns what happened so far.
    pub fn counts(&self) -> RtpCounts {
        self.counts
    }

    /// Takes a packet, and appends everything that is in order now to `out`.
    pub fn push(&mut self, header: &RtpHeader, payload: &[u8], now: Instant, out: &mut BytesMut) {
        self.expire(now, out);
        let Some(sender) = &mut self.sender else { return self.start(header, payload, now, out) };
        if sender.id != header.sender {
            if now.saturating_duration_since(sender.last_arrival) < SENDER_SILENCE {
                self.counts.dropped += 1;
                return;
            }
            return self.restart(header, payload, now, out);
        }
        sender.last_arrival = now;
        let distance = header.sequence.wrapping_sub(sender.next);
        if distance > DROPOUT_MAX {
            if distance > u16::MAX - MISORDER_MAX {
                self.counts.dropped += 1;
            } else if sender.far == Some(header.sequence) {
                self.restart(header, payload, now, out);
            } else {
                // One stray packet does not start anew.
                sender.far = Some(header.sequence.wrapping_add(1));
                self.counts.dropped += 1;
            }
            return;
        }
        sender.far = None;
        // Whatever would wait at a larger distance than allowed continues without the missing packets.
        while self.distance_to(header.sequence) >= REORDER_PACKETS_MAX {
            self.skip(out);
        }
        let distance = self.distance_to(header.sequence);
        if distance == 0 {
            out.extend_from_slice(payload);
            self.advance(1);
            return self.drain(out);
        }
        if self.waiting.len() < distance {
            self.waiting.resize(distance, None);
        }
        let place = &mut self.waiting[distance - 1];
        if place.is_some() {
            self.counts.dropped += 1;
            return;
        }
        *place = Some((now, Bytes::copy_from_slice(payload)));
        self.n_waiting_bytes += payload.len();
        self.counts.reordered += 1;
        while self.n_waiting_bytes > REORDER_BYTES_MAX {
            self.skip(out);
        }
    }

    /// Returns the time at which the packets that wait continue without what is missing.
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().flatten().map(|it| it.0).min().map(|it| it + REORDER_TIME_MAX)
    }

    /// Appends the packets that have waited long enough to `out`.
    pub fn expire(&mut self, now: Instant, out: &mut BytesMut) {
        while self.deadline().is_some_and(|it| it <= now) {
            self.skip(out);
        }
    }

    fn start(&mut self, header: &RtpHeader, payload: &[u8], now: Instant, out: &mut BytesMut) {
        let next = header.sequence.wrapping_add(1);
        self.sender = Some(Sender { id: header.sender, next, last_arrival: now, far: None });
        out.extend_from_slice(payload);
    }

    /// Follows another sequence. What waits is still of the present one.
    fn restart(&mut self, header: &RtpHeader, payload: &[u8], now: Instant, out: &mut BytesMut) {
        while !self.waiting.is_empty() {
            self.skip(out);
        }
        self.counts.restarts += 1;
        self.start(header, payload, now, out);
    }

    /// Gives up the next packet, and continues with those that follow it.
    fn skip(&mut self, out: &mut BytesMut) {
        self.counts.lost += 1;
        self.advance(1);
        self.drain(out);
    }

    /// Appends what waits and is next.
    fn drain(&mut self, out: &mut BytesMut) {
        loop {
            match self.waiting.pop_front() {
                Some(Some((_, payload))) => {
                    self.n_waiting_bytes -= payload.len();
                    out.extend_from_slice(&payload);
                    self.advance(1);
                }
                // The place of the packet that is next now.
                Some(None) | None => return,
            }
        }
    }

    fn advance(&mut self, n: u16) {
        if let Some(sender) = &mut self.sender {
            sender.next = sender.next.wrapping_add(n);
        }
    }

    /// Returns how far a packet is from the next one.
    fn distance_to(&self, sequence: u16) -> usize {
        self.sender.as_ref().map_or(0, |it| usize::from(sequence.wrapping_sub(it.next)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A sequence with a clock, which writes down the numbers that are in order.
    struct Setup {
        sequence: RtpSequence,
        now: Instant,
        out: BytesMut,
    }

    impl Setup {
        fn new() -> Self {
            Self { sequence: RtpSequence::default(), now: Instant::now(), out: BytesMut::new() }
        }

        fn wait(&mut self, ms: u64) {
            self.now += Duration::from_millis(ms);
            self.sequence.expire(self.now, &mut self.out);
        }

        fn push_of(&mut self, sender: u32, sequence: u16) {
            let header = RtpHeader { payload_type: 33, sequence, timestamp: 0, sender };
            self.sequence.push(&header, &sequence.to_be_bytes(), self.now, &mut self.out);
        }

        fn push(&mut self, sequences: &[u16]) {
            sequences.iter().for_each(|it| self.push_of(1, *it));
        }

        /// Returns what is in order since the last call.
        fn ordered(&mut self) -> Vec<u16> {
            let out = self.out.split();
            out.chunks(2).map(|it| u16::from_be_bytes([it[0], it[1]])).collect()
        }

        fn counts(&self) -> (u64, u64, u64, u64) {
            let RtpCounts { lost, dropped, reordered, restarts } = self.sequence.counts();
            (lost, dropped, reordered, restarts)
        }
    }

    #[test]
    fn packets_come_out_in_order_and_once() {
        let check = |pushed: &[u16], expected: &[u16], counts: (u64, u64, u64, u64)| {
            let mut setup = Setup::new();
            setup.push(pushed);
            assert_eq!((setup.ordered(), setup.counts()), (expected.to_vec(), counts), "{pushed:?}");
        };
        check(&[5, 6, 7], &[5, 6, 7], (0, 0, 0, 0));
        check(&[5, 7, 6, 8], &[5, 6, 7, 8], (0, 0, 1, 0));
        check(&[5, 8, 7, 6, 9], &[5, 6, 7, 8, 9], (0, 0, 2, 0));
        check(&[5, 5, 6, 6], &[5, 6], (0, 2, 0, 0));
        check(&[5, 7, 7, 6], &[5, 6, 7], (0, 1, 1, 0));
        check(&[5, 4, 6], &[5, 6], (0, 1, 0, 0));
        check(&[65534, 0, 65535, 1], &[65534, 65535, 0, 1], (0, 0, 1, 0));
        check(&[5, 7], &[5], (0, 0, 1, 0));
    }

    #[test]
    fn a_missing_packet_is_given_up_after_a_short_time() {
        let mut setup = Setup::new();
        setup.push(&[5, 7, 9]);
        setup.wait(99);
        assert_eq!(setup.ordered(), [5]);
        setup.push(&[10]);
        setup.wait(1);
        assert_eq!((setup.ordered(), setup.counts().0), (vec![7, 9, 10], 2));
        assert_eq!(setup.sequence.deadline(), None);
        setup.push(&[6, 8, 11]);
        assert_eq!((setup.ordered(), setup.counts()), (vec![11], (2, 2, 3, 0)));
    }

    #[test]
    fn a_missing_packet_is_given_up_after_a_number_of_packets() {
        let mut setup = Setup::new();
        setup.push(&[0]);
        setup.push(&(2..64).collect::<Vec<_>>());
        assert_eq!(setup.ordered(), [0]);
        setup.push(&[64]);
        assert_eq!(setup.ordered(), [0; 0], "63 packets after the missing one wait");
        setup.push(&[65]);
        assert_eq!(setup.ordered(), (2..66).collect::<Vec<_>>());
        assert_eq!(setup.counts().0, 1);
        setup.push(&[1_000]);
        setup.wait(100);
        assert_eq!((setup.ordered(), setup.counts().0), (vec![1_000], 1 + 1_000 - 66));
    }

    #[test]
    fn a_large_step_is_a_new_start_after_its_second_packet() {
        let mut setup = Setup::new();
        setup.push(&[5, 40_000, 6, 7]);
        assert_eq!((setup.ordered(), setup.counts()), (vec![5, 6, 7], (0, 1, 0, 0)), "a stray packet");
        setup.push(&[40_000, 40_001, 40_002]);
        assert_eq!((setup.ordered(), setup.counts()), (vec![40_001, 40_002], (0, 2, 0, 1)));
    }

    #[test]
    fn a_sender_that_starts_again_is_followed_and_a_second_one_is_not() {
        let mut setup = Setup::new();
        setup.push(&[5, 6]);
        setup.push_of(2, 900);
        setup.wait(150);
        setup.push(&[7, 9]);
        setup.push_of(2, 901);
        assert_eq!((setup.ordered(), setup.counts()), (vec![5, 6, 7], (0, 2, 1, 0)));
        setup.wait(200);
        setup.push_of(2, 902);
        setup.push_of(2, 903);
        setup.push_of(1, 10);
        assert_eq!((setup.ordered(), setup.counts()), (vec![9, 902, 903], (1, 3, 1, 1)));
    }

    proptest! {
        #[test]
        fn whatever_arrives_comes_out_once_and_nothing_waits_for_ever(
            steps in prop::collection::vec((0u16..200, 0u64..30), 1..400),
        ) {
            let mut setup = Setup::new();
            for (offset, ms) in steps {
                setup.wait(ms);
                setup.push(&[1_000 + offset]);
                prop_assert!(setup.sequence.waiting.len() < REORDER_PACKETS_MAX);
            }
            setup.wait(REORDER_TIME_MAX.as_millis() as u64);
            prop_assert_eq!(setup.sequence.waiting.len(), 0);
            prop_assert_eq!(setup.sequence.n_waiting_bytes, 0);
        }
    }
}
