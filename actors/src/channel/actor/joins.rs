//! Who joins, who leaves, and how long a channel waits for the next one.

use domain::event::EventBody;
use domain::playout::Input;
use media::ring::{EndReason, JoinPoint};
use ractor::RpcReplyPort;
use tokio::time::Instant;
use tracing::{error, info};

use super::State;
use crate::ask::answer;
use crate::channel::actor::ChannelReport;
use crate::channel::clients::client_ref;
use crate::channel::{IDLE_AGAIN, Join, KICKING_MAX, Message, WAITING_MAX, WatchRefusal, WatchReply};
use crate::timeline::{RunEntry, RunEntryKind};

impl State {
    pub(super) fn join(&mut self, join: Join) {
        self.last_join = join.number;
        // The timer that runs, or has run out, speaks of an earlier join; should this one come to nothing, the
        // channel lingers anew.
        self.linger = None;
        if self.ending.is_some() || self.waiting.len() >= WAITING_MAX {
            return answer(join.reply, WatchReply::Refused(WatchRefusal::Stopping));
        }
        if self.plan.is_none() {
            answer(join.reply, WatchReply::Refused(WatchRefusal::NotFound));
            return self.end(EndReason::Closed);
        }
        if self.admitting {
            return self.admit(join);
        }
        self.waiting.push(join);
        if matches!(self.playout.state(), domain::playout::PlayoutState::Idle) {
            self.asked_to_start = Some(Instant::now());
            self.input(Input::Start);
        }
    }

    pub(super) fn admit(&mut self, join: Join) {
        let Ok(seat) = join.wish.seat() else { return };
        let id = self.env.next_client.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let entry = JoinPoint::Live { behind: self.env.settings().new_client_behind_seconds };
        let parent = self.myself.get_cell();
        let tail = match self.clients.admit(id, &join.wish, &self.ring, entry, parent, seat) {
            Ok(tail) => tail,
            Err(cause) => {
                error!(channel.target = %self.target, "a client could not be started: {cause}");
                return answer(join.reply, WatchReply::Refused(WatchRefusal::Stopping));
            }
        };
        let viewer = &join.wish.viewer;
        info!(
            channel.target = %self.target, client.id = id, client.address = %viewer.address,
            client.agent = %viewer.agent, "client joined"
        );
        let client = client_ref(id, viewer);
        self.happened(EventBody::ClientConnect { channel: self.channel_ref(), client });
        answer(join.reply, WatchReply::Tail { client: id, tail });
    }

    pub(super) fn admit_waiting(&mut self) {
        for join in std::mem::take(&mut self.waiting) {
            // Who went away while waiting was never a client.
            if !join.reply.is_closed() {
                self.admit(join);
            }
        }
    }

    pub(super) fn refuse_waiting(&mut self, refusal: &WatchRefusal) {
        for join in self.waiting.drain(..) {
            answer(join.reply, WatchReply::Refused(refusal.clone()));
        }
    }

    pub(super) fn client_gone(&mut self, client: ractor::ActorId, reason: &str) {
        let Some(gone) = self.clients.remove(client, &self.channel_ref(), reason) else { return };
        for (_, reply) in self.kicking.extract_if(.., |it| it.0 == gone.id) {
            answer(reply, true);
        }
        self.tell_gone(gone);
    }

    /// Ends one client; the answer comes when it is gone.
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

    /// Nobody watches and nobody waits to.
    pub(super) fn is_deserted(&mut self) -> bool {
        self.waiting.retain(|it| !it.reply.is_closed());
        self.clients.len() == 0 && self.waiting.is_empty()
    }

    /// After every message: the linger timer runs exactly while nobody watches, from the latest departure on.
    pub(super) fn settle(&mut self) {
        if self.ending.is_some() || !self.is_deserted() {
            self.linger = None;
        } else if self.linger.is_none() && self.last_join > 0 {
            self.env.slots.lingering(self.serial);
            let number = self.last_join;
            let delay = self.env.settings().channel_shutdown_delay;
            self.write(
                RunEntry::new(RunEntryKind::LastViewerLeft)
                    .detail(format_args!("ends after {} ms", delay.as_millis())),
            );
            self.linger = Some(self.after(delay, Message::Lingered(number)));
        }
    }

    /// Says that nobody watches, and says it again later should the word get lost with a dying switchboard.
    pub(super) fn lingered(&mut self, number: u64) {
        if number == self.last_join {
            (self.report)(ChannelReport::Idle(number));
            self.linger = Some(self.after(IDLE_AGAIN, Message::Lingered(number)));
        }
    }

    pub(super) fn retire(&mut self, number: u64) {
        if number == self.last_join && self.is_deserted() {
            self.end(EndReason::Closed);
        } else if self.ending.is_none() {
            (self.report)(ChannelReport::Awake);
        }
    }
}
