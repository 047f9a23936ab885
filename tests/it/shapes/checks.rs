//! Reads a recording with ffprobe, ffmpeg, tshark and tsreport.

use std::collections::BTreeMap;

use crate::shapes::table::Explained;
use crate::support::tools;

/// Arguments with which ffmpeg and ffprobe look at a whole file for its streams.
pub const WHOLE_FILE: [&str; 4] = ["-probesize", "50M", "-analyzeduration", "50M"];
const TURN_90K: i64 = 1 << 33;

/// A recording in a file.
pub struct Recording {
    file: tempfile::NamedTempFile,
}

impl Recording {
    pub fn new(bytes: &[u8]) -> Recording {
        Recording { file: tools::saved(bytes) }
    }

    fn path(&self) -> &str {
        self.file.path().to_str().expect("temporary folders have plain names")
    }

    /// Returns everything that the programs find wrong. `step_max` is the longest allowed step of a decoding time, in
    /// seconds.
    pub async fn findings(&self, streams: &[&str], step_max: f64, explained: &[Explained]) -> Vec<String> {
        let mut findings = self.streams(streams).await;
        findings.extend(self.stamps(step_max).await);
        findings.extend(self.decoder_messages().await);
        findings.extend(self.missing_packets().await);
        findings.extend(self.clock_errors().await);
        for Explained { part, times_max, reason } in explained {
            let times = findings.iter().filter(|finding| finding.contains(part)).count();
            findings.retain(|finding| !finding.contains(part));
            if times > *times_max {
                findings.push(format!("\"{part}\" {times} times, expected {times_max}: {reason}"));
            }
        }
        findings
    }

    /// ffprobe: codec and language of each stream.
    async fn streams(&self, expected: &[&str]) -> Vec<String> {
        let what = [
            "-v",
            "error",
            "-show_entries",
            "stream=id,codec_name:stream_tags=language",
            "-of",
            "compact=p=0:nk=1",
        ];
        let text = tools::text_of("ffprobe", &[&what[..], &WHOLE_FILE, &[self.path()]].concat()).await;
        // ffprobe prints the streams once for the programme and once for the file.
        let mut seen = BTreeMap::new();
        for line in text.lines() {
            let mut fields = line.split('|');
            if let (Some(codec), Some(id)) = (fields.next(), fields.next()) {
                let language =
                    fields.find(|it| !it.is_empty()).map(|it| format!(" {it}")).unwrap_or_default();
                seen.insert(
                    u16::from_str_radix(id.trim_start_matches("0x"), 16).ok(),
                    format!("{codec}{language}"),
                );
            }
        }
        let seen: Vec<String> = seen.into_values().collect();
        let differs = seen != expected;
        differs.then(|| format!("ffprobe: streams {seen:?} instead of {expected:?}")).into_iter().collect()
    }

    /// ffprobe: decoding times increase in every stream, by at most `step_max`, and nothing is presented before it is
    /// decoded.
    async fn stamps(&self, step_max: f64) -> Vec<String> {
        let what = [
            "-v",
            "error",
            "-show_entries",
            "packet=codec_type,stream_index,pts,dts",
            "-of",
            "compact=p=0:nk=1",
        ];
        let text = tools::text_of("ffprobe", &[&what[..], &WHOLE_FILE, &[self.path()]].concat()).await;
        let mut newest: BTreeMap<String, i64> = BTreeMap::new();
        let mut findings = Vec::new();
        for line in text.lines() {
            let fields: Vec<&str> = line.split('|').collect();
            let [kind, stream, pts, dts, ..] = fields[..] else { continue };
            // Sections carry no time stamp.
            if kind == "data" {
                continue;
            }
            let (Ok(pts), Ok(dts)) = (pts.parse::<i64>(), dts.parse::<i64>()) else {
                findings.push(format!("ffprobe: stream {stream}: a packet without time stamps: {line}"));
                continue;
            };
            if pts < dts {
                findings.push(format!("ffprobe: stream {stream}: presented at {pts}, decoded at {dts}"));
            }
            let Some(before) = newest.insert(stream.into(), dts) else { continue };
            let step = (dts - before + TURN_90K / 2).rem_euclid(TURN_90K) - TURN_90K / 2;
            // Subtitles and teletext may repeat a time.
            if step < 0 || step == 0 && kind != "subtitle" || step as f64 > step_max * 90_000.0 {
                findings.push(format!(
                    "ffprobe: stream {stream}: decoding time {dts} after {before}, limit {step_max:.1} s"
                ));
            }
        }
        findings
    }

    /// ffmpeg: what it prints while it decodes everything that it can decode.
    pub async fn decoder_messages(&self) -> Vec<String> {
        let before = ["-nostdin", "-hide_banner", "-v", "warning"];
        // Without `-enc_time_base` ffmpeg rounds to whole frames, and complains if a pause at a change of source is not.
        let after = [
            "-i",
            self.path(),
            "-map",
            "0",
            "-c:s",
            "copy",
            "-c:d",
            "copy",
            "-enc_time_base",
            "-1",
            "-f",
            "null",
            "-",
        ];
        let ran = tools::run("ffmpeg", &[&before[..], &WHOLE_FILE, &after].concat()).await;
        let text = String::from_utf8_lossy(&ran.stderr).into_owned();
        let mut findings: Vec<String> = text.lines().map(|line| format!("ffmpeg: {line}")).collect();
        if !ran.status.success() {
            findings.push(format!("ffmpeg: {}", ran.status));
        }
        findings
    }

    /// tshark: missing packets.
    async fn missing_packets(&self) -> Vec<String> {
        let fields = ["-T", "fields", "-e", "frame.number", "-e", "mp2t.pid"];
        let text =
            tools::text_of("tshark", &[&["-r", self.path(), "-Y", "mp2t.cc.drop"], &fields[..]].concat())
                .await;
        text.lines().map(|line| format!("tshark: packets are missing before frame and PID {line}")).collect()
    }

    /// tsreport: the same, in a recording with gaps. It takes the clock before each packet of a gap for a value between
    /// those before and after it, so that the last units before a gap seem to come too late.
    pub async fn clock_errors_beside_gaps(&self, n_gaps: usize) -> Vec<String> {
        // The units of a tenth of a second, and a sum for each stream.
        const LINES_MAX: usize = 12;
        let mut findings = self.clock_errors().await;
        let n_findings = findings.len();
        findings.retain(|it| !(it.contains("DTS") && it.contains("< PCR")));
        if n_findings - findings.len() > n_gaps * LINES_MAX {
            findings.push(format!("tsreport: {} times DTS < PCR", n_findings - findings.len()));
        }
        findings
    }

    /// tsreport: what it marks as wrong, and steps backwards of the clock.
    pub async fn clock_errors(&self) -> Vec<String> {
        let buffers = tools::run("tsreport", &["-buffering", self.path()]).await;
        let timing = tools::run("tsreport", &["-timing", self.path()]).await;
        let mut findings = Vec::new();
        for ran in [&buffers, &timing] {
            let text = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
            findings.extend(
                text.lines().filter(|line| line.contains("###")).map(|line| format!("tsreport: {line}")),
            );
            if !ran.status.success() {
                findings.push(format!("tsreport: {}", ran.status));
            }
        }
        let text = String::from_utf8_lossy(&timing.stdout);
        let clock = |line: &str| line.split_once(".. PCR")?.1.split_whitespace().next()?.parse::<i64>().ok();
        let clocks: Vec<i64> = text.lines().filter_map(clock).collect();
        if clocks.len() < 10 {
            findings.push(format!("tsreport: only {} clocks", clocks.len()));
        }
        for pair in clocks.windows(2) {
            let turn = TURN_90K * 300;
            if (pair[1] - pair[0] + turn / 2).rem_euclid(turn) <= turn / 2 {
                findings.push(format!("tsreport: clock {} after {}", pair[1], pair[0]));
            }
        }
        findings
    }
}
