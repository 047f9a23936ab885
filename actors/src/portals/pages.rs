//! Lists that a portal sends by page: one page after the other, as many as the first one says.

use std::time::Duration;

use domain::portal::{PortalError, PortalQuestion};
use serde_json::Value;
use tokio::time::sleep;

use super::client::{PortalClient, PortalFailure};

/// Pause between two pages. Portals block devices that ask as fast as they can.
pub(crate) const PAGE_PAUSE: Duration = Duration::from_millis(200);
/// Pause before a page that failed is asked for again, once.
const PAGE_RETRY: Duration = Duration::from_secs(2);
/// Consecutive pages without a new item after which a portal has no more.
const BARREN_PAGES_MAX: u32 = 3;
/// The same for a portal that says how many items it has: pages may lose all of their items to the portal's own filters,
/// and channels for adults often follow each other.
const BARREN_PAGES_MAX_OF_TOTAL: u32 = 50;
/// Items of a page, if the portal does not say.
const PAGE_USUAL: u64 = 14;

/// The pages of one list.
pub(crate) struct Pages<'a> {
    client: &'a PortalClient,
    items_max: u64,
    /// The next page, from 1, and the number of pages.
    page: u32,
    n_pages: u32,
    n_barren: u32,
    n_barren_max: u32,
}

impl<'a> Pages<'a> {
    /// Begins a list of which at most this many items are wanted.
    pub(crate) fn new(client: &'a PortalClient, items_max: u64) -> Self {
        Self { client, items_max, page: 1, n_pages: 1, n_barren: 0, n_barren_max: BARREN_PAGES_MAX }
    }

    /// Asks for the next page; `None` after the last one.
    ///
    /// # Errors
    /// There is no answer, or a later page is something else: what is missing from a list would count as removed.
    pub(crate) async fn next<'q>(
        &mut self,
        question: impl Fn(u32) -> PortalQuestion<'q>,
    ) -> Result<Option<Value>, PortalFailure> {
        if self.page > self.n_pages || self.n_barren >= self.n_barren_max {
            return Ok(None);
        }
        if self.page > 1 {
            sleep(PAGE_PAUSE).await;
        }
        let question = question(self.page);
        let js = match self.client.ask(&question).await {
            Err(failure) if failure.is_temporary() => {
                sleep(PAGE_RETRY).await;
                self.client.ask(&question).await?
            }
            asked => asked?,
        };
        if self.page > 1 && !is_page(&js) {
            return Err(PortalFailure::Portal(PortalError::Nothing));
        }
        if self.page == 1 {
            self.n_pages = pages_of(&js, items_of(&js).count() as u64, self.items_max);
            if number_in(&js, "total_items").is_some() {
                self.n_barren_max = BARREN_PAGES_MAX_OF_TOTAL;
            }
        }
        self.page += 1;
        Ok(Some(js))
    }

    /// Notes how many items of the last page were new.
    pub(crate) fn read(&mut self, n_new: u64) {
        self.n_barren = if n_new == 0 { self.n_barren + 1 } else { 0 };
    }
}

/// Iterates over the items of a page.
pub(crate) fn items_of(js: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    let data = js.get("data");
    match data.unwrap_or(js) {
        Value::Array(list) => Box::new(list.iter()),
        Value::Object(map) if data.is_some() => Box::new(map.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Returns the number of pages that a list has, by its first page with this many items. A portal that does not say how many
/// items it has is asked until pages have none.
fn pages_of(first: &Value, n_listed: u64, items_max: u64) -> u32 {
    let of_page =
        number_in(first, "max_page_items").unwrap_or(if n_listed > 0 { n_listed } else { PAGE_USUAL });
    let total = match number_in(first, "total_items") {
        Some(total) => total.min(items_max),
        None if n_listed == 0 => 0,
        None => items_max,
    };
    u32::try_from(total.div_ceil(of_page)).unwrap_or(u32::MAX)
}

/// Returns a number of a page. 0 says nothing.
fn number_in(page: &Value, name: &str) -> Option<u64> {
    let value = page.get(name)?;
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|it| *it > 0)
}

/// Returns whether an answer is a page, which may be empty.
fn is_page(js: &Value) -> bool {
    js.is_array() || js.get("data").is_some_and(|it| it.is_array() || it.is_object())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_may_be_empty_but_not_be_something_else() {
        for page in [json!([]), json!([{}]), json!({ "data": [] }), json!({ "data": {} })] {
            assert!(is_page(&page), "{page}");
        }
        for other in [json!(false), json!(null), json!({}), json!("text"), json!({ "data": false })] {
            assert!(!is_page(&other), "{other}");
        }
    }

    #[test]
    fn the_number_of_pages_follows_from_the_first_one_and_is_bounded() {
        for (js, n_listed, expected) in [
            (json!({ "total_items": 30, "max_page_items": 14 }), 14, 3),
            (json!({ "total_items": "28", "max_page_items": "14" }), 14, 2),
            (json!({ "total_items": 30 }), 10, 3),
            (json!({ "total_items": 30 }), 0, 3),
            (json!({ "total_items": u64::MAX, "max_page_items": 1 }), 1, 1000),
            (json!({ "total_items": 0, "max_page_items": 14 }), 5, 72),
            (json!({ "max_page_items": 14 }), 0, 0),
            (json!({}), 0, 0),
            (json!([]), 10, 100),
            (json!(false), 0, 0),
        ] {
            assert_eq!(pages_of(&js, n_listed, 1000), expected, "{js}");
        }
    }
}
