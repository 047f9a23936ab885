//! Nodes of a cluster: an admin adds one and removes it, on the page of a node that does not write.

use crate::support::api::{ADMIN, PASSWORD};
use crate::support::cluster::{Machine, nats, two_nodes};
use crate::support::until_async;
use crate::web_pages::page::Page;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_adds_a_node_with_the_command_of_the_page_and_removes_it() {
    let nats = nats();
    let machine = Machine::new("attic", &nats).with_admin().await;
    let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;
    until_async("attic to write", async || {
        let nodes = cellar.api.get("/api/core/nodes/").await.body["nodes"].clone();
        nodes.as_array().unwrap().iter().any(|it| it["name"] == "attic" && it["is_writer"] == true)
    })
    .await;
    let page = Page::open(cellar.address, "/nodes").await;
    page.web.signs_in_as(ADMIN, PASSWORD).await;
    page.shows("writes the configuration").await;
    page.shows("Provider connections").await;
    page.presses("Add a node").await;
    page.presses("Make a token").await;
    let command = page
        .until("the command", "return document.querySelector('dialog input')?.value ?? ''", |it| {
            it.as_str().is_some_and(|it| it.starts_with("headwater serve --join "))
        })
        .await;
    let token = command.as_str().unwrap().rsplit(' ').next().unwrap().to_owned();
    page.presses("Close").await;
    let mut loft = Machine::new("loft", &nats).serve(&["--join", &token]).await;
    page.shows("loft").await;
    attic.sees("loft").await;
    // The only row with this button: the others are the node that writes and the one that answers.
    page.presses("Remove").await;
    page.clicks("dialog button", "Remove").await;
    assert_eq!(loft.program.ended().await.code(), Some(1), "{}", loft.program.output());
    let rows = "return [...document.querySelectorAll('tbody th')].map((it) => it.textContent).join().includes('loft')";
    page.until("the row to disappear", rows, |it| it == false).await;
}
