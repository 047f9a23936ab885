//! User agents.

use domain::user_agent::UserAgent;

use crate::record::{Keys, Record, Sharing};

impl Record for UserAgent {
    const COLLECTION: &'static str = "user_agents";
    const SHARING: Sharing = Sharing::FullNodes;
    /// Some providers recognise their customers by the user agent.
    const SEALED: bool = true;
    const WAS_PLAIN: bool = true;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", &self.name);
        keys.unique("user_agent", &self.user_agent);
    }
}
