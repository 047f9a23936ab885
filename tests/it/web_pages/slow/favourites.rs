//! Favourites: channels with a star, which belong to each user.

use domain::user::UserLevel;
use serde_json::json;

use crate::support::gateway::TestGateway;
use crate::support::web::{Web, person};
use crate::web_pages::page::Page;

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_user_marks_channels_with_a_star_and_lists_only_them() {
        let list =
            "#EXTM3U\n#EXTINF:-1,News\nhttp://127.0.0.1:9/1.ts\n#EXTINF:-1,Movies\nhttp://127.0.0.1:9/2.ts\n";
        let gateway = TestGateway::with_list(list).await;
        let anna = person(&gateway, "anna", UserLevel::Standard).await;
        let page = Page::new(Web::signed_in(&gateway, &anna, "/watch?favourites=only").await);
        page.shows("No favourites yet").await;
        page.presses("Show all channels").await;
        page.lists("Channels", 2, &["News", "Movies"]).await;
        page.presses("Favourite: Movies").await;
        let pressed =
            "return [...document.querySelectorAll('[aria-pressed=true]')].map((it) => it.ariaLabel)";
        page.until_is("the star", pressed, json!(["Favourite: Movies"])).await;
        page.clicks("label", "Favourites only").await;
        page.lists("Channels", 2, &["Movies"]).await;

        // They are stored, and can be removed on the page of the channel too.
        let path = format!("/watch/{}", gateway.channel("Movies").uuid);
        page.web.opens(&path).await;
        page.until_is("the star", pressed, json!(["Favourite: Movies"])).await;
        page.presses("Favourite: Movies").await;
        page.until_is("no star", pressed, json!([])).await;
        page.web.opens("/watch?favourites=only").await;
        page.shows("No favourites yet").await;

        // Users of level 0 have none, and no request asks for any.
        let kid = person(&gateway, "kid", UserLevel::Streamer).await;
        let page = Page::new(Web::signed_in(&gateway, &kid, "/watch").await);
        page.lists("Channels", 2, &["News", "Movies"]).await;
        let stars = "return document.querySelectorAll('[aria-label^=Favourite]').length";
        assert_eq!(page.browser().script(stars).await, json!(0));
        page.web.is_clean().await;
    }
}
