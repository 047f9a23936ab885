//! The answers to player apps: their types, what they contain for whom, and the requests that are refused.

use std::io::Read as _;

use domain::channel::Channel;
use domain::group::Group;
use domain::ids::{ChannelId, GroupId, LineupId, LogoId, PersonalPlaylistId, UserId};
use domain::lineup::Lineup;
use domain::logo::Logo;
use domain::personal_playlist::PersonalPlaylist;
use domain::user::{User, UserLevel};
use domain::vod::TitleId;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::testing::{ADMIN, Answer, INACTIVE, Rest, SECRET, STREAMER, TRUSTED_PROXY};
use crate::title_testing::put_titles;

fn channel(id: u32, name: &str, number: Option<&str>, group: Option<u32>) -> Channel {
    Channel {
        number: number.map(|it| it.parse().unwrap()),
        group: group.map(GroupId),
        ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), name, 1_600_000_000_000)
    }
}

/// Stores channels with and without a number, a group and a logo, and some that not everybody sees.
async fn with_channels() -> Rest {
    let rest = Rest::start().await;
    rest.put((1..=5).map(|id| Group::new(GroupId(id), format!("Group {id}")))).await;
    let logo = Logo {
        id: LogoId(3),
        name: "One".to_owned(),
        url: format!("http://user:{SECRET}@logos.example/1.png"),
        file: None,
        named_by: None,
        guide_source: None,
        updated_at: 0,
    };
    rest.put([logo.clone()]).await;
    rest.put([
        Channel {
            logo: Some(logo.url),
            logo_id: Some(LogoId(3)),
            ..channel(1, "One \"HD\"", Some("7"), Some(1))
        },
        channel(2, "Two", Some("4.1"), Some(2)),
        channel(3, "Three", None, None),
        Channel { is_adult: true, ..channel(4, "Late", Some("5"), Some(3)) },
        Channel { user_level: UserLevel::Standard, ..channel(5, "Staff", Some("6"), Some(4)) },
        Channel { enabled: false, ..channel(6, "Off", Some("8"), Some(5)) },
    ])
    .await;
    rest
}

async fn ask(rest: &Rest, user: u32, query: &str) -> Answer {
    rest.send("GET", &format!("/player_api.php?{}&{query}", rest.query_login(user)), &[], "").await
}

async fn list(rest: &Rest, user: u32, query: &str) -> Vec<Value> {
    let answer = ask(rest, user, query).await;
    assert_eq!((answer.status, answer.headers["content-type"].to_str().unwrap()), (200, "application/json"));
    answer.body.as_array().unwrap_or_else(|| panic!("{query}: {}", answer.text)).clone()
}

fn ids(streams: &[Value]) -> Vec<u64> {
    streams.iter().map(|it| it["stream_id"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn the_account_has_every_field_with_the_type_that_apps_expect() {
    let rest = with_channels().await;
    let anna = User { stream_limit: 3, joined_at: 1_500_000_000_999, ..(*rest.user(STREAMER)).clone() };
    rest.put([anna]).await;
    for query in ["", "action=get_account_info", "action=get_profile", "action=%00x", "action=&category_id=1"]
    {
        let answer = ask(&rest, STREAMER, query).await;
        if query.contains("%00") {
            assert_eq!(answer.status, 400, "{}", answer.text);
            continue;
        }
        assert_eq!(answer.status, 200, "{query}: {}", answer.text);
        assert_eq!(answer.headers["cache-control"], "no-store");
        let user = json!({
            "username": "streamer", "password": format!("{SECRET} {STREAMER}"), "message": "", "auth": 1,
            "status": "Active", "exp_date": "2147483647", "is_trial": "0", "active_cons": "0",
            "created_at": "1500000000", "max_connections": "3", "allowed_output_formats": ["ts", "m3u8", "mp4"],
        });
        assert_eq!(answer.body["user_info"], user);
        let server = &answer.body["server_info"];
        let expected = json!({
            "url": "192.0.2.1", "port": "9191", "https_port": "", "server_protocol": "http", "rtmp_port": "0",
            "timezone": "UTC", "timestamp_now": server["timestamp_now"], "time_now": server["time_now"],
            "process": true,
        });
        assert_eq!(*server, expected);
        assert!(server["timestamp_now"].as_i64().unwrap() > 1_700_000_000);
        assert_eq!(server["time_now"].as_str().unwrap().len(), "2031-05-04 07:08:09".len());
    }
    let unlimited = ask(&rest, ADMIN, "").await.body;
    assert_eq!(unlimited["user_info"]["max_connections"], "1000");
}

#[tokio::test]
async fn every_channel_has_a_stable_number_a_category_and_the_classic_types() {
    let rest = with_channels().await;
    let streams = list(&rest, ADMIN, "action=get_live_streams").await;
    let one = streams.iter().find(|it| it["stream_id"] == 1).unwrap();
    let icon = one["stream_icon"].as_str().unwrap();
    assert!(icon.starts_with("http://192.0.2.1:9191/api/channels/logos/3/cache/"), "{icon}");
    let expected = json!({
        "num": 7, "name": "One \"HD\"", "stream_type": "live", "stream_id": 1, "stream_icon": icon,
        "epg_channel_id": "7", "added": "1600000000", "is_adult": "0", "category_id": "1", "category_ids": [1],
        "custom_sid": "", "tv_archive": 0, "tv_archive_duration": 0, "direct_source": "",
    });
    assert_eq!(*one, expected);
    let outline: Vec<_> = streams
        .iter()
        .map(|it| json!([it["num"], it["epg_channel_id"], it["category_id"], it["is_adult"]]))
        .collect();
    let expected = json!([
        [100_000_002, "4.1", "2", "0"],
        [5, "5", "3", "1"],
        [6, "6", "4", "0"],
        [7, "7", "1", "0"],
        [100_000_003, "id-3", "2147483647", "0"],
    ]);
    assert_eq!(Value::from(outline), expected);
    let categories = list(&rest, ADMIN, "action=get_live_categories").await;
    let category = |id: &str, name: &str| json!({ "category_id": id, "category_name": name, "parent_id": 0 });
    let expected = [
        category("2", "Group 2"),
        category("3", "Group 3"),
        category("4", "Group 4"),
        category("1", "Group 1"),
        category("2147483647", "Other"),
    ];
    assert_eq!(categories, expected);
    for (id, expected) in [
        ("1", vec![1]),
        ("2147483647", vec![3]),
        ("5", vec![]),
        ("99", vec![]),
        ("x", vec![]),
        ("*", vec![]),
        ("-1", vec![]),
    ] {
        let found = list(&rest, ADMIN, &format!("action=get_live_streams&category_id={id}")).await;
        assert_eq!(ids(&found), expected, "{id}");
    }
    assert_eq!(list(&rest, ADMIN, "action=get_live_streams&category_id=").await.len(), 5);
}

#[tokio::test]
async fn a_user_gets_the_channels_and_groups_that_the_user_may_watch_with_the_same_numbers() {
    let rest = with_channels().await;
    let all = list(&rest, ADMIN, "action=get_live_streams").await;
    let mut lineup = Lineup::new(LineupId(1), "Kids", false);
    lineup.set(ChannelId(3), true);
    lineup.set(ChannelId(4), true);
    rest.put([lineup]).await;
    let streamer = (*rest.user(STREAMER)).clone();
    for (user, expected, groups) in [
        (streamer.clone(), vec![2, 4, 1, 3], vec!["2", "3", "1", "2147483647"]),
        (User { hide_adult: true, ..streamer.clone() }, vec![2, 1, 3], vec!["2", "1", "2147483647"]),
        (User { lineups: vec![LineupId(1)], ..streamer.clone() }, vec![4, 3], vec!["3", "2147483647"]),
        (User { lineups: vec![LineupId(9)], ..streamer }, vec![], vec![]),
    ] {
        rest.put([user]).await;
        let streams = list(&rest, STREAMER, "action=get_live_streams").await;
        assert_eq!(ids(&streams), expected);
        assert!(streams.iter().all(|it| all.contains(it)), "entries are the same for every user");
        let categories = list(&rest, STREAMER, "action=get_live_categories").await;
        let found: Vec<_> = categories.iter().map(|it| it["category_id"].as_str().unwrap()).collect();
        assert_eq!(found, groups);
        let path = format!("/panel_api.php?{}", rest.query_login(STREAMER));
        let everything = rest.send("GET", &path, &[], "").await.body;
        assert_eq!(everything["categories"]["live"], Value::from(categories));
        let members = everything["available_channels"].as_object().unwrap();
        assert_eq!(members.len(), streams.len());
        assert!(streams.iter().all(|it| members[&it["stream_id"].to_string()] == *it));
    }
}

#[tokio::test]
async fn lists_without_content_have_the_shape_of_their_action_and_unknown_titles_are_not_found() {
    let rest = with_channels().await;
    let long = "9".repeat(300);
    for (query, expected) in [
        ("action=get_vod_categories".to_owned(), json!([])),
        ("action=get_vod_streams&category_id=x".to_owned(), json!([])),
        ("action=get_series_categories".to_owned(), json!([])),
        ("action=get_series".to_owned(), json!([])),
        ("action=get_short_epg&stream_id=1&limit=abc".to_owned(), json!({ "epg_listings": [] })),
        (format!("action=get_simple_data_table&stream_id={long}"), json!({ "epg_listings": [] })),
        ("action=get_short_epg".to_owned(), json!({ "epg_listings": [] })),
        (format!("action=get_live_streams&category_id={long}"), json!([])),
    ] {
        let answer = ask(&rest, STREAMER, &query).await;
        assert_eq!((answer.status, answer.body), (200, expected), "{query}");
    }
    let long_vod = format!("action=get_vod_info&vod_id={long}");
    for (query, what) in [
        (&*long_vod, "Movie"),
        ("action=get_vod_info", "Movie"),
        ("action=get_vod_info&vod_id=-1", "Movie"),
        ("action=get_series_info&series_id=7", "Series"),
        ("action=get_series_info&series_id=abc", "Series"),
    ] {
        let answer = ask(&rest, STREAMER, query).await;
        let expected = json!({ "detail": format!("No {what} matches the given query.") });
        assert_eq!((answer.status, answer.body), (404, expected), "{query}");
    }
    let path = format!("/panel_api.php?{}", rest.query_login(STREAMER));
    let everything = rest.send("GET", &path, &[], "").await.body;
    assert_eq!(everything["user_info"]["auth"], 1);
    assert_eq!(
        (&everything["categories"]["movie"], &everything["categories"]["series"]),
        (&json!([]), &json!([]))
    );
    let too_long = ask(&rest, STREAMER, &format!("action=get_short_epg&stream_id={long}9")).await;
    assert_eq!((too_long.status, too_long.body["stream_id"].is_array()), (400, true));
}

async fn with_titles() -> Rest {
    let rest = Rest::start().await;
    put_titles(&rest).await;
    rest
}

#[tokio::test]
async fn a_film_has_the_types_of_panels_and_only_addresses_of_the_gateway() {
    let rest = with_titles().await;
    let films = list(&rest, STREAMER, "action=get_vod_streams").await;
    assert_eq!(films.len(), 2, "{films:?}");
    let mut film = films[0].clone();
    let icon = film["stream_icon"].take();
    assert!(icon.as_str().unwrap().contains("/api/vod/movies/1/image/"), "{icon}");
    assert_eq!(
        film,
        json!({
            "num": 1, "name": "Metropolis", "title": "Metropolis", "stream_type": "movie", "stream_id": 1,
            "stream_icon": null, "rating": "8.3", "rating_5based": 4.15, "added": "1500000000",
            "is_adult": "0", "tmdb_id": "19", "imdb_id": "tt0017136", "trailer": "", "plot": "A city",
            "genre": "Science Fiction, Drama", "year": 1927, "director": "Fritz Lang",
            "cast": "Brigitte Helm", "release_date": "", "category_id": "101", "category_ids": [101],
            "container_extension": "mkv", "custom_sid": "", "direct_source": "",
        })
    );
    assert_eq!(
        (&films[1]["is_adult"], &films[1]["year"], &films[1]["rating"]),
        (&json!("1"), &json!(""), &json!("0"))
    );
    let category = |id: &str, name: &str| json!({ "category_id": id, "category_name": name, "parent_id": 0 });
    let categories = list(&rest, STREAMER, "action=get_vod_categories").await;
    assert_eq!(categories, [category("101", "Drama"), category("102", "Late Night")]);
    let of_series = list(&rest, STREAMER, "action=get_series_categories").await;
    assert_eq!(of_series, [category("103", "Space")]);
    for (id, expected) in [("101", vec![1]), ("102", vec![2]), ("104", vec![]), ("7", vec![]), ("*", vec![])]
    {
        let found = list(&rest, STREAMER, &format!("action=get_vod_streams&category_id={id}")).await;
        assert_eq!(ids(&found), expected, "{id}");
    }
    let user = (*rest.user(STREAMER)).clone();
    rest.put([User { hide_adult: true, ..user }]).await;
    assert_eq!(ids(&list(&rest, STREAMER, "action=get_vod_streams").await), [1]);
    assert_eq!(list(&rest, STREAMER, "action=get_vod_categories").await, [category("101", "Drama")]);
    assert_eq!(ask(&rest, STREAMER, "action=get_vod_info&vod_id=2").await.status, 404);
    let path = format!("/panel_api.php?{}", rest.query_login(STREAMER));
    let everything = rest.send("GET", &path, &[], "").await.body;
    assert_eq!(everything["categories"]["series"], json!(of_series));
}

#[tokio::test]
async fn a_film_is_described_by_its_number_or_by_that_of_a_version() {
    let rest = with_titles().await;
    let whole = ask(&rest, STREAMER, "action=get_vod_info&vod_id=1").await.body;
    let info = &whole["info"];
    let fields = ["name", "year", "duration", "duration_secs", "actors", "tmdb_id", "rating", "bitrate"];
    let values: Vec<&Value> = fields.iter().map(|it| &info[*it]).collect();
    assert_eq!(json!(values), json!(["Metropolis", 1927, "02:33:00", 9180, "Brigitte Helm", "19", "8.3", 0]));
    assert_eq!((info["backdrop_path"].as_array().unwrap().len(), &info["video"]), (1, &json!({})));
    assert_eq!(
        (&whole["movie_data"]["stream_id"], &whole["movie_data"]["category_ids"]),
        (&json!(1), &json!([101]))
    );
    let version = ask(&rest, STREAMER, "action=get_vod_info&vod_id=18").await.body;
    assert_eq!(
        (&version["movie_data"]["stream_id"], &version["info"]["name"]),
        (&json!(18), &json!("Metropolis [4K]"))
    );
    let rows = json!({ "value": { "panel_rows": "versions" } });
    assert_eq!(rest.admin("PATCH", "/api/core/settings/10/", rows).await.status, 200);
    let films = list(&rest, STREAMER, "action=get_vod_streams&category_id=101").await;
    let names: Vec<_> = films.iter().map(|it| json!([it["stream_id"], it["name"]])).collect();
    assert_eq!(names, [json!([17, "Metropolis"]), json!([18, "Metropolis [4K]"])]);
}

#[tokio::test]
async fn a_series_has_its_own_id_and_its_episodes_by_season() {
    let rest = with_titles().await;
    let all = list(&rest, STREAMER, "action=get_series").await;
    let fields = [
        "series_id",
        "name",
        "releaseDate",
        "last_modified",
        "rating_5based",
        "episode_run_time",
        "category_id",
    ];
    let values: Vec<&Value> = fields.iter().map(|it| &all[0][*it]).collect();
    assert_eq!(json!(values), json!([1, "Andor", "2022", "1600000000", 0.0, "0", "103"]));
    let info = ask(&rest, STREAMER, "action=get_series_info&series_id=1").await.body;
    let seasons: Vec<_> = info["seasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["season_number"], it["name"], it["episode_count"], it["air_date"]]))
        .collect();
    assert_eq!(seasons, [json!([0, "Specials", 1, "2022-09-21"]), json!([1, "Season 1", 2, "2022-09-21"])]);
    assert!(info["seasons"][0]["id"].is_u64());
    let episode = &info["episodes"]["1"][1];
    assert_eq!(
        json!([episode["id"], episode["episode_num"], episode["title"], episode["container_extension"]]),
        json!(["2", 2, "That Would Be Me", "mkv"])
    );
    assert_eq!((&episode["info"]["duration"], &episode["info"]["rating"]), (&json!("00:40:00"), &json!(0.0)));
    assert_eq!(info["info"]["series_id"], 1);
}

#[tokio::test]
async fn a_list_of_films_is_not_sent_again_until_a_title_changes() {
    let rest = with_titles().await;
    let path = format!("/player_api.php?{}&action=get_vod_streams", rest.query_login(ADMIN));
    let first = rest.send("GET", &path, &[], "").await;
    let tag = first.headers["etag"].to_str().unwrap().to_owned();
    let again = rest.send("GET", &path, &[("if-none-match", &tag)], "").await;
    assert_eq!((again.status, &*again.text), (304, ""));
    let packed = rest.send_bytes("GET", &path, &[("accept-encoding", "gzip")]).await;
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed.1[..]).read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), packed.0["etag"] == tag), (first.text.as_str(), false));
    let mut film = rest.models.vod.get(TitleId::movie(1).unwrap()).unwrap().unwrap();
    film.edits.name = Some("M".to_owned());
    rest.put([film]).await;
    let changed = rest.send("GET", &path, &[("if-none-match", &tag)], "").await;
    assert_eq!((changed.status, &changed.body[0]["name"]), (200, &json!("M")));
}

#[tokio::test]
async fn films_and_episodes_follow_the_channels_of_a_playlist_by_an_option() {
    let rest = with_titles().await;
    rest.put([channel(1, "One", Some("1"), None)]).await;
    let get = async |query: &str| {
        let path = format!("/get.php?{}&{query}", rest.query_login(STREAMER));
        rest.send("GET", &path, &[], "").await.text
    };
    let addresses = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|it| !it.starts_with('#'));
        lines.map(|it| it.splitn(7, '/').collect::<Vec<_>>()[3..].join("/")).collect()
    };
    assert_eq!(addresses(&get("type=m3u_plus").await).len(), 1);
    let secret = rest.auth.player_secret(&rest.user(STREAMER));
    let login = format!("streamer/{}", secret.expose());
    let films = get("vod=movies").await;
    assert_eq!(
        addresses(&films),
        [format!("live/{login}/1"), format!("movie/{login}/1.mkv"), format!("movie/{login}/2.mkv")]
    );
    assert!(films.contains("group-title=\"Drama\",Metropolis (1927)"), "{films}");
    let all = get("vod=all").await;
    assert!(
        all.contains("Andor S01E02\n") && addresses(&all).contains(&format!("series/{login}/2.mkv")),
        "{all}"
    );
    assert_eq!(addresses(&get("vod=series").await).len(), 4);
    assert_eq!(addresses(&get("vod=false").await).len(), 1);
    assert!(!all.contains(SECRET));
}

#[tokio::test]
async fn the_parameters_may_be_in_the_query_or_in_a_form() {
    let rest = with_channels().await;
    let login = rest.query_login(STREAMER);
    let form = [("content-type", "application/x-www-form-urlencoded; charset=UTF-8")];
    let post = async |path: &str, headers: &[(&str, &str)], body: String| {
        let answer = rest.send("POST", path, headers, body).await;
        (answer.status, answer.body)
    };
    let (path, action) = ("/player_api.php", "action=get_live_categories");
    let expected = (200, Value::from(list(&rest, STREAMER, action).await));
    assert_eq!(post(path, &form, format!("{login}&{action}")).await, expected);
    assert_eq!(post(path, &[], format!("{login}&{action}")).await, expected, "without a content type");
    assert_eq!(post(&format!("{path}?{login}"), &form, action.to_owned()).await, expected);
    assert_eq!(post(&format!("{path}?{action}"), &form, login.clone()).await, expected);
    let query = format!("{path}?{login}&{action}");
    let json = [("content-type", "application/json")];
    assert_eq!(post(&query, &[], String::new()).await, expected);
    assert_eq!(post(&query, &json, String::new()).await, expected, "an empty body of any type");
    assert_eq!(post(&query, &form, format!("{login}&{action}")).await, expected, "the same twice");
    assert_eq!(post(path, &json, "{}".to_owned()).await.0, 415);
    assert_eq!(post(path, &[("content-encoding", "gzip")], "x".to_owned()).await.0, 415);
    assert_eq!(post(path, &form, "a=".repeat(4096)).await.0, 413);
    let empty = (401, json!({ "detail": "Authentication credentials were not provided." }));
    assert_eq!(post(path, &form, String::new()).await, empty);
    for method in ["PUT", "DELETE", "PATCH"] {
        assert_eq!(rest.send(method, &query, &[], "").await.status, 405);
    }
    for path in [&*query, &format!("/panel_api.php?{login}")] {
        assert_eq!(rest.send("HEAD", path, &[], "").await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_parameter_with_two_values_is_refused_by_its_name() {
    let rest = with_channels().await;
    let login = rest.query_login(STREAMER);
    for (query, field) in [
        (format!("{login}&username=admin"), "username"),
        (format!("{login}&password=x"), "password"),
        (format!("{login}&action=a&action=b"), "action"),
        (format!("{login}&stream_id=1&stream_id="), "stream_id"),
    ] {
        let answer = rest.send("GET", &format!("/player_api.php?{query}"), &[], "").await;
        let expected = json!({ field: ["This parameter occurs several times."] });
        assert_eq!((answer.status, answer.body), (400, expected));
    }
    let many = "x=1&".repeat(2000);
    for rubbish in ["&&=&%&x=%ff", "stream_id=1&stream_id=1", "x=1&x=2", &many] {
        assert_eq!(ask(&rest, STREAMER, rubbish).await.status, 200, "{rubbish:.20}");
    }
}

#[tokio::test]
async fn wrong_logins_get_the_same_answer_and_cost_a_report() {
    let rest = with_channels().await;
    for path in ["/player_api.php", "/panel_api.php"] {
        let mut answers = Vec::new();
        for login in [
            "username=streamer&password=wrong".to_owned(),
            "username=nobody&password=wrong".to_owned(),
            "username=streamer&password=".to_owned(),
            rest.query_login(INACTIVE),
            format!("username={}&password=x", "n".repeat(300)),
        ] {
            let answer = rest.send("GET", &format!("{path}?{login}"), &[], "").await;
            assert_eq!(answer.headers["content-type"], "application/json", "{login}");
            answers.push((answer.status, answer.text));
        }
        assert_eq!(answers[0].0, 401);
        assert!(answers.iter().all(|it| *it == answers[0]), "{answers:?}");
        for missing in ["", "username=streamer", "password=x"] {
            assert_eq!(rest.send("GET", &format!("{path}?{missing}"), &[], "").await.status, 401);
        }
        let bearer = rest.bearer(ADMIN);
        let token = rest.send("GET", path, &[("authorization", &bearer)], "").await;
        assert_eq!(token.status, 401, "only the login in the parameters counts");
    }
}

#[tokio::test]
async fn a_list_that_the_client_has_is_not_sent_again_until_it_changes() {
    let rest = with_channels().await;
    let path = format!("/player_api.php?{}&action=get_live_streams", rest.query_login(ADMIN));
    let first = rest.send("GET", &path, &[], "").await;
    let tag = first.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(
        (&first.headers["cache-control"], &first.headers["vary"]),
        (&"no-cache".parse().unwrap(), &"Accept-Encoding".parse().unwrap())
    );
    let again = rest.send("GET", &path, &[("if-none-match", &tag)], "").await;
    assert_eq!(
        (again.status, again.text.as_str(), again.headers["etag"].to_str().unwrap()),
        (304, "", &*tag)
    );
    rest.put([channel(7, "New", Some("9"), None)]).await;
    let changed = rest.send("GET", &path, &[("if-none-match", &tag)], "").await;
    assert_eq!((changed.status, changed.body.as_array().unwrap().len()), (200, 6));
    rest.put([Group::new(GroupId(1), "Renamed")]).await;
    assert_eq!(list(&rest, ADMIN, "action=get_live_categories").await[3]["category_name"], "Renamed");
}

#[tokio::test]
async fn a_list_is_compressed_for_clients_that_accept_it() {
    let rest = with_channels().await;
    let path = format!("/player_api.php?{}&action=get_live_streams", rest.query_login(ADMIN));
    let plain = rest.send_bytes("GET", &path, &[]).await;
    let packed = rest.send_bytes("GET", &path, &[("accept-encoding", "gzip, deflate")]).await;
    assert_eq!(
        (plain.0.get("content-encoding"), &packed.0["content-encoding"]),
        (None, &"gzip".parse().unwrap())
    );
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&packed.1[..]).read_to_end(&mut text).unwrap();
    assert_eq!(text, plain.1);
    assert_ne!(plain.0["etag"], packed.0["etag"]);
}

#[tokio::test]
async fn addresses_begin_with_the_public_url_or_with_what_a_trusted_proxy_names() {
    let rest = with_channels().await;
    let path = format!("/player_api.php?{}", rest.query_login(ADMIN));
    let headers = [
        ("host", "inner:9191"),
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "tv.example"),
    ];
    let parts = async |peer: [u8; 4]| {
        let answer = rest.send_from(peer, "GET", &path, &headers).await.body["server_info"].clone();
        ["server_protocol", "url", "port"].map(|it| answer[it].as_str().unwrap().to_owned())
    };
    assert_eq!(parts(TRUSTED_PROXY).await, ["https", "tv.example", "443"]);
    assert_eq!(parts([198, 51, 100, 7]).await, ["http", "inner", "9191"], "a proxy that is not trusted");
    let settings = "/api/core/settings/3/";
    let set = async |url: &str| {
        rest.admin("PATCH", settings, json!({ "value": { "public_url": url } })).await.status
    };
    assert_eq!(set("https://out.example:8443/tv/").await, 200);
    assert_eq!(parts(TRUSTED_PROXY).await, ["https", "out.example", "8443"]);
    let icon = list(&rest, ADMIN, "action=get_live_streams").await[3]["stream_icon"].clone();
    assert!(
        icon.as_str().unwrap().starts_with("https://out.example:8443/tv/api/channels/logos/3/"),
        "{icon}"
    );
    let page = rest.admin("GET", "/api/channels/channels/?page=1&page_size=2", Value::Null).await.body;
    let next = page["next"].as_str().unwrap();
    assert!(next.starts_with("https://out.example:8443/tv/api/channels/channels/?"), "{next}");
    for wrong in ["tv.example", "ftp://tv.example", "https://a:b@tv.example", "https://tv.example/?a"] {
        assert_eq!(set(wrong).await, 400, "{wrong}");
    }
    assert_eq!(set("").await, 200);
    assert_eq!(parts(TRUSTED_PROXY).await, ["https", "tv.example", "443"]);
}

#[tokio::test]
async fn favourites_and_personal_playlists_are_categories_of_their_readers() {
    let rest = with_channels().await;
    let (own, other) = (UserId(STREAMER), UserId(ADMIN));
    let favourites = PersonalPlaylist {
        // The fifth channel needs a higher level, and the sixth is disabled.
        channels: [3, 5, 6, 1].map(ChannelId).into(),
        ..PersonalPlaylist::favorites(PersonalPlaylistId(7), own, 0)
    };
    let assigned = PersonalPlaylist {
        channels: vec![ChannelId(2)],
        assigned_to: [own].into(),
        ..PersonalPlaylist::new(PersonalPlaylistId(8), other, "For Anna", 0)
    };
    let empty = PersonalPlaylist::new(PersonalPlaylistId(9), own, "Empty", 0);
    rest.put([favourites, assigned, empty]).await;

    let categories = list(&rest, STREAMER, "action=get_live_categories").await;
    let names: Vec<_> = categories.iter().map(|it| it["category_name"].as_str().unwrap()).collect();
    assert_eq!(names[..2], ["Favorites", "For Anna"]);
    assert!(!names.contains(&"Empty"), "{names:?}");
    let id = categories[0]["category_id"].as_str().unwrap();
    assert_eq!(id, "2000000007");
    let streams = list(&rest, STREAMER, &format!("action=get_live_streams&category_id={id}")).await;
    assert_eq!(ids(&streams), [3, 1], "in the order of the playlist");
    let all = list(&rest, STREAMER, "action=get_live_streams").await;
    let first = all.iter().find(|it| it["stream_id"] == 1).unwrap();
    assert_eq!((&first["category_id"], &first["category_ids"]), (&json!("1"), &json!([1, 2_000_000_007])));

    let of_admin = list(&rest, ADMIN, "action=get_live_categories").await;
    let names: Vec<_> = of_admin.iter().map(|it| it["category_name"].as_str().unwrap()).collect();
    assert!(names[0] == "For Anna" && !names.contains(&"Favorites"), "{names:?}");
    let foreign = list(&rest, ADMIN, &format!("action=get_live_streams&category_id={id}")).await;
    assert!(foreign.is_empty(), "{foreign:?}");
}
