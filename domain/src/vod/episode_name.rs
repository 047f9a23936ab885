//! Season and episode in the name of an episode.
//!
//! Providers write `Name S01E02 Title`, `Name 1x02` or `Name Season 1 Episode 2`, and for shows of every day
//! `Name 2024-05-01` or `Name 1 May 2024`: its season is the year, and its number has month and day. The rest of a name
//! is read by [`TitleName`](super::TitleName).

use crate::guide::generated::month;

/// Longer names are not searched, in bytes.
const NAME_BYTES_MAX: usize = 2_048;

/// Words before the number of a season and of an episode, in lower case.
const SEASON_WORDS: [&str; 14] = [
    "season",
    "staffel",
    "saison",
    "temporada",
    "stagione",
    "sezon",
    "seizoen",
    "sezona",
    "säsong",
    "sesong",
    "sæson",
    "kausi",
    "сезон",
    "évad",
];
const EPISODE_WORDS: [&str; 18] = [
    "episode",
    "folge",
    "épisode",
    "episodio",
    "capitulo",
    "capítulo",
    "bölüm",
    "aflevering",
    "epizoda",
    "episódio",
    "odcinek",
    "avsnitt",
    "afsnit",
    "jakso",
    "серия",
    "выпуск",
    "rész",
    "ep",
];
/// Words between the name of a show and its date.
const DATE_WORDS: [&str; 8] = ["vom", "du", "del", "of", "from", "van", "le", "am"];

/// The name of an episode with its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpisodeName<'a> {
    /// The text before the number: the name of the series. May be empty.
    pub series: &'a str,
    /// 0 has the specials.
    pub season: u32,
    pub number: u32,
    /// The text after the number: the name of the episode alone. May be empty.
    pub title: &'a str,
}

/// Reads the name of an episode. `None` if it contains no season and number.
pub fn episode_name(text: &str) -> Option<EpisodeName<'_>> {
    let text = Some(text.trim()).filter(|it| it.len() <= NAME_BYTES_MAX)?;
    let Marker { start, end, season, episode } = marker(text).or_else(|| date(text))?;
    let title = text[end..].trim_start_matches([')', ']']).trim_matches(is_separator);
    let mut series = before(text, start);
    if let Some(date) = date(series).filter(|it| it.end == series.len()) {
        series = before(series, date.start);
    }
    // The year of a date is the season of a show of every day.
    if season >= 1900
        && let Some((name, _)) = series.rsplit_once(' ').filter(|it| DATE_WORDS.contains(&it.1))
    {
        series = name.trim_end_matches(is_separator);
    }
    Some(EpisodeName { series, season, number: episode, title })
}

/// Reads the name of an entry that is known to be an episode, whose season may be missing: `Name E21`, `Name Folge 21`.
pub(crate) fn known_episode_name(text: &str) -> Option<EpisodeName<'_>> {
    let lone = || {
        let text = Some(text.trim()).filter(|it| it.len() <= NAME_BYTES_MAX)?;
        let (name, last) = text.rsplit_once(' ')?;
        let (start, (number, end)) = match lone_number(last) {
            Some(found) => (name.len(), found),
            None => {
                let start = name.rfind(' ')? + 1;
                let (number, end) = word_and_number(text, start, &EPISODE_WORDS)?;
                (start, (number, end - start))
            }
        };
        let is_end = end == text[start..].trim_start().len();
        let series = before(text, start);
        (is_end && !series.is_empty()).then_some(EpisodeName { series, season: 1, number, title: "" })
    };
    episode_name(text).or_else(lone)
}

/// Reads `E21` or `Ep21`, and returns its length as well.
fn lone_number(text: &str) -> Option<(u32, usize)> {
    let marks = ["EP", "Ep", "ep", "E", "e"];
    let length = marks.iter().find(|it| text.starts_with(**it))?.len();
    number(text.as_bytes(), length)
}

/// Returns the text before a mark, without separators and the bracket of the mark.
fn before(text: &str, start: usize) -> &str {
    let text = text[..start].trim_end_matches(is_separator).trim_end_matches(['(', '[']);
    text.trim_end_matches(is_separator)
}

/// Returns whether a name ends with a date, as those of shows of every day do.
pub(crate) fn ends_with_date(name: &str) -> bool {
    let name = name.trim().trim_end_matches([')', ']']);
    name.len() <= NAME_BYTES_MAX && date(name).is_some_and(|it| it.start > 0 && it.end == name.len())
}

fn is_separator(it: char) -> bool {
    it.is_whitespace() || "-–—|:,.·•_┃▎".contains(it)
}

/// The place of `S01E02` in a name, and what it says.
struct Marker {
    start: usize,
    end: usize,
    season: u32,
    episode: u32,
}

/// Finds the last season and episode of a name: `S01E02`, `S01 E02`, `S01.EP02`, `1x02`, `Season 1 Episode 2`.
fn marker(text: &str) -> Option<Marker> {
    let bytes = text.as_bytes();
    let is_start = |at: usize| at == 0 || !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
    let starts = (0..bytes.len()).rev().filter(|at| text.is_char_boundary(*at) && is_start(*at));
    starts.into_iter().find_map(|at| short_marker(bytes, at).or_else(|| long_marker(text, at)))
}

/// Finds the last date of a name, which is not at its beginning: `2024-05-01`, `2024.05.01`, `01.05.2024`, `05/31/2024`.
fn date(text: &str) -> Option<Marker> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let starts = (1..bytes.len()).rev().filter(|at| is_digit(*at) && !is_digit(*at - 1));
    let of_words = || date_with_month(text);
    let of_digits = starts.into_iter().find_map(|start| {
        if let Some(found) = compact_date(bytes, start) {
            return Some(found);
        }
        let (first, at) = number(bytes, start)?;
        let separator = *bytes.get(at).filter(|it| b"-./ _".contains(it))?;
        let (second, after) = number(bytes, at + 1)?;
        let (third, end) = number(bytes, after + 1).filter(|_| bytes.get(after) == Some(&separator))?;
        let lengths = (at - start, after - at - 1, end - after - 1);
        let (year, month, day) = match lengths {
            (4, 1..=2, 1..=2) => (first, second, third),
            // The day comes first, unless it can only be a month.
            (1..=2, 1..=2, 4) if second > 12 => (third, first, second),
            (1..=2, 1..=2, 4) => (third, second, first),
            _ => return None,
        };
        let is_apart = !is_digit(end) && !bytes[start - 1].is_ascii_alphanumeric();
        dated(year, month, day).filter(|_| is_apart).map(|(season, episode)| Marker {
            start,
            end,
            season,
            episode,
        })
    });
    of_digits.or_else(of_words)
}

/// Returns season and number for a date; `None` if it is none.
fn dated(year: u32, month: u32, day: u32) -> Option<(u32, u32)> {
    let is_date = (1900..=2100).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    is_date.then_some((year, month * 100 + day))
}

/// Reads `20240501`.
fn compact_date(bytes: &[u8], start: usize) -> Option<Marker> {
    let digits = bytes.get(start..start + 8).filter(|it| it.iter().all(u8::is_ascii_digit))?;
    let end = start + 8;
    let is_apart =
        !bytes.get(end).is_some_and(u8::is_ascii_alphanumeric) && !bytes[start - 1].is_ascii_alphanumeric();
    let number = |range: std::ops::Range<usize>| str::from_utf8(&digits[range]).ok()?.parse().ok();
    let (season, episode) = dated(number(0..4)?, number(4..6)?, number(6..8)?).filter(|_| is_apart)?;
    Some(Marker { start, end, season, episode })
}

/// Finds a date with the name of its month: `1 May 2024`, `1. Mai 2024`, `May 1, 2024`.
fn date_with_month(text: &str) -> Option<Marker> {
    if !text.contains(" 20") && !text.contains(" 19") {
        return None;
    }
    let words: Vec<(usize, &str)> = text
        .split(' ')
        .scan(0, |at, word| Some((std::mem::replace(at, *at + word.len() + 1), word)))
        .filter(|it| !it.1.is_empty())
        .collect();
    words.windows(3).skip(1).rev().find_map(|it| {
        let [(start, first), (_, second), (at, third)] = it else { return None };
        let plain =
            |text: &str| text.trim_matches(|it: char| is_separator(it) || "()[]".contains(it)).to_owned();
        let (first, second, third) = (plain(first), plain(second), plain(third));
        let named = |text: &str| month(text).filter(|_| text.contains(char::is_alphabetic));
        let (month, day) = match named(&second) {
            Some(month) => (month, first.parse().ok()?),
            None => (named(&first)?, second.parse().ok()?),
        };
        let year: u32 = third.parse().ok().filter(|_| third.len() == 4)?;
        let (season, episode) = dated(year, u32::try_from(month).ok()?, day)?;
        let end = at + text[*at..].find(&third)? + third.len();
        Some(Marker { start: *start, end, season, episode })
    })
}

/// Reads up to four digits.
fn number(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let n = bytes.get(at..)?.iter().take_while(|it| it.is_ascii_digit()).count();
    let digits = str::from_utf8(&bytes[at..at + n]).ok()?;
    ((1..=4).contains(&n)).then_some(()).and_then(|()| Some((digits.parse().ok()?, at + n)))
}

fn skip(bytes: &[u8], mut at: usize, skipped: &[u8]) -> usize {
    // One or two of them: "S01 E02", "S01 - E02".
    for _ in 0..3 {
        if bytes.get(at).is_some_and(|it| skipped.contains(it)) {
            at += 1;
        }
    }
    at
}

fn short_marker(bytes: &[u8], start: usize) -> Option<Marker> {
    // `T01E02` is Spanish and Portuguese.
    let is_marked = matches!(bytes.get(start)?, b's' | b'S' | b't' | b'T');
    let (season, at) = number(bytes, start + usize::from(is_marked))?;
    let at = if is_marked { skip(bytes, at, b" .-_") } else { at };
    // `S01xE02`.
    let has_both = is_marked && bytes.get(at..at + 2).is_some_and(|it| it.eq_ignore_ascii_case(b"xe"));
    let at = at + usize::from(has_both);
    let letter = bytes.get(at)?.to_ascii_lowercase();
    if letter != if is_marked { b'e' } else { b'x' } || (!is_marked && season > 99) {
        return None;
    }
    let mut at = at + 1;
    if is_marked && bytes.get(at).is_some_and(|it| it.eq_ignore_ascii_case(&b'p')) {
        at += 1;
    }
    let at = if is_marked { skip(bytes, at, b" .") } else { at };
    let (episode, end) = number(bytes, at)?;
    let is_end =
        !bytes.get(end).is_some_and(|it| it.is_ascii_digit() || (!is_marked && it.is_ascii_alphabetic()));
    // "1920x1080" and "4x4" are none.
    let is_likely = is_marked || (end - at >= 2 && end - at <= 3);
    (is_end && is_likely).then_some(Marker { start, end, season, episode })
}

fn long_marker(text: &str, start: usize) -> Option<Marker> {
    let either = |at: usize, words: &[&str]| {
        word_and_number(text, at, words).or_else(|| number_and_word(text, at, words))
    };
    let (season, at) = either(start, &SEASON_WORDS)?;
    let at = skip(text.as_bytes(), at, b" .,-:");
    let (episode, end) = either(at, &EPISODE_WORDS)?;
    Some(Marker { start, end, season, episode })
}

/// Reads `1. Staffel`.
fn number_and_word(text: &str, start: usize, known: &[&str]) -> Option<(u32, usize)> {
    let (number, at) = number(text.as_bytes(), start)?;
    let at = skip(text.as_bytes(), at, b". ");
    let word = word_at(text, at)?;
    known.contains(&word.to_lowercase().as_str()).then_some((number, at + word.len()))
}

/// Returns the letters that begin here.
fn word_at(text: &str, start: usize) -> Option<&str> {
    let rest = text.get(start..)?;
    let n_bytes = rest.char_indices().find(|it| !it.1.is_alphabetic()).map_or(rest.len(), |it| it.0);
    Some(&rest[..n_bytes])
}

fn word_and_number(text: &str, start: usize, known: &[&str]) -> Option<(u32, usize)> {
    let word = word_at(text, start)?;
    if !known.contains(&word.to_lowercase().as_str()) {
        return None;
    }
    number(text.as_bytes(), skip(text.as_bytes(), start + word.len(), b" .:#"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_episode_is_read_with_its_series_and_its_own_name() {
        for (text, series, season, number, title) in [
            ("Name S01E02", "Name", 1, 2, ""),
            ("Name s1e2", "Name", 1, 2, ""),
            ("Name S01 E02", "Name", 1, 2, ""),
            ("Name S01.E02.Pilot", "Name", 1, 2, "Pilot"),
            ("Name - S01E02 - Pilot", "Name", 1, 2, "Pilot"),
            ("Name (S01E02)", "Name", 1, 2, ""),
            ("Name S01EP02", "Name", 1, 2, ""),
            ("Name 1x02", "Name", 1, 2, ""),
            ("Name 1x02 Pilot", "Name", 1, 2, "Pilot"),
            ("Name Season 1 Episode 2", "Name", 1, 2, ""),
            ("Name - Season 1, Episode 2: Pilot", "Name", 1, 2, "Pilot"),
            ("Name Staffel 3 Folge 12", "Name", 3, 12, ""),
            ("Name Saison 3 Épisode 12", "Name", 3, 12, ""),
            ("Name S00E01", "Name", 0, 1, ""),
            ("Name S2019E1204", "Name", 2019, 1204, ""),
            ("S01E02", "", 1, 2, ""),
            ("EN - Name (2019) S01E02", "EN - Name (2019)", 1, 2, ""),
            ("24 S01E02", "24", 1, 2, ""),
            ("Amélie S01E02 Café", "Amélie", 1, 2, "Café"),
            ("Harbour Talk 2024-05-01", "Harbour Talk", 2024, 501, ""),
            ("Harbour Talk 2024.05.01", "Harbour Talk", 2024, 501, ""),
            ("Harbour Talk 2024 05 01 1080p", "Harbour Talk", 2024, 501, "1080p"),
            ("Harbour Talk - (2024-12-31) - Guests", "Harbour Talk", 2024, 1231, "Guests"),
            ("Harbour Talk 01.05.2024", "Harbour Talk", 2024, 501, ""),
            ("Harbour Talk 05/31/2024", "Harbour Talk", 2024, 531, ""),
            ("EN - Harbour Talk 1/5/2024", "EN - Harbour Talk", 2024, 501, ""),
            ("Harbour Talk 2024-05-01 S02E03", "Harbour Talk", 2, 3, ""),
            ("Amélie 2024-05-01 Café", "Amélie", 2024, 501, "Café"),
            ("Harbour Talk 20240501", "Harbour Talk", 2024, 501, ""),
            ("Harbour Talk 1 May 2024", "Harbour Talk", 2024, 501, ""),
            ("Harbour Talk May 1, 2024", "Harbour Talk", 2024, 501, ""),
            ("Harbour Talk - 1. Mai 2024 - Guests", "Harbour Talk", 2024, 501, "Guests"),
            ("Harbour Talk (1 mai 2024)", "Harbour Talk", 2024, 501, ""),
            ("Harbour Talk vom 01.05.2024", "Harbour Talk", 2024, 501, ""),
            ("Harbour Talk du 01/05/2024", "Harbour Talk", 2024, 501, ""),
            ("Name T01E02", "Name", 1, 2, ""),
            ("Name S01xE02", "Name", 1, 2, ""),
            ("Name 1. Staffel 2. Folge", "Name", 1, 2, ""),
            ("Name Сезон 1 Серия 2", "Name", 1, 2, ""),
            ("Name Temporada 1 Ep 2", "Name", 1, 2, ""),
        ] {
            assert_eq!(episode_name(text), Some(EpisodeName { series, season, number, title }), "{text}");
        }
    }

    #[test]
    fn other_names_have_no_number() {
        for text in [
            "",
            "Name",
            "Name (2019)",
            "4x4 TV",
            "1920x1080",
            "Area 51x",
            "Se7en",
            "S1",
            "E02",
            "Season 1",
            "ß",
            "2024-05-01",
            "Name 2024-13-01",
            "Name 2024-05",
            "Name 2024-05-012",
            "Name 24-05-01",
            "Name 1.2.3",
            "Name12024-05-01",
            "Name 20241301",
            "Name 12345678",
            "May 1, 2024",
            "Name Monday 1, 2024",
        ] {
            assert_eq!(episode_name(text), None, "{text}");
        }
        assert_eq!(episode_name(&format!("{} S01E02", "x".repeat(NAME_BYTES_MAX))), None);
    }

    #[test]
    fn the_season_of_an_episode_may_be_missing() {
        for (text, expected) in [
            ("Boat E21", Some(("Boat", 1, 21))),
            ("Boat - Ep21", Some(("Boat", 1, 21))),
            ("Boat Ep. 22", Some(("Boat", 1, 22))),
            ("Boat Folge 23", Some(("Boat", 1, 23))),
            ("Boat (Episode 24)", None),
            ("Boat S02E25", Some(("Boat", 2, 25))),
            ("E21", None),
            ("Boat E21x", None),
            ("Boat", None),
        ] {
            let found = known_episode_name(text).map(|it| (it.series, it.season, it.number));
            assert_eq!(found, expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_name_is_read_within_itself(text in "[a-zA-Z0-9 é()\\[\\]|:.x-]{0,40}(S01E02|1x02| Season 1 Episode 2|)[ é-]{0,3}") {
            if let Some(read) = episode_name(&text) {
                prop_assert!(text.contains(read.series) && text.contains(read.title));
                prop_assert!(read.season <= 9_999 && read.number <= 9_999);
            }
        }
    }
}
