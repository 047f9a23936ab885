//! What players ask: streams and playlists.

mod blocked;
mod body;
mod live;
mod playlist;
mod stream;
mod watch;

use std::sync::Arc;

use actors::{LiveSettings, Plans, Switchboard};
use domain::ids::UserId;
use storage::Models;
use warp::Filter;

pub(crate) use self::blocked::Blocked;
pub(crate) use self::playlist::stream_url;
use crate::auth::Auth;
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
    pub(crate) blocked: Arc<Blocked>,
    pub(crate) auth: Auth,
}

impl PlayerParts {
    /// Whether there is such a user, who may still watch.
    fn is_active(&self, user: UserId) -> bool {
        self.models.users.load().get(user.0).is_some_and(|it| it.is_active)
    }
}

/// The routes for players.
pub(crate) fn routes(parts: PlayerParts) -> Routes {
    let live = live::route(parts.clone());
    stream::route(parts.clone()).or(live).unify().or(playlist::route(parts)).unify().boxed()
}

/// The route for players that is so short that it has to come after all others.
pub(crate) fn short_route(parts: PlayerParts) -> Routes {
    live::short_route(parts)
}
