//! Rules that make recordings: the programmes or the weekly times that a user wants, and the recordings that follow.
//!
//! [`RuleSet`] finds the programmes of a guide that rules select, [`plan()`] decides what is recorded of them, and
//! [`preview()`] shows it beforehand.

mod attach;
mod conditions;
mod create;
mod episode;
mod matching;
mod normal_text;
mod plan;
mod preview;
mod scan;
mod shared;
#[cfg(test)]
mod tests;
mod weekly;

use serde::{Deserialize, Serialize};

use self::conditions::check_zone;
pub use self::conditions::{
    LENGTH_MINUTES_MAX, NewBy, ProgrammeConditions, QualityWish, RULE_CHANNELS_MAX, SEASON_MAX,
};
pub use self::episode::EpisodeKey;
pub(super) use self::episode::episode_id_of;
pub use self::matching::{ChannelRules, RuleSet, RuleSubject, TextMode, TextTest};
pub use self::plan::{Airing, PlanInput, PlannedChange, plan};
pub use self::preview::{AiringMark, AiringReason, MarkedAiring, preview};
pub use self::scan::{
    ChannelMatches, GUIDE_MATCHES_MAX, GuideScan, KnownMatches, MATCHES_PER_RULE_MAX, MatchCache, MatchKey,
    ScannedChannel,
};
pub use self::weekly::{CivilDay, Occurrence, WeeklyTimes};
pub use super::hours::DayHours;
use super::{PADDING_SECONDS_MAX, PRIORITY_MAX, PROGRAMME_TEXT_CHARS_MAX, is_padding};
use crate::ids::{ChannelId, GroupId, RecordingRuleId, UserId};

/// Maximum number of rules.
pub const RULES_MAX: usize = 10_000;
/// Maximum number of rules that every programme is compared with: those with a regular expression, and those that have
/// neither a guide id nor an exact title.
pub const PATTERN_RULES_MAX: usize = 100;
/// How far ahead rules make recordings, and how far back they look for earlier showings, in milliseconds.
pub const HORIZON_MS: i64 = 14 * 24 * 60 * 60 * 1000;
/// Maximum number of episodes that a rule remembers, of each kind. Later ones replace the oldest.
pub const REMEMBERED_MAX: usize = 4_000;
/// Maximum number of recordings that a rule can be told to keep.
pub const KEEP_MAX: u32 = 10_000;

/// A rule that makes recordings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingRule {
    pub id: RecordingRuleId,
    /// The list in which clients find it.
    pub list: RuleList,
    /// For people; may be empty.
    #[serde(default)]
    pub name: String,
    pub enabled: bool,
    pub selection: RuleSelection,
    /// The channel that is preferred, and the only one of a weekly rule.
    #[serde(default)]
    pub channel: Option<ChannelId>,
    /// How many recordings stay; older ones are deleted. 0 keeps all.
    #[serde(default)]
    pub keep: u32,
    /// How many bytes its recordings have together; older ones are deleted. 0 means unlimited.
    #[serde(default)]
    pub quota_bytes: u64,
    /// Padding of its recordings in seconds; `None` for that of the settings. Negative ones shorten recordings.
    #[serde(default)]
    pub padding_before: Option<i32>,
    #[serde(default)]
    pub padding_after: Option<i32>,
    pub priority: u8,
    /// The user who made it, and whose channels it may record.
    #[serde(default)]
    pub owner: Option<UserId>,
    #[serde(default)]
    pub created_at: i64,
    #[serde(default)]
    pub updated_at: i64,
}

/// The lists of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RuleList {
    Recurring,
    Series,
}

/// The selection of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RuleSelection {
    Weekly(WeeklyTimes),
    Programmes(ProgrammeTest),
}

/// The programmes that a rule records. All tests have to hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgrammeTest {
    /// The id of a channel in the guide; `None` for all channels. Another case of letters counts only if no channel has the id
    /// in this one.
    pub tvg_id: Option<String>,
    pub title: Option<TextTest>,
    pub description: Option<TextTest>,
    /// Only episodes that the guide marks as new, or that were never seen before.
    pub only_new: bool,
    #[serde(skip_serializing_if = "ProgrammeConditions::is_default")]
    pub conditions: ProgrammeConditions,
}

/// The episodes that a rule has to remember because nothing else does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleMemory {
    /// The rule with the same id.
    pub id: RecordingRuleId,
    /// Episodes whose recordings were deleted: they are not recorded again.
    #[serde(default)]
    pub done: Vec<EpisodeKey>,
    /// Episodes that were shown before the rule was made: they are not new.
    #[serde(default)]
    pub old: Vec<EpisodeKey>,
}

/// A field of a rule that is invalid, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongRuleField {
    pub field: &'static str,
    pub reason: String,
}

impl RecordingRule {
    /// Checks the values of a rule.
    ///
    /// # Errors
    /// Every field that is invalid.
    pub fn check(&self) -> Result<(), Vec<WrongRuleField>> {
        let mut wrong = Vec::new();
        let mut refuse = |field, reason: String| wrong.push(WrongRuleField { field, reason });
        let is_long = |it: &str| it.chars().count() > PROGRAMME_TEXT_CHARS_MAX;
        if is_long(&self.name) {
            refuse("name", format!("At most {PROGRAMME_TEXT_CHARS_MAX} characters are allowed."));
        }
        for (field, padding) in
            [("padding_before", self.padding_before), ("padding_after", self.padding_after)]
        {
            if padding.is_some_and(|it| !is_padding(it)) {
                let max = PADDING_SECONDS_MAX;
                refuse(field, format!("Ensure this value is between -{max} and {max}."));
            }
        }
        if self.priority > PRIORITY_MAX {
            refuse("priority", format!("Ensure this value is less than or equal to {PRIORITY_MAX}."));
        }
        if self.keep > KEEP_MAX {
            refuse("keep", format!("Ensure this value is less than or equal to {KEEP_MAX}."));
        }
        self.check_selection(&mut refuse);
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    fn check_selection(&self, refuse: &mut dyn FnMut(&'static str, String)) {
        let is_long = |it: &str| it.chars().count() > PROGRAMME_TEXT_CHARS_MAX;
        match &self.selection {
            RuleSelection::Weekly(times) => {
                if self.channel.is_none() {
                    refuse("channel", "This field is required.".to_owned());
                }
                if times.days.is_empty() {
                    refuse("days_of_week", "Choose at least one day of the week.".to_owned());
                } else if times.days.iter().any(|it| *it > 6) {
                    refuse(
                        "days_of_week",
                        "Days of week must be between 0 (Monday) and 6 (Sunday).".to_owned(),
                    );
                }
                if let Some(Err(reason)) = times.zone.as_deref().map(check_zone) {
                    refuse("time_zone", reason);
                }
                if times.start == times.end {
                    refuse("end_time", "Start and end must differ.".to_owned());
                }
                if times.from.zip(times.until).is_some_and(|(from, until)| until < from) {
                    refuse("end_date", "End date must be on or after start date.".to_owned());
                }
            }
            RuleSelection::Programmes(test) => {
                if test.tvg_id.as_deref().is_some_and(is_long) {
                    refuse("tvg_id", format!("At most {PROGRAMME_TEXT_CHARS_MAX} characters are allowed."));
                }
                if test.title.is_none() && test.description.is_none() {
                    refuse("title", "A title or description is required.".to_owned());
                }
                for (field, text) in [("title", &test.title), ("description", &test.description)] {
                    if let Some(Err(reason)) = text.as_ref().map(TextTest::check) {
                        refuse(field, reason);
                    }
                }
                test.conditions.check(&mut |it| refuse(it.field, it.reason));
            }
        }
    }

    /// Returns whether the rule may record on a channel of a group.
    pub fn takes(&self, channel: ChannelId, group: Option<GroupId>) -> bool {
        self.channel == Some(channel) || self.conditions().is_none_or(|it| it.takes(channel, group))
    }

    /// Returns the further conditions of a rule that records programmes.
    pub fn conditions(&self) -> Option<&ProgrammeConditions> {
        match &self.selection {
            RuleSelection::Programmes(test) => Some(&test.conditions),
            RuleSelection::Weekly(_) => None,
        }
    }

    /// Returns whether every programme has to be compared with the rule. At most [`PATTERN_RULES_MAX`] rules may be such.
    pub fn is_pattern(&self) -> bool {
        let RuleSelection::Programmes(test) = &self.selection else { return false };
        let has_regex =
            [&test.title, &test.description].into_iter().flatten().any(|it| it.mode == TextMode::Regex);
        let has_exact_title = test.title.as_ref().is_some_and(|it| it.mode == TextMode::Exact);
        has_regex || (test.tvg_id.is_none() && !has_exact_title)
    }

    /// Returns the text by which people recognise the rule.
    pub fn title(&self) -> &str {
        let title = match &self.selection {
            RuleSelection::Programmes(test) => test.title.as_ref().map_or("", |it| &it.text),
            RuleSelection::Weekly(_) => "",
        };
        if self.name.is_empty() { title } else { &self.name }
    }
}

impl RuleMemory {
    pub fn new(id: RecordingRuleId) -> Self {
        Self { id, done: Vec::new(), old: Vec::new() }
    }

    /// Notes an episode that is not to be recorded again.
    pub fn add_done(&mut self, episode: EpisodeKey) {
        add(&mut self.done, episode);
    }

    /// Notes an episode that was shown before the rule was made.
    pub fn add_old(&mut self, episode: EpisodeKey) {
        add(&mut self.old, episode);
    }
}

fn add(list: &mut Vec<EpisodeKey>, episode: EpisodeKey) {
    if list.contains(&episode) {
        return;
    }
    if list.len() >= REMEMBERED_MAX {
        list.remove(0);
    }
    list.push(episode);
}
