//! Settings of plugins.

use domain::plugin::PluginSettings;
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use super::records::{change, find, key_of};
use super::refusals::NO_PLUGIN;
use crate::context::RestCall;

/// New settings of a plugin.
#[derive(Debug, Body)]
pub(crate) struct NewPluginSettings {
    /// All settings by the id of their field. A password that is masked or left out stays as it is.
    settings: Map<String, Value>,
}

/// The settings after a change.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ChangedPluginSettingsView {
    /// Always true.
    success: bool,
    /// The saved settings; passwords are masked.
    settings: Map<String, Value>,
}

const SETTINGS: &str = "/api/plugins/plugins/{key}/settings/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(SETTINGS, ADMIN, "Replaces the settings of a plugin.", replace)
            .with_properties_body()
            .refuses(StatusCode::BAD_REQUEST, "A value does not fit its field.")
            .refuses(StatusCode::NOT_FOUND, NO_PLUGIN),
    ]
}

async fn replace(call: Call, new: NewPluginSettings) -> Result<ChangedPluginSettingsView, Refusal> {
    let key = key_of(&call)?;
    let plugin = find(&call, &key).await?;
    let fields = plugin.fields();
    let saved = plugin.record.as_ref().map(|it| it.settings.clone()).unwrap_or_default();
    let settings: PluginSettings = saved.replaced(new.settings, &fields).map_err(|wrong| {
        let mut errors = FieldErrors::default();
        for setting in wrong {
            errors.add(setting.field, setting.reason);
        }
        Refusal::fields(errors)
    })?;
    let masked = settings.masked(&fields);
    change(&call, key.clone(), move |plugin| plugin.settings = settings).await?;
    call.rest().plugins.processes.handle.settings_changed(&key);
    Ok(ChangedPluginSettingsView { success: true, settings: masked })
}
