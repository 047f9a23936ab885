//! Runs actions at the times of their schedules: a time that has come is a delivery in the stored queue.
//!
//! The delivery and the note that its time was queued are one write. So a time is neither lost nor repeated, and one that
//! passed while the gateway was off is queued once after the start.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::core_settings::{SYSTEM_SETTINGS, time_zone};
use domain::ids::DeliveryId;
use domain::integration::{ActionRun, Delivery, Recipient};
use domain::plugin::{ActionSchedule, Plugin, PluginSchedules, actions_of_plugin};
use jiff::tz::TimeZone;
use serde_json::Value;
use storage::Models;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use super::backend::InstalledPlugin;
use crate::clock::now_ms;
use crate::schedule;

/// Longest sleep until a time. The wall clock or the time zone may be set meanwhile.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// Shortest sleep, which limits the work for a store that refuses writes.
const SLEEP_MIN: Duration = Duration::from_millis(200);
/// The schedules of all plugins. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Schedules {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    models: OnceLock<Models>,
    changed: Notify,
}

/// A schedule as others see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownSchedule {
    pub schedule: ActionSchedule,
    /// Milliseconds since 1970; `None` while the plugin is disabled.
    pub next_run: Option<i64>,
}

/// A time that has come.
#[derive(Clone)]
struct Due {
    plugin: u32,
    schedule: ActionSchedule,
}

impl Schedules {
    /// Uses this store. Only the first call has an effect.
    pub(crate) fn start(&self, models: Models) {
        // Fails at the second start, with the same store.
        let _ = self.inner.models.set(models);
    }

    /// Queues the times that come, until the gateway stops.
    pub(crate) async fn run(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let next = self.queue_due(now_ms()).await;
            let wait = next.map_or(SLEEP_MAX, |it| {
                Duration::from_millis(u64::try_from(it.saturating_sub(now_ms())).unwrap_or(0))
            });
            tokio::select! {
                () = sleep(wait.clamp(SLEEP_MIN, SLEEP_MAX)) => {}
                () = self.inner.changed.notified() => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Looks at the schedules again, because they or their plugins have changed.
    pub(crate) fn wake(&self) {
        self.inner.changed.notify_one();
    }

    /// Queues a run for each schedule that is due. Returns when the next one is.
    pub(crate) async fn queue_due(&self, now: i64) -> Option<i64> {
        // In a cluster, the node that writes the configuration runs them.
        let models = self.inner.models.get().filter(|it| it.store.writes_shared())?;
        let zone = zone(models);
        let (mut due, mut next) = (Vec::new(), None::<i64>);
        let all = models.plugin_schedules.load();
        for plugin in models.plugins.load().iter().filter(|it| it.is_enabled) {
            for schedule in all.get(plugin.id).iter().flat_map(|it| &it.all) {
                match next_run(plugin, schedule, &zone) {
                    Some(at) if at <= now => due.push(Due { plugin: plugin.id, schedule: schedule.clone() }),
                    Some(at) => next = Some(next.map_or(at, |it| it.min(at))),
                    None => {}
                }
            }
        }
        if !due.is_empty() {
            // The next times of these are known after the write.
            next = Some(now);
            let queued = models.store.write(move |write| {
                for due in due {
                    queue(write, &due, now)?;
                }
                Ok::<_, storage::Error>(())
            });
            if let Err(cause) = queued.await {
                warn!("failed to store the scheduled runs of plugins, trying again: {cause}");
            }
        }
        next
    }

    /// Returns the schedules of a plugin, in the order of their names.
    pub(super) fn by_plugin(&self, id: u32) -> Vec<ShownSchedule> {
        let Some(models) = self.inner.models.get() else { return Vec::new() };
        let (all, plugins, zone) = (models.plugin_schedules.load(), models.plugins.load(), zone(models));
        let plugin = plugins.get(id).filter(|it| it.is_enabled);
        let shown = |it: &ActionSchedule| ShownSchedule {
            schedule: it.clone(),
            next_run: plugin.and_then(|plugin| next_run(plugin, it, &zone)),
        };
        let mut shown: Vec<_> = all.get(id).iter().flat_map(|it| &it.all).map(shown).collect();
        shown.sort_by_key(|it| it.schedule.full_name());
        shown
    }

    /// Takes the schedules of the actions of an enabled plugin, as its manifest has them now.
    pub(crate) async fn follow(&self, installed: &InstalledPlugin) -> Result<(), String> {
        let Some(models) = self.inner.models.get() else { return Ok(()) };
        let id = installed.record.id;
        let actions = actions_of_plugin(Some(&installed.manifest), installed.record.reported.as_ref());
        let before = models.plugin_schedules.load().get(id).map(|it| PluginSchedules::clone(it));
        let follow = move |all: &mut PluginSchedules| {
            all.follow(&actions, |it| schedule::check_cron(it).is_ok(), now_ms());
        };
        let before = before.unwrap_or_else(|| PluginSchedules::none(id));
        let mut after = before.clone();
        follow(&mut after);
        if after != before {
            self.change(id, move |all| {
                follow(all);
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Changes the schedules of a plugin that still exists.
    pub(super) async fn change<R: Send + 'static>(
        &self,
        id: u32,
        change: impl FnOnce(&mut PluginSchedules) -> Result<R, String> + Send + 'static,
    ) -> Result<R, String> {
        let models = self.inner.models.get().ok_or("schedules are not available yet")?;
        let changed = models.store.write(move |write| {
            if write.get::<Plugin>(id)?.is_none() {
                return Ok(Err("the plugin was deleted".to_owned()));
            }
            let mut all = write.get::<PluginSchedules>(id)?.unwrap_or_else(|| PluginSchedules::none(id));
            let done = change(&mut all);
            if done.is_ok() {
                write.put(&all)?;
            }
            Ok::<_, storage::Error>(done)
        });
        let done = changed.await.map_err(|cause| format!("the schedule cannot be stored: {cause}"))?;
        self.wake();
        done
    }
}

/// Returns the first time of a schedule that is not queued yet. Times before the plugin was enabled or changed do not count.
fn next_run(plugin: &Plugin, schedule: &ActionSchedule, zone: &TimeZone) -> Option<i64> {
    schedule::next_of_cron(&schedule.cron, zone, schedule.since.max(plugin.updated_at))
}

/// Stores a run together with its time. While the run of an earlier time waits or goes on, the time is left out.
fn queue(write: &mut storage::Write<'_>, due: &Due, now: i64) -> storage::Result<()> {
    let Some(mut all) = write.get::<PluginSchedules>(due.plugin)? else { return Ok(()) };
    let is_enabled = write.get::<Plugin>(due.plugin)?.is_some_and(|it| it.is_enabled);
    // Another one, or one that was queued meanwhile, is looked at again.
    let Some(schedule) = all.all.iter_mut().find(|it| **it == due.schedule).filter(|_| is_enabled) else {
        return Ok(());
    };
    schedule.since = now;
    let before = schedule.last.map(|it| write.get::<Delivery>(it.0)).transpose()?.flatten();
    // Another node of the cluster may have queued the last one: its ids are others.
    let name = schedule.full_name();
    let is_own = |it: &Delivery| {
        let of = it.run.as_ref().and_then(|run| run.schedule.as_ref());
        it.to == Recipient::Plugin(due.plugin) && of == Some(&name)
    };
    if before.filter(is_own).is_none_or(|it| it.dead_at.is_some()) {
        let id = DeliveryId(write.next_id::<Delivery>()?);
        schedule.last = Some(id);
        write.put(&Delivery {
            id,
            to: Recipient::Plugin(due.plugin),
            event_id: Uuid::new_v4(),
            event: "schedule".to_owned(),
            created_at: now,
            payload: Value::Object(schedule.params.clone()).to_string(),
            summary: format!("The schedule \"{}\" is due.", schedule.id),
            channel: None,
            n_attempts: 0,
            due_at: now,
            reason: None,
            dead_at: None,
            run: Some(ActionRun { action: schedule.action.clone(), schedule: Some(schedule.full_name()) }),
            n_crashes: 0,
            passed_run: None,
            addresses: Default::default(),
        })?;
    }
    write.put(&all)
}

/// Returns the time zone of the gateway.
fn zone(models: &Models) -> TimeZone {
    let settings = models.settings.load();
    schedule::time_zone(time_zone(settings.one_by("key", SYSTEM_SETTINGS).map(|it| &it.value)))
}

#[cfg(test)]
mod tests {
    use domain::plugin::ScheduleSource;
    use serde_json::{Map, json};
    use storage::Store;

    use super::*;

    const MINUTE_MS: i64 = 60_000;
    /// Midnight of a day in 2026.
    const START: i64 = 1_767_225_600_000;

    /// An enabled plugin with a schedule that is due every five minutes.
    async fn schedules() -> (Schedules, Models) {
        let models = tokio::task::spawn_blocking(|| {
            let models = Models::new(Store::temporary(storage::records::schema()).unwrap()).unwrap();
            let plugin: Plugin = serde_json::from_value(json!({
                "id": 1, "key": "demo", "is_enabled": true, "was_enabled": true, "granted": null,
                "settings": {}, "version": "1", "installed_at": 0, "updated_at": 0,
            }))
            .unwrap();
            let schedule = ActionSchedule {
                id: "often".to_owned(),
                source: ScheduleSource::Plugin,
                cron: "*/5 * * * *".to_owned(),
                action: "sync".to_owned(),
                params: Map::from_iter([("deep".to_owned(), json!(true))]),
                since: START,
                last: None,
            };
            let all = PluginSchedules { id: 1, all: vec![schedule] };
            let done = models.store.write_blocking(move |write| {
                write.put(&plugin)?;
                write.put(&all)
            });
            done.unwrap();
            models
        });
        let models = models.await.unwrap();
        let schedules = Schedules::default();
        schedules.start(models.clone());
        (schedules, models)
    }

    /// Looks at the schedules at this many minutes, once the tables have what was written last.
    async fn at(schedules: &Schedules, models: &Models, minute: i64) -> Option<i64> {
        let stored = models.store.collection::<PluginSchedules>().get(1).unwrap();
        let is_enabled = models.store.collection::<Plugin>().get(1).unwrap().unwrap().is_enabled;
        let is_current = || {
            models.plugin_schedules.load().get(1).map(|it| PluginSchedules::clone(it)) == stored
                && models.plugins.load().get(1).is_some_and(|it| it.is_enabled == is_enabled)
        };
        while !is_current() {
            sleep(Duration::from_millis(2)).await;
        }
        let next = schedules.queue_due(START + minute * MINUTE_MS).await;
        next.map(|it| (it - START) / MINUTE_MS)
    }

    fn queued(models: &Models) -> Vec<Delivery> {
        let (mut all, deliveries) = (Vec::new(), models.store.collection::<Delivery>());
        deliveries.for_each(|it| all.push(it)).unwrap();
        all
    }

    #[tokio::test]
    async fn a_missed_time_runs_once_and_no_run_overlaps_another_one() {
        let (schedules, models) = schedules().await;
        assert_eq!(at(&schedules, &models, 1).await, Some(5));
        assert!(queued(&models).is_empty());
        // The gateway was off at 5 and 10 minutes.
        at(&schedules, &models, 12).await;
        let all = queued(&models);
        let run = all[0].run.clone().unwrap();
        assert_eq!((all.len(), all[0].to, &*run.action), (1, Recipient::Plugin(1), "sync"));
        assert_eq!((run.cause().name(), &*all[0].payload), ("schedule", r#"{"deep":true}"#));
        assert_eq!(at(&schedules, &models, 13).await, Some(15));
        // It still runs, so this time is left out.
        at(&schedules, &models, 15).await;
        assert_eq!(queued(&models).len(), 1);
        let id = all[0].id.0;
        models.store.write(move |write| write.remove::<Delivery>(id)).await.unwrap();
        assert_eq!(at(&schedules, &models, 16).await, Some(20));
        assert!(queued(&models).is_empty());
        at(&schedules, &models, 20).await;
        assert_eq!(queued(&models).len(), 1);
        // A dead letter is not a run.
        models
            .store
            .write(|write| {
                let mut dead = write.all::<Delivery>()?.remove(0);
                dead.die("it failed", START);
                write.put(&dead)
            })
            .await
            .unwrap();
        at(&schedules, &models, 25).await;
        assert_eq!(queued(&models).len(), 2);
    }

    #[tokio::test]
    async fn schedules_run_on_the_node_that_writes_the_configuration() {
        let (schedules, models) = schedules().await;
        let store = models.store.clone();
        let begun = tokio::task::spawn_blocking(move || store.begin_log(Uuid::new_v4(), 0)).await.unwrap();
        begun.unwrap();
        assert_eq!(at(&schedules, &models, 12).await, None);
        assert!(queued(&models).is_empty());
        let store = models.store.clone();
        tokio::task::spawn_blocking(move || store.leave_log()).await.unwrap().unwrap();
        at(&schedules, &models, 12).await;
        assert_eq!(queued(&models).len(), 1);
    }

    #[tokio::test]
    async fn times_before_a_plugin_was_enabled_do_not_count() {
        let (schedules, models) = schedules().await;
        let set = |is_enabled: bool, minute: i64| {
            models.store.write(move |write| {
                let mut plugin = write.get::<Plugin>(1)?.expect("a plugin");
                (plugin.is_enabled, plugin.updated_at) = (is_enabled, START + minute * MINUTE_MS);
                write.put(&plugin)
            })
        };
        set(false, 1).await.unwrap();
        assert_eq!(at(&schedules, &models, 30).await, None);
        assert_eq!(schedules.by_plugin(1)[0].next_run, None);
        set(true, 31).await.unwrap();
        assert_eq!(at(&schedules, &models, 32).await, Some(35));
        assert!(queued(&models).is_empty());
        assert_eq!(schedules.by_plugin(1)[0].next_run, Some(START + 35 * MINUTE_MS));
    }
}
