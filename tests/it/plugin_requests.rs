//! Requests about plugins with the real program: runs that take longer than a request, passwords, and the WebSocket.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::plugins::{PLUGINS, import, install, package, until_state};
use crate::support::api::{ADMIN, Api, PASSWORD};
use crate::support::binary::Binary;
use crate::support::until_async;
use crate::support::websocket::WebSocketClient;

/// A part of the password that these tests save.
const SECRET: &str = "hidden-5p1c3";
/// The text that is shown in place of a password.
const MASK: &str = "********";

/// The program with a plugin, and its first admin.
struct PluginStory {
    program: Binary,
    admin: Api,
    data: TempDir,
}

impl PluginStory {
    /// Starts the program with settings of the operator, and installs a plugin named `demo`.
    async fn start(settings: &[&str], members: Value, code: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().display().to_string();
        let set = settings.iter().flat_map(|it| ["--set", *it]);
        let arguments: Vec<&str> = ["serve", "--data-dir", &folder].into_iter().chain(set).collect();
        let program = Binary::start(&arguments);
        let admin = Api::stranger_at(program.address().await).become_first_admin().await;
        install(&program, &admin, "demo", &package("demo", members, code)).await;
        Self { program, admin, data }
    }

    async fn post(&self, what: &str, body: Value) -> (u16, Value) {
        let answer = self.admin.post(&format!("{PLUGINS}demo/{what}/"), body).await;
        (answer.status, answer.body)
    }

    async fn run(&self, action: &str) -> (u16, Value) {
        self.post("run", json!({ "action": action, "params": {} })).await
    }

    /// Returns a run as the list of runs shows it.
    async fn job(&self, id: &Value) -> Value {
        let runs = self.admin.get(&format!("{PLUGINS}demo/runs/")).await.body;
        let found = runs["runs"].as_array().unwrap().iter().find(|it| it["id"] == *id).cloned();
        found.unwrap_or_else(|| panic!("no run {id}: {runs}"))
    }

    async fn until_job(&self, id: &Value, fits: impl Fn(&Value) -> bool) -> Value {
        let mut job = Value::Null;
        until_async("the run", async || {
            job = self.job(id).await;
            fits(&job)
        })
        .await;
        job
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_takes_longer_than_its_request_is_followed_to_its_end() {
    const CODE: &str = "
import os, time
class Plugin:
    def run(self, action, params, context):
        context.progress(40, 'Halfway')
        while not os.path.exists(os.path.join(context.data_dir, 'release')):
            time.sleep(0.02)
        return {'status': 'ok', 'message': 'done'}
";
    let members = json!({ "actions": [{ "id": "wait", "label": "Wait" }] });
    let story = PluginStory::start(&["plugins.answer_timeout=0.1"], members, CODE).await;
    let (status, answer) = story.run("wait").await;
    assert_eq!(
        (status, &answer["success"], &answer["result"]),
        (202, &json!(true), &Value::Null),
        "{answer}"
    );
    let id = answer["run"].clone();
    let job = story.until_job(&id, |it| it["percent"] == 40.0).await;
    let facts = ["action", "cause", "status", "message", "result", "ended_at"].map(|it| job[it].clone());
    assert_eq!(json!(facts), json!(["wait", "button", "running", "Halfway", null, null]));
    // Another one waits until the first one has ended, and can be cancelled.
    let (status, second) = story.run("wait").await;
    assert_eq!(status, 202, "{second}");
    let waiting = story.job(&second["run"]).await;
    assert_eq!(waiting["status"], "waiting");
    let cancelled = story.post(&format!("runs/{}/cancel", second["run"].as_str().unwrap()), json!({})).await;
    assert_eq!(cancelled.0, 200, "{cancelled:?}");
    story.until_job(&second["run"], |it| it["status"] == "cancelled").await;

    std::fs::write(story.data.path().join("plugin-data/demo/files/release"), "").unwrap();
    let job = story.until_job(&id, |it| it["status"] == "ended").await;
    assert_eq!(job["result"], json!({ "status": "ok", "message": "done" }));
    assert!(job["ended_at"].is_string(), "{job}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_action_is_an_error_by_its_own_status() {
    const CODE: &str = "
class Plugin:
    def run(self, action, params, context):
        return {'status': 'ok'}
";
    let story = PluginStory::start(&[], json!({ "actions": [{ "id": "go", "label": "Go" }] }), CODE).await;
    let (status, known) = story.run("go").await;
    assert_eq!(
        (status, known.get("status"), &known["result"]["status"]),
        (200, None, &json!("ok")),
        "{known}"
    );
    let (status, unknown) = story.run("nothing").await;
    assert_eq!(status, 200, "{unknown}");
    for answer in [&unknown, &unknown["result"]] {
        assert_eq!(answer["status"], "error", "{unknown}");
        assert_eq!(answer["message"], "Unknown action: nothing", "{unknown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_stops_and_starts_the_processes_of_enabled_plugins() {
    const CODE: &str = "
import os
class Plugin:
    def run(self, action, params, context):
        with open(os.path.join(context.data_dir, 'stops')) as file:
            return {'status': 'ok', 'stops': file.read()}
    def stop(self, context):
        with open(os.path.join(context.data_dir, 'stops'), 'a') as file:
            file.write(context.reason + ' ')
";
    let story = PluginStory::start(&[], json!({ "actions": [{ "id": "go", "label": "Go" }] }), CODE).await;
    for expected in ["reload ", "reload reload "] {
        let reloaded = story.admin.post(&format!("{PLUGINS}reload/"), json!({})).await;
        assert_eq!((reloaded.status, &reloaded.body["count"]), (200, &json!(1)), "{reloaded:?}");
        until_state(&story.program, &story.admin, "demo", "ready").await;
        assert_eq!(story.run("go").await.1["result"]["stops"], expected);
    }
    assert_eq!(story.post("enabled", json!({ "enabled": false })).await.0, 200);
    assert_eq!(story.admin.post(&format!("{PLUGINS}reload/"), json!({})).await.status, 200);
    until_state(&story.program, &story.admin, "demo", "disabled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_can_accept_the_gaps_of_every_plugin() {
    const CODE: &str = "
class Plugin:
    def run(self, action, params, context):
        return {'status': 'ok'}
";
    let all = "plugins.accept_gaps=[\"own_files\", \"shared_files\", \"ports\", \"signals\", \"processes\", \"resources\"]";
    let story = PluginStory::start(&[all], json!({ "permissions": {} }), CODE).await;
    let plugin = story.admin.get(PLUGINS).await.body["plugins"][0].clone();
    let gaps = plugin["gaps"].as_array().unwrap().clone();
    let removed = story.admin.delete(&format!("{PLUGINS}demo/delete/")).await;
    assert_eq!(removed.status, 200, "{removed:?}");
    let token = story.admin.token(ADMIN, PASSWORD).await.text("access").to_owned();
    let again = package("demo", json!({ "permissions": {} }), CODE);
    let imported = import(story.program.address().await, &token, &again, false).await;
    assert!(imported.starts_with("HTTP/1.1 200"), "{imported}");
    if gaps.is_empty() {
        eprintln!("everything is enforced here");
        return;
    }
    let (status, refused) = story.post("enabled", json!({ "enabled": true, "accept_gaps": false })).await;
    assert_eq!((status, &refused["gaps"]), (409, &json!(gaps)), "{refused}");
    let (status, enabled) = story.post("enabled", json!({ "enabled": true })).await;
    assert_eq!((status, &enabled["gaps"]), (200, &json!(gaps)), "{enabled}");
    assert!(enabled["warning"].as_str().unwrap().contains("plugins.accept_gaps"), "{enabled}");
    until_state(&story.program, &story.admin, "demo", "ready").await;
    let logged = story.admin.get("/api/core/audit/").await.body["results"].clone();
    let fields = |it: &Value| it["fields"].to_string().contains("plugins.accept_gaps: ");
    assert!(logged.as_array().unwrap().iter().any(fields), "{logged}");
    let (status, refused) = story.post("enabled", json!({ "enabled": true, "accept_gaps": false })).await;
    assert_eq!(status, 409, "the record does not have them: {refused}");
}

// Holds T-acc.2.
#[tokio::test(flavor = "multi_thread")]
async fn the_password_of_a_plugin_is_sealed_masked_and_in_no_answer() {
    const CODE: &str = "
class Plugin:
    def run(self, action, params, context):
        key = context['settings']['key']
        print('printed', key)
        context['logger'].info('logged %s', key)
        if action == 'fail':
            raise ValueError('raised ' + key)
        return {'status': 'ok', 'length': len(key)}
";
    let members = json!({
        "fields": [
            { "id": "key", "label": "Key", "type": "string", "input_type": "password" },
            { "id": "word", "label": "Word", "type": "string", "default": "hello" },
        ],
        "actions": [{ "id": "use", "label": "Use" }, { "id": "fail", "label": "Fail" }],
    });
    let story = PluginStory::start(&["log.level=debug"], members, CODE).await;
    let masked = json!({ "key": MASK, "word": "bye" });
    for sent in [json!({ "key": SECRET, "word": "bye" }), masked.clone()] {
        let saved = story.post("settings", json!({ "settings": sent })).await;
        assert_eq!((saved.0, &saved.1["settings"]), (200, &masked), "{saved:?}");
    }
    let (status, used) = story.run("use").await;
    assert_eq!(
        (status, &used["result"]["length"]),
        (200, &json!(SECRET.len())),
        "the mask is not saved: {used}"
    );
    let (status, failed) = story.run("fail").await;
    assert_eq!(status, 500, "{failed}");
    assert!(failed["error"].as_str().unwrap().contains("raised"), "{failed}");
    let log = format!("{PLUGINS}demo/logs/");
    until_async("the log", async || {
        let lines = story.admin.get(&log).await.answer.text();
        lines.contains("printed") && lines.contains("logged")
    })
    .await;

    let mut texts = vec![used.to_string(), failed.to_string(), story.program.output()];
    for level in [None, Some(0), Some(1), Some(10)] {
        let who = match level {
            None => story.admin.without_credentials(),
            Some(level) => {
                let name = format!("level{level}");
                let user = json!({ "username": name, "password": PASSWORD, "user_level": level });
                assert_eq!(story.admin.post("/api/accounts/users/", user).await.status, 201);
                story.admin.login(&name, PASSWORD).await
            }
        };
        for route in rest::table().iter().filter(|it| it.method == "GET") {
            let path = route.path.replace("{key}", "demo").replace("{id}", "1");
            texts.push(who.get(&path).await.answer.text());
        }
        let listed = who.get(PLUGINS).await;
        assert_eq!(
            (listed.status == 200, listed.answer.text().contains(MASK)),
            (level == Some(10), level == Some(10))
        );
    }
    for text in texts {
        assert!(!text.contains(SECRET), "{text}");
    }
    // Neither is it in a file: the store encrypts it, and the log of the plugin is without it.
    let mut n_files = 0;
    for file in files_below(story.data.path()) {
        let bytes = std::fs::read(&file).unwrap_or_default();
        n_files += usize::from(!bytes.is_empty());
        let is_there = bytes.windows(SECRET.len()).any(|it| it == SECRET.as_bytes());
        assert!(!is_there, "{} contains the password", file.display());
    }
    assert!(n_files > 3, "{n_files} files");
}

fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap());
    let below = entries.flat_map(|it| match it.file_type().unwrap() {
        kind if kind.is_dir() => files_below(&it.path()),
        kind if kind.is_file() => vec![it.path()],
        _ => Vec::new(),
    });
    below.collect()
}

fn keys(frame: &Value) -> BTreeSet<&str> {
    frame.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_are_told_about_plugins_over_the_websocket() {
    const CODE: &str = "
class Plugin:
    def run(self, action, params, context):
        if action == 'fail':
            raise ValueError('on purpose')
        context.progress(40, 'Halfway')
        context.publish({'rows': [1, 'two'], 'note': None})
        return {'status': 'ok', 'message': 'done'}
";
    let members =
        json!({ "actions": [{ "id": "talk", "label": "Talk" }, { "id": "fail", "label": "Fail" }] });
    let story = PluginStory::start(&[], members, CODE).await;
    let address = story.program.address().await;
    let open = async |name: &str| {
        let token = story.admin.token(name, PASSWORD).await;
        let path = format!("/ws/?token={}", token.text("access"));
        WebSocketClient::open(address, &path, &[]).await.unwrap()
    };
    let mut others = Vec::new();
    for (name, level) in [("viewer", 0), ("standard", 1)] {
        let user = json!({ "username": name, "password": PASSWORD, "user_level": level });
        assert_eq!(story.admin.post("/api/accounts/users/", user).await.status, 201);
        others.push(open(name).await);
    }
    let mut socket = open(ADMIN).await;
    assert_eq!(socket.next().await.unwrap()["type"], "connection_established");

    let (_, talked) = story.run("talk").await;
    let run = talked["run"].clone();
    let begun = socket.until("plugin_run", |it| it["percent"].is_null()).await;
    let facts = json!({
        "type": "plugin_run", "success": true, "key": "demo", "run": run, "action": "talk", "cause": "button",
        "status": "running", "percent": null, "message": null,
    });
    assert_eq!(begun, facts);
    let progress = socket.until("plugin_run", |it| !it["percent"].is_null()).await;
    let mut expected = facts.clone();
    (expected["percent"], expected["message"]) = (json!(40.0), json!("Halfway"));
    assert_eq!(progress, expected);
    let message = socket.kind("plugin_message").await;
    let sent = json!({ "rows": [1, "two"], "note": null });
    assert_eq!(message, json!({ "type": "plugin_message", "success": true, "key": "demo", "message": sent }));
    let ended = socket.until("plugin_run", |it| it["status"] != "running").await;
    (expected["status"], expected["message"]) = (json!("ended"), json!("done"));
    assert_eq!(ended, expected);

    let (status, _) = story.run("fail").await;
    assert_eq!(status, 500);
    let failed = socket.until("plugin_run", |it| it["status"] == "failed").await;
    assert_eq!((keys(&failed), &failed["success"]), (keys(&facts), &json!(false)));
    assert!(failed["message"].as_str().unwrap().contains("on purpose"), "{failed}");

    assert_eq!(story.post("restart", json!({})).await.0, 200);
    let expected: BTreeSet<&str> =
        ["type", "success", "key", "state", "reason", "since", "runs", "waiting"].into();
    for state in ["stopping", "starting", "ready"] {
        let frame = socket.until("plugin_state", |it| it["state"] == state).await;
        assert_eq!(keys(&frame), expected);
        assert_eq!(
            (&frame["key"], &frame["success"], &frame["reason"]),
            (&json!("demo"), &json!(true), &Value::Null)
        );
    }

    // Everything that others were sent until the end of the gateway.
    let mut program = story.program;
    program.signal("TERM");
    for other in &mut others {
        let (frames, _) = other.remaining().await;
        let kinds: Vec<&str> = frames.iter().filter_map(|it| it["data"]["type"].as_str()).collect();
        assert!(kinds.contains(&"connection_established"), "{kinds:?}");
        assert!(!kinds.iter().any(|it| it.starts_with("plugin")), "{kinds:?}");
    }
    assert!(program.ended().await.success(), "{}", program.output());
}
