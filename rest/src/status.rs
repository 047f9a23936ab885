//! Routes that both ports serve beside their own: `/healthz` and `/metrics`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::user::UserLevel;
use http::StatusCode;
use http::header::CACHE_CONTROL;
use media::spawn_blocking;
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::{Content, MediaType, PlainText, Route};
use server::refusals::refused_writes;
use server::reply::Refusal;
use services::metrics::{self, AccountReading, GuideReading, StoreReading};

use crate::context::RestCall;

/// The text format of Prometheus.
struct OpenMetrics;

impl MediaType for OpenMetrics {
    const NAME: &'static str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

pub(crate) fn routes() -> Vec<Route> {
    let scrapers = Access::UsersOrNetworks(UserLevel::Admin);
    vec![
        // Answers callers from every network: health is not a secret, and load balancers may run anywhere.
        Route::get("/healthz", Access::Anyone, "Returns whether the gateway accepts requests.", health)
            .refuses_plainly(
                StatusCode::SERVICE_UNAVAILABLE,
                "While the gateway stops, the body is the text `draining`; while the store refuses changes, the reason.",
            ),
        Route::get("/readyz", Access::Anyone, "Returns whether new viewers should come to this gateway.", readiness)
            .refuses_plainly(
                StatusCode::SERVICE_UNAVAILABLE,
                "While the node is drained or the gateway stops, the body is the text `draining`.",
            ),
        Route::get("/metrics", scrapers, "Returns the metrics in the text format of Prometheus.", metrics),
    ]
}

async fn health(call: Call) -> Result<Content<PlainText>, Refusal> {
    let unavailable = |text: String| Content::new(text).with_status(StatusCode::SERVICE_UNAVAILABLE);
    let stop_reason = call.rest().models.store.stop_reason().borrow().clone();
    // Another process answers next: a balancer should not leave.
    let is_stopping = call.rest().operation.is_draining.load(Ordering::Acquire)
        && !call.rest().operation.has_successor.load(Ordering::Relaxed);
    let content = match (is_stopping, stop_reason) {
        (true, _) => unavailable("draining\n".to_owned()),
        (false, Some(why)) => unavailable(format!("{}\n", refused_writes(&why))),
        (false, None) => Content::new("ok\n"),
    };
    Ok(content.with_header(CACHE_CONTROL, "no-store"))
}

/// Differs from [`health`]: a node that is drained works, and a store that refuses changes plays.
async fn readiness(call: Call) -> Result<Content<PlainText>, Refusal> {
    let is_drained = call.rest().nodes.node().is_some_and(|it| it.drain.is_draining());
    let is_stopping = call.rest().operation.is_draining.load(Ordering::Acquire)
        && !call.rest().operation.has_successor.load(Ordering::Relaxed);
    let content = if is_drained || is_stopping {
        Content::new("draining\n").with_status(StatusCode::SERVICE_UNAVAILABLE)
    } else {
        Content::new("ok\n")
    };
    Ok(content.with_header(CACHE_CONTROL, "no-store"))
}

async fn metrics(call: Call) -> Result<Content<OpenMetrics>, Refusal> {
    let store = call.rest().models.store.clone();
    // Lists the files of the database.
    let store = spawn_blocking(move || StoreReading::from_store(&store)).await;
    let store = store.map_err(|_| Refusal::fault("read the size of the store"))?;
    let reading = metrics::Reading {
        counts: call.rest().nodes.counts(),
        store,
        admission: Arc::clone(&call.rest().operation.admission),
        failed_logins: call.rest().auth.n_failed_logins(),
        accounts: AccountReading::all(&call.rest().models, &call.rest().slots()),
        guides: GuideReading::all(&call.rest().models),
        deliveries: call.rest().operation.integrations.counts(),
        cluster: call.rest().nodes.cluster.get().map(|it| it.view()),
    };
    metrics::text(reading).map(Content::new).map_err(|_| Refusal::fault("write the metrics"))
}
