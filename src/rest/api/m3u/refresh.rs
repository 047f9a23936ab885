//! `/api/m3u/refresh/`: lists are fetched again, and how far that is.

use actors::{AskError, RefreshPhase, RefreshStart, RefreshStatus};
use domain::account::{Account, PlaylistLocation, RefreshOutcome, RefreshRecord};
use domain::ids::AccountId;
use http::StatusCode;
use uuid::Uuid;

use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::list::{Page, WholeOrPages};
use crate::rest::frame::record::{body, query, view};
use crate::rest::frame::route::{ADMIN, Accepted, Route, STANDARD};
use crate::rest::frame::value::{Named, Time, choice};

query! {
    /// How a list is refreshed.
    Options {
        /// Also a list that is much smaller than the last good one is taken.
        confirm: bool,
    }
}

body! {
    /// How a list is refreshed.
    RefreshOptions {
        /// Also a list that is much smaller than the last good one is taken.
        confirm: bool,
    }
}

view! {
    /// A refresh has begun.
    RefreshStarted {
        /// Always true; what ended otherwise is seen later.
        success: bool,
        /// For people.
        message: String [example("The refresh of \"Provider\" has begun.")],
        /// Whose list it is.
        account: AccountId [example("2")],
        /// Tells this refresh from others; what became of it is at `/api/m3u/refresh/{account}/`.
        task_id: Uuid,
    }
}

view! {
    /// Refreshes have begun.
    RefreshesStarted {
        /// Always true; what ended otherwise is seen later.
        success: bool,
        /// For people.
        message: String [example("2 refreshes have begun.")],
        /// One of each active account that has a list.
        tasks: Vec<RefreshTask>,
    }
}

view! {
    /// One of several refreshes.
    RefreshTask {
        /// Whose list it is.
        account: AccountId [example("2")],
        /// Tells this refresh from others of the account.
        task_id: Uuid,
    }
}

view! {
    /// How far the refresh of an account is, or how the last one ended.
    M3URefresh {
        /// Whose list it is.
        account: AccountId [example("2")],
        /// The name of the account.
        account_name: String [example("Provider")],
        /// The refresh that runs, or the last one since the gateway started.
        task_id: Option<Uuid>,
        /// What it is doing; `done` when it is over, null where there was none.
        phase: Option<Named<RefreshPhase>> [example("parsing")],
        /// Bytes of the list that were read so far, unpacked.
        bytes: u64 [example("1048576")],
        /// Entries that were found so far.
        entries: u64 [example("5000")],
        /// New streams.
        streams_created: u64 [example("12")],
        /// Streams that are not as they were.
        streams_updated: u64 [example("3")],
        /// Streams that the list does not have any more.
        streams_gone: u64 [example("1")],
        /// How it ended. `pending_confirmation`: the list is much smaller than the last good one, and nothing was
        /// changed. Null while it runs, and where it was broken off because the gateway stops.
        outcome: Option<Named<RefreshOutcome>> [example("success")],
        /// The same in words, without credentials.
        message: Option<String>,
        /// When it was asked for.
        started_at: Option<Time>,
        /// When the last refresh ended that was written down.
        tried_at: Option<Time>,
        /// When the last good one ended.
        good_at: Option<Time>,
        /// Entries of the last good list.
        good_entries: u64 [example("5000")],
    }
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
        Route::get(ALL, STANDARD, "Shows how far the refreshes of all accounts are.", list),
        Route::post(ALL, ADMIN, "Refreshes every active account that has a list.", refresh_all)
            .refuses(StatusCode::SERVICE_UNAVAILABLE, "The gateway stops."),
        Route::get(ONE, STANDARD, "Shows how far the refresh of an account is.", retrieve),
        Route::post(ONE, ADMIN, "Refreshes an account.", refresh)
            .refuses(StatusCode::BAD_REQUEST, "The account is not active, or has no list."),
    ]
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<M3URefresh>, Refusal> {
    let accounts = call.app.models.accounts.load();
    let refreshes = call.app.models.refreshes.load();
    let accounts: Vec<_> = accounts.iter().collect();
    paging.of(&call, &accounts, |it| {
        let progress = call.app.importer.progress_of(it.id);
        view(it, progress, refreshes.get(it.id.0).map(|it| &**it))
    })
}

async fn retrieve(call: Call) -> Result<M3URefresh, Refusal> {
    let id = call.id()?;
    // In this order: what is over in memory has been written down before.
    let progress = call.app.importer.progress_of(AccountId(id));
    let accounts = call.app.models.accounts.load();
    let account = accounts.get(id).ok_or_else(Refusal::unknown::<Account>)?;
    let refreshes = call.app.models.refreshes.load();
    Ok(view(account, progress, refreshes.get(id).map(|it| &**it)))
}

async fn refresh(
    call: Call,
    (options, body): (Options, RefreshOptions),
) -> Result<Accepted<RefreshStarted>, Refusal> {
    let id = call.id()?;
    let name = {
        let accounts = call.app.models.accounts.load();
        accounts.get(id).ok_or_else(Refusal::unknown::<Account>)?.name.clone()
    };
    let confirm = options.confirm == Some(true) || body.confirm == Some(true);
    let account = AccountId(id);
    let started = call.app.importer.refresh(account, confirm).await.map_err(stopping)?;
    let (message, task_id) = match started {
        RefreshStart::Started { job } => (format!("The refresh of \"{name}\" has begun."), job),
        RefreshStart::AlreadyRunning { job } => {
            (format!("The refresh of \"{name}\" is running already."), job)
        }
        RefreshStart::NoSuchAccount => return Err(Refusal::unknown::<Account>()),
        RefreshStart::Inactive => return Err(Refusal::bad_request("The account is not active.")),
        RefreshStart::NoList => return Err(Refusal::bad_request("The account has no list.")),
    };
    Ok(Accepted(RefreshStarted { success: true, message, account, task_id }))
}

async fn refresh_all(call: Call) -> Result<Accepted<RefreshesStarted>, Refusal> {
    let accounts = call.app.models.accounts.load();
    let mut tasks = Vec::new();
    for account in accounts.iter().filter(|it| it.is_active && it.list != PlaylistLocation::None) {
        let account = account.id;
        match call.app.importer.refresh(account, false).await.map_err(stopping)? {
            RefreshStart::Started { job } | RefreshStart::AlreadyRunning { job } => {
                tasks.push(RefreshTask { account, task_id: job });
            }
            // It was changed while we looked.
            RefreshStart::NoSuchAccount | RefreshStart::Inactive | RefreshStart::NoList => {}
        }
    }
    let message = match tasks.len() {
        0 => "There is no active account with a list.".to_owned(),
        1 => "1 refresh has begun.".to_owned(),
        n => format!("{n} refreshes have begun."),
    };
    Ok(Accepted(RefreshesStarted { success: true, message, tasks }))
}

fn stopping(_: AskError) -> Refusal {
    Refusal::unavailable("nothing is refreshed at the moment").retry_soon()
}

fn view(account: &Account, progress: Option<RefreshStatus>, refresh: Option<&RefreshRecord>) -> M3URefresh {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let last = M3URefresh {
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
        started_at: None,
        tried_at: refresh.map(|it| Time(it.tried_at)),
        good_at: refresh.and_then(|it| it.good_at).map(Time),
        good_entries: refresh.map_or(0, |it| it.n_good),
    };
    let Some(progress) = progress else { return last };
    M3URefresh {
        task_id: Some(progress.job),
        phase: Some(Named(progress.phase)),
        bytes: progress.bytes,
        entries: progress.entries,
        streams_created: progress.n_new,
        streams_updated: progress.n_changed,
        streams_gone: progress.n_gone,
        outcome: progress.outcome.map(Named),
        message: text(&progress.message),
        started_at: Some(Time(progress.started_at)),
        ..last
    }
}
