//! The example page of the WebSocket in a real browser.

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
    use crate::support::people::{changed, person};
    use crate::support::signal::Picture;
    use crate::support::until_async;
    use crate::support::upstream::{Answer, Cut, Provider};

    const FIRST: &str = "/live/anna/first.ts";
    const SECOND: &str = "/live/anna/second.ts";
    /// What a playlist may call a channel. An alert would stop the browser, and so the test.
    const NAME: &str = "News <img src=x onerror=alert(1)>";

    const SAYS: &str = "return document.querySelector('output').textContent";
    /// The cells of each row.
    const ROWS: &str = "return [...document.querySelectorAll('tbody tr')]
        .map((it) => [...it.cells].map((it) => it.textContent))";
    /// The newest first.
    const NEWS: &str = "return [...document.querySelectorAll('li')].map((it) => it.textContent)";

    /// The file in the documentation, as one would open it from a folder.
    fn page() -> String {
        format!("file://{}/docs/examples/dashboard.html", env!("CARGO_MANIFEST_DIR"))
    }

    /// The page, open and told where to listen and as whom.
    async fn opened(host: SocketAddr, token: &str) -> Browser {
        let browser = Browser::start().await;
        browser.opens(&page()).await;
        browser.types("[name=host]", &host.to_string()).await;
        browser.types("[name=token]", token).await;
        browser.clicks("button").await;
        browser
    }

    /// Waits for one row in this state, with so many viewers and failovers.
    async fn shows(browser: &Browser, state: &str, viewers: &str, failovers: &str) {
        let row = |it: &Value| json!([it[0][0], it[0][1], it[0][2], it[0][4]]);
        let wanted = json!([NAME, state, viewers, failovers]);
        let fits = |it: &Value| it.as_array().is_some_and(|it| it.len() == 1) && row(it) == wanted;
        browser.until(&format!("the row {wanted}"), ROWS, fits).await;
    }

    /// Waits for a line with these words, in this order.
    async fn tells(browser: &Browser, words: &[&str]) {
        let has = |line: &Value| {
            let mut rest = line.as_str().unwrap_or_default();
            words.iter().all(|it| rest.split_once(it).map(|(_, behind)| rest = behind).is_some())
        };
        let fits = |it: &Value| it.as_array().is_some_and(|it| it.iter().any(has));
        browser.until(&format!("a line with {words:?}"), NEWS, fits).await;
    }

    /// Waits until the page says how its socket is.
    async fn says(browser: &Browser, text: &str) {
        browser.until(text, SAYS, |it| it.as_str().is_some_and(|it| it.starts_with(text))).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_example_page_shows_channels_play_fail_over_switch_and_stop() {
        let provider = Provider::start();
        provider.path(FIRST).plays(Picture::new("first"));
        provider.path(SECOND).plays(Picture::new("second"));
        let list = provider.playlist(&[("news", NAME, FIRST), ("news", "News backup", SECOND)]);
        let gateway = TestGateway::of(&list).await;
        let root = person(&gateway, "root", |it| it.level = UserLevel::Admin).await;

        let browser = opened(gateway.address, &root.token(&gateway)).await;
        says(&browser, "connected").await;
        let player = gateway.watch(NAME).await;
        player.sees("first").await;
        shows(&browser, "playing", "1", "0").await;
        tells(&browser, &["channel_start", NAME]).await;

        provider.path(FIRST).answers(Answer::status(404)).cut(Cut::Reset);
        player.sees("second").await;
        shows(&browser, "playing", "1", "1").await;
        tells(&browser, &["channel_failover", NAME, &format!("{NAME} → News backup")]).await;

        provider.path(FIRST).plays(Picture::new("first"));
        let path = format!("/proxy/ts/next_stream/{}", gateway.channel(NAME).uuid);
        let said = Api::stranger(&gateway).key(&root.api_key).post(&path, json!({})).await;
        assert_eq!(said.status, 200, "{said:?}");
        tells(&browser, &["stream_switch", NAME, &format!("News backup → {NAME}")]).await;
        // `HEADWATER_SCREENSHOT=/tmp/page.png cargo nextest run …` keeps what it looks like.
        if let Ok(file) = std::env::var("HEADWATER_SCREENSHOT") {
            std::fs::write(file, browser.screenshot().await).unwrap();
        }

        player.leave().await;
        tells(&browser, &["channel_stop", NAME]).await;
        browser.until("no row", ROWS, |it| *it == json!([])).await;
        let images = browser.script("return document.querySelectorAll('img').length").await;
        assert_eq!(images, 0, "names are shown as text");

        changed(&gateway, &root, |it| it.level = UserLevel::Standard).await;
        says(&browser, "closed 1008").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_example_page_connects_again_after_its_connection_was_lost() {
        let gateway = Setup::new().start().await;
        let root = person(&gateway, "root", |it| it.level = UserLevel::Admin).await;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let host = listener.local_addr().unwrap();
        let (cut, to) = (CancellationToken::new(), gateway.address);
        let first = cut.clone();
        let _line = AbortOnDropHandle::new(tokio::spawn(async move {
            // The first connection is cut when it is asked for; the ones after it stay.
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
        says(&browser, "connected").await;
        cut.cancel();
        says(&browser, "closed 1006").await;
        says(&browser, "connected").await;

        let sockets = async || gateway.metrics().await["headwater_connections"] >= 2.0;
        until_async("its new connection at the gateway", sockets).await;
        browser.types("[name=token]", "nonsense").await;
        browser.clicks("button").await;
        says(&browser, "closed 1006").await;
    }
}
