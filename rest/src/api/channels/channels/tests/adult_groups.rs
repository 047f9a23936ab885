//! Channels of groups that an admin marks as adult content.

use super::*;

const NEWS: &str = "/api/channels/groups/7/";

async fn mark(rest: &Rest, is_adult: bool) {
    let marked = rest.admin("PATCH", NEWS, json!({ "is_adult": is_adult })).await;
    assert_eq!((marked.status, &marked.body["is_adult"]), (200, &json!(is_adult)), "{}", marked.text);
}

/// Returns the names of the channels that are adult content, by id.
async fn adult(rest: &Rest) -> Vec<String> {
    names(rest, "is_adult=true&ordering=id").await
}

#[tokio::test]
async fn a_marked_group_hides_its_channels_and_those_that_it_gets_later() {
    let rest = stage().await;
    rest.models.streams.at(rest.models.store.version()).await.unwrap();
    make(&rest, json!({ "name": "in the group", "channel_group": "News" })).await;
    make(&rest, json!({ "name": "plays a stream of it", "streams": [1] })).await;
    let other = make(&rest, json!({ "name": "elsewhere", "channel_group": "Sports", "streams": [3] })).await;
    let decided = make(&rest, json!({ "name": "decided", "channel_group": "News", "is_adult": true })).await;
    assert_eq!(adult(&rest).await, ["decided"]);
    mark(&rest, true).await;
    assert_eq!(adult(&rest).await, ["in the group", "plays a stream of it", "decided"]);
    assert_eq!(rest.admin("DELETE", &one(&decided), Value::Null).await.status, 204);

    make(&rest, json!({ "name": "new", "channel_group": "News" })).await;
    let kept = make(&rest, json!({ "name": "kept", "channel_group": "News", "is_adult": false })).await;
    let from = rest.admin("POST", &format!("{LIST}from-stream/"), json!({ "stream_id": 2 })).await;
    assert_eq!((from.status, &from.body["is_adult"]), (201, &json!(true)), "{}", from.text);
    let moved = rest.admin("PATCH", &one(&other), json!({ "channel_group": "News" })).await;
    assert_eq!(moved.body["is_adult"], true, "{}", moved.text);
    let back = rest.admin("PATCH", &one(&other), json!({ "channel_group": "Sports" })).await;
    assert_eq!(back.body["is_adult"], false, "{}", back.text);
    let assign = json!({ "ids": [other["id"]], "stream_ids": [2], "mode": "append" });
    assert_eq!(rest.admin("POST", &format!("{LIST}assign-streams/"), assign).await.status, 200);
    let expected = ["in the group", "plays a stream of it", "elsewhere", "new", "News Two"];
    assert_eq!(adult(&rest).await, expected);

    // A former name of the group is one of its names.
    assert_eq!(rest.admin("PATCH", NEWS, json!({ "name": "World" })).await.status, 200);
    mark(&rest, false).await;
    assert_eq!(adult(&rest).await, [""; 0]);
    mark(&rest, true).await;
    assert_eq!(adult(&rest).await, expected);
    let kept = rest.admin("GET", &one(&kept), Value::Null).await.body;
    assert_eq!(kept["is_adult"], false, "an admin decided otherwise");
}

#[tokio::test]
async fn a_group_can_be_created_as_adult_and_users_of_other_content_do_not_find_it() {
    let rest = stage().await;
    rest.models.streams.at(rest.models.store.version()).await.unwrap();
    make(&rest, json!({ "name": "film", "streams": [3] })).await;
    let made =
        rest.admin("POST", "/api/channels/groups/", json!({ "name": "Films", "is_adult": true })).await;
    assert_eq!((made.status, &made.body["is_adult"]), (201, &json!(true)), "{}", made.text);
    assert_eq!(adult(&rest).await, ["film"]);
    let path = format!("/api/channels/groups/{}/", made.body["id"]);
    assert_eq!(rest.standard("GET", &path, Value::Null).await.status, 200);
    rest.put([User { hide_adult: true, ..(*rest.user(STANDARD_USER)).clone() }]).await;
    assert_eq!(rest.standard("GET", &path, Value::Null).await.status, 404);
    assert_eq!(rest.standard("PATCH", &path, json!({ "is_adult": false })).await.status, 403);
}
