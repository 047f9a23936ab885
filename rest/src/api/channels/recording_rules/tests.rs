use std::time::Duration;

use domain::channel::Channel;
use domain::guide::programme::{EpisodeNumber, Programme};
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::{AccountId, ChannelId, GuideChannelId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use domain::time::iso_millis;
use domain::user::UserLevel;
use serde_json::{Value, json};
use services::recording_rules::RuleScope;
use uuid::Uuid;

use crate::guide_testing::{HOUR, guide_source, now, programme, put_guide};
use crate::testing::{Answer, Rest, STANDARD};

pub(super) const SERIES: &str = "/api/channels/series-rules/";
pub(super) const RECURRING: &str = "/api/channels/recurring-rules/";
pub(super) const RECORDINGS: &str = "/api/channels/recordings/";

/// Channels 1 and 2 with the guide channels `a/b` and `two`; channel 4, which only admins see, with `hidden`.
pub(super) async fn stage() -> Rest {
    let rest = Rest::start().await;
    let channel = |id: u32, tvg_id: &str| {
        let channel = Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("channel {id}"), 0);
        Channel { tvg_id: Some(tvg_id.to_owned()), ..channel }
    };
    let hidden = Channel { user_level: UserLevel::Admin, ..channel(4, "hidden") };
    rest.put([channel(1, "a/b"), channel(2, "two"), hidden]).await;
    rest
}

pub(super) fn episode(now: i64, from: i64, title: &str, number: u32) -> Programme {
    let value = format!("0.{}.", number - 1);
    let number = EpisodeNumber { system: Some("xmltv_ns".to_owned()), value };
    Programme { episode_numbers: vec![number], ..programme(now, from, from + 1, title) }
}

/// Writes the next guide: programmes of the guide channels `a/b`, `two` and `hidden`.
pub(super) async fn guide(rest: &Rest, one: Vec<Programme>, two: Vec<Programme>, hidden: Vec<Programme>) {
    let channels = vec![(10, "a/b", one), (20, "two", two), (40, "hidden", hidden)];
    put_guide(rest, guide_source(1, GuideSourceKind::Xmltv), channels).await;
}

/// Returns the recordings as `channel@start status`, with the start in hours from `now`.
pub(super) async fn recordings(rest: &Rest, now: i64) -> Vec<String> {
    let list = rest.admin("GET", RECORDINGS, Value::Null).await.body;
    let show = |it: &Value| {
        let start: jiff::Timestamp = it["start_time"].as_str().unwrap().parse().unwrap();
        let hours = (start.as_second() - now) as f64 / HOUR as f64;
        format!("{}@{hours} {}", it["channel"], it["status"].as_str().unwrap())
    };
    list["results"].as_array().unwrap().iter().map(show).collect()
}

async fn allow(rest: &Rest) {
    let rows = rest.admin("GET", "/api/core/settings/", Value::Null).await.body;
    let row = rows["results"].as_array().unwrap().iter().find(|it| it["key"] == "dvr_settings").unwrap();
    let path = format!("/api/core/settings/{}/", row["id"]);
    let set = rest.admin("PATCH", &path, json!({ "value": { "standard_users_record": true } })).await;
    assert_eq!(set.status, 200, "{}", set.text);
}

pub(super) fn assert_field(answer: &Answer, field: &str) {
    assert_eq!(answer.status, 400, "{}", answer.text);
    let fields: Vec<_> = answer.body.as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields, [field], "{}", answer.text);
}

#[tokio::test]
async fn a_series_rule_records_follows_and_forgets() {
    let (rest, now) = (stage().await, now());
    let filler = || programme(now, -2, 40, "other");
    guide(&rest, vec![episode(now, 2, "Show", 1), episode(now, 9, "Show", 1)], vec![], vec![]).await;
    let made = rest.admin("POST", SERIES, json!({ "tvg_id": "a/b", "title": "show" })).await;
    assert_eq!((made.status, &made.body["success"]), (200, &json!(true)), "{}", made.text);
    assert_eq!(made.body["rules"][0]["title_mode"], "exact");
    assert_eq!(recordings(&rest, now).await, ["1@2 scheduled"]);
    // The programme moves, and a second episode appears.
    guide(&rest, vec![filler(), episode(now, 5, "Show", 1), episode(now, 7, "Show", 2)], vec![], vec![])
        .await;
    let done = rest.admin("POST", &format!("{SERIES}evaluate/"), json!({})).await;
    assert_eq!(
        (&done.body["scheduled"], &done.body["details"][0]["created"]),
        (&json!(1), &json!(1)),
        "{}",
        done.text
    );
    assert_eq!(recordings(&rest, now).await, ["1@5 scheduled", "1@7 scheduled"]);
    // A user deletes one: it stays away.
    let list = rest.admin("GET", RECORDINGS, Value::Null).await.body;
    let first = format!("{RECORDINGS}{}/", list["results"][0]["id"]);
    assert_eq!(list["results"][0]["custom_properties"]["rule"]["type"], "series", "{list}");
    assert_eq!(rest.admin("DELETE", &first, Value::Null).await.status, 204);
    let again = rest.admin("POST", &format!("{SERIES}evaluate/"), json!({ "tvg_id": "A/B" })).await;
    assert_eq!(again.body["scheduled"], 0, "{}", again.text);
    // A broken guide removes nothing, the end of the rule does.
    guide(&rest, vec![], vec![], vec![]).await;
    rest.context.recordings.recording_rules.evaluate(RuleScope::All).await.unwrap();
    assert_eq!(recordings(&rest, now).await, ["1@7 scheduled"]);
    assert_eq!(rest.admin("DELETE", &format!("{SERIES}a%2Fb/"), Value::Null).await.status, 204);
    assert_eq!(recordings(&rest, now).await, [] as [&str; 0]);
    assert_eq!(rest.admin("GET", SERIES, Value::Null).await.body, json!({ "rules": [] }));
    assert_eq!(rest.admin("DELETE", &format!("{SERIES}a%2Fb/"), Value::Null).await.status, 404);
    // With its slashes as they are.
    rest.admin("POST", SERIES, json!({ "tvg_id": "a/b", "title": "show" })).await;
    assert_eq!(rest.admin("DELETE", &format!("{SERIES}a/b/"), Value::Null).await.status, 204);
    assert_eq!(rest.admin("GET", SERIES, Value::Null).await.body, json!({ "rules": [] }));
}

#[tokio::test]
async fn a_recording_of_a_programme_follows_it_without_a_rule() {
    let (rest, now) = (stage().await, now());
    guide(&rest, vec![episode(now, 2, "Show", 1)], vec![], vec![]).await;
    let found = rest.admin("POST", &format!("{SERIES}preview/"), json!({ "title": "Show" })).await;
    let id = &found.body["matches"][0]["id"];
    let body = json!({ "channel_id": 1, "program_id": id });
    let made = rest.admin("POST", RECORDINGS, body.clone()).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let at = |hours: i64| iso_millis((now + hours * HOUR) * 1000);
    let own = json!({ "channel_id": 1, "program_id": id, "start_time": at(1), "end_time": at(4) });
    assert_eq!(rest.admin("POST", RECORDINGS, own).await.status, 201);
    guide(&rest, vec![programme(now, 0, 20, "other"), episode(now, 3, "Show", 1)], vec![], vec![]).await;
    rest.context.recordings.recording_rules.evaluate(RuleScope::All).await.unwrap();
    assert_eq!(recordings(&rest, now).await, ["1@1 scheduled", "1@3 scheduled"], "own times stay");
}

#[tokio::test]
async fn a_preview_shows_what_a_rule_would_record() {
    let (rest, now) = (stage().await, now());
    let two = vec![episode(now, 2, "Show Two", 3), programme(now, 5, 6, "News")];
    guide(&rest, vec![episode(now, -9, "Show", 1), episode(now, 4, "Show", 2)], two, vec![]).await;
    let preview = async |body: Value| rest.admin("POST", &format!("{SERIES}preview/"), body).await;
    let found = preview(json!({ "title": "SHOW", "title_mode": "contains", "limit": 1 })).await;
    assert_eq!(
        (found.status, &found.body["total"], &found.body["limit"]),
        (200, &json!(2), &json!(1)),
        "{}",
        found.text
    );
    let first = &found.body["matches"][0];
    assert_eq!(
        (&first["title"], &first["tvg_id"], &first["episode"]),
        (&json!("Show Two"), &json!("two"), &json!(3))
    );
    assert_eq!(found.body["matches"].as_array().unwrap().len(), 1);
    let unknown = preview(json!({ "tvg_id": "nothing", "title": "Show" })).await;
    assert_eq!((&unknown.body["total"], &unknown.body["epg_found"]), (&json!(0), &json!(false)));
    assert_eq!(recordings(&rest, now).await, [] as [&str; 0]);
}

#[tokio::test]
async fn invalid_fields_of_rules_are_named() {
    let rest = stage().await;
    let series = async |body: Value| rest.admin("POST", SERIES, body).await;
    assert_field(&series(json!({ "tvg_id": "two" })).await, "title");
    assert_field(&series(json!({ "title": "(", "title_mode": "regex" })).await, "title");
    assert_field(&series(json!({ "title": "x", "mode": "zz" })).await, "mode");
    assert_field(&series(json!({ "title": "x", "title_mode": "zz" })).await, "title_mode");
    assert_field(&series(json!({ "title": "x", "channel_id": 99 })).await, "channel");
    assert_field(
        &series(json!({ "title": "x", "description": "y", "description_mode": "exact" })).await,
        "description_mode",
    );
    let weekly = |days: Value, start: &str, end: &str| json!({ "channel": 1, "days_of_week": days, "start_time": start, "end_time": end });
    let recurring = async |body: Value| rest.admin("POST", RECURRING, body).await;
    let empty = recurring(json!({})).await;
    let required = json!(["This field is required."]);
    assert_eq!(empty.body, json!({ "start_time": required, "end_time": required, "channel": required }));
    assert_field(&recurring(json!({ "tvg_id": "two" })).await, "title");
    assert_field(&recurring(weekly(json!([9]), "10:00", "11:00")).await, "days_of_week");
    assert_field(&recurring(weekly(json!([]), "10:00", "11:00")).await, "days_of_week");
    assert_field(&recurring(weekly(json!([1]), "25:00", "11:00")).await, "start_time");
    assert_field(&recurring(weekly(json!([1]), "10:00", "10:00:00")).await, "end_time");
    let dates = json!({ "start_date": "2031-02-30" });
    let mut body = weekly(json!([1]), "10:00", "11:00");
    body.as_object_mut().unwrap().extend(dates.as_object().unwrap().clone());
    assert_field(&recurring(body).await, "start_date");
}

#[tokio::test]
async fn a_weekly_rule_schedules_its_days_and_edits_of_recordings_stay() {
    let rest = stage().await;
    let body = json!({
        "channel": 1, "name": "Evening", "days_of_week": [0, 1, 2, 3, 4, 5, 6], "start_time": "20:00", "end_time": "20:15:00",
    });
    let made = rest.admin("POST", RECURRING, body).await;
    assert_eq!((made.status, &made.body["start_time"]), (201, &json!("20:00:00")), "{}", made.text);
    let list = async || rest.admin("GET", &format!("{RECORDINGS}?status=scheduled"), Value::Null).await.body;
    let first = list().await;
    let n = first["count"].as_u64().unwrap();
    assert!((13..=14).contains(&n), "{n}");
    assert_eq!(
        (&first["results"][0]["title"], &first["results"][0]["priority"]),
        (&json!("Evening"), &json!(50))
    );
    // A user moves the end of one; then the rule begins later.
    let edited = &first["results"][3];
    let path = format!("{RECORDINGS}{}/", edited["id"]);
    assert_eq!(rest.admin("PATCH", &path, json!({ "priority": 99 })).await.status, 200);
    let rule = format!("{RECURRING}{}/", made.body["id"]);
    let changed = rest.admin("PATCH", &rule, json!({ "end_time": "20:30" })).await;
    assert_eq!((changed.status, &changed.body["end_time"]), (200, &json!("20:30:00")), "{}", changed.text);
    let after = list().await;
    assert_eq!(after["count"].as_u64(), Some(n), "no day twice");
    assert_eq!(rest.admin("GET", &path, Value::Null).await.body["priority"], 99);
    assert_field(&rest.admin("PUT", &rule, json!({ "title": "Show" })).await, "title");
    let disabled = rest.admin("PATCH", &rule, json!({ "enabled": false })).await;
    assert_eq!(disabled.status, 200);
    assert_eq!(list().await["count"], 1, "the edited one stays");
    assert_eq!(rest.admin("DELETE", &rule, Value::Null).await.status, 204);
    assert_eq!(list().await["count"], 0);
}

#[tokio::test]
async fn a_recurring_rule_with_a_title_records_new_episodes() {
    let (rest, now) = (stage().await, now());
    let new = Programme { is_new: true, ..episode(now, 4, "Show", 1) };
    guide(
        &rest,
        vec![episode(now, -4, "Show", 1), episode(now, -5, "Show", 2), episode(now, 3, "Show", 2), new],
        vec![],
        vec![],
    )
    .await;
    let body = json!({ "tvg_id": "a/b", "title": "Show", "record_new_only": true });
    let made = rest.admin("POST", RECURRING, body).await;
    assert_eq!(
        (made.status, &made.body["record_new_only"], &made.body["days_of_week"]),
        (201, &json!(true), &Value::Null),
        "{}",
        made.text
    );
    assert_eq!(recordings(&rest, now).await, ["1@4 scheduled"]);
    let path = format!("{RECURRING}{}/", made.body["id"]);
    let wrong = rest.admin("PUT", &path, json!({ "start_time": "20:00" })).await;
    assert_field(&wrong, "start_time");
    let put = rest.admin("PUT", &path, json!({ "record_new_only": false })).await;
    assert_eq!((put.status, &put.body["title"]), (200, &json!("Show")));
    assert_eq!(recordings(&rest, now).await, ["1@3 scheduled", "1@4 scheduled"]);
}

#[tokio::test]
async fn removing_the_recordings_of_a_series_keeps_the_rule() {
    let (rest, now) = (stage().await, now());
    let shows = vec![episode(now, 2, "Show", 1), episode(now, 4, "Show", 2), episode(now, 6, "Other", 1)];
    guide(&rest, shows, vec![], vec![]).await;
    for title in ["Show", "Other"] {
        assert_eq!(rest.admin("POST", SERIES, json!({ "tvg_id": "a/b", "title": title })).await.status, 200);
    }
    let removed = rest
        .admin("POST", &format!("{SERIES}bulk-remove/"), json!({ "tvg_id": "a/b", "title": "show" }))
        .await;
    assert_eq!(removed.body, json!({ "success": true, "removed": 2 }), "{}", removed.text);
    rest.context.recordings.recording_rules.evaluate(RuleScope::All).await.unwrap();
    assert_eq!(recordings(&rest, now).await, ["1@6 scheduled"]);
    let removed =
        rest.admin("POST", &format!("{SERIES}bulk-remove/"), json!({ "tvg_ids": ["A/B", "two"] })).await;
    assert_eq!(removed.body["removed"], 1);
    let gone = rest.admin("DELETE", &format!("{SERIES}?tvg_id=a/b&title=show"), Value::Null).await;
    assert_eq!((gone.status, gone.body["rules"].as_array().map(Vec::len)), (200, Some(1)), "{}", gone.text);
    assert_field(&rest.admin("DELETE", SERIES, Value::Null).await, "tvg_id");
}

/// The guide names its channel `two.guide`, the channel has the id `own.two`, and the rule looks in all channels or in that
/// one.
#[tokio::test]
async fn the_recordings_of_a_series_are_removed_by_the_id_of_the_channel_too() {
    let (rest, now) = (stage().await, now());
    let mapped = Channel {
        tvg_id: Some("own.two".to_owned()),
        guide_channel: Some(GuideChannelId(20)),
        ..Channel::new(ChannelId(2), Uuid::from_u128(2), "channel 2", 0)
    };
    rest.put([mapped]).await;
    let shows = || vec![episode(now, 2, "Show", 1), episode(now, 4, "Other", 1)];
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), vec![(20, "two.guide", shows())]).await;
    let remove = async |id: &str| {
        let removed = rest.admin("POST", &format!("{SERIES}bulk-remove/"), json!({ "tvg_ids": [id] })).await;
        assert_eq!(removed.status, 200, "{}", removed.text);
        removed.body["removed"].clone()
    };
    for (rule, id) in [
        (json!({ "tvg_id": "own.two", "title": "Show" }), "OWN.two"),
        (json!({ "title": "Other" }), "own.two"),
    ] {
        assert_eq!(rest.admin("POST", SERIES, rule.clone()).await.status, 200);
        assert_eq!(recordings(&rest, now).await.len(), 1, "{rule}");
        assert_eq!(remove("own").await, 0);
        assert_eq!(remove(id).await, 1, "{rule}");
        assert_eq!(recordings(&rest, now).await, [] as [&str; 0]);
    }
}

#[tokio::test]
async fn users_of_level_1_make_rules_for_what_they_see_if_the_settings_allow_it() {
    let (rest, now) = (stage().await, now());
    guide(&rest, vec![], vec![episode(now, 9, "Show", 1)], vec![episode(now, 2, "Show", 1)]).await;
    let body = json!({ "title": "Show" });
    assert_eq!(rest.standard("POST", SERIES, body.clone()).await.status, 403);
    allow(&rest).await;
    assert_eq!(rest.admin("POST", SERIES, body.clone()).await.status, 200);
    assert_eq!(recordings(&rest, now).await, ["4@2 scheduled"]);
    let preview = rest.standard("POST", &format!("{SERIES}preview/"), body.clone()).await;
    assert_eq!((preview.status, &preview.body["total"]), (200, &json!(1)), "{}", preview.text);
    let made = rest.standard("POST", SERIES, body).await;
    assert_eq!((made.status, made.body["rules"].as_array().map(Vec::len)), (200, Some(1)), "{}", made.text);
    assert_eq!(recordings(&rest, now).await, ["4@2 scheduled", "2@9 scheduled"]);
    assert_eq!(rest.standard("GET", RECORDINGS, Value::Null).await.body["count"], 1);
    let theirs = rest.admin("POST", RECURRING, json!({ "title": "x" })).await.body["id"].clone();
    for (method, path) in
        [("GET", format!("{RECURRING}{theirs}/")), ("DELETE", format!("{RECURRING}{theirs}/"))]
    {
        assert_eq!(rest.standard(method, &path, Value::Null).await.status, 404);
    }
    assert_eq!(rest.streamer("GET", SERIES, Value::Null).await.status, 403);
}

/// A rule was applied a quarter of an hour after its owner got the right to record.
#[tokio::test]
async fn rules_are_applied_when_their_owners_get_the_right_to_record() {
    let (rest, now) = (stage().await, now());
    allow(&rest).await;
    assert_eq!(rest.standard("POST", SERIES, json!({ "title": "Show" })).await.status, 200);
    let standard = format!("/api/accounts/users/{STANDARD}/");
    let set = async |it: Value| {
        let body = json!({ "custom_properties": { "recordings_enabled": it } });
        assert_eq!(rest.admin("PATCH", &standard, body).await.status, 200);
    };
    set(json!(false)).await;
    guide(&rest, vec![], vec![episode(now, 9, "Show", 1)], vec![]).await;
    rest.context.recordings.recording_rules.evaluate(RuleScope::All).await.unwrap();
    assert_eq!(recordings(&rest, now).await, [] as [&str; 0]);
    let following = tokio::spawn(rest.context.recordings.recording_rules.clone().follow());
    set(json!(true)).await;
    until(&rest, now, &["2@9 scheduled"]).await;
    following.abort();
}

/// Waits until the rules have led to these recordings.
async fn until(rest: &Rest, now: i64, expected: &[&str]) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        let found = recordings(rest, now).await;
        if found == expected {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "{found:?} instead of {expected:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The source of the guide that [`guide`] writes, with these changes.
async fn change_source(rest: &Rest, change: impl FnOnce(&mut GuideSource)) {
    let mut source = GuideSource::clone(rest.models.guide_sources.load().iter().next().unwrap());
    change(&mut source);
    rest.put([source]).await;
}

/// A recording stayed at its old time until the guide had another programme there.
#[tokio::test]
async fn rules_are_applied_when_a_guide_gets_an_offset() {
    let (rest, now) = (stage().await, now());
    guide(&rest, vec![episode(now, 2, "Show", 1)], vec![], vec![]).await;
    let channel = rest.models.channels.load().get(1).unwrap().clone();
    rest.put([Channel { streams: vec![StreamId(70)], ..Channel::clone(&channel) }]).await;
    assert_eq!(rest.admin("POST", SERIES, json!({ "title": "Show" })).await.status, 200);
    assert_eq!(recordings(&rest, now).await, ["1@2 scheduled"]);
    let following = tokio::spawn(rest.context.recordings.recording_rules.clone().follow());
    change_source(&rest, |it| it.offset_minutes = 60).await;
    until(&rest, now, &["1@3 scheduled"]).await;
    // The playlist says that the stream of the channel is late.
    let mut facts = StreamProperties::new("Late", SourceUrl::new("http://tv.example/2.ts"));
    facts.guide_offset = 120;
    rest.put([Stream::new(StreamId(70), AccountId(2), facts, 0)]).await;
    until(&rest, now, &["1@5 scheduled"]).await;
    following.abort();
}

#[tokio::test]
async fn recordings_follow_their_programmes_when_a_channel_gets_an_offset_or_another_guide() {
    let (rest, now) = (stage().await, now());
    guide(&rest, vec![episode(now, 2, "Show", 1)], vec![episode(now, 9, "Show", 1)], vec![]).await;
    let rule = json!({ "title": "Show", "channel_id": 1 });
    assert_eq!(rest.admin("POST", SERIES, rule).await.status, 200);
    assert_eq!(recordings(&rest, now).await, ["1@2 scheduled"]);
    let following = tokio::spawn(rest.context.recordings.recording_rules.clone().follow());
    let change = async |body: Value| {
        let changed = rest.admin("PATCH", "/api/channels/channels/1/", body).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
    };
    change(json!({ "epg_offset_minutes": -60 })).await;
    until(&rest, now, &["1@1 scheduled"]).await;
    change(json!({ "epg_offset_minutes": null, "tvg_id": "two" })).await;
    until(&rest, now, &["1@9 scheduled"]).await;
    following.abort();
}

#[tokio::test]
async fn a_recording_by_hand_follows_the_guide_of_its_channel() {
    let (rest, now) = (stage().await, now());
    guide(&rest, vec![episode(now, 2, "Show", 1)], vec![episode(now, 4, "Show", 1)], vec![]).await;
    let found = rest.admin("POST", &format!("{SERIES}preview/"), json!({ "title": "Show" })).await;
    let body = json!({ "channel_id": 1, "program_id": found.body["matches"][0]["id"] });
    let made = rest.admin("POST", RECORDINGS, body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let evaluate = async || {
        rest.context.recordings.recording_rules.evaluate(RuleScope::All).await.unwrap();
        recordings(&rest, now).await
    };
    change_source(&rest, |it| it.offset_minutes = 90).await;
    assert_eq!(evaluate().await, ["1@3.5 scheduled"]);
    change_source(&rest, |it| it.offset_minutes = 0).await;
    let other = json!({ "tvg_id": "two" });
    assert_eq!(rest.admin("PATCH", "/api/channels/channels/1/", other).await.status, 200);
    assert_eq!(evaluate().await, ["1@4 scheduled"]);
}

/// The times of the guide have no zone, so each of its programmes is at another time.
#[tokio::test]
async fn recordings_follow_their_programmes_when_the_zone_of_a_guide_changes() {
    let (rest, now) = (stage().await, now());
    let in_zone = async |zone: Option<&str>, hour: i64| {
        let time_zone = zone.map(str::to_owned);
        let source = GuideSource { time_zone, ..guide_source(1, GuideSourceKind::Xmltv) };
        put_guide(&rest, source, vec![(10, "a/b", vec![episode(now, hour, "Show", 1)])]).await;
        rest.context.recordings.recording_rules.evaluate(RuleScope::All).await.unwrap();
        recordings(&rest, now).await
    };
    in_zone(None, 9).await;
    assert_eq!(rest.admin("POST", SERIES, json!({ "title": "Show" })).await.status, 200);
    assert_eq!(in_zone(None, 9).await, ["1@9 scheduled"]);
    assert_eq!(in_zone(Some("Europe/Amsterdam"), 7).await, ["1@7 scheduled"]);
    assert_eq!(in_zone(Some("Europe/Amsterdam"), 5).await, ["1@7 scheduled"], "the guide may be incomplete");
    assert_eq!(in_zone(Some("America/New_York"), 14).await, ["1@14 scheduled"]);
}

#[tokio::test]
async fn a_deleted_rule_that_is_made_again_continues_where_it_ended() {
    let (rest, now) = (stage().await, now());
    let of_show = [episode(now, 2, "Show", 1), episode(now, 5, "Show", 2), episode(now, 7, "Show", 3)];
    guide(&rest, of_show.to_vec(), vec![], vec![]).await;
    let rule = json!({ "tvg_id": "a/b", "title": "show", "priority": 70 });
    rest.admin("POST", SERIES, rule.clone()).await;
    // A user deletes one recording, and then the rule.
    let list = rest.admin("GET", RECORDINGS, Value::Null).await.body;
    let first = format!("{RECORDINGS}{}/", list["results"][0]["id"]);
    assert_eq!(rest.admin("DELETE", &first, Value::Null).await.status, 204);
    let planned = ["1@5 scheduled", "1@7 scheduled"];
    assert_eq!(recordings(&rest, now).await, planned);
    assert_eq!(rest.admin("DELETE", &format!("{SERIES}a%2Fb/"), Value::Null).await.status, 204);
    assert_eq!(recordings(&rest, now).await, [] as [&str; 0]);
    // The same body brings back the rule and its recordings, and not the one that the user deleted.
    assert_eq!(rest.admin("POST", SERIES, rule.clone()).await.status, 200);
    assert_eq!(recordings(&rest, now).await, planned);
    for _ in 0..2 {
        assert_eq!(rest.admin("DELETE", &format!("{SERIES}a%2Fb/"), Value::Null).await.status, 204);
        assert_eq!(rest.admin("POST", SERIES, rule.clone()).await.status, 200);
        assert_eq!(recordings(&rest, now).await, planned);
    }
    let other = json!({ "title": "show" });
    assert_eq!(rest.admin("DELETE", &format!("{SERIES}a%2Fb/"), Value::Null).await.status, 204);
    assert_eq!(rest.admin("POST", SERIES, other).await.status, 200);
    let all = ["1@2 scheduled", "1@5 scheduled", "1@7 scheduled"];
    assert_eq!(recordings(&rest, now).await, all, "another rule remembers nothing");
}

#[tokio::test]
async fn a_deleted_weekly_rule_that_is_made_again_has_its_days() {
    let rest = stage().await;
    let body = json!({
        "channel": 1, "name": "Evening", "days_of_week": [0, 2, 4], "start_time": "20:00", "end_time": "20:15",
    });
    let list = async || {
        let list = rest.admin("GET", &format!("{RECORDINGS}?status=scheduled"), Value::Null).await.body;
        let starts = list["results"].as_array().unwrap().iter().map(|it| it["start_time"].clone());
        starts.collect::<Vec<_>>()
    };
    let made = rest.admin("POST", RECURRING, body.clone()).await;
    let before = list().await;
    assert!(before.len() >= 5, "{before:?}");
    let rule = format!("{RECURRING}{}/", made.body["id"]);
    assert_eq!(rest.admin("DELETE", &rule, Value::Null).await.status, 204);
    assert_eq!(list().await, [] as [Value; 0]);
    assert_eq!(rest.admin("POST", RECURRING, body).await.status, 201);
    assert_eq!(list().await, before);
}
