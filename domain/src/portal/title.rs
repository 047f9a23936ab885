//! Films and series of a portal. Portals list both in one module (`vod`); servers that behave like portals list series in
//! another one (`series`).

use serde_json::{Map, Value, json};

use super::channel::logo_url;
use super::information::field;
use super::link::{PortalMedia, PortalStreamAddress, SeriesParts};
use crate::ids::VodCategoryId;
use crate::panel::vod::{EPISODES_MAX, read_movie, read_series};
use crate::panel::{ElementProblem, LooseValue};
use crate::secret::Secret;
use crate::source_url::SourceUrl;
use crate::vod::{EpisodeFacts, FoundEpisode, FoundTitle};

/// Maximum length of a command, in bytes.
const CMD_BYTES_MAX: usize = 4096;
/// Maximum length of the id of a season or an episode, in bytes.
const ID_BYTES_MAX: usize = 64;
/// The largest number of a season or an episode.
const NUMBER_MAX: i64 = 99_999_999;

/// A module of a portal that lists titles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TitleModule {
    /// Films, and the series of portals.
    Vod,
    /// The series of servers that behave like portals.
    Series,
}

impl TitleModule {
    /// Returns the `type` of its questions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vod => "vod",
            Self::Series => "series",
        }
    }

    /// Returns the id of a series or of its category in the catalogue: the modules number them apart.
    pub fn catalogue_id(self, id: &str) -> String {
        match self {
            Self::Vod => format!("vod-{id}"),
            Self::Series => id.to_owned(),
        }
    }
}

/// A film or series as a portal lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct PortalTitle {
    pub is_series: bool,
    /// The ids of its categories.
    pub categories: Vec<String>,
    found: FoundTitle,
}

impl PortalTitle {
    /// Reads an element of a list of a module. `server` is the base address of the portal, and `endpoint` what has answered.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn read(
        element: &Value,
        module: TitleModule,
        (server, endpoint): (&SourceUrl, &SourceUrl),
    ) -> Result<Self, ElementProblem> {
        let cmd = field(element, "cmd").text().unwrap_or_default();
        if cmd.len() > CMD_BYTES_MAX {
            return Err(ElementProblem::TooLong);
        }
        let numbers = numbers_of(&element["series"]);
        let is_series =
            module == TitleModule::Series || field(element, "is_series").is_yes() || !numbers.is_empty();
        let json = as_panel_title(element, endpoint)?.to_string();
        let (categories, mut found, id) = if is_series {
            let mut series = read_series(json.as_bytes())?;
            let id = std::mem::take(&mut series.id);
            series.id = module.catalogue_id(&id);
            (series.categories.clone(), series.into_found(VodCategoryId(0)), id)
        } else {
            let film = read_movie(json.as_bytes())?;
            let id = film.id.clone();
            (film.categories.clone(), film.into_found(VodCategoryId(0)), id)
        };
        let is_numbered = !numbers.is_empty();
        let media = match (is_series, module) {
            (false, _) => {
                PortalMedia::Film { has_files: field(element, "has_files").is_yes() && is_own(&cmd) }
            }
            (true, TitleModule::Vod) if is_numbered => PortalMedia::Series(SeriesParts::Numbered(numbers)),
            (true, TitleModule::Vod) => PortalMedia::Series(SeriesParts::Seasons),
            (true, TitleModule::Series) => PortalMedia::Series(SeriesParts::Module),
        };
        found.address = Some(PortalStreamAddress::new(media, id, cmd, element).url(server));
        Ok(Self { is_series, categories, found })
    }

    /// Returns the title as an account offers it in a category, which is for adults or not.
    pub fn into_found(mut self, category: VodCategoryId, is_adult: bool) -> FoundTitle {
        self.found.category = category;
        self.found.facts.is_adult |= is_adult;
        self.found
    }
}

/// Returns whether a command names a title of the portal itself, whose files may have commands of their own.
fn is_own(cmd: &str) -> bool {
    let number = cmd.split_once("/media/").and_then(|it| it.1.strip_suffix(".mpg"));
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()))
}

/// Returns an element with the names that panels use for its fields.
fn as_panel_title(element: &Value, endpoint: &SourceUrl) -> Result<Value, ElementProblem> {
    if !element.is_object() {
        return Err(ElementProblem::NotAnObject);
    }
    let mut title = Map::new();
    for (name, names) in [
        ("id", &["id"][..]),
        ("name", &["name", "o_name", "title"]),
        ("o_name", &["o_name"]),
        ("category_id", &["category_id"]),
        ("plot", &["description"]),
        ("genre", &["genres_str", "genre"]),
        ("cast", &["actors"]),
        ("director", &["director"]),
        ("country", &["country"]),
        ("year", &["year"]),
        ("rating", &["rating_imdb", "rating_im", "rating_kinopoisk"]),
        ("age", &["age"]),
        ("runtime", &["time", "duration"]),
        ("added", &["added"]),
        ("last_modified", &["added"]),
        ("tmdb_id", &["tmdb_id"]),
        ("imdb_id", &["imdb_id"]),
    ] {
        if let Some(value) = names.iter().find_map(|it| field(element, it).text()) {
            title.insert(name.to_owned(), Value::from(value));
        }
    }
    let picture = ["screenshot_uri", "cover", "pic"].iter().find_map(|it| field(element, it).text());
    if let Some(picture) = picture.filter(|it| it.contains('/')).and_then(|it| logo_url(&it, endpoint)) {
        title.insert("cover".to_owned(), Value::from(picture));
    }
    let is_adult = ["censored", "lock"].iter().any(|it| field(element, it).is_yes());
    title.insert("is_adult".to_owned(), json!(is_adult));
    Ok(Value::Object(title))
}

/// Returns the numbers of episodes, each once and in order.
fn numbers_of(series: &Value) -> Vec<u32> {
    let values: Vec<&Value> = match series {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    };
    let mut numbers: Vec<u32> = values.into_iter().filter_map(|it| number(&field_of(it))).collect();
    numbers.retain(|it| *it > 0);
    numbers.sort_unstable();
    numbers.dedup();
    numbers.truncate(EPISODES_MAX);
    numbers
}

fn field_of(value: &Value) -> LooseValue {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

fn number(value: &LooseValue) -> Option<u32> {
    value.whole().filter(|it| (0..=NUMBER_MAX).contains(it)).and_then(|it| u32::try_from(it).ok())
}

/// A season of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortalSeason {
    pub id: String,
    /// 0 has the specials.
    pub number: u32,
    pub cmd: Secret,
    /// The numbers of its episodes, if they have no ids.
    pub numbers: Vec<u32>,
}

impl PortalSeason {
    /// Reads an element of the list of seasons, at this position in it. `None` if it is none.
    pub fn read(element: &Value, position: usize) -> Option<Self> {
        let is_other = ["is_episode", "is_file"].iter().any(|it| field(element, it).is_yes());
        let id = field(element, "id").text().filter(|it| !is_other && it.len() <= ID_BYTES_MAX)?;
        let cmd = field(element, "cmd").text().unwrap_or_default();
        let name = field(element, "name").text().unwrap_or_default();
        let number = number(&field(element, "season_number")).or_else(|| season_in(&name));
        let fallback = u32::try_from(position).unwrap_or(0).saturating_add(1);
        (cmd.len() <= CMD_BYTES_MAX).then(|| Self {
            id,
            number: number.unwrap_or(fallback),
            cmd: Secret::new(cmd),
            numbers: numbers_of(&element["series"]),
        })
    }
}

/// Returns the number in the name of a season.
fn season_in(name: &str) -> Option<u32> {
    if name.to_ascii_lowercase().contains("special") {
        return Some(0);
    }
    let digits: String =
        name.chars().skip_while(|it| !it.is_ascii_digit()).take_while(char::is_ascii_digit).take(4).collect();
    digits.parse().ok()
}

/// Returns the episodes of a series that have numbers only: of the series itself, or of a season of it.
pub fn numbered_episodes(
    (series, cmd): (&str, &Secret),
    season: Option<u32>,
    numbers: &[u32],
    server: &SourceUrl,
) -> Vec<FoundEpisode> {
    let episode = |number: u32| {
        let media = PortalMedia::Numbered { season, number };
        let address =
            PortalStreamAddress { media, id: series.to_owned(), cmd: cmd.clone(), needs_link: true };
        let part = season.map_or_else(String::new, |it| format!("{it}-"));
        FoundEpisode {
            season: season.unwrap_or(1),
            number,
            provider_id: format!("{series}-{part}{number}"),
            address: Some(address.url(server)),
            extension: String::new(),
            facts: EpisodeFacts { name: format!("Episode {number}"), ..EpisodeFacts::default() },
        }
    };
    numbers.iter().copied().map(episode).collect()
}

/// Reads an element of the list of episodes of a season, at this position in it. `None` if it is none.
pub fn read_episode(
    element: &Value,
    (series, season): (&str, &PortalSeason),
    position: usize,
    server: &SourceUrl,
) -> Option<FoundEpisode> {
    let is_other = ["is_season", "is_file"].iter().any(|it| field(element, it).is_yes());
    let id = field(element, "id").text().filter(|it| !is_other && it.len() <= ID_BYTES_MAX)?;
    let number = ["series_number", "episode_num", "episode_number"]
        .iter()
        .find_map(|it| number(&field(element, it)).filter(|it| *it > 0));
    let number = number.unwrap_or_else(|| u32::try_from(position).unwrap_or(0).saturating_add(1));
    let own = ["series_name", "series_original_name", "name"];
    let name = own.iter().find_map(|it| field(element, it).text());
    let media = PortalMedia::Episode { season: season.id.clone(), episode: id.clone() };
    let address =
        PortalStreamAddress { media, id: series.to_owned(), cmd: Secret::new(""), needs_link: true };
    Some(FoundEpisode {
        season: season.number,
        number,
        provider_id: id,
        address: Some(address.url(server)),
        extension: String::new(),
        facts: EpisodeFacts {
            name: name.unwrap_or_else(|| format!("Episode {number}")),
            description: field(element, "description").text(),
            ..EpisodeFacts::default()
        },
    })
}

/// Returns the command of the first file in a list of files, and whether a link has to be made from it.
pub fn file_command(js: &Value) -> Option<(Secret, bool)> {
    let data = js.get("data").unwrap_or(js);
    let first = match data {
        Value::Array(list) => list.first()?,
        Value::Object(map) => map.values().next()?,
        _ => return None,
    };
    let of_id = || {
        let id = field(first, "id").text().filter(|it| it.bytes().all(|it| it.is_ascii_alphanumeric()))?;
        Some(format!("/media/file_{id}.mpg"))
    };
    let cmd = field(first, "cmd").text().or_else(of_id).filter(|it| it.len() <= CMD_BYTES_MAX)?;
    let needs_link = PortalStreamAddress::is_made_by_portal(&cmd);
    Some((Secret::new(cmd), needs_link))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(element: &Value, module: TitleModule) -> Result<PortalTitle, ElementProblem> {
        let (server, endpoint) =
            (SourceUrl::new("http://p.example"), SourceUrl::new("http://p.example/portal.php"));
        PortalTitle::read(element, module, (&server, &endpoint))
    }

    fn film() -> Value {
        json!({
            "id": "7", "name": "Heat", "o_name": "Heat", "description": "Two men", "director": "M. M.",
            "actors": "A. P., R. N.", "year": "1995", "time": "170", "category_id": "3", "censored": "0",
            "series": [], "is_series": "0", "cmd": "/media/7.mpg", "has_files": 0, "genres_str": "Crime, Drama",
            "screenshot_uri": "/stalker_portal/screenshots/1/7.jpg", "rating_imdb": "8.3", "age": "16+",
            "added": "2024-05-31 10:00:00", "use_http_tmp_link": 0,
        })
    }

    fn address(title: &PortalTitle) -> PortalStreamAddress {
        PortalStreamAddress::parse(title.found.address.as_ref().unwrap()).unwrap()
    }

    #[test]
    fn a_film_is_read_with_its_usual_fields() {
        let found = read(&film(), TitleModule::Vod).unwrap();
        assert!(!found.is_series);
        assert_eq!(found.categories, ["3"]);
        let stored = address(&found);
        assert_eq!((&stored.media, stored.needs_link), (&PortalMedia::Film { has_files: false }, true));
        let found = found.into_found(VodCategoryId(9), false);
        assert_eq!((found.provider_id.as_str(), found.category), ("7", VodCategoryId(9)));
        let facts = &found.facts;
        assert_eq!(
            (facts.name.as_str(), facts.year, facts.duration_secs),
            ("Heat", Some(1995), Some(10_200))
        );
        assert_eq!(facts.genre.as_deref(), Some("Crime, Drama"));
        assert_eq!(facts.logo.as_deref(), Some("http://p.example/stalker_portal/screenshots/1/7.jpg"));
        assert_eq!((facts.rating.as_deref(), facts.is_adult), (Some("8.3"), false));
        assert!(read(&film(), TitleModule::Vod).unwrap().into_found(VodCategoryId(9), true).facts.is_adult);
        assert!(!format!("{found:?}").contains("media"), "the command prints nowhere");
    }

    #[test]
    fn the_forms_of_films_and_series_are_told_apart() {
        let changed = |changes: &[(&str, Value)]| {
            let mut it = film();
            for (name, value) in changes {
                it[*name] = value.clone();
            }
            it
        };
        let series = PortalMedia::Series;
        for (changes, module, id, media, needs_link) in [
            (
                &[("has_files", json!("2"))][..],
                TitleModule::Vod,
                "7",
                PortalMedia::Film { has_files: true },
                true,
            ),
            (
                &[("has_files", json!(2)), ("cmd", json!("ffmpeg http://s.example/7.mkv"))],
                TitleModule::Vod,
                "7",
                PortalMedia::Film { has_files: false },
                false,
            ),
            (
                &[("cmd", json!("eyJ0eXBlIjoibW92aWUifQ=="))],
                TitleModule::Vod,
                "7",
                PortalMedia::Film { has_files: false },
                true,
            ),
            (
                &[("series", json!(["3", 1, 2, "1", "x"]))],
                TitleModule::Vod,
                "vod-7",
                series(SeriesParts::Numbered(vec![1, 2, 3])),
                true,
            ),
            (&[("is_series", json!("1"))], TitleModule::Vod, "vod-7", series(SeriesParts::Seasons), true),
            (&[("cmd", json!(""))], TitleModule::Series, "7", series(SeriesParts::Module), true),
        ] {
            let found = read(&changed(changes), module).unwrap();
            assert_eq!(found.found.provider_id, id, "{changes:?}");
            let stored = address(&found);
            assert_eq!((stored.id.as_str(), &stored.media), ("7", &media), "{changes:?}");
            assert_eq!(stored.needs_link, needs_link, "{changes:?}");
        }
    }

    #[test]
    fn no_type_of_any_field_makes_a_title_unreadable_except_its_id() {
        let fields: Vec<String> = film().as_object().unwrap().keys().cloned().collect();
        for name in fields {
            for value in [json!(7), json!("7"), json!(null), json!(true), json!([]), json!({}), json!([[]])] {
                let mut element = film();
                element[&name] = value.clone();
                let is_readable = name != "id" || [json!(7), json!("7")].contains(&value);
                assert_eq!(read(&element, TitleModule::Vod).is_ok(), is_readable, "{name}: {value}");
            }
        }
        for element in [json!(null), json!([]), json!("text"), json!({ "name": "no id" })] {
            assert!(read(&element, TitleModule::Vod).is_err(), "{element}");
        }
        let long = json!({ "id": 7, "cmd": "x".repeat(5_000) });
        assert_eq!(read(&long, TitleModule::Vod), Err(ElementProblem::TooLong));
    }

    #[test]
    fn seasons_and_episodes_get_numbers_whatever_the_portal_says() {
        for (element, number, numbers) in [
            (json!({ "id": "12", "season_number": "3", "name": "Season 3. End" }), 3, &[][..]),
            (json!({ "id": 12, "name": "Season 2", "series": [1, 2], "cmd": "eyJ9" }), 2, &[1, 2]),
            (json!({ "id": 12, "name": "Specials" }), 0, &[]),
            (json!({ "id": 12 }), 5, &[]),
        ] {
            let season = PortalSeason::read(&element, 4).unwrap();
            assert_eq!((season.number, season.numbers.as_slice()), (number, numbers), "{element}");
        }
        for other in [json!({}), json!(null), json!({ "id": 1, "is_episode": true })] {
            assert_eq!(PortalSeason::read(&other, 0), None, "{other}");
        }
        let server = SourceUrl::new("http://p.example");
        let season = PortalSeason::read(&json!({ "id": "12", "season_number": 2 }), 0).unwrap();
        let element =
            json!({ "id": "99", "series_number": "4", "name": "Episode 4. Dawn", "series_name": "Dawn" });
        let found = read_episode(&element, ("7", &season), 0, &server).unwrap();
        assert_eq!((found.season, found.number, found.facts.name.as_str()), (2, 4, "Dawn"));
        let stored = PortalStreamAddress::parse(found.address.as_ref().unwrap()).unwrap();
        let media = PortalMedia::Episode { season: "12".to_owned(), episode: "99".to_owned() };
        assert_eq!((stored.id.as_str(), stored.media), ("7", media));
        assert_eq!(read_episode(&json!({ "id": 5 }), ("7", &season), 2, &server).unwrap().number, 3);
        assert_eq!(read_episode(&json!({ "id": 5, "is_file": 1 }), ("7", &season), 2, &server), None);

        let cmd = Secret::new("/media/7.mpg");
        let found = numbered_episodes(("7", &cmd), None, &[1, 2], &server);
        let ids: Vec<_> = found.iter().map(|it| (it.season, it.number, it.provider_id.as_str())).collect();
        assert_eq!(ids, [(1, 1, "7-1"), (1, 2, "7-2")]);
        let found = numbered_episodes(("7", &cmd), Some(3), &[1], &server);
        assert_eq!((found[0].season, found[0].provider_id.as_str()), (3, "7-3-1"));
    }

    #[test]
    fn the_first_file_has_the_command() {
        let files =
            json!({ "data": [{ "id": "5", "is_file": true, "cmd": "/media/file_5.mpg" }, { "id": "6" }] });
        assert_eq!(file_command(&files), Some((Secret::new("/media/file_5.mpg"), true)));
        let direct = json!([{ "id": "5", "cmd": "http://s.example/5.mkv" }]);
        assert_eq!(file_command(&direct), Some((Secret::new("http://s.example/5.mkv"), false)));
        assert_eq!(file_command(&json!([{ "id": 5 }])), Some((Secret::new("/media/file_5.mpg"), true)));
        for none in [json!(false), json!([]), json!({ "data": [] }), json!([{}]), json!([{ "id": "../5" }])] {
            assert_eq!(file_command(&none), None, "{none}");
        }
    }
}
