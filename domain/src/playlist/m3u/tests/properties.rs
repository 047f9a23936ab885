//! Properties of the parser for arbitrary input: limits, linear time, and independence of the pushed parts.

use proptest::prelude::*;

use crate::playlist::m3u::{PlaylistItem, PlaylistLimits, PlaylistParser, PlaylistSummary, parse};

/// Generates bytes that resemble a playlist.
fn playlist_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "#EXTM3U",
            "#EXTINF:",
            "-1",
            " tvg-id=",
            " tvg-name=\"",
            "\"",
            "'",
            "=",
            ",",
            "|",
            "User-Agent=",
            "&",
            "\n",
            "\r",
            "\r\n",
            "\t",
            "#EXTGRP:",
            "#EXTVLCOPT:http-user-agent=",
            "#EXTHTTP:{",
            "}",
            "http://h/1",
            "udp://@",
            "name",
            " tvg-chno=",
            "\u{FEFF}",
            "%4",
            "%E9",
            "#EXT-X-STREAM-INF",
            "é📺",
        ])
        .prop_map(|it| it.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..8),
        Just(vec![0xFF, 0xFE]),
        Just(vec![b'x'; 40]),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|it| it.concat())
}

fn parse_in_parts(
    bytes: &[u8],
    cuts: &[usize],
    limits: PlaylistLimits,
) -> (Vec<PlaylistItem>, PlaylistSummary) {
    let mut items = Vec::new();
    let mut parser = PlaylistParser::new(limits);
    let mut rest = bytes;
    for cut in cuts.iter().cycle().take(if cuts.is_empty() { 0 } else { bytes.len() }) {
        let (part, after) = rest.split_at((*cut).min(rest.len()));
        parser.push(part, &mut |item| items.push(item));
        rest = after;
    }
    parser.push(rest, &mut |item| items.push(item));
    let summary = parser.finish(&mut |item| items.push(item));
    (items, summary)
}

// Holds T-pl.2.
proptest! {
    #[test]
    fn the_sizes_of_the_pushed_parts_make_no_difference(
        bytes in playlist_bytes(),
        cuts in prop::collection::vec(0..40_usize, 0..8),
        line_bytes_max in 20..200_usize,
    ) {
        let limits = PlaylistLimits { line_bytes_max, name_chars_max: 30, url_bytes_max: 50, attributes_max: 2, entries_max: 5 };
        prop_assert_eq!(parse_in_parts(&bytes, &cuts, limits), parse(&bytes, limits));
    }

    #[test]
    fn every_item_keeps_the_limits(bytes in playlist_bytes()) {
        let limits = PlaylistLimits { line_bytes_max: 150, name_chars_max: 30, url_bytes_max: 50, attributes_max: 2, entries_max: 5 };
        let (items, summary) = parse(&bytes, limits);
        let entries = items.iter().filter(|it| matches!(it, PlaylistItem::Entry(_))).count() as u64;
        let problems = items.iter().filter(|it| matches!(it, PlaylistItem::Problem(_))).count() as u64;
        prop_assert_eq!((entries, problems), (summary.entries, summary.problems));
        prop_assert!(entries <= limits.entries_max);
        for item in &items {
            if let PlaylistItem::Entry(it) = item {
                prop_assert!(!it.name.is_empty() && it.name.chars().count() <= 30);
                prop_assert!(!it.name.contains(char::is_control));
                prop_assert!(it.url.expose().len() <= 50 && !it.url.expose().contains(char::is_control));
                prop_assert!(it.attributes.len() <= 2);
                prop_assert!((1..=summary.lines).contains(&it.line));
            }
        }
    }

    #[test]
    fn the_parser_keeps_no_more_than_a_line(bytes in playlist_bytes(), line_bytes_max in 20..200_usize) {
        let mut parser = PlaylistParser::new(PlaylistLimits { line_bytes_max, ..PlaylistLimits::default() });
        for piece in bytes.chunks(7) {
            parser.push(piece, &mut |_| {});
            prop_assert!(parser.lines.n_kept() <= line_bytes_max);
        }
    }
}

/// Lines that make a quadratic scan take minutes, because it reads every quote again and again.
#[test]
fn a_malicious_line_is_parsed_in_linear_time() {
    let limits = PlaylistLimits {
        line_bytes_max: 8 << 20,
        url_bytes_max: 8 << 20,
        name_chars_max: 8 << 20,
        ..PlaylistLimits::default()
    };
    for piece in [
        "a=\"",
        "a=\"x\"! ",
        "a='\"",
        "\"=",
        "a= ",
        " =\"",
        "a=\"b\" ! c='d' ! ",
        "!k=\"x\"! ",
        ",",
        ",tvg-a=\"",
        "a\"'",
        "aaaa",
    ] {
        let line = format!(
            "#EXTINF:-1 {}\nhttp://h/1|{}",
            piece.repeat((512 << 10) / piece.len()),
            "a=%41&".repeat(10_000)
        );
        let (items, _) = parse(line.as_bytes(), limits);
        assert!(items.iter().any(|it| matches!(it, PlaylistItem::Entry(_))), "{piece}");
    }
}
