//! Recordings of channels: what is recorded when, the state of a recording, and the name of its file.
//!
//! A recording keeps what it says about its programme, so that it stays readable when the guide forgets the programme.

mod after;
mod airing;
mod cut;
mod file_name;
pub mod forecast;
mod hash;
pub(crate) mod hours;
mod lost;
mod missed;
mod nfo;
mod parts;
mod player_id;
mod programme;
mod rank;
mod remux;
mod reserve;
pub mod retention;
pub mod rules;
mod settings;
mod status;
mod work;

use std::ops::Range;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::after::{
    AfterRecording, AfterStep, ArtworkOrigin, ArtworkWork, ComskipWork, CutFile, CutWork, NfoWork, RemuxWork,
    TRIES_MAX, WorkState,
};
pub use self::cut::{KeptPart, kept_parts};
pub use self::file_name::{FILE_EXTENSION, NameFields, NameTemplate, TemplateError};
pub use self::lost::time_at;
pub use self::missed::{FetchedFile, FilledFile, MISSED_MS_MIN, MissedWork};
pub use self::parts::{LeftFiles, PARTS_MAX};
pub use self::player_id::{FILM_CATEGORY, RECORDING_NUMBER_FIRST, SERIES_CATEGORY, stable_hash};
pub use self::programme::SHIFTED_ID;
pub use self::rank::{RecordingClaim, RecordingRank};
pub use self::remux::{ProbedFile, RemuxFormat, ffmetadata};
pub use self::reserve::{AccountReserve, RESERVES_MAX};
pub use self::settings::{ComskipMode, DvrSettings, OFFSET_MINUTES_MAX, QUOTA_BYTES_MAX, RETENTION_DAYS_MAX};
pub use self::status::{RecordingInput, RecordingStatus, WrongStatus};
pub use self::work::FileWork;
use crate::ids::{ChannelId, RecordingId, RecordingRuleId, UserId};

/// Maximum length of a recording with its padding, in milliseconds.
pub const RECORDING_MS_MAX: i64 = 48 * 60 * 60 * 1000;
/// Maximum padding before or after a recording, in seconds. It is negative for a recording that begins after its programme, or
/// ends before it, by this much at most.
pub const PADDING_SECONDS_MAX: i32 = 24 * 60 * 60;
/// Maximum priority; the minimum is 0.
pub const PRIORITY_MAX: u8 = 100;
/// Priority of recordings that name none.
pub const PRIORITY_DEFAULT: u8 = 50;
/// Maximum number of gaps that a recording lists. Later ones extend the last.
pub const GAPS_MAX: usize = 200;
/// Maximum number of recordings.
pub const RECORDINGS_MAX: usize = 20_000;
/// Maximum length of the id, the titles and the guide id of a programme, in characters.
pub const PROGRAMME_TEXT_CHARS_MAX: usize = 255;
/// Maximum length of the description of a programme, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 4_000;
/// Maximum number of further rules that a recording names.
pub const FURTHER_RULES_MAX: usize = 50;
/// A recording whose last packets are missing for longer than this is interrupted, in milliseconds.
pub const MISSING_END_MS_MAX: i64 = 30_000;

/// A recording of a channel: planned, running or over. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    pub id: RecordingId,
    pub channel: ChannelId,
    /// Name and UUID of the channel when the recording was made, because a file outlives its channel.
    pub channel_name: String,
    pub channel_uuid: Uuid,
    #[serde(default)]
    pub programme: Option<RecordedProgramme>,
    /// Start and end, without padding.
    pub start: i64,
    pub end: i64,
    /// Seconds that are recorded before the start and after the end. Negative ones are left out of the programme.
    #[serde(default)]
    pub padding_before: i32,
    #[serde(default)]
    pub padding_after: i32,
    /// The recording with the higher priority wins when not all can be made.
    #[serde(default)]
    pub priority: u8,
    #[serde(default)]
    pub status: RecordingStatus,
    /// Why the recording has its status, or why a due one has not begun.
    #[serde(default)]
    pub reason: Option<String>,
    /// Times without data, in order.
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// The file, or its last part.
    #[serde(default)]
    pub file: Option<RecordedFile>,
    /// The parts before the file, in order, if other nodes have recorded them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_parts: Vec<RecordedFile>,
    /// The programme of the guide that it follows; `None` if it has times of its own.
    #[serde(default)]
    pub followed: Option<FollowedAiring>,
    /// The work on the file after the end.
    #[serde(default, skip_serializing_if = "AfterRecording::is_empty")]
    pub after: AfterRecording,
    /// The user who made it.
    #[serde(default)]
    pub owner: Option<UserId>,
    /// Whether only a user removes it.
    #[serde(default)]
    pub protected: bool,
    #[serde(default)]
    pub created_at: i64,
    #[serde(default)]
    pub updated_at: i64,
}

/// Returns whether a padding is within its limits.
pub fn is_padding(seconds: i32) -> bool {
    seconds.unsigned_abs() <= PADDING_SECONDS_MAX.unsigned_abs()
}

/// The programme of a recording, as the guide or the client described it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedProgramme {
    /// Id in the guide, which need not know it.
    pub id: Option<String>,
    pub title: String,
    pub sub_title: Option<String>,
    pub description: Option<String>,
    pub tvg_id: Option<String>,
    pub season: Option<u32>,
    pub episode: Option<u32>,
    pub year: Option<u32>,
    /// Whether the guide says that it is a film.
    pub is_movie: bool,
    /// Id of the episode or film in guides, such as that of Gracenote (`dd_progid`): the same on all channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub episode_id: Option<String>,
}

/// The origin of the times of a recording: a programme of the guide, or the day of a weekly rule. Contains the values that the recording
/// got from there. A value of the recording that differs was edited, and stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedAiring {
    /// The rule that made the recording; `None` if a user made it.
    #[serde(default)]
    pub rule: Option<RecordingRuleId>,
    /// Other rules that want it, in order. At most [`FURTHER_RULES_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_rules: Vec<RecordingRuleId>,
    /// Key of the guide channel; empty for weekly rules.
    pub guide_key: String,
    /// Identity of the episode: see [`rules::EpisodeKey`].
    pub episode: rules::EpisodeKey,
    pub channel: ChannelId,
    pub start: i64,
    pub end: i64,
    pub padding_before: i32,
    pub padding_after: i32,
    pub priority: u8,
}

/// A time in which nothing was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub start: i64,
    /// `None` while it lasts.
    pub end: Option<i64>,
    pub reason: String,
    /// Whether the data of this time were recorded, and lost with their file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lost: bool,
}

/// The file of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedFile {
    /// Path below the folder of recordings.
    pub path: String,
    /// Size in bytes when it was last noted; the file of a running recording is larger.
    pub bytes: u64,
    /// When the first packet was stored.
    pub started_at: i64,
    /// When the last packet was stored; `None` while it grows, or while nobody knows because its node is away.
    #[serde(default)]
    pub ended_at: Option<i64>,
    /// Name of the node that has it; `None` without a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// A field of a recording that is invalid, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongField {
    pub field: &'static str,
    pub reason: &'static str,
}

impl FollowedAiring {
    /// Returns what a recording with the times of a programme follows.
    pub fn by_hand(it: &Recording, guide_key: String, episode: rules::EpisodeKey) -> Self {
        Self {
            rule: None,
            further_rules: Vec::new(),
            guide_key,
            episode,
            channel: it.channel,
            start: it.start,
            end: it.end,
            padding_before: it.padding_before,
            padding_after: it.padding_after,
            priority: it.priority,
        }
    }

    /// Returns whether a user changed a value that the recording got from what it follows.
    pub fn is_edited(&self, it: &Recording) -> bool {
        let own = (it.channel, it.start, it.end, it.padding_before, it.padding_after, it.priority);
        own != (self.channel, self.start, self.end, self.padding_before, self.padding_after, self.priority)
    }
}

impl Recording {
    /// Creates a scheduled recording of a channel, which needs its id, its UUID and its name. The times are those without
    /// padding.
    pub fn new(
        id: RecordingId,
        channel: ChannelId,
        channel_uuid: Uuid,
        channel_name: impl Into<String>,
        times: Range<i64>,
        now: i64,
    ) -> Self {
        Self {
            id,
            channel,
            channel_name: channel_name.into(),
            channel_uuid,
            programme: None,
            start: times.start,
            end: times.end,
            padding_before: 0,
            padding_after: 0,
            priority: PRIORITY_DEFAULT,
            status: RecordingStatus::Scheduled,
            reason: None,
            gaps: Vec::new(),
            file: None,
            earlier_parts: Vec::new(),
            followed: None,
            after: AfterRecording::default(),
            owner: None,
            protected: false,
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns when recording begins, padding included.
    pub fn begins_at(&self) -> i64 {
        self.start.saturating_sub(i64::from(self.padding_before) * 1000)
    }

    /// Returns when recording ends, padding included.
    pub fn ends_at(&self) -> i64 {
        self.end.saturating_add(i64::from(self.padding_after) * 1000)
    }

    /// Returns whether recording has begun, or has to begin at this time.
    pub fn has_begun(&self, now: i64) -> bool {
        self.status != RecordingStatus::Scheduled || self.file.is_some() || self.begins_at() <= now
    }

    /// Returns the rule that made the recording.
    pub fn rule(&self) -> Option<RecordingRuleId> {
        self.followed.as_ref()?.rule
    }

    /// Returns all rules that want the recording, the one that made it first.
    pub fn rules(&self) -> impl Iterator<Item = RecordingRuleId> + '_ {
        let further = self.followed.iter().flat_map(|it| &it.further_rules);
        self.rule().into_iter().chain(further.copied())
    }

    /// Forgets that a rule wants the recording. If it is the one that made it, the next one takes its place. Returns false if
    /// the rule made it and no other wants it.
    pub fn leave_rule(&mut self, rule: RecordingRuleId) -> bool {
        let Some(followed) = &mut self.followed else { return true };
        followed.further_rules.retain(|it| *it != rule);
        if followed.rule != Some(rule) {
            return true;
        }
        let has_other = !followed.further_rules.is_empty();
        if has_other {
            followed.rule = Some(followed.further_rules.remove(0));
        }
        has_other
    }

    /// Returns the title that lists and events show: that of the programme, or the name of the channel.
    pub fn title(&self) -> &str {
        let title = self.programme.as_ref().map(|it| it.title.as_str()).filter(|it| !it.is_empty());
        title.unwrap_or(&self.channel_name)
    }

    /// Checks the times of a new recording, or of one that is changed.
    ///
    /// # Errors
    /// Every field that is invalid.
    pub fn check(&self, now: i64) -> Result<(), Vec<WrongField>> {
        let is_past = self.end > self.start && self.ends_at() <= now;
        let past =
            is_past.then_some(WrongField { field: "end_time", reason: "End time must be in the future." });
        let wrong: Vec<_> = past.into_iter().chain(self.check_past().err().unwrap_or_default()).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Checks everything but that the end is in the future: an archive may have a time that is over.
    ///
    /// # Errors
    /// Every field that is invalid.
    pub fn check_past(&self) -> Result<(), Vec<WrongField>> {
        let mut wrong = Vec::new();
        let mut refuse = |field, reason| wrong.push(WrongField { field, reason });
        if self.end <= self.start {
            refuse("end_time", "End time must be after start time.");
        } else if self.ends_at().saturating_sub(self.begins_at()) > RECORDING_MS_MAX {
            refuse("end_time", "A recording can last 48 hours at most.");
        }
        if !is_padding(self.padding_before) {
            refuse("padding_before", "Ensure this value is between -86400 and 86400.");
        }
        if !is_padding(self.padding_after) {
            refuse("padding_after", "Ensure this value is between -86400 and 86400.");
        }
        let is_negative = self.padding_before < 0 || self.padding_after < 0;
        if is_negative && self.end > self.start && self.ends_at() <= self.begins_at() {
            let field = if self.padding_after < 0 { "padding_after" } else { "padding_before" };
            refuse(field, "The negative padding leaves nothing of the programme.");
        }
        if self.priority > PRIORITY_MAX {
            refuse("priority", "Ensure this value is less than or equal to 100.");
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Applies an input to the status.
    ///
    /// # Errors
    /// The status does not accept the input; nothing changes.
    pub fn apply(
        &mut self,
        input: RecordingInput,
        reason: Option<String>,
        at: i64,
    ) -> Result<(), WrongStatus> {
        let next = self.status.after(input)?;
        if next != self.status || reason.is_some() {
            self.reason = reason;
        }
        self.status = next;
        self.updated_at = at;
        if next.is_final() {
            self.close_gap(at.min(self.ends_at()));
        }
        Ok(())
    }

    /// Notes that data are missing from `start` on. A gap that lasts already is kept, with its first reason.
    pub fn open_gap(&mut self, start: i64, reason: &str) {
        let n = self.gaps.len();
        match self.gaps.last_mut() {
            Some(last) if last.end.is_none() => {}
            Some(last) if n >= GAPS_MAX || last.end.is_some_and(|it| it >= start) => last.end = None,
            _ => self.gaps.push(Gap { start, end: None, reason: reason.to_owned(), is_lost: false }),
        }
    }

    /// Notes that data arrive again.
    pub fn close_gap(&mut self, at: i64) {
        if let Some(last) = self.gaps.last_mut().filter(|it| it.end.is_none()) {
            last.end = Some(at.max(last.start));
        }
    }

    /// Moves the begin of a gap that lasts, because the wall clock was set by this many milliseconds: its length stays.
    pub fn shift_open_gap(&mut self, by_ms: i64) {
        if let Some(last) = self.gaps.last_mut().filter(|it| it.end.is_none()) {
            last.start = last.start.saturating_add(by_ms);
        }
    }

    /// Returns how the recording ends when its time is over: without a file it has failed; a missing end, gaps of more than
    /// a tenth of its time, or data that were lost with their file interrupt it.
    pub fn outcome(&self, ended_at: i64) -> (RecordingInput, Option<String>) {
        let lost = self.gaps.iter().find(|it| it.is_lost);
        let Some(file) = &self.file else {
            let reason = lost.map(|it| it.reason.clone()).or_else(|| self.reason.clone());
            let reason = reason.unwrap_or_else(|| "nothing could be recorded".to_owned());
            return (RecordingInput::EndedWithoutFile, Some(reason));
        };
        let end = self.ends_at();
        let length = |gap: &Gap| gap.end.unwrap_or(end).min(end).saturating_sub(gap.start).max(0);
        let missing: i64 = self.gaps.iter().map(length).sum();
        let last = self.gaps.last();
        if let Some(gap) = last.filter(|it| it.end.is_none() && length(it) > MISSING_END_MS_MAX) {
            return (RecordingInput::EndedIncomplete, Some(format!("the end is missing: {}", gap.reason)));
        }
        if end.saturating_sub(ended_at) > MISSING_END_MS_MAX {
            return (RecordingInput::EndedIncomplete, Some("the end is missing".to_owned()));
        }
        let is_much = missing.saturating_mul(10) > end.saturating_sub(self.begins_at().min(file.started_at));
        if is_much || lost.is_some() {
            let reason = lost.or(last).map_or("", |it| it.reason.as_str());
            // A file can be lost in its first second.
            let seconds = (missing / 1000).max(1);
            return (RecordingInput::EndedIncomplete, Some(format!("{seconds} s are missing: {reason}")));
        }
        (RecordingInput::EndedWhole, None)
    }

    /// Returns the fields of templates for the name of the file. `begin` is the time of the first packet as text.
    pub fn name_fields(&self, begin: String) -> NameFields {
        let programme = self.programme.clone().unwrap_or_default();
        NameFields {
            show: self.title().to_owned(),
            title: self.title().to_owned(),
            sub_title: programme.sub_title.unwrap_or_default(),
            season: programme.season,
            episode: programme.episode,
            year: programme.year,
            channel: self.channel_name.clone(),
            start: begin,
            id: self.id.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    fn recording() -> Recording {
        let (channel, uuid) = (ChannelId(2), Uuid::from_u128(2));
        Recording {
            padding_before: 60,
            padding_after: 120,
            ..Recording::new(RecordingId(1), channel, uuid, "News", 100 * MINUTE..130 * MINUTE, 0)
        }
    }

    pub(super) fn with_file() -> Recording {
        let file = RecordedFile {
            path: "a.ts".into(),
            bytes: 188,
            started_at: 99 * MINUTE,
            ended_at: None,
            node: None,
        };
        Recording { file: Some(file), status: RecordingStatus::Recording, ..recording() }
    }

    #[test]
    fn padding_extends_a_recording_on_both_sides() {
        let it = recording();
        assert_eq!((it.begins_at(), it.ends_at()), (99 * MINUTE, 132 * MINUTE));
    }

    #[test]
    fn every_invalid_field_is_named() {
        let check = |change: fn(&mut Recording), expected: &[&str]| {
            let mut it = recording();
            change(&mut it);
            let wrong = it.check(101 * MINUTE).err().unwrap_or_default();
            assert_eq!(wrong.iter().map(|it| it.field).collect::<Vec<_>>(), expected, "{wrong:?}");
        };
        check(|_| {}, &[]);
        check(|it| it.end = it.start, &["end_time"]);
        check(|it| (it.start, it.end) = (10 * MINUTE, 20 * MINUTE), &["end_time"]);
        check(|it| it.end = it.start + RECORDING_MS_MAX, &["end_time"]);
        check(|it| it.end = i64::MAX, &["end_time"]);
        check(|it| it.padding_before = i32::MAX, &["end_time", "padding_before"]);
        check(|it| it.padding_before = i32::MIN, &["padding_before", "padding_before"]);
        // The programme lasts 30 minutes.
        check(|it| (it.padding_before, it.padding_after) = (-600, -600), &[]);
        check(|it| (it.padding_before, it.padding_after) = (-600, -1_200), &["padding_after"]);
        check(|it| (it.padding_before, it.padding_after) = (-1_800, 0), &["padding_before"]);
        check(|it| (it.padding_before, it.padding_after) = (600, -1_680), &[]);
        check(|it| it.priority = 101, &["priority"]);
        // One that has begun may still be recorded.
        check(|it| it.start = 50 * MINUTE, &[]);
    }

    #[test]
    fn the_description_of_a_recording_is_that_of_an_episode_or_a_film() {
        let programme = RecordedProgramme {
            title: "Evening & more".to_owned(),
            sub_title: Some("Part two".to_owned()),
            description: Some("What <happened>.".to_owned()),
            season: Some(2),
            ..RecordedProgramme::default()
        };
        let episode = Recording { programme: Some(programme.clone()), ..recording() }.nfo();
        for line in [
            "<episodedetails>",
            "  <title>Part two</title>",
            "  <showtitle>Evening &amp; more</showtitle>",
            "  <season>2</season>",
            "  <aired>1970-01-01</aired>",
            "  <plot>What &lt;happened&gt;.</plot>",
            "  <studio>News</studio>",
            "</episodedetails>",
        ] {
            assert!(episode.lines().any(|it| it == line), "{line}: {episode}");
        }
        assert!(!episode.contains("<episode>"), "{episode}");
        let film = RecordedProgramme { is_movie: true, year: Some(1999), ..programme };
        let film = Recording { programme: Some(film), ..recording() }.nfo();
        assert!(film.contains("<movie>") && film.contains("<title>Evening &amp; more</title>"), "{film}");
        assert!(film.contains("<year>1999</year>"), "{film}");
        assert!(recording().nfo().contains("<title>News</title>"), "the channel if nothing else is known");
    }

    #[test]
    fn a_gap_is_noted_once_until_data_arrive_again() {
        let mut it = with_file();
        it.open_gap(1, "lost");
        it.open_gap(2, "still lost");
        it.close_gap(5);
        it.close_gap(6);
        it.open_gap(9, "lost again");
        let gap = |start, end, reason: &str| Gap { start, end, reason: reason.to_owned(), is_lost: false };
        assert_eq!(it.gaps, [gap(1, Some(5), "lost"), gap(9, None, "lost again")]);
    }

    // A jump of the clock by an hour was told as 3,611 s that are missing.
    #[test]
    fn a_gap_is_as_long_as_without_a_jump_of_the_clock() {
        const HOUR: i64 = 3_600_000;
        for jump in [HOUR, -HOUR] {
            let mut it = recording();
            it.open_gap(100 * HOUR, "lost");
            it.shift_open_gap(jump);
            it.close_gap(100 * HOUR + jump + 11_000);
            // One that is over has its times.
            it.shift_open_gap(jump);
            let length = it.gaps[0].end.map(|end| end - it.gaps[0].start);
            assert_eq!((it.gaps.len(), length), (1, Some(11_000)));
        }
    }

    #[test]
    fn the_number_of_gaps_is_bounded() {
        let mut it = with_file();
        for n in 0..1_000 {
            it.open_gap(n * 10, "lost");
            it.close_gap(n * 10 + 5);
        }
        assert_eq!((it.gaps.len(), it.gaps.last().unwrap().end), (GAPS_MAX, Some(9_995)));
    }

    #[test]
    fn the_outcome_depends_on_what_is_missing() {
        use RecordingInput::{EndedIncomplete, EndedWhole, EndedWithoutFile};
        let check = |it: Recording, ended_at: i64, expected| {
            assert_eq!(it.outcome(ended_at * MINUTE).0, expected, "{it:?}");
        };
        let gap = |start: i64, end: Option<i64>| {
            let mut it = with_file();
            it.gaps.push(Gap {
                start: start * MINUTE,
                end: end.map(|it| it * MINUTE),
                reason: "lost".into(),
                is_lost: false,
            });
            it
        };
        check(recording(), 132, EndedWithoutFile);
        check(with_file(), 132, EndedWhole);
        check(with_file(), 120, EndedIncomplete);
        check(gap(105, Some(107)), 132, EndedWhole);
        check(gap(105, Some(125)), 132, EndedIncomplete);
        check(gap(120, None), 132, EndedIncomplete);
        check(gap(132, None), 132, EndedWhole);
    }

    /// Holds T-dvr.6.
    #[test]
    fn the_outcome_after_an_outage_depends_on_its_length_and_its_place() {
        use RecordingInput::{EndedIncomplete, EndedWhole};
        const SECOND: i64 = 1_000;
        let check = |minutes: i64, outage: i64, is_at_end: bool, expected| {
            let (channel, uuid) = (ChannelId(2), Uuid::from_u128(2));
            let end = minutes * MINUTE;
            let mut it = Recording::new(RecordingId(1), channel, uuid, "News", 0..end, 0);
            it.file = Some(RecordedFile {
                path: "a.ts".into(),
                bytes: 188,
                started_at: 0,
                ended_at: None,
                node: None,
            });
            it.status = RecordingStatus::Recording;
            let start = if is_at_end { end - outage * SECOND } else { MINUTE };
            it.open_gap(start, "the source is gone");
            if !is_at_end {
                it.close_gap(start + outage * SECOND);
            }
            let ended_at = if is_at_end { start } else { end };
            let (input, reason) = it.outcome(ended_at);
            assert_eq!(input, expected, "{outage} s of {minutes} min, at the end: {is_at_end}");
            let is_told = reason.is_some_and(|it| it.contains("the source is gone"));
            assert_eq!(is_told, input == EndedIncomplete);
            it.apply(input, None, end).unwrap();
            assert_eq!((it.gaps.len(), it.gaps[0].end), (1, Some(start + outage * SECOND)));
        };
        for (minutes, outage, inside, at_end) in [
            (60, 10, EndedWhole, EndedWhole),
            (60, 60, EndedWhole, EndedIncomplete),
            (60, 600, EndedIncomplete, EndedIncomplete),
            (240, 600, EndedWhole, EndedIncomplete),
            (5, 10, EndedWhole, EndedWhole),
            (5, 60, EndedIncomplete, EndedIncomplete),
        ] {
            check(minutes, outage, false, inside);
            check(minutes, outage, true, at_end);
        }
    }

    #[test]
    fn a_final_status_closes_the_gap_and_keeps_the_reason() {
        let mut it = with_file();
        it.open_gap(120 * MINUTE, "lost");
        it.apply(RecordingInput::Stop, Some("stopped by a user".into()), 121 * MINUTE).unwrap();
        assert_eq!((it.status, it.gaps[0].end), (RecordingStatus::Stopped, Some(121 * MINUTE)));
        assert_eq!(it.apply(RecordingInput::Stop, None, 0), Err(WrongStatus(RecordingStatus::Stopped)));
        assert_eq!(it.reason.as_deref(), Some("stopped by a user"));
    }
}
