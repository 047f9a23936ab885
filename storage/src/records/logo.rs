//! Logos of channels.

use domain::logo::Logo;

use crate::record::{Keys, Record};

impl Record for Logo {
    const COLLECTION: &'static str = "logos";
    /// Addresses can contain user names and passwords.
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("url", &self.url);
    }
}
