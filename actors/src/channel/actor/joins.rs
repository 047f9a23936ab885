//! Joins, departures, and the linger time.

use std::time::Duration;

use media::ring::EndReason;
use ractor::ActorId;

use super::audience::Admitted;
use super::change::ChannelChange;
use super::state::State;
use crate::ask::answer;
use crate::channel::{ChannelReport, Join, Message, WatchRefusal, WatchReply};

/// Interval at which a channel without viewers repeats its report.
const IDLE_REPORT_PERIOD: Duration = Duration::from_secs(5);

impl State {
    pub(super) fn join(&mut self, join: Join) {
        self.audience.join_arrived(join.number);
        if self.ending.is_some() || self.audience.is_full() {
            return answer(join.reply, WatchReply::Refused(WatchRefusal::Stopping));
        }
        if self.upstream.plan().is_none() {
            answer(join.reply, WatchReply::Refused(WatchRefusal::NotFound));
            return self.end(EndReason::Closed);
        }
        if self.audience.is_admitting() {
            if let Some(client) = self.audience.admit(join, &self.context, self.upstream.ring()) {
                self.admitted(client);
            }
            return;
        }
        self.audience.wait(join);
        if self.upstream.is_idle() {
            self.history.start_requested();
            self.upstream.choose_first(self.audience.forecast_profile());
            self.start();
        }
    }

    /// Admits the waiting joins after the first granted slot.
    pub(super) fn admit_waiting(&mut self) {
        for client in self.audience.start_admitting(&self.context, self.upstream.ring()) {
            self.admitted(client);
        }
    }

    fn admitted(&mut self, client: Admitted) {
        self.report(ChannelChange::ClientJoined { id: client.id, viewer: client.viewer.clone() });
        client.reply();
    }

    pub(super) fn client_ended(&mut self, client: ActorId, reason: &str) {
        if let Some(client) = self.audience.client_ended(client, &self.channel_ref(), reason) {
            self.report(ChannelChange::ClientLeft(client));
        }
        if self.ending.is_some() && !self.audience.has_clients() {
            self.context.myself.stop(None);
        }
    }

    /// Called after every message: the linger timer runs exactly while nobody watches, from the latest departure on.
    pub(super) fn update_linger(&mut self) {
        self.audience.update_segmenters(&self.context);
        self.audience.update_renditions(&self.context);
        self.update_purpose();
        if self.ending.is_some() || !self.is_deserted() {
            self.audience.stop_linger();
        } else if let Some(number) = self.audience.needs_linger() {
            self.context.env.slots.lingering(self.context.serial);
            let delay = self.context.env.settings().channel_shutdown_delay;
            self.report(ChannelChange::LastViewerLeft { delay });
            self.audience.set_linger(self.context.after(delay, Message::Lingered(number)));
        }
    }

    /// Reports that nobody watches. Repeats the report later, because a switchboard that dies loses it.
    pub(super) fn lingered(&mut self, number: u64) {
        if self.audience.is_last_join(number) {
            (self.context.report)(ChannelReport::Idle(number));
            self.audience.set_linger(self.context.after(IDLE_REPORT_PERIOD, Message::Lingered(number)));
        }
    }

    pub(super) fn retire(&mut self, number: u64) {
        if self.audience.is_last_join(number) && self.is_deserted() {
            self.end(EndReason::Closed);
        } else if self.ending.is_none() {
            (self.context.report)(ChannelReport::Awake);
        }
    }
}
