//! Plugins with the real binary: from the archive to a run.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};
use storage::plugin_files::testing::{archive, hostile_archives, part};

use crate::support::api::{ADMIN, Api, PASSWORD};
use crate::support::binary::Binary;
use crate::support::client::say;

const PLUGINS: &str = "/api/plugins/plugins/";

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
async fn import(address: SocketAddr, token: &str, content: &[u8], overwrite: bool) -> String {
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

    let enabled = admin.post(&format!("{PLUGINS}greeter/enabled/"), json!({ "enabled": true })).await;
    let plugin = &enabled.body["plugin"];
    assert_eq!((enabled.status, &plugin["state"]), (200, &json!("ready")), "{plugin}\n{}", program.output());
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
