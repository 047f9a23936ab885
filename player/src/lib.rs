//! Routes for player programs: streams, playlists and guides, and the requests of player apps.

mod answers;
pub mod catchup;
pub mod context;
mod endless_stream;
mod formats;
mod fragments;
mod growing_text;
pub mod guide;
mod hls;
mod live;
pub mod long_text;
mod marks;
pub mod options;
pub mod other_nodes;
mod output_profile;
mod panel;
mod past;
pub mod playlist;
mod prepared;
mod ranges;
pub mod recordings;
mod refusals;
mod screen;
mod seat;
pub mod selection;
mod still;
mod stream;
pub mod timeshift;
mod title_entries;
mod tuner;
mod vod;
mod watch;

use actors::System;
use config::Config;
use route_frame::route::Route;
use route_frame::states::States;
use storage::Models;

use self::marks::MarkCache;
use self::output_profile::CompiledOutputRules;
use self::panel::{TitleCommits, TitleTables};
use self::prepared::PreparedAnswers;
use self::screen::{ScreenClips, Screens};
use self::tuner::TunerSeats;
pub use self::tuner::{Device, announced_devices};

/// Maximum size of all lists of films and series that are kept for player apps, in MiB. They are compressed.
const TITLE_LISTS_MEBIBYTES_MAX: usize = 96;

/// Returns the state of each part of this crate. Reads the store, so it blocks.
///
/// # Errors
/// Returns an error if the store cannot be read.
pub fn states(config: &Config, models: &Models, system: &System) -> Result<States, storage::Error> {
    let clips = ScreenClips::new(config.data_dir.join("cache/screens"), system.programs());
    Ok(States::default()
        .with(CompiledOutputRules::default())
        .with(TunerSeats::default())
        .with(Screens::new(clips))
        .with(PreparedAnswers::new())
        .with(MarkCache::default())
        .with(PreparedAnswers::<TitleTables>::with_limit(TITLE_LISTS_MEBIBYTES_MAX))
        .with(TitleCommits::new(models)?))
}

/// Returns the routes of the table that only the player port serves.
pub fn routes() -> Vec<Route> {
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
pub fn api_routes() -> Vec<Route> {
    let all = [
        playlist::api_routes(),
        guide::api_routes(),
        stream::routes(),
        still::routes(),
        hls::routes(),
        vod::api_routes(),
        catchup::api_routes(),
    ];
    all.into_iter().flatten().collect()
}
