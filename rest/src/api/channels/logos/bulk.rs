//! Deletes many logos.

use std::collections::BTreeSet;

use domain::channel::Channel;
use domain::ids::LogoId;
use domain::logo::Logo;
use resource_derive::{Body, Query, View};
use route_frame::call::Call;
use route_frame::route::NoContent;
use serde::Serialize;
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use super::records::delete_logo;
use super::upload::remove_unused_files;
use crate::api::channels::undo::{Author, UndoHandleView, UndoLog};
use crate::context::RestCall;

/// Maximum number of logos of one operation; a cleanup deletes the others when it is repeated.
const MANY: usize = 10_000;
/// Maximum number of names in an answer.
const NAMES_MAX: usize = 1_000;

/// Selects the logos to delete.
#[derive(Clone, Debug, Body)]
pub(crate) struct LogosToDelete {
    /// Ids of the logos. Unknown ids are ignored.
    #[field(aliases = &["logo_ids"], items_max = MANY, example = "[1, 2]")]
    ids: Option<Vec<LogoId>>,
}

/// Selects the logos to delete, for clients that send no body with DELETE.
#[derive(Debug, Query)]
pub(crate) struct LogoIdsInQuery {
    /// Ids of the logos, separated by commas.
    #[field(items_max = MANY)]
    ids: Option<Vec<LogoId>>,
}

/// Result of deleting logos.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "LogoDeletion")]
pub(crate) struct LogoDeletionView {
    /// Message for people.
    #[field(example = "Deleted 2 logos")]
    message: String,
    /// Number of deleted logos.
    #[field(example = "2")]
    deleted_count: usize,
    /// Names of the first 1,000 deleted logos.
    deleted_logos: Vec<String>,
    /// Number of uploaded files that were deleted. A file goes when no undo needs it any longer.
    #[field(example = "0")]
    local_files_deleted: usize,
    /// The handle with which the deletion can be undone; `null` if nothing was deleted.
    undo: Option<UndoHandleView>,
}

pub(super) async fn bulk_delete(call: Call, body: LogosToDelete) -> Result<LogoDeletionView, Refusal> {
    delete_all(&call, body.ids.ok_or_else(|| FieldErrors::required("ids"))?).await
}

pub(super) async fn bulk_remove(
    call: Call,
    (query, body): (LogoIdsInQuery, LogosToDelete),
) -> Result<NoContent, Refusal> {
    let ids = body.ids.or(query.ids).ok_or_else(|| FieldErrors::required("ids"))?;
    delete_all(&call, ids).await.map(|_| NoContent)
}

pub(super) async fn clean_up(call: Call) -> Result<LogoDeletionView, Refusal> {
    let (logos, channels) = (call.rest().models.logos.load(), call.rest().models.channels.load());
    let is_unused = |it: &Logo| channels.by("logo", it.id.0.to_be_bytes()).next().is_none();
    let unused: Vec<LogoId> = logos.iter().filter(|it| is_unused(it)).map(|it| it.id).take(MANY).collect();
    drop((logos, channels));
    delete(&call, unused, true).await
}

async fn delete_all(call: &Call, ids: Vec<LogoId>) -> Result<LogoDeletionView, Refusal> {
    delete(call, ids, false).await
}

/// Deletes logos. `only_unused` keeps those that a channel uses by now.
async fn delete(call: &Call, ids: Vec<LogoId>, only_unused: bool) -> Result<LogoDeletionView, Refusal> {
    let author = Author::new(call)?;
    let view = call
        .write(move |write| {
            let (mut log, mut names, mut deleted_count) = (UndoLog::default(), Vec::new(), 0);
            for id in ids.into_iter().collect::<BTreeSet<_>>() {
                let is_used = || write.by::<Channel>("logo", id.0.to_be_bytes()).map(|it| !it.is_empty());
                if write.get::<Logo>(id.0)?.is_none() || (only_unused && is_used()?) {
                    continue;
                }
                let logo = delete_logo(write, id.0, &mut log)?;
                deleted_count += 1;
                if names.len() < NAMES_MAX {
                    names.push(logo.name);
                }
            }
            let message = format!("Deleted {deleted_count} logos");
            let undo = log.keep(write, &author, &message)?;
            let view = LogoDeletionView {
                message,
                deleted_count,
                deleted_logos: names,
                local_files_deleted: 0,
                undo,
            };
            Ok(view)
        })
        .await?;
    Ok(LogoDeletionView { local_files_deleted: remove_unused_files(call).await, ..view })
}
