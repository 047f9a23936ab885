//! Tests of the frames. Those of whole connections are beside the pump.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use tokio::time::Instant;

use super::*;
use crate::chunk::ChunkHead;
use crate::chunker::{CHUNK_BYTES_MAX, Chunker};
use crate::testing::TsSource;
use crate::ts::packet::{PACKET, Packet, packets};

/// The bytes of one connection, as every version 1 sends them.
const GOLDEN: &[u8] = include_bytes!("testdata/frames-v1.bin");

/// Returns consecutive chunks of a stream: a random-access point with tables, and what follows.
fn chunks(now: Instant) -> Vec<Chunk> {
    let source = TsSource { bitrate: 60_000, ..TsSource::new("x") };
    let mut chunker = Chunker::new();
    let mut all = Vec::new();
    for packet in packets(&source.bytes(Duration::ZERO, Duration::from_millis(400))) {
        all.extend(chunker.push(Packet::new(packet), now));
        // As small as possible.
        if all.len() < 3 {
            all.extend(chunker.flush());
        }
    }
    all.truncate(3);
    chunker.flush();
    all.push(Chunk {
        head: ChunkHead { sequence: 9, discontinuity: true, ..all[2].head().clone() },
        bytes: all[2].bytes(),
    });
    all.push(Chunk { head: ChunkHead { sequence: 10, ..chunker.filler(now).head }, bytes: all[0].bytes() });
    all
}

fn encode(chunks: &[Chunk]) -> Vec<u8> {
    let mut encoder = FrameEncoder::new();
    let mut out = FrameEncoder::prologue(7).to_vec();
    for chunk in chunks {
        if chunk.head().sequence == 9 {
            out.extend(FrameEncoder::skip(1_000));
        }
        out.extend(encoder.chunk(chunk.head(), chunk.len(), Duration::from_millis(3)));
        out.extend(chunk.bytes());
    }
    out.extend(FrameEncoder::alive());
    out.extend(FrameEncoder::end(&EndReason::NothingPlays("é".into())));
    out
}

fn decode(pieces: &[&[u8]], now: Instant) -> Result<Vec<NodeFrame>, FrameError> {
    let mut decoder = FrameDecoder::new();
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Some(frame) = decoder.next(now)? {
            frames.push(frame);
        }
    }
    Ok(frames)
}

fn assert_same(found: &Chunk, sent: &Chunk, age: Duration) {
    assert_eq!(found.bytes(), sent.bytes());
    let (found, sent) = (found.head(), sent.head());
    assert_eq!(found.arrived + age, sent.arrived);
    let of = |it: &ChunkHead| {
        (it.sequence, it.programme_time, it.random_access, it.discontinuity, it.filler, it.tables.clone())
    };
    assert_eq!(of(found), of(sent));
    assert_eq!(found.counters, sent.counters);
}

#[test]
fn frames_carry_chunks_with_their_heads() {
    let now = Instant::now();
    let sent = chunks(now);
    let frames = decode(&[&encode(&sent)], now).unwrap();
    let found: Vec<_> =
        frames.iter().filter_map(|it| if let NodeFrame::Chunk(it) = it { Some(it) } else { None }).collect();
    assert_eq!(found.len(), sent.len());
    found.iter().zip(&sent).for_each(|(found, sent)| assert_same(found, sent, Duration::from_millis(3)));
    // Tables are sent once, and shared by all chunks after that.
    let tables: Vec<_> = found.iter().filter_map(|it| it.head().tables.as_ref()).collect();
    assert!(tables.len() > 1 && tables.iter().all(|it| Arc::ptr_eq(it, tables[0])));
    assert!(matches!(frames[3], NodeFrame::Skip { n_bytes: 1_000 }));
    assert!(matches!(frames[6], NodeFrame::Alive));
    assert!(matches!(&frames[7], NodeFrame::End(EndReason::NothingPlays(it)) if &**it == "é"));
}

#[test]
fn the_format_of_version_1_stays_as_it_is() {
    assert!(encode(&chunks(Instant::now())) == GOLDEN, "other bytes need another version");
}

#[test]
fn every_reason_of_an_end_is_carried() {
    let long: Arc<str> = "é".repeat(400).into();
    let reasons = [
        EndReason::Closed,
        EndReason::Stopped,
        EndReason::NothingPlays("a".into()),
        EndReason::NoSlot("".into()),
        EndReason::Kicked,
        EndReason::TooSlow,
        EndReason::Silent,
    ];
    for reason in reasons {
        let bytes = [FrameEncoder::prologue(1), FrameEncoder::end(&reason)].concat();
        let frames = decode(&[&bytes], Instant::now()).unwrap();
        assert!(matches!(&frames[..], [NodeFrame::End(found)] if *found == reason), "{frames:?}");
    }
    let bytes = [FrameEncoder::prologue(1), FrameEncoder::end(&EndReason::NoSlot(long))].concat();
    let frames = decode(&[&bytes], Instant::now()).unwrap();
    assert!(matches!(&frames[..], [NodeFrame::End(EndReason::NoSlot(it))] if it.len() == 512));
}

/// Changes one byte of the first chunk frame with tables.
#[track_caller]
fn check_refused(at: usize, value: u8, expected: FrameError) {
    let mut bytes = GOLDEN.to_vec();
    bytes[at] = value;
    assert_eq!(decode(&[&bytes], Instant::now()).err(), Some(expected), "byte {at}");
}

#[test]
fn bytes_that_the_format_does_not_allow_are_refused() {
    check_refused(0, b'X', FrameError::Prologue);
    check_refused(4, 2, FrameError::Version(2));
    check_refused(5, 1, FrameError::Prologue);
    check_refused(PROLOGUE_BYTES, 9, FrameError::Kind(9));
    check_refused(PROLOGUE_BYTES + 1, 1, FrameError::Length(1, (1 << 24) + first_length()));
    // The highest byte of the number of the first chunk.
    let chunk = PROLOGUE_BYTES + FRAME_HEAD_BYTES;
    check_refused(chunk, 0xFF, FrameError::Chunk("number"));
    check_refused(chunk + 12, 0x80, FrameError::Chunk("flags"));
    check_refused(chunk + 12, FLAG_TABLES, FrameError::Chunk("tables"));
    let packets = chunk + first_length() - PACKET;
    check_refused(packets, 0, FrameError::Chunk("packets"));
    // The second chunk has number 1.
    let second = chunk + first_length() + FRAME_HEAD_BYTES;
    check_refused(second + 7, 0, FrameError::Order { before: 0, found: 0 });
    check_refused(second + 7, 5, FrameError::Order { before: 0, found: 5 });
    let mut longer = GOLDEN.to_vec();
    longer.push(0);
    assert_eq!(decode(&[&longer], Instant::now()).err(), Some(FrameError::AfterEnd));
}

fn first_length() -> usize {
    let head = &GOLDEN[PROLOGUE_BYTES..][1..FRAME_HEAD_BYTES];
    u32::from_be_bytes(head.try_into().unwrap()) as usize
}

#[test]
fn a_cut_stream_is_incomplete_and_not_an_error() {
    for n in 0..GOLDEN.len() {
        let frames = decode(&[&GOLDEN[..n]], Instant::now()).unwrap();
        assert!(!frames.iter().any(|it| matches!(it, NodeFrame::End(_))), "{n}");
    }
}

#[test]
fn the_longest_chunk_fits_into_a_frame() {
    let now = Instant::now();
    let mut head = chunks(now)[1].head().clone();
    head.counters = (0..256).map(|it| (it, 3)).collect();
    let mut packet = [0xFF; PACKET];
    packet[0] = 0x47;
    let chunk = Chunk { head, bytes: Bytes::from(packet.repeat(CHUNK_BYTES_MAX / PACKET)) };
    let bytes = [
        FrameEncoder::prologue(1),
        FrameEncoder::new().chunk(chunk.head(), chunk.len(), Duration::ZERO),
        chunk.bytes(),
    ]
    .concat();
    assert!(matches!(&decode(&[&bytes], now).unwrap()[..], [NodeFrame::Chunk(_)]));
}

#[test]
fn positions_are_two_numbers() {
    assert_eq!("7.12".parse(), Ok(RingPosition { epoch: 7, sequence: 12 }));
    assert_eq!(RingPosition { epoch: 7, sequence: 12 }.to_string(), "7.12");
    for wrong in ["", "7", "7.", ".1", "7.1.2", "+7.1", "7.-1", "7.99999999999999999999"] {
        assert_eq!(wrong.parse::<RingPosition>(), Err(PositionError), "{wrong}");
    }
}

proptest! {
    #[test]
    fn pieces_of_any_length_give_the_same_frames(cuts in prop::collection::vec(0..GOLDEN.len(), 0..20)) {
        let mut cuts = cuts;
        cuts.extend([0, GOLDEN.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|it| &GOLDEN[it[0]..it[1]]).collect();
        let now = Instant::now();
        prop_assert_eq!(
            format!("{:?}", decode(&pieces, now).unwrap()),
            format!("{:?}", decode(&[GOLDEN], now).unwrap())
        );
    }

    #[test]
    fn changed_bytes_are_read_the_same_in_pieces_and_never_panic(
        changes in prop::collection::vec((0..GOLDEN.len(), any::<u8>()), 1..8)
    ) {
        let mut bytes = GOLDEN.to_vec();
        changes.iter().for_each(|(at, value)| bytes[*at] = *value);
        let now = Instant::now();
        let pieces: Vec<_> = bytes.chunks(7).collect();
        prop_assert_eq!(
            decode(&pieces, now).map(|it| it.len()),
            decode(&[&bytes], now).map(|it| it.len())
        );
    }
}
