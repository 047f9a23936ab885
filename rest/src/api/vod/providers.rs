//! The accounts that offer a title, what they know of it, and the address that plays it.

use std::collections::BTreeMap;

use domain::vod::{Relation, RelationId, Title, TitleKind};
use http::StatusCode;
use resource_derive::{Query, View};
use route_frame::access::STREAMER;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::value::Time;
use serde::Serialize;
use serde_json::{Map, Value, json};
use server::reply::Refusal;
use services::addresses::{backdrop_address, episode_image_address, image_address};
use services::titles::{OpenedTitle, Properties};
use uuid::Uuid;

use super::episodes::find_episode;
use super::titles::find;
use super::view::{AccountNameView, RelationView, VodLookup, unknown};
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};

/// The facts of a film, as an account states them.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct MovieProviderInfoView {
    /// Id of the film.
    id: u32,
    /// Identifier in its address.
    uuid: Uuid,
    /// Id of the relation with the account.
    relation_id: u32,
    /// Id of the film at the provider.
    stream_id: String,
    /// Name of the film.
    name: String,
    /// Name in the original language.
    o_name: String,
    /// Plot.
    description: String,
    /// Plot.
    plot: String,
    /// Year of release.
    year: Option<u16>,
    /// Date of release.
    release_date: String,
    /// Genres.
    genre: String,
    /// Director.
    director: String,
    /// Cast.
    actors: String,
    /// Country.
    country: String,
    /// Rating.
    rating: String,
    /// Id in the catalogue of The Movie Database.
    tmdb_id: String,
    /// Id in the catalogue of IMDb.
    imdb_id: String,
    /// Trailer at a video service.
    youtube_trailer: String,
    /// Length in seconds.
    duration_secs: Option<u32>,
    /// Lowest recommended age.
    age: String,
    /// URLs of the copies of background pictures that the gateway serves.
    backdrop_path: Vec<String>,
    /// URL of the copy of the picture.
    cover: String,
    /// URL of the copy of the picture.
    cover_big: String,
    /// URL of the copy of the picture.
    movie_image: String,
    /// Kilobits per second; 0 if unknown.
    bitrate: u64,
    /// Facts of the video.
    video: Map<String, Value>,
    /// Facts of the audio.
    audio: Map<String, Value>,
    /// Extension of the file; empty if unknown.
    container_extension: String,
    /// Always empty.
    direct_source: &'static str,
    /// Id of the category.
    category_id: String,
    /// When the provider added the film, in seconds since 1970.
    added: String,
    /// The account.
    m3u_account: AccountNameView,
}

/// The facts of a series, as an account states them.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SeriesProviderInfoView {
    /// Id of the series.
    id: u32,
    /// Id of the relation with the account.
    relation_id: u32,
    /// Id of the series at the provider.
    series_id: String,
    /// Name of the series.
    name: String,
    /// Plot.
    description: String,
    /// Year of release.
    year: Option<u16>,
    /// Genres.
    genre: String,
    /// Rating.
    rating: String,
    /// Id in the catalogue of The Movie Database.
    tmdb_id: Option<String>,
    /// Id in the catalogue of IMDb.
    imdb_id: Option<String>,
    /// Id of the category.
    category_id: u32,
    /// Name of the category.
    category_name: Option<String>,
    /// URL of the copy of the picture that the gateway serves; `null` if there is none.
    cover: Option<String>,
    /// URLs of the copies of background pictures.
    backdrop_path: Vec<String>,
    /// Cast.
    cast: String,
    /// Director.
    director: String,
    /// Date of release.
    release_date: String,
    /// Trailer at a video service.
    youtube_trailer: String,
    /// Length of an episode in minutes.
    episode_run_time: String,
    /// When the details were loaded; `null` if they never were.
    last_refreshed: Option<Time>,
    /// The account.
    m3u_account: AccountNameView,
    /// Whether the episodes were loaded.
    episodes_fetched: bool,
    /// Whether the details were loaded.
    detailed_fetched: bool,
    /// Episodes by season, if they were asked for.
    episodes: Map<String, Value>,
}

/// Selects the relation whose account is asked.
#[derive(Debug, Query)]
struct WhichRelation {
    /// Id of a relation; the preferred one by default.
    relation_id: Option<u32>,
}

/// Selects the relation, and whether episodes are returned.
#[derive(Debug, Query)]
struct SeriesOptions {
    /// Id of a relation; the preferred one by default.
    relation_id: Option<u32>,
    /// Whether episodes are returned, and loaded first if they are missing or old. True by default.
    include_episodes: Option<bool>,
}

/// An address that plays a title, without other credentials and for a limited time.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PlayAddressView {
    /// Address on the player port. It contains a token for this title only.
    url: String,
    /// Extension of the file, such as `mp4`; empty if unknown.
    #[field(example = "mp4")]
    container_extension: String,
    /// Length in seconds.
    duration_secs: Option<u32>,
    /// When the address expires.
    expires_at: Time,
}

pub(super) fn routes() -> Vec<Route> {
    const PROVIDERS: &str = "Lists the accounts that offer a title.";
    const NOTHING_PLAYS: &str = "The title does not exist, or nothing plays it.";
    let known = |route: Route| route.refuses(StatusCode::NOT_FOUND, NOTHING_PLAYS);
    let movie_info =
        "Returns the facts of a film of an account, and loads them first if they are missing or old.";
    let series_info =
        "Returns the facts of a series of an account, and loads them first if they are missing or old.";
    vec![
        Route::get("/api/vod/movies/{id}/providers/", STREAMER, PROVIDERS, movie_providers),
        Route::get("/api/vod/series/{id}/providers/", STREAMER, PROVIDERS, series_providers),
        known(Route::get("/api/vod/movies/{id}/provider-info/", STREAMER, movie_info, movie_provider_info)),
        known(Route::get("/api/vod/series/{id}/provider-info/", STREAMER, series_info, series_provider_info)),
        known(Route::get(
            "/api/vod/movies/{id}/stream/",
            STREAMER,
            "Returns an address that plays a film.",
            movie_stream,
        )),
        known(Route::get(
            "/api/vod/episodes/{id}/stream/",
            STREAMER,
            "Returns an address that plays an episode.",
            episode_stream,
        )),
    ]
}

async fn movie_providers(call: Call, paging: WholeOrPages) -> Result<Page<RelationView>, Refusal> {
    paging.page_from(&call, providers(&call, TitleKind::Movie).await?)
}

async fn series_providers(call: Call, paging: WholeOrPages) -> Result<Page<RelationView>, Refusal> {
    paging.page_from(&call, providers(&call, TitleKind::Series).await?)
}

/// Returns the relations of a title, the preferred one first; for users other than admins those that play it.
async fn providers(call: &Call, kind: TitleKind) -> Result<Vec<RelationView>, Refusal> {
    let title = find(call, kind).await?;
    let lookup = VodLookup::load(call);
    let all: Vec<&Relation> = match lookup.is_admin {
        true => title.relations.iter().collect(),
        false => lookup.seen.relations(&title).collect(),
    };
    Ok(all.into_iter().map(|it| lookup.relation(&title, it)).collect())
}

/// Returns the relation with this id, or the preferred one, if the caller sees it.
fn choose<'a>(lookup: &VodLookup, title: &'a Title, id: Option<u32>) -> Result<&'a Relation, Refusal> {
    let is_seen = |it: &Relation| lookup.is_admin || lookup.seen.relations(title).any(|of| of.id == it.id);
    match id {
        Some(id) => title
            .relation(RelationId(id))
            .filter(|it| is_seen(it))
            .ok_or_else(|| Refusal::not_found("The title has no such relation.")),
        None => {
            let playable = lookup.seen.relations(title).next().map(|it| it.id);
            let preferred = playable.and_then(|it| title.relation(it)).or(title.relations.first());
            preferred.filter(|it| is_seen(it)).ok_or_else(|| unknown(title.id.kind()))
        }
    }
}

async fn movie_provider_info(call: Call, which: WhichRelation) -> Result<MovieProviderInfoView, Refusal> {
    let film = find(&call, TitleKind::Movie).await?;
    let lookup = VodLookup::load(&call);
    let wanted = choose(&lookup, &film, which.relation_id)?.id;
    let OpenedTitle { title: film, details } = call.rest().imports.titles.open(film, Some(wanted)).await?;
    let relation = film.relation(wanted).ok_or_else(|| unknown(TitleKind::Movie))?;
    let properties = Properties::from_title(&film, details.as_ref());
    let picture = film.logo().map(|_| image_address(&lookup.origin, &film)).unwrap_or_default();
    let plot = film.description().unwrap_or_default().to_owned();
    let backdrops = properties.backdrops().into_iter().enumerate();
    let view = lookup.relation(&film, relation);
    Ok(MovieProviderInfoView {
        id: film.id.number(),
        uuid: film.uuid,
        relation_id: relation.id.0,
        stream_id: view.stream_id(),
        name: film.name().to_owned(),
        o_name: Some(properties.original_name())
            .filter(|it| !it.is_empty())
            .unwrap_or_else(|| film.name().to_owned()),
        description: plot.clone(),
        plot,
        year: film.year(),
        release_date: properties.release_date(),
        genre: film.genre().unwrap_or_default().to_owned(),
        director: properties.director(),
        actors: properties.cast(),
        country: properties.country(),
        rating: film.rating().unwrap_or_default().to_owned(),
        tmdb_id: film.tmdb_id().unwrap_or_default().to_owned(),
        imdb_id: film.imdb_id().unwrap_or_default().to_owned(),
        youtube_trailer: properties.trailer(),
        duration_secs: film.duration_secs(),
        age: properties.age(),
        backdrop_path: backdrops.map(|(n, it)| backdrop_address(&lookup.origin, &film, n, it)).collect(),
        cover: picture.clone(),
        cover_big: picture.clone(),
        movie_image: picture,
        bitrate: properties.bitrate(),
        video: properties.video(),
        audio: properties.audio(),
        container_extension: relation.extension.clone(),
        direct_source: "",
        category_id: relation.category.to_string(),
        added: relation.last_modified.unwrap_or(relation.added_at / 1000).to_string(),
        m3u_account: lookup.account(relation.account),
    })
}

async fn series_provider_info(call: Call, options: SeriesOptions) -> Result<SeriesProviderInfoView, Refusal> {
    let series = find(&call, TitleKind::Series).await?;
    let lookup = VodLookup::load(&call);
    let wanted = choose(&lookup, &series, options.relation_id)?.id;
    let (OpenedTitle { title: series, details }, episodes) = match options.include_episodes {
        Some(false) => (call.rest().imports.titles.open(series, Some(wanted)).await?, Vec::new()),
        _ => call.rest().imports.titles.open_series(series).await?,
    };
    let relation = series.relation(wanted).ok_or_else(|| unknown(TitleKind::Series))?;
    let properties = Properties::from_title(&series, details.as_ref());
    let mut seasons: BTreeMap<u32, Vec<Value>> = BTreeMap::new();
    for episode in &episodes {
        let Some(offer) = episode.offers.iter().find(|it| it.relation == wanted) else { continue };
        let picture = episode.first(|it| it.logo.as_deref());
        let picture = picture.map(|it| episode_image_address(&lookup.origin, episode, it));
        let plot = episode.first(|it| it.description.as_deref());
        seasons.entry(episode.season).or_default().push(json!({
            "id": episode.id.0, "uuid": episode.uuid, "name": episode.name(), "title": episode.name(),
            "episode_number": episode.number, "season_number": episode.season,
            "description": plot, "plot": plot,
            "air_date": episode.first(|it| it.air_date.as_deref()),
            "duration_secs": episode.first(|it| it.duration_secs),
            "rating": episode.first(|it| it.rating.as_deref()),
            "tmdb_id": episode.first(|it| it.ids.tmdb.as_deref()),
            "imdb_id": episode.first(|it| it.ids.imdb.as_deref()),
            "movie_image": picture, "container_extension": offer.extension, "type": "episode",
            "series": { "id": series.id.number(), "name": series.name() },
        }));
    }
    let backdrops = properties.backdrops().into_iter().enumerate();
    Ok(SeriesProviderInfoView {
        id: series.id.number(),
        relation_id: relation.id.0,
        series_id: lookup.relation(&series, relation).stream_id(),
        name: series.name().to_owned(),
        description: series.description().unwrap_or_default().to_owned(),
        year: series.year(),
        genre: series.genre().unwrap_or_default().to_owned(),
        rating: series.rating().unwrap_or_default().to_owned(),
        tmdb_id: series.tmdb_id().map(str::to_owned),
        imdb_id: series.imdb_id().map(str::to_owned),
        category_id: relation.category.0,
        category_name: lookup.categories.get(relation.category.0).map(|it| it.name.clone()),
        cover: series.logo().map(|_| image_address(&lookup.origin, &series)),
        backdrop_path: backdrops.map(|(n, it)| backdrop_address(&lookup.origin, &series, n, it)).collect(),
        cast: properties.cast(),
        director: properties.director(),
        release_date: properties.release_date(),
        youtube_trailer: properties.trailer(),
        episode_run_time: properties.run_time(),
        last_refreshed: relation.details_at.map(Time),
        m3u_account: lookup.account(relation.account),
        episodes_fetched: relation.episodes_at.is_some(),
        detailed_fetched: relation.details_at.is_some(),
        episodes: seasons.into_iter().map(|(season, all)| (season.to_string(), all.into())).collect(),
    })
}

async fn movie_stream(call: Call) -> Result<PlayAddressView, Refusal> {
    let film = find(&call, TitleKind::Movie).await?;
    let lookup = VodLookup::load(&call);
    let relation = lookup.seen.relations(&film).next().ok_or_else(|| unknown(TitleKind::Movie))?;
    play_address(&call, "movie", film.uuid, &relation.extension, film.duration_secs())
}

async fn episode_stream(call: Call) -> Result<PlayAddressView, Refusal> {
    let (series, episode) = find_episode(&call, call.id()?).await?;
    let lookup = VodLookup::load(&call);
    let is_playable = |id: RelationId| lookup.seen.relations(&series).any(|it| it.id == id);
    let offer = episode.offers.iter().find(|it| is_playable(it.relation));
    let offer = offer.ok_or_else(|| Refusal::not_found("No Episode matches the given query."))?;
    let seconds = episode.first(|it| it.duration_secs);
    play_address(&call, "episode", episode.uuid, &offer.extension, seconds)
}

fn play_address(
    call: &Call,
    kind: &str,
    uuid: Uuid,
    extension: &str,
    duration_secs: Option<u32>,
) -> Result<PlayAddressView, Refusal> {
    let (token, expires_at) = call.rest().auth.play_token(call.user()?, &call.headers, uuid);
    Ok(PlayAddressView {
        url: format!("{}/proxy/vod/{kind}/{uuid}?token={token}", call.player_origin()),
        container_extension: extension.to_owned(),
        duration_secs,
        expires_at: Time(expires_at),
    })
}
