//! What a live channel tells of itself.

use std::time::Duration;

use domain::event::{ChannelRef, Event, EventBody, StreamRef};
use domain::plan::Candidate;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info};

use super::State;
use crate::channel::clients::Gone;
use crate::channel::{ChannelStatus, Message};
use crate::clock::now_ms;
use crate::timeline::{RunEntry, RunEntryKind};

/// Why a channel ended that should not have.
const FAILED: &str = "the channel failed";

impl State {
    /// Tells that the channel is no more, after all who still watch. Only the first time.
    pub(super) fn tell_stopped(&mut self) {
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        let mut why_clients_left = "the channel ended";
        if self.end_reason.is_empty() {
            error!(channel.target = %self.target, "a live channel ended by a defect or with its parent");
            why_clients_left = FAILED;
            self.end_reason = FAILED.to_owned();
            self.write(RunEntry::new(RunEntryKind::Ended).cause("failed"));
        }
        for gone in self.clients.remove_all(&self.channel_ref(), why_clients_left) {
            self.tell_gone(gone);
        }
        let runtime_seconds = self.born.elapsed().as_secs();
        let total_bytes = self.ring.meter().bytes_in();
        info!(channel.target = %self.target, runtime_seconds, total_bytes, "channel stopped");
        if self.has_played {
            let channel = self.channel_ref();
            let (stream, reason) = (self.last_stream.clone(), self.end_reason.clone());
            self.happened(EventBody::ChannelStop { channel, stream, reason, runtime_seconds, total_bytes });
        }
    }

    /// Tells that a client has left.
    pub(super) fn tell_gone(&self, gone: Gone) {
        info!(
            channel.target = %self.target, client.id = gone.id, client.address = %gone.viewer.address,
            client.bytes = gone.bytes, client.missed_bytes = gone.missed_bytes, reason = gone.reason, "client left"
        );
        self.happened(gone.event);
    }

    pub(super) fn status(&self) -> ChannelStatus {
        let channel = self.channel_ref();
        ChannelStatus {
            target: self.target,
            uuid: channel.uuid,
            name: channel.name,
            state: self.playout.state_name(),
            playing: self.playing.as_ref().map(|it| it.1.stream),
            stream: self.playing.as_ref().map(|it| stream_ref(&it.1)),
            profile: self.playing.as_ref().map(|it| it.1.pool.profile),
            started_at: self.born_at,
            uptime: self.born.elapsed(),
            since_first_play: self.first_played.map(|it| it.elapsed()),
            n_losses: self.n_losses,
            n_failovers: self.n_failovers,
            bytes_in: self.ring.meter().bytes_in(),
            ring_bytes: self.ring.usage().bytes,
            clients: self.clients.status(),
            n_waiting: self.waiting.len(),
        }
    }

    pub(super) fn channel_ref(&self) -> ChannelRef {
        match &self.plan {
            Some(plan) => ChannelRef { uuid: plan.uuid, name: plan.name.clone(), number: plan.number },
            None => ChannelRef { uuid: uuid::Uuid::nil(), name: self.target.to_string(), number: None },
        }
    }

    /// The candidate an index of the playout means: of the plan, or one that left it but is still in use.
    pub(super) fn candidate(&self, index: usize) -> Option<Candidate> {
        let place = self.playout.candidates().nth(index)?;
        let is_it = |it: &&Candidate| (it.stream, it.pool.profile) == (place.stream, place.profile);
        let in_use = self.playing.iter().map(|it| &it.1).chain(self.tries.values().map(|it| &it.candidate));
        let planned = self.plan.iter().flat_map(|it| &it.candidates);
        planned.chain(in_use).find(is_it).cloned()
    }

    pub(super) fn happened(&self, body: EventBody) {
        self.env.events.happened(Event { at: now_ms(), body });
    }

    /// Writes a line into the timeline.
    pub(super) fn write(&self, line: RunEntry) {
        if let Some(timeline) = &self.timeline {
            let (state, bytes_in) = (self.playout.state_name(), self.ring.meter().bytes_in());
            timeline.write(RunEntry { state, bytes_in, ..line });
        }
    }

    /// The same, about the stream that plays.
    pub(super) fn write_playing(&self, line: RunEntry) {
        self.write(match &self.playing {
            Some((_, candidate)) => line.about(candidate),
            None => line,
        });
    }

    pub(super) fn after(&self, delay: Duration, message: Message) -> AbortOnDropHandle<()> {
        let myself = self.myself.clone();
        AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            let _ = myself.cast(message);
        }))
    }
}

/// A stream as events name it.
pub(super) fn stream_ref(candidate: &Candidate) -> StreamRef {
    StreamRef {
        id: candidate.stream,
        name: candidate.stream_name.clone(),
        url: candidate.url.clone(),
        profile_used: candidate.profile,
        account_name: candidate.pool.account_name.clone(),
    }
}
