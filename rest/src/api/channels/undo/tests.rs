use domain::group::Group;
use domain::ids::{GroupId, UserId};
use domain::undo::{UNDO_AGE_MS_MAX, UNDO_ENTRIES_MAX, UndoPart};
use serde_json::{Value, json};

use super::*;
use crate::testing::Rest;

const CHANNELS: &str = "/api/channels/channels/";
const PROFILES: &str = "/api/channels/profiles/";

async fn make(rest: &Rest, body: Value) -> u64 {
    let made = rest.admin("POST", CHANNELS, body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.body["id"].as_u64().unwrap()
}

async fn done(rest: &Rest, action: &str, body: Value) -> String {
    let done = rest.admin("POST", &format!("{CHANNELS}{action}/"), body).await;
    assert!(done.status < 300, "{}", done.text);
    done.body["undo"]["url"].as_str().unwrap().to_owned()
}

async fn channels(rest: &Rest) -> Vec<Value> {
    let list = rest.admin("GET", &format!("{CHANNELS}?ordering=id"), Value::Null).await.body;
    let mut channels = list["results"].as_array().unwrap().clone();
    // An undo is a change too.
    channels.iter_mut().for_each(|it| it["updated_at"] = Value::Null);
    channels
}

async fn post(rest: &Rest, url: &str, status: u16) -> Value {
    let answer = rest.admin("POST", url, Value::Null).await;
    assert_eq!(answer.status, status, "{url}: {}", answer.text);
    answer.body
}

async fn stage() -> Rest {
    let rest = Rest::start().await;
    rest.put([Group::new(GroupId(7), "News")]).await;
    for (name, number) in [("a", 1), ("b", 2), ("c", 3)] {
        let logo = format!("http://tv.example/{name}.png");
        make(&rest, json!({ "name": name, "number": number, "channel_group": "News", "logo_url": logo }))
            .await;
    }
    rest
}

#[tokio::test]
async fn every_bulk_operation_can_be_undone_and_done_again() {
    let rest = stage().await;
    for (action, body) in [
        ("assign", json!({ "channel_ids": [3, 1], "starting_number": 1 })),
        ("edit/bulk", json!({ "ids": [1, 2], "values": { "enabled": false, "channel_group_id": null } })),
        ("edit/bulk", json!({ "ids": [1, 2], "values": { "logo_url": "http://tv.example/new.png" } })),
        ("edit/bulk-regex", json!({ "ids": [1, 2, 3], "find": "(.)", "replace": "channel $1" })),
        ("reorder", json!({ "ids": [3, 2, 1] })),
        ("3/reorder", json!({ "insert_after_id": null })),
        ("bulk-delete", json!({ "ids": [1, 3] })),
    ] {
        let before = channels(&rest).await;
        let url = done(&rest, action, body.clone()).await;
        let after = channels(&rest).await;
        assert_ne!(before, after, "{action} {body}");
        let undone = post(&rest, &url, 200).await;
        assert_eq!(channels(&rest).await, before, "{action} {body}");
        assert!(undone["message"].as_str().unwrap().starts_with("Undone: "), "{undone}");
        let again = post(&rest, undone["undo"]["url"].as_str().unwrap(), 200).await;
        assert_eq!(channels(&rest).await, after, "{action} {body}");
        assert!(again["message"].as_str().unwrap().starts_with("Done again: "), "{again}");
        post(&rest, again["undo"]["url"].as_str().unwrap(), 200).await;
        assert_eq!(channels(&rest).await, before, "{action} {body}");
        post(&rest, &url, 404).await;
    }
}

#[tokio::test]
async fn changes_of_the_channels_of_a_profile_can_be_undone_and_done_again() {
    let rest = stage().await;
    let made = rest.admin("POST", PROFILES, json!({ "name": "Kids" })).await;
    let one = format!("{PROFILES}{}/", made.body["id"]);
    let members = async || rest.admin("GET", &one, Value::Null).await.body["channels"].clone();
    let set = async |path: &str, body: Value| {
        let done = rest.admin("PATCH", &format!("{one}channels/{path}/"), body).await;
        assert_eq!(done.status, 200, "{}", done.text);
        done.body["undo"]["url"].as_str().unwrap().to_owned()
    };
    let two = json!([{ "channel_id": 1, "enabled": false }, { "channel_id": 3, "enabled": false }]);
    for (path, body, after) in [
        ("2", json!({ "enabled": false }), json!([1, 3])),
        ("bulk-update", json!({ "memberships": two }), json!([2])),
        ("bulk-update", json!({ "filter": {}, "except": [3], "enabled": false }), json!([3])),
    ] {
        let url = set(path, body.clone()).await;
        assert_eq!(members().await, after, "{body}");
        let undone = post(&rest, &url, 200).await;
        assert_eq!(members().await, json!([1, 2, 3]), "{body}");
        let again = post(&rest, undone["undo"]["url"].as_str().unwrap(), 200).await;
        assert_eq!(members().await, after, "{body}");
        post(&rest, again["undo"]["url"].as_str().unwrap(), 200).await;
        assert_eq!(members().await, json!([1, 2, 3]), "{body}");
    }

    // An undo keeps what happened to other channels of the profile, and to the profile itself.
    let url = set("bulk-update", json!({ "ids": [1, 2], "enabled": false })).await;
    let entry = rest.admin("GET", &url, Value::Null).await.body;
    assert_eq!(
        (&entry["message"], &entry["changed_count"]),
        (&json!("Changed 2 channels of the profile Kids"), &json!(2))
    );
    set("3", json!({ "enabled": false })).await;
    rest.admin("DELETE", &format!("{CHANNELS}2/"), Value::Null).await;
    rest.admin("PATCH", &one, json!({ "name": "Children", "add_new_channels": false })).await;
    post(&rest, &url, 200).await;
    assert_eq!(members().await, json!([1]));

    // What was changed again, or is gone, is named.
    let url = set("bulk-update", json!({ "ids": [1], "enabled": false })).await;
    set("1", json!({ "enabled": true })).await;
    let id = &made.body["id"];
    let conflict = |fields: Value, name: &str, message: &str| json!([{ "record": "channel_profile", "id": id, "name": name, "fields": fields, "message": message }]);
    let refused = post(&rest, &url, 409).await;
    let message = "Channels of the profile were changed: 1.";
    assert_eq!(refused["conflicts"], conflict(json!(["channels"]), "Children", message));
    assert_eq!(members().await, json!([1]));
    assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 204);
    let refused = post(&rest, &url, 409).await;
    assert_eq!(refused["conflicts"], conflict(json!([]), "Children", "The channel profile was deleted."));
}

#[tokio::test]
async fn an_undo_keeps_later_changes_of_other_fields() {
    let rest = stage().await;
    let url = done(&rest, "assign", json!({ "channel_ids": [1, 2, 3], "starting_number": 100 })).await;
    rest.admin("PATCH", &format!("{CHANNELS}1/"), json!({ "name": "renamed" })).await;
    post(&rest, &url, 200).await;
    let channels = channels(&rest).await;
    assert_eq!((&channels[0]["name"], &channels[0]["number"]), (&json!("renamed"), &json!(1)));
}

#[tokio::test]
async fn an_undo_after_other_changes_is_refused_and_names_them() {
    let rest = stage().await;
    let url = done(&rest, "assign", json!({ "channel_ids": [1, 2, 3], "starting_number": 100 })).await;
    rest.admin("PATCH", &format!("{CHANNELS}1/"), json!({ "channel_number": 500 })).await;
    rest.admin("DELETE", &format!("{CHANNELS}2/"), Value::Null).await;
    make(&rest, json!({ "name": "other", "number": 3 })).await;
    let before = channels(&rest).await;
    let refused = post(&rest, &url, 409).await;
    let conflicts = json!([
        { "record": "channel", "id": 1, "name": "a", "fields": ["channel_number"], "message": "The channel was changed." },
        { "record": "channel", "id": 2, "name": "b", "fields": [], "message": "The channel was deleted." },
        {
            "record": "channel", "id": 3, "name": "c", "fields": ["channel_number"],
            "message": "Another channel has the number now.",
        },
    ]);
    assert_eq!(refused["conflicts"], conflicts);
    assert!(refused["detail"].as_str().unwrap().contains("3 records"), "{refused}");
    assert_eq!(channels(&rest).await, before);

    // A deleted channel whose number and group are gone.
    let rest = stage().await;
    let url = done(&rest, "bulk-delete", json!({ "filter": {} })).await;
    make(&rest, json!({ "name": "other", "number": 2 })).await;
    rest.admin("DELETE", "/api/channels/groups/7/", Value::Null).await;
    let refused = post(&rest, &url, 409).await;
    let fields: Vec<_> = refused["conflicts"].as_array().unwrap().iter().map(|it| &it["fields"]).collect();
    let group = json!(["channel_group_id"]);
    assert_eq!(fields, [&group, &json!(["channel_number"]), &group, &group], "{refused}");
    assert_eq!(channels(&rest).await.len(), 1);
}

#[tokio::test]
async fn the_operations_that_can_be_undone_are_listed() {
    let rest = stage().await;
    let url = done(&rest, "bulk-delete", json!({ "ids": [1] })).await;
    let deleted =
        rest.admin("DELETE", &format!("{CHANNELS}bulk-delete/"), json!({ "channel_ids": [2] })).await;
    assert_eq!(deleted.status, 204);
    let list = rest.admin("GET", LIST, Value::Null).await.body;
    let shown: Vec<_> =
        list["results"].as_array().unwrap().iter().map(|it| (&it["message"], &it["username"])).collect();
    let entry = (&json!("Deleted 1 channels"), &json!("administrator"));
    assert_eq!(shown, [entry, entry]);
    assert_eq!(list["results"][1]["url"], *url);
    let one = rest.admin("GET", &url, Value::Null).await.body;
    assert_eq!((&one["changed_count"], &one["id"]), (&json!(1), &list["results"][1]["id"]));
    // The DELETE has no body to return a handle.
    post(&rest, list["results"][0]["url"].as_str().unwrap(), 200).await;
    assert_eq!(channels(&rest).await.len(), 2);
    assert_eq!(rest.standard("GET", LIST, Value::Null).await.status, 403);
}

#[tokio::test]
async fn an_operation_can_be_undone_for_a_day_and_within_limits() {
    let rest = stage().await;
    let url = done(&rest, "assign", json!({ "channel_ids": [1], "starting_number": 50 })).await;
    let entry = rest.models.undo.load().iter().next().cloned().unwrap();
    assert!(rest.models.store.collection::<UndoPart>().get(entry.parts[0]).unwrap().is_some());
    rest.put([UndoEntry { at: entry.at - UNDO_AGE_MS_MAX, ..(*entry).clone() }]).await;
    post(&rest, &url, 404).await;
    assert_eq!(rest.admin("GET", LIST, Value::Null).await.body["count"], 0);
    let small = |id: u32| UndoEntry {
        id,
        at: now_ms(),
        user: UserId(3),
        username: "administrator".to_owned(),
        message: "Small".to_owned(),
        n_changes: 0,
        bytes: 1,
        parts: Vec::new(),
        files: Vec::new(),
    };
    rest.put((1_000..1_200).map(small)).await;
    done(&rest, "assign", json!({ "channel_ids": [1], "starting_number": 60 })).await;
    let entries = rest.models.undo.load();
    assert_eq!((entries.len(), entries.get(entry.id).is_none()), (UNDO_ENTRIES_MAX, true));
    assert!(entries.get(1_199).is_some() && entries.get(1_000).is_none(), "the oldest are dropped");
    assert!(rest.models.store.collection::<UndoPart>().get(entry.parts[0]).unwrap().is_none());

    // One that needs all the room drops the others.
    let large = UndoEntry { bytes: domain::undo::UNDO_BYTES_MAX, ..small(2_000) };
    rest.put([large]).await;
    done(&rest, "assign", json!({ "channel_ids": [1], "starting_number": 70 })).await;
    assert_eq!(rest.models.undo.load().len(), 1);
}
