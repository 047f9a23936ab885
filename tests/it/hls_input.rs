//! HLS streams that the gateway reads itself, from a provider that has the faults of real ones and counts its connections.

use crate::support::gateway::Setup;
use crate::support::signal::Picture;
use crate::support::tools;
use crate::support::upstream::{MockResponse, Provider, RecordedRequest};

/// These need ffmpeg, which makes the segments.
mod slow {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    /// Number of segments that a playlist lists.
    const WINDOW: usize = 5;
    /// Number of segments of one second that exist at the beginning.
    const AT_START: usize = 6;

    /// Makes segments of one second with ffmpeg.
    async fn segments(size: &str, options: &[&str]) -> Vec<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list.m3u8").display().to_string();
        let picture = format!("testsrc=size={size}:rate=25");
        let inputs = ["-f", "lavfi", "-i", &picture, "-f", "lavfi", "-i", "sine"];
        let codecs = ["-t", "40", "-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-c:a", "aac"];
        let muxer = ["-f", "hls", "-hls_time", "1", "-hls_list_size", "0"];
        let arguments = [&["-v", "error"][..], &inputs, &codecs, &muxer, options, &[file.as_str()]].concat();
        tools::text_of("ffmpeg", &arguments).await;
        let read = |n| std::fs::read(folder.path().join(format!("list{n}.ts"))).ok();
        let segments: Vec<_> = (0..).map_while(read).collect();
        assert_eq!(segments.len(), 40);
        segments
    }

    /// A live stream of a provider.
    #[derive(Clone)]
    struct Live {
        segments: Arc<Vec<Vec<u8>>>,
        began: Instant,
    }

    impl Live {
        async fn new() -> Self {
            Self::of(segments("160x90", &[]).await)
        }

        fn of(segments: Vec<Vec<u8>>) -> Self {
            Self { segments: Arc::new(segments), began: Instant::now() }
        }

        /// Returns the number of segments that exist.
        fn n_segments(&self) -> usize {
            (AT_START + self.began.elapsed().as_secs() as usize).min(self.segments.len())
        }

        /// Returns the numbers of the segments that are listed.
        fn listed(&self) -> std::ops::Range<usize> {
            let end = self.n_segments();
            end.saturating_sub(WINDOW)..end
        }

        /// Returns a playlist with this number of its first segment; `lines` returns the lines of a segment.
        fn list(&self, sequence: usize, lines: impl Fn(usize) -> String) -> MockResponse {
            let segments: String = self.listed().map(lines).collect();
            let head = format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:{sequence}\n");
            MockResponse::text("application/vnd.apple.mpegurl", head + &segments).kept()
        }

        /// Returns the playlist of a provider without faults.
        fn plain_list(&self) -> MockResponse {
            self.list(self.listed().start, |n| format!("#EXTINF:1.0,\n{n}.ts\n"))
        }

        fn segment(&self, number: usize) -> Option<MockResponse> {
            let bytes = self.segments.get(number).filter(|_| number < self.n_segments());
            bytes.map(|it| MockResponse::text("video/mp2t", it.clone()).kept())
        }

        /// Responds as a provider without faults.
        fn answer(&self, request: &RecordedRequest) -> Option<MockResponse> {
            match name(request) {
                "list.m3u8" => Some(self.plain_list()),
                other => self.segment(number(other)?),
            }
        }
    }

    /// Returns the last part of the path.
    fn name(request: &RecordedRequest) -> &str {
        let path = request.path.split('?').next().unwrap_or_default();
        path.rsplit('/').next().unwrap_or_default()
    }

    fn number(name: &str) -> Option<usize> {
        name.strip_suffix(".ts")?.parse().ok()
    }

    /// Plays a stream whose provider allows one connection, and checks what arrives. Returns the provider.
    async fn plays<F>(live: &Live, answer: F) -> Provider
    where
        F: Fn(&Live, &RecordedRequest) -> Option<MockResponse> + Send + Sync + 'static,
    {
        let provider = Provider::start();
        provider.limit("anna", 1, 403, Duration::ZERO);
        let live = Live { began: Instant::now(), ..live.clone() };
        provider.computes(move |request| answer(&live, request));
        let list = provider.playlist(&[("news", "News", "/live/anna/list.m3u8")]);
        let gateway = Setup::new().limited_list(&list, 1).start().await;
        let player = gateway.watch("News").await;
        player.until("eight seconds", |r| r.ts.programme_seconds() > 8.0).await;
        player.received(|r| r.ts.assert_clean());
        let overlaps = provider.overlaps("anna");
        assert_eq!((provider.peak_of("anna"), provider.refusals()), (1, 0), "{overlaps:?}");
        let is_own =
            |it: &RecordedRequest| it.header("user-agent").is_some_and(|it| it.starts_with("Headwater/"));
        assert!(provider.requests().iter().all(is_own), "a program read the stream");
        assert_eq!(gateway.n_events("channel_start"), 1);
        drop(player);
        gateway.until_idle().await;
        assert_eq!(provider.open(), 0);
        provider
    }

    /// Returns how often each segment was requested.
    fn requested(provider: &Provider) -> BTreeMap<usize, usize> {
        let mut requested = BTreeMap::new();
        for number in provider.requests().iter().filter_map(|it| number(name(it))) {
            *requested.entry(number).or_default() += 1;
        }
        requested
    }

    /// Asserts that segments were requested in order, each once, from three before the end on.
    fn assert_in_order(provider: &Provider) {
        let requested = requested(provider);
        let first = *requested.keys().next().unwrap();
        assert!((AT_START - 3..AT_START).contains(&first), "{requested:?}");
        let expected: BTreeMap<_, _> = (first..first + requested.len()).map(|it| (it, 1)).collect();
        assert_eq!(requested, expected);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_live_hls_stream_plays_over_one_connection_without_a_program() {
        let live = Live::new().await;
        let provider = plays(&live, Live::answer).await;
        assert_in_order(&provider);
        assert!(provider.accepted() <= 2, "{} connections", provider.accepted());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_slow_provider_and_one_that_closes_every_connection_lose_no_segment() {
        let live = Live::new().await;
        let slow =
            plays(&live, |live, request| Some(live.answer(request)?.after(Duration::from_millis(250))));
        let closing = plays(&live, |live, request| match name(request) {
            "list.m3u8" => Some(live.plain_list()),
            other => Some(MockResponse::text("video/mp2t", live.segments.get(number(other)?)?.clone())),
        });
        let (slow, closing) = tokio::join!(slow, closing);
        assert_in_order(&slow);
        assert_in_order(&closing);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn tokens_that_change_redirects_for_each_segment_and_cookies_are_followed() {
        let live = Live::new().await;
        let provider = plays(&live, |live, request| match name(request) {
            "list.m3u8" => {
                let token = live.began.elapsed().as_millis();
                let list =
                    live.list(live.listed().start, |n| format!("#EXTINF:1,\n/go/anna/{n}.ts?t={token}\n"));
                Some(list.with_header("Set-Cookie", &format!("session={token}; Path=/")))
            }
            _ if request.path.starts_with("/go/") => {
                let sent = request.header("cookie").unwrap_or_default().to_owned();
                let token = request.path.split_once("t=")?.1.to_owned();
                if sent != format!("session={token}") {
                    return Some(MockResponse::status(403));
                }
                Some(MockResponse::redirect(format!("/segments/anna/{}", name(request))).kept())
            }
            other if request.path.starts_with("/segments/") => live.segment(number(other)?),
            _ => None,
        })
        .await;
        let redirected = provider.requests().iter().filter(|it| it.path.starts_with("/go/")).count();
        assert!(redirected >= 6, "{redirected}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn encrypted_segments_and_ranges_of_one_file_play() {
        let key = *b"sixteen bytes ok";
        let folder = tempfile::tempdir().unwrap();
        let (key_file, info) = (folder.path().join("key"), folder.path().join("info"));
        std::fs::write(&key_file, key).unwrap();
        std::fs::write(&info, format!("key\n{}\n", key_file.display())).unwrap();
        let info = info.display().to_string();
        let encrypted = Live::of(segments("160x90", &["-hls_key_info_file", &info]).await);
        let plain = Live::new().await;
        let key_of = move |live: &Live, request: &RecordedRequest| match name(request) {
            // Without a vector, so that it is the number of the segment.
            "list.m3u8" => Some(live.list(live.listed().start, |n| {
                format!("#EXT-X-KEY:METHOD=AES-128,URI=\"key?u=anna\"\n#EXTINF:1,\n{n}.ts\n")
            })),
            "key" => Some(MockResponse::text("application/octet-stream", key).kept()),
            other => live.segment(number(other)?),
        };
        let ranges = |live: &Live, request: &RecordedRequest| match name(request) {
            "list.m3u8" => Some(live.list(live.listed().start, |n| {
                let start: usize = live.segments[..n].iter().map(Vec::len).sum();
                format!("#EXTINF:1,\n#EXT-X-BYTERANGE:{}@{start}\nall.ts\n", live.segments[n].len())
            })),
            _ => {
                let range = request.header("range")?.strip_prefix("bytes=")?;
                let (first, last) = range.split_once('-')?;
                let file = live.segments.concat();
                Some(MockResponse::part("video/mp2t", &file, first.parse().ok()?, last.parse().ok()?).kept())
            }
        };
        let (encrypted, _) = tokio::join!(plays(&encrypted, key_of), plays(&plain, ranges));
        assert_in_order(&encrypted);
        let n_keys = encrypted.requests().iter().filter(|it| name(it) == "key").count();
        assert_eq!(n_keys, 1, "the key is remembered");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn other_streams_after_a_discontinuity_and_numbers_that_start_again_stay_one_stream() {
        let live = Live::new().await;
        let mut mixed = live.segments[..9].to_vec();
        let other = segments("320x180", &["-output_ts_offset", "5000", "-streamid", "0:0x200"]).await;
        mixed.extend_from_slice(&other[..20]);
        let mixed = Live::of(mixed);
        let discontinuity = |live: &Live, request: &RecordedRequest| match name(request) {
            "list.m3u8" => Some(live.list(live.listed().start, |n| {
                let tag = if n == 9 { "#EXT-X-DISCONTINUITY\n" } else { "" };
                format!("{tag}#EXTINF:1,\n{n}.ts\n")
            })),
            other => live.segment(number(other)?),
        };
        let restart = |live: &Live, request: &RecordedRequest| match name(request) {
            "list.m3u8" => {
                let start = live.listed().start;
                Some(
                    live.list(if start < 4 { start } else { start - 4 }, |n| format!("#EXTINF:1,\n{n}.ts\n")),
                )
            }
            other => live.segment(number(other)?),
        };
        let (mixed, restarted) = tokio::join!(plays(&mixed, discontinuity), plays(&live, restart));
        assert_in_order(&mixed);
        assert_in_order(&restarted);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_missing_segment_is_requested_again_and_then_left_out() {
        let live = Live::new().await;
        let provider = plays(&live, |live, request| match name(request) {
            "8.ts" => Some(MockResponse::status(404).kept()),
            _ => live.answer(request),
        })
        .await;
        let requested = requested(&provider);
        assert!((2..=4).contains(&requested[&8]) && requested[&9] == 1, "{requested:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_playlist_that_never_changes_is_left_for_the_next_stream() {
        let live = Live::new().await;
        let provider = Provider::start();
        let began = Instant::now();
        provider.computes(move |request| {
            let live = Live {
                began: if began.elapsed().as_secs() < 4 { began } else { Instant::now() },
                ..live.clone()
            };
            live.answer(request)
        });
        provider.path("/second.ts").plays(Picture::new("second"));
        let entries = [("news", "News", "/live/anna/list.m3u8"), ("news", "News backup", "/second.ts")];
        let gateway = Setup::new().limited_list(&provider.playlist(&entries), 1).start().await;
        let player = gateway.watch("News").await;
        player.sees("second").await;
        player.received(|r| r.ts.assert_clean());
        drop(player);
        gateway.until_idle().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_recording_as_playlist_is_played_to_its_end_and_opened_again() {
        let live = Live::new().await;
        let provider = plays(&live, |live, request| match name(request) {
            "list.m3u8" => {
                let segments: String = (0..7).map(|n| format!("#EXTINF:1,\n{n}.ts\n")).collect();
                let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n{segments}#EXT-X-ENDLIST\n");
                Some(MockResponse::text("application/x-mpegurl", text))
            }
            other => live.segment(number(other)?),
        })
        .await;
        assert_eq!(provider.requests().iter().filter(|it| name(it) == "list.m3u8").count(), 2);
    }
}
