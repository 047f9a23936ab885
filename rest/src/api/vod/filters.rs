//! Filters of lists of films and series.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::ids::{AccountId, VodCategoryId};
use domain::vod::query::{VodOrder, VodQuery, split_category};
use domain::vod::{Title, TitleId, TitleKind, VodCategory};
use resource_derive::Query;
use route_frame::call::Call;
use route_frame::filter::read_filter;
use serde_json::{Map, Value};
use server::reply::Refusal;
use services::titles::{SeenTitles, numeric_rating, reading};
use storage::VodTitles;

use crate::choice::choice;
use crate::context::RestCall;
use crate::list::{Ordering, Search};

/// Filters of lists of films and series. A title must match all of them.
#[derive(Debug, Query)]
pub(crate) struct TitleFilters {
    /// Part of the name, regardless of case.
    #[field(chars_max = SEARCH_CHARS_MAX)]
    name: Option<String>,
    /// Same as `name`.
    #[field(chars_max = SEARCH_CHARS_MAX)]
    search: Option<String>,
    /// Ids of playlist accounts, separated by commas.
    #[field(items_max = 1000)]
    m3u_account: Option<Vec<AccountId>>,
    /// Id of a category, or its name. `Name|movie` and `Name|series` name the kind too.
    #[field(example = "Drama|movie")]
    category: Option<String>,
    /// Year of release.
    year: Option<u16>,
    /// Earliest year of release.
    year_gte: Option<u16>,
    /// Latest year of release.
    year_lte: Option<u16>,
    /// The rating, such as `PG-13` or `7.5`.
    rating: Option<String>,
    /// Lowest rating, for ratings that are numbers.
    rating_gte: Option<f64>,
    /// Highest rating, for ratings that are numbers.
    rating_lte: Option<f64>,
    /// Part of the genre, regardless of case.
    #[field(chars_max = SEARCH_CHARS_MAX)]
    genre: Option<Search>,
    /// Whether the title is adult content.
    is_adult: Option<bool>,
    /// Whether the title is hidden. Only admins see hidden titles.
    hidden: Option<bool>,
    /// Whether no account lists the title any longer.
    is_stale: Option<bool>,
    /// Ids of titles, separated by commas.
    #[field(items_max = 10_000)]
    ids: Option<Vec<u32>>,
    /// Order of the list; by name by default.
    ordering: Option<Ordering<By>>,
}

/// Maximum length of a searched text, in characters.
const SEARCH_CHARS_MAX: usize = 255;

choice!(
    enum By {
        Name = "name",
        Year = "year",
        Rating = "rating",
        CreatedAt = "created_at",
        UpdatedAt = "updated_at",
        Id = "id",
    }
);

/// The kinds of titles of a list, and what they must match.
pub(super) struct Wanted {
    query: VodQuery,
    /// Filters of values that the index does not contain. The records are read for them.
    records: RecordFilters,
    seen: SeenTitles,
}

/// Filters and orders that need the records of titles.
#[derive(Default)]
struct RecordFilters {
    genre: Option<Search>,
    rating_gte: Option<f64>,
    rating_lte: Option<f64>,
    /// Whether only titles with a picture match.
    has_picture: bool,
    order: Option<RecordOrder>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RecordOrder {
    Rating,
    UpdatedAt,
}

/// Titles of a page, and the number of all that match.
pub(super) struct TitlesFound {
    pub(super) count: usize,
    pub(super) titles: Vec<Title>,
}

impl TitleFilters {
    pub(super) fn wanted(self, call: &Call, kinds: &'static [TitleKind]) -> Wanted {
        let categories = self.category.as_deref().map(|it| categories(call, it));
        let title_ids = |id: u32| kinds.iter().filter_map(move |kind| TitleId::new(*kind, id));
        let ordering = self.ordering.unwrap_or(Ordering::ascending(By::Name));
        let (order, of_records) = match ordering.by {
            By::Name => (VodOrder::Name, None),
            By::Year => (VodOrder::Year, None),
            By::CreatedAt => (VodOrder::CreatedAt, None),
            By::Id => (VodOrder::Id, None),
            By::Rating => (VodOrder::Id, Some(RecordOrder::Rating)),
            By::UpdatedAt => (VodOrder::Id, Some(RecordOrder::UpdatedAt)),
        };
        // Clients send one of both.
        let name = match (self.name, self.search) {
            (Some(name), Some(search)) if search.len() > name.len() => Some(search),
            (name, search) => name.or(search),
        };
        let query = VodQuery {
            kind: match kinds {
                [kind] => Some(*kind),
                _ => None,
            },
            ids: self.ids.map(|it| it.into_iter().flat_map(title_ids).collect()),
            name,
            accounts: self.m3u_account.map(HashSet::from_iter),
            categories,
            year: self.year,
            year_gte: self.year_gte,
            year_lte: self.year_lte,
            is_adult: self.is_adult,
            hidden: self.hidden,
            is_stale: self.is_stale,
            rating: self.rating,
            order,
            descending: ordering.is_descending,
        };
        let records = RecordFilters {
            genre: self.genre,
            rating_gte: self.rating_gte,
            rating_lte: self.rating_lte,
            has_picture: false,
            order: of_records,
        };
        Wanted { query, records, seen: call.seen_titles() }
    }
}

/// Returns the categories with this id or name.
fn categories(call: &Call, wanted: &str) -> HashSet<VodCategoryId> {
    let categories = call.rest().models.vod_categories.load();
    let (name, kind) = split_category(wanted).map_or((wanted, None), |(name, kind)| (name, Some(kind)));
    let id = wanted.parse().ok().map(VodCategoryId);
    let is_wanted = |it: &&Arc<VodCategory>| {
        id == Some(it.id) || (it.name == name && kind.is_none_or(|kind| kind == it.kind))
    };
    categories.iter().filter(is_wanted).map(|it| it.id).collect()
}

/// Returns the ids of all titles that match filters of the list, in its order, for operations on all of them.
pub(super) async fn select(
    call: &Call,
    kinds: &'static [TitleKind],
    filter: &Map<String, Value>,
) -> Result<Vec<TitleId>, Refusal> {
    let wanted = read_filter::<TitleFilters>(filter)?.wanted(call, kinds);
    wanted.ids(call).await
}

impl Wanted {
    pub(super) fn with_picture(mut self) -> Self {
        self.records.has_picture = true;
        self
    }

    /// Returns the ids of all titles that match.
    async fn ids(self, call: &Call) -> Result<Vec<TitleId>, Refusal> {
        let index = call.rest().imports.titles.index().await?;
        let titles = call.rest().models.vod.clone();
        reading(move || {
            let ids = index.ids(&self.query, &self.seen.limits, self.seen.listed_sources());
            match self.records.is_empty() {
                true => Ok(ids),
                false => {
                    Ok(self.records.find(&titles, ids, &self.query)?.into_iter().map(|it| it.id).collect())
                }
            }
        })
        .await
    }

    /// Returns the titles of a window.
    pub(super) async fn find(self, call: &Call, offset: usize, limit: usize) -> Result<TitlesFound, Refusal> {
        let index = call.rest().imports.titles.index().await?;
        let titles = call.rest().models.vod.clone();
        reading(move || {
            let (limits, sources) = (&self.seen.limits, self.seen.listed_sources());
            if self.records.is_empty() {
                let page = index.find(&self.query, limits, sources, offset, limit);
                let mut found = Vec::with_capacity(page.ids.len());
                for id in page.ids {
                    found.extend(titles.get(id)?);
                }
                return Ok(TitlesFound { count: page.count, titles: found });
            }
            let ids = index.ids(&self.query, limits, sources);
            let found = self.records.find(&titles, ids, &self.query)?;
            let count = found.len();
            Ok(TitlesFound { count, titles: found.into_iter().skip(offset).take(limit).collect() })
        })
        .await
    }
}

impl RecordFilters {
    fn is_empty(&self) -> bool {
        self.genre.is_none()
            && self.rating_gte.is_none()
            && self.rating_lte.is_none()
            && !self.has_picture
            && self.order.is_none()
    }

    /// Reads the titles with these ids, and returns those that match, in order.
    fn find(
        &self,
        titles: &VodTitles,
        ids: Vec<TitleId>,
        query: &VodQuery,
    ) -> Result<Vec<Title>, storage::Error> {
        let places: HashMap<TitleId, usize> = ids.into_iter().zip(0..).collect();
        let mut found = Vec::new();
        // In the order of the store, where neighbours are in one block.
        titles.for_each(|title| {
            if let Some(place) = places.get(&title.id)
                && self.matches(&title)
            {
                found.push((*place, title));
            }
        })?;
        found.sort_by_key(|it| it.0);
        let mut found: Vec<Title> = found.into_iter().map(|it| it.1).collect();
        if let Some(order) = self.order {
            let ordering = Ordering { by: order, is_descending: query.descending };
            match order {
                // Ratings have few decimals.
                RecordOrder::Rating => {
                    ordering
                        .sort_by(&mut found, |it| numeric_rating(it.rating()).map(|it| (it * 1e6) as u64));
                }
                RecordOrder::UpdatedAt => ordering.sort_by(&mut found, |it| it.updated_at),
            }
        }
        Ok(found)
    }

    fn matches(&self, title: &Title) -> bool {
        let rating = || numeric_rating(title.rating());
        (!self.has_picture || title.logo().is_some())
            && self.rating_gte.is_none_or(|it| rating().is_some_and(|rating| rating >= it))
            && self.rating_lte.is_none_or(|it| rating().is_some_and(|rating| rating <= it))
            && self.genre.as_ref().is_none_or(|it| it.matches(title.genre().unwrap_or_default()))
    }
}
