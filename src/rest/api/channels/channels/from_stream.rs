//! Channels that are made of streams, one of each.

use actors::now_ms;
use domain::channel::{CHANNEL_NAME_CHARS_MAX, Channel, ChannelNumber};
use domain::group::{GROUP_NAME_CHARS_MAX, Group};
use domain::ids::{ChannelId, GroupId, StreamId};
use domain::stream::Stream;
use serde_json::Value;
use storage::Write;
use uuid::Uuid;

use super::bulk::MANY;
use super::edit::check_streams;
use super::numbers::Taken;
use super::view::{ChannelRecord, ChannelViews};
use crate::http::reply::Refusal;
use crate::rest::api::channels::values::{ChannelNumberValue, Text};
use crate::rest::frame::call::{Call, find};
use crate::rest::frame::field::{Field, Kind};
use crate::rest::frame::input::FieldErrors;
use crate::rest::frame::record::{body, view};
use crate::rest::frame::route::Created;
use crate::rest::frame::value::{Readable, Shape};

body! {
    /// Which stream becomes a channel.
    FromStream {
        /// The stream.
        stream_id: StreamId [required(), example("1")],
        /// The channel's number. 0 is the lowest whole number that is free, -1 the one after the highest; where nothing
        /// is said it is what the provider says, if that is free, else the lowest free one.
        channel_number: Option<NumberWish> [also(&["number"]), example("0")],
        /// The channel's name; the stream's where nothing is said.
        name: Text [chars_max(CHANNEL_NAME_CHARS_MAX)],
    }
}

body! {
    /// Which streams become channels.
    FromStreams {
        /// The streams, in the order in which their channels are numbered; each once.
        stream_ids: Vec<StreamId> [required(), items_max(MANY), example("[1]")],
        /// The number of the first; the next ones follow, and numbers that others have are passed over. 0 is the lowest
        /// whole number that is free, -1 the one after the highest; where nothing is said each gets what its provider
        /// says, if that is free, else the lowest free one.
        starting_channel_number: Option<NumberWish> [example("0")],
    }
}

view! {
    /// The channels that were made.
    ChannelsMade {
        /// For people.
        message: String [example("Created 2 channels")],
        /// How many they are.
        created_count: usize [example("2")],
        /// Their ids, in the order of the request.
        channel_ids: Vec<ChannelId> [example("[7, 8]")],
    }
}

/// Which number a channel is to have.
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

pub(super) async fn from_stream(call: Call, body: FromStream) -> Result<Created<ChannelRecord>, Refusal> {
    let mut taken = Taken::of(&call.app.models.channels.load());
    let id = body.stream_id.ok_or_else(|| Refusal::field("stream_id", "This field is required."))?;
    let channel = call
        .write(move |write| {
            let stream = find::<Stream>(write, id.0)?;
            let number = match body.channel_number.flatten() {
                None => of_provider(write, &stream, &mut taken)?,
                Some(NumberWish::Lowest) => taken.lowest(write)?,
                Some(NumberWish::AfterHighest) => taken.after_highest(write)?,
                Some(NumberWish::At(number)) => match taken.take(write, number)? {
                    true => number,
                    false => return Err(Refusal::taken("channel_number")),
                },
            };
            make(write, &stream, number, body.name.map(|it| it.0))
        })
        .await?;
    Ok(Created(ChannelViews::of(&call).channel(&channel)))
}

pub(super) async fn from_streams(call: Call, body: FromStreams) -> Result<Created<ChannelsMade>, Refusal> {
    let mut taken = Taken::of(&call.app.models.channels.load());
    let ids = body.stream_ids.unwrap_or_default();
    let wish = body.starting_channel_number.flatten();
    let channel_ids = call
        .write(move |write| {
            let mut errors = FieldErrors::default();
            check_streams(write, "stream_ids", &ids, &mut errors)?;
            if !errors.is_empty() {
                return Err(errors.into());
            }
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
            Ok(channels)
        })
        .await?;
    let created_count = channel_ids.len();
    Ok(Created(ChannelsMade {
        message: format!("Created {created_count} channels"),
        created_count,
        channel_ids,
    }))
}

/// The number that the provider says, if it is one and free; else the lowest free one.
fn of_provider(write: &Write<'_>, stream: &Stream, taken: &mut Taken) -> Result<ChannelNumber, Refusal> {
    match stream.provider.number {
        Some(number) if !number.is_zero() && taken.take(write, number)? => Ok(number),
        _ => taken.lowest(write),
    }
}

/// A channel with all that the stream says.
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

/// The channel group of the stream's group, which is made where there is none.
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
