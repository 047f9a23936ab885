//! The attributes of entries that playlists in use have: as what each is read, where it is stored, and as what it is
//! written again. `docs/playlist-attributes.md` shows the table to people.
//!
//! An attribute that is not in the table is read and forgotten.

use self::AttributeMeaning::*;
use self::AttributeOutput::{All, Direct, Never};
use crate::channel::ChannelNumber;
use crate::entry_details::{ChannelMarks, EntryDetails, KeptAttribute, PlayerOption};
use crate::panel::LooseValue;

/// Attributes that are kept of one entry at most.
const KEPT_MAX: usize = 32;
/// Larger numbers in `channel-id` are ids of a provider and no channel numbers.
const NUMBER_IN_ID_MAX: u32 = 99_999;

/// Characters that are kept of a language or a country at most. All streams have theirs in memory.
const MARK_CHARS_MAX: usize = 64;

/// As what an attribute is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeMeaning {
    GuideId,
    Name,
    Logo,
    Group,
    Number,
    /// The id that the provider gives the channel, which often is its number.
    ProviderId,
    UserAgent,
    Referrer,
    Station,
    Radio,
    Language,
    Country,
    /// A mark of adult content.
    Adult,
    /// The code that opens a locked channel, which is a mark of adult content as well.
    AdultCode,
    /// Live, film, series or radio.
    Type,
    /// A property of the archive.
    Archive,
    /// The shift of the guide.
    GuideShift,
    /// Nothing in the gateway.
    ForPlayers,
}

/// To whom an attribute is written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeOutput {
    /// To all who get the entry, under this name.
    All(&'static str),
    /// To admins who ask for the addresses of providers, under its own name, or as the request header that it is.
    Direct,
    /// To nobody. The text is the reason.
    Never(&'static str),
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownAttribute {
    /// In lower case. Those of one row mean the same.
    pub names: &'static [&'static str],
    pub meaning: AttributeMeaning,
    pub output: AttributeOutput,
}

const fn row(
    names: &'static [&'static str],
    meaning: AttributeMeaning,
    output: AttributeOutput,
) -> KnownAttribute {
    KnownAttribute { names, meaning, output }
}

/// All attributes, the most frequent ones first.
pub const ATTRIBUTES: &[KnownAttribute] = &[
    row(&["tvg-id"], GuideId, All("tvg-id")),
    row(&["tvg-name"], Name, All("tvg-name")),
    row(&["tvg-logo", "logo"], Logo, All("tvg-logo")),
    row(&["group-title", "tvg-group"], Group, All("group-title")),
    row(
        &[
            "tvg-chno",
            "tv-chno",
            "ch-number",
            "channel-number",
            "tvg-channel-number",
            "tvg-number",
            "tvg-num",
            "ch-no",
            "chno",
            "channel-no",
            "tvg-channel-no",
            "tvg-ch-no",
            "number",
        ],
        Number,
        All("tvg-chno"),
    ),
    row(&["channel-id"], ProviderId, Direct),
    row(&["tvc-guide-stationid"], Station, All("tvc-guide-stationid")),
    row(&["tvg-language"], Language, All("tvg-language")),
    row(&["tvg-country"], Country, All("tvg-country")),
    row(&["radio"], Radio, All("radio")),
    row(
        &["tvg-type", "stream-type", "stream_type", "media-type", "type"],
        Type,
        Never("films and episodes become titles, and radio stations are marked with radio"),
    ),
    row(
        &[
            "catchup",
            "catchup-type",
            "catchup-source",
            "catchup-days",
            "catchup-correction",
            "timeshift",
            "tvg-rec",
        ],
        Archive,
        Never("the archive of the gateway is written instead"),
    ),
    row(&["tvg-shift"], GuideShift, Never("the guide of the gateway contains the shift already")),
    row(
        &["is_adult", "is-adult", "adult", "tvg-adult", "censored"],
        Adult,
        Never("the mark decides who gets the channel, and is in the answers of the panel"),
    ),
    row(&["parent-code"], AdultCode, Direct),
    row(&["http-user-agent", "user-agent"], UserAgent, Direct),
    row(&["http-referrer", "http-referer", "referrer", "referer"], Referrer, Direct),
    row(
        &[
            "group-logo",
            "group-id",
            "recording",
            "recordable",
            "tvg-recording",
            "aspect-ratio",
            "audio-track",
            "deinterlace",
            "crop",
            "lock",
            "description",
            "provider",
            "provider-type",
            "provider-logo",
            "tvg-url",
            "tvc-guide-title",
            "tvc-guide-description",
            "tvc-guide-art",
            "tvc-guide-tags",
            "tvc-guide-genres",
            "tvc-guide-categories",
            "tvc-guide-placeholders",
            "tvc-stream-vcodec",
            "tvc-stream-acodec",
            "tvc-stream-timestamps",
        ],
        ForPlayers,
        Direct,
    ),
];

/// Returns the meaning of an attribute, whatever the case of its name; `None` if nobody knows it.
pub fn meaning_of(name: &str) -> Option<AttributeMeaning> {
    let is_it = |row: &&KnownAttribute| row.names.iter().any(|it| it.eq_ignore_ascii_case(name));
    ATTRIBUTES.iter().find(is_it).map(|it| it.meaning)
}

/// Returns the properties that few entries have. Of attributes with one meaning, the first counts; their names are in lower
/// case.
pub fn details_of(attributes: &[(String, String)], options: Vec<PlayerOption>) -> EntryDetails {
    let mut details = EntryDetails { options, ..EntryDetails::default() };
    for (name, value) in attributes {
        let EntryDetails { station, channel_id, marks, attributes: kept, .. } = &mut details;
        let ChannelMarks { is_radio, language, country } = marks;
        match meaning_of(name) {
            Some(Station) => keep(station, value),
            Some(ProviderId) => keep(channel_id, value),
            Some(Language) => keep(language, mark_of(value)),
            Some(Country) => keep(country, mark_of(value)),
            Some(Radio) => *is_radio |= LooseValue::Text(value.clone()).is_yes(),
            Some(Type) => *is_radio |= is_radio_type(value),
            Some(AdultCode | ForPlayers)
                if kept.len() < KEPT_MAX && !kept.iter().any(|it| it.name == *name) =>
            {
                kept.push(KeptAttribute { name: name.clone(), value: value.clone() });
            }
            _ => {}
        }
    }
    details
}

/// Returns the beginning of a language or a country.
fn mark_of(value: &str) -> &str {
    let value = value.trim_start();
    let end = value.char_indices().nth(MARK_CHARS_MAX).map_or(value.len(), |it| it.0);
    value[..end].trim_end()
}

fn keep(field: &mut Option<String>, value: &str) {
    if field.is_none() && LooseValue::Text(value.to_owned()).text().is_some() {
        *field = Some(value.to_owned());
    }
}

/// Returns whether a stated type is that of a radio station.
pub fn is_radio_type(text: &str) -> bool {
    ["radio", "radio_streams", "created_radio"].iter().any(|it| text.trim().eq_ignore_ascii_case(it))
}

/// Returns the channel number that an id of a provider is, if it is short enough for one.
pub fn number_in_id(id: &str) -> Option<ChannelNumber> {
    let number: ChannelNumber = id.trim().parse().ok()?;
    (!number.is_zero() && number <= ChannelNumber::whole(NUMBER_IN_ID_MAX)?).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playlist::delta::stream_properties;
    use crate::playlist::m3u::{PlaylistItem, PlaylistLimits, parse};
    use crate::playlist::write::{OutputEntry, OutputHints, write_entry};
    use crate::stream::StreamProperties;

    /// Returns the properties of an entry with this attribute alone.
    fn read(name: &str, value: &str) -> StreamProperties {
        let text = format!("#EXTINF:-1 {name}=\"{value}\",Other\nhttp://h/1\n");
        let entries =
            parse(text.as_bytes(), PlaylistLimits::default()).0.into_iter().filter_map(|it| match it {
                PlaylistItem::Entry(entry) => Some(entry),
                _ => None,
            });
        stream_properties(entries.last().unwrap_or_else(|| panic!("{name} costs the entry")))
    }

    /// Returns a value that an attribute can have, and what is stored of it.
    fn stored(meaning: AttributeMeaning, name: &str) -> (&'static str, Option<String>) {
        let value = match meaning {
            Number => "7",
            ProviderId => "gs-1",
            Radio | Adult => "true",
            Type => "radio",
            AdultCode => "1234",
            Archive if ["catchup", "catchup-type"].contains(&name) => "shift",
            Archive if name == "catchup-source" => "http://h/?utc={utc}",
            Archive => "3",
            _ => "value",
        };
        let it = read(name, value);
        let details = it.details.as_deref().cloned().unwrap_or_default();
        let kept = || details.attributes.iter().find(|it| it.name == name).map(|it| it.value.clone());
        let yes = |is: bool| is.then(|| value.to_owned());
        let stored = match meaning {
            GuideId => it.tvg_id,
            // The text behind the comma is the name.
            Name => yes(it.name == "Other"),
            Logo => it.logo,
            Group => it.group,
            Number => it.number.map(|it| it.to_string()),
            ProviderId => details.channel_id,
            UserAgent => it.headers.user_agent,
            Referrer => it.headers.referrer,
            Station => details.station,
            Language => details.marks.language,
            Country => details.marks.country,
            Radio | Type => yes(details.marks.is_radio),
            Adult => yes(it.is_adult),
            AdultCode => kept().filter(|_| it.is_adult),
            // Days and corrections are those of an archive that another attribute names.
            Archive => yes(it.archive.is_some() || ["catchup-days", "catchup-correction"].contains(&name)),
            GuideShift => yes(true),
            ForPlayers => kept(),
        };
        (value, stored)
    }

    #[test]
    fn every_attribute_of_the_table_is_stored_as_it_says() {
        for row in ATTRIBUTES {
            for name in row.names {
                assert_eq!(meaning_of(&name.to_uppercase()), Some(row.meaning), "{name} is in two rows");
                let (value, stored) = stored(row.meaning, name);
                assert_eq!(stored.as_deref(), Some(value), "{name}");
            }
        }
        assert_eq!(meaning_of("tvg-unknown"), None);
    }

    #[test]
    fn every_attribute_of_the_table_is_written_as_it_says() {
        for row in ATTRIBUTES {
            for name in row.names {
                let it = read(name, stored(row.meaning, name).0);
                let details = it.details.as_deref();
                let number = it.number;
                let written = |is_direct: bool| {
                    let mut out = String::new();
                    let line = OutputEntry {
                        name: &it.name,
                        url: "http://gateway/1",
                        tvg_id: it.tvg_id.as_deref().unwrap_or_default(),
                        tvg_logo: it.logo.as_deref().unwrap_or_default(),
                        tvg_chno: number,
                        station: details.and_then(|it| it.station.as_deref()).unwrap_or_default(),
                        group: it.group.as_deref().unwrap_or_default(),
                        marks: details.map(|it| &it.marks),
                        hints: is_direct.then_some(OutputHints::Direct { headers: &it.headers, details }),
                        ..OutputEntry::default()
                    };
                    write_entry(&mut out, &line);
                    out
                };
                let value = stored(row.meaning, name).0;
                let has = |text: &str, name: &str| text.contains(&format!(" {name}=\"{value}\""));
                match row.output {
                    All("tvg-name") => {
                        assert!(written(false).contains("tvg-name=\"Other\""))
                    }
                    All(output) => assert!(has(&written(false), output), "{name}"),
                    Direct => {
                        assert!(!written(false).contains(value), "{name} is written to everybody");
                        assert!(written(true).contains(value), "{name}: {}", written(true));
                    }
                    Never(_) => assert!(!has(&written(true), name), "{name}"),
                }
            }
        }
    }

    #[test]
    fn the_page_of_attributes_names_all_of_them() {
        let page = include_str!("../../../docs/playlist-attributes.md");
        for name in ATTRIBUTES.iter().flat_map(|it| it.names) {
            assert!(page.contains(&format!("`{name}`")), "{name} is missing");
        }
    }

    #[test]
    fn an_id_of_a_provider_is_a_number_only_if_it_looks_like_one() {
        for (id, expected) in [
            ("275", Some("275")),
            ("4.1", Some("4.1")),
            ("99999", Some("99999")),
            ("100000", None),
            ("0", None),
            ("gs-1", None),
            ("5ce5a1", None),
            ("", None),
        ] {
            assert_eq!(number_in_id(id).map(|it| it.to_string()).as_deref(), expected, "{id}");
        }
        assert_eq!(read("channel-id", "275").number, "275".parse().ok());
        let both = "#EXTINF:-1 channel-id=\"5\" ch-number=\"6\",A\nhttp://h/1\n";
        let (items, _) = parse(both.as_bytes(), PlaylistLimits::default());
        let Some(PlaylistItem::Entry(entry)) = items.into_iter().next() else { panic!("no entry") };
        assert_eq!(stream_properties(entry).number, "6".parse().ok());
    }

    #[test]
    fn a_long_language_or_country_is_cut() {
        let marks = |name: &str, value: &str| read(name, value).details.unwrap().marks;
        let long = "ö".repeat(1_000);
        assert_eq!(marks("tvg-language", &long).language, Some("ö".repeat(64)));
        assert_eq!(marks("tvg-country", &long).country, Some("ö".repeat(64)));
        assert_eq!(marks("tvg-country", "UK;IE").country.as_deref(), Some("UK;IE"));
    }

    #[test]
    fn filler_is_neither_a_station_nor_a_language() {
        for value in ["none", "null", "N/A", "undefined"] {
            for name in ["tvc-guide-stationid", "tvg-language", "channel-id"] {
                assert_eq!(read(name, value).details, None, "{name} {value}");
            }
        }
    }
}
