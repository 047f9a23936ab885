//! The times of scheduled refreshes: pure functions of a schedule, a time zone and the time.
//!
//! A schedule is a number of hours or a cron expression. A refresh that was due while the gateway was down runs once
//! after the start, and not for all records in the same second. A node that begins to write the configuration of a cluster
//! begins at once with what was due before.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use domain::account::RefreshSchedule;
use jiff::Timestamp;
use jiff::tz::TimeZone;

const HOUR_MS: i64 = 3_600_000;

/// Overdue refreshes begin within this time after the start, in milliseconds.
const SPREAD_MS: i64 = 120_000;

/// The data of an account or a guide source that determines its next refresh. Times are milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// The id of the record. Refreshes that are overdue are spread by it.
    pub(crate) id: u32,
    /// End of the last attempt.
    pub(crate) tried_at: Option<i64>,
    /// Last change by an admin: a schedule does not apply to times before it was set.
    pub(crate) updated_at: i64,
    pub(crate) missed: Missed,
}

/// When a refresh begins that was due before this gateway started refreshes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missed {
    /// Within two minutes after the start of the gateway, which has viewers to serve first. Milliseconds since 1970.
    Spread { from: i64 },
    /// In a cluster, this node has taken over from another one. Few refreshes run at the same time in any case.
    AtOnce,
}

/// Returns the time of the next refresh in milliseconds since 1970; `None` is never.
///
/// Hours count from the last attempt; without one, the first refresh is due at once. A cron expression counts from the
/// last attempt or the last change of the record, whichever is later.
pub(crate) fn next_due(schedule: &RefreshSchedule, zone: &TimeZone, known: &Known) -> Option<i64> {
    let due = if !schedule.cron.is_empty() {
        let since = known.tried_at.map_or(known.updated_at, |it| it.max(known.updated_at));
        next_of_cron(&schedule.cron, zone, since)?
    } else if schedule.interval_hours > 0 {
        let interval = i64::from(schedule.interval_hours) * HOUR_MS;
        known.tried_at.map_or(known.updated_at, |it| it.saturating_add(interval))
    } else {
        return None;
    };
    Some(match known.missed {
        Missed::Spread { from } if due < from => from.saturating_add(spread(known.id)),
        Missed::Spread { .. } | Missed::AtOnce => due,
    })
}

/// Returns the first time after `since` that the expression matches.
pub(crate) fn next_of_cron(expression: &str, zone: &TimeZone, since: i64) -> Option<i64> {
    let since = Timestamp::from_millisecond(since).ok()?.to_zoned(zone.clone());
    let next = parse(expression).ok()?.find_next_occurrence(&since, false).ok()?;
    Some(next.timestamp().as_millisecond())
}

/// Returns the first time after `since` that a cron expression matches in a time zone, in milliseconds since 1970. Returns
/// `None` for an invalid expression, and if it never matches. An unknown time zone is UTC.
pub fn next_cron_time(expression: &str, zone: &str, since: i64) -> Option<i64> {
    next_of_cron(expression, &time_zone(zone), since)
}

/// Checks that this is a cron expression that matches some time. Five fields: minute, hour, day of month, month, day of
/// week.
///
/// # Errors
/// The error is a sentence for the client.
pub fn check_cron(expression: &str) -> Result<(), String> {
    /// Any day that is not near the edge of the calendar.
    const SOME_DAY: Timestamp = Timestamp::constant(1_700_000_000, 0);
    let cron = parse(expression)?;
    let start = SOME_DAY.to_zoned(TimeZone::UTC);
    match cron.find_next_occurrence(&start, false) {
        Ok(_) => Ok(()),
        Err(_) => Err("The cron expression never matches.".to_owned()),
    }
}

fn parse(expression: &str) -> Result<Cron, String> {
    /// Real expressions are much shorter; longer input is rejected without parsing.
    const BYTES_MAX: usize = 256;
    let wrong =
        || "A cron expression has five fields: minute, hour, day of month, month, day of week.".to_owned();
    // The library also accepts names such as `@hourly`, and six fields; the interface promises exactly five.
    if expression.len() > BYTES_MAX || expression.split_ascii_whitespace().count() != 5 {
        return Err(wrong());
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    parser.parse(expression).map_err(|error| format!("Invalid cron expression: {error}."))
}

/// Checks that the IANA database has a time zone with this name, such as `Europe/Berlin`.
///
/// # Errors
/// The name is unknown; the error is a sentence for the client.
pub fn check_time_zone(name: &str) -> Result<(), String> {
    TimeZone::get(name).map(|_| ()).map_err(|_| "Unknown time zone.".to_owned())
}

/// Returns the time zone of schedules; UTC for an unknown name.
pub(crate) fn time_zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap_or(TimeZone::UTC)
}

/// Returns a delay that is stable for an id and different for neighbouring ids.
fn spread(id: u32) -> i64 {
    // Multiples of the golden ratio are spread evenly for any number of records.
    let mixed = u64::from(id).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    i64::try_from(mixed).map_or(0, |it| it % SPREAD_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    fn text(at: Option<i64>) -> String {
        at.map_or("never".to_owned(), |it| Timestamp::from_millisecond(it).unwrap().to_string())
    }

    /// Checks the next occurrence after a time.
    #[track_caller]
    fn check(cron: &str, zone: &str, since: &str, due: &str) {
        let zone = TimeZone::get(zone).unwrap();
        assert_eq!(text(next_of_cron(cron, &zone, ms(since))), due, "{cron} after {since}");
    }

    #[test]
    fn a_cron_expression_is_read_in_its_time_zone() {
        check("0 4 * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T04:00:00Z");
        check("0 4 * * *", "UTC", "2026-01-01T04:00:00Z", "2026-01-02T04:00:00Z");
        check("0 4 * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", "2026-01-01T03:00:00Z");
        check("0 4 * * *", "Europe/Berlin", "2026-07-01T00:00:00Z", "2026-07-01T02:00:00Z");
        check("0 4 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", "2026-01-01T22:30:00Z");
        check("*/15 * * * *", "UTC", "2026-01-01T00:07:00Z", "2026-01-01T00:15:00Z");
        check("30 3 * * MON", "UTC", "2026-01-01T00:00:00Z", "2026-01-05T03:30:00Z");
        check("30 3 * * 7", "UTC", "2026-01-01T00:00:00Z", "2026-01-04T03:30:00Z");
        check("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z");
    }

    #[test]
    fn a_time_skipped_by_daylight_saving_is_due_right_after_the_gap() {
        // 02:00 becomes 03:00 in Berlin.
        check("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z");
        check("30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z");
        check("0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z");
    }

    #[test]
    fn a_time_repeated_by_daylight_saving_is_due_once() {
        // 03:00 becomes 02:00 in Berlin.
        check("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z");
        check("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z");
        // An hourly schedule is due in both hours.
        check("0 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z");
    }

    #[test]
    fn an_invalid_cron_expression_is_refused_with_a_sentence() {
        for good in ["* * * * *", "0 4 * * *", "*/15 0-6 1,15 * MON-FRI", "0 0 L * *", "0 0 29 2 *"] {
            assert_eq!(check_cron(good), Ok(()), "{good}");
        }
        let long = "0,".repeat(1000) + "0 * * * *";
        for bad in [
            "",
            "hello",
            "* * * *",
            "* * * * * *",
            "* * * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "@hourly",
            "*/0 * * * *",
            "5-1 * * * *",
            "a b c d e",
            "0 0 30 2 *",
            "é * * * *",
            &long,
        ] {
            let refused = check_cron(bad);
            assert!(refused.as_ref().is_err_and(|it| it.ends_with('.')), "{bad}: {refused:?}");
        }
    }

    #[test]
    fn an_unknown_time_zone_is_refused() {
        assert_eq!(check_time_zone("Europe/Berlin"), Ok(()));
        assert_eq!(check_time_zone("UTC"), Ok(()));
        assert!(check_time_zone("Europe/Atlantis").is_err());
        assert_eq!(time_zone("Europe/Atlantis"), TimeZone::UTC);
    }

    fn hours(interval_hours: u32) -> RefreshSchedule {
        RefreshSchedule { interval_hours, cron: String::new() }
    }

    fn cron(expression: &str) -> RefreshSchedule {
        RefreshSchedule { interval_hours: 24, cron: expression.to_owned() }
    }

    #[test]
    fn hours_count_from_the_last_attempt_and_a_cron_expression_takes_precedence() {
        let updated_at = ms("2026-01-01T00:00:00Z");
        let missed = Missed::Spread { from: updated_at };
        let known = |tried: Option<&str>| Known { id: 7, tried_at: tried.map(ms), updated_at, missed };
        let due = |schedule: RefreshSchedule, tried: Option<&str>| {
            text(next_due(&schedule, &TimeZone::UTC, &known(tried)))
        };
        assert_eq!(due(hours(0), None), "never");
        assert_eq!(due(hours(6), None), "2026-01-01T00:00:00Z", "a first refresh is due at once");
        assert_eq!(due(hours(6), Some("2026-01-01T10:00:00Z")), "2026-01-01T16:00:00Z");
        assert_eq!(due(cron("0 4 * * *"), Some("2026-01-01T10:00:00Z")), "2026-01-02T04:00:00Z");
        assert_eq!(due(cron("0 4 * * *"), None), "2026-01-01T04:00:00Z");
        assert_eq!(due(cron("nonsense"), None), "never");
        assert_eq!(due(cron("0 0 30 2 *"), None), "never");
        let far = next_due(&hours(u32::MAX), &TimeZone::UTC, &known(Some("2026-01-01T10:00:00Z")));
        assert!(
            far.is_some_and(|it| it > updated_at),
            "a number of hours beyond the calendar does not overflow"
        );
    }

    #[test]
    fn a_new_cron_expression_is_not_due_for_a_time_before_it_was_set() {
        let known = Known {
            id: 7,
            tried_at: Some(ms("2026-01-01T12:00:00Z")),
            updated_at: ms("2026-01-02T10:00:00Z"),
            missed: Missed::AtOnce,
        };
        assert_eq!(text(next_due(&cron("0 4 * * *"), &TimeZone::UTC, &known)), "2026-01-03T04:00:00Z");
    }

    #[test]
    fn overdue_refreshes_run_once_after_a_restart_and_spread_out() {
        let started_at = ms("2026-01-10T00:00:00Z");
        let due = |id: u32, schedule: &RefreshSchedule, tried_at: i64| {
            let missed = Missed::Spread { from: started_at };
            let known = Known { id, tried_at: Some(tried_at), updated_at: 0, missed };
            next_due(schedule, &TimeZone::UTC, &known).unwrap()
        };
        for schedule in [hours(24), cron("0 4 * * *")] {
            let days_ago = ms("2026-01-01T00:00:00Z");
            let times: Vec<_> = (2..52).map(|it| due(it, &schedule, days_ago)).collect();
            assert!(times.iter().all(|it| (0..SPREAD_MS).contains(&(it - started_at))), "{times:?}");
            let mut seconds: Vec<_> = times.iter().map(|it| it / 1000).collect();
            seconds.sort_unstable();
            seconds.dedup();
            assert!(seconds.len() > 40, "{seconds:?}");
            // After the overdue refresh, the next one is a day later and not another missed one.
            assert!(due(2, &schedule, times[0]) > started_at + 3 * HOUR_MS);
        }
    }

    #[test]
    fn a_node_that_takes_over_begins_at_once_with_what_is_due() {
        let tried = ms("2026-01-10T00:00:00Z");
        for id in 2..52 {
            let known = Known { id, tried_at: Some(tried), updated_at: 0, missed: Missed::AtOnce };
            let due = next_due(&hours(24), &TimeZone::UTC, &known).unwrap();
            assert_eq!(due, tried + 24 * HOUR_MS, "its planned time, however long ago that is");
        }
    }
}
