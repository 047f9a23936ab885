//! Tests of packets, tables and clocks.

use proptest::prelude::*;

use super::align::Aligner;
use super::build::{AUDIO_PID, Builder, PMT_PID, VIDEO_PID};
use super::clock::{PCR_MODULUS, STAMP_MODULUS, Unwrap, distance};
use super::packet::{
    NULL_PID, PACKET, PAT_PID, Packet, PacketBytes, SYNC, discontinuity_packet, null_packet, packets,
    remove_pcr, set_cc, set_discontinuity, set_pcr, set_pid,
};
use super::pes::{Stamps, is_pes_start, map_stamps, stamps};
use super::random_access::RandomAccess;
use super::section::packets_of;
use super::table_reader::{TableHints, TableReader};
use super::tables::{ElementaryStream, Pat, Pmt, StreamKind, descriptors};

fn any_packet() -> impl Strategy<Value = PacketBytes> {
    // Half of them have plausible headers, so that the deeper branches are reached.
    prop_oneof![
        prop::collection::vec(any::<u8>(), PACKET),
        (prop::collection::vec(any::<u8>(), PACKET), 0..4_u16, any::<bool>(), 1..4_u8, 0..16_u8).prop_map(
            |(mut bytes, pid, pusi, afc, adaptation)| {
                let pid = [PAT_PID, PMT_PID, VIDEO_PID, NULL_PID][usize::from(pid)];
                bytes[0] = SYNC;
                bytes[1] = if pusi { 0x40 } else { 0 } | (pid >> 8) as u8;
                bytes[2] = pid as u8;
                bytes[3] = afc << 4 | bytes[3] & 0x0F;
                if afc & 2 != 0 {
                    bytes[4] = adaptation;
                }
                bytes
            }
        ),
        Just(Builder::video().tables().concat()).prop_map(|it| it[..PACKET].to_vec()),
        Just(Builder::video().tables().concat()).prop_map(|it| it[PACKET..2 * PACKET].to_vec()),
    ]
    .prop_map(|bytes| bytes.try_into().unwrap())
}

#[test]
fn a_null_packet_is_valid_and_empty() {
    // Holds the second measured defect of T-view: the header must announce a payload.
    let packet = null_packet();
    let view = Packet::new(&packet);
    assert!(view.is_valid() && view.has_payload() && !view.has_adaptation() && !view.pusi());
    assert_eq!(view.pid(), NULL_PID);
}

#[test]
fn a_discontinuity_packet_declares_a_discontinuity_and_keeps_the_counter() {
    let packet = discontinuity_packet(0x123, 9);
    let view = Packet::new(&packet);
    assert!(view.is_valid() && view.discontinuity() && !view.has_payload());
    assert_eq!((view.pid(), view.cc(), view.payload()), (0x123, 9, &[][..]));
}

#[test]
fn a_packet_without_adaptation_field_accepts_no_flag_and_no_clock() {
    let mut plain = Builder::video().data(VIDEO_PID);
    assert!(!set_pcr(&mut plain, 5) && !set_discontinuity(&mut plain));
    let mut key = Builder::video().key(5);
    assert!(set_pcr(&mut key, PCR_MODULUS + 7) && set_discontinuity(&mut key));
    assert_eq!(Packet::new(&key).pcr(), Some(7));
    assert!(Packet::new(&key).discontinuity() && Packet::new(&key).random_access());
}

#[test]
fn a_removed_pcr_leaves_a_valid_packet() {
    let mut bytes = [0u8; 188];
    bytes[..6].copy_from_slice(&[0x47, 1, 0, 0x30, 20, 0x50]);
    remove_pcr(&mut bytes);
    let packet = Packet::new(&bytes);
    assert_eq!(packet.pcr(), None);
    assert!(packet.random_access());
    assert_eq!(packet.payload().len(), 188 - 25);
    assert!(bytes[6..25].iter().all(|byte| *byte == 0xFF));
    assert_eq!(bytes[25], 0);
}

#[test]
fn tables_are_read_as_they_were_written() {
    let mut builder = Builder::video();
    builder.pat.programs.insert(0, (0, 0x10));
    builder.pmt.program_info = vec![0x05, 4, b'H', b'D', b'M', b'V'];
    // Long enough for three packets.
    builder.pmt.streams[1].descriptors = vec![0x0A; 200];
    builder.pmt.streams[0].descriptors = [vec![0x52, 201], vec![7; 201]].concat();
    let packets = builder.tables();
    assert_eq!(packets.len(), 4);
    let mut reader = TableReader::new();
    let changes: Vec<bool> = packets.iter().map(|it| reader.packet(Packet::new(it))).collect();
    assert_eq!(changes, [false, false, false, true]);
    let tables = reader.tables().unwrap();
    assert_eq!((&tables.pat, &tables.pmt, tables.pmt_pid), (&builder.pat, &builder.pmt, PMT_PID));
    // Repetitions do not count as changes. A new version is a change, and so is a programme on another PID.
    assert!(!builder.tables().iter().any(|it| reader.packet(Packet::new(it))));
    builder.pmt.version = 1;
    assert!(builder.tables().iter().any(|it| reader.packet(Packet::new(it))));
    builder.pat.programs[1].1 = 0x200;
    assert!(reader.packet(Packet::new(&builder.tables()[0])));
    assert_eq!(reader.tables(), None);
}

#[test]
fn a_table_with_a_lost_packet_or_a_wrong_checksum_is_ignored() {
    let mut builder = Builder::video();
    builder.pmt.streams[1].descriptors = vec![0x0A; 200];
    let mut reader = TableReader::new();
    let mut packets = builder.tables();
    packets.remove(2);
    packets.iter().for_each(|it| assert!(!reader.packet(Packet::new(it))));
    let mut packets = builder.tables();
    packets[1][30] ^= 1;
    packets.iter().for_each(|it| assert!(!reader.packet(Packet::new(it))));
    assert!(builder.tables().iter().any(|it| reader.packet(Packet::new(it))));
}

#[test]
fn the_first_programme_is_followed_unless_it_never_arrives() {
    let pat = Pat { stream_id: 1, version: 0, programs: vec![(0, 0x10), (1, 0x100), (2, 0x200)] };
    let mut first = super::build::pmt(&[(0x1B, 0x101)]);
    let second = Pmt { program: 2, ..super::build::pmt(&[(0x1B, 0x201)]) };
    first.program_info = vec![];
    let run = |n_rounds: u8, with_first: bool| {
        let mut reader = TableReader::new();
        for cc in 0..n_rounds {
            reader.packet(Packet::new(&pat.packets(cc)[0]));
            reader.packet(Packet::new(&second.packets(0x200, cc)[0]));
            if with_first {
                reader.packet(Packet::new(&first.packets(0x100, cc)[0]));
            }
        }
        reader.tables().map(|it| it.pmt.program)
    };
    assert_eq!(run(1, true), Some(1));
    assert_eq!(run(20, true), Some(1));
    assert_eq!(run(2, false), None);
    assert_eq!(run(20, false), Some(2));
}

/// A source with several programmes, each with its own PMT PID and tables that may be wrong.
struct Multiplex {
    pat: Pat,
    /// PID and PMT.
    maps: Vec<(u16, Pmt)>,
    cc: u8,
}

impl Multiplex {
    /// Creates programmes 1, 2 … at PIDs 0x100, 0x200 …, each with one stream of this type.
    fn new(stream_types: &[u8]) -> Self {
        let programs = (1..).zip(stream_types);
        let map = |(number, stream_type): (u16, &u8)| {
            (
                number * 0x100,
                Pmt { program: number, ..super::build::pmt(&[(*stream_type, number * 0x100 + 1)]) },
            )
        };
        let maps: Vec<(u16, Pmt)> = programs.map(map).collect();
        let programs = maps.iter().map(|(pid, pmt)| (pmt.program, *pid)).collect();
        Self { pat: Pat { stream_id: 1, version: 0, programs }, maps, cc: 0 }
    }

    /// Sends the PAT and the PMTs of these programmes, all with right checksums.
    fn send(&mut self, reader: &mut TableReader, positions: &[usize]) {
        let pat = self.pat.section();
        self.send_section(reader, PAT_PID, &pat);
        for at in positions {
            let (pid, section) = (self.maps[*at].0, self.maps[*at].1.section());
            self.send_section(reader, pid, &section);
        }
    }

    fn send_section(&mut self, reader: &mut TableReader, pid: u16, section: &[u8]) {
        for packet in packets_of(pid, section, self.cc) {
            reader.packet(Packet::new(&packet));
            // One counter for all, because each section starts in its own packet.
            self.cc = Packet::new(&packet).cc() + 1;
        }
    }
}

fn followed(reader: &TableReader) -> Option<u16> {
    let tables = reader.tables()?;
    let pair = (tables.pmt.program, tables.pmt_pid);
    assert!(tables.pat.programs.contains(&pair), "{pair:?} is in the PAT {:?}", tables.pat.programs);
    Some(tables.pmt.program)
}

fn source_reader(program: Option<u16>) -> TableReader {
    TableReader::from_hints(&TableHints { program, wrong_checksums: Vec::new() })
}

const VIDEO: u8 = 0x1B;
const AUDIO: u8 = 0x0F;
const DATA: u8 = 0x05;

#[test]
fn the_programme_with_a_picture_is_followed_wherever_it_is() {
    for (stream_types, number) in [
        (&[DATA, VIDEO][..], 2),
        (&[AUDIO, VIDEO], 2),
        (&[VIDEO, DATA], 1),
        (&[DATA, AUDIO, DATA, VIDEO, VIDEO], 4),
        (&[DATA, AUDIO, DATA], 2),
        (&[DATA], 1),
        (&[VIDEO, VIDEO], 1),
    ] {
        for is_reversed in [false, true] {
            let mut multiplex = Multiplex::new(stream_types);
            let mut order: Vec<usize> = (0..stream_types.len()).collect();
            if is_reversed {
                order.reverse();
            }
            let mut reader = source_reader(None);
            multiplex.send(&mut reader, &order);
            assert_eq!(followed(&reader), Some(number), "{stream_types:?}, reversed: {is_reversed}");
            // The choice lasts.
            (0..50).for_each(|_| multiplex.send(&mut reader, &order));
            assert_eq!(followed(&reader), Some(number));
            assert!(!reader.has_corrections());
        }
    }
}

#[test]
fn a_late_programme_with_a_picture_replaces_one_that_was_chosen_early() {
    let mut multiplex = Multiplex::new(&[DATA, AUDIO, VIDEO]);
    let mut reader = source_reader(None);
    (0..3).for_each(|_| multiplex.send(&mut reader, &[0, 1]));
    assert_eq!(followed(&reader), None);
    multiplex.send(&mut reader, &[0, 1]);
    assert_eq!(followed(&reader), Some(2));
    (0..20).for_each(|_| multiplex.send(&mut reader, &[0, 1]));
    multiplex.send(&mut reader, &[0, 1, 2]);
    assert_eq!(followed(&reader), Some(3));

    // Who has listened for so long is not interrupted.
    let mut reader = source_reader(None);
    (0..40).for_each(|_| multiplex.send(&mut reader, &[0, 1]));
    multiplex.send(&mut reader, &[0, 1, 2]);
    assert_eq!(followed(&reader), Some(2));

    // A programme that the PAT names later is found, too.
    let mut both = Multiplex::new(&[DATA, VIDEO]);
    let mut reader = source_reader(None);
    let all = both.pat.programs.clone();
    both.pat.programs.truncate(1);
    (0..10).for_each(|_| both.send(&mut reader, &[0]));
    assert_eq!(followed(&reader), Some(1));
    both.pat = Pat { programs: all, version: 1, ..both.pat };
    both.send(&mut reader, &[0, 1]);
    assert_eq!(followed(&reader), Some(2));
}

#[test]
fn a_programme_that_was_named_is_the_only_one_that_is_followed() {
    let mut multiplex = Multiplex::new(&[VIDEO, AUDIO, DATA]);
    for number in 1..=3 {
        let mut reader = source_reader(Some(number));
        multiplex.send(&mut reader, &[2, 1, 0]);
        assert_eq!(followed(&reader), Some(number));
    }
    let mut reader = source_reader(Some(9));
    (0..50).for_each(|_| multiplex.send(&mut reader, &[0, 1, 2]));
    assert_eq!(followed(&reader), None);
    // It may be announced later, and far behind others.
    multiplex.pat.programs.splice(0..0, (100..200).map(|it| (it, 0x1000 + it)));
    multiplex.pat.programs.push((9, 0x900));
    multiplex.maps.push((0x900, Pmt { program: 9, ..super::build::pmt(&[(VIDEO, 0x901)]) }));
    multiplex.send(&mut reader, &[0, 1, 2, 3]);
    assert_eq!(followed(&reader), Some(9));
}

#[test]
fn a_pmt_before_its_pat_is_read_at_its_next_repetition() {
    let mut multiplex = Multiplex::new(&[DATA, VIDEO]);
    let mut reader = source_reader(None);
    for n_rounds in 0..3 {
        for at in [1, 0] {
            let (pid, section) = (multiplex.maps[at].0, multiplex.maps[at].1.section());
            multiplex.send_section(&mut reader, pid, &section);
        }
        assert_eq!(followed(&reader), (n_rounds > 0).then_some(2));
        multiplex.send(&mut reader, &[]);
    }
}

#[test]
fn a_pmt_with_another_number_counts_where_no_other_programme_is() {
    for odd in [77, 0, u16::MAX] {
        let mut multiplex = Multiplex::new(&[VIDEO]);
        multiplex.maps[0].1.program = odd;
        let mut reader = source_reader(None);
        // Its version changes nothing.
        for version in 0..2 {
            multiplex.maps[0].1.version = version;
            multiplex.send(&mut reader, &[0]);
            assert_eq!(followed(&reader), None);
        }
        multiplex.send(&mut reader, &[0]);
        assert_eq!(followed(&reader), Some(1));
        assert_eq!((reader.odd_number(), reader.has_corrections()), (Some(odd), true));
        // It is followed when its streams change.
        multiplex.maps[0].1.streams[0].pid = 0x123;
        multiplex.send(&mut reader, &[0]);
        assert_eq!(reader.tables().map(|it| it.pmt.streams[0].pid), Some(0x123));
        // The right number is better, whenever it comes, and remains.
        multiplex.maps.push((0x100, Pmt { program: 1, ..super::build::pmt(&[(VIDEO, 0x456)]) }));
        multiplex.send(&mut reader, &[1]);
        (0..5).for_each(|_| multiplex.send(&mut reader, &[0]));
        assert_eq!(reader.tables().map(|it| it.pmt.streams[0].pid), Some(0x456));
        assert_eq!(reader.odd_number(), None);
    }
}

#[test]
fn exchanged_numbers_are_those_of_the_pat() {
    let mut multiplex = Multiplex::new(&[DATA, VIDEO]);
    (multiplex.maps[0].1.program, multiplex.maps[1].1.program) = (2, 1);
    let mut reader = source_reader(None);
    (0..3).for_each(|_| multiplex.send(&mut reader, &[0, 1]));
    assert_eq!(followed(&reader), Some(2));
    assert_eq!(reader.tables().map(|it| it.pmt_pid), Some(0x200));
    // The PMT of a programme that is described right is not that of another one.
    let mut multiplex = Multiplex::new(&[VIDEO, VIDEO]);
    multiplex.maps[0].1.program = 2;
    let mut reader = source_reader(None);
    (0..10).for_each(|_| multiplex.send(&mut reader, &[1, 0]));
    assert_eq!(followed(&reader), Some(2));
    assert_eq!((reader.tables().map(|it| it.pmt_pid), reader.odd_number()), (Some(0x200), None));
}

#[test]
fn programmes_on_one_pid_are_told_apart_by_their_numbers() {
    for named in [None, Some(1), Some(2), Some(3)] {
        let mut multiplex = Multiplex::new(&[AUDIO, DATA, VIDEO]);
        multiplex.pat.programs = vec![(1, 0x100), (2, 0x100), (3, 0x100)];
        multiplex.maps.iter_mut().for_each(|it| it.0 = 0x100);
        let mut reader = source_reader(named);
        // One of another multiplex among them.
        multiplex.maps.push((0x100, Pmt { program: 9, ..super::build::pmt(&[(VIDEO, 0x901)]) }));
        (0..5).for_each(|_| multiplex.send(&mut reader, &[3, 2, 1, 0]));
        assert_eq!(followed(&reader), Some(named.unwrap_or(3)));
        assert!(!reader.has_corrections());
    }
    // All their sections in as few packets as possible.
    let mut multiplex = Multiplex::new(&[AUDIO, DATA, VIDEO]);
    multiplex.pat.programs = vec![(1, 0x100), (2, 0x100), (3, 0x100)];
    let sections: Vec<u8> = multiplex.maps.iter().flat_map(|it| it.1.section()).collect();
    let mut reader = source_reader(None);
    multiplex.send(&mut reader, &[]);
    multiplex.send_section(&mut reader, 0x100, &sections);
    assert_eq!(followed(&reader), Some(3));
}

/// Returns a section with a wrong checksum.
fn damaged(mut section: Vec<u8>) -> Vec<u8> {
    *section.last_mut().unwrap() ^= 0x55;
    section
}

#[test]
fn wrong_checksums_count_after_ten_equal_sections_and_never_beside_right_ones() {
    let multiplex = || Multiplex::new(&[VIDEO]);
    let send = |multiplex: &mut Multiplex, reader: &mut TableReader, wrong_pat, wrong_map| {
        let (pat, map) = (multiplex.pat.section(), multiplex.maps[0].1.section());
        multiplex.send_section(reader, PAT_PID, &if wrong_pat { damaged(pat) } else { pat });
        multiplex.send_section(reader, 0x100, &if wrong_map { damaged(map) } else { map });
    };
    // Only the PMT, only the PAT, and both: PMTs before the PAT are not seen.
    for (wrong_pat, wrong_map, n_needed, pids) in
        [(false, true, 10, &[0x100][..]), (true, false, 10, &[PAT_PID]), (true, true, 19, &[PAT_PID, 0x100])]
    {
        let (mut multiplex, mut reader) = (multiplex(), source_reader(None));
        for n_sent in 0..n_needed {
            assert_eq!(followed(&reader), None, "after {n_sent}");
            send(&mut multiplex, &mut reader, wrong_pat, wrong_map);
        }
        assert_eq!(followed(&reader), Some(1));
        assert_eq!((reader.wrong_checksums(), reader.has_corrections()), (pids.to_vec(), true));
        // An opening after this one need not wait.
        let hints = TableHints { program: None, wrong_checksums: pids.to_vec() };
        let mut reader = TableReader::from_hints(&hints);
        (0..3).for_each(|_| send(&mut multiplex, &mut reader, wrong_pat, wrong_map));
        assert_eq!(followed(&reader), Some(1));
        // Our own output is not read like this.
        let mut reader = TableReader::new();
        (0..50).for_each(|_| send(&mut multiplex, &mut reader, wrong_pat, wrong_map));
        assert_eq!(followed(&reader), None);
    }
    // Right and wrong ones in turn, and one wrong of ten: what the wrong ones say is ignored.
    for period in [2, 10] {
        let (mut multiplex, mut reader) = (multiplex(), source_reader(None));
        let right = multiplex.maps[0].1.clone();
        for n_sent in 0..100 {
            let is_wrong = n_sent % period == period - 1;
            multiplex.maps[0].1 =
                Pmt { pcr_pid: if is_wrong { 0x777 } else { right.pcr_pid }, ..right.clone() };
            send(&mut multiplex, &mut reader, false, is_wrong);
            assert_eq!(reader.tables().map(|it| &it.pmt), Some(&right));
        }
        assert!(reader.wrong_checksums().is_empty());
    }
    // Different ones are damage.
    let (mut multiplex, mut reader) = (multiplex(), source_reader(None));
    for n_sent in 0..100 {
        multiplex.maps[0].1.streams[0].pid = 0x400 + n_sent;
        send(&mut multiplex, &mut reader, false, true);
        assert_eq!(followed(&reader), None);
    }
    assert!(reader.had_wrong_checksum());
}

#[test]
fn a_right_checksum_replaces_wrong_ones_that_were_believed() {
    let mut multiplex = Multiplex::new(&[VIDEO]);
    let mut reader = source_reader(None);
    let wrong = damaged(multiplex.maps[0].1.section());
    for _ in 0..12 {
        multiplex.send(&mut reader, &[]);
        multiplex.send_section(&mut reader, 0x100, &wrong);
    }
    assert_eq!(followed(&reader), Some(1));
    multiplex.maps[0].1.streams[0].pid = 0x456;
    multiplex.send(&mut reader, &[0]);
    (0..50).for_each(|_| multiplex.send_section(&mut reader, 0x100, &wrong));
    assert_eq!(reader.tables().map(|it| it.pmt.streams[0].pid), Some(0x456));
    assert!(reader.wrong_checksums().is_empty());
}

#[test]
fn tables_over_many_packets_with_a_lost_one_are_read_at_the_next_repetition() {
    let mut pmt = super::build::pmt(&[(VIDEO, 0x101)]);
    let stream =
        |at: u16| ElementaryStream { stream_type: 0x0F, pid: 0x300 + at, descriptors: vec![0x0A; 40] };
    pmt.streams.extend((0..20).map(stream));
    let packets = pmt.packets(PMT_PID, 0);
    assert_eq!(packets.len(), 6);
    let pat = super::build::pat().packets(0);
    for lost in 0..packets.len() {
        let mut reader = source_reader(None);
        reader.packet(Packet::new(&pat[0]));
        for (at, packet) in packets.iter().enumerate() {
            if at != lost {
                assert!(!reader.packet(Packet::new(packet)), "without packet {lost}");
            }
        }
        let next = pmt.packets(PMT_PID, 6);
        let changes: Vec<bool> = next.iter().map(|it| reader.packet(Packet::new(it))).collect();
        assert_eq!(changes, [false, false, false, false, false, true], "after packet {lost} was lost");
        assert_eq!(reader.tables().map(|it| &it.pmt), Some(&pmt));
    }
}

#[test]
fn versions_that_rise_at_each_repetition_are_followed() {
    let mut multiplex = Multiplex::new(&[AUDIO, VIDEO, DATA]);
    let mut reader = source_reader(None);
    for version in 0..100 {
        multiplex.pat.version = version % 32;
        multiplex.maps.iter_mut().for_each(|it| it.1.version = version % 32);
        // The third programme is never described.
        multiplex.send(&mut reader, &[0, 1]);
        assert_eq!(followed(&reader), Some(2));
        let tables = reader.tables().unwrap();
        assert_eq!((tables.pat.version, tables.pmt.version), (version % 32, version % 32));
    }
    let mut reader = source_reader(None);
    for version in 0..4 {
        multiplex.pat.version = version;
        multiplex.send(&mut reader, &[1]);
    }
    assert_eq!(followed(&reader), Some(2), "although the first is never described");
}

#[test]
fn stream_kinds_are_recognised_by_type_and_descriptor() {
    let check = |stream_type, descriptors: &[u8], kind, codec| {
        let stream = ElementaryStream { stream_type, pid: 1, descriptors: descriptors.to_vec() };
        assert_eq!((super::build::pmt(&[(0, 1)]).kind(&stream), stream.codec()), (kind, codec));
    };
    check(0x1B, &[], StreamKind::Video, "H.264");
    check(0x24, &[], StreamKind::Video, "H.265");
    check(0x02, &[], StreamKind::Video, "MPEG-2 video");
    check(0x0F, &[], StreamKind::Audio, "AAC");
    check(0x81, &[], StreamKind::Audio, "AC-3");
    check(0x06, &[0x0A, 1, 0, 0x6A, 1, 0], StreamKind::Audio, "AC-3");
    check(0x06, &[0x05, 4, b'O', b'p', b'u', b's'], StreamKind::Audio, "Opus");
    check(0x06, &[0x56, 0], StreamKind::Other, "teletext");
    check(0x06, &[0x6A, 9], StreamKind::Other, "private data");
}

#[test]
fn cue_messages_are_not_audio() {
    let stream = |descriptors: &[u8]| ElementaryStream {
        stream_type: 0x86,
        pid: 1,
        descriptors: descriptors.to_vec(),
    };
    let mut pmt = super::build::pmt(&[(0x1B, 1)]);
    assert_eq!(pmt.kind(&stream(&[])), StreamKind::Audio);
    assert_eq!(pmt.kind(&stream(&[0x05, 4, b'C', b'U', b'E', b'I'])), StreamKind::Other);
    assert_eq!(pmt.kind(&stream(&[0x8A, 1, 1])), StreamKind::Other);
    pmt.program_info = vec![0x05, 4, b'C', b'U', b'E', b'I'];
    assert_eq!(pmt.kind(&stream(&[])), StreamKind::Other);
}

#[test]
fn pids_of_a_programme_are_its_streams_and_its_clock_each_once() {
    let mut builder = Builder::video();
    builder.pmt.pcr_pid = 0x1FE;
    builder.pmt.streams.push(builder.pmt.streams[0].clone());
    let mut reader = TableReader::new();
    builder.tables().iter().for_each(|it| _ = reader.packet(Packet::new(it)));
    let tables = reader.tables().unwrap();
    assert_eq!(tables.pids().collect::<Vec<_>>(), [VIDEO_PID, AUDIO_PID, 0x1FE]);
    assert!(tables.is_payload(0x1FE) && !tables.is_payload(NULL_PID) && !tables.is_payload(PMT_PID));
}

/// Returns a packet that starts a PES packet with these stamps.
fn stamped(pts: u64, dts: Option<u64>) -> PacketBytes {
    let mut packet = Builder::video().pes(VIDEO_PID, &[]);
    let (flags, length) = if dts.is_some() { (0xC0, 10) } else { (0x80, 5) };
    packet[10..13].copy_from_slice(&[0x80, flags, length]);
    packet[13..23].copy_from_slice(&[0x21, 0, 1, 0, 1, 0x11, 0, 1, 0, 1]);
    let mut both = [Some(pts), dts].into_iter().flatten();
    assert!(map_stamps(&mut packet, |_| both.next().unwrap()));
    packet
}

#[test]
fn stamps_are_read_as_they_were_written() {
    for (pts, dts) in [(0, None), (STAMP_MODULUS - 1, Some(STAMP_MODULUS - 3601)), (0x1_2345_6789, Some(1))] {
        let packet = stamped(pts, dts);
        assert_eq!(stamps(Packet::new(&packet)), Stamps { pts: Some(pts), dts });
        assert_eq!(packet[13] & 0xF1, 0x21);
    }
    assert_eq!(stamps(Packet::new(&Builder::video().data(VIDEO_PID))), Stamps::default());
}

#[test]
fn a_wrapping_counter_is_unwrapped() {
    let mut clock = Unwrap::stamps();
    let mut check = |value, expected| assert_eq!(clock.unwrap(value), expected);
    check(STAMP_MODULUS - 10, STAMP_MODULUS - 10);
    check(5, STAMP_MODULUS + 5);
    check(STAMP_MODULUS - 1, STAMP_MODULUS - 1);
    check(100, STAMP_MODULUS + 100);
    let mut clock = Unwrap::pcr();
    assert_eq!(clock.unwrap(3), 3);
    assert_eq!(clock.unwrap(PCR_MODULUS - 3), PCR_MODULUS - 3);
    assert_eq!(distance(5, 2, STAMP_MODULUS), -3);
    assert_eq!(distance(STAMP_MODULUS - 5, 2, STAMP_MODULUS), 7);
}

#[test]
fn key_frames_without_a_flag_are_recognised() {
    let check = |stream_type, data: &[u8], expected| {
        let packet = Builder::video().pes(VIDEO_PID, data);
        let wanted = RandomAccess::Video { pid: VIDEO_PID, stream_type };
        assert_eq!(wanted.is_start(Packet::new(&packet)), expected, "type {stream_type:#x}, {data:x?}");
    };
    check(0x1B, &[0, 0, 0, 1, 0x09, 0xF0, 0, 0, 0, 1, 0x67, 1], true); // Delimiter, SPS.
    check(0x1B, &[0, 0, 1, 0x65, 1], true); // IDR.
    check(0x1B, &[0, 0, 0, 1, 0x09, 0xF0, 0, 0, 1, 0x41], false); // A picture that depends on others.
    check(0x24, &[0, 0, 0, 1, 0x46, 1, 0x50, 0, 0, 1, 0x40, 1], true); // Delimiter, VPS.
    check(0x24, &[0, 0, 1, 21 << 1, 1], true); // CRA.
    check(0x24, &[0, 0, 1, 1 << 1, 1], false); // A trailing picture.
    check(0x02, &[0, 0, 1, 0xB3], true); // Sequence header.
    check(0x02, &[0, 0, 1, 0x00], false); // A picture.
    check(0x42, &[0, 0, 1, 0x65], false); // An unsupported codec.
}

#[test]
fn stuffing_is_what_no_field_needs() {
    let has_stuffing = |field: &[u8]| {
        let mut packet = [0xAA; PACKET];
        packet[..4].copy_from_slice(&[SYNC, 1, 0, 0x30]);
        packet[4..4 + field.len()].copy_from_slice(field);
        Packet::new(&packet).has_stuffing()
    };
    let pcr = [0; 6];
    assert!(has_stuffing(&[0]) && has_stuffing(&[1, 0]) && has_stuffing(&[3, 0, 0xFF, 0xFF]));
    assert!(!has_stuffing(&[1, 0x40]));
    assert!(has_stuffing(&[2, 0x40, 0xFF]));
    assert!(!has_stuffing(&[&[7, 0x10], &pcr[..]].concat()));
    assert!(has_stuffing(&[&[8, 0x50], &pcr[..], &[0xFF]].concat()));
    // PCR, OPCR, countdown, private data, extension.
    let all = |length| [&[length, 0x1F], &pcr[..], &pcr[..], &[5, 2, 1, 1, 1, 0]].concat();
    assert!(!has_stuffing(&all(19)));
    assert!(has_stuffing(&all(20)));
    assert!(!Packet::new(&[0x47; PACKET]).has_stuffing());
}

#[test]
fn without_video_every_pes_start_is_a_random_access_point() {
    let mut builder = Builder::radio();
    let wanted = RandomAccess::Audio { pid: AUDIO_PID };
    assert!(wanted.is_start(Packet::new(&builder.pes(AUDIO_PID, &[]))));
    assert!(!wanted.is_start(Packet::new(&builder.data(AUDIO_PID))));
    assert!(is_pes_start(Packet::new(&builder.pes(AUDIO_PID, &[]))));
}

proptest! {
    #[test]
    fn set_values_are_read_back_and_nothing_else_changes(
        original in any_packet(), pid in 0..0x2000_u16, cc in 0..16_u8, pcr in 0..PCR_MODULUS,
    ) {
        let mut packet = original;
        let before = Packet::new(&original);
        set_pid(&mut packet, pid);
        set_cc(&mut packet, cc);
        let has_pcr = set_pcr(&mut packet, pcr);
        let after = Packet::new(&packet);
        prop_assert_eq!((after.pid(), after.cc(), after.pusi()), (pid, cc, before.pusi()));
        prop_assert_eq!(after.pcr(), has_pcr.then_some(pcr));
        if !has_pcr {
            prop_assert_eq!(after.payload(), before.payload());
        }
    }

    #[test]
    fn no_packet_causes_a_panic(all in prop::collection::vec(any_packet(), 0..60)) {
        let mut reader = TableReader::new();
        let mut aligner = Aligner::new();
        for mut packet in all {
            reader.packet(Packet::new(&packet));
            let view = Packet::new(&packet);
            prop_assert!(view.payload().len() < PACKET);
            prop_assert!(view.pcr().is_none_or(|it| it < PCR_MODULUS));
            if let Some(wanted) = reader.tables().and_then(RandomAccess::new) {
                wanted.is_start(view);
            }
            stamps(view);
            descriptors(view.payload()).for_each(drop);
            map_stamps(&mut packet, |it| it + 1);
            aligner.push(packet.to_vec().into());
            while aligner.next().is_some() {}
        }
    }

    #[test]
    fn arbitrary_tables_are_read_as_they_were_written(
        programs in prop::collection::vec((1..u16::MAX, 0x20..0x1FFF_u16), 1..40),
        info in prop::collection::vec(any::<u8>(), 0..60),
        streams in prop::collection::vec((any::<u8>(), 0x20..0x1FFF_u16, prop::collection::vec(any::<u8>(), 0..60)), 0..12),
        cc in 0..16_u8,
    ) {
        let pat = Pat { stream_id: 7, version: 31, programs: programs.clone() };
        let streams = streams.into_iter()
            .map(|(stream_type, pid, descriptors)| ElementaryStream { stream_type, pid, descriptors });
        let pmt = Pmt { program: programs[0].0, version: 9, pcr_pid: 0x99, program_info: info, streams: streams.collect() };
        let mut reader = TableReader::new();
        // A programme without a picture is followed when the others were not described for some time.
        for cc in (0..20).map(|n| (cc + n) & 0x0F) {
            for packet in pat.packets(cc).iter().chain(&pmt.packets(programs[0].1, cc)) {
                reader.packet(Packet::new(packet));
            }
        }
        let tables = reader.tables();
        prop_assert_eq!(tables.map(|it| (&it.pat, &it.pmt)), Some((&pat, &pmt)));
        prop_assert!(packets(&pmt.packets(5, cc).concat()).all(|it| Packet::new(it).is_valid()));
    }
}
