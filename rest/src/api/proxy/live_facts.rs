//! The facts about a live channel that dashboards and integrations read, in the names and forms of the reference service.

use actors::{ChannelStatus, StreamFacts};

/// The names that ffmpeg, and so the clients, have for codecs.
const CODECS: [(&str, &str); 17] = [
    ("MPEG-1 video", "mpeg1video"),
    ("MPEG-2 video", "mpeg2video"),
    ("MPEG-4 video", "mpeg4"),
    ("H.264", "h264"),
    ("H.265", "hevc"),
    ("H.266", "vvc"),
    ("AV1", "av1"),
    ("AVS", "cavs"),
    ("VC-1", "vc1"),
    ("Dirac", "dirac"),
    ("MPEG audio", "mp2"),
    ("AAC", "aac"),
    ("AC-3", "ac3"),
    ("E-AC-3", "eac3"),
    ("TrueHD", "truehd"),
    ("DTS", "dts"),
    ("Opus", "opus"),
];

/// Returns the name that clients have for a codec.
pub(super) fn codec(name: Option<&str>) -> Option<&str> {
    let name = name?;
    Some(CODECS.iter().find(|it| it.0 == name).map_or(name, |it| it.1))
}

/// Returns the size of the picture as text.
pub(super) fn resolution(facts: &StreamFacts) -> Option<String> {
    facts.picture.map(|(width, height)| format!("{width}x{height}"))
}

/// Returns the average rate from providers in kilobits per second; `None` in the first second.
pub(super) fn avg_bitrate_kbps(status: &ChannelStatus) -> Option<f64> {
    let seconds = status.since_first_play.map(|it| it.as_secs_f64()).filter(|it| *it >= 1.0)?;
    Some(tenths(status.bytes_in as f64 * 8.0 / 1000.0 / seconds))
}

/// Returns a rate in kilobits per second as text.
pub(super) fn bitrate_text(kbps: f64) -> String {
    if kbps >= 1000.0 { format!("{:.2} Mbps", kbps / 1000.0) } else { format!("{kbps:.2} Kbps") }
}

/// Returns the name of the node that has the connection to the provider.
pub(super) fn owner(status: &ChannelStatus) -> String {
    status.node.as_ref().map_or_else(|| "local".to_owned(), |it| it.origin.to_string())
}

/// Returns seconds since 1970.
pub(super) fn epoch(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

pub(super) fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_have_the_names_that_clients_know() {
        for (name, expected) in
            [("H.264", "h264"), ("H.265", "hevc"), ("MPEG audio", "mp2"), ("private data", "private data")]
        {
            assert_eq!(codec(Some(name)), Some(expected));
        }
        assert_eq!(codec(None), None);
    }

    #[test]
    fn a_rate_is_shown_in_the_larger_unit_from_a_thousand_on() {
        for (kbps, text) in [(3_851.76, "3.85 Mbps"), (1_000.0, "1.00 Mbps"), (999.9, "999.90 Kbps")] {
            assert_eq!(bitrate_text(kbps), text);
        }
    }
}
