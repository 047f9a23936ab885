//! Plays windows of segments with independent programs: ffprobe and ffmpeg read playlists and segments of sources that
//! ffmpeg generated.
//!
//! Requires ffmpeg; the failure of a test without it names the package.

#[cfg(test)]
mod slow {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;
    use std::process::{Command, Output};
    use std::sync::Arc;
    use std::time::{Duration, UNIX_EPOCH};

    use bytes::Bytes;
    use media::segment::{
        Packager, PlaylistRequest, SegmentContainer, SegmentNames, SegmentSettings, SegmentWindow,
    };
    use media::ts::packet::PACKET;
    use tempfile::TempDir;
    use tokio::time::Instant;

    const H264: &[&str] = &["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "50"];
    const AAC: &[&str] = &["-c:a", "aac", "-b:a", "96k"];

    fn run(program: &str, arguments: &[&str]) -> Output {
        match Command::new(program).args(arguments).output() {
            Ok(output) => output,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                panic!("this test needs {program}: apt-get install ffmpeg")
            }
            Err(error) => panic!("failed to run {program}: {error}"),
        }
    }

    fn text(output: &Output) -> String {
        [output.stdout.as_slice(), output.stderr.as_slice()].map(String::from_utf8_lossy).concat()
    }

    /// Generates a clip of 20 s, and returns its path.
    fn make_clip(folder: &Path, name: &str, arguments: &[&[&str]]) -> String {
        let path = folder.join(format!("{name}.ts")).to_str().unwrap().to_owned();
        let mut all = vec!["-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25"];
        all.extend(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000", "-t", "20"]);
        all.extend(arguments.iter().flat_map(|it| it.iter()));
        all.extend(["-f", "mpegts", &path]);
        let output = run("ffmpeg", &all);
        assert!(output.status.success(), "generate clip {name}: {}", text(&output));
        path
    }

    /// Passes files through a packager, one after the other.
    fn window(files: &[String], container: SegmentContainer) -> Arc<SegmentWindow> {
        let settings = SegmentSettings { playlist_segments: 1000, ..SegmentSettings::default() };
        let now = UNIX_EPOCH + Duration::from_secs(1_764_201_600);
        let window = Arc::new(SegmentWindow::new(container, settings, now));
        let mut packager = Packager::new(Arc::clone(&window));
        let start = Instant::now();
        for file in files {
            let bytes = Bytes::from(fs::read(file).unwrap());
            for at in (0..bytes.len()).step_by(7 * PACKET) {
                packager.push(&bytes.slice(at..bytes.len().min(at + 7 * PACKET)), start);
            }
        }
        packager.finish();
        window
    }

    /// Writes the playlist of a window and its files, and returns the path of the playlist.
    fn write(window: &SegmentWindow, folder: &Path) -> String {
        fs::create_dir_all(folder).unwrap();
        let request = PlaylistRequest { names: SegmentNames::default(), ..PlaylistRequest::default() };
        let playlist = window.playlist(&request).unwrap();
        let description = window.description();
        let extension = window.container().extension();
        for number in description.oldest_sequence.unwrap()..=description.newest_sequence.unwrap() {
            let bytes = window.segment(number).unwrap().to_bytes();
            fs::write(folder.join(format!("{number}.{extension}")), bytes).unwrap();
        }
        for version in 1..=description.init_version.unwrap_or(0) {
            if let Some(init) = window.init(version) {
                fs::write(folder.join(format!("init-{version}.mp4")), init).unwrap();
            }
        }
        let path = folder.join("list.m3u8").to_str().unwrap().to_owned();
        fs::write(&path, format!("{}#EXT-X-ENDLIST\n", playlist.text)).unwrap();
        path
    }

    /// Returns the number of frames and their first and last time for each kind of stream.
    fn frames(file: &str) -> BTreeMap<String, (usize, f64, f64)> {
        let options = ["-v", "error", "-allowed_extensions", "ALL", "-extension_picky", "0"];
        let options = if file.ends_with("m3u8") { &options[..] } else { &options[..2] };
        let entries = ["-show_entries", "packet=codec_type,pts_time", "-of", "csv=p=0", file];
        let output = run("ffprobe", &[options, &entries].concat());
        let mut found: BTreeMap<String, (usize, f64, f64)> = BTreeMap::new();
        let table = String::from_utf8_lossy(&output.stdout).into_owned();
        for line in table.lines() {
            let mut fields = line.split(',');
            let (Some(kind), Some(time)) = (fields.next(), fields.next()) else { continue };
            let Ok(time) = time.parse::<f64>() else { continue };
            let entry = found.entry(kind.to_owned()).or_insert((0, time, time));
            (entry.0, entry.1, entry.2) = (entry.0 + 1, entry.1.min(time), entry.2.max(time));
        }
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "ffprobe of {file}");
        found
    }

    /// Decodes everything and returns the complaints of ffmpeg.
    fn complaints(file: &str) -> String {
        let options = ["-v", "warning", "-allowed_extensions", "ALL", "-extension_picky", "0"];
        let output = run("ffmpeg", &[&options[..], &["-i", file, "-map", "0", "-f", "null", "-"]].concat());
        text(&output)
    }

    /// Checks that both containers play as the clip does, and that they name these codecs.
    #[track_caller]
    fn check(name: &str, arguments: &[&[&str]], codecs: &str) {
        let folder = TempDir::new().unwrap();
        let clip = make_clip(folder.path(), name, arguments);
        let expected = frames(&clip);
        for container in [SegmentContainer::Ts, SegmentContainer::Fmp4] {
            let window = window(std::slice::from_ref(&clip), container);
            let description = window.description();
            assert_eq!(
                description.codecs().as_deref(),
                Some(codecs),
                "{name} {container:?}: {description:?}"
            );
            let list = write(&window, &folder.path().join(format!("{container:?}")));
            let found = frames(&list);
            assert_eq!(found.len(), expected.len(), "{name} {container:?}: {found:?}");
            for (kind, (n, first, last)) in &expected {
                let (n_found, first_found, last_found) = found[kind];
                // Sound before the first picture is left out.
                let n_missing = n.checked_sub(n_found).unwrap();
                // Through a playlist, ffprobe counts the PES packets of Opus, which have several frames each.
                let is_countable = name != "opus" || kind != "audio" || container == SegmentContainer::Fmp4;
                assert!(
                    !is_countable || n_missing <= if kind == "audio" { 8 } else { 0 },
                    "{name} {container:?} {kind}: {n_found} of {n}"
                );
                let length = (last_found - first_found) - (last - first);
                assert!(length.abs() < 0.25, "{name} {container:?} {kind}: {length} s longer");
            }
            assert_eq!(complaints(&list), "", "{name} {container:?}");
        }
    }

    #[test]
    fn h264_and_aac_play() {
        check("h264", &[H264, AAC], "avc1.4d400d,mp4a.40.2");
    }

    #[test]
    fn hevc_and_ac3_play() {
        let hevc =
            ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:keyint=50:bframes=2"];
        check("hevc", &[&hevc, &["-c:a", "ac3"]], "hvc1.1.6.L60.90,ac-3");
    }

    #[test]
    fn mpeg2_and_mp2_play() {
        let mpeg2 = ["-c:v", "mpeg2video", "-bf", "2", "-g", "12", "-b:v", "600k", "-c:a", "mp2"];
        check("mpeg2", &[&mpeg2], "mp4v.61,mp4a.40.33");
    }

    #[test]
    fn eac3_and_mp3_and_opus_play() {
        check("eac3", &[H264, &["-c:a", "eac3", "-ac", "6"]], "avc1.4d400d,ec-3");
        check("mp3", &[H264, &["-c:a", "libmp3lame"]], "avc1.4d400d,mp4a.40.34");
        check("opus", &[H264, &["-c:a", "libopus"]], "avc1.4d400d,opus");
    }

    #[test]
    fn radio_plays() {
        check("radio", &[&["-map", "1:a"], AAC], "mp4a.40.2");
    }

    #[test]
    fn interlaced_video_plays() {
        let fields = ["-flags", "+ilme+ildct", "-x264-params", "tff=1:interlaced=1"];
        check("interlaced", &[H264, &fields, &["-profile:v", "high"], AAC], "avc1.4d4015,mp4a.40.2");
    }
}
