//! The plan of a live channel: its candidates, in the order in which they are tried.
//!
//! A candidate is a stream together with an account profile that could play it.

mod archive;
mod portal;
mod readers;
mod title;

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

pub use self::archive::{ArchiveRefusal, ArchivedProgramme, plan_archive};
use self::readers::StreamReaders;
pub use self::title::{TitleCandidate, TitleFileKind, TitleVersion, plan_title, title_problem};
use crate::account::{Account, AccountProfile, RefreshRecord};
use crate::account_addresses::{addresses_of, at_address};
use crate::catchup::ProviderZone;
use crate::certificate::CertificateCheck;
use crate::channel::{Channel, ChannelNumber};
use crate::command::Argv;
use crate::egress::{Reach, account_headers, reach_of};
use crate::entry_details::EntryDetails;
use crate::health::{SCORE_UNKNOWN, rank};
use crate::ids::{AccountId, ChannelId, ProfileId, ServerGroupId, StreamId, StreamProfileId};
use crate::limits::{LimitScope, counts_together};
use crate::panel::LiveForm;
use crate::pattern::Pattern;
use crate::playout::PlayoutCandidate;
use crate::proxy::ProxyAddress;
use crate::server_group::ServerGroupMembers;
use crate::source_url::SourceUrl;
use crate::stream::{RequestHeaders, SourceKind, Stream, Unplayable};
use crate::stream_profile::{Delivery, StreamProfile};

/// Everything a live channel needs from the records. Created when the channel starts and when the records change.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub uuid: Uuid,
    pub name: String,
    pub number: Option<ChannelNumber>,
    /// In the order in which they are tried. Empty if the channel cannot be played.
    pub candidates: Vec<Candidate>,
    /// Streams that cannot be played, each once, with the reason.
    pub unplayable: Vec<(StreamId, Unplayable)>,
    /// The first address that the gateway cannot play and a player might, such as one that is protected. It is never opened.
    pub for_players: Option<Box<Candidate>>,
    /// Number of streams of accounts that only other nodes may use.
    pub n_elsewhere: usize,
}

/// One way to play a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub stream: StreamId,
    pub stream_name: String,
    /// The stream's address as the account profile rewrites it, without the number of a programme.
    pub url: SourceUrl,
    /// The form of this address, if its panel may serve another one: `None` for addresses and forms that an admin chose, and
    /// for what the gateway does not read itself.
    pub live_form: Option<LiveForm>,
    /// The number of the programme to play; `None` leaves the choice to the tables of the stream.
    pub program: Option<u16>,
    /// The stream is left when its picture stands still.
    pub leaves_still_picture: bool,
    pub kind: SourceKind,
    /// The stream's headers, completed by those of its account.
    pub headers: RequestHeaders,
    /// The addresses that may be connected to.
    pub reach: Reach,
    /// The proxy of the account.
    pub proxy: Option<ProxyAddress>,
    /// The certificates of its server that are accepted; `None` if the account has no settings for them.
    pub certificates: Option<Arc<CertificateCheck>>,
    /// Options for players, for playlists with the addresses of providers.
    pub details: Option<Arc<EntryDetails>>,
    /// The delivery in force for this stream on this channel.
    pub profile: Delivery,
    /// Whether viewers without a login are redirected, too.
    pub redirect_without_login: bool,
    /// The program that reads the stream instead of the gateway, if any.
    pub command: Option<Argv>,
    pub pool: SlotPool,
}

/// The address of a provider to which a viewer is redirected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    pub url: SourceUrl,
    /// Whether the stream profile gives it to viewers without a login as well.
    pub without_login: bool,
}

/// Properties of the gateway that all plans depend on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanContext {
    /// The machine has ffmpeg.
    pub has_ffmpeg: bool,
    /// The machine has Streamlink.
    pub has_streamlink: bool,
    /// User agent for streams without one in stream, account and stream profile. `None` is the gateway's own name, or
    /// that of the program.
    pub user_agent: Option<String>,
    /// The addresses on which the gateway listens. No provider may lead to them.
    pub own_listeners: Arc<[SocketAddr]>,
    /// The name of this node of a cluster. `None`: no cluster, so accounts are for this gateway whatever nodes they name.
    pub node: Option<Arc<str>>,
}

impl PlanContext {
    /// Returns whether this node may open connections of an account.
    pub fn may_use(&self, account: &Account) -> bool {
        let is_it =
            |node: &Arc<str>| account.nodes.is_empty() || account.nodes.iter().any(|it| **it == **node);
        self.node.as_ref().is_none_or(is_it)
    }
}

impl Candidate {
    /// Returns where viewers are redirected to, if they are.
    pub fn redirection(&self) -> Option<Redirection> {
        (self.profile == Delivery::Redirect)
            .then(|| Redirection { url: self.url.clone(), without_login: self.redirect_without_login })
    }

    /// Returns the candidate as the playout sees it.
    pub fn playout_candidate(&self) -> PlayoutCandidate {
        PlayoutCandidate {
            stream: self.stream,
            profile: self.pool.profile,
            redirect: self.profile == Delivery::Redirect,
            leaves_still_picture: self.leaves_still_picture,
        }
    }
}

impl Plan {
    /// Returns whether to wait when this pool's provider refuses right after a slot was freed.
    ///
    /// A provider that counts connections may still count the closed one. If a candidate of another account profile
    /// that shares no limit with it exists, it is tried instead.
    pub fn waits_for_release(&self, pool: &SlotPool) -> bool {
        self.candidates.iter().all(|it| it.pool.shares_limit_with(pool))
    }
}

/// The slots of one account profile, which its candidates share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotPool {
    pub account: AccountId,
    pub account_name: String,
    pub profile: ProfileId,
    /// Maximum number of simultaneous connections; 0 is unlimited.
    pub max_streams: u32,
    pub release_delay: Duration,
    /// Time for which a slot of a lost machine cools; `None`: the default.
    pub crash_cooling: Option<Duration>,
    /// Time of the last change of the account or its profiles by an admin, in milliseconds since 1970. What was
    /// observed before it may be outdated.
    pub changed_at: i64,
    /// The connections that the provider counts together with those of this candidate.
    pub scope: LimitScope,
    /// The pool of the account's server group. A lease takes a slot of both pools.
    pub shared: Option<SharedPool>,
}

/// The slots that the accounts of a server group share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPool {
    pub group: ServerGroupId,
    pub name: String,
    /// Maximum number of simultaneous connections of all its accounts, for requests with this account profile; 0 is
    /// unlimited.
    pub max_streams: u32,
    /// Its accounts, in order.
    pub accounts: Arc<[AccountId]>,
}

impl SharedPool {
    fn new(members: ServerGroupMembers, profile: &AccountProfile) -> Self {
        let ServerGroupMembers { group, accounts } = members;
        let max_streams = if group.max_streams == 0 { profile.limit() } else { group.max_streams };
        Self { group: group.id, name: group.name.clone(), max_streams, accounts }
    }
}

impl SlotPool {
    /// Returns whether a connection of one counts for a limit of the other.
    pub fn shares_limit_with(&self, other: &Self) -> bool {
        let group = |it: &Self| it.shared.as_ref().map(|it| it.group);
        self.counts(other.profile, other.scope) || (group(self).is_some() && group(self) == group(other))
    }

    /// Returns whether its limit counts a connection of this account profile and scope. Configured limits are those of the
    /// whole profile, and discovered ones those of a login or host.
    pub fn counts(&self, profile: ProfileId, scope: LimitScope) -> bool {
        let own = if self.max_streams == 0 { self.scope } else { LimitScope::Unknown };
        counts_together((self.profile, own), (profile, scope))
    }

    fn new(
        account: &Account,
        profile: &AccountProfile,
        members: Option<ServerGroupMembers>,
        scope: LimitScope,
    ) -> Self {
        Self {
            account: account.id,
            account_name: account.name.clone(),
            profile: profile.id,
            max_streams: profile.limit(),
            release_delay: account.release_delay,
            crash_cooling: account.crash_cooling,
            changed_at: account.updated_at,
            scope,
            shared: members.map(|it| SharedPool::new(it, profile)),
        }
    }
}

/// The records that a plan is built from.
pub trait PlanRecords {
    fn stream(&self, id: StreamId) -> Option<Arc<Stream>>;
    fn account(&self, id: AccountId) -> Option<Arc<Account>>;
    /// Returns the server group of an account, with all its accounts.
    fn server_group(&self, account: &Account) -> Option<ServerGroupMembers>;
    /// Returns the last refresh of an account.
    fn refresh(&self, account: AccountId) -> Option<Arc<RefreshRecord>>;
    /// Returns the address of an account that is in use instead of its first one.
    fn active_address(&self, _: &Account) -> Option<SourceUrl> {
        None
    }

    /// Returns the form of the addresses of live streams of a panel account.
    fn live_form(&self, _: &Account) -> LiveForm {
        LiveForm::default()
    }

    /// Returns `None` for an inactive profile as well.
    fn stream_profile(&self, id: StreamProfileId) -> Option<Arc<StreamProfile>>;
    /// Returns the profile for streams and channels without one.
    fn default_profile(&self) -> Arc<StreamProfile>;
    fn conditions(&self) -> &PlanContext;
    /// Returns the rank of a stream by its health; the healthiest has the lowest.
    fn health_rank(&self, _: StreamId) -> u8 {
        rank(SCORE_UNKNOWN)
    }

    /// Returns the rank of a file of a film, read with an account profile, by its health; the healthiest has the lowest.
    fn file_rank(&self, _: Uuid, _: ProfileId) -> u8 {
        rank(SCORE_UNKNOWN)
    }

    /// Returns the zone in which the provider of an account reads the start of a programme.
    fn zone(&self, _: &Account, _: ProfileId) -> ProviderZone {
        ProviderZone::utc()
    }

    /// Returns the user agent for streams without one in stream, account and stream profile.
    fn default_user_agent(&self) -> Option<String> {
        self.conditions().user_agent.clone()
    }
}

/// Builds the plan of a channel.
///
/// Streams are in the order of the channel, or by their health if the channel says so; each has one candidate per active profile of its account, the default
/// profile first, with the address that the profile rewrites. The delivery is that of the stream's own stream profile,
/// else of its channel's, else of its account's, else the default. Pages of video sites are read by a program. Streams that the gateway cannot read itself are read by ffmpeg, if it is
/// installed. Deleted streams and those of inactive accounts are omitted silently.
pub fn plan_channel(channel: &Channel, records: &impl PlanRecords) -> Plan {
    let mut plan = Plan {
        uuid: channel.uuid,
        name: channel.name.clone(),
        number: channel.number,
        candidates: Vec::new(),
        unplayable: Vec::new(),
        for_players: None,
        n_elsewhere: 0,
    };
    let profile_of = |id: Option<StreamProfileId>| id.and_then(|it| records.stream_profile(it));
    let channel_profile = profile_of(channel.stream_profile);
    let mut rewrites = Rewrites::default();
    let mut readers = StreamReaders::new(records.conditions(), channel.uuid);
    let mut streams: Vec<_> = channel.streams.iter().filter_map(|id| records.stream(*id)).collect();
    if channel.healthiest_first {
        streams.sort_by_cached_key(|it| records.health_rank(it.id));
    }
    for stream in streams {
        let Some(account) = records.account(stream.account).filter(|it| it.is_active) else { continue };
        if !records.conditions().may_use(&account) {
            plan.n_elsewhere += 1;
            continue;
        }
        let profile = profile_of(stream.stream_profile)
            .unwrap_or_else(|| inherited_profile(&stream, &account, channel_profile.as_ref(), records));
        let drm = stream.drm();
        let details = stream.provider.details.as_ref().map(|it| Arc::new((**it).clone()));
        let refresh = records.refresh(account.id);
        let members = records.server_group(&account);
        let server = ActiveServer::from_account(&account, records);
        let live_form = is_of_panel(&stream, &account).then(|| records.live_form(&account));
        let portal = portal::address_of(&stream, &account);
        let (address, named_program) = portal.unwrap_or(stream.url()).split_program();
        let n_before = plan.candidates.len();
        let mut reason = None;
        for account_profile in account.active_profiles() {
            if portal.is_some() && account_profile.device.is_none() {
                reason = reason.or(Some(Unplayable::NO_DEVICE));
                continue;
            }
            let (url, of_account) = match portal {
                Some(_) => (address.clone(), portal::link_headers(&account)),
                None => {
                    let url = rewrites.apply(account_profile, &address);
                    let headers = account_headers(&account, &url);
                    (url, headers)
                }
            };
            let mut headers = stream.headers().over(&of_account);
            if let Some(agent) = &profile.user_agent {
                headers.user_agent = Some(agent.clone());
            } else if headers.user_agent.is_none() {
                headers.user_agent = records.default_user_agent();
            }
            let replacement = &account_profile.replace_pattern;
            let reach = reach_of(&stream, &url, replacement, &account, refresh.as_deref());
            let url = server.place(url);
            let (url, form) = match live_form.and_then(|it| Some((it.applied_to(&url)?, it))) {
                Some((url, form)) => (url, Some(form)),
                None => (url, None),
            };
            let (read, scope, kind) = match portal {
                // The address is made when it is opened, so neither a player nor a program can get it.
                Some(_) => (Ok((Delivery::Proxy, None)), LimitScope::Unknown, SourceKind::HttpTs),
                None => (
                    readers.delivery(&url, &account, &profile, (&headers, drm.as_ref())),
                    LimitScope::new(&url, &headers),
                    SourceKind::from_url(&url),
                ),
            };
            let why = read.as_ref().err().copied();
            let (delivery, command) = read.unwrap_or((Delivery::Redirect, None));
            let candidate = Candidate {
                pool: SlotPool::new(&account, account_profile, members.clone(), scope),
                stream: stream.id,
                stream_name: stream.name().to_owned(),
                kind,
                url,
                live_form: form.filter(|_| {
                    account.live_form.is_none() && delivery == Delivery::Proxy && command.is_none()
                }),
                program: stream.program.or(named_program),
                leaves_still_picture: stream.leaves_still_picture,
                headers,
                reach,
                proxy: account.proxy.clone(),
                certificates: account.certificates.shared(),
                details: details.clone(),
                profile: delivery,
                redirect_without_login: profile.redirect_without_login,
                command,
            };
            match why {
                None => plan.candidates.push(candidate),
                Some(why) => {
                    reason = reason.or(Some(why));
                    if candidate.url.is_network() && plan.for_players.is_none() {
                        plan.for_players = Some(Box::new(candidate));
                    }
                }
            }
        }
        if let Some(reason) = reason.filter(|_| plan.candidates.len() == n_before) {
            plan.unplayable.push((stream.id, reason));
        }
    }
    plan
}

/// Returns the profile of a stream without one of its own: that of its channel, else of its account, else the default. Neither
/// the gateway nor a player can read a page, so pages of video sites have a program.
fn inherited_profile(
    stream: &Stream,
    account: &Account,
    of_channel: Option<&Arc<StreamProfile>>,
    records: &impl PlanRecords,
) -> Arc<StreamProfile> {
    let of_account = || records.stream_profile(account.stream_profile?);
    let profile = of_channel.cloned().or_else(of_account).unwrap_or_else(|| records.default_profile());
    match stream.profile_of_page() {
        Some(id) if profile.delivery != Delivery::Command => {
            records.stream_profile(id).unwrap_or_else(|| Arc::new(StreamProfile::for_pages()))
        }
        _ => profile,
    }
}

/// Returns whether the address of a stream is the one of its panel, in the form in which it was imported.
fn is_of_panel(stream: &Stream, account: &Account) -> bool {
    let form = LiveForm::from_url(&stream.provider.url);
    account.list.panel().is_some() && stream.manual.url.is_none() && LiveForm::from_url(stream.url()) == form
}

/// The server of an account that is in use, if it is not the first one.
struct ActiveServer(Option<(Vec<SourceUrl>, SourceUrl)>);

impl ActiveServer {
    fn from_account(account: &Account, records: &impl PlanRecords) -> Self {
        Self(records.active_address(account).map(|it| (addresses_of(account), it)))
    }

    /// Returns an address of the provider as it is at this server. Headers and reach are those of the address that the
    /// provider named: an admin entered all servers.
    fn place(&self, url: SourceUrl) -> SourceUrl {
        match &self.0 {
            Some((all, active)) => at_address(&url, all, active),
            None => url,
        }
    }
}

/// The patterns of account profiles, each compiled once per plan.
#[derive(Default)]
struct Rewrites(HashMap<ProfileId, Option<Pattern>>);

impl Rewrites {
    /// Returns the address as this profile plays it. A pattern that does not compile changes nothing: writing rejects
    /// it, so it can only be an old record, and the account's own login still plays.
    fn apply(&mut self, profile: &AccountProfile, url: &SourceUrl) -> SourceUrl {
        let compile = || Pattern::new(&profile.search_pattern, &profile.replace_pattern).ok();
        let pattern = self.0.entry(profile.id).or_insert_with(compile);
        match pattern.as_ref().map(|it| it.apply(url.expose())) {
            Some(Cow::Owned(text)) => SourceUrl::new(text),
            _ => url.clone(),
        }
    }
}

/// Builds the plan of a single stream, for a preview.
///
/// It has its own uuid, derived from the stream's id, so that it is never mistaken for a channel.
pub fn plan_preview(stream: &Stream, records: &impl PlanRecords) -> Plan {
    let mut channel = Channel::new(ChannelId(0), preview_uuid(stream.id), stream.name(), 0);
    channel.streams = vec![stream.id];
    plan_channel(&channel, records)
}

/// Builds the plan of one stream with this profile instead of its own, even if the profile is inactive. Used for a
/// trial of the profile.
pub fn plan_trial(
    stream: &Stream,
    account: &Account,
    refresh: Option<Arc<RefreshRecord>>,
    members: Option<ServerGroupMembers>,
    addresses: TrialAddresses,
    profile: &StreamProfile,
    conditions: PlanContext,
) -> Plan {
    let stream = Stream { stream_profile: Some(profile.id), ..stream.clone() };
    let stream = Arc::new(stream);
    let records = TrialRecords { stream, account, refresh, members, addresses, profile, conditions };
    plan_preview(&records.stream, &records)
}

/// How the addresses of an account are used in a trial.
#[derive(Debug, Clone, Default)]
pub struct TrialAddresses {
    /// The address of the account that is in use instead of its first one.
    pub active: Option<SourceUrl>,
    /// The form of the addresses of its live streams.
    pub live_form: LiveForm,
}

/// The records of a trial.
struct TrialRecords<'a> {
    stream: Arc<Stream>,
    account: &'a Account,
    refresh: Option<Arc<RefreshRecord>>,
    members: Option<ServerGroupMembers>,
    addresses: TrialAddresses,
    profile: &'a StreamProfile,
    conditions: PlanContext,
}

impl PlanRecords for TrialRecords<'_> {
    fn stream(&self, _: StreamId) -> Option<Arc<Stream>> {
        Some(self.stream.clone())
    }

    fn account(&self, _: AccountId) -> Option<Arc<Account>> {
        Some(Arc::new(self.account.clone()))
    }

    fn server_group(&self, _: &Account) -> Option<ServerGroupMembers> {
        self.members.clone()
    }

    fn refresh(&self, _: AccountId) -> Option<Arc<RefreshRecord>> {
        self.refresh.clone()
    }

    fn active_address(&self, _: &Account) -> Option<SourceUrl> {
        self.addresses.active.clone()
    }

    fn live_form(&self, _: &Account) -> LiveForm {
        self.addresses.live_form
    }

    fn stream_profile(&self, _: StreamProfileId) -> Option<Arc<StreamProfile>> {
        Some(self.default_profile())
    }

    fn default_profile(&self) -> Arc<StreamProfile> {
        Arc::new(self.profile.clone())
    }

    fn conditions(&self) -> &PlanContext {
        &self.conditions
    }
}

/// Returns why the gateway cannot play a stream, as far as its address and its playlist show it, and if no profile changes
/// that.
pub fn playback_problem(stream: &Stream, context: &PlanContext) -> Option<Unplayable> {
    if stream.profile_of_page().is_some() {
        return (!context.has_streamlink).then_some(Unplayable::PAGE);
    }
    let (address, _) = stream.url().split_program();
    readers::problem_of(&address, stream.drm().as_ref(), context.has_ffmpeg)
}

/// Returns the uuid of the preview of this stream.
pub fn preview_uuid(stream: StreamId) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("stream:{stream}").as_bytes())
}

#[cfg(test)]
mod tests;
