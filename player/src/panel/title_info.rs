//! One film or one series, as a panel describes it.

use std::collections::BTreeMap;

use domain::vod::{Episode, EpisodeOffer, Relation, Title, TitleKind};
use route_frame::call::Call;
use serde_json::{Map, Value, json};
use server::reply::Refusal;
use services::addresses::episode_image_address;
use services::titles::{OpenedTitle, Properties, SeenTitles, clock_time, numeric_rating};

use super::titles::{Common, extension_of, version_name};
use crate::context::PlayerCall;
use crate::recordings::rows;

/// Returns a film and its details. Unknown ids, and films that the caller does not see, are not found.
pub(super) async fn film(call: &Call, id: Option<&str>) -> Result<Value, Refusal> {
    if let Some(recorded) = number(id).and_then(|it| rows::film_info(call, it)) {
        return Ok(recorded);
    }
    let seen = call.seen_titles();
    let (film, relation) = find(call, &seen, TitleKind::Movie, id).await?.ok_or_else(unknown_film)?;
    let OpenedTitle { title: film, details } = call.player().titles.open(film, relation).await?;
    let mut relations: Vec<&Relation> = seen.relations(&film).collect();
    let version = relation.and_then(|it| relations.iter().copied().find(|of| of.id == it));
    if let Some(version) = version {
        relations = vec![version];
    }
    let properties = Properties::from_title(&film, details.as_ref());
    let common = Common::new(&film, properties, &relations).ok_or_else(unknown_film)?;
    let number = version.map_or(film.id.number(), |it| it.id.0);
    let name = version.map_or_else(|| film.name().to_owned(), |it| version_name(&film, it));
    Ok(film_info(&call.player_origin(), &common, number, &name))
}

fn unknown_film() -> Refusal {
    Refusal::not_found("No Movie matches the given query.")
}

fn unknown_series() -> Refusal {
    Refusal::not_found("No Series matches the given query.")
}

fn number(id: Option<&str>) -> Option<u32> {
    id?.trim().parse().ok()
}

/// Returns the title with the number that an app sends, if the caller sees it. The relation is the version that it names.
async fn find(
    call: &Call,
    seen: &SeenTitles,
    kind: TitleKind,
    id: Option<&str>,
) -> Result<Option<(Title, Option<domain::vod::RelationId>)>, Refusal> {
    let Some(number) = number(id) else { return Ok(None) };
    let titles = call.player().models.vod.clone();
    let found = services::titles::reading(move || titles.by_stream_id(kind, number)).await?;
    Ok(found.filter(|(title, _)| seen.shows(title)))
}

fn film_info(origin: &str, common: &Common<'_>, number: u32, name: &str) -> Value {
    let (film, properties) = (common.title, &common.properties);
    let picture = common.picture(origin).unwrap_or_default();
    let (rating, rating_5based) = common.rating();
    let original = Some(properties.original_name()).filter(|it| !it.is_empty()).unwrap_or(name.to_owned());
    let seconds = film.duration_secs().unwrap_or_default();
    let plot = film.description().unwrap_or_default();
    let (cast, date) = (properties.cast(), properties.release_date());
    json!({
        "info": {
            "name": name, "title": name, "o_name": original,
            "cover": picture, "cover_big": picture, "movie_image": picture,
            "description": plot, "plot": plot,
            "year": film.year(),
            "release_date": date, "releasedate": date,
            "genre": film.genre().unwrap_or_default(),
            "director": properties.director(), "actors": cast, "cast": cast, "country": properties.country(),
            "age": properties.age(),
            "rating": rating, "rating_5based": rating_5based,
            "tmdb_id": film.tmdb_id().unwrap_or_default(), "imdb_id": film.imdb_id().unwrap_or_default(),
            "youtube_trailer": properties.trailer(),
            "backdrop_path": common.backdrops(origin),
            "duration_secs": seconds, "duration": clock_time(seconds),
            "bitrate": properties.bitrate(), "video": properties.video(), "audio": properties.audio(),
        },
        "movie_data": {
            "stream_id": number, "name": name, "title": name, "added": common.added(),
            "category_id": common.first.category.to_string(), "category_ids": common.category_ids,
            "container_extension": extension_of(common.first),
            "custom_sid": "", "direct_source": "",
        },
    })
}

/// Returns a series with its seasons and episodes. Unknown ids, and series that the caller does not see, are not found.
pub(super) async fn series(call: &Call, id: Option<&str>) -> Result<Value, Refusal> {
    if let Some(recorded) = number(id).and_then(|it| rows::series_info(call, it)) {
        return Ok(recorded);
    }
    let seen = call.seen_titles();
    let (series, _) = find(call, &seen, TitleKind::Series, id).await?.ok_or_else(unknown_series)?;
    let (OpenedTitle { title: series, details }, episodes) = call.player().titles.open_series(series).await?;
    let relations: Vec<&Relation> = seen.relations(&series).collect();
    let properties = Properties::from_title(&series, details.as_ref());
    let common = Common::new(&series, properties, &relations).ok_or_else(unknown_series)?;
    let origin = call.player_origin();
    let mut seasons: BTreeMap<u32, Vec<Value>> = BTreeMap::new();
    let mut first_dates: BTreeMap<u32, String> = BTreeMap::new();
    for episode in &episodes {
        // An episode that no visible account offers cannot play.
        let offer = episode.offers.iter().find(|it| relations.iter().any(|of| of.id == it.relation));
        let Some(offer) = offer else { continue };
        if let Some(date) = episode.first(|it| it.air_date.as_deref()) {
            first_dates.entry(episode.season).or_insert_with(|| date.to_owned());
        }
        seasons.entry(episode.season).or_default().push(episode_row(&origin, episode, offer));
    }
    let cover = common.picture(&origin).unwrap_or_default();
    let season_rows: Vec<Value> = seasons
        .iter()
        .map(|(number, episodes)| {
            json!({
                // Unique among the seasons of all series.
                "id": u64::from(series.id.number()) * 1_000 + u64::from(*number),
                "season_number": number,
                "name": if *number == 0 { "Specials".to_owned() } else { format!("Season {number}") },
                "overview": "", "cover": cover, "cover_big": cover,
                "episode_count": episodes.len(),
                "air_date": first_dates.get(number).map(String::as_str).unwrap_or_default(),
            })
        })
        .collect();
    let episodes: Map<String, Value> =
        seasons.into_iter().map(|(number, episodes)| (number.to_string(), episodes.into())).collect();
    Ok(json!({ "seasons": season_rows, "info": series_info(&origin, &common), "episodes": episodes }))
}

fn series_info(origin: &str, common: &Common<'_>) -> Value {
    let (series, properties) = (common.title, &common.properties);
    let (rating, rating_5based) = common.rating();
    let date = common.release_date();
    let run_time = Some(properties.run_time()).filter(|it| !it.is_empty()).unwrap_or("0".to_owned());
    let (tmdb, imdb) = (series.tmdb_id().unwrap_or_default(), series.imdb_id().unwrap_or_default());
    json!({
        "name": series.name(), "title": series.name(), "series_id": series.id.number(),
        "cover": common.picture(origin).unwrap_or_default(),
        "plot": series.description().unwrap_or_default(),
        "cast": properties.cast(), "director": properties.director(),
        "genre": series.genre().unwrap_or_default(),
        "release_date": date, "releaseDate": date,
        "added": common.added(), "last_modified": common.added(),
        "rating": rating, "rating_5based": rating_5based,
        "backdrop_path": common.backdrops(origin),
        "youtube_trailer": properties.trailer(),
        "episode_run_time": run_time,
        "tmdb": tmdb, "tmdb_id": tmdb, "imdb": imdb, "imdb_id": imdb,
        "category_id": common.first.category.to_string(), "category_ids": common.category_ids,
    })
}

fn episode_row(origin: &str, episode: &Episode, offer: &EpisodeOffer) -> Value {
    let properties = Properties::from_episode(episode);
    let name = episode.name();
    let picture = episode.first(|it| it.logo.as_deref());
    let picture = picture.map(|it| episode_image_address(origin, episode, it)).unwrap_or_default();
    let plot = episode.first(|it| it.description.as_deref()).unwrap_or_default();
    let date = episode.first(|it| it.air_date.as_deref()).unwrap_or_default();
    let seconds = episode.first(|it| it.duration_secs).unwrap_or_default();
    let rating = numeric_rating(episode.first(|it| it.rating.as_deref())).unwrap_or_default();
    let extension = if offer.extension.is_empty() { "mp4" } else { &offer.extension };
    json!({
        // Panels send texts here, and apps refuse numbers.
        "id": episode.id.to_string(),
        "season": episode.season,
        "episode_num": episode.number,
        "title": name,
        "container_extension": extension,
        "added": (episode.created_at / 1000).to_string(),
        "custom_sid": "", "direct_source": "",
        "info": {
            "id": episode.id.0, "name": name,
            "overview": plot, "plot": plot,
            "crew": properties.text(&["crew"]), "directed_by": properties.director(),
            "tmdb_id": episode.first(|it| it.ids.tmdb.as_deref()).unwrap_or_default(),
            "imdb_id": episode.first(|it| it.ids.imdb.as_deref()).unwrap_or_default(),
            "air_date": date, "release_date": date, "releasedate": date,
            "backdrop_path": [], "movie_image": picture, "cover_big": picture,
            "rating": rating, "season": episode.season,
            "duration_secs": seconds, "duration": clock_time(seconds),
            "bitrate": properties.bitrate(), "video": properties.video(), "audio": properties.audio(),
        },
    })
}
