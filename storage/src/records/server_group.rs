//! Server groups.

use domain::server_group::ServerGroup;

use crate::record::{Keys, Record, Sharing};

impl Record for ServerGroup {
    const COLLECTION: &'static str = "server_groups";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", &self.name);
    }
}
