//! A list of many streams: rows in the page and requests stay few, whatever is done with it.

use std::fmt::Write as _;

use serde_json::json;

use crate::support::gateway::TestGateway;
use crate::web_pages::page::Page;

/// Streams with the same guide id form a channel, so that the gateway does not have half a million channels as well.
const STREAMS_OF_A_CHANNEL: usize = 500;
/// Rows in the page: those in view and a few beyond.
const ROWS_MAX: u64 = 60;
/// Pages that one jump of the scroll bar requests.
const REQUESTS_MAX: u64 = 3;

const ROWS: &str = "return document.querySelectorAll('tbody tr').length";
/// Number of requests for pages of the list since the last call.
const REQUESTS: &str = "
    const all = performance.getEntriesByType('resource').filter((it) => it.name.includes('/api/channels/streams/?'));
    performance.clearResourceTimings();
    return all.length";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_streams_need_few_rows_and_few_requests() {
    need_few_rows_and_few_requests(20_000).await;
}

mod night {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn half_a_million_streams_need_few_rows_and_few_requests() {
        super::need_few_rows_and_few_requests(500_000).await;
    }
}

/// Writes a number as the page does.
fn shown(number: usize) -> String {
    format!("{},{:03}", number / 1_000, number % 1_000)
}

/// The number of streams is a multiple of a thousand.
async fn need_few_rows_and_few_requests(n_streams: usize) {
    let mut list = "#EXTM3U\n".to_owned();
    for n in 0..n_streams {
        let (group, channel) = (n % 100, n / STREAMS_OF_A_CHANNEL);
        writeln!(
            list,
            "#EXTINF:-1 tvg-id=\"c{channel}\" group-title=\"Group {group}\",Stream {n}\nhttp://127.0.0.1:9/{n}.ts"
        )
        .unwrap();
    }
    let gateway = TestGateway::with_list(&list).await;
    drop(list);
    let page = Page::open_as_admin(&gateway, "/streams").await;
    page.shows(&format!("{} streams", shown(n_streams))).await;
    page.until("rows", ROWS, |it| it.as_u64() > Some(0)).await;
    let first = page.browser().script(REQUESTS).await;
    assert!(first.as_u64() <= Some(REQUESTS_MAX), "{first} requests at the start");

    for (place, at) in [("0.5", n_streams / 2), ("1", n_streams - 1), ("0", 0)] {
        let jump = format!(
            "const it = document.querySelector('table[aria-label=Streams]').parentElement;
             it.scrollTop = {place} * (it.scrollHeight - it.clientHeight)"
        );
        page.browser().script(&jump).await;
        page.shows(&format!("Stream {at}")).await;
        let rows = page.browser().script(ROWS).await;
        assert!(rows.as_u64() <= Some(ROWS_MAX), "{rows} rows at {place}");
        let requests = page.browser().script(REQUESTS).await;
        assert!(requests.as_u64() <= Some(REQUESTS_MAX), "{requests} requests for a jump to {place}");
    }

    // The element is lower than browsers allow, and its last row is the last stream.
    let height =
        page.browser().script("return document.querySelector('table').getBoundingClientRect().height").await;
    assert!(height.as_f64() < Some(17_895_697.0), "{height}");

    // The filter counts exactly, and "all" means the matching ones.
    page.fills("Search streams", "Stream 1999").await;
    let n_found = (0..n_streams).filter(|it| it.to_string().starts_with("1999")).count();
    page.shows(&format!("{n_found} streams")).await;
    page.selects("Streams", 1).await;
    page.presses(&format!("Select all {n_found}")).await;
    page.shows(&format!("{n_found} selected")).await;
    page.presses(&format!("Delete {n_found} streams")).await;
    page.clicks("dialog button", &format!("Delete {n_found} streams")).await;
    page.shows(&format!("Deleted {n_found} streams.")).await;
    page.until_is("the rest", "return location.search", json!("?sq=Stream+1999")).await;
    page.presses("Clear filters").await;
    page.shows(&format!("{} streams", shown(n_streams - n_found))).await;
}
