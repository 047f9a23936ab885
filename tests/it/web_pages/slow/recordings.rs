//! Recordings: made by hand and from the guide, watched while they run and after they were stopped, and deleted.

use std::path::PathBuf;

use domain::time::iso_millis;
use domain::user::UserLevel;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::guide;
use crate::guide::fixture::xmltv_time;
use crate::support::api::Api;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Clip;
use crate::support::upstream::Provider;
use crate::support::web::{PASSWORD, Web, person};
use crate::support::{eventually, until_async};
use crate::web_audit::slow::{axe, check};
use crate::web_pages::page::Page;

const TIME: &str = "return document.querySelector('video')?.currentTime ?? 0";
/// The position that the page shows, in seconds.
const POSITION: &str = "return Number(document.querySelector('input[type=range]')?.value ?? 0)";
pub(super) const LIST: &str = "/api/channels/recordings/";
const HOUR: i64 = 3_600_000;
const NEWS: &str = "/news.ts";

/// A gateway with the channels of a guide, of which one plays pictures that a browser can show.
pub(super) struct Studio {
    provider: Provider,
    folder: TempDir,
    pub(super) gateway: TestGateway,
}

impl Studio {
    pub(super) async fn open() -> Studio {
        let provider = Provider::start();
        provider.path(NEWS).plays(Clip::plain().await);
        let folder = tempfile::tempdir().unwrap();
        let recordings = folder.path().join("recordings");
        let url = provider.url(NEWS);
        let list = format!(
            "#EXTM3U\n#EXTINF:-1 tvg-id=\"news\",News\n{url}\n\
             #EXTINF:-1 tvg-id=\"movies\",Movies\nhttp://127.0.0.1:9/2.ts\n"
        );
        // One connection, so that two recordings at the same time conflict.
        let setup = Setup::new().limited_list(&list, 1).config(|it| it.recordings_dir = Some(recordings));
        Studio { provider, folder, gateway: setup.start().await }
    }

    /// Creates a recording of the channel that plays, which begins now or in some hours. Returns its id.
    pub(super) async fn record(&self, api: &Api, hours: i64, title: &str) -> u64 {
        self.record_of(api, "News", hours, title, 50).await
    }

    async fn record_of(&self, api: &Api, channel: &str, hours: i64, title: &str, priority: u32) -> u64 {
        let start = actors::now_ms() + hours * HOUR;
        let made = api
            .post(
                LIST,
                json!({
                    "channel_id": self.gateway.channel(channel).id, "priority": priority, "start_time": iso_millis(start),
                    "end_time": iso_millis(start + HOUR), "custom_properties": { "program": { "title": title } },
                }),
            )
            .await;
        assert_eq!(made.status, 201, "{made:?}");
        made.body["id"].as_u64().unwrap()
    }

    /// Returns the folder of the recordings.
    pub(super) fn recordings(&self) -> PathBuf {
        self.folder.path().join("recordings")
    }

    fn files(&self) -> usize {
        fn count(folder: &std::path::Path) -> usize {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries
                .map(|it| match it.path() {
                    path if path.is_dir() => count(&path),
                    path => usize::from(path.extension().is_some_and(|it| it == "ts")),
                })
                .sum()
        }
        count(self.folder.path())
    }
}

/// Returns the script that reads a fact of the opened recording.
fn fact(name: &str) -> String {
    format!(
        "return [...document.querySelectorAll('dt')].find((it) => it.textContent === '{name}')
            ?.nextElementSibling.textContent"
    )
}

/// Waits until the value of a script is above a number.
async fn passes(page: &Page, what: &str, script: &str, than: f64) {
    page.until(what, script, |it: &Value| it.as_f64().is_some_and(|it| it > than)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_records_by_hand_watches_stops_extends_and_deletes() {
    let studio = Studio::open().await;
    let page = Page::open_as_admin(&studio.gateway, "/recordings").await;
    page.shows("No upcoming recordings").await;
    page.presses("New recording").await;
    page.fills("Channel", "New").await;
    page.clicks("[role=option]", "News 1").await;
    page.fills("Title", "Evening <b>news</b>").await;
    page.presses("Record").await;

    // The page follows the recording without being loaded again.
    page.shows("Evening <b>news</b>").await;
    page.web.has("progress[aria-label='Progress of Evening <b>news</b>']").await;
    let size = "const names = [...document.querySelectorAll('dt')];
        const size = names.find((it) => it.textContent === 'Size')?.nextElementSibling.textContent ?? '';
        return /MiB/.test(size) ? parseFloat(size) : parseFloat(size) / 1024";
    passes(&page, "a file that grows", size, 0.3).await;
    let first = page.browser().script(size).await.as_f64().unwrap();
    passes(&page, "a file that grows further", size, first).await;
    assert_eq!(studio.provider.open(), 1);
    page.presses("Extend").await;
    let end = page.browser().script(&fact("Ends")).await;
    page.presses("By 15 min").await;
    page.shows("The recording ends at").await;
    page.until("another end", &fact("Ends"), |it| *it != end).await;
    page.presses("Undo").await;
    page.until_is("the end as it was", &fact("Ends"), end).await;
    page.presses("Play").await;
    passes(&page, "a recording that plays while it is made", TIME, 1.0).await;
    page.presses("Stop").await;
    page.clicks("dialog[open] button", "Stop").await;
    page.shows("ended by a user").await;
    eventually("the end of the connection", || studio.provider.open() == 0).await;
    page.clicks("summary", "Change what it says about the programme").await;
    page.fills("Episode", "The first <i>one</i>").await;
    page.presses("Save").await;
    page.until_is("the episode", &fact("Episode"), json!("The first <i>one</i>")).await;

    page.presses("All recordings").await;
    page.clicks("[role=tab]", "Done").await;
    page.clicks("li a bdi", "Evening <b>news</b>").await;
    page.presses("Play").await;
    passes(&page, "a recording that plays", POSITION, 1.0).await;
    // While it is paused, a chosen time stays.
    page.presses("Pause").await;
    let seek = "const it = document.querySelector('input[type=range]');
        it.value = 0;
        it.dispatchEvent(new Event('change', { bubbles: true }));";
    page.browser().script(seek).await;
    page.until_is("the beginning", POSITION, json!(0)).await;
    page.presses("Play").await;
    passes(&page, "a recording that plays again", POSITION, 0.5).await;
    assert!(page.browser().script(&fact("File")).await.as_str().is_some_and(|it| it.ends_with(".ts")));
    assert_eq!(studio.files(), 1);
    page.presses("Delete").await;
    page.clicks("dialog[open] button", "Delete").await;
    page.shows("Deleted the recording").await;
    page.shows("No recordings yet").await;
    eventually("no file", || studio.files() == 0).await;
    page.web.is_clean().await;
}

/// The channel and the result of each programme of a rule.
const RESULTS: &str = "return [...document.querySelectorAll('main table tbody tr')]
    .map((it) => `${it.cells[3].textContent} ${it.cells[4].textContent}`.replace(/\\s+/g, ' ').trim())";

/// Returns a guide with a match, an episode during the match, and the same episode after it.
fn match_and_show() -> String {
    let now = Timestamp::now();
    let programme = |channel: &str, [from, until]: [i64; 2], inner: &str| {
        let [start, stop] = [from, until].map(|it| xmltv_time((now + it.hours()).as_second()));
        format!("<programme start=\"{start}\" stop=\"{stop}\" channel=\"{channel}\">{inner}</programme>\n")
    };
    let show = "<title>The Show</title><episode-num system=\"xmltv_ns\">0.3.</episode-num>";
    [
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<tv>\n\
         <channel id=\"news\"><display-name>News</display-name></channel>\n\
         <channel id=\"movies\"><display-name>Movies</display-name></channel>\n",
        &programme("news", [2, 4], "<title>The Match</title>"),
        &programme("movies", [3, 4], show),
        &programme("movies", [6, 7], show),
        "</tv>\n",
    ]
    .concat()
}

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_recording_that_runs_plays_from_every_time_up_to_its_newest_part() {
        let studio = Studio::open().await;
        let root = person(&studio.gateway, "root", UserLevel::Admin).await;
        let admin = Api::stranger_at(studio.gateway.api).login(&root.name, PASSWORD).await;
        let running = studio.record(&admin, 0, "Late show").await;
        let page = Page::new(Web::signed_in(&studio.gateway, &root, &format!("/recordings/{running}")).await);
        page.presses("Play").await;
        passes(&page, "a recording that plays while it is made", TIME, 1.0).await;
        page.presses("Pause").await;
        let end = "return Number(document.querySelector('input[type=range]')?.max ?? 0)";
        passes(&page, "an end that moves", end, 16.0).await;
        page.presses("Play the newest part").await;
        passes(&page, "the newest part", POSITION, 9.0).await;
        let newest = page.browser().script(POSITION).await.as_f64().unwrap();
        page.presses("Play").await;
        passes(&page, "what was recorded since", POSITION, newest + 1.0).await;

        page.presses("Pause").await;
        let seek = "const it = document.querySelector('input[type=range]');
        it.value = 3;
        it.dispatchEvent(new Event('change', { bubbles: true }));";
        page.browser().script(seek).await;
        page.until_is("the chosen time", POSITION, json!(3)).await;
        page.presses("Play").await;
        passes(&page, "the chosen time that plays", POSITION, 4.0).await;
        let before = page.browser().script(end).await.as_f64().unwrap();
        passes(&page, "an end that moves on", end, before).await;
        assert_eq!(studio.provider.open(), 1);
        page.web.is_clean().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_programme_of_the_guide_is_recorded_and_changed() {
        let studio = Studio::open().await;
        let page = Page::open_as_admin(&studio.gateway, "/sources?kind=guides").await;
        guide::upload(&page).await;
        page.web.opens("/guide").await;
        page.clicks("[role=gridcell] bdi", "Weather <b>").await;
        page.presses("Record").await;
        page.shows("The programme will be recorded.").await;
        page.presses("Will be recorded").await;
        page.shows("scheduled").await;
        page.fills("Minutes after the end", "7").await;
        page.presses("Save").await;
        page.shows("7 min after").await;
        page.presses("All recordings").await;
        page.lists("Recordings", 1, &["Weather <b>"]).await;
        page.presses("Delete all upcoming recordings").await;
        page.clicks("[role=menuitem]", "Delete all upcoming recordings").await;
        page.clicks("dialog[open] button", "Delete all upcoming recordings").await;
        page.shows("Deleted 1 recording.").await;
        page.shows("No upcoming recordings").await;
        page.web.is_clean().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_rule_made_from_the_guide_shows_what_it_would_record_and_records_it_until_it_is_deleted() {
        let studio = Studio::open().await;
        let page = Page::open_as_admin(&studio.gateway, "/sources?kind=guides").await;
        guide::upload(&page).await;
        page.web.opens("/guide").await;
        page.clicks("[role=gridcell] bdi", "Weather <b>").await;
        page.presses("Record the series").await;
        page.shows("Programmes of the rule").await;
        page.shows("1 programme").await;
        page.until_is("the result of the programme", RESULTS, json!(["News will be recorded"])).await;
        page.fills("Recordings that stay", "3").await;
        page.presses("Save").await;
        page.shows("The rule was saved.").await;
        page.shows("all episodes, of news, the last 3 stay").await;
        page.clicks("[role=tab]", "Upcoming").await;
        page.lists("Recordings", 1, &["Weather <b>"]).await;

        page.web.opens("/recordings/weekly").await;
        page.fills("Name", "Evening").await;
        page.fills("Channel", "New").await;
        page.clicks("[role=option]", "News 1").await;
        page.fills("Begins at", "20:15").await;
        page.fills("Ends at", "later").await;
        page.presses("Save").await;
        page.shows("Use HH:MM").await;
        page.fills("Ends at", "21:00").await;
        page.fills("Minutes after the end", "5").await;
        page.presses("Save").await;
        page.shows("News, every day, 20:15 to 21:00").await;
        page.clicks("a bdi", "Evening").await;
        let values = "return ['channel', 'padding_before', 'padding_after']
        .map((it) => document.querySelector(`[name=${it}]`)?.value)";
        page.until_is("the values of the rule", values, json!(["News", "", "5"])).await;
        for day in ["Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] {
            page.clicks("label", day).await;
        }
        page.presses("Save").await;
        page.shows("News, Monday and Sunday, 20:15 to 21:00").await;

        page.presses("Apply the rules now").await;
        page.shows("There is nothing new to record.").await;
        let titles =
            "return [...document.querySelectorAll('tbody td:first-child bdi')].map((it) => it.textContent)
        .filter((it) => it.includes('Weather'))";
        page.presses("Actions: Weather <b>").await;
        page.clicks("[role=menuitem]", "Delete").await;
        page.clicks("dialog[open] button", "Delete").await;
        page.shows("Deleted the rule Weather <b>.").await;
        page.hides("all episodes, of news").await;
        page.presses("Undo").await;
        page.shows("The rule Weather <b> is back.").await;
        page.shows("all episodes, of news, the last 3 stay").await;
        page.clicks("[role=tab]", "Upcoming").await;
        page.until_is("the recording of the rule", titles, json!(["Weather <b>"])).await;
        page.clicks("[role=tab]", "Rules").await;
        page.presses("Actions: Weather <b>").await;
        page.clicks("[role=menuitem]", "Delete").await;
        page.clicks("dialog[open] button", "Delete").await;
        page.hides("all episodes, of news").await;
        page.clicks("[role=tab]", "Upcoming").await;
        page.until_is("no recording of the deleted rule", titles, json!([])).await;
        // The refused form is the only failure.
        assert!(page.browser().console().await.iter().all(|it| it.contains("400")));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_page_of_a_rule_marks_each_showing_with_what_the_rule_does() {
        let studio = Studio::open().await;
        let root = person(&studio.gateway, "root", UserLevel::Admin).await;
        let admin = Api::stranger_at(studio.gateway.api).login(&root.name, PASSWORD).await;
        let page = Page::new(Web::signed_in(&studio.gateway, &root, "/sources?kind=guides").await);
        guide::upload_of(&page, &match_and_show()).await;
        page.shows("3 programmes").await;
        page.web.opens("/recordings/rule?title=The%20Show").await;
        let fresh = json!(["Movies will be recorded", "Movies another showing"]);
        page.until_is("the results", RESULTS, fresh.clone()).await;
        page.shows("Another showing is recorded only if the recording of the first one fails.").await;
        page.presses("Save").await;
        page.shows("The rule was saved.").await;
        // The rule that exists says the same, until a user deletes the recording.
        page.clicks("a bdi", "The Show").await;
        page.until_is("the results again", RESULTS, fresh).await;
        check(&page.web, &axe(), "/recordings/rule?title=The%20Show").await;
        let list = admin.get(LIST).await.body;
        assert_eq!(admin.delete(&format!("{LIST}{}/", list["results"][0]["id"])).await.status, 204);
        page.web.opens("/recordings/rule?title=The%20Show").await;
        let deleted = "Movies recorded already the recording was deleted";
        page.until_is("the results after the deletion", RESULTS, json!([deleted, deleted])).await;
        page.fills("Title of the programme", "The Match").await;
        page.until_is("the results of another title", RESULTS, json!(["News will be recorded"])).await;
        page.clicks("label", "Makes recordings").await;
        let off = json!(["News not recorded the rule is off"]);
        page.until_is("the results of a rule that is off", RESULTS, off).await;
        page.web.is_clean().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_recording_that_will_have_no_connection_says_which_account_is_full_and_who_uses_it() {
        let studio = Studio::open().await;
        let root = person(&studio.gateway, "root", UserLevel::Admin).await;
        let admin = Api::stranger_at(studio.gateway.api).login(&root.name, PASSWORD).await;
        studio.record_of(&admin, "News", 2, "The first", 80).await;
        let lost = studio.record_of(&admin, "Movies", 2, "The other", 20).await;
        let page = Page::new(Web::signed_in(&studio.gateway, &root, "/recordings").await);
        page.lists("Recordings", 1, &["The first", "The other"]).await;
        page.shows("no connection").await;
        page.clicks("tbody bdi", "The other").await;
        page.shows("No connection will be free: other recordings come first.").await;
        let row = "return [...document.querySelectorAll('section table tbody tr')]
        .map((it) => [it.cells[0].textContent.trim(), it.cells[1].textContent, it.cells[3].textContent])";
        page.until_is("the full account", row, json!([["list 1", "1", "The first"]])).await;
        page.web.is_clean().await;
        check(&page.web, &axe(), &format!("/recordings/{lost}")).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_recording_without_a_connection_moves_to_the_other_showing_and_back() {
        let studio = Studio::open().await;
        let root = person(&studio.gateway, "root", UserLevel::Admin).await;
        let admin = Api::stranger_at(studio.gateway.api).login(&root.name, PASSWORD).await;
        let page = Page::new(Web::signed_in(&studio.gateway, &root, "/sources?kind=guides").await);
        guide::upload_of(&page, &match_and_show()).await;
        page.shows("3 programmes").await;
        for (title, priority) in [("The Match", 80), ("The Show", 20)] {
            let rule = json!({ "title": title, "priority": priority });
            assert_eq!(admin.post("/api/channels/series-rules/", rule).await.status, 200);
        }
        let starts = async || {
            let list = admin.get(LIST).await.body;
            let all = list["results"].as_array().cloned().unwrap_or_default();
            all.iter().map(|it| (it["title"].clone(), it["start_time"].clone())).collect::<Vec<_>>()
        };
        let planned = starts().await;
        check(&page.web, &axe(), "/recordings").await;
        page.shows("1 recording will have no connection").await;
        page.presses("Record that one instead: The Show").await;
        page.shows("will be recorded.").await;
        page.hides("will have no connection").await;
        page.hides("no connection").await;
        let moved = starts().await;
        assert_eq!((moved.len(), &moved[0]), (2, &planned[0]), "{moved:?}");
        assert_ne!(moved[1], planned[1]);

        page.presses("Undo").await;
        page.shows("1 recording will have no connection").await;
        assert_eq!(starts().await, planned);
        page.clicks("section a bdi", "The Show").await;
        page.shows("No connection will be free: other recordings come first.").await;
        page.presses("Record that one instead").await;
        page.hides("No connection will be free").await;
        assert_eq!(starts().await, moved);
        // The rule that made the recording makes no second one.
        assert_eq!(admin.post("/api/channels/series-rules/evaluate/", json!({})).await.status, 200);
        assert_eq!(starts().await, moved);
        page.web.is_clean().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn users_of_level_1_find_the_page_and_their_own_recordings_if_the_settings_allow_it() {
        let studio = Studio::open().await;
        let root = person(&studio.gateway, "root", UserLevel::Admin).await;
        let kid = person(&studio.gateway, "kid", UserLevel::Standard).await;
        let admin = Api::stranger_at(studio.gateway.api).login(&root.name, PASSWORD).await;
        let office = Page::new(Web::signed_in(&studio.gateway, &root, "/sources?kind=guides").await);
        guide::upload(&office).await;
        studio.record(&admin, 2, "Of the admin").await;
        let page = Page::new(Web::signed_in(&studio.gateway, &kid, "/recordings").await);
        page.shows("You may not open this page").await;
        let entry = "return document.querySelector('nav a[href=\"/recordings\"]') !== null";
        assert_eq!(page.browser().script(entry).await, json!(false));
        page.web.opens("/guide").await;
        page.clicks("[role=gridcell] bdi", "Weather <b>").await;
        page.shows("Watch the channel").await;
        let records = "return [...document.querySelectorAll('button')].some((it) => it.textContent.trim() === 'Record')";
        assert_eq!(page.browser().script(records).await, json!(false));

        // The admin finds the setting by what it does.
        office.web.opens("/settings?q=users of level 1 record").await;
        office.clicks("label", "Users of level 1 record").await;
        office.presses("Save").await;
        office.shows("Saved.").await;
        page.web.opens("/recordings").await;
        page.shows("No upcoming recordings").await;
        assert_eq!(page.browser().script(entry).await, json!(true));
        page.web.opens("/guide").await;
        page.clicks("[role=gridcell] bdi", "Weather <b>").await;
        page.presses("Record").await;
        page.presses("Will be recorded").await;
        page.shows("scheduled").await;
        page.presses("All recordings").await;
        page.lists("Recordings", 1, &["Weather <b>"]).await;

        // One connection is not enough for both; a user without rights over accounts reads no names of them.
        let lost = studio.record_of(&admin, "Movies", 0, "First of all", 100).await;
        until_async("a recording", async || {
            !admin.get(&format!("{LIST}{lost}/")).await.body["forecast"].is_null()
        })
        .await;
        page.shows("1 recording will have no connection").await;
        page.clicks("section a bdi", "Weather <b>").await;
        page.shows("No connection will be free: other recordings come first.").await;
        let accounts =
        "return [...document.querySelectorAll('main a')].filter((it) => it.href.includes('/sources')).length
        + document.querySelectorAll('section table').length";
        assert_eq!(page.browser().script(accounts).await, json!(0));
        page.presses("Delete").await;
        page.clicks("dialog[open] button", "Delete").await;
        page.shows("No upcoming recordings").await;
        for path in ["/recordings", "/recordings?show=rules", "/recordings/new"] {
            check(&page.web, &axe(), path).await;
        }
        assert_eq!(admin.get(LIST).await.body["count"], json!(2), "those of the admin stay");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_pages_of_recordings_have_no_barriers() {
        let studio = Studio::open().await;
        let root = person(&studio.gateway, "root", UserLevel::Admin).await;
        let admin = Api::stranger_at(studio.gateway.api).login(&root.name, PASSWORD).await;
        let long = "خبر <b>News</b> ".repeat(15);
        let upcoming = studio.record(&admin, 2, &long).await;
        let running = studio.record(&admin, 0, &long).await;
        until_async("a running recording", async || {
            admin.get(&format!("{LIST}{running}/")).await.body["status"] == "recording"
        })
        .await;
        let over = studio.record(&admin, 0, &long).await;
        until_async("a file", async || {
            !admin.get(&format!("{LIST}{over}/")).await.body["file_url"].is_null()
        })
        .await;
        assert_eq!(admin.post(&format!("{LIST}{over}/stop/"), json!({})).await.status, 200);
        let web = Web::signed_in(&studio.gateway, &root, "/recordings").await;
        web.has("main h1").await;
        let paths = ["", "?show=running", "?show=done", "?show=rules", "/new", "/rule", "/weekly"]
            .map(|it| format!("/recordings{it}"));
        let opened = [upcoming, running, over].map(|it| format!("/recordings/{it}"));
        let axe = axe();
        for path in paths.iter().chain(&opened) {
            check(&web, &axe, path).await;
        }
    }
}
