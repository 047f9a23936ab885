//! Core settings.

use domain::setting::CoreSetting;

use crate::record::{Keys, Record};

impl Record for CoreSetting {
    const COLLECTION: &'static str = "settings";

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("key", &self.key);
    }
}
