//! The JSON of frames: `{"type": "update", "data": {"type": KIND, …}}`.

use std::collections::BTreeSet;
use std::sync::Arc;

use actors::{
    DetailsUpdate, EpisodeLoad, GuidePhase, GuideRefreshStatus, IntegrationStatus, PluginNotification,
    RefreshPhase, RefreshStatus, RunResult, RunStage, VodPhase, VodRefreshStatus,
};
use domain::account::RefreshOutcome;
use domain::event::{Audience, Event};
use domain::guide::state::GuideStatus;
use domain::ids::{RecordingId, UserId};
use domain::recording::{Recording, RecordingStatus};
use domain::texts::{TextCode, add_code};
use domain::time::iso_millis;
use domain::user::{User, UserLevel};
use serde_json::{Map, Value, json};
use server::refusals::refused_writes;
use services::matching::MatchReport;
use storage::{Change, ChangedIds, StopReason};
use uuid::Uuid;

use super::statistics::ClientsOf;

/// Collections whose changes are not reported: internal ones, those that change by themselves, and the audit trail, which
/// grows with every change.
const NOT_REPORTED: [&str; 11] = [
    "server_keys",
    "audit",
    "undo_parts",
    "stream_health",
    "dismissed_notices",
    "deliveries",
    "delivery_log",
    "integration_states",
    "outbox_events",
    "plugin_schedules",
    "plugin_values",
];
/// The collection of the notices for users.
const NOTICES: &str = "notices";

/// A notification, with the frame for each audience.
#[derive(Debug)]
pub(super) struct Notification {
    pub(super) admin: String,
    pub(super) others: ForOthers,
}

/// The frame of a notification for users who are not admins.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ForOthers {
    /// Only admins get the notification.
    Nothing,
    /// For users from level 1 on who may see this channel.
    OfChannel(Uuid, String),
    /// For the owners of recordings, as long as they may record: a frame for each.
    OfOwners(Vec<(UserId, String)>),
    /// For users from level 1 on who may record.
    ForRecorders(String),
    /// For every user.
    ForAll(String),
}

impl Notification {
    pub(super) fn for_admins(data: Value) -> Arc<Self> {
        Arc::new(Self { admin: update(&data), others: ForOthers::Nothing })
    }

    /// For admins and, if a user made the recording, for that user.
    fn for_owner(owner: Option<UserId>, data: &Value) -> Arc<Self> {
        let frame = update(data);
        let others = match owner {
            Some(owner) => ForOthers::OfOwners(vec![(owner, frame.clone())]),
            None => ForOthers::Nothing,
        };
        Arc::new(Self { admin: frame, others })
    }

    fn for_all(data: &Value) -> Arc<Self> {
        let frame = update(data);
        Arc::new(Self { admin: frame.clone(), others: ForOthers::ForAll(frame) })
    }
}

/// Builds a frame of type `update`.
pub(super) fn update(data: &Value) -> String {
    json!({ "type": "update", "data": data }).to_string()
}

/// Builds the first frame of every socket. Admins learn whether the store refuses changes, and why.
pub(super) fn established(user: &User, stop_reason: Option<&StopReason>) -> String {
    let mut data = json!({
        "type": "connection_established",
        "success": true,
        "message": "connected",
        "version": env!("CARGO_PKG_VERSION"),
        "user_level": user.effective_level(),
    });
    if user.may(UserLevel::Admin) {
        let stopped = stop_reason.map(refused_writes);
        if let Some(code) = stopped.as_deref().and_then(TextCode::find) {
            data["store_stopped_code"] = json!(code);
        }
        data["store_stopped"] = json!(stopped);
    }
    json!({ "type": "connection_established", "data": data }).to_string()
}

/// Builds the frame with the number of notifications that a slow client missed.
pub(super) fn missed(count: u64) -> String {
    update(&json!({ "type": "missed", "count": count }))
}

/// Builds the reply to a message from the client, and returns the channels whose clients it asks for.
pub(super) fn reply(text: Option<&str>) -> (String, Option<ClientsOf>) {
    let sent = text.and_then(|it| serde_json::from_str::<Value>(it).ok()).unwrap_or_default();
    let refused = |message: &str| (update(&json!({ "type": "error", "message": message })), None);
    match sent["type"].as_str() {
        Some("ping") => (json!({ "type": "pong", "data": { "type": "pong" } }).to_string(), None),
        Some("subscribe") => match clients_of(&sent["clients"]) {
            Some(wanted) => {
                (update(&json!({ "type": "subscribed", "clients": sent["clients"] })), Some(wanted))
            }
            None => refused("`clients` must be `all`, `none` or the uuid of a channel"),
        },
        _ => refused("read-only socket; use the REST API"),
    }
}

fn clients_of(value: &Value) -> Option<ClientsOf> {
    match value.as_str()? {
        "all" => Some(ClientsOf::All),
        "none" => Some(ClientsOf::None),
        uuid => Uuid::try_parse(uuid).ok().map(ClientsOf::Channel),
    }
}

/// Builds the notification of an event. Users who are not admins get only events of channels, without viewers and
/// sources, and that a back-up is about to be restored.
pub(super) fn event(event: &Event) -> Option<Arc<Notification>> {
    let mut data = serde_json::to_value(event).ok()?;
    data["type"] = json!(event.body.frame_type());
    data["success"] = json!(!event.body.is_failure());
    add_code(&mut data, "reason");
    let others = match event.body.audience() {
        Audience::AdminsOnly => ForOthers::Nothing,
        Audience::Viewers(channel) => {
            ForOthers::OfChannel(channel.uuid, only(&data, &["channel_id", "channel_name", "channel_number"]))
        }
        Audience::Everyone(keys) => ForOthers::ForAll(only(&data, keys)),
        Audience::Owner(recording) => {
            data["channel"] = data["channel_name"].clone();
            recording.owner.map_or(ForOthers::Nothing, |owner| {
                let mut own = data.clone();
                // A path of the machine is for admins.
                own.as_object_mut().into_iter().for_each(|it| drop(it.remove("file_path")));
                ForOthers::OfOwners(vec![(owner, update(&own))])
            })
        }
    };
    Some(Arc::new(Notification { admin: update(&data), others }))
}

/// Returns the frame of an event with these keys and those that every event has.
fn only(data: &Value, keys: &[&str]) -> String {
    let keys = ["type", "success", "event_type", "timestamp"].iter().chain(keys);
    let fields: Map<String, Value> = keys.map(|key| ((*key).to_owned(), data[*key].clone())).collect();
    update(&Value::Object(fields))
}

/// Builds the statistics of the films and episodes that are being watched.
pub(super) fn vod_stats(stats: &Value) -> Arc<Notification> {
    Notification::for_admins(json!({ "type": "vod_stats", "success": true, "stats": stats.to_string() }))
}

/// Builds the statistics of those who watch the past of channels.
pub(super) fn timeshift_stats(stats: &Value) -> Arc<Notification> {
    Notification::for_admins(
        json!({ "type": "timeshift_stats", "success": true, "stats": stats.to_string() }),
    )
}

/// Builds the notification that notices were written, changed or deleted. Each user reads those that are for them.
pub(super) fn notices_changed(change: &Change) -> Option<Arc<Notification>> {
    let has_notices = change.collections.iter().any(|it| it.collection == NOTICES);
    has_notices.then(|| Notification::for_all(&json!({ "type": "notifications_changed", "success": true })))
}

/// Builds the notifications of a recording that was created, changed or deleted.
pub(super) fn recording_changed(
    before: Option<&Recording>,
    after: Option<&Recording>,
) -> Vec<Arc<Notification>> {
    let frame = |kind: &str, it: &Recording, members: Value| {
        let mut data = json!({
            "type": kind,
            "success": true,
            "recording_id": it.id.to_string(),
            "channel": it.channel_name,
            "channel_id": it.channel_uuid,
        });
        for (name, value) in members.as_object().into_iter().flatten() {
            data[name] = value.clone();
        }
        Notification::for_owner(it.owner, &data)
    };
    let (before, after) = match (before, after) {
        (None, None) => return Vec::new(),
        (None, Some(after)) => return vec![frame("recording_updated", after, Value::Null)],
        (Some(before), None) => {
            let was_in_progress = before.status == RecordingStatus::Recording;
            return vec![frame("recording_cancelled", before, json!({ "was_in_progress": was_in_progress }))];
        }
        (Some(before), Some(after)) => (before, after),
    };
    if before == after {
        return Vec::new();
    }
    let mut frames = vec![frame("recording_updated", after, Value::Null)];
    if before.status == RecordingStatus::Recording && after.status == RecordingStatus::Stopped {
        frames.push(frame("recording_stopped", after, Value::Null));
    }
    if !after.status.is_final() && before.start == after.start && after.end > before.end {
        let extra_minutes = after.end.saturating_sub(before.end) / 60_000;
        let members = json!({ "extra_minutes": extra_minutes, "new_end_time": iso_millis(after.end) });
        frames.push(frame("recording_extended", after, members));
    }
    frames
}

/// How many recordings a commit to many of them has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordingCounts {
    pub(super) scheduled: usize,
    pub(super) removed: usize,
    /// Recordings with other times or on another channel.
    pub(super) rescheduled: usize,
}

/// Builds the notification that the list of recordings should be read again. Only admins get the numbers, which are those
/// of all users.
pub(super) fn recordings_refreshed(counts: RecordingCounts) -> Arc<Notification> {
    let mut data = json!({ "type": "recordings_refreshed", "success": true });
    let others = ForOthers::ForRecorders(update(&data));
    let RecordingCounts { scheduled, removed, rescheduled } = counts;
    for (name, n) in [("scheduled", scheduled), ("removed", removed), ("rescheduled", rescheduled)] {
        data[name] = json!(n);
    }
    Arc::new(Notification { admin: update(&data), others })
}

/// Builds the sizes of the files of recordings that run, with their owners.
pub(super) fn recording_progress(running: &[(RecordingId, Option<UserId>, u64)]) -> Arc<Notification> {
    let frame = |is_wanted: &dyn Fn(Option<UserId>) -> bool| {
        let wanted = running.iter().filter(|it| is_wanted(it.1));
        let of = |it: &(RecordingId, Option<UserId>, u64)| json!({ "recording_id": it.0.to_string(), "bytes_written": it.2 });
        let recordings: Vec<Value> = wanted.map(of).collect();
        update(&json!({ "type": "recording_progress", "success": true, "recordings": recordings }))
    };
    let owners: BTreeSet<_> = running.iter().filter_map(|it| it.1).collect();
    let own = |id: UserId| (id, frame(&|owner| owner == Some(id)));
    let others = ForOthers::OfOwners(owners.into_iter().map(own).collect());
    Arc::new(Notification { admin: frame(&|_| true), others })
}

/// Builds the notification of a commit. `ids` is `null` if so many records changed that clients should reload the list.
pub(super) fn changed(change: &Change) -> Option<Arc<Notification>> {
    let touched = change.collections.iter().filter(|it| !NOT_REPORTED.contains(&it.collection));
    let collections: Vec<Value> = touched
        .map(|it| {
            let ids = match &it.ids {
                ChangedIds::Few(ids) => json!(ids),
                ChangedIds::Many => Value::Null,
            };
            json!({ "collection": it.collection, "ids": ids })
        })
        .collect();
    if collections.is_empty() {
        return None;
    }
    let version = change.version;
    Some(Notification::for_admins(
        json!({ "type": "changed", "version": version, "collections": collections }),
    ))
}

/// Builds the notification of missed commits, after which clients should reload everything.
pub(super) fn changed_unknown() -> Arc<Notification> {
    Notification::for_admins(json!({ "type": "changed", "version": null, "collections": null }))
}

/// Builds the notification that the hub itself missed events.
pub(super) fn lost(count: u64) -> Arc<Notification> {
    Arc::new(Notification { admin: missed(count), others: ForOthers::Nothing })
}

/// Adds the code of the message, if it has one.
fn with_code(mut content: Value) -> Value {
    add_code(&mut content, "message");
    content
}

/// Builds the content of the notification of the progress of a playlist refresh.
pub(super) fn refresh(progress: &RefreshStatus, now_ms: i64) -> Value {
    let (action, status, percent) = match (progress.phase, progress.outcome) {
        (RefreshPhase::Waiting, _) => ("waiting", "fetching", 0),
        (RefreshPhase::Fetching, _) => ("downloading", "fetching", 10),
        (RefreshPhase::Parsing, _) => ("parsing", "parsing", 30),
        (RefreshPhase::Comparing, _) => ("comparing", "parsing", 70),
        (RefreshPhase::Writing, _) => ("writing", "parsing", 85),
        (RefreshPhase::Done, Some(RefreshOutcome::Success)) => ("done", "success", 100),
        (RefreshPhase::Done, Some(RefreshOutcome::AwaitingConfirmation)) => {
            ("done", "pending_confirmation", 100)
        }
        (RefreshPhase::Done, _) => ("done", "error", 100),
    };
    with_code(json!({
        "type": "m3u_refresh",
        "account": progress.account,
        "job": progress.job,
        "action": action,
        "status": status,
        "progress": percent,
        "message": progress.message,
        "bytes": progress.bytes,
        "streams_processed": progress.entries,
        "streams_created": progress.n_new,
        "streams_updated": progress.n_changed,
        "streams_stale": progress.n_gone,
        "started_at": iso_millis(progress.started_at),
        "elapsed_time": now_ms.saturating_sub(progress.started_at).max(0) as f64 / 1000.0,
    }))
}

/// Builds the content of the notification of the progress of a refresh of films and series.
pub(super) fn vod_refresh(progress: &VodRefreshStatus, now_ms: i64) -> Value {
    let (action, status) = match (progress.phase, progress.outcome) {
        (VodPhase::Waiting, _) => ("waiting", "fetching"),
        (VodPhase::Categories, _) => ("categories", "fetching"),
        (VodPhase::Movies, _) => ("movies", "parsing"),
        (VodPhase::Series, _) => ("series", "parsing"),
        (VodPhase::Done, Some(RefreshOutcome::Success)) => ("done", "success"),
        (VodPhase::Done, Some(RefreshOutcome::AwaitingConfirmation)) => ("done", "pending_confirmation"),
        (VodPhase::Done, _) => ("done", "error"),
    };
    with_code(json!({
        "type": "vod_refresh",
        "account": progress.account,
        "job": progress.job,
        "action": action,
        "status": status,
        "message": progress.message,
        "titles_processed": progress.n_titles,
        "titles_created": progress.n_new,
        "titles_updated": progress.n_changed,
        "titles_stale": progress.n_gone,
        "started_at": iso_millis(progress.started_at),
        "elapsed_time": now_ms.saturating_sub(progress.started_at).max(0) as f64 / 1000.0,
    }))
}

/// Builds the notification of how far the episodes of an account are loaded in the background.
pub(super) fn episode_load(load: &EpisodeLoad) -> Arc<Notification> {
    Notification::for_admins(json!({
        "type": "vod_episodes",
        "account": load.account,
        "series_done": load.n_done,
        "series_left": load.n_left,
        "progress_percent": progress_percent(load.n_done + load.n_left, load.n_left),
    }))
}

/// Builds the state of an integration.
pub(super) fn integration_state(status: &IntegrationStatus) -> Arc<Notification> {
    Notification::for_admins(json!({
        "type": "integration_state",
        "success": status.paused.is_none(),
        "integration": status.id,
        "waiting": status.n_waiting,
        "dead": status.n_dead,
        "failing_since": status.failing_since.map(iso_millis),
        "paused_reason": status.paused,
    }))
}

/// Builds a notification of a plugin: its state, one of its runs, or a message of its own.
pub(super) fn plugin(happened: &PluginNotification) -> Arc<Notification> {
    Notification::for_admins(match happened {
        PluginNotification::State { key, status } => json!({
            "type": "plugin_state",
            "success": status.reason.is_none(),
            "key": key,
            "state": status.state,
            "reason": status.reason,
            "since": iso_millis(status.since),
            "runs": status.runs,
            "waiting": status.waiting,
        }),
        PluginNotification::Run(run) => {
            let (status, message) = match &run.stage {
                RunStage::Waiting => ("waiting", None),
                RunStage::Running => ("running", None),
                RunStage::Ended(RunResult::Returned(value)) => {
                    ("ended", value.get("message").and_then(Value::as_str).map(str::to_owned))
                }
                RunStage::Ended(RunResult::UnknownAction) => ("unknown_action", None),
                RunStage::Ended(RunResult::Raised(text)) => ("failed", Some(text.clone())),
                RunStage::Ended(RunResult::Crashed(text)) => ("crashed", Some(text.clone())),
                RunStage::Ended(RunResult::TimedOut) => ("timed_out", None),
                RunStage::Ended(RunResult::Cancelled) => ("cancelled", None),
                RunStage::Ended(RunResult::Stopped) => ("stopped", None),
            };
            json!({
                "type": "plugin_run",
                "success": !matches!(status, "failed" | "crashed" | "timed_out" | "unknown_action"),
                "key": run.key,
                "run": run.id,
                "action": run.action,
                "cause": run.cause.name(),
                "status": status,
                "percent": run.percent,
                "message": message.or_else(|| run.message.clone()),
            })
        }
        PluginNotification::Message { key, message } => {
            json!({"type": "plugin_message", "success": true, "key": key, "message": message})
        }
    })
}

/// Builds the notification of how far an update of the details of titles is.
pub(super) fn details_update(update: &DetailsUpdate) -> Arc<Notification> {
    Notification::for_admins(json!({
        "type": "vod_details",
        "job": update.job,
        "status": if update.is_done() { "done" } else { "running" },
        "message": update.message,
        "requests": update.n_questions,
        "done": update.n_done,
        "failed": update.n_failed,
        "left": update.n_left(),
        "progress_percent": progress_percent(update.n_questions, update.n_left()),
        "started_at": iso_millis(update.started_at),
    }))
}

/// Builds the content of the notification of the progress of a guide refresh.
pub(super) fn guide_refresh(progress: &GuideRefreshStatus, now_ms: i64) -> Value {
    let (action, status) = match (progress.phase, progress.outcome) {
        (GuidePhase::Waiting, _) => ("waiting", "fetching"),
        (GuidePhase::Fetching, _) => ("downloading", "fetching"),
        (GuidePhase::Parsing, _) => ("parsing_programs", "parsing"),
        (GuidePhase::Writing, _) => ("writing", "parsing"),
        (GuidePhase::Done, Some(GuideStatus::Success)) => ("done", "success"),
        (GuidePhase::Done, _) => ("done", "error"),
    };
    with_code(json!({
        "type": "epg_refresh",
        "source": progress.source,
        "job": progress.job,
        "action": action,
        "status": status,
        "progress": progress.percent,
        "message": progress.message,
        "channels": progress.n_channels,
        "programs": progress.n_programmes,
        "started_at": iso_millis(progress.started_at),
        "elapsed_time": now_ms.saturating_sub(progress.started_at).max(0) as f64 / 1000.0,
    }))
}

/// Builds the notifications of matching channels with guide channels.
pub(super) fn matching(report: &MatchReport) -> Vec<Arc<Notification>> {
    let data = match report {
        MatchReport::Progress { total, matched, remaining, current } => json!({
            "type": "epg_matching_progress",
            "total": total,
            "matched": matched,
            "remaining": remaining,
            "current_channel": current,
            "stage": "matching",
            "progress_percent": progress_percent(*total, *remaining),
        }),
        MatchReport::Finished { is_complete, matched, message } => {
            let completed = json!({
                "type": "epg_matching_progress",
                "matched": matched,
                "remaining": 0,
                "current_channel": "",
                "stage": "completed",
                "progress_percent": 100,
            });
            let finished = json!({
                "type": "epg_match",
                "success": is_complete,
                "matches_count": matched,
                // Clients write the links of this list again, which would teach them as links of an admin.
                "associations": [],
                "refresh_channels": true,
                "message": message,
            });
            return vec![Notification::for_admins(completed), Notification::for_admins(finished)];
        }
        MatchReport::Single { id, channel, is_matched, message } => json!({
            "type": "single_channel_epg_match",
            "channel_id": id,
            "matched": is_matched,
            "message": message,
            "channel": channel,
        }),
    };
    vec![Notification::for_admins(data)]
}

/// Returns the progress of a run in percent, rounded down.
fn progress_percent(total: usize, remaining: usize) -> usize {
    ((total - remaining.min(total)) * 100).checked_div(total).unwrap_or(100)
}

#[cfg(test)]
mod tests;
