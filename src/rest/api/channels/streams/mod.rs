//! `/api/channels/streams/`: the addresses that channels can play from.
//!
//! Lists are answered from the index in memory; of half a million streams only those of the page are read.

mod edit;
mod filters;
mod view;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use domain::account::CUSTOM_ACCOUNT;
use domain::ids::{AccountId, StreamId};
use domain::stream::Stream;
use http::StatusCode;

pub(super) use self::edit::TVG_ID_CHARS_MAX;
use self::edit::{NewStream, StreamEdit, remove};
use self::filters::{StreamFilters, index};
pub(super) use self::view::{StreamRecord, StreamViews, blocking, read};
use crate::http::reply::Refusal;
use crate::rest::frame::call::{Call, find};
use crate::rest::frame::list::{Page, Paging};
use crate::rest::frame::record::{body, query, view};
use crate::rest::frame::route::{ADMIN, Created, Done, Route, STANDARD};

view! {
    /// Ids of streams.
    StreamIds {
        /// In the order that was asked for.
        ids: Vec<StreamId> [example("[1, 2]")],
    }
}

view! {
    /// Groups of streams.
    StreamGroups {
        /// Their names, each once.
        groups: Vec<String> [example("[\"News\", \"Sports\"]")],
    }
}

view! {
    /// What streams can be filtered by.
    FilterOptions {
        /// Names of groups.
        groups: Vec<String> [example("[\"News\", \"Sports\"]")],
        /// Playlist accounts.
        m3u_accounts: Vec<AccountOption>,
    }
}

view! {
    /// A playlist account to choose.
    AccountOption {
        /// Its id.
        id: AccountId,
        /// Its name.
        name: String,
    }
}

view! {
    /// What became of a deletion.
    Deletion {
        /// For people.
        message: String [example("Deleted 2 streams")],
        /// How many there were.
        deleted_count: usize [example("2")],
    }
}

body! {
    /// Which streams.
    StreamsById {
        /// Their ids.
        ids: Vec<StreamId> [required(), items_max(IDS_MAX), example("[1, 2]")],
    }
}

body! {
    /// Which streams to delete.
    StreamsToDelete {
        /// Their ids. Those that are not there are passed over.
        ids: Vec<StreamId> [also(&["stream_ids"]), items_max(IDS_MAX), example("[1, 2]")],
    }
}

query! {
    /// Which streams to delete, for clients whose DELETE has no body.
    IdsInQuery {
        /// Their ids, with commas between them.
        ids: Vec<StreamId> [items_max(IDS_MAX)],
    }
}

/// Streams of one request.
const IDS_MAX: usize = 10_000;
/// Streams that one write deletes: each may lie in a block of its own, and a write has room for some thousands.
const DELETED_AT_ONCE: usize = 1_000;

/// Streams of a page: 50 unless asked for, at most 10,000.
type Pages = Paging<50, 10_000>;

const LIST: &str = "/api/channels/streams/";
const ONE: &str = "/api/channels/streams/{id}/";
const IDS: &str = "/api/channels/streams/ids/";
const GROUPS: &str = "/api/channels/streams/groups/";
const FILTER_OPTIONS: &str = "/api/channels/streams/filter-options/";
const BY_IDS: &str = "/api/channels/streams/by-ids/";
const BULK_DELETE: &str = "/api/channels/streams/bulk-delete/";

pub(super) fn routes() -> Vec<Route> {
    const LATE: &str = "The list is not up to date yet.";
    vec![
        Route::get(LIST, STANDARD, "Lists streams.", list).refuses(StatusCode::SERVICE_UNAVAILABLE, LATE),
        Route::post(LIST, ADMIN, "Makes a stream by hand.", create),
        Route::get(IDS, STANDARD, "Lists ids of streams.", ids)
            .refuses(StatusCode::SERVICE_UNAVAILABLE, LATE),
        Route::get(GROUPS, STANDARD, "Names the groups that streams are in.", groups),
        Route::get(FILTER_OPTIONS, STANDARD, "Says what streams can be filtered by.", filter_options),
        Route::post(BY_IDS, STANDARD, "Shows the streams of these ids.", by_ids),
        Route::post(
            BULK_DELETE,
            ADMIN,
            "Deletes streams, and takes them out of their channels.",
            bulk_delete,
        ),
        Route::delete(
            BULK_DELETE,
            ADMIN,
            "Deletes streams, and takes them out of their channels.",
            bulk_remove,
        ),
        Route::get(ONE, STANDARD, "Shows a stream.", retrieve),
        Route::put(ONE, ADMIN, "Changes a stream.", update),
        Route::patch(ONE, ADMIN, "Changes a stream.", update),
        Route::delete(ONE, ADMIN, "Deletes a stream, and takes it out of its channels.", destroy),
    ]
}

async fn list(call: Call, (filters, paging): (StreamFilters, Pages)) -> Result<Page<StreamRecord>, Refusal> {
    let (offset, limit) = paging.window();
    let wanted = filters.wanted(&call)?;
    let index = index(&call.app).await?;
    let app = call.app.clone();
    let found = blocking(move || {
        let page = wanted.find(&index, offset, limit);
        Ok((page.count, read(&app, &page.ids)?))
    });
    let (count, streams) = found.await?;
    let views = StreamViews::of(&call)?;
    paging.envelope(&call, count, streams.iter().map(|it| views.stream(it)).collect())
}

async fn ids(call: Call, filters: StreamFilters) -> Result<StreamIds, Refusal> {
    let wanted = filters.wanted(&call)?;
    let index = index(&call.app).await?;
    let ids = blocking(move || Ok(wanted.find(&index, 0, usize::MAX).ids)).await?;
    Ok(StreamIds { ids })
}

async fn groups(call: Call) -> Result<StreamGroups, Refusal> {
    Ok(StreamGroups { groups: group_names(&call).await? })
}

async fn filter_options(call: Call) -> Result<FilterOptions, Refusal> {
    let groups = group_names(&call).await?;
    let accounts = call.app.models.accounts.load();
    let accounts = accounts.iter().filter(|it| it.id != CUSTOM_ACCOUNT);
    let option =
        |it: &std::sync::Arc<domain::account::Account>| AccountOption { id: it.id, name: it.name.clone() };
    Ok(FilterOptions { groups, m3u_accounts: accounts.map(option).collect() })
}

/// The groups of the streams that a list shows when nobody filters it, each by the name that it has now.
async fn group_names(call: &Call) -> Result<Vec<String>, Refusal> {
    let models = &call.app.models;
    let accounts = models.accounts.load();
    let active = accounts.iter().filter(|it| it.is_active).map(|it| it.id).collect();
    let groups = models.groups.load();
    let index = index(&call.app).await?;
    blocking(move || {
        let names = index.groups(Some(&active)).into_iter();
        let now = |name: String| groups.one_by("name", &name).map(|it| it.name.clone()).unwrap_or(name);
        Ok(names.map(|(name, _)| now(name)).collect::<BTreeSet<_>>().into_iter().collect())
    })
    .await
}

async fn by_ids(call: Call, body: StreamsById) -> Result<Vec<StreamRecord>, Refusal> {
    let app = call.app.clone();
    let streams = blocking(move || read(&app, &body.ids.unwrap_or_default())).await?;
    let views = StreamViews::of(&call)?;
    Ok(streams.iter().map(|it| views.stream(it)).collect())
}

async fn retrieve(call: Call) -> Result<StreamRecord, Refusal> {
    let (id, app) = (StreamId(call.id()?), call.app.clone());
    let streams = blocking(move || read(&app, &[id])).await?;
    let stream = streams.first().ok_or_else(Refusal::unknown::<Stream>)?;
    Ok(StreamViews::of(&call)?.stream(stream))
}

async fn create(call: Call, new: NewStream) -> Result<Created<StreamRecord>, Refusal> {
    let stream = call.write(move |write| new.make(write)).await?;
    Ok(Created(StreamViews::of(&call)?.stream(&stream)))
}

async fn update(call: Call, edit: StreamEdit) -> Result<StreamRecord, Refusal> {
    let id = call.id()?;
    let stream = call
        .write(move |write| {
            let stream = find::<Stream>(write, id)?;
            edit.apply(write, stream)
        })
        .await?;
    Ok(StreamViews::of(&call)?.stream(&stream))
}

async fn destroy(call: Call) -> Result<Done, Refusal> {
    let id = call.id()?;
    call.write(move |write| match remove(write, &[StreamId(id)])? {
        0 => Err(Refusal::unknown::<Stream>()),
        _ => Ok(Done),
    })
    .await
}

async fn bulk_delete(call: Call, body: StreamsToDelete) -> Result<Deletion, Refusal> {
    let ids = body.ids.ok_or_else(no_ids)?;
    let deleted_count = remove_all(&call, ids).await?;
    Ok(Deletion { message: format!("Deleted {deleted_count} streams"), deleted_count })
}

async fn bulk_remove(call: Call, (query, body): (IdsInQuery, StreamsToDelete)) -> Result<Done, Refusal> {
    remove_all(&call, body.ids.or(query.ids).ok_or_else(no_ids)?).await?;
    Ok(Done)
}

fn no_ids() -> Refusal {
    Refusal::field("ids", "This field is required.")
}

/// Not one commit when there are many. What is gone already is passed over, so asking once more finishes it.
async fn remove_all(call: &Call, ids: Vec<StreamId>) -> Result<usize, Refusal> {
    let ids: Vec<StreamId> = ids.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let mut n_removed = 0;
    for some in ids.chunks(DELETED_AT_ONCE) {
        let some = some.to_vec();
        n_removed += call.write(move |write| remove(write, &some)).await?;
    }
    Ok(n_removed)
}
