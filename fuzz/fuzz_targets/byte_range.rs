//! The header `Range`: nothing panics, a selected part exists and is not empty, and its description reads back.
#![no_main]

use domain::byte_range::{ByteRanges, ContentRange, SelectedBytes, content_range};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, u64)| {
    let (header, length) = input;
    let _ = ContentRange::parse(header);
    let Some(ranges) = ByteRanges::parse(header) else { return };
    let _ = ranges.likely_start();
    if let SelectedBytes::Part(part) = ranges.select(length) {
        assert!(part.start < part.end && part.end <= length);
        let described = ContentRange::parse(&content_range(&part, length)).expect("our own value is valid");
        assert_eq!((described.part, described.length), (Some(part), Some(length)));
    }
});
