//! `/api/m3u/slots/`: the provider slots as they are.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actors::{LeaseInfo, LeasePurpose, SlotElsewhere, SlotsSnapshot, Target, WaitingRequest, now_ms};
use domain::account::{Account, AccountProfile};
use domain::channel::Channel;
use domain::cluster::record::{self, NodeId, SlotPurpose};
use domain::ids::{AccountId, ChannelId, ProfileId, ServerGroupId, StreamId};
use domain::server_group::ServerGroup;
use domain::stream::Stream;
use resource_derive::View;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use services::slots;
use storage::Table;
use uuid::Uuid;

use crate::choice::{Named, choice};
use crate::context::RestCall;

/// All provider slots and the requests that wait for one, at one moment.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SlotsView {
    /// The moment.
    at: Time,
    /// The slots of each account profile.
    profiles: Vec<ProfileSlotsView>,
    /// The slots of each server group. A slot of an account in a group is in both lists.
    server_groups: Vec<ServerGroupSlotsView>,
}

/// The slots of an account profile.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ProfileSlotsView {
    /// Id of the account.
    #[field(example = "2")]
    account: AccountId,
    /// Name of the account.
    #[field(example = "Provider")]
    account_name: String,
    /// Id of the account profile.
    #[field(example = "2")]
    profile: ProfileId,
    /// Name of the account profile; `null` if it was deleted while a stream plays.
    #[field(example = "Default")]
    profile_name: Option<String>,
    /// Whether account and profile are active.
    is_active: bool,
    /// Id of the server group of the account.
    #[field(example = "1")]
    server_group: Option<ServerGroupId>,
    /// Configured limit; 0 means none.
    #[field(example = "2")]
    max_streams: u32,
    /// Limit that the gateway discovered, if none is configured.
    discovered_max_streams: Option<u32>,
    /// Number of tuners that the device of the account states, if no limit is configured.
    stated_max_streams: Option<u32>,
    /// Number of connections in use on all nodes, without cooling slots.
    #[field(example = "1")]
    current_viewers: usize,
    /// Number of free slots of the profile, regardless of its server group; `null` without a limit.
    #[field(example = "1")]
    free: Option<usize>,
    /// Number of free slots that new viewers do not get, because recordings need them soon.
    #[field(example = "0")]
    reserved: u32,
    /// The slots that are not free, in the order in which they were granted; then those of other nodes.
    slots: Vec<SlotView>,
    /// The requests that wait and would accept a slot of the profile, in the order in which they are served.
    waiting: Vec<WaitingSlotView>,
}

/// The slots of a server group.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ServerGroupSlotsView {
    /// Id of the server group.
    #[field(example = "1")]
    id: ServerGroupId,
    /// Name of the server group.
    #[field(example = "Provider")]
    name: String,
    /// Limit of the group; 0 means that the limit of each account profile applies to the whole group.
    #[field(example = "2")]
    max_streams: u32,
    /// Ids of its accounts.
    #[field(example = "[2, 3]")]
    accounts: Vec<AccountId>,
    /// Number of connections in use on all nodes, without cooling slots.
    #[field(example = "1")]
    current_viewers: usize,
    /// Number of free slots of the group; `null` without a limit of its own.
    #[field(example = "1")]
    free: Option<usize>,
    /// The slots that are not free, in the order in which they were granted; then those of other nodes.
    slots: Vec<SlotView>,
    /// The requests that wait for a slot of one of the accounts, in the order in which they are served.
    waiting: Vec<WaitingSlotView>,
}

choice!(
    /// State of a slot that is not free.
    enum SlotState {
        InUse = "in_use",
        Closing = "closing",
        Cooling = "cooling",
    }
);

choice!(LeasePurpose {
    Live = "live",
    Preview = "preview",
    Trial = "trial",
    Vod = "vod",
    Recording = "recording",
    Catchup = "catchup",
});

/// A slot that is not free.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SlotView {
    /// `closing`: the connection is being closed. `cooling`: it is closed, and the provider may still count it.
    #[field(example = "in_use")]
    state: Named<SlotState>,
    /// Name of the node that has the slot, if it is another one than the answering one. Then it is not known here what the
    /// slot plays.
    node: Option<String>,
    /// Id of the account profile.
    #[field(example = "2")]
    profile: ProfileId,
    /// Purpose of the connection; `null` for a cooling slot.
    #[field(example = "live")]
    purpose: Option<Named<LeasePurpose>>,
    /// Id of the channel; `null` for films, previews, trials and cooling slots.
    #[field(example = "7")]
    channel: Option<ChannelId>,
    /// Part of the URL of the channel, preview, film or episode.
    uuid: Option<Uuid>,
    /// Name of the channel, film or episode.
    #[field(example = "News")]
    channel_name: Option<String>,
    /// Id of the stream.
    #[field(example = "12")]
    stream: Option<StreamId>,
    /// Name of the stream.
    #[field(example = "News HD")]
    stream_name: Option<String>,
    /// Host of the address of the stream; redirects of the provider are not followed here.
    #[field(example = "line.example")]
    host: Option<String>,
    /// When the slot was granted; `null` for a cooling slot.
    since: Option<Time>,
    /// Seconds until a cooling slot is free.
    #[field(example = "1.5")]
    seconds_left: Option<f64>,
}

/// A request that waits for a slot.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct WaitingSlotView {
    /// Position among all waiting requests, from 1.
    #[field(example = "1")]
    position: usize,
    /// Purpose of the connection.
    #[field(example = "live")]
    purpose: Named<LeasePurpose>,
    /// Id of the channel; `null` for films, previews and trials.
    #[field(example = "7")]
    channel: Option<ChannelId>,
    /// Part of the URL of the channel, preview, film or episode.
    uuid: Uuid,
    /// Name of the channel, film or episode.
    #[field(example = "News")]
    channel_name: Option<String>,
    /// When the request arrived.
    since: Time,
}

const SLOTS: &str = "/api/m3u/slots/";

pub(super) fn routes() -> Vec<Route> {
    const SUMMARY: &str =
        "Returns the slots of all account profiles and server groups, and the requests that wait for one.";
    vec![Route::get(SLOTS, ADMIN, SUMMARY, slots)]
}

async fn slots(call: Call) -> Result<SlotsView, Refusal> {
    let seen = Seen::new(&call)?;
    let mut profiles: Vec<_> = seen
        .accounts
        .iter()
        .flat_map(|account| account.profiles.iter().map(|it| seen.profile(account, it)).collect::<Vec<_>>())
        .collect();
    profiles.extend(seen.deleted_profiles());
    let groups = call.rest().models.server_groups.load();
    let server_groups = groups.iter().map(|it| seen.server_group(it)).collect();
    Ok(SlotsView { at: Time(seen.now), profiles, server_groups })
}

/// The slots, and the records that they name.
struct Seen {
    now: i64,
    slots: SlotsSnapshot,
    accounts: Arc<Table<Account>>,
    channels: Arc<Table<Channel>>,
    /// Name and host of each stream that plays.
    streams: HashMap<StreamId, (String, Option<String>)>,
    /// Names of the films and episodes that play.
    titles: HashMap<Target, String>,
    /// Names of the nodes of the cluster.
    nodes: HashMap<NodeId, String>,
}

impl SlotView {
    /// Returns a slot of which nothing else is known.
    fn new(state: SlotState, profile: ProfileId) -> Self {
        Self {
            state: Named(state),
            node: None,
            profile,
            purpose: None,
            channel: None,
            uuid: None,
            channel_name: None,
            stream: None,
            stream_name: None,
            host: None,
            since: None,
            seconds_left: None,
        }
    }
}

impl Seen {
    fn new(call: &Call) -> Result<Self, Refusal> {
        let slots = call.rest().slots();
        let streams = call.rest().models.store.collection::<Stream>();
        let mut played = HashMap::new();
        for id in slots.in_use.iter().map(|it| it.stream) {
            if let Some(stream) = streams.get(id.0)? {
                let host = stream.url().host().map(str::to_owned);
                played.insert(id, (stream.name().to_owned(), host));
            }
        }
        Ok(Seen {
            now: now_ms(),
            slots,
            accounts: call.rest().models.accounts.load(),
            channels: call.rest().models.channels.load(),
            streams: played,
            titles: call
                .rest()
                .live
                .vod
                .all_sessions()
                .into_iter()
                .map(|it| (it.title.target, it.title.name))
                .collect(),
            nodes: call
                .rest()
                .nodes
                .cluster
                .get()
                .map(|it| it.view().nodes.iter().map(|it| (it.id, it.info.name.clone())).collect())
                .unwrap_or_default(),
        })
    }

    fn profile(&self, account: &Account, profile: &AccountProfile) -> ProfileSlotsView {
        let limit = slots::limit(&self.slots, account, profile);
        let slots = self.slots(|_, it| it == profile.id);
        ProfileSlotsView {
            account: account.id,
            account_name: account.name.clone(),
            profile: profile.id,
            profile_name: Some(profile.name.clone()),
            is_active: account.is_active && profile.is_active,
            server_group: account.server_group,
            max_streams: profile.max_streams,
            discovered_max_streams: limit.filter(|_| profile.max_streams == 0),
            stated_max_streams: self
                .slots
                .stated_limit(profile.id, account.updated_at)
                .filter(|_| profile.max_streams == 0),
            current_viewers: n_open(&slots),
            free: slots::free(limit, slots.len()),
            reserved: limit.map_or(0, |_| self.slots.reserved(profile.id)),
            waiting: self.waiting(|_, it| it == profile.id),
            slots,
        }
    }

    /// Returns the profiles that were deleted while their slots are in use.
    fn deleted_profiles(&self) -> Vec<ProfileSlotsView> {
        let is_known = |id: ProfileId| self.accounts.iter().flat_map(|it| &it.profiles).any(|it| it.id == id);
        let mut deleted: Vec<ProfileSlotsView> = Vec::new();
        for lease in self.slots.in_use.iter().filter(|it| !is_known(it.profile)) {
            if deleted.iter().any(|it| it.profile == lease.profile) {
                continue;
            }
            let slots = self.slots(|_, it| it == lease.profile);
            deleted.push(ProfileSlotsView {
                account: lease.account_id,
                account_name: lease.account.clone(),
                profile: lease.profile,
                profile_name: None,
                is_active: false,
                server_group: None,
                max_streams: 0,
                discovered_max_streams: None,
                stated_max_streams: None,
                current_viewers: n_open(&slots),
                free: None,
                reserved: 0,
                waiting: self.waiting(|_, it| it == lease.profile),
                slots,
            });
        }
        deleted
    }

    fn server_group(&self, group: &ServerGroup) -> ServerGroupSlotsView {
        let is_member = |it: &&Arc<Account>| it.server_group == Some(group.id);
        let accounts: Vec<_> = self.accounts.iter().filter(is_member).map(|it| it.id).collect();
        let slots = self.slots(|it, _| accounts.contains(&it));
        ServerGroupSlotsView {
            id: group.id,
            name: group.name.clone(),
            max_streams: group.max_streams,
            current_viewers: n_open(&slots),
            free: slots::free(Some(group.max_streams), slots.len()),
            waiting: self.waiting(|it, _| accounts.contains(&it)),
            slots,
            accounts,
        }
    }

    /// Returns the slots of the selected accounts and profiles that are not free.
    fn slots(&self, is_in: impl Fn(AccountId, ProfileId) -> bool) -> Vec<SlotView> {
        let in_use = self.slots.in_use.iter().filter(|it| is_in(it.account_id, it.profile));
        let cooling = self.slots.cooling.iter().filter(|it| is_in(it.account, it.profile));
        let cooling = cooling.map(|it| SlotView {
            seconds_left: Some(it.left.as_secs_f64()),
            ..SlotView::new(SlotState::Cooling, it.profile)
        });
        let elsewhere = self.slots.elsewhere.iter().filter(|it| is_in(it.account, it.profile));
        let elsewhere = elsewhere.map(|it| self.elsewhere(it));
        in_use.map(|it| self.in_use(it)).chain(cooling).chain(elsewhere).collect()
    }

    fn elsewhere(&self, slot: &SlotElsewhere) -> SlotView {
        let state = match slot.state {
            record::SlotState::Held => SlotState::InUse,
            record::SlotState::Closing => SlotState::Closing,
            record::SlotState::Cooling(_) => SlotState::Cooling,
        };
        let purpose = match slot.purpose {
            SlotPurpose::Live => LeasePurpose::Live,
            SlotPurpose::Preview => LeasePurpose::Preview,
            // Nothing probes yet.
            SlotPurpose::Trial | SlotPurpose::Probe => LeasePurpose::Trial,
            SlotPurpose::Vod => LeasePurpose::Vod,
            SlotPurpose::Catchup => LeasePurpose::Catchup,
            SlotPurpose::Recording => LeasePurpose::Recording,
        };
        SlotView {
            node: Some(self.nodes.get(&slot.node).cloned().unwrap_or_else(|| slot.node.0.to_string())),
            purpose: (state != SlotState::Cooling).then_some(Named(purpose)),
            ..SlotView::new(state, slot.profile)
        }
    }

    fn in_use(&self, lease: &LeaseInfo) -> SlotView {
        let channel = self.channel(lease.target);
        // A trial of an address has no stream.
        let stream = Some(lease.stream).filter(|it| it.0 != 0);
        let (stream_name, host) = stream.and_then(|it| self.streams.get(&it).cloned()).unzip();
        SlotView {
            state: Named(if lease.closing { SlotState::Closing } else { SlotState::InUse }),
            node: None,
            profile: lease.profile,
            purpose: Some(Named(lease.purpose)),
            channel: channel.map(|it| it.id),
            uuid: Some(lease.target.uuid()),
            channel_name: self.name(lease.target),
            stream,
            stream_name,
            host: host.flatten(),
            since: Some(self.ago(lease.age)),
            seconds_left: None,
        }
    }

    fn waiting(&self, is_in: impl Fn(AccountId, ProfileId) -> bool) -> Vec<WaitingSlotView> {
        let accepts =
            |it: &WaitingRequest| it.pools.iter().any(|(account, profile)| is_in(*account, *profile));
        let view = |(position, it): (usize, &WaitingRequest)| {
            let channel = self.channel(it.target);
            WaitingSlotView {
                position,
                purpose: Named(it.purpose),
                channel: channel.map(|it| it.id),
                uuid: it.target.uuid(),
                channel_name: self.name(it.target),
                since: self.ago(it.age),
            }
        };
        (1..).zip(&self.slots.waiting).filter(|it| accepts(it.1)).map(view).collect()
    }

    fn channel(&self, target: Target) -> Option<&Arc<Channel>> {
        match target {
            Target::Channel(uuid) | Target::Archive(uuid) => self.channels.one_by("uuid", uuid.as_bytes()),
            Target::Stream(_) | Target::Movie(_) | Target::Episode(_) | Target::Recording(_) => None,
        }
    }

    /// Returns the name of the channel, film or episode.
    fn name(&self, target: Target) -> Option<String> {
        match target {
            Target::Channel(_) | Target::Archive(_) => self.channel(target).map(|it| it.name.clone()),
            Target::Stream(_) | Target::Recording(_) => None,
            Target::Movie(_) | Target::Episode(_) => self.titles.get(&target).cloned(),
        }
    }

    fn ago(&self, age: Duration) -> Time {
        Time(self.now - i64::try_from(age.as_millis()).unwrap_or(0))
    }
}

fn n_open(slots: &[SlotView]) -> usize {
    slots.iter().filter(|it| it.state != Named(SlotState::Cooling)).count()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::Rest;

    #[tokio::test]
    async fn the_slots_of_all_profiles_and_server_groups_are_listed_for_admins() {
        let rest = Rest::start().await;
        let group =
            rest.admin("POST", "/api/m3u/server-groups/", json!({ "name": "G", "max_streams": 3 })).await;
        let body = json!({ "name": "a", "max_streams": 2, "server_group": group.body["id"] });
        let account = rest.admin("POST", "/api/m3u/accounts/", body).await.body["id"].clone();
        let seen = rest.admin("GET", SLOTS, Value::Null).await;
        assert_eq!(seen.status, 200, "{}", seen.text);
        let of_account = seen.body["profiles"].as_array().unwrap().iter().find(|it| it["account"] == account);
        let of_account = of_account.unwrap();
        assert_eq!((&of_account["max_streams"], &of_account["free"]), (&json!(2), &json!(2)));
        assert_eq!((&of_account["slots"], &of_account["waiting"]), (&json!([]), &json!([])));
        let of_group = &seen.body["server_groups"][0];
        assert_eq!((&of_group["accounts"], &of_group["free"]), (&json!([account]), &json!(3)));
        // The account of manually created streams has no limit.
        assert_eq!(seen.body["profiles"][0]["free"], Value::Null);
        assert_eq!(rest.standard("GET", SLOTS, Value::Null).await.status, 403);
    }
}
