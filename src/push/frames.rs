//! The JSON of frames: `{"type": "update", "data": {"type": KIND, …}}`.

use std::sync::Arc;

use actors::{RefreshPhase, RefreshStatus};
use domain::account::RefreshOutcome;
use domain::event::{Event, EventBody};
use domain::time::iso_millis;
use domain::user::{User, UserLevel};
use serde_json::{Map, Value, json};
use storage::{Change, ChangedIds, StopReason};
use uuid::Uuid;

use crate::rest::frame::refuse::refused_writes;

/// Collections whose changes are not reported: internal ones, those that change by themselves, and the audit trail, which
/// grows with every change.
const NOT_REPORTED: [&str; 5] = ["server_keys", "audit", "undo_parts", "stream_health", "dismissed_notices"];
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
    /// For every user.
    ForAll(String),
}

impl Notification {
    fn for_admins(data: Value) -> Arc<Self> {
        Arc::new(Self { admin: update(&data), others: ForOthers::Nothing })
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
        data["store_stopped"] = json!(stop_reason.map(refused_writes));
    }
    json!({ "type": "connection_established", "data": data }).to_string()
}

/// Builds the frame that tells a slow client how many notifications it missed.
pub(super) fn missed(count: u64) -> String {
    update(&json!({ "type": "missed", "count": count }))
}

/// Builds the reply to a message from the client.
pub(super) fn reply(text: Option<&str>) -> String {
    let sent = text.and_then(|it| serde_json::from_str::<Value>(it).ok());
    match sent.as_ref().and_then(|it| it["type"].as_str()) {
        Some("ping") => json!({ "type": "pong", "data": { "type": "pong" } }).to_string(),
        _ => update(&json!({ "type": "error", "message": "read-only socket; use the REST API" })),
    }
}

/// Builds the notification of an event. Users who are not admins get only events of channels, without viewers and
/// sources, and that a back-up is about to be restored.
pub(super) fn event(event: &Event) -> Option<Arc<Notification>> {
    let kind = match &event.body {
        // The type `m3u_refresh` is already used for the progress frames of `refresh`.
        EventBody::M3uRefresh { .. } => "m3u_refreshed",
        EventBody::RecordingStart { .. } => "recording_started",
        EventBody::RecordingEnd { .. } => "recording_ended",
        body => body.name(),
    };
    let mut data = serde_json::to_value(event).ok()?;
    data["type"] = json!(kind);
    data["success"] = json!(!matches!(event.body, EventBody::StoreStopped { .. }));
    let is_for_all = matches!(
        event.body,
        EventBody::ChannelStart { .. }
            | EventBody::ChannelStop { .. }
            | EventBody::ChannelReconnect { .. }
            | EventBody::ChannelError { .. }
            | EventBody::ChannelFailover { .. }
            | EventBody::StreamSwitch { .. }
    );
    let only = |keys: &[&str]| {
        let fields: Map<String, Value> =
            keys.iter().map(|key| ((*key).to_owned(), data[*key].clone())).collect();
        update(&Value::Object(fields))
    };
    let others = match (&event.body, event.body.channel()) {
        // Not the name of the back-up.
        (EventBody::RestorePending { .. }, _) => {
            ForOthers::ForAll(only(&["type", "success", "event_type", "timestamp", "restarts_now"]))
        }
        (_, Some(channel)) if is_for_all => ForOthers::OfChannel(
            channel.uuid,
            only(&[
                "type",
                "success",
                "event_type",
                "timestamp",
                "channel_id",
                "channel_name",
                "channel_number",
            ]),
        ),
        _ => ForOthers::Nothing,
    };
    Some(Arc::new(Notification { admin: update(&data), others }))
}

/// Builds the notification that notices were written, changed or deleted. Each user reads those that are for them.
pub(super) fn notices_changed(change: &Change) -> Option<Arc<Notification>> {
    let has_notices = change.collections.iter().any(|it| it.collection == NOTICES);
    has_notices.then(|| Notification::for_all(&json!({ "type": "notifications_changed", "success": true })))
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

/// Builds the notification of the progress of a playlist refresh.
pub(super) fn refresh(progress: &RefreshStatus, now_ms: i64) -> Arc<Notification> {
    let (action, status) = match (progress.phase, progress.outcome) {
        (RefreshPhase::Waiting, _) => ("waiting", "fetching"),
        (RefreshPhase::Fetching, _) => ("downloading", "fetching"),
        (RefreshPhase::Parsing, _) => ("parsing", "parsing"),
        (RefreshPhase::Comparing, _) => ("comparing", "parsing"),
        (RefreshPhase::Writing, _) => ("writing", "parsing"),
        (RefreshPhase::Done, Some(RefreshOutcome::Success)) => ("done", "success"),
        (RefreshPhase::Done, Some(RefreshOutcome::AwaitingConfirmation)) => ("done", "pending_confirmation"),
        (RefreshPhase::Done, _) => ("done", "error"),
    };
    Notification::for_admins(json!({
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

#[cfg(test)]
mod tests {
    use domain::event::{CallerRef, ChannelRef, ClientRef, RecordingRef, RefreshRef};
    use domain::ids::AccountId;

    use super::*;

    #[test]
    fn users_who_are_not_admins_get_only_events_of_channels() {
        let channel = || ChannelRef { uuid: Uuid::from_u128(7), name: "News".into(), number: None };
        let ip = "192.0.2.9".parse().unwrap();
        let client =
            || ClientRef { connection_id: 1, ip, user_agent: "VLC".into(), user: Some("anna".into()) };
        let attempt = || CallerRef { user: Some("anna".into()), ip, user_agent: "VLC".into() };
        let recording =
            || RecordingRef { id: 3, program_title: "The news".into(), file_path: "/srv/a.ts".into() };
        let source = || RefreshRef { id: 4, name: "panel".into() };
        let error_message = "no stream of panel works".to_owned();
        let error = EventBody::ChannelError { channel: channel(), error_message, stream: None };
        let reason = String::new();
        let stop = EventBody::ChannelStop {
            channel: channel(),
            stream: None,
            reason: "idle".into(),
            runtime_seconds: 1,
            total_bytes: 1,
        };
        let gone = EventBody::ClientDisconnect {
            channel: channel(),
            client: client(),
            reason: reason.clone(),
            duration_seconds: 1,
            bytes_sent: 1,
        };
        let recorded = EventBody::RecordingEnd {
            channel: channel(),
            recording: recording(),
            duration_seconds: 1,
            file_size_bytes: 1,
            interrupted: false,
        };
        let refreshed = EventBody::M3uRefresh {
            source: source(),
            total_processed: 3,
            streams_created: 1,
            streams_updated: 1,
            streams_stale: 1,
            streams_deleted: 1,
            duration_seconds: 1,
        };
        let guide = EventBody::EpgRefresh { source: source(), programs_updated: 1, duration_seconds: 1 };
        // (event, its type, whether all users get it)
        let cases = [
            (error, "channel_error", true),
            (stop, "channel_stop", true),
            (EventBody::ClientConnect { channel: channel(), client: client() }, "client_connect", false),
            (gone, "client_disconnect", false),
            (
                EventBody::RecordingStart { channel: channel(), recording: recording() },
                "recording_started",
                false,
            ),
            (recorded, "recording_ended", false),
            (guide, "epg_refresh", false),
            (refreshed, "m3u_refreshed", false),
            (EventBody::LoginFailed { attempt: attempt(), reason }, "login_failed", false),
        ];
        for (body, kind, is_for_all) in cases {
            let notification = event(&Event { at: 0, body }).unwrap();
            let frame: Value = serde_json::from_str(&notification.admin).unwrap();
            assert_eq!((&frame["type"], &frame["data"]["type"]), (&json!("update"), &json!(kind)));
            assert_eq!(frame["data"]["success"], true);
            assert_eq!(notification.others != ForOthers::Nothing, is_for_all, "{kind}");
            if let ForOthers::OfChannel(channel, text) = &notification.others {
                assert_eq!(*channel, Uuid::from_u128(7));
                let data: Value = serde_json::from_str(text).unwrap();
                assert_eq!(
                    (&data["data"]["type"], data["data"]["channel_name"].as_str()),
                    (&json!(kind), Some("News"))
                );
                assert!(!text.contains("panel") && !text.contains("idle"), "{text}");
            }
        }
    }

    #[test]
    fn every_user_is_told_about_a_restoration_without_the_name_of_the_back_up() {
        let body = EventBody::RestorePending { backup: "nightly.zip".into(), restarts_now: true };
        let notification = event(&Event { at: 0, body }).unwrap();
        assert!(notification.admin.contains("nightly.zip"));
        let ForOthers::ForAll(text) = &notification.others else { panic!("{notification:?}") };
        let data = &serde_json::from_str::<Value>(text).unwrap()["data"];
        assert_eq!((&data["type"], &data["restarts_now"]), (&json!("restore_pending"), &json!(true)));
        assert!(!text.contains("nightly"), "{text}");
    }

    #[test]
    fn a_refresh_frame_has_the_current_step_and_the_outcome() {
        for (phase, outcome, action, status) in [
            (RefreshPhase::Waiting, None, "waiting", "fetching"),
            (RefreshPhase::Fetching, None, "downloading", "fetching"),
            (RefreshPhase::Parsing, None, "parsing", "parsing"),
            (RefreshPhase::Comparing, None, "comparing", "parsing"),
            (RefreshPhase::Writing, None, "writing", "parsing"),
            (RefreshPhase::Done, Some(RefreshOutcome::Success), "done", "success"),
            (RefreshPhase::Done, Some(RefreshOutcome::Error), "done", "error"),
            (RefreshPhase::Done, Some(RefreshOutcome::AwaitingConfirmation), "done", "pending_confirmation"),
            (RefreshPhase::Done, None, "done", "error"),
        ] {
            let progress = RefreshStatus {
                account: AccountId(2),
                job: Uuid::nil(),
                phase,
                bytes: 9,
                entries: 8,
                n_new: 7,
                n_changed: 6,
                n_gone: 5,
                outcome,
                message: String::new(),
                started_at: 1_000,
            };
            let notification = refresh(&progress, 3_500);
            let data = &serde_json::from_str::<Value>(&notification.admin).unwrap()["data"];
            assert_eq!((&data["action"], &data["status"]), (&json!(action), &json!(status)));
            assert_eq!((&data["account"], &data["elapsed_time"]), (&json!(2), &json!(2.5)));
            assert_eq!(notification.others, ForOthers::Nothing);
        }
    }

    #[test]
    fn changes_of_server_keys_and_of_the_audit_trail_are_not_reported() {
        let touched = |collection| storage::CollectionChange { collection, ids: ChangedIds::Few(vec![1]) };
        let change = |collections| changed(&Change { version: 3, collections });
        assert!(change(vec![touched("server_keys"), touched("audit")]).is_none());
        let notification = change(vec![touched("server_keys"), touched("users")]).unwrap();
        assert!(
            notification.admin.contains("users") && !notification.admin.contains("server_keys"),
            "{}",
            notification.admin
        );
        let many = storage::CollectionChange { collection: "streams", ids: ChangedIds::Many };
        assert!(change(vec![many]).unwrap().admin.contains("\"ids\":null"));
    }
}
