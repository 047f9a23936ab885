//! The clocks of the programme of a source, and how the time stamps of its streams relate to them. Pure.
//!
//! A source whose clock jumps sends the new times of each PID from a place of its own. A stream is moved like its
//! programme as long as its times are near a clock of the programme, before or after a jump; a stream that jumps before
//! its programme waits for it.
use std::time::Duration;

use crate::splice::pace::{JUMP, SECOND, Ticks};
use crate::ts::clock::{STAMP_MODULUS, distance};
use crate::ts::packet::{PACKET, Packet, PacketBytes};

/// An unrelated stream belongs to the programme again within this distance. Less than [`JUMP`], so that a stream at that
/// distance does not alternate.
const NEAR_AGAIN: Ticks = 5 * SECOND;

/// A step of a clock by more than this may leave other streams behind. Less than [`JUMP`], because such a step and the
/// distance of a stream in the multiplex can together exceed it.
const STEP_MIN: Ticks = SECOND;

/// Streams may continue the time before a jump of the programme for this long.
const LATE_MAX: Duration = Duration::from_secs(2);

/// Number of jumps within [`LATE_MAX`] that are remembered.
const JUMPS_MAX: usize = 4;

/// Packets of streams that jumped wait for the programme for at most this long.
pub(crate) const EARLY_MAX: Duration = Duration::from_millis(500);

/// Maximum number of these packets, in all streams together: 2 MiB.
pub(crate) const EARLY_PACKETS_MAX: usize = (2 << 20) / PACKET;

/// How the time stamps of a stream relate to the programme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Relation {
    /// None of them was compared with the programme.
    #[default]
    Unknown,
    /// They belong to the programme.
    Near,
    /// They are unrelated: this is added to them, which moves them to the time of the newest picture.
    Far(Ticks),
}

impl Relation {
    /// Returns what is added to the time stamps besides the shift of the source.
    pub(crate) fn anchor(self) -> Ticks {
        match self {
            Relation::Far(anchor) => anchor,
            Relation::Unknown | Relation::Near => 0,
        }
    }
}

/// One clock, as 33-bit stamps. They are compared modulo 2³³, so a wrap needs no special case.
#[derive(Debug, Default)]
struct StampClock {
    newest: Option<u64>,
    /// The values before the last jumps, and when it jumped; newest first.
    before_jumps: [Option<(u64, Duration)>; JUMPS_MAX],
}

impl StampClock {
    fn advance(&mut self, stamp: u64, now: Duration) {
        let last = self.newest.replace(stamp);
        let is_jump = |last: &u64| distance(*last, stamp, STAMP_MODULUS).abs() > STEP_MIN;
        if let Some(last) = last.filter(is_jump) {
            self.before_jumps.rotate_right(1);
            self.before_jumps[0] = Some((last, now));
        }
    }

    fn is_near(&self, stamp: u64, limit: Ticks) -> bool {
        self.newest.is_some_and(|newest| distance(newest, stamp, STAMP_MODULUS).abs() <= limit)
    }

    /// Returns whether this stamp continues the time before a recent jump.
    fn was_near(&self, stamp: u64, now: Duration) -> bool {
        self.before_jumps.iter().flatten().any(|(before, jumped)| {
            now.saturating_sub(*jumped) <= LATE_MAX && distance(*before, stamp, STAMP_MODULUS).abs() <= JUMP
        })
    }
}

/// The clocks of a programme: its PCR, and the decoding times of its picture, or of its first sound if it has no picture.
/// Time (`now`) passes only while the source delivers.
#[derive(Debug, Default)]
pub(crate) struct ProgrammeClock {
    pcr: StampClock,
    reference: StampClock,
}

impl ProgrammeClock {
    /// Records a PCR that agrees with the time stamps, as a 33-bit base.
    pub(crate) fn advance_pcr(&mut self, base: u64, now: Duration) {
        self.pcr.advance(base, now);
    }

    /// Records a decoding time of the reference stream.
    pub(crate) fn advance_reference(&mut self, decode: u64, now: Duration) {
        self.reference.advance(decode, now);
    }

    /// Returns the relation of another stream from its PES packet with this decoding time on; `None` if that has to wait
    /// for the programme.
    pub(crate) fn relation(
        &self,
        known: Relation,
        stamp: u64,
        now: Duration,
        may_wait: bool,
    ) -> Option<Relation> {
        let clocks = [&self.pcr, &self.reference];
        let is_near = match known {
            Relation::Far(_) => clocks.iter().any(|clock| clock.is_near(stamp, NEAR_AGAIN)),
            Relation::Unknown | Relation::Near => {
                clocks.iter().any(|clock| clock.is_near(stamp, JUMP) || clock.was_near(stamp, now))
            }
        };
        if is_near {
            return Some(Relation::Near);
        }
        // Before the first picture there is no time to which a stream could be moved.
        let Some(newest) = self.reference.newest else { return Some(known) };
        let to_newest = distance(stamp, newest, STAMP_MODULUS);
        match known {
            Relation::Near if may_wait => None,
            Relation::Far(anchor) if to_newest.wrapping_sub(anchor).abs() <= JUMP => Some(known),
            Relation::Unknown | Relation::Near | Relation::Far(_) => Some(Relation::Far(to_newest)),
        }
    }
}

/// Packets of streams that jumped before the programme, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct EarlyPackets {
    packets: Vec<(PacketBytes, Duration)>,
    /// When the first of them arrived.
    since: Duration,
}

impl EarlyPackets {
    pub(crate) fn push(&mut self, packet: Packet<'_>, at: Duration, now: Duration) {
        if self.packets.is_empty() {
            self.since = now;
        }
        self.packets.push((*packet.bytes(), at));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns whether they must not wait for any longer.
    pub(crate) fn is_overdue(&self, now: Duration) -> bool {
        self.packets.len() >= EARLY_PACKETS_MAX || now.saturating_sub(self.since) > EARLY_MAX
    }

    /// Returns all packets with the times of their arrival, and frees their memory.
    pub(crate) fn take(&mut self) -> Vec<(PacketBytes, Duration)> {
        std::mem::take(&mut self.packets)
    }

    pub(crate) fn retain(&mut self, mut is_wanted: impl FnMut(u16) -> bool) {
        self.packets.retain(|(packet, _)| is_wanted(Packet::new(packet).pid()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::packet::null_packet;

    const HOURS_26: f64 = 26.0 * 3_600.0;

    /// A stream beside the clocks of its programme.
    struct Model {
        clock: ProgrammeClock,
        relation: Relation,
        now: Duration,
    }

    impl Model {
        fn new() -> Self {
            Model { clock: ProgrammeClock::default(), relation: Relation::default(), now: Duration::ZERO }
        }

        /// Takes an event: `pcr=S`, `picture=S` and `sound=S` with a time in seconds, or `+S` for a time that passes.
        /// Returns the relation after the sound.
        fn event(&mut self, event: &str, start: u64) -> Option<&'static str> {
            let seconds = |text: &str| text.parse::<f64>().unwrap();
            if let Some(passed) = event.strip_prefix('+') {
                self.now += Duration::from_secs_f64(seconds(passed));
                return None;
            }
            let (name, at) = event.split_once('=').unwrap();
            let ticks = (seconds(at) * 90_000.0) as i64;
            let stamp = (start as i64 + ticks).rem_euclid(STAMP_MODULUS as i64) as u64;
            match name {
                "pcr" => self.clock.advance_pcr(stamp, self.now),
                "picture" => self.clock.advance_reference(stamp, self.now),
                _ => {
                    let Some(found) = self.clock.relation(self.relation, stamp, self.now, name == "sound")
                    else {
                        return Some("waits");
                    };
                    self.relation = found;
                    return Some(match found {
                        Relation::Unknown => "unknown",
                        Relation::Near => "near",
                        Relation::Far(_) => "far",
                    });
                }
            }
            None
        }
    }

    /// Checks the relation after each sound, with clocks that wrap at any of the times.
    #[track_caller]
    fn check(events: &str, expected: &str) {
        for start in
            [0, STAMP_MODULUS - 100 * 90_000, STAMP_MODULUS - 101 * 90_000, STAMP_MODULUS - 130 * 90_000]
        {
            let mut model = Model::new();
            let found: Vec<_> = events.split(' ').filter_map(|event| model.event(event, start)).collect();
            assert_eq!(found.join(" "), expected, "{events}, from {start} on");
        }
    }

    #[test]
    fn a_stream_belongs_to_its_programme_over_every_jump() {
        let jumps =
            [50.0, -50.0, 10.1, -10.1, 9.7, -9.7, 5.0, HOURS_26, -HOURS_26, 47_721.0, 95_443.0 - 1_800.0];
        for jump in jumps {
            let names = [("pcr", -0.3), ("picture", 0.4), ("sound", 0.0)];
            for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                let mut model = Model::new();
                // Whatever crossed a jump keeps its new time; after every event the sound is asked again.
                let mut bases = [100.0; 3];
                for (name, ahead) in names {
                    model.event(&format!("{name}={}", 100.0 + ahead), 900_000);
                }
                for n in 0..3 {
                    for crossing in order {
                        bases[crossing] += jump;
                        let mut last = None;
                        for (at, (name, ahead)) in names.iter().enumerate() {
                            let event = format!("{name}={}", bases[at] + ahead);
                            last = model.event(&event, 900_000).or(last);
                        }
                        assert_ne!(last, Some("far"), "jump {n} by {jump} s in the order {order:?}");
                        model.event("+0.1", 0);
                    }
                    assert_eq!(model.event(&format!("sound={}", bases[2]), 900_000), Some("near"));
                }
            }
        }
    }

    #[test]
    fn a_stream_that_jumps_first_waits_and_one_that_jumps_last_does_not() {
        check("picture=100 sound=100 sound=150 picture=150 sound=150", "near waits near");
        check("picture=100 sound=100 sound=150 pcr=149 sound=150", "near waits near");
        check(
            "picture=100 sound=100 picture=150 sound=100.1 +1.9 sound=100.2 sound=150",
            "near near near near",
        );
        // The last moment before it is too late, and the return of a stream that came too late.
        check(
            "picture=100 sound=100 picture=150 +2.1 sound=100.1 late=100.2 sound=150",
            "near waits far near",
        );
        // Two jumps while the sound still has the first time.
        check(
            "picture=100 sound=100 picture=150 +0.5 picture=200 +0.5 sound=101 sound=200",
            "near near near",
        );
    }

    #[test]
    fn an_unrelated_stream_is_moved_until_it_is_near_again() {
        check("picture=100 sound=5000 sound=5001 picture=102 sound=5002", "far far far");
        check("picture=100 sound=109.9 picture=200 +3 sound=210.1", "near waits");
        // It does not alternate around the limit.
        check("picture=100 sound=110.1 sound=109.9 sound=105.1 sound=104.9", "far far far near");
        // Before the first picture nothing is moved.
        check("sound=5000", "unknown");
        check("pcr=100 sound=5000 picture=100 sound=5000", "unknown far");
    }

    #[test]
    fn an_unrelated_stream_is_moved_to_the_newest_picture() {
        let mut clock = ProgrammeClock::default();
        clock.advance_reference(9_000_000, Duration::ZERO);
        let relation = |known, stamp| clock.relation(known, stamp, Duration::ZERO, false).unwrap();
        assert_eq!(relation(Relation::Unknown, 0), Relation::Far(9_000_000));
        assert_eq!(relation(Relation::Far(9_000_000), 800_000), Relation::Far(9_000_000));
        assert_eq!(relation(Relation::Far(9_000_000), 1_000_000), Relation::Far(8_000_000));
        assert_eq!(relation(Relation::Near, 0), Relation::Far(9_000_000));
    }

    #[test]
    fn the_time_and_the_number_of_early_packets_are_limited() {
        let mut early = EarlyPackets::default();
        let packet = null_packet();
        let now = Duration::from_secs(7);
        for n in 1..=EARLY_PACKETS_MAX {
            early.push(Packet::new(&packet), now, now);
            assert_eq!(early.is_overdue(now), n == EARLY_PACKETS_MAX);
        }
        early.take();
        early.push(Packet::new(&packet), now, now);
        assert!(!early.is_overdue(now + EARLY_MAX));
        assert!(early.is_overdue(now + EARLY_MAX + Duration::from_millis(1)));
    }
}
