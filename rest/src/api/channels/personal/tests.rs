use domain::channel::Channel;
use domain::ids::{ChannelId, PersonalPlaylistId, UserId};
use domain::personal_playlist::{PLAYLISTS_PER_USER_MAX, PersonalPlaylist};
use domain::user::UserLevel;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::testing::{Rest, STANDARD as STANDARD_USER, STREAMER as STREAMER_USER};

const PLAYLISTS: &str = "/api/channels/playlists/";
const FAVORITES: &str = "/api/channels/favorites/";

/// Channels 1 to 3; and 4, which only admins see.
async fn stage() -> Rest {
    let rest = Rest::start().await;
    let channel =
        |id: u32| Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("channel {id}"), 0);
    let hidden = Channel { user_level: UserLevel::Admin, ..channel(4) };
    rest.put((1..=3).map(channel).chain([hidden])).await;
    rest
}

fn one(id: &Value) -> String {
    format!("{PLAYLISTS}{id}/")
}

/// Returns the names in the playlist of a user, with these options.
async fn names(rest: &Rest, user: u32, query: &str) -> Vec<String> {
    let list = rest.ask(user, "GET", &format!("/output/m3u?{query}"), Value::Null).await;
    assert_eq!(list.status, 200, "{}", list.text);
    let names = list.text.lines().filter_map(|it| it.rsplit_once(','));
    names.map(|(_, name)| name.to_owned()).collect()
}

#[tokio::test]
async fn a_user_of_level_1_edits_favourites_and_finds_them_in_players() {
    let rest = stage().await;
    let none = rest.standard("GET", FAVORITES, Value::Null).await;
    assert_eq!((none.status, none.body), (200, json!({ "playlist_id": null, "channels": [] })));
    let replaced = rest.standard("PATCH", FAVORITES, json!({ "channels": [3, 1, 3] })).await;
    assert_eq!(replaced.body["channels"], json!([3, 1]), "{}", replaced.text);
    let id = &replaced.body["playlist_id"];
    let added = rest.standard("PUT", &format!("{FAVORITES}2/"), Value::Null).await;
    assert_eq!(added.body["channels"], json!([3, 1, 2]), "{}", added.text);
    for _ in 0..2 {
        assert_eq!(rest.standard("DELETE", &format!("{FAVORITES}1/"), Value::Null).await.status, 204);
    }
    assert_eq!(names(&rest, STANDARD_USER, &format!("playlist={id}")).await, ["channel 3", "channel 2"]);
    for id in [4, 99] {
        let refused = rest.standard("PUT", &format!("{FAVORITES}{id}/"), Value::Null).await;
        assert_eq!(refused.status, 404, "{id}");
        let refused = rest.standard("PATCH", FAVORITES, json!({ "channels": [1, id] })).await;
        let message = format!("Item 2: Invalid pk \"{id}\" - object does not exist.");
        assert_eq!((refused.status, refused.body), (400, json!({ "channels": [message] })));
    }
    let renamed = rest.standard("PATCH", &one(id), json!({ "name": "Mine" })).await;
    assert_eq!(renamed.status, 400);
    assert_eq!(rest.streamer("GET", FAVORITES, Value::Null).await.status, 403);
    let others = rest.admin("GET", FAVORITES, Value::Null).await;
    assert_eq!(others.body["channels"], json!([]));
}

#[tokio::test]
async fn a_user_of_level_0_reads_assigned_playlists_and_no_others() {
    let rest = stage().await;
    let body = json!({ "name": "Evening", "channels": [2, 1], "assigned_to": [STREAMER_USER] });
    let refused = rest.standard("POST", PLAYLISTS, body.clone()).await;
    assert_eq!(refused.body, json!({ "assigned_to": ["Only admins assign playlists to users."] }));
    let made = rest.standard("POST", PLAYLISTS, json!({ "name": "Evening", "channels": [2, 1] })).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let id = &made.body["id"];
    assert_eq!(rest.streamer("GET", &one(id), Value::Null).await.status, 404);
    assert_eq!(rest.streamer("GET", &format!("/output/m3u?playlist={id}"), Value::Null).await.status, 404);

    // Channel 4 is for admins: an admin may add it, and others do not see it.
    let edit = json!({ "channels": [4, 2, 1], "assigned_to": [STREAMER_USER] });
    assert_eq!(rest.admin("PATCH", &one(id), edit).await.body["channels"], json!([4, 2, 1]));
    let read = rest.streamer("GET", &one(id), Value::Null).await.body;
    let shown = json!([read["channels"], read["assigned_to"], read["owner"], read["is_own"]]);
    assert_eq!(shown, json!([[2, 1], [], STANDARD_USER, false]));
    let listed = rest.streamer("GET", PLAYLISTS, Value::Null).await.body;
    assert_eq!(listed["results"].as_array().unwrap().len(), 1);
    assert_eq!(names(&rest, STREAMER_USER, &format!("playlist={id}")).await, ["channel 2", "channel 1"]);
    for (method, body) in [("PUT", json!({ "name": "x" })), ("PATCH", json!({})), ("DELETE", Value::Null)] {
        assert_eq!(rest.streamer(method, &one(id), body).await.status, 403, "{method}");
    }
    let unknown = rest.admin("PATCH", &one(id), json!({ "assigned_to": [999] })).await;
    assert_eq!(unknown.status, 400);
    assert_eq!(rest.standard("DELETE", &one(id), Value::Null).await.status, 204);
}

#[tokio::test]
async fn a_playlist_of_another_user_cannot_be_changed_and_names_are_unique_per_user() {
    let rest = stage().await;
    let made = rest.admin("POST", PLAYLISTS, json!({ "name": "News", "assigned_to": [STANDARD_USER] })).await;
    let id = &made.body["id"];
    assert_eq!(rest.standard("PATCH", &one(id), json!({ "name": "x" })).await.status, 403);
    let own = rest.standard("POST", PLAYLISTS, json!({ "name": "news" })).await;
    assert_eq!(own.status, 201, "{}", own.text);
    let again = rest.standard("POST", PLAYLISTS, json!({ "name": "NEWS" })).await;
    assert_eq!((again.status, again.body), (400, json!({ "name": ["This field must be unique."] })));
    let found = rest.standard("GET", &format!("{PLAYLISTS}?ordering=-id&search=new"), Value::Null).await;
    let ids: Vec<_> = found.body["results"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect();
    assert_eq!(ids, [own.body["id"].clone(), id.clone()]);
}

#[tokio::test]
async fn a_deleted_channel_leaves_playlists_and_a_deleted_user_takes_theirs() {
    let rest = stage().await;
    let own = rest.standard("POST", PLAYLISTS, json!({ "name": "Mine", "channels": [1, 2] })).await;
    let id = &own.body["id"];
    let assigned =
        json!({ "name": "For two", "channels": [1], "assigned_to": [STREAMER_USER, STANDARD_USER] });
    let shared = rest.admin("POST", PLAYLISTS, assigned).await.body["id"].clone();
    assert_eq!(rest.admin("DELETE", "/api/channels/channels/1/", Value::Null).await.status, 204);
    assert_eq!(rest.standard("GET", &one(id), Value::Null).await.body["channels"], json!([2]));
    assert_eq!(names(&rest, STANDARD_USER, &format!("playlist={id}")).await, ["channel 2"]);

    let user = format!("/api/accounts/users/{STANDARD_USER}/");
    assert_eq!(rest.admin("DELETE", &user, Value::Null).await.status, 204);
    assert_eq!(rest.admin("GET", &one(id), Value::Null).await.status, 404);
    let left = rest.admin("GET", &one(&shared), Value::Null).await.body;
    assert_eq!(left["assigned_to"], json!([STREAMER_USER]));
}

#[tokio::test]
async fn the_number_of_playlists_of_a_user_is_limited() {
    let rest = stage().await;
    let n = u32::try_from(PLAYLISTS_PER_USER_MAX).unwrap();
    let playlist =
        |id| PersonalPlaylist::new(PersonalPlaylistId(id), UserId(STANDARD_USER), id.to_string(), 0);
    rest.put((1..=n).map(playlist)).await;
    let refused = rest.standard("POST", PLAYLISTS, json!({ "name": "one more" })).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert_eq!(rest.standard("PUT", &format!("{FAVORITES}1/"), Value::Null).await.status, 400);
    assert_eq!(rest.admin("POST", PLAYLISTS, json!({ "name": "another user" })).await.status, 201);
}
