//! Custom properties of a user. The gateway stores two of the keys in fields of their own.

use domain::secret::Secret;
use domain::user::User;
use serde_json::{Map, Value};

use super::users::PASSWORD_CHARS_MAX;
use crate::http::reply::Refusal;

const FIELD: &str = "custom_properties";
/// The player password.
const PLAYER_PASSWORD: &str = "xc_password";
const HIDE_ADULT: &str = "hide_adult_content";
/// Keys that only admins may change.
const FOR_ADMINS: [&str; 4] = [PLAYER_PASSWORD, HIDE_ADULT, "allowed_networks", "catchup_enabled"];
/// Maximum size of all properties of a user as JSON, in bytes.
pub(super) const BYTES_MAX: usize = 100 * 1024;

/// Merges the sent properties key by key; `null` removes a key.
pub(super) fn merge(user: &mut User, sent: Map<String, Value>) -> Result<(), Refusal> {
    for (key, value) in sent {
        match (key.as_str(), value) {
            (PLAYER_PASSWORD, value) => user.player_password = player_password(value)?,
            (HIDE_ADULT, Value::Null) => user.hide_adult = false,
            (HIDE_ADULT, Value::Bool(hide)) => user.hide_adult = hide,
            (HIDE_ADULT, _) => return Err(wrong(HIDE_ADULT, "Must be a valid boolean.")),
            (_, Value::Null) => drop(user.custom_properties.remove(&key)),
            (_, value) => drop(user.custom_properties.insert(key, value)),
        }
    }
    check_size(FIELD, &user.custom_properties)
}

/// Merges properties that users send for themselves, without the keys that only admins may change.
pub(super) fn merge_own(user: &mut User, mut sent: Map<String, Value>) -> Result<(), Refusal> {
    sent.retain(|key, _| !FOR_ADMINS.contains(&key.as_str()));
    merge(user, sent)
}

/// Returns all properties, with the player password if the caller may see it.
pub(super) fn visible(user: &User, with_player_password: bool) -> Map<String, Value> {
    let mut visible = user.custom_properties.clone();
    if let Some(password) = user.player_password.as_ref().filter(|_| with_player_password) {
        visible.insert(PLAYER_PASSWORD.to_owned(), password.expose().into());
    }
    if user.hide_adult {
        visible.insert(HIDE_ADULT.to_owned(), true.into());
    }
    visible
}

/// Checks that the value does not exceed the maximum size.
pub(super) fn check_size(field: &str, value: &Map<String, Value>) -> Result<(), Refusal> {
    let n_bytes = serde_json::to_string(value).map_or(usize::MAX, |it| it.len());
    if n_bytes > BYTES_MAX {
        return Err(Refusal::field(
            field,
            format!("Ensure this field has no more than {BYTES_MAX} bytes as JSON."),
        ));
    }
    Ok(())
}

fn player_password(value: Value) -> Result<Option<Secret>, Refusal> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) if text.chars().count() > PASSWORD_CHARS_MAX => Err(wrong(
            PLAYER_PASSWORD,
            &format!("Ensure this field has no more than {PASSWORD_CHARS_MAX} characters."),
        )),
        Value::String(text) if text.chars().any(char::is_control) => {
            Err(wrong(PLAYER_PASSWORD, "Control characters are not allowed."))
        }
        Value::String(text) => Ok(Some(Secret::new(text))),
        _ => Err(wrong(PLAYER_PASSWORD, "Not a valid string.")),
    }
}

fn wrong(key: &str, message: &str) -> Refusal {
    Refusal::field(FIELD, format!("{key}: {message}"))
}

#[cfg(test)]
mod tests {
    use domain::ids::UserId;
    use domain::user::UserLevel;
    use serde_json::json;

    use super::*;

    fn anna() -> User {
        let mut anna = User::new(UserId(1), "anna", UserLevel::Streamer, 0);
        merge(
            &mut anna,
            object(json!({ "xc_password": "remote", "hide_adult_content": true, "a": 1, "b": 2 })),
        )
        .unwrap();
        anna
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn properties_are_merged_key_by_key_and_null_removes_one() {
        let mut anna = anna();
        assert_eq!(
            Value::from(anna.custom_properties.clone()),
            json!({ "a": 1, "b": 2 }),
            "two have fields of their own"
        );
        for (sent, shown_after) in [
            (json!({}), json!({ "a": 1, "b": 2, "xc_password": "remote", "hide_adult_content": true })),
            (
                json!({ "a": null, "c": [3] }),
                json!({ "b": 2, "c": [3], "xc_password": "remote", "hide_adult_content": true }),
            ),
            (
                json!({ "xc_password": "other" }),
                json!({ "b": 2, "c": [3], "xc_password": "other", "hide_adult_content": true }),
            ),
            (json!({ "xc_password": null, "hide_adult_content": false }), json!({ "b": 2, "c": [3] })),
            (json!({ "xc_password": "", "hide_adult_content": null, "b": {} }), json!({ "b": {}, "c": [3] })),
        ] {
            merge(&mut anna, object(sent.clone())).unwrap();
            assert_eq!(Value::from(visible(&anna, true)), shown_after, "{sent}");
        }
    }

    #[test]
    fn users_cannot_change_the_properties_that_only_admins_may_change() {
        let mut anna = anna();
        let sent = json!({
            "xc_password": "hack", "hide_adult_content": false, "allowed_networks": {}, "catchup_enabled": true, "a": 5,
        });
        merge_own(&mut anna, object(sent)).unwrap();
        let expected = json!({ "a": 5, "b": 2, "xc_password": "remote", "hide_adult_content": true });
        assert_eq!(Value::from(visible(&anna, true)), expected);
    }

    #[test]
    fn the_player_password_is_visible_only_to_those_who_may_see_it() {
        assert!(!visible(&anna(), false).contains_key("xc_password"));
    }

    #[test]
    fn an_invalid_property_is_refused_with_the_reason() {
        for (sent, message) in [
            (json!({ "xc_password": 7 }), "xc_password: Not a valid string."),
            (json!({ "xc_password": "a\nb" }), "xc_password: Control characters are not allowed."),
            (
                json!({ "xc_password": "x".repeat(129) }),
                "xc_password: Ensure this field has no more than 128 characters.",
            ),
            (json!({ "hide_adult_content": "yes" }), "hide_adult_content: Must be a valid boolean."),
            (
                json!({ "a": "x".repeat(BYTES_MAX) }),
                "Ensure this field has no more than 102400 bytes as JSON.",
            ),
        ] {
            let refusal = merge(&mut anna(), object(sent)).unwrap_err();
            let expected = format!("{:?}", Refusal::field(FIELD, message));
            assert_eq!(format!("{refusal:?}"), expected);
        }
    }
}
