//! The tables of fields of accounts and profiles, and what is shown of them to whom.

use std::collections::HashMap;
use std::sync::Arc;

use actors::{Importer, RefreshPhase};
use domain::account::{
    Account, AccountProfile, PlaylistLocation, RefreshOutcome, RefreshRecord, RuleField, StreamIdentity,
};
use domain::ids::{AccountId, ProfileId};
use domain::source_url::SourceUrl;
use domain::stream::{RequestHeaders, Stream};
use domain::streams::StreamSnapshot;
use domain::user::UserLevel;
use serde_json::{Map, Value};
use storage::Table;

use super::text::{AccountType, Exact};
use crate::app::App;
use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::record::{record, view};
use crate::rest::frame::value::{Named, Time, WebUrl, choice};

record! {
    /// A playlist account: a subscription at a provider, from whose list streams are made.
    M3UAccount / M3UAccountEdit {
        read {
            /// Given by the gateway; never given again.
            id: AccountId [example("2")],
            /// The account of streams that are made by hand; it can be neither changed nor deleted.
            locked: bool,
            /// Always null: there are no groups of servers.
            server_group: Option<u32>,
            /// The default one first.
            profiles: Vec<M3UAccountProfile>,
            /// Streams of this account, stale ones included.
            stream_count: usize [example("1200")],
            /// Those of them that have vanished from the list and are kept for a while.
            stale_stream_count: usize [example("3")],
            /// What its list is at. `pending_confirmation`: the list is much smaller than the last good one, nothing
            /// was changed, and a refresh with `confirm` takes it.
            status: Named<Status> [example("success")],
            /// How the last refresh ended, for people.
            last_message: Option<String>,
            /// When it was made.
            created_at: Time,
            /// When it was last changed or refreshed.
            updated_at: Time,
        }
        edit {
            /// Unique over all accounts.
            name: String [required(), chars_max(255), example("Provider")],
            /// Where the list is, often with credentials. An account has this or `file_path` or neither; giving the
            /// one takes the other away. Who is no admin sees its host.
            server_url: Option<WebUrl> [blank()],
            /// The list as a file of the gateway's machine: its absolute path. Shown to admins only.
            file_path: Option<String> [blank(), example("")],
            /// What kind of account it is.
            account_type: AccountType [example("STD")],
            /// Streams of an inactive account are not played, and its list is not refreshed.
            is_active: bool,
            /// Connections at one time with the default profile; 0 is no limit.
            max_streams: u32 [example("1")],
            /// Sent with every request to the provider; null is what the gateway calls itself.
            user_agent: Option<String> [blank(), chars_max(512), example("VLC/3.0.20")],
            /// Other headers that are sent with every request, as names and values. What is given takes the place of
            /// all that was there. Values are shown to admins only.
            headers: Map<String, Value>,
            /// Hours between two refreshes; 0 is never.
            refresh_interval: u32 [at_most(8_760), example("24")],
            /// When the list is refreshed, in place of the interval: minute, hour, day of month, month, day of week.
            cron_expression: String [blank(), chars_max(256), example("30 4 * * *")],
            /// Days after which a stream that has vanished from the list is removed, unless a channel uses it; 0 is
            /// at the next refresh.
            stale_stream_days: u32 [at_most(36_500), example("7")],
            /// Among accounts, the larger first.
            priority: i32 [example("0")],
            /// Whatever clients want to keep here. Shown to admins only.
            custom_properties: Option<Map<String, Value>>,
            /// What makes a stream the same one at the next refresh: its address, or the id in an address as panels
            /// make them, which survives a change of password or host.
            stream_identity: Named<StreamIdentity> [example("url")],
            /// What is made of the values that the provider gives, in this order. Shown to admins only.
            rules: Vec<M3UAccountRule> [items_max(100)],
            /// Seconds for which the provider goes on counting a connection that was closed.
            release_delay: f64 [at_least(0), at_most(3_600), example("0")],
        }
    }
}

choice!(StreamIdentity { Url = "url", StreamId = "stream_id" });

record! {
    /// One change of what a provider says: every match of a regular expression becomes something else.
    M3UAccountRule / M3UAccountRuleEdit {
        edit {
            /// What of a stream is changed.
            field: Named<RuleField> [required(), example("name")],
            /// A regular expression.
            find: Exact [required(), chars_max(1_024), example("^UK: ")],
            /// What every match becomes; groups are written `$1` or `\1`.
            replace: Exact [required(), blank(), chars_max(1_024), example("")],
        }
    }
}

choice!(RuleField { Name = "name", Url = "url", TvgId = "tvg_id", Group = "group", Logo = "logo" });

record! {
    /// A profile of an account: credentials with a limit of their own.
    M3UAccountProfile / M3UAccountProfileEdit {
        read {
            /// Given by the gateway; never given again.
            id: ProfileId [example("2")],
            /// The one that is tried first. An account has one.
            is_default: bool,
            /// Connections that are out on it now.
            current_viewers: usize [example("0")],
            /// Whose it is.
            account: M3UAccountName,
        }
        edit {
            /// Unique in its account.
            name: String [required(), chars_max(255), example("Second login")],
            /// Connections at one time; 0 is no limit.
            max_streams: u32 [example("1")],
            /// An inactive one is not used.
            is_active: bool,
            /// What of a stream's address is replaced: a regular expression. Any but the default profile needs one.
            /// Shown to admins only.
            search_pattern: Exact [blank(), chars_max(1_024), example("/live/user1/password1/")],
            /// What it is replaced by. Shown to admins only.
            replace_pattern: Exact [blank(), chars_max(1_024), example("/live/user2/password2/")],
            /// Whatever clients want to keep here. Shown to admins only.
            custom_properties: Option<Map<String, Value>>,
            /// When these credentials end, for people to see.
            exp_date: Option<Time>,
        }
    }
}

view! {
    /// An account, as far as its profiles tell of it.
    M3UAccountName {
        /// Its id.
        id: AccountId [example("2")],
        /// Its name.
        name: String [example("Provider")],
        /// What kind of account it is.
        account_type: AccountType [example("STD")],
    }
}

/// What the list of an account is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Idle,
    Fetching,
    Parsing,
    Success,
    Error,
    Disabled,
    PendingConfirmation,
}

choice!(Status {
    Idle = "idle",
    Fetching = "fetching",
    Parsing = "parsing",
    Success = "success",
    Error = "error",
    Disabled = "disabled",
    PendingConfirmation = "pending_confirmation",
});

/// Stands in place of the value of a header.
const HIDDEN: &str = "***";

/// Shows accounts to one caller, with what is looked up once per request.
pub(super) struct Shown<'a> {
    app: &'a App,
    is_admin: bool,
    refreshes: Arc<Table<RefreshRecord>>,
    streams: Arc<StreamSnapshot>,
    viewers: HashMap<ProfileId, usize>,
}

impl<'a> Shown<'a> {
    pub(super) fn to(call: &'a Call) -> Result<Self, Refusal> {
        let mut viewers = HashMap::new();
        for lease in call.app.leases() {
            *viewers.entry(lease.profile).or_default() += 1;
        }
        Ok(Shown {
            is_admin: call.user()?.may(UserLevel::Admin),
            refreshes: call.app.models.refreshes.load(),
            streams: call.app.models.streams.load(),
            viewers,
            app: &call.app,
        })
    }

    pub(super) fn account(&self, account: &Account) -> M3UAccount {
        let refresh = self.refreshes.get(account.id.0);
        let state = State::of(account, &self.app.importer, refresh.map(|it| &**it));
        let (server_url, file_path) = match &account.list {
            PlaylistLocation::Url(url) => (self.address(url), None),
            PlaylistLocation::File(path) => (None, self.is_admin.then(|| path.clone())),
            PlaylistLocation::None => (None, None),
        };
        let mut profiles: Vec<_> = account.profiles.iter().map(|it| self.profile(account, it)).collect();
        profiles.sort_by_key(|it| !it.is_default);
        M3UAccount {
            id: account.id,
            locked: account.is_custom(),
            server_group: None,
            profiles,
            stream_count: self.app.models.store.collection::<Stream>().len_of(u64::from(account.id.0)),
            stale_stream_count: self.streams.account_counts(account.id).n_stale,
            status: Named(state.status),
            last_message: state.message,
            created_at: Time(account.created_at),
            updated_at: Time(account.updated_at.max(refresh.map_or(0, |it| it.tried_at))),
            name: account.name.clone(),
            server_url,
            file_path,
            account_type: AccountType::Standard,
            is_active: account.is_active,
            max_streams: account.default_profile().map_or(0, |it| it.max_streams),
            user_agent: account.headers.user_agent.clone(),
            headers: self.headers(&account.headers),
            refresh_interval: account.schedule.interval_hours,
            cron_expression: account.schedule.cron.clone(),
            stale_stream_days: account.stale_stream_days,
            priority: account.priority,
            custom_properties: Some(self.if_admin(|| account.custom_properties.clone())),
            stream_identity: Named(account.identity),
            rules: self.if_admin(|| account.rules.iter().map(M3UAccountRule::of).collect()),
            release_delay: account.release_delay.as_secs_f64(),
        }
    }

    pub(super) fn profile(&self, account: &Account, profile: &AccountProfile) -> M3UAccountProfile {
        M3UAccountProfile {
            id: profile.id,
            is_default: profile.is_default,
            current_viewers: self.viewers.get(&profile.id).copied().unwrap_or(0),
            account: M3UAccountName {
                id: account.id,
                name: account.name.clone(),
                account_type: AccountType::Standard,
            },
            name: profile.name.clone(),
            max_streams: profile.max_streams,
            is_active: profile.is_active,
            search_pattern: self.if_admin(|| Exact(profile.search_pattern.clone())),
            replace_pattern: self.if_admin(|| Exact(profile.replace_pattern.clone())),
            custom_properties: Some(self.if_admin(|| profile.custom_properties.clone())),
            exp_date: profile.expires_at.map(Time),
        }
    }

    /// Something for admins; others see that there is nothing.
    fn if_admin<T: Default>(&self, make: impl FnOnce() -> T) -> T {
        if self.is_admin { make() } else { T::default() }
    }

    /// The whole address, or its scheme and host; nothing where the host cannot be told.
    fn address(&self, url: &SourceUrl) -> Option<WebUrl> {
        if self.is_admin {
            return Some(WebUrl(url.expose().to_owned()));
        }
        // What a url prints of itself ends with the sign for "and more".
        let printed = url.to_string();
        let shown = printed.trim_end_matches('…');
        url::Url::parse(shown).is_ok_and(|it| it.has_host()).then(|| WebUrl(shown.to_owned()))
    }

    fn headers(&self, headers: &RequestHeaders) -> Map<String, Value> {
        let referrer = headers.referrer.as_ref().map(|it| ("Referer", it.as_str()));
        let extra = headers.extra.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let value = |value: &str| Value::from(if self.is_admin { value } else { HIDDEN });
        referrer.into_iter().chain(extra).map(|it| (it.0.to_owned(), value(it.1))).collect()
    }
}

/// What the list of an account is at, and how its last refresh ended.
pub(super) struct State {
    pub(super) status: Status,
    pub(super) message: Option<String>,
}

impl State {
    pub(super) fn of(account: &Account, importer: &Importer, refresh: Option<&RefreshRecord>) -> Self {
        let progress = importer.progress_of(account.id);
        let running = progress.as_ref().filter(|it| it.phase != RefreshPhase::Done);
        // What ended last is in memory, even where it could not be written down.
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
