//! One import from its first request to its last write.
//!
//! ```text
//!   packets' side        this runtime           a thread that may block
//!   nothing              server ── pieces ────▶ unpack ─▶ parse ─▶ spool ─▶ guard ─▶ compare ─▶ write
//! ```
//!
//! Until the last step nothing that is stored has changed, so whatever goes wrong before leaves everything as it was.

use std::sync::Arc;

use domain::account::{Account, PlaylistLocation, RefreshOutcome, RefreshRecord};
use domain::ids::AccountId;
use domain::playlist::delta::{self, SizeCheck};
use domain::stream::Stream;
use storage::Models;
use tracing::warn;

use super::compare;
use super::error::ImportError;
use super::job::{ImportOptions, ImportSummary, Job, Reporter};
use super::landing::{self, Landing};
use super::progress::{RefreshPhase, RefreshStatus};
use super::reading::{self, ReadList};
use crate::fetch::Fetch;
use crate::playlist::{self, PlaylistBytes, PlaylistSource};

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
    let reporter = Arc::new(Reporter::new(RefreshStatus::new(account, options.job, options.now()), report));
    let stop = options.stop.child_token();
    // If we are dropped, the thread hears of it.
    let _guard = stop.clone().drop_guard();
    let done = match begin(models, account) {
        Ok(account) => {
            reporter.update(|it| it.phase = RefreshPhase::Fetching);
            let job = Job {
                models: models.clone(),
                account: account.clone(),
                options: options.clone(),
                stop: stop.clone(),
                reporter: reporter.clone(),
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
    reporter.update(|it| finish(it, &done));
    done
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
    let source = match &job.account.list {
        PlaylistLocation::Url(url) => PlaylistSource::Url(url.clone(), job.account.headers.clone()),
        PlaylistLocation::File(path) => PlaylistSource::RegularFile(path.into()),
        PlaylistLocation::None => return Err(ImportError::NoList),
    };
    let (fed, worked) = playlist::feed(fetch, source, &stop, move |bytes| run(&job, bytes)).await;
    fed.map_err(ImportError::Fetch)?;
    worked.unwrap_or(Err(ImportError::Panicked))
}

/// The part that may block.
fn run(job: &Job, bytes: PlaylistBytes) -> Result<ImportSummary, ImportError> {
    let list = reading::read(job, bytes)?;
    guard(job, &list)?;
    let mut bulk = None;
    loop {
        job.reporter.update(|it| it.phase = RefreshPhase::Comparing);
        let compared = compare::compare(job, &list)?;
        let imported = compared.imported(&list);
        job.reporter.update(|it| {
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
            Err(list.findings.not_a_playlist.clone().map_or(ImportError::Empty, ImportError::NotAPlaylist))
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
