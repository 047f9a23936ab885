//! Programme time against wall time: when an opening burst is over, and where the programme stands now.
//!
//! Both are answered by one number per sample: programme time less arrival time, here called the *lead*.
//! A source that plays at programme rate has a constant lead, whatever it burst before.
//! Late packets lower it for a moment, a burst raises it for good. So the greatest lead of the last seconds is the
//! one of the packets that were on time, and `lead + now` is the programme time that is due now.
use std::collections::VecDeque;
use std::time::Duration;

/// Programme time, unwrapped, in units of 1/90,000 s. Signed, because lines are extended into the past.
pub(crate) type Ticks = i64;

/// Ticks per second.
pub(crate) const SECOND: Ticks = 90_000;

/// A step of the lead by more than this is a jump of the source's clock and not jitter, in ticks.
pub(crate) const JUMP: Ticks = 10 * SECOND;

/// The arrival slowed to programme rate when it did so for this long.
const SETTLED_AFTER: Duration = Duration::from_millis(100);

/// Samples closer together than this are one.
const SAMPLE_SPACING: Duration = Duration::from_millis(5);

/// Wall time in ticks.
pub(crate) fn ticks(time: Duration) -> Ticks {
    // 2^63 ticks are three million years.
    (time.as_micros() * 9 / 100) as Ticks
}

/// The clock of a source during its collection.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Arrival and newest programme time, oldest first; no older than needed to look back [`SETTLED_AFTER`].
    samples: VecDeque<(Duration, Ticks)>,
    lead: Option<Ticks>,
}

impl Pace {
    pub(crate) fn observe(&mut self, time: Ticks, at: Duration) {
        let lead = time.wrapping_sub(ticks(at));
        if self.lead.is_some_and(|before| (lead - before).abs() > JUMP)
            && self.newest().is_some_and(|n| (time - n).abs() > JUMP)
        {
            // The source's clock jumped: what was measured before belongs to another time base.
            *self = Pace::default();
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

    /// The greatest lead seen, `None` before the first sample.
    pub(crate) fn lead(&self) -> Option<Ticks> {
        self.lead
    }

    fn newest(&self) -> Option<Ticks> {
        self.samples.back().map(|sample| sample.1)
    }

    /// The programme went on no faster than one and a half times the wall clock during the last
    /// [`SETTLED_AFTER`].
    pub(crate) fn has_settled(&self, now: Duration) -> bool {
        let past = self.samples.iter().rev().find(|sample| now.saturating_sub(sample.0) >= SETTLED_AFTER);
        let (Some(past), Some(newest)) = (past, self.newest()) else { return false };
        newest - past.1 <= ticks(now - past.0) * 3 / 2
    }

    /// When [`Pace::has_settled`] becomes true if nothing more arrives.
    pub(crate) fn settles_at(&self) -> Option<Duration> {
        self.samples.back().map(|sample| sample.0 + SETTLED_AFTER)
    }
}

/// The clock of the output: which programme time is due at which wall time.
///
/// Keeps the greatest lead of each of the last seconds. A source that delivers in bursts is on time at the end of
/// each, so the greatest of [`NEAR`] is its lead; if that falls from one such span to the next the source is slower
/// than its programme, and the fall is carried on to the last sample.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Second of arrival and greatest lead in it, oldest first.
    seconds: VecDeque<(u64, Ticks)>,
    last: Option<Ticks>,
    is_old: bool,
    /// The lead at the first change of source: what the output is brought back to at each later one.
    aim: Option<Ticks>,
}

/// How much of what the programme is ahead of the aim is taken back at one change of source: a viewer's picture comes
/// so much later at most.
const BACK_MAX: Ticks = SECOND / 2;

/// How much of what it is behind is made good at one change.
const FORWARD_MAX: Ticks = SECOND / 5;

/// Seconds of one span of a [`Line`].
const NEAR: u64 = 4;

impl Line {
    /// The next sample is of another source: it replaces all there is, and until it comes all stays.
    pub(crate) fn restart(&mut self) {
        self.is_old = true;
    }

    pub(crate) fn observe(&mut self, time: Ticks, at: Duration) {
        let lead = time.wrapping_sub(ticks(at));
        let is_jump = self.last.is_some_and(|last| (lead - last).abs() > JUMP);
        if std::mem::take(&mut self.is_old) || is_jump {
            self.seconds.clear();
        }
        if is_jump {
            self.aim = None;
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

    /// The lead that the next source is to have. Where a source begins is never known exactly: one that holds its
    /// packets back for a moment shows only later how far it really is. The error is small, but to the same side each
    /// time; so it is taken back at the next change, or a day of changes would put the programme a minute ahead.
    pub(crate) fn next_lead(&mut self) -> Option<Ticks> {
        let lead = self.lead()?;
        let aim = *self.aim.get_or_insert(lead);
        if (aim - lead).abs() > JUMP {
            self.aim = Some(lead);
            return Some(lead);
        }
        Some(lead + (aim - lead).clamp(-BACK_MAX, FORWARD_MAX))
    }

    /// Programme time due at wall time zero: add the wall time to have it for any other instant.
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

    /// Programme milliseconds that arrived at wall milliseconds, and the lead in milliseconds expected after them.
    fn check_line(samples: impl IntoIterator<Item = (u64, i64)>, expected_ms: i64, within_ms: i64) {
        let mut line = Line::default();
        for (at, time) in samples {
            line.observe(time * 90, ms(at));
        }
        let lead = line.lead().unwrap() / 90;
        assert!((lead - expected_ms).abs() <= within_ms, "lead {lead} ms, expected {expected_ms} ms");
    }

    #[test]
    fn the_line_of_a_steady_source_is_its_lead() {
        check_line((0..200).map(|i| (i * 40, 1_000 + i as i64 * 40)), 1_000, 0);
    }

    #[test]
    fn an_opening_burst_belongs_to_the_line() {
        let burst = (0..50).map(|i| (i, i as i64 * 100));
        let steady = (2..200).map(|i| (i * 50, 5_000 + i as i64 * 50));
        check_line(burst.chain(steady), 5_000, 100);
    }

    #[test]
    fn a_loss_in_the_middle_of_a_burst_does_not_move_the_line() {
        // A second of programme at once, each second; the last burst is cut in half.
        let bursts =
            (0..20u64).flat_map(|s| (0..10).map(move |i| (s * 1_000 + i, (s * 1_000 + i * 100) as i64)));
        check_line(bursts.take(195), 900, 20);
    }

    #[test]
    fn a_slow_source_is_followed_down() {
        // Half the programme rate for 15 s.
        check_line((0..300).map(|i| (i * 50, i as i64 * 25)), -7_500, 600);
    }

    #[test]
    fn a_stall_without_catching_up_is_followed_down() {
        let before = (0..200).map(|i| (i * 40, i as i64 * 40));
        let after = (0..150).map(|i| (11_000 + i * 40, 8_000 + i as i64 * 40));
        check_line(before.chain(after), -3_000, 10);
    }

    #[test]
    fn late_packets_do_not_move_the_line() {
        check_line((0..200).map(|i| (i * 40 + i * 7919 % 150, i as i64 * 40)), 0, 20);
    }

    #[test]
    fn a_jump_of_the_clock_begins_a_new_line() {
        let before = (0..100).map(|i| (i * 40, 90_000_000 + i as i64 * 40));
        let after = (100..120).map(|i| (i * 40, i as i64 * 40));
        check_line(before.chain(after), 0, 0);
    }

    #[test]
    fn a_burst_is_over_when_arrival_slows_to_programme_rate() {
        let mut pace = Pace::default();
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
        let mut pace = Pace::default();
        for i in 0..100 {
            pace.observe(i * 4_500, ms(3));
        }
        assert!(!pace.has_settled(ms(102)));
        assert_eq!(pace.settles_at(), Some(ms(103)));
        assert!(pace.has_settled(ms(103)));
    }

    #[test]
    fn a_source_faster_than_its_programme_never_settles() {
        let mut pace = Pace::default();
        for i in 0..300 {
            pace.observe(i * 9_000, ms(i as u64));
            assert!(!pace.has_settled(ms(i as u64)));
        }
    }
}
