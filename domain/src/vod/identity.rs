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

/// Maximum number of relations of a title that entries are added to. Entries beyond that get another title, so that a provider
/// with thousands of entries of one name cannot make a title of any size.
pub const RELATIONS_MAX: u32 = 50;

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

/// The values that identify an entry: its ids, its name, and its year.
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
    /// Number of relations of titles with several stored ones, or with new ones; about.
    counts: HashMap<TitleId, u32>,
    /// Stored titles that have an id in common, the older one first. An interrupted import leaves them.
    same: Vec<(TitleId, TitleId, MatchReason)>,
    /// Titles whose ids an admin set.
    edited: HashSet<TitleId>,
}

impl TitleIndex {
    /// Adds a stored title.
    pub fn add(&mut self, title: &Title) {
        let n = u32::try_from(title.relations.len()).unwrap_or(u32::MAX);
        if n > 1 {
            self.counts.insert(title.id, n);
        }
        if title.edits.tmdb.is_some() || title.edits.imdb.is_some() {
            self.edited.insert(title.id);
        }
        let ids = title.matching_ids();
        for (catalogue, of_catalogue) in [(Catalogue::Tmdb, &ids.tmdb), (Catalogue::Imdb, &ids.imdb)] {
            for id in of_catalogue {
                let before = self.put_id(catalogue, id, title.id);
                if let Some(before) =
                    before.filter(|it| !self.edited.contains(it) && !self.edited.contains(&title.id))
                {
                    let reason = match catalogue {
                        Catalogue::Tmdb => MatchReason::TmdbId(id.clone()),
                        Catalogue::Imdb => MatchReason::ImdbId(id.clone()),
                    };
                    self.same.push((before.min(title.id), before.max(title.id), reason));
                }
            }
        }
        // The id of a catalogue is that of the name, so entries of the name still belong to the title.
        if title.edits.has_no_ids() && title.relations.iter().all(|it| it.ids().is_empty()) {
            for relation in title.relations.iter().filter(|it| !it.is_pinned) {
                let name = TitleName::new(relation.name());
                self.put_name(&name, year_of(relation, &name), title.id);
            }
        }
    }

    /// Returns the stored titles that have an id in common, the older one first, with the reason.
    pub fn take_same(&mut self) -> Vec<(TitleId, TitleId, MatchReason)> {
        let same = std::mem::take(&mut self.same);
        same.into_iter().filter(|it| !self.is_full(it.0) && !self.is_full(it.1)).collect()
    }

    /// Adds an entry that belongs to a title. `is_new` is whether the title did not have it before.
    pub fn put(&mut self, entry: EntryIdentity<'_>, title: TitleId, is_new: bool) {
        if is_new {
            *self.counts.entry(title).or_default() += 1;
        }
        for (catalogue, id) in each(entry.ids) {
            self.put_id(catalogue, id, title);
            self.with_ids.insert(title);
        }
        if entry.ids.is_empty() && !self.with_ids.contains(&title) {
            self.put_name(entry.name, entry.year, title);
        }
    }

    fn is_full(&self, title: TitleId) -> bool {
        self.counts.get(&title).is_some_and(|it| *it >= RELATIONS_MAX)
    }

    /// Returns the other title that has the id, if there is one.
    fn put_id(&mut self, catalogue: Catalogue, id: &str, title: TitleId) -> Option<TitleId> {
        let hash = self.hasher.hash_one((catalogue, id));
        let before = self.ids.get(&hash).copied().filter(|it| *it != title);
        // If two titles have the same id, the older one gets new entries, until it is full.
        let holder = before.filter(|it| !self.is_full(*it)).map_or(title, |it| it.min(title));
        self.ids.insert(hash, holder);
        before
    }

    fn put_name(&mut self, name: &TitleName, year: Option<u16>, title: TitleId) {
        if name.words.is_empty() {
            return;
        }
        let hash = self.hasher.hash_one((&*name.words, year));
        let before = self.names.get(&hash).copied().filter(|it| !self.is_full(*it));
        self.names.insert(hash, before.map_or(title, |it| it.min(title)));
    }

    /// Returns the title of an entry.
    pub fn find(&self, entry: EntryIdentity<'_>) -> Belongs {
        let of = |catalogue: Catalogue, id: &Option<String>| {
            let found = self.ids.get(&self.hasher.hash_one((catalogue, id.as_deref()?)));
            found.map(|it| self.current(*it)).filter(|it| !self.is_full(*it))
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
                let found = found
                    .map(|it| self.current(*it))
                    .filter(|it| !self.with_ids.contains(it) && !self.is_full(*it));
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
        let n = self.counts.get(&from).copied().unwrap_or(1);
        *self.counts.entry(into).or_insert(1) += n;
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
    fn an_id_of_more_than_three_names_is_ignored_and_marks_of_versions_are_not_names() {
        let mut names = IdNames::default();
        let count =
            |names: &mut IdNames, id: &str, name: &str| names.add(&ids(id, ""), &TitleName::new(name));
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
        let heat = TitleName::new("Heat (1995)");
        let put = |index: &mut TitleIndex, of: &ExternalIds, year, title| {
            index.put(EntryIdentity { ids: of, name: &heat, year }, title, true);
        };
        put(&mut index, &ids("949", ""), Some(1995), film(1));
        put(&mut index, &ids("", "tt2"), Some(1995), film(2));
        put(&mut index, &ids("", ""), Some(1995), film(3));
        let find = |index: &TitleIndex, of: ExternalIds, name: &str, year| {
            index.find(EntryIdentity { ids: &of, name: &TitleName::new(name), year })
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
    fn a_title_with_many_relations_gets_no_more() {
        let mut index = TitleIndex::default();
        let (name, none) = (TitleName::new("Film"), ExternalIds::default());
        let entry = EntryIdentity { ids: &none, name: &name, year: None };
        let mut titles = Vec::new();
        for number in 0..120 {
            let title = match index.find(entry) {
                Belongs::To(title, _) => title,
                _ => film(number + 1),
            };
            index.put(entry, title, true);
            titles.push(title);
        }
        titles.dedup();
        assert_eq!(titles, [film(1), film(51), film(101)]);
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
