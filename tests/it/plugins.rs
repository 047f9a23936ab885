//! Plugins with the real binary: from the archive to a run.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use storage::plugin_files::testing::{archive, hostile_archives, part};

use crate::support::api::{ADMIN, Api, PASSWORD};
use crate::support::binary::Binary;
use crate::support::client::{Request, say};
use crate::support::until_async;

pub(crate) const PLUGINS: &str = "/api/plugins/plugins/";

const CODE: &[u8] = b"
class Plugin:
    fields = [{'id': 'word', 'label': 'Word', 'type': 'string', 'default': 'hello'}]
    actions = [{'id': 'greet', 'label': 'Greet'}, {'id': 'raise', 'label': 'Raise'}]

    def run(self, action, params, context):
        if action == 'raise':
            raise ValueError('bang')
        return {'status': 'ok', 'message': context['settings']['word'] + ' ' + params.get('name', '')}
";

fn greeter(version: &str) -> Vec<u8> {
    let manifest =
        json!({ "name": "Greeter", "version": version, "description": "Greets.", "permissions": {} });
    archive(&[part("greeter/plugin.json", manifest.to_string().as_bytes()), part("greeter/plugin.py", CODE)])
}

fn serve(root: &Path) -> Binary {
    Binary::start(&["serve", "--data-dir", &root.display().to_string()])
}

/// Uploads an archive as a browser does. Returns the whole answer.
pub(crate) async fn import(address: SocketAddr, token: &str, content: &[u8], overwrite: bool) -> String {
    let mut body = format!(
        "--b\r\nContent-Disposition: form-data; name=\"overwrite\"\r\n\r\n{overwrite}\r\n--b\r\n\
         Content-Disposition: form-data; name=\"file\"; filename=\"plugin.zip\"\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(content);
    body.extend_from_slice(b"\r\n--b--\r\n");
    let mut request = format!(
        "POST {PLUGINS}import/ HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(&body);
    String::from_utf8_lossy(&say(address, &request).await).into_owned()
}

/// Returns the archive of a plugin with one file of code, and with these members in its manifest.
pub(crate) fn package(key: &str, members: Value, code: &str) -> Vec<u8> {
    let mut manifest = json!({ "name": key, "version": "1.0.0", "description": "", "permissions": {} });
    manifest.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    archive(&[
        part(&format!("{key}/plugin.json"), manifest.to_string().as_bytes()),
        part(&format!("{key}/plugin.py"), code.as_bytes()),
    ])
}

/// Imports and enables a plugin, whose process is ready then.
pub(crate) async fn install(program: &Binary, admin: &Api, key: &str, archive: &[u8]) {
    let token = admin.token(ADMIN, PASSWORD).await.text("access").to_owned();
    let imported = import(program.address().await, &token, archive, false).await;
    assert!(imported.starts_with("HTTP/1.1 200"), "{imported}");
    let body = json!({ "enabled": true, "accept_gaps": true });
    let enabled = admin.post(&format!("{PLUGINS}{key}/enabled/"), body).await;
    assert_eq!(enabled.status, 200, "{enabled:?}");
    until_state(program, admin, key, "ready").await;
}

/// Waits until a plugin has this state, and returns the plugin. On a busy machine its packages may take longer than the answer
/// waits for, or its first process takes too long to start and another one follows.
pub(crate) async fn until_state(program: &Binary, admin: &Api, key: &str, state: &str) -> Value {
    let what = format!("{key} to be {state}: {}", program.output());
    until_async(&what, async || listed(admin, key).await["state"] == state).await;
    listed(admin, key).await
}

/// Returns an installed plugin as the list shows it.
pub(crate) async fn listed(admin: &Api, key: &str) -> Value {
    let all = admin.get(PLUGINS).await.body;
    let found = all["plugins"].as_array().unwrap().iter().find(|it| it["key"] == key);
    found.unwrap_or_else(|| panic!("{all}")).clone()
}

async fn run(admin: &Api, action: &str, params: Value) -> (u16, Value) {
    let body = json!({ "action": action, "params": params });
    let reply = admin.post(&format!("{PLUGINS}greeter/run/"), body).await;
    (reply.status, reply.body)
}

async fn stop(mut program: Binary) {
    program.signal("TERM");
    assert!(program.ended().await.success(), "{}", program.output());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_from_an_archive_runs_and_goes_on_after_a_restart_of_the_gateway() {
    let data = tempfile::tempdir().unwrap();
    let program = serve(data.path());
    let address = program.address().await;
    let admin = Api::stranger_at(address).become_first_admin().await;
    let token = admin.token(ADMIN, PASSWORD).await.text("access").to_owned();
    let imported = import(address, &token, &greeter("1.0.0"), false).await;
    assert!(imported.starts_with("HTTP/1.1 200") && imported.contains("\"enabled\":false"), "{imported}");
    assert_eq!(run(&admin, "greet", json!({})).await.0, 403);

    let enabled = admin
        .post(&format!("{PLUGINS}greeter/enabled/"), json!({ "enabled": true, "accept_gaps": true }))
        .await;
    assert_eq!(enabled.status, 200, "{enabled:?}");
    let plugin = until_state(&program, &admin, "greeter", "ready").await;
    assert_eq!((&plugin["fields"][0]["id"], &plugin["actions"][0]["id"]), (&json!("word"), &json!("greet")));
    let (status, greeted) = run(&admin, "greet", json!({ "name": "you" })).await;
    assert_eq!((status, &greeted["result"]["message"]), (200, &json!("hello you")), "{greeted}");
    let (status, unknown) = run(&admin, "other", json!({})).await;
    assert_eq!((status, &unknown["result"]["status"]), (200, &json!("error")), "{unknown}");
    let (status, raised) = run(&admin, "raise", json!({})).await;
    assert_eq!((status, &raised["success"]), (500, &json!(false)), "{raised}");
    assert!(raised["error"].as_str().unwrap().contains("bang"), "{raised}");
    let saved = json!({ "settings": { "word": "bye" } });
    assert_eq!(admin.post(&format!("{PLUGINS}greeter/settings/"), saved).await.status, 200);
    let runs = admin.get(&format!("{PLUGINS}greeter/runs/")).await.body;
    assert_eq!(runs["runs"].as_array().unwrap().len(), 3, "{runs}");

    let updated = import(address, &token, &greeter("1.1.0"), true).await;
    assert!(updated.contains("\"version\":\"1.1.0\"") && updated.contains("\"enabled\":true"), "{updated}");
    assert_eq!(run(&admin, "greet", json!({ "name": "you" })).await.1["result"]["message"], "bye you");
    stop(program).await;

    let program = serve(data.path());
    let admin = admin.at(program.address().await);
    until_state(&program, &admin, "greeter", "ready").await;
    let restarted = admin.post(&format!("{PLUGINS}greeter/restart/"), json!({})).await;
    assert_eq!(restarted.status, 200, "{restarted:?}");
    assert_eq!(run(&admin, "greet", json!({ "name": "you" })).await.1["result"]["message"], "bye you");
    assert_eq!(admin.delete(&format!("{PLUGINS}greeter/delete/")).await.status, 200);
    assert_eq!(admin.get(PLUGINS).await.body, json!({ "plugins": [] }));
    assert!(!data.path().join("plugins/greeter").exists());
    stop(program).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_archives_leave_nothing_and_the_gateway_goes_on() {
    let data = tempfile::tempdir().unwrap();
    let program = serve(data.path());
    let address = program.address().await;
    let admin = Api::stranger_at(address).become_first_admin().await;
    let token = admin.token(ADMIN, PASSWORD).await.text("access").to_owned();
    for (bytes, expected) in hostile_archives() {
        let refused = import(address, &token, &bytes, true).await;
        // In JSON, quotes are escaped.
        let expected = expected.replace('"', "\\\"");
        assert!(refused.starts_with("HTTP/1.1 400"), "{expected}: {refused}");
        assert!(refused.replace("\\\\\\\"", "\\\"").contains(&expected), "{expected}: {refused}");
    }
    assert_eq!(admin.get(PLUGINS).await.body, json!({ "plugins": [] }));
    let left: Vec<_> = std::fs::read_dir(data.path().join("plugins")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    stop(program).await;
}

/// A plugin whose action makes the calls that its parameters list.
fn caller(permissions: Value) -> Vec<u8> {
    let manifest = json!({
        "name": "Caller", "version": "1.0.0", "description": "Calls.", "permissions": permissions,
        "command": ["./calls.py"], "actions": [{ "id": "call", "label": "Call" }],
    });
    let code = include_bytes!("plugin_calls.py");
    archive(&[part("caller/plugin.json", manifest.to_string().as_bytes()), part("caller/calls.py", code)])
}

/// Lets the plugin make calls. Returns the result of its action.
async fn calls(admin: &Api, calls: Value) -> Value {
    let body = json!({ "action": "call", "params": { "calls": calls } });
    let reply = admin.post(&format!("{PLUGINS}caller/run/"), body).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.body["result"].clone()
}

// Holds T-acc.12.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_calls_the_api_within_its_scopes_over_pipes_and_with_its_token() {
    let data = tempfile::tempdir().unwrap();
    let program = Binary::start(&[
        "serve",
        "--data-dir",
        &data.path().display().to_string(),
        "--player-listen",
        "0.0.0.0:0",
    ]);
    let bound = program.address().await;
    let address = SocketAddr::from(([127, 0, 0, 1], bound.port()));
    let admin = Api::stranger_at(address).become_first_admin().await;
    let token = admin.token(ADMIN, PASSWORD).await.text("access").to_owned();
    let permissions = json!({ "api": ["channels:write"], "network": true });
    let imported = import(address, &token, &caller(permissions), false).await;
    assert!(imported.starts_with("HTTP/1.1 200"), "{imported}");
    let script = data.path().join("plugins/caller/calls.py");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();

    // What this machine does not enforce has to be accepted, once.
    let enabling = |accept: Option<bool>| {
        let body = json!({ "enabled": true, "accept_gaps": accept });
        async { admin.post(&format!("{PLUGINS}caller/enabled/"), body).await }
    };
    let listed = admin.get(PLUGINS).await.body["plugins"][0].clone();
    let gaps = listed["gaps"].as_array().unwrap().clone();
    assert_eq!(listed["unaccepted_gaps"], listed["gaps"]);
    if gaps.is_empty() {
        eprintln!("everything is enforced here");
    } else {
        let refused = admin.post(&format!("{PLUGINS}caller/enabled/"), json!({ "enabled": true })).await;
        assert_eq!((refused.status, &refused.body["gaps"]), (409, &json!(gaps)), "{refused:?}");
    }
    let enabled = enabling(Some(true)).await;
    assert_eq!(enabled.status, 200, "{enabled:?}");
    assert_eq!(enabled.body["plugin"]["unaccepted_gaps"], json!([]));
    until_state(&program, &admin, "caller", "ready").await;
    assert_eq!(enabling(Some(false)).await.status, 200, "what was accepted is not asked again");

    for http in [false, true] {
        let name = if http { "Sports" } else { "News" };
        let call = |method: &str, path: &str, body: Value| json!({ "http": http, "method": method, "path": path, "body": body });
        let result = calls(
            &admin,
            json!([
                call("POST", "/api/channels/groups/", json!({ "name": name })),
                call("GET", "/api/channels/groups/?page_size=1&page=1", Value::Null),
                call("GET", "/api/m3u/accounts/", Value::Null),
                call("GET", "/api/channels/favorites/", Value::Null),
                call("GET", "/api/nothing/", Value::Null),
            ]),
        )
        .await;
        let statuses: Vec<_> =
            result["answers"].as_array().unwrap().iter().map(|it| it["status"].clone()).collect();
        assert_eq!(json!(statuses), json!([201, 200, 403, 403, 404]), "{result}");
        assert_eq!(result["answers"][0]["body"]["name"], name);
        let audit = admin.get("/api/core/audit/").await.body["results"][0].clone();
        assert_eq!(
            (&audit["username"], &audit["path"]),
            (&json!("plugin:caller"), &json!("/api/channels/groups/")),
            "{audit}"
        );
        assert_eq!(audit["client_ip"], "127.0.0.1");
    }

    let result = calls(&admin, json!([])).await;
    let own = result["api"]["token"].as_str().unwrap().to_owned();
    let with_token = Api::stranger_at(address).bearer(&own);
    assert_eq!(with_token.get("/api/channels/groups/").await.status, 200);
    let forwarded = Request::get("/api/channels/groups/").header("X-Forwarded-For", "192.0.2.9");
    assert_eq!(with_token.ask(forwarded).await.status, 401);
    // No packet is sent.
    let outside = std::net::UdpSocket::bind("0.0.0.0:0").and_then(|it| {
        it.connect("192.0.2.1:9")?;
        it.local_addr()
    });
    match outside.ok().map(|it| it.ip()).filter(|it| !it.is_loopback() && !it.is_unspecified()) {
        Some(ip) => {
            let elsewhere = with_token.at(SocketAddr::new(ip, bound.port()));
            assert_eq!(elsewhere.get("/api/channels/groups/").await.status, 401);
        }
        None => eprintln!("this machine has no other address"),
    }

    let restarted = admin.post(&format!("{PLUGINS}caller/restart/"), json!({})).await;
    assert_eq!(restarted.status, 200, "{restarted:?}");
    assert_eq!(with_token.get("/api/channels/groups/").await.status, 401, "the token of an ended process");
    assert!(!program.output().contains(&own));

    // Limits of an admin apply to the next process, and `null` is the manifest again.
    let limits = json!({ "memory_mib": 128, "cpu_percent": null });
    let limited = admin.post(&format!("{PLUGINS}caller/limits/"), limits).await;
    assert_eq!(
        (limited.status, &limited.body["admin_limits"]),
        (200, &json!({ "memory_mib": 128 })),
        "{limited:?}"
    );
    assert_eq!(limited.body["plugin"]["limits"]["memory_mib"], 128);
    until_state(&program, &admin, "caller", "ready").await;
    let limited = admin.post(&format!("{PLUGINS}caller/limits/"), json!({ "memory_mib": 1 })).await;
    assert!(limited.status == 400 && limited.body["memory_mib"].is_array(), "{limited:?}");
    stop(program).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_version_is_back_over_rest_if_the_new_one_does_not_start() {
    let data = tempfile::tempdir().unwrap();
    let program = Binary::start(&["serve", "--data-dir", &data.path().display().to_string()]);
    let address = program.address().await;
    let admin = Api::stranger_at(address).become_first_admin().await;
    let token = admin.token(ADMIN, PASSWORD).await.text("access").to_owned();
    let package = |version: &str, code: &str| {
        let manifest = json!({
            "name": "Demo", "version": version, "description": "", "permissions": {},
            "fields": [{ "id": "word", "label": "Word", "type": "string", "default": "hi" }],
            "actions": [{ "id": "main", "label": "Main" }],
        });
        let manifest = manifest.to_string();
        archive(&[part("demo/plugin.json", manifest.as_bytes()), part("demo/plugin.py", code.as_bytes())])
    };
    let works = "class Plugin:\n    def run(self, action, params, context):\n        \
                 return {'status': 'ok', 'word': context['settings']['word']}\n";
    let imported = import(address, &token, &package("1.0.0", works), false).await;
    assert!(imported.starts_with("HTTP/1.1 200"), "{imported}");
    let enabled =
        admin.post(&format!("{PLUGINS}demo/enabled/"), json!({ "enabled": true, "accept_gaps": true })).await;
    assert_eq!(enabled.status, 200, "{enabled:?}");
    until_state(&program, &admin, "demo", "ready").await;
    let saved = json!({ "settings": { "word": "hello" } });
    assert_eq!(admin.post(&format!("{PLUGINS}demo/settings/"), saved).await.status, 200);
    let before = admin.get(PLUGINS).await.body["plugins"][0].clone();

    let broken = package("2.0.0", "raise RuntimeError('broken on purpose')\n");
    let refused = import(address, &token, &broken, true).await;
    assert!(refused.starts_with("HTTP/1.1 400") && refused.contains("old one is back"), "{refused}");
    let after = admin.get(PLUGINS).await.body["plugins"][0].clone();
    for member in ["version", "settings", "enabled", "granted_permissions"] {
        assert_eq!(after[member], before[member], "{member}: {after}");
    }
    let run = admin.post(&format!("{PLUGINS}demo/run/"), json!({ "action": "main", "params": {} })).await;
    assert_eq!((run.status, &run.body["result"]["word"]), (200, &json!("hello")), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_end_of_a_run_has_its_status() {
    let data = tempfile::tempdir().unwrap();
    let program = Binary::start(&["serve", "--data-dir", &data.path().display().to_string()]);
    let address = program.address().await;
    let admin = Api::stranger_at(address).become_first_admin().await;
    let token = admin.token(ADMIN, PASSWORD).await.text("access").to_owned();
    let code = "import os, time\nclass Plugin:\n    def run(self, action, params, context):\n        \
                if action == 'crash':\n            os._exit(3)\n        \
                if action == 'raise':\n            raise ValueError('on purpose')\n        \
                if action == 'late':\n            time.sleep(600)\n        \
                return {'status': 'ok'}\n";
    let actions = ["main", "raise", "crash", "late"].map(|id| match id {
        "late" => json!({ "id": id, "label": id, "timeout": 1 }),
        _ => json!({ "id": id, "label": id }),
    });
    let manifest = json!({
        "name": "Demo", "version": "1.0.0", "description": "", "permissions": {}, "actions": actions,
    });
    let manifest = manifest.to_string();
    let package =
        archive(&[part("demo/plugin.json", manifest.as_bytes()), part("demo/plugin.py", code.as_bytes())]);
    let imported = import(address, &token, &package, false).await;
    assert!(imported.starts_with("HTTP/1.1 200"), "{imported}");
    let run = async |key: &str, action: &str| {
        admin.post(&format!("{PLUGINS}{key}/run/"), json!({ "action": action, "params": {} })).await
    };
    assert_eq!(run("demo", "main").await.status, 403, "disabled");
    let enabling = json!({ "enabled": true, "accept_gaps": true });
    assert_eq!(admin.post(&format!("{PLUGINS}demo/enabled/"), enabling).await.status, 200);
    for (key, action, status) in [
        ("nobody", "main", 404),
        ("demo", "main", 200),
        ("demo", "raise", 500),
        ("demo", "crash", 502),
        // It does not end when it is asked to, so its process ends.
        ("demo", "late", 504),
    ] {
        let answer = run(key, action).await;
        assert_eq!(answer.status, status, "{key} {action}: {answer:?}");
    }
}
