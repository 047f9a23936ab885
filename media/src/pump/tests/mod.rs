//! Tests of the pump with an in-memory provider and simulated time.

mod beside;
mod lacks;
mod node;
mod pacing;
mod radio;
mod segments;
mod soak;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, advance, sleep, timeout};

use super::*;
use crate::closer::Closer;
use crate::error::Cause;
use crate::launcher::Launcher;
use crate::ring::{Budget, EndReason, JoinPoint, Ring, RingSettings, Tail, ring};
use crate::source::{OpenRequest, Source, SourceSettings, Upstream, open};
use crate::splice::PictureEvent;
use crate::testing::{Behaviour, Break, MemoryDial, MemoryProvider, PermitCount, Play, TsSource, labels_in};
use crate::ts::packet::{NULL_PID, PACKET, Packet, packets};

/// A pump, its ring, and a provider for it.
pub(super) struct Setup {
    pub(super) provider: MemoryProvider,
    pub(super) upstream: Upstream,
    pub(super) permits: PermitCount,
    pub(super) pump: PumpHandle,
    pub(super) task: JoinHandle<()>,
    /// How often the task of the pump was polled.
    n_turns: Arc<AtomicUsize>,
    pub(super) ring: Ring,
    /// Each message with the number of permits that were not closing when it was sent.
    pub(super) messages: mpsc::UnboundedReceiver<(PumpMessage, usize)>,
    /// The events of pictures with their attempts, apart from the other messages.
    pub(super) pictures: mpsc::UnboundedReceiver<(u64, PictureEvent)>,
}

impl Setup {
    pub(super) fn new() -> Self {
        Self::with(PumpSettings::default())
    }

    fn with(settings: PumpSettings) -> Self {
        Self::observed(settings, |_, _| {})
    }

    /// Calls `observe` with each message at the time when it is sent.
    fn observed(settings: PumpSettings, observe: impl Fn(&PumpMessage, &Ring) + Send + 'static) -> Self {
        let dial = MemoryDial::new();
        let provider = dial.provider("a:80");
        let closer = Closer::new(Handle::current());
        let upstream = Upstream {
            dial: Arc::new(dial),
            closer,
            launcher: Launcher::default(),
            settings: SourceSettings::default(),
        };
        let (writer, ring) = ring(RingSettings::default(), &Budget::new(64 << 20));
        let permits = PermitCount::default();
        let (send, messages) = mpsc::unbounded_channel();
        let (send_picture, pictures) = mpsc::unbounded_channel();
        let (counted, observed) = (permits.clone(), ring.clone());
        let (pump, running) = pump(writer, settings, None, move |it| {
            observe(&it, &observed);
            let _ = match it {
                PumpMessage::Picture { attempt, event } => send_picture.send((attempt, event)).is_ok(),
                it => send.send((it, counted.n_out() - counted.n_closing())).is_ok(),
            };
        });
        let n_turns = Arc::new(AtomicUsize::new(0));
        let (counted, mut running) = (n_turns.clone(), Box::pin(running));
        let task = tokio::spawn(std::future::poll_fn(move |cx| {
            counted.fetch_add(1, Ordering::Relaxed);
            running.as_mut().poll(cx)
        }));
        Self { provider, upstream, permits, pump, task, n_turns, ring, messages, pictures }
    }

    pub(super) async fn open(&self, path: &str) -> Source {
        let request = OpenRequest { url: format!("http://a{path}"), ..OpenRequest::default() };
        open(request, self.permits.permit(|| ()), self.upstream.clone()).await.unwrap()
    }

    /// Follows the source at `path`.
    async fn follow(&self, attempt: u64, path: &str) {
        self.pump.follow(attempt, attempt, self.open(path).await);
    }

    /// Opens the source at `path` and reads it beside the followed one.
    async fn prepare(&self, attempt: u64, path: &str) {
        self.pump.prepare(attempt, attempt, None, self.open(path).await);
    }

    /// Returns the next message.
    async fn message(&mut self) -> PumpMessage {
        self.messages.recv().await.unwrap().0
    }

    pub(super) async fn plays(&mut self, attempt: u64) {
        assert_eq!(self.messages.recv().await.unwrap().0, PumpMessage::Playing(attempt));
    }

    pub(super) async fn loses(&mut self, attempt: u64) -> Cause {
        let (mut message, mut n_open) = self.messages.recv().await.unwrap();
        if matches!(message, PumpMessage::Silent { .. }) {
            (message, n_open) = self.messages.recv().await.unwrap();
        }
        let PumpMessage::Lost { attempt: of, cause } = message else { panic!("{message:?}") };
        assert_eq!(of, attempt);
        assert_eq!(n_open, 0, "the socket is closing before the loss is reported");
        cause.cause().clone()
    }

    pub(super) fn tail(&self) -> Tail {
        self.ring.tail(JoinPoint::Oldest, None)
    }
}

/// Returns everything that a tail yields in this time.
pub(super) async fn all_for(tail: &mut Tail, time: Duration) -> BytesMut {
    let end = Instant::now() + time;
    let mut bytes = BytesMut::new();
    while let Ok(Ok(chunk)) = tokio::time::timeout_at(end, tail.chunk()).await {
        assert!(chunk.len().is_multiple_of(PACKET), "whole packets only");
        bytes.extend_from_slice(&chunk);
    }
    bytes
}

fn n_nulls(bytes: &[u8]) -> usize {
    packets(bytes).filter(|it| Packet::new(it).pid() == NULL_PID).count()
}

/// Returns the number of filler chunks, which have seven null packets each.
fn n_fillers(bytes: &[u8]) -> usize {
    let n_nulls = n_nulls(bytes);
    assert!(n_nulls.is_multiple_of(7));
    n_nulls / 7
}

#[tokio::test(start_paused = true)]
async fn the_first_source_reaches_the_ring_at_once_and_unchanged() {
    let mut setup = Setup::new();
    setup.provider.set("/x", Behaviour::play("first"));
    let began = Instant::now();
    setup.follow(1, "/x").await;
    setup.plays(1).await;
    assert!(began.elapsed() < Duration::from_millis(50), "{:?}", began.elapsed());
    let mut tail = setup.tail();
    let bytes = all_for(&mut tail, Duration::from_secs(3)).await;
    assert_eq!(labels_in(&bytes), ["first"]);
    let sent = TsSource::new("first").bytes(Duration::from_secs(60), Duration::from_secs(3));
    assert!(bytes.len() > 600_000, "{}", bytes.len());
    // A tail starts with its own preamble, so only the rest is compared.
    let n = bytes.len() - 10 * PACKET;
    let at = memchr::memmem::find(&sent, &bytes[10 * PACKET..][..PACKET]).unwrap();
    assert_eq!(bytes[10 * PACKET..], sent[at..at + n]);
    assert_eq!(setup.pump.tables().unwrap().video().unwrap().codec(), "H.264");
}

/// A viewer that reads the first packets and leaves must not be gone before the channel knows that it plays.
#[tokio::test(start_paused = true)]
async fn a_source_is_reported_before_its_first_packets_are_readable() {
    let (send, mut readable) = mpsc::unbounded_channel();
    let mut setup = Setup::observed(PumpSettings::default(), move |message, ring| {
        if matches!(message, PumpMessage::Playing(_)) {
            send.send(ring.has_content()).unwrap();
        }
    });
    for (attempt, path) in [(1, "/1"), (2, "/2")] {
        setup.provider.set(path, Behaviour::play("x"));
        setup.follow(attempt, path).await;
        setup.plays(attempt).await;
        assert_eq!(readable.recv().await, Some(false));
        setup.tail().ready().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_replaces_another_without_a_torn_packet() {
    let mut setup = Setup::new();
    setup.provider.set("/1", Behaviour::play("one"));
    let two =
        TsSource { start: 5_000_000_000, pmt_pid: 0x50, video: Some((0x51, 0x1B)), ..TsSource::new("two") };
    setup.provider.set("/2", Behaviour::Play(Play::new(two)));
    setup.follow(1, "/1").await;
    setup.plays(1).await;
    let mut tail = setup.tail();
    let mut bytes = all_for(&mut tail, Duration::from_secs(2)).await;
    // While the old one is still playing.
    setup.follow(2, "/2").await;
    setup.plays(2).await;
    bytes.extend(all_for(&mut tail, Duration::from_secs(3)).await);
    assert_eq!(labels_in(&bytes), ["one", "two"]);
    setup.upstream.closer.idle().await;
    assert_eq!((setup.permits.n_out(), setup.provider.n_held()), (1, 1), "the old one is closed");
    assert!(setup.messages.try_recv().is_err(), "a replaced source is not lost");
}

// Holds T-fo.2 and T-fo.3 (media's part: the loss of a playing source, in its time).
#[tokio::test(start_paused = true)]
async fn every_loss_is_reported_with_its_cause_in_time() {
    let cases = [
        (Break::End, Cause::Ended, 0.0),
        (Break::Reset, Cause::Reset("connection reset".into()), 0.0),
        (Break::Silence, Cause::Stall, 5.0),
        (Break::Nulls, Cause::Stall, 5.0),
        (Break::UnknownPids, Cause::Stall, 5.0),
        (Break::Scrambled, Cause::Scrambled, 5.0),
        (Break::ScrambledVideo, Cause::Scrambled, 5.0),
        (Break::Garbage, Cause::SyncLost, 1.0),
    ];
    for (how, cause, seconds) in cases {
        let mut setup = Setup::new();
        setup.provider.set("/x", Behaviour::play("x"));
        setup.follow(7, "/x").await;
        setup.plays(7).await;
        sleep(Duration::from_secs(3)).await;
        let began = Instant::now();
        setup.provider.break_now("/x", how);
        assert_eq!(setup.loses(7).await, cause, "{how:?}");
        let elapsed = began.elapsed().as_secs_f64();
        assert!((seconds - 0.1..seconds + 0.1).contains(&elapsed), "{how:?} took {elapsed}");
        setup.upstream.closer.idle().await;
        assert_eq!((setup.permits.n_out(), setup.provider.n_held()), (0, 0), "{how:?}");
        sleep(Duration::from_secs(30)).await;
        assert!(setup.messages.try_recv().is_err(), "{how:?}: reported once");
        assert!(!setup.task.is_finished());
        assert_eq!(setup.pump.clock(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_live_source_is_read_less_often_than_it_sends() {
    let mut setup = Setup::new();
    // A piece every 2 ms.
    let ts = TsSource { frame_rate: 500, ..TsSource::new("x") };
    setup.provider.set("/x", Behaviour::Play(Play::new(ts)));
    setup.follow(1, "/x").await;
    setup.plays(1).await;
    let before = setup.n_turns.load(Ordering::Relaxed);
    sleep(Duration::from_secs(10)).await;
    let n_turns = setup.n_turns.load(Ordering::Relaxed) - before;
    assert!(n_turns < 5_000 / 4, "{n_turns} turns for 5,000 pieces");
    assert!(setup.pump.clock().unwrap().behind < Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_sends_bursts_of_three_to_ten_seconds_neither_stalls_nor_is_slow() {
    for seconds in [3, 5, 6, 8, 10] {
        let mut setup = Setup::new();
        let play = Play { clump: Duration::from_secs(seconds), ..Play::new(TsSource::new("x")) };
        setup.provider.set("/x", Behaviour::Play(play));
        setup.follow(1, "/x").await;
        setup.plays(1).await;
        for _ in 0..120 {
            sleep(Duration::from_millis(500)).await;
            let clock = setup.pump.clock().unwrap();
            assert!(clock.behind < Duration::from_secs(1), "bursts of {seconds} s: {clock:?}");
        }
        assert!(setup.messages.try_recv().is_err(), "bursts of {seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_after_a_burst_is_a_stall_soon_after_the_next_burst_was_due() {
    let mut setup = Setup::new();
    let play = Play { clump: Duration::from_secs(6), ..Play::new(TsSource::new("x")) };
    setup.provider.set("/x", Behaviour::Play(play));
    setup.follow(1, "/x").await;
    setup.plays(1).await;
    let mut tail = setup.tail();
    let mut last = Instant::now();
    while last.elapsed() < Duration::from_secs(4) {
        match timeout(Duration::from_secs(4), tail.chunk()).await {
            Ok(_) => last = Instant::now(),
            Err(_) => break,
        }
    }
    setup.provider.break_now("/x", Break::Silence);
    assert_eq!(setup.loses(1).await, Cause::Stall);
    let silence = last.elapsed().as_secs_f64();
    assert!((7.5..8.5).contains(&silence), "{silence} s");
}

#[tokio::test(start_paused = true)]
async fn a_gap_is_filled_with_valid_null_packets_for_a_limited_time() {
    let mut setup = Setup::new();
    let play = Play { after: Some((1000, Break::End)), ..Play::new(TsSource::new("x")) };
    setup.provider.set("/x", Behaviour::Play(play));
    sleep(Duration::from_secs(5)).await;
    setup.follow(1, "/x").await;
    setup.plays(1).await;
    assert_eq!(setup.ring.meter().filler_bytes(), 0, "no filler before the first packet");
    let mut tail = setup.tail();
    let real = all_for(&mut tail, Duration::from_millis(500)).await;
    assert_eq!(n_nulls(&real), 0);
    assert_eq!(setup.loses(1).await, Cause::Ended);
    let lost_at = Instant::now();
    all_for(&mut tail, Duration::from_millis(400)).await;
    let mut times = Vec::new();
    while let Ok(Ok(chunk)) = timeout(Duration::from_secs(5), tail.chunk()).await {
        times.push(lost_at.elapsed().as_millis());
        assert!(n_nulls(&chunk) > 0 && chunk.len() <= 20 * PACKET, "one small chunk");
        for packet in packets(&chunk).filter(|it| Packet::new(it).pid() == NULL_PID) {
            let packet = Packet::new(packet);
            assert!(packet.is_valid() && packet.has_payload() && !packet.has_adaptation());
        }
    }
    assert!((119..=120).contains(&times.len()), "{}", times.len());
    assert!(times.iter().enumerate().all(|(n, it)| it.abs_diff((n as u128 + 1) * 500) <= 10), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_gap_ends_with_the_next_source_and_starts_again_with_the_next_loss() {
    let mut setup = Setup::new();
    for (attempt, label) in [(1, "one"), (2, "two"), (3, "three")] {
        setup.provider.set("/x", Behaviour::play(label));
        setup.follow(attempt, "/x").await;
        setup.plays(attempt).await;
        let mut tail = setup.ring.tail(JoinPoint::Live { behind: Duration::ZERO }, None);
        let bytes = all_for(&mut tail, Duration::from_secs(3)).await;
        assert_eq!(labels_in(&bytes).last().unwrap(), label);
        setup.provider.break_now("/x", Break::End);
        assert_eq!(setup.loses(attempt).await, Cause::Ended);
        // Longer in total than a gap is filled.
        let filler = all_for(&mut tail, Duration::from_secs(40)).await;
        assert!((79..=81).contains(&n_fillers(&filler)), "{label}: {}", n_fillers(&filler));
    }
}

#[tokio::test(start_paused = true)]
async fn filler_continues_until_the_next_source_has_output() {
    let mut setup = Setup::new();
    setup.provider.set("/good", Behaviour::play("good"));
    setup.follow(1, "/good").await;
    setup.plays(1).await;
    let mut tail = setup.tail();
    all_for(&mut tail, Duration::from_secs(2)).await;
    setup.provider.break_now("/good", Break::End);
    setup.loses(1).await;
    // Without sound and without a start point, it plays only when the wait for one is over.
    let ts = TsSource { gop: u64::MAX, is_marked: false, audio: None, ..TsSource::new("late") };
    setup.provider.set("/late", Behaviour::Play(Play::new(ts)));
    all_for(&mut tail, Duration::from_millis(100)).await;
    setup.follow(2, "/late").await;
    let bytes = all_for(&mut tail, Duration::from_millis(11_800)).await;
    assert_eq!(labels_in(&bytes), Vec::<String>::new(), "the next source has no output yet");
    assert_eq!(n_fillers(&bytes), 23);
    setup.plays(2).await;
    let bytes = all_for(&mut tail, Duration::from_secs(3)).await;
    assert_eq!(labels_in(&bytes), ["late"]);
    assert!(n_fillers(&bytes) <= 1, "only the one before its first output");
}

#[tokio::test(start_paused = true)]
async fn a_viewer_who_joins_before_the_first_filler_of_a_gap_begins_with_the_next_source() {
    let mut setup = Setup::new();
    setup.provider.set("/1", Behaviour::play("one"));
    setup.provider.set("/2", Behaviour::play("two"));
    setup.follow(1, "/1").await;
    setup.plays(1).await;
    sleep(Duration::from_secs(2)).await;
    setup.provider.break_now("/1", Break::End);
    setup.loses(1).await;
    for join_point in [JoinPoint::Live { behind: Duration::from_secs(1) }, JoinPoint::Oldest] {
        let mut tail = setup.ring.tail(join_point, None);
        let ready = timeout(Duration::from_millis(100), tail.ready()).await;
        assert!(ready.is_err(), "{join_point:?}: waits");
    }
    let mut tail = setup.ring.tail(JoinPoint::Live { behind: Duration::from_secs(1) }, None);
    setup.follow(2, "/2").await;
    setup.plays(2).await;
    assert_eq!(labels_in(&all_for(&mut tail, Duration::from_secs(2)).await), ["two"]);
}

#[tokio::test(start_paused = true)]
async fn sources_that_never_play_do_not_extend_a_gap() {
    let mut setup = Setup::new();
    setup.provider.set("/good", Behaviour::play("good"));
    // Neither sound nor a start point, and an end before the wait for one is over.
    let ts = TsSource { gop: u64::MAX, is_marked: false, audio: None, ..TsSource::new("bad") };
    setup.provider.set("/bad", Behaviour::Play(Play { after: Some((400, Break::End)), ..Play::new(ts) }));
    setup.follow(0, "/good").await;
    setup.plays(0).await;
    let mut tail = setup.tail();
    all_for(&mut tail, Duration::from_secs(2)).await;
    setup.provider.break_now("/good", Break::End);
    setup.loses(0).await;
    let mut bytes = BytesMut::new();
    for attempt in 1..=10 {
        bytes.extend(all_for(&mut tail, Duration::from_secs(10)).await);
        setup.follow(attempt, "/bad").await;
        setup.loses(attempt).await;
    }
    assert!((110..=120).contains(&n_fillers(&bytes)), "{}", n_fillers(&bytes));
    assert_eq!(n_nulls(&all_for(&mut tail, Duration::from_secs(60)).await), 0);
}

#[tokio::test(start_paused = true)]
async fn no_filler_is_written_before_the_first_source_has_played() {
    let mut setup = Setup::new();
    // No start point, and an end before the wait for one is over.
    let ts = TsSource { gop: u64::MAX, is_marked: false, ..TsSource::new("x") };
    setup.provider.set("/x", Behaviour::Play(Play { after: Some((100, Break::End)), ..Play::new(ts) }));
    setup.follow(1, "/x").await;
    assert_eq!(setup.loses(1).await, Cause::Ended);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(setup.ring.usage().chunks, 0);
    assert!(setup.messages.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_source_that_ends_before_its_start_point_is_lost_without_playing() {
    let mut setup = Setup::new();
    setup.provider.set("/1", Behaviour::play("one"));
    // The whole burst of past data arrives at once, and then the end.
    let burst = Play {
        burst: Duration::from_secs(4),
        after: Some((3000, Break::End)),
        ..Play::new(TsSource::new("two"))
    };
    setup.provider.set("/2", Behaviour::Play(burst));
    setup.follow(1, "/1").await;
    setup.plays(1).await;
    let mut tail = setup.tail();
    all_for(&mut tail, Duration::from_secs(2)).await;
    setup.provider.break_now("/1", Break::Reset);
    setup.loses(1).await;
    setup.follow(2, "/2").await;
    assert_eq!(setup.loses(2).await, Cause::Ended);
    let bytes = all_for(&mut tail, Duration::from_secs(5)).await;
    assert!(!labels_in(&bytes).contains(&"two".to_owned()), "held packets are not sent");
    assert!(n_fillers(&bytes) >= 8, "the gap continues");
    assert!(setup.messages.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_released_pump_can_follow_another_source() {
    let mut setup = Setup::new();
    setup.provider.set("/x", Behaviour::play("x"));
    setup.follow(1, "/x").await;
    setup.plays(1).await;
    setup.pump.release();
    sleep(Duration::from_secs(1)).await;
    assert_eq!((setup.permits.n_out(), setup.provider.n_held()), (0, 0));
    assert!(setup.messages.try_recv().is_err(), "a released source is not lost");
    setup.follow(2, "/x").await;
    setup.plays(2).await;
}

#[tokio::test(start_paused = true)]
async fn only_the_last_of_several_sources_is_followed_and_the_others_are_closed() {
    let mut setup = Setup::new();
    setup.provider.set("/x", Behaviour::play("x"));
    let sources = [setup.open("/x").await, setup.open("/x").await, setup.open("/x").await];
    for (attempt, source) in (1..).zip(sources) {
        setup.pump.follow(attempt, 1, source);
    }
    setup.plays(3).await;
    setup.upstream.closer.idle().await;
    assert_eq!((setup.permits.n_out(), setup.provider.n_held()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_pump_ends_with_its_last_handle_and_closes_source_and_ring() {
    let mut setup = Setup::new();
    setup.provider.set("/x", Behaviour::play("x"));
    setup.follow(1, "/x").await;
    setup.plays(1).await;
    let mut tail = setup.tail();
    let other = setup.pump.clone();
    drop(setup.pump);
    sleep(Duration::from_secs(1)).await;
    assert!(!setup.task.is_finished());
    drop(other);
    setup.task.await.unwrap();
    setup.upstream.closer.idle().await;
    assert_eq!((setup.permits.n_out(), setup.provider.n_held()), (0, 0));
    let end = loop {
        if let Err(end) = tail.chunk().await {
            break end;
        }
    };
    assert_eq!(end, EndReason::Closed);
}

// Holds T-slot.3 (media's part: the hand-over to the pump).
#[tokio::test(start_paused = true)]
async fn a_dead_pump_keeps_no_source() {
    // The pump dies while it follows a source, and gets another one afterwards.
    let mut setup = Setup::new();
    setup.provider.set("/x", Behaviour::play("x"));
    setup.follow(1, "/x").await;
    setup.plays(1).await;
    let (waiting, late) = (setup.open("/x").await, setup.open("/x").await);
    setup.pump.follow(2, 1, waiting);
    setup.task.abort();
    assert!(setup.task.await.unwrap_err().is_cancelled());
    setup.pump.follow(3, 1, late);
    assert_eq!(setup.permits.n_out(), setup.permits.n_closing());
    setup.upstream.closer.idle().await;
    assert_eq!((setup.permits.n_out(), setup.provider.n_held()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_clock_reveals_a_slow_source() {
    let mut setup = Setup::new();
    for (path, speed) in [("/good", 1.0), ("/slow", 0.7)] {
        setup.provider.set(path, Behaviour::Play(Play { speed, ..Play::new(TsSource::new(path)) }));
    }
    setup.follow(1, "/good").await;
    setup.plays(1).await;
    sleep(Duration::from_secs(30)).await;
    let good = setup.pump.clock().unwrap();
    assert_eq!((good.attempt, good.measured_for), (1, Duration::from_secs(15)));
    assert!(good.behind < Duration::from_millis(100), "{good:?}");
    setup.follow(2, "/slow").await;
    setup.plays(2).await;
    assert!(setup.pump.clock().unwrap().measured_for < Duration::from_secs(2), "the measurement restarts");
    sleep(Duration::from_secs(20)).await;
    let slow = setup.pump.clock().unwrap();
    assert_eq!((slow.attempt, slow.measured_for), (2, Duration::from_secs(15)));
    assert!(slow.behind > Duration::from_secs(2), "{slow:?}");
}

#[tokio::test(start_paused = true)]
async fn a_burst_does_not_starve_other_tasks() {
    let setup = Setup::new();
    let ts = TsSource { bitrate: 6_000_000, ..TsSource::new("x") };
    let burst = Play { burst: Duration::from_secs(20), ..Play::new(ts) };
    setup.provider.set("/x", Behaviour::Play(burst));
    let n_turns = Arc::new(AtomicUsize::new(0));
    let counted = n_turns.clone();
    // Counts how often the task is polled.
    let other = tokio::spawn(std::future::poll_fn(move |cx| {
        counted.fetch_add(1, Ordering::Relaxed);
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    }));
    let source = setup.open("/x").await;
    let turns = n_turns.load(Ordering::Relaxed);
    setup.pump.follow(1, 1, source);
    while setup.ring.meter().bytes_in() < 12_000_000 {
        // Because of the other task, time does not pass by itself.
        advance(Duration::from_millis(1)).await;
    }
    let turns = n_turns.load(Ordering::Relaxed) - turns;
    assert!(turns >= 12_000_000 / (2 * TURN_BYTES), "{turns}");
    other.abort();
}

// Holds T-fo.10 for the pump.
#[tokio::test(start_paused = true)]
async fn sound_plays_before_the_picture_after_a_change() {
    let (send, mut order) = mpsc::unbounded_channel();
    let mut setup = Setup::observed(PumpSettings::default(), move |message, _| {
        if matches!(message, PumpMessage::Playing(2) | PumpMessage::Picture { attempt: 2, .. }) {
            send.send(message.clone()).unwrap();
        }
    });
    setup.provider.set("/1", Behaviour::play("one"));
    setup.follow(1, "/1").await;
    setup.plays(1).await;
    let mut tail = setup.tail();
    all_for(&mut tail, Duration::from_secs(2)).await;
    setup.provider.break_now("/1", Break::End);
    setup.loses(1).await;
    all_for(&mut tail, Duration::from_millis(100)).await;
    // The provider starts after a key frame, and the next one comes 7.2 s later.
    let ts = TsSource { gop: 248, start: 5_000_000_000, pmt_pid: 0x50, ..TsSource::new("two") };
    setup.provider.set("/2", Behaviour::Play(Play::new(ts)));
    let began = Instant::now();
    setup.follow(2, "/2").await;
    setup.plays(2).await;
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    let mut late = setup.ring.tail(JoinPoint::Live { behind: Duration::from_secs(2) }, None);
    let bytes = all_for(&mut tail, Duration::from_secs(6)).await;
    let has_payload = |bytes: &[u8], pid: u16| {
        packets(bytes).map(Packet::new).any(|it| it.pid() == pid && it.has_payload())
    };
    assert!(has_payload(&bytes, 0x101) && !has_payload(&bytes, 0x100), "only sound");
    assert!(
        timeout(Duration::from_millis(1), late.ready()).await.is_err(),
        "a new viewer waits for the picture"
    );
    late.ready().await.unwrap();
    let first = all_for(&mut late, Duration::from_millis(200)).await;
    let begins = packets(&first).map(Packet::new).find(|it| it.pid() == 0x100 && it.has_payload()).unwrap();
    assert!(begins.random_access(), "and begins with it");
    let mut messages = Vec::new();
    while let Ok(message) = order.try_recv() {
        messages.push(message);
    }
    let [
        PumpMessage::Playing(2),
        PumpMessage::Picture { event: PictureEvent::Awaited { at_most }, .. },
        PumpMessage::Picture { event: PictureEvent::Began { waited }, .. },
    ] = messages[..]
    else {
        panic!("{messages:?}")
    };
    assert!(at_most <= Duration::from_secs(12) && at_most > Duration::from_secs(11), "{at_most:?}");
    assert!(waited > Duration::from_secs(7) && waited < Duration::from_secs(8), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_picture_follows_from_what_its_stream_has_shown() {
    let without_keys = TsSource { gop: u64::MAX, is_marked: false, ..TsSource::new("x") };
    let keys_each_2_s = TsSource { gop: 50, ..TsSource::new("x") };
    for (first, key, seconds) in [
        (&keys_each_2_s, 1, Some(3.0)),
        (&keys_each_2_s, 2, Some(12.0)),
        (&without_keys, 1, None),
        (&without_keys, 2, Some(12.0)),
    ] {
        let mut setup = Setup::new();
        setup.provider.set("/1", Behaviour::Play(Play::new(first.clone())));
        setup.provider.set("/2", Behaviour::Play(Play::new(without_keys.clone())));
        setup.pump.follow(1, 1, setup.open("/1").await);
        setup.plays(1).await;
        sleep(Duration::from_secs(30)).await;
        setup.provider.break_now("/1", Break::End);
        setup.loses(1).await;
        setup.pump.follow(2, key, setup.open("/2").await);
        setup.plays(2).await;
        match (setup.pictures.recv().await.unwrap(), seconds) {
            ((2, PictureEvent::Awaited { at_most }), Some(seconds)) => {
                let difference = seconds - at_most.as_secs_f64();
                assert!((0.0..0.5).contains(&difference), "{at_most:?}, expected {seconds} s");
                assert_eq!(setup.pictures.recv().await, Some((2, PictureEvent::NoKeyFrame)));
            }
            (event, None) => assert_eq!(event, (2, PictureEvent::NoKeyFrame)),
            (event, _) => panic!("{event:?}"),
        }
    }
}
