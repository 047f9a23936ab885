//! `/api/`: the API root.

use resource_derive::View;
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::reply::Refusal;

/// The API root.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RootView {
    /// Name of the program.
    #[field(example = "headwater")]
    name: &'static str,
    /// Version of the program.
    #[field(example = "0.2.0")]
    version: &'static str,
    /// Path of the description of the API.
    #[field(example = "/api/schema/")]
    schema: &'static str,
}

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get(
        "/api/",
        Access::Anyone,
        "Returns the name, the version and the path of the schema.",
        root,
    )]
}

async fn root(_: Call) -> Result<RootView, Refusal> {
    Ok(RootView { name: "headwater", version: env!("CARGO_PKG_VERSION"), schema: "/api/schema/" })
}
