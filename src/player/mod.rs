//! Routes for player programs: streams, playlists, and the requests of player apps.

mod addresses;
mod live;
mod output_profile;
mod panel;
mod playlist;
mod prepared;
mod stream;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use self::addresses::stream_address;
pub(crate) use self::output_profile::CompiledOutputRules;
pub(crate) use self::prepared::PreparedAnswers;
use crate::rest::frame::route::Route;

/// Returns the routes of the table that only the player port serves.
pub(crate) fn routes() -> Vec<Route> {
    [playlist::routes(), panel::routes(), stream::routes(), live::routes()].into_iter().flatten().collect()
}
