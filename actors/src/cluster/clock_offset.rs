//! How far the wall clock of another node is from that of this one. Nothing in the cluster depends on it, but schedules and
//! logins do.
//!
//! Each renewal says at which time it was written. It arrives later, by the time that it was on the way; the fastest of the
//! last minute counts, which is usually some milliseconds.

use std::collections::VecDeque;

/// Renewals that count: those of a minute.
const SAMPLES_MAX: usize = 20;

/// The ages of the last renewals of a node, as this one saw them.
#[derive(Debug, Default)]
pub(super) struct ClockSamples(VecDeque<i64>);

impl ClockSamples {
    /// Adds a renewal that was written and that arrived at these times, in milliseconds since 1970.
    pub(super) fn add(&mut self, written_at: i64, arrived_at: i64) {
        if self.0.len() == SAMPLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(arrived_at.saturating_sub(written_at));
    }

    /// Returns by how many milliseconds the clock of the node is ahead; negative if it is behind. `None`: not known yet.
    pub(super) fn ahead_ms(&self) -> Option<i64> {
        self.0.iter().min().map(|it| it.saturating_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_renewal_of_the_last_minute_tells_the_offset() {
        let mut samples = ClockSamples::default();
        assert_eq!(samples.ahead_ms(), None);
        // Late by 40 ms and by 3 ms; the clock is 2 s ahead.
        samples.add(12_000, 10_040);
        samples.add(15_000, 13_003);
        samples.add(18_000, 16_900);
        assert_eq!(samples.ahead_ms(), Some(1_997));
        // It is set back by an hour.
        for at in 0..SAMPLES_MAX as i64 {
            samples.add(at * 3_000, at * 3_000 + 3_600_005);
        }
        assert_eq!(samples.ahead_ms(), Some(-3_600_005));
        samples.add(i64::MIN, i64::MAX);
        assert!(samples.ahead_ms().is_some());
    }
}
