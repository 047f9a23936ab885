//! What both ports answer apart from their own routes: what this is, whether it is well, and what it counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode};
use warp::Filter;
use warp::reply::Response as Reply;

use crate::config::Networks;
use crate::http::caller::{Caller, caller};
use crate::http::reply::{Refusal, json, text};
use crate::http::{Routes, method};
use crate::metrics::Metrics;

const METHODS: &str = "GET, HEAD";

/// What these routes need.
#[derive(Clone)]
pub(crate) struct StatusParts {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) networks: Arc<Networks>,
    pub(crate) draining: Arc<AtomicBool>,
}

/// `/`, `/healthz` and `/metrics`.
pub(crate) fn routes(parts: StatusParts) -> Routes {
    let draining = Arc::clone(&parts.draining);
    let root = warp::path::end().and(method(METHODS)).map(|_: Method| about());
    let health = warp::path("healthz")
        .and(warp::path::end())
        .and(method(METHODS))
        .map(move |_: Method| health(&draining));
    let metrics = warp::path("metrics")
        .and(warp::path::end())
        .and(method(METHODS))
        .and(caller())
        .map(move |_: Method, caller: Caller| metrics(&parts, &caller));
    root.or(health).unify().or(metrics).unify().boxed()
}

fn about() -> Reply {
    json(
        StatusCode::OK,
        &serde_json::json!({
            "name": "headwater",
            "version": env!("CARGO_PKG_VERSION"),
            "playlist": "/playlist.m3u",
            "health": "/healthz",
            "metrics": "/metrics",
        }),
    )
}

/// Answers everybody: that a gateway is well is no secret, and load balancers ask from anywhere.
fn health(draining: &AtomicBool) -> Reply {
    let mut response = if draining.load(Ordering::Relaxed) {
        text(StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else {
        text(StatusCode::OK, "ok\n")
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn metrics(parts: &StatusParts, caller: &Caller) -> Reply {
    if !parts.networks.contains(caller.address()) {
        return Refusal::network().into_response();
    }
    let Ok(page) = parts.metrics.text() else {
        return Refusal::bug().into_response();
    };
    let mut response = text(StatusCode::OK, page);
    let content_type = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
