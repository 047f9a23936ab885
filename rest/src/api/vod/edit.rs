//! Changes of films and series by admins: of one, and of many with the same values.

use std::collections::HashSet;

use actors::now_ms;
use domain::vod::found::FoundTitle;
use domain::vod::{
    DESCRIPTION_CHARS_MAX, EXTERNAL_ID_CHARS_MAX, GENRE_CHARS_MAX, LOGO_CHARS_MAX, NAME_CHARS_MAX,
    PROPERTIES_BYTES_MAX, RATING_CHARS_MAX, Title, TitleId, TitleKind,
};
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::input::{Input, RequestInput};
use route_frame::route::Route;
use route_frame::value::WebUrl;
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::records::external_id_key;
use storage::{Write, edit_title};

use super::filters::select;
use super::regroup::find;
use super::titles::series_view;
use super::view::{MovieView, SeriesView, VodLookup};
use crate::api::channels::undo::{Author, UndoHandleView, UndoLog};

/// Values of a film or a series with priority over those of its accounts. Fields that are left out keep their value, `null`
/// gets the value of the accounts back, and an empty text removes the value.
#[derive(Clone, Debug, Default, Body)]
#[resource(name = "TitleEdit")]
pub(crate) struct TitleEdit {
    /// Name.
    #[field(chars_max = NAME_CHARS_MAX, example = "Metropolis")]
    name: Option<Option<String>>,
    /// Plot.
    #[field(blank, chars_max = DESCRIPTION_CHARS_MAX)]
    description: Option<Option<String>>,
    /// Year of release; 0 is none.
    #[field(example = "1927", at_most = 9999)]
    year: Option<Option<u16>>,
    /// A number such as `7.5`, or a label such as `PG-13`.
    #[field(blank, chars_max = RATING_CHARS_MAX)]
    rating: Option<Option<String>>,
    /// Genres, separated by commas.
    #[field(blank, chars_max = GENRE_CHARS_MAX)]
    genre: Option<Option<String>>,
    /// Length in seconds; 0 is none.
    duration_secs: Option<Option<u32>>,
    /// URL of the picture.
    #[field(blank, aliases = &["logo"], chars_max = LOGO_CHARS_MAX)]
    logo_url: Option<Option<WebUrl>>,
    /// Whether it is adult content.
    is_adult: Option<Option<bool>>,
    /// Hides it from everybody but admins.
    hidden: Option<bool>,
    /// Id in the catalogue of The Movie Database. Unique among the titles of one kind.
    #[field(blank, aliases = &["ext_id_a"], chars_max = EXTERNAL_ID_CHARS_MAX)]
    tmdb_id: Option<Option<String>>,
    /// Id in the catalogue of IMDb. Unique among the titles of one kind.
    #[field(blank, aliases = &["ext_id_b"], chars_max = EXTERNAL_ID_CHARS_MAX)]
    imdb_id: Option<Option<String>>,
    /// Other facts, such as `cast` and `director`, which replace those of accounts under the same names.
    custom_properties: Option<Map<String, Value>>,
}

/// Maximum number of titles of one operation.
pub(super) const MANY: usize = 10_000;

/// Selects titles and names the values for all of them.
#[derive(Clone, Debug, Body)]
#[resource(name = "TitlesEdit")]
pub(crate) struct TitlesEdit {
    /// Ids of the titles.
    #[field(items_max = MANY, example = "[7]")]
    pub(super) ids: Option<Vec<u32>>,
    /// Instead of ids: filters of the list.
    #[field(example = "{\"category\": \"Drama|movie\"}")]
    pub(super) filter: Option<Map<String, Value>>,
    /// Fields and values, as in PATCH of one title.
    #[field(example = "{\"hidden\": true}")]
    values: Map<String, Value>,
}

/// Maximum number of names in an answer.
const NAMES_MAX: usize = 1_000;

/// Result of deleting pictures of titles.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "VODLogoDeletion")]
pub(crate) struct VodLogoDeletionView {
    /// Message for people.
    #[field(example = "Deleted the pictures of 2 titles")]
    pub(super) message: String,
    /// Number of titles without a picture from now on.
    pub(super) deleted_count: usize,
    /// Names of the first 1,000 of these titles.
    pub(super) deleted_logos: Vec<String>,
    /// The handle with which the deletion can be undone; `null` if nothing was deleted.
    pub(super) undo: Option<UndoHandleView>,
}

/// Result of changing many titles.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "TitlesEdited")]
pub(crate) struct TitlesEditedView {
    /// Message for people.
    #[field(example = "Changed 2 titles")]
    message: String,
    /// Number of changed titles.
    updated_count: usize,
    /// The handle with which the change can be undone; `null` if nothing has changed.
    undo: Option<UndoHandleView>,
}

pub(super) fn routes() -> Vec<Route> {
    let known = |route: Route| route.refuses(StatusCode::NOT_FOUND, "The title does not exist.");
    vec![
        known(Route::patch("/api/vod/movies/{id}/", ADMIN, "Partially updates a film.", edit_movie)),
        known(Route::patch("/api/vod/series/{id}/", ADMIN, "Partially updates a series.", edit_series)),
        Route::post(
            "/api/vod/movies/bulk-edit/",
            ADMIN,
            "Changes films: edits, hides or marks them.",
            edit_movies,
        )
        .with_bulk_body(),
        Route::post(
            "/api/vod/series/bulk-edit/",
            ADMIN,
            "Changes series: edits, hides or marks them.",
            edit_all_series,
        )
        .with_bulk_body(),
    ]
}

async fn edit_movie(call: Call, edit: TitleEdit) -> Result<MovieView, Refusal> {
    let title = edit_one(&call, TitleKind::Movie, edit).await?;
    Ok(VodLookup::load(&call).movie(&title))
}

async fn edit_series(call: Call, edit: TitleEdit) -> Result<SeriesView, Refusal> {
    let title = edit_one(&call, TitleKind::Series, edit).await?;
    series_view(&call, &title).await
}

async fn edit_one(call: &Call, kind: TitleKind, edit: TitleEdit) -> Result<Title, Refusal> {
    let (number, author) = (call.id()?, Author::new(call)?);
    call.write(move |write| {
        let before = find(write, kind, number)?;
        let mut log = UndoLog::default();
        edit.apply(write, &before, &mut log)?;
        log.keep(write, &author, &format!("Changed \"{}\"", before.name()))?;
        find(write, kind, number)
    })
    .await
}

async fn edit_movies(call: Call, body: TitlesEdit) -> Result<TitlesEditedView, Refusal> {
    edit_many(&call, &[TitleKind::Movie], body).await
}

async fn edit_all_series(call: Call, body: TitlesEdit) -> Result<TitlesEditedView, Refusal> {
    edit_many(&call, &[TitleKind::Series], body).await
}

/// Returns the titles that a body selects, each once.
pub(super) async fn selected(
    call: &Call,
    kinds: &'static [TitleKind],
    ids: Option<Vec<u32>>,
    filter: Option<Map<String, Value>>,
) -> Result<Vec<TitleId>, Refusal> {
    let mut selected = match (ids, filter) {
        (Some(_), Some(_)) => return Err(Refusal::field("filter", "Send either ids or filter.")),
        (None, None) => return Err(FieldErrors::required("ids").into()),
        (Some(ids), None) => {
            let both = ids.iter().flat_map(|id| kinds.iter().filter_map(|kind| TitleId::new(*kind, *id)));
            both.collect()
        }
        (None, Some(filter)) => select(call, kinds, &filter).await?,
    };
    if selected.len() > MANY {
        let message =
            format!("The filter selects {} titles; at most {MANY} can be changed at once.", selected.len());
        return Err(Refusal::field("filter", message));
    }
    let mut seen = HashSet::new();
    selected.retain(|it| seen.insert(*it));
    Ok(selected)
}

async fn edit_many(
    call: &Call,
    kinds: &'static [TitleKind],
    body: TitlesEdit,
) -> Result<TitlesEditedView, Refusal> {
    let author = Author::new(call)?;
    let edit = TitleEdit::from_values(&body.values)?;
    let named = body.ids.is_some();
    let ids = selected(call, kinds, body.ids, body.filter).await?;
    if edit.has_ids() && ids.len() > 1 {
        return Err(Refusal::field("values", "Two titles cannot have the same tmdb_id or imdb_id."));
    }
    call.write(move |write| {
        let (mut log, mut updated_count) = (UndoLog::default(), 0);
        for id in ids {
            let before = match write.get::<Title>(id.key())? {
                Some(title) => title,
                None if named => return Err(Refusal::no_such("ids", id.number())),
                // Deleted meanwhile.
                None => continue,
            };
            updated_count += usize::from(edit.clone().apply(write, &before, &mut log)?);
        }
        let message = format!("Changed {updated_count} titles");
        let undo = log.keep(write, &author, &message)?;
        Ok(TitlesEditedView { message, updated_count, undo })
    })
    .await
}

/// Takes the pictures away from these titles. Unknown ids, and titles without a picture, are ignored.
pub(super) async fn remove_pictures(call: &Call, ids: Vec<TitleId>) -> Result<VodLogoDeletionView, Refusal> {
    let author = Author::new(call)?;
    let edit = TitleEdit::from_values(&Map::from_iter([("logo_url".to_owned(), "".into())]))?;
    call.write(move |write| {
        let (mut log, mut deleted_logos) = (UndoLog::default(), Vec::new());
        for id in ids {
            let before = write.get::<Title>(id.key())?.filter(|it| it.logo().is_some());
            let Some(before) = before else { continue };
            if edit.clone().apply(write, &before, &mut log)? {
                deleted_logos.push(before.name().to_owned());
            }
        }
        let deleted_count = deleted_logos.len();
        deleted_logos.truncate(NAMES_MAX);
        let message = format!("Deleted the pictures of {deleted_count} titles");
        let undo = log.keep(write, &author, &message)?;
        Ok(VodLogoDeletionView { message, deleted_count, deleted_logos, undo })
    })
    .await
}

impl TitleEdit {
    /// Reads the values of a bulk change.
    fn from_values(values: &Map<String, Value>) -> Result<Self, Refusal> {
        if values.is_empty() {
            return Err(Refusal::field("values", "Name at least one field."));
        }
        let input =
            RequestInput { body: Value::Object(values.clone()), is_partial: true, ..RequestInput::default() };
        Self::read(&input).map_err(|errors| Refusal::fields(errors.inside("values")))
    }

    fn has_ids(&self) -> bool {
        let is_set = |it: &Option<Option<String>>| matches!(it, Some(Some(id)) if !id.is_empty());
        is_set(&self.tmdb_id) || is_set(&self.imdb_id)
    }

    /// Changes a title. Returns whether that was a change.
    fn apply(self, write: &mut Write<'_>, before: &Title, log: &mut UndoLog) -> Result<bool, Refusal> {
        if let Some(properties) = &self.custom_properties {
            let bytes = serde_json::to_vec(properties).map_or(usize::MAX, |it| it.len());
            if bytes > PROPERTIES_BYTES_MAX {
                let message = format!("Ensure this field has no more than {PROPERTIES_BYTES_MAX} bytes.");
                return Err(Refusal::field("custom_properties", message));
            }
        }
        let mut after = before.clone();
        self.put_into(&mut after);
        check_ids(write, before, &after)?;
        let change = edit_title(
            write,
            before.id,
            |title| {
                title.edits = after.edits;
                title.hidden = after.hidden;
                title.custom_properties = after.custom_properties;
            },
            now_ms(),
        )?;
        let is_changed = change.is_some();
        change.into_iter().for_each(|it| log.titles_changed(it));
        Ok(is_changed)
    }

    fn put_into(self, title: &mut Title) {
        let edits = &mut title.edits;
        set(&mut edits.name, self.name);
        set(&mut edits.description, self.description);
        set(&mut edits.year, self.year);
        set(&mut edits.rating, self.rating);
        set(&mut edits.genre, self.genre);
        set(&mut edits.duration_secs, self.duration_secs);
        set(&mut edits.logo, self.logo_url.map(|it| it.map(|it| it.0)));
        set(&mut edits.is_adult, self.is_adult);
        set(&mut edits.tmdb, self.tmdb_id.map(|it| it.map(|it| plain_id(&it))));
        set(&mut edits.imdb, self.imdb_id.map(|it| it.map(|it| plain_id(&it))));
        if let Some(hidden) = self.hidden {
            title.hidden = hidden;
        }
        if let Some(properties) = self.custom_properties {
            title.custom_properties = properties;
        }
    }
}

fn set<T>(value: &mut Option<T>, sent: Option<Option<T>>) {
    if let Some(sent) = sent {
        *value = sent;
    }
}

/// Returns an id as it is stored: without ids that are none, such as `0`.
fn plain_id(id: &str) -> String {
    let mut found = FoundTitle::new("", domain::ids::VodCategoryId(0), "");
    found.facts.ids.tmdb = Some(id.to_owned());
    found.limit();
    found.facts.ids.tmdb.unwrap_or_default()
}

/// Refuses an id that another title has: these should be merged.
fn check_ids(write: &Write<'_>, before: &Title, after: &Title) -> Result<(), Refusal> {
    let kind = after.id.kind();
    for (index, field, was, id) in [
        ("tmdb", "tmdb_id", &before.edits.tmdb, &after.edits.tmdb),
        ("imdb", "imdb_id", &before.edits.imdb, &after.edits.imdb),
    ] {
        let Some(id) = id.as_ref().filter(|it| !it.is_empty() && Some(*it) != was.as_ref()) else { continue };
        let others = write.by::<Title>(index, external_id_key(kind, id))?;
        if let Some(other) = others.iter().find(|it| it.id != after.id) {
            let message = format!(
                "\"{}\" ({}) has this id. Merge the titles if they are the same.",
                other.name(),
                other.id.number()
            );
            return Err(Refusal::field(field, message));
        }
    }
    Ok(())
}
