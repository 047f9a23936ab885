use domain::account::{Account, AccountProfile, PlaylistLocation, RefreshOutcome, RefreshRecord};
use domain::channel::Channel;
use domain::group::Group;
use domain::health::{FailureSide, Measurement, StreamHealth};
use domain::ids::{ChannelId, GroupId, ProfileId};
use domain::playout::Lack;
use domain::source_url::SourceUrl;
use domain::stream::{StreamOverrides, StreamProperties};
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::testing::{Rest, SECRET};

fn account(id: u32, name: &str, is_active: bool) -> Account {
    let profile = AccountProfile::default_of(ProfileId(id), name, 0);
    Account { is_active, ..Account::new(AccountId(id), name, PlaylistLocation::None, profile, 0) }
}

fn stream(id: u32, account: u32, name: &str, group: Option<&str>, tvg_id: Option<&str>) -> Stream {
    let facts = StreamProperties {
        tvg_id: tvg_id.map(str::to_owned),
        group: group.map(str::to_owned),
        number: "4.1".parse().ok(),
        ..StreamProperties::new(name, SourceUrl::new(format!("http://tv.example:8080/live/{SECRET}/{id}.ts")))
    };
    Stream::new(StreamId(id), AccountId(account), facts, 1_000)
}

fn channel(id: u32, streams: &[u32]) -> Channel {
    let streams = streams.iter().map(|it| StreamId(*it)).collect();
    Channel { streams, ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("channel {id}"), 0) }
}

/// Three accounts with streams, the last one inactive; a renamed group; two channels.
async fn stage() -> Rest {
    let rest = Rest::start().await;
    rest.put([account(2, "Zeta", true), account(3, "Alpha", true), account(4, "Omega", false)]).await;
    let refresh = RefreshRecord {
        outcome: RefreshOutcome::Success,
        tried_at: 5_000,
        good_at: Some(5_000),
        n_good: 4,
        digest: Some([7; 32]),
        ..RefreshRecord::new(AccountId(2))
    };
    rest.put([refresh]).await;
    let mut news = Group::new(GroupId(7), "Nachrichten");
    news.rename("News");
    rest.put([news, Group::new(GroupId(8), "Sports")]).await;
    rest.put([
        stream(1, 2, "News One", Some("Nachrichten"), Some("news.one")),
        stream(2, 2, "News Two", Some("Nachrichten"), Some("news.two")),
        stream(3, 2, "Sport & Spaß", Some("Sports"), None),
        Stream { last_seen: Some(2_000), ..stream(4, 2, "alte NEWS", None, Some("OLD.one")) },
        stream(5, 3, "Film", Some("Unlisted, Films"), None),
        stream(6, 4, "Hidden", Some("Hidden"), None),
        stream(7, 1, "Mine", None, None),
    ])
    .await;
    rest.put([channel(1, &[3, 1]), channel(2, &[1, 5])]).await;
    rest
}

async fn found(rest: &Rest, query: &str) -> Vec<u64> {
    let answer = rest.standard("GET", &format!("{LIST}?{query}"), Value::Null).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
    let results = answer.body["results"].as_array().unwrap();
    let ids: Vec<u64> = results.iter().map(|it| it["id"].as_u64().unwrap()).collect();
    assert_eq!(answer.body["count"], ids.len(), "{query}");
    // The ids are found by the same filters.
    let alone = rest.standard("GET", &format!("{IDS}?{query}"), Value::Null).await;
    assert_eq!(alone.body, json!({ "ids": ids }), "{query}");
    ids
}

#[tokio::test]
async fn each_filter_of_streams_returns_the_matching_ones() {
    let rest = stage().await;
    for (query, ids) in [
        ("", &[1, 2, 3, 4, 5, 7][..]),
        ("name=news", &[1, 2, 4]),
        ("name=SPASS", &[]),
        ("name=spaß", &[3]),
        ("channel_group_name=Nachrichten", &[1, 2]),
        ("channel_group_name=News,Sports", &[1, 2, 3]),
        ("channel_group_name=news", &[]),
        ("channel_group_name=Unlisted,%20Films", &[5]),
        ("channel_group=Sports,Unlisted,+Films,Nachrichten", &[1, 2, 3, 5]),
        ("channel_group=7", &[1, 2]),
        ("channel_group=8,News", &[1, 2, 3]),
        ("channel_group=99", &[]),
        ("channel_group=7&channel_group_name=Sports", &[]),
        ("m3u_account=2", &[1, 2, 3, 4]),
        ("m3u_account=3,4", &[5, 6]),
        ("m3u_account=1", &[7]),
        ("m3u_account=99", &[]),
        ("m3u_account_name=eta", &[1, 2, 3, 4]),
        ("m3u_account_name=MEGA", &[]),
        ("m3u_account_name=MEGA&m3u_account_is_active=false", &[6]),
        ("m3u_account_is_active=true", &[1, 2, 3, 4, 5, 7]),
        ("m3u_account_is_active=false", &[6]),
        ("enabled=false", &[6]),
        ("enabled=false&m3u_account_is_active=true", &[]),
        ("tvg_id=ONE", &[1, 4]),
        ("assigned=1", &[1, 3]),
        ("assigned=99", &[]),
        ("unassigned=true", &[2, 4, 7]),
        ("unassigned=false", &[1, 2, 3, 4, 5, 7]),
        ("assigned=1&unassigned=true", &[]),
        ("hide_stale=true", &[1, 2, 3, 5, 7]),
        ("ids=7,6,5,999", &[5, 6, 7]),
        ("search=sport", &[3]),
        ("search=ONE", &[1, 4]),
        ("search=films", &[5]),
        ("search=news&hide_stale=1&m3u_account=2&tvg_id=two", &[2]),
    ] {
        assert_eq!(found(&rest, query).await, ids, "{query}");
    }
}

#[tokio::test]
async fn streams_are_listed_in_the_requested_order() {
    let rest = stage().await;
    for (ordering, ids) in [
        ("id", &[1, 2, 3, 4, 5, 7][..]),
        ("-id", &[7, 5, 4, 3, 2, 1]),
        ("name", &[4, 5, 7, 1, 2, 3]),
        ("-name", &[3, 2, 1, 7, 5, 4]),
        ("tvg_id", &[3, 5, 7, 1, 2, 4]),
        ("channel_group", &[4, 7, 1, 2, 3, 5]),
        ("-channel_group__name", &[5, 3, 2, 1, 7, 4]),
        ("m3u_account", &[7, 1, 2, 3, 4, 5]),
        ("m3u_account__name", &[5, 7, 1, 2, 3, 4]),
        ("-m3u_account__name", &[4, 3, 2, 1, 7, 5]),
    ] {
        assert_eq!(found(&rest, &format!("ordering={ordering}")).await, ids, "{ordering}");
        // Reading page by page gives the same result.
        let mut paged = Vec::new();
        for page in 1..=3 {
            let path = format!("{LIST}?ordering={ordering}&page_size=2&page={page}");
            let body = rest.standard("GET", &path, Value::Null).await.body;
            assert_eq!(body["count"], 6);
            paged.extend(body["results"].as_array().unwrap().iter().map(|it| it["id"].as_u64().unwrap()));
        }
        assert_eq!(paged, ids, "{ordering}");
    }
}

#[tokio::test]
async fn an_invalid_filter_is_refused_by_name() {
    let rest = stage().await;
    for (query, field) in [
        ("m3u_account=abc", "m3u_account"),
        ("m3u_account=2,-1", "m3u_account"),
        ("ids=1,x", "ids"),
        ("assigned=x", "assigned"),
        ("unassigned=maybe", "unassigned"),
        ("ordering=url&strict=true", "ordering"),
        ("page=x", "page"),
    ] {
        let answer = rest.standard("GET", &format!("{LIST}?{query}"), Value::Null).await;
        assert_eq!(answer.status, 400, "{query}");
        assert_eq!(answer.body.as_object().unwrap().keys().collect::<Vec<_>>(), [field], "{query}");
    }
}

#[tokio::test]
async fn a_page_has_fifty_streams_by_default_and_ten_thousand_at_most() {
    let rest = Rest::start().await;
    rest.put([account(2, "Zeta", true)]).await;
    rest.put((1..=60).map(|id| stream(id, 2, "one", None, None))).await;
    let first = rest.standard("GET", LIST, Value::Null).await.body;
    assert_eq!((&first["count"], first["results"].as_array().unwrap().len()), (&json!(60), 50));
    assert_eq!(first["next"], format!("http://192.0.2.1:9191{LIST}?page=2"));
    let whole = rest.standard("GET", &format!("{LIST}?page_size=99999"), Value::Null).await.body;
    assert_eq!((whole["results"].as_array().unwrap().len(), &whole["next"]), (60, &Value::Null));
    let beyond = rest.standard("GET", &format!("{LIST}?page=3"), Value::Null).await;
    assert_eq!((beyond.status, beyond.body), (404, json!({ "detail": "Invalid page." })));
}

#[tokio::test]
async fn groups_of_streams_have_their_current_names() {
    let rest = stage().await;
    let groups = json!(["News", "Sports", "Unlisted, Films"]);
    assert_eq!(rest.standard("GET", GROUPS, Value::Null).await.body, json!({ "groups": groups }));
    let accounts = json!([
        { "id": 2, "name": "Zeta" }, { "id": 3, "name": "Alpha" }, { "id": 4, "name": "Omega" },
    ]);
    let options = rest.standard("GET", FILTER_OPTIONS, Value::Null).await.body;
    assert_eq!(options, json!({ "groups": groups, "m3u_accounts": accounts }));
}

// Part of T-acc.2.
#[tokio::test]
async fn only_admins_see_the_whole_url_of_a_stream() {
    let rest = stage().await;
    let edited = StreamOverrides {
        url: Some(SourceUrl::new(format!("http://{SECRET}@b.example/"))),
        ..StreamOverrides::default()
    };
    rest.put([Stream { manual: edited, ..stream(2, 2, "News Two", None, None) }]).await;
    let whole = format!("http://tv.example:8080/live/{SECRET}/1.ts");
    for (method, path, body) in [
        ("GET", format!("{LIST}?ids=1,2"), Value::Null),
        ("POST", BY_IDS.to_owned(), json!({ "ids": [1, 2] })),
        ("GET", format!("{LIST}1/"), Value::Null),
        ("GET", format!("{LIST}2/"), Value::Null),
    ] {
        let (admin, other) =
            (rest.admin(method, &path, body.clone()).await, rest.standard(method, &path, body).await);
        assert!(admin.text.contains(&whole) || admin.text.contains("/2.ts"), "{}", admin.text);
        assert!(!other.text.contains(SECRET), "{}", other.text);
        assert!(other.text.contains(r#"example:8080/…""#) || other.text.contains(r#"b.example/…""#));
    }
}

#[tokio::test]
async fn a_stream_of_an_admin_is_created_read_updated_and_deleted() {
    let rest = stage().await;
    let new = json!({
        "name": " Garden ", "url": "http://cam.example/1", "tvg_id": "garden", "channel_group": 8, "stream_profile_id": 2,
    });
    let made = rest.admin("POST", LIST, new).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let id = made.body["id"].as_u64().unwrap();
    let one = format!("{LIST}{id}/");
    let shown = |field: &str| made.body[field].clone();
    assert_eq!(shown("name"), "Garden");
    assert_eq!(
        (shown("is_custom"), shown("m3u_account"), shown("last_seen")),
        (json!(true), json!(null), json!(null))
    );
    assert_eq!((shown("channel_group"), shown("channel_group_name")), (json!(8), json!("Sports")));
    assert_eq!((shown("stream_profile_id"), shown("provider")), (json!(2), json!(null)));
    assert_eq!(shown("program_number"), json!(null));
    for number in [json!(65535), json!(1), json!(null)] {
        let changed = rest.admin("PATCH", &one, json!({ "program_number": number })).await;
        assert_eq!((changed.status, &changed.body["program_number"]), (200, &number), "{}", changed.text);
    }
    assert_eq!(shown("leave_still_picture"), json!(false));
    for (leaves, then) in [(Some(true), true), (None, true), (Some(false), false)] {
        let edit = leaves.map_or(json!({}), |it| json!({ "leave_still_picture": it }));
        let changed = rest.admin("PATCH", &one, edit).await;
        assert_eq!(changed.body["leave_still_picture"], json!(then), "{}", changed.text);
    }
    // Clients read their own writes.
    assert_eq!(found(&rest, "name=garden").await, [id]);

    let changed =
        rest.admin("PATCH", &one, json!({ "channel_group": "Own", "tvg_id": null, "name": "Yard" })).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    let body = &changed.body;
    assert_eq!(
        (&body["name"], &body["tvg_id"], &body["channel_group"]),
        (&json!("Yard"), &json!(null), &json!(null))
    );
    assert_eq!((&body["channel_group_name"], &body["url"]), (&json!("Own"), &json!("http://cam.example/1")));
    let refused = rest.admin("PUT", &one, json!({ "name": null, "url": null })).await;
    let none = json!(["This field may not be null."]);
    assert_eq!((refused.status, refused.body), (400, json!({ "name": none, "url": none })));

    assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 204);
    let gone = rest.admin("DELETE", &one, Value::Null).await;
    assert_eq!((gone.status, gone.body), (404, json!({ "detail": "No Stream matches the given query." })));
    assert!(found(&rest, "name=yard").await.is_empty());
}

#[tokio::test]
async fn an_invalid_stream_is_refused_by_field() {
    let rest = stage().await;
    let url = "http://cam.example/1";
    let required = json!(["This field is required."]);
    for (body, errors) in [
        (json!({}), json!({ "name": required, "url": required })),
        (json!({ "name": " ", "url": url }), json!({ "name": ["This field may not be blank."] })),
        (
            json!({ "name": "x".repeat(513), "url": url }),
            json!({ "name": ["Ensure this field has no more than 512 characters."] }),
        ),
        (json!({ "name": "a", "url": "foo bar" }), json!({ "url": ["Enter a valid URL."] })),
        (
            json!({ "name": "a", "url": url, "channel_group": 99, "stream_profile_id": 98 }),
            json!({
                "channel_group": ["Invalid pk \"99\" - object does not exist."],
                "stream_profile_id": ["Invalid pk \"98\" - object does not exist."],
            }),
        ),
        (json!({ "name": "a", "url": url, "logo_url": "x" }), json!({ "logo_url": ["Enter a valid URL."] })),
        (
            json!({ "name": "a", "url": url, "program_number": 0 }),
            json!({ "program_number": ["Ensure this value is greater than or equal to 1."] }),
        ),
    ] {
        let refused = rest.admin("POST", LIST, body.clone()).await;
        assert_eq!((refused.status, refused.body), (400, errors), "{body}");
    }
    let file = rest.admin("POST", LIST, json!({ "name": "a", "url": "file://localhost/etc/passwd" })).await;
    assert!(file.text.contains("The scheme of the URL must be one of: http"), "{}", file.text);
}

#[tokio::test]
async fn an_edit_of_a_stream_from_a_playlist_applies_until_it_is_removed() {
    let rest = stage().await;
    let one = format!("{LIST}1/");
    let edit = json!({ "name": "Mine", "url": "http://b.example/1", "tvg_id": "", "channel_group": 8 });
    let edited = rest.admin("PUT", &one, edit).await;
    assert_eq!(edited.status, 200, "{}", edited.text);
    let body = &edited.body;
    assert_eq!((&body["name"], &body["url"]), (&json!("Mine"), &json!("http://b.example/1")));
    assert_eq!((&body["tvg_id"], &body["channel_group"]), (&json!(null), &json!(8)));
    assert_eq!(body["provider"]["name"], "News One");
    assert_eq!(body["provider"]["channel_group_name"], "Nachrichten");
    assert!(body["provider"]["url"].as_str().unwrap().ends_with("/1.ts"));
    assert_eq!(body["last_seen"], "1970-01-01T00:00:05.000Z", "it was there at the last good refresh");

    let all = json!({ "name": null, "url": null, "tvg_id": null, "channel_group": null });
    let back = rest.admin("PATCH", &one, all).await.body;
    assert_eq!(
        (&back["name"], &back["tvg_id"], &back["channel_group"]),
        (&json!("News One"), &json!("news.one"), &json!(7))
    );
    assert!(back["url"].as_str().unwrap().ends_with("/1.ts"));
    assert_eq!(back["provider"], Value::Null);
    let stored = rest.models.store.collection::<Stream>().get(1).unwrap().unwrap();
    assert!(stored.manual.is_empty());
}

#[tokio::test]
async fn sending_back_an_unchanged_stream_edits_nothing() {
    let rest = stage().await;
    let rule = StreamOverrides { name: Some("By rule".to_owned()), ..StreamOverrides::default() };
    rest.put([Stream { rule, ..stream(1, 2, "News One", Some("Nachrichten"), None) }]).await;
    let one = format!("{LIST}1/");
    let shown = rest.admin("GET", &one, Value::Null).await.body;
    let mut sent = shown.clone();
    sent["stream_profile_id"] = json!(2);
    // A renamed group has another name than the provider's.
    sent.as_object_mut().unwrap().remove("channel_group");
    let answer = rest.admin("PUT", &one, sent).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let stored = rest.models.store.collection::<Stream>().get(1).unwrap().unwrap();
    assert!(stored.manual.is_empty(), "{:?}", stored.manual);
    assert_eq!(answer.body["stream_profile_id"], 2);
    let version = rest.models.store.version();
    assert_eq!(rest.admin("PATCH", &one, json!({ "name": "By rule" })).await.status, 200);
    assert_eq!(rest.models.store.version(), version, "nothing changed, so nothing is written");
}

#[tokio::test]
async fn a_deleted_stream_is_removed_from_its_channels_and_its_account_compares_the_whole_list_again() {
    let rest = stage().await;
    assert_eq!(rest.admin("DELETE", &format!("{LIST}1/"), Value::Null).await.status, 204);
    let channels = rest.models.channels.load();
    assert_eq!(channels.get(1).unwrap().streams, [StreamId(3)]);
    assert_eq!(channels.get(2).unwrap().streams, [StreamId(5)]);
    let refresh = rest.models.refreshes.load().get(2).cloned().unwrap();
    assert_eq!((refresh.digest, refresh.good_at), (None, Some(5_000)));
}

#[tokio::test]
async fn many_streams_are_deleted_at_once_and_unknown_ones_are_ignored() {
    let rest = stage().await;
    let deleted = rest.admin("POST", BULK_DELETE, json!({ "ids": [1, 1, 999] })).await;
    let said = (&json!("Deleted 1 streams"), &json!(1));
    assert_eq!((deleted.status, (&deleted.body["message"], &deleted.body["deleted_count"])), (200, said));
    assert_eq!(rest.admin("DELETE", BULK_DELETE, json!({ "stream_ids": [2] })).await.status, 204);
    assert_eq!(rest.admin("DELETE", &format!("{BULK_DELETE}?ids=3,4"), Value::Null).await.status, 204);
    assert_eq!(found(&rest, "").await, [5, 7]);
    for (method, body) in [("POST", json!({})), ("DELETE", Value::Null)] {
        let refused = rest.admin(method, BULK_DELETE, body).await;
        let errors = json!({ "ids": ["This field is required."] });
        assert_eq!((refused.status, refused.body), (400, errors), "{method}");
    }
    let many: Vec<u32> = (0..10_001).collect();
    let refused = rest.admin("POST", BULK_DELETE, json!({ "ids": many })).await;
    let errors = json!({ "ids": ["Ensure this field has no more than 10000 elements."] });
    assert_eq!((refused.status, refused.body), (400, errors));
}

#[tokio::test]
async fn streams_are_listed_by_ids_in_the_order_of_the_request() {
    let rest = stage().await;
    let shown = rest.standard("POST", BY_IDS, json!({ "ids": [5, 999, 1, 6] })).await;
    let ids: Vec<_> = shown.body.as_array().unwrap().iter().map(|it| it["id"].clone()).collect();
    assert_eq!((shown.status, ids), (200, vec![json!(5), json!(1), json!(6)]));
    assert_eq!(shown.body[1]["stream_chno"], json!(4.1));
    assert_eq!(shown.body[1]["stream_hash"], "0000000200000001");
}

/// Stream 3 is healthy, 1 fails, and 5 fails more; the others were never played.
fn played(rest: &Rest) {
    let now = actors::now_ms();
    let mut healthy = StreamHealth::new(StreamId(3));
    healthy.opened(120, now);
    let measurement = Measurement {
        bitrate_kbps: Some(4_000),
        video_codec: Some("H.264".to_owned()),
        audio_codec: None,
        picture: Some((1920, 1080)),
        group_ms: Some(2_500),
        moves: false,
    };
    healthy.measured(measurement, now);
    healthy.lacks(Lack::Motion, true, now);
    let mut failing = StreamHealth::new(StreamId(1));
    failing.failed("status", FailureSide::Stream, now);
    (failing.group_ms, failing.group_at) = (Some(0), Some(now));
    let mut broken = StreamHealth::new(StreamId(5));
    broken.failed("status", FailureSide::Stream, now);
    broken.failed("stall", FailureSide::Stream, now);
    for health in [healthy, failing, broken] {
        rest.system.health().put(health);
    }
}

#[tokio::test]
async fn streams_are_ordered_by_their_health() {
    let rest = stage().await;
    played(&rest);
    assert_eq!(found(&rest, "ordering=health").await, [5, 1, 2, 4, 7, 3]);
    assert_eq!(found(&rest, "ordering=-health").await, [3, 7, 4, 2, 1, 5]);
    assert_eq!(found(&rest, "ordering=-health&assigned=1").await, [3, 1]);
    assert_eq!(found(&rest, "ordering=health&unassigned=true").await, [2, 4, 7]);
    let mut pages = Vec::new();
    for page in 1..=3 {
        let path = format!("{LIST}?ordering=-health&page_size=2&page={page}");
        let answer = rest.standard("GET", &path, Value::Null).await.body;
        assert_eq!(answer["count"], 6);
        pages.extend(answer["results"].as_array().unwrap().iter().map(|it| it["id"].as_u64().unwrap()));
    }
    assert_eq!(pages, [3, 7, 4, 2, 1, 5]);
}

#[tokio::test]
async fn measurements_and_outcomes_are_shown_with_the_stream() {
    let rest = stage().await;
    played(&rest);
    let healthy = rest.standard("GET", &format!("{LIST}3/"), Value::Null).await.body;
    for (field, value) in [
        ("video_codec", json!("H.264")),
        ("audio_codec", json!(null)),
        ("resolution", json!("1920x1080")),
        ("width", json!(1920)),
        ("height", json!(1080)),
        ("bitrate_kbps", json!(4000)),
    ] {
        assert_eq!(healthy["stream_stats"][field], value, "{field}");
    }
    assert!(healthy["stream_stats_updated_at"].is_string());
    assert_eq!(
        (&healthy["health"]["attempts"], &healthy["health"]["first_packet_ms"]),
        (&json!(1), &json!(120))
    );
    assert_eq!(healthy["health"]["group_seconds"], json!(2.5));
    assert!(healthy["health"]["still_picture_at"].is_string());
    let failing = rest.standard("GET", &format!("{LIST}1/"), Value::Null).await.body;
    assert_eq!(
        (&failing["health"]["group_seconds"], &failing["health"]["still_picture_at"]),
        (&json!(0.0), &json!(null))
    );
    let broken = rest.standard("GET", &format!("{LIST}?ids=5"), Value::Null).await.body["results"][0].clone();
    assert_eq!(broken["health"]["causes"], json!({ "status": 1, "stall": 1 }));
    assert_eq!(broken["health"]["group_seconds"], json!(null));
    assert_eq!((&broken["health"]["last_cause"], &broken["stream_stats"]), (&json!("stall"), &json!(null)));
    assert_eq!(rest.standard("GET", &format!("{LIST}2/"), Value::Null).await.body["health"], json!(null));

    let stats = "/api/channels/channels/1/streams/stats/";
    let all = rest.standard("GET", stats, Value::Null).await.body;
    let ids: Vec<_> = all.as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!((ids, &all[0]["stream_stats"]["width"]), (vec![&json!(3), &json!(1)], &json!(1920)));
    let measured =
        rest.standard("GET", &format!("{stats}?since=2020-01-01T00:00:00Z"), Value::Null).await.body;
    assert_eq!((measured.as_array().unwrap().len(), &measured[0]["id"]), (1, &json!(3)));
    let one = rest.standard("GET", &format!("{stats}?ids=1"), Value::Null).await.body;
    assert_eq!((one.as_array().unwrap().len(), &one[0]["id"]), (1, &json!(1)));
}

// Holds T-rx.1 for streams.
#[tokio::test]
async fn a_preview_shows_the_effect_of_patterns_on_the_names_of_a_group() {
    let rest = stage().await;
    let path = "/api/channels/streams/regex-preview/";
    let query = "channel_group=News&find=%5Enews+(.*)&replace=$1&match=One&exclude=two&limit=1";
    let shown = rest.standard("GET", &format!("{path}?{query}"), Value::Null).await;
    assert_eq!((shown.status, &shown.body["total_in_group"]), (200, &json!(2)), "{}", shown.text);
    assert_eq!(shown.body["find_match_count"], 0, "patterns respect the case");
    let query = "channel_group=7&find=%5ENews+(.*)&replace=$1&match=One&exclude=(";
    let shown = rest.standard("GET", &format!("{path}?{query}"), Value::Null).await.body;
    let matches = json!([{ "before": "News One", "after": "One" }, { "before": "News Two", "after": "Two" }]);
    assert_eq!((&shown["find_matches"], &shown["find_match_count"]), (&matches, &json!(2)));
    assert_eq!((&shown["filter_matches"], &shown["exclude_matches"]), (&json!(["News One"]), &json!(null)));
    assert!(shown["exclude_error"].is_string() && shown["scan_limit_hit"] == false, "{shown}");
    assert_eq!(rest.standard("GET", path, Value::Null).await.status, 400);
}

#[tokio::test]
async fn a_deletion_of_many_streams_is_undone_with_the_order_of_their_channels() {
    let rest = stage().await;
    let streams = async || {
        rest.models.streams.at(rest.models.store.version()).await.unwrap();
        found(&rest, "").await
    };
    let channel_streams = || {
        let channels = rest.models.channels.load();
        channels.iter().map(|it| it.streams.clone()).collect::<Vec<_>>()
    };
    let (before, channel_streams_before) = (streams().await, channel_streams());
    let stored = rest.models.store.collection::<Stream>().get(1).unwrap();
    let filter = json!({ "filter": { "channel_group_name": "News" }, "except": [2] });
    let deleted = rest.admin("POST", BULK_DELETE, filter).await;
    assert_eq!((deleted.status, &deleted.body["deleted_count"]), (200, &json!(1)), "{}", deleted.text);
    assert!(!streams().await.contains(&1) && channel_streams()[0] == [StreamId(3)]);

    // The next refresh of the account compares its whole list in both cases.
    rest.put([RefreshRecord { digest: Some([7; 32]), ..RefreshRecord::new(AccountId(2)) }]).await;
    let undone = rest.admin("POST", deleted.body["undo"]["url"].as_str().unwrap(), Value::Null).await;
    assert_eq!((undone.status, &undone.body["message"]), (200, &json!("Undone: Deleted 1 streams")));
    assert_eq!((streams().await, channel_streams()), (before.clone(), channel_streams_before.clone()));
    assert_eq!(rest.models.store.collection::<Stream>().get(1).unwrap(), stored);
    assert_eq!(rest.models.refreshes.load().get(2).unwrap().digest, None);

    // The undo is such an operation too.
    let again = rest.admin("POST", undone.body["undo"]["url"].as_str().unwrap(), Value::Null).await;
    assert_eq!(again.status, 200, "{}", again.text);
    assert!(!streams().await.contains(&1) && channel_streams()[0] == [StreamId(3)]);
    let back = rest.admin("POST", again.body["undo"]["url"].as_str().unwrap(), Value::Null).await;
    assert_eq!((back.status, streams().await), (200, before));
}

#[tokio::test]
async fn an_undo_of_deleted_streams_is_refused_after_changes_that_it_would_lose() {
    let rest = stage().await;
    let deleted = rest.admin("POST", BULK_DELETE, json!({ "ids": [1, 5] })).await.body;
    let undo = deleted["undo"]["url"].as_str().unwrap();
    rest.admin("PATCH", "/api/channels/channels/1/", json!({ "streams": [] })).await;
    let gone = rest.models.store.write(|write| write.remove::<Account>(3)).await;
    assert!(gone.is_ok(), "{gone:?}");
    let refused = rest.admin("POST", undo, Value::Null).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    let conflicts = refused.body["conflicts"].as_array().unwrap();
    let messages: Vec<_> = conflicts.iter().map(|it| (&it["record"], &it["id"], &it["message"])).collect();
    let changed = (&json!("channel"), &json!(1), &json!("The channel was changed."));
    let account = (&json!("stream"), &json!(5), &json!("The account of the stream was deleted."));
    assert_eq!(messages, [changed, account]);
    let unknown = rest.models.store.collection::<Stream>().get(1).unwrap();
    assert!(unknown.is_none(), "nothing was restored");
}

#[tokio::test]
async fn a_deletion_in_several_commits_has_one_handle() {
    let rest = Rest::start().await;
    rest.put([account(2, "Zeta", true)]).await;
    rest.put((1..=2_500).map(|id| stream(id, 2, "many", None, None))).await;
    rest.put([channel(1, &[1, 2_000, 2_400])]).await;
    let ids: Vec<u32> = (1..=2_500).collect();
    let deleted = rest.admin("POST", BULK_DELETE, json!({ "ids": ids })).await;
    assert_eq!((deleted.status, &deleted.body["deleted_count"]), (200, &json!(2_500)), "{}", deleted.text);
    let list = rest.admin("GET", "/api/channels/undo/", Value::Null).await.body;
    assert_eq!((&list["count"], &list["results"][0]["changed_count"]), (&json!(1), &json!(2_501)));
    assert_eq!(list["results"][0]["message"], "Deleted 2500 streams");
    let undone = rest.admin("POST", deleted.body["undo"]["url"].as_str().unwrap(), Value::Null).await;
    assert_eq!(undone.status, 200, "{}", undone.text);
    assert_eq!(rest.models.store.collection::<Stream>().len(), 2_500);
    let channel = rest.models.channels.load().get(1).cloned().unwrap();
    assert_eq!(channel.streams, [1, 2_000, 2_400].map(StreamId));
}
