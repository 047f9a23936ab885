//! The zone of the machine that the program runs on.

use domain::time::iso_millis;
use serde_json::{Value, json};

use crate::recordings::LIST;
use crate::support::api::Api;
use crate::support::binary::Binary;
use crate::support::until_async;

/// Holds T-time.1.
#[tokio::test]
async fn the_zone_of_the_machine_is_that_of_the_log_and_of_nothing_else() {
    let tomorrow = (actors::now_ms() / 86_400_000 + 1) * 86_400_000;
    let sent = [tomorrow, tomorrow + 3_600_000].map(iso_millis);
    let zones = [
        ("UTC", "+00:00"),
        ("Asia/Kolkata", "+05:30"),
        ("Pacific/Kiritimati", "+14:00"),
        ("Pacific/Honolulu", "-10:00"),
    ];
    for (zone, offset) in zones {
        let data = tempfile::tempdir().unwrap();
        let (folder, variable) = (data.path().display().to_string(), format!("TZ={zone}"));
        let program = Binary::start_with(&["/usr/bin/env", &variable], &["serve", "--data-dir", &folder]);
        let admin = Api::stranger_at(program.address().await).become_first_admin().await;
        assert!(program.output().contains(offset), "{zone}: the log is in local time: {}", program.output());
        let channel =
            admin.post("/api/channels/channels/", json!({ "name": "News" })).await.body["id"].clone();
        let recording = json!({ "channel_id": channel, "start_time": sent[0], "end_time": sent[1] });
        let made = admin.post(LIST, recording).await;
        assert_eq!(
            (made.status, made.text("start_time"), made.text("end_time")),
            (201, &*sent[0], &*sent[1]),
            "{zone}"
        );
        let weekly = json!({
            "channel": channel, "name": "Evening", "days_of_week": [0, 1, 2, 3, 4, 5, 6],
            "start_time": "20:00", "end_time": "21:00",
        });
        let rule = admin.post("/api/channels/recurring-rules/", weekly).await;
        assert_eq!(rule.status, 201, "{zone}: {rule:?}");
        let path = format!("{LIST}?ordering=start_time");
        let of_rule = |all: &Value| -> Vec<String> {
            let all = all["results"].as_array().cloned().unwrap_or_default();
            let is_of_rule = |it: &Value| it["id"] != made.body["id"];
            all.iter()
                .filter(|it| is_of_rule(it))
                .map(|it| it["start_time"].as_str().unwrap().to_owned())
                .collect()
        };
        until_async("recordings of the rule", async || of_rule(&admin.get(&path).await.body).len() > 3).await;
        // The time zone of the settings is UTC.
        let starts = of_rule(&admin.get(&path).await.body);
        assert!(starts.iter().all(|it| it.contains("T20:00:00")), "{zone}: {starts:?}");
    }
}
