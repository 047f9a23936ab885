//! Values that belong to one incident.

use std::time::{Duration, Instant};

use super::messages::Failure;
use super::pauses::after;
use super::settings::PlayoutSettings;

/// One incident: from the start of a channel, or from the loss of a source that had played well, until another source
/// plays well. It is replaced when the next incident begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Incident {
    /// Time of the last packet; `None` while a source plays.
    silent_since: Option<Instant>,
    n_backoffs: u32,
    /// How often each candidate was refused by a provider that still counted a closed connection.
    n_refusals: Vec<usize>,
    round: Round,
}

/// One pass over the candidates. It is replaced when the next round begins.
#[derive(Debug, Clone, PartialEq)]
struct Round {
    /// Whether each candidate had its turn.
    is_tried: Vec<bool>,
    /// Every attempt so far failed permanently: waiting cannot help.
    is_hopeless: bool,
}

impl Round {
    fn new(n_candidates: usize) -> Self {
        Self { is_tried: vec![false; n_candidates], is_hopeless: true }
    }
}

impl Incident {
    pub(super) fn new(silent_since: Option<Instant>, n_candidates: usize) -> Self {
        Self {
            silent_since,
            n_backoffs: 0,
            n_refusals: vec![0; n_candidates],
            round: Round::new(n_candidates),
        }
    }

    pub(super) fn begin_round(&mut self) {
        self.round = Round::new(self.n_refusals.len());
    }

    /// A source was lost before it had played long enough to end the incident.
    pub(super) fn source_lost(&mut self, now: Instant) {
        self.silent_since = Some(now);
    }

    pub(super) fn source_plays(&mut self, index: usize) {
        self.silent_since = None;
        self.round.is_tried[index] = false;
    }

    pub(super) fn give_up_at(&self, settings: &PlayoutSettings) -> Option<Instant> {
        self.silent_since.map(|it| after(it, settings.give_up_after))
    }

    /// Returns what is left of the start time. Only meaningful before the first source has played.
    pub(super) fn start_time_left(&self, now: Instant, settings: &PlayoutSettings) -> Option<Duration> {
        let since = self.silent_since?;
        Some(settings.start_timeout.saturating_sub(now.saturating_duration_since(since)))
    }

    pub(super) fn mark_tried(&mut self, index: usize) {
        self.round.is_tried[index] = true;
    }

    pub(super) fn is_tried(&self, index: usize) -> bool {
        self.round.is_tried[index]
    }

    pub(super) fn attempt_failed(&mut self, failure: Failure) {
        self.round.is_hopeless &= failure.is_permanent;
    }

    /// The slots actor did not answer, so waiting may help.
    pub(super) fn request_unanswered(&mut self) {
        self.round.is_hopeless = false;
    }

    pub(super) fn is_hopeless(&self) -> bool {
        self.round.is_hopeless
    }

    /// Returns the next backoff, which is twice as long as the one before, and counts it.
    pub(super) fn next_backoff(&mut self, shortest: Duration, longest: Duration) -> Duration {
        let pause = shortest.saturating_mul(1 << self.n_backoffs.min(16)).min(longest);
        self.n_backoffs = self.n_backoffs.saturating_add(1);
        pause
    }

    /// Returns the pause before the provider is asked for this candidate again; `None` after the last one.
    pub(super) fn next_release_pause(
        &mut self,
        index: usize,
        settings: &PlayoutSettings,
    ) -> Option<Duration> {
        let n_refusals = &mut self.n_refusals[index];
        let pause = settings.release_pauses.get(*n_refusals).copied()?;
        *n_refusals += 1;
        Some(pause)
    }

    /// Moves the values of each candidate to its new index.
    pub(super) fn move_candidates(&mut self, moved: &[Option<usize>], n_candidates: usize) {
        let (mut n_refusals, mut is_tried) = (vec![0; n_candidates], vec![false; n_candidates]);
        for (from, to) in moved.iter().enumerate() {
            if let Some(to) = *to {
                n_refusals[to] = self.n_refusals[from];
                is_tried[to] = self.round.is_tried[from];
            }
        }
        self.n_refusals = n_refusals;
        self.round.is_tried = is_tried;
    }
}
