//! Filters of lists of films and series.

use std::collections::HashSet;

use domain::ids::{AccountId, VodCategoryId};
use domain::vod::{Title, TitleKind};
use resource_derive::Query;

use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::list::{Ordering, Search};
use crate::rest::frame::value::choice;
use crate::titles::{SeenTitles, numeric_rating, reading};

/// Filters of lists of films and series. A title must match all of them.
#[derive(Debug, Query)]
pub(crate) struct TitleFilters {
    /// Part of the name, regardless of case.
    #[field(chars_max = SEARCH_CHARS_MAX)]
    name: Option<Search>,
    /// Part of the name, the plot or the genre, regardless of case.
    #[field(chars_max = SEARCH_CHARS_MAX)]
    search: Option<Search>,
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
    kinds: &'static [TitleKind],
    filters: TitleFilters,
    categories: Option<HashSet<VodCategoryId>>,
    ids: Option<HashSet<u32>>,
    /// Whether only titles with a picture match.
    has_picture: bool,
    seen: SeenTitles,
}

/// Titles of a page, and the number of all that match.
pub(super) struct Found {
    pub(super) count: usize,
    pub(super) titles: Vec<Title>,
}

impl TitleFilters {
    pub(super) fn wanted(mut self, call: &Call, kinds: &'static [TitleKind]) -> Wanted {
        let categories = self.category.take().map(|it| categories(call, &it));
        let ids = self.ids.take().map(HashSet::from_iter);
        let seen = SeenTitles::of_call(call);
        Wanted { kinds, filters: self, categories, ids, has_picture: false, seen }
    }
}

/// Returns the categories with this id or name.
fn categories(call: &Call, wanted: &str) -> HashSet<VodCategoryId> {
    let categories = call.app.models.vod_categories.load();
    let (name, kind) = match wanted.rsplit_once('|') {
        Some((name, kind)) if TitleKind::of_name(kind).is_some() => (name, TitleKind::of_name(kind)),
        _ => (wanted, None),
    };
    let id = wanted.parse().ok().map(VodCategoryId);
    let is_wanted = |it: &&std::sync::Arc<domain::vod::VodCategory>| {
        id == Some(it.id) || (it.name == name && kind.is_none_or(|kind| kind == it.kind))
    };
    categories.iter().filter(is_wanted).map(|it| it.id).collect()
}

impl Wanted {
    pub(super) fn with_picture(self) -> Self {
        Self { has_picture: true, ..self }
    }

    /// Returns the titles of a window.
    pub(super) async fn find(self, call: &Call, offset: usize, limit: usize) -> Result<Found, Refusal> {
        let titles = call.app.models.vod.clone();
        reading(move || {
            let mut found = Vec::new();
            titles.for_each(|it| {
                if self.matches(&it) {
                    found.push(it);
                }
            })?;
            let ordering = self.filters.ordering.unwrap_or(Ordering::ascending(By::Name));
            sort(&mut found, ordering);
            let count = found.len();
            Ok(Found { count, titles: found.into_iter().skip(offset).take(limit).collect() })
        })
        .await
    }

    fn matches(&self, title: &Title) -> bool {
        let filters = &self.filters;
        let texts =
            [title.name(), title.description().unwrap_or_default(), title.genre().unwrap_or_default()];
        let rating = || numeric_rating(title.rating());
        self.kinds.contains(&title.id.kind())
            && self.seen.lists(title)
            && self.ids.as_ref().is_none_or(|it| it.contains(&title.id.number()))
            && filters.year.is_none_or(|it| title.year() == Some(it))
            && filters.year_gte.is_none_or(|it| title.year().is_some_and(|year| year >= it))
            && filters.year_lte.is_none_or(|it| title.year().is_some_and(|year| year <= it))
            && filters.rating.as_deref().is_none_or(|it| title.rating() == Some(it))
            && filters.rating_gte.is_none_or(|it| rating().is_some_and(|rating| rating >= it))
            && filters.rating_lte.is_none_or(|it| rating().is_some_and(|rating| rating <= it))
            && filters.is_adult.is_none_or(|it| title.is_adult() == it)
            && filters.hidden.is_none_or(|it| title.hidden == it)
            && filters.is_stale.is_none_or(|it| title.is_stale() == it)
            && (!self.has_picture || title.logo().is_some())
            && self.has_relation(title)
            && filters.name.as_ref().is_none_or(|it| it.matches(title.name()))
            && filters.genre.as_ref().is_none_or(|it| it.matches(title.genre().unwrap_or_default()))
            && filters.search.as_ref().is_none_or(|it| texts.iter().any(|text| it.matches(text)))
    }

    /// Returns whether one relation has the account and the category.
    fn has_relation(&self, title: &Title) -> bool {
        let accounts = self.filters.m3u_account.as_ref();
        if accounts.is_none() && self.categories.is_none() {
            return true;
        }
        self.seen.relations(title).any(|it| {
            accounts.is_none_or(|accounts| accounts.contains(&it.account))
                && self.categories.as_ref().is_none_or(|categories| categories.contains(&it.category))
        })
    }
}

fn sort(titles: &mut [Title], ordering: Ordering<By>) {
    titles.sort_by_key(|it| it.id);
    match ordering.by {
        By::Id => ordering.sort_by(titles, |it| (it.id.number(), it.id)),
        By::Name => ordering.sort_by(titles, |it| it.name().to_lowercase()),
        By::Year => ordering.sort_by(titles, Title::year),
        // Ratings have few decimals.
        By::Rating => ordering.sort_by(titles, |it| numeric_rating(it.rating()).map(|it| (it * 1e6) as u64)),
        By::CreatedAt => ordering.sort_by(titles, |it| it.created_at),
        By::UpdatedAt => ordering.sort_by(titles, |it| it.updated_at),
    }
}
