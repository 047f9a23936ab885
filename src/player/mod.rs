//! Routes for player programs: streams and playlists.

mod body;
mod live;
mod playlist;
mod stream;
#[cfg(test)]
mod tests;
mod watch;

use std::sync::Arc;

use warp::Filter;

pub(crate) use self::playlist::stream_url;
use crate::app::App;
use crate::http::Routes;
use crate::rest::frame::route::Route;

/// Returns the routes of the table that only the player port serves.
pub(crate) fn table() -> Vec<Route> {
    playlist::routes()
}

/// Builds the filters of the streams.
pub(crate) fn routes(app: Arc<App>) -> Routes {
    let live = live::route(Arc::clone(&app));
    stream::route(app).or(live).unify().boxed()
}

/// Builds the shortest route for players. It must come after all others, because it matches any path of three segments.
pub(crate) fn short_route(app: Arc<App>) -> Routes {
    live::short_route(app)
}
