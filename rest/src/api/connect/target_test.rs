//! `/api/connect/integrations/{id}/test/`: a sample of each event for the target.

use actors::IntegrationError;
use domain::ids::IntegrationId;
use domain::integration::Integration;
use http::StatusCode;
use resource_derive::View;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use serde_json::{Map, Value};
use server::reply::Refusal;

use super::logs::{DeliveryLogView, view};
use super::view::TargetType;
use crate::choice::Named;
use crate::context::RestCall;

/// The results of a test.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct IntegrationTestView {
    /// Whether all events were delivered.
    success: bool,
    /// Type of the integration.
    r#type: Named<TargetType>,
    /// The payload of the first event that failed, else of the first event.
    request_payload: Map<String, Value>,
    /// The answer of the target to that event, with `success`: `status_code` and `body` of a webhook, `exit_code`, `stdout` and
    /// `stderr` of a script, the object that an action returned, or `error`.
    result: Map<String, Value>,
    /// The entry of the log for each event.
    results: Vec<DeliveryLogView>,
}

pub(super) fn routes() -> Vec<Route> {
    const NOTHING: &str = "No event of the integration is enabled.";
    vec![
        Route::post(
            "/api/connect/integrations/{id}/test/",
            ADMIN,
            "Runs a test: the target gets a sample of each enabled event, also if the integration is disabled.",
            test,
        )
        .refuses(StatusCode::BAD_REQUEST, NOTHING),
    ]
}

async fn test(call: Call) -> Result<IntegrationTestView, Refusal> {
    let (integrations, plugins) = (call.rest().models.integrations.load(), call.rest().models.plugins.load());
    let integration = integrations.get(call.id()?).ok_or_else(Refusal::unknown::<Integration>)?;
    let results = match call.rest().operation.integrations.test(IntegrationId(call.id()?)).await {
        Ok(results) => results,
        Err(IntegrationError::NotFound) => return Err(Refusal::unknown::<Integration>()),
        Err(IntegrationError::NoEvents) => {
            return Err(Refusal::bad_request("No event of the integration is enabled."));
        }
        Err(IntegrationError::NotRunning) => {
            return Err(Refusal::bad_request("Integrations do not run yet. Try again soon."));
        }
        Err(IntegrationError::Store(error)) => return Err(error.into()),
        Err(error @ IntegrationError::TestPanicked) => {
            return Err(Refusal::fault(format_args!("test an integration: {error}")));
        }
    };
    let shown = results.iter().find(|it| !it.entry.is_success).or(results.first()).map(|it| it.entry.clone());
    let is_success = results.iter().all(|it| it.entry.is_success);
    let results: Vec<_> = results.into_iter().map(|it| view(it.entry, &integrations, &plugins)).collect();
    let shown = shown.map(|it| view(it, &integrations, &plugins));
    Ok(IntegrationTestView {
        success: is_success,
        r#type: Named(TargetType::from_target(&integration.target)),
        request_payload: shown.as_ref().map(|it| it.request_payload.clone()).unwrap_or_default(),
        result: shown.map(DeliveryLogView::into_result).unwrap_or_default(),
        results,
    })
}
