//! Plugins written for the reference: each does its main work with the modules that the host serves. Real processes, and
//! the REST interface of the real binary.

mod packages;
mod works;

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use storage::plugin_files::testing::{archive, part};
use tempfile::TempDir;

use crate::plugins::{PLUGINS, listed, until_state};
use crate::support::api::{ADMIN, Api, PASSWORD};
use crate::support::binary::Binary;
use crate::support::client::say;

/// A gateway with plugins.
struct Story {
    program: Binary,
    address: SocketAddr,
    admin: Api,
    token: String,
    folder: TempDir,
}

impl Story {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    /// Starts a gateway with variables in its environment, such as `A=b`.
    async fn with(environment: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A gateway that runs as root gives its plugins another user, who has to reach the data folder.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        let data = folder.path().join("data").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("PATH={path}");
        let command = [&["/usr/bin/env", path.as_str()][..], environment].concat();
        let program = Binary::start_with(&command, &["serve", "--data-dir", &data]);
        let address = program.address().await;
        let admin = Api::stranger_at(address).become_first_admin().await;
        let token = admin.token(ADMIN, PASSWORD).await.text("access").to_owned();
        Self { program, address, admin, token, folder }
    }

    /// Returns the folder of the files of a plugin.
    fn files(&self, key: &str) -> PathBuf {
        self.folder.path().join("data/plugin-data").join(key)
    }

    /// Imports a plugin with these files. Returns what is known of it.
    async fn import(&self, key: &str, manifest: Value, files: &[(&str, &[u8])]) -> Value {
        let mut all = json!({ "name": key, "version": "1.0.0", "description": "" });
        all.as_object_mut().unwrap().extend(manifest.as_object().unwrap().clone());
        let manifest = all.to_string();
        let names: Vec<String> = files.iter().map(|it| format!("{key}/{}", it.0)).collect();
        let mut parts = vec![part(&format!("{key}/plugin.json"), manifest.as_bytes())];
        parts.extend(names.iter().zip(files).map(|(name, file)| part(name, file.1)));
        let mut body =
            b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"plugin.zip\"\r\n\r\n".to_vec();
        body.extend_from_slice(&archive(&parts));
        body.extend_from_slice(b"\r\n--b--\r\n");
        let mut request = format!(
            "POST {PLUGINS}import/ HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {}\r\n\
             Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.token,
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(&body);
        let answer = say(self.address, &request).await;
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        listed(&self.admin, key).await
    }

    /// Imports and enables a plugin of one file.
    async fn install(&self, key: &str, code: &str) {
        self.import(key, json!({}), &[("plugin.py", code.as_bytes())]).await;
        let enabled = self.enable(key, json!({})).await;
        assert_eq!(enabled["status"], 200, "{enabled}");
        until_state(&self.program, &self.admin, key, "ready").await;
    }

    async fn enable(&self, key: &str, more: Value) -> Value {
        let mut body = json!({ "enabled": true, "accept_gaps": true });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut answer = self.admin.post(&format!("{PLUGINS}{key}/enabled/"), body).await;
        answer.body["status"] = answer.status.into();
        answer.body
    }

    /// Runs an action. Returns its result.
    async fn run(&self, key: &str, action: &str) -> Value {
        let body = json!({ "action": action, "params": {} });
        let answer = self.admin.post(&format!("{PLUGINS}{key}/run/"), body).await;
        let logs = || async { self.admin.get(&format!("{PLUGINS}{key}/logs/")).await.body };
        if answer.status != 200 || answer.body["result"]["status"] != "ok" {
            panic!("{key} {action}: {} {}\n{:#}", answer.status, answer.body, logs().await);
        }
        answer.body["result"].clone()
    }

    /// Sends a request that has to succeed. Returns the body of the answer.
    async fn ask(&self, method: &'static str, path: &str, body: Value) -> Value {
        let answer = self.admin.send(method, path, body).await;
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.body);
        answer.body
    }

    /// Returns one field of all rows of a list, in its order.
    async fn column(&self, path: &str, name: &str) -> Vec<Value> {
        let body = self.admin.get(path).await.body;
        let rows = body.as_array().or_else(|| body["results"].as_array());
        rows.unwrap_or_else(|| panic!("{path}: {body}")).iter().map(|it| it[name].clone()).collect()
    }

    async fn stop(mut self) {
        self.program.signal("TERM");
        assert!(self.program.ended().await.success(), "{}", self.program.output());
    }
}
