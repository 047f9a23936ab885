//! Streams of every shape that providers send: each plays through a reconnect and a failover, and independent programs
//! read what the viewer got.

pub mod checks;
pub mod edit;
mod table;
mod units;

/// These need ffmpeg, tshark and tstools.
mod slow {
    use std::collections::BTreeMap;
    use std::hash::{DefaultHasher, Hash, Hasher};
    use std::sync::Arc;
    use std::time::Duration;

    use domain::settings::Settings;
    use tokio::sync::Semaphore;
    use tokio::task::JoinSet;

    use crate::shapes::checks::Recording;
    use crate::shapes::edit::{self, AddedStream, ClockPid, Editor};
    use crate::shapes::table::{Added, SHAPES, Shape};
    use crate::shapes::units;
    use crate::support::client::Player;
    use crate::support::eventually;
    use crate::support::gateway::{Setup, TestGateway};
    use crate::support::signal::{Clip, TEST_PICTURE};
    use crate::support::ts_check::{Checker, PACKET};
    use crate::support::upstream::{Cut, MockResponse, Provider};

    /// Where the connections to the first source break off, after the start of what they send.
    const BREAKS_OFF_AT: [(Duration, Cut); 2] =
        [(Duration::from_millis(2_400), Cut::Reset), (Duration::from_millis(2_650), Cut::End)];
    /// Longest distance of two units of a stream without an interruption, in seconds.
    const DISTANCE_MAX: f64 = 1.5;

    /// Period of the 33-bit 90 kHz clock.
    const TURN_90K: u64 = 1 << 33;
    const HALF_A_DAY: u64 = 12 * 3_600 * 90_000;

    /// A source of a shape. The two of them differ in picture, sound, PIDs and start time.
    struct Source {
        name: &'static str,
        inputs: [&'static str; 8],
        muxer: [&'static str; 6],
    }

    const FIRST: Source = Source {
        name: "first",
        inputs: TEST_PICTURE,
        muxer: ["-mpegts_start_pid", "0x100", "-mpegts_pmt_start_pid", "0x1000", "-output_ts_offset", "10"],
    };

    /// Its clock wraps while it plays.
    const SECOND: Source = Source {
        name: "second",
        inputs: [
            "-f",
            "lavfi",
            "-i",
            "testsrc=size=320x180:rate=25",
            "-f",
            "lavfi",
            "-i",
            "sine=frequency=880:sample_rate=48000",
        ],
        muxer: ["-mpegts_start_pid", "0x200", "-mpegts_pmt_start_pid", "0x40", "-output_ts_offset", "95441"],
    };

    impl Shape {
        fn path(&self, source: &Source) -> String {
            format!("/live/{}/{}.ts", self.name, source.name)
        }

        /// Returns the duration of a clip in seconds, as ffmpeg reads it.
        fn clip_seconds(&self) -> &'static str {
            if self.has_long_groups { "10" } else { "5" }
        }

        /// Returns the part of a clip that is left out, so that a source begins in the middle of a group of pictures. The
        /// first source would have no key frame with long groups.
        fn tuned_in_at(&self, is_first: bool) -> Duration {
            Duration::from_millis(match (self.has_long_groups, is_first) {
                (false, _) => 300,
                (true, true) => 0,
                (true, false) => 500,
            })
        }

        /// Returns the longest wait for the picture of the second source, in seconds.
        fn picture_wait(&self) -> f64 {
            if self.has_long_groups { 5.5 } else { 0.0 }
        }

        /// Returns how many of the packets of the second source are played.
        fn n_played(&self, n_packets: u64) -> u64 {
            if self.has_long_groups { n_packets * 9 / 10 } else { n_packets / 2 }
        }

        /// Generates the clip of a source.
        async fn clip(&self, source: &Source) -> Clip {
            let is_first = source.name == FIRST.name;
            let audio = self.second_audio.filter(|_| !is_first).unwrap_or(self.audio);
            let n_programmes = if self.muxer.contains(&"-program") { 2 } else { 1 };
            let mut arguments: Vec<String> = Vec::new();
            let mut streams = 0;
            for _ in 0..n_programmes {
                if self.video.is_some() {
                    arguments.extend(["-map".into(), "0:v".into()]);
                }
                for (codec, language) in audio {
                    arguments.extend(["-map".into(), "1:a".into()]);
                    arguments.extend([format!("-c:a:{streams}"), (*codec).into()]);
                    arguments.extend([format!("-metadata:s:a:{streams}"), format!("language={language}")]);
                    streams += 1;
                }
            }
            arguments
                .extend(["-t", self.clip_seconds(), "-ac", "2", "-pix_fmt", "yuv420p"].map(String::from));
            arguments
                .extend(self.video.unwrap_or_default().iter().chain(self.muxer).map(|it| (*it).to_owned()));
            arguments.extend(source.muxer.map(String::from));
            let mut hasher = DefaultHasher::new();
            (source.inputs, &arguments).hash(&mut hasher);
            let name = format!("shape-{:016x}", hasher.finish());
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let clip = Clip::make(&name, &source.inputs, &arguments).await;
            self.edited(&clip, is_first)
        }

        fn edited(&self, clip: &Clip, is_first: bool) -> Clip {
            let mut editor = Editor::new(clip);
            let first_pid = editor.pid_of_stream(0);
            if let Some(added) = self.added {
                if added == Added::CueMessages {
                    editor.add_programme_info(b"\x05\x04CUEI");
                }
                let stream = added.stream(first_pid + 0x20, &editor);
                editor.add_stream(&stream);
            }
            match self.clock {
                ClockPid::Reference => {}
                ClockPid::Audio => editor.move_clock(editor.pid_of_stream(1)),
                ClockPid::Own => editor.move_clock(first_pid + 0x30),
            }
            if is_first {
                editor.interleave();
            }
            Clip::from_bytes(editor.bytes(self.tuned_in_at(is_first)))
        }
    }

    impl Added {
        fn stream(self, pid: u16, editor: &Editor) -> AddedStream {
            let (every, stream_type, descriptors): (_, u8, &[u8]) = match self {
                Added::Teletext | Added::TeletextWithoutStamps | Added::TeletextWithForeignStamps => {
                    (120, 0x06, b"\x56\x05deu\x09\x00")
                }
                Added::Klv => (120, 0x06, b"\x05\x04KLVA"),
                Added::Subtitles => (600, 0x06, b"\x59\x08deu\x10\x00\x01\x00\x01"),
                Added::CueMessages => (600, 0x86, b"\x8a\x01\x01"),
            };
            let mut units = Vec::new();
            let mut at = Duration::from_millis(100);
            while at < editor.end() {
                let pts = editor.clock(at + Duration::from_millis(500));
                units.push((
                    at,
                    match self {
                        Added::Teletext => units::teletext(Some(pts)),
                        Added::TeletextWithoutStamps => units::teletext(None),
                        Added::TeletextWithForeignStamps => {
                            units::teletext(Some((pts + TURN_90K - HALF_A_DAY) % TURN_90K))
                        }
                        Added::Klv => units::klv(),
                        Added::Subtitles => units::subtitle(Some(pts), units.len() as u8),
                        Added::CueMessages => units::time_signal(pts),
                    },
                ));
                at += Duration::from_millis(every);
            }
            let is_sections = self == Added::CueMessages;
            AddedStream { pid, stream_type, descriptors: descriptors.to_vec(), is_sections, units }
        }
    }

    /// Waits on a busy machine instead of changing the source.
    fn patient(settings: &mut Settings) {
        settings.first_packet_timeout = Duration::from_secs(30);
        settings.stall_timeout = Duration::from_secs(30);
        settings.buffering_timeout = Duration::from_secs(30);
        settings.start_timeout = Duration::from_secs(50);
        settings.give_up_after = Duration::from_secs(50);
    }

    /// The shapes to play: all of them, or those whose names contain `SHAPES`.
    fn chosen() -> impl Iterator<Item = &'static Shape> {
        let part = std::env::var("SHAPES").unwrap_or_default();
        SHAPES.iter().filter(move |shape| shape.name.contains(&part))
    }

    /// Plays a shape until its second source has played for a while; returns everything that is wrong.
    async fn play(
        shape: &Shape,
        gateway: &TestGateway,
        provider: &Provider,
        n_played: u64,
        tools: &Semaphore,
    ) -> Vec<String> {
        let player: Player = gateway.watch(shape.name).await;
        let second = shape.path(&SECOND);
        eventually(shape.name, || provider.path(&second).n_requests() > 0).await;
        let before = player.received(|r| r.ts.payload_packets);
        player.until(shape.name, |r| r.ts.payload_packets >= before + n_played).await;
        let mut findings: Vec<String> = Vec::new();
        let (bytes, step_max) = player.received(|r| {
            findings.extend(r.ts.complaints.iter().map(|it| format!("checker: {it}")));
            let step_max = r.longest_silence_of_payload().as_secs_f64() + DISTANCE_MAX + shape.picture_wait();
            for (pid, pause) in r.ts.longest_pauses() {
                if pause > step_max {
                    findings.push(format!(
                        "checker: nothing on PID {pid:#x} for {pause:.1} s, limit {step_max:.1} s"
                    ));
                }
            }
            for (pid, languages) in r.ts.languages.iter().filter(|it| it.1.len() > 1) {
                findings.push(format!("checker: PID {pid:#x} is announced with the languages {languages:?}"));
            }
            (r.bytes.clone(), step_max)
        });
        drop(player);
        let n_requests = provider.path(&shape.path(&FIRST)).n_requests();
        if n_requests < 2 {
            findings.push("the first source was not opened again".into());
        }
        let bytes = edit::without_unfinished_units(&bytes);
        if let Ok(folder) = std::env::var("SHAPES_FOLDER") {
            std::fs::write(format!("{folder}/{}.ts", shape.name), &bytes).expect("the folder can be written");
        }
        let _permit = tools.acquire().await.expect("it is never closed");
        findings.extend(Recording::new(&bytes).findings(shape.streams, step_max, shape.explained).await);
        findings.into_iter().map(|it| format!("{}: {it}", shape.name)).collect()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_shape_plays_through_a_reconnect_and_a_failover() {
        // As many programs at a time as the smallest machine has cores.
        let tools = Arc::new(Semaphore::new(2));
        let mut making = JoinSet::new();
        for shape in chosen() {
            for source in [&FIRST, &SECOND] {
                let tools = Arc::clone(&tools);
                making.spawn(async move {
                    let _permit = tools.acquire().await.expect("it is never closed");
                    (shape, source, shape.clip(source).await)
                });
            }
        }
        let provider = Arc::new(Provider::start());
        let mut played = BTreeMap::new();
        for (shape, source, clip) in making.join_all().await {
            let path = shape.path(source);
            let path = provider.path(&path);
            let (before, after) = shape.padding;
            let packet = before + PACKET + after;
            if source.name == FIRST.name {
                let ends =
                    BREAKS_OFF_AT.map(|(at, cut)| (edit::middle_of_a_frame(&clip, at) * packet + 77, cut));
                let answer = MockResponse::play(Arc::new(clip.padded(before, after)));
                path.answers(MockResponse::status(404))
                    .answers_first(ends.map(|(end, cut)| answer.clone().until(end as u64, cut)));
            } else {
                let n_packets = Checker::from_bytes(clip.bytes()).payload_packets;
                played.insert(shape.name, shape.n_played(n_packets));
                path.plays(Arc::new(clip.padded(before, after)));
            }
        }
        let mut list = String::from("#EXTM3U\n");
        for shape in chosen() {
            for source in [&FIRST, &SECOND] {
                let address = provider.url(&shape.path(source));
                list.push_str(&format!("#EXTINF:-1 tvg-id=\"{0}\",{0}\n{address}\n", shape.name));
            }
        }
        let gateway = Arc::new(Setup::new().list(&list).engine(patient).start().await);
        let mut playing = JoinSet::new();
        for shape in chosen() {
            let (gateway, provider, tools) =
                (Arc::clone(&gateway), Arc::clone(&provider), Arc::clone(&tools));
            let n_played = played[shape.name];
            playing.spawn(async move { play(shape, &gateway, &provider, n_played, &tools).await });
        }
        let mut findings = playing.join_all().await.concat();
        findings.sort();
        assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_programs_reject_a_source_that_was_only_reconnected() {
        let shape = &SHAPES[0];
        let clip = shape.clip(&FIRST).await;
        let end = edit::middle_of_a_frame(&clip, BREAKS_OFF_AT[0].0) * PACKET;
        let bytes = edit::without_unfinished_units(&[&clip.bytes()[..end], clip.bytes()].concat());
        let findings = Recording::new(&bytes).findings(&["h264"], DISTANCE_MAX, &[]).await;
        for part in ["ffprobe: streams", "decoding time", "ffmpeg: ", "tshark: ", "tsreport: "] {
            assert!(findings.iter().any(|it| it.contains(part)), "{part} is not in {findings:#?}");
        }
    }
}
