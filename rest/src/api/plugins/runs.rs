//! Runs of actions, restarts and logs of plugins.

use std::time::Duration;

use actors::{PluginError, PluginRun, RunAnswer, RunRefusal, RunResult, RunStage};
use domain::plugin::{PluginKey, RunCause};
use http::StatusCode;
use resource_derive::{Body, Query, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::{Answer, AnswerShape, Route, json_reply};
use route_frame::value::{Shape, Time};
use serde::Serialize;
use serde_json::{Map, Value, json};
use server::reply::Refusal;
use tokio::time::timeout;
use uuid::Uuid;
use warp::reply::Response as Reply;

use super::records::{change, find, key_of, shown};
use super::refusals::{NO_PLUGIN, NOT_FOR_PLUGINS, refused_with, unknown};
use super::view::PluginView;
use crate::api::text::sentence;
use crate::context::RestCall;

/// An action to run.
#[derive(Debug, Body)]
pub(crate) struct PluginRunBody {
    /// Id of the action.
    #[field(chars_max = 200, example = "go")]
    action: String,
    /// Parameters for the action.
    params: Option<Option<Map<String, Value>>>,
}

/// A run that ended or continues.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PluginRunResultView {
    /// Whether the action returned; true also for an unknown action, as clients of similar services expect.
    success: bool,
    /// `error`, if the plugin has no such action.
    #[field(may_be_absent, example = "error")]
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    /// The reason of that.
    #[field(may_be_absent, example = "Unknown action: go")]
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// The object that the action returned; `null` while it runs. That of an unknown action has the same `status` and
    /// `message`.
    result: Option<Map<String, Value>>,
    /// Id of the run.
    run: Uuid,
}

impl PluginRunResultView {
    fn new(run: Uuid, result: Option<Map<String, Value>>) -> Self {
        Self { success: true, status: None, message: None, result, run }
    }
}

/// 200 with the result of a run, or 202 if it continues.
#[derive(Debug)]
pub(crate) struct RunReply(PluginRunResultView);

impl Answer for RunReply {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::One(PluginRunResultView::KIND);

    fn into_reply(self) -> Reply {
        let status = if self.0.result.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
        json_reply(status, &self.0)
    }
}

/// A run of an action.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PluginRunView {
    /// Id of the run.
    id: Uuid,
    /// Id of the action.
    action: String,
    /// `button`, `event` or `schedule`.
    #[field(example = "button")]
    cause: &'static str,
    /// `waiting`, `running`, `ended`, `unknown_action`, `failed`, `crashed`, `timed_out`, `cancelled` or `stopped`.
    #[field(example = "ended")]
    status: &'static str,
    /// Progress from 0 to 100, as the action reported it.
    percent: Option<f64>,
    /// Text that the action reported, or why it failed.
    message: Option<String>,
    /// The object that the action returned.
    result: Option<Map<String, Value>>,
    /// When the run was requested.
    requested_at: Time,
    /// When the run ended.
    ended_at: Option<Time>,
}

/// Runs of a plugin.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PluginRunsView {
    /// The last ones since the start of the gateway, newest first.
    runs: Vec<PluginRunView>,
}

/// Lines of a log.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PluginLogView {
    /// Oldest first. They are written by the plugin: show them as text.
    lines: Vec<String>,
}

/// The part of a log to return.
#[derive(Debug, Query)]
pub(crate) struct PluginLogQuery {
    /// Maximum number of lines; 200 by default.
    #[field(at_least = 1, at_most = LINES_MAX as i64)]
    lines: Option<u32>,
}

/// A plugin after a request to its process.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RestartedPluginView {
    /// Always true.
    success: bool,
    /// The plugin.
    plugin: PluginView,
}

/// A run that was asked to end.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct CancelledRunView {
    /// Always true.
    success: bool,
}

/// Maximum number of lines of a log in an answer.
const LINES_MAX: u32 = 5_000;
const LINES_DEFAULT: u32 = 200;
/// Maximum number of runs in an answer.
const RUNS_MAX: usize = 100;
/// Longest wait of a request for a plugin that starts. It continues to start after that.
pub(super) const START_WAIT_MAX: Duration = Duration::from_secs(60);

const RUN: &str = "/api/plugins/plugins/{key}/run/";
const RUNS: &str = "/api/plugins/plugins/{key}/runs/";
const CANCEL: &str = "/api/plugins/plugins/{key}/runs/{uuid}/cancel/";
const LOGS: &str = "/api/plugins/plugins/{key}/logs/";
const RESTART: &str = "/api/plugins/plugins/{key}/restart/";

pub(super) fn routes() -> Vec<Route> {
    const CONFLICT: &str = "The plugin has failed or was stopped, or the gateway runs without plugins.";
    vec![
        Route::post(
            RUN,
            ADMIN,
            "Runs an action of a plugin, and waits for its end, up to a minute by default.",
            run,
        )
        .with_properties_body()
        .that_reads()
        // Otherwise a plugin could run itself in a circle, also by way of others.
        .not_for_plugins(NOT_FOR_PLUGINS)
        .refuses_plainly(StatusCode::ACCEPTED, "The action still runs; `result` is null.")
        .refuses(StatusCode::FORBIDDEN, "The plugin is disabled.")
        .refuses(StatusCode::NOT_FOUND, NO_PLUGIN)
        .refuses(StatusCode::CONFLICT, CONFLICT)
        .refuses(StatusCode::INTERNAL_SERVER_ERROR, "The action raised an exception.")
        .refuses(StatusCode::BAD_GATEWAY, "The process of the plugin ended during the run.")
        .refuses(StatusCode::GATEWAY_TIMEOUT, "The action took longer than its time."),
        Route::get(RUNS, ADMIN, "Lists the last runs of a plugin.", runs)
            .refuses(StatusCode::NOT_FOUND, NO_PLUGIN),
        Route::post(CANCEL, ADMIN, "Cancels a run of a plugin.", cancel)
            .that_reads()
            .refuses(StatusCode::NOT_FOUND, "There is no such run.")
            .refuses(StatusCode::CONFLICT, CONFLICT),
        Route::get(LOGS, ADMIN, "Returns the last lines of the log of a plugin.", logs)
            .refuses(StatusCode::NOT_FOUND, NO_PLUGIN),
        Route::post(RESTART, ADMIN, "Starts the process of a plugin again.", restart)
            .not_for_plugins(NOT_FOR_PLUGINS)
            .refuses(StatusCode::NOT_FOUND, NO_PLUGIN)
            .refuses(StatusCode::CONFLICT, "The plugin is disabled or did not start."),
    ]
}

async fn run(call: Call, body: PluginRunBody) -> Result<RunReply, Refusal> {
    let key = key_of(&call)?;
    let plugin = find(&call, &key).await?;
    if !plugin.record.as_ref().is_some_and(|it| it.is_enabled) {
        return Err(refused_with(StatusCode::FORBIDDEN, "Plugin is disabled"));
    }
    let params = body.params.flatten().unwrap_or_default();
    let answer = call.rest().plugins.processes.handle.run(&key, &body.action, params, RunCause::Button).await;
    let (run, result) = match answer.map_err(|refusal| no_run(&refusal))? {
        RunAnswer::Running(run) => {
            return Ok(RunReply(PluginRunResultView::new(run, None)));
        }
        RunAnswer::Ended(run, result) => (run, result),
    };
    let result = match result {
        RunResult::Returned(Value::Object(result)) => result,
        RunResult::Returned(other) => object(json!({ "status": "ok", "result": other })),
        RunResult::UnknownAction => {
            let message = format!("Unknown action: {}", body.action);
            let result = object(json!({ "status": "error", "message": message }));
            let known = PluginRunResultView::new(run, Some(result));
            return Ok(RunReply(PluginRunResultView {
                status: Some("error"),
                message: Some(message),
                ..known
            }));
        }
        RunResult::Raised(error) => return Err(refused_with(StatusCode::INTERNAL_SERVER_ERROR, &error)),
        RunResult::Crashed(error) => return Err(refused_with(StatusCode::BAD_GATEWAY, &error)),
        RunResult::TimedOut => {
            return Err(refused_with(StatusCode::GATEWAY_TIMEOUT, "The action took longer than its time."));
        }
        RunResult::Cancelled => return Err(refused_with(StatusCode::CONFLICT, "The run was cancelled.")),
        RunResult::Stopped => return Err(refused_with(StatusCode::CONFLICT, "The plugin was stopped.")),
    };
    Ok(RunReply(PluginRunResultView::new(run, Some(result))))
}

fn no_run(refusal: &RunRefusal) -> Refusal {
    let status = match refusal {
        RunRefusal::UnknownPlugin => return unknown(),
        RunRefusal::Disabled => return refused_with(StatusCode::FORBIDDEN, "Plugin is disabled"),
        RunRefusal::Failed(_) | RunRefusal::SafeMode => StatusCode::CONFLICT,
        RunRefusal::TooMany => StatusCode::SERVICE_UNAVAILABLE,
    };
    refused_with(status, &sentence(refusal))
}

async fn runs(call: Call) -> Result<PluginRunsView, Refusal> {
    let key = key_of(&call)?;
    find(&call, &key).await?;
    let runs = call.rest().plugins.processes.handle.jobs(&key);
    Ok(PluginRunsView { runs: runs.into_iter().take(RUNS_MAX).map(view).collect() })
}

fn view(run: PluginRun) -> PluginRunView {
    let (status, reason, result) = match run.stage {
        RunStage::Waiting => ("waiting", None, None),
        RunStage::Running => ("running", None, None),
        RunStage::Ended(RunResult::Returned(value)) => ("ended", None, value.as_object().cloned()),
        RunStage::Ended(RunResult::UnknownAction) => ("unknown_action", None, None),
        RunStage::Ended(RunResult::Raised(error)) => ("failed", Some(error), None),
        RunStage::Ended(RunResult::Crashed(error)) => ("crashed", Some(error), None),
        RunStage::Ended(RunResult::TimedOut) => ("timed_out", None, None),
        RunStage::Ended(RunResult::Cancelled) => ("cancelled", None, None),
        RunStage::Ended(RunResult::Stopped) => ("stopped", None, None),
    };
    PluginRunView {
        id: run.id,
        action: run.action,
        cause: run.cause.name(),
        status,
        percent: run.percent,
        message: reason.or(run.message),
        result,
        requested_at: Time(run.requested_at),
        ended_at: run.ended_at.map(Time),
    }
}

async fn cancel(call: Call) -> Result<CancelledRunView, Refusal> {
    let (key, run) = (key_of(&call)?, call.uuid()?);
    let processes = &call.rest().plugins.processes.handle;
    processes.job(run).filter(|it| it.key == key).ok_or_else(|| Refusal::not_found("Not found."))?;
    processes.cancel(&key, run).map_err(|error| no_effect(&error))?;
    Ok(CancelledRunView { success: true })
}

async fn logs(call: Call, query: PluginLogQuery) -> Result<PluginLogView, Refusal> {
    let key = key_of(&call)?;
    find(&call, &key).await?;
    let lines_max = usize::try_from(query.lines.unwrap_or(LINES_DEFAULT)).unwrap_or(usize::MAX);
    Ok(PluginLogView { lines: call.rest().plugins.processes.handle.logs(&key, lines_max).await })
}

async fn restart(call: Call) -> Result<RestartedPluginView, Refusal> {
    let key = key_of(&call)?;
    let plugin = find(&call, &key).await?;
    if !plugin.record.as_ref().is_some_and(|it| it.is_enabled) {
        return Err(refused_with(StatusCode::CONFLICT, "Plugin is disabled"));
    }
    change(&call, key.clone(), |plugin| {
        plugin.failed = None;
        plugin.failed_starts = 0;
    })
    .await?;
    let processes = &call.rest().plugins.processes.handle;
    if let Ok(done) = timeout(START_WAIT_MAX, processes.restart(&key)).await {
        done.map_err(|error| no_effect(&error))?;
    }
    Ok(RestartedPluginView { success: true, plugin: shown(&call, &key).await? })
}

/// Starts or ends the process of a plugin as its record has it. A plugin that does not start shows that itself.
pub(super) async fn follow_record(call: &Call, key: &PluginKey) {
    let reload = call.rest().plugins.processes.handle.reload(key);
    // An error is the state of the plugin, which the answer contains.
    let _ = timeout(START_WAIT_MAX, reload).await;
}

fn no_effect(error: &PluginError) -> Refusal {
    match error {
        PluginError::Unknown => unknown(),
        PluginError::SafeMode | PluginError::NotReady(_) => {
            refused_with(StatusCode::CONFLICT, &sentence(error))
        }
        PluginError::Stopping | PluginError::Busy => {
            refused_with(StatusCode::SERVICE_UNAVAILABLE, &sentence(error))
        }
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
