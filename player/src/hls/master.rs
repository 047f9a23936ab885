//! The master playlist of a session. It has one variant: the stream of the channel.

use std::fmt::Write as _;

use media::{SegmentContainer, SegmentDescription};

/// Announced if nothing is known yet, in bits per second. It decides nothing, because there is one variant.
const BANDWIDTH_DEFAULT: u64 = 8_000_000;

/// Writes the master playlist with the address of the media playlist.
pub(super) fn write(description: &SegmentDescription, container: SegmentContainer, media: &str) -> String {
    let version = match container {
        SegmentContainer::Ts => 3,
        SegmentContainer::Fmp4 => 7,
    };
    let bandwidth = description.peak_bandwidth.or(description.average_bandwidth).unwrap_or(BANDWIDTH_DEFAULT);
    let mut out =
        format!("#EXTM3U\n#EXT-X-VERSION:{version}\n#EXT-X-STREAM-INF:BANDWIDTH={}", bandwidth.max(1));
    // Writing to a text cannot fail.
    if let Some(average) = description.average_bandwidth.filter(|it| *it > 0) {
        let _ = write!(out, ",AVERAGE-BANDWIDTH={average}");
    }
    if let Some(codecs) = description.codecs() {
        let _ = write!(out, ",CODECS=\"{codecs}\"");
    }
    if let Some(picture) = description.picture {
        let _ = write!(out, ",RESOLUTION={}x{}", picture.width, picture.height);
    }
    if let Some(rate) = description.frame_rate {
        let _ = write!(out, ",FRAME-RATE={rate:.3}");
    }
    let _ = write!(out, "\n{media}\n");
    out
}

#[cfg(test)]
mod tests {
    use media::SegmentTrack;

    use super::*;

    #[test]
    fn a_master_playlist_tells_what_is_known() {
        let nothing = write(&SegmentDescription::default(), SegmentContainer::Ts, "/a/index.m3u8");
        let expected = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-STREAM-INF:BANDWIDTH=8000000\n/a/index.m3u8\n";
        assert_eq!(nothing, expected);
        let track = |codec: &str, is_video| SegmentTrack {
            pid: 0x100,
            name: "H.264",
            codec: Some(codec.to_owned()),
            is_video,
        };
        let known = SegmentDescription {
            tracks: vec![track("avc1.64001f", true), track("mp4a.40.2", false)],
            frame_rate: Some(25.0),
            peak_bandwidth: Some(5_000_000),
            average_bandwidth: Some(4_000_000),
            ..SegmentDescription::default()
        };
        let expected = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-STREAM-INF:BANDWIDTH=5000000,AVERAGE-BANDWIDTH=4000000,\
            CODECS=\"avc1.64001f,mp4a.40.2\",FRAME-RATE=25.000\n/a/index.m3u8\n";
        assert_eq!(write(&known, SegmentContainer::Fmp4, "/a/index.m3u8"), expected);
        // A track whose codec has no name does not hide the picture.
        let unnamed = SegmentTrack { codec: None, name: "DTS", pid: 0x101, is_video: false };
        let dts = SegmentDescription {
            tracks: vec![track("avc1.64001f", true), unnamed.clone()],
            frame_rate: Some(30_000.0 / 1001.0),
            ..SegmentDescription::default()
        };
        let text = write(&dts, SegmentContainer::Ts, "/a/index.m3u8");
        assert!(text.contains(",CODECS=\"avc1.64001f\",FRAME-RATE=29.970\n"), "{text}");
        let radio = SegmentDescription {
            tracks: vec![track("mp4a.40.34", false)],
            peak_bandwidth: Some(180_000),
            ..SegmentDescription::default()
        };
        let expected =
            "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-STREAM-INF:BANDWIDTH=180000,CODECS=\"mp4a.40.34\"\n/a\n";
        assert_eq!(write(&radio, SegmentContainer::Ts, "/a"), expected);
        // A picture without a name would look like radio.
        let picture = SegmentTrack { is_video: true, ..unnamed };
        let other = SegmentDescription { tracks: vec![picture, track("mp4a.40.2", false)], ..dts };
        assert!(!write(&other, SegmentContainer::Ts, "/a").contains("CODECS"));
    }
}
