//! The message loop: the queue of refreshes of guides.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::core_settings::{SYSTEM_SETTINGS, time_zone};
use domain::event::{Event, EventBody, RefreshRef};
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::{AccountId, GuideSourceId};
use jiff::tz::TimeZone;
use ractor::{ActorProcessingErr, ActorRef};
use storage::Models;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};
use uuid::Uuid;

use super::error::GuideError;
use super::message::{GuideRefreshStart, Message};
use super::progress::{GuideProgress, GuideRefreshStatus};
use super::run::{GuideOptions, GuideSummary, ReportFn, finish};
use crate::ask::answer;
use crate::events::Events;
use crate::refresh::{RefreshQueue, RefreshTask, start_refresh};
use crate::schedule::{self, Known, Missed};
use crate::tasks;
use crate::writer::ScheduleWatch;

/// Maximum number of simultaneous refreshes. More would only take processor time from viewers.
const RUNNING_MAX: usize = 1;

/// Interval at which due schedules are checked. Schedules are in minutes.
const CHECK_PERIOD: Duration = Duration::from_secs(10);

/// Interval at which damaged guides are looked for.
const FILES_PERIOD: Duration = Duration::from_secs(1);

/// Maximum wait for a refresh to end when the system stops. It is cancelled before.
const STOP_DEADLINE: Duration = Duration::from_millis(800);

/// Delays of the tries after a failure that may be temporary. After the last one, the schedule decides.
const RETRY_DELAYS_MS: [i64; 3] = [60_000, 5 * 60_000, 20 * 60_000];

/// Minimum time between two downloads of guides from one panel account.
const PANEL_PAUSE: Duration = Duration::from_secs(10);

/// The function that runs one refresh; tests replace it.
pub(crate) type GuideWork = dyn Fn(GuideSourceId, GuideOptions, Box<ReportFn>) -> Pin<Box<dyn Future<Output = Done> + Send>>
    + Send
    + Sync;
type Done = Result<GuideSummary, GuideError>;

/// The dependencies of refreshes; until they are set, no guide can be refreshed.
#[derive(Clone)]
pub(crate) struct GuideImports {
    pub(crate) models: Models,
    pub(crate) work: Arc<GuideWork>,
    /// The sources whose guide is missing or damaged on the disk.
    pub(crate) damaged: Arc<dyn Fn() -> Vec<GuideSourceId> + Send + Sync>,
    /// Milliseconds since 1970.
    pub(crate) now: Arc<dyn Fn() -> i64 + Send + Sync>,
}

pub(crate) struct Actor;

pub(crate) struct Arguments {
    pub(crate) imports: Arc<OnceLock<GuideImports>>,
    pub(crate) progress: Arc<GuideProgress>,
    pub(crate) events: Events,
    /// Cancelled when the system stops.
    pub(crate) stop: CancellationToken,
}

pub(crate) struct State {
    arguments: Arguments,
    myself: ActorRef<Message>,
    /// Each is requested with the value of `force`.
    refreshes: RefreshQueue<GuideSourceId, bool, RefreshTask>,
    /// End of the last refresh of each source, in case it could not be stored.
    tried: BTreeMap<GuideSourceId, i64>,
    retries: BTreeMap<GuideSourceId, Retry>,
    /// Sources with a damaged guide that was fetched again. If that failed, its retries and the schedule follow.
    mended: BTreeSet<GuideSourceId>,
    /// Start of the last download from each panel account.
    panels: BTreeMap<AccountId, Instant>,
    schedules: ScheduleWatch,
    _tickers: [AbortOnDropHandle<()>; 2],
}

/// The tries after a failure.
#[derive(Clone, Copy)]
struct Retry {
    /// Number of tries that have failed.
    n_failed: usize,
    /// Milliseconds since 1970; `None` after the last try.
    due: Option<i64>,
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
        // Refreshes of a previous actor ended with it.
        arguments.progress.interrupt_all();
        let tickers = [
            tasks::ticks(&myself, CHECK_PERIOD, || Message::CheckSchedules),
            tasks::ticks(&myself, FILES_PERIOD, || Message::CheckFiles),
        ];
        Ok(State {
            arguments,
            myself,
            refreshes: RefreshQueue::new(RUNNING_MAX),
            tried: BTreeMap::new(),
            retries: BTreeMap::new(),
            mended: BTreeSet::new(),
            panels: BTreeMap::new(),
            schedules: ScheduleWatch::default(),
            _tickers: tickers,
        })
    }

    async fn handle(
        &self,
        _myself: ActorRef<Message>,
        message: Message,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        if state.arguments.stop.is_cancelled() {
            // The dropped reply port tells the caller that the gateway is stopping.
            return Ok(());
        }
        let Some(imports) = state.arguments.imports.get().cloned() else {
            match message {
                Message::Refresh { reply, .. } => answer(reply, GuideRefreshStart::NoSuchSource),
                Message::Changed { reply, .. } => answer(reply, ()),
                Message::CheckSchedules | Message::CheckFiles | Message::Finished { .. } => {}
            }
            return Ok(());
        };
        match message {
            Message::Refresh { source, force, reply } => {
                answer(reply, state.request(&imports, source, force))
            }
            Message::Changed { source, has_new_guide, force, reply } => {
                state.changed(&imports, source, has_new_guide, force);
                answer(reply, ());
            }
            Message::CheckSchedules => {
                // In a cluster, this is the work of the node that writes the configuration.
                let (store, now) = (&imports.models.store, (imports.now)());
                let look = || Message::CheckSchedules;
                if let Some(missed) = state.schedules.look(store, now, &state.myself, look) {
                    state.check_schedules(&imports, missed, now);
                }
                state.start_next(&imports);
            }
            Message::CheckFiles => state.mend(&imports),
            Message::Finished { source, job, done } => state.finished(&imports, source, job, done),
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<Message>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.arguments.stop.cancel();
        state.refreshes.ended(STOP_DEADLINE).await;
        Ok(())
    }
}

impl State {
    fn request(&mut self, imports: &GuideImports, source: GuideSourceId, force: bool) -> GuideRefreshStart {
        match imports.models.guide_sources.load().get(source.0) {
            None => return GuideRefreshStart::NoSuchSource,
            Some(it) if !it.kind.is_refreshed() => return GuideRefreshStart::NotRefreshed,
            Some(it) if !it.is_active => return GuideRefreshStart::Inactive,
            Some(it) if !it.has_location() => return GuideRefreshStart::NoLocation,
            Some(_) => {}
        }
        let job = Uuid::new_v4();
        if let Err(job) = self.refreshes.add(source, job, force) {
            return GuideRefreshStart::AlreadyRunning { job };
        }
        self.arguments.progress.begin(GuideRefreshStatus::new(source, job, (imports.now)()));
        self.start_next(imports);
        GuideRefreshStart::Started { job }
    }

    fn changed(&mut self, imports: &GuideImports, source: GuideSourceId, has_new_guide: bool, force: bool) {
        self.retries.remove(&source);
        if let Some(running) = self.refreshes.running_mut(source) {
            if has_new_guide {
                running.again = Some(force || running.again == Some(true));
            }
            running.work.stop.cancel();
        } else if has_new_guide {
            // A waiting refresh reads the source when its turn comes.
            self.request(imports, source, force);
            if let Some(waiting) = self.refreshes.waiting_mut(source) {
                *waiting |= force;
            }
        }
    }

    /// Starts the first waiting refresh whose panel was not asked a moment ago.
    fn start_next(&mut self, imports: &GuideImports) {
        self.panels.retain(|_, asked| asked.elapsed() < PANEL_PAUSE);
        let sources = imports.models.guide_sources.load();
        let panel = |it: GuideSourceId| {
            sources.get(it.0).filter(|it| it.kind == GuideSourceKind::Panel).and_then(|it| it.account)
        };
        let panels = &self.panels;
        let is_ready = |it| panel(it).is_none_or(|account| !panels.contains_key(&account));
        let Some(next) = self.refreshes.take_next(is_ready) else { return };
        let (source, job, force) = (next.id, next.job, next.request);
        self.panels.extend(panel(source).map(|account| (account, Instant::now())));
        let name = sources.get(source.0).map(|it| it.name.clone()).unwrap_or_default();
        let stop = self.arguments.stop.child_token();
        let options = GuideOptions { force, job, stop: stop.clone(), at: None };
        let (progress, reported) = (self.arguments.progress.clone(), self.arguments.progress.clone());
        let (myself, work) = (self.myself.clone(), imports.work.clone());
        let refresh = async move { work(source, options, Box::new(move |it| reported.update(it))).await };
        let panicked = Err(GuideError::Panicked);
        let task = start_refresh(progress, (source, job), refresh, panicked, finish, move |done| {
            // The cast fails when the system has ended.
            let _ = myself.cast(Message::Finished { source, job, done });
        });
        self.refreshes.started(next, RefreshTask { name, stop, task });
    }

    fn finished(&mut self, imports: &GuideImports, source: GuideSourceId, job: Uuid, done: Done) {
        let Some(running) = self.refreshes.finished(source, job) else { return };
        let at = (imports.now)();
        let sources = imports.models.guide_sources.load();
        self.tried.retain(|it, _| sources.get(it.0).is_some());
        self.retries.retain(|it, _| sources.get(it.0).is_some());
        self.tried.insert(source, at);
        let took = running.began.elapsed();
        let name = running.work.name;
        match done {
            Ok(summary) => {
                self.retries.remove(&source);
                let seconds = took.as_secs_f64();
                info!(source.id = %source, seconds, "guide \"{name}\" refreshed: {}", summary.sentence());
                let body = summary.event(source, name, took);
                // Integrations have it from the refresh.
                self.arguments.events.announce(Event { at, body });
            }
            Err(GuideError::Stopped | GuideError::SourceChanged) => {
                info!(source.id = %source, "the refresh of guide \"{name}\" was stopped");
            }
            Err(error) => {
                self.plan_retry(source, &error, at);
                warn!(source.id = %source, "failed to refresh guide \"{name}\": {error}");
                let body = EventBody::EpgError {
                    source: RefreshRef { id: source.0, name },
                    reason: error.sentence(),
                };
                self.arguments.events.emit(Event { at, body });
            }
        }
        if let Some(force) = running.again {
            // A source that was deleted or has no location any more is skipped.
            self.request(imports, source, force);
        }
        self.start_next(imports);
    }

    /// Plans another try after a failure that may be temporary.
    fn plan_retry(&mut self, source: GuideSourceId, error: &GuideError, now: i64) {
        let n_failed = self.retries.get(&source).map_or(0, |it| it.n_failed);
        let delay = RETRY_DELAYS_MS.get(n_failed).filter(|_| error.is_temporary());
        let due = delay.map(|it| now.saturating_add(*it));
        self.retries.insert(source, Retry { n_failed: n_failed + 1, due });
    }

    /// Fetches guides again whose file is damaged, as soon as that was found.
    fn mend(&mut self, imports: &GuideImports) {
        // In a cluster, this is the work of the node that writes the configuration.
        if !imports.models.store.writes_shared() {
            return;
        }
        let damaged = (imports.damaged)();
        self.mended.retain(|it| damaged.contains(it));
        let sources = imports.models.guide_sources.load();
        for source in damaged.iter().filter_map(|it| sources.get(it.0)).filter(|it| it.can_be_refreshed()) {
            if self.refreshes.job(source.id).is_none() && self.mended.insert(source.id) {
                warn!(source.id = %source.id, "guide \"{}\" is damaged and is fetched again", source.name);
                self.request(imports, source.id, false);
            }
        }
    }

    /// Starts the refreshes that are due.
    fn check_schedules(&mut self, imports: &GuideImports, missed: Missed, now: i64) {
        let settings = imports.models.settings.load();
        let zone =
            schedule::time_zone(time_zone(settings.one_by("key", SYSTEM_SETTINGS).map(|it| &it.value)));
        let states = imports.models.guide_states.load();
        let sources = imports.models.guide_sources.load();
        for source in sources.iter().filter(|it| it.can_be_refreshed()) {
            let written = states.get(source.id.0).and_then(|it| it.tried_at);
            let tried_at = written.max(self.tried.get(&source.id).copied());
            let retry = self.retries.get(&source.id).and_then(|it| it.due);
            let is_due = retry.is_some_and(|it| it <= now) || is_due(source, &zone, tried_at, missed, now);
            if is_due && self.refreshes.job(source.id).is_none() {
                if let Some(retry) = self.retries.get_mut(&source.id) {
                    retry.due = None;
                }
                self.request(imports, source.id, false);
            }
        }
    }
}

fn is_due(source: &GuideSource, zone: &TimeZone, tried_at: Option<i64>, missed: Missed, now: i64) -> bool {
    let known = Known { id: source.id.0, tried_at, updated_at: source.updated_at, missed };
    schedule::next_due(&source.schedule, zone, &known).is_some_and(|due| due <= now)
}
