//! Merges titles, splits them, and takes both back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::completion::{Completion, CompletionOutcome};
use super::relation::{MatchReason, Relation, RelationId};
use super::title::{Title, TitleAlias, TitleEdits, TitleId};

/// All of a title except what accounts state: what an operation of an admin can change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TitleShape {
    pub id: TitleId,
    pub uuid: Uuid,
    /// For messages.
    pub name: String,
    #[serde(default, skip_serializing_if = "TitleEdits::is_empty")]
    pub edits: TitleEdits,
    #[serde(default, skip_serializing_if = "super::title::is_false")]
    pub hidden: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<TitleAlias>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub custom_properties: Map<String, Value>,
    pub relations: Vec<RelationShape>,
    pub created_at: i64,
}

/// A relation without what its account states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelationShape {
    pub id: RelationId,
    pub reason: MatchReason,
    pub is_pinned: bool,
}

impl TitleShape {
    pub fn from_title(title: &Title) -> Self {
        let relation =
            |it: &Relation| RelationShape { id: it.id, reason: it.reason.clone(), is_pinned: it.is_pinned };
        Self {
            id: title.id,
            uuid: title.uuid,
            name: title.name().to_owned(),
            edits: title.edits.clone(),
            hidden: title.hidden,
            aliases: title.aliases.clone(),
            custom_properties: title.custom_properties.clone(),
            relations: title.relations.iter().map(relation).collect(),
            created_at: title.created_at,
        }
    }

    /// Returns whether an admin changed the title since.
    fn differs_from(&self, title: &Title) -> bool {
        self.edits != title.edits
            || self.hidden != title.hidden
            || self.custom_properties != title.custom_properties
    }
}

impl Title {
    /// Takes over the relations, the ids and the edits of a title that is the same. The caller removes that title and sorts
    /// the relations.
    pub fn absorb(&mut self, from: Title, reason: &MatchReason, now: i64) {
        let alias = TitleAlias {
            id: from.id,
            uuid: from.uuid,
            relations: from.relations.iter().map(|it| it.id).collect(),
        };
        self.aliases.extend(from.aliases);
        self.aliases.push(alias);
        self.relations.extend(from.relations.into_iter().map(|it| {
            let reason = if it.reason == MatchReason::First { reason.clone() } else { it.reason };
            Relation { reason, ..it }
        }));
        self.edits.complete(from.edits);
        let is_found = |it: &Completion| it.outcome == CompletionOutcome::Found;
        if !self.completion.as_deref().is_some_and(is_found) {
            self.completion = from.completion.or_else(|| self.completion.take());
        }
        self.hidden |= from.hidden;
        for (name, value) in from.custom_properties {
            self.custom_properties.entry(name).or_insert(value);
        }
        self.created_at = self.created_at.min(from.created_at);
        self.updated_at = now;
    }

    /// Moves relations to a title of their own, in which they stay. The new title gets the id of a merged title whose
    /// relations they are, else `new`. Returns `None` if no relation is moved, or none would be left.
    pub fn split_off(&mut self, relations: &[RelationId], new: (TitleId, Uuid), now: i64) -> Option<Title> {
        let is_meant = |it: &Relation| relations.contains(&it.id);
        let n = self.relations.iter().filter(|it| is_meant(it)).count();
        if n == 0 || n == self.relations.len() {
            return None;
        }
        let is_theirs = |it: &TitleAlias| {
            !it.relations.is_empty() && it.relations.iter().all(|it| relations.contains(it))
        };
        let alias = self.aliases.iter().rposition(is_theirs).map(|at| self.aliases.remove(at));
        let (id, uuid) = alias.map_or(new, |it| (it.id, it.uuid));
        let (moved, kept) = std::mem::take(&mut self.relations).into_iter().partition(is_meant);
        self.relations = kept;
        self.updated_at = now;
        let mut title = Title::new(id, uuid, now);
        title.hidden = self.hidden;
        title.edits.is_adult = self.edits.is_adult;
        title.relations = moved;
        for relation in &mut title.relations {
            (relation.reason, relation.is_pinned) = (MatchReason::Admin, true);
        }
        Some(title)
    }
}

impl TitleEdits {
    /// Adds the values that are not edited yet.
    fn complete(&mut self, other: TitleEdits) {
        let TitleEdits { name, description, year, rating, genre, duration_secs, logo, is_adult, tmdb, imdb } =
            other;
        self.name = self.name.take().or(name);
        self.description = self.description.take().or(description);
        self.year = self.year.or(year);
        self.rating = self.rating.take().or(rating);
        self.genre = self.genre.take().or(genre);
        self.duration_secs = self.duration_secs.or(duration_secs);
        self.logo = self.logo.take().or(logo);
        // The stricter one.
        self.is_adult = match (self.is_adult, is_adult) {
            (Some(one), Some(other)) => Some(one || other),
            (one, other) => one.or(other),
        };
        self.tmdb = self.tmdb.take().or(tmdb);
        self.imdb = self.imdb.take().or(imdb);
    }
}

/// Returns the titles as they were before an operation, with the present values of accounts. `now` are the titles that the
/// operation left. Relations that were added since stay where they are, as far as their title exists. A title that the
/// operation created becomes an alias.
///
/// # Errors
/// The names of titles that are gone or that an admin changed since.
pub fn restored(
    before: &[TitleShape],
    after: &[TitleShape],
    now: Vec<Title>,
    at: i64,
) -> Result<Vec<Title>, Vec<String>> {
    let is_changed = |it: &&TitleShape| {
        now.iter().find(|title| title.id == it.id).is_none_or(|title| it.differs_from(title))
    };
    let changed: Vec<String> = after.iter().filter(is_changed).map(|it| it.name.clone()).collect();
    if !changed.is_empty() || before.is_empty() {
        return Err(changed);
    }
    let mut titles: Vec<Title> = before
        .iter()
        .map(|it| Title {
            edits: it.edits.clone(),
            hidden: it.hidden,
            aliases: it.aliases.clone(),
            custom_properties: it.custom_properties.clone(),
            created_at: it.created_at,
            updated_at: at,
            ..Title::new(it.id, it.uuid, at)
        })
        .collect();
    for title in now {
        let own = before.iter().position(|it| it.id == title.id);
        if let Some(own) = own {
            titles[own].completion.clone_from(&title.completion);
        }
        // Where the relations of a title go that did not exist before.
        let first = title.relations.iter().find_map(|it| holder(before, it.id));
        let home = own.or(first).unwrap_or(0);
        for mut relation in title.relations {
            let place = holder(before, relation.id);
            if let Some(shape) =
                place.and_then(|it| before[it].relations.iter().find(|it| it.id == relation.id))
            {
                (relation.reason, relation.is_pinned) = (shape.reason.clone(), shape.is_pinned);
            }
            titles[place.unwrap_or(home)].relations.push(relation);
        }
        let mut aliases = title.aliases;
        if own.is_none() {
            aliases.push(TitleAlias { id: title.id, uuid: title.uuid, relations: Vec::new() });
        }
        // Aliases that were added since, but not those that are titles again.
        let is_known = |titles: &[Title], id| {
            titles.iter().any(|it| it.id == id || it.aliases.iter().any(|it| it.id == id))
        };
        for alias in aliases {
            if !is_known(&titles, alias.id) {
                titles[home].aliases.push(alias);
            }
        }
    }
    Ok(titles)
}

/// Returns the position of the title that has a relation.
fn holder(titles: &[TitleShape], relation: RelationId) -> Option<usize> {
    titles.iter().position(|it| it.relations.iter().any(|it| it.id == relation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{AccountId, VodCategoryId};
    use crate::vod::uuid_of;

    fn title(number: u32, relations: &[u32]) -> Title {
        let id = TitleId::movie(number).unwrap();
        let relation =
            |it: &u32| Relation::new(RelationId(*it), AccountId(2), VodCategoryId(1), it.to_string(), 0);
        Title {
            relations: relations.iter().map(relation).collect(),
            ..Title::new(id, uuid_of(id.key(), u128::from(number) << 64), 0)
        }
    }

    fn shapes(titles: &[Title]) -> Vec<TitleShape> {
        titles.iter().map(TitleShape::from_title).collect()
    }

    #[test]
    fn a_merged_title_leaves_its_id_and_a_split_gives_it_back() {
        let (mut one, mut other) = (title(1, &[10]), title(2, &[20, 21]));
        one.edits.name = Some("One".to_owned());
        other.edits.name = Some("Other".to_owned());
        other.edits.year = Some(1995);
        other.hidden = true;
        let (id, uuid) = (other.id, other.uuid);
        one.absorb(other, &MatchReason::Admin, 5);
        assert_eq!((one.name(), one.year(), one.hidden, one.relations.len()), ("One", Some(1995), true, 3));
        assert_eq!(one.relations[1].reason, MatchReason::Admin);
        assert_eq!((one.aliases[0].id, one.aliases[0].uuid), (id, uuid));
        let unused = (TitleId::movie(9).unwrap(), Uuid::from_u128(9));
        let again = one.split_off(&[RelationId(20), RelationId(21)], unused, 6).unwrap();
        assert_eq!((again.id, again.uuid, again.relations.len()), (id, uuid, 2));
        assert!(again.relations.iter().all(|it| it.is_pinned) && one.aliases.is_empty());
        assert_eq!(one.split_off(&[RelationId(10)], unused, 7), None);
        assert_eq!(one.split_off(&[RelationId(99)], unused, 7), None);
    }

    #[test]
    fn a_merge_is_taken_back_with_the_present_values_and_later_relations() {
        let (one, other) = (title(1, &[10]), title(2, &[20]));
        let before = shapes(&[one.clone(), other.clone()]);
        let mut merged = one;
        merged.absorb(other, &MatchReason::Admin, 5);
        let after = shapes(std::slice::from_ref(&merged));
        // A refresh changes a value and adds a relation.
        merged.relations[1].facts.name = "New".to_owned();
        merged.relations.extend(title(3, &[30]).relations);
        let titles = restored(&before, &after, vec![merged.clone()], 7).unwrap();
        let listed: Vec<_> = titles
            .iter()
            .map(|it| (it.id.number(), it.relations.iter().map(|it| it.id.0).collect::<Vec<_>>()))
            .collect();
        assert_eq!(listed, [(1, vec![10, 30]), (2, vec![20])]);
        assert_eq!((titles[1].name(), &titles[1].relations[0].reason), ("New", &MatchReason::First));
        assert!(titles.iter().all(|it| it.aliases.is_empty()));
        merged.hidden = true;
        assert!(restored(&before, &after, vec![merged], 7).is_err());
        assert!(restored(&before, &after, Vec::new(), 7).is_err());
    }

    #[test]
    fn a_split_is_taken_back_and_the_id_of_the_split_title_stays_valid() {
        let whole = title(1, &[10, 20]);
        let before = shapes(std::slice::from_ref(&whole));
        let mut rest = whole;
        let new = (TitleId::movie(5).unwrap(), Uuid::from_u128(5));
        let off = rest.split_off(&[RelationId(20)], new, 5).unwrap();
        let after = shapes(&[rest.clone(), off.clone()]);
        let titles = restored(&before, &after, vec![rest, off], 6).unwrap();
        assert_eq!((titles.len(), titles[0].relations.len()), (1, 2));
        assert_eq!((titles[0].aliases[0].id, titles[0].aliases[0].uuid), new);
        assert!(!titles[0].relations[1].is_pinned);
    }
}
