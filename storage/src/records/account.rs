//! Playlist accounts.

use domain::account::Account;

use crate::record::{Keys, Record};

impl Record for Account {
    const COLLECTION: &'static str = "accounts";
    /// Addresses and headers may be credentials.
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", &self.name);
    }
}
