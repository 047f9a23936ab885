//! Custom properties of a user. The gateway stores two of the keys in fields of their own, and checks those that clients
//! and the gateway have in common.

use config::{ALLOWED_NETWORKS, NetworkClass, UserNetworks};
use domain::output_format::{OUTPUT_FORMATS, OutputFormat};
use domain::recording::QUOTA_BYTES_MAX;
use domain::recording::retention::USER_QUOTA;
use domain::secret::Secret;
use domain::user::{CATCHUP_ENABLED, RECORDINGS_ENABLED, User};
use route_frame::call::Call;
use serde_json::{Map, Value};
use server::reply::Refusal;

use super::user_rules::PASSWORD_CHARS_MAX;

const FIELD: &str = "custom_properties";
/// The player password.
const PLAYER_PASSWORD: &str = "xc_password";
const HIDE_ADULT: &str = "hide_adult_content";
/// Keys that only admins may change.
const FOR_ADMINS: [&str; 7] = [
    PLAYER_PASSWORD,
    HIDE_ADULT,
    ALLOWED_NETWORKS,
    USER_QUOTA,
    RECORDINGS_ENABLED,
    CATCHUP_ENABLED,
    OUTPUT_FORMATS,
];
/// Maximum number of days of a guide.
const GUIDE_DAYS_MAX: u64 = 365;
/// Maximum number of items of a menu, and length of each, in characters.
const MENU_ITEMS_MAX: usize = 100;
const WORD_CHARS_MAX: usize = 100;
/// Maximum number of names in a list of formats; a format has several names.
const FORMATS_MAX: usize = 10;
/// Maximum size of all properties of a user as JSON, in bytes.
pub(super) const BYTES_MAX: usize = 100 * 1024;

/// Merges the sent properties key by key; `null` removes a key.
pub(super) fn merge(user: &mut User, sent: Map<String, Value>) -> Result<(), Refusal> {
    for (key, value) in sent {
        match (key.as_str(), value) {
            (PLAYER_PASSWORD, value) => user.set_player_password(player_password(value)?),
            (HIDE_ADULT, Value::Null) => user.hide_adult = false,
            (HIDE_ADULT, Value::Bool(hide)) => user.hide_adult = hide,
            (HIDE_ADULT, _) => return Err(wrong(HIDE_ADULT, "Expected true or false.")),
            (_, Value::Null) => drop(user.custom_properties.remove(&key)),
            (_, value) => {
                check_value(&key, &value).map_err(|message| wrong(&key, &message))?;
                user.custom_properties.insert(key, value);
            }
        }
    }
    check_size(FIELD, &user.custom_properties)
}

/// Checks the value of a key that known clients use. Any other key may have any value.
fn check_value(key: &str, value: &Value) -> Result<(), String> {
    let is_word = |it: &Value| it.as_str().is_some_and(|it| it.chars().count() <= WORD_CHARS_MAX);
    let is_good = match key {
        ALLOWED_NETWORKS => return UserNetworks::read(value).map(drop),
        "epg_days" | "epg_prev_days" => match value.as_u64() {
            Some(days) if days <= GUIDE_DAYS_MAX => true,
            _ => return Err(format!("A number of days from 0 to {GUIDE_DAYS_MAX} is required.")),
        },
        USER_QUOTA => match value.as_u64() {
            Some(bytes) if bytes <= QUOTA_BYTES_MAX => true,
            _ => return Err(format!("A number of bytes from 0 to {QUOTA_BYTES_MAX} is required.")),
        },
        RECORDINGS_ENABLED | CATCHUP_ENABLED => match value.is_boolean() {
            true => true,
            false => return Err("Expected true or false.".to_owned()),
        },
        OUTPUT_FORMATS if has_formats(value) => true,
        OUTPUT_FORMATS => {
            let names = OutputFormat::ALL.map(OutputFormat::name).join(", ");
            return Err(format!("A list of formats is required, of {names}, the preferred one first."));
        }
        "output_format" => is_word(value),
        "output_profile" => is_word(value) || value.is_u64(),
        "navOrder" | "hiddenNav" => {
            value.as_array().is_some_and(|it| it.len() <= MENU_ITEMS_MAX && it.iter().all(is_word))
        }
        _ => true,
    };
    if is_good { Ok(()) } else { Err("This value is not valid.".to_owned()) }
}

/// Returns whether a value is a list of formats.
fn has_formats(value: &Value) -> bool {
    let is_format = |it: &Value| it.as_str().is_some_and(|it| OutputFormat::from_name(it).is_some());
    match value {
        Value::Array(items) => (1..=FORMATS_MAX).contains(&items.len()) && items.iter().all(is_format),
        Value::String(text) => text.split(',').all(|it| OutputFormat::from_name(it).is_some()),
        _ => false,
    }
}

/// Refuses a change of the caller's own networks after which this very request would be refused.
pub(super) fn check_own_networks(
    call: &Call,
    apply: impl FnOnce(&mut User) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let mut user = (**call.user()?).clone();
    apply(&mut user)?;
    match UserNetworks::from_user(&user).limit(NetworkClass::Ui) {
        Some(networks) if !call.caller.is_in(networks) => Err(wrong(
            ALLOWED_NETWORKS,
            "Your present address is in none of these networks for the interface.",
        )),
        _ => Ok(()),
    }
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
        _ => Err(wrong(PLAYER_PASSWORD, "Expected a text.")),
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
            (
                json!({ "output_formats": ["HLS", "ts"] }),
                json!({ "b": 2, "c": [3], "output_formats": ["HLS", "ts"] }),
            ),
            (
                json!({ "output_formats": "m3u8,ts" }),
                json!({ "b": 2, "c": [3], "output_formats": "m3u8,ts" }),
            ),
            (json!({ "output_formats": null }), json!({ "b": 2, "c": [3] })),
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
            "xc_password": "hack", "hide_adult_content": false, "allowed_networks": {}, "catchup_enabled": true,
            "recording_quota_bytes": 0, "recordings_enabled": true, "output_formats": ["ts"], "a": 5,
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
            (json!({ "xc_password": 7 }), "xc_password: Expected a text."),
            (json!({ "xc_password": "a\nb" }), "xc_password: Control characters are not allowed."),
            (
                json!({ "xc_password": "x".repeat(129) }),
                "xc_password: Ensure this field has no more than 128 characters.",
            ),
            (json!({ "hide_adult_content": "yes" }), "hide_adult_content: Expected true or false."),
            (json!({ "epg_days": -1 }), "epg_days: A number of days from 0 to 365 is required."),
            (json!({ "epg_prev_days": "7" }), "epg_prev_days: A number of days from 0 to 365 is required."),
            (
                json!({ "recording_quota_bytes": "1 GB" }),
                "recording_quota_bytes: A number of bytes from 0 to 9007199254740991 is required.",
            ),
            (json!({ "catchup_enabled": 1 }), "catchup_enabled: Expected true or false."),
            (json!({ "recordings_enabled": "on" }), "recordings_enabled: Expected true or false."),
            (json!({ "output_format": ["ts"] }), "output_format: This value is not valid."),
            (
                json!({ "output_formats": ["ts", "rtmp"] }),
                "output_formats: A list of formats is required, of ts, m3u8, mp4, the preferred one first.",
            ),
            (
                json!({ "output_formats": [] }),
                "output_formats: A list of formats is required, of ts, m3u8, mp4, the preferred one first.",
            ),
            (json!({ "output_profile": -1 }), "output_profile: This value is not valid."),
            (json!({ "navOrder": "channels" }), "navOrder: This value is not valid."),
            (json!({ "hiddenNav": [7] }), "hiddenNav: This value is not valid."),
            (
                json!({ "allowed_networks": { "UI": ["lan"] } }),
                "allowed_networks: UI: invalid network `lan`: expected `loopback`, `private`, `any`, an address or \
                 ADDRESS/PREFIX, or `none` alone",
            ),
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
