//! The part of this node in a channel of a cluster: the origin opens the source, edges pull the ring of the origin.
//!
//! ```text
//!   (no cluster: none of this)
//!   first join ─► Asked ─┬─► Origin      the playout opens sources, and edges may read the ring
//!                 │      └─► Edge        the pump follows the ring of the origin; the playout is idle
//!                 └─► Alone              no decision came in time: the playout opens sources
//! ```
//!
//! An origin that is replaced plays its own source until the new origin has something to show, and releases it then.

use std::sync::Arc;
use std::time::Duration;

use domain::cluster::record::NodeId;
use domain::playout::{Attempt, Input};
use domain::stream_profile::Delivery;
use media::error::{Cause, UpstreamError};
use media::node::RingPosition;
use media::pump::PumpHandle;
use media::ring::EndReason;
use media::source::{NodeRequest, Source, Upstream, attach_node};
use ractor::ActorRef;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::change::ChannelChange;
use super::sharing::{Edge, Role, Sharing};
use super::state::State;
use crate::channel::{HostFor, Message, NodeDialer, OwnerDecision, WatchRefusal, WatchReply};
use crate::plans::Target;
use crate::slots::Lease;

/// The key of the ring of another node, which is of no stream of this one.
const PULL_KEY: u64 = u64::MAX;
/// Longest wait for the decision who is the origin. The cluster decides within milliseconds, unless its engine is away.
const DECISION_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest wait for an origin if this node may not be it: other nodes are asked one after the other.
const SEEK_TIMEOUT: Duration = Duration::from_secs(8);
/// Time for a node that has asked for the channel to read it.
const HOST_TIMEOUT: Duration = Duration::from_secs(10);
/// An origin that does not answer for this long is lost.
const LOST_AFTER: Duration = Duration::from_secs(1);
/// Pause between two connections to an origin.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// Maximum time for a connection to an origin that counts as lost.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A replaced origin waits for this long until the new one has something to show. Then it returns its slot in any case,
/// because the new origin may need that slot.
const CONTENT_TIMEOUT: Duration = Duration::from_secs(3);
impl State {
    /// Starts to play. In a cluster, the decision comes first who opens the source.
    pub(super) fn start(&mut self) {
        if self.sharing.claim.is_none() && self.is_shared() {
            let Some(shared) = self.context.env.shared_channels.get() else { return };
            let (target, myself) = (self.context.target, self.context.myself.clone());
            let may_open = self.may_open();
            let is_origin = may_open && shared.may_originate();
            let timeout = if is_origin { DECISION_TIMEOUT } else { SEEK_TIMEOUT };
            let timeout = self.context.after(timeout, Message::OwnerTimeout);
            self.sharing.claim = Some(shared.claim(target, self.context.serial, myself, may_open));
            self.sharing.role = Role::Asked { _timeout: timeout };
            return;
        }
        match self.sharing.role {
            Role::Unasked | Role::Alone | Role::Origin { .. } => self.look_for_source(),
            Role::Asked { .. } | Role::Edge(_) => {}
        }
    }

    /// Lets the playout look for a source. Viewers who have watched the channel already wait for a slot, with filler.
    fn look_for_source(&mut self) {
        if !self.sharing.continues {
            return self.push(Input::Start);
        }
        self.history.take_over();
        let silent_since = self.history.gap_since().unwrap_or_else(Instant::now).into_std();
        self.push(Input::TakeOver { silent_since });
    }

    /// Returns whether other nodes may read the channel: whether this node is in a cluster, and sends no player to the
    /// provider.
    fn is_shared(&self) -> bool {
        let env = &self.context.env;
        let is_live = matches!(self.context.target, Target::Channel(_) | Target::Stream(_));
        let is_redirect = || {
            let mut candidates = self.upstream.plan().into_iter().flat_map(|it| &it.candidates);
            candidates.any(|it| it.profile == Delivery::Redirect)
        };
        env.shared_channels.get().is_some() && is_live && !is_redirect()
    }

    /// Returns whether this node may use an account of the channel, or no node may.
    fn may_open(&self) -> bool {
        self.upstream.plan().is_none_or(|it| !it.candidates.is_empty() || it.n_elsewhere == 0)
    }

    /// The accounts of the channel, or the nodes that may use them, may be others now.
    pub(super) fn plan_changed(&self) {
        if let Some(claim) = &self.sharing.claim {
            claim.set_may_open(self.may_open());
        }
    }

    /// Starts the channel for another node, or for the process before this one. The error is a reason for people.
    pub(super) fn host(&mut self, number: u64, host: HostFor) -> Result<(), String> {
        let (replaces, is_watched, relays) = match host {
            HostFor::Node { replaces, is_watched } => (replaces, is_watched, false),
            HostFor::Predecessor => (None, false, true),
        };
        self.audience.join_arrived(number);
        let refused = |reason: &str| Err(reason.to_owned());
        if self.ending.is_some() {
            return refused("the channel is stopping there");
        }
        let Some(plan) = self.upstream.plan() else {
            self.end(EndReason::Closed);
            return refused("it does not know the channel");
        };
        let has_candidates = !plan.candidates.is_empty();
        if let Role::Origin { epoch } = &self.sharing.role
            && replaces.is_some_and(|it| it >= *epoch)
        {
            return refused("it is the origin that cannot be reached");
        }
        if !has_candidates || !self.is_shared() {
            return refused("it has no stream of the channel that it may open");
        }
        if relays {
            self.sharing.relays_predecessor = true;
        } else {
            self.sharing.hosting = Some(self.context.after(HOST_TIMEOUT, Message::HostedInVain));
        }
        // An origin that is to be replaced has viewers, too.
        self.sharing.continues |= is_watched || replaces.is_some();
        if self.upstream.is_idle() && self.sharing.claim.is_none() {
            self.history.start_requested();
            self.upstream.choose_first(self.audience.forecast_profile());
            self.start();
        }
        if let (Some(epoch), Some(claim)) = (replaces, &self.sharing.claim) {
            claim.replace(epoch);
        }
        Ok(())
    }

    pub(super) fn hosted_in_vain(&mut self) {
        self.sharing.hosting = None;
    }

    /// No node opens the channel. Viewers who have seen nothing yet are refused.
    pub(super) fn nobody_opens(&mut self, reason: &str) {
        if matches!(self.sharing.role, Role::Asked { .. }) && self.ending.is_none() {
            self.refuse_all(reason.to_owned());
        }
    }

    fn refuse_all(&mut self, why: String) {
        let refusal = WatchRefusal::NothingPlays(why.clone());
        self.report(ChannelChange::GaveUp { refusal: refusal.clone() });
        self.audience.answer_waiting(|| WatchReply::Refused(refusal.clone()));
        self.end(EndReason::NothingPlays(why.into()));
    }

    pub(super) fn owner(&mut self, decision: OwnerDecision) {
        if self.ending.is_some() || self.sharing.claim.is_none() {
            return;
        }
        match decision {
            OwnerDecision::Originate { epoch } => self.originate(epoch),
            OwnerDecision::Pull { from, epoch } => self.pull(from, epoch),
            // An edge without a source of its own has released it already.
            OwnerDecision::Release if self.sharing.is_edge() && !self.upstream.is_idle() => {
                self.push(Input::Yield);
            }
            OwnerDecision::Release => {}
        }
    }

    /// Without a decision, this node plays for its own viewers. The limits of providers stand on leases only.
    pub(super) fn owner_timeout(&mut self) {
        let (Role::Asked { .. }, Some(claim)) = (&self.sharing.role, &self.sharing.claim) else { return };
        if claim.shared().may_originate() && self.may_open() {
            self.sharing.role = Role::Alone;
            return self.look_for_source();
        }
        self.refuse_all("no other node plays it, and this one may not open it".to_owned());
    }

    fn originate(&mut self, epoch: u64) {
        let before = std::mem::replace(&mut self.sharing.role, Role::Origin { epoch });
        if let Role::Edge(edge) = before
            && edge.connecting.is_none()
        {
            // The ring that it reads may become one that reads this one.
            self.upstream.release_pull();
            if edge.has_played {
                self.history.begin_gap("origin");
            }
        }
        let (ring, pump) = (self.upstream.ring().clone(), self.upstream.pump().clone());
        // Its viewers, and the edges, get filler until the source plays.
        pump.fill_gaps();
        if let Some(claim) = &self.sharing.claim {
            claim.serve(epoch, ring, pump);
        }
        self.report(ChannelChange::Originates { epoch });
        if self.upstream.is_idle() {
            self.upstream.choose_first(self.audience.forecast_profile());
            self.look_for_source();
        }
    }

    fn pull(&mut self, from: NodeId, epoch: u64) {
        let Some(claim) = &self.sharing.claim else { return };
        claim.stop_serving();
        let node: Arc<str> = claim.shared().dialer().name(from).into();
        let attempt = Attempt(self.sharing.last_pull);
        self.sharing.continues |= self.upstream.has_played();
        self.sharing.role = Role::Edge(Edge {
            epoch,
            node: node.clone(),
            from,
            attempt,
            connecting: None,
            is_reached: false,
            has_played: false,
        });
        self.report(ChannelChange::Pulling { node, epoch });
        self.connect(false);
    }

    /// Connects to the origin, until it answers.
    fn connect(&mut self, is_again: bool) {
        let has_source = !self.upstream.is_idle();
        let silent_since = self.history.gap_since().unwrap_or_else(Instant::now);
        let Sharing { claim: Some(claim), role: Role::Edge(edge), last_pull, .. } = &mut self.sharing else {
            return;
        };
        *last_pull += 1;
        edge.attempt = Attempt(*last_pull);
        let env = &self.context.env;
        let connector = Connector {
            attempt: edge.attempt,
            from: edge.from,
            target: claim.target(),
            place: format!("node {}", edge.node),
            dialer: claim.shared().dialer().clone(),
            pump: self.upstream.pump().clone(),
            upstream: env.upstream(),
            has_source,
            is_again,
            give_up_at: silent_since + env.settings().give_up_after,
            to: self.context.myself.clone(),
        };
        edge.connecting = Some(AbortOnDropHandle::new(env.packets.spawn(connector.run())));
    }

    /// The origin answers, and this node plays a source of its own until it has something to show. If it waits for the slot
    /// of that source, it asks for it.
    pub(super) fn pull_reached(&mut self, attempt: Attempt) {
        let Some(edge) = self.sharing.edge(attempt) else { return };
        edge.is_reached = true;
        // A moment ago, this node was the origin and kept the slot.
        self.context.env.slots.lingering(self.context.serial);
    }

    /// Returns whether the next origin answers, and may need the slot of the source that this node plays.
    pub(super) fn is_succeeded(&self) -> bool {
        let is_reached =
            matches!(&self.sharing.role, Role::Edge(it) if it.is_reached && it.connecting.is_some());
        is_reached && !self.upstream.is_idle()
    }

    /// The origin answers: its ring is followed from now on.
    pub(super) fn pull_attached(&mut self, attempt: Attempt, source: Source) {
        if self.ending.is_some() || self.sharing.edge(attempt).is_none() {
            return;
        }
        if !self.upstream.is_idle() {
            // Returns the lease.
            self.push(Input::Yield);
            self.run_queue();
        }
        self.upstream.pump().follow(attempt.0, PULL_KEY, source);
        let Some(edge) = self.sharing.edge(attempt) else { return };
        edge.connecting = None;
        let epoch = edge.epoch;
        if let Some(claim) = &self.sharing.claim {
            claim.pulled(epoch);
        }
        self.admit_waiting();
    }

    pub(super) fn pull_plays(&mut self, attempt: Attempt) {
        let Some(edge) = self.sharing.edge(attempt) else { return };
        edge.has_played = true;
        let node = edge.node.clone();
        self.sharing.continues = true;
        if let Some(claim) = &self.sharing.claim {
            claim.watched();
        }
        let gap = self.history.gap();
        self.history.pull_plays();
        let took = self.history.started_playing();
        self.report(ChannelChange::Pulled { node, took, gap });
    }

    /// The connection to the origin is lost.
    pub(super) fn pull_ended(&mut self, attempt: Attempt, cause: UpstreamError) {
        let Some(edge) = self.sharing.edge(attempt) else { return };
        let (node, has_played) = (edge.node.clone(), std::mem::take(&mut edge.has_played));
        if has_played {
            self.history.begin_gap(cause.label());
        }
        self.history.lost(cause.clone());
        self.report(ChannelChange::PullLost { node, cause, has_played });
        if self.ending.is_none() {
            self.connect(true);
        }
    }

    /// The origin has not answered for [`LOST_AFTER`].
    pub(super) fn pull_unanswered(&mut self, attempt: Attempt, cause: UpstreamError) {
        let Some(edge) = self.sharing.edge(attempt) else { return };
        let (node, epoch) = (edge.node.clone(), edge.epoch);
        if let Some(claim) = &self.sharing.claim {
            claim.pull_lost(epoch);
        }
        self.report(ChannelChange::OriginUnreachable { node, cause });
    }

    /// No origin has answered for as long as a gap is filled.
    pub(super) fn pull_gave_up(&mut self, attempt: Attempt) {
        let Some(edge) = self.sharing.edge(attempt) else { return };
        let refusal = WatchRefusal::NothingPlays(format!("node {} cannot be reached", edge.node));
        self.report(ChannelChange::GaveUp { refusal: refusal.clone() });
        self.audience.answer_waiting(|| WatchReply::Refused(refusal.clone()));
        self.end(EndReason::Silent);
    }

    /// A source of this node was lost. One that plays although another node is the origin is not replaced.
    pub(super) fn own_source_lost(&mut self) {
        if let Some(claim) = self.sharing.claim.as_ref().filter(|_| self.sharing.is_edge()) {
            claim.source_lost();
            self.push(Input::Yield);
        }
    }

    pub(super) fn edge_joined(&mut self) {
        self.sharing.n_edges += 1;
        self.sharing.hosting = None;
    }

    pub(super) fn edge_left(&mut self) {
        self.sharing.n_edges = self.sharing.n_edges.saturating_sub(1);
    }

    /// Returns whether nobody watches the channel, here or through another node.
    pub(super) fn is_deserted(&mut self) -> bool {
        let is_relay = self.sharing.relays_predecessor
            && !self.has_lost_predecessor
            && self.context.env.predecessor.plays(&self.context.target).is_some();
        let is_read = self.sharing.n_edges > 0 || self.sharing.hosting.is_some() || is_relay;
        self.audience.is_deserted() && !is_read
    }
}

/// Connects to an origin until it answers.
struct Connector {
    attempt: Attempt,
    from: NodeId,
    target: String,
    /// The origin, for display.
    place: String,
    dialer: Arc<dyn NodeDialer>,
    pump: PumpHandle,
    upstream: Upstream,
    /// A source of this node plays, which ends when the origin has something to show.
    has_source: bool,
    /// A connection to this origin has just ended.
    is_again: bool,
    /// Viewers wait no longer than this, however many origins were tried.
    give_up_at: Instant,
    to: ActorRef<Message>,
}

impl Connector {
    async fn run(self) {
        let began = Instant::now();
        let (mut is_reported, mut is_ahead) = (false, false);
        if self.is_again {
            sleep(RECONNECT_PAUSE).await;
        }
        loop {
            // Chunks of other sources have numbers of their own.
            let after = self.pump.mirrored().filter(|_| !is_ahead);
            let until = if is_reported { Instant::now() + CONNECT_TIMEOUT } else { began + LOST_AFTER };
            let cause = match timeout_at(until, self.attach(after)).await {
                Ok(Ok(source)) => return self.attached(source).await,
                Ok(Err(cause)) => cause,
                Err(_) => UpstreamError::new(Cause::ConnectTimeout),
            };
            is_ahead = *cause.cause() == Cause::Status(409);
            if began.elapsed() >= LOST_AFTER && !std::mem::replace(&mut is_reported, true) {
                let _ = self.to.cast(Message::PullUnanswered(self.attempt, cause));
            }
            if !self.has_source && Instant::now() >= self.give_up_at {
                let _ = self.to.cast(Message::PullGaveUp(self.attempt));
                return;
            }
            sleep(RECONNECT_PAUSE).await;
        }
    }

    async fn attach(&self, after: Option<RingPosition>) -> Result<Source, UpstreamError> {
        let connected = self.dialer.connect(self.from).await;
        let stream = connected.map_err(|it| UpstreamError::new(Cause::Connect(it.to_string())))?;
        let request = NodeRequest { target: self.target.clone(), after, place: self.place.clone() };
        attach_node(stream, &request, Box::new(Lease::pulled()), &self.upstream).await
    }

    async fn attached(self, mut source: Source) {
        if self.has_source {
            let _ = self.to.cast(Message::PullReached(self.attempt));
            // After the time it is followed as it is.
            if let Ok(Err(cause)) = timeout(CONTENT_TIMEOUT, source.wait_for_content()).await {
                let _ = self.to.cast(Message::Lost(self.attempt, cause));
                return;
            }
        }
        // If the channel is gone, the source is dropped together with the message.
        let _ = self.to.cast(Message::PullAttached(self.attempt, source));
    }
}
