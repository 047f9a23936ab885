//! Core settings.

use domain::setting::CoreSetting;

use crate::record::{Keys, Record, Sharing};

impl Record for CoreSetting {
    const COLLECTION: &'static str = "settings";
    const SHARING: Sharing = Sharing::AllNodes;
    /// Earlier versions kept keys of services in them, and records in old files may still contain some.
    const SEALED: bool = true;
    const WAS_PLAIN: bool = true;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("key", &self.key);
    }
}
