//! The REST interface, and the table of all routes of the gateway except the WebSocket.
//!
//! A resource is a file with its tables of fields, its routes and their handlers. From the tables and routes come the
//! reading of requests, the refusals, the published schema, the access checks, and the tests that call every route.
//! To add one, copy `api/channels/groups.rs`, change the nouns, and add it to the `mod.rs` beside it.
//!
//! Reading order: `api/channels/groups.rs` (a whole resource), `record.rs` (rendering and changing records), `list.rs`,
//! then in the crate `route-frame`: `field.rs` (tables of fields), `route.rs` (an operation), `access.rs` (its callers),
//! `dispatch.rs` (everything before a handler runs), `openapi.rs`.

pub(crate) mod api;
mod api_docs;
mod choice;
#[cfg(test)]
mod conform;
pub mod context;
pub mod demo;
#[cfg(test)]
mod dispatch_tests;
pub mod gateway_conditions;
#[cfg(test)]
pub(crate) mod guide_testing;
#[cfg(test)]
mod guide_tests;
mod images;
mod list;
#[cfg(test)]
mod list_tests;
mod machine_conditions;
#[cfg(test)]
mod matrix;
#[cfg(test)]
mod permission_tests;
#[cfg(test)]
mod player_tests;
pub mod plugin_archives;
#[cfg(test)]
mod plugin_tests;
#[cfg(test)]
mod reads;
mod record;
pub mod recording_artwork;
#[cfg(test)]
mod reference_tests;
mod revisions;
mod saved_upload;
mod seen;
#[cfg(test)]
mod seen_tests;
mod status;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod text_code;
#[cfg(test)]
pub(crate) mod title_testing;
mod ui;
#[cfg(test)]
mod upload_tests;
mod wait_conditions;

use std::sync::Arc;

use domain::user::UserLevel;
use route_frame::context::FrameContext;
use route_frame::plugin::PluginCalls;
use route_frame::route::Route;
use route_frame::{dispatch, openapi};
use server::Routes;

pub use self::api::{
    ChannelKeys, ChannelMaker, PICTURE_BYTES_MAX, check_avatar, pushed_channel, pushed_past_stats,
    pushed_stats,
};

/// Returns the routes of the table as a filter, which answers every request.
pub fn filter(frame: Arc<FrameContext>, port: Port) -> Routes {
    dispatch::filter(frame, routes_of(port))
}

/// Returns what answers the calls of plugins over their pipes: the routes of the API.
pub fn plugin_calls(frame: &Arc<FrameContext>) -> PluginCalls {
    PluginCalls::new(frame, routes_of(Port::Api))
}

/// A port of the gateway. The player port serves every route, the API port those that are not only for players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// For administrators' programs.
    Api,
    /// For players and browsers.
    Player,
}

/// Returns every operation: the list from which everything else is derived.
fn routes() -> Vec<Route> {
    routes_of(Port::Player)
}

fn routes_of(port: Port) -> Vec<Route> {
    let players = match port {
        Port::Api => Vec::new(),
        Port::Player => player::routes(),
    };
    [api::routes(), api_docs::routes(), player::api_routes(), status::routes(), ui::routes(), players]
        .into_iter()
        .flatten()
        .map(revisions::with_record)
        .collect()
}

/// An operation, for tests and tools. Its input and answers are in [`openapi()`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteInfo {
    pub method: String,
    /// Path with its parameters in braces.
    pub path: &'static str,
    /// Minimum level of the user; `None` if callers may be without credentials, or send them in the path.
    pub level: Option<u8>,
    pub operation_id: String,
}

/// Returns whether the gateway has a route with this path, with its parameters in braces.
fn serves(path: &str) -> bool {
    routes().iter().any(|it| it.path == path)
}

/// Returns every operation.
pub fn table() -> Vec<RouteInfo> {
    let info = |route: Route| RouteInfo {
        method: route.method.to_string(),
        path: route.path,
        level: route.access.level().map(UserLevel::number),
        operation_id: route.operation_id(),
    };
    routes().into_iter().map(info).collect()
}

/// Returns the description of the interface in OpenAPI 3.0.3.
pub fn openapi() -> serde_json::Value {
    openapi::document(&routes())
}
