//! Calls of plugins to the API of the gateway.

use super::*;

/// A plugin whose action makes the calls that its parameters list.
const CALLS: &str = include_str!("../../../../tests/it/plugin_calls.py");

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
    let folder = OwnFolders::new(&bench.settings.folders, "caller").logs;
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
