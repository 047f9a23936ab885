//! A playlist account at a provider, and its account profiles with their limits.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{AccountId, ProfileId};
use crate::settings::seconds;
use crate::stream::Headers;

/// A subscription at a provider: where streams come from and what their upstreams have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    pub id: AccountId,
    pub name: String,
    /// Streams of an inactive account are not played.
    pub is_active: bool,
    /// Sent with every request to this provider, unless the stream has its own.
    pub headers: Headers,
    /// How long the provider goes on counting a connection that was closed. A slot comes back only then.
    #[serde(with = "seconds")]
    pub release_delay: Duration,
    pub profiles: Vec<AccountProfile>,
}

/// Credentials of an account with a limit of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountProfile {
    pub id: ProfileId,
    pub name: String,
    /// The profile that is tried first. An account has one.
    pub is_default: bool,
    pub is_active: bool,
    /// Upstream connections at one time; 0 is no limit.
    pub max_streams: u32,
}

impl Account {
    /// The profiles that may be used, in the order in which they are tried: the default one first.
    pub fn active_profiles(&self) -> impl Iterator<Item = &AccountProfile> {
        let active = || self.profiles.iter().filter(|it| it.is_active);
        active().filter(|it| it.is_default).chain(active().filter(|it| !it.is_default))
    }
}
