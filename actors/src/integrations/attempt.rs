//! One attempt: the text for the target, its answer, and the log entry.

use std::sync::Arc;
use std::time::Duration;

use domain::event::{Event, EventBody};
use domain::ids::{DeliveryId, LogEntryId};
use domain::integration::{
    ANSWER_BYTES_KEPT, AfterAttempt, Delivery, DeliveryLogEntry, Integration, IntegrationState,
    OUTPUT_BYTES_KEPT, Outcome, REASON_BYTES_MAX, REQUEST_BYTES_KEPT, Script, ScriptOutput, Target, Webhook,
    WebhookAnswer, webhook_id,
};
use domain::template::Template;
use media::source::{ScriptEnd, ScriptJob, run_script};
use serde_json::{Map, Value};
use storage::Write;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};
use uuid::Uuid;

use super::client::{WebhookError, WebhookRequest};
use super::lane::Lane;
use super::outbox::payload;
use super::redact::Redactor;
use super::{Running, Shared, script};
use crate::clock::now_ms;

/// Exit code of a script that wants to be run again later (`EX_TEMPFAIL`).
const EXIT_LATER: i32 = 75;
/// Pause before an outcome is written again that the store refused.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// An event as an integration gets it.
#[derive(Clone)]
struct Happened {
    event_id: Uuid,
    event: String,
    /// As JSON.
    payload: String,
    summary: String,
}

/// The end of an attempt, with what is logged of it. Secrets are still in it.
struct Attempted {
    outcome: Outcome,
    request: String,
    answer: Option<WebhookAnswer>,
    output: Option<ScriptOutput>,
    /// Why nothing was sent although nothing failed.
    note: Option<&'static str>,
}

impl Attempted {
    fn never(reason: impl Into<String>) -> Self {
        Self::of(Outcome::Never { reason: reason.into() })
    }

    fn of(outcome: Outcome) -> Self {
        Self { outcome, request: String::new(), answer: None, output: None, note: None }
    }
}

/// Sends an example of an event, and logs it. It changes nothing else.
pub(super) async fn test(
    shared: &Arc<Shared>,
    running: &Running,
    lane: &Arc<Lane>,
    integration: &Arc<Integration>,
    body: EventBody,
) -> Result<DeliveryLogEntry, storage::Error> {
    let now = now_ms();
    let (event_id, event, summary) = (Uuid::new_v4(), body.name().to_owned(), body.summary());
    let mut payload = payload(&Event { at: now, body }, event_id);
    payload.insert("test".to_owned(), true.into());
    let payload = Value::Object(payload).to_string();
    let happened = Happened { event_id, event, payload, summary };
    let began = Instant::now();
    let attempted = send(shared, lane, integration, happened.clone()).await;
    let entry = entry(integration, &happened, None, 1, began.elapsed(), &attempted);
    let excess = running.log_excess(&entry);
    let (removed, logged) = (excess.clone(), entry.clone());
    let id = running.models.store.write(move |write| append(write, logged, &removed)).await?;
    let entry = DeliveryLogEntry { id, ..entry };
    running.logged(&entry, &excess);
    Ok(entry)
}

/// Attempts a delivery, and stores the outcome.
pub(super) async fn deliver(shared: &Arc<Shared>, running: &Running, lane: &Arc<Lane>, id: DeliveryId) {
    let Some((delivery, integration)) = load(running, id).await else {
        return lane.ended(id, None);
    };
    if delivery.dead_at.is_some() {
        return lane.ended(id, Some(&delivery));
    }
    let happened = Happened {
        event_id: delivery.event_id,
        event: delivery.event.clone(),
        payload: delivery.payload.clone(),
        summary: delivery.summary.clone(),
    };
    let began = Instant::now();
    let attempted = send(shared, lane, &integration, happened.clone()).await;
    let n = delivery.n_attempts.saturating_add(1);
    let entry = entry(&integration, &happened, Some(id), n, began.elapsed(), &attempted);
    // As it is logged, without secrets.
    let reason = entry.reason.clone().unwrap_or_default();
    let outcome = match attempted.outcome {
        Outcome::Delivered => Outcome::Delivered,
        Outcome::Later { pause_s, .. } => Outcome::Later { reason, pause_s },
        Outcome::Never { .. } => Outcome::Never { reason },
        Outcome::Gone { .. } => Outcome::Gone { reason },
    };
    let delivery = store_outcome(running, &integration, delivery, outcome, entry).await;
    lane.ended(id, delivery.as_ref());
}

/// Reads a delivery and its integration. A record that cannot be read is not attempted.
async fn load(running: &Running, id: DeliveryId) -> Option<(Delivery, Arc<Integration>)> {
    let store = running.models.store.clone();
    let read = tokio::task::spawn_blocking(move || store.collection::<Delivery>().get(id.0));
    let delivery = match read.await.ok()? {
        Ok(delivery) => delivery?,
        Err(cause) => {
            warn!(delivery.id = %id, "failed to read a delivery: {cause}");
            return None;
        }
    };
    let integration = running.models.integrations.load().get(delivery.integration.0).cloned()?;
    Some((delivery, integration))
}

/// Stores the outcome with its log entry, however long the store takes. Returns the delivery if it is still there.
async fn store_outcome(
    running: &Running,
    integration: &Integration,
    delivery: Delivery,
    outcome: Outcome,
    entry: DeliveryLogEntry,
) -> Option<Delivery> {
    let (id, of, max_age_s) = (delivery.id, integration.id, integration.max_age_s());
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
            let new = IntegrationState { id: of, failing_since: None, paused: None };
            let before = write.get::<IntegrationState>(of.0)?.unwrap_or(new);
            let mut state = before.clone();
            let was_paused = before.paused.is_some();
            let is_paused = state.after_attempt(is_delivered, is_gone, now) && !was_paused;
            if state != before {
                write.put(&state)?;
            }
            let log_id = append(write, logged, &removed)?;
            let left = (after != AfterAttempt::Removed).then_some(delivery);
            Ok::<_, storage::Error>(Some((log_id, left, is_paused.then_some(state.paused).flatten())))
        });
        match written.await {
            Ok(None) => return None,
            Ok(Some((log_id, left, paused))) => {
                running.logged(&DeliveryLogEntry { id: log_id, ..entry }, &excess);
                note(integration, left.as_ref(), paused);
                return left;
            }
            Err(cause) => {
                if !std::mem::replace(&mut has_failed, true) {
                    warn!(delivery.id = %id, "failed to store the outcome of a delivery, trying again: {cause}");
                }
                sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// Logs what the operator may have to act on.
fn note(integration: &Integration, left: Option<&Delivery>, paused: Option<String>) {
    let (id, name) = (integration.id, &integration.name);
    if let Some(dead) = left.filter(|it| it.dead_at.is_some()) {
        let reason = dead.reason.as_deref().unwrap_or_default();
        warn!(integration.id = %id, "event {} was not delivered to \"{name}\": {reason}", dead.event);
    }
    if let Some(reason) = paused {
        info!(integration.id = %id, "integration \"{name}\" is paused: {reason}");
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
    integration: &Integration,
    happened: &Happened,
    delivery: Option<DeliveryId>,
    attempt: u32,
    duration: Duration,
    attempted: &Attempted,
) -> DeliveryLogEntry {
    let redactor = Redactor::new(integration);
    let subscription = integration.subscriptions.iter().find(|it| it.event == happened.event);
    let reason = match &attempted.outcome {
        Outcome::Delivered => attempted.note.map(str::to_owned),
        Outcome::Later { reason, .. } | Outcome::Never { reason } | Outcome::Gone { reason } => {
            Some(redactor.beginning(reason, REASON_BYTES_MAX))
        }
    };
    DeliveryLogEntry {
        id: LogEntryId(0),
        integration: integration.id,
        subscription: subscription.map(|it| it.id),
        delivery,
        event_id: happened.event_id,
        event: happened.event.clone(),
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
        reason,
        attempt,
        duration_ms: u32::try_from(duration.as_millis()).unwrap_or(u32::MAX),
        created_at: now_ms(),
    }
}

/// Makes an attempt. A defect in it ends nothing else.
async fn send(
    shared: &Arc<Shared>,
    lane: &Arc<Lane>,
    integration: &Arc<Integration>,
    happened: Happened,
) -> Attempted {
    let (shared, lane, integration) = (shared.clone(), lane.clone(), integration.clone());
    let work = async move {
        let Some(running) = shared.running.get() else { return Attempted::never("integrations do not run") };
        to_target(&shared, running, &lane, &integration, &happened).await
    };
    AbortOnDropHandle::new(tokio::spawn(work)).await.unwrap_or_else(|_| {
        Attempted::of(Outcome::Later { reason: "the attempt failed by a defect".to_owned(), pause_s: None })
    })
}

async fn to_target(
    shared: &Shared,
    running: &Running,
    lane: &Lane,
    integration: &Integration,
    happened: &Happened,
) -> Attempted {
    let payload = match serde_json::from_str(&happened.payload) {
        Ok(Value::Object(payload)) => payload,
        _ => return Attempted::never("the stored payload is damaged"),
    };
    let text = match text(integration, happened, &payload) {
        Ok(text) => text,
        Err(reason) => return Attempted::never(reason),
    };
    if text.text.trim().is_empty() {
        let note = Some("nothing was sent, because the text of the template is blank");
        return Attempted { note, ..Attempted::of(Outcome::Delivered) };
    }
    match &integration.target {
        Target::Webhook(webhook) => to_webhook(running, lane, webhook, happened, text).await,
        Target::Script(script) => to_script(shared, running, script, happened, &payload, text).await,
        Target::Plugin(action) => Attempted::never(format!("the plugin \"{}\" does not run", action.key)),
    }
}

/// A text for a target.
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
        return Ok(Text { text: happened.payload.clone(), content_type: "application/json" });
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
    lane: &Lane,
    webhook: &Webhook,
    happened: &Happened,
    text: Text,
) -> Attempted {
    let request = WebhookRequest {
        webhook,
        content_type: text.content_type,
        body: &text.text,
        id: webhook_id(happened.event_id, lane.id),
        now: now_ms(),
    };
    let reply = lane.client.send(running, request).await;
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
    Attempted { outcome, request: text.text, answer, output: None, note: None }
}

async fn to_script(
    shared: &Shared,
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
    let checked = tokio::task::spawn_blocking(move || script::check(&checked, &dirs)).await;
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
    Attempted { outcome, request: text.text, answer: None, output, note: None }
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
        log.excess(Some(entry.integration), entry.n_bytes(), &self.settings.log, entry.created_at)
    }

    fn logged(&self, entry: &DeliveryLogEntry, excess: &[u32]) {
        let mut log = self.log.lock();
        log.insert(entry);
        excess.iter().for_each(|id| log.remove(*id));
    }
}
