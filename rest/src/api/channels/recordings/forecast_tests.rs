use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::channel::Channel;
use domain::guide::programme::{EpisodeNumber, Programme};
use domain::guide::source::GuideSourceKind;
use domain::ids::{AccountId, ChannelId, ProfileId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::guide_testing::{guide_source, now, programme, put_guide};
use crate::testing::Rest;

const RECORDINGS: &str = "/api/channels/recordings/";

/// Two channels of an account with one connection, and their guide.
async fn stage(now: i64) -> Rest {
    let rest = Rest::start().await;
    let location = PlaylistLocation::Url(SourceUrl::new("http://provider.example/list.m3u"));
    let profile = AccountProfile::default_of(ProfileId(7), "Default", 1);
    rest.put([Account::new(AccountId(7), "Provider", location, profile, 0)]).await;
    let stream = |id: u32| {
        let url = SourceUrl::new(format!("http://provider.example/{id}.ts"));
        Stream::new(StreamId(id), AccountId(7), StreamProperties::new(format!("stream {id}"), url), 0)
    };
    rest.put([stream(1), stream(2)]).await;
    let channel = |id: u32, tvg_id: &str| {
        let mut channel = Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("channel {id}"), 0);
        (channel.tvg_id, channel.streams) = (Some(tvg_id.to_owned()), vec![StreamId(id)]);
        channel
    };
    rest.put([channel(1, "one"), channel(2, "two")]).await;
    let one = vec![programme(now, 1, 3, "Football")];
    let two = vec![episode(now, 2, 1), episode(now, 4, 2), episode(now, 6, 1)];
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), vec![(10, "one", one), (20, "two", two)]).await;
    rest
}

fn episode(now: i64, from: i64, number: u32) -> Programme {
    let value = format!("0.{}.", number - 1);
    let number = EpisodeNumber { system: Some("xmltv_ns".to_owned()), value };
    Programme { episode_numbers: vec![number], ..programme(now, from, from + 1, "Show") }
}

#[tokio::test]
async fn the_forecast_names_who_loses_what_is_full_and_another_showing() {
    let now = now();
    let rest = stage(now).await;
    for (title, priority) in [("Football", 80), ("Show", 20)] {
        let rule = json!({ "title": title, "priority": priority });
        let made = rest.admin("POST", "/api/channels/series-rules/", rule).await;
        assert_eq!(made.status, 200, "{}", made.text);
    }
    let found = rest.admin("GET", &format!("{RECORDINGS}forecast/"), Value::Null).await;
    assert_eq!((found.status, &found.body["conflicts"]), (200, &json!(1)), "{}", found.text);
    let states: Vec<_> =
        found.body["results"].as_array().unwrap().iter().map(|it| it["forecast"].clone()).collect();
    assert_eq!(states, ["assigned", "lost", "assigned"]);
    let (winner, loser) = (&found.body["results"][0], &found.body["results"][1]);
    assert_eq!((&winner["title"], &winner["account_id"]), (&json!("Football"), &json!(7)));
    let full = &loser["full_accounts"][0];
    assert_eq!((&full["account_name"], &full["max_streams"]), (&json!("Provider"), &json!(1)));
    assert_eq!(full["recording_ids"], json!([winner["recording_id"]]));
    let other = loser["alternative"]["start_time"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert_eq!(other.as_second(), now + 6 * 3_600, "the showing after the match: {loser}");
    let list = rest.admin("GET", RECORDINGS, Value::Null).await.body;
    assert_eq!(list["results"][1]["forecast"], "lost", "{list}");
    // The other way round, the match loses.
    let path = format!("{RECORDINGS}{}/", loser["recording_id"]);
    assert_eq!(rest.admin("PATCH", &path, json!({ "priority": 90 })).await.body["forecast"], "assigned");
    let winner = format!("{RECORDINGS}{}/", winner["recording_id"]);
    assert_eq!(rest.admin("GET", &winner, Value::Null).await.body["forecast"], "lost");
}

#[tokio::test]
async fn a_recording_that_is_moved_to_another_showing_stays_there_and_its_rule_makes_no_other() {
    let now = now();
    let rest = stage(now).await;
    for (title, priority) in [("Football", 80), ("Show", 20)] {
        let rule = json!({ "title": title, "priority": priority });
        assert_eq!(rest.admin("POST", "/api/channels/series-rules/", rule).await.status, 200);
    }
    let found = rest.admin("GET", &format!("{RECORDINGS}forecast/"), Value::Null).await.body;
    let loser = &found["results"][1];
    let path = format!("{RECORDINGS}{}/", loser["recording_id"]);
    let moved = rest.admin("PATCH", &path, loser["alternative"].clone()).await;
    assert_eq!((moved.status, &moved.body["forecast"]), (200, &json!("assigned")), "{}", moved.text);
    assert_eq!(moved.body["start_time"], loser["alternative"]["start_time"]);
    assert_eq!(moved.body["priority"], 20);
    let again = rest.admin("POST", "/api/channels/series-rules/evaluate/", json!({})).await;
    assert_eq!(again.status, 200, "{}", again.text);
    let list = rest.admin("GET", RECORDINGS, Value::Null).await.body;
    let states: Vec<_> =
        list["results"].as_array().unwrap().iter().map(|it| it["forecast"].clone()).collect();
    assert_eq!(states, ["assigned"; 3], "{list}");
    assert_eq!(rest.admin("GET", &path, Value::Null).await.body["start_time"], moved.body["start_time"]);
}

#[tokio::test]
async fn rules_are_applied_when_a_guide_changes() {
    let now = now();
    let rest = stage(now).await;
    let rule = json!({ "title": "Later" });
    assert_eq!(rest.admin("POST", "/api/channels/series-rules/", rule).await.status, 200);
    assert_eq!(rest.admin("GET", RECORDINGS, Value::Null).await.body["count"], 0);
    let following = tokio::spawn(rest.context.recordings.recording_rules.clone().follow());
    let one = vec![programme(now, 5, 6, "Later")];
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), vec![(10, "one", one)]).await;
    for _ in 0..600 {
        if rest.admin("GET", RECORDINGS, Value::Null).await.body["count"] == 1 {
            following.abort();
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the rule was not applied to the new guide");
}
