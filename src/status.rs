//! Routes that both ports serve beside their own: `/`, `/healthz` and `/metrics`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::user::UserLevel;
use http::StatusCode;
use http::header::CACHE_CONTROL;
use resource_derive::View;
use serde::Serialize;

use crate::http::reply::Refusal;
use crate::metrics;
use crate::rest::frame::access::Access;
use crate::rest::frame::call::Call;
use crate::rest::frame::route::{Content, MediaType, PlainText, Route};

/// The gateway and its other addresses.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct AboutView {
    /// Name of the program.
    #[field(example = "headwater")]
    name: &'static str,
    /// Version of the program.
    #[field(example = "0.1.0")]
    version: &'static str,
    /// Path of the playlist.
    #[field(example = "/playlist.m3u")]
    playlist: &'static str,
    /// Path of the health check.
    #[field(example = "/healthz")]
    health: &'static str,
    /// Path of the metrics.
    #[field(example = "/metrics")]
    metrics: &'static str,
}

/// The text format of Prometheus.
struct OpenMetrics;

impl MediaType for OpenMetrics {
    const NAME: &'static str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

pub(crate) fn routes() -> Vec<Route> {
    let scrapers = Access::UsersOrNetworks(UserLevel::Admin);
    vec![
        Route::get("/", Access::Anyone, "Returns the name, the version and other addresses.", about),
        // Answers callers from every network: health is not a secret, and load balancers may run anywhere.
        Route::get("/healthz", Access::Anyone, "Returns whether the gateway accepts requests.", health)
            .refuses_plainly(
                StatusCode::SERVICE_UNAVAILABLE,
                "While it stops, the body is the text `draining`.",
            ),
        Route::get("/metrics", scrapers, "Returns the metrics in the text format of Prometheus.", metrics),
    ]
}

async fn about(_: Call) -> Result<AboutView, Refusal> {
    Ok(AboutView {
        name: "headwater",
        version: env!("CARGO_PKG_VERSION"),
        playlist: "/playlist.m3u",
        health: "/healthz",
        metrics: "/metrics",
    })
}

async fn health(call: Call) -> Result<Content<PlainText>, Refusal> {
    let content = match call.app.is_draining.load(Ordering::Relaxed) {
        true => Content::new("draining\n").with_status(StatusCode::SERVICE_UNAVAILABLE),
        false => Content::new("ok\n"),
    };
    Ok(content.with_header(CACHE_CONTROL, "no-store"))
}

async fn metrics(call: Call) -> Result<Content<OpenMetrics>, Refusal> {
    let page = metrics::text(call.app.counts(), Arc::clone(&call.app.admission));
    page.map(Content::new).map_err(|_| Refusal::fault("write the metrics"))
}
