//! The REST interface: everything under `/api/`, and under `/proxy/ts/` all that is no stream.
//!
//! A resource is a file: one table of fields, a list of routes, and the functions that answer them. From these come
//! what is read and refused, the schema that is published, who may call what, and the tests that go over all routes.
//! To add one, copy `api/channels/groups.rs`, change the nouns, and add it to the `mod.rs` beside it.
//!
//! Reading order: `api/channels/groups.rs` (a whole resource), then in `frame/`: `record.rs` (tables of fields),
//! `route.rs` (an operation), `dispatch.rs` (everything before a handler runs), `list.rs`, `refuse.rs`, `openapi.rs`.

mod api;
mod frame;
#[cfg(test)]
mod matrix;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::frame::route::{Access, Route};
use self::frame::{dispatch, openapi};
use crate::app::App;
use crate::http::Routes;

/// The routes of the table, for a door. They answer everything under `/api`, and elsewhere what lies below one of them.
pub(crate) fn filter(app: Arc<App>) -> Routes {
    dispatch::filter(app, routes())
}

/// Every operation there is. The one list from which all else is made.
fn routes() -> Vec<Route> {
    api::routes()
}

/// An operation, as tests and tools see it. What it takes and answers is in [`openapi()`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteInfo {
    pub method: String,
    /// With its parameters in braces.
    pub path: &'static str,
    /// The level that a user needs; `None` is open to everybody.
    pub level: Option<u8>,
    pub operation_id: String,
}

/// Every operation there is.
pub fn table() -> Vec<RouteInfo> {
    let info = |route: Route| RouteInfo {
        method: route.method.to_string(),
        path: route.path,
        level: match route.access {
            Access::Anyone => None,
            Access::From(level) => Some(level.number()),
        },
        operation_id: route.operation_id(),
    };
    routes().into_iter().map(info).collect()
}

/// The document that describes the interface: OpenAPI 3.0.3.
pub fn openapi() -> serde_json::Value {
    openapi::document(&routes())
}
