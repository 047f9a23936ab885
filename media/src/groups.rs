//! The distance of the random-access points of a stream: what is known of it, how it is measured, and how long a point is
//! waited for.

use std::time::Duration;

use crate::ts::clock::PCR_HZ;

/// Longest wait for the picture of a new source, while its sound or the previous source plays.
pub const PICTURE_WAIT_MAX: Duration = Duration::from_secs(12);

/// A stream without a random-access point for this long has none.
const NO_POINTS_AFTER: u64 = 24 * PCR_HZ;

/// A greater step of the clock from one chunk to the next is a jump.
const JUMP: u64 = 10 * PCR_HZ;

/// The distance of the random-access points of a stream, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupLength {
    /// It was never measured.
    #[default]
    Unknown,
    /// The longest recent distance.
    Known(Duration),
    /// The stream has none, as with intra refresh.
    None,
}

impl GroupLength {
    /// Returns how long a random-access point is waited for: one and a half groups, and no less than `usual`.
    pub(crate) fn picture_wait(self, usual: Duration) -> Duration {
        match self {
            GroupLength::Unknown => PICTURE_WAIT_MAX,
            GroupLength::Known(group) => {
                (group.min(PICTURE_WAIT_MAX) * 3 / 2).max(usual).min(PICTURE_WAIT_MAX)
            }
            GroupLength::None => usual.min(PICTURE_WAIT_MAX),
        }
    }
}

/// Measures the distance of random-access points from the chunks of a stream, on the programme clock.
#[derive(Debug, Default)]
pub(crate) struct GroupMeter {
    /// The length that was known before.
    known: GroupLength,
    /// The time of the first chunk without a break.
    since: Option<u64>,
    /// The time of the newest random-access point without a break.
    point: Option<u64>,
    newest: Option<u64>,
    longest: u64,
    has_points: bool,
}

impl GroupMeter {
    /// Creates a meter for a stream of which this is known.
    pub(crate) fn new(known: GroupLength) -> Self {
        let longest = match known {
            GroupLength::Known(group) => u64::try_from(group.as_micros() * 27).unwrap_or(0),
            GroupLength::Unknown | GroupLength::None => 0,
        };
        Self { known, longest, ..Self::default() }
    }

    /// Something is missing before the next chunk.
    pub(crate) fn interrupt(&mut self) {
        (self.since, self.point, self.newest) = (None, None, None);
    }

    /// Adds a chunk that starts at this programme time, in ticks of 27 MHz.
    pub(crate) fn chunk(&mut self, time: Option<u64>, is_point: bool) {
        let Some(time) = time else { return };
        if self.newest.is_some_and(|newest| newest.abs_diff(time) > JUMP) {
            self.interrupt();
        }
        self.newest = Some(time);
        self.since.get_or_insert(time);
        if is_point {
            self.has_points = true;
            let step = self.point.replace(time).and_then(|before| time.checked_sub(before));
            if let Some(step) = step.filter(|step| *step > 0) {
                self.longest = step.max(self.longest - self.longest / 8);
            }
        }
    }

    /// Returns what is known now.
    pub(crate) fn length(&self) -> GroupLength {
        let without =
            self.newest.zip(self.point.or(self.since)).map(|(newest, from)| newest.saturating_sub(from));
        match self.longest {
            _ if without.is_some_and(|it| it > NO_POINTS_AFTER.max(2 * self.longest)) => GroupLength::None,
            0 if self.has_points => GroupLength::Unknown,
            0 => self.known,
            longest => GroupLength::Known(Duration::from_micros(longest / 27)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn known(ms: u64) -> GroupLength {
        GroupLength::Known(Duration::from_millis(ms))
    }

    #[test]
    fn one_and_a_half_groups_are_waited_for_but_no_less_than_usual_and_at_most_twelve_seconds() {
        let usual = Duration::from_secs(1);
        for (group, wait_ms) in [
            (GroupLength::Unknown, 12_000),
            (GroupLength::None, 1_000),
            (known(40), 1_000),
            (known(2_000), 3_000),
            (known(10_000), 12_000),
            (known(3_600_000), 12_000),
        ] {
            assert_eq!(group.picture_wait(usual), Duration::from_millis(wait_ms), "{group:?}");
        }
        assert_eq!(GroupLength::None.picture_wait(Duration::from_secs(60)), PICTURE_WAIT_MAX);
    }

    /// Measures a stream with a chunk each 40 ms for these seconds, with random-access points at these times.
    #[track_caller]
    fn check(before: GroupLength, seconds: u64, points_ms: &[u64], expected: GroupLength) {
        let mut meter = GroupMeter::new(before);
        for n in 0..=seconds * 25 {
            meter.chunk(Some(1_000_000 + n * 40 * 27_000), points_ms.contains(&(n * 40)));
        }
        assert_eq!(meter.length(), expected, "points at {points_ms:?} ms after {before:?}");
    }

    #[test]
    fn the_longest_recent_distance_is_measured() {
        check(GroupLength::Unknown, 10, &[], GroupLength::Unknown);
        check(GroupLength::Unknown, 10, &[2_000], GroupLength::Unknown);
        check(GroupLength::Unknown, 10, &[2_000, 4_000, 6_000], known(2_000));
        check(GroupLength::Unknown, 20, &[2_000, 12_000, 14_000], known(8_750));
        check(known(8_000), 10, &[], known(8_000));
        check(known(8_000), 10, &[1_000, 3_000], known(7_000));
    }

    #[test]
    fn a_stream_without_points_for_24_s_has_none_until_one_is_seen() {
        check(GroupLength::Unknown, 24, &[], GroupLength::Unknown);
        check(GroupLength::Unknown, 25, &[], GroupLength::None);
        check(known(4_000), 25, &[], GroupLength::None);
        check(GroupLength::Unknown, 30, &[4_000, 5_000], GroupLength::None);
        check(GroupLength::None, 10, &[], GroupLength::None);
        check(GroupLength::None, 10, &[5_000], GroupLength::Unknown);
        check(GroupLength::None, 10, &[3_000, 5_000], known(2_000));
        check(GroupLength::Unknown, 60, &[0, 20_000, 40_000], known(20_000));
    }

    #[test]
    fn neither_a_gap_nor_a_jump_of_the_clock_is_a_distance() {
        let mut meter = GroupMeter::default();
        let seconds = |n: u64| Some(n * PCR_HZ);
        meter.chunk(seconds(1), true);
        meter.interrupt();
        meter.chunk(seconds(9), true);
        assert_eq!(meter.length(), GroupLength::Unknown);
        meter.chunk(seconds(3_600), true);
        meter.chunk(seconds(2), false);
        meter.chunk(None, true);
        assert_eq!(meter.length(), GroupLength::Unknown);
        meter.chunk(seconds(4), true);
        meter.chunk(seconds(7), true);
        assert_eq!(meter.length(), known(3_000));
    }
}
