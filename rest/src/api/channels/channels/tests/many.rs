//! Operations on many channels, and channels created from streams.

use super::*;

#[tokio::test]
async fn many_channels_are_updated_together_or_not_at_all() {
    let rest = stage().await;
    let (a, b) = (make(&rest, json!({ "name": "a" })).await, make(&rest, json!({ "name": "b" })).await);
    make(&rest, json!({ "name": "c" })).await;
    let path = format!("{LIST}edit/bulk/");
    let swapped = rest
        .admin(
            "PATCH",
            &path,
            json!([
                { "id": b["id"], "number": 1, "streams": [2, 1] },
                { "id": a["id"], "channel_number": 2, "name": "A" },
            ]),
        )
        .await;
    assert_eq!(swapped.status, 200, "{}", swapped.text);
    assert_eq!(swapped.body["message"], "Successfully updated 2 channels");
    assert_eq!(
        (&swapped.body["channels"][0]["name"], &swapped.body["channels"][0]["streams"]),
        (&json!("b"), &json!([2, 1]))
    );
    let numbers_now = [("A".to_owned(), json!(2)), ("b".to_owned(), json!(1)), ("c".to_owned(), json!(3))];
    assert_eq!(numbers(&rest).await, numbers_now);

    for (items, errors) in [
        (
            json!([{ "id": a["id"], "name": "x" }, { "name": "y" }, { "id": 999 }, { "id": a["id"] }]),
            json!({ "id": [
                "Item 2: This field is required.",
                "Item 3: Invalid pk \"999\" - object does not exist.",
                format!("Item 4: Channel {} is listed more than once.", a["id"]),
            ] }),
        ),
        (
            json!([{ "id": a["id"], "number": 8 }, { "id": b["id"], "number": 8 }]),
            json!({ "channel_number": ["Item 2: This field must be unique."] }),
        ),
        (
            json!([{ "id": a["id"], "number": 3 }, { "id": b["id"], "name": "x" }]),
            json!({ "channel_number": ["Item 1: This field must be unique."] }),
        ),
        (
            json!([{ "id": a["id"], "name": "x" }, { "id": b["id"], "streams": [99] }]),
            json!({ "streams": ["Item 2: Invalid pk \"99\" - object does not exist."] }),
        ),
        (json!({ "id": a["id"] }), json!({ "non_field_errors": ["Expected a list of items."] })),
    ] {
        let refused = rest.admin("PATCH", &path, items.clone()).await;
        assert_eq!((refused.status, refused.body), (400, errors), "{items}");
    }
    assert_eq!(numbers(&rest).await, numbers_now, "nothing of it landed");
    let none = rest.admin("PATCH", &path, json!([])).await;
    assert_eq!((none.status, &none.body["channels"]), (200, &json!([])));
}

#[tokio::test]
async fn channels_get_consecutive_numbers_that_skip_those_of_others() {
    let rest = stage().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(make(&rest, json!({ "name": name })).await["id"].clone());
    }
    make(&rest, json!({ "name": "other", "number": 11 })).await;
    ids.reverse();
    let path = format!("{LIST}assign/");
    let done = rest.admin("POST", &path, json!({ "channel_ids": ids, "starting_number": 10 })).await;
    assert_eq!((done.status, &done.body["channel_numbers"]), (200, &json!([10, 12, 13])), "{}", done.text);
    let done = rest.admin("POST", &path, json!({ "channel_ids": ids, "starting_number": 12.0 })).await;
    assert_eq!(done.body["channel_numbers"], json!([12, 13, 14]), "their own are free");
    let done = rest.admin("POST", &path, json!({ "channel_ids": [ids[0]], "starting_number": 50.5 })).await;
    assert_eq!(done.body["channel_numbers"], json!([50.5]));
    let done = rest.admin("POST", &path, json!({ "channel_ids": ids })).await;
    assert_eq!(done.body["channel_numbers"], json!([1, 2, 3]));
    for body in [
        json!({ "channel_ids": [ids[0], 999] }),
        json!({ "channel_ids": [ids[0], ids[0]] }),
        json!({ "channel_ids": ids, "starting_number": 99_999_998 }),
        json!({}),
    ] {
        assert_eq!(rest.admin("POST", &path, body.clone()).await.status, 400, "{body}");
    }
}

#[tokio::test]
async fn a_channel_created_from_a_stream_gets_its_metadata() {
    let rest = stage().await;
    let path = format!("{LIST}from-stream/");
    let from = async |body: Value| {
        let made = rest.admin("POST", &path, body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        made.body
    };
    let channel = from(json!({ "stream_id": 2 })).await;
    for (field, value) in [
        ("name", json!("News Two")),
        ("channel_number", json!(4.1)),
        ("channel_group_id", json!(7)),
        ("tvg_id", json!("guide.2")),
        ("logo_url", json!("http://tv.example/2.png")),
        ("streams", json!([2])),
    ] {
        assert_eq!(channel[field], value, "{field}");
    }
    let number = async |body: Value| from(body).await["channel_number"].clone();
    assert_eq!(number(json!({ "stream_id": 2 })).await, 1, "the provider's number is taken");
    assert_eq!(number(json!({ "stream_id": 3, "name": "Cinema" })).await, 2, "0 is how providers write none");
    assert_eq!(number(json!({ "stream_id": 1, "channel_number": 70 })).await, 70);
    assert_eq!(number(json!({ "stream_id": 1, "channel_number": 0 })).await, 3);
    assert_eq!(number(json!({ "stream_id": 1, "channel_number": -1 })).await, 71);
    let films: Vec<_> = rest.models.groups.load().iter().map(|it| it.name.clone()).collect();
    assert_eq!(films, ["News", "Sports", "Films"], "a group that was not there is made");

    let taken = rest.admin("POST", &path, json!({ "stream_id": 1, "channel_number": 70 })).await;
    assert_eq!(
        (taken.status, taken.body),
        (400, json!({ "channel_number": ["This field must be unique."] }))
    );
    let missing = rest.admin("POST", &path, json!({})).await;
    assert_eq!((missing.status, missing.body), (400, json!({ "stream_id": ["This field is required."] })));
    let unknown = rest.admin("POST", &path, json!({ "stream_id": 999 })).await;
    let text = "No Stream matches the given query.";
    assert_eq!((unknown.status, unknown.body), (404, json!({ "detail": text, "error": text })));
}

#[tokio::test]
async fn many_streams_become_channels_together_or_not_at_all() {
    let rest = stage().await;
    let path = format!("{LIST}from-stream/bulk/");
    for ids in [json!([1, 999]), json!([1, 1])] {
        let refused = rest.admin("POST", &path, json!({ "stream_ids": ids })).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert!(rest.models.channels.load().is_empty());
    }
    let made = rest.admin("POST", &path, json!({ "stream_ids": [4, 2, 1, 3] })).await;
    assert_eq!((made.status, &made.body["created_count"]), (201, &json!(4)), "{}", made.text);
    let shown = async || numbers(&rest).await.into_iter().map(|it| it.1).collect::<Vec<_>>();
    assert_eq!(shown().await, [json!(1), json!(4.1), json!(2), json!(3)]);
    rest.admin("POST", &path, json!({ "stream_ids": [1, 2], "starting_channel_number": 4.1 })).await;
    assert_eq!(shown().await[4..], [json!(5.1), json!(6.1)]);
    rest.admin("POST", &path, json!({ "stream_ids": [1, 2], "starting_channel_number": -1 })).await;
    assert_eq!(shown().await[6..], [json!(7), json!(8)]);
    rest.admin("POST", &path, json!({ "stream_ids": [1, 2], "starting_channel_number": 0 })).await;
    assert_eq!(shown().await[8..], [json!(4), json!(5)]);
}

#[tokio::test]
async fn a_channel_moves_behind_another_one_and_the_following_ones_make_room() {
    let rest = stage().await;
    let mut channels = Vec::new();
    for (name, number) in [("a", "1"), ("b", "2"), ("c", "2.5"), ("d", "3"), ("e", "7")] {
        channels.push(make(&rest, json!({ "name": name, "number": number })).await);
    }
    let [a, b, _, _, e] = &channels[..] else { panic!("five were made") };
    let path = |channel: &Value| format!("{}reorder/", one(channel));
    let moved = rest.admin("POST", &path(e), json!({ "insert_after_id": b["id"] })).await;
    assert_eq!((moved.status, &moved.body["channel"]["channel_number"]), (200, &json!(3)), "{}", moved.text);
    let now = async || numbers(&rest).await.into_iter().map(|it| it.1).collect::<Vec<_>>();
    assert_eq!(now().await, [json!(1), json!(2), json!(2.5), json!(4), json!(3)]);
    let moved = rest.admin("POST", &path(b), json!({ "insert_after_id": null })).await;
    assert_eq!(moved.body["message"], "Channel b has number 1");
    assert_eq!(now().await, [json!(2), json!(1), json!(2.5), json!(4), json!(3)], "as few as can be");
    for body in [json!({ "insert_after_id": a["id"] }), json!({ "insert_after_id": 999 })] {
        assert_eq!(rest.admin("POST", &path(a), body.clone()).await.status, 400, "{body}");
    }
}

#[tokio::test]
async fn many_channels_are_deleted_at_once_and_unknown_ones_are_ignored() {
    let rest = stage().await;
    for name in ["a", "b", "c", "d"] {
        make(&rest, json!({ "name": name })).await;
    }
    let path = format!("{LIST}bulk-delete/");
    let deleted = rest.admin("POST", &path, json!({ "ids": [1, 1, 999] })).await;
    assert_eq!((deleted.status, &deleted.body["deleted_count"]), (200, &json!(1)));
    assert_eq!(rest.admin("DELETE", &path, json!({ "channel_ids": [2] })).await.status, 204);
    assert_eq!(rest.admin("DELETE", &format!("{path}?ids=3,99"), Value::Null).await.status, 204);
    assert_eq!(names(&rest, "").await, ["d"]);
    for (method, body) in [("POST", json!({})), ("DELETE", Value::Null)] {
        assert_eq!(rest.admin(method, &path, body).await.status, 400, "{method}");
    }
}

// Holds T-rest.3 for channels and streams.
#[tokio::test]
async fn bulk_operations_accept_an_empty_list() {
    let rest = stage().await;
    let path = |action: &str| format!("{LIST}{action}/");
    for (method, path, body) in [
        ("POST", path("from-stream/bulk"), json!({ "stream_ids": [] })),
        ("POST", path("edit/bulk"), json!({ "ids": [], "values": { "enabled": false } })),
        ("POST", path("edit/bulk-regex"), json!({ "ids": [], "find": "a" })),
        ("POST", path("assign-streams"), json!({ "ids": [], "stream_ids": [] })),
        ("POST", path("assign-streams"), json!({ "assignments": [] })),
        ("POST", path("reorder"), json!({ "ids": [], "insert_after_id": null })),
        ("POST", "/api/channels/logos/bulk-delete/".to_owned(), json!({ "ids": [] })),
        ("POST", path("assign"), json!({ "channel_ids": [] })),
        ("PATCH", path("edit/bulk"), json!([])),
        ("POST", path("by-uuids"), json!({ "uuids": [] })),
        ("POST", path("bulk-delete"), json!({ "ids": [] })),
        ("DELETE", path("bulk-delete"), json!({ "ids": [] })),
        ("POST", "/api/channels/streams/by-ids/".to_owned(), json!({ "ids": [] })),
        ("POST", "/api/channels/streams/bulk-delete/".to_owned(), json!({ "ids": [] })),
    ] {
        let version = rest.models.store.version();
        let answer = rest.admin(method, &path, body).await;
        assert!((200..300).contains(&answer.status), "{path}: {}", answer.text);
        assert_eq!(rest.models.store.version(), version, "{path}");
    }
}

#[tokio::test]
async fn a_filter_with_exceptions_selects_the_channels_of_an_operation() {
    let rest = stage().await;
    for (name, group) in [("a", "News"), ("b", "News"), ("c", "Sports"), ("d", "News")] {
        make(&rest, json!({ "name": name, "channel_group": group })).await;
    }
    let path = format!("{LIST}edit/bulk/");
    let body = json!({
        "filter": { "channel_group": "News" }, "except": [2], "values": { "user_level": 1, "is_adult": true },
    });
    let done = rest.admin("POST", &path, body).await;
    assert_eq!((done.status, &done.body["channel_ids"]), (200, &json!([1, 4])), "{}", done.text);
    assert_eq!(names(&rest, "is_adult=true").await, ["a", "d"]);
    let undo = done.body["undo"]["url"].as_str().unwrap().to_owned();
    assert_eq!(rest.admin("POST", &undo, Value::Null).await.status, 200);
    assert_eq!(names(&rest, "is_adult=true").await, [""; 0]);

    let all = json!({ "filter": { "ordering": "-name" }, "starting_number": 10 });
    let done = rest.admin("POST", &format!("{LIST}assign/"), all).await;
    assert_eq!(done.body["channel_ids"], json!([4, 3, 2, 1]), "{}", done.text);
    let exchange = json!({ "filter": { "ordering": "name" }, "except": [3] });
    let done = rest.admin("POST", &format!("{LIST}reorder/"), exchange).await;
    assert_eq!(done.body["channel_numbers"], json!([10, 12, 13]), "{}", done.text);
    let moved = json!({ "ids": [4, 2], "insert_after_id": null });
    let done = rest.admin("POST", &format!("{LIST}reorder/"), moved).await;
    assert_eq!(done.body["channel_numbers"], json!([1, 2]), "{}", done.text);

    for (action, body, field) in [
        ("edit/bulk", json!({ "values": {} }), "ids"),
        ("edit/bulk", json!({ "ids": [1], "filter": {}, "values": {} }), "filter"),
        ("edit/bulk", json!({ "filter": { "names": "a" }, "values": {} }), "filter"),
        ("edit/bulk", json!({ "filter": { "enabled": "perhaps" }, "values": {} }), "filter"),
        ("edit/bulk", json!({ "ids": [99], "values": {} }), "ids"),
        ("edit/bulk", json!({ "ids": [1], "values": { "names": "a" } }), "values"),
        ("edit/bulk", json!({ "ids": [1], "values": { "logo_id": 99 } }), "values"),
        ("edit/bulk", json!({ "ids": [1, 2], "values": { "channel_number": 5 } }), "values"),
        ("reorder", json!({ "ids": [1, 2], "insert_after_id": 1 }), "insert_after_id"),
        ("bulk-delete", json!({ "filter": { "names": "a" } }), "filter"),
    ] {
        let refused = rest.admin("POST", &format!("{LIST}{action}/"), body.clone()).await;
        assert_eq!(refused.status, 400, "{action} {body}: {}", refused.text);
        assert!(refused.body[field].is_array(), "{action} {body}: {}", refused.text);
    }
    let gone =
        rest.admin("POST", &format!("{LIST}bulk-delete/"), json!({ "filter": {}, "except": [3] })).await;
    assert_eq!(gone.body["deleted_count"], 3);
    assert_eq!(names(&rest, "").await, ["c"]);
}

// Holds T-rx.1 for channels.
#[tokio::test]
async fn channels_are_renamed_by_a_pattern_as_its_preview_shows() {
    let rest = stage().await;
    for name in ["UK: News", "uk: Sports", "Films"] {
        make(&rest, json!({ "name": name })).await;
    }
    let path = format!("{LIST}edit/bulk-regex/");
    let mut body =
        json!({ "channel_ids": [1, 2, 3], "find": "^uk: (.*)", "replace": "$1 HD", "flags": "gi" });
    body["preview"] = true.into();
    let shown = rest.admin("POST", &path, body.clone()).await;
    assert_eq!((shown.status, &shown.body["updated_count"]), (200, &json!(2)), "{}", shown.text);
    let changes = json!([
        { "id": 1, "before": "UK: News", "after": "News HD" }, { "id": 2, "before": "uk: Sports", "after": "Sports HD" },
    ]);
    assert_eq!((&shown.body["changes"], &shown.body["undo"]), (&changes, &json!(null)));
    assert_eq!(names(&rest, "").await, ["UK: News", "uk: Sports", "Films"], "it was a preview");
    body["preview"] = false.into();
    let done = rest.admin("POST", &path, body).await;
    assert_eq!((&done.body["success"], &done.body["changes"]), (&json!(true), &changes), "{}", done.text);
    assert_eq!(names(&rest, "").await, ["News HD", "Sports HD", "Films"]);
    for (find, replace, flags, field) in [
        ("(", "", "", "find"),
        ("(?=a)", "", "", "find"),
        ("a", "$7", "", "replace"),
        ("a", "", "x", "flags"),
        ("Films", "", "", "replace"),
        ("Films", &"x".repeat(300), "", "replace"),
    ] {
        let body = json!({ "filter": {}, "find": find, "replace": replace, "flags": flags });
        let refused = rest.admin("POST", &path, body).await;
        assert_eq!(refused.status, 400, "{find}: {}", refused.text);
        assert!(refused.body[field].is_array(), "{find}: {}", refused.text);
    }
}

#[tokio::test]
async fn streams_are_assigned_to_many_channels_together_or_not_at_all() {
    let rest = stage().await;
    make(&rest, json!({ "name": "a", "streams": [1] })).await;
    make(&rest, json!({ "name": "b" })).await;
    let path = format!("{LIST}assign-streams/");
    let streams = async || -> Vec<Value> {
        let list = rest.admin("GET", &format!("{LIST}?ordering=id"), Value::Null).await.body;
        list["results"].as_array().unwrap().iter().map(|it| it["streams"].clone()).collect()
    };
    let ask = async |body: Value| {
        let done = rest.admin("POST", &path, body).await;
        assert_eq!(done.status, 200, "{}", done.text);
        done.body
    };
    ask(json!({ "ids": [1, 2], "stream_ids": [2, 3] })).await;
    assert_eq!(streams().await, [json!([1, 2, 3]), json!([2, 3])]);
    ask(json!({ "mode": "prepend", "filter": {}, "stream_ids": [3] })).await;
    assert_eq!(streams().await, [json!([3, 1, 2]), json!([3, 2])]);
    let each = json!([
        { "channel_id": 2, "stream_ids": [4] }, { "channel_id": 1, "stream_ids": [] },
    ]);
    let done = ask(json!({ "mode": "replace", "assignments": each })).await;
    assert_eq!((streams().await, &done["channel_ids"]), (vec![json!([]), json!([4])], &json!([2, 1])));
    let undo = done["undo"]["url"].as_str().unwrap();
    assert_eq!(rest.admin("POST", undo, Value::Null).await.status, 200);
    ask(json!({ "mode": "remove", "ids": [1], "stream_ids": [1, 4] })).await;
    assert_eq!(streams().await, [json!([3, 2]), json!([3, 2])]);
    for body in [
        json!({ "ids": [1] }),
        json!({ "ids": [1], "stream_ids": [99] }),
        json!({ "ids": [1, 99], "stream_ids": [1] }),
        json!({ "assignments": [{ "channel_id": 1, "stream_ids": [1] }, { "channel_id": 1, "stream_ids": [2] }] }),
        json!({ "assignments": [{ "channel_id": 1 }] }),
        json!({ "assignments": [], "ids": [1] }),
        json!({ "assignments": [], "stream_ids": [1] }),
        json!({ "mode": "x", "ids": [1], "stream_ids": [1] }),
    ] {
        assert_eq!(rest.admin("POST", &path, body.clone()).await.status, 400, "{body}");
    }
    assert_eq!(streams().await, [json!([3, 2]), json!([3, 2])]);
}

#[tokio::test]
async fn streams_with_the_same_name_or_guide_id_become_one_channel() {
    let rest = stage().await;
    rest.put([
        stream(11, "NEWS  one", Some("News"), None),
        stream(12, "Solo", Some("News"), None),
        stream(13, "solo", Some("News"), None),
    ])
    .await;
    let news = make(&rest, json!({ "name": "News One", "streams": [1] })).await;
    let path = format!("{LIST}from-stream/bulk/");
    let body = json!({ "stream_ids": [1, 11, 12, 13, 4], "merge_by": "name" });
    let made = rest.admin("POST", &path, body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let counts = (&made.body["created_count"], &made.body["merged_count"]);
    assert_eq!(counts, (&json!(2), &json!(1)), "{}", made.text);
    assert_eq!(made.body["merged_channel_ids"], json!([news["id"]]));
    let list = rest.admin("GET", &format!("{LIST}?ordering=id"), Value::Null).await.body;
    let shown: Vec<_> =
        list["results"].as_array().unwrap().iter().map(|it| (&it["name"], &it["streams"])).collect();
    assert_eq!(
        shown,
        [
            (&json!("News One"), &json!([1, 11])),
            (&json!("Solo"), &json!([12, 13])),
            (&json!("No number"), &json!([4])),
        ]
    );
    let undo = made.body["undo"]["url"].as_str().unwrap();
    assert_eq!(rest.admin("POST", undo, Value::Null).await.status, 200);
    let list = rest.admin("GET", LIST, Value::Null).await.body;
    assert_eq!((&list["count"], &list["results"][0]["streams"]), (&json!(1), &json!([1])));

    make(&rest, json!({ "name": "x", "tvg_id": "guide.2" })).await;
    let one = json!({ "stream_id": 2, "merge_by": "tvg_id" });
    let merged = rest.admin("POST", &format!("{LIST}from-stream/"), one).await;
    assert_eq!((&merged.body["name"], &merged.body["streams"]), (&json!("x"), &json!([2])));
    rest.models.streams.at(rest.models.store.version()).await.unwrap();
    let body = json!({ "filter": { "channel_group_name": "News" }, "except": [1, 2] });
    let made = rest.admin("POST", &path, body).await;
    assert_eq!(made.body["created_count"], 3, "{}", made.text);
}

mod night {
    use super::*;

    // Holds T-rest.3 for channels and streams.
    #[tokio::test]
    async fn bulk_operations_accept_the_maximum_number_of_items_and_can_be_undone() {
        let rest = stage().await;
        // Each stream has a group and a logo of its own, which are created with its channel: the largest possible write.
        let all: Vec<u32> = (101..=10_100).collect();
        for some in all.chunks(1000) {
            rest.put(some.iter().map(|id| stream(*id, "one", Some(&format!("group {id}")), None))).await;
        }
        let path = |action: &str| format!("{LIST}{action}/");
        let mut too_many = all.clone();
        too_many.push(1);
        let refused = rest.admin("POST", &path("from-stream/bulk"), json!({ "stream_ids": too_many })).await;
        let errors = json!({ "stream_ids": ["Ensure this field has no more than 10000 elements."] });
        assert_eq!((refused.status, refused.body), (400, errors));
        rest.models.streams.at(rest.models.store.version()).await.unwrap();
        let refused = rest.admin("POST", &path("from-stream/bulk"), json!({ "filter": {} })).await;
        let message = "The filter selects 10004 streams; at most 10000 can be changed at once.";
        assert_eq!((refused.status, refused.body), (400, json!({ "filter": [message] })));
        let made = rest.admin("POST", &path("from-stream/bulk"), json!({ "stream_ids": all })).await;
        assert_eq!(made.body["created_count"], 10_000, "{}", made.text);
        let undo = async |answer: &Value| {
            let undone = rest.admin("POST", answer["undo"]["url"].as_str().unwrap(), Value::Null).await;
            assert_eq!(undone.status, 200, "{}", undone.text);
            undone.body
        };
        let gone = undo(&made.body).await;
        let counts = || {
            let models = &rest.models;
            [models.channels.load().len(), models.groups.load().len(), models.logos.load().len()]
        };
        assert_eq!(counts(), [0, 2, 0]);
        undo(&gone).await;
        assert_eq!(counts(), [10_000, 10_002, 10_000]);
        let ids = made.body["channel_ids"].clone();
        let assigned = json!({ "channel_ids": ids, "starting_number": 3 });
        let assigned = rest.admin("POST", &path("assign"), assigned).await.body;
        assert_eq!(assigned["channel_numbers"][9999], 10_002);
        undo(&assigned).await;

        let deleted = rest.admin("POST", &path("bulk-delete"), json!({ "ids": ids })).await;
        assert_eq!(deleted.body["deleted_count"], 10_000, "{}", deleted.text);
        undo(&deleted.body).await;
        assert_eq!(counts(), [10_000, 10_002, 10_000]);
        let gone = rest.admin("POST", "/api/channels/streams/bulk-delete/", json!({ "ids": all })).await;
        assert_eq!(gone.body["deleted_count"], 10_000, "{}", gone.text);
        assert!(rest.models.channels.load().iter().all(|it| it.streams.is_empty()));
    }
}

#[tokio::test]
async fn a_filter_makes_no_channels_of_films_and_series_unless_it_names_them() {
    use domain::playlist::content::StreamContent;

    let rest = stage().await;
    for (id, content) in
        [(5, StreamContent::Movie), (6, StreamContent::Series), (7, StreamContent::Separator)]
    {
        let mut other = stream(id, "other", None, None);
        other.provider.content = content;
        rest.put([other]).await;
    }
    rest.models.streams.at(rest.models.store.version()).await.unwrap();
    let made = |body: Value| async {
        let answer = rest.admin("POST", &format!("{LIST}from-stream/bulk/"), body).await;
        assert!(answer.status < 300, "{}", answer.text);
        answer.body["created_count"].clone()
    };
    assert_eq!(made(json!({ "filter": {} })).await, 4);
    assert_eq!(made(json!({ "filter": { "content_type": "movie" } })).await, 1);
    assert_eq!(made(json!({ "stream_ids": [6] })).await, 1);
}

/// Adds a stream that its provider marks as adult content.
async fn adult_stream(rest: &Rest) {
    let mut adult = stream(9, "Grown up", Some("News"), None);
    adult.provider.is_adult = true;
    rest.put([adult]).await;
}

/// Users who hide adult content saw the channels of streams that their providers mark, because nothing read the marks.
#[tokio::test]
async fn channels_of_marked_streams_are_adult_however_they_are_made() {
    let rest = stage().await;
    adult_stream(&rest).await;
    let listed = rest.admin("GET", "/api/channels/streams/9/", Value::Null).await.body;
    assert_eq!(listed["is_adult"], true);
    let plain = rest.admin("GET", "/api/channels/streams/1/", Value::Null).await.body;
    assert_eq!(plain["is_adult"], false);

    let made = rest.admin("POST", &format!("{LIST}from-stream/"), json!({ "stream_id": 9 })).await;
    assert_eq!((made.status, &made.body["is_adult"]), (201, &json!(true)), "{}", made.text);
    let bulk = format!("{LIST}from-stream/bulk/");
    let done = rest.admin("POST", &bulk, json!({ "stream_ids": [1, 9] })).await;
    assert_eq!(done.status, 201, "{}", done.text);
    assert_eq!(names(&rest, "is_adult=true&ordering=id").await, ["Grown up", "Grown up"]);
    let of_streams = make(&rest, json!({ "name": "made", "streams": [1, 9] })).await;
    assert_eq!(of_streams["is_adult"], true);
    let decided = make(&rest, json!({ "name": "decided", "streams": [9], "is_adult": false })).await;
    assert_eq!(decided["is_adult"], false, "the client decided");

    let target = make(&rest, json!({ "name": "target" })).await;
    let assign = format!("{LIST}assign-streams/");
    let mut body = json!({ "ids": [target["id"], decided["id"]], "stream_ids": [9] });
    for mode in ["append", "remove", "replace"] {
        body["mode"] = mode.into();
        assert_eq!(rest.admin("POST", &assign, body.clone()).await.status, 200);
        let channel = rest.admin("GET", &one(&target), Value::Null).await.body;
        assert_eq!(channel["is_adult"], mode != "remove", "{mode}");
        let channel = rest.admin("GET", &one(&decided), Value::Null).await.body;
        assert_eq!(channel["is_adult"], false, "{mode}");
    }

    // The channel with the lowest number gets the stream.
    make(&rest, json!({ "name": "GROWN  up", "channel_number": 0.5, "streams": [2] })).await;
    let merged = json!({ "stream_id": 9, "merge_by": "name" });
    let merged = rest.admin("POST", &format!("{LIST}from-stream/"), merged).await;
    let result = (merged.status, &merged.body["streams"], &merged.body["is_adult"]);
    assert_eq!(result, (201, &json!([2, 9]), &json!(true)), "{}", merged.text);
}

#[tokio::test]
async fn what_a_person_decides_about_adult_content_stays() {
    let rest = stage().await;
    adult_stream(&rest).await;
    let channel = make(&rest, json!({ "name": "a", "streams": [9] })).await;
    let change = async |body: Value| {
        let changed = rest.admin("PATCH", &one(&channel), body).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        let stored = rest.models.channels.load().get(1).cloned().unwrap();
        assert_eq!(changed.body["is_adult"], stored.is_adult);
        (stored.is_adult, stored.is_adult_by_hand())
    };
    assert_eq!(change(json!({ "is_adult": true })).await, (true, false), "no other value, so no decision");
    assert_eq!(change(json!({ "is_adult": false })).await, (false, true));
    assert_eq!(change(json!({ "streams": [1, 9] })).await, (false, true), "other streams change nothing");
    assert_eq!(change(json!({ "is_adult": true })).await, (true, false), "it follows its streams again");
    assert_eq!(change(json!({ "streams": [1] })).await, (false, false));
    assert_eq!(change(json!({ "is_adult": true })).await, (true, true));
    assert_eq!(change(json!({ "streams": [1, 2] })).await, (true, true));
    // A client that sends the whole object back.
    assert_eq!(change(json!({ "is_adult": true, "streams": [9] })).await, (true, true));
    assert_eq!(change(json!({ "is_adult": false })).await, (false, true), "its stream is marked by now");
}
