use domain::ids::IntegrationId;
use domain::integration::{IntegrationState, Target, Webhook};
use serde_json::{Value, json};

use crate::testing::{Answer, Rest, SECRET};

const LIST: &str = "/api/connect/integrations/";
const SUBSCRIPTIONS: &str = "/api/connect/subscriptions/";
const PREVIEW: &str = "/api/connect/preview/";

/// An address whose path and query are secret.
fn url() -> String {
    format!("https://hooks.example/{SECRET}?key={SECRET}")
}

fn webhook() -> Value {
    json!({
        "name": "Chat", "type": "webhook", "url": url(), "headers": { "Authorization": SECRET },
        "events": ["channel_start", "channel_stop"],
        "payload_templates": { "channel_stop": "{\"text\": \"{{ channel_name }}\"}" },
    })
}

async fn created(rest: &Rest, body: Value) -> (u64, Value) {
    let made = rest.admin("POST", LIST, body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert!(!made.text.contains(SECRET), "{}", made.text);
    (made.body["id"].as_u64().unwrap(), made.body)
}

fn stored(rest: &Rest, id: u64) -> Webhook {
    let integrations = rest.models.integrations.load();
    match &integrations.get(u32::try_from(id).unwrap()).unwrap().target {
        Target::Webhook(webhook) => webhook.clone(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn is_refused(answer: &Answer, field: &str, part: &str) {
    let messages = answer.body[field].to_string();
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(messages.contains(part), "{}", answer.text);
    assert!(!answer.text.contains(SECRET), "{}", answer.text);
}

#[tokio::test]
async fn an_integration_has_the_same_settings_in_both_forms() {
    let rest = Rest::start().await;
    let (id, made) = created(&rest, webhook()).await;
    let config = json!({ "url": url(), "headers": { "Authorization": SECRET } });
    let other = json!({ "name": "Chat", "type": "webhook", "config": config, "enabled": false });
    let (other, of_config) = created(&rest, other).await;
    for shown in [&made, &of_config] {
        assert_eq!(shown["url"], "https://hooks.example/…");
        assert_eq!(shown["config"]["url"], shown["url"]);
        assert_eq!(shown["headers"], json!({ "Authorization": "***" }));
        assert_eq!((&shown["method"], &shown["config"]["method"]), (&json!("POST"), &json!("POST")));
    }
    assert_eq!((&made["state"], &of_config["state"]), (&json!("ok"), &json!("disabled")));
    assert_eq!(made["subscriptions"][0]["event"], "channel_start");
    assert_eq!(made["subscriptions"][1]["payload_template"], "{\"text\": \"{{ channel_name }}\"}");
    assert_eq!(stored(&rest, id).url, stored(&rest, other).url);
    assert_eq!(stored(&rest, other).headers[0].1.expose(), SECRET);

    let listed = rest.admin("GET", LIST, Value::Null).await;
    assert_eq!(listed.body.as_array().map(Vec::len), Some(2), "{}", listed.text);
    assert!(!listed.text.contains(SECRET), "{}", listed.text);
    assert_eq!(rest.admin("DELETE", &format!("{LIST}{other}/"), Value::Null).await.status, 204);
    // Options are shown, as texts, and settings of another type of target count for nothing.
    let more = json!({ "preset": "telegram", "options": { "chat_id": -1001 }, "script_path": "/srv/a.sh" });
    let mut body = webhook();
    body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    let (_, made) = created(&rest, body).await;
    assert_eq!((&made["options"]["chat_id"], &made["script_path"]), (&json!("-1001"), &Value::Null));
    assert_eq!(rest.admin("GET", &format!("{LIST}{other}/"), Value::Null).await.status, 404);
}

#[tokio::test]
async fn secrets_stay_when_a_record_is_sent_back_as_it_was_shown() {
    let rest = Rest::start().await;
    let (id, mut shown) = created(&rest, webhook()).await;
    let path = format!("{LIST}{id}/");
    let before = stored(&rest, id);
    shown["name"] = json!("Other");
    let put = rest.admin("PUT", &path, shown.clone()).await;
    assert_eq!((put.status, &put.body["name"]), (200, &json!("Other")), "{}", put.text);
    assert_eq!((&put.body["events"], stored(&rest, id)), (&shown["events"], before));

    // In the form of the reference, a change inside of `config` counts although the fields outside are the old ones.
    shown["config"]["url"] = json!("https://other.example/x");
    shown["config"]["headers"]["X-Key"] = json!("new");
    let put = rest.admin("PUT", &path, shown).await;
    assert_eq!((put.status, &put.body["url"]), (200, &json!("https://other.example/…")), "{}", put.text);
    let now = stored(&rest, id);
    assert_eq!(now.url.expose(), "https://other.example/x");
    let values: Vec<&str> = now.headers.iter().map(|it| it.1.expose()).collect();
    assert_eq!(values, [SECRET, "new"]);

    // A hidden value of a header that does not exist, or an address from an answer, would send nonsense.
    let unknown = json!({ "headers": { "X-Other": "***" } });
    is_refused(&rest.admin("PATCH", &path, unknown).await, "headers", "Enter the value");
    let copied = json!({ "url": "https://third.example/…" });
    is_refused(&rest.admin("PATCH", &path, copied).await, "url", "Enter the whole address");
}

#[tokio::test]
async fn wrong_values_are_refused_by_field() {
    let rest = Rest::start().await;
    let with = |field: &str, value: Value| {
        let mut body = webhook();
        body[field] = value;
        body
    };
    let check = async |body: Value, field: &str, part: &str| {
        is_refused(&rest.admin("POST", LIST, body).await, field, part);
    };
    check(with("type", json!("api")), "type", "not a valid choice").await;
    check(with("method", json!("BREW")), "method", "not a valid choice").await;
    check(with("events", json!(["zzz"])), "events", "zzz").await;
    check(with("name", json!("")), "name", "blank").await;
    check(with("url", json!("ftp://a.example/")), "url", "http://").await;
    check(with("url", Value::Null), "url", "http://").await;
    check(with("parallel", json!(9)), "parallel", "from 1 to 8").await;
    check(with("parallel", json!(1_000)), "parallel", "from 1 to 8").await;
    check(with("max_age", json!(1)), "max_age", "seconds").await;
    check(with("preset", json!("pager")), "preset", "not a valid choice").await;
    check(with("preset", json!("telegram")), "options", "chat_id").await;
    check(with("ca_certificate", json!("no certificate")), "ca_certificate", "PEM").await;
    check(with("options", json!({ "a": [] })), "options", "not a text").await;
    check(with("headers", json!({ "Host": SECRET })), "headers", "set by the gateway").await;
    check(with("headers", json!({ "a b": SECRET })), "headers", "not the name of a header").await;
    check(with("headers", json!({ "X-A": format!("{SECRET}\r\nX-B: 1") })), "headers", "not allowed").await;
    check(with("headers", json!({ "X-A": 1 })), "headers", "not a text").await;
    let templates = json!({ "vod_start": "x" });
    check(with("payload_templates", templates), "payload_templates", "does not receive this event").await;
    check(with("payload_templates", json!({ "zzz": "x" })), "payload_templates", "Unknown event").await;
    let script = json!({ "name": "a", "type": "script", "script_path": "run.sh" });
    check(script, "script_path", "absolute path").await;
    // In the form of the reference the reason is where its clients look for it.
    check(json!({ "name": "a", "type": "webhook", "config": {} }), "config", "http://").await;
    let config = json!({ "path": "run.sh" });
    check(json!({ "name": "a", "type": "script", "config": config }), "config", "absolute path").await;
    let config = json!({ "method": "BREW" });
    check(json!({ "name": "a", "type": "webhook", "config": config }), "config", "method").await;
    let plugin = json!({ "name": "a", "type": "plugin", "plugin": "cleaner", "action": "clean" });
    check(plugin, "plugin", "There is no plugin").await;
    assert_eq!(rest.models.integrations.load().len(), 0);
}

#[tokio::test]
async fn a_template_with_a_fault_is_refused_with_its_line_and_column() {
    let rest = Rest::start().await;
    let (id, _) = created(&rest, webhook()).await;
    let path = format!("{LIST}{id}/");
    for (template, part) in [
        ("{\n  \"a\": {{ nothing }}\n}", "channel_start: line 2, column"),
        ("{{ channel_name|shout }}", "channel_start: line 1, column"),
        ("{% if channel_name %}x", "channel_start: line 1, column"),
        ("{\"a\": \"{{ channel_name }}}", "channel_start: line 1, column"),
    ] {
        let body = json!({ "payload_templates": { "channel_start": template } });
        is_refused(&rest.admin("PATCH", &path, body).await, "payload_templates", part);
        let item = json!([{ "event": "channel_start", "payload_template": template }]);
        let set = rest.admin("PUT", &format!("{path}subscriptions/set/"), item).await;
        is_refused(&set, "payload_template", part);
        let trial = json!({ "event": "channel_start", "payload_template": template });
        let tried = rest.admin("POST", PREVIEW, trial).await;
        let error = &tried.body["error"];
        assert_eq!((tried.status, &tried.body["rendered"]), (200, &Value::Null), "{}", tried.text);
        let place = format!("line {}, column {}", error["line"], error["column"]);
        assert!(set.text.contains(&place), "{place}: {}", set.text);
    }
    let shown = rest.admin("GET", &path, Value::Null).await;
    assert_eq!(shown.body["subscriptions"].as_array().map(Vec::len), Some(2), "{}", shown.text);
}

#[tokio::test]
async fn subscriptions_are_edited_one_by_one_and_replaced_together() {
    let rest = Rest::start().await;
    let (id, made) = created(&rest, webhook()).await;
    let kept = made["subscriptions"][1]["id"].clone();
    let set = format!("{LIST}{id}/subscriptions/set/");
    let wanted = json!([{ "event": "channel_stop", "enabled": false, "payload_template": "{{ reason }}" },
        { "event": "vod_start" }]);
    let changed = rest.admin("PUT", &set, wanted).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert_eq!((&changed.body[0]["id"], &changed.body[0]["enabled"]), (&kept, &json!(false)));
    assert_eq!((&changed.body[1]["event"], &changed.body[1]["enabled"]), (&json!("vod_start"), &json!(true)));
    let listed = rest.admin("GET", &format!("{LIST}{id}/subscriptions/"), Value::Null).await;
    assert_eq!(listed.body, changed.body);
    let twice = json!([{ "event": "vod_start" }, { "event": "vod_start" }]);
    is_refused(&rest.admin("PUT", &set, twice).await, "event", "twice");
    let unknown = json!([{ "event": "zzz" }]);
    is_refused(&rest.admin("PUT", &set, unknown).await, "event", "zzz");

    let new = json!({ "integration": id, "event": "m3u_refresh" });
    let made = rest.admin("POST", SUBSCRIPTIONS, new.clone()).await;
    assert_eq!(made.status, 201, "{}", made.text);
    is_refused(&rest.admin("POST", SUBSCRIPTIONS, new).await, "event", "twice");
    let missing = json!({ "integration": 99, "event": "m3u_refresh" });
    is_refused(&rest.admin("POST", SUBSCRIPTIONS, missing).await, "integration", "does not exist");
    let one = format!("{SUBSCRIPTIONS}{}/", made.body["id"]);
    let edit = json!({ "enabled": false, "payload_template": "{{ account_name }}" });
    let edited = rest.admin("PATCH", &one, edit).await;
    let facts = (&edited.body["enabled"], &edited.body["payload_template"]);
    assert_eq!(facts, (&json!(false), &json!("{{ account_name }}")), "{}", edited.text);
    is_refused(&rest.admin("PATCH", &one, json!({ "integration": 98 })).await, "integration", "stays");
    let listed = rest.admin("GET", &format!("{SUBSCRIPTIONS}?event=m3u_refresh"), Value::Null).await;
    assert_eq!(listed.body, json!([edited.body]));
    // Disabled ones keep their templates when the set of events changes.
    let events = json!({ "events": ["m3u_refresh"] });
    let changed = rest.admin("PATCH", &format!("{LIST}{id}/"), events).await.body;
    assert_eq!(changed["events"], json!(["m3u_refresh"]));
    let templates = json!({ "channel_stop": "{{ reason }}", "m3u_refresh": "{{ account_name }}" });
    assert_eq!(changed["payload_templates"], templates);
    assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 204);
    assert_eq!(rest.admin("GET", &one, Value::Null).await.status, 404);
}

#[tokio::test]
async fn every_preset_renders_every_event_and_the_lists_name_what_templates_can_use() {
    let rest = Rest::start().await;
    let presets = rest.admin("GET", "/api/connect/presets/", Value::Null).await.body;
    let events = rest.admin("GET", "/api/connect/events/", Value::Null).await.body;
    let (presets, events) = (presets["results"].as_array().unwrap(), events["results"].as_array().unwrap());
    assert_eq!((presets.len(), events.len()), (8, 33));
    for preset in presets {
        for event in events {
            let trial = json!({ "event": event["event"], "preset": preset["preset"] });
            let tried = rest.admin("POST", PREVIEW, trial).await.body;
            assert_eq!((&tried["error"], &tried["is_json"]), (&Value::Null, &json!(true)), "{tried}");
            assert_eq!(tried["content_type"], preset["content_type"]);
            assert!(serde_json::from_str::<Value>(tried["rendered"].as_str().unwrap()).is_ok(), "{tried}");
        }
    }
    for event in events {
        let names: Vec<&String> = event["payload"].as_object().unwrap().keys().collect();
        assert!(names.iter().any(|it| *it == "event_id"), "{names:?}");
        let all: String = names.iter().map(|it| format!("{{{{ {it} }}}}")).collect();
        let trial = json!({ "event": event["event"], "payload_template": all + "{{ summary }}" });
        let tried = rest.admin("POST", PREVIEW, trial).await.body;
        assert_eq!(tried["error"], Value::Null, "{tried}");
        assert!(!event.to_string().contains("secret"), "{event}");
    }
    // The payload itself, and an answer about nothing.
    let tried = rest.admin("POST", PREVIEW, json!({ "event": "vod_stop" })).await.body;
    let payload: Value = serde_json::from_str(tried["rendered"].as_str().unwrap()).unwrap();
    assert_eq!(payload["event_type"], "vod_stop");
    let blank =
        json!({ "event": "vod_stop", "payload_template": "{% if content_name == \"x\" %}x{% endif %}" });
    assert_eq!(rest.admin("POST", PREVIEW, blank).await.body["is_blank"], true);
    let missing = rest.admin("POST", PREVIEW, json!({ "event": "vod_stop", "integration": 9 })).await;
    is_refused(&missing, "integration", "does not exist");
}

#[tokio::test]
async fn a_secret_is_shown_once_and_the_one_before_it_signs_for_a_day() {
    let rest = Rest::start().await;
    let (id, _) = created(&rest, webhook()).await;
    let path = format!("{LIST}{id}/secret/");
    let first = rest.admin("POST", &path, json!({})).await;
    let secret = first.body["secret"].as_str().unwrap().to_owned();
    assert!(first.status == 200 && secret.starts_with("whsec_"), "{}", first.text);
    assert_eq!(first.body["old_secret_until"], Value::Null);
    let chosen = format!("whsec_{}", "c2Vj".repeat(8));
    let second = rest.admin("POST", &path, json!({ "secret": chosen })).await;
    assert!(second.body["secret"] == *chosen && second.body["old_secret_until"].is_string());
    let signing = stored(&rest, id).signing.unwrap();
    let old = signing.old.unwrap();
    assert_eq!((signing.secret.expose(), old.0.expose()), (&*chosen, &*secret));
    let shown = rest.admin("GET", &format!("{LIST}{id}/"), Value::Null).await;
    let facts = (&shown.body["is_signed"], &shown.body["old_secret_until"]);
    assert_eq!(facts, (&json!(true), &second.body["old_secret_until"]));
    assert!(!shown.text.contains(&*chosen) && !shown.text.contains(&secret), "{}", shown.text);
    for wrong in ["abc", "whsec_", "whsec_c2Vj", "whsec_*", &format!("whsec_{}", "c2Vj".repeat(30))] {
        let answer = rest.admin("POST", &path, json!({ "secret": wrong })).await;
        is_refused(&answer, "secret", "whsec_ followed by");
    }
    assert_eq!(rest.admin("DELETE", &path, Value::Null).await.status, 204);
    assert_eq!(stored(&rest, id).signing, None);
}

#[tokio::test]
async fn a_paused_integration_is_shown_until_an_admin_resumes_it() {
    let rest = Rest::start().await;
    let (id, _) = created(&rest, webhook()).await;
    let state = IntegrationState {
        id: IntegrationId(u32::try_from(id).unwrap()),
        failing_since: Some(5),
        paused: Some("the target answered that it is gone (410)".to_owned()),
    };
    rest.put([state]).await;
    let path = format!("{LIST}{id}/");
    let shown = rest.admin("GET", &path, Value::Null).await.body;
    assert_eq!(
        (&shown["state"], &shown["failing_since"]),
        (&json!("paused"), &json!("1970-01-01T00:00:00.005Z"))
    );
    let resumed = rest.admin("POST", &format!("{path}resume/"), Value::Null).await;
    assert_eq!((resumed.status, &resumed.body["state"]), (200, &json!("ok")), "{}", resumed.text);
}

#[tokio::test]
async fn dead_letters_are_selected_by_id_or_by_filter_and_never_by_accident() {
    let rest = Rest::start().await;
    for action in ["replay", "bulk-delete"] {
        let path = format!("/api/connect/deliveries/{action}/");
        is_refused(&rest.admin("POST", &path, json!({})).await, "non_field_errors", "Give ids or a filter");
        let unknown = json!({ "filter": { "status": "dead" } });
        is_refused(&rest.admin("POST", &path, unknown).await, "filter", "There is no filter");
        let waiting = json!({ "filter": { "state": "waiting" } });
        is_refused(&rest.admin("POST", &path, waiting).await, "filter", "Only dead letters");
        let none = rest.admin("POST", &path, json!({ "filter": {} })).await;
        assert_eq!((none.status, &none.body["count"]), (200, &json!(0)), "{}", none.text);
    }
    assert_eq!(rest.admin("DELETE", "/api/connect/deliveries/9/", Value::Null).await.status, 404);
    assert_eq!(rest.admin("POST", "/api/connect/deliveries/9/replay/", Value::Null).await.status, 404);
}

#[tokio::test]
async fn a_target_is_trusted_until_it_is_another_one_and_each_answer_warns() {
    let rest = Rest::start().await;
    let (id, made) = created(&rest, webhook()).await;
    assert_eq!((&made["trusted"], &made["trust_warning"]), (&json!(false), &Value::Null));
    let path = format!("{LIST}{id}/");
    let trusted = rest.admin("PATCH", &path, json!({ "trusted": true })).await;
    assert_eq!((trusted.status, &trusted.body["trusted"]), (200, &json!(true)), "{}", trusted.text);
    assert!(
        trusted.body["trust_warning"].as_str().is_some_and(|it| it.contains("logins")),
        "{}",
        trusted.text
    );
    // Clients send whole records back.
    let mut shown = trusted.body;
    shown["name"] = json!("Other");
    let put = rest.admin("PUT", &path, shown.clone()).await;
    assert_eq!((put.status, &put.body["trusted"]), (200, &json!(true)), "{}", put.text);
    shown["url"] = json!("https://elsewhere.example/hook");
    let put = rest.admin("PUT", &path, shown).await;
    assert_eq!((put.status, &put.body["trusted"]), (200, &json!(false)), "{}", put.text);
    for (url, status) in [
        ("http://8.8.8.8/hook", 400),
        ("http://192.168.1.5:8123/hook", 200),
        ("https://hooks.example/hook", 200),
    ] {
        let set = rest.admin("PATCH", &path, json!({ "url": url, "trusted": false })).await;
        assert_eq!(set.status, 200, "{}", set.text);
        let set = rest.admin("PATCH", &path, json!({ "trusted": true })).await;
        assert_eq!((set.status, set.body.get("trusted").is_some()), (status, true), "{url}: {}", set.text);
        rest.admin("PATCH", &path, json!({ "trusted": false })).await;
    }
}

#[tokio::test]
async fn a_digest_has_limits_and_can_be_removed() {
    let rest = Rest::start().await;
    let (id, made) = created(&rest, webhook()).await;
    assert_eq!(made["digest_minutes"], Value::Null);
    let path = format!("{LIST}{id}/");
    for (minutes, status) in [(json!(1), 200), (json!(1_440), 200), (json!(0), 400), (json!(70_000), 400)] {
        let set = rest.admin("PATCH", &path, json!({ "digest_minutes": minutes })).await;
        assert_eq!(set.status, status, "{}", set.text);
        assert!(status == 200 || set.body["digest_minutes"].is_array(), "{}", set.text);
    }
    let removed = rest.admin("PATCH", &path, json!({ "digest_minutes": null })).await;
    assert_eq!((removed.status, &removed.body["digest_minutes"]), (200, &Value::Null), "{}", removed.text);
}
