//! Operations on many channels. One error discards all changes.

use std::collections::{BTreeSet, HashSet};

use domain::channel::{Channel, ChannelNumber};
use domain::ids::{ChannelId, GroupId};
use resource_derive::{Body, Query, View};
use serde::Serialize;

use super::edit::ChannelEdit;
use super::numbers::{Changes, conflicts, holder, put_all};
use super::view::{ChannelLookup, ChannelView};
use crate::http::reply::Refusal;
use crate::rest::api::channels::values::{ChannelNumberValue, no_such};
use crate::rest::frame::call::Call;
use crate::rest::frame::input::{FieldErrors, Many};
use crate::rest::frame::record::{Lookup, Render, find};
use crate::rest::frame::route::NoContent;

/// Maximum number of channels of one request: half of what one write can hold.
pub(super) const MANY: usize = 5_000;

/// Result of a deletion.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ChannelDeletionView {
    /// Message for people.
    #[field(example = "Deleted 2 channels")]
    message: String,
    /// Number of deleted channels.
    #[field(example = "2")]
    deleted_count: usize,
}

/// Selects the channels to delete.
#[derive(Clone, Debug, Body)]
pub(crate) struct ChannelsToDelete {
    /// Ids of the channels. Unknown ids are ignored.
    #[field(aliases = &["channel_ids"], items_max = MANY, example = "[1, 2]")]
    ids: Option<Vec<ChannelId>>,
}

/// Selects the channels to delete, for clients that send no body with DELETE.
#[derive(Debug, Query)]
pub(crate) struct IdsInQuery {
    /// Ids of the channels, separated by commas.
    #[field(items_max = MANY)]
    ids: Option<Vec<ChannelId>>,
}

pub(super) async fn bulk_delete(call: Call, body: ChannelsToDelete) -> Result<ChannelDeletionView, Refusal> {
    let deleted_count = remove_all(&call, body.ids.ok_or_else(|| FieldErrors::required("ids"))?).await?;
    Ok(ChannelDeletionView { message: format!("Deleted {deleted_count} channels"), deleted_count })
}

pub(super) async fn bulk_remove(
    call: Call,
    (query, body): (IdsInQuery, ChannelsToDelete),
) -> Result<NoContent, Refusal> {
    remove_all(&call, body.ids.or(query.ids).ok_or_else(|| FieldErrors::required("ids"))?).await?;
    Ok(NoContent)
}

async fn remove_all(call: &Call, ids: Vec<ChannelId>) -> Result<usize, Refusal> {
    call.write(move |write| {
        let mut n_removed = 0;
        for id in ids.into_iter().collect::<BTreeSet<_>>() {
            n_removed += usize::from(write.remove::<Channel>(id.0)?);
        }
        Ok(n_removed)
    })
    .await
}

/// Result of a bulk update.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ChannelsChangedView {
    /// Message for people.
    #[field(example = "Successfully updated 2 channels")]
    message: String,
    /// The updated channels, in the order of the request.
    channels: Vec<ChannelView>,
}

/// Updates many channels, each with its own values.
pub(super) async fn edit_many(
    call: Call,
    Many(edits): Many<ChannelEdit, MANY>,
) -> Result<ChannelsChangedView, Refusal> {
    let channels = call
        .write(move |write| {
            let mut errors = FieldErrors::default();
            let (mut changes, mut items, mut seen): (Changes, Vec<usize>, _) = Default::default();
            for (n, edit) in edits.into_iter().enumerate() {
                let seen: &mut HashSet<ChannelId> = &mut seen;
                let before = match edit.id {
                    None => Err("This field is required.".to_owned()),
                    Some(id) if !seen.insert(id) => Err(format!("Channel {id} is listed more than once.")),
                    Some(id) => write.get::<Channel>(id.0)?.ok_or_else(|| no_such(id)),
                };
                match before {
                    Err(message) => errors.add("id", item(n, &message)),
                    Ok(before) => match edit.apply(write, &before)? {
                        Err(of_item) => errors.append(of_item.map(|it| item(n, it))),
                        Ok(channel) => {
                            changes.push((before, channel));
                            items.push(n);
                        }
                    },
                }
            }
            for n in conflicts(write, &changes)? {
                errors.add("channel_number", item(items[n], "This field must be unique."));
            }
            errors.or(())?;
            put_all(write, changes)
        })
        .await?;
    let lookup = ChannelLookup::load(&call)?;
    let message = format!("Successfully updated {} channels", channels.len());
    Ok(ChannelsChangedView { message, channels: channels.iter().map(|it| it.view(&lookup)).collect() })
}

/// Prefixes a message with the position of its item, as for all lists.
fn item(n: usize, message: &str) -> String {
    format!("Item {}: {message}", n + 1)
}

/// Assigns consecutive numbers.
#[derive(Clone, Debug, Body)]
pub(crate) struct NumbersToAssign {
    /// Ids of the channels in the order of their numbers, each once.
    #[field(items_max = MANY, example = "[1, 2]")]
    channel_ids: Vec<ChannelId>,
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
    /// Numbers in the order of the request.
    #[field(example = "[100, 101]")]
    channel_numbers: Vec<ChannelNumberValue>,
}

/// Assigns consecutive numbers to channels, and skips numbers of other channels.
pub(super) async fn assign(call: Call, body: NumbersToAssign) -> Result<NumbersAssignedView, Refusal> {
    let ids = body.channel_ids;
    let start = body.starting_number.map_or(ChannelNumber::ONE, |it| it.0);
    let channels = call
        .write(move |write| {
            let mut errors = FieldErrors::default();
            let (mut before, mut seen) = (Vec::new(), HashSet::new());
            for id in &ids {
                match write.get::<Channel>(id.0)? {
                    _ if !seen.insert(*id) => {
                        errors.add("channel_ids", format!("Channel {id} is listed more than once."))
                    }
                    None => errors.add("channel_ids", no_such(id)),
                    Some(channel) => before.push(channel),
                }
            }
            errors.or(())?;
            let mut number = Some(start);
            let mut changes = Changes::new();
            for channel in before {
                let free = loop {
                    let Some(it) = number else {
                        return Err(Refusal::field(
                            "starting_number",
                            "Not enough numbers are left after this one.",
                        ));
                    };
                    number = it.next();
                    let other = holder(write, it)?.filter(|it| !seen.contains(&it.id));
                    if other.is_none() {
                        break it;
                    }
                };
                changes.push((channel.clone(), Channel { number: Some(free), ..channel }));
            }
            put_all(write, changes)
        })
        .await?;
    let channel_numbers: Vec<_> =
        channels.iter().filter_map(|it| it.number).map(ChannelNumberValue).collect();
    Ok(NumbersAssignedView { message: format!("Numbered {} channels", channels.len()), channel_numbers })
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
}

pub(super) async fn numbers_in_range(call: Call, range: NumberRange) -> Result<NumbersInRangeView, Refusal> {
    let groups = call.app.models.groups.load();
    let is_in = |it: ChannelNumber| range.start.0 <= it && range.end.is_none_or(|end| it <= end.0);
    let (channels, is_listed) = (call.app.models.channels.load(), call.listed());
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
}

/// Gives a channel the whole number after another channel's. Channels with conflicting numbers move up by the minimum
/// that makes room.
pub(super) async fn reorder(call: Call, place: ChannelPlace) -> Result<ChannelMovedView, Refusal> {
    let id = call.id()?;
    let after = place.insert_after_id.flatten();
    let channel = call
        .write(move |write| {
            let channel = find::<Channel>(write, id)?;
            let no_place = |message: String| Refusal::field("insert_after_id", message);
            let before = match after {
                None => None,
                Some(it) if it == channel.id => {
                    return Err(no_place("A channel cannot follow itself.".to_owned()));
                }
                Some(it) => Some(write.get::<Channel>(it.0)?.ok_or_else(|| no_place(no_such(it)))?),
            };
            let last = match before {
                None => None,
                Some(it) => Some(
                    it.number.ok_or_else(|| no_place("The preceding channel has no number.".to_owned()))?,
                ),
            };
            let no_number_left = || no_place("No channel number is left after that channel.".to_owned());
            let mut number = ChannelNumber::next_after([last]).ok_or_else(no_number_left)?;
            let mut changes: Changes = vec![(channel.clone(), Channel { number: Some(number), ..channel })];
            // The holder of the number gets the next one, until a number is free.
            while let Some(next) = holder(write, number)?.filter(|it| it.id.0 != id) {
                number = number.next().ok_or_else(no_number_left)?;
                changes.push((next.clone(), Channel { number: Some(number), ..next }));
            }
            let first = put_all(write, changes)?.into_iter().next();
            first.ok_or_else(|| Refusal::fault("move a channel"))
        })
        .await?;
    let number = channel.number.map(|it| it.to_string()).unwrap_or_default();
    let message = format!("Channel {} has number {number}", channel.name);
    Ok(ChannelMovedView { message, channel: call.render(&channel)? })
}
