//! The frame of all pages of the web interface: keyboard, phones, and a gateway that restarts.

/// These need a browser.
mod slow {
    use domain::user::UserLevel;
    use serde_json::{Value, json};

    use crate::support::api::{ADMIN, Api, PASSWORD as FIRST_PASSWORD};
    use crate::support::binary::Binary;
    use crate::support::gateway::TestGateway;
    use crate::support::signal::Picture;
    use crate::support::upstream::Provider;
    use crate::support::web::{PASSWORD, Web, person};

    /// Keys of WebDriver.
    const TAB: &str = "\u{E004}";
    const ENTER: &str = "\u{E007}";
    const ESCAPE: &str = "\u{E00C}";
    const CONTROL: &str = "\u{E009}";
    const DOWN: &str = "\u{E015}";
    /// Keyboard stops between two elements of a page, at most.
    const STOPS_MAX: usize = 60;

    const NEWS: &str = "/live/anna/news.ts";

    /// Returns whether the element that has the focus matches.
    async fn has_focus(web: &Web, selector: &str) -> bool {
        let script = format!("return document.activeElement.matches({})", Value::from(selector));
        web.browser.script(&script).await == true
    }

    /// Moves the focus with the keyboard until an element has it.
    async fn tabs_to(web: &Web, selector: &str) {
        web.has(selector).await;
        for _ in 0..STOPS_MAX {
            if has_focus(web, selector).await {
                return;
            }
            web.browser.presses(TAB).await;
        }
        panic!("no keyboard stop at {selector}");
    }

    async fn until_focus(web: &Web, selector: &str) {
        let script = format!("return document.activeElement.matches({})", Value::from(selector));
        web.browser.until(&format!("the focus on {selector}"), &script, |it| *it == true).await;
    }

    async fn types(web: &Web, text: &str) {
        for key in text.chars() {
            web.browser.presses(&key.to_string()).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_admin_signs_in_moves_and_stops_a_channel_with_the_keyboard_alone() {
        let provider = Provider::start();
        provider.path(NEWS).plays(Picture::new("news"));
        let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", NEWS)])).await;
        person(&gateway, "root", UserLevel::Admin).await;
        let player = gateway.watch("News").await;
        player.sees("news").await;
        let web = Web::at(gateway.address).await;
        web.opens("/now").await;
        tabs_to(&web, "input[name=username]").await;
        types(&web, "root").await;
        tabs_to(&web, "input[name=password]").await;
        types(&web, PASSWORD).await;
        web.browser.presses(ENTER).await;
        web.has("tr[data-channel]").await;

        tabs_to(&web, "a[href='/users']").await;
        web.browser.presses(ENTER).await;
        web.is_at("/users").await;
        until_focus(&web, "main h1").await;
        tabs_to(&web, "a[href='/now']").await;
        web.browser.presses(ENTER).await;
        until_focus(&web, "main h1").await;
        web.has("tr[data-channel]").await;

        // The first stop of each page leads over the navigation.
        web.opens("/now").await;
        web.has("tr[data-channel]").await;
        web.browser.presses(TAB).await;
        assert!(has_focus(&web, "a.skip").await);
        web.browser.presses(ENTER).await;
        until_focus(&web, "#content").await;

        const MENU: &str = "tr[data-channel] button[aria-haspopup=menu]";
        for answer in ["no", "yes"] {
            tabs_to(&web, MENU).await;
            web.browser.presses(ENTER).await;
            until_focus(&web, "[role=menuitem]").await;
            web.browser.presses(DOWN).await;
            web.browser.presses(ENTER).await;
            web.has("dialog[open] footer").await;
            if answer == "no" {
                web.browser.presses(ESCAPE).await;
                until_focus(&web, MENU).await;
                assert!(player.is_watching(), "nothing was stopped");
            } else {
                tabs_to(&web, "dialog[open] footer button:last-child").await;
                web.browser.presses(ENTER).await;
            }
        }
        player.ended().await;
        web.reads("main", "Nothing plays").await;
        web.is_clean().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_page_can_fetch_nothing_from_elsewhere() {
        let provider = Provider::start();
        let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", NEWS)])).await;
        let root = person(&gateway, "root", UserLevel::Admin).await;
        let web = Web::signed_in(&gateway, &root, "/now").await;
        web.reads("main h1", "Now").await;
        web.is_clean().await;
        let attempts = "const image = (src) => new Promise((done) => {
                const it = new Image(); it.onload = () => done('loaded'); it.onerror = () => done('refused'); it.src = src });
            const script = (src) => new Promise((done) => { const it = document.createElement('script');
                it.onload = () => done('loaded'); it.onerror = () => done('refused');
                try { it.src = src; document.head.append(it) } catch { done('refused') } });
            return Promise.all([fetch(origin).then(() => 'loaded', () => 'refused'), image(origin + '/a.png'), script(origin + '/a.js')])";
        let origin = format!("const origin = 'http://{}';", gateway.api);
        let outcomes = web.browser.script(&format!("{origin} {attempts}")).await;
        assert_eq!(outcomes, json!(["refused", "refused", "refused"]));
        let console = web.browser.console().await.join(" ");
        assert!(
            console.contains("Content Security Policy") && console.contains("TrustedScriptURL"),
            "{console}"
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn phones_have_a_bar_with_four_pages_and_the_others_behind_more() {
        let provider = Provider::start();
        let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", NEWS)])).await;
        let root = person(&gateway, "root", UserLevel::Admin).await;
        let web = Web::signed_in(&gateway, &root, "/now").await;
        web.reads("main h1", "Now").await;
        web.browser.resizes(320, 640).await;
        let shown =
            "return [...document.querySelectorAll('nav a, nav button')].filter((it) => it.checkVisibility())
            .map((it) => it.textContent.trim())";
        let is_bar = |it: &Value| it.as_array().is_some_and(|it| it.len() == 5 && it[4] == "More");
        web.browser.until("the bar of phones", shown, is_bar).await;
        let small =
            "return [...document.querySelectorAll('nav a, nav button')].filter((it) => it.checkVisibility())
            .map((it) => it.getBoundingClientRect()).filter((it) => it.width < 44 || it.height < 44).length";
        assert_eq!(web.browser.script(small).await, 0, "targets have at least 44 pixels");
        web.clicks("More").await;
        web.has("#more-pages:popover-open").await;
        web.browser.clicks("#more-pages a[href='/health']").await;
        web.is_at("/health").await;
        web.reads("main h1", "Health").await;
        let is_open = "return document.querySelector('#more-pages:popover-open') !== null";
        web.browser.until("the sheet is closed", is_open, |it| *it == false).await;
        web.is_clean().await;
    }

    /// Stories beside the one that CI plays.
    mod night {
        use super::*;

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn keys_find_pages_channels_and_users_and_can_be_switched_off() {
            let provider = Provider::start();
            let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", NEWS)])).await;
            let root = person(&gateway, "root", UserLevel::Admin).await;
            let web = Web::signed_in(&gateway, &root, "/now").await;
            web.reads("main h1", "Now").await;
            let channel = format!("/channels/{}", gateway.channel("News").id);
            let user = format!("/users/{}", root.id);
            for (words, path) in [("news", &*channel), ("root", &*user), ("health", "/health")] {
                web.browser.presses_with(CONTROL, "k").await;
                until_focus(&web, "dialog[open] input").await;
                types(&web, words).await;
                let count = "return document.querySelectorAll('dialog[open] [role=option]').length";
                web.browser.until("one entry", count, |it| *it == 1).await;
                web.browser.presses(ENTER).await;
                web.is_at(path).await;
            }
            web.reads("main h1", "Health").await;
            web.browser.presses("?").await;
            web.reads("dialog[open]", "Keyboard shortcuts").await;
            web.browser.presses(ESCAPE).await;
            web.clicks("Me").await;
            web.reads("main h1", "Me").await;
            tabs_to(&web, "main input[type=checkbox]").await;
            web.browser.presses(" ").await;
            web.opens("/health").await;
            web.reads("main h1", "Health").await;
            web.browser.presses("?").await;
            // A key that still works comes after it.
            web.browser.presses_with(CONTROL, "k").await;
            until_focus(&web, "dialog[open] input").await;
            let dialogs = web.browser.script("return document.querySelectorAll('dialog[open]').length").await;
            assert_eq!(dialogs, 1);
            web.is_clean().await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn a_page_outlives_a_restart_of_the_gateway_with_what_was_typed() {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path().display().to_string();
            let serve = ["serve", "--data-dir", &folder];
            let mut program = Binary::start(&serve);
            let address = program.address().await;
            Api::stranger_at(address).become_first_admin().await;
            let web = Web::at(address).await;
            web.opens("/me").await;
            web.signs_in_as(ADMIN, FIRST_PASSWORD).await;
            web.has("input[name=email]").await;
            web.browser.types("input[name=email]", "root@example.com").await;
            let notices =
                "return [...document.querySelectorAll('.notice')].map((it) => it.textContent.trim())";
            web.browser.until("a connection", notices, |it| *it == json!([])).await;

            program.signal("TERM");
            assert!(program.ended().await.success(), "{}", program.output());
            let is_offline =
                |it: &Value| it[0].as_str().is_some_and(|it| it.contains("No connection to the gateway"));
            web.browser.until("the notice", notices, is_offline).await;
            web.clicks("Save").await;
            web.reads("[role=alert]", "gateway").await;

            let port = address.to_string();
            let program = Binary::start(&[&serve[..], &["--player-listen", &port]].concat());
            assert_eq!(program.address().await, address);
            web.browser.until("the connection", notices, |it| *it == json!([])).await;
            let typed = web.browser.script("return document.querySelector('input[name=email]').value").await;
            assert_eq!(typed, "root@example.com");
            web.clicks("Save").await;
            web.reads("[role=log]", "Saved").await;
        }
    }
}
