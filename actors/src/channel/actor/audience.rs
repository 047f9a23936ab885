//! The viewers' side of a live channel: clients, waiting joins, and the linger timer.

use std::time::Duration;

use domain::event::ChannelRef;
use domain::ids::ProfileId;
use domain::recording::RecordingClaim;
use media::ring::{EndReason, JoinPoint, Ring};
use ractor::{ActorId, RpcReplyPort};
use tokio_util::task::AbortOnDropHandle;
use tracing::error;

use super::context::Context;
use crate::ask::answer;
use crate::channel::clients::{Clients, DepartedClient};
use crate::channel::renditions::Renditions;
use crate::channel::segmenters::{Segmenters, container_of};
use crate::channel::{
    ClientStatus, Join, Message, RecordingReader, SegmenterStatus, WatchRefusal, WatchReply,
};
use crate::viewer::Viewer;

/// Maximum number of callers that wait until a client of the channel is gone.
const KICKING_MAX: usize = 256;

/// Maximum number of joins that wait for the first slot of a channel.
const WAITING_MAX: usize = 4096;

/// A client that was admitted and has not got its reply yet.
pub(super) struct Admitted {
    pub(super) id: u64,
    pub(super) viewer: Viewer,
    watch: WatchReply,
    reply: RpcReplyPort<WatchReply>,
}

impl Admitted {
    /// Sends the tail or the window to the caller.
    pub(super) fn reply(self) {
        answer(self.reply, self.watch);
    }
}

/// The viewers of a live channel.
pub(super) struct Audience {
    clients: Clients,
    /// Joins that wait for the first slot; at most [`WAITING_MAX`].
    waiting: Vec<Join>,
    /// Whether a slot was granted since the last start: a join gets a tail immediately.
    is_admitting: bool,
    /// Number of the latest join.
    last_join: u64,
    linger: Option<AbortOnDropHandle<()>>,
    /// Callers that wait until a client is gone; at most [`KICKING_MAX`].
    kicking: Vec<(u64, RpcReplyPort<bool>)>,
    renditions: Renditions,
    segmenters: Segmenters,
}

impl Audience {
    pub(super) fn new(clients: Clients) -> Self {
        Self {
            clients,
            waiting: Vec::new(),
            is_admitting: false,
            last_join: 0,
            linger: None,
            kicking: Vec::new(),
            renditions: Renditions::default(),
            segmenters: Segmenters::default(),
        }
    }

    /// Notes the number of a join and stops the linger timer. The timer belongs to an earlier join; if this join
    /// comes to nothing, the channel lingers again.
    pub(super) fn join_arrived(&mut self, number: u64) {
        self.last_join = number;
        self.linger = None;
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    pub(super) fn is_admitting(&self) -> bool {
        self.is_admitting
    }

    pub(super) fn wait(&mut self, join: Join) {
        self.waiting.push(join);
    }

    /// From now on joins wait again.
    pub(super) fn stop_admitting(&mut self) {
        self.is_admitting = false;
    }

    /// Admits every waiting join, and from now on joins get a tail immediately.
    pub(super) fn start_admitting(&mut self, context: &Context, ring: &Ring) -> Vec<Admitted> {
        if self.is_admitting {
            return Vec::new();
        }
        self.is_admitting = true;
        let waiting = std::mem::take(&mut self.waiting);
        // A caller that went away while it waited was never a client.
        let present = waiting.into_iter().filter(|it| !it.reply.is_closed());
        present.filter_map(|it| self.admit(it, context, ring)).collect()
    }

    /// Gives a join its tail or its window of segments.
    pub(super) fn admit(&mut self, join: Join, context: &Context, ring: &Ring) -> Option<Admitted> {
        let seat = join.request.seat().ok()?;
        let ring = match &join.request.rendition {
            None => Ok(ring.clone()),
            Some(rendition) => self.renditions.ring_of(rendition, ring, &context.env),
        };
        let ring = match ring {
            Ok(ring) => ring,
            Err(refusal) => {
                answer(join.reply, WatchReply::Refused(refusal));
                return None;
            }
        };
        let id = context.env.next_client_id();
        let is_immediate = join.request.recording.is_some() || join.request.datagrams.is_some();
        let behind = match is_immediate {
            true => Duration::ZERO,
            false => context.env.settings().new_client_behind_seconds,
        };
        let entry = JoinPoint::Live { behind };
        let parent = context.myself.get_cell();
        let admitted = match container_of(join.request.format) {
            None => {
                let tail = self.clients.admit(id, &join.request, &ring, entry, parent, seat);
                tail.map(|tail| WatchReply::Tail { client: id, tail })
            }
            Some(container) => {
                let rendition = join.request.rendition.as_ref();
                let window = self.segmenters.window_of(container, rendition, &ring, &context.env);
                let viewing = self.clients.admit_to_segments(id, &join.request, window, parent, seat);
                viewing.map(|it| WatchReply::Segments { client: id, viewing: Box::new(it) })
            }
        };
        let watch = match admitted {
            Ok(watch) => watch,
            Err(cause) => {
                error!(channel.target = %context.target, "failed to start a client: {cause}");
                answer(join.reply, WatchReply::Refused(WatchRefusal::Stopping));
                return None;
            }
        };
        Some(Admitted { id, viewer: join.request.viewer, watch, reply: join.reply })
    }

    /// Answers every waiting join with the same reply.
    pub(super) fn answer_waiting(&mut self, reply: impl Fn() -> WatchReply) {
        for join in self.waiting.drain(..) {
            answer(join.reply, reply());
        }
    }

    /// Returns the viewer for whom the channel starts: that of the latest waiting join or, after it was admitted, the
    /// latest one if all are the same device.
    pub(super) fn starting_viewer(&self) -> Option<Viewer> {
        match self.waiting.last() {
            Some(join) => Some(join.request.viewer.clone()),
            None => self.clients.latest().filter(|it| self.is_of_device(it)),
        }
    }

    /// Returns whether nobody watches except the device that `new` is, and no join waits.
    pub(super) fn is_of_device(&self, new: &Viewer) -> bool {
        self.waiting.is_empty() && self.clients.are_device(new)
    }

    /// Returns whether the channel plays for recordings only.
    pub(super) fn is_recorded_only(&self) -> bool {
        self.readers().all(|it| it.is_some())
    }

    /// Returns whether a recording reads the channel, or waits for it.
    pub(super) fn is_recorded(&self) -> bool {
        self.readers().any(|it| it.is_some())
    }

    /// Returns for each client and each waiting join the recording that it is, if it is one.
    fn readers(&self) -> impl Iterator<Item = Option<&RecordingReader>> {
        self.clients.recordings().chain(self.waiting.iter().map(|it| it.request.recording.as_ref()))
    }

    /// Returns what the recordings of the channel may take from others.
    pub(super) fn claim(&self) -> Option<RecordingClaim> {
        let claims = self.readers().flatten().filter_map(RecordingReader::claim);
        claims.reduce(RecordingClaim::max)
    }

    /// Returns whether the channel, which plays from this account profile, gives its connection to a recording of another
    /// one. `n_edges` are the other nodes with viewers.
    pub(super) fn yields_to(
        &self,
        claim: &RecordingClaim,
        playing: Option<ProfileId>,
        n_edges: usize,
    ) -> bool {
        let n_viewers = self.readers().filter(Option::is_none).count() + n_edges;
        claim.takes(n_viewers, self.readers().flatten().map(|it| it.rank(playing)))
    }

    /// Returns the account profile that the forecast gives the recordings of the channel.
    pub(super) fn forecast_profile(&self) -> Option<ProfileId> {
        self.readers().flatten().find_map(RecordingReader::forecast_profile)
    }

    /// Removes a client whose actor ended, and answers the callers that waited for it.
    pub(super) fn client_ended(
        &mut self,
        client: ActorId,
        channel: &ChannelRef,
        reason: &str,
    ) -> Option<DepartedClient> {
        let departed = self.clients.remove(client, channel, reason)?;
        for (_, reply) in self.kicking.extract_if(.., |it| it.0 == departed.id) {
            answer(reply, true);
        }
        Some(departed)
    }

    /// Removes all clients.
    pub(super) fn remove_all(&mut self, channel: &ChannelRef, reason: &str) -> Vec<DepartedClient> {
        self.clients.remove_all(channel, reason)
    }

    /// Disconnects one client; answers when it is gone.
    pub(super) fn kick(&mut self, client: u64, reply: RpcReplyPort<bool>) {
        if !self.clients.kick(client) {
            return answer(reply, false);
        }
        self.kicking.retain(|it| !it.1.is_closed());
        if self.kicking.len() >= KICKING_MAX {
            return answer(reply, true);
        }
        self.kicking.push((client, reply));
    }

    pub(super) fn kick_all(&self, reason: &'static str) {
        self.clients.kick_all(reason);
    }

    pub(super) fn has_clients(&self) -> bool {
        self.clients.len() > 0
    }

    /// Returns whether the channel has neither clients nor waiting joins.
    pub(super) fn is_deserted(&mut self) -> bool {
        self.waiting.retain(|it| !it.reply.is_closed());
        self.clients.len() == 0 && self.waiting.is_empty()
    }

    /// Returns the number of the latest join if the linger timer has to start: a join arrived before, and the timer
    /// is not running.
    pub(super) fn needs_linger(&self) -> Option<u64> {
        (self.linger.is_none() && self.last_join > 0).then_some(self.last_join)
    }

    pub(super) fn set_linger(&mut self, timer: AbortOnDropHandle<()>) {
        self.linger = Some(timer);
    }

    pub(super) fn stop_linger(&mut self) {
        self.linger = None;
    }

    /// Returns whether no join arrived after the one with this number.
    pub(super) fn is_last_join(&self, number: u64) -> bool {
        number == self.last_join
    }

    /// Called after every message: renditions without viewers end after the linger time of the channel.
    pub(super) fn update_renditions(&mut self, context: &Context) {
        let delay = || context.env.settings().channel_shutdown_delay;
        self.renditions.update_linger(|number| context.after(delay(), Message::RenditionLingered(number)));
    }

    /// Called after every message: segmenters without viewers end after the linger time of the channel.
    pub(super) fn update_segmenters(&mut self, context: &Context) {
        let delay = || context.env.settings().channel_shutdown_delay;
        self.segmenters.update_linger(|number| context.after(delay(), Message::SegmenterLingered(number)));
    }

    /// Ends the segmenter whose timer has this number, unless a viewer has joined since.
    pub(super) fn segmenter_lingered(&mut self, number: u64) {
        self.segmenters.lingered(number);
    }

    pub(super) fn segmenter_status(&self) -> Vec<SegmenterStatus> {
        self.segmenters.status()
    }

    /// Ends the rendition whose timer has this number, unless a viewer has joined since.
    pub(super) fn rendition_lingered(&mut self, number: u64) {
        self.renditions.lingered(number);
    }

    /// Ends the streams of all renditions.
    pub(super) fn end_renditions(&self, end: &EndReason) {
        self.renditions.end(end);
    }

    pub(super) fn n_waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn status(&self) -> Vec<ClientStatus> {
        self.clients.status()
    }
}
