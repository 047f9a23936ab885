//! Installed plugins and their schedules.

use domain::plugin::{Plugin, PluginSchedules};

use crate::record::{Keys, Record, Sharing};

impl Record for Plugin {
    const COLLECTION: &'static str = "plugins";
    const SHARING: Sharing = Sharing::FullNodes;
    /// Settings contain passwords.
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("key", self.key.as_str());
    }
}

impl Record for PluginSchedules {
    const COLLECTION: &'static str = "plugin_schedules";
    const SHARING: Sharing = Sharing::FullNodes;
    /// The parameters are written by plugins, which may put passwords there.
    const SEALED: bool = true;
    const MAY_BE_MISSED: bool = true;

    /// The id of the plugin.
    fn id(&self) -> u32 {
        self.id
    }
}
