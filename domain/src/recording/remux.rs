//! The conversion of a recording to another container: what it must keep, and the chapters that it gets.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::comskip::Commercial;

/// Maximum difference between the lengths of a file and its conversion: two seconds, or a thousandth of the length.
const TOLERANCE_MS: u64 = 2_000;
const TOLERANCE_DIVISOR: u64 = 1_000;
/// Maximum length of a file, far beyond that of a recording, in seconds.
const SECONDS_MAX: f64 = 1_000_000.0;

/// A container for recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemuxFormat {
    #[default]
    Mkv,
    Mp4,
}

impl RemuxFormat {
    /// Every format with its name, which is also the extension of its files.
    pub const NAMES: [(&'static str, Self); 2] = [("mkv", Self::Mkv), ("mp4", Self::Mp4)];

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|it| it.1 == self).map_or("", |it| it.0)
    }

    /// Returns the name of the format for ffmpeg.
    pub fn muxer(self) -> &'static str {
        match self {
            Self::Mkv => "matroska",
            Self::Mp4 => "mp4",
        }
    }
}

/// The content of a file, as ffprobe reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbedFile {
    /// Length in milliseconds.
    pub length: u64,
    /// The time stamp with which it begins, in milliseconds.
    pub start: i64,
    /// Kind and codec of the streams that people see and hear, in order.
    pub streams: Vec<(String, String)>,
}

impl ProbedFile {
    /// Reads the report of ffprobe in JSON, with `format=duration,start_time` and `stream=codec_type,codec_name`. `None` if it
    /// lacks the length.
    pub fn parse(report: &[u8]) -> Option<Self> {
        let report: Value = serde_json::from_slice(report).ok()?;
        let seconds: f64 = report["format"]["duration"].as_str()?.parse().ok()?;
        let length = (0.0..=SECONDS_MAX).contains(&seconds).then(|| (seconds * 1000.0).round() as u64)?;
        let start = report["format"]["start_time"].as_str().and_then(|it| it.parse::<f64>().ok());
        let start = start.filter(|it| it.abs() <= SECONDS_MAX).map_or(0, |it| (it * 1000.0).round() as i64);
        let text = |it: &Value| match it.as_str() {
            // MP4 does not say which layer of MPEG audio it holds.
            Some("mp1" | "mp2" | "mp3") => "mpeg audio".to_owned(),
            name => name.unwrap_or("unknown").to_owned(),
        };
        let mut streams: Vec<_> = report["streams"]
            .as_array()?
            .iter()
            .map(|it| (text(&it["codec_type"]), text(&it["codec_name"])))
            .filter(|it| matches!(it.0.as_str(), "video" | "audio" | "subtitle"))
            .collect();
        // Containers may order streams by kind.
        streams.sort_by_key(|it| it.0.clone());
        Some(Self { length, start, streams })
    }

    /// Checks whether a conversion of this file is whole.
    ///
    /// # Errors
    /// The difference, for people.
    pub fn check_conversion(&self, to: &Self) -> Result<(), String> {
        self.check_length(to, 0)
    }

    /// Checks streams and length of a file. `more` is added to the tolerance of the length.
    pub(super) fn check_length(&self, to: &Self, more: u64) -> Result<(), String> {
        if self.streams.is_empty() {
            return Err("the file has neither picture nor sound".to_owned());
        }
        let names = |it: &Self| it.streams.iter().map(|it| it.1.as_str()).collect::<Vec<_>>().join(", ");
        if self.streams != to.streams {
            return Err(format!("the new file has the streams {} instead of {}", names(to), names(self)));
        }
        let tolerance = TOLERANCE_MS.max(self.length / TOLERANCE_DIVISOR) + more;
        if self.length.abs_diff(to.length) > tolerance {
            let seconds = |it: u64| it as f64 / 1000.0;
            return Err(format!(
                "the new file lasts {} s instead of {} s",
                seconds(to.length),
                seconds(self.length)
            ));
        }
        Ok(())
    }
}

/// Returns the metadata of a converted file in the format of ffmpeg: the title, and chapters where commercials begin and
/// end. `length` is that of the file in milliseconds.
pub fn ffmetadata(title: &str, commercials: &[Commercial], length: u64) -> String {
    let mut text = format!(";FFMETADATA1\ntitle={}\n", escaped(title));
    if commercials.is_empty() {
        return text;
    }
    let (mut at, mut n) = (0, 0);
    let mut chapter = |start: u64, end: u64, title: &str| {
        if start < end {
            // Writing to a text cannot fail.
            let _ = write!(text, "[CHAPTER]\nTIMEBASE=1/1000\nSTART={start}\nEND={end}\ntitle={title}\n");
        }
    };
    for it in commercials {
        if at < it.start {
            n += 1;
            chapter(at, it.start, &format!("Part {n}"));
        }
        chapter(it.start, it.end.min(length), "Commercials");
        at = it.end;
    }
    chapter(at, length, &format!("Part {}", n + 1));
    text
}

/// Escapes a value: one line without special characters.
fn escaped(value: &str) -> String {
    let mut text = String::new();
    for it in value.chars() {
        match it {
            '=' | ';' | '#' | '\\' => text.extend(['\\', it]),
            it if it.is_control() => text.push(' '),
            it => text.push(it),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed(seconds: &str, streams: &[(&str, &str)]) -> ProbedFile {
        let streams: Vec<_> =
            streams.iter().map(|it| serde_json::json!({ "codec_type": it.0, "codec_name": it.1 })).collect();
        let report = serde_json::json!({ "format": { "duration": seconds }, "streams": streams });
        ProbedFile::parse(report.to_string().as_bytes()).expect("a report")
    }

    #[test]
    fn a_conversion_has_all_streams_and_the_length() {
        let file =
            probed("60.5", &[("audio", "mp2"), ("video", "h264"), ("data", "scte_35"), ("audio", "ac3")]);
        let check =
            |seconds: &str, streams: &[(&str, &str)]| file.check_conversion(&probed(seconds, streams));
        let same = [("video", "h264"), ("audio", "mp2"), ("audio", "ac3")];
        assert_eq!(check("60.500", &same), Ok(()));
        assert_eq!(check("58.6", &same), Ok(()), "within two seconds");
        let layer = [("video", "h264"), ("audio", "mp3"), ("audio", "ac3")];
        assert_eq!(check("60.500", &layer), Ok(()), "as MP4 names it");
        assert_eq!(check("58.4", &same), Err("the new file lasts 58.4 s instead of 60.5 s".to_owned()));
        for streams in [&same[..2], &[("video", "h264"), ("audio", "ac3"), ("audio", "mp2")], &[]] {
            assert!(check("60.5", streams).is_err(), "{streams:?}");
        }
        let nothing = probed("60.5", &[]);
        assert!(nothing.check_conversion(&nothing).is_err());
        for wrong in ["", "{}", "[]", r#"{"format":{"duration":"N/A"},"streams":[]}"#] {
            assert_eq!(ProbedFile::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn chapters_begin_where_commercials_begin_and_end() {
        let commercials =
            [Commercial { start: 20_000, end: 40_000 }, Commercial { start: 50_000, end: 60_000 }];
        let text = ffmetadata("A=B\nC", &commercials, 60_000);
        assert!(text.starts_with(";FFMETADATA1\ntitle=A\\=B C\n"), "{text}");
        let chapters: Vec<_> = text.lines().filter(|it| it.starts_with(['S', 'E', 't'])).skip(1).collect();
        assert_eq!(
            chapters,
            [
                "START=0",
                "END=20000",
                "title=Part 1",
                "START=20000",
                "END=40000",
                "title=Commercials",
                "START=40000",
                "END=50000",
                "title=Part 2",
                "START=50000",
                "END=60000",
                "title=Commercials",
            ]
        );
        assert_eq!(ffmetadata("x", &[], 60_000), ";FFMETADATA1\ntitle=x\n");
    }
}
