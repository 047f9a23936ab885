//! Routes for player programs: streams and playlists.

mod body;
mod live;
mod playlist;
mod stream;
mod watch;

use std::sync::Arc;

use warp::Filter;

pub(crate) use self::playlist::stream_url;
use crate::app::App;
use crate::http::Routes;

/// Builds the routes for players.
pub(crate) fn routes(app: Arc<App>) -> Routes {
    let live = live::route(Arc::clone(&app));
    stream::route(Arc::clone(&app)).or(live).unify().or(playlist::route(app)).unify().boxed()
}

/// Builds the shortest route for players. It must come after all others, because it matches any path of three segments.
pub(crate) fn short_route(app: Arc<App>) -> Routes {
    live::short_route(app)
}
