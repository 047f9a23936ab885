//! `/api/vod/clean-stale/`: removes what is missing from the latest lists of accounts.

use std::collections::HashSet;

use actors::now_ms;
use domain::ids::AccountId;
use domain::vod::{Episode, Relation, RelationId, Title, TitleDetails, TitleId, TitleKind};
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use services::titles::reading;
use storage::Write;

use super::edit::{MANY, selected};
use crate::choice::Named;
use crate::context::RestCall;

/// Selects stale relations.
#[derive(Clone, Debug, Body)]
#[resource(name = "CleanStale")]
pub(crate) struct StaleSelection {
    /// Kind of the titles; both by default.
    content_type: Option<Named<TitleKind>>,
    /// Ids of playlist accounts; all by default.
    #[field(items_max = 1_000)]
    m3u_accounts: Option<Vec<AccountId>>,
    /// Ids of titles of `content_type`; all by default.
    #[field(items_max = MANY, example = "[7]")]
    ids: Option<Vec<u32>>,
    /// Instead of ids: filters of the list.
    #[field(example = "{\"category\": \"Drama|movie\"}")]
    filter: Option<Map<String, Value>>,
}

/// Result of a removal of stale relations.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "StaleCleaned")]
pub(crate) struct CleanedView {
    /// Message for people.
    #[field(example = "Removed 3 relations and 2 titles")]
    message: String,
    /// Number of removed relations.
    removed_relations: usize,
    /// Number of removed titles: those that no account offers any longer.
    removed_titles: usize,
    /// Whether more are left, because one request removes those of 10,000 titles at most.
    has_more: bool,
}

pub(super) fn routes() -> Vec<Route> {
    let summary =
        "Removes relations that are missing from the latest lists, and titles that no account offers.";
    vec![Route::post("/api/vod/clean-stale/", ADMIN, summary, clean_stale).with_bulk_body()]
}

async fn clean_stale(call: Call, body: StaleSelection) -> Result<CleanedView, Refusal> {
    let accounts = call.rest().models.accounts.load();
    let wanted: Option<HashSet<AccountId>> = body.m3u_accounts.map(HashSet::from_iter);
    if let Some(unknown) = wanted.iter().flatten().find(|it| accounts.get(it.0).is_none()) {
        return Err(Refusal::no_such("m3u_accounts", unknown));
    }
    let kind = body.content_type.map(|it| it.0);
    if body.ids.is_some() && kind.is_none() {
        return Err(FieldErrors::required("content_type").into());
    }
    let kinds: &[TitleKind] = match kind {
        None => &TitleKind::ALL,
        Some(TitleKind::Movie) => &[TitleKind::Movie],
        Some(TitleKind::Series) => &[TitleKind::Series],
    };
    let selected: Option<HashSet<TitleId>> = match (body.ids, body.filter) {
        (None, None) => None,
        (ids, filter) => Some(selected(&call, kinds, ids, filter).await?.into_iter().collect()),
    };
    let is_meant = move |it: &Relation| {
        it.is_stale() && wanted.as_ref().is_none_or(|wanted| wanted.contains(&it.account))
    };
    let titles = call.rest().models.vod.clone();
    let (ids, is_meant) = reading(move || {
        let mut ids: Vec<TitleId> = Vec::new();
        titles.while_each(|title| {
            let is_selected = kinds.contains(&title.id.kind())
                && selected.as_ref().is_none_or(|selected| selected.contains(&title.id));
            if is_selected && title.relations.iter().any(&is_meant) {
                ids.push(title.id);
            }
            ids.len() <= MANY
        })?;
        Ok((ids, is_meant))
    })
    .await?;
    let has_more = ids.len() > MANY;
    call.write(move |write| {
        let (mut removed_relations, mut removed_titles) = (0, 0);
        for id in ids.into_iter().take(MANY) {
            let (n, is_gone) = clean(write, id, &is_meant)?;
            removed_relations += n;
            removed_titles += usize::from(is_gone);
        }
        let message = format!("Removed {removed_relations} relations and {removed_titles} titles");
        Ok(CleanedView { message, removed_relations, removed_titles, has_more })
    })
    .await
}

/// Removes relations of a title with their details and episodes, and the title without any. Returns the number of removed
/// relations, and whether the title is gone.
fn clean(
    write: &mut Write<'_>,
    id: TitleId,
    is_meant: impl Fn(&Relation) -> bool,
) -> Result<(usize, bool), Refusal> {
    let Some(mut title) = write.get::<Title>(id.key())? else { return Ok((0, false)) };
    let removed: HashSet<RelationId> =
        title.relations.iter().filter(|it| is_meant(it)).map(|it| it.id).collect();
    if removed.is_empty() {
        return Ok((0, false));
    }
    for relation in &removed {
        write.remove::<TitleDetails>(relation.0)?;
    }
    if id.kind() == TitleKind::Series {
        for mut episode in write.by::<Episode>("series", id.key().to_be_bytes())? {
            let n_before = episode.offers.len();
            episode.offers.retain(|it| !removed.contains(&it.relation));
            if episode.offers.is_empty() {
                write.remove::<Episode>(episode.id.0)?;
            } else if episode.offers.len() != n_before {
                write.put(&episode)?;
            }
        }
    }
    title.relations.retain(|it| !removed.contains(&it.id));
    let is_gone = title.relations.is_empty();
    if is_gone {
        write.remove::<Title>(id.key())?;
    } else {
        title.updated_at = now_ms();
        write.put(&title)?;
    }
    Ok((removed.len(), is_gone))
}
