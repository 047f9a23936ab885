//! Decides which recordings follow from rules and a guide.
//!
//! A recording stays with its programme: the one with the same start and title, or else the showing of the same episode,
//! which has moved. Nothing that the guide lacks removes a recording, because a guide can be broken. Of the remaining
//! episodes that rules want, one showing each gets a recording; the others are used if that recording ends without a
//! complete file.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::tz::TimeZone;
use uuid::Uuid;

use super::matching::RuleSubject;
use super::{EpisodeKey, HORIZON_MS, RecordingRule, RuleMemory, RuleSelection};
use crate::ids::{ChannelId, RecordingId, RecordingRuleId, UserId};
use crate::recording::{FollowedAiring, RECORDING_MS_MAX, RecordedProgramme, Recording, RecordingStatus};

/// How far the programme of a recording that a user made can move, in milliseconds.
const MOVED_BY_HAND_MS_MAX: i64 = 24 * 60 * 60 * 1000;

/// A showing that a rule selects. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Airing {
    /// Key of the guide channel; empty for weekly rules.
    pub guide_key: String,
    /// The channels that show it, the preferred one first.
    pub channels: Arc<[ChannelId]>,
    pub start: i64,
    pub end: i64,
    pub episode: EpisodeKey,
    /// Other keys of the episode, under which a former version stored it.
    pub former_episodes: Vec<EpisodeKey>,
    /// Whether the guide calls it new.
    pub is_new: bool,
    /// Whether the guide calls it a repetition.
    pub is_repeat: bool,
    pub programme: Option<RecordedProgramme>,
}

impl Airing {
    /// Returns the keys of the episode, the present one first.
    pub(super) fn episode_keys(&self) -> impl Iterator<Item = EpisodeKey> + '_ {
        std::iter::once(self.episode).chain(self.former_episodes.iter().copied())
    }

    /// Returns whether this is the episode with a stored key.
    pub fn is_episode(&self, stored: EpisodeKey) -> bool {
        self.episode_keys().any(|it| it == stored)
    }
}

/// Everything that a plan depends on.
pub struct PlanInput<'a> {
    pub rules: &'a [Arc<RecordingRule>],
    pub recordings: &'a [Arc<Recording>],
    pub memories: &'a HashMap<RecordingRuleId, Arc<RuleMemory>>,
    pub airings: Vec<(RuleSubject, Arc<Airing>)>,
    /// Recordings at whose time the guide has a programme.
    pub covered: &'a HashSet<RecordingId>,
    /// Name and UUID of a channel.
    pub channel: &'a dyn Fn(ChannelId) -> Option<(String, Uuid)>,
    /// Whether the owner of a rule may record a channel.
    pub may_record: &'a dyn Fn(&RecordingRule, ChannelId) -> bool,
    /// Padding before and after recordings whose rule has none, in seconds.
    pub padding: (u32, u32),
    pub zone: &'a TimeZone,
    pub now: i64,
    /// How many recordings may be created.
    pub n_new_max: usize,
}

/// A change that follows from rules and guide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedChange {
    /// A new recording, whose id is still 0.
    Create(Box<Recording>),
    Update {
        before: Arc<Recording>,
        after: Box<Recording>,
    },
    /// A recording that is too much for its rule goes with its file.
    Remove(Arc<Recording>),
    /// Episodes that are not new for a rule.
    Remember {
        rule: RecordingRuleId,
        old: Vec<EpisodeKey>,
    },
}

/// The decision on an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EpisodeOutcome {
    /// One showing gets a recording.
    Created,
    /// The episode is scheduled, being recorded, recorded or deleted.
    Taken,
    ShownBefore,
    Repeat,
    /// No showing begins later.
    Begun,
    TooLong,
    TooMany,
}

/// The outcomes for the episodes that rules select.
pub(super) type EpisodeOutcomes = HashMap<(RecordingRuleId, EpisodeKey), EpisodeOutcome>;

/// Returns the changes, in the order of the rules: the highest priority first, then the lowest id.
pub fn plan(input: PlanInput<'_>) -> Vec<PlannedChange> {
    decide(input, None).0
}

/// Returns the changes and, if they are asked for, the outcomes.
pub(super) fn decide(
    mut input: PlanInput<'_>,
    outcomes: Option<EpisodeOutcomes>,
) -> (Vec<PlannedChange>, EpisodeOutcomes) {
    let airings = std::mem::take(&mut input.airings);
    let mut of_rule: Vec<Vec<Arc<Airing>>> = vec![Vec::new(); input.rules.len()];
    let mut of_recording: HashMap<u32, Vec<Arc<Airing>>> = HashMap::new();
    for (subject, airing) in airings {
        match subject {
            RuleSubject::Rule(at) => {
                if let Some(list) = of_rule.get_mut(at as usize) {
                    list.push(airing);
                }
            }
            RuleSubject::Recording(id) => of_recording.entry(id).or_default().push(airing),
        }
    }
    let mut plan = Plan::new(&input, outcomes);
    plan.follow_by_hand(of_recording);
    let mut order: Vec<_> = (0..input.rules.len()).collect();
    order.sort_by_key(|at| input.rules.get(*at).map(|it| (std::cmp::Reverse(it.priority), it.id)));
    for at in order {
        let (Some(rule), Some(list)) = (input.rules.get(at), of_rule.get_mut(at)) else { continue };
        plan.apply(rule, std::mem::take(list));
    }
    (plan.changes, plan.outcomes.unwrap_or_default())
}

/// The identity of an episode for one user.
type Wanted = (Option<UserId>, EpisodeKey);

pub(super) struct Plan<'i, 'a> {
    pub(super) input: &'i PlanInput<'a>,
    by_rule: HashMap<RecordingRuleId, Vec<&'i Arc<Recording>>>,
    /// Episodes that are scheduled, being recorded or complete.
    taken: HashMap<Wanted, u32>,
    n_new: usize,
    changes: Vec<PlannedChange>,
    outcomes: Option<EpisodeOutcomes>,
}

impl<'i, 'a> Plan<'i, 'a> {
    fn new(input: &'i PlanInput<'a>, outcomes: Option<EpisodeOutcomes>) -> Self {
        let mut by_rule = HashMap::<_, Vec<_>>::new();
        let mut taken = HashMap::new();
        for it in input.recordings {
            let Some(followed) = &it.followed else { continue };
            if let Some(rule) = followed.rule {
                by_rule.entry(rule).or_default().push(it);
            }
            if takes_episode(it.status) && !followed.guide_key.is_empty() {
                *taken.entry((it.owner, followed.episode)).or_default() += 1;
            }
        }
        Self { input, by_rule, taken, n_new: 0, changes: Vec::new(), outcomes }
    }

    /// Moves the recordings that users made of programmes of the guide.
    fn follow_by_hand(&mut self, mut airings: HashMap<u32, Vec<Arc<Airing>>>) {
        for recording in self.input.recordings {
            let is_by_hand = recording.followed.as_ref().is_some_and(|it| it.rule.is_none());
            if !is_by_hand || recording.status.is_final() {
                continue;
            }
            let mut list = airings.remove(&recording.id.0).unwrap_or_default();
            list.retain(|it| it.channels.contains(&recording.channel));
            let attached = self.attach(&[recording], &list, MOVED_BY_HAND_MS_MAX);
            self.update(&[recording], &list, &attached, None);
        }
    }

    fn apply(&mut self, rule: &RecordingRule, mut airings: Vec<Arc<Airing>>) {
        let own = self.by_rule.remove(&rule.id).unwrap_or_default();
        self.drop_oldest(rule, &own);
        if !rule.enabled {
            return;
        }
        if let RuleSelection::Weekly(times) = &rule.selection {
            let now = self.input.now;
            let days = times.occurrences(self.input.zone, now, now.saturating_add(HORIZON_MS));
            airings = days.into_iter().map(|it| Arc::new(airing_on(rule, it))).collect();
        }
        airings.retain(|it| it.channels.iter().any(|channel| (self.input.may_record)(rule, *channel)));
        airings.sort_by(|one, other| (one.start, &one.guide_key).cmp(&(other.start, &other.guide_key)));
        let live: Vec<_> = own.iter().copied().filter(|it| !it.status.is_final()).collect();
        let attached = self.attach(&live, &airings, i64::MAX);
        self.update(&live, &airings, &attached, Some(rule));
        self.create(rule, &own, &live, &airings, &attached);
    }

    /// Moves recordings to where their programmes are.
    fn update(
        &mut self,
        live: &[&Arc<Recording>],
        airings: &[Arc<Airing>],
        attached: &HashMap<usize, usize>,
        rule: Option<&RecordingRule>,
    ) {
        let mut pairs: Vec<_> = attached.iter().collect();
        pairs.sort_unstable();
        let mut moved = Vec::new();
        for (n, at) in pairs {
            let (Some(airing), Some(before)) = (airings.get(*n), live.get(*at)) else { continue };
            if let Some(after) = self.moved(before, airing, rule) {
                self.retake(before, airing.episode);
                moved.push((*before, after, airing.episode));
            }
        }
        for (before, after, episode) in moved {
            let is_same = before.followed.as_ref().is_some_and(|it| it.episode == episode);
            let n_of_episode = self.taken.entry((before.owner, episode)).or_default();
            // Only now the guide says which episode it is, and that one is recorded already.
            let is_double = !is_same && episode.is_known() && *n_of_episode > 1;
            if is_double && rule.is_some() && !before.has_begun(self.input.now) && !is_edited(before) {
                *n_of_episode -= 1;
                self.changes.push(PlannedChange::Remove(Arc::clone(before)));
            } else {
                self.changes
                    .push(PlannedChange::Update { before: Arc::clone(before), after: Box::new(after) });
            }
        }
    }

    /// Notes that a recording is of another episode than it was.
    fn retake(&mut self, before: &Recording, episode: EpisodeKey) {
        let Some(followed) = before.followed.as_ref().filter(|it| !it.guide_key.is_empty()) else { return };
        if let Some(n) = self.taken.get_mut(&(before.owner, followed.episode)) {
            *n = n.saturating_sub(1);
        }
        *self.taken.entry((before.owner, episode)).or_default() += 1;
    }

    pub(super) fn is_taken(&self, owner: Option<UserId>, airing: &Airing) -> bool {
        airing.episode_keys().any(|it| self.taken.get(&(owner, it)).is_some_and(|n| *n > 0))
    }

    /// Returns the recording at the place of the airing; `None` if nothing changes.
    fn moved(
        &self,
        before: &Arc<Recording>,
        airing: &Airing,
        rule: Option<&RecordingRule>,
    ) -> Option<Recording> {
        let now = self.input.now;
        let mut after = Recording::clone(before);
        let followed = after.followed.as_mut()?;
        let (has_own_start, has_own_end) = (before.start != followed.start, before.end != followed.end);
        let has_begun = before.has_begun(now);
        if !has_begun && !airing.channels.contains(&followed.channel) && before.channel == followed.channel {
            let channel = rule.and_then(|it| self.channel_for(it, airing))?;
            let (name, uuid) = (self.input.channel)(channel)?;
            (after.channel, after.channel_name, after.channel_uuid) = (channel, name, uuid);
            followed.channel = channel;
        }
        followed.guide_key.clone_from(&airing.guide_key);
        followed.episode = airing.episode;
        (followed.start, followed.end) = (airing.start, airing.end);
        let start = if has_own_start || has_begun { before.start } else { airing.start };
        let end = if has_own_end { before.end } else { airing.end };
        let padding_ms = i64::from(before.padding_after) * 1000;
        let length = end.saturating_sub(start).saturating_add(padding_ms);
        if start < end && end.saturating_add(padding_ms) > now && length <= RECORDING_MS_MAX {
            (after.start, after.end) = (start, end);
        }
        if let (Some(kept), Some(programme)) = (&mut after.programme, &airing.programme) {
            kept.id.clone_from(&programme.id);
            let fill = |value: &mut Option<String>, from: &Option<String>| {
                if value.is_none() {
                    value.clone_from(from);
                }
            };
            fill(&mut kept.sub_title, &programme.sub_title);
            fill(&mut kept.description, &programme.description);
            kept.season = kept.season.or(programme.season);
            kept.episode = kept.episode.or(programme.episode);
        }
        if after == **before {
            return None;
        }
        after.updated_at = now;
        Some(after)
    }

    /// Creates recordings of the episodes that are still wanted.
    fn create(
        &mut self,
        rule: &RecordingRule,
        own: &[&Arc<Recording>],
        live: &[&Arc<Recording>],
        airings: &[Arc<Airing>],
        attached: &HashMap<usize, usize>,
    ) {
        let is_weekly = matches!(rule.selection, RuleSelection::Weekly(_));
        let only_new = matches!(&rule.selection, RuleSelection::Programmes(it) if it.only_new);
        let memory = self.input.memories.get(&rule.id);
        let mut done: HashSet<_> = memory.map(|it| it.done.iter().copied().collect()).unwrap_or_default();
        let has_moved: HashSet<_> = attached.values().copied().collect();
        let unmoved = live.iter().enumerate().filter(|(at, _)| !has_moved.contains(at)).map(|(_, it)| it);
        let over = own.iter().filter(|it| it.status.is_final() && takes_episode(it.status));
        done.extend(over.chain(unmoved).filter_map(|it| Some(it.followed.as_ref()?.episode)));
        done.extend(attached.keys().filter_map(|n| Some(airings.get(*n)?.episode)));
        let known_old: HashSet<_> = memory.map(|it| it.old.iter().copied().collect()).unwrap_or_default();
        let mut episodes: Vec<Vec<usize>> = Vec::new();
        let mut positions = HashMap::new();
        for (n, airing) in airings.iter().enumerate() {
            let at = *positions.entry(airing.episode).or_insert(episodes.len());
            match episodes.get_mut(at) {
                Some(list) => list.push(n),
                None => episodes.push(vec![n]),
            }
        }
        let mut old = Vec::new();
        for list in episodes {
            let showings = || list.iter().filter_map(|n| airings.get(*n));
            let Some(first) = showings().next() else { continue };
            let episode = first.episode;
            let is_in =
                |of: &HashSet<EpisodeKey>| showings().any(|it| it.episode_keys().any(|it| of.contains(&it)));
            if only_new && !showings().any(|it| it.is_new) {
                let was_before = first.start < rule.created_at || is_in(&known_old);
                if was_before && episode.is_known() && !known_old.contains(&episode) {
                    old.push(episode);
                }
                if was_before || showings().all(|it| it.is_repeat) {
                    let outcome =
                        if was_before { EpisodeOutcome::ShownBefore } else { EpisodeOutcome::Repeat };
                    self.note(rule, episode, outcome);
                    continue;
                }
            }
            let owner = rule.owner;
            let is_taken = || showings().any(|it| self.is_taken(owner, it));
            if is_in(&done) || (!is_weekly && is_taken()) {
                self.note(rule, episode, EpisodeOutcome::Taken);
                continue;
            }
            let now = self.input.now;
            let until = now.saturating_add(HORIZON_MS);
            let coming = showings().filter(|it| it.start > now && it.start <= until);
            let with_channel = coming.filter_map(|it| Some((it, self.channel_for(rule, it)?)));
            let best = with_channel.min_by_key(|(it, channel)| (Some(*channel) != rule.channel, it.start));
            let Some((airing, channel)) = best else {
                self.note(rule, episode, EpisodeOutcome::Begun);
                continue;
            };
            if self.n_new >= self.input.n_new_max {
                self.note(rule, episode, EpisodeOutcome::TooMany);
                continue;
            }
            let Some(recording) = self.new_recording(rule, airing, channel) else {
                self.note(rule, episode, EpisodeOutcome::TooLong);
                continue;
            };
            self.n_new += 1;
            if !is_weekly {
                *self.taken.entry((owner, episode)).or_default() += 1;
            }
            self.note(rule, episode, EpisodeOutcome::Created);
            self.changes.push(PlannedChange::Create(Box::new(recording)));
        }
        if !old.is_empty() {
            self.changes.push(PlannedChange::Remember { rule: rule.id, old });
        }
    }

    fn channel_for(&self, rule: &RecordingRule, airing: &Airing) -> Option<ChannelId> {
        channel_for(self.input.may_record, rule, airing)
    }

    fn note(&mut self, rule: &RecordingRule, episode: EpisodeKey, outcome: EpisodeOutcome) {
        if let Some(outcomes) = &mut self.outcomes {
            outcomes.insert((rule.id, episode), outcome);
        }
    }

    fn new_recording(&self, rule: &RecordingRule, airing: &Airing, channel: ChannelId) -> Option<Recording> {
        let (channel_name, channel_uuid) = (self.input.channel)(channel)?;
        let padding_before = rule.padding_before.unwrap_or(self.input.padding.0);
        let padding_after = rule.padding_after.unwrap_or(self.input.padding.1);
        let (id, times) = (RecordingId(0), airing.start..airing.end);
        let recording = Recording {
            programme: airing.programme.clone(),
            padding_before,
            padding_after,
            priority: rule.priority,
            followed: Some(FollowedAiring {
                rule: Some(rule.id),
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
        };
        // A guide can contain a programme of a week.
        recording.check(self.input.now).is_ok().then_some(recording)
    }

    /// Removes the oldest recordings of a rule that keeps some.
    fn drop_oldest(&mut self, rule: &RecordingRule, own: &[&'i Arc<Recording>]) {
        if rule.keep == 0 {
            return;
        }
        let is_over = |it: &&&Arc<Recording>| {
            it.status.is_final() && !it.protected && it.file.as_ref().is_some_and(|it| it.ended_at.is_some())
        };
        let mut over: Vec<_> = own.iter().filter(is_over).collect();
        over.sort_unstable_by_key(|it| (std::cmp::Reverse(it.start), std::cmp::Reverse(it.id)));
        for it in over.into_iter().skip(rule.keep as usize) {
            self.changes.push(PlannedChange::Remove(Arc::clone(it)));
        }
    }
}

/// Returns the channel on which a rule records an airing: the preferred one, or the first that its owner may record.
pub(super) fn channel_for(
    may_record: &dyn Fn(&RecordingRule, ChannelId) -> bool,
    rule: &RecordingRule,
    airing: &Airing,
) -> Option<ChannelId> {
    let may = |it: &ChannelId| may_record(rule, *it);
    let preferred = rule.channel.filter(|it| airing.channels.contains(it) && may(it));
    preferred.or_else(|| airing.channels.iter().copied().find(may))
}

/// Returns whether a user changed what a rule had set.
fn is_edited(recording: &Recording) -> bool {
    recording.followed.as_ref().is_none_or(|it| it.is_edited(recording))
}

/// Returns whether an episode with such a recording needs no other: one that a user stopped was enough for that user.
pub(super) fn takes_episode(status: RecordingStatus) -> bool {
    !matches!(status, RecordingStatus::Interrupted | RecordingStatus::Failed)
}

/// Returns the showing of a weekly rule on one day.
fn airing_on(rule: &RecordingRule, day: super::Occurrence) -> Airing {
    let title = rule.title();
    let programme = RecordedProgramme { title: title.to_owned(), ..RecordedProgramme::default() };
    Airing {
        guide_key: String::new(),
        channels: rule.channel.into_iter().collect(),
        start: day.start,
        end: day.end,
        episode: EpisodeKey::from_day(day.day),
        former_episodes: Vec::new(),
        is_new: true,
        is_repeat: false,
        programme: (!title.is_empty()).then_some(programme),
    }
}
