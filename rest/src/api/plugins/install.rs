//! Installing and removing plugins.

use std::sync::Arc;

use actors::{PluginError, now_ms};
use domain::plugin::{Permissions, Plugin, PluginKey, PluginState};
use http::StatusCode;
use resource_derive::{Body, Query, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::upload::Upload;
use serde::Serialize;
use server::reply::Refusal;
use services::files::Folder;
use services::plugins::{PLUGINS_MAX, record_of};
use storage::plugin_files::{ArchiveError, StagedPlugin};
use storage::records::{remove_plugin_values, remove_runs_of_plugin};
use tracing::{info, warn};

use super::records::{blocking, change, find, installed, key_of, shown};
use super::refusals::{NO_PLUGIN, NOT_FOR_PLUGINS, failed, refused};
use super::runs::follow_record;
use super::view::PluginView;
use crate::api::text::sentence;
use crate::context::RestCall;
use crate::plugin_archives::share_plugin;

/// How a plugin is installed.
#[derive(Debug, Body)]
pub(crate) struct PluginImport {
    /// Whether an installed plugin with the same key is updated. It keeps its settings.
    overwrite: Option<bool>,
}

/// A plugin that was installed.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ImportedPluginView {
    /// Always true.
    success: bool,
    /// The installed plugin.
    plugin: PluginView,
    /// Always false.
    was_managed: bool,
    /// Whether the new version was disabled because it asks for more permissions than were granted.
    waits_for_permissions: bool,
}

/// Options of a removal.
#[derive(Debug, Query)]
pub(crate) struct PluginRemoval {
    /// Whether the files and the values that the plugin stored are deleted as well.
    data: Option<bool>,
}

/// The answer to a removal.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RemovedPluginView {
    /// Always true.
    success: bool,
}

/// Maximum size of an archive, in bytes.
const ARCHIVE_BYTES_MAX: u64 = 200 << 20;

const IMPORT: &str = "/api/plugins/plugins/import/";
const DELETE: &str = "/api/plugins/plugins/{key}/delete/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(IMPORT, ADMIN, "Imports a plugin from a zip archive. Runs no code of it.", import)
            .with_upload(ARCHIVE_BYTES_MAX)
            .not_for_plugins(NOT_FOR_PLUGINS)
            .refuses(
                StatusCode::BAD_REQUEST,
                "The archive is refused, or the plugin exists and `overwrite` is not set. Nothing was changed.",
            ),
        Route::delete(DELETE, ADMIN, "Deletes a plugin with its code and settings.", delete)
            .not_for_plugins(NOT_FOR_PLUGINS)
            .refuses(StatusCode::NOT_FOUND, NO_PLUGIN),
    ]
}

async fn import(call: Call, (sent, file): (PluginImport, Upload)) -> Result<ImportedPluginView, Refusal> {
    let _one = installed(&call).changes.lock().await;
    let overwrite = sent.overwrite == Some(true);
    let context = Arc::clone(call.rest());
    let staged = blocking(move || {
        let name = file.file_name().unwrap_or_default().to_owned();
        context.plugins.installed.files.stage(file.open().map_err(ArchiveError::Io)?, &name)
    });
    let staged = staged.await?.map_err(|error| archive_refusal(&error))?;
    let key = &staged.key;
    if installed(&call).files.exists(key) && !overwrite {
        return Err(refused(&format!("Plugin '{key}' already exists")));
    }
    install_staged(&call, staged).await
}

/// Makes a staged plugin the installed version, with its record. The caller holds the lock of changes.
pub(super) async fn install_staged(call: &Call, staged: StagedPlugin) -> Result<ImportedPluginView, Refusal> {
    let (key, version) = (staged.key.clone(), staged.manifest.version.clone());
    let records = call.rest().models.plugins.load();
    if records.one_by("key", key.as_str()).is_none() && records.iter().count() >= PLUGINS_MAX {
        return Err(refused(&format!("There are {PLUGINS_MAX} plugins already.")));
    }
    let permissions = staged.manifest.permissions.clone();
    let before = records.one_by("key", key.as_str()).cloned();
    let declared_before = declared(call, &key).await?;
    let install = async {
        swap(staged).await?;
        let written = record(call, key.clone(), version.clone(), permissions, declared_before).await;
        if written.is_err() {
            undo(call, &key, before.clone()).await;
        }
        Ok::<bool, InstallError>(written?)
    };
    let undone = undo(call, &key, before.clone());
    let processes = &call.rest().plugins.processes.handle;
    let had_failed = processes.state(&key).is_some_and(|it| it.state == PluginState::Failed);
    let installed = processes.update(&key, install, undone).await;
    let waits_for_permissions = installed.map_err(|error| match error {
        InstallError::Refused(refusal) => *refusal,
        InstallError::NotStarted(error) => refused(&sentence(&error)),
    })?;
    if had_failed {
        // A new version gets another chance.
        follow_record(call, &key).await;
    }
    forget_old(call, key.clone()).await;
    info!(plugin.key = %key, plugin.version = version, "plugin installed");
    share_plugin(call.rest(), &key).await.map_err(|error| {
        warn!("failed to share a plugin with the other nodes, trying again later: {error}");
        let text =
            format!("The plugin is installed, but cannot be shared with the other nodes yet: {error}.");
        failed(Refusal::unavailable(text.clone()), &text)
    })?;
    Ok(ImportedPluginView {
        success: true,
        plugin: shown(call, &key).await?,
        was_managed: false,
        waits_for_permissions,
    })
}

/// Why a version was not installed.
enum InstallError {
    Refused(Box<Refusal>),
    NotStarted(PluginError),
}

impl From<Refusal> for InstallError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl From<PluginError> for InstallError {
    fn from(error: PluginError) -> Self {
        Self::NotStarted(error)
    }
}

/// Returns the permissions that the installed version declares; `None` if there is none.
async fn declared(call: &Call, key: &PluginKey) -> Result<Option<Permissions>, Refusal> {
    let (context, key) = (Arc::clone(call.rest()), key.clone());
    let manifest = blocking(move || context.plugins.installed.files.manifest(&key)).await?;
    Ok(manifest.ok().map(|it| it.permissions))
}

/// Makes a staged plugin the installed version.
async fn swap(staged: StagedPlugin) -> Result<(), Refusal> {
    let done = blocking(move || staged.install()).await?;
    done.map_err(|error| archive_refusal(&ArchiveError::Io(error)))
}

/// Writes the record of an installed version, which keeps no permission that it does not declare. Returns whether it has to wait for more permissions.
async fn record(
    call: &Call,
    key: PluginKey,
    version: String,
    permissions: Permissions,
    before: Option<Permissions>,
) -> Result<bool, Refusal> {
    call.write(move |write| {
        let mut plugin = record_of(write, &key)?;
        let is_granted = plugin.granted.as_ref().is_some_and(|it| permissions.beyond(it).is_empty());
        let waits = plugin.is_enabled && !is_granted;
        let at = now_ms();
        plugin = Plugin {
            is_enabled: plugin.is_enabled && is_granted,
            granted: plugin.granted.map(|it| it.after_update(before.as_ref(), &permissions)),
            version,
            // The archive of the former version.
            archive: None,
            // The new code may report others.
            reported: None,
            failed: None,
            failed_starts: 0,
            updated_at: at,
            ..plugin
        };
        write.put(&plugin)?;
        Ok(waits)
    })
    .await
}

/// Brings the version before the last installation back, with its record. If there was none, removes the new one.
async fn undo(call: &Call, key: &PluginKey, before: Option<Arc<Plugin>>) {
    let (context, folder) = (Arc::clone(call.rest()), key.clone());
    let restored = blocking(move || context.plugins.installed.files.undo_install(&folder)).await;
    let written = match before {
        Some(before) => change(call, key.clone(), move |plugin| {
            plugin.version.clone_from(&before.version);
            plugin.is_enabled = before.is_enabled;
            plugin.granted.clone_from(&before.granted);
            plugin.reported.clone_from(&before.reported);
            plugin.failed = None;
        })
        .await
        .is_ok(),
        None => true,
    };
    if !matches!(restored, Ok(Ok(()))) || !written {
        warn!("failed to bring back the version of a plugin before its update");
    }
}

async fn forget_old(call: &Call, key: PluginKey) {
    let context = Arc::clone(call.rest());
    if !matches!(blocking(move || context.plugins.installed.files.drop_old(&key)).await, Ok(Ok(()))) {
        // It is removed at the next start.
        warn!("failed to remove the old version of a plugin");
    }
}

async fn delete(call: Call, query: PluginRemoval) -> Result<RemovedPluginView, Refusal> {
    let key = key_of(&call)?;
    let _one = installed(&call).changes.lock().await;
    let archive = find(&call, &key).await?.record.and_then(|it| it.archive.clone());
    let removed = key.clone();
    call.write(move |write| {
        for plugin in write.by::<Plugin>("key", removed.as_str())? {
            remove_runs_of_plugin(write, plugin.id)?;
            write.remove::<Plugin>(plugin.id)?;
        }
        Ok(())
    })
    .await?;
    // Its process ends before its folders do.
    follow_record(&call, &key).await;
    let with_data = query.data == Some(true);
    if with_data {
        let removed = key.clone();
        call.write(move |write| Ok(remove_plugin_values(write, &removed)?)).await?;
    }
    let context = Arc::clone(call.rest());
    let done = blocking(move || {
        context.plugins.installed.files.remove(&key)?;
        archive.iter().try_for_each(|it| context.files.remove(Folder::Plugins, it))?;
        if with_data { context.plugins.installed.remove_data(&key) } else { Ok(()) }
    });
    done.await?.map_err(|error| Refusal::fault(format_args!("remove the folder of a plugin: {error}")))?;
    Ok(RemovedPluginView { success: true })
}

/// Returns 400 for an archive that is refused, and 503 if the disk refuses.
pub(super) fn archive_refusal(error: &ArchiveError) -> Refusal {
    if error.is_refusal() {
        return refused(&error.to_string());
    }
    warn!("failed to install a plugin: {error}");
    let text = "The plugin cannot be stored: the data folder refuses it.";
    failed(Refusal::unavailable(text), text)
}
