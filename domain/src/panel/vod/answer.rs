//! The answers about one film and about one series with its episodes.

use std::collections::HashMap;

use serde::Deserialize;

use super::items::RawTitle;
use super::list::without_preamble;
use super::{MovieInfo, PanelEpisode, PanelFacts, SeriesInfo, SkippedElements, TITLE_CHARS_MAX, values};
use crate::panel::elements::{Element, ElementParser, ListEnd, NotAList};
use crate::panel::lists::{ElementProblem, read};
use crate::panel::loose::LooseValue;
use crate::vod::episode_name::episode_name;

/// Maximum length of an answer about a film, in bytes. The usual ones have a few thousand.
pub const MOVIE_INFO_BYTES_MAX: usize = 1 << 20;
/// Maximum length of an answer about a series, in bytes. An episode takes about a thousand.
pub const SERIES_INFO_BYTES_MAX: usize = 16 << 20;
/// Maximum number of episodes of a series. Daily programmes have some thousand.
pub const EPISODES_MAX: usize = 10_000;

/// How deep lists of episodes are nested: by season and by number.
const DEPTH_MAX: u32 = 3;
/// Maximum length of one episode, in bytes.
const EPISODE_BYTES_MAX: usize = 64 * 1024;

/// Why an answer says nothing about a title. It changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TitleAnswerError {
    #[error("{0} of details")]
    NotAnAnswer(NotAList),
    #[error("the answer of the panel is cut off")]
    Truncated,
    #[error("the panel does not know this title")]
    Unknown,
    #[error("the panel refuses this login")]
    Refused,
}

/// The members of an answer.
#[derive(Default)]
struct Members {
    info: Option<Vec<u8>>,
    movie_data: Option<Vec<u8>>,
    episodes: Option<Vec<u8>>,
    is_refusal: bool,
}

/// Finds the members of an answer that is not cut off.
fn members(bytes: &[u8]) -> Result<Members, TitleAnswerError> {
    let json = without_preamble(bytes).map_err(TitleAnswerError::NotAnAnswer)?;
    let mut found = Members::default();
    let mut parser = ElementParser::new(json.len());
    parser.push(json, &mut |element| {
        let Element::Value { key: Some(key), json } = element else { return };
        match key {
            b"info" => found.info = Some(json.to_vec()),
            b"movie_data" => found.movie_data = Some(json.to_vec()),
            b"episodes" => found.episodes = Some(json.to_vec()),
            b"user_info" => found.is_refusal = true,
            _ => {}
        }
    });
    match parser.finish() {
        ListEnd::Complete => Ok(found),
        ListEnd::Truncated => Err(TitleAnswerError::Truncated),
        ListEnd::NotAList(reason) => Err(TitleAnswerError::NotAnAnswer(reason)),
    }
}

/// Reads the answer to `get_vod_info`.
///
/// # Errors
/// It says nothing about a film.
pub fn read_movie_info(bytes: &[u8]) -> Result<MovieInfo, TitleAnswerError> {
    let members = members(bytes)?;
    if members.is_refusal && members.info.is_none() {
        return Err(TitleAnswerError::Refused);
    }
    let title = |json: Option<Vec<u8>>| json.and_then(|it| read::<RawTitle>(&it).ok());
    let (info, data) = (title(members.info), title(members.movie_data));
    if info.is_none() && data.is_none() {
        return Err(TitleAnswerError::Unknown);
    }
    let (info, data) = (info.unwrap_or_default(), data.unwrap_or_default());
    Ok(MovieInfo {
        name: data.title_name().or_else(|| info.title_name()),
        extension: data.extension().or_else(|| info.extension()),
        facts: joined(info.facts(), data.facts()),
    })
}

/// Returns the facts with those of another place of the answer where they are missing.
fn joined(facts: PanelFacts, others: PanelFacts) -> PanelFacts {
    PanelFacts {
        original_name: facts.original_name.or(others.original_name),
        plot: facts.plot.or(others.plot),
        genre: facts.genre.or(others.genre),
        cast: facts.cast.or(others.cast),
        director: facts.director.or(others.director),
        country: facts.country.or(others.country),
        release_date: facts.release_date.or(others.release_date),
        year: facts.year.or(others.year),
        rating: facts.rating.or(others.rating),
        age: facts.age.or(others.age),
        duration_secs: facts.duration_secs.or(others.duration_secs),
        picture: facts.picture.or(others.picture),
        backdrops: if facts.backdrops.is_empty() { others.backdrops } else { facts.backdrops },
        trailer: facts.trailer.or(others.trailer),
        tmdb_id: facts.tmdb_id.or(others.tmdb_id),
        imdb_id: facts.imdb_id.or(others.imdb_id),
        is_adult: facts.is_adult || others.is_adult,
        bitrate: facts.bitrate.or(others.bitrate),
        video: if facts.video.is_empty() { others.video } else { facts.video },
        audio: if facts.audio.is_empty() { others.audio } else { facts.audio },
    }
}

/// Reads the answer to `get_series_info`. Its `episodes` are an object with a list for each season, a list of lists, or
/// one list.
///
/// # Errors
/// It says nothing about a series. An answer without any episode is valid: the caller decides what it means.
pub fn read_series_info(bytes: &[u8]) -> Result<SeriesInfo, TitleAnswerError> {
    let members = members(bytes)?;
    if members.is_refusal && members.info.is_none() {
        return Err(TitleAnswerError::Refused);
    }
    let info = members.info.as_deref().and_then(|it| read::<RawTitle>(it).ok());
    if info.is_none() && members.episodes.is_none() {
        return Err(TitleAnswerError::Unknown);
    }
    let info = info.unwrap_or_default();
    let mut episodes = Episodes::default();
    if let Some(json) = &members.episodes {
        episodes.add_list(json, Season::Unknown, 1);
    }
    Ok(SeriesInfo {
        name: info.title_name(),
        modified_at: info.modified_at(),
        facts: info.facts(),
        episodes: episodes.found,
        skipped: episodes.skipped,
    })
}

/// The season that the place of an episode states.
#[derive(Clone, Copy)]
enum Season {
    Unknown,
    /// The key of its list.
    Key(u32),
    /// The position of its list: panels send seasons that are numbered from 0 without gaps as a list.
    Position(u32),
}

#[derive(Default)]
struct Episodes {
    found: Vec<PanelEpisode>,
    /// The largest number of each season.
    last: HashMap<u32, u32>,
    skipped: SkippedElements,
}

impl Episodes {
    fn add_list(&mut self, json: &[u8], season: Season, depth: u32) {
        let max = if depth < DEPTH_MAX { json.len() } else { EPISODE_BYTES_MAX };
        let mut parser = ElementParser::new(max);
        let mut position = 0;
        parser.push(json, &mut |element| {
            match element {
                Element::Value { key, json } => self.add(key, json, position, season, depth),
                Element::TooLong => self.skipped.add(ElementProblem::TooLong),
            }
            position += 1;
        });
    }

    fn add(&mut self, key: Option<&[u8]>, json: &[u8], position: u32, season: Season, depth: u32) {
        let key = key.and_then(|it| str::from_utf8(it).ok());
        let key = key.and_then(|it| values::ordinal(&LooseValue::Text(it.to_owned())));
        let inner = match (season, key) {
            (Season::Unknown, Some(key)) => Season::Key(key),
            (Season::Unknown, None) => Season::Position(position),
            (season, _) => season,
        };
        let json = json.trim_ascii();
        if json.starts_with(b"[") {
            return match depth < DEPTH_MAX {
                true => self.add_list(json, inner, depth + 1),
                false => self.skipped.add(ElementProblem::NotAnObject),
            };
        }
        let problem = match json.len() {
            // An object of episodes by number.
            _ if depth < DEPTH_MAX && is_list_of_objects(json) => {
                return self.add_list(json, inner, depth + 1);
            }
            n_bytes if n_bytes > EPISODE_BYTES_MAX => ElementProblem::TooLong,
            _ if self.found.len() >= EPISODES_MAX => ElementProblem::TooMany,
            _ => match read::<RawEpisode>(json) {
                // The place of an episode in a flat list says nothing.
                Ok(raw) => match self.episode(raw, season) {
                    Ok(episode) => return self.found.push(episode),
                    Err(problem) => problem,
                },
                Err(problem) => problem,
            },
        };
        self.skipped.add(problem);
    }

    fn episode(&mut self, raw: RawEpisode, season: Season) -> Result<PanelEpisode, ElementProblem> {
        let RawEpisode { title: raw, info } = raw;
        let id = raw.any_id().ok_or(ElementProblem::NoId)?;
        let name = values::line(values::first(&[&raw.title, &raw.name]), TITLE_CHARS_MAX);
        let parsed = name.as_deref().and_then(episode_name).map(|it| (it.season, it.number));
        let info = info.unwrap_or_default();
        let field = [&raw.season, &raw.season_number, &info.season, &info.season_number];
        let field = field.into_iter().find_map(values::ordinal);
        let (key, position) = match season {
            Season::Unknown => (None, None),
            Season::Key(key) => (Some(key), None),
            Season::Position(position) => (None, Some(position)),
        };
        let season = key.or(field).or(parsed.map(|it| it.0)).or(position).unwrap_or(1);
        let number = [&raw.episode_num, &raw.episode_number, &info.episode_num, &info.episode_number];
        let number = number.into_iter().find_map(values::ordinal).or(parsed.map(|it| it.1));
        // An episode without a number follows the last one of its season.
        let last = self.last.entry(season).or_default();
        let number = number.unwrap_or_else(|| (*last + 1).min(values::ORDINAL_MAX));
        *last = number.max(*last);
        Ok(PanelEpisode {
            name: name.unwrap_or_else(|| format!("Episode {number}")),
            id,
            season,
            number,
            extension: raw.extension(),
            added_at: raw.added_at(),
            facts: joined(info.facts(), raw.facts()),
        })
    }
}

/// Returns whether an object has only objects as its values.
fn is_list_of_objects(json: &[u8]) -> bool {
    let (mut n_objects, mut n_others) = (0, 0);
    let mut parser = ElementParser::new(json.len());
    parser.push(json, &mut |element| match element {
        Element::Value { key: Some(b"info"), .. } => n_others += 1,
        Element::Value { key: Some(_), json } if json.starts_with(b"{") => n_objects += 1,
        _ => n_others += 1,
    });
    n_objects > 0 && n_others == 0
}

/// An episode with the object that describes it further.
#[derive(serde::Deserialize)]
struct RawEpisode {
    #[serde(flatten)]
    title: RawTitle,
    #[serde(default, deserialize_with = "object_or_nothing")]
    info: Option<RawTitle>,
}

/// Reads an object; panels send an empty list for an empty object.
fn object_or_nothing<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RawTitle>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value.is_object().then(|| RawTitle::deserialize(value).ok()).flatten())
}
