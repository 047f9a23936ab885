//! `/api/core/settings/`: settings that admins change at run time.
//!
//! Every key always has one row. The value is empty if nothing was set.

use std::sync::Arc;

use actors::{check_cron, check_time_zone};
use config::{NetworkClass, NetworkRules, PublicUrl, wrong_level};
use domain::backup_schedule::BackupSchedule;
use domain::cluster::version::SERVICE_KEYS_VERSION;
use domain::core_settings::{
    self, BACKUP_SETTINGS, COMPLETION_SETTINGS, DEFAULT_TIME_ZONE, DVR_SETTINGS, EPG_SETTINGS,
    HISTORY_SETTINGS, LIBRARY_SETTINGS, NAME_SETTINGS, NETWORK_ACCESS, PROXY_SETTINGS, SETTING_KEYS,
    STREAM_SETTINGS, SYSTEM_SETTINGS, SettingChecks, TIMESHIFT_SETTINGS, TUNER_SETTINGS, USER_LIMIT_SETTINGS,
};
use domain::guide::matching::MatchSettings;
use domain::guide::placeholders::PlaceholderSettings;
use domain::history::settings::HistorySettings;
use domain::library_settings::LibrarySettings;
use domain::name_cleaning::NameCleaning;
use domain::output_profile::OutputProfile;
use domain::plugin::MASK;
use domain::recording::DvrSettings;
use domain::service_key::ServiceKey;
use domain::setting::CoreSetting;
use domain::stream_profile::StreamProfile;
use domain::timeshift::TimeShiftSettings;
use domain::tmdb::{API_KEY_MEMBER, CompletionSettings, masked};
use domain::tuner::TunerSettings;
use domain::user_agent::UserAgent;
use domain::user_limits::UserLimits;
use http::Method;
use resource_derive::View;
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use serde_json::{Map, Value, json};
use server::caller::Caller;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use services::written_version::may_put;
use storage::records::set_service_key;
use storage::{Models, Write};

use crate::context::{RestCall, RestContext};
use crate::list::{Page, WholeOrPages};

/// A group of settings under one key.
#[derive(Clone, Debug, Serialize, View)]
#[resource(edit = CoreSettingsEdit)]
pub(crate) struct CoreSettingsView {
    /// Fixed for each key.
    #[field(example = "1")]
    id: u32,
    /// Identifier for clients.
    #[field(example = "proxy_settings")]
    key: &'static str,
    /// Name for people.
    #[field(example = "Proxy settings")]
    name: &'static str,
    /// Purpose of the settings.
    #[field(example = "The engine: time limits, buffers and limits of programs.")]
    description: &'static str,
    /// Values that apply where `value` sets none.
    defaults: Map<String, Value>,
    /// The settings. PUT replaces all of them, PATCH merges the sent ones.
    #[field(required)]
    value: Map<String, Value>,
}

const LIST: &str = "/api/core/settings/";
const ONE: &str = "/api/core/settings/{id}/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, STANDARD, "Lists settings.", list),
        Route::get(ONE, STANDARD, "Returns the settings of a key.", retrieve),
        Route::put(ONE, ADMIN, "Replaces the settings of a key.", replace),
        Route::patch(ONE, ADMIN, "Partially updates the settings of a key.", change),
    ]
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<CoreSettingsView>, Refusal> {
    let ids: Vec<u32> = (1..).take(SETTING_KEYS.len()).collect();
    let rows: Vec<_> = ids.into_iter().filter_map(|id| view(call.rest(), id)).collect();
    paging.render_with(&call, &rows, CoreSettingsView::clone)
}

async fn retrieve(call: Call) -> Result<CoreSettingsView, Refusal> {
    view(call.rest(), call.id()?).ok_or_else(Refusal::unknown::<CoreSetting>)
}

async fn replace(call: Call, edit: CoreSettingsEdit) -> Result<CoreSettingsView, Refusal> {
    write(call, edit, &Method::PUT).await
}

async fn change(call: Call, edit: CoreSettingsEdit) -> Result<CoreSettingsView, Refusal> {
    write(call, edit, &Method::PATCH).await
}

async fn write(call: Call, edit: CoreSettingsEdit, method: &Method) -> Result<CoreSettingsView, Refusal> {
    let id = call.id()?;
    let (key, _) = key_of(id).ok_or_else(Refusal::unknown::<CoreSetting>)?;
    let is_partial = method == Method::PATCH;
    let (context, caller) = (Arc::clone(call.rest()), call.caller.clone());
    call.write(move |write| {
        change_setting(write, &context, Some(&caller), key, |before| {
            let mut value = if is_partial { before } else { Map::new() };
            value.extend(edit.value.into_iter().flatten());
            value
        })
    })
    .await?;
    view(call.rest(), id).ok_or_else(Refusal::unknown::<CoreSetting>)
}

/// Changes and checks the settings of a key. With a caller, refuses networks that would shut the caller out.
pub(in crate::api) fn change_setting(
    write: &mut Write<'_>,
    context: &RestContext,
    caller: Option<&Caller>,
    key: &'static str,
    change: impl FnOnce(Map<String, Value>) -> Map<String, Value>,
) -> Result<(), Refusal> {
    let stored = write.by::<CoreSetting>("key", key)?.into_iter().next();
    let (id, mut before) = match stored {
        Some(setting) => (setting.id, members(&setting.value)),
        None => (write.next_id::<CoreSetting>()?, Map::new()),
    };
    if key == COMPLETION_SETTINGS {
        add_key(write, &mut before)?;
    }
    let mut value = with_stored_key(change(before.clone()), &before);
    check(write, context, key, &value)?;
    if let Some(caller) = caller.filter(|_| key == NETWORK_ACCESS) {
        let (rules, _) = NetworkRules::new(&context.config, Some(&value));
        if !caller.is_in(rules.connect(NetworkClass::Ui)) {
            let address = caller.address();
            return Err(Refusal::field(
                "UI",
                format!("This would shut you out: your address {address} is in none of these networks."),
            ));
        }
    }
    let name = SETTING_KEYS.iter().find(|it| it.0 == key).map_or(key, |it| it.1);
    if key == COMPLETION_SETTINGS {
        keep_key_apart(write, context, &mut value)?;
    }
    write.put(&CoreSetting { id, key: key.to_owned(), name: name.to_owned(), value })?;
    Ok(())
}

/// Puts the key of the completion into its settings, which have a mask in its place.
fn add_key(write: &Write<'_>, settings: &mut Map<String, Value>) -> Result<(), Refusal> {
    if let Some(stored) = write.get::<ServiceKey>(ServiceKey::TMDB)? {
        settings.insert(API_KEY_MEMBER.to_owned(), stored.value.expose().into());
    } else if settings.get(API_KEY_MEMBER).and_then(Value::as_str) == Some(MASK) {
        settings.remove(API_KEY_MEMBER);
    }
    Ok(())
}

/// Moves the key of the completion into its own record, which edge nodes do not get.
fn keep_key_apart(write: &mut Write<'_>, context: &RestContext, value: &mut Value) -> Result<(), Refusal> {
    if may_put(write, &context.models.store, SERVICE_KEYS_VERSION)? {
        let key = CompletionSettings::from_setting(Some(value)).api_key;
        set_service_key(write, ServiceKey::TMDB, key.clone())?;
        if let Some(members) = value.as_object_mut() {
            members.remove(API_KEY_MEMBER);
            // Every node shows that there is one.
            members.extend(key.map(|_| (API_KEY_MEMBER.to_owned(), MASK.into())));
        }
    }
    Ok(())
}

/// Puts the stored key in place of the mask that clients read.
fn with_stored_key(mut value: Map<String, Value>, before: &Map<String, Value>) -> Value {
    if value.get(API_KEY_MEMBER).and_then(Value::as_str) == Some(MASK) {
        let stored = before.get(API_KEY_MEMBER).cloned().unwrap_or_else(|| "".into());
        value.insert(API_KEY_MEMBER.to_owned(), stored);
    }
    value.into()
}

fn check(write: &Write<'_>, context: &RestContext, key: &str, value: &Value) -> Result<(), Refusal> {
    let profiles: Vec<StreamProfile> = write.all()?;
    let agents: Vec<UserAgent> = write.all()?;
    let outputs: Vec<OutputProfile> = write.all()?;
    let known = SettingChecks {
        base: &context.config.engine,
        has_stream_profile: &|id| profiles.iter().any(|it| it.id == id),
        has_user_agent: &|id| agents.iter().any(|it| it.id == id),
        has_output_profile: &|id| outputs.iter().any(|it| it.id == id),
        has_time_zone: &|name| check_time_zone(name).is_ok(),
        log_level_error: &wrong_level,
        public_url_error: &|url| url.parse::<PublicUrl>().err().map(|it| it.to_string()),
        cron_error: &|expression| check_cron(expression).err(),
        network_errors: &|value| {
            let (_, wrong) = NetworkRules::new(&context.config, Some(value));
            let error = |texts: &[String]| match texts {
                [] => String::new(),
                texts => format!(" (found: {})", texts.join(", ")),
            };
            wrong.iter().map(|it| (it.member.clone(), format!("{}{}", it.reason, error(&it.texts)))).collect()
        },
    };
    let wrong = core_settings::check(key, value, &known).err().unwrap_or_default();
    let mut errors = FieldErrors::default();
    for (member, reason) in wrong {
        let message = format!("{member} {}.", reason.trim_end_matches('.'));
        errors.add(member, message);
    }
    Ok(errors.or(())?)
}

/// Returns key and name of a row.
fn key_of(id: u32) -> Option<(&'static str, &'static str)> {
    let n = usize::try_from(id).ok()?.checked_sub(1)?;
    SETTING_KEYS.get(n).copied()
}

fn view(context: &RestContext, id: u32) -> Option<CoreSettingsView> {
    let (key, name) = key_of(id)?;
    let (defaults, value) = (defaults(key, context), masked(value_of(&context.models, key)));
    Some(CoreSettingsView { id, key, name, description: description(key), defaults, value })
}

fn value_of(models: &Models, key: &str) -> Map<String, Value> {
    models.settings.load().one_by("key", key).map(|it| members(&it.value)).unwrap_or_default()
}

fn members(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Returns what the settings of a key are for.
fn description(key: &str) -> &'static str {
    match key {
        PROXY_SETTINGS => "The engine: time limits, buffers and limits of programs.",
        STREAM_SETTINGS => "What streams and clients use that name nothing else.",
        SYSTEM_SETTINGS => "Time zone, country, log level and passwords of players.",
        NETWORK_ACCESS => "The networks that may use each part of the gateway.",
        BACKUP_SETTINGS => "When back-ups are made, and how many are kept.",
        TUNER_SETTINGS => "The tuner that media servers see.",
        USER_LIMIT_SETTINGS => "What happens when a user reaches the limit of streams.",
        EPG_SETTINGS => {
            "How channels are matched with the channels of guides, and placeholders of channels without a guide."
        }
        LIBRARY_SETTINGS => "How films and series are shown to players, and exported as STRM files.",
        NAME_SETTINGS => "Which names of films, series and channels lose the marks of providers.",
        COMPLETION_SETTINGS => {
            "How films and series get titles, plots, pictures and ratings from The Movie Database, with your own key."
        }
        DVR_SETTINGS => "How recordings are named, padded, and who schedules them.",
        TIMESHIFT_SETTINGS => "How much of the past of channels the gateway keeps itself.",
        HISTORY_SETTINGS => {
            "Whether rates and viewers are kept for the page History, and whether of each user."
        }
        _ => "",
    }
}

/// Returns the default values of a key.
fn defaults(key: &str, context: &RestContext) -> Map<String, Value> {
    let base = &context.config.engine;
    let defaults = match key {
        NETWORK_ACCESS => return context.config.network_setting(),
        BACKUP_SETTINGS => return BackupSchedule::default().to_setting(),
        TUNER_SETTINGS => return TunerSettings::default().to_setting(),
        USER_LIMIT_SETTINGS => return UserLimits::default().to_setting(),
        EPG_SETTINGS => {
            let mut members = MatchSettings::default().to_setting();
            members.extend(PlaceholderSettings::default().to_setting());
            return members;
        }
        LIBRARY_SETTINGS => return LibrarySettings::default().to_setting(),
        NAME_SETTINGS => return NameCleaning::default().to_setting(),
        COMPLETION_SETTINGS => return CompletionSettings::default().to_setting(),
        DVR_SETTINGS => return DvrSettings::default().to_setting(),
        TIMESHIFT_SETTINGS => return TimeShiftSettings::default().to_setting(),
        HISTORY_SETTINGS => return HistorySettings::default().to_setting(),
        PROXY_SETTINGS => {
            let mut settings = serde_json::to_value(base).unwrap_or_default();
            if let Some(members) = settings.as_object_mut() {
                // This value belongs to the stream settings.
                members.remove("default_stream_profile");
            }
            settings
        }
        STREAM_SETTINGS => {
            let built_in = StreamProfile::built_in();
            let profile = built_in.iter().find(|it| it.delivery == base.default_stream_profile);
            json!({
                "default_stream_profile": profile.map(|it| it.id),
                "default_user_agent": null,
                "default_output_profile": null,
                "reason_on_screen": "off",
            })
        }
        _ => json!({
            "time_zone": DEFAULT_TIME_ZONE,
            "log_level": context.config.log.level,
            "login_password_for_players": core_settings::login_password_for_players(None),
            "public_url": context.config.public_url,
            "preferred_region": null,
        }),
    };
    members(&defaults)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rest;

    #[tokio::test]
    async fn every_key_has_a_row_with_its_value_and_its_defaults() {
        let rest = Rest::start().await;
        let rows = rest.standard("GET", LIST, Value::Null).await.body;
        let keys: Vec<_> = rows["results"].as_array().unwrap().iter().map(|it| &it["key"]).collect();
        assert_eq!(
            keys,
            [
                "proxy_settings",
                "stream_settings",
                "system_settings",
                "network_access",
                "backup_settings",
                "tuner_settings",
                "user_limit_settings",
                "dvr_settings",
                "epg_settings",
                "library_settings",
                "timeshift_settings",
                "name_settings",
                "history_settings",
                "completion_settings",
            ]
        );
        assert_eq!(rows["results"][0]["defaults"]["stall_timeout"], json!(5.0));
        let of_system = json!({ "time_zone": "UTC", "log_level": "info", "login_password_for_players": true, "public_url": null, "preferred_region": null });
        assert_eq!(rows["results"][2]["defaults"], of_system);
        assert_eq!(
            rows["results"][1]["defaults"],
            json!({
                "default_stream_profile": 1,
                "default_user_agent": null,
                "default_output_profile": null,
                "reason_on_screen": "off",
            })
        );
        assert_eq!(rows["results"][2]["value"], json!({}));
        assert_eq!(rest.standard("GET", "/api/core/settings/15/", Value::Null).await.status, 404);
        assert_eq!(rest.standard("GET", "/api/core/settings/0/", Value::Null).await.status, 404);
    }

    #[tokio::test]
    async fn patch_merges_settings_and_put_replaces_them() {
        let rest = Rest::start().await;
        let one = "/api/core/settings/1/";
        let set = async |method, value: Value| {
            let answer = rest.admin(method, one, json!({ "key": "else", "value": value })).await;
            assert_eq!(
                (answer.status, &answer.body["key"]),
                (200, &json!("proxy_settings")),
                "{}",
                answer.text
            );
            answer.body["value"].clone()
        };
        assert_eq!(set("PATCH", json!({ "stall_timeout": 7 })).await, json!({ "stall_timeout": 7 }));
        let both = json!({ "stall_timeout": 7, "at_limit": "refuse" });
        assert_eq!(set("PATCH", json!({ "at_limit": "refuse" })).await, both);
        assert_eq!(set("PUT", json!({ "at_limit": "refuse" })).await, json!({ "at_limit": "refuse" }));
        assert_eq!(rest.models.settings.load().len(), 1);
    }

    #[tokio::test]
    async fn an_invalid_setting_is_refused_by_its_name() {
        let rest = Rest::start().await;
        let check = async |id: u32, value: Value, fields: &[&str]| {
            let refused = rest.admin("PATCH", &format!("{LIST}{id}/"), json!({ "value": value })).await;
            let named: Vec<_> = refused.body.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!((refused.status, named.as_slice()), (400, fields), "{}", refused.text);
        };
        check(1, json!({ "stall_timeout": 0, "nothing": 1 }), &["nothing", "stall_timeout"]).await;
        check(2, json!({ "default_stream_profile": 99 }), &["default_stream_profile"]).await;
        check(3, json!({ "time_zone": "Mars/Olympus" }), &["time_zone"]).await;
        check(3, json!({ "log_level": "debug,hyper=trace" }), &["log_level"]).await;
        check(3, json!({ "log_level": "loud=very", "time_zone": 1 }), &["log_level", "time_zone"]).await;
        check(3, json!("UTC"), &["value"]).await;
        let refused = rest.admin("PUT", "/api/core/settings/3/", json!({})).await;
        assert_eq!(refused.body, json!({ "value": ["This field is required."] }));
    }

    #[tokio::test]
    async fn the_key_of_the_completion_is_kept_and_never_shown() {
        let rest = Rest::start().await;
        let path = "/api/core/settings/14/";
        let key = || rest.models.completion_settings().api_key.map(|it| it.expose().to_owned());
        let value = json!({ "tmdb_api_key": "k3y-5p1c3", "completion_enabled": true });
        let set = rest.admin("PATCH", path, json!({ "value": value })).await;
        assert_eq!((set.status, key().as_deref()), (200, Some("k3y-5p1c3")), "{}", set.text);
        for answer in [
            set,
            rest.admin("GET", path, Value::Null).await,
            rest.standard("GET", path, Value::Null).await,
            rest.standard("GET", LIST, Value::Null).await,
        ] {
            assert!(answer.text.contains(MASK) && !answer.text.contains("k3y-5p1c3"), "{}", answer.text);
        }
        // A form sends the mask back.
        let whole = json!({ "value": { "tmdb_api_key": MASK, "completion_language": "de-DE" } });
        assert_eq!(rest.admin("PUT", path, whole).await.status, 200);
        assert_eq!(key().as_deref(), Some("k3y-5p1c3"));
        let wrong = json!({ "value": { "tmdb_api_key": "k3y 5p1c3" } });
        let refused = rest.admin("PATCH", path, wrong).await;
        assert_eq!(refused.status, 400);
        assert!(
            refused.body["tmdb_api_key"].is_array() && !refused.text.contains("5p1c3"),
            "{}",
            refused.text
        );
        // Edge nodes have the settings, and full nodes have the key as well.
        let stored = rest.models.settings.load().one_by("key", "completion_settings").cloned().unwrap();
        assert_eq!(stored.value[API_KEY_MEMBER], MASK);
        assert_eq!(rest.models.service_keys.load().len(), 1);
        rest.admin("PATCH", path, json!({ "value": { "tmdb_api_key": "" } })).await;
        assert_eq!(key(), None);
        assert_eq!(rest.models.service_keys.load().len(), 0);
        let again = json!({ "value": { "tmdb_api_key": MASK, "completion_enabled": true } });
        assert_eq!(
            rest.admin("PATCH", path, again).await.status,
            200,
            "a form that is older than the removal"
        );
        assert_eq!(key(), None);
    }
}
