//! What a live channel reads when it starts: its plan.
//!
//! A trait, so that an actor can be told about with plans that were written by hand.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use domain::account::Account;
use domain::core_settings::{STREAM_SETTINGS, default_stream_profile};
use domain::ids::{AccountId, StreamId, StreamProfileId};
use domain::plan::{self, Plan, PlanContext, PlanRecords};
use domain::stream::Stream;
use domain::stream_profile::{Delivery, StreamProfile};
use parking_lot::Mutex;
use storage::Models;
use tracing::error;
use uuid::Uuid;

/// What a client can ask to watch. Two key spaces that cannot collide: a channel and a stream with the same number
/// are two things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// A virtual channel, with failover over its streams.
    Channel(Uuid),
    /// One stream, played alone (a preview).
    Stream(StreamId),
}

impl Target {
    /// What it is called by in the interface: a channel's own uuid, or that which a preview of a stream goes by.
    pub fn uuid(&self) -> Uuid {
        match self {
            Target::Channel(uuid) => *uuid,
            Target::Stream(id) => plan::preview_uuid(*id),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Channel(uuid) => write!(f, "channel {uuid}"),
            Target::Stream(id) => write!(f, "stream {id}"),
        }
    }
}

/// Where plans come from. Made on every zap, so a call answers from memory, or after reading a few records.
pub trait Plans: Send + Sync + 'static {
    /// The plan of a target as it stands now; `None` when there is no such target or it is disabled.
    fn plan(&self, target: &Target) -> Option<Arc<Plan>>;

    /// Whether there is such a target, without making its plan. From memory.
    fn exists(&self, target: &Target) -> bool {
        self.plan(target).is_some()
    }

    /// What holds for all plans, whatever the records say.
    fn conditions(&self) -> PlanContext {
        PlanContext::default()
    }
}

/// Streams that are kept in memory, at most twice as many: those of all channels that are watched, and more.
const STREAMS_KEPT: usize = 4_096;

/// Plans of what the store says now.
///
/// Everything but streams is in memory anyway. A stream is read once, and kept until it changes or others push it out;
/// the read takes some microseconds, or as long as a slice of a write.
pub struct StorePlans {
    models: Models,
    /// Where the core settings name no stream profile.
    default: Delivery,
    conditions: PlanContext,
    streams: Mutex<Kept>,
}

impl StorePlans {
    /// `default` is for streams and channels that refer to no stream profile, where the core settings name none
    /// either. The machine counts as one that has nothing; see [`StorePlans::under`].
    pub fn new(models: Models, default: Delivery) -> Self {
        Self { models, default, conditions: PlanContext::default(), streams: Mutex::default() }
    }

    /// The same under these conditions.
    pub fn under(self, conditions: PlanContext) -> Self {
        Self { conditions, ..self }
    }
}

impl PlanRecords for StorePlans {
    fn stream(&self, id: StreamId) -> Option<Arc<Stream>> {
        let streams = self.models.store.collection::<Stream>();
        // Taken before the record: if that is newer, it is read once more than needed.
        let stamp = streams.stamp(id.0)?;
        if let Some(stream) = self.streams.lock().get(id, stamp) {
            return Some(stream);
        }
        match streams.get(id.0) {
            Ok(stream) => {
                let stream = Arc::new(stream?);
                self.streams.lock().put(id, stamp, stream.clone());
                Some(stream)
            }
            Err(cause) => {
                error!(stream.id = %id, "a stream is left out, it cannot be read: {cause}");
                None
            }
        }
    }

    fn account(&self, id: AccountId) -> Option<Arc<Account>> {
        self.models.accounts.load().get(id.0).cloned()
    }

    fn stream_profile(&self, id: StreamProfileId) -> Option<Arc<StreamProfile>> {
        self.models.stream_profiles.load().get(id.0).filter(|it| it.is_active).cloned()
    }

    fn default_profile(&self) -> Arc<StreamProfile> {
        let settings = self.models.settings.load();
        let value = settings.one_by("key", STREAM_SETTINGS).map(|it| &it.value);
        let profile = default_stream_profile(value).and_then(|it| self.stream_profile(it));
        profile.unwrap_or_else(|| Arc::new(StreamProfile::of(self.default)))
    }

    fn conditions(&self) -> &PlanContext {
        &self.conditions
    }
}

impl Plans for StorePlans {
    fn plan(&self, target: &Target) -> Option<Arc<Plan>> {
        let plan = match target {
            Target::Channel(uuid) => {
                let channels = self.models.channels.load();
                plan::plan_channel(channels.one_by("uuid", uuid.as_bytes()).filter(|it| it.enabled)?, self)
            }
            Target::Stream(id) => plan::plan_preview(&*self.stream(*id)?, self),
        };
        Some(Arc::new(plan))
    }

    fn exists(&self, target: &Target) -> bool {
        match target {
            Target::Channel(uuid) => {
                self.models.channels.load().one_by("uuid", uuid.as_bytes()).is_some_and(|it| it.enabled)
            }
            Target::Stream(id) => self.models.store.collection::<Stream>().stamp(id.0).is_some(),
        }
    }

    fn conditions(&self) -> PlanContext {
        self.conditions.clone()
    }
}

/// Streams as they were read, each with the stamp that it had. Once the young are many they become the old, and the
/// old of before, that nobody asked for since, are let go.
#[derive(Default)]
struct Kept {
    young: HashMap<StreamId, (u64, Arc<Stream>)>,
    old: HashMap<StreamId, (u64, Arc<Stream>)>,
}

impl Kept {
    fn get(&mut self, id: StreamId, stamp: u64) -> Option<Arc<Stream>> {
        if let Some((_, stream)) = self.young.get(&id).filter(|it| it.0 == stamp) {
            return Some(stream.clone());
        }
        let (_, stream) = self.old.remove(&id).filter(|it| it.0 == stamp)?;
        self.put(id, stamp, stream.clone());
        Some(stream)
    }

    fn put(&mut self, id: StreamId, stamp: u64, stream: Arc<Stream>) {
        if self.young.len() >= STREAMS_KEPT {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, (stamp, stream));
    }
}

#[cfg(test)]
mod tests;
