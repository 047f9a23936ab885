//! Additional tags of the playlists of a lineup, for players that need more than the usual attributes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Maximum number of tags of one kind.
pub const TAGS_MAX: usize = 20;
/// Maximum length of the name of a tag, in bytes.
const TAG_NAME_BYTES_MAX: usize = 50;
/// Maximum length of the value of a tag, in characters.
const TAG_VALUE_CHARS_MAX: usize = 500;

/// Tags by name.
pub type Tags = BTreeMap<String, String>;

/// The additional tags of a playlist.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlaylistTags {
    /// Attributes of the first line.
    #[serde(default)]
    pub header: Tags,
    /// Attributes of every entry.
    #[serde(default)]
    pub entries: Tags,
    /// Properties of every entry for Kodi, each in a line `#KODIPROP:name=value`.
    #[serde(default)]
    pub properties: Tags,
}

/// A place for tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagPlace {
    Header,
    Entries,
    Properties,
}

/// The reason why a tag is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TagError {
    #[error("Ensure that there are no more than {TAGS_MAX} entries.")]
    TooMany,
    #[error(
        "The name \"{0}\" is not valid: use 1 to {TAG_NAME_BYTES_MAX} lower-case letters, digits, hyphens and underscores."
    )]
    AttributeName(String),
    #[error(
        "The name \"{0}\" is not valid: use 1 to {TAG_NAME_BYTES_MAX} letters, digits, dots, hyphens and underscores."
    )]
    PropertyName(String),
    #[error("The gateway itself writes \"{0}\".")]
    Reserved(String),
    #[error(
        "The value of \"{0}\" is not valid: use at most {TAG_VALUE_CHARS_MAX} characters without line breaks and double quotes."
    )]
    Value(String),
}

impl TagPlace {
    /// Returns the names that the gateway writes there itself. Those of the archive would promise what is not served.
    fn reserved(self) -> &'static [&'static str] {
        match self {
            Self::Header => &["x-tvg-url", "url-tvg", "tvg-url", "catchup", "catchup-source", "catchup-days"],
            Self::Entries => &[
                "tvg-id",
                "tvg-name",
                "tvg-logo",
                "tvg-chno",
                "tvc-guide-stationid",
                "group-title",
                "catchup",
                "catchup-source",
                "catchup-days",
            ],
            Self::Properties => &[],
        }
    }

    fn allows(self, name: &str) -> bool {
        let is_plain = |it: u8| match self {
            // Jellyfin reads attributes with these names only.
            Self::Header | Self::Entries => {
                it.is_ascii_lowercase() || it.is_ascii_digit() || matches!(it, b'-' | b'_')
            }
            Self::Properties => it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-' | b'_'),
        };
        (1..=TAG_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain)
    }
}

/// Checks tags for a place, so that they can be written unchanged and add no lines.
pub fn check_tags(place: TagPlace, tags: &Tags) -> Result<(), TagError> {
    if tags.len() > TAGS_MAX {
        return Err(TagError::TooMany);
    }
    for (name, value) in tags {
        let short: String = name.chars().take(TAG_NAME_BYTES_MAX).collect();
        if !place.allows(name) {
            return Err(match place {
                TagPlace::Properties => TagError::PropertyName(short),
                TagPlace::Header | TagPlace::Entries => TagError::AttributeName(short),
            });
        }
        if place.reserved().contains(&name.as_str()) {
            return Err(TagError::Reserved(short));
        }
        let breaks = |it: char| it.is_control() || matches!(it, '"' | '\u{2028}' | '\u{2029}');
        if value.chars().count() > TAG_VALUE_CHARS_MAX || value.chars().any(breaks) {
            return Err(TagError::Value(short));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(place: TagPlace, name: &str, value: &str) -> Result<(), TagError> {
        check_tags(place, &[(name.to_owned(), value.to_owned())].into())
    }

    #[test]
    fn a_tag_that_a_player_would_misread_is_refused() {
        use TagPlace::{Entries, Header, Properties};
        assert_eq!(check(Header, "refresh", "3600"), Ok(()));
        assert_eq!(check(Entries, "tvg-shift", "+1"), Ok(()));
        assert_eq!(check(Properties, "inputstream.adaptive.manifest_type", "hls"), Ok(()));
        for (place, name) in [(Header, "Refresh"), (Entries, "a b"), (Entries, ""), (Properties, "a=b")] {
            let found = check(place, name, "x");
            let is_name = matches!(found, Err(TagError::AttributeName(_) | TagError::PropertyName(_)));
            assert!(is_name, "{name:?}: {found:?}");
        }
        assert_eq!(check(Entries, "tvg-id", "x"), Err(TagError::Reserved("tvg-id".to_owned())));
        assert_eq!(check(Header, "url-tvg", "x"), Err(TagError::Reserved("url-tvg".to_owned())));
        for value in ["a\"b", "a\nhttp://x/", "a\u{2028}b", &"x".repeat(501)] {
            assert_eq!(check(Entries, "tvg-shift", value), Err(TagError::Value("tvg-shift".to_owned())));
        }
        let many: Tags = (0..=TAGS_MAX).map(|n| (format!("a{n}"), String::new())).collect();
        assert_eq!(check_tags(Entries, &many), Err(TagError::TooMany));
    }
}
