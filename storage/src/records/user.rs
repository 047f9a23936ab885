//! Users, and the keys of this installation with which their credentials are protected.

use domain::secret::ServerKeys;
use domain::user::User;

use crate::record::{Keys, Record, Sharing};

impl Record for User {
    const COLLECTION: &'static str = "users";
    const SHARING: Sharing = Sharing::AllNodes;
    /// Player passwords and API keys are stored as plain text in the record.
    const SEALED: bool = true;
    const GRANTS_ACCESS: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("username", User::name_key(&self.username));
        if let Some(key) = &self.api_key {
            keys.unique("api_key", key.digest);
        }
    }
}

impl Record for ServerKeys {
    const COLLECTION: &'static str = "server_keys";
    const SHARING: Sharing = Sharing::AllNodes;
    const SEALED: bool = true;

    /// The collection has one record.
    fn id(&self) -> u32 {
        1
    }
}
