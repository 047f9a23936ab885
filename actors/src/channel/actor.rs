//! The loop of a live channel: messages in, inputs to the playout, its actions carried out.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use domain::{
    event::{ChannelRef, Event, EventBody, StreamRef},
    ids::StreamId,
    plan::{Candidate, Plan},
    playout::{
        Action, Attempt, Change, Failure, GiveUp, Input, Playout, PlayoutSettings, Scope, Switch,
        SwitchRefusal, Why,
    },
    settings::{AtLimit, Settings},
};
use media::{
    error::{Cause, UpstreamError},
    pump::{self, PumpHandle, PumpSettings},
    ring::{self, Budget, End, Entry, Ring, RingSettings},
    source::{self, OpenRequest, Source, Upstream},
};
use parking_lot::RwLock;
use ractor::{ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::{runtime::Handle, time::Instant};
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, error, info, warn};

use super::{
    FAREWELL, Join, Message, Refusal, Status, SwitchOutcome, SwitchTo, Viewer, WAITING_MAX, Watch,
    clients::{Clients, client_ref},
};
use crate::{
    ask::answer,
    events::Events,
    plans::{Plans, Target},
    registry::{Registered, Registry, WatchedChannel},
    slots::{Asking, FullPool, Lease, News, Purpose, Request, Slots},
};

/// What every live channel stands on.
pub(crate) struct Env {
    /// Changed by an admin while channels play; each reads it when it needs it.
    pub(crate) settings: RwLock<Arc<Settings>>,
    pub(crate) plans: Arc<dyn Plans>,
    /// The runtime of pumps and openers.
    pub(crate) packets: Handle,
    pub(crate) upstream: Upstream,
    pub(crate) budget: Budget,
    pub(crate) slots: Slots,
    pub(crate) events: Events,
    pub(crate) registry: Arc<Registry>,
    pub(crate) next_client: std::sync::atomic::AtomicU64,
}

impl Env {
    /// The settings as they stand now.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.read().clone()
    }
}

/// What a live channel tells upward, to whoever started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// Nobody watches since the linger time; the last join had this number.
    Idle(u64),
    /// It was told to retire, and a join came first.
    Awake,
    /// It takes no more joins and will be gone soon.
    Ending,
}

pub(crate) struct Arguments {
    pub(crate) env: Arc<Env>,
    pub(crate) target: Target,
    /// The number of this live channel; never used again.
    pub(crate) serial: u64,
    pub(crate) report: Box<dyn Fn(Report) + Send + Sync>,
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
}

pub(crate) struct State {
    env: Arc<Env>,
    target: Target,
    serial: u64,
    report: Box<dyn Fn(Report) + Send + Sync>,
    myself: ActorRef<Message>,

    plan: Option<Arc<Plan>>,
    playout: Playout,
    /// At most the attempt that plays and one more.
    tries: BTreeMap<Attempt, Try>,
    playing: Option<(Attempt, Candidate)>,
    deadline: Option<(Instant, AbortOnDropHandle<()>)>,

    ring: Ring,
    pump: PumpHandle,
    _pump: AbortOnDropHandle<()>,
    _registered: Registered,

    clients: Clients,
    /// Joins that wait for the first slot; at most [`WAITING_MAX`].
    waiting: Vec<Join>,
    /// A slot was granted since the last start: who joins gets a tail at once.
    admitting: bool,
    last_join: u64,
    linger: Option<AbortOnDropHandle<()>>,
    ending: Option<AbortOnDropHandle<()>>,
    switching: Option<Switching>,

    born: Instant,
    asked_to_start: Option<Instant>,
    gap: Option<Gap>,
    has_played: bool,
    last_stream: Option<StreamRef>,
    end_reason: String,
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
            Message::Lingered(number) if number == state.last_join => (state.report)(Report::Idle(number)),
            Message::Lingered(_) => {}
            Message::Retire(number) => state.retire(number),
            Message::Stop(end) => state.end(end),
            Message::Farewell => {
                state.clients.kick_all("the channel ended");
                myself.stop(None);
            }
            Message::Switch(to, reply) => state.switch(to, reply),
            Message::Kick(client, reply) => answer(reply, state.clients.kick(client)),
            Message::Reload => state.reload(),
            Message::Status(reply) => answer(reply, state.status()),
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
                ..PumpSettings::default()
            },
            move |news| {
                // News for a channel that is gone is no news.
                let _ = news_to.cast(match news {
                    pump::News::Playing(attempt) => Message::Playing(Attempt(attempt)),
                    pump::News::Lost { attempt, cause } => Message::Lost(Attempt(attempt), cause),
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
            _pump: AbortOnDropHandle::new(running),
            _registered: registered,
            clients: Clients::default(),
            waiting: Vec::new(),
            admitting: false,
            last_join: 0,
            linger: None,
            ending: None,
            switching: None,
            born: Instant::now(),
            asked_to_start: None,
            gap: None,
            has_played: false,
            last_stream: None,
            end_reason: String::new(),
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
            let places = plan.candidates.iter().map(Candidate::place).collect();
            let settings = PlayoutSettings::from(&*self.env.settings());
            self.playout = Playout::new(places, settings, self.serial);
        }
    }

    fn reload(&mut self) {
        match self.env.plans.plan(&self.target) {
            None => self.end(End::Stopped),
            Some(plan) => {
                let places = plan.candidates.iter().map(Candidate::place).collect();
                self.plan = Some(plan);
                self.input(Input::Replan(places));
            }
        }
    }

    // --- Joining and leaving.

    fn join(&mut self, join: Join) {
        self.last_join = join.number;
        if self.ending.is_some() || self.waiting.len() >= WAITING_MAX {
            return answer(join.reply, Watch::Refused(Refusal::Stopping));
        }
        if self.plan.is_none() {
            answer(join.reply, Watch::Refused(Refusal::NotFound));
            return self.end(End::Closed);
        }
        if self.admitting {
            return self.admit(join);
        }
        self.waiting.push(join);
        if matches!(self.playout.state(), domain::playout::State::Idle) {
            self.asked_to_start = Some(Instant::now());
            self.input(Input::Start);
        }
    }

    fn admit(&mut self, join: Join) {
        let id = self.env.next_client.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let entry = Entry::Live { behind: self.env.settings().new_client_behind_seconds };
        let parent = self.myself.get_cell();
        let tail = match self.clients.admit(id, &join.wish, &self.ring, entry, parent, &self.env.registry) {
            Ok(tail) => tail,
            Err(cause) => {
                error!(channel.target = %self.target, "a client could not be started: {cause}");
                return answer(join.reply, Watch::Refused(Refusal::Stopping));
            }
        };
        let viewer = &join.wish.viewer;
        info!(
            channel.target = %self.target, client.id = id, client.address = %viewer.address,
            client.agent = %viewer.agent, "client joined"
        );
        let client = client_ref(id, viewer);
        self.happened(EventBody::ClientConnect { channel: self.channel_ref(), client });
        answer(join.reply, Watch::Tail { client: id, tail });
    }

    fn admit_waiting(&mut self) {
        for join in std::mem::take(&mut self.waiting) {
            // Who went away while waiting was never a client.
            if !join.reply.is_closed() {
                self.admit(join);
            }
        }
    }

    fn refuse_waiting(&mut self, refusal: &Refusal) {
        for join in self.waiting.drain(..) {
            answer(join.reply, Watch::Refused(refusal.clone()));
        }
    }

    fn client_gone(&mut self, client: ractor::ActorId, reason: &str) {
        let Some(gone) = self.clients.remove(client, &self.channel_ref(), reason) else { return };
        info!(
            channel.target = %self.target, client.id = gone.id, client.address = %gone.viewer.address,
            client.bytes = gone.bytes, client.missed_bytes = gone.missed_bytes, reason = gone.reason, "client left"
        );
        self.happened(gone.event);
    }

    /// Nobody watches and nobody waits to.
    fn is_deserted(&mut self) -> bool {
        self.waiting.retain(|it| !it.reply.is_closed());
        self.clients.len() == 0 && self.waiting.is_empty()
    }

    /// After every message: the linger timer runs exactly while nobody watches, from the latest departure on.
    fn settle(&mut self) {
        if self.ending.is_some() || !self.is_deserted() {
            self.linger = None;
        } else if self.linger.is_none() && self.last_join > 0 {
            self.env.slots.lingering(self.serial);
            let number = self.last_join;
            let delay = self.env.settings().channel_shutdown_delay;
            self.linger = Some(self.after(delay, Message::Lingered(number)));
        }
    }

    fn retire(&mut self, number: u64) {
        if number == self.last_join && self.is_deserted() {
            self.end(End::Closed);
        } else if self.ending.is_none() {
            (self.report)(Report::Awake);
        }
    }

    // --- Slots.

    fn slots(&mut self, news: News) {
        match news {
            News::Granted { attempt, index, lease } => {
                let Some(candidate) = self.candidate(index) else { return };
                let (id, just_released) = (lease.id(), lease.just_released());
                let stage = Stage::Granted(lease);
                self.tries.insert(attempt, Try { candidate, lease: id, just_released, stage });
                self.input(Input::Granted { attempt, index });
                // A stale grant is dropped with its lease.
                if matches!(self.tries.get(&attempt), Some(Try { stage: Stage::Granted(_), .. })) {
                    self.tries.remove(&attempt);
                }
            }
            News::Full { attempt, full } => {
                debug!(channel.target = %self.target, account = full.account, "no slot came free");
                self.last_full = Some(full);
                self.input(Input::Full { attempt });
            }
            News::Yield { asked_by, viewer } => self.yield_slot(asked_by, viewer.as_ref()),
        }
    }

    /// Gives the slot up when nobody watches, or when the one who does is the one who asks.
    fn yield_slot(&mut self, asked_by: u64, viewer: Option<&Viewer>) {
        let deserted = self.is_deserted();
        let replaced = self.env.settings().at_limit == AtLimit::ReplaceOwn
            && self.waiting.is_empty()
            && viewer.zip(self.clients.only()).is_some_and(|(new, own)| own.is_same_device(new));
        if !deserted && !replaced {
            return self.env.slots.kept(self.serial, asked_by);
        }
        info!(channel.target = %self.target, "channel gives its slot up for another");
        if replaced {
            self.clients.kick_all("replaced by the same device");
        }
        self.admitting = false;
        self.input(Input::Yield);
    }

    // --- Attempts.

    fn open(&mut self, attempt: Attempt) {
        let Some(Try { candidate, just_released, stage: Stage::Granted(lease), .. }) =
            self.tries.remove(&attempt)
        else {
            return;
        };
        let lease_id = lease.id();
        info!(
            channel.target = %self.target, stream.id = %candidate.stream, account = candidate.pool.account_name,
            "channel opens a stream"
        );
        let request = OpenRequest {
            url: candidate.url.expose().to_owned(),
            user_agent: candidate.headers.user_agent.clone(),
            headers: headers(&candidate),
        };
        let upstream = self.env.upstream.clone();
        let myself = self.myself.clone();
        let panicked = UpstreamError::new(Cause::Panicked);
        let mut alarm = Alarm::new(myself.clone(), Message::Lost(attempt, panicked));
        let opener = self.env.packets.spawn(async move {
            let news = match source::open(request, Box::new(lease), upstream).await {
                Ok(source) => Message::Opened(attempt, source),
                Err(cause) => Message::Lost(attempt, cause),
            };
            alarm.disarm();
            // A channel that is gone drops the source with the message.
            let _ = myself.cast(news);
        });
        let stage = Stage::Opening { _opener: AbortOnDropHandle::new(opener) };
        self.tries.insert(attempt, Try { candidate, lease: lease_id, just_released, stage });
        if !self.admitting {
            self.admitting = true;
            self.admit_waiting();
        }
    }

    fn opened(&mut self, attempt: Attempt, source: Source) {
        if let Some(it) = self.tries.get_mut(&attempt) {
            it.stage = Stage::Opened(source);
            self.input(Input::Opened { attempt });
        }
    }

    fn follow(&mut self, attempt: Attempt) {
        let Some(it) = self.tries.get_mut(&attempt) else { return };
        if let Stage::Opened(source) = std::mem::replace(&mut it.stage, Stage::Followed) {
            self.pump.follow(attempt.0, source);
        }
    }

    fn lost(&mut self, attempt: Attempt, cause: UpstreamError) {
        let was_playing = self.playing.as_ref().is_some_and(|it| it.0 == attempt);
        let Some(it) = self.tries.remove(&attempt) else { return };
        // The pump or the opener has let go already, but where the loss was judged from outside.
        self.env.slots.closing(it.lease);
        self.n_losses += 1;
        self.env.registry.losses.add_one();
        warn!(
            channel.target = %self.target, stream.id = %it.candidate.stream,
            account = it.candidate.pool.account_name, cause = cause.label(), "channel lost its upstream: {cause}"
        );
        if was_playing {
            self.playing = None;
            self.gap.get_or_insert_with(|| Gap { since: Instant::now(), cause: cause.label() });
        }
        let scope = match cause.scope() {
            media::error::Scope::Stream => Scope::Stream,
            media::error::Scope::Candidate => Scope::Candidate,
        };
        // An account that refuses right after a slot came back may still count the closed connection.
        let waits = self.plan.as_ref().is_some_and(|plan| plan.waits_for_release(&it.candidate.pool));
        let just_released = it.just_released && scope == Scope::Candidate && waits;
        let failure = Failure { scope, retry: cause.can_retry(), just_released };
        self.last_cause = Some(cause);
        self.input(Input::Lost { attempt, failure });
    }

    fn slow(&mut self, attempt: u64, behind: Duration) {
        let attempt = Attempt(attempt);
        if self.playing.as_ref().is_some_and(|it| it.0 == attempt) {
            debug!(channel.target = %self.target, behind_ms = behind.as_millis() as u64, "source is too slow");
            self.lost(attempt, UpstreamError::new(Cause::ClockBehind));
        }
    }

    /// Has the pump let go of its source. Its slot counts as coming back from now on, so that whoever is asked for
    /// next on the same account waits for it.
    fn release(&mut self) {
        self.pump.release();
        let slots = &self.env.slots;
        self.tries.retain(|_, it| {
            let is_followed = matches!(it.stage, Stage::Followed);
            if is_followed {
                slots.closing(it.lease);
            }
            !is_followed
        });
        if self.playing.take().is_some() {
            self.gap.get_or_insert_with(|| Gap { since: Instant::now(), cause: "released" });
        }
    }

    fn switch(&mut self, to: SwitchTo, reply: RpcReplyPort<SwitchOutcome>) {
        let to = match (to, &self.plan) {
            (SwitchTo::Next, _) => Some(Switch::Next),
            (SwitchTo::Stream(stream), Some(plan)) => {
                plan.candidates.iter().position(|it| it.stream == stream).map(Switch::To)
            }
            (SwitchTo::Stream(_), None) => None,
        };
        let Some(to) = to else { return answer(reply, SwitchOutcome::NoSuchStream) };
        if matches!(self.playout.state(), domain::playout::State::Idle) || self.ending.is_some() {
            return answer(reply, SwitchOutcome::NotLive);
        }
        // One whose asker went away keeps nobody out.
        if self.switching.as_ref().is_some_and(|it| !it.reply.is_closed()) {
            return answer(reply, SwitchOutcome::Busy);
        }
        self.switching = Some(Switching { reply, noted: None });
        self.input(Input::Switch(to));
    }

    fn answer_switch(&mut self, outcome: impl FnOnce(&Self) -> SwitchOutcome) {
        if let Some(switching) = self.switching.take() {
            answer(switching.reply, outcome(self));
        }
    }

    // --- The playout.

    fn input(&mut self, input: Input) {
        let actions = self.playout.on(input, Instant::now().into_std());
        for action in actions {
            self.carry_out(action);
        }
        self.arm();
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Ask { attempt, order, why } => self.ask(attempt, &order, why),
            Action::Open { attempt, .. } => self.open(attempt),
            Action::Follow { attempt } => self.follow(attempt),
            Action::Abandon { attempt } => {
                self.tries.remove(&attempt);
                self.env.slots.cancel(self.serial, attempt);
            }
            Action::Release => self.release(),
            Action::Redirect { index } => self.redirect(index),
            Action::Changed(change) => self.changed(change),
            Action::GiveUp(reason) => self.give_up(reason),
        }
    }

    fn ask(&mut self, attempt: Attempt, order: &[usize], why: Why) {
        let pools = order.iter().filter_map(|it| Some((*it, self.candidate(*it)?.pool))).collect();
        let asking = match why {
            Why::Start => Asking::Join(self.waiting.last().map(|it| it.wish.viewer.clone())),
            Why::Failover => Asking::Failover,
            Why::Switch => Asking::Switch,
        };
        let purpose = match self.target {
            Target::Channel(_) => Purpose::Live,
            Target::Stream(_) => Purpose::Preview,
        };
        self.env.slots.request(Request {
            holder: self.serial,
            port: self.myself.get_derived(),
            attempt,
            order: pools,
            asking,
            purpose,
        });
    }

    /// Wakes the playout up at its deadline.
    fn arm(&mut self) {
        let deadline = self.playout.deadline().map(Instant::from_std);
        match (deadline, &self.deadline) {
            (None, _) => self.deadline = None,
            (Some(at), Some((armed, _))) if at == *armed => {}
            (Some(at), _) => {
                let myself = self.myself.clone();
                let timer = tokio::spawn(async move {
                    tokio::time::sleep_until(at).await;
                    let _ = myself.cast(Message::Tick);
                });
                self.deadline = Some((at, AbortOnDropHandle::new(timer)));
            }
        }
    }

    fn redirect(&mut self, index: usize) {
        let Some(Candidate { url, .. }) = self.candidate(index) else { return };
        for join in self.waiting.drain(..) {
            answer(join.reply, Watch::Redirect(url.clone()));
        }
    }

    fn changed(&mut self, change: Change) {
        let gap_ms = self.gap.as_ref().map_or(0, |it| it.since.elapsed().as_millis() as u64);
        let cause = self.gap.as_ref().map_or("", |it| it.cause).to_owned();
        let channel = self.channel_ref();
        match change {
            Change::Started { index } => {
                let Some(stream) = self.now_playing(index) else { return };
                if let Some(asked) = self.asked_to_start.take() {
                    self.env.registry.started_after(asked.elapsed());
                }
                info!(channel.target = %self.target, stream.id = %stream.id, "channel plays");
                self.has_played = true;
                self.happened(EventBody::ChannelStart { channel, stream });
            }
            Change::Reconnected { index } => {
                let Some(stream) = self.now_playing(index) else { return };
                self.env.registry.reconnects.add_one();
                info!(channel.target = %self.target, stream.id = %stream.id, gap_ms, "channel reconnected");
                self.happened(EventBody::ChannelReconnect { channel, stream, cause, gap_ms });
            }
            Change::FailedOver { to, .. } => {
                let (Some(from), Some(to)) = (self.last_stream.clone(), self.now_playing(to)) else { return };
                self.n_failovers += 1;
                self.env.registry.failovers.add_one();
                warn!(
                    channel.target = %self.target, stream.from = %from.id, stream.to = %to.id, gap_ms,
                    "channel failed over"
                );
                self.happened(EventBody::ChannelFailover { channel, from, to, cause, gap_ms });
            }
            Change::Switched { to, .. } => {
                let (Some(from), Some(to)) = (self.last_stream.clone(), self.now_playing(to)) else { return };
                self.env.registry.switches.add_one();
                info!(
                    channel.target = %self.target, stream.from = %from.id, stream.to = %to.id, gap_ms,
                    "channel switched"
                );
                let (cause, stream) = ("manual".to_owned(), to.id);
                self.happened(EventBody::StreamSwitch { channel, from, to, cause, gap_ms });
                self.answer_switch(|_| SwitchOutcome::Switched { stream });
            }
            Change::SwitchFailed { .. } => {
                let reason = self.why_nothing_plays();
                warn!(channel.target = %self.target, "switch failed: {reason}");
                return self.answer_switch(|it| SwitchOutcome::Failed {
                    playing: it.playing.as_ref().map(|it| it.1.stream),
                    reason,
                });
            }
            Change::SwitchRefused(why) => {
                return self.answer_switch(|_| match why {
                    SwitchRefusal::Busy => SwitchOutcome::Busy,
                    SwitchRefusal::NoSuchPlace => SwitchOutcome::NoSuchStream,
                });
            }
            Change::SwitchNoted { to } => {
                let noted = self.candidate(to).map(|it| it.stream);
                if let Some(switching) = &mut self.switching {
                    switching.noted = noted;
                }
                return;
            }
            Change::Resting { until } => {
                let pause = Instant::from_std(until).saturating_duration_since(Instant::now());
                debug!(channel.target = %self.target, pause_ms = pause.as_millis() as u64, "channel rests");
                return;
            }
        }
        let noted = self.switching.as_ref().and_then(|it| it.noted);
        if let Some(stream) = self.playing.as_ref().map(|it| it.1.stream).filter(|it| noted == Some(*it)) {
            self.answer_switch(|_| SwitchOutcome::Switched { stream });
        }
    }

    /// The stream at this place of the plan plays from now on.
    fn now_playing(&mut self, index: usize) -> Option<StreamRef> {
        self.gap = None;
        self.last_full = None;
        let (attempt, _) = self.playout.playing()?;
        let candidate = self.candidate(index)?;
        // Whoever played before is done with: the pump dropped its source when it followed this one.
        self.tries.retain(|it, _| *it >= attempt);
        let stream = stream_ref(&candidate);
        self.playing = Some((attempt, candidate));
        self.last_stream = Some(stream.clone());
        Some(stream)
    }

    fn give_up(&mut self, reason: GiveUp) {
        let why = self.why_nothing_plays();
        let (refusal, end) = match reason {
            GiveUp::NoStreams => {
                let unplayable = self.plan.as_ref().and_then(|it| it.unplayable.first());
                let refusal =
                    unplayable.map_or(Refusal::NoStreams, |(_, why)| Refusal::Unplayable(why.to_string()));
                let end = End::NothingPlays(refusal.to_string().into());
                (refusal, end)
            }
            GiveUp::NoSlot => {
                self.env.registry.refused_full.add_one();
                let refusal = self.last_full.clone().map_or(Refusal::Stopping, Refusal::Full);
                let end = End::NoSlot(refusal.to_string().into());
                (refusal, end)
            }
            GiveUp::NothingPlays => (Refusal::NothingPlays(why.clone()), End::NothingPlays(why.into())),
            GiveUp::Silent => (Refusal::NothingPlays(why), End::Silent),
        };
        warn!(channel.target = %self.target, "channel gives up: {refusal}");
        self.happened(EventBody::ChannelError {
            channel: self.channel_ref(),
            error_message: refusal.to_string(),
            stream: self.last_stream.clone(),
        });
        self.refuse_waiting(&refusal);
        self.end(end);
    }

    fn why_nothing_plays(&self) -> String {
        match (&self.last_cause, &self.last_full) {
            (Some(cause), _) => cause.to_string(),
            (None, Some(full)) => Refusal::Full(full.clone()).to_string(),
            (None, None) => "no stream answered in time".to_owned(),
        }
    }

    // --- The end.

    /// Lets go of the upstream at once, and of the clients when they have their last chunks.
    fn end(&mut self, end: End) {
        if self.ending.is_some() {
            return;
        }
        self.end_reason = end.to_string();
        self.ring.end(end);
        self.refuse_waiting(&Refusal::Stopping);
        self.answer_switch(|_| SwitchOutcome::Failed {
            playing: None,
            reason: "the channel ended".to_owned(),
        });
        self.ending = Some(self.after(FAREWELL, Message::Farewell));
        self.input(Input::Stop);
        self.tries.clear();
        (self.report)(Report::Ending);
        if self.clients.len() == 0 {
            self.myself.stop(None);
        }
    }

    fn tell_stopped(&mut self) {
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

    // --- What is told to others.

    fn status(&self) -> Status {
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

    fn channel_ref(&self) -> ChannelRef {
        match &self.plan {
            Some(plan) => ChannelRef { uuid: plan.uuid, name: plan.name.clone(), number: plan.number },
            None => ChannelRef { uuid: uuid::Uuid::nil(), name: self.target.to_string(), number: None },
        }
    }

    /// The candidate an index of the playout means: of the plan, or one that left it but is still in use.
    fn candidate(&self, index: usize) -> Option<Candidate> {
        let place = self.playout.places().nth(index)?;
        let is_it = |it: &&Candidate| (it.stream, it.pool.profile) == (place.stream, place.profile);
        let in_use = self.playing.iter().map(|it| &it.1).chain(self.tries.values().map(|it| &it.candidate));
        let planned = self.plan.iter().flat_map(|it| &it.candidates);
        planned.chain(in_use).find(is_it).cloned()
    }

    fn happened(&self, body: EventBody) {
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        self.env.events.happened(Event { at: i64::try_from(at).unwrap_or(i64::MAX), body });
    }

    fn after(&self, delay: Duration, message: Message) -> AbortOnDropHandle<()> {
        let myself = self.myself.clone();
        AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            let _ = myself.cast(message);
        }))
    }
}

/// A stream as events name it.
fn stream_ref(candidate: &Candidate) -> StreamRef {
    StreamRef {
        id: candidate.stream,
        name: candidate.stream_name.clone(),
        url: candidate.url.clone(),
        profile_used: candidate.profile,
        account_name: candidate.pool.account_name.clone(),
    }
}

/// The extra headers of a candidate's request.
fn headers(candidate: &Candidate) -> Vec<(String, String)> {
    let referrer = candidate.headers.referrer.iter().map(|it| ("Referer".to_owned(), it.clone()));
    referrer.chain(candidate.headers.extra.iter().cloned()).collect()
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
