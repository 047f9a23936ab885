//! The programme of a recording, taken from a guide.

use super::rules::episode_id_of;
use super::{DESCRIPTION_CHARS_MAX, PROGRAMME_TEXT_CHARS_MAX, RecordedProgramme};
use crate::guide::programme::Programme;

/// Separates the id of a programme in the guide from the minutes by which a channel shows it later.
pub const SHIFTED_ID: char = '_';

impl RecordedProgramme {
    /// Returns whether both have the same place in the guide, also if they are shown at different times because the offset of
    /// the guide has changed.
    pub fn is_same_place(&self, other: &Self) -> bool {
        let place = |it: &'_ Self| Some(it.id.as_deref()?.split(SHIFTED_ID).next()?.to_owned());
        place(self).filter(|it| !it.is_empty()).is_some_and(|it| Some(it) == place(other))
    }

    /// Returns what a recording keeps of a programme of the guide channel with this key. Title and sub-title are without
    /// marks, so that the recordings of a series have one name.
    pub fn from_guide(programme: &Programme, id: String, tvg_id: &str) -> Self {
        let (season, episode) = programme.season_episode();
        let short = |it: &str, chars_max: usize| match it.len() <= chars_max {
            true => it.to_owned(),
            false => it.chars().take(chars_max).collect(),
        };
        let year = programme.date.as_deref().and_then(|it| it.get(..4)?.parse().ok());
        let is_movie_category = |it: &str| {
            let it = it.to_lowercase();
            it.contains("movie") || it.contains("film")
        };
        Self {
            id: Some(id),
            title: short(&programme.plain_title(), PROGRAMME_TEXT_CHARS_MAX),
            sub_title: programme.plain_sub_title().map(|it| short(&it, PROGRAMME_TEXT_CHARS_MAX)),
            description: programme.description().map(|it| short(it, DESCRIPTION_CHARS_MAX)),
            tvg_id: Some(short(tvg_id, PROGRAMME_TEXT_CHARS_MAX)),
            season,
            episode,
            year,
            is_movie: programme.categories().any(is_movie_category),
            episode_id: episode_id_of(programme).map(|it| short(it, PROGRAMME_TEXT_CHARS_MAX)),
        }
    }
}
