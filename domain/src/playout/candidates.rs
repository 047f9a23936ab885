//! The places of a channel and what is remembered of each: who is next, who failed lately, who may be retried.
//!
//! What is remembered of one place is never used for another; only the order takes the stream as a whole.

use std::time::{Duration, Instant};

use super::{FailureScope, PlayoutCandidate, PlayoutSettings};

/// The places of the plan, in its order, then those that are kept although they left it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidates {
    all: Vec<Candidate>,
    /// Places from here on are not in the plan any more: they are never asked for.
    n_in_plan: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct Candidate {
    place: PlayoutCandidate,
    /// When it, or its stream, failed last. Forgotten when it plays.
    failed_at: Option<Instant>,
    /// Play that it has saved up for immediate retries; one costs `token_play` of it.
    saved_play: Duration,
    /// It had its turn in this round.
    is_tried: bool,
    /// How often in this incident a provider refused it that still counted a closed connection.
    n_refusals: usize,
}

impl Candidate {
    fn new(place: PlayoutCandidate, settings: &PlayoutSettings) -> Self {
        Self { place, failed_at: None, saved_play: saved_play_max(settings), is_tried: false, n_refusals: 0 }
    }

    fn failed_lately(&self, now: Instant, settings: &PlayoutSettings) -> bool {
        self.failed_at.is_some_and(|at| now.saturating_duration_since(at) < settings.candidate_memory)
    }
}

fn saved_play_max(settings: &PlayoutSettings) -> Duration {
    settings.token_play * settings.bucket_tokens
}

impl Candidates {
    pub(super) fn new(places: Vec<PlayoutCandidate>, settings: &PlayoutSettings) -> Self {
        let n_in_plan = places.len();
        Self { all: places.into_iter().map(|it| Candidate::new(it, settings)).collect(), n_in_plan }
    }

    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = PlayoutCandidate> {
        self.all.iter().map(|it| it.place)
    }

    pub(super) fn place(&self, index: usize) -> PlayoutCandidate {
        self.all[index].place
    }

    pub(super) fn are(&self, places: &[PlayoutCandidate]) -> bool {
        self.n_in_plan == places.len() && self.all().take(self.n_in_plan).eq(places.iter().copied())
    }

    /// Whether the gateway itself can play this place.
    pub(super) fn can_play(&self, index: usize) -> bool {
        index < self.n_in_plan && !self.all[index].place.redirect
    }

    pub(super) fn playable(&self) -> impl Iterator<Item = usize> {
        (0..self.n_in_plan).filter(|it| self.can_play(*it))
    }

    /// Whether all that can be played is one stream.
    pub(super) fn is_single(&self) -> bool {
        let mut streams = self.playable().map(|it| self.place(it).stream);
        streams.next().is_some_and(|first| streams.all(|it| it == first))
    }

    /// The places of the plan that are wanted: from the one behind `last` on, around to it. Those that failed
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

    /// Those that have not had their turn in this round.
    pub(super) fn untried(
        &self,
        last: Option<usize>,
        now: Instant,
        settings: &PlayoutSettings,
    ) -> Vec<usize> {
        self.sorted(last, now, settings, |it| self.can_play(it) && !self.all[it].is_tried)
    }

    pub(super) fn begin_round(&mut self) {
        self.all.iter_mut().for_each(|it| it.is_tried = false);
    }

    pub(super) fn begin_incident(&mut self) {
        self.begin_round();
        self.all.iter_mut().for_each(|it| it.n_refusals = 0);
    }

    pub(super) fn had_its_turn(&mut self, index: usize) {
        self.all[index].is_tried = true;
    }

    pub(super) fn failed(&mut self, index: usize, scope: FailureScope, now: Instant) {
        let stream = self.place(index).stream;
        for (it, candidate) in self.all.iter_mut().enumerate() {
            if it == index || (scope == FailureScope::Stream && candidate.place.stream == stream) {
                candidate.failed_at = Some(now);
            }
        }
    }

    pub(super) fn failed_at(&self, index: usize) -> Option<Instant> {
        self.all[index].failed_at
    }

    pub(super) fn plays(&mut self, index: usize) {
        self.all[index].is_tried = false;
        self.all[index].failed_at = None;
    }

    pub(super) fn has_played_for(&mut self, index: usize, time: Duration, settings: &PlayoutSettings) {
        let candidate = &mut self.all[index];
        candidate.saved_play = candidate.saved_play.saturating_add(time).min(saved_play_max(settings));
    }

    /// Spends a token of this place, if it has one.
    pub(super) fn take_token(&mut self, index: usize, settings: &PlayoutSettings) -> bool {
        let candidate = &mut self.all[index];
        match candidate.saved_play.checked_sub(settings.token_play) {
            Some(rest) if settings.bucket_tokens > 0 => {
                candidate.saved_play = rest;
                true
            }
            _ => false,
        }
    }

    /// How long to wait before the provider is asked for this place again; `None` when it was asked enough.
    pub(super) fn next_release_pause(
        &mut self,
        index: usize,
        settings: &PlayoutSettings,
    ) -> Option<Duration> {
        let candidate = &mut self.all[index];
        let pause = settings.release_pauses.get(candidate.n_refusals).copied()?;
        candidate.n_refusals += 1;
        Some(pause)
    }

    /// Takes over the places of a new plan. What is known of a place goes with it. Those in `keep` stay, behind
    /// the plan, if it has them no more. Returns where each old index is now.
    pub(super) fn replan(
        &mut self,
        places: &[PlayoutCandidate],
        keep: &[usize],
        settings: &PlayoutSettings,
    ) -> Vec<Option<usize>> {
        let old = std::mem::take(&mut self.all);
        let mut moved = vec![None; old.len()];
        for place in places {
            // The first one not found yet: a channel may name a stream twice.
            let known = (0..old.len()).find(|it| moved[*it].is_none() && old[*it].place.is_same(*place));
            if let Some(known) = known {
                moved[known] = Some(self.all.len());
            }
            self.all.push(match known {
                Some(known) => Candidate { place: *place, ..old[known].clone() },
                None => Candidate::new(*place, settings),
            });
        }
        for kept in keep {
            if moved[*kept].is_none() {
                moved[*kept] = Some(self.all.len());
                self.all.push(old[*kept].clone());
            }
        }
        self.n_in_plan = places.len();
        moved
    }
}
