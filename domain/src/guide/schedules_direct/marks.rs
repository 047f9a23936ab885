//! Which version of each day of each station is in the guide, so that only changed days are fetched.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::GuideSourceId;

/// Characters of a checksum that are kept: 48 bits distinguish the versions of one day.
pub const MARK_CHARS: usize = 8;
/// Stands for a day that is not in the guide.
const ABSENT: &str = "........";

/// The versions of the days in the guide of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuideMarks {
    pub source: GuideSourceId,
    /// Number of the first day since 1970-01-01, in UTC.
    pub first_day: i64,
    /// Time of the refresh that compared them with the service, in milliseconds since 1970.
    #[serde(default)]
    pub fetched_at: i64,
    /// For each station [`MARK_CHARS`] characters per day, in order.
    pub stations: BTreeMap<String, String>,
}

/// The version of a day: the first characters of its checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayMark(String);

impl DayMark {
    /// Returns the mark of a checksum as the service sends it.
    pub fn from_checksum(checksum: &str) -> Self {
        let plain = checksum.chars().filter(char::is_ascii_graphic).chain("--------".chars());
        Self(plain.take(MARK_CHARS).collect())
    }
}

impl GuideMarks {
    /// Creates marks without a station.
    pub fn new(source: GuideSourceId, first_day: i64) -> Self {
        Self { source, first_day, fetched_at: 0, stations: BTreeMap::new() }
    }

    /// Returns the version of a day.
    pub fn get(&self, station: &str, day: i64) -> Option<DayMark> {
        let at = usize::try_from(day.checked_sub(self.first_day)?).ok()?.checked_mul(MARK_CHARS)?;
        let mark = self.stations.get(station)?.get(at..at + MARK_CHARS)?;
        (mark != ABSENT).then(|| DayMark(mark.to_owned()))
    }

    /// Sets the version of a day. Days before the first one, and days that are more than a year later, are ignored.
    pub fn set(&mut self, station: &str, day: i64, mark: &DayMark) {
        let Some(index) = day.checked_sub(self.first_day).and_then(|it| usize::try_from(it).ok()) else {
            return;
        };
        if index > 366 {
            return;
        }
        let marks = self.stations.entry(station.to_owned()).or_default();
        while marks.len() < (index + 1) * MARK_CHARS {
            marks.push_str(ABSENT);
        }
        marks.replace_range(index * MARK_CHARS..(index + 1) * MARK_CHARS, &mark.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::schedules_direct::{DAYS, STATIONS_MAX};

    #[test]
    fn marks_of_days_are_kept_by_station() {
        let mut marks = GuideMarks::new(GuideSourceId(1), 100);
        let (a, b) = (DayMark::from_checksum("AAAAAAAAbbbb"), DayMark::from_checksum("Zé"));
        marks.set("7", 102, &a);
        marks.set("7", 100, &b);
        marks.set("8", 99, &a);
        marks.set("8", 1_000, &a);
        assert_eq!(marks.get("7", 102), Some(a.clone()));
        assert_eq!(marks.get("7", 100), Some(b));
        for (station, day) in [("7", 101), ("7", 103), ("7", 99), ("8", 99), ("8", 1_000), ("9", 100)] {
            assert_eq!(marks.get(station, day), None, "{station} {day}");
        }
        assert_eq!(marks.get("7", i64::MIN), None);
        assert_eq!(DayMark::from_checksum("AAAAAAAAcccc"), a);
    }

    /// A record may have a mebibyte. A station takes its marks, its number, and the lengths of both.
    #[test]
    fn the_marks_of_the_largest_account_fit_into_a_record() {
        let n_bytes = STATIONS_MAX * (DAYS as usize * MARK_CHARS + 16);
        assert!(n_bytes < 1024 * 1024, "{n_bytes}");
    }
}
