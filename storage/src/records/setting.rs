//! Core settings.

use domain::setting::CoreSetting;

use crate::record::{Keys, Record, Sharing};

impl Record for CoreSetting {
    const COLLECTION: &'static str = "settings";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("key", &self.key);
    }
}
