//! One recording for all who want it: finds the recording of an airing that another rule or the user has made already, and
//! lets it name all rules that want it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::plan::{Airing, Plan, is_edited, takes_episode};
use super::{EpisodeKey, PlannedChange, RecordingRule, RuleSelection};
use crate::ids::{RecordingId, RecordingRuleId, UserId};
use crate::recording::airing::{DIFFERENCE_MAX_MS, are_near};
use crate::recording::hash::Plain;
use crate::recording::{FURTHER_RULES_MAX, Recording};

/// The identity of an episode for one user.
pub(super) type UserEpisode = (Option<UserId>, EpisodeKey);

/// A recording that takes an airing: its position among the recordings, or that of the change that creates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    Recording(usize),
    Change(usize),
}

/// The recordings that take airings, by what identifies these.
#[derive(Default)]
pub(super) struct Holders {
    by_episode: HashMap<UserEpisode, Holder, Plain>,
    /// By owner and [`bucket`] of the start.
    by_time: HashMap<(Option<UserId>, i64), Vec<Holder>, Plain>,
    /// The rules that want a recording that they have not made.
    wanted_by: BTreeMap<Holder, BTreeSet<RecordingRuleId>>,
}

impl Holders {
    pub(super) fn add(&mut self, holder: Holder, recording: &Recording) {
        if !takes_episode(recording.status) {
            return;
        }
        let followed = recording.followed.as_ref();
        if let Some(followed) = followed.filter(|it| !it.guide_key.is_empty() && !recording.status.is_final())
        {
            self.by_episode.entry((recording.owner, followed.episode)).or_insert(holder);
        }
        let key = (recording.owner, bucket(times_of(recording).start));
        self.by_time.entry(key).or_default().push(holder);
    }

    /// Notes that a rule wants a recording.
    pub(super) fn want(&mut self, holder: Holder, rule: RecordingRuleId) {
        self.wanted_by.entry(holder).or_default().insert(rule);
    }

    /// Iterates over the recordings of a user that begin at about a time.
    fn near(&self, owner: Option<UserId>, start: i64) -> impl Iterator<Item = Holder> + '_ {
        near_buckets(start).filter_map(move |it| self.by_time.get(&(owner, it))).flatten().copied()
    }
}

/// Returns a number that times within [`DIFFERENCE_MAX_MS`] share, or that differs by one.
pub(super) fn bucket(start: i64) -> i64 {
    start.div_euclid(DIFFERENCE_MAX_MS)
}

pub(super) fn near_buckets(start: i64) -> impl Iterator<Item = i64> {
    let at = bucket(start);
    at.saturating_sub(1)..=at.saturating_add(1)
}

/// Returns the times of the airing of a recording, which a user may have changed for the recording.
pub(super) fn times_of(recording: &Recording) -> Range<i64> {
    recording.followed.as_ref().map_or(recording.start..recording.end, |it| it.start..it.end)
}

/// Returns whether a recording is of an airing: at about the same time, of the same title on a channel of the airing, or
/// certainly of the same programme.
pub(super) fn is_of_airing(recording: &Recording, airing: &Airing) -> bool {
    let (Some(one), Some(other)) = (&recording.programme, &airing.programme) else { return false };
    are_near(&times_of(recording), &(airing.start..airing.end))
        && match airing.channels.contains(&recording.channel) {
            true => one.names(other) == Some(true),
            false => one.is_same_content(other),
        }
}

fn is_same_airing(one: &Airing, other: &Airing) -> bool {
    let both = one.programme.as_ref().zip(other.programme.as_ref());
    // A guide channel shows one programme at a time.
    one.guide_key != other.guide_key
        && are_near(&(one.start..one.end), &(other.start..other.end))
        && both.is_some_and(|(one, other)| one.is_same_content(other))
}

/// Returns the positions of the airings of each episode. `airings` are sorted by their start. Showings at one time on several
/// channels are of one episode too if they certainly show the same programme, whatever their guides say about the episode.
pub(super) fn episodes(airings: &[Arc<Airing>]) -> Vec<Vec<usize>> {
    let mut episodes: Vec<Vec<usize>> = Vec::new();
    let mut positions: HashMap<EpisodeKey, usize, Plain> = HashMap::default();
    for (n, airing) in airings.iter().enumerate() {
        let before = airings.iter().take(n).rev();
        let mut near = before.take_while(|it| airing.start.saturating_sub(it.start) <= DIFFERENCE_MAX_MS);
        let twin =
            near.find(|it| is_same_airing(it, airing)).and_then(|it| positions.get(&it.episode).copied());
        let known = positions.get(&airing.episode).copied();
        let at = known.or(twin).unwrap_or(episodes.len());
        if let Some(twin) = twin.filter(|it| *it != at) {
            // Only now it is clear that two keys are of one episode.
            let moved = episodes.get_mut(twin).map(std::mem::take).unwrap_or_default();
            positions.values_mut().filter(|it| **it == twin).for_each(|it| *it = at);
            if let Some(list) = episodes.get_mut(at) {
                list.extend(moved);
                list.sort_unstable();
            }
        }
        positions.insert(airing.episode, at);
        match episodes.get_mut(at) {
            Some(list) => list.push(n),
            None => episodes.push(vec![n]),
        }
    }
    episodes.retain(|it| !it.is_empty());
    episodes
}

impl Plan<'_, '_> {
    fn holding(&self, holder: Holder) -> Option<&Recording> {
        match holder {
            Holder::Recording(at) => self.input.recordings.get(at).map(|it| &**it),
            Holder::Change(at) => match self.changes.get(at)? {
                PlannedChange::Create(recording) => Some(recording),
                _ => None,
            },
        }
    }

    /// Returns the recording of the user of a rule that takes the episode of these showings, or one of them.
    pub(super) fn holder(&self, rule: &RecordingRule, showings: &[&Arc<Airing>]) -> Option<Holder> {
        let is_weekly = matches!(rule.selection, RuleSelection::Weekly(_));
        let mut keys = showings.iter().flat_map(|it| it.episode_keys());
        let by_key = keys.find_map(|it| self.holders.by_episode.get(&(rule.owner, it)).copied());
        let is_it = |of: &Recording, airing: &Airing| match is_weekly {
            true => is_of_day(of, rule, airing),
            false => is_of_airing(of, airing),
        };
        let by_time = || {
            showings.iter().find_map(|airing| {
                let mut near = self.holders.near(rule.owner, airing.start);
                near.find(|it| self.holding(*it).is_some_and(|of| is_it(of, airing)))
            })
        };
        by_key.filter(|_| !is_weekly).or_else(by_time)
    }

    /// Lets each recording name the other rules that want it. Rules that are not part of the plan are kept.
    pub(super) fn name_rules(&mut self) {
        let rules: HashMap<_, _> = self.input.rules.iter().map(|it| (it.id, it)).collect();
        let wanted_by = std::mem::take(&mut self.holders.wanted_by);
        let mut changed = HashMap::<RecordingId, usize>::new();
        for (at, change) in self.changes.iter().enumerate() {
            match change {
                PlannedChange::Update { before: it, .. } | PlannedChange::Remove(it) => {
                    changed.insert(it.id, at);
                }
                PlannedChange::Create(_) | PlannedChange::Remember { .. } => {}
            }
        }
        for (holder, wanted) in &wanted_by {
            if let Holder::Change(at) = holder
                && let Some(PlannedChange::Create(recording)) = self.changes.get_mut(*at)
            {
                set_rules(recording, wanted, &rules, self.input.padding);
            }
        }
        let none = BTreeSet::new();
        for (at, before) in self.input.recordings.iter().enumerate() {
            let wanted = wanted_by.get(&Holder::Recording(at)).unwrap_or(&none);
            let has_further = before.followed.as_ref().is_some_and(|it| !it.further_rules.is_empty());
            if before.status.is_final() || (wanted.is_empty() && !has_further) {
                continue;
            }
            let change = changed.get(&before.id).and_then(|at| self.changes.get_mut(*at));
            match change {
                Some(PlannedChange::Update { after, .. }) => {
                    set_rules(after, wanted, &rules, self.input.padding);
                }
                Some(_) => {}
                None => {
                    let mut after = Recording::clone(before);
                    set_rules(&mut after, wanted, &rules, self.input.padding);
                    if after != **before {
                        after.updated_at = self.input.now;
                        let (before, after) = (Arc::clone(before), Box::new(after));
                        self.changes.push(PlannedChange::Update { before, after });
                    }
                }
            }
        }
    }
}

/// Returns whether a recording is that of another weekly rule for the same time of the channel.
fn is_of_day(recording: &Recording, rule: &RecordingRule, airing: &Airing) -> bool {
    let followed = recording.followed.as_ref();
    followed.is_some_and(|it| {
        it.guide_key.is_empty()
            && it.rule != Some(rule.id)
            && (it.start, it.end) == (airing.start, airing.end)
            && airing.channels.contains(&it.channel)
    })
}

/// Lets a recording name the rules that want it, and gives it the highest priority and the longest padding of them, unless a
/// user made or edited it.
fn set_rules(
    recording: &mut Recording,
    wanted: &BTreeSet<RecordingRuleId>,
    rules: &HashMap<RecordingRuleId, &Arc<RecordingRule>>,
    padding: (i32, i32),
) {
    let may_change = !recording.status.is_final() && recording.file.is_none() && !is_edited(recording);
    let Some(followed) = &mut recording.followed else { return };
    let kept = followed.further_rules.iter().filter(|it| !rules.contains_key(*it));
    let mut further: BTreeSet<_> = kept.chain(wanted).copied().collect();
    further.retain(|it| Some(*it) != followed.rule);
    followed.further_rules = further.into_iter().take(FURTHER_RULES_MAX).collect();
    let Some(own) = followed.rule.filter(|_| may_change) else { return };
    let ids = [own].into_iter().chain(followed.further_rules.iter().copied());
    // Without one of them, the others could lower what it wants.
    let Some(all) = ids.map(|it| rules.get(&it).copied()).collect::<Option<Vec<_>>>() else { return };
    let before = all.iter().map(|it| it.padding_before.unwrap_or(padding.0)).max();
    let after = all.iter().map(|it| it.padding_after.unwrap_or(padding.1)).max();
    let (Some(priority), Some(before), Some(after)) = (all.iter().map(|it| it.priority).max(), before, after)
    else {
        return;
    };
    (followed.priority, followed.padding_before, followed.padding_after) = (priority, before, after);
    (recording.priority, recording.padding_before, recording.padding_after) = (priority, before, after);
}
