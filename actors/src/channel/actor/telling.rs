//! What a live channel tells of itself.

use std::time::{Duration, SystemTime};

use domain::{
    event::{ChannelRef, Event, EventBody, StreamRef},
    plan::Candidate,
};
use tokio_util::task::AbortOnDropHandle;
use tracing::info;

use super::State;
use crate::channel::{Message, Status};

impl State {
    pub(super) fn tell_stopped(&mut self) {
        let fill = self.ring.meter();
        let runtime_seconds = self.born.elapsed().as_secs();
        let total_bytes = fill.bytes_in();
        info!(channel.target = %self.target, runtime_seconds, total_bytes, "channel stopped");
        if self.has_played {
            let channel = self.channel_ref();
            let (stream, reason) = (self.last_stream.clone(), self.end_reason.clone());
            self.happened(EventBody::ChannelStop { channel, stream, reason, runtime_seconds, total_bytes });
        }
    }

    pub(super) fn status(&self) -> Status {
        let channel = self.channel_ref();
        Status {
            uuid: channel.uuid,
            name: channel.name,
            state: self.playout.state_name(),
            playing: self.playing.as_ref().map(|it| it.1.stream),
            profile: self.playing.as_ref().map(|it| it.1.pool.profile),
            uptime: self.born.elapsed(),
            n_losses: self.n_losses,
            n_failovers: self.n_failovers,
            bytes_in: self.ring.meter().bytes_in(),
            ring_bytes: self.ring.fill().bytes,
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
        let place = self.playout.places().nth(index)?;
        let is_it = |it: &&Candidate| (it.stream, it.pool.profile) == (place.stream, place.profile);
        let in_use = self.playing.iter().map(|it| &it.1).chain(self.tries.values().map(|it| &it.candidate));
        let planned = self.plan.iter().flat_map(|it| &it.candidates);
        planned.chain(in_use).find(is_it).cloned()
    }

    pub(super) fn happened(&self, body: EventBody) {
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        self.env.events.happened(Event { at: i64::try_from(at).unwrap_or(i64::MAX), body });
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
