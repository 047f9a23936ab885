//! Films and series for whom, in which order, and what admins change.

use domain::ids::AccountId;
use domain::user::User;
use domain::vod::{RelationId, TitleDetails, TitleId};
use serde_json::{Value, json};

use crate::testing::{ADMIN, Rest, SECRET, STREAMER};
use crate::title_testing::{DRAMA, put_titles};

async fn with_titles() -> Rest {
    let rest = Rest::start().await;
    put_titles(&rest).await;
    rest
}

async fn ids(rest: &Rest, user: u32, path: &str) -> Vec<u64> {
    let answer = rest.ask(user, "GET", path, Value::Null).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    let results = answer.body.get("results").unwrap_or(&answer.body);
    results.as_array().unwrap().iter().map(|it| it["id"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn every_user_lists_the_titles_that_the_user_may_see() {
    let rest = with_titles().await;
    let movies = "/api/vod/movies/?ordering=id";
    assert_eq!(ids(&rest, ADMIN, movies).await, [1, 2, 3, 4]);
    assert_eq!(ids(&rest, STREAMER, movies).await, [1, 2]);
    let user = (*rest.user(STREAMER)).clone();
    rest.put([User { hide_adult: true, ..user }]).await;
    assert_eq!(ids(&rest, STREAMER, movies).await, [1]);
    assert_eq!(ids(&rest, STREAMER, "/api/vod/all/?search=o").await, [1, 1]);
    for (path, expected) in [
        ("/api/vod/movies/1/", 200),
        ("/api/vod/movies/2/", 404),
        ("/api/vod/movies/3/", 404),
        ("/api/vod/movies/4/", 404),
        ("/api/vod/movies/9/", 404),
        ("/api/vod/movies/4294967295/", 404),
        ("/api/vod/series/1/", 200),
        ("/api/vod/movies/2/stream/", 404),
        ("/api/vod/movies/3/providers/", 404),
        ("/api/vod/episodes/2/", 200),
    ] {
        let answer = rest.streamer("GET", path, Value::Null).await;
        assert_eq!(answer.status, expected, "{path}: {}", answer.text);
        assert!(!answer.text.contains(SECRET));
    }
    let unknown = rest.streamer("GET", "/api/vod/movies/9/", Value::Null).await;
    assert_eq!(unknown.body, json!({ "detail": "No Movie matches the given query." }));
}

#[tokio::test]
async fn a_film_has_the_values_of_its_accounts_and_no_address_of_them_for_users() {
    let rest = with_titles().await;
    let film = rest.streamer("GET", "/api/vod/movies/1/", Value::Null).await.body;
    let fields =
        ["name", "year", "rating", "genre", "duration_secs", "tmdb_id", "ext_id_b", "provider_count"];
    let values: Vec<&Value> = fields.iter().map(|it| &film[*it]).collect();
    let expected = json!(["Metropolis", 1927, "8.3", "Science Fiction, Drama", 9180, "19", "tt0017136", 2]);
    assert_eq!(json!(values), expected);
    let properties = film["custom_properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["backdrop_path", "cast", "director"]);
    let of_admin = rest.admin("GET", "/api/vod/movies/1/providers/", Value::Null).await.body;
    let of_user = rest.streamer("GET", "/api/vod/movies/1/providers/", Value::Null).await.body;
    assert!(of_admin[0]["url"].as_str().unwrap().contains(SECRET));
    assert_eq!(
        (&of_admin[0]["movie"]["id"], &of_admin[0]["movie"]["name"]),
        (&json!(1), &json!("Metropolis"))
    );
    assert_eq!(of_admin[0]["series"], Value::Null);
    let of_series = rest.admin("GET", "/api/vod/series/1/providers/", Value::Null).await.body;
    assert_eq!((&of_series[0]["series"]["id"], &of_series[0]["movie"]), (&json!(1), &Value::Null));
    let episode = rest.streamer("GET", "/api/vod/episodes/2/", Value::Null).await.body;
    let provider = &episode["providers"][0];
    assert_eq!((&provider["episode"]["id"], &provider["episode"]["name"]), (&json!(2), &episode["name"]));
    assert!(provider["custom_properties"].is_object() && provider.get("last_seen").is_some(), "{provider}");
    assert_eq!((&of_user[0]["url"], &of_user[0]["stream_id"]), (&Value::Null, &json!("")));
    assert_eq!((&of_user[1]["label"], &of_user[1]["stream_id"]), (&json!("4K"), &json!("18")));
    let info = rest.streamer("GET", "/api/vod/movies/1/provider-info/", Value::Null).await.body;
    assert_eq!((&info["director"], &info["m3u_account"]["name"]), (&json!("Fritz Lang"), &json!("One")));
    let wrong = rest.streamer("GET", "/api/vod/movies/1/provider-info/?relation_id=25", Value::Null).await;
    assert_eq!(wrong.status, 404);
}

#[tokio::test]
async fn lists_are_filtered_searched_ordered_and_paged() {
    let rest = with_titles().await;
    for (query, expected) in [
        ("category=Drama|movie", vec![3, 1]),
        ("category=101", vec![3, 1]),
        ("category=Drama|series", vec![]),
        ("year=1927", vec![1]),
        ("year_gte=1900&year_lte=1930", vec![1]),
        ("year_gte=1930", vec![]),
        ("rating=8.3", vec![1]),
        ("rating_gte=8", vec![1]),
        ("is_adult=true", vec![2]),
        ("hidden=true", vec![3]),
        ("m3u_account=13&category=101", vec![1]),
        ("name=TROPO", vec![1]),
        ("search=tropo", vec![1]),
        ("genre=fiction", vec![1]),
        ("ordering=-rating&page_size=1", vec![1]),
        ("ids=1,2&ordering=-id", vec![2, 1]),
        ("ordering=-year&page_size=1", vec![1]),
    ] {
        assert_eq!(ids(&rest, ADMIN, &format!("/api/vod/movies/?{query}")).await, expected, "{query}");
    }
    let page = rest.admin("GET", "/api/vod/movies/?page_size=3&page=2", Value::Null).await.body;
    assert_eq!((&page["count"], page["results"].as_array().unwrap().len()), (&json!(4), 1));
    assert_eq!(rest.admin("GET", "/api/vod/movies/?page=3", Value::Null).await.status, 404);
    let all = rest.admin("GET", "/api/vod/all/?ordering=name&search=andor", Value::Null).await.body;
    let first = &all["results"][0];
    assert_eq!((&first["content_type"], &first["episode_count"]), (&json!("series"), &json!(3)));
}

#[tokio::test]
async fn episodes_are_listed_by_season_and_number() {
    let rest = with_titles().await;
    assert_eq!(ids(&rest, STREAMER, "/api/vod/series/1/episodes/").await, [3, 1, 2]);
    assert_eq!(ids(&rest, STREAMER, "/api/vod/episodes/?series=1&season_number=1").await, [1, 2]);
    assert_eq!(ids(&rest, STREAMER, "/api/vod/episodes/?search=would").await, [2]);
    let info = rest.streamer("GET", "/api/vod/series/1/provider-info/", Value::Null).await.body;
    assert_eq!(info["episodes"]["1"][1]["title"], "That Would Be Me");
    assert_eq!(info["episodes"]["0"][0]["container_extension"], "mkv");
}

#[tokio::test]
async fn titles_are_not_created_replaced_or_deleted() {
    let rest = with_titles().await;
    for path in ["/api/vod/movies/", "/api/vod/movies/1/", "/api/vod/series/1/", "/api/vod/episodes/1/"] {
        for method in ["POST", "PUT", "DELETE"] {
            assert_eq!(rest.admin(method, path, json!({})).await.status, 405, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn categories_are_listed_created_and_enabled() {
    let rest = with_titles().await;
    let names = async |user: u32, query: &str| -> Vec<Value> {
        let answer = rest.ask(user, "GET", &format!("/api/vod/categories/{query}"), Value::Null).await;
        answer.body.as_array().unwrap().iter().map(|it| it["name"].clone()).collect()
    };
    assert_eq!(names(STREAMER, "").await, ["Drama", "Late Night", "Space"]);
    assert_eq!(names(ADMIN, "?category_type=movie&enabled=false").await, [SECRET]);
    let create = |ignores: bool| {
        let body =
            json!({ "names": ["Drama", "New"], "category_type": "movie", "ignore_conflicts": ignores });
        rest.admin("POST", "/api/vod/categories/bulk-create/", body)
    };
    assert_eq!(create(false).await.status, 400);
    let created = create(true).await;
    assert_eq!((created.status, &created.body["created_count"]), (201, &json!(1)), "{}", created.text);
    assert_eq!(created.body["ids"][0], DRAMA.0);
    assert_ne!(created.body["ids"][1], 0);
    let enable = json!({ "ids": [DRAMA.0], "m3u_account": 12, "enabled": false });
    let done = rest.admin("POST", "/api/vod/categories/bulk-enable/", enable).await;
    assert_eq!(done.body["updated_count"], 1, "{}", done.text);
    // The other account still offers it.
    let film = rest.streamer("GET", "/api/vod/movies/1/", Value::Null).await.body;
    assert_eq!(film["provider_count"], 1);
    let all = json!({ "ids": [DRAMA.0], "enabled": false });
    rest.admin("POST", "/api/vod/categories/bulk-enable/", all).await;
    assert_eq!(rest.streamer("GET", "/api/vod/movies/1/", Value::Null).await.status, 404);
}

#[tokio::test]
async fn favourites_are_those_of_each_user_that_the_user_may_see() {
    let rest = with_titles().await;
    for path in ["/api/vod/movies/2/favorite/", "/api/vod/series/1/favorite/", "/api/vod/movies/1/favorite/"]
    {
        assert_eq!(rest.streamer("PUT", path, Value::Null).await.status, 204, "{path}");
        assert_eq!(rest.streamer("PUT", path, Value::Null).await.status, 204, "{path}");
    }
    let names = async || -> Vec<Value> {
        let list = rest.streamer("GET", "/api/vod/favorites/", Value::Null).await.body;
        list["results"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect()
    };
    assert_eq!(names().await, ["Metropolis", "Andor", "Late"]);
    assert_eq!(rest.streamer("PUT", "/api/vod/movies/3/favorite/", Value::Null).await.status, 404);
    assert_eq!(rest.streamer("DELETE", "/api/vod/movies/1/favorite/", Value::Null).await.status, 204);
    assert_eq!(names().await, ["Andor", "Late"]);
    let of_admin = rest.admin("GET", "/api/vod/favorites/", Value::Null).await.body;
    assert_eq!(of_admin["count"], 0);
}

#[tokio::test]
async fn an_address_to_play_contains_a_token_for_this_title_only() {
    let rest = with_titles().await;
    let answer = rest.streamer("GET", "/api/vod/movies/1/stream/", Value::Null).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let url = answer.body["url"].as_str().unwrap();
    let film = rest.streamer("GET", "/api/vod/movies/1/", Value::Null).await.body;
    let uuid = film["uuid"].as_str().unwrap();
    let (address, token) = url.split_once("?token=").unwrap();
    assert!(address.ends_with(&format!("/proxy/vod/movie/{uuid}")), "{address}");
    let user = rest.auth.user_of_play_token(token, uuid.parse().unwrap()).unwrap();
    assert_eq!(user.id.0, STREAMER);
    assert!(rest.auth.user_of_play_token(token, uuid::Uuid::from_u128(1)).is_err());
    assert!(rest.auth.user_of_token(token).is_err(), "it plays one title only");
    let episode = rest.streamer("GET", "/api/vod/episodes/2/stream/", Value::Null).await;
    assert!(episode.body["url"].as_str().unwrap().contains("/proxy/vod/episode/"), "{}", episode.text);
}

#[tokio::test]
async fn pictures_are_served_to_everybody_as_copies() {
    let rest = with_titles().await;
    for path in [
        "/api/vod/movies/1/image/",
        "/api/vod/movies/1/image/?kind=backdrop&index=0",
        "/api/vod/movies/1/image/?kind=backdrop&index=9",
        "/api/vod/series/1/image/",
        "/api/vod/episodes/1/image/",
        "/api/vod/vodlogos/2/cache/",
    ] {
        let answer = rest.send("GET", path, &[], "").await;
        let media_type = answer.headers["content-type"].to_str().unwrap();
        assert_eq!((answer.status, media_type), (200, "image/png"), "{path}");
    }
    assert_eq!(rest.send("GET", "/api/vod/movies/99/image/", &[], "").await.status, 404);
    let film = rest.streamer("GET", "/api/vod/movies/1/", Value::Null).await.body;
    let episodes = rest.streamer("GET", "/api/vod/episodes/", Value::Null).await.body;
    let backdrop = &film["custom_properties"]["backdrop_path"][0];
    assert!(backdrop.as_str().unwrap().contains("/image/backdrop-0-"), "{backdrop}");
    for address in [&film["logo"]["cache_url"], backdrop, &episodes["results"][0]["image_url"]] {
        let address = address.as_str().unwrap();
        let (path, version) = address[address.find("/api/").unwrap()..].rsplit_once('/').unwrap();
        // As it is, as addresses of earlier versions, and as a client asks for these that encodes the last segment.
        for last in [
            version,
            "?v=7f34",
            "?kind=backdrop&index=0&v=7f34",
            "%3fv%3d7f34",
            "%3fkind%3dbackdrop%26index%3d0%26v%3d7f34",
        ] {
            let answer = rest.send("GET", &format!("{path}/{last}"), &[], "").await;
            assert_eq!(
                (answer.status, &answer.headers["content-type"]),
                (200, &"image/png".parse().unwrap())
            );
        }
        assert_eq!(rest.send("GET", &format!("{path}/poster.jpg"), &[], "").await.status, 404);
    }
    let logos = rest.streamer("GET", "/api/vod/vodlogos/", Value::Null).await.body;
    assert_eq!(logos["count"], 2);
    let id = film["logo"]["id"].as_u64().unwrap();
    let logo = rest.streamer("GET", &format!("/api/vod/vodlogos/{id}/"), Value::Null).await.body;
    assert_eq!((&logo["name"], &logo), (&json!("Metropolis"), &film["logo"]));
}

#[tokio::test]
async fn pictures_of_titles_are_deleted_until_an_admin_chooses_others() {
    let rest = with_titles().await;
    let path = "/api/vod/vodlogos/bulk-delete/";
    let cleaned = rest.admin("POST", "/api/vod/vodlogos/cleanup/", json!({})).await;
    assert_eq!((cleaned.status, &cleaned.body["deleted_count"]), (200, &json!(0)), "{}", cleaned.text);
    assert_eq!(rest.standard("DELETE", path, json!({ "logo_ids": [1] })).await.status, 403);
    assert_eq!(rest.admin("POST", path, json!({})).await.status, 400);
    let film = "/api/vod/movies/1/";
    let id = rest.admin("GET", film, Value::Null).await.body["logo"]["id"].clone();
    let deleted = rest.admin("DELETE", path, json!({ "logo_ids": [id, id, 4_000_000_000_u32] })).await;
    assert_eq!((deleted.status, &deleted.body["deleted_count"]), (200, &json!(1)), "{}", deleted.text);
    assert_eq!(deleted.body["deleted_logos"], json!(["Metropolis"]));
    assert_eq!(rest.admin("GET", film, Value::Null).await.body["logo"], Value::Null);
    let again = rest.admin("DELETE", &format!("{path}?ids={id}"), json!({})).await;
    assert_eq!((again.status, &again.body["deleted_count"]), (200, &json!(0)));
    let back = rest.admin("PATCH", film, json!({ "logo_url": null })).await;
    assert_eq!(back.body["logo"]["id"], id, "{}", back.text);
}

#[tokio::test]
async fn an_export_needs_its_settings_and_reports_what_it_did() {
    let rest = with_titles().await;
    // Loaded when somebody opened the film.
    let properties = json!({ "cast": "Alfred Abel" }).as_object().unwrap().clone();
    let details = TitleDetails { relation: RelationId(17), account: AccountId(1), loaded_at: 0, properties };
    rest.put([details]).await;
    let path = "/api/vod/export/";
    let refused = rest.admin("POST", path, Value::Null).await;
    assert!(refused.status == 400 && refused.text.contains("strm_folder"), "{}", refused.text);
    let folder = tempfile::tempdir().unwrap();
    let settings =
        json!({ "value": { "strm_folder": folder.path(), "strm_user": STREAMER, "strm_nfo": true } });
    assert_eq!(rest.admin("PATCH", "/api/core/settings/10/", settings).await.status, 200);
    let refused = rest.admin("POST", path, Value::Null).await;
    assert!(refused.status == 400 && refused.text.contains("public_url"), "{}", refused.text);
    let url = json!({ "value": { "public_url": "https://tv.example" } });
    assert_eq!(rest.admin("PATCH", "/api/core/settings/3/", url).await.status, 200);
    let state = exported(&rest).await;
    // Two versions of a film, another film, three episodes, each with facts, and those of the series.
    assert_eq!((&state["error"], &state["written"], &state["kept"]), (&Value::Null, &json!(13), &json!(0)));
    let secret = rest.auth.player_secret(&rest.user(STREAMER));
    let login = format!("https://tv.example/movie/streamer/{}", secret.expose());
    let film = folder.path().join("Movies/Metropolis (1927) [tmdbid-19]");
    let read = |name: &str| std::fs::read_to_string(film.join(name)).unwrap();
    assert_eq!(read("Metropolis (1927) [tmdbid-19].strm"), format!("{login}/17.mkv\n"));
    assert_eq!(read("Metropolis (1927) [tmdbid-19] - 4K.strm"), format!("{login}/18.mkv\n"));
    for name in ["Metropolis (1927) [tmdbid-19].nfo", "Metropolis (1927) [tmdbid-19] - 4K.nfo"] {
        let facts = read(name);
        assert!(facts.contains("<title>Metropolis</title>"), "{facts}");
        assert!(facts.contains("<director>Fritz Lang</director>") && !facts.contains(SECRET), "{facts}");
        assert!(facts.contains("<actor><name>Alfred Abel</name></actor>"), "{facts}");
    }
    assert!(
        folder.path().join("Series/Andor (2022)/Season 01/Andor S01E02 - That Would Be Me.strm").exists()
    );
}

/// Exports, and returns the state afterwards.
async fn exported(rest: &Rest) -> Value {
    let path = "/api/vod/export/";
    let started = rest.admin("POST", path, Value::Null).await;
    assert_eq!(started.status, 202, "{}", started.text);
    loop {
        let state = rest.admin("GET", path, Value::Null).await.body;
        if state["is_running"] == false {
            return state;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_export_without_titles_keeps_the_earlier_one() {
    let rest = with_titles().await;
    let folder = tempfile::tempdir().unwrap();
    let settings = json!({ "value": { "strm_folder": folder.path(), "strm_user": STREAMER } });
    rest.admin("PATCH", "/api/core/settings/10/", settings).await;
    let url = json!({ "value": { "public_url": "https://tv.example" } });
    rest.admin("PATCH", "/api/core/settings/3/", url).await;
    assert_eq!(exported(&rest).await["written"], 6);
    let disable = json!({ "m3u_account": 12, "enabled": false });
    rest.admin("POST", "/api/vod/categories/bulk-enable/", disable).await;
    let partly = exported(&rest).await;
    assert_eq!((&partly["error"], &partly["removed"]), (&Value::Null, &json!(5)));
    let disable = json!({ "m3u_account": 13, "enabled": false });
    rest.admin("POST", "/api/vod/categories/bulk-enable/", disable).await;
    let empty = exported(&rest).await;
    assert!(empty["error"].as_str().unwrap().contains("earlier export is kept"), "{empty}");
    // The film is still offered by the first version of the file.
    let film = folder.path().join("Movies/Metropolis (1927) [tmdbid-19]");
    assert_eq!(std::fs::read_dir(film).unwrap().count(), 1);
}

#[tokio::test]
async fn an_edit_has_priority_until_it_is_undone() {
    let rest = with_titles().await;
    let one = "/api/vod/movies/1/";
    let edited = rest
        .admin("PATCH", one, json!({ "name": "Metropolis!", "year": null, "genre": "", "hidden": true }))
        .await;
    assert_eq!(edited.status, 200, "{}", edited.text);
    assert_eq!((&edited.body["name"], &edited.body["year"]), (&json!("Metropolis!"), &json!(1927)));
    assert_eq!((&edited.body["genre"], &edited.body["hidden"]), (&Value::Null, &json!(true)));
    assert_eq!(rest.streamer("GET", one, Value::Null).await.status, 404);
    let undo = rest.admin("GET", "/api/channels/undo/", Value::Null).await.body;
    let url = undo["results"][0]["url"].as_str().unwrap().to_owned();
    assert_eq!(rest.admin("POST", &url, Value::Null).await.status, 200);
    let film = rest.streamer("GET", one, Value::Null).await.body;
    assert_eq!((&film["name"], &film["genre"]), (&json!("Metropolis"), &json!("Science Fiction, Drama")));
    let taken = rest.admin("PATCH", "/api/vod/movies/2/", json!({ "tmdb_id": "19" })).await;
    assert_eq!((taken.status, taken.body["tmdb_id"].is_array()), (400, true), "{}", taken.text);
    let corrected = rest.admin("PATCH", "/api/vod/movies/2/", json!({ "ext_id_a": "20" })).await.body;
    assert_eq!(corrected["tmdb_id"], "20");
}

#[tokio::test]
async fn many_titles_are_hidden_and_marked_at_once_and_taken_back() {
    let rest = with_titles().await;
    let path = "/api/vod/movies/bulk-edit/";
    let body =
        json!({ "filter": { "category": "Drama|movie" }, "values": { "hidden": true, "is_adult": true } });
    let done = rest.admin("POST", path, body).await;
    assert_eq!((done.status, &done.body["updated_count"]), (200, &json!(2)), "{}", done.text);
    assert_eq!(ids(&rest, STREAMER, "/api/vod/movies/").await, [2]);
    let url = done.body["undo"]["url"].as_str().unwrap().to_owned();
    assert_eq!(rest.admin("POST", &url, Value::Null).await.status, 200);
    assert_eq!(ids(&rest, STREAMER, "/api/vod/movies/?ordering=id").await, [1, 2]);
    assert_eq!(ids(&rest, ADMIN, "/api/vod/movies/?hidden=true").await, [3]);
    for (body, field) in [
        (json!({ "values": { "hidden": true } }), "ids"),
        (json!({ "ids": [1], "values": {} }), "values"),
        (json!({ "ids": [1], "values": { "year": "x" } }), "values"),
        (json!({ "ids": [1, 2], "values": { "tmdb_id": "7" } }), "values"),
        (json!({ "ids": [1], "filter": {}, "values": { "hidden": true } }), "filter"),
    ] {
        let refused = rest.admin("POST", path, body).await;
        let named = refused.body.as_object().unwrap().keys().any(|it| it.starts_with(field));
        assert!(refused.status == 400 && named, "{}", refused.text);
    }
    let missing = rest.admin("POST", path, json!({ "ids": [99], "values": { "hidden": true } })).await;
    assert_eq!((missing.status, missing.body["ids"].is_array()), (400, true));
}

#[tokio::test]
async fn titles_are_merged_and_split_and_their_ids_stay_valid() {
    let rest = with_titles().await;
    let merged = rest.admin("POST", "/api/vod/movies/1/merge/", json!({ "ids": [2] })).await;
    assert_eq!(merged.status, 200, "{}", merged.text);
    assert_eq!(rest.admin("GET", "/api/vod/movies/2/", Value::Null).await.body["id"], 1);
    let providers = rest.admin("GET", "/api/vod/movies/1/providers/", Value::Null).await.body;
    assert_eq!(providers.as_array().unwrap().len(), 3);
    let url = merged.body["undo"]["url"].as_str().unwrap().to_owned();
    assert_eq!(rest.admin("POST", &url, Value::Null).await.status, 200);
    assert_eq!(rest.admin("GET", "/api/vod/movies/2/", Value::Null).await.body["name"], "Late");

    let split = rest.admin("POST", "/api/vod/movies/1/split/", json!({ "relation_ids": [18] })).await;
    assert_eq!(split.status, 200, "{}", split.text);
    let id = split.body["split_id"].as_u64().unwrap();
    let off = rest.streamer("GET", &format!("/api/vod/movies/{id}/"), Value::Null).await.body;
    assert_eq!((&off["name"], &off["provider_count"]), (&json!("Metropolis 4K"), &json!(1)));
    let url = split.body["undo"]["url"].as_str().unwrap().to_owned();
    assert_eq!(rest.admin("POST", &url, Value::Null).await.status, 200);
    assert_eq!(rest.admin("GET", &format!("/api/vod/movies/{id}/"), Value::Null).await.body["id"], 1);
    for body in [json!({ "relation_ids": [17, 18] }), json!({ "relation_ids": [99] }), json!({})] {
        assert_eq!(rest.admin("POST", "/api/vod/movies/1/split/", body).await.status, 400);
    }
    for (body, status) in [(json!({ "ids": [1] }), 400), (json!({ "ids": [99] }), 404)] {
        assert_eq!(rest.admin("POST", "/api/vod/movies/1/merge/", body).await.status, status);
    }
}

#[tokio::test]
async fn stale_relations_are_removed_on_request_with_titles_that_have_no_other() {
    let rest = with_titles().await;
    for (number, at) in [(1, 1), (2, 0)] {
        let mut film = rest.models.vod.get(TitleId::movie(number).unwrap()).unwrap().unwrap();
        film.relations[at].last_seen = Some(1);
        rest.put([film]).await;
    }
    let mut series = rest.models.vod.get(TitleId::series(1).unwrap()).unwrap().unwrap();
    series.relations[0].last_seen = Some(1);
    rest.put([series]).await;
    let path = "/api/vod/clean-stale/";
    let wrong = rest.admin("POST", path, json!({ "m3u_accounts": [99] })).await;
    assert_eq!((wrong.status, wrong.body["m3u_accounts"].is_array()), (400, true));
    let of_other = rest.admin("POST", path, json!({ "m3u_accounts": [13] })).await.body;
    assert_eq!((&of_other["removed_relations"], &of_other["removed_titles"]), (&json!(1), &json!(0)));
    let films = rest.admin("POST", path, json!({ "content_type": "movie" })).await.body;
    assert_eq!((&films["removed_relations"], &films["removed_titles"]), (&json!(1), &json!(1)));
    assert_eq!(rest.admin("GET", "/api/vod/movies/2/", Value::Null).await.status, 404);
    assert_eq!(rest.admin("GET", "/api/vod/episodes/1/", Value::Null).await.status, 200);
    for (body, field) in [
        (json!({ "ids": [1] }), "content_type"),
        (json!({ "ids": [1], "filter": {}, "content_type": "series" }), "filter"),
    ] {
        let refused = rest.admin("POST", path, body).await;
        assert_eq!((refused.status, refused.body[field].is_array()), (400, true), "{}", refused.text);
    }
    for body in [json!({ "ids": [99], "content_type": "series" }), json!({ "filter": { "year": 1900 } })] {
        let none = rest.admin("POST", path, body).await.body;
        assert_eq!(none["removed_relations"], 0, "{none}");
    }
    let selected = json!({ "filter": { "search": "andor" } });
    let rest_of_it = rest.admin("POST", path, selected).await.body;
    assert_eq!((&rest_of_it["removed_titles"], &rest_of_it["has_more"]), (&json!(1), &json!(false)));
    assert_eq!(rest.admin("GET", "/api/vod/episodes/1/", Value::Null).await.status, 404);
    let nothing = rest.admin("POST", path, json!({})).await.body;
    assert_eq!(nothing["removed_relations"], 0);
}

#[tokio::test]
async fn accounts_are_refreshed_and_details_updated_for_many_at_once() {
    let rest = with_titles().await;
    let path = "/api/vod/bulk-refresh/";
    let unknown = rest.admin("POST", path, json!({ "m3u_accounts": [12, 99] })).await;
    assert_eq!((unknown.status, unknown.body["m3u_accounts"].is_array()), (400, true), "{}", unknown.text);
    let named = rest.admin("POST", path, json!({ "m3u_accounts": [12, 12] })).await;
    assert_eq!(named.status, 202, "{}", named.text);
    let rows = named.body["accounts"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["m3u_account"]), (1, &json!(12)));
    assert!(rows[0]["message"].is_string(), "{}", named.text);
    assert_eq!(rest.admin("POST", path, json!({})).await.status, 202);
    for path in [path, "/api/vod/movies/bulk-update-details/", "/api/vod/series/bulk-update-details/"] {
        assert_eq!(rest.streamer("POST", path, json!({ "ids": [1] })).await.status, 403, "{path}");
    }
    assert_eq!(rest.streamer("GET", "/api/vod/details-updates/", Value::Null).await.status, 403);
    let path = "/api/vod/movies/bulk-update-details/";
    for (body, field) in [
        (json!({}), "ids"),
        (json!({ "ids": [1, 99] }), "ids"),
        (json!({ "ids": [1], "filter": {} }), "filter"),
        (json!({ "filter": { "year": "x" } }), "filter"),
    ] {
        let refused = rest.admin("POST", path, body).await;
        let named = refused.body.as_object().unwrap().keys().any(|it| it.starts_with(field));
        assert!(refused.status == 400 && named, "{}", refused.text);
    }
}
