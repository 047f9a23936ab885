//! `/api/schema/`: the description of the API.

use serde_json::Value;

use crate::http::reply::Refusal;
use crate::rest::frame::access::Access;
use crate::rest::frame::call::Call;
use crate::rest::frame::route::Route;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/schema/",
            Access::Anyone,
            "Returns the description of the API as an OpenAPI 3.0 document.",
            schema,
        ),
        Route::get(
            "/api/schema.json",
            Access::Anyone,
            "Returns the description of the API, under the name that some clients expect.",
            schema,
        ),
    ]
}

async fn schema(_: Call) -> Result<Value, Refusal> {
    Ok(crate::rest::openapi())
}
