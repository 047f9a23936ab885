//! `/api/m3u/refresh/`: starts refreshes of playlists and reports their progress.

use actors::{AskError, RefreshPhase, RefreshStart, RefreshStatus};
use domain::account::{Account, PlaylistLocation, RefreshOutcome, RefreshRecord};
use domain::ids::AccountId;
use http::StatusCode;
use resource_derive::{Body, Query, View};
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::route::{Accepted, Route};
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use tracing::warn;
use uuid::Uuid;

use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};
use crate::text_code::TextCodeView;

/// Options of a refresh.
#[derive(Debug, Query)]
pub(crate) struct Options {
    /// Accepts a list from which many known streams are missing.
    confirm: Option<bool>,
}

/// Options of a refresh.
#[derive(Clone, Debug, Body)]
pub(crate) struct RefreshOptions {
    /// Accepts a list from which many known streams are missing.
    confirm: Option<bool>,
}

/// A refresh that was started.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RefreshStartedView {
    /// Always `true`; the outcome is reported later.
    success: bool,
    /// Message for people.
    #[field(example = "The refresh of \"Provider\" has started.")]
    message: String,
    /// Id of the account.
    #[field(example = "2")]
    account: AccountId,
    /// Id of this refresh. `/api/m3u/refresh/{account}/` reports its outcome.
    task_id: Uuid,
}

/// Refreshes that were started.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RefreshesStartedView {
    /// Always `true`; the outcomes are reported later.
    success: bool,
    /// Message for people.
    #[field(example = "2 refreshes have started.")]
    message: String,
    /// One task for each active account with a playlist.
    tasks: Vec<RefreshTaskView>,
}

/// One of several refreshes.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RefreshTaskView {
    /// Id of the account.
    #[field(example = "2")]
    account: AccountId,
    /// Id of the refresh.
    task_id: Uuid,
}

/// Progress of the refresh of an account, or the result of the last one.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct M3URefreshView {
    /// Id of the account.
    #[field(example = "2")]
    account: AccountId,
    /// Name of the account.
    #[field(example = "Provider")]
    account_name: String,
    /// Id of the running refresh, or of the last one since the start of the gateway.
    task_id: Option<Uuid>,
    /// Current phase; `done` after the end, `null` if the account was never refreshed.
    #[field(example = "parsing")]
    phase: Option<Named<RefreshPhase>>,
    /// Number of bytes of the playlist read so far, uncompressed.
    #[field(example = "1048576")]
    bytes: u64,
    /// Number of entries found so far.
    #[field(example = "5000")]
    entries: u64,
    /// Number of new streams.
    #[field(example = "12")]
    streams_created: u64,
    /// Number of changed streams.
    #[field(example = "3")]
    streams_updated: u64,
    /// Number of streams that are missing from the new playlist.
    #[field(example = "1")]
    streams_gone: u64,
    /// Outcome of the refresh. `pending_confirmation`: many known streams are missing from the list, and nothing was
    /// changed. `null` during a refresh and after one that the shutdown of the gateway interrupted.
    #[field(example = "success")]
    outcome: Option<Named<RefreshOutcome>>,
    /// The outcome for people, without credentials.
    message: Option<String>,
    /// The code of `message`, if it has one.
    message_code: Option<TextCodeView>,
    /// When the refresh was requested.
    started_at: Option<Time>,
    /// When the last recorded refresh ended.
    tried_at: Option<Time>,
    /// When the last successful refresh ended.
    good_at: Option<Time>,
    /// Number of entries of the last good list.
    #[field(example = "5000")]
    good_entries: u64,
}

choice!(RefreshPhase {
    Waiting = "waiting",
    Fetching = "fetching",
    Parsing = "parsing",
    Comparing = "comparing",
    Writing = "writing",
    Done = "done",
});

choice!(RefreshOutcome { Success = "success", Error = "error", AwaitingConfirmation = "pending_confirmation" });

const ALL: &str = "/api/m3u/refresh/";
const ONE: &str = "/api/m3u/refresh/{id}/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(ALL, STANDARD, "Lists the progress of the refreshes of all accounts.", list),
        Route::post(ALL, ADMIN, "Refreshes all active accounts that have a playlist.", refresh_all)
            .refuses(StatusCode::SERVICE_UNAVAILABLE, "The gateway is stopping."),
        Route::get(ONE, STANDARD, "Returns the progress of the refresh of an account.", retrieve),
        Route::post(ONE, ADMIN, "Refreshes an account.", refresh)
            .refuses(StatusCode::BAD_REQUEST, "The account is inactive, or has no playlist."),
    ]
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<M3URefreshView>, Refusal> {
    let accounts = call.rest().models.accounts.load();
    let refreshes = call.rest().models.refreshes.load();
    let accounts: Vec<_> = accounts.iter().collect();
    paging.render_with(&call, &accounts, |it| {
        let progress = call.rest().imports.importer.progress_of(it.id);
        view(it, progress, refreshes.get(it.id.0).map(|it| &**it))
    })
}

async fn retrieve(call: Call) -> Result<M3URefreshView, Refusal> {
    let id = call.id()?;
    // In this order, because a refresh that has ended in memory is in the store already.
    let progress = call.rest().imports.importer.progress_of(AccountId(id));
    let accounts = call.rest().models.accounts.load();
    let account = accounts.get(id).ok_or_else(Refusal::unknown::<Account>)?;
    let refreshes = call.rest().models.refreshes.load();
    Ok(view(account, progress, refreshes.get(id).map(|it| &**it)))
}

async fn refresh(
    call: Call,
    (options, body): (Options, RefreshOptions),
) -> Result<Accepted<RefreshStartedView>, Refusal> {
    let id = call.id()?;
    let name = {
        let accounts = call.rest().models.accounts.load();
        accounts.get(id).ok_or_else(Refusal::unknown::<Account>)?.name.clone()
    };
    let confirm = options.confirm == Some(true) || body.confirm == Some(true);
    let account = AccountId(id);
    let started = call.rest().imports.importer.refresh(account, confirm).await.map_err(stopping)?;
    let (message, task_id) = match started {
        RefreshStart::Started { job } => (format!("The refresh of \"{name}\" has started."), job),
        RefreshStart::AlreadyRunning { job } => {
            (format!("The refresh of \"{name}\" is already running."), job)
        }
        RefreshStart::NoSuchAccount => return Err(Refusal::unknown::<Account>()),
        RefreshStart::Inactive => return Err(Refusal::bad_request("The account is not active.")),
        RefreshStart::NoList => return Err(Refusal::bad_request("The account has no list.")),
    };
    Ok(Accepted(RefreshStartedView { success: true, message, account, task_id }))
}

async fn refresh_all(call: Call) -> Result<Accepted<RefreshesStartedView>, Refusal> {
    let accounts = call.rest().models.accounts.load();
    let mut tasks = Vec::new();
    for account in accounts.iter().filter(|it| it.is_active && it.list != PlaylistLocation::None) {
        let account = account.id;
        match call.rest().imports.importer.refresh(account, false).await.map_err(stopping)? {
            RefreshStart::Started { job } | RefreshStart::AlreadyRunning { job } => {
                tasks.push(RefreshTaskView { account, task_id: job });
            }
            // The account changed in the meantime.
            RefreshStart::NoSuchAccount | RefreshStart::Inactive | RefreshStart::NoList => {}
        }
    }
    let message = match tasks.len() {
        0 => "No active account has a playlist.".to_owned(),
        1 => "1 refresh has started.".to_owned(),
        n => format!("{n} refreshes have started."),
    };
    Ok(Accepted(RefreshesStartedView { success: true, message, tasks }))
}

/// Starts a refresh after a change. A running refresh with the old settings is replaced.
pub(super) async fn refresh_if_possible(call: &Call, account: &Account, has_new_list: bool) {
    if account.is_active
        && account.list != PlaylistLocation::None
        && let Err(error) = call.rest().imports.importer.changed(account.id, has_new_list).await
    {
        // The schedule will try again.
        warn!(account.id = %account.id, "failed to start a refresh: {error}");
    }
}

pub(in crate::api) fn stopping(_: AskError) -> Refusal {
    Refusal::unavailable("Refreshes are not available at the moment.").retry_soon()
}

fn view(
    account: &Account,
    progress: Option<RefreshStatus>,
    refresh: Option<&RefreshRecord>,
) -> M3URefreshView {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let last = M3URefreshView {
        account: account.id,
        account_name: account.name.clone(),
        task_id: None,
        phase: refresh.map(|_| Named(RefreshPhase::Done)),
        bytes: 0,
        entries: 0,
        streams_created: 0,
        streams_updated: 0,
        streams_gone: 0,
        outcome: refresh.map(|it| Named(it.outcome)),
        message: refresh.and_then(|it| text(&it.message)),
        message_code: refresh.and_then(|it| TextCodeView::find(&it.message)),
        started_at: None,
        tried_at: refresh.map(|it| Time(it.tried_at)),
        good_at: refresh.and_then(|it| it.good_at).map(Time),
        good_entries: refresh.map_or(0, |it| it.n_good),
    };
    let Some(progress) = progress else { return last };
    M3URefreshView {
        task_id: Some(progress.job),
        phase: Some(Named(progress.phase)),
        bytes: progress.bytes,
        entries: progress.entries,
        streams_created: progress.n_new,
        streams_updated: progress.n_changed,
        streams_gone: progress.n_gone,
        outcome: progress.outcome.map(Named),
        message: text(&progress.message),
        message_code: TextCodeView::find(&progress.message),
        started_at: Some(Time(progress.started_at)),
        ..last
    }
}
