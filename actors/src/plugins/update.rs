//! Replaces the code of a plugin. The old code returns if the new one does not start.

use domain::plugin::{PluginKey, PluginState};

use super::{PluginError, Plugins};

impl Plugins {
    /// Replaces an installed plugin. `install` puts the new code and its record into their places and `undo` brings the old
    /// ones back. A plugin that had a process gets a new one; if it does not become ready, the old version returns.
    ///
    /// # Errors
    /// The new version was not installed; the old one is in its place.
    pub async fn update<T, E: From<PluginError>>(
        &self,
        key: &PluginKey,
        install: impl Future<Output = Result<T, E>>,
        undo: impl Future<Output = ()>,
    ) -> Result<T, E> {
        let runs = |state: PluginState| !matches!(state, PluginState::Disabled | PluginState::Failed);
        let is_running = !self.is_safe_mode() && self.state(key).is_some_and(|it| runs(it.state));
        if !is_running {
            return install.await;
        }
        self.stop(key, "update").await?;
        let installed = match install.await {
            Ok(installed) => installed,
            Err(error) => {
                self.reload(key).await?;
                return Err(error);
            }
        };
        let Err(error) = self.reload(key).await else { return Ok(installed) };
        // It may be starting again.
        self.stop(key, "update").await?;
        undo.await;
        self.restart(key).await?;
        Err(PluginError::NotReady(format!("the new version did not start, and the old one is back: {error}"))
            .into())
    }
}
