//! Finds installed plugins and changes their records.

use std::sync::Arc;

use domain::plugin::{Plugin, PluginKey};
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use server::reply::Refusal;
use services::plugins::{InstalledPlugins, PluginEntry, record_of};
use storage::Error as StoreError;

use super::refusals::unknown;
use super::view::PluginView;
use crate::context::RestCall;

/// Returns the key in the path.
pub(super) fn key_of(call: &Call) -> Result<PluginKey, Refusal> {
    let text = call.text("key")?;
    PluginKey::from_folder(text).ok().filter(|it| it.as_str() == text).ok_or_else(unknown)
}

/// Reads the plugin with this key.
pub(super) async fn find(call: &Call, key: &PluginKey) -> Result<PluginEntry, Refusal> {
    let record = call.rest().models.plugins.load().one_by("key", key.as_str()).cloned();
    let (context, key) = (Arc::clone(call.rest()), key.clone());
    blocking(move || context.plugins.installed.read(&key, record)).await?.ok_or_else(unknown)
}

/// Changes the record of a plugin, or a new one.
pub(super) async fn change(
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
pub(super) async fn shown(call: &Call, key: &PluginKey) -> Result<PluginView, Refusal> {
    Ok(PluginView::new(call, &find(call, key).await?).await)
}

/// Runs a function on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    run_blocking("use the plugins", work).await
}

/// Returns the installed plugins of the gateway.
pub(super) fn installed(call: &Call) -> &InstalledPlugins {
    &call.rest().plugins.installed
}
