//! Groups of users.

use domain::user_group::UserGroup;

use crate::record::{Keys, Record, Sharing};

impl Record for UserGroup {
    const COLLECTION: &'static str = "user_groups";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", &self.name);
    }
}
