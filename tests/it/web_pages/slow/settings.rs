//! Settings: the search, the default of each, errors at their fields, and the way back to the default.

use serde_json::json;

use crate::support::api::Api;
use crate::support::gateway::TestGateway;
use crate::web_pages::page::Page;

const FIELD: &str = "return document.querySelector('[name=connect_timeout]')?.value";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_setting_is_found_changed_and_returned_to_its_default() {
    let gateway = TestGateway::with_list("#EXTM3U\n#EXTINF:-1,News\nhttp://127.0.0.1:9/1.ts\n").await;
    let admin = Api::first_admin(&gateway).await;
    let stored = async || {
        let groups = admin.get("/api/core/settings/").await.body;
        let groups = groups["results"].as_array().cloned().unwrap_or_default();
        groups.iter().map(|it| it["value"]["connect_timeout"].clone()).find(|it| !it.is_null())
    };
    let default = stored().await;
    let page = Page::open_as_admin(&gateway, "/settings?q=connect%20to%20a%20provider").await;
    page.shows("Default: 3").await;
    let count = "return document.querySelectorAll('main form input, main form select').length";
    page.until_is("one setting", count, json!(1)).await;

    page.fills("Time to connect to a provider", "-5").await;
    page.presses("Save").await;
    let wrong = "return document.querySelector('[name=connect_timeout]')?.ariaInvalid";
    page.until_is("an error at the field", wrong, json!("true")).await;
    assert_eq!(stored().await, default);
    page.fills("Time to connect to a provider", "7").await;
    page.presses("Save").await;
    page.shows("Saved.").await;
    assert_eq!(stored().await, Some(json!(7)));

    page.presses("Reset Time to connect to a provider").await;
    page.until_is("the default", FIELD, json!("3")).await;
    page.web.opens("/settings?q=no-such-setting").await;
    page.shows("No setting matches").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_setting_has_a_text_and_lists_are_written_in_lines() {
    let gateway = TestGateway::with_list("#EXTM3U\n#EXTINF:-1,News\nhttp://127.0.0.1:9/1.ts\n").await;
    let admin = Api::first_admin(&gateway).await;
    let page = Page::open_as_admin(&gateway, "/settings").await;
    page.shows("Players find recordings").await;
    let nameless = "return [...document.querySelectorAll('main form :is(input, select, textarea)')]
        .map((it) => [it.name.split('.').at(-1), it.labels[0]?.textContent.trim() ?? ''])
        .filter(([name, label]) => !label || label === name || label.includes('_'))";
    page.until_is("settings without a text", nameless, json!([])).await;
    page.web.opens("/settings?q=beginnings").await;
    page.fills("Beginnings of names that do not count", "Sling: \nTV").await;
    page.presses("Save").await;
    page.shows("Saved.").await;
    let groups = admin.get("/api/core/settings/").await.body;
    let lists: Vec<_> = groups["results"].as_array().unwrap().iter().map(|it| &it["value"]).collect();
    let found = lists.iter().find_map(|it| it.get("epg_match_ignore_prefixes"));
    assert_eq!(found, Some(&json!(["Sling: ", "TV"])));
}
