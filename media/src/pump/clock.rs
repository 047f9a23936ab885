//! Compares the programme clock with the wall clock, to detect a source that is too slow.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::ts::clock::{PCR_HZ, PCR_MODULUS, pcr_step};

/// Longest programme that a live source may send at once and then be silent for.
const BURST_MAX: Duration = Duration::from_secs(12);
/// Less programme at once is not a burst: pictures are large and small, and networks are not punctual.
const BURST_MIN: Duration = Duration::from_secs(1);
/// A burst may come this much late.
const BURST_LATE_MAX: Duration = Duration::from_secs(2);
/// Only the greatest lead within this time counts, so that the pause between two bursts is not taken for slowness.
const PEAK_WINDOW_MIN: Duration = Duration::from_secs(8);
/// The same for a source that pauses for longer.
const PEAK_WINDOW_MAX: Duration = BURST_MAX.saturating_add(BURST_LATE_MAX);
/// A source that sends programme more slowly than this many times the wall clock sends no burst.
const BURST_RATE_MIN: f64 = 1.25;
/// A longer pause ends a burst.
const BURST_PAUSE_MAX: Duration = Duration::from_secs(1);
/// Data that arrives this long after the first burst shows that it was the past that many providers send at the start.
const START_BURST_JUDGED: Duration = Duration::from_secs(2);
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
    /// End of the burst with which the measurement began, as far as it is known.
    start_burst_end: Instant,
    is_start_burst: bool,
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
        Self {
            began: now,
            last_pcr: pcr,
            last_at: now,
            lead: 0,
            paused_until: now,
            samples: VecDeque::new(),
            start_burst_end: now,
            is_start_burst: true,
        }
    }

    /// Follows the burst with which the source began. Called when a sample is complete.
    fn follow_start_burst(&mut self, now: Instant) {
        let mut newest = self.samples.iter().rev();
        let (Some(last), before) = (newest.next(), newest.next()) else { return };
        let growth = last.peak.saturating_sub(before.map_or(0, |it| it.peak));
        let is_fast = growth as f64 >= micros(SAMPLE) as f64 * (BURST_RATE_MIN - 1.0);
        self.is_start_burst &= is_fast && now - self.last_at <= BURST_PAUSE_MAX;
        if self.is_start_burst {
            self.start_burst_end = now;
        }
    }

    /// Returns whether data arrived for some time after the first burst. Before that, nobody knows whether more follow.
    fn went_on(&self) -> bool {
        self.last_at > self.start_burst_end + START_BURST_JUDGED
    }

    /// Returns the silence to expect after a burst that ends with this lead.
    fn silence_after(&self, lead: i64) -> Duration {
        let burst = lead.saturating_sub(self.recent().map(|it| it.trough).min().unwrap_or(lead));
        match Duration::from_micros(u64::try_from(burst).unwrap_or(0)).min(BURST_MAX) {
            burst if burst < BURST_MIN => Duration::ZERO,
            burst => burst + BURST_LATE_MAX,
        }
    }

    /// Returns the samples that show the bursts in which the source has sent lately.
    fn recent(&self) -> impl Iterator<Item = &Sample> {
        let counted_after = self.went_on().then_some(self.start_burst_end);
        self.samples.iter().rev().take_while(move |it| {
            self.last_at - it.began <= PEAK_WINDOW_MAX && counted_after.is_none_or(|after| it.began > after)
        })
    }

    /// Returns the time within which the greatest lead counts.
    fn peak_window(&self) -> Duration {
        let begins = self.samples.iter().map(|it| it.began);
        let pauses = begins.clone().zip(begins.skip(1)).map(|(before, after)| after - before);
        let longest = pauses.max().unwrap_or_default();
        longest.saturating_add(BURST_LATE_MAX).clamp(PEAK_WINDOW_MIN, PEAK_WINDOW_MAX)
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
        if run.samples.back().is_some_and(|it| now - it.began >= SAMPLE) && run.is_start_burst {
            run.follow_start_burst(now);
        }
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
        let kept = self.window + PEAK_WINDOW_MAX + SAMPLE;
        while run.samples.front().is_some_and(|it| now - it.began > kept) {
            run.samples.pop_front();
        }
    }

    /// Returns the time after the last data within which the next data is due, judged by the bursts in which this source
    /// has sent lately; zero for a source that sends evenly. Its first burst counts until more data has come.
    pub(super) fn silence_to_expect(&self) -> Duration {
        self.run.as_ref().map_or(Duration::ZERO, |it| it.silence_after(it.lead))
    }

    /// Returns the silence to expect after the largest of the last bursts, if the source has shown that they are not only
    /// the past that it sends at the start. The present one may have only begun.
    pub(super) fn learned_silence(&self) -> Option<Duration> {
        let run = self.run.as_ref().filter(|it| it.went_on())?;
        Some(run.silence_after(run.recent().map(|it| it.peak).max().unwrap_or(run.lead)))
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
        let peak_window = run.peak_window();
        // An initial lead that is used up later is not a delay, so the start counts as zero.
        let before = furthest(self.window, self.window + peak_window).unwrap_or(0).min(0);
        let silent_since = run.last_at.max(run.paused_until);
        let lead = furthest(Duration::ZERO, peak_window)
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

    /// Sends `past` at once, and from then on bursts of this length, each at this rate. Returns the silence to expect after
    /// each read.
    fn expected(past: u64, burst: f64, rate: f64, seconds: u64) -> Vec<(f64, Duration)> {
        let begin = Instant::now();
        let mut clock = ClockMonitor::new(1, WINDOW);
        let mut expected = Vec::new();
        let mut programme = 0.0;
        for step in 0..=seconds * 25 {
            let at = step as f64 / 25.0;
            let due = past as f64 + (at / burst).floor() * burst + ((at % burst) * rate).min(burst);
            if step == 0 {
                clock.pcr(PCR_HZ, false, begin);
            }
            if due > programme {
                while due > programme {
                    programme = due.min(programme + 0.5);
                    let pcr = PCR_HZ + (programme * PCR_HZ as f64) as u64;
                    clock.pcr(pcr, false, begin + Duration::from_secs_f64(at));
                }
                expected.push((at, clock.silence_to_expect()));
            }
        }
        expected
    }

    #[test]
    fn bursts_of_three_to_ten_seconds_lead_to_the_silence_to_expect() {
        for burst in [3.0, 5.0, 8.0, 10.0] {
            for rate in [4.0, 100.0] {
                let (at, silence) =
                    *expected(0, burst, rate, 60 / burst as u64 * burst as u64 - 1).last().unwrap();
                let longest = Duration::from_secs_f64(burst) + BURST_LATE_MAX;
                // A burst takes time, during which the wall clock goes on.
                let shortest = Duration::from_secs_f64(burst - burst / rate) + BURST_LATE_MAX / 2;
                assert!(
                    silence > shortest && silence <= longest,
                    "{burst} s at rate {rate}, {at} s: {silence:?}"
                );
            }
        }
    }

    #[test]
    fn a_start_burst_does_not_count_as_rhythm() {
        for past in [3, 10, 20] {
            let even = expected(past, 0.04, 1.0, 20);
            assert!(even[0].1 > Duration::from_secs(4), "nobody knows yet: {:?}", even[0]);
            let known = even.iter().filter(|it| it.0 > 2.6);
            assert!(known.clone().count() > 300);
            for (at, silence) in known {
                assert!(silence.is_zero(), "{past} s at once, {at} s: {silence:?}");
            }
        }
    }

    #[test]
    fn a_start_burst_that_takes_some_seconds_does_not_count_as_rhythm() {
        // Ten seconds at four times the rate, then the rate.
        let begin = Instant::now();
        let mut clock = ClockMonitor::new(1, WINDOW);
        for step in 0..500 {
            let at = f64::from(step) / 25.0;
            let programme = (at * 4.0).min(7.5 + at);
            clock.pcr((programme * PCR_HZ as f64) as u64, false, begin + Duration::from_secs_f64(at));
            if at > 5.6 {
                assert!(clock.silence_to_expect().is_zero(), "{at} s: {:?}", clock.silence_to_expect());
            }
        }
    }

    #[test]
    fn a_source_in_long_bursts_is_not_behind_during_its_pauses() {
        for burst in [7, 8, 10] {
            let begin = Instant::now();
            let mut clock = ClockMonitor::new(1, WINDOW);
            for n in 0..12 {
                let at = begin + Duration::from_secs(n * burst);
                (0..=burst).for_each(|it| clock.pcr((n * burst + it) * PCR_HZ, false, at));
                for later in 1..burst {
                    let reading = clock.reading(at + Duration::from_secs(later)).unwrap();
                    assert!(reading.behind < Duration::from_millis(600), "{burst} s, {n}: {reading:?}");
                }
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
