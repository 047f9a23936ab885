//! Reserves the slots that recordings need soon.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::channel::Channel;
use domain::recording::Recording;
use domain::setting::CoreSetting;
use media::spawn_blocking;
use storage::Record;
use tokio::time::{sleep, timeout};
use tracing::warn;

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
            let minutes = dvr_settings(&parts.models).reserve_minutes;
            let reserved = match minutes {
                0 => ReservedSlots::default(),
                minutes => self.needed(i64::from(minutes) * 60_000).await,
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

    /// Returns the slots that recordings need within a time from now on.
    async fn needed(&self, ahead_ms: i64) -> ReservedSlots {
        let Some(parts) = self.parts.get() else { return ReservedSlots::default() };
        let (forecasts, models) = (parts.forecasts.clone(), parts.models.clone());
        let needed = spawn_blocking(move || {
            let (forecast, now) = (forecasts.current(), now_ms());
            let until = now.saturating_add(ahead_ms);
            let recordings = models.recordings.load();
            let uuids: HashMap<_, _> = recordings.iter().map(|it| (it.channel, it.channel_uuid)).collect();
            let channels = forecast.channels(now, until).filter_map(|it| uuids.get(&it));
            ReservedSlots {
                peaks: forecast.peaks(now, until),
                channels: channels.map(|it| Target::Channel(*it)).collect(),
            }
        });
        needed.await.unwrap_or_else(|cause| {
            warn!("failed to find out what recordings need: {cause}");
            ReservedSlots::default()
        })
    }
}
