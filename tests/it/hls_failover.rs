//! Failovers while players of HLS and fMP4 watch: strict checks of everything that they can fetch, and real decoders.

/// These need ffmpeg and take as long as the segments that they play.
mod slow {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Duration;

    use media::SegmentContainer;
    use media::testing::{HlsChecker, boxes};
    use serde_json::{Value, json};
    use tokio::time::{Instant, sleep};

    use crate::hls_output::{BROWSER_STATE, Watching, open, play_in_browser};
    use crate::support::client::Player;
    use crate::support::gateway::{Setup, TestGateway};
    use crate::support::signal::Clip;
    use crate::support::upstream::{Cut, MockResponse, Provider};
    use crate::support::web::Web;
    use crate::support::{WAIT_MAX, tools};

    /// The parameters of the masters of three players: old ones, browsers, and those with low latency.
    const PLAYERS: [(&str, SegmentContainer); 3] = [
        ("container=ts", SegmentContainer::Ts),
        ("container=fmp4", SegmentContainer::Fmp4),
        ("ll=1", SegmentContainer::Fmp4),
    ];
    const H264: [&str; 4] = ["-c:v", "libx264", "-preset", "ultrafast"];
    const HEVC: [&str; 6] =
        ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:keyint=25:min-keyint=25"];
    const MPEG2: [&str; 4] = ["-c:v", "mpeg2video", "-b:v", "1M"];

    /// Makes forty seconds with a key frame in each second.
    async fn clip(name: &str, picture: &str, video: &[&str], sound: &str) -> Arc<Clip> {
        clip_of_size(name, picture, "320x180", video, sound).await
    }

    async fn clip_of_size(name: &str, picture: &str, size: &str, video: &[&str], sound: &str) -> Arc<Clip> {
        let picture = format!("{picture}=size={size}:rate=25");
        let inputs = ["-f", "lavfi", "-i", &picture, "-f", "lavfi", "-i", "sine=sample_rate=48000"];
        let common = ["-t", "40", "-pix_fmt", "yuv420p", "-g", "25", "-ac", "2", "-c:a", sound];
        Clip::make(name, &inputs, &[&common[..], video].concat()).await
    }

    /// Starts a gateway with a channel that has these streams.
    async fn set_up(clips: &[Arc<Clip>]) -> (Provider, TestGateway) {
        let provider = Provider::start();
        let paths: Vec<String> = (0..clips.len()).map(path_of).collect();
        for (path, clip) in paths.iter().zip(clips) {
            provider.path(path).plays(Arc::clone(clip));
        }
        let entries: Vec<_> = paths.iter().map(|it| ("news", "News", it.as_str())).collect();
        let gateway = Setup::new().list(&provider.playlist(&entries)).start().await;
        (provider, gateway)
    }

    fn path_of(stream: usize) -> String {
        format!("/{stream}.ts")
    }

    /// Ends a stream for ever.
    fn fail(provider: &Provider, stream: usize) {
        provider.path(&path_of(stream)).answers(MockResponse::status(404)).cut(Cut::Reset);
    }

    /// A player that fetches everything once, and checks all of it.
    struct Follower<'a> {
        watching: Watching<'a>,
        query: &'static str,
        container: SegmentContainer,
        checker: HlsChecker,
        /// Number of playlists that were read.
        n_playlists: u64,
        /// Number of the first segment in the newest playlist.
        first: u64,
        inits: BTreeMap<String, Vec<u8>>,
        parts: BTreeMap<(u64, usize), Vec<u8>>,
        segments: BTreeMap<u64, Vec<u8>>,
    }

    impl<'a> Follower<'a> {
        async fn begin(
            gateway: &'a TestGateway,
            (query, container): (&'static str, SegmentContainer),
        ) -> Follower<'a> {
            let path = format!("{}?{query}", open(gateway, "News"));
            Follower {
                watching: Watching::begin(gateway, &path, query).await,
                query,
                container,
                checker: HlsChecker::new(),
                n_playlists: 0,
                first: 0,
                inits: BTreeMap::new(),
                parts: BTreeMap::new(),
                segments: BTreeMap::new(),
            }
        }

        /// Plays until a condition holds.
        async fn play_until(&mut self, what: &str, condition: impl Fn(&Follower<'_>) -> bool) {
            let deadline = Instant::now() + 2 * WAIT_MAX;
            while !condition(self) {
                assert!(Instant::now() < deadline, "{}: timeout waiting for {what}", self.query);
                self.step().await;
            }
        }

        /// Reads the next version of the playlist, and everything new that it names.
        async fn step(&mut self) {
            let text = self.next_playlist().await;
            self.n_playlists += 1;
            let first = text.lines().find_map(|it| it.strip_prefix("#EXT-X-MEDIA-SEQUENCE:")).unwrap();
            self.first = first.parse().unwrap();
            self.checker.playlist(&text);
            let listed = self.checker.parts().iter().map(|it| (*it.0, it.1.uri.clone()));
            let new: Vec<_> = listed.filter(|it| !self.parts.contains_key(&it.0)).collect();
            for (place, uri) in new {
                let bytes = self.fetched(&uri).await;
                let names: Vec<_> = boxes(&bytes).iter().map(|it| it.0).collect();
                // The type of the segment is in its first part.
                let n_types = usize::from(place.1 == 0);
                assert_eq!(names, [*b"styp", *b"moof", *b"mdat"][1 - n_types..], "{place:?}");
                self.parts.insert(place, bytes);
            }
            let from = self.newest_read().map_or(0, |it| it + 1);
            let listed: Vec<_> =
                self.checker.segments().range(from..).map(|it| (*it.0, it.1.clone())).collect();
            for (number, segment) in listed {
                if let Some(map) = segment.map.filter(|it| !self.inits.contains_key(it)) {
                    let bytes = self.fetched(&map).await;
                    assert_eq!(boxes(&bytes).iter().map(|it| it.0).collect::<Vec<_>>(), [*b"ftyp", *b"moov"]);
                    self.inits.insert(map, bytes);
                }
                let bytes = self.fetched(&segment.uri).await;
                match self.container {
                    SegmentContainer::Ts => self.checker.ts_segment(number, &bytes),
                    SegmentContainer::Fmp4 => self.checker.fmp4_segment(number, &bytes),
                }
                let parts: Vec<u8> =
                    self.parts.range((number, 0)..(number + 1, 0)).flat_map(|it| it.1.clone()).collect();
                assert!(bytes.ends_with(&parts), "{}: segment {number} is its parts", self.query);
                assert!(self.newest_read().is_none_or(|it| it + 1 == number), "no segment is left out");
                self.segments.insert(number, bytes);
            }
        }

        /// Waits for the next part with low latency, and for a moment otherwise.
        async fn next_playlist(&self) -> String {
            let newest = self.checker.segments().last_key_value().map(|it| *it.0);
            if let Some(newest) = newest.filter(|_| self.query == "ll=1") {
                let n_parts = self.checker.parts().range((newest + 1, 0)..).count();
                let skip = if self.n_playlists.is_multiple_of(2) { "&_HLS_skip=YES" } else { "" };
                let name = format!("index.m3u8?_HLS_msn={}&_HLS_part={n_parts}{skip}", newest + 1);
                let answer = self.watching.fetch(&name).await;
                if answer.status() == 200 {
                    return answer.text();
                }
                assert_eq!(answer.status(), 503, "{name}: {}", answer.text());
            }
            sleep(Duration::from_millis(100)).await;
            self.watching.playlist().await
        }

        async fn fetched(&self, name: &str) -> Vec<u8> {
            let answer = self.watching.fetch(name).await;
            assert_eq!(answer.status(), 200, "{}: {name}: {}", self.query, answer.text());
            answer.bytes
        }

        fn newest_read(&self) -> Option<u64> {
            self.segments.last_key_value().map(|it| *it.0)
        }

        /// Returns the numbers of the segments that begin with a discontinuity.
        fn discontinuities(&self) -> Vec<u64> {
            self.checker.segments().iter().filter(|it| it.1.is_discontinuity).map(|it| *it.0).collect()
        }

        /// Returns the media between discontinuities, each as a decoder gets it.
        fn stretches(&self) -> Vec<Vec<u8>> {
            let mut stretches = BTreeMap::<u64, Vec<u8>>::new();
            for (number, bytes) in &self.segments {
                let listed = &self.checker.segments()[number];
                let init = || listed.map.as_ref().map(|it| self.inits[it].clone()).unwrap_or_default();
                stretches.entry(listed.discontinuity).or_insert_with(init).extend_from_slice(bytes);
            }
            stretches.into_values().collect()
        }
    }

    async fn followers(gateway: &TestGateway) -> [Follower<'_>; 3] {
        let [ts, fmp4, quick] = PLAYERS.map(|it| Follower::begin(gateway, it));
        tokio::join!(ts, fmp4, quick).into()
    }

    async fn all_play_until(
        followers: &mut [Follower<'_>; 3],
        what: &str,
        condition: impl Fn(&Follower<'_>) -> bool,
    ) {
        let [ts, fmp4, quick] = followers;
        tokio::join!(
            ts.play_until(what, &condition),
            fmp4.play_until(what, &condition),
            quick.play_until(what, &condition)
        );
    }

    /// Media that a decoder has read.
    struct Decoded {
        /// Sorted.
        codecs: Vec<String>,
        n_pictures: usize,
        /// The longest time between two pictures in seconds.
        longest_step: f64,
    }

    /// Decodes media, which must have no fault.
    async fn decoded(bytes: &[u8]) -> Decoded {
        let file = tools::saved(bytes);
        let path = file.path().display().to_string();
        let decoded =
            tools::run("ffmpeg", &["-v", "error", "-i", &path, "-map", "0", "-f", "null", "-"]).await;
        assert_eq!((decoded.status.success(), &*String::from_utf8_lossy(&decoded.stderr)), (true, ""));
        let shown = ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", &path];
        let text = tools::text_of("ffprobe", &shown).await;
        let mut codecs: Vec<String> =
            text.lines().map(|it| it.trim_matches(',').to_owned()).filter(|it| !it.is_empty()).collect();
        codecs.sort();
        codecs.dedup();
        let shown =
            ["-v", "error", "-select_streams", "v:0", "-show_entries", "frame=best_effort_timestamp_time"];
        let text = tools::text_of("ffprobe", &[&shown[..], &["-of", "csv=p=0", &path]].concat()).await;
        let times: Vec<f64> = text.lines().filter_map(|it| it.trim_matches(',').parse().ok()).collect();
        let longest_step = times.windows(2).map(|it| it[1] - it[0]).fold(0.0, f64::max);
        Decoded { codecs, n_pictures: times.len(), longest_step }
    }

    /// Holds T-view.6, as does the next test.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_failover_with_the_same_codecs_changes_nothing_for_players_of_hls() {
        let clips = [
            clip("failover-one", "testsrc2", &H264, "aac").await,
            clip("failover-two", "testsrc", &H264, "aac").await,
        ];
        let (provider, gateway) = set_up(&clips).await;
        let mut followers = followers(&gateway).await;
        let mp4 =
            Player::watch(gateway.address, &format!("{}?output_format=fmp4", gateway.path("News"))).await;
        let programs = PLAYERS.map(|(query, _)| {
            let url = format!("http://{}{}?{query}", gateway.address, open(&gateway, "News"));
            tokio::spawn(async move {
                tools::run("ffmpeg", &["-v", "error", "-i", &url, "-t", "20", "-map", "0", "-f", "null", "-"])
                    .await
            })
        });
        all_play_until(&mut followers, "four segments", |it| it.segments.len() >= 4).await;
        let before = followers.each_ref().map(|it| it.newest_read().unwrap());
        fail(&provider, 0);
        all_play_until(&mut followers, "three more segments", |it| {
            let index = PLAYERS.iter().position(|player| player.0 == it.query).unwrap();
            it.newest_read() >= Some(before[index] + 4)
        })
        .await;
        assert_eq!(gateway.failovers().len(), 1, "{:?}", gateway.failovers());
        for follower in &followers {
            let query = follower.query;
            let (mut n_pictures, mut steps) = (0, Vec::new());
            for stretch in follower.stretches() {
                let decoded = decoded(&stretch).await;
                assert_eq!(decoded.codecs, ["aac", "h264"], "{query}");
                n_pictures += decoded.n_pictures;
                steps.push(decoded.longest_step);
            }
            assert!(n_pictures > 300, "{query}: {n_pictures}");
            let n_inits = if follower.container == SegmentContainer::Ts { 0 } else { 1 };
            assert_eq!(follower.inits.len(), n_inits, "{query}");
            // Only a machine that is so busy that the second stream is late needs one.
            let dates = |it: u64| follower.checker.segments()[&it].second_of_day.unwrap();
            for at in follower.discontinuities() {
                let pause = dates(at) - dates(at - 1) - follower.checker.segments()[&(at - 1)].duration;
                assert!(pause > 0.5, "{query}: {pause} s, {steps:?}");
            }
        }
        for (program, (query, _)) in programs.into_iter().zip(PLAYERS) {
            let ended = program.await.unwrap();
            let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert_eq!((ended.status.success(), &*errors), (true, ""), "{query}");
        }
        assert!(mp4.is_watching());
        let recording = mp4.recording();
        let mp4 = decoded(whole_fragments(&recording)).await;
        assert!(mp4.n_pictures > 300, "{}", mp4.n_pictures);
        assert_eq!(provider.peak(), 1);
    }

    /// Returns the bytes up to the end of the last fragment.
    fn whole_fragments(bytes: &[u8]) -> &[u8] {
        let (mut at, mut end) = (0, 0);
        while let Some([a, b, c, d, name @ ..]) = bytes.get(at..).and_then(|it| it.first_chunk::<8>()) {
            at += u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            if name == b"mdat" && at <= bytes.len() {
                end = at;
            }
        }
        &bytes[..end]
    }

    /// Returns whether a player has read more than one segment after so many discontinuities.
    fn has_begun(n_discontinuities: usize) -> impl Fn(&Follower<'_>) -> bool {
        move |it| {
            it.discontinuities().get(n_discontinuities - 1).is_some_and(|at| it.newest_read() > Some(*at))
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_failover_to_other_codecs_is_a_declared_discontinuity_with_a_new_initialisation_segment() {
        let clips = [
            clip("failover-one", "testsrc2", &H264, "aac").await,
            clip("failover-hevc", "testsrc", &HEVC, "ac3").await,
            clip("failover-mpeg2", "testsrc", &MPEG2, "mp2").await,
        ];
        let (provider, gateway) = set_up(&clips).await;
        let mut followers = followers(&gateway).await;
        all_play_until(&mut followers, "four segments", |it| it.segments.len() >= 4).await;
        fail(&provider, 0);
        all_play_until(&mut followers, "H.265", has_begun(1)).await;
        let path = format!("{}?container=fmp4", open(&gateway, "News"));
        let master = Watching::master(&gateway, &path, "another player").await.text();
        assert!(master.contains("CODECS=\"hvc1.") && master.contains(",ac-3\""), "{master}");
        fail(&provider, 1);
        all_play_until(&mut followers, "MPEG-2", has_begun(2)).await;
        // Until the first discontinuity has left the playlist, and is counted in it.
        all_play_until(&mut followers, "the end of the window", |it| {
            it.discontinuities().first().is_some_and(|at| it.first > *at)
        })
        .await;
        let mpeg2 = |container| match container {
            SegmentContainer::Ts => ["mp2", "mpeg2video"],
            // ffmpeg calls all layers of MPEG audio in MP4 so.
            SegmentContainer::Fmp4 => ["mp3", "mpeg2video"],
        };
        for follower in &followers {
            let query = follower.query;
            let segments = follower.checker.segments();
            assert_eq!(follower.discontinuities().len(), 2, "{query}: {segments:#?}");
            let n_inits = if follower.container == SegmentContainer::Ts { 0 } else { 3 };
            assert_eq!(follower.inits.len(), n_inits, "{query}");
            let stretches = follower.stretches();
            assert_eq!(stretches.len(), 3, "{query}");
            let expected = [["aac", "h264"], ["ac3", "hevc"], mpeg2(follower.container)];
            for (stretch, expected) in stretches.iter().zip(expected) {
                let decoded = decoded(stretch).await;
                assert_eq!(decoded.codecs, expected, "{query}");
                assert!(decoded.n_pictures > 100, "{query}: {}", decoded.n_pictures);
                assert!(decoded.longest_step < 1.5, "{query}: {}", decoded.longest_step);
            }
        }
        assert_eq!((provider.peak(), gateway.failovers().len()), (1, 2));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn hls_js_plays_on_in_a_browser_when_a_failover_changes_the_picture() {
        let clips = [
            clip("failover-one", "testsrc2", &H264, "aac").await,
            clip_of_size("failover-large", "testsrc", "640x360", &H264, "aac").await,
            clip("failover-two", "testsrc", &H264, "aac").await,
        ];
        let (provider, gateway) = set_up(&clips).await;
        let web = Web::at(gateway.address).await;
        for (stream, query, width) in [(0, "", 640), (1, "?ll=1", 320)] {
            play_in_browser(&web, &format!("{}{query}", open(&gateway, "News"))).await;
            let plays = |it: &Value| it["time"].as_f64() > Some(2.0);
            web.browser.until("two seconds", BROWSER_STATE, plays).await;
            fail(&provider, stream);
            let is_other = |it: &Value| it["width"] == width;
            let changed = web.browser.until("the other picture", BROWSER_STATE, is_other).await;
            let from = changed["time"].as_f64().unwrap();
            let plays = |it: &Value| it["time"].as_f64() > Some(from + 4.0);
            let played = web.browser.until("four seconds more", BROWSER_STATE, plays).await;
            assert_eq!((&played["errors"], &played["width"]), (&json!([]), &json!(width)), "{query}");
        }
    }
}
