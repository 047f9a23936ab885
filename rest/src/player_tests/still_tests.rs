//! Who may ask for a picture of a channel. No channel plays in these tests.

use domain::allowed_hours::AllowedHours;
use domain::channel::Channel;
use domain::ids::{ChannelId, UserId};
use domain::user::{User, UserLevel};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::testing::{ADMIN, Rest, STANDARD, STREAMER};

const NO_STORE: &str = "private, no-store";
const CHILD: UserId = UserId(20);
const LATE: UserId = UserId(21);
const PLAIN: Uuid = Uuid::from_u128(1);
const ADULT: Uuid = Uuid::from_u128(2);
const FOR_ADMINS: Uuid = Uuid::from_u128(3);
const DISABLED: Uuid = Uuid::from_u128(4);
const UNKNOWN: Uuid = Uuid::from_u128(9);

/// Starts with a channel of each kind, a user who sees no adult channel, and one who may watch at no time.
async fn furnished() -> Rest {
    let rest = Rest::start().await;
    let channel = |id: u32, uuid| Channel::new(ChannelId(id), uuid, "one", 0);
    rest.put([
        channel(1, PLAIN),
        Channel { is_adult: true, ..channel(2, ADULT) },
        Channel { user_level: UserLevel::Admin, ..channel(3, FOR_ADMINS) },
        Channel { enabled: false, ..channel(4, DISABLED) },
    ])
    .await;
    let never = json!({ "time_zone": "UTC" });
    rest.put([
        User { hide_adult: true, ..User::new(CHILD, "child", UserLevel::Standard, 0) },
        User {
            allowed_hours: AllowedHours::from_object(never.as_object().unwrap()).ok(),
            ..User::new(LATE, "late", UserLevel::Standard, 0)
        },
    ])
    .await;
    rest
}

#[tokio::test]
async fn a_picture_is_for_users_who_may_watch_the_channel_now() {
    let rest = furnished().await;
    let (idle, hidden) = ((404, true), (404, false));
    for (user, uuid, expected) in [
        (STREAMER, PLAIN, idle),
        (STREAMER, ADULT, idle),
        (STREAMER, FOR_ADMINS, hidden),
        (STREAMER, DISABLED, hidden),
        (STREAMER, UNKNOWN, hidden),
        (STANDARD, PLAIN, idle),
        (STANDARD, FOR_ADMINS, hidden),
        (CHILD.0, PLAIN, idle),
        (CHILD.0, ADULT, hidden),
        (LATE.0, PLAIN, (403, false)),
        (ADMIN, FOR_ADMINS, idle),
        // It may be a preview.
        (ADMIN, UNKNOWN, idle),
    ] {
        let answer = rest.ask(user, "GET", &format!("/proxy/ts/still/{uuid}"), Value::Null).await;
        let is_idle = answer.text.contains("is not playing");
        assert_eq!((answer.status, is_idle), expected, "{user} {uuid}: {}", answer.text);
        // A hidden channel is answered like an unknown one.
        assert_eq!(answer.text.contains("channel not found"), expected == hidden, "{user} {uuid}");
    }
}

#[tokio::test]
async fn a_picture_needs_a_login_and_the_uuid_of_a_channel() {
    let rest = furnished().await;
    let plain = format!("/proxy/ts/still/{PLAIN}");
    assert_eq!(rest.send("GET", &plain, &[], "").await.status, 401);
    assert_eq!(rest.admin("GET", "/proxy/ts/still/1", Value::Null).await.status, 404);
    assert_eq!(rest.admin("POST", &plain, Value::Null).await.status, 405);
    assert_eq!(rest.admin("GET", &format!("{plain}?quiet=maybe"), Value::Null).await.status, 400);
}

/// Browsers report each 404 as an error of the page.
#[tokio::test]
async fn a_page_can_ask_quietly_for_a_picture_that_may_be_missing_but_not_for_a_hidden_one() {
    let rest = furnished().await;
    for (user, uuid, expected) in [(STANDARD, PLAIN, 204), (STANDARD, FOR_ADMINS, 404), (LATE.0, PLAIN, 403)]
    {
        let answer = rest.ask(user, "GET", &format!("/proxy/ts/still/{uuid}?quiet=true"), Value::Null).await;
        assert_eq!(answer.status, expected, "{user} {uuid}: {}", answer.text);
        if expected == 204 {
            assert_eq!(
                (answer.text.as_str(), answer.headers["cache-control"].to_str().unwrap()),
                ("", NO_STORE)
            );
        }
    }
}
