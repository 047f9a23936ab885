//! `/api/channels/logos/`: the logos of channels.

mod bulk;
mod cache;
mod records;
#[cfg(test)]
mod tests;
mod upload;
mod view;

use actors::now_ms;
use domain::ids::LogoId;
use domain::logo::Logo;
use http::StatusCode;
use resource_derive::Query;
use route_frame::access::{ADMIN, Access, STANDARD};
use route_frame::call::Call;
use route_frame::route::{Created, Handler, NoContent, Route};
use server::reply::Refusal;
use services::addresses::without_credentials;
use services::logo_cache::LOGO_BYTES_MAX;

use self::records::{LIST, change_logo, delete_logo};
pub(super) use self::records::{LogoRef, LogoUrl, NamedBy, logo_of_address};
use self::view::{LogoEdit, LogoView, NewLogo};
use super::undo::UndoLog;
use crate::context::RestCall;
use crate::list::{ByName, Ordering, Page, Search, WholeOrPages, matches};
use crate::record::RecordCall;
use crate::seen::SeenThings;

/// Filters of the list of logos.
#[derive(Debug, Query)]
struct Filters {
    /// Ids of logos, separated by commas.
    #[field(items_max = 10_000)]
    ids: Option<Vec<LogoId>>,
    /// Whether a channel uses the logo.
    used: Option<bool>,
    /// Part of the name, regardless of case.
    name: Option<Search>,
    /// Part of the name or the URL, regardless of case.
    search: Option<Search>,
    /// Order of the list; by name by default.
    ordering: Option<Ordering<ByName>>,
}

const ONE: &str = "/api/channels/logos/{id}/";

pub(super) fn routes() -> Vec<Route> {
    let cleanup = "Deletes all logos that no channel uses.";
    let bulk_delete = "Deletes logos and removes them from their channels.";
    vec![
        Route::get(LIST, STANDARD, "Lists logos.", list),
        Route::post(LIST, ADMIN, "Creates a logo.", create),
        Route::post("/api/channels/logos/upload/", ADMIN, "Creates a logo from a file.", upload::upload)
            .with_upload(LOGO_BYTES_MAX),
        Route::post("/api/channels/logos/cleanup/", ADMIN, cleanup, bulk::clean_up),
        Route::post("/api/channels/logos/bulk-delete/", ADMIN, bulk_delete, bulk::bulk_delete)
            .with_bulk_body(),
        Route::delete("/api/channels/logos/bulk-delete/", ADMIN, bulk_delete, bulk::bulk_remove)
            .with_bulk_body(),
        Route::get(ONE, STANDARD, "Returns a logo.", retrieve),
        Route::put(ONE, ADMIN, "Updates a logo.", update),
        Route::patch(ONE, ADMIN, "Partially updates a logo.", update),
        Route::delete(ONE, ADMIN, "Deletes a logo and removes it from its channels.", delete),
        open("/api/channels/logos/{id}/cache/", cache::image),
        open("/api/channels/logos/{id}/cache/{version}/", cache::image_of_version),
    ]
}

/// Players and media servers fetch logos without credentials.
fn open(path: &'static str, handler: impl Handler<(Call,)>) -> Route {
    let summary = "Returns the image of a logo, or a placeholder while there is none.";
    Route::get(path, Access::Anyone, summary, handler)
        .refuses(StatusCode::NOT_MODIFIED, "The client has the current image.")
        .refuses(StatusCode::NOT_FOUND, "The logo does not exist.")
        .for_any_origin()
}

async fn list(call: Call, (filters, paging): (Filters, WholeOrPages)) -> Result<Page<LogoView>, Refusal> {
    let (logos, channels) = (call.rest().models.logos.load(), call.rest().models.channels.load());
    let ids = filters.ids.map(std::collections::HashSet::<LogoId>::from_iter);
    let is_used = |logo: &Logo| channels.by("logo", logo.id.0.to_be_bytes()).next().is_some();
    let seen = SeenThings::new(&call);
    let is_wanted = |logo: &Logo| {
        ids.as_ref().is_none_or(|it| it.contains(&logo.id))
            && matches(filters.name.as_ref(), [&logo.name])
            && matches(filters.search.as_ref(), [&logo.name, &without_credentials(&logo.url)])
            && filters.used.is_none_or(|it| it == is_used(logo))
            && seen.shows(channels.by("logo", logo.id.0.to_be_bytes()))
    };
    let mut logos: Vec<_> = logos.iter().filter(|it| is_wanted(it)).collect();
    let ordering = filters.ordering.unwrap_or(Ordering::ascending(ByName::Name));
    ordering.sort(&mut logos, |it| it.id, |it| &it.name);
    paging.render(&call, &logos)
}

async fn retrieve(call: Call) -> Result<LogoView, Refusal> {
    let users = call.rest().models.channels.load();
    if !SeenThings::new(&call).shows(users.by("logo", call.id()?.to_be_bytes())) {
        return Err(Refusal::unknown::<Logo>());
    }
    call.retrieve(&call.rest().models.logos.load())
}

async fn create(call: Call, new: NewLogo) -> Result<Created<LogoView>, Refusal> {
    let url = new.url.into_web_url()?;
    call.create(|_, id| {
        Ok(Logo {
            id: LogoId(id),
            name: new.name,
            url,
            file: None,
            named_by: None,
            guide_source: None,
            updated_at: now_ms(),
        })
    })
    .await
}

async fn update(call: Call, edit: LogoEdit) -> Result<LogoView, Refusal> {
    let id = call.id()?;
    let logo = call.write(move |write| change_logo(write, id, edit.name, edit.url)).await?;
    call.render(&logo)
}

/// The file of an uploaded logo goes with the last operation that needs it for an undo.
async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let id = call.id()?;
    call.write(move |write| delete_logo(write, id, &mut UndoLog::default())).await?;
    upload::remove_unused_files(&call).await;
    Ok(NoContent)
}
