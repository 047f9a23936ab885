//! Imports films and series, and loads the details of those that people open.
//!
//! Each account with a panel has a queue: titles that somebody opened, a requested refresh, and series whose episodes are
//! loaded when nobody waits. One task works on a queue while it has work, and asks one question at a time; the importer of
//! live streams takes turns with it ([`Fetch::turn`]). Questions about titles follow each other at an interval, and all
//! stop for as long as the panel asks for.
//!
//! The films and series of an M3U playlist come with the playlist; see [`playlist`].

mod details;
mod error;
mod land;
mod lists;
mod pace;
pub(crate) mod playlist;
mod portal;
mod progress;
mod queue;
mod sync;
#[cfg(test)]
mod tests;
mod updates;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::account::Account;
use domain::ids::AccountId;
use domain::panel::PanelLogin;
use domain::source_url::SourceUrl;
use domain::vod::{RelationId, TitleId, TitleKind};
use parking_lot::Mutex;
use storage::Models;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};
use uuid::Uuid;

pub use self::error::VodError;
use self::progress::VodProgress;
pub use self::progress::{EpisodeLoad, VodPhase, VodRefreshStatus};
pub use self::queue::OpenOutcome;
use self::queue::{AccountQueue, Next, Offer, Opened, SyncRequest, Update};
use self::sync::{SyncJob, blocking};
pub use self::updates::DetailsUpdate;
use self::updates::DetailsUpdates;
use crate::addresses::AccountAddresses;
use crate::clock::now_ms;
use crate::fetch::Fetch;
use crate::portals::PortalClient;

/// Default interval between two questions about titles to one panel.
pub const VOD_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of accounts whose films and series are refreshed at the same time.
const REFRESHING_MAX: usize = 2;

/// Interval at which accounts are looked through that load all episodes, and the queues of deleted ones are dropped.
const CHECK_PERIOD: Duration = Duration::from_secs(60);

/// The reply to a refresh request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VodRefreshStart {
    /// The refresh is running, or waits for its turn.
    Started {
        job: Uuid,
    },
    /// A refresh of this account is already running or waiting; the request has no effect.
    AlreadyRunning {
        job: Uuid,
    },
    NoSuchAccount,
    Inactive,
    /// Films and series are not wanted of this account.
    NotWanted,
    /// The account has neither a panel nor a portal; its films and series come with its playlist.
    NoPanel,
}

/// The reply to a request for an update of details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DetailsUpdateStart {
    /// The update is running. `n_titles` are those that an active account with a panel offers.
    Started { update: DetailsUpdate, n_titles: usize },
    /// Too many updates are running.
    Busy,
}

/// The reason for which a title is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Somebody opened it.
    Opened {
        is_retry: bool,
    },
    /// An admin wants it, even if its details are young.
    Update,
    Background,
}

/// The server that lists the films and series of an account.
enum TitleServer {
    Panel(PanelLogin),
    Portal(Box<PortalClient>),
}

impl TitleServer {
    /// Returns its address.
    fn address(&self) -> &SourceUrl {
        match self {
            Self::Panel(login) => &login.server,
            Self::Portal(client) => client.server(),
        }
    }
}

/// The dependencies of imports.
pub(crate) struct Parts {
    pub(crate) models: Models,
    pub(crate) fetch: Fetch,
    /// Interval between two questions about titles to one panel.
    pub(crate) interval: Duration,
    /// Milliseconds since 1970.
    pub(crate) now: Arc<dyn Fn() -> i64 + Send + Sync>,
}

/// The handle of the importer of films and series. Clones share the queues.
#[derive(Clone)]
pub struct VodImporter {
    shared: Arc<Shared>,
}

struct Shared {
    /// Until they are set, nothing is imported.
    parts: OnceLock<Arc<Parts>>,
    queues: Mutex<HashMap<AccountId, AccountQueue>>,
    progress: Arc<VodProgress>,
    updates: DetailsUpdates,
    refreshing: Semaphore,
    /// The accounts whose interrupted loads of episodes were continued since the start.
    resumed: Mutex<BTreeSet<AccountId>>,
    /// Cancelled when the system stops.
    stop: CancellationToken,
}

impl VodImporter {
    pub(crate) fn new(stop: CancellationToken) -> Self {
        let shared = Shared {
            parts: OnceLock::new(),
            queues: Mutex::default(),
            progress: Arc::new(VodProgress::default()),
            updates: DetailsUpdates::default(),
            refreshing: Semaphore::new(REFRESHING_MAX),
            resumed: Mutex::default(),
            stop,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Starts importing. Only the first call has an effect.
    pub(crate) fn start(&self, models: Models, fetch: Fetch, interval: Duration) {
        let parts = Parts { models, fetch, interval, now: Arc::new(now_ms) };
        if self.shared.parts.set(Arc::new(parts)).is_err() {
            return;
        }
        let importer = self.clone();
        let stop = self.shared.stop.clone();
        crate::tasks::spawn(stop.run_until_cancelled_owned(async move {
            loop {
                sleep(CHECK_PERIOD).await;
                importer.check().await;
            }
        }));
    }

    /// Refreshes the films and series of a panel account now. Replies immediately; [`VodImporter::progress_of`] reports
    /// the progress, and the account's `VodSync` record the result. `confirm` accepts that most titles are missing.
    pub fn refresh(&self, account: AccountId, confirm: bool) -> VodRefreshStart {
        let Some(parts) = self.shared.parts.get() else { return VodRefreshStart::NoSuchAccount };
        match parts.models.accounts.load().get(account.0) {
            None => return VodRefreshStart::NoSuchAccount,
            Some(it) if !it.list.lists_titles() => return VodRefreshStart::NoPanel,
            Some(it) if !it.is_active => return VodRefreshStart::Inactive,
            Some(it) if !it.enable_vod => return VodRefreshStart::NotWanted,
            Some(_) => {}
        }
        let job = Uuid::new_v4();
        let requested = self.with(account, |queue| queue.request(SyncRequest { job, confirm }));
        match requested {
            Err(job) => VodRefreshStart::AlreadyRunning { job },
            Ok(()) => {
                self.shared.progress.begin(VodRefreshStatus::new(account, job, (parts.now)()));
                self.work_on(account);
                VodRefreshStart::Started { job }
            }
        }
    }

    /// Loads the details of a title that somebody opened, and the episodes of a series, unless they are young. Waits for
    /// them at most this time. `relation` is the offer that is meant; without it, the preferred one of an active account
    /// with a panel. Other offers of a series are loaded later.
    pub async fn open(&self, title: TitleId, relation: Option<RelationId>, wait: Duration) -> OpenOutcome {
        let Some(parts) = self.shared.parts.get().cloned() else { return OpenOutcome::NothingToLoad };
        let read = blocking(move || Ok(parts.models.vod.get(title)?)).await;
        let found = match read {
            Ok(Some(title)) => title,
            Ok(None) => return OpenOutcome::NoSuchTitle,
            Err(error) => return OpenOutcome::Failed(error.sentence()),
        };
        let Some(parts) = self.shared.parts.get() else { return OpenOutcome::NothingToLoad };
        let mut first = None;
        for it in found.relations.iter().filter(|it| relation.is_none_or(|meant| it.id == meant)) {
            if it.is_stale() || !self.has_details(it.account, title.kind()) {
                continue;
            }
            let is_fresh = details::is_fresh(title.kind(), it, (parts.now)());
            let offer = Offer { title: found.id, relation: it.id };
            match &first {
                None => first = Some((it.account, offer, is_fresh)),
                Some(_) if title.kind() == TitleKind::Series && !is_fresh => {
                    let account = it.account;
                    if self.with(account, |queue| queue.open(offer, None)) {
                        self.work_on(account);
                    }
                }
                Some(_) => {}
            }
        }
        match first {
            None => OpenOutcome::NothingToLoad,
            Some((.., true)) => OpenOutcome::Loaded,
            Some((account, offer, false)) => self.wait_for(account, offer, wait).await,
        }
    }

    async fn wait_for(&self, account: AccountId, offer: Offer, wait: Duration) -> OpenOutcome {
        let (sender, loaded) = oneshot::channel();
        let refused = self.with(account, |queue| {
            let now = Instant::now();
            if let Some(reason) = queue.failure(offer, now) {
                return Err(OpenOutcome::Failed(reason));
            }
            match queue.open(offer, Some(sender)) {
                true => Ok(queue.pace.refused_for(now)),
                false => Err(OpenOutcome::Busy),
            }
        });
        let pause = match refused {
            Ok(pause) => pause,
            Err(outcome) => return outcome,
        };
        self.work_on(account);
        if pause > wait {
            return OpenOutcome::Postponed(pause);
        }
        match timeout(wait, loaded).await {
            Ok(Ok(outcome)) => outcome,
            _ => OpenOutcome::Pending,
        }
    }

    /// Loads the details of titles again, and the episodes of series, one after the other and after those that people
    /// open: of a film from the preferred active account with a panel, of a series from all of them. Replies when the
    /// titles are queued; [`VodImporter::updates`] reports the progress.
    pub async fn update_details(&self, titles: Vec<TitleId>) -> Result<DetailsUpdateStart, VodError> {
        let Some(parts) = self.shared.parts.get().cloned() else { return Ok(DetailsUpdateStart::Busy) };
        let (importer, models) = (self.clone(), parts.models.clone());
        let (by_account, n_titles) = blocking(move || {
            let mut by_account: HashMap<AccountId, Vec<Offer>> = HashMap::new();
            let mut n_titles = 0;
            for id in titles {
                let Some(title) = models.vod.get(id)? else { continue };
                let offers = title
                    .relations
                    .iter()
                    .filter(|it| !it.is_stale() && importer.has_details(it.account, title.id.kind()))
                    .map(|it| (it.account, Offer { title: title.id, relation: it.id }));
                let n_max = if title.id.kind() == TitleKind::Movie { 1 } else { usize::MAX };
                let mut is_offered = false;
                for (account, offer) in offers.take(n_max) {
                    by_account.entry(account).or_default().push(offer);
                    is_offered = true;
                }
                n_titles += usize::from(is_offered);
            }
            Ok((by_account, n_titles))
        })
        .await?;
        let job = Uuid::new_v4();
        let n_questions = by_account.values().map(Vec::len).sum();
        let update = DetailsUpdate::new(job, n_questions, (parts.now)());
        if !self.shared.updates.begin(update.clone()) {
            return Ok(DetailsUpdateStart::Busy);
        }
        for (account, offers) in by_account {
            let n = offers.len();
            let n_queued = self.with(account, |queue| queue.update(job, offers));
            // Others belong to an earlier request.
            self.shared.updates.change(job, |it| it.n_questions -= n - n_queued);
            self.work_on(account);
        }
        let update = self.shared.updates.get(job).unwrap_or(update);
        Ok(DetailsUpdateStart::Started { update, n_titles })
    }

    /// Looks for series whose episodes are to be loaded, after the settings of an account have changed.
    pub async fn changed(&self, account: AccountId) {
        let wanted = match self.server_of(account) {
            Some(_) => self.series_to_load(account).await,
            None => Vec::new(),
        };
        self.with(account, |queue| queue.load(wanted));
        self.work_on(account);
    }

    /// Forgets that the panel of an account refused questions, because the account has another panel.
    pub fn has_new_panel(&self, account: AccountId) {
        self.with(account, |queue| queue.pace.answered());
    }

    /// Returns the running, waiting and recently finished refreshes; one row per account.
    pub fn progress(&self) -> Vec<VodRefreshStatus> {
        self.shared.progress.all()
    }

    /// Returns the running or last refresh of an account, if it is recent.
    pub fn progress_of(&self, account: AccountId) -> Option<VodRefreshStatus> {
        self.shared.progress.get(account)
    }

    /// Returns the running and recently finished updates of details, in the order of their requests.
    pub fn updates(&self) -> Vec<DetailsUpdate> {
        self.shared.updates.all()
    }

    /// Returns the accounts whose episodes are being loaded in the background.
    pub fn episode_loads(&self) -> Vec<EpisodeLoad> {
        let queues = self.shared.queues.lock();
        let loads = queues.iter().map(|(account, queue)| {
            let (n_left, n) = queue.background();
            EpisodeLoad { account: *account, n_done: n - n_left, n_left }
        });
        loads.filter(|it| it.n_left > 0).collect()
    }

    fn with<R>(&self, account: AccountId, work: impl FnOnce(&mut AccountQueue) -> R) -> R {
        work(self.shared.queues.lock().entry(account).or_default())
    }

    /// Returns the account and its panel or portal at the server in use, if its films and series are wanted.
    fn server_of(&self, account: AccountId) -> Option<(Arc<Account>, TitleServer)> {
        let Parts { models, fetch, .. } = &**self.shared.parts.get()?;
        let accounts = models.accounts.load();
        let account = accounts.get(account.0).filter(|it| it.is_active && it.enable_vod)?.clone();
        let addresses = AccountAddresses::new(models.clone());
        let server = match account.list.panel() {
            Some(login) => TitleServer::Panel(addresses.login(&account, login)),
            None => {
                let (profile, place) = (account.default_profile()?, addresses.portal_place(&account)?);
                TitleServer::Portal(Box::new(PortalClient::new(fetch, &account, profile, place)?))
            }
        };
        Some((account, server))
    }

    /// Returns whether there is more to know of titles of a kind than the lists of an account say. Portals tell nothing more
    /// about films.
    fn has_details(&self, account: AccountId, kind: TitleKind) -> bool {
        let Some(parts) = self.shared.parts.get() else { return false };
        let accounts = parts.models.accounts.load();
        let account = accounts.get(account.0).filter(|it| it.is_active && it.enable_vod);
        account.is_some_and(|it| {
            it.list.panel().is_some() || it.list.portal().is_some() && kind == TitleKind::Series
        })
    }

    /// Starts the task of an account, unless it runs.
    fn work_on(&self, account: AccountId) {
        let is_new = self.with(account, |it| !std::mem::replace(&mut it.is_worked_on, true));
        if !is_new {
            return;
        }
        let (importer, stop) = (self.clone(), self.shared.stop.clone());
        crate::tasks::spawn(stop.run_until_cancelled_owned(async move { importer.work(account).await }));
    }

    /// Works on the queue of an account until it is empty.
    async fn work(&self, account: AccountId) {
        let Some(parts) = self.shared.parts.get().cloned() else { return };
        loop {
            let next = self.with(account, |queue| {
                let next = queue.next(Instant::now(), parts.interval);
                queue.is_worked_on = !matches!(next, Next::Nothing);
                next
            });
            match next {
                Next::Nothing => return,
                // Looks again at least once a minute, because the account may have another panel.
                Next::Wait(time) => sleep(time.min(CHECK_PERIOD)).await,
                // Beside the titles that people open, which get their turn between two of its questions.
                Next::Sync(request) => {
                    let (importer, parts) = (self.clone(), parts.clone());
                    let stop = self.shared.stop.clone();
                    crate::tasks::spawn(stop.run_until_cancelled_owned(async move {
                        importer.sync(&parts, account, request).await;
                    }));
                }
                Next::Open(Opened { offer, is_retry, waiters }) => {
                    let outcome = self.load(&parts, account, offer, Purpose::Opened { is_retry }).await;
                    for waiter in waiters {
                        // Those who no longer wait find the details in the store.
                        let _ = waiter.send(outcome.clone());
                    }
                }
                Next::Update(update) => self.update(&parts, account, update).await,
                Next::Episodes(offer) => drop(self.load(&parts, account, offer, Purpose::Background).await),
            }
        }
    }

    async fn update(&self, parts: &Arc<Parts>, account: AccountId, update: Update) {
        let failure = match self.load(parts, account, update.offer, Purpose::Update).await {
            OpenOutcome::Postponed(_) if !update.is_retry => {
                return self.with(account, |queue| queue.update_again(update));
            }
            OpenOutcome::Postponed(_) => Some("The panel refuses questions for now.".to_owned()),
            OpenOutcome::Failed(reason) => Some(reason),
            OpenOutcome::NoSuchTitle => Some("A title no longer exists.".to_owned()),
            OpenOutcome::NothingToLoad => Some(VodError::NotWanted.sentence()),
            OpenOutcome::Loaded | OpenOutcome::Pending | OpenOutcome::Busy => None,
        };
        self.shared.updates.ended(update.job, failure);
    }

    async fn sync(&self, parts: &Arc<Parts>, account: AccountId, request: SyncRequest) {
        let began = Instant::now();
        let (outcome, message, error) = match self.server_of(account) {
            None => {
                let error = VodError::NotWanted;
                (error.outcome(), error.sentence(), None)
            }
            Some((account, server)) => {
                let (parts, progress) = (parts.clone(), self.shared.progress.clone());
                let stop = self.shared.stop.child_token();
                let importer = self.clone();
                // A task of its own, so that a panic ends nothing else.
                let syncing = crate::tasks::spawn(async move {
                    let _permit = importer.shared.refreshing.acquire().await;
                    let job = SyncJob { parts: &parts, account, request, progress, stop };
                    job.run(&server).await
                });
                AbortOnDropHandle::new(syncing).await.unwrap_or_else(|_| {
                    let error = VodError::Panicked;
                    (error.outcome(), error.sentence(), None)
                })
            }
        };
        let pause = error.as_ref().and_then(VodError::asks_to_wait);
        let now = Instant::now();
        self.with(account, |queue| {
            queue.sync_ended(request.job);
            match pause {
                Some(wait) => queue.pace.refused(now, wait),
                None if error.is_none() => queue.pace.answered(),
                None => {}
            }
        });
        let seconds = began.elapsed().as_secs_f64();
        match outcome {
            Some(domain::account::RefreshOutcome::Success) => {
                info!(account.id = %account, seconds, "films and series refreshed: {message}");
            }
            Some(_) => warn!(account.id = %account, "failed to refresh films and series: {message}"),
            None => {}
        }
        if let Some(mut row) = self.shared.progress.get(account).filter(|it| it.job == request.job) {
            (row.phase, row.outcome, row.message) = (VodPhase::Done, outcome, message);
            self.shared.progress.update(row);
        }
        self.changed(account).await;
    }

    /// Loads the details of a title, unless they are young and nobody wants newer ones. A title that somebody opened and
    /// that the panel refuses for now is asked for again afterwards, once.
    async fn load(
        &self,
        parts: &Arc<Parts>,
        account: AccountId,
        offer: Offer,
        purpose: Purpose,
    ) -> OpenOutcome {
        let Some((of, server)) = self.server_of(account) else { return OpenOutcome::NothingToLoad };
        let (own, stop) = (parts.clone(), self.shared.stop.child_token());
        // A task of its own, so that a panic ends nothing else.
        let loading = crate::tasks::spawn(async move {
            let read = own.clone();
            let Some(found) = blocking(move || details::find(&read, offer)).await? else {
                return Ok(OpenOutcome::NoSuchTitle);
            };
            let is_wanted = purpose == Purpose::Update;
            if !is_wanted && details::is_fresh(offer.title.kind(), &found.1, (own.now)()) {
                return Ok(OpenOutcome::Loaded);
            }
            details::load(&own, &of, &server, found, &stop).await.map(|()| OpenOutcome::Loaded)
        });
        let loaded = AbortOnDropHandle::new(loading).await.unwrap_or(Err(VodError::Panicked));
        let now = Instant::now();
        match loaded {
            Ok(outcome) => {
                self.with(account, |queue| queue.pace.answered());
                outcome
            }
            Err(error) => {
                let pause = error.asks_to_wait();
                self.with(account, |queue| match pause {
                    Some(wait) => {
                        queue.pace.refused(now, wait);
                        if purpose == (Purpose::Opened { is_retry: false }) {
                            queue.retry(offer);
                        }
                    }
                    None => queue.failed(offer, now, error.sentence()),
                });
                warn!(account.id = %account, "failed to load the details of {}: {error}", offer.title);
                match pause {
                    Some(_) => {
                        OpenOutcome::Postponed(self.with(account, |queue| queue.pace.refused_for(now)))
                    }
                    None => OpenOutcome::Failed(error.sentence()),
                }
            }
        }
    }

    /// Returns the series of an account whose episodes are to be loaded though nobody opened them: those that changed
    /// since, and all if the account says so.
    async fn series_to_load(&self, account: AccountId) -> Vec<Offer> {
        let Some((of, _)) = self.server_of(account) else { return Vec::new() };
        let Some(parts) = self.shared.parts.get().cloned() else { return Vec::new() };
        let is_all = of.load_all_episodes;
        let read = blocking(move || land::series_to_load(&parts.models, account, is_all)).await;
        read.unwrap_or_else(|error| {
            warn!(account.id = %account, "failed to find the series whose episodes changed: {error}");
            Vec::new()
        })
    }

    /// Continues what a restart interrupted, and forgets accounts that are gone.
    async fn check(&self) {
        let Some(parts) = self.shared.parts.get() else { return };
        let accounts = parts.models.accounts.load();
        let now = Instant::now();
        self.shared.queues.lock().retain(|id, queue| {
            if accounts.get(id.0).is_none() {
                for job in queue.clear() {
                    self.shared.updates.ended(job, Some(VodError::AccountChanged.sentence()));
                }
            }
            !queue.is_forgettable(now)
        });
        let all = accounts.iter().filter(|it| it.is_active && it.enable_vod && it.load_all_episodes);
        let all: Vec<AccountId> = all.filter(|it| it.list.lists_titles()).map(|it| it.id).collect();
        for account in all {
            // Once after the start; later every refresh does it.
            if self.shared.resumed.lock().insert(account) {
                self.changed(account).await;
            }
        }
    }
}
