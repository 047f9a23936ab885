//! `/api/plugins/plugins/`: installed plugins.

mod enabling;
mod install;
mod limits;
mod records;
mod refusals;
mod repositories;
#[cfg(test)]
mod repository_tests;
mod runs;
mod settings;
#[cfg(test)]
mod tests;
mod view;

use std::sync::Arc;

use domain::plugin::PluginKey;
use http::StatusCode;
use resource_derive::View;
use route_frame::access::{ADMIN, Access};
use route_frame::call::Call;
use route_frame::picture::Picture;
use route_frame::route::Route;
use serde::Serialize;
use server::reply::Refusal;
use services::image_types::PictureFormat;
use services::plugins::{PLUGINS_MAX, PluginEntry, record_of};
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::records::blocking;
use self::refusals::failed;
use self::runs::START_WAIT_MAX;
pub(crate) use self::view::PluginView;
use crate::context::{RestCall, RestContext};

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
    /// Number of plugins in the folder, also of disabled ones.
    #[field(example = "3")]
    count: usize,
}

const LIST: &str = "/api/plugins/plugins/";
const RELOAD: &str = "/api/plugins/plugins/reload/";
const LOGO: &str = "/api/plugins/plugins/{key}/logo/";

/// Returns the routes below `/api/plugins/`.
pub(super) fn routes() -> Vec<Route> {
    let mut routes = vec![
        Route::get(LIST, ADMIN, "Lists plugins. Runs no code of them.", list),
        Route::post(
            RELOAD,
            ADMIN,
            "Refreshes the list of plugins from their folder, and starts the processes of enabled plugins again.",
            reload,
        ),
        Route::get(LOGO, Access::Anyone, "Returns the logo of a plugin.", logo)
            .refuses(StatusCode::NOT_FOUND, "The plugin does not exist or has no logo."),
    ];
    routes.extend(install::routes());
    routes.extend(enabling::routes());
    routes.extend(limits::routes());
    routes.extend(repositories::routes());
    routes.extend(runs::routes());
    routes.extend(settings::routes());
    routes
}

async fn list(call: Call) -> Result<PluginListView, Refusal> {
    let context = Arc::clone(call.rest());
    let plugins = blocking(move || all(&context)).await?;
    let plugins = plugins.map_err(|error| Refusal::fault(format_args!("list the plugins: {error}")))?;
    let mut views = Vec::with_capacity(plugins.len());
    for plugin in &plugins {
        views.push(PluginView::new(&call, plugin).await);
    }
    Ok(PluginListView { plugins: views })
}

/// Returns all plugins that have a folder or a record. Blocks.
fn all(context: &RestContext) -> std::io::Result<Vec<PluginEntry>> {
    let records = context.models.plugins.load();
    let mut keys = context.plugins.installed.files.list()?;
    keys.extend(records.iter().map(|it| it.key.clone()));
    keys.sort();
    keys.dedup();
    keys.truncate(PLUGINS_MAX);
    let read =
        |key: &PluginKey| context.plugins.installed.read(key, records.one_by("key", key.as_str()).cloned());
    Ok(keys.iter().filter_map(read).collect())
}

/// Gives each plugin in the folder a record, and stops the processes of the enabled ones: their `stop(context)` runs, and the
/// present code starts. Not for a plugin that asks, which would start itself again in a circle.
async fn reload(call: Call) -> Result<ReloadedPluginsView, Refusal> {
    let _one = call.rest().plugins.installed.changes.lock().await;
    let context = Arc::clone(call.rest());
    let keys = blocking(move || context.plugins.installed.files.list()).await?;
    let mut keys = keys.map_err(|error| Refusal::fault(format_args!("list the plugins: {error}")))?;
    keys.truncate(PLUGINS_MAX);
    let count = keys.len();
    let known = call.rest().models.plugins.load();
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
    if call.owner()?.is_some() {
        let enabled = known.iter().filter(|it| it.is_enabled).map(|it| it.key.clone());
        start_again(call.rest(), enabled.take(PLUGINS_MAX).collect()).await;
    }
    Ok(ReloadedPluginsView { success: true, count })
}

/// Starts plugins again, all at once, and waits for them for a limited time. An error is the state of its plugin.
async fn start_again(context: &RestContext, keys: Vec<PluginKey>) {
    let processes = &context.plugins.processes.handle;
    let mut starts = JoinSet::new();
    for key in keys {
        let processes = processes.clone();
        starts.spawn(async move { drop(processes.reload(&key).await) });
    }
    let all = async { while starts.join_next().await.is_some() {} };
    let _ = timeout(START_WAIT_MAX, all).await;
    // Those that take longer go on after the answer.
    starts.detach_all();
}

async fn logo(call: Call) -> Result<Picture, Refusal> {
    let missing = || failed(Refusal::not_found("Logo not found"), "Logo not found");
    let key = PluginKey::from_folder(call.text("key")?).map_err(|_| missing())?;
    let context = Arc::clone(call.rest());
    let read = blocking(move || context.plugins.installed.files.logo(&key)).await?;
    let bytes = read.ok().flatten().ok_or_else(missing)?;
    // Other formats may contain programs.
    let format = PictureFormat::from_content(&bytes).filter(|it| *it != PictureFormat::Gif);
    Ok(Picture { format: format.ok_or_else(missing)?, bytes })
}
