//! Routes for player programs: streams, playlists, and the requests of player apps.

mod addresses;
mod live;
mod output_profile;
mod panel;
mod playlist;
mod prepared;
mod screen;
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
    let all = [playlist::routes(), panel::routes(), stream::routes(), live::routes(), tuner::routes()];
    all.into_iter().flatten().collect()
}
