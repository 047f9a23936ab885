//! Compares the programme clock with the wall clock, to detect a source that is too slow.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::ts::clock::{PCR_HZ, PCR_MODULUS, pcr_step};

/// Longest programme that a live source may send at once and then be silent for.
const BURST_MAX: Duration = Duration::from_secs(6);
/// Less programme at once is not a burst: pictures are large and small, and networks are not punctual.
const BURST_MIN: Duration = Duration::from_secs(1);
/// A burst may come this much late.
const BURST_LATE_MAX: Duration = Duration::from_secs(2);
/// Only the greatest lead within this time counts, so that the pause between two bursts is not taken for slowness.
const PEAK_WINDOW: Duration = BURST_MAX.saturating_add(BURST_LATE_MAX);
/// Length of one sample.
const SAMPLE: Duration = Duration::from_millis(500);

/// The programme clock of a source compared with the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// Number of the attempt.
    pub attempt: u64,
    /// Length of the measurement: at most the window, starting again after each jump of the clock.
    pub measured_for: Duration,
    /// Length of a measurement that is long enough to judge the source.
    pub window: Duration,
    /// How far the programme fell behind in that time; zero if it kept up.
    pub behind: Duration,
}

/// Measures one source.
pub(super) struct ClockMonitor {
    attempt: u64,
    window: Duration,
    run: Option<Measurement>,
}

/// A period without a jump of the clock.
struct Measurement {
    began: Instant,
    last_pcr: u64,
    last_at: Instant,
    /// Lead of the programme over the wall clock since `began`, in microseconds.
    lead: i64,
    /// End of the current pause in reading, before which nothing can arrive.
    paused_until: Instant,
    samples: VecDeque<Sample>,
}

/// The leads measured within [`SAMPLE`].
struct Sample {
    began: Instant,
    /// The greatest lead, right after the arrival of data.
    peak: i64,
    /// The smallest lead, right before the arrival of data.
    trough: i64,
}

impl Measurement {
    fn new(pcr: u64, now: Instant) -> Self {
        Self { began: now, last_pcr: pcr, last_at: now, lead: 0, paused_until: now, samples: VecDeque::new() }
    }
}

impl ClockMonitor {
    pub(super) fn new(attempt: u64, window: Duration) -> Self {
        Self { attempt, window, run: None }
    }

    /// Records a clock reference. `is_break` is true if the stream declares a discontinuity. The measurement
    /// starts again after a jump.
    pub(super) fn pcr(&mut self, pcr: u64, is_break: bool, now: Instant) {
        let run = self.run.get_or_insert_with(|| Measurement::new(pcr, now));
        let mut trough = run.lead;
        if let Some(step) = pcr_step(run.last_pcr, pcr, is_break) {
            let programme = i64::try_from(step * 1_000_000 / PCR_HZ).unwrap_or(i64::MAX);
            trough = trough.saturating_sub(micros(now - run.last_at));
            run.lead = trough.saturating_add(programme);
            // The fraction of a microsecond stays in `last_pcr`; otherwise the errors of hours would add up
            // to seconds.
            run.last_pcr = (run.last_pcr + programme as u64 * PCR_HZ / 1_000_000) % PCR_MODULUS;
            run.last_at = now;
        } else {
            *run = Measurement::new(pcr, now);
            trough = 0;
        }
        match run.samples.back_mut() {
            Some(sample) if now - sample.began < SAMPLE => {
                (sample.peak, sample.trough) = (sample.peak.max(run.lead), sample.trough.min(trough));
            }
            _ => run.samples.push_back(Sample { began: now, peak: run.lead, trough }),
        }
        let kept = self.window + PEAK_WINDOW + SAMPLE;
        while run.samples.front().is_some_and(|it| now - it.began > kept) {
            run.samples.pop_front();
        }
    }

    /// Returns the time after the last data within which the next data is due, judged by the bursts in which this source
    /// has sent lately; zero for a source that sends evenly.
    pub(super) fn silence_to_expect(&self) -> Duration {
        let Some(run) = &self.run else { return Duration::ZERO };
        let recent = run.samples.iter().rev().take_while(|it| run.last_at - it.began <= PEAK_WINDOW);
        let burst = run.lead.saturating_sub(recent.map(|it| it.trough).min().unwrap_or(run.lead));
        match Duration::from_micros(u64::try_from(burst).unwrap_or(0)).min(BURST_MAX) {
            burst if burst < BURST_MIN => Duration::ZERO,
            burst => burst + BURST_LATE_MAX,
        }
    }

    /// Records that the source is not read until then, so that it is not considered slow meanwhile.
    pub(super) fn pause(&mut self, until: Instant) {
        if let Some(run) = &mut self.run {
            run.paused_until = until;
        }
    }

    pub(super) fn reading(&self, now: Instant) -> Option<ClockReading> {
        let run = self.run.as_ref()?;
        let furthest = |from: Duration, to: Duration| {
            let ages = run.samples.iter().map(|it| (now.saturating_duration_since(it.began), it.peak));
            ages.filter(|(age, _)| (from..=to).contains(age)).map(|(_, peak)| peak).max()
        };
        // An initial lead that is used up later is not a delay, so the start counts as zero.
        let before = furthest(self.window, self.window + PEAK_WINDOW).unwrap_or(0).min(0);
        let silent_since = run.last_at.max(run.paused_until);
        let lead = furthest(Duration::ZERO, PEAK_WINDOW)
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

    /// Runs a clock for this many seconds; `programme` maps wall time to programme time, in seconds.
    fn behind_after(seconds: u64, programme: impl Fn(f64) -> f64) -> ClockReading {
        let begin = Instant::now();
        let mut clock = ClockMonitor::new(1, WINDOW);
        let mut now = begin;
        for step in 0..=seconds * 25 {
            let at = step as f64 / 25.0;
            now = begin + Duration::from_secs_f64(at);
            // Starts shortly before the wrap of the clock.
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
        // At every moment of the pause between two bursts.
        for burst in [3.0, 4.5, 6.0] {
            for seconds in 60..72 {
                let reading = behind_after(seconds, |at| (at / burst).floor() * burst);
                assert!(reading.behind < Duration::from_millis(600), "bursts of {burst} s: {reading:?}");
            }
        }
    }

    #[test]
    fn a_slow_clock_is_behind_over_the_window() {
        let slow = behind_after(19, |at| at * 0.8);
        assert_eq!(slow.measured_for, WINDOW);
        assert!(slow.behind > Duration::from_secs(2), "{slow:?}");
        let late = behind_after(320, |at| if at < 300.0 { at } else { 300.0 + (at - 300.0) * 0.5 });
        assert!(late.behind > Duration::from_secs(5), "{late:?}");
        assert!(behind_after(5, |at| at * 0.8).measured_for < WINDOW, "too early to judge");
    }

    #[test]
    fn a_jump_of_the_clock_restarts_the_measurement() {
        for jump in [-100.0, 100.0] {
            let after = behind_after(30, |at| if at < 28.0 { 200.0 + at * 0.5 } else { 200.0 + at + jump });
            assert!(after.behind.is_zero(), "{after:?}");
            assert!(after.measured_for <= Duration::from_secs(2), "{after:?}");
        }
    }

    #[test]
    fn a_clock_of_a_paused_source_is_not_behind() {
        // Late by ten seconds, then eight seconds in each read, with a pause after each.
        let begin = Instant::now();
        let mut clock = ClockMonitor::new(1, WINDOW);
        clock.pcr(0, false, begin);
        for read in 0..20 {
            let at = begin + Duration::from_secs(10 + read * 8);
            (1..=8).for_each(|it| clock.pcr((read * 8 + it) * PCR_HZ, false, at));
            clock.pause(at + Duration::from_secs(8));
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
        let mut clock = ClockMonitor::new(1, WINDOW);
        clock.pcr(0, false, begin);
        let reading = clock.reading(begin + Duration::from_secs(10)).unwrap();
        assert_eq!(reading.behind, Duration::from_secs(10));
    }
}
