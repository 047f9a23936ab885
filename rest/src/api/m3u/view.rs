//! The fields of accounts and profiles, and their views by level.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use actors::{Importer, RefreshPhase};
use domain::account::{
    Account, AccountProfile, PlaylistLocation, RefreshOutcome, RefreshRecord, Rule, RuleField, StreamIdentity,
};
use domain::account_addresses::{AddressRecord, FURTHER_ADDRESSES_MAX, addresses_of};
use domain::account_group::AccountGroup;
use domain::channel::Channel;
use domain::egress::AllowedNetworks;
use domain::group::Group;
use domain::ids::{AccountId, ProfileId, ServerGroupId, StreamProfileId};
use domain::panel::{LiveForm, LiveFormSource, LoginState, ProfileInfo};
use domain::secret::Secret;
use domain::stream::{RequestHeaders, Stream};
use domain::stream_identity::IdentityKey;
use domain::streams::StreamSnapshot;
use domain::user::UserLevel;
use resource_derive::View;
use route_frame::call::Call;
use route_frame::field::Field;
use route_frame::input::Element;
use route_frame::value::{Readable, Time, WriteOnly};
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Table;

use super::account_groups::AccountGroupView;
use super::expiry::{self, ExpirationView};
use super::filters::{self, M3UFilterView};
use super::logins;
use super::text::{AccountType, Exact};
use crate::api::text::shown_url;
use crate::choice::{Named, choice};
use crate::context::{RestCall, RestContext};
use crate::record::{Lookup, Render, view_from};
use crate::seen::SeenThings;
use crate::text_code::TextCodeView;

/// A playlist account: a subscription with a provider, whose playlist contains streams.
#[derive(Clone, Debug, Serialize, View)]
#[resource(new = NewM3UAccount, edit = M3UAccountEdit)]
pub(crate) struct M3UAccountView {
    /// Assigned by the gateway and never reused.
    #[field(example = "2")]
    id: AccountId,
    /// The built-in account for streams that admins add cannot be changed or deleted.
    locked: bool,
    /// Profiles of the account, the default one first.
    profiles: Vec<M3UAccountProfileView>,
    /// Filters of the account in their order. Patterns are visible to admins only.
    filters: Vec<M3UFilterView>,
    /// Groups that the playlist names, with their settings.
    channel_groups: Vec<AccountGroupView>,
    /// Number of streams of the account, including stale ones.
    #[field(example = "1200")]
    stream_count: usize,
    /// Number of streams that are missing from the latest playlist and kept for some days.
    #[field(example = "3")]
    stale_stream_count: usize,
    /// State of the playlist. `pending_confirmation`: many known streams are missing from the list, nothing was changed,
    /// and a refresh with `confirm` accepts it.
    #[field(example = "success")]
    status: Named<Status>,
    /// Result of the last refresh, for people.
    last_message: Option<String>,
    /// The code of `last_message`, if it has one.
    last_message_code: Option<TextCodeView>,
    /// When the account was created.
    created_at: Time,
    /// When the account was last changed or refreshed.
    updated_at: Time,
    /// Unique name.
    #[field(required, chars_max = 255, example = "Provider")]
    name: String,
    /// URL of the playlist, often with credentials. An account has either this or `file_path`; setting one removes the
    /// other. For a panel (`XC`), its address in any form: with or without scheme, port and path, or the URL of its
    /// playlist, which contains the login. For a portal (`STALKER`), its address, such as `http://portal.example/c/`, or that
    /// of its entry point. Non-admins see only the host.
    #[field(edit, blank, example = "http://panel.example:8080")]
    server_url: Option<String>,
    /// User name at the panel, or at a portal that asks for one. Only for the types `XC` and `STALKER`. Visible to admins only.
    #[field(edit, blank, chars_max = 255, example = "")]
    username: Option<String>,
    /// Password at the panel or portal. Only for the types `XC` and `STALKER`; omit it to keep it.
    #[field(write_only, blank, chars_max = 255)]
    #[serde(skip)]
    password: WriteOnly<Option<Secret>>,
    /// MAC address of the box that the portal knows, for the default profile. Only for the type `STALKER`, which requires it.
    /// It is returned with its end hidden, to admins only, and is kept when it is sent back like this.
    #[field(edit, blank, chars_max = 32, example = "00:1A:79:**:**:**")]
    mac_address: Option<String>,
    /// Serial number of the box, if the portal asks for it. Never returned; omit it to keep it, `null` removes it.
    #[field(write_only, blank, chars_max = 255)]
    #[serde(skip)]
    serial_number: WriteOnly<Option<Secret>>,
    /// First device id of the box, in the same way.
    #[field(write_only, blank, chars_max = 255)]
    #[serde(skip)]
    device_id: WriteOnly<Option<Secret>>,
    /// Second device id of the box, in the same way.
    #[field(write_only, blank, chars_max = 255)]
    #[serde(skip)]
    device_id2: WriteOnly<Option<Secret>>,
    /// Signature of the box, in the same way.
    #[field(write_only, blank, chars_max = 255)]
    #[serde(skip)]
    signature: WriteOnly<Option<Secret>>,
    /// Model of the box; empty for `MAG250`. Visible to admins only.
    #[field(edit, blank, chars_max = 64, example = "MAG250")]
    device_model: Option<String>,
    /// Absolute path of the playlist on the gateway's machine. Visible to admins only.
    #[field(edit, blank, example = "")]
    file_path: Option<String>,
    /// Id of the server group, with whose accounts it shares a limit of connections.
    #[field(edit, example = "1")]
    server_group: Option<ServerGroupId>,
    /// Name of the uploaded file that is the playlist. Visible to admins only.
    #[field(example = "")]
    uploaded_file: Option<String>,
    /// `STD`: the playlist is a URL or a file. `XC`: a panel, which is asked for its live streams. `STALKER`: a portal, which
    /// knows a box by its MAC address and makes a link whenever a channel is opened.
    #[field(edit, example = "STD")]
    account_type: AccountType,
    /// Streams of an inactive account are not played, and its playlist is not refreshed.
    #[field(edit)]
    is_active: bool,
    /// Maximum number of connections with the default profile; 0 means no limit, or that of the panel, or 1 for a portal.
    #[field(edit, example = "1")]
    max_streams: u32,
    /// User agent for all requests to the provider; `null` selects that of the gateway. Visible to admins only.
    #[field(edit, blank, chars_max = 512, example = "VLC/3.0.20")]
    user_agent: Option<String>,
    /// Other headers for requests to the provider. Replaces all headers that were set before. Values are visible to
    /// admins only.
    #[field(edit)]
    headers: Map<String, Value>,
    /// Stream profile of its streams that have none, on channels that have none; `null` selects the default.
    #[field(edit, example = "1")]
    stream_profile_id: Option<StreamProfileId>,
    /// Sends all headers to every host that the playlist names. Otherwise cookies, authorization and other secrets are
    /// sent to the host of the playlist only.
    #[field(edit)]
    headers_for_all_hosts: bool,
    /// Networks that addresses of the provider may lead into. `of_playlist`: none that is nearer than the one the playlist
    /// came from. `private`: private networks as well. `loopback`: the gateway's machine as well. Link-local addresses,
    /// metadata services and the gateway's own ports are never allowed. Addresses that admins enter are not limited.
    #[field(edit, example = "of_playlist")]
    allowed_networks: Named<AllowedNetworks>,
    /// Proxy for everything of the provider: streams, lists, guides and logos, as `http://`, `https://` or
    /// `socks5://user:password@host:port`. It resolves the names of the provider. `***` stands for its user and password,
    /// and keeps them when it is sent back with the same host. Streams that it cannot carry are refused. Visible to admins
    /// only.
    #[field(edit, blank, chars_max = 2_048, example = "socks5://***@proxy.example:1080")]
    proxy: Option<String>,
    /// Whether certificates of the provider's servers are checked, for streams, lists, guides, logos and films. Programs such
    /// as ffmpeg check none.
    #[field(edit)]
    verify_certificate: bool,
    /// SHA-256 fingerprint of a certificate that is accepted whatever its names, dates and authority are; `null` for none.
    /// Others are checked as usual. Visible to admins only.
    #[field(edit, blank, chars_max = 200, example = "12:AB:34:CD")]
    certificate_fingerprint: Option<String>,
    /// Certificates of further authorities that are trusted for the provider, as PEM; at most 20. Visible to admins only.
    #[field(edit, blank, chars_max = 65_536)]
    certificate_authority: Option<String>,
    /// Further servers of the provider, such as `http://backup.example:8080`. When the server in use is dead, the next one is
    /// used for all streams and lists. Replaces all that were set before. Only for accounts with a URL. Visible to admins
    /// only.
    #[field(edit, items_max = FURTHER_ADDRESSES_MAX, chars_max = 2_048)]
    further_addresses: Vec<String>,
    /// Names of the nodes of a cluster that may open connections of the account; empty: all. The others play its channels
    /// through these.
    #[field(edit, items_max = 64, chars_max = 64, example = "[\"attic\"]")]
    nodes: Vec<String>,
    /// The server that is in use, if the account has several. Visible to admins only.
    #[field(example = "http://backup.example:8080")]
    active_address: Option<String>,
    /// When this server was chosen; `null` for the first one that was never left.
    active_address_since: Option<Time>,
    /// Why the previous server was left, such as `connect_timeout`; `null` while the first one is in use.
    #[field(example = "connect")]
    active_address_cause: Option<String>,
    /// Returns to the first server at once. It is asked again with a refresh anyway, 15 minutes after its last failure.
    #[field(write_only)]
    #[serde(skip)]
    use_first_address: WriteOnly<bool>,
    /// Form of the addresses of live streams of a panel: `ts` (`ID.ts`), `none` (`ID` without an extension) or `m3u8`
    /// (`ID.m3u8`). `auto`: the form that the panel names for the login, otherwise `ts`; if the panel answers a stream with
    /// 404, 405, 406 or a web page, the others are tried, at most once a day, and one that plays is remembered. A change of
    /// this field forgets it. Only for the type `XC`.
    #[field(edit, example = "auto")]
    live_form: Named<LiveFormChoice>,
    /// The form in use; `null` for accounts without a panel.
    #[field(example = "ts")]
    live_form_in_use: Option<Named<LiveForm>>,
    /// Why this form is in use. `setting`: an admin chose it. `found`: a stream played after another form was not served.
    /// `login`: the panel names it for the login. `default`: nothing is known. `null` for accounts without a panel.
    #[field(example = "login")]
    live_form_source: Option<Named<LiveFormSource>>,
    /// Hours between two refreshes; 0 disables them.
    #[field(edit, at_most = 8_760, example = "24")]
    refresh_interval: u32,
    /// Cron expression that replaces the interval: minute, hour, day of month, month, day of week.
    #[field(edit, blank, chars_max = 256, example = "30 4 * * *")]
    cron_expression: String,
    /// Days before a stream that is missing from the playlist is removed, unless a channel uses it; 0 removes it at the
    /// next refresh.
    #[field(edit, at_most = 36_500, example = "7")]
    stale_stream_days: u32,
    /// Accounts with a larger number are preferred.
    #[field(edit, example = "0")]
    priority: i32,
    /// Creates a guide source for the guide of the panel or portal, unless the account has one. Only for the types `XC` and
    /// `STALKER`.
    #[field(write_only)]
    #[serde(skip)]
    create_epg: WriteOnly<bool>,
    /// Addresses of guides that the playlist names; a guide source can be created from them. Visible to admins only.
    epg_urls: Vec<String>,
    /// Whether films and series are imported: those of the enabled categories of a panel, or the entries of a playlist that
    /// are films and episodes; these become titles and not streams. Setting it sets `auto_enable_new_groups_vod`
    /// and `auto_enable_new_groups_series` to false, unless they are set at the same time.
    #[field(edit)]
    enable_vod: bool,
    /// Whether the episodes of all series of a panel are loaded, one series after the other, and not only of those that
    /// people open.
    #[field(edit)]
    load_all_episodes: bool,
    /// When the credentials of the default profile expire. The panel of an account of the type `XC` determines it.
    #[field(edit)]
    exp_date: Option<Time>,
    /// The first date at which credentials of an active profile expire.
    earliest_expiration: Option<Time>,
    /// The profiles whose credentials expire, the first to expire first.
    all_expirations: Vec<ExpirationView>,
    /// Data of clients. Visible to admins only. `orphan_channel_cleanup` decides which channels that refreshes created are
    /// removed when their stream is gone: `preserve_customized` (the default; those that nobody changed), `always` or
    /// `never`. `timezone` names the time zone of the provider for catch-up.
    #[field(edit)]
    custom_properties: Option<Map<String, Value>>,
    /// Whether streams of a group that the playlist names for the first time are imported. The first stream of the group
    /// decides whether it is a group of channels, of films or of series.
    #[field(edit)]
    auto_enable_new_groups_live: bool,
    /// The same for groups of films, and for new categories of films if `enable_vod` is set.
    #[field(edit)]
    auto_enable_new_groups_vod: bool,
    /// The same for groups and new categories of series.
    #[field(edit)]
    auto_enable_new_groups_series: bool,
    /// Property under which the ids of streams are recorded for the case that their records are damaged. `identity_keys`
    /// decides how a refresh recognises streams.
    #[field(edit, example = "url")]
    stream_identity: Named<StreamIdentity>,
    /// Keys by which a refresh recognises a stream, in the order in which they are compared: `panel_id` (the number in a
    /// panel URL), `address`, `bare_address` (the URL without tokens, times of expiry and the login of the account),
    /// `guide_id` (`tvg-id`, else `channel-id`, else `tvc-guide-stationid`), `name_and_group` and `name`. A key counts only
    /// if no other entry of the list and no other stream of the account has the same value. `address` must be one of them;
    /// an empty list restores the default.
    #[field(
        edit,
        items_max = 6,
        example = "[\"panel_id\", \"address\", \"bare_address\", \"guide_id\", \"name_and_group\", \"name\"]"
    )]
    identity_keys: Vec<Named<IdentityKey>>,
    /// Rules that change the values of the provider, in this order. Visible to admins only.
    #[field(edit, items_max = 100)]
    rules: Vec<M3UAccountRuleView>,
    /// Seconds for which the provider still counts a closed connection.
    #[field(edit, at_least = 0, at_most = 3_600, example = "0")]
    release_delay: f64,
    /// Seconds for which the connections of a machine of a cluster that was lost count, after the 20 s until other nodes take
    /// over. `null` is 30 s, or less if the panel of the account shows that they are gone. `release_delay` counts if it is
    /// longer.
    #[field(edit, at_least = 0, at_most = 3_600, example = "15")]
    crash_cooling: Option<f64>,
}

choice!(LiveForm { Ts = "ts", NoExtension = "none", M3u8 = "m3u8" });

choice!(LiveFormSource { Setting = "setting", Found = "found", Login = "login", Default = "default" });

choice!(
    /// The form of addresses that an admin chose.
    enum LiveFormChoice {
        Auto = "auto",
        Ts = "ts",
        NoExtension = "none",
        M3u8 = "m3u8",
    }
);

impl LiveFormChoice {
    fn from_setting(form: Option<LiveForm>) -> Self {
        match form {
            None => Self::Auto,
            Some(LiveForm::Ts) => Self::Ts,
            Some(LiveForm::NoExtension) => Self::NoExtension,
            Some(LiveForm::M3u8) => Self::M3u8,
        }
    }

    /// Returns the form; `None` leaves it to the panel.
    pub(super) fn setting(self) -> Option<LiveForm> {
        match self {
            Self::Auto => None,
            Self::Ts => Some(LiveForm::Ts),
            Self::NoExtension => Some(LiveForm::NoExtension),
            Self::M3u8 => Some(LiveForm::M3u8),
        }
    }
}

choice!(AllowedNetworks { OfPlaylist = "of_playlist", Private = "private", Loopback = "loopback" });

choice!(StreamIdentity { Url = "url", StreamId = "stream_id" });

choice!(IdentityKey {
    PanelId = "panel_id",
    Address = "address",
    BareAddress = "bare_address",
    GuideId = "guide_id",
    NameAndGroup = "name_and_group",
    Name = "name",
});

/// A rule that replaces every match of a regular expression in a value of the provider.
#[derive(Clone, Debug, Serialize, View)]
#[resource(new = NewM3UAccountRule)]
pub(crate) struct M3UAccountRuleView {
    /// The value that the rule changes.
    #[field(required, example = "name")]
    pub(super) field: Named<RuleField>,
    /// A regular expression.
    #[field(required, chars_max = 1_024, example = "^UK: ")]
    pub(super) find: Exact,
    /// Replacement of each match; groups are written `$1` or `\1`.
    #[field(required, blank, chars_max = 1_024, example = "")]
    pub(super) replace: Exact,
}

impl Readable for M3UAccountRuleView {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        let new = NewM3UAccountRule::read_element(value, false).map_err(FieldErrors::first_message)?;
        Ok(M3UAccountRuleView { field: new.field, find: new.find, replace: new.replace })
    }
}

impl M3UAccountRuleView {
    pub(super) fn into_rule(self) -> Rule {
        Rule { field: self.field.0, find: self.find.0, replace: self.replace.0 }
    }
}

choice!(RuleField { Name = "name", Url = "url", TvgId = "tvg_id", Group = "group", Logo = "logo" });

/// A profile of an account: credentials with their own connection limit.
#[derive(Clone, Debug, Serialize, View)]
#[resource(new = NewM3UAccountProfile, edit = M3UAccountProfileEdit)]
pub(crate) struct M3UAccountProfileView {
    /// Assigned by the gateway and never reused.
    #[field(example = "2")]
    id: ProfileId,
    /// The default profile is tried first. Every account has one.
    is_default: bool,
    /// Number of connections in use.
    #[field(example = "0")]
    current_viewers: usize,
    /// The account of the profile.
    account: M3UAccountNameView,
    /// Unique name in the account.
    #[field(required, chars_max = 255, example = "Second login")]
    name: String,
    /// Maximum number of connections; 0 means no limit, or that of the panel, or 1 for a device of a portal.
    #[field(edit, example = "1")]
    max_streams: u32,
    /// MAC address of the box with which the profile plays; the same as in the account. Only for accounts of the type
    /// `STALKER`, which require it for all profiles.
    #[field(edit, blank, chars_max = 32, example = "00:1A:79:**:**:**")]
    mac_address: Option<String>,
    /// Serial number of the box. Never returned; omit it to keep it, `null` removes it.
    #[field(write_only, blank, chars_max = 255)]
    #[serde(skip)]
    serial_number: WriteOnly<Option<Secret>>,
    /// First device id of the box, in the same way.
    #[field(write_only, blank, chars_max = 255)]
    #[serde(skip)]
    device_id: WriteOnly<Option<Secret>>,
    /// Second device id of the box, in the same way.
    #[field(write_only, blank, chars_max = 255)]
    #[serde(skip)]
    device_id2: WriteOnly<Option<Secret>>,
    /// Signature of the box, in the same way.
    #[field(write_only, blank, chars_max = 255)]
    #[serde(skip)]
    signature: WriteOnly<Option<Secret>>,
    /// Model of the box; empty for `MAG250`. Visible to admins only.
    #[field(edit, blank, chars_max = 64, example = "MAG250")]
    device_model: Option<String>,
    /// User name at a portal that asks for one. Visible to admins only.
    #[field(edit, blank, chars_max = 255, example = "")]
    username: Option<String>,
    /// Password at a portal. Never returned; omit it to keep it.
    #[field(write_only, blank, chars_max = 255)]
    #[serde(skip)]
    password: WriteOnly<Option<Secret>>,
    /// Number of connections that the panel allows; the limit if `max_streams` is 0. `null` if it is unknown.
    #[field(example = "1")]
    panel_max_streams: Option<u32>,
    /// State of the login at the panel; `null` for accounts without one.
    #[field(example = "active")]
    login_state: Option<Named<LoginState>>,
    /// Why the last question about the login failed or was refused; `null` if it succeeded.
    login_error: Option<String>,
    /// The code of `login_error`, if it has one.
    login_error_code: Option<TextCodeView>,
    /// Limit that the gateway discovered because the provider refused another connection; it is treated like a limit
    /// until more streams play at once or the account is changed. `null` if there is none or `max_streams` is set.
    #[field(example = "1")]
    discovered_max_streams: Option<u32>,
    /// Number of tuners that the device of the account states; no more streams are opened there at once until more play at
    /// once, the account is changed, or a day is over. Devices are asked when they say that all their tuners are in use.
    /// `null` if it is unknown or `max_streams` is set.
    #[field(example = "2")]
    stated_max_streams: Option<u32>,
    /// Inactive profiles are not used.
    #[field(edit)]
    is_active: bool,
    /// Regular expression for the part of stream URLs to replace. Required for all profiles except the default one, and not
    /// used for portals. Visible to admins only.
    #[field(edit, blank, chars_max = 1_024, example = "/live/user1/password1/")]
    search_pattern: Exact,
    /// Replacement of the search pattern. Visible to admins only.
    #[field(edit, blank, chars_max = 1_024, example = "/live/user2/password2/")]
    replace_pattern: Exact,
    /// Data of clients, and what the panel says: `user_info`, `server_info` and `last_refresh`, which cannot be changed.
    /// Visible to admins only.
    #[field(edit)]
    custom_properties: Option<Map<String, Value>>,
    /// When the credentials expire. The panel of an account of the type `XC` determines it.
    #[field(edit)]
    exp_date: Option<Time>,
}

/// The account of a profile.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct M3UAccountNameView {
    /// Id of the account.
    #[field(example = "2")]
    id: AccountId,
    /// Name of the account.
    #[field(example = "Provider")]
    name: String,
    /// Type of account.
    #[field(example = "STD")]
    account_type: AccountType,
    /// Whether the type is `XC`.
    is_xtream_codes: bool,
}

choice!(LoginState {
    Unknown = "unknown",
    Active = "active",
    Expired = "expired",
    Banned = "banned",
    Disabled = "disabled",
    Refused = "refused",
});

choice!(
    /// State of the playlist of an account.
    enum Status {
        Idle = "idle",
        Fetching = "fetching",
        Parsing = "parsing",
        Success = "success",
        Error = "error",
        Disabled = "disabled",
        PendingConfirmation = "pending_confirmation",
    }
);

/// Replaces the values of headers.
const HIDDEN: &str = "***";

/// Data that views of accounts depend on.
pub(crate) struct AccountLookup {
    context: Arc<RestContext>,
    is_admin: bool,
    seen: SeenThings,
    channels: Arc<Table<Channel>>,
    refreshes: Arc<Table<RefreshRecord>>,
    groups: Arc<Table<Group>>,
    account_groups: Arc<Table<AccountGroup>>,
    addresses: Arc<Table<AddressRecord>>,
    infos: Arc<Table<ProfileInfo>>,
    streams: Arc<StreamSnapshot>,
    /// Connections in use by profile.
    connections: HashMap<ProfileId, usize>,
}

impl Lookup for AccountLookup {
    fn load(call: &Call) -> Result<Self, Refusal> {
        let mut connections = HashMap::new();
        for lease in call.rest().leases() {
            *connections.entry(lease.profile).or_default() += 1;
        }
        Ok(AccountLookup {
            is_admin: call.identity()?.may(UserLevel::Admin),
            seen: SeenThings::new(call),
            channels: call.rest().models.channels.load(),
            refreshes: call.rest().models.refreshes.load(),
            groups: call.rest().models.groups.load(),
            account_groups: call.rest().models.account_groups.load(),
            addresses: call.rest().models.account_addresses.load(),
            infos: call.rest().models.profile_infos.load(),
            streams: call.rest().models.streams.load(),
            connections,
            context: Arc::clone(call.rest()),
        })
    }
}

impl Render for Account {
    type View = M3UAccountView;
    type Lookup = AccountLookup;

    fn view(&self, lookup: &AccountLookup) -> M3UAccountView {
        let refresh = lookup.refreshes.get(self.id.0);
        let state = State::new(self, &lookup.context.imports.importer, refresh.map(|it| &**it));
        let (server_url, file_path) = match &self.list {
            PlaylistLocation::Url(url) => (shown_url(url, lookup.is_admin), None),
            PlaylistLocation::File(path) => (None, lookup.is_admin.then(|| path.clone())),
            PlaylistLocation::Panel(login) => (shown_url(&login.server, lookup.is_admin), None),
            PlaylistLocation::Portal(place) => (shown_url(&place.server, lookup.is_admin), None),
            PlaylistLocation::Upload(_) | PlaylistLocation::None => (None, None),
        };
        let uploaded_file = match &self.list {
            PlaylistLocation::Upload(name) => lookup.is_admin.then(|| name.clone()),
            _ => None,
        };
        let username = self.list.panel().filter(|_| lookup.is_admin).map(|it| it.username.clone());
        let device = ShownDevice::new(self.default_profile(), lookup);
        let has_choice = !self.further_addresses.is_empty();
        let addresses = if has_choice { addresses_of(self) } else { Vec::new() };
        let address = lookup.addresses.get(self.id.0).map(|it| (**it).clone());
        let address = address.unwrap_or_else(|| AddressRecord::new(self.id));
        let live_form = self.list.panel().map(|_| lookup.live_form(self, &address));
        let mut profiles: Vec<_> = self.profiles.iter().map(|it| (self, it).view(lookup)).collect();
        profiles.sort_by_key(|it| !it.is_default);
        let streams = lookup.context.models.store.collection::<Stream>();
        view_from!(M3UAccountView from self {
            id, server_group, created_at, name, is_active, headers_for_all_hosts, allowed_networks, nodes,
            stale_stream_days, priority, enable_vod, load_all_episodes, auto_enable_new_groups_live,
            auto_enable_new_groups_vod, auto_enable_new_groups_series;
            locked: self.is_custom(),
            profiles,
            filters: lookup.filters(self),
            channel_groups: lookup.channel_groups(self, refresh.and_then(|it| it.good_at)),
            stream_count: streams.len_of(u64::from(self.id.0)),
            stale_stream_count: lookup.streams.account_counts(self.id).n_stale,
            status: Named(state.status),
            last_message_code: state.message.as_deref().and_then(TextCodeView::find),
            last_message: state.message,
            updated_at: Time(self.updated_at.max(refresh.map_or(0, |it| it.tried_at))),
            server_url,
            username: username.or(device.username),
            password: WriteOnly::HIDDEN,
            mac_address: device.mac_address,
            serial_number: WriteOnly::HIDDEN,
            device_id: WriteOnly::HIDDEN,
            device_id2: WriteOnly::HIDDEN,
            signature: WriteOnly::HIDDEN,
            device_model: device.model,
            create_epg: WriteOnly::HIDDEN,
            epg_urls: lookup.if_admin(|| self.guide_urls.iter().map(|it| it.expose().to_owned()).collect()),
            file_path,
            uploaded_file,
            account_type: AccountType::new(&self.list),
            max_streams: self.default_profile().map_or(0, |it| it.max_streams),
            user_agent: lookup.if_admin(|| self.headers.user_agent.clone()),
            headers: lookup.headers(&self.headers),
            stream_profile_id: self.stream_profile,
            proxy: lookup.if_admin(|| self.proxy.as_ref().map(ToString::to_string)),
            verify_certificate: self.certificates.verify,
            certificate_fingerprint: lookup
                .if_admin(|| self.certificates.fingerprint.map(|it| it.to_string())),
            certificate_authority: lookup.if_admin(|| self.certificates.authority.clone()),
            further_addresses: lookup
                .if_admin(|| self.further_addresses.iter().map(|it| it.expose().to_owned()).collect()),
            active_address: lookup.if_admin(|| address.in_use(&addresses).map(|it| it.expose().to_owned())),
            active_address_since: Some(address.changed_at).filter(|it| *it != 0 && has_choice).map(Time),
            active_address_cause: Some(address.cause.clone()).filter(|it| !it.is_empty() && has_choice),
            use_first_address: WriteOnly::HIDDEN,
            live_form: Named(LiveFormChoice::from_setting(self.live_form)),
            live_form_in_use: live_form.map(|it| Named(it.0)),
            live_form_source: live_form.map(|it| Named(it.1)),
            refresh_interval: self.schedule.interval_hours,
            cron_expression: self.schedule.cron.clone(),
            exp_date: self.default_profile().and_then(|it| it.expires_at).map(Time),
            earliest_expiration: expiry::earliest(self),
            all_expirations: expiry::all(self),
            custom_properties: Some(lookup.if_admin(|| self.custom_properties.clone())),
            stream_identity: Named(self.identity_in_force()),
            identity_keys: self.identity_order().iter().copied().map(Named).collect(),
            rules: lookup.if_admin(|| self.rules.iter().map(|it| it.view(&())).collect()),
            release_delay: self.release_delay.as_secs_f64(),
            crash_cooling: self.crash_cooling.map(|it| it.as_secs_f64()),
        })
    }
}

impl Render for (&Account, &AccountProfile) {
    type View = M3UAccountProfileView;
    type Lookup = AccountLookup;

    fn view(&self, lookup: &AccountLookup) -> M3UAccountProfileView {
        let (account, profile) = self;
        let info = lookup.infos.get(profile.id.0);
        let has_login = account.list.panel().is_some() || account.list.portal().is_some();
        let device = ShownDevice::new(Some(profile), lookup);
        view_from!(M3UAccountProfileView from profile {
            id, is_default, name, max_streams, is_active;
            current_viewers: lookup.connections.get(&profile.id).copied().unwrap_or(0),
            account: M3UAccountNameView {
                id: account.id,
                name: account.name.clone(),
                account_type: AccountType::new(&account.list),
                is_xtream_codes: account.list.panel().is_some(),
            },
            mac_address: device.mac_address,
            serial_number: WriteOnly::HIDDEN,
            device_id: WriteOnly::HIDDEN,
            device_id2: WriteOnly::HIDDEN,
            signature: WriteOnly::HIDDEN,
            device_model: device.model,
            username: device.username,
            password: WriteOnly::HIDDEN,
            panel_max_streams: Some(profile.panel_max_streams).filter(|it| *it != 0),
            login_state: info.filter(|_| has_login).map(|it| Named(it.state)),
            login_error: info.map(|it| it.error.clone()).filter(|it| !it.is_empty()),
            login_error_code: info.and_then(|it| TextCodeView::find(&it.error)),
            discovered_max_streams: lookup.context.discovered_limit(account, profile.id),
            stated_max_streams: lookup
                .context
                .stated_limit(account, profile.id)
                .filter(|_| profile.max_streams == 0),
            search_pattern: lookup.if_admin(|| Exact(profile.search_pattern.clone())),
            replace_pattern: lookup.if_admin(|| Exact(profile.replace_pattern.clone())),
            custom_properties: Some(
                lookup.if_admin(|| logins::with_answer(&profile.custom_properties, info.map(|it| &**it))),
            ),
            exp_date: profile.expires_at.map(Time),
        })
    }
}

impl Render for Rule {
    type View = M3UAccountRuleView;
    type Lookup = ();

    fn view(&self, (): &()) -> M3UAccountRuleView {
        M3UAccountRuleView {
            field: Named(self.field),
            find: Exact(self.find.clone()),
            replace: Exact(self.replace.clone()),
        }
    }
}

/// The values of a device that admins see.
#[derive(Default)]
struct ShownDevice {
    mac_address: Option<String>,
    username: Option<String>,
    model: Option<String>,
}

impl ShownDevice {
    fn new(profile: Option<&AccountProfile>, lookup: &AccountLookup) -> Self {
        let device = profile.and_then(|it| it.device.as_deref()).filter(|_| lookup.is_admin);
        device.map_or_else(Self::default, |it| Self {
            mac_address: Some(it.mac.masked()),
            username: it.has_login().then(|| it.username.clone()),
            model: Some(it.model.clone()),
        })
    }
}

impl AccountLookup {
    /// Returns the value for admins, and an empty one for others.
    fn if_admin<T: Default>(&self, make: impl FnOnce() -> T) -> T {
        if self.is_admin { make() } else { T::default() }
    }

    /// Returns the form of the addresses of live streams of a panel, and why it is in use.
    fn live_form(&self, account: &Account, address: &AddressRecord) -> (LiveForm, LiveFormSource) {
        let info = account.default_profile().and_then(|it| self.infos.get(it.id.0));
        let login = info.and_then(|it| LiveForm::from_login(&it.user_info));
        LiveForm::in_force(account.live_form, address.live_form, login)
    }

    fn filters(&self, account: &Account) -> Vec<M3UFilterView> {
        let mut filters: Vec<_> = account.filters.iter().collect();
        filters.sort_by_key(|it| (it.order, it.id));
        filters.into_iter().map(|it| filters::view(it, self.is_admin)).collect()
    }

    /// Returns the groups of an account by name. `good_at` is the end of its last successful refresh.
    fn channel_groups(&self, account: &Account, good_at: Option<i64>) -> Vec<AccountGroupView> {
        let counts: HashMap<_, _> =
            self.streams.groups(Some(&HashSet::from([account.id]))).into_iter().collect();
        let view = |link: &Arc<AccountGroup>| {
            let group = self.groups.get(link.group.0)?;
            let stream_count = group.names().filter_map(|it| counts.get(it)).sum();
            let is_shown = self.seen.shows_group(&self.channels, group.id);
            is_shown.then(|| AccountGroupView::new(link, group, stream_count, good_at, self.is_admin))
        };
        let links = self.account_groups.by("account", account.id.0.to_be_bytes());
        let mut groups: Vec<_> = links.filter_map(view).collect();
        groups.sort_by_cached_key(|it| it.channel_group_name.to_lowercase());
        groups
    }

    fn headers(&self, headers: &RequestHeaders) -> Map<String, Value> {
        let referrer = headers.referrer.as_ref().map(|it| ("Referer", it.as_str()));
        let extra = headers.extra.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let value = |value: &str| Value::from(if self.is_admin { value } else { HIDDEN });
        referrer.into_iter().chain(extra).map(|it| (it.0.to_owned(), value(it.1))).collect()
    }
}

/// State of the playlist of an account, and the result of its last refresh.
pub(super) struct State {
    pub(super) status: Status,
    pub(super) message: Option<String>,
}

impl State {
    pub(super) fn new(account: &Account, importer: &Importer, refresh: Option<&RefreshRecord>) -> Self {
        let progress = importer.progress_of(account.id);
        let running = progress.as_ref().filter(|it| it.phase != RefreshPhase::Done);
        // The last result is in memory, even if it could not be stored.
        let ended = progress.as_ref().and_then(|it| Some((it.outcome?, it.message.as_str())));
        let ended = ended.or_else(|| refresh.map(|it| (it.outcome, it.message.as_str())));
        let status = match (running.map(|it| it.phase), ended) {
            (Some(RefreshPhase::Waiting | RefreshPhase::Fetching), _) => Status::Fetching,
            (Some(_), _) => Status::Parsing,
            (None, _) if !account.is_active => Status::Disabled,
            (None, Some((RefreshOutcome::Success, _))) => Status::Success,
            (None, Some((RefreshOutcome::Error, _))) => Status::Error,
            (None, Some((RefreshOutcome::AwaitingConfirmation, _))) => Status::PendingConfirmation,
            (None, None) => Status::Idle,
        };
        State { status, message: ended.map(|it| it.1.to_owned()).filter(|it| !it.is_empty()) }
    }
}
