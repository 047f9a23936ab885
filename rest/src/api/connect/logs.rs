//! `/api/connect/logs/`: the attempts to deliver events, the runs of actions of plugins, and their outcomes.

use actors::{IntegrationError, LogFilter, Page as Found};
use domain::ids::{IntegrationId, LogEntryId};
use domain::integration::{DeliveryLogEntry, Integration, Recipient};
use domain::plugin::{Plugin, RunCause};
use resource_derive::{Query, View};
use route_frame::access::ADMIN;
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::value::Time;
use serde::Serialize;
use serde_json::{Map, Value, json};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Table;
use uuid::Uuid;

use super::view::{EventName, EventSubscriptionView, TargetType, subscription_view};
use crate::choice::{Choice, Named, choice};
use crate::context::RestCall;
use crate::list::{Page, Paging};

choice!(
    /// Whether an attempt succeeded.
    enum LogStatus {
        Success = "success",
        Failed = "failed",
    }
);

choice!(
    /// Why a target gets something.
    enum CauseName {
        Event = "event",
        Schedule = "schedule",
        Button = "button",
    }
);

impl CauseName {
    pub(super) fn from_cause(cause: RunCause) -> Self {
        match cause {
            RunCause::Event => Self::Event,
            RunCause::Schedule => Self::Schedule,
            RunCause::Button => Self::Button,
        }
    }

    fn run(&self) -> RunCause {
        match self {
            Self::Event => RunCause::Event,
            Self::Schedule => RunCause::Schedule,
            Self::Button => RunCause::Button,
        }
    }
}

/// An integration or a plugin in a query.
pub(super) struct PluginFilter {
    pub(super) integration: Option<IntegrationId>,
    pub(super) plugin: Option<String>,
}

impl PluginFilter {
    /// Returns whose deliveries are wanted; `None` for all.
    pub(super) fn recipient(self, plugins: &Table<Plugin>) -> Result<Option<Recipient>, FieldErrors> {
        match (self.integration, self.plugin.filter(|it| !it.is_empty())) {
            (integration, None) => Ok(integration.map(Recipient::Integration)),
            (None, Some(key)) => match plugins.one_by("key", &key) {
                Some(plugin) => Ok(Some(Recipient::Plugin(plugin.id))),
                None => Err(FieldErrors::new("plugin", "There is no plugin with this key.")),
            },
            (Some(_), Some(_)) => Err(FieldErrors::new("plugin", "Select an integration or a plugin.")),
        }
    }
}

/// Filters of the log.
#[derive(Debug, Query)]
struct Filters {
    /// Id of an integration.
    #[field(example = "1")]
    integration: Option<IntegrationId>,
    /// Key of a plugin whose actions ran for events, at times or by buttons.
    #[field(example = "cleaner")]
    plugin: Option<String>,
    /// Type of the integrations; `plugin` also selects the runs of plugins.
    r#type: Option<Named<TargetType>>,
    /// An event.
    #[field(example = "channel_start")]
    event: Option<Named<EventName>>,
    /// Why it was made.
    cause: Option<Named<CauseName>>,
    /// Whether the attempt succeeded.
    status: Option<Named<LogStatus>>,
    /// Whether it was a test.
    is_test: Option<bool>,
    /// Entries from this time on.
    since: Option<Time>,
    /// Entries before this time.
    before: Option<Time>,
}

/// An attempt to deliver an event, a run of an action of a plugin, or a test.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct DeliveryLogView {
    /// Increases with each attempt.
    #[field(example = "7")]
    id: LogEntryId,
    /// Id of the integration; `null` for a plugin whose action ran.
    #[field(example = "1")]
    integration: Option<IntegrationId>,
    /// Name of the integration.
    #[field(example = "Chat")]
    integration_name: Option<String>,
    /// Key of the plugin whose action ran; `null` for an integration.
    #[field(example = "cleaner")]
    plugin: Option<String>,
    /// Id of the action of a plugin.
    #[field(example = "clean")]
    action: Option<String>,
    /// Why it was made.
    #[field(example = "event")]
    cause: Named<CauseName>,
    /// Type of the integration.
    r#type: Option<Named<TargetType>>,
    /// Id of the subscription.
    #[field(example = "1")]
    subscription_id: Option<u32>,
    /// The subscription as it is now; `null` if it was deleted.
    subscription: Option<EventSubscriptionView>,
    /// Id of the delivery; `null` for a test and for a button.
    #[field(example = "3")]
    delivery_id: Option<u32>,
    /// The event; `schedule` or `button` for another cause.
    #[field(example = "channel_start")]
    event: String,
    /// The same in all attempts to deliver the event. For a button, the id of the run.
    event_id: Uuid,
    /// Whether it was a test by an admin.
    is_test: bool,
    /// Outcome of the attempt.
    #[field(example = "success")]
    status: Named<LogStatus>,
    /// Number of the attempt; the first is 1.
    #[field(example = "1")]
    attempt: u32,
    /// Duration of the attempt in milliseconds.
    #[field(example = "34")]
    duration_ms: u32,
    /// When the attempt was made.
    timestamp: Time,
    /// The same, for clients that expect this name.
    created_at: Time,
    /// The payload that was sent. A text other than a JSON object is the member `body`.
    pub(super) request_payload: Map<String, Value>,
    /// The answer of a webhook: `status_code` and the beginning of the `body`.
    response_payload: Option<Map<String, Value>>,
    /// The end of a script: `exit_code`, and the beginning of `stdout` and `stderr`.
    output: Option<Map<String, Value>>,
    /// The object that an action of a plugin returned. One that is too long is cut off, as the member `body`.
    result: Option<Map<String, Value>>,
    /// Why the attempt failed, or why nothing was sent.
    error_message: Option<String>,
}

impl DeliveryLogView {
    /// Returns what came back, as one object.
    pub(super) fn into_result(self) -> Map<String, Value> {
        let mut result = self.response_payload.or(self.output).or(self.result).unwrap_or_default();
        result.insert("success".to_owned(), (self.status.0 == LogStatus::Success).into());
        if let Some(reason) = self.error_message {
            result.insert("error".to_owned(), reason.into());
        }
        result
    }
}

/// 50 entries per page by default, at most 250.
type Pages = Paging<50, 250>;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/api/connect/logs/", ADMIN, "Lists attempts to deliver events, the newest first.", list)]
}

async fn list(call: Call, (filters, paging): (Filters, Pages)) -> Result<Page<DeliveryLogView>, Refusal> {
    let (integrations, plugins) = (call.rest().models.integrations.load(), call.rest().models.plugins.load());
    let filter = LogFilter {
        to: PluginFilter { integration: filters.integration, plugin: filters.plugin }.recipient(&plugins)?,
        to_one_of: filters.r#type.map(|wanted| {
            let has_type = |it: &Integration| TargetType::from_target(&it.target) == wanted.0;
            let recipients =
                integrations.iter().filter(|it| has_type(it)).map(|it| Recipient::Integration(it.id));
            let runs = plugins.iter().filter(|_| wanted.0 == TargetType::Plugin);
            recipients.chain(runs.map(|it| Recipient::Plugin(it.id))).collect()
        }),
        cause: filters.cause.map(|it| it.0.run()),
        event: filters.event.map(|it| it.0.name().to_owned()),
        is_success: filters.status.map(|it| it.0 == LogStatus::Success),
        is_test: filters.is_test,
        since: filters.since.map(|it| it.0),
        before: filters.before.map(|it| it.0),
    };
    let (offset, limit) = paging.window();
    let log = call.rest().operation.integrations.clone();
    let found = blocking(move || log.log(&filter, offset, limit)).await?;
    let views = found.items.into_iter().map(|it| view(it, &integrations, &plugins)).collect();
    paging.envelope(&call, found.n_all, views)
}

/// Reads from the store on a thread that may block. Nothing is found while no integrations run.
pub(super) async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<Found<T>, IntegrationError> + Send + 'static,
) -> Result<Found<T>, Refusal> {
    match run_blocking("read deliveries", read).await? {
        Ok(found) => Ok(found),
        Err(IntegrationError::NotRunning) => Ok(Found { n_all: 0, items: Vec::new() }),
        Err(IntegrationError::Store(error)) => Err(error.into()),
        Err(error) => Err(Refusal::fault(format_args!("read deliveries: {error}"))),
    }
}

pub(super) fn view(
    entry: DeliveryLogEntry,
    integrations: &Table<Integration>,
    plugins: &Table<Plugin>,
) -> DeliveryLogView {
    let integration = entry.to.integration().and_then(|it| integrations.get(it.0));
    let is_success = if entry.is_success { LogStatus::Success } else { LogStatus::Failed };
    DeliveryLogView {
        id: entry.id,
        integration: entry.to.integration(),
        integration_name: integration.map(|it| it.name.clone()),
        r#type: match entry.to {
            Recipient::Integration(_) => integration.map(|it| Named(TargetType::from_target(&it.target))),
            Recipient::Plugin(_) => Some(Named(TargetType::Plugin)),
        },
        plugin: match entry.to {
            Recipient::Integration(_) => None,
            Recipient::Plugin(id) => plugins.get(id).map(|it| it.key.to_string()),
        },
        cause: Named(CauseName::from_cause(entry.cause)),
        subscription: integration.and_then(|it| {
            let found = it.subscriptions.iter().find(|of| Some(of.id) == entry.subscription)?;
            subscription_view(it, found)
        }),
        subscription_id: entry.subscription,
        delivery_id: entry.delivery.map(|it| it.0),
        is_test: entry.is_test(),
        action: entry.action,
        result: entry.result.as_deref().map(object_of),
        event: entry.event,
        event_id: entry.event_id,
        status: Named(is_success),
        attempt: entry.attempt,
        duration_ms: entry.duration_ms,
        timestamp: Time(entry.created_at),
        created_at: Time(entry.created_at),
        request_payload: object_of(&entry.request),
        response_payload: entry
            .answer
            .map(|it| members(json!({ "status_code": it.status, "body": it.body }))),
        output: entry.output.map(|it| {
            members(json!({ "exit_code": it.exit_code, "stdout": it.stdout, "stderr": it.stderr }))
        }),
        error_message: entry.reason,
    }
}

/// Returns a sent text as an object: itself if it is one, else as the member `body`.
pub(super) fn object_of(text: &str) -> Map<String, Value> {
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => members,
        Ok(_) | Err(_) if text.is_empty() => Map::new(),
        Ok(_) | Err(_) => members(json!({ "body": text })),
    }
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
