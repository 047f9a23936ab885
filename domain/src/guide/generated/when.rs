//! The time of an event, from the groups `hour`, `minute`, `ampm`, `day`, `month`, `year` and `timezone` of the patterns.

use jiff::civil::{Date, DateTime};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Span, Timestamp, ToSpan, Zoned};

use super::Values;

/// Names of months in languages of common providers, in lower case and without accents.
const MONTHS: [&[&str]; 12] = [
    &["january", "januar", "janvier", "enero", "gennaio", "janeiro", "januari"],
    &["february", "februar", "fevrier", "febrero", "febbraio", "fevereiro", "februari"],
    &["march", "marz", "maerz", "mars", "marzo", "marco", "maart"],
    &["april", "avril", "abril", "aprile"],
    &["may", "mai", "mayo", "maggio", "maio", "mei"],
    &["june", "juni", "juin", "junio", "giugno", "junho"],
    &["july", "juli", "juillet", "julio", "luglio", "julho"],
    &["august", "aout", "agosto", "augustus"],
    &["september", "septembre", "septiembre", "settembre", "setembro"],
    &["october", "oktober", "octobre", "octubre", "ottobre", "outubro"],
    &["november", "novembre", "noviembre", "novembro"],
    &["december", "dezember", "decembre", "diciembre", "dicembre", "dezembro"],
];
/// Shortest abbreviation of a month, in characters.
const MONTH_CHARS_MIN: usize = 3;

/// Abbreviations of time zones in names, and the zones that they mean. Names keep `EST` in summer, so every abbreviation
/// stands for the zone with its daylight saving.
const ZONES: [(&[&str], &str); 12] = [
    (&["et", "est", "edt"], "America/New_York"),
    (&["ct", "cst", "cdt"], "America/Chicago"),
    (&["mt", "mst", "mdt"], "America/Denver"),
    (&["pt", "pst", "pdt"], "America/Los_Angeles"),
    (&["akst", "akdt"], "America/Anchorage"),
    (&["bst", "uk"], "Europe/London"),
    (&["wet", "west"], "Europe/Lisbon"),
    (&["cet", "cest"], "Europe/Berlin"),
    (&["eet", "eest"], "Europe/Athens"),
    (&["aest", "aedt"], "Australia/Sydney"),
    (&["jst"], "Asia/Tokyo"),
    (&["gmt", "utc", "z"], "UTC"),
];

/// Returns a time zone by its IANA name, from the database in this binary.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    TimeZoneDatabase::bundled().get(name).ok()
}

/// Returns start and end of the event that the values describe, in Unix seconds. `None` without a time or date, or with
/// one that does not exist.
///
/// A time that the change to daylight saving skips is as much later as the clock is put forward; of a time that occurs
/// twice, the first is meant.
pub(super) fn event(values: &Values, zone: &TimeZone, duration: i64, now: i64) -> Option<(i64, i64)> {
    let named_zone = group(values, "timezone").and_then(zone_of);
    let zone = named_zone.as_ref().unwrap_or(zone);
    let today = Timestamp::from_second(now).ok()?.to_zoned(zone.clone()).date();
    let time = match group(values, "hour") {
        Some(_) => Some(time(values)?),
        None => None,
    };
    let date = match ["day", "month"].iter().any(|it| group(values, it).is_some()) {
        true => Some(date(values, today)?),
        false => None,
    };
    match (date, time) {
        (None, None) => None,
        (Some(date), None) => Some((instant(date, (0, 0), zone)?, instant(date, (24, 0), zone)?)),
        (Some(date), Some(time)) => instant(date, time, zone).map(|it| (it, it + duration)),
        (None, Some(time)) => {
            // An event of yesterday evening may still run.
            let yesterday = today.yesterday().ok().and_then(|it| instant(it, time, zone));
            let running = yesterday.filter(|it| *it <= now && now < it + duration);
            running.or_else(|| instant(today, time, zone)).map(|it| (it, it + duration))
        }
    }
}

/// Returns the placeholders of an event, in the time zone of the texts.
pub(super) fn placeholders(start: i64, stop: i64, zone: &TimeZone) -> Vec<(String, String)> {
    let local = |at: i64| Timestamp::from_second(at).ok().map(|it| it.to_zoned(zone.clone()));
    let (Some(start), Some(stop)) = (local(start), local(stop)) else { return Vec::new() };
    let short = |it: &Zoned| match it.minute() {
        0 => it.strftime("%-I %p").to_string(),
        _ => it.strftime("%-I:%M %p").to_string(),
    };
    let named = [
        ("starttime", short(&start)),
        ("starttime_long", start.strftime("%-I:%M %p").to_string()),
        ("starttime24", start.strftime("%H:%M").to_string()),
        ("endtime", short(&stop)),
        ("endtime_long", stop.strftime("%-I:%M %p").to_string()),
        ("endtime24", stop.strftime("%H:%M").to_string()),
        ("date", start.date().to_string()),
        ("day", start.day().to_string()),
        ("month", start.month().to_string()),
        ("year", start.year().to_string()),
    ];
    named.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Returns the date of a time as XMLTV writes it, such as `20260131`.
pub(super) fn xmltv_date(at: i64, zone: &TimeZone) -> Option<String> {
    let local = Timestamp::from_second(at).ok()?.to_zoned(zone.clone());
    Some(local.strftime("%Y%m%d").to_string())
}

fn group<'a>(values: &'a Values, name: &str) -> Option<&'a str> {
    values.get(name).map(String::as_str).filter(|it| !it.is_empty())
}

/// Returns hour and minute. Hour 24 is the end of the day.
fn time(values: &Values) -> Option<(i8, i8)> {
    let hour: i8 = group(values, "hour")?.parse().ok()?;
    let minute: i8 = group(values, "minute").map_or(Some(0), |it| it.parse().ok())?;
    let half = group(values, "ampm").map(|it| it.to_ascii_lowercase());
    let hour = match half.as_deref() {
        Some(half) if half.starts_with('p') && (1..12).contains(&hour) => hour + 12,
        Some(half) if half.starts_with('a') && hour == 12 => 0,
        _ => hour,
    };
    let is_valid = (0..24).contains(&hour) || (hour, minute) == (24, 0);
    (is_valid && (0..60).contains(&minute)).then_some((hour, minute))
}

/// Returns the date. Without a year it is the one nearest to today; without a month, that of today.
fn date(values: &Values, today: Date) -> Option<Date> {
    let day: i8 = group(values, "day").map_or(Some(1), |it| it.parse().ok())?;
    let month = match group(values, "month") {
        Some(name) => month(name)?,
        None => today.month(),
    };
    if let Some(year) = group(values, "year") {
        let n_digits = year.len();
        let year: i16 = year.parse().ok()?;
        return Date::new(if n_digits <= 2 { 2000 + year } else { year }, month, day).ok();
    }
    let near = [-1, 0, 1].into_iter().filter_map(|it| Date::new(today.year() + it, month, day).ok());
    near.min_by_key(|it| it.since(today).map_or(i32::MAX, |it: Span| it.get_days().abs()))
}

/// Returns a month by its number or name, which may be abbreviated.
pub(crate) fn month(text: &str) -> Option<i8> {
    if let Ok(number) = text.parse() {
        return (1..=12).contains(&number).then_some(number);
    }
    let wanted: String = text.chars().flat_map(char::to_lowercase).map(unaccented).collect();
    let wanted = wanted.trim_end_matches('.');
    if wanted.chars().count() < MONTH_CHARS_MIN {
        return None;
    }
    let mut found = (1..).zip(MONTHS).filter(|(_, names)| names.iter().any(|it| it.starts_with(wanted)));
    match (found.next(), found.next()) {
        (Some((number, _)), None) => Some(number),
        _ => None,
    }
}

fn unaccented(it: char) -> char {
    match it {
        'é' | 'è' | 'ê' => 'e',
        'û' | 'ü' => 'u',
        'ä' => 'a',
        'ç' => 'c',
        it => it,
    }
}

/// Returns the time zone of an abbreviation or an IANA name.
fn zone_of(name: &str) -> Option<TimeZone> {
    let lower = name.to_lowercase();
    let known = ZONES.iter().find(|(names, _)| names.contains(&lower.as_str()));
    zone(known.map_or(name, |it| it.1))
}

/// Returns the Unix time of an hour and minute of a day in a time zone.
fn instant(date: Date, (hour, minute): (i8, i8), zone: &TimeZone) -> Option<i64> {
    let at: DateTime = match hour {
        24 => date.checked_add(1.day()).ok()?.at(0, 0, 0, 0),
        hour => date.at(hour, minute, 0, 0),
    };
    let at = zone.to_ambiguous_timestamp(at).compatible().ok()?;
    Some(at.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(groups: &[(&str, &str)]) -> Values {
        groups.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn unix(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_second()
    }

    fn start(groups: &[(&str, &str)], zone_name: &str, now: &str) -> Option<String> {
        let zone = zone(zone_name).unwrap();
        let event = event(&values(groups), &zone, 3 * 3_600, unix(now));
        event.map(|it| Timestamp::from_second(it.0).unwrap().to_string())
    }

    #[test]
    fn hours_are_read_in_twelve_and_twenty_four_hour_form_and_never_exceed_a_day() {
        for (hour, minute, half, expected) in [
            ("8", "30", "PM", Some("2026-01-15T20:30:00Z")),
            ("8", "", "p.m.", Some("2026-01-15T20:00:00Z")),
            ("12", "00", "am", Some("2026-01-15T00:00:00Z")),
            ("12", "00", "pm", Some("2026-01-15T12:00:00Z")),
            ("20", "05", "", Some("2026-01-15T20:05:00Z")),
            ("20", "05", "PM", Some("2026-01-15T20:05:00Z")),
            ("24", "00", "", Some("2026-01-16T00:00:00Z")),
            ("24", "30", "", None),
            ("25", "00", "", None),
            ("8", "60", "", None),
            ("-8", "00", "", None),
            ("999", "00", "", None),
        ] {
            let groups = [("hour", hour), ("minute", minute), ("ampm", half)];
            let found = start(&groups, "UTC", "2026-01-15T12:00:00Z");
            assert_eq!(found.as_deref(), expected, "{hour}:{minute} {half}");
        }
    }

    #[test]
    fn months_are_numbers_or_names_of_common_languages() {
        for (text, expected) in [
            ("1", Some(1)),
            ("012", Some(12)),
            ("13", None),
            ("0", None),
            ("Jan", Some(1)),
            ("SEPT.", Some(9)),
            ("März", Some(3)),
            ("août", Some(8)),
            ("Dez", Some(12)),
            ("diciembre", Some(12)),
            ("Mai", Some(5)),
            ("jui", None),
            ("ma", None),
            ("Foo", None),
        ] {
            assert_eq!(month(text), expected, "{text}");
        }
    }

    #[test]
    fn a_date_without_a_year_is_the_nearest_one() {
        let groups = [("day", "1"), ("month", "Jan"), ("hour", "20")];
        let found = start(&groups, "UTC", "2026-12-30T00:00:00Z");
        assert_eq!(found.as_deref(), Some("2027-01-01T20:00:00Z"));
        let groups = [("day", "30"), ("month", "12"), ("hour", "20")];
        let found = start(&groups, "UTC", "2027-01-02T00:00:00Z");
        assert_eq!(found.as_deref(), Some("2026-12-30T20:00:00Z"));
        let groups = [("day", "29"), ("month", "2"), ("year", "27"), ("hour", "20")];
        assert_eq!(start(&groups, "UTC", "2027-01-02T00:00:00Z"), None);
    }

    /// Holds T-time.2.
    #[test]
    fn times_in_the_gap_and_overlap_of_daylight_saving_are_real_times() {
        let at = |month, day, hour, zone| {
            let groups = [("day", day), ("month", month), ("year", "2026"), ("hour", hour), ("minute", "30")];
            start(&groups, zone, "2026-01-01T00:00:00Z").unwrap()
        };
        // The clock goes from 02:00 to 03:00: 02:30 does not exist and becomes 03:30.
        assert_eq!(at("3", "8", "2", "America/New_York"), "2026-03-08T07:30:00Z");
        // The clock goes from 02:00 back to 01:00: 01:30 occurs twice, and the first is meant.
        assert_eq!(at("11", "1", "1", "America/New_York"), "2026-11-01T05:30:00Z");
        // The offset is that of the day of the event and not of today.
        assert_eq!(at("7", "1", "20", "Europe/Berlin"), "2026-07-01T18:30:00Z");
        assert_eq!(at("12", "1", "20", "Europe/Berlin"), "2026-12-01T19:30:00Z");
    }

    #[test]
    fn a_time_zone_in_the_name_replaces_that_of_the_guide() {
        let at = |zone| {
            let groups = [("hour", "20"), ("timezone", zone)];
            start(&groups, "UTC", "2026-07-01T12:00:00Z").unwrap()
        };
        assert_eq!(at("ET"), "2026-07-02T00:00:00Z");
        assert_eq!(at("EST"), "2026-07-02T00:00:00Z");
        assert_eq!(at("Asia/Kolkata"), "2026-07-01T14:30:00Z");
        assert_eq!(at("nowhere"), "2026-07-01T20:00:00Z");
    }

    #[test]
    fn an_event_without_a_date_is_that_of_today_or_the_one_that_still_runs() {
        let at = |now| start(&[("hour", "23")], "UTC", now).unwrap();
        assert_eq!(at("2026-01-15T12:00:00Z"), "2026-01-15T23:00:00Z");
        assert_eq!(at("2026-01-16T01:59:59Z"), "2026-01-15T23:00:00Z");
        assert_eq!(at("2026-01-16T02:00:00Z"), "2026-01-16T23:00:00Z");
    }
}
