//! Decides which title an account's entry belongs to.
//!
//! 1. An entry with an id of an external catalogue belongs to the title that any relation has that id of, by the first of
//!    TMDB and IMDb. If its two ids lead to two titles, both are the same title.
//! 2. An entry without ids belongs to the title with the same name and year among those without ids.
//! 3. An id that one account gives to more than [`NAMES_PER_ID_MAX`] different names is a mistake of its provider and is
//!    ignored.
//! 4. An entry that is known stays with its title, unless its ids now state another one.
//!
//! For fresh accounts the outcome does not depend on their order.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, RandomState};

use super::relation::{MatchReason, Relation};
use super::title::{ExternalIds, Title, TitleId};
use super::title_name::TitleName;

/// Number of different names above which an id is ignored.
pub const NAMES_PER_ID_MAX: usize = 3;

/// Hash of a text among those of one import. The key is random, so that a provider cannot cause collisions.
type TextHash = u64;

/// Counts the names that one account gives to each id.
#[derive(Default)]
pub struct IdNames {
    hasher: RandomState,
    /// Different names of each id, `NAMES_PER_ID_MAX` at most.
    names: HashMap<TextHash, ([u32; NAMES_PER_ID_MAX], u8)>,
    ignored: HashSet<TextHash>,
}

/// The catalogue of an id.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Catalogue {
    Tmdb,
    Imdb,
}

impl IdNames {
    /// Counts an entry of the account.
    pub fn add(&mut self, ids: &ExternalIds, name: &TitleName) {
        let name = self.hasher.hash_one(&name.words) as u32;
        for (catalogue, id) in each(ids) {
            let id = self.hasher.hash_one((catalogue, id));
            let (names, n) = self.names.entry(id).or_default();
            let known = &names[..usize::from(*n)];
            if known.contains(&name) {
                continue;
            }
            match names.get_mut(usize::from(*n)) {
                Some(free) => {
                    *free = name;
                    *n += 1;
                }
                None => drop(self.ignored.insert(id)),
            }
        }
    }

    /// Forgets the names, which takes most of the memory. Call after the last entry.
    pub fn finish(&mut self) {
        self.names = HashMap::new();
    }

    /// Removes the ids that are ignored.
    pub fn keep_good(&self, ids: &mut ExternalIds) {
        let is_good =
            |catalogue: Catalogue, id: &str| !self.ignored.contains(&self.hasher.hash_one((catalogue, id)));
        ids.tmdb.take_if(|it| !is_good(Catalogue::Tmdb, it));
        ids.imdb.take_if(|it| !is_good(Catalogue::Imdb, it));
    }

    /// Returns the number of ids that are ignored.
    pub fn n_ignored(&self) -> usize {
        self.ignored.len()
    }
}

fn each(ids: &ExternalIds) -> impl Iterator<Item = (Catalogue, &str)> {
    let tmdb = ids.tmdb.as_deref().map(|it| (Catalogue::Tmdb, it));
    tmdb.into_iter().chain(ids.imdb.as_deref().map(|it| (Catalogue::Imdb, it)))
}

/// What identifies an entry: its ids, its name, and its year.
#[derive(Debug, Clone, Copy)]
pub struct EntryIdentity<'a> {
    pub ids: &'a ExternalIds,
    pub name: &'a TitleName,
    pub year: Option<u16>,
}

/// The title of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Belongs {
    /// To none that is known.
    New,
    To(TitleId, MatchReason),
    /// To both, which are the same title. The first one stays.
    ToBoth(TitleId, TitleId, MatchReason),
}

/// All titles of one kind by what identifies them. About 20 bytes for each id and each name without ids.
#[derive(Default)]
pub struct TitleIndex {
    hasher: RandomState,
    ids: HashMap<TextHash, TitleId>,
    /// Names of titles without ids.
    names: HashMap<TextHash, TitleId>,
    /// Titles of `names` that have ids since.
    with_ids: HashSet<TitleId>,
    /// Titles that were merged, and where they are now.
    merged: HashMap<TitleId, TitleId>,
}

impl TitleIndex {
    /// Adds a stored title.
    pub fn add(&mut self, title: &Title) {
        let ids = title.matching_ids();
        for (catalogue, of_catalogue) in [(Catalogue::Tmdb, &ids.tmdb), (Catalogue::Imdb, &ids.imdb)] {
            for id in of_catalogue {
                self.put_id(catalogue, id, title.id);
            }
        }
        if ids.is_empty() {
            for relation in title.relations.iter().filter(|it| !it.is_pinned) {
                let name = TitleName::of(&relation.facts.name);
                self.put_name(&name, year_of(relation, &name), title.id);
            }
        }
    }

    /// Adds an entry that belongs to a title.
    pub fn put(&mut self, entry: EntryIdentity<'_>, title: TitleId) {
        for (catalogue, id) in each(entry.ids) {
            self.put_id(catalogue, id, title);
            self.with_ids.insert(title);
        }
        if entry.ids.is_empty() && !self.with_ids.contains(&title) {
            self.put_name(entry.name, entry.year, title);
        }
    }

    fn put_id(&mut self, catalogue: Catalogue, id: &str, title: TitleId) {
        // If two titles have the same id because an admin said so, the older one gets new entries.
        let known = self.ids.entry(self.hasher.hash_one((catalogue, id))).or_insert(title);
        *known = (*known).min(title);
    }

    fn put_name(&mut self, name: &TitleName, year: Option<u16>, title: TitleId) {
        if !name.words.is_empty() {
            let known = self.names.entry(self.hasher.hash_one((&*name.words, year))).or_insert(title);
            *known = (*known).min(title);
        }
    }

    /// Returns the title of an entry.
    pub fn find(&self, entry: EntryIdentity<'_>) -> Belongs {
        let of = |catalogue: Catalogue, id: &Option<String>| {
            let found = self.ids.get(&self.hasher.hash_one((catalogue, id.as_deref()?)));
            found.map(|it| self.current(*it))
        };
        let tmdb = of(Catalogue::Tmdb, &entry.ids.tmdb);
        let imdb = of(Catalogue::Imdb, &entry.ids.imdb);
        let by_tmdb = || MatchReason::TmdbId(entry.ids.tmdb.clone().unwrap_or_default());
        let by_imdb = || MatchReason::ImdbId(entry.ids.imdb.clone().unwrap_or_default());
        match (tmdb, imdb) {
            (Some(one), Some(other)) if one < other => Belongs::ToBoth(one, other, by_imdb()),
            (Some(one), Some(other)) if one > other => Belongs::ToBoth(other, one, by_tmdb()),
            (Some(title), _) => Belongs::To(title, by_tmdb()),
            (None, Some(title)) => Belongs::To(title, by_imdb()),
            (None, None) if entry.ids.is_empty() && !entry.name.words.is_empty() => {
                let found = self.names.get(&self.hasher.hash_one((&*entry.name.words, entry.year)));
                let found = found.map(|it| self.current(*it)).filter(|it| !self.with_ids.contains(it));
                found.map_or(Belongs::New, |it| Belongs::To(it, MatchReason::NameAndYear))
            }
            (None, None) => Belongs::New,
        }
    }

    /// States that a title was merged into another one.
    pub fn merge(&mut self, into: TitleId, from: TitleId) {
        if self.with_ids.contains(&from) {
            self.with_ids.insert(into);
        }
        self.merged.insert(from, into);
    }

    /// Returns the title itself, or the one that it was merged into.
    pub fn current(&self, title: TitleId) -> TitleId {
        let mut title = title;
        // A title is merged once, so this ends.
        while let Some(into) = self.merged.get(&title) {
            title = *into;
        }
        title
    }
}

/// Returns the year of a relation: that of its list, else that of its name.
pub fn year_of(relation: &Relation, name: &TitleName) -> Option<u16> {
    relation.facts.year.or(name.year)
}

/// Returns whether the ids of an entry state another title than before: both have an id of the same catalogue, and no id is
/// the same.
pub fn contradicts(before: &ExternalIds, now: &ExternalIds) -> bool {
    let pairs = [(&before.tmdb, &now.tmdb), (&before.imdb, &now.imdb)];
    let both = || pairs.iter().filter_map(|(before, now)| Some((before.as_ref()?, now.as_ref()?)));
    both().next().is_some() && both().all(|(before, now)| before != now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(tmdb: &str, imdb: &str) -> ExternalIds {
        let text = |it: &str| (!it.is_empty()).then(|| it.to_owned());
        ExternalIds { tmdb: text(tmdb), imdb: text(imdb) }
    }

    fn film(number: u32) -> TitleId {
        TitleId::movie(number).unwrap()
    }

    #[test]
    fn an_id_of_more_than_three_names_is_ignored_and_marks_of_versions_are_no_names() {
        let mut names = IdNames::default();
        let count = |names: &mut IdNames, id: &str, name: &str| names.add(&ids(id, ""), &TitleName::of(name));
        for name in ["EN - Heat", "DE - Heat (1995)", "Heat 4K", "Heat [UHD]", "Hitze", "Calor"] {
            count(&mut names, "949", name);
        }
        for name in ["A", "B", "C", "D"] {
            count(&mut names, "1", name);
        }
        names.finish();
        let mut good = ids("949", "tt1");
        names.keep_good(&mut good);
        assert_eq!((good, names.n_ignored()), (ids("949", "tt1"), 1));
        let mut bad = ids("1", "tt1");
        names.keep_good(&mut bad);
        assert_eq!(bad, ids("", "tt1"));
    }

    #[test]
    fn an_entry_belongs_to_the_title_of_its_ids_or_without_ids_of_its_name_and_year() {
        let mut index = TitleIndex::default();
        let heat = TitleName::of("Heat (1995)");
        let put = |index: &mut TitleIndex, of: &ExternalIds, year, title| {
            index.put(EntryIdentity { ids: of, name: &heat, year }, title);
        };
        put(&mut index, &ids("949", ""), Some(1995), film(1));
        put(&mut index, &ids("", "tt2"), Some(1995), film(2));
        put(&mut index, &ids("", ""), Some(1995), film(3));
        let find = |index: &TitleIndex, of: ExternalIds, name: &str, year| {
            index.find(EntryIdentity { ids: &of, name: &TitleName::of(name), year })
        };
        let by_tmdb = || MatchReason::TmdbId("949".to_owned());
        for (of, name, year, expected) in [
            (ids("949", ""), "Other", None, Belongs::To(film(1), by_tmdb())),
            (ids("949", "tt9"), "Other", None, Belongs::To(film(1), by_tmdb())),
            (ids("5", "tt2"), "Heat", None, Belongs::To(film(2), MatchReason::ImdbId("tt2".to_owned()))),
            (
                ids("949", "tt2"),
                "",
                None,
                Belongs::ToBoth(film(1), film(2), MatchReason::ImdbId("tt2".to_owned())),
            ),
            (ids("5", "tt5"), "Heat", Some(1995), Belongs::New),
            (ids("", ""), "HEAT 4K", Some(1995), Belongs::To(film(3), MatchReason::NameAndYear)),
            (ids("", ""), "Heat", None, Belongs::New),
            (ids("", ""), "Heat", Some(1996), Belongs::New),
            (ids("", ""), "???", Some(1995), Belongs::New),
        ] {
            assert_eq!(find(&index, of.clone(), name, year), expected, "{of:?} {name} {year:?}");
        }
        index.merge(film(1), film(2));
        assert_eq!(find(&index, ids("949", "tt2"), "", None), Belongs::To(film(1), by_tmdb()));
        // The title without ids gets one, so others without ids no longer belong to it.
        put(&mut index, &ids("7", ""), Some(1995), film(3));
        assert_eq!(find(&index, ids("", ""), "Heat", Some(1995)), Belongs::New);
    }

    #[test]
    fn only_different_ids_of_the_same_catalogue_contradict_each_other() {
        for (before, now, expected) in [
            (ids("1", ""), ids("2", ""), true),
            (ids("1", "tt1"), ids("2", "tt1"), false),
            (ids("1", "tt1"), ids("2", "tt2"), true),
            (ids("1", ""), ids("", "tt1"), false),
            (ids("", ""), ids("1", "tt1"), false),
            (ids("1", ""), ids("", ""), false),
        ] {
            assert_eq!(contradicts(&before, &now), expected, "{before:?} {now:?}");
        }
    }
}
