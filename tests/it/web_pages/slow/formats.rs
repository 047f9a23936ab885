//! The formats in which a page plays a channel: the best one, the next one if that fails, and those that a user may play.

use std::sync::Arc;

use domain::user::UserLevel;
use serde_json::json;
use uuid::Uuid;

use crate::support::api::Api;
use crate::support::gateway::TestGateway;
use crate::support::signal::{Clip, TEST_PICTURE};
use crate::support::until_async;
use crate::support::upstream::Provider;
use crate::support::web::person;
use crate::web_pages::page::Page;

const TIME: &str = "return document.querySelector('video')?.currentTime ?? 0";

/// Refuses every buffer until the page has loaded the script for HLS, as a browser does that lacks a codec.
const BREAK_MPEGTS: &str = "
    const add = MediaSource.prototype.addSourceBuffer;
    MediaSource.prototype.addSourceBuffer = function (type) {
        if (!performance.getEntriesByType('resource').some((it) => it.name.includes('hlsPlayer')))
            throw new DOMException('This codec is broken.', 'NotSupportedError');
        return add.call(this, type);
    }";

/// Starts a gateway with the channel `News`, whose pictures every browser plays.
async fn set_up() -> (Provider, TestGateway, Uuid) {
    let output = "-t 120 -c:v libx264 -preset ultrafast -g 25 -pix_fmt yuv420p -c:a aac";
    let output: Vec<&str> = output.split(' ').collect();
    let clip = Clip::make("web-formats", &TEST_PICTURE, &output).await;
    let provider = Provider::start();
    provider.path("/news.ts").plays(Arc::clone(&clip));
    let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", "/news.ts")])).await;
    let uuid = gateway.channel("News").uuid;
    (provider, gateway, uuid)
}

/// Waits until the video has played for two more seconds.
async fn plays_on(page: &Page) {
    page.web.has("video[data-state=playing]").await;
    let before = page.browser().script(TIME).await.as_f64().unwrap();
    page.until("a video that moves", TIME, |it| it.as_f64().is_some_and(|it| it > before + 2.0)).await;
}

/// Waits until the viewers of the channel have this format and no other.
async fn watched_as(admin: &Api, uuid: Uuid, format: &str) {
    until_async(&format!("viewers of {format}"), async || {
        let status = admin.get(&format!("/proxy/ts/status/{uuid}")).await;
        let clients = status.body["clients"].as_array().cloned().unwrap_or_default();
        !clients.is_empty() && clients.iter().all(|it| it["output_format"] == format)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_chooses_the_format_of_a_channel_and_the_address_keeps_it() {
    let (provider, gateway, uuid) = set_up().await;
    let admin = Api::first_admin(&gateway).await;
    let page = Page::open_as_admin(&gateway, &format!("/watch/{uuid}")).await;
    plays_on(&page).await;
    watched_as(&admin, uuid, "mpegts").await;
    page.shows("Automatic: MPEG-TS").await;
    for (choice, query, format) in [("HLS", "hls", "ll-hls"), ("MP4", "fmp4", "fmp4")] {
        page.chooses("Format", choice).await;
        page.until_is("the choice", "return location.search", json!(format!("?format={query}"))).await;
        watched_as(&admin, uuid, format).await;
        plays_on(&page).await;
    }
    page.web.opens(&format!("/watch/{uuid}?format=hls")).await;
    plays_on(&page).await;
    watched_as(&admin, uuid, "ll-hls").await;
    page.hides("does not play here").await;
    assert_eq!(provider.peak(), 1, "all formats share a connection");
    // The figures of what a viewer gets.
    page.web.opens(&format!("/now/{uuid}")).await;
    page.shows("HLS with low latency").await;
    page.web.is_clean().await;
}

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_format_that_fails_gives_way_to_the_next_one_and_the_page_says_so() {
        let (_provider, gateway, uuid) = set_up().await;
        let admin = Api::first_admin(&gateway).await;
        let page = Page::open_as_admin(&gateway, "/watch").await;
        page.web.has("main tbody tr a").await;
        page.browser().script(BREAK_MPEGTS).await;
        // Without another load of the page.
        page.browser().clicks("main tbody tr a").await;
        plays_on(&page).await;
        watched_as(&admin, uuid, "ll-hls").await;
        page.shows("MPEG-TS does not play here, so the page plays HLS.").await;
        page.shows("Reason: This codec is broken.").await;
        page.shows("Automatic: HLS").await;
        page.web.is_clean().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_user_watches_in_the_formats_that_an_admin_allows() {
        let (_provider, gateway, uuid) = set_up().await;
        let admin = Api::first_admin(&gateway).await;
        let kid = person(&gateway, "kid", UserLevel::Streamer).await;
        let page = Page::open_as_admin(&gateway, &format!("/users/{}", kid.id)).await;
        let formats = || {
            let users = gateway.models().users.load();
            users.get(kid.id.0).and_then(|it| it.custom_properties.get("output_formats").cloned())
        };
        page.clicks("label", "MPEG-TS").await;
        page.chooses("Format if a player asks for none", "MP4").await;
        page.presses("Save").await;
        page.shows("Saved.").await;
        assert_eq!(formats(), Some(json!(["mp4", "m3u8"])));
        page.clicks("label", "MP4").await;
        page.shows("At least one format stays allowed.").await;
        page.presses("Save").await;
        until_async("one format", async || formats() == Some(json!(["m3u8"]))).await;

        let viewer = Page::open(gateway.address, &format!("/watch/{uuid}")).await;
        viewer.web.signs_in("kid").await;
        plays_on(&viewer).await;
        watched_as(&admin, uuid, "ll-hls").await;
        let choices = "return [...document.querySelectorAll('main select')].length";
        viewer.until_is("nothing to choose", choices, json!(0)).await;
        viewer.web.is_clean().await;

        // The property is gone with the limit.
        page.clicks("label", "MPEG-TS").await;
        page.clicks("label", "MP4").await;
        page.chooses("Format if a player asks for none", "MPEG-TS").await;
        page.presses("Save").await;
        until_async("no limit", async || formats().is_none()).await;
        let refused = admin
            .patch(
                &format!("/api/accounts/users/{}/", kid.id),
                json!({ "custom_properties": { "output_formats": ["rtmp"] } }),
            )
            .await;
        let message = refused.body["custom_properties"].to_string();
        assert!(refused.status == 400 && message.contains("m3u8"), "{refused:?}");
        page.web.is_clean().await;
    }
}
