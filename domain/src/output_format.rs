//! The forms in which players ask for a live stream, and those in which they get it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::user::User;

/// The custom property of a user with the formats that the user may play, the preferred one first.
pub const OUTPUT_FORMATS: &str = "output_formats";

/// A form of a live stream that a player can ask for, by the extension of an address or by a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputFormat {
    /// A transport stream in one response.
    Ts,
    /// Playlists of HLS and short segments.
    Hls,
    /// Fragmented MP4 in one response.
    Mp4,
}

impl OutputFormat {
    pub const ALL: [Self; 3] = [Self::Ts, Self::Hls, Self::Mp4];

    /// Returns the name by which player apps know the format, which is also the extension of its addresses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ts => "ts",
            Self::Hls => "m3u8",
            Self::Mp4 => "mp4",
        }
    }

    /// Returns the format with this name, in any of the forms that players and people use.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim();
        let is = |names: &[&str]| names.iter().any(|it| it.eq_ignore_ascii_case(name));
        if is(&["ts", "mpegts", "mpeg-ts"]) {
            Some(Self::Ts)
        } else if is(&["m3u8", "hls"]) {
            Some(Self::Hls)
        } else if is(&["mp4", "fmp4"]) {
            Some(Self::Mp4)
        } else {
            None
        }
    }
}

/// The formats that somebody may play, the preferred one first. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AllowedFormats(Vec<OutputFormat>);

impl Default for AllowedFormats {
    fn default() -> Self {
        Self(OutputFormat::ALL.into())
    }
}

impl AllowedFormats {
    /// Returns those of a user. A property that names no format limits nothing.
    pub fn from_user(user: &User) -> Self {
        let texts: Vec<&str> = match user.custom_properties.get(OUTPUT_FORMATS) {
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(text)) => text.split(',').collect(),
            _ => Vec::new(),
        };
        let mut formats = Vec::with_capacity(OutputFormat::ALL.len());
        for format in texts.into_iter().filter_map(OutputFormat::from_name) {
            if !formats.contains(&format) {
                formats.push(format);
            }
        }
        if formats.is_empty() { Self::default() } else { Self(formats) }
    }

    /// Returns the format for requests that ask for none.
    pub fn preferred(&self) -> OutputFormat {
        self.0.first().copied().unwrap_or(OutputFormat::Ts)
    }

    pub fn contains(&self, format: OutputFormat) -> bool {
        self.0.contains(&format)
    }

    pub fn iter(&self) -> impl Iterator<Item = OutputFormat> {
        self.0.iter().copied()
    }
}

/// How media is packed in segments and fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentContainer {
    Ts,
    /// Fragmented MP4 in the form of CMAF.
    Fmp4,
}

/// The form in which a viewer gets a live channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamFormat {
    /// A transport stream in one response.
    #[default]
    Ts,
    /// Segments, through playlists of HLS.
    Hls(SegmentContainer),
    /// The same, with parts of segments before they are complete.
    LowLatencyHls,
    /// Fragmented MP4 in one response.
    Fmp4,
}

impl StreamFormat {
    /// Returns the name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ts => "mpegts",
            Self::Hls(SegmentContainer::Ts) => "hls-ts",
            Self::Hls(SegmentContainer::Fmp4) => "hls-fmp4",
            Self::LowLatencyHls => "ll-hls",
            Self::Fmp4 => "fmp4",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ids::UserId;
    use crate::user::UserLevel;

    fn check(property: Option<Value>, expected: &[&str]) {
        let mut user = User::new(UserId(1), "anna", UserLevel::Streamer, 0);
        if let Some(property) = property.clone() {
            user.custom_properties.insert(OUTPUT_FORMATS.to_owned(), property);
        }
        let formats = AllowedFormats::from_user(&user);
        let names: Vec<_> = formats.iter().map(OutputFormat::name).collect();
        assert_eq!(names, expected, "{property:?}");
        assert_eq!(formats.preferred().name(), expected[0], "{property:?}");
    }

    #[test]
    fn the_formats_of_a_user_are_a_list_or_a_text_and_never_none() {
        let all = &["ts", "m3u8", "mp4"][..];
        check(None, all);
        check(Some(json!(["m3u8", "ts"])), &["m3u8", "ts"]);
        check(Some(json!("HLS, mpegts")), &["m3u8", "ts"]);
        check(Some(json!(["ts", "mpegts", "rtmp", 7])), &["ts"]);
        for other in [json!([]), json!(["rtmp"]), json!(7), json!(null), json!({ "a": 1 })] {
            check(Some(other), all);
        }
    }

    #[test]
    fn a_format_has_several_names() {
        for (name, expected) in [
            ("ts", Some(OutputFormat::Ts)),
            ("mpegts", Some(OutputFormat::Ts)),
            ("HLS", Some(OutputFormat::Hls)),
            (" m3u8 ", Some(OutputFormat::Hls)),
            ("fmp4", Some(OutputFormat::Mp4)),
            ("mp4", Some(OutputFormat::Mp4)),
            ("rtmp", None),
            ("", None),
        ] {
            assert_eq!(OutputFormat::from_name(name), expected, "{name}");
        }
    }
}
