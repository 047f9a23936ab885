//! The options, progress and summary of one import.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::account::Account;
use domain::account_addresses::{addresses_of, at_address};
use domain::auto_sync::AUTO_CHANNELS_MAX;
use domain::event::{Event, EventBody, RefreshRef};
use domain::playlist::content::ContentCounts;
use domain::playlist::m3u;
use domain::source_url::SourceUrl;
use domain::stream::StreamProperties;
use parking_lot::Mutex;
use storage::Models;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::error::ImportError;
use super::previewed::PreviewSlot;
use super::progress::RefreshStatus;
use crate::clock::now_ms;
use crate::events::{Events, StoredEvent};

/// Options of an import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Accepts a playlist that is much smaller than the last good one.
    pub confirm: bool,
    /// Limits of the parser.
    pub limits: m3u::PlaylistLimits,
    /// Stops the import; it writes nothing more.
    pub stop: CancellationToken,
    /// Distinguishes the progress of this import from that of others.
    pub job: Uuid,
    /// The folder of uploaded playlists; without it, accounts with one cannot be imported.
    pub uploads: Option<PathBuf>,
    /// Time of the import in milliseconds since 1970, in place of the clock.
    pub at: Option<i64>,
    /// Where the end is reported; the event is stored with the last change.
    pub events: Option<Events>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            confirm: false,
            limits: m3u::PlaylistLimits::default(),
            stop: CancellationToken::new(),
            job: Uuid::new_v4(),
            uploads: None,
            at: None,
            events: None,
        }
    }
}

impl ImportOptions {
    /// Returns the time of the import in milliseconds since 1970.
    pub(super) fn now(&self) -> i64 {
        self.at.unwrap_or_else(now_ms)
    }
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Number of usable entries.
    pub n_entries: u64,
    /// Number of entries of each content.
    pub contents: ContentCounts,
    /// Number of new streams.
    pub n_new: u64,
    /// Number of changed streams.
    pub n_changed: u64,
    /// Number of streams that vanished from the playlist with this import.
    pub n_stale: u64,
    /// Number of streams that were removed because they vanished long enough ago.
    pub n_removed: u64,
    /// Number of entries that filters and disabled groups left out.
    pub n_left_out: u64,
    /// Number of known streams under another address. They are among the changed ones.
    pub n_moved: u64,
    /// Number of known streams that several entries could be, so that none is.
    pub n_contested: u64,
    /// Number of entries that are films and episodes, and not streams.
    pub n_titles: u64,
    /// The changes of channels.
    pub sync: SyncSummary,
    /// The first problems of the playlist.
    pub problems: Vec<m3u::PlaylistProblem>,
    /// Number of all problems.
    pub n_problems: u64,
}

impl ImportSummary {
    /// Returns the event of this import.
    pub(super) fn event(&self, account: &Account, took: Duration) -> EventBody {
        EventBody::M3uRefresh {
            source: RefreshRef { id: account.id.0, name: account.name.clone() },
            total_processed: self.n_entries,
            streams_created: self.n_new,
            streams_updated: self.n_changed,
            streams_stale: self.n_stale,
            streams_deleted: self.n_removed,
            duration_seconds: took.as_secs(),
        }
    }

    /// Returns the summary as a sentence for an admin.
    pub fn sentence(&self) -> String {
        let Self {
            n_entries,
            n_new,
            n_changed,
            n_stale,
            n_removed,
            n_left_out,
            n_moved,
            n_contested,
            n_titles,
            n_problems,
            ..
        } = self;
        let contents = match self.contents.is_only_channels() {
            true => String::new(),
            false => format!(" ({})", self.contents),
        };
        let mut text = format!(
            "{n_entries} entries{contents}: {n_new} new, {n_changed} changed, {n_stale} no longer listed, {n_removed} removed."
        );
        if *n_moved > 0 {
            text += &format!(" {n_moved} of the changed streams have another address.");
        }
        if *n_contested > 0 {
            text += &format!(
                " {n_contested} streams were not found again, because several entries could be each of them."
            );
        }
        if *n_titles > 0 {
            text += &format!(" {n_titles} films and episodes are titles of the library.");
        }
        if *n_left_out > 0 {
            text += &format!(" {n_left_out} left out by filters and disabled groups.");
        }
        if *n_problems > 0 {
            let first = self.problems.first();
            match first.filter(|it| it.kind == m3u::PlaylistProblemKind::PanelElement) {
                Some(first) => text += &format!(" {n_problems} problems; {}.", first.text),
                None => {
                    let line = first.map_or(0, |it| it.line);
                    text += &format!(" {n_problems} problems, the first in line {line}.");
                }
            }
        }
        text + &self.sync.sentences()
    }
}

/// The changes of channels that belong to the groups of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncSummary {
    pub n_created: u64,
    /// Number of channels with a new name, number or other value of the provider.
    pub n_updated: u64,
    pub n_removed: u64,
    /// Number of streams without a channel because no number of their range is free.
    pub n_without_number: u64,
    /// Number of streams without a channel because the account has too many.
    pub n_beyond_max: u64,
}

impl SyncSummary {
    /// Returns sentences for an admin, each with a space before it. None if nothing happened.
    fn sentences(self) -> String {
        let Self { n_created, n_updated, n_removed, n_without_number, n_beyond_max } = self;
        let mut text = String::new();
        if n_created + n_updated + n_removed > 0 {
            text += &format!(" Channels: {n_created} created, {n_updated} updated, {n_removed} removed.");
        }
        if n_without_number > 0 {
            text += &format!(" {n_without_number} streams got no channel: no number of their range is free.");
        }
        if n_beyond_max > 0 {
            text += &format!(
                " {n_beyond_max} streams got no channel: an account creates at most {AUTO_CHANNELS_MAX}."
            );
        }
        text
    }
}

/// The part of an import that runs on a thread that may block.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) models: Models,
    pub(super) account: Arc<Account>,
    pub(super) options: ImportOptions,
    pub(super) stop: CancellationToken,
    pub(super) reporter: Arc<Reporter>,
    pub(super) began: Instant,
    /// The address of the account that is asked; `None` for the only one.
    pub(super) address: Option<SourceUrl>,
    /// Where the result is left if nothing is to be written.
    pub(super) preview: Option<PreviewSlot>,
}

impl Job {
    /// Returns an address of the provider as it is at the server that is asked.
    pub(super) fn located(&self, url: &SourceUrl) -> SourceUrl {
        match &self.address {
            Some(address) => at_address(url, &addresses_of(&self.account), address),
            None => url.clone(),
        }
    }

    /// Changes the addresses of a stream to those of the first server of the account, so that a stream stays the same
    /// whichever server has listed it.
    pub(super) fn normalise(&self, stream: &mut StreamProperties) {
        if self.address.is_none() {
            return;
        }
        let addresses = addresses_of(&self.account);
        let Some(first) = addresses.first() else { return };
        stream.url = at_address(&stream.url, &addresses, first);
        if let Some(source) = stream.archive.as_mut().and_then(|it| it.source.as_mut()) {
            *source = at_address(source, &addresses, first);
        }
    }

    /// Returns the event of the end of this import, if somebody wants to know.
    pub(super) fn event(&self, imported: &ImportSummary) -> Option<StoredEvent> {
        let body = imported.event(&self.account, self.began.elapsed());
        let event = Event { at: self.options.now(), body };
        Some(StoredEvent { events: self.options.events.clone()?, event })
    }

    /// Called between any two long steps.
    ///
    /// # Errors
    /// The import was stopped.
    pub(super) fn check_stop(&self) -> Result<(), ImportError> {
        if self.stop.is_cancelled() { Err(ImportError::Stopped) } else { Ok(()) }
    }
}

/// A receiver of the progress of an import.
pub(super) type ReportFn = dyn Fn(RefreshStatus) + Send + Sync;

/// The progress of an import, reported after every change.
pub(super) struct Reporter {
    progress: Mutex<RefreshStatus>,
    report: Box<ReportFn>,
}

impl Reporter {
    pub(super) fn new(
        progress: RefreshStatus,
        report: impl Fn(RefreshStatus) + Send + Sync + 'static,
    ) -> Self {
        Self { progress: Mutex::new(progress), report: Box::new(report) }
    }

    /// Changes the progress and reports it.
    pub(super) fn update(&self, change: impl FnOnce(&mut RefreshStatus)) {
        let progress = {
            let mut progress = self.progress.lock();
            change(&mut progress);
            progress.clone()
        };
        (self.report)(progress);
    }
}
