//! The hours of the week in which a user may watch, for children.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::recording::hours::{DAY_MINUTES, DAY_NAMES, day_time_text, minutes_of_day};

/// Member that names the zone.
const TIME_ZONE: &str = "time_zone";
/// Maximum number of ranges of one day.
const RANGES_MAX: usize = 8;
/// Number of days after which the table repeats, and one more: today at this time is the last one.
const DAYS_AHEAD: usize = 8;

/// The hours of each day of the week. Times outside of them are not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedHours {
    /// IANA name of the zone of all hours.
    pub time_zone: String,
    /// For each day from Monday on: begin and end of each range, in minutes since midnight. Sorted, and apart from each other.
    pub days: [Vec<(u16, u16)>; 7],
}

impl AllowedHours {
    /// Reads the form of the interface: `time_zone`, and for each day, from `mon` to `sun`, a list of ranges such as
    /// `07:00-19:30`. A day that is missing has no hours.
    ///
    /// # Errors
    /// The reason for people.
    pub fn from_object(object: &Map<String, Value>) -> Result<Self, String> {
        if let Some(unknown) = object.keys().find(|it| *it != TIME_ZONE && !DAY_NAMES.contains(&it.as_str()))
        {
            let unknown: String = unknown.chars().take(32).collect();
            return Err(format!(
                "Unknown member {unknown:?}. Use {TIME_ZONE} and the days {}.",
                DAY_NAMES.join(", ")
            ));
        }
        let time_zone = object.get(TIME_ZONE).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
        if time_zone.is_empty() || TimeZone::get(&time_zone).is_err() {
            return Err(format!("{TIME_ZONE}: Enter the name of a time zone, such as Europe/Berlin."));
        }
        let mut days: [Vec<(u16, u16)>; 7] = Default::default();
        for (name, day) in DAY_NAMES.iter().zip(&mut days) {
            *day = ranges(object.get(*name)).map_err(|reason| format!("{name}: {reason}"))?;
        }
        Ok(Self { time_zone, days })
    }

    /// Returns the form of the interface.
    pub fn to_object(&self) -> Map<String, Value> {
        let day = |ranges: &Vec<(u16, u16)>| -> Value {
            ranges.iter().map(|it| format!("{}-{}", day_time_text(it.0), day_time_text(it.1))).collect()
        };
        let days = DAY_NAMES.iter().zip(&self.days).map(|(name, ranges)| ((*name).to_owned(), day(ranges)));
        std::iter::once((TIME_ZONE.to_owned(), self.time_zone.clone().into())).chain(days).collect()
    }

    /// Returns whether a time, in milliseconds since 1970, is allowed. A zone that the machine does not know allows nothing.
    pub fn allows(&self, at: i64) -> bool {
        let Some((zone, at)) = self.zone().zip(Timestamp::from_millisecond(at).ok()) else { return false };
        let local = zone.to_datetime(at);
        let minute = i16::from(local.hour()) * 60 + i16::from(local.minute());
        let minute = minute.unsigned_abs();
        self.ranges_of(local.date()).iter().any(|it| (it.0..it.1).contains(&minute))
    }

    /// Returns when the hours begin or end next after a time, both in milliseconds since 1970. `None` if they never do.
    pub fn next_change(&self, after: i64) -> Option<i64> {
        let (zone, at) = (self.zone()?, Timestamp::from_millisecond(after).ok()?);
        let mut date = zone.to_datetime(at).date();
        let mut boundaries: Vec<i64> = Vec::new();
        for _ in 0..=DAYS_AHEAD {
            for minutes in self.ranges_of(date).iter().flat_map(|it| [it.0, it.1]) {
                // A clock that is set back shows a time twice.
                let local = if minutes == DAY_MINUTES {
                    date.tomorrow().ok()?.at(0, 0, 0, 0)
                } else {
                    time_of(date, minutes)
                };
                let local = zone.to_ambiguous_timestamp(local);
                let both = [local.earlier(), local.later()];
                boundaries.extend(both.into_iter().flatten().map(Timestamp::as_millisecond));
            }
            date = date.tomorrow().ok()?;
        }
        // One that is set forward skips a boundary.
        boundaries.extend(zone.following(at).take(2).map(|it| it.timestamp().as_millisecond()));
        boundaries.retain(|it| *it > after);
        boundaries.sort_unstable();
        let now = self.allows(after);
        boundaries.into_iter().find(|it| self.allows(*it) != now)
    }

    /// Returns a time as the clock of the zone shows it, such as `Mon 07:00`.
    pub fn local_text(&self, at: i64) -> String {
        let local = self.zone().zip(Timestamp::from_millisecond(at).ok());
        local.map(|(zone, at)| at.to_zoned(zone).strftime("%a %H:%M").to_string()).unwrap_or_default()
    }

    fn zone(&self) -> Option<TimeZone> {
        TimeZone::get(&self.time_zone).ok()
    }

    fn ranges_of(&self, date: Date) -> &[(u16, u16)] {
        let day = usize::from(date.weekday().to_monday_zero_offset().unsigned_abs());
        self.days.get(day).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Returns a time of a day that is before its end.
fn time_of(date: Date, minutes: u16) -> jiff::civil::DateTime {
    let (hour, minute) = (i8::try_from(minutes / 60).unwrap_or(0), i8::try_from(minutes % 60).unwrap_or(0));
    date.at(hour, minute, 0, 0)
}

/// Reads the ranges of a day. Those that touch are joined.
fn ranges(day: Option<&Value>) -> Result<Vec<(u16, u16)>, String> {
    const EXPECTED: &str = "Expected a list of ranges, such as [\"07:00-19:30\"].";
    let Some(day) = day.filter(|it| !it.is_null()) else { return Ok(Vec::new()) };
    let texts = day.as_array().ok_or(EXPECTED)?;
    if texts.len() > RANGES_MAX {
        return Err(format!("At most {RANGES_MAX} ranges are allowed."));
    }
    let mut all = Vec::with_capacity(texts.len());
    for text in texts {
        let text = text.as_str().ok_or(EXPECTED)?;
        let (begin, end) = text.split_once('-').ok_or(EXPECTED)?;
        let (begin, end) = minutes_of_day(begin).zip(minutes_of_day(end)).ok_or(EXPECTED)?;
        if begin >= end {
            return Err(format!(
                "{begin_text} does not come before {end_text}. Write hours over midnight as two days, up to 24:00 and from 00:00.",
                begin_text = text.split('-').next().unwrap_or_default().trim(),
                end_text = text.split('-').next_back().unwrap_or_default().trim(),
            ));
        }
        all.push((begin, end));
    }
    all.sort_unstable();
    let mut joined: Vec<(u16, u16)> = Vec::with_capacity(all.len());
    for (begin, end) in all {
        match joined.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((begin, end)),
        }
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hours(value: Value) -> AllowedHours {
        AllowedHours::from_object(value.as_object().unwrap()).unwrap()
    }

    fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    fn text(at: i64) -> String {
        Timestamp::from_millisecond(at).unwrap().to_string()
    }

    #[test]
    fn hours_are_those_of_the_clock_of_their_zone() {
        let table = hours(json!({
            "time_zone": "Europe/Berlin",
            "mon": ["15:00-19:30", "07:00-07:30"],
            "fri": ["18:00-24:00"], "sat": ["00:00-01:00"],
        }));
        // A time in UTC, whether it is allowed, and when that changes next. 2030-06-03 is a Monday; the zone is at +2.
        for (now, is_allowed, next) in [
            ("2030-06-03T04:59:59Z", false, "2030-06-03T05:00:00Z"),
            ("2030-06-03T05:00:00Z", true, "2030-06-03T05:30:00Z"),
            ("2030-06-03T05:30:00Z", false, "2030-06-03T13:00:00Z"),
            ("2030-06-03T17:29:59Z", true, "2030-06-03T17:30:00Z"),
            // Hours over midnight do not end at midnight.
            ("2030-06-07T20:00:00Z", true, "2030-06-07T23:00:00Z"),
            ("2030-06-07T23:00:00Z", false, "2030-06-10T05:00:00Z"),
        ] {
            assert_eq!(table.allows(at(now)), is_allowed, "{now}");
            assert_eq!(table.next_change(at(now)).map(text).as_deref(), Some(next), "{now}");
        }
        assert_eq!(table.local_text(at("2030-06-10T05:00:00Z")), "Mon 07:00");
    }

    #[test]
    fn a_clock_that_is_set_moves_the_hours_with_it() {
        let night = |range: &str| hours(json!({ "time_zone": "Europe/Berlin", "sun": [range] }));
        // On 2030-03-31, 02:00 becomes 03:00 at 01:00 in UTC; on 2030-10-27, 03:00 becomes 02:00 at 01:00 in UTC.
        for (range, now, changes) in [
            ("00:00-02:30", "2030-03-31T00:30:00Z", vec!["2030-03-31T01:00:00Z"]),
            ("02:30-04:00", "2030-03-31T00:30:00Z", vec!["2030-03-31T01:00:00Z", "2030-03-31T02:00:00Z"]),
            (
                "00:00-02:30",
                "2030-10-26T23:00:00Z",
                vec!["2030-10-27T00:30:00Z", "2030-10-27T01:00:00Z", "2030-10-27T01:30:00Z"],
            ),
        ] {
            let (table, mut now) = (night(range), at(now));
            for expected in changes {
                let next = table.next_change(now).unwrap();
                assert_eq!(text(next), expected, "{range}");
                assert_ne!(table.allows(next), table.allows(next - 1), "{range} {expected}");
                now = next;
            }
        }
    }

    #[test]
    fn hours_that_never_change_have_no_next_change() {
        let week = |range: Value| {
            let mut table = json!({ "time_zone": "UTC" });
            DAY_NAMES.iter().for_each(|it| table[*it] = range.clone());
            hours(table)
        };
        let (always, never) =
            (week(json!(["00:00-12:00", "12:00-24:00"])), hours(json!({ "time_zone": "UTC" })));
        let now = at("2030-06-03T04:59:59Z");
        assert_eq!((always.allows(now), always.next_change(now)), (true, None));
        assert_eq!((never.allows(now), never.next_change(now)), (false, None));
    }

    #[test]
    fn a_table_reads_back_and_touching_ranges_are_one() {
        let table = hours(json!({ "time_zone": " UTC ", "tue": ["8:00-9:00", "09:00-10:15"], "wed": null }));
        let shown = table.to_object();
        assert_eq!(
            (&shown["time_zone"], &shown["tue"], &shown["wed"]),
            (&json!("UTC"), &json!(["08:00-10:15"]), &json!([]))
        );
        assert_eq!(AllowedHours::from_object(&shown), Ok(table));
    }

    #[test]
    fn a_table_that_cannot_be_meant_is_refused_with_the_reason() {
        for (table, reason) in [
            (json!({}), "time_zone"),
            (json!({ "time_zone": "Mars/Phobos" }), "time_zone"),
            (json!({ "time_zone": "UTC", "monday": [] }), "monday"),
            (json!({ "time_zone": "UTC", "mon": "07:00-19:00" }), "mon: Expected a list"),
            (json!({ "time_zone": "UTC", "mon": ["7-19"] }), "mon: Expected a list"),
            (json!({ "time_zone": "UTC", "mon": ["22:00-02:00"] }), "mon: 22:00 does not come before 02:00"),
            (json!({ "time_zone": "UTC", "mon": ["07:00-24:01"] }), "mon: Expected"),
            (json!({ "time_zone": "UTC", "mon": ["07:60-19:00"] }), "mon: Expected"),
            (json!({ "time_zone": "UTC", "sun": vec!["07:00-08:00"; 9] }), "sun: At most 8"),
        ] {
            let refused = AllowedHours::from_object(table.as_object().unwrap()).unwrap_err();
            assert!(refused.contains(reason), "{table}: {refused}");
        }
    }
}
