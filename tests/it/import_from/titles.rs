//! Films, series and episodes keep the ids under which players and media servers know them.

use serde_json::{Value, json};

use super::{Data, PASSWORD, export, provider};
use crate::support::api::Api;
use crate::support::panel::Panel;
use crate::support::until_async;

pub const HEAT_UUID: &str = "1a1f78a1-58a7-458f-9878-8178c06af1b4";
pub const GAMMA_UUID: &str = "2a1f78a1-58a7-458f-9878-8178c06af1b4";
pub const PILOT_UUID: &str = "3a1f78a1-58a7-458f-9878-8178c06af1b4";
const USER: &str = "anna-at-panel";
const SECRET: &str = "hunter2-kept";

fn panel() -> Panel {
    let panel = Panel::start(USER, SECRET);
    panel.offers(&[(7, "One")]);
    let category = |id: &str, name: &str| json!({ "category_id": id, "category_name": name, "parent_id": 0 });
    panel.says("get_vod_categories", &json!([category("21", "Action"), category("22", "Drama")]));
    panel.says("get_series_categories", &json!([category("31", "Crime")]));
    let film = |id: u32, name: &str, category: u32| json!({ "stream_id": id, "name": name, "category_id": category.to_string(), "container_extension": "mkv" });
    let films = json!([film(1, "EN - Heat (1995)", 21), film(2, "Up (2009)", 22), film(3, "Ran (1985)", 21)]);
    panel.says("get_vod_streams", &films);
    panel.says("get_vod_streams&category_id=21", &json!([films[0], films[2]]));
    let series = json!([{ "series_id": "7", "name": "Gamma", "category_id": 31, "last_modified": "100" }]);
    panel.says("get_series", &series);
    panel.says("get_series&category_id=31", &series);
    let episode = |id: u32, number: u32, title: &str| json!({ "id": id.to_string(), "episode_num": number, "title": title, "container_extension": "mp4" });
    panel.says(
        "get_series_info&series_id=7",
        &json!({ "info": { "name": "Gamma" }, "episodes": { "1": [
            episode(91, 1, "The pilot"), episode(92, 2, "The second"), episode(93, 3, "The third"),
        ] } }),
    );
    panel
}

async fn one(api: &Api, path: &str, fields: &[&str]) -> Value {
    let answer = api.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    fields.iter().map(|it| answer.body[*it].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn films_series_and_episodes_keep_their_ids_through_the_first_refresh() {
    let (provider, panel, data) = (provider(), panel(), Data::new());
    let source = data.source("export.sql", export::with_titles(&provider, &panel.url(), USER, SECRET));
    let report = data.imported(&source).await;
    for part in [
        "films: 1 taken, 1 skipped",
        "movie 5002: no account that is taken offers it",
        "series: 1 taken",
        "episodes: 2 taken, 1 changes",
        "episode 7002: its uuid is missing",
    ] {
        assert!(report.contains(part), "{part} is missing in:\n{report}");
    }
    let again = data.imported(&source).await;
    assert!(again.contains("films: 0 taken, 1 already there"), "{again}");

    let gateway = data.gateway().await;
    let anna = Api::stranger(&gateway).login("anna", PASSWORD).await;
    let film = async || one(&anna, "/api/vod/movies/5001/", &["id", "uuid"]).await;
    assert_eq!(film().await, json!([5001, HEAT_UUID]));
    let begun = anna.post("/api/m3u/accounts/3/refresh-vod/", json!({})).await;
    assert_eq!(begun.status, 202, "{begun:?}");
    until_async("the end of the refresh of films and series", async || {
        let seen = anna.get("/api/m3u/accounts/3/refresh-vod/").await.body;
        seen["phase"] == "done" && anna.get("/api/vod/movies/").await.body["count"] == 2
    })
    .await;
    // The values are those of the provider, the ids are not.
    let refreshed = one(&anna, "/api/vod/movies/5001/", &["id", "uuid", "name", "year"]).await;
    assert_eq!(refreshed, json!([5001, HEAT_UUID, "EN - Heat (1995)", 1995]));
    let films = anna.get("/api/vod/movies/?ordering=name").await.body;
    let names: Vec<&Value> = films["results"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(json!(names), json!(["EN - Heat (1995)", "Ran (1985)"]), "Drama stays disabled");
    assert_ne!(films["results"][1]["id"], 5001);
    assert_eq!(one(&anna, "/api/vod/series/5001/", &["id", "uuid"]).await, json!([5001, GAMMA_UUID]));
    let episodes = anna.get("/api/vod/series/5001/episodes/").await.body;
    let episodes = episodes.get("results").unwrap_or(&episodes).as_array().unwrap();
    let ids: Vec<Value> =
        episodes.iter().map(|it| json!([it["id"], it["episode_number"], it["name"]])).collect();
    assert_eq!(json!(ids[..2]), json!([[7001, 1, "The pilot"], [7002, 2, "The second"]]));
    assert!(ids[2][0].as_u64().unwrap() > 7002, "{ids:?}");
    assert_eq!(episodes[0]["uuid"], PILOT_UUID);

    // Files of media servers name titles by their uuids.
    for (kind, uuid) in [("movie", HEAT_UUID), ("episode", PILOT_UUID)] {
        let found = anna.get(&format!("/proxy/vod/{kind}/{uuid}")).await;
        assert_ne!(found.status, 404, "{kind}: {found:?}");
    }
    let unknown = anna.get("/proxy/vod/movie/4a1f78a1-58a7-458f-9878-8178c06af1b4").await;
    assert_eq!(unknown.status, 404);
}
