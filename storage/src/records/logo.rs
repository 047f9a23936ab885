//! Logos of channels.

use domain::logo::Logo;

use crate::record::{Keys, Record, Sharing};

impl Record for Logo {
    const COLLECTION: &'static str = "logos";
    const SHARING: Sharing = Sharing::AllNodes;
    /// Addresses can contain user names and passwords.
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("url", &self.url);
    }
}
