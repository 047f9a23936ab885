//! One import, from the first request to the last write.
//!
//! ```text
//!   packets' side        this runtime           a thread that may block
//!   nothing              server ── pieces ────▶ unpack ─▶ parse ─▶ spool ─▶ guard ─▶ compare ─▶ write
//!                                               another one: stored streams ────────────┘
//! ```
//!
//! Until the last step no stored data changes, so a failure before it leaves everything unchanged. After it, channels
//! follow the streams that were written: see [`adult`] and [`sync`].

use std::sync::Arc;

use domain::account::{Account, PlaylistLocation, RefreshOutcome, RefreshRecord};
use domain::egress::Reach;
use domain::ids::AccountId;
use domain::playlist::delta::{self, SizeCheck};
use domain::stream::Stream;
use storage::Models;
use tokio::time::Instant;
use tracing::warn;

use super::compare::{self, StoredStreams};
use super::error::ImportError;
use super::job::{ImportOptions, ImportSummary, Job, Reporter};
use super::landing::{self, Landing};
use super::progress::{RefreshPhase, RefreshStatus};
use super::reading::{self, ListKeys, ReadList};
use super::{adult, panel, portal, preview, sync};
use crate::addresses::AccountAddresses;
use crate::catalogue::playlist::{TitleImport, has_titles};
use crate::fetch::Fetch;
use crate::playlist::{self, PlaylistSource};

/// Fetches the playlist of an account, compares it with the stored streams and writes the differences. `report`
/// receives the progress on any thread and must not block.
///
/// The result is written to the account's [`RefreshRecord`], unless the account does not exist or the import was
/// stopped. Dropping the future stops the import soon after, like [`ImportOptions::stop`].
///
/// # Errors
/// No stored data was changed.
pub async fn import(
    models: &Models,
    fetch: &Fetch,
    account: AccountId,
    options: ImportOptions,
    report: impl Fn(RefreshStatus) + Send + Sync + 'static,
) -> Result<ImportSummary, ImportError> {
    let reporter = Arc::new(Reporter::new(RefreshStatus::new(account, options.job, options.now()), report));
    let stop = options.stop.child_token();
    // Dropping this future cancels the token, which stops the thread.
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
                began: Instant::now(),
                address: None,
                preview: None,
            };
            let done = work_at_addresses(fetch, job).await;
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

/// Returns the account if it can be imported.
pub(super) fn begin(models: &Models, account: AccountId) -> Result<Arc<Account>, ImportError> {
    let account = models.accounts.load().get(account.0).cloned().ok_or(ImportError::NoSuchAccount)?;
    match account.list {
        PlaylistLocation::None => Err(ImportError::NoList),
        _ if !account.is_active => Err(ImportError::Inactive),
        _ => Ok(account),
    }
}

/// Imports the list of the first address of the account that sends one: the address in use, or the first one if that may
/// be back.
async fn work_at_addresses(fetch: &Fetch, mut job: Job) -> Result<ImportSummary, ImportError> {
    let addresses = AccountAddresses::new(job.models.clone());
    let fetch = fetch.for_account(&job.account);
    let mut n_left = job.account.further_addresses.len();
    job.address = addresses.for_refresh(&job.account);
    loop {
        let done = work(&fetch, job.clone()).await;
        let Some(used) = job.address.take() else { return done };
        let is_tried_again = match &done {
            Ok(_) => {
                addresses.answered(&job.account, &used);
                false
            }
            Err(error) if error.outcome().is_none() => false,
            // The server in use may still have what the first one does not send.
            Err(_) if !addresses.uses(&job.account, &used) => {
                addresses.trial_failed(&job.account, &used);
                true
            }
            Err(ImportError::Fetch(error)) => addresses.list_failed(&job.account, &used, error),
            Err(_) => false,
        };
        if !is_tried_again || n_left == 0 {
            return done;
        }
        n_left -= 1;
        job.address = addresses.in_use(&job.account);
    }
}

/// Feeds the thread that does the work, and waits for it.
pub(super) async fn work(fetch: &Fetch, job: Job) -> Result<ImportSummary, ImportError> {
    let stop = job.stop.clone();
    let source = match &job.account.list {
        PlaylistLocation::Panel(login) => {
            let login = login.clone();
            return panel::work(fetch, job, login).await;
        }
        PlaylistLocation::Portal(place) => {
            let place = place.clone();
            return portal::work(fetch, job, place).await;
        }
        PlaylistLocation::Upload(name) => {
            let folder = job.options.uploads.as_ref().ok_or(ImportError::NoUpload)?;
            PlaylistSource::Uploaded(folder.join(name))
        }
        PlaylistLocation::Url(url) => {
            let reach = Reach::typed(job.account.allowed_networks);
            PlaylistSource::Url(job.located(url), job.account.headers.clone(), reach)
        }
        PlaylistLocation::File(path) => PlaylistSource::RegularFile(path.into()),
        PlaylistLocation::None => return Err(ImportError::NoList),
    };
    let work = move |bytes| run(&job, |keys| reading::read(&job, bytes, keys));
    let (fed, worked) = playlist::feed(fetch, source, &stop, work).await;
    fed.map_err(ImportError::Fetch)?;
    worked.unwrap_or(Err(ImportError::Panicked))
}

/// The part of an import that may block. Reads the stored streams while `read` reads the list, whose keys it gets empty.
pub(super) fn run(
    job: &Job,
    read: impl FnOnce(ListKeys) -> Result<ReadList, ImportError>,
) -> Result<ImportSummary, ImportError> {
    let keys = ListKeys::new(&job.account);
    let reader = keys.reader.clone();
    let stop = job.stop.child_token();
    std::thread::scope(|scope| {
        // A list that cannot be read is compared with nothing.
        let guard = stop.clone().drop_guard();
        let stop = &stop;
        let thread = std::thread::Builder::new().name("stored-streams".to_owned());
        let stored = thread.spawn_scoped(scope, move || StoredStreams::read(job, reader, stop));
        let list = read(keys)?;
        // Without a thread, they are read when they are needed.
        let stored = stored.ok().map(|it| it.join().unwrap_or(Err(ImportError::Panicked)));
        guard.disarm();
        import_list(job, &list, stored)
    })
}

/// Checks a list that was read, and writes its differences. `stored` are the streams of the account, if they are read
/// already.
pub(super) fn import_list(
    job: &Job,
    list: &ReadList,
    mut stored: Option<Result<StoredStreams, ImportError>>,
) -> Result<ImportSummary, ImportError> {
    if let Some(slot) = &job.preview {
        *slot.lock() = Some(preview::preview(job, list, stored)?);
        return Ok(ImportSummary::default());
    }
    guard(job, list)?;
    let mut bulk = None;
    loop {
        job.reporter.update(|it| it.phase = RefreshPhase::Comparing);
        let compared = compare::compare(job, list, stored.take().transpose()?)?;
        compared.check_losses(job)?;
        let (vanishing, mut imported) = (compared.vanishing, compared.imported(list));
        job.reporter.update(|it| {
            it.phase = RefreshPhase::Writing;
            it.entries = imported.n_entries;
            it.n_new = imported.n_new;
            it.n_changed = imported.n_changed;
            it.n_gone = imported.n_stale + imported.n_removed;
        });
        // The event of the refresh is stored with its last change.
        let outdated = compared.adult.outdated(job, &compared.channels);
        let is_last = outdated.is_empty() && !sync::is_needed(job) && !has_titles(&job.account);
        let event = if is_last { job.event(&imported) } else { None };
        match landing::land(job, list, compared, &imported, (bulk, event))? {
            Landing::Done(selection) => {
                adult::mark(job, &outdated)?;
                sync::sync(job, list, &selection, vanishing, &mut imported)?;
                import_titles(job, list);
                if !is_last && let Some(event) = job.event(&imported) {
                    job.models.store.write_blocking(move |write| event.enqueue(write))?;
                }
                return Ok(imported);
            }
            // At most once: from here on the bulk write knows of concurrent changes.
            Landing::Again(begun) => bulk = Some(begun),
        }
    }
}

/// Imports the films and series of a playlist. The account of a panel lists them elsewhere.
fn import_titles(job: &Job, list: &ReadList) {
    if has_titles(&job.account) {
        let titles = TitleImport {
            models: &job.models,
            account: &job.account,
            entries: &list.entries,
            confirm: job.options.confirm,
            now: job.options.now(),
            is_stopped: &|| job.stop.is_cancelled(),
        };
        titles.run();
    }
}

/// Checks that the data is a playlist, and that its size is plausible.
pub(super) fn guard(job: &Job, list: &ReadList) -> Result<(), ImportError> {
    let refresh = job.models.refreshes.load().get(job.account.id.0).cloned();
    // Streams that were not imported by a refresh count as a previous playlist.
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

/// Records that a refresh failed, and why.
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
            ..before.unwrap_or_else(|| RefreshRecord::new(id))
        };
        write.put(&refresh)
    });
    let done: Result<(), storage::Error> = done.await;
    if let Err(error) = done {
        warn!(account.id = %id, "failed to store the result of a refresh: {error}");
    }
}

/// Sets the final progress of a refresh.
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
