//! The loop of the importer: whose turn it is.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::account::{Account, PlaylistLocation};
use domain::core_settings::{SYSTEM_SETTINGS, time_zone};
use domain::event::{Event, EventBody, RefreshRef};
use domain::ids::AccountId;
use jiff::tz::TimeZone;
use ractor::{ActorProcessingErr, ActorRef};
use storage::Models;
use tokio::time::{Instant, MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};
use uuid::Uuid;

use super::job::ReportFn;
use super::run::finish;
use super::{
    ImportError, ImportOptions, ImportSummary, Message, RefreshPhase, RefreshProgress, RefreshStart,
    RefreshStatus,
};
use crate::ask::answer;
use crate::events::Events;
use crate::schedule::{self, Known};
use crate::tasks;

/// Refreshes at one time. More would only take the processor from those who watch.
const RUNNING_MAX: usize = 2;

/// How often it is looked for what is due. Schedules are in minutes.
const LOOK_PERIOD: Duration = Duration::from_secs(10);

/// How long refreshes have to end when the system stops. They are asked before.
const STOP_DEADLINE: Duration = Duration::from_millis(800);

/// One import, whoever does it.
pub(crate) type Work = dyn Fn(AccountId, ImportOptions, Box<ReportFn>) -> Pin<Box<dyn Future<Output = Done> + Send>>
    + Send
    + Sync;
type Done = Result<ImportSummary, ImportError>;

/// What imports need; there are none until it is there.
#[derive(Clone)]
pub(crate) struct Imports {
    pub(crate) models: Models,
    pub(crate) work: Arc<Work>,
    /// Milliseconds since 1970.
    pub(crate) now: Arc<dyn Fn() -> i64 + Send + Sync>,
}

pub(crate) struct Actor;

pub(crate) struct Arguments {
    pub(crate) imports: Arc<OnceLock<Imports>>,
    pub(crate) progress: Arc<RefreshProgress>,
    pub(crate) events: Events,
    /// Cancelled when the system stops.
    pub(crate) stop: CancellationToken,
}

pub(crate) struct State {
    arguments: Arguments,
    myself: ActorRef<Message>,
    running: BTreeMap<AccountId, Running>,
    /// Who waits for a turn. Bounded by the number of accounts: nobody is in it twice.
    waiting: VecDeque<Waiting>,
    /// When the last refresh of an account ended here, should it not have been written down.
    tried: BTreeMap<AccountId, i64>,
    /// Since when schedules are looked at.
    started_at: Option<i64>,
    _ticker: AbortOnDropHandle<()>,
}

struct Running {
    job: Uuid,
    name: String,
    began: Instant,
    stop: CancellationToken,
    /// Its account was changed meanwhile: another one follows.
    again: bool,
    /// It is such another one. Who changes an account again and again has its list asked for now and then only.
    follows: bool,
    task: AbortOnDropHandle<()>,
}

struct Waiting {
    job: Uuid,
    wish: RefreshRequest,
}

/// A refresh that somebody or something wants.
struct RefreshRequest {
    account: AccountId,
    confirm: bool,
    /// It follows one that was overtaken by a change.
    follows: bool,
}

impl RefreshRequest {
    fn of(account: AccountId) -> Self {
        Self { account, confirm: false, follows: false }
    }
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
        // Those of an actor before us ended with it.
        arguments.progress.break_off();
        let (ticks, to) = (LOOK_PERIOD, myself.clone());
        let ticking = async move {
            let mut ticks = tokio::time::interval(ticks);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if to.cast(Message::Look).is_err() {
                    return;
                }
            }
        };
        let ticker = tasks::linked(&myself, ticking);
        Ok(State {
            arguments,
            myself,
            running: BTreeMap::new(),
            waiting: VecDeque::new(),
            tried: BTreeMap::new(),
            started_at: None,
            _ticker: ticker,
        })
    }

    async fn handle(
        &self,
        _myself: ActorRef<Message>,
        message: Message,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        if state.arguments.stop.is_cancelled() {
            // Who asked finds no answer, and that is the answer.
            return Ok(());
        }
        let Some(imports) = state.arguments.imports.get().cloned() else {
            match message {
                Message::Refresh { reply, .. } => answer(reply, RefreshStart::NoSuchAccount),
                Message::Changed { reply, .. } => answer(reply, ()),
                Message::Look | Message::Finished { .. } => {}
            }
            return Ok(());
        };
        match message {
            Message::Refresh { account, confirm, reply } => {
                answer(
                    reply,
                    state.wish(&imports, RefreshRequest { confirm, ..RefreshRequest::of(account) }),
                );
            }
            Message::Changed { account, has_new_list, reply } => {
                state.changed(&imports, account, has_new_list);
                answer(reply, ());
            }
            Message::Look => state.look(&imports),
            Message::Finished { account, job, done } => state.finished(&imports, account, job, done),
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<Message>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.arguments.stop.cancel();
        let running = std::mem::take(&mut state.running);
        let ended = async {
            for (_, it) in running {
                // How it ended is told by the task itself.
                let _ = it.task.await;
            }
        };
        // What does not end in time is dropped, and writes nothing.
        let _ = timeout(STOP_DEADLINE, ended).await;
        Ok(())
    }
}

impl State {
    fn wish(&mut self, imports: &Imports, wish: RefreshRequest) -> RefreshStart {
        let account = wish.account;
        match imports.models.accounts.load().get(account.0) {
            None => return RefreshStart::NoSuchAccount,
            Some(it) if it.list == PlaylistLocation::None => return RefreshStart::NoList,
            Some(it) if !it.is_active => return RefreshStart::Inactive,
            Some(_) => {}
        }
        if let Some(job) = self.job_of(account) {
            return RefreshStart::AlreadyRunning { job };
        }
        let job = Uuid::new_v4();
        self.arguments.progress.begin(RefreshStatus::new(account, job, (imports.now)()));
        self.waiting.push_back(Waiting { job, wish });
        self.start_next(imports);
        RefreshStart::Started { job }
    }

    fn changed(&mut self, imports: &Imports, account: AccountId, has_new_list: bool) {
        if let Some(running) = self.running.get_mut(&account) {
            running.again = true;
            if !running.follows {
                running.stop.cancel();
            }
        } else if has_new_list {
            // One that waits reads the account when its turn comes.
            self.wish(imports, RefreshRequest::of(account));
        }
    }

    fn job_of(&self, account: AccountId) -> Option<Uuid> {
        let waits = || self.waiting.iter().find(|it| it.wish.account == account).map(|it| it.job);
        self.running.get(&account).map(|it| it.job).or_else(waits)
    }

    fn start_next(&mut self, imports: &Imports) {
        while self.running.len() < RUNNING_MAX {
            let Some(Waiting { job, wish }) = self.waiting.pop_front() else { return };
            let RefreshRequest { account, confirm, follows } = wish;
            let name = imports.models.accounts.load().get(account.0).map(|it| it.name.clone());
            let stop = self.arguments.stop.child_token();
            let options = ImportOptions { confirm, job, stop: stop.clone(), ..ImportOptions::default() };
            let (progress, shown) = (self.arguments.progress.clone(), self.arguments.progress.clone());
            let myself = self.myself.clone();
            let work = imports.work.clone();
            let task = tokio::spawn(async move {
                // A task of its own: what panics in it ends nothing else.
                let report = Box::new(move |it| shown.show(it));
                let import = tokio::spawn(async move { work(account, options, report).await });
                let done = AbortOnDropHandle::new(import).await.unwrap_or(Err(ImportError::Panicked));
                if let Some(mut last) =
                    progress.of(account).filter(|it| it.job == job && it.phase != RefreshPhase::Done)
                {
                    finish(&mut last, &done);
                    progress.show(last);
                }
                // If nobody listens any more, the system has ended.
                let _ = myself.cast(Message::Finished { account, job, done });
            });
            let running = Running {
                job,
                name: name.unwrap_or_default(),
                began: Instant::now(),
                stop,
                again: false,
                follows,
                task: AbortOnDropHandle::new(task),
            };
            self.running.insert(account, running);
        }
    }

    fn finished(&mut self, imports: &Imports, account: AccountId, job: Uuid, done: Done) {
        let Some(running) = self.running.remove(&account).filter(|it| it.job == job) else { return };
        let at = (imports.now)();
        self.tried.retain(|it, _| imports.models.accounts.load().get(it.0).is_some());
        self.tried.insert(account, at);
        let took = running.began.elapsed();
        match done {
            Ok(imported) => {
                info!(account.id = %account, seconds = took.as_secs_f64(), "account \"{}\" refreshed: {}", running.name, imported.sentence());
                let body = EventBody::M3uRefresh {
                    source: RefreshRef { id: account.0, name: running.name },
                    total_processed: imported.n_entries,
                    streams_created: imported.n_new,
                    streams_updated: imported.n_changed,
                    streams_stale: imported.n_stale,
                    streams_deleted: imported.n_removed,
                    duration_seconds: took.as_secs(),
                };
                self.arguments.events.happened(Event { at, body });
            }
            Err(ImportError::Stopped) if running.again => {
                info!(account.id = %account, "account \"{}\" was changed while its list was read", running.name);
            }
            Err(ImportError::Stopped) => {}
            Err(error) => {
                warn!(account.id = %account, "account \"{}\" was not refreshed: {error}", running.name);
            }
        }
        if running.again {
            // One that was deleted or has no list any more is left alone.
            self.wish(imports, RefreshRequest { follows: true, ..RefreshRequest::of(account) });
        }
        self.start_next(imports);
    }

    /// Starts what is due by its schedule, and breaks off what reads accounts as they were.
    fn look(&mut self, imports: &Imports) {
        self.running.values().filter(|it| it.again).for_each(|it| it.stop.cancel());
        let now = (imports.now)();
        let started_at = *self.started_at.get_or_insert(now);
        let settings = imports.models.settings.load();
        let zone =
            schedule::time_zone(time_zone(settings.one_by("key", SYSTEM_SETTINGS).map(|it| &it.value)));
        let refreshes = imports.models.refreshes.load();
        for account in imports
            .models
            .accounts
            .load()
            .iter()
            .filter(|it| it.is_active && it.list != PlaylistLocation::None)
        {
            let written = refreshes.get(account.id.0).map(|it| it.tried_at);
            let tried_at = written.max(self.tried.get(&account.id).copied());
            if is_due(account, &zone, tried_at, started_at, now) && self.job_of(account.id).is_none() {
                self.wish(imports, RefreshRequest::of(account.id));
            }
        }
    }
}

fn is_due(account: &Account, zone: &TimeZone, tried_at: Option<i64>, started_at: i64, now: i64) -> bool {
    let known = Known { account: account.id, tried_at, updated_at: account.updated_at, started_at };
    schedule::next_due(&account.schedule, zone, &known).is_some_and(|due| due <= now)
}
