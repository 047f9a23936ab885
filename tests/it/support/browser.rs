//! A browser that is not ours, driven over WebDriver, which is JSON over HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::api::Api;
use super::{PATIENCE, until_async};

const INSTALL: &str = "apt-get install chromium chromium-driver";

/// Headless, on its own, and quiet: nothing is asked of anybody but the page's own address.
const ARGUMENTS: [&str; 11] = [
    "--headless=new",
    // Containers and root have no sandbox to offer; the only page it sees is ours.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    // It ends when its driver does, however that ends.
    "--remote-debugging-pipe",
    "--window-size=1000,600",
];

/// The key under which WebDriver names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one window. Dropping it ends it and everything it started.
pub struct Browser {
    driver: Child,
    api: Api,
    /// Where the commands of this window go.
    session: String,
    /// Everything that it writes.
    _home: TempDir,
}

impl Browser {
    /// A missing browser is a failed test with the line that installs it.
    pub async fn start() -> Browser {
        let home = tempfile::tempdir().expect("a temporary folder");
        // `setpriv` is of every Debian. Should the test be killed, the driver is too, and the browser with it.
        let driver = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "chromedriver", "--port=0"])
            .env("HOME", home.path())
            .env("TMPDIR", home.path())
            // Of its own: what it starts is ended with it.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("setpriv can be started");
        let api = Api::stranger_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let mut browser = Browser { driver, api, session: String::new(), _home: home };
        let port = timeout(PATIENCE, browser.port()).await.expect("chromedriver says its port");
        browser.api = Api::stranger_at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let options = json!({ "goog:chromeOptions": { "args": ARGUMENTS } });
        let begun = browser.post("/session", json!({ "capabilities": { "alwaysMatch": options } })).await;
        browser.session = format!("/session/{}", begun["sessionId"].as_str().expect("the id of a session"));
        browser
    }

    /// Reads the port from what the driver says, and goes on reading, so that it can say more.
    async fn port(&mut self) -> u16 {
        let mut lines = BufReader::new(self.driver.stdout.take().expect("piped")).lines();
        loop {
            let line = lines.next_line().await.ok().flatten();
            let line = line.unwrap_or_else(|| panic!("chromedriver is needed for this test: {INSTALL}"));
            let port = line.strip_prefix("ChromeDriver was started successfully on port ");
            if let Some(port) = port.and_then(|it| it.trim_end_matches('.').parse().ok()) {
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return port;
            }
        }
    }

    /// The value of the answer to a command, which must be obeyed.
    async fn post(&self, path: &str, body: Value) -> Value {
        let mut said = self.api.post(path, body).await;
        let hint = if path == "/session" { INSTALL } else { "" };
        assert_eq!(said.status, 200, "{path}: {} {hint}", said.body["value"]["message"]);
        said.body["value"].take()
    }

    /// A command of the window.
    async fn command(&self, name: &str, body: Value) -> Value {
        self.post(&format!("{}/{name}", self.session), body).await
    }

    /// A command about the first element that the selector finds.
    async fn element(&self, selector: &str, name: &str, body: Value) {
        let wanted = json!({ "using": "css selector", "value": selector });
        let found = self.command("element", wanted).await;
        let id = found[ELEMENT].as_str().expect("the id of an element");
        self.command(&format!("element/{id}/{name}"), body).await;
    }

    pub async fn opens(&self, url: &str) {
        self.command("url", json!({ "url": url })).await;
    }

    /// Types this in place of what is there.
    pub async fn types(&self, selector: &str, text: &str) {
        self.element(selector, "clear", json!({})).await;
        self.element(selector, "value", json!({ "text": text })).await;
    }

    pub async fn clicks(&self, selector: &str) {
        self.element(selector, "click", json!({})).await;
    }

    /// What a script returns.
    pub async fn script(&self, text: &str) -> Value {
        self.command("execute/sync", json!({ "script": text, "args": [] })).await
    }

    /// Waits until what a script returns fits, and returns it.
    pub async fn until(&self, what: &str, script: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let seen = until_async(what, async || {
            last = self.script(script).await;
            fits(&last)
        });
        seen.await;
        last
    }

    /// What the window looks like, as a PNG.
    pub async fn screenshot(&self) -> Vec<u8> {
        let said = self.api.get(&format!("{}/screenshot", self.session)).await;
        STANDARD.decode(said.text("value")).expect("base64")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = self.driver.id().and_then(|it| Pid::from_raw(it.try_into().ok()?));
        if let Some(group) = group {
            // What reports crashes has left the group, and ends when there is nobody left to report. All of it may
            // have ended already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
