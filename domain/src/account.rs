//! A playlist account at a provider, its account profiles with their limits, and the refreshes of its playlist.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::certificate::CertificateCheck;
use crate::cluster::rules::CRASH_COOLING;
use crate::egress::{AllowedNetworks, Distance};
use crate::ids::{AccountId, ProfileId, ServerGroupId, StreamProfileId};
use crate::panel::{LiveForm, PanelLogin};
use crate::pattern::Pattern;
use crate::playlist::content::StreamContent;
use crate::playlist::filters::StreamFilter;
use crate::playlist::m3u;
use crate::portal::{PortalDevice, PortalPlace};
use crate::proxy::ProxyAddress;
use crate::settings::seconds;
use crate::source_url::SourceUrl;
use crate::stream::RequestHeaders;
use crate::stream_identity::IdentityKey;
use crate::vod::TitleKind;

/// The account of manually created streams. Every store has it; it can be neither changed nor deleted.
pub const CUSTOM_ACCOUNT: AccountId = AccountId(1);

/// Maximum number of addresses of guides that are kept of a playlist.
pub const GUIDE_URLS_MAX: usize = m3u::GUIDE_URLS_MAX;

/// A subscription at a provider: the origin of streams, and settings that their upstream connections share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    pub id: AccountId,
    /// Unique.
    pub name: String,
    /// The location of its playlist.
    pub list: PlaylistLocation,
    /// Streams of an inactive account are not played, and its playlist is not refreshed.
    pub is_active: bool,
    /// Sent with every request to this provider, unless the stream has its own.
    #[serde(default)]
    pub headers: RequestHeaders,
    /// The delivery of its streams, if neither the stream nor its channel has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_profile: Option<StreamProfileId>,
    /// Sends all headers to every host that the playlist names, and not only to the site of the playlist.
    #[serde(default)]
    pub headers_for_all_hosts: bool,
    /// The networks that addresses of this provider may lead into.
    #[serde(default)]
    pub allowed_networks: AllowedNetworks,
    /// The proxy for everything of this provider: streams, lists, guides and logos.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxyAddress>,
    /// The certificates of its servers that are accepted, for streams, lists, guides and logos.
    #[serde(default, skip_serializing_if = "CertificateCheck::is_default")]
    pub certificates: CertificateCheck,
    /// Further servers of the provider, for when the one of the list is dead; see
    /// [`account_addresses`](crate::account_addresses).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_addresses: Vec<SourceUrl>,
    /// The form of the addresses of a panel's live streams; `None` leaves it to the panel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_form: Option<LiveForm>,
    /// Time for which the provider keeps counting a closed connection. The slot becomes free afterwards.
    #[serde(with = "seconds")]
    pub release_delay: Duration,
    /// Time for which the connections of a machine of the cluster that was lost count after other nodes have taken over;
    /// `None`: [`CRASH_COOLING`]. The release delay counts if it is longer.
    #[serde(default, with = "seconds::option", skip_serializing_if = "Option::is_none")]
    pub crash_cooling: Option<Duration>,
    /// The names of the nodes of a cluster that may open its connections. Empty: all nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// One of them is the default.
    pub profiles: Vec<AccountProfile>,
    /// The property under which the ids of its streams are recorded; see [`stream_ids`](crate::stream_ids).
    #[serde(default)]
    pub identity: StreamIdentity,
    /// The keys by which a refresh recognises a stream, in the order in which they are compared. Empty:
    /// [`IdentityKey::ALL`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identity_keys: Vec<IdentityKey>,
    /// Changes to the values of the provider, applied in this order.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Decide which entries of the playlist are imported.
    #[serde(default)]
    pub filters: Vec<StreamFilter>,
    /// The largest id that a filter of the account ever had.
    #[serde(default)]
    pub last_filter_id: u32,
    /// Whether entries of a group that the playlist names for the first time are imported. The first entry of the group
    /// decides whether this is a group of channels, of films or of series.
    #[serde(default = "yes")]
    pub auto_enable_new_groups_live: bool,
    /// The same for a group of films.
    #[serde(default = "yes")]
    pub auto_enable_new_groups_vod: bool,
    /// The same for a group of series.
    #[serde(default = "yes")]
    pub auto_enable_new_groups_series: bool,
    /// The accounts with which it shares a limit.
    #[serde(default)]
    pub server_group: Option<ServerGroupId>,
    #[serde(default)]
    pub schedule: RefreshSchedule,
    /// Days after which a stream missing from the playlist is removed, unless a channel uses it. 0 removes it at the
    /// next refresh.
    pub stale_stream_days: u32,
    /// Larger values come first where accounts are sorted by priority.
    #[serde(default)]
    pub priority: i32,
    /// Addresses of guides that the playlist names, as its last refresh found them; at most [`GUIDE_URLS_MAX`]. An admin
    /// may create guide sources from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guide_urls: Vec<SourceUrl>,
    /// Whether films and series are imported: those of a panel, or the entries of a playlist that are films and episodes;
    /// these become titles and not streams.
    #[serde(default)]
    pub enable_vod: bool,
    /// Whether the episodes of all series of a panel are loaded, and not only of those that people open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub load_all_episodes: bool,
    #[serde(default)]
    pub custom_properties: Map<String, Value>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub created_at: i64,
    #[serde(default)]
    pub updated_at: i64,
}

fn yes() -> bool {
    true
}

/// The location of an account's playlist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaylistLocation {
    /// None: its streams are created manually.
    None,
    /// An `http` or `https` address, which often contains credentials.
    Url(SourceUrl),
    /// A local file.
    File(String),
    /// A panel, which lists its live streams itself.
    Panel(PanelLogin),
    /// A file that an admin uploaded, by its name in the data folder. What it names is treated like a playlist from the
    /// internet, because admins upload files that they were given. [`Account::allowed_networks`] allows more, and an
    /// admin sees the [`local_hosts`](crate::local_hosts) that it names.
    Upload(String),
    /// A portal, which lists its channels to the devices of the account profiles.
    Portal(PortalPlace),
}

impl PlaylistLocation {
    /// Returns whether it is from somebody else, so that it must not name local files.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Url(_) | Self::Panel(_) | Self::Upload(_) | Self::Portal(_))
    }

    /// Returns the login of a panel account.
    pub fn panel(&self) -> Option<&PanelLogin> {
        match self {
            Self::Panel(login) => Some(login),
            _ => None,
        }
    }

    /// Returns whether films and series are listed apart from the streams: at a panel or a portal.
    pub fn lists_titles(&self) -> bool {
        self.panel().is_some() || self.portal().is_some()
    }

    /// Returns the portal of a portal account.
    pub fn portal(&self) -> Option<&PortalPlace> {
        match self {
            Self::Portal(place) => Some(place),
            _ => None,
        }
    }
}

/// The property under which the ids of streams are recorded, so that a stream whose record is damaged gets its id back.
/// Refreshes recognise streams by [`Account::identity_keys`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamIdentity {
    /// Its address.
    #[default]
    Url,
    /// The stream id in an address of the usual panel form (`/live/user/password/ID.ts`), otherwise the address.
    /// Survives a change of the password or of the provider's host name.
    StreamId,
}

/// The time of automatic refreshes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RefreshSchedule {
    /// Hours between two refreshes; 0 disables them. Ignored if a `cron` expression is set.
    pub interval_hours: u32,
    /// Minute, hour, day of month, month, day of week, in the time zone of the core settings. Empty if unused.
    pub cron: String,
}

/// One search-and-replace rule for values of the provider.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub field: RuleField,
    /// A regular expression.
    pub find: String,
    /// The replacement of every match.
    pub replace: String,
}

/// The field that a rule changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleField {
    Name,
    Url,
    TvgId,
    Group,
    Logo,
}

/// Credentials of an account with their own limit.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountProfile {
    pub id: ProfileId,
    /// Unique in its account.
    pub name: String,
    /// The default profile is tried first. Every account has one.
    pub is_default: bool,
    pub is_active: bool,
    /// Maximum number of simultaneous upstream connections; 0 is unlimited.
    pub max_streams: u32,
    /// The part of a stream's address that this profile replaces, and its replacement. This is how a second login plays
    /// the streams of the first one's playlist. Both empty: nothing.
    #[serde(default)]
    pub search_pattern: String,
    #[serde(default)]
    pub replace_pattern: String,
    #[serde(default)]
    pub custom_properties: Map<String, Value>,
    /// Expiry of these credentials in milliseconds since 1970. The panel of a panel account determines it.
    #[serde(default)]
    pub expires_at: Option<i64>,
    /// The number of connections that the panel allows; 0 is unknown. The limit if no other is configured.
    #[serde(default)]
    pub panel_max_streams: u32,
    /// The device with which this profile plays, if its account is one of a portal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Box<PortalDevice>>,
}

impl AccountProfile {
    /// Creates the default profile of an account.
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
            panel_max_streams: 0,
            device: None,
        }
    }

    /// Returns the limit in force: the configured one, otherwise that of the panel. 0 is unlimited. A device of a portal
    /// plays one stream, as a box does.
    pub fn limit(&self) -> u32 {
        match (self.max_streams, self.panel_max_streams) {
            (0, 0) => u32::from(self.device.is_some()),
            (0, of_panel) => of_panel,
            (configured, _) => configured,
        }
    }
}

/// Without its texts, because a rule for addresses may contain a login.
impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("field", &self.field).finish_non_exhaustive()
    }
}

/// Without its patterns, which usually contain a login, and without custom properties.
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

/// Default number of hours between two refreshes of a new account.
pub const REFRESH_INTERVAL_HOURS: u32 = 24;
/// Default number of days after which a missing stream is removed.
pub const STALE_STREAM_DAYS: u32 = 7;

impl Account {
    /// Creates an account with one profile, no schedule, and addresses as identity.
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
            stream_profile: None,
            headers_for_all_hosts: false,
            allowed_networks: AllowedNetworks::default(),
            proxy: None,
            certificates: CertificateCheck::default(),
            further_addresses: Vec::new(),
            live_form: None,
            release_delay: Duration::ZERO,
            crash_cooling: None,
            nodes: Vec::new(),
            profiles: vec![profile],
            identity: StreamIdentity::default(),
            identity_keys: Vec::new(),
            rules: Vec::new(),
            filters: Vec::new(),
            last_filter_id: 0,
            auto_enable_new_groups_live: true,
            auto_enable_new_groups_vod: true,
            auto_enable_new_groups_series: true,
            server_group: None,
            schedule: RefreshSchedule::default(),
            stale_stream_days: STALE_STREAM_DAYS,
            priority: 0,
            guide_urls: Vec::new(),
            enable_vod: false,
            load_all_episodes: false,
            custom_properties: Map::new(),
            created_at: at,
            updated_at: at,
        }
    }

    /// Returns whether entries of a new group are imported whose first entry has this content.
    pub fn enables_new_group(&self, content: StreamContent) -> bool {
        match content {
            StreamContent::Live | StreamContent::Separator => self.auto_enable_new_groups_live,
            StreamContent::Movie => self.auto_enable_new_groups_vod,
            StreamContent::Series => self.auto_enable_new_groups_series,
        }
    }

    /// Returns whether its films and series are listed and played.
    pub fn offers_titles(&self) -> bool {
        self.is_active && self.enable_vod
    }

    /// Returns whether titles of a new category of this kind are imported.
    pub fn enables_new_category(&self, kind: TitleKind) -> bool {
        match kind {
            TitleKind::Movie => self.auto_enable_new_groups_vod,
            TitleKind::Series => self.auto_enable_new_groups_series,
        }
    }

    /// Creates the account of manually created streams.
    pub fn custom() -> Self {
        let profile = AccountProfile::default_of(ProfileId(1), "custom", 0);
        Self::new(CUSTOM_ACCOUNT, "custom", PlaylistLocation::None, profile, 0)
    }

    /// Returns the active profiles in the order in which they are tried, the default one first.
    pub fn active_profiles(&self) -> impl Iterator<Item = &AccountProfile> {
        let active = || self.profiles.iter().filter(|it| it.is_active);
        active().filter(|it| it.is_default).chain(active().filter(|it| !it.is_default))
    }

    /// Returns the profile that is tried first.
    pub fn default_profile(&self) -> Option<&AccountProfile> {
        self.profiles.iter().find(|it| it.is_default)
    }

    /// Returns the keys by which a refresh recognises a stream, in their order.
    pub fn identity_order(&self) -> &[IdentityKey] {
        if self.identity_keys.is_empty() { &IdentityKey::ALL } else { &self.identity_keys }
    }

    /// Returns the property under which the ids of streams are recorded. Streams of panels and portals
    /// have ids.
    pub fn identity_in_force(&self) -> StreamIdentity {
        let has_ids = self.list.panel().is_some() || self.list.portal().is_some();
        if has_ids { StreamIdentity::StreamId } else { self.identity }
    }

    /// Returns the login at the panel with which a profile plays. `None` if the account has no panel, or if the profile
    /// changes addresses in another way.
    pub fn panel_login_of(&self, profile: &AccountProfile) -> Option<PanelLogin> {
        let login = self.list.panel()?;
        if profile.search_pattern.is_empty() {
            return Some(login.clone());
        }
        let pattern = Pattern::new(&profile.search_pattern, &profile.replace_pattern).ok()?;
        login.profile_login(&pattern)
    }

    /// Returns how long the connections of a lost machine count after other nodes have taken over, without an answer of the
    /// panel.
    pub fn cooling_after_loss(&self) -> Duration {
        self.release_delay.max(self.crash_cooling.unwrap_or(CRASH_COOLING))
    }

    /// Returns whether this is the account of manually created streams.
    pub fn is_custom(&self) -> bool {
        self.id == CUSTOM_ACCOUNT
    }
}

/// The results of an account's refreshes. A separate record, so that a refresh never writes the account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshRecord {
    pub account: AccountId,
    pub outcome: RefreshOutcome,
    /// A message for the admin, without credentials.
    pub message: String,
    /// End of the last refresh, in milliseconds since 1970.
    pub tried_at: i64,
    /// End of the last successful refresh, at which all streams that are not stale were seen.
    #[serde(default)]
    pub good_at: Option<i64>,
    /// Number of entries of the last accepted playlist, with which the size of the next one is compared.
    #[serde(default)]
    pub n_good: u64,
    /// The first successful refresh, or the last one that an admin confirmed, in milliseconds since 1970. Losses before
    /// it are accepted.
    #[serde(default)]
    pub baseline_at: Option<i64>,
    /// The sizes of the accepted playlists of the last week since then, at most one per day, oldest first.
    #[serde(default)]
    pub sizes: Vec<PlaylistSize>,
    /// The network that the last accepted playlist came from; `None` for a local file, and for playlists that were
    /// imported before this was recorded.
    #[serde(default)]
    pub origin: Option<Distance>,
    /// The identity of the streams under which their ids were last recorded in [`stream_ids`](crate::stream_ids). `None`
    /// before the first time.
    #[serde(default)]
    pub ids_recorded_by: Option<StreamIdentity>,
    /// Hash of the last accepted playlist and of the account settings that were applied to it.
    #[serde(default)]
    pub digest: Option<[u8; 32]>,
}

/// The size of the playlists of one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaylistSize {
    /// Milliseconds since 1970.
    pub at: i64,
    /// Number of entries of the largest one.
    pub n_entries: u64,
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
const WEEK_MS: i64 = 7 * DAY_MS;

impl RefreshRecord {
    /// Creates the record of an account that was never refreshed.
    pub fn new(account: AccountId) -> Self {
        Self {
            account,
            outcome: RefreshOutcome::Error,
            message: String::new(),
            tried_at: 0,
            good_at: None,
            n_good: 0,
            baseline_at: None,
            sizes: Vec::new(),
            origin: None,
            ids_recorded_by: None,
            digest: None,
        }
    }

    /// Records a playlist of this size that was accepted `now`. `is_confirmed` is whether an admin accepts all losses.
    pub fn accept(&mut self, n_entries: u64, is_confirmed: bool, now: i64) {
        if is_confirmed {
            self.sizes.clear();
            self.baseline_at = None;
        }
        self.baseline_at.get_or_insert(now);
        self.sizes.retain(|it| is_within_a_week(it.at, now));
        match self.sizes.last_mut() {
            Some(last) if now.saturating_sub(last.at) < DAY_MS => {
                last.n_entries = last.n_entries.max(n_entries)
            }
            _ => self.sizes.push(PlaylistSize { at: now, n_entries }),
        }
        (self.outcome, self.n_good) = (RefreshOutcome::Success, n_entries);
        (self.tried_at, self.good_at) = (now, Some(now));
    }

    /// Returns the time whose streams are compared with those of a playlist, besides those of the last playlist: a week
    /// ago, but not before the losses that an admin has accepted.
    pub fn compared_since(&self, now: i64) -> i64 {
        now.saturating_sub(WEEK_MS).max(self.baseline_at.filter(|it| *it <= now).unwrap_or(i64::MIN))
    }

    /// Returns the largest number of entries within the last week.
    pub fn n_entries_of_week(&self, now: i64) -> u64 {
        let of_week = self.sizes.iter().filter(|it| is_within_a_week(it.at, now));
        of_week.map(|it| it.n_entries).max().unwrap_or(0)
    }
}

fn is_within_a_week(then: i64, now: i64) -> bool {
    (0..WEEK_MS).contains(&now.saturating_sub(then))
}

/// The result of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefreshOutcome {
    /// The playlist was imported.
    Success,
    /// Nothing was changed, because the playlist was missing or unreadable.
    Error,
    /// Nothing was changed, because many known streams are missing from the playlist and an admin has to confirm it.
    AwaitingConfirmation,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_of_a_week_are_remembered_once_a_day_until_an_admin_confirms_a_loss() {
        let mut refresh = RefreshRecord::new(AccountId(2));
        assert_eq!((refresh.n_entries_of_week(0), refresh.compared_since(WEEK_MS)), (0, 0));
        let start = 100 * DAY_MS;
        for hour in 0..14 * 24 {
            refresh.accept(1000 - hour, false, start + hour as i64 * DAY_MS / 24);
            assert!(refresh.sizes.len() <= 8, "{:?}", refresh.sizes);
        }
        let end = refresh.good_at.unwrap();
        assert_eq!(refresh.baseline_at, Some(start));
        assert_eq!(refresh.compared_since(end), end - WEEK_MS);
        assert_eq!(refresh.compared_since(start + DAY_MS), start);
        let largest = refresh.n_entries_of_week(end);
        assert!((1000 - 14 * 24 + 6 * 24..=1000 - 14 * 24 + 8 * 24).contains(&largest), "{largest}");
        assert_eq!(refresh.n_entries_of_week(0), 0, "a clock that was set back knows no week");
        assert_eq!(refresh.compared_since(start - DAY_MS), start - DAY_MS - WEEK_MS);
        refresh.accept(10, true, end);
        assert_eq!((refresh.n_entries_of_week(end), refresh.compared_since(end)), (10, end));
    }

    #[test]
    fn rules_and_profiles_print_without_the_login_that_they_change() {
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
