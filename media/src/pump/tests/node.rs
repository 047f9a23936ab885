//! Tests of rings that are filled from the ring of another process.

use super::*;
use crate::chunk::Chunk;
use crate::node::{FoundRing, NodeMeter, RingDirectory, RingPosition, serve_rings};
use crate::source::{NodeChunk, NodeRequest, open_node};
use crate::testing::TsReader;

/// The only ring of an origin.
struct OneRing {
    ring: Ring,
    epoch: u64,
    continues: Option<RingPosition>,
    meter: Arc<NodeMeter>,
}

impl RingDirectory for OneRing {
    fn find(&self, target: &str) -> Option<FoundRing> {
        let found =
            FoundRing { ring: self.ring.clone(), epoch: self.epoch, continues: self.continues, guard: None };
        (target == "one").then_some(found)
    }

    fn meter(&self) -> Arc<NodeMeter> {
        Arc::clone(&self.meter)
    }
}

/// A connection to an origin, and the task that serves it.
struct Link {
    server: JoinHandle<std::io::Result<()>>,
    meter: Arc<NodeMeter>,
}

/// Returns a pump that plays this ring, as the first attempt.
async fn edge_of(origin: &Ring) -> (Setup, Link) {
    let mut edge = Setup::new();
    let (source, link) = edge.open_ring(origin, 5, None, 64 << 10).await;
    edge.pump.follow(1, 1, source.unwrap());
    edge.plays(1).await;
    (edge, link)
}

impl Setup {
    /// Opens the ring of an origin over a stream that holds this many bytes.
    async fn open_ring(
        &self,
        origin: &Ring,
        epoch: u64,
        after: Option<RingPosition>,
        n_bytes: usize,
    ) -> (Result<Source, UpstreamError>, Link) {
        self.open_successor(origin, epoch, None, after, n_bytes).await
    }

    /// Opens the ring of an origin that continues another one up to this chunk.
    async fn open_successor(
        &self,
        origin: &Ring,
        epoch: u64,
        continues: Option<RingPosition>,
        after: Option<RingPosition>,
        n_bytes: usize,
    ) -> (Result<Source, UpstreamError>, Link) {
        let meter = Arc::new(NodeMeter::default());
        let directory = Arc::new(OneRing { ring: origin.clone(), epoch, continues, meter: meter.clone() });
        let (near, far) = tokio::io::duplex(n_bytes);
        let server = tokio::spawn(serve_rings(far, directory));
        let request = NodeRequest { target: "one".to_owned(), after, place: "origin".to_owned() };
        let permit = self.permits.permit(|| ());
        let source = open_node(Box::new(near), &request, permit, &self.upstream).await;
        (source, Link { server, meter })
    }
}

/// Reads all chunks that a ring stores.
async fn stored(ring: &Ring) -> Vec<Chunk> {
    let usage = ring.usage();
    let mut reader = ring.chunks_after(usage.tail_sequence.checked_sub(1)).unwrap();
    let mut all = Vec::new();
    while all.len() < usage.chunks {
        all.push(std::future::poll_fn(|cx| reader.poll_next(cx)).await.unwrap().chunk);
    }
    all
}

/// Compares the chunks that both rings store.
async fn assert_same_chunks(origin: &Ring, edge: &Ring) -> usize {
    let (origin, edge) = (stored(origin).await, stored(edge).await);
    let mut n = 0;
    for a in &origin {
        let Some(b) = edge.iter().find(|it| it.head().sequence == a.head().sequence) else { continue };
        n += 1;
        assert!(a.bytes() == b.bytes(), "chunk {}", a.head().sequence);
        let (a, b) = (a.head(), b.head());
        assert_eq!((a.sequence, a.programme_time, &a.tables), (b.sequence, b.programme_time, &b.tables));
        assert_eq!((a.random_access, a.filler, &a.counters), (b.random_access, b.filler, &b.counters));
    }
    n
}

async fn playing_origin() -> Setup {
    let mut origin = Setup::new();
    origin.provider.set("/x", Behaviour::play("one"));
    origin.follow(1, "/x").await;
    origin.plays(1).await;
    sleep(Duration::from_secs(3)).await;
    origin
}

#[tokio::test(start_paused = true)]
async fn an_edge_has_the_same_chunks_with_the_same_numbers() {
    let origin = playing_origin().await;
    let (mut edge, link) = edge_of(&origin.ring).await;
    sleep(Duration::from_secs(5)).await;
    assert!(edge.ring.usage().head_sequence + 5 > origin.ring.usage().head_sequence);
    assert!(assert_same_chunks(&origin.ring, &edge.ring).await > 50);
    assert_eq!(edge.pump.tables().unwrap().video().unwrap().codec(), "H.264");
    let mut tail = edge.tail();
    let mut reader = TsReader::default();
    reader.read(&all_for(&mut tail, Duration::from_secs(1)).await, Duration::ZERO).unwrap();
    // A gap of the origin is filled there, with the same numbers here.
    origin.provider.break_now("/x", Break::End);
    sleep(Duration::from_secs(8)).await;
    assert!(edge.ring.meter().filler_bytes() > 0);
    assert_eq!(edge.ring.usage().head_sequence, origin.ring.usage().head_sequence);
    assert!(edge.messages.try_recv().is_err(), "filler of the origin keeps the edge");
    assert_eq!((link.meter.skips(), link.server.is_finished()), (0, false));
}

#[tokio::test(start_paused = true)]
async fn an_edge_continues_with_its_own_source_when_the_origin_is_gone() {
    let origin = playing_origin().await;
    let (mut edge, link) = edge_of(&origin.ring).await;
    let mut tail = edge.tail();
    let mut bytes = all_for(&mut tail, Duration::from_secs(3)).await;
    link.server.abort();
    assert!(matches!(edge.loses(1).await, Cause::Reset(_) | Cause::Ended));
    let before = edge.ring.usage().head_sequence;
    let two =
        TsSource { start: 5_000_000_000, pmt_pid: 0x50, video: Some((0x51, 0x1B)), ..TsSource::new("two") };
    edge.provider.set("/2", Behaviour::Play(Play::new(two)));
    edge.follow(2, "/2").await;
    edge.plays(2).await;
    bytes.extend(all_for(&mut tail, Duration::from_secs(4)).await);
    assert_eq!(labels_in(&bytes), ["one", "two"]);
    assert!(edge.ring.usage().head_sequence > before, "the numbers continue");
    // Counters, clock and time stamps continue from what the origin sent.
    TsReader::default().read(&bytes, Duration::ZERO).unwrap();
    // Another origin is now one source among others.
    let (source, _link) = edge.open_ring(&origin.ring, 5, None, 64 << 10).await;
    edge.pump.follow(3, 1, source.unwrap());
    edge.plays(3).await;
    bytes.extend(all_for(&mut tail, Duration::from_secs(4)).await);
    assert_eq!(labels_in(&bytes), ["one", "two", "one"]);
    TsReader::default().read(&bytes, Duration::ZERO).unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_edge_attaches_again_after_its_last_chunk() {
    let origin = playing_origin().await;
    let (mut edge, link) = edge_of(&origin.ring).await;
    let mut tail = edge.tail();
    let mut bytes = all_for(&mut tail, Duration::from_secs(2)).await;
    link.server.abort();
    edge.loses(1).await;
    // Before the edge writes filler, which takes numbers.
    sleep(Duration::from_millis(400)).await;
    let sequence = edge.ring.usage().head_sequence - 1;
    let after = Some(RingPosition { epoch: 5, sequence });
    let (source, _link) = edge.open_ring(&origin.ring, 5, after, 64 << 10).await;
    edge.pump.follow(2, 1, source.unwrap());
    edge.plays(2).await;
    bytes.extend(all_for(&mut tail, Duration::from_secs(3)).await);
    assert!(assert_same_chunks(&origin.ring, &edge.ring).await > 30);
    let mut whole = origin.ring.uncounted_tail(JoinPoint::Oldest);
    let whole = all_for(&mut whole, Duration::from_millis(1)).await;
    let common = &bytes[bytes.len() - 100 * PACKET..][..PACKET];
    assert!(memchr::memmem::find(&whole, common).is_some());
    TsReader::default().read(&bytes, Duration::ZERO).unwrap();
    assert_eq!(labels_in(&bytes), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn an_edge_that_is_ahead_of_the_origin_is_refused() {
    let origin = playing_origin().await;
    let edge = Setup::new();
    let sequence = origin.ring.usage().head_sequence + 10;
    let after = Some(RingPosition { epoch: 5, sequence });
    let (source, _link) = edge.open_ring(&origin.ring, 5, after, 64 << 10).await;
    assert_eq!(source.unwrap_err().cause(), &Cause::Status(409));
    // Of another life, the number says nothing.
    let after = Some(RingPosition { epoch: 4, sequence });
    let (source, _link) = edge.open_ring(&origin.ring, 5, after, 64 << 10).await;
    source.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_slow_link_skips_to_a_random_access_point_and_is_counted() {
    let origin = playing_origin().await;
    let mut edge = Setup::new();
    let (source, link) = edge.open_ring(&origin.ring, 5, None, 16 << 10).await;
    let mut source = source.unwrap();
    // Nobody reads for longer than the ring lasts.
    for _ in 0..3 {
        sleep(Duration::from_secs(15)).await;
        source.read().await.unwrap();
    }
    edge.pump.follow(1, 1, source);
    edge.plays(1).await;
    sleep(Duration::from_secs(12)).await;
    assert!(link.meter.skips() > 0 && link.meter.skipped_bytes() > 1_000_000, "{:?}", link.meter);
    assert!(!link.server.is_finished());
    assert!(assert_same_chunks(&origin.ring, &edge.ring).await > 50);
}

#[tokio::test(start_paused = true)]
async fn viewers_of_an_edge_continue_after_a_skip_and_count_it() {
    let origin = playing_origin().await;
    let edge = Setup::new();
    let (source, link) = edge.open_ring(&origin.ring, 5, None, 16 << 10).await;
    let mut source = source.unwrap();
    let mut writer_side = ring(RingSettings::default(), &Budget::new(64 << 20));
    let mut tail = writer_side.1.tail(JoinPoint::Oldest, None);
    let mut bytes = BytesMut::new();
    let mut n_read = 0;
    // Everything passes through one ring by hand, with a pause in the middle.
    while n_read < 100 {
        if n_read == 50 {
            sleep(Duration::from_secs(30)).await;
        }
        source.read().await.unwrap();
        let NodeChunk { chunk, n_lost, .. } = source.take_chunk().unwrap();
        let now = Instant::now();
        writer_side.0.adopt(chunk, n_lost, now);
        writer_side.0.publish(now);
        while let Ok(Ok(read)) = timeout(Duration::ZERO, tail.chunk()).await {
            bytes.extend_from_slice(&read);
        }
        n_read += 1;
    }
    assert_eq!(link.meter.skips(), 1);
    assert_eq!(tail.meter().overruns(), 1);
    assert_eq!(tail.meter().overrun_bytes(), link.meter.skipped_bytes());
    // The break is declared, so no counter is wrong.
    TsReader::default().read(&bytes, Duration::ZERO).unwrap();
    assert_eq!(labels_in(&bytes), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_ring_and_silence_of_the_connection_are_losses() {
    let origin = playing_origin().await;
    let (mut edge, link) = edge_of(&origin.ring).await;
    origin.ring.end(EndReason::Stopped);
    assert_eq!(edge.loses(1).await, Cause::Ended);
    link.server.await.unwrap().unwrap();
    edge.upstream.closer.idle().await;
    assert_eq!(edge.permits.n_out(), 0);
    // A stream that accepts everything and never answers.
    let (near, _far) = tokio::io::duplex(64 << 10);
    let request = NodeRequest { target: "one".to_owned(), after: None, place: "origin".to_owned() };
    let opened = open_node(Box::new(near), &request, edge.permits.permit(|| ()), &edge.upstream).await;
    assert_eq!(opened.unwrap_err().cause(), &Cause::FirstPacketTimeout);
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_not_understood_are_refused() {
    let origin = playing_origin().await;
    for (line, status) in [
        ("GET /node/v1/ring/one HTTP/1.1", "200"),
        ("GET /node/v1/ring/two HTTP/1.1", "404"),
        ("POST /node/v1/ring/one HTTP/1.1", "400"),
        ("GET /node/v1/ring/ HTTP/1.1", "400"),
        ("GET /node/v1/ring/a/b HTTP/1.1", "400"),
        ("GET /node/v1/ring/one?after=x HTTP/1.1", "400"),
        ("GET /other HTTP/1.1", "400"),
    ] {
        let meter = Arc::new(NodeMeter::default());
        let directory = Arc::new(OneRing { ring: origin.ring.clone(), epoch: 1, continues: None, meter });
        let (mut near, far) = tokio::io::duplex(64 << 10);
        let server = tokio::spawn(serve_rings(far, directory));
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        near.write_all(format!("{line}\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
        let mut head = [0; 12];
        near.read_exact(&mut head).await.unwrap();
        assert_eq!(&head[9..], status.as_bytes(), "{line}");
        server.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_takes_nothing_is_closed() {
    let origin = playing_origin().await;
    let edge = Setup::new();
    let (source, link) = edge.open_ring(&origin.ring, 5, None, 16 << 10).await;
    let _source = source.unwrap();
    let began = Instant::now();
    assert!(link.server.await.unwrap().is_err());
    assert!(began.elapsed() <= Duration::from_secs(90), "{:?}", began.elapsed());
}

/// Holds item 5 of the cluster: the viewers of both edges continue when the origin is gone, and both have the same bytes.
#[tokio::test(start_paused = true)]
async fn the_edge_that_takes_over_is_the_origin_of_the_other_without_a_repeated_or_missing_byte() {
    let origin = playing_origin().await;
    let (mut winner, to_winner) = edge_of(&origin.ring).await;
    let (mut other, to_other) = edge_of(&origin.ring).await;
    let (mut winner_tail, mut other_tail) = (winner.tail(), other.tail());
    let (mut winner_bytes, mut bytes) = tokio::join!(
        all_for(&mut winner_tail, Duration::from_secs(2)),
        all_for(&mut other_tail, Duration::from_secs(2)),
    );
    // The other edge is behind.
    to_other.server.abort();
    other.loses(1).await;
    sleep(Duration::from_millis(400)).await;
    to_winner.server.abort();
    winner.loses(1).await;
    sleep(Duration::from_secs(1)).await;
    let (last, continues) = (other.pump.mirrored(), winner.pump.mirrored());
    assert!(last.unwrap().sequence + 3 < continues.unwrap().sequence, "{last:?} {continues:?}");
    assert_eq!(winner.ring.meter().filler_bytes(), 0, "filler would take the numbers of the next origin");
    // The winner fills its gap until its source plays, and is read meanwhile.
    winner.pump.fill_gaps();
    sleep(Duration::from_millis(700)).await;
    assert_eq!((winner.pump.adopted(), winner.pump.mirrored()), (continues, None));
    let (source, _link) = other.open_successor(&winner.ring, 6, continues, last, 64 << 10).await;
    other.pump.follow(2, 1, source.unwrap());
    other.plays(2).await;
    sleep(Duration::from_secs(4)).await;
    let two =
        TsSource { start: 5_000_000_000, pmt_pid: 0x50, video: Some((0x51, 0x1B)), ..TsSource::new("two") };
    winner.provider.set("/2", Behaviour::Play(Play::new(two)));
    winner.follow(2, "/2").await;
    winner.plays(2).await;
    let (from_winner, from_other) = tokio::join!(
        all_for(&mut winner_tail, Duration::from_secs(4)),
        all_for(&mut other_tail, Duration::from_secs(4)),
    );
    winner_bytes.extend(from_winner);
    bytes.extend(from_other);
    assert_eq!(labels_in(&winner_bytes), ["one", "two"]);
    assert_eq!(labels_in(&bytes), ["one", "two"]);
    TsReader::default().read(&winner_bytes, Duration::ZERO).unwrap();
    TsReader::default().read(&bytes, Duration::ZERO).unwrap();
    assert!(assert_same_chunks(&winner.ring, &other.ring).await > 50);
    assert!(other.ring.meter().filler_bytes() > 0, "it is that of the winner");
    assert_eq!(other.pump.mirrored().unwrap().epoch, 6);
    assert!(winner.ring.usage().head_sequence - other.ring.usage().head_sequence <= 2);
}

#[tokio::test(start_paused = true)]
async fn an_edge_that_is_ahead_of_the_new_origin_splices() {
    let origin = playing_origin().await;
    let (mut edge, link) = edge_of(&origin.ring).await;
    let mut tail = edge.tail();
    let mut bytes = all_for(&mut tail, Duration::from_secs(2)).await;
    link.server.abort();
    edge.loses(1).await;
    let last = edge.pump.mirrored().unwrap();
    let before = edge.ring.usage().head_sequence;
    // The new origin had not got the last three chunks.
    let continues = Some(RingPosition { epoch: 5, sequence: last.sequence - 3 });
    let (source, _link) =
        edge.open_successor(&origin.ring, 6, continues, edge.pump.mirrored(), 64 << 10).await;
    edge.pump.follow(2, 1, source.unwrap());
    edge.plays(2).await;
    bytes.extend(all_for(&mut tail, Duration::from_secs(3)).await);
    TsReader::default().read(&bytes, Duration::ZERO).unwrap();
    assert!(edge.ring.usage().head_sequence > before);
    assert_eq!((edge.pump.adopted(), edge.pump.mirrored()), (Some(last), None));
}
