//! A source that plays and falls silent: the next candidate is opened beside it, and whichever delivers first plays.

use std::time::Instant;

use super::Playout;
use super::messages::{Attempt, AttemptReason, FailureScope, PlayoutChange};
use super::state::{AttemptStep, OpeningAttempt, PlayingSource, PlayoutState, join};

/// The silence of the source that plays. It is replaced when another source plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Silence {
    is_silent: bool,
    /// Whether other sources may be opened beside it: none was opened in vain lately, before this silence began.
    may_open: bool,
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
                self.begin_silence(&playing, now);
                self.keep_playing(playing, now)
            }
            PlayoutState::Beside { playing, next } if playing.attempt == attempt => {
                self.begin_silence(&playing, now);
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
                self.keep_playing(playing, now)
            }
            PlayoutState::Beside { playing, next } if playing.attempt == attempt => {
                self.silence.is_silent = false;
                if next.why != AttemptReason::Silence {
                    return join(Some(playing), next);
                }
                self.drop_attempt(&next);
                self.ended_in_vain(&playing, &next, now);
                self.keep_playing(playing, now)
            }
            other => other,
        }
    }

    fn begin_silence(&mut self, playing: &PlayingSource, now: Instant) {
        let may_open = !self.candidates.opened_in_vain_lately(playing.index, now, &self.settings);
        self.silence = Silence { is_silent: true, may_open };
    }

    /// A speculative attempt ended before its source was ready. A mere request for a slot has opened nothing.
    pub(super) fn ended_in_vain(&mut self, playing: &PlayingSource, next: &OpeningAttempt, now: Instant) {
        if matches!(next.step, AttemptStep::Dialling { .. } | AttemptStep::Preparing { .. }) {
            self.candidates.opened_in_vain(playing.index, now);
        }
    }

    /// Keeps playing this source. While it is silent or lacks a part, another candidate is opened beside it.
    pub(super) fn keep_playing(&mut self, playing: PlayingSource, now: Instant) -> PlayoutState {
        if !self.silence.is_silent {
            return self.seek_missing(playing, now);
        }
        if !self.silence.may_open {
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
        self.candidates.stream_lost(silent.index, true);
        if silent.index != by {
            self.candidates.failed(silent.index, FailureScope::Stream, now);
            self.incident.mark_tried(silent.index);
        }
    }

    /// Returns the candidates that can be opened beside a silent one: the others, or itself if it is the only one. A
    /// candidate that failed lately is left out, and a stream that was opened because of silence a moment ago.
    fn speculative_order(&self, silent: usize, now: Instant) -> Vec<usize> {
        let silent_stream = self.candidates.get(silent).stream;
        let can_help = |it: usize| {
            let is_silent = self.candidates.get(it).stream == silent_stream;
            let held_until = self.candidates.held_until(it, is_silent, &self.settings);
            self.candidates.can_play(it)
                && !self.candidates.failed_lately(it, now, &self.settings)
                && held_until.is_none_or(|it| it <= now)
        };
        let has_others = self.candidates.playable().any(|it| it != silent);
        self.candidates
            .sorted(Some(silent), now, &self.settings, |it| can_help(it) && (it != silent || !has_others))
    }
}
