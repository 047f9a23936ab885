//! Writes a replacement, with what is needed to undo it.

use std::collections::HashMap;
use std::sync::Arc;

use actors::{any_adult, now_ms};
use domain::channel::Channel;
use domain::ids::{ChannelId, StreamId};
use domain::stream::Stream;
use route_frame::call::Call;
use server::reply::Refusal;
use storage::Write;

use super::comparison::Comparison;
use crate::api::channels::undo::{Author, UndoHandleView, UndoLog};

/// Number of channels that one commit changes.
const CHANNELS_AT_ONCE: usize = 2_000;

/// The written changes.
#[derive(Default)]
pub(super) struct Done {
    /// Number of changed channels.
    pub(super) n_channels: usize,
    /// Number of removed channels.
    pub(super) n_removed: usize,
    pub(super) undo: Option<UndoHandleView>,
}

/// A part of the work of one commit.
enum Part {
    Replace(Vec<ChannelId>),
    Remove(Vec<ChannelId>),
}

/// Puts the replacements into the channels, then removes the channels that would be duplicates. All commits have one handle,
/// as long as its limits allow. `message` is that of the undo for a number of changed channels.
pub(super) async fn carry_out(
    call: &Call,
    found: &Arc<Comparison>,
    author: &Author,
    message: impl Fn(usize) -> String,
) -> Result<Done, Refusal> {
    let mut done = Done::default();
    let replaced = found.channels.chunks(CHANNELS_AT_ONCE).map(|it| Part::Replace(it.to_vec()));
    let removed = found.duplicates.removed.chunks(CHANNELS_AT_ONCE).map(|it| Part::Remove(it.to_vec()));
    for part in replaced.chain(removed) {
        let n_before = done.n_channels;
        let message = match &part {
            Part::Replace(ids) => message(n_before + ids.len()),
            Part::Remove(_) => message(n_before),
        };
        let (found, author, begun) = (Arc::clone(found), author.clone(), done.undo.as_ref().map(|it| it.id));
        let (n_replaced, n_removed, undo) =
            call.write(move |write| write_part(write, &found, &part, (&author, &message, begun))).await?;
        done.n_channels += n_replaced;
        done.n_removed += n_removed;
        done.undo = undo.or(done.undo);
    }
    Ok(done)
}

/// Returns the numbers of replaced and of removed channels.
fn write_part(
    write: &mut Write<'_>,
    found: &Comparison,
    part: &Part,
    (author, message, begun): (&Author, &str, Option<u32>),
) -> Result<(usize, usize, Option<UndoHandleView>), Refusal> {
    let mut log = UndoLog::default();
    let (n_replaced, n_removed) = match part {
        Part::Replace(ids) => (replace(write, found, ids, &mut log)?, 0),
        Part::Remove(ids) => (0, remove(write, found, ids, &mut log)?),
    };
    Ok((n_replaced, n_removed, log.keep_with(write, author, message, begun)?))
}

fn replace(
    write: &mut Write<'_>,
    found: &Comparison,
    ids: &[ChannelId],
    log: &mut UndoLog,
) -> Result<usize, Refusal> {
    // A refresh may have removed some meanwhile.
    let exists = |it: &StreamId| write.owner_of::<Stream>(it.0) == Some(u64::from(found.to.0));
    let pairs = found.pairs.iter().filter(|it| exists(&it.to));
    let replacements: HashMap<StreamId, StreamId> = pairs.map(|it| (it.from, it.to)).collect();
    let mut n_changed = 0;
    for id in ids {
        let Some(before) = write.get::<Channel>(id.0)? else { continue };
        let mut channel = before.clone();
        if !channel.replace_streams(&replacements) {
            continue;
        }
        if !channel.is_adult_by_hand() {
            let is_marked = is_marked(write, found, &channel)?;
            channel.follow_adult_mark(is_marked);
        }
        channel.updated_at = now_ms();
        write.put(&channel)?;
        log.edited(&before, &channel);
        n_changed += 1;
    }
    Ok(n_changed)
}

/// Returns whether a channel is adult content by its streams or groups. Reads only streams of further accounts.
fn is_marked(write: &Write<'_>, found: &Comparison, channel: &Channel) -> storage::Result<bool> {
    let streams = &channel.streams;
    if streams.iter().any(|it| found.listed.get(it).is_some_and(|it| it.is_adult)) {
        return Ok(true);
    }
    let others: Vec<StreamId> = streams.iter().copied().filter(|it| !found.listed.contains_key(it)).collect();
    any_adult(write, &others, channel.group)
}

/// Removes the channels of a refresh whose streams other channels have by now.
fn remove(
    write: &mut Write<'_>,
    found: &Comparison,
    ids: &[ChannelId],
    log: &mut UndoLog,
) -> Result<usize, Refusal> {
    let mut n_removed = 0;
    for id in ids {
        let Some(channel) = write.get::<Channel>(id.0)? else { continue };
        let Some(stream) = channel.followed().filter(|it| it.account == found.to).map(|it| it.stream) else {
            continue;
        };
        // An admin may have changed it meanwhile, or the channel that takes its stream over.
        let users = write.by::<Channel>("stream", stream.0.to_be_bytes())?;
        if !channel.is_customized() && users.iter().any(|it| it.taken_streams().any(|it| it == stream)) {
            write.remove::<Channel>(id.0)?;
            log.deleted(channel);
            n_removed += 1;
        }
    }
    Ok(n_removed)
}
