//! Permissions of users: what they open, and when.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use domain::channel::Channel;
use domain::ids::{ChannelId, PermissionId, UserGroupId};
use domain::user::{User, UserLevel};
use domain::user_group::{ADD_RECORDING, EFFECTS, Permission, UserGroup, VIEW_CHANNEL};
use route_frame::access::Access;
use serde_json::{Value, json};
use uuid::Uuid;

use super::routes;
use crate::testing::{ADMIN, Rest, STANDARD, STREAMER};

const CHANNELS: &str = "/api/channels/channels/";
const RECORDINGS: &str = "/api/channels/recordings/";
const CONFIRM: &str = "/api/accounts/permissions/confirm/";
const UNCONFIRMED: &str = "/api/accounts/permissions/unconfirmed/";

/// Parts of the API in which no permission has an effect.
const CLOSED: [&str; 10] = [
    "/api/accounts/",
    "/api/backups/",
    "/api/channels/logos/",
    "/api/channels/streams/",
    "/api/connect/",
    "/api/core/",
    "/api/epg/sources/",
    "/api/m3u/",
    "/api/plugins/",
    "/api/vod/",
];

fn granted(user: &User, ids: impl IntoIterator<Item = PermissionId>) -> User {
    let granted: BTreeSet<_> = ids.into_iter().collect();
    User { permissions: granted.clone(), granted, ..user.clone() }
}

/// Returns the routes that refuse users of level 0 and open for this one.
async fn opened(rest: &Rest, user: User) -> BTreeSet<String> {
    let mut opened = BTreeSet::new();
    for route in routes() {
        let Access::From(UserLevel::Standard | UserLevel::Admin) = route.access else { continue };
        // What is missing is refused after the level is.
        let path = route.path_parameters().fold(route.path.to_owned(), |path, name| {
            let value = if name == "uuid" { Uuid::from_u128(9).to_string() } else { "999999".to_owned() };
            path.replace(&format!("{{{name}}}"), &value)
        });
        let answer = rest.ask(user.id.0, route.method.as_str(), &path, Value::Null).await;
        if answer.status != 403 {
            opened.insert(format!("{} {}", route.method, route.path));
        }
        if *rest.user(user.id.0) != user {
            rest.put([user.clone()]).await;
        }
    }
    opened
}

/// Of all names, those without an effect open nothing, and the others what they declare.
#[tokio::test]
async fn each_permission_opens_the_routes_that_declare_it_and_nothing_of_sources_or_settings() {
    let rest = Rest::start().await;
    let streamer = (*rest.user(STREAMER)).clone();
    let with_effect: BTreeSet<_> = EFFECTS.iter().map(|it| it.0).collect();
    let others = Permission::all().map(|it| it.id).filter(|it| !with_effect.contains(it));
    let mut sets: Vec<BTreeSet<PermissionId>> = with_effect.iter().map(|it| BTreeSet::from([*it])).collect();
    sets.push(others.collect());
    for set in sets {
        let user = granted(&streamer, set.clone());
        rest.put([user.clone()]).await;
        let declared = routes().into_iter().filter(|it| it.permission.is_some_and(|it| set.contains(&it)));
        let declared: BTreeSet<_> = declared.map(|it| format!("{} {}", it.method, it.path)).collect();
        assert_eq!(opened(&rest, user).await, declared, "{set:?}");
        let is_closed = |it: &&String| CLOSED.iter().any(|part| it.contains(part));
        assert_eq!(declared.iter().find(is_closed), None);
    }
    let declaring = routes().into_iter().filter(|it| it.permission.is_some());
    assert!(declaring.count() > 20);
}

#[tokio::test]
async fn the_list_of_permissions_says_which_have_an_effect() {
    let rest = Rest::start().await;
    let listed = rest.admin("GET", "/api/accounts/permissions/", Value::Null).await.body;
    let listed = listed["results"].as_array().unwrap();
    assert_eq!(listed.len(), 64);
    let with_effect: Vec<_> =
        listed.iter().filter(|it| it["effect"].is_string()).map(|it| &it["codename"]).collect();
    assert_eq!(with_effect, ["view_channel", "view_channelprofile", "add_recording"]);
}

/// Tries to schedule a recording, of another day each time, since the same times would be the same recording. Returns the
/// status.
async fn record(rest: &Rest, user: u32, channel: u32) -> u16 {
    static DAYS: AtomicU32 = AtomicU32::new(1);
    let day = DAYS.fetch_add(1, Ordering::Relaxed);
    let time = |hour: u32| format!("2031-05-{day:02}T{hour:02}:00:00Z");
    let body = json!({ "channel_id": channel, "start_time": time(7), "end_time": time(8) });
    rest.ask(user, "POST", RECORDINGS, body).await.status
}

#[tokio::test]
async fn permissions_from_before_the_upgrade_grant_nothing_until_an_admin_confirms_them() {
    let rest = Rest::start().await;
    let channel = |id| Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("channel {id}"), 0);
    rest.put([channel(1), Channel { is_adult: true, ..channel(2) }]).await;
    let group = UserGroupId(1);
    rest.put([UserGroup { id: group, name: "Family".to_owned(), permissions: [ADD_RECORDING].into() }]).await;
    let permissions: BTreeSet<_> = [VIEW_CHANNEL, PermissionId(1)].into();
    let old = User { permissions, groups: vec![group], hide_adult: true, ..(*rest.user(STREAMER)).clone() };
    rest.put([old]).await;
    let statuses = async || {
        let listed = rest.streamer("GET", CHANNELS, Value::Null).await.status;
        (listed, record(&rest, STREAMER, 1).await)
    };
    assert_eq!(statuses().await, (403, 403));
    let one = format!("/api/accounts/users/{STREAMER}/");
    let names = json!(["view_channel", "add_recording"]);
    assert_eq!(rest.admin("GET", &one, Value::Null).await.body["unconfirmed_permissions"], names);
    // A client that sends the whole object back confirms nothing.
    let same = json!({ "permissions": [VIEW_CHANNEL.0, 1], "groups": [1] });
    assert_eq!(rest.admin("PATCH", &one, same).await.status, 200);
    assert_eq!(statuses().await, (403, 403));

    let listed = rest.admin("GET", UNCONFIRMED, Value::Null).await.body;
    assert_eq!(listed["results"], json!([{ "id": STREAMER, "username": "streamer", "permissions": names }]));
    for user in [STREAMER, STANDARD] {
        let refused = rest.ask(user, "POST", CONFIRM, json!({ "user_ids": [STREAMER] })).await;
        assert_eq!(refused.status, 403, "users cannot confirm");
    }
    assert_eq!(rest.admin("POST", CONFIRM, json!({ "user_ids": [999] })).await.status, 400);
    let confirmed = rest.admin("POST", CONFIRM, json!({ "user_ids": [STREAMER] })).await;
    assert_eq!((confirmed.status, &confirmed.body["confirmed_count"]), (200, &json!(1)));
    assert_eq!(statuses().await, (200, 201));
    assert_eq!(rest.admin("GET", UNCONFIRMED, Value::Null).await.body["results"], json!([]));
    // Still only what the user sees, and only own recordings.
    let list = rest.streamer("GET", &format!("{CHANNELS}?include_streams=true"), Value::Null).await.body;
    assert_eq!((&list["count"], &list["results"][0]["streams"]), (&json!(1), &json!([])));
    assert_eq!(record(&rest, STREAMER, 2).await, 400, "a hidden channel");
    assert_eq!(record(&rest, ADMIN, 1).await, 201);
    assert_eq!(rest.streamer("GET", RECORDINGS, Value::Null).await.body["count"], 1);

    // The group loses the permission, and gets it back from an admin, who confirms it by that.
    let of_group = "/api/accounts/groups/1/";
    for (permissions, expected) in [(json!([]), 403), (json!([ADD_RECORDING.0]), 201)] {
        let changed = rest.admin("PATCH", of_group, json!({ "permissions": permissions })).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        assert_eq!(record(&rest, STREAMER, 1).await, expected);
    }
    assert_eq!(rest.admin("DELETE", of_group, Value::Null).await.status, 204);
    assert_eq!(statuses().await, (200, 403));
    assert_eq!(rest.user(STREAMER).granted, [VIEW_CHANNEL, PermissionId(1)].into());
}

#[tokio::test]
async fn the_permission_to_record_counts_where_the_settings_allow_nobody() {
    let rest = Rest::start().await;
    rest.put([Channel::new(ChannelId(1), Uuid::from_u128(1), "one", 0)]).await;
    let key = "recordings_enabled".to_owned();
    for (property, is_granted, expected) in
        [(None, false, 403), (None, true, 201), (Some(false), true, 403), (Some(true), false, 201)]
    {
        let ids = is_granted.then_some(ADD_RECORDING);
        let mut user = granted(&rest.user(STANDARD), ids);
        user.custom_properties.remove(&key);
        user.custom_properties.extend(property.map(|it| (key.clone(), json!(it))));
        rest.put([user]).await;
        assert_eq!(record(&rest, STANDARD, 1).await, expected, "{property:?} {is_granted}");
    }
}
