//! Season and episode, out of the notations that guides use.

use super::parts::EpisodeNumber;
use crate::guide::marks::{EPISODE_WORDS, SEASON_WORDS};

/// Longer numbers are dates or identifiers.
const DIGITS_MAX: usize = 5;

/// Season and episode, both from 1.
type SeasonEpisode = (Option<u32>, Option<u32>);

/// Returns season and episode from the first number that has both, else from the first that has one of them. `xmltv_ns`
/// is preferred, because it has one meaning only.
pub(super) fn season_episode(numbers: &[EpisodeNumber]) -> SeasonEpisode {
    let mut best = (None, None);
    for is_for_programs in [true, false] {
        for it in numbers {
            let system = it.system.as_deref().unwrap_or("onscreen");
            let found = match (system, is_for_programs) {
                ("xmltv_ns", true) => for_programs(&it.value),
                ("xmltv_ns", false) | (_, true) | ("dd_progid", _) => continue,
                ("onscreen", false) if looks_like_for_programs(&it.value) => for_programs(&it.value),
                (_, false) => on_screen(&it.value, system == "onscreen"),
            };
            match found {
                (Some(_), Some(_)) => return found,
                found if best == (None, None) => best = found,
                _ => {}
            }
        }
    }
    best
}

/// Reads `season/seasons . episode/episodes . part/parts`, each from 0 and each optional.
fn for_programs(value: &str) -> SeasonEpisode {
    let mut parts = value.split('.').map(|it| {
        let number = it.split('/').next().unwrap_or_default();
        small_number(number.trim())?.checked_add(1)
    });
    (parts.next().flatten(), parts.next().flatten())
}

fn looks_like_for_programs(value: &str) -> bool {
    value.matches('.').count() == 2 && value.bytes().all(|it| it.is_ascii_digit() || b"./ ".contains(&it))
}

/// Reads `S02E03`, `2x03`, `E119`, `Season 2, episode 3` and the same in other languages. A number without a word counts
/// as an episode if nothing else is there and `may_be_bare`.
fn on_screen(value: &str, may_be_bare: bool) -> SeasonEpisode {
    let value = value.to_lowercase();
    let (mut season, mut episode, mut bare) = (None, None, None);
    let mut word = "";
    let mut rest = value.as_str();
    while let Some(first) = rest.chars().next() {
        let is_same_kind = |it: char| {
            if first.is_ascii_digit() {
                it.is_ascii_digit()
            } else {
                first.is_alphabetic() && it.is_alphabetic()
            }
        };
        let end = rest.find(|it| !is_same_kind(it)).unwrap_or(rest.len()).max(first.len_utf8());
        let token = &rest[..end];
        rest = &rest[end..];
        if first.is_alphabetic() {
            word = token;
        } else if first.is_ascii_digit() {
            let number = small_number(token);
            match std::mem::take(&mut word) {
                "" if bare.is_none() => bare = number,
                "x" if bare.is_some() && season.is_none() => (season, episode) = (bare, number),
                it if SEASON_WORDS.contains(&it) && season.is_none() => season = number,
                it if EPISODE_WORDS.contains(&it) && episode.is_none() => episode = number,
                _ => {}
            }
        }
    }
    match (season, episode) {
        (None, None) if may_be_bare => (None, bare),
        found => found,
    }
}

fn small_number(digits: &str) -> Option<u32> {
    let is_small = digits.trim_start_matches('0').len() <= DIGITS_MAX;
    digits.parse().ok().filter(|_| is_small)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(system: &str, value: &str) -> EpisodeNumber {
        EpisodeNumber { system: (!system.is_empty()).then(|| system.to_owned()), value: value.to_owned() }
    }

    #[test]
    fn season_and_episode_are_found_in_every_notation() {
        for (system, value, expected) in [
            ("xmltv_ns", "2.3.0/1", (Some(3), Some(4))),
            ("xmltv_ns", " 1 / 3 . 4 / 10 . ", (Some(2), Some(5))),
            ("xmltv_ns", ".118.", (None, Some(119))),
            ("xmltv_ns", "4294967295.4294967296.", (None, None)),
            ("xmltv_ns", "", (None, None)),
            ("", "2.3.0/1", (Some(3), Some(4))),
            ("onscreen", "S02E03", (Some(2), Some(3))),
            ("onscreen", "s2 ep. 3/10", (Some(2), Some(3))),
            ("", "Season 2, Episode 3", (Some(2), Some(3))),
            ("", "Staffel 2 Folge 3", (Some(2), Some(3))),
            ("", "2x03", (Some(2), Some(3))),
            ("onscreen", "E119", (None, Some(119))),
            ("", "119", (None, Some(119))),
            ("", "3/10", (None, Some(3))),
            ("", "(12)", (None, Some(12))),
            ("", "20240105", (None, None)),
            ("", "S2024E01", (Some(2024), Some(1))),
            ("SxxExx", "S02E03", (Some(2), Some(3))),
            ("imdb.com", "1234", (None, None)),
            ("dd_progid", "EP01234567.0123", (None, None)),
            ("", "Épisode 7 of the series", (None, Some(7))),
            ("", "İ1", (None, None)),
        ] {
            assert_eq!(season_episode(&[number(system, value)]), expected, "{system} {value}");
        }
    }

    #[test]
    fn the_notation_for_programs_is_preferred_unless_another_one_knows_more() {
        let (vague, exact) = (number("xmltv_ns", ".118."), number("onscreen", "S5E9"));
        assert_eq!(season_episode(&[exact.clone(), vague]), (Some(5), Some(9)));
        assert_eq!(season_episode(&[exact, number("xmltv_ns", "1.2.")]), (Some(2), Some(3)));
        assert_eq!(season_episode(&[]), (None, None));
    }
}
