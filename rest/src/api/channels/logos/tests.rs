use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::ids::{AccountId, ProfileId};
use domain::source_url::SourceUrl;
use serde_json::{Value, json};

use super::*;
use crate::testing::Rest;

const CHANNELS: &str = "/api/channels/channels/";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";

async fn make(rest: &Rest, name: &str) -> u64 {
    let body = json!({ "name": name, "url": format!("http://tv.example/{name}.png") });
    let made = rest.admin("POST", LIST, body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.body["id"].as_u64().unwrap()
}

fn one(id: u64) -> String {
    format!("{LIST}{id}/")
}

async fn upload(rest: &Rest, name: &str, content: &[u8]) -> crate::testing::Answer {
    let mut body = format!(
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: image/png\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(content);
    body.extend_from_slice(b"\r\n--b--\r\n");
    let bearer = rest.bearer(crate::testing::ADMIN);
    let headers = [("authorization", bearer.as_str()), ("content-type", "multipart/form-data; boundary=b")];
    rest.send("POST", "/api/channels/logos/upload/", &headers, body).await
}

#[tokio::test]
async fn a_logo_is_created_read_changed_and_deleted() {
    let rest = Rest::start().await;
    let id = make(&rest, "News").await;
    let shown = rest.standard("GET", &one(id), Value::Null).await.body;
    let cache_url = shown["cache_url"].as_str().unwrap();
    let (path, version) = cache_url.rsplit_once('/').unwrap();
    assert!(path.ends_with(&format!("/api/channels/logos/{id}/cache")), "{cache_url}");
    assert!(version.len() == 8 && version.bytes().all(|it| it.is_ascii_hexdigit()), "{cache_url}");
    for (field, value) in [
        ("name", json!("News")),
        ("url", json!("http://tv.example/News.png")),
        ("channel_count", json!(0)),
        ("is_used", json!(false)),
        ("channel_names", json!([])),
        ("is_uploaded", json!(false)),
    ] {
        assert_eq!(shown[field], value, "{field}");
    }
    let again = json!({ "name": "x", "url": "http://tv.example/News.png" });
    let refused = rest.admin("POST", LIST, again).await;
    assert_eq!((refused.status, refused.body), (400, json!({ "url": ["This field must be unique."] })));
    for url in
        ["file:///etc/passwd", "javascript:alert(1)", "/api/channels/logos/1/cache/", "/etc/passwd", ""]
    {
        let refused = rest.admin("POST", LIST, json!({ "name": "x", "url": url })).await;
        assert_eq!(refused.status, 400, "{url}: {}", refused.text);
    }
    let renamed = rest.admin("PATCH", &one(id), json!({ "name": "World" })).await.body;
    assert_eq!((&renamed["name"], &renamed["url"]), (&json!("World"), &shown["url"]));
    assert_ne!(renamed["cache_url"], shown["cache_url"]);
    assert_eq!(rest.admin("DELETE", &one(id), Value::Null).await.status, 204);
    assert_eq!(rest.standard("GET", &one(id), Value::Null).await.status, 404);
    assert_eq!(rest.streamer("GET", LIST, Value::Null).await.status, 403);
}

#[tokio::test]
async fn channels_and_logos_know_each_other() {
    let rest = Rest::start().await;
    let id = make(&rest, "News").await;
    for n in 1..=6 {
        let by_id = json!({ "name": format!("channel {n}"), "logo_id": id });
        assert_eq!(rest.admin("POST", CHANNELS, by_id).await.body["logo_url"], "http://tv.example/News.png");
    }
    let logo = rest.standard("GET", &one(id), Value::Null).await.body;
    assert_eq!((&logo["channel_count"], &logo["is_used"]), (&json!(6), &json!(true)));
    assert_eq!(logo["channel_names"].as_array().unwrap().len(), 5);

    // An address selects its logo, or creates it.
    let channel = format!("{CHANNELS}1/");
    let new = json!({ "logo_url": "http://tv.example/new.png" });
    let changed = rest.admin("PATCH", &channel, new).await.body;
    let new = changed["logo_id"].as_u64().unwrap();
    assert_eq!(rest.standard("GET", &one(new), Value::Null).await.body["url"], "http://tv.example/new.png");
    let same = rest.admin("PATCH", &channel, json!({ "logo_url": "http://tv.example/News.png" })).await.body;
    assert_eq!(same["logo_id"], id);
    let mut whole = rest.admin("GET", &channel, Value::Null).await.body;
    whole["logo_id"] = new.into();
    let changed = rest.admin("PUT", &channel, whole).await.body;
    assert_eq!(changed["logo_url"], "http://tv.example/new.png", "the id has changed, the address has not");
    assert_eq!(
        rest.standard("GET", &format!("{CHANNELS}?logo_id={new}"), Value::Null).await.body["count"],
        1
    );

    // A new address is that of the channels too; a deleted logo leaves them.
    rest.admin("PATCH", &one(new), json!({ "url": "http://tv.example/newer.png" })).await;
    let shown = rest.standard("GET", &channel, Value::Null).await.body;
    assert_eq!((&shown["logo_url"], &shown["logo_id"]), (&json!("http://tv.example/newer.png"), &json!(new)));
    assert_eq!(rest.admin("DELETE", &one(new), Value::Null).await.status, 204);
    let shown = rest.standard("GET", &channel, Value::Null).await.body;
    assert_eq!((&shown["logo_url"], &shown["logo_id"]), (&json!(null), &json!(null)));
}

#[tokio::test]
async fn logos_are_filtered_and_cleaned_up_and_the_cleanup_can_be_undone() {
    let rest = Rest::start().await;
    let (used, free) = (make(&rest, "used").await, make(&rest, "free").await);
    rest.admin("POST", CHANNELS, json!({ "name": "a", "logo_id": used })).await;
    let ids = async |query: &str| -> Vec<u64> {
        let list = rest.standard("GET", &format!("{LIST}?{query}"), Value::Null).await;
        assert_eq!(list.status, 200, "{query}: {}", list.text);
        let results = list.body["results"].as_array().unwrap();
        results.iter().map(|it| it["id"].as_u64().unwrap()).collect()
    };
    assert_eq!(ids("").await, [free, used]);
    assert_eq!(ids("ordering=-name").await, [used, free]);
    assert_eq!((ids("used=true").await, ids("used=false").await), (vec![used], vec![free]));
    assert_eq!((ids("name=US").await, ids("search=free.png").await), (vec![used], vec![free]));
    assert_eq!(ids(&format!("ids={used}&ids=99")).await, [used]);
    let cleaned = rest.admin("POST", &format!("{LIST}cleanup/"), json!({})).await;
    assert_eq!(
        (&cleaned.body["deleted_count"], &cleaned.body["deleted_logos"]),
        (&json!(1), &json!(["free"]))
    );
    assert_eq!(ids("").await, [used]);
    assert_eq!(
        rest.admin("POST", cleaned.body["undo"]["url"].as_str().unwrap(), Value::Null).await.status,
        200
    );
    assert_eq!(ids("").await, [free, used]);

    let deleted = rest.admin("POST", &format!("{LIST}bulk-delete/"), json!({ "ids": [used, 99] })).await;
    assert_eq!(deleted.body["deleted_count"], 1, "{}", deleted.text);
    let channel = format!("{CHANNELS}1/");
    assert_eq!(rest.admin("GET", &channel, Value::Null).await.body["logo_id"], json!(null));
    rest.admin("POST", deleted.body["undo"]["url"].as_str().unwrap(), Value::Null).await;
    assert_eq!(rest.admin("GET", &channel, Value::Null).await.body["logo_id"], used);
    let delete = format!("{LIST}bulk-delete/");
    assert_eq!(rest.admin("DELETE", &delete, json!({ "logo_ids": [used] })).await.status, 204);
    assert_eq!(rest.admin("DELETE", &format!("{delete}?ids={free}"), Value::Null).await.status, 204);
    assert_eq!(ids("").await, [0; 0]);
}

/// pvr.iptvsimple encodes the last segment of `tvg-logo`. With `?v=…` in it, Kodi got 404 for every logo.
#[tokio::test]
async fn a_logo_is_at_every_address_that_players_may_have_stored_also_with_an_encoded_query() {
    let rest = Rest::start().await;
    let made = upload(&rest, "News.png", PNG).await.body;
    let path = |record: &Value| {
        let address = record["cache_url"].as_str().unwrap();
        address[address.find("/api/").unwrap()..].to_owned()
    };
    let (present, cache) = (path(&made), format!("{}cache/", one(made["id"].as_u64().unwrap())));
    let long = "public, max-age=604800";
    let short = "public, max-age=14400";
    for (path, caching) in [
        (present.clone(), long),
        (format!("{present}/"), long),
        // The query of an earlier version, with the present version of the logo.
        (present.replace("/cache/", "/cache/%3fv%3d"), long),
        (cache.clone(), short),
        (format!("{cache}?v=7f34"), short),
        (format!("{cache}%3fv%3d7f34"), short),
        (format!("{cache}%3Fv%3D7f34"), short),
        (format!("{cache}00000000"), short),
    ] {
        let image = rest.send("GET", &path, &[], "").await;
        assert_eq!((image.status, &image.headers["content-type"]), (200, &"image/png".parse().unwrap()));
        assert_eq!(image.headers["cache-control"], caching, "{path}");
        assert_eq!(image.headers["access-control-allow-origin"], "*", "{path}");
        assert_eq!(rest.send("HEAD", &path, &[], "").await.status, 200, "{path}");
    }
    for path in ["7f34.png", "x", "00000000/x"].map(|it| format!("{cache}{it}")) {
        assert_eq!(rest.send("GET", &path, &[], "").await.status, 404, "{path}");
    }
    assert_eq!(rest.send("GET", &format!("{}cache/00000000", one(99)), &[], "").await.status, 404);

    // The image at a former address is the present one, and may be another one soon.
    let id = made["id"].as_u64().unwrap();
    let renamed = rest.admin("PATCH", &one(id), json!({ "name": "World" })).await.body;
    assert_ne!(path(&renamed), present);
    let image = rest.send("GET", &present, &[], "").await;
    assert_eq!((image.status, &image.headers["cache-control"]), (200, &short.parse().unwrap()));
}

#[tokio::test]
async fn an_uploaded_logo_is_served_and_its_file_goes_with_it() {
    let rest = Rest::start().await;
    for content in [&b"<html><script>alert(1)</script></html>"[..], b"", b"MZ.."] {
        let refused = upload(&rest, "x.png", content).await;
        let errors = json!({ "file": ["Upload a PNG, JPEG, GIF, WebP or SVG image."] });
        assert_eq!((refused.status, refused.body), (400, errors));
    }
    let made = upload(&rest, "..\\..\\News.png", PNG).await;
    assert_eq!((made.status, &made.body["name"]), (201, &json!("News")), "{}", made.text);
    let path = made.body["url"].as_str().unwrap().to_owned();
    assert_eq!(path, format!("/api/channels/logos/{}/cache/", made.body["id"]));
    let image = rest.send("GET", &path, &[], "").await;
    assert_eq!((image.status, &image.headers["content-type"]), (200, &"image/png".parse().unwrap()));
    assert_eq!(image.headers["x-content-type-options"], "nosniff");
    let tag = image.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(rest.send("GET", &path, &[("if-none-match", &tag)], "").await.status, 304);

    let channel = rest.admin("POST", CHANNELS, json!({ "name": "a", "logo_url": path })).await;
    assert_eq!(channel.body["logo_id"], made.body["id"], "{}", channel.text);
    let unknown = json!({ "name": "b", "logo_url": "/api/channels/logos/99/cache/" });
    assert_eq!(rest.admin("POST", CHANNELS, unknown).await.status, 400);

    let ids = json!({ "ids": [made.body["id"]] });
    let deleted = rest.admin("POST", &format!("{LIST}bulk-delete/"), ids).await;
    assert_eq!(rest.send("GET", &path, &[], "").await.status, 404);
    rest.admin("POST", deleted.body["undo"]["url"].as_str().unwrap(), Value::Null).await;
    assert_eq!(rest.send("GET", &path, &[], "").await.status, 200, "the file was kept for the undo");
    assert_eq!(rest.admin("DELETE", &one(made.body["id"].as_u64().unwrap()), Value::Null).await.status, 204);

    let svg = upload(&rest, "a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>").await;
    let image = rest.send("GET", svg.body["url"].as_str().unwrap(), &[], "").await;
    assert_eq!(image.headers["content-type"], "image/svg+xml");
    let policy = image.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
}

#[tokio::test]
async fn a_logo_that_cannot_be_fetched_has_a_placeholder_and_an_unknown_one_does_not_exist() {
    let rest = Rest::start().await;
    // A list from the internet may not name this machine.
    let list = PlaylistLocation::Url(SourceUrl::new("http://tv.example/list.m3u"));
    let profile = AccountProfile::default_of(ProfileId(2), "Default", 0);
    rest.put([Account::new(AccountId(2), "tv", list, profile, 0)]).await;
    let logo = Logo {
        id: LogoId(1),
        name: "inside".to_owned(),
        url: "http://127.0.0.1:1/x.png".to_owned(),
        file: None,
        named_by: Some(AccountId(2)),
        guide_source: None,
        updated_at: 0,
    };
    rest.put([logo]).await;
    let image = rest.send("GET", &format!("{}cache/", one(1)), &[], "").await;
    assert_eq!((image.status, &image.headers["content-type"]), (200, &"image/png".parse().unwrap()));
    let tag = image.headers["etag"].to_str().unwrap().to_owned();
    let again = rest.send("GET", &format!("{}cache/", one(1)), &[("if-none-match", &tag)], "").await;
    assert_eq!(again.status, 304);
    assert_eq!(rest.send("GET", &format!("{}cache/", one(99)), &[], "").await.status, 404);
}
