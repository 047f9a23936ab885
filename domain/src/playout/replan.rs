//! A new plan for a running channel: indices change, the playing source is not touched.

use std::ops::ControlFlow::{Break, Continue};
use std::time::Instant;

use super::Playout;
use super::machine::split;
use super::messages::{AttemptReason, PlayoutCandidate};
use super::pauses::after;
use super::state::{AttemptStep, OpeningAttempt, PlayingSource, PlayoutState, join};

impl Playout {
    pub(super) fn replan(
        &mut self,
        state: PlayoutState,
        candidates: &[PlayoutCandidate],
        now: Instant,
    ) -> PlayoutState {
        if self.candidates.are(candidates) {
            return state;
        }
        // The playing candidate and those of a switch keep an index even if they left the plan.
        let keep: Vec<usize> =
            self.session.last_played().into_iter().chain(self.switches.referred()).collect();
        let moved = self.candidates.replan(candidates, &keep, &self.settings);
        let kept = |it: usize| moved[it].expect("the playing candidate is kept");

        self.session.move_candidates(&moved);
        self.incident.move_candidates(&moved, self.candidates.len());
        self.switches.move_candidates(&moved, |it| self.candidates.can_play(it));

        match split(state) {
            Continue((playing, next)) => {
                match playing.map(|it| PlayingSource { index: kept(it.index), ..it }) {
                    Some(playing) if self.is_needless(playing.index, next.why) => {
                        self.drop_attempt(&next);
                        self.keep_playing(playing, now)
                    }
                    playing => self.replan_attempt(playing, next, &moved, now),
                }
            }
            Break(PlayoutState::Playing(playing)) => {
                let index = kept(playing.index);
                // A return that is already scheduled keeps its time.
                let return_at = self.return_at(index, now).map(|it| playing.return_at.unwrap_or(it));
                let playing = PlayingSource { index, return_at, ..playing };
                match self.seeks_missing(index) {
                    true => self.keep_playing(playing, now),
                    false => PlayoutState::Playing(playing),
                }
            }
            Break(other) => other,
        }
    }

    fn replan_attempt(
        &mut self,
        playing: Option<PlayingSource>,
        mut next: OpeningAttempt,
        moved: &[Option<usize>],
        now: Instant,
    ) -> PlayoutState {
        next.retry_of = next.retry_of.and_then(|it| moved[it]);
        let playable = |it: usize| moved[it].filter(|it| self.candidates.can_play(*it));
        let mut order: Vec<usize> = match &mut next.step {
            AttemptStep::Asked { order, .. } => order.iter().filter_map(|it| playable(*it)).collect(),
            AttemptStep::Dialling { index, until }
            | AttemptStep::Preparing { index, until }
            | AttemptStep::Following { index, until }
            | AttemptStep::Waiting { index, until } => {
                if let Some(moved) = playable(*index) {
                    *index = moved;
                    if self.can_other_use_time(moved, now) {
                        // The attempt was given more time because no other candidate could use it.
                        *until = (*until).min(after(now, self.settings.open_timeout));
                    }
                    return join(playing, next);
                }
                Vec::new()
            }
        };

        // The request is sent again, because its indices changed or its candidate left the plan.
        self.drop_attempt(&next);
        if let Some(playing) = playing {
            if next.why.is_speculative() {
                return self.keep_playing(playing, now);
            }
            let order = self.switches.order().map_or(Vec::new(), <[usize]>::to_vec);
            if order.is_empty() {
                return self.switch_failed(playing, now);
            }
            let next = self.ask(order, AttemptReason::Switch, None, next.is_beside, now);
            return PlayoutState::Beside { playing, next };
        }
        if !self.session.has_lease_been_granted() {
            return self.ask_first(now);
        }
        if order.is_empty() {
            return self.try_next(now);
        }
        if next.why != AttemptReason::Switch {
            let others = self.untried(now);
            order.extend(others.into_iter().filter(|it| !order.contains(it)).collect::<Vec<_>>());
        }
        PlayoutState::Opening(self.ask(order, next.why, next.retry_of, false, now))
    }
}
