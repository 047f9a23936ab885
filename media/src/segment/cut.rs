//! Decides where segments begin and end. Pure: times are arguments, in ticks of 90 kHz, unwrapped.
//!
//! A segment ends at the random-access point that is nearest to the wanted length. The first segments of a window end
//! earlier, so that playing begins soon; the first one is complete within [`FIRST_READY_MAX`] of the first picture,
//! whatever the distance of random-access points. When the first segment is complete, the target duration is fixed: the
//! longest of the wanted length, that segment, and the longest distance of random-access points so far. From then on no
//! segment is longer: if no random-access point comes in time, the segment is cut at any picture. A player that is already
//! playing does not notice; one that begins with such a segment waits for the next random-access point.
//!
//! A hole in the time stamps, as a failover leaves one, belongs to the segment before it if that segment does not become
//! too long. Otherwise, and if time stamps go back, the segment ends with its last picture, and a discontinuity follows.

use std::time::Duration;

use super::settings::SegmentSettings;
use crate::ts::clock::STAMP_HZ;

/// A longer step between two pictures is a hole, and a longer step backwards than that of reordered pictures is a break.
const STEP_MAX: u64 = STAMP_HZ;
/// Shorter segments are only made where the stream changes.
const SHORTEST: u64 = STAMP_HZ / 2;
/// The first segments of a window end at the first random-access point after this time.
const FIRST: u64 = STAMP_HZ;
/// The first segment begins with any picture if no random-access point came for this long.
const POINT_WAIT_MAX: u64 = 11 * STAMP_HZ;
/// The first segment is complete this long after the first picture, so that a player gets its playlist within
/// `proxy.start_timeout` of 15 s: a channel needs a second for its start, and a segment up to one for its sound.
const FIRST_READY_MAX: u64 = 12 * STAMP_HZ;
/// Number of segments that are made short at the start.
const N_FIRST: u32 = 2;
/// A segment may exceed the target duration by less than half a second, because its length is rounded.
const ROUNDING: u64 = STAMP_HZ * 4 / 10;

/// The action before a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Nothing: the picture belongs to the segment, or is left out if there is none.
    Continue,
    /// The first segment starts.
    Start,
    /// A segment of this length ends, and the next one starts.
    Cut {
        /// Ticks from the first picture of the segment to its end.
        length: u64,
        /// Whether the codecs, their parameters or the time line change here.
        is_break: bool,
    },
}

/// Decides where segments begin.
#[derive(Debug)]
pub(super) struct Cutter {
    target: u64,
    longest: u64,
    /// The target duration in seconds, once it is fixed.
    target_duration: Option<u64>,
    open: Option<Open>,
    /// The longest recent distance of random-access points.
    distance: u64,
    last_point: Option<u64>,
    /// The newest picture that was left out because no random-access point came before it.
    last_left_out: Option<u64>,
    /// How long pictures were left out before the first segment.
    waited: u64,
    n_started: u32,
}

/// The segment that is being made.
#[derive(Clone, Copy, Debug)]
struct Open {
    start: u64,
    /// The earliest and the latest presentation time. Leading pictures are shown before the first one.
    oldest: u64,
    newest: u64,
    n_pictures: u64,
}

impl Cutter {
    /// Creates a cutter without a segment.
    pub(super) fn new(settings: &SegmentSettings) -> Self {
        let ticks = |it: Duration| it.as_millis() as u64 * (STAMP_HZ / 1000);
        Self {
            target: ticks(settings.target),
            longest: ticks(settings.longest),
            target_duration: None,
            open: None,
            distance: 0,
            last_point: None,
            last_left_out: None,
            waited: 0,
            n_started: 0,
        }
    }

    /// Returns the target duration of the playlist in seconds, once the first segment is complete.
    pub(super) fn target_duration(&self) -> Option<u64> {
        self.target_duration
    }

    /// Decides what happens before a picture with this presentation time (an audio frame, without video). `is_change` is
    /// true if codecs or parameters change with it, and `is_full` if the segment may take no more bytes.
    pub(super) fn picture(&mut self, time: u64, is_point: bool, is_change: bool, is_full: bool) -> Decision {
        let Some(open) = self.open else { return self.first(time, is_point) };
        let is_back = time + STEP_MAX < open.newest;
        let has_hole = time > open.newest + STEP_MAX;
        let elapsed = time.saturating_sub(open.start);
        let is_break = is_back || is_change && is_point || has_hole && elapsed > self.limit();
        if is_back || has_hole {
            // The next random-access point is not at a distance that the encoder chose.
            self.last_point = None;
        }
        if is_point {
            self.count_point(time);
        }
        if is_break {
            let is_too_long = is_back || elapsed > self.limit() || has_hole;
            let length = if is_too_long { self.own_length(open) } else { elapsed };
            return self.cut(time, length, true);
        }
        if is_full || elapsed >= self.limit() || is_point && self.is_good_end(elapsed) {
            return self.cut(time, elapsed.min(self.limit()), false);
        }
        let (oldest, newest) = (open.oldest.min(time), open.newest.max(time));
        self.open = Some(Open { oldest, newest, n_pictures: open.n_pictures + 1, ..open });
        Decision::Continue
    }

    /// Returns the length of the segment that is being made, if nothing follows.
    pub(super) fn finish(&mut self) -> Option<u64> {
        let open = self.open.take()?;
        let length = self.own_length(open);
        self.fix_target_duration(length);
        Some(length)
    }

    /// Moves the beginning of the segment that is being made to this time, because all times change with it.
    pub(super) fn rebase(&mut self, time: u64) {
        if let Some(open) = &mut self.open {
            (open.start, open.oldest, open.newest) = (time, time, time);
        }
        self.last_point = self.last_point.map(|_| time);
    }

    fn first(&mut self, time: u64, is_point: bool) -> Decision {
        // No time has passed in a jump of the clock.
        let step = self.last_left_out.replace(time).and_then(|it| time.checked_sub(it));
        self.waited += step.filter(|it| *it <= POINT_WAIT_MAX).unwrap_or(0);
        // A stream whose random-access points are not recognised is cut by time alone.
        if !is_point && self.waited < POINT_WAIT_MAX {
            return Decision::Continue;
        }
        if is_point {
            self.last_point = Some(time);
        }
        self.open = Some(Open { start: time, oldest: time, newest: time, n_pictures: 1 });
        self.n_started = 1;
        Decision::Start
    }

    fn count_point(&mut self, time: u64) {
        let step = self.last_point.replace(time).and_then(|it| time.checked_sub(it));
        if let Some(step) = step {
            self.distance = step.min(self.longest).max(self.distance - self.distance / 8);
        }
    }

    /// Returns whether a segment may end at a random-access point after this time.
    fn is_good_end(&self, elapsed: u64) -> bool {
        let is_first = self.n_started <= N_FIRST && elapsed >= FIRST;
        let is_nearest = elapsed + self.distance / 2 >= self.target;
        let is_last_chance = elapsed + self.distance > self.limit();
        elapsed >= SHORTEST && (is_first || is_nearest || is_last_chance)
    }

    /// Returns the longest allowed segment.
    fn limit(&self) -> u64 {
        let first = || self.longest.min(FIRST_READY_MAX.saturating_sub(self.waited)).max(FIRST);
        self.target_duration.map_or_else(first, |it| it * STAMP_HZ + ROUNDING)
    }

    /// Returns the length up to the end of the last picture.
    fn own_length(&self, open: Open) -> u64 {
        let shown = open.newest - open.oldest;
        let picture = if open.n_pictures > 1 { shown / (open.n_pictures - 1) } else { STAMP_HZ / 25 };
        (shown + picture.min(STEP_MAX)).clamp(1, self.limit())
    }

    fn cut(&mut self, time: u64, length: u64, is_break: bool) -> Decision {
        self.fix_target_duration(length);
        self.open = Some(Open { start: time, oldest: time, newest: time, n_pictures: 1 });
        self.n_started = self.n_started.saturating_add(1);
        Decision::Cut { length: length.max(1), is_break }
    }

    fn fix_target_duration(&mut self, length: u64) {
        // Random-access points are at least as far apart as the wait for the first one was long.
        let longest = self.target.max(self.distance).max(length).max(self.waited.min(self.longest));
        self.target_duration.get_or_insert(longest.div_ceil(STAMP_HZ).max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = STAMP_HZ / 1000;

    /// Passes pictures with these times in milliseconds, `K` for a random-access point, `C` for one with a change, and
    /// returns the segments as `length`, with `!` for a break before the next one.
    fn segments(pictures: impl IntoIterator<Item = (u64, char)>) -> (Vec<String>, Option<u64>) {
        let mut cutter = Cutter::new(&SegmentSettings::default());
        let mut all = Vec::new();
        for (ms, kind) in pictures {
            match cutter.picture(ms * MS, kind != '-', kind == 'C', false) {
                Decision::Cut { length, is_break } => {
                    all.push(format!("{}{}", length / MS, if is_break { "!" } else { "" }));
                }
                Decision::Continue | Decision::Start => {}
            }
        }
        (all, cutter.target_duration())
    }

    /// Pictures every 40 ms, with a random-access point every so many milliseconds.
    fn regular(from: u64, to: u64, distance: u64) -> impl Iterator<Item = (u64, char)> {
        (from..to)
            .step_by(40)
            .map(move |it| (it, if (it - from).is_multiple_of(distance) { 'K' } else { '-' }))
    }

    #[track_caller]
    fn check(distance: u64, expected: &[&str], target_duration: u64) {
        let (all, target) = segments(regular(1000, 40_000, distance));
        assert_eq!(all[..expected.len()], *expected, "random-access points every {distance} ms");
        assert_eq!(target, Some(target_duration));
    }

    #[test]
    fn a_segment_ends_at_the_random_access_point_nearest_to_its_wanted_length() {
        check(1000, &["1000", "1000", "4000", "4000"], 4);
        check(2000, &["2000", "2000", "4000", "4000"], 4);
        check(480, &["1440", "1440", "3840", "3840"], 4);
        check(1920, &["1920", "1920", "3840", "3840"], 4);
        check(3000, &["3000", "3000", "3000"], 4);
        check(5000, &["5000", "5000", "5000"], 5);
        check(9600, &["9600", "9600", "9600"], 10);
    }

    #[test]
    fn a_segment_without_a_random_access_point_is_cut_at_the_longest_length() {
        let (all, target) = segments(regular(0, 60_000, 1_000_000));
        assert_eq!(all[..3], ["10000", "10400", "10400"]);
        assert_eq!(target, Some(10));
        // The target duration holds if random-access points become rarer later.
        let (all, target) = segments(regular(0, 20_000, 2000).chain(regular(20_000, 60_000, 30_000)));
        assert_eq!(target, Some(4));
        assert!(all.iter().all(|it| it.parse::<u64>().unwrap() < 4500), "{all:?}");
    }

    #[test]
    fn a_short_hole_belongs_to_the_segment_and_a_long_one_or_a_step_back_is_a_break() {
        let around = |from, to| regular(0, 10_000, 2000).chain(regular(from, to, 2000));
        assert_eq!(segments(around(11_500, 20_000)).0, ["2000", "2000", "4000", "3500", "4000", "4000"]);
        assert_eq!(segments(around(90_000, 98_000)).0, ["2000", "2000", "4000", "2000!", "4000"]);
        assert_eq!(segments(around(3000, 9000)).0, ["2000", "2000", "4000", "2000!", "4000"]);
    }

    /// Seen: one-second segments for about eight key frames after a jump, because the distance to the key frame after it
    /// counted as one of the encoder.
    #[test]
    fn a_jump_between_random_access_points_does_not_shorten_segments() {
        const HOURS: i64 = 26 * 3_600_000 - ((1 << 33) / MS as i64);
        let jumps = [50_000, -50_000, HOURS, -HOURS, 11_000, -1500];
        for ((group, jump), at) in [1000_u64, 2000, 5000]
            .into_iter()
            .flat_map(|group| jumps.map(|jump| (group, jump)))
            .flat_map(|it| (0..25).map(move |n| (it, 30_000 + it.0 * n / 25 / 40 * 40)))
        {
            let from = 10_000_000;
            let pictures = regular(from, from + 90_000, group).map(|(ms, kind)| {
                (if ms < from + at { ms } else { ms.checked_add_signed(jump).unwrap() }, kind)
            });
            let (all, target) = segments(pictures);
            let case = format!("group of {group} ms, jump of {jump} ms at {at}: {all:?}");
            assert_eq!(target, segments(regular(from, from + 90_000, group)).1, "{case}");
            let breaks: Vec<usize> = (0..all.len()).filter(|it| all[*it].ends_with('!')).collect();
            assert_eq!(breaks.len(), 1, "{case}");
            // The first one after the break may end early, so that the next one begins with a key frame.
            let after = &all[breaks[0] + 2..];
            assert!(after.len() > 8 && after.iter().all(|it| *it == after[0]), "{case}");
            assert_eq!(after[0].parse::<u64>().unwrap(), group.max(4000), "{case}");
        }
    }

    #[test]
    fn a_change_starts_a_segment_at_once() {
        let changed = regular(0, 8240, 2000).chain([(8240, 'C')]).chain(regular(8280, 14_000, 2000));
        assert_eq!(segments(changed).0[..4], ["2000", "2000", "4000", "240!"]);
    }

    #[test]
    fn a_stream_without_recognised_random_access_points_is_cut_by_time() {
        let (all, target) = segments((0..1500).map(|it| (it * 40, '-')));
        assert_eq!(all[..3], ["1000", "10400", "10400"]);
        assert_eq!(target, Some(10));
    }

    #[test]
    fn the_first_segment_is_complete_in_time_whatever_the_distance_of_key_frames() {
        for (group, offset) in
            (4..=20).flat_map(|group| (0..group).map(move |offset| (group * 1000, offset * 1000)))
        {
            let case = format!("groups of {group} ms, joined at {offset} ms");
            let pictures: Vec<_> = regular(0, 120_000, group).filter(|it| it.0 >= offset).collect();
            let mut cutter = Cutter::new(&SegmentSettings::default());
            let mut is_cut = |(ms, kind): &(u64, char)| {
                matches!(cutter.picture(ms * MS, *kind == 'K', false, false), Decision::Cut { .. })
            };
            let ready = pictures.iter().find_map(|it| is_cut(it).then_some(it.0)).unwrap() - offset;
            assert!(ready <= 12_000, "{case}: {ready} ms");
            let (all, target) = segments(pictures);
            let limit = target.unwrap() * 1000 + 400;
            assert!((4..=10).contains(&target.unwrap()), "{case}: {target:?}");
            assert!(all.iter().all(|it| it.parse::<u64>().unwrap() <= limit), "{case}: {all:?}");
            // With groups that fit, all segments are whole groups from then on.
            if target.unwrap() * 1000 >= group {
                let whole = all[1..].iter().filter(|it| it.parse::<u64>().unwrap().is_multiple_of(group));
                assert_eq!(whole.count(), all.len() - 1, "{case}: {all:?}");
            }
        }
    }

    /// Seen: 503 after 15 s, because 9 s passed until the first key frame and 10 s until the first cut.
    #[test]
    fn a_group_of_twelve_seconds_begins_in_time() {
        let joined = |offset: u64| segments(regular(0, 60_000, 12_000).filter(move |it| it.0 >= offset));
        assert_eq!(joined(0).0[..2], ["10000", "2000"]);
        assert_eq!(joined(3000).0[..4], ["3000", "9000", "9400", "2600"]);
        assert_eq!(joined(3000).1, Some(9));
        assert_eq!(joined(9000).0[..2], ["9000", "3000"]);
    }
}
