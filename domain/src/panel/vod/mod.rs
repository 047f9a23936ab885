//! Films and series of a panel.
//!
//! A list (`get_vod_streams`, `get_series`, and the two of categories) is split by a [`VodListParser`] and read element by
//! element. The answer about one title (`get_vod_info`, `get_series_info`) is small and read whole, but its episodes again
//! one by one. An element that cannot be used is counted with its reason ([`SkippedElements`]), and spoils none of its
//! neighbours.

mod answer;
mod found;
mod items;
mod list;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

pub use self::answer::{
    EPISODES_MAX, MOVIE_INFO_BYTES_MAX, SERIES_INFO_BYTES_MAX, TitleAnswerError, read_movie_info,
    read_series_info,
};
pub use self::items::{read_movie, read_series};
pub use self::list::{PREAMBLE_BYTES_MAX, VodListParser};
use super::lists::ElementProblem;

/// Maximum lengths of the values of a title, in characters. The end of a longer text is dropped.
pub const TITLE_CHARS_MAX: usize = 255;
pub const PLOT_CHARS_MAX: usize = 4_000;
pub const LINE_CHARS_MAX: usize = 500;
pub const RATING_CHARS_MAX: usize = 10;
/// Maximum length of the address of a picture, in bytes. A longer one is dropped.
pub const PICTURE_BYTES_MAX: usize = 2_048;
/// Maximum number of background pictures of a title.
pub const BACKDROPS_MAX: usize = 8;
/// Maximum length of an id, in bytes. An element with a longer one cannot be used.
pub const ID_BYTES_MAX: usize = 64;

/// The values of a title that a panel states, in a list or in an answer about it. Every value may be missing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PanelFacts {
    /// The name in the original language, if it is another one.
    pub original_name: Option<String>,
    pub plot: Option<String>,
    pub genre: Option<String>,
    pub cast: Option<String>,
    pub director: Option<String>,
    pub country: Option<String>,
    /// `YYYY-MM-DD` or `YYYY`, as the panel writes it.
    pub release_date: Option<String>,
    /// Between 1870 and 2100.
    pub year: Option<u16>,
    /// A number from 0 to 10 as a text.
    pub rating: Option<String>,
    /// The lowest recommended age, as a text.
    pub age: Option<String>,
    pub duration_secs: Option<u32>,
    pub picture: Option<String>,
    pub backdrops: Vec<String>,
    pub trailer: Option<String>,
    /// Ids in two external catalogues. Never `0` or a word for a missing value.
    pub tmdb_id: Option<String>,
    pub imdb_id: Option<String>,
    pub is_adult: bool,
    /// Kilobits per second.
    pub bitrate: Option<u32>,
    /// The streams of the file as the panel describes them.
    pub video: Map<String, Value>,
    pub audio: Map<String, Value>,
}

/// A film of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct PanelMovie {
    pub id: String,
    /// Never empty.
    pub name: String,
    /// The ids of its categories, the first one first. Empty if it has none.
    pub categories: Vec<String>,
    /// The extension of the file, in lower case and without a point.
    pub extension: Option<String>,
    /// When the panel got it, in milliseconds since 1970.
    pub added_at: Option<i64>,
    pub facts: PanelFacts,
}

/// A series of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct PanelSeries {
    pub id: String,
    /// Never empty.
    pub name: String,
    pub categories: Vec<String>,
    /// When the panel last changed its episodes, in milliseconds since 1970.
    pub modified_at: Option<i64>,
    pub facts: PanelFacts,
}

/// An episode of a series of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct PanelEpisode {
    pub id: String,
    /// Never empty.
    pub name: String,
    /// 0 has the specials.
    pub season: u32,
    pub number: u32,
    pub extension: Option<String>,
    pub added_at: Option<i64>,
    pub facts: PanelFacts,
}

/// The answer about a film.
#[derive(Debug, Clone, PartialEq)]
pub struct MovieInfo {
    pub name: Option<String>,
    pub extension: Option<String>,
    pub facts: PanelFacts,
}

/// The answer about a series.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesInfo {
    pub name: Option<String>,
    pub facts: PanelFacts,
    pub modified_at: Option<i64>,
    /// In the order of the answer. Several may have the same season and number.
    pub episodes: Vec<PanelEpisode>,
    pub skipped: SkippedElements,
}

/// How many elements of a list could not be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkippedElements(BTreeMap<ElementProblem, u64>);

impl SkippedElements {
    /// Counts one more element.
    pub fn add(&mut self, problem: ElementProblem) {
        *self.0.entry(problem).or_default() += 1;
    }

    /// Counts those of another list.
    pub fn extend(&mut self, other: &Self) {
        for (problem, n) in &other.0 {
            *self.0.entry(*problem).or_default() += n;
        }
    }

    /// Returns the number of all elements that could not be used.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

/// `3 left out: 2 (it has no usable id), 1 (it is too long)`.
impl fmt::Display for SkippedElements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} left out", self.total())?;
        for (n, (problem, count)) in self.0.iter().enumerate() {
            let separator = if n == 0 { ":" } else { "," };
            write!(f, "{separator} {count} ({problem})")?;
        }
        Ok(())
    }
}
