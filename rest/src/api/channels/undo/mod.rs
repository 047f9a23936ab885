//! `/api/channels/undo/`: takes back operations on many channels.
//!
//! Each operation on many records keeps the values before and after it, in the same commit ([`log::UndoLog`]). An undo
//! restores the earlier values, unless something that the operation changed has changed again since. An undo is such an
//! operation too, so it can be undone.

mod log;
mod restore;
#[cfg(test)]
mod tests;
mod view;

use std::sync::Arc;

use actors::now_ms;
use domain::undo::{UNDO_AGE_MS_MAX, UndoEntry};
use http::StatusCode;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use server::reply::Refusal;

pub(in crate::api) use self::log::{Author, UndoLog};
use self::restore::restore;
pub(in crate::api) use self::view::UndoHandleView;
use self::view::{LIST, UndoEntryView, UndoResultView};
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};

const ONE: &str = "/api/channels/undo/{id}/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, ADMIN, "Lists the operations that can be undone, the latest first.", list),
        Route::get(ONE, ADMIN, "Returns an operation that can be undone.", retrieve),
        Route::post(ONE, ADMIN, "Changes records back to their values before an operation.", undo).refuses(
            StatusCode::CONFLICT,
            "Something that the operation changed has changed since. `conflicts` lists it.",
        ),
    ]
}

/// Returns whether an operation can still be undone.
fn is_current(entry: &UndoEntry, now: i64) -> bool {
    now.saturating_sub(entry.at) < UNDO_AGE_MS_MAX
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<UndoEntryView>, Refusal> {
    let now = now_ms();
    let entries = call.rest().models.undo.load();
    let mut entries: Vec<Arc<UndoEntry>> = entries.iter().filter(|it| is_current(it, now)).cloned().collect();
    entries.reverse();
    paging.render_with(&call, &entries, |it| UndoEntryView::new(it))
}

async fn retrieve(call: Call) -> Result<UndoEntryView, Refusal> {
    let entries = call.rest().models.undo.load();
    let entry = entries.get(call.id()?).filter(|it| is_current(it, now_ms()));
    entry.map(|it| UndoEntryView::new(it)).ok_or_else(Refusal::unknown::<UndoEntry>)
}

async fn undo(call: Call) -> Result<UndoResultView, Refusal> {
    let (id, author) = (call.id()?, Author::new(&call)?);
    call.write(move |write| {
        let entry = write.get::<UndoEntry>(id)?.filter(|it| is_current(it, now_ms()));
        let entry = entry.ok_or_else(Refusal::unknown::<UndoEntry>)?;
        let log = restore(write, &entry)?;
        log::remove(write, &entry)?;
        let message = match entry.message.strip_prefix(UNDONE) {
            Some(message) => format!("Done again: {message}"),
            None => {
                format!("{UNDONE}{}", entry.message.strip_prefix("Done again: ").unwrap_or(&entry.message))
            }
        };
        let undo = log.keep(write, &author, &message)?;
        Ok(UndoResultView { message, changed_count: entry.n_changes, undo })
    })
    .await
}

const UNDONE: &str = "Undone: ";
