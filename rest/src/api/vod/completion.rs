//! `/api/vod/completion/`: completing films and series from The Movie Database.

use domain::tmdb::ATTRIBUTION;
use domain::vod::{TitleId, TitleKind};
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::{Accepted, Route};
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use services::completion::CompletionRefusal;

use super::edit::MANY;
use crate::context::RestCall;

/// Selects what is completed. Without ids: all titles that were not completed yet, or long ago, up to the limit of a run.
#[derive(Clone, Debug, Body)]
#[resource(name = "CompletionSelection")]
pub(crate) struct CompletionSelection {
    /// Ids of films, which are completed whatever is known of them.
    #[field(items_max = MANY, example = "[7]")]
    movies: Option<Vec<u32>>,
    /// Ids of series, which are completed whatever is known of them.
    #[field(items_max = MANY, example = "[8]")]
    series: Option<Vec<u32>>,
}

/// The completion of films and series. Its settings are the completion settings.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "Completion")]
pub(crate) struct CompletionView {
    /// Whether titles are being completed.
    is_running: bool,
    /// Why no completion is possible with the present settings; `null` if one is.
    problem: Option<String>,
    /// Sentence that interfaces show where they show completed titles.
    #[field(example = "This product uses the TMDB API but is not endorsed or certified by TMDB.")]
    attribution: &'static str,
    /// Number of titles of the present run, or of the last one since the start.
    #[field(example = "200")]
    titles: usize,
    /// Number of these that were asked for.
    #[field(example = "120")]
    done: usize,
    /// Number of titles that the limit of a run leaves to the next one.
    left_out: usize,
    /// Number of titles that were found.
    #[field(example = "110")]
    found: usize,
    /// Number of titles with several results that fit. None of them was taken.
    ambiguous: usize,
    /// Number of titles without a result that fits.
    unknown: usize,
    /// Number of titles without a useful answer. The next run asks again.
    failed: usize,
    /// Number of titles that turned out to be the same as another one, and were merged.
    joined: u64,
    /// The last failure, or why the run ended early; empty if neither happened.
    message: String,
    /// When the run began.
    started_at: Option<Time>,
    /// When it ended.
    ended_at: Option<Time>,
}

/// The number of titles that have the values of their accounts again.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "CompletionRemoved")]
pub(crate) struct RemovedView {
    /// Number of titles.
    #[field(example = "110")]
    titles: usize,
}

const PATH: &str = "/api/vod/completion/";
const STOP: &str = "/api/vod/completion/stop/";
const BUSY: &str = "A completion is running.";

pub(super) fn routes() -> Vec<Route> {
    const START: &str = "Starts the completion of films and series from The Movie Database.";
    const REMOVE: &str =
        "Removes what was completed, so that titles have the values of their accounts again.";
    vec![
        Route::get(PATH, ADMIN, "Returns the state of the completion of films and series.", retrieve),
        Route::post(PATH, ADMIN, START, start)
            .with_bulk_body()
            .refuses(StatusCode::BAD_REQUEST, "A setting is missing, or a title does not exist.")
            .refuses(StatusCode::CONFLICT, BUSY),
        Route::post(STOP, ADMIN, "Stops the completion. What it has is stored.", stop),
        Route::delete(PATH, ADMIN, REMOVE, remove).refuses(StatusCode::CONFLICT, BUSY),
    ]
}

async fn retrieve(call: Call) -> Result<CompletionView, Refusal> {
    Ok(view(&call))
}

async fn start(call: Call, body: CompletionSelection) -> Result<Accepted<CompletionView>, Refusal> {
    let titles = selected(&call, body)?;
    call.rest().imports.completions.start(titles).map_err(refused)?;
    Ok(Accepted(view(&call)))
}

/// Returns the selected titles; `None` without ids.
fn selected(call: &Call, body: CompletionSelection) -> Result<Option<Vec<TitleId>>, Refusal> {
    if body.movies.is_none() && body.series.is_none() {
        return Ok(None);
    }
    let index = call.rest().models.vod_index.load();
    let mut titles = Vec::new();
    for (kind, field, ids) in
        [(TitleKind::Movie, "movies", body.movies), (TitleKind::Series, "series", body.series)]
    {
        for number in ids.into_iter().flatten() {
            let id = TitleId::new(kind, number).filter(|it| index.has(*it));
            titles.push(id.ok_or_else(|| Refusal::no_such(field, number))?);
        }
    }
    Ok(Some(titles))
}

async fn stop(call: Call) -> Result<CompletionView, Refusal> {
    call.rest().imports.completions.stop();
    Ok(view(&call))
}

async fn remove(call: Call) -> Result<RemovedView, Refusal> {
    let removed = call.rest().imports.completions.remove_all().await.map_err(refused)?;
    let titles =
        removed.map_err(|error| Refusal::fault(format_args!("remove what was completed: {error}")))?;
    Ok(RemovedView { titles })
}

fn refused(refusal: CompletionRefusal) -> Refusal {
    match refusal {
        CompletionRefusal::Busy => Refusal::status(StatusCode::CONFLICT).with_detail(refusal.to_string()),
        CompletionRefusal::Off | CompletionRefusal::NoKey => Refusal::bad_request(refusal.to_string()),
    }
}

fn view(call: &Call) -> CompletionView {
    let completions = &call.rest().imports.completions;
    let it = completions.progress();
    CompletionView {
        is_running: it.is_running,
        problem: completions.problem().map(|it| it.to_string()),
        attribution: ATTRIBUTION,
        titles: it.n_titles,
        done: it.n_done(),
        left_out: it.n_left_out,
        found: it.n_found,
        ambiguous: it.n_ambiguous,
        unknown: it.n_unknown,
        failed: it.n_failed,
        joined: it.n_joined,
        message: it.message,
        started_at: it.started_at.map(Time),
        ended_at: it.ended_at.map(Time),
    }
}
