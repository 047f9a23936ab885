//! The live channels of this node in the cluster: each asks who opens its source, and the other nodes read its ring.
//!
//! ```text
//!   live channel ── ChannelClaim ──▶ ClusterLink ──▶ the member
//!        ▲ Message::Owner                               │
//!        └────────────── SharedChannels ◀── effects ────┘
//!                           ▲ find: the ring, for the edges that connect
//! ```

mod drain;
mod origins;

use std::any::Any;
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cluster::Engine;
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
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

pub(crate) use self::origins::HostChannels;
use self::origins::{Origins, WantedOrigin};
use crate::channel::{Message, OwnerDecision};
use crate::cluster::{ClusterLink, NodeDrain};
use crate::plans::Target;

/// Pause before all nodes are asked again to open a channel.
const SEEK_PAUSE: Duration = Duration::from_secs(2);
/// Pause between two looks whether other nodes read channels of this one.
const MOVED_PAUSE: Duration = Duration::from_millis(50);

/// A connection to another node.
pub type NodeSocket = Box<dyn Socket>;

/// The future of a connection to another node.
pub type NodeConnecting = Pin<Box<dyn Future<Output = io::Result<NodeSocket>> + Send>>;

/// Reaches the other nodes.
pub trait NodeDialer: Send + Sync + 'static {
    /// Returns the name of a node, for people.
    fn name(&self, node: NodeId) -> String;

    /// Lists the other nodes that may be asked to open a channel, that with the least work first.
    fn full_nodes(&self) -> Vec<NodeId>;

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
    pub engine: Arc<dyn Engine>,
    /// The id of this node.
    pub node: NodeId,
    /// This node may open the sources of channels.
    pub may_originate: bool,
    pub drain: Arc<NodeDrain>,
}

/// The ring of a channel of which this node is the origin.
struct ServedRing {
    ring: Ring,
    pump: PumpHandle,
    epoch: u64,
    /// The nodes that read it.
    n_edges: Arc<AtomicUsize>,
}

impl ServedRing {
    fn is_read(&self) -> bool {
        self.n_edges.load(Ordering::Relaxed) > 0
    }
}

struct Claimed {
    serial: u64,
    target: Target,
    actor: ActorRef<Message>,
    /// This node may open one of its sources.
    may_originate: bool,
    /// Present while another node is asked to be the origin.
    seeker: Option<AbortOnDropHandle<()>>,
    /// Viewers of this node have seen something of another node.
    is_watched: bool,
    served: Option<ServedRing>,
}

/// The live channels of this node that the cluster knows.
pub struct SharedChannels {
    name: Arc<str>,
    link: ClusterLink,
    dialer: Arc<dyn NodeDialer>,
    origins: Origins,
    drain: Arc<NodeDrain>,
    may_originate: bool,
    /// By uuid. Bounded by the live channels.
    claimed: Mutex<HashMap<Uuid, Claimed>>,
    meter: Arc<NodeMeter>,
    /// Cancelled once another process of this node answers the other nodes.
    retired: CancellationToken,
}

impl SharedChannels {
    /// Starts to pass decisions to the live channels, and to answer other nodes, until the returned handle is dropped.
    pub(crate) fn start(
        parts: ChannelParts,
        host: Arc<dyn HostChannels>,
    ) -> (Arc<Self>, AbortOnDropHandle<()>) {
        let ChannelParts { name, link, mut effects, dialer, engine, node, may_originate, drain } = parts;
        let origins = Origins::new(node, engine, Arc::clone(&dialer));
        let messages = origins.subscribe();
        let mut draining = drain.changes();
        let shared = Arc::new(Self {
            name: name.into(),
            link,
            dialer,
            origins,
            drain,
            may_originate,
            claimed: Mutex::default(),
            meter: Arc::default(),
            retired: CancellationToken::new(),
        });
        let of_task = Arc::clone(&shared);
        let task = crate::tasks::spawn(async move {
            let serving = origins::serve(Arc::clone(&of_task), host, messages);
            let serving = of_task.retired.run_until_cancelled(serving);
            let passing = async {
                loop {
                    tokio::select! {
                        effect = effects.recv() => match effect {
                            Some(effect) => of_task.pass_on(effect),
                            None => return,
                        },
                        true = draining.next() => of_task.drain_changed(),
                    }
                }
            };
            let ending = drain::end_viewers(&of_task, &of_task.drain);
            tokio::join!(serving, passing, ending);
        });
        (shared, AbortOnDropHandle::new(task))
    }

    fn pass_on(self: &Arc<Self>, effect: NodeEffect) {
        let (uuid, decision) = match effect {
            NodeEffect::SeekOrigin { channel, replaces } => return self.seek(channel, replaces),
            NodeEffect::Originate { channel, epoch } => (channel, OwnerDecision::Originate { epoch }),
            NodeEffect::Pull { channel, from, epoch } => (channel, OwnerDecision::Pull { from, epoch }),
            NodeEffect::ReleaseSource { channel } => (channel, OwnerDecision::Release),
            _ => return,
        };
        // A channel that has ended since wants nothing any more, which the member knows by now.
        let mut claimed = self.claimed.lock();
        let Some(it) = claimed.get_mut(&uuid) else { return };
        if decision != OwnerDecision::Release {
            it.seeker = None;
        }
        let actor = it.actor.clone();
        drop(claimed);
        let _ = actor.cast(Message::Owner(decision));
    }

    /// Asks other nodes to be the origin of a channel, until one is or the channel ends.
    fn seek(self: &Arc<Self>, uuid: Uuid, replaces: Option<u64>) {
        let mut claimed = self.claimed.lock();
        let Some(it) = claimed.get_mut(&uuid) else { return };
        let (shared, target, actor) = (Arc::clone(self), it.target, it.actor.clone());
        let wanted = WantedOrigin { target, replaces, is_watched: it.is_watched };
        it.seeker = Some(AbortOnDropHandle::new(crate::tasks::spawn(async move {
            loop {
                let reason = shared.origins.seek(wanted).await;
                // Fails when the channel has ended, and with it its claim.
                let _ = actor.cast(Message::NobodyOpens(reason));
                sleep(SEEK_PAUSE).await;
            }
        })));
    }

    /// Moves the channels of this node to others, or lets it open channels again.
    fn drain_changed(self: &Arc<Self>) {
        let is_draining = self.drain.is_draining();
        let mut own = Vec::new();
        for (uuid, it) in &mut *self.claimed.lock() {
            self.want(*uuid, true, it.may_originate);
            match &it.served {
                Some(served) if self.gives_away(served) => own.push((*uuid, served.epoch)),
                Some(_) if !is_draining => it.seeker = None,
                _ => {}
            }
        }
        for (uuid, epoch) in own {
            self.seek(uuid, Some(epoch));
        }
    }

    /// Returns whether another node is to be the origin of a channel. A gateway that stops moves only what others read.
    fn gives_away(&self, served: &ServedRing) -> bool {
        self.drain.gives_up_jobs() || (self.drain.is_draining() && served.is_read())
    }

    /// Leaves the other nodes to another process of this one: their messages are not answered, and they begin to read no
    /// channel here. Those that read one stay.
    pub(crate) fn retire(&self) {
        self.retired.cancel();
    }

    /// Returns whether other nodes read a channel from this one.
    pub(crate) fn is_read(&self, target: Target) -> bool {
        let claimed = self.claimed.lock();
        claimed.get(&target.uuid()).and_then(|it| it.served.as_ref()).is_some_and(ServedRing::is_read)
    }

    /// Waits until no other node reads a channel of which this node is the origin, at most for this long.
    pub async fn moved(&self, at_most: Duration) {
        let is_read =
            || self.claimed.lock().values().any(|it| it.served.as_ref().is_some_and(ServedRing::is_read));
        let moving = async {
            while is_read() {
                sleep(MOVED_PAUSE).await;
            }
        };
        let _ = timeout(at_most, moving).await;
    }

    /// Returns the channels that no other node reads from this one, with their serials, and the serials of all.
    fn unread(&self) -> (Vec<(u64, ActorRef<Message>)>, Vec<u64>) {
        let claimed = self.claimed.lock();
        let is_unread = |it: &&Claimed| !it.served.as_ref().is_some_and(ServedRing::is_read);
        let unread = claimed.values().filter(is_unread).map(|it| (it.serial, it.actor.clone()));
        (unread.collect(), claimed.values().map(|it| it.serial).collect())
    }

    /// Starts a channel for another node. It becomes its origin unless there is one by then.
    async fn open(
        &self,
        host: &dyn HostChannels,
        WantedOrigin { target, replaces, is_watched }: WantedOrigin,
    ) -> Result<(), String> {
        if !self.may_originate() {
            return Err(
                if self.may_originate { "it is being drained" } else { "it opens no channels" }.to_owned()
            );
        }
        host.host(target, replaces, is_watched).await
    }

    fn origins(&self) -> &Origins {
        &self.origins
    }

    /// Returns the name of this node.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns whether this node may open sources of channels now.
    pub(crate) fn may_originate(&self) -> bool {
        self.may_originate && !self.drain.is_draining()
    }

    pub(crate) fn dialer(&self) -> &Arc<dyn NodeDialer> {
        &self.dialer
    }

    /// Declares that viewers of this node watch a channel, until the claim is dropped. `may_originate`: this node may use an
    /// account of the channel.
    pub(crate) fn claim(
        self: &Arc<Self>,
        target: Target,
        serial: u64,
        actor: ActorRef<Message>,
        may_originate: bool,
    ) -> ChannelClaim {
        let uuid = target.uuid();
        let claimed =
            Claimed { serial, target, actor, may_originate, seeker: None, is_watched: false, served: None };
        self.claimed.lock().insert(uuid, claimed);
        self.want(uuid, true, may_originate);
        ChannelClaim { shared: Arc::clone(self), uuid, serial }
    }

    fn want(&self, channel: Uuid, is_wanted: bool, may_originate: bool) {
        let may_originate = may_originate && self.may_originate();
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
        let uuid = Uuid::try_parse(target).ok().filter(|_| !self.retired.is_cancelled())?;
        let claimed = self.claimed.lock();
        let Claimed { actor, served: Some(ServedRing { ring, pump, epoch, n_edges }), .. } =
            claimed.get(&uuid)?
        else {
            return None;
        };
        let guard: Box<dyn Any + Send + Sync> = Box::new(EdgeGuard::new(actor.clone(), Arc::clone(n_edges)));
        Some(FoundRing { ring: ring.clone(), epoch: *epoch, continues: pump.adopted(), guard: Some(guard) })
    }

    fn meter(&self) -> Arc<NodeMeter> {
        Arc::clone(&self.meter)
    }
}

/// An edge that reads a ring. Reports its beginning and its end to the live channel.
struct EdgeGuard(ActorRef<Message>, Arc<AtomicUsize>);

impl EdgeGuard {
    fn new(actor: ActorRef<Message>, n_edges: Arc<AtomicUsize>) -> Self {
        n_edges.fetch_add(1, Ordering::Relaxed);
        let _ = actor.cast(Message::EdgeJoined);
        Self(actor, n_edges)
    }
}

impl Drop for EdgeGuard {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
        // Fails when the channel has ended.
        let _ = self.0.cast(Message::EdgeLeft);
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

    /// Notes whether this node may use an account of the channel. An origin that may not asks another node to be it.
    pub(crate) fn set_may_open(&self, may_originate: bool) {
        let mut claimed = self.shared.claimed.lock();
        let claim = claimed.get_mut(&self.uuid).filter(|it| it.serial == self.serial);
        let Some(it) = claim.filter(|it| it.may_originate != may_originate) else { return };
        it.may_originate = may_originate;
        let given_away = it.served.as_ref().filter(|_| !may_originate).map(|it| it.epoch);
        drop(claimed);
        self.shared.want(self.uuid, true, may_originate);
        if let Some(epoch) = given_away {
            self.shared.seek(self.uuid, Some(epoch));
        }
    }

    /// Lets other nodes read the ring, as that of the origin of this epoch.
    pub(crate) fn serve(&self, epoch: u64, ring: Ring, pump: PumpHandle) {
        self.set_served(Some(ServedRing { ring, pump, epoch, n_edges: Arc::default() }));
    }

    /// Accepts no more nodes.
    pub(crate) fn stop_serving(&self) {
        self.set_served(None);
    }

    fn set_served(&self, served: Option<ServedRing>) {
        let given_away = served.as_ref().filter(|it| self.shared.gives_away(it)).map(|it| it.epoch);
        let mut claimed = self.shared.claimed.lock();
        if let Some(it) = claimed.get_mut(&self.uuid).filter(|it| it.serial == self.serial) {
            it.served = served;
        }
        if let Some(epoch) = given_away {
            drop(claimed);
            self.shared.seek(self.uuid, Some(epoch));
        }
    }

    /// Reports that the origin of this epoch answers.
    pub(crate) fn pulled(&self, epoch: u64) {
        if let Some(it) = self.shared.claimed.lock().get_mut(&self.uuid) {
            it.seeker = None;
        }
        self.shared.link.send(NodeInput::Pulled { channel: self.uuid, epoch });
    }

    /// Notes that viewers of this node have seen something of another node. A node that is asked to be the origin later
    /// knows by that that they wait.
    pub(crate) fn watched(&self) {
        let mut claimed = self.shared.claimed.lock();
        if let Some(it) = claimed.get_mut(&self.uuid).filter(|it| it.serial == self.serial) {
            it.is_watched = true;
        }
    }

    /// Reports that the origin of this epoch has not answered for a second.
    pub(crate) fn pull_lost(&self, epoch: u64) {
        self.shared.link.send(NodeInput::PullLost { channel: self.uuid, epoch });
    }

    /// Lets this node take the place of the origin of this epoch.
    pub(crate) fn replace(&self, epoch: u64) {
        self.shared.link.send(NodeInput::ReplaceOrigin { channel: self.uuid, epoch });
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
            self.shared.want(self.uuid, false, false);
        }
    }
}
