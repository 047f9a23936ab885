//! Stories of plugins, with real Python processes behind the real launcher.
//!
//! The launcher is the example of this crate, which is built together with its tests.

mod beside;
mod calls;
mod limits;
mod packages;
mod permissions;
mod processes;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::plugin::{LimitsEdit, Manifest, Plugin, PluginGap, PluginKey, PluginState};
use media::closer::Closer;
use media::{Confinement, Launcher, LauncherSettings, can_restrict_files};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use storage::Store;
use tokio::runtime::Handle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::*;

/// Time for conditions that take milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Plugins in folders, with what is stored about them.
#[derive(Default)]
struct Records {
    code: PathBuf,
    records: Mutex<HashMap<PluginKey, Plugin>>,
    notes: Mutex<Vec<PluginNote>>,
    notifications: Mutex<Vec<PluginNotification>>,
    values: OnceLock<Store>,
    /// Slow calls that go on, and the most at once.
    calls: AtomicUsize,
    calls_max: AtomicUsize,
}

impl PluginBackend for Records {
    fn keys(&self) -> Vec<PluginKey> {
        self.records.lock().keys().cloned().collect()
    }

    fn installed(&self, key: &PluginKey) -> Option<InstalledPlugin> {
        let record = self.records.lock().get(key)?.clone();
        let manifest = fs::read(self.code.join(key.as_str()).join("plugin.json")).ok()?;
        Some(InstalledPlugin { record, manifest: Manifest::parse(&manifest).unwrap() })
    }

    fn note(&self, key: PluginKey, note: PluginNote) -> Pending<'_, Result<(), String>> {
        self.notes.lock().push(note.clone());
        if let Some(record) = self.records.lock().get_mut(&key) {
            match note {
                PluginNote::Reported(it) => record.reported = Some(it),
                PluginNote::Failed(it) => record.failed = it,
                PluginNote::FailedStarts(it) => record.failed_starts = it,
            }
        }
        Box::pin(async { Ok(()) })
    }

    fn value_store(&self) -> Result<Option<Store>, String> {
        let store = self.values.get_or_init(|| Store::temporary(storage::records::schema()).unwrap());
        Ok(Some(store.clone()))
    }

    fn call_api(&self, caller: Arc<PluginCaller>, call: ApiCall) -> Pending<'_, ApiAnswer> {
        Box::pin(async move {
            if call.path == "/slow/" {
                let at_once = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
                self.calls_max.fetch_max(at_once, Ordering::SeqCst);
                // Until eight go on, however slowly the plugin makes them. A ninth would have time to begin.
                while self.calls_max.load(Ordering::SeqCst) < 8 {
                    sleep(Duration::from_millis(5)).await;
                }
                sleep(Duration::from_millis(50)).await;
                self.calls.fetch_sub(1, Ordering::SeqCst);
            }
            match &*call.path {
                "/never/" => std::future::pending().await,
                "/bug/" => panic!("on purpose"),
                "/large/" => ApiAnswer { status: 200, body: format!("\"{}\"", "x".repeat(5 << 20)) },
                _ => {
                    let body = json!({"key": caller.key.as_str(), "call": format!("{call:?}"),
                        "scopes": caller.permissions.api})
                    .to_string();
                    ApiAnswer { status: 200, body }
                }
            }
        })
    }

    fn notify(&self, notification: PluginNotification) {
        self.notifications.lock().push(notification);
    }
}

/// A gateway as far as plugins need one.
struct Bench {
    plugins: Plugins,
    records: Arc<Records>,
    folder: tempfile::TempDir,
    stop: CancellationToken,
    closer: Closer,
    settings: PluginSettings,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut PluginSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = folder.path().join("data");
        for name in ["data/plugins", "data/plugin-data", "data/store", "recordings", "open"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
        for name in ["data/key", "data/store/db", "recordings/film.ts", "open/file"] {
            fs::write(folder.path().join(name), "secret").unwrap();
        }
        // As the gateway creates them.
        fs::set_permissions(data.join("key"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(data.join("store"), fs::Permissions::from_mode(0o700)).unwrap();
        let folders = PluginFolders {
            code: data.join("plugins"),
            data: data.join("plugin-data"),
            recordings: folder.path().join("recordings"),
            logos: data.join("logos"),
        };
        let timings = PluginTimings {
            start: PATIENCE,
            hang: PATIENCE,
            look: Duration::from_millis(50),
            pause_divisor: 1_000,
            ..PluginTimings::default()
        };
        let mut settings = PluginSettings {
            folders,
            python: None,
            time_zone: "UTC".to_owned(),
            api_url: Some("http://127.0.0.1:8000".to_owned()),
            accepted_gaps: BTreeSet::new(),
            is_safe_mode: false,
            timings,
        };
        change(&mut settings);
        let records = Arc::new(Records { code: settings.folders.code.clone(), ..Records::default() });
        let (plugins, stop, closer) = handle(&data);
        Self { plugins, records, folder, stop, closer, settings }
    }

    /// Adds an enabled plugin with this code and these additions to its manifest.
    fn install(&self, key: &str, code: &str, manifest: Value) -> PluginKey {
        let key = PluginKey::from_folder(key).unwrap();
        write_code(&self.settings.folders.code.join(key.as_str()), code, manifest);
        let manifest = fs::read(self.settings.folders.code.join(key.as_str()).join("plugin.json")).unwrap();
        let granted = Manifest::parse(&manifest).unwrap().permissions;
        let record = Plugin {
            id: 1,
            key: key.clone(),
            is_enabled: true,
            was_enabled: true,
            granted: Some(granted),
            allowed_packages: Vec::new(),
            accepted_gaps: PluginGap::ALL.into(),
            limits: LimitsEdit::default(),
            settings: serde_json::from_value(json!({"greeting": "hello", "password": "hunter22"})).unwrap(),
            version: String::new(),
            archive: None,
            reported: None,
            failed_starts: 0,
            failed: None,
            installed_at: 0,
            updated_at: 0,
        };
        self.records.records.lock().insert(key.clone(), record);
        key
    }

    fn start(&self) {
        self.plugins.start(self.records.clone(), self.settings.clone());
    }

    /// Starts a gateway again with the same folders and records.
    async fn start_again(&mut self) {
        self.stop.cancel();
        self.plugins.ended().await;
        let data = self.folder.path().join("data");
        (self.plugins, self.stop, self.closer) = handle(&data);
        self.start();
    }

    async fn until(&self, key: &PluginKey, state: PluginState) -> PluginStatus {
        let mut last = None;
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                last = self.plugins.state(key);
                match &last {
                    Some(status) if status.state == state => return status.clone(),
                    _ => sleep(Duration::from_millis(10)).await,
                }
            }
        });
        let found = found.await;
        match found {
            Ok(status) => status,
            Err(_) => panic!("no {state:?}: {last:?}; {:#?}", self.plugins.logs(key, 50).await),
        }
    }

    async fn run(&self, key: &PluginKey, action: &str) -> RunResult {
        self.run_with(key, action, json!({})).await
    }

    async fn run_with(&self, key: &PluginKey, action: &str, params: Value) -> RunResult {
        let Value::Object(params) = params else { unreachable!() };
        match self.plugins.run(key, action, params, RunCause::Button).await {
            Ok(RunAnswer::Ended(_, result)) => result,
            other => panic!("{other:?}"),
        }
    }

    /// Runs an action that returns an object.
    async fn returned(&self, key: &PluginKey, action: &str) -> Value {
        match self.run(key, action).await {
            RunResult::Returned(value) => value,
            other => panic!("{other:?}; {:#?}", self.plugins.logs(key, 50).await),
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn handle(data: &Path) -> (Plugins, CancellationToken, Closer) {
    let (stop, closer) = (CancellationToken::new(), Closer::new(Handle::current()));
    let tests = std::env::current_exe().unwrap();
    let binary = tests.parent().unwrap().with_file_name("examples").join("launcher");
    assert!(binary.exists(), "the example `launcher` is built with the tests: {}", binary.display());
    let launcher = Launcher::new(LauncherSettings {
        binary: Some(binary),
        allowed: Vec::new(),
        confinement: Confinement {
            hidden: vec![data.to_owned(), data.join("store"), data.join("key")],
            ..Confinement::default()
        },
    });
    (Plugins::new(launcher, closer.clone(), Handle::current(), stop.clone()), stop, closer)
}

fn write_code(folder: &Path, code: &str, manifest: Value) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("plugin.py"), code).unwrap();
    let mut all = json!({
        "name": "Demo",
        "version": "1",
        "description": "",
        "permissions": {},
        "fields": [
            {"id": "greeting", "label": "Greeting", "type": "string", "default": "hi"},
            {"id": "extra", "label": "Extra", "type": "number", "default": 3},
            {"id": "password", "label": "Password", "type": "string", "input_type": "password"},
        ],
        "actions": [],
    });
    all["actions"] = ["main", "other", "stop"].iter().map(|id| json!({"id": id, "label": id})).collect();
    for (name, value) in manifest.as_object().unwrap() {
        match value.is_null() {
            true => drop(all.as_object_mut().unwrap().remove(name)),
            false => all[name] = value.clone(),
        }
    }
    fs::write(folder.join("plugin.json"), all.to_string()).unwrap();
}

/// A plugin whose action runs this code, indented by nothing; `params` and `context` are its arguments.
fn acting(code: &str) -> String {
    let stops = if code.contains("'stop'") { "True" } else { "False" };
    let body: String = code.lines().map(|it| format!("        {it}\n")).collect();
    format!(
        "import os, sys, time, threading, socket, subprocess, signal, json\n\
         STOPS = {stops}\n\
         class Plugin:\n    def run(self, action, params, context):\n        if action == 'other':\n            return {{'pid': os.getpid()}}\n        if action == 'stop' and params == {{}} and not STOPS:\n            return\n{body}"
    )
}

/// Returns whether no process of this group is left.
fn is_gone(group: u32) -> bool {
    !usage::by_group(&[group].into()).contains_key(&group)
}

async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let done = tokio::time::timeout(PATIENCE, async {
        while !condition() {
            sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(done.await.is_ok(), "{what}");
}
