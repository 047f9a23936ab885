//! Installed plugins.

use domain::plugin::Plugin;

use crate::record::{Keys, Record};

impl Record for Plugin {
    const COLLECTION: &'static str = "plugins";
    /// Settings contain passwords.
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("key", self.key.as_str());
    }
}
