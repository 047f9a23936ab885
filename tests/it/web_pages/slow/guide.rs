//! The guide: an uploaded file becomes programmes in the grid, with details, search and the channel to watch.

use domain::user::UserLevel;
use jiff::{Timestamp, ToSpan};
use serde_json::json;

use crate::guide::fixture::xmltv_time;
use crate::support::gateway::TestGateway;
use crate::support::web::{Web, person};
use crate::web_pages::page::Page;

const ENTER: &str = "\u{e007}";
const RIGHT: &str = "\u{e014}";

/// Channels that a guide knows by their ids, and one that it does not know.
async fn gateway() -> TestGateway {
    let list = "#EXTM3U\n#EXTINF:-1 tvg-id=\"news\",News\nhttp://127.0.0.1:9/1.ts\n\
                #EXTINF:-1 tvg-id=\"movies\",Movies\nhttp://127.0.0.1:9/2.ts\n\
                #EXTINF:-1 tvg-id=\"local\",Local\nhttp://127.0.0.1:9/3.ts\n";
    TestGateway::with_list(list).await
}

/// Returns a guide with a running programme and the next ones of two channels.
fn guide() -> String {
    let now = Timestamp::now();
    let programme = |channel: &str, from: i64, until: i64, inner: &str| {
        let [start, stop] = [from, until].map(|it| xmltv_time((now + it.minutes()).as_second()));
        format!("<programme start=\"{start}\" stop=\"{stop}\" channel=\"{channel}\">{inner}</programme>\n")
    };
    [
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<tv>\n\
         <channel id=\"news\"><display-name>News</display-name></channel>\n\
         <channel id=\"movies\"><display-name>Movies</display-name></channel>\n",
        &programme("news", -20, 40, "<title>World News</title><desc>What happened today.</desc>"),
        &programme("news", 40, 100, "<title>Weather &lt;b&gt;</title><category>Forecast</category>"),
        &programme("movies", -60, 80, "<title>The Third Man</title><credits><actor>Welles</actor></credits>"),
        "</tv>\n",
    ]
    .concat()
}

/// Adds the guide on the page of the sources, as a file.
pub(super) async fn upload(page: &Page) {
    upload_of(page, &guide()).await;
    page.shows("2 channels").await;
    page.shows("3 programmes").await;
}

/// Adds a guide on the page of the sources, as a file.
pub(super) async fn upload_of(page: &Page, xmltv: &str) {
    page.shows("No guide yet").await;
    page.presses("Add guide").await;
    page.clicks("[role=tab]", "File").await;
    let choose = format!(
        "const input = document.querySelector('input[type=file]');
         if (!input) return false;
         const files = new DataTransfer();
         files.items.add(new File([{}], 'Europe.xml', {{ type: 'text/xml' }}));
         input.files = files.files;
         input.dispatchEvent(new Event('change', {{ bubbles: true }}));
         return true;",
        json!(xmltv)
    );
    page.until_is("the field of the file", &choose, json!(true)).await;
    page.presses("Fetch the guide").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uploaded_guide_shows_in_the_grid_with_details_search_and_keyboard() {
    let gateway = gateway().await;
    let page = Page::open_as_admin(&gateway, "/sources?kind=guides").await;
    upload(&page).await;

    page.web.opens("/guide").await;
    let rows = "return [...document.querySelectorAll('[role=grid] [role=row]')].slice(1).map((row) =>
        [row.querySelector('[role=rowheader] bdi')?.textContent,
         ...[...row.querySelectorAll('[role=gridcell]')].map((it) => it.querySelector('bdi, .muted').textContent.trim())])";
    page.until("programmes", rows, |it| {
        *it == json!([
            ["News", "World News", "Weather <b>"],
            ["Movies", "The Third Man"],
            ["Local", "No guide data"]
        ])
    })
    .await;
    let running =
        "return [...document.querySelectorAll('.running bdi:first-child')].map((it) => it.textContent)";
    page.until_is("running programmes", running, json!(["World News", "The Third Man"])).await;

    page.clicks("[role=gridcell] bdi", "World News").await;
    page.shows("What happened today.").await;
    let watch =
        "return [...document.querySelectorAll('a')].find((it) => it.textContent.trim() === 'Play')?.pathname";
    let path = format!("/watch/{}", gateway.channel("News").uuid);
    page.until_is("the way to watch", watch, json!(path)).await;
    // The address names the opened programme.
    let address = page.browser().script("return location.pathname + location.search").await;
    page.web.opens(address.as_str().unwrap()).await;
    page.shows("What happened today.").await;

    // By keyboard: the next programme.
    page.presses("Close").await;
    page.browser().script("document.querySelector('[role=grid]').focus()").await;
    let active = "const grid = document.querySelector('[role=grid]');
        return document.getElementById(grid.getAttribute('aria-activedescendant'))?.querySelector('bdi')?.textContent";
    page.until_is("the running programme", active, json!("World News")).await;
    page.types_keys(RIGHT).await;
    page.until_is("the next programme", active, json!("Weather <b>")).await;
    page.types_keys(ENTER).await;
    page.shows("Forecast").await;
    page.presses("Close").await;

    // `/` leads to the search, whose results open the same way.
    page.types_keys("/").await;
    page.types_keys("third").await;
    page.lists("Found programmes", 3, &["Movies"]).await;
    page.clicks("tbody bdi", "The Third Man").await;
    page.shows("Welles").await;
    page.fills("Search programmes", "nothing").await;
    page.shows("No programme matches").await;
    page.web.is_clean().await;
}

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn phones_and_users_of_level_0_see_what_runs_now_and_next() {
        let gateway = gateway().await;
        let page = Page::open_as_admin(&gateway, "/sources?kind=guides").await;
        upload(&page).await;
        let viewer = person(&gateway, "kid", UserLevel::Streamer).await;
        let phone = Page::new(Web::at(gateway.address).await);
        phone.browser().resizes(375, 812).await;
        phone.web.opens("/guide").await;
        phone.web.signs_in(&viewer.name).await;
        phone.shows("World News").await;
        phone.shows("Weather <b>").await;
        phone.shows("The Third Man").await;
        phone.shows("No guide data").await;
        phone.clicks("tbody bdi", "The Third Man").await;
        phone.shows("Welles").await;
        phone.web.is_clean().await;
    }
}
