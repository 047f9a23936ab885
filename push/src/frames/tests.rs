//! Frames as clients get them.

use domain::event::{CallerRef, ChannelRef, ClientRef, EventBody, RecordingRef, RefreshRef};
use domain::ids::{AccountId, ChannelId, GuideSourceId};

use super::*;

#[test]
fn the_end_of_a_run_lists_no_links() {
    let message = "Linked 2 of 3 channels".to_owned();
    let report = MatchReport::Finished { is_complete: true, matched: 2, message };
    let frames: Vec<Value> =
        matching(&report).iter().map(|it| serde_json::from_str(&it.admin).unwrap()).collect();
    assert_eq!(
        (&frames[0]["data"]["stage"], &frames[0]["data"]["progress_percent"]),
        (&json!("completed"), &json!(100))
    );
    let end = json!({ "type": "epg_match", "success": true, "matches_count": 2, "associations": [],
        "refresh_channels": true, "message": "Linked 2 of 3 channels" });
    assert_eq!(frames[1]["data"], end);
    assert!(matching(&report).iter().all(|it| it.others == ForOthers::Nothing));
    let progress =
        MatchReport::Progress { total: 1_000, matched: 400, remaining: 500, current: "News".to_owned() };
    let frame: Value = serde_json::from_str(&matching(&progress)[0].admin).unwrap();
    let data = json!({ "type": "epg_matching_progress", "total": 1_000, "matched": 400, "remaining": 500,
        "current_channel": "News", "stage": "matching", "progress_percent": 50 });
    assert_eq!(frame["data"], data);
}

const MINUTE: i64 = 60_000;

fn recording(status: RecordingStatus) -> Recording {
    let (id, channel) = (RecordingId(7), ChannelId(1));
    let new = Recording::new(id, channel, Uuid::from_u128(9), "News", 0..60 * MINUTE, 0);
    Recording { status, owner: Some(UserId(4)), ..new }
}

/// Returns the data of frames, which the owner of the recording gets too.
fn data_of(frames: &[Arc<Notification>]) -> Vec<Value> {
    for it in frames {
        assert_eq!(it.others, ForOthers::OfOwners(vec![(UserId(4), it.admin.clone())]));
    }
    let data = |it: &Arc<Notification>| serde_json::from_str::<Value>(&it.admin).unwrap()["data"].clone();
    frames.iter().map(data).collect()
}

#[test]
fn a_change_of_a_recording_is_reported_as_what_happened_to_it() {
    use RecordingStatus::{Completed, Recording as Running, Scheduled, Stopped};
    let later = |status, minutes: i64| Recording { end: (60 + minutes) * MINUTE, ..recording(status) };
    let named = |kind: &str, members: Value| {
        let mut data = json!({ "type": kind, "success": true, "recording_id": "7", "channel": "News",
            "channel_id": Uuid::from_u128(9) });
        data.as_object_mut().unwrap().extend(members.as_object().cloned().unwrap_or_default());
        data
    };
    let updated = || named("recording_updated", Value::Null);
    let extended = |minutes: i64, end: &str| {
        let members = json!({ "extra_minutes": minutes, "new_end_time": end });
        named("recording_extended", members)
    };
    let cancelled = |it: bool| named("recording_cancelled", json!({ "was_in_progress": it }));
    let cases = [
        (None, None, vec![]),
        (None, Some(recording(Scheduled)), vec![updated()]),
        (Some(recording(Scheduled)), Some(recording(Scheduled)), vec![]),
        (Some(recording(Scheduled)), None, vec![cancelled(false)]),
        (Some(recording(Running)), None, vec![cancelled(true)]),
        (
            Some(recording(Running)),
            Some(recording(Stopped)),
            vec![updated(), named("recording_stopped", Value::Null)],
        ),
        (Some(recording(Running)), Some(recording(Completed)), vec![updated()]),
        (
            Some(recording(Running)),
            Some(later(Running, 15)),
            vec![updated(), extended(15, "1970-01-01T01:15:00.000Z")],
        ),
        (Some(later(Running, 15)), Some(recording(Running)), vec![updated()]),
        (Some(recording(Running)), Some(later(Completed, 15)), vec![updated()]),
    ];
    for (before, after, expected) in cases {
        let frames = recording_changed(before.as_ref(), after.as_ref());
        assert_eq!(data_of(&frames), expected, "{before:?} {after:?}");
    }
}

#[test]
fn a_change_of_many_recordings_is_counted_for_admins() {
    let frame = recordings_refreshed(RecordingCounts { scheduled: 30, removed: 2, rescheduled: 1 });
    let data = &serde_json::from_str::<Value>(&frame.admin).unwrap()["data"];
    let expected = json!({ "type": "recordings_refreshed", "success": true, "scheduled": 30,
        "removed": 2, "rescheduled": 1 });
    assert_eq!(data, &expected);
    let ForOthers::ForRecorders(text) = &frame.others else { panic!("{frame:?}") };
    let data = &serde_json::from_str::<Value>(text).unwrap()["data"];
    assert_eq!(data, &json!({ "type": "recordings_refreshed", "success": true }));
}

#[test]
fn each_user_gets_the_progress_of_their_own_recordings() {
    let running = [
        (RecordingId(1), None, 10),
        (RecordingId(2), Some(UserId(4)), 20),
        (RecordingId(3), Some(UserId(5)), 30),
    ];
    let frame = recording_progress(&running);
    let sizes = |text: &str| {
        let data = serde_json::from_str::<Value>(text).unwrap()["data"].clone();
        let rows = data["recordings"].as_array().unwrap().iter();
        rows.map(|it| it["bytes_written"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&frame.admin), [10, 20, 30]);
    let ForOthers::OfOwners(own) = &frame.others else { panic!("{frame:?}") };
    let own: Vec<_> = own.iter().map(|it| (it.0, sizes(&it.1))).collect();
    assert_eq!(own, [(UserId(4), vec![20]), (UserId(5), vec![30])]);
}

#[test]
fn the_owner_of_a_recording_gets_its_events_without_the_path() {
    let channel = ChannelRef { uuid: Uuid::from_u128(7), name: "News".into(), number: None };
    let recording = RecordingRef {
        id: 3,
        owner: Some(UserId(4)),
        program_title: "The news".into(),
        file_path: "/srv/a.ts".into(),
        path_changes: false,
    };
    let started = event(&Event { at: 0, body: EventBody::RecordingStart { channel, recording } }).unwrap();
    let admin = &serde_json::from_str::<Value>(&started.admin).unwrap()["data"];
    assert_eq!((&admin["channel"], &admin["file_path"]), (&json!("News"), &json!("/srv/a.ts")));
    let ForOthers::OfOwners(own) = &started.others else { panic!("{started:?}") };
    let data = &serde_json::from_str::<Value>(&own[0].1).unwrap()["data"];
    assert_eq!(
        (own[0].0, &data["type"], &data["recording_id"]),
        (UserId(4), &json!("recording_started"), &json!("3"))
    );
    assert!(!own[0].1.contains("/srv"), "{}", own[0].1);
}

#[test]
fn users_who_are_not_admins_get_only_events_of_channels() {
    let channel = || ChannelRef { uuid: Uuid::from_u128(7), name: "News".into(), number: None };
    let ip = "192.0.2.9".parse().unwrap();
    let client = || ClientRef { connection_id: 1, ip, user_agent: "VLC".into(), user: Some("anna".into()) };
    let attempt = || CallerRef { user: Some("anna".into()), ip, user_agent: "VLC".into() };
    let recording = || RecordingRef {
        id: 3,
        owner: None,
        program_title: "The news".into(),
        file_path: "/srv/a.ts".into(),
        path_changes: false,
    };
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
        reason: String::new(),
    };
    let searched = EventBody::ComskipStatus {
        channel: channel(),
        recording: recording(),
        status: "skipped",
        detail: "no commercials".to_owned(),
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
    let guide = EventBody::EpgRefresh {
        source: source(),
        channels: 1,
        programs_updated: 1,
        skipped_programs: 1,
        unmapped_channels: 1,
        is_unchanged: false,
        duration_seconds: 1,
    };
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
        (searched, "comskip_status", false),
        (guide, "epg_refreshed", false),
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
    let mut before = 0;
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
        let notification = Notification::for_admins(refresh(&progress, 3_500));
        let data = &serde_json::from_str::<Value>(&notification.admin).unwrap()["data"];
        assert_eq!((&data["action"], &data["status"]), (&json!(action), &json!(status)));
        let percent = data["progress"].as_u64().unwrap();
        assert!(
            percent >= before && (percent == 100) == (action == "done"),
            "{action}: {percent} after {before}"
        );
        before = percent;
        assert_eq!((&data["account"], &data["elapsed_time"]), (&json!(2), &json!(2.5)));
        assert_eq!(notification.others, ForOthers::Nothing);
    }
}

#[test]
fn a_frame_of_films_and_series_has_the_current_step_and_the_outcome() {
    for (phase, outcome, action, status) in [
        (VodPhase::Waiting, None, "waiting", "fetching"),
        (VodPhase::Categories, None, "categories", "fetching"),
        (VodPhase::Movies, None, "movies", "parsing"),
        (VodPhase::Series, None, "series", "parsing"),
        (VodPhase::Done, Some(RefreshOutcome::Success), "done", "success"),
        (VodPhase::Done, Some(RefreshOutcome::AwaitingConfirmation), "done", "pending_confirmation"),
        (VodPhase::Done, Some(RefreshOutcome::Error), "done", "error"),
        (VodPhase::Done, None, "done", "error"),
    ] {
        let progress = VodRefreshStatus {
            account: AccountId(2),
            job: Uuid::nil(),
            phase,
            n_titles: 8,
            n_new: 7,
            n_changed: 6,
            n_gone: 5,
            outcome,
            message: String::new(),
            started_at: 1_000,
        };
        let notification = Notification::for_admins(vod_refresh(&progress, 3_500));
        let data = &serde_json::from_str::<Value>(&notification.admin).unwrap()["data"];
        assert_eq!((&data["type"], &data["action"]), (&json!("vod_refresh"), &json!(action)));
        assert_eq!((&data["status"], &data["elapsed_time"]), (&json!(status), &json!(2.5)));
        assert_eq!(notification.others, ForOthers::Nothing);
    }
    let load = episode_load(&EpisodeLoad { account: AccountId(2), n_done: 3, n_left: 1 });
    let data = &serde_json::from_str::<Value>(&load.admin).unwrap()["data"];
    assert_eq!((&data["series_left"], &data["progress_percent"]), (&json!(1), &json!(75)));
    for (n_done, status, percent) in [(1, "running", 50), (3, "done", 100)] {
        let update = DetailsUpdate {
            job: Uuid::nil(),
            n_questions: 4,
            n_done,
            n_failed: 1,
            message: String::new(),
            started_at: 1_000,
        };
        let frame = details_update(&update);
        let data = &serde_json::from_str::<Value>(&frame.admin).unwrap()["data"];
        assert_eq!((&data["type"], &data["status"]), (&json!("vod_details"), &json!(status)));
        assert_eq!(data["progress_percent"], percent);
        assert_eq!(frame.others, ForOthers::Nothing);
    }
}

#[test]
fn a_guide_refresh_frame_has_the_current_step_its_share_and_the_outcome() {
    for (phase, outcome, action, status) in [
        (GuidePhase::Waiting, None, "waiting", "fetching"),
        (GuidePhase::Fetching, None, "downloading", "fetching"),
        (GuidePhase::Parsing, None, "parsing_programs", "parsing"),
        (GuidePhase::Writing, None, "writing", "parsing"),
        (GuidePhase::Done, Some(GuideStatus::Success), "done", "success"),
        (GuidePhase::Done, Some(GuideStatus::Error), "done", "error"),
        (GuidePhase::Done, None, "done", "error"),
    ] {
        let progress = GuideRefreshStatus {
            source: GuideSourceId(2),
            job: Uuid::nil(),
            phase,
            percent: 42,
            n_channels: 7,
            n_programmes: 8,
            outcome,
            message: String::new(),
            started_at: 1_000,
        };
        let notification = Notification::for_admins(guide_refresh(&progress, 3_500));
        let data = &serde_json::from_str::<Value>(&notification.admin).unwrap()["data"];
        assert_eq!((&data["action"], &data["status"]), (&json!(action), &json!(status)));
        assert_eq!((&data["source"], &data["progress"]), (&json!(2), &json!(42)));
        assert_eq!((&data["channels"], &data["programs"]), (&json!(7), &json!(8)));
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

/// Users of level 1 get what they may see: the states of visible channels, and that the gateway restarts. Their own recordings
/// are tested above, because samples of recordings have no owner.
#[test]
fn only_the_states_of_channels_reach_users_who_are_not_admins() {
    let of_channels = [
        "channel_start",
        "channel_stop",
        "channel_reconnect",
        "channel_error",
        "channel_failover",
        "stream_switch",
        "stream_lacking",
    ];
    for body in EventBody::samples() {
        let name = body.name();
        let notification = event(&Event { at: 0, body }).unwrap();
        assert!(notification.admin.contains(&format!("\"event_type\":\"{name}\"")), "{}", notification.admin);
        match &notification.others {
            ForOthers::OfChannel(_, text) => {
                assert!(of_channels.contains(&name), "{name}");
                for hidden in ["192.0.2.1", "tv.example", "Provider", "guest", "/data", "stall"] {
                    assert!(!text.contains(hidden), "{hidden}: {text}");
                }
            }
            ForOthers::ForAll(_) => assert_eq!(name, "restore_pending"),
            others => {
                assert!(*others == ForOthers::Nothing && !of_channels.contains(&name), "{name}: {others:?}")
            }
        }
    }
}
