//! The state of a live channel, from its plan to its end.

use std::sync::Arc;
use std::time::Duration;

use domain::plan::{Candidate, Plan};
use domain::playout::Input;
use media::ring::EndReason;
use ractor::ActorRef;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::audience::Audience;
use super::change::{ChannelChange, stream_ref};
use super::context::Context;
use super::history::History;
use super::input_queue::InputQueue;
use super::manual_switch::ManualSwitch;
use super::sharing::Sharing;
use super::upstream::ChannelUpstream;
use crate::channel::clients::Clients;
use crate::channel::{
    ChannelReport, ChannelStatus, LiveEnv, Message, SwitchOutcome, WatchRefusal, WatchReply,
};
use crate::plans::Target;
use crate::slots::LeasePurpose;

/// Time for the clients of an ending channel to read their last chunks.
pub(in crate::channel) const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct Arguments {
    pub(crate) env: Arc<LiveEnv>,
    pub(crate) target: Target,
    /// Number of this live channel; never reused.
    pub(crate) serial: u64,
    pub(crate) report: Box<dyn Fn(ChannelReport) + Send + Sync>,
}

pub(crate) struct State {
    pub(super) context: Context,
    pub(super) upstream: ChannelUpstream,
    pub(super) audience: Audience,
    pub(super) history: History,
    pub(super) inputs: InputQueue,
    pub(super) manual_switch: Option<ManualSwitch>,
    /// The part of this node in a cluster.
    pub(super) sharing: Sharing,
    /// The purpose of its slots, as others see it.
    pub(super) purpose: Option<LeasePurpose>,
    /// When its recordings moved to another account last, to make room.
    pub(super) moved_at: Option<Instant>,
    /// Set once the channel could not be read from the process before this one any more.
    pub(super) has_lost_predecessor: bool,
    /// Set once the channel ends: the timer after which the remaining clients are closed.
    pub(super) ending: Option<AbortOnDropHandle<()>>,
}

impl State {
    pub(super) fn new(myself: ActorRef<Message>, arguments: Arguments) -> Self {
        let Arguments { env, target, serial, report } = arguments;
        let clients = Clients::new(env.registry.clone());
        let context = Context { env, target, serial, report, myself };
        Self {
            upstream: ChannelUpstream::new(&context),
            audience: Audience::new(clients),
            history: History::new(),
            inputs: InputQueue::default(),
            manual_switch: None,
            sharing: Sharing::default(),
            purpose: None,
            moved_at: None,
            has_lost_predecessor: false,
            ending: None,
            context,
        }
    }

    pub(super) fn load(&mut self) {
        let Context { env, target, serial, .. } = &self.context;
        if let Some(plan) = env.plans.plan(target) {
            self.history.set_timeline(env.timelines.begin(*serial, *target, &plan.name));
            self.upstream.load(plan, &env.settings(), *serial);
        }
    }

    pub(super) fn reload(&mut self) {
        if self.context.env.is_draining() {
            return;
        }
        let Some(plan) = self.current_plan() else {
            return self.end(EndReason::Stopped);
        };
        self.use_plan(plan);
    }

    /// Returns the plan as of now; `None` if the target is gone or disabled.
    pub(super) fn current_plan(&self) -> Option<Arc<Plan>> {
        Some(self.with_outside_streams(self.context.env.plans.plan(&self.context.target)?))
    }

    /// Replaces the plan.
    pub(super) fn use_plan(&mut self, plan: Arc<Plan>) {
        // Most commits change other channels; these are not reported.
        let replanned = self.upstream.replan(plan);
        self.plan_changed();
        match replanned {
            (input, true) => self.push_reported(input, ChannelChange::PlanChanged),
            (input, false) => self.push(input),
        }
    }

    /// Adds the ways to play the streams that are not of the channel behind all others. They are those of previews, so that
    /// their accounts, limits and network rules count.
    fn with_outside_streams(&self, mut plan: Arc<Plan>) -> Arc<Plan> {
        for stream in self.upstream.outside_streams() {
            let is_own = plan.candidates.iter().any(|it| it.stream == *stream);
            if let Some(preview) = self.context.env.plans.plan(&Target::Stream(*stream)).filter(|_| !is_own) {
                Arc::make_mut(&mut plan).candidates.extend(preview.candidates.iter().cloned());
            }
        }
        plan
    }

    /// Begins the end of the channel: clients read their last chunks, and no more joins are accepted.
    pub(super) fn end(&mut self, end: EndReason) {
        if self.ending.is_some() {
            return;
        }
        self.history.ends(end.to_string());
        self.upstream.end_ring(end.clone());
        if self.sharing.is_edge() {
            self.upstream.release_pull();
        }
        self.sharing.end();
        self.audience.end_renditions(&end);
        self.audience.answer_waiting(|| WatchReply::Refused(WatchRefusal::Stopping));
        self.answer_switch(SwitchOutcome::Failed { playing: None, reason: "the channel ended".to_owned() });
        self.ending = Some(self.context.after(FAREWELL_TIMEOUT, Message::Farewell));
        self.push_reported(Input::Stop, ChannelChange::Ended { end });
    }

    /// Returns the state for status and timeline.
    pub(super) fn state_name(&self) -> &'static str {
        if !self.sharing.is_edge() || !self.upstream.is_idle() {
            self.upstream.state_name()
        } else if self.sharing.is_pulling() {
            "playing"
        } else {
            "opening"
        }
    }

    pub(super) fn status(&self) -> ChannelStatus {
        let channel = self.channel_ref();
        let playing = self.upstream.playing();
        let discovered =
            |it: &Candidate| self.context.env.slots.discovered_limit(it.pool.profile, it.pool.changed_at);
        let ring = self.upstream.ring();
        ChannelStatus {
            nodes: Vec::new(),
            target: self.context.target,
            uuid: channel.uuid,
            name: channel.name,
            state: self.state_name(),
            node: self.sharing.status(),
            playing: playing.map(|it| it.stream),
            stream: playing.map(stream_ref),
            title: self.upstream.title(),
            facts: self.upstream.facts(),
            profile: playing.map(|it| it.pool.profile),
            discovered_max_streams: playing.and_then(discovered),
            started_at: self.history.started_at(),
            uptime: self.history.uptime(),
            since_first_play: self.history.since_first_play(),
            n_losses: self.history.n_losses(),
            n_failovers: self.history.n_failovers(),
            last_failure: if playing.is_some() || self.sharing.is_pulling() {
                None
            } else {
                self.history.last_failure()
            },
            bytes_in: ring.meter().bytes_in(),
            input: ring.meter().input(),
            ring_bytes: ring.usage().bytes,
            clients: self.audience.status(),
            n_more_clients: 0,
            n_waiting: self.audience.n_waiting(),
            segmenters: self.audience.segmenter_status(),
        }
    }
}

impl Drop for State {
    /// Reports the end of a channel that died of a defect; [`ractor::Actor::post_stop`] is not called then.
    fn drop(&mut self) {
        self.report_stop();
    }
}
