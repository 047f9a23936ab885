//! A title: a film or a series, whichever accounts offer it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::completion::Completion;
use super::relation::{Relation, RelationId};
use crate::ids::AccountId;

/// Number of relations that fit a record whatever their values are.
const RELATIONS_FITTING: usize = 8;
/// Maximum size of the relations of a title, in bytes as JSON.
const TITLE_BYTES_MAX: usize = 512 << 10;

/// Whether a title is a film or a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TitleKind {
    Movie,
    Series,
}

impl TitleKind {
    pub const ALL: [Self; 2] = [Self::Movie, Self::Series];

    /// Returns the word of the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Movie => "movie",
            Self::Series => "series",
        }
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// Identifies a title among all films and series: its kind, and its number among those of its kind.
///
/// A number is used once, by a title or by one of its relations, so that both can be named where an app gives one number.
/// Titles that are imported with the ids of another service may share their number with one of the other kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TitleId(u32);

impl TitleId {
    /// Maximum number. Apps store it in 32 bits with a sign.
    pub const NUMBER_MAX: u32 = u32::MAX >> 1;

    /// Returns the id of the title with this number. `None` if no title can have it.
    pub fn new(kind: TitleKind, number: u32) -> Option<Self> {
        let bit = match kind {
            TitleKind::Movie => 0,
            TitleKind::Series => 1,
        };
        (number <= Self::NUMBER_MAX).then_some(Self((number << 1) | bit))
    }

    /// Returns the id of the film with this number.
    pub fn movie(number: u32) -> Option<Self> {
        Self::new(TitleKind::Movie, number)
    }

    /// Returns the id of the series with this number.
    pub fn series(number: u32) -> Option<Self> {
        Self::new(TitleKind::Series, number)
    }

    /// Returns the id of a key.
    pub fn from_key(key: u32) -> Self {
        Self(key)
    }

    /// Returns one number for kind and number. Unique among all titles.
    pub fn key(self) -> u32 {
        self.0
    }

    pub fn kind(self) -> TitleKind {
        if self.0 & 1 == 0 { TitleKind::Movie } else { TitleKind::Series }
    }

    /// Returns the id that interfaces use, unique among the titles of its kind.
    pub fn number(self) -> u32 {
        self.0 >> 1
    }
}

impl fmt::Display for TitleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind().name(), self.number())
    }
}

/// A film or a series: the accounts that offer it, changes by admins, and its state.
///
/// The values of accounts stay in the relations, so that a refresh cannot overwrite an edit, and the values of the next
/// account count when one no longer offers the title. [`Title::name`], [`Title::year`] and so on return the value in force:
/// that of an admin, else that of a catalogue that completes titles, else that of the first relation that has one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Title {
    pub id: TitleId,
    /// The identifier in its address. Never changes.
    pub uuid: Uuid,
    /// The preferred one first: those that are not stale, by the priority of their account.
    pub relations: Vec<Relation>,
    /// Values changed by admins.
    #[serde(default, skip_serializing_if = "TitleEdits::is_empty")]
    pub edits: TitleEdits,
    /// The answer of a catalogue of films and series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Box<Completion>>,
    /// Hidden from everybody but admins.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// Titles that were merged into this one. Their ids and UUIDs lead here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<TitleAlias>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub custom_properties: Map<String, Value>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub created_at: i64,
    #[serde(default)]
    pub updated_at: i64,
}

/// The id and the UUID of a title that was merged into another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TitleAlias {
    pub id: TitleId,
    pub uuid: Uuid,
    /// Its relations at that time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<RelationId>,
}

/// The ids of a title in external catalogues. Never empty, `0` or `null`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExternalIds {
    /// `ext_id_a` in the interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmdb: Option<String>,
    /// `ext_id_b` in the interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imdb: Option<String>,
}

impl ExternalIds {
    pub fn is_empty(&self) -> bool {
        self.tmdb.is_none() && self.imdb.is_none()
    }
}

/// The ids in external catalogues under which a title is found. Sorted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MatchingIds {
    pub tmdb: Vec<String>,
    pub imdb: Vec<String>,
}

impl MatchingIds {
    pub fn is_empty(&self) -> bool {
        self.tmdb.is_empty() && self.imdb.is_empty()
    }
}

/// The values of a title as one source states them. Absent ones are unknown.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TitleFacts {
    /// As the provider writes it, with marks of language and quality. Empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub year: Option<u16>,
    /// A number such as `7.5`, or a label such as `PG-13`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rating: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub genre: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_secs: Option<u32>,
    /// Address of the picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logo: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub is_adult: bool,
    #[serde(skip_serializing_if = "ExternalIds::is_empty")]
    pub ids: ExternalIds,
}

/// Values that admins changed. An empty text, or 0, means "none".
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TitleEdits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub year: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rating: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub genre: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_secs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logo: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_adult: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmdb: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imdb: Option<String>,
}

impl TitleEdits {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether an admin set no id of an external catalogue.
    pub fn has_no_ids(&self) -> bool {
        let is_none = |id: &Option<String>| id.as_ref().is_none_or(|it| it.is_empty());
        is_none(&self.tmdb) && is_none(&self.imdb)
    }
}

pub(super) fn is_false(value: &bool) -> bool {
    !*value
}

impl Title {
    /// Creates a title that no account offers yet.
    pub fn new(id: TitleId, uuid: Uuid, at: i64) -> Self {
        Self {
            id,
            uuid,
            relations: Vec::new(),
            edits: TitleEdits::default(),
            completion: None,
            hidden: false,
            aliases: Vec::new(),
            custom_properties: Map::new(),
            created_at: at,
            updated_at: at,
        }
    }

    /// Returns the name in force.
    pub fn name(&self) -> &str {
        let completed = || self.completed(|it| Some(&*it.name).filter(|it| !it.is_empty()));
        match &self.edits.name {
            Some(name) => name,
            None => completed().unwrap_or_else(|| self.stated_name()),
        }
    }

    /// Returns the name of an admin or an account, whatever a catalogue says.
    pub fn stated_name(&self) -> &str {
        let named = || self.relations.iter().map(Relation::name).find(|it| !it.is_empty());
        self.edits.name.as_deref().or_else(named).unwrap_or_default()
    }

    /// Returns the year of an admin or an account, whatever a catalogue says.
    pub fn stated_year(&self) -> Option<u16> {
        let first = || self.relations.iter().find_map(|it| it.first(|it| it.year));
        self.edits.year.or_else(first).filter(|it| *it != 0)
    }

    /// Returns the ids of an admin or an account, whatever a catalogue says.
    pub fn stated_ids(&self) -> ExternalIds {
        let of = |edit: &Option<String>, id: fn(&TitleFacts) -> Option<String>| {
            let first = || self.relations.iter().find_map(|it| it.first(id));
            edit.clone().or_else(first).filter(|it| !it.is_empty())
        };
        ExternalIds {
            tmdb: of(&self.edits.tmdb, |it| it.ids.tmdb.clone()),
            imdb: of(&self.edits.imdb, |it| it.ids.imdb.clone()),
        }
    }

    /// Returns a value of the catalogue, if it knows the title and states one.
    pub fn completed<'a, T>(&'a self, value: impl Fn(&'a TitleFacts) -> Option<T>) -> Option<T> {
        value(self.completion.as_ref()?.facts.as_ref()?)
    }

    pub fn description(&self) -> Option<&str> {
        self.text(self.edits.description.as_deref(), |it| it.description.as_deref())
    }

    pub fn year(&self) -> Option<u16> {
        self.edits.year.or_else(|| self.first(|it| it.year)).filter(|it| *it != 0)
    }

    pub fn rating(&self) -> Option<&str> {
        self.text(self.edits.rating.as_deref(), |it| it.rating.as_deref())
    }

    pub fn genre(&self) -> Option<&str> {
        self.text(self.edits.genre.as_deref(), |it| it.genre.as_deref())
    }

    pub fn duration_secs(&self) -> Option<u32> {
        self.edits.duration_secs.or_else(|| self.first(|it| it.duration_secs)).filter(|it| *it != 0)
    }

    /// Returns the address of the picture.
    pub fn logo(&self) -> Option<&str> {
        self.text(self.edits.logo.as_deref(), |it| it.logo.as_deref())
    }

    /// Returns whether an admin marked it as adult content, or an account did and no admin denied it.
    pub fn is_adult(&self) -> bool {
        let is_stated = || {
            let is_completed = self.completed(|it| Some(it.is_adult)).unwrap_or(false);
            is_completed || self.relations.iter().any(Relation::is_adult)
        };
        self.edits.is_adult.unwrap_or_else(is_stated)
    }

    /// Returns `ext_id_a`.
    pub fn tmdb_id(&self) -> Option<&str> {
        self.text(self.edits.tmdb.as_deref(), |it| it.ids.tmdb.as_deref())
    }

    /// Returns `ext_id_b`.
    pub fn imdb_id(&self) -> Option<&str> {
        self.text(self.edits.imdb.as_deref(), |it| it.ids.imdb.as_deref())
    }

    /// Returns the ids under which relations of other accounts find this title: those that an admin set, else those of its
    /// relations and of the catalogue that completes titles. Several of a catalogue if they differ.
    pub fn matching_ids(&self) -> MatchingIds {
        let mut relations: Vec<ExternalIds> = self.relations.iter().map(Relation::ids).collect();
        if self.relations.iter().any(|it| !it.is_pinned) {
            relations.extend(self.completed(|it| Some(it.ids.clone())));
        }
        let all = |edit: &Option<String>, of: fn(&ExternalIds) -> Option<&String>| {
            let mut ids: Vec<String> = match edit {
                Some(edit) => vec![edit.clone()],
                None => relations.iter().filter_map(of).cloned().collect(),
            };
            ids.retain(|it| !it.is_empty());
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        MatchingIds {
            tmdb: all(&self.edits.tmdb, |it| it.tmdb.as_ref()),
            imdb: all(&self.edits.imdb, |it| it.imdb.as_ref()),
        }
    }

    /// Returns whether all accounts that offered it no longer list it, or none is left.
    pub fn is_stale(&self) -> bool {
        self.relations.iter().all(Relation::is_stale)
    }

    /// Returns the relations of an account, the preferred one first.
    pub fn relations_of(&self, account: AccountId) -> impl Iterator<Item = &Relation> {
        self.relations.iter().filter(move |it| it.account == account)
    }

    pub fn relation(&self, id: RelationId) -> Option<&Relation> {
        self.relations.iter().find(|it| it.id == id)
    }

    pub fn relation_mut(&mut self, id: RelationId) -> Option<&mut Relation> {
        self.relations.iter_mut().find(|it| it.id == id)
    }

    /// Sorts the relations: those that are not stale first, then by the priority of their account, larger ones first.
    pub fn sort_relations(&mut self, priority: impl Fn(AccountId) -> i32) {
        self.relations
            .sort_by_key(|it| (it.is_stale(), std::cmp::Reverse(priority(it.account)), it.account, it.id));
    }

    /// Leaves values of the last relations out until the title fits a record. Only a defective or hostile provider has titles
    /// of this size.
    pub fn limit_size(&mut self) {
        // A title with fewer relations fits in any case.
        if self.relations.len() <= RELATIONS_FITTING {
            return;
        }
        let sizes = self.relations.iter().map(|it| serde_json::to_vec(it).map_or(0, |it| it.len()));
        let mut size: usize = sizes.sum();
        for relation in self.relations.iter_mut().rev() {
            if size <= TITLE_BYTES_MAX {
                return;
            }
            let before = serde_json::to_vec(&*relation).map_or(0, |it| it.len());
            relation.details = None;
            relation.custom_properties = Map::new();
            (relation.facts.description, relation.facts.logo) = (None, None);
            let after = serde_json::to_vec(&*relation).map_or(0, |it| it.len());
            size -= before.saturating_sub(after).min(size);
        }
    }

    fn first<'a, T>(&'a self, value: impl Fn(&'a TitleFacts) -> Option<T>) -> Option<T> {
        self.completed(&value).or_else(|| self.relations.iter().find_map(|it| it.first(&value)))
    }

    fn text<'a>(
        &'a self,
        edit: Option<&'a str>,
        value: impl Fn(&'a TitleFacts) -> Option<&'a str>,
    ) -> Option<&'a str> {
        edit.or_else(|| self.first(value)).filter(|it| !it.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::VodCategoryId;

    fn title() -> Title {
        Title::new(TitleId::movie(7).unwrap(), Uuid::from_u128(1), 5)
    }

    fn relation(id: u32, account: u32, facts: TitleFacts) -> Relation {
        Relation {
            facts,
            ..Relation::new(RelationId(id), AccountId(account), VodCategoryId(1), id.to_string(), 5)
        }
    }

    #[test]
    fn an_id_has_a_kind_and_a_number() {
        for (kind, number) in
            [(TitleKind::Movie, 7), (TitleKind::Series, 7), (TitleKind::Series, TitleId::NUMBER_MAX)]
        {
            let id = TitleId::new(kind, number).unwrap();
            assert_eq!((id.kind(), id.number(), TitleId::from_key(id.key())), (kind, number, id));
        }
        assert_eq!(TitleId::movie(TitleId::NUMBER_MAX + 1), None);
        assert_eq!(TitleId::series(3).unwrap().to_string(), "series 3");
    }

    #[test]
    fn the_first_account_with_a_value_states_it_and_an_edit_overrides_all() {
        let mut title = title();
        let first = TitleFacts { name: "Heat".to_owned(), ..TitleFacts::default() };
        let second = TitleFacts {
            name: "HEAT".to_owned(),
            year: Some(1995),
            genre: Some("Crime".to_owned()),
            is_adult: true,
            ..TitleFacts::default()
        };
        title.relations = vec![relation(8, 3, second), relation(9, 2, first)];
        title.sort_relations(|account| if account == AccountId(2) { 10 } else { 0 });
        assert_eq!((title.name(), title.year(), title.genre()), ("Heat", Some(1995), Some("Crime")));
        assert!(title.is_adult());
        title.edits = TitleEdits {
            name: Some("Heat (1995)".to_owned()),
            year: Some(0),
            genre: Some(String::new()),
            is_adult: Some(false),
            ..TitleEdits::default()
        };
        assert_eq!(
            (title.name(), title.year(), title.genre(), title.is_adult()),
            ("Heat (1995)", None, None, false)
        );
    }

    #[test]
    fn a_title_of_any_size_is_limited() {
        let mut title = title();
        let facts = TitleFacts {
            name: "Heat".to_owned(),
            description: Some("é".repeat(4_000)),
            ..TitleFacts::default()
        };
        title.relations = (0..400).map(|it| relation(it, 2, facts.clone())).collect();
        title.limit_size();
        assert!(serde_json::to_vec(&title).unwrap().len() < TITLE_BYTES_MAX + 10_000);
        assert_eq!((title.relations.len(), title.description().is_some()), (400, true));
    }

    #[test]
    fn a_stale_relation_comes_last_whatever_its_priority() {
        let mut title = title();
        let named = |name: &str| TitleFacts { name: name.to_owned(), ..TitleFacts::default() };
        title.relations = vec![relation(8, 2, named("a")), relation(9, 3, named("b"))];
        title.relations[0].last_seen = Some(1);
        title.sort_relations(|account| if account == AccountId(2) { 10 } else { 0 });
        assert_eq!((title.name(), title.is_stale()), ("b", false));
        title.relations[0].last_seen = Some(1);
        assert!(title.is_stale());
    }
}
