//! Assigns streams to many existing channels.

use std::collections::HashSet;

use domain::channel::Channel;
use domain::ids::{ChannelId, StreamId};
use resource_derive::Body;
use route_frame::call::Call;
use route_frame::field::{Field, Kind};
use route_frame::input::Element;
use route_frame::value::{Readable, Shape};
use serde_json::Value;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;

use super::adult::follow_marks;
use super::bulk::BulkResultView;
use super::edit::{STREAMS_MAX, check_streams};
use super::numbers::{Changes, put_all};
use super::selection::{MANY, Selected, Selection};
use crate::api::channels::undo::{Author, UndoLog};
use crate::api::channels::values::{item, no_such};
use crate::choice::{Named, choice};

/// Maximum number of streams in all assignments of one request.
const STREAMS_OF_REQUEST_MAX: usize = 100_000;

choice!(
    enum AssignMode {
        Append = "append",
        Prepend = "prepend",
        Replace = "replace",
        Remove = "remove",
    }
);

/// Streams for one channel.
#[derive(Clone, Debug, Body)]
pub(crate) struct StreamAssignment {
    /// Id of the channel.
    #[field(example = "7")]
    channel_id: ChannelId,
    /// Ids of the streams, in order, each once.
    #[field(items_max = STREAMS_MAX, example = "[1, 2]")]
    stream_ids: Vec<StreamId>,
}

impl Shape for StreamAssignment {
    const KIND: Kind = Kind::Record(&StreamAssignment::RECORD);
}

impl Readable for StreamAssignment {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        Self::read_element(value, false).map_err(FieldErrors::first_message)
    }
}

/// Assigns streams to channels: `assignments` with streams for each channel, or `stream_ids` for all selected channels.
#[derive(Clone, Debug, Body)]
pub(crate) struct StreamsToAssign {
    /// `append` adds the streams at the end of the failover order, `prepend` at its beginning, `replace` makes them the
    /// whole order, and `remove` removes them. `append` by default.
    mode: Option<Named<AssignMode>>,
    /// Streams for each channel.
    #[field(items_max = MANY, example = "[{\"channel_id\": 7, \"stream_ids\": [1, 2]}]")]
    assignments: Option<Vec<StreamAssignment>>,
    /// Ids of the streams for all selected channels, in order, each once.
    #[field(items_max = STREAMS_MAX, example = "[1]")]
    stream_ids: Option<Vec<StreamId>>,
}

pub(super) async fn assign_streams(
    call: Call,
    (selection, body): (Selection, StreamsToAssign),
) -> Result<BulkResultView, Refusal> {
    let StreamsToAssign { mode, assignments, stream_ids } = body;
    let mode = mode.map_or(AssignMode::Append, |it| it.0);
    let author = Author::new(&call)?;
    let targets = match (assignments, stream_ids) {
        (Some(_), Some(_)) => {
            return Err(Refusal::field("stream_ids", "Send either assignments or stream_ids."));
        }
        (None, None) => return Err(FieldErrors::required("stream_ids").into()),
        (Some(assignments), None) => {
            if !selection.is_empty() {
                let message = "Send either assignments, or stream_ids and the channels for them.";
                return Err(Refusal::field("assignments", message));
            }
            Targets::Each(assignments)
        }
        (None, Some(streams)) => Targets::All(selection.resolve(&call)?, streams),
    };
    call.write(move |write| {
        let pairs = targets.load(write)?;
        let mut errors = FieldErrors::default();
        let mut changes = Changes::new();
        for (n, (before, streams)) in pairs.into_iter().enumerate() {
            let order = combined(mode, &before.streams, &streams);
            if order.len() > STREAMS_MAX {
                let message = format!("A channel has at most {STREAMS_MAX} streams.");
                errors.add("stream_ids", item(n, &message));
            }
            let mut channel = Channel { streams: order, ..before.clone() };
            follow_marks(write, &before, &mut channel)?;
            changes.push((before, channel));
        }
        errors.or(())?;
        let mut log = UndoLog::default();
        let channels = put_all(write, changes, &mut log)?;
        let message = format!("Assigned streams to {} channels", channels.len());
        let undo = log.keep(write, &author, &message)?;
        let channel_ids: Vec<ChannelId> = channels.iter().map(|it| it.id).collect();
        Ok(BulkResultView { message, updated_count: channel_ids.len(), channel_ids, undo })
    })
    .await
}

/// The channels, and the streams for them.
enum Targets {
    Each(Vec<StreamAssignment>),
    All(Selected, Vec<StreamId>),
}

impl Targets {
    fn load(self, write: &Write<'_>) -> Result<Vec<(Channel, Vec<StreamId>)>, Refusal> {
        let mut errors = FieldErrors::default();
        let assignments = match self {
            Targets::All(selected, streams) => {
                check_streams(write, "stream_ids", &streams, &mut errors);
                errors.or(())?;
                let channels = selected.load(write)?;
                check_total(channels.len() * streams.len())?;
                return Ok(channels.into_iter().map(|it| (it, streams.clone())).collect());
            }
            Targets::Each(assignments) => assignments,
        };
        check_total(assignments.iter().map(|it| it.stream_ids.len()).sum())?;
        let (mut pairs, mut seen) = (Vec::with_capacity(assignments.len()), HashSet::new());
        for (n, StreamAssignment { channel_id, stream_ids }) in assignments.into_iter().enumerate() {
            let mut of_item = FieldErrors::default();
            check_streams(write, "assignments", &stream_ids, &mut of_item);
            match write.get::<Channel>(channel_id.0)? {
                _ if !seen.insert(channel_id) => {
                    of_item.add("assignments", format!("Channel {channel_id} is listed more than once."));
                }
                None => of_item.add("assignments", no_such(channel_id)),
                Some(channel) => pairs.push((channel, stream_ids)),
            }
            errors.append(of_item.map(|it| item(n, it)));
        }
        errors.or(())?;
        Ok(pairs)
    }
}

fn check_total(n: usize) -> Result<(), Refusal> {
    if n <= STREAMS_OF_REQUEST_MAX {
        return Ok(());
    }
    let message =
        format!("{n} assignments of streams; at most {STREAMS_OF_REQUEST_MAX} are possible at once.");
    Err(Refusal::field("stream_ids", message))
}

/// Returns the failover order after an assignment. `append` keeps the place of streams that the channel has already.
fn combined(mode: AssignMode, now: &[StreamId], streams: &[StreamId]) -> Vec<StreamId> {
    let named: HashSet<StreamId> = streams.iter().copied().collect();
    let others = now.iter().copied().filter(|it| !named.contains(it));
    match mode {
        AssignMode::Append => {
            // What is there keeps its place, so that the preferred stream stays the same.
            let present: HashSet<StreamId> = now.iter().copied().collect();
            now.iter().copied().chain(streams.iter().copied().filter(|it| !present.contains(it))).collect()
        }
        AssignMode::Prepend => streams.iter().copied().chain(others).collect(),
        AssignMode::Replace => streams.to_vec(),
        AssignMode::Remove => others.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_added_at_either_end_or_replace_the_order() {
        let ids = |ids: &[u32]| ids.iter().map(|it| StreamId(*it)).collect::<Vec<_>>();
        let check = |mode, expected: &[u32]| {
            assert_eq!(combined(mode, &ids(&[1, 2, 3]), &ids(&[4, 2])), ids(expected));
        };
        check(AssignMode::Append, &[1, 2, 3, 4]);
        check(AssignMode::Prepend, &[4, 2, 1, 3]);
        check(AssignMode::Replace, &[4, 2]);
        check(AssignMode::Remove, &[1, 3]);
    }
}
