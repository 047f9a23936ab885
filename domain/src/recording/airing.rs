//! Whether two recordings are of the same airing, also on another channel: the HD and the SD channel of a station show the
//! same programmes at the same times.

use std::ops::Range;

use super::{RecordedProgramme, Recording};
use crate::guide::marks::{MarkedText, plain};

/// Maximum difference of the starts and of the ends of one airing in two guides or programs, in milliseconds.
pub(super) const DIFFERENCE_MAX_MS: i64 = 5 * 60_000;

impl Recording {
    /// Returns whether another recording of the same user is of the same airing: of the same channel and with the same
    /// times, of the same programme of the channel at about the same times, or of another channel that certainly shows the
    /// same programme then.
    pub fn is_of_same_airing(&self, other: &Self) -> bool {
        let has_same_times = (self.start, self.end) == (other.start, other.end);
        let is_near = has_same_times || are_near(&(self.start..self.end), &(other.start..other.end));
        if self.owner != other.owner || !is_near {
            return false;
        }
        let both = self.programme.as_ref().zip(other.programme.as_ref());
        if self.channel != other.channel {
            return both.is_some_and(|(one, other)| one.is_same_content(other));
        }
        both.and_then(|(one, other)| one.names(other)).unwrap_or_else(|| {
            let id = |it: &Self| it.programme.as_ref().and_then(|it| it.id.clone());
            has_same_times && agree(id(self), id(other))
        })
    }
}

/// Returns whether two times can be those of one airing: they begin and end at about the same time, and have more in common
/// than each alone. Times are milliseconds since 1970.
pub(super) fn are_near(one: &Range<i64>, other: &Range<i64>) -> bool {
    let differ = |a: i64, b: i64| a.saturating_sub(b).saturating_abs() > DIFFERENCE_MAX_MS;
    let common = one.end.min(other.end).saturating_sub(one.start.max(other.start));
    let length = |it: &Range<i64>| it.end.saturating_sub(it.start);
    !differ(one.start, other.start)
        && !differ(one.end, other.end)
        && common.saturating_mul(2) >= length(one).max(length(other))
}

impl RecordedProgramme {
    /// Returns whether another programme is certainly the same one, whatever channel shows it. Ids of the episode in the guide
    /// decide, if both have one. Otherwise titles have to be the same, nothing may differ, and more than the title has to
    /// agree: the number of the episode, the sub-title, the description, or the year of a film.
    pub fn is_same_content(&self, other: &Self) -> bool {
        if let (Some(one), Some(other)) = (&self.episode_id, &other.episode_id) {
            return is_same_id(one, other);
        }
        let is_film = self.is_movie && other.is_movie;
        // Numbers come first, because most programmes of a time differ in them.
        if (is_film && !agree(self.year, other.year)) || self.names(other) != Some(true) {
            return false;
        }
        let is_same_number = self.episode.is_some() && self.episode == other.episode;
        let is_same_year = is_film && self.year.is_some() && self.year == other.year;
        is_same_number
            || is_same_year
            || self.compare_sub_titles(other) == Some(true)
            || compare(self.description.as_deref(), other.description.as_deref(), MarkedText::Description)
                == Some(true)
    }

    /// Returns whether another programme has the same title, sub-title, season and episode, as far as both say them. `None`
    /// without a title of both.
    pub(super) fn names(&self, other: &Self) -> Option<bool> {
        if self.title.trim().is_empty() || other.title.trim().is_empty() {
            return None;
        }
        if !agree(self.season, other.season) || !agree(self.episode, other.episode) {
            return Some(false);
        }
        let is_same_title = compare(Some(&self.title), Some(&other.title), MarkedText::Title)?;
        Some(is_same_title && self.compare_sub_titles(other) != Some(false))
    }

    fn compare_sub_titles(&self, other: &Self) -> Option<bool> {
        compare(self.sub_title.as_deref(), other.sub_title.as_deref(), MarkedText::SubTitle)
    }
}

/// Returns whether two texts are the same without their marks, regardless of case and the number of blanks; `None` if one of
/// them says nothing.
fn compare(one: Option<&str>, other: Option<&str>, kind: MarkedText) -> Option<bool> {
    let (one, other) = (one?, other?);
    if has_same_words(one, other) {
        return (!plain(one, kind).trim().is_empty()).then_some(true);
    }
    let (one, other) = (plain(one, kind), plain(other, kind));
    let says_both = !one.trim().is_empty() && !other.trim().is_empty();
    says_both.then(|| has_same_words(&one, &other))
}

/// Compares texts in lower case, with one blank between words.
fn has_same_words(one: &str, other: &str) -> bool {
    fn normal(text: &str) -> impl Iterator<Item = char> + '_ {
        text.split_whitespace().enumerate().flat_map(|(n, word)| {
            (n > 0).then_some(' ').into_iter().chain(word.chars().flat_map(char::to_lowercase))
        })
    }
    one == other || normal(one).eq(normal(other))
}

/// Returns whether ids are the same, regardless of case. Some guides write a point into ids of Gracenote.
fn is_same_id(one: &str, other: &str) -> bool {
    let bytes =
        |it: &'_ str| it.trim().bytes().filter(|it| *it != b'.').map(|it| it.to_ascii_lowercase()).collect();
    let (one, other): (Vec<u8>, Vec<u8>) = (bytes(one), bytes(other));
    one == other
}

/// Returns whether two values are equal, as far as both are known.
fn agree<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
    one.zip(other).is_none_or(|(one, other)| one == other)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::ids::{ChannelId, RecordingId, UserId};

    const MINUTE: i64 = 60_000;

    fn recording(channel: u32, start: i64, programme: Option<(&str, Option<u32>)>) -> Recording {
        let times = start..start + 30 * MINUTE;
        let programme = programme.map(|(title, episode)| RecordedProgramme {
            title: title.to_owned(),
            episode,
            ..RecordedProgramme::default()
        });
        Recording {
            programme,
            ..Recording::new(RecordingId(1), ChannelId(channel), Uuid::nil(), "News", times, 0)
        }
    }

    #[test]
    fn recordings_of_the_same_programme_at_about_the_same_time_are_of_one_airing() {
        let first = recording(1, 0, Some(("Twice", None)));
        for (other, expected) in [
            (recording(1, 0, Some(("Twice", None))), true),
            (recording(1, 4 * MINUTE, Some((" twice ", Some(3)))), true),
            (recording(1, 0, None), true),
            (recording(1, 6 * MINUTE, Some(("Twice", None))), false),
            (recording(1, 0, Some(("Other", None))), false),
            (recording(1, MINUTE, None), false),
            (recording(1, MINUTE, Some(("", None))), false),
            (recording(2, 0, Some(("Twice", None))), false),
            (Recording { owner: Some(UserId(7)), ..recording(1, 0, None) }, false),
        ] {
            assert_eq!(first.is_of_same_airing(&other), expected, "{other:?}");
            assert_eq!(other.is_of_same_airing(&first), expected, "{other:?}");
        }
        let of_guide = |id: &str| {
            let programme = RecordedProgramme { id: Some(id.to_owned()), ..RecordedProgramme::default() };
            Recording { programme: Some(programme), ..recording(1, 0, None) }
        };
        assert!(of_guide("77").is_of_same_airing(&of_guide("77")));
        assert!(!of_guide("77").is_of_same_airing(&of_guide("78")));
        let third = recording(1, 0, Some(("Twice", Some(3))));
        assert!(!third.is_of_same_airing(&recording(1, 0, Some(("Twice", Some(4))))));
    }

    /// A table of programmes that two channels show at the same time.
    #[test]
    fn a_programme_on_another_channel_is_the_same_if_more_than_its_title_agrees() {
        let plain = || RecordedProgramme { title: "Show".to_owned(), ..RecordedProgramme::default() };
        let text = |it: &str| Some(it.to_owned());
        let id = |it: &str| RecordedProgramme { episode_id: text(it), ..plain() };
        let number = |season: Option<u32>, episode: u32| RecordedProgramme {
            season,
            episode: Some(episode),
            ..plain()
        };
        let sub_title = |it: &str| RecordedProgramme { sub_title: text(it), ..plain() };
        let film = |year: Option<u32>| RecordedProgramme { is_movie: true, year, ..plain() };
        for (one, other, expected) in [
            (plain(), plain(), false),
            (id("EP01234567.0001"), id("ep012345670001"), true),
            (id("EP012345670001"), id("EP012345670002"), false),
            // Ids decide, whatever the texts are.
            (RecordedProgramme { title: "Serie".to_owned(), ..id("crid://a/1") }, id("CRID://a/1"), true),
            (
                RecordedProgramme { season: Some(1), episode: Some(2), ..id("EP012345670001") },
                RecordedProgramme { season: Some(1), episode: Some(2), ..id("EP012345670002") },
                false,
            ),
            (number(Some(1), 2), number(Some(1), 2), true),
            (number(Some(1), 2), number(None, 2), true),
            (number(Some(1), 2), number(Some(2), 2), false),
            (number(Some(1), 2), RecordedProgramme { episode_id: text("EP1"), ..number(Some(1), 2) }, true),
            (sub_title("Boats"), sub_title(" BOATS  (HD)"), true),
            (sub_title("Boats"), sub_title("Ships"), false),
            (sub_title("Boats"), plain(), false),
            (RecordedProgramme { episode: Some(2), ..sub_title("Boats") }, number(None, 3), false),
            (
                RecordedProgramme { description: text("What happens."), ..plain() },
                RecordedProgramme { description: text("what  happens."), ..number(Some(1), 2) },
                true,
            ),
            (film(Some(1999)), film(Some(1999)), true),
            (film(Some(1999)), film(Some(2009)), false),
            (film(None), film(None), false),
            (RecordedProgramme { title: String::new(), ..sub_title("Boats") }, sub_title("Boats"), false),
            (
                RecordedProgramme { title: "Show (New)".to_owned(), ..sub_title("Boats") },
                sub_title("Boats"),
                true,
            ),
        ] {
            assert_eq!(one.is_same_content(&other), expected, "{one:?} {other:?}");
            let on = |channel: u32, programme: &RecordedProgramme, start: i64| Recording {
                programme: Some(programme.clone()),
                ..recording(channel, start, None)
            };
            let is_one = |start: i64| on(1, &one, 0).is_of_same_airing(&on(2, &other, start));
            assert_eq!(is_one(2 * MINUTE), expected, "{one:?} {other:?}");
            assert!(!is_one(30 * MINUTE), "a repeat is another airing");
        }
    }

    #[test]
    fn short_programmes_that_follow_each_other_are_two() {
        for (length, shift, expected) in [
            (30, 0, true),
            (30, 4, true),
            (30, 6, false),
            (3, 0, true),
            (3, 1, true),
            (3, 3, false),
            (8, 4, true),
        ] {
            let time = |from: i64| from * MINUTE..(from + length) * MINUTE;
            assert_eq!(are_near(&time(0), &time(shift)), expected, "{length} {shift}");
        }
    }

    fn any_programme() -> impl Strategy<Value = RecordedProgramme> {
        let text = |values: &'static [&'static str]| {
            prop::option::of(prop::sample::select(values).prop_map(str::to_owned))
        };
        let texts = (
            prop::sample::select(&["Show", "show ", "Show (HD)", "Other", ""][..]),
            text(&["Boats", "boats", "Ships", ""]),
            text(&["It happens.", "it  happens.", "Nothing."]),
            text(&["EP1", "ep.1", "EP2"]),
        );
        let numbers = (prop::option::of(1..3u32), prop::option::of(1..3u32), prop::option::of(1999..2001u32));
        (texts, numbers, any::<bool>()).prop_map(
            |((title, sub_title, description, episode_id), (season, episode, year), is_movie)| {
                let title = title.to_owned();
                let programme = RecordedProgramme { title, sub_title, description, ..Default::default() };
                RecordedProgramme { episode_id, season, episode, year, is_movie, ..programme }
            },
        )
    }

    proptest! {
        /// The identity of airings does not depend on the order, on case and blanks, or on the user's other recordings.
        #[test]
        fn the_identity_of_airings_is_symmetric_and_ignores_case_and_blanks(
            one in any_programme(), other in any_programme(), shift in 0..12i64, channel in 1..3u32,
        ) {
            prop_assert_eq!(one.is_same_content(&other), other.is_same_content(&one));
            let loud = |it: &Option<String>| it.as_ref().map(|it| format!("  {}  ", it.to_uppercase()));
            let louder = RecordedProgramme {
                title: format!(" {} ", one.title.to_uppercase()),
                sub_title: loud(&one.sub_title),
                episode_id: loud(&one.episode_id),
                ..one.clone()
            };
            prop_assert_eq!(louder.is_same_content(&other), one.is_same_content(&other));
            let on = |channel: u32, programme: RecordedProgramme, start: i64| Recording {
                programme: Some(programme),
                ..recording(channel, start * MINUTE, None)
            };
            let (a, b) = (on(1, one.clone(), 0), on(channel, other.clone(), shift));
            prop_assert_eq!(a.is_of_same_airing(&b), b.is_of_same_airing(&a));
            prop_assert!(a.is_of_same_airing(&a));
            // What is said to differ is never one airing.
            let differs = |a: Option<u32>, b: Option<u32>| a.zip(b).is_some_and(|(a, b)| a != b);
            let have_ids = one.episode_id.is_some() && other.episode_id.is_some();
            if channel != 1 && !have_ids && (differs(one.season, other.season) || differs(one.episode, other.episode)) {
                prop_assert!(!a.is_of_same_airing(&b));
            }
            prop_assert!(shift <= 5 || !a.is_of_same_airing(&b));
        }
    }
}
