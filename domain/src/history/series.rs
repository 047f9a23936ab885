//! The columns that a page draws: samples of one subject in steps of equal length.

use super::block::{Block, Resolution};
use super::{HistorySample, HistorySubject};

/// Maximum number of steps of a series.
pub const POINTS_MAX: usize = 2_000;
/// Minimum number of points: the border of a step may be inside of any span.
pub const POINTS_MIN: usize = 2;

/// The steps that answer a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// The blocks that are read.
    pub resolution: Resolution,
    /// Start of the first step, in seconds since 1970.
    pub start: i64,
    /// Length of a step, in seconds: a multiple of that of a block.
    pub step_seconds: i64,
    pub n_steps: usize,
}

impl Steps {
    /// Returns the finest steps between two times with at most this many points. Times are in seconds since 1970. Steps are
    /// coarse if they begin before the fine blocks that the file still has at `now`.
    pub fn new(from: i64, until: i64, points: usize, now: i64) -> Self {
        let is_recent = from >= now.saturating_sub(Resolution::FINE.span_seconds());
        let points = i64::try_from(points.clamp(POINTS_MIN, POINTS_MAX)).unwrap_or(2);
        let fine = Self::from_blocks(Resolution::FINE, from, until, points);
        let coarse = Self::from_blocks(Resolution::COARSE, from, until, points);
        // Steps of whole hours are the same from both, and need a twelfth of the blocks.
        let is_hourly = fine.step_seconds % i64::from(Resolution::COARSE.step_seconds) == 0;
        if is_recent && !is_hourly { fine } else { coarse }
    }

    fn from_blocks(resolution: Resolution, from: i64, until: i64, points: i64) -> Self {
        let unit = i64::from(resolution.step_seconds);
        let last = until.saturating_sub(1).max(from);
        let steps = |step: i64| {
            let first = from.div_euclid(step);
            let n_steps = usize::try_from(last.div_euclid(step) - first + 1).unwrap_or(1);
            Self { resolution, start: first.saturating_mul(step), step_seconds: step, n_steps }
        };
        let n_blocks = last.div_euclid(unit) - from.div_euclid(unit) + 1;
        let least = unit.saturating_mul((n_blocks + points - 1).div_euclid(points));
        // The first step may begin before the span, so the shortest steps may be one too many.
        let enough = unit.saturating_mul((n_blocks + points - 2).div_euclid(points - 1));
        let finest = steps(least);
        if i64::try_from(finest.n_steps).is_ok_and(|it| it <= points) { finest } else { steps(enough) }
    }

    /// Returns the end of the last step, in seconds since 1970.
    pub fn end(&self) -> i64 {
        let steps = i64::try_from(self.n_steps).unwrap_or(i64::MAX);
        self.start.saturating_add(self.step_seconds.saturating_mul(steps))
    }

    /// Returns the starts of the blocks that a file has of these steps at this time, in seconds since 1970.
    pub fn block_starts(&self, now: i64) -> impl Iterator<Item = i64> + use<> {
        let unit = i64::from(self.resolution.step_seconds);
        let newest = self.resolution.start(now);
        let oldest = newest.saturating_sub(self.resolution.span_seconds()).saturating_add(unit);
        let (first, end) = (self.start.max(oldest), self.end().min(newest.saturating_add(unit)));
        let n_blocks = end.saturating_sub(first).max(0) / unit;
        (0..n_blocks).map(move |it| first + it * unit)
    }
}

/// Samples of a subject, one for each step; `None` where nothing is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    pub steps: Steps,
    pub samples: Vec<Option<HistorySample>>,
}

impl Series {
    /// Creates a series in which nothing is known.
    pub fn new(steps: Steps) -> Self {
        Self { steps, samples: vec![None; steps.n_steps] }
    }

    /// Adds what a block knows about a subject.
    pub fn add(&mut self, block: &Block, subject: HistorySubject) {
        let Some(sample) = block.sample(subject) else { return };
        self.add_sample(block.start, &sample);
    }

    /// Adds a sample whose span begins at this time, in seconds since 1970. One outside of the steps is ignored.
    pub fn add_sample(&mut self, at: i64, sample: &HistorySample) {
        let place = at.saturating_sub(self.steps.start).div_euclid(self.steps.step_seconds);
        let place = usize::try_from(place).ok().and_then(|it| self.samples.get_mut(it));
        if let Some(place) = place {
            place.get_or_insert_default().add(sample);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::history::tests::{any_sample, gateway_block};
    use crate::ids::ChannelId;

    const HOUR: i64 = 3_600;
    const DAY: i64 = 24 * HOUR;
    /// A whole day since 1970.
    const NOW: i64 = 20_000 * DAY + 7 * HOUR;

    #[track_caller]
    fn check(
        from: i64,
        until: i64,
        points: usize,
        resolution: Resolution,
        step_seconds: i64,
        n_steps: usize,
    ) {
        let steps = Steps::new(NOW - from, NOW - until, points, NOW);
        assert_eq!(
            (steps.resolution, steps.step_seconds, steps.n_steps),
            (resolution, step_seconds, n_steps)
        );
    }

    #[test]
    fn a_request_gets_the_finest_steps_that_fit_into_its_points() {
        check(6 * HOUR, 0, 300, Resolution::FINE, 300, 72);
        check(DAY, 0, 300, Resolution::FINE, 300, 288);
        check(DAY, 0, 100, Resolution::FINE, 900, 96);
        // Whole hours come from the coarse blocks.
        check(DAY, 0, 24, Resolution::COARSE, HOUR, 24);
        check(2 * DAY, 0, 2_000, Resolution::FINE, 300, 576);
        check(3 * DAY, 0, 2_000, Resolution::COARSE, HOUR, 72);
        check(60 * DAY, 0, 2_000, Resolution::COARSE, HOUR, 1_440);
        check(60 * DAY, 0, 300, Resolution::COARSE, 5 * HOUR, 289);
        check(1, 0, 2, Resolution::FINE, 300, 1);
    }

    proptest! {
        #[test]
        fn steps_cover_the_span_and_stay_within_their_number(
            from in -4_000_000_000_i64..8_000_000_000,
            length in 1_i64..8_000_000_000,
            points in 0_usize..3_000,
            now in 0_i64..8_000_000_000,
        ) {
            let until = from + length;
            let steps = Steps::new(from, until, points, now);
            prop_assert!((1..=points.clamp(POINTS_MIN, POINTS_MAX)).contains(&steps.n_steps));
            prop_assert!(steps.start <= from && steps.end() >= until);
            prop_assert_eq!(steps.step_seconds % i64::from(steps.resolution.step_seconds), 0);
            prop_assert!(steps.block_starts(now).count() <= steps.resolution.n_blocks);
        }

        #[test]
        fn longer_steps_keep_sums_and_maxima(samples in prop::collection::vec(any_sample(), 1..60), points in 2_usize..20) {
            let first = NOW - DAY;
            let until = first + 300 * i64::try_from(samples.len()).unwrap();
            let mut whole = HistorySample::default();
            let mut series = Series::new(Steps::new(first, until, points, NOW));
            for (at, sample) in (first..).step_by(300).zip(&samples) {
                whole.add(sample);
                series.add(&gateway_block(at, sample), HistorySubject::Gateway);
            }
            let mut sum = HistorySample::default();
            series.samples.iter().flatten().for_each(|it| sum.add(it));
            prop_assert_eq!(sum, whole);
        }
    }

    #[test]
    fn a_channel_that_did_not_play_is_zero_while_the_gateway_ran_and_unknown_otherwise() {
        let steps = Steps::new(NOW - 900, NOW, 10, NOW);
        let mut series = Series::new(steps);
        let ran = HistorySample { seconds: 300, ..HistorySample::default() };
        series.add(&gateway_block(NOW - 600, &ran), HistorySubject::Channel(ChannelId(7)));
        assert_eq!(series.samples, [None, Some(ran), None]);
    }
}
