//! HLS playlists of any kind: nothing panics, limits hold, and a reader that follows several versions of a playlist never
//! asks for a segment that is not listed, and never waits in the past.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use media::hls::{
    ADDRESS_BYTES_MAX, HlsMachine, HlsPlaylist, HlsStep, SEGMENTS_MAX, VARIANTS_MAX, VariantLimits,
    VariantPicture, Variants,
};

/// Separates the versions of a playlist; the byte after it tells what happens to the segments meanwhile.
const SEPARATOR: u8 = 0;

fuzz_target!(|data: &[u8]| {
    let mut machine = HlsMachine::new(Duration::ZERO);
    let mut now = Duration::ZERO;
    for version in data.split(|it| *it == SEPARATOR).take(16) {
        let (script, text) = version.split_first().map_or((0, version), |(script, text)| (*script, text));
        let list = match HlsPlaylist::parse(text) {
            Ok(HlsPlaylist::Media(list)) => list,
            Ok(HlsPlaylist::Master(master)) => {
                assert!(master.variants.len() <= VARIANTS_MAX);
                let has_picture = master.variants.iter().any(|it| it.picture == VariantPicture::Certain);
                let mut variants = Variants::new(master, VariantLimits::default());
                while let Some(variant) = variants.take_next() {
                    assert!(variant.address.len() <= ADDRESS_BYTES_MAX);
                    assert!(!has_picture || variant.picture != VariantPicture::None);
                }
                continue;
            }
            Err(_) => {
                machine.load_failed(now);
                continue;
            }
        };
        assert!(list.segments.len() <= SEGMENTS_MAX && !list.target.is_zero());
        machine.loaded(list, now, now);
        for step in 0..24 {
            match machine.next(now) {
                HlsStep::Load => break,
                HlsStep::Wait(until) => {
                    assert!(until > now);
                    now = until;
                }
                HlsStep::Key(address) => machine.key_loaded(address, [script; 16]),
                HlsStep::Segment(job) => {
                    assert!(job.address.len() <= ADDRESS_BYTES_MAX);
                    match (script >> (step % 8)) & 3 {
                        0 | 1 => machine.segment_done(),
                        2 => machine.segment_cut(),
                        _ => drop(machine.segment_failed(now)),
                    }
                }
                HlsStep::Ended | HlsStep::Silent => break,
            }
        }
        if script == u8::MAX {
            machine.change_variant(now);
        }
    }
});
