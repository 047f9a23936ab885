//! Routes for player programs: streams, playlists and guides, and the requests of player apps.

pub(crate) mod addresses;
pub(crate) mod guide;
mod live;
pub(crate) mod long_text;
pub(crate) mod options;
mod output_profile;
mod panel;
pub(crate) mod playlist;
mod prepared;
mod screen;
pub(crate) mod selection;
mod stream;
#[cfg(test)]
mod tests;
mod tuner;
mod watch;

pub(crate) use self::addresses::stream_address;
pub(crate) use self::output_profile::CompiledOutputRules;
pub(crate) use self::prepared::PreparedAnswers;
pub(crate) use self::screen::{ScreenClips, Screens};
pub(crate) use self::tuner::{Device, TunerSeats, announced_devices};
use crate::rest::frame::route::Route;

/// Returns the routes of the table that only the player port serves.
pub(crate) fn routes() -> Vec<Route> {
    let all = [
        playlist::routes(),
        guide::routes(),
        panel::routes(),
        stream::routes(),
        live::routes(),
        tuner::routes(),
    ];
    all.into_iter().flatten().collect()
}

/// Returns the routes below `/api/`, which both ports serve.
pub(crate) fn api_routes() -> Vec<Route> {
    [playlist::api_routes(), guide::api_routes()].into_iter().flatten().collect()
}
