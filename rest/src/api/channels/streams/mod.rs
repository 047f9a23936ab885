//! `/api/channels/streams/`: the sources that channels can play from.
//!
//! Lists come from the index in memory; only the streams of the page are read from the store.

mod delete;
mod edit;
mod filters;
mod health;
mod regex_preview;
mod view;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::account::{Account, CUSTOM_ACCOUNT};
use domain::ids::{AccountId, StreamId};
use domain::stream::Stream;
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::route::{Created, Route};
use serde::Serialize;
use server::reply::Refusal;

pub(super) use self::delete::compare_whole_lists;
pub(super) use self::edit::TVG_ID_CHARS_MAX;
use self::edit::{NewStream, StreamEdit};
pub(super) use self::filters::select;
use self::filters::{IDS_MAX, StreamFilters, index};
pub(super) use self::health::{StreamStatsView, health_of};
pub(in crate::api) use self::view::blocking;
pub(super) use self::view::{StreamLookup, StreamView, read};
use crate::api::channels::groups::Contents;
use crate::context::RestCall;
use crate::list::{Page, Paging};
use crate::record::{Lookup, RecordCall, Render, find};
use crate::seen::SeenThings;

/// Ids of streams.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct StreamIdsView {
    /// Ids in the requested order.
    #[field(example = "[1, 2]")]
    ids: Vec<StreamId>,
}

/// Groups of streams.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct StreamGroupsView {
    /// Names of the groups, each once.
    #[field(example = "[\"News\", \"Sports\"]")]
    groups: Vec<String>,
}

/// Values for filters of streams.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct FilterOptionsView {
    /// Names of groups.
    #[field(example = "[\"News\", \"Sports\"]")]
    groups: Vec<String>,
    /// Playlist accounts.
    m3u_accounts: Vec<AccountOptionView>,
}

/// A playlist account as a filter value.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct AccountOptionView {
    /// Id of the account.
    id: AccountId,
    /// Name of the account.
    name: String,
}

/// Selects streams.
#[derive(Clone, Debug, Body)]
pub(crate) struct StreamsById {
    /// Ids of the streams.
    #[field(items_max = IDS_MAX, example = "[1, 2]")]
    ids: Vec<StreamId>,
}

/// 50 streams per page by default, at most 10,000.
type Pages = Paging<50, 10_000>;

const LIST: &str = "/api/channels/streams/";
const ONE: &str = "/api/channels/streams/{id}/";
const IDS: &str = "/api/channels/streams/ids/";
const GROUPS: &str = "/api/channels/streams/groups/";
const FILTER_OPTIONS: &str = "/api/channels/streams/filter-options/";
const REGEX_PREVIEW: &str = "/api/channels/streams/regex-preview/";
const BY_IDS: &str = "/api/channels/streams/by-ids/";
const BULK_DELETE: &str = "/api/channels/streams/bulk-delete/";

pub(super) fn routes() -> Vec<Route> {
    const LATE: &str = "The index is not up to date yet.";
    vec![
        Route::get(LIST, STANDARD, "Lists streams.", list).refuses(StatusCode::SERVICE_UNAVAILABLE, LATE),
        Route::post(LIST, ADMIN, "Creates a stream.", create),
        Route::get(IDS, STANDARD, "Lists ids of streams.", ids)
            .refuses(StatusCode::SERVICE_UNAVAILABLE, LATE),
        Route::get(GROUPS, STANDARD, "Lists the names of the groups of streams.", groups),
        Route::get(
            FILTER_OPTIONS,
            STANDARD,
            "Lists the values by which streams can be filtered.",
            filter_options,
        ),
        Route::get(
            REGEX_PREVIEW,
            STANDARD,
            "Returns the effect of patterns on the names of streams.",
            regex_preview::preview,
        )
        .refuses(StatusCode::SERVICE_UNAVAILABLE, LATE),
        Route::post(BY_IDS, STANDARD, "Lists the streams with the given ids.", by_ids)
            .that_reads()
            .with_bulk_body(),
        Route::post(
            BULK_DELETE,
            ADMIN,
            "Deletes streams and removes them from their channels.",
            delete::bulk_delete,
        )
        .with_bulk_body(),
        Route::delete(
            BULK_DELETE,
            ADMIN,
            "Deletes streams and removes them from their channels.",
            delete::bulk_remove,
        )
        .with_bulk_body(),
        Route::get(ONE, STANDARD, "Returns a stream.", retrieve),
        Route::put(ONE, ADMIN, "Updates a stream.", update),
        Route::patch(ONE, ADMIN, "Partially updates a stream.", update),
        Route::delete(ONE, ADMIN, "Deletes a stream and removes it from its channels.", delete::delete),
    ]
}

async fn list(call: Call, (filters, paging): (StreamFilters, Pages)) -> Result<Page<StreamView>, Refusal> {
    let (offset, limit) = paging.window();
    let wanted = filters.wanted(&call)?;
    let index = index(call.rest()).await?;
    let context = Arc::clone(call.rest());
    let found = blocking(move || {
        let page = wanted.find(&index, offset, limit);
        Ok((page.count, read(&context, &page.ids)?))
    });
    let (count, streams) = found.await?;
    let lookup = StreamLookup::new(&call, &streams)?;
    paging.envelope(&call, count, streams.iter().map(|it| it.view(&lookup)).collect())
}

async fn ids(call: Call, filters: StreamFilters) -> Result<StreamIdsView, Refusal> {
    let wanted = filters.wanted(&call)?;
    let index = index(call.rest()).await?;
    let ids = blocking(move || Ok(wanted.find(&index, 0, usize::MAX).ids)).await?;
    Ok(StreamIdsView { ids })
}

async fn groups(call: Call) -> Result<StreamGroupsView, Refusal> {
    Ok(StreamGroupsView { groups: group_names(&call).await? })
}

async fn filter_options(call: Call) -> Result<FilterOptionsView, Refusal> {
    let groups = group_names(&call).await?;
    let accounts = call.rest().models.accounts.load();
    let accounts = accounts.iter().filter(|it| it.id != CUSTOM_ACCOUNT);
    let option = |it: &Arc<Account>| AccountOptionView { id: it.id, name: it.name.clone() };
    Ok(FilterOptionsView { groups, m3u_accounts: accounts.map(option).collect() })
}

/// Returns the current names of the groups of streams of active accounts.
async fn group_names(call: &Call) -> Result<Vec<String>, Refusal> {
    let models = &call.rest().models;
    let accounts = models.accounts.load();
    let active = accounts.iter().filter(|it| it.is_active).map(|it| it.id).collect();
    let (groups, contents) = (models.groups.load(), Contents::load(call)?);
    let index = index(call.rest()).await?;
    blocking(move || {
        let current = |name: String| match groups.one_by("name", &name) {
            Some(group) => contents.shows(group).then(|| group.name.clone()),
            None => contents.shows_unused().then_some(name),
        };
        let names = index.groups(Some(&active)).into_iter();
        Ok(names.filter_map(|(name, _)| current(name)).collect::<BTreeSet<_>>().into_iter().collect())
    })
    .await
}

async fn by_ids(call: Call, body: StreamsById) -> Result<Vec<StreamView>, Refusal> {
    let context = Arc::clone(call.rest());
    let (seen, channels) = (SeenThings::new(&call), call.rest().models.channels.load());
    let mut ids = body.ids;
    ids.retain(|it| seen.shows_stream(&channels, *it));
    let streams = blocking(move || read(&context, &ids)).await?;
    let lookup = StreamLookup::new(&call, &streams)?;
    Ok(streams.iter().map(|it| it.view(&lookup)).collect())
}

async fn retrieve(call: Call) -> Result<StreamView, Refusal> {
    let (id, context) = (StreamId(call.id()?), Arc::clone(call.rest()));
    if !SeenThings::new(&call).shows_stream(&context.models.channels.load(), id) {
        return Err(Refusal::unknown::<Stream>());
    }
    let streams = blocking(move || read(&context, &[id])).await?;
    let stream = streams.first().ok_or_else(Refusal::unknown::<Stream>)?;
    Ok(stream.view(&StreamLookup::new(&call, &streams)?))
}

async fn create(call: Call, new: NewStream) -> Result<Created<StreamView>, Refusal> {
    let stream = call.write(move |write| new.create(write)).await?;
    Ok(Created(call.render(&stream)?))
}

async fn update(call: Call, edit: StreamEdit) -> Result<StreamView, Refusal> {
    let id = call.id()?;
    let stream = call
        .write(move |write| {
            let stream = find::<Stream>(write, id)?;
            edit.apply(write, stream)
        })
        .await?;
    call.render(&stream)
}
