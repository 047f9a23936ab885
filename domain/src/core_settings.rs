//! Core settings: what an admin can change while the gateway runs, over what file, environment and arguments say.
//!
//! Each is a [`CoreSetting`](crate::setting::CoreSetting) under one of the keys below, whose value is an object. A member that
//! is not there leaves what stands below it as it is.

use serde_json::{Map, Value};

use crate::ids::StreamProfileId;
use crate::settings::Settings;

/// Members of the engine's [`Settings`] under their own names. The default stream profile is not among them.
pub const PROXY_SETTINGS: &str = "proxy_settings";
/// `default_stream_profile`: the id of a stream profile.
pub const STREAM_SETTINGS: &str = "stream_settings";
/// `time_zone`: an IANA name, such as `Europe/Berlin`. `log_level`: how much is logged.
pub const SYSTEM_SETTINGS: &str = "system_settings";

/// Every key, with its name for people.
pub const SETTING_KEYS: [(&str, &str); 3] = [
    (PROXY_SETTINGS, "Proxy settings"),
    (STREAM_SETTINGS, "Stream settings"),
    (SYSTEM_SETTINGS, "System settings"),
];

/// The time zone where none is set.
pub const DEFAULT_TIME_ZONE: &str = "UTC";

const DEFAULT_STREAM_PROFILE: &str = "default_stream_profile";
const TIME_ZONE_MEMBER: &str = "time_zone";
const LOG_LEVEL: &str = "log_level";

/// A member of a value that cannot be used, and why; the reason goes on after the name.
pub type FieldError = (String, String);

/// What values are checked against.
pub struct SettingChecks<'a> {
    /// What file, environment and arguments say of the engine.
    pub base: &'a Settings,
    pub has_stream_profile: &'a dyn Fn(StreamProfileId) -> bool,
    /// Whether the gateway knows a time zone of this name.
    pub has_time_zone: &'a dyn Fn(&str) -> bool,
    /// What is wrong with a log level, if something is.
    pub wrong_log_level: &'a dyn Fn(&str) -> Option<String>,
}

/// Says of every member of a value whether it can be used under this key.
///
/// # Errors
/// Each member that cannot, with the reason. What is wrong with the whole value, or with the key, stands under
/// `value` or `key`.
pub fn check(key: &str, value: &Value, known: &SettingChecks<'_>) -> Result<(), Vec<FieldError>> {
    if !SETTING_KEYS.iter().any(|it| it.0 == key) {
        return Err(vec![error("key", "is not the key of a core setting")]);
    }
    let Value::Object(members) = value else {
        return Err(vec![error("value", "must be an object")]);
    };
    let errors = match key {
        PROXY_SETTINGS => lay_over(known.base, members).1,
        _ => members.iter().filter_map(|(name, value)| wrong_member(key, name, value, known)).collect(),
    };
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The engine's settings with these `proxy_settings` over them, and what of these was left out. The result can always
/// be used when the base can: a value that was good once may not go with what the file says today.
pub fn effective(base: &Settings, proxy_settings: Option<&Value>) -> (Settings, Vec<FieldError>) {
    match proxy_settings {
        None => (base.clone(), Vec::new()),
        Some(Value::Object(members)) => lay_over(base, members),
        Some(_) => (base.clone(), vec![error("value", "must be an object")]),
    }
}

/// The stream profile for streams and channels that refer to none, by `stream_settings`.
pub fn default_stream_profile(stream_settings: Option<&Value>) -> Option<StreamProfileId> {
    profile_id(stream_settings?.get(DEFAULT_STREAM_PROFILE)?)
}

/// The time zone of schedules, by `system_settings`.
pub fn time_zone(system_settings: Option<&Value>) -> &str {
    system_settings.and_then(|it| it.get(TIME_ZONE_MEMBER)?.as_str()).unwrap_or(DEFAULT_TIME_ZONE)
}

/// The log level that is set, by `system_settings`; `None` leaves it to what file, environment and arguments say.
pub fn log_level(system_settings: Option<&Value>) -> Option<&str> {
    system_settings?.get(LOG_LEVEL)?.as_str().filter(|it| !it.is_empty())
}

fn wrong_member(key: &str, name: &str, value: &Value, known: &SettingChecks<'_>) -> Option<FieldError> {
    let reason = match (key, name) {
        // Nothing is how one says that the default should hold again.
        (STREAM_SETTINGS, DEFAULT_STREAM_PROFILE) if value.is_null() => return None,
        (STREAM_SETTINGS, DEFAULT_STREAM_PROFILE) => match profile_id(value) {
            Some(id) if (known.has_stream_profile)(id) => return None,
            Some(_) => "is not the id of a stream profile",
            None => "must be the id of a stream profile",
        },
        (SYSTEM_SETTINGS, TIME_ZONE_MEMBER) => match value.as_str() {
            Some(zone) if (known.has_time_zone)(zone) => return None,
            Some(_) => "is not the name of a time zone",
            None => "must be the name of a time zone",
        },
        (SYSTEM_SETTINGS, LOG_LEVEL) => match value.as_str() {
            Some("") => return None,
            Some(level) => return (known.wrong_log_level)(level).map(|reason| error(name, reason)),
            None if value.is_null() => return None,
            None => "must be a log level, such as debug",
        },
        _ => NO_SUCH_SETTING,
    };
    Some(error(name, reason))
}

const NO_SUCH_SETTING: &str = "is not a setting";

/// Lays members over the base, each for itself; then takes those away again that do not go with the others.
fn lay_over(base: &Settings, members: &Map<String, Value>) -> (Settings, Vec<FieldError>) {
    let mut errors = Vec::new();
    let mut taken: Vec<(&String, &Value)> = Vec::new();
    for (name, value) in members {
        match with(base, &[(name, value)]) {
            _ if name == DEFAULT_STREAM_PROFILE => errors.push(error(name, "belongs to stream_settings")),
            Ok(_) => taken.push((name, value)),
            Err(reason) => errors.push(error(name, reason)),
        }
    }
    loop {
        let settings = with(base, &taken).unwrap_or_else(|_| base.clone());
        let Err(wrong) = settings.check() else { return (settings, errors) };
        let n_before = taken.len();
        taken.retain(|it| it.0 != wrong.field);
        // What is blamed stands in the base: something that was laid over does not go with it.
        if taken.len() == n_before {
            taken.clear();
        }
        errors.push(error(wrong.field, wrong.reason));
        if n_before == 0 {
            return (base.clone(), errors);
        }
    }
}

fn with(base: &Settings, members: &[(&String, &Value)]) -> Result<Settings, String> {
    let mut whole = serde_json::to_value(base).map_err(|it| it.to_string())?;
    let all = whole.as_object_mut().ok_or("is no object")?;
    for (name, value) in members {
        let place = all.get_mut(*name).ok_or(NO_SUCH_SETTING)?;
        *place = (*value).clone();
    }
    serde_json::from_value(whole).map_err(|it| format!("cannot be used: {it}"))
}

fn profile_id(value: &Value) -> Option<StreamProfileId> {
    value.as_u64().and_then(|it| u32::try_from(it).ok()).map(StreamProfileId)
}

fn error(name: &str, reason: impl Into<String>) -> FieldError {
    (name.to_owned(), reason.into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    /// The names of the members that are refused.
    #[track_caller]
    fn refused(key: &str, value: Value, expected: &[(&str, &str)]) {
        let known = SettingChecks {
            base: &Settings::default(),
            has_stream_profile: &|it| it.0 <= 2,
            has_time_zone: &|it| it == "Europe/Berlin",
            wrong_log_level: &|it| (it != "debug").then(|| "is no level".to_owned()),
        };
        let errors = check(key, &value, &known).err().unwrap_or_default();
        let names: Vec<_> = errors.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, expected.iter().map(|it| it.0).collect::<Vec<_>>(), "{value}: {errors:?}");
        for ((_, reason), (_, part)) in errors.iter().zip(expected) {
            assert!(reason.contains(part), "{value}: {reason}");
        }
    }

    #[test]
    fn every_member_that_cannot_be_used_is_named_with_the_reason() {
        refused(PROXY_SETTINGS, json!({}), &[]);
        refused(PROXY_SETTINGS, json!({"stall_timeout": 2.5, "return_to_preferred_after": null}), &[]);
        refused(PROXY_SETTINGS, json!({"stal_timeout": 2}), &[("stal_timeout", "is not a setting")]);
        refused(
            PROXY_SETTINGS,
            json!({"at_limit": "no", "stall_timeout": "2", "slow_client_limit": 0, "ring_bytes": 1}),
            &[
                ("at_limit", "unknown variant"),
                ("stall_timeout", "invalid type"),
                ("ring_bytes", "at least"),
                ("slow_client_limit", "1 or more"),
            ],
        );
        refused(PROXY_SETTINGS, json!({"ring_seconds": 1}), &[("new_client_behind_seconds", "ring_seconds")]);
        refused(
            PROXY_SETTINGS,
            json!({"default_stream_profile": "proxy"}),
            &[("default_stream_profile", "stream_settings")],
        );
        refused(PROXY_SETTINGS, json!([1]), &[("value", "object")]);
        refused(STREAM_SETTINGS, json!({"default_stream_profile": 2}), &[]);
        refused(STREAM_SETTINGS, json!({"default_stream_profile": null}), &[]);
        for value in [json!(3), json!("1"), json!(-1), json!(u64::MAX)] {
            refused(
                STREAM_SETTINGS,
                json!({"default_stream_profile": value}),
                &[("default_stream_profile", "id")],
            );
        }
        refused(SYSTEM_SETTINGS, json!({"time_zone": "Europe/Berlin"}), &[]);
        refused(SYSTEM_SETTINGS, json!({"time_zone": "Berlin"}), &[("time_zone", "time zone")]);
        refused(SYSTEM_SETTINGS, json!({"zone": 1}), &[("zone", "is not a setting")]);
        for level in [json!("debug"), json!(""), json!(null)] {
            refused(SYSTEM_SETTINGS, json!({"log_level": level}), &[]);
        }
        refused(SYSTEM_SETTINGS, json!({"log_level": "loud"}), &[("log_level", "is no level")]);
        refused(SYSTEM_SETTINGS, json!({"log_level": 3}), &[("log_level", "must be a log level")]);
        refused("other", json!({}), &[("key", "core setting")]);
    }

    #[test]
    fn what_is_set_lies_over_the_base_and_the_rest_is_the_bases() {
        let base = Settings { stall_timeout: Duration::from_secs(9), ..Settings::default() };
        let (settings, left_out) = effective(&base, Some(&json!({"start_timeout": 3, "at_limit": "refuse"})));
        assert_eq!(left_out, []);
        assert_eq!(settings.start_timeout, Duration::from_secs(3));
        assert_eq!(settings.at_limit, crate::settings::AtLimit::Refuse);
        assert_eq!(settings.stall_timeout, base.stall_timeout);
        assert_eq!(effective(&base, None), (base, Vec::new()));
    }

    #[test]
    fn a_value_that_does_not_go_with_the_base_any_more_is_left_out_and_told() {
        let base = Settings::default();
        let (settings, left_out) =
            effective(&base, Some(&json!({"ring_seconds": 1, "gone_since": 5, "stall_timeout": 7})));
        assert_eq!(settings.check(), Ok(()));
        assert_eq!(settings.ring_seconds, base.ring_seconds);
        assert_eq!(left_out.len(), 2, "{left_out:?}");
        for value in [json!(null), json!(5), json!([])] {
            assert_eq!(effective(&base, Some(&value)).0, base, "{value}");
        }
    }

    #[test]
    fn what_is_not_set_or_not_understood_has_its_default() {
        assert_eq!((default_stream_profile(None), time_zone(None)), (None, "UTC"));
        let (streams, system) = (json!({"default_stream_profile": 2}), json!({"time_zone": "Asia/Tokyo"}));
        assert_eq!(default_stream_profile(Some(&streams)), Some(StreamProfileId(2)));
        assert_eq!(time_zone(Some(&system)), "Asia/Tokyo");
        assert_eq!(default_stream_profile(Some(&system)), None);
        assert_eq!(time_zone(Some(&json!(7))), "UTC");
        assert_eq!(log_level(Some(&json!({"log_level": "debug"}))), Some("debug"));
        for value in [json!({}), json!({"log_level": ""}), json!({"log_level": null}), json!(7)] {
            assert_eq!(log_level(Some(&value)), None, "{value}");
        }
    }
}
