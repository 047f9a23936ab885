//! Reserves the slots that recordings need soon.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use domain::channel::Channel;
use domain::recording::forecast::reserved_peaks;
use domain::recording::{DvrSettings, Recording};
use domain::setting::CoreSetting;
use media::spawn_blocking;
use storage::Record;
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::priority::LEAD_MS;
use super::state::{RecorderState, any_changed};
use crate::clock::now_ms;
use crate::plans::Target;
use crate::recording_files::dvr_settings;
use crate::slots::ReservedSlots;

/// Longest time between two looks at what recordings need.
const LOOK_PERIOD: Duration = Duration::from_secs(10);
/// Shortest time between them.
const PAUSE: Duration = Duration::from_secs(1);

impl RecorderState {
    /// Reserves slots as the settings say, as long as the gateway runs.
    pub(super) async fn reserve_slots(self: Arc<Self>) {
        let Some(parts) = self.parts.get() else { return };
        let mut changes = parts.models.store.changes();
        loop {
            let settings = dvr_settings(&parts.models);
            let reserved = match settings.reserve_minutes == 0 && settings.reserved_slots.is_empty() {
                true => ReservedSlots::default(),
                false => self.needed(settings).await,
            };
            self.env.slots.reserve(reserved);
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = self.stop.cancelled() => return,
            }
            let collections = [Recording::COLLECTION, Channel::COLLECTION, CoreSetting::COLLECTION];
            let changed = any_changed(&mut changes, &collections);
            tokio::select! {
                _ = timeout(LOOK_PERIOD, changed) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Returns the slots that recordings need within the time of the settings, and those that the settings always keep for them.
    async fn needed(&self, settings: DvrSettings) -> ReservedSlots {
        let Some(parts) = self.parts.get() else { return ReservedSlots::default() };
        let (forecasts, models, zone) = (parts.forecasts.clone(), parts.models.clone(), self.settings().1);
        let ahead_ms = i64::from(settings.reserve_minutes) * 60_000;
        let needed = spawn_blocking(move || {
            let (forecast, now) = (forecasts.current(), now_ms());
            // The connection of a recording that is about to begin is one of those that are kept.
            let until = now.saturating_add(ahead_ms.max(LEAD_MS));
            let recordings = models.recordings.load();
            let uuids: HashMap<_, _> = recordings.iter().map(|it| (it.channel, it.channel_uuid)).collect();
            let channels = forecast.channels(now, until).filter_map(|it| uuids.get(&it));
            let mut peaks = match ahead_ms {
                0 => BTreeMap::new(),
                _ => forecast.peaks(now, until),
            };
            let accounts = models.accounts.load();
            let accounts = accounts.iter().map(|it| &**it);
            for (limit, kept) in reserved_peaks(&settings.reserved_slots, accounts, now, &zone) {
                let peak = peaks.entry(limit).or_default();
                *peak = kept.max(*peak);
            }
            ReservedSlots { peaks, channels: channels.map(|it| Target::Channel(*it)).collect() }
        });
        needed.await.unwrap_or_else(|cause| {
            warn!("failed to find out what recordings need: {cause}");
            ReservedSlots::default()
        })
    }
}
