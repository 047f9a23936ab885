//! The programme clock held against the wall clock: does the source keep up?

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::ts::clock::{PCR_HZ, PCR_MODULUS, pcr_step};

/// Providers send in bursts. Of each stretch of this length only the moment furthest ahead counts, so that
/// the time between two bursts is not taken for slowness.
const BURST: Duration = Duration::from_secs(3);
/// How finely the past is kept.
const SAMPLE: Duration = Duration::from_millis(500);

/// How a source's programme clock holds against the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// Whose source was measured.
    pub attempt: u64,
    /// Over how long; at most the window, and anew after each jump of the clock.
    pub measured_for: Duration,
    /// Over how long it is to be measured before it says anything.
    pub window: Duration,
    /// How far the programme fell behind in that time; zero when it kept up.
    pub behind: Duration,
}

/// Measures one source.
pub(super) struct Clock {
    attempt: u64,
    window: Duration,
    run: Option<Run>,
}

/// A stretch without a jump.
struct Run {
    began: Instant,
    last_pcr: u64,
    last_at: Instant,
    /// How far the programme is ahead of the wall, in microseconds since `began`.
    lead: i64,
    /// Until when the source is not read, so that nothing can come.
    held_until: Instant,
    /// Beginning of each sample, and the greatest lead in it.
    samples: VecDeque<(Instant, i64)>,
}

impl Run {
    fn new(pcr: u64, now: Instant) -> Self {
        Self { began: now, last_pcr: pcr, last_at: now, lead: 0, held_until: now, samples: VecDeque::new() }
    }
}

impl Clock {
    pub(super) fn new(attempt: u64, window: Duration) -> Self {
        Self { attempt, window, run: None }
    }

    /// Takes a clock reference. `is_break` says that the stream declares a jump with it. After a jump the measure begins
    /// again.
    pub(super) fn pcr(&mut self, pcr: u64, is_break: bool, now: Instant) {
        let run = self.run.get_or_insert_with(|| Run::new(pcr, now));
        if let Some(step) = pcr_step(run.last_pcr, pcr, is_break) {
            let programme = i64::try_from(step * 1_000_000 / PCR_HZ).unwrap_or(i64::MAX);
            run.lead = run.lead.saturating_add(programme).saturating_sub(micros(now - run.last_at));
            // The remainder of a microsecond stays with the clock, or hours would add up to seconds.
            run.last_pcr = (run.last_pcr + programme as u64 * PCR_HZ / 1_000_000) % PCR_MODULUS;
            run.last_at = now;
        } else {
            *run = Run::new(pcr, now);
        }
        match run.samples.back_mut() {
            Some((began, lead)) if now - *began < SAMPLE => *lead = run.lead.max(*lead),
            _ => run.samples.push_back((now, run.lead)),
        }
        let kept = self.window + BURST + SAMPLE;
        while run.samples.front().is_some_and(|(began, _)| now - *began > kept) {
            run.samples.pop_front();
        }
    }

    /// The source is not read until then: it is not slow because nothing comes.
    pub(super) fn held(&mut self, until: Instant) {
        if let Some(run) = &mut self.run {
            run.held_until = until;
        }
    }

    pub(super) fn reading(&self, now: Instant) -> Option<ClockReading> {
        let run = self.run.as_ref()?;
        let furthest = |from: Duration, to: Duration| {
            let ages = run.samples.iter().map(|(began, lead)| (now.saturating_duration_since(*began), *lead));
            ages.filter(|(age, _)| (from..=to).contains(age)).map(|(_, lead)| lead).max()
        };
        // What a source sent ahead at its start is no debt when it is used up, so the start counts as zero.
        let before = furthest(self.window, self.window + BURST).unwrap_or(0).min(0);
        let silent_since = run.last_at.max(run.held_until);
        let lead = furthest(Duration::ZERO, BURST)
            .unwrap_or_else(|| run.lead.saturating_sub(micros(now.saturating_duration_since(silent_since))));
        let behind = u64::try_from(before.saturating_sub(lead)).unwrap_or(0);
        Some(ClockReading {
            attempt: self.attempt,
            measured_for: now.saturating_duration_since(run.began).min(self.window),
            window: self.window,
            behind: Duration::from_micros(behind),
        })
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(15);

    /// Runs a clock for so many seconds; `programme` says where the programme is after so many seconds.
    fn behind_after(seconds: u64, programme: impl Fn(f64) -> f64) -> ClockReading {
        let begin = Instant::now();
        let mut clock = Clock::new(1, WINDOW);
        let mut now = begin;
        for step in 0..=seconds * 25 {
            let at = step as f64 / 25.0;
            now = begin + Duration::from_secs_f64(at);
            // Begins shortly before the wrap of the clock.
            let pcr = PCR_MODULUS - PCR_HZ + (programme(at) * PCR_HZ as f64) as u64;
            clock.pcr(pcr % PCR_MODULUS, false, now);
        }
        clock.reading(now).unwrap()
    }

    #[test]
    fn a_clock_that_keeps_up_is_not_behind() {
        let steady = behind_after(60, |at| at);
        assert_eq!(
            steady,
            ClockReading { attempt: 1, measured_for: WINDOW, window: WINDOW, behind: Duration::ZERO }
        );
        assert!(
            behind_after(3600, |at| at * 0.999).behind < Duration::from_millis(100),
            "a slightly slow clock"
        );
        assert!(behind_after(60, |at| at * 1.1).behind.is_zero(), "a fast one");
        assert!(
            behind_after(60, |at| (at / 2.0).floor() * 2.0).behind < Duration::from_millis(600),
            "bursts"
        );
        assert!(behind_after(60, |at| at.max(5.0)).behind.is_zero(), "the past sent first, used up later");
    }

    #[test]
    fn a_clock_that_falls_behind_shows_it_over_the_window() {
        let slow = behind_after(19, |at| at * 0.8);
        assert_eq!(slow.measured_for, WINDOW);
        assert!(slow.behind > Duration::from_secs(2), "{slow:?}");
        let late = behind_after(320, |at| if at < 300.0 { at } else { 300.0 + (at - 300.0) * 0.5 });
        assert!(late.behind > Duration::from_secs(5), "{late:?}");
        assert!(behind_after(5, |at| at * 0.8).measured_for < WINDOW, "too early to judge");
    }

    #[test]
    fn a_jump_of_the_clock_begins_the_measure_again() {
        for jump in [-100.0, 100.0] {
            let after = behind_after(30, |at| if at < 28.0 { 200.0 + at * 0.5 } else { 200.0 + at + jump });
            assert!(after.behind.is_zero(), "{after:?}");
            assert!(after.measured_for <= Duration::from_secs(2), "{after:?}");
        }
    }

    #[test]
    fn a_clock_that_is_held_is_not_behind() {
        // Late by ten seconds, then eight seconds in each read, after which it is held.
        let begin = Instant::now();
        let mut clock = Clock::new(1, WINDOW);
        clock.pcr(0, false, begin);
        for read in 0..20 {
            let at = begin + Duration::from_secs(10 + read * 8);
            (1..=8).for_each(|it| clock.pcr((read * 8 + it) * PCR_HZ, false, at));
            clock.held(at + Duration::from_secs(8));
            for later in [0, 4, 7] {
                let reading = clock.reading(at + Duration::from_secs(later)).unwrap();
                assert!(reading.behind <= Duration::from_secs(2), "{read}: {reading:?}");
            }
        }
        let silent = clock.reading(begin + Duration::from_secs(10 + 20 * 8 + 10)).unwrap();
        assert_eq!(silent.behind, Duration::from_secs(10));
    }

    #[test]
    fn a_clock_that_stands_still_falls_behind() {
        let begin = Instant::now();
        let mut clock = Clock::new(1, WINDOW);
        clock.pcr(0, false, begin);
        let reading = clock.reading(begin + Duration::from_secs(10)).unwrap();
        assert_eq!(reading.behind, Duration::from_secs(10));
    }
}
