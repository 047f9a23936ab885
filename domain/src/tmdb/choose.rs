//! Which title of the catalogue is the one that an account offers. A wrong one is worse than none.

use crate::vod::{CompletionQuestion, TitleName};

/// A title that the catalogue offers for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueTitle {
    pub id: u32,
    /// The title in the asked language, and the original one.
    pub names: [String; 2],
    /// Year of release; `None` if unknown.
    pub year: Option<u16>,
}

/// The decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Only this one fits.
    One(u32),
    /// Several fit, or others may.
    Ambiguous,
    Nothing,
}

/// Chooses among the candidates of a search: the name has to be the same without case, accents and marks, and the year too.
/// If none has the year, one of the year before or after is taken. Without a year, the name has to be the only one, so all
/// candidates have to be known (`is_complete`).
pub fn choose(question: &CompletionQuestion, candidates: &[CatalogueTitle], is_complete: bool) -> Choice {
    let mut same: Vec<&CatalogueTitle> =
        candidates.iter().filter(|it| has_name(it, &question.name)).collect();
    same.sort_unstable_by_key(|it| it.id);
    same.dedup_by_key(|it| it.id);
    let Some(year) = question.year else {
        return match (&*same, is_complete) {
            ([], _) => Choice::Nothing,
            ([one], true) => Choice::One(one.id),
            _ => Choice::Ambiguous,
        };
    };
    let within = |n: u16| {
        let mut of_years = same.iter().filter(move |it| it.year.is_some_and(|it| it.abs_diff(year) == n));
        (of_years.next(), of_years.next())
    };
    match (within(0), within(1)) {
        ((Some(one), None), _) | ((None, _), (Some(one), None)) => Choice::One(one.id),
        ((None, _), (None, _)) => Choice::Nothing,
        _ => Choice::Ambiguous,
    }
}

/// Returns whether the title that the catalogue has under an id may be the one that an account offers under this id. Accounts
/// state wrong ids: of titles with another name, only those of about the same year are believed.
pub fn fits(question: &CompletionQuestion, candidate: &CatalogueTitle) -> bool {
    let is_same_name = question.name.words.is_empty() || has_name(candidate, &question.name);
    let years = question.year.zip(candidate.year);
    match years {
        Some((stated, found)) => stated.abs_diff(found) <= 1,
        None => is_same_name || question.year.is_none(),
    }
}

fn has_name(candidate: &CatalogueTitle, name: &TitleName) -> bool {
    candidate.names.iter().any(|it| {
        let found = TitleName::new(it);
        // A year in the name of the catalogue is a part of the title.
        !found.words.is_empty()
            && found.words == name.words
            && (found.year.is_none() || found.year == name.year)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vod::TitleKind;

    fn question(name: &str, year: Option<u16>) -> CompletionQuestion {
        let name = TitleName::new(name);
        CompletionQuestion { kind: TitleKind::Movie, year: year.or(name.year), name, tmdb: None, imdb: None }
    }

    /// Reads `id title|original title year` per candidate, separated by `;`. Year 0 is unknown.
    fn candidates(text: &str) -> Vec<CatalogueTitle> {
        let read = |it: &str| {
            let (id, rest) = it.trim().split_once(' ').unwrap();
            let (names, year) = rest.rsplit_once(' ').unwrap();
            let (title, original) = names.split_once('|').unwrap_or((names, names));
            let year = Some(year.parse().unwrap()).filter(|it| *it != 0);
            CatalogueTitle { id: id.parse().unwrap(), names: [title, original].map(str::to_owned), year }
        };
        text.split(';').filter(|it| !it.trim().is_empty()).map(read).collect()
    }

    #[test]
    fn a_title_is_taken_only_if_name_and_year_leave_one() {
        for (name, year, found, is_complete, expected) in [
            ("Heat", Some(1995), "949 Heat 1995; 2 Heat 1986", true, Choice::One(949)),
            ("EN - Heat (1995) [4K]", None, "949 Heat 1995; 2 Heat 1986", false, Choice::One(949)),
            ("Heat", Some(1994), "949 Heat 1995; 2 Heat 1986", true, Choice::One(949)),
            ("Heat", Some(1997), "949 Heat 1995; 2 Heat 1986", true, Choice::Nothing),
            ("Heat", Some(1995), "949 Heat 1995; 3 Heat 1995", true, Choice::Ambiguous),
            ("Heat", Some(1995), "3 Heat 1994; 4 Heat 1996", true, Choice::Ambiguous),
            ("Heat", Some(1995), "949 Heat 1995; 949 Heat 1995", true, Choice::One(949)),
            ("Heat", Some(1995), "949 Heat 1995; 4 Heat 1996", true, Choice::One(949)),
            ("Heat", Some(1995), "5 Heat 0", true, Choice::Nothing),
            ("Heat", None, "949 Heat 1995", true, Choice::One(949)),
            ("Heat", None, "949 Heat 1995", false, Choice::Ambiguous),
            ("Heat", None, "949 Heat 1995; 2 Heat 1986", true, Choice::Ambiguous),
            ("Heat", None, "", true, Choice::Nothing),
            ("Heat", Some(1995), "6 Heat Wave 1995; 7 The Heat 1995", true, Choice::Nothing),
            ("Amelie", Some(2001), "194 Amélie|Le Fabuleux Destin 2001", true, Choice::One(194)),
            ("Der Pate", Some(1972), "238 Der Pate|The Godfather 1972", true, Choice::One(238)),
            ("The Godfather", Some(1972), "238 Der Pate|The Godfather 1972", true, Choice::One(238)),
            ("Fast & Furious", Some(2009), "13804 Fast and Furious 2009", true, Choice::One(13804)),
            ("Ocean's Eleven", Some(2001), "161 Oceans Eleven 2001", true, Choice::One(161)),
            ("1917", Some(2019), "530915 1917 2019", true, Choice::One(530_915)),
            ("Airport", Some(1979), "8 Airport 1979 1979", true, Choice::Nothing),
        ] {
            let found = candidates(found);
            assert_eq!(
                choose(&question(name, year), &found, is_complete),
                expected,
                "{name} {year:?} {found:?}"
            );
        }
    }

    #[test]
    fn an_id_of_an_account_is_believed_unless_the_year_is_another_one() {
        for (name, year, found, expected) in [
            ("Der Pate", Some(1972), "238 The Godfather 1972", true),
            ("Der Pate", Some(1973), "238 The Godfather 1972", true),
            ("Der Pate", Some(1980), "238 The Godfather 1972", false),
            ("Heat", Some(1980), "949 Heat 1995", false),
            ("Der Pate", None, "238 The Godfather 1972", true),
            ("Heat", Some(1995), "949 Heat 0", true),
            ("Heat", Some(1995), "5 Another 0", false),
            ("", None, "949 Heat 1995", true),
        ] {
            assert_eq!(
                fits(&question(name, year), &candidates(found)[0]),
                expected,
                "{name} {year:?} {found}"
            );
        }
    }
}
