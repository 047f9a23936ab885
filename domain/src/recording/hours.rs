//! Times of the day, on days of the week.

use jiff::Timestamp;
use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

/// A time of the day, in seconds since midnight. It ends on the next day if `until` is not after `from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayHours {
    pub from: u32,
    pub until: u32,
}

/// Returns whether a time, in seconds since 1970, is within hours of days. `days` has a bit for each day, the lowest for Monday.
pub(super) fn is_within(days: u8, hours: Option<DayHours>, zone: &TimeZone, at: i64) -> bool {
    let Ok(at) = Timestamp::from_second(at) else { return false };
    let at = at.to_zoned(zone.clone());
    let part = |it: i8| u32::try_from(it).unwrap_or_default();
    let second = part(at.hour()) * 3600 + part(at.minute()) * 60 + part(at.second());
    let (is_within, is_of_day_before) = hours.map_or((true, false), |it| it.place(second));
    let day = if is_of_day_before { at.weekday().previous() } else { at.weekday() };
    is_within && days & day_bit(day) != 0
}

fn day_bit(day: Weekday) -> u8 {
    1 << day.to_monday_zero_offset()
}

impl DayHours {
    /// Returns whether a second of the day is within the time, and whether the time began on the day before: the night of
    /// Friday lasts until Saturday.
    fn place(self, second: u32) -> (bool, bool) {
        match self.from < self.until {
            true => ((self.from..self.until).contains(&second), false),
            false => (second >= self.from || second < self.until, second < self.until),
        }
    }
}
