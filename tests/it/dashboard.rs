//! The example page of the WebSocket, in a real browser.

/// These need a browser.
mod slow {
    use std::net::{Ipv4Addr, SocketAddr};

    use domain::user::UserLevel;
    use serde_json::{Value, json};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_util::sync::CancellationToken;
    use tokio_util::task::AbortOnDropHandle;

    use crate::support::api::Api;
    use crate::support::browser::Browser;
    use crate::support::gateway::{Setup, TestGateway};
    use crate::support::signal::Picture;
    use crate::support::until_async;
    use crate::support::upstream::{Cut, MockResponse, Provider};
    use crate::support::users::{change_user, create_user};

    const FIRST: &str = "/live/anna/first.ts";
    const SECOND: &str = "/live/anna/second.ts";
    /// A channel name from a playlist, with markup. An alert would block the browser and fail the test.
    const NAME: &str = "News <img src=x onerror=alert(1)>";

    const STATE: &str = "return document.querySelector('output').textContent";
    /// Returns the cells of each row.
    const ROWS: &str = "return [...document.querySelectorAll('tbody tr')]
        .map((it) => [...it.cells].map((it) => it.textContent))";
    /// Returns the messages, newest first.
    const MESSAGES: &str = "return [...document.querySelectorAll('li')].map((it) => it.textContent)";

    /// Returns the URL of the example file, as opened from a folder.
    fn page() -> String {
        format!("file://{}/docs/examples/dashboard.html", env!("CARGO_MANIFEST_DIR"))
    }

    /// Opens the page and connects it with this host and token.
    async fn opened(host: SocketAddr, token: &str) -> Browser {
        let browser = Browser::start().await;
        browser.opens(&page()).await;
        browser.types("[name=host]", &host.to_string()).await;
        browser.types("[name=token]", token).await;
        browser.clicks("button").await;
        browser
    }

    /// Waits for one row with this state, number of viewers and number of failovers.
    async fn expect_row(browser: &Browser, state: &str, viewers: &str, failovers: &str) {
        let row = |it: &Value| json!([it[0][0], it[0][1], it[0][2], it[0][4]]);
        let wanted = json!([NAME, state, viewers, failovers]);
        let fits = |it: &Value| it.as_array().is_some_and(|it| it.len() == 1) && row(it) == wanted;
        browser.until(&format!("the row {wanted}"), ROWS, fits).await;
    }

    /// Waits for a message with these words, in this order.
    async fn expect_message(browser: &Browser, words: &[&str]) {
        let has = |line: &Value| {
            let mut rest = line.as_str().unwrap_or_default();
            words.iter().all(|it| rest.split_once(it).map(|(_, behind)| rest = behind).is_some())
        };
        let fits = |it: &Value| it.as_array().is_some_and(|it| it.iter().any(has));
        browser.until(&format!("a line with {words:?}"), MESSAGES, fits).await;
    }

    /// Waits until the page reports this connection state.
    async fn expect_state(browser: &Browser, text: &str) {
        browser.until(text, STATE, |it| it.as_str().is_some_and(|it| it.starts_with(text))).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_example_page_shows_playback_failover_switch_and_stop() {
        let provider = Provider::start();
        provider.path(FIRST).plays(Picture::new("first"));
        provider.path(SECOND).plays(Picture::new("second"));
        let list = provider.playlist(&[("news", NAME, FIRST), ("news", "News backup", SECOND)]);
        let gateway = TestGateway::with_list(&list).await;
        let root = create_user(&gateway, "root", |it| it.level = UserLevel::Admin).await;

        let browser = opened(gateway.address, &root.token(&gateway)).await;
        expect_state(&browser, "connected").await;
        let player = gateway.watch(NAME).await;
        player.sees("first").await;
        expect_row(&browser, "playing", "1", "0").await;
        expect_message(&browser, &["channel_start", NAME]).await;

        provider.path(FIRST).answers(MockResponse::status(404)).cut(Cut::Reset);
        player.sees("second").await;
        expect_row(&browser, "playing", "1", "1").await;
        expect_message(&browser, &["channel_failover", NAME, &format!("{NAME} → News backup")]).await;

        provider.path(FIRST).plays(Picture::new("first"));
        let path = format!("/proxy/ts/next_stream/{}", gateway.channel(NAME).uuid);
        let reply = Api::stranger(&gateway).key(&root.api_key).post(&path, json!({})).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        expect_message(&browser, &["stream_switch", NAME, &format!("News backup → {NAME}")]).await;
        // `HEADWATER_SCREENSHOT=/tmp/page.png cargo nextest run …` saves a screenshot.
        if let Ok(file) = std::env::var("HEADWATER_SCREENSHOT") {
            std::fs::write(file, browser.screenshot().await).unwrap();
        }

        player.leave().await;
        expect_message(&browser, &["channel_stop", NAME]).await;
        browser.until("no row", ROWS, |it| *it == json!([])).await;
        let images = browser.script("return document.querySelectorAll('img').length").await;
        assert_eq!(images, 0, "names are shown as text");

        change_user(&gateway, &root, |it| it.level = UserLevel::Standard).await;
        expect_state(&browser, "closed 1008").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_example_page_reconnects_after_a_lost_connection() {
        let gateway = Setup::new().start().await;
        let root = create_user(&gateway, "root", |it| it.level = UserLevel::Admin).await;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let host = listener.local_addr().unwrap();
        let (cut, to) = (CancellationToken::new(), gateway.address);
        let first = cut.clone();
        let _line = AbortOnDropHandle::new(tokio::spawn(async move {
            // The proxy cuts the first connection on request; later ones stay.
            for cut in std::iter::once(first).chain(std::iter::repeat_with(CancellationToken::new)) {
                let (mut from, _) = listener.accept().await.unwrap();
                let mut to = TcpStream::connect(to).await.unwrap();
                tokio::spawn(async move {
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut from, &mut to) => {}
                        () = cut.cancelled() => {}
                    }
                });
            }
        }));
        let browser = opened(host, &root.token(&gateway)).await;
        expect_state(&browser, "connected").await;
        cut.cancel();
        expect_state(&browser, "closed 1006").await;
        expect_state(&browser, "connected").await;

        let sockets = async || gateway.metrics().await["headwater_connections"] >= 2.0;
        until_async("the new connection of the page", sockets).await;
        browser.types("[name=token]", "nonsense").await;
        browser.clicks("button").await;
        expect_state(&browser, "closed 1006").await;
    }
}
