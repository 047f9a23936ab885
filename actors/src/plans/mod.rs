//! The plans of live channels.
//!
//! [`Plans`] is a trait, so that tests can provide plans of their own.

mod played;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use domain::account::{Account, RefreshRecord};
use domain::catchup::{ArchiveTimes, ProviderZone, TIME_ZONE};
use domain::channel::Channel;
use domain::core_settings::{STREAM_SETTINGS, default_stream_profile, default_user_agent};
use domain::health::{self, SCORE_UNKNOWN};
use domain::ids::{AccountId, ProfileId, RecordingId, StreamId, StreamProfileId};
use domain::panel::LiveForm;
use domain::plan::{
    self, ArchiveRefusal, ArchivedProgramme, Candidate, Plan, PlanContext, PlanRecords, SlotPool,
    TitleCandidate, TitleVersion,
};
use domain::portal::PortalStreamAddress;
use domain::server_group::ServerGroupMembers;
use domain::source_url::SourceUrl;
use domain::stream::Stream;
use domain::stream_profile::{Delivery, StreamProfile};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use storage::Models;
use tracing::error;
use uuid::Uuid;

use self::played::PlayedAddresses;
pub use self::played::is_id as is_played_address;
use crate::addresses::AccountAddresses;
use crate::fetch::Fetch;
use crate::health::HealthTable;
use crate::portals::{PortalClient, PortalLink};

/// A target that a client can watch. The variants cannot collide: a channel and a stream with the same number are
/// different targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Target {
    /// A virtual channel, with failover over its streams.
    Channel(Uuid),
    /// One stream, played alone (a preview).
    Stream(StreamId),
    /// A film.
    Movie(Uuid),
    /// An episode of a series.
    Episode(Uuid),
    /// The past of a channel, from the archive of its provider.
    Archive(Uuid),
    /// A recording, from its file.
    Recording(RecordingId),
}

impl Target {
    /// Returns the uuid in the interface: that of the channel, or the one of the preview of a stream.
    pub fn uuid(&self) -> Uuid {
        match self {
            Target::Channel(uuid) | Target::Movie(uuid) | Target::Episode(uuid) | Target::Archive(uuid) => {
                *uuid
            }
            Target::Stream(id) => plan::preview_uuid(*id),
            Target::Recording(id) => id.uuid(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Channel(uuid) => write!(f, "channel {uuid}"),
            Target::Stream(id) => write!(f, "stream {id}"),
            Target::Movie(uuid) => write!(f, "film {uuid}"),
            Target::Episode(uuid) => write!(f, "episode {uuid}"),
            Target::Archive(uuid) => write!(f, "archive of channel {uuid}"),
            Target::Recording(id) => write!(f, "recording {id}"),
        }
    }
}

/// A source of plans. Plans are built at every channel change, so a call answers from memory or after reading a few
/// records.
pub trait Plans: Send + Sync + 'static {
    /// Returns the current plan of a target; `None` if the target does not exist or is disabled.
    fn plan(&self, target: &Target) -> Option<Arc<Plan>>;

    /// Returns whether the target exists, from memory and without building its plan.
    fn exists(&self, target: &Target) -> bool {
        self.plan(target).is_some()
    }

    /// Returns the candidates for these files of a film or an episode, best first.
    fn title(&self, _name: &str, _versions: &[TitleVersion]) -> Vec<TitleCandidate> {
        Vec::new()
    }

    /// Returns whether an archive of a channel uses the programme of a part. [`Self::archive`] leaves it out otherwise.
    fn archive_uses_programme(&self, _channel: &Channel) -> bool {
        false
    }

    /// Returns the candidates for a part of the past of a channel, best first. `programme` is the one at the start of the
    /// part, if the guide names it for archives.
    ///
    /// # Errors
    /// No archive has this part.
    fn archive(
        &self,
        _channel: &Channel,
        _times: ArchiveTimes,
        _programme: Option<&ArchivedProgramme>,
    ) -> Result<Vec<TitleCandidate>, ArchiveRefusal> {
        Err(ArchiveRefusal::NoArchive)
    }

    /// Returns whether an account and its profile are still active, for candidates that were made some time ago.
    fn is_active(&self, _pool: &SlotPool) -> bool {
        true
    }

    /// Returns the context of all plans, independent of the records.
    fn conditions(&self) -> PlanContext {
        PlanContext::default()
    }

    /// Returns the servers of accounts that the plans use.
    fn addresses(&self) -> AccountAddresses {
        AccountAddresses::default()
    }

    /// Returns what makes the address of a candidate of a portal, for one opening. `None` for a candidate that has one.
    fn link(&self, _candidate: &Candidate) -> Option<Arc<PortalLink>> {
        None
    }

    /// Returns the address of a candidate that was made some time ago at the server that its account uses now.
    fn addressed(&self, candidate: &Candidate) -> SourceUrl {
        candidate.url.clone()
    }

    /// Returns the health of streams that the plans consider.
    fn health(&self) -> HealthTable {
        HealthTable::default()
    }

    /// Takes note of an address that is played with an account and is not that of a stream. Returns an id under which it can
    /// be planned on this node for a while.
    fn add_address(&self, _account: AccountId, _url: SourceUrl) -> Option<StreamId> {
        None
    }

    /// Returns the channels whose viewers may be redirected to providers.
    fn redirects(&self) -> Redirects {
        Redirects::default()
    }
}

/// The channels whose viewers may be redirected to providers. Only their plans tell whether they are.
#[derive(Debug, Default)]
pub struct Redirects {
    /// All channels: the default or an account redirects.
    is_all: bool,
    /// The stream profiles that redirect and that a channel has.
    profiles: HashSet<StreamProfileId>,
    /// The streams that have one of their own.
    streams: HashSet<StreamId>,
}

impl Redirects {
    /// Returns whether no viewer is redirected.
    pub fn is_empty(&self) -> bool {
        !self.is_all && self.profiles.is_empty() && self.streams.is_empty()
    }

    /// Returns whether viewers of a channel may be redirected.
    pub fn may_redirect(&self, channel: &Channel) -> bool {
        self.is_all
            || channel.stream_profile.is_some_and(|it| self.profiles.contains(&it))
            || !self.streams.is_empty() && channel.streams.iter().any(|it| self.streams.contains(it))
    }
}

/// Number of streams per generation of the cache; two generations are kept. More than all watched channels need.
const GENERATION_SIZE_MAX: usize = 4_096;

/// Plans from the records of the store.
///
/// All records except streams are in memory. A stream is read once and cached until it changes or is evicted; the read
/// takes some microseconds, or as long as one slice of a concurrent write.
pub struct StorePlans {
    models: Models,
    /// The delivery if the core settings name no stream profile.
    default: Delivery,
    conditions: PlanContext,
    health: HealthTable,
    addresses: AccountAddresses,
    /// Asks portals; `None` where nothing is played.
    fetch: Option<Fetch>,
    streams: Mutex<StreamCache>,
    /// Addresses that are played and are not those of streams.
    played: Mutex<PlayedAddresses>,
}

impl StorePlans {
    /// Creates plans from a store. `default` applies to streams and channels without a stream profile, if the core
    /// settings name none either. The context is empty until [`StorePlans::under`] sets it.
    pub fn new(models: Models, default: Delivery) -> Self {
        Self {
            addresses: AccountAddresses::new(models.clone()),
            models,
            default,
            conditions: PlanContext::default(),
            health: HealthTable::default(),
            fetch: None,
            streams: Mutex::default(),
            played: Mutex::default(),
        }
    }

    /// Sets the client that asks portals for links. It shares the sessions of devices with the refreshes that use it.
    pub fn asking(self, fetch: Fetch) -> Self {
        Self { fetch: Some(fetch), ..self }
    }

    /// Sets the context of the plans.
    pub fn under(self, conditions: PlanContext) -> Self {
        Self { conditions, ..self }
    }
}

impl PlanRecords for StorePlans {
    fn stream(&self, id: StreamId) -> Option<Arc<Stream>> {
        if played::is_id(id) {
            return self.played.lock().get(id);
        }
        let streams = self.models.store.collection::<Stream>();
        // Read before the record: if the record is newer, it is only read once more than needed.
        let stamp = streams.stamp(id.0)?;
        if let Some(stream) = self.streams.lock().get(id, stamp) {
            return Some(stream);
        }
        match streams.get(id.0) {
            Ok(stream) => {
                let stream = Arc::new(stream?);
                self.streams.lock().put(id, stamp, stream.clone());
                Some(stream)
            }
            Err(cause) => {
                error!(stream.id = %id, "failed to read a stream, it is left out of the plan: {cause}");
                None
            }
        }
    }

    fn account(&self, id: AccountId) -> Option<Arc<Account>> {
        self.models.accounts.load().get(id.0).cloned()
    }

    fn refresh(&self, account: AccountId) -> Option<Arc<RefreshRecord>> {
        self.models.refreshes.load().get(account.0).cloned()
    }

    fn active_address(&self, account: &Account) -> Option<SourceUrl> {
        self.addresses.active(account)
    }

    fn live_form(&self, account: &Account) -> LiveForm {
        self.addresses.live_form(account)
    }

    fn server_group(&self, account: &Account) -> Option<ServerGroupMembers> {
        self.models.server_group_of(account)
    }

    fn stream_profile(&self, id: StreamProfileId) -> Option<Arc<StreamProfile>> {
        self.models.stream_profiles.load().get(id.0).filter(|it| it.is_active).cloned()
    }

    fn default_profile(&self) -> Arc<StreamProfile> {
        let settings = self.models.settings.load();
        let value = settings.one_by("key", STREAM_SETTINGS).map(|it| &it.value);
        let profile = default_stream_profile(value).and_then(|it| self.stream_profile(it));
        profile.unwrap_or_else(|| {
            let built_in = StreamProfile::from_delivery(self.default);
            // The stored one has settings of an admin.
            let stored = self.stream_profile(built_in.id).filter(|it| it.delivery == built_in.delivery);
            stored.unwrap_or_else(|| Arc::new(built_in))
        })
    }

    fn conditions(&self) -> &PlanContext {
        &self.conditions
    }

    fn health_rank(&self, stream: StreamId) -> u8 {
        health::rank(self.health.score(stream).unwrap_or(SCORE_UNKNOWN))
    }

    fn file_rank(&self, file: Uuid, profile: ProfileId) -> u8 {
        self.health.file_rank(file, profile)
    }

    fn zone(&self, account: &Account, profile: ProfileId) -> ProviderZone {
        let infos = self.models.profile_infos.load();
        let of_panel = infos.get(profile.0).and_then(|it| ProviderZone::from_panel(&it.server_info));
        let of_setting = || ProviderZone::named(account.custom_properties.get(TIME_ZONE)?.as_str()?);
        of_panel.or_else(of_setting).unwrap_or_else(ProviderZone::utc)
    }

    fn default_user_agent(&self) -> Option<String> {
        let settings = self.models.settings.load();
        let value = settings.one_by("key", STREAM_SETTINGS).map(|it| &it.value);
        let agents = self.models.user_agents.load();
        let chosen = default_user_agent(value).and_then(|it| agents.get(it)).filter(|it| it.is_active);
        chosen.map(|it| it.user_agent.clone()).or_else(|| self.conditions.user_agent.clone())
    }
}

impl Plans for StorePlans {
    fn plan(&self, target: &Target) -> Option<Arc<Plan>> {
        let plan = match target {
            Target::Channel(uuid) => {
                let channels = self.models.channels.load();
                plan::plan_channel(channels.one_by("uuid", uuid.as_bytes()).filter(|it| it.enabled)?, self)
            }
            Target::Stream(id) => plan::plan_preview(&*self.stream(*id)?, self),
            // Films, archives and recordings are not live channels.
            Target::Movie(_) | Target::Episode(_) | Target::Archive(_) | Target::Recording(_) => return None,
        };
        Some(Arc::new(plan))
    }

    fn exists(&self, target: &Target) -> bool {
        match target {
            Target::Channel(uuid) => {
                self.models.channels.load().one_by("uuid", uuid.as_bytes()).is_some_and(|it| it.enabled)
            }
            Target::Stream(id) => self.models.store.collection::<Stream>().stamp(id.0).is_some(),
            Target::Movie(_) | Target::Episode(_) | Target::Archive(_) | Target::Recording(_) => false,
        }
    }

    fn title(&self, name: &str, versions: &[TitleVersion]) -> Vec<TitleCandidate> {
        plan::plan_title(name, versions, self)
    }

    fn archive_uses_programme(&self, channel: &Channel) -> bool {
        let mut streams = channel.streams.iter().filter_map(|it| self.stream(*it));
        streams.any(|it| it.provider.archive.as_ref().is_some_and(|it| it.uses_programme()))
    }

    fn archive(
        &self,
        channel: &Channel,
        times: ArchiveTimes,
        programme: Option<&ArchivedProgramme>,
    ) -> Result<Vec<TitleCandidate>, ArchiveRefusal> {
        plan::plan_archive(channel, times, programme, self)
    }

    fn is_active(&self, pool: &SlotPool) -> bool {
        let account = self.account(pool.account).filter(|it| it.is_active);
        account.is_some_and(|it| it.active_profiles().any(|it| it.id == pool.profile))
    }

    fn conditions(&self) -> PlanContext {
        self.conditions.clone()
    }

    fn addresses(&self) -> AccountAddresses {
        self.addresses.clone()
    }

    fn link(&self, candidate: &Candidate) -> Option<Arc<PortalLink>> {
        let address = PortalStreamAddress::parse(&candidate.url)?;
        let account = self.account(candidate.pool.account)?;
        let profile = account.profiles.iter().find(|it| it.id == candidate.pool.profile)?;
        let place = self.addresses.portal_place(&account)?;
        let client = PortalClient::new(self.fetch.as_ref()?, &account, profile, place)?;
        Some(Arc::new(PortalLink::new(client, address)))
    }

    fn addressed(&self, candidate: &Candidate) -> SourceUrl {
        match self.account(candidate.pool.account) {
            Some(account) => self.addresses.place(&account, &candidate.url),
            None => candidate.url.clone(),
        }
    }

    fn health(&self) -> HealthTable {
        self.health.clone()
    }

    fn add_address(&self, account: AccountId, url: SourceUrl) -> Option<StreamId> {
        Some(self.played.lock().add(account, url))
    }

    fn redirects(&self) -> Redirects {
        let profiles = self.models.stream_profiles.load();
        let redirecting = profiles.iter().filter(|it| it.is_active && it.delivery == Delivery::Redirect);
        let redirecting: HashSet<StreamProfileId> = redirecting.map(|it| it.id).collect();
        let is_one = |it: StreamProfileId| redirecting.contains(&it);
        let is_all = self.default_profile().delivery == Delivery::Redirect
            || self.models.accounts.load().iter().any(|it| it.stream_profile.is_some_and(is_one));
        let channels = self.models.channels.load();
        Redirects {
            is_all,
            profiles: channels.iter().filter_map(|it| it.stream_profile.filter(|it| is_one(*it))).collect(),
            streams: self
                .models
                .streams
                .load()
                .stream_profiles()
                .filter(|it| is_one(it.1))
                .map(|it| it.0)
                .collect(),
        }
    }
}

/// A cache of streams, each with its version stamp. When the young generation is full it becomes the old one, and
/// streams of the previous old generation that were not used since are evicted.
#[derive(Default)]
struct StreamCache {
    young: HashMap<StreamId, (u64, Arc<Stream>)>,
    old: HashMap<StreamId, (u64, Arc<Stream>)>,
}

impl StreamCache {
    fn get(&mut self, id: StreamId, stamp: u64) -> Option<Arc<Stream>> {
        if let Some((_, stream)) = self.young.get(&id).filter(|it| it.0 == stamp) {
            return Some(stream.clone());
        }
        let (_, stream) = self.old.remove(&id).filter(|it| it.0 == stamp)?;
        self.put(id, stamp, stream.clone());
        Some(stream)
    }

    fn put(&mut self, id: StreamId, stamp: u64, stream: Arc<Stream>) {
        if self.young.len() >= GENERATION_SIZE_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, (stamp, stream));
    }
}

#[cfg(test)]
mod tests;
