//! From an empty folder to moving pictures, in the browser alone.

use serde_json::json;

use crate::support::binary::Binary;
use crate::support::signal::Clip;
use crate::support::until_async;
use crate::support::upstream::{MockResponse, Provider};
use crate::web_pages::page::Page;

const NEWS: &str = "/live/anna/news.ts";
const PASSWORD: &str = "correct horse";

/// Returns the path of the printed address, with the code.
async fn printed_path(program: &Binary) -> String {
    let path = || {
        let output = program.output();
        let at = output.find("/setup#")?;
        Some(output[at..].lines().next()?.trim().to_owned())
    };
    until_async("the address of the set-up", async || path().is_some()).await;
    path().expect("waited for it")
}

/// Starts a provider with a channel that a browser can play, twice in its list, and one in another group.
async fn provider() -> Provider {
    let provider = Provider::start();
    provider.path(NEWS).plays(Clip::plain().await);
    let entry = |group: &str, name: &str, path: &str| {
        format!("#EXTINF:-1 tvg-id=\"{name}\" group-title=\"{group}\",{name}\n{}\n", provider.url(path))
    };
    let list = format!(
        "#EXTM3U\n{}{}{}",
        entry("News", "World News", NEWS),
        entry("News", "world news", "/live/anna/backup.ts"),
        entry("Shopping", "Shop", "/live/anna/shop.ts"),
    );
    provider.path("/list.m3u").answers(MockResponse::text("audio/x-mpegurl", list));
    provider
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_printed_address_leads_from_an_empty_folder_to_moving_pictures() {
    let provider = provider().await;
    let folder = tempfile::tempdir().unwrap();
    let program = Binary::start(&["serve", "--data-dir", &folder.path().display().to_string()]);
    let address = program.address().await;
    let page = Page::open(address, &printed_path(&program).await).await;

    page.fills("Password", PASSWORD).await;
    assert_eq!(page.browser().script("return location.hash").await, json!(""), "not kept in the history");
    page.presses("Create and sign in").await;

    page.fills("Address of the playlist", &provider.url("/list.m3u")).await;
    page.presses("Fetch the streams").await;

    page.shows("Which groups do you want?").await;
    page.lists("Groups", 2, &["News", "Shopping"]).await;
    page.web.has_no_height_by_basis().await;
    page.selects("Groups", 2).await;
    page.shows("1 of 2 groups, 2 streams").await;
    page.presses("Continue").await;

    page.shows("2 streams become 1 channel.").await;
    page.presses("Make channels of 2 streams").await;

    page.shows("Enter these in your players").await;
    page.shows("is reached from this machine only").await;
    page.hides(PASSWORD).await;
    let codes = "return document.querySelectorAll('canvas, svg[data-qr]').length";
    assert_eq!(page.browser().script(codes).await, json!(0), "codes hold a password");
    page.presses("Continue").await;

    let state = "return document.querySelector('[data-check=picture]')?.dataset.state";
    page.until_is("the picture", state, json!("good")).await;
    page.shows("The set-up is complete.").await;
    let time = "return document.querySelector('video').currentTime";
    let first = page.until("a moving picture", time, |it| it.as_f64() > Some(0.2)).await;
    page.until("a picture that goes on", time, |it| it.as_f64() > first.as_f64().map(|it| it + 0.5)).await;
    assert_eq!(page.n_steps(), 8, "clicks and fields from the printed address to the picture");
    page.writes_steps();

    // The step follows from the data: nothing is stored, and no other page is blocked.
    page.web.opens("/setup").await;
    page.shows("Enter these in your players").await;
    page.web.opens("/channels").await;
    page.lists("Channels", 3, &["World News"]).await;
}

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_wrong_code_and_an_unreachable_list_are_explained_and_can_be_corrected() {
        let provider = provider().await;
        let folder = tempfile::tempdir().unwrap();
        let program = Binary::start(&["serve", "--data-dir", &folder.path().display().to_string()]);
        let address = program.address().await;
        let path = printed_path(&program).await;
        let page = Page::open(address, "/setup#0123456789").await;
        page.fills("Password", PASSWORD).await;
        page.presses("Create and sign in").await;
        page.shows("This is not the setup code").await;
        page.shows("headwater user add admin --superuser").await;
        page.fills("Set-up code", path.trim_start_matches("/setup#")).await;
        page.presses("Create and sign in").await;

        page.fills("Address of the playlist", "no address").await;
        page.presses("Fetch the streams").await;
        page.until(
            "an error at the field",
            "return document.querySelector('[name=server_url]')?.ariaInvalid",
            |it| *it == "true",
        )
        .await;
        page.fills("Address of the playlist", &provider.url("/missing.m3u")).await;
        page.fills("Name", "Home").await;
        page.presses("Fetch the streams").await;
        page.shows("404").await;
        page.fills("Address of the playlist", &provider.url("/list.m3u")).await;
        page.presses("Try again").await;
        page.shows("Which groups do you want?").await;
    }
}
