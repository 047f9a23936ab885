//! The current settings of the engine.

use std::sync::Arc;

use domain::settings::{Settings, SettingsError};
use parking_lot::RwLock;

/// The current settings, shared between clones.
#[derive(Clone)]
pub struct LiveSettings(Arc<RwLock<Arc<Settings>>>);

impl LiveSettings {
    pub(crate) fn new(settings: Settings) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(settings))))
    }

    /// Returns the current settings.
    pub fn load(&self) -> Arc<Settings> {
        self.0.read().clone()
    }

    pub(crate) fn set(&self, settings: Settings) -> Result<(), SettingsError> {
        settings.check()?;
        *self.0.write() = Arc::new(settings);
        Ok(())
    }
}
