//! `/api/schema/`: the interface, described by itself.

use serde_json::Value;

use super::call::Call;
use super::route::{Access, Route};
use crate::http::reply::Refusal;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/schema/", Access::Anyone, "This interface as an OpenAPI 3.0 document.", schema),
        Route::get("/api/schema.json", Access::Anyone, "The same document under another name.", schema),
    ]
}

async fn schema(_: Call) -> Result<Value, Refusal> {
    Ok(super::openapi())
}
