//! Whether the library has what a rule is about to record.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::ids::UserId;
use domain::recording::RecordedProgramme;
use domain::vod::query::VodQuery;
use domain::vod::{Title, TitleKind, TitleName};
use storage::Models;
use tracing::warn;

use crate::titles::SeenTitles;

/// Maximum number of titles that are compared with one programme.
const TITLES_MAX: usize = 500;
/// Maximum difference of the years that a guide and a provider say of one film.
const YEARS_DIFFERENCE_MAX: u32 = 1;

/// The films and episodes that users may watch, for one evaluation of rules. Each title is looked up once.
pub(crate) struct Library<'a> {
    models: &'a Models,
    seen: RefCell<HashMap<Option<UserId>, Arc<SeenTitles>>>,
    known: RefCell<HashMap<TitleKey, Arc<KnownTitle>>>,
}

/// The user who asks, and the kind and the words of a title.
type TitleKey = (Option<UserId>, TitleKind, String);

/// The titles of one name.
#[derive(Default)]
struct KnownTitle {
    /// The years of films.
    years: HashSet<u32>,
    /// Season and number of the episodes of series.
    episodes: HashSet<(u32, u32)>,
}

impl<'a> Library<'a> {
    pub(crate) fn new(models: &'a Models) -> Self {
        Self { models, seen: RefCell::default(), known: RefCell::default() }
    }

    /// Returns whether a user may watch a film or an episode. Only what is certain counts: the title and the year of a film, or
    /// the title, the season and the number of an episode.
    pub(crate) fn has(&self, user: Option<UserId>, programme: &RecordedProgramme) -> bool {
        match (programme.is_movie, programme.year, programme.season, programme.episode) {
            (true, Some(year), ..) => {
                let known = self.known(user, TitleKind::Movie, &programme.title);
                known.years.iter().any(|it| it.abs_diff(year) <= YEARS_DIFFERENCE_MAX)
            }
            (false, _, Some(season), Some(number)) => {
                self.known(user, TitleKind::Series, &programme.title).episodes.contains(&(season, number))
            }
            _ => false,
        }
    }

    fn known(&self, user: Option<UserId>, kind: TitleKind, title: &str) -> Arc<KnownTitle> {
        let words = TitleName::new(title).words;
        let key = (user, kind, words);
        if let Some(known) = self.known.borrow().get(&key) {
            return Arc::clone(known);
        }
        let found = Arc::new(self.find(user, kind, title, &key.2));
        self.known.borrow_mut().insert(key, Arc::clone(&found));
        found
    }

    fn seen(&self, user: Option<UserId>) -> Arc<SeenTitles> {
        let mut seen = self.seen.borrow_mut();
        let new = || {
            let user = user.and_then(|it| self.models.users.load().get(it.0).cloned());
            Arc::new(SeenTitles::new(self.models, user.as_deref()))
        };
        Arc::clone(seen.entry(user).or_insert_with(new))
    }

    fn find(&self, user: Option<UserId>, kind: TitleKind, title: &str, words: &str) -> KnownTitle {
        let mut known = KnownTitle::default();
        // Names have other marks and punctuation, so one word is searched for and the rest compared.
        let parts = title.split(|it: char| !it.is_alphanumeric());
        let Some(word) = parts.max_by_key(|it| it.len()).filter(|it| !it.is_empty()) else { return known };
        let query = VodQuery {
            kind: Some(kind),
            name: Some(word.to_lowercase()),
            hidden: Some(false),
            is_stale: Some(false),
            ..VodQuery::default()
        };
        let seen = self.seen(user);
        let index = self.models.vod_index.load();
        let page = index.find(&query, &seen.limits, Some(seen.sources()), 0, TITLES_MAX);
        for id in page.ids {
            match self.models.vod.get(id) {
                Ok(Some(it)) if TitleName::new(it.name()).words == words => self.add(&mut known, &it),
                Ok(_) => {}
                Err(cause) => warn!("failed to read a title of the library: {cause}"),
            }
        }
        known
    }

    fn add(&self, known: &mut KnownTitle, title: &Title) {
        match title.id.kind() {
            TitleKind::Movie => {
                let year = title.year().or(TitleName::new(title.name()).year);
                known.years.extend(year.map(u32::from));
            }
            TitleKind::Series => match self.models.vod.episodes_of(title.id) {
                Ok(episodes) => known.episodes.extend(episodes.iter().map(|it| (it.season, it.number))),
                Err(cause) => warn!("failed to read the episodes of a series of the library: {cause}"),
            },
        }
    }
}
