//! The copy of a recording without its commercials: what it keeps, and where its parts can begin.

use super::ProbedFile;
use crate::comskip::Commercial;

/// Parts between commercials that are shorter than this are left out, in milliseconds.
const PART_MS_MIN: u64 = 500;
/// How much the length of the copy may differ for each part, besides the tolerance of a conversion: frames are not cut.
const PART_TOLERANCE_MS: u64 = 500;
/// Maximum distance between a key frame and the next one that is looked for, in milliseconds.
const KEY_FRAME_MS_MAX: u64 = 15_000;
/// How much is read after the begin of a part, in milliseconds: pictures are stored in another order than they are shown.
const LOOK_AHEAD_MS: u64 = 2_000;
/// ffmpeg seeks by up to this much earlier in containers that are sought by decoding time, in milliseconds.
const SEEK_EARLY_MS: i64 = 135;
/// Times of packets are rounded, in milliseconds.
const ROUNDING_MS: i64 = 10;

/// A part of a file that is kept. Milliseconds since the start of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptPart {
    /// Where the copy begins to read; before the begin of the part if there is no key frame.
    pub start: u64,
    pub end: u64,
}

impl KeptPart {
    pub fn length(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Returns the interval in which ffprobe finds the last key frame before the part, in its form. `file_start` is the time
    /// stamp with which the file begins, in milliseconds.
    pub fn key_frame_interval(self, file_start: i64) -> String {
        let back = self.start.min(KEY_FRAME_MS_MAX);
        let from = file_start.saturating_add_unsigned(self.start - back).max(0);
        let seconds = |it: u64| format!("{}.{:03}", it / 1000, it % 1000);
        format!("{}%+{}", seconds(from.unsigned_abs()), seconds(back + LOOK_AHEAD_MS))
    }

    /// Returns the part from its last key frame on. `report` is what ffprobe says about the packets in
    /// [`KeptPart::key_frame_interval`], and `is_transport_stream` whether the file is one. Nothing of the programme is
    /// lost: the copy may begin with the end of a commercial.
    pub fn begin_at_key_frame(self, report: &str, file_start: i64, is_transport_stream: bool) -> Self {
        let wanted = file_start.saturating_add_unsigned(self.start);
        let frames = report.lines().filter_map(key_frame);
        let last = frames.filter(|it| it.shown_at <= wanted).max_by_key(|it| it.shown_at);
        let Some(frame) = last else { return self };
        // In a transport stream, ffmpeg begins with the first key frame after the place that it seeks; elsewhere with the
        // last one before it.
        let at = match is_transport_stream {
            true => frame.decoded_at.unwrap_or(frame.shown_at) - ROUNDING_MS,
            false => frame.shown_at + SEEK_EARLY_MS,
        };
        let start = u64::try_from(at.saturating_sub(file_start)).unwrap_or(0);
        Self { start: start.min(self.end), end: self.end }
    }
}

/// Times of a key frame in milliseconds.
struct KeyFrame {
    shown_at: i64,
    decoded_at: Option<i64>,
}

/// Reads a line of the report: time of showing, time of decoding, flags.
fn key_frame(line: &str) -> Option<KeyFrame> {
    let mut words = line.trim().split(',');
    let time = |it: Option<&str>| {
        let seconds: f64 = it?.parse().ok()?;
        (seconds.abs() < 1e9).then(|| (seconds * 1000.0).round() as i64)
    };
    let (shown_at, decoded_at) = (time(words.next()), time(words.next()));
    let is_key = words.next().is_some_and(|it| it.starts_with('K'));
    let shown_at = shown_at.or(decoded_at)?;
    is_key.then_some(KeyFrame { shown_at, decoded_at })
}

/// Returns the parts of a file without commercials. `length` is that of the file in milliseconds. Empty if nothing is left.
pub fn kept_parts(commercials: &[Commercial], length: u64) -> Vec<KeptPart> {
    let mut at = 0;
    let mut parts = Vec::new();
    let end = Commercial { start: length, end: length };
    for it in commercials.iter().chain([&end]) {
        parts.push(KeptPart { start: at, end: it.start.min(length) });
        at = at.max(it.end);
    }
    parts.retain(|it| it.length() >= PART_MS_MIN);
    parts
}

impl ProbedFile {
    /// Checks whether a copy of parts of this file is whole.
    ///
    /// # Errors
    /// The difference, for people.
    pub fn check_copy(&self, parts: &[KeptPart], copy: &Self) -> Result<(), String> {
        let length = parts.iter().map(|it| it.length()).sum();
        let expected = Self { length, ..self.clone() };
        expected.check_length(copy, PART_TOLERANCE_MS * parts.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(commercials: &[(u64, u64)], length: u64) -> Vec<(u64, u64)> {
        let commercials: Vec<_> = commercials.iter().map(|&(start, end)| Commercial { start, end }).collect();
        kept_parts(&commercials, length).iter().map(|it| (it.start, it.end)).collect()
    }

    #[test]
    fn what_is_between_commercials_is_kept() {
        assert_eq!(parts(&[(20_000, 40_000)], 60_000), [(0, 20_000), (40_000, 60_000)]);
        assert_eq!(parts(&[(0, 10_000), (30_000, 60_000)], 60_000), [(10_000, 30_000)]);
        assert_eq!(parts(&[(10_000, 20_000), (20_300, 90_000)], 60_000), [(0, 10_000)], "a short one");
        assert_eq!(parts(&[(0, 60_000)], 60_000), []);
        assert_eq!(parts(&[(70_000, 80_000)], 60_000), [(0, 60_000)]);
        assert_eq!(parts(&[], 60_000), [(0, 60_000)]);
    }

    #[test]
    fn a_part_begins_with_the_last_key_frame_before_it() {
        let part = KeptPart { start: 20_000, end: 60_000 };
        assert_eq!(part.key_frame_interval(1_470), "6.470%+17.000");
        assert_eq!(KeptPart { start: 3_000, ..part }.key_frame_interval(0), "0.000%+5.000");
        let report = "19.48,19.40,K__\n19.52,19.44,___\n21.47,21.39,K__\n21.48,21.40,K__\nN/A,N/A,K\nx\n";
        let found = |file_start, is_ts| part.begin_at_key_frame(report, file_start, is_ts).start;
        assert_eq!(found(1_470, true), 21_390 - 10 - 1_470, "by its time of decoding");
        assert_eq!(found(1_470, false), 21_470 + 135 - 1_470);
        assert_eq!(part.begin_at_key_frame("19.48,N/A,K_", 0, true).start, 19_470);
        for nothing in ["", "30.0,30.0,K", "19.5,19.5,_"] {
            assert_eq!(part.begin_at_key_frame(nothing, 0, true), part, "{nothing:?}");
        }
    }

    #[test]
    fn a_copy_has_all_streams_and_the_length_of_its_parts() {
        let streams = vec![("audio".to_owned(), "ac3".to_owned()), ("video".to_owned(), "h264".to_owned())];
        let file = ProbedFile { length: 60_000, start: 1_470, streams };
        let parts = [KeptPart { start: 0, end: 20_000 }, KeptPart { start: 38_000, end: 60_000 }];
        let check = |length| file.check_copy(&parts, &ProbedFile { length, ..file.clone() });
        assert_eq!((check(42_000), check(44_900), check(39_100)), (Ok(()), Ok(()), Ok(())));
        for wrong in [60_000, 45_100, 38_900, 0] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
        let without_sound = ProbedFile { length: 42_000, streams: file.streams[1..].to_vec(), start: 0 };
        assert!(file.check_copy(&parts, &without_sound).is_err());
    }
}
