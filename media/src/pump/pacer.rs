//! Pauses the reading of a source that runs ahead of the wall clock.
//!
//! A program reads a recording as fast as it can, and pauses while its output is not read. Data that it has
//! not read yet costs nothing, whereas data that enters the ring too early evicts data that viewers have not
//! received.

use std::time::Duration;

use tokio::time::Instant;

use crate::ts::clock::{PCR_HZ, pcr_step};

/// Maximum length of a pause; a longer lead is forgotten. One read returns no more than a pipe holds, which
/// is less than this for all but the smallest radio streams, so a longer lead means that the clock is wrong.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// A source that was late may catch up at once by at most this much, because viewers have to receive the
/// data.
const LATE_MAX: Duration = Duration::from_secs(10);
/// One part in this many of the programme is not counted, so that a live source whose clock is slightly fast
/// is not paused more and more. The standard allows an error of 30 parts per million.
const UNCOUNTED_PART: u32 = 10_000;

/// Measures one source from the moment it is followed.
pub(super) struct Pacer {
    ahead_max: Duration,
    last_pcr: Option<u64>,
    /// The time from which the source may be read: the due time of the data read so far, less the allowed
    /// lead.
    until: Instant,
}

impl Pacer {
    /// Creates a pacer for a source with this maximum lead.
    pub(super) fn new(ahead_max: Duration, now: Instant) -> Self {
        Self { ahead_max, last_pcr: None, until: now }
    }

    /// Records a clock reference. `is_break` is true if the stream declares a discontinuity.
    pub(super) fn pcr(&mut self, pcr: u64, is_break: bool, now: Instant) {
        let Some(last) = self.last_pcr.replace(pcr) else {
            // The measurement starts here.
            self.until = now - self.ahead_max;
            return;
        };
        let Some(step) = pcr_step(last, pcr, is_break) else { return };
        let programme = Duration::from_nanos(step * 1_000_000_000 / PCR_HZ);
        self.until += programme - programme / UNCOUNTED_PART;
        self.until = self.until.clamp(now - self.ahead_max - LATE_MAX, now + PAUSE_MAX);
    }

    /// Returns the end of the pause; `None` while the source may be read.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        Some(self.until).filter(|it| *it > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::clock::PCR_MODULUS;

    const AHEAD_MAX: Duration = Duration::from_secs(5);
    const SECOND: Duration = Duration::from_secs(1);

    /// Reads a source whenever the pacer allows it, with a simulated wall clock.
    struct Reader {
        pacer: Pacer,
        began: Instant,
        now: Instant,
        longest: Duration,
    }

    impl Reader {
        fn new() -> Self {
            let now = Instant::now();
            Self { pacer: Pacer::new(AHEAD_MAX, now), began: now, now, longest: Duration::ZERO }
        }

        /// Records a clock reference at this moment of the programme, and waits until the pause is over.
        fn pcr(&mut self, programme: Duration, is_break: bool) {
            // Starts shortly before the wrap of the clock.
            let pcr = (PCR_MODULUS - PCR_HZ + (programme.as_micros() * 27) as u64) % PCR_MODULUS;
            self.pacer.pcr(pcr, is_break, self.now);
            if let Some(until) = self.pacer.until(self.now) {
                self.longest = self.longest.max(until - self.now);
                self.now = until;
            }
        }

        /// Reads a part of the programme that is available at once.
        fn reads(&mut self, from: Duration, to: Duration) {
            let step = Duration::from_millis(40);
            (0..).map(|it| from + step * it).take_while(|it| *it <= to).for_each(|it| self.pcr(it, false));
        }

        #[track_caller]
        fn took(&self, seconds: f64) {
            let took = (self.now - self.began).as_secs_f64();
            assert!((took - seconds).abs() < 0.5, "{took} s instead of {seconds} s");
        }
    }

    #[test]
    fn a_recording_is_read_at_the_rate_of_its_programme() {
        let mut reader = Reader::new();
        reader.reads(Duration::ZERO, 3600 * SECOND);
        // One ten-thousandth is not counted.
        reader.took(3600.0 - 5.0 - 0.36);
        assert!(reader.longest < Duration::from_millis(50), "{:?}", reader.longest);
    }

    #[test]
    fn an_opening_burst_is_read_at_once() {
        let mut reader = Reader::new();
        reader.reads(Duration::ZERO, AHEAD_MAX);
        reader.took(0.0);
    }

    #[test]
    fn a_late_source_catches_up_by_a_limited_amount() {
        // Seconds of silence, end of the programme that is read then, and the time at which that has been
        // read.
        for (late, to, took) in [(5, 10, 5.0), (10, 15, 10.0), (60, 15, 60.0), (60, 65, 110.0)] {
            let mut reader = Reader::new();
            reader.pcr(Duration::ZERO, false);
            reader.now += late * SECOND;
            reader.reads(Duration::ZERO, to * SECOND);
            reader.took(took);
        }
    }

    #[test]
    fn a_jump_of_the_clock_changes_no_pause() {
        for (to, is_break) in [(90_000, false), (0, false), (21, true)] {
            let mut reader = Reader::new();
            reader.reads(Duration::ZERO, 20 * SECOND);
            reader.pcr(to * SECOND, is_break);
            reader.reads(to * SECOND, (to + 20) * SECOND);
            reader.took(35.0);
        }
    }

    #[test]
    fn a_wrong_clock_does_not_stop_the_stream() {
        let mut reader = Reader::new();
        // 100 times too fast.
        for n in 0..1000 {
            reader.pcr(n * 4 * SECOND, false);
            reader.now += Duration::from_millis(40);
        }
        assert!(reader.longest <= PAUSE_MAX, "{:?}", reader.longest);
        // All in one read.
        let (mut pacer, now) = (Pacer::new(AHEAD_MAX, reader.now), reader.now);
        (0..1000).for_each(|it| pacer.pcr(it * 4 * PCR_HZ, false, now));
        assert_eq!(pacer.until(now), Some(now + PAUSE_MAX));
        assert_eq!(pacer.until(now + PAUSE_MAX), None);
    }

    #[test]
    fn a_live_source_with_a_slightly_fast_clock_is_never_paused() {
        let mut reader = Reader::new();
        for step in 0..30 * 24 * 900 {
            reader.now = reader.began + step * 4 * SECOND;
            let programme = reader.now - reader.began;
            reader.pcr(programme + programme / 20_000, false);
        }
        assert_eq!(reader.longest, Duration::ZERO);
    }
}
