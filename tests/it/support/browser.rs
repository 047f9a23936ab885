//! Chromium, driven over WebDriver (JSON over HTTP).

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

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

const INSTALL: &str = "apt-get install chromium-headless-shell chromium-driver";
/// The browser without windows: a page costs half of what it costs in the whole browser.
const BROWSER: &str = "/usr/bin/chromium-headless-shell";

/// Headless, and without network access except to the page under test.
const ARGUMENTS: [&str; 10] = [
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
    home: TempDir,
}

/// Number of attempts to start the driver.
const STARTS_MAX: usize = 5;

impl Browser {
    /// Starts the browser; a missing one fails the test with the command that installs it.
    pub async fn start() -> Browser {
        for _ in 1..STARTS_MAX {
            if let Some(browser) = Self::try_start().await {
                return browser;
            }
        }
        Self::try_start().await.unwrap_or_else(|| panic!("this test needs chromedriver: {INSTALL}"))
    }

    /// Returns `None` if the driver ends at once: it does so if its port is in use for one of the versions of IP.
    async fn try_start() -> Option<Browser> {
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
        let mut browser = Browser { driver, api, session: String::new(), home };
        let port = timeout(WAIT_MAX, browser.port()).await.expect("chromedriver prints its port")?;
        browser.api = Api::stranger_at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let options = json!({
            "browserName": "chrome-headless-shell",
            "goog:chromeOptions": { "args": ARGUMENTS, "binary": BROWSER },
            "goog:loggingPrefs": { "browser": "WARNING", "performance": "ALL" },
        });
        let begun = browser.post("/session", json!({ "capabilities": { "alwaysMatch": options } })).await;
        browser.session = format!("/session/{}", begun["sessionId"].as_str().expect("the id of a session"));
        Some(browser)
    }

    /// Reads the port from the driver's output, and keeps reading so that the driver does not block.
    async fn port(&mut self) -> Option<u16> {
        let mut lines = BufReader::new(self.driver.stdout.take().expect("piped")).lines();
        loop {
            let line = lines.next_line().await.ok().flatten()?;
            let port = line.strip_prefix("ChromeDriver was started successfully on port ");
            if let Some(port) = port.and_then(|it| it.trim_end_matches('.').parse().ok()) {
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Some(port);
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

    /// Gives the page this size, in CSS pixels; windows cannot be as narrow as phones.
    pub async fn resizes(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.debugs("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Lets the system prefer this theme: `light` or `dark`.
    pub async fn prefers(&self, theme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": theme });
        self.debugs("Emulation.setEmulatedMedia", json!({ "features": [feature] })).await;
    }

    /// Waits until the browser has saved a file, and returns its content. To be called before the file is saved, with what
    /// saves it.
    pub async fn saves(&self, save: impl Future<Output = ()>) -> (String, Vec<u8>) {
        let folder = tempfile::tempdir_in(self.home.path()).expect("the folder can be written");
        let place = json!({ "behavior": "allow", "downloadPath": folder.path() });
        self.debugs("Browser.setDownloadBehavior", place).await;
        save.await;
        let mut found = None;
        until_async("a saved file", async || {
            let files = std::fs::read_dir(folder.path()).expect("the folder can be read");
            let paths = files.flatten().map(|it| it.path());
            // A file that is not complete has a name of its own, and one that has just begun is empty.
            let is_begun = |it: &PathBuf| std::fs::metadata(it).is_ok_and(|it| it.len() > 0);
            let is_complete = |it: &PathBuf| it.extension().is_some_and(|it| it != "crdownload");
            found = paths.into_iter().find(|it| is_complete(it) && is_begun(it));
            found.is_some()
        })
        .await;
        let path = found.expect("a file");
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read(&path).expect("the file can be read"))
    }

    /// Sends a command of the debugging protocol.
    async fn debugs(&self, command: &str, parameters: Value) -> Value {
        self.command("goog/cdp/execute", json!({ "cmd": command, "params": parameters })).await
    }

    /// Returns the warnings and errors on the console since the last call.
    pub async fn console(&self) -> Vec<String> {
        let lines = self.command("se/log", json!({ "type": "browser" })).await;
        let lines = lines.as_array().cloned().unwrap_or_default();
        lines.iter().map(|it| it["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Returns the addresses that pages have requested since the last call.
    pub async fn requested(&self) -> Vec<String> {
        let lines = self.command("se/log", json!({ "type": "performance" })).await;
        let lines = lines.as_array().cloned().unwrap_or_default();
        let requests = lines.iter().filter_map(|it| {
            let line: Value = serde_json::from_str(it["message"].as_str()?).ok()?;
            let is_request = line["message"]["method"] == "Network.requestWillBeSent";
            let url = line["message"]["params"]["request"]["url"].as_str()?.to_owned();
            is_request.then_some(url)
        });
        requests.collect()
    }

    /// Presses a key in the element that has the focus.
    pub async fn presses(&self, key: &str) {
        let steps = json!([{ "type": "keyDown", "value": key }, { "type": "keyUp", "value": key }]);
        let actions = json!([{ "type": "key", "id": "keyboard", "actions": steps }]);
        self.command("actions", json!({ "actions": actions })).await;
    }

    /// Presses a key while another one is held.
    pub async fn presses_with(&self, held: &str, key: &str) {
        let steps = [("keyDown", held), ("keyDown", key), ("keyUp", key), ("keyUp", held)];
        let steps: Vec<Value> = steps.iter().map(|it| json!({ "type": it.0, "value": it.1 })).collect();
        let actions = json!([{ "type": "key", "id": "keyboard", "actions": steps }]);
        self.command("actions", json!({ "actions": actions })).await;
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

    /// Clicks on the first element that matches the selector. Returns false if the page has just removed or covered it.
    pub async fn tries_to_click(&self, selector: &str) -> bool {
        let wanted = json!({ "using": "css selector", "value": selector });
        let found = self.api.post(&format!("{}/element", self.session), wanted).await;
        let Some(id) = found.body["value"][ELEMENT].as_str() else { return false };
        self.api.post(&format!("{}/element/{id}/click", self.session), json!({})).await.status == 200
    }

    /// Runs a script and returns its value.
    pub async fn script(&self, text: &str) -> Value {
        self.command("execute/sync", json!({ "script": text, "args": [] })).await
    }

    /// Waits until the value of a script matches, and returns it.
    pub async fn until(&self, what: &str, script: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let seen = timeout(WAIT_MAX, async {
            loop {
                last = self.script(script).await;
                if fits(&last) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        let is_seen = seen.await.is_ok();
        assert!(is_seen, "timeout waiting for {what}; the last value is {last}");
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
