//! What addresses of providers lead to: no provider leads the gateway into a nearer network than its own.

use domain::account::{Account, RefreshRecord};
use domain::egress::{AllowedNetworks, Distance};
use domain::ids::AccountId;
use domain::source_url::SourceUrl;
use domain::stream::Stream;

use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{MockResponse, Provider};

/// The account of the list.
const ACCOUNT: AccountId = AccountId(2);

/// Records that the list of the gateway came from this network.
async fn came_from(gateway: &TestGateway, origin: Distance) {
    let refresh = RefreshRecord { origin: Some(origin), ..RefreshRecord::new(ACCOUNT) };
    gateway.change(move |write| write.put(&refresh)).await;
}

async fn account(gateway: &TestGateway, change: impl FnOnce(&mut Account) + Send + 'static) {
    gateway
        .change(move |write| {
            let mut account = write.get::<Account>(ACCOUNT.0)?.expect("the account of the list");
            change(&mut account);
            write.put(&account)
        })
        .await;
}

/// Asserts that a channel is refused with this reason.
async fn is_refused(gateway: &TestGateway, channel: &str, reason: &str) {
    let answer = gateway.watch(channel).await.answer().await;
    let text = answer.text();
    assert_eq!(answer.status(), 503, "{text}");
    assert!(text.contains("the address is not allowed") && text.contains(reason), "{text}");
    gateway.until_idle().await;
}

/// Asserts that a channel plays this picture.
async fn plays(gateway: &TestGateway, channel: &str, picture: &str) {
    let player = gateway.watch(channel).await;
    player.sees(picture).await;
    player.leave().await;
    gateway.until_idle().await;
}

// Holds T-acc.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_from_the_internet_may_not_name_this_machine_unless_an_admin_allows_it() {
    let provider = Provider::start();
    let list = provider.playlist(&[("news", "News", "/news.ts"), ("film", "Film", "/film.m3u8")]);
    // As names, which a resolver of the provider could let lead anywhere.
    let list = list.replace("127.0.0.1", "localhost");
    provider.path("/news.ts").plays(Picture::new("news"));
    let gateway = TestGateway::with_list(&list).await;
    came_from(&gateway, Distance::Public).await;
    // The second channel would be read by a program.
    for channel in ["News", "Film"] {
        is_refused(&gateway, channel, "may not lead to this machine").await;
    }
    came_from(&gateway, Distance::Private).await;
    is_refused(&gateway, "News", "may not lead to this machine").await;
    account(&gateway, |it| it.allowed_networks = AllowedNetworks::Private).await;
    is_refused(&gateway, "News", "may not lead to this machine").await;
    assert_eq!(provider.accepted(), 0, "nothing was connected to");

    account(&gateway, |it| it.allowed_networks = AllowedNetworks::Loopback).await;
    plays(&gateway, "News", "news").await;

    // A list from this machine may name it.
    account(&gateway, |it| it.allowed_networks = AllowedNetworks::OfPlaylist).await;
    came_from(&gateway, Distance::Loopback).await;
    plays(&gateway, "News", "news").await;

    // An address that an admin typed may be anywhere.
    came_from(&gateway, Distance::Public).await;
    let (stream, url) = (gateway.channel("News").streams[0], provider.url("/news.ts"));
    gateway
        .change(move |write| {
            let mut stream = write.get::<Stream>(stream.0)?.expect("a stream");
            stream.manual.url = Some(SourceUrl::new(url));
            write.put(&stream)
        })
        .await;
    plays(&gateway, "News", "news").await;
}

// Holds T-acc.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_leads_neither_to_metadata_services_nor_to_the_gateway_itself() {
    let provider = Provider::start();
    let list = provider.playlist(&[("news", "News", "/news.ts"), ("film", "Film", "/film.ts")]);
    let gateway = Setup::new().list(&list).start().await;
    provider.path("/film.ts").plays(Picture::new("film"));
    let own = format!("http://{}{}", gateway.address, gateway.path("Film"));
    for (target, reason) in [
        ("http://169.254.169.254/latest/meta-data/".to_owned(), "metadata services"),
        ("http://[fe80::1]/".to_owned(), "link-local"),
        (own.clone(), "the gateway itself"),
        (own.replace("127.0.0.1", "localhost"), "the gateway itself"),
        (own.replace("127.0.0.1", "[::ffff:127.0.0.1]"), "the gateway itself"),
    ] {
        provider.path("/news.ts").answers(MockResponse::redirect(&target));
        is_refused(&gateway, "News", reason).await;
    }
    provider.path("/news.ts").answers(MockResponse::redirect(provider.url("/film.ts")));
    plays(&gateway, "News", "film").await;
}
