//! The forecast of recordings that the recorder follows.

use std::collections::HashMap;
use std::sync::Arc;

use domain::channel::Channel;
use domain::ids::{ProfileId, RecordingId};
use domain::plan::SlotPool;
use domain::recording::Recording;
use domain::recording::forecast::{Forecast, ForecastDemand};
use domain::stream_profile::Delivery;
use parking_lot::Mutex;
use storage::{Models, Table};
use uuid::Uuid;

use crate::channel::LiveEnv;
use crate::clock::now_ms;
use crate::plans::{Plans, Target};

/// For how long a forecast is kept if no recording and no channel changes, in milliseconds; accounts change rarely.
const AGE_MS_MAX: i64 = 10_000;
/// A forecast that lacks a recording is kept for this long, so that many new ones together are one forecast.
const AGE_MS_MIN: i64 = 500;

/// The last forecast, for the recorder and for lists that many clients request.
pub(super) struct Forecasts {
    models: Models,
    env: Arc<LiveEnv>,
    kept: Mutex<Option<Kept>>,
    /// Held while a forecast is made.
    making: Mutex<()>,
}

struct Kept {
    recordings: Arc<Table<Recording>>,
    channels: Arc<Table<Channel>>,
    at: i64,
    forecast: Arc<Forecast>,
}

/// The accounts that can play each channel.
pub struct RecordingPools<'a> {
    plans: &'a dyn Plans,
    known: HashMap<Uuid, Arc<[SlotPool]>>,
}

impl<'a> RecordingPools<'a> {
    pub fn new(plans: &'a dyn Plans) -> Self {
        Self { plans, known: HashMap::new() }
    }

    /// Returns the accounts from which a channel can be recorded, in the order in which they are tried.
    pub fn get(&mut self, channel: Uuid) -> Arc<[SlotPool]> {
        let plans = self.plans;
        let found = || {
            let plan = plans.plan(&Target::Channel(channel));
            let candidates = plan.iter().flat_map(|it| &it.candidates);
            // Players are sent to the provider of the others, so there is nothing to record.
            let mut pools: Vec<SlotPool> = Vec::new();
            for it in candidates.filter(|it| it.profile != Delivery::Redirect) {
                if pools.iter().all(|pool| pool.profile != it.pool.profile) {
                    pools.push(it.pool.clone());
                }
            }
            pools.into()
        };
        Arc::clone(self.known.entry(channel).or_insert_with(found))
    }
}

impl Forecasts {
    pub(super) fn new(models: Models, env: Arc<LiveEnv>) -> Self {
        Self { models, env, kept: Mutex::default(), making: Mutex::default() }
    }

    pub(super) fn models(&self) -> &Models {
        &self.models
    }

    /// Returns the last forecast, however old it is; an empty one if there was none.
    pub(super) fn last(&self) -> Arc<Forecast> {
        self.kept.lock().as_ref().map(|it| it.forecast.clone()).unwrap_or_default()
    }

    /// Makes a forecast for the start of a recording, if the last one is old or lacks it. May block.
    pub(super) fn prepare(&self, id: RecordingId) {
        let is_usable = |it: &Kept| {
            let age_max = if it.forecast.get(id).is_some() { AGE_MS_MAX } else { AGE_MS_MIN };
            (0..age_max).contains(&now_ms().saturating_sub(it.at))
        };
        if !self.kept.lock().as_ref().is_some_and(is_usable) {
            self.current();
        }
    }

    /// Returns the forecast of the recordings of the next two weeks. May block.
    pub(super) fn current(&self) -> Arc<Forecast> {
        let _making = self.making.lock();
        let (recordings, channels) = (self.models.recordings.load(), self.models.channels.load());
        let now = now_ms();
        let is_current = |it: &&Kept| {
            Arc::ptr_eq(&it.recordings, &recordings)
                && Arc::ptr_eq(&it.channels, &channels)
                && (0..AGE_MS_MAX).contains(&now.saturating_sub(it.at))
        };
        if let Some(it) = self.kept.lock().as_ref().filter(is_current) {
            return it.forecast.clone();
        }
        let watched: HashMap<Target, ProfileId> = self.env.slots.watched();
        let mut pools = RecordingPools::new(&*self.env.plans);
        let demand = |it: &Recording| {
            let target = Target::Channel(it.channel_uuid);
            let watched = watched.get(&target).copied().filter(|_| it.begins_at() <= now);
            ForecastDemand::from_recording(it, pools.get(it.channel_uuid), watched)
        };
        let wanted = Forecast::wanted(recordings.iter().map(|it| &**it), now);
        let forecast = Arc::new(Forecast::new(wanted.into_iter().map(demand).collect()));
        *self.kept.lock() = Some(Kept { recordings, channels, at: now, forecast: forecast.clone() });
        forecast
    }
}
