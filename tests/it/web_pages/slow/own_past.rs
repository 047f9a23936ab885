//! The past of a channel that the gateway keeps itself, from the choice in the editor to a pause that is continued.

use serde_json::{Value, json};

use crate::support::gateway::Setup;
use crate::support::signal::Clip;
use crate::support::upstream::Provider;
use crate::web_pages::page::Page;

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_admin_lets_the_gateway_keep_the_past_of_a_channel_and_a_pause_is_continued_from_it() {
        let provider = Provider::start();
        provider.path("/news.ts").plays(Clip::plain().await);
        let list = format!("#EXTM3U\n#EXTINF:-1 tvg-id=\"news\",News\n{}\n", provider.url("/news.ts"));
        let gateway = Setup::new().limited_list(&list, 1).start().await;
        let news = gateway.channel("News");
        let page = Page::open_as_admin(&gateway, &format!("/watch/{}", news.uuid)).await;
        page.web.has("video[data-state=playing]").await;
        let bars = "return document.querySelectorAll('section.bar').length";
        assert_eq!(page.browser().script(bars).await, json!(0), "there is no past yet");

        page.web.opens(&format!("/channels/{}", news.id)).await;
        page.chooses("Keep the past of the channel", "while somebody watches").await;
        page.presses("Save").await;
        page.shows("Saved").await;
        page.web.opens(&format!("/watch/{}", news.uuid)).await;
        page.until_is("the time bar", bars, json!(1)).await;
        page.web.has("video[data-state=playing]").await;
        // A browser plays sound once the user has touched the page.
        page.clicks("h1", "News").await;
        let paused = "document.querySelector('video').pause(); window.pausedAt = Date.now()";
        // The file of the past begins with the first viewer after the choice.
        page.until("some past", "return document.querySelector('video').currentTime", |it: &Value| {
            it.as_f64().is_some_and(|it| it > 15.0)
        })
        .await;
        page.browser().script(paused).await;
        page.until_is("a pause", "return Date.now() - window.pausedAt > 16_000", json!(true)).await;
        page.browser().script("document.querySelector('video').play()").await;
        page.until("the past", "return location.search", |it: &Value| {
            it.as_str().is_some_and(|it| it.contains("then=live"))
        })
        .await;
        let time = "return document.querySelector('video').currentTime";
        page.until("a picture of the past", time, |it: &Value| it.as_f64().is_some_and(|it| it > 3.0)).await;
        assert_eq!(provider.peak(), 1);
        page.presses("Back to live").await;
        page.until_is("the live channel", "return location.search", json!("")).await;
        page.web.has("video[data-state=playing]").await;
        page.web.is_clean().await;
    }
}
