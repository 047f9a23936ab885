//! Routes for player programs: streams and playlists.

mod live;
mod playlist;
mod stream;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use self::playlist::stream_url;
use crate::rest::frame::route::Route;

/// Returns the routes of the table that only the player port serves.
pub(crate) fn routes() -> Vec<Route> {
    [playlist::routes(), stream::routes(), live::routes()].into_iter().flatten().collect()
}
