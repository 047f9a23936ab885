//! When a plugin that crashed starts again, and when it does not.

use std::collections::VecDeque;
use std::time::Duration;

/// Pauses before a start after crashes in a row, in seconds.
const PAUSES_S: [u64; 5] = [1, 5, 30, 120, 600];
/// This many crashes in [`WINDOW_MS`] are too many.
const CRASHES_MAX: usize = 5;
/// The time in which crashes are counted, in milliseconds.
const WINDOW_MS: u64 = 600_000;
/// A process that was ready for this long did not fail at its start, in milliseconds.
const HEALTHY_MS: u64 = 600_000;
/// A plugin that crashed at this many starts of the gateway in a row has failed.
pub(super) const GATEWAY_STARTS_MAX: u32 = 3;

/// The crashes of a plugin since the gateway started.
#[derive(Clone, Debug, Default)]
pub(super) struct Crashes {
    /// Times of the last crashes, in milliseconds since any moment.
    times: VecDeque<u64>,
    /// Crashes since the last time that the plugin was well.
    in_row: usize,
}

/// The consequence of a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterCrash {
    /// It starts again after this pause.
    Restart(Duration),
    /// It has failed.
    Fail,
}

impl Crashes {
    /// Notes a crash at this time of a process that was ready for this long, both in milliseconds.
    pub(super) fn note(&mut self, now_ms: u64, ready_ms: u64) -> AfterCrash {
        self.times.push_back(now_ms);
        while self.times.front().is_some_and(|it| now_ms.saturating_sub(*it) >= WINDOW_MS) {
            self.times.pop_front();
        }
        if self.times.len() >= CRASHES_MAX {
            return AfterCrash::Fail;
        }
        if ready_ms >= HEALTHY_MS {
            self.in_row = 0;
        }
        let pause = PAUSES_S[self.in_row.min(PAUSES_S.len() - 1)];
        self.in_row += 1;
        AfterCrash::Restart(Duration::from_secs(pause))
    }

    /// Forgets all crashes: an admin acted.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_five_crashes_in_ten_minutes_are_a_failure() {
        let mut crashes = Crashes::default();
        let mut crash = |at_s: u64| crashes.note(at_s * 1_000, 0);
        let restart = |it| AfterCrash::Restart(Duration::from_secs(it));
        for (at, expected) in [(0, restart(1)), (2, restart(5)), (8, restart(30)), (40, restart(120))] {
            assert_eq!(crash(at), expected, "{at}");
        }
        assert_eq!(crash(599), AfterCrash::Fail);
        crashes.clear();
        assert_eq!(crashes.note(600_000, 0), restart(1));
    }

    #[test]
    fn crashes_that_are_far_apart_never_fail_and_a_long_life_resets_the_pause() {
        let mut crashes = Crashes::default();
        let pauses: Vec<_> = (0..7).map(|it| crashes.note(it * 200_000, 0)).collect();
        let expected = [1, 5, 30, 120, 600, 600, 600].map(|it| AfterCrash::Restart(Duration::from_secs(it)));
        assert_eq!(pauses, expected);
        assert_eq!(crashes.note(9_000_000, HEALTHY_MS), AfterCrash::Restart(Duration::from_secs(1)));
    }
}
