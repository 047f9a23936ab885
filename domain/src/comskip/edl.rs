//! Commercials: from what comskip wrote, and as the list beside a recording (EDL) that players read.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// Maximum number of commercials of a recording; later ones are left out.
pub const COMMERCIALS_MAX: usize = 200;
/// Maximum number of frames and time of a file, far beyond those of recordings.
const FRAMES_MAX: u64 = 1 << 32;
const SECONDS_MAX: f64 = 1_000_000.0;
/// The action of a line in the list: a commercial break, which players skip once and let people watch.
const COMMERCIAL_BREAK: u8 = 3;

/// A part of a recording with commercials. Milliseconds since the start of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commercial {
    pub start: u64,
    pub end: u64,
}

/// Reads the list that comskip wrote: lines with start and end in seconds, and an action. `length` is that of the file in
/// milliseconds: times beyond it are cut off. Returns the parts in order, joined where they touch. Invalid lines are left
/// out.
pub fn commercials_of_edl(text: &str, length: u64) -> Vec<Commercial> {
    let mut found: Vec<_> = text.lines().filter_map(|line| commercial_of(line, length)).collect();
    found.sort_unstable_by_key(|it| (it.start, it.end));
    let mut joined: Vec<Commercial> = Vec::new();
    for next in found {
        let n_joined = joined.len();
        match joined.last_mut() {
            Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
            _ if n_joined >= COMMERCIALS_MAX => break,
            _ => joined.push(next),
        }
    }
    joined
}

fn commercial_of(line: &str, length: u64) -> Option<Commercial> {
    let mut words = line.split_ascii_whitespace();
    let mut time = || {
        let seconds: f64 = words.next()?.parse().ok()?;
        (0.0..=SECONDS_MAX).contains(&seconds).then(|| (seconds * 1000.0).round() as u64)
    };
    let (start, end) = (time()?, time()?.min(length));
    (start < end).then_some(Commercial { start, end })
}

/// Returns the list of commercials as players read it.
pub fn edl_of(commercials: &[Commercial]) -> String {
    let mut text = String::new();
    for Commercial { start, end } in commercials {
        let seconds = |it: &u64| format!("{}.{:03}", it / 1000, it % 1000);
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{}\t{}\t{COMMERCIAL_BREAK}", seconds(start), seconds(end));
    }
    text
}

/// Returns the length in milliseconds from the report of comskip, whose first line is such as
/// `FILE PROCESSING COMPLETE   1748 FRAMES AT  2500` (frames in 100 seconds).
pub fn length_of_report(text: &str) -> Option<u64> {
    let rest = text.trim_start().strip_prefix("FILE PROCESSING COMPLETE")?;
    let mut words = rest.lines().next()?.split_ascii_whitespace();
    let frames: u64 = words.next()?.parse().ok()?;
    let has_form = words.next() == Some("FRAMES") && words.next() == Some("AT");
    let rate: u64 = words.next()?.parse().ok()?;
    (has_form && rate > 0 && frames <= FRAMES_MAX).then(|| frames * 100_000 / rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<(u64, u64)> {
        commercials_of_edl(text, 60_000).iter().map(|it| (it.start, it.end)).collect()
    }

    #[test]
    fn times_outside_the_file_are_dropped_and_touching_parts_are_joined() {
        assert_eq!(parts("20.24\t40.20\t0\n"), [(20_240, 40_200)]);
        assert_eq!(parts("50 70 0\n60 90 0\n1 2 0\n1.5 3 0\n3 4 0"), [(1_000, 4_000), (50_000, 60_000)]);
        for wrong in ["", "x y 0", "5 4 0", "-1 4 0", "nan 4 0", "1 inf 0", "1", "1e300 2e300 0"] {
            assert_eq!(parts(wrong), [], "{wrong:?}");
        }
        let many: String = (0..1_000).map(|it| format!("{it}.0 {it}.5 0\n")).collect();
        assert_eq!(commercials_of_edl(&many, u64::MAX).len(), COMMERCIALS_MAX);
    }

    #[test]
    fn the_list_of_players_has_breaks_and_reads_back() {
        let commercials =
            [Commercial { start: 20_240, end: 40_200 }, Commercial { start: 50_005, end: 60_000 }];
        let text = edl_of(&commercials);
        assert_eq!(text, "20.240\t40.200\t3\n50.005\t60.000\t3\n");
        assert_eq!(commercials_of_edl(&text, 60_000), commercials);
    }

    #[test]
    fn the_length_is_read_from_the_report() {
        let report = "FILE PROCESSING COMPLETE   1748 FRAMES AT  2500\n-------------------\n1747\t1748\n";
        assert_eq!(length_of_report(report), Some(69_920));
        for wrong in ["", "FILE PROCESSING COMPLETE", "FILE PROCESSING COMPLETE 1 FRAMES AT 0", "x"] {
            assert_eq!(length_of_report(wrong), None, "{wrong:?}");
        }
    }
}
