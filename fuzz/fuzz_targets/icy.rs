//! Bodies with titles of ICY: what comes out is the body without its blocks, wherever a read ends, and titles have bounds.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use media::radio::{IcyCutter, IcyHeaders, TITLE_CHARS_MAX};

fuzz_target!(|input: (u16, Vec<u8>, &[u8], &[u8])| {
    let (interval, pieces, body, head) = input;
    let interval = usize::from(interval).max(1);
    if let Some(interval) = IcyHeaders::from_head(head).interval {
        assert!((1..=1 << 20).contains(&interval));
    }

    let mut cutter = IcyCutter::new(interval);
    let (mut out, mut rest) = (Vec::new(), Bytes::copy_from_slice(body));
    let mut pieces = pieces.into_iter().cycle();
    while !rest.is_empty() {
        let length = usize::from(pieces.next().unwrap_or(u8::MAX)).clamp(1, rest.len());
        cutter.push(rest.split_to(length), |it| {
            assert!(!it.is_empty());
            out.extend_from_slice(&it);
        });
        if let Some(title) = cutter.take_title() {
            assert!(title.chars().count() <= TITLE_CHARS_MAX);
            assert!(!title.contains(char::is_control) && title.trim_start() == &*title);
        }
    }
    assert_eq!(out, without_blocks(body, interval));
});

/// Returns a body without its blocks, read as a whole.
fn without_blocks(mut body: &[u8], interval: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((before, rest)) = body.split_at_checked(interval) {
        out.extend_from_slice(before);
        let block = rest.first().map_or(0, |it| 1 + usize::from(*it) * 16);
        body = rest.get(block..).unwrap_or_default();
    }
    out.extend_from_slice(body);
    out
}
