//! Tests of the reader of HLS with an in-memory provider and simulated time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use crate::closer::Closer;
use crate::error::{Cause, UpstreamError};
use crate::launcher::Launcher;
use crate::meter::InputCounts;
use crate::source::{OpenRequest, Source, SourceSettings, Upstream, open};
use crate::testing::{Behaviour, MemoryDial, MemoryProvider, PermitCount, TestPage, TsSource};

/// Duration of a segment.
const SEGMENT: Duration = Duration::from_secs(2);

struct Setup {
    a: MemoryProvider,
    b: MemoryProvider,
    upstream: Upstream,
    permits: PermitCount,
    /// A transport stream in parts of [`SEGMENT`].
    segments: Vec<Bytes>,
}

impl Setup {
    /// Creates providers, and a stream of 20 segments, which `a` sends as `/0.ts`, `/1.ts` and so on.
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
        let stream = TsSource::new("hls");
        let segments: Vec<_> = (0..20).map(|it| stream.bytes(SEGMENT * it, SEGMENT)).collect();
        for (at, bytes) in segments.iter().enumerate() {
            a.set(&format!("/{at}.ts"), Behaviour::Page(TestPage::new(bytes.clone())));
        }
        Self { a, b, upstream, permits: PermitCount::default(), segments }
    }

    async fn open(&self) -> Result<Source, UpstreamError> {
        let request = OpenRequest { url: "http://a/list".into(), ..OpenRequest::default() };
        open(request, self.permits.permit(|| {}), self.upstream.clone()).await
    }

    /// Sets the versions of the playlist; the last one is repeated.
    fn lists(&self, texts: &[String]) {
        self.a.script("/list", texts.iter().map(|it| page(it)));
    }

    /// Reads everything until the source ends.
    async fn read(&self, source: &mut Source) -> (Vec<u8>, UpstreamError) {
        let mut all = Vec::new();
        loop {
            match timeout(Duration::from_secs(600), source.read()).await.expect("the source hangs") {
                Ok(bytes) => all.extend_from_slice(&bytes),
                Err(error) => return (all, error),
            }
        }
    }

    /// Opens and reads everything. Returns the numbers of the complete segments in the order in which they arrived, and the
    /// cause of the end.
    async fn plays(&self) -> (Vec<usize>, Cause) {
        let mut source = self.open().await.unwrap_or_else(|error| panic!("failed to open: {error}"));
        let (all, error) = self.read(&mut source).await;
        drop(source);
        self.is_clean().await;
        (self.numbers(&all), error.cause().clone())
    }

    fn numbers(&self, mut rest: &[u8]) -> Vec<usize> {
        let mut numbers = Vec::new();
        while !rest.is_empty() {
            let at = self.segments.iter().position(|it| rest.starts_with(it));
            let at = at.unwrap_or_else(|| panic!("{} bytes after {numbers:?} are not a segment", rest.len()));
            numbers.push(at);
            rest = &rest[self.segments[at].len()..];
        }
        numbers
    }

    async fn is_clean(&self) {
        self.upstream.closer.idle().await;
        assert_eq!((self.permits.n_out(), self.a.n_held() + self.b.n_held()), (0, 0));
        assert!(self.a.peak() <= 1 && self.b.peak() <= 1, "two connections at the same time");
    }

    /// Returns the paths that `a` was asked for.
    fn paths(&self) -> Vec<String> {
        self.a.requests().into_iter().map(|it| it.path).collect()
    }
}

fn page(text: &str) -> Behaviour {
    Behaviour::Page(TestPage::new(text.to_owned()))
}

/// Returns a playlist of these segments.
fn list(numbers: std::ops::Range<usize>) -> String {
    let segments: String = numbers.clone().map(|it| format!("#EXTINF:2,\n{it}.ts\n")).collect();
    format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:{}\n{segments}", numbers.start)
}

fn ended(numbers: std::ops::Range<usize>) -> String {
    format!("{}#EXT-X-ENDLIST\n", list(numbers))
}

#[tokio::test(start_paused = true)]
async fn a_live_playlist_is_followed_from_three_segments_before_its_end_over_one_kept_connection() {
    let setup = Setup::new();
    setup.lists(&[list(0..5), list(1..6), list(3..8), ended(4..9)]);
    let mut source = setup.open().await.unwrap();
    assert_eq!((source.info().place.as_str(), source.info().known.playlist), ("a:80", None));
    assert_eq!(setup.permits.n_delivered(), 1);
    let (all, error) = setup.read(&mut source).await;
    assert_eq!((setup.numbers(&all), error.cause()), ((2..9).collect(), &Cause::Ended));
    assert!(source.is_complete(), "a list that has ended");
    // The first response is closed by its server, as for any other stream.
    assert_eq!(setup.a.n_accepted(), 2);
    drop(source);
    setup.is_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_stale_playlist_ends_the_source_after_three_target_durations() {
    let setup = Setup::new();
    setup.lists(&[list(0..3)]);
    let began = Instant::now();
    assert_eq!(setup.plays().await, (vec![0, 1, 2], Cause::Stall));
    assert_eq!(began.elapsed().as_secs(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_segment_that_breaks_off_is_continued_at_the_next_byte() {
    for has_ranges in [true, false] {
        let setup = Setup::new();
        setup.lists(&[ended(0..3)]);
        let whole = TestPage { has_ranges, ..TestPage::new(setup.segments[1].clone()) };
        let cut = |n| Behaviour::Page(TestPage { cut_after: Some(n), ..whole.clone() });
        let second = cut(if has_ranges { 5_000 } else { 9_000 });
        setup.a.script("/1.ts", [cut(1_000), second, Behaviour::Page(whole.clone())]);
        assert_eq!(setup.plays().await, (vec![0, 1, 2], Cause::Ended), "ranges: {has_ranges}");
        let requests = setup.a.requests();
        let ranges: Vec<_> = requests.iter().filter_map(|it| it.header("range")).collect();
        assert_eq!(ranges[0], "bytes=1000-", "{ranges:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_segment_that_stays_missing_is_requested_again_and_then_skipped() {
    let setup = Setup::new();
    setup.lists(&[ended(0..4)]);
    setup.a.script("/1.ts", [Behaviour::Status(503), page_of(&setup, 1)]);
    setup.a.set("/2.ts", Behaviour::Status(404));
    let mut source = setup.open().await.unwrap();
    let (all, _) = setup.read(&mut source).await;
    assert_eq!(setup.numbers(&all), [0, 1, 3]);
    let counts = InputCounts { segments_read: 3, segments_skipped: 1, lost_datagrams: 0 };
    assert_eq!(source.take_counts(), counts);
    assert_eq!(source.take_counts(), InputCounts::default());
    assert_eq!(setup.paths().iter().filter(|it| *it == "/2.ts").count(), 4);
    drop(source);
    setup.is_clean().await;
}

fn page_of(setup: &Setup, number: usize) -> Behaviour {
    Behaviour::Page(TestPage::new(setup.segments[number].clone()))
}

#[tokio::test(start_paused = true)]
async fn segments_may_be_ranges_of_one_file_on_another_server_behind_redirects_with_cookies() {
    let setup = Setup::new();
    let file: Vec<u8> = setup.segments[..3].concat();
    let mut text = String::from("#EXTM3U\n#EXT-X-TARGETDURATION:2\n");
    let mut at = 0;
    for segment in &setup.segments[..3] {
        let start = if at == 0 { "@0" } else { "" };
        text.push_str(&format!("#EXTINF:2,\n#EXT-X-BYTERANGE:{}{start}\nhttp://b/go?t=1\n", segment.len()));
        at += segment.len();
    }
    setup.lists(&[format!("{text}#EXT-X-ENDLIST")]);
    let redirect = TestPage {
        status: 302,
        headers: "Location: /file?x=1\r\nSet-Cookie: token=t; Path=/\r\n".into(),
        has_ranges: false,
        ..TestPage::new("moved")
    };
    setup.b.set("/go?t=1", Behaviour::Page(redirect));
    let file = TestPage { cookie: Some("token=t".into()), ..TestPage::new(file) };
    setup.b.set("/file?x=1", Behaviour::Page(file));
    assert_eq!(setup.plays().await, (vec![0, 1, 2], Cause::Ended));
    assert_eq!(setup.b.n_accepted(), 1, "the connection is kept for all segments and redirects");
    // Without ranges the server sends the whole file each time.
    let setup = Setup::new();
    let whole = TestPage { has_ranges: false, ..TestPage::new(setup.segments[..3].concat()) };
    setup.b.set("/go?t=1", Behaviour::Page(whole));
    setup.lists(&[format!("{text}#EXT-X-ENDLIST")]);
    assert_eq!(setup.plays().await, (vec![0, 1, 2], Cause::Ended));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_the_server_closes_between_two_requests_is_opened_again() {
    for is_closing in [true, false] {
        let setup = Setup::new();
        setup.lists(&[ended(0..4)]);
        for number in [0, 2] {
            let page = TestPage::new(setup.segments[number].clone());
            let page = TestPage { is_closing, closes_unexpectedly: !is_closing, ..page };
            setup.a.set(&format!("/{number}.ts"), Behaviour::Page(page));
        }
        assert_eq!(setup.plays().await, (vec![0, 1, 2, 3], Cause::Ended));
        assert_eq!(setup.paths(), ["/list", "/0.ts", "/1.ts", "/2.ts", "/3.ts"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_best_variant_plays_and_the_next_lower_one_when_it_fails() {
    let setup = Setup::new();
    let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000,RESOLUTION=1x360\nlow/list\n\
                  #EXT-X-STREAM-INF:BANDWIDTH=3000,RESOLUTION=1x1080\nhigh/list\n\
                  #EXT-X-STREAM-INF:BANDWIDTH=2000,RESOLUTION=1x720\n/middle/list\n";
    setup.lists(&[master.to_owned()]);
    setup.a.set("/high/list", Behaviour::Status(404));
    setup.a.set("/middle/list", page(&ended(0..6)));
    setup.a.set("/low/list", page(&ended(0..6)));
    for (folder, numbers) in [("middle", 0..2), ("low", 0..6)] {
        for number in numbers {
            setup.a.set(&format!("/{folder}/{number}.ts"), page_of(&setup, number));
        }
    }
    // The segments from the second one on are missing in the middle variant: three of them fail.
    assert_eq!(setup.plays().await, (vec![0, 1, 5], Cause::Ended));
    let paths = setup.paths();
    assert!(paths.contains(&"/low/5.ts".to_owned()) && !paths.contains(&"/low/1.ts".to_owned()), "{paths:?}");
    // A limit of the height.
    let mut setup = Setup::new();
    setup.upstream.settings.variant_limits.height_max = Some(400);
    setup.lists(&[master.to_owned()]);
    setup.a.set("/low/list", page(&ended(0..1)));
    setup.a.set("/low/0.ts", page_of(&setup, 0));
    assert_eq!(setup.plays().await, (vec![0], Cause::Ended));
}

#[tokio::test(start_paused = true)]
async fn a_playlist_that_fails_now_and_then_or_moves_is_requested_again() {
    let setup = Setup::new();
    setup.a.script(
        "/list",
        [Behaviour::Redirect("/token/1/list".into()), Behaviour::Redirect("/token/2/list".into())],
    );
    // The first token expires.
    setup.a.script(
        "/token/1/list",
        [
            page(&list(0..3).replace("\n0", "\n/0").replace("\n1", "\n/1").replace("\n2.", "\n/2.")),
            Behaviour::Status(403),
        ],
    );
    setup.a.set(
        "/token/2/list",
        page(&ended(0..4).replace(".ts", ".ts?t=2").replace("#EXTINF:2,\n", "#EXTINF:2,\n/")),
    );
    setup.a.set("/3.ts?t=2", page_of(&setup, 3));
    assert_eq!(setup.plays().await, (vec![0, 1, 2, 3], Cause::Ended));
}

#[tokio::test(start_paused = true)]
async fn a_start_that_fails_reports_the_reason() {
    let check = async |text: &str, expected: Cause| {
        let setup = Setup::new();
        setup.lists(&[text.to_owned()]);
        let error = setup.open().await.expect_err("should not open");
        assert_eq!(error.cause(), &expected, "{text}");
        setup.is_clean().await;
    };
    let missing = list(0..3).replace(".ts", ".missing");
    check(&missing, Cause::Status(404)).await;
    check(&list(0..0), Cause::FirstPacketTimeout).await;
    let needs = |what: &str| Cause::NeedsProgram(format!("an HLS playlist with {what}"));
    let encrypted = list(0..3).replace("#EXTINF", "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"k\"\n#EXTINF");
    check(&encrypted, needs("encryption SAMPLE-AES")).await;
    check(&list(0..3).replace("#EXTINF", "#EXT-X-MAP:URI=\"i\"\n#EXTINF"), needs("fMP4 segments")).await;
    check(&list(0..3).replace(".ts", ".ts:x://"), Cause::Status(404)).await;
}

#[tokio::test(start_paused = true)]
async fn a_source_that_is_dropped_at_any_moment_closes_its_connection_and_returns_its_permit() {
    for n_bytes in [0, 1, 200_000] {
        let setup = Setup::new();
        setup.lists(&[list(0..3)]);
        let mut source = setup.open().await.unwrap();
        let mut n_read = 0;
        while n_read < n_bytes {
            n_read += source.read().await.unwrap().len();
        }
        drop(source);
        setup.is_clean().await;
    }
    let setup = Setup::new();
    setup.lists(&[list(0..3)]);
    setup.a.set("/0.ts", Behaviour::NoAnswer);
    assert!(timeout(Duration::from_secs(1), setup.open()).await.is_err());
    setup.is_clean().await;
}
