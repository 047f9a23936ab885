//! Logos and lineups.

use serde_json::json;

use crate::support::eventually;
use crate::support::gateway::TestGateway;
use crate::web_pages::page::Page;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logos_are_added_by_address_found_deleted_and_brought_back() {
    let gateway = TestGateway::with_list("#EXTM3U\n#EXTINF:-1,News\nhttp://127.0.0.1:9/1.ts\n").await;
    let page = Page::open_as_admin(&gateway, "/logos").await;
    page.shows("No logos yet").await;
    page.presses("Add logo").await;
    page.fills("Name", "News").await;
    page.fills("Address of the picture", "no address").await;
    page.presses("Save").await;
    let wrong = "return document.querySelector('[name=url]')?.ariaInvalid";
    page.until_is("an error at the field", wrong, json!("true")).await;
    // The browser reports the refusal.
    assert!(page.browser().console().await.iter().all(|it| it.contains("400")));
    page.fills("Address of the picture", "http://127.0.0.1:9/news.png").await;
    page.presses("Save").await;
    page.lists("Logos", 2, &["News"]).await;
    // The logo has a picture at once, although its host does not answer.
    let picture = "return document.querySelector('tbody img')?.naturalWidth > 0";
    page.until_is("a picture", picture, json!(true)).await;

    page.presses("Add logo").await;
    page.clicks("[role=tab]", "File").await;
    page.fills("Name", "Drawn").await;
    let choose = "
        const input = document.querySelector('input[type=file]');
        if (!input) return false;
        const canvas = document.createElement('canvas');
        const files = new DataTransfer();
        const bytes = Uint8Array.from(atob(canvas.toDataURL('image/png').split(',')[1]), (it) => it.charCodeAt(0));
        files.items.add(new File([bytes], 'drawn.png', { type: 'image/png' }));
        input.files = files.files;
        input.dispatchEvent(new Event('change', { bubbles: true }));
        return true;";
    page.until_is("the field of the file", choose, json!(true)).await;
    page.presses("Save").await;
    page.lists("Logos", 2, &["Drawn", "News"]).await;

    page.presses("Delete unused logos").await;
    page.clicks("dialog button", "Delete unused logos").await;
    page.shows("No logos yet").await;
    page.presses("Undo").await;
    page.lists("Logos", 2, &["Drawn", "News"]).await;
    page.web.opens("/logos?q=dra").await;
    page.lists("Logos", 2, &["Drawn"]).await;
    page.selects("Logos", 1).await;
    page.presses("Delete 1 logo").await;
    page.clicks("dialog button", "Delete 1 logo").await;
    page.shows("No logo matches").await;
    page.web.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lineup_is_created_copied_and_deleted_and_its_channels_are_a_click_away() {
    let list = "#EXTM3U\n#EXTINF:-1,One\nhttp://127.0.0.1:9/1.ts\n#EXTINF:-1,Two\nhttp://127.0.0.1:9/2.ts\n";
    let gateway = TestGateway::with_list(list).await;
    let page = Page::open_as_admin(&gateway, "/lineups").await;
    page.shows("No lineups yet").await;
    page.presses("Add lineup").await;
    page.fills("Name", "Kids").await;
    page.presses("Save").await;
    page.lists("Lineups", 1, &["Kids"]).await;
    page.lists("Lineups", 2, &["2"]).await;
    page.presses("Create a copy").await;
    page.lists("Lineups", 1, &["Kids", "Kids (copy)"]).await;
    page.presses("Delete").await;
    page.clicks("dialog button", "Delete").await;
    page.lists("Lineups", 1, &["Kids"]).await;
    eventually("one lineup", || gateway.models().lineups.load().len() == 1).await;

    // Channels leave a lineup on their page.
    page.web.opens("/channels").await;
    page.selects("Channels", 1).await;
    page.presses("More actions").await;
    page.presses("Lineup").await;
    page.clicks("label", "In the lineup").await;
    page.presses("Save").await;
    page.shows("Changed the lineup for 1 channel.").await;
    page.web.opens("/lineups").await;
    page.lists("Lineups", 2, &["1"]).await;
    page.clicks("tbody bdi", "Kids").await;
    page.presses("Show its channels").await;
    page.lists("Channels", 3, &["Two"]).await;
    page.web.is_clean().await;
}
