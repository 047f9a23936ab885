//! Names that admins linked with guide channels.

use domain::guide::matching::GuideAlias;

use crate::record::{Keys, Record, Sharing};

impl Record for GuideAlias {
    const COLLECTION: &'static str = "guide_aliases";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
    }
}
