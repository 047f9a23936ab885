//! What a live channel reads when it starts: its plan.
//!
//! A trait, so that a zap never queues behind a disk: from memory now, from the store's read model later.

use std::{collections::HashMap, fmt, sync::Arc};

use domain::{
    account::Account,
    ids::{AccountId, StreamId, StreamProfileId},
    plan::{self, Plan},
    playlist::catalogue::Catalogue,
    stream::Stream,
    stream_profile::{Delivery, StreamProfile},
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

/// Plans of a catalogue that never changes.
pub struct MemoryPlans {
    catalogue: Arc<Catalogue>,
    default: Delivery,
    /// Where in the catalogue each of them stands.
    channels: HashMap<Uuid, usize>,
    streams: HashMap<StreamId, usize>,
    accounts: HashMap<AccountId, usize>,
}

impl MemoryPlans {
    /// Plans for every enabled channel of the catalogue, and for the preview of every stream.
    pub fn new(catalogue: Arc<Catalogue>, default: Delivery) -> Self {
        let channels = catalogue.channels.iter().enumerate().filter(|it| it.1.enabled);
        Self {
            channels: channels.map(|(at, it)| (it.uuid, at)).collect(),
            streams: catalogue.streams.iter().enumerate().map(|(at, it)| (it.id, at)).collect(),
            accounts: catalogue.accounts.iter().enumerate().map(|(at, it)| (it.id, at)).collect(),
            catalogue,
            default,
        }
    }

    fn find_stream(&self, id: StreamId) -> Option<&Stream> {
        self.streams.get(&id).map(|at| &self.catalogue.streams[*at])
    }
}

impl plan::Records for MemoryPlans {
    fn stream(&self, id: StreamId) -> Option<Arc<Stream>> {
        self.find_stream(id).cloned().map(Arc::new)
    }

    fn account(&self, id: AccountId) -> Option<Arc<Account>> {
        self.accounts.get(&id).map(|at| Arc::new(self.catalogue.accounts[*at].clone()))
    }

    fn stream_profile(&self, id: StreamProfileId) -> Option<Arc<StreamProfile>> {
        StreamProfile::built_in().into_iter().find(|it| it.id == id).map(Arc::new)
    }

    fn default_delivery(&self) -> Delivery {
        self.default
    }
}

impl Plans for MemoryPlans {
    fn plan(&self, target: &Target) -> Option<Arc<Plan>> {
        let plan = match target {
            Target::Channel(uuid) => plan::plan(&self.catalogue.channels[*self.channels.get(uuid)?], self),
            Target::Stream(id) => plan::preview(self.find_stream(*id)?, self),
        };
        Some(Arc::new(plan))
    }

    fn exists(&self, target: &Target) -> bool {
        match target {
            Target::Channel(uuid) => self.channels.contains_key(uuid),
            Target::Stream(id) => self.streams.contains_key(id),
        }
    }
}
