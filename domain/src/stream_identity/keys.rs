//! The comparison values of an entry or a stream: hashes with a key that is valid for one refresh only. They are neither
//! stored nor shown, because addresses contain credentials.

use std::hash::{BuildHasher, Hash, RandomState};

use icu_normalizer::ComposingNormalizerBorrowed;

use super::IdentityKey;
use super::bare_address::{BareForm, may_have_random_parts, without_usual_port, write_bare};
use super::marks::{MarkReader, Marks};
use super::panel_id::panel_id;
use crate::source_url::SourceUrl;
use crate::stream::StreamProperties;

/// Texts that providers write in place of a value.
const FILLERS: &[&str] = &[
    "-1",
    "0",
    "00",
    "empty",
    "false",
    "n-a",
    "n.a.",
    "n/a",
    "na",
    "nil",
    "no",
    "no epg",
    "no id",
    "no-id",
    "none",
    "noepg",
    "null",
    "tbd",
    "undefined",
    "unknown",
    "xx",
    "xxx",
];

/// The keys of one entry or stream. A hash of 0 does not count.
#[derive(Clone, Copy, Default)]
pub struct IdentityKeys {
    pub(super) panel_id: u64,
    pub(super) address: u64,
    /// Without tokens in the query.
    pub(super) bare: u64,
    /// Without random parts of the path, too, if there are any.
    pub(super) barest: u64,
    /// `bare` lacks a value of the query that may be the id of the stream.
    pub(super) is_bare_guess: bool,
    pub(super) guide_id: u64,
    pub(super) name_and_group: u64,
    pub(super) name: u64,
    pub(super) host: u32,
    /// The words of the name besides its marks.
    pub(super) words: u32,
    pub(super) marks: Marks,
}

impl IdentityKeys {
    /// Returns the hash of the whole address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the hashes of a key; the first that agrees decides.
    pub(super) fn hashes(&self, key: IdentityKey) -> [u64; 2] {
        match key {
            IdentityKey::PanelId => [self.panel_id, 0],
            IdentityKey::Address => [self.address, 0],
            IdentityKey::BareAddress => [self.bare, self.barest],
            IdentityKey::GuideId => [self.guide_id, 0],
            IdentityKey::NameAndGroup => [self.name_and_group, 0],
            IdentityKey::Name => [self.name, 0],
        }
    }

    /// Returns whether the names, or the guide ids, are those of one channel. Events have one guide id, and names that
    /// differ in their numbers only.
    pub(super) fn agrees_in_name(&self, other: &Self) -> bool {
        let is_same = |a: u64, b: u64| a != 0 && a == b;
        let is_similar =
            is_same(self.guide_id, other.guide_id) || (self.words != 0 && self.words == other.words);
        is_same(self.name, other.name) || (is_similar && !self.marks.contradict(other.marks))
    }
}

/// Computes keys. One reader is used for the entries and the streams of a refresh.
#[derive(Clone)]
pub struct KeyReader {
    hasher: RandomState,
    marks: MarkReader,
    /// Users and passwords of the account.
    logins: Vec<String>,
    buffer: String,
}

impl KeyReader {
    /// Creates a reader with a new random key. `logins` are the users and passwords of the account; see
    /// [`account_logins`](super::account_logins).
    pub fn new(logins: Vec<String>) -> Self {
        let hasher = RandomState::new();
        Self { marks: MarkReader::new(hasher.clone()), hasher, logins, buffer: String::new() }
    }

    /// Returns the keys of an entry or a stream with these values of the provider.
    pub fn read(&mut self, properties: &StreamProperties) -> IdentityKeys {
        let StreamProperties { name, url, group, .. } = properties;
        let (marks, words) = self.marks.read(name);
        let panel_id = panel_id(url).map_or(0, |id| self.hash((id, url.split_program().1)));
        let name = self.name(name);
        let (bare, is_bare_guess) = self.bare(url, BareForm::WithPath);
        let group = group.as_deref().filter(|it| !it.trim().is_empty());
        IdentityKeys {
            panel_id,
            address: self.hash(url),
            bare,
            is_bare_guess,
            barest: match may_have_random_parts(url) {
                true => self.bare(url, BareForm::WithoutRandomParts).0,
                false => 0,
            },
            guide_id: guide_id(properties).map_or(0, |it| self.hash(it)),
            name_and_group: group.filter(|_| name != 0).map_or(0, |it| self.hash((name, it))),
            name,
            host: self.host(url),
            words,
            marks,
        }
    }

    /// Returns the hash of the guide id regardless of case; 0 without one.
    pub(super) fn folded_guide_id(&self, properties: &StreamProperties) -> u64 {
        guide_id(properties).map_or(0, |(kind, id)| self.hash((kind, id.to_lowercase())))
    }

    /// Returns the marks of a text.
    pub(super) fn marks(&mut self, text: &str) -> Marks {
        self.marks.read(text).0
    }

    /// Returns a number that is never 0.
    fn hash(&self, value: impl Hash) -> u64 {
        self.hasher.hash_one(value).max(1)
    }

    /// Returns the hash of an address without token-like parts, and whether one of them may be the id of the stream.
    fn bare(&mut self, url: &SourceUrl, form: BareForm) -> (u64, bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = write_bare(url, &self.logins, form, &mut buffer);
        let hash = written.map_or((0, false), |it| (self.hash(&buffer), it.is_guess));
        self.buffer = buffer;
        hash
    }

    /// Returns the hash of a name regardless of case, of the number of spaces, and of how its accents are encoded.
    fn name(&mut self, name: &str) -> u64 {
        if !counts(name) {
            return 0;
        }
        self.buffer.clear();
        for word in name.split_whitespace() {
            match word.is_ascii() {
                true => self.buffer.push_str(word),
                false => {
                    let composed = ComposingNormalizerBorrowed::new_nfc().normalize(word);
                    self.buffer.extend(composed.chars().flat_map(char::to_lowercase));
                }
            }
            self.buffer.push(' ');
        }
        self.buffer.make_ascii_lowercase();
        self.hash(&self.buffer)
    }

    fn host(&mut self, url: &SourceUrl) -> u32 {
        let Some(authority) = url.authority() else { return 0 };
        self.buffer.clear();
        self.buffer.push_str(without_usual_port(authority));
        self.buffer.make_ascii_lowercase();
        // The lower half is as random as the whole.
        self.hash(&self.buffer) as u32
    }
}

/// Returns what names the channel in a guide: `tvg-id`, else `channel-id`, else `tvc-guide-stationid`, each with its name,
/// because they are of different guides.
fn guide_id(properties: &StreamProperties) -> Option<(u8, &str)> {
    let details = properties.details.as_deref();
    let ids = [
        properties.tvg_id.as_deref(),
        details.and_then(|it| it.channel_id.as_deref()),
        details.and_then(|it| it.station.as_deref()),
    ];
    (0_u8..).zip(ids).find_map(|(kind, id)| Some((kind, id.filter(|it| counts(it))?.trim())))
}

/// Returns whether a text is a value, and not a filler.
fn counts(text: &str) -> bool {
    let text = text.trim();
    text.contains(char::is_alphanumeric) && !FILLERS.iter().any(|it| it.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fillers_and_empty_values_do_not_count() {
        for text in ["", " ", "0", "-", "-1", "None", "N/A", "na", "null", "undefined", "unknown", "???"] {
            assert!(!counts(text), "{text:?}");
        }
        for text in ["1", "news.uk", "Нет", "none.uk"] {
            assert!(counts(text), "{text:?}");
        }
    }

    #[test]
    fn names_are_equal_however_case_spaces_and_accents_are_written() {
        let mut reader = KeyReader::new(Vec::new());
        let mut name =
            |name: &str| reader.read(&StreamProperties::new(name, SourceUrl::new("http://h/1"))).name;
        for (one, other, is_equal) in [
            ("Caf\u{e9} TV", "Cafe\u{301}  tv", true),
            ("\u{c9}tat", "e\u{301}tat", true),
            ("Cafe TV", "Caf\u{e9} TV", false),
        ] {
            assert_eq!(name(one) == name(other), is_equal, "{one} {other}");
        }
    }

    #[test]
    fn keys_of_two_refreshes_differ() {
        let mut properties = StreamProperties::new("UK: News HD", SourceUrl::new("http://h/live/u/p/7.ts"));
        properties.tvg_id = Some("news.uk".to_owned());
        properties.group = Some("UK".to_owned());
        let hashes = |reader: &mut KeyReader| {
            let keys = reader.read(&properties);
            let of_keys = IdentityKey::ALL.map(|it| keys.hashes(it)[0]);
            (of_keys, [keys.host, keys.words])
        };
        let (mut one, mut other) = (KeyReader::new(Vec::new()), KeyReader::new(Vec::new()));
        let (first, second) = (hashes(&mut one), hashes(&mut other));
        assert_eq!(first, hashes(&mut one), "one reader");
        for (first, second) in first.0.iter().zip(second.0) {
            assert!(*first != 0 && *first != second, "a hash can be compared with one of another refresh");
        }
        assert_ne!(first.1, second.1);
    }

    #[test]
    fn keys_take_96_bytes_at_most() {
        assert!(size_of::<IdentityKeys>() <= 96, "{}", size_of::<IdentityKeys>());
    }
}
