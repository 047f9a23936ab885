//! Guide sources.

use domain::guide::source::GuideSource;

use crate::record::{Keys, Record, Sharing};

impl Record for GuideSource {
    const COLLECTION: &'static str = "guide_sources";
    const SHARING: Sharing = Sharing::FullNodes;
    /// Addresses and logins.
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", &self.name);
    }
}
