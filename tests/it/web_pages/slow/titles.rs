//! Films and series of a panel: from its login on the page of the sources to seasons, episodes and stale titles, with
//! names that try to break the pages.

use std::time::Duration;

use serde_json::{Value, json};

use super::library::film;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::panel::Panel;
use crate::support::upstream::MockResponse;
use crate::web_audit::slow::{axe, check};
use crate::web_pages::page::Page;

const USER: &str = "anna-at-panel";
const PASSWORD: &str = "hunter2-kept";
const MARKUP: &str = "<img src=x onerror=alert(1)><script>alert(2)</script>";
/// Ends with characters that turn the direction of everything that follows.
const TURNED: &str = "\u{05d7}\u{05d3}\u{05e9}\u{05d5}\u{05ea}\u{202e}\u{2067}";
const TIME: &str = "return document.querySelector('video')?.currentTime ?? 0";
const NAMES: &str = "return [...document.querySelectorAll('main ul li a .name')].map((it) => it.textContent)";
const EPISODES: &str =
    "return [...document.querySelectorAll('main ol li .name bdi')].map((it) => it.textContent)";

fn long() -> String {
    "Long ".repeat(100).trim().to_owned()
}

fn listed_film(id: u32, name: &str, category: u32) -> Value {
    json!({ "stream_id": id, "name": name, "category_id": category.to_string(), "container_extension": "mp4" })
}

/// Lets the panel list these films, all in one category.
fn offer_films(panel: &Panel, names: &[&str]) {
    let films: Vec<Value> = names.iter().zip(1..).map(|(name, id)| listed_film(id, name, 21)).collect();
    panel.says("get_vod_streams&category_id=21", &json!(films));
    panel.says("get_vod_streams", &json!(films));
}

/// A panel with films and series of which some have hostile names.
fn panel() -> Panel {
    let panel = Panel::start(USER, PASSWORD);
    panel.offers(&[(7, "One")]);
    let category = |id: &str, name: &str| json!({ "category_id": id, "category_name": name, "parent_id": 0 });
    panel.says("get_vod_categories", &json!([category("21", "Action"), category("22", MARKUP)]));
    panel.says("get_series_categories", &json!([category("31", "Crime")]));
    let series = json!([
        { "series_id": "7", "name": "Gamma", "category_id": 31, "last_modified": "100" },
        { "series_id": "8", "name": TURNED, "category_id": 31, "last_modified": "100" },
    ]);
    panel.says("get_series&category_id=31", &series);
    panel.says("get_series", &series);
    let plot = format!("{MARKUP} {TURNED} {}", long());
    let info = json!({ "info": { "plot": plot, "director": MARKUP, "cast": long() }, "movie_data": {} });
    for id in 1..=4 {
        panel.says(&format!("get_vod_info&vod_id={id}"), &info);
    }
    for id in [7, 8] {
        panel.says(
            &format!("get_series_info&series_id={id}"),
            &json!({ "info": { "name": "Gamma", "plot": plot }, "episodes": {
                "0": [{ "id": id * 10, "episode_num": 1, "title": "Special", "container_extension": "mp4" }],
                "1": [
                    { "id": id * 10 + 1, "episode_num": "1", "title": "Pilot", "container_extension": "mp4" },
                    { "id": id * 10 + 2, "episode_num": 2, "title": MARKUP, "container_extension": "mp4" },
                ],
                "2": [{ "id": id * 10 + 3, "episode_num": 1, "title": long(), "container_extension": "mp4" }],
            } }),
        );
    }
    panel
}

async fn gateway() -> TestGateway {
    Setup::new().config(|it| it.limits.vod_request_interval = Duration::ZERO).start().await
}

/// Adds the panel on the page of the sources, and imports all its categories.
async fn import(page: &Page, panel: &Panel) {
    page.presses("Add source").await;
    page.clicks("[role=tab]", "Panel login").await;
    page.fills("Server", &panel.url()).await;
    page.fills("User name", USER).await;
    page.fills("Password", PASSWORD).await;
    page.presses("Fetch the streams").await;
    page.clicks("[role=tab]", "Films and series").await;
    page.presses("Switch films and series on").await;
    page.presses("Refresh films and series").await;
    page.lists("Films and series", 2, &[MARKUP, "Action", "Crime", "Uncategorized", "Uncategorized"]).await;
    page.shows("0 of 5 imported").await;
    page.selects("Films and series", 2).await;
    page.selects("Films and series", 3).await;
    page.presses("Import").await;
    page.shows("2 of 5 imported").await;
    page.shows("4 films, 2 series").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_imports_a_panel_opens_a_series_and_removes_stale_titles() {
    let panel = panel();
    let films = ["Heat (1995)", "Ronin (1998)", "Up (2009)", "Zodiac (2007)"];
    offer_films(&panel, &films);
    let file = MockResponse::text("video/mp4", film("mp4").await);
    panel.provider.path(&format!("/series/{USER}/{PASSWORD}/71.mp4")).answers(file);
    let gateway = gateway().await;
    let page = Page::open_as_admin(&gateway, "/sources").await;
    import(&page, &panel).await;
    // What was not chosen was not asked for.
    assert_eq!(panel.n_questions("get_vod_streams&category_id=22"), 0);

    page.web.opens("/library?kind=series").await;
    page.clicks("main ul li a .name", "Gamma").await;
    page.shows("Special").await;
    page.clicks("[role=tab]", "Season 1 2").await;
    page.until_is("the episodes of a season", EPISODES, json!(["Pilot", MARKUP])).await;
    page.presses("Play: S01E01 Pilot").await;
    page.until("an episode that moves", TIME, |it| it.as_f64().is_some_and(|it| it > 1.0)).await;
    page.presses("Close the player").await;

    // The panel no longer lists a film. It stays until an admin removes it.
    offer_films(&panel, &films[..3]);
    page.web.opens("/sources").await;
    page.clicks("tbody bdi", "127.0.0.1").await;
    page.clicks("[role=tab]", "Films and series").await;
    page.presses("Refresh films and series").await;
    page.shows("3 films, 2 series").await;
    page.presses("Remove stale titles").await;
    page.clicks("dialog[open] button", "Remove").await;
    page.shows("Removed 1 version and 1 title.").await;
    page.web.opens("/library?kind=movie").await;
    page.until_is("the films that are left", NAMES, json!(films[..3])).await;
    page.web.is_clean().await;
}

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn hostile_names_in_the_library_are_text_and_the_pages_of_titles_have_no_barriers() {
        let panel = panel();
        let long = long();
        offer_films(&panel, &[MARKUP, TURNED, &long, "Heat (1995)"]);
        let gateway = gateway().await;
        let page = Page::open_as_admin(&gateway, "/sources").await;
        import(&page, &panel).await;
        page.web.opens("/library").await;
        let seen = page.until("six titles", NAMES, |it| it.as_array().is_some_and(|it| it.len() == 6)).await;
        let has = |text: &str| {
            seen.as_array()
                .is_some_and(|it| it.iter().any(|it| it.as_str().is_some_and(|it| it.contains(text))))
        };
        assert!(has("<img src=x onerror=alert(1)>") && has("\u{05d7}") && has("Long Long Long"), "{seen}");
        let paths = "return [...document.querySelectorAll('main ul li a')].map((it) => it.pathname)";
        let paths = page.browser().script(paths).await;
        let axe = axe();
        check(&page.web, &axe, "/library").await;
        let foreign = "return document.querySelectorAll('main img[src=x], main script').length";
        assert_eq!(page.browser().script(foreign).await, json!(0));
        for path in paths.as_array().unwrap() {
            check(&page.web, &axe, path.as_str().unwrap()).await;
            page.shows("onerror=alert(1)").await;
            assert_eq!(page.browser().script(foreign).await, json!(0), "{path}");
        }
    }
}
