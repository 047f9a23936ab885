//! Holds back a source that runs ahead of the wall clock.
//!
//! A program reads a recording as fast as it can. It waits while nobody reads it, and what it has not read yet costs
//! nothing, whereas what is in the ring before its time pushes out what viewers have not seen.

use std::time::Duration;

use tokio::time::Instant;

use crate::ts::clock::{PCR_HZ, pcr_step};

/// The longest that a source is held at once; what it is ahead beyond that is forgotten. One read brings no more than a
/// pipe holds, which is less than this for all but the smallest radio, so more is a clock that is wrong.
const HOLD_MAX: Duration = Duration::from_secs(10);
/// What a source fell behind it may catch up with at once, but no more than this: viewers have to take it.
const LATE_MAX: Duration = Duration::from_secs(10);
/// One part in so many of the programme is free. A live source whose clock is a little faster than ours must not be held
/// more and more; the standard allows a clock to be 30 parts in a million off.
const FREE: u32 = 10_000;

/// Measures one source, from the moment it is followed.
pub(super) struct Hold {
    ahead_max: Duration,
    last_pcr: Option<u64>,
    /// Until when it is not to be read: the time at which what was read is due, less what it may be ahead.
    until: Instant,
}

impl Hold {
    /// For a source that may be so far ahead.
    pub(super) fn new(ahead_max: Duration, now: Instant) -> Self {
        Self { ahead_max, last_pcr: None, until: now }
    }

    /// Takes a clock reference. `is_break` says that the stream declares a jump with it.
    pub(super) fn pcr(&mut self, pcr: u64, is_break: bool, now: Instant) {
        let Some(last) = self.last_pcr.replace(pcr) else {
            // The measure begins here.
            self.until = now - self.ahead_max;
            return;
        };
        // A jump counts as no time at all.
        let Some(step) = pcr_step(last, pcr, is_break) else { return };
        let programme = Duration::from_nanos(step * 1_000_000_000 / PCR_HZ);
        self.until += programme - programme / FREE;
        self.until = self.until.clamp(now - self.ahead_max - LATE_MAX, now + HOLD_MAX);
    }

    /// Until when it is not to be read; `None` while it may be.
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

    /// A source that is read whenever it may be, with a wall clock of its own.
    struct Reader {
        hold: Hold,
        began: Instant,
        now: Instant,
        longest: Duration,
    }

    impl Reader {
        fn new() -> Self {
            let now = Instant::now();
            Self { hold: Hold::new(AHEAD_MAX, now), began: now, now, longest: Duration::ZERO }
        }

        /// Takes a clock reference at this moment of the programme, and waits for as long as it is held.
        fn pcr(&mut self, programme: Duration, is_break: bool) {
            // Begins shortly before the wrap of the clock.
            let pcr = (PCR_MODULUS - PCR_HZ + (programme.as_micros() * 27) as u64) % PCR_MODULUS;
            self.hold.pcr(pcr, is_break, self.now);
            if let Some(until) = self.hold.until(self.now) {
                self.longest = self.longest.max(until - self.now);
                self.now = until;
            }
        }

        /// Reads a stretch of the programme that lies ready.
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
        // A ten thousandth is free.
        reader.took(3600.0 - 5.0 - 0.36);
        assert!(reader.longest < Duration::from_millis(50), "{:?}", reader.longest);
    }

    #[test]
    fn a_burst_of_the_past_is_read_at_once() {
        let mut reader = Reader::new();
        reader.reads(Duration::ZERO, AHEAD_MAX);
        reader.took(0.0);
    }

    #[test]
    fn what_was_late_is_caught_up_with_within_reason() {
        // So many seconds of silence, then what the programme has until here, and when that was read.
        for (late, to, took) in [(5, 10, 5.0), (10, 15, 10.0), (60, 15, 60.0), (60, 65, 110.0)] {
            let mut reader = Reader::new();
            reader.pcr(Duration::ZERO, false);
            reader.now += late * SECOND;
            reader.reads(Duration::ZERO, to * SECOND);
            reader.took(took);
        }
    }

    #[test]
    fn a_jump_of_the_clock_costs_no_time_and_gives_none() {
        for (to, is_break) in [(90_000, false), (0, false), (21, true)] {
            let mut reader = Reader::new();
            reader.reads(Duration::ZERO, 20 * SECOND);
            reader.pcr(to * SECOND, is_break);
            reader.reads(to * SECOND, (to + 20) * SECOND);
            reader.took(35.0);
        }
    }

    #[test]
    fn a_clock_that_is_wrong_does_not_stop_the_stream() {
        let mut reader = Reader::new();
        // A thousand times too fast.
        for n in 0..1000 {
            reader.pcr(n * 4 * SECOND, false);
            reader.now += Duration::from_millis(40);
        }
        assert!(reader.longest <= HOLD_MAX, "{:?}", reader.longest);
        // All at once, as one read brings it.
        let (mut hold, now) = (Hold::new(AHEAD_MAX, reader.now), reader.now);
        (0..1000).for_each(|it| hold.pcr(it * 4 * PCR_HZ, false, now));
        assert_eq!(hold.until(now), Some(now + HOLD_MAX));
        assert_eq!(hold.until(now + HOLD_MAX), None);
    }

    #[test]
    fn a_live_source_whose_clock_is_a_little_fast_is_never_held() {
        let mut reader = Reader::new();
        for step in 0..30 * 24 * 900 {
            reader.now = reader.began + step * 4 * SECOND;
            let programme = reader.now - reader.began;
            reader.pcr(programme + programme / 20_000, false);
        }
        assert_eq!(reader.longest, Duration::ZERO);
    }
}
