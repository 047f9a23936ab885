//! Lists: pages, search and order.

use std::cmp::Reverse;
use std::ops::Range;

use http::StatusCode;
use memchr::memmem::Finder;
use resource_derive::Query;
use route_frame::call::Call;
use route_frame::field::{Field, Kind};
use route_frame::input::{Input, Inputs, RequestInput};
use route_frame::list::is_array;
use route_frame::route::{Answer, AnswerShape, json_reply};
use route_frame::value::{Readable, Shape, not_a_choice};
use serde::Serialize;
use serde_json::Value;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use warp::reply::Response as Reply;

use super::choice::{Choice, choice};
use super::record::{Lookup, Render};

/// Selects a page of a list.
#[derive(Debug, Query)]
struct PageQuery {
    /// Number of the page, starting at 1.
    #[field(at_least = 1, example = "1")]
    page: Option<usize>,
    /// Number of results per page. A larger number than the list allows is reduced to the maximum.
    #[field(at_least = 1, example = "50")]
    page_size: Option<usize>,
}

/// The requested part of a list. `SIZE` is the default number of results per page; with 0 the answer contains the whole
/// list unless the client sends `page` or `page_size`. `MAX` is the maximum number of results per page.
#[derive(Debug)]
pub(crate) struct Paging<const SIZE: usize, const MAX: usize> {
    page: usize,
    /// `None` is the whole list.
    size: Option<usize>,
}

/// Results per page if a client sends `page` without `page_size`, and the list has no default.
const SIZE_IF_ASKED: usize = 50;

/// For lists that are returned whole unless the client requests a page. Suits lists whose records are in memory.
pub(crate) type WholeOrPages = Paging<0, 10_000>;

impl<const SIZE: usize, const MAX: usize> Input for Paging<SIZE, MAX> {
    fn inputs() -> Inputs {
        Inputs { is_paged: true, ..PageQuery::inputs() }
    }

    fn read(input: &RequestInput) -> Result<Self, FieldErrors> {
        let PageQuery { page, page_size } = PageQuery::read(input)?;
        let is_asked_for = page.is_some() || page_size.is_some();
        let default = if SIZE > 0 { Some(SIZE) } else { is_asked_for.then_some(SIZE_IF_ASKED) };
        Ok(Paging { page: page.unwrap_or(1), size: page_size.or(default).map(|it| it.min(MAX)) })
    }
}

impl<const SIZE: usize, const MAX: usize> Paging<SIZE, MAX> {
    /// Returns the offset of the page in the whole list and its maximum length.
    pub(crate) fn window(&self) -> (usize, usize) {
        match self.size {
            Some(size) => ((self.page - 1).saturating_mul(size), size),
            None => (0, usize::MAX),
        }
    }

    /// Returns a page with these results, of a list of `count` entries. A page beyond the end is answered with 404,
    /// except the first one.
    pub(crate) fn envelope<T>(&self, call: &Call, count: usize, results: Vec<T>) -> Result<Page<T>, Refusal> {
        let (next, previous) = neighbours(call, self.page, self.window(), count)?;
        let is_array = is_array(call, self.size.is_some());
        Ok(Page { count, next, previous, results, has_unassigned_epg_channels: None, is_array })
    }

    /// Returns the page of a list whose entries are made already.
    pub(crate) fn page_from<T>(&self, call: &Call, all: Vec<T>) -> Result<Page<T>, Refusal> {
        let (count, (offset, limit)) = (all.len(), self.window());
        self.envelope(call, count, all.into_iter().skip(offset).take(limit).collect())
    }

    /// Returns the page of a list of records. Renders only the records on the page.
    pub(crate) fn render<T: Render>(
        &self,
        call: &Call,
        all: &[impl AsRef<T>],
    ) -> Result<Page<T::View>, Refusal> {
        let lookup = T::Lookup::load(call)?;
        self.render_with(call, all, |it| it.as_ref().view(&lookup))
    }

    /// Returns the page of a list in memory. Calls `view` only for the entries on the page.
    pub(crate) fn render_with<S, T>(
        &self,
        call: &Call,
        all: &[S],
        view: impl FnMut(&S) -> T,
    ) -> Result<Page<T>, Refusal> {
        let (offset, limit) = self.window();
        let window = offset.min(all.len())..offset.saturating_add(limit).min(all.len());
        self.envelope(call, all.len(), on_page(all, window).iter().map(view).collect())
    }
}

/// Returns the URLs of the pages after and before this one. A page beyond the end is answered with 404, except the first one.
fn neighbours(
    call: &Call,
    page: usize,
    (offset, limit): (usize, usize),
    count: usize,
) -> Result<(Option<String>, Option<String>), Refusal> {
    if offset > 0 && offset >= count {
        return Err(Refusal::not_found("Invalid page."));
    }
    let next = (offset.saturating_add(limit) < count).then(|| call.url_of_page(page + 1));
    let previous = (page > 1).then(|| call.url_of_page(page - 1));
    Ok((next, previous))
}

fn on_page<S>(all: &[S], window: Range<usize>) -> &[S] {
    all.get(window).unwrap_or_default()
}

/// A page of a list, or a whole list.
#[derive(Debug, Serialize)]
pub(crate) struct Page<T> {
    /// Length of the whole list.
    pub(crate) count: usize,
    pub(crate) next: Option<String>,
    pub(crate) previous: Option<String>,
    pub(crate) results: Vec<T>,
    /// For channels: whether some of the list have no guide.
    #[serde(skip_serializing_if = "Option::is_none")]
    has_unassigned_epg_channels: Option<bool>,
    /// Whether the answer is the array of the results.
    #[serde(skip)]
    is_array: bool,
}

impl<T> Page<T> {
    /// Says whether some channels of the whole list have no guide.
    pub(crate) fn with_unassigned_guides(mut self, has_unassigned: bool) -> Self {
        self.has_unassigned_epg_channels = Some(has_unassigned);
        self
    }
}

impl<T: Shape + Serialize + 'static> Answer for Page<T> {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::Page(T::KIND);

    fn into_reply(self) -> Reply {
        match self.is_array {
            true => json_reply(Self::STATUS, &self.results),
            false => json_reply(Self::STATUS, &self),
        }
    }
}

/// The order of a list: `ordering=name`, or `ordering=-name` for descending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ordering<O> {
    pub(crate) by: O,
    pub(crate) is_descending: bool,
}

impl<O: Choice> Shape for Ordering<O> {
    const KIND: Kind = Kind::Choice(O::ORDERINGS);
}

impl<O: Choice> Readable for Ordering<O> {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        let text = value.as_str().unwrap_or_default();
        let (name, is_descending) = text.strip_prefix('-').map_or((text, false), |it| (it, true));
        let by = O::from_name(name).ok_or_else(|| not_a_choice(value, O::ORDERINGS))?;
        Ok(Ordering { by, is_descending })
    }
}

impl<O> Ordering<O> {
    pub(crate) fn ascending(by: O) -> Self {
        Ordering { by, is_descending: false }
    }

    /// Sorts by a key, which is computed once per entry. Entries with equal keys keep their order.
    pub(crate) fn sort_by<S, K: Ord>(&self, all: &mut [S], mut key: impl FnMut(&S) -> K) {
        match self.is_descending {
            true => all.sort_by_cached_key(|it| Reverse(key(it))),
            false => all.sort_by_cached_key(key),
        }
    }
}

choice!(
    /// The orders of a list of records with a name.
    enum ByName {
        Id = "id",
        Name = "name",
    }
);

impl Ordering<ByName> {
    /// Sorts by id, or by name regardless of case.
    pub(crate) fn sort<S, K: Ord>(&self, all: &mut [S], id: impl Fn(&S) -> K, name: impl Fn(&S) -> &str) {
        match self.by {
            ByName::Id => self.sort_by(all, id),
            ByName::Name => self.sort_by(all, |it| name(it).to_lowercase()),
        }
    }
}

/// A text to search for, regardless of case.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    /// In lower case.
    text: String,
    /// Finds the text without the preparation that a search for a `str` makes each time.
    finder: Finder<'static>,
}

impl Shape for Search {
    const KIND: Kind = Kind::Text;
}

impl Readable for Search {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        let text = String::read(value, field)?.to_lowercase();
        let finder = Finder::new(text.as_bytes()).into_owned();
        Ok(Search { text, finder })
    }
}

impl Search {
    pub(crate) fn matches(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.text)
    }
}

/// Returns whether one of the texts contains the search text. Without a search text every entry matches.
pub(crate) fn matches<const N: usize>(search: Option<&Search>, texts: [&str; N]) -> bool {
    search.is_none_or(|search| texts.iter().any(|it| search.matches(it)))
}

/// Does the same as [`matches()`] for texts that are in lower case already.
pub(crate) fn contains_lower<const N: usize>(search: Option<&Search>, texts: [&str; N]) -> bool {
    search.is_none_or(|search| texts.iter().any(|it| search.finder.find(it.as_bytes()).is_some()))
}
