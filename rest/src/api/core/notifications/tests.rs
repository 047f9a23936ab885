use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::ids::{AccountId, ProfileId};
use domain::notice::{DismissedNotices, NOTICE_AGE_MS_MAX, NOTICES_MAX};
use serde_json::{Value, json};

use super::*;
use crate::testing::{ADMIN, Rest, STANDARD, STREAMER};

async fn unread(rest: &Rest, user: u32) -> Value {
    rest.ask(user, "GET", COUNT, Value::Null).await.body["unread_count"].clone()
}

fn notice(id: u32, created_at: i64) -> Notice {
    Notice {
        id,
        key: format!("k{id}"),
        kind: NoticeKind::Info,
        priority: NoticePriority::Low,
        title: "t".to_owned(),
        message: "m".to_owned(),
        action_data: "null".to_owned(),
        is_active: true,
        for_admins: false,
        expires_at: None,
        created_at,
    }
}

#[tokio::test]
async fn users_get_the_notifications_of_admins_until_they_dismiss_them() {
    let rest = Rest::start().await;
    let before = unread(&rest, ADMIN).await.as_u64().unwrap();
    let new = json!({ "notification_key": "may", "title": "Maintenance", "message": "Tonight." });
    let made = rest.admin("POST", LIST, new.clone()).await;
    assert_eq!((made.status, &made.body["source"]), (201, &json!("developer")), "{}", made.text);
    assert_eq!(rest.admin("POST", LIST, new).await.status, 400, "the key is unique");
    let one = format!("{LIST}{}/", made.body["id"]);
    assert_eq!((unread(&rest, STREAMER).await, unread(&rest, ADMIN).await), (json!(1), json!(before + 1)));

    let dismissed = rest.streamer("POST", &format!("{one}dismiss/"), Value::Null).await;
    assert_eq!(
        (dismissed.status, &dismissed.body["dismissed_count"]),
        (200, &json!(1)),
        "{}",
        dismissed.text
    );
    let again = rest.streamer("POST", &format!("{one}dismiss/"), Value::Null).await;
    assert_eq!((again.status, &again.body["dismissed_count"]), (200, &json!(0)));
    assert_eq!((unread(&rest, STREAMER).await, unread(&rest, ADMIN).await), (json!(0), json!(before + 1)));
    assert_eq!(rest.streamer("GET", LIST, Value::Null).await.body["notifications"], json!([]));
    let all = rest.streamer("GET", &format!("{LIST}?include_dismissed=true"), Value::Null).await.body;
    assert_eq!((&all["count"], &all["notifications"][0]["is_dismissed"]), (&json!(1), &json!(true)));

    assert_eq!(rest.admin("PATCH", &one, json!({ "admin_only": true })).await.status, 200);
    assert_eq!(rest.streamer("GET", &one, Value::Null).await.status, 404);
    assert_eq!(rest.streamer("DELETE", &one, Value::Null).await.status, 403);
    assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 204);
    assert_eq!(rest.admin("POST", &format!("{one}dismiss/"), Value::Null).await.status, 404);
}

#[tokio::test]
async fn a_condition_is_a_notification_for_admins_and_stays_dismissed_while_it_lasts() {
    let rest = Rest::start().await;
    rest.admin("POST", DISMISS_ALL, Value::Null).await;
    assert_eq!(unread(&rest, ADMIN).await, 0);
    let expiring = |at: i64| {
        let login =
            AccountProfile { expires_at: Some(at), ..AccountProfile::default_of(ProfileId(2), "a", 1) };
        Account::new(AccountId(2), "provider", PlaylistLocation::None, login, 0)
    };
    rest.put([expiring(1)]).await;
    let listed = rest.admin("GET", LIST, Value::Null).await.body;
    assert_eq!((&listed["count"], &listed["notifications"][0]["source"]), (&json!(1), &json!("system")));
    assert_eq!(unread(&rest, STANDARD).await, 0, "not for other users");
    let id = listed["notifications"][0]["id"].clone();
    let done = rest.admin("POST", &format!("{LIST}{id}/dismiss/"), Value::Null).await;
    assert_eq!((done.status, &done.body["dismissed_count"]), (200, &json!(1)), "{}", done.text);
    assert_eq!(unread(&rest, ADMIN).await, 0);
    rest.put([expiring(2)]).await;
    assert_eq!(unread(&rest, ADMIN).await, 1, "another expiry");
    assert_eq!(rest.admin("DELETE", &format!("{LIST}{id}/"), Value::Null).await.status, 404);
}

#[tokio::test]
async fn notifications_are_bounded_in_number_age_and_size() {
    let rest = Rest::start().await;
    let now = now_ms();
    let n_max = u32::try_from(NOTICES_MAX).unwrap();
    rest.put((1..=n_max).map(|id| notice(id, now))).await;
    let new = |key: &str| json!({ "notification_key": key, "title": "t", "message": "m" });
    let full = rest.admin("POST", LIST, new("one more")).await;
    assert_eq!(full.status, 400);
    assert!(full.text.contains("delete some first"), "{}", full.text);

    rest.put([notice(1, now - NOTICE_AGE_MS_MAX - 1)]).await;
    assert_eq!(rest.admin("POST", LIST, new("one more")).await.status, 201, "an old one makes room");
    assert!(rest.models.notices.load().get(1).is_none());

    let large = json!({ "action_data": "x".repeat(20_000) });
    let refused = rest.admin("PATCH", &format!("{LIST}2/"), large).await;
    assert_eq!((refused.status, refused.body.get("action_data").is_some()), (400, true), "{}", refused.text);
}

#[tokio::test]
async fn dismissals_of_deleted_notifications_and_users_are_forgotten() {
    let rest = Rest::start().await;
    rest.put([notice(1, 0), notice(2, 0)]).await;
    let gone = DismissedNotices { user: UserId(900), keys: BTreeSet::from(["k1".to_owned()]) };
    rest.put([gone]).await;
    let dismiss = async |id: u32| {
        let done = rest.streamer("POST", &format!("{LIST}{id}/dismiss/"), Value::Null).await;
        assert_eq!(done.status, 200, "{}", done.text);
    };
    dismiss(1).await;
    assert_eq!(rest.admin("DELETE", &format!("{LIST}1/"), Value::Null).await.status, 204);
    dismiss(2).await;
    let all = rest.models.dismissed_notices.load();
    assert_eq!(all.get(STREAMER).unwrap().keys, BTreeSet::from(["k2".to_owned()]));
    assert!(all.get(900).is_none());
}
