//! Pauses the reading of a source that runs ahead of the wall clock.
//!
//! A program reads a recording as fast as it can, and a web server sends one as fast as it is read. Both wait while
//! nobody reads. Data that was not read yet costs nothing, whereas data that enters the ring too early evicts data that
//! viewers have not received.
//!
//! A live provider does not wait, so it is never paused. It may send some of its past first; a source that gets further
//! ahead than any live provider does is taken for a recording.

use std::time::Duration;

use tokio::time::Instant;

use crate::ts::clock::{PCR_HZ, pcr_step};

/// Maximum length of a pause; a longer lead is forgotten. While a source is paused it is read in small pieces, so a
/// longer lead means that the clock is wrong.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// A source that was late may catch up at once by at most this much, because viewers have to receive the
/// data.
const LATE_MAX: Duration = Duration::from_secs(10);
/// One part in this many of the programme is not counted, so that a live source whose clock is slightly fast
/// is not paused more and more. The standard allows an error of 30 parts per million.
const UNCOUNTED_PART: u32 = 10_000;
/// The same for a source that is not paced, so that a live source is never paused because of its clock, however wrong it
/// is for a live source. A recording is sent many times faster than it plays.
const UNCOUNTED_PART_OF_LIVE: u32 = 50;

/// The bit rate is known after this much programme.
const RATE_AFTER: Duration = Duration::from_secs(1);

/// Measures one source from the moment it is followed.
pub(super) struct Pacer {
    lead_max: Duration,
    /// Maximum number of bytes that are read before they are due.
    bytes_max: usize,
    /// Whether the source is known to wait while it is not read.
    is_paced: bool,
    last_pcr: Option<u64>,
    /// The time at which the newest data is due.
    due: Instant,
    /// Bytes read, and the programme in them.
    n_bytes: usize,
    programme: Duration,
}

impl Pacer {
    /// Creates a pacer for a source that waits while it is not read. Its data is due from `due` on, or from its first
    /// clock reference on if that is later.
    pub(super) fn new(lead_max: Duration, due: Instant) -> Self {
        Self {
            lead_max,
            bytes_max: usize::MAX,
            is_paced: true,
            last_pcr: None,
            due,
            n_bytes: 0,
            programme: Duration::ZERO,
        }
    }

    /// Limits the lead to this many bytes.
    pub(super) fn with_bytes_max(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }

    /// Creates a pacer for a source that probably does not wait, unless its lead exceeds `lead_max`.
    pub(super) fn live(lead_max: Duration, now: Instant) -> Self {
        Self { is_paced: false, ..Self::new(lead_max, now) }
    }

    /// Records that bytes were read.
    pub(super) fn bytes(&mut self, n_bytes: usize) {
        self.n_bytes = self.n_bytes.saturating_add(n_bytes);
    }

    /// Records a clock reference. `is_break` is true if the stream declares a discontinuity.
    pub(super) fn pcr(&mut self, pcr: u64, is_break: bool, now: Instant) {
        let Some(last) = self.last_pcr.replace(pcr) else {
            // The measurement starts here.
            self.due = self.due.max(now);
            return;
        };
        let Some(step) = pcr_step(last, pcr, is_break) else { return };
        let programme = Duration::from_nanos(step * 1_000_000_000 / PCR_HZ);
        self.programme = self.programme.saturating_add(programme);
        let uncounted_part = if self.is_paced { UNCOUNTED_PART } else { UNCOUNTED_PART_OF_LIVE };
        self.due += programme - programme / uncounted_part;
        self.is_paced |= self.due > now + self.lead_max;
        self.due = self.due.clamp(now - LATE_MAX, now + self.lead() + PAUSE_MAX);
    }

    /// Sets when the newest data that was read is due, if the source is paced.
    pub(super) fn set_due(&mut self, due: Instant) {
        if self.is_paced {
            self.due = due;
        }
    }

    /// The next clock reference has nothing to do with the last one.
    pub(super) fn forget_clock(&mut self) {
        self.last_pcr = None;
    }

    /// Returns whether the source is read no faster than its programme runs.
    pub(super) fn is_paced(&self) -> bool {
        self.is_paced
    }

    /// Returns the time at which the newest data that was read is due.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Returns the end of the pause; `None` while the source may be read.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        Some(self.due - self.lead()).filter(|it| self.is_paced && *it > now)
    }

    /// Returns the maximum lead: less than `lead_max` if so much programme has too many bytes.
    fn lead(&self) -> Duration {
        if self.programme < RATE_AFTER || self.bytes_max == usize::MAX {
            return self.lead_max;
        }
        self.lead_max.min(self.programme.mul_f64(self.bytes_max as f64 / self.n_bytes.max(1) as f64))
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
    fn a_source_is_taken_for_a_recording_when_it_gets_further_ahead_than_live_sources_do() {
        for (burst, took) in [(20, 0.0), (25, 0.0), (40, 14.5), (600, 574.5)] {
            let now = Instant::now();
            let pacer = Pacer::live(25 * SECOND, now);
            let mut reader = Reader { pacer, began: now, now, longest: Duration::ZERO };
            reader.reads(Duration::ZERO, burst * SECOND);
            reader.took(took);
        }
    }

    #[test]
    fn the_lead_is_limited_in_bytes() {
        // A million bytes per second.
        for (bytes_max, took) in [(8_000_000, 52.0), (80_000_000, 35.0)] {
            let now = Instant::now();
            let pacer = Pacer::new(25 * SECOND, now).with_bytes_max(bytes_max);
            let mut reader = Reader { pacer, began: now, now, longest: Duration::ZERO };
            for step in 0..=1_500 {
                reader.pacer.bytes(40_000);
                reader.pcr(Duration::from_millis(40) * step, false);
            }
            reader.took(took);
        }
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

    #[test]
    fn a_live_source_with_a_wrong_clock_is_never_taken_for_a_recording() {
        let now = Instant::now();
        let mut pacer = Pacer::live(25 * SECOND, now);
        // A burst of twenty seconds, then a month with a clock that is one percent too fast.
        let burst = (0..20).map(|it| (now, it * PCR_HZ));
        let month = (1..30 * 24 * 900)
            .map(|it| (now + it * 4 * SECOND, (20 * 100 + u64::from(it) * 404) * (PCR_HZ / 100)));
        for (at, pcr) in burst.chain(month) {
            pacer.pcr(pcr % PCR_MODULUS, false, at);
        }
        assert!(!pacer.is_paced());
    }
}
