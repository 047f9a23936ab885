//! What is done to many channels at once. All of it lands, or nothing does.

use std::collections::{BTreeSet, HashSet};

use domain::channel::{Channel, ChannelNumber};
use domain::ids::{ChannelId, GroupId};

use super::edit::ChannelEdit;
use super::filters::visible;
use super::numbers::{Changes, conflicts, holder, put_all};
use super::view::{ChannelRecord, ChannelViews};
use crate::http::reply::Refusal;
use crate::rest::api::channels::values::{ChannelNumberValue, no_such};
use crate::rest::frame::call::{Call, find};
use crate::rest::frame::input::{FieldErrors, Many};
use crate::rest::frame::record::{body, query, view};
use crate::rest::frame::route::Done;

/// Channels of one request: what one write has room for, twice over.
pub(super) const MANY: usize = 5_000;

view! {
    /// What became of a deletion.
    ChannelDeletion {
        /// For people.
        message: String [example("Deleted 2 channels")],
        /// How many there were.
        deleted_count: usize [example("2")],
    }
}

body! {
    /// Which channels to delete.
    ChannelsToDelete {
        /// Their ids. Those that are not there are passed over.
        ids: Vec<ChannelId> [also(&["channel_ids"]), items_max(MANY), example("[1, 2]")],
    }
}

query! {
    /// Which channels to delete, for clients whose DELETE has no body.
    IdsInQuery {
        /// Their ids, with commas between them.
        ids: Vec<ChannelId> [items_max(MANY)],
    }
}

pub(super) async fn bulk_delete(call: Call, body: ChannelsToDelete) -> Result<ChannelDeletion, Refusal> {
    let deleted_count = remove_all(&call, body.ids.ok_or_else(no_ids)?).await?;
    Ok(ChannelDeletion { message: format!("Deleted {deleted_count} channels"), deleted_count })
}

pub(super) async fn bulk_remove(
    call: Call,
    (query, body): (IdsInQuery, ChannelsToDelete),
) -> Result<Done, Refusal> {
    remove_all(&call, body.ids.or(query.ids).ok_or_else(no_ids)?).await?;
    Ok(Done)
}

fn no_ids() -> Refusal {
    Refusal::field("ids", "This field is required.")
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

view! {
    /// What became of a change.
    ChannelsChanged {
        /// For people.
        message: String [example("Successfully updated 2 channels")],
        /// The channels as they are now, in the order of the request.
        channels: Vec<ChannelRecord>,
    }
}

/// Changes many channels, each in its own way.
pub(super) async fn edit_many(
    call: Call,
    Many(edits): Many<ChannelEdit, MANY>,
) -> Result<ChannelsChanged, Refusal> {
    let channels = call
        .write(move |write| {
            let mut errors = FieldErrors::default();
            let (mut changes, mut items, mut seen): (Changes, Vec<usize>, _) = Default::default();
            for (n, edit) in edits.into_iter().enumerate() {
                let seen: &mut HashSet<ChannelId> = &mut seen;
                let before = match edit.id {
                    None => Err("This field is required.".to_owned()),
                    Some(id) if !seen.insert(id) => Err(format!("Channel {id} is there more than once.")),
                    Some(id) => write.get::<Channel>(id.0)?.ok_or_else(|| no_such(id)),
                };
                match before {
                    Err(message) => errors.add("id", item(n, &message)),
                    Ok(before) => match edit.apply(write, &before)? {
                        Err(of_item) => errors.append(of_item.each(|it| item(n, it))),
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
            if errors.is_empty() { put_all(write, changes) } else { Err(errors.into()) }
        })
        .await?;
    let views = ChannelViews::of(&call);
    let message = format!("Successfully updated {} channels", channels.len());
    Ok(ChannelsChanged { message, channels: channels.iter().map(|it| views.channel(it)).collect() })
}

/// What is wrong with an item of a list, as everywhere else.
fn item(n: usize, message: &str) -> String {
    format!("Item {}: {message}", n + 1)
}

body! {
    /// Numbers in a row.
    NumbersToAssign {
        /// The channels in the order in which they are numbered, each once.
        channel_ids: Vec<ChannelId> [required(), items_max(MANY), example("[1, 2]")],
        /// The number of the first; 1 where nothing is said.
        starting_number: ChannelNumberValue [example("100")],
    }
}

view! {
    /// What was numbered.
    NumbersAssigned {
        /// For people.
        message: String [example("Numbered 2 channels")],
        /// The numbers, in the order of the request.
        channel_numbers: Vec<ChannelNumberValue> [example("[100, 101]")],
    }
}

/// Numbers channels in a row. Numbers that others have are passed over.
pub(super) async fn assign(call: Call, body: NumbersToAssign) -> Result<NumbersAssigned, Refusal> {
    let ids = body.channel_ids.unwrap_or_default();
    let start = body.starting_number.map_or(ChannelNumber::ONE, |it| it.0);
    let channels = call
        .write(move |write| {
            let mut errors = FieldErrors::default();
            let (mut before, mut seen) = (Vec::new(), HashSet::new());
            for id in &ids {
                match write.get::<Channel>(id.0)? {
                    _ if !seen.insert(*id) => {
                        errors.add("channel_ids", format!("Channel {id} is there more than once."))
                    }
                    None => errors.add("channel_ids", no_such(id)),
                    Some(channel) => before.push(channel),
                }
            }
            if !errors.is_empty() {
                return Err(errors.into());
            }
            let mut number = Some(start);
            let mut changes = Changes::new();
            for channel in before {
                let free = loop {
                    let Some(it) = number else {
                        return Err(Refusal::field(
                            "starting_number",
                            "There are not enough numbers behind this one.",
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
    Ok(NumbersAssigned { message: format!("Numbered {} channels", channels.len()), channel_numbers })
}

query! {
    /// Which numbers.
    NumberRange {
        /// The first.
        start: ChannelNumberValue [required(), example("1")],
        /// The last; no end where nothing is said.
        end: ChannelNumberValue [example("99")],
    }
}

view! {
    /// Who has the numbers of a range.
    NumbersInRange {
        /// The channels, by number.
        occupants: Vec<Occupant>,
    }
}

view! {
    /// A channel that has a number.
    Occupant {
        /// Its id.
        id: ChannelId,
        /// Its name.
        name: String,
        /// Its number.
        channel_number: ChannelNumberValue,
        /// The name of its channel group.
        channel_group: Option<String>,
        /// Its channel group.
        channel_group_id: Option<GroupId>,
    }
}

pub(super) async fn numbers_in_range(call: Call, range: NumberRange) -> Result<NumbersInRange, Refusal> {
    let groups = call.app.models.groups.load();
    let is_in = |it: ChannelNumber| {
        range.start.is_none_or(|start| start.0 <= it) && range.end.is_none_or(|end| it <= end.0)
    };
    let channels = call.app.models.channels.load();
    let channels = channels.iter().filter(|it| visible(&call, it));
    let mut occupants: Vec<Occupant> = channels
        .filter_map(|it| {
            let number = it.number.filter(|it| is_in(*it))?;
            let group = it.group.and_then(|it| groups.get(it.0));
            Some(Occupant {
                id: it.id,
                name: it.name.clone(),
                channel_number: ChannelNumberValue(number),
                channel_group: group.map(|it| it.name.clone()),
                channel_group_id: it.group,
            })
        })
        .collect();
    occupants.sort_by_key(|it| it.channel_number.0);
    Ok(NumbersInRange { occupants })
}

body! {
    /// Where a channel is to stand.
    ChannelPlace {
        /// The channel before it; `null` is none.
        insert_after_id: Option<ChannelId> [example("7")],
    }
}

view! {
    /// Where a channel stands now.
    ChannelMoved {
        /// For people.
        message: String [example("Channel News has number 5")],
        /// The channel as it is now.
        channel: ChannelRecord,
    }
}

/// Gives a channel the whole number after another one's; those that stand there move up by as little as makes room.
pub(super) async fn reorder(call: Call, place: ChannelPlace) -> Result<ChannelMoved, Refusal> {
    let id = call.id()?;
    let after = place.insert_after_id.flatten();
    let channel = call
        .write(move |write| {
            let channel = find::<Channel>(write, id)?;
            let no_place = |message: String| Refusal::field("insert_after_id", message);
            let before = match after {
                None => None,
                Some(it) if it == channel.id => {
                    return Err(no_place("A channel cannot stand after itself.".to_owned()));
                }
                Some(it) => Some(write.get::<Channel>(it.0)?.ok_or_else(|| no_place(no_such(it)))?),
            };
            let last = match before {
                None => None,
                Some(it) => {
                    Some(it.number.ok_or_else(|| no_place("That channel has no number.".to_owned()))?)
                }
            };
            let no_number_left = || no_place("No channel number is left there.".to_owned());
            let mut number = ChannelNumber::next_after([last]).ok_or_else(no_number_left)?;
            let mut changes: Changes = vec![(channel.clone(), Channel { number: Some(number), ..channel })];
            // Whoever has the number gets the next one, and so on until one is free.
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
    Ok(ChannelMoved { message, channel: ChannelViews::of(&call).channel(&channel) })
}
