use actors::now_ms;
use domain::channel::Channel;
use domain::ids::{ChannelId, RecordingId, UserId};
use domain::recording::RecordingStatus::{
    Completed, Failed, Interrupted, Recording as Running, Scheduled, Stopped,
};
use domain::recording::{RecordedFile, Recording, RecordingStatus};
use domain::time::iso_millis;
use domain::user::UserLevel;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::testing::{Rest, STANDARD};

const LIST: &str = "/api/channels/recordings/";
const HOUR: i64 = 3_600_000;

/// Channel 1, and channel 4, which only admins see.
async fn stage() -> Rest {
    let rest = Rest::start().await;
    let channel =
        |id: u32| Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("channel {id}"), 0);
    let hidden = Channel { user_level: UserLevel::Admin, ..channel(4) };
    rest.put([channel(1), hidden]).await;
    rest
}

fn at(hours: i64) -> String {
    iso_millis(now_ms() + hours * HOUR)
}

async fn created(rest: &Rest, body: Value) -> Value {
    let made = rest.admin("POST", LIST, body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.body
}

/// Lets users of level 1 schedule recordings.
async fn allow(rest: &Rest) {
    let rows = rest.admin("GET", "/api/core/settings/", Value::Null).await.body;
    let row = rows["results"].as_array().unwrap().iter().find(|it| it["key"] == "dvr_settings").unwrap();
    let path = format!("/api/core/settings/{}/", row["id"]);
    let set = rest.admin("PATCH", &path, json!({ "value": { "standard_users_record": true } })).await;
    assert_eq!(set.status, 200, "{}", set.text);
}

/// Stores a recording that runs, without a recorder that would end it.
async fn running(rest: &Rest, id: u32, owner: u32) {
    let made = created(rest, json!({ "channel_id": 1, "start_time": at(-1), "end_time": at(1) })).await;
    let first = rest.models.recordings.load().get(made["id"].as_u64().unwrap() as u32).cloned().unwrap();
    let path = format!("/api/channels/recordings/{}/", made["id"]);
    assert_eq!(rest.admin("DELETE", &path, Value::Null).await.status, 204);
    let file = RecordedFile {
        path: "a/b.ts".to_owned(),
        bytes: 188,
        started_at: now_ms(),
        ended_at: None,
        node: None,
    };
    rest.put([Recording {
        id: RecordingId(id),
        owner: Some(UserId(owner)),
        status: RecordingStatus::Recording,
        file: Some(file),
        ..(*first).clone()
    }])
    .await;
}

#[tokio::test]
async fn both_forms_of_requests_create_a_recording_and_answers_have_both() {
    let rest = stage().await;
    let (start, end) = (at(1), at(2));
    let made =
        created(&rest, json!({ "channel_id": 1, "program_id": 77, "start_time": start, "end_time": end }))
            .await;
    assert_eq!(
        (&made["channel"], &made["channel_id"], &made["program_id"], &made["status"]),
        (&json!(1), &json!(1), &json!(77), &json!("scheduled")),
        "a programme that the guide does not know is kept: {made}"
    );
    assert_eq!((&made["start_time"], &made["end_time"]), (&json!(start), &json!(end)));
    assert_eq!(made["custom_properties"]["status"], "scheduled");
    let program =
        json!({ "program": { "title": "Evening", "season": 2, "episode": 3, "id": "x-1" }, "other": 1 });
    let body = json!({ "channel": 1, "start_time": start, "end_time": end, "custom_properties": program });
    let made = created(&rest, body).await;
    assert_eq!((&made["title"], &made["program_id"]), (&json!("Evening"), &json!("x-1")));
    assert_eq!(made["custom_properties"]["program"]["episode"], 3);
    let list = rest.admin("GET", &format!("{LIST}?search=even"), Value::Null).await;
    assert_eq!(list.body["count"], 1, "{}", list.text);
    // A client sends the whole record back.
    let path = format!("{LIST}{}/", made["id"]);
    let same = rest.admin("PUT", &path, made.clone()).await;
    assert_eq!((same.status, &same.body["title"]), (200, &json!("Evening")), "{}", same.text);
}

#[tokio::test]
async fn the_same_airing_is_one_recording() {
    let rest = stage().await;
    let (start, end) = (at(1), at(2));
    let body = |title: &str| {
        let program = json!({ "program": { "title": title } });
        json!({ "channel": 1, "start_time": start, "end_time": end, "custom_properties": program })
    };
    let made = created(&rest, body("Twice")).await;
    let again = rest.admin("POST", LIST, body("twice")).await;
    assert_eq!((again.status, &again.body["id"]), (409, &made["id"]), "{}", again.text);
    created(&rest, body("Another")).await;
    assert_eq!(rest.models.recordings.load().len(), 2);
    // One that is over does not count.
    assert_eq!(rest.admin("DELETE", &format!("{LIST}{}/", made["id"]), Value::Null).await.status, 204);
    created(&rest, body("Twice")).await;
}

#[tokio::test]
async fn the_same_airing_on_another_channel_is_refused_if_more_than_its_title_agrees() {
    let rest = stage().await;
    let (start, end) = (at(1), at(2));
    let body = |channel: u32, program: Value| {
        let properties = json!({ "program": program });
        json!({ "channel": channel, "start_time": start, "end_time": end, "custom_properties": properties })
    };
    let numbered = |episode: u32| json!({ "title": "Twice", "season": 2, "episode": episode });
    let made = created(&rest, body(1, numbered(3))).await;
    let twin = rest.admin("POST", LIST, body(4, numbered(3))).await;
    assert_eq!((twin.status, &twin.body["id"]), (409, &made["id"]), "{}", twin.text);
    let detail = twin.body["detail"].as_str().unwrap();
    assert!(detail.contains("channel 1"), "{detail}");
    created(&rest, body(4, numbered(4))).await;
    created(&rest, body(1, json!({ "title": "News" }))).await;
    created(&rest, body(4, json!({ "title": "News" }))).await;
    assert_eq!(rest.models.recordings.load().len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_requests_for_one_airing_on_two_channels_make_one_recording() {
    let rest = stage().await;
    for episode in 1..=20 {
        let body = |channel: u32| {
            let program = json!({ "title": "Twice", "season": 2, "episode": episode });
            let properties = json!({ "program": program });
            json!({ "channel": channel, "start_time": at(1), "end_time": at(2), "custom_properties": properties })
        };
        let (one, other) = tokio::join!(rest.admin("POST", LIST, body(1)), rest.admin("POST", LIST, body(4)));
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409], "episode {episode}: {} {}", one.text, other.text);
        assert_eq!(one.body["id"], other.body["id"], "episode {episode}");
    }
    assert_eq!(rest.models.recordings.load().len(), 20);
}

#[tokio::test]
async fn negative_padding_is_accepted_as_long_as_something_is_left() {
    let rest = stage().await;
    let body = |before: i32, after: i32| {
        json!({
            "channel": 1, "start_time": at(1), "end_time": at(2), "padding_before": before, "padding_after": after,
        })
    };
    let made = created(&rest, body(-600, -1_200)).await;
    assert_eq!((&made["padding_before"], &made["padding_after"]), (&json!(-600), &json!(-1_200)));
    for (before, after, field) in
        [(-1_800, -1_800, "padding_after"), (-4_000, 0, "padding_before"), (-90_000, 0, "padding_before")]
    {
        let refused = rest.admin("POST", LIST, body(before, after)).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert!(refused.body.get(field).is_some(), "{}", refused.text);
    }
}

#[tokio::test]
async fn invalid_fields_are_named() {
    let rest = stage().await;
    let check = async |body: Value, field: &str| {
        let refused = rest.admin("POST", LIST, body.clone()).await;
        assert_eq!(refused.status, 400, "{body}: {}", refused.text);
        assert!(refused.body.get(field).is_some(), "{body}: {}", refused.text);
    };
    check(json!({ "channel_id": 1, "start_time": at(1) }), "end_time").await;
    check(json!({ "start_time": at(1), "end_time": at(2) }), "channel_id").await;
    check(json!({ "channel_id": 99, "start_time": at(1), "end_time": at(2) }), "channel_id").await;
    check(json!({ "channel_id": 1, "start_time": at(2), "end_time": at(1) }), "end_time").await;
    check(json!({ "channel_id": 1, "start_time": at(-2), "end_time": at(-1) }), "start_time").await;
    check(json!({ "channel_id": 1, "start_time": at(1), "end_time": at(90) }), "end_time").await;
    check(json!({ "channel_id": 1, "start_time": "soon", "end_time": at(2) }), "start_time").await;
    let wrong = json!({ "program": { "title": 7 } });
    let body = json!({ "channel_id": 1, "start_time": at(1), "end_time": at(2), "custom_properties": wrong });
    check(body, "custom_properties").await;
    let dvr_setting = |name: &str, value: Value| json!({ "key": "dvr_settings", "value": { name: value } });
    let rows = rest.admin("GET", "/api/core/settings/", Value::Null).await.body;
    let row = rows["results"].as_array().unwrap().iter().find(|it| it["key"] == "dvr_settings").unwrap();
    let path = format!("/api/core/settings/{}/", row["id"]);
    let refused = rest.admin("PATCH", &path, dvr_setting("tv_template", json!("{nothing}"))).await;
    assert!(refused.status == 400 && refused.text.contains("unknown field"), "{}", refused.text);
}

#[tokio::test]
async fn an_update_with_some_fields_leaves_the_others_as_they_are() {
    let rest = stage().await;
    let made =
        created(&rest, json!({ "channel_id": 1, "start_time": at(1), "end_time": at(2), "priority": 80 }))
            .await;
    let path = format!("{LIST}{}/", made["id"]);
    let end = at(3);
    for (method, body) in [("PUT", json!({ "end_time": end })), ("PATCH", json!({ "padding_after": 60 }))] {
        let changed = rest.admin(method, &path, body).await;
        assert_eq!(
            (changed.status, &changed.body["start_time"]),
            (200, &made["start_time"]),
            "{}",
            changed.text
        );
        assert_eq!((&changed.body["end_time"], &changed.body["priority"]), (&json!(end), &json!(80)));
    }
    let refused = rest.admin("PUT", &path, json!({ "status": "stopped" })).await;
    assert_eq!((refused.status, refused.body), (400, json!({ "status": ["The recording is scheduled."] })));
    assert_eq!(rest.admin("POST", &format!("{path}stop/"), Value::Null).await.status, 409);
}

/// The table of the specification answers an update with the status `completed` with the recording, whatever its state.
#[tokio::test]
async fn completed_is_accepted_in_every_state_and_other_statuses_only_where_they_have_a_meaning() {
    let rest = stage().await;
    running(&rest, 11, 1).await;
    let first = rest.models.recordings.load().get(11).cloned().unwrap();
    let wanted = ["completed", "stopped", "scheduled", "recording", "interrupted", "failed"];
    // The status after each of the wanted ones; `None` is 400 by field.
    let table = [
        (Scheduled, [Some(Completed), None, Some(Scheduled), None, None, None]),
        (Running, [Some(Completed), Some(Stopped), None, Some(Running), None, None]),
        (Completed, [Some(Completed), None, None, None, None, None]),
        (Stopped, [Some(Completed), Some(Stopped), None, None, None, None]),
        (Interrupted, [Some(Completed), None, None, None, Some(Interrupted), None]),
        (Failed, [Some(Completed), None, None, None, None, Some(Failed)]),
    ];
    for (status, expected) in table {
        for (wanted, expected) in wanted.into_iter().zip(expected) {
            let file = first.file.clone().filter(|_| ![Scheduled, Failed].contains(&status));
            rest.put([Recording { status, file, ..(*first).clone() }]).await;
            let answer = rest.admin("PUT", &format!("{LIST}11/"), json!({ "status": wanted })).await;
            match expected {
                Some(then) => assert_eq!(
                    (answer.status, &answer.body["status"]),
                    (200, &json!(then.name())),
                    "{status} to {wanted}: {}",
                    answer.text
                ),
                None => assert!(
                    answer.status == 400 && answer.body["status"].is_array(),
                    "{status} to {wanted}: {} {}",
                    answer.status,
                    answer.text
                ),
            }
        }
    }
}

#[tokio::test]
async fn the_programme_of_a_recording_is_updated_from_the_body() {
    let rest = stage().await;
    let body = json!({ "channel_id": 1, "program_id": 77, "start_time": at(1), "end_time": at(2) });
    let made = created(&rest, body).await;
    let path = format!("{LIST}{}/update-metadata/", made["id"]);
    let sent = json!({ "title": "Evening", "description": "What happened.", "season": 2 });
    let updated = rest.admin("POST", &path, sent).await;
    assert_eq!((updated.status, &updated.body["title"]), (200, &json!("Evening")), "{}", updated.text);
    let again = rest.admin("POST", &path, json!({ "description": "", "episode": 5 })).await.body;
    let program = &again["custom_properties"]["program"];
    assert_eq!(
        (&program["title"], &program["description"], &program["season"], &program["episode"]),
        (&json!("Evening"), &Value::Null, &json!(2), &json!(5)),
        "{again}"
    );
    assert_eq!((&program["id"], &again["start_time"]), (&json!(77), &made["start_time"]));
    let unknown = rest.admin("POST", &path, json!({})).await;
    let detail = json!("The guide does not know the programme.");
    assert_eq!((unknown.status, &unknown.body["detail"]), (409, &detail), "{}", unknown.text);
    let long = rest.admin("POST", &path, json!({ "title": "x".repeat(256) })).await;
    assert_eq!(long.status, 400, "{}", long.text);
    // Work on the file waits for its end.
    assert_eq!(rest.admin("POST", &format!("{LIST}{}/comskip/", made["id"]), Value::Null).await.status, 409);
    running(&rest, 11, 1).await;
    let early = rest.admin("POST", &format!("{LIST}11/comskip/"), Value::Null).await;
    assert_eq!(early.status, 409, "{}", early.text);
}

#[tokio::test]
async fn completed_and_stop_end_a_running_recording_and_it_stays() {
    let rest = stage().await;
    running(&rest, 11, 1).await;
    running(&rest, 12, 1).await;
    let extended = rest.admin("POST", &format!("{LIST}11/extend/"), json!({ "extra_minutes": 30 })).await;
    assert_eq!(extended.status, 200, "{}", extended.text);
    let refused = rest.admin("PATCH", &format!("{LIST}11/"), json!({ "start_time": at(-2) })).await;
    assert_eq!(refused.body, json!({ "start_time": ["The recording has begun."] }));
    let ended = rest.admin("PUT", &format!("{LIST}11/"), json!({ "status": "completed" })).await;
    assert_eq!((ended.status, &ended.body["status"]), (200, &json!("completed")), "{}", ended.text);
    let stopped = rest.admin("POST", &format!("{LIST}12/stop/"), Value::Null).await;
    assert_eq!((stopped.status, &stopped.body["status"]), (200, &json!("stopped")), "{}", stopped.text);
    let over = rest.admin("GET", &format!("{LIST}?status=completed,stopped"), Value::Null).await;
    assert_eq!(over.body["count"], 2);
    let failed = rest.admin("GET", &format!("{LIST}?status=failed"), Value::Null).await;
    assert_eq!(failed.body["count"], 0);
    for action in ["stop/", "extend/"] {
        let again = rest.admin("POST", &format!("{LIST}12/{action}"), json!({ "extra_minutes": 5 })).await;
        assert_eq!((again.status, &again.body["detail"]), (409, &json!("The recording is stopped.")));
    }
}

#[tokio::test]
async fn removing_upcoming_recordings_leaves_those_that_run() {
    let rest = stage().await;
    let upcoming = created(&rest, json!({ "channel_id": 1, "start_time": at(1), "end_time": at(2) })).await;
    let other = created(&rest, json!({ "channel_id": 1, "start_time": at(1), "end_time": at(2) })).await;
    running(&rest, 11, 1).await;
    let ids = json!({ "ids": [11, upcoming["id"], upcoming["id"], 99] });
    let removed = rest.admin("POST", &format!("{LIST}bulk-delete-upcoming/"), ids).await;
    assert_eq!((removed.status, removed.body), (200, json!({ "success": true, "removed": 1 })));
    let left = rest.admin("GET", &format!("{LIST}?ordering=id"), Value::Null).await;
    let left: Vec<_> = left.body["results"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect();
    assert_eq!(left, [other["id"].clone(), json!(11)]);
    let all = rest.admin("POST", &format!("{LIST}bulk-delete-upcoming/"), json!({})).await;
    assert_eq!(all.body["removed"], 1);
}

#[tokio::test]
async fn users_of_level_1_schedule_their_own_recordings_if_the_settings_allow_it() {
    let rest = stage().await;
    running(&rest, 11, 1).await;
    let body = json!({ "channel_id": 1, "start_time": at(1), "end_time": at(2) });
    assert_eq!(rest.standard("POST", LIST, body.clone()).await.status, 403);
    assert_eq!(rest.standard("GET", LIST, Value::Null).await.body["count"], 0);
    let me = async || {
        rest.standard("GET", "/api/accounts/users/me/", Value::Null).await.body["may_record"].clone()
    };
    assert_eq!(me().await, false);
    allow(&rest).await;
    assert_eq!(me().await, true);
    let made = rest.standard("POST", LIST, body).await;
    assert_eq!((made.status, &made.body["owner"]), (201, &json!(STANDARD)), "{}", made.text);
    let hidden = json!({ "channel_id": 4, "start_time": at(1), "end_time": at(2) });
    assert_eq!(rest.standard("POST", LIST, hidden).await.status, 400);
    assert_eq!(rest.standard("GET", LIST, Value::Null).await.body["count"], 1);
    for (method, path) in [("GET", ""), ("DELETE", ""), ("POST", "stop/")] {
        let foreign = rest.standard(method, &format!("{LIST}11/{path}"), Value::Null).await;
        assert_eq!(foreign.status, 404, "{method} {path}");
    }
    assert_eq!(rest.streamer("GET", LIST, Value::Null).await.status, 403);
    let own = format!("{LIST}{}/", made.body["id"]);
    assert_eq!(rest.standard("DELETE", &own, Value::Null).await.status, 204);
}

#[tokio::test]
async fn a_property_of_a_user_of_level_1_comes_before_the_setting_and_only_admins_set_it() {
    let rest = stage().await;
    let body = json!({ "channel_id": 1, "start_time": at(1), "end_time": at(2) });
    let path = format!("/api/accounts/users/{STANDARD}/");
    let own = json!({ "custom_properties": { "recordings_enabled": true } });
    rest.standard("PATCH", "/api/accounts/users/me/", own.clone()).await;
    assert_eq!(rest.standard("POST", LIST, body.clone()).await.status, 403);
    assert_eq!(rest.admin("PATCH", &path, own).await.status, 200);
    let me = rest.standard("GET", "/api/accounts/users/me/", Value::Null).await;
    assert_eq!(me.body["may_record"], true);
    assert_eq!(rest.standard("POST", LIST, body.clone()).await.status, 201);
    allow(&rest).await;
    let off = json!({ "custom_properties": { "recordings_enabled": false } });
    assert_eq!(rest.admin("PATCH", &path, off).await.status, 200);
    assert_eq!(rest.standard("POST", LIST, body.clone()).await.status, 403);
    assert_eq!(rest.standard("GET", LIST, Value::Null).await.body["count"], 0);
    let unset = json!({ "custom_properties": { "recordings_enabled": null } });
    assert_eq!(rest.admin("PATCH", &path, unset).await.status, 200);
    let later = json!({ "channel_id": 1, "start_time": at(3), "end_time": at(4) });
    assert_eq!(rest.standard("POST", LIST, later).await.status, 201);
}

#[tokio::test]
async fn admins_see_the_folder_and_who_uses_how_much_of_it() {
    let rest = stage().await;
    let unused = rest.admin("GET", &format!("{LIST}storage/"), Value::Null).await.body;
    assert!(unused["available_bytes"].as_u64() > Some(0) && unused["is_mounted"] == true, "{unused}");
    assert!(!rest.context.config.recordings_folder().exists());
    running(&rest, 11, STANDARD).await;
    running(&rest, 12, 1).await;
    let protect = json!({ "protected": true });
    assert_eq!(rest.admin("PATCH", &format!("{LIST}12/"), protect).await.status, 200);
    let quota = json!({ "custom_properties": { "recording_quota_bytes": 376 } });
    let path = format!("/api/accounts/users/{STANDARD}/");
    assert_eq!(rest.admin("PATCH", &path, quota).await.status, 200);
    let storage = rest.admin("GET", &format!("{LIST}storage/"), Value::Null).await;
    assert_eq!(storage.status, 200, "{}", storage.text);
    let folder = rest.context.config.recordings_folder();
    assert_eq!(storage.body["folder"], json!(folder.display().to_string()));
    let sizes = ["used_bytes", "protected_bytes", "recordings"].map(|it| storage.body[it].clone());
    assert_eq!(sizes, [json!(376), json!(188), json!(2)]);
    let users = storage.body["users"].as_array().unwrap();
    let user = |id: u32| users.iter().find(|it| it["user_id"] == json!(id)).cloned().unwrap();
    assert_eq!((&user(STANDARD)["used_bytes"], &user(STANDARD)["quota_bytes"]), (&json!(188), &json!(376)));
    assert_eq!((&user(1)["quota_bytes"], &user(1)["recordings"]), (&json!(0), &json!(1)));
    allow(&rest).await;
    assert_eq!(rest.standard("GET", &format!("{LIST}storage/"), Value::Null).await.status, 403);
}
