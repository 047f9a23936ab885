//! Times of the day, on days of the week.

use jiff::Timestamp;
use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

/// The days as they are named on the wire, from Monday on.
pub(crate) const DAY_NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Minutes of a day.
pub(crate) const DAY_MINUTES: u16 = 24 * 60;

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

/// Reads a time of the day, such as `7:30`, from `00:00` to `24:00`. Returns minutes since midnight.
pub(crate) fn minutes_of_day(text: &str) -> Option<u16> {
    let (hour, minute) = text.trim().split_once(':')?;
    let number = |it: &str| -> Option<u16> {
        let is_number = (1..=2).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_digit());
        it.parse().ok().filter(|_| is_number)
    };
    let (hour, minute) = (number(hour)?, number(minute)?);
    (minute < 60).then_some(hour * 60 + minute).filter(|it| *it <= DAY_MINUTES)
}

/// Writes a time of the day, given in minutes since midnight, such as `07:30`.
pub(crate) fn day_time_text(minutes: u16) -> String {
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_day_are_read_from_midnight_to_midnight() {
        for (text, expected) in [
            ("00:00", Some(0)),
            ("7:05", Some(425)),
            (" 07:30 ", Some(450)),
            ("23:59", Some(1_439)),
            ("24:00", Some(1_440)),
            ("24:01", None),
            ("25:00", None),
            ("7:60", None),
            ("007:30", None),
            ("+7:30", None),
            ("7", None),
            ("7:", None),
            (":30", None),
            ("-1:30", None),
            ("7:30:00", None),
            ("a:b", None),
        ] {
            assert_eq!(minutes_of_day(text), expected, "{text}");
            if let Some(minutes) = expected {
                assert_eq!(minutes_of_day(&day_time_text(minutes)), expected, "{text}");
            }
        }
    }
}
