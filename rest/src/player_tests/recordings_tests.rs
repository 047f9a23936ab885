//! Recordings as player apps find them: who finds which, the types, and the setting.

use domain::channel::Channel;
use domain::guide::programme::Programme;
use domain::ids::{ChannelId, RecordingId, RecordingRuleId, UserId};
use domain::recording::rules::EpisodeKey;
use domain::recording::{FollowedAiring, RecordedFile, RecordedProgramme, Recording, RecordingStatus};
use domain::user::UserLevel;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::testing::{ADMIN, Answer, REMOTE, Rest, STANDARD, STREAMER};
use crate::title_testing::put_titles;

/// 2031-05-04, 20:15 in UTC.
const START: i64 = 1_935_692_100_000;
const HOUR: i64 = 3_600_000;
const NEWS: u64 = 2_000_000_001;

fn recording(id: u32, channel: u32, title: &str) -> Recording {
    let file = RecordedFile {
        path: format!("a/{id}.ts"),
        bytes: 188,
        started_at: START,
        ended_at: Some(START + HOUR),
        node: None,
    };
    let programme = RecordedProgramme { title: title.to_owned(), ..RecordedProgramme::default() };
    let (uuid, name) = (Uuid::from_u128(channel.into()), format!("channel {channel}"));
    Recording {
        programme: Some(programme),
        status: RecordingStatus::Completed,
        file: Some(file),
        owner: Some(UserId(ADMIN)),
        ..Recording::new(RecordingId(id), ChannelId(channel), uuid, name, START..START + HOUR, START)
    }
}

/// Channel 1, channel 4, which only admins see, and recordings of both.
async fn stage() -> Rest {
    let rest = Rest::start().await;
    let channel =
        |id: u32| Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("channel {id}"), 0);
    rest.put([channel(1), Channel { user_level: UserLevel::Admin, ..channel(4) }]).await;
    let news = recording(1, 1, "News & more");
    let mut second = recording(2, 1, "Gamma");
    second.programme.as_mut().unwrap().season = Some(2);
    second.programme.as_mut().unwrap().episode = Some(3);
    let mut of_rule = Recording { start: START - 24 * HOUR, ..recording(3, 1, "GAMMA") };
    of_rule.followed = Some(FollowedAiring {
        rule: Some(RecordingRuleId(5)),
        ..FollowedAiring::by_hand(
            &of_rule,
            "gamma.tv".to_owned(),
            EpisodeKey::from_programme(&Programme::default(), "gamma.tv"),
        )
    });
    let hidden = recording(4, 4, "Hidden");
    let own = Recording { owner: Some(UserId(STANDARD)), ..recording(5, 4, "Own") };
    let without_file = Recording { file: None, ..recording(6, 1, "Scheduled") };
    rest.put([news, second, of_rule, hidden, own, without_file]).await;
    rest
}

async fn ask(rest: &Rest, user: u32, query: &str) -> Answer {
    rest.send("GET", &format!("/player_api.php?{}&{query}", rest.query_login(user)), &[], "").await
}

async fn list(rest: &Rest, user: u32, query: &str) -> Vec<Value> {
    let answer = ask(rest, user, query).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
    answer.body.as_array().unwrap_or_else(|| panic!("{query}: {}", answer.text)).clone()
}

async fn names(rest: &Rest, user: u32, query: &str) -> Vec<String> {
    let mut names: Vec<_> =
        list(rest, user, query).await.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

async fn turn_off(rest: &Rest) {
    let rows = rest.admin("GET", "/api/core/settings/", Value::Null).await.body;
    let row = rows["results"].as_array().unwrap().iter().find(|it| it["key"] == "dvr_settings").unwrap();
    let path = format!("/api/core/settings/{}/", row["id"]);
    let set = rest.admin("PATCH", &path, json!({ "value": { "recordings_in_players": false } })).await;
    assert_eq!(set.status, 200, "{}", set.text);
}

/// Checks that two values have the same members with the same types. Lists and texts may be empty.
fn check_types(path: &str, one: &Value, other: &Value) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) if path.ends_with("video") || path.ends_with("audio") => {
            let _ = (one, other);
        }
        (Value::Object(one), Value::Object(other)) => {
            let keys = |it: &serde_json::Map<String, Value>| {
                it.keys().cloned().collect::<std::collections::BTreeSet<_>>()
            };
            assert_eq!(keys(one), keys(other), "{path}");
            one.iter().for_each(|(name, value)| check_types(&format!("{path}.{name}"), value, &other[name]));
        }
        // A year may be a number or an empty text, and a picture may be missing.
        _ if path.ends_with("year") || path.ends_with("icon") => {}
        _ => assert_eq!(std::mem::discriminant(one), std::mem::discriminant(other), "{path}: {one} {other}"),
    }
}

#[tokio::test]
async fn recordings_are_films_of_a_category_for_those_who_may_play_them() {
    let rest = stage().await;
    let seen_by_all = ["GAMMA (2031-05-03 20:15)", "Gamma S02E03", "News & more (2031-05-04 20:15)"];
    assert_eq!(names(&rest, STREAMER, "action=get_vod_streams").await, seen_by_all);
    assert_eq!(names(&rest, STANDARD, "action=get_vod_streams").await[3], "Own (2031-05-04 20:15)");
    assert_eq!(names(&rest, ADMIN, "action=get_vod_streams").await.len(), 5);
    let categories = list(&rest, STREAMER, "action=get_vod_categories").await;
    let category = |id: &str| json!({ "category_id": id, "category_name": "Recordings", "parent_id": 0 });
    assert_eq!(categories, [category("2000000000")]);
    assert_eq!(list(&rest, STREAMER, "action=get_series_categories").await, [category("2000000001")]);
    let of_category = list(&rest, STREAMER, "action=get_vod_streams&category_id=2000000000").await;
    assert_eq!(of_category.len(), 3);
    let news = of_category.iter().find(|it| it["stream_id"] == NEWS).unwrap();
    assert_eq!((&news["added"], &news["container_extension"]), (&json!("1935692100"), &json!("ts")));
    let info = ask(&rest, STREAMER, &format!("action=get_vod_info&vod_id={NEWS}")).await.body;
    assert_eq!(
        (&info["info"]["duration"], &info["movie_data"]["stream_id"]),
        (&json!("01:00:00"), &json!(NEWS))
    );
    let hidden = ask(&rest, STREAMER, "action=get_vod_info&vod_id=2000000004").await;
    assert_eq!(hidden.status, 404, "{}", hidden.text);
    assert_eq!(ask(&rest, ADMIN, "action=get_vod_info&vod_id=2000000004").await.status, 200);
    assert_eq!(ask(&rest, ADMIN, "action=get_vod_info&vod_id=2000000006").await.status, 404);
}

#[tokio::test]
async fn episodes_of_a_title_are_a_series_whatever_made_them() {
    let rest = stage().await;
    let all = list(&rest, STREAMER, "action=get_series").await;
    assert_eq!(all.len(), 1, "{all:?}");
    let id = all[0]["series_id"].as_u64().unwrap();
    let info = ask(&rest, STREAMER, &format!("action=get_series_info&series_id={id}")).await;
    assert_eq!(info.status, 200, "{}", info.text);
    let episodes = &info.body["episodes"];
    let outline = |it: &Value| json!([it["id"], it["episode_num"]]);
    assert_eq!(outline(&episodes["2"][0]), json!(["2000000002", 3]));
    assert_eq!(outline(&episodes["2031"][0]), json!(["2000000003", 503]));
    assert_eq!(info.body["seasons"].as_array().unwrap().len(), 2);
    // The number stays when one of the recordings goes.
    rest.models.store.write(|write| write.remove::<Recording>(2)).await.unwrap();
    assert_eq!(list(&rest, STREAMER, "action=get_series").await[0]["series_id"], id);
    rest.models.store.write(|write| write.remove::<Recording>(3)).await.unwrap();
    assert!(list(&rest, STREAMER, "action=get_series").await.is_empty());
    let gone = ask(&rest, STREAMER, &format!("action=get_series_info&series_id={id}")).await;
    assert_eq!(gone.status, 404);
}

#[tokio::test]
async fn recordings_have_the_types_of_films_and_series_of_the_library() {
    let rest = stage().await;
    put_titles(&rest).await;
    for (action, id) in [("get_vod_streams", "stream_id"), ("get_series", "series_id")] {
        let rows = list(&rest, ADMIN, &format!("action={action}")).await;
        let is_recording = |it: &&Value| it[id].as_u64().unwrap() >= 2_000_000_000;
        let recorded = rows.iter().find(is_recording).unwrap();
        let of_library = rows.iter().find(|it| !is_recording(it)).unwrap();
        check_types(action, recorded, of_library);
    }
    let film = |id: u64| format!("action=get_vod_info&vod_id={id}");
    let (recorded, of_library) = (ask(&rest, ADMIN, &film(NEWS)).await, ask(&rest, ADMIN, &film(1)).await);
    check_types("film", &recorded.body, &of_library.body);
    let id = list(&rest, ADMIN, "action=get_series&category_id=2000000001").await[0]["series_id"].clone();
    let series =
        async |id: Value| ask(&rest, ADMIN, &format!("action=get_series_info&series_id={id}")).await.body;
    let (recorded, of_library) = (series(id).await, series(json!(1)).await);
    check_types("series", &recorded["info"], &of_library["info"]);
    check_types("season", &recorded["seasons"][0], &of_library["seasons"][0]);
    let first = |it: &Value| it["episodes"].as_object().unwrap().values().next().unwrap()[0].clone();
    check_types("episode", &first(&recorded), &first(&of_library));
}

#[tokio::test]
async fn a_playlist_and_a_guide_list_the_recordings_of_the_caller() {
    let rest = stage().await;
    let login = rest.query_login(STREAMER);
    let playlist = rest.send("GET", &format!("/output/recordings.m3u?{login}"), &[], "").await;
    assert_eq!((playlist.status, playlist.text.matches("#EXTINF").count()), (200, 3), "{}", playlist.text);
    assert!(playlist.text.contains("/2000000001.ts\n"), "{}", playlist.text);
    assert!(playlist.text.contains("/output/recordings.xml?username=streamer"), "{}", playlist.text);
    assert!(playlist.text.contains("tvg-id=\"recording-1\""), "{}", playlist.text);
    let guide = rest.send("GET", &format!("/output/recordings.xml?{login}"), &[], "").await;
    assert_eq!((guide.status, guide.text.matches("<programme ").count()), (200, 3), "{}", guide.text);
    let news = "<programme start=\"20310504201500 +0000\" stop=\"20310504211500 +0000\" channel=\"recording-1\">\
        <title>News &amp; more</title></programme>";
    assert!(guide.text.contains(news), "{}", guide.text);
    assert!(guide.text.contains("<episode-num system=\"xmltv_ns\">1.2.</episode-num>"), "{}", guide.text);
    for path in ["/output/recordings.m3u", "/output/recordings.xml"] {
        assert_eq!(rest.send_from(REMOTE, "GET", path, &[]).await.status, 401, "{path}");
        let local = rest.send_from([192, 168, 1, 9], "GET", path, &[]).await;
        assert_eq!(local.status, 200, "{path}: {}", local.text);
        assert!(!local.text.contains("Hidden") && local.text.contains("News"), "{}", local.text);
    }
    let local = rest.send_from([192, 168, 1, 9], "GET", "/output/recordings.m3u", &[]).await;
    assert!(local.text.contains("/proxy/vod/recording/"), "{}", local.text);
}

#[tokio::test]
async fn players_find_no_recordings_if_the_setting_is_off() {
    let rest = stage().await;
    turn_off(&rest).await;
    for action in ["get_vod_streams", "get_vod_categories", "get_series", "get_series_categories"] {
        assert!(list(&rest, ADMIN, &format!("action={action}")).await.is_empty(), "{action}");
    }
    assert_eq!(ask(&rest, ADMIN, &format!("action=get_vod_info&vod_id={NEWS}")).await.status, 404);
    let login = rest.query_login(ADMIN);
    for path in ["/output/recordings.m3u", "/output/recordings.xml"] {
        assert_eq!(rest.send("GET", &format!("{path}?{login}"), &[], "").await.status, 404, "{path}");
    }
    let uuid = RecordingId(1).uuid();
    let file = rest.admin("GET", &format!("/proxy/vod/recording/{uuid}"), Value::Null).await;
    assert_eq!(file.status, 404, "{}", file.text);
}
