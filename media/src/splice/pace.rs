//! Compares programme time with wall time, to detect the end of an opening burst and the programme time that is due now.
//!
//! Both follow from the *lead* of each sample: programme time less arrival time. A source at programme rate has a
//! constant lead, whatever burst it started with. Late packets reduce the lead for a moment, a burst increases it
//! permanently. The greatest lead of the last seconds is therefore that of the packets that were on time, and
//! `lead + now` is the programme time that is due now.
use std::collections::VecDeque;
use std::time::Duration;

/// Unwrapped programme time in units of 1/90,000 s. Signed, because times are extrapolated into the past.
pub(crate) type Ticks = i64;

/// Ticks per second.
pub(crate) const SECOND: Ticks = 90_000;

/// A greater step of the lead, in ticks, is a jump of the source's clock instead of jitter.
pub(crate) const JUMP: Ticks = 10 * SECOND;

/// The burst is over when packets have arrived at programme rate for this long.
const SETTLED_AFTER: Duration = Duration::from_millis(100);

/// Samples closer together than this are merged.
const SAMPLE_SPACING: Duration = Duration::from_millis(5);

/// Converts wall time to ticks.
pub(crate) fn ticks(time: Duration) -> Ticks {
    // 2^63 ticks are three million years.
    (time.as_micros() * 9 / 100) as Ticks
}

/// The arrival rate of a source before its output starts.
#[derive(Debug, Default)]
pub(crate) struct SourcePace {
    /// Arrival and newest programme time, oldest first, no older than needed to look back [`SETTLED_AFTER`].
    samples: VecDeque<(Duration, Ticks)>,
    lead: Option<Ticks>,
}

impl SourcePace {
    pub(crate) fn observe(&mut self, time: Ticks, at: Duration) {
        let lead = time.wrapping_sub(ticks(at));
        if self.lead.is_some_and(|before| (lead - before).abs() > JUMP)
            && self.newest().is_some_and(|n| (time - n).abs() > JUMP)
        {
            // The source's clock jumped: earlier samples belong to another time base.
            *self = SourcePace::default();
        }
        self.lead = Some(self.lead.map_or(lead, |before| before.max(lead)));
        let newest = self.newest().map_or(time, |before| before.max(time));
        let n = self.samples.len();
        if n >= 2 && at.saturating_sub(self.samples[n - 2].0) < SAMPLE_SPACING {
            self.samples[n - 1] = (at, newest);
        } else {
            self.samples.push_back((at, newest));
        }
        while self.samples.get(1).is_some_and(|second| at.saturating_sub(second.0) >= SETTLED_AFTER) {
            self.samples.pop_front();
        }
    }

    /// Returns the greatest lead; `None` before the first sample.
    pub(crate) fn lead(&self) -> Option<Ticks> {
        self.lead
    }

    /// Returns the newest programme time.
    pub(crate) fn newest(&self) -> Option<Ticks> {
        self.samples.back().map(|sample| sample.1)
    }

    /// Returns whether the programme advanced at most one and a half times as fast as the wall clock during
    /// the last [`SETTLED_AFTER`].
    pub(crate) fn has_settled(&self, now: Duration) -> bool {
        let past = self.samples.iter().rev().find(|sample| now.saturating_sub(sample.0) >= SETTLED_AFTER);
        let (Some(past), Some(newest)) = (past, self.newest()) else { return false };
        newest - past.1 <= ticks(now - past.0) * 3 / 2
    }

    /// Returns when [`SourcePace::has_settled`] becomes true if nothing more arrives.
    pub(crate) fn settles_at(&self) -> Option<Duration> {
        self.samples.back().map(|sample| sample.0 + SETTLED_AFTER)
    }
}

/// The clock of the output: the programme time that is due at a wall time.
///
/// Stores the greatest lead of each of the last seconds. A source that delivers in bursts is on time at the
/// end of each burst, so the greatest lead within [`NEAR`] is its lead. If that falls from one such span to
/// the next, the source is slower than its programme, and the fall is extrapolated to the last sample.
#[derive(Debug, Default)]
pub(crate) struct OutputClock {
    /// Second of arrival and the greatest lead in it, oldest first.
    seconds: VecDeque<(u64, Ticks)>,
    last: Option<Ticks>,
    is_outdated: bool,
    /// The lead at the first change of source, to which the output returns at later changes.
    target_lead: Option<Ticks>,
}

/// Maximum correction of a lead above the target at one change of source: the picture of a viewer is delayed
/// by at most this much.
const BACK_MAX: Ticks = SECOND / 2;

/// Maximum correction of a lead below the target at one change of source.
const FORWARD_MAX: Ticks = SECOND / 5;

/// Length of one span of an [`OutputClock`], in seconds.
const NEAR: u64 = 4;

impl OutputClock {
    /// Announces that the next sample is of another source and replaces all samples; until then they are
    /// kept.
    pub(crate) fn restart(&mut self) {
        self.is_outdated = true;
    }

    pub(crate) fn observe(&mut self, time: Ticks, at: Duration) {
        let lead = time.wrapping_sub(ticks(at));
        let is_jump = self.last.is_some_and(|last| (lead - last).abs() > JUMP);
        if std::mem::take(&mut self.is_outdated) || is_jump {
            self.seconds.clear();
        }
        if is_jump {
            self.target_lead = None;
        }
        self.last = Some(lead);
        let second = at.as_secs();
        match self.seconds.back_mut() {
            Some((newest, greatest)) if *newest >= second => *greatest = lead.max(*greatest),
            _ => self.seconds.push_back((second, lead)),
        }
        while self.seconds.front().is_some_and(|oldest| oldest.0 + 2 * NEAR <= second) {
            self.seconds.pop_front();
        }
    }

    /// Returns the lead for the next source.
    ///
    /// The lead of a new source is never known exactly: a source that delays its packets for a moment reveals
    /// its real lead only later. The error is small but always in the same direction, so it is corrected at
    /// the next change. Otherwise a day of changes would shift the programme by a minute.
    pub(crate) fn next_lead(&mut self) -> Option<Ticks> {
        let lead = self.lead()?;
        let target_lead = *self.target_lead.get_or_insert(lead);
        if (target_lead - lead).abs() > JUMP {
            self.target_lead = Some(lead);
            return Some(lead);
        }
        Some(lead + (target_lead - lead).clamp(-BACK_MAX, FORWARD_MAX))
    }

    /// Returns how far [`OutputClock::next_lead`] is above the lead at the first change: by so much sources have made the
    /// output later since.
    pub(crate) fn excess(&self) -> Ticks {
        let (Some(lead), Some(target)) = (self.lead(), self.target_lead) else { return 0 };
        (lead - target - BACK_MAX).max(0)
    }

    /// Returns the programme time that is due at wall time zero; add the wall time for any other moment.
    pub(crate) fn lead(&self) -> Option<Ticks> {
        let last = self.last?;
        let newest_second = self.seconds.back()?.0;
        let greatest = |near: bool| {
            let is_wanted = |second: u64| (second + NEAR > newest_second) == near;
            self.seconds.iter().filter(|entry| is_wanted(entry.0)).map(|entry| entry.1).max()
        };
        let near = greatest(true)?;
        let fall = greatest(false).map_or(0, |far| (far - near).max(0));
        Some((near - fall).clamp(last.min(near), near))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Adds samples (wall milliseconds, programme milliseconds) and checks the lead in milliseconds after
    /// them.
    fn check_clock(samples: impl IntoIterator<Item = (u64, i64)>, expected_ms: i64, within_ms: i64) {
        let mut clock = OutputClock::default();
        for (at, time) in samples {
            clock.observe(time * 90, ms(at));
        }
        let lead = clock.lead().unwrap() / 90;
        assert!((lead - expected_ms).abs() <= within_ms, "lead {lead} ms, expected {expected_ms} ms");
    }

    #[test]
    fn the_clock_of_a_steady_source_is_its_lead() {
        check_clock((0..200).map(|i| (i * 40, 1_000 + i as i64 * 40)), 1_000, 0);
    }

    #[test]
    fn an_opening_burst_counts_in_the_output_clock() {
        let burst = (0..50).map(|i| (i, i as i64 * 100));
        let steady = (2..200).map(|i| (i * 50, 5_000 + i as i64 * 50));
        check_clock(burst.chain(steady), 5_000, 100);
    }

    #[test]
    fn a_loss_in_the_middle_of_a_burst_does_not_change_the_output_clock() {
        // One second of programme at once per second; the last burst is cut in half.
        let bursts =
            (0..20u64).flat_map(|s| (0..10).map(move |i| (s * 1_000 + i, (s * 1_000 + i * 100) as i64)));
        check_clock(bursts.take(195), 900, 20);
    }

    #[test]
    fn the_output_clock_follows_a_slow_source() {
        // Half the programme rate for 15 s.
        check_clock((0..300).map(|i| (i * 50, i as i64 * 25)), -7_500, 600);
    }

    #[test]
    fn the_output_clock_follows_a_stall_without_catching_up() {
        let before = (0..200).map(|i| (i * 40, i as i64 * 40));
        let after = (0..150).map(|i| (11_000 + i * 40, 8_000 + i as i64 * 40));
        check_clock(before.chain(after), -3_000, 10);
    }

    #[test]
    fn late_packets_do_not_change_the_output_clock() {
        check_clock((0..200).map(|i| (i * 40 + i * 7919 % 150, i as i64 * 40)), 0, 20);
    }

    #[test]
    fn a_jump_of_the_clock_restarts_the_output_clock() {
        let before = (0..100).map(|i| (i * 40, 90_000_000 + i as i64 * 40));
        let after = (100..120).map(|i| (i * 40, i as i64 * 40));
        check_clock(before.chain(after), 0, 0);
    }

    #[test]
    fn a_burst_is_over_when_arrival_slows_to_programme_rate() {
        let mut pace = SourcePace::default();
        for i in 0..100 {
            pace.observe(i * 4_500, ms(i as u64 / 2));
            assert!(!pace.has_settled(ms(i as u64 / 2)), "still bursting at packet {i}");
        }
        for i in 0..4 {
            pace.observe(100 * 4_500 + i * 3_600, ms(50 + i as u64 * 40));
        }
        assert!(pace.has_settled(ms(170)));
        assert_eq!(pace.lead().unwrap() / 900, 495);
    }

    #[test]
    fn silence_after_a_burst_ends_it() {
        let mut pace = SourcePace::default();
        for i in 0..100 {
            pace.observe(i * 4_500, ms(3));
        }
        assert!(!pace.has_settled(ms(102)));
        assert_eq!(pace.settles_at(), Some(ms(103)));
        assert!(pace.has_settled(ms(103)));
    }

    #[test]
    fn a_source_faster_than_its_programme_never_settles() {
        let mut pace = SourcePace::default();
        for i in 0..300 {
            pace.observe(i * 9_000, ms(i as u64));
            assert!(!pace.has_settled(ms(i as u64)));
        }
    }
}
