//! A recording over several failovers is one file that external programs read without errors. The sources are made by
//! ffmpeg with different codecs, PIDs and start times.

mod slow {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::Instant;

    use crate::shapes::{checks, edit};
    use crate::support::client::Player;
    use crate::support::gateway::{Setup, TestGateway};
    use crate::support::signal::Clip;
    use crate::support::tools;
    use crate::support::upstream::{Cut, MockResponse, Provider};

    /// How long each source plays before it breaks off, in seconds.
    const PLAYED: f64 = 4.0;

    async fn picture(name: &str, codecs: &[&str], muxer: &[&str]) -> Arc<Clip> {
        let inputs = [
            "-f",
            "lavfi",
            "-i",
            "testsrc=size=640x360:rate=25",
            "-f",
            "lavfi",
            "-i",
            "sine=frequency=440:sample_rate=48000",
        ];
        let output =
            [&["-t", "20", "-g", "25", "-b:v", "1500k", "-pix_fmt", "yuv420p"], codecs, muxer].concat();
        Clip::make(name, &inputs, &output).await
    }

    async fn h264() -> Arc<Clip> {
        picture("h264-aac", &["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-c:a", "aac"], &[])
            .await
    }

    /// Its clocks start shortly before the 33-bit overflow.
    async fn mpeg2() -> Arc<Clip> {
        let muxer =
            ["-mpegts_start_pid", "0x200", "-mpegts_pmt_start_pid", "0x40", "-output_ts_offset", "95440"];
        picture("mpeg2-mp2", &["-c:v", "mpeg2video", "-bf", "2", "-c:a", "mp2"], &muxer).await
    }

    async fn other_h264() -> Arc<Clip> {
        let codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-c:a", "ac3"];
        picture("h264-ac3", &codecs, &["-mpegts_start_pid", "0x31", "-output_ts_offset", "7"]).await
    }

    async fn radio() -> Arc<Clip> {
        let inputs = ["-f", "lavfi", "-i", "sine=frequency=880:sample_rate=48000"];
        let output = ["-t", "20", "-c:a", "aac", "-b:a", "128k", "-mpegts_start_pid", "0x123"];
        Clip::make("radio-aac", &inputs, &output).await
    }

    /// A recording with a failover from each clip to the next, and its duration.
    struct Recording {
        bytes: Vec<u8>,
        programme_seconds: f64,
        wall_seconds: f64,
        n_gaps: usize,
    }

    /// Records all clips; each source breaks off in its own way after some seconds.
    async fn record(clips: &[Arc<Clip>]) -> Recording {
        let provider = Provider::start();
        let paths: Vec<String> = (0..clips.len()).map(|number| format!("/live/anna/{number}.ts")).collect();
        for (path, clip) in paths.iter().zip(clips) {
            provider.path(path).answers(MockResponse::play(clip.clone()));
        }
        let entries: Vec<_> = paths.iter().map(|path| ("news", "News", path.as_str())).collect();
        let gateway = Setup::new().list(&provider.playlist(&entries)).start().await;
        let player = gateway.watch("News").await;
        player.until("the first picture", |r| r.ts.payload_packets > 0).await;
        let cuts = [Cut::Reset, Cut::End, Cut::Stall];
        for (number, path) in paths.iter().enumerate() {
            plays_for(&player, &gateway, number, PLAYED).await;
            if number + 1 < paths.len() {
                provider.path(path).answers(MockResponse::status(404)).cut(cuts[number % cuts.len()]);
            }
        }
        let (programme_seconds, wall_seconds) = player.received(|r| {
            r.ts.assert_clean();
            let (first, last) = (r.payload_arrivals[0], *r.payload_arrivals.last().unwrap());
            (r.ts.programme_seconds(), (last - first).as_secs_f64())
        });
        let bytes = player.received(|r| r.bytes[..r.bytes.len() / 188 * 188].to_vec());
        Recording { bytes, programme_seconds, wall_seconds, n_gaps: clips.len() - 1 }
    }

    /// Waits until source `number` plays and has played for this many seconds.
    async fn plays_for(player: &Player, gateway: &TestGateway, number: usize, seconds: f64) {
        crate::support::eventually("the failover", || gateway.failovers().len() == number).await;
        let (packets, start) = player.received(|r| (r.ts.payload_packets, r.ts.programme_seconds()));
        player.until("its first packets", |r| r.ts.payload_packets > packets + 100).await;
        player.until("some seconds of its programme", |r| r.ts.programme_seconds() > start + seconds).await;
    }

    impl Recording {
        /// Checks that the clock of the recording advanced as far as the wall clock.
        fn check_clock(&self) {
            // 0.2 s per gap is guaranteed; the rest is for reading the socket on a busy machine.
            let allowed = 0.2 * self.n_gaps as f64 + 0.4;
            let (programme, wall) = (self.programme_seconds, self.wall_seconds);
            assert!(
                (programme - wall).abs() <= allowed,
                "{programme:.3} s of programme in {wall:.3} s of real time"
            );
        }

        /// Checks with ffprobe that decoding times never decrease and cover the recording; returns the codecs.
        async fn check_with_ffprobe(&self) -> Vec<String> {
            let file = tools::saved(&self.bytes);
            let path = file.path().to_string_lossy().into_owned();
            let entries = "packet=codec_type,stream_index,dts_time,duration_time,flags";
            let shown = ["-v", "error", "-show_entries", entries, "-of", "csv=p=0", &path];
            let arguments = [&checks::WHOLE_FILE[..], &shown].concat();
            let output = tools::run("ffprobe", &arguments).await;
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            for bad in ["discontinuity", "Invalid timestamps"] {
                assert!(!errors.contains(bad), "ffprobe: {errors}");
            }
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let times = tools::DecodingTimes::from_packets(&text);
            let allowed = 0.2 * self.n_gaps as f64 + 0.8;
            assert!(
                (times.seconds - self.wall_seconds).abs() <= allowed,
                "{} s of packets in {} s",
                times.seconds,
                self.wall_seconds
            );
            let arguments = ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", &path];
            let mut codecs: Vec<String> =
                tools::text_of("ffprobe", &arguments).await.lines().map(str::to_owned).collect();
            codecs.sort();
            codecs.dedup();
            codecs
        }

        /// Copies the recording with ffmpeg and checks that it reports nothing about clocks. It may report a short
        /// packet: a source that breaks off takes the rest of its last packet with it.
        async fn check_with_ffmpeg(&self) {
            let input = tools::saved(&self.bytes);
            let output = tools::saved(&[]);
            let (input, output) = (input.path().to_string_lossy(), output.path().to_string_lossy());
            let before = ["-y", "-nostdin", "-hide_banner", "-loglevel", "warning"];
            let copy = ["-i", &input, "-map", "0", "-c", "copy", &output];
            let arguments = [&before[..], &checks::WHOLE_FILE, &copy].concat();
            let ran = tools::run("ffmpeg", &arguments).await;
            let reply = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(ran.status.success(), "{reply}");
            let about_clocks =
                ["on-monoton", "timestamp discontinuity", "imestamps are unset", "out of order"];
            for bad in about_clocks {
                assert!(!reply.contains(bad), "ffmpeg: {reply}");
            }
        }

        /// Checks with tshark that every continuity counter error is declared.
        async fn check_with_tshark(&self) {
            let undeclared = undeclared_breaks(&self.bytes).await;
            assert!(undeclared.is_empty(), "frame, PID, counter, declared:\n{}", undeclared.join("\n"));
        }
    }

    /// Decodes everything in the recording with ffmpeg, and checks that it has nothing to say.
    async fn check_decoding(bytes: &[u8]) {
        let whole = edit::without_unfinished_units(bytes);
        if let Ok(folder) = std::env::var("RECORDINGS_FOLDER") {
            let file = format!("{folder}/{}.ts", uuid::Uuid::new_v4());
            std::fs::write(file, &whole).expect("the folder can be written");
        }
        let mut messages = checks::Recording::new(&whole).decoder_messages().await;
        // True of a stream of another source: it ends before the file.
        messages.retain(|it| !it.contains("no PTS found at end of file"));
        assert!(messages.is_empty(), "{}", messages.join("\n"));
    }

    async fn undeclared_breaks(bytes: &[u8]) -> Vec<String> {
        let file = tools::saved(bytes);
        let path = file.path().to_string_lossy().into_owned();
        let seen =
            tools::text_of("tshark", &["-r", &path, "-Y", "mp2t", "-T", "fields", "-e", "mp2t.pid"]).await;
        assert_eq!(seen.lines().count(), bytes.len() / 188, "tshark read every packet");
        let fields = ["-r", &path, "-Y", "mp2t.cc.drop || mp2t.tei == 1 || mp2t.sync_byte != 0x47"];
        let shown =
            ["-T", "fields", "-e", "frame.number", "-e", "mp2t.pid", "-e", "mp2t.cc", "-e", "mp2t.af.di"];
        let text = tools::text_of("tshark", &[&fields[..], &shown[..]].concat()).await;
        let is_declared = |line: &&str| line.ends_with("True") || line.ends_with("\t1");
        text.lines().filter(|line| !is_declared(line)).map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn the_programs_reject_a_recording_that_was_only_concatenated() {
        let strung = [h264().await.bytes(), other_h264().await.bytes()].concat();
        assert!(!undeclared_breaks(&strung).await.is_empty());
        let bytes = strung.clone();
        let recording = Recording { bytes, programme_seconds: 27.0, wall_seconds: 40.0, n_gaps: 1 };
        for complaint in [
            tokio::spawn(async move { recording.check_with_ffprobe().await.len() }).await.map(|_| ()),
            tokio::spawn(async move {
                Recording { bytes: strung, programme_seconds: 27.0, wall_seconds: 40.0, n_gaps: 1 }
                    .check_clock();
            })
            .await,
        ] {
            assert!(complaint.is_err_and(|error| error.is_panic()));
        }
    }

    async fn check_with_all_programs(clips: &[Arc<Clip>], codecs: &[&str]) -> Recording {
        let began = Instant::now();
        let recording = record(clips).await;
        assert!(began.elapsed() > Duration::from_secs_f64(PLAYED));
        recording.check_clock();
        let seen = recording.check_with_ffprobe().await;
        assert!(codecs.iter().all(|codec| seen.iter().any(|it| it == codec)), "{seen:?}");
        recording.check_with_ffmpeg().await;
        recording.check_with_tshark().await;
        recording
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_recording_over_sources_with_different_codecs_pids_and_start_times_is_one_clean_file() {
        let clips = [h264().await, mpeg2().await, other_h264().await, h264().await];
        let recording = check_with_all_programs(&clips, &["h264", "aac"]).await;
        check_decoding(&recording.bytes).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_recording_of_a_radio_that_fails_over_is_one_clean_file() {
        let clips = [radio().await, radio().await, radio().await];
        let recording = check_with_all_programs(&clips, &["aac"]).await;
        check_decoding(&recording.bytes).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_recording_of_one_source_that_keeps_breaking_off_is_one_clean_file() {
        let clips = [other_h264().await, other_h264().await, other_h264().await, other_h264().await];
        let recording = check_with_all_programs(&clips, &["h264", "ac3"]).await;
        check_decoding(&recording.bytes).await;
    }
}
