//! Names from providers and plugins: markup, right-to-left text and very long names neither break nor change a page.

use serde_json::json;
use storage::plugin_files::testing::{archive, part};

use crate::support::api::Api;
use crate::support::gateway::TestGateway;
use crate::support::web::PASSWORD;
use crate::web_pages::page::Page;

const MARKUP: &str = "<img src=x onerror=alert(1)><script>alert(2)</script>";
/// Ends with characters that turn the direction of everything that follows.
const TURNED: &str = "\u{05d7}\u{05d3}\u{05e9}\u{05d5}\u{05ea}\u{202e}\u{2067}";

/// Scrolls sideways, or has an element that reaches beyond the window.
const SIDEWAYS: &str = "return document.documentElement.scrollWidth > document.documentElement.clientWidth";
/// Elements that only the markup in a name can have made.
const FOREIGN: &str = "return document.querySelectorAll('img[src=x], tbody script, main script').length";
/// Elements of a page that has loaded.
const CONTENT: &str = "return document.querySelectorAll('tbody tr, main form, main .entries li').length";

/// Loads each page, and looks for foreign elements and for what is too wide.
async fn fits(page: &Page, paths: &[&str]) {
    for path in paths {
        page.web.opens(path).await;
        page.until("the page", CONTENT, |it| it.as_u64() > Some(0)).await;
        assert_eq!(page.browser().script(FOREIGN).await, json!(0), "{path}");
        for (width, height) in [(375, 800), (1300, 800)] {
            page.browser().resizes(width, height).await;
            assert_eq!(page.browser().script(SIDEWAYS).await, json!(false), "{path} at {width}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_providers_are_text_in_their_own_direction_and_never_wider_than_the_page() {
    let long = "Long ".repeat(100).trim().to_owned();
    let list = format!(
        "#EXTM3U\n#EXTINF:-1,{MARKUP}\nhttp://127.0.0.1:9/1.ts\n#EXTINF:-1,{TURNED}\nhttp://127.0.0.1:9/2.ts\n\
         #EXTINF:-1,{long}\nhttp://127.0.0.1:9/3.ts\n"
    );
    let gateway = TestGateway::with_list(&list).await;
    let page = Page::open_as_admin(&gateway, "/streams").await;
    page.shows("3 streams").await;
    let names = "return [...document.querySelectorAll('tbody bdi')].map((it) => it.textContent)
        .filter((it) => it.includes('<') || it.includes('Long') || it.includes('\u{05d7}'))";
    let seen = page.until("three names", names, |it| it.as_array().is_some_and(|it| it.len() >= 3)).await;
    let has = |text: &str| {
        seen.as_array().is_some_and(|it| it.iter().any(|it| it.as_str().is_some_and(|it| it.contains(text))))
    };
    assert!(has(MARKUP) && has("\u{05d7}") && has(&long), "{seen}");
    fits(&page, &["/streams", "/streams/1", "/streams/3", "/channels", "/channels/1", "/channels/3"]).await;
}

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn names_of_integrations_and_plugins_are_text_and_never_wider_than_the_page() {
        let gateway = TestGateway::with_list("#EXTM3U\n#EXTINF:-1,One\nhttp://127.0.0.1:9/1.ts\n").await;
        let page = Page::open_as_admin(&gateway, "/plugins?show=install").await;
        let long = "Long".repeat(50);
        let admin = Api::stranger_at(gateway.api).login("anna", PASSWORD).await;
        for name in [MARKUP, &long] {
            let body = json!({ "name": name, "type": "webhook", "url": "http://127.0.0.1:9/hook" });
            let made = admin.post("/api/connect/integrations/", body).await;
            assert_eq!(made.status, 201, "{made:?}");
        }
        let manifest = json!({
            "name": MARKUP, "version": "1", "description": format!("{TURNED} {long}"), "author": long,
            "permissions": {"api": ["channels:read"]},
            "fields": [{"id": "word", "label": long, "type": "string", "default": MARKUP}],
            "actions": [{"id": "go", "label": MARKUP, "description": long, "button_label": long}],
        });
        let manifest = part("loud/plugin.json", manifest.to_string().as_bytes());
        page.chooses_archive(&archive(&[manifest, part("loud/plugin.py", b"")])).await;
        page.presses("Install").await;
        page.shows("Before you enable it").await;
        page.shows(MARKUP).await;
        fits(
            &page,
            &[
                "/integrations",
                "/integrations/1",
                "/integrations/2",
                "/plugins",
                "/plugins/loud",
                "/plugins/loud?tab=actions",
                "/plugins/loud?tab=settings",
            ],
        )
        .await;
    }
}
