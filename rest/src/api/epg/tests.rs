//! The guide in the REST interface: the shapes of answers, and who sees which programmes.

use std::collections::BTreeSet;

use domain::channel::Channel;
use domain::group::Group;
use domain::guide::programme::{
    Credit, CreditRole, EpisodeNumber, LocalText, Programme, ProgrammeIcon, ProgrammeRating, ProgrammeVideo,
};
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::{ChannelId, GroupId};
use domain::user::UserLevel;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::guide_testing::{HOUR, four_days, guide_source, now, programme, put_guide};
use crate::testing::{ADMIN, Answer, Rest, SECRET, STANDARD, STREAMER};

fn channel(id: u32, tvg_id: &str) -> Channel {
    let number = Some(id.to_string().parse().unwrap());
    let (tvg_id, group) = (Some(tvg_id.to_owned()), Some(GroupId(1)));
    let uuid = Uuid::from_u128(id.into());
    Channel { number, tvg_id, group, ..Channel::new(ChannelId(id), uuid, format!("Channel {id}"), 0) }
}

/// Stores two guides. Streamers see the channels of `one` and not those of `two`, and `three` has no channel.
async fn with_guides(now: i64) -> Rest {
    let rest = Rest::start().await;
    rest.put([Group::new(GroupId(1), "News")]).await;
    rest.put([
        channel(1, "one"),
        Channel { user_level: UserLevel::Standard, ..channel(2, "two") },
        channel(3, "ONE"),
        channel(4, "no guide"),
    ])
    .await;
    let first = vec![(1, "one", four_days(now, "One")), (2, "two", four_days(now, "Two"))];
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), first).await;
    put_guide(&rest, guide_source(2, GuideSourceKind::Xmltv), vec![(3, "three", four_days(now, "Three"))])
        .await;
    rest
}

async fn get(rest: &Rest, user: u32, path: &str) -> Answer {
    rest.ask(user, "GET", &format!("/api/epg/{path}"), Value::Null).await
}

/// Returns the titles of programmes in a list.
fn titles(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|it| it["title"].as_str().unwrap()).collect()
}

/// Writes a time in hours from `now` for a query.
fn at(now: i64, hours: i64) -> String {
    domain::time::iso_millis((now + hours * HOUR) * 1000)
}

#[tokio::test]
async fn guide_channels_are_an_array_or_a_page_and_are_filtered() {
    let rest = with_guides(now()).await;
    let one = json!({ "id": 1, "tvg_id": "one", "name": "Name of one", "icon_url": null, "epg_source": 1 });
    let all = get(&rest, STANDARD, "epgdata/").await.body;
    assert_eq!((all.as_array().unwrap().len(), &all[0]), (3, &one));
    let page = get(&rest, STANDARD, "epgdata/?page=2&page_size=2").await.body;
    assert_eq!(
        (&page["count"], &page["results"][0]["id"], &page["next"]),
        (&json!(3), &json!(3), &Value::Null)
    );
    assert_eq!(get(&rest, STANDARD, "epgdata/?page=9").await.status, 404);
    for (query, expected) in [
        ("epg_source=2", vec![3]),
        ("search=NAME", vec![1, 2, 3]),
        ("search=three", vec![3]),
        ("tvg_id=t&name=two", vec![2]),
        ("ids=1,3,9", vec![1, 3]),
        ("ordering=-name", vec![2, 3, 1]),
        ("search=nothing", vec![]),
    ] {
        let found = get(&rest, STANDARD, &format!("epgdata/?{query}")).await.body;
        let ids: Vec<_> = found.as_array().unwrap().iter().map(|it| it["id"].as_i64().unwrap()).collect();
        assert_eq!(ids, expected, "{query}");
    }
    assert_eq!(get(&rest, STANDARD, "epgdata/1/").await.body, one);
    assert_eq!(get(&rest, STANDARD, "epgdata/9/").await.status, 404);
    assert_eq!(get(&rest, STREAMER, "epgdata/").await.status, 403);
}

#[tokio::test]
async fn the_grid_shows_a_day_of_the_visible_channels_and_nothing_for_channels_without_a_guide() {
    let now = now();
    let rest = with_guides(now).await;
    let grid = get(&rest, STREAMER, "grid/").await.body;
    assert_eq!(titles(&grid["data"]), ["One today", "One tomorrow"]);
    let entry = &grid["data"][0];
    let expected = json!({
        "id": entry["id"], "start_time": at(now, -12), "end_time": at(now, 12), "title": "One today",
        "display_title": "One today", "sub_title": null, "description": "About One today.", "tvg_id": "one", "season": null, "episode": null,
        "is_new": false, "is_live": false, "is_premiere": false, "is_finale": false, "categories": [], "channel_ids": [1, 3],
    });
    assert_eq!(*entry, expected);
    assert!(entry["id"].as_u64().unwrap() < 1 << 53);
    for (user, query, expected) in [
        (STANDARD, String::new(), vec!["One today", "One tomorrow", "Two today", "Two tomorrow"]),
        (STANDARD, "channels=2,4,9".to_owned(), vec!["Two today", "Two tomorrow"]),
        (STREAMER, "channels=2".to_owned(), vec![]),
        (STREAMER, format!("start={}&end={}", at(now, -40), at(now, -20)), vec!["One yesterday"]),
        (STREAMER, format!("end={}", at(now, 1)), vec!["One today"]),
    ] {
        let found = get(&rest, user, &format!("grid/?{query}")).await.body;
        assert_eq!(titles(&found["data"]), expected, "{user} {query}");
    }
    for (query, field) in [
        ("start=zzz".to_owned(), "start"),
        (format!("start={}&end={}", at(now, 1), at(now, 1)), "end"),
        (format!("start={}&end={}", at(now, 0), at(now, 15 * 24)), "end"),
    ] {
        let refused = get(&rest, STREAMER, &format!("grid/?{query}")).await;
        assert_eq!((refused.status, refused.body[field].is_array()), (400, true), "{query}");
    }
}

#[tokio::test]
async fn the_running_programme_of_each_channel_has_the_next_one() {
    let rest = with_guides(now()).await;
    let uuids = [1, 2, 3, 4, 9].map(|it| Uuid::from_u128(it).to_string());
    let ask = async |user: u32, body: Value| rest.ask(user, "POST", "/api/epg/current-programs/", body).await;
    for (user, expected) in [(STREAMER, vec![0, 2]), (STANDARD, vec![0, 1, 2])] {
        let found = ask(user, json!({ "channel_uuids": uuids })).await.body;
        let of: Vec<_> = found.as_array().unwrap().iter().map(|it| it["channel_uuid"].clone()).collect();
        assert_eq!(of, expected.into_iter().map(|it: usize| json!(uuids[it])).collect::<Vec<_>>());
        assert_eq!(
            (&found[0]["title"], &found[0]["next"]["title"]),
            (&json!("One today"), &json!("One tomorrow"))
        );
    }
    let found = ask(STANDARD, json!({ "epg_data_ids": [3, 9] })).await.body;
    assert_eq!((titles(&found), &found[0]["epg_data_id"]), (vec!["Three today"], &json!(3)));
    assert_eq!(titles(&ask(STREAMER, json!({ "epg_data_ids": [1, 2, 3] })).await.body), ["One today"]);
    for body in [
        json!({ "channel_uuids": [], "epg_data_ids": [] }),
        json!({}),
        json!({ "epg_data_ids": vec![1; 51] }),
    ] {
        assert_eq!(ask(STANDARD, body.clone()).await.status, 400, "{body}");
    }
}

#[tokio::test]
async fn a_search_finds_programmes_by_words_times_and_channels() {
    let now = now();
    let rest = with_guides(now).await;
    for (user, query, expected) in [
        (STANDARD, "title=two".to_owned(), vec!["Two yesterday", "Two today", "Two tomorrow", "Two later"]),
        (STANDARD, "title=yest AND (one OR three)".to_owned(), vec!["One yesterday", "Three yesterday"]),
        (STANDARD, "title=\"one to\"".to_owned(), vec!["One today", "One tomorrow"]),
        (STANDARD, "title=tom&title_whole_words=true".to_owned(), vec![]),
        (STANDARD, "description=about later&epg_source=1".to_owned(), vec!["One later", "Two later"]),
        (STANDARD, "search=later&epg_source=guide 2".to_owned(), vec!["Three later"]),
        (STANDARD, format!("airing_at={}&tvg_id=ONE", at(now, 0)), vec!["One today"]),
        (STANDARD, format!("start_after={}&tvg_id=two", at(now, 12)), vec!["Two tomorrow", "Two later"]),
        (STANDARD, format!("start_before={}&tvg_id=two", at(now, -36)), vec!["Two yesterday"]),
        (STANDARD, format!("end_after={}&tvg_id=two", at(now, 60)), vec!["Two later"]),
        (STANDARD, format!("end_before={}&tvg_id=two", at(now, -12)), vec!["Two yesterday"]),
        (STANDARD, "title=today&channel=nel 3".to_owned(), vec!["One today"]),
        (STANDARD, "title=today&channel_id=2".to_owned(), vec!["Two today"]),
        (STANDARD, "title=today&group=new".to_owned(), vec!["One today", "Two today"]),
        (STANDARD, "title=today&stream=x".to_owned(), vec![]),
        (
            STANDARD,
            format!("title=^(one|two) T&title_regex=true&airing_at={}", at(now, 0)),
            vec!["One today", "Two today"],
        ),
        (STREAMER, "title=today".to_owned(), vec!["One today"]),
        (STREAMER, "title=today&channel_id=2".to_owned(), vec![]),
    ] {
        let path =
            format!("programs/search/?{}", query.replace(' ', "%20").replace('"', "%22").replace('^', "%5E"));
        let found = get(&rest, user, &path).await;
        assert_eq!(found.status, 200, "{query}: {}", found.text);
        assert_eq!(titles(&found.body["results"]), expected, "{query}");
        assert_eq!(found.body["count"], json!(expected.len()), "{query}");
    }
}

#[tokio::test]
async fn a_result_has_its_source_and_the_channels_that_the_caller_sees() {
    let rest = with_guides(now()).await;
    let found = get(&rest, STREAMER, "programs/search/?title=today&page_size=1").await.body;
    let result = &found["results"][0];
    let channel = |id: u32, tvg_id: &str| {
        json!({
            "id": id, "name": format!("Channel {id}"), "channel_number": id, "channel_group": "News", "tvg_id": tvg_id,
        })
    };
    assert_eq!(result["channels"], json!([channel(1, "one"), channel(3, "ONE")]));
    assert_eq!(
        (&result["epg_source"], &result["epg_name"], &result["streams"], &result["custom_properties"]),
        (&json!("Guide 1"), &json!("Name of one"), &json!([]), &json!({}))
    );
    let path = "programs/search/?title=today&fields=title,start_time&page=2&page_size=1";
    let page = get(&rest, STANDARD, path).await.body;
    let members: BTreeSet<_> = page["results"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((members, &page["count"]), (BTreeSet::from(["start_time", "title"]), &json!(3)));
    assert!(page["next"].as_str().unwrap().contains("page=3"));
}

#[tokio::test]
async fn an_invalid_search_is_refused_by_the_name_of_its_parameter() {
    let rest = with_guides(now()).await;
    for (query, field) in [
        ("airing_at=zzz", "airing_at"),
        ("title=%28a", "title"),
        ("title=a%20OR", "title"),
        ("description=%22a", "description"),
        ("title=%5B&title_regex=true&airing_at=2031-05-04T07:08:09Z", "title"),
        ("title=a&title_regex=true", "title"),
        ("title=a&title_regex=true&start_after=2031-05-04&start_before=2031-06-04", "title"),
        ("fields=title,password", "fields"),
        ("page=2000&page_size=500", "page"),
    ] {
        let refused = get(&rest, STREAMER, &format!("programs/search/?{query}")).await;
        assert_eq!(
            (refused.status, refused.body[field].is_array()),
            (400, true),
            "{query}: {}",
            refused.text
        );
    }
    let regex = get(&rest, STREAMER, "programs/search/?title=a&title_regex=true").await;
    assert!(regex.text.contains("at most 7 days"), "{}", regex.text);
}

#[tokio::test]
async fn a_programme_has_all_that_its_guide_says() {
    let (rest, now) = (Rest::start().await, now());
    rest.put([channel(1, "one")]).await;
    let number = |system: &str, value: &str| EpisodeNumber {
        system: Some(system.to_owned()),
        value: value.to_owned(),
    };
    let actor = Credit { character: Some("Hero".to_owned()), ..Credit::new(CreditRole::Actor, "Act One") };
    let rich = Programme {
        sub_titles: vec![LocalText::new("Part 6")],
        categories: ["News", "Live"].map(LocalText::new).into(),
        credits: vec![Credit::new(CreditRole::Director, "Dir One"), actor],
        date: Some("2024".to_owned()),
        episode_numbers: vec![number("onscreen", "S02E01"), number("xmltv_ns", "1.0.")],
        video: Some(ProgrammeVideo {
            aspect: Some("16:9".to_owned()),
            quality: Some("HDTV".to_owned()),
            ..ProgrammeVideo::default()
        }),
        ratings: vec![ProgrammeRating {
            system: Some("MPAA".to_owned()),
            value: "PG".to_owned(),
            ..ProgrammeRating::default()
        }],
        star_ratings: vec![ProgrammeRating { value: "7/10".to_owned(), ..ProgrammeRating::default() }],
        icons: vec![ProgrammeIcon {
            src: format!("http://anna:{SECRET}@guide.example/p.png?token={SECRET}"),
            ..ProgrammeIcon::default()
        }],
        is_new: true,
        ..programme(now, -1, 1, "News & more")
    };
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), vec![(1, "one", vec![rich])]).await;
    let in_grid = get(&rest, STREAMER, "grid/").await.body["data"][0].clone();
    assert_eq!(in_grid["categories"], json!(["News", "Live"]));
    let id = in_grid["id"].clone();
    let shown = get(&rest, STREAMER, &format!("programs/{id}/")).await.body;
    let people = json!({
        "actors": [{ "name": "Act One", "role": "Hero" }], "directors": ["Dir One"], "writers": [], "producers": [],
        "presenters": [], "commentators": [], "guests": [],
    });
    for (field, expected) in [
        ("title", json!("News & more")),
        ("sub_title", json!("Part 6")),
        ("season", json!(2)),
        ("episode", json!(1)),
        ("is_new", json!(true)),
        ("categories", json!(["News", "Live"])),
        ("rating", json!("PG")),
        ("rating_system", json!("MPAA")),
        ("star_ratings", json!([{ "value": "7/10" }])),
        ("credits", people),
        ("video_quality", json!("HDTV")),
        ("aspect_ratio", json!("16:9")),
        ("production_date", json!("2024")),
        ("content_ratings", json!([])),
        ("icon", json!("http://guide.example/p.png")),
        ("poster_url", json!(format!("http://192.0.2.1:9191/api/epg/programs/{id}/poster/"))),
    ] {
        assert_eq!(shown[field], expected, "{field}");
    }
    let of_admin = get(&rest, ADMIN, &format!("programs/{id}/")).await.body;
    assert!(of_admin["icon"].as_str().unwrap().contains(SECRET));
    let properties =
        get(&rest, STREAMER, "programs/search/").await.body["results"][0]["custom_properties"].clone();
    assert_eq!((&properties["onscreen_episode"], &properties["season"]), (&json!("S02E01"), &json!(2)));
    // No server of images is reachable.
    let poster = rest.send("GET", &format!("/api/epg/programs/{id}/poster/"), &[], "").await;
    assert_eq!((poster.status, &poster.headers["content-type"]), (200, &"image/png".parse().unwrap()));
}

#[tokio::test]
async fn a_user_of_level_0_sees_only_programmes_of_visible_channels() {
    let now = now();
    let rest = with_guides(now).await;
    let id = async |title: &str| {
        let path = format!("programs/search/?title=\"{title}\"").replace(' ', "%20").replace('"', "%22");
        get(&rest, ADMIN, &path).await.body["results"][0]["id"].clone()
    };
    for (title, of_streamer) in [("One today", 200), ("Two today", 404), ("Three today", 404)] {
        let path = format!("programs/{}/", id(title).await);
        assert_eq!(get(&rest, STREAMER, &path).await.status, of_streamer, "{title}");
        assert_eq!(get(&rest, STANDARD, &path).await.status, 200, "{title}");
    }
    assert_eq!(get(&rest, STREAMER, "programs/").await.status, 403);
    assert_eq!(get(&rest, STANDARD, "programs/?page_size=3").await.body["count"], 12);
    for unknown in ["1", "x", "dummy-1-1", "99999999999999999999", "18446744073709551615"] {
        assert_eq!(get(&rest, ADMIN, &format!("programs/{unknown}/")).await.status, 404, "{unknown}");
        let poster = rest.send("GET", &format!("/api/epg/programs/{unknown}/poster/"), &[], "").await;
        assert_eq!(poster.status, 404, "{unknown}");
    }
}

#[tokio::test]
async fn programmes_are_created_changed_and_deleted_in_written_guides_only() {
    let now = now();
    let rest = with_guides(now).await;
    let list = "/api/epg/programs/";
    let new = json!({
        "start_time": at(now, -1), "end_time": at(now, 1), "title": "Own show", "tvg_id": "own", "season": 1,
        "episode": 12, "categories": ["Home"], "icon": "http://images.example/1.png",
    });
    let refused = rest.admin("POST", list, new.clone()).await;
    assert_eq!((refused.status, refused.body["epg_source"].is_array()), (400, true), "{}", refused.text);
    rest.put([guide_source(7, GuideSourceKind::Written), guide_source(8, GuideSourceKind::Written)]).await;
    assert_eq!(rest.admin("POST", list, new.clone()).await.status, 400, "two sources are possible");
    let with = |changes: Value| {
        let mut body = new.clone();
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        body
    };
    for (changes, field) in [
        (json!({ "epg_source": 1 }), "epg_source"),
        (json!({ "epg_source": 99 }), "epg_source"),
        (json!({ "epg_source": 7, "end_time": at(now, -1) }), "end_time"),
        (json!({ "epg_source": 7, "end_time": at(now, 24 * 40) }), "end_time"),
        (json!({ "epg_source": 7, "start_time": "1999-01-01", "end_time": "1999-01-02" }), "start_time"),
        (json!({ "epg_source": 7, "title": "x".repeat(256) }), "title"),
    ] {
        let refused = rest.admin("POST", list, with(changes.clone())).await;
        assert_eq!(
            (refused.status, refused.body[field].is_array()),
            (400, true),
            "{changes}: {}",
            refused.text
        );
    }
    let made = rest.admin("POST", list, with(json!({ "epg_source": 7 }))).await;
    assert_eq!(
        (made.status, &made.body["title"], &made.body["episode"]),
        (201, &json!("Own show"), &json!(12))
    );
    let later =
        with(json!({ "epg_source": 7, "start_time": at(now, 1), "end_time": at(now, 2), "title": "Later" }));
    assert_eq!(rest.admin("POST", list, later).await.status, 201);

    let one = format!("{list}{}/", made.body["id"]);
    let changed = rest.admin("PATCH", &one, json!({ "title": "Renamed", "start_time": at(now, -2) })).await;
    assert_eq!((changed.status, &changed.body["title"]), (200, &json!("Renamed")), "{}", changed.text);
    assert_eq!(changed.body["categories"], json!(["Home"]));
    assert_eq!(rest.admin("GET", &one, Value::Null).await.status, 404, "its start is in its id");
    let listed = get(&rest, STANDARD, "programs/?epg_source=7").await.body;
    assert_eq!(titles(&listed["results"]), ["Renamed", "Later"]);
    rest.put([channel(9, "own")]).await;
    let running = rest
        .ask(STREAMER, "POST", "/api/epg/current-programs/", json!({ "channel_uuids": [Uuid::from_u128(9)] }))
        .await;
    assert_eq!(running.body[0]["title"], "Renamed");

    let one = format!("{list}{}/", changed.body["id"]);
    assert_eq!(rest.standard("DELETE", &one, Value::Null).await.status, 403);
    assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 204);
    assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 404);
    assert_eq!(titles(&get(&rest, STANDARD, "programs/?epg_source=7").await.body["results"]), ["Later"]);
    let foreign = get(&rest, ADMIN, "grid/?channels=1").await.body["data"][0]["id"].clone();
    let refused = rest.admin("DELETE", &format!("{list}{foreign}/"), Value::Null).await;
    assert_eq!((refused.status, refused.body["epg_source"].is_array()), (400, true));
}

#[tokio::test]
async fn a_written_programme_that_is_sent_back_as_it_was_read_keeps_its_marks() {
    let now = now();
    let rest = with_guides(now).await;
    rest.put([guide_source(7, GuideSourceKind::Written)]).await;
    let new =
        json!({ "start_time": at(now, 1), "end_time": at(now, 2), "title": "Show (New)", "tvg_id": "own" });
    let made = rest.admin("POST", "/api/epg/programs/", new).await;
    let path = format!("/api/epg/programs/{}/", made.body["id"]);
    let read = rest.admin("GET", &path, Value::Null).await.body;
    assert_eq!((&read["title"], &read["display_title"]), (&json!("Show"), &json!("Show (New)")));
    let with = |changes: Value| {
        let mut body = read.clone();
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        body
    };
    for (changes, expected) in [
        (json!({}), ["Show", "Show (New)"]),
        (json!({ "title": "Other" }), ["Other", "Other"]),
        (json!({ "display_title": "Other (Live)" }), ["Other", "Other (Live)"]),
        (json!({ "display_title": "Other" }), ["Other", "Other"]),
    ] {
        let changed = rest.admin("PUT", &path, with(changes.clone())).await;
        assert_eq!(changed.status, 200, "{changes}: {}", changed.text);
        assert_eq!([&changed.body["title"], &changed.body["display_title"]], expected, "{changes}");
    }
}

#[tokio::test]
async fn many_programmes_are_written_together_or_not_at_all() {
    let now = now();
    let rest = with_guides(now).await;
    rest.put([guide_source(7, GuideSourceKind::Written)]).await;
    let bulk = "/api/epg/programs/bulk/";
    let show = |hour: i64, title: &str| json!({ "start_time": at(now, hour), "end_time": at(now, hour + 1), "title": title, "tvg_id": "own" });
    let channel = json!({ "tvg_id": "empty", "name": "Empty", "icon_url": "http://images.example/1.png" });
    let made = rest
        .admin(
            "POST",
            bulk,
            json!({ "channels": [channel], "programs": [show(0, "First"), show(1, "Second")] }),
        )
        .await;
    assert_eq!((made.status, &made.body["epg_source"]), (200, &json!(7)), "{}", made.text);
    let created = &made.body["channels"][0];
    assert_eq!(
        (&created["name"], &created["icon_url"]),
        (&json!("Empty"), &json!("http://images.example/1.png"))
    );
    assert_eq!(get(&rest, STANDARD, "epgdata/?epg_source=7").await.body.as_array().unwrap().len(), 2);
    let listed = || async { get(&rest, STANDARD, "programs/?epg_source=7").await.body["results"].clone() };
    assert_eq!(titles(&listed().await), ["First", "Second"]);
    let ids: Vec<Value> = listed().await.as_array().unwrap().iter().map(|it| it["id"].clone()).collect();
    assert_eq!(made.body["ids"], json!(ids), "in the order of the request");

    let foreign = json!({ "start_time": at(now, 3), "end_time": at(now, 4), "title": "x", "tvg_id": "own", "epg_source": 1 });
    for (body, field, message) in [
        (json!({ "programs": [show(2, "Third"), show(2, "")] }), "programs", "2"),
        (
            json!({ "delete": [ids[0]], "programs": [show(2, "Third"), foreign] }),
            "programs",
            "Item 2: The programme",
        ),
        (
            json!({ "programs": [{ "start_time": at(now, 3), "end_time": at(now, 3), "title": "x", "tvg_id": "own" }] }),
            "programs",
            "Item 1: end_time",
        ),
        (json!({ "epg_source": 1, "programs": [show(2, "Third")] }), "epg_source", "not of the kind"),
        (json!({ "delete": vec![1; 5_001] }), "delete", "5000"),
    ] {
        let refused = rest.admin("POST", bulk, body).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert!(refused.body[field].to_string().contains(message), "{message}: {}", refused.text);
        assert_eq!(titles(&listed().await), ["First", "Second"], "nothing changed");
    }
    assert_eq!(rest.standard("POST", bulk, json!({})).await.status, 403);

    // A programme replaces the one with its start; unknown ids to delete are ignored.
    let body = json!({ "delete": [ids[0], ids[0], 1], "programs": [show(1, "Changed")] });
    assert_eq!(rest.admin("POST", bulk, body).await.status, 200);
    assert_eq!(titles(&listed().await), ["Changed"]);
}

#[tokio::test]
async fn an_inactive_source_is_found_nowhere() {
    let now = now();
    let rest = with_guides(now).await;
    rest.put([GuideSource { is_active: false, ..guide_source(1, GuideSourceKind::Xmltv) }]).await;
    assert_eq!(get(&rest, ADMIN, "grid/").await.body["data"], json!([]));
    let found = get(&rest, ADMIN, "programs/search/?title=today").await.body;
    assert_eq!(titles(&found["results"]), ["Three today"]);
}
