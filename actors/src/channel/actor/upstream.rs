//! The provider's side of a live channel: plan, playout, attempts, pump and ring.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use domain::event::ChannelRef;
use domain::ids::{ProfileId, StreamId};
use domain::plan::{Candidate, Plan, SlotPool};
use domain::playout::{Action, Attempt, AttemptReason, Input, Lack, Playout, PlayoutSettings, PlayoutState};
use domain::settings::Settings;
use domain::source_url::SourceUrl;
use media::pump::{self, PumpHandle, PumpSettings};
use media::ring::{self, EndReason, Ring, RingSettings};
use media::source::{KnownSource, Source};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::context::{Context, DropAlarm};
use crate::channel::Message;
use crate::health::{PlayMeter, StreamFacts};
use crate::registry::{Registered, WatchedChannel};
use crate::slots::Lease;

/// Progress of an attempt. Dropping it releases what the attempt holds.
enum Stage {
    Granted(Lease),
    Opening {
        _opener: AbortOnDropHandle<()>,
        since: Instant,
    },
    Opened(Box<Source>),
    /// The pump reads the source beside the one that plays.
    Prepared,
    Followed,
}

struct Try {
    candidate: Candidate,
    lease: u64,
    just_released: bool,
    stage: Stage,
}

/// A granted lease that was taken out of its attempt in order to open the stream.
pub(super) struct Grant {
    pub(super) candidate: Candidate,
    pub(super) lease: Lease,
    just_released: bool,
}

/// An attempt that failed, or whose source was lost.
pub(super) struct LostAttempt {
    pub(super) candidate: Candidate,
    /// Number of its lease.
    pub(super) lease: u64,
    /// Whether the provider may still have counted the previous connection.
    pub(super) just_released: bool,
    /// Whether a retry of the same account waits for that, because the channel has no other account.
    pub(super) waits_for_release: bool,
    /// Whether its source was the one that played.
    pub(super) was_playing: bool,
    /// For how long it played.
    pub(super) played: Option<Duration>,
    /// Whether it played for long enough that its end does not count as a failure.
    pub(super) played_well: bool,
}

/// Everything that a release gives back.
pub(super) struct Released {
    /// Numbers of the leases whose sockets the pump closes.
    pub(super) leases: Vec<u64>,
    /// Whether a source was playing.
    pub(super) was_playing: bool,
}

/// The provider's side of a live channel.
///
/// Every attempt in `tries` was granted and is not over; at most the one that plays and one more.
pub(super) struct ChannelUpstream {
    plan: Option<Arc<Plan>>,
    /// Streams that are not of the channel and that an admin chose. Each is in the plan until another stream plays; two are for
    /// as long as a switch from one to the other takes.
    outside_streams: Vec<StreamId>,
    /// Name of the channel for the log; that of its target before there is a plan.
    name: Arc<str>,
    playout: Playout,
    tries: BTreeMap<Attempt, Try>,
    playing: Option<(Attempt, Candidate)>,
    /// The findings of the last openings of addresses of the plan.
    known_sources: HashMap<SourceUrl, KnownSource>,
    deadline: Option<(Instant, AbortOnDropHandle<()>)>,
    ring: Ring,
    pump: PumpHandle,
    /// Measures the stream that plays.
    meter: Arc<PlayMeter>,
    /// Aborts the pump when it is dropped.
    #[cfg_attr(not(any(test, feature = "testing")), expect(dead_code, reason = "only its drop matters"))]
    pump_task: AbortOnDropHandle<()>,
    _registered: Registered,
}

impl ChannelUpstream {
    /// Creates the ring and starts the pump.
    pub(super) fn new(context: &Context) -> Self {
        let Context { env, target, serial, myself, .. } = context;
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
        let to = myself.clone();
        let (pump, running) = pump::pump(
            writer,
            PumpSettings {
                stall_timeout: settings.stall_timeout,
                silence_suspected_after: settings.silence_suspected_after,
                picture_timeout: settings.picture_timeout,
                sound_timeout: settings.sound_timeout,
                give_up_after: settings.give_up_after,
                random_access_wait: settings.random_access_wait,
                // More would be gone from the ring before viewers have received it.
                start_lead: settings.start_lead.min(settings.ring_seconds),
                buffering_timeout: settings.buffering_timeout,
                lead_max: settings.recording_lead_seconds,
                ..PumpSettings::default()
            },
            Some(env.stream_guides.sections_of(target)),
            move |message| {
                // The cast fails when the channel has ended; the message does not matter then.
                let _ = to.cast(match message {
                    pump::PumpMessage::Ready(attempt) => Message::Ready(Attempt(attempt)),
                    pump::PumpMessage::Playing(attempt) => Message::Playing(Attempt(attempt)),
                    pump::PumpMessage::Silent { attempt, silence } => {
                        Message::Silent(Attempt(attempt), silence)
                    }
                    pump::PumpMessage::Resumed(attempt) => Message::Resumed(Attempt(attempt)),
                    pump::PumpMessage::Lacks { attempt, lack, never } => {
                        Message::Lacks { attempt: Attempt(attempt), lack: missing_part(lack), never }
                    }
                    pump::PumpMessage::Complete { attempt, lack } => {
                        Message::Complete(Attempt(attempt), missing_part(lack))
                    }
                    pump::PumpMessage::Picture { attempt, event } => {
                        Message::Picture(Attempt(attempt), event)
                    }
                    pump::PumpMessage::Lost { attempt, cause } => Message::Lost(Attempt(attempt), cause),
                });
            },
        );
        let alarm = DropAlarm::new(myself.clone(), Message::PumpGone);
        let pump_task = env.packets.spawn(async move {
            let _alarm = alarm;
            running.await;
        });
        let registered = env.registry.channel(
            *serial,
            WatchedChannel {
                target: *target,
                pump: pump.clone(),
                ring: ring.clone(),
                port: myself.get_derived(),
                still: Arc::default(),
            },
        );
        let meter = Arc::new(PlayMeter::new(env.health.clone(), pump.clone(), ring.clone()));
        env.health.follow(&meter);
        Self {
            plan: None,
            outside_streams: Vec::new(),
            name: target.to_string().into(),
            playout: Playout::new(Vec::new(), PlayoutSettings::from(&*settings), *serial),
            tries: BTreeMap::new(),
            playing: None,
            known_sources: HashMap::new(),
            deadline: None,
            ring,
            pump,
            meter,
            pump_task: AbortOnDropHandle::new(pump_task),
            _registered: registered,
        }
    }

    /// Sets the first plan and starts over with a new playout.
    pub(super) fn load(&mut self, plan: Arc<Plan>, settings: &Settings, serial: u64) {
        let places = plan.candidates.iter().map(Candidate::playout_candidate).collect();
        self.playout = Playout::new(places, PlayoutSettings::from(settings).with_programs(), serial);
        self.name = plan.name.as_str().into();
        self.plan = Some(plan);
    }

    /// Replaces the plan. Returns the input for the playout, and whether the plan differs from the old one.
    pub(super) fn replan(&mut self, plan: Arc<Plan>) -> (Input, bool) {
        let places = plan.candidates.iter().map(Candidate::playout_candidate).collect();
        let is_changed = self.plan.as_ref() != Some(&plan);
        self.name = plan.name.as_str().into();
        self.known_sources.retain(|url, _| plan.candidates.iter().any(|it| it.url == *url));
        self.plan = Some(plan);
        (Input::Replan(places), is_changed)
    }

    /// Adds a stream that is not of the channel.
    pub(super) fn add_outside_stream(&mut self, stream: StreamId) {
        self.outside_streams.push(stream);
    }

    /// Returns the streams that are not of the channel and that an admin chose.
    pub(super) fn outside_streams(&self) -> &[StreamId] {
        &self.outside_streams
    }

    /// Drops those that do not play while another stream does. Returns whether the plan has to be built again.
    pub(super) fn drop_outside_streams(&mut self) -> bool {
        let Some(playing) = self.playing().map(|it| it.stream) else { return false };
        let n_before = self.outside_streams.len();
        self.outside_streams.retain(|it| *it == playing);
        self.outside_streams.len() < n_before
    }

    /// Lets the playout decide what an input leads to.
    pub(super) fn decide(&mut self, input: Input) -> Vec<Action> {
        self.playout.on(input, Instant::now().into_std())
    }

    pub(super) fn plan(&self) -> Option<&Arc<Plan>> {
        self.plan.as_ref()
    }

    /// Returns the name of the channel for the log.
    pub(super) fn name(&self) -> Arc<str> {
        self.name.clone()
    }

    pub(super) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Name of the playout's state, for status and timeline.
    pub(super) fn state_name(&self) -> &'static str {
        self.playout.state_name()
    }

    /// Returns the title that the stream sent last.
    pub(super) fn title(&self) -> Option<String> {
        self.pump.title().map(|it| it.to_string())
    }

    /// Returns codecs and pictures of the stream that plays.
    pub(super) fn facts(&self) -> StreamFacts {
        self.meter.facts()
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.playout.state(), PlayoutState::Idle)
    }

    /// Returns whether viewers have seen something since the playout was started, here or at another node before.
    pub(super) fn has_played(&self) -> bool {
        self.playout.has_played()
    }

    /// Returns the candidate that plays.
    pub(super) fn playing(&self) -> Option<&Candidate> {
        self.playing.as_ref().map(|it| &it.1)
    }

    /// Returns the account profile whose slot the channel uses.
    pub(super) fn profile(&self) -> Option<ProfileId> {
        let tried = || self.tries.values().next().map(|it| &it.candidate);
        self.playing().or_else(tried).map(|it| it.pool.profile)
    }

    /// Returns a pool of the plan.
    pub(super) fn pool(&self, profile: ProfileId) -> Option<&SlotPool> {
        let candidates = self.plan.iter().flat_map(|it| &it.candidates);
        candidates.map(|it| &it.pool).find(|it| it.profile == profile)
    }

    /// Sets the account profile that is requested first at the next start.
    pub(super) fn choose_first(&mut self, profile: Option<ProfileId>) {
        self.playout.choose_first(profile);
    }

    /// Ends the measurement of the stream that plays. Returns for how long it played.
    pub(super) fn end_play(&self) -> Option<Duration> {
        self.meter.end()
    }

    /// Returns whether the attempt in progress exists because the source that plays is silent or lacks a part.
    pub(super) fn is_speculative(&self) -> bool {
        match self.playout.state() {
            PlayoutState::Beside { next, .. } => next.why.is_speculative(),
            _ => false,
        }
    }

    pub(super) fn is_playing(&self, attempt: Attempt) -> bool {
        self.played_by(attempt).is_some()
    }

    /// Returns the candidate of this attempt if it plays.
    pub(super) fn played_by(&self, attempt: Attempt) -> Option<&Candidate> {
        self.playing.as_ref().filter(|it| it.0 == attempt).map(|it| &it.1)
    }

    /// Returns the channel as events name it.
    pub(super) fn channel_ref(&self) -> ChannelRef {
        match &self.plan {
            Some(plan) => ChannelRef { uuid: plan.uuid, name: plan.name.clone(), number: plan.number },
            None => ChannelRef { uuid: uuid::Uuid::nil(), name: self.name.to_string(), number: None },
        }
    }

    /// Returns the candidate for an index of the playout. It may have left the plan while it is still in use.
    pub(super) fn candidate(&self, index: usize) -> Option<Candidate> {
        let place = self.playout.candidates().nth(index)?;
        let is_it = |it: &&Candidate| (it.stream, it.pool.profile) == (place.stream, place.profile);
        let in_use = self.playing.iter().map(|it| &it.1).chain(self.tries.values().map(|it| &it.candidate));
        let planned = self.plan.iter().flat_map(|it| &it.candidates);
        planned.chain(in_use).find(is_it).cloned()
    }

    /// Returns the streams of the plan without the one that plays.
    pub(super) fn other_streams(&self) -> impl Iterator<Item = StreamId> {
        let playing = self.playing().map(|it| it.stream);
        let planned = self.plan.iter().flat_map(|it| &it.candidates).map(|it| it.stream);
        planned.filter(move |it| Some(*it) != playing)
    }

    /// Returns the place of a stream in the plan.
    pub(super) fn place_of(&self, stream: StreamId) -> Option<usize> {
        self.plan.as_ref()?.candidates.iter().position(|it| it.stream == stream)
    }

    /// Begins an attempt with a granted lease. Returns whether the index has a candidate.
    pub(super) fn granted(&mut self, attempt: Attempt, index: usize, lease: Lease) -> bool {
        let Some(candidate) = self.candidate(index) else { return false };
        let (id, just_released) = (lease.id(), lease.just_released());
        self.tries.insert(attempt, Try { candidate, lease: id, just_released, stage: Stage::Granted(lease) });
        true
    }

    /// Drops a lease that the playout did not use because the grant was out of date.
    pub(super) fn drop_unused_grant(&mut self, attempt: Attempt) {
        if matches!(self.tries.get(&attempt), Some(Try { stage: Stage::Granted(_), .. })) {
            self.tries.remove(&attempt);
        }
    }

    /// Takes the lease of a granted attempt, for its opener. [`Self::opening`] has to follow.
    pub(super) fn take_grant(&mut self, attempt: Attempt) -> Option<Grant> {
        match self.tries.remove(&attempt)? {
            Try { candidate, just_released, stage: Stage::Granted(lease), .. } => {
                Some(Grant { candidate, lease, just_released })
            }
            _ => None,
        }
    }

    /// Records that an opener works on an attempt: `open` starts it and gets the lease.
    pub(super) fn opening(
        &mut self,
        attempt: Attempt,
        grant: Grant,
        open: impl FnOnce(&Candidate, Lease) -> AbortOnDropHandle<()>,
    ) {
        let Grant { candidate, lease, just_released } = grant;
        let lease_id = lease.id();
        let stage = Stage::Opening { _opener: open(&candidate, lease), since: Instant::now() };
        self.tries.insert(attempt, Try { candidate, lease: lease_id, just_released, stage });
    }

    /// Keeps an opened source. Returns its candidate and the time that the opening took, or `None` if its attempt is over;
    /// the source is dropped then.
    pub(super) fn opened(&mut self, attempt: Attempt, source: Source) -> Option<(Candidate, Duration)> {
        let it = self.tries.get_mut(&attempt)?;
        let took = match &it.stage {
            Stage::Opening { since, .. } => since.elapsed(),
            _ => Duration::ZERO,
        };
        let known = &source.info().known;
        if *known != KnownSource::default() {
            self.known_sources.insert(it.candidate.url.clone(), known.clone());
        }
        it.stage = Stage::Opened(Box::new(source));
        Some((it.candidate.clone(), took))
    }

    /// Returns what the last opening of this address has shown.
    pub(super) fn known_source(&self, url: &SourceUrl) -> KnownSource {
        self.known_sources.get(url).cloned().unwrap_or_default()
    }

    /// Passes an opened source to the pump, to be read beside the one that plays.
    pub(super) fn prepare(&mut self, attempt: Attempt) {
        let Some(it) = self.tries.get_mut(&attempt) else { return };
        if let Stage::Opened(source) = std::mem::replace(&mut it.stage, Stage::Prepared) {
            let needs = match self.playout.state() {
                PlayoutState::Beside { next, .. } => match next.why {
                    AttemptReason::Lack(lack) => Some(needed_part(lack)),
                    _ => None,
                },
                _ => None,
            };
            self.pump.prepare(attempt.0, self.meter.known_stream(it.candidate.stream), needs, *source);
        }
    }

    /// Makes the pump follow an opened or prepared source.
    pub(super) fn follow(&mut self, attempt: Attempt) {
        let Some(it) = self.tries.get_mut(&attempt) else { return };
        match std::mem::replace(&mut it.stage, Stage::Followed) {
            Stage::Opened(source) => {
                self.pump.follow(attempt.0, self.meter.known_stream(it.candidate.stream), *source);
            }
            Stage::Prepared => self.pump.follow_prepared(attempt.0),
            Stage::Granted(_) | Stage::Opening { .. } | Stage::Followed => {}
        }
    }

    /// Records that the source of an attempt plays, and drops older attempts: the pump dropped their sources when it
    /// followed this one. Returns the candidate.
    pub(super) fn plays(&mut self, index: usize) -> Option<&Candidate> {
        let (attempt, _) = self.playout.playing()?;
        let candidate = self.candidate(index)?;
        self.tries.retain(|it, _| *it >= attempt);
        self.meter.end();
        self.meter.begin(candidate.stream);
        Some(&self.playing.insert((attempt, candidate)).1)
    }

    /// Ends an attempt that failed. Returns `None` when it is already over.
    pub(super) fn lost(&mut self, attempt: Attempt) -> Option<LostAttempt> {
        let was_playing = self.is_playing(attempt);
        let played_well = was_playing && self.playout.has_played_well(Instant::now().into_std());
        let it = self.tries.remove(&attempt)?;
        let mut played = None;
        if was_playing {
            self.playing = None;
            played = self.meter.end();
        } else {
            // The next attempt finds out again what the address leads to.
            self.known_sources.remove(&it.candidate.url);
        }
        let waits_for_release =
            self.plan.as_ref().is_some_and(|plan| plan.waits_for_release(&it.candidate.pool));
        Some(LostAttempt {
            candidate: it.candidate,
            lease: it.lease,
            just_released: it.just_released,
            waits_for_release,
            was_playing,
            played,
            played_well,
        })
    }

    /// Closes the source of a revoked lease at once. Returns its attempt, for [`Self::lost`], which has to follow.
    pub(super) fn revoke(&mut self, lease: u64) -> Option<Attempt> {
        let followed = self.tries.iter().rev().find(|it| matches!(it.1.stage, Stage::Followed));
        let followed = followed.map(|it| *it.0);
        let (&attempt, it) = self.tries.iter().find(|it| it.1.lease == lease)?;
        match it.stage {
            Stage::Prepared => self.pump.drop_prepared(),
            // The pump has dropped an older one already.
            Stage::Followed if followed == Some(attempt) => self.pump.release(),
            // Dropped with its attempt.
            Stage::Followed | Stage::Granted(_) | Stage::Opening { .. } | Stage::Opened(_) => {}
        }
        Some(attempt)
    }

    /// Drops everything that belongs to an attempt. Returns the number of the lease whose socket the pump closes.
    pub(super) fn abandon(&mut self, attempt: Attempt) -> Option<u64> {
        let it = self.tries.remove(&attempt)?;
        matches!(it.stage, Stage::Prepared).then(|| {
            self.pump.drop_prepared();
            it.lease
        })
    }

    /// Makes the pump drop its source.
    pub(super) fn release(&mut self) -> Released {
        self.meter.end();
        self.pump.release();
        let followed = |it: &Try| matches!(it.stage, Stage::Followed);
        let leases = self.tries.values().filter(|it| followed(it)).map(|it| it.lease).collect();
        self.tries.retain(|_, it| !followed(it));
        Released { leases, was_playing: self.playing.take().is_some() }
    }

    /// Drops every attempt and with it the leases that the pump does not hold.
    pub(super) fn drop_attempts(&mut self) {
        self.tries.clear();
    }

    /// Releases everything that holds a slot.
    pub(super) fn shut_down(&mut self) {
        self.meter.end();
        self.tries.clear();
        self.pump.drop_prepared();
        self.pump.release();
    }

    pub(super) fn pump(&self) -> &PumpHandle {
        &self.pump
    }

    /// Makes the pump drop the connection to the origin that it follows.
    pub(super) fn release_pull(&self) {
        self.pump.release();
    }

    /// Ends the ring: clients read their last chunks, then this reason.
    pub(super) fn end_ring(&self, reason: EndReason) {
        self.ring.end(reason);
    }

    /// Sets the timer that wakes the playout at its deadline.
    pub(super) fn arm_deadline(&mut self, context: &Context) {
        let deadline = self.playout.deadline().map(Instant::from_std);
        match (deadline, &self.deadline) {
            (None, _) => self.deadline = None,
            (Some(at), Some((armed, _))) if at == *armed => {}
            (Some(at), _) => {
                let myself = context.myself.clone();
                let timer = crate::tasks::spawn(async move {
                    tokio::time::sleep_until(at).await;
                    let _ = myself.cast(Message::Tick);
                });
                self.deadline = Some((at, AbortOnDropHandle::new(timer)));
            }
        }
    }

    /// Forgets the timer, because it fired.
    pub(super) fn deadline_passed(&mut self) {
        self.deadline = None;
    }

    /// Aborts the pump, as a defect in it would.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn abort_pump(&self) {
        self.pump_task.abort();
    }
}

fn missing_part(lack: pump::Lack) -> Lack {
    match lack {
        pump::Lack::Picture => Lack::Picture,
        pump::Lack::Sound => Lack::Sound,
        pump::Lack::Motion => Lack::Motion,
    }
}

fn needed_part(lack: Lack) -> pump::Lack {
    match lack {
        Lack::Picture => pump::Lack::Picture,
        Lack::Sound => pump::Lack::Sound,
        Lack::Motion => pump::Lack::Motion,
    }
}
