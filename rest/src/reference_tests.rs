//! What clients of the reference service read, besides the interface of the specification.

use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::clients::{ERROR_MEMBERS, LENIENT_ORDERINGS};
use domain::ids::{AccountId, ProfileId, StreamId};
use domain::panel::PanelLogin;
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use serde_json::{Value, json};

use super::routes;
use crate::testing::{Answer, Rest};

const CHANNELS: &str = "/api/channels/channels/";

#[test]
fn the_tables_of_clients_name_routes() {
    let all = routes();
    for path in LENIENT_ORDERINGS.into_iter().chain(ERROR_MEMBERS.map(|it| it.path)) {
        assert!(all.iter().any(|it| it.path == path), "{path}");
    }
}

#[tokio::test]
async fn an_unknown_order_is_ignored_with_a_warning_where_clients_send_some() {
    let rest = Rest::start().await;
    for name in ["b", "a"] {
        rest.admin("POST", CHANNELS, json!({ "name": name })).await;
    }
    let warning = |it: &Answer| it.headers.get("warning").map(|it| it.to_str().unwrap().to_owned());
    let names = |it: &Answer| {
        let all = it.body["results"].as_array().unwrap();
        all.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (order, expected, is_known) in [
        ("zzz", ["b", "a"], false),
        ("-zzz", ["b", "a"], false),
        ("number", ["b", "a"], true),
        ("-number", ["a", "b"], true),
        ("-channel_number", ["a", "b"], true),
        ("name", ["a", "b"], true),
        ("name,number", ["b", "a"], false),
        ("", ["b", "a"], true),
    ] {
        let answer = rest.admin("GET", &format!("{CHANNELS}?ordering={order}"), Value::Null).await;
        assert_eq!((answer.status, names(&answer)), (200, expected.map(str::to_owned).to_vec()), "{order}");
        let named = (!is_known).then(|| format!("299 - \"unknown ordering: {order}\""));
        assert_eq!(warning(&answer), named, "{order}");
    }
    for path in LENIENT_ORDERINGS {
        let answer = rest.admin("GET", &format!("{path}?ordering=zzz"), Value::Null).await;
        assert_eq!((answer.status, warning(&answer).is_some()), (200, true), "{path}");
        let strict = rest.admin("GET", &format!("{path}?ordering=zzz&strict=true"), Value::Null).await;
        assert!(strict.status == 400 && strict.body["ordering"].is_array(), "{path}: {}", strict.text);
    }
    let text = rest.admin("GET", &format!("{CHANNELS}?ordering=%22%0d%0aX"), Value::Null).await;
    assert_eq!((text.status, warning(&text).as_deref()), (200, Some("299 - \"unknown ordering: X\"")));
}

#[tokio::test]
async fn refusals_have_their_reason_also_as_error_where_clients_read_it() {
    let rest = Rest::start().await;
    for (method, path, body, has_success) in [
        ("POST", "/api/channels/recordings/99/stop/", json!({}), true),
        ("POST", "/api/m3u/refresh-account-info/99/", json!({}), true),
        ("GET", "/api/vod/movies/99/provider-info/", Value::Null, false),
        ("GET", "/proxy/ts/status/00000000-0000-0000-0000-000000000001", Value::Null, false),
        ("POST", "/proxy/ts/stop/00000000-0000-0000-0000-000000000001", json!({}), true),
        ("POST", "/proxy/vod/stop_client", json!({ "client_id": "7" }), false),
        ("DELETE", "/api/catchup/sessions/x/", Value::Null, false),
    ] {
        let answer = rest.admin(method, path, body).await;
        assert_eq!(
            (answer.status, answer.body["detail"].is_string()),
            (404, true),
            "{path}: {}",
            answer.text
        );
        assert_eq!(answer.body["error"], answer.body["detail"], "{path}");
        let success = if has_success { json!(false) } else { Value::Null };
        assert_eq!(answer.body["success"], success, "{path}");
    }
    let other = rest.admin("GET", "/api/channels/groups/99/", Value::Null).await;
    assert_eq!(other.body["error"], other.body["detail"]);
    let none = rest.admin("GET", "/api/channels/channels/99/", Value::Null).await;
    assert_eq!((none.status, &none.body["error"]), (404, &Value::Null));
}

#[tokio::test]
async fn the_list_of_channels_says_whether_some_have_no_guide() {
    let rest = Rest::start().await;
    let flag = async |query: &str| {
        let page = rest.admin("GET", &format!("{CHANNELS}{query}"), Value::Null).await.body;
        page["has_unassigned_epg_channels"].clone()
    };
    assert_eq!(flag("?page=1&page_size=1").await, json!(false));
    rest.admin("POST", CHANNELS, json!({ "name": "News" })).await;
    assert_eq!((flag("?page=1&page_size=1").await, flag("").await), (json!(true), json!(true)));
    assert_eq!(flag("?search=nothing").await, json!(false));
}

#[tokio::test]
async fn a_stream_has_its_number_at_the_panel_and_the_number_of_its_connections() {
    let rest = Rest::start().await;
    let login = PanelLogin {
        server: SourceUrl::new("http://panel.example"),
        username: "anna".to_owned(),
        password: Secret::new("12345"),
    };
    let stream = |id: u32, account: u32, url: SourceUrl| {
        Stream::new(StreamId(id), AccountId(account), StreamProperties::new("News", url), 0)
    };
    let panel_url = login.stream_url(77);
    for (id, list) in [(2, PlaylistLocation::Panel(login)), (3, PlaylistLocation::None)] {
        let profile = AccountProfile::default_of(ProfileId(id), "Default", 0);
        rest.put([Account::new(AccountId(id), format!("Account {id}"), list, profile, 0)]).await;
    }
    rest.put([
        stream(1, 2, panel_url.clone()),
        stream(2, 2, SourceUrl::new("http://panel.example/live/anna/12345/news.ts")),
        stream(3, 3, panel_url),
    ])
    .await;
    for (id, expected) in [(1, json!(77)), (2, Value::Null), (3, Value::Null)] {
        let shown = rest.admin("GET", &format!("/api/channels/streams/{id}/"), Value::Null).await.body;
        assert_eq!((&shown["stream_id"], &shown["current_viewers"]), (&expected, &json!(0)), "{id}");
    }
}

#[tokio::test]
async fn the_tuner_answers_where_the_reference_service_does() {
    let rest = Rest::start().await;
    for file in ["discover.json", "lineup.json", "lineup_status.json", "device.xml"] {
        let usual = rest.admin("GET", &format!("/hdhr/{file}"), Value::Null).await;
        let other = rest.admin("GET", &format!("/api/hdhr/{file}"), Value::Null).await;
        assert_eq!((other.status, &other.text), (200, &usual.text), "{file}");
    }
    assert_eq!(rest.admin("GET", "/api/hdhr/lineup.m3u", Value::Null).await.status, 404);
}
