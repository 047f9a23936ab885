//! The log level can be changed while the program runs.

use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::binary::Binary;
use crate::support::eventually;
use crate::support::signal::Picture;
use crate::support::upstream::Provider;

const SECRET: &str = "hunter2-kept";
const NEWS: &str = "/live/anna/hunter2-kept/news.ts";
const SYSTEM_SETTINGS: &str = "/api/core/settings/3/";

/// A running program and its admin.
struct RunningProgram {
    program: Binary,
    admin: Api,
}

impl RunningProgram {
    async fn start(folder: &tempfile::TempDir) -> RunningProgram {
        let program = Binary::start(&["serve", "--data-dir", &folder.path().display().to_string()]);
        let admin = Api::stranger_at(program.address().await).become_first_admin().await;
        RunningProgram { program, admin }
    }

    async fn set(&self, level: Value) {
        let reply = self.admin.patch(SYSTEM_SETTINGS, json!({ "value": { "log_level": level } })).await;
        assert_eq!((reply.status, &reply.body["value"]["log_level"]), (200, &level), "{reply:?}");
    }

    async fn expect_output(&self, text: &str) {
        eventually(text, || self.program.output().contains(text)).await;
    }

    /// Sends a request whose response is logged at debug level.
    async fn request(&self, path: &str) {
        assert_eq!(self.admin.get(path).await.status, 404);
    }

    fn has_logged(&self, path: &str) -> bool {
        self.program.output().lines().any(|it| it.contains(path) && it.contains("request handled"))
    }

    async fn logs(&self, path: &str) {
        self.request(path).await;
        eventually(path, || self.has_logged(path)).await;
    }

    async fn does_not_log(&self, path: &str) {
        self.request(path).await;
        // A later log line marks the end of the wait. It is the first of its kind.
        assert!(!self.program.output().contains("login failed"), "{}", self.program.output());
        assert_eq!(self.admin.token("nobody", "wrong").await.status, 401);
        self.expect_output("login failed").await;
        assert!(!self.has_logged(path), "{}", self.program.output());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_changes_the_log_level_and_a_restart_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = RunningProgram::start(&folder).await;
    fixture.does_not_log("/api/one").await;
    fixture.set(json!("debug")).await;
    fixture.expect_output("log level set by the core settings").await;
    fixture.logs("/api/two").await;

    for level in ["loud=very", "debug,hyper=trace", "verbose"] {
        let refused = fixture.admin.patch(SYSTEM_SETTINGS, json!({ "value": { "log_level": level } })).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body["log_level"][0].as_str().unwrap().starts_with("log_level "), "{refused:?}");
    }
    fixture.logs("/api/three").await;

    fixture.program.signal("TERM");
    let mut program = fixture.program;
    assert!(program.ended().await.success());
    let fixture = RunningProgram::start(&folder).await;
    fixture.expect_output("log level set by the core settings").await;
    fixture.logs("/api/four").await;
    // The most detailed level, while a stream is read from a provider with a password.
    fixture.set(json!("trace")).await;
    fixture.expect_output("level=\"trace\"").await;
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    let url = provider.url(NEWS).replace("http://", &format!("http://anna:{SECRET}@"));
    let body = json!({ "url": url, "seconds": 1 });
    let tried = fixture.admin.post("/api/core/streamprofiles/1/test/", body).await;
    assert_eq!((tried.status, &tried.body["success"]), (200, &json!(true)), "{tried:?}");
    fixture.expect_output("stream profile \"Proxy\" tested: ").await;
    assert!(fixture.program.output().contains("upstream opened"), "{}", fixture.program.output());
    assert!(!fixture.program.output().contains(SECRET), "{}", fixture.program.output());

    let others = ["hyper", "warp", "ractor", "sled", "rustls", "reqwest"];
    let is_foreign = |line: &&str| others.iter().any(|it| line.contains(&format!(" {it}::")));
    assert_eq!(fixture.program.output().lines().find(is_foreign), None);

    fixture.set(json!("")).await;
    fixture.expect_output("log level reset to the configuration").await;
    fixture.does_not_log("/api/five").await;
}
