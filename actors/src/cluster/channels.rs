//! The live channels of this node in the cluster: each asks who opens its source, and the other nodes read its ring.
//!
//! ```text
//!   live channel ── ChannelClaim ──▶ ClusterLink ──▶ the member
//!        ▲ Message::Owner                               │
//!        └────────────── SharedChannels ◀── effects ────┘
//!                           ▲ find: the ring, for the edges that connect
//! ```

use std::any::Any;
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use domain::cluster::record::NodeId;
use domain::cluster::{NodeEffect, NodeInput};
use media::dial::Socket;
use media::node::{FoundRing, NodeMeter, RingDirectory, serve_rings};
use media::pump::PumpHandle;
use media::ring::Ring;
use parking_lot::Mutex;
use ractor::ActorRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::link::ClusterLink;
use crate::channel;

/// A connection to another node.
pub type NodeSocket = Box<dyn Socket>;

/// The future of a connection to another node.
pub type NodeConnecting = Pin<Box<dyn Future<Output = io::Result<NodeSocket>> + Send>>;

/// Reaches the other nodes.
pub trait NodeDialer: Send + Sync + 'static {
    /// Returns the name of a node, for people.
    fn name(&self, node: NodeId) -> String;

    /// Opens a connection that can carry a request for a ring. The caller limits the wait.
    fn connect(&self, node: NodeId) -> NodeConnecting;
}

/// The ways of the live channels of a node to its cluster.
pub struct ChannelParts {
    /// Name of this node.
    pub name: String,
    pub link: ClusterLink,
    /// The effects for channels.
    pub effects: UnboundedReceiver<NodeEffect>,
    pub dialer: Arc<dyn NodeDialer>,
    /// This node may open the sources of channels.
    pub may_originate: bool,
}

/// The decision about the origin of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerDecision {
    /// This node opens the source, or continues with the present one.
    Originate { epoch: u64 },
    /// This node pulls from another one.
    Pull { from: NodeId, epoch: u64 },
    /// The source of this node is not wanted any more.
    Release,
}

/// The ring of a channel of which this node is the origin.
struct ServedRing {
    ring: Ring,
    pump: PumpHandle,
    epoch: u64,
}

struct Claimed {
    serial: u64,
    actor: ActorRef<channel::Message>,
    served: Option<ServedRing>,
}

/// The live channels of this node that the cluster knows.
pub struct SharedChannels {
    name: Arc<str>,
    link: ClusterLink,
    dialer: Arc<dyn NodeDialer>,
    may_originate: bool,
    /// By uuid. Bounded by the live channels.
    claimed: Mutex<HashMap<Uuid, Claimed>>,
    meter: Arc<NodeMeter>,
}

impl SharedChannels {
    /// Starts to pass decisions to the live channels, until the returned handle is dropped.
    pub(crate) fn start(parts: ChannelParts) -> (Arc<Self>, AbortOnDropHandle<()>) {
        let ChannelParts { name, link, mut effects, dialer, may_originate } = parts;
        let shared = Arc::new(Self {
            name: name.into(),
            link,
            dialer,
            may_originate,
            claimed: Mutex::default(),
            meter: Arc::default(),
        });
        let of_task = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Some(effect) = effects.recv().await {
                of_task.pass_on(effect);
            }
        });
        (shared, AbortOnDropHandle::new(task))
    }

    fn pass_on(&self, effect: NodeEffect) {
        let (uuid, decision) = match effect {
            NodeEffect::Originate { channel, epoch } => (channel, OwnerDecision::Originate { epoch }),
            NodeEffect::Pull { channel, from, epoch } => (channel, OwnerDecision::Pull { from, epoch }),
            NodeEffect::ReleaseSource { channel } => (channel, OwnerDecision::Release),
            _ => return,
        };
        // A channel that has ended since wants nothing any more, which the member knows by now.
        let actor = self.claimed.lock().get(&uuid).map(|it| it.actor.clone());
        if let Some(actor) = actor {
            let _ = actor.cast(channel::Message::Owner(decision));
        }
    }

    /// Returns the name of this node.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn may_originate(&self) -> bool {
        self.may_originate
    }

    pub(crate) fn dialer(&self) -> &Arc<dyn NodeDialer> {
        &self.dialer
    }

    /// Declares that viewers of this node watch a channel, until the claim is dropped.
    pub(crate) fn claim(
        self: &Arc<Self>,
        uuid: Uuid,
        serial: u64,
        actor: ActorRef<channel::Message>,
    ) -> ChannelClaim {
        self.claimed.lock().insert(uuid, Claimed { serial, actor, served: None });
        self.want(uuid, true);
        ChannelClaim { shared: Arc::clone(self), uuid, serial }
    }

    fn want(&self, channel: Uuid, is_wanted: bool) {
        let may_originate = self.may_originate;
        self.link.send(NodeInput::WantChannel { channel, is_wanted, may_originate });
    }

    /// Answers the requests of another node for the rings of channels, on one connection, until it ends. Its client may read
    /// every channel: it has to be a node.
    ///
    /// # Errors
    /// The connection broke, or takes nothing.
    pub async fn serve<S>(self: Arc<Self>, stream: S) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        serve_rings(stream, self).await
    }

    /// Returns the counters of all connections of edges.
    pub fn meter(&self) -> &Arc<NodeMeter> {
        &self.meter
    }
}

impl RingDirectory for SharedChannels {
    fn find(&self, target: &str) -> Option<FoundRing> {
        let uuid = Uuid::try_parse(target).ok()?;
        let claimed = self.claimed.lock();
        let Claimed { actor, served: Some(ServedRing { ring, pump, epoch }), .. } = claimed.get(&uuid)?
        else {
            return None;
        };
        let guard: Box<dyn Any + Send + Sync> = Box::new(EdgeGuard::new(actor.clone()));
        Some(FoundRing { ring: ring.clone(), epoch: *epoch, continues: pump.adopted(), guard: Some(guard) })
    }

    fn meter(&self) -> Arc<NodeMeter> {
        Arc::clone(&self.meter)
    }
}

/// An edge that reads a ring. Reports its beginning and its end to the live channel.
struct EdgeGuard(ActorRef<channel::Message>);

impl EdgeGuard {
    fn new(actor: ActorRef<channel::Message>) -> Self {
        let _ = actor.cast(channel::Message::EdgeJoined);
        Self(actor)
    }
}

impl Drop for EdgeGuard {
    fn drop(&mut self) {
        // Fails when the channel has ended.
        let _ = self.0.cast(channel::Message::EdgeLeft);
    }
}

/// The claim of a live channel with viewers. Its drop tells the cluster that this node does not need the channel any more.
pub(crate) struct ChannelClaim {
    shared: Arc<SharedChannels>,
    uuid: Uuid,
    serial: u64,
}

impl ChannelClaim {
    pub(crate) fn shared(&self) -> &Arc<SharedChannels> {
        &self.shared
    }

    /// Returns the name of the ring of the channel in requests.
    pub(crate) fn target(&self) -> String {
        self.uuid.to_string()
    }

    /// Lets other nodes read the ring, as that of the origin of this epoch.
    pub(crate) fn serve(&self, epoch: u64, ring: Ring, pump: PumpHandle) {
        self.set_served(Some(ServedRing { ring, pump, epoch }));
    }

    /// Accepts no more nodes.
    pub(crate) fn stop_serving(&self) {
        self.set_served(None);
    }

    fn set_served(&self, served: Option<ServedRing>) {
        let mut claimed = self.shared.claimed.lock();
        if let Some(it) = claimed.get_mut(&self.uuid).filter(|it| it.serial == self.serial) {
            it.served = served;
        }
    }

    /// Reports that the origin of this epoch answers.
    pub(crate) fn pulled(&self, epoch: u64) {
        self.shared.link.send(NodeInput::Pulled { channel: self.uuid, epoch });
    }

    /// Reports that the origin of this epoch has not answered for a second.
    pub(crate) fn pull_lost(&self, epoch: u64) {
        self.shared.link.send(NodeInput::PullLost { channel: self.uuid, epoch });
    }

    /// Reports that the source has ended that this node plays although another one is the origin.
    pub(crate) fn source_lost(&self) {
        self.shared.link.send(NodeInput::SourceLost { channel: self.uuid });
    }
}

impl Drop for ChannelClaim {
    fn drop(&mut self) {
        let mut claimed = self.shared.claimed.lock();
        // A later channel of the same name has a claim of its own.
        if claimed.get(&self.uuid).is_some_and(|it| it.serial == self.serial) {
            claimed.remove(&self.uuid);
            drop(claimed);
            self.shared.want(self.uuid, false);
        }
    }
}
