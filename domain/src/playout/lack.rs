//! A source that plays and lacks its picture, its sound or, if its stream has a setting for that, the motion of its picture:
//! a candidate that may have it is opened beside it, and plays when it has shown it. If no other one can help, the present
//! one plays as it is.

use std::time::Instant;

use super::Playout;
use super::messages::{Action, Attempt, AttemptReason, Lack, PlayoutChange};
use super::pauses::after;
use super::state::{PlayingSource, PlayoutState, join};
use crate::ids::StreamId;

/// The parts that the source that plays lacks, by [`Lack`]. It is replaced when another source plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Lacking {
    is_missing: [bool; Lack::ALL.len()],
    /// No other candidate can help, which was reported.
    is_accepted: [bool; Lack::ALL.len()],
    /// When a candidate that cannot help now may help.
    look_again_at: Option<Instant>,
}

impl Lacking {
    pub(super) fn look_again_at(&self) -> Option<Instant> {
        self.look_again_at
    }

    /// Returns the missing parts for which the source may be left. A picture that stands still is one only for streams with
    /// that setting.
    fn missing(self, leaves_still_picture: bool) -> impl Iterator<Item = Lack> {
        Lack::ALL
            .into_iter()
            .filter(move |it| self.is_missing[*it as usize] && (leaves_still_picture || *it != Lack::Motion))
    }

    /// Returns those for which another source may be looked for.
    fn sought(self, leaves_still_picture: bool) -> impl Iterator<Item = Lack> {
        self.missing(leaves_still_picture).filter(move |it| !self.is_accepted[*it as usize])
    }
}

impl Playout {
    /// The source that plays goes on without this part. `avoid`: streams that lacked it the last time.
    pub(super) fn lacks(
        &mut self,
        state: PlayoutState,
        attempt: Attempt,
        lack: Lack,
        avoid: &[StreamId],
        now: Instant,
    ) -> PlayoutState {
        if self.playing_in(&state) != Some(attempt) {
            return state;
        }
        self.candidates.lack(avoid, lack, now);
        self.lacking.is_missing[lack as usize] = true;
        self.lacking.is_accepted[lack as usize] = false;
        match state {
            PlayoutState::Playing(playing) => self.keep_playing(playing, now),
            // When the attempt in progress fails, this is considered.
            other => other,
        }
    }

    /// The source that plays has this part again, which ends an attempt that was made because it was missing.
    pub(super) fn complete(
        &mut self,
        state: PlayoutState,
        attempt: Attempt,
        lack: Lack,
        now: Instant,
    ) -> PlayoutState {
        if self.playing_in(&state) != Some(attempt) {
            return state;
        }
        self.lacking.is_missing[lack as usize] = false;
        if !self.lacking.is_missing.contains(&true) {
            self.lacking.look_again_at = None;
        }
        match state {
            PlayoutState::Beside { playing, next } if next.why == AttemptReason::Lack(lack) => {
                self.candidates.stream_has(playing.index, lack);
                self.drop_attempt(&next);
                self.keep_playing(playing, now)
            }
            PlayoutState::Playing(ref playing) | PlayoutState::Beside { ref playing, .. } => {
                self.candidates.stream_has(playing.index, lack);
                state
            }
            other => other,
        }
    }

    fn playing_in(&self, state: &PlayoutState) -> Option<Attempt> {
        match state {
            PlayoutState::Playing(playing) | PlayoutState::Beside { playing, .. } => Some(playing.attempt),
            _ => None,
        }
    }

    fn leaves_still_picture(&self, index: usize) -> bool {
        self.candidates.get(index).leaves_still_picture
    }

    /// Returns whether another source may be looked for because of what this one lacks.
    pub(super) fn seeks_missing(&self, playing: usize) -> bool {
        self.lacking.sought(self.leaves_still_picture(playing)).next().is_some()
    }

    /// Returns whether an attempt for this reason is needless, because the setting of the stream that plays was turned off.
    pub(super) fn is_needless(&self, playing: usize, why: AttemptReason) -> bool {
        why == AttemptReason::Lack(Lack::Motion) && !self.leaves_still_picture(playing)
    }

    /// Opens another candidate beside this one, if this one lacks a part that the other one may have.
    pub(super) fn seek_missing(&mut self, playing: PlayingSource, now: Instant) -> PlayoutState {
        for lack in self.lacking.sought(self.leaves_still_picture(playing.index)) {
            let order = self.order_for(playing.index, lack, now);
            if !order.is_empty() {
                let next = self.ask(order, AttemptReason::Lack(lack), None, true, now);
                return join(Some(playing), next);
            }
        }
        self.accept_lack(&playing, now);
        PlayoutState::Playing(playing)
    }

    /// The other source gets no slot while this one plays. Releasing this one helps if the other one uses such a slot.
    /// Otherwise an ordinary slot is requested.
    pub(super) fn lack_is_full(
        &mut self,
        playing: PlayingSource,
        lack: Lack,
        was_beside: bool,
        now: Instant,
    ) -> PlayoutState {
        let mut order = self.order_for(playing.index, lack, now);
        let profile = self.candidates.get(playing.index).profile;
        if order.iter().any(|it| self.candidates.get(*it).profile == profile) {
            // This source returns at once if another channel takes the slot first.
            if self.candidates.can_play(playing.index) {
                order.push(playing.index);
            }
            self.left_lacking(&playing, lack, now);
            self.source_ended(&playing, now);
            self.act(Action::Release);
            return PlayoutState::Opening(self.ask(order, AttemptReason::Failover, None, false, now));
        }
        if was_beside && !order.is_empty() {
            let next = self.ask(order, AttemptReason::Lack(lack), None, false, now);
            return join(Some(playing), next);
        }
        self.accept_lack(&playing, now);
        PlayoutState::Playing(playing)
    }

    /// This source is given up, because it lacks this part.
    pub(super) fn left_lacking(&mut self, playing: &PlayingSource, lack: Lack, now: Instant) {
        self.report(PlayoutChange::LeftLacking { index: playing.index, lack });
        self.candidates.left_lacking(playing.index, lack, now);
        for lack in self.lacking.missing(self.leaves_still_picture(playing.index)) {
            self.candidates.lack(&[self.candidates.get(playing.index).stream], lack, now);
        }
    }

    /// Looks again for a candidate that has what this one lacks: one that had failed may play now, and this one may be left
    /// again.
    pub(super) fn look_again(&mut self, playing: PlayingSource, now: Instant) -> PlayoutState {
        self.lacking.look_again_at = None;
        for lack in self.lacking.missing(self.leaves_still_picture(playing.index)) {
            if !self.order_for(playing.index, lack, now).is_empty() {
                self.lacking.is_accepted[lack as usize] = false;
                return self.keep_playing(playing, now);
            }
        }
        self.set_look_again(playing.index, now);
        PlayoutState::Playing(playing)
    }

    fn set_look_again(&mut self, playing: usize, now: Instant) {
        let may_help = self
            .lacking
            .missing(self.leaves_still_picture(playing))
            .any(|lack| self.candidates.playable().any(|it| self.may_help(it, playing, lack, now)));
        self.lacking.look_again_at = may_help.then(|| after(now, self.settings.lack_memory));
    }

    /// This source plays on without the parts that are missing.
    pub(super) fn accept_lack(&mut self, playing: &PlayingSource, now: Instant) {
        self.set_look_again(playing.index, now);
        for lack in self.lacking.sought(self.leaves_still_picture(playing.index)) {
            self.lacking.is_accepted[lack as usize] = true;
            self.candidates.lack(&[self.candidates.get(playing.index).stream], lack, now);
            self.report(PlayoutChange::PlaysLacking { index: playing.index, lack });
        }
    }

    /// Returns the candidates that may replace this one because it lacks this part, and have not failed lately. It is left
    /// for a part once in some minutes.
    fn order_for(&self, playing: usize, lack: Lack, now: Instant) -> Vec<usize> {
        if self.candidates.left_lacking_lately(playing, lack, now, &self.settings) {
            return Vec::new();
        }
        self.candidates.sorted(Some(playing), now, &self.settings, |it| {
            self.candidates.can_play(it)
                && !self.candidates.failed_lately(it, now, &self.settings)
                && self.may_help(it, playing, lack, now)
        })
    }

    /// Returns whether a candidate is of another stream that lacks less than this one, as far as is known, and not this part.
    /// A picture that stands still is better than none, and than no sound.
    fn may_help(&self, index: usize, playing: usize, lack: Lack, now: Instant) -> bool {
        self.candidates.get(index).stream != self.candidates.get(playing).stream
            && Lack::ALL.into_iter().filter(|it| *it != Lack::Motion || lack == Lack::Motion).all(|part| {
                let may_lack = self.lacking.is_missing[part as usize] && part != lack;
                may_lack || !self.candidates.lacked_lately(index, part, now, &self.settings)
            })
    }
}
