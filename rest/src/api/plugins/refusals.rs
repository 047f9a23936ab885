//! Refusals of requests about plugins.

use http::StatusCode;
use serde_json::json;
use server::reply::Refusal;

/// 404, described.
pub(super) const NO_PLUGIN: &str = "There is no plugin with this key.";
/// Why plugins are refused.
pub(super) const NOT_FOR_PLUGINS: &str =
    "Plugins cannot install, enable, restart, delete or run plugins, nor set their limits.";

/// Refuses a request that names a plugin which does not exist.
pub(super) fn unknown() -> Refusal {
    failed(Refusal::not_found("Plugin not found"), "Plugin not found")
}

/// Gives a refusal the body that clients of plugins read.
pub(super) fn failed(refusal: Refusal, error: &str) -> Refusal {
    refusal.with_body(json!({ "success": false, "error": error, "detail": error }))
}

/// Refuses a request with 400 and a sentence.
pub(super) fn refused(error: &str) -> Refusal {
    failed(Refusal::bad_request(error), error)
}

/// Refuses a request with this status and a sentence.
pub(super) fn refused_with(status: StatusCode, error: &str) -> Refusal {
    failed(Refusal::status(status).with_detail(error), error)
}
