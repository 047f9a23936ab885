//! The elements of the lists of films and series.

use serde::Deserialize;

use super::values::{self, LooseList, LooseObject, first};
use super::{LINE_CHARS_MAX, PanelFacts, PanelMovie, PanelSeries, TITLE_CHARS_MAX};
use crate::panel::lists::{ElementProblem, read, truncated};
use crate::panel::loose::LooseValue;

/// The fields of a film, a series or an episode, as panels call them, in lists and in answers.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct RawTitle {
    id: LooseValue,
    stream_id: LooseValue,
    series_id: LooseValue,
    pub(super) name: LooseValue,
    pub(super) title: LooseValue,
    o_name: LooseValue,
    category_id: LooseValue,
    category_ids: LooseList,
    container_extension: LooseValue,
    added: LooseValue,
    last_modified: LooseValue,
    plot: LooseValue,
    description: LooseValue,
    overview: LooseValue,
    genre: LooseList,
    cast: LooseList,
    actors: LooseList,
    director: LooseList,
    directed_by: LooseList,
    country: LooseList,
    year: LooseValue,
    release_date: LooseValue,
    #[serde(rename = "releaseDate")]
    release_date_2: LooseValue,
    releasedate: LooseValue,
    air_date: LooseValue,
    rating: LooseValue,
    age: LooseValue,
    mpaa_rating: LooseValue,
    duration_secs: LooseValue,
    duration: LooseValue,
    runtime: LooseValue,
    episode_run_time: LooseValue,
    stream_icon: LooseValue,
    cover: LooseValue,
    cover_big: LooseValue,
    movie_image: LooseValue,
    backdrop_path: LooseList,
    trailer: LooseValue,
    youtube_trailer: LooseValue,
    tmdb: LooseValue,
    tmdb_id: LooseValue,
    imdb: LooseValue,
    imdb_id: LooseValue,
    is_adult: LooseValue,
    bitrate: LooseValue,
    video: LooseObject,
    audio: LooseObject,
    pub(super) season: LooseValue,
    pub(super) season_number: LooseValue,
    pub(super) episode_num: LooseValue,
    pub(super) episode_number: LooseValue,
}

impl RawTitle {
    pub(super) fn title_name(&self) -> Option<String> {
        values::line(first(&[&self.name, &self.title]), TITLE_CHARS_MAX)
    }

    /// Returns the id of an episode.
    pub(super) fn any_id(&self) -> Option<String> {
        [&self.id, &self.stream_id].into_iter().find_map(values::id)
    }

    pub(super) fn extension(&self) -> Option<String> {
        values::extension(&self.container_extension)
    }

    pub(super) fn added_at(&self) -> Option<i64> {
        values::time(&[&self.added])
    }

    pub(super) fn modified_at(&self) -> Option<i64> {
        values::time(&[&self.last_modified])
    }

    pub(super) fn facts(self) -> PanelFacts {
        let name = self.title_name();
        let line = |it: &LooseValue| values::line(it, LINE_CHARS_MAX);
        let date = first(&[&self.release_date, &self.release_date_2, &self.releasedate, &self.air_date]);
        let picture = [&self.movie_image, &self.cover_big, &self.cover, &self.stream_icon];
        PanelFacts {
            original_name: values::line(&self.o_name, TITLE_CHARS_MAX).filter(|it| Some(it) != name.as_ref()),
            plot: values::plot(first(&[&self.plot, &self.description, &self.overview])),
            genre: values::names(&self.genre),
            cast: values::names(&self.cast).or_else(|| values::names(&self.actors)),
            director: values::names(&self.director).or_else(|| values::names(&self.directed_by)),
            country: values::names(&self.country),
            year: values::year(&self.year).or_else(|| values::year(date)),
            release_date: line(date).map(|it| truncated(it, 32)),
            rating: values::rating(&self.rating),
            age: values::line(first(&[&self.age, &self.mpaa_rating]), 32).filter(|it| it != "0"),
            duration_secs: values::duration(
                &self.duration_secs,
                &self.duration,
                &[&self.runtime, &self.episode_run_time],
            ),
            picture: picture.iter().find_map(|it| values::picture(it)),
            backdrops: values::pictures(&self.backdrop_path),
            trailer: line(first(&[&self.youtube_trailer, &self.trailer])).filter(|it| it != "0"),
            tmdb_id: values::external_id(&[&self.tmdb_id, &self.tmdb]),
            imdb_id: values::external_id(&[&self.imdb_id, &self.imdb]),
            is_adult: self.is_adult.is_yes(),
            bitrate: self.bitrate.whole().and_then(|it| u32::try_from(it).ok()).filter(|it| *it > 0),
            video: self.video.0,
            audio: self.audio.0,
        }
    }
}

/// Reads a film. One without a name gets one from its id.
///
/// # Errors
/// It cannot be used.
pub fn read_movie(json: &[u8]) -> Result<PanelMovie, ElementProblem> {
    let raw: RawTitle = read(json)?;
    let id = [&raw.stream_id, &raw.id].into_iter().find_map(values::id).ok_or(ElementProblem::NoId)?;
    Ok(PanelMovie {
        name: raw.title_name().unwrap_or_else(|| format!("Film {id}")),
        id,
        categories: values::categories(&raw.category_id, &raw.category_ids),
        extension: raw.extension(),
        added_at: raw.added_at(),
        facts: raw.facts(),
    })
}

/// Reads a series. One without a name gets one from its id.
///
/// # Errors
/// It cannot be used.
pub fn read_series(json: &[u8]) -> Result<PanelSeries, ElementProblem> {
    let raw: RawTitle = read(json)?;
    let id = [&raw.series_id, &raw.id].into_iter().find_map(values::id).ok_or(ElementProblem::NoId)?;
    Ok(PanelSeries {
        name: raw.title_name().unwrap_or_else(|| format!("Series {id}")),
        id,
        categories: values::categories(&raw.category_id, &raw.category_ids),
        modified_at: raw.modified_at(),
        facts: raw.facts(),
    })
}
