//! Creates channels from streams.

use actors::now_ms;
use domain::channel::{CHANNEL_NAME_CHARS_MAX, Channel, ChannelNumber};
use domain::group::{GROUP_NAME_CHARS_MAX, Group};
use domain::ids::{ChannelId, GroupId, StreamId};
use domain::stream::Stream;
use resource_derive::{Body, View};
use serde::Serialize;
use serde_json::Value;
use storage::Write;
use uuid::Uuid;

use super::bulk::MANY;
use super::edit::{LINEUPS_MAX, check_streams};
use super::numbers::Taken;
use super::view::ChannelView;
use crate::http::reply::Refusal;
use crate::rest::api::channels::lineups::{NewMemberships, check_lineups, set_lineups};
use crate::rest::api::channels::values::{ChannelNumberValue, Text};
use crate::rest::frame::call::Call;
use crate::rest::frame::field::{Field, Kind};
use crate::rest::frame::input::FieldErrors;
use crate::rest::frame::record::find;
use crate::rest::frame::route::Created;
use crate::rest::frame::value::{Readable, Shape};

/// Selects a stream for a new channel.
#[derive(Clone, Debug, Body)]
pub(crate) struct FromStream {
    /// Id of the stream.
    #[field(example = "1")]
    stream_id: StreamId,
    /// Number of the channel. 0 selects the lowest free whole number, -1 the one after the highest. By default the
    /// channel gets the provider's number if it is free, otherwise the lowest free one.
    #[field(aliases = &["number"], example = "0")]
    channel_number: Option<Option<NumberWish>>,
    /// Name of the channel; the name of the stream by default.
    #[field(chars_max = CHANNEL_NAME_CHARS_MAX)]
    name: Option<Text>,
    /// Ids of the channel profiles in which the channel is enabled; `[0]` is all and `[]` is none. By default each
    /// profile decides by its `add_new_channels`.
    #[field(items_max = LINEUPS_MAX, example = "[0]")]
    channel_profile_ids: Option<NewMemberships>,
}

/// Selects streams for new channels.
#[derive(Clone, Debug, Body)]
pub(crate) struct FromStreams {
    /// Ids of the streams in the order of the channel numbers, each once.
    #[field(items_max = MANY, example = "[1]")]
    stream_ids: Vec<StreamId>,
    /// Number of the first channel; the others follow, and numbers of other channels are skipped. 0 selects the lowest
    /// free whole number, -1 the one after the highest. By default each channel gets the provider's number if it is
    /// free, otherwise the lowest free one.
    #[field(example = "0")]
    starting_channel_number: Option<Option<NumberWish>>,
    /// Ids of the channel profiles in which the channels are enabled; `[0]` is all and `[]` is none. By default each
    /// profile decides by its `add_new_channels`.
    #[field(items_max = LINEUPS_MAX, example = "[0]")]
    channel_profile_ids: Option<NewMemberships>,
}

/// The created channels.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ChannelsMadeView {
    /// Message for people.
    #[field(example = "Created 2 channels")]
    message: String,
    /// Number of created channels.
    #[field(example = "2")]
    created_count: usize,
    /// Ids of the channels, in the order of the request.
    #[field(example = "[7, 8]")]
    channel_ids: Vec<ChannelId>,
}

/// Requested number of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberWish {
    Lowest,
    AfterHighest,
    At(ChannelNumber),
}

impl Shape for NumberWish {
    const KIND: Kind = Kind::Number;
}

impl Readable for NumberWish {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        match value.as_i64().or_else(|| value.as_str()?.trim().parse().ok()) {
            Some(0) => Ok(Self::Lowest),
            Some(-1) => Ok(Self::AfterHighest),
            _ => ChannelNumberValue::read(value, field).map(|it| Self::At(it.0)),
        }
    }
}

pub(super) async fn from_stream(call: Call, body: FromStream) -> Result<Created<ChannelView>, Refusal> {
    let mut taken = Taken::of(&call.app.models.channels.load());
    let channel = call
        .write(move |write| {
            let stream = find::<Stream>(write, body.stream_id.0)?;
            let lineups = body.channel_profile_ids.flatten();
            let mut errors = FieldErrors::default();
            check_lineups(write, "channel_profile_ids", &lineups, &mut errors)?;
            errors.or(())?;
            let number = match body.channel_number.flatten() {
                None => of_provider(write, &stream, &mut taken)?,
                Some(NumberWish::Lowest) => taken.lowest(write)?,
                Some(NumberWish::AfterHighest) => taken.after_highest(write)?,
                Some(NumberWish::At(number)) => match taken.take(write, number)? {
                    true => number,
                    false => return Err(Refusal::taken("channel_number")),
                },
            };
            let channel = make(write, &stream, number, body.name.map(|it| it.0))?;
            set_lineups(write, &[channel.id], &lineups)?;
            Ok(channel)
        })
        .await?;
    Ok(Created(call.render(&channel)?))
}

pub(super) async fn from_streams(
    call: Call,
    body: FromStreams,
) -> Result<Created<ChannelsMadeView>, Refusal> {
    let mut taken = Taken::of(&call.app.models.channels.load());
    let ids = body.stream_ids;
    let wish = body.starting_channel_number.flatten();
    let lineups = body.channel_profile_ids.flatten();
    let channel_ids = call
        .write(move |write| {
            let mut errors = FieldErrors::default();
            check_streams(write, "stream_ids", &ids, &mut errors)?;
            check_lineups(write, "channel_profile_ids", &lineups, &mut errors)?;
            errors.or(())?;
            let mut start = match wish {
                Some(NumberWish::At(number)) => Some(number),
                _ => None,
            };
            let mut channels = Vec::with_capacity(ids.len());
            for id in ids {
                let stream = find::<Stream>(write, id.0)?;
                let number = match (wish, start) {
                    (None, _) => of_provider(write, &stream, &mut taken)?,
                    (Some(NumberWish::AfterHighest), _) => taken.after_highest(write)?,
                    (_, Some(start)) => taken.next_from(write, start)?,
                    (_, None) => taken.lowest(write)?,
                };
                start = start.map(|_| number);
                channels.push(make(write, &stream, number, None)?.id);
            }
            set_lineups(write, &channels, &lineups)?;
            Ok(channels)
        })
        .await?;
    let created_count = channel_ids.len();
    Ok(Created(ChannelsMadeView {
        message: format!("Created {created_count} channels"),
        created_count,
        channel_ids,
    }))
}

/// Returns the provider's number if it has one that is free, otherwise the lowest free number.
fn of_provider(write: &Write<'_>, stream: &Stream, taken: &mut Taken) -> Result<ChannelNumber, Refusal> {
    match stream.provider.number {
        Some(number) if !number.is_zero() && taken.take(write, number)? => Ok(number),
        _ => taken.lowest(write),
    }
}

/// Creates a channel with the metadata of the stream.
fn make(
    write: &mut Write<'_>,
    stream: &Stream,
    number: ChannelNumber,
    name: Option<String>,
) -> Result<Channel, Refusal> {
    let id = ChannelId(write.next_id::<Channel>()?);
    let name = name.unwrap_or_else(|| stream.name().chars().take(CHANNEL_NAME_CHARS_MAX).collect());
    let channel = Channel {
        number: Some(number),
        group: group_of(write, stream)?,
        logo: stream.logo().map(str::to_owned),
        tvg_id: stream.tvg_id().map(str::to_owned),
        streams: vec![stream.id],
        ..Channel::new(id, Uuid::new_v4(), name, now_ms())
    };
    write.put(&channel)?;
    Ok(channel)
}

/// Returns the channel group with the name of the stream's group. Creates it if it does not exist.
fn group_of(write: &mut Write<'_>, stream: &Stream) -> Result<Option<GroupId>, Refusal> {
    let Some(name) = stream.group().filter(|it| it.chars().count() <= GROUP_NAME_CHARS_MAX) else {
        return Ok(None);
    };
    if let Some(group) = write.by::<Group>("name", name)?.first() {
        return Ok(Some(group.id));
    }
    let group = Group::new(GroupId(write.next_id::<Group>()?), name);
    write.put(&group)?;
    Ok(Some(group.id))
}
