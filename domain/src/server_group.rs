//! Server groups: accounts of one provider that share a limit of connections.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::ids::{AccountId, ServerGroupId};

/// Maximum length of a server group's name, in characters.
pub const SERVER_GROUP_NAME_CHARS_MAX: usize = 100;

/// A set of accounts whose connections the provider counts together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerGroup {
    pub id: ServerGroupId,
    /// Unique.
    pub name: String,
    /// Maximum number of simultaneous connections of all its accounts. 0: the limit of each account profile also
    /// applies to the connections of the whole group.
    #[serde(default)]
    pub max_streams: u32,
}

/// A server group and its accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerGroupMembers {
    pub group: Arc<ServerGroup>,
    pub accounts: Arc<[AccountId]>,
}

impl ServerGroupMembers {
    /// Finds the accounts of a server group.
    pub fn new<'a>(group: Arc<ServerGroup>, accounts: impl Iterator<Item = &'a Account>) -> Self {
        let is_member = |it: &&Account| it.server_group == Some(group.id);
        let accounts = accounts.filter(is_member).map(|it| it.id).collect();
        Self { group, accounts }
    }
}
