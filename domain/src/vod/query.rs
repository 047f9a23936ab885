//! All titles in memory, in columns: for lists, filters, searches and exact counts of more than a hundred thousand.
//!
//! A [`VodSnapshot`] is immutable. It contains only the values by which a list is filtered and sorted; the records of a page
//! are read from the store. With 145,000 titles (names of 25 bytes) it takes about 11 MiB, and 4 bytes per title for each
//! order in use; `benches/vod.rs` measures it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::OnceLock;

use memchr::memmem::Finder;

use super::category::AccountCategory;
use super::title::{Title, TitleId, TitleKind};
use super::visible::{TitleTraits, VodLimits, age_of_rating};
use crate::account::Account;
use crate::ids::{AccountId, VodCategoryId};
use crate::streams::Column;

/// All titles at one moment, by id.
#[derive(Default)]
pub struct VodSnapshot {
    ids: Vec<TitleId>,
    /// In lower case.
    names: Column,
    /// 0 is unknown.
    years: Vec<u16>,
    adult: Vec<bool>,
    hidden: Vec<bool>,
    stale: Vec<bool>,
    /// Positions in `rating_texts`.
    ratings: Vec<u32>,
    /// Ratings in lower case, the first one being none, with their ages.
    rating_texts: Vec<(String, Option<u8>)>,
    created_at: Vec<i64>,
    /// Positions in `places` of the relations of each title: up to its end.
    relations: Vec<u32>,
    relation_ends: Vec<u32>,
    /// Accounts and categories that relations have.
    places: Vec<(AccountId, VodCategoryId)>,
    by_name: OnceLock<Vec<u32>>,
    by_year: OnceLock<Vec<u32>>,
    by_created_at: OnceLock<Vec<u32>>,
}

/// Builds a snapshot. Titles are added in the order of their ids.
#[derive(Default)]
pub struct VodSnapshotBuilder {
    snapshot: VodSnapshot,
    rating_numbers: HashMap<String, u32>,
    place_numbers: HashMap<(AccountId, VodCategoryId), u32>,
}

/// The searchable values of a title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VodRow {
    pub id: TitleId,
    name: String,
    year: u16,
    is_adult: bool,
    hidden: bool,
    is_stale: bool,
    rating: String,
    created_at: i64,
    places: Vec<(AccountId, VodCategoryId)>,
}

impl VodRow {
    pub fn from_title(title: &Title) -> Self {
        Self {
            id: title.id,
            name: title.name().to_lowercase(),
            year: title.year().unwrap_or_default(),
            is_adult: title.is_adult(),
            hidden: title.hidden,
            is_stale: title.is_stale(),
            rating: title.rating().unwrap_or_default().to_lowercase(),
            created_at: title.created_at,
            places: title.relations.iter().map(|it| (it.account, it.category)).collect(),
        }
    }
}

/// The filters and the order of a query. The default returns all titles by id.
#[derive(Debug, Clone, Default)]
pub struct VodQuery {
    pub kind: Option<TitleKind>,
    pub ids: Option<HashSet<TitleId>>,
    /// Matches anywhere in the name and in any case; an empty text matches every name.
    pub name: Option<String>,
    /// Any of these accounts.
    pub accounts: Option<HashSet<AccountId>>,
    /// Any of these categories, in one of those accounts.
    pub categories: Option<HashSet<VodCategoryId>>,
    pub year: Option<u16>,
    pub year_gte: Option<u16>,
    pub year_lte: Option<u16>,
    pub is_adult: Option<bool>,
    pub hidden: Option<bool>,
    pub is_stale: Option<bool>,
    /// The whole rating, in any case.
    pub rating: Option<String>,
    pub order: VodOrder,
    pub descending: bool,
}

/// The order of titles. Equal ones are sorted by id; unknown years come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum VodOrder {
    #[default]
    Id,
    /// Without case.
    Name,
    Year,
    CreatedAt,
}

/// A part of the matching titles, with their total number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VodPage {
    pub count: usize,
    pub ids: Vec<TitleId>,
}

/// The relations that count: those of active accounts whose films and series are wanted, in enabled categories.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VodSources {
    /// Ordered, so that equal ones print the same: entity tags depend on it.
    enabled: BTreeSet<(AccountId, VodCategoryId)>,
}

impl VodSources {
    /// Takes all accounts, and their links with categories.
    pub fn new<'a>(
        accounts: impl IntoIterator<Item = &'a Account>,
        links: impl IntoIterator<Item = &'a AccountCategory>,
    ) -> Self {
        let active: HashSet<AccountId> =
            accounts.into_iter().filter(|it| it.offers_titles()).map(|it| it.id).collect();
        let enabled = links.into_iter().filter(|it| it.enabled && active.contains(&it.account));
        Self { enabled: enabled.map(|it| (it.account, it.category)).collect() }
    }

    /// Returns whether titles that this account offers in this category are listed and played.
    pub fn has(&self, account: AccountId, category: VodCategoryId) -> bool {
        self.enabled.contains(&(account, category))
    }
}

/// Splits the filter `Name|movie` of the interface at its last bar. `None` if the part after it is not a kind.
pub fn split_category(text: &str) -> Option<(&str, TitleKind)> {
    let (name, kind) = text.rsplit_once('|')?;
    Some((name, TitleKind::from_name(kind)?))
}

impl VodSnapshotBuilder {
    /// Begins a snapshot that shares most titles with an earlier one.
    pub fn after(before: &VodSnapshot) -> Self {
        let mut builder = Self::default();
        for (text, _) in &before.rating_texts {
            builder.rating(text);
        }
        for place in &before.places {
            builder.place(*place);
        }
        builder
    }

    /// Adds a title with a larger id than the titles before.
    pub fn add(&mut self, row: VodRow) {
        let rating = self.rating(&row.rating);
        for place in row.places {
            let number = self.place(place);
            self.snapshot.relations.push(number);
        }
        let snapshot = &mut self.snapshot;
        snapshot.relation_ends.push(number(snapshot.relations.len()));
        snapshot.ids.push(row.id);
        snapshot.names.push(&row.name);
        snapshot.years.push(row.year);
        snapshot.adult.push(row.is_adult);
        snapshot.hidden.push(row.hidden);
        snapshot.stale.push(row.is_stale);
        snapshot.ratings.push(rating);
        snapshot.created_at.push(row.created_at);
    }

    /// Adds the titles of the earlier snapshot with ids in a range, which follow those before.
    pub fn keep(&mut self, before: &VodSnapshot, ids: RangeInclusive<TitleId>) {
        let from = before.ids.partition_point(|it| it < ids.start());
        let to = before.ids.partition_point(|it| it <= ids.end());
        let snapshot = &mut self.snapshot;
        snapshot.ids.extend_from_slice(&before.ids[from..to]);
        snapshot.years.extend_from_slice(&before.years[from..to]);
        snapshot.adult.extend_from_slice(&before.adult[from..to]);
        snapshot.hidden.extend_from_slice(&before.hidden[from..to]);
        snapshot.stale.extend_from_slice(&before.stale[from..to]);
        // The numbers of ratings and places are those of the earlier snapshot.
        snapshot.ratings.extend_from_slice(&before.ratings[from..to]);
        snapshot.created_at.extend_from_slice(&before.created_at[from..to]);
        for row in from..to {
            snapshot.names.push_bytes(before.names.get(row));
            snapshot.relations.extend_from_slice(before.places_at(row));
            snapshot.relation_ends.push(number(snapshot.relations.len()));
        }
    }

    pub fn build(mut self) -> VodSnapshot {
        let snapshot = &mut self.snapshot;
        snapshot.ids.shrink_to_fit();
        snapshot.names.shrink_to_fit();
        snapshot.years.shrink_to_fit();
        snapshot.adult.shrink_to_fit();
        snapshot.hidden.shrink_to_fit();
        snapshot.stale.shrink_to_fit();
        snapshot.ratings.shrink_to_fit();
        snapshot.created_at.shrink_to_fit();
        snapshot.relations.shrink_to_fit();
        snapshot.relation_ends.shrink_to_fit();
        self.snapshot
    }

    fn rating(&mut self, text: &str) -> u32 {
        if let Some(known) = self.rating_numbers.get(text) {
            return *known;
        }
        let at = number(self.snapshot.rating_texts.len());
        self.snapshot.rating_texts.push((text.to_owned(), age_of_rating(text)));
        self.rating_numbers.insert(text.to_owned(), at);
        at
    }

    fn place(&mut self, place: (AccountId, VodCategoryId)) -> u32 {
        let places = &mut self.snapshot.places;
        *self.place_numbers.entry(place).or_insert_with(|| {
            places.push(place);
            number(places.len() - 1)
        })
    }
}

/// Converts a position.
fn number(at: usize) -> u32 {
    u32::try_from(at).expect("there are fewer titles and relations than ids")
}

impl VodSnapshot {
    /// Returns the number of titles.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns whether a title exists.
    pub fn has(&self, id: TitleId) -> bool {
        self.ids.binary_search(&id).is_ok()
    }

    /// Returns at most `limit` of the titles that match and that the viewer may see, after the first `offset`. Without
    /// `sources`, all relations count.
    pub fn find(
        &self,
        query: &VodQuery,
        limits: &VodLimits,
        sources: Option<&VodSources>,
        offset: usize,
        limit: usize,
    ) -> VodPage {
        let marks = self.matching(query, limits, sources);
        let count = marks.iter().filter(|it| **it).count();
        if limit == 0 || offset >= count {
            return VodPage { count, ids: Vec::new() };
        }
        let pick = |rows: &mut dyn Iterator<Item = usize>| {
            rows.filter(|row| marks[*row]).skip(offset).take(limit).map(|row| self.ids[row]).collect()
        };
        let ids = match (self.rows_by(query.order), query.descending) {
            (None, false) => pick(&mut (0..self.len())),
            (None, true) => pick(&mut (0..self.len()).rev()),
            (Some(rows), false) => pick(&mut rows.iter().map(|it| *it as usize)),
            (Some(rows), true) => pick(&mut rows.iter().rev().map(|it| *it as usize)),
        };
        VodPage { count, ids }
    }

    /// Returns all titles that match and that the viewer may see, in order.
    pub fn ids(&self, query: &VodQuery, limits: &VodLimits, sources: Option<&VodSources>) -> Vec<TitleId> {
        self.find(query, limits, sources, 0, usize::MAX).ids
    }

    /// Counts the titles of one kind that the viewer may see by category. A title counts once in each of its categories.
    pub fn categories(
        &self,
        kind: TitleKind,
        limits: &VodLimits,
        sources: Option<&VodSources>,
    ) -> HashMap<VodCategoryId, usize> {
        let query = VodQuery { kind: Some(kind), ..VodQuery::default() };
        let marks = self.matching(&query, limits, sources);
        let counts_place = self.counting_places(&query, limits, sources);
        let mut counts = HashMap::new();
        let mut of_row = Vec::new();
        for row in (0..self.len()).filter(|row| marks[*row]) {
            let places = self.places_at(row).iter().map(|it| *it as usize).filter(|it| counts_place[*it]);
            of_row.extend(places.map(|it| self.places[it].1));
            of_row.sort_unstable();
            of_row.dedup();
            of_row.drain(..).for_each(|it| *counts.entry(it).or_default() += 1);
        }
        counts
    }

    /// Returns the memory in bytes, without the allocator's overhead.
    pub fn bytes(&self) -> usize {
        let orders = [&self.by_name, &self.by_year, &self.by_created_at];
        let orders: usize = orders.iter().filter_map(|it| it.get()).map(|it| it.len() * 4).sum();
        let ratings: usize = self.rating_texts.iter().map(|it| size_of_val(it) + it.0.capacity()).sum();
        let row = size_of::<TitleId>() + 2 + 3 + 4 + 8 + 4;
        self.len() * row
            + self.relations.len() * 4
            + self.places.len() * 8
            + self.names.bytes()
            + ratings
            + orders
    }

    fn places_at(&self, row: usize) -> &[u32] {
        let start = row.checked_sub(1).map_or(0, |before| self.relation_ends[before]);
        &self.relations[start as usize..self.relation_ends[row] as usize]
    }

    /// Returns for each place whether its relations count.
    fn counting_places(
        &self,
        query: &VodQuery,
        limits: &VodLimits,
        sources: Option<&VodSources>,
    ) -> Vec<bool> {
        let counts = |(account, category): &(AccountId, VodCategoryId)| {
            sources.is_none_or(|it| it.has(*account, *category))
                && limits.allows_category(*category)
                && query.accounts.as_ref().is_none_or(|it| it.contains(account))
                && query.categories.as_ref().is_none_or(|it| it.contains(category))
        };
        self.places.iter().map(counts).collect()
    }

    /// Marks the rows that match and that the viewer may see.
    fn matching(&self, query: &VodQuery, limits: &VodLimits, sources: Option<&VodSources>) -> Vec<bool> {
        let counts_place = self.counting_places(query, limits, sources);
        let wanted_rating = query.rating.as_ref().map(|it| it.to_lowercase());
        let is_rating: Vec<bool> = self
            .rating_texts
            .iter()
            .map(|it| wanted_rating.as_ref().is_none_or(|wanted| it.0 == *wanted))
            .collect();
        let is_year = |year: u16| {
            query.year.is_none_or(|it| it == year)
                && query.year_gte.is_none_or(|it| year >= it && year != 0)
                && query.year_lte.is_none_or(|it| year <= it && year != 0)
        };
        let is = |wanted: Option<bool>, value: bool| wanted.is_none_or(|it| it == value);
        let mut marks = match query.name.as_deref().filter(|it| !it.is_empty()) {
            None => vec![true; self.len()],
            Some(name) => {
                let mut marks = vec![false; self.len()];
                self.names.mark(&Finder::new(name.to_lowercase().as_bytes()), &mut marks);
                marks
            }
        };
        for (row, mark) in marks.iter_mut().enumerate().filter(|it| *it.1) {
            let (id, rating) = (self.ids[row], self.ratings[row] as usize);
            let traits = TitleTraits {
                kind: id.kind(),
                is_adult: self.adult[row],
                hidden: self.hidden[row],
                age: self.rating_texts[rating].1,
            };
            *mark = query.kind.is_none_or(|it| it == traits.kind)
                && is(query.is_adult, traits.is_adult)
                && is(query.hidden, traits.hidden)
                && is(query.is_stale, self.stale[row])
                && is_year(self.years[row])
                && is_rating[rating]
                && self.places_at(row).iter().any(|it| counts_place[*it as usize])
                && query.ids.as_ref().is_none_or(|it| it.contains(&id))
                && limits.allows(traits);
        }
        marks
    }

    /// Returns all rows in this order. An order is sorted on first use and kept.
    fn rows_by(&self, order: VodOrder) -> Option<&[u32]> {
        let sorted = |key: &dyn Fn(usize) -> i64| {
            let mut rows: Vec<u32> = (0..number(self.len())).collect();
            rows.sort_by_key(|row| key(*row as usize));
            rows
        };
        match order {
            VodOrder::Id => None,
            VodOrder::Name => Some(self.by_name.get_or_init(|| self.names.sorted_rows())),
            VodOrder::Year => Some(self.by_year.get_or_init(|| sorted(&|row| i64::from(self.years[row])))),
            VodOrder::CreatedAt => {
                Some(self.by_created_at.get_or_init(|| sorted(&|row| self.created_at[row])))
            }
        }
    }

    /// Sorts by the orders that were used of an earlier snapshot, so that no query has to wait for it.
    pub fn prepare_like(&self, before: &Self) {
        for (order, used) in [
            (VodOrder::Name, &before.by_name),
            (VodOrder::Year, &before.by_year),
            (VodOrder::CreatedAt, &before.by_created_at),
        ] {
            if used.get().is_some() {
                self.rows_by(order);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::user::{User, UserLevel};
    use crate::vod::{Relation, RelationId, TitleFacts, uuid_of};

    /// Number, is series, name, year, rating, account, category, is adult, is hidden.
    type Parts = (u32, bool, u8, u16, u8, u32, u32, bool, bool);

    fn title(parts: Parts) -> Title {
        let (number, is_series, name, year, rating, account, category, is_adult, hidden) = parts;
        let kind = if is_series { TitleKind::Series } else { TitleKind::Movie };
        let id = TitleId::new(kind, number).unwrap();
        let names = ["Heat", "HEAT 2", "Ronin", "Éa"];
        let ratings = ["", "PG-13", "R", "7.5"];
        let mut relation =
            Relation::new(RelationId(number), AccountId(account), VodCategoryId(category), "", 0);
        relation.facts = TitleFacts {
            name: names[usize::from(name)].to_owned(),
            year: Some(year).filter(|it| *it != 0),
            rating: Some(ratings[usize::from(rating)].to_owned()),
            is_adult,
            ..TitleFacts::default()
        };
        let created_at = i64::from(number % 3);
        Title { relations: vec![relation], hidden, created_at, ..Title::new(id, uuid_of(id.key(), 0), 0) }
    }

    fn parts() -> impl Strategy<Value = Parts> {
        let place = (0u8..4, 1u32..3, 1u32..4, any::<bool>(), any::<bool>());
        (1u32..60, any::<bool>(), 0u8..4, prop_oneof![Just(0u16), 1994u16..1998], place).prop_map(
            |(number, series, name, year, (rating, account, category, adult, hidden))| {
                (number, series, name, year, rating, account, category, adult, hidden)
            },
        )
    }

    fn query() -> impl Strategy<Value = VodQuery> {
        let option = |it: std::ops::Range<u16>| prop::option::weighted(0.2, it);
        let kind = prop::option::of(prop_oneof![Just(TitleKind::Movie), Just(TitleKind::Series)]);
        let name = prop::option::of(prop_oneof![Just(""), Just("heat"), Just("éA"), Just("t 2")]);
        let years = (option(1994..1998), option(1994..1998), option(1994..1998));
        let flags = (prop::option::weighted(0.2, any::<bool>()), prop::option::weighted(0.2, any::<bool>()));
        let places = (prop::option::weighted(0.2, 1u32..3), prop::option::weighted(0.2, 1u32..4));
        let order = prop_oneof![
            Just(VodOrder::Id),
            Just(VodOrder::Name),
            Just(VodOrder::Year),
            Just(VodOrder::CreatedAt)
        ];
        (kind, name, years, flags, places, (order, any::<bool>(), any::<bool>())).prop_map(
            |(kind, name, years, flags, places, (order, descending, rated))| VodQuery {
                kind,
                name: name.map(str::to_owned),
                year: years.0,
                year_gte: years.1,
                year_lte: years.2,
                is_adult: flags.0,
                hidden: flags.1,
                accounts: places.0.map(|it| [AccountId(it)].into()),
                categories: places.1.map(|it| [VodCategoryId(it)].into()),
                rating: rated.then(|| "pg-13".to_owned()),
                order,
                descending,
                ..VodQuery::default()
            },
        )
    }

    /// Finds the same without columns.
    fn naive(titles: &[Title], query: &VodQuery, limits: &VodLimits, sources: &VodSources) -> Vec<TitleId> {
        let name = query.name.clone().unwrap_or_default().to_lowercase();
        let matches = |it: &&Title| {
            let relation = &it.relations[0];
            let year = it.year().unwrap_or(0);
            it.name().to_lowercase().contains(&name)
                && query.kind.is_none_or(|kind| it.id.kind() == kind)
                && query.accounts.as_ref().is_none_or(|all| all.contains(&relation.account))
                && query.categories.as_ref().is_none_or(|all| all.contains(&relation.category))
                && query.year.is_none_or(|wanted| year == wanted)
                && query.year_gte.is_none_or(|wanted| year >= wanted && year > 0)
                && query.year_lte.is_none_or(|wanted| year <= wanted && year > 0)
                && query.is_adult.is_none_or(|wanted| it.is_adult() == wanted)
                && query.hidden.is_none_or(|wanted| it.hidden == wanted)
                && query.rating.as_ref().is_none_or(|_| it.rating() == Some("PG-13"))
                && crate::vod::visible::visible(limits, it, |it| sources.has(it.account, it.category))
        };
        let mut found: Vec<&Title> = titles.iter().filter(matches).collect();
        found.sort_by_key(|it| match query.order {
            VodOrder::Id => (String::new(), 0, it.id),
            VodOrder::Name => (it.name().to_lowercase(), 0, it.id),
            VodOrder::Year => (String::new(), i64::from(it.year().unwrap_or(0)), it.id),
            VodOrder::CreatedAt => (String::new(), it.created_at, it.id),
        });
        if query.descending {
            found.reverse();
        }
        found.iter().map(|it| it.id).collect()
    }

    fn snapshot(titles: &[Title]) -> VodSnapshot {
        let mut builder = VodSnapshotBuilder::default();
        titles.iter().for_each(|it| builder.add(VodRow::from_title(it)));
        builder.build()
    }

    fn viewer(is_kid: bool) -> VodLimits {
        let mut user = User::new(crate::ids::UserId(5), "Kid", UserLevel::Standard, 0);
        user.hide_adult = is_kid;
        VodLimits::from_user(&user)
    }

    #[test]
    fn a_filter_by_category_is_split_at_its_last_bar() {
        for (text, expected) in [
            ("Action|movie", Some(("Action", TitleKind::Movie))),
            ("EN | Action|series", Some(("EN | Action", TitleKind::Series))),
            ("|movie", Some(("", TitleKind::Movie))),
            ("Action", None),
            ("Action|live", None),
        ] {
            assert_eq!(split_category(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn pages_are_what_a_plain_search_finds(
            all in prop::collection::vec(parts(), 0..40),
            later in prop::collection::vec(parts(), 0..10),
            queries in prop::collection::vec((query(), any::<bool>(), 0usize..20, 0usize..20), 1..8),
        ) {
            let by_id = |all: &[Parts]| -> std::collections::BTreeMap<TitleId, Title> {
                all.iter().map(|it| title(*it)).map(|it| (it.id, it)).collect()
            };
            let mut model = by_id(&all);
            let first = snapshot(&model.values().cloned().collect::<Vec<_>>());
            // The lower half is built anew, and the upper one kept.
            let middle = TitleId::from_key(60);
            model.extend(by_id(&later).into_iter().filter(|it| it.0 < middle));
            let mut builder = VodSnapshotBuilder::after(&first);
            model.range(..middle).for_each(|it| builder.add(VodRow::from_title(it.1)));
            builder.keep(&first, middle..=TitleId::from_key(u32::MAX));
            let index = builder.build();
            let titles: Vec<Title> = model.into_values().collect();
            prop_assert_eq!(index.len(), titles.len());
            let sources = VodSources { enabled: [(AccountId(1), VodCategoryId(1)), (AccountId(2), VodCategoryId(2))].into() };
            for (query, is_kid, offset, limit) in queries {
                let limits = viewer(is_kid);
                let expected = naive(&titles, &query, &limits, &sources);
                let page = index.find(&query, &limits, Some(&sources), offset, limit);
                let ids: Vec<TitleId> = expected.iter().skip(offset).take(limit).copied().collect();
                prop_assert_eq!(page, VodPage { count: expected.len(), ids });
                let mut counts = HashMap::new();
                let of_kind = VodQuery { kind: Some(TitleKind::Movie), ..VodQuery::default() };
                for id in naive(&titles, &of_kind, &limits, &sources) {
                    let title = titles.iter().find(|it| it.id == id).unwrap();
                    *counts.entry(title.relations[0].category).or_default() += 1;
                }
                prop_assert_eq!(index.categories(TitleKind::Movie, &limits, Some(&sources)), counts);
            }
        }
    }
}
