//! Channels in answers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::account::Account;
use domain::channel::Channel;
use domain::group::Group;
use domain::ids::{AccountId, ChannelId, GroupId, GuideChannelId, LogoId, StreamId, StreamProfileId};
use domain::timeshift::TimeShiftMode;
use domain::user::UserLevel;
use resource_derive::View;
use route_frame::call::Call;
use route_frame::field::Kind;
use route_frame::value::{Shape, Time};
use serde::Serialize;
use serde_json::{Map, Value};
use server::reply::Refusal;
use services::archives::ChannelArchives;
use storage::Table;
use uuid::Uuid;

use super::guide::GuideLookup;
use super::udp_output::UdpOutputView;
use crate::api::channels::streams::{StreamLookup, StreamView, blocking, read};
use crate::api::channels::values::ChannelNumberValue;
use crate::choice::Named;
use crate::context::RestCall;
use crate::record::{Lookup, Render, view_from};

/// A channel: the unit that viewers select, played from one of its streams.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ChannelRecord")]
pub(crate) struct ChannelView {
    /// Assigned by the gateway and never reused.
    #[field(example = "7")]
    id: ChannelId,
    /// Part of the stream URL. Never changes.
    uuid: Uuid,
    /// Name of the channel.
    #[field(example = "News")]
    name: String,
    /// Number of the channel, unique.
    #[field(example = "4.1")]
    channel_number: Option<ChannelNumberValue>,
    /// Same as `channel_number`.
    #[field(example = "4.1")]
    number: Option<ChannelNumberValue>,
    /// Disabled channels are neither listed for viewers nor played.
    enabled: bool,
    /// The opposite of `enabled`.
    hidden_from_output: bool,
    /// Id of the channel group.
    #[field(example = "3")]
    channel_group_id: Option<GroupId>,
    /// Name of the channel group.
    #[field(example = "News")]
    channel_group_name: Option<String>,
    /// Id of the channel in the guide.
    #[field(example = "news.example")]
    tvg_id: Option<String>,
    /// Station of the channel in a guide that some players bring themselves.
    #[field(example = "20453")]
    tvc_guide_stationid: Option<String>,
    /// Id of the guide channel that an admin or the matching linked.
    #[field(example = "12")]
    epg_data_id: Option<GuideChannelId>,
    /// Ids of guide channels that fill the hours and the fields that those before them lack, in order.
    #[field(example = "[13]")]
    further_epg_data_ids: Vec<GuideChannelId>,
    /// Minutes by which the programmes of the channel are later than its guide says; `null` leaves it to its first stream.
    #[field(example = "60")]
    epg_offset_minutes: Option<i16>,
    /// Whether the `tvg-shift` of the first stream also applies to a guide channel that is linked by hand.
    epg_follows_stream: bool,
    /// Minutes by which the programmes are later than the guide says, that of the guide source included.
    #[field(example = "60")]
    effective_epg_offset_minutes: i32,
    /// Whether a start tries the healthiest streams first; otherwise the order of `streams` counts.
    healthiest_first: bool,
    /// Ids of the streams in the order of failover. With `include_streams` the streams themselves.
    #[field(example = "[1, 2]")]
    streams: Vec<StreamOrId>,
    /// Stream profile for streams without one of their own.
    stream_profile_id: Option<StreamProfileId>,
    /// URL of the logo.
    logo_url: Option<String>,
    /// Id of the logo; `null` without a logo, and for a channel of an earlier version until its logo is changed.
    #[field(example = "5")]
    logo_id: Option<LogoId>,
    /// Hides the channel from users of a lower level.
    user_level: UserLevel,
    /// Hides the channel from users who hide adult content.
    is_adult: bool,
    /// When the gateway keeps the past of the channel itself; `null` leaves it to `timeshift_settings`.
    timeshift: Option<Named<TimeShiftMode>>,
    /// Where the channel is also sent as datagrams; `null` is nowhere, and for users of level 0.
    udp_output: Option<UdpOutputView>,
    /// Whether the caller can watch past programmes: a stream of the channel has an archive at its provider, or the gateway
    /// keeps the past itself.
    is_catchup: bool,
    /// Number of days that can be watched, rounded up; 0 without an archive.
    catchup_days: u32,
    /// Data of clients, which the gateway does not interpret.
    custom_properties: Map<String, Value>,
    /// Whether a refresh created the channel for a stream of a group with automatic channels.
    auto_created: bool,
    /// Id of the account whose refresh created the channel.
    #[field(example = "2")]
    auto_created_by: Option<AccountId>,
    /// Name of that account.
    #[field(example = "Provider")]
    auto_created_by_name: Option<String>,
    /// The stream for which a refresh created the channel.
    source_stream: Option<SourceStreamView>,
    /// Fields of an automatically created channel that an admin changed. Refreshes keep them; a field that is set back to
    /// the value of the provider follows it again.
    #[field(example = "[\"name\"]")]
    edited_fields: Vec<&'static str>,
    /// The values of these fields, and `null` for all others; `null` if there are none.
    r#override: Option<ChannelOverrideView>,
    /// Same as `name`. The `effective_…` fields exist for clients that read them: the other fields contain what an admin
    /// changed, too.
    effective_name: String,
    /// Same as `channel_number`.
    effective_channel_number: Option<ChannelNumberValue>,
    /// Same as `channel_group_id`.
    effective_channel_group_id: Option<GroupId>,
    /// Same as `tvg_id`.
    effective_tvg_id: Option<String>,
    /// Same as `tvc_guide_stationid`.
    effective_tvc_guide_stationid: Option<String>,
    /// Id of the guide channel whose programmes the channel shows: `epg_data_id`, or the guide channel with its `tvg_id`.
    #[field(example = "12")]
    effective_epg_data_id: Option<GuideChannelId>,
    /// Same as `logo_id`.
    effective_logo_id: Option<LogoId>,
    /// Same as `stream_profile_id`.
    effective_stream_profile_id: Option<StreamProfileId>,
    /// When the channel was created.
    created_at: Time,
    /// When the channel last changed.
    updated_at: Time,
}

impl ChannelView {
    /// Removes what refers to providers, for users of the lowest level.
    pub(super) fn without_sources(self) -> Self {
        ChannelView {
            streams: Vec::new(),
            stream_profile_id: None,
            udp_output: None,
            effective_stream_profile_id: None,
            auto_created_by: None,
            auto_created_by_name: None,
            source_stream: None,
            r#override: None,
            logo_url: None,
            custom_properties: Map::new(),
            ..self
        }
    }
}

/// The stream of an automatically created channel.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SourceStreamView {
    /// Id of the stream.
    #[field(example = "7")]
    id: StreamId,
    /// Name that the stream gave the channel.
    #[field(example = "News HD")]
    name: String,
    /// Id of its account.
    #[field(example = "2")]
    account_id: AccountId,
    /// Name of this account.
    #[field(example = "Provider")]
    account_name: Option<String>,
}

/// The fields of an automatically created channel that an admin changed.
#[derive(Clone, Debug, Default, Serialize, View)]
pub(crate) struct ChannelOverrideView {
    /// Name of the channel.
    #[field(example = "News")]
    name: Option<String>,
    /// Number of the channel.
    #[field(example = "4.1")]
    channel_number: Option<ChannelNumberValue>,
    /// Id of the channel group.
    #[field(example = "3")]
    channel_group_id: Option<GroupId>,
    /// Id of the logo.
    #[field(example = "5")]
    logo_id: Option<LogoId>,
    /// Id of the channel in the guide.
    #[field(example = "news.example")]
    tvg_id: Option<String>,
    /// Station in a guide that some players bring themselves.
    tvc_guide_stationid: Option<String>,
    /// Id of the guide channel, if the group of the channel sets one.
    epg_data_id: Option<GuideChannelId>,
    /// Id of the stream profile.
    stream_profile_id: Option<StreamProfileId>,
}

impl ChannelOverrideView {
    /// Returns the changed values of a channel, if there are any. A value that was removed is `null`, too.
    fn new(channel: &Channel) -> Option<Self> {
        let edited = channel.edited_values();
        let is_edited = |name: &str| edited.contains(&name);
        (!edited.is_empty()).then(|| Self {
            name: is_edited("name").then(|| channel.name.clone()),
            channel_number: channel.number.filter(|_| is_edited("channel_number")).map(ChannelNumberValue),
            channel_group_id: channel.group.filter(|_| is_edited("channel_group_id")),
            logo_id: channel.logo_id.filter(|_| is_edited("logo_url")),
            tvg_id: channel.tvg_id.clone().filter(|_| is_edited("tvg_id")),
            stream_profile_id: channel.stream_profile.filter(|_| is_edited("stream_profile_id")),
            epg_data_id: channel.guide_channel.filter(|_| is_edited("epg_data_id")),
            tvc_guide_stationid: channel.guide_station.clone().filter(|_| is_edited("tvc_guide_stationid")),
        })
    }
}

/// The short form of a channel.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ChannelSummaryView {
    /// Id of the channel.
    id: ChannelId,
    /// Part of the stream URL.
    uuid: Uuid,
    /// Name of the channel.
    name: String,
    /// Number of the channel.
    channel_number: Option<ChannelNumberValue>,
    /// Id of the channel group.
    channel_group_id: Option<GroupId>,
    /// Id of the logo.
    logo_id: Option<LogoId>,
    /// Id of the guide channel whose programmes the channel shows.
    epg_data_id: Option<GuideChannelId>,
}

impl ChannelSummaryView {
    pub(super) fn new(channel: &Channel, guides: &GuideLookup) -> Self {
        Self {
            id: channel.id,
            uuid: channel.uuid,
            name: channel.name.clone(),
            channel_number: channel.number.map(ChannelNumberValue),
            channel_group_id: channel.group,
            logo_id: channel.logo_id,
            epg_data_id: guides.shown(channel),
        }
    }
}

/// A stream of a channel: its id, or the whole stream.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum StreamOrId {
    Id(StreamId),
    Whole(Box<StreamView>),
}

impl Shape for StreamOrId {
    const KIND: Kind = Kind::Either(&[Kind::Integer, <StreamView as Shape>::KIND]);
}

/// Maximum number of whole streams in one answer, about 20 MB.
const STREAMS_MAX: usize = 20_000;

/// Data that views of channels depend on.
pub(crate) struct ChannelLookup {
    groups: Arc<Table<Group>>,
    accounts: Arc<Table<Account>>,
    guides: GuideLookup,
    archives: Arc<ChannelArchives>,
    /// Present if the client asked for whole streams.
    streams: Option<HashMap<StreamId, StreamView>>,
}

impl Lookup for ChannelLookup {
    fn load(call: &Call) -> Result<Self, Refusal> {
        let models = &call.rest().models;
        Ok(Self {
            groups: models.groups.load(),
            accounts: models.accounts.load(),
            guides: GuideLookup::new(models),
            archives: call.archives(),
            streams: None,
        })
    }
}

impl ChannelLookup {
    /// Loads the streams of these channels if the client asked for them.
    pub(super) async fn with_streams<'a>(
        call: &Call,
        is_asked: Option<bool>,
        channels: impl Iterator<Item = &'a Channel>,
    ) -> Result<Self, Refusal> {
        let lookup = Self::load(call)?;
        if is_asked != Some(true) {
            return Ok(lookup);
        }
        let ids: HashSet<StreamId> = channels.flat_map(|it| it.streams.iter().copied()).collect();
        if ids.len() > STREAMS_MAX {
            let message = format!("More than {STREAMS_MAX} streams. Use page_size to request pages.");
            return Err(Refusal::field("include_streams", message));
        }
        let ids: Vec<StreamId> = ids.into_iter().collect();
        let context = Arc::clone(call.rest());
        let streams = blocking(move || read(&context, &ids)).await?;
        let of_streams = StreamLookup::new(call, &streams)?;
        let streams = streams.iter().map(|it| (it.id, it.view(&of_streams))).collect();
        Ok(Self { streams: Some(streams), ..lookup })
    }
}

impl ChannelLookup {
    /// Returns whether a channel shows the programmes of a guide channel.
    pub(super) fn has_guide(&self, channel: &Channel) -> bool {
        self.guides.shown(channel).is_some()
    }
}

impl Render for Channel {
    type View = ChannelView;
    type Lookup = ChannelLookup;

    fn view(&self, lookup: &ChannelLookup) -> ChannelView {
        let streams = self.streams.iter();
        let streams = match &lookup.streams {
            None => streams.map(|id| StreamOrId::Id(*id)).collect(),
            Some(whole) => streams
                .filter_map(|id| whole.get(id))
                .map(|it| StreamOrId::Whole(Box::new(it.clone())))
                .collect(),
        };
        let number = self.number.map(ChannelNumberValue);
        let group = self.group.and_then(|it| lookup.groups.get(it.0));
        let account = self.followed().map(|it| it.account);
        let account_name = account.and_then(|it| Some(lookup.accounts.get(it.0)?.name.clone()));
        let catchup_days = lookup.archives.days(self.id);
        view_from!(ChannelView from self {
            id, uuid, name, enabled, tvg_id, healthiest_first, logo_id, user_level, is_adult, timeshift,
            custom_properties, created_at, updated_at;
            channel_number: number,
            number,
            hidden_from_output: !self.enabled,
            channel_group_id: self.group,
            channel_group_name: group.map(|it| it.name.clone()),
            tvc_guide_stationid: self.guide_station.clone(),
            epg_data_id: lookup.guides.linked(self),
            further_epg_data_ids: self.further_guides.clone(),
            epg_offset_minutes: self.guide_offset,
            epg_follows_stream: self.keeps_stream_offset,
            effective_epg_offset_minutes: lookup.guides.offset_minutes(self),
            streams,
            stream_profile_id: self.stream_profile,
            logo_url: self.logo.clone(),
            udp_output: self.udp_output.as_deref().map(UdpOutputView::new),
            is_catchup: catchup_days > 0,
            catchup_days,
            auto_created: account.is_some(),
            auto_created_by: account,
            auto_created_by_name: account_name.clone(),
            source_stream: self.followed().map(|it| SourceStreamView {
                id: it.stream,
                name: it.synced.name.clone(),
                account_id: it.account,
                account_name,
            }),
            edited_fields: self.edited_values(),
            r#override: ChannelOverrideView::new(self),
            effective_name: self.name.clone(),
            effective_channel_number: number,
            effective_channel_group_id: self.group,
            effective_tvg_id: self.tvg_id.clone(),
            effective_tvc_guide_stationid: self.guide_station.clone(),
            effective_epg_data_id: lookup.guides.shown(self),
            effective_logo_id: self.logo_id,
            effective_stream_profile_id: self.stream_profile,
        })
    }
}
