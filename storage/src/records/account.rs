//! Playlist accounts.

use domain::account::Account;
use domain::ids::ProfileId;

use crate::error::Result;
use crate::record::{Keys, Record};
use crate::write::Write;

/// An id that no account and no profile of one ever had.
///
/// Both are counted as one. Slots are told apart by the id of their profile, so none may come again, not even after its
/// account was deleted; and the default profile of an account has the account's own id.
pub fn next_profile_id(write: &mut Write<'_>) -> Result<ProfileId> {
    let accounts = write.all::<Account>()?;
    let is_taken = |id| accounts.iter().flat_map(|it| &it.profiles).any(|it| it.id == id);
    loop {
        // Ends: every try counts on, and so many profiles there are not.
        let id = ProfileId(write.next_id::<Account>()?);
        if !is_taken(id) {
            return Ok(id);
        }
    }
}

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
