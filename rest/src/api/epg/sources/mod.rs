//! `/api/epg/sources/` and `/api/epg/import/`: guide sources, their files and their refreshes.
//!
//! The credentials of a source are secret: its URL, its login and its properties are visible to admins only.

mod edit;
mod import;
mod preview;
pub(in crate::api) mod records;
mod refreshes;
mod sd_lineups;
#[cfg(test)]
mod tests;
mod upload;
mod view;

use actors::is_same_guide;
use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::guide::schedules_direct::GuideMarks;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::guide::state::GuideState;
use domain::ids::{GuideChannelId, GuideSourceId};
use http::StatusCode;
use media::spawn_blocking;
use resource_derive::Query;
use route_frame::access::{ADMIN, STANDARD};
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use server::reply::Refusal;
use services::files::Folder;
use storage::Write;
use tracing::warn;

use self::edit::SourceChange;
use self::records::{forget_content, new_source, put_generated_channel, touch};
use self::refreshes::{after_update, refresh_if_possible};
use self::view::{EPGSourceEdit, EPGSourceView, NewEPGSource, SourceLookup};
use crate::choice::choice;
use crate::context::RestCall;
use crate::list::{Ordering, Page, Search, WholeOrPages, matches};
use crate::record::{Lookup, RecordCall, Render, find};
use crate::saved_upload::remove_upload;

/// Filters of the list of guide sources.
#[derive(Debug, Query)]
pub(crate) struct Filters {
    /// Part of the name, regardless of case.
    search: Option<Search>,
    /// Whether the source is active.
    is_active: Option<bool>,
    /// Order of the list; by id by default.
    ordering: Option<Ordering<By>>,
}

choice!(
    enum By {
        Id = "id",
        Name = "name",
        Priority = "priority",
    }
);

const LIST: &str = "/api/epg/sources/";
const ONE: &str = "/api/epg/sources/{id}/";

/// Number of channels whose link one commit removes. More channels can be linked than one commit can change.
const CHANNELS_AT_ONCE: usize = 5_000;

pub(super) fn routes() -> Vec<Route> {
    const KIND_STAYS: &str = "The type of a source cannot be changed.";
    let mut routes = vec![
        Route::get(LIST, STANDARD, "Lists guide sources.", list),
        Route::post(LIST, ADMIN, "Creates a guide source and fetches its guide.", create)
            .with_properties_body(),
        Route::get(ONE, STANDARD, "Returns a guide source.", retrieve),
        Route::put(ONE, ADMIN, "Updates a guide source.", update)
            .with_properties_body()
            .refuses(StatusCode::BAD_REQUEST, KIND_STAYS),
        Route::patch(ONE, ADMIN, "Partially updates a guide source.", update)
            .with_properties_body()
            .refuses(StatusCode::BAD_REQUEST, KIND_STAYS),
        Route::delete(ONE, ADMIN, "Deletes a guide source with its guide.", delete),
    ];
    routes.extend(upload::routes());
    routes.extend(import::routes());
    routes.extend(preview::routes());
    routes.extend(sd_lineups::routes());
    routes
}

async fn list(
    call: Call,
    (filters, paging): (Filters, WholeOrPages),
) -> Result<Page<EPGSourceView>, Refusal> {
    let sources = call.rest().models.guide_sources.load();
    let is_wanted = |it: &GuideSource| {
        matches(filters.search.as_ref(), [&it.name]) && filters.is_active.is_none_or(|is| is == it.is_active)
    };
    let mut sources: Vec<_> = sources.iter().filter(|it| is_wanted(it)).collect();
    let ordering = filters.ordering.unwrap_or(Ordering::ascending(By::Id));
    match ordering.by {
        By::Id => ordering.sort_by(&mut sources, |it| it.id),
        By::Name => ordering.sort_by(&mut sources, |it| it.name.to_lowercase()),
        By::Priority => ordering.sort_by(&mut sources, |it| it.priority),
    }
    let lookup = SourceLookup::load(&call)?;
    paging.render_with(&call, &sources, |it| it.view(&lookup))
}

async fn retrieve(call: Call) -> Result<EPGSourceView, Refusal> {
    call.retrieve(&call.rest().models.guide_sources.load())
}

async fn create(call: Call, new: NewEPGSource) -> Result<Created<EPGSourceView>, Refusal> {
    let kind = new.source_type.0;
    let change = SourceChange::new(new.into())?;
    let source = call
        .write(move |write| {
            let mut source = new_source(write, kind)?;
            change.apply(write, &mut source, None)?;
            write.put(&source)?;
            if kind == GuideSourceKind::Generated {
                put_generated_channel(write, &source, None)?;
            }
            Ok(source)
        })
        .await?;
    // As it is before the refresh, so that clients see a source that was never refreshed.
    let view = call.render(&source)?;
    refresh_if_possible(&call, &source, true).await;
    Ok(Created(view))
}

async fn update(call: Call, edit: EPGSourceEdit) -> Result<EPGSourceView, Refusal> {
    let id = call.id()?;
    let kind = edit.source_type.map(|it| it.0);
    let change = SourceChange::new(edit)?;
    let generated = generated_channel(&call, GuideSourceId(id)).await?;
    let (source, before) = call
        .write(move |write| {
            let before = find::<GuideSource>(write, id)?;
            if kind.is_some_and(|it| it != before.kind) {
                return Err(Refusal::field("source_type", "The type of a guide source cannot be changed."));
            }
            let mut source = before.clone();
            change.apply(write, &mut source, None)?;
            if touch(&mut source, &before) {
                write.put(&source)?;
            }
            if source.kind == GuideSourceKind::Generated {
                put_generated_channel(write, &source, generated)?;
            }
            if !is_same_guide(&source, &before) {
                forget_content(write, source.id)?;
            }
            Ok((source, before))
        })
        .await?;
    after_update(&call, &source, &before).await;
    call.render(&source)
}

/// Returns the guide channel of a source of generated programmes.
async fn generated_channel(call: &Call, id: GuideSourceId) -> Result<Option<GuideChannel>, Refusal> {
    let models = call.rest().models.clone();
    let known = models.guide_sources.load().get(id.0).map(|it| it.kind);
    if known != Some(GuideSourceKind::Generated) {
        return Ok(None);
    }
    let read = run_blocking("read a guide channel", move || {
        let mut found = None;
        let channels = models.store.collection::<GuideChannel>();
        channels.for_each_of(u64::from(id.0), |it| found = Some(it)).map(|()| found)
    });
    Ok(read.await??)
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let id = call.id()?;
    let source = call.rest().models.guide_sources.load().get(id).cloned();
    while !call.write(move |write| remove_some(write, id)).await? {}
    if let Some(source) = source {
        refresh_if_possible(&call, &source, false).await;
        if let Some(file) = source.file.clone() {
            remove_upload(&call, Folder::Guides, file).await;
        }
        let files = call.rest().guide.guides.files.clone();
        if spawn_blocking(move || files.remove(source.id)).await.is_err() {
            warn!("failed to remove the guide of a deleted source");
        }
    }
    Ok(NoContent)
}

/// Removes the links of some channels to a source. If no link is left, deletes the source with its state and its guide
/// channels, and returns true.
fn remove_some(write: &mut Write<'_>, id: u32) -> Result<bool, Refusal> {
    find::<GuideSource>(write, id)?;
    let owner = u64::from(id);
    let is_of_source =
        |write: &Write<'_>, it: GuideChannelId| write.owner_of::<GuideChannel>(it.0) == Some(owner);
    let mut n_changed = 0;
    for mut channel in write.all::<Channel>()? {
        let is_linked = channel.guide_channel.is_some_and(|it| is_of_source(write, it));
        let is_further = channel.further_guides.iter().any(|it| is_of_source(write, *it));
        if !is_linked && !is_further {
            continue;
        }
        if n_changed == CHANNELS_AT_ONCE {
            return Ok(false);
        }
        if is_linked {
            channel.guide_channel = None;
        }
        channel.further_guides.retain(|it| !is_of_source(write, *it));
        write.put(&channel)?;
        n_changed += 1;
    }
    write.remove_owner::<GuideChannel>(owner);
    write.remove::<GuideState>(id)?;
    write.remove::<GuideMarks>(id)?;
    write.remove::<GuideSource>(id)?;
    Ok(true)
}
