//! Core settings: changed by admins while the gateway runs. They override the configuration file, the environment and
//! the arguments.
//!
//! Each is a [`CoreSetting`](crate::setting::CoreSetting) under one of the keys below, whose value is an object. A
//! missing member leaves the configured value in force.

use serde_json::{Map, Value};

use crate::backup_schedule::BackupSchedule;
use crate::guide::matching::MatchSettings;
use crate::guide::placeholders::PlaceholderSettings;
use crate::history::settings::HistorySettings;
use crate::ids::{OutputProfileId, StreamProfileId};
use crate::library_settings::{EXPORT_CRON_MEMBER, LibrarySettings};
use crate::name_cleaning::NameCleaning;
use crate::recording::DvrSettings;
use crate::settings::Settings;
use crate::timeshift::TimeShiftSettings;
use crate::tmdb::CompletionSettings;
use crate::tuner::TunerSettings;
use crate::user_limits::UserLimits;

/// Members of the engine's [`Settings`] under their own names. The default stream profile is not among them.
pub const PROXY_SETTINGS: &str = "proxy_settings";
/// `default_stream_profile`: the id of a stream profile. `default_user_agent`: the id of a user agent.
/// `default_output_profile`: the id of an output profile.
/// `reason_on_screen`: a name of [`ReasonOnScreen`].
pub const STREAM_SETTINGS: &str = "stream_settings";
/// `time_zone`: an IANA name, such as `Europe/Berlin`. `log_level`: the amount of logging.
/// `login_password_for_players`: whether players may use the login password besides the player password.
/// `public_url`: the address under which clients reach the gateway.
/// `preferred_region`: the country of channels that state none, where they are matched with a guide.
pub const SYSTEM_SETTINGS: &str = "system_settings";

/// The networks that may use each part of the gateway.
pub const NETWORK_ACCESS: &str = "network_access";
/// Member of `network_access`: whether callers without a user see channels marked as adult.
pub const ADULT_WITHOUT_USER: &str = "adult_without_user";
/// Members of the [`BackupSchedule`].
pub const BACKUP_SETTINGS: &str = "backup_settings";

/// Members of the [`TunerSettings`].
pub const TUNER_SETTINGS: &str = "tuner_settings";

/// Members of the [`UserLimits`].
pub const USER_LIMIT_SETTINGS: &str = "user_limit_settings";
/// Members of the [`MatchSettings`] and of the [`PlaceholderSettings`].
pub const EPG_SETTINGS: &str = "epg_settings";
/// Members of the [`LibrarySettings`].
pub const LIBRARY_SETTINGS: &str = "library_settings";
/// Members of the [`NameCleaning`].
pub const NAME_SETTINGS: &str = "name_settings";
/// Members of the [`CompletionSettings`]. One of them is a secret.
pub const COMPLETION_SETTINGS: &str = "completion_settings";
/// Members of the [`DvrSettings`], and others without effect.
pub const DVR_SETTINGS: &str = "dvr_settings";
/// Members of the [`TimeShiftSettings`].
pub const TIMESHIFT_SETTINGS: &str = "timeshift_settings";

/// Members of the [`HistorySettings`].
pub const HISTORY_SETTINGS: &str = "history_settings";

/// Every key with its display name.
pub const SETTING_KEYS: [(&str, &str); 14] = [
    (PROXY_SETTINGS, "Proxy settings"),
    (STREAM_SETTINGS, "Stream settings"),
    (SYSTEM_SETTINGS, "System settings"),
    (NETWORK_ACCESS, "Network access"),
    (BACKUP_SETTINGS, "Backup settings"),
    (TUNER_SETTINGS, "Tuner settings"),
    (USER_LIMIT_SETTINGS, "User limit settings"),
    (DVR_SETTINGS, "DVR settings"),
    (EPG_SETTINGS, "Guide settings"),
    (LIBRARY_SETTINGS, "Library settings"),
    (TIMESHIFT_SETTINGS, "Time-shift settings"),
    (NAME_SETTINGS, "Name settings"),
    (HISTORY_SETTINGS, "History settings"),
    (COMPLETION_SETTINGS, "Completion settings"),
];

/// Members that clients of similar services send together with the others. They are checked and stored, so that these
/// clients work, and have no effect here: the engine has no such limits, or sets them by itself.
const WITHOUT_EFFECT: [(&str, &str, Expected); 10] = [
    (PROXY_SETTINGS, "buffering_speed", Expected::Number(0.1, 10.0)),
    (PROXY_SETTINGS, "redis_chunk_ttl", Expected::Number(10.0, 3600.0)),
    (PROXY_SETTINGS, "channel_init_grace_period", Expected::Number(0.0, 300.0)),
    (PROXY_SETTINGS, "channel_client_wait_period", Expected::Number(0.0, 300.0)),
    (STREAM_SETTINGS, "m3u_hash_key", Expected::Text),
    (SYSTEM_SETTINGS, "max_system_events", Expected::Number(1.0, 1000.0)),
    (SYSTEM_SETTINGS, "auto_import_mapped_files", Expected::Flag),
    (DVR_SETTINGS, "tv_fallback_dir", Expected::Text),
    (DVR_SETTINGS, "comskip_custom_path", Expected::Text),
    (DVR_SETTINGS, "series_rules", Expected::Objects),
];

/// The values of a member without effect.
#[derive(Clone, Copy)]
enum Expected {
    /// A number between these two.
    Number(f64, f64),
    /// A text of up to [`TEXT_CHARS_MAX`] characters, or `null`.
    Text,
    Flag,
    /// A list of up to [`OBJECTS_MAX`] objects, which has up to [`OBJECTS_BYTES_MAX`] bytes as JSON.
    Objects,
}

const TEXT_CHARS_MAX: usize = 255;
const OBJECTS_MAX: usize = 1_000;
const OBJECTS_BYTES_MAX: usize = 256 * 1024;

impl Expected {
    fn check(self, value: &Value) -> Result<(), String> {
        let (is_valid, rule) = match self {
            Self::Number(least, most) => (
                value.as_f64().is_some_and(|it| (least..=most).contains(&it)),
                format!("must be a number from {least} to {most}"),
            ),
            Self::Text => {
                let is_short = |it: &str| it.chars().count() <= TEXT_CHARS_MAX;
                (
                    value.is_null() || value.as_str().is_some_and(is_short),
                    format!("must be a text of up to {TEXT_CHARS_MAX} characters"),
                )
            }
            Self::Flag => (value.is_boolean(), "must be true or false".to_owned()),
            Self::Objects => {
                let items =
                    value.as_array().filter(|it| it.len() <= OBJECTS_MAX && it.iter().all(Value::is_object));
                (
                    items.is_some() && value.to_string().len() <= OBJECTS_BYTES_MAX,
                    format!(
                        "must be a list of up to {OBJECTS_MAX} objects, in at most {OBJECTS_BYTES_MAX} bytes"
                    ),
                )
            }
        };
        if is_valid { Ok(()) } else { Err(rule) }
    }
}

fn without_effect(key: &str, name: &str) -> Option<Expected> {
    WITHOUT_EFFECT.into_iter().find(|it| it.0 == key && it.1 == name).map(|it| it.2)
}

/// The default time zone.
pub const DEFAULT_TIME_ZONE: &str = "UTC";

const DEFAULT_STREAM_PROFILE: &str = "default_stream_profile";
const DEFAULT_USER_AGENT: &str = "default_user_agent";
const DEFAULT_OUTPUT_PROFILE: &str = "default_output_profile";
const REASON_ON_SCREEN: &str = "reason_on_screen";
const TIME_ZONE_MEMBER: &str = "time_zone";
const LOG_LEVEL: &str = "log_level";
const LOGIN_PASSWORD_FOR_PLAYERS: &str = "login_password_for_players";
const PUBLIC_URL: &str = "public_url";
const PREFERRED_REGION: &str = "preferred_region";

/// The name of an invalid member, and the reason, worded to follow the name.
pub type FieldError = (String, String);

/// The context in which values are checked.
pub struct SettingChecks<'a> {
    /// The engine settings of file, environment and arguments.
    pub base: &'a Settings,
    pub has_stream_profile: &'a dyn Fn(StreamProfileId) -> bool,
    pub has_user_agent: &'a dyn Fn(u32) -> bool,
    pub has_output_profile: &'a dyn Fn(OutputProfileId) -> bool,
    /// Returns whether the gateway knows a time zone of this name.
    pub has_time_zone: &'a dyn Fn(&str) -> bool,
    /// Returns the reason why a log level is invalid, if it is.
    pub log_level_error: &'a dyn Fn(&str) -> Option<String>,
    /// Returns the reason why a public URL is invalid, if it is.
    pub public_url_error: &'a dyn Fn(&str) -> Option<String>,
    /// Returns the reason why a cron expression is invalid, if it is.
    pub cron_error: &'a dyn Fn(&str) -> Option<String>,
    /// Returns the invalid members of `network_access`.
    pub network_errors: &'a dyn Fn(&Value) -> Vec<FieldError>,
}

/// Checks every member of a value under this key.
///
/// # Errors
/// Every invalid member, with the reason. Errors of the whole value or of the key are reported under `value` or `key`.
pub fn check(key: &str, value: &Value, checks: &SettingChecks<'_>) -> Result<(), Vec<FieldError>> {
    if !SETTING_KEYS.iter().any(|it| it.0 == key) {
        return Err(vec![error("key", "is not the key of a core setting")]);
    }
    let Value::Object(members) = value else {
        return Err(vec![error("value", "must be an object")]);
    };
    let errors = match key {
        PROXY_SETTINGS => apply_over(checks.base, members).1,
        NETWORK_ACCESS => (checks.network_errors)(value),
        _ => members.iter().filter_map(|(name, value)| wrong_member(key, name, value, checks)).collect(),
    };
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Returns the engine settings with these `proxy_settings` applied, and the members that were ignored. The result is
/// valid if the base is: a member that was valid once may contradict the present base.
pub fn effective(base: &Settings, proxy_settings: Option<&Value>) -> (Settings, Vec<FieldError>) {
    match proxy_settings {
        None => (base.clone(), Vec::new()),
        Some(Value::Object(members)) => apply_over(base, members),
        Some(_) => (base.clone(), vec![error("value", "must be an object")]),
    }
}

/// Returns the stream profile of `stream_settings` for streams and channels without one.
pub fn default_stream_profile(stream_settings: Option<&Value>) -> Option<StreamProfileId> {
    profile_id(stream_settings?.get(DEFAULT_STREAM_PROFILE)?)
}

/// Returns the user agent of `stream_settings`.
pub fn default_user_agent(stream_settings: Option<&Value>) -> Option<u32> {
    id(stream_settings?.get(DEFAULT_USER_AGENT)?)
}

/// Returns the output profile of `stream_settings` for clients without another one.
pub fn default_output_profile(stream_settings: Option<&Value>) -> Option<OutputProfileId> {
    id(stream_settings?.get(DEFAULT_OUTPUT_PROFILE)?).map(OutputProfileId)
}

/// The refused streams for which a player gets a clip with the reason instead of the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReasonOnScreen {
    #[default]
    Off,
    /// Those that cannot start at the moment (503).
    Unavailable,
    /// Also those that the caller may not watch, and unknown channels (401, 403, 404).
    All,
}

impl ReasonOnScreen {
    const NAMES: [(&str, Self); 3] =
        [("off", Self::Off), ("unavailable", Self::Unavailable), ("all", Self::All)];

    fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|it| it.0 == name).map(|it| it.1)
    }
}

/// Returns which refusals `stream_settings` wants on the screen.
pub fn reason_on_screen(stream_settings: Option<&Value>) -> ReasonOnScreen {
    let name = stream_settings.and_then(|it| it.get(REASON_ON_SCREEN)?.as_str());
    name.and_then(ReasonOnScreen::from_name).unwrap_or_default()
}

/// Returns whether `network_access` lets callers without a user see channels marked as adult.
pub fn allows_adult_without_user(network_access: Option<&Value>) -> bool {
    network_access.and_then(|it| it.get(ADULT_WITHOUT_USER)?.as_bool()).unwrap_or(false)
}

/// Returns the time zone of `system_settings`, used for schedules.
pub fn time_zone(system_settings: Option<&Value>) -> &str {
    system_settings.and_then(|it| it.get(TIME_ZONE_MEMBER)?.as_str()).unwrap_or(DEFAULT_TIME_ZONE)
}

/// Returns the log level of `system_settings`; `None` leaves it to file, environment and arguments.
pub fn log_level(system_settings: Option<&Value>) -> Option<&str> {
    system_settings?.get(LOG_LEVEL)?.as_str().filter(|it| !it.is_empty())
}

/// Returns whether players may use the login password of a user, by `system_settings`. By default they may.
pub fn login_password_for_players(system_settings: Option<&Value>) -> bool {
    system_settings.and_then(|it| it.get(LOGIN_PASSWORD_FOR_PLAYERS)?.as_bool()).unwrap_or(true)
}

/// Returns the public URL of `system_settings`; `None` leaves it to file, environment and arguments.
pub fn public_url(system_settings: Option<&Value>) -> Option<&str> {
    system_settings?.get(PUBLIC_URL)?.as_str().filter(|it| !it.is_empty())
}

/// Returns the country or region of `system_settings`, which channels that state no country are taken to be from.
pub fn preferred_region(system_settings: Option<&Value>) -> Option<&str> {
    system_settings?.get(PREFERRED_REGION)?.as_str().filter(|it| !it.is_empty())
}

fn wrong_member(key: &str, name: &str, value: &Value, checks: &SettingChecks<'_>) -> Option<FieldError> {
    let reason = match (key, name) {
        // `null` restores the default.
        (STREAM_SETTINGS, DEFAULT_STREAM_PROFILE) if value.is_null() => return None,
        (STREAM_SETTINGS, DEFAULT_STREAM_PROFILE) => match profile_id(value) {
            Some(id) if (checks.has_stream_profile)(id) => return None,
            Some(_) => "is not the id of a stream profile",
            None => "must be the id of a stream profile",
        },
        (STREAM_SETTINGS, DEFAULT_USER_AGENT) if value.is_null() => return None,
        (STREAM_SETTINGS, DEFAULT_USER_AGENT) => match id(value) {
            Some(id) if (checks.has_user_agent)(id) => return None,
            Some(_) => "is not the id of a user agent",
            None => "must be the id of a user agent",
        },
        (STREAM_SETTINGS, DEFAULT_OUTPUT_PROFILE) if value.is_null() => return None,
        (STREAM_SETTINGS, DEFAULT_OUTPUT_PROFILE) => match id(value).map(OutputProfileId) {
            Some(id) if (checks.has_output_profile)(id) => return None,
            Some(_) => "is not the id of an output profile",
            None => "must be the id of an output profile",
        },
        (STREAM_SETTINGS, REASON_ON_SCREEN) => match value.as_str() {
            Some(name) if ReasonOnScreen::from_name(name).is_some() => return None,
            None if value.is_null() => return None,
            _ => "must be off, unavailable or all",
        },
        (BACKUP_SETTINGS, _) => match BackupSchedule::default().set(name, value) {
            Ok(()) => {
                let expression =
                    value.as_str().filter(|it| name.ends_with("cron_expression") && !it.is_empty());
                return expression.and_then(checks.cron_error).map(|reason| error(name, reason));
            }
            Err(reason) => reason,
        },
        (TUNER_SETTINGS, _) => match TunerSettings::default().set(name, value) {
            Ok(()) => return None,
            Err(reason) => reason,
        },
        (EPG_SETTINGS, name) if PlaceholderSettings::has_member(name) => {
            return PlaceholderSettings::default().set(name, value).err().map(|reason| error(name, reason));
        }
        (EPG_SETTINGS, _) => match MatchSettings::default().set(name, value) {
            Ok(()) => return None,
            Err(reason) => reason,
        },
        (LIBRARY_SETTINGS, _) => match LibrarySettings::default().set(name, value) {
            Ok(()) => {
                let expression = value.as_str().filter(|_| name == EXPORT_CRON_MEMBER);
                return expression.and_then(checks.cron_error).map(|reason| error(name, reason));
            }
            Err(reason) => reason,
        },
        (NAME_SETTINGS, _) => {
            return NameCleaning::default().set(name, value).err().map(|reason| error(name, reason));
        }
        (COMPLETION_SETTINGS, _) => match CompletionSettings::default().set(name, value) {
            Ok(()) => return None,
            Err(reason) => reason,
        },
        // Clients also send names of regions such as continents; only countries have an effect.
        (SYSTEM_SETTINGS, PREFERRED_REGION) => {
            return Expected::Text.check(value).err().map(|reason| error(name, reason));
        }
        (DVR_SETTINGS, name) if DvrSettings::has_member(name) => {
            return DvrSettings::default().set(name, value).err().map(|reason| error(name, reason));
        }
        (TIMESHIFT_SETTINGS, _) => {
            return TimeShiftSettings::default().set(name, value).err().map(|reason| error(name, reason));
        }
        (HISTORY_SETTINGS, _) => {
            return HistorySettings::default().set(name, value).err().map(|reason| error(name, reason));
        }
        (USER_LIMIT_SETTINGS, _) => match UserLimits::default().set(name, value) {
            Ok(()) => return None,
            Err(reason) => reason,
        },
        (SYSTEM_SETTINGS, TIME_ZONE_MEMBER) => match value.as_str() {
            Some(zone) if (checks.has_time_zone)(zone) => return None,
            Some(_) => "is not the name of a time zone",
            None => "must be the name of a time zone",
        },
        (SYSTEM_SETTINGS, LOG_LEVEL) => match value.as_str() {
            Some("") => return None,
            Some(level) => return (checks.log_level_error)(level).map(|reason| error(name, reason)),
            None if value.is_null() => return None,
            None => "must be a log level, such as debug",
        },
        (SYSTEM_SETTINGS, PUBLIC_URL) => match value.as_str() {
            Some("") => return None,
            Some(url) => return (checks.public_url_error)(url).map(|reason| error(name, reason)),
            None if value.is_null() => return None,
            None => "must be an address, such as https://tv.example.com",
        },
        (SYSTEM_SETTINGS, LOGIN_PASSWORD_FOR_PLAYERS) => match value {
            Value::Bool(_) | Value::Null => return None,
            _ => "must be true or false",
        },
        _ => match without_effect(key, name) {
            Some(expected) => return expected.check(value).err().map(|reason| error(name, reason)),
            None => NO_SUCH_SETTING,
        },
    };
    Some(error(name, reason))
}

const NO_SUCH_SETTING: &str = "is not a setting";

/// Applies each member to the base by itself, then removes those that contradict each other.
fn apply_over(base: &Settings, members: &Map<String, Value>) -> (Settings, Vec<FieldError>) {
    let mut errors = Vec::new();
    let mut accepted: Vec<(&String, &Value)> = Vec::new();
    for (name, value) in members {
        if let Some(expected) = without_effect(PROXY_SETTINGS, name) {
            errors.extend(expected.check(value).err().map(|reason| error(name, reason)));
            continue;
        }
        match with(base, &[(name, value)]) {
            _ if name == DEFAULT_STREAM_PROFILE => errors.push(error(name, "belongs to stream_settings")),
            Ok(_) => accepted.push((name, value)),
            Err(reason) => errors.push(error(name, reason)),
        }
    }
    loop {
        let settings = with(base, &accepted).unwrap_or_else(|_| base.clone());
        let Err(wrong) = settings.check() else { return (settings, errors) };
        let n_before = accepted.len();
        accepted.retain(|it| it.0 != wrong.field);
        // The invalid value is in the base, so one of the applied members contradicts it.
        if accepted.len() == n_before {
            accepted.clear();
        }
        errors.push(error(wrong.field, wrong.reason));
        if n_before == 0 {
            return (base.clone(), errors);
        }
    }
}

fn with(base: &Settings, members: &[(&String, &Value)]) -> Result<Settings, String> {
    let mut whole = serde_json::to_value(base).map_err(|it| it.to_string())?;
    let all = whole.as_object_mut().ok_or("is not an object")?;
    for (name, value) in members {
        let member = all.get_mut(*name).ok_or(NO_SUCH_SETTING)?;
        *member = (*value).clone();
    }
    serde_json::from_value(whole).map_err(|it| format!("cannot be used: {it}"))
}

fn profile_id(value: &Value) -> Option<StreamProfileId> {
    id(value).map(StreamProfileId)
}

fn id(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|it| u32::try_from(it).ok())
}

fn error(name: &str, reason: impl Into<String>) -> FieldError {
    (name.to_owned(), reason.into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    /// Checks the names of the rejected members.
    #[track_caller]
    fn refused(key: &str, value: Value, expected: &[(&str, &str)]) {
        let checks = SettingChecks {
            base: &Settings::default(),
            has_stream_profile: &|it| it.0 <= 2,
            has_time_zone: &|it| it == "Europe/Berlin",
            log_level_error: &|it| (it != "debug").then(|| "is not a level".to_owned()),
            has_user_agent: &|it| it == 1,
            public_url_error: &|it| (it != "https://tv.example").then(|| "is not an address".to_owned()),
            has_output_profile: &|it| it == OutputProfileId(3),
            cron_error: &|it| (it != "5 * * * *").then(|| "must be a cron expression".to_owned()),
            network_errors: &|_| Vec::new(),
        };
        let errors = check(key, &value, &checks).err().unwrap_or_default();
        let names: Vec<_> = errors.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, expected.iter().map(|it| it.0).collect::<Vec<_>>(), "{value}: {errors:?}");
        for ((_, reason), (_, part)) in errors.iter().zip(expected) {
            assert!(reason.contains(part), "{value}: {reason}");
        }
    }

    #[test]
    fn every_invalid_member_is_reported_with_the_reason() {
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
        refused(SYSTEM_SETTINGS, json!({"log_level": "loud"}), &[("log_level", "is not a level")]);
        refused(SYSTEM_SETTINGS, json!({"log_level": 3}), &[("log_level", "must be a log level")]);
        for value in [json!(true), json!(false), json!(null)] {
            refused(SYSTEM_SETTINGS, json!({"login_password_for_players": value}), &[]);
        }
        let wrong = [("login_password_for_players", "true or false")];
        refused(SYSTEM_SETTINGS, json!({"login_password_for_players": "no"}), &wrong);
        for value in [json!("off"), json!("unavailable"), json!("all"), json!(null)] {
            refused(STREAM_SETTINGS, json!({"reason_on_screen": value}), &[]);
        }
        for value in [json!("some"), json!(""), json!(true)] {
            let wrong = [("reason_on_screen", "off, unavailable or all")];
            refused(STREAM_SETTINGS, json!({"reason_on_screen": value}), &wrong);
        }
        refused(STREAM_SETTINGS, json!({"default_user_agent": 2}), &[("default_user_agent", "user agent")]);
        refused(STREAM_SETTINGS, json!({"default_user_agent": 1, "m3u_hash_key": "url"}), &[]);
        refused(BACKUP_SETTINGS, json!({"schedule_cron_expression": "5 * * * *", "retention_count": 3}), &[]);
        refused(
            BACKUP_SETTINGS,
            json!({"schedule_cron_expression": "x", "schedule_time": "25:00"}),
            &[("schedule_cron_expression", "cron"), ("schedule_time", "time of day")],
        );
        refused(STREAM_SETTINGS, json!({"default_output_profile": 3}), &[]);
        refused(
            STREAM_SETTINGS,
            json!({"default_output_profile": 4}),
            &[("default_output_profile", "id of")],
        );
        refused(
            USER_LIMIT_SETTINGS,
            json!({"terminate_oldest": 1}),
            &[("terminate_oldest", "true or false")],
        );
        refused(EPG_SETTINGS, json!({"epg_match_threshold": 90, "epg_match_mode": "advanced"}), &[]);
        refused(EPG_SETTINGS, json!({"epg_placeholders": true, "epg_placeholder_minutes": 90}), &[]);
        refused(
            EPG_SETTINGS,
            json!({"epg_placeholder_minutes": 1}),
            &[("epg_placeholder_minutes", "5 to 1440")],
        );
        refused(EPG_SETTINGS, json!({"epg_match_threshold": 101}), &[("epg_match_threshold", "50 to 100")]);
        refused(
            LIBRARY_SETTINGS,
            json!({"panel_rows": "versions", "strm_cron_expression": "5 * * * *"}),
            &[],
        );
        refused(
            LIBRARY_SETTINGS,
            json!({"strm_cron_expression": "x", "strm_folder": "a"}),
            &[("strm_cron_expression", "cron"), ("strm_folder", "absolute path")],
        );
        refused(TIMESHIFT_SETTINGS, json!({"mode": "always", "hours": 12}), &[]);
        refused(
            TIMESHIFT_SETTINGS,
            json!({"mode": "on", "total_bytes": 1, "folder": "/"}),
            &[("folder", "not a setting"), ("mode", "off, watched or always"), ("total_bytes", "bytes from")],
        );
        refused(HISTORY_SETTINGS, json!({"users": true, "user_days": 7}), &[]);
        refused(
            HISTORY_SETTINGS,
            json!({"user_days": 61, "folder": "/"}),
            &[("folder", "not a setting"), ("user_days", "1 to 60")],
        );
        refused(NAME_SETTINGS, json!({"clean_movies": true, "patterns": ["a => b"]}), &[]);
        refused(
            NAME_SETTINGS,
            json!({"clean_movies": 1, "patterns": ["("]}),
            &[("clean_movies", "true or false"), ("patterns", "pattern 1")],
        );
        refused("other", json!({}), &[("key", "core setting")]);
    }

    #[test]
    fn settings_of_similar_services_are_accepted_in_their_range_and_have_no_effect() {
        let sent = json!({
            "buffering_speed": 1.0, "redis_chunk_ttl": 60, "buffering_timeout": 15, "channel_shutdown_delay": 0,
            "channel_init_grace_period": 60, "channel_client_wait_period": 5,
        });
        refused(PROXY_SETTINGS, sent.clone(), &[]);
        let (settings, left_out) = effective(&Settings::default(), Some(&sent));
        assert_eq!((settings.channel_shutdown_delay, left_out), (Duration::ZERO, Vec::new()));
        refused(
            PROXY_SETTINGS,
            json!({"buffering_speed": 11, "redis_chunk_ttl": "60"}),
            &[("buffering_speed", "0.1 to 10"), ("redis_chunk_ttl", "number")],
        );
        refused(SYSTEM_SETTINGS, json!({"max_system_events": 100, "auto_import_mapped_files": true}), &[]);
        refused(SYSTEM_SETTINGS, json!({"preferred_region": 7}), &[("preferred_region", "text")]);
        let dvr = json!({
            "tv_template": "TV_Shows/{show}.mkv", "series_rules": [{ "tvg_id": "a" }], "movie_template": "",
            "comskip_enabled": false, "tv_fallback_dir": "TV_Shows", "pre_offset_minutes": 0,
            "comskip_custom_path": "", "post_offset_minutes": 5, "tv_fallback_template": "x",
            "movie_fallback_template": "x",
        });
        refused(DVR_SETTINGS, dvr, &[]);
        refused(
            DVR_SETTINGS,
            json!({"post_offset_minutes": -1, "series_rules": [1], "other": 1}),
            &[
                ("other", "not a setting"),
                ("post_offset_minutes", "0 to 1440"),
                ("series_rules", "list of up to"),
            ],
        );
    }

    #[test]
    fn core_settings_override_the_base_and_keep_the_rest_of_it() {
        let base = Settings { stall_timeout: Duration::from_secs(9), ..Settings::default() };
        let (settings, left_out) = effective(&base, Some(&json!({"start_timeout": 3, "at_limit": "refuse"})));
        assert_eq!(left_out, []);
        assert_eq!(settings.start_timeout, Duration::from_secs(3));
        assert_eq!(settings.at_limit, crate::settings::AtLimit::Refuse);
        assert_eq!(settings.stall_timeout, base.stall_timeout);
        assert_eq!(effective(&base, None), (base, Vec::new()));
    }

    #[test]
    fn a_value_that_contradicts_the_base_is_ignored_and_reported() {
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
    fn a_missing_or_invalid_setting_has_its_default() {
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
