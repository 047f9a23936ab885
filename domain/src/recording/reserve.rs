//! Connections of accounts that are always kept for recordings, at some times of the week.

use std::fmt;
use std::str::FromStr;

use jiff::tz::TimeZone;

use super::hours::{DAY_MINUTES, DAY_NAMES, DayHours, day_time_text, is_within, minutes_of_day};
use crate::ids::AccountId;

/// Maximum number of rows.
pub const RESERVES_MAX: usize = 100;
/// Maximum number of connections in a row.
const SLOTS_MAX: u32 = 1_000;
const ALL_DAYS: u8 = 0x7f;

/// Connections of an account that only recordings get, written as `2 = 1 mon-fri 18:00-23:00`: the id of the account, the number
/// of connections, and optionally days and hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountReserve {
    pub account: AccountId,
    pub slots: u32,
    /// A bit for each day, the lowest for Monday.
    days: u8,
    hours: Option<DayHours>,
}

/// A text that is not a reserve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is invalid; expected the id of an account, `=` and a number of connections, optionally with days and hours, such as `2 = 1 mon-fri 18:00-23:00`"
)]
pub struct WrongReserve(String);

impl AccountReserve {
    /// Returns whether the connections are kept at a time in milliseconds since 1970.
    pub fn is_at(&self, at: i64, zone: &TimeZone) -> bool {
        is_within(self.days, self.hours, zone, at.div_euclid(1000))
    }
}

impl FromStr for AccountReserve {
    type Err = WrongReserve;

    fn from_str(text: &str) -> Result<Self, WrongReserve> {
        parse(text).ok_or_else(|| WrongReserve(text.trim().chars().take(100).collect()))
    }
}

fn parse(text: &str) -> Option<AccountReserve> {
    let (account, rest) = text.split_once('=')?;
    let account = AccountId(account.trim().parse().ok()?);
    let mut words = rest.split_whitespace();
    let slots = words.next()?.parse().ok().filter(|it| (1..=SLOTS_MAX).contains(it))?;
    let mut reserve = AccountReserve { account, slots, days: ALL_DAYS, hours: None };
    let mut has_days = false;
    for word in words {
        match word.contains(':') {
            true if reserve.hours.is_none() => reserve.hours = Some(hours(word)?),
            false if !std::mem::replace(&mut has_days, true) => reserve.days = days(word)?,
            _ => return None,
        }
    }
    Some(reserve)
}

/// Reads days such as `mon-fri,sun`.
fn days(text: &str) -> Option<u8> {
    let lower = text.to_lowercase();
    let day = |name: &str| DAY_NAMES.iter().position(|it| name == *it);
    let mut days = 0;
    for part in lower.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (mut at, last) = (day(first)?, day(last)?);
        loop {
            days |= 1 << at;
            if at == last {
                break;
            }
            at = (at + 1) % DAY_NAMES.len();
        }
    }
    Some(days)
}

/// Reads hours such as `22:00-01:30`.
fn hours(text: &str) -> Option<DayHours> {
    let (from, until) = text.split_once('-')?;
    let seconds = |text: &str| Some(u32::from(minutes_of_day(text).filter(|it| *it < DAY_MINUTES)?) * 60);
    let hours = DayHours { from: seconds(from)?, until: seconds(until)? };
    (hours.from != hours.until).then_some(hours)
}

impl fmt::Display for AccountReserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.account, self.slots)?;
        if self.days != ALL_DAYS {
            let names = DAY_NAMES.iter().enumerate().filter(|(at, _)| self.days & (1 << at) != 0);
            let names: Vec<_> = names.map(|it| *it.1).collect();
            write!(f, " {}", names.join(","))?;
        }
        if let Some(hours) = self.hours {
            let clock = |seconds: u32| day_time_text(u16::try_from(seconds / 60).unwrap_or_default());
            write!(f, " {}-{}", clock(hours.from), clock(hours.until))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    /// A Monday, 12:00 in UTC, in milliseconds.
    const MONDAY_NOON: i64 = 1_795_435_200_000;

    fn reserve(text: &str) -> AccountReserve {
        text.parse().unwrap()
    }

    #[test]
    fn rows_are_read_and_shown_and_others_are_refused_with_an_example() {
        for (text, expected) in [
            ("2 = 1", "2 = 1"),
            (" 2=3 ", "2 = 3"),
            ("2 = 1 mon-fri", "2 = 1 mon,tue,wed,thu,fri"),
            ("2 = 1 SAT-MON", "2 = 1 mon,sat,sun"),
            ("2 = 1 mon-sun", "2 = 1"),
            ("2 = 1 wed 18:00-23:00", "2 = 1 wed 18:00-23:00"),
            ("2 = 1 22:30-1:00 fri", "2 = 1 fri 22:30-01:00"),
        ] {
            let read = reserve(text);
            assert_eq!(read.to_string(), expected, "{text}");
            assert_eq!(reserve(&read.to_string()), read);
        }
        for text in [
            "",
            "2",
            "2 =",
            "2 = 0",
            "2 = 1001",
            "2 = -1",
            "Home = 1",
            "2 = 1 someday",
            "2 = 1 mon-",
            "2 = 1 18:00",
            "2 = 1 18:00-18:00",
            "2 = 1 18:00-24:00",
            "2 = 1 18:60-19:00",
            "2 = 1 mon tue",
            "2 = 1 1:00-2:00 3:00-4:00",
            "2 = 1 a:b-c:d",
        ] {
            let refused = text.parse::<AccountReserve>().unwrap_err().to_string();
            assert!(refused.contains("2 = 1 mon-fri 18:00-23:00"), "{text}: {refused}");
        }
    }

    #[test]
    fn connections_are_kept_at_the_hours_of_their_days() {
        let check = |text: &str, hours: i64, expected: bool| {
            let is_at = reserve(text).is_at(MONDAY_NOON + hours * HOUR, &TimeZone::UTC);
            assert_eq!(is_at, expected, "{text} {hours}");
        };
        check("2 = 1", 0, true);
        check("2 = 1 mon", 0, true);
        check("2 = 1 tue", 0, false);
        check("2 = 1 18:00-23:00", 5, false);
        check("2 = 1 18:00-23:00", 6, true);
        check("2 = 1 18:00-23:00", 11, false);
        // The night of Monday lasts until Tuesday.
        check("2 = 1 mon 22:00-02:00", 13, true);
        check("2 = 1 tue 22:00-02:00", 13, false);
        check("2 = 1 mon 22:00-02:00", 14, false);
    }
}
