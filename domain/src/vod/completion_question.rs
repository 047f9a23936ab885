//! The question to a catalogue of films and series, and when it is due.

use super::completion::CompletionOutcome;
use super::title::{Title, TitleKind};
use super::title_name::TitleName;

/// Time after which a title that was found is asked for again, in milliseconds: 90 days.
const FOUND_AGE_MAX_MS: i64 = 90 * DAY_MS;
/// Time after which a title that was not found is asked for again, in milliseconds: 30 days.
const OTHER_AGE_MAX_MS: i64 = 30 * DAY_MS;
const DAY_MS: i64 = 24 * 3_600_000;

/// The values with which a catalogue is asked for a title: those of an admin, else those of accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionQuestion {
    pub kind: TitleKind,
    pub name: TitleName,
    pub year: Option<u16>,
    /// Digits.
    pub tmdb: Option<String>,
    /// Such as `tt0113277`.
    pub imdb: Option<String>,
}

impl CompletionQuestion {
    /// Returns the question about a title; `None` if nothing is known that could be asked for.
    pub fn new(title: &Title) -> Option<Self> {
        let name = TitleName::new(title.stated_name());
        let ids = title.stated_ids();
        let question = Self {
            kind: title.id.kind(),
            year: title.stated_year().or(name.year),
            name,
            tmdb: ids.tmdb.filter(|it| it.len() <= 10 && it.bytes().all(|it| it.is_ascii_digit())),
            imdb: ids.imdb.filter(|it| is_imdb_id(it)),
        };
        let is_empty = question.name.words.is_empty() && question.tmdb.is_none() && question.imdb.is_none();
        (!is_empty).then_some(question)
    }

    /// Returns a text that differs for another question.
    pub fn key(&self, language: &str) -> String {
        let year = self.year.map(|it| it.to_string());
        let parts = [year.as_deref(), self.tmdb.as_deref(), self.imdb.as_deref()];
        let [year, tmdb, imdb] = parts.map(Option::unwrap_or_default);
        format!("{language}|{}|{year}|{tmdb}|{imdb}", self.name.words)
    }

    /// Returns whether a catalogue has to be asked, with this answer so far.
    pub fn is_due(&self, title: &Title, language: &str, now: i64) -> bool {
        let Some(known) = &title.completion else { return true };
        let age_max = match known.outcome {
            CompletionOutcome::Found => FOUND_AGE_MAX_MS,
            CompletionOutcome::Ambiguous | CompletionOutcome::Unknown => OTHER_AGE_MAX_MS,
        };
        let has_new_episodes = known.outcome == CompletionOutcome::Found
            && title.relations.iter().any(|it| it.episodes_at.is_some_and(|it| it > known.asked_at));
        // A clock that was set back must not keep an answer for ever.
        let is_old = !(0..age_max).contains(&(now - known.asked_at));
        is_old || has_new_episodes || known.question != self.key(language)
    }
}

fn is_imdb_id(id: &str) -> bool {
    let digits = id.strip_prefix("tt").unwrap_or_default();
    (5..=12).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ids::{AccountId, VodCategoryId};
    use crate::vod::completion::Completion;
    use crate::vod::{ExternalIds, Relation, RelationId, TitleFacts, TitleId};

    fn film(name: &str, facts: TitleFacts) -> Title {
        let mut relation = Relation::new(RelationId(1), AccountId(1), VodCategoryId(1), "1", 0);
        relation.facts = TitleFacts { name: name.to_owned(), ..facts };
        Title { relations: vec![relation], ..Title::new(TitleId::movie(1).unwrap(), Uuid::nil(), 0) }
    }

    fn ids(tmdb: &str, imdb: &str) -> TitleFacts {
        let ids = ExternalIds { tmdb: Some(tmdb.to_owned()), imdb: Some(imdb.to_owned()) };
        TitleFacts { ids, ..TitleFacts::default() }
    }

    #[test]
    fn a_question_has_what_accounts_or_admins_state_and_never_an_unusable_id() {
        let key = |title: &Title| CompletionQuestion::new(title).map(|it| it.key("en-US"));
        for (title, expected) in [
            (film("EN - Heat (1995) 4K", TitleFacts::default()), Some("en-US|heat|1995||")),
            (film("Heat", ids("949", "tt0113277")), Some("en-US|heat||949|tt0113277")),
            (film("Heat", ids("../x", "nm0000134")), Some("en-US|heat|||")),
            (film("", TitleFacts::default()), None),
            (film("", ids("949", "")), Some("en-US|||949|")),
        ] {
            assert_eq!(key(&title).as_deref(), expected);
        }
        let mut edited = film("Heet", ids("1", "tt00001"));
        edited.edits.name = Some("Heat".to_owned());
        edited.edits.year = Some(1995);
        (edited.edits.tmdb, edited.edits.imdb) = (Some("949".to_owned()), Some(String::new()));
        assert_eq!(key(&edited).as_deref(), Some("en-US|heat|1995|949|"));
    }

    #[test]
    fn a_title_is_due_until_it_was_answered_and_when_the_answer_is_old_or_for_another_question() {
        let mut title = film("Heat", TitleFacts::default());
        let question = CompletionQuestion::new(&title).unwrap();
        let now = 1_000 * DAY_MS;
        assert!(question.is_due(&title, "en-US", now));
        for (outcome, days, language, expected) in [
            (CompletionOutcome::Found, 0, "en-US", false),
            (CompletionOutcome::Found, 89, "en-US", false),
            (CompletionOutcome::Found, 91, "en-US", true),
            (CompletionOutcome::Found, -1, "en-US", true),
            (CompletionOutcome::Found, 0, "de-DE", true),
            (CompletionOutcome::Ambiguous, 29, "en-US", false),
            (CompletionOutcome::Unknown, 31, "en-US", true),
        ] {
            title.completion = Some(Box::new(Completion {
                asked_at: now - days * DAY_MS,
                question: question.key("en-US"),
                outcome,
                ..Completion::default()
            }));
            assert_eq!(question.is_due(&title, language, now), expected, "{outcome:?} {days} {language}");
        }
        title.completion.as_mut().unwrap().outcome = CompletionOutcome::Found;
        title.completion.as_mut().unwrap().asked_at = now - 1;
        title.relations[0].episodes_at = Some(now);
        assert!(question.is_due(&title, "en-US", now), "episodes were loaded since");
    }

    #[test]
    fn completed_values_precede_those_of_accounts_and_an_edit_precedes_both() {
        let mut title = film("EN - Heet", TitleFacts { genre: Some("X".to_owned()), ..ids("1", "tt00001") });
        let facts = TitleFacts { name: "Heat".to_owned(), year: Some(1995), ..ids("949", "tt0113277") };
        title.completion = Some(Box::new(Completion { facts: Some(facts), ..Completion::default() }));
        assert_eq!((title.name(), title.year(), title.genre()), ("Heat", Some(1995), Some("X")));
        assert_eq!((title.tmdb_id(), title.imdb_id()), (Some("949"), Some("tt0113277")));
        assert_eq!(title.stated_name(), "EN - Heet");
        assert_eq!(title.matching_ids().tmdb, ["1", "949"]);
        title.edits.name = Some("My film".to_owned());
        title.edits.tmdb = Some("5".to_owned());
        assert_eq!((title.name(), title.tmdb_id()), ("My film", Some("5")));
        assert_eq!(title.matching_ids().tmdb, ["5"]);
        title.edits.tmdb = None;
        title.relations[0].is_pinned = true;
        assert!(title.matching_ids().tmdb.is_empty(), "a split title joins no other one");
    }
}
