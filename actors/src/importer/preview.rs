//! Shows what a refresh would do, and changes no stream.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::account::Account;
use domain::ids::AccountId;
use domain::playlist::delta::{EntryChange, MissingAction};
use domain::stream::Stream;
use domain::stream_identity::IdentityKey;
use storage::Models;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::compare::{self, StoredStreams};
use super::error::ImportError;
use super::job::{ImportOptions, Job, Reporter};
use super::previewed::{PreviewSlot, PreviewedChange, PreviewedStream, RefreshPreview};
use super::progress::RefreshStatus;
use super::reading::ReadList;
use super::run::{self, begin, guard};
use crate::addresses::AccountAddresses;
use crate::fetch::Fetch;

/// Maximum number of changes of one kind that a preview lists.
const CHANGES_MAX: usize = 200;
/// Longest time that a preview takes. A provider that needs longer is asked by a refresh.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Why a preview failed.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    #[error("another preview is being made; try again when it is done")]
    Busy,
    #[error("the provider takes too long to send its list; start a refresh instead")]
    TooSlow,
    #[error("{}", .0.sentence())]
    Import(ImportError),
}

/// Makes previews, one at a time.
pub struct RefreshPreviews {
    models: Models,
    fetch: Fetch,
    /// The folder of uploaded playlists.
    uploads: PathBuf,
    turn: Semaphore,
}

impl RefreshPreviews {
    pub fn new(models: Models, fetch: Fetch, uploads: PathBuf) -> Self {
        Self { models, fetch, uploads, turn: Semaphore::new(1) }
    }

    /// Fetches the list of an account and compares it by the keys in this order, or in that of the account. Dropping the
    /// future stops it.
    ///
    /// # Errors
    /// Another preview is being made, or the list cannot be read.
    pub async fn preview(
        &self,
        account: AccountId,
        order: Option<Vec<IdentityKey>>,
    ) -> Result<RefreshPreview, PreviewError> {
        let _turn = self.turn.try_acquire().map_err(|_| PreviewError::Busy)?;
        let stop = CancellationToken::new();
        let _guard = stop.clone().drop_guard();
        let mut account = Account::clone(&*begin(&self.models, account).map_err(PreviewError::Import)?);
        if let Some(order) = order {
            account.identity_keys = order;
        }
        let options = ImportOptions {
            uploads: Some(self.uploads.clone()),
            stop: stop.clone(),
            ..ImportOptions::default()
        };
        let slot = PreviewSlot::default();
        let status = RefreshStatus::new(account.id, options.job, options.now());
        let job = Job {
            models: self.models.clone(),
            address: AccountAddresses::new(self.models.clone()).in_use(&account),
            account: Arc::new(account),
            options,
            stop,
            reporter: Arc::new(Reporter::new(status, |_| {})),
            began: Instant::now(),
            preview: Some(slot.clone()),
        };
        let fetch = self.fetch.for_account(&job.account);
        let done = timeout(TIME_MAX, run::work(&fetch, job)).await.map_err(|_| PreviewError::TooSlow)?;
        done.map_err(PreviewError::Import)?;
        let preview = slot.lock().take();
        preview.ok_or(PreviewError::Import(ImportError::Panicked))
    }
}

/// Compares a list with the stored streams, which may be read already.
pub(super) fn preview(
    job: &Job,
    list: &ReadList,
    stored: Option<Result<StoredStreams, ImportError>>,
) -> Result<RefreshPreview, ImportError> {
    let refusal = match guard(job, list) {
        Ok(()) => None,
        Err(error @ ImportError::Shrunken { .. }) => Some(error.sentence()),
        Err(error) => return Err(error),
    };
    let mut compared = compare::compare(job, list, stored.transpose()?)?;
    let refusal = refusal.or_else(|| compared.check_losses(job).err().map(|it| it.sentence()));
    let mut preview = RefreshPreview {
        n_entries: list.n_entries(),
        counts: compared.counts,
        n_left_out: compared.n_left_out(),
        n_stale: compared.n_gone(MissingAction::MarkStale),
        n_removed: compared.n_gone(MissingAction::Remove),
        n_contested: compared.known.n_contested(),
        recognised: compared.known.recognised(),
        refusal,
        changes: Vec::new(),
    };
    let streams = job.models.store.collection::<Stream>();
    let shown = |stream: &Stream| PreviewedStream {
        name: stream.provider.name.clone(),
        url: stream.provider.url.clone(),
    };
    let (mut n_new, mut n_changed) = (0, 0);
    compared.known.rewind();
    compared.selection.rewind();
    list.entries.for_each(|facts| {
        job.check_stop()?;
        let matched = compared.known.match_properties(facts);
        if !compared.selection.keep(&matched) {
            return Ok(());
        }
        let (stream, n) = match matched.change {
            EntryChange::New => (None, &mut n_new),
            EntryChange::Changed(id) => (Some(id), &mut n_changed),
            EntryChange::Unchanged(_) => return Ok(()),
        };
        *n += 1;
        if *n <= CHANGES_MAX {
            let before = stream.map(|it| streams.get(it.0)).transpose()?.flatten();
            let after = PreviewedStream { name: matched.properties.name, url: matched.properties.url };
            let before = before.as_ref().map(shown);
            preview.changes.push(PreviewedChange { stream, key: matched.key, before, after: Some(after) });
        }
        Ok::<_, ImportError>(())
    })?;
    let gone = compared.gone.iter().filter(|it| it.action != MissingAction::KeepStale);
    for it in gone.take(CHANGES_MAX) {
        let before = streams.get(it.id.0)?.as_ref().map(shown);
        preview.changes.push(PreviewedChange { stream: Some(it.id), key: None, before, after: None });
    }
    Ok(preview)
}
