//! The further conditions of series rules over the interface.

use domain::channel::Channel;
use domain::group::Group;
use domain::guide::programme::{LocalText, Programme};
use domain::ids::GroupId;
use serde_json::{Value, json};
use services::recording_rules::RuleScope;

use super::tests::{RECORDINGS, RECURRING, SERIES, assert_field, episode, guide, recordings, stage};
use crate::guide_testing::{HOUR, now, programme};
use crate::testing::Rest;
use crate::title_testing::put_titles;

async fn preview(rest: &Rest, body: Value) -> Vec<String> {
    let found = rest.admin("POST", &format!("{SERIES}preview/"), body).await;
    assert_eq!(found.status, 200, "{}", found.text);
    let show = |it: &Value| format!("{} {}", it["channel_id"], it["mark"].as_str().unwrap());
    found.body["matches"].as_array().unwrap().iter().map(show).collect()
}

#[tokio::test]
async fn all_conditions_are_stored_and_shown() {
    let rest = stage().await;
    rest.put([Group::new(GroupId(7), "News")]).await;
    let body = json!({
        "title": "Show", "mode": "unseen", "channel_ids": [2, 1, 2], "channel_group_ids": [7],
        "days_of_week": [6, 0], "start_after": "20:15", "start_before": "01:00:30",
        "time_zone": "Europe/Berlin", "season_from": 3, "min_minutes": 20, "max_minutes": 90,
        "quality": "hd", "skip_library": true, "padding_before": -60, "padding_after": 300,
    });
    let made = rest.admin("POST", SERIES, body).await;
    assert_eq!(made.status, 200, "{}", made.text);
    let rule = &made.body["rules"][0];
    for (field, expected) in [
        ("mode", json!("unseen")),
        ("channel_ids", json!([1, 2])),
        ("channel_group_ids", json!([7])),
        ("days_of_week", json!([0, 6])),
        ("start_after", json!("20:15:00")),
        ("start_before", json!("01:00:30")),
        ("time_zone", json!("Europe/Berlin")),
        ("season_from", json!(3)),
        ("min_minutes", json!(20)),
        ("max_minutes", json!(90)),
        ("quality", json!("hd")),
        ("skip_library", json!(true)),
        ("padding_before", json!(-60)),
    ] {
        assert_eq!(rule[field], expected, "{field}");
    }
    // What is left out has its default, and a whole record can be sent back.
    let plain = rest.admin("POST", SERIES, json!({ "title": "Other" })).await;
    let plain =
        plain.body["rules"].as_array().unwrap().iter().find(|it| it["title"] == "Other").unwrap().clone();
    for field in ["start_after", "start_before", "time_zone", "season_from", "min_minutes", "max_minutes"] {
        assert_eq!(plain[field], Value::Null, "{field}");
    }
    assert_eq!((&plain["channel_ids"], &plain["quality"]), (&json!([]), &json!("any")));
    let again = rest.admin("POST", SERIES, plain.clone()).await;
    assert_eq!(again.status, 200, "{}", again.text);
}

#[tokio::test]
async fn wrong_conditions_are_refused_by_their_fields() {
    let rest = stage().await;
    for (field, value) in [
        ("channel_ids", json!([99])),
        ("channel_group_ids", json!([99])),
        ("days_of_week", json!([7])),
        ("start_after", json!("8pm")),
        ("start_before", json!("25:00")),
        ("time_zone", json!("Europe/Nowhere")),
        ("season_from", json!(-1)),
        ("min_minutes", json!(2_881)),
        ("quality", json!("8k")),
        ("mode", json!("newest")),
        ("padding_before", json!(-86_401)),
    ] {
        let mut body = json!({ "title": "Show" });
        body[field] = value;
        assert_field(&rest.admin("POST", SERIES, body.clone()).await, field);
        assert_field(&rest.admin("POST", &format!("{SERIES}preview/"), body).await, field);
    }
    let body = json!({ "title": "Show", "min_minutes": 60, "max_minutes": 30 });
    assert_field(&rest.admin("POST", SERIES, body).await, "max_minutes");
    let body = json!({ "title": "Show", "start_after": "20:00", "start_before": "20:00" });
    assert_field(&rest.admin("POST", SERIES, body).await, "start_before");
    let weekly = json!({
        "channel": 1, "days_of_week": [0], "start_time": "20:00", "end_time": "21:00", "time_zone": "Mars/Base",
    });
    assert_field(&rest.admin("POST", RECURRING, weekly).await, "time_zone");
    let of_programmes = json!({ "title": "Show", "time_zone": "UTC" });
    let made = rest.admin("POST", RECURRING, of_programmes).await;
    let edit = json!({ "time_zone": "UTC" });
    let path = format!("{RECURRING}{}/", made.body["id"]);
    assert_field(&rest.admin("PATCH", &path, edit).await, "time_zone");
    assert_eq!(rest.admin("GET", SERIES, Value::Null).await.body, json!({ "rules": [] }));
}

/// A rule of a group records on the channels that the group has at the time, in the preview and in the plan.
#[tokio::test]
async fn a_rule_of_a_group_follows_the_channels_of_the_group() {
    let (rest, now) = (stage().await, now());
    rest.put([Group::new(GroupId(7), "News")]).await;
    guide(&rest, vec![episode(now, 2, "Show", 1)], vec![episode(now, 4, "Show", 2)], vec![]).await;
    let join = async |id: u32, group: Option<u32>| {
        let channel = rest.models.channels.load().get(id).cloned().unwrap();
        rest.put([Channel { group: group.map(GroupId), ..Channel::clone(&channel) }]).await;
    };
    join(1, Some(7)).await;
    let body = json!({ "title": "Show", "channel_group_ids": [7] });
    assert_eq!(preview(&rest, body.clone()).await, ["1 scheduled"]);
    assert_eq!(rest.admin("POST", SERIES, body.clone()).await.status, 200);
    assert_eq!(recordings(&rest, now).await, ["1@2 scheduled"]);
    join(2, Some(7)).await;
    assert_eq!(preview(&rest, body.clone()).await, ["1 scheduled", "2 scheduled"]);
    rest.context.recordings.recording_rules.evaluate(RuleScope::All).await.unwrap();
    assert_eq!(recordings(&rest, now).await, ["1@2 scheduled", "2@4 scheduled"]);
    join(1, None).await;
    assert_eq!(preview(&rest, body).await, ["2 scheduled"]);
}

#[tokio::test]
async fn the_quality_is_that_of_the_name_of_a_channel() {
    let (rest, now) = (stage().await, now());
    let channel = rest.models.channels.load().get(2).cloned().unwrap();
    rest.put([Channel { name: "Two HD".to_owned(), ..Channel::clone(&channel) }]).await;
    guide(&rest, vec![episode(now, 2, "Show", 1)], vec![episode(now, 9, "Show", 1)], vec![]).await;
    let body = |quality: &str| json!({ "title": "Show", "quality": quality });
    assert_eq!(preview(&rest, body("any")).await, ["1 scheduled", "2 alternative"]);
    assert_eq!(preview(&rest, body("hd")).await, ["1 alternative", "2 scheduled"]);
    assert_eq!(rest.admin("POST", SERIES, body("hd")).await.status, 200);
    assert_eq!(recordings(&rest, now).await, ["2@9 scheduled"]);
}

#[tokio::test]
async fn hours_are_those_of_the_zone_of_the_settings_unless_the_rule_has_one() {
    let (rest, now) = (stage().await, now());
    let hour = |from: i64| {
        let at = jiff::Timestamp::from_second(now + from * HOUR).unwrap();
        let start = at.to_zoned(jiff::tz::TimeZone::UTC);
        let clock = |hour: i8| format!("{:02}:00", hour % 24);
        (clock(start.hour()), clock(start.hour() + 1))
    };
    guide(&rest, vec![episode(now, 2, "Show", 1), episode(now, 5, "Show", 2)], vec![], vec![]).await;
    let (from, until) = hour(2);
    let body = |zone: Value| json!({ "title": "Show", "start_after": from, "start_before": until, "time_zone": zone });
    assert_eq!(preview(&rest, body(Value::Null)).await, ["1 scheduled"]);
    // Three hours behind: the later one begins at that time there.
    assert_eq!(preview(&rest, body(json!("Etc/GMT+3"))).await, ["1 scheduled"]);
    assert_eq!(preview(&rest, body(json!("Etc/GMT+2"))).await, [] as [&str; 0]);
}

#[tokio::test]
async fn a_programme_that_two_rules_want_is_one_recording_that_names_both_and_outlives_one() {
    let (rest, now) = (stage().await, now());
    guide(&rest, vec![episode(now, 2, "Show", 1)], vec![], vec![]).await;
    let make = async |body: Value| {
        let made = rest.admin("POST", SERIES, body).await;
        assert_eq!(made.status, 200, "{}", made.text);
        made.body["rules"].as_array().unwrap().iter().map(|it| it["id"].as_u64().unwrap()).max().unwrap()
    };
    let first = make(json!({ "title": "Show" })).await;
    let second = make(json!({ "title": "sho", "title_mode": "contains", "priority": 80 })).await;
    let read = async || {
        let list = rest.admin("GET", RECORDINGS, Value::Null).await.body;
        assert_eq!(list["count"], 1, "{list}");
        list["results"][0].clone()
    };
    rest.context.recordings.recording_rules.evaluate(RuleScope::All).await.unwrap();
    let made = read().await;
    assert_eq!((&made["rule_id"], &made["rule_ids"]), (&json!(first), &json!([first, second])));
    assert_eq!(made["priority"], 80);
    // The first rule goes, and the recording stays for the second one.
    let deleted = rest.admin("DELETE", &format!("{SERIES}?title=Show"), Value::Null).await;
    assert_eq!((deleted.status, &deleted.body["removed"]), (200, &json!(0)), "{}", deleted.text);
    let left = read().await;
    assert_eq!((&left["id"], &left["rule_ids"]), (&made["id"], &json!([second])));
    // Deleted by a user, it stays away for both.
    assert_eq!(make(json!({ "title": "Show" })).await, second + 1);
    rest.context.recordings.recording_rules.evaluate(RuleScope::All).await.unwrap();
    assert_eq!(read().await["rule_ids"], json!([second, second + 1]));
    let path = format!("{RECORDINGS}{}/", made["id"]);
    assert_eq!(rest.admin("DELETE", &path, Value::Null).await.status, 204);
    rest.context.recordings.recording_rules.evaluate(RuleScope::All).await.unwrap();
    assert_eq!(recordings(&rest, now).await, [] as [&str; 0]);
}

/// The library has the film Metropolis of 1927, and the first two episodes of Andor.
#[tokio::test]
async fn only_certain_films_and_episodes_of_the_library_count() {
    let (rest, now) = (stage().await, now());
    put_titles(&rest).await;
    rest.models.vod_index.at(rest.models.store.version()).await.unwrap();
    let film = |from: i64, title: &str, year: Option<u32>| Programme {
        categories: vec![LocalText::new("Movie")],
        date: year.map(|it| it.to_string()),
        ..programme(now, from, from + 1, title)
    };
    let mark = async |shown: Programme| {
        let title = shown.title().to_owned();
        guide(&rest, vec![shown], vec![], vec![]).await;
        let body = json!({ "title": title, "skip_library": true });
        let found = rest.admin("POST", &format!("{SERIES}preview/"), body).await;
        found.body["matches"][0]["reason"].clone()
    };
    for (shown, is_known) in [
        (film(2, "Metropolis", Some(1927)), true),
        (film(2, "METROPOLIS", Some(1926)), true),
        (film(2, "Metropolis", Some(2001)), false),
        (film(2, "Metropolis", None), false),
        (film(2, "Metropolis II", Some(1927)), false),
        (episode(now, 2, "Andor", 1), true),
        (episode(now, 2, "Andor", 3), false),
        (episode(now, 2, "Show", 1), false),
        (programme(now, 2, 3, "Andor"), false),
    ] {
        let expected = if is_known { json!("in_library") } else { Value::Null };
        assert_eq!(mark(shown.clone()).await, expected, "{shown:?}");
    }
}
