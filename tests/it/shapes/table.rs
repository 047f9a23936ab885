//! The table of shapes; a new shape is a row.

use super::edit::ClockPid;

/// A kind of stream that providers send.
pub struct Shape {
    pub name: &'static str,
    /// Encoder arguments of the video; `None` for radio.
    pub video: Option<&'static [&'static str]>,
    /// Encoder and language of each audio stream.
    pub audio: &'static [(&'static str, &'static str)],
    /// Order of the audio streams in the second source.
    pub second_audio: Option<&'static [(&'static str, &'static str)]>,
    /// Further arguments for the muxer of ffmpeg.
    pub muxer: &'static [&'static str],
    pub added: Option<Added>,
    pub clock: ClockPid,
    /// Whether key frames are six seconds apart, so that a picture is awaited for about half as long as it may be: a busy
    /// machine has as much time again. The second source begins half a second after one.
    pub has_long_groups: bool,
    /// Bytes before and after each packet of 188 bytes.
    pub padding: (usize, usize),
    /// The streams of the recording in the order of their PIDs, as ffprobe calls them, with their languages.
    pub streams: &'static [&'static str],
    /// Lines that the programs may print about the recording.
    pub explained: &'static [Explained],
}

/// A line that a program prints although the recording is right.
pub struct Explained {
    pub part: &'static str,
    pub times_max: usize,
    pub reason: &'static str,
}

/// A stream that ffmpeg cannot generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    Teletext,
    TeletextWithoutStamps,
    /// With time stamps that are half a day behind the programme.
    TeletextWithForeignStamps,
    Subtitles,
    /// Metadata without time stamps.
    Klv,
    CueMessages,
}

const H264: &[&str] = &[
    "-c:v",
    "libx264",
    "-preset",
    "ultrafast",
    "-x264-params",
    "keyint=12:min-keyint=12:scenecut=0:bframes=2:b-pyramid=none",
];
const H264_LONG_GROUPS: &[&str] = &[
    "-c:v",
    "libx264",
    "-preset",
    "ultrafast",
    "-x264-params",
    "keyint=150:min-keyint=150:scenecut=0:bframes=2:b-pyramid=none",
];
const H264_OPEN_GOP: &[&str] = &[
    "-c:v",
    "libx264",
    "-preset",
    "ultrafast",
    "-x264-params",
    "keyint=12:min-keyint=12:scenecut=0:bframes=3:open-gop=1",
];
const HEVC: &[&str] = &[
    "-c:v",
    "libx265",
    "-preset",
    "ultrafast",
    "-x265-params",
    "log-level=none:keyint=12:min-keyint=12:scenecut=0:bframes=2:open-gop=0",
];
const HEVC_OPEN_GOP: &[&str] = &[
    "-c:v",
    "libx265",
    "-preset",
    "ultrafast",
    "-x265-params",
    "log-level=none:keyint=12:min-keyint=12:scenecut=0:bframes=3:open-gop=1",
];
const MPEG2: &[&str] = &[
    "-c:v",
    "mpeg2video",
    "-bf",
    "2",
    "-g",
    "12",
    "-b:v",
    "500k",
    "-flags",
    "+cgop",
    "-sc_threshold",
    "1000000000",
];
const MPEG2_OPEN_GOP: &[&str] = &["-c:v", "mpeg2video", "-bf", "2", "-g", "12", "-b:v", "500k"];

const fn sections_as_pes(part: &'static str) -> Explained {
    let reason = "tsreport expects PES packets in every stream and does not know sections";
    Explained { part, times_max: usize::MAX, reason }
}

const PLAIN: Shape = Shape {
    name: "",
    video: Some(H264),
    audio: &[("aac", "eng")],
    second_audio: None,
    muxer: &[],
    added: None,
    clock: ClockPid::Reference,
    has_long_groups: false,
    padding: (0, 0),
    streams: &["h264", "aac eng"],
    explained: &[],
};

pub const SHAPES: &[Shape] = &[
    Shape { name: "h264-aac", ..PLAIN },
    // Holds T-fo.10.
    Shape { name: "long-groups", video: Some(H264_LONG_GROUPS), has_long_groups: true, ..PLAIN },
    Shape {
        name: "h264-open-gop",
        video: Some(H264_OPEN_GOP),
        explained: &[
            Explained {
                part: "mmco: unref short failure",
                times_max: 3,
                reason: "at the start and at each change of source to a picture that is not an IDR, x264 releases a picture that the viewer missed, if its frame number is not that of another one",
            },
            Explained {
                part: "non monotonically increasing dts to muxer in stream 0",
                times_max: 2,
                reason: "at each change of source to a picture that is not an IDR, ffmpeg makes up a picture for the missing frame numbers",
            },
            Explained {
                part: "illegal short term buffer state detected",
                times_max: 2,
                reason: "at each change of source to a picture that is not an IDR, its frame number, one of sixteen, may be that of the last picture",
            },
        ],
        ..PLAIN
    },
    Shape {
        name: "hevc-ac3",
        video: Some(HEVC),
        audio: &[("ac3", "eng")],
        muxer: &["-mpegts_flags", "system_b"],
        streams: &["hevc", "ac3 eng"],
        ..PLAIN
    },
    Shape {
        name: "hevc-open-gop",
        video: Some(HEVC_OPEN_GOP),
        audio: &[("ac3", "eng")],
        streams: &["hevc", "ac3 eng"],
        ..PLAIN
    },
    Shape {
        name: "mpeg2-mp2",
        video: Some(MPEG2),
        audio: &[("mp2", "eng")],
        streams: &["mpeg2video", "mp2 eng"],
        ..PLAIN
    },
    Shape {
        name: "mpeg2-open-gop",
        video: Some(MPEG2_OPEN_GOP),
        audio: &[("mp2", "eng")],
        streams: &["mpeg2video", "mp2 eng"],
        ..PLAIN
    },
    Shape { name: "eac3", audio: &[("eac3", "eng")], streams: &["h264", "eac3 eng"], ..PLAIN },
    Shape { name: "latm", muxer: &["-mpegts_flags", "latm"], streams: &["h264", "aac_latm eng"], ..PLAIN },
    Shape {
        name: "two-languages",
        audio: &[("mp2", "eng"), ("mp2", "deu")],
        streams: &["h264", "mp2 eng", "mp2 deu"],
        ..PLAIN
    },
    Shape {
        name: "two-languages-exchanged",
        audio: &[("mp2", "eng"), ("mp2", "deu")],
        second_audio: Some(&[("mp2", "deu"), ("mp2", "eng")]),
        streams: &["h264", "mp2 eng", "mp2 deu"],
        ..PLAIN
    },
    Shape { name: "radio-mp2", video: None, audio: &[("mp2", "eng")], streams: &["mp2 eng"], ..PLAIN },
    Shape { name: "radio-aac", video: None, streams: &["aac eng"], ..PLAIN },
    Shape { name: "radio-ac3", video: None, audio: &[("ac3", "eng")], streams: &["ac3 eng"], ..PLAIN },
    Shape {
        name: "teletext",
        added: Some(Added::Teletext),
        streams: &["h264", "aac eng", "dvb_teletext deu"],
        ..PLAIN
    },
    Shape {
        name: "teletext-without-stamps",
        added: Some(Added::TeletextWithoutStamps),
        streams: &["h264", "aac eng", "dvb_teletext deu"],
        ..PLAIN
    },
    Shape {
        name: "teletext-with-foreign-stamps",
        added: Some(Added::TeletextWithForeignStamps),
        streams: &["h264", "aac eng", "dvb_teletext deu"],
        explained: &[
            Explained {
                part: "ffprobe: stream 2: decoding time",
                times_max: 1,
                reason: "the first source arrives unchanged: its stamps are foreign until the first change of source",
            },
            Explained { part: "< PCR", times_max: 2, reason: "tsreport marks these stamps, and counts them" },
        ],
        ..PLAIN
    },
    Shape {
        name: "klv",
        added: Some(Added::Klv),
        streams: &["h264", "aac eng", "klv"],
        explained: &[Explained {
            part: "start time for stream 2 is not set",
            times_max: 1,
            reason: "the metadata has no time stamps",
        }],
        ..PLAIN
    },
    Shape {
        name: "subtitles",
        added: Some(Added::Subtitles),
        streams: &["h264", "aac eng", "dvb_subtitle deu"],
        ..PLAIN
    },
    Shape {
        name: "cue-messages",
        added: Some(Added::CueMessages),
        streams: &["h264", "aac eng", "scte_35"],
        explained: &[
            sections_as_pes("Error looking for PTS/DTS in TS packet"),
            sections_as_pes("PES packet start code prefix is 00 fc 30"),
        ],
        ..PLAIN
    },
    Shape {
        name: "two-programmes",
        muxer: &["-program", "title=One:st=0:st=1", "-program", "title=Two:st=2:st=3"],
        ..PLAIN
    },
    Shape { name: "packets-of-192-bytes", padding: (4, 0), ..PLAIN },
    Shape { name: "packets-of-204-bytes", padding: (0, 16), ..PLAIN },
    Shape { name: "clock-on-audio", clock: ClockPid::Audio, ..PLAIN },
    Shape { name: "clock-on-its-own-pid", clock: ClockPid::Own, ..PLAIN },
];
