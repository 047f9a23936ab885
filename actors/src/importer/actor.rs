//! The message loop of the importer: the queue of refreshes.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::account::{Account, PlaylistLocation, RefreshOutcome};
use domain::core_settings::{SYSTEM_SETTINGS, time_zone};
use domain::event::{Event, EventBody, RefreshRef};
use domain::ids::{AccountId, ProfileId};
use jiff::tz::TimeZone;
use ractor::{ActorProcessingErr, ActorRef};
use storage::Models;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};
use uuid::Uuid;

use super::job::ReportFn;
use super::notices::{due_notices, record_notice};
use super::run::finish;
use super::{
    ImportError, ImportOptions, ImportSummary, LoginCheckStart, Message, RefreshProgress, RefreshStart,
    RefreshStatus, logins,
};
use crate::ask::answer;
use crate::catalogue::VodImporter;
use crate::events::Events;
use crate::refresh::{RefreshQueue, RefreshTask, start_refresh};
use crate::schedule::{self, Known, Missed};
use crate::tasks;
use crate::writer::ScheduleWatch;

/// Maximum number of simultaneous refreshes. More would only take processor time from viewers.
const RUNNING_MAX: usize = 2;

/// Maximum number of simultaneous scheduled checks of logins.
const CHECKING_MAX: usize = 2;

/// Interval at which due schedules are checked. Schedules are in minutes.
const CHECK_PERIOD: Duration = Duration::from_secs(10);

/// Maximum wait for refreshes to end when the system stops. They are cancelled before.
const STOP_DEADLINE: Duration = Duration::from_millis(800);

/// The function that runs one import; tests replace it.
pub(crate) type Work = dyn Fn(AccountId, ImportOptions, Box<ReportFn>) -> Pin<Box<dyn Future<Output = Done> + Send>>
    + Send
    + Sync;
/// The function that asks a panel about the logins of these profiles; tests replace it.
pub(crate) type CheckLogins =
    dyn Fn(AccountId, Vec<ProfileId>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync;
type Done = Result<ImportSummary, ImportError>;

/// The dependencies of imports; until they are set, no account can be refreshed.
#[derive(Clone)]
pub(crate) struct Imports {
    pub(crate) models: Models,
    pub(crate) work: Arc<Work>,
    pub(crate) check: Arc<CheckLogins>,
    /// Milliseconds since 1970.
    pub(crate) now: Arc<dyn Fn() -> i64 + Send + Sync>,
}

pub(crate) struct Actor;

pub(crate) struct Arguments {
    pub(crate) imports: Arc<OnceLock<Imports>>,
    pub(crate) progress: Arc<RefreshProgress>,
    pub(crate) events: Events,
    /// Refreshes the films and series of a panel after its live streams.
    pub(crate) vod: VodImporter,
    /// Cancelled when the system stops.
    pub(crate) stop: CancellationToken,
}

pub(crate) struct State {
    arguments: Arguments,
    myself: ActorRef<Message>,
    refreshes: RefreshQueue<AccountId, RefreshRequest, RefreshTask>,
    /// End of the last refresh of each account, in case it could not be stored.
    tried: BTreeMap<AccountId, i64>,
    /// Running checks of logins; one per account.
    checking: BTreeMap<AccountId, AbortOnDropHandle<()>>,
    /// Gives the notices about logins that end. One task at a time.
    notices: Option<AbortOnDropHandle<()>>,
    schedules: ScheduleWatch,
    _ticker: AbortOnDropHandle<()>,
}

/// The request of a refresh.
#[derive(Clone, Copy, Default)]
struct RefreshRequest {
    confirm: bool,
    /// The refresh follows one that was stopped by a change. Repeated changes of an account must not fetch its playlist too
    /// often.
    follows: bool,
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
        let ticker = tasks::ticks(&myself, CHECK_PERIOD, || Message::CheckSchedules);
        Ok(State {
            arguments,
            myself,
            refreshes: RefreshQueue::new(RUNNING_MAX),
            tried: BTreeMap::new(),
            checking: BTreeMap::new(),
            notices: None,
            schedules: ScheduleWatch::default(),
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
            // The dropped reply port tells the caller that the gateway is stopping.
            return Ok(());
        }
        let Some(imports) = state.arguments.imports.get().cloned() else {
            match message {
                Message::Refresh { reply, .. } => answer(reply, RefreshStart::NoSuchAccount),
                Message::Changed { reply, .. } => answer(reply, ()),
                Message::CheckLogin { reply, .. } => answer(reply, LoginCheckStart::NoSuchProfile),
                Message::CheckSchedules | Message::Finished { .. } | Message::LoginsChecked { .. } => {}
            }
            return Ok(());
        };
        match message {
            Message::Refresh { account, confirm, reply } => {
                let request = RefreshRequest { confirm, follows: false };
                answer(reply, state.request(&imports, account, request));
            }
            Message::Changed { account, has_new_list, reply } => {
                state.changed(&imports, account, has_new_list);
                answer(reply, ());
            }
            Message::CheckLogin { account, profile, reply } => {
                answer(reply, state.check_login(&imports, account, profile));
            }
            Message::LoginsChecked { account } => {
                state.checking.remove(&account);
                state.give_notices(&imports);
            }
            Message::CheckSchedules => {
                // In a cluster, this is the work of the node that writes the configuration.
                let (store, now) = (&imports.models.store, (imports.now)());
                let look = || Message::CheckSchedules;
                if let Some(missed) = state.schedules.look(store, now, &state.myself, look) {
                    state.check_schedules(&imports, missed, now);
                    state.check_due_logins(&imports);
                    state.give_notices(&imports);
                }
            }
            Message::Finished { account, job, done } => {
                state.finished(&imports, account, job, done);
                state.give_notices(&imports);
            }
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
    fn request(&mut self, imports: &Imports, account: AccountId, request: RefreshRequest) -> RefreshStart {
        match imports.models.accounts.load().get(account.0) {
            None => return RefreshStart::NoSuchAccount,
            Some(it) if it.list == PlaylistLocation::None => return RefreshStart::NoList,
            Some(it) if !it.is_active => return RefreshStart::Inactive,
            Some(_) => {}
        }
        let job = Uuid::new_v4();
        if let Err(job) = self.refreshes.add(account, job, request) {
            return RefreshStart::AlreadyRunning { job };
        }
        self.arguments.progress.begin(RefreshStatus::new(account, job, (imports.now)()));
        self.start_next(imports);
        RefreshStart::Started { job }
    }

    fn changed(&mut self, imports: &Imports, account: AccountId, has_new_list: bool) {
        if let Some(running) = self.refreshes.running_mut(account) {
            running.again = Some(RefreshRequest { confirm: false, follows: true });
            if !running.request.follows {
                running.work.stop.cancel();
            }
        } else if has_new_list {
            // A waiting refresh reads the account when its turn comes.
            self.request(imports, account, RefreshRequest::default());
        }
    }

    fn start_next(&mut self, imports: &Imports) {
        while let Some(next) = self.refreshes.take_next(|_| true) {
            let (account, job, confirm) = (next.id, next.job, next.request.confirm);
            let name = imports.models.accounts.load().get(account.0).map(|it| it.name.clone());
            let stop = self.arguments.stop.child_token();
            let events = Some(self.arguments.events.clone());
            let options =
                ImportOptions { confirm, job, stop: stop.clone(), events, ..ImportOptions::default() };
            let (progress, reported) = (self.arguments.progress.clone(), self.arguments.progress.clone());
            let (myself, work) = (self.myself.clone(), imports.work.clone());
            let import = async move { work(account, options, Box::new(move |it| reported.update(it))).await };
            let panicked = Err(ImportError::Panicked);
            let task = start_refresh(progress, (account, job), import, panicked, finish, move |done| {
                // The cast fails when the system has ended.
                let _ = myself.cast(Message::Finished { account, job, done });
            });
            self.refreshes.started(next, RefreshTask { name: name.unwrap_or_default(), stop, task });
        }
    }

    fn finished(&mut self, imports: &Imports, account: AccountId, job: Uuid, done: Done) {
        let Some(running) = self.refreshes.finished(account, job) else { return };
        let (name, again) = (running.work.name, running.again);
        let at = (imports.now)();
        self.tried.retain(|it, _| imports.models.accounts.load().get(it.0).is_some());
        self.tried.insert(account, at);
        let took = running.began.elapsed();
        // A panel without live streams may have films. One that cannot be reached has none now.
        let may_have_films = match &done {
            Ok(_) => true,
            Err(error) => {
                error.outcome().is_some() && !matches!(error, ImportError::Fetch(_) | ImportError::Store(_))
            }
        };
        if may_have_films && again.is_none() {
            // Does nothing for an account without a panel, or whose films and series are not wanted.
            self.arguments.vod.refresh(account, false);
        }
        match done {
            Ok(imported) => {
                info!(account.id = %account, seconds = took.as_secs_f64(), "account \"{name}\" refreshed: {}", imported.sentence());
                let body = EventBody::M3uRefresh {
                    source: RefreshRef { id: account.0, name },
                    total_processed: imported.n_entries,
                    streams_created: imported.n_new,
                    streams_updated: imported.n_changed,
                    streams_stale: imported.n_stale,
                    streams_deleted: imported.n_removed,
                    duration_seconds: took.as_secs(),
                };
                // Integrations have it from the import.
                self.arguments.events.announce(Event { at, body });
            }
            Err(ImportError::Stopped) if again.is_some() => {
                info!(account.id = %account, "account \"{name}\" changed during its refresh");
            }
            Err(ImportError::Stopped) => {}
            Err(error) => {
                warn!(account.id = %account, "failed to refresh account \"{name}\": {error}");
                if let Some(outcome) = error.outcome() {
                    self.arguments.events.emit(Event { at, body: failure(account, name, outcome, &error) });
                }
            }
        }
        if let Some(request) = again {
            // An account that was deleted or has no playlist any more is skipped.
            self.request(imports, account, request);
        }
        self.start_next(imports);
    }

    fn check_login(&mut self, imports: &Imports, account: AccountId, profile: ProfileId) -> LoginCheckStart {
        let accounts = imports.models.accounts.load();
        let known = accounts.get(account.0).filter(|it| it.profiles.iter().any(|it| it.id == profile));
        match known {
            None => LoginCheckStart::NoSuchProfile,
            Some(known) if known.list.panel().is_none() && known.list.portal().is_none() => {
                LoginCheckStart::NoPanel
            }
            Some(_) if self.checking.contains_key(&account) => LoginCheckStart::AlreadyRunning,
            Some(_) => {
                self.start_check(imports, account, vec![profile]);
                LoginCheckStart::Started
            }
        }
    }

    /// Starts the checks of logins that are due. A refresh checks that of its account itself.
    fn check_due_logins(&mut self, imports: &Imports) {
        let now = (imports.now)();
        for account in imports.models.accounts.load().iter() {
            if self.checking.len() >= CHECKING_MAX {
                return;
            }
            if self.checking.contains_key(&account.id) || self.refreshes.job(account.id).is_some() {
                continue;
            }
            let profiles = logins::due_profiles(&imports.models, account, now);
            if !profiles.is_empty() {
                self.start_check(imports, account.id, profiles);
            }
        }
    }

    fn start_check(&mut self, imports: &Imports, account: AccountId, profiles: Vec<ProfileId>) {
        let (check, myself) = (imports.check.clone(), self.myself.clone());
        let stop = self.arguments.stop.clone();
        let task = tasks::spawn(async move {
            // A task of its own, so that a panic ends nothing else.
            let check = AbortOnDropHandle::new(tasks::spawn(check(account, profiles)));
            let _ = stop.run_until_cancelled(check).await;
            let _ = myself.cast(Message::LoginsChecked { account });
        });
        self.checking.insert(account, AbortOnDropHandle::new(task));
    }

    /// Tells admins which logins end soon.
    fn give_notices(&mut self, imports: &Imports) {
        if self.notices.as_ref().is_some_and(|it| !it.is_finished()) {
            return;
        }
        let now = (imports.now)();
        let due = due_notices(&imports.models, now);
        if due.is_empty() {
            return;
        }
        let (models, events) = (imports.models.clone(), self.arguments.events.clone());
        let task = tasks::spawn(async move {
            for it in due {
                match record_notice(&models, it, now).await {
                    Ok(Some(event)) => events.emit(event),
                    Ok(None) => {}
                    // The next check tries again.
                    Err(error) => {
                        warn!("failed to record a notice about the end of a login or a user: {error}")
                    }
                }
            }
        });
        self.notices = Some(AbortOnDropHandle::new(task));
    }

    /// Starts the refreshes that are due, and stops those that use an outdated account.
    fn check_schedules(&mut self, imports: &Imports, missed: Missed, now: i64) {
        let outdated = self.refreshes.running().filter(|it| it.again.is_some());
        outdated.for_each(|it| it.work.stop.cancel());
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
            if is_due(account, &zone, tried_at, missed, now) && self.refreshes.job(account.id).is_none() {
                self.request(imports, account.id, RefreshRequest::default());
            }
        }
    }
}

fn is_due(account: &Account, zone: &TimeZone, tried_at: Option<i64>, missed: Missed, now: i64) -> bool {
    let known = Known { id: account.id.0, tried_at, updated_at: account.updated_at, missed };
    schedule::next_due(&account.schedule, zone, &known).is_some_and(|due| due <= now)
}

/// Returns the event of a refresh that did not succeed.
fn failure(account: AccountId, name: String, outcome: RefreshOutcome, error: &ImportError) -> EventBody {
    let status = match outcome {
        RefreshOutcome::AwaitingConfirmation => "pending_confirmation",
        _ => "error",
    };
    EventBody::M3uError { source: RefreshRef { id: account.0, name }, status, reason: error.sentence() }
}
