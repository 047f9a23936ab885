//! Edits and deletions of many channels. One error discards all changes.

use std::collections::{BTreeSet, HashSet};

use domain::channel::Channel;
use domain::ids::ChannelId;
use resource_derive::{Body, Query, View};
use route_frame::call::Call;
use route_frame::input::{Element, Many};
use route_frame::route::NoContent;
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use super::edit::ChannelEdit;
use super::numbers::{Changes, conflicts, put_all};
use super::selection::{MANY, Selection};
use super::view::{ChannelLookup, ChannelView};
use crate::api::channels::undo::{Author, UndoHandleView, UndoLog};
use crate::api::channels::values::{item, no_such};
use crate::record::{Lookup, Render};

/// Result of a deletion.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ChannelDeletionView {
    /// Message for people.
    #[field(example = "Deleted 2 channels")]
    message: String,
    /// Number of deleted channels.
    #[field(example = "2")]
    deleted_count: usize,
    /// Ids of the deleted channels.
    #[field(example = "[1, 2]")]
    channel_ids: Vec<ChannelId>,
    /// The handle with which the deletion can be undone; `null` if nothing was deleted.
    undo: Option<UndoHandleView>,
}

/// Selects the channels to delete, for clients that send no body with DELETE.
#[derive(Debug, Query)]
pub(crate) struct IdsInQuery {
    /// Ids of the channels, separated by commas.
    #[field(items_max = MANY)]
    ids: Option<Vec<ChannelId>>,
}

pub(super) async fn bulk_delete(call: Call, selection: Selection) -> Result<ChannelDeletionView, Refusal> {
    delete_all(&call, selection).await
}

/// The handle of the undo is in the list of operations that can be undone, because the answer has no body.
pub(super) async fn bulk_remove(
    call: Call,
    (query, selection): (IdsInQuery, Selection),
) -> Result<NoContent, Refusal> {
    let ids = if selection.filter.is_some() { selection.ids } else { selection.ids.or(query.ids) };
    delete_all(&call, Selection { ids, ..selection }).await.map(|_| NoContent)
}

async fn delete_all(call: &Call, selection: Selection) -> Result<ChannelDeletionView, Refusal> {
    // Unknown ids are ignored.
    let ids = selection.resolve(call)?.ids;
    let author = Author::new(call)?;
    call.write(move |write| {
        let (mut log, mut channel_ids) = (UndoLog::default(), Vec::new());
        for id in ids.into_iter().collect::<BTreeSet<_>>() {
            if let Some(channel) = write.get::<Channel>(id.0)? {
                write.remove::<Channel>(id.0)?;
                channel_ids.push(id);
                log.deleted(channel);
            }
        }
        let message = format!("Deleted {} channels", channel_ids.len());
        let undo = log.keep(write, &author, &message)?;
        Ok(ChannelDeletionView { message, deleted_count: channel_ids.len(), channel_ids, undo })
    })
    .await
}

/// Result of a bulk update.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ChannelsChangedView {
    /// Message for people.
    #[field(example = "Successfully updated 2 channels")]
    message: String,
    /// Number of channels of the request.
    #[field(example = "2")]
    updated_count: usize,
    /// The channels after the update, in the order of the request.
    channels: Vec<ChannelView>,
    /// The handle with which the update can be undone; `null` if nothing has changed.
    undo: Option<UndoHandleView>,
}

/// Updates many channels, each with its own values.
pub(super) async fn edit_each(
    call: Call,
    Many(edits): Many<ChannelEdit, MANY>,
) -> Result<ChannelsChangedView, Refusal> {
    let author = Author::new(&call)?;
    let (channels, undo) = call
        .write(move |write| {
            let (mut errors, mut log) = (FieldErrors::default(), UndoLog::default());
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
                    Ok(before) => match edit.apply(write, &before, &mut log)? {
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
            let channels = put_all(write, changes, &mut log)?;
            let undo = log.keep(write, &author, &updated(channels.len()))?;
            Ok((channels, undo))
        })
        .await?;
    let lookup = ChannelLookup::load(&call)?;
    Ok(ChannelsChangedView {
        message: updated(channels.len()),
        updated_count: channels.len(),
        channels: channels.iter().map(|it| it.view(&lookup)).collect(),
        undo,
    })
}

fn updated(n: usize) -> String {
    format!("Successfully updated {n} channels")
}

/// The same values for many channels.
#[derive(Clone, Debug, Body)]
pub(crate) struct ValuesForChannels {
    /// Fields and values, as in PATCH of one channel.
    #[field(example = "{\"enabled\": false}")]
    values: Map<String, Value>,
}

/// The ids of changed channels.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct BulkResultView {
    /// Message for people.
    #[field(example = "Successfully updated 2 channels")]
    pub(super) message: String,
    /// Number of selected channels.
    #[field(example = "2")]
    pub(super) updated_count: usize,
    /// Ids of the selected channels, in order.
    #[field(example = "[1, 2]")]
    pub(super) channel_ids: Vec<ChannelId>,
    /// The handle with which the operation can be undone; `null` if nothing has changed.
    pub(super) undo: Option<UndoHandleView>,
}

/// Updates many channels with the same values.
pub(super) async fn edit_all(
    call: Call,
    (selection, ValuesForChannels { values }): (Selection, ValuesForChannels),
) -> Result<BulkResultView, Refusal> {
    let known = |name: &str| {
        let fields = <ChannelEdit as Element>::RECORD.fields.iter();
        fields.filter(|it| it.name != "id").any(|it| it.name == name || it.aliases.contains(&name))
    };
    if let Some(unknown) = values.keys().find(|it| !known(it.as_str())) {
        let name: String = unknown.chars().take(100).collect();
        return Err(Refusal::field("values", format!("A channel has no field \"{name}\".")));
    }
    let edit = ChannelEdit::read_element(&Value::Object(values), true).map_err(|it| it.inside("values"))?;
    let selected = selection.resolve(&call)?;
    let author = Author::new(&call)?;
    call.write(move |write| {
        let mut log = UndoLog::default();
        let mut changes = Changes::new();
        for before in selected.load(write)? {
            let channel = edit.clone().apply(write, &before, &mut log)?;
            changes.push((before, channel.map_err(|it| it.inside("values"))?));
        }
        if !conflicts(write, &changes)?.is_empty() {
            return Err(Refusal::field("values", "channel_number: This field must be unique."));
        }
        let channels = put_all(write, changes, &mut log)?;
        let message = updated(channels.len());
        let undo = log.keep(write, &author, &message)?;
        let channel_ids: Vec<ChannelId> = channels.iter().map(|it| it.id).collect();
        Ok(BulkResultView { message, updated_count: channel_ids.len(), channel_ids, undo })
    })
    .await
}
