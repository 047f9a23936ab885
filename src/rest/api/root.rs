//! `/api/`: where to begin.

use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::record::view;
use crate::rest::frame::route::{Access, Route};

view! {
    /// Where to begin.
    Root {
        /// The program.
        name: &'static str [example("headwater")],
        /// Its version.
        version: &'static str [example("0.1.0")],
        /// Where this interface is described.
        schema: &'static str [example("/api/schema/")],
    }
}

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/api/", Access::Anyone, "Where to begin.", root)]
}

async fn root(_: Call) -> Result<Root, Refusal> {
    Ok(Root { name: "headwater", version: env!("CARGO_PKG_VERSION"), schema: "/api/schema/" })
}
