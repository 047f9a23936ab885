//! The libraries of Apprise and of CloudEvents accept what their presets send of every event.

mod slow {
    use std::process::Stdio;

    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, BufReader};
    use tokio::process::{Child, Command};

    use crate::connect::{LIST, Studio};
    use crate::support::tools::installed;

    const RECEIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/notification_services/receive.py");
    /// Where Apprise delivers.
    const DELIVERED: &str = "/delivered";

    /// Starts a server with the libraries, which lets Apprise deliver to the target of the studio. Returns its address.
    async fn start(studio: &Studio) -> (Child, String) {
        let target = studio.target.url(DELIVERED).replace("http://", "json://");
        studio.target.serves(DELIVERED, |_| (200, String::new()));
        let mut server = Command::new(installed("bin/python"))
            .args([RECEIVER, &target])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).await.unwrap();
        (server, format!("http://127.0.0.1:{}", port.trim()))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn apprise_and_cloudevents_read_every_event() {
        let studio = Studio::start().await;
        let (_server, address) = start(&studio).await;
        let events = studio.admin.get("/api/connect/events/").await.body["results"].take();
        let events: Vec<&str> =
            events.as_array().unwrap().iter().map(|it| it["event"].as_str().unwrap()).collect();
        let test = async |preset: &str, path: &str| {
            let more = json!({ "preset": preset, "url": format!("{address}{path}") });
            let id = studio.webhook(path, &events, more).await;
            let tested = studio.admin.post(&format!("{LIST}{id}/test/"), json!({})).await.body;
            assert_eq!(tested["success"], true, "{preset}: {tested}");
            tested["results"].as_array().unwrap().clone()
        };

        test("apprise", "/notify").await;
        let delivered: Vec<Value> = studio.target.requests(DELIVERED).iter().map(|it| it.json()).collect();
        assert_eq!(delivered.len(), events.len(), "{delivered:?}");
        let of = |title: &str| {
            let found = delivered.iter().find(|it| it["title"] == title);
            found.unwrap_or_else(|| panic!("no {title:?} in {delivered:?}"))
        };
        for (title, kind) in
            [("Channel Error", "failure"), ("Login Failed", "warning"), ("Recording End", "info")]
        {
            assert_eq!(of(title)["type"], kind);
        }
        assert!(delivered.iter().all(|it| it["message"].as_str().is_some_and(|it| !it.is_empty())));

        for result in test("cloudevents", "/events").await {
            let read: Value =
                serde_json::from_str(result["response_payload"]["body"].as_str().unwrap()).unwrap();
            let (attributes, data) = (&read["attributes"], &read["data"]);
            let kind = format!("headwater.{}", result["event"].as_str().unwrap());
            assert_eq!(
                (&attributes["type"], &data["event_type"]),
                (&json!(kind), &result["event"]),
                "{read}"
            );
            assert_eq!(
                (&attributes["specversion"], &attributes["source"]),
                (&json!("1.0"), &json!("/headwater"))
            );
            assert_eq!(attributes["id"], data["event_id"], "{read}");
        }
    }
}
