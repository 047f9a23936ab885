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
use super::shared::{Holder, Holders, UserEpisode};
use super::{EpisodeKey, HORIZON_MS, QualityWish, RecordingRule, RuleMemory, RuleSelection};
use crate::guide::matching::Quality;
use crate::ids::{ChannelId, RecordingId, RecordingRuleId, UserId};
use crate::recording::hash::Plain;
use crate::recording::{RECORDING_MS_MAX, RecordedProgramme, Recording, RecordingStatus};

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
    /// The quality of the pictures of a channel.
    pub quality: &'a dyn Fn(ChannelId) -> Quality,
    /// Whether the library of the owner of a rule has a film or an episode.
    pub is_in_library: &'a dyn Fn(&RecordingRule, &RecordedProgramme) -> bool,
    /// Padding before and after recordings whose rule has none, in seconds.
    pub padding: (i32, i32),
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
    /// The rule wants episodes that the guide marks as new.
    NotMarked,
    InLibrary,
    /// No showing begins later.
    Begun,
    TooLong,
    /// Negative padding leaves nothing of it.
    TooShort,
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
    plan.name_rules();
    (plan.changes, plan.outcomes.unwrap_or_default())
}

pub(super) struct Plan<'i, 'a> {
    pub(super) input: &'i PlanInput<'a>,
    by_rule: HashMap<RecordingRuleId, Vec<&'i Arc<Recording>>>,
    /// Episodes that are scheduled, being recorded or complete.
    taken: HashMap<UserEpisode, u32, Plain>,
    /// Recordings that take airings, to which further rules are added.
    pub(super) holders: Holders,
    pub(super) n_new: usize,
    pub(super) changes: Vec<PlannedChange>,
    outcomes: Option<EpisodeOutcomes>,
}

impl<'i, 'a> Plan<'i, 'a> {
    fn new(input: &'i PlanInput<'a>, outcomes: Option<EpisodeOutcomes>) -> Self {
        let mut by_rule = HashMap::<_, Vec<_>>::new();
        let (mut taken, mut holders) = (HashMap::default(), Holders::default());
        for (at, it) in input.recordings.iter().enumerate() {
            holders.add(Holder::Recording(at), it);
            let Some(followed) = &it.followed else { continue };
            if let Some(rule) = followed.rule {
                by_rule.entry(rule).or_default().push(it);
            }
            if takes_episode(it.status) && !followed.guide_key.is_empty() {
                *taken.entry((it.owner, followed.episode)).or_default() += 1;
            }
        }
        Self { input, by_rule, taken, holders, n_new: 0, changes: Vec::new(), outcomes }
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
        let ends_at = end.saturating_add(i64::from(before.padding_after) * 1000);
        let begins_at = start.saturating_sub(i64::from(before.padding_before) * 1000);
        let length = ends_at.saturating_sub(start);
        if start < end && begins_at < ends_at && ends_at > now && length <= RECORDING_MS_MAX {
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

    /// Notes that the episode has a recording.
    pub(super) fn take(&mut self, owner: Option<UserId>, episode: EpisodeKey) {
        *self.taken.entry((owner, episode)).or_default() += 1;
    }

    pub(super) fn channel_for(&self, rule: &RecordingRule, airing: &Airing) -> Option<ChannelId> {
        channel_for(self.input.may_record, self.input.quality, rule, airing)
    }

    pub(super) fn note(&mut self, rule: &RecordingRule, episode: EpisodeKey, outcome: EpisodeOutcome) {
        if let Some(outcomes) = &mut self.outcomes {
            outcomes.insert((rule.id, episode), outcome);
        }
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

/// Returns the channel on which a rule records an airing: the preferred one, or the first with the preferred quality of those
/// that its owner may record.
pub(super) fn channel_for(
    may_record: &dyn Fn(&RecordingRule, ChannelId) -> bool,
    quality: &dyn Fn(ChannelId) -> Quality,
    rule: &RecordingRule,
    airing: &Airing,
) -> Option<ChannelId> {
    let wish = rule.conditions().map(|it| it.quality).unwrap_or_default();
    let may = |it: &ChannelId| may_record(rule, *it);
    let preferred = rule.channel.filter(|it| airing.channels.contains(it) && may(it));
    let mut all = airing.channels.iter().copied().filter(may);
    preferred.or_else(|| match wish {
        QualityWish::Any => all.next(),
        // Of equal ones, the first.
        wish => all.min_by_key(|it| wish.place(quality(*it))),
    })
}

/// Returns whether a user changed what a rule had set.
pub(super) fn is_edited(recording: &Recording) -> bool {
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
