//! Events for the actions of plugins.

use super::*;

/// Writes the manifest of a plugin, and returns its record.
fn plugin(data_dir: &Path, id: u32, key: &str, actions: Value) -> domain::plugin::Plugin {
    let folder = data_dir.join("plugins").join(key);
    fs::create_dir_all(&folder).unwrap();
    let manifest = json!({
        "name": key, "version": "1", "description": "", "permissions": {}, "concurrency": 2, "actions": actions,
    });
    fs::write(folder.join("plugin.json"), manifest.to_string()).unwrap();
    serde_json::from_value(json!({
        "id": id, "key": key, "is_enabled": true, "was_enabled": true, "granted": null, "settings": {},
        "version": "1", "installed_at": 0, "updated_at": 0,
    }))
    .unwrap()
}

fn channel_error() -> Event {
    Event { at: now_ms(), body: EventBody::sample("channel_error").unwrap() }
}

#[tokio::test]
async fn events_are_stored_for_the_actions_of_enabled_plugins_that_want_them() {
    let data = tempfile::tempdir().unwrap();
    let models = Fixture::new().await.stop().await;
    let actions = json!([
        {"id": "first", "events": ["channel_error", "m3u_refresh"]},
        {"id": "button"},
        {"id": "second", "events": ["channel_error"], "schedule": "0 4 * * *"},
        {"id": "other", "events": ["channel_start", "login_failed"]},
    ]);
    let wanting = plugin(data.path(), 1, "wanting", actions);
    models.store.write(move |write| write.put(&wanting)).await.unwrap();
    let fixture = Fixture::on_with(models, IntegrationSettings::default(), [].into(), data.path());
    let to = Some(Recipient::Plugin(1));
    let stored = || fixture.deliveries(&DeliveryFilter { to, ..DeliveryFilter::default() });
    let outbox = fixture.outbox.clone();
    fixture.write(move |write| outbox.enqueue(write, &channel_error())).await;
    // Not one that plugins can have.
    fixture.emit(Event { at: now_ms(), body: EventBody::sample("login_failed").unwrap() });
    until(|| stored().len() == 2).await;
    let runs = stored();
    let actions: Vec<_> = runs.iter().rev().map(|it| it.run.as_ref().unwrap().action.clone()).collect();
    assert_eq!(actions, ["first", "second"]);
    assert_eq!(runs[0].event_id, runs[1].event_id);
    assert_ne!(runs[0].run_id(), runs[1].run_id());
    assert!(runs.iter().all(|it| it.n_attempts == 0 && it.dead_at.is_none()), "the plugin does not run");
    until(|| fixture.models.plugin_schedules.load().get(1).is_some_and(|it| it.all.len() == 1)).await;

    // A disabled one keeps what waits, and gets nothing new; a removed one leaves nothing.
    let set = |is_enabled| {
        fixture.write(move |write| {
            let mut record = write.get::<domain::plugin::Plugin>(1)?.unwrap();
            record.is_enabled = is_enabled;
            write.put(&record)
        })
    };
    set(false).await;
    let is_enabled = || {
        let running = fixture.integrations.shared.running.get().unwrap();
        running.plugins.get(1).is_some_and(|it| it.is_enabled)
    };
    until(|| !is_enabled()).await;
    fixture.emit(channel_error());
    set(true).await;
    until(is_enabled).await;
    fixture.emit(channel_error());
    until(|| stored().len() == 4).await;
    assert_eq!(fixture.integrations.counts_of_plugin(1), (4, 0));
    fixture
        .write(|write| {
            storage::records::remove_runs_of_plugin(write, 1)?;
            write.remove::<domain::plugin::Plugin>(1).map(drop)
        })
        .await;
    until(|| stored().is_empty()).await;
    assert!(fixture.models.store.collection::<Delivery>().is_empty());
}

#[tokio::test]
async fn an_integration_without_its_plugin_is_paused_with_the_reason_and_keeps_what_waits() {
    let fixture = Fixture::new().await;
    let action = domain::integration::PluginAction { key: "tidy".to_owned(), action: "run".to_owned() };
    let id = fixture.add(Target::Plugin(action)).await;
    fixture.emit(film("one"));
    let status = fixture.until(id, |it| it.n_waiting == 1).await;
    assert_eq!(status.paused.as_deref(), Some("the plugin \"tidy\" is not installed"));
    assert_eq!((status.n_dead, status.n_running), (0, 0));
    let tested = fixture.integrations.test(id).await.unwrap();
    let entry = &tested[0].entry;
    assert!(!entry.is_success && entry.is_test() && entry.reason.is_some(), "{entry:?}");
    assert_eq!((fixture.status(id).n_waiting, entry.action.as_deref()), (1, Some("run")));
}
