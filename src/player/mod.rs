//! What players ask: streams and playlists.

mod body;
mod playlist;
mod stream;

use std::sync::Arc;

use actors::{LiveSettings, Plans, Switchboard};
use storage::Models;
use warp::Filter;

pub(crate) use self::playlist::stream_url;
use crate::config::Networks;
use crate::http::Routes;

/// What the routes for players need.
#[derive(Clone)]
pub(crate) struct PlayerParts {
    pub(crate) switchboard: Switchboard,
    pub(crate) plans: Arc<dyn Plans>,
    pub(crate) models: Models,
    pub(crate) settings: LiveSettings,
    pub(crate) networks: Arc<Networks>,
}

/// The routes for players.
pub(crate) fn routes(parts: PlayerParts) -> Routes {
    stream::route(parts.clone()).or(playlist::route(parts)).unify().boxed()
}
