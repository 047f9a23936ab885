//! Reads the numbers of seasons and episodes at the beginning of a text.

use super::words::{EPISODE_WORDS_AFTER, NAMES_WITH_SLASH, OF_WORDS, SEASON_WORDS_AFTER, number_word};

/// More episodes of a season are a date or something else.
const EPISODES_MAX: u32 = 999;

/// Longer words name no numbers.
const WORD_BYTES_MAX: usize = 24;

/// The notation of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// Words for season and episode, as in `S1 Ep5`.
    Both,
    /// `1x05`.
    Cross,
    /// A word for the season, which the text begins with.
    Season,
    /// A word for the episode.
    Episode,
    /// `1/6` or `1 of 6`. The second one if `with_word`.
    Count { with_word: bool },
}

/// The numbers at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers<'a> {
    pub(super) season: Option<u32>,
    pub(super) episode: Option<u32>,
    pub(super) notation: Notation,
    /// The first word, as it is written, if the text begins with one, or else the second.
    pub(super) word: &'a str,
    /// The first number, as it is written.
    pub(super) digits: &'a str,
    /// In bytes.
    pub(super) length: usize,
}

/// A word and its number.
#[derive(Clone, Copy)]
struct Part<'a> {
    is_season: bool,
    word: &'a str,
    digits: &'a str,
    number: u32,
    /// Number of all episodes.
    rest: &'a str,
}

/// Reads season and episode at the beginning of a text. A letter or digit does not follow.
pub(super) fn numbers(text: &str) -> Option<Numbers<'_>> {
    let found = if text.starts_with(|it: char| it.is_ascii_digit()) {
        cross(text).or_else(|| count(text))
    } else {
        None
    };
    let found = found.or_else(|| words(text))?;
    let is_end = !text[found.length..].starts_with(char::is_alphanumeric);
    is_end.then_some(found)
}

fn words(text: &str) -> Option<Numbers<'_>> {
    let first = part(text)?;
    let second = part(first.rest.trim_start_matches([' ', ',', '.', ':', ';', '/', '-', '–', '·', '|', '_']));
    let second = second.filter(|it| it.is_season != first.is_season && ends_here(it.rest));
    let both = [Some(first), second];
    let number =
        |is_season| both.into_iter().flatten().find(|it| it.is_season == is_season).map(|it| it.number);
    let notation = match (first.is_season, second) {
        (_, Some(_)) => Notation::Both,
        (true, None) => Notation::Season,
        (false, None) => Notation::Episode,
    };
    let rest = second.map_or(first.rest, |it| it.rest);
    Some(Numbers {
        season: number(true),
        episode: number(false),
        notation,
        word: first.word,
        digits: first.digits,
        length: text.len() - rest.len(),
    })
}

fn ends_here(rest: &str) -> bool {
    !rest.starts_with(char::is_alphanumeric)
}

/// Reads a word and a number, or a number and a word.
fn part(text: &str) -> Option<Part<'_>> {
    if let Some(rest) = text.strip_prefix('#') {
        let (digits, rest) = digits(rest)?;
        return part_of(false, "#", digits, rest);
    }
    let text = text.strip_prefix('第').unwrap_or(text);
    if let Some((digits, rest)) = digits(text) {
        let rest = rest.strip_prefix("-я").unwrap_or(rest).trim_start_matches(['.', ' ', 'ª', 'º']);
        // Texts without spaces between words have words of one character.
        let is_word =
            |it: &char| !it.is_ascii() && EPISODE_WORDS_AFTER.contains(&&*it.encode_utf8(&mut [0; 4]));
        let single = rest.chars().next().filter(|it| *it == '季' || is_word(it));
        let (word, rest) = rest.split_at(single.map_or_else(|| word_length(rest), char::len_utf8));
        let lower = word.to_lowercase();
        let is_season = SEASON_WORDS_AFTER.contains(&lower.as_str());
        let is_known = is_season || EPISODE_WORDS_AFTER.contains(&lower.as_str());
        return if is_known { part_of(is_season, word, digits, rest) } else { None };
    }
    let (word, rest) = text.split_at(word_length(text));
    if word.is_empty() || word.len() > WORD_BYTES_MAX {
        return None;
    }
    let (digits, rest) = digits(rest.trim_start_matches(['.', ' ', ':', '#', '-', '_']))?;
    part_of(is_season_word(word)?, word, digits, rest)
}

fn part_of<'a>(is_season: bool, word: &'a str, digits: &'a str, rest: &'a str) -> Option<Part<'a>> {
    let number = digits.parse().ok()?;
    let rest = if is_season { rest } else { after_all(after_range(rest)) };
    Some(Part { is_season, word, digits, number, rest })
}

/// Returns true for a word before the number of a season, false for one of an episode, and `None` for other words.
fn is_season_word(word: &str) -> Option<bool> {
    let mut buffer = [0; WORD_BYTES_MAX];
    if word.is_ascii() {
        let lower = buffer.get_mut(..word.len())?;
        lower.copy_from_slice(word.as_bytes());
        lower.make_ascii_lowercase();
        return str::from_utf8(lower).ok().and_then(number_word);
    }
    number_word(&word.to_lowercase())
}

/// Skips the last number of several episodes, as in `E01-E02`.
fn after_range(rest: &str) -> &str {
    let after = || {
        let rest = rest.strip_prefix(['-', '–', '+', '&'])?;
        Some(digits(rest.strip_prefix(['E', 'e']).unwrap_or(rest))?.1)
    };
    let glued = || Some(digits(rest.strip_prefix(['E', 'e'])?)?.1);
    after().or_else(glued).unwrap_or(rest)
}

/// Skips the number of all episodes, as in `E1/6` or `Episode 1 of 6`.
fn after_all(rest: &str) -> &str {
    let after = |rest: &str| digits(rest.trim_start()).map(|it| it.1.len());
    let n_left = match rest.strip_prefix('/') {
        Some(rest) => after(rest),
        None => after_word(rest.trim_start()).and_then(after),
    };
    n_left.map_or(rest, |it| &rest[rest.len() - it..])
}

/// Returns what is after a word such as `of`.
fn after_word(text: &str) -> Option<&str> {
    let (word, rest) = text.split_at(word_length(text));
    (word.len() <= 4 && rest.starts_with(' ') && OF_WORDS.contains(&word.to_lowercase().as_str()))
        .then_some(rest)
}

/// Reads `1x05`. With one digit for the episode it could be a size.
fn cross(text: &str) -> Option<Numbers<'_>> {
    let (season, rest) = digits(text)?;
    let (episode, rest) = digits(rest.strip_prefix(['x', 'X'])?)?;
    let is_episode = season.len() <= 2 && episode.len() == 2;
    is_episode.then(|| Numbers {
        season: season.parse().ok(),
        episode: episode.parse().ok(),
        notation: Notation::Cross,
        word: "x",
        digits: season,
        length: text.len() - rest.len(),
    })
}

/// Reads `1/6` or `1 of 6`: an episode, and the number of all.
fn count(text: &str) -> Option<Numbers<'_>> {
    let (digits_of_one, rest) = digits(text)?;
    let (rest, with_word) = match rest.strip_prefix('/') {
        Some(rest) => (rest, false),
        None => (after_word(rest.strip_prefix(' ')?)?.trim_start(), true),
    };
    let (all, rest) = digits(rest)?;
    let (episode, all): (u32, u32) = (digits_of_one.parse().ok()?, all.parse().ok()?);
    let is_count =
        (1..=all).contains(&episode) && (2..=EPISODES_MAX).contains(&all) && !rest.starts_with('/');
    let is_name = NAMES_WITH_SLASH.contains(&(episode, all)) && !with_word;
    (is_count && !is_name).then(|| Numbers {
        season: None,
        episode: Some(episode),
        notation: Notation::Count { with_word },
        word: "/",
        digits: digits_of_one,
        length: text.len() - rest.len(),
    })
}

/// Splits up to five digits from what follows.
fn digits(text: &str) -> Option<(&str, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    (1..=5).contains(&length).then(|| text.split_at(length))
}

/// Returns the length of the letters at the beginning of a text.
fn word_length(text: &str) -> usize {
    text.find(|it: char| !it.is_alphabetic()).unwrap_or(text.len())
}
