//! The settings of recordings.

use domain::core_settings::DVR_SETTINGS;
use domain::recording::DvrSettings;
use storage::Models;

/// Returns the settings of recordings in the store.
pub(crate) fn dvr_settings(models: &Models) -> DvrSettings {
    let settings = models.settings.load();
    DvrSettings::from_setting(settings.one_by("key", DVR_SETTINGS).map(|it| &it.value))
}
