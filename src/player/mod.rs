//! Routes for player programs: streams, playlists and guides, and the requests of player apps.

#[cfg(test)]
mod archive_tests;
pub(crate) mod catchup;
mod fragments;
mod growing_text;
pub(crate) mod guide;
#[cfg(test)]
mod guide_tests;
mod hls;
mod live;
pub(crate) mod long_text;
pub(crate) mod options;
pub(crate) mod other_nodes;
mod output_profile;
#[cfg(test)]
mod output_tests;
mod panel;
mod past;
pub(crate) mod playlist;
mod prepared;
mod ranges;
pub(crate) mod recordings;
mod screen;
mod seat;
pub(crate) mod selection;
mod stream;
#[cfg(test)]
mod tests;
pub(crate) mod timeshift;
mod title_entries;
mod tuner;
mod vod;
mod watch;

pub(crate) use self::output_profile::CompiledOutputRules;
pub(crate) use self::panel::TitleTables;
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
        live::routes(),
        vod::routes(),
        catchup::routes(),
        recordings::routes(),
        tuner::routes(),
    ];
    all.into_iter().flatten().collect()
}

/// Returns the routes that both ports serve: those below `/api/`, and streams, which the web interface plays.
pub(crate) fn api_routes() -> Vec<Route> {
    let all = [
        playlist::api_routes(),
        guide::api_routes(),
        stream::routes(),
        hls::routes(),
        vod::api_routes(),
        catchup::api_routes(),
    ];
    all.into_iter().flatten().collect()
}
