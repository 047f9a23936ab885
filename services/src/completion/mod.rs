//! Completes films and series from The Movie Database with the key of the operator: after imports and when an admin asks.
//!
//! Each answer is stored with its time, so an interrupted run continues where it was. Reading order: `run.rs` (one run),
//! `client.rs` (requests, their pace and their errors).

mod client;
mod run;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use actors::{Fetch, FetchLimits, now_ms};
use domain::service_key::ServiceKey;
use domain::setting::CoreSetting;
use domain::tmdb::CompletionSettings;
use domain::vod::{CompletionOutcome, TitleId, TitleKind, VodSync};
use media::spawn_blocking;
use parking_lot::Mutex;
use storage::{ChangeMessage, Changes, LandError, Models, Record};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::client::Delays;
use self::run::Run;

/// Limits of one request. The largest documented answers, seasons with a hundred episodes, have some hundred kilobytes.
const LIMITS: FetchLimits = FetchLimits {
    connect_timeout: Duration::from_secs(10),
    read_timeout: Duration::from_secs(15),
    total_timeout: Duration::from_secs(30),
    bytes_max: 4 << 20,
};

/// The progress of the present run, or the result of the last one since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompletionProgress {
    pub is_running: bool,
    /// Titles that this run asks for.
    pub n_titles: usize,
    /// Titles that the limit of a run leaves to the next one.
    pub n_left_out: usize,
    pub n_found: usize,
    /// Titles with several results that fit.
    pub n_ambiguous: usize,
    pub n_unknown: usize,
    /// Titles without a useful answer. The next run asks again.
    pub n_failed: usize,
    /// Titles that turned out to be the same as another one.
    pub n_joined: u64,
    /// The last failure, or why the run ended early. Empty if neither happened. Contains no key.
    pub message: String,
    /// Milliseconds since 1970.
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
}

impl CompletionProgress {
    fn count(&mut self, outcome: CompletionOutcome) {
        match outcome {
            CompletionOutcome::Found => self.n_found += 1,
            CompletionOutcome::Ambiguous => self.n_ambiguous += 1,
            CompletionOutcome::Unknown => self.n_unknown += 1,
        }
    }

    /// Returns the number of titles that were asked for.
    pub fn n_done(&self) -> usize {
        self.n_found + self.n_ambiguous + self.n_unknown + self.n_failed
    }
}

/// Why no run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CompletionRefusal {
    #[error("Turn the completion on first: completion_enabled in the completion settings.")]
    Off,
    #[error("Set the key first: tmdb_api_key in the completion settings.")]
    NoKey,
    #[error("A completion is running. Wait until it has ended, or stop it.")]
    Busy,
}

/// Runs completions one by one. Clones share the state.
#[derive(Clone)]
pub struct Completions(Arc<Inner>);

struct Inner {
    models: Models,
    fetch: Fetch,
    delays: Delays,
    progress: Mutex<CompletionProgress>,
    /// Ends the present run.
    stop: Mutex<CancellationToken>,
    running: Arc<tokio::sync::Mutex<()>>,
    ended: Notify,
}

impl Completions {
    pub fn new(models: Models, fetch: Fetch) -> Self {
        Self::with_delays(models, fetch, Delays::default())
    }

    fn with_delays(models: Models, fetch: Fetch, delays: Delays) -> Self {
        Self(Arc::new(Inner {
            models,
            fetch: fetch.within(LIMITS),
            delays,
            progress: Mutex::default(),
            stop: Mutex::default(),
            running: Arc::default(),
            ended: Notify::new(),
        }))
    }

    pub fn progress(&self) -> CompletionProgress {
        self.0.progress.lock().clone()
    }

    /// Returns why no run can start with the present settings; `None` if one can.
    pub fn problem(&self) -> Option<CompletionRefusal> {
        let settings = self.0.models.completion_settings();
        match (settings.is_enabled, settings.api_key) {
            (false, _) => Some(CompletionRefusal::Off),
            (true, None) => Some(CompletionRefusal::NoKey),
            (true, Some(_)) => None,
        }
    }

    /// Starts a run in the background: for these titles, whatever is known of them, else for those that are due.
    ///
    /// # Errors
    /// The settings allow none, or another run has not ended.
    pub fn start(&self, titles: Option<Vec<TitleId>>) -> Result<(), CompletionRefusal> {
        if let Some(problem) = self.problem() {
            return Err(problem);
        }
        let Ok(running) = Arc::clone(&self.0.running).try_lock_owned() else {
            return Err(CompletionRefusal::Busy);
        };
        let stop = CancellationToken::new();
        *self.0.stop.lock() = stop.clone();
        *self.0.progress.lock() = CompletionProgress {
            is_running: true,
            started_at: Some(now_ms()),
            ..CompletionProgress::default()
        };
        let this = self.clone();
        actors::spawn(async move {
            let settings = this.0.models.completion_settings();
            Run::new(&this.0, settings, &stop).run(titles).await;
            this.finish();
            drop(running);
            this.0.ended.notify_one();
        });
        Ok(())
    }

    fn finish(&self) {
        let mut progress = self.0.progress.lock();
        (progress.is_running, progress.ended_at) = (false, Some(now_ms()));
        let CompletionProgress { n_found, n_ambiguous, n_unknown, n_failed, n_joined, message, .. } =
            &*progress;
        if message.is_empty() {
            info!(n_found, n_ambiguous, n_unknown, n_joined, "completed films and series");
        } else {
            warn!(
                n_found,
                n_ambiguous, n_unknown, n_failed, n_joined, "completing films and series: {message}"
            );
        }
    }

    /// Ends the present run after the title that is being asked for. What it has is stored. Returns false if none runs.
    pub fn stop(&self) -> bool {
        let is_running = self.progress().is_running;
        if is_running {
            self.0.stop.lock().cancel();
        }
        is_running
    }

    /// Removes all that was completed. Returns the number of titles.
    ///
    /// # Errors
    /// A run has not ended, or the store fails.
    pub async fn remove_all(&self) -> Result<Result<usize, LandError>, CompletionRefusal> {
        let Ok(_running) = Arc::clone(&self.0.running).try_lock_owned() else {
            return Err(CompletionRefusal::Busy);
        };
        let titles = self.0.models.vod.clone();
        let removed = spawn_blocking(move || titles.remove_completions(now_ms(), &|| false)).await;
        Ok(removed.unwrap_or(Err(LandError::Stopped)))
    }

    /// Starts a run after each import of films and series and after each change of the settings, and at the start of the
    /// gateway. Ends the present one when the completion is turned off. In a cluster, the node that writes the configuration
    /// does it. Runs until it is dropped or the store is closed.
    pub async fn follow(self) {
        let mut changes = self.0.models.store.changes();
        let mut known = None;
        loop {
            let present = self.occasion();
            if !present.0.is_enabled {
                self.stop();
            }
            if known.as_ref() != Some(&present) && !self.progress().is_running {
                let may_run = present.1;
                known = Some(present);
                if may_run {
                    // A refusal is what the settings say.
                    let _ = self.start(None);
                }
            }
            tokio::select! {
                is_open = has_occasion(&mut changes) => if !is_open { return },
                () = self.0.ended.notified() => {}
            }
        }
    }

    /// Returns what a run starts for: the settings, whether this node writes, and the latest import.
    fn occasion(&self) -> (CompletionSettings, bool, Option<i64>) {
        let models = &self.0.models;
        let good_at = |it: &Arc<VodSync>, kind| it.kind_sync(kind).and_then(|it| it.good_at);
        let syncs = models.vod_syncs.load();
        let latest = syncs.iter().flat_map(|it| TitleKind::ALL.map(|kind| good_at(it, kind))).flatten().max();
        (models.completion_settings(), models.store.writes_shared(), latest)
    }
}

/// Waits until a setting or an import changed. Returns false if the store was closed.
async fn has_occasion(changes: &mut Changes) -> bool {
    loop {
        match changes.next().await {
            ChangeMessage::Changed(change)
                if [CoreSetting::COLLECTION, ServiceKey::COLLECTION, VodSync::COLLECTION]
                    .iter()
                    .all(|it| change.ids(it).is_none()) => {}
            ChangeMessage::Changed(_) | ChangeMessage::Lagged => return true,
            ChangeMessage::Closed => return false,
        }
    }
}
