//! Reading and rendering of accounts. `tests/it` tests the refreshes over real sockets.

use std::sync::Arc;

use actors::{ApiCall, PluginCaller};
use domain::account::{Account, AccountProfile, CUSTOM_ACCOUNT, PlaylistLocation, RefreshRecord};
use domain::channel::Channel;
use domain::ids::{AccountId, ChannelId, ProfileId, StreamId};
use domain::plan::{PlanContext, PlanRecords, plan_channel};
use domain::plugin::{ApiAccess, ApiScope, Permissions, PluginKey};
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use domain::stream_profile::StreamProfile;
use serde_json::{Value, json};
use uuid::Uuid;

use super::accounts::{LIST, remove_some};
use super::profiles::PatternTrial;
use super::view::{M3UAccountProfileView, M3UAccountView};
use crate::plugin_calls;
use crate::testing::{ADMIN, Rest, SECRET};

async fn make(rest: &Rest, body: Value) -> u32 {
    let made = rest.admin("POST", LIST, body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    u32::try_from(made.body["id"].as_u64().unwrap()).unwrap()
}

fn one(id: u32) -> String {
    format!("{LIST}{id}/")
}

fn profiles(id: u32) -> String {
    format!("{LIST}{id}/profiles/")
}

async fn make_profile(rest: &Rest, account: u32, body: Value) -> u32 {
    let made = rest.admin("POST", &profiles(account), body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    u32::try_from(made.body["id"].as_u64().unwrap()).unwrap()
}

fn login(name: &str) -> Value {
    json!({ "name": name, "search_pattern": "/u/p/", "replace_pattern": "/u2/p2/" })
}

fn stream(id: u32, account: u32) -> Stream {
    let facts = StreamProperties::new(format!("stream {id}"), SourceUrl::new(format!("http://h/{id}")));
    Stream::new(StreamId(id), AccountId(account), facts, 0)
}

fn channel(id: u32, streams: &[u32]) -> Channel {
    let uuid = Uuid::from_u128(u128::from(id));
    let streams = streams.iter().copied().map(StreamId).collect();
    Channel { streams, ..Channel::new(ChannelId(id), uuid, format!("channel {id}"), 0) }
}

#[tokio::test]
async fn an_account_is_created_with_a_name_alone_updated_by_field_and_deleted() {
    let rest = Rest::start().await;
    let made = rest.admin("POST", LIST, json!({ "name": " Provider " })).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let id = made.body["id"].as_u64().unwrap();
    let mut shown = made.body;
    assert_ne!(shown["created_at"], "1970-01-01T00:00:00.000Z");
    let times = ["created_at", "updated_at"].map(|it| shown[it].take());
    assert_eq!(times[0], times[1]);
    let profile = json!({
        "id": id, "is_default": true, "current_viewers": 0, "name": "Default", "max_streams": 0,
        "panel_max_streams": null, "login_state": null, "login_error": null, "login_error_code": null, "discovered_max_streams": null,
        "stated_max_streams": null, "mac_address": null, "device_model": null, "username": null,
        "account": { "id": id, "name": "Provider", "account_type": "STD", "is_xtream_codes": false }, "is_active": true,
        "search_pattern": "", "replace_pattern": "", "custom_properties": {}, "exp_date": null,
    });
    let mut expected = json!({
        "id": id, "locked": false, "server_group": null, "profiles": [profile], "stream_count": 0,
        "stale_stream_count": 0, "status": "idle", "last_message": null, "last_message_code": null, "created_at": null, "updated_at": null,
        "name": "Provider", "server_url": null, "username": null, "file_path": null, "uploaded_file": null, "account_type": "STD",
        "is_active": true, "exp_date": null, "earliest_expiration": null, "all_expirations": [],
        "max_streams": 0, "user_agent": null, "headers": {},
        "headers_for_all_hosts": false, "allowed_networks": "of_playlist", "refresh_interval": 24, "cron_expression": "",
        "stale_stream_days": 7, "priority": 0, "custom_properties": {}, "stream_identity": "url", "rules": [],
        "release_delay": 0.0, "filters": [], "channel_groups": [], "auto_enable_new_groups_live": true,
        "epg_urls": [],
    });
    // The macro cannot hold all properties at once.
    let films = json!({
        "enable_vod": false, "load_all_episodes": false, "auto_enable_new_groups_vod": true,
        "auto_enable_new_groups_series": true, "proxy": null, "further_addresses": [], "nodes": [], "active_address": null,
        "verify_certificate": true, "certificate_fingerprint": null, "certificate_authority": null,
        "active_address_since": null, "active_address_cause": null, "live_form": "auto", "live_form_in_use": null,
        "live_form_source": null, "stream_profile_id": null,
        "identity_keys": ["panel_id", "address", "bare_address", "guide_id", "name_and_group", "name"],
        "mac_address": null, "device_model": null, "crash_cooling": null,
    });
    expected.as_object_mut().unwrap().extend(films.as_object().unwrap().clone());
    assert_eq!(shown, expected);

    let one = format!("{LIST}{id}/");
    let mut expected = rest.admin("GET", &one, Value::Null).await.body;
    let rule = json!({ "field": "name", "find": "^UK: ", "replace": " " });
    for (field, value) in [
        ("name", json!("Other")),
        ("server_url", json!("https://u:p@tv.example/get.php?username=u&password=p")),
        ("is_active", json!(false)),
        ("user_agent", json!("VLC")),
        ("headers", json!({ "Referer": "http://a/", "X-Token": "b" })),
        ("headers_for_all_hosts", json!(true)),
        ("allowed_networks", json!("private")),
        ("allowed_networks", json!("loopback")),
        ("refresh_interval", json!(0)),
        ("cron_expression", json!("30 4 * * *")),
        ("stale_stream_days", json!(0)),
        ("priority", json!(-3)),
        ("custom_properties", json!({ "a": [1] })),
        ("stream_identity", json!("stream_id")),
        ("identity_keys", json!(["guide_id", "address"])),
        ("rules", json!([rule])),
        ("release_delay", json!(1.5)),
        ("crash_cooling", json!(7.5)),
        ("crash_cooling", Value::Null),
        ("account_type", json!("STD")),
        ("auto_enable_new_groups_vod", json!(false)),
        ("auto_enable_new_groups_series", json!(false)),
        ("enable_vod", json!(true)),
        ("load_all_episodes", json!(true)),
        ("user_agent", Value::Null),
    ] {
        let changed = rest.admin("PATCH", &one, json!({ field: value })).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        expected[field] = value;
        expected["status"] = if expected["is_active"] == true { "idle" } else { "disabled" }.into();
        for it in ["updated_at", "profiles"] {
            expected[it] = changed.body[it].clone();
        }
        assert_eq!(changed.body, expected, "{field}");
    }
    let limited = rest.admin("PATCH", &one, json!({ "max_streams": 2 })).await.body;
    assert_eq!((&limited["max_streams"], &limited["profiles"][0]["max_streams"]), (&json!(2), &json!(2)));

    assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 204);
    let gone = rest.admin("GET", &one, Value::Null).await;
    let detail = json!({ "detail": "No M3UAccount matches the given query." });
    assert_eq!((gone.status, gone.body), (404, detail));
    assert_ne!(make(&rest, json!({ "name": "Provider" })).await, u32::try_from(id).unwrap());
}

#[tokio::test]
async fn an_invalid_account_is_refused_by_field() {
    let rest = Rest::start().await;
    make(&rest, json!({ "name": "taken" })).await;
    let folder = std::env::temp_dir();
    let many: Vec<_> = (0..101).map(|_| json!({ "field": "name", "find": "a", "replace": "b" })).collect();
    let headers: Value =
        (0..17).map(|it| (format!("X-{it}"), json!("a"))).collect::<serde_json::Map<_, _>>().into();
    for (field, value, message) in [
        ("name", json!("taken"), "This field must be unique."),
        ("name", json!("ä".repeat(256)), "Ensure this field has no more than 255 characters."),
        ("server_url", json!("not a url"), "Enter a valid URL."),
        ("server_url", json!("ftp://h/list"), "Enter a valid URL."),
        ("server_url", json!("file:///etc/passwd"), "Enter a valid URL."),
        ("file_path", json!("list.m3u"), "Give the absolute path"),
        ("file_path", json!("/no/such/list.m3u"), "The file does not exist"),
        ("file_path", json!(folder), "This is not a file."),
        ("file_path", json!("/dev/zero"), "This is not a file."),
        ("username", json!("u"), "Only an account of the type XC has it."),
        ("password", json!("p"), "Only an account of the type XC has it."),
        ("account_type", json!("ZZ"), "This is not a valid choice."),
        ("account_type", json!(7), "This is not a valid choice."),
        ("max_streams", json!(-1), "Ensure this value is greater than or equal to 0."),
        ("user_agent", json!("a\nb"), "This is not a valid header value."),
        ("headers", json!({ "Host": "h" }), "\"Host\" is not a header that can be set"),
        ("headers", json!({ "X-A": 7 }), "\"X-A\" is not a header that can be set"),
        ("headers", json!({ "User-Agent": "a" }), "Set the user agent with the field user_agent."),
        ("headers", headers, "At most 16 headers are allowed."),
        ("refresh_interval", json!(8761), "Ensure this value is less than or equal to 8760."),
        ("cron_expression", json!("every day"), "A cron expression has five fields"),
        ("cron_expression", json!("0 0 30 2 *"), "The cron expression never matches."),
        ("rules", json!(many), "Ensure this field has no more than 100 elements."),
        ("rules", json!([{ "find": "a", "replace": "" }]), "Item 1: field: This field is required."),
        ("rules", json!([{ "field": "id", "find": "a", "replace": "" }]), "Item 1: field: \"id\" is not"),
        ("rules", json!([{ "field": "name", "find": "(?=a)", "replace": "" }]), "Rule 1: look-ahead"),
        (
            "rules",
            json!([{ "field": "name", "find": "", "replace": "" }]),
            "Item 1: find: This field may not",
        ),
        ("rules", json!(["a"]), "Item 1: Invalid data. Expected an object."),
        ("stream_identity", json!("name"), "\"name\" is not a valid choice."),
        ("release_delay", json!(3601), "Ensure this value is less than or equal to 3600."),
        ("crash_cooling", json!(3601), "Ensure this value is less than or equal to 3600."),
        ("crash_cooling", json!(-1), "Ensure this value is greater than or equal to 0."),
        ("release_delay", json!(-0.5), "Ensure this value is greater than or equal to 0."),
    ] {
        let mut body = json!({ "name": "new" });
        body[field] = value.clone();
        let refused = rest.admin("POST", LIST, body).await;
        let said = refused.body[field][0].as_str().unwrap_or_default();
        assert!(refused.status == 400 && said.starts_with(message), "{field} {value}: {}", refused.text);
    }
    let refused = rest.admin("POST", LIST, json!({})).await;
    assert_eq!((refused.status, refused.body), (400, json!({ "name": ["This field is required."] })));
    let both = json!({ "name": "a", "server_url": "http://h/", "file_path": "/a" });
    let refused = rest.admin("POST", LIST, both).await;
    let errors = json!({ "non_field_errors": ["Give server_url or file_path, not both."] });
    assert_eq!((refused.status, refused.body), (400, errors));
}

#[tokio::test]
async fn an_account_has_a_url_or_a_file_or_neither_and_setting_one_removes_the_other() {
    let rest = Rest::start().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let id = make(&rest, json!({ "name": "a" })).await;
    let url = "http://h/list.m3u";
    for (body, now_url, now_file) in [
        (json!({ "server_url": url }), Some(url), None),
        (json!({ "file_path": null }), Some(url), None),
        (json!({ "file_path": "", "name": "b" }), Some(url), None),
        (json!({ "file_path": path }), None, Some(path)),
        (json!({ "server_url": null }), None, Some(path)),
        (json!({ "server_url": url, "file_path": null }), Some(url), None),
        (json!({ "server_url": "", "file_path": "" }), None, None),
        (json!({ "file_path": path, "server_url": null }), None, Some(path)),
        (json!({ "file_path": null }), None, None),
    ] {
        let changed = rest.admin("PATCH", &one(id), body.clone()).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        let shown = (changed.body["server_url"].as_str(), changed.body["file_path"].as_str());
        assert_eq!(shown, (now_url, now_file), "{body}");
    }
}

/// If the file has disappeared since, the next refresh reports it, not an unrelated edit.
#[tokio::test]
async fn a_file_is_checked_only_if_it_is_another_one() {
    let rest = Rest::start().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    let id = make(&rest, json!({ "name": "a", "file_path": path })).await;
    drop(file);
    let body = json!({ "name": "b", "file_path": path });
    assert_eq!(rest.admin("PUT", &one(id), body).await.status, 200);
    let again = rest.admin("POST", LIST, json!({ "name": "c", "file_path": path })).await;
    assert_eq!(again.status, 400);
}

// Holds T-acc.2: the helper searches every answer to users other than admins for the secret.
#[tokio::test]
async fn only_admins_see_the_credentials_of_a_provider() {
    let rest = Rest::start().await;
    let body = json!({
        "name": "a",
        "server_url": format!("http://{SECRET}:{SECRET}@tv.example:8080/{SECRET}?password={SECRET}"),
        "headers": { "Cookie": SECRET, "Referer": format!("http://h/{SECRET}") },
        "custom_properties": { "password": SECRET },
        "rules": [{ "field": "url", "find": SECRET, "replace": SECRET }],
    });
    let id = make(&rest, body.clone()).await;
    let profile = json!({
        "name": "b", "search_pattern": SECRET, "replace_pattern": SECRET, "custom_properties": { "a": SECRET },
    });
    let profile = make_profile(&rest, id, profile).await;
    let seen = rest.admin("GET", &one(id), Value::Null).await.body;
    for field in ["server_url", "headers", "custom_properties", "rules"] {
        assert_eq!(seen[field], body[field], "{field}");
    }
    assert_eq!(seen["profiles"][1]["search_pattern"], SECRET);

    let seen = rest.standard("GET", &one(id), Value::Null).await.body;
    assert_eq!(seen["server_url"], "http://tv.example:8080/");
    assert_eq!(seen["headers"], json!({ "Cookie": "***", "Referer": "***" }));
    assert_eq!((&seen["custom_properties"], &seen["rules"]), (&json!({}), &json!([])));
    let profile = format!("{}{profile}/", profiles(id));
    for path in [LIST, &profiles(id), &profile, "/api/m3u/refresh/", &format!("/api/m3u/refresh/{id}/")] {
        assert_eq!(rest.standard("GET", path, Value::Null).await.status, 200, "{path}");
        assert_eq!(rest.streamer("GET", path, Value::Null).await.status, 403, "{path}");
    }
    let file = tempfile::Builder::new().prefix(SECRET).tempfile().unwrap();
    rest.admin("PATCH", &one(id), json!({ "file_path": file.path() })).await;
    assert_eq!(rest.standard("GET", &one(id), Value::Null).await.body["file_path"], Value::Null);
    // A slash in a password: the apparent host may be part of the password.
    rest.admin("PATCH", &one(id), json!({ "server_url": format!("http://user/{SECRET}@h/") })).await;
    assert_eq!(rest.standard("GET", &one(id), Value::Null).await.body["server_url"], Value::Null);
}

/// A misspelled zone silently became UTC, so that a provider got every start some hours off.
#[tokio::test]
async fn the_time_zone_of_a_provider_has_to_exist() {
    let rest = Rest::start().await;
    let body = |zone: Value| json!({ "name": "a", "custom_properties": { "timezone": zone } });
    let made = rest.admin("POST", "/api/m3u/accounts/", body(json!("Europe/Paris"))).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let path = format!("/api/m3u/accounts/{}/", made.body["id"]);
    for zone in [json!("Europe/Pariss"), json!(""), json!(2)] {
        let refused = rest.admin("PATCH", &path, body(zone)).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert!(refused.body.get("custom_properties").is_some(), "{}", refused.text);
    }
    assert_eq!(rest.admin("PATCH", &path, body(Value::Null)).await.status, 200);
}

/// Only the field allows nearer networks, for people, API keys and plugins alike: an upload alone does not.
#[tokio::test]
async fn only_the_field_allows_networks_for_every_kind_of_caller() {
    const MULTIPART: &str = "multipart/form-data; boundary=XX";
    let rest = Rest::start().await;
    let strict = "of_playlist";
    let (token, key) = (rest.bearer(ADMIN), rest.user(ADMIN).api_key.clone().unwrap());
    let credentials = [("authorization", &*token), ("x-api-key", key.key.expose())];
    for (caller, credential) in credentials.into_iter().enumerate() {
        let list = "#EXTM3U\n#EXTINF:-1,One\nhttp://10.255.255.1:9/1\n";
        let upload = async |method: &str, path: &str, fields: &[(&str, &str)]| {
            let field = |(name, value): &(&str, &str)| {
                format!("--XX\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
            };
            let file = "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.m3u\"\r\n\r\n";
            let body = fields.iter().map(field).collect::<String>() + file + list + "\r\n--XX--\r\n";
            rest.send(method, path, &[credential, ("content-type", MULTIPART)], body).await
        };
        for (networks, expected) in [
            (None, strict),
            (Some(strict), strict),
            (Some("private"), "private"),
            (Some("loopback"), "loopback"),
        ] {
            let name = format!("{caller} {networks:?}");
            let mut fields = vec![("name", &*name)];
            fields.extend(networks.map(|it| ("allowed_networks", it)));
            let made = upload("POST", LIST, &fields).await;
            assert_eq!(
                (made.status, &made.body["allowed_networks"]),
                (201, &json!(expected)),
                "{}",
                made.text
            );
            // The next file changes nothing about it.
            let path = format!("{LIST}{}/", made.body["id"]);
            for (method, path) in [("POST", format!("{path}upload/")), ("PATCH", path)] {
                let replaced = upload(method, &path, &[]).await;
                assert_eq!((replaced.status, &replaced.body["allowed_networks"]), (200, &json!(expected)));
            }
        }
        let made = upload("POST", LIST, &[("name", "wrong"), ("allowed_networks", "public")]).await;
        assert_eq!((made.status, made.body["allowed_networks"].is_array()), (400, true), "{}", made.text);
    }

    // A plugin sends no files.
    let scopes = [ApiScope::parse("accounts:write").unwrap()].into();
    let permissions = Permissions { api: ApiAccess::Scopes(scopes), ..Permissions::none() };
    let plugin = Arc::new(PluginCaller { key: PluginKey::from_folder("demo").unwrap(), permissions });
    let call = async |method: &str, path: &str, body: Value| {
        let call = ApiCall {
            method: method.to_owned(),
            path: path.to_owned(),
            query: String::new(),
            body: Some(body),
        };
        let answer = plugin_calls(&rest.frame).answer(Arc::clone(&plugin), call).await;
        (answer.status, serde_json::from_str::<Value>(&answer.body).unwrap())
    };
    let (status, made) =
        call("POST", LIST, json!({ "name": "plugin", "server_url": "http://tv.example/list" })).await;
    assert_eq!((status, &made["allowed_networks"]), (201, &json!(strict)), "{made}");
    let path = format!("{LIST}{}/", made["id"]);
    let (status, changed) = call("PATCH", &path, json!({ "priority": 1 })).await;
    assert_eq!((status, &changed["allowed_networks"]), (200, &json!(strict)), "{changed}");
    assert_eq!(call("POST", &format!("{path}upload/"), json!({})).await.0, 403);
}

#[tokio::test]
async fn the_built_in_account_is_listed_and_locked() {
    let rest = Rest::start().await;
    let path = one(CUSTOM_ACCOUNT.0);
    let shown = rest.standard("GET", &path, Value::Null).await;
    assert_eq!((shown.status, &shown.body["locked"]), (200, &json!(true)));
    let profile = format!("{}1/", profiles(CUSTOM_ACCOUNT.0));
    for (method, path, body) in [
        ("PUT", &path, json!({ "name": "b" })),
        ("PATCH", &path, json!({})),
        ("DELETE", &path, Value::Null),
        ("POST", &profiles(CUSTOM_ACCOUNT.0), login("b")),
        ("PATCH", &profile, json!({ "max_streams": 1 })),
        ("DELETE", &profile, Value::Null),
    ] {
        let refused = rest.admin(method, path, body).await;
        assert!(refused.status == 400 && refused.text.contains("built-in"), "{}", refused.text);
    }
}

#[tokio::test]
async fn accounts_are_filtered_by_name_and_state_and_sorted() {
    let rest = Rest::start().await;
    for (name, is_active, priority) in [("Beta", true, 1), ("alpha", false, 2), ("Alphabet", true, 3)] {
        make(&rest, json!({ "name": name, "is_active": is_active, "priority": priority })).await;
    }
    for (query, names) in [
        ("", "custom Beta alpha Alphabet"),
        ("search=ALPHA", "alpha Alphabet"),
        ("name=alpha&is_active=true", "Alphabet"),
        ("is_active=false", "alpha"),
        ("ordering=name", "alpha Alphabet Beta custom"),
        ("ordering=-priority&page_size=2", "Alphabet alpha"),
    ] {
        let found = rest.standard("GET", &format!("{LIST}?{query}"), Value::Null).await.body;
        let found: Vec<_> =
            found["results"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(found.join(" "), names, "{query}");
    }
}

#[tokio::test]
async fn a_deleted_account_removes_its_streams_and_keeps_the_channels_and_all_other_streams() {
    let rest = Rest::start().await;
    let [gone, stays] =
        [make(&rest, json!({ "name": "a" })).await, make(&rest, json!({ "name": "b" })).await];
    rest.put((1..=500).map(|it| stream(it, gone))).await;
    rest.put([stream(1001, stays), stream(1002, CUSTOM_ACCOUNT.0)]).await;
    let refresh: RefreshRecord = serde_json::from_value(
        json!({ "account": gone, "outcome": "success", "message": "good", "tried_at": 1 }),
    )
    .unwrap();
    rest.put([refresh]).await;
    rest.put([channel(1, &[7, 1001, 8, 1002]), channel(2, &[9]), channel(3, &[1001])]).await;
    assert_eq!(rest.standard("GET", &one(gone), Value::Null).await.body["stream_count"], 500);

    assert_eq!(rest.admin("DELETE", &one(gone), Value::Null).await.status, 204);
    let channels = rest.models.channels.load();
    let streams = |id| channels.get(id).unwrap().streams.iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!([streams(1), streams(2), streams(3)], [vec![1001, 1002], vec![], vec![1001]]);
    assert_eq!(rest.models.store.collection::<Stream>().ids(), [1001, 1002]);
    assert!(rest.models.refreshes.load().is_empty());
    assert_eq!(rest.admin("DELETE", &one(gone), Value::Null).await.status, 404);
}

#[tokio::test]
async fn an_account_in_more_channels_than_a_commit_can_change_is_deleted_in_several_commits() {
    let rest = Rest::start().await;
    let id = make(&rest, json!({ "name": "a" })).await;
    rest.put([stream(1, id)]).await;
    rest.put((1..=5).map(|it| channel(it, &[1]))).await;
    let mut left = Vec::new();
    loop {
        let is_done = rest.models.store.write(move |write| remove_some(write, id, 2)).await;
        let is_done = is_done.unwrap_or_else(|_| panic!("the account is there"));
        let channels = rest.models.channels.load();
        left.push(channels.iter().filter(|it| !it.streams.is_empty()).count());
        if is_done {
            break;
        }
    }
    assert_eq!(left, [3, 1, 0]);
    assert!(rest.models.accounts.load().get(id).is_none());
}

#[tokio::test]
async fn a_profile_is_created_updated_and_deleted_and_its_id_is_not_reused() {
    let rest = Rest::start().await;
    let account = make(&rest, json!({ "name": "a", "max_streams": 2 })).await;
    let body = json!({
        "name": "Second", "max_streams": 1, "search_pattern": " u ", "replace_pattern": " v ",
        "exp_date": "2031-05-04T09:08:09+02:00", "is_default": true,
    });
    let made = rest.admin("POST", &profiles(account), body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let (id, path) = (made.body["id"].clone(), format!("{}{}/", profiles(account), made.body["id"]));
    let shown = json!({
        "id": id, "is_default": false, "current_viewers": 0, "name": "Second", "max_streams": 1,
        "panel_max_streams": null, "login_state": null, "login_error": null, "login_error_code": null, "discovered_max_streams": null,
        "stated_max_streams": null, "mac_address": null, "device_model": null, "username": null,
        "is_active": true, "account": { "id": account, "name": "a", "account_type": "STD", "is_xtream_codes": false }, "search_pattern": " u ",
        "replace_pattern": " v ", "custom_properties": {}, "exp_date": "2031-05-04T07:08:09.000Z",
    });
    assert_eq!(made.body, shown);
    let body = json!({ "max_streams": 3, "exp_date": null, "custom_properties": { "notes": "x" } });
    let changed = rest.admin("PATCH", &path, body).await;
    assert_eq!((changed.status, &changed.body["max_streams"]), (200, &json!(3)));
    assert_eq!(rest.admin("GET", &path, Value::Null).await.body, changed.body);
    let listed = rest.admin("GET", &profiles(account), Value::Null).await.body;
    let names: Vec<_> = listed["results"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["Default", "Second"]);

    assert_eq!(rest.admin("DELETE", &path, Value::Null).await.status, 204);
    let gone = rest.admin("GET", &path, Value::Null).await;
    let detail = json!({ "detail": "No M3UAccountProfile matches the given query." });
    assert_eq!((gone.status, gone.body), (404, detail));
    let next = make_profile(&rest, account, login("Second")).await;
    assert!(json!(next) != id && make(&rest, json!({ "name": "b" })).await != next);
}

#[tokio::test]
async fn an_invalid_profile_is_refused_by_field() {
    let rest = Rest::start().await;
    let account = make(&rest, json!({ "name": "a" })).await;
    let path = profiles(account);
    let needed = "This field is required for non-default profiles.";
    let refused = rest.admin("POST", &path, json!({ "name": "b" })).await;
    let errors = json!({ "search_pattern": [needed], "replace_pattern": [needed] });
    assert_eq!((refused.status, refused.body), (400, errors));
    for (field, value, message) in [
        ("name", json!("Default"), "This field must be unique."),
        ("search_pattern", json!(""), needed),
        ("search_pattern", json!("("), "Invalid pattern"),
        ("search_pattern", json!("(?<!a)b"), "Look-ahead and look-behind are not supported."),
        ("search_pattern", json!(7), "Expected a text."),
        ("replace_pattern", json!("$2"), ""),
        ("max_streams", json!("many"), "A valid integer is required."),
        ("exp_date", json!("soon"), "Datetime has wrong format."),
    ] {
        let mut body = login("b");
        body[field] = value.clone();
        let refused = rest.admin("POST", &path, body).await;
        let field = if field == "replace_pattern" { "search_pattern" } else { field };
        let said = refused.body[field][0].as_str().unwrap_or("nothing");
        assert!(refused.status == 400 && said.starts_with(message), "{field} {value}: {}", refused.text);
    }
    make_profile(&rest, account, login("b")).await;
    let again = rest.admin("POST", &path, login("b")).await;
    assert_eq!((again.status, again.body), (400, json!({ "name": ["This field must be unique."] })));
    for n in 0..98 {
        make_profile(&rest, account, login(&format!("{n}"))).await;
    }
    assert_eq!(rest.admin("POST", &path, login("one more")).await.status, 400);
}

#[tokio::test]
async fn the_default_profile_can_be_limited_and_rewrite_urls_but_not_be_deleted() {
    let rest = Rest::start().await;
    let account = make(&rest, json!({ "name": "a" })).await;
    let path = format!("{}{account}/", profiles(account));
    assert_eq!(rest.admin("DELETE", &path, Value::Null).await.status, 400);
    let body =
        json!({ "is_default": false, "max_streams": 4, "search_pattern": "a", "replace_pattern": "b" });
    let changed = rest.admin("PATCH", &path, body).await;
    assert_eq!((changed.status, &changed.body["is_default"]), (200, &json!(true)), "{}", changed.text);
    assert_eq!(rest.admin("GET", &one(account), Value::Null).await.body["max_streams"], 4);
    assert_eq!(rest.admin("PATCH", &path, json!({ "search_pattern": "" })).await.status, 400);
    let nothing = json!({ "search_pattern": "", "replace_pattern": "" });
    assert_eq!(rest.admin("PATCH", &path, nothing).await.status, 200);
}

/// One account with two profiles, and its streams.
struct Shelf(Account, Stream, PlanContext);

impl PlanRecords for Shelf {
    fn stream(&self, _: StreamId) -> Option<Arc<Stream>> {
        Some(Arc::new(self.1.clone()))
    }

    fn account(&self, _: AccountId) -> Option<Arc<Account>> {
        Some(Arc::new(self.0.clone()))
    }

    fn refresh(&self, _: AccountId) -> Option<Arc<RefreshRecord>> {
        None
    }

    fn server_group(&self, _: &Account) -> Option<domain::server_group::ServerGroupMembers> {
        None
    }

    fn stream_profile(&self, _: domain::ids::StreamProfileId) -> Option<Arc<StreamProfile>> {
        None
    }

    fn default_profile(&self) -> Arc<StreamProfile> {
        let [proxy, ..] = StreamProfile::built_in();
        Arc::new(proxy)
    }

    fn conditions(&self) -> &PlanContext {
        &self.2
    }
}

// Holds T-rx.1.
#[tokio::test]
async fn testing_a_pattern_gives_the_same_url_as_playing() {
    let rest = Rest::start().await;
    let id = make(&rest, json!({ "name": "a" })).await;
    let url = "http://h:8080/live/u/p/7.ts?a=b c";
    for (search, replace) in [
        ("/u/p/", "/u2/p2/"),
        ("/live/[^/]+/[^/]+/", "/live/x/y/"),
        (r"^(http://)([^/]+)", r"\1other"),
        (r"^(?P<scheme>http)://(?<host>[^/]+)", r"\g<scheme>s://$<host>.example"),
        (r"^(.*)$", "$1"),
        ("nothing", "x"),
        (r"\d", "${0}$0"),
        (" ", "%20"),
    ] {
        let body = json!({ "url": url, "search_pattern": search, "replace_pattern": replace });
        let tried = rest.admin("POST", &format!("{}test/", profiles(id)), body).await;
        assert_eq!(tried.status, 200, "{}", tried.text);

        let mut stream = stream(1, id);
        stream.provider.url = SourceUrl::new(url);
        let profile = AccountProfile {
            search_pattern: search.to_owned(),
            replace_pattern: replace.to_owned(),
            ..AccountProfile::default_of(ProfileId(1), "a", 0)
        };
        let account = Account::new(AccountId(id), "a", PlaylistLocation::None, profile, 0);
        let planned = plan_channel(&channel(1, &[1]), &Shelf(account, stream, PlanContext::default()));
        let planned = planned.candidates[0].url.expose();
        assert_eq!(tried.body, json!({ "url": planned, "is_changed": planned != url }), "{search} {replace}");
    }
    let body = json!({ "url": url, "search_pattern": "(", "replace_pattern": "" });
    assert_eq!(rest.admin("POST", &format!("{}test/", profiles(id)), body).await.status, 400);
}

#[tokio::test]
async fn sending_back_an_account_or_profile_changes_nothing() {
    let rest = Rest::start().await;
    let body = json!({
        "name": "a", "server_url": "http://u:p@h/list?x=1", "user_agent": "VLC", "priority": 3, "release_delay": 0.25,
        "headers": { "Referer": "http://r/", "X-A": "b" }, "cron_expression": "0 4 * * *", "is_active": false,
        "rules": [{ "field": "tvg_id", "find": " $", "replace": "" }], "stream_identity": "stream_id",
    });
    let account = make(&rest, body).await;
    let mut second = login("b");
    second["exp_date"] = json!("2031-05-04");
    second["custom_properties"] = json!({ "notes": "n" });
    let profile = make_profile(&rest, account, second).await;
    for path in [one(account), format!("{}{profile}/", profiles(account))] {
        let mut shown = rest.admin("GET", &path, Value::Null).await.body;
        let back = rest.admin("PUT", &path, shown.clone()).await;
        assert_eq!(back.status, 200, "{}", back.text);
        let mut now = back.body;
        for it in [&mut shown, &mut now] {
            it["updated_at"].take();
        }
        assert_eq!(now, shown);
    }
}

/// The generated tests have no account that may be changed. The helper checks that no handler fails, that a refusal
/// changes nothing, and that each answer conforms to the schema.
#[tokio::test]
async fn every_input_for_an_existing_account_or_profile_is_accepted_or_refused() {
    let rest = Rest::start().await;
    let account = make(&rest, json!({ "name": "a" })).await;
    let profile = make_profile(&rest, account, login("b")).await;
    let profile = format!("{}{profile}/", profiles(account));
    let trial = format!("{}test/", profiles(account));
    let mut n_taken = 0;
    for (method, path, record) in [
        ("PATCH", one(account), &M3UAccountView::RECORD),
        ("PATCH", profile, &M3UAccountProfileView::RECORD),
        ("POST", trial, &PatternTrial::RECORD),
    ] {
        for field in record.fields.iter().filter(|it| it.is_in_bodies()) {
            for value in [
                Value::Null,
                json!(true),
                json!(-1),
                json!(1e300),
                json!(u64::MAX),
                json!(""),
                json!(" "),
                json!("\u{0}"),
                json!("a\r\nb: c"),
                json!("ä".repeat(5_000)),
                json!("http://[::1"),
                json!("(a+)+$"),
                json!([null]),
                json!([{ "field": "url", "find": "(", "replace": "$9" }]),
                json!({ "a\r\n": "b", "": {}, "Host": ["c"] }),
                json!("+99999-01-01T00:00:00Z"),
            ] {
                let mut body = json!({ "url": "http://h/", "search_pattern": "h", "replace_pattern": "i" });
                if method == "PATCH" {
                    body = json!({});
                }
                body[field.name] = value;
                let answer = rest.admin(method, &path, body).await;
                n_taken += u32::from(answer.status == 200);
            }
        }
    }
    assert!(n_taken > 20, "{n_taken}");
}
