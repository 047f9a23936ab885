//! Channel numbers of many channels, and their order.

use std::collections::{HashSet, VecDeque};

use domain::channel::{Channel, ChannelNumber};
use domain::ids::{AccountId, ChannelId, GroupId};
use resource_derive::{Body, Query, View};
use route_frame::call::Call;
use serde::Serialize;
use server::reply::Refusal;
use storage::Write;

use super::numbers::{Changes, holder, put_all};
use super::selection::{MANY, Selection};
use super::view::ChannelView;
use crate::api::channels::undo::{Author, UndoHandleView, UndoLog};
use crate::api::channels::values::{ChannelNumberValue, no_such};
use crate::context::RestCall;
use crate::record::{RecordCall, find};

/// Assigns consecutive numbers.
#[derive(Clone, Debug, Body)]
pub(crate) struct NumbersToAssign {
    /// Number of the first channel; 1 by default.
    #[field(example = "100")]
    starting_number: Option<ChannelNumberValue>,
}

/// The assigned numbers.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct NumbersAssignedView {
    /// Message for people.
    #[field(example = "Numbered 2 channels")]
    message: String,
    /// Number of selected channels.
    #[field(example = "2")]
    updated_count: usize,
    /// Ids of the channels, in order.
    #[field(example = "[1, 2]")]
    channel_ids: Vec<ChannelId>,
    /// Numbers in the same order.
    #[field(example = "[100, 101]")]
    channel_numbers: Vec<ChannelNumberValue>,
    /// The handle with which the operation can be undone; `null` if nothing has changed.
    undo: Option<UndoHandleView>,
}

/// Writes new numbers, and returns them with the handle.
fn number_all(
    write: &mut Write<'_>,
    changes: Changes,
    author: &Author,
) -> Result<NumbersAssignedView, Refusal> {
    let mut log = UndoLog::default();
    let channels = put_all(write, changes, &mut log)?;
    let message = format!("Numbered {} channels", channels.len());
    let undo = log.keep(write, author, &message)?;
    Ok(NumbersAssignedView {
        message,
        updated_count: channels.len(),
        channel_ids: channels.iter().map(|it| it.id).collect(),
        channel_numbers: channels.iter().filter_map(|it| it.number).map(ChannelNumberValue).collect(),
        undo,
    })
}

/// Assigns consecutive numbers to channels, and skips numbers of other channels.
pub(super) async fn assign(
    call: Call,
    (selection, body): (Selection, NumbersToAssign),
) -> Result<NumbersAssignedView, Refusal> {
    let selected = selection.resolve(&call)?;
    let author = Author::new(&call)?;
    let start = body.starting_number.map_or(ChannelNumber::ONE, |it| it.0);
    call.write(move |write| {
        let before = selected.load(write)?;
        let own: HashSet<ChannelId> = before.iter().map(|it| it.id).collect();
        let mut number = Some(start);
        let mut changes = Changes::new();
        for channel in before {
            let free = loop {
                let Some(it) = number else {
                    let message = "Not enough numbers are left after this one.";
                    return Err(Refusal::field("starting_number", message));
                };
                number = it.next();
                if holder(write, it)?.is_none_or(|it| own.contains(&it.id)) {
                    break it;
                }
            };
            changes.push((channel.clone(), Channel { number: Some(free), ..channel }));
        }
        number_all(write, changes, &author)
    })
    .await
}

/// Selects a range of numbers.
#[derive(Debug, Query)]
pub(crate) struct NumberRange {
    /// First number.
    #[field(example = "1")]
    start: ChannelNumberValue,
    /// Last number; no limit by default.
    #[field(example = "99")]
    end: Option<ChannelNumberValue>,
}

/// Channels with a number in a range.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct NumbersInRangeView {
    /// Channels in the order of their numbers.
    occupants: Vec<OccupantView>,
}

/// A channel that has a number.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct OccupantView {
    /// Id of the channel.
    id: ChannelId,
    /// Name of the channel.
    name: String,
    /// Number of the channel.
    channel_number: ChannelNumberValue,
    /// Name of the channel group.
    channel_group: Option<String>,
    /// Id of the channel group.
    channel_group_id: Option<GroupId>,
    /// Whether a refresh created the channel for a stream of a group with automatic channels.
    auto_created: bool,
    /// Id of the account whose refresh created the channel.
    auto_created_by_account_id: Option<AccountId>,
    /// Whether an admin changed the number of such a channel.
    has_channel_number_override: bool,
}

pub(super) async fn numbers_in_range(call: Call, range: NumberRange) -> Result<NumbersInRangeView, Refusal> {
    let groups = call.rest().models.groups.load();
    let is_in = |it: ChannelNumber| range.start.0 <= it && range.end.is_none_or(|end| it <= end.0);
    let (channels, is_listed) = (call.rest().models.channels.load(), call.listed());
    let channels = channels.iter().filter(|it| is_listed(it));
    let mut occupants: Vec<OccupantView> = channels
        .filter_map(|it| {
            let number = it.number.filter(|it| is_in(*it))?;
            let group = it.group.and_then(|it| groups.get(it.0));
            Some(OccupantView {
                id: it.id,
                name: it.name.clone(),
                channel_number: ChannelNumberValue(number),
                channel_group: group.map(|it| it.name.clone()),
                channel_group_id: it.group,
                auto_created: it.followed().is_some(),
                auto_created_by_account_id: it.followed().map(|it| it.account),
                has_channel_number_override: it.edited_values().contains(&"channel_number"),
            })
        })
        .collect();
    occupants.sort_by_key(|it| it.channel_number.0);
    Ok(NumbersInRangeView { occupants })
}

/// Position for a channel.
#[derive(Clone, Debug, Body)]
pub(crate) struct ChannelPlace {
    /// Id of the preceding channel; `null` for the first position.
    #[field(example = "7")]
    insert_after_id: Option<Option<ChannelId>>,
}

/// New position of a channel.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ChannelMovedView {
    /// Message for people.
    #[field(example = "Channel News has number 5")]
    message: String,
    /// The channel after the change.
    channel: ChannelView,
    /// The handle with which the move can be undone; `null` if nothing has changed.
    undo: Option<UndoHandleView>,
}

/// Gives a channel the whole number after another channel's. Channels with conflicting numbers move up by the minimum
/// that makes room.
pub(super) async fn reorder(call: Call, place: ChannelPlace) -> Result<ChannelMovedView, Refusal> {
    let (id, author) = (call.id()?, Author::new(&call)?);
    let (channel, message, undo) = call
        .write(move |write| {
            let channel = find::<Channel>(write, id)?;
            let changes = moved_behind(write, vec![channel], place.insert_after_id.flatten())?;
            let mut log = UndoLog::default();
            let first = put_all(write, changes, &mut log)?.into_iter().next();
            let channel = first.ok_or_else(|| Refusal::fault("move a channel"))?;
            let number = channel.number.map(|it| it.to_string()).unwrap_or_default();
            let message = format!("Channel {} has number {number}", channel.name);
            let undo = log.keep(write, &author, &message)?;
            Ok((channel, message, undo))
        })
        .await?;
    Ok(ChannelMovedView { message, channel: call.render(&channel)?, undo })
}

/// Moves channels behind another one, as one block: the first gets the next whole number, and so on. The channels that
/// have these numbers move up by the minimum that makes room. The moved ones come first in the result.
fn moved_behind(
    write: &Write<'_>,
    channels: Vec<Channel>,
    after: Option<ChannelId>,
) -> Result<Changes, Refusal> {
    let no_place = |message: String| Refusal::field("insert_after_id", message);
    let no_number_left = || no_place("No channel number is left after that channel.".to_owned());
    let moved: HashSet<ChannelId> = channels.iter().map(|it| it.id).collect();
    let last = match after {
        None => None,
        Some(it) if moved.contains(&it) => {
            return Err(no_place("A channel cannot follow itself.".to_owned()));
        }
        Some(it) => {
            let before = write.get::<Channel>(it.0)?.ok_or_else(|| no_place(no_such(it)))?;
            let number = before.number;
            Some(number.ok_or_else(|| no_place("The preceding channel has no number.".to_owned()))?)
        }
    };
    let mut number = ChannelNumber::next_after([last]).ok_or_else(no_number_left)?;
    let mut waiting = VecDeque::from(channels);
    let mut changes = Changes::new();
    // The holder of a number waits for the next one, until a number is free.
    while let Some(channel) = waiting.pop_front() {
        if let Some(next) = holder(write, number)?.filter(|it| !moved.contains(&it.id) && it.id != channel.id)
        {
            waiting.push_back(next);
        }
        changes.push((channel.clone(), Channel { number: Some(number), ..channel }));
        if !waiting.is_empty() {
            number = number.next().ok_or_else(no_number_left)?;
        }
        if changes.len() > MANY + moved.len() {
            return Err(no_place(format!("More than {MANY} channels would have to move.")));
        }
    }
    Ok(changes)
}

/// New order of channels.
#[derive(Clone, Debug, Body)]
pub(crate) struct ChannelOrder {
    /// Id of the channel behind which the channels move as one block; `null` for the first position. By default the
    /// channels exchange the numbers that they have.
    #[field(example = "9")]
    insert_after_id: Option<Option<ChannelId>>,
}

/// Changes the order of many channels.
pub(super) async fn reorder_all(
    call: Call,
    (selection, body): (Selection, ChannelOrder),
) -> Result<NumbersAssignedView, Refusal> {
    let selected = selection.resolve(&call)?;
    let author = Author::new(&call)?;
    call.write(move |write| {
        let channels = selected.load(write)?;
        let changes = match body.insert_after_id {
            Some(after) if !channels.is_empty() => moved_behind(write, channels, after)?,
            _ => exchanged(channels)?,
        };
        number_all(write, changes, &author)
    })
    .await
}

/// Gives the lowest number of the channels to the first one, and so on.
fn exchanged(channels: Vec<Channel>) -> Result<Changes, Refusal> {
    let without: Vec<String> =
        channels.iter().filter(|it| it.number.is_none()).take(10).map(|it| it.id.to_string()).collect();
    if !without.is_empty() {
        let message = format!("Channels without a number have no place in an order: {}.", without.join(", "));
        return Err(Refusal::field("ids", message));
    }
    let mut numbers: Vec<ChannelNumber> = channels.iter().filter_map(|it| it.number).collect();
    numbers.sort_unstable();
    let change = |(channel, number): (Channel, ChannelNumber)| {
        (channel.clone(), Channel { number: Some(number), ..channel })
    };
    Ok(channels.into_iter().zip(numbers).map(change).collect())
}
