//! The past of channels: found in the guide and beside the player, watched with seeking and from the start, and stopped.

use domain::user::UserLevel;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

use super::guide::upload_of;
use super::library::film;
use crate::guide::fixture::xmltv_time;
use crate::support::eventually;
use crate::support::files::FileProvider;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Clip;
use crate::support::upstream::Provider;
use crate::support::web::{Web, person};
use crate::web_audit::slow::{axe, check};
use crate::web_pages::page::Page;

/// The position that the page shows, in seconds.
const POSITION: &str = "return Number(document.querySelector('input[type=range]')?.value ?? 0)";
const TIME: &str = "return document.querySelector('video')?.currentTime ?? 0";
const NEWS: &str = "/news.ts";

/// A channel with an archive of two days on an account with one connection, and one without an archive.
struct Station {
    live: Provider,
    archive: FileProvider,
    gateway: TestGateway,
    now: Timestamp,
}

impl Station {
    async fn open() -> Station {
        Station::with_archive(film("ts").await).await
    }

    /// The archive answers this file for every time.
    async fn with_archive(file: Vec<u8>) -> Station {
        let live = Provider::start();
        live.path(NEWS).plays(Clip::plain().await);
        let archive = FileProvider::start(file).await;
        archive.limit(1);
        archive.slow_after(8 << 20);
        let list = format!(
            "#EXTM3U\n#EXTINF:-1 tvg-id=\"news\" catchup=\"default\" catchup-days=\"2\" catchup-source=\"{}\",News\n{}\n\
             #EXTINF:-1 tvg-id=\"movies\",Movies\nhttp://127.0.0.1:9/2.ts\n",
            archive.url("/past/{utc}-{duration}.ts"),
            live.url(NEWS),
        );
        let gateway = Setup::new().limited_list(&list, 1).start().await;
        Station { live, archive, gateway, now: Timestamp::now() }
    }

    /// A guide with a programme that is over, one that runs, and one of the channel without an archive.
    fn guide(&self) -> String {
        let programme = |channel: &str, [from, until]: [i64; 2], title: &str| {
            let [start, stop] = [from, until].map(|it| xmltv_time((self.now + it.minutes()).as_second()));
            format!(
                "<programme start=\"{start}\" stop=\"{stop}\" channel=\"{channel}\"><title>{title}</title></programme>\n"
            )
        };
        [
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<tv>\n\
             <channel id=\"news\"><display-name>News</display-name></channel>\n\
             <channel id=\"movies\"><display-name>Movies</display-name></channel>\n",
            &programme("news", [-180, -120], "Early Show"),
            &programme("news", [-20, 40], "World News"),
            &programme("movies", [-180, -120], "The Third Man"),
            "</tv>\n",
        ]
        .concat()
    }

    /// Returns the requests for the past, as start and duration in seconds.
    fn asked(&self) -> Vec<(i64, i64)> {
        let of = |path: &str| {
            let (start, duration) = path.strip_prefix("/past/")?.strip_suffix(".ts")?.split_once('-')?;
            Some((start.parse().ok()?, duration.parse().ok()?))
        };
        self.archive.requests().iter().filter_map(|it| of(&it.0)).collect()
    }
}

/// Waits until the shown position is above a number of seconds.
async fn passes(page: &Page, what: &str, than: f64) {
    page.until(what, POSITION, |it: &Value| it.as_f64().is_some_and(|it| it > than)).await;
}

/// Moves the slider of the player.
async fn seeks(page: &Page, seconds: u32) {
    let seek = format!(
        "const it = document.querySelector('input[type=range]');
         it.value = {seconds};
         it.dispatchEvent(new Event('change', {{ bubbles: true }}));"
    );
    page.browser().script(&seek).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_plays_a_programme_of_the_past_with_seeking_and_starts_the_running_one_over() {
    let station = Station::open().await;
    let office = Page::open_as_admin(&station.gateway, "/sources?kind=guides").await;
    upload_of(&office, &station.guide()).await;
    office.shows("3 programmes").await;
    let kid = person(&station.gateway, "kid", UserLevel::Streamer).await;
    let path = format!("/watch/{}", station.gateway.channel("News").uuid);
    let page = Page::new(Web::signed_in(&station.gateway, &kid, &path).await);
    page.web.has("video[data-state=playing]").await;
    page.presses("Play: Early Show").await;
    // One connection: that of the live channel is closed first.
    passes(&page, "the past of a channel", 1.0).await;
    seeks(&page, 40).await;
    passes(&page, "the past after a seek", 41.0).await;
    let start = (station.now - 180.minutes()).as_second();
    assert!(station.asked().iter().all(|it| *it == (start, 3_600)), "{:?}", station.asked());

    page.web.is_clean().await;
    // An admin sees who watches, and ends it.
    office.web.opens("/now").await;
    office.shows("Past of channels").await;
    office.presses("Disconnect kid").await;
    office.hides("Past of channels").await;

    page.presses("Start over: World News").await;
    let plays = |it: &Value| it.as_f64().is_some_and(|it| it > 1.0);
    page.until("the running programme from its start", TIME, plays).await;
    let start = (station.now - 20.minutes()).as_second();
    assert!(station.asked().iter().any(|it| it.0 == start), "{:?}", station.asked());
    page.presses("5 min back").await;
    page.until("a time before the programme", TIME, plays).await;
    let is_before = |it: &i64| (start - 300..start).contains(it);
    assert!(station.asked().iter().any(|it| is_before(&it.0)), "{:?}", station.asked());
    page.presses("Back to live").await;
    page.until_is("the live channel", "return location.search", json!("")).await;
    page.web.has("video[data-state=playing]").await;
    // A pause is continued where it began.
    let paused = "document.querySelector('video').pause(); window.pausedAt = Date.now()";
    page.browser().script(paused).await;
    page.until_is("a pause", "return Date.now() - window.pausedAt > 16_000", json!(true)).await;
    let asked = station.asked().len();
    page.browser().script("document.querySelector('video').play()").await;
    page.until("the archive after the pause", "return location.search", |it| {
        it.as_str().is_some_and(|it| it.contains("then=live"))
    })
    .await;
    page.until("what was broadcast in the pause", TIME, plays).await;
    let later = |it: &(i64, i64)| it.0 > start + 1_100;
    assert!(station.asked()[asked..].iter().any(later), "{:?}", station.asked());
    page.presses("Back to live").await;
    page.web.has("video[data-state=playing]").await;
    assert_eq!((station.archive.peak(), station.archive.n_refused(), station.live.peak()), (1, 0, 1));
    // The browser reports the answer that the admin ended, and nothing else.
    let console = page.browser().console().await;
    let is_ended = |it: &String| it.contains("/proxy/catchup/") && it.contains("ERR_CONNECTION_RESET");
    assert!(console.iter().all(is_ended), "{console:#?}");
}

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_archive_whose_clock_is_another_one_goes_on_into_the_live_channel() {
        // About five seconds, so that several parts with the same clock and then the live channel follow each other.
        let station = Station::with_archive(film("ts").await[..20_000 * 188].to_vec()).await;
        let kid = person(&station.gateway, "kid", UserLevel::Streamer).await;
        let path = format!("/watch/{}", station.gateway.channel("News").uuid);
        let page = Page::new(Web::signed_in(&station.gateway, &kid, &path).await);
        page.web.has("video[data-state=playing]").await;
        page.presses("30 s back").await;
        page.until("the third part", TIME, |it| it.as_f64().is_some_and(|it| it > 12.0)).await;
        eventually("the live channel", || station.live.open() == 1).await;
        let before = page.browser().script(TIME).await.as_f64().unwrap();
        page.until("what follows", TIME, |it| it.as_f64().is_some_and(|it| it > before + 2.0)).await;
        assert!(station.asked().len() > 1, "{:?}", station.asked());
        page.web.is_clean().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_guide_offers_what_an_archive_has_and_nothing_else() {
        let station = Station::open().await;
        let page = Page::open_as_admin(&station.gateway, "/sources?kind=guides").await;
        upload_of(&page, &station.guide()).await;
        page.shows("3 programmes").await;
        let earlier = (station.now - 181.minutes()).as_second() / 60;
        page.web.opens(&format!("/guide?at={earlier}")).await;
        page.clicks("[role=gridcell] bdi", "The Third Man").await;
        page.shows("Watch the channel").await;
        let plays = "return [...document.querySelectorAll('section[tabindex] .content a')].map((it) => it.textContent.trim())";
        page.until_is("no way to play it", plays, json!(["Watch the channel"])).await;
        page.clicks("[role=gridcell] bdi", "Early Show").await;
        page.until_is("both ways", plays, json!(["Play", "Watch the channel", "Record the series"])).await;
        page.presses("Record").await;
        page.shows("The programme is taken from the archive.").await;
        let start = (station.now - 180.minutes()).as_second();
        eventually("a request for the programme", || station.asked().iter().any(|it| it.0 == start)).await;
        page.presses("Play").await;
        passes(&page, "a programme of the guide", 1.0).await;
        page.web.is_clean().await;
        let path = format!("/watch/{}", station.gateway.channel("News").uuid);
        check(&page.web, &axe(), &path).await;
    }
}
