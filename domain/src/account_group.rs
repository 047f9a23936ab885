//! The groups that the playlist of an account names, with their settings.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::channel::ChannelNumber;
use crate::ids::{AccountGroupId, AccountId, GroupId};

/// A channel group that the playlist of an account names or named.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccountGroup {
    pub id: AccountGroupId,
    pub account: AccountId,
    pub group: GroupId,
    /// Whether its entries are imported.
    pub enabled: bool,
    /// Whether a refresh creates, changes and removes channels for its streams.
    #[serde(default)]
    pub auto_channel_sync: bool,
    /// The first number of these channels.
    #[serde(default)]
    pub sync_start: Option<ChannelNumber>,
    /// The last number of these channels.
    #[serde(default)]
    pub sync_end: Option<ChannelNumber>,
    /// Further settings of the synchronisation, and data of clients.
    #[serde(default)]
    pub custom_properties: Map<String, Value>,
    /// When a group that the playlist no longer names was last seen there, in milliseconds since 1970. Such a group is
    /// *stale*.
    #[serde(default)]
    pub last_seen: Option<i64>,
}

impl AccountGroup {
    /// Creates the link for a group that the playlist names for the first time.
    pub fn new(id: AccountGroupId, account: AccountId, group: GroupId, enabled: bool) -> Self {
        Self {
            id,
            account,
            group,
            enabled,
            auto_channel_sync: false,
            sync_start: None,
            sync_end: None,
            custom_properties: Map::new(),
            last_seen: None,
        }
    }
}
