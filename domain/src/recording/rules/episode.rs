//! The identity of an episode, by which showings of the same one are recognised.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::normal_text::{FNV_BASIS, each_normal_byte, fnv};
use super::weekly::CivilDay;
use crate::guide::marks::{has_marks, without_number_of_marks, year_of_title};
use crate::guide::programme::Programme;

/// The identity of an episode: a hash, which is stored. Where a version computes another one than those before it, see
/// [`EpisodeKey::former_of`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EpisodeKey {
    hash: u64,
    /// Whether the guide says which episode it is. Otherwise each showing counts as an episode.
    is_known: bool,
}

/// The texts of a programme that identify its episode.
struct EpisodeTexts<'a> {
    title: Cow<'a, str>,
    /// The year that is a mark of the title.
    year: Option<u32>,
    sub_title: Option<Cow<'a, str>>,
    description: Option<Cow<'a, str>>,
}

impl<'a> EpisodeTexts<'a> {
    /// Returns the texts with their marks.
    fn marked(programme: &'a Programme) -> Self {
        Self {
            title: Cow::Borrowed(programme.title()),
            year: None,
            sub_title: programme.sub_title().map(Cow::Borrowed),
            description: programme.description().map(Cow::Borrowed),
        }
    }
}

impl EpisodeKey {
    /// Returns the identity of a programme: the episode id of the guide, season and episode, the subtitle or the description,
    /// the first that the guide has. Without any of them, guide channel and start identify it. Texts count without marks.
    pub fn from_programme(programme: &Programme, guide_key: &str) -> Self {
        let texts = EpisodeTexts {
            title: programme.plain_title(),
            year: year_of_title(programme.title()),
            sub_title: programme.plain_sub_title(),
            description: programme.plain_description(),
        };
        Self::from_texts(programme, &texts, guide_key)
    }

    /// Returns the identity of a programme, and [those of former versions](Self::former_of). Almost all programmes have no
    /// marks, and then nothing differs.
    pub(super) fn with_former(programme: &Programme, guide_key: &str) -> (Self, Vec<Self>) {
        match has_marks(programme) {
            false => (Self::from_texts(programme, &EpisodeTexts::marked(programme), guide_key), Vec::new()),
            true => (Self::from_programme(programme, guide_key), Self::former_of(programme, guide_key)),
        }
    }

    /// Returns the identities under which former versions stored the episode, as far as they differ from the present one:
    /// those of texts with their marks, and without a number that only a mark has.
    pub(super) fn former_of(programme: &Programme, guide_key: &str) -> Vec<Self> {
        let texts = EpisodeTexts::marked(programme);
        let mut former = vec![Self::from_texts(programme, &texts, guide_key)];
        if let Some(unnumbered) = without_number_of_marks(programme) {
            former.push(Self::from_texts(&unnumbered, &texts, guide_key));
        }
        let present = Self::from_programme(programme, guide_key);
        former.retain(|it| *it != present);
        former
    }

    fn from_texts(programme: &Programme, texts: &EpisodeTexts<'_>, guide_key: &str) -> Self {
        let title = &*texts.title;
        let known = |parts: &[&str]| Self { hash: hash(parts), is_known: true };
        if let Some(id) = episode_id_of(programme) {
            return known(&["id", id]);
        }
        if let (season, Some(episode)) = programme.season_episode() {
            let mut number = format!("{}.{episode}", season.unwrap_or_default());
            // A series and its remake have the same title without the year.
            if let Some(year) = texts.year {
                number.push_str(&format!(".{year}"));
            }
            return known(&["number", title, &number]);
        }
        let text = |it: &'_ Option<Cow<'_, str>>| {
            it.as_deref().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty())
        };
        if let Some(sub_title) = text(&texts.sub_title) {
            return known(&["subtitle", title, &sub_title]);
        }
        if let Some(description) = text(&texts.description) {
            return known(&["description", title, &description]);
        }
        let start = programme.start.to_string();
        Self { hash: hash(&["showing", guide_key, title, &start]), is_known: false }
    }

    /// Returns the identity of a day of a weekly rule.
    pub fn from_day(day: CivilDay) -> Self {
        Self { hash: hash(&["day", &day.to_string()]), is_known: true }
    }

    /// Returns whether other showings of the episode can be recognised.
    pub fn is_known(self) -> bool {
        self.is_known
    }
}

/// Returns the id that the guide has of an episode or a film.
pub(in crate::recording) fn episode_id_of(programme: &Programme) -> Option<&str> {
    programme.episode_numbers.iter().find_map(|it| episode_id(it.system.as_deref(), &it.value))
}

/// Returns the id of an episode or a film, if this is one. Ids of whole series are none.
fn episode_id<'a>(system: Option<&str>, value: &'a str) -> Option<&'a str> {
    let value = value.trim();
    let begins_with =
        |prefix: &str| value.get(..prefix.len()).is_some_and(|it| it.eq_ignore_ascii_case(prefix));
    match system {
        Some("dd_progid") => (begins_with("EP") || begins_with("MV")).then_some(value),
        _ => begins_with("crid://").then_some(value),
    }
}

/// Hashes parts regardless of case and of the number of blanks (FNV-1a, 64 bits).
fn hash(parts: &[&str]) -> u64 {
    let mut hash = FNV_BASIS;
    for part in parts {
        each_normal_byte(part, |byte| hash = fnv(hash, byte));
        // No text in UTF-8 has this byte.
        hash = fnv(hash, 0xff);
    }
    hash
}
