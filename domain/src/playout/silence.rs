//! A source that plays and falls silent: the next candidate is opened beside it, and whichever delivers first plays.

use std::time::{Duration, Instant};

use super::Playout;
use super::messages::{Attempt, AttemptReason, FailureScope, PlayoutChange};
use super::pauses::after;
use super::state::{PlayingSource, PlayoutState, join};

/// The silence of the source that plays. It is replaced when another source plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Silence {
    is_silent: bool,
    /// How often the source sent again while another one was opened.
    n_needless: u32,
    /// No other source is opened before this time, because the last ones were not needed.
    not_before: Option<Instant>,
}

impl Silence {
    /// Another source was opened, and this one sends again: the next one is opened after a pause, which doubles.
    fn was_needless(&mut self, now: Instant, shortest: Duration, longest: Duration) {
        let pause = shortest.saturating_mul(1 << self.n_needless.min(16)).min(longest);
        self.n_needless = self.n_needless.saturating_add(1);
        self.not_before = Some(after(now, pause));
    }
}

impl Playout {
    /// The source that plays has sent no payload for longer than usual.
    pub(super) fn fell_silent(
        &mut self,
        state: PlayoutState,
        attempt: Attempt,
        now: Instant,
    ) -> PlayoutState {
        match state {
            PlayoutState::Playing(playing) if playing.attempt == attempt => {
                self.silence.is_silent = true;
                self.keep_playing(playing, now)
            }
            PlayoutState::Beside { playing, next } if playing.attempt == attempt => {
                self.silence.is_silent = true;
                join(Some(playing), next)
            }
            other => other,
        }
    }

    /// The source that was silent sends payload again, which ends a speculative attempt.
    pub(super) fn resumed(&mut self, state: PlayoutState, attempt: Attempt, now: Instant) -> PlayoutState {
        match state {
            PlayoutState::Playing(playing) if playing.attempt == attempt => {
                self.silence.is_silent = false;
                PlayoutState::Playing(playing)
            }
            PlayoutState::Beside { playing, next } if playing.attempt == attempt => {
                self.silence.is_silent = false;
                if next.why != AttemptReason::Silence {
                    return join(Some(playing), next);
                }
                self.drop_attempt(&next);
                self.silence.was_needless(now, self.settings.backoff_min, self.settings.backoff_max);
                PlayoutState::Playing(playing)
            }
            other => other,
        }
    }

    /// Keeps playing this source. While it is silent, the next candidate is opened beside it.
    pub(super) fn keep_playing(&mut self, playing: PlayingSource, now: Instant) -> PlayoutState {
        let silence = self.silence;
        if !silence.is_silent || silence.not_before.is_some_and(|it| now < it) {
            return PlayoutState::Playing(playing);
        }
        let order = self.speculative_order(playing.index, now);
        if order.is_empty() {
            return PlayoutState::Playing(playing);
        }
        let next = self.ask(order, AttemptReason::Silence, None, true, now);
        join(Some(playing), next)
    }

    /// The new source is ready while the one that plays is silent: as after its loss, it is tried last from now on.
    pub(super) fn replaced_in_silence(&mut self, silent: &PlayingSource, by: usize, now: Instant) {
        self.report(PlayoutChange::LeftSilent { index: silent.index });
        if silent.index != by {
            self.candidates.failed(silent.index, FailureScope::Stream, now);
            self.incident.mark_tried(silent.index);
        }
    }

    /// Returns the candidates that can be opened beside a silent one: the others, or itself if it is the only one. A
    /// candidate that failed lately is left out.
    fn speculative_order(&self, silent: usize, now: Instant) -> Vec<usize> {
        let can_help = |it: usize| {
            self.candidates.can_play(it) && !self.candidates.failed_lately(it, now, &self.settings)
        };
        let has_others = self.candidates.playable().any(|it| it != silent);
        self.candidates
            .sorted(Some(silent), now, &self.settings, |it| can_help(it) && (it != silent || !has_others))
    }
}
