//! Timestamps as the interface writes them. There is no clock here.

/// ISO 8601 in UTC with milliseconds: `2031-05-04T07:08:09.010Z`.
///
/// `at_ms` is milliseconds since 1970-01-01, negative before. Any value has an answer; years outside
/// 0 to 9999 get a sign, as the standard wants it.
pub fn iso_millis(at_ms: i64) -> String {
    const DAY_MS: i64 = 86_400_000;
    let (year, month, day) = date(at_ms.div_euclid(DAY_MS));
    let ms = at_ms.rem_euclid(DAY_MS);
    let (hour, minute, second, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
    let year = if (0..=9999).contains(&year) { format!("{year:04}") } else { format!("{year:+07}") };
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Year, month and day of the proleptic Gregorian calendar, days since 1970-01-01.
///
/// Years are counted from March here, so that the leap day is the last of its year and every month before it
/// begins at a fixed place: day 0 is 0000-03-01, and 400 years are 146,097 days.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_written_in_utc_with_milliseconds() {
        assert_eq!(iso_millis(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_millis(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(iso_millis(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(iso_millis(1_735_689_599_999), "2024-12-31T23:59:59.999Z");
        assert_eq!(iso_millis(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
        assert_eq!(iso_millis(253_402_300_800_000), "+010000-01-01T00:00:00.000Z");
    }

    #[test]
    fn every_day_follows_the_one_before_it() {
        let mut last = date(-800_000);
        for day in -799_999..800_000 {
            let today = date(day);
            let (year, month, date) = last;
            let follows = [(year, month, date + 1), (year, month + 1, 1), (year + 1, 1, 1)];
            assert!(follows.contains(&today), "{last:?} is followed by {today:?}");
            last = today;
        }
    }

    #[test]
    fn no_number_is_too_large() {
        iso_millis(i64::MIN);
        iso_millis(i64::MAX);
    }
}
