//! Tests of opening, reading and closing with an in-memory provider and simulated time.

mod addresses;
mod radio;

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::open::READ_AHEAD_BYTES_MAX;
use super::*;
use crate::closer::Closer;
use crate::dial::{AddressCheck, Dial, DialAddress, DialFuture, DialSettings, ResolveFuture, TcpDial};
use crate::error::{Scope, Side};
use crate::launcher::Launcher;
use crate::permit::Permit;
use crate::testing::{
    Behaviour, Break, MemoryDial, MemoryProvider, PermitCount, Play, Reachability, ResponseHead, TestPermit,
    TsSource, labels_in,
};

/// Two providers, `a` and `b`, and an upstream that connects to them.
struct Setup {
    a: MemoryProvider,
    b: MemoryProvider,
    upstream: Upstream,
    permits: PermitCount,
    /// Number of sockets that providers could still see whenever a permit was returned.
    held_at_return: Arc<Mutex<Vec<usize>>>,
}

impl Setup {
    fn new() -> Self {
        let dial = MemoryDial::new();
        let (a, b) = (dial.provider("a:80"), dial.provider("b:80"));
        let closer = Closer::new(Handle::current());
        let upstream = Upstream {
            dial: Arc::new(dial),
            closer,
            launcher: Launcher::default(),
            settings: SourceSettings::default(),
        };
        Self { a, b, upstream, permits: PermitCount::default(), held_at_return: Arc::default() }
    }

    fn permit(&self) -> Box<TestPermit> {
        let (a, b, held) = (self.a.clone(), self.b.clone(), self.held_at_return.clone());
        self.permits.permit(move || held.lock().push(a.n_held() + b.n_held()))
    }

    fn open(&self, url: &str) -> impl Future<Output = Result<Source, UpstreamError>> + use<> {
        self.open_request(OpenRequest { url: url.into(), ..OpenRequest::default() })
    }

    fn open_request(
        &self,
        request: OpenRequest,
    ) -> impl Future<Output = Result<Source, UpstreamError>> + use<> {
        open(request, self.permit(), self.upstream.clone())
    }

    /// Opens an address that must fail and returns the cause and the elapsed time.
    async fn failure(&self, url: &str) -> (Cause, Duration) {
        let (began, n_delivered) = (Instant::now(), self.permits.n_delivered());
        let error = self.open(url).await.expect_err("should not open");
        let elapsed = began.elapsed();
        self.is_clean().await;
        assert_eq!(self.permits.n_delivered(), n_delivered, "payload of a source that did not open");
        (error.cause().clone(), elapsed)
    }

    /// Asserts that no permit and no socket is left, and that every permit was returned after its socket.
    async fn is_clean(&self) {
        self.upstream.closer.idle().await;
        assert_eq!(self.permits.n_out(), 0, "permits out");
        assert_eq!(self.upstream.closer.n_sockets(), 0, "sockets counted");
        assert_eq!(self.a.n_held() + self.b.n_held(), 0, "sockets held");
        assert!(
            self.held_at_return.lock().iter().all(|it| *it == 0),
            "a permit was returned before its socket was gone"
        );
    }
}

/// Reads until `n` bytes have arrived, or to the end.
async fn read_bytes(source: &mut Source, n: usize) -> (BytesMut, Option<UpstreamError>) {
    let mut bytes = BytesMut::new();
    while bytes.len() < n {
        match source.read().await {
            Ok(it) => bytes.extend_from_slice(&it),
            Err(error) => return (bytes, Some(error)),
        }
    }
    (bytes, None)
}

/// Polls a future at most `n` times, then drops it.
async fn drop_after<F: Future>(n: usize, future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut n_left = n;
    poll_fn(|cx| {
        if n_left > 0 {
            n_left -= 1;
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
        }
        if n_left == 0 { Poll::Ready(None) } else { Poll::Pending }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_source_opens_with_its_first_payload_and_returns_every_byte() {
    let setup = Setup::new();
    setup.a.set("/live/u/p/1.ts?x=%20", Behaviour::play("one"));
    let mut source = setup.open("http://a/live/u/p/1.ts?x=%20").await.unwrap();
    assert_eq!(source.info().place, "a:80");
    assert!(source.info().opened_in < Duration::from_millis(50));
    let (bytes, error) = read_bytes(&mut source, 1_000_000).await;
    assert_eq!(error, None);
    let expected = TsSource::new("one").bytes(Duration::from_secs(60), Duration::from_secs(5));
    assert_eq!(bytes[..1_000_000], expected[..1_000_000]);
    assert_eq!((setup.permits.n_out(), setup.permits.n_delivered()), (1, 1));
    assert_eq!(setup.upstream.closer.n_sockets(), 1);
    drop(source);
    assert_eq!(setup.permits.n_closing(), 1, "closing is reported at once");
    setup.is_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_source_without_its_announced_video_is_opened_a_little_later() {
    let setup = Setup::new();
    setup.a.set("/clear", Behaviour::play("x"));
    let began = Instant::now();
    drop(setup.open("http://a/clear").await.unwrap());
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
    setup.is_clean().await;
    // The tables announce video, and audio at 128 kbit/s is all that comes.
    setup.a.set(
        "/absent",
        Behaviour::Play(Play { after: Some((2, Break::OnlyAudio)), ..Play::new(TsSource::new("x")) }),
    );
    let began = Instant::now();
    drop(setup.open("http://a/absent").await.unwrap());
    let elapsed = began.elapsed().as_secs_f64();
    assert!((1.5..2.5).contains(&elapsed), "{elapsed} s");
    setup.is_clean().await;
}

#[tokio::test(start_paused = true)]
async fn tables_that_come_late_open_a_source_within_the_time_of_programs() {
    let setup = Setup::new();
    let seconds = Duration::from_secs_f64;
    for (late, opens) in [(3.0, true), (8.0, true), (11.0, false)] {
        let ts = TsSource { tables_after: seconds(late), ..TsSource::new("late") };
        setup.a.set("/late", Behaviour::Play(Play::new(ts)));
        let began = Instant::now();
        let opened = setup.open("http://a/late").await;
        let elapsed = began.elapsed().as_secs_f64();
        match opened {
            Ok(source) => {
                drop(source);
                assert!(opens && (late..late + 0.5).contains(&elapsed), "{late}: {elapsed} s");
            }
            Err(error) => {
                assert_eq!(*error.cause(), Cause::NoTables("the stream announces no programme".into()));
                assert!(!opens && (10.0..10.1).contains(&elapsed), "{late}: {elapsed} s");
                assert_eq!(
                    (error.label(), error.can_retry(), error.is_permanent()),
                    ("no_tables", false, false)
                );
            }
        }
        setup.is_clean().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_whose_checksums_are_wrong_opens_and_is_known_afterwards() {
    let setup = Setup::new();
    let ts = TsSource { has_wrong_checksums: true, ..TsSource::new("wrong") };
    setup.a.set("/wrong", Behaviour::Play(Play::new(ts)));
    let began = Instant::now();
    let source = setup.open("http://a/wrong").await.unwrap();
    // Ten PATs and ten PMTs, each five times a second.
    let elapsed = began.elapsed().as_secs_f64();
    assert!((3.0..4.5).contains(&elapsed), "{elapsed} s");
    let known = source.info().known.clone();
    assert_eq!(known.wrong_checksums, [0, 0x1000]);
    let notes: Vec<_> = source.info().notes.iter().map(|it| (it.label(), it.to_string())).collect();
    assert_eq!(notes.len(), 2);
    assert_eq!(notes[1], ("table_checksum", "the tables on PID 4096 have wrong checksums".to_owned()));
    drop(source);
    setup.is_clean().await;
    let began = Instant::now();
    let request = OpenRequest { url: "http://a/wrong".into(), known, ..OpenRequest::default() };
    drop(setup.open_request(request).await.unwrap());
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    setup.is_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_programme_that_is_not_in_the_stream_is_named_with_those_that_are() {
    let setup = Setup::new();
    setup.a.set("/x", Behaviour::Play(Play::new(TsSource { program: 7, ..TsSource::new("x") })));
    let request =
        |program| OpenRequest { url: "http://a/x".into(), program: Some(program), ..OpenRequest::default() };
    drop(setup.open_request(request(7)).await.unwrap());
    setup.is_clean().await;
    let error = setup.open_request(request(5)).await.unwrap_err();
    assert_eq!(error.to_string(), "programme 5 is not in the stream; it has 7");
    setup.is_clean().await;
}

// Holds T-fo.2 (media's part: which cause, how soon).
#[tokio::test(start_paused = true)]
async fn every_failure_to_open_is_reported_with_its_cause_in_time() {
    let setup = Setup::new();
    let not_ts = |what: &str| Cause::NotTs(what.into());
    let after = |n, how| Behaviour::Play(Play { after: Some((n, how)), ..Play::new(TsSource::new("x")) });
    let first = Duration::from_secs(4);
    let cases = [
        ("401", Behaviour::Status(401), Cause::Status(401), Duration::ZERO),
        ("403", Behaviour::Status(403), Cause::Status(403), Duration::ZERO),
        ("404", Behaviour::Status(404), Cause::Status(404), Duration::ZERO),
        ("429", Behaviour::Status(429), Cause::Status(429), Duration::ZERO),
        ("503", Behaviour::Status(503), Cause::Status(503), Duration::ZERO),
        (
            "805",
            Behaviour::Raw("HTTP/1.1 503 S\r\nX-HDHomeRun-Error: 805 All Tuners In Use\r\n\r\n".into()),
            Cause::Tuner { status: 503, code: 805 },
            Duration::ZERO,
        ),
        (
            "region",
            Behaviour::Raw("HTTP/1.1 403 No\r\nContent-Length: 27\r\n\r\nnot allowed in your country".into()),
            Cause::Region(403),
            Duration::ZERO,
        ),
        ("304", Behaviour::Status(304), Cause::Status(304), Duration::ZERO),
        ("204", Behaviour::Raw("HTTP/1.1 204 None\r\n\r\n".into()), Cause::Empty, Duration::ZERO),
        ("html", Behaviour::Html, not_ts("text/html"), Duration::ZERO),
        ("json", Behaviour::Json, not_ts("application/json"), Duration::ZERO),
        // A segment is requested twice.
        ("hls", Behaviour::Hls, Cause::Status(404), Duration::from_millis(500)),
        ("empty", Behaviour::Empty, Cause::Empty, Duration::ZERO),
        ("close", Behaviour::Close, Cause::Reset("closed without a response".into()), Duration::ZERO),
        ("reset", Behaviour::Reset, Cause::Reset("connection reset".into()), Duration::ZERO),
        ("no answer", Behaviour::NoAnswer, Cause::FirstPacketTimeout, first),
        ("garbage", Behaviour::Garbage, not_ts("unknown bytes"), Duration::from_millis(400)),
        ("nulls", after(0, Break::Nulls), Cause::FirstPacketTimeout, first),
        ("unknown PIDs", after(0, Break::UnknownPids), Cause::FirstPacketTimeout, first),
        ("tables, then silence", after(2, Break::Silence), Cause::FirstPacketTimeout, first),
        ("tables, then the end", after(2, Break::End), Cause::Ended, Duration::ZERO),
        ("tables, then nulls", after(2, Break::Nulls), Cause::FirstPacketTimeout, first),
        ("tables, then scrambled packets", after(2, Break::Scrambled), Cause::Scrambled, first),
        ("clear audio, scrambled video", after(2, Break::ScrambledVideo), Cause::Scrambled, first),
        ("ICY 403", Behaviour::Raw("ICY 403 No\r\n\r\n".into()), Cause::Status(403), Duration::ZERO),
        ("not even HTTP", Behaviour::Raw("SSH-2.0-x\r\n".into()), not_ts("unknown bytes"), Duration::ZERO),
        ("to nowhere", Behaviour::Raw("HTTP/1.1 302 F\r\n\r\n".into()), Cause::BadRedirect, Duration::ZERO),
        ("loop", Behaviour::Redirect("/x".into()), Cause::RedirectLoop, Duration::ZERO),
    ];
    for (name, behaviour, cause, bound) in cases {
        setup.a.set("/x", behaviour);
        let (found, elapsed) = setup.failure("http://a/x").await;
        assert_eq!(found, cause, "{name}");
        assert!(elapsed <= bound + Duration::from_millis(20), "{name} took {elapsed:?}");
        setup.is_clean().await;
    }
    let reaches = [
        (Reachability::Refuses, Cause::Connect("connection refused".into()), Duration::ZERO),
        (Reachability::Unknown, Cause::Dns, Duration::ZERO),
        (
            Reachability::BadCertificate,
            Cause::Tls("invalid peer certificate: Expired".into()),
            Duration::ZERO,
        ),
        (Reachability::Silent, Cause::ConnectTimeout, Duration::from_secs(3)),
        (Reachability::After(Duration::from_secs(9)), Cause::ConnectTimeout, Duration::from_secs(3)),
    ];
    for (reach, cause, bound) in reaches {
        setup.a.set_reachability(reach);
        let (found, elapsed) = setup.failure("http://a/x").await;
        assert_eq!(found, cause, "{reach:?}");
        assert!(elapsed <= bound + Duration::from_millis(20), "{reach:?} took {elapsed:?}");
        setup.is_clean().await;
    }
    let requests = setup.a.n_accepted();
    for url in ["rtsp://a/x", "nonsense", "http://"] {
        let error = setup.open(url).await.expect_err("should not open");
        assert_eq!(error.side(), Side::Gateway, "{url}");
    }
    assert_eq!(setup.a.n_accepted(), requests, "no connection for an invalid address");
    setup.is_clean().await;
}

#[tokio::test(start_paused = true)]
async fn extended_limits_let_a_slow_source_open_and_shorter_ones_change_nothing() {
    let mut setup = Setup::new();
    setup.upstream.settings.extend_to(Duration::from_secs(2));
    assert_eq!(setup.upstream.settings, SourceSettings::default());
    setup.upstream.settings.extend_to(Duration::from_secs(12));
    setup.a.set("/x", Behaviour::play("x"));
    setup.a.set_reachability(Reachability::After(Duration::from_secs(10)));
    let source = setup.open("http://a/x").await.unwrap();
    assert_eq!(source.info().opened_in.as_secs(), 10);
    drop(source);
    setup.is_clean().await;
    // Each limit ends in turn, so the cause is known.
    setup.a.set_reachability(Reachability::Silent);
    let (cause, elapsed) = setup.failure("http://a/x").await;
    assert_eq!((cause, elapsed.as_secs()), (Cause::ConnectTimeout, 11));
    setup.a.set_reachability(Reachability::After(Duration::ZERO));
    setup.a.set("/x", Behaviour::NoAnswer);
    let (cause, elapsed) = setup.failure("http://a/x").await;
    assert_eq!((cause, elapsed.as_secs()), (Cause::FirstPacketTimeout, 12));
}

#[tokio::test(start_paused = true)]
async fn a_slow_connection_leaves_less_time_for_the_first_packet() {
    let setup = Setup::new();
    setup.a.set("/x", Behaviour::NoAnswer);
    setup.a.set_reachability(Reachability::After(Duration::from_millis(2500)));
    let (cause, elapsed) = setup.failure("http://a/x").await;
    assert_eq!((cause, elapsed.as_secs()), (Cause::FirstPacketTimeout, 4));
    setup.is_clean().await;
}

#[tokio::test(start_paused = true)]
async fn malformed_response_heads_are_tolerated() {
    let setup = Setup::new();
    for head in [
        ResponseHead::Plain,
        ResponseHead::Chunked,
        ResponseHead::Icy,
        ResponseHead::Broken,
        ResponseHead::Missing,
        ResponseHead::Length(1 << 40),
    ] {
        setup.a.set("/x", Behaviour::Play(Play { head, ..Play::new(TsSource::new("loose")) }));
        let mut source = setup.open("http://a/x").await.unwrap_or_else(|error| panic!("{head:?}: {error}"));
        let (bytes, error) = read_bytes(&mut source, 100_000).await;
        assert_eq!(error, None, "{head:?}");
        assert_eq!(bytes[0], 0x47, "{head:?}: the head is not a part of the stream");
        assert_eq!(labels_in(&bytes), ["loose"], "{head:?}");
        drop(source);
        setup.is_clean().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_playing_source_reports_how_it_ended() {
    let setup = Setup::new();
    let cases = [
        (ResponseHead::Plain, Break::End, Cause::Ended),
        (ResponseHead::Chunked, Break::End, Cause::Ended),
        (ResponseHead::Icy, Break::End, Cause::Ended),
        (ResponseHead::Length(1 << 40), Break::End, Cause::Ended),
        (ResponseHead::Plain, Break::Reset, Cause::Reset("connection reset".into())),
        (ResponseHead::Chunked, Break::Reset, Cause::Reset("connection reset".into())),
    ];
    for (head, how, cause) in cases {
        let play = Play { head, after: Some((500, how)), ..Play::new(TsSource::new("x")) };
        setup.a.set("/x", Behaviour::Play(play));
        let mut source = setup.open("http://a/x").await.unwrap();
        let (bytes, error) = read_bytes(&mut source, usize::MAX).await;
        assert_eq!(bytes.len(), 500 * 188, "{head:?} {how:?}: nothing is lost before the end");
        let error = error.unwrap();
        assert_eq!(error.cause(), &cause, "{head:?} {how:?}");
        assert!(error.can_retry());
        drop(source);
        setup.is_clean().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_read_loses_no_data() {
    let setup = Setup::new();
    setup.a.set("/x", Behaviour::play("x"));
    let mut source = setup.open("http://a/x").await.unwrap();
    let mut bytes = BytesMut::new();
    while bytes.len() < 300_000 {
        if let Ok(read) = timeout(Duration::from_millis(7), source.read()).await {
            bytes.extend_from_slice(&read.unwrap());
        }
    }
    let expected = TsSource::new("x").bytes(Duration::from_secs(60), Duration::from_secs(3));
    assert_eq!(bytes[..300_000], expected[..300_000]);
}

// Holds T-slot.3 (media's part).
#[tokio::test(start_paused = true)]
async fn an_opening_dropped_at_any_point_returns_its_permit_after_its_socket() {
    let cases = [
        ("play", Behaviour::play("x")),
        ("no answer", Behaviour::NoAnswer),
        ("html", Behaviour::Html),
        ("refused", Behaviour::Status(403)),
        ("redirect", Behaviour::Redirect("http://b/1".into())),
    ];
    for is_stubborn in [false, true] {
        for (name, behaviour) in cases.clone() {
            let setup = Setup::new();
            for provider in [&setup.a, &setup.b] {
                provider.set_stubborn(is_stubborn);
                provider.set_reachability(Reachability::After(Duration::from_millis(10)));
            }
            setup.a.set("/x", behaviour);
            setup.b.set("/1", Behaviour::Redirect("/2".into()));
            setup.b.set("/2", Behaviour::Redirect("http://a/y".into()));
            setup.a.set("/y", Behaviour::play("y"));
            let mut n = 0;
            loop {
                let opening = setup.open("http://a/x");
                let opened = drop_after(n, opening).await;
                assert!(
                    setup.permits.n_out() == setup.permits.n_closing() || opened.is_some(),
                    "{name} at {n}: permits that are not returned are closing"
                );
                let is_through = opened.is_some();
                drop(opened);
                let began = Instant::now();
                setup.is_clean().await;
                assert!(began.elapsed() <= crate::closer::CLOSE_TIMEOUT, "{name} at {n}");
                if is_through {
                    break;
                }
                n += 1;
            }
            assert!(n > 3, "{name}: dropped at {n} points");
            assert!(setup.a.peak() <= 1 && setup.b.peak() <= 1, "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_aborted_opening_and_a_panic_return_the_permit() {
    struct Panics;
    impl Dial for Panics {
        fn dial<'a>(&'a self, _: &'a DialAddress, _: &'a AddressCheck<'a>, _: Duration) -> DialFuture<'a> {
            Box::pin(async { panic!("a bug") })
        }

        fn resolve<'a>(&'a self, _: &'a DialAddress, _: Duration) -> ResolveFuture<'a> {
            Box::pin(async { panic!("a bug") })
        }
    }
    let mut setup = Setup::new();
    setup.a.set("/x", Behaviour::NoAnswer);
    let task = tokio::spawn(setup.open("http://a/x"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(setup.a.n_open(), 1);
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    setup.is_clean().await;

    setup.upstream.dial = Arc::new(Panics);
    assert!(tokio::spawn(setup.open("http://a/x")).await.unwrap_err().is_panic());
    setup.is_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_the_provider_does_not_close_is_reset_after_half_a_second() {
    let setup = Setup::new();
    setup.a.set_stubborn(true);
    setup.a.set("/x", Behaviour::play("x"));
    let source = setup.open("http://a/x").await.unwrap();
    let began = Instant::now();
    drop(source);
    tokio::time::sleep(Duration::from_millis(490)).await;
    assert_eq!((setup.permits.n_out(), setup.upstream.closer.n_closing()), (1, 1));
    setup.is_clean().await;
    assert_eq!(began.elapsed().as_millis() / 10, 50);
}

#[tokio::test(start_paused = true)]
async fn a_permit_is_returned_at_once_when_the_provider_closes_its_side() {
    let setup = Setup::new();
    setup.a.set("/x", Behaviour::play("x"));
    drop(setup.open("http://a/x").await.unwrap());
    let began = Instant::now();
    setup.is_clean().await;
    assert!(began.elapsed() < Duration::from_millis(5));
}

#[tokio::test(start_paused = true)]
async fn a_chain_of_redirects_never_opens_two_sockets() {
    for is_stubborn in [false, true] {
        let setup = Setup::new();
        setup.a.set_stubborn(is_stubborn);
        setup.a.set("/0", Behaviour::Redirect("1?a=b".into()));
        setup.a.set("/1?a=b", Behaviour::Redirect("http://a/2".into()));
        setup.a.set("/2", Behaviour::Redirect("//a:80/3".into()));
        setup.a.set("/3", Behaviour::Redirect("/4".into()));
        setup.a.set("/4", Behaviour::Redirect("/5".into()));
        setup.a.set("/5", Behaviour::play("end"));
        let source = setup.open("http://a/0").await.unwrap();
        assert_eq!((source.info().n_redirects, source.info().place.as_str()), (5, "a:80"));
        assert_eq!(setup.a.n_accepted(), 6);
        assert_eq!(setup.a.peak(), 1);
        assert_eq!(setup.permits.n_out(), 1);
        assert_eq!(setup.permits.n_closing(), 0, "the permit is still in use");
        drop(source);
        setup.is_clean().await;
    }
}

#[tokio::test(start_paused = true)]
async fn redirects_have_a_limit_and_only_lead_to_http() {
    let setup = Setup::new();
    for n in 0..9 {
        setup.a.set(&format!("/{n}"), Behaviour::Redirect(format!("/{}", n + 1)));
    }
    assert_eq!(setup.failure("http://a/0").await.0, Cause::TooManyRedirects);
    assert_eq!(setup.a.n_accepted(), 6);
    for (location, cause) in [
        ("file:///etc/passwd", Cause::Unsupported("the address scheme file".into())),
        ("rtsp://a/x", Cause::Unsupported("the address scheme rtsp".into())),
        ("http://", Cause::BadRedirect),
        (" ", Cause::BadRedirect),
        ("http://nobody/", Cause::Dns),
    ] {
        setup.a.set("/x", Behaviour::Redirect(location.into()));
        assert_eq!(setup.failure("http://a/x").await.0, cause, "{location}");
    }
    setup.a.set("/x", Behaviour::Redirect("http://b/y".into()));
    setup.b.set("/y", Behaviour::Redirect("http://a/x".into()));
    assert_eq!(setup.failure("http://a/x").await.0, Cause::RedirectLoop);
    setup.is_clean().await;
}

#[tokio::test(start_paused = true)]
async fn slow_redirects_share_the_time_limit_of_the_first_packet() {
    let setup = Setup::new();
    setup.a.set_reachability(Reachability::After(Duration::from_secs(2)));
    setup.a.set("/0", Behaviour::Redirect("/1".into()));
    setup.a.set("/1", Behaviour::Redirect("/2".into()));
    setup.a.set("/2", Behaviour::play("x"));
    let (cause, elapsed) = setup.failure("http://a/0").await;
    assert_eq!((cause, elapsed.as_secs()), (Cause::FirstPacketTimeout, 4));
    setup.is_clean().await;
}

#[tokio::test(start_paused = true)]
async fn credentials_are_not_sent_to_another_host() {
    let setup = Setup::new();
    setup.a.set("/x", Behaviour::Redirect("/y".into()));
    setup.a.set("/y", Behaviour::Redirect("http://b/z".into()));
    setup.b.set("/z", Behaviour::play("z"));
    let request = OpenRequest {
        url: "http://user:secret@a/x".into(),
        headers: vec![("Cookie".into(), "secret".into()), ("Referer".into(), "http://r/".into())],
        user_agent: Some("Player/1".into()),
        ..OpenRequest::default()
    };
    drop(setup.open_request(request).await.unwrap());
    let expected =
        ["host: a", "user-agent: Player/1", "accept: */*", "authorization: Basic dXNlcjpzZWNyZXQ="];
    for request in setup.a.requests() {
        let headers: Vec<String> = request.headers.iter().map(|it| lower_name(it)).collect();
        assert_eq!(headers[..4], expected);
        assert_eq!(headers[4..], ["cookie: secret", "referer: http://r/", "connection: close"]);
    }
    let headers: Vec<String> = setup.b.requests()[0].headers.iter().map(|it| lower_name(it)).collect();
    assert_eq!(
        headers,
        ["host: b", "user-agent: Player/1", "accept: */*", "referer: http://r/", "connection: close"]
    );
    setup.is_clean().await;
}

fn lower_name(line: &str) -> String {
    let (name, value) = line.split_once(": ").unwrap();
    format!("{}: {value}", name.to_ascii_lowercase())
}

#[tokio::test(start_paused = true)]
async fn a_full_provider_refuses_the_account_and_not_the_stream() {
    let setup = Setup::new();
    setup.a.set("/x", Behaviour::play("x"));
    setup.a.set_limit(1, 429);
    let first = setup.open("http://a/x").await.unwrap();
    let error = setup.open("http://a/x").await.unwrap_err();
    assert_eq!((error.cause(), error.scope()), (&Cause::Status(429), Scope::Candidate));
    setup.upstream.closer.idle().await;
    assert_eq!((setup.permits.n_out(), setup.a.n_held()), (1, 1));
    // The second permit was returned while the first socket was open, as expected.
    setup.held_at_return.lock().clear();
    drop(first);
    setup.is_clean().await;
    // The slot is free after the permit was returned.
    drop(setup.open("http://a/x").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn errors_and_sources_print_no_address() {
    let setup = Setup::new();
    setup.a.set("/secret", Behaviour::play("x"));
    let source = setup.open("http://user:secret@a/secret").await.unwrap();
    assert!(!format!("{source:?}").contains("secret"));
    for url in ["http://user:secret@nobody/secret", "secret", "rtsp://secret@a/secret", "/secret/file"] {
        let error = setup.open(url).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_without_payload_does_not_fill_memory() {
    let setup = Setup::new();
    let mut flood =
        TsSource::new("x").bytes(Duration::ZERO, Duration::from_millis(40)).slice(..2 * 188).to_vec();
    flood.extend(crate::ts::packet::null_packet().repeat(40_000));
    let mut raw = BytesMut::from("HTTP/1.1 200 OK\r\n\r\n");
    raw.extend_from_slice(&flood);
    raw.extend_from_slice(&TsSource::new("x").bytes(Duration::ZERO, Duration::from_millis(200)));
    setup.a.set("/x", Behaviour::Raw(raw.freeze()));
    let source = setup.open("http://a/x").await.unwrap();
    let kept: usize = source.read_ahead.iter().map(Bytes::len).sum();
    assert!(kept <= READ_AHEAD_BYTES_MAX, "{kept}");
}

#[tokio::test(start_paused = true)]
async fn a_file_plays_at_the_speed_of_its_clock_and_ends() {
    let setup = Setup::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    // The clock wraps meanwhile, at the same time as all time stamps.
    let source = TsSource { start: (1 << 33) - 270_000, ..TsSource::new("file") };
    let bytes = source.bytes(Duration::ZERO, Duration::from_secs(10));
    std::fs::write(file.path(), &bytes).unwrap();
    let began = Instant::now();
    let mut source = setup.open(&format!("file://{}", file.path().display())).await.unwrap();
    assert_eq!(source.info().place, "file");
    let (read, error) = read_bytes(&mut source, usize::MAX).await;
    assert_eq!(error.unwrap().cause(), &Cause::Ended);
    assert_eq!(read, bytes);
    let elapsed = began.elapsed().as_secs_f64();
    assert!((9.8..10.2).contains(&elapsed), "{elapsed}");
    drop(source);
    assert_eq!(setup.permits.n_out(), 0);

    std::fs::write(file.path(), "<html>").unwrap();
    let error = setup.open(&file.path().display().to_string()).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::NotTs(_)), "{error}");
    let error = setup.open("file:///no/such/file").await.unwrap_err();
    assert_eq!((error.side(), error.can_retry()), (Side::Gateway, false));
    assert!(matches!(setup.open("/").await.unwrap_err().cause(), Cause::File(_)));
    assert_eq!(setup.permits.n_out(), 0);
}

#[tokio::test]
async fn a_dropped_tcp_source_is_closed_before_its_permit_is_returned() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let n_open = Arc::new(AtomicUsize::new(0));
    let counted = n_open.clone();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        counted.fetch_add(1, Ordering::SeqCst);
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let bytes = TsSource::new("tcp").bytes(Duration::ZERO, Duration::from_secs(1));
        socket.write_all(&bytes).await.unwrap();
        // Reads until the client has closed its side.
        while socket.read(&mut [0; 1024]).await.unwrap() > 0 {}
        counted.fetch_sub(1, Ordering::SeqCst);
    });
    let dial = Arc::new(TcpDial::new(DialSettings::default()).unwrap());
    let closer = Closer::new(Handle::current());
    let long = Duration::from_secs(30);
    let settings =
        SourceSettings { connect_timeout: long, first_packet_timeout: long, ..SourceSettings::default() };
    let upstream = Upstream { dial, closer: closer.clone(), launcher: Launcher::default(), settings };
    let permits = PermitCount::default();
    let seen = Arc::new(Mutex::new(None));
    let (n, result) = (n_open.clone(), seen.clone());
    let permit = permits.permit(move || *result.lock() = Some(n.load(Ordering::SeqCst)));
    let mut source = open(OpenRequest { url, ..OpenRequest::default() }, permit, upstream).await.unwrap();
    let (bytes, _) = read_bytes(&mut source, 50_000).await;
    assert_eq!(labels_in(&bytes), ["tcp"]);
    assert_eq!((n_open.load(Ordering::SeqCst), closer.n_sockets()), (1, 1));
    drop(source);
    closer.idle().await;
    assert_eq!(*seen.lock(), Some(0), "the provider had seen the end when the permit was returned");
    assert_eq!((permits.n_out(), closer.n_sockets()), (0, 0));
    server.await.unwrap();
}

/// A slot as a permit.
struct Slot(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Permit for Slot {
    fn delivers(&mut self) {}

    fn closing(&mut self) {}
}

// Holds T-slot.2 (media's part: with as many permits as slots, whatever is done with sources).
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_provider_never_sees_more_sockets_than_permits_exist() {
    const N_SLOTS: usize = 3;
    let setup = Setup::new();
    setup.a.set("/play", Behaviour::play("x"));
    setup.a.set("/hop", Behaviour::Redirect("/play".into()));
    setup.a.set("/no", Behaviour::Status(403));
    let slots = Arc::new(Semaphore::new(N_SLOTS));
    let mut tasks = JoinSet::new();
    for n in 0..300 {
        let (slots, upstream) = (slots.clone(), setup.upstream.clone());
        tasks.spawn(async move {
            let permit = Box::new(Slot(slots.acquire_owned().await.unwrap()));
            let url = format!("http://a/{}", ["play", "hop", "no"][n % 3]);
            let opening = open(OpenRequest { url, ..OpenRequest::default() }, permit, upstream);
            if n % 5 == 0 {
                drop(drop_after(n % 7, opening).await);
            } else if let Ok(mut source) = opening.await {
                let _ = source.read().await;
            }
        });
    }
    tasks.join_all().await;
    setup.upstream.closer.idle().await;
    assert_eq!(slots.available_permits(), N_SLOTS);
    assert_eq!((setup.a.n_held(), setup.upstream.closer.n_sockets()), (0, 0));
    assert!(setup.a.peak() <= N_SLOTS, "{}", setup.a.peak());
    assert!(setup.a.n_accepted() > 200);
}

/// Returns a redirect with `Set-Cookie` headers.
fn redirect_with_cookies(location: &str, cookies: &[&str]) -> Behaviour {
    let lines: String = cookies.iter().map(|it| format!("Set-Cookie: {it}\r\n")).collect();
    let head = format!(
        "HTTP/1.1 302 Found\r\nLocation: {location}\r\n{lines}Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    Behaviour::Raw(head.into())
}

fn cookies_of(provider: &MemoryProvider, path: &str) -> Vec<Option<String>> {
    let requests = provider.requests().into_iter().filter(|it| it.path == path);
    let cookie = |it: &String| it.strip_prefix("Cookie: ").map(str::to_owned);
    requests.map(|it| it.headers.iter().find_map(cookie)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_cookie_of_a_redirect_is_sent_to_the_next_hop_of_the_same_site_only() {
    let setup = Setup::new();
    setup.a.set("/x", redirect_with_cookies("/live/1", &["session=s3; Path=/", "other=1; Path=/films"]));
    setup.a.set("/live/1", redirect_with_cookies("http://b/2", &["seen=1"]));
    setup.b.set("/2", redirect_with_cookies("http://a/live/3", &["session=b; Domain=a", "b=1"]));
    setup.a.set("/live/3", Behaviour::play("x"));
    drop(setup.open("http://a/x").await.unwrap());
    assert_eq!(cookies_of(&setup.a, "/x"), [None]);
    assert_eq!(cookies_of(&setup.a, "/live/1"), [Some("session=s3".to_owned())]);
    assert_eq!(cookies_of(&setup.b, "/2"), [None]);
    assert_eq!(cookies_of(&setup.a, "/live/3"), [Some("seen=1; session=s3".to_owned())]);
    // The next attempt begins without cookies.
    setup.is_clean().await;
    drop(setup.open("http://a/x").await.unwrap());
    assert_eq!(cookies_of(&setup.a, "/x"), [None, None]);
    setup.is_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_redirect_to_the_same_address_is_a_loop_only_if_no_cookie_changed() {
    let setup = Setup::new();
    setup.a.script("/x", [redirect_with_cookies("/x", &["checked=1"]), Behaviour::play("x")]);
    drop(setup.open("http://a/x").await.unwrap());
    setup.is_clean().await;
    setup.a.set("/x", redirect_with_cookies("/x", &["checked=1"]));
    assert_eq!(setup.failure("http://a/x").await.0, Cause::RedirectLoop);
    let n_before = setup.a.requests().len();
    setup.a.script("/x", (0..9).map(|n| redirect_with_cookies("/x", &[&format!("n={n}")])));
    assert_eq!(setup.failure("http://a/x").await.0, Cause::TooManyRedirects);
    assert_eq!(setup.a.requests().len() - n_before, setup.upstream.settings.redirects_max + 1);
}

/// Returns a reader of playlists whose program prints a transport stream, and the playlists that it was asked to read.
fn playlist_reader(folder: &std::path::Path) -> (PlaylistReader, Arc<Mutex<Vec<PlaylistAddress>>>) {
    let file = folder.join("ts");
    let stream = TsSource::new("segments").bytes(Duration::ZERO, Duration::from_secs(2));
    std::fs::write(&file, stream).unwrap();
    let asked: Arc<Mutex<Vec<PlaylistAddress>>> = Arc::default();
    let list = asked.clone();
    let reader: PlaylistReader = Arc::new(move |address| {
        list.lock().push(address.clone());
        vec!["cat".to_owned(), file.display().to_string()]
    });
    (reader, asked)
}

/// Returns a response with an HLS playlist that the gateway cannot read itself.
fn open_playlist() -> Behaviour {
    Behaviour::Raw(
        "HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\n\r\n\r\n#EXTM3U\n#EXT-X-MAP:URI=\"i.mp4\"\n#EXTINF:2,\n1.m4s\n"
            .into(),
    )
}

// In real time, because a program runs.
#[tokio::test]
async fn a_playlist_behind_any_address_is_read_by_a_program_with_the_same_permit_and_no_second_connection() {
    let setup = Setup::new();
    let folder = tempfile::tempdir().unwrap();
    let (reader, asked) = playlist_reader(folder.path());
    setup.a.set("/live/1", redirect_with_cookies("http://b/x%20?t=1", &["a=1"]));
    setup.b.set("/x%20?t=1", redirect_with_cookies("/live/2", &["token=t; Path=/"]));
    setup.b.set("/live/2", open_playlist());
    let request = OpenRequest {
        url: "http://a/live/1".into(),
        playlist_reader: Some(reader),
        ..OpenRequest::default()
    };
    let mut source = setup.open_request(request).await.unwrap();
    let (info, asked) = (source.info().clone(), asked.lock().clone());
    assert_eq!(
        (info.place.as_str(), info.n_redirects, info.known.playlist),
        ("cat", 2, Some(PlaylistFormat::Hls))
    );
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].url.as_str(), asked[0].is_trusted), ("http://b/live/2", false));
    assert_eq!(asked[0].cookies, ["token=t; path=/; domain=b"]);
    assert_eq!((setup.a.n_held(), setup.b.n_held()), (0, 0), "the gateway's own connections are closed");
    assert_eq!((setup.permits.n_out(), setup.permits.n_closing()), (1, 0), "the program holds the permit");
    let (bytes, _) = read_bytes(&mut source, 100_000).await;
    assert_eq!(labels_in(&bytes), ["segments"]);
    drop(source);
    setup.is_clean().await;
}

#[tokio::test]
async fn a_program_plays_the_variant_with_the_picture_of_a_list_whose_sound_is_apart() {
    let setup = Setup::new();
    let folder = tempfile::tempdir().unwrap();
    let (reader, asked) = playlist_reader(folder.path());
    let sound = "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"x\",URI=\"a.m3u8\"";
    let list = format!(
        "#EXTM3U\n{sound}\n#EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS=\"mp4a.40.2\"\na.m3u8\n\
         #EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=640x360,AUDIO=\"a\"\nv.m3u8\n"
    );
    setup.a.set("/x", Behaviour::Raw(format!("HTTP/1.1 200 OK\r\n\r\n{list}").into()));
    // The gateway chooses a variant itself, whose segments it cannot read.
    let whole = list.replace(",AUDIO=\"a\"", "");
    setup.a.set("/y", Behaviour::Raw(format!("HTTP/1.1 200 OK\r\n\r\n{whole}").into()));
    setup.a.set("/v.m3u8", open_playlist());
    for path in ["x", "y"] {
        let url = format!("http://a/{path}");
        let request = OpenRequest { url, playlist_reader: Some(reader.clone()), ..OpenRequest::default() };
        let source = setup.open_request(request).await.unwrap();
        assert_eq!((source.info().known.variant, asked.lock().last().unwrap().variant), (Some(1), Some(1)));
        drop(source);
        setup.is_clean().await;
    }
}

#[tokio::test]
async fn a_playlist_whose_program_fails_returns_its_permit() {
    let setup = Setup::new();
    setup.a.set("/x", open_playlist());
    for (command, label) in [(&["/bin/false"][..], "exited"), (&["no-such-program"][..], "program")] {
        let command: Vec<_> = command.iter().map(|it| (*it).to_owned()).collect();
        let request = OpenRequest {
            url: "http://a/x".into(),
            playlist_reader: Some(Arc::new(move |_| command.clone())),
            ..OpenRequest::default()
        };
        let error = setup.open_request(request).await.expect_err("should not open");
        assert_eq!(error.label(), label);
        setup.is_clean().await;
    }
    let error = setup.open("http://a/x").await.expect_err("should not open");
    assert_eq!(error.to_string(), "an HLS playlist with fMP4 segments needs ffmpeg, which is not installed");
    assert_eq!((error.side(), error.is_permanent()), (Side::Gateway, true));
    setup.is_clean().await;
}
