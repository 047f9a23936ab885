//! Follows the commits of the store: new deliveries, changed integrations, and the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::ids::DeliveryId;
use domain::integration::{Delivery, DeliveryLogEntry, Integration, IntegrationState, Recipient};
use domain::plugin::{Plugin, PluginSchedules};
use media::spawn_blocking;
use storage::{Change, ChangeMessage, ChangedIds, Record};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{info, warn};

use super::state::{IntegrationsState, Running};
use super::worker;
use crate::clock::now_ms;
use crate::tasks::{self, RespawnedTask};

/// How often entries and dead letters are removed that are too old.
const TRIM_INTERVAL: Duration = Duration::from_secs(3600);
/// Maximum number of records that one write removes.
const REMOVED_PER_WRITE: usize = 1_000;
/// Pause before the store is read again after an error.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The tasks of the integrations and the plugins.
type Workers = BTreeMap<Recipient, RespawnedTask>;

/// Runs until the gateway stops, and its attempts have ended.
pub(super) async fn run(shared: Arc<IntegrationsState>) {
    let Some(running) = shared.running.get() else { return };
    let mut workers = Workers::new();
    let mut changes = running.models.store.changes();
    let mut readiness = shared.plugins.readiness();
    let (mut status, mut delivers) =
        (running.models.store.log_status(), running.models.store.writes_shared());
    read_plugins(&shared, running).await;
    // Before the log is read, which takes longer.
    sync_workers(&shared, running, &mut workers);
    while !read_all(&shared).await {
        sleep(RETRY_DELAY).await;
    }
    if delivers {
        shared.deliver_own(running).await;
    }
    bury_overflow(&shared, running).await;
    let mut trims = interval(TRIM_INTERVAL);
    trims.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        status.mark_unchanged();
        if std::mem::replace(&mut delivers, running.models.store.writes_shared()) != delivers {
            begin_or_end(&shared, running, delivers).await;
        }
        let message = tokio::select! {
            message = changes.next() => message,
            // Without a log, it does not change.
            Ok(()) = status.changed() => continue,
            Ok(()) = readiness.changed() => {
                running.wake_plugins();
                shared.touch();
                continue;
            }
            _ = trims.tick() => {
                trim(running).await;
                continue;
            }
            () = shared.installed.notified() => {
                read_plugins(&shared, running).await;
                continue;
            }
            () = shared.stop.cancelled() => break,
        };
        let change = match message {
            ChangeMessage::Changed(change) => change,
            ChangeMessage::Lagged => {
                read_plugins(&shared, running).await;
                while !read_all(&shared).await {
                    sleep(RETRY_DELAY).await;
                }
                sync_workers(&shared, running, &mut workers);
                bury_overflow(&shared, running).await;
                continue;
            }
            ChangeMessage::Closed => break,
        };
        let has_plugins = change.ids(Plugin::COLLECTION).is_some();
        if has_plugins {
            read_plugins(&shared, running).await;
        }
        if change.ids(PluginSchedules::COLLECTION).is_some() {
            shared.plugins.schedules().wake();
        }
        if has_plugins || change.ids(Integration::COLLECTION).is_some() {
            sync_workers(&shared, running, &mut workers);
        }
        if change.ids(IntegrationState::COLLECTION).is_some() {
            running.queues.lock().values().for_each(|it| it.wake.notify_one());
            shared.touch();
        }
        let has_deliveries = change.ids(Delivery::COLLECTION).is_some();
        if has_deliveries || change.ids(DeliveryLogEntry::COLLECTION).is_some() {
            read_change(&shared, change).await;
        }
        if has_deliveries {
            bury_overflow(&shared, running).await;
            shared.touch();
        }
    }
    // The workers end with their attempts.
    while running.queues.lock().values().any(|it| it.counts().1 > 0) {
        sleep(Duration::from_millis(10)).await;
    }
}

/// Begins or ends the deliveries of this node, as that of a cluster that writes the configuration.
async fn begin_or_end(shared: &IntegrationsState, running: &Running, delivers: bool) {
    if delivers {
        shared.deliver_own(running).await;
        shared.outbox.offer_seen();
        // Also sets the schedules.
        read_plugins(shared, running).await;
    }
    running.wake_plugins();
    shared.touch();
}

/// Reads the plugins and their schedules again.
async fn read_plugins(shared: &IntegrationsState, running: &Running) {
    let targets = running.plugins.clone();
    let enabled = spawn_blocking(move || targets.read_again()).await.unwrap_or_default();
    // In a cluster, the node that writes the configuration sets the schedules.
    let delivers = running.models.store.writes_shared();
    for plugin in enabled.into_iter().filter(|_| delivers) {
        if let Err(cause) = shared.plugins.schedules().follow(&plugin).await {
            warn!(plugin.key = %plugin.record.key, "failed to store the schedules of a plugin: {cause}");
        }
    }
    shared.plugins.schedules().wake();
    running.wake_plugins();
}

/// Has a worker for each integration and each plugin.
fn sync_workers(shared: &Arc<IntegrationsState>, running: &Running, workers: &mut Workers) {
    let integrations = running.models.integrations.load();
    let of_integrations = integrations.iter().map(|it| (Recipient::Integration(it.id), it.parallel));
    let plugins = running.plugins.all();
    let of_plugins = plugins.values().map(|it| (Recipient::Plugin(it.id), it.concurrency));
    let wanted: BTreeMap<Recipient, u8> = of_integrations.chain(of_plugins).collect();
    running.queues.lock().retain(|id, _| wanted.contains_key(id));
    workers.retain(|id, _| wanted.contains_key(id));
    for (to, parallel) in wanted {
        let queue = running.queue(to, parallel);
        queue.set_parallel(parallel);
        workers.entry(to).or_insert_with(|| {
            let shared = shared.clone();
            tasks::respawn("the worker of deliveries", move || worker::run(shared.clone(), queue.clone()))
        });
    }
    shared.touch();
}

/// Reads all deliveries, and the entries of the log that are not known. Returns whether it succeeded.
async fn read_all(shared: &Arc<IntegrationsState>) -> bool {
    let shared = shared.clone();
    let read = spawn_blocking(move || {
        let Some(running) = shared.running.get() else { return Ok(()) };
        running.read_deliveries().and_then(|()| running.read_log())
    });
    match read.await {
        Ok(Ok(())) => true,
        Ok(Err(cause)) => {
            warn!("failed to read the deliveries of integrations: {cause}");
            false
        }
        Err(_) => false,
    }
}

/// Reads what a commit changed.
async fn read_change(shared: &Arc<IntegrationsState>, change: Arc<Change>) {
    let all = shared.clone();
    let read = spawn_blocking(move || {
        let Some(running) = all.running.get() else { return Ok(()) };
        match change.ids(Delivery::COLLECTION) {
            Some(ChangedIds::Few(ids)) => running.read_some(ids)?,
            Some(ChangedIds::Many) => running.read_deliveries()?,
            None => {}
        }
        match change.ids(DeliveryLogEntry::COLLECTION) {
            Some(ChangedIds::Few(ids)) => running.read_entries(ids.iter().copied()),
            Some(ChangedIds::Many) => running.read_log(),
            None => Ok(()),
        }
    });
    if !matches!(read.await, Ok(Ok(()))) {
        while !read_all(shared).await {
            sleep(RETRY_DELAY).await;
        }
    }
}

impl Running {
    fn set(&self, delivery: &Delivery) {
        // A delivery without its integration or plugin is about to be removed.
        let parallel = match delivery.to {
            Recipient::Integration(id) => self.models.integrations.load().get(id.0).map(|it| it.parallel),
            Recipient::Plugin(id) => self.plugins.get(id).map(|it| it.concurrency),
        };
        if let Some(parallel) = parallel {
            self.queue(delivery.to, parallel).set(delivery);
        }
    }

    /// Lets the workers look whether plugins take runs.
    fn wake_plugins(&self) {
        self.queues.lock().values().for_each(|it| it.wake.notify_one());
    }

    fn read_deliveries(&self) -> storage::Result<()> {
        let mut ids = BTreeSet::new();
        self.models.store.collection::<Delivery>().for_each(|delivery| {
            ids.insert(delivery.id);
            self.set(&delivery);
        })?;
        let queues: Vec<_> = self.queues.lock().values().cloned().collect();
        queues.iter().for_each(|it| it.retain(|id| ids.contains(&id)));
        Ok(())
    }

    fn read_some(&self, ids: &[u32]) -> storage::Result<()> {
        let collection = self.models.store.collection::<Delivery>();
        for id in ids {
            match collection.get(*id)? {
                Some(delivery) => self.set(&delivery),
                None => self.queues.lock().values().for_each(|it| it.remove(DeliveryId(*id))),
            }
        }
        Ok(())
    }

    fn read_log(&self) -> storage::Result<()> {
        let stored = self.models.store.collection::<DeliveryLogEntry>().ids();
        let known: Vec<u32> = self.log.lock().ids().collect();
        let gone = known.into_iter().filter(|it| stored.binary_search(it).is_err());
        self.read_entries(gone.chain(stored.iter().copied()))
    }

    fn read_entries(&self, ids: impl Iterator<Item = u32>) -> storage::Result<()> {
        let collection = self.models.store.collection::<DeliveryLogEntry>();
        for id in ids {
            let (is_stored, is_known) = (collection.stamp(id).is_some(), self.log.lock().contains(id));
            match (is_stored, is_known) {
                (false, true) => self.log.lock().remove(id),
                (true, false) => {
                    if let Some(entry) = collection.get(id)? {
                        self.log.lock().insert(&entry);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Makes dead letters of deliveries beyond the limit, and removes dead letters beyond theirs.
async fn bury_overflow(shared: &IntegrationsState, running: &Running) {
    let queues: Vec<_> = running.queues.lock().values().cloned().collect();
    for queue in queues {
        let (overflow, excess) = (queue.take_overflow(), queue.dead_beyond_limit());
        if overflow.is_empty() && excess.is_empty() {
            continue;
        }
        let n_overflow = overflow.len();
        let buried = running.models.store.write(move |write| {
            for id in overflow {
                if let Some(mut delivery) = write.get::<Delivery>(id.0)? {
                    delivery.die("too many deliveries wait for the same target", now_ms());
                    write.put(&delivery)?;
                }
            }
            for id in excess {
                write.remove::<Delivery>(id.0)?;
            }
            Ok::<_, storage::Error>(())
        });
        if let Err(cause) = buried.await {
            // They wait no longer, and are read again at the next start.
            warn!(to = ?queue.id, "failed to store which deliveries are dead letters: {cause}");
        } else if n_overflow > 0 {
            running.n_overflowed.fetch_add(n_overflow as u64, Ordering::Relaxed);
            info!(to = ?queue.id, "{n_overflow} deliveries became dead letters: too many wait");
        }
        shared.touch();
    }
}

/// Removes what is too old.
async fn trim(running: &Running) {
    let queues: Vec<_> = running.queues.lock().values().cloned().collect();
    let dead: Vec<_> = queues.iter().flat_map(|it| it.dead_too_old(now_ms())).collect();
    for some in dead.chunks(REMOVED_PER_WRITE) {
        let some = some.to_vec();
        let removed = running
            .models
            .store
            .write(move |write| some.iter().try_for_each(|it| write.remove::<Delivery>(it.0).map(drop)));
        // The next hour tries again.
        if removed.await.is_err() {
            return;
        }
    }
    loop {
        let old = running.log.lock().excess(None, 0, &running.settings.log, now_ms());
        if old.is_empty() {
            return;
        }
        let removed = old.clone();
        let written = running.models.store.write(move |write| {
            removed.iter().try_for_each(|it| write.remove::<DeliveryLogEntry>(*it).map(drop))
        });
        if written.await.is_err() {
            return;
        }
        let mut log = running.log.lock();
        old.iter().for_each(|it| log.remove(*it));
    }
}

impl IntegrationsState {
    /// Tells those who follow that a status has changed.
    pub(super) fn touch(&self) {
        self.changed.send_modify(|it| *it = it.wrapping_add(1));
    }
}
