//! Films and series: from the login at a panel, or a playlist, to the library, and what happens when the panel lies.

use std::collections::{BTreeMap, BTreeSet};

use domain::user::UserLevel;
use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::binary::Binary;
use crate::support::client::{Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::panel::Panel;
use crate::support::random::Random;
use crate::support::until_async;
use crate::support::upstream::{Cut, MockResponse};
use crate::support::users::create_user;

const ACCOUNTS: &str = "/api/m3u/accounts/";
const MOVIES: &str = "/api/vod/movies/?ordering=name";
const USER: &str = "anna-at-panel";
const PASSWORD: &str = "hunter2-kept";

struct Library {
    panel: Panel,
    /// None if the gateway is a process of its own.
    gateway: Option<TestGateway>,
    admin: Api,
}

impl Library {
    async fn new() -> Library {
        let panel = Library::panel();
        let gateway = Setup::new()
            .config(|it| it.limits.vod_request_interval = std::time::Duration::ZERO)
            .start()
            .await;
        let admin = Api::first_admin(&gateway).await;
        Library { panel, gateway: Some(gateway), admin }
    }

    fn panel() -> Panel {
        let panel = Panel::start(USER, PASSWORD);
        panel.offers(&[(7, "One")]);
        let category =
            |id: &str, name: &str| json!({ "category_id": id, "category_name": name, "parent_id": 0 });
        panel.says("get_vod_categories", &json!([category("21", "Action"), category("22", "Drama")]));
        panel.says("get_series_categories", &json!([category("31", "Crime")]));
        let film = |id: u32, name: &str, category: u32| json!({ "stream_id": id, "name": name, "category_id": category.to_string(), "container_extension": "mkv" });
        let films = json!([film(1, "EN - Heat (1995)", 21), film(2, "Up (2009)", 22)]);
        panel.says("get_vod_streams&category_id=21", &json!([films[0]]));
        panel.says("get_vod_streams", &films);
        let series =
            json!([{ "series_id": "7", "name": "Gamma", "category_id": 31, "last_modified": "100" }]);
        panel.says("get_series&category_id=31", &series);
        panel.says("get_series", &series);
        panel.says(
            "get_vod_info&vod_id=1",
            &json!({ "info": { "plot": "Two men." }, "movie_data": { "stream_id": 1 } }),
        );
        panel.says(
            "get_series_info&series_id=7",
            &json!({ "info": { "name": "Gamma" }, "episodes": [
                [{ "id": "90", "episode_num": 1, "title": "Special" }],
                [{ "id": "91", "episode_num": "1", "title": "Pilot" }, { "id": 92, "episode_num": 2, "title": 7 }],
            ] }),
        );
        panel
    }

    fn gateway(&self) -> &TestGateway {
        self.gateway.as_ref().expect("the gateway is in this process")
    }

    /// Creates an account and waits for the end of its first refresh; returns its path.
    async fn account(&self, body: Value) -> String {
        let made = self.admin.post(ACCOUNTS, body).await;
        assert_eq!(made.status, 201, "{made:?}");
        let path = format!("{ACCOUNTS}{}/", made.body["id"]);
        self.ended(&path).await;
        path
    }

    /// Creates the account of the panel, and waits for the categories of its films.
    async fn panel_account(&self, more: Value) -> String {
        self.account_of(&self.panel, more).await
    }

    async fn account_of(&self, panel: &Panel, more: Value) -> String {
        let mut body = json!({
            "name": "Panel", "account_type": "XC", "server_url": panel.url(), "username": USER,
            "password": PASSWORD, "enable_vod": true,
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let account = self.account(body).await;
        self.vod_ended(&account).await;
        account
    }

    async fn ended(&self, account: &str) {
        until_async("the end of the refresh", async || {
            let seen = self.admin.get(account).await.body;
            !["idle", "fetching", "parsing"].contains(&seen["status"].as_str().unwrap())
        })
        .await;
    }

    /// Waits for the end of a refresh of films and series; returns its result.
    async fn vod_ended(&self, account: &str) -> Value {
        let mut seen = Value::Null;
        until_async("the end of the refresh of films and series", async || {
            seen = self.admin.get(&format!("{account}refresh-vod/")).await.body;
            seen["phase"] == "done"
        })
        .await;
        seen
    }

    async fn refreshed(&self, account: &str) -> Value {
        let begun = self.admin.post(&format!("{account}refresh-vod/"), json!({})).await;
        assert_eq!(begun.status, 202, "{begun:?}");
        self.vod_ended(account).await
    }

    /// Enables these categories of the account.
    async fn enable(&self, account: &str, names: &[&str]) {
        let listed = self.admin.get("/api/vod/categories/").await.body;
        let all = listed.get("results").unwrap_or(&listed).as_array().unwrap().clone();
        let wanted = all.iter().filter(|it| names.contains(&it["name"].as_str().unwrap()));
        let settings: Vec<Value> = wanted.map(|it| json!({ "id": it["id"], "enabled": true })).collect();
        assert!(settings.len() >= names.len(), "{listed}");
        let changed = self
            .admin
            .patch(&format!("{account}group-settings/"), json!({ "category_settings": settings }))
            .await;
        assert_eq!(changed.status, 200, "{changed:?}");
    }

    async fn films(&self) -> Vec<Value> {
        let listed = self.admin.get(MOVIES).await;
        listed.body["results"].as_array().unwrap_or_else(|| panic!("{listed:?}")).clone()
    }

    /// Returns the id and the UUID of the title of each film of the accounts, by account and the id at the provider.
    async fn identities(&self) -> BTreeMap<(u64, String), (u64, String)> {
        let mut found = BTreeMap::new();
        for film in self.films().await {
            let path = format!("/api/vod/movies/{}/providers/", film["id"]);
            for offer in self.admin.get(&path).await.body.as_array().unwrap() {
                let of = (
                    offer["m3u_account"]["id"].as_u64().unwrap(),
                    offer["stream_id"].as_str().unwrap().to_owned(),
                );
                let title = (film["id"].as_u64().unwrap(), film["uuid"].as_str().unwrap().to_owned());
                assert_eq!(found.insert(of, title), None, "{offer} belongs to one title");
            }
        }
        found
    }

    async fn names(&self) -> Vec<String> {
        self.films().await.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn films_and_series_of_the_categories_that_an_admin_enables_are_in_the_library() {
    let library = Library::new().await;
    let account = library.panel_account(json!({})).await;
    let seen = library.admin.get(&account).await.body;
    let fields = [
        "enable_vod",
        "auto_enable_new_groups_live",
        "auto_enable_new_groups_vod",
        "auto_enable_new_groups_series",
    ];
    assert_eq!(json!(fields.map(|it| seen[it].clone())), json!([true, true, false, false]));
    assert!(library.films().await.is_empty(), "new categories are off");
    assert_eq!(library.panel.n_questions("get_vod_streams"), 0);

    library.enable(&account, &["Action", "Crime"]).await;
    let done = library.refreshed(&account).await;
    assert_eq!(
        (&done["outcome"], &done["movies"], &done["series"]),
        (&json!("success"), &json!(1), &json!(1)),
        "{done}"
    );
    assert_eq!(library.names().await, ["EN - Heat (1995)"]);
    assert_eq!(library.panel.n_questions("get_vod_streams"), 0, "one category is asked for alone");

    // Details come with the first opening, and once.
    let film = library.films().await[0]["id"].clone();
    for _ in 0..2 {
        let info = library.admin.get(&format!("/api/vod/movies/{film}/provider-info/")).await;
        assert_eq!((info.status, &info.body["plot"]), (200, &json!("Two men.")), "{info:?}");
    }
    assert_eq!(library.panel.n_questions("get_vod_info&vod_id=1"), 1);
    let series = library.admin.get("/api/vod/series/").await.body["results"][0]["id"].clone();
    let episodes = library.admin.get(&format!("/api/vod/series/{series}/episodes/")).await.body;
    let episodes = episodes.get("results").unwrap_or(&episodes).as_array().unwrap().clone();
    let numbers: Vec<Value> =
        episodes.iter().map(|it| json!([it["season_number"], it["episode_number"], it["name"]])).collect();
    assert_eq!(json!(numbers), json!([[0, 1, "Special"], [1, 1, "Pilot"], [1, 2, "7"]]));
    assert_eq!(library.panel.n_questions("get_series_info&series_id=7"), 1);
}

/// Holds T-sync.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_lie_of_a_panel_leaves_the_library_and_is_told() {
    let library = Library::new().await;
    let all = json!({ "auto_enable_new_groups_vod": true, "auto_enable_new_groups_series": true });
    let account = library.panel_account(all).await;
    let names = ["EN - Heat (1995)", "Up (2009)"];
    assert_eq!(library.names().await, names);
    let json_text = |text: &str| MockResponse::text("application/json", text.to_owned());
    let enabled = async || {
        let listed = library.admin.get("/api/vod/categories/?enabled=true").await.body;
        let mut ids: Vec<u64> =
            listed.as_array().unwrap().iter().map(|it| it["id"].as_u64().unwrap()).collect();
        ids.sort_unstable();
        ids
    };
    let categories = enabled().await;
    assert!(categories.len() >= 3, "{categories:?}");
    let listed = json!([
        { "category_id": "21", "category_name": "Action", "parent_id": 0 },
        { "category_id": "22", "category_name": "Drama", "parent_id": 0 },
    ]);
    for answer in [json_text("[]"), json_text("false"), MockResponse::html(), MockResponse::status(401)] {
        library.panel.answers("get_vod_categories", answer);
        let done = library.refreshed(&account).await;
        assert_eq!(done["outcome"], "error", "{done}");
        assert_eq!(enabled().await, categories, "{done}");
        assert_eq!(library.names().await, names, "{done}");
    }
    library.panel.says("get_vod_categories", &listed);
    for (answer, told) in [
        (json_text("[]"), "empty"),
        (json_text("null"), "something else"),
        (json_text("{\"user_info\":{\"auth\":0}}"), "refuses"),
        (json_text("[{\"stream_id\":1,\"name\":\"Heat\"},"), "cut off"),
        (MockResponse::html(), "web page"),
        (MockResponse::status(500), "500"),
    ] {
        library.panel.answers("get_vod_streams", answer);
        let done = library.refreshed(&account).await;
        assert_eq!(done["outcome"], "error", "{done}");
        let message = done["message"].as_str().unwrap();
        assert!(message.contains(told) && !message.contains(PASSWORD), "{message}");
        assert_eq!(library.names().await, names, "{message}");
        assert_eq!(enabled().await, categories, "{message}");
    }
    // Wrong types and text before the list cost nothing but the elements that cannot be used.
    let list = "Warning: x\n[{\"stream_id\":\"1\",\"name\":\"EN - Heat (1995)\",\"category_id\":21},{\"stream_id\":2,\
        \"name\":[\"Up (2009)\"],\"category_ids\":[\"22\"],\"rating\":{}},null,{\"name\":\"no id\"}]";
    library.panel.answers("get_vod_streams", json_text(list));
    let done = library.refreshed(&account).await;
    assert_eq!(done["outcome"], "success", "{done}");
    assert!(done["message"].as_str().unwrap().contains("2 left out"), "{done}");
    assert_eq!(library.names().await, names);
    // A panel that asks to wait is asked nothing more.
    library.panel.answers("get_vod_categories", MockResponse::status_with(429, "Retry-After: 3600\r\n"));
    library.refreshed(&account).await;
    let n = library.panel.n_questions("get_vod_categories");
    let begun = library.admin.post(&format!("{account}refresh-vod/"), json!({})).await;
    assert_eq!(begun.status, 202, "{begun:?}");
    let again = library.admin.post(&format!("{account}refresh-vod/"), json!({})).await;
    assert!(again.text("message").contains("already running"), "{again:?}");
    assert_eq!(library.panel.n_questions("get_vod_categories"), n);

    // With the account, its titles go.
    assert_eq!(library.admin.delete(&account).await.status, 204);
    until_async("the titles to go", async || library.films().await.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn films_and_episodes_of_a_playlist_are_titles_if_the_account_wants_them() {
    let library = Library::new().await;
    let list = "#EXTM3U\n\
        #EXTINF:-1 group-title=\"News\",News One\nhttp://tv.example/live/u/p/2.ts\n\
        #EXTINF:-1 group-title=\"VOD\",A Film (2019)\nhttp://tv.example/movie/u/p/3.mkv\n\
        #EXTINF:5400,No Group\nhttp://tv.example/files/film\n\
        #EXTINF:-1 group-title=\"Series\",A Series S01E01 Pilot\nhttp://tv.example/series/u/p/4.mkv\n\
        #EXTINF:-1 group-title=\"Series\",A Series S01E02\nhttp://tv.example/series/u/p/5.mkv\n";
    library.panel.provider.path("/list").answers(MockResponse::text("audio/x-mpegurl", list));
    let url = library.panel.provider.url("/list");
    let account = library.account(json!({ "name": "List", "server_url": url })).await;
    let streams = async || {
        let listed = library.admin.get("/api/channels/streams/?ordering=id&hide_stale=true").await.body;
        let rows = listed["results"].as_array().unwrap().clone();
        rows.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(streams().await.len(), 5);
    let refused = library.admin.post(&format!("{account}refresh-vod/"), json!({})).await;
    assert_eq!(refused.status, 400, "{refused:?}");

    let wanted = json!({
        "enable_vod": true, "auto_enable_new_groups_vod": true, "auto_enable_new_groups_series": true,
    });
    assert_eq!(library.admin.patch(&account, wanted).await.status, 200);
    until_async("the films to be titles", async || library.names().await == ["A Film (2019)", "No Group"])
        .await;
    until_async("the streams to go", async || streams().await == ["News One"]).await;
    let mut series = Value::Null;
    until_async("the series to be a title", async || {
        series = library.admin.get("/api/vod/series/").await.body["results"][0].clone();
        series["name"] == "A Series"
    })
    .await;
    let episodes = async || {
        let all = library.admin.get(&format!("/api/vod/series/{}/episodes/", series["id"])).await.body;
        all.get("results").unwrap_or(&all).as_array().unwrap().len()
    };
    until_async("the episodes", async || episodes().await == 2).await;

    // Switched off, they are streams again.
    assert_eq!(library.admin.patch(&account, json!({ "enable_vod": false })).await.status, 200);
    until_async("the streams to come back", async || streams().await.len() == 5).await;
}

/// Importing everything that a panel offers.
fn everything() -> Value {
    json!({ "auto_enable_new_groups_vod": true, "auto_enable_new_groups_series": true })
}

fn film(id: u32, name: &str, more: Value) -> Value {
    let mut film =
        json!({ "stream_id": id, "name": name, "category_id": "21", "container_extension": "mkv" });
    film.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    film
}

/// Holds T-id.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_stay_through_shuffles_renames_and_gaps_and_every_language_is_kept() {
    let library = Library::new().await;
    let named = |names: &[&str]| -> Vec<Value> {
        (1..).zip(names).map(|(id, name)| film(id, name, json!({}))).collect()
    };
    let mut films =
        named(&["EN - Heat (1995)", "Up (2009)", "DE - Heat (1995)", "Alien (1979)", "FR - Heat (1995) 4K"]);
    library.panel.says("get_vod_streams", &films.clone().into());
    let account = library.panel_account(everything()).await;
    let first = library.identities().await;
    assert_eq!(first.len(), 5);
    let titles: BTreeSet<_> = first.values().collect();
    assert_eq!(titles.len(), 3, "three languages are one film: {first:?}");
    let heat = library.admin.get("/api/vod/movies/?search=heat").await.body;
    assert_eq!((&heat["count"], &heat["results"][0]["provider_count"]), (&json!(1), &json!(3)));

    let (mut random, mut known) = (Random(18), first);
    for round in 0..10 {
        match round {
            3 => films[3]["name"] = json!("Alien: The Director's Cut (1979)"),
            5 => films[1]["name"] = json!("UP [HD]"),
            7 => films.push(film(9, "Brazil (1985)", json!({}))),
            _ => {}
        }
        let mut offered = films.clone();
        random.shuffle(&mut offered);
        offered.pop();
        library.panel.says("get_vod_streams", &offered.into());
        let done = library.refreshed(&account).await;
        assert_eq!(done["outcome"], "success", "{done}");
        let seen = library.identities().await;
        for (of, title) in &known {
            assert_eq!(seen.get(of), Some(title), "round {round}: {of:?}");
        }
        known = seen;
    }
    assert_eq!(known.len(), 6);
}

/// Holds T-id.2, T-sync.2, T-sync.3 and T-pl.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_changes_and_takes_with_it_its_own_films_only() {
    let library = Library::new().await;
    let one = library.panel_account(everything()).await;
    let other = Library::panel();
    // One id for all, which says nothing.
    let films = json!([
        film(1, "Heat (1995)", json!({ "tmdb": "603" })),
        film(2, "Brazil (1985)", json!({ "tmdb": "603" })),
        film(3, "Alien (1979)", json!({ "tmdb": "603" })),
        film(4, "Gattaca (1997)", json!({ "tmdb": "603" })),
        film(5, "Cube (1997)", json!({ "tmdb": "603" })),
    ]);
    other.says("get_vod_streams", &films);
    let mut more = everything();
    more["name"] = json!("Other");
    let two = library.account_of(&other, more).await;
    let names =
        ["Alien (1979)", "Brazil (1985)", "Cube (1997)", "EN - Heat (1995)", "Gattaca (1997)", "Up (2009)"];
    assert_eq!(library.names().await, names);
    let before = library.identities().await;
    let id_of = |account: &str| account.rsplit('/').nth(1).unwrap().parse::<u64>().unwrap();
    let of_two = |all: &BTreeMap<(u64, String), (u64, String)>| -> BTreeMap<_, _> {
        all.iter().filter(|it| it.0.0 == id_of(&two)).map(|it| (it.0.clone(), it.1.clone())).collect()
    };
    assert_eq!(of_two(&before).len(), 5);
    let done = library.refreshed(&two).await;
    assert_eq!((&done["titles_created"], &done["titles_updated"]), (&json!(0), &json!(0)), "{done}");
    library.panel.says("get_vod_streams", &json!([film(2, "Up again (2009)", json!({}))]));
    library.refreshed(&one).await;
    assert_eq!(of_two(&library.identities().await), of_two(&before));

    assert_eq!(library.admin.delete(&one).await.status, 204);
    let names = ["Alien (1979)", "Brazil (1985)", "Cube (1997)", "Gattaca (1997)", "Heat (1995)"];
    until_async("its films to go", async || library.names().await == names).await;
    assert_eq!(library.identities().await, of_two(&before));

    // What the other one no longer lists is stale, and goes when an admin says so.
    other.says("get_vod_streams", &json!(films.as_array().unwrap()[..4]));
    let done = library.refreshed(&two).await;
    assert_eq!(done["titles_gone"], 1, "{done}");
    let of_unknown = json!({ "ids": [4_000_000], "content_type": "movie" });
    for (body, n) in [(of_unknown, 0), (json!({ "content_type": "series" }), 0), (json!({}), 1)] {
        let cleaned = library.admin.post("/api/vod/clean-stale/", body).await;
        assert_eq!((cleaned.status, &cleaned.body["removed_titles"]), (200, &json!(n)), "{cleaned:?}");
    }
    let names = ["Alien (1979)", "Brazil (1985)", "Gattaca (1997)", "Heat (1995)"];
    assert_eq!(library.names().await, names);
}

/// Holds T-sync.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_admin_changed_survives_every_refresh_until_it_is_cleared() {
    let library = Library::new().await;
    let account = library.panel_account(everything()).await;
    let path = format!("/api/vod/movies/{}/", library.films().await[1]["id"]);
    let edit = json!({ "name": "Up, up", "year": 2010, "is_adult": true, "hidden": true });
    assert_eq!(library.admin.patch(&path, edit).await.status, 200);
    let values = async || {
        let film = library.admin.get(&path).await.body;
        json!([film["name"], film["year"], film["is_adult"], film["hidden"], film["genre"]])
    };
    for genre in ["Animation", "Adventure", "Family"] {
        let changed = film(2, "Up High (2009)", json!({ "genre": genre, "year": "2008" }));
        library.panel.says("get_vod_streams", &json!([film(1, "EN - Heat (1995)", json!({})), changed]));
        let done = library.refreshed(&account).await;
        assert_eq!(done["outcome"], "success", "{done}");
        assert_eq!(values().await, json!(["Up, up", 2010, true, true, genre]));
    }
    let clear = json!({ "name": null, "year": null, "is_adult": null, "hidden": false });
    assert_eq!(library.admin.patch(&path, clear).await.status, 200);
    assert_eq!(values().await, json!(["Up High (2009)", 2008, false, false, "Family"]));
}

/// Holds T-id.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_merged_film_plays_under_each_of_its_addresses() {
    let library = Library::new().await;
    library.panel_account(everything()).await;
    let file = b"\x1a\x45\xdf\xa3\x01film of two hours".to_vec();
    for id in [1, 2] {
        let path = format!("/movie/{USER}/{PASSWORD}/{id}.mkv");
        library.panel.provider.path(&path).answers(MockResponse::text("video/x-matroska", file.clone()));
    }
    let films = library.films().await;
    let [heat, up] = [&films[0], &films[1]];
    let body = json!({ "ids": [up["id"]] });
    let merged = library.admin.post(&format!("/api/vod/movies/{}/merge/", heat["id"]), body).await;
    assert_eq!(merged.status, 200, "{merged:?}");
    assert_eq!(library.films().await.len(), 1);
    let address = library.gateway().address;
    let anna = create_user(library.gateway(), "anna", |_| {}).await;
    for film in [heat, up] {
        let found = library.admin.get(&format!("/api/vod/movies/{}/", film["id"])).await.body;
        assert_eq!((&found["id"], &found["uuid"]), (&heat["id"], &heat["uuid"]));
        let by_uuid = format!("/proxy/vod/movie/{}", film["uuid"].as_str().unwrap());
        let by_id = format!("/movie{}", anna.path(&format!("{}.mkv", film["id"])));
        for (path, key) in [(by_uuid, Some(&anna.api_key)), (by_id, None)] {
            let request = Request::get(&path);
            let request = key.iter().fold(request, |it, key| it.header("X-API-Key", key));
            let answer = fetch(address, request).await;
            assert_eq!((answer.status(), &answer.bytes), (200, &file), "{path}");
        }
    }
    // The addresses of the interface, with and without their last slash.
    for path in ["/proxy/vod/stats", "/proxy/vod/stats/", "/proxy/stats", "/proxy/stats/"] {
        assert_eq!(library.admin.get(path).await.status, 200, "{path}");
    }
    for path in ["/proxy/vod/stop_client", "/proxy/vod/stop_client/"] {
        assert_eq!(library.admin.post(path, json!({ "client_id": "none" })).await.status, 404, "{path}");
    }
}

/// Holds T-acc.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_surface_shows_a_user_the_same_films_and_plays_no_other() {
    let library = Library::new().await;
    let films = [
        film(1, "Heat", json!({ "rating": "FSK 16" })),
        film(2, "Up", json!({ "rating": "FSK 6", "category_id": "22" })),
        film(3, "Late", json!({ "is_adult": "1" })),
        film(4, "Unrated", json!({})),
        film(5, "Secret", json!({ "rating": "FSK 6" })),
    ];
    library.panel.says("get_vod_streams", &json!(films));
    for id in 1..=5 {
        let path = format!("/movie/{USER}/{PASSWORD}/{id}.mkv");
        library.panel.provider.path(&path).answers(MockResponse::text("video/x-matroska", "film"));
    }
    library.panel_account(everything()).await;
    let all = library.films().await;
    assert_eq!(all.len(), 5);
    let secret = all.iter().find(|it| it["name"] == "Secret").unwrap()["id"].clone();
    let hidden = json!({ "ids": [secret], "values": { "hidden": true } });
    assert_eq!(library.admin.post("/api/vod/movies/bulk-edit/", hidden).await.status, 200);
    let categories = library.admin.get("/api/vod/categories/?name=Drama").await.body;
    let drama = categories[0]["id"].clone();
    let url = json!({ "value": { "public_url": "https://tv.example" } });
    assert_eq!(library.admin.patch("/api/core/settings/3/", url).await.status, 200);

    let everyone = ["Heat", "Late", "Unrated", "Up"];
    for (n, (level, hides_adult, properties, expected)) in (0..).zip([
        (UserLevel::Admin, false, json!({}), &["Heat", "Late", "Secret", "Unrated", "Up"][..]),
        (UserLevel::Standard, false, json!({}), &everyone),
        (UserLevel::Streamer, false, json!({}), &everyone),
        (UserLevel::Streamer, true, json!({}), &["Heat", "Unrated", "Up"]),
        (UserLevel::Standard, false, json!({ "vod_age_max": 12 }), &["Up"]),
        (
            UserLevel::Streamer,
            false,
            json!({ "vod_age_max": 16, "vod_unrated": true }),
            &["Heat", "Unrated", "Up"],
        ),
        (UserLevel::Streamer, false, json!({ "vod_categories": [drama] }), &["Up"]),
        (UserLevel::Standard, false, json!({ "vod_movies": false }), &[]),
    ]) {
        let name = format!("user{n}");
        let user = create_user(library.gateway(), &name, |it| {
            it.level = level;
            it.hide_adult = hides_adult;
            it.custom_properties = properties.as_object().unwrap().clone();
            it.player_password = Some(domain::secret::Secret::new("remote"));
        })
        .await;
        let expected: BTreeSet<String> = expected.iter().map(|it| (*it).to_owned()).collect();
        let api = Api::stranger(library.gateway()).key(&user.api_key);
        let names = |rows: &Value| -> BTreeSet<String> {
            let rows = rows.get("results").unwrap_or(rows).as_array().unwrap_or_else(|| panic!("{rows}"));
            rows.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&api.get("/api/vod/movies/").await.body), expected, "{name}");
        let both: BTreeSet<String> = names(&api.get("/api/vod/all/?page_size=100").await.body);
        assert_eq!(both.into_iter().filter(|it| it != "Gamma").collect::<BTreeSet<_>>(), expected, "{name}");
        let player = format!("/player_api.php?username={name}&password=remote&action=");
        let rows = api.get(&format!("{player}get_vod_streams")).await.body;
        assert_eq!(names(&rows), expected, "{name} in the panel");
        let list = api.get(&format!("/get.php?username={name}&password=remote&vod=movies")).await;
        let in_list = list.answer.text();
        for film in &all {
            let (id, title) = (&film["id"], film["name"].as_str().unwrap());
            let is_seen = expected.contains(title);
            let status = if is_seen { 200 } else { 404 };
            for path in [
                format!("/api/vod/movies/{id}/"),
                format!("/api/vod/movies/{id}/providers/"),
                format!("/api/vod/movies/{id}/stream/"),
                format!("/movie/{name}/remote/{id}.mkv"),
                format!("{player}get_vod_info&vod_id={id}"),
            ] {
                assert_eq!(api.get(&path).await.status, status, "{name}: {title}: {path}");
            }
            let favourite = api.send("PUT", &format!("/api/vod/movies/{id}/favorite/"), Value::Null).await;
            assert_eq!(favourite.status, if is_seen { 204 } else { 404 }, "{name}: {title}");
            assert_eq!(in_list.contains(&format!("/{id}.mkv")), is_seen, "{name}: {title} in {in_list}");
        }
        let favourites = api.get("/api/vod/favorites/").await.body;
        assert_eq!(names(&favourites), expected, "{name}: favourites");

        if expected.is_empty() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let settings = json!({ "value": { "strm_folder": folder.path(), "strm_user": user.id.0 } });
        assert_eq!(library.admin.patch("/api/core/settings/10/", settings).await.status, 200);
        assert_eq!(library.admin.post("/api/vod/export/", Value::Null).await.status, 202);
        let mut state = Value::Null;
        until_async("the end of the export", async || {
            state = library.admin.get("/api/vod/export/").await.body;
            state["is_running"] == false
        })
        .await;
        assert_eq!(state["error"], Value::Null, "{state}");
        let files = std::fs::read_dir(folder.path().join("Movies")).unwrap();
        let exported: BTreeSet<_> =
            files.map(|it| it.unwrap().file_name().to_string_lossy().into_owned()).collect();
        assert_eq!(exported, expected, "{name}: export");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_during_an_import_leaves_the_library_as_it_was() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().display().to_string();
    let start = || Binary::start(&["serve", "--data-dir", &folder]);
    let mut program = start();
    let admin = Api::stranger_at(program.address().await).become_first_admin().await;
    let mut library = Library { panel: Library::panel(), gateway: None, admin };
    let account = library.panel_account(everything()).await;
    let before = library.identities().await;
    assert_eq!(before.len(), 2);

    // The list of films ends halfway without a word.
    let mut films: Vec<Value> = (1..=500).map(|it| film(it, &format!("Film {it}"), json!({}))).collect();
    films[..2].clone_from_slice(&[film(2, "Up (2009)", json!({})), film(1, "EN - Heat (1995)", json!({}))]);
    let list = json!(films);
    let half = list.to_string().len() as u64 / 2;
    let stalling = MockResponse::text("application/json", list.to_string()).until(half, Cut::Stall);
    library.panel.answers("get_vod_streams", stalling);
    let n = library.panel.n_questions("get_vod_streams");
    let begun = library.admin.post(&format!("{account}refresh-vod/"), json!({})).await;
    assert_eq!(begun.status, 202, "{begun:?}");
    until_async("the list to be asked for", async || library.panel.n_questions("get_vod_streams") > n).await;
    program.signal("KILL");
    program.ended().await;

    let program = start();
    library.admin = Api::stranger_at(program.address().await).become_first_admin().await;
    assert_eq!(library.identities().await, before);
    library.panel.says("get_vod_streams", &list);
    let done = library.refreshed(&account).await;
    assert_eq!((&done["outcome"], &done["titles_created"]), (&json!("success"), &json!(498)), "{done}");
    let first = library.admin.get("/api/vod/movies/?page_size=100&ordering=id").await.body;
    assert_eq!(first["count"], 500);
    for film in first["results"].as_array().unwrap() {
        assert_eq!(film["provider_count"], 1, "{film}");
    }
    for (id, uuid) in before.values() {
        let film = library.admin.get(&format!("/api/vod/movies/{id}/")).await.body;
        assert_eq!(film["uuid"].as_str(), Some(&**uuid));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_accounts_are_refreshed_and_many_details_updated_with_one_request() {
    let library = Library::new().await;
    let account = library.panel_account(everything()).await;
    let begun = library.admin.post("/api/vod/bulk-refresh/", json!({})).await;
    assert_eq!((begun.status, &begun.body["accounts"][0]["task_id"].is_string()), (202, &true), "{begun:?}");
    let done = library.vod_ended(&account).await;
    assert_eq!(
        (&done["task_id"], &done["outcome"]),
        (&begun.body["accounts"][0]["task_id"], &json!("success"))
    );

    // The panel has no details of the second film.
    let films = library.films().await;
    let opened = library.admin.get(&format!("/api/vod/movies/{}/provider-info/", films[0]["id"])).await;
    assert_eq!(opened.body["plot"], "Two men.");
    let changed = json!({ "info": { "plot": "A chase." }, "movie_data": { "stream_id": 1 } });
    library.panel.says("get_vod_info&vod_id=1", &changed);
    for (kind, titles, done, failed) in [("movies", 2, 1, 1), ("series", 1, 1, 0)] {
        let path = format!("/api/vod/{kind}/bulk-update-details/");
        let begun = library.admin.post(&path, json!({ "filter": {} })).await;
        assert_eq!((begun.status, &begun.body["titles"]), (202, &json!(titles)), "{begun:?}");
        let mut seen = Value::Null;
        until_async("the end of the update", async || {
            let all = library.admin.get("/api/vod/details-updates/").await.body;
            seen = all["results"].as_array().unwrap().last().unwrap().clone();
            seen["task_id"] == begun.body["task_id"] && seen["is_done"] == true
        })
        .await;
        assert_eq!((&seen["done"], &seen["failed"]), (&json!(done), &json!(failed)), "{seen}");
        assert!(!seen["message"].as_str().unwrap().contains(PASSWORD), "{seen}");
    }
    let film = library.admin.get(&format!("/api/vod/movies/{}/", films[0]["id"])).await.body;
    assert_eq!(film["description"], "A chase.");
    assert_eq!(library.panel.n_questions("get_series_info&series_id=7"), 1);
}
