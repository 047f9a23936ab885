//! How well two names agree, with reasons.
//!
//! Points are tenths of a percent. Names that differ in a word that matters have less than [`PARTIAL_MAX`], so that with
//! the default threshold they are only proposed.

use std::fmt;

use super::countries::Country;
use super::form::{Form, WordId, Words};
use super::vocabulary::{is_before_east, is_default_feed, is_weak};

/// The points of agreement in everything.
pub(super) const FULL: u16 = 1000;
/// The most points of names that differ in a word.
pub(super) const PARTIAL_MAX: u16 = 840;
/// The most points of names whose countries or time shifts differ. No threshold is as low.
pub(super) const CONTRADICTION_MAX: u16 = 400;

/// A reason for the points of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// An admin linked a channel of this name with it.
    Learned,
    SameId,
    SameIdOtherwiseSpelled,
    SameStation,
    SameWords,
    /// The words are the same apart from the spaces.
    OtherSpaces,
    /// The words are the same without `TV`, `Channel` and `The`.
    WithoutCommonWords,
    OtherOrder,
    /// One word differs in one letter.
    OneLetter,
    /// One name has the word of the usual feed, such as `East`.
    UsualFeed,
    /// The names sound the same in two scripts.
    OtherScript,
    /// Only some words are the same.
    SomeWords,
    SameCountry(Country),
    /// Only one of both states a country.
    CountryOfOne(Country),
    /// The country is the preferred one of the settings.
    PreferredCountry(Country),
    /// Almost all channels of the group are of this country.
    CountryOfGroup(Country),
    /// The countries differ: that of the channel, and that of the guide channel.
    OtherCountry(Country, Country),
    /// The time shifts differ, in hours.
    OtherShift(u8, u8),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Learned => f.write_str("an admin linked this name before"),
            Self::SameId => f.write_str("same guide id"),
            Self::SameIdOtherwiseSpelled => f.write_str("same guide id in another spelling"),
            Self::SameStation => f.write_str("same Gracenote station"),
            Self::SameWords => f.write_str("same name"),
            Self::OtherSpaces => f.write_str("same name with other spaces"),
            Self::WithoutCommonWords => f.write_str("same name without TV, Channel and The"),
            Self::OtherOrder => f.write_str("same words in another order"),
            Self::OneLetter => f.write_str("one letter differs"),
            Self::UsualFeed => f.write_str("same name for the usual feed"),
            Self::OtherScript => f.write_str("same sound in another script"),
            Self::SomeWords => f.write_str("some words are the same"),
            Self::SameCountry(it) => write!(f, "same country {it}"),
            Self::CountryOfOne(it) => write!(f, "country {it} stated by one only"),
            Self::PreferredCountry(it) => write!(f, "preferred country {it}"),
            Self::CountryOfGroup(it) => write!(f, "country {it} of the other channels of the group"),
            Self::OtherCountry(a, b) => write!(f, "countries {a} and {b} differ"),
            Self::OtherShift(a, b) => write!(f, "time shifts +{a} and +{b} differ"),
        }
    }
}

/// Country and time shift of a channel, from its name and from what else is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) country: Option<Country>,
    pub(super) is_country_in_name: bool,
    pub(super) shift: u8,
}

/// Compares the words of two names. `text` returns words of the first.
pub(super) fn compare_words<'a>(
    words: &'a Words,
    text: impl Fn(WordId) -> &'a str,
    a: &Form,
    b: &Form,
) -> Option<(u16, Reason)> {
    if a.words == b.words {
        return Some((FULL, Reason::SameWords));
    }
    if a.squashed == b.squashed {
        return Some((980, Reason::OtherSpaces));
    }
    if a.core == b.core || a.core_squashed == b.core_squashed {
        let plain = |it: &'a str| if it == "television" { "tv" } else { it };
        let of_a: Vec<&str> = a.words.iter().map(|it| plain(text(*it))).collect();
        let of_b: Vec<&str> = b.words.iter().map(|it| plain(words.text(*it))).collect();
        return Some(match have_different_common_words(&of_a, &of_b) {
            true => (PARTIAL_MAX - 1, Reason::SomeWords),
            false => (940, Reason::WithoutCommonWords),
        });
    }
    let (only_a, only_b) = difference(&a.core, &b.core);
    let n_numbers = |of: &[WordId]| of.iter().filter(|it| is_number(text(**it))).count();
    let reason = match (only_a.as_slice(), only_b.as_slice()) {
        // `One Sport` is not `Sport 1`.
        ([], []) if n_numbers(&a.core) == 0 => Some((900, Reason::OtherOrder)),
        ([one], []) if is_usual_feed(&a.core, *one, &text) => Some((900, Reason::UsualFeed)),
        ([], [one]) if is_usual_feed(&b.core, *one, &|it| words.text(it)) => Some((900, Reason::UsualFeed)),
        ([one], [other]) if is_misspelled(text(*one), words.text(*other)) => Some((880, Reason::OneLetter)),
        _ => None,
    };
    if reason.is_some() {
        return reason;
    }
    if a.is_foreign != b.is_foreign && a.sound.is_some() && a.sound == b.sound {
        return Some((870, Reason::OtherScript));
    }
    let weigh = |of: &[WordId]| of.iter().map(|it| words.weight(*it)).sum::<f32>();
    let (all, different) = (weigh(&a.core) + weigh(&b.core), weigh(&only_a) + weigh(&only_b));
    let likeness = if all > 0.0 { (all - different) / all } else { 0.0 };
    // The product is between 0 and the maximum.
    let points = (likeness * f32::from(PARTIAL_MAX - 1)) as u16;
    (points > 0).then_some((points, Reason::SomeWords))
}

/// Returns whether the common words of two names make them different channels: each has one that the other lacks, as
/// `Travel TV` and `Travel Channel`, or only one has it before the number, as `Sport TV 1` and `Sport 1`.
fn have_different_common_words(a: &[&str], b: &[&str]) -> bool {
    let has_other = |of: &[&str], than: &[&str]| of.iter().any(|it| is_common(it) && !than.contains(it));
    let before_numbers = |of: &[&str]| -> Vec<bool> {
        let of_number = |at: usize| at > 0 && is_common(of[at - 1]);
        (0..of.len()).filter(|at| is_number(of[*at])).map(of_number).collect()
    };
    (has_other(a, b) && has_other(b, a)) || before_numbers(a) != before_numbers(b)
}

/// Returns whether a common word says something about the channel.
fn is_common(word: &str) -> bool {
    is_weak(word) && word != "the"
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_digit())
}

/// Returns the words that only one of both has.
fn difference(a: &[WordId], b: &[WordId]) -> (Vec<WordId>, Vec<WordId>) {
    let mut only_b = b.to_vec();
    let mut only_a = Vec::new();
    for it in a {
        match only_b.iter().position(|other| other == it) {
            Some(at) => drop(only_b.remove(at)),
            None => only_a.push(*it),
        }
    }
    (only_a, only_b)
}

/// Returns whether a word at the end of a name is that of the usual feed.
fn is_usual_feed<'a>(core: &[WordId], word: WordId, text: &impl Fn(WordId) -> &'a str) -> bool {
    let is_last = core.last() == Some(&word) && core.len() > 1;
    is_last && is_default_feed(text(word)) && !is_before_east(text(core[core.len() - 2]))
}

/// Letters that a word needs for one of them to be a mistake.
const MISSPELLED_LETTERS_MIN: usize = 8;

/// Returns whether two long words differ in one letter that is neither the first nor the last. At the ends, a letter makes
/// another word: `Sport` and `Sports`, `Cinema` and `Cinemax`.
fn is_misspelled(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let (short, long) = if a.len() <= b.len() { (&a, &b) } else { (&b, &a) };
    if short.len() < MISSPELLED_LETTERS_MIN || long.len() - short.len() > 1 {
        return false;
    }
    if a.iter().chain(&b).any(|it| it.is_numeric()) || a.first() != b.first() || a.last() != b.last() {
        return false;
    }
    let n_same_first = short.iter().zip(long).take_while(|it| it.0 == it.1).count();
    let n_same_last = short.iter().rev().zip(long.iter().rev()).take_while(|it| it.0 == it.1).count();
    n_same_first + n_same_last + 1 >= long.len()
}

/// Lowers the points by what countries and time shifts say, and adds the reasons.
pub(super) fn compare_places(
    points: u16,
    channel: Place,
    guide: Place,
    preferred: Option<Country>,
    reasons: &mut Vec<Reason>,
) -> u16 {
    let mut points = points;
    match (channel.country, guide.country) {
        (Some(a), Some(b)) if a == b => {
            reasons.push(Reason::SameCountry(a));
            // `Sport Italia` may be another channel than the Italian `Sport`.
            if channel.is_country_in_name != guide.is_country_in_name {
                points = points.saturating_sub(40);
            }
        }
        (Some(a), Some(b)) => {
            reasons.push(Reason::OtherCountry(a, b));
            points = points.min(CONTRADICTION_MAX);
        }
        (None, Some(it)) if Some(it) == preferred && !guide.is_country_in_name => {
            reasons.push(Reason::PreferredCountry(it));
        }
        (Some(it), None) | (None, Some(it)) => {
            reasons.push(Reason::CountryOfOne(it));
            let is_in_name = channel.is_country_in_name || guide.is_country_in_name;
            points = points.saturating_sub(if is_in_name { 200 } else { 30 });
        }
        (None, None) => {}
    }
    if reasons.contains(&Reason::OtherScript)
        && !reasons.iter().any(|it| matches!(it, Reason::SameCountry(_)))
    {
        points = points.min(PARTIAL_MAX - 1);
    }
    if channel.shift != guide.shift {
        reasons.push(Reason::OtherShift(channel.shift, guide.shift));
        points = points.min(CONTRADICTION_MAX);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_word_may_differ_in_one_letter_within() {
        for (a, b, expected) in [
            ("nickelodeon", "nickelodean", true),
            ("sportklub", "sportclub", true),
            ("discovery", "discvery", true),
            ("sports", "sport", false),
            ("cinema", "cinemax", false),
            ("animaux", "animax", false),
            ("television", "televisions", false),
            ("channel12a", "channel13a", false),
            ("discovery", "dscovry", false),
        ] {
            assert_eq!(is_misspelled(a, b), expected, "{a} {b}");
            assert_eq!(is_misspelled(b, a), expected, "{b} {a}");
        }
    }
}
