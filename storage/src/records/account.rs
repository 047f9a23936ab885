//! Playlist accounts.

use domain::account::Account;
use domain::ids::ProfileId;

use crate::error::Result;
use crate::record::{Keys, Record, Sharing};
use crate::write::Write;

/// Returns an id that no account and no account profile ever had.
///
/// Accounts and profiles share one counter, because the default profile of an account has the id of the account. Slots
/// are identified by the id of their profile, so an id must not be used again, even after its account was deleted.
pub fn next_profile_id(write: &mut Write<'_>) -> Result<ProfileId> {
    let accounts = write.all::<Account>()?;
    let is_taken = |id| accounts.iter().flat_map(|it| &it.profiles).any(|it| it.id == id);
    loop {
        // Terminates: each iteration takes the next id, and the number of profiles is finite.
        let id = ProfileId(write.next_id::<Account>()?);
        if !is_taken(id) {
            return Ok(id);
        }
    }
}

impl Record for Account {
    const COLLECTION: &'static str = "accounts";
    const SHARING: Sharing = Sharing::FullNodes;
    /// Addresses and headers may contain credentials.
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", &self.name);
    }
}
