//! Tests of the ring: where viewers start, what slow viewers lose, and what every viewer gets.

mod model;
mod threads;

use std::collections::HashMap;
use std::io::IoSlice;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, advance};

use super::{
    Budget, EndReason, JoinPoint, PIECES_MAX, Pieces, Ring, RingSettings, TAILS_MIN, Tail, Writer, ring,
};
use crate::ts::build::{AUDIO_PID, Builder, PMT_PID, VIDEO_PID};
use crate::ts::packet::{NULL_PID, PACKET, PAT_PID, Packet, packets};
use crate::ts::table_reader::TableReader;

/// A ring and the stream that is written to it.
struct TestRing {
    builder: Builder,
    writer: Writer,
    ring: Ring,
}

impl TestRing {
    fn new(settings: RingSettings) -> Self {
        Self::within(settings, &Budget::new(usize::MAX))
    }

    fn within(settings: RingSettings, budget: &Budget) -> Self {
        let (writer, ring) = ring(settings, budget);
        Self { builder: Builder::video(), writer, ring }
    }

    fn tables(&mut self) {
        let packets = self.builder.tables().concat();
        self.writer.push_packets(&packets, Instant::now());
    }

    /// Writes a chunk of this many packets, starting with a key frame or not.
    fn chunk(&mut self, is_key: bool, n_packets: usize) {
        let now = Instant::now();
        self.writer.flush(now);
        let first = if is_key { self.builder.key(0) } else { self.builder.data(VIDEO_PID) };
        let mut packets = first.to_vec();
        for index in 1..n_packets {
            let pid = if index % 8 == 0 { AUDIO_PID } else { VIDEO_PID };
            packets.extend(self.builder.data(pid));
        }
        self.writer.push_packets(&packets, now);
        self.writer.flush(now);
    }

    fn filler(&mut self) {
        self.writer.filler(Instant::now());
    }

    fn live(&self, behind_seconds: u64) -> Tail {
        self.ring.tail(JoinPoint::Live { behind: Duration::from_secs(behind_seconds) }, None)
    }
}

fn settings(seconds: u64, bytes: usize, gop_bytes: usize) -> RingSettings {
    RingSettings { seconds: Duration::from_secs(seconds), bytes, gop_bytes, ..RingSettings::default() }
}

fn poll(tail: &mut Tail) -> Option<Result<Bytes, EndReason>> {
    match tail.poll_chunk(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(it) => Some(it),
        Poll::Pending => None,
    }
}

/// Returns all bytes that are available now, and the end if it is reached.
fn drain(tail: &mut Tail) -> (Vec<u8>, Option<EndReason>) {
    let mut bytes = Vec::new();
    loop {
        match poll(tail) {
            Some(Ok(chunk)) => bytes.extend_from_slice(&chunk),
            Some(Err(end)) => return (bytes, Some(end)),
            None => return (bytes, None),
        }
    }
}

/// Checks the stream that one viewer receives, as strictly as a viewer could.
#[derive(Default)]
struct Viewer {
    counters: HashMap<u16, u8>,
    tables: TableReader,
    n_packets: usize,
    n_filler: usize,
    n_breaks: usize,
    /// Packets that carry a part of the programme.
    n_payload: usize,
}

impl Viewer {
    #[track_caller]
    fn receives(&mut self, bytes: &[u8]) {
        assert_eq!(bytes.len() % PACKET, 0, "a packet is cut");
        for packet in packets(bytes) {
            let view = Packet::new(packet);
            assert!(view.is_valid(), "a valid packet");
            self.n_packets += 1;
            self.tables.packet(view);
            let pid = view.pid();
            if pid == NULL_PID {
                self.n_filler += 1;
                continue;
            }
            if pid != PAT_PID && pid != PMT_PID && view.has_payload() {
                self.n_payload += 1;
                assert!(self.tables.tables().is_some(), "payload arrives before the tables");
            }
            let before = self.counters.insert(pid, view.cc());
            if view.discontinuity() {
                self.n_breaks += 1;
            } else if let Some(before) = before {
                let expected = before + u8::from(view.has_payload());
                assert_eq!(view.cc(), expected & 0x0F, "an undeclared break on PID {pid:#x}");
            }
        }
    }

    #[track_caller]
    fn takes(&mut self, tail: &mut Tail) -> Option<EndReason> {
        let (bytes, end) = drain(tail);
        self.receives(&bytes);
        end
    }
}

/// Writes one chunk per second (`t`ables, `k`ey frame, `.` other, `f`iller), then adds a tail and checks the
/// number of its first chunk.
async fn check(script: &str, join_point: JoinPoint, expected: Option<u64>) {
    let mut test = TestRing::new(settings(10_000, usize::MAX, usize::MAX));
    for step in script.chars() {
        match step {
            't' => test.tables(),
            'k' => test.chunk(true, 3),
            '.' => test.chunk(false, 3),
            _ => test.filler(),
        }
        test.writer.flush(Instant::now());
        advance(Duration::from_secs(1)).await;
    }
    let mut tail = test.ring.tail(join_point, None);
    let (bytes, end) = drain(&mut tail);
    Viewer::default().receives(&bytes);
    assert_eq!(end, None);
    let n_chunks = test.ring.usage().head_sequence;
    let begins = |it: u64| {
        let state = test.ring.shared.state.lock();
        let expected: Vec<u8> = (it..n_chunks).flat_map(|it| state.get(it).unwrap().chunk.bytes()).collect();
        bytes == expected || bytes[2 * PACKET..] == expected
    };
    match expected {
        Some(number) => assert!(begins(number), "{script} {join_point:?} does not start at {number}"),
        None => assert_eq!(bytes.len(), 0, "{script} {join_point:?} has to wait"),
    }
}

fn live(seconds: u64) -> JoinPoint {
    JoinPoint::Live { behind: Duration::from_secs(seconds) }
}

#[tokio::test(start_paused = true)]
async fn a_viewer_starts_at_a_random_access_point_and_never_before_filler() {
    // Holds T-view.4 and the join point of T-view.
    check("", live(2), None).await;
    check("tk.k.k.", live(2), Some(5)).await;
    check("tk.k.k.", live(3), Some(3)).await;
    check("tk.k.k.", live(99), Some(1)).await;
    check("tk.k.k.", live(0), Some(5)).await;
    check("tk", live(2), Some(1)).await;
    check("t....", live(2), Some(0)).await;
    check("tk..f", live(2), None).await;
    check("tk..ff.", live(2), Some(6)).await;
    check("tk..ff.k.", live(2), Some(7)).await;
    check("tk..ff.k.", live(9), Some(7)).await;
    check("f", live(2), None).await;

    check("tk.k.k.", JoinPoint::Oldest, Some(1)).await;
    check("t..", JoinPoint::Oldest, Some(0)).await;
    check("tk.fk.k", JoinPoint::Oldest, Some(4)).await;
    check("tk.f", JoinPoint::Oldest, None).await;

    check("tk.k.k.", JoinPoint::At(4), Some(4)).await;
    check("tk.k.k.", JoinPoint::At(7), None).await;
    check("tk.f.k.", JoinPoint::At(1), Some(4)).await;
}

#[tokio::test(start_paused = true)]
async fn a_viewer_who_joins_in_a_gap_gets_no_filler_before_the_first_chunk() {
    // Holds T-view.4.
    let mut test = TestRing::new(RingSettings::default());
    test.tables();
    test.chunk(true, 10);
    test.filler();
    assert!(!test.ring.has_content());
    let (mut old, mut new) = (test.live(2), test.live(2));
    let (bytes, _) = drain(&mut old);
    assert_eq!(bytes.len(), 0);
    test.filler();
    assert_eq!(drain(&mut new).0.len(), 0);
    test.chunk(false, 10);
    assert!(test.ring.has_content());
    test.filler();
    for tail in [&mut old, &mut new] {
        let mut viewer = Viewer::default();
        viewer.takes(tail);
        // The second tail was not polled before the second gap started, so it keeps waiting.
        assert!(viewer.n_filler == 0 || viewer.n_payload > 0);
    }
    test.chunk(true, 10);
    let mut viewer = Viewer::default();
    viewer.takes(&mut new);
    assert_eq!((viewer.n_filler, viewer.n_payload), (0, 10));
}

#[tokio::test(start_paused = true)]
async fn a_viewer_gets_filler_during_a_gap() {
    let mut test = TestRing::new(RingSettings::default());
    test.tables();
    test.chunk(true, 10);
    let mut tail = test.live(0);
    let mut viewer = Viewer::default();
    viewer.takes(&mut tail);
    test.filler();
    viewer.takes(&mut tail);
    assert_eq!(viewer.n_filler, 7);
    assert_eq!(tail.meter().filler_bytes(), 7 * PACKET as u64);
    assert_eq!(test.ring.meter().filler_bytes(), 7 * PACKET as u64);
    assert_eq!(test.ring.meter().packets(), 2 + 10);
}

#[tokio::test(start_paused = true)]
async fn the_counters_of_a_preamble_fit_the_following_packets_even_for_long_tables() {
    let mut test = TestRing::new(RingSettings::default());
    test.builder.pmt.streams[1].descriptors = vec![0x0A; 250];
    for _ in 0..5 {
        test.tables();
        test.chunk(true, 10);
    }
    let mut tail = test.live(0);
    let preamble = poll(&mut tail).unwrap().unwrap();
    assert_eq!(preamble.len(), 3 * PACKET);
    test.tables();
    test.chunk(false, 1);
    let mut viewer = Viewer::default();
    viewer.receives(&preamble);
    viewer.takes(&mut tail);
    assert_eq!((viewer.n_breaks, viewer.n_payload), (0, 11));
}

#[tokio::test(start_paused = true)]
async fn ready_waits_for_a_chunk_other_than_filler_and_consumes_nothing() {
    let mut test = TestRing::new(RingSettings::default());
    test.filler();
    let mut tail = test.live(2);
    let mut waiting = poll_ready(&mut tail);
    assert!(waiting());
    test.filler();
    let mut tail = test.live(2);
    assert!(poll_ready(&mut tail)());
    test.tables();
    test.chunk(true, 5);
    tail.ready().await.unwrap();
    tail.ready().await.unwrap();
    let mut viewer = Viewer::default();
    viewer.takes(&mut tail);
    assert_eq!(viewer.n_payload, 5);
}

/// Returns a function that polls `ready` once and returns whether it is pending.
fn poll_ready(tail: &mut Tail) -> impl FnMut() -> bool {
    move || {
        let ready = std::pin::pin!(tail.ready());
        ready.poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_viewer_is_moved_forward_and_counted_while_others_lose_nothing() {
    // Holds T-view.3 and the ring's part of T-view.1.
    let patient = RingSettings { slow_client_limit: u32::MAX, ..settings(2, 4_000_000, 8_000_000) };
    let mut test = TestRing::new(patient);
    test.tables();
    test.chunk(true, 40);
    let (mut fast_tail, mut slow_tail) = (test.live(0), test.live(0));
    let (mut fast, mut slow) = (Viewer::default(), Viewer::default());
    let (mut n_fast, mut slow_bytes) = (0, 0);
    for step in 1..400 {
        advance(Duration::from_millis(50)).await;
        if step % 10 == 0 {
            test.tables();
        }
        test.chunk(step % 20 == 0, 40);
        let (bytes, end) = drain(&mut fast_tail);
        assert_eq!(end, None);
        fast.receives(&bytes);
        n_fast += bytes.len();
        // At a quarter of the rate.
        if step % 4 == 0
            && let Some(Ok(bytes)) = poll(&mut slow_tail)
        {
            slow.receives(&bytes);
            slow_bytes += bytes.len() as u64;
        }
        assert!(test.ring.usage().bytes <= 4_000_000);
        assert!(test.ring.usage().seconds <= 2.1);
    }
    assert_eq!((fast.n_breaks, fast_tail.meter().overruns(), fast_tail.meter().overrun_bytes()), (0, 0, 0));
    assert_eq!(fast_tail.meter().bytes(), n_fast as u64);
    assert_eq!(fast_tail.meter().behind(), Duration::ZERO);
    let meter = slow_tail.meter();
    assert!(meter.overruns() > 2 && slow.n_breaks as u64 == 4 * meter.overruns());
    assert_eq!(meter.bytes(), slow_bytes);
    assert!(meter.behind() > Duration::from_millis(500), "{:?}", meter.behind());
    assert_eq!(test.ring.meter().overruns(), meter.overruns());
    // The delivered bytes, the lost bytes and the bytes that are still in the ring are all bytes written. A
    // preamble has two packets, and four more after an overrun.
    let preambles = (2 + 6 * meter.overruns()) * PACKET as u64;
    let (rest, _) = drain(&mut slow_tail);
    let total = test.ring.meter().bytes_in() - 2 * PACKET as u64;
    assert_eq!(slow_bytes - preambles + slow_tail.meter().overrun_bytes() + rest.len() as u64, total);
}

#[tokio::test(start_paused = true)]
async fn a_viewer_with_too_many_overruns_within_a_minute_is_disconnected() {
    let run = async |pause: Duration| {
        let mut test = TestRing::new(settings(2, usize::MAX, usize::MAX));
        test.tables();
        test.chunk(true, 5);
        let mut tail = test.live(0);
        let mut n_overruns = 0;
        loop {
            advance(pause).await;
            test.chunk(true, 5);
            advance(Duration::from_secs(3)).await;
            test.chunk(true, 5);
            match poll(&mut tail) {
                Some(Ok(_)) => n_overruns = tail.meter().overruns(),
                Some(Err(end)) => return (n_overruns, Some(end)),
                None => unreachable!("a chunk was written"),
            }
            drain(&mut tail);
            if n_overruns > 20 {
                return (n_overruns, None);
            }
        }
    };
    assert_eq!(run(Duration::from_secs(3)).await, (6, Some(EndReason::TooSlow)));
    assert_eq!(run(Duration::from_secs(8)).await.1, None);
}

#[tokio::test(start_paused = true)]
async fn evicted_filler_is_not_an_overrun() {
    let mut test = TestRing::new(settings(2, usize::MAX, usize::MAX));
    test.tables();
    let mut tail = test.live(0);
    test.chunk(true, 5);
    let mut viewer = Viewer::default();
    viewer.takes(&mut tail);
    for _ in 0..20 {
        advance(Duration::from_millis(500)).await;
        test.filler();
    }
    test.chunk(true, 5);
    // The key frame ends the old group of pictures, so chunks older than two seconds are removed.
    test.chunk(true, 5);
    assert!(test.ring.usage().tail_sequence > 3);
    viewer.takes(&mut tail);
    assert_eq!((tail.meter().overruns(), viewer.n_breaks, viewer.n_payload), (0, 0, 15));
}

#[tokio::test(start_paused = true)]
async fn the_newest_group_of_pictures_stays_complete_up_to_its_own_limit() {
    let mut test = TestRing::new(settings(1, 10 * PACKET, 1000 * PACKET));
    test.tables();
    for _ in 0..9 {
        test.chunk(true, 20);
    }
    assert_eq!(test.ring.usage().chunks, 1);
    for _ in 0..40 {
        advance(Duration::from_secs(1)).await;
        test.chunk(false, 20);
    }
    assert_eq!(test.ring.usage().chunks, 41);
    for _ in 0..40 {
        test.chunk(false, 20);
    }
    let usage = test.ring.usage();
    assert!(usage.bytes <= 1000 * PACKET, "{usage:?}");
}

#[tokio::test(start_paused = true)]
async fn under_pressure_rings_with_the_fewest_viewers_shrink_first_and_keep_a_group_of_pictures() {
    let fill = |test: &mut TestRing| {
        test.tables();
        for _ in 0..13 {
            test.chunk(true, 10);
        }
    };
    let unbounded = settings(1000, usize::MAX, usize::MAX);
    let mut alone = TestRing::new(unbounded.clone());
    fill(&mut alone);
    // Exactly the memory of three rings; one chunk more exceeds the budget.
    let budget = Budget::new(3 * alone.ring.usage().bytes);
    let mut rings: Vec<TestRing> = (0..3).map(|_| TestRing::within(unbounded.clone(), &budget)).collect();
    let _tails: Vec<Tail> = [1, 1, 2].iter().map(|it| rings[*it].live(0)).collect();
    rings.iter_mut().for_each(fill);
    let held = |rings: &[TestRing]| rings.iter().map(|it| it.ring.usage().chunks).collect::<Vec<_>>();
    assert_eq!((held(&rings), budget.used()), (vec![14, 14, 14], budget.total()));
    rings[1].chunk(true, 10);
    // The first chunk of a ring contains only the tables.
    assert_eq!(held(&rings), [12, 15, 14]);
    for _ in 0..100 {
        rings[1].chunk(true, 10);
    }
    let held = held(&rings);
    assert!(held[0] == 1 && held[1] > 25 && held[2] < 14, "{held:?}");
    assert!(budget.used() <= budget.total());
    let (kept, used) = (rings[0].ring.usage().bytes, budget.used());
    drop(rings.remove(0));
    assert_eq!(budget.used(), used - kept);
    rings.clear();
    drop(_tails);
    assert_eq!(budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn under_pressure_the_newest_groups_of_pictures_share_the_budget() {
    let budget = Budget::new(600 * PACKET);
    let mut rings: Vec<TestRing> =
        (0..3).map(|_| TestRing::within(settings(1000, usize::MAX, usize::MAX), &budget)).collect();
    // The first two groups exceed the budget, the third needs little.
    for (test, n_chunks) in rings.iter_mut().zip([100, 100, 5]) {
        test.tables();
        test.chunk(true, 10);
        for _ in 1..n_chunks {
            test.chunk(false, 10);
        }
        assert!(budget.used() <= 600 * PACKET, "{} packets", budget.used() / PACKET);
    }
    let held: Vec<usize> = rings.iter().map(|it| it.ring.usage().bytes / PACKET).collect();
    assert!(held[0] >= 180 && held[1] >= 180 && held[2] >= 52, "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn the_memory_beside_the_packets_of_a_chunk_counts() {
    const N_PIDS: u16 = 200;
    let budget = Budget::new(usize::MAX);
    let mut test = TestRing::within(settings(1000, 256 * 1024, 256 * 1024), &budget);
    test.tables();
    for pid in 0..N_PIDS {
        let packet = test.builder.data(0x200 + pid);
        test.writer.push_packets(&packet, Instant::now());
    }
    for _ in 0..2_000 {
        test.chunk(false, 1);
    }
    let usage = test.ring.usage();
    // Four bytes for the counter of each PID, beside the packet itself.
    let n_chunks_max = 256 * 1024 / (PACKET + 4 * usize::from(N_PIDS));
    assert!(usage.chunks > 100 && usage.chunks <= n_chunks_max, "{usage:?}");
    assert!(usage.bytes <= 256 * 1024 && budget.used() == usage.bytes, "{usage:?}");
}

#[tokio::test(start_paused = true)]
async fn tables_that_change_with_every_chunk_count() {
    let mut test = TestRing::new(settings(1000, 256 * 1024, 256 * 1024));
    for n in 0..1_000_u32 {
        test.builder.pmt.version = (n % 32) as u8;
        test.builder.pmt.program_info = [vec![0x0A, 200], vec![n as u8; 200]].concat();
        test.tables();
        test.chunk(false, 1);
    }
    let usage = test.ring.usage();
    assert!(usage.chunks > 100 && usage.chunks <= 256 * 1024 / (2 * PACKET + 200), "{usage:?}");
}

#[tokio::test(start_paused = true)]
async fn an_overrun_is_declared_on_every_pid_also_on_those_of_service_tables() {
    let mut test = TestRing::new(settings(2, usize::MAX, usize::MAX));
    test.tables();
    test.chunk(true, 5);
    let mut tail = test.live(0);
    let mut viewer = Viewer::default();
    for second in 0..10 {
        // Service description and event information tables: no table of the programme announces them.
        for pid in [0x11, 0x12, 0x12] {
            let packet = test.builder.data(pid);
            test.writer.push_packets(&packet, Instant::now());
        }
        test.tables();
        test.chunk(true, 5);
        if second == 0 || second == 9 {
            viewer.takes(&mut tail);
        }
        advance(Duration::from_secs(1)).await;
    }
    assert_eq!(tail.meter().overruns(), 1);
    // PAT, PMT, video, audio, and two service tables.
    assert_eq!(viewer.n_breaks, 6);
}

#[tokio::test(start_paused = true)]
async fn the_first_end_is_kept_and_follows_the_remaining_chunks() {
    let mut test = TestRing::new(RingSettings::default());
    test.tables();
    test.chunk(true, 5);
    let mut tail = test.live(0);
    let waiting = test.ring.tail(JoinPoint::At(99), None);
    test.ring.end(EndReason::Silent);
    test.ring.end(EndReason::Kicked);
    test.chunk(true, 5);
    let mut viewer = Viewer::default();
    assert_eq!(viewer.takes(&mut tail), Some(EndReason::Silent));
    assert_eq!(viewer.n_payload, 5);
    assert_eq!(poll(&mut tail), Some(Err(EndReason::Silent)));
    assert_eq!({ waiting }.ready().await, Err(EndReason::Silent));
    assert_eq!(test.ring.ended(), Some(EndReason::Silent));
}

#[tokio::test(start_paused = true)]
async fn a_disconnected_viewer_gets_no_more_chunks() {
    let mut test = TestRing::new(RingSettings::default());
    test.tables();
    test.chunk(true, 5);
    let mut tail = test.live(0);
    test.ring.end(EndReason::Kicked);
    assert_eq!(drain(&mut tail), (Vec::new(), Some(EndReason::Kicked)));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_writer_delivers_its_collected_packets() {
    let mut test = TestRing::new(RingSettings::default());
    let mut tail = test.live(0);
    test.tables();
    assert_eq!(drain(&mut tail).1, None);
    // The next batch comes at once, so its packets are collected.
    test.tables();
    assert_eq!(poll(&mut tail), None);
    drop(test.writer);
    let (bytes, end) = drain(&mut tail);
    assert_eq!((bytes.len(), end), (2 * PACKET, Some(EndReason::Closed)));
}

/// Returns what is available now; `n_bytes` of it are sent.
fn send(tail: &mut Tail, n_bytes: usize) -> Option<Vec<u8>> {
    let mut pieces = Pieces::new();
    match tail.poll_pieces(&mut Context::from_waker(Waker::noop()), &mut pieces) {
        Poll::Ready(Ok(())) => {
            let mut slices = [IoSlice::new(&[]); PIECES_MAX];
            let n_slices = pieces.slices(&mut slices);
            let bytes: Vec<u8> = slices[..n_slices].iter().flat_map(|it| it.iter().copied()).collect();
            assert_eq!(bytes.len(), pieces.n_bytes());
            if let Some((file, at)) = pieces.file() {
                let mut in_file = vec![0; bytes.len()];
                assert_eq!(rustix::io::pread(file, &mut in_file[..], at), Ok(bytes.len()));
                assert_eq!(in_file, bytes, "the file has the same bytes");
            }
            let n_bytes = n_bytes.min(bytes.len());
            tail.sent(&pieces, n_bytes);
            Some(bytes[..n_bytes].to_vec())
        }
        Poll::Ready(Err(_)) | Poll::Pending => None,
    }
}

#[tokio::test(start_paused = true)]
async fn several_chunks_are_sent_at_once_behind_one_preamble() {
    let mut test = TestRing::new(RingSettings::default());
    test.tables();
    (0..3).for_each(|index| test.chunk(index == 0, 10));
    let mut tail = test.live(0);
    let bytes = send(&mut tail, usize::MAX).unwrap();
    assert_eq!(bytes.len(), (2 + 3 * 10) * PACKET);
    assert_eq!(send(&mut tail, usize::MAX), None);
    test.chunk(false, 10);
    assert_eq!(send(&mut tail, usize::MAX).map(|it| it.len()), Some(10 * PACKET));
    assert_eq!(tail.meter().bytes(), 42 * PACKET as u64);
}

#[tokio::test(start_paused = true)]
async fn a_viewer_that_takes_a_part_of_a_packet_gets_the_rest_of_it_even_after_an_overrun() {
    let patient = RingSettings { slow_client_limit: u32::MAX, ..settings(1, usize::MAX, 0) };
    let mut test = TestRing::new(patient);
    test.tables();
    test.chunk(true, 10);
    let (mut tail, mut viewer) = (test.live(0), Viewer::default());
    let mut received = send(&mut tail, 5 * PACKET + 100).unwrap();
    advance(Duration::from_secs(5)).await;
    test.chunk(true, 10);
    received.extend(send(&mut tail, 1).unwrap());
    received.extend(send(&mut tail, usize::MAX).unwrap());
    viewer.receives(&received);
    assert_eq!((tail.meter().overruns(), viewer.n_breaks), (1, 4));
    // Two packets of tables; ten packets, four of which were sent.
    assert_eq!(tail.meter().overrun_bytes(), 6 * PACKET as u64);
    assert_eq!(test.ring.meter().overruns(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_viewer_that_takes_nothing_keeps_no_chunk_in_memory() {
    let mut test = TestRing::new(settings(1, usize::MAX, 0));
    test.tables();
    test.chunk(true, 10);
    let mut tail = test.live(0);
    send(&mut tail, 5 * PACKET + 100).unwrap();
    let chunk = {
        let state = test.ring.shared.state.lock();
        state.get(state.oldest()).unwrap().chunk.bytes()
    };
    advance(Duration::from_secs(5)).await;
    // Evicts the first chunks, whose block of memory is then used by nobody else.
    test.writer.filler(Instant::now());
    test.writer.filler(Instant::now());
    drop(test);
    assert!(chunk.is_unique());
    drop(tail);
}

/// Returns whether what is available now is in a memory file, and takes it.
fn is_in_file(tail: &mut Tail) -> bool {
    let mut pieces = Pieces::new();
    let polled = tail.poll_pieces(&mut Context::from_waker(Waker::noop()), &mut pieces);
    assert!(polled.is_ready());
    tail.sent(&pieces, pieces.n_bytes());
    pieces.file().is_some()
}

#[tokio::test(start_paused = true)]
async fn the_newest_chunks_of_a_ring_with_many_viewers_are_in_memory_files_that_count() {
    let budget = Budget::new(usize::MAX);
    let mut test = TestRing::within(RingSettings::default(), &budget);
    test.tables();
    test.chunk(true, 10);
    let mut tails: Vec<Tail> = (0..TAILS_MIN).map(|_| test.live(0)).collect();
    tails.iter_mut().for_each(|it| assert!(!is_in_file(it), "these chunks are older than the viewers"));
    test.chunk(false, 10);
    tails.iter_mut().for_each(|it| assert!(is_in_file(it)));
    let usage = test.ring.usage();
    assert_eq!((usage.file_bytes, budget.used()), (10 * PACKET, usage.bytes + usage.file_bytes));
    let mut joining = test.live(0);
    assert!(!is_in_file(&mut joining), "a preamble is in no file");

    drop(joining);
    tails.truncate(1);
    test.chunk(false, 10);
    assert!(!is_in_file(&mut tails[0]), "a file costs more than it saves for few viewers");
    let usage = test.ring.usage();
    assert_eq!((usage.file_bytes, budget.used()), (0, usage.bytes));
}

#[tokio::test(start_paused = true)]
async fn the_counters_of_a_ring_include_viewers_who_have_left() {
    let mut test = TestRing::new(RingSettings::default());
    test.tables();
    test.chunk(true, 10);
    let (mut first, mut second) = (test.live(0), test.live(0));
    drain(&mut first);
    drain(&mut second);
    drop(first);
    assert_eq!(test.ring.meter().bytes_out(), 2 * 12 * PACKET as u64);
    let mut third = test.live(0);
    drain(&mut third);
    drop((second, third));
    assert_eq!(test.ring.meter().bytes_out(), 3 * 12 * PACKET as u64);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_tail_drops_its_guard_and_frees_its_slot() {
    let test = TestRing::new(RingSettings::default());
    let guard = std::sync::Arc::new(());
    let tail = test.ring.tail(live(2), Some(Box::new(guard.clone())));
    assert_eq!((test.ring.n_tails(), std::sync::Arc::strong_count(&guard)), (1, 2));
    drop(tail);
    assert_eq!((test.ring.n_tails(), std::sync::Arc::strong_count(&guard)), (0, 1));
}

#[test]
fn a_tail_is_small_and_usable_as_a_response_body() {
    fn is_body<T: Send + Sync + Unpin + 'static>() {}
    is_body::<Tail>();
    assert!(size_of::<Tail>() <= 256, "{}", size_of::<Tail>());
}

impl TestRing {
    /// Ends the source, and writes the first chunk of the next one, which has only sound.
    fn sound_of_another_source(&mut self) {
        self.writer.begin_gap();
        self.writer.discontinuity_next();
        self.sound();
    }

    fn sound(&mut self) {
        let packets: Vec<_> = (0..5).map(|_| self.builder.data(AUDIO_PID)).collect();
        self.writer.push_packets(&packets.concat(), Instant::now());
        self.writer.flush(Instant::now());
    }
}

// Holds T-fo.10 for new viewers.
#[tokio::test(start_paused = true)]
async fn a_viewer_who_joins_while_the_picture_is_awaited_begins_with_it() {
    let mut test = TestRing::new(RingSettings::default());
    test.tables();
    test.chunk(true, 10);
    let mut old = test.live(0);
    drain(&mut old);
    test.sound_of_another_source();
    let (mut new, mut oldest) = (test.live(2), test.ring.tail(JoinPoint::Oldest, None));
    let mut node = test.ring.chunks_after(None).unwrap();
    for _ in 0..20 {
        advance(Duration::from_millis(500)).await;
        test.sound();
        assert_eq!(drain(&mut new).0.len(), 0, "it waits for the picture");
        assert!(!drain(&mut old).0.is_empty(), "one who watches already hears the sound");
        assert!(!drain(&mut oldest).0.is_empty(), "segments are made of all");
        assert!(node.poll_next(&mut Context::from_waker(Waker::noop())).is_ready(), "rings are the same");
    }
    test.chunk(true, 10);
    let mut viewer = Viewer::default();
    viewer.takes(&mut new);
    assert_eq!((viewer.n_breaks, viewer.n_payload), (0, 10));
}

#[tokio::test(start_paused = true)]
async fn a_viewer_waits_for_the_picture_for_twelve_seconds_at_most() {
    let mut test = TestRing::new(RingSettings::default());
    test.tables();
    test.chunk(true, 10);
    test.sound_of_another_source();
    let mut new = test.live(2);
    for _ in 0..23 {
        advance(Duration::from_millis(500)).await;
        test.sound();
        assert_eq!(drain(&mut new).0.len(), 0);
    }
    advance(Duration::from_millis(500)).await;
    test.sound();
    assert!(!drain(&mut new).0.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_viewer_of_a_stream_without_random_access_points_does_not_wait() {
    // None was ever seen.
    let mut test = TestRing::new(RingSettings::default());
    test.tables();
    test.chunk(false, 10);
    test.sound_of_another_source();
    assert!(!drain(&mut test.live(2)).0.is_empty());
    // Or the present source is known to have none.
    let mut test = TestRing::new(RingSettings::default());
    test.tables();
    test.chunk(true, 10);
    test.sound_of_another_source();
    let mut new = test.live(2);
    assert_eq!(drain(&mut new).0.len(), 0);
    test.writer.allow_joins();
    assert!(!drain(&mut new).0.is_empty());
}
