//! Users: adding one, errors at their fields, and what the user may open afterwards.

use domain::channel::Channel;
use domain::user::UserLevel;
use serde_json::json;

use crate::support::eventually;
use crate::support::gateway::TestGateway;
use crate::support::web::PASSWORD;
use crate::web_pages::page::Page;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_user_signs_in_sees_only_the_pages_of_the_level_and_is_deleted() {
    let list =
        "#EXTM3U\n#EXTINF:-1,News\nhttp://127.0.0.1:9/1.ts\n#EXTINF:-1,Staff\nhttp://127.0.0.1:9/2.ts\n";
    let gateway = TestGateway::with_list(list).await;
    let staff = gateway.channel("Staff").id.0;
    gateway
        .change(move |write| {
            let mut channel = write.get::<Channel>(staff)?.expect("it exists");
            channel.user_level = UserLevel::Standard;
            write.put(&channel)
        })
        .await;
    let page = Page::open_as_admin(&gateway, "/users").await;
    page.presses("Add user").await;
    page.fills("User name", "anna").await;
    page.fills("Password", PASSWORD).await;
    page.presses("Save").await;
    let wrong = "return document.querySelector('[name=username]')?.ariaInvalid";
    page.until_is("a name that is taken", wrong, json!("true")).await;
    page.fills("User name", "kid").await;
    page.fills("Streams at the same time", "2").await;
    page.presses("Save").await;
    // The addresses for players follow.
    page.until("the addresses", "return location.pathname + location.search", |it| {
        it.as_str().is_some_and(|it| it.ends_with("?tab=addresses"))
    })
    .await;
    page.lists("Users", 1, &["anna", "kid"]).await;
    let kid = || gateway.models().users.load().iter().find(|it| it.username == "kid").cloned();
    let made = kid().expect("the user exists");
    assert_eq!((made.level, made.stream_limit), (UserLevel::Streamer, 2));

    let viewer = Page::open(gateway.address, "/users").await;
    viewer.web.signs_in("kid").await;
    viewer.shows("You may not open this page").await;
    let links = "return [...new Set([...document.querySelectorAll('nav a')].map((it) => it.pathname.split('/')[1]))].filter(Boolean).sort()";
    viewer.until_is("the pages of level 0", links, json!(["guide", "library", "me", "watch"])).await;
    for path in ["/now", "/channels", "/settings", "/activity"] {
        viewer.web.opens(path).await;
        viewer.shows("You may not open this page").await;
    }
    // Only channels of the own level are listed.
    viewer.web.opens("/").await;
    viewer.web.is_at("/watch").await;
    viewer.shows("1 channel").await;
    viewer.shows("News").await;
    viewer.hides("Staff").await;
    viewer.web.opens("/guide").await;
    viewer.shows("News").await;
    viewer.hides("Staff").await;
    viewer.web.is_clean().await;

    page.clicks("[role=tab]", "User").await;
    page.presses("Delete").await;
    page.clicks("dialog button", "Delete").await;
    page.lists("Users", 1, &["anna"]).await;
    eventually("no such user", || kid().is_none()).await;
}
