//! Times in guides.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Reads a time as guides write it, into seconds since 1970-01-01.
///
/// The DTD asks for `YYYYMMDDhhmmss +0200` or any beginning of it; times without a zone are in UTC. Also read, because
/// guides have them: a zone without the blank before it, with two digits or with a colon; names of zones, `UTC+3`, and a
/// remark behind the zone; ISO 8601, also without its hyphens; fractions of a second; hour 24; and plain seconds or
/// milliseconds since 1970-01-01.
pub fn parse_time(text: &str) -> Option<i64> {
    parse_time_in(text, None)
}

/// Reads the same, with times that state no zone in this one. A time that a change of the clock skips is as much later, and of
/// a time that occurs twice the first one counts.
pub fn parse_time_in(text: &str, of_source: Option<&TimeZone>) -> Option<i64> {
    let text = text.trim();
    let bytes = text.as_bytes();
    if let Some(time) = milliseconds(text) {
        return Some(time);
    }
    let (digits, length) = date_digits(bytes)?;
    let n = |range: std::ops::Range<usize>| {
        digits[range].iter().fold(0, |number, it| number * 10 + i64::from(*it))
    };
    let (n_digits, rest) = (length.digits, text.get(length.bytes..)?);
    let date = days(n(0..4), if n_digits > 4 { n(4..6) } else { 1 }, if n_digits > 6 { n(6..8) } else { 1 });
    let Some(date) = date else {
        return bytes
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| text.parse().ok())?
            .filter(|_| bytes.len() == 10);
    };
    let (hour, minute, second) = (n(8..10), n(10..12), n(12..14));
    // Hour 24 is the end of a day, and second 60 a leap second.
    if hour > 24 || minute > 59 || second > 60 || (hour == 24 && minute + second > 0) {
        return None;
    }
    let of_clock = date * DAY + hour * 3600 + minute * 60 + second;
    let rest = fraction_end(rest).trim();
    let time = match of_source {
        Some(zone) if rest.is_empty() => time_of_clock(of_clock, zone)?,
        _ => time_in_stated_zone(of_clock, rest)?,
    };
    (TIME_MIN..=TIME_MAX).contains(&time).then_some(time)
}

/// Reads milliseconds since 1970-01-01 into seconds. Later ones than 2030 could be dates that lack a digit.
fn milliseconds(text: &str) -> Option<i64> {
    let is_number = text.len() == 13 && text.bytes().all(|it| it.is_ascii_digit());
    let number = is_number.then(|| text.parse::<i64>().ok())??;
    (1_000_000_000_000..1_900_000_000_000).contains(&number).then_some(number / 1000)
}

/// The number of digits and of bytes of a date.
struct DateLength {
    digits: usize,
    bytes: usize,
}

/// Collects the digits of date and time, with or without separators. Digits that the text does not have are 0.
fn date_digits(bytes: &[u8]) -> Option<([u8; 14], DateLength)> {
    let mut digits = [0; 14];
    let mut n_digits = 0;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'0'..=b'9' if n_digits < 14 => {
                digits[n_digits] = byte - b'0';
                n_digits += 1;
            }
            b'-' | b':' | b'T' | b't' | b' ' if is_separator(bytes, at, n_digits) => {}
            _ => break,
        }
        at += 1;
    }
    // A date has pairs of digits after its year.
    (n_digits >= 4 && n_digits.is_multiple_of(2))
        .then_some((digits, DateLength { digits: n_digits, bytes: at }))
}

/// Returns whether a byte separates two parts of a date in ISO 8601: a digit follows, and the date began with one. Without
/// hyphens, only date and time are separated.
fn is_separator(bytes: &[u8], at: usize, n_digits: usize) -> bool {
    let is_digit_next = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    let is_iso = bytes.get(4) == Some(&b'-');
    let is_compact = n_digits == 8 && at == 8;
    let fits = match bytes[at] {
        b'-' => n_digits == 4 || n_digits == 6,
        b':' => n_digits == 10 || n_digits == 12,
        _ => n_digits == 8,
    };
    (is_iso || is_compact) && is_digit_next && fits
}

/// Skips a fraction of a second.
fn fraction_end(text: &str) -> &str {
    match text.strip_prefix(['.', ',']) {
        Some(rest) => rest.trim_start_matches(|it: char| it.is_ascii_digit()),
        None => text,
    }
}

/// Returns the time at which the clock of a zone shows this, which is given as if it was UTC.
fn time_of_clock(shown: i64, zone: &TimeZone) -> Option<i64> {
    let clock = TimeZone::UTC.to_datetime(Timestamp::from_second(shown).ok()?);
    zone.to_timestamp(clock).ok().map(|it| it.as_second())
}

/// Returns the time at which the clock of the zone that a text states shows this. A zone with a slash is one of the IANA
/// database.
fn time_in_stated_zone(shown: i64, text: &str) -> Option<i64> {
    // A remark repeats the zone: `+0100 (CET)`.
    let stated = text.split_once('(').map_or(text, |it| it.0).trim();
    let stated = if stated.is_empty() { text.trim_matches(['(', ')']) } else { stated };
    match stated.contains('/') {
        true => time_of_clock(shown, &TimeZoneDatabase::bundled().get(stated).ok()?),
        false => Some(shown - zone(stated)?),
    }
}

/// Returns the distance of a zone from UTC in seconds. No zone means UTC.
fn zone(text: &str) -> Option<i64> {
    // `UTC+3`; the minus sign of typesetting.
    let is_named =
        text.get(..3).is_some_and(|it| ["UTC", "GMT"].iter().any(|name| it.eq_ignore_ascii_case(name)));
    let distance = if is_named { text[3..].trim() } else { text.trim() };
    let (sign, rest) = if let Some(rest) = distance.strip_prefix('+') {
        (1, rest)
    } else if let Some(rest) = distance.strip_prefix(['-', '\u{2212}']) {
        (-1, rest)
    } else {
        return named_zone(text.trim());
    };
    let (hours, minutes) = match (rest.split_once(':'), rest.len()) {
        (Some(pair), _) => pair,
        (None, 1 | 2) => (rest, "0"),
        (None, 3 | 4) => rest.split_at_checked(rest.len() - 2)?,
        _ => return None,
    };
    let number = |it: &str| it.bytes().all(|it| it.is_ascii_digit()).then(|| it.parse::<i64>().ok())?;
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    // The zones of the world are between -12:00 and +14:00.
    (hours <= 14 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Returns the distance of a zone with a common name, or without a name.
fn named_zone(name: &str) -> Option<i64> {
    let hours = match name.to_ascii_uppercase().as_str() {
        "" | "Z" | "UTC" | "GMT" | "UT" | "WET" => 0,
        "BST" | "CET" | "MEZ" | "WEST" => 1,
        "CEST" | "MESZ" | "EET" => 2,
        "EEST" | "MSK" => 3,
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        _ => return None,
    };
    Some(hours * 3600)
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar; `None` if there is no such date.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) || !(1900..=2999).contains(&year) {
        return None;
    }
    // Years begin in March here, so that the leap day is the last one; an era has 400 years.
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Writes seconds since 1970-01-01 as `YYYYMMDDhhmmss +0000`. Years outside 1900 to 2999 are written as the nearest.
pub fn push_time(out: &mut String, time: i64) {
    let time = time.clamp(TIME_MIN, TIME_MAX);
    let (day, second) = (time.div_euclid(DAY), time.rem_euclid(DAY));
    let since = day + 719_468;
    let (era, of_era) = (since.div_euclid(146_097), since.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    let parts = [year / 100, year % 100, month, day, second / 3600, second / 60 % 60, second % 60];
    let mut digits = [b'0'; 14];
    for (pair, part) in digits.chunks_exact_mut(2).zip(parts) {
        pair[0] += (part / 10) as u8;
        pair[1] += (part % 10) as u8;
    }
    // They are ASCII.
    out.push_str(std::str::from_utf8(&digits).unwrap_or_default());
    out.push_str(" +0000");
}

/// 1900-01-01 00:00:00.
const TIME_MIN: i64 = -2_208_988_800;
/// 2999-12-31 23:59:59.
const TIME_MAX: i64 = 32_503_679_999;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(time: i64) -> String {
        let mut out = String::new();
        push_time(&mut out, time);
        out
    }

    #[test]
    fn times_are_read_in_every_form_that_guides_have() {
        // 2024-05-06 18:30:15 UTC.
        const AT: i64 = 1_715_020_215;
        for text in [
            "20240506183015",
            "20240506183015 +0000",
            "20240506203015 +0200",
            "20240506203015+0200",
            "20240506203015 +02:00",
            "20240506203015 +02",
            "20240506203015 +2",
            "20240506203015 CEST",
            "20240506143015 -0400",
            "20240507000015 +0530",
            "20240506183015 Z",
            " 20240506183015.123 ",
            "2024-05-06T18:30:15Z",
            "2024-05-06T20:30:15.000+02:00",
            "2024-05-06 18:30:15",
            "2024-05-06 20:30:15 +0200",
            "1715020215",
        ] {
            assert_eq!(parse_time(text), Some(AT), "{text}");
        }
        for text in [
            "20240506203015 UTC+2",
            "20240506203015 GMT+0200",
            "20240506163015 utc-2",
            "20240506203015 Europe/Berlin",
            "20240506163015 \u{2212}0200",
            "20240506183015 +0000 (UTC)",
            "20240506203015 (CEST)",
            "20240506T183015Z",
            "20240506T183015",
            "20240506 183015",
            "20240506 203015 +0200",
            "1715020215000",
            "1715020215999",
        ] {
            assert_eq!(parse_time(text), Some(AT), "{text}");
        }
        for (text, time) in [
            ("202405061830", AT - 15),
            ("202405061830 +0000", AT - 15),
            ("2024050618", AT - 15 - 1800),
            ("20240506", 1_714_953_600),
            ("20240506 +0200", 1_714_953_600 - 7200),
            ("2024-05-06", 1_714_953_600),
            ("202405", 1_714_521_600),
            ("2024", 1_704_067_200),
            ("20240505240000", 1_714_953_600),
            ("20240229000000", 1_709_164_800),
            ("20161231235960", 1_483_228_800),
        ] {
            assert_eq!(parse_time(text), Some(time), "{text}");
        }
    }

    #[test]
    fn a_time_without_a_zone_is_in_that_of_its_source_with_daylight_saving() {
        let zone = TimeZone::get("Europe/Amsterdam").unwrap();
        for (text, utc) in [
            ("20240101120000", "20240101110000"),
            ("202407011200", "202407011000"),
            ("2024-07-01 12:00:00", "20240701100000"),
            // On 2024-03-31, the clock goes from 2:00 to 3:00, and on 2024-10-27 from 3:00 to 2:00.
            ("20240331015959", "20240331005959"),
            ("20240331023000", "20240331013000"),
            ("20240331030000", "20240331010000"),
            ("20241027013000", "20241026233000"),
            ("20241027023000", "20241027003000"),
            ("20241027030000", "20241027020000"),
            // What states a zone is in that one.
            ("20240701120000 +0000", "20240701120000"),
            ("20240701120000 Z", "20240701120000"),
            ("20240701120000 EST", "20240701170000"),
            ("1715020215", "1715020215"),
        ] {
            assert_eq!(parse_time_in(text, Some(&zone)), parse_time(utc), "{text}");
            assert!(parse_time(utc).is_some());
        }
        assert_eq!(parse_time_in("20240101250000", Some(&zone)), None);
    }

    #[test]
    fn a_text_other_than_a_time_is_none() {
        for text in [
            "",
            "now",
            "20",
            "202",
            "20245",
            "20241301000000",
            "20240230000000",
            "20230229000000",
            "20240506250000",
            "20240506240001",
            "20240506186000",
            "20240506183061",
            "20240506183015 +9900",
            "20240506183015 NOWHERE",
            "20240506183015 Nowhere/City",
            "20240506183015 UTC+99",
            "2024050618301",
            "06.05.2024 18:30",
            "05/06/2024 18:30",
            "20240506T",
            "20240506183015 +020000",
            "202405061830159",
            "00000000000000",
            "2024-05-06T",
            "ü024",
            "2024ü",
            "-2024",
            "20240506183015 +ü",
            "99999999999999999999999",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_is_written_in_utc() {
        assert_eq!(written(0), "19700101000000 +0000");
        assert_eq!(written(951_782_399), "20000228235959 +0000");
        assert_eq!(written(951_782_400), "20000229000000 +0000");
        assert_eq!(written(i64::MIN), "19000101000000 +0000");
        assert_eq!(written(i64::MAX), "29991231235959 +0000");
    }

    proptest! {
        #[test]
        fn a_written_time_is_read_as_the_same(time in TIME_MIN..=TIME_MAX) {
            prop_assert_eq!(parse_time(&written(time)), Some(time));
        }

        #[test]
        fn no_text_makes_a_panic(text in "\\PC{0,30}|[0-9 T:+.Z-]{0,30}") {
            let _ = (parse_time(&text), parse_time_in(&text, TimeZone::get("America/New_York").ok().as_ref()));
        }
    }
}
