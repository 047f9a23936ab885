//! A playlist account at a provider, its account profiles with their limits, and how its list is refreshed.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{AccountId, ProfileId};
use crate::settings::seconds;
use crate::source_url::SourceUrl;
use crate::stream::RequestHeaders;

/// The account that streams made by hand belong to. Every store has it; it can be neither changed nor deleted.
pub const CUSTOM_ACCOUNT: AccountId = AccountId(1);

/// A subscription at a provider: where streams come from and what their upstreams have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    pub id: AccountId,
    /// Unique.
    pub name: String,
    /// Where its list is.
    pub list: PlaylistLocation,
    /// Streams of an inactive account are not played, and its list is not refreshed.
    pub is_active: bool,
    /// Sent with every request to this provider, unless the stream has its own.
    #[serde(default)]
    pub headers: RequestHeaders,
    /// How long the provider goes on counting a connection that was closed. A slot comes back only then.
    #[serde(with = "seconds")]
    pub release_delay: Duration,
    /// One of them is the default.
    pub profiles: Vec<AccountProfile>,
    /// What makes a stream the same one at the next refresh.
    #[serde(default)]
    pub identity: StreamIdentity,
    /// What is made of the values that the provider gives. In this order.
    #[serde(default)]
    pub rules: Vec<Rule>,
    #[serde(default)]
    pub schedule: RefreshSchedule,
    /// Days after which a stream that has vanished is removed, unless a channel uses it. 0 is at the next refresh.
    pub stale_stream_days: u32,
    /// Among accounts, the larger first. For what looks at accounts in an order of its own.
    #[serde(default)]
    pub priority: i32,
    #[serde(default)]
    pub custom_properties: Map<String, Value>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub created_at: i64,
    #[serde(default)]
    pub updated_at: i64,
}

/// Where the list of an account is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaylistLocation {
    /// Nowhere: its streams are made by hand.
    None,
    /// At an `http` or `https` address, which often has credentials in it.
    Url(SourceUrl),
    /// In a file of this machine.
    File(String),
}

/// What makes a stream the same one at the next refresh, so that it keeps its id and its edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamIdentity {
    /// Its address.
    #[default]
    Url,
    /// The stream id in an address as panels make them (`/live/user/password/ID.ts`); of others the address. Survives
    /// a change of password or of the provider's host name.
    StreamId,
}

/// When a list is refreshed by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RefreshSchedule {
    /// Hours between two refreshes; 0 is never. Not looked at where there is a `cron` expression.
    pub interval_hours: u32,
    /// Minute, hour, day of month, month, day of week; in the time zone of the core settings. Empty is none.
    pub cron: String,
}

/// One change of what a provider says.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub field: RuleField,
    /// A regular expression.
    pub find: String,
    /// What every match of it becomes.
    pub replace: String,
}

/// What a rule changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleField {
    Name,
    Url,
    TvgId,
    Group,
    Logo,
}

/// Credentials of an account with a limit of their own.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountProfile {
    pub id: ProfileId,
    /// Unique in its account.
    pub name: String,
    /// The profile that is tried first. An account has one.
    pub is_default: bool,
    pub is_active: bool,
    /// Upstream connections at one time; 0 is no limit.
    pub max_streams: u32,
    /// What of a stream's address this profile replaces, and by what: how a second login plays the streams of the
    /// first one's list. Both empty: nothing.
    #[serde(default)]
    pub search_pattern: String,
    #[serde(default)]
    pub replace_pattern: String,
    #[serde(default)]
    pub custom_properties: Map<String, Value>,
    /// When these credentials end, in milliseconds since 1970. For people to see.
    #[serde(default)]
    pub expires_at: Option<i64>,
}

impl AccountProfile {
    /// The default profile of an account.
    pub fn default_of(id: ProfileId, name: impl Into<String>, max_streams: u32) -> Self {
        Self {
            id,
            name: name.into(),
            is_default: true,
            is_active: true,
            max_streams,
            search_pattern: String::new(),
            replace_pattern: String::new(),
            custom_properties: Map::new(),
            expires_at: None,
        }
    }
}

/// Without its texts: what changes an address may have a login in it.
impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("field", &self.field).finish_non_exhaustive()
    }
}

/// Without its patterns, which are there to change a login, and without what others keep with it.
impl fmt::Debug for AccountProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountProfile")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("is_default", &self.is_default)
            .field("is_active", &self.is_active)
            .field("max_streams", &self.max_streams)
            .finish_non_exhaustive()
    }
}

/// Hours between two refreshes of an account that is made, where nobody says otherwise.
pub const REFRESH_INTERVAL_HOURS: u32 = 24;
/// Days after which a vanished stream is removed, where nobody says otherwise.
pub const STALE_STREAM_DAYS: u32 = 7;

impl Account {
    /// An account as most begin: one profile, no schedule, addresses as identity.
    pub fn new(
        id: AccountId,
        name: impl Into<String>,
        list: PlaylistLocation,
        profile: AccountProfile,
        at: i64,
    ) -> Self {
        Self {
            id,
            name: name.into(),
            list,
            is_active: true,
            headers: RequestHeaders::default(),
            release_delay: Duration::ZERO,
            profiles: vec![profile],
            identity: StreamIdentity::default(),
            rules: Vec::new(),
            schedule: RefreshSchedule::default(),
            stale_stream_days: STALE_STREAM_DAYS,
            priority: 0,
            custom_properties: Map::new(),
            created_at: at,
            updated_at: at,
        }
    }

    /// The account of streams that are made by hand.
    pub fn custom() -> Self {
        let profile = AccountProfile::default_of(ProfileId(1), "custom", 0);
        Self::new(CUSTOM_ACCOUNT, "custom", PlaylistLocation::None, profile, 0)
    }

    /// The profiles that may be used, in the order in which they are tried: the default one first.
    pub fn active_profiles(&self) -> impl Iterator<Item = &AccountProfile> {
        let active = || self.profiles.iter().filter(|it| it.is_active);
        active().filter(|it| it.is_default).chain(active().filter(|it| !it.is_default))
    }

    /// The profile that is tried first.
    pub fn default_profile(&self) -> Option<&AccountProfile> {
        self.profiles.iter().find(|it| it.is_default)
    }

    /// Is this the account of streams that are made by hand?
    pub fn is_custom(&self) -> bool {
        self.id == CUSTOM_ACCOUNT
    }
}

/// What came of the refreshes of an account. A record of its own, so that a refresh never writes the account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshRecord {
    pub account: AccountId,
    pub outcome: RefreshOutcome,
    /// A sentence for the admin, without credentials.
    pub message: String,
    /// When the last try ended, in milliseconds since 1970.
    pub tried_at: i64,
    /// When the last good one ended: until then streams that are not stale were seen.
    #[serde(default)]
    pub good_at: Option<i64>,
    /// Entries of the last good list: what a shrunken one is measured against.
    #[serde(default)]
    pub n_good: u64,
    /// Fingerprint of the last good list's bytes and of what the account made of them.
    #[serde(default)]
    pub digest: Option<[u8; 32]>,
}

/// How a refresh ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefreshOutcome {
    /// The list was taken.
    Success,
    /// Nothing was changed: there was no list, or none that could be read.
    Error,
    /// Nothing was changed: the list is much smaller than the last good one, and an admin has to agree.
    AwaitingConfirmation,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_rule_nor_a_profile_prints_the_login_that_it_changes() {
        let mut profile = AccountProfile::default_of(ProfileId(1), "second", 1);
        profile.search_pattern = "/user/secret/".to_owned();
        profile.replace_pattern = "/user2/secret2/".to_owned();
        let rule = Rule { field: RuleField::Url, find: "secret".to_owned(), replace: "secret2".to_owned() };
        let mut account = Account::new(AccountId(2), "a", PlaylistLocation::None, profile, 0);
        account.rules.push(rule);
        let printed = format!("{account:?}");
        assert!(!printed.contains("secret") && printed.contains("second"), "{printed}");
    }
}
