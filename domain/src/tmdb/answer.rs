//! Reads the answers of the catalogue. Every member may be missing or have another type.

use serde_json::{Map, Value, json};

use super::choose::CatalogueTitle;
use crate::vod::{EpisodeFacts, ExternalIds, TitleFacts, TitleKind};

/// Maximum number of entries of a list that are read.
const ENTRIES_MAX: usize = 1_000;
/// Address of the pictures if the catalogue states none.
const PICTURES: &str = "https://image.tmdb.org/t/p/";
const POSTER_SIZE: &str = "w500";
const BACKDROP_SIZE: &str = "w1280";
const STILL_SIZE: &str = "w300";
/// Maximum length of an address of pictures and of the path of one, in bytes.
const ADDRESS_BYTES_MAX: usize = 255;

/// The addresses under which the catalogue serves pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureAddresses(String);

impl Default for PictureAddresses {
    fn default() -> Self {
        Self(PICTURES.to_owned())
    }
}

impl PictureAddresses {
    /// Reads the answer to `configuration`. One that states no address has the known one.
    pub fn read(answer: &Value) -> Self {
        let base = answer.get("images").and_then(|it| it.get("secure_base_url")?.as_str());
        let is_address = |it: &&str| {
            (it.starts_with("https://") || it.starts_with("http://"))
                && it.len() <= ADDRESS_BYTES_MAX
                && it.bytes().all(|it| it.is_ascii_graphic() && !matches!(it, b'?' | b'#' | b'@'))
        };
        base.filter(is_address)
            .map_or_else(Self::default, |it| Self(format!("{}/", it.trim_end_matches('/'))))
    }

    /// Returns the address of a picture, whose path begins with a slash.
    fn picture(&self, size: &str, path: Option<&Value>) -> Option<String> {
        let name = path?.as_str()?.strip_prefix('/')?;
        let is_plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-' | b'_');
        let is_name = (1..=ADDRESS_BYTES_MAX).contains(&name.len())
            && !name.starts_with('.')
            && name.bytes().all(is_plain);
        is_name.then(|| format!("{}{size}/{name}", self.0))
    }
}

/// The first page of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchAnswer {
    pub candidates: Vec<CatalogueTitle>,
    /// Whether the search has no further page.
    pub is_complete: bool,
}

impl SearchAnswer {
    /// Reads the answer to `search/movie` or `search/tv`; `None` if it has another shape.
    pub fn read(answer: &Value) -> Option<Self> {
        let results = answer.get("results")?.as_array()?;
        let candidates = results.iter().take(ENTRIES_MAX).filter_map(candidate).collect();
        let pages = answer.get("total_pages").and_then(Value::as_u64);
        Some(Self { candidates, is_complete: pages.is_some_and(|it| it <= 1) })
    }
}

/// Reads the answer to `find/{id}`: the id of the only title of this kind.
pub fn found_by_imdb_id(kind: TitleKind, answer: &Value) -> Option<u32> {
    let list = match kind {
        TitleKind::Movie => "movie_results",
        TitleKind::Series => "tv_results",
    };
    match &**answer.get(list)?.as_array()? {
        [one] => id(one),
        _ => None,
    }
}

/// A film or a series with its details.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedTitle {
    /// The title as a candidate, to compare it with what an account states.
    pub candidate: CatalogueTitle,
    pub facts: TitleFacts,
    /// Other values under the names that panels use.
    pub properties: Map<String, Value>,
}

impl CompletedTitle {
    /// Reads the answer to `movie/{id}` or `tv/{id}` with `external_ids`; `None` if it has another shape.
    pub fn read(answer: &Value, pictures: &PictureAddresses) -> Option<Self> {
        let candidate = candidate(answer)?;
        let external = answer.get("external_ids").and_then(|it| text(it, "imdb_id"));
        let imdb = text(answer, "imdb_id").or(external).filter(|it| it.starts_with("tt"));
        let mut facts = TitleFacts {
            name: candidate.names[0].clone(),
            description: text(answer, "overview"),
            year: candidate.year,
            rating: rating(answer),
            genre: genres(answer),
            duration_secs: minutes(answer.get("runtime")),
            logo: pictures.picture(POSTER_SIZE, answer.get("poster_path")),
            is_adult: answer.get("adult").and_then(Value::as_bool).unwrap_or(false),
            ids: ExternalIds { tmdb: Some(candidate.id.to_string()), imdb },
        };
        facts.limit();
        let mut properties = Map::new();
        let [_, original] = &candidate.names;
        if !original.is_empty() && *original != candidate.names[0] {
            properties.insert("o_name".to_owned(), shortened(original).into());
        }
        properties.extend(released(answer).map(|it| ("release_date".to_owned(), it.into())));
        let backdrop = pictures.picture(BACKDROP_SIZE, answer.get("backdrop_path"));
        properties.extend(backdrop.map(|it| ("backdrop_path".to_owned(), json!([it]))));
        Some(Self { candidate, facts, properties })
    }
}

/// An episode of a season.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedEpisode {
    pub season: u32,
    pub number: u32,
    pub facts: EpisodeFacts,
}

/// Reads the answer to `tv/{id}/season/{number}`; `None` if it has another shape.
pub fn episodes_in(
    season: u32,
    answer: &Value,
    pictures: &PictureAddresses,
) -> Option<Vec<CompletedEpisode>> {
    let entries = answer.get("episodes")?.as_array()?;
    let read = |it: &Value| {
        let number = u32::try_from(it.get("episode_number")?.as_u64()?).ok()?;
        let mut facts = EpisodeFacts {
            name: text(it, "name").unwrap_or_default(),
            description: text(it, "overview"),
            air_date: date(it, "air_date"),
            rating: rating(it),
            duration_secs: minutes(it.get("runtime")),
            logo: pictures.picture(STILL_SIZE, it.get("still_path")),
            ids: ExternalIds { tmdb: id(it).map(|it| it.to_string()), imdb: None },
            custom_properties: Map::new(),
        };
        facts.limit();
        Some(CompletedEpisode { season, number, facts })
    };
    Some(entries.iter().take(ENTRIES_MAX).filter_map(read).collect())
}

/// Films have `title` and `release_date`, series have `name` and `first_air_date`.
fn candidate(entry: &Value) -> Option<CatalogueTitle> {
    let name = text(entry, "title").or_else(|| text(entry, "name"))?;
    let original = text(entry, "original_title").or_else(|| text(entry, "original_name"));
    let year = released(entry).and_then(|it| it.get(..4)?.parse().ok());
    Some(CatalogueTitle { id: id(entry)?, names: [name, original.unwrap_or_default()], year })
}

fn released(entry: &Value) -> Option<String> {
    date(entry, "release_date").or_else(|| date(entry, "first_air_date"))
}

fn id(entry: &Value) -> Option<u32> {
    entry.get("id")?.as_u64().and_then(|it| u32::try_from(it).ok()).filter(|it| *it != 0)
}

fn text(entry: &Value, name: &str) -> Option<String> {
    let text = entry.get(name)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns a date such as `1995-12-15`.
fn date(entry: &Value, name: &str) -> Option<String> {
    let text = text(entry, name)?;
    let is_date = text.len() == 10
        && text.bytes().enumerate().all(|(n, it)| match n {
            4 | 7 => it == b'-',
            _ => it.is_ascii_digit(),
        });
    is_date.then_some(text)
}

/// Returns the average of the votes; none without votes.
fn rating(entry: &Value) -> Option<String> {
    let has_votes = entry.get("vote_count").and_then(Value::as_u64).is_none_or(|it| it > 0);
    let average = entry.get("vote_average")?.as_f64().filter(|it| *it > 0.0 && *it <= 10.0);
    average.filter(|_| has_votes).map(|it| format!("{it:.1}"))
}

fn genres(entry: &Value) -> Option<String> {
    let genres = entry.get("genres")?.as_array()?.iter().take(20);
    let names: Vec<String> = genres.filter_map(|it| text(it, "name")).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn minutes(value: Option<&Value>) -> Option<u32> {
    let minutes = value?.as_u64().and_then(|it| u32::try_from(it).ok());
    minutes.filter(|it| (1..=10_000).contains(it)).map(|it| it * 60)
}

fn shortened(text: &str) -> String {
    text.chars().take(crate::vod::NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_details_become_facts_and_properties() {
        let pictures =
            PictureAddresses::read(&json!({ "images": { "secure_base_url": "https://image.example/t/p/" } }));
        let film = json!({
            "id": 949, "title": "Heat", "original_title": "Heat (original)", "overview": "A thief.",
            "release_date": "1995-12-15", "runtime": 170, "vote_average": 7.92, "vote_count": 7000,
            "genres": [{ "id": 28, "name": "Action" }, { "id": 80, "name": "Crime" }], "adult": false,
            "poster_path": "/p.jpg", "backdrop_path": "/b.jpg", "imdb_id": "tt0113277",
        });
        let read = CompletedTitle::read(&film, &pictures).unwrap();
        let facts = TitleFacts {
            name: "Heat".to_owned(),
            description: Some("A thief.".to_owned()),
            year: Some(1995),
            rating: Some("7.9".to_owned()),
            genre: Some("Action, Crime".to_owned()),
            duration_secs: Some(10_200),
            logo: Some("https://image.example/t/p/w500/p.jpg".to_owned()),
            is_adult: false,
            ids: ExternalIds { tmdb: Some("949".to_owned()), imdb: Some("tt0113277".to_owned()) },
        };
        assert_eq!(read.facts, facts);
        assert_eq!(read.properties["backdrop_path"], json!(["https://image.example/t/p/w1280/b.jpg"]));
        assert_eq!(read.properties["o_name"], "Heat (original)");
        let series = json!({
            "id": 83867, "name": "Andor", "original_name": "Andor", "first_air_date": "2022-09-21",
            "external_ids": { "imdb_id": "tt9253284" }, "vote_average": 8.2, "vote_count": 0,
        });
        let read = CompletedTitle::read(&series, &pictures).unwrap();
        assert_eq!((read.facts.year, read.facts.ids.imdb.as_deref()), (Some(2022), Some("tt9253284")));
        assert_eq!((read.facts.rating, read.facts.logo), (None, None));
        let season = json!({ "season_number": 1, "episodes": [
            { "id": 1, "episode_number": 2, "name": "That Would Be Me", "air_date": "2022-09-21", "runtime": 39,
              "still_path": "/s.jpg" },
            { "episode_number": "x" }, null,
        ] });
        let episodes = episodes_in(1, &season, &pictures).unwrap();
        assert_eq!(
            (episodes.len(), episodes[0].number, &*episodes[0].facts.name),
            (1, 2, "That Would Be Me")
        );
        assert_eq!(episodes[0].facts.logo.as_deref(), Some("https://image.example/t/p/w300/s.jpg"));
    }

    #[test]
    fn answers_of_another_shape_are_none_and_wrong_members_are_left_out() {
        let pictures = PictureAddresses::default();
        for wrong in [json!(null), json!([]), json!("x"), json!({}), json!({ "id": "949", "title": "Heat" })]
        {
            assert_eq!(CompletedTitle::read(&wrong, &pictures), None, "{wrong}");
            assert_eq!(SearchAnswer::read(&wrong), None, "{wrong}");
            assert_eq!(episodes_in(1, &wrong, &pictures), None, "{wrong}");
            assert_eq!(found_by_imdb_id(TitleKind::Movie, &wrong), None, "{wrong}");
            assert_eq!(PictureAddresses::read(&wrong), pictures, "{wrong}");
        }
        let odd = json!({
            "id": 5, "title": "X".repeat(5_000), "overview": 7, "release_date": "soon", "runtime": -1,
            "vote_average": "8", "genres": [{ "name": null }], "poster_path": "/../../x", "backdrop_path": "//evil/x",
            "imdb_id": "nm1", "adult": "no",
        });
        let read = CompletedTitle::read(&odd, &pictures).unwrap();
        assert_eq!(read.facts.name.len(), 255);
        let facts = TitleFacts {
            name: read.facts.name.clone(),
            ids: ExternalIds { tmdb: Some("5".to_owned()), imdb: None },
            ..TitleFacts::default()
        };
        assert_eq!((read.facts, read.properties), (facts, Map::new()));
        let found = json!({ "movie_results": [{ "id": 949 }], "tv_results": [{ "id": 1 }, { "id": 2 }] });
        assert_eq!(found_by_imdb_id(TitleKind::Movie, &found), Some(949));
        assert_eq!(found_by_imdb_id(TitleKind::Series, &found), None, "two titles have the id");
        let pages =
            json!({ "results": [{ "id": 1, "title": "A" }, { "id": 0, "title": "B" }, 3], "total_pages": 4 });
        let search = SearchAnswer::read(&pages).unwrap();
        assert_eq!((search.candidates.len(), search.is_complete), (1, false));
    }
}
