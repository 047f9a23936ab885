//! What is shown of a channel.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::channel::Channel;
use domain::group::Group;
use domain::ids::{ChannelId, GroupId, StreamId, StreamProfileId};
use domain::user::UserLevel;
use serde::Serialize;
use serde_json::{Map, Value};
use storage::Table;
use uuid::Uuid;

use crate::http::reply::Refusal;
use crate::rest::api::channels::streams::{StreamRecord, StreamViews, blocking, read};
use crate::rest::api::channels::values::ChannelNumberValue;
use crate::rest::frame::call::Call;
use crate::rest::frame::field::Kind;
use crate::rest::frame::record::view;
use crate::rest::frame::value::{Shape, Time};

view! {
    /// A channel: what viewers choose, made of the streams that can play it.
    ChannelRecord {
        /// Given by the gateway; never given again.
        id: ChannelId [example("7")],
        /// What its address is made of. Never changes.
        uuid: Uuid,
        /// Its name.
        name: String [example("News")],
        /// Its number, unique over all channels.
        channel_number: Option<ChannelNumberValue> [example("4.1")],
        /// The same number.
        number: Option<ChannelNumberValue> [example("4.1")],
        /// A channel that is not enabled is neither listed for viewers nor played.
        enabled: bool,
        /// Its channel group.
        channel_group_id: Option<GroupId> [example("3")],
        /// The name of its channel group.
        channel_group_name: Option<String> [example("News")],
        /// Its id in a guide.
        tvg_id: Option<String> [example("news.example")],
        /// Its guide; `null`, because there is none yet.
        epg_data_id: Option<u32>,
        /// Ids of its streams in the order in which they are tried. The streams themselves where `include_streams` asks
        /// for them.
        streams: Vec<StreamShown> [example("[1, 2]")],
        /// How its streams are handed on, where they do not say it themselves.
        stream_profile_id: Option<StreamProfileId>,
        /// Address of its picture.
        logo_url: Option<String>,
        /// Its logo; `null`, because there are none yet.
        logo_id: Option<u32>,
        /// Users of a lower level do not see it.
        user_level: UserLevel,
        /// Users who hide adult content do not see it.
        is_adult: bool,
        /// Can what it sent before be watched? Not yet.
        is_catchup: bool,
        /// For how many days.
        catchup_days: u32,
        /// Kept for programs; nobody looks into it.
        custom_properties: Map<String, Value>,
        /// The name in force. Of these fields nothing overrides the others; they are there for clients that read them.
        effective_name: String,
        /// The number in force.
        effective_channel_number: Option<ChannelNumberValue>,
        /// The channel group in force.
        effective_channel_group_id: Option<GroupId>,
        /// The id in a guide in force.
        effective_tvg_id: Option<String>,
        /// The guide in force.
        effective_epg_data_id: Option<u32>,
        /// The logo in force.
        effective_logo_id: Option<u32>,
        /// The stream profile in force.
        effective_stream_profile_id: Option<StreamProfileId>,
        /// When it was made.
        created_at: Time,
        /// When something of it last changed.
        updated_at: Time,
    }
}

view! {
    /// The least that says which channel it is.
    ChannelSummary {
        /// Its id.
        id: ChannelId,
        /// What its address is made of.
        uuid: Uuid,
        /// Its name.
        name: String,
        /// Its number.
        channel_number: Option<ChannelNumberValue>,
        /// Its channel group.
        channel_group_id: Option<GroupId>,
        /// Its logo; `null`, because there are none yet.
        logo_id: Option<u32>,
        /// Its guide; `null`, because there is none yet.
        epg_data_id: Option<u32>,
    }
}

impl ChannelSummary {
    pub(super) fn of(channel: &Channel) -> Self {
        Self {
            id: channel.id,
            uuid: channel.uuid,
            name: channel.name.clone(),
            channel_number: channel.number.map(ChannelNumberValue),
            channel_group_id: channel.group,
            logo_id: None,
            epg_data_id: None,
        }
    }
}

/// A stream of a channel: its id, or all of it.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum StreamShown {
    Id(StreamId),
    Whole(Box<StreamRecord>),
}

impl Shape for StreamShown {
    const KIND: Kind = Kind::Either(&[Kind::Integer, <StreamRecord as Shape>::KIND]);
}

/// Streams that are shown whole in one answer, at most: some twenty megabytes.
const STREAMS_MAX: usize = 20_000;

/// Shows channels.
pub(super) struct ChannelViews {
    groups: Arc<Table<Group>>,
    /// Where whole streams are asked for.
    streams: Option<HashMap<StreamId, StreamRecord>>,
}

impl ChannelViews {
    pub(super) fn of(call: &Call) -> Self {
        Self { groups: call.app.models.groups.load(), streams: None }
    }

    /// With the streams of these channels, if they are asked for.
    pub(super) async fn with_streams<'a>(
        call: &Call,
        is_asked: Option<bool>,
        channels: impl Iterator<Item = &'a Channel>,
    ) -> Result<Self, Refusal> {
        let views = Self::of(call);
        if is_asked != Some(true) {
            return Ok(views);
        }
        let ids: HashSet<StreamId> = channels.flat_map(|it| it.streams.iter().copied()).collect();
        if ids.len() > STREAMS_MAX {
            let message = format!("More than {STREAMS_MAX} streams; ask for pages with page_size.");
            return Err(Refusal::field("include_streams", message));
        }
        let ids: Vec<StreamId> = ids.into_iter().collect();
        let app = call.app.clone();
        let streams = blocking(move || read(&app, &ids)).await?;
        let shown = StreamViews::of(call)?;
        let streams = streams.iter().map(|it| (it.id, shown.stream(it))).collect();
        Ok(Self { streams: Some(streams), ..views })
    }

    pub(super) fn channel(&self, channel: &Channel) -> ChannelRecord {
        let streams = channel.streams.iter();
        let streams = match &self.streams {
            None => streams.map(|id| StreamShown::Id(*id)).collect(),
            Some(whole) => streams
                .filter_map(|id| whole.get(id))
                .map(|it| StreamShown::Whole(Box::new(it.clone())))
                .collect(),
        };
        let number = channel.number.map(ChannelNumberValue);
        let group = channel.group.and_then(|it| self.groups.get(it.0));
        ChannelRecord {
            id: channel.id,
            uuid: channel.uuid,
            name: channel.name.clone(),
            channel_number: number,
            number,
            enabled: channel.enabled,
            channel_group_id: channel.group,
            channel_group_name: group.map(|it| it.name.clone()),
            tvg_id: channel.tvg_id.clone(),
            epg_data_id: None,
            streams,
            stream_profile_id: channel.stream_profile,
            logo_url: channel.logo.clone(),
            logo_id: None,
            user_level: channel.user_level,
            is_adult: channel.is_adult,
            is_catchup: false,
            catchup_days: 0,
            custom_properties: channel.custom_properties.clone(),
            effective_name: channel.name.clone(),
            effective_channel_number: number,
            effective_channel_group_id: channel.group,
            effective_tvg_id: channel.tvg_id.clone(),
            effective_epg_data_id: None,
            effective_logo_id: None,
            effective_stream_profile_id: channel.stream_profile,
            created_at: Time(channel.created_at),
            updated_at: Time(channel.updated_at),
        }
    }
}
