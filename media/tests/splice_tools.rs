//! Checks the output of the splice with independent tools: ffprobe, ffmpeg, tshark and tsreport read a
//! recording over several sources that ffmpeg generated.
//!
//! Requires ffmpeg, tshark and tstools; the failure of a test without one of them names the package.

#[cfg(test)]
mod slow {
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output};
    use std::time::Duration;

    use bytes::BytesMut;
    use media::splice::{Splice, SpliceSettings};
    use media::ts::clock::{STAMP_MODULUS, distance};
    use media::ts::packet::{Packet, PacketBytes, packets};
    use media::ts::table_reader::TableReader;
    use tempfile::TempDir;

    /// Period of a 33-bit clock of 90 kHz, in seconds.
    const WRAP: f64 = STAMP_MODULUS as f64 / 90_000.0;

    /// Arguments for ffmpeg that generate 12 s of one kind of source.
    const H264_AAC: &[&str] =
        &["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "25", "-c:a", "aac"];
    const MPEG2_MP2: &[&str] = &["-c:v", "mpeg2video", "-bf", "2", "-g", "12", "-b:v", "600k", "-c:a", "mp2"];
    const HEVC_AC3: &[&str] = &[
        "-c:v",
        "libx265",
        "-preset",
        "ultrafast",
        "-x265-params",
        "log-level=none:keyint=25:bframes=2",
        "-c:a",
        "ac3",
    ];
    const RADIO: &[&str] = &["-map", "1:a", "-c:a", "aac"];
    /// PIDs and numbers other than the defaults of ffmpeg.
    const OTHER_PIDS: &[&str] = &[
        "-streamid",
        "0:68",
        "-streamid",
        "1:69",
        "-mpegts_pmt_start_pid",
        "48",
        "-mpegts_service_id",
        "77",
        "-mpegts_transport_stream_id",
        "9",
    ];

    fn run(program: &str, package: &str, arguments: &[&str]) -> Output {
        match Command::new(program).args(arguments).output() {
            Ok(output) => output,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                panic!("this test needs {program}: apt-get install {package}")
            }
            Err(error) => panic!("failed to run {program}: {error}"),
        }
    }

    fn text(output: &Output) -> String {
        [output.stdout.as_slice(), output.stderr.as_slice()].map(String::from_utf8_lossy).concat()
    }

    fn make_clip(folder: &Path, name: &str, start: f64, arguments: &[&[&str]]) -> Clip {
        let path = folder.join(format!("{name}.ts"));
        let start = start.to_string();
        let mut all = vec!["-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25"];
        all.extend(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000", "-t", "12"]);
        all.extend(arguments.iter().flat_map(|it| it.iter()));
        all.extend(["-output_ts_offset", &start, "-f", "mpegts", path.to_str().unwrap()]);
        let output = run("ffmpeg", "ffmpeg", &all);
        assert!(output.status.success(), "generate clip {name}: {}", text(&output));
        Clip::read(&std::fs::read(path).unwrap())
    }

    /// Packets with the programme time at which a source sends them, starting at zero.
    struct Clip(Vec<(Duration, PacketBytes)>);

    impl Clip {
        fn read(bytes: &[u8]) -> Clip {
            let mut reader = TableReader::new();
            let mut first = None;
            // Index and time of each PCR; packets between two of them are sent evenly.
            let mut clocks: Vec<(usize, f64)> = Vec::new();
            for (index, bytes) in packets(bytes).enumerate() {
                reader.packet(Packet::new(bytes));
                let packet = Packet::new(bytes);
                let pcr_pid = reader.tables().map(|tables| tables.pmt.pcr_pid);
                if let Some(pcr) = packet.pcr().filter(|_| pcr_pid == Some(packet.pid())) {
                    let since = distance(*first.get_or_insert(pcr / 300), pcr / 300, STAMP_MODULUS);
                    clocks.push((index, since as f64 / 90_000.0));
                }
            }
            let time = |index: usize| {
                let next = clocks.partition_point(|clock| clock.0 <= index);
                let before = clocks[next.saturating_sub(1)];
                let after = clocks.get(next).copied().unwrap_or((before.0 + 1, before.1));
                let span = (after.0 - before.0).max(1) as f64;
                let share = (index.saturating_sub(before.0) as f64 / span).min(1.0);
                Duration::from_secs_f64(before.1 + (after.1 - before.1) * share)
            };
            Clip(packets(bytes).enumerate().map(|(index, packet)| (time(index), *packet)).collect())
        }
    }

    /// A running recording: sources change while the wall clock advances.
    struct Recording {
        splice: Splice,
        now: Duration,
        out: BytesMut,
        n_gaps: u32,
        /// Lead of the first source over the wall clock.
        ahead: Duration,
        has_started: bool,
    }

    impl Recording {
        fn new() -> Self {
            Recording {
                splice: Splice::new(SpliceSettings::default()),
                now: Duration::ZERO,
                out: BytesMut::new(),
                n_gaps: 0,
                ahead: Duration::ZERO,
                has_started: false,
            }
        }

        /// Plays `seconds` of a clip after a burst of `burst` seconds. The source is lost at any packet.
        fn play(&mut self, clip: &Clip, burst: f64, seconds: f64) {
            self.play_until(clip, burst, seconds, |_| true);
        }

        /// Like [`Self::play`], but the source is lost in the middle of a frame of the stream with this index.
        fn play_half_a_frame(&mut self, clip: &Clip, burst: f64, seconds: f64, stream: usize) {
            let mut reader = TableReader::new();
            for (_, packet) in &clip.0 {
                reader.packet(Packet::new(packet));
            }
            let pid = reader.tables().unwrap().pmt.streams[stream].pid;
            self.play_until(clip, burst, seconds, |packet| packet.pid() == pid && !packet.pusi());
        }

        fn play_until(
            &mut self,
            clip: &Clip,
            burst: f64,
            seconds: f64,
            can_end: impl Fn(Packet<'_>) -> bool,
        ) {
            let (burst, seconds) = (Duration::from_secs_f64(burst), Duration::from_secs_f64(seconds));
            if !std::mem::replace(&mut self.has_started, true) {
                self.ahead = burst;
            }
            let connected = self.now;
            for (time, packet) in &clip.0 {
                if *time >= burst + seconds && can_end(Packet::new(packet)) {
                    break;
                }
                let at = connected + time.saturating_sub(burst);
                self.wait_until(at);
                self.splice.packet(Packet::new(packet), at, &mut self.out);
            }
            self.wait_until(self.now.max(connected + seconds));
        }

        /// Loses the source; the next one connects after `seconds`.
        fn gap(&mut self, seconds: f64) {
            self.splice.change(self.now, &mut self.out);
            self.n_gaps += 1;
            self.wait_until(self.now + Duration::from_secs_f64(seconds));
        }

        fn wait_until(&mut self, at: Duration) {
            while let Some(deadline) = self.splice.deadline().filter(|it| *it <= at) {
                self.splice.tick(deadline, &mut self.out);
            }
            self.now = at;
        }

        fn write(&self, folder: &Path) -> PathBuf {
            let path = folder.join("recording.ts");
            std::fs::write(&path, &self.out).unwrap();
            path
        }

        /// Checks the recording with all tools.
        fn check(&self, folder: &Path) {
            let path = self.write(folder);
            let path = path.to_str().unwrap();
            let expected = (self.now + self.ahead).as_secs_f64();
            let length = length(path);
            println!("ffprobe: {length:.3} s over {} gaps, wall time {expected:.3} s", self.n_gaps);
            let within = 0.2 * f64::from(self.n_gaps);
            assert!((length - expected).abs() <= within, "{length:.3} s long, expected {expected:.3} s");
            for findings in [
                decreasing_stamps(path),
                ffmpeg_warnings(path, Depth::Packets),
                lost_packets(path),
                decreasing_clocks(path),
            ] {
                assert_eq!(findings, Vec::<String>::new());
            }
        }
    }

    const PROBE_ALL: [&str; 4] = ["-probesize", "500M", "-analyzeduration", "500M"];

    /// Returns stream, PTS, DTS and duration of every packet, as reported by ffprobe.
    fn stamps(path: &str) -> Vec<(i64, i64, i64, i64)> {
        let what = [
            "-v",
            "error",
            "-show_entries",
            "packet=stream_index,pts,dts,duration",
            "-of",
            "compact=p=0:nk=1",
        ];
        let output = run("ffprobe", "ffmpeg", &[&PROBE_ALL[..], &what, &[path]].concat());
        let read = |line: &str| {
            let mut fields = line.split('|').map(|field| field.parse::<i64>().ok());
            let mut field = || fields.next().flatten();
            let (stream, pts, dts, duration) = (field(), field(), field(), field());
            Some((stream?, pts?, dts?, duration.unwrap_or(0)))
        };
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter(|line| !line.is_empty())
            .map(|line| read(line).unwrap_or_else(|| panic!("a packet without time stamps: {line}")))
            .collect()
    }

    /// Returns the time from the first to the last frame, in seconds.
    fn length(path: &str) -> f64 {
        let stamps = stamps(path);
        let begin = stamps.iter().map(|packet| packet.1).min().unwrap();
        let end = stamps.iter().map(|packet| packet.1 + packet.3).max().unwrap();
        (end - begin) as f64 / 90_000.0
    }

    /// ffprobe: decoding times increase in every stream, and no frame is presented before it is decoded.
    fn decreasing_stamps(path: &str) -> Vec<String> {
        let mut newest = std::collections::BTreeMap::new();
        let mut findings = Vec::new();
        for (stream, pts, dts, _) in stamps(path) {
            let before = newest.insert(stream, dts);
            if pts < dts || before.is_some_and(|before| dts <= before) {
                findings.push(format!("stream {stream}: PTS {pts}, DTS {dts} after {before:?}"));
            }
        }
        findings
    }

    /// The part of the recording that ffmpeg decodes.
    #[derive(PartialEq)]
    enum Depth {
        Packets,
        Pictures,
    }

    /// ffmpeg: returns its warnings.
    fn ffmpeg_warnings(path: &str, depth: Depth) -> Vec<String> {
        // A stream that is absent for more than ten seconds, because other sources do not have it, would
        // count as a jump of the clock.
        let patient = ["-v", "warning", "-dts_delta_threshold", "1000"];
        let copy: &[&str] = if depth == Depth::Packets { &["-c", "copy"] } else { &[] };
        let (input, output) = (["-i", path, "-map", "0"], ["-f", "null", "-"]);
        let output = run("ffmpeg", "ffmpeg", &[&patient[..], &PROBE_ALL, &input, copy, &output].concat());
        assert!(output.status.success(), "ffmpeg cannot read it: {}", text(&output));
        // Reported for streams that the last source does not have.
        let is_expected = |line: &&str| line.contains("no PTS found at end of file, duration not set");
        text(&output).lines().filter(|line| !is_expected(line)).map(str::to_owned).collect()
    }

    /// tshark: returns missing packets.
    fn lost_packets(path: &str) -> Vec<String> {
        let fields = ["-T", "fields", "-e", "frame.number", "-e", "mp2t.pid", "-e", "mp2t.cc.drop"];
        let output = run("tshark", "tshark", &[&["-r", path, "-Y", "mp2t.cc.drop"], &fields[..]].concat());
        assert!(output.status.success(), "tshark cannot read it: {}", text(&output));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    /// tsreport: returns the steps backwards of the programme clock, except for its wrap.
    fn decreasing_clocks(path: &str) -> Vec<String> {
        let output = run("tsreport", "tstools", &["-timing", path]);
        let report = text(&output);
        assert!(output.status.success(), "tsreport cannot read it: {report}");
        let clock = |line: &str| line.split_once(".. PCR")?.1.split_whitespace().next()?.parse::<u64>().ok();
        let clocks: Vec<u64> = report.lines().filter_map(clock).collect();
        assert!(clocks.len() > 10, "tsreport saw no clock: {report}");
        let is_back = |pair: &&[u64]| distance(pair[0], pair[1], STAMP_MODULUS * 300) <= 0;
        clocks.windows(2).filter(is_back).map(|pair| format!("PCR {} after {}", pair[1], pair[0])).collect()
    }

    /// tsreport: returns its warnings when it follows the streams of the programme, which must stay on their
    /// PIDs.
    fn buffer_warnings(path: &str) -> Vec<String> {
        let output = run("tsreport", "tstools", &["-buffering", path]);
        let report = text(&output);
        assert!(
            output.status.success() && report.contains("PCRs found"),
            "tsreport cannot read it: {report}"
        );
        report.lines().filter(|line| line.contains("###")).map(str::to_owned).collect()
    }

    // Holds T-view.1 for what a recorder sees.
    #[test]
    fn a_recording_of_sources_with_all_codecs_is_valid() {
        let folder = TempDir::new().unwrap();
        let h264 = make_clip(folder.path(), "h264", 0.0, &[H264_AAC]);
        let mpeg2 = make_clip(folder.path(), "mpeg2", WRAP - 5.0, &[MPEG2_MP2, OTHER_PIDS]);
        let hevc = make_clip(folder.path(), "hevc", 40_000.0, &[HEVC_AC3, &["-mpegts_start_pid", "500"]]);
        let radio = make_clip(folder.path(), "radio", 7.0, &[RADIO]);
        let mut recording = Recording::new();
        recording.play(&h264, 0.0, 6.3);
        recording.gap(1.5);
        recording.play(&mpeg2, 3.0, 6.0);
        recording.gap(0.4);
        recording.play(&hevc, 0.0, 6.55);
        recording.gap(3.0);
        recording.play(&radio, 0.0, 4.0);
        recording.gap(0.0);
        recording.play(&h264, 5.0, 5.0);
        recording.check(folder.path());
    }

    #[test]
    fn a_recording_across_the_wrap_of_the_clock_is_valid() {
        let folder = TempDir::new().unwrap();
        let wraps = make_clip(folder.path(), "wraps", WRAP - 8.0, &[H264_AAC]);
        let other = make_clip(folder.path(), "other", 12_345.6, &[H264_AAC, OTHER_PIDS]);
        let mut recording = Recording::new();
        recording.play(&wraps, 2.0, 4.7);
        recording.gap(2.0);
        recording.play(&other, 4.0, 5.0);
        // The same source again, from the start.
        recording.gap(0.7);
        recording.play(&wraps, 0.0, 11.0);
        recording.check(folder.path());
    }

    #[test]
    fn sources_with_the_same_codecs_form_one_programme() {
        let folder = TempDir::new().unwrap();
        let first = make_clip(folder.path(), "first", 5.0, &[H264_AAC]);
        // Its clock wraps while it plays.
        let other = make_clip(folder.path(), "other", WRAP - 6.0, &[H264_AAC, OTHER_PIDS]);
        let mut recording = Recording::new();
        recording.play(&first, 0.0, 5.1);
        recording.gap(1.0);
        recording.play(&other, 4.0, 5.0);
        recording.gap(0.2);
        recording.play(&first, 2.0, 5.0);
        recording.check(folder.path());
        let path = recording.write(folder.path());
        // Audio, video and clock of all three agree.
        assert_eq!(buffer_warnings(path.to_str().unwrap()), Vec::<String>::new());
    }

    #[test]
    fn a_source_lost_in_the_middle_of_a_frame_leaves_no_damage() {
        let folder = TempDir::new().unwrap();
        let h264 = make_clip(folder.path(), "h264", 5.0, &[H264_AAC]);
        let mpeg2 = make_clip(folder.path(), "mpeg2", WRAP - 6.0, &[MPEG2_MP2, OTHER_PIDS]);
        let hevc = make_clip(folder.path(), "hevc", 777.0, &[HEVC_AC3]);
        let mut recording = Recording::new();
        for (clip, burst, stream) in [
            (&h264, 3.0, 0),
            (&mpeg2, 0.0, 0),
            (&h264, 4.0, 1),
            (&hevc, 5.0, 0),
            (&mpeg2, 2.0, 1),
            (&hevc, 0.0, 1),
        ] {
            recording.play_half_a_frame(clip, burst, 4.5, stream);
            recording.gap(0.8);
        }
        recording.play(&h264, 0.0, 3.0);
        // Nothing follows the last source, so what is unfinished is left out here.
        recording.gap(0.0);
        recording.check(folder.path());
        let path = recording.write(folder.path());
        assert_eq!(ffmpeg_warnings(path.to_str().unwrap(), Depth::Pictures), Vec::<String>::new());
    }

    #[test]
    fn a_source_that_starts_at_an_open_group_of_pictures_leaves_no_damage() {
        const OPEN_H264: &[&str] = &[
            "-c:v",
            "libx264",
            "-preset",
            "ultrafast",
            "-bf",
            "2",
            "-x264-params",
            "open-gop=1:keyint=25:scenecut=0",
            "-c:a",
            "aac",
        ];
        const OPEN_HEVC: &[&str] = &[
            "-c:v",
            "libx265",
            "-preset",
            "ultrafast",
            "-x265-params",
            "log-level=none:open-gop=1:keyint=25:bframes=3:scenecut=0",
            "-c:a",
            "ac3",
        ];
        for (name, arguments) in [("h264", OPEN_H264), ("hevc", OPEN_HEVC), ("mpeg2", MPEG2_MP2)] {
            let folder = TempDir::new().unwrap();
            let first = make_clip(folder.path(), "first", 5.0, &[arguments]);
            let other = make_clip(folder.path(), "other", 70.0, &[arguments, OTHER_PIDS]);
            let mut recording = Recording::new();
            for (clip, burst, seconds) in
                [(&first, 0.0, 3.7), (&other, 2.3, 3.1), (&first, 4.6, 4.0), (&other, 3.4, 3.3)]
            {
                recording.play_half_a_frame(clip, burst, seconds, 0);
                recording.gap(0.3);
            }
            recording.check(folder.path());
            let path = recording.write(folder.path());
            let mut warnings = ffmpeg_warnings(path.to_str().unwrap(), Depth::Pictures);
            if name == "h264" {
                // No picture of this source resets the decoder. Its first pictures release earlier ones that were never
                // received; the decoder reports that, and shows everything.
                let is_explained = |line: &String| {
                    ["mmco: unref short", "non monotonically", "Last message"]
                        .iter()
                        .any(|it| line.contains(it))
                };
                warnings.retain(|line| !is_explained(line));
            }
            assert_eq!(warnings, Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn the_tools_report_errors_without_the_splice() {
        let folder = TempDir::new().unwrap();
        let clips = [
            make_clip(folder.path(), "one", 50.0, &[H264_AAC]),
            make_clip(folder.path(), "two", 0.0, &[H264_AAC]),
        ];
        let path = folder.path().join("glued.ts");
        let bytes: Vec<u8> = clips.iter().flat_map(|clip| clip.0[..700].iter().flat_map(|it| it.1)).collect();
        std::fs::write(&path, bytes).unwrap();
        let path = path.to_str().unwrap();
        for findings in [
            decreasing_stamps(path),
            ffmpeg_warnings(path, Depth::Pictures),
            lost_packets(path),
            decreasing_clocks(path),
        ] {
            assert!(!findings.is_empty());
        }
    }
}
