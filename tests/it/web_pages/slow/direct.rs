//! Schedules Direct: an account, and its lineups.

use serde_json::json;

use crate::support::api::{ADMIN, Api, PASSWORD as FIRST_PASSWORD};
use crate::support::gateway::Setup;
use crate::support::schedules_direct::{PASSWORD, SchedulesDirectServer, USERNAME};
use crate::web_pages::page::Page;

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_admin_finds_adds_and_removes_lineups_of_schedules_direct() {
        let service = SchedulesDirectServer::start();
        let gateway = Setup::new().start().await;
        let admin = Api::first_admin(&gateway).await;
        let page = Page::open(gateway.address, "/sources/new?kind=guides").await;
        page.web.signs_in_as(ADMIN, FIRST_PASSWORD).await;
        page.clicks("[role=tab]", "Schedules Direct").await;
        page.presses("Fetch the guide").await;
        let wrong = "return document.querySelector('[name=username]')?.ariaInvalid";
        page.until_is("an error at the field", wrong, json!("true")).await;

        // An account at the service of the test; the form has no field for another service.
        let body = json!({
            "name": "Direct", "source_type": "schedules_direct", "url": service.url(), "username": USERNAME,
            "password": PASSWORD,
        });
        let made = admin.post("/api/epg/sources/", body).await;
        assert_eq!(made.status, 201, "{made:?}");
        page.web.opens(&format!("/sources/{}?kind=guides&tab=lineups", made.body["id"])).await;
        page.shows("The account has no lineup").await;
        let n_found = "return document.querySelectorAll('ul[aria-label=\"Found lineups\"] li').length";
        page.fills("Postal code", "60030").await;
        page.presses("Search lineups").await;
        page.until_is("a found lineup", n_found, json!(1)).await;
        // A place that the service does not know; the lineups of the other place are gone.
        page.fills("Postal code", "00000").await;
        page.presses("Search lineups").await;
        page.shows("Schedules Direct: unknown country or postal code").await;
        assert_eq!(page.browser().script(n_found).await, json!(0));
        let typed = "return document.querySelector('[name=postal_code]').value";
        assert_eq!(page.browser().script(typed).await, json!("00000"), "what was typed stays");
        page.fills("Postal code", "60030").await;
        page.presses("Search lineups").await;
        page.hides("Schedules Direct: unknown country or postal code").await;
        page.presses("Add the lineup Cable One").await;
        page.shows("1 of 4 lineups").await;
        page.presses("Remove the lineup USA-IL1-X").await;
        page.clicks("dialog button", "Remove").await;
        page.shows("0 of 4 lineups").await;
        let text = page.browser().script("return document.body.innerText").await;
        assert!(!text.as_str().unwrap().contains(PASSWORD), "{text}");
    }
}
