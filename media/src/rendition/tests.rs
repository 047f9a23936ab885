use std::io::Read;
use std::ops::Range;

use bytes::BytesMut;

use super::*;
use crate::join_point::JoinPoint;
use crate::ring::{Budget, RingSettings, ring};
use crate::testing::TsReader;
use crate::ts::build::{AUDIO_PID, Builder, PMT_PID, VIDEO_PID};
use crate::ts::packet::{PACKET, PacketBytes};
use crate::ts::table_reader::TableReader;
use crate::ts::tables::ElementaryStream;

const TELETEXT_PID: u16 = 0x103;

fn without(pids: &[u16], sorts: &[StreamSort]) -> StreamFilter {
    StreamFilter::new(LeftOutStreams { pids: pids.to_vec(), sorts: sorts.to_vec() })
}

fn filtered(filter: &mut StreamFilter, stream: &[PacketBytes]) -> Vec<PacketBytes> {
    let mut bytes = BytesMut::new();
    stream.iter().for_each(|it| filter.push(Packet::new(it), &mut bytes));
    packets(&bytes).copied().collect()
}

fn pids(stream: &[PacketBytes]) -> Vec<u16> {
    stream.iter().map(|it| Packet::new(it).pid()).collect()
}

/// Returns the streams that the tables of a stream announce.
fn announced(stream: &[PacketBytes]) -> Vec<u16> {
    let mut reader = TableReader::new();
    for packet in stream {
        reader.packet(Packet::new(packet));
    }
    reader.tables().unwrap().pmt.streams.iter().map(|it| it.pid).collect()
}

fn with_teletext() -> Builder {
    let mut builder = Builder::video();
    let descriptors = vec![0x56, 0];
    builder.pmt.streams.push(ElementaryStream { stream_type: 0x06, pid: TELETEXT_PID, descriptors });
    builder
}

/// Two rounds of tables and packets of all streams.
fn stream(builder: &mut Builder) -> Vec<PacketBytes> {
    rounds(builder, 0..2)
}

fn rounds(builder: &mut Builder, rounds: Range<u64>) -> Vec<PacketBytes> {
    let mut all = Vec::new();
    for round in rounds {
        all.extend(builder.tables());
        all.push(builder.key(27_000_000 * (1 + round)));
        all.push(builder.data(AUDIO_PID));
        all.push(builder.data(TELETEXT_PID));
        all.push(builder.data(VIDEO_PID));
    }
    all
}

#[track_caller]
fn assert_clean(stream: &[PacketBytes]) {
    let mut reader = TsReader::default();
    reader.read(&stream.concat(), std::time::Duration::ZERO).unwrap();
}

#[test]
fn a_kind_of_stream_is_left_out_of_packets_and_tables() {
    let sent = stream(&mut with_teletext());
    let got = filtered(&mut without(&[], &[StreamSort::Teletext]), &sent);
    let expected: Vec<_> = pids(&sent).into_iter().filter(|it| *it != TELETEXT_PID).collect();
    assert_eq!(pids(&got), expected);
    assert_eq!(announced(&got), [VIDEO_PID, AUDIO_PID]);
    assert_clean(&got);
}

#[test]
fn a_clock_stays_without_the_stream_that_carries_it() {
    let sent = stream(&mut with_teletext());
    let got = filtered(&mut without(&[TELETEXT_PID], &[StreamSort::Video]), &sent);
    assert_eq!(announced(&got), [AUDIO_PID]);
    let clocks: Vec<_> = got.iter().map(Packet::new).filter(|it| it.pid() == VIDEO_PID).collect();
    assert_eq!(clocks.iter().map(|it| it.pcr()).collect::<Vec<_>>(), [Some(27_000_000), Some(54_000_000)]);
    assert!(clocks.iter().all(|it| !it.has_payload()));
    assert_clean(&got);
}

#[test]
fn a_programme_of_which_nothing_would_remain_is_passed_on_as_it_is() {
    let mut radio = Builder::radio();
    let sent: Vec<_> = radio.tables().into_iter().chain([radio.data(AUDIO_PID)]).collect();
    assert_eq!(filtered(&mut without(&[AUDIO_PID], &[StreamSort::Audio]), &sent), sent);
}

#[test]
fn a_changed_table_takes_effect_at_once_and_its_counters_go_on() {
    let mut builder = with_teletext();
    let mut sent = stream(&mut builder);
    // From here on the identifier of the teletext is that of a second audio stream.
    builder.pmt.version = 1;
    builder.pmt.streams[2] =
        ElementaryStream { stream_type: 0x0F, pid: TELETEXT_PID, descriptors: Vec::new() };
    sent.extend(rounds(&mut builder, 2..4));
    let got = filtered(&mut without(&[], &[StreamSort::Teletext]), &sent);
    assert_eq!(announced(&got), [VIDEO_PID, AUDIO_PID, TELETEXT_PID]);
    assert_eq!(pids(&got).iter().filter(|it| **it == TELETEXT_PID).count(), 2);
    let counters: Vec<_> =
        got.iter().map(Packet::new).filter(|it| it.pid() == PMT_PID).map(|it| it.cc()).collect();
    assert_eq!(counters, [0, 1, 2, 3]);
    assert_clean(&got);
}

#[test]
fn a_table_of_several_packets_is_passed_on_whole() {
    let mut builder = with_teletext();
    // 200 bytes of descriptors make the PMT longer than a packet.
    builder.pmt.streams[2].descriptors =
        [vec![0x56, 0], vec![0x0A; 2], vec![0x09, 196], vec![0; 196]].concat();
    builder.pmt.streams[1].descriptors = [vec![0x09, 200], vec![7; 200]].concat();
    let sent = stream(&mut builder);
    let got = filtered(&mut without(&[], &[StreamSort::Teletext]), &sent);
    assert_eq!(announced(&got), [VIDEO_PID, AUDIO_PID]);
    assert_clean(&got);
}

#[test]
fn no_packets_make_the_filter_fail() {
    proptest::proptest!(|(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..20 * PACKET))| {
        let mut builder = with_teletext();
        let mut filter = without(&[AUDIO_PID], &[StreamSort::Data, StreamSort::Video]);
        let mut sent = stream(&mut builder);
        sent.extend(packets(&bytes).copied());
        // Also packets of the streams that are left out.
        sent.extend(packets(&bytes).map(|it| {
            let mut packet = *it;
            crate::ts::packet::set_pid(&mut packet, VIDEO_PID);
            packet
        }));
        filtered(&mut filter, &sent);
    });
}

#[tokio::test(start_paused = true)]
async fn a_copy_has_the_packets_and_the_filler_of_the_ring_and_ends_with_it() {
    let budget = Budget::new(64 << 20);
    let (mut writer, source) = ring(RingSettings::default(), &budget);
    let (copied, derived) = ring(RingSettings::default(), &budget);
    let tail = source.tail(JoinPoint::Oldest, None);
    let copying = tokio::spawn(copy(tail, without(&[TELETEXT_PID], &[]), copied));
    let mut viewer = derived.tail(JoinPoint::Oldest, None);
    let sent = stream(&mut with_teletext());
    let now = Instant::now();
    writer.push_packets(&sent.concat(), now);
    writer.flush(now);
    let mut got = Vec::new();
    while got.len() < 2 {
        let part = viewer.part().await.unwrap();
        assert!(!part.is_filler);
        got.push(part.bytes);
    }
    writer.filler(now);
    let mut last = viewer.part().await.unwrap();
    while !last.is_filler {
        got.push(last.bytes);
        last = viewer.part().await.unwrap();
    }
    let got: Vec<PacketBytes> = got.iter().flat_map(|it| packets(it).copied()).collect();
    assert_eq!(announced(&got), [VIDEO_PID, AUDIO_PID]);
    assert!(!pids(&got).contains(&TELETEXT_PID));
    assert_clean(&got);
    source.end(EndReason::Stopped);
    copying.await.unwrap();
    assert_eq!(viewer.part().await.err(), Some(EndReason::Stopped));
}

#[tokio::test]
async fn a_program_gets_the_remaining_packets_without_filler_until_it_closes_its_input() {
    let budget = Budget::new(64 << 20);
    let (mut writer, source) = ring(RingSettings::default(), &budget);
    let (input, output) = program_input().unwrap();
    let feeding =
        tokio::spawn(feed(source.tail(JoinPoint::Oldest, None), without(&[TELETEXT_PID], &[]), input));
    let mut builder = with_teletext();
    let now = Instant::now();
    writer.push_packets(&stream(&mut builder).concat(), now);
    writer.flush(now);
    let program = std::fs::File::from(output);
    // A preamble takes the place of the first tables.
    let read = async |n_packets: usize| {
        let mut file = program.try_clone().unwrap();
        let reading = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; n_packets * PACKET];
            file.read_exact(&mut bytes).unwrap();
            bytes
        });
        reading.await.unwrap()
    };
    let mut got = read(10).await;
    writer.filler(now);
    writer.push_packets(&rounds(&mut builder, 2..4).concat(), now);
    writer.flush(now);
    got.extend(read(10).await);
    let got: Vec<PacketBytes> = packets(&got).copied().collect();
    assert!(pids(&got).iter().all(|it| *it != TELETEXT_PID && *it != crate::ts::packet::NULL_PID));
    assert_clean(&got);
    drop(program);
    writer.push_packets(&stream(&mut with_teletext()).concat(), now);
    writer.flush(now);
    assert_eq!(feeding.await.unwrap(), FeedEnd::Program);
}
