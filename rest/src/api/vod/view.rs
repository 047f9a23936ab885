//! Films, series and episodes in answers.

use std::collections::HashMap;
use std::sync::Arc;

use domain::account::{Account, PlaylistLocation};
use domain::ids::{AccountId, EpisodeId, VodCategoryId};
use domain::portal::shown_address;
use domain::vod::{Episode, EpisodeOffer, Relation, Title, TitleId, TitleKind, VodCategory, VodSync};
use resource_derive::View;
use route_frame::call::Call;
use route_frame::value::Time;
use serde::Serialize;
use serde_json::{Map, Value};
use server::reply::Refusal;
use services::addresses::{backdrop_address, episode_image_address, image_address, without_credentials};
use services::titles::{Properties, SeenTitles};
use storage::Table;
use uuid::Uuid;

use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::record::view_from;

/// Name of the catalogue of which values are shown.
const CATALOGUE: &str = "tmdb";

choice!(TitleKind {
    Movie = "movie",
    Series = "series",
});

/// A film.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "Movie")]
pub(crate) struct MovieView {
    /// Assigned by the gateway. Stays the same across refreshes.
    #[field(example = "7")]
    pub(super) id: u32,
    /// Identifier in its address, which never changes.
    uuid: Uuid,
    /// Name of the film.
    #[field(example = "Metropolis")]
    name: String,
    /// Plot.
    description: Option<String>,
    /// Year of release.
    #[field(example = "1927")]
    year: Option<u16>,
    /// A number such as `7.5`, or a label such as `PG-13`.
    rating: Option<String>,
    /// Genres, separated by commas.
    genre: Option<String>,
    /// Length in seconds.
    duration_secs: Option<u32>,
    /// Picture; `null` if there is none.
    logo: Option<VodLogoView>,
    /// Id in the catalogue of The Movie Database.
    tmdb_id: Option<String>,
    /// Id in the catalogue of IMDb.
    imdb_id: Option<String>,
    /// Same as `tmdb_id`.
    ext_id_a: Option<String>,
    /// Same as `imdb_id`.
    ext_id_b: Option<String>,
    /// Whether the film is adult content.
    is_adult: bool,
    /// Whether the film is hidden from everybody but admins.
    hidden: bool,
    /// Whether no account lists the film any longer.
    is_stale: bool,
    /// Categories of the film.
    categories: Vec<CategoryNameView>,
    /// Number of relations with accounts that play it.
    provider_count: usize,
    /// Catalogue that completes the values: `tmdb`, or `null` if they are those of accounts and admins only.
    completed_by: Option<&'static str>,
    /// Other facts, such as cast and director. Users other than admins see known ones without addresses.
    custom_properties: Map<String, Value>,
    /// When the film was first seen.
    created_at: Time,
    /// When the film last changed.
    updated_at: Time,
}

/// A series.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "Series")]
pub(crate) struct SeriesView {
    /// Assigned by the gateway. Stays the same across refreshes.
    #[field(example = "7")]
    pub(super) id: u32,
    /// Identifier in its address, which never changes.
    uuid: Uuid,
    /// Name of the series.
    #[field(example = "Andor")]
    name: String,
    /// Plot.
    description: Option<String>,
    /// Year of release.
    #[field(example = "2022")]
    year: Option<u16>,
    /// A number such as `7.5`, or a label such as `PG-13`.
    rating: Option<String>,
    /// Genres, separated by commas.
    genre: Option<String>,
    /// Picture; `null` if there is none.
    logo: Option<VodLogoView>,
    /// Number of known episodes. They are loaded when the series is opened first.
    #[field(example = "12")]
    episode_count: usize,
    /// Id in the catalogue of The Movie Database.
    tmdb_id: Option<String>,
    /// Id in the catalogue of IMDb.
    imdb_id: Option<String>,
    /// Same as `tmdb_id`.
    ext_id_a: Option<String>,
    /// Same as `imdb_id`.
    ext_id_b: Option<String>,
    /// Whether the series is adult content.
    is_adult: bool,
    /// Whether the series is hidden from everybody but admins.
    hidden: bool,
    /// Whether no account lists the series any longer.
    is_stale: bool,
    /// Categories of the series.
    categories: Vec<CategoryNameView>,
    /// Number of relations with accounts that offer it.
    provider_count: usize,
    /// Catalogue that completes the values: `tmdb`, or `null` if they are those of accounts and admins only.
    completed_by: Option<&'static str>,
    /// Other facts, such as cast and director. Users other than admins see known ones without addresses.
    custom_properties: Map<String, Value>,
    /// When the series was first seen.
    created_at: Time,
    /// When the series last changed.
    updated_at: Time,
}

/// A film or a series in a list of both.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "MovieOrSeries")]
pub(crate) struct TitleView {
    /// Kind of the title.
    content_type: Named<TitleKind>,
    /// Id among the titles of its kind.
    #[field(example = "7")]
    id: u32,
    /// Identifier in its address, which never changes.
    uuid: Uuid,
    /// Name of the title.
    name: String,
    /// Plot.
    description: Option<String>,
    /// Year of release.
    year: Option<u16>,
    /// A number such as `7.5`, or a label such as `PG-13`.
    rating: Option<String>,
    /// Genres, separated by commas.
    genre: Option<String>,
    /// Length in seconds; `null` for a series.
    duration_secs: Option<u32>,
    /// Number of known episodes; `null` for a film.
    episode_count: Option<usize>,
    /// Picture; `null` if there is none.
    logo: Option<VodLogoView>,
    /// Id in the catalogue of The Movie Database.
    tmdb_id: Option<String>,
    /// Id in the catalogue of IMDb.
    imdb_id: Option<String>,
    /// Whether the title is adult content.
    is_adult: bool,
    /// Whether the title is hidden from everybody but admins.
    hidden: bool,
    /// Categories of the title.
    categories: Vec<CategoryNameView>,
    /// Catalogue that completes the values: `tmdb`, or `null` if they are those of accounts and admins only.
    completed_by: Option<&'static str>,
    /// When the title was first seen.
    created_at: Time,
    /// When the title last changed.
    updated_at: Time,
}

/// A category in a title.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "VODCategoryName")]
pub(crate) struct CategoryNameView {
    /// Id of the category.
    id: VodCategoryId,
    /// Name of the category.
    #[field(example = "Drama")]
    name: String,
}

/// The picture of a title.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "VODLogo")]
pub(crate) struct VodLogoView {
    /// Id of the picture.
    #[field(example = "14")]
    pub(super) id: u32,
    /// Name of the title.
    name: String,
    /// URL of the picture. Users other than admins see no credentials in it.
    url: String,
    /// URL of the copy that the gateway serves, without credentials. Changes with the picture.
    cache_url: String,
    /// Number of films with the picture.
    movie_count: usize,
    /// Number of series with the picture.
    series_count: usize,
    /// Whether a title uses the picture.
    is_used: bool,
    /// Names of the titles that use the picture.
    item_names: Vec<String>,
}

/// An episode.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "Episode")]
pub(crate) struct EpisodeView {
    /// Assigned by the gateway. Stays the same across refreshes.
    #[field(example = "31")]
    id: EpisodeId,
    /// Identifier in its address, which never changes.
    uuid: Uuid,
    /// The series of the episode.
    series: EpisodeSeriesView,
    /// Name of the episode.
    #[field(example = "That Would Be Me")]
    name: String,
    /// Plot.
    description: Option<String>,
    /// Date of the first broadcast.
    #[field(example = "2022-09-21")]
    air_date: Option<String>,
    /// A number such as `7.5`, or a label.
    rating: Option<String>,
    /// Length in seconds.
    duration_secs: Option<u32>,
    /// Season; 0 contains specials.
    season_number: u32,
    /// Number in the season.
    episode_number: u32,
    /// Id in the catalogue of The Movie Database.
    tmdb_id: Option<String>,
    /// Id in the catalogue of IMDb.
    imdb_id: Option<String>,
    /// Same as `tmdb_id`.
    ext_id_a: Option<String>,
    /// Same as `imdb_id`.
    ext_id_b: Option<String>,
    /// URL of the copy of the picture that the gateway serves; `null` if there is none.
    image_url: Option<String>,
    /// Other facts. Users other than admins see known ones without addresses.
    custom_properties: Map<String, Value>,
    /// When the episode was first seen.
    created_at: Time,
    /// When the episode last changed.
    updated_at: Time,
    /// The accounts that offer the episode.
    providers: Vec<EpisodeProviderView>,
}

/// The series of an episode.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "EpisodeSeries")]
pub(crate) struct EpisodeSeriesView {
    /// Id of the series.
    id: u32,
    /// Identifier of the series in its address.
    uuid: Uuid,
    /// Name of the series.
    name: String,
}

/// The title of a relation.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct TitleNameView {
    /// Id of the title.
    id: u32,
    /// Identifier of the title in its address.
    uuid: Uuid,
    /// Name of the title.
    #[field(example = "Metropolis")]
    name: String,
    /// Year of release.
    #[field(example = "1927")]
    year: Option<u16>,
}

impl TitleNameView {
    fn new(title: &Title) -> Self {
        Self { id: title.id.number(), uuid: title.uuid, name: title.name().to_owned(), year: title.year() }
    }
}

/// The episode of a relation.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct EpisodeNameView {
    /// Id of the episode.
    #[field(example = "31")]
    id: EpisodeId,
    /// Identifier of the episode in its address.
    uuid: Uuid,
    /// Name of the episode.
    name: String,
    /// Season; 0 contains specials.
    season_number: u32,
    /// Number in the season.
    episode_number: u32,
}

/// An account that offers an episode.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "EpisodeRelation")]
pub(crate) struct EpisodeProviderView {
    /// The account.
    m3u_account: AccountNameView,
    /// The episode.
    episode: EpisodeNameView,
    /// Id of the relation of the series.
    series_relation: u32,
    /// Id of the episode at the provider. Empty for users other than admins if a playlist names none.
    stream_id: String,
    /// Extension of the file; empty if unknown.
    container_extension: String,
    /// Whether the episode is missing from the latest list of the account.
    is_stale: bool,
    /// When it was last in the list of its account.
    last_seen: Option<Time>,
    /// Other values of the provider. Users other than admins see known ones without addresses.
    custom_properties: Map<String, Value>,
    /// Address at the provider; `null` for users other than admins.
    url: Option<String>,
}

/// An account in a relation.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "VODAccount")]
pub(crate) struct AccountNameView {
    /// Id of the account.
    id: AccountId,
    /// Name of the account.
    name: String,
    /// `XC` for a panel, `STD` for a playlist.
    account_type: &'static str,
}

/// An account that offers a title: one version of it.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "TitleRelation")]
pub(crate) struct RelationView {
    /// Id of the relation.
    #[field(example = "8")]
    id: u32,
    /// The account.
    m3u_account: AccountNameView,
    /// The film; `null` for a series.
    movie: Option<TitleNameView>,
    /// The series; `null` for a film.
    series: Option<TitleNameView>,
    /// The category.
    category: Option<CategoryNameView>,
    /// Id of the film at the provider; same as `external_series_id` for a series. Empty for users other than admins if a
    /// playlist names none.
    stream_id: String,
    /// Id of the series at the provider; `null` for a film.
    external_series_id: Option<String>,
    /// Extension of the file; empty for a series, or if unknown.
    container_extension: String,
    /// Distinguishes this version from others, such as `EN 4K`.
    label: Option<String>,
    /// Name of the title at the provider.
    name: String,
    /// Why the relation belongs to its title.
    #[field(example = "same TMDB id 949")]
    match_reason: String,
    /// Whether it is missing from the latest list of the account.
    is_stale: bool,
    /// Whether it can play: its account is active and its category enabled.
    is_playable: bool,
    /// When it was last in the list of its account.
    last_seen: Option<Time>,
    /// When its details were loaded; `null` if they never were.
    last_advanced_refresh: Option<Time>,
    /// When its episodes were loaded; `null` if they never were.
    last_episode_refresh: Option<Time>,
    /// Address at the provider; `null` for users other than admins, and for panels, whose addresses contain the login.
    url: Option<String>,
    /// Other values of the provider. Users other than admins see known ones without addresses.
    custom_properties: Map<String, Value>,
}

impl RelationView {
    /// Returns the id of the title at the provider, as the caller may read it.
    pub(super) fn stream_id(&self) -> String {
        self.stream_id.clone()
    }
}

/// Names of facts that every user may read.
const PUBLIC_FACTS: [&str; 17] = [
    "actors",
    "age",
    "bitrate",
    "cast",
    "country",
    "crew",
    "directed_by",
    "director",
    "episode_run_time",
    "o_name",
    "original_name",
    "quality",
    "release_date",
    "releaseDate",
    "releasedate",
    "trailer",
    "youtube_trailer",
];

/// Everything that views of titles depend on, loaded once per request.
pub(super) struct VodLookup {
    pub(super) origin: String,
    pub(super) is_admin: bool,
    pub(super) seen: SeenTitles,
    pub(super) categories: Arc<Table<VodCategory>>,
    pub(super) accounts: Arc<Table<Account>>,
    pub(super) syncs: Arc<Table<VodSync>>,
    /// Numbers of episodes of the series of an answer.
    pub(super) episode_counts: HashMap<TitleId, usize>,
}

impl VodLookup {
    pub(super) fn load(call: &Call) -> Self {
        let models = &call.rest().models;
        Self {
            origin: call.origin(),
            is_admin: call.is_admin(),
            seen: call.seen_titles(),
            categories: models.vod_categories.load(),
            accounts: models.accounts.load(),
            syncs: models.vod_syncs.load(),
            episode_counts: HashMap::new(),
        }
    }

    fn category(&self, id: VodCategoryId) -> Option<CategoryNameView> {
        self.categories.get(id.0).map(|it| CategoryNameView { id: it.id, name: it.name.clone() })
    }

    fn categories(&self, title: &Title) -> Vec<CategoryNameView> {
        let mut ids: Vec<VodCategoryId> = Vec::new();
        for relation in self.seen.relations(title) {
            if !ids.contains(&relation.category) {
                ids.push(relation.category);
            }
        }
        ids.into_iter().filter_map(|it| self.category(it)).collect()
    }

    pub(super) fn account(&self, id: AccountId) -> AccountNameView {
        let account = self.accounts.get(id.0);
        let account_type = match account.map(|it| &it.list) {
            Some(PlaylistLocation::Panel(_)) => "XC",
            Some(PlaylistLocation::Portal(_)) => "STALKER",
            _ => "STD",
        };
        AccountNameView { id, name: account.map(|it| it.name.clone()).unwrap_or_default(), account_type }
    }

    /// Returns an address for the caller.
    pub(super) fn address(&self, url: &str) -> String {
        if self.is_admin { url.to_owned() } else { without_credentials(url) }
    }

    /// Returns the properties that the caller may read.
    fn properties(&self, all: &Map<String, Value>) -> Map<String, Value> {
        if self.is_admin {
            return all.clone();
        }
        let is_plain = |it: &Value| match it {
            Value::String(text) => !text.contains("://"),
            Value::Number(_) | Value::Bool(_) => true,
            Value::Array(items) => items.iter().all(|it| it.as_str().is_some_and(|it| !it.contains("://"))),
            _ => false,
        };
        let known =
            all.iter().filter(|(name, value)| PUBLIC_FACTS.contains(&name.as_str()) && is_plain(value));
        known.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns the properties of a title: those of the first relation, replaced by its own.
    fn title_properties(&self, title: &Title) -> Map<String, Value> {
        let mut all = Map::new();
        if let Some(first) = self.seen.relations(title).next().or(title.relations.first()) {
            all.extend(first.custom_properties.clone());
        }
        all.extend(title.completion.as_ref().map(|it| it.properties.clone()).unwrap_or_default());
        all.extend(title.custom_properties.clone());
        let mut shown = self.properties(&all);
        let properties = Properties::from_title(title, None);
        let backdrops = properties.backdrops().into_iter().enumerate();
        let backdrops: Vec<Value> =
            backdrops.map(|(n, it)| backdrop_address(&self.origin, title, n, it).into()).collect();
        if !backdrops.is_empty() {
            shown.insert("backdrop_path".to_owned(), backdrops.into());
        }
        shown
    }

    pub(super) fn logo(&self, title: &Title) -> Option<VodLogoView> {
        let url = title.logo()?;
        let is_film = title.id.kind() == TitleKind::Movie;
        let kind = if is_film { "Movie" } else { "Series" };
        Some(VodLogoView {
            id: title.id.key(),
            name: title.name().to_owned(),
            url: self.address(url),
            cache_url: image_address(&self.origin, title),
            movie_count: usize::from(is_film),
            series_count: usize::from(!is_film),
            is_used: true,
            item_names: vec![format!("{kind}: {}", title.name())],
        })
    }

    pub(super) fn movie(&self, title: &Title) -> MovieView {
        let (tmdb_id, imdb_id) = (text(title.tmdb_id()), text(title.imdb_id()));
        view_from!(MovieView from title {
            uuid, hidden, created_at, updated_at;
            id: title.id.number(),
            name: title.name().to_owned(),
            description: text(title.description()),
            year: title.year(),
            rating: text(title.rating()),
            genre: text(title.genre()),
            duration_secs: title.duration_secs(),
            logo: self.logo(title),
            ext_id_a: tmdb_id.clone(),
            ext_id_b: imdb_id.clone(),
            tmdb_id,
            imdb_id,
            is_adult: title.is_adult(),
            completed_by: completed_by(title),
            is_stale: title.is_stale(),
            categories: self.categories(title),
            provider_count: self.seen.relations(title).count(),
            custom_properties: self.title_properties(title),
        })
    }

    pub(super) fn series(&self, title: &Title) -> SeriesView {
        let (tmdb_id, imdb_id) = (text(title.tmdb_id()), text(title.imdb_id()));
        view_from!(SeriesView from title {
            uuid, hidden, created_at, updated_at;
            id: title.id.number(),
            name: title.name().to_owned(),
            description: text(title.description()),
            year: title.year(),
            rating: text(title.rating()),
            genre: text(title.genre()),
            logo: self.logo(title),
            episode_count: self.episode_count(title),
            ext_id_a: tmdb_id.clone(),
            ext_id_b: imdb_id.clone(),
            tmdb_id,
            imdb_id,
            is_adult: title.is_adult(),
            completed_by: completed_by(title),
            is_stale: title.is_stale(),
            categories: self.categories(title),
            provider_count: self.seen.relations(title).count(),
            custom_properties: self.title_properties(title),
        })
    }

    fn episode_count(&self, title: &Title) -> usize {
        self.episode_counts.get(&title.id).copied().unwrap_or_default()
    }

    pub(super) fn title(&self, title: &Title) -> TitleView {
        let kind = title.id.kind();
        view_from!(TitleView from title {
            uuid, hidden, created_at, updated_at;
            content_type: Named(kind),
            id: title.id.number(),
            name: title.name().to_owned(),
            description: text(title.description()),
            year: title.year(),
            rating: text(title.rating()),
            genre: text(title.genre()),
            duration_secs: title.duration_secs().filter(|_| kind == TitleKind::Movie),
            episode_count: (kind == TitleKind::Series).then(|| self.episode_count(title)),
            logo: self.logo(title),
            tmdb_id: text(title.tmdb_id()),
            imdb_id: text(title.imdb_id()),
            is_adult: title.is_adult(),
            completed_by: completed_by(title),
            categories: self.categories(title),
        })
    }

    pub(super) fn relation(&self, title: &Title, relation: &Relation) -> RelationView {
        let kind = title.id.kind();
        let url = relation.address.as_ref().filter(|_| self.is_admin);
        let stream_id = self.provider_id(&relation.provider_id, relation.address.is_some());
        let last_seen = self.syncs.get(relation.account.0).and_then(|it| it.last_seen(kind, relation));
        RelationView {
            id: relation.id.0,
            m3u_account: self.account(relation.account),
            movie: (kind == TitleKind::Movie).then(|| TitleNameView::new(title)),
            series: (kind == TitleKind::Series).then(|| TitleNameView::new(title)),
            category: self.category(relation.category),
            external_series_id: (kind == TitleKind::Series).then(|| stream_id.clone()),
            stream_id,
            container_extension: relation.extension.clone(),
            label: relation.label.clone(),
            name: relation.facts.name.clone(),
            match_reason: relation.reason.to_string(),
            is_stale: relation.is_stale(),
            is_playable: self.seen.relations(title).any(|it| it.id == relation.id),
            last_seen: last_seen.map(Time),
            last_advanced_refresh: relation.details_at.map(Time),
            last_episode_refresh: relation.episodes_at.map(Time),
            url: url.map(shown_address),
            custom_properties: self.properties(&relation.custom_properties),
        }
    }

    /// Returns the view of an episode, with the accounts whose relation of the series the caller sees.
    pub(super) fn episode(&self, series: &Title, episode: &Episode) -> EpisodeView {
        let tmdb_id = text(episode.first(|it| it.ids.tmdb.as_deref()));
        let imdb_id = text(episode.first(|it| it.ids.imdb.as_deref()));
        let picture = episode.first(|it| it.logo.as_deref());
        let mut properties = Map::new();
        for offer in episode.offers.iter().rev() {
            properties.extend(offer.facts.custom_properties.clone());
        }
        let is_seen =
            |it: &&EpisodeOffer| self.is_admin || self.seen.relations(series).any(|of| of.id == it.relation);
        view_from!(EpisodeView from episode {
            id, uuid, created_at, updated_at;
            series: EpisodeSeriesView {
                id: series.id.number(),
                uuid: series.uuid,
                name: series.name().to_owned(),
            },
            name: episode.name(),
            description: text(episode.first(|it| it.description.as_deref())),
            air_date: text(episode.first(|it| it.air_date.as_deref())),
            rating: text(episode.first(|it| it.rating.as_deref())),
            duration_secs: episode.first(|it| it.duration_secs),
            season_number: episode.season,
            episode_number: episode.number,
            ext_id_a: tmdb_id.clone(),
            ext_id_b: imdb_id.clone(),
            tmdb_id,
            imdb_id,
            image_url: picture.map(|it| episode_image_address(&self.origin, episode, it)),
            custom_properties: self.properties(&properties),
            providers: episode.offers.iter().filter(is_seen).map(|it| self.offer(series, episode, it)).collect(),
        })
    }

    /// Returns the id of an entry at its provider. That of a playlist without ids is made from the address.
    fn provider_id(&self, id: &str, is_of_address: bool) -> String {
        if self.is_admin || !is_of_address { id.to_owned() } else { String::new() }
    }

    fn offer(&self, series: &Title, episode: &Episode, offer: &EpisodeOffer) -> EpisodeProviderView {
        let url = offer.address.as_ref().filter(|_| self.is_admin);
        let read_at = || series.relation(offer.relation)?.episodes_at;
        EpisodeProviderView {
            m3u_account: self.account(offer.account),
            series_relation: offer.relation.0,
            stream_id: self.provider_id(&offer.provider_id, offer.address.is_some()),
            container_extension: offer.extension.clone(),
            episode: EpisodeNameView {
                id: episode.id,
                uuid: episode.uuid,
                name: episode.name(),
                season_number: episode.season,
                episode_number: episode.number,
            },
            is_stale: offer.last_seen.is_some(),
            last_seen: offer.last_seen.or_else(read_at).map(Time),
            custom_properties: self.properties(&offer.facts.custom_properties),
            url: url.map(shown_address),
        }
    }
}

fn completed_by(title: &Title) -> Option<&'static str> {
    title.completed(|_| Some(CATALOGUE))
}

fn text(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}

/// Returns the refusal for a title that does not exist, or that the caller does not see.
pub(super) fn unknown(kind: TitleKind) -> Refusal {
    Refusal::not_found(match kind {
        TitleKind::Movie => "No Movie matches the given query.",
        TitleKind::Series => "No Series matches the given query.",
    })
}
