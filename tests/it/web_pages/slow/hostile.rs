//! Names from providers: markup, right-to-left text and very long names neither break nor change a page.

use serde_json::json;

use crate::support::gateway::TestGateway;
use crate::web_pages::page::Page;

const MARKUP: &str = "<img src=x onerror=alert(1)><script>alert(2)</script>";
/// Ends with characters that turn the direction of everything that follows.
const TURNED: &str = "\u{05d7}\u{05d3}\u{05e9}\u{05d5}\u{05ea}\u{202e}\u{2067}";

/// Scrolls sideways, or has an element that reaches beyond the window.
const SIDEWAYS: &str = "return document.documentElement.scrollWidth > document.documentElement.clientWidth";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_providers_are_text_in_their_own_direction_and_never_wider_than_the_page() {
    let long = "Long ".repeat(100).trim().to_owned();
    let list = format!(
        "#EXTM3U\n#EXTINF:-1,{MARKUP}\nhttp://127.0.0.1:9/1.ts\n#EXTINF:-1,{TURNED}\nhttp://127.0.0.1:9/2.ts\n\
         #EXTINF:-1,{long}\nhttp://127.0.0.1:9/3.ts\n"
    );
    let gateway = TestGateway::of(&list).await;
    let page = Page::of_admin(&gateway, "/streams").await;
    page.shows("3 streams").await;
    let names = "return [...document.querySelectorAll('tbody bdi')].map((it) => it.textContent)
        .filter((it) => it.includes('<') || it.includes('Long') || it.includes('\u{05d7}'))";
    let seen = page.until("three names", names, |it| it.as_array().is_some_and(|it| it.len() >= 3)).await;
    let has = |text: &str| {
        seen.as_array().is_some_and(|it| it.iter().any(|it| it.as_str().is_some_and(|it| it.contains(text))))
    };
    assert!(has(MARKUP) && has("\u{05d7}") && has(&long), "{seen}");
    let foreign = "return document.querySelectorAll('img[src=x], tbody script').length";
    assert_eq!(page.browser().script(foreign).await, json!(0));

    for path in ["/streams", "/streams/1", "/streams/3", "/channels", "/channels/1", "/channels/3"] {
        page.web.opens(path).await;
        page.until("the page", "return document.querySelectorAll('tbody tr').length", |it| {
            it.as_u64() > Some(0)
        })
        .await;
        for (width, height) in [(375, 800), (1300, 800)] {
            page.browser().resizes(width, height).await;
            assert_eq!(page.browser().script(SIDEWAYS).await, json!(false), "{path} at {width}");
        }
    }
}
