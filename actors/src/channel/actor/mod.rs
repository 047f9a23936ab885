//! The loop of a live channel: messages in, inputs to the playout, its actions carried out.

mod attempts;
mod decisions;
mod joins;
mod telling;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use self::attempts::open_request;
use domain::event::StreamRef;
use domain::ids::StreamId;
use domain::plan::{Candidate, Plan};
use domain::playout::{Attempt, Input, Playout, PlayoutSettings};
use domain::settings::{PROGRAM_START_TIMEOUT, Settings};
use media::error::UpstreamError;
use media::pump::{self, PumpHandle, PumpSettings};
use media::ring::{self, Budget, EndReason, Ring, RingSettings};
use media::source::{Source, Upstream};
use ractor::{ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::error;

use super::clients::Clients;
use super::{FAREWELL, Join, Message, SwitchOutcome, WatchRefusal};
use crate::ask::answer;
use crate::clock::now_ms;
use crate::events::Events;
use crate::plans::{Plans, Target};
use crate::registry::{Registered, Registry, WatchedChannel};
use crate::reload::LiveSettings;
use crate::slots::{FullPool, Lease, Slots};
use crate::timeline::{RunEntry, RunEntryKind, Timeline, Timelines};

/// What every live channel stands on.
pub(crate) struct LiveEnv {
    /// Changed by an admin while channels play; each reads it when it needs it.
    pub(crate) settings: LiveSettings,
    pub(crate) plans: Arc<dyn Plans>,
    /// The runtime of pumps and openers.
    pub(crate) packets: Handle,
    pub(crate) upstream: Upstream,
    pub(crate) budget: Budget,
    pub(crate) slots: Slots,
    pub(crate) events: Events,
    pub(crate) registry: Arc<Registry>,
    pub(crate) next_client: std::sync::atomic::AtomicU64,
    pub(crate) timelines: Arc<Timelines>,
}

impl LiveEnv {
    /// The settings as they stand now.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.load()
    }

    /// How upstreams are opened now.
    pub(crate) fn upstream(&self) -> Upstream {
        let settings = self.settings();
        let mut upstream = self.upstream.clone();
        upstream.settings.connect_timeout = settings.connect_timeout;
        upstream.settings.first_packet_timeout = settings.first_packet_timeout;
        upstream.settings.program_start_timeout = PROGRAM_START_TIMEOUT.max(settings.first_packet_timeout);
        upstream
    }
}

/// What a live channel tells upward, to whoever started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelReport {
    /// Nobody watches since the linger time; the last join had this number.
    Idle(u64),
    /// It was told to retire, and a join came first.
    Awake,
    /// It takes no more joins and will be gone soon.
    Ending,
}

pub(crate) struct Arguments {
    pub(crate) env: Arc<LiveEnv>,
    pub(crate) target: Target,
    /// The number of this live channel; never used again.
    pub(crate) serial: u64,
    pub(crate) report: Box<dyn Fn(ChannelReport) + Send + Sync>,
}

pub(crate) struct Actor;

/// How far an attempt has come. What it holds is given up by dropping it.
enum Stage {
    Granted(Lease),
    Opening { _opener: AbortOnDropHandle<()> },
    Opened(Source),
    Followed,
}

struct Try {
    candidate: Candidate,
    lease: u64,
    just_released: bool,
    stage: Stage,
}

/// A time without a source that plays. Losses of those that are tried in it do not change why it began.
struct Gap {
    since: Instant,
    cause: &'static str,
}

/// A manual switch whose asker waits.
struct Switching {
    reply: RpcReplyPort<SwitchOutcome>,
    /// The stream it was noted for while nothing played: it is fulfilled however that comes to play.
    noted: Option<StreamId>,
    /// The stream that played last before it.
    from: Option<StreamId>,
}

pub(crate) struct State {
    env: Arc<LiveEnv>,
    target: Target,
    serial: u64,
    report: Box<dyn Fn(ChannelReport) + Send + Sync>,
    myself: ActorRef<Message>,

    plan: Option<Arc<Plan>>,
    playout: Playout,
    /// At most the attempt that plays and one more.
    tries: BTreeMap<Attempt, Try>,
    playing: Option<(Attempt, Candidate)>,
    deadline: Option<(Instant, AbortOnDropHandle<()>)>,

    ring: Ring,
    pump: PumpHandle,
    /// Held for its end.
    #[cfg_attr(not(any(test, feature = "testing")), expect(dead_code, reason = "it ends with this"))]
    pumping: AbortOnDropHandle<()>,
    _registered: Registered,

    clients: Clients,
    /// Joins that wait for the first slot; at most [`super::WAITING_MAX`].
    waiting: Vec<Join>,
    /// A slot was granted since the last start: who joins gets a tail at once.
    admitting: bool,
    last_join: u64,
    linger: Option<AbortOnDropHandle<()>>,
    ending: Option<AbortOnDropHandle<()>>,
    switching: Option<Switching>,
    /// Who waits for a client to be gone; at most [`super::KICKING_MAX`].
    kicking: Vec<(u64, RpcReplyPort<bool>)>,
    /// Where it is written down what happens; `None` where there is no plan.
    timeline: Option<Timeline>,

    born: Instant,
    /// Milliseconds since 1970.
    born_at: i64,
    first_played: Option<Instant>,
    asked_to_start: Option<Instant>,
    gap: Option<Gap>,
    has_played: bool,
    last_stream: Option<StreamRef>,
    end_reason: String,
    /// Whether the end has been told.
    is_told: bool,
    last_cause: Option<UpstreamError>,
    last_full: Option<FullPool>,
    n_losses: u64,
    n_failovers: u64,
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
            Message::Slots(news) => state.slots(news),
            Message::Opened(attempt, source) => state.opened(attempt, source),
            Message::Lost(attempt, cause) => state.lost(attempt, cause),
            Message::Playing(attempt) => state.input(Input::Playing { attempt }),
            Message::Slow(slow) => state.slow(slow.attempt, slow.behind),
            Message::PumpGone => return Err("the pump ended although nobody asked it to".into()),
            Message::Tick => {
                state.deadline = None;
                state.input(Input::Tick);
            }
            Message::Lingered(number) => state.lingered(number),
            Message::Retire(number) => state.retire(number),
            Message::Stop(end) => state.end(end),
            Message::Farewell => {
                state.clients.kick_all("the channel ended");
                myself.stop(None);
            }
            Message::Switch(to, reply) => state.switch(to, reply),
            Message::Kick(client, reply) => state.kick(client, reply),
            Message::Reload => state.reload(),
            Message::Status(reply) => answer(reply, state.status()),
            #[cfg(any(test, feature = "testing"))]
            Message::LosePump => state.pumping.abort(),
        }
        state.settle();
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Message>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(client, _, reason) => {
                state.client_gone(client.get_id(), reason.as_deref().unwrap_or("ended"));
            }
            SupervisionEvent::ActorFailed(client, cause) => {
                error!(channel.target = %state.target, "a client failed, its connection is closed: {cause}");
                state.client_gone(client.get_id(), "failed");
            }
            _ => {}
        }
        if state.ending.is_some() && state.clients.len() == 0 {
            myself.stop(None);
        }
        state.settle();
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<Message>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        // The state travels to the supervisor before it is dropped; what holds a slot goes at once.
        state.tries.clear();
        state.pump.release();
        state.tell_stopped();
        Ok(())
    }
}

impl State {
    fn new(myself: ActorRef<Message>, arguments: Arguments) -> Self {
        let Arguments { env, target, serial, report } = arguments;
        let settings = env.settings();
        let (writer, ring) = ring::ring(
            RingSettings {
                seconds: settings.ring_seconds,
                bytes: settings.ring_bytes,
                gop_bytes: settings.ring_gop_bytes,
                slow_client_limit: settings.slow_client_limit,
            },
            &env.budget,
        );
        let news_to = myself.clone();
        let (pump, running) = pump::pump(
            writer,
            PumpSettings {
                stall_timeout: settings.stall_timeout,
                give_up_after: settings.give_up_after,
                random_access_wait: settings.random_access_wait,
                buffering_timeout: settings.buffering_timeout,
                ..PumpSettings::default()
            },
            move |news| {
                // News for a channel that is gone is no news.
                let _ = news_to.cast(match news {
                    pump::PumpMessage::Playing(attempt) => Message::Playing(Attempt(attempt)),
                    pump::PumpMessage::Lost { attempt, cause } => Message::Lost(Attempt(attempt), cause),
                });
            },
        );
        let gone = Alarm::new(myself.clone(), Message::PumpGone);
        let running = env.packets.spawn(async move {
            let _gone = gone;
            running.await;
        });
        let registered = env.registry.channel(
            serial,
            WatchedChannel { pump: pump.clone(), ring: ring.clone(), port: myself.get_derived() },
        );
        Self {
            playout: Playout::new(Vec::new(), PlayoutSettings::from(&*settings), serial),
            plan: None,
            tries: BTreeMap::new(),
            playing: None,
            deadline: None,
            ring,
            pump,
            pumping: AbortOnDropHandle::new(running),
            _registered: registered,
            clients: Clients::new(env.registry.clone()),
            waiting: Vec::new(),
            admitting: false,
            last_join: 0,
            linger: None,
            ending: None,
            switching: None,
            kicking: Vec::new(),
            timeline: None,
            born: Instant::now(),
            born_at: now_ms(),
            first_played: None,
            asked_to_start: None,
            gap: None,
            has_played: false,
            last_stream: None,
            end_reason: String::new(),
            is_told: false,
            last_cause: None,
            last_full: None,
            n_losses: 0,
            n_failovers: 0,
            env,
            target,
            serial,
            report,
            myself,
        }
    }

    fn load(&mut self) {
        self.plan = self.env.plans.plan(&self.target);
        if let Some(plan) = &self.plan {
            self.timeline = Some(self.env.timelines.begin(self.serial, self.target, &plan.name));
            let places = plan.candidates.iter().map(Candidate::playout_candidate).collect();
            let settings = PlayoutSettings::from(&*self.env.settings()).with_programs();
            self.playout = Playout::new(places, settings, self.serial);
        }
    }

    fn reload(&mut self) {
        match self.env.plans.plan(&self.target) {
            None => self.end(EndReason::Stopped),
            Some(plan) => {
                let places = plan.candidates.iter().map(Candidate::playout_candidate).collect();
                let is_other = self.plan.as_ref() != Some(&plan);
                self.plan = Some(plan);
                // Most changes are somebody else's.
                match is_other {
                    true => self.input_told(Input::Replan(places), RunEntry::new(RunEntryKind::PlanChanged)),
                    false => self.input(Input::Replan(places)),
                }
            }
        }
    }

    fn end(&mut self, end: EndReason) {
        if self.ending.is_some() {
            return;
        }
        self.end_reason = end.to_string();
        let line = RunEntry::new(RunEntryKind::Ended).cause(end_label(&end)).detail(&end);
        self.ring.end(end);
        self.refuse_waiting(&WatchRefusal::Stopping);
        self.answer_switch(|_| SwitchOutcome::Failed {
            playing: None,
            reason: "the channel ended".to_owned(),
        });
        self.ending = Some(self.after(FAREWELL, Message::Farewell));
        self.input_told(Input::Stop, line);
        self.tries.clear();
        (self.report)(ChannelReport::Ending);
        if self.clients.len() == 0 {
            self.myself.stop(None);
        }
    }
}

impl Drop for State {
    /// One that dies of a bug ends here, without a word before.
    fn drop(&mut self) {
        self.tell_stopped();
    }
}

/// One word for the end of a channel.
fn end_label(end: &EndReason) -> &'static str {
    match end {
        EndReason::Closed => "nobody_watches",
        EndReason::Stopped => "stopped",
        EndReason::NoSlot(_) => "no_slot",
        EndReason::NothingPlays(_) => "nothing_plays",
        EndReason::Silent => "silent",
        EndReason::Kicked => "kicked",
        EndReason::TooSlow => "too_slow",
    }
}

/// Tells a channel when a task of its ends unasked, panics included.
struct Alarm {
    to: ActorRef<Message>,
    message: Option<Message>,
}

impl Alarm {
    fn new(to: ActorRef<Message>, message: Message) -> Self {
        Self { to, message: Some(message) }
    }

    fn disarm(&mut self) {
        self.message = None;
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            let _ = self.to.cast(message);
        }
    }
}
