//! Routes that both ports serve beside their own: `/`, `/healthz` and `/metrics`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode};
use warp::Filter;
use warp::reply::Response as Reply;

use crate::app::App;
use crate::http::caller::{Caller, caller};
use crate::http::reply::{Refusal, json, text};
use crate::http::{Routes, method};
use crate::metrics;

const METHODS: &str = "GET, HEAD";

/// Builds the routes `/`, `/healthz` and `/metrics`.
pub(crate) fn routes(app: Arc<App>) -> Routes {
    let root = warp::path::end().and(method(METHODS)).map(|_: Method| about());
    let health = {
        let app = Arc::clone(&app);
        warp::path("healthz").and(warp::path::end()).and(method(METHODS)).map(move |_: Method| health(&app))
    };
    let metrics = warp::path("metrics")
        .and(warp::path::end())
        .and(method(METHODS))
        .and(caller())
        .map(move |_: Method, caller: Caller| metrics(&app, &caller));
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

/// Answers callers from every network: health is not a secret, and load balancers may run anywhere.
fn health(app: &App) -> Reply {
    let mut response = if app.is_draining.load(Ordering::Relaxed) {
        text(StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else {
        text(StatusCode::OK, "ok\n")
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn metrics(app: &App, caller: &Caller) -> Reply {
    if !app.config.metrics_networks.contains(caller.address()) {
        return Refusal::network().into_response();
    }
    let Ok(page) = metrics::text(app.counts(), Arc::clone(&app.admission)) else {
        return Refusal::bug().into_response();
    };
    let mut response = text(StatusCode::OK, page);
    let content_type = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
