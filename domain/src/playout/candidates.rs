//! The candidates of a channel, with the history of each: recent failures and saved play.
//!
//! The history of one candidate never affects another; only the order considers the stream as a whole.

use std::time::{Duration, Instant};

use super::messages::{FailureScope, Lack, PlayoutCandidate};
use super::pauses::after;
use super::settings::PlayoutSettings;
use crate::ids::StreamId;

/// The candidates of the plan in its order, followed by those that left the plan but are still referred to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidates {
    all: Vec<TrackedCandidate>,
    /// Candidates from this index on have left the plan and are never requested.
    n_in_plan: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct TrackedCandidate {
    candidate: PlayoutCandidate,
    /// Time of the last failure of this candidate or of its stream. Cleared when it plays.
    failed_at: Option<Instant>,
    /// Time at which its responses ended so close together that another candidate was to play.
    ended_early_at: Option<Instant>,
    /// Whether its stream was lost because it was silent, and has not been lost for another reason since.
    was_silent: bool,
    /// Time of the last opening of its stream because of silence.
    reopened_at: Option<Instant>,
    /// Time at which a source that was opened beside this silent one had gained nothing.
    beside_in_vain_at: Option<Instant>,
    /// Time at which its stream was last known to lack each part, by [`Lack`].
    lacked_at: [Option<Instant>; Lack::ALL.len()],
    /// Time at which its stream was last left for each.
    left_lacking_at: [Option<Instant>; Lack::ALL.len()],
    /// Playing time saved up for immediate retries; one retry costs `token_play` of it.
    saved_play: Duration,
}

impl TrackedCandidate {
    fn new(candidate: PlayoutCandidate, settings: &PlayoutSettings) -> Self {
        Self {
            candidate,
            failed_at: None,
            ended_early_at: None,
            was_silent: false,
            reopened_at: None,
            beside_in_vain_at: None,
            lacked_at: Default::default(),
            left_lacking_at: Default::default(),
            saved_play: saved_play_max(settings),
        }
    }

    fn failed_lately(&self, now: Instant, settings: &PlayoutSettings) -> bool {
        self.failed_at.is_some_and(|at| now.saturating_duration_since(at) < settings.candidate_memory)
    }
}

fn saved_play_max(settings: &PlayoutSettings) -> Duration {
    settings.token_play * settings.bucket_tokens
}

impl Candidates {
    pub(super) fn new(candidates: Vec<PlayoutCandidate>, settings: &PlayoutSettings) -> Self {
        let n_in_plan = candidates.len();
        Self {
            all: candidates.into_iter().map(|it| TrackedCandidate::new(it, settings)).collect(),
            n_in_plan,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = PlayoutCandidate> {
        self.all.iter().map(|it| it.candidate)
    }

    pub(super) fn get(&self, index: usize) -> PlayoutCandidate {
        self.all[index].candidate
    }

    /// Returns whether the plan consists of exactly these candidates.
    pub(super) fn are(&self, candidates: &[PlayoutCandidate]) -> bool {
        self.n_in_plan == candidates.len() && self.all().take(self.n_in_plan).eq(candidates.iter().copied())
    }

    /// Returns whether the gateway itself can play this candidate.
    pub(super) fn can_play(&self, index: usize) -> bool {
        index < self.n_in_plan && !self.all[index].candidate.redirect
    }

    pub(super) fn playable(&self) -> impl Iterator<Item = usize> {
        (0..self.n_in_plan).filter(|it| self.can_play(*it))
    }

    /// Returns whether all playable candidates belong to one stream.
    pub(super) fn is_single(&self) -> bool {
        let mut streams = self.playable().map(|it| self.get(it).stream);
        streams.next().is_some_and(|first| streams.all(|it| it == first))
    }

    /// Returns the wanted candidates of the plan, from the one after `last` around to `last`. Candidates that failed
    /// lately come last, in the same order.
    pub(super) fn sorted(
        &self,
        last: Option<usize>,
        now: Instant,
        settings: &PlayoutSettings,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let first = last.map_or(0, |it| it + 1).min(self.n_in_plan);
        let around = (first..self.n_in_plan).chain(0..first).filter(|it| is_wanted(*it));
        let (failed, mut order): (Vec<_>, Vec<_>) =
            around.partition(|it| self.all[*it].failed_lately(now, settings));
        order.extend(failed);
        order
    }

    pub(super) fn failed(&mut self, index: usize, scope: FailureScope, now: Instant) {
        match scope {
            FailureScope::Stream => self.same_stream_mut(index).for_each(|it| it.failed_at = Some(now)),
            FailureScope::Candidate => self.all[index].failed_at = Some(now),
        }
    }

    pub(super) fn failed_at(&self, index: usize) -> Option<Instant> {
        self.all[index].failed_at
    }

    pub(super) fn failed_lately(&self, index: usize, now: Instant, settings: &PlayoutSettings) -> bool {
        self.all[index].failed_lately(now, settings)
    }

    /// The responses of this candidate end close together.
    pub(super) fn ends_early(&mut self, index: usize, now: Instant) {
        self.all[index].ended_early_at = Some(now);
    }

    pub(super) fn ended_early_lately(&self, index: usize, now: Instant, settings: &PlayoutSettings) -> bool {
        let at = self.all[index].ended_early_at;
        at.is_some_and(|it| now.saturating_duration_since(it) < settings.early_end_memory)
    }

    /// The stream of this candidate was lost, or could not be opened; `is_silence`: because it was silent.
    pub(super) fn stream_lost(&mut self, index: usize, is_silence: bool) {
        self.same_stream_mut(index).for_each(|it| it.was_silent = is_silence);
    }

    /// The stream of this candidate is being opened. `is_silence`: beside itself, because it is silent.
    pub(super) fn stream_opens(&mut self, index: usize, is_silence: bool, now: Instant) {
        if is_silence || self.all[index].was_silent {
            self.same_stream_mut(index).for_each(|it| it.reopened_at = Some(now));
        }
    }

    /// Returns the time before which this candidate must not be opened again because its stream was silent. `is_silent`: it
    /// is silent now.
    pub(super) fn held_until(
        &self,
        index: usize,
        is_silent: bool,
        settings: &PlayoutSettings,
    ) -> Option<Instant> {
        let tracked = &self.all[index];
        let reopened_at = tracked.reopened_at.filter(|_| is_silent || tracked.was_silent);
        reopened_at.map(|at| after(at, settings.silence_reopen_interval))
    }

    /// A source that was opened beside this silent one gained nothing.
    pub(super) fn opened_in_vain(&mut self, index: usize, now: Instant) {
        self.all[index].beside_in_vain_at = Some(now);
    }

    pub(super) fn opened_in_vain_lately(
        &self,
        index: usize,
        now: Instant,
        settings: &PlayoutSettings,
    ) -> bool {
        let at = self.all[index].beside_in_vain_at;
        at.is_some_and(|it| now.saturating_duration_since(it) < settings.beside_in_vain_memory)
    }

    /// These streams lack this part.
    pub(super) fn lack(&mut self, streams: &[StreamId], lack: Lack, now: Instant) {
        for it in self.all.iter_mut().filter(|it| streams.contains(&it.candidate.stream)) {
            it.lacked_at[lack as usize] = Some(now);
        }
    }

    /// The stream of this candidate has this part again.
    pub(super) fn stream_has(&mut self, index: usize, lack: Lack) {
        self.same_stream_mut(index).for_each(|it| it.lacked_at[lack as usize] = None);
    }

    /// The stream of this candidate is left for this part.
    pub(super) fn left_lacking(&mut self, index: usize, lack: Lack, now: Instant) {
        self.same_stream_mut(index).for_each(|it| it.left_lacking_at[lack as usize] = Some(now));
    }

    pub(super) fn lacked_lately(
        &self,
        index: usize,
        lack: Lack,
        now: Instant,
        settings: &PlayoutSettings,
    ) -> bool {
        let at = self.all[index].lacked_at[lack as usize];
        at.is_some_and(|it| now.saturating_duration_since(it) < settings.lack_memory)
    }

    pub(super) fn left_lacking_lately(
        &self,
        index: usize,
        lack: Lack,
        now: Instant,
        settings: &PlayoutSettings,
    ) -> bool {
        let at = self.all[index].left_lacking_at[lack as usize];
        at.is_some_and(|it| now.saturating_duration_since(it) < settings.lack_memory)
    }

    /// Returns when its stream was last left for what it lacked.
    pub(super) fn left_lacking_at(&self, index: usize) -> Option<Instant> {
        self.all[index].left_lacking_at.into_iter().flatten().max()
    }

    fn same_stream_mut(&mut self, index: usize) -> impl Iterator<Item = &mut TrackedCandidate> {
        let stream = self.get(index).stream;
        self.all.iter_mut().filter(move |it| it.candidate.stream == stream)
    }

    pub(super) fn source_plays(&mut self, index: usize) {
        self.all[index].failed_at = None;
    }

    pub(super) fn add_play(&mut self, index: usize, time: Duration, settings: &PlayoutSettings) {
        let tracked = &mut self.all[index];
        tracked.saved_play = tracked.saved_play.saturating_add(time).min(saved_play_max(settings));
    }

    /// Spends a retry token of this candidate. Returns whether it had one.
    pub(super) fn take_token(&mut self, index: usize, settings: &PlayoutSettings) -> bool {
        let tracked = &mut self.all[index];
        match tracked.saved_play.checked_sub(settings.token_play) {
            Some(rest) if settings.bucket_tokens > 0 => {
                tracked.saved_play = rest;
                true
            }
            _ => false,
        }
    }

    /// Replaces the candidates by those of a new plan, which inherit the history of equal ones, and what concerns their
    /// stream. Candidates in `keep` that left the plan stay behind it. Returns the new index of each old one.
    pub(super) fn replan(
        &mut self,
        candidates: &[PlayoutCandidate],
        keep: &[usize],
        settings: &PlayoutSettings,
    ) -> Vec<Option<usize>> {
        let old = std::mem::take(&mut self.all);
        let mut moved = vec![None; old.len()];
        for candidate in candidates {
            // The first one not matched yet, because a channel may contain a stream twice.
            let known =
                (0..old.len()).find(|it| moved[*it].is_none() && old[*it].candidate.is_same(*candidate));
            if let Some(known) = known {
                moved[known] = Some(self.all.len());
            }
            self.all.push(match known {
                Some(known) => TrackedCandidate { candidate: *candidate, ..old[known].clone() },
                None => {
                    let same_stream = old.iter().find(|it| it.candidate.stream == candidate.stream);
                    TrackedCandidate {
                        was_silent: same_stream.is_some_and(|it| it.was_silent),
                        reopened_at: same_stream.and_then(|it| it.reopened_at),
                        lacked_at: same_stream.map_or_else(Default::default, |it| it.lacked_at),
                        left_lacking_at: same_stream.map_or_else(Default::default, |it| it.left_lacking_at),
                        ..TrackedCandidate::new(*candidate, settings)
                    }
                }
            });
        }
        for kept in keep {
            if moved[*kept].is_none() {
                moved[*kept] = Some(self.all.len());
                self.all.push(old[*kept].clone());
            }
        }
        self.n_in_plan = candidates.len();
        moved
    }
}

/// Moves this index to the front, or adds it there.
pub(super) fn put_first(order: &mut Vec<usize>, index: usize) {
    order.retain(|it| *it != index);
    order.insert(0, index);
}
