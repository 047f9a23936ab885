//! Frames of rings from other processes: no bytes make a panic, what is read can be written and read again, pieces of any
//! length give the same, and what waits is bounded.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use media::node::{FrameDecoder, FrameEncoder, FrameError, NodeFrame, RingPosition};
use tokio::time::Instant;

fn read(pieces: &[&[u8]], now: Instant) -> (Vec<NodeFrame>, Option<FrameError>, Option<u64>) {
    let (mut decoder, mut frames) = (FrameDecoder::new(), Vec::new());
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next(now) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error), decoder.epoch()),
            }
        }
    }
    (frames, None, decoder.epoch())
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(position) = std::str::from_utf8(bytes).unwrap_or_default().parse::<RingPosition>() {
        assert_eq!(position.to_string().parse(), Ok(position));
    }
    let now = Instant::now();
    let (frames, error, epoch) = read(&[bytes], now);
    let pieces: Vec<_> = bytes.chunks(7).collect();
    let (same, same_error, _) = read(&pieces, now);
    assert_eq!(format!("{frames:?}"), format!("{same:?}"));
    assert_eq!(error, same_error);

    let Some(epoch) = epoch else { return };
    let mut encoder = FrameEncoder::new();
    let mut written = FrameEncoder::prologue(epoch).to_vec();
    for frame in &frames {
        match frame {
            NodeFrame::Chunk(chunk) => {
                let age = now.saturating_duration_since(chunk.head().arrived);
                assert!(age <= Duration::from_secs(600) && chunk.len() <= 64 << 10);
                written.extend(encoder.chunk(chunk.head(), chunk.len(), age));
                written.extend(chunk.bytes());
            }
            NodeFrame::Alive => written.extend(FrameEncoder::alive()),
            NodeFrame::Skip { n_bytes } => written.extend(FrameEncoder::skip(*n_bytes)),
            NodeFrame::End(reason) => written.extend(FrameEncoder::end(reason)),
        }
    }
    let (again, error, _) = read(&[&written], now);
    assert_eq!(error, None);
    assert_eq!(format!("{frames:?}"), format!("{again:?}"));
});
