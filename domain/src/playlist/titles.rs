//! Films and episodes among the entries of a playlist.
//!
//! A playlist has no ids and no series: a film is identified by its address, and a series by its name in one group. Which
//! entries are films and episodes is decided in [`content`](super::content).

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::drm::drm_of;
use crate::guide::words::words;
use crate::playlist::content::StreamContent;
use crate::playlist::delta::film_id;
use crate::source_url::SourceUrl;
use crate::stream::{StreamOverrides, StreamProperties};
use crate::vod::episode_name::known_episode_name;
use crate::vod::{EpisodeFacts, FoundEpisode, TitleFacts, TitleKind};

/// The namespace of the ids that are made from addresses and names. Changing it would make all titles new ones.
const NAMESPACE: Uuid = Uuid::from_u128(0x1c9a_7be3_5d04_4f6e_9f8a_20d7_64c5_b1e2);

/// Parameters of an address that change with every fetch of the playlist.
const CHANGING_PARAMETERS: [&str; 9] =
    ["token", "username", "password", "user", "pass", "auth", "expires", "exp", "sig"];

/// The property of a film or an episode that names the system that protects it.
pub const PROTECTION_PROPERTY: &str = "drm";

/// A film or an episode of a playlist.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTitle {
    pub kind: TitleKind,
    /// The group; empty if it has none.
    pub category: String,
    /// Identifies the film or the series in its account.
    pub provider_id: String,
    /// The values of the film or the series.
    pub facts: TitleFacts,
    /// Other values of the film; those of an episode are among its own.
    pub properties: Map<String, Value>,
    pub file: ListedFile,
}

/// The kind of the entry.
#[derive(Debug, Clone, PartialEq)]
pub enum ListedFile {
    Film {
        address: SourceUrl,
        extension: String,
    },
    /// The number is 0 if the playlist states none.
    Episode(Box<FoundEpisode>),
}

/// Returns whether an entry with these values is a film or an episode that can be played as a file.
pub fn is_title(properties: &StreamProperties) -> bool {
    matches!(properties.content, StreamContent::Movie | StreamContent::Series) && properties.url.is_http()
}

/// Reads a film or an episode from an entry with the changes of the account's rules. `None` if it is none.
pub fn listed_title(properties: StreamProperties, rule: StreamOverrides) -> Option<ListedTitle> {
    if !is_title(&properties) {
        return None;
    }
    let drm = properties.details.as_deref().and_then(|it| drm_of(&it.options));
    let protection = drm.map(|it| (PROTECTION_PROPERTY.to_owned(), it.system.name().into()));
    let own_properties: Map<String, Value> = protection.into_iter().collect();
    let name = rule.name.unwrap_or(properties.name);
    let address = rule.url.unwrap_or(properties.url);
    let group = rule.group.unwrap_or_else(|| properties.group.unwrap_or_default());
    let logo = rule.logo.unwrap_or_else(|| properties.logo.unwrap_or_default());
    let logo = Some(logo).filter(|it| !it.is_empty());
    let extension = extension(&address);
    let file_id = film_id(&address).map_or_else(|| id_of(&address_key(&address)), str::to_owned);
    if properties.content == StreamContent::Movie {
        let facts = TitleFacts { name, logo, is_adult: properties.is_adult, ..TitleFacts::default() };
        return Some(ListedTitle {
            kind: TitleKind::Movie,
            category: group,
            provider_id: file_id,
            facts,
            properties: own_properties,
            file: ListedFile::Film { address, extension },
        });
    }
    let parsed = known_episode_name(&name);
    let names = [parsed.map_or("", |it| it.series), &group, &name];
    // Marks of language and quality stay, because such versions are series of their own.
    let series = names.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
    let key = format!("{}\n{group}", words(series).join(" "));
    let facts = TitleFacts {
        name: series.to_owned(),
        logo: logo.clone(),
        is_adult: properties.is_adult,
        ..TitleFacts::default()
    };
    let title = parsed.map_or("", |it| it.title);
    let own = if title.is_empty() { &name } else { title };
    let episode = FoundEpisode {
        season: parsed.map_or(1, |it| it.season),
        number: parsed.map_or(0, |it| it.number),
        provider_id: file_id,
        address: Some(address),
        extension,
        facts: EpisodeFacts {
            name: own.to_owned(),
            logo,
            custom_properties: own_properties,
            ..EpisodeFacts::default()
        },
    };
    Some(ListedTitle {
        kind: TitleKind::Series,
        category: group,
        provider_id: id_of(&key),
        facts,
        properties: Map::new(),
        file: ListedFile::Episode(Box::new(episode)),
    })
}

fn id_of(key: &str) -> String {
    Uuid::new_v5(&NAMESPACE, key.as_bytes()).simple().to_string()
}

/// Returns an address without its host and what changes with every fetch.
fn address_key(address: &SourceUrl) -> String {
    let query = address.expose().split_once('?').map_or("", |it| it.1);
    let is_lasting = |part: &&str| {
        let name = part.split('=').next().unwrap_or_default().to_ascii_lowercase();
        !CHANGING_PARAMETERS.contains(&name.as_str())
    };
    let query: Vec<&str> =
        query.split('#').next().unwrap_or_default().split('&').filter(is_lasting).collect();
    format!("{}?{}", address.path(), query.join("&"))
}

/// Returns the extension of a file, in lower case; empty if there is none.
fn extension(address: &SourceUrl) -> String {
    let last = address.path().rsplit('/').next().unwrap_or_default();
    let extension = last.rsplit_once('.').map_or("", |it| it.1).to_ascii_lowercase();
    let is_plain =
        (1..=5).contains(&extension.len()) && extension.bytes().all(|it| it.is_ascii_alphanumeric());
    if is_plain { extension } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, url: &str, content: StreamContent) -> Option<ListedTitle> {
        let properties = StreamProperties {
            content,
            group: Some("VOD".to_owned()),
            ..StreamProperties::new(name, SourceUrl::new(url))
        };
        listed_title(properties, StreamOverrides::default())
    }

    #[test]
    fn a_film_is_identified_by_its_address_without_the_login() {
        let film = |url: &str| listed("EN - Heat (1995)", url, StreamContent::Movie).unwrap();
        let read = film("http://tv.example/movie/u/p/7.mkv");
        assert_eq!(
            (read.kind, read.category.as_str(), read.provider_id.as_str()),
            (TitleKind::Movie, "VOD", "7")
        );
        assert_eq!(read.facts.name, "EN - Heat (1995)");
        let ListedFile::Film { address, extension } = &read.file else { panic!("{read:?}") };
        assert_eq!((address.expose(), extension.as_str()), ("http://tv.example/movie/u/p/7.mkv", "mkv"));
        assert_eq!(film("http://other.example/movie/x/y/7.mp4").provider_id, "7");
        let plain = film("http://tv.example/files/heat.mp4?token=1").provider_id;
        assert_eq!(film("http://tv.example/files/heat.mp4?token=2").provider_id, plain);
        assert_ne!(film("http://tv.example/files/alien.mp4").provider_id, plain);
        assert_ne!(
            film("http://tv.example/play?id=1").provider_id,
            film("http://tv.example/play?id=2").provider_id
        );
    }

    #[test]
    fn marked_films_and_series_are_adult_content() {
        for content in [StreamContent::Movie, StreamContent::Series] {
            let address = SourceUrl::new("http://tv.example/files/one.mkv");
            let properties =
                StreamProperties { content, is_adult: true, ..StreamProperties::new("A S01E01", address) };
            let title = listed_title(properties, StreamOverrides::default()).unwrap();
            assert!(title.facts.is_adult, "{content:?}");
        }
        assert!(
            !listed("A", "http://tv.example/files/one.mkv", StreamContent::Movie).unwrap().facts.is_adult
        );
    }

    #[test]
    fn episodes_of_one_name_are_one_series_and_those_of_another_language_another() {
        let episode =
            |name: &str| listed(name, "http://tv.example/series/u/p/7.mkv", StreamContent::Series).unwrap();
        let (one, two) = (episode("Gamma S01E01 Pilot"), episode("GAMMA S01E02"));
        assert_eq!((one.kind, &one.provider_id), (TitleKind::Series, &two.provider_id));
        assert_ne!(episode("DE - Gamma S01E01").provider_id, one.provider_id);
        let ListedFile::Episode(first) = &one.file else { panic!("{one:?}") };
        assert_eq!((first.season, first.number, first.facts.name.as_str()), (1, 1, "Pilot"));
        assert_eq!((first.provider_id.as_str(), first.extension.as_str()), ("7", "mkv"));
        let ListedFile::Episode(bare) = episode("Gamma special").file else { panic!() };
        assert_eq!((bare.season, bare.number), (1, 0));
    }

    #[test]
    fn channels_and_local_files_are_not_titles() {
        assert_eq!(listed("News", "http://tv.example/7.ts", StreamContent::Live), None);
        assert_eq!(listed("##", "http://tv.example/7.ts", StreamContent::Separator), None);
        assert_eq!(listed("Film", "file:///media/film.mkv", StreamContent::Movie), None);
        assert_eq!(listed("Film", "/media/film.mkv", StreamContent::Movie), None);
    }
}
