//! `/api/core/settings/`: settings that admins change at run time.
//!
//! Every key always has one row. The value is empty if nothing was set.

use actors::check_time_zone;
use domain::core_settings::{
    self, DEFAULT_TIME_ZONE, PROXY_SETTINGS, SETTING_KEYS, STREAM_SETTINGS, SettingChecks,
};
use domain::setting::CoreSetting;
use domain::settings::Settings;
use domain::stream_profile::StreamProfile;
use http::Method;
use resource_derive::View;
use serde::Serialize;
use serde_json::{Map, Value, json};
use storage::Models;

use crate::app::App;
use crate::http::reply::Refusal;
use crate::rest::frame::access::{ADMIN, STANDARD};
use crate::rest::frame::call::Call;
use crate::rest::frame::input::FieldErrors;
use crate::rest::frame::list::{Page, WholeOrPages};
use crate::rest::frame::route::Route;
use crate::telemetry::wrong_level;

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
    let rows: Vec<_> = ids.into_iter().filter_map(|id| view(&call.app, id)).collect();
    paging.render_with(&call, &rows, CoreSettingsView::clone)
}

async fn retrieve(call: Call) -> Result<CoreSettingsView, Refusal> {
    view(&call.app, call.id()?).ok_or_else(Refusal::unknown::<CoreSetting>)
}

async fn replace(call: Call, edit: CoreSettingsEdit) -> Result<CoreSettingsView, Refusal> {
    write(call, edit, &Method::PUT).await
}

async fn change(call: Call, edit: CoreSettingsEdit) -> Result<CoreSettingsView, Refusal> {
    write(call, edit, &Method::PATCH).await
}

async fn write(call: Call, edit: CoreSettingsEdit, method: &Method) -> Result<CoreSettingsView, Refusal> {
    let id = call.id()?;
    let (key, name) = key_of(id).ok_or_else(Refusal::unknown::<CoreSetting>)?;
    let (base, is_partial) = (call.app.config.engine.clone(), method == Method::PATCH);
    call.write(move |write| {
        let stored = write.by::<CoreSetting>("key", key)?.into_iter().next();
        let (id, before) = match stored {
            Some(setting) => (setting.id, setting.value),
            None => (write.next_id::<CoreSetting>()?, Value::Null),
        };
        let mut value = if is_partial { members(&before) } else { Map::new() };
        value.extend(edit.value.into_iter().flatten());
        let profiles: Vec<StreamProfile> = write.all()?;
        let setting = CoreSetting { id, key: key.to_owned(), name: name.to_owned(), value: value.into() };
        check(&setting, &base, &profiles)?;
        write.put(&setting)?;
        Ok(())
    })
    .await?;
    view(&call.app, id).ok_or_else(Refusal::unknown::<CoreSetting>)
}

fn check(setting: &CoreSetting, base: &Settings, profiles: &[StreamProfile]) -> Result<(), FieldErrors> {
    let known = SettingChecks {
        base,
        has_stream_profile: &|id| profiles.iter().any(|it| it.id == id),
        has_time_zone: &|name| check_time_zone(name).is_ok(),
        log_level_error: &wrong_level,
    };
    core_settings::check(&setting.key, &setting.value, &known).map_err(|wrong| {
        let mut errors = FieldErrors::default();
        for (member, reason) in wrong {
            let message = format!("{member} {reason}.");
            errors.add(member, message);
        }
        errors
    })
}

/// Returns key and name of a row.
fn key_of(id: u32) -> Option<(&'static str, &'static str)> {
    let n = usize::try_from(id).ok()?.checked_sub(1)?;
    SETTING_KEYS.get(n).copied()
}

fn view(app: &App, id: u32) -> Option<CoreSettingsView> {
    let (key, name) = key_of(id)?;
    Some(CoreSettingsView { id, key, name, defaults: defaults(key, app), value: value_of(&app.models, key) })
}

fn value_of(models: &Models, key: &str) -> Map<String, Value> {
    models.settings.load().one_by("key", key).map(|it| members(&it.value)).unwrap_or_default()
}

fn members(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Returns the default values of a key.
fn defaults(key: &str, app: &App) -> Map<String, Value> {
    let base = &app.config.engine;
    let defaults = match key {
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
            json!({ "default_stream_profile": profile.map(|it| it.id) })
        }
        _ => json!({
            "time_zone": DEFAULT_TIME_ZONE,
            "log_level": app.config.log.level,
            "login_password_for_players": core_settings::login_password_for_players(None),
        }),
    };
    members(&defaults)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::frame::testing::Rest;

    #[tokio::test]
    async fn every_key_has_a_row_with_its_value_and_its_defaults() {
        let rest = Rest::start().await;
        let rows = rest.standard("GET", LIST, Value::Null).await.body;
        let keys: Vec<_> = rows["results"].as_array().unwrap().iter().map(|it| &it["key"]).collect();
        assert_eq!(keys, ["proxy_settings", "stream_settings", "system_settings"]);
        assert_eq!(rows["results"][0]["defaults"]["stall_timeout"], json!(5.0));
        assert_eq!(rows["results"][1]["defaults"], json!({ "default_stream_profile": 1 }));
        let of_system =
            json!({ "time_zone": "UTC", "log_level": "info", "login_password_for_players": true });
        assert_eq!(rows["results"][2]["defaults"], of_system);
        assert_eq!(rows["results"][2]["value"], json!({}));
        assert_eq!(rest.standard("GET", "/api/core/settings/4/", Value::Null).await.status, 404);
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
}
