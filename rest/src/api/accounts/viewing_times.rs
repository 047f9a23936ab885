//! The allowed hours and the sleep timer of a user, in answers and bodies.

use actors::now_ms;
use domain::allowed_hours::AllowedHours;
use domain::user::User;
use route_frame::field::{Field, Kind};
use route_frame::value::{Readable, Shape, Time};
use serde::{Serialize, Serializer};
use serde_json::Value;
use server::reply::Refusal;

/// Maximum duration of a sleep timer, in minutes: a day.
pub(super) const SLEEP_MINUTES_MAX: i64 = 24 * 60;
const MINUTE_MS: i64 = 60_000;

/// A table of allowed hours.
#[derive(Clone, Debug)]
pub(crate) struct Hours(pub(super) AllowedHours);

impl Shape for Hours {
    const KIND: Kind = Kind::Object;
}

impl Readable for Hours {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        let object = value.as_object().ok_or("Expected an object with time_zone and days.")?;
        AllowedHours::from_object(object).map(Self)
    }
}

impl Serialize for Hours {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.to_object().serialize(serializer)
    }
}

/// Sets or removes the sleep timer of a user, by its end or by its duration in minutes. Clients send whole records back, so
/// the present end is accepted at any time.
pub(super) fn set_sleep(
    user: &mut User,
    until: Option<Option<Time>>,
    minutes: Option<u32>,
) -> Result<(), Refusal> {
    let now = now_ms();
    let until = match (minutes, until) {
        (Some(0), _) => None,
        (Some(minutes), _) => Some(now + i64::from(minutes) * MINUTE_MS),
        (None, Some(until)) => until.map(|it| it.0),
        (None, None) => return Ok(()),
    };
    let is_new = until != user.sleep_until;
    if let Some(until) = until.filter(|_| is_new)
        && !(now..=now + SLEEP_MINUTES_MAX * MINUTE_MS).contains(&until)
    {
        return Err(Refusal::field("sleep_until", "Choose a time within the next 24 hours."));
    }
    user.sleep_until = until;
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::channel::Channel;
    use domain::group::Group;
    use domain::ids::{ChannelId, GroupId};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::testing::{ADMIN, Rest, STANDARD, STREAMER};

    const ME: &str = "/api/accounts/users/me/";

    fn one(id: u32) -> String {
        format!("/api/accounts/users/{id}/")
    }

    #[tokio::test]
    async fn admins_set_the_allowed_hours_and_a_wrong_table_is_refused_by_field() {
        let rest = Rest::start().await;
        let hours = json!({ "time_zone": "Europe/Berlin", "sat": ["09:00-12:00", "14:00-19:30"] });
        let set = rest.admin("PATCH", &one(STREAMER), json!({ "allowed_hours": hours })).await;
        assert_eq!((set.status, &set.body["allowed_hours"]["sat"]), (200, &hours["sat"]), "{}", set.text);
        assert_eq!(set.body["allowed_hours"]["sun"], json!([]));
        for wrong in [json!({}), json!({ "time_zone": "UTC", "mon": ["9-10"] }), json!("always")] {
            let refused = rest.admin("PATCH", &one(STREAMER), json!({ "allowed_hours": wrong })).await;
            assert!(refused.status == 400 && refused.body["allowed_hours"].is_array(), "{}", refused.text);
        }
        // Users see their own, and cannot change them.
        let own = rest.streamer("PATCH", ME, json!({ "allowed_hours": null, "email": "" })).await;
        assert_eq!((own.status, &own.body["allowed_hours"]["sat"]), (200, &hours["sat"]), "{}", own.text);
        let removed = rest.admin("PATCH", &one(STREAMER), json!({ "allowed_hours": null })).await;
        assert_eq!((removed.status, &removed.body["allowed_hours"]), (200, &Value::Null));
    }

    #[tokio::test]
    async fn a_sleep_timer_is_set_by_admins_and_by_the_user_within_a_day() {
        let rest = Rest::start().await;
        for minutes in [1, 1_440] {
            let set = rest.streamer("PATCH", ME, json!({ "sleep_minutes": minutes })).await;
            assert_eq!((set.status, set.body["sleep_until"].is_string()), (200, true), "{}", set.text);
            let left = rest.user(STREAMER).sleep_until.unwrap() - now_ms();
            assert!((0..=minutes * MINUTE_MS).contains(&left), "{left}");
        }
        // The whole record is sent back.
        let shown = rest.admin("GET", &one(STREAMER), Value::Null).await.body;
        let put = rest.admin("PUT", &one(STREAMER), shown.clone()).await;
        assert_eq!((put.status, &put.body["sleep_until"]), (200, &shown["sleep_until"]), "{}", put.text);
        let at = domain::time::iso_millis(now_ms() + MINUTE_MS);
        let set = rest.admin("PATCH", &one(STANDARD), json!({ "sleep_until": at })).await;
        assert_eq!((set.status, &set.body["sleep_until"]), (200, &json!(at)), "{}", set.text);
        for (field, wrong) in [
            ("sleep_until", json!("2020-01-01T00:00:00Z")),
            ("sleep_until", json!("2999-01-01T00:00:00Z")),
            ("sleep_minutes", json!(1_441)),
        ] {
            let refused = rest.streamer("PATCH", ME, json!({ field: wrong })).await;
            assert!(refused.status == 400 && refused.body[field].is_array(), "{}", refused.text);
        }
        for removal in [json!({ "sleep_until": null }), json!({ "sleep_minutes": 0 })] {
            rest.streamer("PATCH", ME, json!({ "sleep_minutes": 5 })).await;
            let removed = rest.streamer("PATCH", ME, removal).await;
            assert_eq!(
                (removed.status, &removed.body["sleep_until"]),
                (200, &Value::Null),
                "{}",
                removed.text
            );
        }
    }

    #[tokio::test]
    async fn groups_of_a_user_limit_what_the_user_sees_and_a_deleted_group_hides_more() {
        let rest = Rest::start().await;
        rest.put([Group::new(GroupId(1), "Kids"), Group::new(GroupId(2), "News")]).await;
        let channel = |id: u32, group: Option<u32>| Channel {
            group: group.map(GroupId),
            ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("channel {id}"), 0)
        };
        rest.put([channel(1, Some(1)), channel(2, Some(2)), channel(3, None)]).await;
        let unknown = rest.admin("PATCH", &one(STANDARD), json!({ "channel_group_ids": [1, 9] })).await;
        assert!(unknown.status == 400 && unknown.body["channel_group_ids"].is_array(), "{}", unknown.text);
        let seen = async |user: u32| {
            let listed = rest.ask(user, "GET", "/api/channels/channels/?page_size=10", Value::Null).await;
            let all = listed.body["results"].as_array().unwrap().clone();
            all.iter().filter_map(|it| it["id"].as_u64()).collect::<Vec<_>>()
        };
        assert_eq!(seen(STANDARD).await, [1, 2, 3]);
        let set = rest.admin("PATCH", &one(STANDARD), json!({ "channel_group_ids": [1, 1] })).await;
        assert_eq!((set.status, &set.body["channel_group_ids"]), (200, &json!([1])), "{}", set.text);
        assert_eq!((seen(STANDARD).await, seen(ADMIN).await), (vec![1], vec![1, 2, 3]));
        // Deleting the group must not show the user all others.
        rest.put([channel(1, None)]).await;
        assert_eq!(rest.admin("DELETE", "/api/channels/groups/1/", Value::Null).await.status, 204);
        assert_eq!(seen(STANDARD).await, [0_u64; 0]);
        let shown = rest.admin("GET", &one(STANDARD), Value::Null).await.body;
        let put = rest.admin("PUT", &one(STANDARD), shown).await;
        assert_eq!((put.status, &put.body["channel_group_ids"]), (200, &json!([1])), "{}", put.text);
    }
}
