//! A generated guide: its patterns are tried with a name, corrected, and become programmes.

use serde_json::{Value, json};

use crate::support::gateway::TestGateway;
use crate::web_pages::page::Page;

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_admin_tries_patterns_for_event_channels_and_the_guide_shows_their_programmes() {
        let list = "#EXTM3U\n#EXTINF:-1,NHL 03: Bruins vs Leafs @ 20:00\nhttp://127.0.0.1:9/1.ts\n";
        let gateway = TestGateway::with_list(list).await;
        let page = Page::open_as_admin(&gateway, "/sources/new?kind=guides").await;
        page.clicks("[role=tab]", "Generated").await;
        page.fills("Name", "Events").await;
        page.presses("Create the guide").await;

        // The new guide opens where its patterns are.
        page.shows("Programmes follow from the name of each channel").await;
        page.fills("Try it with a name", "NHL 03: Bruins vs Leafs @ 20:00").await;
        page.fills("Pattern of the title", r"(?<team1>\w+) vs (?<team2>\w+)").await;
        page.shows("team1}: Bruins").await;
        page.fills("Pattern of the time", r"(?<hour>\d+):(?<minute>\d+)(?=$)").await;
        page.shows("Look-ahead").await;
        page.fills("Title", "{team1} at {team2}").await;
        page.fills("Title before", "Later: {team1}").await;
        page.presses("Save").await;
        let wrong = "return document.querySelector('[name=time_pattern]')?.ariaInvalid";
        page.until_is("an error at the field", wrong, json!("true")).await;

        page.fills("Pattern of the time", r"@ (?<hour>\d+):(?<minute>\d+)").await;
        page.fills("Time zone of the names", "berlin").await;
        page.clicks("[role=option]", "Europe/Berlin").await;
        page.shows("Bruins at Leafs").await;
        page.shows("Later: Bruins").await;
        page.presses("Save").await;
        page.shows("Saved. The guide shows it at once.").await;

        // Saved as it was typed, and shown again.
        let address = page.browser().script("return location.pathname + location.search").await;
        page.web.opens(address.as_str().unwrap()).await;
        let typed =
        "return ['title_pattern', 'timezone', 'title_template', 'upcoming_title_template', 'date_pattern']
        .map((it) => document.querySelector(`[name=${it}]`)?.value)";
        let expected = json!([
            r"(?<team1>\w+) vs (?<team2>\w+)",
            "Europe/Berlin",
            "{team1} at {team2}",
            "Later: {team1}",
            ""
        ]);
        page.until_is("the saved values", typed, expected).await;

        // A channel with this guide shows the event.
        page.web.opens("/guide").await;
        page.presses("Assign guide to NHL 03: Bruins vs Leafs @ 20:00").await;
        page.fills("Another guide channel", "events").await;
        page.clicks("[role=option]", "Events dummy_events").await;
        page.presses("Use the chosen one").await;
        let titles =
            "return [...document.querySelectorAll('[role=gridcell] .title')].map((it) => it.textContent)";
        let is_event = |it: &Value| {
            it.as_array().is_some_and(|all| {
                !all.is_empty() && all.iter().all(|it| it.as_str().is_some_and(|it| it.contains("Bruins")))
            })
        };
        page.until("programmes of the event", titles, is_event).await;
    }
}
