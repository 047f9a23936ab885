//! The elements of a panel's lists.

use std::collections::HashMap;

use serde::Deserialize;

use super::loose::LooseValue;
use crate::catchup::Archive;
use crate::channel::ChannelNumber;
use crate::group::GROUP_NAME_CHARS_MAX;
use crate::playlist::attributes::is_radio_type;
use crate::playlist::catalogue::is_id;
use crate::playlist::content::{self, StreamContent};

/// Maximum number of categories that are kept. Panels have some hundred.
pub const CATEGORIES_MAX: usize = 20_000;

/// Maximum length of a name, in characters; the end of a longer one is dropped.
const NAME_CHARS_MAX: usize = 512;
/// Maximum length of a guide id, in characters, and of the address of a logo, in bytes; a longer one is dropped.
const ID_CHARS_MAX: usize = 512;
const LOGO_BYTES_MAX: usize = 4096;

/// Categories by id.
pub type Categories = HashMap<String, PanelCategory>;

/// A category of a panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PanelCategory {
    pub name: String,
    /// Whether the panel marks it as adult content.
    pub is_adult: bool,
}

/// Why an element of a list cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ElementProblem {
    #[error("it is not a JSON object")]
    NotAnObject,
    #[error("it has no usable id")]
    NoId,
    #[error("it has no name")]
    NoName,
    #[error("it is too long")]
    TooLong,
    #[error("there are too many")]
    TooMany,
}

/// A live stream of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct PanelStream {
    pub id: u64,
    /// Never empty.
    pub name: String,
    pub logo: Option<String>,
    pub tvg_id: Option<String>,
    pub number: Option<ChannelNumber>,
    /// The id of its category.
    pub category: Option<String>,
    pub content: StreamContent,
    pub archive: Option<Archive>,
    /// Whether the panel marks it as adult content. Its category may be marked, too.
    pub is_adult: bool,
    /// Whether the panel lists it as a radio station.
    pub is_radio: bool,
}

#[derive(Deserialize)]
struct RawCategory {
    #[serde(default)]
    category_id: LooseValue,
    #[serde(default)]
    category_name: LooseValue,
    #[serde(default)]
    is_adult: LooseValue,
    #[serde(default)]
    censored: LooseValue,
}

/// The fields of a stream as panels call them.
#[derive(Deserialize)]
struct RawStream {
    #[serde(default)]
    num: LooseValue,
    #[serde(default)]
    name: LooseValue,
    #[serde(default)]
    stream_type: LooseValue,
    #[serde(default)]
    stream_id: LooseValue,
    #[serde(default)]
    stream_icon: LooseValue,
    #[serde(default)]
    epg_channel_id: LooseValue,
    #[serde(default)]
    category_id: LooseValue,
    #[serde(default)]
    category_ids: LooseValue,
    #[serde(default)]
    tv_archive: LooseValue,
    #[serde(default)]
    tv_archive_duration: LooseValue,
    #[serde(default)]
    is_adult: LooseValue,
    /// The mark of portals, which panels pass on.
    #[serde(default)]
    censored: LooseValue,
}

/// Reads a category and its id.
///
/// # Errors
/// It cannot be used.
pub fn read_category(json: &[u8]) -> Result<(String, PanelCategory), ElementProblem> {
    let raw: RawCategory = read(json)?;
    let id = raw.category_id.text().filter(|it| is_short(it)).ok_or(ElementProblem::NoId)?;
    let name = raw.category_name.text().ok_or(ElementProblem::NoName)?;
    let is_adult = raw.is_adult.is_yes() || raw.censored.is_yes();
    Ok((id, PanelCategory { name: truncated(name, GROUP_NAME_CHARS_MAX), is_adult }))
}

/// Reads a live stream. A stream without a name gets one from its id.
///
/// # Errors
/// It cannot be used.
pub fn read_stream(json: &[u8]) -> Result<PanelStream, ElementProblem> {
    let raw: RawStream = read(json)?;
    let id = raw.stream_id.whole().and_then(|it| u64::try_from(it).ok());
    let id = id.filter(|it| *it > 0).ok_or(ElementProblem::NoId)?;
    let name = raw.name.text().map_or_else(|| format!("Stream {id}"), |it| truncated(it, NAME_CHARS_MAX));
    let number = raw.num.text().and_then(|it| it.parse::<ChannelNumber>().ok());
    // Many panels write 0 for streams without a category.
    let category = |it: LooseValue| it.text().filter(|it| it != "0" && is_short(it));
    Ok(PanelStream {
        id,
        logo: raw.stream_icon.text().filter(|it| it.len() <= LOGO_BYTES_MAX),
        tvg_id: raw.epg_channel_id.text().filter(|it| is_short(it) && is_id(it)),
        number: number.filter(|it| !it.is_zero()),
        category: category(raw.category_id).or_else(|| category(raw.category_ids)),
        content: content::from_panel(raw.stream_type.text().as_deref(), &name),
        is_radio: raw.stream_type.text().is_some_and(|it| is_radio_type(&it)),
        archive: Archive::from_panel(raw.tv_archive.is_yes(), raw.tv_archive_duration.whole()),
        is_adult: raw.is_adult.is_yes() || raw.censored.is_yes(),
        name,
    })
}

/// Reads an object. Invalid UTF-8 is replaced, because it must not cost the whole element.
pub(super) fn read<T: serde::de::DeserializeOwned>(json: &[u8]) -> Result<T, ElementProblem> {
    if !json.trim_ascii_start().starts_with(b"{") {
        return Err(ElementProblem::NotAnObject);
    }
    serde_json::from_str(&crate::playlist::m3u::text::decode(json)).map_err(|_| ElementProblem::NotAnObject)
}

fn is_short(id: &str) -> bool {
    id.chars().count() <= ID_CHARS_MAX
}

pub(super) fn truncated(mut text: String, chars_max: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(chars_max) {
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::catchup::ArchiveKind;

    /// Values of every type, as panels send them in any field.
    fn values_of_any_type() -> Vec<Value> {
        vec![
            json!(7),
            json!(7.5),
            json!(-1),
            json!("7"),
            json!("text"),
            json!(""),
            json!(null),
            json!(true),
            json!([]),
            json!(["7"]),
            json!({}),
            json!({ "a": 1 }),
        ]
    }

    fn stream() -> Value {
        json!({
            "num": 1, "name": "News", "stream_type": "live", "stream_id": 7, "stream_icon": "http://l.example/7.png",
            "epg_channel_id": "news.example", "added": "1600000000", "category_id": "3", "category_ids": [3],
            "custom_sid": "", "tv_archive": 0, "direct_source": "", "tv_archive_duration": 0,
            "is_adult": "0", "censored": 0,
        })
    }

    /// Holds T-pl.3.
    #[test]
    fn no_type_of_any_field_makes_a_stream_unreadable_except_its_id() {
        let fields: Vec<String> = stream().as_object().unwrap().keys().cloned().collect();
        for field in fields {
            for value in values_of_any_type() {
                let mut element = stream();
                element[&field] = value.clone();
                let is_id = field != "stream_id"
                    || [json!(7), json!("7"), json!(true), json!(["7"])].contains(&value);
                let read = read_stream(element.to_string().as_bytes());
                assert_eq!(read.is_ok(), is_id, "{field}: {value}: {read:?}");
                assert!(read.is_err() || !read.unwrap().name.is_empty());
            }
            let mut element = stream();
            element.as_object_mut().unwrap().remove(&field);
            assert_eq!(read_stream(element.to_string().as_bytes()).is_ok(), field != "stream_id", "{field}");
        }
    }

    #[test]
    fn a_stream_is_read_with_its_usual_fields() {
        let read = read_stream(stream().to_string().as_bytes()).unwrap();
        let expected = PanelStream {
            id: 7,
            name: "News".to_owned(),
            logo: Some("http://l.example/7.png".to_owned()),
            tvg_id: Some("news.example".to_owned()),
            number: "1".parse().ok(),
            category: Some("3".to_owned()),
            content: StreamContent::Live,
            archive: None,
            is_adult: false,
            is_radio: false,
        };
        assert_eq!(read, expected);
        for (kind, is_radio) in
            [("radio_streams", true), ("RADIO", true), ("live", false), ("created_live", false)]
        {
            let element = json!({ "stream_id": 7, "stream_type": kind }).to_string();
            let read = read_stream(element.as_bytes()).unwrap();
            assert_eq!((read.is_radio, read.content), (is_radio, StreamContent::Live), "{kind}");
        }
        let archived = json!({ "stream_id": 7, "tv_archive": "1", "tv_archive_duration": "3" });
        let archive = read_stream(archived.to_string().as_bytes()).unwrap().archive;
        assert_eq!(archive.map(|it| (it.kind, it.days)), Some((ArchiveKind::Xtream, 3)));
        for (element, name, category) in [
            (json!({ "stream_id": 7 }), "Stream 7", None),
            (
                json!({ "stream_id": "7", "name": "null", "category_id": null, "category_ids": [4, 5] }),
                "Stream 7",
                Some("4"),
            ),
            (json!({ "stream_id": 7.0, "name": 24, "category_id": 0 }), "24", None),
        ] {
            let read = read_stream(element.to_string().as_bytes()).unwrap();
            assert_eq!((read.name.as_str(), read.category.as_deref()), (name, category), "{element}");
        }
        let latin = b"{\"stream_id\":7,\"name\":\"T\xe9l\xe9\"}";
        assert_eq!(read_stream(latin).unwrap().name, "Télé");
        assert_eq!(read_stream(b"[7]"), Err(ElementProblem::NotAnObject));
        assert_eq!(read_stream(b"{\"stream_id\":7"), Err(ElementProblem::NotAnObject));
    }

    #[test]
    fn streams_and_categories_are_adult_if_the_panel_says_so_in_any_type() {
        for (value, expected) in [
            (json!("1"), true),
            (json!(1), true),
            (json!(true), true),
            (json!("true"), true),
            (json!("0"), false),
            (json!(0), false),
            (json!(false), false),
            (json!(null), false),
            (json!("None"), false),
            (json!(""), false),
            (json!([]), false),
        ] {
            for field in ["is_adult", "censored"] {
                let stream = json!({ "stream_id": 7, (field): value }).to_string();
                assert_eq!(read_stream(stream.as_bytes()).unwrap().is_adult, expected, "{stream}");
                let category = json!({ "category_id": 3, "category_name": "A", (field): value }).to_string();
                assert_eq!(read_category(category.as_bytes()).unwrap().1.is_adult, expected, "{category}");
            }
        }
    }

    #[test]
    fn a_category_needs_an_id_and_a_name() {
        let read = |it: Value| read_category(it.to_string().as_bytes());
        let long = "é".repeat(300);
        assert_eq!(
            read(json!({ "category_id": 3, "category_name": " News ", "parent_id": 0 })),
            Ok(("3".to_owned(), PanelCategory { name: "News".to_owned(), is_adult: false }))
        );
        assert_eq!(
            read(json!({ "category_id": "3", "category_name": long })).unwrap().1.name.chars().count(),
            255
        );
        assert_eq!(read(json!({ "category_name": "News" })), Err(ElementProblem::NoId));
        assert_eq!(read(json!({ "category_id": 3, "category_name": null })), Err(ElementProblem::NoName));
        assert_eq!(read(json!("News")), Err(ElementProblem::NotAnObject));
    }
}
