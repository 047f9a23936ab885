//! The message loop of a live channel.
//!
//! A handler changes the values that hold the state ([`ChannelUpstream`], [`Audience`], [`History`]), queues inputs for
//! the playout, and then carries out the playout's actions. [`State::report`] is the only place that writes log lines,
//! timeline entries, counters and events.

mod attempts;
mod audience;
mod change;
mod context;
mod decisions;
mod history;
mod joins;
mod repeats;
mod sharing;
mod switching;
mod upstream;

use domain::plan::Candidate;
use domain::playout::Input;
use media::ring::EndReason;
use ractor::{ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::error;

pub(crate) use self::attempts::open_request;
use self::audience::Audience;
use self::change::{ChannelChange, stream_ref};
use self::context::Context;
use self::decisions::InputQueue;
use self::history::History;
use self::sharing::{Sharing, is_pull};
use self::switching::ManualSwitch;
use self::upstream::ChannelUpstream;
use super::clients::Clients;
use super::{
    ChannelReport, ChannelStatus, FAREWELL_TIMEOUT, LiveEnv, Message, SwitchOutcome, WatchRefusal, WatchReply,
};
use crate::ask::answer;
use crate::plans::Target;
use crate::slots::LeasePurpose;

pub(crate) struct Arguments {
    pub(crate) env: std::sync::Arc<LiveEnv>,
    pub(crate) target: Target,
    /// Number of this live channel; never reused.
    pub(crate) serial: u64,
    pub(crate) report: Box<dyn Fn(ChannelReport) + Send + Sync>,
}

pub(crate) struct Actor;

pub(crate) struct State {
    context: Context,
    upstream: ChannelUpstream,
    audience: Audience,
    history: History,
    inputs: InputQueue,
    manual_switch: Option<ManualSwitch>,
    /// The part of this node in a cluster.
    sharing: Sharing,
    /// The purpose of its slots, as others see it.
    purpose: Option<LeasePurpose>,
    /// When its recordings moved to another account last, to make room.
    moved_at: Option<Instant>,
    /// Set once the channel could not be read from the process before this one any more.
    has_lost_predecessor: bool,
    /// Set once the channel ends: the timer after which the remaining clients are closed.
    ending: Option<AbortOnDropHandle<()>>,
}

impl ractor::Actor for Actor {
    type Msg = Message;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(
        &self,
        myself: ActorRef<Message>,
        arguments: Arguments,
    ) -> Result<State, ActorProcessingErr> {
        Ok(State::new(myself, arguments))
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Load => state.load(),
            Message::Join(join) => state.join(join),
            Message::Host { number, host, reply } => {
                let outcome = state.host(number, host);
                answer(reply, outcome);
            }
            Message::HostedInVain => state.hosted_in_vain(),
            Message::NobodyOpens(reason) => state.nobody_opens(&reason),
            Message::Slots(message) => state.slots(message),
            Message::Opened(attempt, source) => state.opened(attempt, source),
            Message::Lost(attempt, cause) if is_pull(attempt) => state.pull_ended(attempt, cause),
            Message::Lost(attempt, cause) => state.lost(attempt, cause),
            Message::Ready(attempt) => state.push(Input::Ready { attempt }),
            Message::Playing(attempt) if is_pull(attempt) => state.pull_plays(attempt),
            Message::Playing(attempt) => state.push(Input::Playing { attempt }),
            Message::Silent(attempt, silence) => state.silent(attempt, silence),
            Message::Resumed(attempt) => state.resumed(attempt),
            Message::Slow(slow) => state.slow(slow.attempt, slow.behind),
            Message::ClientEnded(client, reason) => state.client_ended(client, &reason),
            Message::PumpGone => return Err("the pump ended unexpectedly".into()),
            Message::Tick => {
                state.upstream.deadline_passed();
                state.push(Input::Tick);
            }
            Message::Lingered(number) => state.lingered(number),
            Message::RenditionLingered(number) => state.audience.rendition_lingered(number),
            Message::SegmenterLingered(number) => state.audience.segmenter_lingered(number),
            Message::Retire(number) => state.retire(number),
            Message::Stop(end) => state.end(end),
            Message::Farewell => {
                state.audience.kick_all("the channel ended");
                myself.stop(None);
            }
            Message::Switch(to, reply) => state.switch(to, reply),
            Message::Owner(decision) => state.owner(decision),
            Message::OwnerTimeout => state.owner_timeout(),
            Message::PullAttached(attempt, source) => state.pull_attached(attempt, source),
            Message::PullUnanswered(attempt, cause) => state.pull_unanswered(attempt, cause),
            Message::PullGaveUp(attempt) => state.pull_gave_up(attempt),
            Message::EdgeJoined => state.edge_joined(),
            Message::EdgeLeft => state.edge_left(),
            Message::EndViewers if state.audience.is_recorded() => {}
            Message::EndViewers => state.end(EndReason::Stopped),
            Message::Kick(client, reply) => state.audience.kick(client, reply),
            Message::Reload => state.reload(),
            Message::Status(reply) => answer(reply, state.status()),
            #[cfg(any(test, feature = "testing"))]
            Message::LosePump => state.upstream.abort_pump(),
            #[cfg(test)]
            Message::Block(until) => drop(until.recv()),
        }
        state.run_queue();
        state.update_linger();
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Message>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let (client, reason) = match event {
            SupervisionEvent::ActorTerminated(client, _, reason) => {
                (client, reason.unwrap_or_else(|| "ended".to_owned()))
            }
            SupervisionEvent::ActorFailed(client, cause) => {
                error!(
                    channel.target = %state.context.target,
                    "a client actor failed, its connection is closed: {cause}"
                );
                (client, "failed".to_owned())
            }
            _ => return Ok(()),
        };
        // These events overtake messages. The departure of a client has to come after the message that the source plays
        // whose packets the client got.
        let _ = myself.cast(Message::ClientEnded(client.get_id(), reason));
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<Message>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        // The supervisor receives the state before it is dropped; slots have to be released without that delay.
        state.upstream.shut_down();
        state.sharing.end();
        state.report_stop();
        Ok(())
    }
}

impl State {
    fn new(myself: ActorRef<Message>, arguments: Arguments) -> Self {
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

    fn load(&mut self) {
        let Context { env, target, serial, .. } = &self.context;
        if let Some(plan) = env.plans.plan(target) {
            self.history.set_timeline(env.timelines.begin(*serial, *target, &plan.name));
            self.upstream.load(plan, &env.settings(), *serial);
        }
    }

    fn reload(&mut self) {
        if self.context.env.is_draining() {
            return;
        }
        let Some(plan) = self.context.env.plans.plan(&self.context.target) else {
            return self.end(EndReason::Stopped);
        };
        // Most commits change other channels; these are not reported.
        let replanned = self.upstream.replan(plan);
        self.plan_changed();
        match replanned {
            (input, true) => self.push_reported(input, ChannelChange::PlanChanged),
            (input, false) => self.push(input),
        }
    }

    /// Begins the end of the channel: clients read their last chunks, and no more joins are accepted.
    fn end(&mut self, end: EndReason) {
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
    fn state_name(&self) -> &'static str {
        if !self.sharing.is_edge() || !self.upstream.is_idle() {
            self.upstream.state_name()
        } else if self.sharing.is_pulling() {
            "playing"
        } else {
            "opening"
        }
    }

    fn status(&self) -> ChannelStatus {
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
