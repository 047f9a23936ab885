//! The clients of a live channel.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::event::{ChannelRef, ClientRef, EventBody};
use domain::ids::{OutputProfileId, UserId};
use domain::udp_output::UdpOutputAddress;
use media::meter::TailMeter;
use media::ring::{JoinPoint, Ring, Tail};
use ractor::{ActorCell, ActorId, ActorRef, ActorRuntime, SpawnErr};
use tokio::time::Instant;

use super::{ClientStatus, JoinRequest};
use crate::client;
use crate::clock::now_ms;
use crate::recorder::ReadingRecording;
use crate::registry::{Registered, Registry, WatchedClient};
use crate::seats::Seat;
use crate::viewer::Viewer;

struct Client {
    viewer: Viewer,
    actor: ActorRef<client::Message>,
    tail: Arc<TailMeter>,
    since: Instant,
    joined_at: i64,
    user_id: Option<UserId>,
    output_profile: Option<OutputProfileId>,
    recording: Option<ReadingRecording>,
    datagrams: Option<UdpOutputAddress>,
    _registered: Registered,
}

/// The clients of a live channel, each with its client actor.
pub(super) struct Clients {
    by_actor: BTreeMap<ActorId, (u64, Client)>,
    registry: Arc<Registry>,
}

/// A client that left, with its final counters.
pub(super) struct DepartedClient {
    pub(super) id: u64,
    pub(super) viewer: Viewer,
    pub(super) reason: String,
    pub(super) event: EventBody,
    pub(super) bytes: u64,
    pub(super) missed_bytes: u64,
}

impl Clients {
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        Self { by_actor: BTreeMap::new(), registry }
    }

    pub(super) fn len(&self) -> usize {
        self.by_actor.len()
    }

    /// Creates a tail for a join, and a client actor that supervises it.
    ///
    /// # Errors
    /// The actor cannot be spawned.
    pub(super) fn admit(
        &mut self,
        id: u64,
        request: &JoinRequest,
        ring: &Ring,
        entry: JoinPoint,
        parent: ActorCell,
        seat: Option<Arc<Seat>>,
    ) -> Result<Tail, SpawnErr> {
        let user_id = seat.as_ref().map(|it| it.user());
        let state = client::State::of(request.connection.clone());
        let (actor, _started) = ActorRuntime::spawn_linked_instant(None, client::Actor, state, parent)?;
        let tail = ring.tail(entry, Some(client::departure(actor.clone(), seat)));
        let meter = tail.meter().clone();
        let watched = WatchedClient { connection: request.connection.clone(), port: actor.get_derived() };
        let client = Client {
            viewer: request.viewer.clone(),
            tail: meter,
            since: Instant::now(),
            joined_at: now_ms(),
            user_id,
            output_profile: request.rendition.as_ref().map(|it| it.profile),
            recording: request.recording.clone(),
            datagrams: request.datagrams,
            _registered: self.registry.client(id, watched),
            actor: actor.clone(),
        };
        self.by_actor.insert(actor.get_id(), (id, client));
        Ok(tail)
    }

    /// Removes a client whose actor ended. Returns its final counters.
    pub(super) fn remove(
        &mut self,
        actor: ActorId,
        channel: &ChannelRef,
        reason: &str,
    ) -> Option<DepartedClient> {
        let (id, client) = self.by_actor.remove(&actor)?;
        let reason = if client.tail.was_too_slow() { "too slow" } else { reason };
        let event = EventBody::ClientDisconnect {
            channel: channel.clone(),
            client: client_ref(id, &client.viewer),
            reason: reason.to_owned(),
            duration_seconds: client.since.elapsed().as_secs(),
            bytes_sent: client.tail.bytes(),
        };
        Some(DepartedClient {
            id,
            reason: reason.to_owned(),
            event,
            bytes: client.tail.bytes(),
            missed_bytes: client.tail.overrun_bytes(),
            viewer: client.viewer,
        })
    }

    /// Removes all clients. Returns their final counters.
    pub(super) fn remove_all(&mut self, channel: &ChannelRef, reason: &str) -> Vec<DepartedClient> {
        let actors: Vec<_> = self.by_actor.keys().copied().collect();
        actors.into_iter().filter_map(|it| self.remove(it, channel, reason)).collect()
    }

    /// Returns the only client, if there is exactly one.
    pub(super) fn only(&self) -> Option<&Viewer> {
        match self.by_actor.len() {
            1 => self.by_actor.values().next().map(|(_, client)| &client.viewer),
            _ => None,
        }
    }

    /// Returns for each client the recording that it is, if it is one.
    pub(super) fn recordings(&self) -> impl Iterator<Item = Option<&ReadingRecording>> {
        self.by_actor.values().map(|(_, client)| client.recording.as_ref())
    }

    /// Disconnects every client.
    pub(super) fn kick_all(&self, reason: &'static str) {
        for (_, client) in self.by_actor.values() {
            let _ = client.actor.cast(client::Message::Kick(reason));
        }
    }

    /// Disconnects one client. Returns whether it existed.
    pub(super) fn kick(&self, id: u64) -> bool {
        let found = self.by_actor.values().find(|it| it.0 == id);
        found.is_some_and(|(_, client)| client.actor.cast(client::Message::Kick("kicked")).is_ok())
    }

    pub(super) fn status(&self) -> Vec<ClientStatus> {
        self.by_actor
            .values()
            .map(|(id, client)| ClientStatus {
                id: *id,
                address: client.viewer.address,
                agent: client.viewer.agent.clone(),
                user: client.viewer.user.clone(),
                user_id: client.user_id,
                output_profile: client.output_profile,
                datagrams: client.datagrams,
                joined_at: client.joined_at,
                watching: client.since.elapsed(),
                bytes: client.tail.bytes(),
                missed_bytes: client.tail.overrun_bytes(),
                misses: client.tail.overruns(),
            })
            .collect()
    }
}

/// Returns a client as events name it.
pub(super) fn client_ref(id: u64, viewer: &Viewer) -> ClientRef {
    ClientRef {
        connection_id: id,
        ip: viewer.address,
        user_agent: viewer.agent.clone(),
        user: viewer.user.clone(),
    }
}
