//! Tests of frames, titles and packets.

use bytes::{Bytes, BytesMut};

use super::*;
use crate::testing::StationSound;
use crate::ts::audio_frame::FrameHeader;
use crate::ts::clock::{PCR_HZ, STAMP_HZ};
use crate::ts::packet::{PACKET, Packet, packets};
use crate::ts::pes::{is_pes_start, stamps};
use crate::ts::table_reader::TableReader;

/// Returns the frames that are found in bytes that arrive in pieces of this length.
fn frames_in(bytes: &[u8], piece: usize) -> (Vec<Bytes>, FrameReader) {
    let mut reader = FrameReader::default();
    let mut frames = Vec::new();
    for piece in bytes.chunks(piece) {
        reader.push(piece);
        frames.extend(std::iter::from_fn(|| reader.next_frame()).map(|it| it.1));
    }
    (frames, reader)
}

fn id3(n_bytes: usize) -> Vec<u8> {
    let size = [21, 14, 7, 0].map(|it| (n_bytes >> it) as u8 & 0x7F);
    let mut tag = [&b"ID3\x04\0\0"[..], &size].concat();
    // As pictures do, it contains what looks like a frame.
    tag.extend(StationSound::Mp3.frame().iter().cycle().take(n_bytes));
    tag
}

#[test]
fn two_frame_headers_in_a_row_make_radio() {
    for sound in StationSound::ALL {
        let frame = sound.frame();
        let header = FrameHeader::parse(&frame).unwrap();
        let of_frame = (header.length, header.n_samples, header.format.rate);
        assert_eq!(of_frame, (frame.len(), sound.samples().0, sound.samples().1), "{sound:?}");
        let stream = frame.repeat(8);
        for before in [Vec::new(), id3(40), id3(300 << 10), [id3(90), id3(10)].concat(), stream[5..].to_vec()]
        {
            for piece in [1, 7, 100, 4096, 1 << 20] {
                let n_expected = if before.starts_with(b"ID3") || before.is_empty() { 8 } else { 15 };
                let (frames, _) = frames_in(&[&before[..], &stream].concat(), piece);
                assert_eq!(frames.len(), n_expected, "{sound:?}, {} bytes before, {piece}", before.len());
                assert!(frames.iter().all(|it| *it == frame));
            }
        }
    }
}

#[test]
fn other_bytes_are_not_radio() {
    let one = StationSound::Mp3.frame();
    let two_kinds = [StationSound::Mp3.frame(), StationSound::Aac.frame()].concat();
    let noise: Vec<u8> = (0..400_000_u32).map(|it| (it.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for bytes in
        [b"<html>".repeat(900), one, two_kinds, vec![0xFF; 4096], noise, b"fLaC\0\0\0\x22".repeat(90)]
    {
        let (frames, mut reader) = frames_in(&bytes, 1400);
        assert!(frames.is_empty() && !reader.is_in_step(), "{} bytes", bytes.len());
    }
}

#[test]
fn frames_continue_behind_other_bytes() {
    let mp3 = StationSound::Mp3.frame();
    let aac = StationSound::Aac.frame();
    let stream = [
        mp3.repeat(3),
        id3(500),
        mp3.repeat(3),
        b"junk".repeat(25),
        mp3.repeat(2),
        mp3[..100].to_vec(),
        aac.repeat(4),
    ];
    for piece in [1, 33, 1 << 20] {
        let (frames, reader) = frames_in(&stream.concat(), piece);
        let lengths: Vec<usize> = frames.iter().map(Bytes::len).collect();
        // A frame that is cut takes the bytes after it.
        assert_eq!(lengths, [vec![417; 9], vec![371; 3]].concat(), "{piece}");
        assert_eq!((reader.n_skipped(), reader.n_of_tags()), (0, 510));
    }
    let (_, reader) = frames_in(&[mp3.repeat(2), vec![0; 70_000]].concat(), 500);
    assert!(reader.n_skipped() > 64 << 10, "a source without frames is noticed");
}

/// Returns the audio of a body with a block every `interval` bytes, and the titles.
fn cut(body: &[u8], interval: usize, piece: usize) -> (Vec<u8>, Vec<String>) {
    let mut cutter = IcyCutter::new(interval);
    let (mut audio, mut titles) = (Vec::new(), Vec::new());
    for piece in body.chunks(piece) {
        cutter.push(Bytes::copy_from_slice(piece), |it| audio.extend_from_slice(&it));
        titles.extend(cutter.take_title().map(|it| it.to_string()));
    }
    (audio, titles)
}

fn block(text: &[u8]) -> Vec<u8> {
    let mut block = vec![text.len().div_ceil(16) as u8];
    block.extend_from_slice(text);
    block.resize(1 + text.len().next_multiple_of(16), 0);
    block
}

#[test]
fn icy_blocks_are_cut_out_wherever_a_read_ends() {
    let audio: Vec<u8> = (0..1000_u32).map(|it| it as u8).collect();
    let texts: [&[u8]; 5] =
        [b"StreamTitle='one';", b"", b"StreamUrl='x';", b"StreamTitle='';", b"StreamTitle='two';"];
    let mut body = Vec::new();
    for (index, part) in audio.chunks(150).enumerate() {
        body.extend_from_slice(part);
        if part.len() == 150 {
            body.extend(block(texts.get(index).unwrap_or(&&b""[..])));
        }
    }
    for piece in 1..200 {
        let (cut_out, titles) = cut(&body, 150, piece);
        assert_eq!(cut_out, audio, "{piece}");
        assert_eq!(titles, ["one", "", "two"], "{piece}");
    }
    let (cut_out, titles) = cut(&body, 150, 4096);
    assert_eq!((cut_out, titles), (audio, vec!["two".to_owned()]));
}

#[test]
fn a_title_is_read_as_utf_8_or_latin_1_with_apostrophes_and_bounds() {
    let check = |text: &[u8], expected: &str| {
        let (_, titles) = cut(&[&[0][..], &block(text)].concat(), 1, 4096);
        assert_eq!(titles, [expected], "{}", String::from_utf8_lossy(text));
    };
    check(b"StreamTitle='Guns N' Roses - Don't Cry';StreamUrl='http://x/';", "Guns N' Roses - Don't Cry");
    check(b"StreamTitle='It's '90s'; live';", "It's '90s'; live");
    check(b"StreamTitle='It's '90s'; live';StreamUrl='';", "It's '90s'; live");
    check(b"StreamTitle='no end", "no end");
    check(b"StreamTitle='half an end'", "half an end");
    check("StreamTitle='Björk – Jóga';".as_bytes(), "Björk – Jóga");
    check(b"StreamTitle='Bj\xF6rk - J\xF3ga';", "Björk - Jóga");
    check(b"StreamTitle='cut caf\xC3", "cut caf");
    check(b"StreamTitle=' a\tb\r\nc\x07 ';", "a b  c");
    check(b"StreamTitle='<script>';", "<script>");
    check(b"adw_ad='true';StreamTitle='x';adId='1';", "x");
    let long = format!("StreamTitle='{}';", "é".repeat(1_000));
    check(long.as_bytes(), &"é".repeat(TITLE_CHARS_MAX));
    let none: [&[u8]; 3] = [b"", b"StreamUrl='x';", b"\0\0\0"];
    for text in none {
        assert!(cut(&[&[0][..], &block(text)].concat(), 1, 4096).1.is_empty());
    }
}

#[test]
fn the_distance_of_titles_is_believed_within_bounds() {
    let check = |head: &str, is_icy: bool, interval: Option<usize>| {
        assert_eq!(IcyHeaders::from_head(head.as_bytes()), IcyHeaders { is_icy, interval }, "{head}");
    };
    check("ICY 200 OK\r\nicy-metaint:16000\r\n\r\n", true, Some(16_000));
    check("ICY 200 OK\r\ncontent-type:audio/mpeg\r\n\r\n", true, None);
    check("HTTP/1.0 200 OK\nIcy-MetaInt: 8192 \n\n", true, Some(8192));
    check("HTTP/1.0 200 OK\r\nicy-br: 128\r\n\r\n", true, None);
    check("HTTP/1.0 200 OK\r\nServer: x\r\n\r\n", false, None);
    for wrong in ["0", "-1", "x", "", "1048577", "99999999999999999999999"] {
        check(&format!("ICY 200 OK\r\nicy-metaint: {wrong}\r\n\r\n"), true, None);
    }
}

/// Packs frames and checks the packets: whole, with counters that continue, with a clock at most every 40 ms and times that
/// grow. Returns the presentation times.
fn packed(packer: &mut RadioPacker, frames: impl Iterator<Item = StationSound>) -> (BytesMut, Vec<u64>) {
    let mut out = BytesMut::new();
    for sound in frames {
        let frame = sound.frame();
        packer.frame(&FrameHeader::parse(&frame).unwrap(), &frame, &mut out);
    }
    let mut counters = [None; 8192];
    let (mut times, mut last_clock) = (Vec::new(), None);
    assert!(out.len().is_multiple_of(PACKET));
    for packet in packets(&out).map(Packet::new) {
        assert!(packet.is_valid());
        let counter = &mut counters[usize::from(packet.pid())];
        let expected = counter.map(|it: u8| if packet.has_payload() { (it + 1) % 16 } else { it });
        assert!(expected.is_none_or(|it| it == packet.cc()));
        *counter = Some(packet.cc());
        if let Some(clock) = packet.pcr() {
            assert!(last_clock.is_none_or(|it| clock > it && clock - it <= PCR_HZ * 40 / 1000 + 300));
            last_clock = Some(clock);
        }
        if packet.pid() == 0x100 && is_pes_start(packet) {
            assert!(packet.random_access() && packet.pcr().is_some());
            assert_eq!(packet.payload()[..4], [0, 0, 1, 0xC0]);
            times.push(stamps(packet).pts.unwrap());
        }
    }
    (out, times)
}

#[test]
fn the_clock_comes_every_40_ms_whatever_the_frames_are() {
    for sound in StationSound::ALL {
        let mut packer = RadioPacker::default();
        let (out, times) = packed(&mut packer, std::iter::repeat_n(sound, 500));
        let (n_samples, rate) = sound.samples();
        for (n, time) in times.iter().enumerate() {
            let exact = STAMP_HZ + n as u64 * u64::from(n_samples) * STAMP_HZ / u64::from(rate);
            assert_eq!(*time, exact, "{sound:?} {n}");
        }
        // The frames come out as they went in.
        let mut reader = FrameReader::default();
        let mut n_frames = 0;
        for packet in packets(&out).map(Packet::new).filter(|it| it.pid() == 0x100) {
            let skipped = if is_pes_start(packet) { 14 } else { 0 };
            reader.push(&packet.payload()[skipped..]);
            while let Some((_, frame)) = reader.next_frame() {
                assert_eq!(frame, sound.frame());
                n_frames += 1;
            }
        }
        assert_eq!(n_frames, 500, "{sound:?}");
    }
}

#[test]
fn a_new_rate_or_codec_changes_the_tables() {
    let tables = |sounds: &[StationSound]| {
        let mut packer = RadioPacker::default();
        let sounds = sounds.iter().flat_map(|it| std::iter::repeat_n(*it, 3));
        let (out, times) = packed(&mut packer, sounds);
        assert!(times.is_sorted());
        let mut reader = TableReader::new();
        let mut found = Vec::new();
        for packet in packets(&out).map(Packet::new) {
            reader.packet(packet);
            if reader.take_change() {
                let pmt = &reader.tables().unwrap().pmt;
                assert_eq!((pmt.pcr_pid, pmt.streams.len()), (0x100, 1));
                found.push((pmt.streams[0].stream_type, pmt.version));
            }
        }
        found
    };
    assert_eq!(tables(&[StationSound::Mp3]), [(0x03, 0)]);
    assert_eq!(tables(&[StationSound::Mp2]), [(0x03, 0)]);
    assert_eq!(tables(&[StationSound::SlowMp3]), [(0x04, 0)]);
    assert_eq!(tables(&[StationSound::SlowestMp3]), [(0x04, 0)]);
    assert_eq!(tables(&[StationSound::Aac, StationSound::HeAac]), [(0x0F, 0)]);
    assert_eq!(
        tables(&[StationSound::Mp3, StationSound::SlowMp3, StationSound::Aac]),
        [(0x03, 0), (0x04, 1), (0x0F, 2)]
    );
}
