use actors::now_ms;
use domain::account::{Account, AccountProfile, CUSTOM_ACCOUNT, PlaylistLocation};
use domain::channel::{AutoChannel, SyncedValues};
use domain::group::Group;
use domain::guide::source::GuideSourceKind;
use domain::health::{FailureSide, StreamHealth};
use domain::ids::{AccountId, GroupId, ProfileId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use domain::user::User;
use serde_json::{Value, json};

use super::*;
use crate::guide_testing::{guide_source, put_guide};
use crate::testing::{Rest, STANDARD as STANDARD_USER, STREAMER as STREAMER_USER};

mod adult_groups;
mod many;

const LIST: &str = "/api/channels/channels/";

fn stream(id: u32, name: &str, group: Option<&str>, number: Option<&str>) -> Stream {
    let facts = StreamProperties {
        tvg_id: Some(format!("guide.{id}")),
        group: group.map(str::to_owned),
        logo: Some(format!("http://tv.example/{id}.png")),
        number: number.map(|it| it.parse().unwrap()),
        ..StreamProperties::new(name, SourceUrl::new(format!("http://tv.example/{id}.ts")))
    };
    Stream::new(StreamId(id), CUSTOM_ACCOUNT, facts, 0)
}

/// Four streams and two groups, without a channel.
async fn stage() -> Rest {
    let rest = Rest::start().await;
    rest.put([Group::new(GroupId(7), "News"), Group::new(GroupId(8), "Sports")]).await;
    rest.put([
        stream(1, "News One", Some("News"), Some("1")),
        stream(2, "News Two", Some("News"), Some("4.1")),
        stream(3, "Film", Some("Films"), Some("0")),
        stream(4, "No number", None, None),
    ])
    .await;
    rest
}

async fn make(rest: &Rest, body: Value) -> Value {
    let made = rest.admin("POST", LIST, body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.body
}

fn one(channel: &Value) -> String {
    format!("{LIST}{}/", channel["id"])
}

async fn numbers(rest: &Rest) -> Vec<(String, Value)> {
    let list = rest.admin("GET", &format!("{LIST}?ordering=id"), Value::Null).await.body;
    let results = list["results"].as_array().unwrap();
    results.iter().map(|it| (it["name"].as_str().unwrap().to_owned(), it["channel_number"].clone())).collect()
}

async fn names(rest: &Rest, query: &str) -> Vec<String> {
    let answer = rest.standard("GET", &format!("{LIST}?{query}"), Value::Null).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
    let results = answer.body["results"].as_array().unwrap();
    results.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_channel_is_created_read_updated_and_deleted_under_both_paths() {
    let rest = stage().await;
    let new = json!({
        "name": " News ", "number": "4.10", "channel_group": "News", "streams": [2, 1], "tvg_id": "news",
        "stream_profile_id": 2, "logo_url": "http://a.example/x.png", "user_level": 0, "is_adult": false,
        "custom_properties": { "a": [1, null] }, "id": 99, "uuid": "x",
    });
    let made = rest.admin("POST", "/api/channels/", new).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let channel = &made.body;
    for (field, value) in [
        ("name", json!("News")),
        ("channel_number", json!(4.1)),
        ("number", json!(4.1)),
        ("effective_channel_number", json!(4.1)),
        ("enabled", json!(true)),
        ("channel_group_id", json!(7)),
        ("channel_group_name", json!("News")),
        ("streams", json!([2, 1])),
        ("stream_profile_id", json!(2)),
        ("logo_url", json!("http://a.example/x.png")),
        ("logo_id", json!(1)),
        ("effective_logo_id", json!(1)),
        ("healthiest_first", json!(false)),
        ("epg_data_id", json!(null)),
        ("custom_properties", json!({ "a": [1, null] })),
    ] {
        assert_eq!(channel[field], value, "{field}");
    }
    assert_ne!(channel["id"], 99);
    let (one, other) = (one(channel), format!("/api/channels/{}/", channel["id"]));
    for path in [&one, &other] {
        assert_eq!(rest.standard("GET", path, Value::Null).await.body, *channel);
    }
    let changed = rest.admin("PATCH", &other, json!({ "enabled": false })).await.body;
    assert_eq!((&changed["enabled"], &changed["streams"]), (&json!(false), &channel["streams"]));
    let none = json!({
        "name": "N", "channel_number": null, "channel_group_id": null, "tvg_id": null, "streams": [],
        "stream_profile_id": null, "logo_url": null, "logo_id": null, "epg_data_id": null, "custom_properties": {},
    });
    let changed = rest.admin("PUT", &one, none).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert_eq!((&changed.body["channel_number"], &changed.body["streams"]), (&json!(null), &json!([])));
    assert_eq!(changed.body["uuid"], channel["uuid"], "its address stays");
    assert_eq!(rest.admin("DELETE", &format!("{one}?stop_stream=true"), Value::Null).await.status, 204);
    let gone = rest.admin("GET", &other, Value::Null).await;
    assert_eq!((gone.status, gone.body), (404, json!({ "detail": "No Channel matches the given query." })));
}

#[tokio::test]
async fn an_invalid_channel_is_refused_by_field_and_changes_nothing() {
    let rest = stage().await;
    make(&rest, json!({ "name": "one", "channel_number": 1 })).await;
    let no_such = |id: u32| json!([format!("Invalid pk \"{id}\" - object does not exist.")]);
    for (body, errors) in [
        (json!({}), json!({ "name": ["This field is required."] })),
        (
            json!({ "name": "x".repeat(256) }),
            json!({ "name": ["Ensure this field has no more than 255 characters."] }),
        ),
        (
            json!({ "name": "a", "channel_number": "abc" }),
            json!({ "channel_number": ["A valid channel number is required, such as 4 or 4.1."] }),
        ),
        (json!({ "name": "a", "number": 1.0 }), json!({ "channel_number": ["This field must be unique."] })),
        (
            json!({ "name": "a", "streams": [1, 99, 98] }),
            json!({
                "streams": [no_such(99)[0], no_such(98)[0]],
            }),
        ),
        (
            json!({ "name": "a", "streams": [1, 2, 1] }),
            json!({ "streams": ["Stream 1 is listed more than once."] }),
        ),
        (
            json!({ "name": "a", "channel_group_id": 99, "stream_profile_id": 98, "logo_id": 97, "epg_data_id": 96 }),
            json!({
                "channel_group_id": no_such(99), "stream_profile_id": no_such(98), "logo_id": no_such(97),
                "epg_data_id": no_such(96),
            }),
        ),
        (
            json!({ "name": "a", "channel_group": "Films" }),
            json!({ "channel_group_id": ["The channel group \"Films\" does not exist."] }),
        ),
        (json!({ "name": "a", "user_level": 7 }), json!({ "user_level": ["\"7\" is not a valid choice."] })),
    ] {
        let refused = rest.admin("POST", LIST, body.clone()).await;
        assert_eq!((refused.status, refused.body), (400, errors), "{body}");
    }
    assert_eq!(rest.models.channels.load().len(), 1);
}

#[tokio::test]
async fn a_channel_without_a_number_gets_the_lowest_free_whole_one() {
    let rest = stage().await;
    for number in ["1", "2", "3.5", "4", "500"] {
        make(&rest, json!({ "name": number, "channel_number": number })).await;
    }
    for expected in [3, 5, 6] {
        let made = make(&rest, json!({ "name": "a", "channel_number": null })).await;
        assert_eq!(made["channel_number"], expected);
    }
}

#[tokio::test]
async fn twenty_channels_created_at_once_get_twenty_numbers() {
    let rest = stage().await;
    make(&rest, json!({ "name": "there", "channel_number": 7 })).await;
    let made =
        futures_util::future::join_all((0..20).map(|n| make(&rest, json!({ "name": format!("{n}") })))).await;
    let mut numbers: Vec<u64> = made.iter().map(|it| it["channel_number"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    let expected: Vec<u64> = (1..=21).filter(|it| *it != 7).collect();
    assert_eq!(numbers, expected);
}

#[tokio::test]
async fn a_number_belongs_to_one_channel() {
    let rest = stage().await;
    let one_ = make(&rest, json!({ "name": "one", "channel_number": "4.1" })).await;
    let two = make(&rest, json!({ "name": "two", "channel_number": 5 })).await;
    let errors = json!({ "channel_number": ["This field must be unique."] });
    let refused = rest.admin("PATCH", &one(&two), json!({ "number": 4.1 })).await;
    assert_eq!((refused.status, refused.body), (400, errors));
    assert_eq!(rest.admin("PATCH", &one(&one_), json!({ "number": 4.1 })).await.status, 200, "its own");
    assert_eq!(rest.admin("PATCH", &one(&one_), json!({ "number": null })).await.status, 200);
    assert_eq!(rest.admin("PATCH", &one(&two), json!({ "number": 4.1 })).await.status, 200);
}

#[tokio::test]
async fn each_filter_of_channels_returns_the_matching_ones() {
    let rest = stage().await;
    make(&rest, json!({ "name": "Delta", "number": 3, "channel_group": 7, "tvg_id": "d.one" })).await;
    make(&rest, json!({ "name": "alpha", "number": 1.5, "channel_group": 8, "streams": [1] })).await;
    make(&rest, json!({ "name": "Charlie", "number": 2, "streams": [2] })).await;
    let bravo = make(&rest, json!({ "name": "Bravo News", "number": 9 })).await;
    rest.admin("PATCH", &one(&bravo), json!({ "number": null })).await;
    for (query, expected) in [
        ("", "alpha Charlie Delta Bravo"),
        ("ordering=-channel_number", "Bravo Delta Charlie alpha"),
        ("ordering=name", "alpha Bravo Charlie Delta"),
        ("ordering=-name", "Delta Charlie Bravo alpha"),
        ("ordering=id", "Delta alpha Charlie Bravo"),
        ("ordering=channel_group__name", "Charlie Bravo Delta alpha"),
        ("channel_group=News", "Delta"),
        ("channel_group=7,Sports", "alpha Delta"),
        ("channel_group=Nothing", ""),
        ("search=NEWS", "Delta Bravo"),
        ("search=d.one", "Delta"),
        ("name=news", "Bravo"),
        ("tvg_id=ONE", "Delta"),
        ("only_streamless=true", "Delta Bravo"),
        ("enabled=false", ""),
        ("page=2&page_size=3", "Bravo"),
    ] {
        let names: Vec<String> = names(&rest, query).await;
        let names: Vec<&str> = names.iter().map(|it| it.split(' ').next().unwrap()).collect();
        assert_eq!(names.join(" "), expected, "{query}");
    }
    for query in ["ordering=size&strict=true", "channel_group=&page=0", "visibility_filter=some", "ids=x"] {
        assert_eq!(
            rest.standard("GET", &format!("{LIST}?{query}"), Value::Null).await.status,
            400,
            "{query}"
        );
    }
}

#[tokio::test]
async fn channels_are_found_by_how_all_of_their_streams_have_played() {
    let rest = stage().await;
    let channels = [("none", json!([])), ("one", json!([1])), ("two", json!([2])), ("both", json!([1, 2]))];
    for (name, streams) in channels {
        make(&rest, json!({ "name": name, "streams": streams })).await;
    }
    let check = async |failing: &[&str], unplayed: &[&str]| {
        assert_eq!(names(&rest, "only_failing=true").await, failing);
        assert_eq!(names(&rest, "only_unplayed=true").await, unplayed);
        assert_eq!(names(&rest, "only_failing=true&only_unplayed=true").await, [""; 0]);
        assert_eq!(names(&rest, "only_failing=false&only_unplayed=false").await.len(), 4);
        let counted =
            rest.standard("GET", &format!("{LIST}?only_failing=true&page=1&page_size=1"), Value::Null).await;
        assert_eq!(counted.body["count"], json!(failing.len()));
    };
    check(&[], &["one", "two", "both"]).await;
    let failed = |id, n| {
        let mut health = StreamHealth::new(StreamId(id));
        (0..n).for_each(|_| health.failed("status", FailureSide::Stream, now_ms()));
        rest.system.health().put(health);
    };
    failed(1, 20);
    check(&["one"], &["two"]).await;
    failed(2, 20);
    check(&["one", "two", "both"], &[]).await;
    let mut well = StreamHealth::new(StreamId(2));
    well.opened(300, now_ms());
    rest.system.health().put(well);
    check(&["one"], &[]).await;
}

#[tokio::test]
async fn the_list_of_channels_is_complete_with_ids_of_streams_or_whole_streams() {
    let rest = stage().await;
    rest.put((1..=60).map(|id| {
        let streams = vec![StreamId(2), StreamId(1)];
        Channel { streams, ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), "a", 0) }
    }))
    .await;
    for path in [LIST, "/api/channels/"] {
        let whole = rest.standard("GET", path, Value::Null).await.body;
        assert_eq!((&whole["count"], &whole["next"]), (&json!(60), &Value::Null));
        assert_eq!(whole["results"].as_array().unwrap().len(), 60);
        assert_eq!(whole["results"][0]["streams"], json!([2, 1]));
    }
    let page = rest.standard("GET", &format!("{LIST}?page=2&include_streams=true"), Value::Null).await.body;
    let streams = page["results"][9]["streams"].as_array().unwrap();
    assert_eq!((&streams[0]["name"], &streams[1]["name"]), (&json!("News Two"), &json!("News One")));
    let one = rest.standard("GET", &format!("{LIST}60/?include_streams=true"), Value::Null).await.body;
    assert_eq!(one, page["results"][9]);
    let streams = rest.standard("GET", &format!("{LIST}60/streams/"), Value::Null).await.body;
    assert_eq!(streams, one["streams"]);
}

#[tokio::test]
async fn other_users_see_only_the_channels_that_they_may_watch() {
    let rest = stage().await;
    let make = async |name: &str, more: Value| {
        let mut body = json!({ "name": name });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        make(&rest, body).await
    };
    let for_all = make("for all", json!({})).await;
    let hidden = [
        make("off", json!({ "enabled": false })).await,
        make("admins", json!({ "user_level": 10 })).await,
        make("adult", json!({ "is_adult": true })).await,
    ];
    rest.put([User { hide_adult: true, ..(*rest.user(STANDARD_USER)).clone() }]).await;
    assert_eq!(names(&rest, "").await, ["for all"]);
    assert_eq!(names(&rest, "visibility_filter=hidden").await, [""; 0]);
    let ids = rest.standard("GET", &format!("{LIST}ids/"), Value::Null).await.body;
    assert_eq!(ids, json!([for_all["id"]]));
    let uuids: Vec<_> = hidden.iter().chain([&for_all]).map(|it| it["uuid"].clone()).collect();
    let by_uuids = rest.standard("POST", &format!("{LIST}by-uuids/"), json!({ "uuids": uuids })).await.body;
    assert_eq!(by_uuids, json!([for_all]));
    for channel in &hidden {
        for path in [one(channel), format!("{}streams/", one(channel))] {
            assert_eq!(rest.standard("GET", &path, Value::Null).await.status, 404, "{path}");
            assert_eq!(rest.admin("GET", &path, Value::Null).await.status, 200, "{path}");
        }
    }
    assert_eq!(rest.streamer("GET", LIST, Value::Null).await.status, 403);
    let short = rest.streamer("GET", &format!("{LIST}summary/"), Value::Null).await.body;
    let short: Vec<_> = short.as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(short, ["for all", "adult"], "this user of level 0 does not hide adult channels");
    let all = rest.admin("GET", &format!("{LIST}summary/"), Value::Null).await.body;
    assert_eq!(all.as_array().unwrap().len(), 4);
    let off = rest.admin("GET", &format!("{LIST}?visibility_filter=hidden"), Value::Null).await.body;
    assert_eq!((&off["count"], &off["results"][0]["name"]), (&json!(1), &json!("off")));
}

#[tokio::test]
async fn users_of_the_lowest_level_see_nothing_that_refers_to_providers() {
    let rest = stage().await;
    let body = json!({
        "name": "a", "streams": [1], "stream_profile_id": 2, "logo_url": "http://provider.example/a.png",
        "custom_properties": { "source": "provider" },
    });
    let channel = make(&rest, body).await;
    let by_uuids = async |user: u32| {
        let sent = json!({ "uuids": [channel["uuid"]] });
        rest.ask(user, "POST", &format!("{LIST}by-uuids/"), sent).await.body[0].clone()
    };
    assert_eq!(by_uuids(STANDARD_USER).await, channel);
    let reduced = by_uuids(STREAMER_USER).await;
    assert_eq!((&reduced["name"], &reduced["streams"]), (&json!("a"), &json!([])));
    assert!(!reduced.to_string().contains("provider"), "{reduced}");
    for path in ["/api/channels/streams/", "/api/channels/streams/1/", "/api/m3u/accounts/"] {
        assert_eq!(rest.streamer("GET", path, Value::Null).await.status, 403, "{path}");
    }
}

#[tokio::test]
async fn channels_with_numbers_in_a_range_are_listed_in_order() {
    let rest = stage().await;
    for number in ["3", "1", "2.5", "9"] {
        make(&rest, json!({ "name": number, "number": number, "channel_group": 7 })).await;
    }
    let path = format!("{LIST}numbers-in-range/");
    let range = rest.standard("GET", &format!("{path}?start=1.5&end=3"), Value::Null).await.body;
    let occupants = range["occupants"].as_array().unwrap();
    let numbers: Vec<_> = occupants.iter().map(|it| &it["channel_number"]).collect();
    assert_eq!(numbers, [&json!(2.5), &json!(3)]);
    assert_eq!(occupants[0]["channel_group"], "News");
    let open = rest.standard("GET", &format!("{path}?start=3"), Value::Null).await.body;
    assert_eq!(open["occupants"].as_array().unwrap().len(), 2);
    assert_eq!(rest.standard("GET", &path, Value::Null).await.status, 400);
    assert_eq!(rest.admin("GET", &format!("{path}?start=x"), Value::Null).await.status, 400);
}

#[tokio::test]
async fn users_who_only_watch_read_summaries_without_streams() {
    let rest = stage().await;
    let open =
        make(&rest, json!({ "name": "open", "streams": [1], "stream_profile_id": 2, "user_level": 0 })).await;
    let hidden = make(&rest, json!({ "name": "hidden", "user_level": 1 })).await;
    let summary = rest.streamer("GET", &format!("{LIST}summary/"), Value::Null).await;
    let names: Vec<_> = summary.body.as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!((summary.status, names), (200, vec![&json!("open")]));
    let uuids = json!({ "uuids": [open["uuid"], hidden["uuid"]] });
    let found = rest.streamer("POST", &format!("{LIST}by-uuids/"), uuids.clone()).await;
    let shown: Vec<_> =
        found.body.as_array().unwrap().iter().map(|it| (&it["name"], &it["streams"])).collect();
    assert_eq!(shown, [(&json!("open"), &json!([]))]);
    assert_eq!(found.body[0]["stream_profile_id"], json!(null));
    let found = rest.standard("POST", &format!("{LIST}by-uuids/"), uuids).await;
    assert_eq!(found.body[0]["streams"], json!([1]));
    for path in ["", "ids/", "numbers-in-range/?start=1", "1/streams/", "1/streams/stats/"] {
        assert_eq!(rest.streamer("GET", &format!("{LIST}{path}"), Value::Null).await.status, 403, "{path}");
    }
}

/// Stores a channel that a refresh created.
async fn automatic(rest: &Rest, id: u32) {
    let profile = AccountProfile::default_of(ProfileId(2), "login", 1);
    rest.put([Account::new(AccountId(2), "Provider", PlaylistLocation::None, profile, 0)]).await;
    let synced = SyncedValues {
        guide_channel: None,
        guide_station: None,
        name: "News".to_owned(),
        number: "100".parse().ok(),
        group: Some(GroupId(7)),
        logo: Some("http://tv.example/news.png".to_owned()),
        tvg_id: Some("news".to_owned()),
        stream_profile: None,
    };
    let auto = AutoChannel {
        account: AccountId(2),
        group: GroupId(7),
        stream: StreamId(1),
        synced,
        is_detached: false,
    };
    rest.put([Channel::automatic(ChannelId(id), Uuid::from_u128(id.into()), auto, 0)]).await;
}

#[tokio::test]
async fn overrides_of_an_automatic_channel_are_shown_set_and_taken_back() {
    let rest = stage().await;
    automatic(&rest, 9).await;
    let path = format!("{LIST}9/");
    let shown = rest.admin("GET", &path, Value::Null).await.body;
    assert_eq!((&shown["override"], &shown["auto_created_by_name"]), (&Value::Null, &json!("Provider")));
    let source = json!({ "id": 1, "name": "News", "account_id": 2, "account_name": "Provider" });
    assert_eq!(shown["source_stream"], source);
    assert_eq!(names(&rest, "only_has_overrides=true").await, Vec::<String>::new());

    let sent = json!({ "override": { "name": "Ours", "channel_number": 5, "channel_group_id": 8 } });
    let changed = rest.admin("PATCH", &path, sent).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    let expected = json!({
        "name": "Ours", "channel_number": 5, "channel_group_id": 8, "logo_id": null, "tvg_id": null,
        "tvc_guide_stationid": null, "epg_data_id": null, "stream_profile_id": null,
    });
    assert_eq!(changed.body["override"], expected);
    assert_eq!((&changed.body["effective_name"], &changed.body["tvg_id"]), (&json!("Ours"), &json!("news")));
    assert_eq!(names(&rest, "only_has_overrides=true").await, ["Ours"]);
    let range = rest.admin("GET", &format!("{LIST}numbers-in-range/?start=1"), Value::Null).await.body;
    assert_eq!(range["occupants"][0]["has_channel_number_override"], true);

    // One value goes back to that of the provider, the others stay.
    let changed = rest.admin("PATCH", &path, json!({ "override": { "channel_number": null } })).await.body;
    assert_eq!((&changed["channel_number"], &changed["name"]), (&json!(100), &json!("Ours")));
    // A client that sends the whole object back changes nothing.
    let same = rest.admin("PUT", &path, changed.clone()).await;
    assert_eq!((same.status, &same.body["override"]), (200, &changed["override"]), "{}", same.text);
    let reset = rest.admin("PATCH", &path, json!({ "override": null })).await.body;
    assert_eq!((&reset["override"], &reset["name"]), (&Value::Null, &json!("News")));
    assert_eq!((&reset["channel_group_id"], &reset["edited_fields"]), (&json!(7), &json!([])));

    let manual = make(&rest, json!({ "name": "Manual" })).await;
    let refused = rest.admin("PATCH", &one(&manual), json!({ "override": { "name": "X" } })).await;
    let message = "Cannot set override on a manual channel; overrides only apply to auto-created channels.";
    assert_eq!((refused.status, refused.body), (400, json!({ "override": [message] })));
    for nothing in [json!(null), json!({}), json!({ "name": null })] {
        let kept = rest.admin("PATCH", &one(&manual), json!({ "override": nothing })).await;
        assert_eq!((kept.status, &kept.body["name"]), (200, &json!("Manual")), "{}", kept.text);
    }
    let wrong = rest.admin("PATCH", &path, json!({ "override": { "name": 7 } })).await;
    assert_eq!((wrong.status, wrong.body), (400, json!({ "override": ["name: Expected a text."] })));
    let wrong = rest.admin("PATCH", &path, json!({ "override": { "epg_data_id": 7 } })).await;
    assert_eq!(wrong.status, 400, "{}", wrong.text);
}

#[tokio::test]
async fn channels_are_selected_by_their_guide_and_catchup() {
    let rest = stage().await;
    make(&rest, json!({ "name": "with", "tvg_id": "a", "tvc_guide_stationid": "20453" })).await;
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), vec![(5, "A", Vec::new())]).await;
    let without = make(&rest, json!({ "name": "without", "hidden_from_output": true })).await;
    assert_eq!((&without["enabled"], &without["hidden_from_output"]), (&json!(false), &json!(true)));
    let list = async |query: &str| {
        let listed = rest.admin("GET", &format!("{LIST}?{query}"), Value::Null).await.body;
        let listed = listed["results"].as_array().unwrap().iter();
        listed.map(|it| it["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list("epg=true").await, ["with"]);
    assert_eq!(list("epg=false").await, ["without"]);
    assert_eq!(list("epg=null").await, ["without"]);
    for name in ["a", "5", "name%20of%20a", "other,A"] {
        assert_eq!(list(&format!("epg={name}")).await, ["with"], "{name}");
    }
    assert_eq!(list("epg=x").await, Vec::<String>::new());
    assert_eq!(list("only_catchup=true").await, Vec::<String>::new());
    assert_eq!(list("only_catchup=false").await, ["with", "without"]);
    let with = rest.admin("GET", &format!("{LIST}?search=with&epg=true"), Value::Null).await.body;
    assert_eq!(with["results"][0]["effective_tvc_guide_stationid"], "20453");
}
