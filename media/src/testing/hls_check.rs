//! Checks playlists and segments of a live stream as a strict player would: RFC 8216, and RFC 8216bis for low latency.

use std::collections::BTreeMap;

use crate::ts::clock::{STAMP_MODULUS, distance};
use crate::ts::packet::{PACKET, PAT_PID, Packet, packets};
use crate::ts::pes::stamps;
use crate::ts::random_access::RandomAccess;
use crate::ts::table_reader::TableReader;

/// The largest difference between the times of a playlist and those of its media, in seconds.
const TOLERANCE: f64 = 0.15;

/// Checks each version of one playlist against the versions before, and each segment against its playlist.
///
/// All checks panic, because this is a part of tests.
#[derive(Debug, Default)]
pub struct HlsChecker {
    /// All segments that were listed, by number.
    segments: BTreeMap<u64, ListedSegment>,
    parts: BTreeMap<(u64, usize), ListedPart>,
    target: Option<u64>,
    part_target: Option<f64>,
    first: u64,
    hint: Option<String>,
    /// The end of each track in fragments that were read, in its time scale.
    track_ends: BTreeMap<u32, u64>,
    counters: BTreeMap<u16, u8>,
    last_read: Option<u64>,
}

/// A segment in a playlist.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedSegment {
    /// Its address.
    pub uri: String,
    /// Seconds.
    pub duration: f64,
    /// Whether a discontinuity precedes it.
    pub is_discontinuity: bool,
    /// Number of discontinuities before it and at its beginning, from the start of the stream.
    pub discontinuity: u64,
    /// The address of its initialisation segment.
    pub map: Option<String>,
    /// Seconds since midnight of its date and time, if the playlist has one.
    pub second_of_day: Option<f64>,
}

/// A part in a playlist.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedPart {
    /// Its address.
    pub uri: String,
    /// Seconds.
    pub duration: f64,
    /// Whether it contains a random-access point.
    pub is_independent: bool,
}

impl HlsChecker {
    /// Creates a checker that has seen no playlist.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns all segments that were listed so far, by number.
    pub fn segments(&self) -> &BTreeMap<u64, ListedSegment> {
        &self.segments
    }

    /// Returns all parts that were listed so far, by the number of their segment and their index.
    pub fn parts(&self) -> &BTreeMap<(u64, usize), ListedPart> {
        &self.parts
    }

    /// Checks the next version of the playlist.
    pub fn playlist(&mut self, text: &str) {
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("#EXTM3U"), "the first line");
        assert!(text.ends_with('\n'), "the last line ends");
        let once = |tag: &str| {
            let mut found = text.lines().filter_map(|it| it.strip_prefix(tag)?.strip_prefix(':'));
            let value = found.next();
            assert!(found.next().is_none(), "{tag} occurs once:\n{text}");
            value
        };
        let number = |tag: &str| once(tag).map(|it| it.parse::<u64>().expect("a number"));
        let target = number("#EXT-X-TARGETDURATION").expect("a target duration");
        assert_eq!(*self.target.get_or_insert(target), target, "the target duration does not change");
        let version = number("#EXT-X-VERSION").unwrap_or(1);
        let part_target =
            once("#EXT-X-PART-INF").map(|it| attribute_number(it, "PART-TARGET").expect("PART-TARGET"));
        if let Some(part_target) = part_target {
            assert_eq!(
                *self.part_target.get_or_insert(part_target),
                part_target,
                "the part target does not change"
            );
            let control = once("#EXT-X-SERVER-CONTROL").expect("a playlist with parts has server control");
            assert_eq!(attribute(control, "CAN-BLOCK-RELOAD"), Some("YES"));
            let hold_back = attribute_number(control, "PART-HOLD-BACK").expect("PART-HOLD-BACK");
            assert!(hold_back > 3.0 * part_target - 0.001, "PART-HOLD-BACK {hold_back} of {part_target}");
            let is_long = |name: &str, n: u64| {
                assert!(
                    attribute_number(control, name).is_none_or(|it| it >= (n * target) as f64),
                    "{name}:\n{text}"
                );
            };
            is_long("HOLD-BACK", 3);
            is_long("CAN-SKIP-UNTIL", 6);
        }
        let first = number("#EXT-X-MEDIA-SEQUENCE").unwrap_or(0);
        assert!(first >= self.first, "the first segment was removed before");
        assert!(self.segments.is_empty() || self.segments.contains_key(&first), "no segment is left out");
        self.first = first;
        let mut discontinuity = number("#EXT-X-DISCONTINUITY-SEQUENCE").unwrap_or(0);
        let mut next = first;
        let (mut map, mut is_discontinuity, mut second_of_day, mut duration) = (None, false, None, None);
        let mut parts: Vec<ListedPart> = Vec::new();
        self.hint = None;
        for line in lines {
            assert_eq!(line.trim(), line, "no spaces around lines");
            assert!(!line.is_empty(), "no empty lines");
            let (tag, value) = line.split_once(':').unwrap_or((line, ""));
            match tag {
                "#EXT-X-SKIP" => {
                    assert!(version >= 9 && next == first);
                    let n = attribute_number(value, "SKIPPED-SEGMENTS").expect("SKIPPED-SEGMENTS") as u64;
                    for _ in 0..n {
                        let known = self.segments.get(&next).expect("a skipped segment was listed before");
                        discontinuity += u64::from(known.is_discontinuity);
                        map = known.map.clone();
                        next += 1;
                    }
                }
                "#EXT-X-DISCONTINUITY" => {
                    (is_discontinuity, discontinuity) = (true, discontinuity + 1);
                }
                "#EXT-X-MAP" => {
                    assert!(version >= 6, "EXT-X-MAP needs version 6");
                    let uri = attribute(value, "URI").expect("an address").to_owned();
                    let before = map.replace(uri);
                    assert!(before.is_none() || is_discontinuity, "a new map is a discontinuity");
                }
                "#EXT-X-PROGRAM-DATE-TIME" => second_of_day = Some(seconds_of_day(value)),
                "#EXT-X-PART" => {
                    let part = ListedPart {
                        uri: attribute(value, "URI").expect("an address").to_owned(),
                        duration: attribute_number(value, "DURATION").expect("a duration"),
                        is_independent: attribute(value, "INDEPENDENT") == Some("YES"),
                    };
                    let part_target = part_target.expect("a playlist with parts has PART-INF");
                    assert!(part.duration <= part_target + 0.0001, "{part:?} is longer than {part_target}");
                    parts.push(part);
                }
                "#EXTINF" => {
                    let (number, title) = value.split_once(',').expect("a comma");
                    assert_eq!(title, "");
                    assert!(version >= 3 || !number.contains('.'));
                    duration = Some(number.parse::<f64>().expect("a duration"));
                }
                "#EXT-X-PRELOAD-HINT" => {
                    assert_eq!(attribute(value, "TYPE"), Some("PART"));
                    self.hint = attribute(value, "URI").map(str::to_owned);
                }
                _ if tag.starts_with('#') => {
                    let head = [
                        "#EXT-X-VERSION",
                        "#EXT-X-TARGETDURATION",
                        "#EXT-X-SERVER-CONTROL",
                        "#EXT-X-PART-INF",
                        "#EXT-X-MEDIA-SEQUENCE",
                        "#EXT-X-DISCONTINUITY-SEQUENCE",
                        "#EXT-X-INDEPENDENT-SEGMENTS",
                    ];
                    assert!(head.contains(&tag), "unknown tag {line}");
                    assert!(next == first && duration.is_none(), "{tag} after a segment");
                }
                _ => {
                    let segment = ListedSegment {
                        uri: line.to_owned(),
                        duration: duration.take().expect("EXTINF before an address"),
                        is_discontinuity: std::mem::take(&mut is_discontinuity),
                        discontinuity,
                        map: map.clone(),
                        second_of_day: second_of_day.take(),
                    };
                    self.listed_parts(next, std::mem::take(&mut parts), Some(segment.duration));
                    self.listed_segment(next, segment, target);
                    next += 1;
                }
            }
        }
        assert!(duration.is_none(), "an address follows EXTINF");
        assert!(next > first, "the playlist has a segment:\n{text}");
        let newest = self.segments.last_key_value().map(|it| *it.0);
        assert_eq!(newest, Some(next - 1), "no segment is removed from the end:\n{text}");
        if part_target.is_some() {
            let n_parts = parts.len();
            self.listed_parts(next, parts, None);
            if let Some(hint) = &self.hint {
                let known = self.parts.get(&(next, n_parts)).map(|it| &it.uri);
                assert!(known.is_none_or(|it| it == hint), "the hint names the next part");
            }
        }
    }

    fn listed_segment(&mut self, number: u64, segment: ListedSegment, target: u64) {
        assert!(segment.duration > 0.0 && segment.duration.round() <= target as f64, "{number}: {segment:?}");
        if let Some(before) = number.checked_sub(1).and_then(|it| self.segments.get(&it)) {
            assert_eq!(segment.discontinuity - before.discontinuity, u64::from(segment.is_discontinuity));
            assert!(segment.is_discontinuity || segment.map == before.map, "a new map is a discontinuity");
            if let (Some(at), Some(was), false) =
                (segment.second_of_day, before.second_of_day, segment.is_discontinuity)
            {
                let step = (at - was).rem_euclid(86_400.0);
                assert!((step - before.duration).abs() < 0.01, "{number}: {step} s after {before:?}");
            }
        }
        if let Some(known) = self.segments.insert(number, segment.clone()) {
            assert_eq!(known, segment, "segment {number} does not change");
        }
    }

    fn listed_parts(&mut self, number: u64, parts: Vec<ListedPart>, duration: Option<f64>) {
        let (n, target) = (parts.len(), self.part_target.unwrap_or(0.0));
        let sum: f64 = parts.iter().map(|it| it.duration).sum();
        if let Some(duration) = duration.filter(|_| n > 0) {
            // A hole in the stream belongs to the segment, and to none of its parts.
            assert!(sum < duration + 0.01, "{number}: parts of {sum} s in {duration} s");
        }
        for (index, part) in parts.into_iter().enumerate() {
            let is_last = index + 1 == n;
            assert!(
                is_last || part.is_independent || part.duration >= 0.85 * target,
                "{number}.{index}: {part:?}"
            );
            if let Some(known) = self.parts.insert((number, index), part.clone()) {
                assert_eq!(known, part, "part {number}.{index} does not change");
            }
        }
    }

    /// Checks the bytes of a listed segment in a transport stream. Segments are read in order.
    pub fn ts_segment(&mut self, number: u64, bytes: &[u8]) {
        let listed = self.segments.get(&number).expect("a listed segment");
        assert!(bytes.len().is_multiple_of(PACKET) && !bytes.is_empty(), "whole packets");
        let is_next = number.checked_sub(1) == self.last_read;
        self.last_read = Some(number);
        if listed.is_discontinuity || !is_next {
            self.counters.clear();
        }
        let mut reader = TableReader::new();
        let mut times = Vec::new();
        let mut is_start = None;
        for (index, packet) in packets(bytes).map(Packet::new).enumerate() {
            assert!(packet.is_valid(), "{number}: packet {index} is valid");
            assert!(index > 0 || packet.pid() == PAT_PID, "{number} begins with the PAT");
            reader.packet(packet);
            let before = self.counters.insert(packet.pid(), packet.cc());
            if let Some(before) = before.filter(|_| packet.has_payload()) {
                let fits =
                    packet.cc() == (before + 1) & 0x0F || packet.cc() == before || packet.discontinuity();
                assert!(fits, "{number}: counter of {} jumps from {before} to {}", packet.pid(), packet.cc());
            }
            let Some(access) = reader.tables().and_then(RandomAccess::new) else { continue };
            if packet.pid() == access.pid() && packet.pusi() {
                is_start.get_or_insert(access.is_start(packet));
                times.extend(stamps(packet).pts);
            }
        }
        assert!(reader.tables().is_some(), "{number} has its tables");
        let first = *times.first().expect("a picture");
        let seconds = |it: &u64| distance(first, *it, STAMP_MODULUS) as f64 / 90_000.0;
        let longest = times.iter().map(seconds).fold(0.0, f64::max);
        assert!(longest < listed.duration + TOLERANCE, "{number}: pictures of {longest} s in {listed:?}");
        assert!(is_start.is_some(), "{number} has a picture");
    }

    /// Checks the bytes of a listed segment in fragmented MP4. Segments are read in order.
    pub fn fmp4_segment(&mut self, number: u64, bytes: &[u8]) {
        let listed = self.segments.get(&number).cloned().expect("a listed segment");
        let is_next = number.checked_sub(1) == self.last_read;
        self.last_read = Some(number);
        if listed.is_discontinuity || !is_next {
            self.track_ends.clear();
        }
        let boxes = boxes(bytes);
        assert_eq!(boxes.first().map(|it| it.0), Some(*b"styp"), "{number} begins with its type");
        let fragments = boxes[1..].chunks(2);
        assert!(fragments.len() > 0);
        let mut at = boxes[0].1.len() + 8;
        for pair in fragments {
            let [(b"moof", moof), (b"mdat", mdat)] =
                pair.iter().map(|it| (&it.0, it.1)).collect::<Vec<_>>()[..]
            else {
                panic!("{number}: a fragment is moof and mdat");
            };
            self.fragment(number, moof, mdat.len(), moof.len() + 16);
            at += moof.len() + mdat.len() + 16;
        }
        assert_eq!(at, bytes.len());
    }

    fn fragment(&mut self, number: u64, moof: &[u8], mdat_bytes: usize, data_from: usize) {
        let mut n_data = 0;
        for (_, traf) in boxes(moof).into_iter().filter(|it| it.0 == *b"traf") {
            let inner = boxes(traf);
            let content = |name: &[u8; 4]| inner.iter().find(|it| it.0 == *name).expect("a box").1;
            let long = |bytes: &[u8], at: usize| {
                u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
            };
            let track = long(content(b"tfhd"), 4);
            let time = u64::from_be_bytes(content(b"tfdt")[4..12].try_into().expect("eight bytes"));
            let run = content(b"trun");
            let (flags, n_samples) = (long(run, 0) & 0xFF_FFFF, long(run, 4) as usize);
            assert_eq!(long(run, 8) as usize, data_from + n_data, "{number}: data follow each other");
            let per_sample = if flags & 0xC00 == 0 { 8 } else { 16 };
            assert_eq!(run.len(), 12 + n_samples * per_sample);
            let mut duration = 0;
            for sample in run[12..].chunks(per_sample) {
                duration += u64::from(long(sample, 0));
                n_data += long(sample, 4) as usize;
            }
            if let Some(end) = self.track_ends.insert(track, time + duration) {
                assert!(time >= end, "{number}: track {track} continues at {time} before its end {end}");
            }
        }
        assert_eq!(n_data, mdat_bytes, "{number}: all data belong to samples");
    }
}

/// Returns the boxes in some bytes.
///
/// # Panics
/// A box is longer than the bytes.
pub fn boxes(mut bytes: &[u8]) -> Vec<([u8; 4], &[u8])> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let [a, b, c, d, name @ ..] = bytes.first_chunk::<8>().expect("the header of a box");
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let (whole, rest) = bytes.split_at_checked(length).expect("a whole box");
        found.push((*name, whole.get(8..).expect("a header is in the box")));
        bytes = rest;
    }
    found
}

/// Returns an attribute of a list without its quotes.
fn attribute<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = list;
    while let Some((key, value)) = rest.split_once('=') {
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => {
                let (value, after) = quoted.split_once('"')?;
                (value, after.strip_prefix(',').unwrap_or(after))
            }
            None => value.split_once(',').unwrap_or((value, "")),
        };
        if key == name {
            return Some(value);
        }
        rest = after;
    }
    None
}

fn attribute_number(list: &str, name: &str) -> Option<f64> {
    attribute(list, name).map(|it| it.parse().expect("a number"))
}

/// Returns the seconds since midnight of a date and time in UTC.
fn seconds_of_day(date: &str) -> f64 {
    let time = date.split_once('T').and_then(|it| it.1.strip_suffix('Z')).expect("a time in UTC");
    time.split(':').map(|it| it.parse::<f64>().expect("a number")).fold(0.0, |sum, it| sum * 60.0 + it)
}
