//! `/api/plugins/plugins/`: installed plugins.

mod enabling;
mod install;
mod limits;
mod runs;
mod settings;
#[cfg(test)]
mod tests;
mod view;

use std::sync::Arc;

use domain::plugin::{Plugin, PluginKey};
use http::StatusCode;
use resource_derive::View;
use route_frame::access::{ADMIN, Access};
use route_frame::app::App;
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::picture::Picture;
use route_frame::route::Route;
use serde::Serialize;
use serde_json::json;
use server::reply::Refusal;
use services::image_types::PictureFormat;
use services::plugins::{InstalledPlugins, PLUGINS_MAX, PluginEntry, record_of};
use storage::Error as StoreError;

pub(crate) use self::view::PluginView;

/// All plugins.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PluginListView {
    /// Ordered by key.
    plugins: Vec<PluginView>,
}

/// The number of plugins that were found.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ReloadedPluginsView {
    /// Always true.
    success: bool,
    /// Number of plugins in the folder.
    #[field(example = "3")]
    count: usize,
}

const LIST: &str = "/api/plugins/plugins/";
const RELOAD: &str = "/api/plugins/plugins/reload/";
const LOGO: &str = "/api/plugins/plugins/{key}/logo/";

/// 404, described.
const NO_PLUGIN: &str = "There is no plugin with this key.";
/// Why plugins are refused.
const NOT_FOR_PLUGINS: &str =
    "Plugins cannot install, enable, restart, delete or run plugins, nor set their limits.";

/// Returns the routes below `/api/plugins/`.
pub(super) fn routes() -> Vec<Route> {
    let mut routes = vec![
        Route::get(LIST, ADMIN, "Lists plugins. Runs no code of them.", list),
        Route::post(RELOAD, ADMIN, "Refreshes the list of plugins from their folder.", reload),
        Route::get(LOGO, Access::Anyone, "Returns the logo of a plugin.", logo)
            .refuses(StatusCode::NOT_FOUND, "The plugin does not exist or has no logo."),
    ];
    routes.extend(install::routes());
    routes.extend(enabling::routes());
    routes.extend(limits::routes());
    routes.extend(runs::routes());
    routes.extend(settings::routes());
    routes
}

async fn list(call: Call) -> Result<PluginListView, Refusal> {
    let app = Arc::clone(&call.app);
    let plugins = blocking(move || all(&app)).await?;
    let plugins = plugins.map_err(|error| Refusal::fault(format_args!("list the plugins: {error}")))?;
    let mut views = Vec::with_capacity(plugins.len());
    for plugin in &plugins {
        views.push(PluginView::new(&call, plugin).await);
    }
    Ok(PluginListView { plugins: views })
}

/// Returns all plugins that have a folder or a record. Blocks.
fn all(app: &App) -> std::io::Result<Vec<PluginEntry>> {
    let records = app.models.plugins.load();
    let mut keys = app.plugins.files.list()?;
    keys.extend(records.iter().map(|it| it.key.clone()));
    keys.sort();
    keys.dedup();
    keys.truncate(PLUGINS_MAX);
    let read = |key: &PluginKey| app.plugins.read(key, records.one_by("key", key.as_str()).cloned());
    Ok(keys.iter().filter_map(read).collect())
}

/// Gives each plugin in the folder a record. Running plugins whose folders were changed by hand need a restart.
async fn reload(call: Call) -> Result<ReloadedPluginsView, Refusal> {
    let _one = call.app.plugins.changes.lock().await;
    let app = Arc::clone(&call.app);
    let keys = blocking(move || app.plugins.files.list()).await?;
    let mut keys = keys.map_err(|error| Refusal::fault(format_args!("list the plugins: {error}")))?;
    keys.truncate(PLUGINS_MAX);
    let count = keys.len();
    let known = call.app.models.plugins.load();
    keys.retain(|it| known.one_by("key", it.as_str()).is_none());
    if !keys.is_empty() {
        call.write(move |write| {
            for key in &keys {
                let record = record_of(write, key)?;
                write.put(&record)?;
            }
            Ok(())
        })
        .await?;
    }
    Ok(ReloadedPluginsView { success: true, count })
}

async fn logo(call: Call) -> Result<Picture, Refusal> {
    let missing = || failed(Refusal::not_found("Logo not found"), "Logo not found");
    let key = PluginKey::from_folder(call.text("key")?).map_err(|_| missing())?;
    let app = Arc::clone(&call.app);
    let read = blocking(move || app.plugins.files.logo(&key)).await?;
    let bytes = read.ok().flatten().ok_or_else(missing)?;
    // Other formats may contain programs.
    let format = PictureFormat::from_content(&bytes).filter(|it| *it != PictureFormat::Gif);
    Ok(Picture { format: format.ok_or_else(missing)?, bytes })
}

/// Returns the key in the path.
fn key_of(call: &Call) -> Result<PluginKey, Refusal> {
    let text = call.text("key")?;
    PluginKey::from_folder(text).ok().filter(|it| it.as_str() == text).ok_or_else(unknown)
}

/// Reads the plugin with this key.
async fn find(call: &Call, key: &PluginKey) -> Result<PluginEntry, Refusal> {
    let record = call.app.models.plugins.load().one_by("key", key.as_str()).cloned();
    let (app, key) = (Arc::clone(&call.app), key.clone());
    blocking(move || app.plugins.read(&key, record)).await?.ok_or_else(unknown)
}

/// Changes the record of a plugin, or a new one.
async fn change(
    call: &Call,
    key: PluginKey,
    change: impl FnOnce(&mut Plugin) + Send + 'static,
) -> Result<(), Refusal> {
    call.write(move |write| {
        let mut record = record_of(write, &key)?;
        change(&mut record);
        write.put(&record).map_err(StoreError::into)
    })
    .await
}

/// Returns the view of a plugin after a change.
async fn shown(call: &Call, key: &PluginKey) -> Result<PluginView, Refusal> {
    Ok(PluginView::new(call, &find(call, key).await?).await)
}

fn unknown() -> Refusal {
    failed(Refusal::not_found("Plugin not found"), "Plugin not found")
}

/// Gives a refusal the body that clients of plugins read.
fn failed(refusal: Refusal, error: &str) -> Refusal {
    refusal.with_body(json!({ "success": false, "error": error, "detail": error }))
}

/// Refuses a request with 400 and a sentence.
fn refused(error: &str) -> Refusal {
    failed(Refusal::bad_request(error), error)
}

/// Runs a function on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    run_blocking("use the plugins", work).await
}

/// Returns the installed plugins of the gateway.
fn installed(call: &Call) -> &InstalledPlugins {
    &call.app.plugins
}
