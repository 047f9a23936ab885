//! Writes media playlists (RFC 8216, and RFC 8216bis for low latency).

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::names::{SegmentName, SegmentNames};
use super::settings::{SegmentContainer, SegmentSettings};
use super::window::{SegmentHead, WindowPart, WindowState};
use crate::ts::clock::STAMP_HZ;

/// Distance from the end of a playlist at which its old segments may be skipped, in target durations.
const SKIP_TARGETS: u64 = 6;
/// Distance from the end at which parts are no longer listed, in target durations.
const PARTS_TARGETS: u64 = 3;

/// The form of a playlist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaylistRequest {
    /// Whether the playlist lists parts and announces the next one. Only fMP4 has parts.
    pub low_latency: bool,
    /// Whether the player asks for a delta update (`_HLS_skip=YES`). It gets one if there is something to skip.
    pub skip: bool,
    /// The rule for the addresses of segments.
    pub names: SegmentNames,
}

/// A media playlist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaPlaylist {
    /// The text, in UTF-8.
    pub text: String,
    /// The number of the newest complete segment.
    pub newest_sequence: u64,
    /// The number of parts listed after it.
    pub n_open_parts: usize,
    /// The target duration.
    pub target_duration: Duration,
}

/// Writes the playlist; `None` before the first complete segment.
pub(super) fn render(
    state: &WindowState,
    container: SegmentContainer,
    settings: &SegmentSettings,
    request: &PlaylistRequest,
) -> Option<MediaPlaylist> {
    let first = state.listed(settings).next()?.head;
    let newest = state.segments.back()?.head;
    let target = state.target_duration?;
    let part_target = state.part_target.filter(|_| request.low_latency);
    let writer = Writer { container, names: &request.names };
    let n_listed = state.listed(settings).count();
    let mut text = String::with_capacity(512 + n_listed * 160);
    let n_skipped =
        if request.skip && request.low_latency { n_skippable(state, settings, target) } else { 0 };
    writer.head(&mut text, target, part_target, n_skipped > 0);
    let _ = writeln!(text, "#EXT-X-MEDIA-SEQUENCE:{}", first.number);
    let removed = first.n_discontinuities - u64::from(first.is_discontinuity);
    if state.listed(settings).any(|it| it.head.n_discontinuities > 0) {
        let _ = writeln!(text, "#EXT-X-DISCONTINUITY-SEQUENCE:{removed}");
    }
    if state.is_independent {
        text.push_str("#EXT-X-INDEPENDENT-SEGMENTS\n");
    }
    if n_skipped > 0 {
        let _ = writeln!(text, "#EXT-X-SKIP:SKIPPED-SEGMENTS={n_skipped}");
    }
    let open: u64 = state.open.iter().flat_map(|it| &it.parts).map(|it| it.length).sum();
    let mut left = open + state.listed(settings).map(|it| it.length).sum::<u64>();
    let mut init = None;
    for (index, segment) in state.listed(settings).enumerate() {
        if index >= n_skipped {
            writer.segment_head(&mut text, &segment.head, &mut init);
            if part_target.is_some() && left <= PARTS_TARGETS * target * STAMP_HZ {
                writer.parts(&mut text, segment.head.number, &segment.parts);
            }
            let _ = writeln!(text, "#EXTINF:{},", seconds(segment.length));
            writer.name(&mut text, SegmentName::Segment(segment.head.number));
            text.push('\n');
        } else {
            init = Some(segment.head.init);
        }
        left -= segment.length;
    }
    let mut n_open_parts = 0;
    if part_target.is_some() {
        if let Some(open) = state.open.as_ref().filter(|it| !it.parts.is_empty()) {
            writer.segment_head(&mut text, &open.head, &mut init);
            writer.parts(&mut text, open.head.number, &open.parts);
            n_open_parts = open.parts.len();
        }
        if state.end.is_none() {
            let (number, n_parts) = state.position();
            text.push_str("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"");
            writer.name(&mut text, SegmentName::Part(number, n_parts as u32));
            text.push_str("\"\n");
        }
    }
    Some(MediaPlaylist {
        text,
        newest_sequence: newest.number,
        n_open_parts,
        target_duration: Duration::from_secs(target),
    })
}

/// Returns the number of segments before the skip boundary.
fn n_skippable(state: &WindowState, settings: &SegmentSettings, target: u64) -> usize {
    let open: u64 = state.open.iter().flat_map(|it| &it.parts).map(|it| it.length).sum();
    let mut left = open + state.listed(settings).map(|it| it.length).sum::<u64>();
    let boundary = SKIP_TARGETS * target * STAMP_HZ;
    let is_before = |length: u64| {
        // The whole segment is further from the end than the boundary.
        left -= length;
        left >= boundary
    };
    let lengths: Vec<u64> = state.listed(settings).map(|it| it.length).collect();
    lengths.into_iter().scan(is_before, |is_before, it| Some(is_before(it))).take_while(|it| *it).count()
}

/// Writes lines with addresses.
struct Writer<'a> {
    container: SegmentContainer,
    names: &'a SegmentNames,
}

impl Writer<'_> {
    fn name(&self, text: &mut String, name: SegmentName) {
        self.names.write(text, name, self.container);
    }

    fn head(&self, text: &mut String, target: u64, part_target: Option<Duration>, is_delta: bool) {
        let version = match (self.container, is_delta, part_target) {
            (_, true, _) => 9,
            (SegmentContainer::Fmp4, false, Some(_)) => 9,
            (SegmentContainer::Fmp4, false, None) => 7,
            (SegmentContainer::Ts, false, _) => 3,
        };
        let _ = writeln!(text, "#EXTM3U\n#EXT-X-VERSION:{version}\n#EXT-X-TARGETDURATION:{target}");
        if let Some(part) = part_target {
            let part = part.as_secs_f64();
            let _ = writeln!(
                text,
                "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL={:.1},HOLD-BACK={:.1},PART-HOLD-BACK={:.3}",
                (SKIP_TARGETS * target) as f64,
                (3 * target) as f64,
                3.0 * part,
            );
            let _ = writeln!(text, "#EXT-X-PART-INF:PART-TARGET={part:.3}");
        }
    }

    fn segment_head(&self, text: &mut String, head: &SegmentHead, init: &mut Option<u32>) {
        if head.is_discontinuity {
            text.push_str("#EXT-X-DISCONTINUITY\n");
        }
        if self.container == SegmentContainer::Fmp4 && *init != Some(head.init) {
            *init = Some(head.init);
            text.push_str("#EXT-X-MAP:URI=\"");
            self.name(text, SegmentName::Init(head.init));
            text.push_str("\"\n");
        }
        text.push_str("#EXT-X-PROGRAM-DATE-TIME:");
        write_date(text, head.date);
        text.push('\n');
    }

    fn parts(&self, text: &mut String, number: u64, parts: &[WindowPart]) {
        for (index, part) in parts.iter().enumerate() {
            let _ = write!(text, "#EXT-X-PART:DURATION={},URI=\"", seconds(part.length));
            self.name(text, SegmentName::Part(number, index as u32));
            text.push('"');
            if part.is_independent {
                text.push_str(",INDEPENDENT=YES");
            }
            text.push('\n');
        }
    }
}

/// Returns ticks of 90 kHz as seconds with five digits, as precise as one tick.
fn seconds(ticks: u64) -> String {
    let fraction = (ticks % STAMP_HZ) * 100_000 / STAMP_HZ;
    format!("{}.{fraction:05}", ticks / STAMP_HZ)
}

/// Writes a date and time of ISO 8601 in UTC, with milliseconds.
fn write_date(text: &mut String, date: SystemTime) {
    let since = date.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    let _ = write!(
        text,
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    );
}

/// Returns year, month and day of a number of days since 1970. Years begin in March here, so that the leap day is the
/// last one.
fn civil(days: u64) -> (u64, u64, u64) {
    // 0000-03-01 is 719,468 days before 1970-01-01, and 400 years have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let check = |seconds: u64, expected: &str| {
            let mut text = String::new();
            write_date(&mut text, UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(7));
            assert_eq!(text, expected);
        };
        check(0, "1970-01-01T00:00:00.007Z");
        check(951_782_399, "2000-02-28T23:59:59.007Z");
        check(951_782_400, "2000-02-29T00:00:00.007Z");
        check(1_709_164_800, "2024-02-29T00:00:00.007Z");
        check(1_764_201_600, "2025-11-27T00:00:00.007Z");
        check(4_102_444_799, "2099-12-31T23:59:59.007Z");
    }

    #[test]
    fn seconds_are_as_precise_as_a_tick() {
        assert_eq!(seconds(360_000), "4.00000");
        assert_eq!(seconds(360_001), "4.00001");
        assert_eq!(seconds(89_999), "0.99998");
    }
}
