//! Stories of plugins, with real Python processes behind the real launcher.
//!
//! The launcher is the example of this crate, which is built together with its tests.

use std::collections::HashMap;
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

    fn call_api(&self, caller: Arc<PluginCaller>, call: ApiCall) -> Pending<'_, ApiAnswer> {
        Box::pin(async move {
            if call.path == "/slow/" {
                let at_once = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
                self.calls_max.fetch_max(at_once, Ordering::SeqCst);
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
        let key = PluginKey::of_folder(key).unwrap();
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
    !usage::of_groups(&[group].into()).contains_key(&group)
}

async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let done = tokio::time::timeout(PATIENCE, async {
        while !condition() {
            sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(done.await.is_ok(), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_runs_actions_with_settings_storage_progress_and_messages() {
    let bench = Bench::new();
    let code = acting(
        "if action == 'stop':\n    context['storage'].set('stopped', context['reason'])\n    return\n\
         context['progress'](40, 'halfway')\n\
         context['publish']({'news': 1})\n\
         context['logger'].info('the password is %s', context['settings']['password'])\n\
         print('printed')\n\
         sys.stdout.write('{\"id\":2,\"result\":\"no answer\"}\\n')\n\
         os.system('true')\n\
         context.storage.set('count', context.storage.get('count', 0) + 1)\n\
         return {'settings': context['settings'], 'count': context.storage.get('count'),\n        'stopped': context.storage.get('stopped'), 'params': params, 'key': context.plugin_key,\n        'actions': sorted(context['actions'])}",
    );
    let key = bench.install("demo", &code, json!({}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let RunResult::Returned(value) = bench.run_with(&key, "main", json!({"x": [1]})).await else {
        panic!("{:#?}", bench.plugins.logs(&key, 50).await);
    };
    assert_eq!(value["settings"], json!({"greeting": "hello", "extra": 3, "password": "hunter22"}));
    assert_eq!(
        (&value["count"], &value["params"], &value["key"]),
        (&json!(1), &json!({"x": [1]}), &json!("demo"))
    );
    assert_eq!(value["actions"], json!(["main", "other", "stop"]));
    let progress = bench.plugins.jobs(&key)[0].clone();
    assert_eq!((progress.percent, progress.message.as_deref()), (Some(40.0), Some("halfway")));
    let messages = bench
        .records
        .notifications
        .lock()
        .iter()
        .filter(|it| matches!(it, PluginNotification::Message { .. }))
        .count();
    assert_eq!(messages, 1);
    eventually("the printed line", || {
        let folder = OwnFolders::of(&bench.settings.folders, "demo").logs;
        log::last_lines(&folder, 50).iter().any(|it| it.ends_with("output printed"))
    })
    .await;
    let log = bench.plugins.logs(&key, 50).await.join("\n");
    assert!(log.contains("info the password is …") && !log.contains("hunter22"), "{log}");

    assert_eq!(bench.run(&key, "nothing").await, RunResult::UnknownAction);
    let unknown = PluginKey::of_folder("unknown").unwrap();
    let refused = bench.plugins.run(&unknown, "main", Map::new(), RunCause::Button).await;
    assert_eq!(refused, Err(RunRefusal::UnknownPlugin));

    // The action `stop` runs, and what it stored is there for the next process.
    let pid = bench.plugins.state(&key).unwrap().pid.unwrap();
    bench.plugins.restart(&key).await.unwrap();
    assert!(is_gone(pid));
    let value = bench.returned(&key, "main").await;
    assert_eq!((&value["count"], &value["stopped"]), (&json!(2), &json!("restart")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_takes_the_place_of_another_keeps_the_files() {
    let bench = Bench::new();
    let code = acting(
        "folder = context['data_dir']\n\
         if not os.listdir(folder + '/many'):\n    for it in range(500): open(f'{folder}/many/{it}', 'w').close()\n\
         paths = [folder] + [entry.path for entry in os.scandir(folder + '/many')]\n\
         return {'owned': sum(os.stat(it).st_uid == os.getuid() for it in paths), 'pid': os.getpid()}",
    );
    let key = bench.install("demo", &code, json!({}));
    fs::create_dir_all(OwnFolders::of(&bench.settings.folders, "demo").data.join("many")).unwrap();
    bench.start();
    let mut before = bench.returned(&key, "main").await;
    for _ in 0..20 {
        bench.plugins.stop(&key, "test").await.unwrap();
        let (first, second) = tokio::join!(bench.plugins.reload(&key), bench.plugins.reload(&key));
        assert_eq!((first, second), (Ok(()), Ok(())));
        let after = bench.returned(&key, "main").await;
        assert_ne!(before["pid"], after["pid"]);
        assert_eq!(after["owned"], 501, "{after}");
        before = after;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exception_is_an_answer_and_a_crash_ends_only_the_process() {
    let bench = Bench::new();
    let code =
        acting("if params.get('crash'):\n    os.kill(os.getpid(), 9)\nraise ValueError('no such list')");
    let key = bench.install("demo", &code, json!({}));
    let other = bench.install("quiet", &acting("return {'status': 'ok'}"), json!({}));
    bench.start();
    bench.until(&other, PluginState::Ready).await;
    let quiet = bench.returned(&other, "other").await;
    assert_eq!(bench.run(&key, "main").await, RunResult::Raised("no such list".to_owned()));
    let before = bench.returned(&key, "other").await;
    let crashed = bench.run_with(&key, "main", json!({"crash": true})).await;
    assert_eq!(crashed, RunResult::Crashed("the plugin crashed: it was ended by signal 9".to_owned()));
    let after = bench.returned(&key, "other").await;
    assert_ne!(before, after, "a new process");
    assert_eq!(bench.plugins.state(&key).unwrap().crashes, 1);
    assert_eq!(bench.returned(&other, "other").await, quiet, "the other plugin has the same process");
}

#[tokio::test(flavor = "multi_thread")]
async fn five_crashes_are_a_failure_until_an_admin_restarts() {
    let mut bench = Bench::new();
    let key =
        bench.install("demo", "import sys\nprint('cannot go on', file=sys.stderr)\nsys.exit(4)", json!({}));
    bench.start();
    let failed = bench.until(&key, PluginState::Failed).await;
    let reason = failed.reason.unwrap();
    assert!(reason.starts_with("it crashed five times in ten minutes: "), "{reason}");
    assert_eq!(failed.crashes, 5);
    let refused = bench.plugins.run(&key, "main", Map::new(), RunCause::Button).await;
    assert_eq!(refused, Err(RunRefusal::Failed(reason.clone())));

    // The failure is stored: the next gateway does not start it.
    bench.start_again().await;
    let failed = bench.until(&key, PluginState::Failed).await;
    assert_eq!((failed.reason.as_ref(), failed.crashes), (Some(&reason), 0));
    write_code(&bench.settings.folders.code.join("demo"), &acting("return {}"), json!({}));
    bench.plugins.restart(&key).await.unwrap();
    assert_eq!(bench.returned(&key, "main").await, json!({}));
    assert_eq!(bench.records.installed(&key).unwrap().record.failed, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_crashes_at_three_starts_of_the_gateway_has_failed() {
    // With long pauses, each gateway sees one crash.
    let mut bench = Bench::with(|it| it.timings.pause_divisor = 1);
    let key = bench.install("demo", "raise RuntimeError('never')", json!({}));
    bench.start();
    for n in 1..3 {
        let crashed = bench.until(&key, PluginState::Restarting).await;
        assert!(crashed.reason.unwrap().contains("never"));
        assert_eq!(bench.records.installed(&key).unwrap().record.failed_starts, n);
        bench.start_again().await;
    }
    let reason = bench.until(&key, PluginState::Failed).await.reason.unwrap();
    assert!(reason.starts_with("it crashed after 3 starts of the gateway in a row: "), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_runs_and_processes_end_and_others_go_on() {
    let bench = Bench::with(|it| {
        it.timings.cancel = Duration::from_millis(200);
        it.timings.answer = Duration::from_millis(200);
    });
    let code = acting(
        "if params.get('polite'):\n    while not context.cancelled():\n        time.sleep(0.01)\n    return {}\ntime.sleep(1000)",
    );
    let actions = json!([{"id": "main", "label": "m", "timeout": 1}, {"id": "other", "label": "o"}]);
    let key = bench.install("demo", &code, json!({"actions": actions, "concurrency": 2}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let begin = async |params: Value| {
        let Value::Object(params) = params else { unreachable!() };
        match bench.plugins.run(&key, "main", params, RunCause::Schedule).await {
            Ok(RunAnswer::Running(run)) => run,
            other => panic!("{other:?}"),
        }
    };
    let polite = begin(json!({"polite": true})).await;
    assert_eq!(bench.plugins.state(&key).unwrap().state, PluginState::Busy);
    let ended = |run: Uuid| match bench.plugins.job(run).unwrap().stage {
        RunStage::Ended(result) => Some(result),
        _ => None,
    };
    eventually("the time-out of a polite run", || ended(polite).is_some()).await;
    assert_eq!(ended(polite), Some(RunResult::TimedOut));
    assert_eq!(bench.plugins.state(&key).unwrap().crashes, 0, "it ended when it was asked to");
    let cancelled = begin(json!({"polite": true})).await;
    bench.plugins.cancel(&key, cancelled).unwrap();
    eventually("the cancellation", || ended(cancelled).is_some()).await;
    assert_eq!(ended(cancelled), Some(RunResult::Cancelled));

    let hanging = begin(json!({})).await;
    eventually("the end of a run that hangs", || ended(hanging).is_some()).await;
    assert_eq!(ended(hanging), Some(RunResult::TimedOut));
    eventually("the crash", || bench.plugins.state(&key).unwrap().crashes == 1).await;
    bench.until(&key, PluginState::Ready).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_does_not_answer_pings_hangs() {
    let bench = Bench::with(|it| {
        it.timings.ping = Duration::from_millis(10);
        it.timings.hang = Duration::from_secs(2);
        it.timings.answer = PATIENCE;
    });
    // The process is stopped as a whole, as one that waits for a dead disk.
    let key =
        bench.install("demo", &acting("os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(1000)"), json!({}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let pid = bench.plugins.state(&key).unwrap().pid.unwrap();
    let RunResult::Crashed(reason) = bench.run(&key, "main").await else { panic!("it did not crash") };
    assert_eq!(reason, "the plugin crashed: it has not answered for 2 s");
    eventually("the end of the process", || is_gone(pid)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_end_the_process_and_prints_do_not() {
    let bench = Bench::new();
    let descriptor = "fd = next(it for it in range(3, 64) if os.path.exists(f'/proc/self/fd/{it}') and os.readlink(f'/proc/self/fd/{it}').startswith('pipe:') and os.get_blocking(it) and not os.readlink(f'/proc/self/fd/{it}') in (os.readlink('/proc/self/fd/1'),) and __import__('fcntl').fcntl(it, 3) & 1)\n";
    let code = acting(&format!(
        "{descriptor}how = params['how']\nif how == 'long':\n    os.write(fd, b'x' * (1 << 22))\n\
         elif how == 'wrong':\n    os.write(fd, b'hello\\n')\nelif how == 'many':\n    for _ in range(2000):\n        context['progress'](1)\n\
         elif how == 'print':\n    for _ in range(100000):\n        print('x' * 100)\n    return {{'printed': True}}\ntime.sleep(1000)"
    ));
    let key = bench.install("demo", &code, json!({}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let printed = bench.run_with(&key, "main", json!({"how": "print"})).await;
    assert_eq!(printed, RunResult::Returned(json!({"printed": true})));
    for (how, expected) in [
        ("long", "it sent a line of more than 1 MiB"),
        ("wrong", "it sent a line that does not follow the protocol"),
        ("many", "it sent more than 1000 messages in a second"),
    ] {
        let RunResult::Crashed(reason) = bench.run_with(&key, "main", json!({"how": how})).await else {
            panic!("{how}");
        };
        assert_eq!(reason, format!("the plugin crashed: {expected}"));
        bench.plugins.restart(&key).await.unwrap();
    }
    let folder = OwnFolders::of(&bench.settings.folders, "demo").logs;
    assert!(usage::folder_bytes(&folder) < 11 << 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_processes_and_files_have_limits() {
    let bench = Bench::with(|it| it.timings.answer = PATIENCE);
    let code = acting(
        "how = params['how']\n\
         if how == 'memory':\n    it = []\n    while True:\n        it.append(bytearray(1 << 20))\n        time.sleep(0.002)\n\
         if how == 'reserve':\n    try:\n        bytearray(1 << 34)\n    except MemoryError:\n        return {'refused': True}\n\
         if how == 'forks':\n    n = 0\n    try:\n        while n < 1000:\n            if os.fork() == 0:\n                time.sleep(1000)\n                os._exit(0)\n            n += 1\n    except OSError:\n        return {'forks': n}\n\
         if how == 'files':\n    try:\n        with open(os.path.join(context.data_dir, 'large'), 'wb') as file:\n            for _ in range(64):\n                file.write(bytes(1 << 20))\n    except OSError as error:\n        return {'errno': error.errno}\n\
         if how == 'many':\n    for n in range(40):\n        with open(os.path.join(context.data_dir, str(n)), 'wb') as file:\n            file.write(bytes(1 << 20))\n    time.sleep(1000)\n\
         if how == 'open':\n    try:\n        it = [open('/dev/null') for _ in range(1000)]\n    except OSError as error:\n        return {'errno': error.errno}\n",
    );
    let limits = json!({"memory_mib": 200, "processes": 40, "data_mib": 20, "open_files": 50});
    let key = bench.install("demo", &code, json!({"limits": limits}));
    let quiet = bench.install("quiet", &acting("return {'pid': os.getpid()}"), json!({}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    bench.until(&quiet, PluginState::Ready).await;
    let quiet_before = bench.returned(&quiet, "main").await;
    let run = async |how: &str| bench.run_with(&key, "main", json!({ "how": how })).await;
    assert_eq!(run("reserve").await, RunResult::Returned(json!({"refused": true})));
    assert_eq!(run("open").await, RunResult::Returned(json!({"errno": 24})));
    let RunResult::Returned(forks) = run("forks").await else { panic!("no answer") };
    let n_forks = forks["forks"].as_u64().unwrap();
    assert!((1..1_000).contains(&n_forks), "{n_forks}");
    let pid = bench.plugins.state(&key).unwrap().pid.unwrap();
    let used = bench.plugins.resources(&key).await.unwrap();
    assert!(used.processes >= 1 && used.memory_bytes > 0, "{used:?}");
    bench.plugins.restart(&key).await.unwrap();
    assert!(is_gone(pid), "all forks ended with the group");
    // A file that is too large ends the process by SIGXFSZ, which Python ignores: the write fails.
    assert_eq!(run("files").await, RunResult::Returned(json!({"errno": 27})));
    for (how, expected) in [("memory", "more than 200 MiB of memory"), ("many", "more than 20 MiB of files")]
    {
        let RunResult::Crashed(reason) = run(how).await else { panic!("{how}") };
        assert!(reason.ends_with(expected), "{reason}");
        let files = OwnFolders::of(&bench.settings.folders, "demo").data;
        fs::remove_dir_all(files).unwrap();
        bench.plugins.restart(&key).await.unwrap();
    }
    assert_eq!(bench.returned(&quiet, "main").await, quiet_before, "the other plugin has the same process");
}

/// Attempts of a plugin, each a Python expression that returns or raises.
const ATTEMPTS: [(&str, &str); 21] = [
    ("read-key", "open(ROOT + '/data/key').read()"),
    ("read-store", "open(ROOT + '/data/store/db').read()"),
    ("list-data", "os.listdir(ROOT + '/data')"),
    ("read-storage", "open(ROOT + '/data/plugin-data/demo/storage.json').read()"),
    ("read-other-plugin", "open(ROOT + '/data/plugins/quiet/plugin.py').read()"),
    ("read-recording", "open(ROOT + '/recordings/film.ts').read()"),
    ("read-users", "open('/etc/passwd').read()"),
    ("read-memory-of-gateway", "open(f'/proc/{os.getppid()}/mem', 'rb').read(1)"),
    ("read-environment-of-gateway", "open(f'/proc/{os.getppid()}/environ').read()"),
    ("change-own-code", "open(ROOT + '/data/plugins/demo/plugin.py', 'a').write('x')"),
    ("write-elsewhere", "open('/tmp/plugin-was-here', 'w')"),
    ("signal-gateway", "os.kill(os.getppid(), 0)"),
    ("become-root", "os.setuid(0)"),
    ("connect", "socket.create_connection(('127.0.0.1', PORT), 5)"),
    ("listen", "socket.socket().bind(('127.0.0.1', 0))"),
    ("datagram", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"),
    ("local-socket", "socket.socket(socket.AF_UNIX)"),
    ("execute", "subprocess.run(['/bin/sh', '-c', 'true'], check=True)"),
    ("execute-own-file", "own_program(context)"),
    ("new-namespace", "unshare()"),
    ("trace", "trace()"),
];

fn attempting(root: &Path, port: u16) -> String {
    let attempts: String =
        ATTEMPTS.iter().map(|(name, code)| format!("    ('{name}', lambda context: {code}),\n")).collect();
    format!(
        "import ctypes, os, shutil, socket, subprocess, sys\nROOT, PORT = {:?}, {port}\n\
         def own_program(context):\n    path = os.path.join(context.data_dir, 'program')\n    with open(path, 'w') as file:\n        file.write('#!' + sys.executable + '\\n')\n    os.chmod(path, 0o755)\n    subprocess.run([path], check=True, timeout=60)\n\
         def checked(result):\n    if result != 0:\n        raise OSError(ctypes.get_errno(), 'refused')\n\
         libc = ctypes.CDLL(None, use_errno=True)\n\
         def unshare():\n    checked(libc.unshare(0x10000000))\n\
         def trace():\n    checked(libc.ptrace(16, os.getppid(), 0, 0))\n\
         ATTEMPTS = [\n{attempts}]\n\
         class Plugin:\n    def run(self, action, params, context):\n        done = []\n        for name, attempt in ATTEMPTS:\n            try:\n                attempt(context)\n                done.append(name)\n            except (OSError, subprocess.SubprocessError):\n                pass\n        os.setsid()\n        return {{'done': done, 'uid': os.getuid(), 'groups': os.getgroups(), 'group': os.getpgid(0), 'pid': os.getpid(),\n                'privileges': [it for it in open('/proc/self/status') if it.startswith(('CapEff', 'NoNewPrivs', 'Seccomp:'))]}}\n",
        root.display().to_string(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_without_permissions_escapes_nowhere() {
    let bench = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let key = bench.install("demo", &attempting(bench.folder.path(), port), json!({}));
    bench.install("quiet", &acting("return {}"), json!({}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let report = bench.returned(&key, "main").await;
    let mut done: Vec<&str> = report["done"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let is_root = rustix::process::geteuid().is_root();
    // These do not depend on Landlock.
    assert_ne!(report["uid"], json!(0));
    assert_eq!(report["group"], report["pid"], "it cannot leave its process group");
    let privileges = report["privileges"].to_string();
    assert!(
        privileges.contains("NoNewPrivs:\\t1") && privileges.contains("CapEff:\\t0000000000000000"),
        "{privileges}"
    );
    assert!(privileges.contains("Seccomp:\\t2"), "{privileges}");
    if !can_restrict_files() {
        // What is left without Landlock: other users for a gateway that runs as root, and the filters.
        eprintln!("this kernel has no Landlock; seen instead: {done:?}");
        let filtered =
            ["become-root", "connect", "listen", "datagram", "local-socket", "new-namespace", "trace"];
        assert!(!done.iter().any(|it| filtered.contains(it)), "{report:#}");
        let secrets = ["read-key", "read-store", "list-data", "read-storage"];
        assert!(!is_root || !done.iter().any(|it| secrets.contains(it)), "{report:#}");
        return;
    }
    if !scopes_signals() && !is_root {
        eprintln!("this kernel does not restrict signals (Linux 6.12)");
        done.retain(|it| *it != "signal-gateway");
    }
    assert_eq!(done, Vec::<&str>::new(), "{report:#}");
}

/// Returns whether the kernel can forbid signals to other processes (Linux 6.12).
fn scopes_signals() -> bool {
    let version = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = version.split(['.', '-']).filter_map(|it| it.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(12))
}

#[tokio::test(flavor = "multi_thread")]
async fn permissions_allow_what_they_name_and_nothing_else() {
    let bench = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // A free port of this moment; binding it tells refusals of the kernel from ports in use.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let code = attempting(bench.folder.path(), port)
        + &format!(
            "ATTEMPTS += [('listen-at-port', lambda context: serve({free})), ('read-open', lambda context: open(ROOT + '/open/file').read()), ('run-ls', lambda context: subprocess.run(['ls', context.data_dir], check=True))]\n\
             def serve(port):\n    server = socket.socket()\n    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n    server.bind(('127.0.0.1', port))\n    server.listen()\n"
        );
    let done = async |key: &str, permissions: Value| {
        let manifest = match permissions.is_null() {
            true => json!({"permissions": null}),
            false => json!({"permissions": permissions}),
        };
        let key = bench.install(key, &code, manifest);
        bench.plugins.reload(&key).await.unwrap();
        let report = bench.returned(&key, "main").await;
        report["done"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    bench.start();
    let network = done("network", json!({"network": true})).await;
    assert!(
        network.contains(&"connect".to_owned()) && network.contains(&"datagram".to_owned()),
        "{network:?}"
    );
    assert!(!network.contains(&"local-socket".to_owned()), "{network:?}");
    let open = bench.folder.path().join("open").display().to_string();
    let listen = done("listen", json!({"listen": [free], "programs": ["ls"], "files": [open]})).await;
    if can_restrict_files() {
        assert_eq!(listen, ["listen-at-port", "read-open", "run-ls"]);
        assert!(!network.contains(&"listen-at-port".to_owned()), "Linux 6.7 restricts ports: {network:?}");
    }
    let undeclared = done("undeclared", Value::Null).await;
    for name in ["connect", "listen", "listen-at-port", "execute", "read-open"] {
        assert!(undeclared.contains(&name.to_owned()), "{name}: {undeclared:?}");
    }
    if can_restrict_files() {
        for name in
            ["read-key", "read-store", "read-storage", "change-own-code", "trace", "read-memory-of-gateway"]
        {
            assert!(!undeclared.contains(&name.to_owned()), "{name}: {undeclared:?}");
        }
    }
}

/// `HEADWATER_CRASHES` sets how many; 20 by default.
#[tokio::test(flavor = "multi_thread")]
async fn many_crashes_leak_nothing() {
    let bench = Bench::new();
    let key = bench.install(
        "demo",
        &acting("if params.get('forks') and os.fork() == 0:\n    time.sleep(1000)\nos._exit(1)"),
        json!({}),
    );
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let n_files = || fs::read_dir("/proc/self/fd").unwrap().count();
    let mut groups = Vec::new();
    let mut before = 0;
    let n_crashes = std::env::var("HEADWATER_CRASHES").map_or(20, |it| it.parse().unwrap());
    for n in 0..n_crashes {
        groups.push(bench.plugins.state(&key).unwrap().pid.unwrap());
        let crashed = bench.run_with(&key, "main", json!({"forks": n % 5 == 0})).await;
        assert!(matches!(crashed, RunResult::Crashed(_)), "{crashed:?}");
        bench.plugins.restart(&key).await.unwrap();
        if n == 2 {
            before = n_files();
        }
    }
    for group in groups {
        assert!(is_gone(group), "{group}");
    }
    assert_eq!(bench.plugins.shared.sample.lock().groups.len(), 1);
    assert!(bench.plugins.shared.users.lock().len() <= 1);
    bench.closer.idle().await;
    eventually("no descriptor is left", || n_files() <= before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_code_returns_if_the_new_one_does_not_start() {
    let bench = Bench::new();
    let key = bench.install("demo", &acting("return {'version': 1}"), json!({}));
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let code = bench.settings.folders.code.join("demo");
    let update = async |new: String| {
        let install = async {
            write_code(&code, &new, json!({}));
            Ok::<_, PluginError>("installed")
        };
        let undo = async { write_code(&code, &acting("return {'version': 1}"), json!({})) };
        bench.plugins.update(&key, install, undo).await
    };
    let broken = update("raise RuntimeError('broken')".to_owned()).await;
    let Err(PluginError::NotReady(reason)) = broken else { panic!("the broken version started") };
    assert!(reason.contains("the old one is back") && reason.contains("broken"), "{reason}");
    assert_eq!(bench.returned(&key, "main").await, json!({"version": 1}));
    assert_eq!(update(acting("return {'version': 2}")).await, Ok("installed"));
    assert_eq!(bench.returned(&key, "main").await, json!({"version": 2}));
}

/// A version that declared fewer permissions ran with those of the version before it.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_keeps_no_permission_that_it_does_not_declare() {
    let bench = Bench::new();
    let code = acting(
        "def connect():\n    try:\n        socket.socket()\n        return True\n    except OSError:\n        return False\n\
         return {'socket': connect(), 'scopes': context.api('GET', '/x/')['body']['scopes']}",
    );
    let wide = json!({"permissions": {"network": true, "api": ["channels:write", "vod:read"]}});
    let key = bench.install("demo", &code, wide);
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    let before = bench.returned(&key, "main").await;
    assert_eq!(before, json!({"socket": true, "scopes": {"scopes": ["channels:write", "vod:read"]}}));
    let folder = bench.settings.folders.code.join("demo");
    let install = async {
        write_code(&folder, &code, json!({"permissions": {"api": ["channels:read"]}}));
        Ok::<_, PluginError>(())
    };
    bench.plugins.update(&key, install, async {}).await.unwrap();
    let after = bench.returned(&key, "main").await;
    assert_eq!(after, json!({"socket": false, "scopes": {"scopes": ["channels:read"]}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn disabled_plugins_and_safe_mode_start_nothing() {
    let bench = Bench::new();
    let key = bench.install("demo", &acting("return {}"), json!({}));
    let enable = |is_enabled| bench.records.records.lock().get_mut(&key).unwrap().is_enabled = is_enabled;
    enable(false);
    bench.start();
    let refused = bench.plugins.run(&key, "main", Map::new(), RunCause::Button).await;
    assert_eq!(refused, Err(RunRefusal::Disabled));
    enable(true);
    bench.plugins.reload(&key).await.unwrap();
    assert_eq!(bench.returned(&key, "main").await, json!({}));
    let pid = bench.plugins.state(&key).unwrap().pid.unwrap();
    enable(false);
    bench.plugins.reload(&key).await.unwrap();
    assert_eq!(bench.plugins.state(&key).unwrap().state, PluginState::Disabled);
    assert!(is_gone(pid));

    let bench = Bench::with(|it| it.is_safe_mode = true);
    let key = bench.install("demo", &acting("return {}"), json!({}));
    bench.start();
    let refused = bench.plugins.run(&key, "main", Map::new(), RunCause::Button).await;
    assert_eq!(refused, Err(RunRefusal::SafeMode));
    assert_eq!(bench.plugins.restart(&key).await, Err(PluginError::SafeMode));
    assert_eq!(bench.plugins.state(&key).unwrap().state, PluginState::Disabled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_python_says_what_to_install() {
    let bench = Bench::with(|it| it.python = Some("/no/such/python".to_owned()));
    let key = bench.install("demo", &acting("return {}"), json!({}));
    bench.start();
    let reason = bench.until(&key, PluginState::Failed).await.reason.unwrap();
    assert!(
        reason.contains("plugins need Python 3.10 or newer") && reason.contains("/no/such/python"),
        "{reason}"
    );
    assert!(bench.records.notes.lock().is_empty(), "nothing is stored: the next start may find one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_reloaded_while_it_starts_is_ready_when_that_is_answered() {
    let bench = Bench::new();
    let code = "import os, time\n\
                home = os.environ['HOME']\n\
                open(os.path.join(home, 'start-%d' % os.getpid()), 'w').close()\n\
                while not os.path.exists(os.path.join(home, 'go')):\n    time.sleep(0.01)\n\
                class Plugin:\n    def run(self, action, params, context):\n        return {}\n";
    let key = bench.install("demo", code, json!({}));
    bench.start();
    let files = bench.folder.path().join("data/plugin-data/demo/files");
    let n_starts = || {
        let names = fs::read_dir(&files).into_iter().flatten().map(|it| it.unwrap().file_name());
        names.filter(|it| it.to_string_lossy().starts_with("start-")).count()
    };
    eventually("the first process", || n_starts() == 1).await;
    let (plugins, reloaded_key) = (bench.plugins.clone(), key.clone());
    let reloaded = tokio::spawn(async move { plugins.reload(&reloaded_key).await });
    eventually("the second process", || n_starts() == 2).await;
    assert!(!reloaded.is_finished(), "no process is ready");
    fs::write(files.join("go"), "").unwrap();
    assert_eq!(reloaded.await.unwrap(), Ok(()));
    assert_eq!((n_starts(), bench.plugins.state(&key).unwrap().state), (2, PluginState::Ready));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_on_demand_has_a_process_only_for_runs() {
    let bench = Bench::with(|it| it.timings.idle = Duration::from_millis(100));
    let key = bench.install("demo", &acting("return {}"), json!({"lifetime": "on_demand"}));
    bench.start();
    bench.until(&key, PluginState::Idle).await;
    let first = bench.returned(&key, "other").await;
    let idle = bench.until(&key, PluginState::Idle).await;
    assert_eq!(idle.pid, None);
    assert_ne!(bench.returned(&key, "other").await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_of_any_shape_load() {
    let bench = Bench::new();
    bench.start();
    let manifest = json!({"fields": null, "actions": null});
    let package = bench.install("with-hyphen", "raise RuntimeError('not this one')", manifest.clone());
    let folder = bench.settings.folders.code.join("with-hyphen");
    fs::write(folder.join("plugin.py"), "from .helper import VALUE\nfrom helper import VALUE as SAME\nclass Plugin:\n    name = 'Shaped'\n    fields = [{'id': 'x', 'label': 'X', 'type': 'number', 'default': 7}]\n    actions = [{'id': 'main', 'label': 'Main'}]\n    def run(self, action, params, context):\n        return [VALUE, SAME, context['settings'].get('x')]\n").unwrap();
    fs::write(folder.join("helper.py"), "VALUE = 5\n").unwrap();
    bench.plugins.reload(&package).await.unwrap();
    assert_eq!(bench.returned(&package, "main").await, json!({"status": "ok", "result": [5, 5, 7]}));
    let reported = bench.records.installed(&package).unwrap().record.reported.unwrap();
    assert_eq!((reported.name.as_deref(), reported.actions.len()), (Some("Shaped"), 1));

    fs::write(folder.join("__init__.py"), "from .plugin import Plugin\n").unwrap();
    bench.plugins.reload(&package).await.unwrap();
    assert_eq!(bench.returned(&package, "main").await["result"], json!([5, 5, 7]));
}

#[tokio::test(flavor = "multi_thread")]
async fn bundled_wheels_are_unpacked_and_missing_packages_named() {
    let bench = Bench::new();
    let code = "from bundled_package import VALUE\n".to_owned() + &acting("return {'value': VALUE}");
    let manifest = json!({"requirements": ["Bundled.Package>=1", "another-one==2"]});
    let key = bench.install("demo", &code, manifest.clone());
    let wheels = bench.settings.folders.code.join("demo/wheels");
    fs::create_dir(&wheels).unwrap();
    let make = |name: &str, entries: &[(&str, &str)]| {
        let script = "import json, sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w') as it:\n    [it.writestr(*entry) for entry in json.loads(sys.argv[2])]";
        let entries = json!(entries).to_string();
        let path = wheels.join(name);
        let status =
            std::process::Command::new("python3").args(["-c", script]).arg(path).arg(entries).status();
        assert!(status.unwrap().success());
    };
    make("bundled_package-1.0-py3-none-any.whl", &[("bundled_package/__init__.py", "VALUE = 9")]);
    make("bundled_package-2.0-cp27-cp27m-win32.whl", &[("bundled_package/__init__.py", "VALUE = 'wrong'")]);
    bench.start();
    let reason = bench.until(&key, PluginState::Failed).await.reason.unwrap();
    assert!(reason.contains("another-one==2") && !reason.contains("Bundled"), "{reason}");
    make("another_one-2-py2.py3-none-any.whl", &[("another_one-2.data/purelib/another_one.py", "")]);
    bench.plugins.restart(&key).await.unwrap();
    assert_eq!(bench.returned(&key, "main").await, json!({"value": 9}));
    let made = bench.settings.folders.data.join("demo/environment");
    assert!(made.join("another_one.py").exists());

    make("evil-1-py3-none-any.whl", &[("../../../escaped", "")]);
    let Err(PluginError::NotReady(reason)) = bench.plugins.reload(&key).await else { panic!("it started") };
    assert!(reason.contains("evil-1-py3-none-any.whl contains the unsafe name"), "{reason}");
    assert!(!bench.folder.path().join("data/escaped").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_may_be_any_program() {
    let bench = Bench::new();
    let script = "#!/bin/sh\nread -r line\necho '{\"id\":1,\"result\":{\"protocol\":1}}'\nread -r line\necho '{\"id\":2,\"result\":{\"status\":\"ok\"}}'\nread -r line\n";
    let key = bench.install("shell", "", json!({"command": ["./run.sh"]}));
    let path = bench.settings.folders.code.join("shell/run.sh");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    bench.start();
    bench.until(&key, PluginState::Ready).await;
    assert_eq!(bench.returned(&key, "main").await, json!({"status": "ok"}));
}

/// A plugin whose action makes the calls that its parameters list.
const CALLS: &str = include_str!("../../../tests/it/plugin_calls.py");

/// Installs a plugin that makes calls, with these permissions.
fn install_caller(bench: &Bench, key: &str, permissions: Value) -> PluginKey {
    let manifest = json!({
        "command": ["./calls.py"],
        "permissions": permissions,
        // Threads count, too.
        "limits": {"processes": 128},
    });
    let key = bench.install(key, "", manifest);
    let path = bench.settings.folders.code.join(key.as_str()).join("calls.py");
    fs::write(&path, CALLS).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    key
}

/// Lets a plugin make calls. Returns the result of its action.
async fn call(bench: &Bench, key: &PluginKey, params: Value) -> Value {
    match bench.run_with(key, "main", params).await {
        RunResult::Returned(value) => value,
        other => panic!("{other:?}; {:#?}", bench.plugins.logs(key, 50).await),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_to_the_api_have_answers_whatever_happens() {
    let bench = Bench::with(|it| it.timings.call = Duration::from_secs(2));
    let key = install_caller(&bench, "caller", json!({}));
    bench.start();
    let get = |path: &str| json!({"method": "GET", "path": path});
    let calls = json!([
        {"method": "POST", "path": "/echo/?a=1", "body": {"b": 2}},
        get("/large/"),
        get("/bug/"),
        get("/never/"),
        get("elsewhere"),
        get("/echo/"),
    ]);
    let value = call(&bench, &key, json!({ "calls": calls })).await;
    let statuses: Vec<_> =
        value["answers"].as_array().unwrap().iter().map(|it| it["status"].clone()).collect();
    assert_eq!(json!(statuses), json!([200, 413, 500, 504, 400, 200]), "{value}");
    let echo = &value["answers"][0]["body"];
    assert_eq!(echo["key"], "caller");
    let seen = echo["call"].as_str().unwrap();
    assert!(seen.contains("\"/echo/\"") && seen.contains("a=1") && seen.contains("Number(2)"), "{seen}");
    let too_large = value["answers"][1]["body"]["detail"].as_str().unwrap();
    assert!(too_large.contains("page_size"), "{too_large}");
    assert_eq!(value["api"]["token"], Value::Null, "a plugin without network has no socket");
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_calls_of_a_plugin_are_answered_at_once_and_a_limited_number_waits() {
    let bench = Bench::with(|it| it.timings.call = Duration::from_secs(15));
    let key = install_caller(&bench, "caller", json!({}));
    bench.start();
    let calls: Vec<_> = (0..30).map(|_| json!({"method": "GET", "path": "/slow/"})).collect();
    let value = call(&bench, &key, json!({ "calls": calls, "at_once": true })).await;
    assert!(value["answers"].as_array().unwrap().iter().all(|it| it["status"] == 200), "{value}");
    assert_eq!(bench.records.calls_max.load(Ordering::SeqCst), 8);

    // Eight of those that have no answer go on, and 32 wait.
    let calls: Vec<_> = (0..45).map(|_| json!({"method": "GET", "path": "/never/"})).collect();
    let value = call(&bench, &key, json!({ "calls": calls, "at_once": true })).await;
    let statuses = value["answers"].as_array().unwrap().iter().map(|it| it["status"].as_u64().unwrap());
    let n_refused = statuses.clone().filter(|it| *it == 429).count();
    assert_eq!((n_refused, statuses.filter(|it| *it == 504).count()), (5, 40), "{value}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_lives_as_long_as_its_process_and_is_not_logged() {
    let bench = Bench::new();
    let key = install_caller(&bench, "caller", json!({"network": true}));
    bench.start();
    let value = call(&bench, &key, json!({"print_token": true})).await;
    let token = value["api"]["token"].as_str().unwrap().to_owned();
    assert_eq!(value["api"]["url"], "http://127.0.0.1:8000");
    assert!(token.len() > 60, "{token}");
    assert_eq!(bench.plugins.caller(&token).unwrap().key, key);
    assert!(bench.plugins.caller("").is_none() && bench.plugins.caller(&token[1..]).is_none());
    let folder = OwnFolders::of(&bench.settings.folders, "caller").logs;
    eventually("the printed line", || {
        log::last_lines(&folder, 50).iter().any(|it| it.contains("the token is …"))
    })
    .await;
    assert!(!log::last_lines(&folder, 50).join("\n").contains(&token));

    let pid = bench.plugins.state(&key).unwrap().pid.unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid.cast_signed()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    eventually("the end of the token", || bench.plugins.caller(&token).is_none()).await;
    bench.until(&key, PluginState::Ready).await;
    let value = call(&bench, &key, json!({})).await;
    assert_ne!(value["api"]["token"], json!(token), "each process has another one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_with_new_gaps_does_not_start_until_an_admin_accepts_them() {
    let bench = Bench::new();
    let key = bench.install("demo", &acting("return {}"), json!({}));
    let gaps = |accepted: BTreeSet<PluginGap>| {
        bench.records.records.lock().get_mut(&key).unwrap().accepted_gaps = accepted;
    };
    gaps(BTreeSet::new());
    bench.start();
    let open = bench.plugins.gaps(&Permissions::none());
    if open.is_empty() {
        eprintln!("everything is enforced here");
        bench.until(&key, PluginState::Ready).await;
        return;
    }
    let status = bench.until(&key, PluginState::Failed).await;
    let reason = status.reason.unwrap();
    assert!(open.iter().all(|it| reason.contains(it.sentence())), "{reason}");
    assert!(bench.records.records.lock()[&key].failed.is_none(), "a newer kernel starts it again");
    gaps(open);
    bench.plugins.restart(&key).await.unwrap();
    bench.until(&key, PluginState::Ready).await;
}
