//! What plays, in the web interface.

/// These need a browser.
mod slow {
    use domain::user::UserLevel;
    use serde_json::{Value, json};

    use crate::support::api::Api;
    use crate::support::gateway::TestGateway;
    use crate::support::signal::Picture;
    use crate::support::upstream::{Cut, MockResponse, Provider};
    use crate::support::web::{PASSWORD, Web, person};

    const FIRST: &str = "/live/anna/first.ts";
    const SECOND: &str = "/live/anna/second.ts";
    /// A name from a playlist, with markup. An alert would block the browser and fail the test.
    const NAME: &str = "News <img src=x onerror=alert(1)>";

    /// Starts a gateway with one channel of two streams.
    async fn gateway(provider: &Provider) -> TestGateway {
        provider.path(FIRST).plays(Picture::new("first"));
        provider.path(SECOND).plays(Picture::new("second"));
        TestGateway::with_list(&provider.playlist(&[("news", NAME, FIRST), ("news", "News backup", SECOND)]))
            .await
    }

    /// Returns the texts of the cells of the only channel.
    const ROW: &str = "const rows = document.querySelectorAll('tr[data-channel]');
        return rows.length === 1 ? [...rows[0].cells].map((it) => it.textContent.trim()) : rows.length";

    async fn row(web: &Web, what: &str, fits: impl Fn(&Value) -> bool) {
        web.browser.until(what, ROW, fits).await;
    }

    fn cell(row: &Value, index: usize, words: &str) -> bool {
        row[index].as_str().is_some_and(|it| it.contains(words))
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_timeline_shows_a_failover_with_its_gap_and_cause() {
        let provider = Provider::start();
        let gateway = gateway(&provider).await;
        let root = person(&gateway, "root", UserLevel::Admin).await;
        let web = Web::signed_in(&gateway, &root, "/").await;
        web.is_at("/now").await;
        web.reads("main", "Nothing plays").await;

        let player = gateway.watch(NAME).await;
        player.sees("first").await;
        row(&web, "a channel that plays", |it| {
            cell(it, 0, "playing") && cell(it, 1, NAME) && cell(it, 2, NAME) && cell(it, 3, "1")
        })
        .await;
        let uuid = gateway.channel(NAME).uuid;
        web.clicks(&format!("Timeline: {NAME}")).await;
        web.is_at(&format!("/now/{uuid}")).await;
        web.has("[data-lane]").await;

        provider.path(FIRST).answers(MockResponse::status(404)).cut(Cut::Reset);
        player.sees("second").await;
        web.has("tr[data-event=failed_over]").await;
        let causes = "return [...document.querySelectorAll('tr[data-event=lost]')].map((it) => it.cells[3].textContent)";
        let is_named = |it: &Value| (0..2).any(|row| cell(it, row, "connection reset"));
        web.browser.until("the cause of the loss", causes, is_named).await;
        web.has("[data-gap]").await;
        let lanes = "return document.querySelectorAll('[data-lane]').length";
        web.browser.until("a lane for each stream", lanes, |it| *it == 2).await;
        let images = web.browser.script("return document.querySelectorAll('img').length").await;
        assert_eq!(images, 0, "names are shown as text");
        if let Ok(file) = std::env::var("HEADWATER_SCREENSHOT") {
            std::fs::write(file, web.browser.screenshot().await).unwrap();
        }

        // Actions wait for their outcome.
        provider.path(FIRST).plays(Picture::new("first"));
        web.clicks("Next stream").await;
        player.sees("first").await;
        web.has("tr[data-event=switched]").await;
        web.clicks("Stop channel").await;
        web.has("dialog[open]").await;
        web.browser.clicks("dialog[open] footer button:last-child").await;
        player.leave().await;
        web.opens("/now").await;
        web.reads("main", "Nothing plays").await;
        web.is_clean().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn users_of_level_1_see_states_and_counts_only() {
        let provider = Provider::start();
        let gateway = gateway(&provider).await;
        let anna = person(&gateway, "anna", UserLevel::Standard).await;
        let player = gateway.watch(NAME).await;
        player.sees("first").await;
        let web = Web::signed_in(&gateway, &anna, "/now").await;
        row(&web, "a channel", |it| {
            it.as_array().is_some_and(|it| it.len() == 3)
                && cell(it, 0, "playing")
                && cell(it, 1, NAME)
                && it[2] == "1"
        })
        .await;
        let text = web.browser.script("return document.body.textContent").await;
        assert!(!text.as_str().unwrap().contains("News backup") && !text.as_str().unwrap().contains("Slots"));
        web.opens("/slots").await;
        web.reads("main", "You may not open this page").await;
        web.is_clean().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_deep_link_opens_after_the_sign_in_and_the_login_outlives_a_reload() {
        let provider = Provider::start();
        let gateway = gateway(&provider).await;
        person(&gateway, "root", UserLevel::Admin).await;
        let web = Web::at(gateway.address).await;
        web.opens("/activity?tab=changes").await;
        web.has("input[name=password]").await;
        web.browser.types("input[name=username]", "root").await;
        web.browser.types("input[name=password]", "wrong").await;
        web.browser.clicks("button[type=submit]").await;
        web.reads("[role=alert]", "Wrong user name or password.").await;
        // The browser reports the refusal of the login.
        assert_eq!(web.browser.console().await.len(), 1);
        web.signs_in("root").await;
        web.reads("[role=tab][aria-selected=true]", "Changes").await;
        web.is_at("/activity?tab=changes").await;
        web.opens("/health").await;
        web.reads("main h1", "Health").await;
        let stored = "return [document.cookie, Object.keys(localStorage), Object.keys(sessionStorage)]";
        assert_eq!(web.browser.script(stored).await, json!(["", [], []]), "no script can read the login");
        web.clicks("Sign out").await;
        web.has("input[name=password]").await;
        web.opens("/health").await;
        web.has("input[name=password]").await;
        web.is_clean().await;
    }

    /// Stories beside the one that CI plays.
    mod night {
        use super::*;

        // The page ended with `each_key_duplicate`, because the menu had two entries with one label.
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn a_channel_with_streams_of_one_name_shows_its_timeline_and_offers_each() {
            let provider = Provider::start();
            provider.path(FIRST).plays(Picture::new("first"));
            let streams = [FIRST, SECOND, "/live/anna/third.ts"].map(|it| ("news", NAME, it));
            let gateway = TestGateway::with_list(&provider.playlist(&streams)).await;
            let root = person(&gateway, "root", UserLevel::Admin).await;
            let player = gateway.watch(NAME).await;
            player.sees("first").await;
            let accounts = gateway.models().accounts.load();
            let account = accounts.iter().find(|it| !it.is_custom()).unwrap().name.clone();
            let path = format!("/now/{}", gateway.channel(NAME).uuid);
            let web = Web::signed_in(&gateway, &root, &path).await;
            web.has("[data-lane]").await;
            let words = "return [...document.querySelectorAll('[role=menuitem] span')].map((it) => it.textContent.trim().split(/\\s+/).join(' '))";
            let label = format!("{NAME} {account}");
            web.browser.until("both other streams", words, |it| *it == json!([label, label])).await;
            web.reads("tr[data-event=started] .stream", &account).await;
            web.is_clean().await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn a_login_that_ends_asks_for_the_password_and_keeps_what_was_typed() {
            let provider = Provider::start();
            let gateway = gateway(&provider).await;
            let root = person(&gateway, "root", UserLevel::Admin).await;
            let web = Web::signed_in(&gateway, &root, "/me").await;
            web.has("input[name=email]").await;
            web.browser.types("input[name=email]", "root@example.com").await;
            let api = Api::stranger(&gateway).key(&root.api_key);
            let logins = api.get("/api/accounts/logins/").await;
            let id = logins.body["results"][0]["id"].as_u64().unwrap();
            assert_eq!(api.delete(&format!("/api/accounts/logins/{id}/")).await.status, 204);
            web.has("dialog[open] input[name=password]").await;
            web.browser.types("dialog[open] input[name=password]", PASSWORD).await;
            web.browser.clicks("dialog[open] button[type=submit]").await;
            let closed = "return document.querySelector('dialog[open]') === null";
            web.browser.until("the dialog is closed", closed, |it| *it == true).await;
            let typed = web.browser.script("return document.querySelector('input[name=email]').value").await;
            assert_eq!(typed, "root@example.com");
            web.clicks("Save").await;
            web.reads("[role=log]", "Saved").await;
        }
    }
}
