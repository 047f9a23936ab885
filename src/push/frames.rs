//! What frames look like: `{"type": "update", "data": {"type": KIND, …}}`.

use std::sync::Arc;

use actors::{Phase, Progress};
use domain::account::Outcome;
use domain::event::{Event, EventBody};
use domain::time::iso_millis;
use domain::user::User;
use serde_json::{Map, Value, json};
use storage::{Change, Ids};
use uuid::Uuid;

/// Collections that no interface shows.
const UNTOLD: [&str; 1] = ["server_keys"];

/// Something that happened, as each audience hears it.
#[derive(Debug)]
pub(super) struct Happening {
    pub(super) admin: String,
    /// For whoever may see this channel.
    pub(super) standard: Option<(Uuid, String)>,
}

impl Happening {
    fn for_admins(data: Value) -> Arc<Self> {
        Arc::new(Self { admin: update(&data), standard: None })
    }
}

/// A frame with this in it.
pub(super) fn update(data: &Value) -> String {
    json!({ "type": "update", "data": data }).to_string()
}

/// The first frame of every socket.
pub(super) fn established(user: &User) -> String {
    let data = json!({
        "type": "connection_established",
        "success": true,
        "message": "connected",
        "version": env!("CARGO_PKG_VERSION"),
        "user_level": user.effective_level(),
    });
    json!({ "type": "connection_established", "data": data }).to_string()
}

/// The other side was too slow for so many happenings.
pub(super) fn missed(count: u64) -> String {
    update(&json!({ "type": "missed", "count": count }))
}

/// What is said to whoever sends something.
pub(super) fn answer(text: Option<&str>) -> String {
    let sent = text.and_then(|it| serde_json::from_str::<Value>(it).ok());
    match sent.as_ref().and_then(|it| it["type"].as_str()) {
        Some("ping") => json!({ "type": "pong", "data": { "type": "pong" } }).to_string(),
        _ => update(&json!({ "type": "error", "message": "this socket only tells; ask the REST interface" })),
    }
}

/// An event, under its name. Those who are no admins hear of channels alone, and nothing of viewers and sources.
pub(super) fn event(event: &Event) -> Option<Arc<Happening>> {
    let kind = match &event.body {
        // How a refresh goes is told by `refresh`, its end included.
        EventBody::M3uRefresh { .. } => return None,
        EventBody::RecordingStart { .. } => "recording_started",
        EventBody::RecordingEnd { .. } => "recording_ended",
        body => body.name(),
    };
    let mut data = serde_json::to_value(event).ok()?;
    data["type"] = json!(kind);
    data["success"] = json!(true);
    let is_for_all = matches!(
        event.body,
        EventBody::ChannelStart { .. }
            | EventBody::ChannelStop { .. }
            | EventBody::ChannelReconnect { .. }
            | EventBody::ChannelError { .. }
            | EventBody::ChannelFailover { .. }
            | EventBody::StreamSwitch { .. }
    );
    let standard = event.body.channel().filter(|_| is_for_all).map(|channel| {
        let keys =
            ["type", "success", "event_type", "timestamp", "channel_id", "channel_name", "channel_number"];
        let told: Map<String, Value> =
            keys.map(|key| (key.to_owned(), data[key].clone())).into_iter().collect();
        (channel.uuid, update(&Value::Object(told)))
    });
    Some(Arc::new(Happening { admin: update(&data), standard }))
}

/// Which records a commit touched; `ids` is `null` where they are so many that the list is read again.
pub(super) fn changed(change: &Change) -> Option<Arc<Happening>> {
    let touched = change.touched.iter().filter(|it| !UNTOLD.contains(&it.collection));
    let collections: Vec<Value> = touched
        .map(|it| {
            let ids = match &it.ids {
                Ids::Few(ids) => json!(ids),
                Ids::Many => Value::Null,
            };
            json!({ "collection": it.collection, "ids": ids })
        })
        .collect();
    if collections.is_empty() {
        return None;
    }
    let version = change.version;
    Some(Happening::for_admins(json!({ "type": "changed", "version": version, "collections": collections })))
}

/// So much was committed at once that nobody knows what: everything is read again.
pub(super) fn changed_somehow() -> Arc<Happening> {
    Happening::for_admins(json!({ "type": "changed", "version": null, "collections": null }))
}

/// So many happenings were lost to everybody.
pub(super) fn lost(count: u64) -> Arc<Happening> {
    Arc::new(Happening { admin: missed(count), standard: None })
}

/// How far a refresh of a playlist is.
pub(super) fn refresh(progress: &Progress, now_ms: i64) -> Arc<Happening> {
    let (action, status) = match (progress.phase, progress.outcome) {
        (Phase::Waiting, _) => ("waiting", "idle"),
        (Phase::Fetching, _) => ("downloading", "fetching"),
        (Phase::Parsing, _) => ("parsing", "parsing"),
        (Phase::Comparing, _) => ("comparing", "parsing"),
        (Phase::Writing, _) => ("writing", "parsing"),
        (Phase::Done, Some(Outcome::Success)) => ("done", "success"),
        (Phase::Done, Some(Outcome::AwaitingConfirmation)) => ("done", "awaiting_confirmation"),
        (Phase::Done, _) => ("done", "error"),
    };
    Happening::for_admins(json!({
        "type": "m3u_refresh",
        "account": progress.account,
        "job": progress.job,
        "action": action,
        "status": status,
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
