//! What a window of segments contains.

use std::time::{Duration, SystemTime};

use crate::ts::picture::PictureSize;

/// The properties of the stream in a window, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SegmentDescription {
    /// The streams that segments carry, in the order of the PMT.
    pub tracks: Vec<SegmentTrack>,
    /// The streams that the container cannot carry, or of which it carries one only.
    pub left_out: Vec<LeftOutTrack>,
    /// The displayed size of the pictures.
    pub picture: Option<PictureSize>,
    /// Pictures per second.
    pub frame_rate: Option<f64>,
    /// Bits per second of the segment with the highest rate in the window.
    pub peak_bandwidth: Option<u64>,
    /// Bits per second of all segments in the window.
    pub average_bandwidth: Option<u64>,
    /// The target duration of the playlist, once the first segment is complete. It does not change.
    pub target_duration: Option<Duration>,
    /// The longest part, for a window with parts.
    pub part_target: Option<Duration>,
    /// The number of the newest complete segment.
    pub newest_sequence: Option<u64>,
    /// The number of the oldest segment in the playlist.
    pub oldest_sequence: Option<u64>,
    /// The number of segments in the playlist.
    pub n_segments: usize,
    /// When the end of the newest segment or part arrived, by the wall clock: the present time minus this is the delay
    /// of the window.
    pub newest_media: Option<SystemTime>,
    /// Bytes that the window holds.
    pub bytes: usize,
    /// The version of the newest initialisation segment, for fMP4.
    pub init_version: Option<u32>,
}

impl SegmentDescription {
    /// Returns the codecs for the attribute `CODECS` of a master playlist and for the type of a response (RFC 6381);
    /// `None` until they are known. A track whose codec has no standard name is left out if the picture has one: players
    /// choose a decoder by it.
    pub fn codecs(&self) -> Option<String> {
        let has_picture = self.tracks.iter().any(|it| it.is_video && it.codec.is_some());
        let tracks = self.tracks.iter().filter(|it| !has_picture || it.codec.is_some());
        let names: Option<Vec<&str>> = tracks.map(|it| it.codec.as_deref()).collect();
        names.filter(|it| !it.is_empty()).map(|it| it.join(","))
    }
}

/// A stream that segments carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentTrack {
    /// The PID of the stream.
    pub pid: u16,
    /// The short name of the codec for display, for example `H.264`.
    pub name: &'static str,
    /// The codec as RFC 6381 writes it, for example `avc1.64001f`, once it is known.
    pub codec: Option<String>,
    /// Whether the stream is video.
    pub is_video: bool,
}

/// A stream that segments do not carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutTrack {
    /// The PID of the stream.
    pub pid: u16,
    /// The short name of the codec for display.
    pub name: &'static str,
    /// Why the stream is left out; completes "left out because …".
    pub reason: &'static str,
}
