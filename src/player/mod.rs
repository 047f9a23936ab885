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

use actors::System;
use config::Config;
use domain::vod::Title;
use storage::{Models, Record, View};

use self::output_profile::CompiledOutputRules;
use self::panel::TitleTables;
use self::prepared::PreparedAnswers;
use self::screen::{ScreenClips, Screens};
use self::tuner::TunerSeats;
pub(crate) use self::tuner::{Device, announced_devices};
use crate::app::App;
use crate::rest::frame::route::Route;

/// Maximum size of all lists of films and series that are kept for player apps, in MiB. They are compressed.
const TITLE_LISTS_MEBIBYTES_MAX: usize = 96;

/// The state that requests of players share.
pub(crate) struct PlayerState {
    output_rules: CompiledOutputRules,
    /// Tuners of emulated devices that are in use.
    tuner_seats: TunerSeats,
    /// Clips with the reason why a stream does not start.
    screens: Screens,
    /// Lists that many players request.
    prepared_answers: PreparedAnswers,
    /// The same for lists of films and series.
    prepared_titles: PreparedAnswers<TitleTables>,
    /// Number of the last commit to films and series.
    title_commits: View<u64>,
}

impl PlayerState {
    /// Reads the store, so it blocks.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    pub(crate) fn new(config: &Config, models: &Models, system: &System) -> Result<Self, storage::Error> {
        Ok(Self {
            output_rules: CompiledOutputRules::default(),
            tuner_seats: TunerSeats::default(),
            screens: Screens::new(ScreenClips::new(config.data_dir.join("cache/screens"), system.programs())),
            prepared_answers: PreparedAnswers::new(),
            prepared_titles: PreparedAnswers::with_limit(TITLE_LISTS_MEBIBYTES_MAX),
            title_commits: models
                .store
                .view(const { &[Title::COLLECTION] }, |reader, _| Ok(reader.version()))?,
        })
    }
}

impl App {
    /// Returns the state that requests of players share.
    fn players(&self) -> &PlayerState {
        self.state()
    }
}

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
