//! Properties of a stream that few entries of playlists have: marks for players, ids of other guides, and options that
//! only a player can use.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Maximum number of options of one entry.
pub const PLAYER_OPTIONS_MAX: usize = 32;

/// Properties that few entries have. Stored only if there is one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryDetails {
    /// Its station in a guide that some players bring themselves (`tvc-guide-stationid`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub station: Option<String>,
    /// The id that the provider gives the channel (`channel-id`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel_id: Option<String>,
    /// Marks that all players may see.
    #[serde(skip_serializing_if = "ChannelMarks::is_empty")]
    pub marks: ChannelMarks,
    /// Attributes without effect in the gateway, by name in lower case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<KeptAttribute>,
    /// Options for players, in the order of the playlist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<PlayerOption>,
}

/// Marks of a channel that are written to playlists as they were read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelMarks {
    /// A radio station.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_radio: bool,
    /// `tvg-language`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// `tvg-country`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
}

/// An attribute that is kept as it was read. Its value may be an address or a code, so it does not print.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeptAttribute {
    pub name: String,
    pub value: String,
}

/// An option for players. Its value may be a key or the address of a licence server, so it does not print.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlayerOption {
    pub form: OptionForm,
    pub name: String,
    pub value: String,
}

/// Where an option stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionForm {
    /// In a line `#KODIPROP:name=value`.
    Kodi,
    /// In a line `#EXTVLCOPT:name=value`.
    Vlc,
    /// Behind the address: `|name=value`.
    Pipe,
}

/// Properties of Kodi that name the type of a manifest. They contain no secret.
const MANIFEST_OPTIONS: [&str; 6] = [
    "inputstream",
    "inputstreamaddon",
    "inputstreamclass",
    "mimetype",
    "inputstream.adaptive.manifest_type",
    "manifest_type",
];

impl EntryDetails {
    /// Returns the details of a radio station of which nothing else is known.
    pub fn radio() -> Self {
        Self { marks: ChannelMarks { is_radio: true, ..ChannelMarks::default() }, ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the size of all texts, in bytes.
    pub fn text_bytes(&self) -> usize {
        let ids: usize = [&self.station, &self.channel_id].into_iter().flatten().map(String::len).sum();
        let attributes: usize = self.attributes.iter().map(|it| it.name.len() + it.value.len()).sum();
        let options: usize = self.options.iter().map(|it| it.name.len() + it.value.len()).sum();
        ids + self.marks.text_bytes() + attributes + options
    }
}

impl ChannelMarks {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the size of its texts, in bytes.
    pub fn text_bytes(&self) -> usize {
        [&self.language, &self.country].into_iter().flatten().map(String::len).sum()
    }
}

impl PlayerOption {
    /// Returns whether it names the type of a manifest and nothing else, so that viewers may get it.
    pub fn is_manifest_type(&self) -> bool {
        let is_word = |it: &str| it.bytes().all(|it| it.is_ascii_alphanumeric() || b".-+/_".contains(&it));
        self.form == OptionForm::Kodi
            && MANIFEST_OPTIONS.iter().any(|it| self.name.eq_ignore_ascii_case(it))
            && self.value.len() <= 64
            && is_word(&self.value)
    }
}

impl fmt::Debug for KeptAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=…", self.name)
    }
}

impl fmt::Debug for PlayerOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}=…", self.form, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_url::SourceUrl;
    use crate::stream::StreamProperties;

    fn option(form: OptionForm, name: &str, value: &str) -> PlayerOption {
        PlayerOption { form, name: name.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn the_size_of_a_stream_is_that_of_all_its_texts() {
        let mut stream = StreamProperties::new("abc", SourceUrl::new("http://h/1"));
        assert_eq!(stream.text_bytes(), 13);
        let text = || "12345".to_owned();
        stream.headers.user_agent = Some(text());
        stream.headers.extra = vec![(text(), text())];
        (stream.tvg_id, stream.group, stream.logo) = (Some(text()), Some(text()), Some(text()));
        let marks = ChannelMarks { is_radio: true, language: Some(text()), country: Some(text()) };
        stream.details = Some(Box::new(EntryDetails {
            station: Some(text()),
            channel_id: Some(text()),
            marks,
            attributes: vec![KeptAttribute { name: text(), value: text() }],
            options: vec![option(OptionForm::Pipe, "12345", "12345")],
        }));
        assert_eq!(stream.text_bytes(), 13 + 14 * 5);
    }

    #[test]
    fn only_types_of_manifests_are_for_all_viewers() {
        let kodi = |name, value| option(OptionForm::Kodi, name, value);
        for (option, expected) in [
            (kodi("inputstream.adaptive.manifest_type", "mpd"), true),
            (kodi("inputstream", "inputstream.adaptive"), true),
            (kodi("mimetype", "application/dash+xml"), true),
            (kodi("mimetype", "http://u:p@h/"), false),
            (kodi("inputstream.adaptive.license_type", "clearkey"), false),
            (kodi("inputstream.adaptive.license_key", "00:11"), false),
            (kodi("inputstream.adaptive.stream_headers", "Cookie=a"), false),
            (option(OptionForm::Vlc, "mimetype", "video/mp2t"), false),
        ] {
            assert_eq!(option.is_manifest_type(), expected, "{option:?}");
        }
    }

    #[test]
    fn values_that_may_be_keys_do_not_print() {
        let details = EntryDetails {
            attributes: vec![KeptAttribute { name: "parent-code".to_owned(), value: "hunter2".to_owned() }],
            options: vec![option(OptionForm::Kodi, "license_key", "hunter2")],
            ..EntryDetails::default()
        };
        let printed = format!("{details:?}");
        assert!(printed.contains("license_key") && !printed.contains("hunter2"), "{printed}");
    }
}
