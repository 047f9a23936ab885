//! `/api/core/version/`: which version answers.

use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::record::view;
use crate::rest::frame::route::{Access, Route};

view! {
    /// Which version answers.
    Version {
        /// As in the name of the release.
        version: &'static str [example("0.1.0")],
        /// When this version was built, where that is known.
        timestamp: Option<&'static str>,
    }
}

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/api/core/version/", Access::Anyone, "Which version answers.", version)]
}

async fn version(_: Call) -> Result<Version, Refusal> {
    // A build has no time stamp of its own: the same source makes the same program.
    Ok(Version { version: env!("CARGO_PKG_VERSION"), timestamp: None })
}
