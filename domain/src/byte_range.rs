//! Ranges of bytes in HTTP (RFC 9110, section 14): the header `Range` of clients, and `Content-Range` of servers.

use std::ops::Range;

/// Maximum number of ranges in one header. A header with more is ignored, as the standard allows.
const RANGES_MAX: usize = 32;

/// The ranges that a client requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteRanges(Vec<RangeSpec>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeSpec {
    /// `5-` and `5-9`; the end is not part of the range.
    From { start: u64, end: u64 },
    /// `-500`: the last bytes.
    Last(u64),
}

/// The part of a file that answers a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectedBytes {
    /// The whole file, with status 200.
    Whole,
    /// One part, with status 206.
    Part(Range<u64>),
    /// No requested byte exists: status 416.
    Unsatisfiable,
}

impl ByteRanges {
    /// Parses the value of a header `Range`. Returns `None` for a malformed one and for other units, which a server
    /// ignores.
    pub fn parse(header: &str) -> Option<Self> {
        let (unit, ranges) = header.split_once('=')?;
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        let mut specs = Vec::new();
        // Lists may have empty elements.
        for range in ranges.split(',').map(|it| it.trim_matches([' ', '\t'])).filter(|it| !it.is_empty()) {
            if specs.len() == RANGES_MAX {
                return None;
            }
            specs.push(RangeSpec::parse(range)?);
        }
        (!specs.is_empty()).then_some(Self(specs))
    }

    /// Selects the bytes of a file of this length. Several ranges are joined if they touch; otherwise the answer is the
    /// whole file, because no player asks for a body of several parts.
    pub fn select(&self, length: u64) -> SelectedBytes {
        let mut found: Vec<Range<u64>> = self.0.iter().filter_map(|it| it.within(length)).collect();
        found.sort_by_key(|it| it.start);
        let mut found = found.into_iter();
        let Some(mut joined) = found.next() else { return SelectedBytes::Unsatisfiable };
        for next in found {
            if next.start > joined.end {
                return SelectedBytes::Whole;
            }
            joined.end = joined.end.max(next.end);
        }
        SelectedBytes::Part(joined)
    }

    /// Returns the first byte that is most likely needed, while the length of the file is unknown.
    pub fn likely_start(&self) -> u64 {
        match self.0[..] {
            [RangeSpec::From { start, .. }] => start,
            _ => 0,
        }
    }
}

impl RangeSpec {
    fn parse(range: &str) -> Option<Self> {
        let (first, last) = range.split_once('-')?;
        match (first, last) {
            ("", last) => Some(Self::Last(number(last)?)),
            (first, "") => Some(Self::From { start: number(first)?, end: u64::MAX }),
            (first, last) => {
                let (start, last) = (number(first)?, number(last)?);
                (start <= last).then(|| Self::From { start, end: last.saturating_add(1) })
            }
        }
    }

    /// Returns the part of the range that exists; `None` if no byte of it does.
    fn within(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::From { start, end } => start..end.min(length),
            Self::Last(n_bytes) => length.saturating_sub(n_bytes)..length,
        };
        (range.start < range.end).then_some(range)
    }
}

/// Parses digits. A number that is too large becomes the largest one.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Returns whether the condition `If-Range` of a request holds for a file with this strong entity tag, so that its ranges
/// count. A date never holds, because files of providers have no date that can be trusted.
pub fn if_range_holds(if_range: &str, tag: &str) -> bool {
    if_range.trim() == tag
}

/// Returns the value of `Content-Range` for a part.
pub fn content_range(part: &Range<u64>, length: u64) -> String {
    format!("bytes {}-{}/{length}", part.start, part.end.saturating_sub(1))
}

/// Returns the value of `Content-Range` with status 416.
pub fn unsatisfied_range(length: u64) -> String {
    format!("bytes */{length}")
}

/// A part of a file, as a server declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentRange {
    /// The bytes of the body; `None` with status 416.
    pub part: Option<Range<u64>>,
    /// Length of the file, if the server knows it.
    pub length: Option<u64>,
}

impl ContentRange {
    /// Parses the value of a header `Content-Range`. Returns `None` if it is malformed or contradicts itself.
    pub fn parse(header: &str) -> Option<Self> {
        let header = header.trim();
        let unit = header.get(..5).filter(|it| it.eq_ignore_ascii_case("bytes"))?;
        // Some servers write `bytes=` or `bytes:`.
        let value = header[unit.len()..].trim_start_matches([' ', '\t', '=', ':']);
        let (part, length) = value.split_once('/')?;
        let length = match length.trim() {
            "*" => None,
            digits => Some(digits.parse().ok()?),
        };
        let part = match part.trim() {
            "*" => None,
            part => {
                let (first, last) = part.split_once('-')?;
                let (start, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
                let end = last.checked_add(1)?;
                if start >= end || length.is_some_and(|it| end > it) {
                    return None;
                }
                Some(start..end)
            }
        };
        Some(Self { part, length })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::SelectedBytes::{Part, Unsatisfiable, Whole};
    use super::*;

    #[track_caller]
    fn check(header: &str, length: u64, expected: SelectedBytes) {
        let selected = ByteRanges::parse(header).map_or(Whole, |it| it.select(length));
        assert_eq!(selected, expected, "{header} of {length}");
    }

    #[test]
    fn one_range_selects_the_part_that_exists() {
        check("bytes=0-", 1000, Part(0..1000));
        check("bytes=0-0", 1000, Part(0..1));
        check("bytes=999-", 1000, Part(999..1000));
        check("bytes=500-999", 1000, Part(500..1000));
        check("bytes=500-5000", 1000, Part(500..1000));
        check("bytes=-500", 1000, Part(500..1000));
        check("bytes=-5000", 1000, Part(0..1000));
        check("Bytes = 1-2", 1000, Part(1..3));
        check("bytes=1-99999999999999999999999", 1000, Part(1..1000));
        check("bytes=,, 1-2 ,", 1000, Part(1..3));
    }

    #[test]
    fn a_range_without_an_existing_byte_is_unsatisfiable() {
        check("bytes=1000-", 1000, Unsatisfiable);
        check("bytes=99999999999999999999999-", 1000, Unsatisfiable);
        check("bytes=-0", 1000, Unsatisfiable);
        check("bytes=0-", 0, Unsatisfiable);
        check("bytes=-1", 0, Unsatisfiable);
        check("bytes=1000-,2000-3000", 1000, Unsatisfiable);
    }

    #[test]
    fn malformed_ranges_and_other_units_are_ignored() {
        for header in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=,",
            "bytes=5",
            "bytes=5-4",
            "bytes=a-",
            "bytes=0x1-",
            "bytes=+1-2",
            "bytes=1-2-3",
            "bytes=1 -2",
            "bytes=--5",
            "bytes=0-1;2-3",
            "items=0-1",
            "seconds=1-2",
            "0-1",
            "bytes=1-2,x",
        ] {
            check(header, 1000, Whole);
        }
        check(&format!("bytes={}", "0-1,".repeat(RANGES_MAX + 1)), 1000, Whole);
    }

    #[test]
    fn several_ranges_are_joined_where_they_touch() {
        check("bytes=0-99,100-199", 1000, Part(0..200));
        check("bytes=100-199,0-99", 1000, Part(0..200));
        check("bytes=0-149,100-199,-800", 1000, Part(0..1000));
        check("bytes=0-9,5000-", 1000, Part(0..10));
        check("bytes=0-9,11-19", 1000, Whole);
        check("bytes=0-0,-1", 1000, Whole);
    }

    #[test]
    fn a_condition_holds_for_the_same_strong_tag_only() {
        assert!(if_range_holds("\"a\"", "\"a\""));
        assert!(!if_range_holds("W/\"a\"", "\"a\""));
        assert!(!if_range_holds("\"b\"", "\"a\""));
        assert!(!if_range_holds("Tue, 15 Nov 1994 12:45:26 GMT", "\"a\""));
    }

    #[test]
    fn a_declared_part_is_read_and_one_that_contradicts_itself_is_not() {
        let read = |header: &str| ContentRange::parse(header).map(|it| (it.part, it.length));
        assert_eq!(read("bytes 0-0/10"), Some((Some(0..1), Some(10))));
        assert_eq!(read("bytes 5-9/10"), Some((Some(5..10), Some(10))));
        assert_eq!(read("bytes 5-9/*"), Some((Some(5..10), None)));
        assert_eq!(read("bytes=5-9/10"), Some((Some(5..10), Some(10))));
        assert_eq!(read("bytes */10"), Some((None, Some(10))));
        for header in
            ["", "bytes", "bytes 5-9", "bytes 9-5/10", "bytes 5-10/10", "bytes x-9/10", "items 0-1/2"]
        {
            assert_eq!(read(header), None, "{header}");
        }
        assert_eq!(read(&content_range(&(3..8), 10)), Some((Some(3..8), Some(10))));
        assert_eq!(read(&unsatisfied_range(10)), Some((None, Some(10))));
    }

    proptest! {
        #[test]
        fn a_selected_part_exists_and_is_not_empty(header in "bytes=[0-9, -]{0,20}", length in 0..2000_u64) {
            if let Some(ranges) = ByteRanges::parse(&header)
                && let Part(part) = ranges.select(length)
            {
                prop_assert!(part.start < part.end && part.end <= length);
            }
        }
    }
}
