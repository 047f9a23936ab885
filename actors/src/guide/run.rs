//! One refresh of a guide, from the first request to the commit.
//!
//! ```text
//!   this runtime            a thread of low priority
//!   server ── bytes ──────▶ temporary file ─▶ read ─▶ guide file ─▶ check ─▶ commit
//!                                one more thread ┘        └ and one for its index
//! ```
//!
//! Until the commit, nothing that is in use changes; a failure leaves the former guide.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::event::{Event, EventBody, RefreshRef};
use domain::guide::channel::GuideChannel;
use domain::guide::source::GuideSource;
use domain::guide::state::{GuideState, GuideStatus};
use domain::guide::xmltv::{XmltvPlace, XmltvSkip};
use domain::ids::{GuideChannelId, GuideSourceId};
use parking_lot::Mutex;
use rustix::process::setpriority_process;
use storage::Models;
use storage::guide::{GuideFile, GuideFiles};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use super::collector::{Collected, Collector, Counts, Window};
use super::error::GuideError;
use super::guard::{self, Former};
use super::input::{ContentMark, GuideContent, GuideContext};
use super::inputs::input_of;
use super::landing::{self, Landing};
use super::progress::{GuidePhase, GuideRefreshStatus};
use super::services::GuideServices;
use crate::clock::now_ms;
use crate::events::StoredEvent;
use crate::fetch::Fetch;

/// The niceness of the thread: viewers come first.
const NICENESS: i32 = 10;

/// The dependencies of refreshes.
#[derive(Clone)]
pub struct GuideParts {
    pub models: Models,
    pub files: GuideFiles,
    /// Its limits are those of downloads of guides.
    pub fetch: Fetch,
    pub services: GuideServices,
    /// The folder of uploaded guides.
    pub uploads: PathBuf,
    /// Maximum size of an unpacked guide, in bytes.
    pub unpacked_bytes_max: u64,
}

/// Options of one refresh.
#[derive(Clone, Debug)]
pub struct GuideOptions {
    /// Accepts a guide that is much smaller than the former one or that is cut off, and reads an unchanged one again.
    pub force: bool,
    /// Stops the refresh; it changes nothing then.
    pub stop: CancellationToken,
    /// Distinguishes the progress of this refresh from that of others.
    pub job: Uuid,
    /// Time of the refresh in milliseconds since 1970, in place of the clock.
    pub at: Option<i64>,
}

impl Default for GuideOptions {
    fn default() -> Self {
        Self { force: false, stop: CancellationToken::new(), job: Uuid::new_v4(), at: None }
    }
}

impl GuideOptions {
    fn now(&self) -> i64 {
        self.at.unwrap_or_else(now_ms)
    }
}

/// The result of a refresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuideSummary {
    /// Whether the guide was the one that is in use already.
    pub is_unchanged: bool,
    /// Number of channels of the guide in use.
    pub n_channels: u64,
    /// Number of its programmes, with those of the past that are kept.
    pub n_programmes: u64,
    /// Number of channels and programmes that were left out because they are damaged.
    pub n_skipped: u64,
    /// Number of channels and programmes that were damaged, and stay without the damaged part.
    pub n_repaired: u64,
    /// Number of programmes that do not end after their start. They end with the next one of their channel.
    pub n_stops_wrong: u64,
    /// The first element that was left out, and why.
    pub first_skip: Option<(XmltvPlace, XmltvSkip)>,
    /// Number of channels of the guide that no channel uses.
    pub n_unused: u64,
}

impl GuideSummary {
    /// Returns the event of this refresh.
    pub(super) fn event(&self, source: GuideSourceId, name: String, took: Duration) -> EventBody {
        EventBody::EpgRefresh {
            source: RefreshRef { id: source.0, name },
            channels: self.n_channels,
            programs_updated: self.n_programmes,
            skipped_programs: self.n_skipped,
            unmapped_channels: self.n_unused,
            is_unchanged: self.is_unchanged,
            duration_seconds: took.as_secs(),
        }
    }

    /// Returns the summary as sentences for an admin.
    pub fn sentence(&self) -> String {
        let Self { is_unchanged, n_channels, n_programmes, n_skipped, n_repaired, n_stops_wrong, .. } = self;
        let mut text = format!("{n_channels} channels with {n_programmes} programmes.");
        if *is_unchanged {
            text.insert_str(0, "The guide has not changed: ");
        }
        if *n_skipped > 0 {
            text += &format!(" {n_skipped} damaged elements were left out");
            if let Some((place, reason)) = self.first_skip {
                text += &format!(", the first one at {place}: {reason}");
            }
            text.push('.');
        }
        if *n_repaired > 0 {
            text += &format!(" {n_repaired} damaged elements were repaired.");
        }
        if *n_stops_wrong > 0 {
            text += &format!(
                " {n_stops_wrong} programmes do not end after their start, and end with the next one."
            );
        }
        if self.n_unused == *n_channels && *n_channels > 0 {
            text += " No channel uses them yet.";
        }
        text
    }
}

/// Receives the progress of a refresh.
pub(super) type ReportFn = dyn Fn(GuideRefreshStatus) + Send + Sync;

/// A refresh on its thread.
struct Job {
    parts: GuideParts,
    source: Arc<GuideSource>,
    options: GuideOptions,
    runtime: Handle,
    stop: CancellationToken,
    began: Instant,
    progress: Mutex<GuideRefreshStatus>,
    report: Box<ReportFn>,
}

/// Refreshes the guide of a source. `report` receives the progress on any thread and must not block.
///
/// The result is written to the state of the source, unless the source does not exist or the refresh was stopped.
/// Dropping the future stops the refresh soon after.
///
/// # Errors
/// The former guide stays in use.
pub async fn refresh_guide(
    parts: &GuideParts,
    source: GuideSourceId,
    options: GuideOptions,
    report: impl Fn(GuideRefreshStatus) + Send + Sync + 'static,
) -> Result<GuideSummary, GuideError> {
    let source = parts.models.guide_sources.load().get(source.0).cloned().ok_or(GuideError::SourceChanged)?;
    let stop = options.stop.child_token();
    // Dropping this future cancels the token, which stops the thread.
    let _guard = stop.clone().drop_guard();
    let status = GuideRefreshStatus::new(source.id, options.job, options.now());
    let job = Arc::new(Job {
        parts: parts.clone(),
        source,
        options,
        runtime: Handle::current(),
        stop,
        began: Instant::now(),
        progress: Mutex::new(status),
        report: Box::new(report),
    });
    let (sender, ended) = oneshot::channel();
    let working = job.clone();
    let thread = std::thread::Builder::new().name("guide".to_owned()).spawn(move || {
        // A thread that cannot be made nicer works as well.
        let _ = setpriority_process(None, NICENESS);
        // An error only means that nobody waits any more.
        let _ = sender.send(working.run());
    });
    let done = match thread {
        // The sender is dropped by a panic, which the thread has logged.
        Ok(_) => ended.await.unwrap_or(Err(GuideError::Panicked)),
        Err(error) => Err(GuideError::Unread(error)),
    };
    let done = if job.stop.is_cancelled() && done.is_err() { Err(GuideError::Stopped) } else { done };
    if let Err(error) = &done {
        job.record_failure(error).await;
    }
    job.update(|it| finish(it, &done));
    done
}

/// Sets the final progress of a refresh.
pub(super) fn finish(status: &mut GuideRefreshStatus, done: &Result<GuideSummary, GuideError>) {
    status.advance(GuidePhase::Done, 100);
    (status.outcome, status.message) = match done {
        Ok(summary) => (Some(GuideStatus::Success), summary.sentence()),
        Err(GuideError::Stopped) => (None, GuideError::Stopped.sentence()),
        Err(error) => (Some(GuideStatus::Error), error.sentence()),
    };
}

impl Job {
    /// Changes the progress and reports it.
    fn update(&self, change: impl FnOnce(&mut GuideRefreshStatus)) {
        let status = {
            let mut status = self.progress.lock();
            change(&mut status);
            status.clone()
        };
        (self.report)(status);
    }

    /// Returns the event of the end of this refresh, if somebody wants to know.
    fn event(&self, summary: &GuideSummary) -> Option<StoredEvent> {
        let events = self.parts.services.events.clone()?;
        let body = summary.event(self.source.id, self.source.name.clone(), self.began.elapsed());
        Some(StoredEvent { events, event: Event { at: self.options.now(), body } })
    }

    fn check_stop(&self) -> Result<(), GuideError> {
        if self.stop.is_cancelled() { Err(GuideError::Stopped) } else { Ok(()) }
    }

    fn run(&self) -> Result<GuideSummary, GuideError> {
        let GuideParts { models, files, .. } = &self.parts;
        let source = self.source.id;
        let now = self.options.now();
        let state = models.guide_states.load().get(source.0).map(|it| GuideState::clone(it));
        let state = state.unwrap_or_else(|| GuideState::new(source));
        let former_file = files.file(source);
        // An earlier file stands in for a damaged one.
        let is_present = |it: &Arc<GuideFile>| it.generation() == state.generation && !it.is_damaged();
        let context = self.context(state.clone(), former_file.as_ref().is_some_and(is_present));
        let report = |phase, percent, counts: Counts| {
            self.check_stop()?;
            self.update(|it| {
                it.advance(phase, percent);
                (it.n_channels, it.n_programmes) = (counts.n_channels, counts.n_programmes);
            });
            Ok::<_, GuideError>(())
        };
        let seconds = now.div_euclid(1000);
        let window = Window::new(&self.source, seconds);
        let mut input = input_of(context)?;
        let mut collector = Collector::new(&models.store, source, files.begin(source)?, window, &report)?;
        let mark = match input.run(&mut collector)? {
            GuideContent::Unchanged(mark) => return self.land_unchanged(&state, mark, now),
            GuideContent::Whole(mark) => mark,
        };
        let Collected { mut writer, counts, bulk, channels } = collector.finish();
        report(GuidePhase::Writing, 0, counts)?;
        if !input.may_shrink() {
            let n_upcoming = former_file.as_ref().map_or(0, |it| it.n_ending_after(seconds));
            let former = Former { n_channels: state.n_channels, n_upcoming };
            guard::check(counts, former, self.options.force)?;
        }
        // In another zone, the times of the former guide would be wrong for ever.
        let is_same_zone = state.time_zone == self.source.time_zone;
        if let Some(former) = former_file.as_ref().filter(|_| is_same_zone) {
            writer.keep_history(former, window.since)?;
        }
        let finished = writer.finish()?;
        report(GuidePhase::Writing, 50, counts)?;
        let mut summary = GuideSummary {
            is_unchanged: false,
            n_channels: 0,
            n_programmes: finished.n_programmes(),
            n_skipped: counts.n_skipped + finished.n_refused(),
            n_repaired: counts.n_repaired,
            n_stops_wrong: counts.n_stops_wrong,
            first_skip: counts.first_skip,
            n_unused: UsedGuideChannels::new(models).n_unused(&channels.present),
        };
        summary.n_channels = channels.present.len() as u64;
        let state = GuideState {
            time_zone: self.source.time_zone.clone(),
            ..accepted(state, mark, summary.sentence(), now)
        };
        let (source, event) = (self.source.clone(), self.event(&summary));
        landing::land(models, files, Landing { source, channels, bulk, finished, state, event })?;
        Ok(summary)
    }

    fn context(&self, state: GuideState, has_guide: bool) -> GuideContext {
        let parts = &self.parts;
        GuideContext {
            source: self.source.clone(),
            state,
            models: parts.models.clone(),
            fetch: parts.fetch.clone(),
            services: parts.services.clone(),
            runtime: self.runtime.clone(),
            stop: self.stop.clone(),
            uploads: parts.uploads.clone(),
            files: parts.files.clone(),
            now: self.options.now(),
            force: self.options.force,
            has_guide,
            unpacked_bytes_max: parts.unpacked_bytes_max,
        }
    }

    /// Records that the guide is the one that is in use.
    fn land_unchanged(
        &self,
        state: &GuideState,
        mark: ContentMark,
        now: i64,
    ) -> Result<GuideSummary, GuideError> {
        let models = &self.parts.models;
        let (used, mut n_unused) = (UsedGuideChannels::new(models), 0);
        models.store.collection::<GuideChannel>().for_each_of(u64::from(self.source.id.0), |it| {
            n_unused += u64::from(!used.has(&it));
        })?;
        let summary = GuideSummary {
            is_unchanged: true,
            n_channels: state.n_channels,
            n_programmes: state.n_programmes,
            n_unused,
            ..GuideSummary::default()
        };
        let state = accepted(state.clone(), mark, summary.sentence(), now);
        let (source, event) = (self.source.clone(), self.event(&summary));
        models.store.write_blocking(move |write| landing::put(write, &source, &state, event.as_ref()))?;
        Ok(summary)
    }

    /// Records that the refresh failed, and why.
    async fn record_failure(&self, error: &GuideError) {
        if matches!(error, GuideError::Stopped | GuideError::SourceChanged) {
            return;
        }
        let (source, message, now) = (self.source.clone(), error.sentence(), self.options.now());
        let written = self.parts.models.store.write(move |write| {
            landing::check_source(write, &source)?;
            let state = write.get::<GuideState>(source.id.0)?;
            let state = GuideState {
                status: GuideStatus::Error,
                message,
                tried_at: Some(now),
                ..state.unwrap_or_else(|| GuideState::new(source.id))
            };
            Ok::<_, GuideError>(write.put(&state)?)
        });
        match written.await {
            Ok(()) | Err(GuideError::SourceChanged) => {}
            Err(error) => warn!(
                source.id = %self.source.id, "failed to store the result of a refresh of a guide: {error}"
            ),
        }
    }
}

/// Returns the state after a guide was accepted.
fn accepted(state: GuideState, mark: ContentMark, message: String, now: i64) -> GuideState {
    let ContentMark { etag, last_modified, digest, origin } = mark;
    GuideState {
        status: GuideStatus::Success,
        message,
        etag,
        last_modified,
        digest,
        origin,
        tried_at: Some(now),
        good_at: Some(now),
        ..state
    }
}

/// The channels of guides that channels use, by their link or by their guide id.
struct UsedGuideChannels {
    links: HashSet<GuideChannelId>,
    /// In lower case.
    keys: HashSet<String>,
}

impl UsedGuideChannels {
    fn new(models: &Models) -> Self {
        let users = models.channels.load();
        Self {
            links: users
                .iter()
                .flat_map(|it| it.guide_channel.iter().chain(&it.further_guides).copied())
                .collect(),
            keys: users.iter().filter_map(|it| Some(it.tvg_id.as_ref()?.to_lowercase())).collect(),
        }
    }

    fn has(&self, channel: &GuideChannel) -> bool {
        self.links.contains(&channel.id) || self.keys.contains(&channel.key.to_lowercase())
    }

    fn n_unused(&self, channels: &[GuideChannel]) -> u64 {
        channels.iter().filter(|it| !self.has(it)).count() as u64
    }
}
