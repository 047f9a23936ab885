//! Nodes of a cluster: an admin adds one and removes it, on the page of a node that does not write, drains a node, and
//! finalizes an upgrade.

use domain::cluster::version::OWN_VERSIONS;

use crate::support::api::{ADMIN, PASSWORD};
use crate::support::cluster::{Machine, nats, two_nodes, upgraded};
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
    let clocks =
        "return [...document.querySelectorAll('td[data-label=Clock]')].map((it) => it.innerText).join('')";
    page.until("the clock of the other node", clocks, |it| it.as_str().is_some_and(|it| it.contains("ms")))
        .await;
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

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_admin_finalizes_an_upgrade_and_sees_until_when_viewers_of_a_drained_node_stay() {
        let nats = nats();
        let attic = upgraded(Machine::new("attic", &nats).with_admin().await).await;
        let (before, newest) = (OWN_VERSIONS.newest - 1, OWN_VERSIONS.newest);
        // A new cluster has no node that writes for a while, so nobody can sign in.
        until_async("attic to write", async || {
            attic.machine.succeeds(&["cluster", "status"]).await.lines().any(|it| it.ends_with("writes"))
        })
        .await;
        let page = Page::open(attic.address, "/health").await;
        page.web.signs_in_as(ADMIN, PASSWORD).await;
        page.shows("The upgrade of the cluster is not finalized").await;
        page.presses("Go to the remedy").await;
        page.shows(&format!("The nodes write version {before} of their data.")).await;
        page.shows(&format!("data {OWN_VERSIONS}")).await;
        page.presses("Finalize").await;
        page.shows("older versions of the gateway cannot join").await;
        page.clicks("dialog button", "Finalize").await;
        page.shows(&format!("The nodes write version {newest} of their data.")).await;
        page.hides("Finalize").await;

        page.presses("Drain").await;
        page.clicks("dialog button", "Drain").await;
        page.shows("viewers until").await;
        page.presses("End the drain").await;
        page.hides("viewers until").await;
    }
}
