//! Creates recordings of the episodes that a rule still wants.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::plan::{Airing, EpisodeOutcome, Plan, takes_episode};
use super::shared::{Holder, episodes};
use super::{EpisodeKey, HORIZON_MS, NewBy, PlannedChange, RecordingRule, RuleSelection};
use crate::ids::{ChannelId, RecordingId};
use crate::recording::{FollowedAiring, Recording};

/// The known facts about the episodes of a rule.
struct KnownEpisodes {
    /// Episodes whose recordings a user deleted.
    deleted: HashSet<EpisodeKey>,
    /// Episodes that need no recording, because the rule has one.
    done: HashSet<EpisodeKey>,
    /// Episodes that were shown before the rule was made, as the rule remembers them.
    old: HashSet<EpisodeKey>,
    /// Those that it is to remember.
    newly_old: Vec<EpisodeKey>,
}

impl KnownEpisodes {
    fn has(of: &HashSet<EpisodeKey>, showings: &[&Arc<Airing>]) -> bool {
        showings.iter().any(|it| it.episode_keys().any(|it| of.contains(&it)))
    }

    /// Returns why a rule that records new episodes only does not want these showings of an episode.
    fn not_new(&mut self, rule: &RecordingRule, showings: &[&Arc<Airing>]) -> Option<EpisodeOutcome> {
        let RuleSelection::Programmes(test) = &rule.selection else { return None };
        let first = showings.first()?;
        let (new_by, is_marked) = (test.conditions.new_by, showings.iter().any(|it| it.is_new));
        if !test.only_new || (is_marked && new_by != NewBy::Identity) {
            return None;
        }
        if first.start < rule.created_at || Self::has(&self.old, showings) {
            if first.episode.is_known() && !self.old.contains(&first.episode) {
                self.newly_old.push(first.episode);
            }
            return Some(EpisodeOutcome::ShownBefore);
        }
        let is_repeat = showings.iter().all(|it| it.is_repeat);
        match new_by {
            NewBy::Identity => None,
            NewBy::Mark if !is_repeat => Some(EpisodeOutcome::NotMarked),
            NewBy::Mark | NewBy::Either => is_repeat.then_some(EpisodeOutcome::Repeat),
        }
    }
}

impl Plan<'_, '_> {
    /// Creates recordings of the episodes that are still wanted.
    pub(super) fn create(
        &mut self,
        rule: &RecordingRule,
        own: &[&Arc<Recording>],
        live: &[&Arc<Recording>],
        airings: &[Arc<Airing>],
        attached: &HashMap<usize, usize>,
    ) {
        let memory = self.input.memories.get(&rule.id);
        let deleted: HashSet<_> = memory.map(|it| it.done.iter().copied().collect()).unwrap_or_default();
        let has_moved: HashSet<_> = attached.values().copied().collect();
        let unmoved = live.iter().enumerate().filter(|(at, _)| !has_moved.contains(at)).map(|(_, it)| it);
        let over = own.iter().filter(|it| it.status.is_final() && takes_episode(it.status));
        let of_recordings = over.chain(unmoved).filter_map(|it| Some(it.followed.as_ref()?.episode));
        let of_airings = attached.keys().filter_map(|n| Some(airings.get(*n)?.episode));
        let done = of_recordings.chain(of_airings).collect();
        let old = memory.map(|it| it.old.iter().copied().collect()).unwrap_or_default();
        let mut known = KnownEpisodes { deleted, done, old, newly_old: Vec::new() };
        for list in episodes(airings) {
            let showings: Vec<_> = list.iter().filter_map(|n| airings.get(*n)).collect();
            let outcome = self.decide_episode(rule, &showings, &mut known);
            for it in &showings {
                self.note(rule, it.episode, outcome);
            }
        }
        if !known.newly_old.is_empty() {
            self.changes.push(PlannedChange::Remember { rule: rule.id, old: known.newly_old });
        }
    }

    /// Creates the recording of an episode, if the rule wants one.
    fn decide_episode(
        &mut self,
        rule: &RecordingRule,
        showings: &[&Arc<Airing>],
        known: &mut KnownEpisodes,
    ) -> EpisodeOutcome {
        if let Some(outcome) = known.not_new(rule, showings) {
            return outcome;
        }
        if KnownEpisodes::has(&known.deleted, showings) {
            return EpisodeOutcome::Taken;
        }
        let holder = self.holder(rule, showings);
        if let Some(holder) = holder {
            self.holders.want(holder, rule.id);
        }
        let is_weekly = matches!(rule.selection, RuleSelection::Weekly(_));
        let is_taken = || showings.iter().any(|it| self.is_taken(rule.owner, it));
        if holder.is_some() || KnownEpisodes::has(&known.done, showings) || (!is_weekly && is_taken()) {
            return EpisodeOutcome::Taken;
        }
        let now = self.input.now;
        let until = now.saturating_add(HORIZON_MS);
        let coming = showings.iter().filter(|it| it.start > now && it.start <= until);
        let with_channel = coming.filter_map(|it| Some((it, self.channel_for(rule, it)?)));
        let wish = rule.conditions().map(|it| it.quality).unwrap_or_default();
        let place = |channel: ChannelId| wish.place((self.input.quality)(channel));
        let best = with_channel
            .min_by_key(|(it, channel)| (Some(*channel) != rule.channel, place(*channel), it.start));
        let Some((airing, channel)) = best else { return EpisodeOutcome::Begun };
        if self.is_in_library(rule, airing) {
            return EpisodeOutcome::InLibrary;
        }
        if self.n_new >= self.input.n_new_max {
            return EpisodeOutcome::TooMany;
        }
        let recording = match self.new_recording(rule, airing, channel) {
            Some(it) if it.begins_at() >= it.ends_at() => return EpisodeOutcome::TooShort,
            Some(it) if it.check(now).is_ok() => it,
            // A guide can contain a programme of a week.
            Some(_) | None => return EpisodeOutcome::TooLong,
        };
        self.n_new += 1;
        if !is_weekly {
            self.take(rule.owner, airing.episode);
        }
        self.holders.add(Holder::Change(self.changes.len()), &recording);
        self.changes.push(PlannedChange::Create(Box::new(recording)));
        EpisodeOutcome::Created
    }

    fn is_in_library(&self, rule: &RecordingRule, airing: &Airing) -> bool {
        let programme = airing.programme.as_ref();
        rule.conditions().is_some_and(|it| it.skip_library)
            && programme.is_some_and(|it| (self.input.is_in_library)(rule, it))
    }

    fn new_recording(&self, rule: &RecordingRule, airing: &Airing, channel: ChannelId) -> Option<Recording> {
        let (channel_name, channel_uuid) = (self.input.channel)(channel)?;
        let padding_before = rule.padding_before.unwrap_or(self.input.padding.0);
        let padding_after = rule.padding_after.unwrap_or(self.input.padding.1);
        let (id, times) = (RecordingId(0), airing.start..airing.end);
        Some(Recording {
            programme: airing.programme.clone(),
            padding_before,
            padding_after,
            priority: rule.priority,
            followed: Some(FollowedAiring {
                rule: Some(rule.id),
                further_rules: Vec::new(),
                guide_key: airing.guide_key.clone(),
                episode: airing.episode,
                channel,
                start: airing.start,
                end: airing.end,
                padding_before,
                padding_after,
                priority: rule.priority,
            }),
            owner: rule.owner,
            ..Recording::new(id, channel, channel_uuid, channel_name, times, self.input.now)
        })
    }
}
