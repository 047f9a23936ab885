//! Repositories of plugins on a small server.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use data_encoding::HEXLOWER;
use domain::plugin::PluginKey;
use domain::plugin::repository::REPOSITORIES_KEY;
use domain::setting::CoreSetting;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use storage::plugin_files::testing::{archive, part};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::testing::Rest;

const REPOS: &str = "/api/plugins/repos/";
const INSTALL: &str = "/api/plugins/repos/install/";

/// A server of files.
#[derive(Clone)]
struct Server {
    address: String,
    files: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    n_requests: Arc<AtomicUsize>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { address, files: Arc::default(), n_requests: Arc::default() };
        let (files, n_requests) = (Arc::clone(&server.files), Arc::clone(&server.n_requests));
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                n_requests.fetch_add(1, Ordering::Relaxed);
                let mut request = vec![0; 8192];
                let n = socket.read(&mut request).await.unwrap_or_default();
                let text = String::from_utf8_lossy(&request[..n]).into_owned();
                let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
                let file = files.lock().get(&path).cloned();
                let (status, body) = match file {
                    Some(body) => ("200 OK", body),
                    None => ("404 Not Found", Vec::new()),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let _ = socket.write_all(&[head.as_bytes(), &body].concat()).await;
            }
        });
        server
    }

    fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.files.lock().insert(path.to_owned(), content.into());
    }

    /// Publishes a version of the plugin `demo` as the latest one.
    fn publish(&self, version: &str) {
        let manifest = json!({ "name": "Demo", "version": version, "description": "d" });
        let zip = archive(&[
            part("demo/plugin.json", manifest.to_string().as_bytes()),
            part("demo/plugin.py", b"class Plugin: pass"),
        ]);
        let sum = HEXLOWER.encode(&Sha256::digest(&zip));
        let url = format!("demo-{version}.zip");
        self.put(&format!("/files/{url}"), zip);
        let versions = json!({ "manifest": { "versions": [
            { "version": version, "url": url, "checksum_sha256": sum },
            { "version": "0.1", "url": "gone.zip", "checksum_sha256": "00".repeat(32) },
            { "version": "0.2", "url": "demo-1.0.zip", "checksum_sha256": "00".repeat(32) },
        ] } });
        self.put("/demo.json", versions.to_string());
        let list = json!({ "manifest": {
            "registry_name": "Me/Plugins", "root_url": format!("{}/files", self.address),
            "plugins": [
                { "slug": "demo", "name": "Demo", "manifest_url": format!("{}/demo.json", self.address),
                  "latest_version": version, "latest_sha256": sum, "latest_url": url },
                { "name": "no slug" },
            ],
        } });
        self.put("/manifest.json", list.to_string());
    }
}

async fn add(rest: &Rest, server: &Server) -> u64 {
    let url = format!("{}/manifest.json", server.address);
    let added = rest.admin("POST", REPOS, json!({ "url": url })).await;
    assert_eq!(added.status, 201, "{}", added.text);
    assert_eq!((&added.body["name"], &added.body["signature"]), (&json!("Me/Plugins"), &json!("not_signed")));
    assert_eq!((&added.body["plugin_count"], added.body["faults"].as_array().unwrap().len()), (&json!(1), 1));
    added.body["id"].as_u64().unwrap()
}

async fn offered(rest: &Rest) -> Value {
    let answer = rest.admin("GET", "/api/plugins/repos/available/", Value::Null).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.body["plugins"][0].clone()
}

#[tokio::test]
async fn a_plugin_is_installed_and_updated_from_a_repository_and_keeps_its_settings() {
    let (rest, server) = (Rest::start().await, Server::start().await);
    server.publish("1.0");
    let id = add(&rest, &server).await;
    let offer = offered(&rest).await;
    assert_eq!(
        (&offer["slug"], &offer["latest_version"], &offer["installed_key"]),
        (&json!("demo"), &json!("1.0"), &Value::Null)
    );
    let body = json!({ "repo_id": id, "slug": "demo" });
    let installed = rest.admin("POST", INSTALL, body.clone()).await;
    assert_eq!(
        (installed.status, &installed.body["plugin"]["version"]),
        (200, &json!("1.0")),
        "{}",
        installed.text
    );
    let file = rest
        .context
        .plugins
        .installed
        .files
        .folder(&PluginKey::from_folder("demo").unwrap())
        .join("plugin.py");
    assert!(file.is_file());
    server.publish("1.1");
    let refreshed = rest.admin("POST", &format!("{REPOS}{id}/refresh/"), Value::Null).await;
    assert_eq!(refreshed.status, 200, "{}", refreshed.text);
    let offer = offered(&rest).await;
    assert_eq!((&offer["installed_version"], &offer["update_available"]), (&json!("1.0"), &json!(true)));
    let updated = rest.admin("POST", INSTALL, body).await;
    assert_eq!(
        (updated.status, &updated.body["plugin"]["version"]),
        (200, &json!("1.1")),
        "{}",
        updated.text
    );
    let old = json!({ "repo_id": id, "slug": "demo", "version": "1.1" });
    let versions = rest.admin("POST", "/api/plugins/repos/plugin-detail/", old).await;
    assert_eq!(versions.body["versions"][0]["version"], json!("1.1"), "{}", versions.text);
    assert_eq!(rest.admin("DELETE", &format!("{REPOS}{id}/"), Value::Null).await.status, 204);
    assert!(file.is_file(), "the plugins of a removed repository stay");
    assert_eq!(rest.admin("GET", REPOS, Value::Null).await.body["results"], json!([]));
}

#[tokio::test]
async fn what_is_not_as_the_repository_states_is_refused_and_changes_nothing() {
    let (rest, server) = (Rest::start().await, Server::start().await);
    server.publish("1.0");
    let id = add(&rest, &server).await;
    let wrong = |version: &str| json!({ "repo_id": id, "slug": "demo", "version": version });
    for (body, status, reason) in [
        (wrong("0.2"), 502, "another SHA-256 checksum"),
        (wrong("0.1"), 502, "does not answer"),
        (wrong("9.9"), 404, "no version 9.9"),
        (json!({ "repo_id": id, "slug": "other" }), 404, "no plugin"),
        (json!({ "repo_id": 99, "slug": "demo" }), 404, "no repository"),
    ] {
        let refused = rest.admin("POST", INSTALL, body).await;
        assert_eq!(refused.status, status, "{}", refused.text);
        assert!(refused.text.contains(reason), "{}", refused.text);
    }
    assert_eq!(rest.admin("GET", "/api/plugins/plugins/", Value::Null).await.body["plugins"], json!([]));
    server.put("/html", "<html>login</html>");
    for (body, status) in [
        (json!({ "url": "ftp://example.com/x" }), 400),
        (json!({ "url": format!("{}/manifest.json", server.address) }), 400),
        (json!({ "url": format!("{}/manifest.json", server.address), "public_key": "no key" }), 400),
        (json!({ "url": format!("{}/html", server.address) }), 502),
        (json!({ "url": format!("{}/gone", server.address) }), 502),
    ] {
        let refused = rest.admin("POST", REPOS, body).await;
        assert_eq!(refused.status, status, "{}", refused.text);
    }
    assert_eq!(rest.standard("GET", REPOS, Value::Null).await.status, 403);
    assert_eq!(rest.standard("POST", INSTALL, wrong("1.0")).await.status, 403);
}

/// Gives the repositories other ids, so that nothing of them is in memory, as after a start of the gateway.
async fn forget_lists(rest: &Rest) {
    let mut setting =
        CoreSetting::clone(rest.models.settings.load().one_by("key", REPOSITORIES_KEY).unwrap());
    let last = setting.value["last_id"].as_u64().unwrap();
    for repository in setting.value["repositories"].as_array_mut().unwrap() {
        repository["id"] = json!(repository["id"].as_u64().unwrap() + last);
    }
    setting.value["last_id"] = json!(2 * last);
    rest.models.store.write(move |write| write.put(&setting)).await.unwrap();
}

#[tokio::test]
async fn a_repository_that_does_not_answer_is_asked_once_and_again_after_a_pause_or_when_an_admin_asks() {
    const AVAILABLE: &str = "/api/plugins/repos/available/";
    let (rest, good, dead) = (Rest::start().await, Server::start().await, Server::start().await);
    for server in [&good, &dead] {
        server.publish("1.0");
        add(&rest, server).await;
    }
    let n_requests = || [&good, &dead].map(|it| it.n_requests.load(Ordering::Relaxed));
    let available = async || {
        let answer = rest.admin("GET", AVAILABLE, Value::Null).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.body["plugins"].as_array().unwrap().len()
    };
    assert_eq!((available().await, n_requests()), (2, [1, 1]), "both lists are in memory");
    dead.files.lock().clear();
    forget_lists(&rest).await;
    assert_eq!(tokio::join!(available(), available()), (1, 1));
    assert_eq!((available().await, n_requests()), (1, [2, 2]), "a request waits for the other one's fetch");
    let list = rest.admin("GET", REPOS, Value::Null).await;
    assert!(list.text.contains("does not answer"), "{}", list.text);

    let id = rest.context.plugins.repositories.stored().repositories[1].id;
    let refresh = async || rest.admin("POST", &format!("{REPOS}{id}/refresh/"), Value::Null).await.status;
    assert_eq!((refresh().await, n_requests()), (502, [2, 3]), "an admin who asks for it need not wait");
    dead.publish("1.0");
    assert_eq!((refresh().await, available().await, n_requests()), (200, 2, [2, 4]));
}
