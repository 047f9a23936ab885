//! A new plan under a running channel: indices move, the source that plays is not touched.

use std::time::Instant;

use super::machine::{drop_attempt, join, split};
use super::{
    Action, AttemptReason, AttemptStep, OpeningAttempt, PlayingSource, Playout, PlayoutCandidate,
    PlayoutState,
};

impl Playout {
    pub(super) fn replan(
        &mut self,
        state: PlayoutState,
        places: &[PlayoutCandidate],
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        if self.candidates.are(places) {
            return state;
        }
        // What plays, or is talked about, keeps an index even if it left the plan.
        let talked_about = self.switch.iter().flat_map(|it| [it.from, it.to]);
        let keep: Vec<usize> = self.last_played.into_iter().chain(talked_about).collect();
        let moved = self.candidates.replan(places, &keep, &self.settings);
        let kept = |it: usize| moved[it].expect("what is kept has an index");

        self.last_played = self.last_played.map(kept);
        self.position = self.position.and_then(|it| moved[it]);
        self.wish = self.wish.and_then(|it| moved[it]).filter(|it| self.candidates.can_play(*it));
        if let Some(mut switch) = self.switch.take() {
            (switch.from, switch.to) = (kept(switch.from), kept(switch.to));
            switch.order = self.still_playable(&moved, &switch.order);
            self.switch = Some(switch);
        }

        match split(state) {
            Ok((playing, next)) => {
                let playing = playing.map(|it| PlayingSource { index: kept(it.index), ..it });
                self.replan_attempt(playing, next, &moved, now, out)
            }
            Err(PlayoutState::Playing(playing)) => {
                let index = kept(playing.index);
                // A return that is due stays due.
                let return_at = self.return_at(index, now).map(|it| playing.return_at.unwrap_or(it));
                PlayoutState::Playing(PlayingSource { index, return_at, ..playing })
            }
            Err(other) => other,
        }
    }

    fn replan_attempt(
        &mut self,
        playing: Option<PlayingSource>,
        mut next: OpeningAttempt,
        moved: &[Option<usize>],
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        next.retry_of = next.retry_of.and_then(|it| moved[it]);
        let still = |it: usize| moved[it].filter(|it| self.candidates.can_play(*it));
        let order = match &mut next.step {
            AttemptStep::Asked { order, .. } => self.still_playable(moved, order),
            AttemptStep::Dialling { index, .. }
            | AttemptStep::Following { index, .. }
            | AttemptStep::Waiting { index, .. } => {
                if let Some(moved) = still(*index) {
                    *index = moved;
                    return join(playing, next);
                }
                Vec::new()
            }
        };

        // The question has to be put anew: its indices have moved, or what it led to left the plan.
        drop_attempt(&next, out);
        if let Some(playing) = playing {
            let order = self.switch.as_ref().map_or(Vec::new(), |it| it.order.clone());
            if order.is_empty() {
                return self.switch_failed(playing, now, out);
            }
            let next = self.ask(order, AttemptReason::Switch, None, now, out);
            return PlayoutState::Switching { playing, next };
        }
        if !self.has_lease_been_granted {
            return self.ask_cold(now, out);
        }
        if order.is_empty() {
            return self.go_on(now, out);
        }
        let mut order = order;
        if next.why != AttemptReason::Switch {
            let others = self.candidates.untried(self.position, now, &self.settings);
            order.extend(others.into_iter().filter(|it| !order.contains(it)).collect::<Vec<_>>());
        }
        PlayoutState::Opening(self.ask(order, next.why, next.retry_of, now, out))
    }

    fn still_playable(&self, moved: &[Option<usize>], order: &[usize]) -> Vec<usize> {
        order.iter().filter_map(|it| moved[*it]).filter(|it| self.candidates.can_play(*it)).collect()
    }
}
