//! Tells of each coming showing that a rule selects what follows from it: the result of a plan whose changes are not made.

use std::collections::HashMap;
use std::sync::Arc;

use super::matching::RuleSubject;
use super::plan::{
    Airing, EpisodeOutcome, EpisodeOutcomes, PlanInput, PlannedChange, channel_for, decide, takes_episode,
};
use super::shared::{bucket, is_of_airing, near_buckets, times_of};
use super::{EpisodeKey, RecordingRule};
use crate::ids::ChannelId;
use crate::recording::{Recording, RecordingStatus};

/// The result of a plan for a showing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AiringMark {
    /// It has a recording, or gets one.
    Scheduled,
    /// Another showing of the episode has a recording or gets one. This one gets it if that one fails.
    Alternative,
    /// The episode has been recorded.
    Recorded,
    /// The rule records new episodes only.
    NotNew,
    /// It is not recorded for another reason.
    Skipped,
}

/// The reason of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AiringReason {
    /// The recording runs.
    Running,
    /// Another rule of the same user made the recording.
    OtherRule,
    /// The user made the recording.
    ByHand,
    /// The user ended the recording early.
    Stopped,
    /// The user deleted the recording.
    Deleted,
    /// The guide calls the showing a repetition.
    Repeat,
    /// The episode was shown before the rule was made.
    ShownBefore,
    /// The guide does not mark the episode as new.
    NotMarked,
    /// The library has it.
    InLibrary,
    /// The showing has begun.
    Begun,
    /// The rule makes no recordings.
    RuleOff,
    /// The owner of the rule may record none of its channels.
    NoChannel,
    /// It lasts longer than a recording can.
    TooLong,
    /// Negative padding leaves nothing of it.
    TooShort,
    /// There are too many recordings.
    TooMany,
}

/// A coming showing that a rule selects, with the result of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedAiring {
    pub airing: Arc<Airing>,
    pub mark: AiringMark,
    pub reason: Option<AiringReason>,
    /// The channel of its recording, or on which the rule would record it.
    pub channel: Option<ChannelId>,
}

/// Plans, and returns the result for the showings that the first rule selects and that are not over, by their start. The
/// changes of the plan are not made.
pub fn preview(input: PlanInput<'_>) -> Vec<MarkedAiring> {
    let Some(rule) = input.rules.first().cloned() else { return Vec::new() };
    let of_rule = input.airings.iter().filter(|it| it.0 == RuleSubject::Rule(0) && it.1.end > input.now);
    let mut airings: Vec<_> = of_rule.map(|it| Arc::clone(&it.1)).collect();
    airings.sort_by(|one, other| (one.start, &one.guide_key).cmp(&(other.start, &other.guide_key)));
    let (recordings, may_record, quality, now) =
        (input.recordings, input.may_record, input.quality, input.now);
    let (changes, outcomes) = decide(input, Some(EpisodeOutcomes::new()));
    let recorded = Recorded::after(&changes, recordings, &rule);
    let marks = airings.into_iter().map(|airing| {
        let (mark, reason) = match recorded.waiting_recording(&airing) {
            Some(it) => (AiringMark::Scheduled, reason_of(it, &rule)),
            None => {
                let outcome = outcomes.get(&(rule.id, airing.episode)).copied();
                recorded.without_recording(&airing, outcome, &rule, now)
            }
        };
        let channel = recorded.waiting_recording(&airing).map(|it| it.channel);
        let channel = channel.or_else(|| channel_for(may_record, quality, &rule, &airing));
        // The episode has other showings; the owner may not record this one.
        let is_hidden = channel.is_none() && mark == AiringMark::Alternative;
        let (mark, reason) = match is_hidden {
            true => (AiringMark::Skipped, Some(AiringReason::NoChannel)),
            false => (mark, reason),
        };
        MarkedAiring { airing, mark, reason, channel }
    });
    marks.collect()
}

/// The recordings of the owner of a rule that take an episode, after a plan.
struct Recorded<'a> {
    of_episode: HashMap<EpisodeKey, Vec<&'a Recording>>,
    /// All of them, by a number of the start of their airing.
    by_time: HashMap<i64, Vec<&'a Recording>>,
}

impl<'a> Recorded<'a> {
    fn after(changes: &'a [PlannedChange], recordings: &'a [Arc<Recording>], rule: &RecordingRule) -> Self {
        let (mut created, mut changed) = (Vec::new(), HashMap::new());
        for it in changes {
            match it {
                PlannedChange::Create(recording) => created.push(&**recording),
                PlannedChange::Update { before, after } => {
                    changed.insert(before.id, Some(&**after));
                }
                // An episode whose recording is too much for its rule has been recorded.
                PlannedChange::Remove(recording) if !recording.status.is_final() => {
                    changed.insert(recording.id, None);
                }
                PlannedChange::Remove(_) | PlannedChange::Remember { .. } => {}
            }
        }
        let kept = recordings.iter().filter_map(|it| changed.get(&it.id).copied().unwrap_or(Some(&**it)));
        let (mut of_episode, mut by_time) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for it in kept.chain(created).filter(|it| it.owner == rule.owner && takes_episode(it.status)) {
            if let Some(followed) = it.followed.as_ref().filter(|it| !it.guide_key.is_empty()) {
                of_episode.entry(followed.episode).or_default().push(it);
            }
            by_time.entry(bucket(times_of(it).start)).or_default().push(it);
        }
        Self { of_episode, by_time }
    }

    /// Iterates over the recordings of the episode of a showing, and those of the same programme at the same time.
    fn episode_recordings(&self, airing: &Airing) -> impl Iterator<Item = &'a Recording> {
        let of_episode = airing.episode_keys().filter_map(|it| self.of_episode.get(&it)).flatten();
        let near = near_buckets(airing.start).filter_map(|it| self.by_time.get(&it)).flatten();
        of_episode.chain(near.filter(|it| is_of_airing(it, airing))).copied()
    }

    /// Returns the recording that waits for a showing, or runs.
    fn waiting_recording(&self, airing: &Airing) -> Option<&'a Recording> {
        let is_of_it = |it: &&Recording| {
            let is_followed = match &it.followed {
                Some(it) => {
                    it.start == airing.start
                        && it.guide_key.eq_ignore_ascii_case(&airing.guide_key)
                        && airing.channels.contains(&it.channel)
                }
                // Found by its time.
                None => airing.channels.contains(&it.channel),
            };
            !it.status.is_final() && is_followed
        };
        self.episode_recordings(airing).find(is_of_it)
    }

    /// Returns the mark of a showing that gets no recording.
    fn without_recording(
        &self,
        airing: &Airing,
        outcome: Option<EpisodeOutcome>,
        rule: &RecordingRule,
        now: i64,
    ) -> (AiringMark, Option<AiringReason>) {
        let skipped = |reason| (AiringMark::Skipped, Some(reason));
        match outcome {
            None if !rule.enabled => skipped(AiringReason::RuleOff),
            None => skipped(AiringReason::NoChannel),
            Some(EpisodeOutcome::ShownBefore) => (AiringMark::NotNew, Some(AiringReason::ShownBefore)),
            Some(EpisodeOutcome::Repeat) => (AiringMark::NotNew, Some(AiringReason::Repeat)),
            Some(EpisodeOutcome::NotMarked) => (AiringMark::NotNew, Some(AiringReason::NotMarked)),
            Some(EpisodeOutcome::InLibrary) => skipped(AiringReason::InLibrary),
            Some(EpisodeOutcome::Begun) => skipped(AiringReason::Begun),
            Some(EpisodeOutcome::TooLong) => skipped(AiringReason::TooLong),
            Some(EpisodeOutcome::TooShort) => skipped(AiringReason::TooShort),
            Some(EpisodeOutcome::TooMany) => skipped(AiringReason::TooMany),
            Some(EpisodeOutcome::Taken | EpisodeOutcome::Created) => {
                let all = || self.episode_recordings(airing);
                if let Some(over) = all().find(|it| it.status.is_final()) {
                    return (AiringMark::Recorded, reason_of(over, rule));
                }
                match all().next() {
                    None => (AiringMark::Recorded, Some(AiringReason::Deleted)),
                    Some(_) if airing.start <= now => skipped(AiringReason::Begun),
                    Some(other) => {
                        let reason = reason_of(other, rule).filter(|it| *it != AiringReason::Running);
                        (AiringMark::Alternative, reason)
                    }
                }
            }
        }
    }
}

/// Returns the remarkable fact of a recording that a rule finds.
fn reason_of(recording: &Recording, rule: &RecordingRule) -> Option<AiringReason> {
    match (recording.status, recording.rule()) {
        (RecordingStatus::Recording, _) => Some(AiringReason::Running),
        (RecordingStatus::Stopped, _) => Some(AiringReason::Stopped),
        (_, None) => Some(AiringReason::ByHand),
        (_, Some(of)) => (of != rule.id).then_some(AiringReason::OtherRule),
    }
}
