//! Deletes pictures of films and series.

use domain::vod::TitleId;
use http::Method;
use resource_derive::{Body, Query};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use super::edit::{MANY, VodLogoDeletionView, remove_pictures};

/// Selects the pictures to delete.
#[derive(Clone, Debug, Body)]
pub(crate) struct VodLogosToDelete {
    /// Ids of the pictures. Unknown ids are ignored.
    #[field(aliases = &["logo_ids"], items_max = MANY, example = "[14]")]
    ids: Option<Vec<u32>>,
}

/// Selects them for clients that send no body with DELETE.
#[derive(Debug, Query)]
pub(crate) struct VodLogoIdsInQuery {
    /// Ids of the pictures, separated by commas.
    #[field(items_max = MANY)]
    ids: Option<Vec<u32>>,
}

pub(super) fn routes() -> Vec<Route> {
    const DELETE: &str = "Removes pictures from their titles, until an admin chooses others.";
    const CLEAN_UP: &str = "Deletes pictures that no title uses. There are none: each belongs to a title.";
    let path = "/api/vod/vodlogos/bulk-delete/";
    let deletion = Route::each([Method::POST, Method::DELETE], path, ADMIN, DELETE, bulk_delete);
    let clean_up = Route::post("/api/vod/vodlogos/cleanup/", ADMIN, CLEAN_UP, clean_up);
    deletion.into_iter().map(Route::with_bulk_body).chain([clean_up]).collect()
}

async fn bulk_delete(
    call: Call,
    (query, body): (VodLogoIdsInQuery, VodLogosToDelete),
) -> Result<VodLogoDeletionView, Refusal> {
    let mut ids = body.ids.or(query.ids).ok_or_else(|| FieldErrors::required("ids"))?;
    ids.sort_unstable();
    ids.dedup();
    remove_pictures(&call, ids.into_iter().map(TitleId::from_key).collect()).await
}

async fn clean_up(call: Call) -> Result<VodLogoDeletionView, Refusal> {
    remove_pictures(&call, Vec::new()).await
}
