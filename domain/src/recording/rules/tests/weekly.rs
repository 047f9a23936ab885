//! Weekly rules.

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;

fn weekly(days: &[u8], start: u32, end: u32) -> WeeklyTimes {
    WeeklyTimes { days: days.to_vec(), start, end, from: None, until: None, zone: None }
}

/// Holds T-dvr.5 and T-time.2.
#[test]
fn weekly_times_are_those_of_the_wall_clock_on_both_days_of_a_clock_change() {
    let check = |zone: &str, day: &str, start: u32, end: u32, expected: (&str, &str)| {
        let zone = TimeZone::get(zone).unwrap();
        let day: CivilDay = day.parse().unwrap();
        let midnight = zone.to_timestamp(day.0.to_datetime(jiff::civil::Time::midnight())).unwrap();
        let times =
            WeeklyTimes { from: Some(day), until: Some(day), ..weekly(&[0, 1, 2, 3, 4, 5, 6], start, end) };
        let from = midnight.as_millisecond() - 3 * 86_400_000;
        let found = times.occurrences(&zone, from, from + 7 * 86_400_000);
        let show = |ms: i64| Timestamp::from_millisecond(ms).unwrap().to_string();
        let found: Vec<_> = found.iter().map(|it| (show(it.start), show(it.end))).collect();
        assert_eq!(found, [(expected.0.to_owned(), expected.1.to_owned())]);
    };
    let minutes = |hour: u32, minute: u32| hour * 3600 + minute * 60;
    let berlin = "Europe/Berlin";
    // 02:30 does not exist: it becomes 03:30 in summer time.
    check(
        berlin,
        "2027-03-28",
        minutes(2, 30),
        minutes(4, 0),
        ("2027-03-28T01:30:00Z", "2027-03-28T02:00:00Z"),
    );
    check(
        berlin,
        "2027-03-28",
        minutes(1, 0),
        minutes(3, 0),
        ("2027-03-28T00:00:00Z", "2027-03-28T01:00:00Z"),
    );
    // 02:30 exists twice: the first one.
    check(
        berlin,
        "2027-10-31",
        minutes(2, 30),
        minutes(3, 30),
        ("2027-10-31T00:30:00Z", "2027-10-31T02:30:00Z"),
    );
    check(
        berlin,
        "2027-10-30",
        minutes(23, 0),
        minutes(1, 0),
        ("2027-10-30T21:00:00Z", "2027-10-30T23:00:00Z"),
    );
    check(
        "Pacific/Kiritimati",
        "2027-01-01",
        0,
        minutes(1, 0),
        ("2026-12-31T10:00:00Z", "2026-12-31T11:00:00Z"),
    );
    check(
        "Pacific/Pago_Pago",
        "2027-01-01",
        minutes(23, 0),
        minutes(1, 0),
        ("2027-01-02T10:00:00Z", "2027-01-02T12:00:00Z"),
    );
}

#[test]
fn a_weekly_rule_records_its_days_once() {
    let times = weekly(&[0, 2], 18 * 3600, 19 * 3600);
    let weekly = |times| RecordingRule {
        selection: RuleSelection::Weekly(times),
        channel: Some(ChannelId(7)),
        name: "Evening".to_owned(),
        ..rule(exact("x"))
    };
    let mut stage = Stage::new([weekly(times.clone())]);
    let expected = ["7@6-7", "7@54-55", "7@174-175", "7@222-223"];
    assert_eq!(stage.scheduled(), expected);
    assert_eq!(stage.recordings[0].title(), "Evening");
    assert_eq!(stage.evaluate(), 0);
    // After a move to another zone the wall clock counts.
    stage.zone = TimeZone::get("Asia/Tokyo").unwrap();
    stage.now -= 6 * HOUR;
    let moved = stage.scheduled();
    assert_eq!((moved.len(), &*moved[0]), (4, "7@-3--2"), "{moved:?}");
    let until = "2026-11-24".parse().ok();
    let mut short = Stage::new([weekly(WeeklyTimes { until, ..times })]);
    assert_eq!(short.scheduled(), ["7@6-7"]);
}

#[test]
fn days_survive_storage() {
    let times = WeeklyTimes { from: "2026-02-28".parse().ok(), ..weekly(&[1], 0, 1) };
    let text = serde_json::to_string(&times).unwrap();
    assert!(text.contains("\"2026-02-28\""), "{text}");
    assert_eq!(serde_json::from_str::<WeeklyTimes>(&text).unwrap(), times);
    assert!("2026-02-30".parse::<CivilDay>().is_err());
}

proptest! {
    #[test]
    fn every_day_of_a_week_has_its_recording_in_every_zone(zone in prop::sample::select(vec![
        "Pacific/Pago_Pago", "America/St_Johns", "America/New_York", "UTC", "Europe/London", "Africa/Casablanca",
        "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Kiritimati", "Europe/Dublin",
    ]), from in 1_700_000_000_000..1_900_000_000_000i64, start in 0..86_400u32, length in 3 * 3_600..86_400u32) {
        let zone = TimeZone::get(zone).unwrap();
        let times = weekly(&[0, 1, 2, 3, 4, 5, 6], start, (start + length) % 86_400);
        let found = times.occurrences(&zone, from, from + 14 * 86_400_000);
        prop_assert!((13..=16).contains(&found.len()), "{}", found.len());
        for pair in found.windows(2) {
            prop_assert_eq!(pair[0].day.0.tomorrow().unwrap(), pair[1].day.0);
            prop_assert!(pair[0].start < pair[1].start);
        }
    }
}
