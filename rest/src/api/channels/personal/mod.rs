//! `/api/channels/playlists/` and `/api/channels/favorites/`: the personal playlists of users.

mod favorites;
mod limits;
mod playlists;
#[cfg(test)]
mod tests;

use route_frame::route::Route;

pub(super) fn routes() -> Vec<Route> {
    [playlists::routes(), favorites::routes()].into_iter().flatten().collect()
}
