//! Merges and splits titles, with undo.

use std::collections::BTreeSet;

use actors::now_ms;
use domain::vod::{RelationId, Title, TitleId, TitleKind};
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::reply::Refusal;
use storage::{Write, merge_titles, split_title};

use super::view::unknown;
use crate::api::channels::undo::{Author, UndoHandleView, UndoLog};

/// Maximum number of titles or relations of one request.
const MANY: usize = 100;

/// Titles that are the same as that of the path.
#[derive(Clone, Debug, Body)]
#[resource(name = "TitleMerge")]
pub(crate) struct TitleMerge {
    /// Ids of titles of the same kind. Their relations move to the title of the path, and their ids lead to it.
    #[field(items_max = MANY, example = "[8]")]
    ids: Vec<u32>,
}

/// Relations that belong to another title.
#[derive(Clone, Debug, Body)]
#[resource(name = "TitleSplit")]
pub(crate) struct TitleSplit {
    /// Ids of relations of the title. They become a title of their own, and stay there.
    #[field(items_max = MANY, example = "[21]")]
    relation_ids: Vec<u32>,
}

/// Result of a merge or a split.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "TitleRegroup")]
pub(crate) struct RegroupView {
    /// Message for people.
    #[field(example = "Merged 1 film into \"Heat\"")]
    message: String,
    /// Id of the title of the path.
    id: u32,
    /// Id of the title that was split off; `null` for a merge.
    split_id: Option<u32>,
    /// The handle with which the operation can be undone.
    undo: Option<UndoHandleView>,
}

pub(super) fn routes() -> Vec<Route> {
    const MERGE: &str = "Merges titles into one. Their ids stay valid.";
    const SPLIT: &str = "Creates a title of relations of another.";
    let known = |route: Route| route.refuses(StatusCode::NOT_FOUND, "A title does not exist.");
    vec![
        known(Route::post("/api/vod/movies/{id}/merge/", ADMIN, MERGE, merge_movies)),
        known(Route::post("/api/vod/series/{id}/merge/", ADMIN, MERGE, merge_series)),
        known(Route::post("/api/vod/movies/{id}/split/", ADMIN, SPLIT, split_movie)),
        known(Route::post("/api/vod/series/{id}/split/", ADMIN, SPLIT, split_series)),
    ]
}

async fn merge_movies(call: Call, body: TitleMerge) -> Result<RegroupView, Refusal> {
    merge(&call, TitleKind::Movie, body).await
}

async fn merge_series(call: Call, body: TitleMerge) -> Result<RegroupView, Refusal> {
    merge(&call, TitleKind::Series, body).await
}

async fn merge(call: &Call, kind: TitleKind, body: TitleMerge) -> Result<RegroupView, Refusal> {
    let (number, author) = (call.id()?, Author::new(call)?);
    call.write(move |write| {
        let into = find(write, kind, number)?;
        let mut ids = BTreeSet::new();
        for number in body.ids {
            ids.insert(find(write, kind, number)?.id);
        }
        ids.remove(&into.id);
        if ids.is_empty() {
            return Err(Refusal::field("ids", "Name at least one other title."));
        }
        let mut log = UndoLog::default();
        for from in &ids {
            let change = merge_titles(write, into.id, *from, now_ms())?;
            log.titles_changed(change.ok_or_else(|| unknown(kind))?);
        }
        let what = if kind == TitleKind::Movie { "film" } else { "series" };
        let plural = if ids.len() == 1 || kind == TitleKind::Series { "" } else { "s" };
        let message = format!("Merged {} {what}{plural} into \"{}\"", ids.len(), into.name());
        let undo = log.keep(write, &author, &message)?;
        Ok(RegroupView { message, id: into.id.number(), split_id: None, undo })
    })
    .await
}

async fn split_movie(call: Call, body: TitleSplit) -> Result<RegroupView, Refusal> {
    split(&call, TitleKind::Movie, body).await
}

async fn split_series(call: Call, body: TitleSplit) -> Result<RegroupView, Refusal> {
    split(&call, TitleKind::Series, body).await
}

async fn split(call: &Call, kind: TitleKind, body: TitleSplit) -> Result<RegroupView, Refusal> {
    let (number, author) = (call.id()?, Author::new(call)?);
    call.write(move |write| {
        let title = find(write, kind, number)?;
        let relations: Vec<RelationId> = body.relation_ids.into_iter().map(RelationId).collect();
        if let Some(wrong) = relations.iter().find(|it| title.relation(**it).is_none()) {
            return Err(Refusal::no_such("relation_ids", wrong));
        }
        let split = split_title(write, title.id, &relations, now_ms())?;
        let (off, change) = split.ok_or_else(|| {
            Refusal::field("relation_ids", "Name at least one relation, and leave at least one.")
        })?;
        let mut log = UndoLog::default();
        log.titles_changed(change);
        let count = if relations.len() == 1 {
            "1 relation".to_owned()
        } else {
            format!("{} relations", relations.len())
        };
        let message = format!("Split {count} of \"{}\" off", title.name());
        let undo = log.keep(write, &author, &message)?;
        Ok(RegroupView { message, id: title.id.number(), split_id: Some(off.number()), undo })
    })
    .await
}

/// Returns the title with this number, or the one that it was merged into.
pub(super) fn find(write: &Write<'_>, kind: TitleKind, number: u32) -> Result<Title, Refusal> {
    let id = TitleId::new(kind, number).ok_or_else(|| unknown(kind))?;
    let found = match write.get::<Title>(id.key())? {
        Some(title) => Some(title),
        None => write.by::<Title>("alias", id.key().to_be_bytes())?.into_iter().next(),
    };
    found.ok_or_else(|| unknown(kind))
}
