//! HLS streams that the gateway reads itself, from a provider that has the faults of real ones and counts its connections.

use crate::support::gateway::Setup;
use crate::support::signal::Picture;
use crate::support::tools;
use crate::support::upstream::{MockResponse, Provider, RecordedRequest};

/// These need ffmpeg, which makes the segments.
mod slow {
    use std::collections::BTreeMap;
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tokio::time::Instant;

    use super::*;
    use crate::support::upstream::Cut;

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
            Self::from_segments(segments("160x90", &[]).await)
        }

        fn from_segments(segments: Vec<Vec<u8>>) -> Self {
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
        plays_at(Provider::start(), live, answer).await.0
    }

    /// Does the same, and asserts that the source was never opened again.
    async fn stays<F>(what: &str, live: &Live, answer: F) -> Provider
    where
        F: Fn(&Live, &RecordedRequest) -> Option<MockResponse> + Send + Sync + 'static,
    {
        let (provider, n_reconnects) = plays_at(Provider::start(), live, answer).await;
        assert_eq!(n_reconnects, 0, "{what}: {:?}", requested(&provider));
        provider
    }

    /// Plays the stream of this provider. Returns it, and the number of times that the source was opened again.
    async fn plays_at<F>(provider: Provider, live: &Live, answer: F) -> (Provider, usize)
    where
        F: Fn(&Live, &RecordedRequest) -> Option<MockResponse> + Send + Sync + 'static,
    {
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
        let n_reconnects = gateway.n_events("channel_reconnect");
        drop(player);
        gateway.until_idle().await;
        assert_eq!(provider.open(), 0);
        (provider, n_reconnects)
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

    /// Packagers list a variant of sound alone for slow lines, and some announce a track in each segment that only the other
    /// playlist sends.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_list_with_sound_apart_and_with_sound_alone_plays_with_picture_and_sound() {
        const VIDEO: u16 = 0x100;
        const AUDIO: u16 = 0x101;
        let whole = segments("160x90", &[]).await;
        let without = |dropped: u16| {
            let is_kept = |it: &&[u8]| u16::from_be_bytes([it[1] & 0x1F, it[2]]) != dropped;
            let strip = |it: &Vec<u8>| it.chunks(188).filter(is_kept).collect::<Vec<_>>().concat();
            Live::from_segments(whole.iter().map(strip).collect())
        };
        let (video, audio) = (without(AUDIO), without(VIDEO));
        let sound = "#EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS=\"mp4a.40.2\"\naudio/list.m3u8\n";
        let picture = "#EXT-X-STREAM-INF:BANDWIDTH=900000,CODECS=\"avc1.4d401f,mp4a.40.2\",RESOLUTION=160x90,\
                       AUDIO=\"aac\"\nvideo/list.m3u8\n";
        let group =
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"aac\",NAME=\"x\",DEFAULT=YES,URI=\"audio/list.m3u8\"\n";
        for variants in [[sound, picture], [picture, sound]] {
            let provider = Provider::start();
            let master = format!("#EXTM3U\n{group}{}", variants.concat());
            let began = Instant::now();
            let (video, audio) = (Live { began, ..video.clone() }, Live { began, ..audio.clone() });
            provider.computes(move |request| match request.path.split('?').next()? {
                "/live/anna/master.m3u8" => {
                    Some(MockResponse::text("application/vnd.apple.mpegurl", master.clone()).kept())
                }
                path if path.starts_with("/live/anna/video/") => video.answer(request),
                path if path.starts_with("/live/anna/audio/") => audio.answer(request),
                _ => None,
            });
            let list = provider.playlist(&[("news", "News", "/live/anna/master.m3u8")]);
            let gateway = Setup::new().list(&list).start().await;
            let player = gateway.watch("News").await;
            player.until("six seconds", |r| r.ts.programme_seconds() > 6.0).await;
            let recorded = player.received(|r| r.bytes.clone());
            let shown =
                ["-v", "error", "-show_entries", "stream=codec_name", "-of", "default=nw=1:nk=1", "-i", "-"];
            let output = tools::run_with_input("ffprobe", &shown, &recorded).await;
            let codecs = String::from_utf8_lossy(&output.stdout).into_owned();
            // Those of the programme come first.
            assert!(codecs.starts_with("h264\naac\n"), "{variants:?}: {codecs}");
            drop(player);
            gateway.until_idle().await;
        }
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
        let encrypted = Live::from_segments(segments("160x90", &["-hls_key_info_file", &info]).await);
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
        let mixed = Live::from_segments(mixed);
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

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_recording_of_two_seconds_as_playlist_repeats_at_the_rate_of_its_programme() {
        let live = Live::new().await;
        let provider = plays(&live, |live, request| match name(request) {
            "list.m3u8" => {
                let segments: String = (0..2).map(|n| format!("#EXTINF:1,\n{n}.ts\n")).collect();
                let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n{segments}#EXT-X-ENDLIST\n");
                Some(MockResponse::text("application/x-mpegurl", text).kept())
            }
            other => live.segment(number(other)?),
        })
        .await;
        let n_lists = provider.requests().iter().filter(|it| name(it) == "list.m3u8").count();
        // Eight seconds have played, and it may be read ahead.
        assert!((4..=40).contains(&n_lists), "{n_lists}");
        let requested = requested(&provider);
        assert!(
            n_lists - requested[&0] <= 1 && requested[&0] - requested[&1] <= 1,
            "{n_lists} {requested:?}"
        );
    }

    /// Answers requests for one name in the first way once, and then as a provider without faults.
    fn once(
        name_of_fault: &'static str,
        fault: impl Fn(&Live) -> MockResponse + Send + Sync + 'static,
    ) -> impl Fn(&Live, &RecordedRequest) -> Option<MockResponse> + Send + Sync + 'static {
        let n_asked = AtomicUsize::new(0);
        move |live, request| {
            let is_it = name(request) == name_of_fault && n_asked.fetch_add(1, Ordering::Relaxed) == 0;
            if is_it { Some(fault(live)) } else { live.answer(request) }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_segment_that_fails_once_in_any_way_is_not_lost() {
        let live = Live::new().await;
        let status = |code| once("7.ts", move |_| MockResponse::status(code).kept());
        // Half of the segment, with the length of all of it.
        let half = |cut| {
            once("7.ts", move |live| {
                let whole = MockResponse::text("video/mp2t", live.segments[7].clone());
                whole.until(live.segments[7].len() as u64 / 2, cut)
            })
        };
        let page = once("7.ts", |_| MockResponse::status(502).kept());
        let empty = once("7.ts", |_| MockResponse::text("video/mp2t", "").kept());
        let ((missing, gone, refused, broken), (ended, reset, page, empty)) = tokio::join!(
            async {
                tokio::join!(
                    stays("404", &live, status(404)),
                    stays("410", &live, status(410)),
                    stays("403", &live, status(403)),
                    stays("503", &live, status(503))
                )
            },
            async {
                tokio::join!(
                    stays("cut off", &live, half(Cut::End)),
                    stays("reset", &live, half(Cut::Reset)),
                    stays("502", &live, page),
                    stays("empty", &live, empty)
                )
            }
        );
        for provider in [missing, gone, refused, broken, ended, reset, page, empty] {
            let requested = requested(&provider);
            assert_eq!((requested[&7], requested[&8]), (2, 1), "{requested:?}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn playlists_that_are_wrong_now_and_then_or_written_strangely_are_understood() {
        let live = Live::new().await;
        // Each second request for the playlist is answered with something else.
        let n_lists = AtomicUsize::new(0);
        let wrong = move |live: &Live, request: &RecordedRequest| {
            let number =
                if name(request) == "list.m3u8" { n_lists.fetch_add(1, Ordering::Relaxed) } else { 0 };
            let list = |text: &str| MockResponse::text("application/vnd.apple.mpegurl", text).kept();
            match number % 12 {
                1 => Some(MockResponse::html()),
                3 => Some(list("")),
                5 => Some(MockResponse::status(502).kept()),
                7 => Some(list("#EXTM3U\n#EXT-X-TARGETDURATION:1\n")),
                9 => Some(list("#EXTM3U\n#EXT-X-TARG")),
                11 => Some(MockResponse::status(404).kept()),
                _ => live.answer(request),
            }
        };
        // With a byte order mark, line ends of Windows, tags in lower case, dates that jump, numbers of discontinuities that
        // start again, and without durations.
        let strange = |live: &Live, request: &RecordedRequest| match name(request) {
            "list.m3u8" => {
                let lines = |n: usize| {
                    let day = 10 + n * 7 % 18;
                    format!(
                        "#EXT-X-PROGRAM-DATE-TIME:2026-01-{day}T00:00:00Z\r\n\r\n# comment\r\n  {n}.ts  \r\n"
                    )
                };
                let segments: String = live.listed().map(lines).collect();
                let (start, n) = (live.listed().start, live.n_segments() % 3);
                let text = format!(
                    "\u{feff}#EXTM3U\r\n#ext-x-version:99\r\n#EXT-X-TARGETDURATION: 1.0 \r\n#EXT-X-UNKNOWN\r\n\
                     #EXT-X-MEDIA-SEQUENCE:{start}.0\r\n#EXT-X-DISCONTINUITY-SEQUENCE:{n}\r\n{segments}"
                );
                Some(MockResponse::text("text/plain", text).kept())
            }
            other => live.segment(number(other)?),
        };
        // Compressed although nobody asked for it.
        let packed = |live: &Live, request: &RecordedRequest| match name(request) {
            "list.m3u8" => {
                let lines = live.listed().map(|n| format!("#EXTINF:1.0,\n{n}.ts\n"));
                let text = format!(
                    "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:{}\n{}",
                    live.listed().start,
                    lines.collect::<String>()
                );
                let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
                packer.write_all(text.as_bytes()).unwrap();
                let body = packer.finish().unwrap();
                let answer = MockResponse::text("application/vnd.apple.mpegurl", body).kept();
                Some(answer.with_header("Content-Encoding", "gzip"))
            }
            other => live.segment(number(other)?),
        };
        let declares = |target: &'static str| {
            move |live: &Live, request: &RecordedRequest| match name(request) {
                "list.m3u8" => {
                    let lines = live.listed().map(|n| format!("#EXTINF:1.0,\n{n}.ts\n"));
                    let text = format!(
                        "#EXTM3U\n{target}#EXT-X-MEDIA-SEQUENCE:{}\n{}",
                        live.listed().start,
                        lines.collect::<String>()
                    );
                    Some(MockResponse::text("application/x-mpegurl", text).kept())
                }
                other => live.segment(number(other)?),
            }
        };
        let (wrong, strange, packed, (none, zero, huge)) = tokio::join!(
            stays("wrong", &live, wrong),
            stays("strange", &live, strange),
            stays("packed", &live, packed),
            async {
                tokio::join!(
                    stays("no target", &live, declares("")),
                    stays("target 0", &live, declares("#EXT-X-TARGETDURATION:0\n")),
                    stays("huge target", &live, declares("#EXT-X-TARGETDURATION:86400\n"))
                )
            }
        );
        for provider in [wrong, strange, packed, none, zero, huge] {
            assert_in_order(&provider);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_encoder_that_starts_again_and_servers_that_are_behind_stay_one_stream() {
        let live = Live::new().await;
        let other = segments("160x90", &["-output_ts_offset", "7000"]).await;
        let mut both = live.segments[..9].to_vec();
        both.extend_from_slice(&other[..20]);
        let both = Live::from_segments(both);
        // Numbers and names begin again without a discontinuity, and the old segments are gone.
        let again = |live: &Live, request: &RecordedRequest| match name(request) {
            "list.m3u8" if live.n_segments() <= 9 => Some(live.plain_list()),
            "list.m3u8" => {
                let lines = (9..live.n_segments()).map(|n| format!("#EXTINF:1.0,\nnew-{n}.ts\n"));
                let text = format!(
                    "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:0\n{}",
                    lines.collect::<String>()
                );
                Some(MockResponse::text("application/x-mpegurl", text).kept())
            }
            other => {
                let is_new = other.starts_with("new-");
                let number = number(other.trim_start_matches("new-"))?;
                (is_new == (number >= 9)).then(|| live.segment(number)).flatten()
            }
        };
        // Every second answer comes from a server that is two segments behind.
        let n_lists = AtomicUsize::new(0);
        let behind = move |live: &Live, request: &RecordedRequest| match name(request) {
            "list.m3u8" => {
                let late = if n_lists.fetch_add(1, Ordering::Relaxed) % 2 == 1 { 2 } else { 0 };
                let (start, end) = (live.listed().start.saturating_sub(late), live.listed().end - late);
                let lines = (start..end).map(|n| format!("#EXTINF:1.0,\n{n}.ts\n"));
                let text = format!(
                    "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:{start}\n{}",
                    lines.collect::<String>()
                );
                Some(MockResponse::text("application/x-mpegurl", text).kept())
            }
            other => live.segment(number(other)?),
        };
        let (again, behind) = tokio::join!(stays("again", &both, again), stays("behind", &live, behind));
        assert_in_order(&behind);
        let n_new = again.requests().iter().filter(|it| name(it).starts_with("new-")).count();
        assert!(n_new >= 3, "{n_new}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn addresses_of_every_form_and_other_hosts_with_tokens_are_followed() {
        let live = Live::new().await;
        let forms = |live: &Live, request: &RecordedRequest| match name(request) {
            "list.m3u8" => {
                let host = request.header("host")?.to_owned();
                Some(live.list(live.listed().start, |n| {
                    let address = match n % 6 {
                        0 => format!("http://{host}/live/anna/{n}.ts"),
                        1 => format!("//{host}/live/anna/{n}.ts"),
                        2 => format!("/live/anna/{n}.ts?a=b&c=%2F"),
                        3 => format!("../anna/./{n}.ts#part"),
                        4 => format!("HTTP://{host}/live/anna/a%20b/{n}.ts"),
                        _ => format!("{n}.ts"),
                    };
                    format!("#EXTINF:1,\n{address}\n")
                }))
            }
            other => live.segment(number(other)?),
        };
        // The playlist is on another host, which wants the token of the redirect; its segments are relative to it.
        let (cdn, edge) = (Provider::start(), live.clone());
        let began = Live { began: Instant::now(), ..edge };
        cdn.computes(move |request| match name(request) {
            "list.m3u8" if request.path.ends_with("?token=t") => Some(began.plain_list()),
            other if request.path.starts_with("/edge/anna/") => began.segment(number(other)?),
            _ => Some(MockResponse::status(403)),
        });
        let place = cdn.url("/edge/anna/list.m3u8?token=t");
        let redirected = move |_: &Live, _: &RecordedRequest| Some(MockResponse::redirect(&place).kept());
        // Segments that begin with a picture, as hosts of pictures have them.
        let disguised = |live: &Live, request: &RecordedRequest| match name(request) {
            "list.m3u8" => {
                Some(live.list(live.listed().start, |n| format!("#EXTINF:1,\n{n}.ts?name={n}.png\n")))
            }
            other => {
                let number = number(other).filter(|it| *it < live.n_segments())?;
                let mut bytes =
                    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0IEND\xaeB`\x82".to_vec();
                bytes.extend_from_slice(&live.segments[number]);
                Some(MockResponse::text("image/png", bytes).kept())
            }
        };
        let (forms, redirected, disguised) = tokio::join!(
            stays("forms", &live, forms),
            stays("redirected", &live, redirected),
            stays("disguised", &live, disguised)
        );
        assert_in_order(&forms);
        assert_in_order(&cdn);
        assert_in_order(&disguised);
        assert_eq!((cdn.peak_of("anna"), redirected.requests().len()), (1, 1));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn keys_that_change_or_are_refused_once_and_ranges_without_positions_play() {
        let keys = [*b"the first key 16", *b"the second key16"];
        let folder = tempfile::tempdir().unwrap();
        let mut encrypted = Vec::new();
        for (n, key) in keys.iter().enumerate() {
            let (key_file, info) = (folder.path().join("key"), folder.path().join("info"));
            std::fs::write(&key_file, key).unwrap();
            std::fs::write(&info, format!("key\n{}\n", key_file.display())).unwrap();
            let all = segments("160x90", &["-hls_key_info_file", &info.display().to_string()]).await;
            encrypted.extend_from_slice(if n == 0 { &all[..9] } else { &all[9..] });
        }
        let encrypted = Live::from_segments(encrypted);
        let n_refused = AtomicUsize::new(0);
        let rotating = move |live: &Live, request: &RecordedRequest| match name(request) {
            "list.m3u8" => Some(live.list(live.listed().start, |n| {
                let key = if n < 9 { "first" } else { "second" };
                format!("#EXT-X-KEY:METHOD=AES-128,URI=\"{key}.key\"\n#EXTINF:1,\n{n}.ts\n")
            })),
            "first.key" => Some(MockResponse::text("application/octet-stream", keys[0]).kept()),
            "second.key" if n_refused.fetch_add(1, Ordering::Relaxed) == 0 => {
                Some(MockResponse::status(403).kept())
            }
            "second.key" => Some(MockResponse::text("binary/octet-stream", keys[1]).kept()),
            other => live.segment(number(other)?),
        };
        let plain = Live::new().await;
        // Only the first range of a playlist has a position; the others follow it.
        let ranges = |live: &Live, request: &RecordedRequest| match name(request) {
            "list.m3u8" => {
                let first = live.listed().start;
                let start: usize = live.segments[..first].iter().map(Vec::len).sum();
                Some(live.list(first, |n| {
                    let position = if n == first { format!("@{start}") } else { String::new() };
                    format!("#EXTINF:1,\n#EXT-X-BYTERANGE:{}{position}\nall.ts\n", live.segments[n].len())
                }))
            }
            _ => {
                let range = request.header("range")?.strip_prefix("bytes=")?;
                let (first, last) = range.split_once('-')?;
                let file = live.segments.concat();
                Some(MockResponse::part("video/mp2t", &file, first.parse().ok()?, last.parse().ok()?).kept())
            }
        };
        let (rotating, ranges) =
            tokio::join!(stays("keys", &encrypted, rotating), stays("ranges", &plain, ranges));
        assert_in_order(&rotating);
        let n_keys =
            |key: &str| rotating.requests().iter().filter(|it| name(it) == format!("{key}.key")).count();
        assert_eq!((n_keys("first"), n_keys("second")), (1, 2));
        let starts: Vec<_> =
            ranges.requests().iter().filter_map(|it| Some(it.header("range")?.to_owned())).collect();
        assert!(starts.len() >= 8 && starts.windows(2).all(|it| it[0] != it[1]), "{starts:?}");
    }
}
