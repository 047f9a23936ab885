//! The pages by keyboard alone.

use serde_json::json;

use crate::support::gateway::TestGateway;
use crate::web_pages::page::Page;

const TAB: &str = "\u{e004}";
const SHIFT: &str = "\u{e008}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const SPACE: &str = " ";
const DOWN: &str = "\u{e015}";
const END: &str = "\u{e010}";
const LEFT: &str = "\u{e012}";
/// Most presses of Tab from the top of a page to anything on it.
const TABS_MAX: usize = 60;

/// Presses Tab until the element with this name has the focus.
async fn tab_to(page: &Page, name: &str) {
    for _ in 0..TABS_MAX {
        if page.focused().await == name {
            return;
        }
        page.types_keys(TAB).await;
    }
    panic!("Tab does not reach {name:?}; the focus is on {:?}", page.focused().await);
}

/// Presses Shift and Tab until the element with this name has the focus.
async fn tab_to_back(page: &Page, name: &str) {
    for _ in 0..TABS_MAX {
        if page.focused().await == name {
            return;
        }
        page.browser().presses_with(SHIFT, TAB).await;
    }
    panic!("Shift and Tab do not reach {name:?}");
}

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_channel_is_found_selected_renamed_and_opened_by_keyboard() {
        let list = "#EXTM3U\n#EXTINF:-1,One\nhttp://127.0.0.1:9/1.ts\n#EXTINF:-1,Two\nhttp://127.0.0.1:9/2.ts\n\
                #EXTINF:-1,Three\nhttp://127.0.0.1:9/3.ts\n";
        let gateway = TestGateway::with_list(list).await;
        let page = Page::open_as_admin(&gateway, "/channels").await;
        page.lists("Channels", 3, &["One", "Two", "Three"]).await;

        tab_to(&page, "Search channels").await;
        page.types_keys("t").await;
        page.lists("Channels", 3, &["Two", "Three"]).await;

        // In the list, arrow keys move and Space selects.
        tab_to(&page, "Channels").await;
        page.types_keys(END).await;
        page.types_keys(SPACE).await;
        page.shows("1 selected").await;
        tab_to_back(&page, "Rename").await;
        page.types_keys(ENTER).await;
        page.until("a dialog", "return !!document.querySelector('dialog[open]')", |it| *it == json!(true))
            .await;
        tab_to(&page, "Find (regular expression)").await;
        page.types_keys("Three").await;
        tab_to(&page, "Replace by").await;
        page.types_keys("Tree").await;
        page.types_keys(ENTER).await;
        page.lists("Channels", 3, &["Two", "Tree"]).await;

        // Enter opens the row, Escape closes it, and the focus returns to the list.
        let focus = "document.querySelector('[aria-label=Channels][tabindex=\"0\"]').focus()";
        page.browser().script(focus).await;
        page.types_keys(DOWN).await;
        page.types_keys(ENTER).await;
        page.until("the editor", "return location.pathname", |it| {
            it.as_str().is_some_and(|it| it.starts_with("/channels/"))
        })
        .await;
        page.types_keys(ESCAPE).await;
        page.until_is("the list alone", "return location.pathname", json!("/channels")).await;
        let inside = "return !!document.activeElement.closest('[aria-label=Channels][tabindex]')";
        page.until_is("the focus in the list", inside, json!(true)).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_integration_is_made_and_a_plugin_asked_for_by_keyboard() {
        let gateway = TestGateway::with_list("#EXTM3U\n#EXTINF:-1,One\nhttp://127.0.0.1:9/1.ts\n").await;
        let page = Page::open_as_admin(&gateway, "/integrations").await;
        page.shows("No integrations").await;
        tab_to(&page, "New integration").await;
        page.types_keys(ENTER).await;
        page.shows("Create an integration").await;
        tab_to(&page, "Name").await;
        page.types_keys("Chat").await;
        tab_to(&page, "Address").await;
        page.types_keys("http://127.0.0.1:9/hook").await;
        page.types_keys(ENTER).await;
        page.shows("The integration was created. Choose its events.").await;

        // Arrow keys move between tabs, and Space chooses an event.
        tab_to(&page, "A channel starts").await;
        page.types_keys(SPACE).await;
        tab_to(&page, "Save").await;
        page.types_keys(ENTER).await;
        page.shows("The events were saved.").await;
        tab_to_back(&page, "Events 1").await;
        page.types_keys(LEFT).await;
        page.shows("Make a secret").await;
        assert_eq!(page.focused().await, "Settings");

        page.web.opens("/plugins").await;
        page.shows("No plugins").await;
        tab_to(&page, "Install a plugin").await;
        page.types_keys(ENTER).await;
        page.shows("Archive of the plugin (.zip)").await;
        tab_to(&page, "Install").await;
        page.types_keys(ENTER).await;
        page.shows("Choose the archive.").await;
    }
}
