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
//! What a hole is follows from the usual distance of pictures: slides can be seconds apart.

use std::mem::take;
use std::time::Duration;

use super::settings::SegmentSettings;
use crate::ts::clock::STAMP_HZ;

/// Only a longer step between two pictures can be a hole, whatever their usual distance; a longer one back is a break.
const STEP_MAX: u64 = STAMP_HZ;
/// The longest step to the second picture of a stream, whose usual distance of pictures is not known yet.
const FIRST_STEP_MAX: u64 = 12 * STAMP_HZ;
/// The longest segment before the target duration is fixed. Only pictures that are far apart make one that long.
const FIRST_LENGTH_MAX: u64 = 30 * STAMP_HZ;
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
/// An irregular step of pictures may exceed the limit by a little more.
const ROUNDING_MAX: u64 = STAMP_HZ / 2 - 1;

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
    steps: PictureSteps,
}

/// The times of a picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct PictureTimes {
    /// Presentation time.
    pub(super) shown: u64,
    /// Decoding time. Its steps tell holes and jumps apart from reordered pictures.
    pub(super) decoded: u64,
}

/// The steps from picture to picture, by decoding time.
#[derive(Debug, Default)]
struct PictureSteps {
    newest: Option<u64>,
    /// The usual distance of two pictures, once there were two.
    usual: Option<u64>,
    last_hole: Option<u64>,
    /// The sum and the number of the steps since a segment ended, without holes and jumps.
    sum: i64,
    n_summed: u32,
}

/// The step before a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Usual,
    Hole,
    Back,
}

impl PictureSteps {
    /// Takes the next picture.
    fn step(&mut self, decoded: u64) -> Step {
        let Some(newest) = self.newest.replace(decoded) else { return Step::Usual };
        if decoded + STEP_MAX < newest {
            return Step::Back;
        }
        if let Some(step) = decoded.checked_sub(newest).filter(|it| *it > 0) {
            if step > self.longest() {
                // Two in a row are the new distance of pictures, as where a programme becomes a slide show.
                let is_alike = |it: u64| step <= 2 * it && it <= 2 * step;
                if !self.last_hole.replace(step).is_some_and(is_alike) {
                    return Step::Hole;
                }
                self.usual = None;
            }
            self.last_hole = None;
            self.usual = Some(self.usual.map_or(step, |it| it - it / 8 + step / 8));
        }
        // Without decoding times, reordered pictures go back.
        self.sum += decoded as i64 - newest as i64;
        self.n_summed += 1;
        Step::Usual
    }

    /// Returns the step above which something is missing.
    fn longest(&self) -> u64 {
        self.usual.map_or(FIRST_STEP_MAX, |it| (3 * it).max(STEP_MAX))
    }
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
            steps: PictureSteps::default(),
        }
    }

    /// Returns the target duration of the playlist in seconds, once the first segment is complete.
    pub(super) fn target_duration(&self) -> Option<u64> {
        self.target_duration
    }

    /// Returns whether something is missing in this step from one picture to the next.
    pub(super) fn is_hole(&self, step: u64) -> bool {
        step > self.steps.longest()
    }

    /// Returns the pictures per second since the last call, without those that are missing in holes.
    pub(super) fn take_rate(&mut self) -> Option<f64> {
        let (sum, n_summed) = (take(&mut self.steps.sum), take(&mut self.steps.n_summed));
        (sum > 0).then(|| f64::from(n_summed) * STAMP_HZ as f64 / sum as f64)
    }

    /// Decides what happens before a picture with these times (an audio frame, without video). `is_change` is true if
    /// codecs or parameters change with it, and `is_full` if the segment may take no more bytes.
    pub(super) fn picture(
        &mut self,
        at: PictureTimes,
        is_point: bool,
        is_change: bool,
        is_full: bool,
    ) -> Decision {
        let step = self.steps.step(at.decoded);
        let time = at.shown;
        let Some(open) = self.open else { return self.first(at, is_point) };
        let is_back = step == Step::Back;
        let elapsed = time.saturating_sub(open.start);
        let is_too_long = elapsed > self.length_max();
        let is_break =
            is_back || is_change && is_point || step == Step::Hole && elapsed > self.limit() || is_too_long;
        if step != Step::Usual {
            // The next random-access point is not at a distance that the encoder chose.
            self.last_point = None;
        }
        if is_point {
            self.count_point(time);
        }
        if is_break {
            let is_own = is_too_long || step != Step::Usual;
            let length = if is_own { self.own_length(open) } else { elapsed };
            return self.cut(time, length, true);
        }
        // The next picture would make it longer than it may be.
        let is_last = elapsed >= self.limit() || elapsed + self.steps.usual.unwrap_or(0) > self.limit();
        if is_full || is_last && elapsed > 0 || is_point && self.is_good_end(elapsed) {
            return self.cut(time, elapsed, false);
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

    /// Moves the beginning of the segment that is being made to these times, because all times change with it.
    pub(super) fn rebase(&mut self, at: PictureTimes) {
        let time = at.shown;
        if let Some(open) = &mut self.open {
            (open.start, open.oldest, open.newest) = (time, time, time);
        }
        self.last_point = self.last_point.map(|_| time);
        self.steps.newest = Some(at.decoded);
    }

    /// Counts a picture that is in no segment, because nothing describes it yet. `decoded` may be a time that is not unwrapped.
    pub(super) fn leave_out(&mut self, decoded: u64) {
        if self.open.is_none() {
            self.wait(decoded);
        }
    }

    /// Counts the time that passes before the first segment.
    fn wait(&mut self, decoded: u64) {
        let newest = *self.last_left_out.get_or_insert(decoded);
        match decoded.checked_sub(newest) {
            // No time passes in a jump of the clock.
            Some(step) => self.waited += if step <= POINT_WAIT_MAX { step } else { 0 },
            // Without decoding times, reordered pictures go back.
            None if decoded + STEP_MAX >= newest => return,
            None => {}
        }
        self.last_left_out = Some(decoded);
    }

    fn first(&mut self, at: PictureTimes, is_point: bool) -> Decision {
        self.wait(at.decoded);
        let time = at.shown;
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

    /// Returns the longest length that a segment can have in the playlist.
    fn length_max(&self) -> u64 {
        self.target_duration.map_or(FIRST_LENGTH_MAX, |it| it * STAMP_HZ + ROUNDING_MAX)
    }

    /// Returns the length up to the end of the last picture.
    fn own_length(&self, open: Open) -> u64 {
        let shown = open.newest - open.oldest;
        let usual = self.steps.usual.unwrap_or(STAMP_HZ / 25);
        let picture = if open.n_pictures > 1 { shown / (open.n_pictures - 1) } else { usual };
        (shown + picture.min(STEP_MAX)).clamp(1, self.length_max())
    }

    fn cut(&mut self, time: u64, length: u64, is_break: bool) -> Decision {
        // A break can come before a distance of random-access points is known.
        let is_unknown = is_break && self.distance == 0;
        self.fix_target_duration(if is_unknown { length.max(self.longest) } else { length });
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
    use crate::ts::clock::STAMP_MODULUS;

    const MS: u64 = STAMP_HZ / 1000;

    fn at(ms: u64) -> PictureTimes {
        PictureTimes { shown: ms * MS, decoded: ms * MS }
    }

    /// Passes pictures with these times in milliseconds, `K` for a random-access point, `C` for one with a change, and
    /// returns the segments as `length`, with `!` for a break before the next one.
    fn segments(pictures: impl IntoIterator<Item = (u64, char)>) -> (Vec<String>, Option<u64>) {
        let mut cutter = Cutter::new(&SegmentSettings::default());
        let mut all = Vec::new();
        for (ms, kind) in pictures {
            match cutter.picture(at(ms), kind != '-', kind == 'C', false) {
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
    fn segments_of_slides_have_their_true_lengths() {
        let check = |distance: u64, is_point: bool, expected: &[&str], target_duration: u64| {
            let kind = |n: u64| if is_point || n == 0 { 'K' } else { '-' };
            let (all, target) = segments((0..60).map(|it| (5000 + it * distance, kind(it))));
            assert_eq!(all[..expected.len()], *expected, "pictures every {distance} ms: {all:?}");
            assert_eq!(target, Some(target_duration), "pictures every {distance} ms");
        };
        check(500, true, &["1000", "1000", "4000", "4000"], 4);
        check(1000, true, &["1000", "1000", "4000", "4000"], 4);
        check(1500, true, &["1500", "1500", "3000"], 4);
        check(2000, true, &["2000", "2000", "4000", "4000"], 4);
        check(3000, true, &["3000", "3000", "3000", "3000"], 4);
        check(5000, true, &["5000", "5000", "5000", "5000"], 5);
        check(7500, true, &["7500", "7500", "7500"], 8);
        check(12_000, true, &["12000", "12000", "12000"], 12);
        check(3000, false, &["9000", "9000", "9000"], 9);
        check(5000, false, &["10000", "10000", "10000"], 10);
    }

    #[test]
    fn slides_of_any_distance_are_cut_without_a_break() {
        for distance in (500..=12_000).step_by(100) {
            let (all, target) = segments((0..60).map(|it| (5000 + it * distance, 'K')));
            let limit = target.unwrap() * 1000 + 499;
            let is_true =
                |it: &String| it.parse::<u64>().is_ok_and(|it| it <= limit && it.is_multiple_of(distance));
            assert!(all.len() > 5 && all.iter().all(is_true), "pictures every {distance} ms: {all:?}");
        }
    }

    #[test]
    fn a_channel_that_becomes_a_slide_show_declares_one_break() {
        let slides = (0..20).map(|it| (13_000 + it * 3000, 'K'));
        let (all, _) = segments(regular(0, 10_000, 2000).chain(slides));
        assert_eq!(all[..6], ["2000", "2000", "4000", "2000!", "3000", "3000"], "{all:?}");
        assert_eq!(all.iter().filter(|it| it.ends_with('!')).count(), 1, "{all:?}");
        // And back.
        let slides = (0..10).map(|it| (1000 + it * 3000, 'K'));
        let (all, _) = segments(slides.chain(regular(31_000, 60_000, 2000)));
        assert!(all.iter().all(|it| ["3000", "4000", "2000"].contains(&&**it)), "{all:?}");
    }

    #[test]
    fn reordered_slides_belong_to_one_time_line() {
        // Decoding order: each third picture comes before the two that are shown before it.
        let shown = |n: u64| if n == 0 { 0 } else { [3, 1, 2][(n as usize - 1) % 3] + (n - 1) / 3 * 3 };
        let mut cutter = Cutter::new(&SegmentSettings::default());
        for n in 0..60 {
            let times =
                PictureTimes { shown: (10_000 + shown(n) * 2000) * MS, decoded: (6000 + n * 2000) * MS };
            let decision = cutter.picture(times, n == 0, false, false);
            assert!(!matches!(decision, Decision::Cut { is_break: true, .. }), "picture {n}: {decision:?}");
        }
    }

    #[test]
    fn the_rate_of_pictures_leaves_out_what_is_missing() {
        let mut cutter = Cutter::new(&SegmentSettings::default());
        for (ms, kind) in regular(0, 3000, 2000).chain(regular(4000, 8000, 2000)) {
            cutter.picture(at(ms), kind == 'K', false, false);
        }
        assert_eq!(cutter.take_rate(), Some(25.0));
        assert_eq!(cutter.take_rate(), None);
    }

    #[test]
    fn a_jump_in_the_first_group_leaves_room_for_the_groups_after_it() {
        for (group, at) in
            [1000_u64, 2000, 5000, 9600].into_iter().flat_map(|it| [480, 960].map(|at| (it, at)))
        {
            let times = |(ms, kind)| (if ms < at { ms } else { ms + 50_000 }, kind);
            let (all, target) = segments(regular(0, 90_000, group).map(times));
            assert_eq!(target, Some(10), "{all:?}");
            let usual = group.max(4000).to_string();
            assert!(all[3..].iter().all(|it| *it == usual), "group of {group} ms, jump at {at}: {all:?}");
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
                matches!(cutter.picture(at(*ms), *kind == 'K', false, false), Decision::Cut { .. })
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

    /// Seen: a first segment of 0.2 s without a key frame after seven seconds, because the steps forward of reordered pictures
    /// were added up.
    #[test]
    fn reordered_pictures_count_for_their_time_before_the_first_segment() {
        // Decoding order: the last picture of each four comes first.
        let shown = |n: u64| [4, 2, 1, 3][n as usize % 4] + n / 4 * 4;
        for has_decoding_times in [true, false] {
            let mut cutter = Cutter::new(&SegmentSettings::default());
            let mut times = (0..260).map(|n| {
                let shown = (1_000 + shown(n) * 40) * MS;
                PictureTimes { shown, decoded: if has_decoding_times { n * 40 * MS } else { shown } }
            });
            let n_left_out =
                times.position(|it| cutter.picture(it, false, false, false) != Decision::Continue);
            assert_eq!(n_left_out, None, "less than eleven seconds");
            assert!((10 * STAMP_HZ..11 * STAMP_HZ).contains(&cutter.waited), "{}", cutter.waited);
        }
    }

    #[test]
    fn pictures_that_nothing_describes_count_before_the_first_segment() {
        let mut cutter = Cutter::new(&SegmentSettings::default());
        // A wrap of the clock in between.
        for n in 0..=225_u64 {
            cutter.leave_out((STAMP_MODULUS - 3 * STAMP_HZ + n * 40 * MS) % STAMP_MODULUS);
        }
        let mut is_cut =
            |(ms, kind)| matches!(cutter.picture(at(ms), kind == 'K', false, false), Decision::Cut { .. });
        let ready = regular(500_000, 520_000, 12_000).find_map(|it| is_cut(it).then_some(it.0 - 500_000));
        assert!(ready.is_some_and(|it| (3_000..=3_100).contains(&it)), "{ready:?}");
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
