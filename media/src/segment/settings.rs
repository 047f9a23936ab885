//! The settings of a window of segments.

use std::time::Duration;

/// The container of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentContainer {
    /// MPEG transport stream, for old players.
    Ts,
    /// Fragmented MP4 (CMAF), for browsers and Apple devices.
    Fmp4,
}

impl SegmentContainer {
    /// Returns the content type of a segment or of a part.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Ts => "video/mp2t",
            Self::Fmp4 => "video/mp4",
        }
    }

    /// Returns the extension of the names of segments, without a dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Ts => "ts",
            Self::Fmp4 => "m4s",
        }
    }
}

/// The limits of a window of segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSettings {
    /// The wanted length of a segment; a segment ends at the random-access point that is nearest to it.
    pub target: Duration,
    /// A segment is cut at this length even if no random-access point follows. Once the first segment is complete, the
    /// target duration of the playlist takes its place.
    pub longest: Duration,
    /// The longest part of a segment, for low latency.
    pub part_target: Duration,
    /// Number of segments in the playlist.
    pub playlist_segments: usize,
    /// Number of segments that can still be fetched after they have left the playlist.
    pub kept_segments: usize,
    /// Above this many bytes segments leave the window earlier, except for the newest three, and the newest segment is
    /// cut when it alone has a quarter of them.
    pub bytes: usize,
    /// The number of the first segment is at least this, for example the one after the last number of a window that has
    /// ended.
    pub first_number_min: u64,
}

impl Default for SegmentSettings {
    fn default() -> Self {
        Self {
            target: Duration::from_secs(4),
            longest: Duration::from_secs(10),
            part_target: Duration::from_millis(500),
            playlist_segments: 6,
            kept_segments: 6,
            bytes: 96 << 20,
            first_number_min: 0,
        }
    }
}

impl SegmentSettings {
    /// Returns the settings with values that fit each other: times above zero, and at least three segments.
    pub(crate) fn valid(self) -> Self {
        let target = self.target.clamp(Duration::from_secs(1), Duration::from_secs(60));
        Self {
            target,
            longest: self.longest.clamp(target, Duration::from_secs(120)),
            part_target: self.part_target.clamp(Duration::from_millis(100), target),
            playlist_segments: self.playlist_segments.clamp(3, 1000),
            kept_segments: self.kept_segments.min(1000),
            bytes: self.bytes.max(1 << 20),
            first_number_min: self.first_number_min.min(1 << 52),
        }
    }
}
