//! Generated guides as a whole.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

fn guide(properties: Value) -> GeneratedGuide {
    GeneratedGuide::from_properties(properties.as_object().unwrap()).unwrap()
}

fn unix(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_second()
}

/// Returns start, stop and title of the programmes of a window.
fn shown(guide: &GeneratedGuide, name: &str, now: &str, window: (&str, &str)) -> Vec<String> {
    let time = |at| Timestamp::from_second(at).unwrap().strftime("%d %H:%M").to_string();
    let found = programmes(guide, name, unix(now), unix(window.0), unix(window.1));
    found.iter().map(|it| format!("{} - {}: {}", time(it.start), time(it.stop), it.title())).collect()
}

fn nhl() -> GeneratedGuide {
    guide(json!({
        "title_pattern": r"(?<league>\w+) \d+: (?P<team1>.+?) vs (?P<team2>.+?) @",
        "time_pattern": r"@ (?<hour>\d{1,2}):(?<minute>\d{2}) ?(?<ampm>[AP]M)",
        "date_pattern": r"(?<month>[A-Z][a-z]{2}) (?<day>\d{1,2})",
        "title_template": "{team1} at {team2}",
        "description_template": "{league}: starts at {starttime} on {date}",
        "upcoming_title_template": "Next at {starttime24}: {team1}",
        "ended_title_template": "Ended at {endtime}: {team1}",
        "fallback_title_template": "No event",
        "fallback_description_template": "{channel_name} is off",
        "program_duration": "120",
        "timezone": "America/New_York",
        "output_timezone": "America/Chicago",
        "categories": "Sports, Hockey,",
        "include_date": true,
        "include_live": true,
        "include_new": true,
        "channel_logo_url": "https://img.example/{team1_normalize}.png",
        "program_poster_url": "https://img.example/{team1}/poster.png",
    }))
}

const NAME: &str = "NHL 03: St. Louis vs Boston @ 8:30 PM Jan 15";
const WINDOW: (&str, &str) = ("2026-01-15T23:00:00Z", "2026-01-16T07:00:00Z");
const NOW: &str = "2026-01-15T12:00:00Z";

#[test]
fn an_event_is_preceded_by_upcoming_and_followed_by_ended_programmes() {
    assert_eq!(
        shown(&nhl(), NAME, NOW, WINDOW),
        [
            "15 22:00 - 16 00:00: Next at 19:30: St. Louis",
            "16 00:00 - 16 01:30: Next at 19:30: St. Louis",
            "16 01:30 - 16 03:30: St. Louis at Boston",
            "16 03:30 - 16 04:00: Ended at 9:30 PM: St. Louis",
            "16 04:00 - 16 06:00: Ended at 9:30 PM: St. Louis",
            "16 06:00 - 16 08:00: Ended at 9:30 PM: St. Louis",
        ]
    );
}

#[test]
fn the_event_has_categories_date_tags_and_poster() {
    let found = programmes(&nhl(), NAME, unix(NOW), unix(WINDOW.0), unix(WINDOW.1));
    let event = &found[2];
    assert_eq!(event.description(), Some("NHL: starts at 7:30 PM on 2026-01-15"));
    assert_eq!(event.categories.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(), ["Sports", "Hockey"]);
    assert_eq!(event.date.as_deref(), Some("20260115"));
    assert!(event.is_new && event.is_live);
    assert_eq!(event.icons[0].src, "https://img.example/St%2E%20Louis/poster.png");
    let before = &found[0];
    assert!(!before.is_new && !before.is_live && before.date.is_none() && before.categories.is_empty());
    assert_eq!(nhl().logo(NAME, unix(NOW)).as_deref(), Some("https://img.example/stlouis.png"));
}

#[test]
fn a_name_that_the_title_pattern_does_not_match_gets_the_fallback() {
    let found = programmes(&nhl(), "NHL 04", unix(NOW), unix(WINDOW.0), unix(WINDOW.1));
    assert_eq!(found.len(), 5);
    assert!(found.iter().all(|it| it.title() == "No event" && it.description() == Some("NHL 04 is off")));
    assert_eq!(nhl().logo("NHL 04", unix(NOW)), None);
}

#[test]
fn programmes_are_the_same_in_every_window() {
    let nhl = nhl();
    let all = programmes(&nhl, NAME, unix(NOW), unix("2026-01-15T00:00:00Z"), unix("2026-01-18T00:00:00Z"));
    for minute in (0..4_000).step_by(7) {
        let from = unix("2026-01-15T00:00:00Z") + minute * 60;
        let until = from + 3_600;
        let expected: Vec<_> = all.iter().filter(|it| it.stop > from && it.start < until).cloned().collect();
        let expected: Vec<_> =
            expected.into_iter().filter(|_| until <= unix("2026-01-18T00:00:00Z")).collect();
        let found = programmes(&nhl, NAME, unix(NOW), from, until);
        assert!(expected.is_empty() || found == expected, "{minute}");
        assert!(found.windows(2).all(|pair| pair[0].stop == pair[1].start && pair[0].start < pair[0].stop));
        assert!(found[0].start <= from && found.last().unwrap().stop >= until, "a gap at {minute}");
    }
}

#[test]
fn a_name_without_a_time_has_its_title_all_day() {
    let guide = guide(json!({
        "title_pattern": r"(?<team1>\w+) One",
        "title_template": "{team1} event",
        "description_template": "All about {team1}",
        "program_duration": 700,
        "include_live": true,
    }));
    let window = ("2026-01-15T00:00:00Z", "2026-01-16T01:00:00Z");
    assert_eq!(
        shown(&guide, "Sport One", NOW, window),
        [
            "15 00:00 - 15 11:40: Sport event",
            "15 11:40 - 15 23:20: Sport event",
            "15 23:20 - 16 00:00: Sport event",
            "16 00:00 - 16 11:40: Sport event",
        ]
    );
}

#[test]
fn a_date_without_a_time_is_the_whole_day_of_the_time_zone() {
    let guide = guide(json!({
        "date_pattern": r"(?<day>\d+)\.(?<month>\d+)\.(?<year>\d+)",
        "upcoming_title_template": "Soon", "ended_title_template": "Over",
        "program_duration": 1440, "timezone": "Europe/Berlin",
    }));
    let window = ("2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z");
    // The day of the change to daylight saving has 23 hours.
    assert_eq!(
        shown(&guide, "Gala 29.03.26", NOW, window),
        [
            "28 00:00 - 28 23:00: Soon",
            "28 23:00 - 29 22:00: Gala 29.03.26",
            "29 22:00 - 30 00:00: Over",
            "30 00:00 - 31 00:00: Over",
        ]
    );
}

#[test]
fn without_properties_every_programme_is_the_name() {
    let found = shown(&guide(json!({})), "News", NOW, WINDOW);
    assert_eq!(found[0], "15 21:00 - 16 00:00: News");
    let blocks = name_programmes("News", 240, unix(WINDOW.0), unix(WINDOW.1));
    assert_eq!(blocks.len(), 3);
    assert!(blocks.iter().all(|it| it.title() == "News" && it.stop - it.start == 4 * 3_600));
}

#[test]
fn any_window_gives_a_bounded_answer() {
    for (from, until) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MIN), (0, 0), (i64::MAX, i64::MAX)] {
        assert!(programmes(&nhl(), NAME, i64::MAX, from, until).len() <= PROGRAMMES_MAX);
        assert!(programmes(&nhl(), "News", i64::MIN, from, until).len() <= PROGRAMMES_MAX);
    }
    assert!(programmes(&nhl(), NAME, unix(NOW), 10, 10).is_empty());
    let long = "ä".repeat(100_000);
    assert!(programmes(&nhl(), &long, unix(NOW), 0, 3_600)[0].description().unwrap().len() < 5_000);
}

#[test]
fn invalid_properties_are_refused_by_field() {
    let refused = GeneratedGuide::from_properties(
        json!({
            "title_pattern": "(?=vs)x",
            "time_pattern": "(",
            "date_pattern": 7,
            "title_template": "a".repeat(2_000),
            "program_duration": 2,
            "timezone": "Europe/Atlantis",
            "categories": [1],
            "include_live": "yes",
            "channel_logo_url": "ftp://h/x",
            "name_source": "radio",
            "stream_index": -1,
            "managed_by": { "a": "client" },
        })
        .as_object()
        .unwrap(),
    )
    .unwrap_err();
    let fields: Vec<_> = refused.iter().map(|it| it.field).collect();
    assert_eq!(
        fields,
        [
            "timezone",
            "title_pattern",
            "time_pattern",
            "date_pattern",
            "title_template",
            "program_duration",
            "categories",
            "include_live",
            "channel_logo_url",
            "stream_index",
            "name_source",
        ]
    );
    assert!(refused[1].message.starts_with("Look-ahead and look-behind are not supported"), "{refused:?}");
    assert!(!refused[2].message.contains('\n') && refused[2].message.ends_with('.'), "{refused:?}");
}

#[test]
fn absent_null_and_empty_properties_are_the_same() {
    for value in [json!(null), json!(""), json!(" ")] {
        let names =
            ["title_pattern", "timezone", "program_duration", "categories", "name_source", "stream_index"];
        let properties = names.iter().map(|it| ((*it).to_owned(), value.clone())).collect();
        let guide = GeneratedGuide::from_properties(&properties).unwrap();
        assert_eq!(guide.name_source(), NameSource::Channel);
        assert_eq!(shown(&guide, "News", NOW, WINDOW).len(), 4);
    }
    let stream = guide(json!({ "name_source": "stream", "stream_index": 2 }));
    assert_eq!(stream.name_source(), NameSource::Stream { index: 2 });
}

#[test]
fn the_key_of_the_guide_channel_follows_from_the_name_of_the_source() {
    for (name, key) in [("Dummy Sports", "dummy_dummy_sports"), (" PPV/Ägypten ", "dummy_ppv_ägypten")] {
        assert_eq!(guide_channel_key(name), key);
    }
}
