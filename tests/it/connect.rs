//! Integrations: from the settings of an admin to the targets, with the real program.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::support::api::{Api, ApiReply};
use crate::support::binary::Binary;
use crate::support::client::{Player, Request};
use crate::support::gateway::TestGateway;
use crate::support::signal::Picture;
use crate::support::until_async;
use crate::support::upstream::Provider;
use crate::support::web_target::{SentRequest, WebTarget};
use crate::support::websocket::WebSocketClient;

pub(crate) const LIST: &str = "/api/connect/integrations/";
const LOGS: &str = "/api/connect/logs/";
const DELIVERIES: &str = "/api/connect/deliveries/";
/// A part of every address, header value and key in these tests.
const SECRET: &str = "hidden-5p1c3";
/// A name that breaks texts which do not expect it.
const HOSTILE: &str = "\"quoted\" back\\slash </script>&amp;<b> {{ x }}{% if %} 'ü🎬\u{1b}[0m\u{2028}$1";

/// The program, its first admin, and a target.
pub(crate) struct Studio {
    program: Binary,
    pub(crate) admin: Api,
    pub(crate) target: WebTarget,
    folder: TempDir,
}

impl Studio {
    pub(crate) async fn start() -> Studio {
        Studio::start_with(tempfile::tempdir().unwrap(), &[]).await
    }

    pub(crate) async fn start_with(folder: TempDir, arguments: &[&str]) -> Studio {
        let data = folder.path().join("data").display().to_string();
        let serve = ["serve", "--data-dir", &data, "--set", "auth.failure_delay_max=0"];
        let program = Binary::start(&[&serve, arguments].concat());
        let admin = Api::stranger_at(program.address().await).become_first_admin().await;
        Studio { program, admin, target: WebTarget::start(), folder }
    }

    /// Creates a webhook for some events, and returns its id.
    pub(crate) async fn webhook(&self, path: &str, events: &[&str], more: Value) -> u64 {
        let mut body = json!({
            "name": path, "type": "webhook", "url": self.target.url(path), "events": events,
        });
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        id_of(&self.admin.post(LIST, body).await)
    }

    /// Causes an event: a failed login with a program of this name.
    pub(crate) async fn fail_login(&self, agent: &str) {
        let body = json!({ "username": "nobody", "password": "wrong" }).to_string();
        let login = Request::get("/api/accounts/token/").method("POST").header("User-Agent", agent);
        let failed = self.admin.without_credentials().ask(login.body("application/json", body)).await;
        assert_eq!(failed.status, 401, "{failed:?}");
    }

    pub(crate) async fn integration(&self, id: u64) -> Value {
        self.admin.get(&format!("{LIST}{id}/")).await.body
    }

    /// Waits until an integration has this number of dead letters and none that waits.
    async fn until_dead(&self, id: u64, n: u64) {
        until_async("dead letters", async || {
            let shown = self.integration(id).await;
            shown["dead"] == n && shown["waiting"] == 0
        })
        .await;
    }

    pub(crate) async fn logged(&self, query: &str) -> Vec<Value> {
        let found = self.admin.get(&format!("{LOGS}?{query}")).await;
        assert_eq!(found.status, 200, "{found:?}");
        found.body["results"].as_array().unwrap().clone()
    }
}

#[track_caller]
pub(crate) fn id_of(made: &ApiReply) -> u64 {
    assert_eq!(made.status, 201, "{made:?}");
    made.body["id"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_reaches_webhooks_of_both_forms_with_its_payload() {
    let studio = Studio::start().await;
    studio.webhook("/fields", &["login_failed"], json!({ "headers": { "X-Key": SECRET } })).await;
    let config = json!({ "url": studio.target.url("/config"), "method": "PUT" });
    let body = json!({ "name": "Reference", "type": "webhook", "config": config });
    let id = id_of(&studio.admin.post(LIST, body).await);
    let set = format!("{LIST}{id}/subscriptions/set/");
    let template = "{{ user_agent|upper }} failed from {{ client_ip }}";
    let wanted = json!([{ "event": "login_failed", "enabled": true, "payload_template": template }]);
    assert_eq!(studio.admin.send("PUT", &set, wanted).await.status, 200);
    studio.webhook("/others", &["m3u_refresh"], json!({})).await;
    let disabled = json!({ "enabled": false });
    studio.webhook("/disabled", &["login_failed"], disabled).await;

    studio.fail_login("anna").await;
    let sent = studio.target.received("/fields", 1).await.remove(0);
    let payload = sent.json();
    assert_eq!((&*sent.method, sent.header("content-type")), ("POST", "application/json"));
    assert_eq!(sent.header("x-key"), SECRET);
    for (key, value) in [("event_type", "login_failed"), ("user_agent", "anna"), ("client_ip", "127.0.0.1")] {
        assert_eq!(payload[key], value, "{payload}");
    }
    let at = payload["timestamp"].as_str().unwrap();
    assert!(at.len() == "2026-01-01T00:00:00.000Z".len() && at.ends_with('Z'), "{at}");
    let event_id = payload["event_id"].as_str().unwrap();
    assert!(sent.header("webhook-id").starts_with(&event_id.replace('-', "")), "{sent:?}");

    let sent = studio.target.received("/config", 1).await.remove(0);
    assert_eq!((&*sent.method, &*sent.body), ("PUT", "ANNA failed from 127.0.0.1"));
    assert!(sent.header("content-type").starts_with("text/plain"), "{sent:?}");
    // The attempts are logged, and nothing waits any more.
    until_async("both attempts in the log", async || studio.logged("").await.len() == 2).await;
    let logged = studio.logged("status=success").await;
    assert_eq!(logged.len(), 2, "{logged:?}");
    let of_fields = logged.iter().find(|it| it["integration_name"] == "/fields").unwrap();
    assert_eq!(of_fields["request_payload"], payload);
    assert_eq!(of_fields["response_payload"], json!({ "status_code": 204, "body": "" }));
    assert_eq!((&of_fields["attempt"], &of_fields["error_message"]), (&json!(1), &Value::Null));
    let of_config = logged.iter().find(|it| it["integration_name"] == "Reference").unwrap();
    assert_eq!(of_config["request_payload"], json!({ "body": "ANNA failed from 127.0.0.1" }));
    assert!(studio.target.requests("/others").is_empty() && studio.target.requests("/disabled").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_names_of_channels_do_not_break_json() {
    let provider = Provider::start();
    provider.path("/news.ts").plays(Picture::new("news"));
    let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", "/news.ts")])).await;
    let (admin, target) = (Api::first_admin(&gateway).await, WebTarget::start());
    let path = format!("/api/channels/channels/{}/", gateway.channel("News").id);
    assert_eq!(admin.patch(&path, json!({ "name": HOSTILE })).await.status, 200);
    let templates = [
        ("/payload", Value::Null),
        ("/inside", json!("{\"text\": \"<{{ channel_name }}>\", \"bare\": {{ channel_name }}}")),
        ("/filters", json!("{\"text\": \"{{ channel_name|title|replace:\"'\",\"\" }}\"}")),
    ];
    for (path, template) in &templates {
        let body = json!({
            "name": path, "type": "webhook", "url": target.url(path), "events": ["channel_start"],
            "payload_templates": { "channel_start": template },
        });
        id_of(&admin.post(LIST, body).await);
    }
    let discord = json!({
        "name": "Discord", "type": "webhook", "url": target.url("/discord"), "preset": "discord",
        "events": ["channel_start"],
    });
    id_of(&admin.post(LIST, discord).await);

    let player = Player::watch(gateway.address, &gateway.path("News")).await;
    player.sees("news").await;
    let sent = async |path: &str| target.received(path, 1).await.remove(0).json();
    assert_eq!(sent("/payload").await["channel_name"], HOSTILE);
    let inside = sent("/inside").await;
    assert_eq!((&inside["text"], &inside["bare"]), (&json!(format!("<{HOSTILE}>")), &json!(HOSTILE)));
    assert!(!sent("/filters").await["text"].as_str().unwrap().contains('\''));
    assert!(sent("/discord").await["content"].as_str().unwrap().contains(HOSTILE));
    player.leave().await;
}

/// Returns a fault of a message to a service, which answers 400 then.
type Check = fn(&SentRequest, &Map<String, Value>) -> Option<String>;

/// Returns a member that is a text of 1 to `max` characters.
fn text(body: &Map<String, Value>, name: &str, max: usize) -> Option<String> {
    match body.get(name).and_then(Value::as_str) {
        Some(text) if (1..=max).contains(&text.chars().count()) => None,
        _ => Some(format!("{name} is not a text of 1 to {max} characters")),
    }
}

fn unless(is_good: bool, fault: &str) -> Option<String> {
    (!is_good).then(|| fault.to_owned())
}

/// "Execute Webhook": `content` has up to 2,000 characters, and mentions ping nobody.
fn discord(_: &SentRequest, body: &Map<String, Value>) -> Option<String> {
    let parse = body.get("allowed_mentions").map(|it| &it["parse"]);
    text(body, "content", 2_000).or_else(|| unless(parse == Some(&json!([])), "mentions are allowed"))
}

/// Incoming webhooks: `&`, `<` and `>` are escaped, because they begin links and mentions.
fn slack(_: &SentRequest, body: &Map<String, Value>) -> Option<String> {
    let sent = body.get("text").and_then(Value::as_str).unwrap_or_default();
    let plain = sent.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "");
    text(body, "text", 40_000).or_else(|| unless(!plain.contains(['&', '<', '>']), "markup in the text"))
}

/// `sendMessage`: a chat and a text of up to 4,096 characters, without a mode of markup.
fn telegram(_: &SentRequest, body: &Map<String, Value>) -> Option<String> {
    text(body, "text", 4_096)
        .or_else(|| unless(body.get("chat_id") == Some(&json!("-1001")), "chat not found"))
        .or_else(|| unless(!body.contains_key("parse_mode"), "can't parse entities"))
}

fn gotify(request: &SentRequest, body: &Map<String, Value>) -> Option<String> {
    let priority = body.get("priority").and_then(Value::as_u64);
    text(body, "message", 10_000)
        .or_else(|| unless(priority.is_some_and(|it| it <= 10), "priority is not a number up to 10"))
        .or_else(|| unless(request.header("x-gotify-key") == SECRET, "you need to provide a valid token"))
}

/// Publish as JSON: a message of up to 4,096 bytes and a priority from 1 to 5.
fn ntfy(_: &SentRequest, body: &Map<String, Value>) -> Option<String> {
    let priority = body.get("priority").and_then(Value::as_u64);
    let n_bytes = body.get("message").and_then(Value::as_str).map_or(0, str::len);
    text(body, "message", 4_096)
        .or_else(|| unless(n_bytes <= 4_096, "the message becomes an attachment"))
        .or_else(|| unless(body.get("topic") == Some(&json!("tv")), "invalid topic"))
        .or_else(|| unless(priority.is_some_and(|it| (1..=5).contains(&it)), "invalid priority"))
}

fn apprise(_: &SentRequest, body: &Map<String, Value>) -> Option<String> {
    let kind = body.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_known = ["info", "success", "warning", "failure"].contains(&kind);
    text(body, "body", 32_768).or_else(|| unless(is_known, "an unknown type"))
}

fn home_assistant(_: &SentRequest, body: &Map<String, Value>) -> Option<String> {
    unless(body.contains_key("event_type") && body.contains_key("timestamp"), "no event")
}

/// CloudEvents 1.0, structured mode.
fn cloudevents(request: &SentRequest, body: &Map<String, Value>) -> Option<String> {
    let required = ["id", "source", "type"].into_iter().find_map(|it| text(body, it, 1_000));
    let time = body.get("time").and_then(Value::as_str).unwrap_or_default();
    required
        .or_else(|| unless(body.get("specversion") == Some(&json!("1.0")), "unknown version"))
        .or_else(|| unless(time.parse::<jiff::Timestamp>().is_ok(), "time is not RFC 3339"))
        .or_else(|| unless(body.get("data").is_some_and(Value::is_object), "no data"))
        .or_else(|| unless(request.header("content-type") == "application/cloudevents+json", "content type"))
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_services_accept_what_their_presets_send_of_every_event() {
    let studio = Studio::start().await;
    let events = studio.admin.get("/api/connect/events/").await.body["results"].take();
    let events: Vec<&str> =
        events.as_array().unwrap().iter().map(|it| it["event"].as_str().unwrap()).collect();
    let services: [(&str, Check, Value); 8] = [
        ("discord", discord, json!({})),
        ("slack", slack, json!({})),
        ("telegram", telegram, json!({ "options": { "chat_id": -1001 } })),
        ("gotify", gotify, json!({ "headers": { "X-Gotify-Key": SECRET } })),
        ("ntfy", ntfy, json!({ "options": { "topic": "tv" } })),
        ("apprise", apprise, json!({})),
        ("home_assistant", home_assistant, json!({})),
        ("cloudevents", cloudevents, json!({})),
    ];
    for (name, check, mut more) in services {
        let path = format!("/{name}");
        studio.target.serves(&path, move |request| {
            let body = serde_json::from_str::<Map<String, Value>>(&request.body).unwrap_or_default();
            let is_json = request.header("content-type").contains("json") && request.method == "POST";
            match check(request, &body).or_else(|| unless(is_json, "not JSON")) {
                None => (200, "ok".to_owned()),
                Some(fault) => (400, fault),
            }
        });
        more["preset"] = json!(name);
        let id = studio.webhook(&path, &events, more).await;
        let tested = studio.admin.post(&format!("{LIST}{id}/test/"), json!({})).await;
        assert_eq!((tested.status, &tested.body["success"]), (200, &json!(true)), "{name}: {tested:?}");
        let results = tested.body["results"].as_array().unwrap();
        let tried: Vec<&str> = results.iter().map(|it| it["event"].as_str().unwrap()).collect();
        assert_eq!(tried, events, "{name}");
        assert_eq!(studio.target.requests(&path).len(), events.len(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_answers_for_each_event_and_is_logged() {
    let studio = Studio::start().await;
    studio.target.answers("/hook", [200, 400]);
    let id = studio.webhook("/hook", &["vod_start", "vod_stop"], json!({ "enabled": false })).await;
    let test = format!("{LIST}{id}/test/");
    let tested = studio.admin.post(&test, json!({})).await.body;
    assert_eq!((&tested["success"], &tested["type"]), (&json!(false), &json!("webhook")));
    let results = tested["results"].as_array().unwrap();
    let facts: Vec<_> = results.iter().map(|it| (&it["event"], &it["status"])).collect();
    // Both are sent at the same time, so either of them is refused.
    let failed = results.iter().find(|it| it["status"] == "failed").unwrap();
    assert_eq!((facts[0].0, facts[1].0), (&json!("vod_start"), &json!("vod_stop")), "{tested}");
    assert_eq!(results.iter().filter(|it| it["status"] == "success").count(), 1, "{tested}");
    assert_eq!(failed["response_payload"]["status_code"], 400);
    assert!(failed["error_message"].as_str().unwrap().contains("400"), "{tested}");
    for result in results {
        assert_eq!(
            (&result["request_payload"]["test"], &result["request_payload"]["event_type"]),
            (&json!(true), &result["event"])
        );
    }
    // The reference has one payload and one result: those of the event that failed.
    assert_eq!(tested["request_payload"], failed["request_payload"]);
    assert_eq!(
        (&tested["result"]["success"], &tested["result"]["status_code"]),
        (&json!(false), &json!(400)),
        "{tested}"
    );
    let logged = studio.logged("is_test=true").await;
    assert_eq!(logged, [results[1].clone(), results[0].clone()], "the newest first");
    // A test does not count as a delivery: nothing waits and nothing is dead.
    let shown = studio.integration(id).await;
    assert_eq!((&shown["waiting"], &shown["dead"]), (&json!(0), &json!(0)));

    let none = json!({ "events": [] });
    assert_eq!(studio.admin.patch(&format!("{LIST}{id}/"), none).await.status, 200);
    let refused = studio.admin.post(&test, json!({})).await;
    assert_eq!(refused.status, 400, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_listed_replayed_and_deleted_and_the_log_filters_and_pages() {
    let studio = Studio::start().await;
    studio.target.answers("/hook", [400; 5]);
    let id = studio.webhook("/hook", &["login_failed"], json!({})).await;
    let other = studio.webhook("/other", &["login_failed"], json!({})).await;
    for user in ["u0", "u1", "u2", "u3", "u4"] {
        studio.fail_login(user).await;
    }
    studio.until_dead(id, 5).await;
    let dead = format!("{DELIVERIES}?state=dead&integration={id}");
    let listed = studio.admin.get(&dead).await.body;
    assert_eq!(listed["count"], 5, "{listed}");
    let newest = &listed["results"][0];
    assert_eq!(
        (&newest["payload"]["user_agent"], &newest["attempts"]),
        (&json!("u4"), &json!(1)),
        "{newest}"
    );
    assert!(newest["error_message"].as_str().unwrap().contains("400"), "{newest}");
    let oldest = listed["results"][4]["id"].as_u64().unwrap();

    // One by its id, one deleted, and the others by a filter.
    let one = format!("{DELIVERIES}{}/", newest["id"]);
    assert_eq!(studio.admin.post(&format!("{one}replay/"), json!({})).await.status, 204);
    assert_eq!(studio.admin.delete(&format!("{DELIVERIES}{oldest}/")).await.status, 204);
    assert_eq!(studio.admin.delete(&format!("{DELIVERIES}{oldest}/")).await.status, 404);
    let sent = studio.target.received("/hook", 6).await;
    assert_eq!(sent[5].json()["user_agent"], "u4");
    assert_eq!(sent[5].header("webhook-id"), sent[4].header("webhook-id"));
    studio.until_dead(id, 3).await;
    let filter = json!({ "filter": { "integration": id, "event": "login_failed" } });
    let replayed = studio.admin.post(&format!("{DELIVERIES}replay/"), filter).await.body;
    assert_eq!(replayed, json!({ "count": 3 }));
    studio.until_dead(id, 0).await;
    assert_eq!(studio.target.requests("/hook").len(), 9);
    studio.target.answers("/hook", [400]);
    studio.fail_login("u5").await;
    studio.until_dead(id, 1).await;
    let all = json!({ "filter": {} });
    let deleted = studio.admin.post(&format!("{DELIVERIES}bulk-delete/"), all).await.body;
    assert_eq!(deleted, json!({ "count": 1 }));
    studio.until_dead(id, 0).await;

    // Ten attempts of the first integration, and six of the other one.
    until_async("the whole log", async || studio.logged("page_size=100").await.len() == 16).await;
    for (query, n) in [
        (format!("integration={id}"), 10),
        (format!("integration={other}&status=success"), 6),
        ("status=failed".to_owned(), 6),
        ("event=login_failed&type=webhook".to_owned(), 16),
        ("event=vod_start".to_owned(), 0),
        ("type=script".to_owned(), 0),
        ("is_test=true".to_owned(), 0),
        ("before=2020-01-01".to_owned(), 0),
        ("since=2020-01-01".to_owned(), 16),
    ] {
        assert_eq!(studio.logged(&query).await.len(), n, "{query}");
    }
    let page = studio.admin.get(&format!("{LOGS}?page=2&page_size=10")).await.body;
    assert_eq!((&page["count"], page["results"].as_array().map(Vec::len)), (&json!(16), Some(6)));
    let refused = studio.admin.get(&format!("{LOGS}?status=maybe")).await;
    assert!(refused.status == 400 && refused.body["status"].is_array(), "{refused:?}");
    // The log of an integration goes with it.
    assert_eq!(studio.admin.delete(&format!("{LIST}{id}/")).await.status, 204);
    until_async("the rest of the log", async || studio.logged("").await.len() == 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_integration_whose_target_is_gone_is_paused_shown_in_health_and_resumed() {
    let studio = Studio::start().await;
    let token = studio.admin.token("root", "correct horse").await;
    let path = format!("/ws/?token={}", token.text("access"));
    let mut socket = WebSocketClient::open(studio.program.address().await, &path, &[]).await.unwrap();
    studio.target.answers("/hook", [410]);
    let id = studio.webhook("/hook", &["login_failed"], json!({})).await;
    studio.fail_login("anna").await;
    let state = socket.until("integration_state", |it| !it["paused_reason"].is_null()).await;
    assert_eq!((&state["integration"], &state["success"]), (&json!(id), &json!(false)), "{state}");
    studio.until_dead(id, 1).await;
    assert_eq!(studio.integration(id).await["state"], "paused");
    let health = studio.admin.get("/api/core/health/").await.body;
    let kinds: Vec<_> = health["problems"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert!(kinds.contains(&&json!("integration_paused")), "{health}");
    let notices = studio.admin.get("/api/core/notifications/").await.answer.text();
    assert!(notices.contains("is paused"), "{notices}");

    // Events wait meanwhile, and arrive when an admin has mended the target.
    studio.fail_login("berta").await;
    until_async("a waiting delivery", async || studio.integration(id).await["waiting"] == 1).await;
    let waiting = studio.admin.get(&format!("{DELIVERIES}?state=waiting")).await.body;
    assert_eq!(
        (&waiting["count"], &waiting["results"][0]["payload"]["user_agent"]),
        (&json!(1), &json!("berta"))
    );
    assert_eq!(studio.target.requests("/hook").len(), 1);
    let resumed = studio.admin.post(&format!("{LIST}{id}/resume/"), json!({})).await;
    assert_eq!((resumed.status, &resumed.body["paused_reason"]), (200, &Value::Null), "{resumed:?}");
    assert_eq!(studio.target.received("/hook", 2).await[1].json()["user_agent"], "berta");
    socket.until("integration_state", |it| it["paused_reason"].is_null() && it["waiting"] == 0).await;
    let health = studio.admin.get("/api/core/health/").await.answer.text();
    assert!(!health.contains("integration_paused"), "{health}");
}

// Holds T-acc.2.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_integrations_are_in_no_answer_and_in_no_log() {
    let studio = Studio::start_with(tempfile::tempdir().unwrap(), &["--log-level", "debug"]).await;
    // A target that repeats everything it gets, as some do in their errors.
    studio.target.serves(&format!("/{SECRET}?key={SECRET}"), |request| {
        (400, format!("{} {:?}", request.path, request.headers))
    });
    let more = json!({ "headers": { "Authorization": format!("Bearer {SECRET}"), "X-Key": SECRET } });
    let id = studio.webhook(&format!("/{SECRET}?key={SECRET}"), &["login_failed"], more).await;
    // The name is public, and this one says the path.
    let rename = json!({ "name": "Chat" });
    assert_eq!(studio.admin.patch(&format!("{LIST}{id}/"), rename).await.status, 200);
    let secret = studio.admin.post(&format!("{LIST}{id}/secret/"), json!({})).await;
    let whsec = secret.text("secret").to_owned();
    let refused = json!({ "type": "webhook", "name": "Chat", "url": format!("no address {SECRET}"),
        "headers": { "X-A": format!("{SECRET}\r\n") } });
    let refused = studio.admin.post(LIST, refused).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let tested = studio.admin.post(&format!("{LIST}{id}/test/"), json!({})).await;
    assert_eq!(tested.body["results"][0]["status"], "failed", "{tested:?}");
    studio.fail_login("anna").await;
    studio.until_dead(id, 1).await;
    let mut texts = vec![refused.answer.text(), tested.answer.text(), studio.program.output()];
    for path in [
        LIST,
        LOGS,
        DELIVERIES,
        "/api/connect/subscriptions/",
        "/api/core/audit/",
        "/api/core/health/",
        "/api/core/notifications/",
        "/api/core/logs/",
        "/api/core/system-events/",
    ] {
        let answer = studio.admin.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        texts.push(answer.answer.text());
    }
    let signature = studio.target.requests(&format!("/{SECRET}?key={SECRET}"))[0].clone();
    assert!(signature.header("webhook-signature").starts_with("v1,"), "{signature:?}");
    for text in texts {
        assert!(!text.contains(SECRET) && !text.contains(&whsec), "{text}");
    }
    // Neither are they in the files of the store.
    for file in files_below(&studio.folder.path().join("data/store")) {
        let bytes = std::fs::read(&file).unwrap();
        let has_secret = bytes.windows(SECRET.len()).any(|it| it == SECRET.as_bytes());
        assert!(!has_secret, "{} contains a secret", file.display());
    }
}

fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    entries.flat_map(|it| if it.is_dir() { files_below(&it) } else { vec![it] }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_scripts_that_the_operator_allows_are_saved_and_get_the_event() {
    let folder = tempfile::tempdir().unwrap();
    let (scripts, other) = (folder.path().join("scripts"), folder.path().join("other"));
    for dir in [&scripts, &other] {
        std::fs::create_dir(dir).unwrap();
        let script = dir.join("notify.sh");
        let text = "#!/bin/sh\ncat\necho \" $SERVICE_EVENT_TYPE $DISPATCHARR_USER_AGENT $(pwd)\"\nexit 3\n";
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let dirs = format!("integrations.script_dirs=[\"{}\"]", scripts.display());
    let studio = Studio::start_with(folder, &["--set", &dirs]).await;
    let body = |dir: &Path, name: &str| {
        let config = json!({ "path": dir.join(name).display().to_string() });
        json!({ "name": "Script", "type": "script", "config": config, "events": ["login_failed"] })
    };
    for (dir, name) in [(&other, "notify.sh"), (&scripts, "missing.sh"), (&scripts, "../other/notify.sh")] {
        let refused = studio.admin.post(LIST, body(dir, name)).await;
        assert!(refused.status == 400 && refused.body["config"].is_array(), "{refused:?}");
    }
    let id = id_of(&studio.admin.post(LIST, body(&scripts, "notify.sh")).await);
    assert_eq!(studio.integration(id).await["script_path"], json!(scripts.join("notify.sh")));
    studio.fail_login("anna").await;
    studio.until_dead(id, 1).await;
    let logged = studio.logged("type=script").await.remove(0);
    let output = &logged["output"];
    assert_eq!((&output["exit_code"], &logged["status"]), (&json!(3), &json!("failed")), "{logged}");
    let stdout = output["stdout"].as_str().unwrap();
    let (payload, line) = stdout.rsplit_once("} ").unwrap();
    let payload: Value = serde_json::from_str(&format!("{payload}}}")).unwrap();
    assert_eq!((&payload["user_agent"], &logged["request_payload"]), (&json!("anna"), &payload));
    let here = std::fs::canonicalize(&scripts).unwrap().display().to_string();
    assert_eq!(line.trim(), format!("login_failed anna {here}"));
}
