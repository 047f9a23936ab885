//! The clients of a live channel.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::event::{ChannelRef, ClientRef, EventBody};
use domain::ids::{OutputProfileId, UserId};
use domain::output_format::StreamFormat;
use domain::udp_output::UdpOutputAddress;
use media::ring::{JoinPoint, Ring, Tail};
use ractor::{ActorCell, ActorId, ActorRef, ActorRuntime, SpawnErr};
use tokio::time::Instant;

use super::viewing::{SegmentViewing, SharedWindow};
use super::{ClientStatus, JoinRequest, RecordingReader};
use crate::client::{self, ClientMeter, Departure, SegmentMeter};
use crate::clock::now_ms;
use crate::registry::{Registered, Registry, WatchedClient};
use crate::seats::Seat;
use crate::viewer::Viewer;

struct Client {
    viewer: Viewer,
    actor: ActorRef<client::Message>,
    meter: ClientMeter,
    format: StreamFormat,
    since: Instant,
    joined_at: i64,
    user_id: Option<UserId>,
    output_profile: Option<OutputProfileId>,
    recording: Option<RecordingReader>,
    datagrams: Option<UdpOutputAddress>,
    _registered: Registered,
}

impl Client {
    /// Returns the viewer with what its requests have shown.
    fn viewer_now(&self) -> Viewer {
        Viewer { identity: self.meter.identity(self.viewer.identity), ..self.viewer.clone() }
    }

    /// Returns what the client gets: one that asks for parts of segments gets other playlists than before.
    fn format_now(&self) -> StreamFormat {
        match self.format {
            StreamFormat::Hls(_) if self.meter.is_low_latency() => StreamFormat::LowLatencyHls,
            format => format,
        }
    }
}

/// Starts the actor of a client.
fn spawn(request: &JoinRequest, parent: ActorCell) -> Result<ActorRef<client::Message>, SpawnErr> {
    let state = client::State::new(request.connection.clone());
    Ok(ActorRuntime::spawn_linked_instant(None, client::Actor, state, parent)?.0)
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
        let actor = spawn(request, parent)?;
        let tail = ring.tail(entry, Some(Box::new(Departure::new(actor.clone(), seat))));
        self.add(id, request, actor, user_id, ClientMeter::Tail(tail.meter().clone()));
        Ok(tail)
    }

    /// Lets a join read a window of segments, and creates a client actor that supervises it.
    ///
    /// # Errors
    /// The actor cannot be spawned.
    pub(super) fn admit_to_segments(
        &mut self,
        id: u64,
        request: &JoinRequest,
        shared: SharedWindow,
        parent: ActorCell,
        seat: Option<Arc<Seat>>,
    ) -> Result<SegmentViewing, SpawnErr> {
        let user_id = seat.as_ref().map(|it| it.user());
        let actor = spawn(request, parent)?;
        let meter = Arc::new(SegmentMeter::default());
        let departure = Departure::new(actor.clone(), seat);
        let viewing = SegmentViewing::new(shared, Arc::clone(&meter), departure, self.registry.clone());
        self.add(id, request, actor, user_id, ClientMeter::Segments(meter));
        Ok(viewing)
    }

    fn add(
        &mut self,
        id: u64,
        request: &JoinRequest,
        actor: ActorRef<client::Message>,
        user_id: Option<UserId>,
        meter: ClientMeter,
    ) {
        let watched = WatchedClient { connection: request.connection.clone(), port: actor.get_derived() };
        let client = Client {
            viewer: request.viewer.clone(),
            meter,
            format: request.format,
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
    }

    /// Removes a client whose actor ended. Returns its final counters.
    pub(super) fn remove(
        &mut self,
        actor: ActorId,
        channel: &ChannelRef,
        reason: &str,
    ) -> Option<DepartedClient> {
        let (id, client) = self.by_actor.remove(&actor)?;
        let reason = if client.meter.was_too_slow() { "too slow" } else { reason };
        let event = EventBody::ClientDisconnect {
            channel: channel.clone(),
            client: client_ref(id, &client.viewer),
            reason: reason.to_owned(),
            duration_seconds: client.since.elapsed().as_secs(),
            bytes_sent: client.meter.bytes(),
        };
        Some(DepartedClient {
            id,
            reason: reason.to_owned(),
            event,
            bytes: client.meter.bytes(),
            missed_bytes: client.meter.missed_bytes(),
            viewer: client.viewer,
        })
    }

    /// Removes all clients. Returns their final counters.
    pub(super) fn remove_all(&mut self, channel: &ChannelRef, reason: &str) -> Vec<DepartedClient> {
        let actors: Vec<_> = self.by_actor.keys().copied().collect();
        actors.into_iter().filter_map(|it| self.remove(it, channel, reason)).collect()
    }

    /// Returns whether all clients are the device that `new` is. A device may have several connections.
    pub(super) fn are_device(&self, new: &Viewer) -> bool {
        let is_it = |(_, it): &(u64, Client)| it.viewer_now().is_same_device(new);
        let is_one = || self.by_actor.values().all(|(_, it)| it.viewer.is_one_device());
        match self.len() {
            0 => false,
            1 => self.by_actor.values().all(is_it),
            _ => self.by_actor.values().all(is_it) && is_one() && new.is_one_device(),
        }
    }

    /// Returns the latest client.
    pub(super) fn latest(&self) -> Option<Viewer> {
        let latest = self.by_actor.values().max_by_key(|(id, _)| *id);
        latest.map(|(_, client)| client.viewer_now())
    }

    /// Returns for each client the recording that it is, if it is one.
    pub(super) fn recordings(&self) -> impl Iterator<Item = Option<&RecordingReader>> {
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
                node: None,
                id: *id,
                address: client.viewer.address,
                agent: client.viewer.agent.clone(),
                user: client.viewer.user.clone(),
                user_id: client.user_id,
                output_profile: client.output_profile,
                datagrams: client.datagrams,
                joined_at: client.joined_at,
                watching: client.since.elapsed(),
                format: client.format_now(),
                bytes: client.meter.bytes(),
                missed_bytes: client.meter.missed_bytes(),
                misses: client.meter.misses(),
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
