//! Events and times that run actions of plugins, with the real program and a real plugin.

use std::collections::BTreeMap;
use std::path::Path;

use domain::ids::DeliveryId;
use domain::integration::{ActionRun, Delivery, Recipient};
use domain::plugin::PluginSchedules;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::integrations::with_store;
use crate::plugin_processes::data_folder_with;
use crate::support::api::{Api, ApiReply};
use crate::support::binary::Binary;
use crate::support::{eventually, until_async};

const INTEGRATIONS: &str = "/api/connect/integrations/";
const DELIVERIES: &str = "/api/connect/deliveries/";
const LOGS: &str = "/api/connect/logs/";
const PLUGINS: &str = "/api/plugins/plugins/";

/// Writes down each run, and crashes as the payload says: always, or the first time.
const CODE: &str = "
import json, os
class Plugin:
    def run(self, action, params, context):
        with open(os.path.join(context.data_dir, 'runs'), 'a') as file:
            known = {'action': action, 'params': params, 'cause': context.cause}
            file.write(json.dumps(known) + '\\n')
        if action == 'plan':
            return context.storage._gateway.call(params['method'], params['of'])
        payload = params.get('payload') or {}
        marker = os.path.join(context.data_dir, 'crashed-%s' % payload.get('number'))
        if payload.get('crash') == 'always' or payload.get('crash') == 'once' and not os.path.exists(marker):
            open(marker, 'w').close()
            os._exit(3)
        return {'status': 'ok', 'message': 'done'}
";

fn actions() -> Value {
    json!([
        {"id": "note", "label": "Note", "events": ["m3u_refresh"]},
        {"id": "nightly", "label": "Nightly", "schedule": "0 4 * * *"},
        {"id": "plan", "label": "Plan"},
    ])
}

/// Stores runs of the action for events with these payloads.
async fn store_runs(root: &Path, payloads: Vec<Value>) {
    let stored = with_store(root, move |store| {
        store.write_blocking(move |write| {
            for payload in payloads {
                let id = DeliveryId(write.next_id::<Delivery>()?);
                let now = actors::now_ms();
                write.put(&Delivery {
                    id,
                    to: Recipient::Plugin(1),
                    event_id: Uuid::new_v4(),
                    event: "m3u_refresh".to_owned(),
                    created_at: now,
                    payload: payload.to_string(),
                    summary: String::new(),
                    channel: None,
                    n_attempts: 0,
                    due_at: now,
                    reason: None,
                    dead_at: None,
                    run: Some(ActionRun { action: "note".to_owned(), schedule: None }),
                    n_crashes: 0,
                    passed_run: None,
                    addresses: Default::default(),
                })?;
            }
            Ok::<_, storage::Error>(())
        })
    });
    stored.await.unwrap();
}

fn start(root: &Path) -> Binary {
    Binary::start(&["serve", "--data-dir", root.to_str().unwrap()])
}

/// Returns the runs that the plugin wrote down, oldest first.
fn runs(root: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(root.join("plugin-data/demo/files/runs")).unwrap_or_default();
    // The last line may be cut off by a kill.
    text.lines().filter_map(|it| serde_json::from_str(it).ok()).collect()
}

/// Returns the numbers in the payloads of runs for events.
fn numbers(root: &Path) -> Vec<u64> {
    runs(root).iter().filter_map(|it| it["params"]["payload"]["number"].as_u64()).collect()
}

async fn results(admin: &Api, path: &str) -> Vec<Value> {
    let found = admin.get(path).await;
    assert_eq!(found.status, 200, "{path}: {found:?}");
    found.body["results"].as_array().unwrap().clone()
}

// Holds T-int.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_gateway_loses_no_run_of_a_plugin_and_repeats_only_those_in_flight() {
    const PER_ROUND: u64 = 15;
    // `HEADWATER_KILLS=200` is for a long run by hand.
    let n_kills: u64 = std::env::var("HEADWATER_KILLS").ok().and_then(|it| it.parse().ok()).unwrap_or(3);
    let (_folder, root) = data_folder_with(CODE, actions()).await;
    for round in 0..n_kills {
        let of_round = round * PER_ROUND..(round + 1) * PER_ROUND;
        store_runs(&root, of_round.map(|it| json!({ "number": it })).collect()).await;
        let n_wanted = numbers(&root).len() + 1 + (round as usize * 5) % 10;
        let mut program = start(&root);
        eventually("some runs", || numbers(&root).len() >= n_wanted).await;
        program.signal("KILL");
        program.ended().await;
    }
    let _program = start(&root);
    let mut expected: Vec<u64> = (0..n_kills * PER_ROUND).collect();
    eventually("all runs", || numbers(&root).last() == expected.last()).await;
    let mut seen = numbers(&root);
    let n_runs = seen.len();
    assert!(seen.is_sorted(), "in order: {seen:?}");
    seen.dedup();
    expected.dedup();
    assert_eq!(seen, expected);
    assert!(n_runs - seen.len() <= n_kills as usize, "{n_runs} runs");
    let first = &runs(&root)[0];
    assert_eq!((&first["action"], &first["cause"]), (&json!("note"), &json!("event")));
    assert_eq!(first["params"], json!({ "event": "m3u_refresh", "payload": { "number": 0 } }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_crashes_is_repeated_once_and_then_a_dead_letter_that_admins_replay_or_delete() {
    let (_folder, root) = data_folder_with(CODE, actions()).await;
    let payloads = [("once", 1), ("never", 2), ("always", 3)];
    let payloads = payloads.map(|(crash, number)| json!({ "number": number, "crash": crash }));
    store_runs(&root, payloads.into()).await;
    let program = start(&root);
    let admin = Api::stranger_at(program.address().await).become_first_admin().await;
    let dead = format!("{DELIVERIES}?plugin=demo&state=dead");
    let all = format!("{LOGS}?plugin=demo&cause=event");
    until_async("the dead letter", async || {
        results(&admin, &all).await.len() == 5 && !results(&admin, &dead).await.is_empty()
    })
    .await;
    assert_eq!(numbers(&root), [1, 1, 2, 3, 3]);
    let letter = results(&admin, &dead).await.remove(0);
    assert_eq!((&letter["plugin"], &letter["action"]), (&json!("demo"), &json!("note")), "{letter}");
    assert_eq!((&letter["integration"], &letter["attempts"]), (&Value::Null, &json!(2)));
    let log = results(&admin, &all).await;
    let attempts: Vec<_> = log.iter().rev().map(|it| (&it["attempt"], &it["status"])).collect();
    let attempt = |n: u64, status: &'static str| (json!(n), json!(status));
    let expected = [(1, "failed"), (2, "success"), (1, "success"), (1, "failed"), (2, "failed")];
    let expected = expected.map(|it| attempt(it.0, it.1));
    assert_eq!(attempts, expected.each_ref().map(|it| (&it.0, &it.1)), "{log:?}");
    assert_eq!(log[3]["result"]["message"], "done");
    assert_eq!(log[0]["event_id"], log[1]["event_id"], "the same event");
    let known = admin.get(&format!("{PLUGINS}demo/runs/")).await.body["runs"].as_array().unwrap().clone();
    assert_eq!(
        known.iter().filter(|it| it["cause"] == "event").count(),
        3,
        "repeated with the same id: {known:?}"
    );

    let replayed = admin.post(&format!("{DELIVERIES}{}/replay/", letter["id"]), json!({})).await;
    assert_eq!(replayed.status, 204, "{replayed:?}");
    until_async("no dead letter", async || results(&admin, &dead).await.is_empty()).await;
    let audit = results(&admin, "/api/core/audit/").await;
    let is_replay = |it: &&Value| it["path"].as_str().is_some_and(|it| it.ends_with("{id}/replay/"));
    assert!(audit.iter().any(|it| is_replay(&it)), "{audit:?}");
    let metrics = admin.get("/metrics").await.answer.text();
    assert!(metrics.contains("deliveries_waiting") && metrics.contains("events_lost"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedules_run_their_actions_survive_a_restart_and_catch_up_once() {
    let (_folder, root) = data_folder_with(CODE, actions()).await;
    let mut program = start(&root);
    let admin = Api::stranger_at(program.address().await).become_first_admin().await;
    let plan = async |method: &str, of: Value| -> ApiReply {
        let params = json!({ "method": method, "of": of });
        admin.post(&format!("{PLUGINS}demo/run/"), json!({ "action": "plan", "params": params })).await
    };
    until_async("the plugin", async || admin.get(PLUGINS).await.body["plugins"][0]["state"] == "ready").await;
    let yearly = json!({ "id": "yearly", "cron": "0 0 1 1 *", "action": "note", "params": { "x": 1 } });
    assert_eq!(plan("schedule.set", yearly).await.status, 200);
    for (wrong, reason) in [
        (json!({ "id": "a", "cron": "often", "action": "note" }), "cron"),
        (json!({ "id": "a", "cron": "0 * * * *", "action": "nothing" }), "no action"),
        (json!({ "id": "x".repeat(65), "cron": "0 * * * *", "action": "note" }), "64 characters"),
        (json!({ "id": "a", "cron": "0 * * * *", "action": "note", "params": "y" }), "params"),
    ] {
        let refused = plan("schedule.set", wrong).await;
        assert_eq!(refused.status, 500, "{refused:?}");
        assert!(refused.text("error").contains(reason), "{refused:?}");
    }
    let task = json!({ "id": "task", "cron": "0 * * * *", "action": "__task__" });
    assert_eq!(plan("schedule.set", task).await.status, 200);
    let deleted = plan("schedule.delete", json!({ "id": "task" })).await;
    assert_eq!(deleted.body["result"]["deleted"], true, "{deleted:?}");
    let listed = plan("schedule.list", json!({})).await;
    assert_eq!(listed.body["result"]["schedules"].as_array().unwrap().len(), 2, "{listed:?}");
    let shown = async |admin: &Api| -> BTreeMap<String, Value> {
        let plugin = admin.get(PLUGINS).await.body["plugins"][0].clone();
        let all = plugin["schedules"].as_array().unwrap().clone();
        all.into_iter().map(|it| (it["id"].as_str().unwrap().to_owned(), it)).collect()
    };
    let schedules = shown(&admin).await;
    let of = |id: &str, key: &str| schedules[id][key].clone();
    assert_eq!((of("yearly", "source"), of("yearly", "action")), (json!("plugin"), json!("note")));
    assert_eq!((of("nightly", "source"), of("nightly", "cron")), (json!("manifest"), json!("0 4 * * *")));
    assert!(schedules.values().all(|it| it["next_run"].is_string()), "{schedules:?}");
    // A button is in the same log.
    until_async("the log", async || {
        let log = results(&admin, &format!("{LOGS}?plugin=demo&cause=button")).await;
        log.iter().any(|it| it["action"] == "plan" && it["status"] == "success")
    })
    .await;
    program.signal("TERM");
    program.ended().await;

    // Both times passed more than once while the gateway was off.
    let years_ago = actors::now_ms() - 1_000 * 86_400_000;
    let moved = with_store(&root, move |store| {
        store.write_blocking(move |write| {
            let mut all = write.get::<PluginSchedules>(1)?.expect("schedules");
            all.all.iter_mut().for_each(|it| it.since = years_ago);
            write.put(&all)
        })
    });
    moved.await.unwrap();
    let scheduled = || -> Vec<Value> {
        let mut all = runs(&root);
        all.retain(|it| it["cause"] == "schedule");
        all.sort_by_key(|it| it["action"].to_string());
        all
    };
    let program = start(&root);
    eventually("both runs", || scheduled().len() == 2).await;
    let all = scheduled();
    assert_eq!((&all[0]["action"], &all[1]["action"]), (&json!("nightly"), &json!("note")));
    assert_eq!(all[1]["params"], json!({ "x": 1 }));
    let admin = admin.at(program.address().await);
    until_async("both in the log", async || {
        results(&admin, &format!("{LOGS}?plugin=demo&cause=schedule")).await.len() == 2
    })
    .await;
    assert_eq!(shown(&admin).await.len(), 2);
    assert_eq!(scheduled().len(), 2, "once each");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_integration_runs_the_action_of_a_plugin_and_is_paused_without_it() {
    let (_folder, root) = data_folder_with(CODE, actions()).await;
    let program = start(&root);
    let admin = Api::stranger_at(program.address().await).become_first_admin().await;
    until_async("the plugin", async || admin.get(PLUGINS).await.body["plugins"][0]["state"] == "ready").await;
    let with = |plugin: &str, action: &str| {
        let config = json!({ "plugin": plugin, "action": action });
        json!({ "name": "Notes", "type": "plugin", "config": config, "events": ["login_failed"] })
    };
    for (plugin, action) in [("unknown", "note"), ("demo", "unknown"), ("", "note"), ("demo", "")] {
        let refused = admin.post(INTEGRATIONS, with(plugin, action)).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body["config"].is_array(), "{refused:?}");
    }
    let made = admin.post(INTEGRATIONS, with("demo", "note")).await;
    assert_eq!(made.status, 201, "{made:?}");
    let one = format!("{INTEGRATIONS}{}/", made.body["id"]);
    let tested = admin.post(&format!("{one}test/"), json!({})).await;
    assert_eq!(tested.body["success"], true, "{tested:?}");
    assert_eq!(admin.token("nobody", "wrong").await.status, 401);
    let of_event = || runs(&root).into_iter().find(|it| it["params"]["payload"]["test"].is_null());
    eventually("the run for the event", || of_event().is_some()).await;
    let run = of_event().unwrap();
    assert_eq!((&run["params"]["event"], &run["cause"]), (&json!("login_failed"), &json!("event")));
    assert_eq!(run["params"]["payload"]["event_type"], "login_failed", "{run}");

    assert_eq!(admin.delete(&format!("{PLUGINS}demo/delete/")).await.status, 200);
    let shown = admin.get(&one).await.body;
    assert_eq!(shown["state"], "paused", "{shown}");
    assert!(shown["paused_reason"].as_str().unwrap().contains("not installed"), "{shown}");
}
