//! Films and series: from the login at a panel, or a playlist, to the library, and what happens when the panel lies.

use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::panel::Panel;
use crate::support::until_async;
use crate::support::upstream::MockResponse;

const ACCOUNTS: &str = "/api/m3u/accounts/";
const MOVIES: &str = "/api/vod/movies/?ordering=name";
const USER: &str = "anna-at-panel";
const PASSWORD: &str = "hunter2-kept";

struct Library {
    panel: Panel,
    _gateway: TestGateway,
    admin: Api,
}

impl Library {
    async fn new() -> Library {
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
        let gateway = Setup::new()
            .config(|it| it.limits.vod_request_interval = std::time::Duration::ZERO)
            .start()
            .await;
        let admin = Api::first_admin(&gateway).await;
        Library { panel, _gateway: gateway, admin }
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
        let mut body = json!({
            "name": "Panel", "account_type": "XC", "server_url": self.panel.url(), "username": USER,
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
    let series = library.admin.get("/api/vod/series/").await.body["results"][0].clone();
    assert_eq!(series["name"], "A Series");
    let episodes = async || {
        let all = library.admin.get(&format!("/api/vod/series/{}/episodes/", series["id"])).await.body;
        all.get("results").unwrap_or(&all).as_array().unwrap().len()
    };
    until_async("the episodes", async || episodes().await == 2).await;

    // Switched off, they are streams again.
    assert_eq!(library.admin.patch(&account, json!({ "enable_vod": false })).await.status, 200);
    until_async("the streams to come back", async || streams().await.len() == 5).await;
}
