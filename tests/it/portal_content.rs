//! What accounts at portals have beside live channels: a guide, the past of channels, films and series.

use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::portals::{MAC, PortalFixture, channels};
use crate::support::client::{Request, fetch};
use crate::support::portal::OfferedChannel;
use crate::support::portal_offers::{OfferedProgramme, OfferedTitle, TitleForm, file_bytes};
use crate::support::until_async;
use crate::support::users::create_user;

impl PortalFixture {
    /// Waits until the guide of an account was read; returns its source.
    async fn guide_ended(&self) -> Value {
        let mut seen = Value::Null;
        until_async("the end of the refresh of the guide", async || {
            seen = self.admin.get("/api/epg/sources/").await.body[0].clone();
            ["success", "error"].contains(&seen["status"].as_str().unwrap_or_default())
        })
        .await;
        seen
    }

    /// Waits for the end of a refresh of films and series; returns its result.
    async fn titles_ended(&self, account: &str) -> Value {
        let mut seen = Value::Null;
        until_async("the end of the refresh of films and series", async || {
            seen = self.admin.get(&format!("{account}refresh-vod/")).await.body;
            seen["phase"] == "done"
        })
        .await;
        seen
    }

    /// Requests a file with the credentials of a user.
    async fn file(&self, path: String, range: Option<&str>) -> (u16, Vec<u8>) {
        let mut request = Request::get(path);
        if let Some(range) = range {
            request = request.header("Range", range);
        }
        let answer = fetch(self.gateway.address, request).await;
        (answer.status(), answer.bytes)
    }
}

/// Returns half an hour of a channel. The one with the number 0 began a quarter of an hour ago.
fn half_hour(id: u32, channel: u32, nth: i64, name: &str) -> OfferedProgramme {
    let start = Timestamp::now().as_second() - 900 + nth * 1_800;
    OfferedProgramme { id, channel, start, stop: start + 1_800, name: name.to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guide_of_a_portal_is_created_with_its_account_and_shows_on_its_channels() {
    let fixture = PortalFixture::new(channels(&[(7, "One"), (8, "Two")])).await;
    let portal = &fixture.portal;
    portal.broadcasts(vec![
        half_hour(1, 7, -1, "Over"),
        half_hour(2, 7, 0, "Now on One"),
        half_hour(3, 7, 1, "Next on One"),
        half_hour(4, 8, 0, "Now on Two"),
        half_hour(5, 99, 0, "Of a channel that was not imported"),
    ]);
    fixture.account(json!({ "create_epg": true })).await;
    let source = fixture.guide_ended().await;
    let expected = (&json!("success"), &json!("panel"), &json!("Portal"));
    assert_eq!((&source["status"], &source["source_type"], &source["name"]), expected, "{source}");
    assert_eq!(source["epg_data_count"], 2, "{source}");
    assert!(!source.to_string().contains("12:34:56"), "{source}");
    assert_eq!(portal.questions().iter().filter(|it| *it == "itv/get_epg_info").count(), 1);
    assert_eq!((portal.n_handshakes(MAC), portal.n_links()), (1, 0), "one session for everything");
    for stream in fixture.streams().await {
        fixture.channel_from(&stream).await;
    }
    let grid = fixture.admin.get("/api/epg/grid/").await.body;
    let mut titles: Vec<&str> =
        grid["data"].as_array().unwrap().iter().map(|it| it["title"].as_str().unwrap()).collect();
    titles.sort_unstable();
    assert_eq!(titles, ["Next on One", "Now on One", "Now on Two"], "{grid}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_past_of_a_channel_of_a_portal_plays_from_its_archive() {
    let with_archive = OfferedChannel { archive_hours: 50, ..OfferedChannel::new(7, "One") };
    let fixture = PortalFixture::new(vec![with_archive, OfferedChannel::new(8, "Two")]).await;
    let portal = &fixture.portal;
    // A day has several pages of programmes.
    let programmes: Vec<_> = (1..=80).map(|it| half_hour(it, 7, i64::from(it) - 70, "A programme")).collect();
    portal.broadcasts(programmes.clone());
    fixture.account(json!({})).await;
    let streams = fixture.streams().await;
    let mut ids = Vec::new();
    for stream in &streams {
        fixture.channel_from(stream).await;
        let channels = fixture.gateway.models().channels.load();
        ids.push(channels.iter().find(|it| stream["name"] == it.name.as_str()).expect("it was made").id.0);
    }
    let anna = create_user(&fixture.gateway, "anna", |_| {}).await;
    let password = utf8_percent_encode(&anna.password, NON_ALPHANUMERIC);
    let list = format!("/player_api.php?username={}&password={password}&action=get_live_streams", anna.name);
    let (_, listed) = fixture.file(list, None).await;
    let listed: Value = serde_json::from_slice(&listed).unwrap();
    let days = |name: &str| {
        let found = listed.as_array().unwrap().iter().find(|it| it["name"] == name).expect("it is listed");
        (found["tv_archive"].clone(), found["tv_archive_duration"].clone())
    };
    assert_eq!((days("One"), days("Two")), ((json!(1), json!(3)), (json!(0), json!(0))), "{listed}");
    let past = |id: u32, programme: usize| {
        let start = programmes[programme - 1].start;
        format!("/timeshift{}", anna.path(&format!("30/{start}/{id}.ts")))
    };
    for programme in [1, 30, 60] {
        let (status, bytes) = fixture.file(past(ids[0], programme), None).await;
        let expected = file_bytes(&format!("tv_archive auto /media/{programme}.mpg"));
        assert_eq!((status, bytes == expected), (200, true), "{programme}: {:?}", portal.questions());
    }
    fixture.gateway.until_idle().await;
    assert_eq!((portal.n_links(), portal.n_handshakes(MAC), portal.peak_of(MAC)), (3, 1, 1));
    let (status, _) = fixture.file(past(ids[1], 30), None).await;
    assert!(status >= 400, "{status}: it has no archive");
    assert_eq!(portal.n_links(), 3, "nothing is asked for it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn films_and_series_of_a_portal_are_in_the_library_and_play_over_one_link() {
    let fixture = PortalFixture::new(channels(&[(7, "One")])).await;
    let portal = &fixture.portal;
    let mut offered: Vec<_> =
        (1..=30).map(|it| OfferedTitle::new(it, format!("Film {it:02}"), TitleForm::Film)).collect();
    offered.push(OfferedTitle::new(40, "With files", TitleForm::FilmWithFiles));
    offered.push(OfferedTitle::new(41, "Numbers", TitleForm::Numbered(3)));
    offered.push(OfferedTitle::new(42, "Seasons", TitleForm::Seasons(vec![1, 16])));
    offered.push(OfferedTitle { category: 4, ..OfferedTitle::new(43, "At night", TitleForm::Film) });
    let shows = OfferedTitle { category: 8, ..OfferedTitle::new(1, "Show", TitleForm::Seasons(vec![2])) };
    portal.has_titles(offered, vec![shows]);
    let account = fixture
        .account(json!({
            "enable_vod": true, "auto_enable_new_groups_vod": true, "auto_enable_new_groups_series": true,
        }))
        .await;
    let done = fixture.titles_ended(&account).await;
    assert_eq!(
        (&done["outcome"], &done["movies"], &done["series"]),
        (&json!("success"), &json!(32), &json!(3)),
        "{done}"
    );
    let pages = portal.questions().iter().filter(|it| *it == "vod/get_ordered_list").count();
    assert_eq!(pages, 4, "three of one category and one of the other");
    assert_eq!((portal.n_links(), portal.n_handshakes(MAC)), (0, 1), "the import makes no link");

    let films = fixture.admin.get("/api/vod/movies/?page_size=100").await.body["results"].clone();
    let film = |name: &str| {
        let all = films.as_array().unwrap();
        all.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{name} in {films}")).clone()
    };
    assert_eq!((&film("At night")["is_adult"], &film("Film 01")["is_adult"]), (&json!(true), &json!(false)));
    assert_eq!((&film("Film 01")["year"], &film("Film 01")["genre"]), (&json!(1995), &json!("Crime")));
    let offers =
        fixture.admin.get(&format!("/api/vod/movies/{}/providers/", film("Film 01")["id"])).await.body;
    assert_eq!(offers[0]["m3u_account"]["account_type"], "STALKER", "{offers}");
    assert!(!offers.to_string().contains("media") && !offers.to_string().contains("cmd"), "{offers}");

    let anna = create_user(&fixture.gateway, "anna", |_| {}).await;
    let movie = |name: &str| format!("/movie{}", anna.path(&format!("{}.mp4", film(name)["id"])));
    let expected = file_bytes("vod /media/1.mpg");
    assert_eq!(fixture.file(movie("Film 01"), None).await, (200, expected.clone()));
    // The link is used again for another part, and made again once it has expired.
    let (status, bytes) = fixture.file(movie("Film 01"), Some("bytes=100000-")).await;
    assert_eq!((status, bytes == expected[100_000..]), (206, true));
    portal.expires_files();
    let (status, bytes) = fixture.file(movie("Film 01"), Some("bytes=150000-")).await;
    assert_eq!((status, bytes == expected[150_000..]), (206, true));
    assert_eq!(fixture.file(movie("With files"), None).await, (200, file_bytes("vod /media/file_40000.mpg")));

    let series = fixture.admin.get("/api/vod/series/").await.body["results"].clone();
    for (name, numbers, last) in [
        ("Numbers", vec![json!([1, 1]), json!([1, 2]), json!([1, 3])], "vod /media/41.mpg 3"),
        ("Show", vec![json!([1, 1]), json!([1, 2])], "vod season-1-1 2"),
        (
            "Seasons",
            [json!([1, 1])].into_iter().chain((1..=16).map(|it| json!([2, it]))).collect(),
            "vod /media/file_42216.mpg",
        ),
    ] {
        let found = series.as_array().unwrap().iter().find(|it| it["name"] == name);
        let id = &found.unwrap_or_else(|| panic!("{name} in {series}"))["id"];
        let listed = fixture.admin.get(&format!("/api/vod/series/{id}/episodes/")).await.body;
        let episodes = listed.get("results").unwrap_or(&listed).as_array().unwrap().clone();
        let seen: Vec<Value> =
            episodes.iter().map(|it| json!([it["season_number"], it["episode_number"]])).collect();
        assert_eq!(seen, numbers, "{name}");
        assert!(!listed.to_string().contains("media"), "{listed}");
        let path = format!("/series{}", anna.path(&format!("{}.mp4", episodes.last().unwrap()["id"])));
        assert_eq!(fixture.file(path, None).await, (200, file_bytes(last)), "{name}");
    }
    fixture.gateway.until_idle().await;
    assert_eq!((portal.n_handshakes(MAC), portal.peak_of(MAC)), (1, 1));
    // The same list changes nothing.
    let again = fixture.admin.post(&format!("{account}refresh-vod/"), json!({})).await;
    assert_eq!(again.status, 202, "{again:?}");
    let done = fixture.titles_ended(&account).await;
    assert_eq!(
        (&done["titles_created"], &done["titles_updated"], &done["titles_gone"]),
        (&json!(0), &json!(0), &json!(0)),
        "{done}"
    );
}
