//! Sources: adding, the question about a much shorter list, and edits that send what was changed.

use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::gateway::Setup;
use crate::support::until_async;
use crate::support::upstream::{MockResponse, Provider};
use crate::web_pages::page::Page;

const SECRET: &str = "hunter2-kept";

fn list(provider: &Provider, n: usize) -> MockResponse {
    let entry =
        |n| format!("#EXTINF:-1 group-title=\"News\",Stream {n}\n{}\n", provider.url(&format!("/{n}.ts")));
    let entries: String = (0..n).map(entry).collect();
    MockResponse::text("audio/x-mpegurl", format!("#EXTM3U\n{entries}"))
}

/// Waits until the first account has this value.
async fn has(admin: &Api, field: &str, value: Value) {
    until_async(field, async || admin.get("/api/m3u/accounts/2/").await.body[field] == value).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_is_added_edited_and_asked_about_a_much_shorter_list() {
    let provider = Provider::start();
    let path = format!("/get.php?username=anna&password={SECRET}");
    provider.path(&path).answers(list(&provider, 100));
    let gateway = Setup::new().start().await;
    let admin = Api::first_admin(&gateway).await;
    let page = Page::open_as_admin(&gateway, "/sources").await;
    page.shows("No source yet").await;
    page.presses("Add source").await;
    page.fills("Address of the playlist", &provider.url(&path)).await;
    page.fills("Name", "Home").await;
    page.presses("Fetch the streams").await;
    page.shows("100").await;
    page.lists("Groups", 2, &["News"]).await;
    page.web.has_no_height_by_basis().await;

    // The address holds a password: it is shown on request only.
    page.clicks("[role=tab]", "Settings").await;
    page.shows("Show address").await;
    let shown =
        "return document.body.innerText + [...document.querySelectorAll('input')].map((it) => it.value)";
    let text = page.browser().script(shown).await;
    assert!(!text.as_str().unwrap().contains(SECRET), "{text}");

    page.fills("Connections at the same time", "3").await;
    page.fills("Schedule (cron)", "every day").await;
    page.presses("Save").await;
    let wrong = "return document.querySelector('[name=cron_expression]')?.ariaInvalid";
    page.until_is("an error at the field", wrong, json!("true")).await;
    page.fills("Schedule (cron)", "5 4 * * *").await;
    page.presses("Save").await;
    has(&admin, "cron_expression", json!("5 4 * * *")).await;
    has(&admin, "max_streams", json!(3)).await;

    let zone = async || admin.get("/api/m3u/accounts/2/").await.body["custom_properties"]["timezone"].clone();
    page.fills("Time zone of the provider", "new york").await;
    page.clicks("[role=option]", "America/New_York").await;
    page.presses("Save").await;
    until_async("a time zone", async || zone().await == "America/New_York").await;
    // The field ignores a text that names no zone.
    page.fills("Time zone of the provider", "nowhere").await;
    page.fills("Connections at the same time", "4").await;
    let shown = "return document.querySelector('[name=timezone]')?.value";
    page.until_is("the time zone as it was", shown, json!("America/New_York")).await;
    page.presses("Save").await;
    has(&admin, "max_streams", json!(4)).await;
    assert_eq!(zone().await, "America/New_York");

    provider.path(&path).answers(list(&provider, 2));
    page.presses("Refresh").await;
    page.shows("Waits for a decision").await;
    page.presses("Accept the shorter list").await;
    page.hides("Waits for a decision").await;
    page.shows("98").await;
}
