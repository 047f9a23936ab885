//! Chromium, driven over WebDriver (JSON over HTTP).

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
use super::{WAIT_MAX, until_async};

const INSTALL: &str = "apt-get install chromium chromium-driver";

/// Headless, and without network access except to the page under test.
const ARGUMENTS: [&str; 11] = [
    "--headless=new",
    // Containers and root have no sandbox; the browser opens only our page.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    // The browser exits when its driver does, for whatever reason.
    "--remote-debugging-pipe",
    "--window-size=1000,600",
];

/// The key of an element id in WebDriver.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one window. Dropping it ends the browser and all its processes.
pub struct Browser {
    driver: Child,
    api: Api,
    /// Path prefix of this window's commands.
    session: String,
    /// The folder for all files it writes.
    _home: TempDir,
}

impl Browser {
    /// Starts the browser; a missing one fails the test with the command that installs it.
    pub async fn start() -> Browser {
        let home = tempfile::tempdir().expect("a temporary folder");
        // `setpriv` is part of every Debian. It kills the driver, and the browser with it, if the test is killed.
        let driver = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "chromedriver", "--port=0"])
            .env("HOME", home.path())
            .env("TMPDIR", home.path())
            // An own process group, so that all its processes can be killed.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("setpriv can be started");
        let api = Api::stranger_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let mut browser = Browser { driver, api, session: String::new(), _home: home };
        let port = timeout(WAIT_MAX, browser.port()).await.expect("chromedriver prints its port");
        browser.api = Api::stranger_at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let options = json!({ "goog:chromeOptions": { "args": ARGUMENTS } });
        let begun = browser.post("/session", json!({ "capabilities": { "alwaysMatch": options } })).await;
        browser.session = format!("/session/{}", begun["sessionId"].as_str().expect("the id of a session"));
        browser
    }

    /// Reads the port from the driver's output, and keeps reading so that the driver does not block.
    async fn port(&mut self) -> u16 {
        let mut lines = BufReader::new(self.driver.stdout.take().expect("piped")).lines();
        loop {
            let line = lines.next_line().await.ok().flatten();
            let line = line.unwrap_or_else(|| panic!("this test needs chromedriver: {INSTALL}"));
            let port = line.strip_prefix("ChromeDriver was started successfully on port ");
            if let Some(port) = port.and_then(|it| it.trim_end_matches('.').parse().ok()) {
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return port;
            }
        }
    }

    /// Sends a command, which must succeed, and returns its value.
    async fn post(&self, path: &str, body: Value) -> Value {
        let mut reply = self.api.post(path, body).await;
        let hint = if path == "/session" { INSTALL } else { "" };
        assert_eq!(reply.status, 200, "{path}: {} {hint}", reply.body["value"]["message"]);
        reply.body["value"].take()
    }

    /// Sends a command to the window.
    async fn command(&self, name: &str, body: Value) -> Value {
        self.post(&format!("{}/{name}", self.session), body).await
    }

    /// Sends a command to the first element that matches the selector.
    async fn element(&self, selector: &str, name: &str, body: Value) {
        let wanted = json!({ "using": "css selector", "value": selector });
        let found = self.command("element", wanted).await;
        let id = found[ELEMENT].as_str().expect("the id of an element");
        self.command(&format!("element/{id}/{name}"), body).await;
    }

    pub async fn opens(&self, url: &str) {
        self.command("url", json!({ "url": url })).await;
    }

    /// Replaces the text of an element.
    pub async fn types(&self, selector: &str, text: &str) {
        self.element(selector, "clear", json!({})).await;
        self.element(selector, "value", json!({ "text": text })).await;
    }

    pub async fn clicks(&self, selector: &str) {
        self.element(selector, "click", json!({})).await;
    }

    /// Runs a script and returns its value.
    pub async fn script(&self, text: &str) -> Value {
        self.command("execute/sync", json!({ "script": text, "args": [] })).await
    }

    /// Waits until the value of a script matches, and returns it.
    pub async fn until(&self, what: &str, script: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let seen = until_async(what, async || {
            last = self.script(script).await;
            fits(&last)
        });
        seen.await;
        last
    }

    /// Returns a screenshot of the window, as PNG.
    pub async fn screenshot(&self) -> Vec<u8> {
        let reply = self.api.get(&format!("{}/screenshot", self.session)).await;
        STANDARD.decode(reply.text("value")).expect("base64")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = self.driver.id().and_then(|it| Pid::from_raw(it.try_into().ok()?));
        if let Some(group) = group {
            // The crash reporter has its own process group and exits by itself. All processes may have exited already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
