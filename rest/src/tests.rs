//! Promises that hold for every route.

use std::collections::BTreeSet;
use std::convert::Infallible;

use domain::account::{Account, AccountProfile, PlaylistLocation, RefreshOutcome, RefreshRecord};
use domain::ids::{AccountId, ProfileId};
use http_body_util::StreamBody;
use serde_json::{Value, json};

use super::{Port, routes, routes_of};
use crate::testing::{ADMIN, Answer, BODY_BYTES_MAX, Rest, STANDARD};

const GROUPS: &str = "/api/channels/groups/";

#[test]
fn no_two_routes_have_the_same_method_and_path_or_the_same_operation_id() {
    let (mut paths, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for route in routes() {
        let is_api = route.path.starts_with("/api/");
        let has_slash = route.path.ends_with('/');
        let is_file = [".json", ".js", ".css", ".m3u", ".m3u8", ".ts", ".xml", ".gz"]
            .iter()
            .any(|it| route.path.ends_with(it));
        let ends_well = has_slash == is_api || is_file || route.path == "/";
        let is_well_formed = route.path.starts_with('/') && ends_well && !route.path.contains("//");
        assert!(is_well_formed, "{}", route.path);
        assert!(paths.insert((route.method.to_string(), route.path)), "{} {}", route.method, route.path);
        assert!(ids.insert(route.operation_id()), "{}", route.operation_id());
    }
}

#[test]
fn routes_that_share_a_path_use_the_same_parameter_names() {
    for one in routes() {
        for other in routes() {
            let differs = one.path.split('/').zip(other.path.split('/')).find(|(a, b)| a != b);
            let differ_in_name = differs.is_some_and(|(a, b)| a.starts_with('{') && b.starts_with('{'));
            assert!(!differ_in_name, "{} and {}", one.path, other.path);
        }
    }
}

#[tokio::test]
async fn api_without_a_slash_redirects_to_api_with_one() {
    let rest = Rest::start().await;
    let answer = rest.send("GET", "/api?x=1", &[], "").await;
    assert_eq!((answer.status, &answer.headers["location"]), (301, &"api/?x=1".parse().unwrap()));
    let answer = rest.send("GET", "/api/", &[], "").await;
    assert_eq!((answer.status, &answer.body["name"]), (200, &json!("headwater")));
}

#[tokio::test]
async fn an_unknown_path_a_wrong_method_and_options_are_answered_with_json_or_an_empty_body() {
    let rest = Rest::start().await;
    for path in ["/api/nothing/", "/api/channels/x/", "/api/channels/groups/x/", "/api//", "/api/%ff/"] {
        let answer = rest.send("GET", path, &[], "").await;
        assert_eq!((answer.status, answer.body), (404, json!({ "detail": "Not found." })), "{path}");
    }
    let answer = rest.send("DELETE", GROUPS, &[], "").await;
    assert_eq!(answer.status, 405);
    assert_eq!(answer.body, json!({ "detail": "Method \"DELETE\" not allowed." }));
    assert_eq!(answer.headers["allow"], "GET, HEAD, OPTIONS, POST");
    let answer = rest.send("OPTIONS", GROUPS, &[], "").await;
    assert_eq!((answer.status, answer.text.as_str()), (204, ""));
    assert_eq!(answer.headers["allow"], "GET, HEAD, OPTIONS, POST");
    let answer = rest.send("HEAD", "/api/core/version", &[], "").await;
    assert_eq!(answer.status, 200);
}

/// [`Rest`] checks the same in every answer of every test.
#[tokio::test]
async fn browsers_do_not_guess_the_type_of_json() {
    let rest = Rest::start().await;
    let login = rest.query_login(ADMIN);
    let panel = ["", "&action=get_live_streams", "&action=get_vod_streams", "&action=get_series_categories"]
        .map(|it| format!("/player_api.php?{login}{it}"));
    let others = [
        "/api/core/version/",
        "/api/schema.json",
        "/api/channels/channels/",
        "/api/nothing/",
        "/tuner/discover.json",
        "/tuner/lineup.json",
        "/healthz/x",
        &format!("/panel_api.php?{login}"),
        "/player_api.php?username=x&password=x",
    ]
    .map(str::to_owned);
    for path in panel.into_iter().chain(others) {
        for method in ["GET", "DELETE"] {
            // Some are behind a login, and refuse this one.
            let answer = rest.send(method, &path, &[], "").await;
            assert_eq!(answer.headers["content-type"], "application/json", "{method} {path}");
            assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{method} {path}");
        }
    }
    let refused = rest.send("POST", GROUPS, &[("authorization", &rest.bearer(ADMIN))], "{").await;
    assert_eq!(
        (refused.status, &refused.headers["x-content-type-options"]),
        (400, &"nosniff".parse().unwrap())
    );
}

#[test]
fn the_streams_of_players_are_routes_of_the_player_port_only_except_the_one_that_pages_play() {
    for (path, is_on_api_port) in [
        ("/proxy/ts/stream/{target}", true),
        ("/live/{user}/{password}/{stream_file}", false),
        ("/proxy/hls/{uuid}/index.m3u8", true),
        ("/proxy/hls/session/{token}/{name}", true),
        ("/{user}/{password}/{stream_file}", false),
    ] {
        let has = |port| routes_of(port).iter().any(|it| it.path == path);
        assert_eq!((has(Port::Player), has(Port::Api)), (true, is_on_api_port), "{path}");
    }
}

/// Outside `/api/` too, so that a client sees one form of refusal everywhere.
#[tokio::test]
async fn every_path_of_the_gateway_is_refused_in_the_same_form() {
    let rest = Rest::start().await;
    for path in ["/nothing", "/healthz/x", "/live/a/b", "/live/a/b/1.mkv", "/proxy/ts/stream/", "/a/b/c"] {
        let answer = rest.send("GET", path, &[], "").await;
        assert_eq!((answer.status, answer.body), (404, json!({ "detail": "Not found." })), "{path}");
    }
    for path in ["/healthz", "/live/a/b/1.ts", "/proxy/ts/stream/1", "/a/b/1"] {
        let answer = rest.send("PUT", path, &[], "").await;
        let detail = json!({ "detail": "Method \"PUT\" not allowed." });
        assert_eq!((answer.status, answer.body), (405, detail), "{path}");
        assert_eq!(answer.headers["allow"], "GET, HEAD, OPTIONS", "{path}");
    }
}

#[tokio::test]
async fn the_trailing_slash_is_optional_for_every_method() {
    let rest = Rest::start().await;
    let made = rest.admin("POST", "/api/channels/groups", json!({ "name": "a" })).await;
    assert_eq!(made.status, 201);
    let one = format!("/api/channels/groups/{}", made.body["id"]);
    assert_eq!(rest.admin("GET", &one, Value::Null).await.status, 200);
    assert_eq!(rest.admin("PATCH", &one, json!({ "name": "b" })).await.status, 200);
    assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 204);
}

#[tokio::test]
async fn missing_credentials_are_401_and_a_low_level_403_before_the_body_is_read() {
    let rest = Rest::start().await;
    let broken = "{ this is not JSON";
    let answer = rest.send("POST", GROUPS, &[], broken).await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.body, json!({ "detail": "Authentication credentials were not provided." }));
    let answer = rest.send("POST", GROUPS, &[("authorization", "Bearer x")], broken).await;
    assert_eq!(answer.status, 401);
    let answer = rest.send("POST", GROUPS, &[("authorization", &rest.bearer(STANDARD))], broken).await;
    assert_eq!(answer.status, 403);
    assert_eq!(answer.body, json!({ "detail": "You do not have permission to perform this action." }));
    // Where everyone may call, invalid credentials are treated like missing ones.
    let answer = rest.send("GET", "/api/core/version/", &[("authorization", "Bearer x")], "").await;
    assert_eq!(answer.status, 200);
}

/// Holds T-acc.7.
#[tokio::test]
async fn an_unreadable_body_is_refused_with_the_reason() {
    let rest = Rest::start().await;
    let check = async |headers: &[(&str, &str)], body: String, status: u16, detail: &str| {
        let bearer = rest.bearer(ADMIN);
        let mut all = vec![("authorization", bearer.as_str())];
        all.extend(headers);
        let answer = rest.send("POST", GROUPS, &all, body).await;
        let said = answer.body["detail"].as_str().unwrap_or_default();
        assert_eq!(answer.status, status, "{}", answer.text);
        assert!(said.starts_with(detail), "{said}");
    };
    let good = || json!({ "name": "a" }).to_string();
    check(&[], "{".to_owned(), 400, "JSON parse error - ").await;
    check(&[], "\u{0}".to_owned(), 400, "JSON parse error - ").await;
    check(&[], "[".repeat(1_000), 400, "JSON parse error - recursion limit").await;
    check(&[], " ".repeat(BODY_BYTES_MAX + 1), 413, "The body is larger than").await;
    check(&[("content-length", "4000000000")], good(), 413, "The body is larger than").await;
    check(&[("content-type", "text/plain")], good(), 415, "Unsupported media type \"text/plain\"").await;
    check(&[("content-encoding", "gzip")], good(), 415, "Unsupported content coding").await;
    check(&[("content-type", "Application/JSON; charset=utf-8")], good(), 201, "").await;
}

#[tokio::test]
async fn refusals_fields_and_conditions_have_codes_beside_their_texts() {
    let rest = Rest::start().await;
    let code = |code: &str, values: Value| json!({ "code": code, "values": values });
    let unknown = rest.admin("GET", &format!("{GROUPS}99/"), Value::Null).await;
    let values = json!({ "noun": "ChannelGroup" });
    assert_eq!(Value::from(unknown.codes), code("no_such_record", values), "{}", unknown.text);
    let low = rest.standard("POST", GROUPS, json!({ "name": "a" })).await;
    assert_eq!(Value::from(low.codes), code("permission_denied", json!({})), "{}", low.text);
    let long = rest.admin("POST", GROUPS, json!({ "name": "a".repeat(256) })).await;
    let codes = json!({ "codes": { "name": [code("too_long", json!({ "max": "255" }))] } });
    assert_eq!(Value::from(long.codes), codes, "{}", long.text);

    // What is stored has its code too, also as a part of another text.
    let profile = AccountProfile::default_of(ProfileId(1), "login", 1);
    let message = "fetch from \"tv.example\": the host name has no address";
    rest.put([Account::new(AccountId(7), "Home", PlaylistLocation::None, profile, 0)]).await;
    let refresh = RefreshRecord {
        outcome: RefreshOutcome::Error,
        message: message.to_owned(),
        ..RefreshRecord::new(AccountId(7))
    };
    rest.put([refresh]).await;
    let health = rest.admin("GET", "/api/core/health/", Value::Null).await.body;
    let problems = health["problems"].as_array().unwrap();
    let problem = problems.iter().find(|it| it["kind"] == "source_failing").unwrap();
    assert_eq!(problem["title_code"], code("account_fails_title", json!({ "account": "Home" })));
    assert_eq!(problem["message_code"]["values"]["cause"]["code"], "host_unknown", "{problem}");
    let account = rest.admin("GET", "/api/m3u/accounts/7/", Value::Null).await.body;
    assert_eq!(account["last_message_code"], problem["message_code"]);
}

#[tokio::test]
async fn the_errors_of_each_field_are_listed_under_its_name() {
    let rest = Rest::start().await;
    let check = async |body: Value, errors: Value| {
        let answer = rest.admin("POST", GROUPS, body.clone()).await;
        assert_eq!((answer.status, answer.body), (400, errors), "{body}");
    };
    check(Value::Null, json!({ "name": ["This field is required."] })).await;
    check(json!({ "name": null }), json!({ "name": ["This field may not be null."] })).await;
    check(json!({ "name": "  " }), json!({ "name": ["This field may not be blank."] })).await;
    check(json!({ "name": 7 }), json!({ "name": ["Expected a text."] })).await;
    check(json!({ "name": "a\u{0}" }), json!({ "name": ["Null characters are not allowed."] })).await;
    let long = "ä".repeat(256);
    check(json!({ "name": long }), json!({ "name": ["Ensure this field has no more than 255 characters."] }))
        .await;
    check(json!([1]), json!({ "non_field_errors": ["Invalid data. Expected an object."] })).await;
    let answer = rest.admin("POST", GROUPS, json!({ "name": "ä".repeat(255), "id": 9, "else": 1 })).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    assert_ne!(answer.body["id"], 9, "what is read-only is ignored");
}

#[tokio::test]
async fn a_list_is_whole_until_a_page_is_requested() {
    let rest = Rest::start().await;
    for n in 0..60 {
        rest.admin("POST", GROUPS, json!({ "name": format!("group {n:02}") })).await;
    }
    let whole = rest.standard("GET", GROUPS, Value::Null).await.body;
    assert_eq!(
        (&whole["count"], &whole["next"], &whole["previous"]),
        (&json!(60), &Value::Null, &Value::Null)
    );
    assert_eq!(whole["results"].as_array().unwrap().len(), 60);

    let headers = [("authorization", &*rest.bearer(STANDARD)), ("host", "tv.example:9191")];
    let path = "/api/channels/groups?search=GROUP&page=2&page_size=25";
    let page = rest.send("GET", path, &headers, "").await.body;
    assert_eq!(page["results"][0]["name"], "group 25");
    let other = |n| format!("http://tv.example:9191/api/channels/groups?search=GROUP&page_size=25&page={n}");
    assert_eq!((&page["next"], &page["previous"]), (&json!(other(3)), &json!(other(1))));

    let last = rest.standard("GET", "/api/channels/groups/?page=2", Value::Null).await.body;
    assert_eq!((last["results"].as_array().unwrap().len(), &last["next"]), (10, &Value::Null));
    let beyond = rest.standard("GET", "/api/channels/groups/?page=3", Value::Null).await;
    assert_eq!((beyond.status, beyond.body), (404, json!({ "detail": "Invalid page." })));
    let empty = rest.standard("GET", "/api/channels/groups/?search=nothing&page=1", Value::Null).await;
    assert_eq!((empty.status, &empty.body["count"]), (200, &json!(0)));
}

#[tokio::test]
async fn an_invalid_query_parameter_is_refused_by_name() {
    let rest = Rest::start().await;
    let check = async |query: &str, status: u16, errors: Value| {
        let answer = rest.standard("GET", &format!("{GROUPS}?{query}"), Value::Null).await;
        assert_eq!(answer.status, status, "{query}: {}", answer.text);
        if status == 400 {
            assert_eq!(answer.body, errors, "{query}");
        }
    };
    let no_number = || json!(["A valid integer is required."]);
    check("page=x", 400, json!({ "page": no_number() })).await;
    check("page=0", 400, json!({ "page": ["Ensure this value is greater than or equal to 1."] })).await;
    check(
        "page=99999999999999999999&page_size=a",
        400,
        json!({ "page": no_number(), "page_size": no_number() }),
    )
    .await;
    check("page=9223372036854775807&page_size=10000", 404, Value::Null).await;
    let names = "\"size\" is not a valid choice. Choose one of: id, -id, name, -name.";
    check("ordering=size", 400, json!({ "ordering": [names] })).await;
    check("ordering=&page=&search=", 200, Value::Null).await;
    check("unknown=1&%ff=%ff&&=", 200, Value::Null).await;
}

#[tokio::test]
async fn names_are_returned_unescaped() {
    let rest = Rest::start().await;
    let made = rest.admin("POST", GROUPS, json!({ "name": "Überall & <b>日本</b> \"x\"" })).await;
    assert!(made.text.contains(r#""name":"Überall & <b>日本</b> \"x\"""#), "{}", made.text);
    assert_eq!(made.headers["content-type"], "application/json");
}

/// Holds T-load.1.
#[tokio::test]
async fn a_body_without_authentication_has_at_most_4_kib_and_one_of_a_user_what_the_route_needs() {
    let rest = Rest::start().await;
    let padded = |n: usize| " ".repeat(n - 2) + "{}";
    let send = async |path: &str, n: usize, user: Option<u32>| {
        let bearer = user.map(|it| rest.bearer(it)).unwrap_or_default();
        let headers = [("authorization", bearer.as_str())];
        let headers = if user.is_some() { &headers[..] } else { &[] };
        rest.send("POST", path, headers, padded(n)).await.status
    };
    for path in ["/api/accounts/token/", "/api/accounts/token/refresh/"] {
        assert_eq!(send(path, 4096, None).await, 400, "{path}");
        assert_eq!(send(path, 4097, None).await, 413, "{path}");
    }
    assert_eq!(send(GROUPS, 64 << 10, Some(ADMIN)).await, 400);
    assert_eq!(send(GROUPS, (64 << 10) + 1, Some(ADMIN)).await, 413);
    let bulk = "/api/channels/channels/bulk-delete/";
    assert_ne!(send(bulk, BODY_BYTES_MAX, Some(ADMIN)).await, 413);
    assert_eq!(send(bulk, BODY_BYTES_MAX + 1, Some(ADMIN)).await, 413);
}

/// Holds T-load.1.
#[tokio::test]
async fn a_client_that_has_the_published_schema_gets_304() {
    let rest = Rest::start().await;
    let whole = rest.send("GET", "/api/schema/", &[], "").await;
    assert_eq!((whole.status, &whole.body["openapi"]), (200, &json!("3.0.3")));
    let tag = whole.headers["etag"].to_str().unwrap().to_owned();
    for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
        let answer = rest.send("GET", "/api/schema.json", &[("if-none-match", &known)], "").await;
        assert_eq!((answer.status, answer.text.as_str()), (304, ""), "{known}");
        assert_eq!(answer.headers["etag"], tag.as_str());
    }
    assert_eq!(rest.send("GET", "/api/schema/", &[("if-none-match", "\"other\"")], "").await.status, 200);
}

/// Holds T-load.1.
#[tokio::test]
async fn a_write_that_changes_nothing_is_not_committed() {
    let rest = Rest::start().await;
    let group = rest.admin("POST", GROUPS, json!({ "name": "a" })).await.body["id"].to_string();
    let list = json!({ "name": "one", "server_url": "http://provider.example/list", "is_active": false });
    let account = rest.admin("POST", "/api/m3u/accounts/", list).await.body["id"].to_string();
    let paths = [
        (format!("{GROUPS}{group}/"), json!({ "name": "a" })),
        (format!("/api/m3u/accounts/{account}/"), json!({ "name": "one" })),
        (format!("/api/m3u/accounts/{account}/profiles/{account}/"), json!({ "name": "Default" })),
        (format!("/api/accounts/users/{STANDARD}/"), json!({ "first_name": "" })),
        ("/api/accounts/users/me/".to_owned(), json!({ "email": "" })),
    ];
    let before = rest.models.store.version();
    for (path, body) in paths {
        let answer = rest.admin("PATCH", &path, body).await;
        assert_eq!((answer.status, rest.models.store.version()), (200, before), "{path}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_change_without_any_known_field_is_refused_with_the_names() {
    let rest = Rest::start().await;
    let group = rest.admin("POST", GROUPS, json!({ "name": "a" })).await.body["id"].to_string();
    let path = format!("{GROUPS}{group}/");
    let answer = rest.admin("PATCH", &path, json!({ "label": "b", "x": 1 })).await;
    let message = ["There is no such field."];
    assert_eq!((answer.status, answer.body), (400, json!({ "label": message, "x": message })));

    // A client that sends a record back sends more than can be changed.
    for body in [json!({ "name": "b", "x": 1 }), json!({ "id": 7 }), json!({})] {
        let answer = rest.admin("PATCH", &path, body.clone()).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.text);
    }
    assert_eq!(rest.admin("GET", &path, json!({})).await.body["name"], "b");
}

#[tokio::test]
async fn unknown_fields_beside_known_ones_are_named_or_refused() {
    let rest = Rest::start().await;
    let channels = "/api/channels/channels/";
    let warning = |answer: &Answer| {
        answer.headers.get("warning").map(|it| it.to_str().unwrap().to_owned()).unwrap_or_default()
    };
    let made = rest.admin("POST", channels, json!({ "name": "a", "label": 1, "b\r\n\"": 2 })).await;
    assert_eq!((made.status, warning(&made).as_str()), (201, "299 - \"unknown fields: b, label\""));
    let path = format!("{channels}{}/", made.body["id"]);
    // A record that is sent back has fields that cannot be changed.
    let back = rest.admin("PUT", &path, made.body.clone()).await;
    assert_eq!((back.status, warning(&back).as_str()), (200, ""), "{}", back.text);
    let strict =
        rest.admin("PATCH", &format!("{path}?strict=true"), json!({ "name": "c", "label": 1 })).await;
    assert_eq!((strict.status, strict.body), (400, json!({ "label": ["There is no such field."] })));
    assert_eq!(rest.admin("GET", &path, json!(null)).await.body["name"], "a");
    let many: serde_json::Map<_, _> = (0..100).map(|it| ("x".repeat(90 + it), json!(1))).collect();
    let named = warning(&rest.admin("POST", channels, json!(many)).await);
    assert!(named.len() < 1_000, "{named}");
}

#[tokio::test]
async fn references_are_accepted_by_the_names_of_the_tables() {
    let rest = Rest::start().await;
    let logo = json!({ "name": "L", "url": "http://logos.example/l.png" });
    let logo = rest.admin("POST", "/api/channels/logos/", logo).await.body["id"].clone();
    for list in ["/api/channels/channels/", "/api/channels/streams/"] {
        let is_stream = list.ends_with("streams/");
        let of = |name: &str| {
            let mut body = json!({ "name": name });
            if is_stream {
                body["url"] = json!(format!("http://provider.example/{name}.ts"));
            }
            body
        };
        let mut body = of("a");
        (body["stream_profile"], body["logo"]) = (json!(1), logo.clone());
        let made = rest.admin("POST", list, body).await;
        assert_eq!((made.status, &made.body["stream_profile_id"]), (201, &json!(1)), "{}", made.text);
        let has_logo =
            |answer: &Answer| answer.body["logo_url"].as_str().is_some_and(|it| it.contains("logo"));
        assert!(has_logo(&made), "{}", made.text);
        assert_eq!(made.headers.get("warning"), None);
        let path = format!("{list}{}/", made.body["id"]);
        let removed = rest.admin("PATCH", &path, json!({ "stream_profile": null, "logo": null })).await;
        assert_eq!(removed.body["stream_profile_id"], json!(null), "{}", removed.text);
        assert!(!has_logo(&removed), "{}", removed.text);
        let address = json!({ "logo": "http://logos.example/l.png", "stream_profile": 1 });
        let set = rest.admin("PATCH", &path, address).await;
        assert!(has_logo(&set) && set.body["stream_profile_id"] == 1, "{}", set.text);
        for (field, value) in [
            ("logo", json!(999)),
            ("logo", json!("no address")),
            ("stream_profile", json!(999)),
            ("stream_profile", json!("x")),
        ] {
            let refused = rest.admin("PATCH", &path, json!({ field: value })).await;
            assert_eq!(refused.status, 400, "{field} {value}: {}", refused.text);
            let names = refused.body.as_object().unwrap().keys().all(|it| it.starts_with(field));
            assert!(names, "{}", refused.text);
        }
    }
    let zero =
        rest.admin("POST", "/api/channels/channels/", json!({ "name": "z", "channel_number": 0 })).await;
    assert_eq!((zero.status, zero.body["channel_number"].is_array()), (400, true), "{}", zero.text);
}

#[tokio::test]
async fn a_body_may_begin_with_a_byte_order_mark() {
    let rest = Rest::start().await;
    let headers = [("authorization", &*rest.bearer(ADMIN)), ("content-type", "application/json")];
    let answer = rest.send("POST", GROUPS, &headers, "\u{feff}{\"name\": \"a\"}").await;
    assert_eq!(answer.status, 201, "{}", answer.text);
}

#[tokio::test]
async fn a_body_that_never_arrives_times_out() {
    let rest = Rest::start().await;
    let never = futures_util::stream::pending::<Result<hyper::body::Frame<bytes::Bytes>, Infallible>>();
    let headers = [("authorization", &*rest.bearer(ADMIN))];
    let answer = rest.send_body("POST", GROUPS, &headers, StreamBody::new(never)).await;
    assert_eq!((answer.status, answer.body), (408, json!({ "detail": "request timeout" })));
}

#[test]
fn the_health_check_of_a_stopping_gateway_is_described_as_text() {
    let document = super::openapi();
    let responses = &document["paths"]["/healthz"]["get"]["responses"];
    let types = |status: &str| -> Vec<&str> {
        responses[status]["content"].as_object().unwrap().keys().map(String::as_str).collect()
    };
    assert_eq!(types("200"), ["text/plain; charset=utf-8"]);
    assert_eq!(types("503"), ["application/json", "text/plain; charset=utf-8"]);
}

/// Path of the published document.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");

/// After a change of the interface: `HEADWATER_WRITE_OPENAPI=1 cargo test openapi`.
#[test]
fn the_published_openapi_document_matches_the_routes() {
    let document = serde_json::to_string_pretty(&super::openapi()).unwrap() + "\n";
    if std::env::var_os("HEADWATER_WRITE_OPENAPI").is_some() {
        std::fs::write(DOCUMENT, &document).unwrap();
    }
    let published = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
    assert!(published == document, "docs/openapi.json is not up to date: `just openapi` writes it");
}

/// Holds T-acc.7.
#[tokio::test]
async fn a_streamed_body_is_refused_once_it_is_too_large() {
    let rest = Rest::start().await;
    let part = || Ok::<_, Infallible>(hyper::body::Frame::data(bytes::Bytes::from(vec![b' '; 10_000])));
    let headers = [("authorization", &*rest.bearer(ADMIN))];
    let endless = futures_util::stream::repeat_with(part);
    let answer = rest.send_body("POST", GROUPS, &headers, StreamBody::new(endless)).await;
    assert_eq!(answer.status, 413, "{}", answer.text);
}
