//! One attempt: the text for the target, its answer, and the log entry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::event::{Event, EventBody};
use domain::ids::{DeliveryId, IntegrationId, LogEntryId};
use domain::integration::{
    ANSWER_BYTES_KEPT, ActionRun, AfterAttempt, Delivery, DeliveryLogEntry, Integration, IntegrationState,
    MAX_AGE_S, OUTPUT_BYTES_KEPT, Outcome, Preset, REASON_BYTES_MAX, REQUEST_BYTES_KEPT, Recipient, Script,
    ScriptOutput, Target, Webhook, WebhookAnswer, webhook_id,
};
use domain::plugin::{PluginKey, RunCause};
use domain::secret::Secret;
use domain::template::Template;
use media::source::{ScriptEnd, ScriptJob, run_script};
use media::spawn_blocking;
use serde_json::{Map, Value};
use storage::Write;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};
use uuid::Uuid;

use super::client::{WebhookError, WebhookRequest};
use super::outbox::payload;
use super::plugins::PluginTarget;
use super::recipient_queue::RecipientQueue;
use super::redact::Redactor;
use super::script;
use super::state::{IntegrationsState, Running};
use crate::clock::now_ms;
use crate::plugins::{PluginRun, RunOrder, RunResult, RunStage};

/// Exit code of a script that wants to be run again later (`EX_TEMPFAIL`).
const EXIT_LATER: i32 = 75;
/// Pause before an outcome is written again that the store refused.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Pause before a run is tried again that its plugin did not begin.
const NOT_BEGUN_DELAY_MS: i64 = 1_000;
/// Longest wait of a test for an action, which may take hours.
const TESTED_RUN_MAX: Duration = Duration::from_secs(60);
/// Maximum number of runs by buttons that are taken for the log at a time.
const LOGGED_AT_A_TIME: usize = 64;

/// An event as its target gets it.
#[derive(Clone)]
struct Happened {
    event_id: Uuid,
    event: String,
    /// As JSON.
    payload: String,
    summary: String,
    /// The id of the run of an action.
    run_id: Uuid,
    /// Members of the payload that a trusted target gets whole.
    addresses: BTreeMap<String, Secret>,
}

/// Where an attempt goes.
#[derive(Clone)]
enum Destination {
    Integration(Arc<Integration>),
    Plugin(Arc<PluginTarget>, ActionRun),
}

impl Destination {
    fn recipient(&self) -> Recipient {
        match self {
            Self::Integration(integration) => Recipient::Integration(integration.id),
            Self::Plugin(plugin, _) => Recipient::Plugin(plugin.id),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Integration(integration) => &integration.name,
            Self::Plugin(plugin, _) => plugin.key.as_str(),
        }
    }

    fn max_age_s(&self) -> u32 {
        match self {
            Self::Integration(integration) => integration.max_age_s(),
            Self::Plugin(..) => MAX_AGE_S,
        }
    }

    fn cause(&self) -> RunCause {
        match self {
            Self::Integration(_) => RunCause::Event,
            Self::Plugin(_, run) => run.cause(),
        }
    }

    fn action(&self) -> Option<String> {
        match self {
            Self::Integration(integration) => match &integration.target {
                Target::Plugin(action) => Some(action.action.clone()),
                Target::Webhook(_) | Target::Script(_) => None,
            },
            Self::Plugin(_, run) => Some(run.action.clone()),
        }
    }

    /// Returns what removes its secrets, and these addresses. The results of plugins have no other ones any more.
    fn redactor(&self, addresses: &BTreeMap<String, Secret>) -> Redactor {
        let redactor = match self {
            Self::Integration(integration) => Redactor::new(integration),
            Self::Plugin(..) => Redactor::none(),
        };
        redactor.with_addresses(addresses.values())
    }
}

/// The end of an attempt, with what is logged of it. Secrets are still in it.
struct Attempted {
    outcome: Outcome,
    request: String,
    answer: Option<WebhookAnswer>,
    output: Option<ScriptOutput>,
    /// The result of an action, as JSON.
    result: Option<String>,
    /// Why nothing was sent although nothing failed.
    note: Option<&'static str>,
}

/// The sentence why an attempt was not made: the plugin takes no runs now.
struct NotBegun(String);

impl Attempted {
    fn never(reason: impl Into<String>) -> Self {
        Self::new(Outcome::Never { reason: reason.into() })
    }

    fn new(outcome: Outcome) -> Self {
        Self { outcome, request: String::new(), answer: None, output: None, result: None, note: None }
    }
}

/// Sends an example of an event. Returns the entry for the log, without its id.
pub(super) async fn test(
    shared: Arc<IntegrationsState>,
    queue: Arc<RecipientQueue>,
    integration: Arc<Integration>,
    body: EventBody,
) -> DeliveryLogEntry {
    let now = now_ms();
    let (event_id, event, summary) = (Uuid::new_v4(), body.name().to_owned(), body.summary());
    let mut payload = payload(&Event { at: now, body }, event_id);
    payload.insert("test".to_owned(), true.into());
    let payload = Value::Object(payload).to_string();
    // The example of an event has no whole address.
    let happened =
        Happened { event_id, event, payload, summary, run_id: event_id, addresses: BTreeMap::new() };
    let destination = Destination::Integration(integration);
    let began = Instant::now();
    let time_max = if destination.action().is_some() { TESTED_RUN_MAX } else { Duration::MAX };
    let attempted = match timeout(time_max, send(&shared, &queue, &destination, happened.clone())).await {
        Ok(Ok(attempted)) => attempted,
        Ok(Err(NotBegun(reason))) => Attempted::never(reason),
        Err(_) => Attempted::never(format!("the action still runs after {} s", TESTED_RUN_MAX.as_secs())),
    };
    entry(&destination, &happened, None, 1, began.elapsed(), &attempted)
}

/// Logs a test, which changes nothing else. Returns the entry with its id.
pub(super) async fn log_test(
    running: &Running,
    entry: DeliveryLogEntry,
) -> Result<DeliveryLogEntry, storage::Error> {
    let excess = running.log_excess(&entry);
    let (removed, logged) = (excess.clone(), entry.clone());
    let id = running.models.store.write(move |write| append(write, logged, &removed)).await?;
    let entry = DeliveryLogEntry { id, ..entry };
    running.logged(&entry, &excess);
    Ok(entry)
}

/// Attempts a delivery, and stores the outcome.
pub(super) async fn deliver(
    shared: &Arc<IntegrationsState>,
    running: &Running,
    queue: &Arc<RecipientQueue>,
    id: DeliveryId,
) {
    let Some((mut delivery, destination)) = load(running, id).await else {
        return queue.ended(id, None);
    };
    if delivery.dead_at.is_some() {
        return queue.ended(id, Some(&delivery));
    }
    let happened = Happened {
        event_id: delivery.event_id,
        event: delivery.event.clone(),
        payload: delivery.payload.clone(),
        summary: delivery.summary.clone(),
        run_id: delivery.run_id(),
        addresses: match &destination {
            // The admin may have withdrawn the trust meanwhile.
            Destination::Integration(it) if it.gets_addresses() => delivery.addresses.clone(),
            _ => BTreeMap::new(),
        },
    };
    let began = Instant::now();
    let is_run = destination.action().is_some();
    let too_late = delivery.created_at.saturating_add(i64::from(destination.max_age_s()) * 1000);
    let attempted = if is_run && now_ms() > too_late {
        // Webhooks and scripts find this out after an attempt; the run of an action may take hours.
        Ok(Attempted::never("it waited for the plugin for too long"))
    } else {
        send(shared, queue, &destination, happened.clone()).await
    };
    let attempted = match attempted {
        Ok(attempted) => attempted,
        Err(NotBegun(_)) => {
            delivery.due_at = now_ms().saturating_add(NOT_BEGUN_DELAY_MS);
            return queue.ended(id, Some(&delivery));
        }
    };
    let n = delivery.n_attempts.saturating_add(1);
    let entry = entry(&destination, &happened, Some(id), n, began.elapsed(), &attempted);
    // As it is logged, without secrets.
    let reason = entry.reason.clone().unwrap_or_default();
    let outcome = match attempted.outcome {
        Outcome::Delivered => Outcome::Delivered,
        Outcome::Later { pause_s, .. } => Outcome::Later { reason, pause_s },
        Outcome::Never { .. } => Outcome::Never { reason },
        Outcome::Gone { .. } => Outcome::Gone { reason },
        Outcome::Crashed { .. } => Outcome::Crashed { reason },
        Outcome::Interrupted { .. } => Outcome::Interrupted { reason },
    };
    let delivery = store_outcome(running, &destination, delivery, outcome, entry).await;
    queue.ended(id, delivery.as_ref());
}

/// Reads a delivery and where it goes. A record that cannot be read is not attempted.
async fn load(running: &Running, id: DeliveryId) -> Option<(Delivery, Destination)> {
    let store = running.models.store.clone();
    let read = spawn_blocking(move || store.collection::<Delivery>().get(id.0));
    let delivery = match read.await.ok()? {
        Ok(delivery) => delivery?,
        Err(cause) => {
            warn!(delivery.id = %id, "failed to read a delivery: {cause}");
            return None;
        }
    };
    let destination = match delivery.to {
        Recipient::Integration(id) => {
            Destination::Integration(running.models.integrations.load().get(id.0).cloned()?)
        }
        Recipient::Plugin(id) => Destination::Plugin(running.plugins.get(id)?, delivery.run.clone()?),
    };
    Some((delivery, destination))
}

/// Stores the outcome with its log entry, however long the store takes. Returns the delivery if it is still there.
async fn store_outcome(
    running: &Running,
    destination: &Destination,
    delivery: Delivery,
    outcome: Outcome,
    entry: DeliveryLogEntry,
) -> Option<Delivery> {
    let (id, max_age_s) = (delivery.id, destination.max_age_s());
    let mut integration = destination.recipient().integration();
    let excess = running.log_excess(&entry);
    let mut has_failed = false;
    loop {
        let (now, random) = (now_ms(), random());
        let (outcome, logged, removed) = (outcome.clone(), entry.clone(), excess.clone());
        let (is_delivered, is_gone) =
            (outcome == Outcome::Delivered, matches!(outcome, Outcome::Gone { .. }));
        let written = running.models.store.write(move |write| {
            // The integration, the delivery or both may have been deleted during the attempt.
            let Some(mut delivery) = write.get::<Delivery>(id.0)? else { return Ok(None) };
            let after = delivery.after_attempt(outcome, now, max_age_s, random);
            match after {
                AfterAttempt::Removed => drop(write.remove::<Delivery>(id.0)?),
                AfterAttempt::Waits | AfterAttempt::Dead => write.put(&delivery)?,
            }
            let paused = match integration {
                Some(id) => change_state(write, id, is_delivered, is_gone, now)?,
                None => None,
            };
            let log_id = append(write, logged, &removed)?;
            let left = (after != AfterAttempt::Removed).then_some(delivery);
            Ok::<_, storage::Error>(Some((log_id, left, paused)))
        });
        match written.await {
            Ok(None) => return None,
            Ok(Some((log_id, left, paused))) => {
                running.logged(&DeliveryLogEntry { id: log_id, ..entry }, &excess);
                note(destination, left.as_ref(), paused);
                return left;
            }
            // The state of an integration is one for all nodes of a cluster, and only one of them writes it. The delivery is
            // that of this node.
            Err(storage::Error::NotWriter) if integration.is_some() => integration = None,
            Err(cause) => {
                if !std::mem::replace(&mut has_failed, true) {
                    warn!(delivery.id = %id, "failed to store the outcome of a delivery, trying again: {cause}");
                }
                sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// Notes the end of an attempt in the state of its integration. Returns the reason if this pauses it.
fn change_state(
    write: &mut Write<'_>,
    id: IntegrationId,
    is_delivered: bool,
    is_gone: bool,
    now: i64,
) -> storage::Result<Option<String>> {
    let new = IntegrationState { id, failing_since: None, paused: None };
    let before = write.get::<IntegrationState>(id.0)?.unwrap_or(new);
    let mut state = before.clone();
    let is_paused = state.after_attempt(is_delivered, is_gone, now) && before.paused.is_none();
    if state != before {
        write.put(&state)?;
    }
    Ok(is_paused.then_some(state.paused).flatten())
}

/// Logs what the operator may have to act on.
fn note(destination: &Destination, left: Option<&Delivery>, paused: Option<String>) {
    let (to, name) = (destination.recipient(), destination.name());
    if let Some(dead) = left.filter(|it| it.dead_at.is_some()) {
        let reason = dead.reason.as_deref().unwrap_or_default();
        warn!(?to, "event {} was not delivered to \"{name}\": {reason}", dead.event);
    }
    if let Some(reason) = paused {
        info!(?to, "integration \"{name}\" is paused: {reason}");
    }
}

/// Returns a number between 0 and 1.
fn random() -> f64 {
    let bits = Uuid::new_v4().as_u128() >> 96;
    bits as f64 / f64::from(u32::MAX)
}

/// Adds an entry to the log, and removes others.
fn append(
    write: &mut Write<'_>,
    entry: DeliveryLogEntry,
    removed: &[u32],
) -> Result<LogEntryId, storage::Error> {
    let id = LogEntryId(write.next_id::<DeliveryLogEntry>()?);
    write.put(&DeliveryLogEntry { id, ..entry })?;
    for id in removed {
        write.remove::<DeliveryLogEntry>(*id)?;
    }
    Ok(id)
}

/// Returns the entry for an attempt. Its id is not known yet.
fn entry(
    destination: &Destination,
    happened: &Happened,
    delivery: Option<DeliveryId>,
    attempt: u32,
    duration: Duration,
    attempted: &Attempted,
) -> DeliveryLogEntry {
    let redactor = destination.redactor(&happened.addresses);
    let subscription = match destination {
        Destination::Integration(it) => it.subscriptions.iter().find(|it| it.event == happened.event),
        Destination::Plugin(..) => None,
    };
    let reason = match &attempted.outcome {
        Outcome::Delivered => attempted.note.map(str::to_owned),
        Outcome::Later { reason, .. }
        | Outcome::Never { reason }
        | Outcome::Gone { reason }
        | Outcome::Crashed { reason }
        | Outcome::Interrupted { reason } => Some(redactor.beginning(reason, REASON_BYTES_MAX)),
    };
    DeliveryLogEntry {
        id: LogEntryId(0),
        to: destination.recipient(),
        subscription: subscription.map(|it| it.id),
        delivery,
        event_id: happened.event_id,
        event: happened.event.clone(),
        cause: destination.cause(),
        action: destination.action(),
        is_success: attempted.outcome == Outcome::Delivered,
        request: redactor.beginning(&attempted.request, REQUEST_BYTES_KEPT),
        answer: attempted.answer.as_ref().map(|it| WebhookAnswer {
            status: it.status,
            body: redactor.beginning(&it.body, ANSWER_BYTES_KEPT),
        }),
        output: attempted.output.as_ref().map(|it| ScriptOutput {
            exit_code: it.exit_code,
            stdout: redactor.beginning(&it.stdout, OUTPUT_BYTES_KEPT),
            stderr: redactor.beginning(&it.stderr, OUTPUT_BYTES_KEPT),
        }),
        result: attempted.result.as_ref().map(|it| redactor.beginning(it, ANSWER_BYTES_KEPT)),
        reason,
        attempt,
        duration_ms: u32::try_from(duration.as_millis()).unwrap_or(u32::MAX),
        created_at: now_ms(),
    }
}

/// Makes an attempt. A defect in it ends nothing else.
async fn send(
    shared: &Arc<IntegrationsState>,
    queue: &Arc<RecipientQueue>,
    destination: &Destination,
    happened: Happened,
) -> Result<Attempted, NotBegun> {
    let (shared, queue, destination) = (shared.clone(), queue.clone(), destination.clone());
    let work = async move {
        let Some(running) = shared.running.get() else {
            return Ok(Attempted::never("integrations do not run"));
        };
        to_target(&shared, running, &queue, &destination, &happened).await
    };
    AbortOnDropHandle::new(crate::tasks::spawn(work)).await.unwrap_or_else(|_| {
        let reason = "the attempt failed by a defect".to_owned();
        Ok(Attempted::new(Outcome::Later { reason, pause_s: None }))
    })
}

async fn to_target(
    shared: &IntegrationsState,
    running: &Running,
    queue: &RecipientQueue,
    destination: &Destination,
    happened: &Happened,
) -> Result<Attempted, NotBegun> {
    let mut payload: Map<String, Value> = match serde_json::from_str(&happened.payload) {
        Ok(Value::Object(payload)) => payload,
        _ => return Ok(Attempted::never("the stored payload is damaged")),
    };
    let integration = match destination {
        Destination::Integration(integration) => integration,
        Destination::Plugin(plugin, run) => {
            let params = match run.cause() {
                RunCause::Schedule => payload,
                RunCause::Event | RunCause::Button => params_of_event(happened, payload.into()),
            };
            return to_plugin(shared, &plugin.key, order(happened, &run.action, params, run.cause())).await;
        }
    };
    let logged = match text(integration, happened, &payload) {
        Ok(text) => text,
        Err(reason) => return Ok(Attempted::never(reason)),
    };
    if logged.text.trim().is_empty() {
        let note = Some("nothing was sent, because the text of the template is blank");
        return Ok(Attempted { note, ..Attempted::new(Outcome::Delivered) });
    }
    payload.extend(happened.addresses.iter().map(|it| (it.0.clone(), it.1.expose().into())));
    let text = match happened.addresses.is_empty() {
        true => logged.clone(),
        false => match text(integration, happened, &payload) {
            Ok(text) => text,
            Err(reason) => return Ok(Attempted::never(reason)),
        },
    };
    let attempted = to_integration(shared, running, queue, integration, happened, (&payload, text)).await?;
    // The log has the form without logins.
    let request = if happened.addresses.is_empty() { attempted.request } else { logged.text };
    Ok(Attempted { request, ..attempted })
}

/// Makes an attempt with a text, and with the payload that it was made of.
async fn to_integration(
    shared: &IntegrationsState,
    running: &Running,
    queue: &RecipientQueue,
    integration: &Integration,
    happened: &Happened,
    (payload, text): (&Map<String, Value>, Text),
) -> Result<Attempted, NotBegun> {
    match &integration.target {
        Target::Webhook(webhook) => {
            Ok(to_webhook(running, integration, queue, webhook, happened, text).await)
        }
        Target::Script(script) => Ok(to_script(shared, running, script, happened, payload, text).await),
        Target::Plugin(action) => {
            let Ok(key) = PluginKey::from_folder(&action.key) else {
                return Ok(Attempted::never(format!("the plugin \"{}\" is not installed", action.key)));
            };
            // A template makes an object, or a text.
            let payload = serde_json::from_str(&text.text).unwrap_or(Value::String(text.text));
            let params = params_of_event(happened, payload);
            to_plugin(shared, &key, order(happened, &action.action, params, RunCause::Event)).await
        }
    }
}

/// Returns what an action gets for an event.
fn params_of_event(happened: &Happened, payload: Value) -> Map<String, Value> {
    Map::from_iter([("event".to_owned(), happened.event.clone().into()), ("payload".to_owned(), payload)])
}

fn order(happened: &Happened, action: &str, params: Map<String, Value>, cause: RunCause) -> RunOrder {
    RunOrder { id: happened.run_id, action: action.to_owned(), params, cause }
}

/// Runs an action, and waits for its end.
async fn to_plugin(
    shared: &IntegrationsState,
    key: &PluginKey,
    order: RunOrder,
) -> Result<Attempted, NotBegun> {
    let request = shared.plugins.redact(key, &Value::Object(order.params.clone()).to_string());
    let ended = shared.plugins.run_to_end(key, order).await;
    let ended = ended.map_err(|refusal| NotBegun(refusal.to_string()))?;
    let (outcome, result) = run_outcome(ended);
    let result = result.map(|it| shared.plugins.redact(key, &it));
    Ok(Attempted { request, result, ..Attempted::new(outcome) })
}

/// Returns what the end of a run means for its delivery, and what the action returned.
fn run_outcome(ended: RunResult) -> (Outcome, Option<String>) {
    let never = |reason: &str| Outcome::Never { reason: reason.to_owned() };
    let outcome = match ended {
        RunResult::Returned(value) => {
            let outcome = match value.get("status").and_then(Value::as_str) {
                Some("error") => {
                    let message = value.get("message").and_then(Value::as_str).unwrap_or_default();
                    Outcome::Never { reason: format!("the action returned an error: {message}") }
                }
                _ => Outcome::Delivered,
            };
            return (outcome, Some(value.to_string()));
        }
        RunResult::UnknownAction => never("the plugin has no such action"),
        RunResult::Raised(error) => Outcome::Never { reason: format!("the action failed: {error}") },
        RunResult::Crashed(reason) => Outcome::Crashed { reason },
        RunResult::TimedOut => never("the action took longer than its time"),
        RunResult::Cancelled => never("an admin cancelled the run"),
        RunResult::Stopped => {
            Outcome::Interrupted { reason: "the plugin was stopped during the run".to_owned() }
        }
    };
    (outcome, None)
}

/// Logs the runs of actions by their buttons, which are not deliveries.
pub(super) async fn log_buttons(
    shared: Arc<IntegrationsState>,
    ended: Arc<AsyncMutex<mpsc::Receiver<PluginRun>>>,
) {
    let Some(running) = shared.running.get() else { return };
    let (mut ended, mut runs) = (ended.lock().await, Vec::new());
    while ended.recv_many(&mut runs, LOGGED_AT_A_TIME).await > 0 {
        for run in runs.drain(..) {
            let Some(entry) = button_entry(&shared, running, run) else { continue };
            let excess = running.log_excess(&entry);
            let (logged, removed) = (entry.clone(), excess.clone());
            match running.models.store.write(move |write| append(write, logged, &removed)).await {
                Ok(id) => running.logged(&DeliveryLogEntry { id, ..entry }, &excess),
                Err(cause) => warn!("failed to log a run of a plugin: {cause}"),
            }
        }
    }
}

/// Returns the entry of the log for a run by its button. `None` if the plugin is gone, or it goes on.
fn button_entry(shared: &IntegrationsState, running: &Running, run: PluginRun) -> Option<DeliveryLogEntry> {
    let plugin = running.models.plugins.load().one_by("key", run.key.as_str())?.id;
    let RunStage::Ended(ended) = run.stage else { return None };
    let (outcome, result) = run_outcome(ended);
    let text = |it: String, bytes_max: usize| {
        let text = shared.plugins.redact(&run.key, &it);
        text[..text.floor_char_boundary(bytes_max)].to_owned()
    };
    let (is_success, reason) = match outcome {
        Outcome::Delivered => (true, None),
        Outcome::Later { reason, .. }
        | Outcome::Never { reason }
        | Outcome::Gone { reason }
        | Outcome::Crashed { reason }
        | Outcome::Interrupted { reason } => (false, Some(text(reason, REASON_BYTES_MAX))),
    };
    let now = now_ms();
    let duration_ms = run.ended_at.unwrap_or(now).saturating_sub(run.requested_at);
    Some(DeliveryLogEntry {
        id: LogEntryId(0),
        to: Recipient::Plugin(plugin),
        subscription: None,
        delivery: None,
        event_id: run.id,
        event: RunCause::Button.name().to_owned(),
        cause: RunCause::Button,
        action: Some(run.action),
        is_success,
        request: String::new(),
        answer: None,
        output: None,
        result: result.map(|it| text(it, ANSWER_BYTES_KEPT)),
        reason,
        attempt: 1,
        duration_ms: u32::try_from(duration_ms).unwrap_or(u32::MAX),
        created_at: now,
    })
}

/// A text for a target.
#[derive(Clone)]
struct Text {
    text: String,
    content_type: &'static str,
}

/// Returns the text of an event: that of the template of the subscription, of the preset, or the payload.
fn text(
    integration: &Integration,
    happened: &Happened,
    payload: &Map<String, Value>,
) -> Result<Text, String> {
    let subscription = integration.subscriptions.iter().find(|it| it.event == happened.event);
    let own = subscription.and_then(|it| it.template.as_deref());
    let preset = integration.preset();
    let Some(template) = own.or(preset.map(|it| it.template())) else {
        let text = match happened.addresses.is_empty() {
            true => happened.payload.clone(),
            false => serde_json::to_string(payload).unwrap_or_default(),
        };
        return Ok(Text { text, content_type: "application/json" });
    };
    let values = integration.values(payload.clone(), happened.event_id, happened.summary.clone());
    let rendered = Template::parse(template, None).and_then(|it| it.render(&values));
    let rendered =
        rendered.map_err(|fault| format!("the template of {} has a fault: {fault}", happened.event))?;
    let content_type = match (rendered.is_json, preset) {
        (true, Some(preset)) => preset.content_type(),
        (true, None) => "application/json",
        (false, _) => "text/plain; charset=utf-8",
    };
    Ok(Text { text: rendered.text, content_type })
}

async fn to_webhook(
    running: &Running,
    integration: &Integration,
    queue: &RecipientQueue,
    webhook: &Webhook,
    happened: &Happened,
    text: Text,
) -> Attempted {
    let request = WebhookRequest {
        webhook,
        content_type: text.content_type,
        body: &text.text,
        id: webhook_id(happened.event_id, integration.id),
        now: now_ms(),
        stays_private: integration.gets_addresses() && !webhook.url.scheme().eq_ignore_ascii_case("https"),
    };
    let reply = queue.client.send(running, request).await;
    // Services count what arrives, and this message may have been on its way for long.
    queue.rest(integration.preset().map_or(Duration::ZERO, Preset::pause));
    let (outcome, answer) = match reply {
        Ok(reply) => {
            let status = reply.status.as_u16();
            let answered = format!("the target answered {status}");
            let outcome = match status {
                200..=299 => Outcome::Delivered,
                410 => Outcome::Gone { reason: answered },
                408 | 425 | 429 | 500..=599 => {
                    Outcome::Later { reason: answered, pause_s: reply.retry_after.map(|it| it.as_secs()) }
                }
                300..=399 => {
                    Outcome::Never { reason: format!("{answered}, a redirect; redirects are not followed") }
                }
                _ => Outcome::Never { reason: answered },
            };
            (outcome, Some(WebhookAnswer { status, body: reply.body }))
        }
        Err(WebhookError::Later(reason)) => (Outcome::Later { reason, pause_s: None }, None),
        Err(WebhookError::Never(reason)) => (Outcome::Never { reason }, None),
    };
    Attempted { request: text.text, answer, ..Attempted::new(outcome) }
}

async fn to_script(
    shared: &IntegrationsState,
    running: &Running,
    script: &Script,
    happened: &Happened,
    payload: &Map<String, Value>,
    text: Text,
) -> Attempted {
    // Closed never; an error would mean that the gateway stops.
    let Ok(_turn) = running.scripts.acquire().await else { return Attempted::never("scripts do not run") };
    let (checked, dirs) = (script.clone(), running.settings.script_dirs.clone());
    // Again, because the file may be another one since the integration was saved.
    let checked = spawn_blocking(move || script::check(&checked, &dirs)).await;
    let checked = match checked {
        Ok(Ok(checked)) => checked,
        Ok(Err(wrong)) => return Attempted::never(wrong.reason),
        Err(_) => return Attempted::never("the script cannot be checked"),
    };
    let mut values = payload.clone();
    values.insert("summary".to_owned(), happened.summary.clone().into());
    let job = ScriptJob {
        program: checked.path,
        folder: checked.folder,
        environment: script::environment(&values),
        input: text.text.clone().into_bytes(),
        output_bytes_max: OUTPUT_BYTES_KEPT,
        time_max: Duration::from_secs(script.timeout_s.into()),
    };
    let (outcome, output) = match run_script(job, &shared.launcher, shared.closer.clone()).await {
        Ok(end) => (script_outcome(&end, script.timeout_s), Some(output(end))),
        Err(reason) => (Outcome::Never { reason: format!("the script cannot be started: {reason}") }, None),
    };
    Attempted { request: text.text, output, ..Attempted::new(outcome) }
}

fn script_outcome(end: &ScriptEnd, timeout_s: u32) -> Outcome {
    let reason = match end.code {
        Some(0) => return Outcome::Delivered,
        Some(EXIT_LATER) => {
            let reason = format!("the script exited with {EXIT_LATER}, to be run again later");
            return Outcome::Later { reason, pause_s: None };
        }
        Some(code) => format!("the script exited with {code}"),
        None if end.is_late => format!("the script was ended, because it ran for more than {timeout_s} s"),
        None => "the script was ended by a signal".to_owned(),
    };
    Outcome::Never { reason }
}

fn output(end: ScriptEnd) -> ScriptOutput {
    let text = |it: Vec<u8>| String::from_utf8_lossy(&it).into_owned();
    ScriptOutput { exit_code: end.code, stdout: text(end.stdout), stderr: text(end.stderr) }
}

impl Running {
    /// Returns the entries that have to go when this one is added.
    fn log_excess(&self, entry: &DeliveryLogEntry) -> Vec<u32> {
        let log = self.log.lock();
        log.excess(Some(entry.to), entry.n_bytes(), &self.settings.log, entry.created_at)
    }

    fn logged(&self, entry: &DeliveryLogEntry, excess: &[u32]) {
        let mut log = self.log.lock();
        log.insert(entry);
        excess.iter().for_each(|id| log.remove(*id));
    }
}
