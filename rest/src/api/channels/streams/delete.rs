//! Deletes streams, one or many. A deletion of many can be undone.

use std::collections::{BTreeSet, HashSet};

use actors::now_ms;
use domain::account::RefreshRecord;
use domain::channel::Channel;
use domain::ids::{AccountId, ChannelId, StreamId};
use domain::stream::Stream;
use resource_derive::{Body, Query, View};
use route_frame::call::Call;
use route_frame::route::NoContent;
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::{StreamIdChanges, Write};

use super::filters::{IDS_MAX, select};
use crate::api::channels::channels::too_many;
use crate::api::channels::undo::{Author, UndoHandleView, UndoLog};

/// Number of streams that one write deletes. Each may be in a block of its own, and a write can hold a few thousand
/// blocks.
const DELETED_AT_ONCE: usize = 1_000;

/// Selects the streams to delete.
#[derive(Clone, Debug, Body)]
pub(crate) struct StreamsToDelete {
    /// Ids of the streams. Unknown ids are ignored.
    #[field(aliases = &["stream_ids"], items_max = IDS_MAX, example = "[1, 2]")]
    ids: Option<Vec<StreamId>>,
    /// Instead of ids: filters of the list of streams.
    #[field(example = "{\"channel_group_name\": \"News\"}")]
    filter: Option<Map<String, Value>>,
    /// Ids of streams to leave out.
    #[field(items_max = IDS_MAX, example = "[2]")]
    except: Option<Vec<StreamId>>,
}

/// Selects the streams to delete, for clients that send no body with DELETE.
#[derive(Debug, Query)]
pub(crate) struct IdsInQuery {
    /// Ids of the streams, separated by commas.
    #[field(items_max = IDS_MAX)]
    ids: Option<Vec<StreamId>>,
}

/// Result of a deletion.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct DeletionView {
    /// Message for people.
    #[field(example = "Deleted 2 streams")]
    message: String,
    /// Number of deleted streams.
    #[field(example = "2")]
    deleted_count: usize,
    /// The handle with which the deletion can be undone; `null` if nothing was deleted.
    undo: Option<UndoHandleView>,
}

pub(super) async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let id = call.id()?;
    call.write(move |write| match remove(write, &[StreamId(id)], &mut UndoLog::default())? {
        0 => Err(Refusal::unknown::<Stream>()),
        _ => Ok(NoContent),
    })
    .await
}

pub(super) async fn bulk_delete(call: Call, body: StreamsToDelete) -> Result<DeletionView, Refusal> {
    delete_all(&call, body).await
}

/// The handle of the undo is in the list of operations that can be undone, because the answer has no body.
pub(super) async fn bulk_remove(
    call: Call,
    (query, body): (IdsInQuery, StreamsToDelete),
) -> Result<NoContent, Refusal> {
    let ids = if body.filter.is_some() { body.ids } else { body.ids.or(query.ids) };
    delete_all(&call, StreamsToDelete { ids, ..body }).await.map(|_| NoContent)
}

/// Uses several commits for many streams. Missing streams are ignored, so repeating the request completes an
/// interrupted one.
async fn delete_all(call: &Call, body: StreamsToDelete) -> Result<DeletionView, Refusal> {
    let ids = match (body.ids, body.filter) {
        (Some(_), Some(_)) => return Err(Refusal::field("filter", "Send either ids or filter.")),
        (Some(ids), None) => ids,
        (None, Some(filter)) => select(call, &filter).await?,
        (None, None) => return Err(FieldErrors::required("ids").into()),
    };
    let except: HashSet<StreamId> = body.except.into_iter().flatten().collect();
    let ids: BTreeSet<StreamId> = ids.into_iter().filter(|it| !except.contains(it)).collect();
    if ids.len() > IDS_MAX {
        return Err(too_many("streams", ids.len(), IDS_MAX));
    }
    let ids: Vec<StreamId> = ids.into_iter().collect();
    let author = Author::new(call)?;
    // Before the streams, so that each channel changes once, which an undo compares.
    let (of_channels, by) = (ids.clone(), author.clone());
    let mut undo = call
        .write(move |write| {
            let mut log = UndoLog::default();
            remove_from_channels(write, &of_channels, &mut log)?;
            log.keep(write, &by, "Deleted streams")
        })
        .await?;
    let mut deleted_count = 0;
    for some in ids.chunks(DELETED_AT_ONCE) {
        let (some, author, begun) = (some.to_vec(), author.clone(), undo.as_ref().map(|it| it.id));
        let n_before = deleted_count;
        let (n_deleted, handle) = call
            .write(move |write| {
                let mut log = UndoLog::default();
                let n_deleted = remove(write, &some, &mut log)?;
                let message = deleted(n_before + n_deleted);
                Ok((n_deleted, log.keep_with(write, &author, &message, begun)?))
            })
            .await?;
        deleted_count += n_deleted;
        undo = handle.or(undo);
    }
    Ok(DeletionView { message: deleted(deleted_count), deleted_count, undo })
}

fn deleted(n: usize) -> String {
    format!("Deleted {n} streams")
}

/// Deletes streams and removes them from their channels. Returns the number of deleted streams.
///
/// The next refresh of an affected account compares its whole list, so that streams that the provider still offers
/// return.
fn remove(write: &mut Write<'_>, ids: &[StreamId], log: &mut UndoLog) -> Result<usize, Refusal> {
    remove_from_channels(write, ids, log)?;
    let (mut n_removed, mut accounts) = (0, BTreeSet::new());
    let mut id_changes = StreamIdChanges::default();
    for id in ids {
        let Some(stream) = write.get::<Stream>(id.0)? else { continue };
        write.remove::<Stream>(id.0)?;
        id_changes.set(*id, None);
        n_removed += 1;
        accounts.insert(stream.account);
        log.stream_deleted(stream);
    }
    id_changes.put(write)?;
    compare_whole_lists(write, accounts)?;
    Ok(n_removed)
}

fn remove_from_channels(write: &mut Write<'_>, ids: &[StreamId], log: &mut UndoLog) -> Result<(), Refusal> {
    let deleted: HashSet<StreamId> = ids.iter().copied().collect();
    let mut channels = BTreeSet::<ChannelId>::new();
    for id in ids {
        channels.extend(write.by::<Channel>("stream", id.0.to_be_bytes())?.iter().map(|it| it.id));
    }
    for id in channels {
        let Some(before) = write.get::<Channel>(id.0)? else { continue };
        let mut channel = before.clone();
        channel.streams.retain(|it| !deleted.contains(it));
        channel.updated_at = now_ms();
        write.put(&channel)?;
        log.edited(&before, &channel);
    }
    Ok(())
}

/// Makes the next refresh of these accounts compare the whole list, even if it is the same as the last one, and record the
/// ids of all streams.
pub(in crate::api::channels) fn compare_whole_lists(
    write: &mut Write<'_>,
    accounts: impl IntoIterator<Item = AccountId>,
) -> Result<(), Refusal> {
    let is_unchanged = |it: &RefreshRecord| it.digest.is_some() || it.ids_recorded_by.is_some();
    for account in accounts {
        if let Some(refresh) = write.get::<RefreshRecord>(account.0)?.filter(is_unchanged) {
            write.put(&RefreshRecord { digest: None, ids_recorded_by: None, ..refresh })?;
        }
    }
    Ok(())
}
