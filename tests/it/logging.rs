//! How much is logged is changed while the program runs.

use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::binary::Binary;
use crate::support::eventually;
use crate::support::signal::Picture;
use crate::support::upstream::Provider;

const SECRET: &str = "hunter2-kept";
const NEWS: &str = "/live/anna/hunter2-kept/news.ts";
const SYSTEM_SETTINGS: &str = "/api/core/settings/3/";

/// A running program, and its admin.
struct House {
    program: Binary,
    admin: Api,
}

impl House {
    async fn start(folder: &tempfile::TempDir) -> House {
        let program = Binary::start(&["serve", "--data-dir", &folder.path().display().to_string()]);
        let admin = Api::stranger_at(program.address().await).become_first_admin().await;
        House { program, admin }
    }

    async fn set(&self, level: Value) {
        let said = self.admin.patch(SYSTEM_SETTINGS, json!({ "value": { "log_level": level } })).await;
        assert_eq!((said.status, &said.body["value"]["log_level"]), (200, &level), "{said:?}");
    }

    async fn says(&self, text: &str) {
        eventually(text, || self.program.output().contains(text)).await;
    }

    /// Asks for something, whose answer is told at the debug level.
    async fn asks(&self, path: &str) {
        assert_eq!(self.admin.get(path).await.status, 404);
    }

    fn has_told(&self, path: &str) -> bool {
        self.program.output().lines().any(|it| it.contains(path) && it.contains("answered"))
    }

    async fn tells(&self, path: &str) {
        self.asks(path).await;
        eventually(path, || self.has_told(path)).await;
    }

    async fn tells_nothing_of(&self, path: &str) {
        self.asks(path).await;
        // What comes after it in the log.
        let name = format!("nobody after {path}");
        assert_eq!(self.admin.token(&name, "wrong").await.status, 401);
        self.says(&name).await;
        assert!(!self.has_told(path), "{}", self.program.output());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_changes_how_much_is_logged_and_a_restart_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::start(&folder).await;
    house.tells_nothing_of("/api/one").await;
    house.set(json!("debug")).await;
    house.says("the core settings set the log level").await;
    house.tells("/api/two").await;

    for level in ["loud=very", "debug,hyper=trace", "verbose"] {
        let refused = house.admin.patch(SYSTEM_SETTINGS, json!({ "value": { "log_level": level } })).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body["log_level"][0].as_str().unwrap().starts_with("log_level "), "{refused:?}");
    }
    house.tells("/api/three").await;

    house.program.signal("TERM");
    let mut program = house.program;
    assert!(program.ended().await.success());
    let house = House::start(&folder).await;
    house.says("the core settings set the log level").await;
    house.tells("/api/four").await;
    // All that can be told of ours, while something is read from a provider with a password.
    house.set(json!("trace")).await;
    house.says("level=\"trace\"").await;
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    let url = provider.url(NEWS).replace("http://", &format!("http://anna:{SECRET}@"));
    let body = json!({ "url": url, "seconds": 1 });
    let tried = house.admin.post("/api/core/streamprofiles/1/test/", body).await;
    assert_eq!((tried.status, &tried.body["success"]), (200, &json!(true)), "{tried:?}");
    house.says("stream profile \"Proxy\" was tried").await;
    assert!(house.program.output().contains("upstream opened"), "{}", house.program.output());
    assert!(!house.program.output().contains(SECRET), "{}", house.program.output());

    let others = ["hyper", "warp", "ractor", "sled", "rustls", "reqwest"];
    let is_foreign = |line: &&str| others.iter().any(|it| line.contains(&format!(" {it}::")));
    assert_eq!(house.program.output().lines().find(is_foreign), None);

    house.set(json!("")).await;
    house.says("the log level is that of the configuration again").await;
    house.tells_nothing_of("/api/five").await;
}
