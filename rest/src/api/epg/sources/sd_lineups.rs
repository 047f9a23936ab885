//! `/api/epg/sources/{id}/sd-lineups/`: the lineups of the account of a source at Schedules Direct.

use actors::ServiceError;
use domain::guide::schedules_direct::{CHANGES_MAX, ServiceFault};
use domain::guide::source::{GuideSource, GuideSourceKind};
use http::StatusCode;
use resource_derive::{Body, Query, View};
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use tracing::warn;

use crate::api::text::sentence;
use crate::context::RestCall;

/// A lineup at Schedules Direct.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SdLineupView {
    /// Identifier of the lineup.
    #[field(example = "USA-NJ12345-X")]
    lineup: String,
    /// Name.
    #[field(example = "Comcast Cable")]
    name: String,
    /// How it is received.
    #[field(example = "Cable")]
    transport: String,
    /// Where it is received.
    #[field(example = "Trenton")]
    location: String,
    /// Whether the service has stopped its updates.
    is_deleted: bool,
}

/// A country in which Schedules Direct has lineups.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SdCountryView {
    /// Code of three letters.
    #[field(example = "USA")]
    code: String,
    /// Name.
    #[field(example = "United States")]
    name: String,
    /// Region of the world.
    #[field(example = "North America")]
    region: String,
    /// Example of a postal code.
    #[field(example = "12345")]
    postal_code_example: Option<String>,
    /// The postal code to search for in a country that has only one.
    only_postal_code: Option<String>,
}

/// The account of a guide source at Schedules Direct.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SdLineupsView {
    /// Lineups of the account.
    lineups: Vec<SdLineupView>,
    /// Maximum number of lineups of the account.
    #[field(example = "4")]
    max_lineups: u64,
    /// Number of lineups that can be added today; `null` until the service has said it.
    #[field(example = "6")]
    changes_remaining: Option<u64>,
    /// Maximum number of lineups that can be added in a day.
    #[field(example = "6")]
    changes_per_day: u64,
    /// End of the account.
    account_expires_at: Option<Time>,
    /// Messages of the service.
    messages: Vec<String>,
    /// Whether the service is online.
    is_online: bool,
    /// Countries in which the service has lineups.
    countries: Vec<SdCountryView>,
}

/// Selects a lineup.
#[derive(Debug, Query)]
pub(crate) struct SdLineupQuery {
    /// Identifier of the lineup.
    #[field(example = "USA-NJ12345-X")]
    lineup: Option<String>,
}

/// Selects a lineup.
#[derive(Clone, Debug, Body)]
pub(crate) struct SdLineupChange {
    /// Identifier of the lineup, if it is not in the query.
    #[field(chars_max = 100, example = "USA-NJ12345-X")]
    lineup: Option<String>,
}

/// Result of a change of lineups.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SdLineupChangeView {
    /// Message for people.
    #[field(example = "The lineup was added. Its guide is being fetched.")]
    message: String,
    /// Number of lineups that can be added today; `null` if the service has not said it.
    #[field(example = "5")]
    changes_remaining: Option<u64>,
}

/// Selects a place.
#[derive(Clone, Debug, Body)]
pub(crate) struct SdLineupSearch {
    /// Code of the country, of three letters.
    #[field(chars_max = 3, example = "USA")]
    country: String,
    /// Postal code.
    #[field(chars_max = 20, example = "12345")]
    postal_code: String,
}

/// Lineups that can be added.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SdLineupSearchView {
    /// Lineups of the place.
    lineups: Vec<SdLineupView>,
}

const LINEUPS: &str = "/api/epg/sources/{id}/sd-lineups/";
const SEARCH: &str = "/api/epg/sources/{id}/sd-lineups/search/";

const WRONG_KIND: &str = "The guide source is not of the type schedules_direct.";

pub(super) fn routes() -> Vec<Route> {
    let routes = vec![
        Route::get(LINEUPS, STANDARD, "Returns the lineups of an account at Schedules Direct.", list),
        Route::post(LINEUPS, ADMIN, "Adds a lineup to an account at Schedules Direct.", add),
        Route::delete(LINEUPS, ADMIN, "Removes a lineup from an account at Schedules Direct.", remove),
        Route::post(SEARCH, ADMIN, "Lists the lineups of a postal code at Schedules Direct.", search),
    ];
    let refuses = |route: Route| {
        route
            .refuses(StatusCode::BAD_REQUEST, "The service refuses the request.")
            .refuses(StatusCode::BAD_GATEWAY, "The service sent no valid answer.")
            .refuses(StatusCode::SERVICE_UNAVAILABLE, "The service is offline, or is not asked for a while.")
    };
    routes.into_iter().map(refuses).collect()
}

async fn list(call: Call) -> Result<SdLineupsView, Refusal> {
    let source = source(&call)?;
    let service = &call.rest().guide.schedules_direct;
    let account = service.account(&source).await.map_err(refused)?;
    let countries = service.countries(&source).await.map_err(refused)?;
    let lineups = account.lineups.into_iter().map(|it| SdLineupView {
        lineup: it.id,
        name: it.name,
        transport: it.transport,
        location: it.location,
        is_deleted: it.is_deleted,
    });
    let countries = countries.iter().cloned().map(|it| SdCountryView {
        code: it.code,
        name: it.name,
        region: it.region,
        postal_code_example: it.postal_code_example,
        only_postal_code: it.only_postal_code,
    });
    Ok(SdLineupsView {
        lineups: lineups.collect(),
        max_lineups: account.status.lineups_max,
        changes_remaining: account.changes_remaining,
        changes_per_day: CHANGES_MAX,
        account_expires_at: account.status.expires_at.map(Time),
        messages: account.status.messages,
        is_online: account.status.is_online,
        countries: countries.collect(),
    })
}

async fn add(
    call: Call,
    (query, body): (SdLineupQuery, SdLineupChange),
) -> Result<SdLineupChangeView, Refusal> {
    let source = source(&call)?;
    let lineup = wanted(query, body)?;
    let changes_remaining =
        call.rest().guide.schedules_direct.add_lineup(&source, &lineup).await.map_err(refused)?;
    refresh(&call, &source).await;
    let message = "The lineup was added. Its guide is being fetched.".to_owned();
    Ok(SdLineupChangeView { message, changes_remaining })
}

async fn remove(
    call: Call,
    (query, body): (SdLineupQuery, SdLineupChange),
) -> Result<SdLineupChangeView, Refusal> {
    let source = source(&call)?;
    let lineup = wanted(query, body)?;
    let changes_remaining =
        call.rest().guide.schedules_direct.remove_lineup(&source, &lineup).await.map_err(refused)?;
    refresh(&call, &source).await;
    let message = "The lineup was removed.".to_owned();
    Ok(SdLineupChangeView { message, changes_remaining })
}

async fn search(call: Call, place: SdLineupSearch) -> Result<SdLineupSearchView, Refusal> {
    let source = source(&call)?;
    let service = &call.rest().guide.schedules_direct;
    let found = service.search(&source, &place.country, &place.postal_code).await.map_err(refused)?;
    let lineups = found.into_iter().map(|it| SdLineupView {
        lineup: it.id,
        name: it.name,
        transport: it.transport,
        location: it.location,
        is_deleted: false,
    });
    Ok(SdLineupSearchView { lineups: lineups.collect() })
}

/// Returns the source of the request.
fn source(call: &Call) -> Result<GuideSource, Refusal> {
    let sources = call.rest().models.guide_sources.load();
    let source = sources.get(call.id()?).ok_or_else(Refusal::unknown::<GuideSource>)?;
    match source.kind {
        GuideSourceKind::SchedulesDirect => Ok(GuideSource::clone(source)),
        _ => Err(Refusal::bad_request(WRONG_KIND)),
    }
}

fn wanted(query: SdLineupQuery, body: SdLineupChange) -> Result<String, Refusal> {
    let lineup = query.lineup.or(body.lineup).map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    lineup.ok_or_else(|| Refusal::field("lineup", "This field is required."))
}

/// Fetches the guide of changed lineups, which may be smaller than before.
async fn refresh(call: &Call, source: &GuideSource) {
    if source.is_active
        && let Err(error) = call.rest().guide.guide_refreshes.replaced(source.id).await
    {
        // The schedule will try again.
        warn!(source.id = %source.id, "failed to start the refresh of a guide: {error}");
    }
}

/// Converts the reason of a failure.
fn refused(error: ServiceError) -> Refusal {
    let status = match &error {
        ServiceError::Starting
        | ServiceError::Paused { .. }
        | ServiceError::Fault(ServiceFault::Offline | ServiceFault::Queued) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ServiceError::NoLogin | ServiceError::Fault(_) => StatusCode::BAD_REQUEST,
        ServiceError::Fetch(_) | ServiceError::Unreadable => StatusCode::BAD_GATEWAY,
    };
    Refusal::status(status).with_detail(sentence(error))
}
