//! Lineups.

use domain::lineup::Lineup;

use crate::record::{Keys, Record, Sharing};

impl Record for Lineup {
    const COLLECTION: &'static str = "lineups";
    const SHARING: Sharing = Sharing::AllNodes;
    /// Users see the channels of their lineups.
    const GRANTS_ACCESS: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", &self.name);
    }
}
