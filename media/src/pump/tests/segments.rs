//! Segments whose continuity counters begin anew.

use std::collections::HashMap;

use aes::Aes128;
use cbc::cipher::inout::InOutBuf;
use cbc::cipher::{BlockEncryptMut, KeyIvInit};

use super::*;
use crate::testing::TestPage;
use crate::ts::packet::{PAT_PID, PacketBytes, packets_mut, set_cc, set_pid};

const SEGMENT: Duration = Duration::from_secs(2);
const N_SEGMENTS: u32 = 8;
/// PID of the video of the test stream.
const VIDEO: u16 = 0x100;
/// PID of service descriptions, which a first source passes on unchanged.
const SERVICES: u16 = 0x11;
const KEY: [u8; 16] = *b"0123456789abcdef";
const IV: [u8; 16] = [7; 16];

/// Returns the segments of a stream, whose counters continue.
fn continuous() -> Vec<Vec<u8>> {
    let mut stream = TsSource { bitrate: 500_000, ..TsSource::new("x") }.stream(Duration::ZERO);
    let segment = |n| {
        let mut bytes = Vec::new();
        while stream.at() < SEGMENT * (n + 1) {
            bytes.extend_from_slice(&stream.frame());
        }
        bytes
    };
    (0..N_SEGMENTS).map(segment).collect()
}

/// Numbers the packets of each segment from `first(segment, PID)` on.
fn numbered(segments: &[Vec<u8>], first: impl Fn(usize, u16) -> u8) -> Vec<Vec<u8>> {
    let renumber = |(at, bytes): (usize, &Vec<u8>)| {
        let (mut bytes, mut shifts) = (bytes.clone(), HashMap::new());
        for it in packets_mut(&mut bytes) {
            let (pid, cc) = (Packet::new(it).pid(), Packet::new(it).cc());
            let shift = *shifts.entry(pid).or_insert_with(|| first(at, pid).wrapping_sub(cc));
            set_cc(it, cc.wrapping_add(shift));
        }
        bytes
    };
    segments.iter().enumerate().map(renumber).collect()
}

/// Makes the provider send segments, and a list of them with `line` before the address of each.
fn send(setup: &Setup, segments: &[Vec<u8>], head: &str, line: impl Fn(usize) -> String, path: &str) {
    let mut list = format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n{head}");
    for (at, bytes) in segments.iter().enumerate() {
        list.push_str(&format!("#EXTINF:2,\n{}{}\n", line(at), path.replace("{}", &at.to_string())));
        setup.provider.set(&format!("/{at}.ts"), Behaviour::Page(TestPage::new(bytes.clone())));
    }
    let list = TestPage::new(format!("{list}#EXT-X-ENDLIST\n"));
    setup.provider.set("/list", Behaviour::Page(list));
}

fn send_plain(setup: &Setup, segments: &[Vec<u8>]) {
    send(setup, segments, "", |_| String::new(), "{}.ts");
}

/// Makes the provider send one file, of which these parts are the segments.
fn send_ranges(setup: &Setup, file: &[u8], lengths: &[usize]) {
    let parts: Vec<_> = lengths.iter().map(|it| vec![0; *it]).collect();
    let line = |at: usize| {
        let start = if at == 0 { "@0" } else { "" };
        format!("#EXT-X-BYTERANGE:{}{start}\n", lengths[at])
    };
    send(setup, &parts, "", line, "file");
    setup.provider.set("/file", Behaviour::Page(TestPage::new(file.to_vec())));
}

fn encrypted(plain: &[u8]) -> Vec<u8> {
    let n_padding = KEY.len() - plain.len() % KEY.len();
    let mut bytes = [plain, &vec![n_padding as u8; n_padding]].concat();
    let (blocks, _) = InOutBuf::from(&mut bytes[..]).into_chunks();
    cbc::Encryptor::<Aes128>::new(&KEY.into(), &IV.into()).encrypt_blocks_inout_mut(blocks);
    bytes
}

/// Plays the list to its end, and returns the output without filler.
async fn played(setup: &mut Setup) -> Vec<u8> {
    setup.follow(1, "/list").await;
    setup.plays(1).await;
    let mut tail = setup.tail();
    let bytes = all_for(&mut tail, SEGMENT * (N_SEGMENTS + 2)).await;
    assert_eq!(setup.loses(1).await, Cause::Ended);
    packets(&bytes).filter(|it| Packet::new(it).pid() != NULL_PID).flatten().copied().collect()
}

/// Returns the PIDs of the packets that neither continue the counter nor declare that they do not.
fn counter_errors(bytes: &[u8]) -> Vec<u16> {
    let mut last: HashMap<u16, &PacketBytes> = HashMap::new();
    let mut errors = Vec::new();
    for bytes in packets(bytes).filter(|it| Packet::new(it).pid() != NULL_PID) {
        let packet = Packet::new(bytes);
        let Some(before) = last.insert(packet.pid(), bytes) else { continue };
        let step = packet.cc().wrapping_sub(Packet::new(before).cc()) & 0x0F;
        let continues = step == u8::from(packet.has_payload()) || before == bytes;
        if !continues && !packet.discontinuity() {
            errors.push(packet.pid());
        }
    }
    errors
}

/// Holds T-view.1.
#[tokio::test(start_paused = true)]
async fn segments_play_as_one_stream_whatever_their_counters_begin_with() {
    let segments = continuous();
    let mut setup = Setup::new();
    send_plain(&setup, &segments);
    let expected = played(&mut setup).await;
    assert!(expected.len() > 500_000 && counter_errors(&expected).is_empty());
    let restarted = numbered(&segments, |_, _| 0);
    let first =
        |pid: u16| Packet::new(packets(&segments[0]).find(|it| Packet::new(it).pid() == pid).unwrap()).cc();
    // The first segment decides, because it passes unchanged.
    let other = numbered(&segments, |at, pid| if at == 0 { first(pid) } else { (at * 7) as u8 ^ pid as u8 });
    let mut from_zero = segments.clone();
    from_zero[1..].clone_from_slice(&restarted[1..]);
    for (what, segments) in [("from zero", &from_zero), ("any numbers", &other)] {
        assert!(!counter_errors(&segments.concat()).is_empty(), "{what}");
        let mut setup = Setup::new();
        send_plain(&setup, segments);
        assert!(played(&mut setup).await == expected, "{what}");
        let mut setup = Setup::new();
        let segments: Vec<_> = segments.iter().map(|it| encrypted(it)).collect();
        let iv: String = IV.iter().map(|it| format!("{it:02x}")).collect();
        let head = format!("#EXT-X-KEY:METHOD=AES-128,URI=\"key\",IV=0x{iv}\n");
        send(&setup, &segments, &head, |_| String::new(), "{}.ts");
        setup.provider.set("/key", Behaviour::Page(TestPage::new(KEY.to_vec())));
        assert!(played(&mut setup).await == expected, "{what}, encrypted");
    }
}

#[tokio::test(start_paused = true)]
async fn ranges_of_one_file_play_unchanged_wherever_it_is_divided() {
    let segments = continuous();
    let file = segments.concat();
    let mut setup = Setup::new();
    send_plain(&setup, &segments);
    let expected = played(&mut setup).await;
    let lengths: Vec<_> = segments.iter().map(Vec::len).collect();
    // Also in the middle of packets: each segment but the last one ends 100 bytes later.
    let mut moved = lengths.clone();
    moved[0] += 100;
    *moved.last_mut().unwrap() -= 100;
    for lengths in [lengths, moved] {
        let mut setup = Setup::new();
        send_ranges(&setup, &file, &lengths);
        assert!(played(&mut setup).await == expected, "ranges of {lengths:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_packet_that_is_missing_in_a_segment_stays_an_error_and_a_duplicate_stays_one() {
    let mut segments = numbered(&continuous(), |_, _| 0);
    let video: Vec<_> = packets(&segments[3]).enumerate().collect();
    let nth = |n: usize| video.iter().filter(|it| Packet::new(it.1).pid() == VIDEO).nth(n).unwrap().0;
    let (missing, repeated) = (nth(40) * PACKET, nth(20) * PACKET);
    segments[3].drain(missing..missing + PACKET);
    let duplicate = segments[3][repeated..repeated + PACKET].to_vec();
    segments[3].splice(repeated..repeated, duplicate);
    let mut setup = Setup::new();
    send_plain(&setup, &segments);
    let bytes = played(&mut setup).await;
    assert_eq!(counter_errors(&bytes), [VIDEO]);
    let of_video: Vec<_> = packets(&bytes).filter(|it| Packet::new(it).pid() == VIDEO).collect();
    assert_eq!(of_video.windows(2).filter(|it| it[0] == it[1]).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_segment_that_is_skipped_is_declared_and_the_counters_after_it_continue() {
    let mut setup = Setup::new();
    send_plain(&setup, &numbered(&continuous(), |_, _| 0));
    setup.provider.set("/3.ts", Behaviour::Status(404));
    let bytes = played(&mut setup).await;
    assert!(counter_errors(&bytes).is_empty());
    assert_eq!(packets(&bytes).filter(|it| Packet::new(it).discontinuity()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pid_that_begins_in_a_later_segment_or_pauses_continues_as_well() {
    let mut segments = numbered(&continuous(), |_, _| 0);
    for (at, segment) in segments.iter_mut().enumerate() {
        if [2, 3, 6].contains(&at) {
            let mut services = *packets(segment).find(|it| Packet::new(it).pid() == PAT_PID).unwrap();
            set_pid(&mut services, SERVICES);
            set_cc(&mut services, 5);
            segment.extend_from_slice(&services);
        }
    }
    let mut setup = Setup::new();
    send_plain(&setup, &segments);
    let bytes = played(&mut setup).await;
    let services = packets(&bytes).map(Packet::new).filter(|it| it.pid() == SERVICES);
    assert_eq!(services.map(Packet::cc).collect::<Vec<_>>(), [5, 6, 7]);
    assert!(counter_errors(&bytes).is_empty());
}

#[tokio::test(start_paused = true)]
async fn segments_that_follow_another_source_continue_their_counters() {
    for is_prepared in [true, false] {
        let mut setup = Setup::new();
        setup.provider.set("/1", Behaviour::play("one"));
        setup.follow(1, "/1").await;
        setup.plays(1).await;
        let mut tail = setup.tail();
        send_plain(&setup, &numbered(&continuous(), |_, _| 0));
        if is_prepared {
            setup.prepare(2, "/list").await;
            let mut bytes = BytesMut::new();
            loop {
                tokio::select! {
                    biased;
                    message = setup.messages.recv() => {
                        assert_eq!(message.unwrap().0, PumpMessage::Ready(2));
                        break;
                    }
                    chunk = tail.chunk() => bytes.extend_from_slice(&chunk.unwrap()),
                }
            }
            setup.pump.follow_prepared(2);
        } else {
            setup.follow(2, "/list").await;
        }
        setup.plays(2).await;
        let bytes = all_for(&mut tail, SEGMENT * 5).await;
        assert_eq!(labels_in(&bytes).last().map(String::as_str), Some("x"));
        assert!(counter_errors(&bytes).is_empty(), "prepared: {is_prepared}");
    }
}

/// The gateway cannot know where such a server puts files together, and must not hide what is lost.
#[tokio::test(start_paused = true)]
async fn the_counters_of_one_response_stay_as_they_are() {
    let bytes = numbered(&continuous(), |_, _| 0).concat();
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\nConnection: close\r\n\r\n";
    let mut setup = Setup::new();
    setup.provider.set("/list", Behaviour::Raw(Bytes::from([head, &bytes[..]].concat())));
    let out = played(&mut setup).await;
    assert_eq!(counter_errors(&out), counter_errors(&bytes));
    assert!(!counter_errors(&out).is_empty());
}
