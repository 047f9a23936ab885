//! What a programme has to fulfil besides its title and its guide channel before a rule records it.

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::WrongRuleField;
use crate::guide::matching::Quality;
use crate::ids::{ChannelId, GroupId};
use crate::recording::hours::{DayHours, is_within};

/// Maximum number of channels, and of groups of channels, that a rule names.
pub const RULE_CHANNELS_MAX: usize = 1_000;
/// Maximum number of the first season that a rule records.
pub const SEASON_MAX: u32 = 10_000;
/// Maximum length of a programme that a rule can ask for, in minutes.
pub const LENGTH_MINUTES_MAX: u32 = 48 * 60;
/// Maximum length of the name of a time zone, in bytes.
const ZONE_BYTES_MAX: usize = 64;
const DAY_SECONDS: u32 = 24 * 60 * 60;

/// Further conditions of a rule. A value that is not set allows everything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgrammeConditions {
    /// The channels on which the rule records, together with those of `groups`; all channels if both are empty.
    pub channels: Vec<ChannelId>,
    pub groups: Vec<GroupId>,
    /// Days of the week on which the programme begins, from 0, Monday, to 6, Sunday; empty for all.
    pub days: Vec<u8>,
    /// The time of the day at which it begins.
    pub hours: Option<DayHours>,
    /// Name of the time zone of `days` and `hours`; `None` for that of the settings.
    pub zone: Option<String>,
    /// The first season. Programmes without a season are left out.
    pub season_from: Option<u32>,
    /// The length of the programme in minutes.
    pub minutes_min: Option<u32>,
    pub minutes_max: Option<u32>,
    /// How new episodes are recognised, if only these are recorded.
    pub new_by: NewBy,
    pub quality: QualityWish,
    /// Leaves out films and episodes that the library has.
    pub skip_library: bool,
}

/// How new episodes are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewBy {
    /// The guide marks them, or does not mark them as a repetition and they were never seen before.
    #[default]
    Either,
    /// The guide marks them.
    Mark,
    /// They were never seen before, whatever the guide says.
    Identity,
}

/// The quality of pictures that a rule prefers. Other showings are recorded only if an episode has none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QualityWish {
    #[default]
    Any,
    /// High definition first, then the highest.
    High,
    /// The highest first.
    Ultra,
    /// Standard definition first, whose files are small.
    Standard,
}

impl QualityWish {
    /// Returns the place of a quality in the order in which showings are chosen, the first one being 0.
    pub fn place(self, of: Quality) -> u8 {
        let order = match self {
            Self::Any => return 0,
            Self::High => [Quality::High, Quality::Ultra, Quality::Standard],
            Self::Ultra => [Quality::Ultra, Quality::High, Quality::Standard],
            Self::Standard => [Quality::Standard, Quality::High, Quality::Ultra],
        };
        (0..).zip(order).find(|it| it.1 == of).map_or(u8::MAX, |it| it.0)
    }
}

impl ProgrammeConditions {
    /// Returns whether nothing is set. Such a value is not stored.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether the rule records on some channels only.
    pub fn names_channels(&self) -> bool {
        !self.channels.is_empty() || !self.groups.is_empty()
    }

    /// Returns whether the rule may record on a channel of a group.
    pub fn takes(&self, channel: ChannelId, group: Option<GroupId>) -> bool {
        !self.names_channels()
            || self.channels.contains(&channel)
            || group.is_some_and(|it| self.groups.contains(&it))
    }

    /// Checks the values.
    pub(super) fn check(&self, refuse: &mut dyn FnMut(WrongRuleField)) {
        let mut refuse = |field, reason: String| refuse(WrongRuleField { field, reason });
        let too_many = || format!("At most {RULE_CHANNELS_MAX} ids are allowed.");
        if self.channels.len() > RULE_CHANNELS_MAX {
            refuse("channel_ids", too_many());
        }
        if self.groups.len() > RULE_CHANNELS_MAX {
            refuse("channel_group_ids", too_many());
        }
        if self.days.iter().any(|it| *it > 6) {
            refuse("days_of_week", "Days of week must be between 0 (Monday) and 6 (Sunday).".to_owned());
        }
        if let Some(hours) = self.hours {
            if hours.from >= DAY_SECONDS || hours.until >= DAY_SECONDS {
                refuse("start_after", "Times must be between 00:00 and 23:59:59.".to_owned());
            } else if hours.from == hours.until {
                refuse("start_before", "`start_after` and `start_before` must differ.".to_owned());
            }
        }
        if self.season_from.is_some_and(|it| it > SEASON_MAX) {
            refuse("season_from", format!("Ensure this value is less than or equal to {SEASON_MAX}."));
        }
        for (field, minutes) in [("min_minutes", self.minutes_min), ("max_minutes", self.minutes_max)] {
            if minutes.is_some_and(|it| it > LENGTH_MINUTES_MAX) {
                refuse(field, format!("Ensure this value is less than or equal to {LENGTH_MINUTES_MAX}."));
            }
        }
        if let Some((min, max)) = self.minutes_min.zip(self.minutes_max)
            && max < min
        {
            refuse("max_minutes", format!("Ensure this value is not less than `min_minutes` ({min})."));
        }
        if let Some(Err(reason)) = self.zone.as_deref().map(check_zone) {
            refuse("time_zone", reason);
        }
    }
}

/// Checks the name of a time zone.
///
/// # Errors
/// The reason, as a sentence.
pub(super) fn check_zone(name: &str) -> Result<(), String> {
    let is_known = name.len() <= ZONE_BYTES_MAX && TimeZone::get(name).is_ok();
    is_known.then_some(()).ok_or_else(|| {
        let shown: String = name.chars().take(ZONE_BYTES_MAX).collect();
        format!("\"{shown}\" is not a time zone. Use a name such as Europe/Berlin or UTC.")
    })
}

/// Conditions in the form in which programmes are compared with them.
pub(super) struct CompiledConditions {
    /// Sorted.
    channels: Option<Box<[ChannelId]>>,
    /// A bit for each day, the lowest for Monday.
    days: u8,
    hours: Option<DayHours>,
    zone: TimeZone,
    season_from: Option<u32>,
    /// Seconds.
    length_min: i64,
    length_max: i64,
}

impl CompiledConditions {
    /// Compiles conditions. `None` if every programme fulfils them.
    pub(super) fn new(from: &ProgrammeConditions) -> Option<Self> {
        let has_time = !from.days.is_empty() || from.hours.is_some();
        let is_limited =
            from.season_from.is_some() || from.minutes_min.is_some() || from.minutes_max.is_some();
        if !from.names_channels() && !has_time && !is_limited {
            return None;
        }
        let channels = from.names_channels().then(|| {
            let mut channels = from.channels.clone();
            channels.sort_unstable();
            channels.into_boxed_slice()
        });
        let bit = |day: &u8| 1_u8.checked_shl(u32::from(*day)).unwrap_or_default();
        let days =
            if from.days.is_empty() { u8::MAX } else { from.days.iter().map(bit).fold(0, |a, b| a | b) };
        // A name that this system does not know was checked when it was set.
        let zone = from.zone.as_deref().and_then(|it| TimeZone::get(it).ok()).unwrap_or(TimeZone::UTC);
        let seconds = |minutes: Option<u32>| minutes.map(|it| i64::from(it) * 60);
        Some(Self {
            channels,
            days,
            hours: from.hours,
            zone,
            season_from: from.season_from,
            length_min: seconds(from.minutes_min).unwrap_or(i64::MIN),
            length_max: seconds(from.minutes_max).unwrap_or(i64::MAX),
        })
    }

    /// Returns whether a programme on these channels fulfils everything that its times and its channels say. Times are seconds
    /// since 1970.
    pub(super) fn fits(&self, start: i64, stop: i64, channels: &[ChannelId]) -> bool {
        let length = stop.saturating_sub(start);
        let is_on = |of: &[ChannelId]| channels.iter().any(|it| of.binary_search(it).is_ok());
        (self.length_min..=self.length_max).contains(&length)
            && self.channels.as_deref().is_none_or(is_on)
            && self.fits_time(start)
    }

    pub(super) fn fits_season(&self, season: Option<u32>) -> bool {
        self.season_from.is_none_or(|from| season.is_some_and(|it| it >= from))
    }

    fn fits_time(&self, start: i64) -> bool {
        (self.days == u8::MAX && self.hours.is_none()) || is_within(self.days, self.hours, &self.zone, start)
    }
}
