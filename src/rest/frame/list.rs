//! Lists: their envelope, their pages and their order.

use std::ops::Range;

use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use warp::reply::Response as Reply;

use super::call::Call;
use super::field::{Field, Kind};
use super::input::{FieldErrors, Given, Input, Inputs};
use super::record::query;
use super::route::{Answer, AnswerShape, shown};
use super::value::{Choice, Readable, Shape, not_a_choice};
use crate::http::reply::Refusal;

query! {
    /// Which page of a list.
    PageQuery {
        /// Number of the page; the first is 1.
        page: usize [at_least(1), example("1")],
        /// Entries of a page. More than the list allows is as much as it allows.
        page_size: usize [at_least(1), example("50")],
    }
}

/// Which part of a list is wanted. `SIZE` are the entries of a page when nobody says; 0 is: everything on one page,
/// as long as neither `page` nor `page_size` is asked for. `MAX` are those of a page at most.
#[derive(Debug)]
pub(crate) struct Paging<const SIZE: usize, const MAX: usize> {
    page: usize,
    /// `None` is everything.
    size: Option<usize>,
}

/// Entries of a page, where one asks for a page and not for its size, and the list has no size of its own.
const SIZE_IF_ASKED: usize = 50;

/// For lists that come whole unless a page is asked for. What is shown of a whole list is in memory already.
pub(crate) type WholeOrPages = Paging<0, 10_000>;

impl<const SIZE: usize, const MAX: usize> Input for Paging<SIZE, MAX> {
    fn inputs() -> Inputs {
        Inputs { is_paged: true, ..PageQuery::inputs() }
    }

    fn read(given: &Given) -> Result<Self, FieldErrors> {
        let PageQuery { page, page_size } = PageQuery::read(given)?;
        let is_asked_for = page.is_some() || page_size.is_some();
        let default = if SIZE > 0 { Some(SIZE) } else { is_asked_for.then_some(SIZE_IF_ASKED) };
        Ok(Paging { page: page.unwrap_or(1), size: page_size.or(default).map(|it| it.min(MAX)) })
    }
}

impl<const SIZE: usize, const MAX: usize> Paging<SIZE, MAX> {
    /// Where the page begins in the whole list, and how many entries it has at most.
    pub(crate) fn window(&self) -> (usize, usize) {
        match self.size {
            Some(size) => ((self.page - 1).saturating_mul(size), size),
            None => (0, usize::MAX),
        }
    }

    /// The envelope around the entries of this window, of a list of `count`. A page beyond the end is a 404; the
    /// first page is never beyond it.
    pub(crate) fn envelope<T>(&self, call: &Call, count: usize, results: Vec<T>) -> Result<Page<T>, Refusal> {
        let (offset, limit) = self.window();
        if offset > 0 && offset >= count {
            return Err(Refusal::not_found("Invalid page."));
        }
        let end = offset.saturating_add(limit);
        let next = (end < count).then(|| call.url_of_page(self.page + 1));
        let previous = (self.page > 1).then(|| call.url_of_page(self.page - 1));
        Ok(Page { count, next, previous, results })
    }

    /// The page of a list that is in memory. Only what is on it is made into what is shown.
    pub(crate) fn of<S, T>(
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

fn on_page<S>(all: &[S], window: Range<usize>) -> &[S] {
    all.get(window).unwrap_or_default()
}

/// The envelope of lists.
#[derive(Debug, Serialize)]
pub(crate) struct Page<T> {
    /// Of the whole list.
    pub(crate) count: usize,
    pub(crate) next: Option<String>,
    pub(crate) previous: Option<String>,
    pub(crate) results: Vec<T>,
}

impl<T: Shape + Serialize + 'static> Answer for Page<T> {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::Page(T::KIND);

    fn into_reply(self) -> Reply {
        shown(Self::STATUS, &self)
    }
}

/// By what a list is sorted: `ordering=name`, or `ordering=-name` for the other way round.
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
        let by = O::of(name).ok_or_else(|| not_a_choice(value, O::ORDERINGS))?;
        Ok(Ordering { by, is_descending })
    }
}

impl<O> Ordering<O> {
    /// Sorts by a key; what has the same key stays as it was.
    pub(crate) fn sort_by<S, K: Ord>(&self, all: &mut [S], mut key: impl FnMut(&S) -> K) {
        all.sort_by(|a, b| {
            let order = key(a).cmp(&key(b));
            if self.is_descending { order.reverse() } else { order }
        });
    }
}
