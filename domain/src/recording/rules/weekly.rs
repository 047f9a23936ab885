//! Times of a weekly rule.
//!
//! Times are those of the wall clock in the time zone of the rule, or in that of the settings. Where a clock change skips a time, the same time
//! counted in the offset before the change applies: 02:30 becomes 03:30. Where a clock change repeats a time, the first
//! one applies, so that a recording over the change has the whole hour twice.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CivilDay(pub Date);

/// Days of the week and local times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeeklyTimes {
    /// From 0, Monday, to 6, Sunday.
    pub days: Vec<u8>,
    /// Seconds since midnight.
    pub start: u32,
    /// Seconds since midnight; not after the start for an end on the next day.
    pub end: u32,
    /// The first and the last day.
    #[serde(default)]
    pub from: Option<CivilDay>,
    #[serde(default)]
    pub until: Option<CivilDay>,
    /// Name of the time zone; `None` for that of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

/// One day of a weekly rule. Times are milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrence {
    pub day: CivilDay,
    pub start: i64,
    pub end: i64,
}

impl WeeklyTimes {
    /// Returns the days that end after `from` and start before `until`, both in milliseconds since 1970. `zone` is that of the
    /// settings.
    pub fn occurrences(&self, zone: &TimeZone, from: i64, until: i64) -> Vec<Occurrence> {
        let own = self.zone.as_deref().and_then(|it| TimeZone::get(it).ok());
        let zone = own.as_ref().unwrap_or(zone);
        let day_of = |at: i64| {
            let at = Timestamp::from_millisecond(at).ok()?;
            Some(at.to_zoned(zone.clone()).date())
        };
        let (Some(first), Some(last)) = (day_of(from), day_of(until)) else { return Vec::new() };
        // A day before the first one can last into it.
        let first = first.checked_sub(1.day()).unwrap_or(first);
        let days = first.series(1.day()).take_while(|it| *it <= last);
        let found = days.filter(|it| self.has_day(*it)).filter_map(|it| self.on(it, zone));
        found.filter(|it| it.end > from && it.start < until).collect()
    }

    fn has_day(&self, day: Date) -> bool {
        let weekday = u8::try_from(day.weekday().to_monday_zero_offset()).unwrap_or(u8::MAX);
        self.days.contains(&weekday)
            && self.from.is_none_or(|it| it.0 <= day)
            && self.until.is_none_or(|it| day <= it.0)
    }

    /// Returns the times of a day; `None` if a clock change leaves nothing of it.
    fn on(&self, day: Date, zone: &TimeZone) -> Option<Occurrence> {
        let at = |day: Date, seconds: u32| {
            let local = day.to_datetime(time_of(seconds)?);
            Some(zone.to_timestamp(local).ok()?.as_millisecond())
        };
        let last = if self.end > self.start { day } else { day.checked_add(1.day()).ok()? };
        let (start, end) = (at(day, self.start)?, at(last, self.end)?);
        (start < end).then_some(Occurrence { day: CivilDay(day), start, end })
    }
}

fn time_of(seconds: u32) -> Option<Time> {
    let part = |it: u32| i8::try_from(it).ok();
    Time::new(part(seconds / 3600)?, part(seconds / 60 % 60)?, part(seconds % 60)?, 0).ok()
}

impl fmt::Display for CivilDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for CivilDay {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        Date::strptime("%Y-%m-%d", text).map(Self)
    }
}

impl TryFrom<String> for CivilDay {
    type Error = jiff::Error;

    fn try_from(text: String) -> Result<Self, jiff::Error> {
        text.parse()
    }
}

impl From<CivilDay> for String {
    fn from(day: CivilDay) -> Self {
        day.to_string()
    }
}
