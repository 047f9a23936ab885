//! `/api/vod/export/`: the export of films and series as STRM files.

use http::StatusCode;
use resource_derive::View;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::{Accepted, Route};
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use services::strm_export::ExportReport;

use crate::context::RestCall;

/// The export of films and series as STRM files. Its settings are the library settings.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "STRMExport")]
pub(crate) struct ExportView {
    /// Whether an export runs.
    is_running: bool,
    /// Why no export is possible with the present settings; `null` if one is.
    problem: Option<String>,
    /// When the last export since the start ended.
    finished_at: Option<Time>,
    /// Why it failed; `null` if it succeeded.
    error: Option<String>,
    /// Number of written files.
    written: usize,
    /// Number of files that were left as they were.
    unchanged: usize,
    /// Number of removed files.
    removed: usize,
    /// Number of files that were left alone because somebody else wrote or changed them.
    kept: usize,
}

const PATH: &str = "/api/vod/export/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(PATH, ADMIN, "Returns the state of the export of films and series.", retrieve),
        Route::post(PATH, ADMIN, "Starts an export of films and series as STRM files.", start)
            .refuses(StatusCode::BAD_REQUEST, "A setting is missing.")
            .refuses(StatusCode::CONFLICT, "Another export runs."),
    ]
}

async fn retrieve(call: Call) -> Result<ExportView, Refusal> {
    Ok(view(&call))
}

async fn start(call: Call) -> Result<Accepted<ExportView>, Refusal> {
    let exports = &call.rest().imports.strm_exports;
    if let Err(error) = exports.order() {
        return Err(Refusal::bad_request(format!("{error:#}")));
    }
    if !exports.start() {
        let detail = "Another export runs. Wait until it has ended.";
        return Err(Refusal::status(StatusCode::CONFLICT).with_detail(detail));
    }
    Ok(Accepted(ExportView { is_running: true, ..view(&call) }))
}

fn view(call: &Call) -> ExportView {
    let exports = &call.rest().imports.strm_exports;
    let last = exports.last();
    let outcome = last.as_ref().map(|it| it.outcome.clone());
    let report = outcome.clone().and_then(Result::ok).unwrap_or_default();
    let ExportReport { written, unchanged, removed, kept } = report;
    ExportView {
        is_running: exports.is_running(),
        problem: exports.order().err().map(|error| format!("{error:#}")),
        finished_at: last.map(|it| Time(it.finished_at)),
        error: outcome.and_then(Result::err),
        written,
        unchanged,
        removed,
        kept,
    }
}
