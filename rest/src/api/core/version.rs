//! `/api/core/version/`: the version of the gateway.

use resource_derive::View;
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::reply::Refusal;

/// Version of the gateway.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct VersionView {
    /// Version number of the release.
    #[field(example = "0.2.0")]
    version: &'static str,
    /// Time of the build, if known.
    timestamp: Option<&'static str>,
}

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/api/core/version/", Access::Anyone, "Returns the version of the gateway.", version)]
}

async fn version(_: Call) -> Result<VersionView, Refusal> {
    // Builds are reproducible, so they have no time stamp.
    Ok(VersionView { version: env!("CARGO_PKG_VERSION"), timestamp: None })
}
