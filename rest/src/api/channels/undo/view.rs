//! Operations that can be undone in answers.

use domain::undo::{UNDO_AGE_MS_MAX, UndoEntry};
use resource_derive::View;
use route_frame::value::Time;
use serde::Serialize;

pub(super) const LIST: &str = "/api/channels/undo/";

/// The handle with which an operation can be undone.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "UndoHandle")]
pub(crate) struct UndoHandleView {
    /// Id of the operation, for `/api/channels/undo/{id}/`.
    #[field(example = "7")]
    pub(in crate::api) id: u32,
    /// Path to send a POST to.
    #[field(example = "/api/channels/undo/7/")]
    url: String,
    /// When the possibility to undo the operation ends.
    expires_at: Time,
}

impl UndoHandleView {
    pub(super) fn new(entry: &UndoEntry) -> Self {
        Self {
            id: entry.id,
            url: format!("{LIST}{}/", entry.id),
            expires_at: Time(entry.at.saturating_add(UNDO_AGE_MS_MAX)),
        }
    }
}

/// An operation that can be undone.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "UndoEntry")]
pub(crate) struct UndoEntryView {
    /// Id of the operation.
    #[field(example = "7")]
    id: u32,
    /// The operation.
    #[field(example = "Deleted 2 channels")]
    message: String,
    /// Name of the user who did it.
    #[field(example = "anna")]
    username: String,
    /// When it was done.
    created_at: Time,
    /// When the possibility to undo it ends.
    expires_at: Time,
    /// Number of changed records.
    #[field(example = "2")]
    changed_count: u32,
    /// Path to send a POST to.
    #[field(example = "/api/channels/undo/7/")]
    url: String,
}

impl UndoEntryView {
    pub(super) fn new(entry: &UndoEntry) -> Self {
        let UndoHandleView { id, url, expires_at } = UndoHandleView::new(entry);
        Self {
            id,
            message: entry.message.clone(),
            username: entry.username.clone(),
            created_at: Time(entry.at),
            expires_at,
            changed_count: entry.n_changes,
            url,
        }
    }
}

/// Result of an undo.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "UndoResult")]
pub(crate) struct UndoResultView {
    /// Message for people.
    #[field(example = "Undone: Deleted 2 channels")]
    pub(super) message: String,
    /// Number of restored, created and deleted records.
    #[field(example = "2")]
    pub(super) changed_count: u32,
    /// The handle with which the undo can be undone.
    pub(super) undo: Option<UndoHandleView>,
}
