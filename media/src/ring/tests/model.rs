//! Compares the ring with a model that stores everything and searches all of it each time.

use proptest::prelude::*;

use super::*;
use crate::chunk::Chunk;
use crate::chunker::Chunker;
use crate::ring::state::StoredChunk;

#[derive(Clone, Debug)]
enum Step {
    Advance(u64),
    Push(Vec<Kind>),
    Filler,
    Flush,
    Tail(JoinPoint),
    Poll(usize, usize),
    Drop(usize),
    /// Another ring uses up the budget.
    Pressure(usize),
    End(EndReason),
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Tables,
    Key,
    Video,
    Audio,
    /// A service table, which no table of the programme announces.
    Service,
}

fn any_step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        1 => Just(Kind::Tables), 2 => Just(Kind::Key), 20 => Just(Kind::Video), 5 => Just(Kind::Audio),
        1 => Just(Kind::Service),
    ];
    let join_point = prop_oneof![
        (0..8_u64).prop_map(|it| JoinPoint::Live { behind: Duration::from_secs(it) }),
        (0..60_u64).prop_map(JoinPoint::At),
        Just(JoinPoint::Oldest),
    ];
    prop_oneof![
        5 => (0..1500_u64).prop_map(Step::Advance),
        12 => prop::collection::vec(kind, 1..40).prop_map(Step::Push),
        2 => Just(Step::Filler),
        2 => Just(Step::Flush),
        4 => join_point.prop_map(Step::Tail),
        10 => (0..8_usize, 1..12_usize).prop_map(|(tail, n)| Step::Poll(tail, n)),
        1 => (0..8_usize).prop_map(Step::Drop),
        1 => (1..200_usize).prop_map(Step::Pressure),
    ]
}

fn any_scenario() -> impl Strategy<Value = Vec<Step>> {
    let end = prop_oneof![Just(EndReason::Stopped), Just(EndReason::Kicked), Just(EndReason::Silent)];
    let rest = prop::collection::vec(any_step(), 0..20);
    (prop::collection::vec(any_step(), 1..120), end.prop_map(Step::End), rest).prop_map(
        |(mut all, end, rest)| {
            all.push(end);
            all.extend(rest);
            all
        },
    )
}

const SETTINGS: RingSettings = RingSettings {
    seconds: Duration::from_secs(5),
    bytes: 150 * PACKET,
    gop_bytes: 250 * PACKET,
    slow_client_limit: 3,
};
const BUDGET: usize = 400 * PACKET;

/// The model: all chunks ever written.
#[derive(Default)]
struct Model {
    all: Vec<Chunk>,
    oldest: usize,
    /// First chunk that is kept of a group of pictures that was cut for the budget.
    cut_at: Option<usize>,
    end: Option<EndReason>,
}

struct ModelTail {
    join_point: JoinPoint,
    next: Option<usize>,
    has_begun: bool,
    preamble_due: bool,
    was_overrun: bool,
    overruns: Vec<Instant>,
    overrun_bytes: u64,
    is_too_slow: bool,
    viewer: Viewer,
}

#[derive(Debug, PartialEq)]
enum Expected {
    Nothing,
    Preamble,
    Chunk(Bytes),
    End(EndReason),
}

impl Model {
    fn commit(&mut self, chunks: impl IntoIterator<Item = Chunk>, now: Instant) {
        for chunk in chunks {
            if self.end.is_some() {
                return;
            }
            self.all.push(chunk);
            while self.may_evict(now) {
                self.oldest += 1;
            }
        }
    }

    fn may_evict(&self, now: Instant) -> bool {
        let stored = &self.all[self.oldest..];
        let bytes = self.memory();
        let is_surplus = bytes > SETTINGS.bytes || now - stored[0].head().arrived > SETTINGS.seconds;
        let begins_gop = self.newest_gop() == Some(self.oldest);
        stored.len() > 1 && is_surplus && (!begins_gop || bytes > SETTINGS.gop_bytes)
    }

    /// Returns the first stored chunk of the newest group of pictures, if its beginning is stored or was cut for the
    /// budget.
    fn newest_gop(&self) -> Option<usize> {
        let key = self.all.iter().rposition(|it| it.head().random_access);
        key.max(self.cut_at).filter(|it| *it >= self.oldest)
    }

    /// Returns the memory of the stored chunks: the packets, the chunk itself, the counters of all PIDs before it, and
    /// its tables if they are not those of the chunk before.
    fn memory(&self) -> usize {
        let memory = |index: usize| {
            let head = self.all[index].head();
            let before = index.checked_sub(1).and_then(|it| self.all[it].head().tables.clone());
            let tables = head.tables.as_ref().filter(|it| before.as_ref().is_none_or(|before| before != *it));
            self.all[index].len()
                + size_of::<StoredChunk>()
                + 4 * head.counters.len()
                + tables.map_or(0, |it| it.memory())
        };
        (self.oldest..self.all.len()).map(memory).sum()
    }

    /// Returns the numbers of stored chunks after the newest filler.
    fn joinable(&self) -> std::ops::Range<usize> {
        let filler = self.all.iter().rposition(|it| it.head().filler).map_or(0, |it| it + 1);
        self.oldest.max(filler)..self.all.len()
    }

    fn first_chunk(&self, join_point: JoinPoint, now: Instant) -> Option<usize> {
        let keys: Vec<usize> = self.joinable().filter(|it| self.all[*it].head().random_access).collect();
        match join_point {
            JoinPoint::Live { behind } => {
                let old = keys.iter().rev().find(|it| now - self.all[**it].head().arrived >= behind);
                old.or(keys.first()).copied().or(self.joinable().next())
            }
            JoinPoint::Oldest => keys.first().copied().or(self.joinable().next()),
            JoinPoint::At(number) => self.joinable().find(|it| *it as u64 >= number),
        }
    }

    fn real_bytes(&self, range: std::ops::Range<usize>) -> u64 {
        self.all[range].iter().filter(|it| !it.head().filler).map(|it| it.len() as u64).sum()
    }

    /// Returns whether the stream is complete for this viewer, which it is not before the tables are known.
    fn knows_tables(&self, tail: &ModelTail) -> bool {
        self.all[0].head().tables.is_some() || tail.viewer.tables.tables().is_some()
    }

    fn poll(&self, tail: &mut ModelTail, now: Instant) -> Expected {
        if tail.is_too_slow {
            return Expected::End(EndReason::TooSlow);
        }
        if self.end == Some(EndReason::Kicked) {
            return Expected::End(EndReason::Kicked);
        }
        let nothing = self.end.clone().map_or(Expected::Nothing, Expected::End);
        if tail.next.is_some_and(|it| it < self.oldest) && tail.preamble_due && !tail.was_overrun {
            tail.next = None;
        }
        if tail.next.is_none() {
            tail.next = self.first_chunk(tail.join_point, now);
        }
        let Some(mut next) = tail.next else { return nothing };
        if next < self.oldest && self.real_bytes(next..self.oldest) == 0 {
            next = self.oldest;
        }
        if next < self.oldest {
            let key = self.joinable().rev().find(|it| self.all[*it].head().random_access);
            let to = key.or(self.joinable().next()).unwrap_or(self.all.len() - 1);
            tail.overrun_bytes += self.real_bytes(next..to);
            tail.overruns.push(now);
            (next, tail.preamble_due, tail.was_overrun) = (to, true, true);
            tail.next = Some(next);
            let recent = tail.overruns.iter().filter(|it| now - **it <= Duration::from_secs(60)).count();
            if recent as u32 > SETTINGS.slow_client_limit {
                tail.is_too_slow = true;
                return Expected::End(EndReason::TooSlow);
            }
        }
        while !tail.has_begun && self.all.get(next).is_some_and(|it| it.head().filler) {
            next += 1;
        }
        tail.next = Some(next);
        let Some(chunk) = self.all.get(next) else { return nothing };
        // Before the tables are known, a preamble can only declare that bytes of the known PIDs are missing.
        let head = chunk.head();
        let has_preamble = head.tables.is_some() || tail.was_overrun && !head.counters.is_empty();
        if !head.filler && std::mem::take(&mut tail.preamble_due) && has_preamble {
            return Expected::Preamble;
        }
        tail.has_begun |= !chunk.head().filler;
        tail.next = Some(next + 1);
        Expected::Chunk(chunk.bytes())
    }
}

async fn run(scenario: Vec<Step>) {
    let budget = Budget::new(BUDGET);
    let (mut writer, ring) = ring(SETTINGS, &budget);
    let roomy = RingSettings { bytes: usize::MAX, ..SETTINGS };
    let mut other = TestRing::within(roomy, &budget);
    let _crowd: Vec<Tail> = (0..20).map(|_| other.live(0)).collect();
    let mut builder = Builder::video();
    let mut chunker = Chunker::new();
    let mut model = Model::default();
    let mut tails: Vec<(Tail, ModelTail)> = Vec::new();
    for step in scenario {
        let now = Instant::now();
        match step {
            Step::Advance(millis) => advance(Duration::from_millis(millis)).await,
            Step::Push(kinds) => {
                let packets = kinds.iter().flat_map(|kind| match kind {
                    Kind::Tables => builder.tables(),
                    Kind::Key => vec![builder.key(0)],
                    Kind::Video => vec![builder.data(VIDEO_PID)],
                    Kind::Audio => vec![builder.data(AUDIO_PID)],
                    Kind::Service => vec![builder.data(0x11)],
                });
                let packets: Vec<_> = packets.collect();
                let mut closed: Vec<Chunk> =
                    packets.iter().filter_map(|it| chunker.push(Packet::new(it), now)).collect();
                closed.extend(chunker.end_batch(now));
                model.commit(closed, now);
                writer.push_packets(&packets.concat(), now);
            }
            Step::Filler => {
                let (rest, filler) = (chunker.flush(), chunker.filler(now));
                model.commit(rest.into_iter().chain([filler]), now);
                writer.filler(now);
            }
            Step::Flush => {
                model.commit(chunker.flush(), now);
                writer.flush(now);
            }
            Step::Tail(join_point) => {
                let expected = ModelTail {
                    join_point,
                    next: None,
                    has_begun: false,
                    preamble_due: true,
                    was_overrun: false,
                    overruns: Vec::new(),
                    overrun_bytes: 0,
                    is_too_slow: false,
                    viewer: Viewer::default(),
                };
                tails.push((ring.tail(join_point, None), expected));
            }
            Step::Poll(index, times) if !tails.is_empty() => {
                let index = index % tails.len();
                let (tail, expected) = &mut tails[index];
                for _ in 0..times {
                    let expected_read = model.poll(expected, now);
                    match (poll(tail), expected_read) {
                        (None, Expected::Nothing) => break,
                        (Some(Ok(bytes)), Expected::Preamble) => {
                            let was_overrun = Packet::new(bytes.first_chunk().unwrap()).discontinuity();
                            assert_eq!(was_overrun, expected.was_overrun);
                            if model.knows_tables(expected) {
                                expected.viewer.receives(&bytes);
                            }
                        }
                        (Some(Ok(bytes)), Expected::Chunk(chunk)) => {
                            assert_eq!(bytes, chunk);
                            if model.knows_tables(expected) {
                                expected.viewer.receives(&bytes);
                            }
                        }
                        (Some(Err(end)), Expected::End(expected)) => assert_eq!(end, expected),
                        (seen, expected_read) => panic!("saw {seen:?}, expected {expected_read:?}"),
                    }
                }
                assert_eq!(tail.meter().overrun_bytes(), expected.overrun_bytes);
                assert_eq!(tail.meter().overruns(), expected.overruns.len() as u64);
            }
            Step::Drop(index) if !tails.is_empty() => drop(tails.swap_remove(index % tails.len())),
            Step::Poll(..) | Step::Drop(_) => {}
            Step::Pressure(n_packets) => {
                other.chunk(false, n_packets);
            }
            Step::End(end) => {
                ring.end(end.clone());
                model.end.get_or_insert(end);
            }
        }
        let usage = ring.usage();
        assert_eq!(usage.head_sequence, model.all.len() as u64);
        // Other rings may evict more than the limits of this ring, but never the last chunk, and of the newest group
        // only what exceeds an equal share of the budget.
        let oldest = usage.tail_sequence as usize;
        assert!(oldest >= model.oldest, "{oldest} is still stored");
        if oldest > model.oldest {
            assert!(budget.used() + 4 * 40 * PACKET > BUDGET / 2, "no other ring used the budget");
            assert!(oldest < model.all.len());
            if model.newest_gop().is_some_and(|it| it < oldest) {
                let last_cut = model.all[oldest - 1].len() + 1_000;
                assert!(usage.bytes + last_cut > BUDGET / 2, "{usage:?}");
                model.cut_at = Some(oldest);
            }
            model.oldest = oldest;
        }
        let kept = model.memory();
        assert_eq!(usage.bytes, kept);
        let others = other.ring.usage();
        assert_eq!(budget.used(), kept + usage.file_bytes + others.bytes + others.file_bytes);
        assert_eq!(ring.n_tails(), tails.len());
    }
    drop((writer, ring, tails, other, _crowd));
    assert_eq!(budget.used(), 0);
}

/// However the socket splits the pieces, a viewer gets whole packets with declared discontinuities, and every byte
/// is either sent or counted as lost.
async fn send_in_parts(steps: Vec<(usize, usize, bool)>) {
    let patient = RingSettings { slow_client_limit: u32::MAX, ..SETTINGS };
    let mut test = TestRing::within(patient, &Budget::new(BUDGET));
    test.tables();
    test.chunk(true, 3);
    let mut tail = test.live(0);
    // With this number of tails, the newest chunks are also in memory files.
    let _others: Vec<Tail> = (1..TAILS_MIN).map(|_| test.live(0)).collect();
    let mut received = send(&mut tail, usize::MAX).unwrap();
    for (n_packets, n_bytes, is_filler) in steps {
        if is_filler {
            test.filler();
        }
        test.chunk(n_packets % 5 == 0, n_packets);
        advance(Duration::from_millis(50)).await;
        received.extend(send(&mut tail, n_bytes).into_iter().flatten());
    }
    while let Some(bytes) = send(&mut tail, usize::MAX) {
        received.extend(bytes);
    }
    let mut viewer = Viewer::default();
    viewer.receives(&received);
    let meter = tail.meter();
    assert_eq!(meter.bytes() + meter.filler_bytes(), received.len() as u64);
    // The preamble has two packets at the start, and after an overrun six, which declare four discontinuities. A viewer
    // may be overrun again before it takes anything of a preamble.
    let preambles = (2 + 6 * viewer.n_breaks / 4) as u64 * PACKET as u64;
    let tables = 2 * PACKET as u64;
    assert_eq!(meter.bytes() - preambles + meter.overrun_bytes(), test.ring.meter().bytes_in() - tables);
}

proptest! {
    // Scenarios are long, so fewer cases run unless PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 3, ..ProptestConfig::default() })]
    #[test]
    fn the_ring_behaves_like_its_model(scenario in any_scenario()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(run(scenario));
    }
    #[test]
    fn a_stream_sent_in_parts_of_any_length_is_whole(
        steps in prop::collection::vec((1..60_usize, 0..20_000_usize, prop::bool::weighted(0.1)), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(send_in_parts(steps));
    }
}
