//! Back-ups through the interface.

use std::fs;

use serde_json::{Value, json};

use crate::testing::{Answer, Rest, SECRET};

const GROUPS: &str = "/api/channels/groups/";

/// A gateway that can make back-ups, with one channel group.
async fn start() -> Rest {
    let rest = Rest::start().await;
    rest.enable_backups();
    assert_eq!(rest.admin("POST", GROUPS, json!({ "name": "News" })).await.status, 201);
    rest
}

/// Waits for a task that was started, and returns its last status.
async fn finished(rest: &Rest, started: &Answer) -> Value {
    assert_eq!(started.status, 202, "{}", started.text);
    let (id, token) = (&started.body["task_id"], &started.body["task_token"]);
    let path = format!("/api/backups/status/{}/?token={}", id.as_str().unwrap(), token.as_str().unwrap());
    loop {
        let status = rest.send("GET", &path, &[], "").await;
        assert_eq!(status.status, 200, "{}", status.text);
        match status.body["state"].as_str() {
            Some("completed" | "failed") => return status.body,
            _ => tokio::task::yield_now().await,
        }
    }
}

/// Makes a back-up and returns its name.
async fn back_up(rest: &Rest, body: Value) -> String {
    let started = rest.admin("POST", "/api/backups/create/", body).await;
    let status = finished(rest, &started).await;
    assert_eq!(status["state"], "completed", "{status}");
    status["result"]["filename"].as_str().unwrap().to_owned()
}

/// Downloads a back-up with a token.
async fn download(rest: &Rest, name: &str) -> Vec<u8> {
    let token = rest.admin("GET", &format!("/api/backups/{name}/download-token/"), Value::Null).await;
    let token = token.body["token"].as_str().unwrap().to_owned();
    let path = format!("/api/backups/{name}/download/?token={token}");
    let head = rest.send("HEAD", &path, &[], "").await;
    let archive = fs::read(rest.data_dir().join("backups").join(name)).unwrap();
    assert_eq!((head.status, &head.headers["content-type"]), (200, &"application/gzip".parse().unwrap()));
    assert_eq!(head.headers["content-length"], archive.len().to_string());
    assert!(head.headers["content-disposition"].to_str().unwrap().contains(name));
    archive
}

#[tokio::test]
async fn a_back_up_is_made_listed_downloaded_and_deleted() {
    let rest = start().await;
    let name = back_up(&rest, json!({})).await;
    assert!(name.starts_with("headwater-backup-") && name.ends_with(".tar.gz"), "{name}");
    let listed = rest.admin("GET", "/api/backups/", Value::Null).await.body;
    assert_eq!((&listed[0]["name"], &listed[0]["restores_with"]), (&json!(name), &json!("key_file")));
    assert!(listed[0]["size"].as_u64().unwrap() > 500);
    assert!(!download(&rest, &name).await.is_empty());
    let delete = format!("/api/backups/{name}/delete/");
    assert_eq!(rest.standard("DELETE", &delete, Value::Null).await.status, 403);
    assert_eq!(rest.admin("DELETE", &delete, Value::Null).await.status, 204);
    assert_eq!(rest.admin("DELETE", &delete, Value::Null).await.status, 404);
    assert_eq!(rest.admin("GET", "/api/backups/", Value::Null).await.body, json!([]));
}

#[tokio::test]
async fn status_and_download_need_a_login_or_their_own_token() {
    let rest = start().await;
    let started = rest.admin("POST", "/api/backups/create/", json!({})).await;
    let name = finished(&rest, &started).await["result"]["filename"].as_str().unwrap().to_owned();
    let status = format!("/api/backups/status/{}/", started.body["task_id"].as_str().unwrap());
    let download = format!("/api/backups/{name}/download/");
    for (path, wrong) in [(status, "Invalid task token"), (download, "Invalid download token")] {
        let anonymous = rest.send("GET", &path, &[], "").await;
        assert_eq!((anonymous.status, &anonymous.body["detail"]), (401, &json!("Authentication required")));
        for token in ["x", "00", &"0".repeat(32), &"é".repeat(16)] {
            let refused =
                rest.send("GET", &format!("{path}?token={}", token.replace('é', "%C3%A9")), &[], "").await;
            assert_eq!((refused.status, &refused.body["detail"]), (403, &json!(wrong)));
        }
        assert_eq!(rest.standard("GET", &path, Value::Null).await.status, 403);
        assert_eq!(rest.admin("HEAD", &path, Value::Null).await.status, 200);
    }
    assert_eq!(rest.admin("GET", "/api/backups/status/none/", Value::Null).await.status, 404);
    let outside = "/api/backups/..%2f..%2fkey/download-token/";
    assert_eq!(rest.admin("GET", outside, Value::Null).await.status, 404);
}

#[tokio::test]
async fn a_back_up_restores_at_the_next_start_and_says_so() {
    let rest = start().await;
    let name = back_up(&rest, json!({ "passphrase": SECRET })).await;
    let restore = format!("/api/backups/{name}/restore/");
    let missing = rest.admin("POST", &restore, json!({})).await;
    assert_eq!(missing.status, 400, "{}", missing.text);
    assert!(missing.body["passphrase"][0].as_str().unwrap().contains("passphrase"));
    let wrong = rest.admin("POST", &restore, json!({ "passphrase": "wrong" })).await;
    assert_eq!((wrong.status, &wrong.body["passphrase"][0]), (400, &json!("The passphrase is wrong.")));

    let mut events = rest.system.events().subscribe();
    let started = rest.admin("POST", &restore, json!({ "passphrase": SECRET })).await;
    let status = finished(&rest, &started).await;
    assert_eq!(status["state"], "completed", "{status}");
    assert!(status["result"]["message"].as_str().unwrap().contains("next start"), "{status}");
    assert_eq!(events.recv().await.unwrap().body.name(), "restore_pending");
    assert_eq!(fs::read_to_string(rest.data_dir().join("restore/ready")).unwrap(), name);
    let told = rest.streamer("GET", "/api/core/notifications/", Value::Null).await;
    assert_eq!(told.body["notifications"][0]["notification_key"], "restore_pending", "{}", told.text);
    assert!(!told.text.contains(&name), "{}", told.text);
    let groups = rest.standard("GET", GROUPS, Value::Null).await;
    assert_eq!(groups.body["count"], 1, "the present store goes on");
}

#[tokio::test]
async fn an_upload_other_than_a_complete_back_up_is_refused_and_leaves_nothing() {
    let rest = start().await;
    let name = back_up(&rest, json!({})).await;
    let whole = download(&rest, &name).await;
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    let bearer = rest.bearer(crate::testing::ADMIN);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/gzip")];
    for (bytes, part) in [
        (whole[..whole.len() - 1].to_vec(), "truncated"),
        (whole[..40].to_vec(), "not a back-up"),
        (b"PK\x03\x04".to_vec(), "not a back-up"),
        (changed, ""),
    ] {
        let refused = rest.send("POST", "/api/backups/upload/", &headers, bytes).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert!(refused.body["detail"].as_str().unwrap().contains(part), "{}", refused.text);
    }
    let none = rest.send("POST", "/api/backups/upload/", &headers, "").await;
    assert_eq!(none.status, 400);
    let listed = rest.admin("GET", "/api/backups/", Value::Null).await.body;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let added = rest.send("POST", "/api/backups/upload/", &headers, whole).await;
    assert_eq!((added.status, &added.body["name"]), (201, &json!("uploaded.tar.gz")), "{}", added.text);
    let unknown = rest.admin("POST", "/api/backups/none.tar.gz/restore/", json!({})).await;
    assert_eq!((unknown.status, &unknown.body["detail"]), (404, &json!("Backup file not found")));
}

#[tokio::test]
async fn the_schedule_has_defaults_and_refuses_what_it_cannot_follow() {
    let rest = start().await;
    let schedule = rest.admin("GET", "/api/backups/schedule/", Value::Null).await.body;
    let expected = json!({
        "enabled": true, "frequency": "daily", "time": "03:00", "day_of_week": 0, "retention_count": 3,
        "cron_expression": "",
    });
    assert_eq!(schedule, expected);
    let update = "/api/backups/schedule/update/";
    let sent = json!({
        "enabled": true, "frequency": "weekly", "time": "04:30", "day_of_week": 2, "retention_count": 5,
    });
    let changed = rest.admin("PUT", update, sent).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert_eq!((&changed.body["time"], &changed.body["retention_count"]), (&json!("04:30"), &json!(5)));
    for (sent, field) in [
        (json!({ "frequency": "yearly" }), "frequency"),
        (json!({ "time": "25:00" }), "schedule_time"),
        (json!({ "day_of_week": 7 }), "day_of_week"),
        (json!({ "retention_count": -1 }), "retention_count"),
        (json!({ "cron_expression": "often" }), "schedule_cron_expression"),
    ] {
        let refused = rest.admin("PUT", update, sent.clone()).await;
        assert!(refused.status == 400 && refused.body[field].is_array(), "{sent}: {}", refused.text);
    }
    let row = rest.admin("GET", "/api/core/settings/5/", Value::Null).await.body;
    assert_eq!((&row["key"], &row["value"]["schedule_time"]), (&json!("backup_settings"), &json!("04:30")));
}

#[tokio::test]
async fn a_temporary_store_is_neither_backed_up_nor_restored() {
    let rest = Rest::start().await;
    let refused = rest.admin("POST", "/api/backups/create/", json!({})).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
}
