//! What a live channel reads when it starts: its plan.
//!
//! A trait, so that a zap never queues behind a disk: from memory now, from the store's read model later.

use std::{collections::HashMap, fmt, sync::Arc};

use domain::{
    account::Account,
    ids::{AccountId, StreamId},
    plan::{self, Plan},
    playlist::catalogue::Catalogue,
    stream::Stream,
    stream_profile::StreamProfile,
};
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

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Channel(uuid) => write!(f, "channel {uuid}"),
            Target::Stream(id) => write!(f, "stream {id}"),
        }
    }
}

/// Where plans come from. Both calls answer from memory and never wait.
pub trait Plans: Send + Sync + 'static {
    /// The plan of a target as it stands now; `None` when there is no such target or it is disabled.
    fn plan(&self, target: &Target) -> Option<Arc<Plan>>;

    /// Whether there is such a target, without making its plan.
    fn exists(&self, target: &Target) -> bool {
        self.plan(target).is_some()
    }
}

/// Plans of a catalogue that never changes, ready made.
pub struct MemoryPlans {
    plans: HashMap<Target, Arc<Plan>>,
}

impl MemoryPlans {
    /// Makes the plan of every channel and of every stream of the catalogue.
    pub fn new(catalogue: &Catalogue, default: StreamProfile) -> Self {
        let streams: HashMap<StreamId, &Stream> = catalogue.streams.iter().map(|it| (it.id, it)).collect();
        let accounts: HashMap<AccountId, &Account> =
            catalogue.accounts.iter().map(|it| (it.id, it)).collect();
        let stream = |id| streams.get(&id).map(|it| (*it).clone());
        let account = |id| accounts.get(&id).map(|it| (*it).clone());
        let mut plans = HashMap::new();
        for channel in catalogue.channels.iter().filter(|it| it.enabled) {
            let plan = plan::plan(channel, stream, account, default);
            plans.insert(Target::Channel(channel.uuid), Arc::new(plan));
        }
        Self { plans }
    }

    /// Plans that were made elsewhere (tests).
    pub fn of(plans: impl IntoIterator<Item = (Target, Plan)>) -> Self {
        Self { plans: plans.into_iter().map(|(target, plan)| (target, Arc::new(plan))).collect() }
    }
}

impl Plans for MemoryPlans {
    fn plan(&self, target: &Target) -> Option<Arc<Plan>> {
        self.plans.get(target).cloned()
    }

    fn exists(&self, target: &Target) -> bool {
        self.plans.contains_key(target)
    }
}
