//! Compares the stored relations of an account with what its provider lists, and so finds the changes of an import.
//!
//! Keeps about fifty bytes per stored relation and none of its texts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use serde_json::{Map, Value};

use super::found::FoundTitle;
use super::relation::{Relation, RelationId};
use super::title::{Title, TitleFacts, TitleId};
use crate::ids::{AccountId, VodCategoryId};
use crate::playlist::delta::{MissingAction, SeenAgain, StalePolicy};
use crate::source_url::SourceUrl;

/// The relations of one account and one kind before an import, and which of them its provider lists.
pub struct KnownRelations {
    account: AccountId,
    hasher: RandomState,
    /// By hash of the provider's id.
    items: HashMap<u64, KnownRelation>,
    /// Relations with the same provider id as another one. Only a defect can cause them.
    doubles: Vec<(TitleId, RelationId)>,
}

struct KnownRelation {
    title: TitleId,
    relation: RelationId,
    category: VodCategoryId,
    fingerprint: u64,
    last_seen: Option<i64>,
    is_listed: bool,
    is_compared: bool,
}

/// The change that an entry causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryChange {
    New,
    Same,
    Changed(TitleId, RelationId),
    /// Another entry with the same provider id was compared before.
    Twice,
}

/// A stored relation that the provider does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingRelation {
    pub title: TitleId,
    pub relation: RelationId,
    pub action: MissingAction,
    /// When it was last seen, in milliseconds since 1970.
    pub last_seen: i64,
}

impl KnownRelations {
    pub fn new(account: AccountId) -> Self {
        Self { account, hasher: RandomState::new(), items: HashMap::new(), doubles: Vec::new() }
    }

    /// Adds the relations of the account with a stored title.
    pub fn add(&mut self, title: &Title) {
        for relation in title.relations_of(self.account) {
            let item = KnownRelation {
                title: title.id,
                relation: relation.id,
                category: relation.category,
                fingerprint: self.fingerprint_of(relation),
                last_seen: relation.last_seen,
                is_listed: false,
                is_compared: false,
            };
            let key = self.hasher.hash_one(&relation.provider_id);
            match self.items.entry(key) {
                Entry::Occupied(_) => self.doubles.push((title.id, relation.id)),
                Entry::Vacant(place) => {
                    place.insert(item);
                }
            }
        }
    }

    /// Notes that the provider lists an id, for [`KnownRelations::seen_again`].
    pub fn list(&mut self, provider_id: &str) {
        if let Some(item) = self.items.get_mut(&self.hasher.hash_one(provider_id)) {
            item.is_listed = true;
        }
    }

    /// Notes relations whose provider ids are not listed, but whose titles are. `is_listed` gets the title and the category.
    pub fn list_titles(&mut self, is_listed: impl Fn(TitleId, VodCategoryId) -> bool) {
        for item in self.items.values_mut() {
            item.is_listed |= is_listed(item.title, item.category);
        }
    }

    /// Returns how many of the relations that are not stale the provider lists again, among those of these categories. Call
    /// after all ids were listed.
    pub fn seen_again(&self, is_asked: impl Fn(VodCategoryId) -> bool) -> SeenAgain {
        let known = self.items.values().filter(|it| it.last_seen.is_none() && is_asked(it.category));
        known.fold(SeenAgain::default(), |sum, it| SeenAgain {
            n_known: sum.n_known + 1,
            n_seen: sum.n_seen + u64::from(it.is_listed),
        })
    }

    /// Compares an entry. Its limits are already applied, and ids that are ignored are removed.
    pub fn compare(&mut self, found: &FoundTitle) -> EntryChange {
        let fingerprint = self.fingerprint_of_found(found);
        let key = self.hasher.hash_one(&found.provider_id);
        let Some(item) = self.items.get_mut(&key) else { return EntryChange::New };
        if std::mem::replace(&mut item.is_compared, true) {
            return EntryChange::Twice;
        }
        match item.fingerprint == fingerprint && item.last_seen.is_none() {
            true => EntryChange::Same,
            false => EntryChange::Changed(item.title, item.relation),
        }
    }

    /// Notes a relation that is new, so that a second entry with the same provider id is noticed.
    pub fn put(&mut self, found: &FoundTitle, title: TitleId, relation: RelationId) {
        let item = KnownRelation {
            title,
            relation,
            category: found.category,
            fingerprint: 0,
            last_seen: None,
            is_listed: true,
            is_compared: true,
        };
        self.items.insert(self.hasher.hash_one(&found.provider_id), item);
    }

    /// Returns the stored relations that the provider does not list, sorted by title. `is_kept` tells the categories that it
    /// was not asked for, so that nothing is known of their titles.
    pub fn missing(&self, at: StalePolicy, is_kept: impl Fn(VodCategoryId) -> bool) -> Vec<MissingRelation> {
        let action = |item: &KnownRelation| match item.last_seen {
            Some(then) if at.is_over(then) => MissingAction::Remove,
            Some(then) if at.last_seen(Some(then)) == then => MissingAction::KeepStale,
            _ => MissingAction::MarkStale,
        };
        let gone = self.items.values().filter(|it| !it.is_compared && !is_kept(it.category));
        let mut gone: Vec<_> = gone
            .map(|it| MissingRelation {
                title: it.title,
                relation: it.relation,
                action: action(it),
                last_seen: at.last_seen(it.last_seen),
            })
            .collect();
        let doubles = self.doubles.iter().map(|(title, relation)| MissingRelation {
            title: *title,
            relation: *relation,
            action: MissingAction::Remove,
            last_seen: at.now,
        });
        gone.extend(doubles);
        gone.sort_unstable_by_key(|it| (it.title, it.relation));
        gone
    }

    fn fingerprint_of(&self, it: &Relation) -> u64 {
        let values = (&*it.provider_id, it.category, &*it.extension, it.last_modified);
        self.fingerprint(values, it.address.as_ref(), &it.facts, &it.custom_properties)
    }

    fn fingerprint_of_found(&self, it: &FoundTitle) -> u64 {
        let values = (&*it.provider_id, it.category, &*it.extension, it.last_modified);
        self.fingerprint(values, it.address.as_ref(), &it.facts, &it.custom_properties)
    }

    fn fingerprint(
        &self,
        values: (&str, VodCategoryId, &str, Option<i64>),
        address: Option<&SourceUrl>,
        facts: &TitleFacts,
        properties: &Map<String, Value>,
    ) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        values.hash(&mut hasher);
        address.map(SourceUrl::expose).hash(&mut hasher);
        let TitleFacts { name, description, year, rating, genre, duration_secs, logo, is_adult, ids } = facts;
        (name, description, year, rating, genre, duration_secs, logo, is_adult, ids).hash(&mut hasher);
        hash_map(properties, &mut hasher);
        hasher.finish()
    }
}

fn hash_map(map: &Map<String, Value>, hasher: &mut impl Hasher) {
    hasher.write_usize(map.len());
    for (name, value) in map {
        name.hash(hasher);
        hash_value(value, hasher);
    }
}

fn hash_value(value: &Value, hasher: &mut impl Hasher) {
    match value {
        Value::Null => hasher.write_u8(0),
        Value::Bool(it) => (1_u8, it).hash(hasher),
        Value::Number(it) => (2_u8, it).hash(hasher),
        Value::String(it) => (3_u8, it).hash(hasher),
        Value::Array(all) => {
            (4_u8, all.len()).hash(hasher);
            all.iter().for_each(|it| hash_value(it, hasher));
        }
        Value::Object(map) => {
            hasher.write_u8(5);
            hash_map(map, hasher);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::vod::uuid_of;

    const AT: StalePolicy = StalePolicy { last_good: 900, now: 1_000, stale_stream_days: 1 };
    const DAY: i64 = 24 * 60 * 60 * 1000;

    fn found(id: &str) -> FoundTitle {
        let mut found = FoundTitle::new(id, VodCategoryId(1), "Heat");
        found.custom_properties =
            json!({ "cast": ["A", 1.5, null, true], "x": { "y": 1 } }).as_object().unwrap().clone();
        found
    }

    fn stored(number: u32, found: FoundTitle, last_seen: Option<i64>) -> Title {
        let id = TitleId::movie(number).unwrap();
        let mut relation = Relation::new(RelationId(number), AccountId(2), found.category, "", 0);
        found.put_into(&mut relation);
        relation.last_seen = last_seen;
        Title { relations: vec![relation], ..Title::new(id, uuid_of(id.key(), 0), 0) }
    }

    #[test]
    fn an_entry_is_new_the_same_changed_or_there_twice() {
        let mut known = KnownRelations::new(AccountId(2));
        known.add(&stored(1, found("a"), None));
        known.add(&stored(2, found("b"), None));
        known.add(&stored(3, found("c"), Some(5)));
        let mut other = found("b");
        other.custom_properties.insert("x".to_owned(), json!({ "y": 2 }));
        let film = |number| (TitleId::movie(number).unwrap(), RelationId(number));
        for (entry, expected) in [
            (found("a"), EntryChange::Same),
            (found("a"), EntryChange::Twice),
            (other, EntryChange::Changed(film(2).0, film(2).1)),
            (found("c"), EntryChange::Changed(film(3).0, film(3).1)),
            (found("d"), EntryChange::New),
        ] {
            assert_eq!(known.compare(&entry), expected, "{entry:?}");
        }
        known.put(&found("d"), film(4).0, film(4).1);
        assert_eq!(known.compare(&found("d")), EntryChange::Twice);
        assert!(known.missing(AT, |_| false).is_empty());
    }

    #[test]
    fn a_missing_relation_becomes_stale_first_and_categories_without_an_answer_keep_theirs() {
        let mut known = KnownRelations::new(AccountId(2));
        let mut elsewhere = found("d");
        elsewhere.category = VodCategoryId(9);
        known.add(&stored(1, found("a"), None));
        known.add(&stored(2, found("b"), Some(500)));
        known.add(&stored(4, elsewhere, None));
        let is_kept = |it: VodCategoryId| it == VodCategoryId(9);
        let actions = |at| {
            known
                .missing(at, is_kept)
                .iter()
                .map(|it| (it.title.number(), it.action, it.last_seen))
                .collect::<Vec<_>>()
        };
        assert_eq!(actions(AT), [(1, MissingAction::MarkStale, 900), (2, MissingAction::KeepStale, 500)]);
        let later = StalePolicy { now: DAY + 600, ..AT };
        assert_eq!(actions(later), [(1, MissingAction::MarkStale, 900), (2, MissingAction::Remove, 500)]);
        assert_eq!(known.seen_again(|it| !is_kept(it)), SeenAgain { n_known: 1, n_seen: 0 });
        known.list("a");
        assert_eq!(known.seen_again(|_| true), SeenAgain { n_known: 2, n_seen: 1 });
    }
}
