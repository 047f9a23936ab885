//! The groups of playlist accounts.

use domain::account_group::AccountGroup;
use domain::ids::{AccountId, GroupId};

use crate::record::{Keys, Record, Sharing};

/// Returns the value of the index `link`: one account has one link with a group.
pub fn link_key(account: AccountId, group: GroupId) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&account.0.to_be_bytes());
    key[4..].copy_from_slice(&group.0.to_be_bytes());
    key
}

impl Record for AccountGroup {
    const COLLECTION: &'static str = "account_groups";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("link", link_key(self.account, self.group));
        keys.plain("account", self.account.0.to_be_bytes());
        keys.plain("group", self.group.0.to_be_bytes());
    }
}
