//! One import from its first request to its last write.
//!
//! ```text
//!   packets' side        this runtime           a thread that may block
//!   nothing              server ── pieces ────▶ unpack ─▶ parse ─▶ spool ─▶ guard ─▶ compare ─▶ write
//! ```
//!
//! Until the last step nothing that is stored has changed, so whatever goes wrong before leaves everything as it was.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use domain::account::{Account, PlaylistLocation, RefreshOutcome, RefreshRecord};
use domain::ids::AccountId;
use domain::playlist::delta::{self, SizeCheck};
use domain::playlist::m3u;
use domain::stream::{RequestHeaders, Stream};
use parking_lot::Mutex;
use storage::Models;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use super::compare;
use super::error::ImportError;
use super::landing::{self, Landing};
use super::progress::{RefreshPhase, RefreshStatus};
use super::reading::{self, Pieces, ReadList};
use crate::clock::now_ms;
use crate::fetch::{Fetch, FetchError};

/// Pieces between the socket and the parser. With those of the socket itself this is all that waits.
const PIECES_MAX: usize = 16;

/// Problems that are told one by one.
pub(super) const PROBLEMS_TOLD_MAX: usize = 20;

/// How an import is done.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// An admin agrees to take a list that is much smaller than the last good one.
    pub confirm: bool,
    /// How much of the list is taken.
    pub limits: m3u::PlaylistLimits,
    /// Ends the import; what was not written then is not written.
    pub stop: CancellationToken,
    /// Tells it from others in its progress.
    pub job: Uuid,
    /// Milliseconds since 1970, in place of the clock.
    pub at: Option<i64>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            confirm: false,
            limits: m3u::PlaylistLimits::default(),
            stop: CancellationToken::new(),
            job: Uuid::new_v4(),
            at: None,
        }
    }
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Entries that could be used.
    pub n_entries: u64,
    pub n_new: u64,
    pub n_changed: u64,
    /// Streams that vanished from the list with this import.
    pub n_stale: u64,
    /// Streams that had vanished long enough ago.
    pub n_removed: u64,
    /// The first of what was lost on the way.
    pub problems: Vec<m3u::PlaylistProblem>,
    pub n_problems: u64,
}

impl ImportSummary {
    /// A sentence for the admin.
    pub fn sentence(&self) -> String {
        let Self { n_entries, n_new, n_changed, n_stale, n_removed, n_problems, .. } = self;
        let mut text = format!(
            "{n_entries} entries: {n_new} new, {n_changed} changed, {n_stale} no longer listed, {n_removed} removed."
        );
        if *n_problems > 0 {
            text += &format!(
                " {n_problems} problems, the first in line {}.",
                self.problems.first().map_or(0, |it| it.line)
            );
        }
        text
    }
}

/// Fetches the list of an account, compares it with what is stored and writes what differs. Says on the way how far it
/// is, from whatever thread knows; `report` must not wait.
///
/// How it ended is written to the account's [`RefreshRecord`] record, unless there is no such account or it was stopped.
/// Dropping the future ends it soon after, as [`ImportOptions::stop`] does.
///
/// # Errors
/// Nothing was changed, and why.
pub async fn import(
    models: &Models,
    fetch: &Fetch,
    account: AccountId,
    options: ImportOptions,
    report: impl Fn(RefreshStatus) + Send + Sync + 'static,
) -> Result<ImportSummary, ImportError> {
    let teller = Arc::new(Teller::new(RefreshStatus::new(account, options.job, options.now()), report));
    let stop = options.stop.child_token();
    // If we are dropped, the thread hears of it.
    let _guard = stop.clone().drop_guard();
    let done = match begin(models, account) {
        Ok(account) => {
            teller.tell(|it| it.phase = RefreshPhase::Fetching);
            let job = Job {
                models: models.clone(),
                account: account.clone(),
                options: options.clone(),
                stop: stop.clone(),
                teller: teller.clone(),
            };
            let done = work(fetch, job).await;
            let done = if stop.is_cancelled() && done.is_err() { Err(ImportError::Stopped) } else { done };
            if let Err(error) = &done {
                record_failure(models, &account, error, options.now()).await;
            }
            done
        }
        Err(error) => Err(error),
    };
    teller.tell(|it| finish(it, &done));
    done
}

impl ImportOptions {
    /// Milliseconds since 1970.
    pub(super) fn now(&self) -> i64 {
        self.at.unwrap_or_else(now_ms)
    }
}

/// What the thread that may block has of an import.
pub(super) struct Job {
    pub(super) models: Models,
    pub(super) account: Arc<Account>,
    pub(super) options: ImportOptions,
    pub(super) stop: CancellationToken,
    pub(super) teller: Arc<Teller>,
}

impl Job {
    /// Between any two steps that take long.
    pub(super) fn go_on(&self) -> Result<(), ImportError> {
        if self.stop.is_cancelled() { Err(ImportError::Stopped) } else { Ok(()) }
    }
}

/// How far an import is, told whenever it changes.
pub(super) struct Teller {
    progress: Mutex<RefreshStatus>,
    report: Box<Reporting>,
}

/// Whoever is told how far an import is.
pub(super) type Reporting = dyn Fn(RefreshStatus) + Send + Sync;

impl Teller {
    fn new(progress: RefreshStatus, report: impl Fn(RefreshStatus) + Send + Sync + 'static) -> Self {
        Self { progress: Mutex::new(progress), report: Box::new(report) }
    }

    pub(super) fn tell(&self, change: impl FnOnce(&mut RefreshStatus)) {
        let told = {
            let mut progress = self.progress.lock();
            change(&mut progress);
            progress.clone()
        };
        (self.report)(told);
    }
}

/// May this account be imported?
fn begin(models: &Models, account: AccountId) -> Result<Arc<Account>, ImportError> {
    let account = models.accounts.load().get(account.0).cloned().ok_or(ImportError::NoSuchAccount)?;
    match account.list {
        PlaylistLocation::None => Err(ImportError::NoList),
        _ if !account.is_active => Err(ImportError::Inactive),
        _ => Ok(account),
    }
}

/// Feeds the thread that does the work, and waits for it.
async fn work(fetch: &Fetch, job: Job) -> Result<ImportSummary, ImportError> {
    let stop = job.stop.clone();
    let account = job.account.clone();
    let bytes_max = fetch.limits().bytes_max;
    let (fed, worked) = match &account.list {
        PlaylistLocation::Url(url) => {
            let (sender, pieces) = mpsc::channel(PIECES_MAX);
            let thread = spawn_blocking(move || run(&job, Source::Pieces(Pieces::new(pieces)), bytes_max));
            let feeding = feed(fetch, url.expose(), &account.headers, sender);
            let fed = stop.run_until_cancelled(feeding).await.unwrap_or(Ok(()));
            (fed, thread.await)
        }
        PlaylistLocation::File(path) => {
            let source = Source::File(path.into());
            (Ok(()), spawn_blocking(move || run(&job, source, bytes_max)).await)
        }
        PlaylistLocation::None => return Err(ImportError::NoList),
    };
    // What went wrong at the socket is why the thread found no end.
    fed.map_err(ImportError::Fetch)?;
    worked.unwrap_or(Err(ImportError::Panicked))
}

/// Everything the server sends, as it comes; at its good end nothing more.
async fn feed(
    fetch: &Fetch,
    url: &str,
    headers: &RequestHeaders,
    pieces: mpsc::Sender<Option<Bytes>>,
) -> Result<(), FetchError> {
    let mut body = fetch.get(url, headers).await?;
    while let Some(piece) = body.next().await? {
        if pieces.send(Some(piece)).await.is_err() {
            // The thread has ended before, and says why.
            return Ok(());
        }
    }
    let _ = pieces.send(None).await;
    Ok(())
}

/// Where a list comes from.
pub(super) enum Source {
    Pieces(Pieces),
    File(PathBuf),
}

/// The part that may block.
fn run(job: &Job, source: Source, bytes_max: u64) -> Result<ImportSummary, ImportError> {
    let list = reading::read(job, source, bytes_max)?;
    guard(job, &list)?;
    let mut bulk = None;
    loop {
        job.teller.tell(|it| it.phase = RefreshPhase::Comparing);
        let compared = compare::compare(job, &list)?;
        let imported = compared.imported(&list);
        job.teller.tell(|it| {
            it.phase = RefreshPhase::Writing;
            it.entries = imported.n_entries;
            it.n_new = imported.n_new;
            it.n_changed = imported.n_changed;
            it.n_gone = imported.n_stale + imported.n_removed;
        });
        match landing::land(job, &list, compared, &imported, bulk)? {
            Landing::Done => return Ok(imported),
            // Once only: from here on the bulk write hears of what others do.
            Landing::Again(begun) => bulk = Some(begun),
        }
    }
}

/// Is it a list, and one of the size that is expected?
fn guard(job: &Job, list: &ReadList) -> Result<(), ImportError> {
    let refresh = job.models.refreshes.load().get(job.account.id.0).cloned();
    // Streams that came in another way than by a refresh count as one.
    let stored = || job.models.store.collection::<Stream>().len_of(u64::from(job.account.id.0)) as u64;
    let n_good = refresh.map_or_else(stored, |it| it.n_good);
    match delta::check_size(n_good, list.n_entries()) {
        SizeCheck::Accept => Ok(()),
        SizeCheck::Empty => {
            Err(list.no_playlist.clone().map_or(ImportError::Empty, ImportError::NotAPlaylist))
        }
        SizeCheck::Shrunk { .. } if job.options.confirm => Ok(()),
        SizeCheck::Shrunk { before, now } => Err(ImportError::Shrunken { before, now }),
    }
}

/// Writes down that nothing was changed, and why.
async fn record_failure(models: &Models, account: &Account, error: &ImportError, at: i64) {
    let Some(outcome) = error.outcome() else { return };
    let (id, message) = (account.id, error.sentence());
    let done = models.store.write(move |write| {
        if write.get::<Account>(id.0)?.is_none() {
            return Ok(());
        }
        let before = write.get::<RefreshRecord>(id.0)?;
        let refresh = RefreshRecord {
            account: id,
            outcome,
            message,
            tried_at: at,
            ..before.unwrap_or_else(|| first(id))
        };
        write.put(&refresh)
    });
    let done: Result<(), storage::Error> = done.await;
    if let Err(error) = done {
        warn!(account.id = %id, "failed to record how a refresh ended: {error}");
    }
}

/// Of an account that was never refreshed.
pub(super) fn first(account: AccountId) -> RefreshRecord {
    RefreshRecord {
        account,
        outcome: RefreshOutcome::Error,
        message: String::new(),
        tried_at: 0,
        good_at: None,
        n_good: 0,
        digest: None,
    }
}

/// Shows how it ended.
pub(super) fn finish(progress: &mut RefreshStatus, done: &Result<ImportSummary, ImportError>) {
    progress.phase = RefreshPhase::Done;
    match done {
        Ok(imported) => {
            progress.outcome = Some(RefreshOutcome::Success);
            progress.message = imported.sentence();
        }
        Err(error) => {
            progress.outcome = error.outcome();
            progress.message = error.sentence();
        }
    }
}
