//! Streams in answers.

use std::collections::HashMap;
use std::sync::Arc;

use domain::account::{Account, RefreshRecord};
use domain::group::Group;
use domain::health::StreamHealth;
use domain::ids::{AccountId, GroupId, StreamId, StreamProfileId};
use domain::plan::{PlanContext, playback_problem};
use domain::playlist::content::StreamContent;
use domain::portal::shown_address;
use domain::stream::{RequestHeaders, Stream};
use domain::user::UserLevel;
use resource_derive::View;
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::value::Time;
use serde::Serialize;
use serde_json::{Map, Value};
use server::reply::Refusal;
use storage::Table;

use super::health::{StreamHealthView, StreamStatsView, health_of};
use crate::api::channels::values::ChannelNumberValue;
use crate::choice::{Named, choice};
use crate::context::{RestCall, RestContext};
use crate::record::{Lookup, Render};

/// A stream: one source that a channel can play from.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "StreamRecord")]
pub(crate) struct StreamView {
    /// Assigned by the gateway. Stays the same across refreshes.
    #[field(example = "7")]
    id: StreamId,
    /// Name of the stream.
    #[field(example = "News HD")]
    name: String,
    /// URL of the stream. Complete for admins; other users see scheme, host and port, because the rest may contain
    /// credentials.
    #[field(example = "http://provider.example/live/7.ts")]
    url: String,
    /// Id of the playlist account; `null` for a stream that an admin added.
    #[field(example = "2")]
    m3u_account: Option<AccountId>,
    /// Whether an admin added the stream.
    is_custom: bool,
    /// URL of the logo.
    logo_url: Option<String>,
    /// Id in the guide.
    #[field(example = "news.example")]
    tvg_id: Option<String>,
    /// Id of the channel group with the name of the group, if one exists.
    #[field(example = "3")]
    channel_group: Option<GroupId>,
    /// Name of the group.
    #[field(example = "News")]
    channel_group_name: Option<String>,
    /// Channel number from the provider.
    #[field(example = "4.1")]
    stream_chno: Option<ChannelNumberValue>,
    /// Content of the stream, as far as its list shows it. Only live streams become channels without being selected by
    /// id.
    #[field(example = "live")]
    content_type: Named<StreamContent>,
    /// Stream profile; `null` selects that of the channel, else of the account. A page of a video site has that of Streamlink
    /// without being given one.
    stream_profile_id: Option<StreamProfileId>,
    /// Why the gateway cannot play the stream, as far as its address and its playlist show it; `null` if nothing is known.
    #[field(example = "it is protected by Widevine, whose licence servers give keys to players only")]
    playback_problem: Option<String>,
    /// User agent of requests for the stream; `null` selects that of the account. Visible to admins only.
    #[field(example = "VLC/3.0.20")]
    user_agent: Option<String>,
    /// Other headers of requests for the stream, from its playlist and from admins. Those of the account follow. Visible to
    /// admins only.
    headers: Map<String, Value>,
    /// Whether the provider marks the stream as a radio station.
    #[field(example = "false")]
    is_radio: bool,
    /// Station in a guide that some players bring themselves.
    #[field(example = "20453")]
    tvc_guide_stationid: Option<String>,
    /// Number of the programme to play, where the URL leads to several; `null` selects the one that the URL names, else
    /// the first with a picture.
    #[field(example = "2")]
    program_number: Option<u16>,
    /// Whether another stream of the channel plays when the picture of this one stands still.
    #[field(example = "false")]
    leave_still_picture: bool,
    /// Number of the stream at its panel; `null` for other accounts.
    #[field(example = "7")]
    stream_id: Option<u64>,
    /// Number of connections that play the stream now.
    #[field(example = "0")]
    current_viewers: usize,
    /// Stable, unique identifier. Derived from ids, so it reveals no address.
    #[field(example = "0000000200000007")]
    stream_hash: String,
    /// Always `null`: no stream is a file.
    local_file: Option<String>,
    /// Whether the stream is missing from the latest playlist.
    is_stale: bool,
    /// Whether the provider marks the stream as adult content. Channels that play it are then hidden from users who hide
    /// adult content, unless an admin decided otherwise.
    is_adult: bool,
    /// Minutes by which the programmes of its guide are later than the guide says, as the playlist states (`tvg-shift`).
    #[field(example = "0")]
    epg_offset_minutes: i16,
    /// Whether the provider keeps an archive, so that past programmes can be watched.
    is_catchup: bool,
    /// Depth of that archive in days; 0 without one.
    catchup_days: u32,
    /// When the stream was last in its playlist; `null` for a stream that an admin added.
    last_seen: Option<Time>,
    /// When the stream was first seen, or added.
    created_at: Time,
    /// When the stream last changed.
    updated_at: Time,
    /// Values measured while the stream played; `null` if it was never measured.
    stream_stats: Option<StreamStatsView>,
    /// When the stream was measured.
    stream_stats_updated_at: Option<Time>,
    /// Outcomes of the plays of the stream; `null` if it was never played.
    health: Option<StreamHealthView>,
    /// Values of the provider, if an admin or a rule overrides them. `null` for users other than admins.
    provider: Option<ProviderFactsView>,
}

choice!(StreamContent {
    Live = "live",
    Movie = "movie",
    Series = "series",
    Separator = "separator",
});

/// Values of a stream from its provider.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ProviderFactsView {
    /// Name of the stream.
    name: String,
    /// URL of the stream.
    url: String,
    /// Id in the guide.
    tvg_id: Option<String>,
    /// Name of the group.
    channel_group_name: Option<String>,
    /// URL of the logo.
    logo_url: Option<String>,
}

/// Data that views of streams depend on.
pub(crate) struct StreamLookup {
    is_admin: bool,
    groups: Arc<Table<Group>>,
    refreshes: Arc<Table<RefreshRecord>>,
    health: HashMap<StreamId, StreamHealth>,
    conditions: PlanContext,
    accounts: Arc<Table<Account>>,
    /// Connections in use by stream.
    connections: HashMap<StreamId, usize>,
}

impl Lookup for StreamLookup {
    fn load(call: &Call) -> Result<Self, Refusal> {
        let models = &call.rest().models;
        let mut connections = HashMap::new();
        for lease in call.rest().leases() {
            *connections.entry(lease.stream).or_default() += 1;
        }
        Ok(Self {
            connections,
            accounts: models.accounts.load(),
            is_admin: call.identity()?.may(UserLevel::Admin),
            groups: models.groups.load(),
            refreshes: models.refreshes.load(),
            health: HashMap::new(),
            conditions: call.rest().live.plans.conditions(),
        })
    }
}

impl StreamLookup {
    /// Loads the health of these streams too.
    pub(in crate::api::channels) fn new(call: &Call, streams: &[Stream]) -> Result<Self, Refusal> {
        let health = health_of(call.rest(), streams.iter().map(|it| it.id));
        Ok(Self { health, ..Self::load(call)? })
    }

    /// Returns the number of a stream at its panel, which its address ends with.
    fn number_at_panel(&self, stream: &Stream) -> Option<u64> {
        self.accounts.get(stream.account.0)?.list.panel()?;
        let (_, file) = stream.provider.url.expose().rsplit_once('/')?;
        file.split_once('.').map_or(file, |it| it.0).parse().ok()
    }
}

impl Render for Stream {
    type View = StreamView;
    type Lookup = StreamLookup;

    fn view(&self, lookup: &StreamLookup) -> StreamView {
        let is_custom = self.account == domain::account::CUSTOM_ACCOUNT;
        let group = self.group().and_then(|it| lookup.groups.one_by("name", it));
        let group_name = group.map(|it| it.name.as_str()).or(self.group());
        let seen_with_list = || {
            let refresh = lookup.refreshes.get(self.account.0);
            refresh.and_then(|it| it.good_at).unwrap_or(self.added_at)
        };
        let last_seen = self.last_seen.or_else(|| (!is_custom).then(seen_with_list));
        let health = lookup.health.get(&self.id);
        let catchup_days = self.archive_days();
        let url = match lookup.is_admin {
            true => shown_address(self.url()),
            false => self.url().to_string(),
        };
        StreamView {
            id: self.id,
            name: self.name().to_owned(),
            url,
            m3u_account: Some(self.account).filter(|_| !is_custom),
            is_custom,
            logo_url: self.logo().map(str::to_owned),
            tvg_id: self.tvg_id().map(str::to_owned),
            channel_group: group.map(|it| it.id),
            channel_group_name: group_name.map(str::to_owned),
            stream_chno: self.provider.number.map(ChannelNumberValue),
            content_type: Named(self.content()),
            stream_profile_id: self.stream_profile.or_else(|| self.profile_of_page()),
            playback_problem: playback_problem(self, &lookup.conditions).map(|it| it.to_string()),
            user_agent: self.headers().user_agent.clone().filter(|_| lookup.is_admin),
            headers: if lookup.is_admin { shown_headers(&self.headers()) } else { Map::new() },
            is_radio: self.marks().is_some_and(|it| it.is_radio),
            tvc_guide_stationid: self.station().map(str::to_owned),
            program_number: self.program,
            leave_still_picture: self.leaves_still_picture,
            stream_id: lookup.number_at_panel(self),
            current_viewers: lookup.connections.get(&self.id).copied().unwrap_or(0),
            stream_hash: format!("{:08x}{:08x}", self.account.0, self.id.0),
            local_file: None,
            is_stale: self.is_stale(),
            is_adult: self.is_adult(),
            epg_offset_minutes: self.guide_offset(),
            is_catchup: catchup_days > 0,
            catchup_days,
            last_seen: last_seen.map(Time),
            created_at: Time(self.added_at),
            updated_at: Time(self.updated_at),
            stream_stats: health.and_then(StreamStatsView::new),
            stream_stats_updated_at: health.and_then(|it| it.measured_at).map(Time),
            health: health.map(StreamHealthView::new),
            provider: Some(self).filter(|_| lookup.is_admin).and_then(overridden),
        }
    }
}

/// Returns headers by name, without the user agent.
fn shown_headers(headers: &RequestHeaders) -> Map<String, Value> {
    let referrer = headers.referrer.iter().map(|it| ("Referer".to_owned(), it.clone().into()));
    referrer.chain(headers.extra.iter().map(|it| (it.0.clone(), it.1.clone().into()))).collect()
}

/// Returns the overridden values of the provider, if any.
fn overridden(stream: &Stream) -> Option<ProviderFactsView> {
    if stream.manual.is_empty() && stream.rule.is_empty() {
        return None;
    }
    let facts = &stream.provider;
    Some(ProviderFactsView {
        name: facts.name.clone(),
        url: shown_address(&facts.url),
        tvg_id: facts.tvg_id.clone(),
        channel_group_name: facts.group.clone(),
        logo_url: facts.logo.clone(),
    })
}

/// Runs work on many streams on a thread that may block.
pub(in crate::api) async fn blocking<R: Send + 'static>(
    run: impl FnOnce() -> Result<R, Refusal> + Send + 'static,
) -> Result<R, Refusal> {
    run_blocking("read streams", run).await?
}

/// Reads streams in the given order and skips missing ones. Call it on a thread that may block.
pub(in crate::api::channels) fn read(
    context: &RestContext,
    ids: &[StreamId],
) -> Result<Vec<Stream>, Refusal> {
    let streams = context.models.store.collection::<Stream>();
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        found.extend(streams.get(id.0)?);
    }
    Ok(found)
}
