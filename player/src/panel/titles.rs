//! Films, series and their categories, as a panel describes them.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use bytes::Bytes;
use domain::core_settings::LIBRARY_SETTINGS;
use domain::library_settings::{LibrarySettings, PanelRows};
use domain::vod::query::VodSnapshot;
use domain::vod::{AccountCategory, Relation, Title, TitleKind, VodCategory};
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, HeaderValue, VARY};
use http::{Response, StatusCode};
use route_frame::call::Call;
use route_frame::route::{client_has, weak_tag};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use server::WarpBody;
use server::encoding::accepts_gzip;
use server::reply::{Refusal, declare_json};
use services::addresses::{backdrop_address, image_address};
use services::titles::{Properties, SeenTitles, numeric_rating};
use storage::{Models, Record, Table, View};
use warp::Reply as _;
use warp::reply::Response as Reply;

use super::PanelAnswer;
use crate::context::PlayerCall;
use crate::growing_text::{GrowingText, whole};
use crate::prepared::{AnswerTables, PreparedAnswers};
use crate::recordings::rows::{RecordingRows, category_of};

/// Number of the last commit to films and series.
pub(crate) struct TitleCommits(View<u64>);

impl TitleCommits {
    /// Reads the store, so it blocks.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    pub(crate) fn new(models: &Models) -> Result<Self, storage::Error> {
        let number = models.store.view(const { &[Title::COLLECTION] }, |reader, _| Ok(reader.version()));
        number.map(Self)
    }
}

/// The origin of lists of titles, at one moment.
#[derive(Clone)]
pub(crate) struct TitleTables {
    models: Models,
    /// The last commit to the titles.
    version: u64,
    /// For lists of categories.
    index: Arc<VodSnapshot>,
    categories: Arc<Table<VodCategory>>,
    links: Arc<Table<AccountCategory>>,
}

/// Everything that a list of titles depends on besides.
#[derive(Clone, PartialEq)]
pub(crate) struct TitleListKey {
    list: List,
    /// The requested category, if one was requested.
    category: Option<u32>,
    /// Start of all addresses in the answer.
    origin: String,
    seen: SeenTitles,
    rows: PanelRows,
    /// The recordings among them, or the category of those.
    recorded: RecordingRows,
}

/// A list of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Categories(TitleKind),
    Titles(TitleKind),
}

impl AnswerTables for TitleTables {
    type Key = TitleListKey;
    type Answer = GrowingText;

    fn are_same(&self, other: &Self) -> bool {
        self.version == other.version
            && Arc::ptr_eq(&self.categories, &other.categories)
            && Arc::ptr_eq(&self.links, &other.links)
    }

    fn is_part(key: &TitleListKey) -> bool {
        key.category.is_some()
    }
}

/// A category. Its id is a text that contains a number, and differs from those of channels.
#[derive(Serialize)]
struct CategoryRow<'a> {
    category_id: String,
    category_name: &'a str,
    parent_id: u32,
}

/// A film, or a version of one. Its types are those of panels: `category_id`, `added` and `is_adult` are texts that contain
/// numbers.
#[derive(Serialize)]
struct FilmRow<'a> {
    /// Unique, and the same in every list.
    num: u32,
    name: &'a str,
    title: &'a str,
    stream_type: &'static str,
    stream_id: u32,
    stream_icon: Option<String>,
    rating: String,
    rating_5based: f64,
    /// In seconds since 1970.
    added: String,
    is_adult: &'static str,
    tmdb_id: &'a str,
    imdb_id: &'a str,
    trailer: String,
    plot: &'a str,
    genre: &'a str,
    year: Year,
    director: String,
    cast: String,
    release_date: String,
    category_id: String,
    category_ids: Vec<u32>,
    container_extension: &'a str,
    custom_sid: &'static str,
    direct_source: &'static str,
}

/// A year as a number, or an empty text, as apps expect it.
#[derive(Serialize)]
#[serde(untagged)]
enum Year {
    Known(u16),
    Unknown(&'static str),
}

/// A series.
#[derive(Serialize)]
struct SeriesRow<'a> {
    num: u32,
    name: &'a str,
    title: &'a str,
    series_id: u32,
    cover: String,
    plot: &'a str,
    cast: String,
    director: String,
    genre: &'a str,
    release_date: &'a str,
    #[serde(rename = "releaseDate")]
    release_date_2: &'a str,
    /// In seconds since 1970.
    last_modified: String,
    rating: String,
    rating_5based: f64,
    backdrop_path: Vec<String>,
    youtube_trailer: String,
    /// In minutes.
    episode_run_time: String,
    category_id: String,
    category_ids: Vec<u32>,
    tmdb_id: &'a str,
    imdb_id: &'a str,
}

/// Where a film or a series is from, and its fields that both have.
pub(super) struct Common<'a> {
    pub(super) title: &'a Title,
    pub(super) properties: Properties<'a>,
    /// The preferred relation.
    pub(super) first: &'a Relation,
    pub(super) category_ids: Vec<u32>,
}

impl<'a> Common<'a> {
    /// Describes a title by these relations, the preferred one first; `None` without one.
    pub(super) fn new(
        title: &'a Title,
        properties: Properties<'a>,
        relations: &[&'a Relation],
    ) -> Option<Self> {
        let first = *relations.first()?;
        let mut category_ids = vec![first.category.0];
        for relation in relations {
            if !category_ids.contains(&relation.category.0) {
                category_ids.push(relation.category.0);
            }
        }
        Some(Self { title, properties, first, category_ids })
    }

    /// Returns the rating as a text and on a scale to five; labels count as none.
    pub(super) fn rating(&self) -> (String, f64) {
        match numeric_rating(self.title.rating()).filter(|it| *it > 0.0) {
            Some(rating) => (self.title.rating().unwrap_or_default().trim().to_owned(), rating / 2.0),
            None => ("0".to_owned(), 0.0),
        }
    }

    /// Returns when the provider added or changed it, in seconds since 1970.
    pub(super) fn added(&self) -> String {
        self.first.last_modified.unwrap_or(self.first.added_at / 1000).to_string()
    }

    pub(super) fn picture(&self, origin: &str) -> Option<String> {
        self.title.logo().is_some().then(|| image_address(origin, self.title))
    }

    pub(super) fn backdrops(&self, origin: &str) -> Vec<String> {
        let urls = self.properties.backdrops().into_iter().enumerate();
        urls.map(|(n, url)| backdrop_address(origin, self.title, n, url)).collect()
    }

    /// Returns the date of release, or at least the year.
    pub(super) fn release_date(&self) -> String {
        let date = self.properties.release_date();
        match self.title.year() {
            Some(year) if date.is_empty() => year.to_string(),
            _ => date,
        }
    }

    pub(super) fn adult(&self) -> &'static str {
        if self.title.is_adult() { "1" } else { "0" }
    }
}

/// The extension of a film whose provider names none.
pub(super) fn extension_of(relation: &Relation) -> &str {
    if relation.extension.is_empty() { "mp4" } else { &relation.extension }
}

pub(super) async fn categories(call: &Call, kind: TitleKind) -> Result<PanelAnswer, Refusal> {
    answer(call, List::Categories(kind), None).await
}

/// Returns the titles of a category, or all. A category that the caller does not see has none.
pub(super) async fn titles(
    call: &Call,
    kind: TitleKind,
    category: Option<&str>,
) -> Result<PanelAnswer, Refusal> {
    // 0 is the id of no category.
    answer(call, List::Titles(kind), category.map(|it| it.trim().parse().unwrap_or(0))).await
}

/// Returns the categories of films, and those of series.
pub(super) async fn all_categories(call: &Call) -> Result<[Bytes; 2], Refusal> {
    let mut texts = [Bytes::new(), Bytes::new()];
    for (text, kind) in texts.iter_mut().zip([TitleKind::Movie, TitleKind::Series]) {
        let (key, tables) = question(call, List::Categories(kind), None).await?;
        let list =
            call.player().states.get::<PreparedAnswers<TitleTables>>().follow(key, tables, write).await?;
        let unpacked = whole(list.unpacked()).await;
        *text = unpacked.map_err(|it| Refusal::fault(format_args!("list categories: {it}")))?;
    }
    Ok(texts)
}

/// Answers with a list. It is kept compressed, because a hundred thousand films are a hundred megabytes of text; for apps
/// that accept no gzip it is unpacked while it is sent. The first answer after a change is sent while it is written.
async fn answer(call: &Call, list: List, category: Option<u32>) -> Result<PanelAnswer, Refusal> {
    let (key, tables) = question(call, list, category).await?;
    let is_packed = accepts_gzip(&call.headers);
    let tag = tables.tag(&key, is_packed);
    let mut reply = if client_has(&call.headers, &tag) {
        let mut reply = Reply::default();
        *reply.status_mut() = StatusCode::NOT_MODIFIED;
        reply
    } else {
        let text =
            call.player().states.get::<PreparedAnswers<TitleTables>>().follow(key, tables, write).await?;
        text_reply(text, is_packed).await?
    };
    let headers = reply.headers_mut();
    headers.insert(ETAG, tag);
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    // Apps ask each time; the answer is then short.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    Ok(PanelAnswer::Titles(reply))
}

/// Returns the answer with a text, with its length if that is known.
async fn text_reply(text: GrowingText, is_packed: bool) -> Result<Reply, Refusal> {
    let failed = |it: io::Error| Refusal::fault(format_args!("write a list: {it}"));
    let length = text.begin().await.map_err(failed)?;
    let mut reply = match length {
        _ if is_packed => warp::reply::stream(text.packed()).into_response(),
        Some(length) if length <= SHORT_BYTES => {
            Response::new(WarpBody::from(whole(text.unpacked()).await.map_err(failed)?))
        }
        _ => warp::reply::stream(text.unpacked()).into_response(),
    };
    let headers = reply.headers_mut();
    declare_json(headers);
    if is_packed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        if let Some(length) = length {
            headers.insert(CONTENT_LENGTH, length.into());
        }
    }
    Ok(reply)
}

/// Maximum length of a compressed list that is unpacked at once, in bytes.
const SHORT_BYTES: usize = 4 << 10;

/// Returns what a list is, and what it is written from.
async fn question(
    call: &Call,
    list: List,
    category: Option<u32>,
) -> Result<(TitleListKey, TitleTables), Refusal> {
    let models = call.player().models.clone();
    let tables = TitleTables {
        version: *call.player().states.get::<TitleCommits>().0.load(),
        // After a change the index takes some time. Titles are read from the store.
        index: match list {
            List::Categories(_) => call.player().titles.index().await?,
            List::Titles(_) => models.vod_index.load(),
        },
        categories: models.vod_categories.load(),
        links: models.vod_account_categories.load(),
        models,
    };
    let key = TitleListKey {
        list,
        category,
        origin: call.player_origin(),
        seen: call.seen_titles(),
        rows: library_settings(call).panel_rows,
        recorded: match list {
            List::Categories(kind) => RecordingRows::category(call, kind),
            List::Titles(kind) if category.is_none_or(|it| it == category_of(kind)) => {
                RecordingRows::titles(call, kind)
            }
            List::Titles(_) => RecordingRows::none(),
        },
    };
    Ok((key, tables))
}

impl TitleTables {
    /// Returns the entity tag of a list, which is known before the list is written. It is weak because a list may contain a
    /// change that was made while it was written.
    fn tag(&self, key: &TitleListKey, is_packed: bool) -> HeaderValue {
        let versions = [self.version, self.categories.version(), self.links.version()];
        let TitleListKey { list, category, origin, seen, rows, recorded } = key;
        let about = (versions, list, category, origin, seen, rows, recorded.version(), is_packed);
        let about = (env!("CARGO_PKG_VERSION"), about);
        weak_tag(format!("{about:?}").as_bytes())
    }
}

pub(super) fn library_settings(call: &Call) -> LibrarySettings {
    let settings = call.player().models.settings.load();
    LibrarySettings::from_setting(settings.one_by("key", LIBRARY_SETTINGS).map(|it| &it.value))
}

fn write(key: &TitleListKey, tables: &TitleTables, out: &mut dyn Write) -> io::Result<()> {
    match key.list {
        List::Categories(kind) => write_categories(out, key, tables, kind),
        List::Titles(kind) => write_titles(out, key, tables, kind),
    }
}

/// Writes the categories that contain a title.
fn write_categories(
    out: &mut dyn Write,
    key: &TitleListKey,
    tables: &TitleTables,
    kind: TitleKind,
) -> io::Result<()> {
    let used = tables.index.categories(kind, &key.seen.limits, Some(key.seen.sources()));
    let categories = tables.categories.iter().filter(|it| used.contains_key(&it.id));
    let mut serializer = serde_json::Serializer::new(out);
    let mut rows = serializer.serialize_seq(None)?;
    for it in categories {
        let id = it.id.to_string();
        rows.serialize_element(&CategoryRow { category_id: id, category_name: &it.name, parent_id: 0 })?;
    }
    write_recorded(&mut rows, key)?;
    Ok(rows.end()?)
}

fn write_titles(
    out: &mut dyn Write,
    key: &TitleListKey,
    tables: &TitleTables,
    kind: TitleKind,
) -> io::Result<()> {
    // Rows consist of many short writes, which are cheap only if they are not calls.
    let mut out = BufWriter::new(out);
    let mut serializer = serde_json::Serializer::new(&mut out);
    let mut rows = serializer.serialize_seq(None)?;
    write_recorded(&mut rows, key)?;
    if key.category == Some(category_of(kind)) {
        return Ok(rows.end()?);
    }
    let mut written = Ok(());
    let visited = tables.models.vod.while_each(|title| {
        if title.id.kind() == kind && key.seen.shows(&title) {
            written = match kind {
                TitleKind::Movie => write_film(&mut rows, key, &title),
                TitleKind::Series => write_series(&mut rows, key, &title),
            };
        }
        written.is_ok()
    });
    written?;
    visited.map_err(io::Error::other)?;
    rows.end()?;
    out.flush()
}

fn write_recorded<S: SerializeSeq>(rows: &mut S, key: &TitleListKey) -> Result<(), S::Error> {
    key.recorded.iter().try_for_each(|it| rows.serialize_element(it))
}

/// Writes a film, or its versions, if it is in the requested category.
fn write_film<S: SerializeSeq>(rows: &mut S, key: &TitleListKey, film: &Title) -> Result<(), S::Error> {
    let properties = || Properties::from_title(film, None);
    let is_wanted = |it: &Common<'_>| key.category.is_none_or(|wanted| it.category_ids.contains(&wanted));
    match key.rows {
        PanelRows::Titles => {
            let relations: Vec<_> = key.seen.relations(film).collect();
            let common = Common::new(film, properties(), &relations).filter(is_wanted);
            common.map_or(Ok(()), |it| {
                rows.serialize_element(&film_row(&it, key, film.id.number(), film.name()))
            })
        }
        PanelRows::Versions => {
            for relation in key.seen.versions(film) {
                let name = version_name(film, relation);
                let Some(common) = Common::new(film, properties(), &[relation]).filter(is_wanted) else {
                    continue;
                };
                rows.serialize_element(&film_row(&common, key, relation.id.0, &name))?;
            }
            Ok(())
        }
    }
}

/// Returns the name of a version of a film.
pub(super) fn version_name(film: &Title, relation: &Relation) -> String {
    match &relation.label {
        Some(label) => format!("{} [{label}]", film.name()),
        None => film.name().to_owned(),
    }
}

fn film_row<'a>(common: &'a Common<'a>, key: &TitleListKey, number: u32, name: &'a str) -> FilmRow<'a> {
    let (film, properties) = (common.title, &common.properties);
    let (rating, rating_5based) = common.rating();
    FilmRow {
        num: number,
        name,
        title: name,
        stream_type: "movie",
        stream_id: number,
        stream_icon: common.picture(&key.origin),
        rating,
        rating_5based,
        added: common.added(),
        is_adult: common.adult(),
        tmdb_id: film.tmdb_id().unwrap_or_default(),
        imdb_id: film.imdb_id().unwrap_or_default(),
        trailer: properties.trailer(),
        plot: film.description().unwrap_or_default(),
        genre: film.genre().unwrap_or_default(),
        year: film.year().map_or(Year::Unknown(""), Year::Known),
        director: properties.director(),
        cast: properties.cast(),
        release_date: properties.release_date(),
        category_id: common.first.category.to_string(),
        category_ids: common.category_ids.clone(),
        container_extension: extension_of(common.first),
        custom_sid: "",
        direct_source: "",
    }
}

fn write_series<S: SerializeSeq>(rows: &mut S, key: &TitleListKey, series: &Title) -> Result<(), S::Error> {
    let relations: Vec<_> = key.seen.relations(series).collect();
    let Some(common) = Common::new(series, Properties::from_title(series, None), &relations) else {
        return Ok(());
    };
    if key.category.is_some_and(|it| !common.category_ids.contains(&it)) {
        return Ok(());
    }
    let (rating, rating_5based) = common.rating();
    let release_date = common.release_date();
    rows.serialize_element(&SeriesRow {
        num: series.id.number(),
        name: series.name(),
        title: series.name(),
        series_id: series.id.number(),
        cover: common.picture(&key.origin).unwrap_or_default(),
        plot: series.description().unwrap_or_default(),
        cast: common.properties.cast(),
        director: common.properties.director(),
        genre: series.genre().unwrap_or_default(),
        release_date: &release_date,
        release_date_2: &release_date,
        last_modified: common.added(),
        rating,
        rating_5based,
        backdrop_path: common.backdrops(&key.origin),
        youtube_trailer: common.properties.trailer(),
        episode_run_time: Some(common.properties.run_time())
            .filter(|it| !it.is_empty())
            .unwrap_or("0".to_owned()),
        category_id: common.first.category.to_string(),
        category_ids: common.category_ids.clone(),
        tmdb_id: series.tmdb_id().unwrap_or_default(),
        imdb_id: series.imdb_id().unwrap_or_default(),
    })
}
