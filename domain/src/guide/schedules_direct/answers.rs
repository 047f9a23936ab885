//! The records of the service, read leniently: a missing field is absent, and a list is read element by element.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Maximum number of elements of a list that is shown to admins.
const ENTRIES_MAX: usize = 5_000;

/// The status of the service and of the account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceStatus {
    pub is_online: bool,
    /// End of the account, in milliseconds since 1970.
    pub expires_at: Option<i64>,
    /// Messages of the service for the account.
    pub messages: Vec<String>,
    pub lineups_max: u64,
}

impl ServiceStatus {
    /// Reads an answer to `GET /status`.
    pub fn from_answer(answer: &Value) -> Self {
        let systems = answer["systemStatus"].as_array();
        let expires = answer["account"]["expires"].as_str().and_then(|it| it.parse::<Timestamp>().ok());
        let messages = answer["account"]["messages"].as_array().into_iter().flatten().take(10);
        Self {
            is_online: !systems.and_then(|it| it.first()).is_some_and(|it| it["status"] == "Offline"),
            expires_at: expires.map(Timestamp::as_millisecond),
            messages: messages.filter_map(|it| text(it).or_else(|| text(&it["message"]))).collect(),
            lineups_max: answer["account"]["maxLineups"].as_u64().unwrap_or(super::LINEUPS_MAX),
        }
    }
}

/// A lineup of the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineupEntry {
    /// The identifier, such as `USA-NJ12345-X`.
    pub id: String,
    pub name: String,
    /// How it is received, such as `Cable`.
    pub transport: String,
    pub location: String,
    pub is_deleted: bool,
}

/// Reads an answer to `GET /lineups`.
pub fn lineups(answer: &Value) -> Vec<LineupEntry> {
    let all = answer["lineups"].as_array().into_iter().flatten().take(ENTRIES_MAX);
    all.filter_map(|it| {
        let id = text(&it["lineup"]).or_else(|| text(&it["lineupID"]))?;
        Some(LineupEntry {
            name: text(&it["name"]).unwrap_or_else(|| id.clone()),
            id,
            transport: text(&it["transport"]).unwrap_or_default(),
            location: text(&it["location"]).unwrap_or_default(),
            is_deleted: it["isDeleted"].as_bool().unwrap_or_default(),
        })
    })
    .collect()
}

/// A country in which the service has lineups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceCountry {
    pub region: String,
    /// Code of three letters.
    pub code: String,
    pub name: String,
    pub postal_code_example: Option<String>,
    /// The only postal code of the country, if it has one.
    pub only_postal_code: Option<String>,
}

/// Reads an answer to `GET /available/countries`.
pub fn countries(answer: &Value) -> Vec<ServiceCountry> {
    let regions = answer.as_object().into_iter().flatten();
    let all =
        regions.flat_map(|(region, all)| all.as_array().into_iter().flatten().map(move |it| (region, it)));
    all.take(ENTRIES_MAX)
        .filter_map(|(region, it)| {
            let example = text(&it["postalCodeExample"]);
            let has_one = it["onePostalCode"].as_bool().unwrap_or_default();
            Some(ServiceCountry {
                region: region.clone(),
                code: text(&it["shortName"])?,
                name: text(&it["fullName"])?,
                only_postal_code: example.clone().filter(|_| has_one),
                postal_code_example: example,
            })
        })
        .collect()
}

/// A lineup that can be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostalLineup {
    pub id: String,
    pub name: String,
    pub transport: String,
    pub location: String,
}

/// Reads an answer to `GET /headends`.
pub fn headends(answer: &Value) -> Vec<PostalLineup> {
    let headends = answer.as_array().into_iter().flatten();
    let all = headends.flat_map(|it| it["lineups"].as_array().into_iter().flatten().map(move |l| (it, l)));
    all.take(ENTRIES_MAX)
        .filter_map(|(headend, it)| {
            let id = text(&it["lineup"])?;
            Some(PostalLineup {
                name: text(&it["name"]).unwrap_or_else(|| id.clone()),
                id,
                transport: text(&headend["transport"]).unwrap_or_default(),
                location: text(&headend["location"]).unwrap_or_default(),
            })
        })
        .collect()
}

/// A station of a lineup: a guide channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Station {
    pub id: String,
    /// Its names, the preferred one first: name, call sign, number in the lineup.
    pub names: Vec<String>,
    /// Address of its logo.
    pub logo: Option<String>,
}

/// Reads an answer to `GET /lineups/{id}`.
pub fn stations(answer: &Value, logo_style: Option<&str>) -> Vec<Station> {
    let mut numbers = BTreeMap::<&str, Vec<String>>::new();
    for entry in answer["map"].as_array().into_iter().flatten() {
        let number = ["channel", "virtualChannel", "uhfVhf"].iter().find_map(|it| text(&entry[*it]));
        if let (Some(station), Some(number)) = (entry["stationID"].as_str(), number) {
            numbers.entry(station).or_default().push(number);
        }
    }
    let all = answer["stations"].as_array().into_iter().flatten();
    all.filter_map(|it| {
        let id = text(&it["stationID"])?;
        let mut names: Vec<_> = ["name", "callsign"].iter().filter_map(|field| text(&it[*field])).collect();
        names.extend(numbers.get(id.as_str()).and_then(|it| it.first()).cloned());
        names.dedup();
        Some(Station { id, names, logo: logo(it, logo_style) })
    })
    .collect()
}

/// Returns the logo of the wanted style (`dark`, `light`, `gray`, `white`), or else the first one.
fn logo(station: &Value, style: Option<&str>) -> Option<String> {
    let logos = station["stationLogo"].as_array().map_or(&[][..], Vec::as_slice);
    let wanted = logos.iter().find(|it| style.is_some() && it["category"].as_str() == style);
    let chosen = wanted.or(logos.first()).unwrap_or(&station["logo"]);
    text(&chosen["URL"]).filter(|it| it.starts_with("http://") || it.starts_with("https://"))
}

/// A programme in the schedule of a station.
#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Airing {
    #[serde(rename = "programID")]
    pub program: String,
    #[serde(rename = "airDateTime", deserialize_with = "unix")]
    pub start: i64,
    /// Seconds.
    pub duration: i64,
    #[serde(deserialize_with = "or_default")]
    pub new: bool,
    #[serde(deserialize_with = "or_default")]
    pub premiere: bool,
    pub is_premiere_or_finale: Option<String>,
    pub live_tape_delay: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub audio_properties: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub video_properties: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub ratings: Vec<ContentRating>,
    pub multipart: Option<Multipart>,
}

/// The part of a programme that is shown in several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Multipart {
    /// From 1.
    pub part_number: u32,
    pub total_parts: u32,
}

/// A rating by age.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(default)]
pub struct ContentRating {
    pub body: String,
    pub code: String,
}

/// A programme, whenever it is shown.
#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct ProgramInfo {
    /// Not 0 if the service does not have the programme, or not yet.
    pub code: i64,
    #[serde(rename = "programID")]
    pub id: String,
    #[serde(deserialize_with = "or_default")]
    pub titles: Vec<Title>,
    #[serde(rename = "episodeTitle150")]
    pub episode_title: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub descriptions: Descriptions,
    pub original_air_date: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub genres: Vec<String>,
    pub entity_type: Option<String>,
    /// Season and episode, by the name of who assigned them.
    #[serde(deserialize_with = "or_default")]
    pub metadata: Vec<BTreeMap<String, Value>>,
    pub movie: Option<Movie>,
    #[serde(deserialize_with = "or_default")]
    pub cast: Vec<Person>,
    #[serde(deserialize_with = "or_default")]
    pub crew: Vec<Person>,
    #[serde(deserialize_with = "or_default")]
    pub content_rating: Vec<ContentRating>,
    #[serde(deserialize_with = "or_default")]
    pub content_advisory: Vec<String>,
    pub event_details: Option<EventDetails>,
    #[serde(rename = "officialURL")]
    pub official_url: Option<String>,
    /// Seconds without advertisements.
    pub duration: Option<u32>,
    #[serde(deserialize_with = "or_default")]
    pub has_image_artwork: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(default)]
pub struct Title {
    #[serde(rename = "title120")]
    pub text: String,
    #[serde(rename = "titleLanguage")]
    pub language: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(default)]
pub struct Descriptions {
    #[serde(rename = "description100", deserialize_with = "or_default")]
    pub short: Vec<Description>,
    #[serde(rename = "description1000", deserialize_with = "or_default")]
    pub long: Vec<Description>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(default)]
pub struct Description {
    #[serde(rename = "descriptionLanguage")]
    pub language: Option<String>,
    #[serde(rename = "description")]
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Movie {
    #[serde(deserialize_with = "loose_text")]
    pub year: Option<String>,
    /// Seconds.
    pub duration: Option<u32>,
    #[serde(deserialize_with = "or_default")]
    pub quality_rating: Vec<QualityRating>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct QualityRating {
    pub ratings_body: Option<String>,
    #[serde(deserialize_with = "loose_text")]
    pub rating: Option<String>,
    #[serde(deserialize_with = "loose_text")]
    pub max_rating: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Person {
    pub name: String,
    pub role: String,
    pub character_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(default)]
pub struct EventDetails {
    pub venue100: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub teams: Vec<Team>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Team {
    pub name: String,
    #[serde(deserialize_with = "or_default")]
    pub is_home: bool,
}

/// The artwork of a programme or of its series.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(default)]
pub struct StationArtwork {
    #[serde(rename = "programID")]
    pub program: String,
    /// A list of images, or a refusal.
    pub data: Value,
}

impl StationArtwork {
    /// Returns the images.
    pub fn images(&self) -> Vec<Artwork> {
        let all = self.data.as_array().into_iter().flatten().take(ENTRIES_MAX);
        all.filter_map(|it| Artwork::deserialize(it).ok()).filter(|it| !it.uri.is_empty()).collect()
    }
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(default)]
pub struct Artwork {
    /// An address, or a path below `image/` of the service.
    pub uri: String,
    #[serde(deserialize_with = "loose_text")]
    pub width: Option<String>,
    #[serde(deserialize_with = "loose_text")]
    pub height: Option<String>,
    /// Such as `2x3`.
    pub aspect: Option<String>,
    pub category: Option<String>,
}

/// Returns a text that is not blank; numbers count as texts.
fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

fn loose_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Value::deserialize(from).map(|it| text(&it))
}

/// Reads a time as Unix seconds; 0 for one that is not valid.
fn unix<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let text = String::deserialize(from)?;
    Ok(text.parse::<Timestamp>().map_or(0, Timestamp::as_second))
}

/// Returns the date in UTC of a time in Unix seconds, such as `2026-01-31`, as the service names days.
pub fn date_of(at: i64) -> String {
    Timestamp::from_second(at).map_or_else(|_| String::new(), |it| it.strftime("%Y-%m-%d").to_string())
}
