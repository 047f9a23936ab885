//! Channel groups.

use domain::group::Group;

use crate::record::{Keys, Record, Sharing};

impl Record for Group {
    const COLLECTION: &'static str = "groups";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        for name in self.names() {
            keys.unique("name", name);
        }
    }
}
