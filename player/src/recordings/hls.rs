//! The playlist of a recording for players of HLS: ranges of its file, or of each part, between packets at which playing can
//! begin.
//!
//! It is an EVENT playlist while the file grows: entries are added and never change. It ends with the recording.

use std::fmt::Write as _;

use actors::{AccessPoint, RecordingIndex};
use domain::recording::Recording;
use domain::time::iso_millis;
use node::recordings::playlist_of;
use route_frame::route::MediaType;
use server::reply::Refusal;

use super::file::{extension_of, grows, no_file, unreadable};
use super::parts::{elsewhere, one_part};
use crate::context::PlayerContext;

/// Minimum duration of a segment, in milliseconds.
const SEGMENT_MS: u64 = 6_000;
/// The duration that the playlist announces as the longest one, in milliseconds: it should not change while entries are added.
const TARGET_MS: u64 = 10_000;
/// Maximum duration of a segment that counts as one without a gap, in milliseconds.
const SEGMENT_MS_MAX: u64 = 60_000;

/// The line with the longest duration, without it.
const TARGET: &str = "#EXT-X-TARGETDURATION:";
/// The last line before the segments.
const HEAD_END: &str = "#EXT-X-START:TIME-OFFSET=0\n";
/// The last line of a playlist that is complete.
const END: &str = "#EXT-X-ENDLIST\n";

/// A playlist of HLS.
pub struct HlsPlaylist;

impl MediaType for HlsPlaylist {
    const NAME: &'static str = "application/vnd.apple.mpegurl";
}

/// Returns the playlist of a recording. `file` is the address of its file, as seen from the playlist.
///
/// # Errors
/// The recording has no file, or the file is not a transport stream.
pub async fn playlist(context: &PlayerContext, recording: &Recording, file: &str) -> Result<String, Refusal> {
    if recording.earlier_parts.is_empty() {
        return part_playlist(context, recording, 1, file).await;
    }
    let (mut playlists, mut refusal) = (Vec::new(), None);
    for number in (1..).take(recording.parts().count()) {
        let Some(one) = one_part(recording, number) else { continue };
        let separator = if file.contains('?') { '&' } else { '?' };
        match part_playlist(context, &one, number, &format!("{file}{separator}part={number}")).await {
            Ok(text) => playlists.push(text),
            Err(why) => refusal = Some(why),
        }
    }
    // Those of nodes that are down are left out.
    if playlists.is_empty() { Err(refusal.unwrap_or_else(no_file)) } else { Ok(joined(&playlists)) }
}

/// Returns the playlist of one part, from the node that has it.
async fn part_playlist(
    context: &PlayerContext,
    recording: &Recording,
    number: u32,
    file: &str,
) -> Result<String, Refusal> {
    match elsewhere(context, recording)? {
        None => file_playlist(context, recording, file).await,
        Some(node) => {
            playlist_of(&context.nodes, &node, recording.id, number, file).await.map_err(Refusal::unavailable)
        }
    }
}

/// Joins the playlists of parts. The times of a part do not follow those of the one before.
fn joined(playlists: &[String]) -> String {
    let target_of = |text: &str| text.split_once(TARGET)?.1.lines().next()?.parse::<u64>().ok();
    let target = playlists.iter().filter_map(|it| target_of(it)).max().unwrap_or(0);
    let mut all = String::new();
    for text in playlists {
        let Some((_, segments)) = text.split_once(HEAD_END) else { continue };
        if all.is_empty() {
            all = head(target);
        } else {
            all.truncate(all.strip_suffix(END).unwrap_or(&all).len());
            all.push_str("#EXT-X-DISCONTINUITY\n");
        }
        all.push_str(segments);
    }
    all
}

/// Returns the begin of a playlist. `target` is the longest duration in seconds.
fn head(target: u64) -> String {
    format!(
        "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-PLAYLIST-TYPE:EVENT\n{TARGET}{target}\n#EXT-X-MEDIA-SEQUENCE:0\n\
         #EXT-X-INDEPENDENT-SEGMENTS\n{HEAD_END}"
    )
}

/// Returns the playlist of a file on this node.
pub async fn file_playlist(
    context: &PlayerContext,
    recording: &Recording,
    file: &str,
) -> Result<String, Refusal> {
    let recorded = recording.file.as_ref().ok_or_else(no_file)?;
    if extension_of(recording) != "ts" {
        return Err(Refusal::not_found("The file of the recording is not a transport stream."));
    }
    let index =
        context.recorder.index(recording).await.map_err(|error| unreadable(&error))?.ok_or_else(no_file)?;
    Ok(write(&index, recorded.started_at, !grows(recording), file))
}

/// A range of the file between two points.
struct Segment {
    point: AccessPoint,
    end: u64,
    /// In milliseconds.
    duration: u64,
    /// Whether nothing was recorded at its end, so that the times of the next one do not follow.
    has_gap: bool,
}

/// Returns the segments of a file. The last one of a file that grows is not complete.
fn segments(index: &RecordingIndex, is_complete: bool) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut add = |point: AccessPoint, end: u64, time: u64| {
        let duration = time.saturating_sub(point.time);
        let has_gap = duration > SEGMENT_MS_MAX;
        let duration = if has_gap { SEGMENT_MS } else { duration };
        segments.push(Segment { point, end, duration, has_gap });
    };
    let mut points = index.points.iter();
    let Some(mut begin) = points.next().copied() else { return segments };
    for point in points {
        if point.time - begin.time >= SEGMENT_MS {
            add(begin, point.offset, point.time);
            begin = *point;
        }
    }
    if is_complete && begin.offset < index.length {
        add(begin, index.length, index.duration);
    }
    segments
}

fn write(index: &RecordingIndex, started_at: i64, is_complete: bool, file: &str) -> String {
    let segments = segments(index, is_complete);
    let longest = segments.iter().map(|it| it.duration).max().unwrap_or(0).max(TARGET_MS);
    let mut out = head(longest.div_ceil(1000));
    let date = |out: &mut String, point: &AccessPoint| {
        let at = started_at.saturating_add(i64::try_from(point.time).unwrap_or(0));
        let _ = writeln!(out, "#EXT-X-PROGRAM-DATE-TIME:{}", iso_millis(at));
    };
    let mut has_map = false;
    let mut follows_gap = true;
    for (n, segment) in segments.iter().enumerate() {
        if !segment.point.has_tables && !has_map && index.tables_end > 0 {
            has_map = true;
            let _ = writeln!(out, "#EXT-X-MAP:URI=\"{file}\",BYTERANGE=\"{}@0\"", index.tables_end);
        }
        if follows_gap {
            if n > 0 {
                out.push_str("#EXT-X-DISCONTINUITY\n");
            }
            date(&mut out, &segment.point);
        }
        follows_gap = segment.has_gap;
        let length = segment.end - segment.point.offset;
        let (seconds, milliseconds) = (segment.duration / 1000, segment.duration % 1000);
        let _ = writeln!(out, "#EXTINF:{seconds}.{milliseconds:03},");
        let _ = writeln!(out, "#EXT-X-BYTERANGE:{length}@{}\n{file}", segment.point.offset);
    }
    if is_complete {
        out.push_str(END);
    }
    out
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn index(points: &[(u64, u64, bool)], duration: u64) -> RecordingIndex {
        let points = points
            .iter()
            .map(|&(offset, time, has_tables)| AccessPoint { offset, time, has_tables })
            .collect();
        RecordingIndex { points, duration, length: 188_000, tables: Bytes::new(), tables_end: 376 }
    }

    #[test]
    fn segments_begin_at_points_and_only_complete_ones_are_listed() {
        let it =
            index(&[(0, 0, true), (1880, 2_000, true), (3760, 6_500, false), (9400, 13_000, true)], 15_000);
        let growing = write(&it, 0, false, "recording.ts");
        let expected = "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-PLAYLIST-TYPE:EVENT\n#EXT-X-TARGETDURATION:10\n\
            #EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-START:TIME-OFFSET=0\n\
            #EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:00.000Z\n#EXTINF:6.500,\n#EXT-X-BYTERANGE:3760@0\nrecording.ts\n\
            #EXT-X-MAP:URI=\"recording.ts\",BYTERANGE=\"376@0\"\n#EXTINF:6.500,\n#EXT-X-BYTERANGE:5640@3760\nrecording.ts\n";
        assert_eq!(growing, expected);
        let whole = write(&it, 0, true, "recording.ts");
        assert_eq!(
            whole.strip_prefix(expected).unwrap(),
            "#EXTINF:2.000,\n#EXT-X-BYTERANGE:178600@9400\nrecording.ts\n#EXT-X-ENDLIST\n"
        );
    }

    #[test]
    fn the_times_after_a_gap_do_not_follow() {
        let it = index(&[(0, 0, true), (1880, 7_000, true), (3760, 600_000, true)], 607_000);
        let text = write(&it, 0, true, "f");
        let gap = "#EXTINF:6.000,\n#EXT-X-BYTERANGE:1880@1880\nf\n#EXT-X-DISCONTINUITY\n\
            #EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:10:00.000Z\n#EXTINF:7.000,\n";
        assert!(text.contains(gap), "{text}");
        assert!(!text.contains("EXT-X-MAP") && text.contains("TARGETDURATION:10\n"), "{text}");
    }

    #[test]
    fn the_playlists_of_parts_are_joined_with_a_break_and_the_last_one_ends_them() {
        let first = write(&index(&[(0, 0, true), (1880, 7_000, true)], 8_000), 0, true, "f?part=1");
        let second = index(&[(0, 0, true), (1880, 20_000, true)], 21_000);
        for is_complete in [false, true] {
            let second = write(&second, 60_000, is_complete, "f?part=2");
            let all = joined(&[first.clone(), second]);
            assert!(all.contains("TARGETDURATION:20\n") && all.matches("#EXTM3U").count() == 1, "{all}");
            let begin = "f?part=1\n#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:01:00.000Z\n";
            assert!(all.contains(begin), "{all}");
            assert_eq!(
                (all.matches(END).count(), all.ends_with(END)),
                (usize::from(is_complete), is_complete)
            );
        }
    }

    #[test]
    fn a_file_without_a_point_has_no_segment() {
        assert!(!write(&index(&[], 0), 0, false, "f").contains("EXTINF"));
    }
}
