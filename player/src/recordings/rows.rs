//! Recordings as a panel describes films, series and episodes, with the types of those of the library.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::recording::{FILM_CATEGORY, Recording, SERIES_CATEGORY, stable_hash};
use domain::vod::TitleKind;
use route_frame::call::Call;
use serde_json::{Map, Value, json};
use services::addresses::logo_address;
use services::titles::clock_time;

use super::ListedRecordings;
use super::file::extension_of;
use crate::context::PlayerCall;

/// Name of the categories of recordings.
pub(super) const CATEGORY: &str = "Recordings";

/// The rows of recordings in one list. Equal ones have the same text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordingRows(Arc<[Value]>);

impl RecordingRows {
    /// Without any row.
    pub(crate) fn none() -> Self {
        Self(Arc::new([]))
    }

    /// The category of recordings, if there are any.
    pub(crate) fn category(call: &Call, kind: TitleKind) -> Self {
        let listed = ListedRecordings::new(call);
        let id = category_of(kind);
        let has_any = listed.recordings.iter().any(|it| kind == TitleKind::Movie || it.is_episode());
        match has_any {
            true => Self(Arc::new([json!({
                "category_id": id.to_string(), "category_name": CATEGORY, "parent_id": 0,
            })])),
            false => Self::none(),
        }
    }

    /// The recordings as films or as series.
    pub(crate) fn titles(call: &Call, kind: TitleKind) -> Self {
        let (listed, pictures) = (ListedRecordings::new(call), Pictures::new(call));
        match kind {
            TitleKind::Movie => {
                let numbered = listed.recordings.iter().filter_map(|it| Some((it, it.id.player_number()?)));
                Self(numbered.map(|(it, number)| film_row(&listed, &pictures, it, number)).collect())
            }
            TitleKind::Series => {
                let all = all_series(&listed);
                Self(
                    all.iter()
                        .map(|(number, episodes)| series_row(&listed, &pictures, *number, episodes))
                        .collect(),
                )
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Value> {
        self.0.iter()
    }

    /// Returns a number that differs for other rows.
    pub(crate) fn version(&self) -> u64 {
        let hash = |value: u64, row: &Value| value.rotate_left(5) ^ stable_hash(row.to_string().as_bytes());
        self.0.iter().fold(0, hash)
    }
}

/// Returns the id of the category of recordings.
pub(crate) fn category_of(kind: TitleKind) -> u32 {
    match kind {
        TitleKind::Movie => FILM_CATEGORY,
        TitleKind::Series => SERIES_CATEGORY,
    }
}

/// Returns a recording as a film, with its details; `None` if the caller does not find it.
pub(crate) fn film_info(call: &Call, number: u32) -> Option<Value> {
    let recording = super::find_by_number(call, number)?;
    let (listed, pictures) = (ListedRecordings::new(call), Pictures::new(call));
    let (name, picture) = (listed.name(&recording), pictures.address(&listed, &recording));
    let seconds = seconds_of(&recording);
    let date = listed.local_start(&recording, "%Y-%m-%d");
    let plot = description_of(&recording);
    Some(json!({
        "info": {
            "name": name, "title": name, "o_name": recording.title(),
            "cover": picture, "cover_big": picture, "movie_image": picture,
            "description": plot, "plot": plot,
            "year": recording.programme.as_ref().and_then(|it| it.year),
            "release_date": date, "releasedate": date,
            "genre": "", "director": "", "actors": "", "cast": "", "country": "", "age": "",
            "rating": "0", "rating_5based": 0.0, "tmdb_id": "", "imdb_id": "", "youtube_trailer": "",
            "backdrop_path": [],
            "duration_secs": seconds, "duration": clock_time(seconds),
            "bitrate": 0, "video": {}, "audio": {},
        },
        "movie_data": {
            "stream_id": number, "name": name, "title": name, "added": added(&recording),
            "category_id": FILM_CATEGORY.to_string(), "category_ids": [FILM_CATEGORY],
            "container_extension": extension_of(&recording),
            "custom_sid": "", "direct_source": "",
        },
    }))
}

/// Returns a series of recordings with its seasons and episodes; `None` if the caller finds no episode of it.
pub(crate) fn series_info(call: &Call, number: u32) -> Option<Value> {
    let (listed, pictures) = (ListedRecordings::new(call), Pictures::new(call));
    let episodes = all_series(&listed).remove(&number)?;
    let cover = episodes.first().map(|it| pictures.address(&listed, it)).unwrap_or_default();
    let mut seasons: BTreeMap<u32, Vec<Value>> = BTreeMap::new();
    // The oldest one first.
    for episode in episodes.iter().rev() {
        let (season, row) = episode_row(&listed, &pictures, episode)?;
        seasons.entry(season).or_default().push(row);
    }
    let season_rows: Vec<Value> = seasons
        .iter()
        .map(|(season, episodes)| {
            json!({
                "id": u64::from(number) * 10_000 + u64::from(*season),
                "season_number": season,
                "name": if *season == 0 { "Specials".to_owned() } else { format!("Season {season}") },
                "overview": "", "cover": cover, "cover_big": cover,
                "episode_count": episodes.len(),
                "air_date": episodes.first().map_or(&Value::Null, |it| &it["info"]["air_date"]),
            })
        })
        .collect();
    let mut info = series_row(&listed, &pictures, number, &episodes);
    if let Some(members) = info.as_object_mut() {
        members.remove("num");
        for name in ["tmdb", "imdb"] {
            members.insert(name.to_owned(), "".into());
        }
        members.insert("added".to_owned(), members["last_modified"].clone());
    }
    let episodes: Map<String, Value> =
        seasons.into_iter().map(|(season, episodes)| (season.to_string(), episodes.into())).collect();
    Some(json!({ "seasons": season_rows, "info": info, "episodes": episodes }))
}

/// The pictures of recordings: the logos of their channels.
struct Pictures {
    origin: String,
    logos: Arc<storage::Table<domain::logo::Logo>>,
}

impl Pictures {
    fn new(call: &Call) -> Self {
        Self { origin: call.player_origin(), logos: call.player().models.logos.load() }
    }

    /// Returns the address of the picture, or an empty text.
    fn address(&self, listed: &ListedRecordings, recording: &Recording) -> String {
        let channel = listed.channel(recording);
        channel.and_then(|it| logo_address(&self.origin, &self.logos, it)).unwrap_or_default()
    }
}

/// Returns the series of recordings by number, the newest episode first.
fn all_series(listed: &ListedRecordings) -> BTreeMap<u32, Vec<Arc<Recording>>> {
    let mut all: BTreeMap<u32, Vec<Arc<Recording>>> = BTreeMap::new();
    for recording in listed.recordings.iter().filter(|it| it.is_episode() && it.id.player_number().is_some())
    {
        all.entry(recording.series_number()).or_default().push(Arc::clone(recording));
    }
    all
}

fn film_row(listed: &ListedRecordings, pictures: &Pictures, it: &Recording, number: u32) -> Value {
    let name = listed.name(it);
    let picture = Some(pictures.address(listed, it)).filter(|it| !it.is_empty());
    let year = it.programme.as_ref().and_then(|it| it.year);
    json!({
        "num": number, "name": name, "title": name, "stream_type": "movie", "stream_id": number,
        "stream_icon": picture, "rating": "0", "rating_5based": 0.0, "added": added(it),
        "is_adult": if listed.channel(it).is_some_and(|it| it.is_adult) { "1" } else { "0" },
        "tmdb_id": "", "imdb_id": "", "trailer": "", "plot": description_of(it), "genre": "",
        "year": year.map_or(Value::from(""), Value::from), "director": "", "cast": "",
        "release_date": listed.local_start(it, "%Y-%m-%d"),
        "category_id": FILM_CATEGORY.to_string(), "category_ids": [FILM_CATEGORY],
        "container_extension": extension_of(it), "custom_sid": "", "direct_source": "",
    })
}

fn series_row(
    listed: &ListedRecordings,
    pictures: &Pictures,
    number: u32,
    episodes: &[Arc<Recording>],
) -> Value {
    let newest = &episodes[0];
    let oldest = episodes.last().unwrap_or(newest);
    let date = |it: &Recording| listed.local_start(it, "%Y-%m-%d");
    json!({
        "num": number, "name": newest.title(), "title": newest.title(), "series_id": number,
        "cover": pictures.address(listed, newest),
        "plot": "", "cast": "", "director": "", "genre": "",
        "release_date": date(oldest), "releaseDate": date(oldest), "last_modified": added(newest),
        "rating": "0", "rating_5based": 0.0, "backdrop_path": [], "youtube_trailer": "",
        "episode_run_time": (seconds_of(newest) / 60).to_string(),
        "category_id": SERIES_CATEGORY.to_string(), "category_ids": [SERIES_CATEGORY],
        "tmdb_id": "", "imdb_id": "",
    })
}

/// Returns the season of an episode, and its row. Without a season it is the year, and the number is that of the day.
fn episode_row(listed: &ListedRecordings, pictures: &Pictures, it: &Recording) -> Option<(u32, Value)> {
    let id = it.id.player_number()?;
    let programme = it.programme.clone().unwrap_or_default();
    let (season, number) = match programme.season.zip(programme.episode) {
        Some(numbers) => numbers,
        None => {
            let of = |format: &str| listed.local_start(it, format).parse().unwrap_or(0);
            (of("%Y"), of("%-m%d"))
        }
    };
    let name = programme.sub_title.unwrap_or_else(|| listed.name(it));
    let date = listed.local_start(it, "%Y-%m-%d");
    let (plot, picture, seconds) = (description_of(it), pictures.address(listed, it), seconds_of(it));
    let row = json!({
        "id": id.to_string(), "season": season, "episode_num": number, "title": name,
        "container_extension": extension_of(it), "added": added(it), "custom_sid": "", "direct_source": "",
        "info": {
            "id": id, "name": name, "overview": plot, "plot": plot, "crew": "", "directed_by": "",
            "tmdb_id": "", "imdb_id": "", "air_date": date, "release_date": date, "releasedate": date,
            "backdrop_path": [], "movie_image": picture, "cover_big": picture, "rating": 0.0, "season": season,
            "duration_secs": seconds, "duration": clock_time(seconds), "bitrate": 0, "video": {}, "audio": {},
        },
    });
    Some((season, row))
}

/// Returns when the first packet was stored, in seconds since 1970.
fn added(recording: &Recording) -> String {
    let at = recording.parts().next().map_or(recording.start, |it| it.started_at);
    (at / 1000).to_string()
}

fn description_of(recording: &Recording) -> &str {
    recording.programme.as_ref().and_then(|it| it.description.as_deref()).unwrap_or_default()
}

/// Returns the length of the file; of one that grows, the length that it will have.
fn seconds_of(recording: &Recording) -> u32 {
    let Some(file) = &recording.file else { return 0 };
    let started_at = recording.parts().next().map_or(file.started_at, |it| it.started_at);
    let length = file.ended_at.unwrap_or(recording.ends_at()).saturating_sub(started_at);
    u32::try_from(length / 1000).unwrap_or(0)
}
