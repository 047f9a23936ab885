//! The Movie Database as a catalogue that completes films and series: its settings, its answers, and which of its titles
//! is the one that an account offers.
//!
//! Shapes of answers: <https://developer.themoviedb.org/reference>, version 3, for `configuration`, `search/movie`,
//! `search/tv`, `find/{id}`, `movie/{id}`, `tv/{id}` and `tv/{id}/season/{number}`.

mod answer;
mod choose;
mod settings;

pub use self::answer::{
    CompletedEpisode, CompletedTitle, PictureAddresses, SearchAnswer, episodes_in, found_by_imdb_id,
};
pub use self::choose::{CatalogueTitle, Choice, choose, fits};
pub use self::settings::{API_KEY_MEMBER, CompletionSettings, masked};

/// The sentence that applications show which use the catalogue, by its terms of use.
pub const ATTRIBUTION: &str = "This product uses the TMDB API but is not endorsed or certified by TMDB.";
