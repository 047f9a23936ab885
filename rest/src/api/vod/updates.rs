//! Refreshes of many accounts, and updates of the details of many titles.

use std::collections::HashSet;

use actors::{DetailsUpdate, DetailsUpdateStart};
use domain::account::Account;
use domain::ids::AccountId;
use domain::vod::{TitleId, TitleKind};
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::{Accepted, Route};
use route_frame::value::Time;
use serde::Serialize;
use serde_json::{Map, Value};
use server::reply::Refusal;
use services::titles::reading;
use uuid::Uuid;

use super::edit::{MANY, selected};
use crate::api::m3u::vod::start_refresh;
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};

/// Selects accounts whose films and series are refreshed.
#[derive(Clone, Debug, Body)]
#[resource(name = "BulkRefreshVOD")]
pub(crate) struct AccountSelection {
    /// Ids of playlist accounts; by default all active accounts with a panel that import films and series.
    #[field(items_max = 1_000, example = "[2]")]
    m3u_accounts: Option<Vec<AccountId>>,
    /// Accepts lists from which most known titles are missing.
    confirm: Option<bool>,
}

/// The refresh of one account.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "AccountRefreshVOD")]
pub(crate) struct AccountRefreshView {
    /// Id of the account.
    #[field(example = "2")]
    m3u_account: AccountId,
    /// Id of the refresh, which may have been running already; `null` if the account cannot be refreshed.
    task_id: Option<Uuid>,
    /// Message for people.
    #[field(example = "The refresh of the films and series of \"Provider\" has started.")]
    message: String,
}

/// The refreshes of accounts that were started.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "BulkRefreshVODStarted")]
pub(crate) struct RefreshesView {
    /// Message for people.
    #[field(example = "Refreshing the films and series of 2 accounts.")]
    message: String,
    /// The accounts in the order of the request.
    accounts: Vec<AccountRefreshView>,
}

/// Selects titles whose details are updated.
#[derive(Clone, Debug, Body)]
#[resource(name = "BulkUpdateDetails")]
pub(crate) struct TitleSelection {
    /// Ids of the titles.
    #[field(items_max = MANY, example = "[7]")]
    ids: Option<Vec<u32>>,
    /// Instead of ids: filters of the list.
    #[field(example = "{\"category\": \"Drama|movie\"}")]
    filter: Option<Map<String, Value>>,
}

/// An update of details that was started.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "DetailsUpdateStarted")]
pub(crate) struct UpdateStartedView {
    /// Id of the update; `details-updates/` lists its progress.
    task_id: Uuid,
    /// Message for people.
    #[field(example = "The details of 2 titles are being updated.")]
    message: String,
    /// Number of titles that a panel is asked about. Other titles have no active account with a panel.
    titles: usize,
}

/// The progress of an update of details since the start of the gateway.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "DetailsUpdate")]
pub(crate) struct UpdateView {
    /// Id of the update.
    task_id: Uuid,
    /// Number of questions to panels: one for a film, and one for each account that offers a series.
    #[field(example = "20")]
    requests: usize,
    /// Number of answers that were stored.
    #[field(example = "11")]
    done: usize,
    /// Number of questions without a useful answer.
    #[field(example = "1")]
    failed: usize,
    /// Number of questions that are still to be asked.
    #[field(example = "8")]
    left: usize,
    /// Whether the update has ended.
    is_done: bool,
    /// The last failure for people, without credentials; empty if there was none.
    message: String,
    /// When the update was requested.
    started_at: Time,
}

pub(super) fn routes() -> Vec<Route> {
    const UPDATE: &str = "Updates the details of titles, one after the other, and the episodes of series.";
    let limited = |route: Route| {
        route.with_bulk_body().refuses(StatusCode::SERVICE_UNAVAILABLE, "Too many updates are running.")
    };
    vec![
        Route::post(
            "/api/vod/bulk-refresh/",
            ADMIN,
            "Refreshes the films and series of panel accounts.",
            refresh,
        )
        .with_bulk_body(),
        limited(Route::post("/api/vod/movies/bulk-update-details/", ADMIN, UPDATE, update_movies)),
        limited(Route::post("/api/vod/series/bulk-update-details/", ADMIN, UPDATE, update_series)),
        Route::get(
            "/api/vod/details-updates/",
            ADMIN,
            "Lists the running and recently finished updates of details.",
            list,
        ),
    ]
}

async fn refresh(call: Call, body: AccountSelection) -> Result<Accepted<RefreshesView>, Refusal> {
    let accounts = call.rest().models.accounts.load();
    let wanted = match body.m3u_accounts {
        Some(ids) => ids,
        None => {
            let is_meant = |it: &Account| it.is_active && it.enable_vod && it.list.lists_titles();
            accounts.iter().filter(|it| is_meant(it)).map(|it| it.id).collect()
        }
    };
    // All or none.
    if let Some(unknown) = wanted.iter().find(|it| accounts.get(it.0).is_none()) {
        return Err(Refusal::no_such("m3u_accounts", unknown));
    }
    let confirm = body.confirm.unwrap_or(false);
    let mut seen = HashSet::new();
    let named = wanted.iter().filter(|it| seen.insert(**it)).filter_map(|it| accounts.get(it.0));
    let rows = named.map(|account| {
        let (message, task_id) = match start_refresh(&call, account, confirm) {
            Ok((message, job)) => (message, Some(job)),
            Err(reason) => (reason.to_owned(), None),
        };
        AccountRefreshView { m3u_account: account.id, task_id, message }
    });
    let accounts: Vec<AccountRefreshView> = rows.collect();
    let n_running = accounts.iter().filter(|it| it.task_id.is_some()).count();
    let message = format!("Refreshing the films and series of {n_running} accounts.");
    Ok(Accepted(RefreshesView { message, accounts }))
}

async fn update_movies(call: Call, body: TitleSelection) -> Result<Accepted<UpdateStartedView>, Refusal> {
    update(&call, &[TitleKind::Movie], body).await
}

async fn update_series(call: Call, body: TitleSelection) -> Result<Accepted<UpdateStartedView>, Refusal> {
    update(&call, &[TitleKind::Series], body).await
}

async fn update(
    call: &Call,
    kinds: &'static [TitleKind],
    body: TitleSelection,
) -> Result<Accepted<UpdateStartedView>, Refusal> {
    let is_named = body.ids.is_some();
    let titles = existing(call, selected(call, kinds, body.ids, body.filter).await?, is_named).await?;
    let started = call.rest().imports.vod_importer.update_details(titles).await;
    match started.map_err(|error| Refusal::unavailable(error.sentence()))? {
        DetailsUpdateStart::Started { update, n_titles } => Ok(Accepted(UpdateStartedView {
            task_id: update.job,
            message: format!("The details of {n_titles} titles are being updated."),
            titles: n_titles,
        })),
        DetailsUpdateStart::Busy => {
            Err(Refusal::unavailable("Too many updates of details are running.").retry_soon())
        }
    }
}

/// Returns the titles with these ids, or those that they were merged into. `is_named`: each of them must exist.
async fn existing(call: &Call, ids: Vec<TitleId>, is_named: bool) -> Result<Vec<TitleId>, Refusal> {
    let titles = call.rest().models.vod.clone();
    let found = reading(move || {
        let read = |it: TitleId| Ok((it, titles.get(it)?.map(|it| it.id)));
        ids.into_iter().map(read).collect::<Result<Vec<_>, storage::Error>>()
    });
    let (mut existing, mut seen) = (Vec::new(), HashSet::new());
    for (asked, title) in found.await? {
        match title {
            Some(title) if seen.insert(title) => existing.push(title),
            None if is_named => return Err(Refusal::no_such("ids", asked.number())),
            Some(_) | None => {}
        }
    }
    Ok(existing)
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<UpdateView>, Refusal> {
    paging.page_from(&call, call.rest().imports.vod_importer.updates().into_iter().map(view).collect())
}

fn view(update: DetailsUpdate) -> UpdateView {
    UpdateView {
        task_id: update.job,
        requests: update.n_questions,
        done: update.n_done,
        failed: update.n_failed,
        left: update.n_left(),
        is_done: update.is_done(),
        message: update.message,
        started_at: Time(update.started_at),
    }
}
