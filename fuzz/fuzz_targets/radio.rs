//! Bytes of a station: nothing panics, frames are parts of the bytes, and the packets of the
//! frames are whole, with counters that continue and times that never go back.
#![no_main]

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use media::radio::{FrameReader, RadioPacker};
use media::ts::audio_frame::FrameHeader;
use media::ts::clock::STAMP_MODULUS;
use media::ts::packet::{PACKET, Packet, packets};
use media::ts::pes::stamps;
use media::ts::table_reader::TableReader;

fuzz_target!(|data: &[u8]| {
    let Some((piece, data)) = data.split_first() else { return };
    let frames = frames_in(data, usize::from(*piece) + 1);
    let length: usize = frames.iter().map(|it| it.1.len()).sum();
    assert!(length <= data.len());

    let (mut packer, mut out) = (RadioPacker::default(), BytesMut::new());
    for (header, frame) in &frames {
        assert_eq!(header.length, frame.len());
        packer.frame(header, frame, &mut out);
    }
    assert!(out.len().is_multiple_of(PACKET));
    let (mut counters, mut tables) = (HashMap::new(), TableReader::new());
    let (mut last_time, mut last_clock, mut n_starts) = (0, 0, 0);
    for packet in packets(&out).map(Packet::new) {
        assert!(packet.is_valid());
        tables.packet(packet);
        let next = |it: u8| if packet.has_payload() { (it + 1) % 16 } else { it };
        let before = counters.insert(packet.pid(), packet.cc());
        assert!(before.is_none_or(|it| next(it) == packet.cc()));
        if let Some(clock) = packet.pcr() {
            assert!(clock >= last_clock);
            last_clock = clock;
        }
        if let Some(time) = stamps(packet).pts {
            assert!(time >= last_time && time < STAMP_MODULUS);
            last_time = time;
            n_starts += 1;
        }
    }
    assert_eq!(n_starts, frames.len());
    assert_eq!(tables.tables().is_some(), !frames.is_empty());
});

fn frames_in(data: &[u8], piece: usize) -> Vec<(FrameHeader, Bytes)> {
    let (mut reader, mut frames) = (FrameReader::default(), Vec::new());
    for piece in data.chunks(piece) {
        reader.push(piece);
        frames.extend(std::iter::from_fn(|| reader.next_frame()));
        assert!(reader.n_skipped() <= data.len());
    }
    frames
}
