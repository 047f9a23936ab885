//! `/api/epg/import/`: starts refreshes of guides.

use actors::GuideRefreshStart;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::GuideSourceId;
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::{Accepted, Route};
use serde::Serialize;
use serde_json::json;
use server::reply::Refusal;

use crate::api::m3u::refresh::stopping;
use crate::context::RestCall;

/// The guide source to refresh.
#[derive(Clone, Debug, Body)]
pub(crate) struct EPGImport {
    /// Id of the source; without it, all active sources that can be fetched are refreshed.
    #[field(example = "1")]
    id: Option<GuideSourceId>,
    /// Accepts a guide that is cut off or much smaller than the former one, and reads an unchanged one again.
    force: Option<bool>,
}

/// Refreshes of guides that were started.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct EPGImportStartedView {
    /// Always `true`; the outcome is reported later.
    success: bool,
    /// Message for people.
    #[field(example = "EPG data refresh initiated.")]
    message: String,
}

const IMPORT: &str = "/api/epg/import/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(IMPORT, ADMIN, "Refreshes the guide of one source or of all.", import)
            .refuses(StatusCode::BAD_REQUEST, "The source is inactive, or has nothing to fetch.")
            .refuses(StatusCode::NOT_FOUND, "The source does not exist."),
    ]
}

async fn import(call: Call, body: EPGImport) -> Result<Accepted<EPGImportStartedView>, Refusal> {
    let force = body.force == Some(true);
    match body.id {
        Some(id) => import_one(&call, id, force).await?,
        None => import_all(&call, force).await?,
    }
    let message = "EPG data refresh initiated.".to_owned();
    Ok(Accepted(EPGImportStartedView { success: true, message }))
}

async fn import_one(call: &Call, id: GuideSourceId, force: bool) -> Result<(), Refusal> {
    let kind = call.rest().models.guide_sources.load().get(id.0).map(|it| it.kind);
    match call.rest().guide.guide_refreshes.refresh(id, force).await.map_err(stopping)? {
        GuideRefreshStart::Started { .. } | GuideRefreshStart::AlreadyRunning { .. } => Ok(()),
        GuideRefreshStart::NoSuchSource => Err(Refusal::unknown::<GuideSource>()),
        GuideRefreshStart::NotRefreshed if kind == Some(GuideSourceKind::Generated) => {
            Err(refused("Dummy EPG sources do not require refreshing."))
        }
        GuideRefreshStart::NotRefreshed => Err(refused("The guide of this source is not fetched.")),
        GuideRefreshStart::Inactive => Err(refused("The guide source is not active.")),
        GuideRefreshStart::NoLocation => Err(refused("The guide source has neither a URL nor a file.")),
    }
}

async fn import_all(call: &Call, force: bool) -> Result<(), Refusal> {
    let sources = call.rest().models.guide_sources.load();
    for source in sources.iter().filter(|it| it.is_active && it.kind.is_refreshed()) {
        // A source that cannot be refreshed must not prevent the others.
        call.rest().guide.guide_refreshes.refresh(source.id, force).await.map_err(stopping)?;
    }
    Ok(())
}

/// 400 with the members of a success.
fn refused(message: &str) -> Refusal {
    Refusal::bad_request(message).with_body(json!({ "success": false, "message": message }))
}
