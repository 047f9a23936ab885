//! The states of a playout.

use std::time::Instant;

use super::messages::{Attempt, AttemptReason};
use super::settings::PlayoutSettings;

/// The state of a playout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlayoutState {
    Idle,
    Opening(OpeningAttempt),
    Playing(PlayingSource),
    /// A source plays, and another one is opened beside it: for a switch, or because the first one is silent.
    Beside {
        playing: PlayingSource,
        next: OpeningAttempt,
    },
    /// Every candidate of a round failed; the next round begins at `until`.
    Backoff {
        until: Instant,
    },
    Stopped,
}

/// An attempt in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpeningAttempt {
    pub attempt: Attempt,
    pub why: AttemptReason,
    pub step: AttemptStep,
    /// Time at which the opener delivered its source.
    pub(super) opened: Option<Instant>,
    /// Its slot was requested for a second connection beside the source that plays.
    pub(super) is_beside: bool,
    /// The candidate for which this attempt is an immediate retry, if that candidate is granted.
    pub(super) retry_of: Option<usize>,
}

/// The progress of an attempt. Each step ends at `until` at the latest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptStep {
    /// Waiting for a lease.
    Asked { order: Vec<usize>, until: Instant },
    /// Waiting for the opener.
    Dialling { index: usize, until: Instant },
    /// Waiting for the pump, which reads the source beside the one that plays.
    Preparing { index: usize, until: Instant },
    /// Waiting for the pump.
    Following { index: usize, until: Instant },
    /// The provider refused because it still counts a closed connection; the candidate is requested again at `until`.
    /// Until then the attempt is over, without request, lease or source.
    Waiting { index: usize, until: Instant },
}

impl AttemptStep {
    pub(super) fn until(&self) -> Instant {
        match self {
            Self::Asked { until, .. }
            | Self::Dialling { until, .. }
            | Self::Preparing { until, .. }
            | Self::Following { until, .. }
            | Self::Waiting { until, .. } => *until,
        }
    }
}

/// A source that plays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayingSource {
    pub attempt: Attempt,
    pub index: usize,
    pub since: Instant,
    /// Time at which the opener delivered it. Between this and `since` packets are collected, for a second at most.
    pub(super) opened: Instant,
    /// Time at which a return to a preferred stream is tried.
    pub return_at: Option<Instant>,
}

impl PlayingSource {
    /// Returns whether it was opened so long ago that its end now would be no failure.
    pub(super) fn has_played_well(&self, now: Instant, settings: &PlayoutSettings) -> bool {
        now.saturating_duration_since(self.opened) >= settings.healthy_play
    }
}

/// Returns the state in which this attempt is in progress, beside the source that plays if there is one.
pub(super) fn join(playing: Option<PlayingSource>, next: OpeningAttempt) -> PlayoutState {
    match playing {
        Some(playing) => PlayoutState::Beside { playing, next },
        None => PlayoutState::Opening(next),
    }
}
