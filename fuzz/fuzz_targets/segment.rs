//! Hostile packets through the segmenters of both containers. Every playlist, and every box of the result, must be as a
//! strict player wants it.

#![no_main]

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use media::segment::{Packager, PlaylistRequest, SegmentContainer, SegmentSettings, SegmentWindow};
use media::ts::packet::PACKET;
use tokio::time::Instant;

fuzz_target!(|data: &[u8]| {
    let bytes = Bytes::copy_from_slice(&data[..data.len() / PACKET * PACKET]);
    play(&bytes, SegmentContainer::Ts);
    play(&bytes, SegmentContainer::Fmp4);
});

fn play(bytes: &Bytes, container: SegmentContainer) {
    let settings = SegmentSettings { bytes: 1 << 20, ..SegmentSettings::default() };
    let window = Arc::new(SegmentWindow::new(container, settings, UNIX_EPOCH + Duration::from_secs(1)));
    let mut packager = Packager::new(Arc::clone(&window));
    let start = Instant::now();
    for (index, at) in (0..bytes.len()).step_by(7 * PACKET).enumerate() {
        let run = bytes.slice(at..bytes.len().min(at + 7 * PACKET));
        packager.push(&run, start + Duration::from_millis(20 * index as u64));
    }
    packager.finish();
    let request = PlaylistRequest { low_latency: true, skip: true, ..PlaylistRequest::default() };
    let Ok(playlist) = window.playlist(&request) else { return };
    assert!(playlist.text.starts_with("#EXTM3U\n"));
    let description = window.description();
    let (Some(oldest), Some(newest)) = (description.oldest_sequence, description.newest_sequence) else {
        return;
    };
    for body in (oldest..=newest).filter_map(|it| window.segment(it)) {
        match container {
            SegmentContainer::Ts => assert!(body.len() % PACKET == 0),
            SegmentContainer::Fmp4 => read_boxes(&body.to_bytes()),
        }
    }
    for init in (1..=description.init_version.unwrap_or(0)).filter_map(|it| window.init(it)) {
        read_boxes(&init);
    }
}

/// Checks that the boxes fill the bytes.
fn read_boxes(mut bytes: &[u8]) {
    while let Some((head, _)) = bytes.split_first_chunk::<8>() {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        assert!(length >= 8 && length <= bytes.len());
        if matches!(&head[4..], b"moov" | b"trak" | b"mdia" | b"minf" | b"stbl" | b"moof" | b"traf" | b"mvex")
        {
            read_boxes(&bytes[8..length]);
        }
        bytes = &bytes[length..];
    }
    assert!(bytes.is_empty());
}
