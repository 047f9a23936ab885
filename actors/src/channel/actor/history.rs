//! The past of a live channel: its timeline, gaps, losses and failovers.

use std::time::Duration;

use domain::event::StreamRef;
use media::error::UpstreamError;
use tokio::time::Instant;

use super::repeats::RepeatedFailures;
use crate::channel::WatchRefusal;
use crate::clock::now_ms;
use crate::slots::FullPool;
use crate::timeline::{RunEntry, Timeline};

/// A period without a source that plays. Losses of later attempts do not change its cause.
struct Gap {
    since: Instant,
    cause: &'static str,
}

/// A gap as it is reported. Without a gap, the length is 0 and the cause empty.
#[derive(Clone, Copy)]
pub(super) struct GapSummary {
    pub(super) gap_ms: u64,
    pub(super) cause: &'static str,
}

/// The past of a live channel.
pub(super) struct History {
    /// `None` while the channel has no plan.
    timeline: Option<Timeline>,
    started: Instant,
    /// Milliseconds since 1970.
    started_at: i64,
    first_played: Option<Instant>,
    start_requested: Option<Instant>,
    gap: Option<Gap>,
    /// Time of the last payload of the source that plays, if it is silent.
    silent_since: Option<Instant>,
    last_stream: Option<StreamRef>,
    /// Empty until the channel ends.
    end_reason: String,
    is_stop_reported: bool,
    last_cause: Option<UpstreamError>,
    last_full: Option<FullPool>,
    n_losses: u64,
    n_failovers: u64,
    /// Failures that the log does not repeat.
    pub(super) repeated_failures: RepeatedFailures,
}

impl History {
    pub(super) fn new() -> Self {
        Self {
            timeline: None,
            started: Instant::now(),
            started_at: now_ms(),
            first_played: None,
            start_requested: None,
            gap: None,
            silent_since: None,
            last_stream: None,
            end_reason: String::new(),
            is_stop_reported: false,
            last_cause: None,
            last_full: None,
            n_losses: 0,
            n_failovers: 0,
            repeated_failures: RepeatedFailures::default(),
        }
    }

    /// From now on entries are written to this timeline.
    pub(super) fn set_timeline(&mut self, timeline: Timeline) {
        self.timeline = Some(timeline);
    }

    pub(super) fn write(&self, entry: RunEntry) {
        if let Some(timeline) = &self.timeline {
            timeline.write(entry);
        }
    }

    /// Notes when the channel was asked to start, to measure its start time.
    pub(super) fn start_requested(&mut self) {
        self.start_requested = Some(Instant::now());
    }

    /// Notes that the first source since a start plays. Returns how long the start took, once per request.
    pub(super) fn started_playing(&mut self) -> Option<Duration> {
        self.first_played.get_or_insert_with(Instant::now);
        self.start_requested.take().map(|it| it.elapsed())
    }

    /// Notes that nothing plays from now on, or since the source that plays fell silent: a gap is what viewers miss. The
    /// first cause counts.
    pub(super) fn begin_gap(&mut self, cause: &'static str) {
        let since = self.silent_since.take().unwrap_or_else(Instant::now);
        self.gap.get_or_insert(Gap { since, cause });
    }

    /// Notes that the source that plays has been silent for this long.
    pub(super) fn begin_silence(&mut self, silence: Duration) {
        self.silent_since = Instant::now().checked_sub(silence);
    }

    /// Notes that the source that was silent sends again. Returns how long it was silent.
    pub(super) fn end_silence(&mut self) -> Duration {
        self.silent_since.take().map_or(Duration::ZERO, |it| it.elapsed())
    }

    pub(super) fn gap(&self) -> GapSummary {
        match &self.gap {
            Some(gap) => GapSummary { gap_ms: gap.since.elapsed().as_millis() as u64, cause: gap.cause },
            None => GapSummary { gap_ms: 0, cause: "" },
        }
    }

    /// Returns since when viewers miss something.
    pub(super) fn gap_since(&self) -> Option<Instant> {
        self.gap.as_ref().map(|it| it.since)
    }

    /// Notes that this node looks for a source from now on: the failures of the node before do not explain its own.
    pub(super) fn take_over(&mut self) {
        self.last_cause = None;
    }

    /// Notes that this stream plays from now on; ends the gap.
    pub(super) fn plays(&mut self, stream: StreamRef) {
        self.gap = None;
        self.silent_since = None;
        self.last_full = None;
        self.last_stream = Some(stream);
    }

    /// Notes that the ring of another node is shown from now on; ends the gap.
    pub(super) fn pull_plays(&mut self) {
        self.gap = None;
        self.silent_since = None;
    }

    /// Returns the stream that plays or played last.
    pub(super) fn last_stream(&self) -> Option<&StreamRef> {
        self.last_stream.as_ref()
    }

    pub(super) fn lost(&mut self, cause: UpstreamError) {
        self.n_losses += 1;
        self.last_cause = Some(cause);
    }

    pub(super) fn failed_over(&mut self) {
        self.n_failovers += 1;
    }

    /// Notes that no slot came free. Returns whether that is new since something played.
    pub(super) fn no_slot(&mut self, full: FullPool) -> bool {
        self.last_full.replace(full).is_none()
    }

    /// Returns the refusal for viewers when no slot came free.
    pub(super) fn full_refusal(&self) -> WatchRefusal {
        self.last_full.clone().map_or(WatchRefusal::Stopping, WatchRefusal::Full)
    }

    /// Returns whether the last attempt failed because all connections of its provider are in use.
    pub(super) fn is_full_now(&self) -> bool {
        self.last_cause.as_ref().is_some_and(UpstreamError::is_full_now)
    }

    pub(super) fn why_nothing_plays(&self) -> String {
        self.last_failure().unwrap_or_else(|| "no stream answered in time".to_owned())
    }

    /// Returns why the last attempt failed.
    pub(super) fn last_failure(&self) -> Option<String> {
        let full = || self.last_full.clone().map(|it| WatchRefusal::Full(it).to_string());
        self.last_cause.as_ref().map(ToString::to_string).or_else(full)
    }

    pub(super) fn ends(&mut self, reason: String) {
        self.end_reason = reason;
    }

    /// Returns why the channel ended; empty until it is requested to end.
    pub(super) fn end_reason(&self) -> &str {
        &self.end_reason
    }

    /// Returns `true` the first time: the stop of a channel is reported once.
    pub(super) fn claim_stop_report(&mut self) -> bool {
        !std::mem::replace(&mut self.is_stop_reported, true)
    }

    pub(super) fn has_played(&self) -> bool {
        self.first_played.is_some()
    }

    pub(super) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Milliseconds since 1970.
    pub(super) fn started_at(&self) -> i64 {
        self.started_at
    }

    pub(super) fn since_first_play(&self) -> Option<Duration> {
        self.first_played.map(|it| it.elapsed())
    }

    pub(super) fn n_losses(&self) -> u64 {
        self.n_losses
    }

    pub(super) fn n_failovers(&self) -> u64 {
        self.n_failovers
    }
}
