use domain::ids::GroupId;
use domain::user::User;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::testing::{Rest, STANDARD as STANDARD_USER};

const CHANNELS: &str = "/api/channels/channels/";

fn channel(id: u32) -> Channel {
    Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("channel {id}"), 0)
}

/// Channels 1 to 3; and 4, which is adult.
async fn stage() -> Rest {
    let rest = Rest::start().await;
    rest.put((1..=3).map(channel).chain([Channel { is_adult: true, ..channel(4) }])).await;
    rest
}

async fn make(rest: &Rest, body: Value) -> Value {
    let made = rest.admin("POST", LIST, body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.body
}

fn one(id: &Value) -> String {
    format!("{LIST}{id}/")
}

async fn channels(rest: &Rest, id: &Value) -> Value {
    rest.admin("GET", &one(id), Value::Null).await.body["channels"].clone()
}

/// Limits the standard user to these lineups.
async fn assign(rest: &Rest, lineups: &[&Value]) {
    let lineups = lineups.iter().map(|it| LineupId(u32::try_from(it.as_u64().unwrap()).unwrap()));
    let lineups = lineups.collect();
    rest.put([User { lineups, hide_adult: true, ..(*rest.user(STANDARD_USER)).clone() }]).await;
}

#[tokio::test]
async fn a_channel_profile_is_created_with_all_channels_renamed_copied_and_deleted() {
    let rest = stage().await;
    let kids = make(&rest, json!({ "name": "Kids", "description": "For children" })).await;
    let id = &kids["id"];
    let shown = json!({
        "id": id, "name": "Kids", "description": "For children", "channels": [1, 2, 3, 4],
        "add_new_channels": true, "playlist_header": {}, "playlist_attributes": {}, "kodi_properties": {},
    });
    assert_eq!(kids, shown);
    assert_eq!(rest.admin("GET", &one(id), Value::Null).await.body, shown);
    let taken = rest.admin("POST", LIST, json!({ "name": "Kids" })).await;
    assert_eq!((taken.status, taken.body), (400, json!({ "name": ["This field must be unique."] })));
    let long = rest.admin("POST", LIST, json!({ "name": "x".repeat(101) })).await;
    assert_eq!(long.status, 400);

    let path = format!("{}channels/2/", one(id));
    assert_eq!(rest.admin("PUT", &path, json!({ "enabled": false })).await.status, 200);
    let copy = rest.admin("POST", &format!("{}duplicate/", one(id)), json!({ "name": "Kids 2" })).await;
    assert_eq!(copy.status, 201, "{}", copy.text);
    assert_eq!(
        (&copy.body["channels"], &copy.body["description"]),
        (&json!([1, 3, 4]), &json!("For children"))
    );
    let again = rest.admin("POST", &format!("{}duplicate/", one(id)), json!({ "name": "Kids 2" })).await;
    assert_eq!((again.status, again.body), (400, json!({ "name": ["This field must be unique."] })));
    let gone = rest.admin("POST", &format!("{LIST}99/duplicate/"), json!({ "name": "c" })).await;
    let unknown = json!({ "detail": "No ChannelProfile matches the given query." });
    assert_eq!((gone.status, gone.body), (404, unknown));

    let renamed = rest.admin("PUT", &one(id), json!({ "name": "Children" })).await;
    assert_eq!((renamed.status, &renamed.body["description"]), (200, &json!("For children")));
    let found = rest.admin("GET", &format!("{LIST}?search=CHILD&ordering=-name"), Value::Null).await.body;
    let names: Vec<_> = found["results"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["Kids 2", "Children"]);
    assert_eq!(rest.admin("DELETE", &one(id), Value::Null).await.status, 204);
    assert_eq!(rest.admin("GET", &one(id), Value::Null).await.status, 404);
}

#[tokio::test]
async fn memberships_are_set_one_by_one_or_together_and_deleted_channels_disappear() {
    let rest = stage().await;
    let id = &make(&rest, json!({ "name": "Kids" })).await["id"];
    let membership_path = |id: &Value, channel: u32| format!("{}channels/{channel}/", one(id));
    let mut answer = rest.admin("PATCH", &membership_path(id, 2), json!({ "enabled": false })).await;
    assert!(answer.body["undo"].take().is_object());
    let expected = json!({ "channel": 2, "enabled": false, "undo": null });
    assert_eq!((answer.status, answer.body), (200, expected.clone()));
    let again = rest.admin("PATCH", &membership_path(id, 2), json!({ "enabled": false })).await;
    assert_eq!((again.status, again.body), (200, expected), "nothing has changed, so nothing can be undone");
    assert_eq!(channels(&rest, id).await, json!([1, 3, 4]));
    assert_eq!(rest.admin("PUT", &membership_path(id, 2), json!({ "enabled": true })).await.status, 200);
    for (path, body, status) in [
        (membership_path(id, 99), json!({ "enabled": true }), 404),
        (membership_path(&json!(99), 1), json!({ "enabled": true }), 404),
        (membership_path(id, 1), json!({}), 400),
    ] {
        assert_eq!(rest.admin("PATCH", &path, body).await.status, status, "{path}");
    }

    let bulk = format!("{}channels/bulk-update/", one(id));
    let changes = json!([{ "channel_id": 1, "enabled": false }, { "channel_id": 3, "enabled": false }]);
    let mut posted = rest.admin("POST", &bulk, json!({ "memberships": changes })).await;
    assert!(posted.body["undo"].take().is_object());
    let expected =
        json!({ "status": "success", "updated": 2, "created": 0, "invalid_channels": [], "undo": null });
    assert_eq!((posted.status, posted.body), (200, expected.clone()));
    assert_eq!(channels(&rest, id).await, json!([2, 4]));
    let back = json!([{ "channel_id": 1, "enabled": true }, { "channel_id": 4, "enabled": false }]);
    let mut patched = rest.admin("PATCH", &bulk, json!({ "channels": back })).await;
    assert!(patched.body["undo"].take().is_object());
    assert_eq!((patched.status, patched.body), (200, expected));
    assert_eq!(channels(&rest, id).await, json!([1, 2]));

    for (sent, message) in [
        (json!([]), "This list may not be empty."),
        (
            json!([{ "channel_id": 2, "enabled": false }, { "channel_id": 99, "enabled": true }]),
            "Item 2: Invalid pk \"99\" - object does not exist.",
        ),
        (json!([{ "channel_id": 2 }]), "Item 1: enabled: This field is required."),
        (json!([7]), "Item 1: Invalid data. Expected an object."),
    ] {
        let refused = rest.admin("POST", &bulk, json!({ "memberships": sent })).await;
        assert_eq!((refused.status, refused.body), (400, json!({ "memberships": [message] })), "{sent}");
    }
    assert_eq!(channels(&rest, id).await, json!([1, 2]), "a refusal changes nothing");

    rest.admin("DELETE", &format!("{CHANNELS}1/"), Value::Null).await;
    assert_eq!(channels(&rest, id).await, json!([2]));
}

#[tokio::test]
async fn a_new_channel_joins_the_requested_channel_profiles_or_as_each_of_them_decides() {
    let rest = stage().await;
    let all = &make(&rest, json!({ "name": "all" })).await["id"];
    let picked = &make(&rest, json!({ "name": "picked", "add_new_channels": false })).await["id"];
    assert_eq!(channels(&rest, picked).await, json!([]));
    for (sent, in_all, in_picked) in [
        (None, true, false),
        (Some(json!(null)), true, false),
        (Some(json!([])), false, false),
        (Some(json!([0])), true, true),
        (Some(json!([picked])), false, true),
    ] {
        let mut body = json!({ "name": "new" });
        if let Some(sent) = &sent {
            body["channel_profile_ids"] = sent.clone();
        }
        let made = rest.admin("POST", CHANNELS, body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let is_in = async |lineup: &Value| {
            channels(&rest, lineup).await.as_array().unwrap().contains(&made.body["id"])
        };
        assert_eq!((is_in(all).await, is_in(picked).await), (in_all, in_picked), "{sent:?}");
    }
    let n_before = rest.models.channels.load().len();
    let refused = rest.admin("POST", CHANNELS, json!({ "name": "new", "channel_profile_ids": [999] })).await;
    let errors = json!({ "channel_profile_ids": ["Invalid pk \"999\" - object does not exist."] });
    assert_eq!((refused.status, refused.body), (400, errors));
    assert_eq!(rest.models.channels.load().len(), n_before);

    // The channels that are in it stay, and new ones stay outside.
    let before = channels(&rest, all).await;
    let changed = rest.admin("PATCH", &one(all), json!({ "add_new_channels": false })).await;
    assert_eq!((changed.status, &changed.body["channels"]), (200, &before));
    rest.admin("POST", CHANNELS, json!({ "name": "later" })).await;
    assert_eq!(channels(&rest, all).await, before);
}

#[tokio::test]
async fn a_limited_user_sees_only_the_assigned_channel_profiles_and_their_visible_channels_in_every_list() {
    let rest = stage().await;
    let kids = &make(&rest, json!({ "name": "kids", "add_new_channels": false })).await["id"];
    let other = &make(&rest, json!({ "name": "other" })).await["id"];
    let bulk = format!("{}channels/bulk-update/", one(kids));
    let members = [2, 4].map(|id| json!({ "channel_id": id, "enabled": true }));
    assert_eq!(rest.admin("POST", &bulk, json!({ "memberships": members })).await.status, 200);
    let listed = async |query: &str| {
        let ids = rest.standard("GET", &format!("{CHANNELS}ids/?{query}"), Value::Null).await;
        (ids.status, ids.body)
    };
    assert_eq!(listed("").await, (200, json!([1, 2, 3, 4])));
    let none = rest.standard("GET", LIST, Value::Null).await.body;
    assert_eq!(none["count"], 0, "no profile is assigned");

    // 4 is in the profile and adult.
    assign(&rest, &[kids]).await;
    assert_eq!(listed("").await, (200, json!([2])));
    assert_eq!(listed(&format!("channel_profile_id={kids}")).await, (200, json!([2])));
    assert_eq!(listed(&format!("channel_profile_id={other}")).await.0, 400, "somebody else's");
    assert_eq!(rest.standard("GET", &format!("{CHANNELS}3/"), Value::Null).await.status, 404);
    let own = rest.standard("GET", LIST, Value::Null).await.body;
    assert_eq!((&own["count"], &own["results"][0]["channels"]), (&json!(1), &json!([2])));
    assert_eq!(rest.standard("GET", &one(other), Value::Null).await.status, 404);
    let enable =
        rest.standard("PATCH", &format!("{}channels/3/", one(kids)), json!({ "enabled": true })).await;
    assert_eq!(enable.status, 403, "users cannot extend what they see");
    assign(&rest, &[kids, other]).await;
    assert_eq!(listed("").await, (200, json!([1, 2, 3])));
}

#[tokio::test]
async fn a_profile_to_which_alone_a_user_is_limited_cannot_be_deleted() {
    let rest = stage().await;
    let one_profile = &make(&rest, json!({ "name": "one" })).await["id"];
    let two = &make(&rest, json!({ "name": "two" })).await["id"];
    assign(&rest, &[one_profile, two]).await;
    assert_eq!(rest.admin("DELETE", &one(one_profile), Value::Null).await.status, 204);
    assert_eq!(rest.user(STANDARD_USER).lineups.len(), 1);
    let refused = rest.admin("DELETE", &one(two), Value::Null).await;
    let detail = "This is the only channel profile of the user standard. Assign another one first.";
    assert_eq!((refused.status, refused.body), (400, json!({ "detail": detail })));
    assign(&rest, &[]).await;
    assert_eq!(rest.admin("DELETE", &one(two), Value::Null).await.status, 204);
}

#[tokio::test]
async fn a_profile_keeps_one_of_twenty_thousand_channels() {
    let rest = Rest::start().await;
    for first in (1..=20_000).step_by(5_000) {
        rest.put((first..first + 5_000).map(|id| Channel { group: Some(GroupId(1)), ..channel(id) })).await;
    }
    let id = &make(&rest, json!({ "name": "few" })).await["id"];
    let bulk = format!("{}channels/bulk-update/", one(id));
    // The test gateway accepts bodies of 100 kB.
    for first in (1..20_000).step_by(2_000) {
        let off = (first..first + 2_000).filter(|it| *it != 7);
        let off: Vec<_> = off.map(|id| json!({ "channel_id": id, "enabled": false })).collect();
        let answer = rest.admin("PATCH", &bulk, json!({ "channels": off })).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    assert_eq!(channels(&rest, id).await, json!([7]));
    let listed = rest.admin("GET", &format!("{CHANNELS}ids/?channel_profile_id={id}"), Value::Null).await;
    assert_eq!(listed.body, json!([7]));
}

#[tokio::test]
async fn memberships_of_the_channels_of_a_filter_are_set_together() {
    let rest = stage().await;
    let id = &make(&rest, json!({ "name": "Kids" })).await["id"];
    let bulk = format!("{}channels/bulk-update/", one(id));
    let adult = json!({ "filter": { "is_adult": true }, "enabled": false });
    let done = rest.admin("POST", &bulk, adult).await;
    assert_eq!((done.status, &done.body["updated"]), (200, &json!(1)), "{}", done.text);
    assert_eq!(channels(&rest, id).await, json!([1, 2, 3]));
    let rest_of_them = json!({ "filter": { "search": "channel" }, "except": [2], "enabled": false });
    assert_eq!(rest.admin("PATCH", &bulk, rest_of_them).await.body["updated"], 3);
    assert_eq!(channels(&rest, id).await, json!([2]));
    let named = json!({ "ids": [1, 4], "enabled": true });
    assert_eq!(rest.admin("POST", &bulk, named).await.status, 200);
    assert_eq!(channels(&rest, id).await, json!([1, 2, 4]));

    let membership = json!([{ "channel_id": 1, "enabled": false }]);
    for (body, field) in [
        (json!({}), "memberships"),
        (json!({ "ids": [1] }), "enabled"),
        (json!({ "ids": [1, 99], "enabled": true }), "ids"),
        (json!({ "ids": [1], "filter": {}, "enabled": true }), "filter"),
        (json!({ "filter": { "is_adlt": true }, "enabled": true }), "filter"),
        (json!({ "filter": {}, "memberships": membership }), "memberships"),
    ] {
        let refused = rest.admin("POST", &bulk, body.clone()).await;
        assert!(refused.status == 400 && refused.body.get(field).is_some(), "{body}: {}", refused.text);
    }
    assert_eq!(channels(&rest, id).await, json!([1, 2, 4]), "a refusal changes nothing");
}

#[tokio::test]
async fn tags_of_a_channel_profile_are_checked_and_written_to_its_playlists() {
    let rest = stage().await;
    let id = &make(&rest, json!({ "name": "Kids" })).await["id"];
    for (field, value, message) in [
        ("playlist_header", json!({ "a b": "x" }), "is not valid"),
        ("playlist_attributes", json!({ "tvg-id": "x" }), "The gateway itself writes"),
        ("playlist_attributes", json!({ "a": "x\nhttp://x/" }), "without line breaks"),
        ("kodi_properties", json!({ "a=b": "x" }), "is not valid"),
        ("kodi_properties", json!(["a"]), "Expected an object"),
    ] {
        let refused = rest.admin("PATCH", &one(id), json!({ field: value })).await;
        assert_eq!(refused.status, 400, "{field}");
        assert!(refused.body[field][0].as_str().unwrap().contains(message), "{}", refused.text);
    }
    let tags = json!({
        "playlist_header": { "refresh": 3600 }, "playlist_attributes": { "tvg-shift": "1" },
        "kodi_properties": { "mimetype": "video/mp2t" },
    });
    let changed = rest.admin("PATCH", &one(id), tags).await;
    assert_eq!((changed.status, &changed.body["playlist_header"]), (200, &json!({ "refresh": "3600" })));
    let list = rest.admin("GET", "/output/m3u/Kids", Value::Null).await.text;
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[0].ends_with(" refresh=\"3600\""), "{}", lines[0]);
    assert!(lines[1].ends_with(" tvg-shift=\"1\",channel 1"), "{}", lines[1]);
    assert_eq!(lines[2], "#KODIPROP:mimetype=video/mp2t");
    let whole = rest.admin("GET", "/output/m3u", Value::Null).await.text;
    assert!(!whole.contains("KODIPROP") && !whole.contains("tvg-shift"), "{whole}");
}
